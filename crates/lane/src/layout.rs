//! The layout of the shared memory.
//!
//! ```text
//! header │ control bytes │ lanes │ descriptors │ freed │ slots │ filters  │ registry    │ pool of sub-buffers │ triggers        │ rules          │ objects
//! 4 KiB    one an event    64 B    128 B each    1 B     32 B    bytecode   definitions   (grows)                 states, images     limits, counts   maps
//! ```
//!
//! All numbers are little-endian 8-byte words at multiples of 8, so that a reader that copies them
//! word by word gets each of them whole.

use crate::memory::MemoryView;

/// `kymoLANE`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"kymoLANE");
/// Version of this layout.
pub const ABI: u64 = 2;

/// Regions begin at multiples of this size.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of a lane's entry.
pub(crate) const LANE_BYTES: u64 = 64;
/// Bytes of a sub-buffer's descriptor: two cache lines, so that neighbors do not share one.
pub(crate) const DESCRIPTOR_BYTES: u64 = 128;

/// Words of the header.
pub(crate) mod header {
    /// [`super::MAGIC`]; written last.
    pub(crate) const MAGIC: u64 = 0;
    /// [`super::ABI`].
    pub(crate) const ABI: u64 = 8;
    /// Numbers of control bytes, lanes and sub-buffers; bytes of a sub-buffer and of the registry.
    pub(crate) const EVENTS: u64 = 16;
    pub(crate) const LANES: u64 = 24;
    pub(crate) const SUB_BUFFERS: u64 = 32;
    pub(crate) const SUB_BUFFER_BYTES: u64 = 40;
    pub(crate) const REGISTRY_BYTES: u64 = 48;
    /// Process ID as the process sees it, and its start time in system clock ticks since boot.
    pub(crate) const PID: u64 = 56;
    pub(crate) const STARTED: u64 = 64;
    /// Bytes for the bytecode of filters.
    pub(crate) const FILTER_BYTES: u64 = 72;
    /// Clock of the event timestamps.
    pub(crate) const CLOCK: u64 = 80;
    /// PID namespace of the process ID.
    pub(crate) const PID_NAMESPACE: u64 = 88;
    /// Memory for machine code: its inode; its address, or the reason why there is none;
    /// `machine << 32 | bytes`; its descriptor plus one, 0 without an arena.
    pub(crate) const ARENA_INODE: u64 = 96;
    pub(crate) const ARENA_ADDRESS: u64 = 104;
    pub(crate) const ARENA_BYTES: u64 = 112;
    pub(crate) const ARENA_DESCRIPTOR: u64 = 120;
    /// Effective user ID.
    pub(crate) const USER: u64 = 128;
    /// Length of the executable's path.
    pub(crate) const PATH_BYTES: u64 = 136;
    /// Process name: 16 bytes.
    pub(crate) const NAME: u64 = 144;
    /// Bytes of the registry that are taken, and number of IDs that are assigned.
    pub(crate) const REGISTRY_TAKEN: u64 = 256;
    pub(crate) const IDS: u64 = 264;
    /// Number of sub-buffers that have memory.
    pub(crate) const READY: u64 = 272;
    /// Number of events lost by threads without a lane.
    pub(crate) const DISCARDED: u64 = 280;
    /// Number of lanes, and bytes of the registry, that have memory.
    pub(crate) const LANES_READY: u64 = 288;
    pub(crate) const REGISTRY_READY: u64 = 296;
    /// Device and inode of the file behind the program's bell. Inode 0: no bell.
    pub(crate) const BELL_DEVICE: u64 = 304;
    pub(crate) const BELL_INODE: u64 = 312;
    /// Not 0: there was no room for the definition of an event or context.
    pub(crate) const IS_FULL: u64 = 320;
    /// Ticks when the program began; 0: unknown. Numbers of the published selections that it read
    /// then: of its user's recorder, and of root's; 0: none.
    pub(crate) const BEGAN: u64 = 328;
    pub(crate) const BEGAN_WITH: u64 = 336;
    pub(crate) const BEGAN_WITH_ROOTS: u64 = 344;
    /// Offset of the triggers' region; 0: the program is older than triggers.
    pub(crate) const TRIGGERS: u64 = 352;
    /// Addresses for machine code of judgements: of the function that judges, and of the byte `STOPPED`; 0: none.
    pub(crate) const JUDGE: u64 = 360;
    pub(crate) const JUDGE_STOPPED: u64 = 368;
    /// Offset of the rules' region; 0: the program is older than rules.
    pub(crate) const RULES: u64 = 376;
    /// Bytes of the region of users' objects, which is behind all others; 0: there is none.
    pub(crate) const OBJECTS: u64 = 384;
    /// Addresses of the functions for machine code of users' programs; 0: none.
    pub(crate) const OBJECT_FUNCTIONS: [u64; 4] = [392, 400, 408, 416];
    /// Not 0: triggers may [tell](crate::TriggerAction::Tell).
    pub(crate) const TELLS: u64 = 424;
    /// Written by the recorder: the epoch, which changes when sub-buffers were freed; the behavior
    /// of a lane without room; the maximum number of sub-buffers of a lane; the contexts that
    /// events carry; the maximum number of sub-buffers of all lanes.
    pub(crate) const EPOCH: u64 = 512;
    pub(crate) const MODE: u64 = 520;
    pub(crate) const LIMIT: u64 = 528;
    pub(crate) const CONTEXTS: u64 = 536;
    pub(crate) const POOL: u64 = 544;
    /// Written by the recorder when it sleeps: the events that it wants to be woken for. The thread
    /// that rings resets it to 0.
    pub(crate) const ASLEEP: u64 = 552;
    /// Numbers of the published selections that apply to events that the program defines now, of its
    /// user's recorder and of root's: first those that it read, then as each recorder says; 0: none.
    pub(crate) const APPLIES: [u64; 2] = [560, 568];
    /// A byte: groups of sessions that do not record, as the control bytes are drawn.
    pub(crate) const STOPPED: u64 = 576;
    /// Written by the recorder: number of IDs whose events it has switched as its sessions want them.
    pub(crate) const SETTLED: u64 = 584;
    /// Written by the recorder: bytes of the arena that have had code.
    pub(crate) const ARENA_USED: u64 = 592;
    /// Path of the executable.
    pub(crate) const PATH: u64 = 1024;
    pub(crate) const PATH_BYTES_MAX: u64 = 3072;
}

