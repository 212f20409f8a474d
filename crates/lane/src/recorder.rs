//! The recorder's operations on a program's memory: look, copy, free. The recorder trusts no value
//! that it reads.

use crate::layout::{
    DESCRIPTOR_BYTES, FULL, LANE_BYTES, LEFT, LIVE, OPEN, SubBufferOwner, descriptor, header, lane, thread_word,
};
use crate::memory::MemoryView;
use crate::sides::{RecorderSide, WriterThread};

/// A snapshot of a sub-buffer that a lane owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubBufferSnapshot {
    /// Number of the sub-buffer.
    pub sub_buffer: u32,
    generation: u32,
    /// Lane that owns it.
    pub lane: u16,
    /// Thread that writes to it.
    pub thread: WriterThread,
    /// Number of sub-buffers that the lane had taken before this one.
    pub sequence: u64,
    /// Timestamp, in ticks, when the lane took it; no event in it is earlier.
    pub begin: u64,
    /// Ticks of its last event; equal to `begin` if it has no event.
    pub last: u64,
    /// Bytes of published events.
    pub bytes: u32,
    /// Number of events that the lane had lost when it took this sub-buffer.
    pub discarded: u64,
    /// Contexts that its events carry: [`contexts`](crate::contexts).
    pub contexts: u64,
    /// The lane has closed it: no more events follow.
    pub is_full: bool,
}

/// Losses of a lane so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Lost events.
    pub discarded: u64,
    /// Texts that were truncated.
    pub cut: u64,
}

/// Behavior of a lane that has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowMode {
    /// The lane discards new events.
    DiscardNewest,
    /// The lane overwrites its oldest events.
    OverwriteOldest,
}

/// Recording settings for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingSettings {
    /// Behavior of a lane without room.
    pub mode: OverflowMode,
    /// Maximum number of sub-buffers of one lane.
    pub lane: u32,
    /// Maximum number of sub-buffers of all lanes together.
    pub pool: u32,
    /// Contexts that events carry: [`contexts`](crate::contexts).
    pub contexts: u64,
}

/// The owner of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    state: u64,
    /// The thread; `None`: it has just taken the lane, and has not stored its ID yet.
    pub tid: Option<u32>,
    /// Number of nested signal handlers that the thread is in.
    pub level: u8,
}

