//! Where everything is.
//!
//! ```text
//! header │ control bytes │ lanes │ descriptors │ freed │ slots │ filters  │ registry    │ pool of sub-buffers
//! 4 KiB    one an event    64 B    128 B each    1 B     32 B    bytecode   definitions   (grows)
//! ```
//!
//! All numbers are little-endian words of 8 bytes at multiples of 8, so that whoever copies them one by one gets each of them whole.

use crate::memory::View;

/// `kymoLANE`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"kymoLANE");
/// What is written down here.
pub const ABI: u64 = 1;

/// Regions begin at multiples of it.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of a lane's entry.
pub(crate) const LANE_BYTES: u64 = 64;
/// Bytes of what describes a sub-buffer: two lines of a cache, so that neighbours do not disturb each other.
pub(crate) const DESCRIPTOR_BYTES: u64 = 128;

/// Words of the header.
pub(crate) mod header {
    /// [`super::MAGIC`]; written last.
    pub(crate) const MAGIC: u64 = 0;
    /// [`super::ABI`].
    pub(crate) const ABI: u64 = 8;
    /// How many control bytes, lanes and sub-buffers there are, bytes of a sub-buffer and of the registry.
    pub(crate) const EVENTS: u64 = 16;
    pub(crate) const LANES: u64 = 24;
    pub(crate) const SUB_BUFFERS: u64 = 32;
    pub(crate) const SUB_BUFFER_BYTES: u64 = 40;
    pub(crate) const REGISTRY_BYTES: u64 = 48;
    /// The process as it sees itself, and when it began, in ticks of the system's clock since it was started.
    pub(crate) const PID: u64 = 56;
    pub(crate) const STARTED: u64 = 64;
    /// Bytes for the bytecode of filters.
    pub(crate) const FILTER_BYTES: u64 = 72;
    /// What events are stamped with.
    pub(crate) const CLOCK: u64 = 80;
    /// The namespace that the process' number is of.
    pub(crate) const PID_NAMESPACE: u64 = 88;
    /// Memory for machine code: its inode, where it is mapped, `machine << 32 | bytes`, its descriptor and why there is none.
    pub(crate) const ARENA_INODE: u64 = 96;
    pub(crate) const ARENA_ADDRESS: u64 = 104;
    pub(crate) const ARENA_BYTES: u64 = 112;
    pub(crate) const ARENA_DESCRIPTOR: u64 = 120;
    /// The effective user.
    pub(crate) const USER: u64 = 128;
    /// How many bytes the path of what it runs has.
    pub(crate) const PATH_BYTES: u64 = 136;
    /// What the process is called: 16 bytes.
    pub(crate) const NAME: u64 = 144;
    /// Bytes of the registry that are taken, and ids that are given.
    pub(crate) const REGISTRY_TAKEN: u64 = 256;
    pub(crate) const IDS: u64 = 264;
    /// Sub-buffers that have memory.
    pub(crate) const READY: u64 = 272;
    /// Events that were lost where there was no lane for them.
    pub(crate) const DISCARDED: u64 = 280;
    /// Lanes and bytes of the registry that have memory.
    pub(crate) const LANES_READY: u64 = 288;
    pub(crate) const REGISTRY_READY: u64 = 296;
    /// The bell that it rings: device and inode of the file behind it. An inode of 0: none.
    pub(crate) const BELL_DEVICE: u64 = 304;
    pub(crate) const BELL_INODE: u64 = 312;
    /// What the recorder says: it changes when sub-buffers were freed; what a lane does that has no room; how many sub-buffers a
    /// lane may have; what events carry with them; how many sub-buffers all lanes may have.
    pub(crate) const EPOCH: u64 = 512;
    pub(crate) const MODE: u64 = 520;
    pub(crate) const LIMIT: u64 = 528;
    pub(crate) const CONTEXTS: u64 = 536;
    pub(crate) const POOL: u64 = 544;
    /// What the recorder says when it does not look: for what it is to be rung; whoever rings makes it 0.
    pub(crate) const ASLEEP: u64 = 552;
    /// The path of what it runs.
    pub(crate) const PATH: u64 = 1024;
    pub(crate) const PATH_BYTES_MAX: u64 = 3072;
}

/// Where it stands how many sub-buffers have memory: of 0, nothing was ever recorded.
pub const READY_AT: u64 = header::READY;
/// Where the recorder says which contexts events carry, for those who look on their own.
pub const CONTEXTS_AT: u64 = header::CONTEXTS;

/// Words of a lane's entry.
pub(crate) mod lane {
    /// `generation << 32 | state`.
    pub(crate) const STATE: u64 = 0;
    /// Events that it lost since it is there.
    pub(crate) const DISCARDED: u64 = 8;
    /// Texts that it cut.
    pub(crate) const CUT: u64 = 16;
    /// How many sub-buffers it has taken.
    pub(crate) const SEQUENCE: u64 = 24;
    /// `level << 32 | thread` of whoever has it.
    pub(crate) const THREAD: u64 = 32;
}

/// Words that describe a sub-buffer.
pub(crate) mod descriptor {
    /// `generation << 32 | lane << 16 | state`.
    pub(crate) const OWNER: u64 = 0;
    /// `bytes << 32 | low half of the last event's ticks`.
    pub(crate) const PUBLISHED: u64 = 8;
    /// How many the lane had taken before.
    pub(crate) const SEQUENCE: u64 = 16;
    /// Ticks when it was taken.
    pub(crate) const BEGIN: u64 = 24;
    /// What the lane had lost then.
    pub(crate) const DISCARDED: u64 = 32;
    /// `level << 32 | thread`.
    pub(crate) const THREAD: u64 = 40;
    /// The thread's name, 16 bytes.
    pub(crate) const NAME: u64 = 48;
    /// What events carry.
    pub(crate) const CONTEXTS: u64 = 64;
}

