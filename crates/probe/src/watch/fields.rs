//! The meaning of names at a tracepoint: its arguments, and values behind their pointers, by the kernel's description of its own types.
//!
//! ```text
//! skb->dev->name     argument 0, a `struct sk_buff *`
//!                    ── at 16: a `struct net_device *` ── at 288: `char [16]`, a text
//! ```
//!
//! Names come first from the table of fields that people know (`known`), then from the arguments, then from the thread that runs.

use std::collections::HashMap;

use super::known::{KnownField, ValueChange, fields_of, is_never_null};
use super::{WATCH_STEPS_MAX, WatchPath, WatchStep};
use crate::btf::{BtfShape, KernelTypes};

/// Bytes of a text at most, with the zero byte at its end.
pub(super) const TEXT_MAX: u32 = 64;
/// Bytes of the name of a thread.
const NAME_BYTES: u32 = 16;
/// A bit of the number of a system call: a 32-bit program has made it, which has other numbers.
pub const COMPAT_CALL: i64 = 1 << 30;
/// Pointers that a path follows at most.
const HOPS_MAX: usize = 8;
/// Elements behind a pointer that is no array's, at most: nothing tells how many there are.
const TARGETS_MAX: u64 = 4096;
/// Offsets in structures at most.
const OFFSET_MAX: u32 = 1 << 24;
/// The functions that have the arguments of a tracepoint; newer kernels have the first.
const FUNCTIONS: [&str; 2] = ["__probestub_", "__traceiter_"];
/// The type of a tracepoint.
const TRACEPOINT: &str = "btf_trace_";
/// The first argument is the tracepoint's own.
const OWN_ARGUMENTS: usize = 1;

/// Tracepoints of the kernel that runs.
#[derive(Debug)]
pub struct WatchableEvents {
    types: KernelTypes,
    /// The functions that have their arguments.
    functions: HashMap<String, u32>,
}

impl WatchableEvents {
    /// Those that the kernel describes.
    ///
    /// # Errors
    ///
    /// Why there are none, in a sentence.
    pub fn of_this_kernel() -> Result<Self, String> {
        let types = KernelTypes::of_this_kernel()?;
        let mut functions = FUNCTIONS.iter().map(|prefix| types.functions_named(prefix));
        let functions = functions.find(|found| !found.is_empty()).unwrap_or_default();
        Ok(Self { types, functions })
    }

    /// Where a structure of the kernel has a member.
    pub(crate) fn place(&self, structure: &str, member: &str) -> Option<u32> {
        self.types.place(structure, &[member])
    }

    /// Their names, without subsystems.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.types.typedefs_named(TRACEPOINT)
    }

    /// The fields of one; `None`: the kernel does not describe it, as it does not describe those of its modules.
    #[must_use]
    pub fn event(&self, name: &str, is_end: bool) -> Option<TracepointFields<'_>> {
        let number = self.types.typedef(&format!("{TRACEPOINT}{name}"))?;
        let arguments = self.types.arguments(*self.functions.get(name)?)?;
        let arguments = arguments.into_iter().skip(OWN_ARGUMENTS).collect();
        Some(TracepointFields { types: &self.types, event: name.to_owned(), number, arguments, is_end })
    }
}

/// The fields of a tracepoint.
#[derive(Debug)]
pub struct TracepointFields<'t> {
    types: &'t KernelTypes,
    event: String,
    /// The number of its type.
    pub(crate) number: u32,
    /// Names and types.
    arguments: Vec<(String, u32)>,
    /// It ends something, so that it is known how long that took.
    is_end: bool,
}

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundPath {
    /// A value.
    Field(WatchedField),
    /// There is something, which has no single value: `a structure`.
    Compound(&'static str),
    /// There is nothing of this name; names that there are instead.
    Missing(Vec<String>),
}

/// A field with one value.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedField {
    /// Its type.
    pub kind: WatchKind,
    /// The meaning of its numbers.
    pub meaning: WatchMeaning,
    pub(crate) source: WatchSource,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKind {
    /// An integer.
    Integer {
        /// 1 to 64.
        bits: u8,
        /// Two's complement.
        is_signed: bool,
    },
    /// A text of fewer bytes than these.
    Text {
        /// With the zero byte at its end.
        capacity: u32,
    },
}

/// The meaning of the numbers of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchMeaning {
    /// For themselves.
    Plain,
    /// Nanoseconds.
    Nanos,
    /// Bytes.
    Bytes,
    /// An address.
    Address,
    /// System calls, by their numbers.
    Call,
    /// Events of the request, by their places.
    Event,
    /// Values with names.
    Labels(Vec<(String, i64)>),
}

