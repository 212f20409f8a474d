//! The events of a dump as classes of events: the meaning of their 32 bits, and their length in a packet.
//!
//! Definitions say nothing of arguments; the meanings here are those of Barrelfish's source.

use super::definitions::{BARE_SUBSYSTEM, DumpDefinitions};

/// A class of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DumpEventClass {
    /// `subsystem:event`.
    pub(super) name: String,
    pub(super) argument: DumpArgument,
}

/// The meaning of an event's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DumpArgument {
    /// Nothing is known of it.
    Number,
    /// There is none.
    Absent,
    /// 0 where something is entered, 1 where it is left.
    EnterLeave,
    /// 1 where something begins, 0 where it ends.
    BeginEnd,
    /// The dispatcher that a core runs from now on.
    Switch,
    /// A dispatcher.
    RunDispatcher,
    /// A dispatcher, or a small number.
    DispatcherOrNumber,
    /// The kernel's time.
    Time,
    /// The vector of an interrupt.
    Vector,
    /// The last 32 bits of an address.
    Address,
    /// A size as a power of two.
    Bits,
    /// The number of an operation, which its steps have in common.
    Operation,
    /// Another core.
    Core,
    /// The whole record is a message.
    Message,
    /// Of an event without a name: the event's number, and its argument.
    Event,
    /// Of a subsystem without a name: the numbers of both, and the argument.
    Subsystem,
}

/// The first classes: messages, and records without a name.
pub(super) const SEND: u16 = 0;
pub(super) const RECEIVE: u16 = 1;
pub(super) const NO_SUBSYSTEM: u16 = 2;

/// Classes of events by the numbers of records.
#[derive(Debug)]
pub(super) struct DumpClasses {
    pub(super) all: Vec<DumpEventClass>,
    /// Bytes of a record of each class in a packet.
    pub(super) sizes: Vec<u8>,
    /// Classes by subsystem and event.
    table: DumpClassTable,
    bare: &'static [(&'static str, u32)],
    /// The class of the first bare record; the others follow.
    bare_from: u16,
}

/// Events that all definitions together may have.
const CLASSES_MAX: usize = 60_000;

/// Bytes that all events have: class, time, dispatcher, application.
pub(super) const COMMON_BYTES: u8 = 2 + 8 + 4 + TEXT_BYTES as u8;

/// Bytes of an application's name in a packet: that of a dispatcher without a name is its address.
pub(super) const TEXT_BYTES: usize = 10;

impl DumpArgument {
    /// Its meaning in an event.
    fn of(subsystem: &str, event: &str) -> Self {
        match (subsystem, event) {
            ("kernel", "CSWITCH") => Self::Switch,
            ("kernel", "BZERO") => Self::BeginEnd,
            ("kernel", "TIMER") => Self::Time,
            ("kernel", "SCHED_REMOVE") => Self::DispatcherOrNumber,
            ("kernel", event) if event.starts_with("SCHED_") => Self::RunDispatcher,
            ("kernel", event) if event.starts_with("SC_") || event.starts_with("CAP_") => Self::EnterLeave,
            ("memory", _) => Self::EnterLeave,
            ("threads", _) => Self::Address,
            ("memserv", "ALLOC") => Self::Bits,
            ("kernel_capops" | "capops", _) => Self::Operation,
            ("tweed", "STEAL" | "STEAL_END" | "WAIT" | "WAIT_END") => Self::Core,
            ("nnet", "IRQ") => Self::Vector,
            _ => Self::Number,
        }
    }

    /// Its bytes in a packet.
    fn bytes(self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Switch | Self::RunDispatcher | Self::DispatcherOrNumber => 4 + 4 + TEXT_BYTES as u8,
            Self::Message => 8 + 8 + 2,
            Self::Event => 2 + 4,
            Self::Subsystem => 2 + 2 + 4,
            _ => 4,
        }
    }

    /// Its fields, in TSDL.
    pub(super) fn fields(self) -> &'static str {
        match self {
            Self::Number => "u32 _argument;",
            Self::Absent => "",
            Self::EnterLeave => "enum : u32 { enter = 0, leave = 1 } _phase;",
            Self::BeginEnd => "enum : u32 { end = 0, begin = 1 } _phase;",
            Self::Switch => "x32 _dcb; i32 _from; text _from_application[10];",
            Self::RunDispatcher | Self::DispatcherOrNumber => "x32 _dcb; i32 _target; text _target_application[10];",
            Self::Time => "u32 _time;",
            Self::Vector => "u32 _vector;",
            Self::Address => "x32 _address;",
            Self::Bits => "u32 _bits;",
            Self::Operation => "u32 _operation;",
            Self::Core => "u32 _core;",
            Self::Message => "x64 _message; x64 _channel; u16 _sequence;",
            Self::Event => "x16 _event; x32 _argument;",
            Self::Subsystem => "x16 _subsystem; x16 _event; x32 _argument;",
        }
    }
}