/// Words of a filter's slot.
pub(crate) mod slot {
    /// What the recorder says; 0: nothing yet.
    pub(crate) const SAID: u64 = 0;
    /// What the program did about it.
    pub(crate) const DONE: u64 = 8;
}

/// Values of control bytes: off, on, and filters.
pub(crate) const SLOTS: u64 = 256;
pub(crate) const SLOT_BYTES: u64 = 32;

/// How large everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Control bytes: events that a program may have.
    pub events: u32,
    /// Lanes.
    pub lanes: u32,
    /// Sub-buffers of the pool.
    pub sub_buffers: u32,
    /// Bytes of each.
    pub sub_buffer_bytes: u32,
    /// Bytes for definitions.
    pub registry_bytes: u32,
    /// Bytes for filters.
    pub filter_bytes: u32,
}

/// 65,536 events, 4,096 lanes, 4 MiB of definitions, 256 KiB of filters, 128 MiB in sub-buffers of 32 KiB: that much could be
/// there. What is, the recorder says.
impl Default for Layout {
    fn default() -> Self {
        Self {
            events: 1 << 16,
            lanes: 4096,
            sub_buffers: 4096,
            sub_buffer_bytes: 32 << 10,
            registry_bytes: 4 << 20,
            filter_bytes: 256 << 10,
        }
    }
}

/// Sub-buffers that a program's lanes may have when nobody has said anything: 16 MiB.
pub(crate) const POOL: u32 = 512;
/// Bytes that sub-buffers of a program may have at most: whoever records takes them all in one round.
const POOL_BYTES_MAX: u64 = 1 << 30;

/// Why memory is no program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not begin as such memory does, or not yet.
    NoProgram,
    /// It is of another version.
    Version(u64),
    /// A size that cannot be.
    Size {
        /// Of what.
        what: &'static str,
        /// How much it says.
        found: u64,
        /// How much there may be at most.
        most: u64,
    },
}

impl Layout {
    /// Sizes that somebody else says, if they can be; `bytes` are there.
    ///
    /// # Errors
    ///
    /// They cannot be, or it cannot be read.
    pub fn read<V: View>(view: &V, bytes: u64) -> Result<Result<Self, Refused>, V::Fault> {
        if bytes < PAGE || view.word(header::MAGIC)? != MAGIC {
            return Ok(Err(Refused::NoProgram));
        }
        let version = view.word(header::ABI)?;
        if version != ABI {
            return Ok(Err(Refused::Version(version)));
        }
        // Whoever looks at all of them has room for all: 257 bytes for each sub-buffer, and what definitions are read to.
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
                return Ok(Err(Refused::Size { what, found: size, most }));
            }
            *to = size as u32;
        }
        let [events, lanes, sub_buffers, sub_buffer_bytes, registry_bytes, filter_bytes] = found;
        let layout = Self { events, lanes, sub_buffers, sub_buffer_bytes, registry_bytes, filter_bytes };
        let pool = u64::from(sub_buffers) * u64::from(sub_buffer_bytes);
        if pool > POOL_BYTES_MAX {
            return Ok(Err(Refused::Size { what: "bytes of sub-buffers", found: pool, most: POOL_BYTES_MAX }));
        }
        if layout.bytes() > bytes {
            return Ok(Err(Refused::Size { what: "bytes of all", found: layout.bytes(), most: bytes }));
        }
        Ok(Ok(layout))
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sub_buffer(self.sub_buffers)
    }

    /// Bytes that a child may go on to see: what its parent's events are switched to.
    #[must_use]
    pub fn inherited_bytes(&self) -> u64 {
        self.lane(0)
    }

    /// The control byte of an event.
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

    /// Where the slot of a filter is.
    pub(crate) fn slot(&self, number: u8) -> u64 {
        self.freed(0) + page(self.sub_buffers.into()) + SLOT_BYTES * u64::from(number)
    }

    /// Where the bytecode of filters begins.
    #[must_use]
    pub fn filters(&self) -> u64 {
        self.slot(0) + SLOT_BYTES * SLOTS
    }

    pub(crate) fn registry(&self) -> u64 {
        self.filters() + page(self.filter_bytes.into())
    }

    /// Where a sub-buffer begins.
    #[must_use]
    pub fn sub_buffer(&self, number: u32) -> u64 {
        let pool = self.registry() + page(self.registry_bytes.into());
        pool + u64::from(self.sub_buffer_bytes) * u64::from(number)
    }
}

fn page(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

/// Whose a sub-buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) generation: u32,
    pub(crate) lane: u16,
    pub(crate) state: u16,
}

/// Nobody ever had it.
pub(crate) const UNUSED: u16 = 0;
/// A lane is about to have it.
pub(crate) const TAKING: u16 = 1;
/// A lane writes to it.
pub(crate) const OPEN: u16 = 2;
/// Nothing more comes.
pub(crate) const FULL: u16 = 3;

impl Owner {
    pub(crate) fn of(word: u64) -> Self {
        Self { generation: (word >> 32) as u32, lane: (word >> 16) as u16, state: word as u16 }
    }

    pub(crate) fn word(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.lane) << 16 | u64::from(self.state)
    }

    /// Somebody may take it.
    pub(crate) fn is_free(self, freed: u8) -> bool {
        self.state == UNUSED || (self.state != TAKING && freed == self.mark())
    }

    /// What the recorder says to free it: of 255 generations each has another one, and none is what a new file says.
    pub(crate) fn mark(self) -> u8 {
        (self.generation % 255) as u8 + 1
    }
}
