//! The program's operations on its memory: it takes lanes and sub-buffers, and writes and publishes
//! events.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bell::Rings;
use crate::identity::Identity;
use crate::layout::{
    DESCRIPTOR_BYTES, FULL, LANE_BYTES, LEFT, LIVE, MAGIC, MemoryLayout, OPEN, PAGE, POOL, SubBufferOwner, TAKING,
    descriptor, header, lane, thread_word,
};
use crate::memory::ProgramMemory;
use crate::sides::{ProgramSide, WriterThread};

/// Maximum number of attempts to take a sub-buffer that other threads compete for. An event is
/// rather lost than made to wait for other threads without bound.
const TRIES: u32 = 8;
/// Numbers of sub-buffers that get memory at the same time, least and most: as many as there are
/// already. Each step costs a system call, and a program with few events should not hold the whole
/// pool, nor wait for the kernel to clear more than it needs. Two at first, because the second
/// thread of a program does not wait then.
const STEPS: [u64; 2] = [2, 8];

/// A lane, as its owning thread knows it. The first six words are all that the fast path needs, for
/// an event that goes to the same sub-buffer as the last one. Code that writes events without this
/// crate, like the C headers, finds them at [`Lane::WORDS`] and does what [`ProgramSide::room_here`]
/// and [`ProgramSide::publish`] do.
#[derive(Debug)]
#[repr(C)]
pub struct Lane {
    /// Place of the next event, and end of the sub-buffer; both 0: the lane has none.
    at: u64,
    end: u64,
    /// Timestamp, in ticks, when the lane took the sub-buffer.
    begin: u64,
    /// Place of the sub-buffer's first byte, and of the word that publishes events.
    base: u64,
    published: u64,
    /// Contexts that its events carry.
    contexts: u64,
    number: u16,
    generation: u32,
    thread: WriterThread,
    current: u32,
    /// Generation of the current sub-buffer.
    taken: u32,
    sequence: u64,
    /// The recorder's epoch and the pool's size when the lane last found no room.
    full_at: Option<(u64, u64)>,
}

/// Reserved room for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Place of its first byte.
    pub at: u64,
    /// Its timestamp in ticks.
    pub ticks: u64,
    /// Place after its last byte.
    pub end: u64,
}

impl Lane {
    /// Offsets of the first words: `at`, `end`, `begin`, `base`, `published`, `contexts`.
    pub const WORDS: [usize; 6] = [
        core::mem::offset_of!(Self, at),
        core::mem::offset_of!(Self, end),
        core::mem::offset_of!(Self, begin),
        core::mem::offset_of!(Self, base),
        core::mem::offset_of!(Self, published),
        core::mem::offset_of!(Self, contexts),
    ];

    /// Contexts that its events carry; all events of a sub-buffer carry the same.
    #[inline]
    #[must_use]
    pub fn contexts(&self) -> u64 {
        self.contexts
    }

    /// Sets the thread name that the next sub-buffers record.
    pub fn rename(&mut self, name: [u8; 16]) {
        self.thread.name = name;
    }

    /// The thread that owns the lane.
    #[must_use]
    pub fn thread(&self) -> WriterThread {
        self.thread
    }
}

impl<'m, M: ProgramMemory> ProgramSide<'m, M> {
    /// Initializes memory that is all zeros. Recorders see it once [`show`](Self::show) was called.
    /// `None`: there is no memory. Initially only the header, the first control bytes, the free
    /// marks and the slots have memory; the other regions get memory when they need it.
    pub fn begin(memory: &'m M, layout: MemoryLayout, identity: &Identity<'_>) -> Option<Self> {
        let frees_and_slots = layout.filters() - layout.freed(0);
        // Of triggers, the words that judgements read.
        let has_room = memory.reserve(layout.triggers(), PAGE);
        if !has_room || !memory.reserve(0, 2 * PAGE) || !memory.reserve(layout.freed(0), frees_and_slots) {
            return None;
        }
        let sizes = [
            (header::ABI, crate::layout::ABI),
            (header::EVENTS, layout.events.into()),
            (header::LANES, layout.lanes.into()),
            (header::SUB_BUFFERS, layout.sub_buffers.into()),
            (header::SUB_BUFFER_BYTES, layout.sub_buffer_bytes.into()),
            (header::REGISTRY_BYTES, layout.registry_bytes.into()),
            (header::FILTER_BYTES, layout.filter_bytes.into()),
            (header::LIMIT, layout.sub_buffers.into()),
            (header::POOL, POOL.into()),
            (header::TRIGGERS, layout.triggers()),
            (header::TELLS, 1),
            (header::RULES, layout.rule(0)),
            (header::OBJECTS, layout.object_bytes.into()),
        ];
        sizes.into_iter().for_each(|(at, value)| memory.store(at, value, Relaxed));
        identity.tell(memory);
        Some(Self { memory, layout })
    }