/// Offset of the number of sub-buffers that have memory; 0 means that nothing was ever recorded.
pub const READY_AT: u64 = header::READY;
/// Offset of the contexts that events carry, for code that reads them without this crate.
pub const CONTEXTS_AT: u64 = header::CONTEXTS;
/// Offset of the byte with the groups that do not record, for machine code of judgements.
pub const STOPPED_AT: u64 = header::STOPPED;

/// Words of a lane's entry.
pub(crate) mod lane {
    /// `generation << 32 | state`.
    pub(crate) const STATE: u64 = 0;
    /// Number of events that the lane has lost since it exists.
    pub(crate) const DISCARDED: u64 = 8;
    /// Number of texts that it truncated.
    pub(crate) const CUT: u64 = 16;
    /// Number of sub-buffers that it has taken.
    pub(crate) const SEQUENCE: u64 = 24;
    /// `generation << 40 | level << 32 | thread` of its owner: [`thread_word`](super::thread_word).
    pub(crate) const THREAD: u64 = 32;
}

/// Words that describe a sub-buffer.
pub(crate) mod descriptor {
    /// `generation << 32 | lane << 16 | state`.
    pub(crate) const OWNER: u64 = 0;
    /// `bytes << 32 | low half of the last event's ticks`.
    pub(crate) const PUBLISHED: u64 = 8;
    /// Number of sub-buffers that the lane had taken before.
    pub(crate) const SEQUENCE: u64 = 16;
    /// Timestamp, in ticks, when the lane took it.
    pub(crate) const BEGIN: u64 = 24;
    /// Number of events that the lane had lost then.
    pub(crate) const DISCARDED: u64 = 32;
    /// `level << 32 | thread`.
    pub(crate) const THREAD: u64 = 40;
    /// The thread's name, 16 bytes.
    pub(crate) const NAME: u64 = 48;
    /// Contexts that its events carry.
    pub(crate) const CONTEXTS: u64 = 64;
}