/// Where a value is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchSource {
    /// The thread that runs: its number, that of its process, its name, its CPU.
    Thread,
    Process,
    ThreadName,
    Cpu,
    /// The place of the event in the request.
    Event,
    /// How long it took.
    Took,
    /// An argument, or a value behind its pointers.
    Argument(ArgumentPath),
    /// The number of a system call, with [`COMPAT_CALL`] if the caller is a 32-bit one: that is in the thread's description, if there are
    /// such callers.
    Call {
        number: ArgumentPath,
        status_offset: Option<u32>,
    },
    /// The state of a thread at its switch: where that is known that it was preempted, its state and, in its description, the state of
    /// its end.
    State {
        preempted: u8,
        thread: u8,
        state: u8,
        end_offset: u32,
    },
}

/// The way from an argument to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentPath {
    /// Which argument.
    pub(crate) argument: u8,
    /// A program may look behind it at once.
    pub(crate) is_never_null: bool,
    /// Where the next addresses are, behind each other.
    pub(crate) hops: Vec<u32>,
    pub(crate) end: PathEnd,
    pub(crate) change: ValueChange,
}

/// The value at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathEnd {
    /// The argument itself.
    Value { bytes: u8, is_signed: bool, is_address: bool },
    /// So many bytes in memory, of which it may be some bits: behind the first ones, so many.
    Memory { offset: u32, bytes: u8, is_signed: bool, bits: Option<(u8, u8)> },
    /// A text in memory.
    Text { offset: u32, capacity: u32 },
}

/// Where a walk is.
#[derive(Clone, Copy, Debug)]
enum WalkPlace {
    /// The argument.
    Argument,
    /// Memory behind the last address.
    Memory(u32),
}

