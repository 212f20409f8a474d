//! What a program does with its memory: lanes and sub-buffers are taken, events written and published.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bell::Rings;
use crate::identity::Identity;
use crate::layout::{
    DESCRIPTOR_BYTES, FULL, LANE_BYTES, Layout, MAGIC, OPEN, Owner, PAGE, POOL, TAKING, descriptor, header, lane,
};
use crate::memory::Memory;
use crate::sides::{Program, Thread};

/// A lane that somebody has.
const LIVE: u64 = 1;
/// One that nobody has any more.
const LEFT: u64 = 2;
/// How often a sub-buffer is looked for that others take too.
const TRIES: u32 = 8;
/// Sub-buffers that get memory at the same time.
const STEP: u64 = 8;

/// A lane, as the thread that has it knows it. The first six words are all that events need that go where the last one went; who writes
/// them on his own, as headers for C do, finds them at [`Lane::WORDS`] and does what [`Program::room_here`] and [`Program::publish`] do.
#[derive(Debug)]
#[repr(C)]
pub struct Lane {
    /// Where the next event goes, and where the sub-buffer ends; both 0: there is none.
    at: u64,
    end: u64,
    /// Ticks when it was taken.
    begin: u64,
    /// Where it begins, and where the word is that publishes.
    base: u64,
    published: u64,
    /// What events carry.
    contexts: u64,
    number: u16,
    generation: u32,
    thread: Thread,
    current: u32,
    /// Its generation.
    taken: u32,
    sequence: u64,
    /// The recorder's epoch and the pool's size when there was no room.
    full_at: Option<(u64, u64)>,
}

/// Where an event goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its first byte.
    pub at: u64,
    /// When it happens.
    pub ticks: u64,
    /// Behind its last one.
    pub end: u64,
}

impl Lane {
    /// Where the first words are: `at`, `end`, `begin`, `base`, `published`, `contexts`.
    pub const WORDS: [usize; 6] = [
        core::mem::offset_of!(Self, at),
        core::mem::offset_of!(Self, end),
        core::mem::offset_of!(Self, begin),
        core::mem::offset_of!(Self, base),
        core::mem::offset_of!(Self, published),
        core::mem::offset_of!(Self, contexts),
    ];

    /// What its events carry with them; it is the same for all of a sub-buffer.
    #[inline]
    #[must_use]
    pub fn contexts(&self) -> u64 {
        self.contexts
    }

    /// The thread is called so from the next sub-buffer on.
    pub fn rename(&mut self, name: [u8; 16]) {
        self.thread.name = name;
    }

    /// Who writes to it.
    #[must_use]
    pub fn thread(&self) -> Thread {
        self.thread
    }
}

impl<'m, M: Memory> Program<'m, M> {
    /// Begins; the memory is all zeros. Other processes see it once it is [shown](Self::show). `None`: there is no memory. What is there at
    /// first are the header, the first control bytes, what frees sub-buffers, and slots; all else gets memory when it is needed.
    pub fn begin(memory: &'m M, layout: Layout, identity: &Identity<'_>) -> Option<Self> {
        let frees_and_slots = layout.filters() - layout.freed(0);
        if !memory.reserve(0, 2 * PAGE) || !memory.reserve(layout.freed(0), frees_and_slots) {
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
        ];
        sizes.into_iter().for_each(|(at, value)| memory.store(at, value, Relaxed));
        identity.tell(memory);
        Some(Self { memory, layout })
    }

    /// Everything that recorders are to find from the first is there.
    pub fn show(&self) {
        self.memory.store(header::MAGIC, MAGIC, Release);
    }

    /// Switches an event, as a child of a process does in which it was switched.
    pub fn switch(&self, id: u16, to: u8) {
        self.memory.put(self.layout.control(id), &[to]);
    }

    /// Whether a lane has ever had a sub-buffer.
    #[must_use]
    pub fn has_recorded(&self) -> bool {
        self.memory.load(header::READY, Relaxed) > 0
    }

    /// An event was lost by somebody who has no lane.
    pub fn discard(&self) {
        self.memory.add(header::DISCARDED, 1);
    }