/// Places within the region of triggers.
pub(crate) mod triggers {
    /// Written by the recorder: `changes << 32 | number << 8 | bits`, groups of sessions that record. There are two
    /// words, and the low byte of the number says which of them counts: the other one may be half
    /// written.
    pub(crate) const BASES: [u64; 2] = [0, 48];
    pub(crate) const BASE: u64 = 56;
    /// `changes << 32 | number of the base << 8 | bits`: the groups after the program's last change. Each
    /// change is a firing.
    pub(crate) const GROUPS: u64 = 8;
    /// Number of firings that have begun, and of those that are over.
    pub(crate) const BEGUN: u64 = 16;
    pub(crate) const DONE: u64 = 24;
    /// Written by the recorder: number of events that the images cover.
    pub(crate) const IMAGE_EVENTS: u64 = 32;
    /// Number of events whose images have memory, plus 1.
    pub(crate) const RESERVED: u64 = 40;
    /// States of triggers.
    pub(crate) const STATES: u64 = 64;
    pub(crate) const STATE_BYTES: u64 = 64;
    /// Number of events that had a judgement and were recorded without it.
    pub(crate) const UNJUDGED: u64 = STATES + super::TRIGGERS_MAX as u64 * STATE_BYTES;
    /// Firings: a ring.
    pub(crate) const FIRINGS: u64 = 4096;
    pub(crate) const FIRING_BYTES: u64 = 32;
    pub(crate) const FIRINGS_MAX: u64 = 256;
    /// Images of the control bytes: of the sessions that no trigger controls, then of each group.
    pub(crate) const IMAGES: u64 = FIRINGS + FIRING_BYTES * FIRINGS_MAX;
}

/// Words of a trigger's state.
pub(crate) mod trigger {
    /// Written by the recorder: `epoch << 8 | flags`.
    pub(crate) const ARMED: u64 = 0;
    /// Epoch in which it last fired.
    pub(crate) const FIRED: u64 = 8;
    /// Ticks of its last firing.
    pub(crate) const LAST: u64 = 16;
    /// Written by the recorder: least number of ticks between two firings.
    pub(crate) const INTERVAL: u64 = 24;
    /// Firings that came too early.
    pub(crate) const SUPPRESSED: u64 = 32;
    /// Written by the recorder: `count << 32 | groups << 8 | action`.
    pub(crate) const ACTION: u64 = 40;
    /// Written by the recorder: matches that the program has not counted, because it did not judge them yet.
    pub(crate) const BEFORE: u64 = 48;
    /// Matches of a trigger that fires after several of them.
    pub(crate) const COUNTED: u64 = 56;
}

/// Places within the part of a rule.
pub(crate) mod rule {
    /// Bytes of the part.
    pub(crate) const BYTES: u64 = 16384;
    /// Written by the recorder: the limit, in ticks or events; 0: the program's own.
    pub(crate) const LIMIT: u64 = 0;
    /// Written by the recorder: ticks of a window.
    pub(crate) const WINDOW: u64 = 8;
    /// Running limit and number of its events, without kinds.
    pub(crate) const RUNNING: u64 = 16;
    /// Written by the recorder: epoch of the rule; 0: none.
    pub(crate) const EPOCH: u64 = 32;
    /// Limits that the recorder has set for kinds: hash of the kind, and limit. A hash of 0 ends the list.
    pub(crate) const SET: u64 = 1024;
    pub(crate) const SET_BYTES: u64 = 16;
    /// Kinds: hash, running limit and number of its events, and the name.
    pub(crate) const KINDS: u64 = 4096;
    pub(crate) const KIND_BYTES: u64 = 64;
    pub(crate) const KIND_NAME: u64 = 24;
    /// Counts: one line for each of several threads, the last one for all others.
    pub(crate) const COUNTS: u64 = 8192;
    pub(crate) const COUNTS_BYTES: u64 = 64;
    pub(crate) const COUNTS_MAX: u64 = super::LINES_MAX as u64 + 1;
}

/// Words of a filter's slot.
pub(crate) mod slot {
    /// Location of the filter, written by the recorder; 0: not assigned.
    pub(crate) const SAID: u64 = 0;
    /// How the program runs the filter.
    pub(crate) const DONE: u64 = 8;
}

/// Number of values of a control byte: off, on, and filters.
pub(crate) const SLOTS: u64 = 256;
pub(crate) const SLOT_BYTES: u64 = 32;

/// Sizes of all regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Control bytes: the maximum number of events of a program.
    pub events: u32,
    /// Number of lanes.
    pub lanes: u32,
    /// Number of sub-buffers in the pool.
    pub sub_buffers: u32,
    /// Bytes of each sub-buffer.
    pub sub_buffer_bytes: u32,
    /// Bytes for definitions.
    pub registry_bytes: u32,
    /// Bytes for filters.
    pub filter_bytes: u32,
    /// Bytes for the maps of users' objects; 0: there can be none.
    pub object_bytes: u32,
}

/// 65,536 events, 4,096 lanes, 4 MiB of definitions, 256 KiB of filters, 16 MiB of objects, and 128 MiB in sub-buffers
/// of 32 KiB. These are upper limits; the recorder sets how much of the pool is used.
impl Default for MemoryLayout {
    fn default() -> Self {
        Self {
            events: 1 << 16,
            lanes: 4096,
            sub_buffers: 4096,
            sub_buffer_bytes: 32 << 10,
            registry_bytes: 4 << 20,
            filter_bytes: 256 << 10,
            object_bytes: OBJECTS_BYTES as u32,
        }
    }
}

