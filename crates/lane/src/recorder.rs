//! What a recorder does with a program's memory: looks, copies, frees. It believes nothing.

use crate::layout::{DESCRIPTOR_BYTES, FULL, OPEN, Owner, descriptor, header, lane};
use crate::memory::View;
use crate::sides::{Recorder, Thread};

/// A sub-buffer that a lane has, as it was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which one.
    pub sub_buffer: u32,
    generation: u32,
    /// Whose it is.
    pub lane: u16,
    /// Who writes to it.
    pub thread: Thread,
    /// How many the lane had taken before.
    pub sequence: u64,
    /// Ticks when it was taken; no event is earlier.
    pub begin: u64,
    /// Ticks of the last event; of none, those of the begin.
    pub last: u64,
    /// Bytes of events.
    pub bytes: u32,
    /// What the lane had lost when it was taken.
    pub discarded: u64,
    /// What its events carry with them: [`contexts`](crate::contexts).
    pub contexts: u64,
    /// Nothing more comes.
    pub is_full: bool,
}

/// What a lane has lost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events.
    pub discarded: u64,
    /// Texts that were cut.
    pub cut: u64,
}

/// How a lane does without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// New events are lost.
    DiscardNewest,
    /// Its oldest ones are.
    OverwriteOldest,
}

/// How a program is to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// What a lane does without room.
    pub mode: Mode,
    /// Sub-buffers that a lane may have.
    pub lane: u32,
    /// Sub-buffers that all lanes may have.
    pub pool: u32,
    /// What events carry: [`contexts`](crate::contexts).
    pub contexts: u64,
}

/// Who has a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    state: u64,
    /// The thread.
    pub tid: u32,
    /// How many handlers of signals it is in.
    pub level: u8,
}