    /// A lane for a thread; `None`: all are taken.
    #[must_use]
    pub fn lane(&self, thread: Thread) -> Option<Lane> {
        for number in 0..self.layout.lanes as u16 {
            if !self.has_lane(number) {
                return None;
            }
            let at = self.layout.lane(number);
            let state = self.memory.load(at + lane::STATE, Relaxed);
            let (generation, is_live) = ((state >> 32) as u32, state & 3 == LIVE);
            let next = generation.wrapping_add(1);
            if is_live || !self.memory.exchange(at + lane::STATE, state, u64::from(next) << 32 | LIVE) {
                continue;
            }
            let sequence = self.memory.load(at + lane::SEQUENCE, Relaxed);
            self.memory.store(at + lane::THREAD, u64::from(thread.level) << 32 | u64::from(thread.tid), Relaxed);
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

    /// Whether there is memory for a lane; there is some for as many as fit into a page, each time.
    fn has_lane(&self, number: u16) -> bool {
        let ready = self.memory.load(header::LANES_READY, Relaxed);
        if u64::from(number) < ready {
            return true;
        }
        let has_memory = self.memory.reserve(self.layout.lane(number), LANE_BYTES);
        if has_memory {
            let more = (u64::from(number) + 1).next_multiple_of(PAGE / LANE_BYTES);
            // Somebody else may have been faster.
            self.memory.exchange(header::LANES_READY, ready, more);
        }
        has_memory
    }

    /// Gives a lane back. What was published stays until the recorder has it.
    pub fn leave(&self, mut lane: Lane) {
        self.close(&mut lane);
        let at = self.layout.lane(lane.number);
        self.memory.store(at + lane::STATE, u64::from(lane.generation) << 32 | LEFT, Release);
    }

    /// What events are to carry with them, now.
    #[inline]
    pub fn contexts(&self) -> u64 {
        self.memory.load(header::CONTEXTS, Relaxed)
    }

    /// What events carry before any recorder says so.
    pub fn carry(&self, contexts: u64) {
        self.memory.store(header::CONTEXTS, contexts, Relaxed);
    }

    /// Room for an event of so many bytes where the lane is, now; it is to be put there and then [published](Self::publish).
    #[inline]
    #[must_use]
    pub fn room_here(&self, lane: &Lane, bytes: u64, ticks: u64) -> Option<Slot> {
        // The low half of the ticks has to tell all of them.
        let has_room = lane.end - lane.at >= bytes && ticks.wrapping_sub(lane.begin) >> 32 == 0;
        has_room.then_some(Slot { at: lane.at, ticks, end: lane.at + bytes })
    }

    /// The same, in the next sub-buffer if it has to be, also because events there carry something else. `None`: the event is lost, and
    /// was counted. The clock is asked when there is room: times never step back in a lane.
    #[inline]
    pub fn room(&self, lane: &mut Lane, contexts: u64, bytes: u64, mut clock: impl FnMut() -> u64) -> Option<Slot> {
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

    /// Bytes of an event, in its room.
    #[inline]
    pub fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.put(at, bytes);
    }

    /// An event is there: the one store that others see it by. Who never comes to it, because the process ends or a handler
    /// jumps over it, has written nothing.
    #[inline]
    pub fn publish(&self, lane: &mut Lane, slot: Slot) {
        // First what only this thread sees: whoever is jumped out of in between publishes with the next event.
        lane.at = slot.end;
        self.memory.store(lane.published, (slot.end - lane.base) << 32 | slot.ticks & 0xffff_ffff, Release);
    }

    /// A text of an event had to be cut.
    pub fn cut(&self, lane: &Lane) {
        self.memory.add(self.layout.lane(lane.number) + lane::CUT, 1);
    }

    /// The next sub-buffer for an event of so many bytes; whether there is one.
    #[cold]
    fn turn(&self, lane: &mut Lane, bytes: u64, ticks: u64, contexts: u64) -> bool {
        if bytes > self.layout.sub_buffer_bytes.into() {
            return false;
        }
        let next = self.take(lane);
        if let Some(next) = next {
            self.close(lane);
            self.open(lane, next, ticks, contexts);
        }
        self.ring(Rings::ForAll);
        next.is_some()
    }

    /// A sub-buffer that was taken is the lane's current one.
    fn open(&self, lane: &mut Lane, next: (u32, u32), ticks: u64, contexts: u64) {
        let (number, generation) = next;
        let at = self.layout.descriptor(number);
        let store = |word, value| self.memory.store(at + word, value, Relaxed);
        let discarded = self.memory.load(self.layout.lane(lane.number) + lane::DISCARDED, Relaxed);
        let name = |half: usize| u64::from_le_bytes(core::array::from_fn(|byte| lane.thread.name[8 * half + byte]));
        store(descriptor::PUBLISHED, ticks & 0xffff_ffff);
        store(descriptor::SEQUENCE, lane.sequence);
        store(descriptor::BEGIN, ticks);
        store(descriptor::DISCARDED, discarded);
        store(descriptor::THREAD, u64::from(lane.thread.level) << 32 | u64::from(lane.thread.tid));
        store(descriptor::NAME, name(0));
        store(descriptor::NAME + 8, name(1));
        store(descriptor::CONTEXTS, contexts);
        self.memory.store(at, Owner { generation, lane: lane.number, state: OPEN }.word(), Release);
        lane.sequence += 1;
        self.memory.store(self.layout.lane(lane.number) + lane::SEQUENCE, lane.sequence, Relaxed);
        (lane.current, lane.taken, lane.begin, lane.contexts) = (number, generation, ticks, contexts);
        lane.base = self.layout.sub_buffer(number);
        lane.published = at + descriptor::PUBLISHED;
        (lane.at, lane.end) = (lane.base, lane.base + u64::from(self.layout.sub_buffer_bytes));
    }

    /// Nothing more comes into the lane's sub-buffer.
    fn close(&self, lane: &mut Lane) {
        if lane.end > 0 {
            let owner = Owner { generation: lane.taken, lane: lane.number, state: FULL };
            self.memory.store(self.layout.descriptor(lane.current), owner.word(), Release);
        }
    }

    /// Takes a sub-buffer: one that nobody has, or in overwrite mode one of the oldest.
    fn take(&self, lane: &mut Lane) -> Option<(u32, u32)> {
        let overwrites = self.memory.load(header::MODE, Relaxed) & 1 == 1;
        let limit = self.memory.load(header::LIMIT, Relaxed).max(1);
        // Before anything is looked at: what is freed meanwhile is looked at again.
        let full_at = (self.memory.load(header::EPOCH, Acquire), self.memory.load(header::READY, Relaxed));
        let is_limited = limit < self.layout.sub_buffers.into();
        if lane.full_at != Some(full_at) && (!is_limited || self.held(lane).0 < limit) {
            if let Some(found) = self.find(lane.number) {
                return Some(found);
            }
            lane.full_at = Some(full_at);
        }
        if overwrites { (0..TRIES).find_map(|_| self.recycle(lane, limit)) } else { None }
    }

    /// A sub-buffer that nobody has.
    fn find(&self, lane: u16) -> Option<(u32, u32)> {
        let all = self.memory.load(header::POOL, Relaxed).clamp(1, self.layout.sub_buffers.into());
        let mut begin = 0;
        loop {
            let ready = self.memory.load(header::READY, Acquire);
            let free = (begin..ready.min(all)).find_map(|number| self.claim(number as u32, lane));
            if free.is_some() || ready >= all {
                return free;
            }
            let more = (ready + STEP).min(all);
            let (at, described) = (self.layout.sub_buffer(ready as u32), self.layout.descriptor(ready as u32));
            let has_memory = self.memory.reserve(at, (more - ready) * u64::from(self.layout.sub_buffer_bytes))
                && self.memory.reserve(described, (more - ready) * DESCRIPTOR_BYTES);
            if !has_memory {
                return None;
            }
            // Somebody else may have been faster.
            self.memory.exchange(header::READY, ready, more);
            begin = ready;
        }
    }

    fn claim(&self, number: u32, lane: u16) -> Option<(u32, u32)> {
        let at = self.layout.descriptor(number);
        let word = self.memory.load(at, Relaxed);
        let owner = Owner::of(word);
        owner.is_free(self.memory.byte(self.layout.freed(number))).then(|| self.own(number, word, lane)).flatten()
    }

    /// Makes a sub-buffer the lane's if it is what it was. Nothing is written to it before everybody can see that it is another one.
    fn own(&self, number: u32, was: u64, lane: u16) -> Option<(u32, u32)> {
        let generation = Owner::of(was).generation.wrapping_add(1);
        let taking = Owner { generation, lane, state: TAKING };
        if !self.memory.exchange(self.layout.descriptor(number), was, taking.word()) {
            return None;
        }
        self.memory.clear(self.layout.freed(number));
        self.memory.fence(Release);
        Some((number, generation))
    }

    /// The oldest one of the lane's own, whatever it holds; or of all, while it has less than its share. `None`: another lane was
    /// faster, or there is none.
    fn recycle(&self, lane: &mut Lane, limit: u64) -> Option<(u32, u32)> {
        let (held, (_, number, generation)) = self.held(lane);
        if held < self.share().min(limit)
            && let Some((_, number, was)) = self.oldest()
        {
            return self.own(number, was, lane.number);
        }
        let generation = generation?;
        if lane.end > 0 && lane.current == number {
            // It has no other one. As soon as nothing more comes into it, the recorder may give it to anybody.
            self.close(lane);
            (lane.at, lane.end) = (0, 0);
        }
        let was = Owner { generation, lane: lane.number, state: FULL };
        self.own(number, was.word(), lane.number)
    }

    /// Sub-buffers that a lane may take from others: half of what each had if all had as many. Whoever has come late has room soon, and
    /// those who write all the time do not take it away from each other for ever.
    fn share(&self) -> u64 {
        let lanes = self.memory.load(header::LANES_READY, Relaxed).min(self.layout.lanes.into());
        let state = |number: u64| self.memory.load(self.layout.lane(number as u16) + lane::STATE, Relaxed);
        let live = (0..lanes).filter(|number| state(*number) & 3 == LIVE).count() as u64;
        let all = self.memory.load(header::POOL, Relaxed).min(self.memory.load(header::READY, Relaxed));
        (all / (2 * live.max(1))).max(1)
    }

    /// The full one that was taken first, of all lanes: when that was, which one it is, and what it says of its owner.
    fn oldest(&self) -> Option<(u64, u32, u64)> {
        let ready = self.memory.load(header::READY, Relaxed).min(self.layout.sub_buffers.into());
        let full = |number: u64| {
            let at = self.layout.descriptor(number as u32);
            let word = self.memory.load(at, Acquire);
            let is_full = Owner::of(word).state == FULL;
            is_full.then(|| (self.memory.load(at + descriptor::BEGIN, Relaxed), number as u32, word))
        };
        (0..ready).filter_map(full).min()
    }

    /// How many sub-buffers are the lane's, also those of threads that had it before; and the oldest one: its sequence number, which
    /// one it is, and its generation.
    fn held(&self, lane: &Lane) -> (u64, (u64, u32, Option<u32>)) {
        let ready = self.memory.load(header::READY, Relaxed).min(self.layout.sub_buffers.into());
        let its = |number: u64| {
            let at = self.layout.descriptor(number as u32);
            let owner = Owner::of(self.memory.load(at, Acquire));
            let is_its = owner.lane == lane.number
                && matches!(owner.state, OPEN | FULL)
                && !owner.is_free(self.memory.byte(self.layout.freed(number as u32)));
            let sequence = || self.memory.load(at + descriptor::SEQUENCE, Relaxed);
            is_its.then(|| (sequence(), number as u32, Some(owner.generation)))
        };
        (0..ready).filter_map(its).fold((0, (u64::MAX, 0, None)), |(held, oldest), found| (held + 1, oldest.min(found)))
    }
}