/// Number of sub-buffers that a program's lanes may have before a recorder sets a limit: 16 MiB.
pub(crate) const POOL: u32 = 512;
/// Maximum bytes of all sub-buffers of a program: the recorder takes them all in one round.
const POOL_BYTES_MAX: u64 = 1 << 30;

/// Reason why memory is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutRefusal {
    /// It does not begin like a program's memory, or does not yet.
    NoProgram,
    /// It has another version.
    Version(u64),
    /// It has an impossible size.
    Size {
        /// Name of the quantity.
        what: &'static str,
        /// Value found.
        found: u64,
        /// Maximum value.
        most: u64,
    },
}

impl MemoryLayout {
    /// Reads and validates the sizes that another process wrote; the memory has `bytes` bytes.
    ///
    /// # Errors
    ///
    /// The memory cannot be read. The inner result is [`LayoutRefusal`] if the sizes are impossible.
    pub fn read<V: MemoryView>(view: &V, bytes: u64) -> Result<Result<Self, LayoutRefusal>, V::Fault> {
        if bytes < PAGE || view.word(header::MAGIC)? != MAGIC {
            return Ok(Err(LayoutRefusal::NoProgram));
        }
        let version = view.word(header::ABI)?;
        if version != ABI {
            return Ok(Err(LayoutRefusal::Version(version)));
        }
        // These limits bound the recorder's own memory: it allocates 257 bytes for each sub-buffer,
        // and room for the definitions.
        let sizes = [
            ("control bytes", header::EVENTS, 1 << 16),
            ("lanes", header::LANES, u16::MAX.into()),
            ("sub-buffers", header::SUB_BUFFERS, 1 << 16),
            ("bytes of a sub-buffer", header::SUB_BUFFER_BYTES, 1 << 20),
            ("bytes of the registry", header::REGISTRY_BYTES, 4 << 20),
            ("bytes for filters", header::FILTER_BYTES, 16 << 20),
        ];
        let mut found = [0; 6];
        for ((what, at, most), to) in sizes.into_iter().zip(&mut found) {
            let size = view.word(at)?;
            if size == 0 || size > most || (at == header::SUB_BUFFER_BYTES && !size.is_power_of_two()) {
                return Ok(Err(LayoutRefusal::Size { what, found: size, most }));
            }
            *to = size as u32;
        }
        let [events, lanes, sub_buffers, sub_buffer_bytes, registry_bytes, filter_bytes] = found;
        // Programs that are older than triggers, rules or objects have no region for them.
        let object_bytes = view.word(header::OBJECTS)?;
        if object_bytes > OBJECTS_BYTES {
            let what = "bytes for objects";
            return Ok(Err(LayoutRefusal::Size { what, found: object_bytes, most: OBJECTS_BYTES }));
        }
        let object_bytes = object_bytes as u32;
        let layout = Self { events, lanes, sub_buffers, sub_buffer_bytes, registry_bytes, filter_bytes, object_bytes };
        let has_triggers = view.word(header::TRIGGERS)? != 0;
        let has_rules = view.word(header::RULES)? != 0;
        let needed = match (has_triggers, has_rules) {
            (false, _) => layout.triggers(),
            (true, false) => layout.rule(0),
            (true, true) => layout.bytes(),
        };
        let pool = u64::from(sub_buffers) * u64::from(sub_buffer_bytes);
        if pool > POOL_BYTES_MAX {
            return Ok(Err(LayoutRefusal::Size { what: "bytes of sub-buffers", found: pool, most: POOL_BYTES_MAX }));
        }
        if needed > bytes {
            return Ok(Err(LayoutRefusal::Size { what: "bytes of all", found: needed, most: bytes }));
        }
        Ok(Ok(layout))
    }

