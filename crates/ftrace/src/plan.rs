//! How records of one kind become events of a trace: their fields, and the steps that write them.
//!
//! ```text
//! record    common fields │ comm[16] pid prio ... │ texts that fields point to
//! steps     copy 16, copy 4, subtract 100, ...
//! event     u16 id, u32 ticks │ comm[16] tid prio ...          packed, little-endian
//! ```

use std::collections::HashMap;

use kymo_format::model::{
    DisplayBase, DynamicArray, EnumerationMapping, FieldClass, FieldKind, FieldPath, FieldPathStep, FixedBits,
    FixedInteger, IntegerMeaning, IntegerRange, Member, Scope, StaticArray, StaticText, Structure, TextEncoding,
};
use kymo_units::ByteOrder;

use crate::format::{EventFormat, FormatField, FormatShape};
use crate::names::{FieldMaking, field_name, has_system, request_bits, thread_state};
use crate::print::PrintFacts;

/// Arguments of a system call at most.
pub const ARGUMENTS_MAX: usize = 6;
/// Bytes before an event's fields: `u16` id, `u32` low half of the ticks.
pub const EVENT_HEAD_BYTES: usize = 6;
/// Real-time priorities, which LTTng does not count.
const REAL_TIME_PRIORITIES: i32 = 100;
/// Bytes of the name of a thread, with a zero at least.
pub(crate) const THREAD_NAME: usize = 16;
/// Fields with such names, which newer kernels put behind the fixed part of a record.
const THREAD_NAMES: [&str; 5] = ["comm", "parent_comm", "child_comm", "oldcomm", "newcomm"];
/// The flag of `clone` for threads of the same process.
const CLONE_THREAD: u64 = 0x1_0000;

/// An event of a trace, and how its bytes are made.
#[derive(Clone, Debug)]
pub struct EventPlan {
    /// Its name.
    pub name: String,
    /// The kernel's name, as `SYSTEM:NAME`; empty: it is that of a probe.
    pub kernel: String,
    /// Fields before those that only some events have: a structure.
    pub context: Option<FieldClass>,
    /// Its fields: a structure.
    pub payload: FieldClass,
    steps: Vec<PlanStep>,
    /// For each field, how it is made; `None`: by the step of another one.
    sources: Vec<Option<PlanStep>>,
    /// Bytes that a record has at least.
    record_bytes: u32,
    context_bytes: u32,
}

/// Where a record has the value of a field, for conditions that the kernel asks of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedPlace {
    /// This very number, at that byte.
    Number {
        /// The first byte.
        offset: u32,
    },
    /// A number that is greater by this.
    Greater {
        /// The first byte.
        offset: u32,
        /// By how much.
        by: i32,
    },
    /// This very text, or the number that tells where it is.
    Text {
        /// The first byte.
        offset: u32,
    },
}

/// A record is not as its description says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableRecord {
    /// It has fewer bytes than its fields.
    #[error("a record of {bytes} bytes has fields up to byte {needed}")]
    Short {
        /// Bytes of it.
        bytes: usize,
        /// Bytes of its fields.
        needed: u32,
    },
    /// A field points outside of it.
    #[error("a record of {bytes} bytes has a field that points outside of it")]
    Outside {
        /// Bytes of it.
        bytes: usize,
    },
}

/// A part of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlanStep {
    /// Bytes as they are.
    Copy {
        from: u32,
        bytes: u32,
    },
    /// An integer of other size.
    Integer {
        from: u32,
        size: u8,
        is_signed: bool,
        to: u8,
    },
    /// A priority.
    Priority {
        from: u32,
    },
    /// The state of a thread, and the kernel's own number of it.
    State {
        from: u32,
        size: u8,
    },
    /// Letters that mean bits.
    Letters {
        from: u32,
        bytes: u32,
    },
    /// Text up to a zero byte.
    Text {
        place: LocatedBytes,
    },
    /// The name of a thread, with zeros up to its length.
    ThreadName {
        place: LocatedBytes,
    },
    /// A number of elements, and those.
    Elements {
        place: LocatedBytes,
        element: u32,
    },
    /// The text of an argument of a call, as another source tells it.
    UserText {
        argument: u8,
    },
    /// Which of these texts are not known, although there is an address of them.
    UnknownTexts {
        texts: u8,
        arguments: u32,
    },
    /// The process of the thread that forks, and that of the new thread.
    Parent {
        tid: u32,
    },
    Child {
        tid: u32,
    },
}