    /// Publishes the memory: all data that a recorder needs at first is written.
    pub fn show(&self) {
        self.memory.store(header::MAGIC, MAGIC, Release);
    }

    /// Sets the control byte of an event, as a child process does for events that its parent had
    /// switched.
    pub fn switch(&self, id: u16, to: u8) {
        self.memory.put(self.layout.control(id), &[to]);
    }

    /// Whether any lane has ever taken a sub-buffer.
    #[must_use]
    pub fn has_recorded(&self) -> bool {
        self.memory.load(header::READY, Relaxed) > 0
    }

    /// Counts a lost event of a thread without a lane.
    pub fn discard(&self) {
        self.memory.add(header::DISCARDED, 1);
    }

    /// Takes a lane for a thread; `None`: all lanes are taken.
    #[must_use]
    pub fn lane(&self, thread: WriterThread) -> Option<Lane> {
        for number in 0..self.layout.lanes as u16 {
            if !self.has_lane(number) {
                return None;
            }
            let at = self.layout.lane(number);
            let state = self.memory.load(at + lane::STATE, Relaxed);
            let (generation, is_live) = ((state >> 32) as u32, state & 3 == LIVE);
            let next = generation.wrapping_add(1);
            // The generation is in the word, so the exchange fails if another thread has taken the
            // lane and given it back in between.
            if is_live || !self.memory.compare_exchange(at + lane::STATE, state, u64::from(next) << 32 | LIVE) {
                continue;
            }
            // The sequence goes on after the lane's last owner. The recorder knows sub-buffers by
            // lane and sequence, whichever thread wrote them.
            let sequence = self.memory.load(at + lane::SEQUENCE, Relaxed);
            self.memory.store(at + lane::THREAD, thread_word(next, thread.level, thread.tid), Relaxed);
            return Some(Lane {
                at: 0,
                end: 0,
                begin: 0,
                base: 0,
                published: 0,
                contexts: 0,
                number,
                generation: next,
                thread,
                current: 0,
                taken: 0,
                sequence,
                full_at: None,
            });
        }
        None
    }

    /// Ensures that a lane has memory. Lanes get memory one page at a time.
    fn has_lane(&self, number: u16) -> bool {
        let ready = self.memory.load(header::LANES_READY, Relaxed);
        if u64::from(number) < ready {
            return true;
        }
        let has_memory = self.memory.reserve(self.layout.lane(number), LANE_BYTES);
        if has_memory {
            let more = (u64::from(number) + 1).next_multiple_of(PAGE / LANE_BYTES);
            // If this exchange fails, another thread has already raised the number.
            self.memory.compare_exchange(header::LANES_READY, ready, more);
        }
        has_memory
    }

    /// Gives a lane back. Its published events stay until the recorder has copied them.
    pub fn leave(&self, mut lane: Lane) {
        // First, so that the next owner of the lane never meets an open sub-buffer of this one.
        self.close(&mut lane);
        let at = self.layout.lane(lane.number);
        self.memory.store(at + lane::STATE, u64::from(lane.generation) << 32 | LEFT, Release);
    }

    /// Contexts that the recorder currently wants.
    #[inline]
    pub fn contexts(&self) -> u64 {
        self.memory.load(header::CONTEXTS, Relaxed)
    }

    /// Sets the contexts that events carry until a recorder sets others.
    pub fn carry(&self, contexts: u64) {
        self.memory.store(header::CONTEXTS, contexts, Relaxed);
    }

    /// Sets the size of the pool until a recorder sets another one.
    pub fn limit_pool(&self, bytes: u64) {
        let subs = bytes.div_ceil(self.layout.sub_buffer_bytes.into()).clamp(1, self.layout.sub_buffers.into());
        self.memory.store(header::POOL, subs, Relaxed);
    }