    /// Size of the whole memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.objects() + u64::from(self.object_bytes)
    }

    /// Bytes that a child process still sees after a fork: the header and the control bytes of its
    /// parent.
    #[must_use]
    pub fn inherited_bytes(&self) -> u64 {
        self.lane(0)
    }

    /// Offset of an event's control byte.
    #[must_use]
    pub fn control(&self, id: u16) -> u64 {
        PAGE + u64::from(id)
    }

    pub(crate) fn lane(&self, number: u16) -> u64 {
        PAGE + page(self.events.into()) + LANE_BYTES * u64::from(number)
    }

    pub(crate) fn descriptor(&self, number: u32) -> u64 {
        self.lane(0) + page(LANE_BYTES * u64::from(self.lanes)) + DESCRIPTOR_BYTES * u64::from(number)
    }

    pub(crate) fn freed(&self, number: u32) -> u64 {
        self.descriptor(0) + page(DESCRIPTOR_BYTES * u64::from(self.sub_buffers)) + u64::from(number)
    }

    /// Offset of a filter's slot.
    pub(crate) fn slot(&self, number: u8) -> u64 {
        self.freed(0) + page(self.sub_buffers.into()) + SLOT_BYTES * u64::from(number)
    }

    /// Offset of the bytecode of filters.
    #[must_use]
    pub fn filters(&self) -> u64 {
        self.slot(0) + SLOT_BYTES * SLOTS
    }

    pub(crate) fn registry(&self) -> u64 {
        self.filters() + page(self.filter_bytes.into())
    }

    /// Offset of the triggers' region.
    #[must_use]
    pub fn triggers(&self) -> u64 {
        page(self.sub_buffer(self.sub_buffers))
    }

    /// Offset of a firing in its ring, by the number of its change.
    pub(crate) fn firing(&self, number: u32) -> u64 {
        self.triggers() + triggers::FIRINGS + u64::from(number) % triggers::FIRINGS_MAX * triggers::FIRING_BYTES
    }

    /// Offset of an image of the control bytes: 0 is that of sessions without triggers, then come
    /// those of the groups.
    pub(crate) fn image(&self, number: u32) -> u64 {
        self.triggers() + triggers::IMAGES + u64::from(number) * page(self.events.into())
    }

    /// Offset of the part of a rule.
    #[must_use]
    pub fn rule(&self, number: u32) -> u64 {
        self.image(GROUPS_MAX + 1) + u64::from(number) * rule::BYTES
    }

    /// Offset of the region of users' objects.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.rule(RULES_MAX)
    }

    /// Offset of a sub-buffer.
    #[must_use]
    pub fn sub_buffer(&self, number: u32) -> u64 {
        let pool = self.registry() + page(self.registry_bytes.into());
        pool + u64::from(self.sub_buffer_bytes) * u64::from(number)
    }
}

/// Number of groups of sessions that triggers control, and of triggers.
pub const GROUPS_MAX: u32 = 7;
/// See [`GROUPS_MAX`].
pub const TRIGGERS_MAX: u32 = 32;
/// Number of rules of a program.
pub const RULES_MAX: u32 = 16;
/// Bytes for the maps of users' objects, if there is room for them.
pub const OBJECTS_BYTES: u64 = 16 << 20;
/// Number of lines of counts that threads have of their own.
pub const LINES_MAX: u32 = 127;
/// Number of kinds of a rule that have running limits of their own, and of kinds whose limit is set.
pub const KINDS_MAX: u32 = 64;

fn page(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

/// State of a lane that a thread owns.
pub(crate) const LIVE: u64 = 1;
/// State of a lane that its thread has given back.
pub(crate) const LEFT: u64 = 2;

/// The word that names the owner of a lane. It holds the low 24 bits of the lane's generation, so that a
/// recorder does not take an earlier owner for the one that has just changed the lane's state.
pub(crate) fn thread_word(generation: u32, level: u8, tid: u32) -> u64 {
    u64::from(generation) << 40 | u64::from(level) << 32 | u64::from(tid)
}

/// Owner of a sub-buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubBufferOwner {
    pub(crate) generation: u32,
    pub(crate) lane: u16,
    pub(crate) state: u16,
}

/// No lane ever owned it.
pub(crate) const UNUSED: u16 = 0;
/// A lane is taking it.
pub(crate) const TAKING: u16 = 1;
/// A lane writes to it.
pub(crate) const OPEN: u16 = 2;
/// The lane has closed it: no more events follow.
pub(crate) const FULL: u16 = 3;

impl SubBufferOwner {
    pub(crate) fn of(word: u64) -> Self {
        Self { generation: (word >> 32) as u32, lane: (word >> 16) as u16, state: word as u16 }
    }

    pub(crate) fn word(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.lane) << 16 | u64::from(self.state)
    }

    /// Whether a lane may take it.
    pub(crate) fn is_free(self, freed: u8) -> bool {
        self.state == UNUSED || (self.state != TAKING && freed == self.mark())
    }

    /// Free mark of this generation, which the recorder writes to free the sub-buffer. 255
    /// consecutive generations have different marks, and none is 0, the value in a new file.
    pub(crate) fn mark(self) -> u8 {
        (self.generation % 255) as u8 + 1
    }
}