/// Where a field says that its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LocatedBytes {
    from: u32,
    is_behind: bool,
}

/// Processes of threads, as forks tell them.
#[derive(Clone, Debug, Default)]
pub struct KernelThreads {
    processes: HashMap<u32, u32>,
    /// The thread that was made last on each CPU, and with which flags: its fork comes next.
    new: HashMap<u32, (u32, u64)>,
    /// Names of threads, if they are kept.
    names: Option<HashMap<u32, Vec<u8>>>,
}

impl KernelThreads {
    /// A thread belongs to a process.
    pub fn knows(&mut self, tid: u32, process: u32) {
        self.processes.insert(tid, process);
    }

    /// Keeps names of threads from now on.
    pub fn keep_names(&mut self) {
        self.names.get_or_insert_default();
    }

    /// A thread has a name.
    pub fn names(&mut self, tid: u32, name: &[u8]) {
        if let Some(names) = &mut self.names {
            names.insert(tid, name.to_owned());
        }
    }

    /// The names that were kept: no more are kept from now on.
    pub fn take_names(&mut self) -> HashMap<u32, Vec<u8>> {
        self.names.take().unwrap_or_default()
    }

    /// The process of a thread.
    #[must_use]
    pub fn process(&self, tid: u32) -> Option<u32> {
        self.processes.get(&tid).copied()
    }

    /// Learns of threads that are not known from a copy, which has learned of later records.
    pub fn take_unknown(&mut self, later: Self) {
        for (tid, process) in later.processes {
            self.processes.entry(tid).or_insert(process);
        }
    }

    /// A thread was made on a CPU.
    pub(crate) fn made(&mut self, cpu: u32, tid: u32, flags: u64) {
        self.new.insert(cpu, (tid, flags));
    }

    fn forked(&mut self, cpu: u32, parent: u32, child: u32) -> Option<u32> {
        let flags = self.new.remove(&cpu).filter(|(tid, _)| *tid == child).map(|(_, flags)| flags)?;
        let process = if flags & CLONE_THREAD == 0 { Some(child) } else { self.process(parent) };
        process.inspect(|process| self.knows(child, *process))
    }
}

/// What is known of a call besides its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownTexts {
    /// Texts of its arguments.
    pub texts: [Option<Box<[u8]>>; ARGUMENTS_MAX],
}

/// Nothing is known.
pub static NO_TEXTS: KnownTexts = KnownTexts { texts: [const { None }; ARGUMENTS_MAX] };

/// Facts from outside of a record.
#[derive(Debug)]
pub struct RecordContext<'a> {
    /// The CPU.
    pub cpu: u32,
    /// Processes of threads.
    pub threads: &'a mut KernelThreads,
    /// Texts of the arguments of a call, as far as they are known.
    pub texts: &'a KnownTexts,
}

/// Collects fields and steps.
#[derive(Debug, Default)]
pub(crate) struct PlanBuilder {
    context: Option<FieldClass>,
    members: Vec<Member>,
    steps: Vec<PlanStep>,
    sources: Vec<Option<PlanStep>>,
    record_bytes: u32,
    context_bytes: u32,
}

impl EventPlan {
    /// The plan for an event, with LTTng's names.
    #[must_use]
    pub fn of(format: &EventFormat) -> Self {
        let mut builder = PlanBuilder::default();
        for field in &format.fields {
            builder.field(&format.system, field);
        }
        if !has_system(&format.system) {
            builder.named_values(&format.print);
        }
        let offset = |fields: &[FormatField], name: &str| {
            fields.iter().find(|field| field.name == name && field.size == 4).map(|field| field.offset)
        };
        if is_fork(format)
            && let (Some(parent), Some(child)) =
                (offset(&format.fields, "parent_pid"), offset(&format.fields, "child_pid"))
        {
            builder.add("parent_pid", integer(4, true, false), PlanStep::Parent { tid: parent }, parent + 4);
            builder.add("child_pid", integer(4, true, false), PlanStep::Child { tid: child }, child + 4);
        }
        if format.system == "block"
            && format.field("comm").is_some()
            && let Some(tid) = offset(&format.common, "common_pid")
        {
            builder.add("tid", integer(4, true, false), PlanStep::Copy { from: tid, bytes: 4 }, tid + 4);
        }
        let kernel = format!("{}:{}", format.system, format.name);
        builder.build(crate::names::event_name(&format.system, &format.name), kernel)
    }

