//! The context of a program: a structure with the fields of an event; and the moment of the event.
//!
//! ```text
//! struct packet_sent { u32 size; const char *name; char task[16]; u16 ports[4]; };      the program's first argument points to it
//!                      number    pointer to a text   text          list                  members are fields with the same names
//! ```

use kymo_bpf::{BpfObject, BpfValueMember, BpfValueType, BtfTypes, ObjectProgram};
use kymo_format::model::Scope;
use kymo_ir::machine::{RunMoment, data_address};

use crate::messages::{ClassFields, ColumnShape, EventAt, FieldRef, MessageBatch, MessageValue};

/// Bytes of a context at most.
const CONTEXT_MAX: u64 = 1 << 20;

/// How the context of a program is filled for a class of events.
#[derive(Debug)]
pub(super) struct ContextPlan {
    bytes: usize,
    /// Members, and the field of each.
    members: Vec<(BpfValueMember, usize)>,
    /// The object's types, with only those members that the class has.
    pub(super) types: Option<BtfTypes>,
}

impl ContextPlan {
    /// A plan for a class, or why the program does not fit it.
    pub(super) fn new(object: &BpfObject, program: &ObjectProgram, class: &ClassFields) -> Result<Self, String> {
        let types = object.types();
        let structure = types.and_then(|types| Some((types, types.first_argument(&program.name)?)));
        let Some((types, number)) = structure else {
            return Ok(Self { bytes: 0, members: Vec::new(), types: None });
        };
        let BpfValueType::Structure { name, members } = BpfValueType::of(types, number) else {
            return Ok(Self { bytes: 0, members: Vec::new(), types: None });
        };
        let bytes = types.size(number).unwrap_or(0);
        if bytes > CONTEXT_MAX {
            return Err(format!("struct {name} has {bytes} bytes; at most {CONTEXT_MAX} are allowed"));
        }
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for member in members {
            match position(class, &member.name) {
                Some(field) => {
                    let fits = member_fits(&member, &class.fields()[field].shape);
                    fits.map_err(|why| format!("member {} of struct {name} {why}", member.name))?;
                    found.push((member, field));
                }
                None => missing.push(member.name),
            }
        }
        if let Some(member) = missing.first().filter(|_| !object.has_relocations_of(number)) {
            return Err(format!(
                "struct {name} has a member {member}, and the event has no such field: with \
                 __attribute__((preserve_access_index)) the program can ask with bpf_core_field_exists"
            ));
        }
        let kept = types.with_members(number, |name| !missing.iter().any(|missing| **missing == *name));
        Ok(Self { bytes: bytes as usize, members: found, types: Some(kept) })
    }

    /// The context of an event, and the data that it points to; `None`: a field cannot be read.
    pub(super) fn fill(&self, batch: &MessageBatch, at: EventAt) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut context = ContextBytes { bytes: vec![0; self.bytes], data: Vec::new() };
        for (member, field) in &self.members {
            context.put(&member.value_type, member.bit_offset as usize / 8, batch.field(at, *field)?)?;
        }
        Some((context.bytes, context.data))
    }
}

/// The field of a member: of that name, or one whose name is that with other characters than C allows.
fn position(class: &ClassFields, member: &str) -> Option<usize> {
    let in_c = |name: &str| -> String {
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
    };
    class.position(member).or_else(|| class.fields().iter().position(|field| in_c(&field.name) == member))
}

/// Whether values of a field can be those of a member; else why not, to be put behind the member's name.
fn member_fits(member: &BpfValueMember, shape: &ColumnShape) -> Result<(), String> {
    match member.bit_offset % 8 {
        0 => fits(&member.value_type, shape),
        bit => Err(format!(
            "begins at bit {bit} of a byte, and members must begin with a byte: declare it without a number of bits"
        )),
    }
}