impl DumpClasses {
    /// The classes of all definitions.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub(super) fn new(definitions: &DumpDefinitions) -> Result<Self, String> {
        let count: usize = definitions.subsystems.values().map(|subsystem| subsystem.events.len() + 1).sum();
        if count > CLASSES_MAX {
            return Err(format!("the definitions have {count} events: 60,000 at most"));
        }
        let class = |name: &str, argument| DumpEventClass { name: name.to_owned(), argument };
        let mut all = vec![
            class("ump:send", DumpArgument::Message),
            class("ump:receive", DumpArgument::Message),
            class("unknown:event", DumpArgument::Subsystem),
        ];
        let bare_from = all.len() as u16;
        let bare =
            definitions.bare.iter().map(|(name, _)| class(&format!("{BARE_SUBSYSTEM}:{name}"), DumpArgument::Absent));
        all.extend(bare);
        let mut table = DumpClassTable::new(count);
        for (&number, subsystem) in &definitions.subsystems {
            table.insert(DumpClassTable::subsystem(number), all.len() as u16);
            all.push(class(&format!("{}:event", subsystem.name), DumpArgument::Event));
            for (&event, name) in &subsystem.events {
                table.insert(u64::from(number) << 16 | u64::from(event), all.len() as u16);
                all.push(class(&format!("{}:{name}", subsystem.name), DumpArgument::of(&subsystem.name, name)));
            }
        }
        let sizes = all.iter().map(|class| COMMON_BYTES + class.argument.bytes()).collect();
        Ok(Self { all, sizes, table, bare: definitions.bare, bare_from })
    }

    /// The class of a record.
    #[inline]
    pub(super) fn of(&self, raw: u64) -> u16 {
        // The number of a channel may reach into the bits of the subsystem.
        match raw >> 56 {
            0xEA => return SEND,
            0xEB => return RECEIVE,
            _ => {}
        }
        self.table.find(raw >> 32).unwrap_or_else(|| self.unnamed(raw))
    }

    fn unnamed(&self, raw: u64) -> u16 {
        if let Some(place) = self.bare.iter().position(|(_, record)| u64::from(*record) == raw) {
            return self.bare_from + place as u16;
        }
        self.table.find(DumpClassTable::subsystem((raw >> 48) as u16)).unwrap_or(NO_SUBSYSTEM)
    }

    pub(super) fn argument(&self, class: u16) -> DumpArgument {
        self.all[class as usize].argument
    }
}

/// Classes by subsystem and event: open addressing, because each record asks.
#[derive(Debug)]
struct DumpClassTable {
    /// Keys and classes; the key of a free place is [`u64::MAX`].
    places: Vec<(u64, u16)>,
    shift: u32,
}

impl DumpClassTable {
    fn new(count: usize) -> Self {
        let size = (count * 4).next_power_of_two().max(2);
        Self { places: vec![(u64::MAX, 0); size], shift: 64 - size.trailing_zeros() }
    }

    /// The key of the class of a subsystem's other events.
    fn subsystem(number: u16) -> u64 {
        1 << 40 | u64::from(number)
    }

    #[inline]
    fn start(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    fn insert(&mut self, key: u64, class: u16) {
        let mut place = self.start(key);
        while self.places[place].0 != u64::MAX {
            place = (place + 1) & (self.places.len() - 1);
        }
        self.places[place] = (key, class);
    }

    #[inline]
    fn find(&self, key: u64) -> Option<u16> {
        let mut place = self.start(key);
        loop {
            let (known, class) = self.places[place];
            if known == key {
                return Some(class);
            }
            if known == u64::MAX {
                return None;
            }
            place = (place + 1) & (self.places.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(classes: &DumpClasses, raw: u64) -> (&str, DumpArgument) {
        let class = &classes.all[classes.of(raw) as usize];
        (&class.name, class.argument)
    }

    #[test]
    fn records_have_classes() {
        let current = DumpClasses::new(&DumpDefinitions::current()).unwrap();
        for (raw, name, argument) in [
            (0x265_6C00, "kernel:CSWITCH", DumpArgument::Switch),
            (0x1_0000_0001, "kernel:BZERO", DumpArgument::BeginEnd),
            (0x10_0002_0000_0001, "xmpl:EV1", DumpArgument::Number),
            (0xEA00_0077_6F80_3000, "ump:send", DumpArgument::Message),
            (0xEBFF_0077_6F80_3000, "ump:receive", DumpArgument::Message),
            (0x77_0000_0000, "kernel:event", DumpArgument::Event),
            (0x1234_0000_0000_0000, "unknown:event", DumpArgument::Subsystem),
            (0x0002_0002_0060_C950, "threads:MUTEX_LOCK_ENTER", DumpArgument::Address),
        ] {
            assert_eq!(found(&current, raw), (name, argument), "{raw:x}");
        }
        let legacy = DumpClasses::new(&DumpDefinitions::legacy()).unwrap();
        for (raw, name) in [
            (0xFFFF_CCCC_0265_6C00, "kernel:CSWITCH"),
            (0xBBBB, "domain:BLOCK"),
            (0xAAA, "domain:POLL_END"),
            (0xBBBC, "unknown:event"),
            (0xAAAA_AAAA_AAAA_AAAA, "unknown:event"),
            (0xBFBF_0001_0000_0000, "bflib:event"),
            (0x1234_0000_0000_0BEE, "bench:PCBENCH"),
        ] {
            assert_eq!(found(&legacy, raw).0, name, "{raw:x}");
        }
    }

    #[test]
    fn all_definitions_are_found() {
        for definitions in [DumpDefinitions::current(), DumpDefinitions::legacy()] {
            let classes = DumpClasses::new(&definitions).unwrap();
            for (number, subsystem) in &definitions.subsystems {
                for (event, name) in &subsystem.events {
                    let raw = u64::from(*number) << 48 | u64::from(*event) << 32;
                    assert_eq!(found(&classes, raw).0, format!("{}:{name}", subsystem.name));
                }
            }
        }
    }
}