    /// Writes an event: its header with this id, and its fields.
    ///
    /// # Errors
    ///
    /// The record is not as its description says; nothing of it is written.
    #[inline]
    pub fn write(
        &self,
        (id, ticks): (u16, u64),
        record: &[u8],
        context: &mut RecordContext<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), UnreadableRecord> {
        if record.len() < self.record_bytes as usize {
            return Err(UnreadableRecord::Short { bytes: record.len(), needed: self.record_bytes });
        }
        let begin = into.len();
        into.extend_from_slice(&id.to_le_bytes());
        into.extend_from_slice(&(ticks as u32).to_le_bytes());
        for step in &self.steps {
            if step.write(record, context, into).is_none() {
                into.truncate(begin);
                return Err(UnreadableRecord::Outside { bytes: record.len() });
            }
        }
        Ok(())
    }

    /// Where a record has the value of a field, by the number of the field in the payload; `None`: it is made of other values.
    #[must_use]
    pub fn place(&self, field: usize) -> Option<AskedPlace> {
        let FieldKind::Structure(payload) = &self.payload.kind else { return None };
        let kind = &payload.members.get(field)?.class.kind;
        match (self.sources.get(field).copied().flatten()?, kind) {
            (PlanStep::Copy { from: offset, .. }, FieldKind::Integer(_)) => Some(AskedPlace::Number { offset }),
            (PlanStep::Copy { from: offset, .. }, FieldKind::StaticText(_)) => Some(AskedPlace::Text { offset }),
            (PlanStep::Priority { from: offset }, _) => Some(AskedPlace::Greater { offset, by: REAL_TIME_PRIORITIES }),
            (PlanStep::Text { place } | PlanStep::ThreadName { place }, _) => {
                Some(AskedPlace::Text { offset: place.from })
            }
            _ => None,
        }
    }

    /// Bytes of an event before its payload.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        EVENT_HEAD_BYTES + self.context_bytes as usize
    }

    /// Whether its records tell which process a thread belongs to.
    #[must_use]
    pub fn tells_of_threads(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, PlanStep::Child { .. }))
    }

    /// Learns of the threads of an event that is not written.
    pub fn learn(&self, record: &[u8], cpu: u32, threads: &mut KernelThreads) {
        if self.tells_of_threads() {
            let _ = self.write((0, 0), record, &mut RecordContext { cpu, threads, texts: &NO_TEXTS }, &mut Vec::new());
        }
    }
}

/// Whether an event is that of a new thread.
pub(crate) fn is_fork(format: &EventFormat) -> bool {
    format.system == "sched" && format.name == "sched_process_fork"
}