impl<V: View> Recorder<V> {
    /// Switches an event: 0 is off, 1 on, more are filters.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn switch(&self, id: u16, to: u8) -> Result<(), V::Fault> {
        self.view.set_byte(self.layout.control(id), to)
    }

    /// Says how the program is to record. Who allows more than before says then that something was [freed](Self::freed), so that lanes
    /// without room look again.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn say(&self, wants: &Wants) -> Result<(), V::Fault> {
        self.view.set_byte(header::MODE, u8::from(wants.mode == Mode::OverwriteOldest))?;
        self.view.set_word(header::LIMIT, wants.lane.max(1).into())?;
        self.view.set_word(header::POOL, wants.pool.clamp(1, self.layout.sub_buffers).into())?;
        self.view.set_word(header::CONTEXTS, wants.contexts)
    }

    /// Sub-buffers that have memory; of others there is nothing to see.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn ready(&self) -> Result<u32, V::Fault> {
        Ok(self.view.word(header::READY)?.min(self.layout.sub_buffers.into()) as u32)
    }

    /// Lanes that have memory; of others there is nothing to see.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn lanes_ready(&self) -> Result<u16, V::Fault> {
        Ok(self.view.word(header::LANES_READY)?.min(self.layout.lanes.into()) as u16)
    }

    /// Who has a lane now; `None`: nobody.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn holder(&self, lane: u16) -> Result<Option<Holder>, V::Fault> {
        let at = self.layout.lane(lane);
        let state = self.view.word(at + lane::STATE)?;
        let thread = self.view.word(at + lane::THREAD)?;
        Ok((state & 3 == 1).then_some(Holder { state, tid: thread as u32, level: (thread >> 32) as u8 }))
    }

    /// Takes a lane from a thread that is gone without having given it back. Its open sub-buffer is [freed](Self::free) by whoever has
    /// copied it.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn release(&self, lane: u16, holder: &Holder) -> Result<(), V::Fault> {
        let at = self.layout.lane(lane);
        if self.view.word(at + lane::STATE)? == holder.state { self.view.set_byte(at + lane::STATE, 2) } else { Ok(()) }
    }

    /// What is in a sub-buffer; `None`: nobody has it, or it is changing hands.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn look(&self, number: u32) -> Result<Option<Seen>, V::Fault> {
        let at = self.layout.descriptor(number);
        let word = |word| self.view.word(at + word);
        let owner = Owner::of(word(descriptor::OWNER)?);
        let mut freed = [0];
        self.view.copy(self.layout.freed(number), &mut freed)?;
        if !matches!(owner.state, OPEN | FULL) || owner.is_free(freed[0]) {
            return Ok(None);
        }
        // What is published first: its last event is not later than what is looked at behind it.
        let mut words = [0; DESCRIPTOR_BYTES as usize / 8];
        for (at, place) in (descriptor::PUBLISHED..=descriptor::CONTEXTS).step_by(8).zip(&mut words[1..]) {
            *place = word(at)?;
        }
        self.view.fence();
        let is_same = Owner::of(word(descriptor::OWNER)?).generation == owner.generation;
        Ok(self.seen(number, owner, |at| words[at as usize / 8]).filter(|_| is_same))
    }

    /// Bytes that [`look_all`](Self::look_all) needs for so many sub-buffers.
    pub fn look_bytes(ready: u32) -> usize {
        ready as usize * (1 + 2 * DESCRIPTOR_BYTES as usize)
    }

    /// What is in the first sub-buffers, as [`look`](Self::look) does but with three copies for all: their owners, then what describes
    /// them. Whoever changes hands meanwhile is not seen; what changes hands behind that is noticed by [`copy`](Self::copy), which has to
    /// come before anything is believed.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn look_all(&self, ready: u32, room: &mut [u8], mut each: impl FnMut(Seen)) -> Result<(), V::Fault> {
        let ready = ready.min(self.layout.sub_buffers);
        let (freed, room) = room.split_at_mut(ready as usize);
        let (owners, described) = room.split_at_mut(ready as usize * DESCRIPTOR_BYTES as usize);
        let described = &mut described[..owners.len()];
        let at = self.layout.descriptor(0);
        self.view.copy(at, owners)?;
        self.view.fence();
        self.view.copy(self.layout.freed(0), freed)?;
        self.view.copy(at, described)?;
        self.view.fence();
        let pairs =
            owners.chunks_exact(DESCRIPTOR_BYTES as usize).zip(described.chunks_exact(DESCRIPTOR_BYTES as usize));
        for (number, ((first, then), freed)) in (0..).zip(pairs.zip(freed)) {
            let owner = Owner::of(word_in(first, descriptor::OWNER));
            let is_there = matches!(owner.state, OPEN | FULL) && !owner.is_free(*freed);
            if is_there && Owner::of(word_in(then, descriptor::OWNER)).generation == owner.generation {
                self.seen(number, owner, |word| word_in(then, word)).into_iter().for_each(&mut each);
            }
        }
        Ok(())
    }

    /// What words say of a sub-buffer whose owner was looked at before; `None`: nothing that can be.
    fn seen(&self, number: u32, owner: Owner, word: impl Fn(u64) -> u64) -> Option<Seen> {
        let (published, begin, thread) =
            (word(descriptor::PUBLISHED), word(descriptor::BEGIN), word(descriptor::THREAD));
        let mut name = [0; 16];
        name[..8].copy_from_slice(&word(descriptor::NAME).to_le_bytes());
        name[8..].copy_from_slice(&word(descriptor::NAME + 8).to_le_bytes());
        let bytes = (published >> 32) as u32;
        let is_possible = bytes <= self.layout.sub_buffer_bytes && u32::from(owner.lane) < self.layout.lanes;
        is_possible.then(|| Seen {
            sub_buffer: number,
            generation: owner.generation,
            lane: owner.lane,
            thread: Thread { tid: thread as u32, level: (thread >> 32) as u8, name },
            sequence: word(descriptor::SEQUENCE),
            begin,
            last: begin.wrapping_add((published as u32).wrapping_sub(begin as u32).into()),
            bytes,
            discarded: word(descriptor::DISCARDED),
            contexts: word(descriptor::CONTEXTS),
            is_full: owner.state == FULL,
        })
    }

    /// Copies what was seen, from a byte on. `false`: the program has overwritten it meanwhile, and what was copied is of no use.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn copy(&self, seen: &Seen, from: u32, into: &mut [u8]) -> Result<bool, V::Fault> {
        let from = from.min(seen.bytes);
        let length = ((seen.bytes - from) as usize).min(into.len());
        self.view.copy(self.layout.sub_buffer(seen.sub_buffer) + u64::from(from), &mut into[..length])?;
        self.view.fence();
        let owner = Owner::of(self.view.word(self.layout.descriptor(seen.sub_buffer))?);
        Ok(owner.generation == seen.generation)
    }

    /// Gives back a sub-buffer that is full, or whose thread is gone: anybody may have it now. Each is given back once.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn free(&self, seen: &Seen) -> Result<(), V::Fault> {
        let owner = Owner { generation: seen.generation, lane: seen.lane, state: FULL };
        self.view.set_byte(self.layout.freed(seen.sub_buffer), owner.mark())
    }

    /// Tells lanes that had no room that something was given back since; `epoch` is another number each time.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn freed(&self, epoch: u64) -> Result<(), V::Fault> {
        self.view.set_word(header::EPOCH, epoch)
    }

    /// What a lane has lost so far.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn losses(&self, lane: u16) -> Result<Losses, V::Fault> {
        let at = self.layout.lane(lane);
        let (discarded, cut) = (self.view.word(at + lane::DISCARDED)?, self.view.word(at + lane::CUT)?);
        Ok(Losses { discarded, cut })
    }

    /// Events that were lost where there was no lane.
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