impl<V: MemoryView> RecorderSide<V> {
    /// Sets the control byte of an event: 0 turns the event off, 1 turns it on, larger values
    /// select a filter.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn switch(&self, id: u16, to: u8) -> Result<(), V::Fault> {
        self.view.set_byte(self.layout.control(id), to)
    }

    /// Publishes the recording settings. A recorder that raises a limit must then call
    /// [`freed`](Self::freed), so that lanes without room look again.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn say(&self, wants: &RecordingSettings) -> Result<(), V::Fault> {
        // Four separate stores: a lane may see old and new settings together for a moment, and each
        // combination is valid.
        self.view.set_byte(header::MODE, u8::from(wants.mode == OverflowMode::OverwriteOldest))?;
        self.view.set_word(header::LIMIT, wants.lane.max(1).into())?;
        self.view.set_word(header::POOL, wants.pool.clamp(1, self.layout.sub_buffers).into())?;
        self.view.set_word(header::CONTEXTS, wants.contexts)
    }

    /// Number of sub-buffers that have memory. The recorder need not look at others.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn ready(&self) -> Result<u32, V::Fault> {
        Ok(self.view.word(header::READY)?.min(self.layout.sub_buffers.into()) as u32)
    }

    /// Number of lanes that have memory. The recorder need not look at others.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn lanes_ready(&self) -> Result<u16, V::Fault> {
        Ok(self.view.word(header::LANES_READY)?.min(self.layout.lanes.into()) as u16)
    }

    /// Current owner of a lane; `None`: the lane is free.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn holder(&self, lane: u16) -> Result<Option<Holder>, V::Fault> {
        let at = self.layout.lane(lane);
        let state = self.view.word(at + lane::STATE)?;
        // After the state: a word of this generation names the thread that has the lane now.
        let thread = self.view.word(at + lane::THREAD)?;
        let (generation, level, tid) = ((state >> 32) as u32, (thread >> 32) as u8, thread as u32);
        let tid = (thread == thread_word(generation, level, tid)).then_some(tid);
        Ok((state & 3 == LIVE).then_some(Holder { state, tid, level }))
    }

    /// Takes a lane from a thread that ended without giving it back. The recorder
    /// [frees](Self::free) the lane's open sub-buffer after it has copied it.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn release(&self, lane: u16, holder: &Holder) -> Result<(), V::Fault> {
        let at = self.layout.lane(lane);
        // Only the low byte is written, so the generation stays, and no compare-and-swap is
        // necessary: the thread that could change the word is gone.
        let is_its = self.view.word(at + lane::STATE)? == holder.state;
        if is_its { self.view.set_byte(at + lane::STATE, LEFT as u8) } else { Ok(()) }
    }

    /// Snapshot of a sub-buffer; `None`: no lane owns it, or its owner is changing.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn look(&self, number: u32) -> Result<Option<SubBufferSnapshot>, V::Fault> {
        let at = self.layout.descriptor(number);
        let word = |word| self.view.word(at + word);
        let owner = SubBufferOwner::of(word(descriptor::OWNER)?);
        // After the owner: a mark that matches was written for this generation.
        let mut freed = [0];
        self.view.copy(self.layout.freed(number), &mut freed)?;
        if !matches!(owner.state, OPEN | FULL) || owner.is_free(freed[0]) {
            return Ok(None);
        }
        // `published` first: its last event is not later than the words that are read after it.
        let mut words = [0; DESCRIPTOR_BYTES as usize / 8];
        for (at, place) in (descriptor::PUBLISHED..=descriptor::CONTEXTS).step_by(8).zip(&mut words[1..]) {
            *place = word(at)?;
        }
        self.view.fence();
        // Only the generation counts. If the lane closes the sub-buffer meanwhile, the snapshot
        // says that it is open, and the next look finds the rest.
        let is_same = SubBufferOwner::of(word(descriptor::OWNER)?).generation == owner.generation;
        Ok(self.seen(number, owner, |at| words[at as usize / 8]).filter(|_| is_same))
    }

    /// Bytes of scratch memory that [`look_all`](Self::look_all) needs for `ready` sub-buffers.
    pub fn look_bytes(ready: u32) -> usize {
        ready as usize * (1 + 2 * DESCRIPTOR_BYTES as usize)
    }

    /// Snapshots of the first `ready` sub-buffers. Like [`look`](Self::look), but with three copies
    /// for all of them: the owners, the free marks, and the descriptors.
    ///
    /// The snapshots omit a sub-buffer if its owner changes during this call. [`copy`](Self::copy)
    /// detects a later change of owner; call it before you trust a snapshot.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn look_all(
        &self,
        ready: u32,
        room: &mut [u8],
        mut each: impl FnMut(SubBufferSnapshot),
    ) -> Result<(), V::Fault> {
        let ready = ready.min(self.layout.sub_buffers);
        let (freed, room) = room.split_at_mut(ready as usize);
        let (owners, described) = room.split_at_mut(ready as usize * DESCRIPTOR_BYTES as usize);
        let described = &mut described[..owners.len()];
        let at = self.layout.descriptor(0);
        // Whole descriptors, though only their owners are used: one system call for all costs less
        // than one for each word.
        self.view.copy(at, owners)?;
        self.view.fence();
        self.view.copy(self.layout.freed(0), freed)?;
        // A copy has no order inside. So the owner that it contains may be older than the words
        // beside it, and the comparison below does not find each change: `copy` compares again.
        self.view.copy(at, described)?;
        self.view.fence();
        let pairs =
            owners.chunks_exact(DESCRIPTOR_BYTES as usize).zip(described.chunks_exact(DESCRIPTOR_BYTES as usize));
        for (number, ((first, then), freed)) in (0..).zip(pairs.zip(freed)) {
            let owner = SubBufferOwner::of(word_in(first, descriptor::OWNER));
            let is_there = matches!(owner.state, OPEN | FULL) && !owner.is_free(*freed);
            if is_there && SubBufferOwner::of(word_in(then, descriptor::OWNER)).generation == owner.generation {
                self.seen(number, owner, |word| word_in(then, word)).into_iter().for_each(&mut each);
            }
        }
        Ok(())
    }

    /// Snapshot from the words of a descriptor, whose owner word was read before; `None`: the words
    /// are impossible.
    fn seen(&self, number: u32, owner: SubBufferOwner, word: impl Fn(u64) -> u64) -> Option<SubBufferSnapshot> {
        let (published, begin, thread) =
            (word(descriptor::PUBLISHED), word(descriptor::BEGIN), word(descriptor::THREAD));
        let mut name = [0; 16];
        name[..8].copy_from_slice(&word(descriptor::NAME).to_le_bytes());
        name[8..].copy_from_slice(&word(descriptor::NAME + 8).to_le_bytes());
        // The program may write anything here. Later code indexes with both numbers.
        let bytes = (published >> 32) as u32;
        let is_possible = bytes <= self.layout.sub_buffer_bytes && u32::from(owner.lane) < self.layout.lanes;
        is_possible.then(|| SubBufferSnapshot {
            sub_buffer: number,
            generation: owner.generation,
            lane: owner.lane,
            thread: WriterThread { tid: thread as u32, level: (thread >> 32) as u8, name },
            sequence: word(descriptor::SEQUENCE),
            begin,
            // `published` has the low half of the ticks. The lane closes a sub-buffer before its
            // events span 2^32 ticks, so the upper half follows from `begin`.
            last: begin.wrapping_add((published as u32).wrapping_sub(begin as u32).into()),
            bytes,
            discarded: word(descriptor::DISCARDED),
            contexts: word(descriptor::CONTEXTS),
            is_full: owner.state == FULL,
        })
    }

    /// Copies events of a snapshot, starting at byte `from`. `false`: the program has overwritten
    /// the sub-buffer in the meantime, and the copied bytes are invalid.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn copy(&self, seen: &SubBufferSnapshot, from: u32, into: &mut [u8]) -> Result<bool, V::Fault> {
        // Only up to the bytes of the snapshot: those after them may be half written.
        let from = from.min(seen.bytes);
        let length = ((seen.bytes - from) as usize).min(into.len());
        self.view.copy(self.layout.sub_buffer(seen.sub_buffer) + u64::from(from), &mut into[..length])?;
        self.view.fence();
        let owner = SubBufferOwner::of(self.view.word(self.layout.descriptor(seen.sub_buffer))?);
        Ok(owner.generation == seen.generation)
    }

    /// Frees a sub-buffer that is full, or that belongs to a thread that is gone. Any lane may take
    /// it from now on. Free each snapshot only once.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn free(&self, seen: &SubBufferSnapshot) -> Result<(), V::Fault> {
        // The mark depends on the generation alone. If the program has overwritten the sub-buffer
        // meanwhile, the mark belongs to an older generation, and frees nothing.
        let owner = SubBufferOwner { generation: seen.generation, lane: seen.lane, state: FULL };
        self.view.set_byte(self.layout.freed(seen.sub_buffer), owner.mark())
    }

    /// Tells lanes that had no room that sub-buffers were freed since. Pass another `epoch` each
    /// time.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn freed(&self, epoch: u64) -> Result<(), V::Fault> {
        self.view.set_word(header::EPOCH, epoch)
    }

    /// Losses of a lane so far.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn losses(&self, lane: u16) -> Result<Losses, V::Fault> {
        let at = self.layout.lane(lane);
        let (discarded, cut) = (self.view.word(at + lane::DISCARDED)?, self.view.word(at + lane::CUT)?);
        Ok(Losses { discarded, cut })
    }

    /// Number of bytes that [`all_losses`](Self::all_losses) reads for so many lanes.
    #[must_use]
    pub fn losses_bytes(lanes: u16) -> usize {
        usize::from(lanes) * LANE_BYTES as usize
    }

    /// Losses of the first lanes so far, read at once into `room`, which has
    /// [`losses_bytes`](Self::losses_bytes).
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn all_losses(&self, lanes: u16, room: &mut [u8], mut each: impl FnMut(u16, Losses)) -> Result<(), V::Fault> {
        self.view.copy(self.layout.lane(0), room)?;
        for (lane, entry) in (0..lanes).zip(room.chunks_exact(LANE_BYTES as usize)) {
            each(lane, Losses { discarded: word_in(entry, lane::DISCARDED), cut: word_in(entry, lane::CUT) });
        }
        Ok(())
    }

    /// Number of events lost by threads without a lane.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn discarded(&self) -> Result<u64, V::Fault> {
        self.view.word(header::DISCARDED)
    }
}

fn word_in(bytes: &[u8], at: u64) -> u64 {
    let at = at as usize;
    u64::from_le_bytes(core::array::from_fn(|byte| bytes[at + byte]))
}