impl PlanStep {
    #[inline]
    fn write(&self, record: &[u8], context: &mut RecordContext<'_>, into: &mut Vec<u8>) -> Option<()> {
        match *self {
            Self::Copy { from, bytes } => into.extend_from_slice(part(record, from, bytes)?),
            Self::Integer { from, size, is_signed, to } => {
                let value = value(record, from, size, is_signed)?;
                into.extend_from_slice(value.to_le_bytes().get(..usize::from(to))?);
            }
            Self::Priority { from } => {
                let value = value(record, from, 4, true)? as i32;
                into.extend_from_slice(&value.wrapping_sub(REAL_TIME_PRIORITIES).to_le_bytes());
            }
            Self::State { from, size } => {
                let kernel = value(record, from, size, true)?;
                into.extend_from_slice(&thread_state(kernel).to_le_bytes());
                into.extend_from_slice(&(kernel as u16).to_le_bytes());
            }
            Self::Letters { from, bytes } => {
                into.extend_from_slice(&request_bits(part(record, from, bytes)?).to_le_bytes());
            }
            Self::Text { place } => {
                let text = place.of(record)?;
                let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
                into.extend_from_slice(&text[..end]);
                into.push(0);
            }
            Self::ThreadName { place } => {
                let text = place.of(record)?;
                let end = text.iter().take(THREAD_NAME - 1).position(|byte| *byte == 0);
                let end = end.unwrap_or(text.len().min(THREAD_NAME - 1));
                into.extend_from_slice(&text[..end]);
                into.resize(into.len() + THREAD_NAME - end, 0);
            }
            Self::Elements { place, element } => {
                let bytes = place.of(record)?;
                let count = bytes.len() as u32 / element;
                into.extend_from_slice(&count.to_le_bytes());
                into.extend_from_slice(&bytes[..(count * element) as usize]);
            }
            Self::UserText { argument } => {
                let text = context.texts.texts[usize::from(argument)].as_deref().unwrap_or_default();
                let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
                into.extend_from_slice(&text[..end]);
                into.push(0);
            }
            Self::UnknownTexts { texts, arguments } => {
                let mut unknown = 0;
                for (at, known) in (0..).zip(&context.texts.texts) {
                    let is_there = value(record, arguments + 8 * at, 8, false)? != 0;
                    unknown |= u8::from(known.is_none() && is_there) << at;
                }
                into.push(unknown & texts);
            }
            Self::Parent { tid } => {
                let tid = value(record, tid, 4, false)? as u32;
                let process = context.threads.process(tid).map_or(-1, |process| process as i32);
                into.extend_from_slice(&process.to_le_bytes());
            }
            Self::Child { tid } => {
                let child = value(record, tid, 4, false)? as u32;
                // The thread that forks is the one that runs.
                let parent = value(record, COMMON_PID, 4, false)? as u32;
                let process = context.threads.forked(context.cpu, parent, child).map_or(-1, |process| process as i32);
                into.extend_from_slice(&process.to_le_bytes());
            }
        }
        Some(())
    }
}

/// Where all records have the number of the thread that runs.
pub(crate) const COMMON_PID: u32 = 4;

/// The thread that ran when a record was made; 0 for those of no CPU's turn, and in a record that is too short.
#[must_use]
#[inline]
pub fn record_thread(record: &[u8]) -> i32 {
    value(record, COMMON_PID, 4, true).unwrap_or(0) as i32
}

impl LocatedBytes {
    fn of(self, record: &[u8]) -> Option<&[u8]> {
        let number = value(record, self.from, 4, false)? as u32;
        let begin = (number & 0xffff) + if self.is_behind { self.from + 4 } else { 0 };
        part(record, begin, number >> 16)
    }
}

#[inline]
pub(crate) fn part(record: &[u8], from: u32, bytes: u32) -> Option<&[u8]> {
    record.get(from as usize..)?.get(..bytes as usize)
}

/// The value of an integer of 1 to 8 bytes.
#[inline]
pub(crate) fn value(record: &[u8], from: u32, size: u8, is_signed: bool) -> Option<i64> {
    let bytes = part(record, from, size.into())?;
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let unused = 64 - 8 * u32::from(size);
    let value = i64::from_le_bytes(all);
    Some(if is_signed { value << unused >> unused } else { value })
}