/// The same for the type of a member, or of its elements.
fn fits(member: &BpfValueType, shape: &ColumnShape) -> Result<(), String> {
    let narrow = |bits: usize, found: usize| {
        if bits >= found { Ok(()) } else { Err(format!("has {bits} bits, and the event's field has {found}")) }
    };
    match (member, shape) {
        (
            BpfValueType::Integer { bits, .. } | BpfValueType::Enumeration { bits, .. },
            ColumnShape::Integer { cell, .. },
        ) => {
            if matches!(bits, 8 | 16 | 32 | 64) {
                narrow((*bits).into(), 8 * cell.width())
            } else {
                Err(format!("has {bits} bits: members are whole integers of at most 64"))
            }
        }
        (BpfValueType::Integer { bits, .. }, ColumnShape::BitArray { .. } | ColumnShape::BitMap { .. }) => {
            narrow((*bits).into(), 64)
        }
        (BpfValueType::Integer { bits: 8.., .. } | BpfValueType::Bool, ColumnShape::Boolean { .. }) => Ok(()),
        // CTF 1.8 has no truth values: those of programs are integers of a byte.
        (BpfValueType::Bool, ColumnShape::Integer { cell, .. }) if cell.width() == 1 => Ok(()),
        (BpfValueType::Real { bytes }, ColumnShape::Real { cell, .. }) => {
            narrow(8 * usize::from(*bytes), 8 * cell.width())
        }
        (BpfValueType::Pointer | BpfValueType::Text { .. }, ColumnShape::Text { .. } | ColumnShape::Blob { .. }) => {
            Ok(())
        }
        (BpfValueType::Array { element, .. }, ColumnShape::List { element: shape, .. }) => fits(element, shape),
        (BpfValueType::Structure { members, .. }, ColumnShape::Structure { members: shapes }) => {
            members.iter().try_for_each(|member| match shapes.iter().find(|(name, _)| **name == *member.name) {
                Some((_, shape)) => member_fits(member, shape).map_err(|why| format!(".{} {why}", member.name)),
                None => Err(format!("has a member {}, and the event's field has none", member.name)),
            })
        }
        (member, shape) => Err(format!("is {}, and the event's field is {}", member.name(), words(shape))),
    }
}

fn words(shape: &ColumnShape) -> &'static str {
    match shape {
        ColumnShape::Integer { .. } => "an integer",
        ColumnShape::Boolean { .. } => "a truth value",
        ColumnShape::BitArray { .. } | ColumnShape::BitMap { .. } => "64 bits",
        ColumnShape::Real { .. } => "a real number",
        ColumnShape::Text { .. } => "a text (`const char *` or `char [N]`)",
        ColumnShape::Blob { .. } => "bytes (`const char *` or `char [N]`)",
        ColumnShape::List { .. } => "a list (an array)",
        ColumnShape::Structure { .. } => "a structure",
        ColumnShape::Optional { .. } => "one that may be missing",
        ColumnShape::Variant { .. } => "one of several types",
    }
}

struct ContextBytes {
    bytes: Vec<u8>,
    /// Texts, each with a zero byte behind it.
    data: Vec<u8>,
}

impl ContextBytes {
    fn put(&mut self, member: &BpfValueType, at: usize, field: FieldRef<'_>) -> Option<()> {
        match (member, field.value()) {
            (BpfValueType::Array { element, stride, count }, MessageValue::List(_)) => {
                for (index, item) in field.elements().take(*count as usize).enumerate() {
                    self.put(element, at + index * *stride as usize, item)?;
                }
                Some(())
            }
            (BpfValueType::Structure { members, .. }, MessageValue::Structure) => {
                for member in members {
                    let (_, inner) = field.members().find(|(name, _)| *name == &*member.name)?;
                    self.put(&member.value_type, at + member.bit_offset as usize / 8, inner)?;
                }
                Some(())
            }
            (BpfValueType::Pointer, MessageValue::Text(text, _) | MessageValue::Blob(text)) => {
                let address = data_address(u32::try_from(self.data.len()).ok()?);
                self.data.extend(text);
                self.data.push(0);
                self.set(at, &address.to_le_bytes())
            }
            (BpfValueType::Text { bytes }, MessageValue::Text(text, _) | MessageValue::Blob(text)) => {
                let room = (*bytes as usize).saturating_sub(1);
                self.set(at, &text[..text.len().min(room)])
            }
            (BpfValueType::Real { bytes: 4 }, MessageValue::Real(real)) => self.set(at, &(real as f32).to_le_bytes()),
            (BpfValueType::Real { .. }, MessageValue::Real(real)) => self.set(at, &real.to_le_bytes()),
            (BpfValueType::Integer { bits, .. } | BpfValueType::Enumeration { bits, .. }, value) => {
                let number = number(value)?;
                self.set(at, &number.to_le_bytes()[..usize::from(*bits / 8).min(8)])
            }
            (BpfValueType::Bool, value) => self.set(at, &[u8::from(number(value)? != 0)]),
            _ => None,
        }
    }