impl TracepointFields<'_> {
    /// The meaning of a name.
    #[must_use]
    pub fn find(&self, path: &WatchPath) -> FoundPath {
        if path.steps.len() > WATCH_STEPS_MAX {
            return FoundPath::Compound("a name of more than 32 parts");
        }
        if !path.is_global {
            let written = path.to_string();
            if let Some(known) = fields_of(&self.event).iter().find(|known| known.name == written) {
                return self.known(known).unwrap_or_else(|| FoundPath::Missing(Vec::new()));
            }
            if self.is_end && matches!(&*written, "took" | "took_ns") {
                let kind = WatchKind::Integer { bits: 64, is_signed: false };
                return field(kind, WatchMeaning::Nanos, WatchSource::Took);
            }
            if let [WatchStep::Name(first), rest @ ..] = &path.steps[..]
                && let Some(place) = self.arguments.iter().position(|(name, _)| name == first)
            {
                return self.walk(place, rest);
            }
        }
        word(path).unwrap_or_else(|| FoundPath::Missing(self.names()))
    }

    /// Names of the fields that only such events have.
    #[must_use]
    pub fn own_names(&self) -> Vec<String> {
        let known = fields_of(&self.event).iter().map(|known| known.name.to_owned());
        let arguments = self.arguments.iter().map(|(name, _)| name.clone());
        told_once(known.chain(arguments))
    }

    /// Names of its fields.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let known = fields_of(&self.event).iter().map(|known| known.name.to_owned());
        let arguments = self.arguments.iter().map(|(name, _)| name.clone());
        let took = self.is_end.then(|| "took".to_owned());
        let words = ["tid", "pid", "comm", "cpu_id"].map(str::to_owned);
        told_once(known.chain(took).chain(arguments).chain(words))
    }

    fn known(&self, known: &KnownField) -> Option<FoundPath> {
        if known.change == ValueChange::State {
            return self.state();
        }
        let path = parsed(known.path)?;
        let [WatchStep::Name(first), rest @ ..] = &path.steps[..] else { return None };
        let place = self.arguments.iter().position(|(name, _)| name == first)?;
        let FoundPath::Field(mut found) = self.walk(place, rest) else { return None };
        let WatchSource::Argument(argument) = &mut found.source else { return None };
        argument.change = known.change;
        if known.change == ValueChange::Call {
            let compat =
                cfg!(target_arch = "x86_64").then(|| self.types.place("task_struct", &["thread_info", "status"]));
            let (number, status_offset) = (argument.clone(), compat.flatten());
            return Some(field(found.kind, WatchMeaning::Call, WatchSource::Call { number, status_offset }));
        }
        match known.change {
            ValueChange::Priority => found.kind = WatchKind::Integer { bits: 32, is_signed: true },
            ValueChange::Same if known.name == "bytes" => found.meaning = WatchMeaning::Bytes,
            ValueChange::Same | ValueChange::Sectors | ValueChange::State | ValueChange::Call => {}
        }
        Some(FoundPath::Field(found))
    }

    fn state(&self) -> Option<FoundPath> {
        let place = |name: &str| self.arguments.iter().position(|(known, _)| known == name).map(|place| place as u8);
        let (preempted, thread, state) = (place("preempt")?, place("prev")?, place("prev_state")?);
        let end_offset = self.types.place("task_struct", &["exit_state"])?;
        let source = WatchSource::State { preempted, thread, state, end_offset };
        Some(field(WatchKind::Integer { bits: 16, is_signed: false }, WatchMeaning::Plain, source))
    }

    /// Follows the steps behind an argument.
    fn walk(&self, argument: usize, steps: &[WatchStep]) -> FoundPath {
        let (name, kind) = &self.arguments[argument];
        let (mut kind, mut place, mut hops, mut bits) = (*kind, WalkPlace::Argument, Vec::new(), None);
        for step in steps {
            if bits.is_some() {
                return FoundPath::Compound("a number of some bits, which has no members");
            }
            let mut is_target = false;
            if let Some(BtfShape::Pointer(target)) = self.types.shape(kind) {
                is_target = true;
                if let WalkPlace::Memory(offset) = place {
                    hops.push(offset);
                }
                (place, kind) = (WalkPlace::Memory(0), target);
            }
            let WalkPlace::Memory(offset) = place else {
                return FoundPath::Compound("a number, which has no members");
            };
            let next = match step {
                WatchStep::Name(name) => match self.types.named_member(kind, name) {
                    Some(member) => {
                        bits = (member.bits > 0).then_some((member.place_bits, member.bits));
                        (member.place_bits / 8, member.kind)
                    }
                    None => return FoundPath::Missing(self.member_names(kind)),
                },
                WatchStep::Index(index) => match self.element(kind, *index, is_target) {
                    Ok(element) => element,
                    Err(why) => return FoundPath::Compound(why),
                },
            };
            let (behind, next) = next;
            let Some(offset) = offset.checked_add(behind).filter(|offset| *offset <= OFFSET_MAX) else {
                return FoundPath::Compound("too far away");
            };
            (place, kind) = (WalkPlace::Memory(offset), next);
        }
        if hops.len() > HOPS_MAX {
            return FoundPath::Compound("behind more addresses than programs follow");
        }
        let is_never_null = is_never_null(&self.event, name);
        let path = |hops, end| {
            let change = ValueChange::Same;
            WatchSource::Argument(ArgumentPath { argument: argument as u8, is_never_null, hops, end, change })
        };
        self.ended(kind, place, bits, hops, path)
    }

    /// The value of a type at the end of a path.
    fn ended(
        &self,
        kind: u32,
        place: WalkPlace,
        bits: Option<(u32, u32)>,
        mut hops: Vec<u32>,
        path: impl Fn(Vec<u32>, PathEnd) -> WatchSource,
    ) -> FoundPath {
        let number = |hops, bytes: u8, is_signed, meaning| {
            let (end, width) = match (place, bits) {
                (WalkPlace::Argument, _) => {
                    let is_address = meaning == WatchMeaning::Address;
                    (PathEnd::Value { bytes, is_signed, is_address }, 8 * bytes)
                }
                (WalkPlace::Memory(offset), None) => {
                    (PathEnd::Memory { offset, bytes, is_signed, bits: None }, 8 * bytes)
                }
                (WalkPlace::Memory(offset), Some((at, width))) => {
                    // Its bytes, from the first that has one of its bits, as the offset says.
                    let (shift, width) = ((at % 8) as u8, width as u8);
                    let bytes = (shift + width).div_ceil(8).next_power_of_two().min(8);
                    (PathEnd::Memory { offset, bytes, is_signed, bits: Some((shift, width)) }, width)
                }
            };
            field(WatchKind::Integer { bits: width, is_signed }, meaning, path(hops, end))
        };
        let is_letter = |kind| matches!(self.types.shape(kind), Some(BtfShape::Integer { is_letter: true, .. }));
        match self.types.shape(kind) {
            Some(BtfShape::Integer { bytes, is_signed, .. }) => number(hops, bytes, is_signed, WatchMeaning::Plain),
            Some(BtfShape::Enumeration { bytes, is_signed, number: of }) => {
                number(hops, bytes, is_signed, WatchMeaning::Labels(self.types.labels(of)))
            }
            Some(BtfShape::Pointer(target)) if is_letter(target) => {
                if let WalkPlace::Memory(offset) = place {
                    hops.push(offset);
                }
                text(path(hops, PathEnd::Text { offset: 0, capacity: TEXT_MAX }), TEXT_MAX)
            }
            Some(BtfShape::Pointer(_)) => number(hops, 8, false, WatchMeaning::Address),
            Some(BtfShape::Array { element, count }) if is_letter(element) => {
                let WalkPlace::Memory(offset) = place else { return FoundPath::Compound("an array") };
                let capacity = if count == 0 { TEXT_MAX } else { count.min(TEXT_MAX) };
                text(path(hops, PathEnd::Text { offset, capacity }), capacity)
            }
            Some(BtfShape::Array { .. }) => FoundPath::Compound("an array"),
            Some(BtfShape::Structure(_)) => FoundPath::Compound("a structure"),
            Some(BtfShape::Other) | None => FoundPath::Compound("nothing with a value"),
        }
    }

    /// Where an element is behind the first one, and its type; or what it is instead. A pointer may lead to the first of several.
    fn element(&self, kind: u32, index: u64, is_target: bool) -> Result<(u32, u32), &'static str> {
        let element = match self.types.shape(kind) {
            Some(BtfShape::Array { element, count }) if index < u64::from(count) => element,
            Some(BtfShape::Array { .. }) => return Err("an element behind the end of its array"),
            _ if !is_target => return Err("an element of something that is no array"),
            _ if index >= TARGETS_MAX => return Err("more than 4,095 elements behind a pointer"),
            _ => kind,
        };
        let bytes = self.types.bytes_of(element).ok_or("an element of unknown size")?;
        let behind = u32::try_from(index).ok().and_then(|index| index.checked_mul(bytes));
        Ok((behind.ok_or("too far away")?, element))
    }

    fn member_names(&self, kind: u32) -> Vec<String> {
        let members = self.types.members(kind).unwrap_or_default();
        members
            .into_iter()
            .filter_map(|member| String::from_utf8(member.name).ok())
            .filter(|name| !name.is_empty())
            .collect()
    }
}