impl PlanBuilder {
    /// A field with LTTng's name.
    fn field(&mut self, system: &str, field: &FormatField) {
        let (name, making) = field_name(system, &field.name);
        let (from, end) = (field.offset, field.offset + field.size);
        let size = u8::try_from(field.size).ok().filter(|size| matches!(size, 1 | 2 | 4 | 8));
        match (making, field.shape, size) {
            (FieldMaking::Priority, FormatShape::Scalar, Some(4)) => {
                self.add(name, integer(4, true, false), PlanStep::Priority { from }, end);
            }
            (FieldMaking::State, FormatShape::Scalar, Some(size)) => {
                self.add(name, integer(8, true, false), PlanStep::State { from, size }, end);
                self.member("prev_state_kernel", integer(2, false, true));
            }
            (FieldMaking::Letters, FormatShape::Array(bytes), _) => {
                self.add(name, integer(4, false, false), PlanStep::Letters { from, bytes }, end);
            }
            (FieldMaking::MemoryFlags, FormatShape::Scalar, Some(8)) => {
                self.integer(name, (from, 8), (4, false, false));
            }
            (_, FormatShape::Scalar, Some(size)) => {
                let class = integer(size, field.is_signed, field.is_pointer() || making == FieldMaking::Code);
                self.add(name, class, PlanStep::Copy { from, bytes: size.into() }, end);
            }
            (_, FormatShape::Located | FormatShape::LocatedBehind, _) => {
                self.located(name, field, end);
            }
            (_, FormatShape::Array(_) | FormatShape::Scalar, _) => self.bytes(name, field),
        }
    }

    /// Integers with names of values become enumerations, those with names of bits hexadecimal.
    fn named_values(&mut self, print: &PrintFacts) {
        for member in &mut self.members {
            let FieldKind::Integer(integer) = &mut member.class.kind else { continue };
            if print.flags.contains(&member.name) {
                integer.meaning.base = DisplayBase::Hexadecimal;
            }
            let Some(known) = print.names.iter().find(|known| known.field == member.name) else { continue };
            let (bits, signed) = (integer.bits.length, integer.meaning.signed);
            let lowest = if signed { -(1_i128 << (bits - 1)) } else { 0 };
            let values = lowest..lowest + (1_i128 << bits);
            let mut mappings: Vec<EnumerationMapping> = Vec::new();
            for (value, label) in known.names.iter().filter(|(value, _)| values.contains(value)) {
                let range = IntegerRange { lower: *value, upper: *value };
                match mappings.iter_mut().find(|mapping| mapping.label == *label) {
                    Some(mapping) if mapping.ranges.contains(&range) => {}
                    Some(mapping) => mapping.ranges.push(range),
                    None => mappings.push(EnumerationMapping { label: label.clone(), ranges: vec![range] }),
                }
            }
            integer.meaning.enumeration = !mappings.is_empty();
            integer.meaning.mappings = mappings;
        }
    }

    /// A field as it lies in the record.
    pub(crate) fn bytes(&mut self, name: &str, field: &FormatField) {
        let step = PlanStep::Copy { from: field.offset, bytes: field.size };
        self.add(name, array(field), step, field.offset + field.size);
    }

    pub(crate) fn located(&mut self, name: &str, field: &FormatField, end: u32) {
        let place = LocatedBytes { from: field.offset, is_behind: field.shape == FormatShape::LocatedBehind };
        if field.is_text() {
            let (class, step) = match THREAD_NAMES.contains(&name) {
                true => (text(THREAD_NAME as u64), PlanStep::ThreadName { place }),
                false => (FieldKind::NullTerminatedText(TextEncoding::Utf8), PlanStep::Text { place }),
            };
            self.add(name, FieldClass::new(class), step, end);
            return;
        }
        let element = match field.element_bytes() {
            element @ (1 | 2 | 4 | 8) => element,
            _ => 1,
        };
        self.member(&format!("_{name}_length"), integer(4, false, false));
        let length =
            FieldPath { scope: Scope::EventPayload, steps: vec![FieldPathStep::Member(self.members.len() - 1)] };
        let element_class = Box::new(integer(element as u8, field.is_signed, field.is_pointer()));
        let class = DynamicArray { length, element: element_class, minimum_alignment: 8 };
        let class = FieldClass::new(FieldKind::DynamicArray(class));
        self.add(name, class, PlanStep::Elements { place, element }, end);
    }

    /// An integer of other size than in the record.
    pub(crate) fn integer(&mut self, name: &str, (from, size): (u32, u8), (to, is_signed, is_hex): (u8, bool, bool)) {
        let step = match size == to {
            true => PlanStep::Copy { from, bytes: size.into() },
            false => PlanStep::Integer { from, size, is_signed, to },
        };
        self.add(name, integer(to, is_signed, is_hex), step, from + u32::from(size));
    }