    fn set(&mut self, at: usize, bytes: &[u8]) -> Option<()> {
        self.bytes.get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
        Some(())
    }
}

fn number(value: MessageValue<'_>) -> Option<u64> {
    match value {
        MessageValue::Unsigned(number) | MessageValue::Bits(number) => Some(number),
        MessageValue::Signed(number) => Some(number as u64),
        MessageValue::Boolean(flag) => Some(flag.into()),
        _ => None,
    }
}

/// Where a fact about the moment of an event is.
#[derive(Clone, Copy, Debug)]
enum FactPlace {
    Nowhere,
    /// A field of the event.
    Event(usize),
    /// A field of its packet.
    Packet(usize),
}

/// Where the facts about a moment are, that a program asks for.
#[derive(Debug)]
pub(super) struct MomentPlan {
    cpu: FactPlace,
    process: FactPlace,
    thread: FactPlace,
    name: FactPlace,
}

impl MomentPlan {
    /// Facts are in contexts: a field of the same name in the payload may be of another thread.
    pub(super) fn new(helpers: &[&str], batch: &MessageBatch, at: EventAt) -> Self {
        let class = batch.class_fields(at);
        let packet = &batch.facts().streams[batch.stream(at)].packet_fields;
        let place = |is_asked: bool, names: &[&str]| {
            let of_event = |name: &&str| {
                let mut fields = class.fields().iter();
                fields
                    .position(|field| field.name == **name && field.scope != Scope::EventPayload)
                    .map(FactPlace::Event)
            };
            let of_packet = |name: &&str| packet.position(name).map(FactPlace::Packet);
            let found = names.iter().find_map(|name| of_event(name).or_else(|| of_packet(name)));
            found.filter(|_| is_asked).unwrap_or(FactPlace::Nowhere)
        };
        let asks = |name: &str| helpers.contains(&name);
        let ids = asks("bpf_get_current_pid_tgid");
        // Maps with values for each CPU ask, too.
        let cpu = place(true, &["cpu_id"]);
        let name = place(asks("bpf_get_current_comm"), &["procname"]);
        Self { cpu, process: place(ids, &["vpid", "pid"]), thread: place(ids, &["vtid", "tid"]), name }
    }

    pub(super) fn at(&self, batch: &MessageBatch, at: EventAt) -> RunMoment {
        let field = |place: FactPlace| match place {
            FactPlace::Nowhere => None,
            FactPlace::Event(field) => batch.field(at, field),
            FactPlace::Packet(field) => batch.packet_field(at, field),
        };
        let small = |place: FactPlace| field(place).and_then(|field| u32::try_from(number(field.value())?).ok());
        let thread_name = field(self.name).and_then(|field| match field.value() {
            MessageValue::Text(text, _) => Some(text.split(|byte| *byte == 0).next().unwrap_or_default().into()),
            _ => None,
        });
        RunMoment {
            nanos: batch.nanos(at).map(|nanos| nanos as u64),
            cpu: small(self.cpu),
            process: small(self.process),
            thread: small(self.thread),
            thread_name,
        }
    }
}