/// Names, each at its first place.
fn told_once(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn field(kind: WatchKind, meaning: WatchMeaning, source: WatchSource) -> FoundPath {
    FoundPath::Field(WatchedField { kind, meaning, source })
}

fn text(source: WatchSource, capacity: u32) -> FoundPath {
    field(WatchKind::Text { capacity }, WatchMeaning::Plain, source)
}

/// The meaning of a word of the language itself: about the thread that runs.
fn word(path: &WatchPath) -> Option<FoundPath> {
    let names: Vec<&str> = path
        .steps
        .iter()
        .map(|step| match step {
            WatchStep::Name(name) => name.as_str(),
            WatchStep::Index(_) => "",
        })
        .collect();
    let number = |source| {
        let kind = WatchKind::Integer { bits: 32, is_signed: false };
        Some(field(kind, WatchMeaning::Plain, source))
    };
    match &names[..] {
        ["event"] | ["event", "name"] => {
            let kind = WatchKind::Integer { bits: 32, is_signed: false };
            Some(field(kind, WatchMeaning::Event, WatchSource::Event))
        }
        ["tid"] | ["ctx", "tid"] => number(WatchSource::Thread),
        ["pid"] | ["ctx", "pid"] => number(WatchSource::Process),
        ["cpu_id"] | ["ctx", "cpu_id"] => number(WatchSource::Cpu),
        ["comm" | "procname"] | ["ctx", "comm" | "procname"] => Some(text(WatchSource::ThreadName, NAME_BYTES)),
        _ => None,
    }
}

/// A path as the table has it.
fn parsed(text: &str) -> Option<WatchPath> {
    let mut steps = Vec::new();
    for part in text.split("->").flat_map(|part| part.split('.')) {
        let (name, index) = match part.split_once('[') {
            Some((name, index)) => (name, Some(index.strip_suffix(']')?.parse().ok()?)),
            None => (part, None),
        };
        steps.push(WatchStep::Name(name.to_owned()));
        steps.extend(index.map(WatchStep::Index));
    }
    Some(WatchPath { is_global: false, steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Option<WatchableEvents> {
        WatchableEvents::of_this_kernel().map_err(|why| println!("NO BTF HERE: not run ({why})")).ok()
    }

    fn kind(events: &WatchableEvents, event: &str, path: &str) -> Result<WatchKind, FoundPath> {
        let fields = events.event(event, false).unwrap_or_else(|| panic!("no {event}"));
        match fields.find(&parsed(path).expect("it is one")) {
            FoundPath::Field(field) => Ok(field.kind),
            other => Err(other),
        }
    }

    #[test]
    fn names_lead_through_pointers() {
        let Some(events) = all() else { return };
        let number = |bits, is_signed| Ok(WatchKind::Integer { bits, is_signed });
        let text = |capacity| Ok(WatchKind::Text { capacity });
        for (event, path, wanted) in [
            ("sched_switch", "prev->pid", number(32, true)),
            ("sched_switch", "next_tid", number(32, true)),
            ("sched_switch", "next_comm", text(16)),
            ("sched_switch", "prev_state", number(16, false)),
            ("sched_switch", "prev", number(64, false)),
            ("sched_switch", "preempt", number(8, false)),
            ("sched_switch", "next.in_execve", number(1, false)),
            ("sched_switch", "comm", text(16)),
            ("netif_receive_skb", "skb->dev->name", text(16)),
            ("netif_receive_skb", "name", text(16)),
            ("irq_handler_entry", "name", text(64)),
            ("sys_exit", "ret", number(64, true)),
            ("sys_enter", "name", number(64, true)),
            ("sys_exit", "cpu_id", number(32, false)),
        ] {
            assert_eq!(kind(&events, event, path), wanted, "{event} {path}");
        }
        assert_eq!(kind(&events, "sched_switch", "prev->se"), Err(FoundPath::Compound("a structure")));
        for path in
            ["next.pid[2]", "next.se[0].load", "next.comm[16]", "next.in_execve[0]", "next[4096].pid", "prev_state[0]"]
        {
            let found = kind(&events, "sched_switch", path);
            assert!(
                matches!(found, Err(FoundPath::Compound(_))),
                "memory behind a member is not read: {path} {found:?}"
            );
        }
        assert_eq!(kind(&events, "sched_switch", "next[1].pid"), number(32, true), "a pointer may lead to several");
        assert!(kind(&events, "sched_switch", "next.comm[15]").is_ok(), "the last letter");
        let long = ["next"; 33].join(".");
        assert_eq!(kind(&events, "sched_switch", &long), Err(FoundPath::Compound("a name of more than 32 parts")));
        let Err(FoundPath::Missing(names)) = kind(&events, "sched_switch", "prev->pidd") else { panic!("none") };
        assert!(names.contains(&"pid".to_owned()));
        assert!(matches!(kind(&events, "sched_switch", "took"), Err(FoundPath::Missing(_))), "nothing has begun");
    }

    /// Each row of the table is about a field that this kernel has, for events that it has.
    #[test]
    fn the_table_is_true() {
        let Some(events) = all() else { return };
        let mut known = 0;
        for name in events.names() {
            let fields = events.event(name, false).unwrap_or_else(|| panic!("{name} has no arguments"));
            for field in fields_of(name) {
                let found = fields.find(&parsed(field.name).expect("it is one"));
                assert!(matches!(found, FoundPath::Field(_)), "{name}: {} is {found:?}", field.name);
                known += 1;
            }
        }
        assert!(known > 80, "{known} fields");
    }
}