    /// Equal integers one behind the other.
    pub(crate) fn integers(&mut self, name: &str, (from, size): (u32, u8), count: u32, is_hex: bool) {
        let (length, element) = (count.into(), Box::new(integer(size, false, is_hex)));
        let class = FieldClass::new(FieldKind::StaticArray(StaticArray { length, element, minimum_alignment: 8 }));
        let bytes = u32::from(size) * count;
        self.add(name, class, PlanStep::Copy { from, bytes }, from + bytes);
    }

    /// The text of an argument of a call.
    pub(crate) fn user_text(&mut self, name: &str, argument: u8) {
        let class = FieldClass::new(FieldKind::NullTerminatedText(TextEncoding::Utf8));
        self.add(name, class, PlanStep::UserText { argument }, 0);
    }

    /// Bits of arguments whose texts are not known; arguments begin there.
    pub(crate) fn unknown_texts(&mut self, name: &str, texts: u8, arguments: u32) {
        let end = arguments + 8 * ARGUMENTS_MAX as u32;
        self.add(name, integer(1, false, true), PlanStep::UnknownTexts { texts, arguments }, end);
    }

    fn add(&mut self, name: &str, class: FieldClass, step: PlanStep, end: u32) {
        self.member(name, class);
        *self.sources.last_mut().expect("a member has a place") = Some(step);
        self.record_bytes = self.record_bytes.max(end);
        // Fields that lie one behind the other are one copy.
        if let (Some(PlanStep::Copy { from, bytes }), PlanStep::Copy { from: next, bytes: more }) =
            (self.steps.last_mut(), step)
            && *from + *bytes == next
        {
            *bytes += more;
            return;
        }
        self.steps.push(step);
    }

    fn member(&mut self, name: &str, class: FieldClass) {
        let taken = |name: &str| self.members.iter().any(|member| member.name == name);
        let names = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}_{number}")));
        let name = names.into_iter().find(|name| !taken(name)).expect("numbers do not end");
        self.members.push(Member { name, class });
        self.sources.push(None);
    }

    /// Makes the context of all fields so far.
    pub(crate) fn context(&mut self) {
        let bits = self.members.iter().map(|member| match &member.class.kind {
            FieldKind::Integer(integer) => integer.bits.length,
            _ => unreachable!("a context has numbers alone"),
        });
        self.context_bytes = bits.sum::<u32>() / 8;
        self.context = Some(self.structure());
        self.sources.clear();
    }

    fn structure(&mut self) -> FieldClass {
        let members = std::mem::take(&mut self.members);
        FieldClass::new(FieldKind::Structure(Structure { members, minimum_alignment: 8 }))
    }

    pub(crate) fn build(mut self, name: String, kernel: String) -> EventPlan {
        let payload = self.structure();
        let Self { context, steps, sources, record_bytes, context_bytes, .. } = self;
        EventPlan { name, kernel, context, payload, steps, sources, record_bytes, context_bytes }
    }
}

fn array(field: &FormatField) -> FieldClass {
    let element = match field.element_bytes() {
        element @ (1 | 2 | 4 | 8) => element,
        _ => 1,
    };
    FieldClass::new(if field.is_text() {
        text(field.size.into())
    } else {
        let length = (field.size / element).into();
        let element = Box::new(integer(element as u8, field.is_signed, field.is_pointer()));
        FieldKind::StaticArray(StaticArray { length, element, minimum_alignment: 8 })
    })
}

pub(crate) fn text(length: u64) -> FieldKind {
    FieldKind::StaticText(StaticText { length, encoding: TextEncoding::Utf8, alignment: 8 })
}

pub(crate) fn integer(bytes: u8, signed: bool, is_hex: bool) -> FieldClass {
    let length = 8 * u32::from(bytes);
    let bits = FixedBits { length, byte_order: ByteOrder::Little, reversed: false, alignment: 8 };
    let base = if is_hex { DisplayBase::Hexadecimal } else { DisplayBase::Decimal };
    let meaning = IntegerMeaning { signed, base, ..IntegerMeaning::plain() };
    FieldClass::new(FieldKind::Integer(FixedInteger { bits, meaning }))
}