    /// Reserves room for an event of `bytes` bytes in the lane's current sub-buffer. Write the
    /// event there, then [publish](Self::publish) it.
    #[inline]
    #[must_use]
    pub fn room_here(&self, lane: &Lane, bytes: u64, ticks: u64) -> Option<Reservation> {
        // `published` holds only the low half of the ticks, so a sub-buffer must not span 2^32 of
        // them.
        let has_room = lane.end - lane.at >= bytes && ticks.wrapping_sub(lane.begin) >> 32 == 0;
        has_room.then_some(Reservation { at: lane.at, ticks, end: lane.at + bytes })
    }

    /// Like [`room_here`](Self::room_here), but turns to the next sub-buffer if necessary, also if
    /// the events there carry other contexts. `None`: the event is lost and counted. The clock is
    /// read again after each turn, because timestamps must never decrease in a lane.
    #[inline]
    pub fn room(
        &self,
        lane: &mut Lane,
        contexts: u64,
        bytes: u64,
        mut clock: impl FnMut() -> u64,
    ) -> Option<Reservation> {
        loop {
            let ticks = clock();
            let room = self.room_here(lane, bytes, ticks);
            if room.is_some() && lane.contexts == contexts {
                return room;
            }
            if !self.turn(lane, bytes, ticks, contexts) {
                self.memory.add(self.layout.lane(lane.number) + lane::DISCARDED, 1);
                return None;
            }
        }
    }

