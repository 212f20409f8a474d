//! How records of one kind become events of a trace: their fields, and the steps that write them.
//!
//! ```text
//! record    common fields │ comm[16] pid prio ... │ texts that fields point to
//! steps     copy 16, copy 4, subtract 100, ...
//! event     u16 id, u32 ticks │ comm[16] tid prio ...          packed, little-endian
//! ```

use std::collections::HashMap;

use kymo_format::model::{
    DisplayBase, DynamicArray, FieldClass, FieldKind, FieldPath, FieldPathStep, FixedBits, FixedInteger,
    IntegerMeaning, Member, Scope, StaticArray, StaticText, Structure, TextEncoding,
};
use kymo_units::ByteOrder;

use crate::format::{EventFormat, FormatField, FormatShape};
use crate::names::{FieldMaking, field_name, request_bits, thread_state};

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
    /// Its fields: a structure.
    pub payload: FieldClass,
    steps: Vec<PlanStep>,
    /// Bytes that a record has at least.
    record_bytes: u32,
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
}

impl KernelThreads {
    /// A thread belongs to a process.
    pub fn knows(&mut self, tid: u32, process: u32) {
        self.processes.insert(tid, process);
    }

    /// The process of a thread.
    #[must_use]
    pub fn process(&self, tid: u32) -> Option<u32> {
        self.processes.get(&tid).copied()
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

/// Facts from outside of a record.
#[derive(Debug)]
pub struct RecordContext<'a> {
    /// The CPU.
    pub cpu: u32,
    /// Processes of threads.
    pub threads: &'a mut KernelThreads,
}

/// Collects fields and steps.
#[derive(Debug, Default)]
pub(crate) struct PlanBuilder {
    members: Vec<Member>,
    steps: Vec<PlanStep>,
    record_bytes: u32,
}

impl EventPlan {
    /// The plan for an event, with LTTng's names.
    #[must_use]
    pub fn of(format: &EventFormat) -> Self {
        let mut builder = PlanBuilder::default();
        let is_fork = format.system == "sched" && format.name == "sched_process_fork";
        for field in &format.fields {
            builder.field(&format.system, field);
        }
        let offset = |fields: &[FormatField], name: &str| {
            fields.iter().find(|field| field.name == name && field.size == 4).map(|field| field.offset)
        };
        if is_fork
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
        builder.build(crate::names::event_name(&format.system, &format.name))
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
            (_, FormatShape::Scalar, Some(size)) => {
                let class = integer(size, field.is_signed, field.is_pointer());
                self.add(name, class, PlanStep::Copy { from, bytes: size.into() }, end);
            }
            (_, FormatShape::Located | FormatShape::LocatedBehind, _) => {
                self.located(name, field, end);
            }
            (_, FormatShape::Array(_) | FormatShape::Scalar, _) => {
                self.add(name, array(field), PlanStep::Copy { from, bytes: field.size }, end);
            }
        }
    }

    fn located(&mut self, name: &str, field: &FormatField, end: u32) {
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

    fn add(&mut self, name: &str, class: FieldClass, step: PlanStep, end: u32) {
        self.member(name, class);
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
    }

    pub(crate) fn build(self, name: String) -> EventPlan {
        let structure = Structure { members: self.members, minimum_alignment: 8 };
        let payload = FieldClass::new(FieldKind::Structure(structure));
        EventPlan { name, payload, steps: self.steps, record_bytes: self.record_bytes }
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