    /// Writes bytes of an event into its reserved room.
    #[inline]
    pub fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.put(at, bytes);
    }

    /// Publishes an event with one store (release), by which other processes see it. An event that
    /// is never published, because the process ends or a handler jumps out of the write, has no
    /// effect.
    #[inline]
    pub fn publish(&self, lane: &mut Lane, slot: Reservation) {
        // First the word that only this thread sees: if a handler jumps out between the two stores,
        // the event is published together with the next one.
        lane.at = slot.end;
        self.memory.store(lane.published, (slot.end - lane.base) << 32 | slot.ticks & 0xffff_ffff, Release);
    }

    /// Counts a truncated text.
    pub fn cut(&self, lane: &Lane) {
        self.memory.add(self.layout.lane(lane.number) + lane::CUT, 1);
    }

    /// Turns to the next sub-buffer, for an event of `bytes` bytes. Returns whether there is one.
    #[cold]
    fn turn(&self, lane: &mut Lane, bytes: u64, ticks: u64, contexts: u64) -> bool {
        // No sub-buffer has room for it. Without this test `room` would turn for ever.
        if bytes > self.layout.sub_buffer_bytes.into() {
            return false;
        }
        // The next one is taken before the current one is closed. If there is none, the lane keeps
        // the rest of its sub-buffer, which smaller events still fit into.
        let next = self.take(lane);
        if let Some(next) = next {
            self.close(lane);
            self.open(lane, next, ticks, contexts);
        }
        // Also if there is none: the recorder has to make room.
        self.ring(Rings::ForAll);
        next.is_some()
    }

    /// Makes a sub-buffer that was taken the lane's current one.
    fn open(&self, lane: &mut Lane, next: (u32, u32), ticks: u64, contexts: u64) {
        let (number, generation) = next;
        let at = self.layout.descriptor(number);
        let store = |word, value| self.memory.store(at + word, value, Relaxed);
        let discarded = self.memory.load(self.layout.lane(lane.number) + lane::DISCARDED, Relaxed);
        let name = |half: usize| u64::from_le_bytes(core::array::from_fn(|byte| lane.thread.name[8 * half + byte]));
        // Relaxed: the store of the owner below (release) publishes all of them. Before it the
        // state is *taking*, and no recorder reads the descriptor of such a sub-buffer.
        store(descriptor::PUBLISHED, ticks & 0xffff_ffff);
        store(descriptor::SEQUENCE, lane.sequence);
        store(descriptor::BEGIN, ticks);
        store(descriptor::DISCARDED, discarded);
        store(descriptor::THREAD, u64::from(lane.thread.level) << 32 | u64::from(lane.thread.tid));
        store(descriptor::NAME, name(0));
        store(descriptor::NAME + 8, name(1));
        store(descriptor::CONTEXTS, contexts);
        self.memory.store(at, SubBufferOwner { generation, lane: lane.number, state: OPEN }.word(), Release);
        lane.sequence += 1;
        self.memory.store(self.layout.lane(lane.number) + lane::SEQUENCE, lane.sequence, Relaxed);
        (lane.current, lane.taken, lane.begin, lane.contexts) = (number, generation, ticks, contexts);
        lane.base = self.layout.sub_buffer(number);
        lane.published = at + descriptor::PUBLISHED;
        (lane.at, lane.end) = (lane.base, lane.base + u64::from(self.layout.sub_buffer_bytes));
    }

    /// Closes the lane's current sub-buffer.
    fn close(&self, lane: &mut Lane) {
        if lane.end > 0 {
            // Release: a recorder that sees *full* also sees the last `published`, which is final
            // then.
            let owner = SubBufferOwner { generation: lane.taken, lane: lane.number, state: FULL };
            self.memory.store(self.layout.descriptor(lane.current), owner.word(), Release);
        }
    }

    /// Takes a free sub-buffer or, in overwrite mode, one of the oldest.
    fn take(&self, lane: &mut Lane) -> Option<(u32, u32)> {
        let overwrites = self.memory.load(header::MODE, Relaxed) & 1 == 1;
        let limit = self.memory.load(header::LIMIT, Relaxed).max(1);
        // Read before the search: if the recorder frees a sub-buffer during the search, the epoch
        // differs and the lane searches again.
        let full_at = (self.memory.load(header::EPOCH, Acquire), self.memory.load(header::READY, Relaxed));
        // Counting reads the descriptors of the whole pool, so a lane counts only if a limit can
        // apply.
        let is_limited = limit < self.layout.sub_buffers.into();
        if lane.full_at != Some(full_at) && (!is_limited || self.held(lane).0 < limit) {
            if let Some(found) = self.find(lane.number) {
                return Some(found);
            }
            // Until the recorder frees something or the pool grows, each further event is lost at
            // once, and does not search the pool again.
            lane.full_at = Some(full_at);
        }
        if overwrites { (0..TRIES).find_map(|_| self.recycle(lane, limit)) } else { None }
    }

    /// Searches the pool for a free sub-buffer and takes it.
    fn find(&self, lane: u16) -> Option<(u32, u32)> {
        let all = self.memory.load(header::POOL, Relaxed).clamp(1, self.layout.sub_buffers.into());
        let mut begin = 0;
        loop {
            let ready = self.memory.load(header::READY, Acquire);
            let free = (begin..ready.min(all)).find_map(|number| self.claim(number as u32, lane));
            if free.is_some() || ready >= all {
                return free;
            }
            let more = (ready + ready.clamp(STEPS[0], STEPS[1])).min(all);
            let (at, described) = (self.layout.sub_buffer(ready as u32), self.layout.descriptor(ready as u32));
            // A write to a page of a full file system would kill the program, so pages get memory
            // first.
            let has_memory = self.memory.reserve(at, (more - ready) * u64::from(self.layout.sub_buffer_bytes))
                && self.memory.reserve(described, (more - ready) * DESCRIPTOR_BYTES);
            if !has_memory {
                return None;
            }
            // If this exchange fails, another thread has already raised the number.
            self.memory.compare_exchange(header::READY, ready, more);
            begin = ready;
        }
    }

    fn claim(&self, number: u32, lane: u16) -> Option<(u32, u32)> {
        let at = self.layout.descriptor(number);
        // Relaxed: the exchange in `own` compares this word, and has acquire ordering.
        let word = self.memory.load(at, Relaxed);
        let owner = SubBufferOwner::of(word);
        owner.is_free(self.memory.byte(self.layout.freed(number))).then(|| self.own(number, word, lane)).flatten()
    }

    /// Takes a sub-buffer by compare-and-swap, if its owner is still `was`. The fence after it
    /// makes the new owner visible before any write to the sub-buffer, so that a recorder that
    /// copies a new byte also sees the new generation.
    fn own(&self, number: u32, was: u64, lane: u16) -> Option<(u32, u32)> {
        let generation = SubBufferOwner::of(was).generation.wrapping_add(1);
        let taking = SubBufferOwner { generation, lane, state: TAKING };
        if !self.memory.compare_exchange(self.layout.descriptor(number), was, taking.word()) {
            return None;
        }
        // A mark that stays would match again 255 generations later. In state *taking* no lane
        // looks at the mark, so it cannot be mistaken before it is cleared.
        self.memory.clear(self.layout.freed(number));
        self.memory.fence(Release);
        Some((number, generation))
    }

    /// Takes the lane's own oldest sub-buffer, even if the recorder has not copied it; or, while
    /// the lane has less than its share, the oldest of all lanes. `None`: another lane was faster,
    /// or there is none.
    fn recycle(&self, lane: &mut Lane, limit: u64) -> Option<(u32, u32)> {
        let (held, (_, number, owner)) = self.held(lane);
        if held < self.share().min(limit)
            && let Some((_, number, was)) = self.oldest()
        {
            // Only full sub-buffers: the open one of another lane has a writer.
            return self.own(number, was, lane.number);
        }
        let mut owner = owner?;
        if lane.end > 0 && lane.current == number {
            // It is the lane's only sub-buffer. Once it is closed, the recorder may free it for any
            // lane.
            self.close(lane);
            (lane.at, lane.end) = (0, 0);
            owner.state = FULL;
        }
        // It may be open and not the current one: an earlier thread on this lane ended without
        // closing it. No thread writes to it any more, because a lane has one thread at a time.
        // The exchange fails if the recorder has freed it and another lane has taken it meanwhile.
        self.own(number, owner.word(), lane.number)
    }

    /// Number of sub-buffers up to which a lane may take those of other lanes: half of an equal
    /// share. So a lane that starts late soon has room, and busy lanes do not take sub-buffers from
    /// each other forever.
    fn share(&self) -> u64 {
        let lanes = self.memory.load(header::LANES_READY, Relaxed).min(self.layout.lanes.into());
        let state = |number: u64| self.memory.load(self.layout.lane(number as u16) + lane::STATE, Relaxed);
        let live = (0..lanes).filter(|number| state(*number) & 3 == LIVE).count() as u64;
        let all = self.memory.load(header::POOL, Relaxed).min(self.memory.load(header::READY, Relaxed));
        (all / (2 * live.max(1))).max(1)
    }

    /// The oldest full sub-buffer of all lanes: its begin, its number, and its owner word.
    fn oldest(&self) -> Option<(u64, u32, u64)> {
        let ready = self.memory.load(header::READY, Relaxed).min(self.layout.sub_buffers.into());
        let full = |number: u64| {
            let at = self.layout.descriptor(number as u32);
            let word = self.memory.load(at, Acquire);
            let is_full = SubBufferOwner::of(word).state == FULL;
            // Read after the owner (acquire). If the sub-buffer changes hands now, this is the
            // begin of another one; the exchange in `own` then fails.
            is_full.then(|| (self.memory.load(at + descriptor::BEGIN, Relaxed), number as u32, word))
        };
        (0..ready).filter_map(full).min()
    }

    /// Number of sub-buffers that the lane owns, including those of earlier threads on it; and its
    /// oldest one: sequence number, number, and owner.
    fn held(&self, lane: &Lane) -> (u64, (u64, u32, Option<SubBufferOwner>)) {
        let ready = self.memory.load(header::READY, Relaxed).min(self.layout.sub_buffers.into());
        let its = |number: u64| {
            let at = self.layout.descriptor(number as u32);
            let owner = SubBufferOwner::of(self.memory.load(at, Acquire));
            let is_its = owner.lane == lane.number
                && matches!(owner.state, OPEN | FULL)
                && !owner.is_free(self.memory.byte(self.layout.freed(number as u32)));
            let sequence = || self.memory.load(at + descriptor::SEQUENCE, Relaxed);
            is_its.then(|| (sequence(), number as u32, Some(owner)))
        };
        let earlier = |one: (u64, u32, Option<SubBufferOwner>), other: (u64, u32, Option<SubBufferOwner>)| {
            if (other.0, other.1) < (one.0, one.1) { other } else { one }
        };
        let none = (u64::MAX, 0, None);
        (0..ready).filter_map(its).fold((0, none), |(held, oldest), found| (held + 1, earlier(oldest, found)))
    }
}
