//! Values of one event: their types, their form for filters, and their recorded bytes.
//!
//! ```text
//! visited ──> values: number, or a place in `texts`
//!               ├─ shape      which fields, of which kinds: one number each
//!               ├─ arguments  what filters see: as a structure in C
//!               └─ bytes      in the lane, texts behind their lengths
//! ```
//!
//! Each thread reuses one [`EventValues`]. Formatting a value may itself record events; such a
//! nested event gets another one.

use std::cell::Cell;
use std::fmt;

use kymo_schema::word;
use kymo_tracer::{Event, FIELD_BYTES_MAX, field};
use tracing_core::field::{Field, Visit};

/// Maximum number of fields of an event; further ones are left out.
pub(crate) const FIELDS_MAX: usize = 250;
/// Maximum capacity in bytes that a thread keeps for its next event.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    U64,
    I64,
    F64,
    Bool,
    Text,
    Bytes,
}

impl ValueKind {
    const ALL: [Self; 6] = [Self::U64, Self::I64, Self::F64, Self::Bool, Self::Text, Self::Bytes];

    /// Names of the type in definitions; the second one is the type of elements.
    pub(crate) fn words(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::U64 => (word::U64, None),
            Self::I64 => (word::I64, None),
            Self::F64 => (word::F64, None),
            Self::Bool => (word::BOOL, None),
            Self::Text => (word::TEXT, None),
            Self::Bytes => (word::SEQUENCE, Some(word::U8)),
        }
    }
}

/// A field and its type, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldShape(u16);

impl FieldShape {
    pub(crate) fn new(index: usize, kind: ValueKind) -> Self {
        Self((index as u16) << 3 | kind as u16)
    }

    /// Index of the field in the callsite, and its type.
    pub(crate) fn field(self) -> (usize, ValueKind) {
        (usize::from(self.0 >> 3), ValueKind::ALL[usize::from(self.0 & 7)])
    }
}

/// A value: a number, or the offset and length of its bytes.
#[derive(Clone, Copy, Debug)]
struct RawValue {
    kind: ValueKind,
    number: u64,
    length: u64,
}

/// Values of one event.
#[derive(Debug, Default)]
pub(crate) struct EventValues {
    shape: Vec<FieldShape>,
    values: Vec<RawValue>,
    texts: Vec<u8>,
    arguments: Vec<u64>,
    varying: Vec<u64>,
    is_cut: bool,
}

thread_local! {
    /// The values that the thread used last.
    static LAST: Cell<Option<Box<EventValues>>> = const { Cell::new(None) };
    /// Nesting depth of events on the thread: above one if formatting a value records events.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether the thread is recording an event, whose values it may be formatting now.
pub(crate) fn is_at_event() -> bool {
    DEPTH.with(Cell::get) > 0
}

/// Guard: the thread is recording an event until this is dropped.
struct AtEvent;

impl Drop for AtEvent {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

impl EventValues {
    /// Collects the values of an event, after the given numbers, and passes them to `then`.
    pub(crate) fn with(numbers: &[u64], visit: impl FnOnce(&mut Self), then: impl FnOnce(&mut Self)) {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        let _at = AtEvent;
        // A thread that is ending has no thread-local values any more.
        let mut values = LAST.try_with(Cell::take).ok().flatten().unwrap_or_default();
        values.begin(numbers);
        visit(&mut values);
        then(&mut values);
        if values.texts.capacity() <= KEPT_BYTES_MAX {
            _ = LAST.try_with(|last| last.set(Some(values)));
        }
    }

    fn begin(&mut self, numbers: &[u64]) {
        self.shape.clear();
        self.values.clear();
        self.texts.clear();
        self.is_cut = false;
        self.values.extend(numbers.iter().map(|number| RawValue { kind: ValueKind::U64, number: *number, length: 0 }));
    }

    /// The fields and their types.
    pub(crate) fn shape(&self) -> &[FieldShape] {
        &self.shape
    }

    fn push(&mut self, field: &Field, kind: ValueKind, number: u64, length: u64) {
        if self.shape.len() < FIELDS_MAX {
            self.shape.push(FieldShape::new(field.index(), kind));
            self.values.push(RawValue { kind, number, length });
        }
    }

    /// Appends bytes that `write` produces, up to the maximum of an event.
    fn push_bytes(&mut self, field: &Field, kind: ValueKind, write: impl FnOnce(&mut BoundedWriter<'_>)) {
        let begin = self.texts.len();
        let mut bounded = BoundedWriter { end: begin + FIELD_BYTES_MAX as usize, into: &mut self.texts, is_cut: false };
        write(&mut bounded);
        self.is_cut |= bounded.is_cut;
        self.push(field, kind, begin as u64, (self.texts.len() - begin) as u64);
    }

    /// Records the values as an event, if it is on and its filter keeps them.
    pub(crate) fn record(&mut self, event: &Event) {
        match event.control() {
            0 => return,
            1 => {}
            _ => {
                self.fill_arguments();
                if !event.is_kept(self.arguments.as_slice()) {
                    return;
                }
            }
        }
        let fixed = self.values.iter().map(|value| match value.kind {
            ValueKind::U64 | ValueKind::I64 | ValueKind::F64 => 8,
            ValueKind::Bool => 1,
            ValueKind::Text | ValueKind::Bytes => 2,
        });
        let fixed = fixed.sum::<u64>();
        let mut varying = self.values.iter().map(|value| value.length).sum::<u64>();
        if fixed + varying > FIELD_BYTES_MAX {
            varying = self.cut(fixed);
        }
        let Some(mut write) = event.enter(fixed + varying) else { return };
        for RawValue { kind, number, length } in &self.values {
            match kind {
                ValueKind::U64 | ValueKind::I64 | ValueKind::F64 => write.put(&number.to_le_bytes()),
                ValueKind::Bool => write.put(&[*number as u8]),
                ValueKind::Text | ValueKind::Bytes => {
                    write.put(&(*length as u16).to_le_bytes());
                    write.put(&self.texts[*number as usize..(*number + *length) as usize]);
                }
            }
        }
        if self.is_cut {
            write.was_cut();
        }
        write.leave();
    }

    /// Cuts the longest values; texts at a character boundary. Returns the remaining bytes.
    #[cold]
    fn cut(&mut self, fixed: u64) -> u64 {
        self.varying.clear();
        self.varying.extend(self.values.iter().map(|value| value.length));
        let pieces = vec![1; self.varying.len()];
        self.is_cut |= field::cut(&mut self.varying, &pieces, fixed);
        for (value, bytes) in self.values.iter_mut().zip(&self.varying) {
            let begin = value.number as usize;
            if *bytes < value.length {
                value.length = match value.kind {
                    ValueKind::Text => floor(&self.texts[begin..], *bytes as usize) as u64,
                    _ => *bytes,
                };
            }
        }
        self.values.iter().map(|value| value.length).sum()
    }

    /// Builds the form that filters see: a C structure with these members.
    fn fill_arguments(&mut self) {
        self.arguments.clear();
        // Offset of the next flag; every other member begins a new word.
        let mut flag = 0;
        for RawValue { kind, number, length } in &self.values {
            match kind {
                ValueKind::Bool => {
                    if flag % 8 == 0 {
                        flag = 8 * self.arguments.len();
                        self.arguments.push(0);
                    }
                    self.arguments[flag / 8] |= number << (8 * (flag % 8));
                    flag += 1;
                    continue;
                }
                ValueKind::U64 | ValueKind::I64 | ValueKind::F64 => self.arguments.push(*number),
                ValueKind::Text | ValueKind::Bytes => {
                    let address = self.texts[*number as usize..].as_ptr().expose_provenance() as u64;
                    self.arguments.extend([address, *length]);
                }
            }
            flag = 0;
        }
    }
}

/// Beginning of the character that contains byte `end`.
fn floor(text: &[u8], end: usize) -> usize {
    let is_inside = |at: &usize| text.get(*at).is_some_and(|byte| byte & 0xC0 == 0x80);
    (0..=end.min(text.len())).rev().find(|at| !is_inside(at)).unwrap_or(0)
}

/// A writer that accepts bytes while there is room.
struct BoundedWriter<'a> {
    into: &'a mut Vec<u8>,
    end: usize,
    is_cut: bool,
}

impl BoundedWriter<'_> {
    fn put(&mut self, bytes: &[u8], length: usize) {
        self.is_cut |= length < bytes.len();
        self.into.extend_from_slice(&bytes[..length]);
    }
}

impl fmt::Write for BoundedWriter<'_> {
    /// Returns an error once a text exceeds the room or has a zero: the formatter can stop, because
    /// further text would be dropped.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Readers end a text at its first zero, and filters have to see the same text.
        let zero = text.find('\0');
        let text = &text[..zero.unwrap_or(text.len())];
        self.put(text.as_bytes(), text.floor_char_boundary(self.end - self.into.len()));
        if self.is_cut || zero.is_some() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Collects the types of values without reading them.
#[derive(Debug, Default)]
pub(crate) struct KindCollector(Vec<FieldShape>);

impl KindCollector {
    pub(crate) fn shape(&self) -> &[FieldShape] {
        &self.0
    }

    fn push(&mut self, field: &Field, kind: ValueKind) {
        if self.0.len() < FIELDS_MAX {
            self.0.push(FieldShape::new(field.index(), kind));
        }
    }
}

impl Visit for KindCollector {
    fn record_f64(&mut self, field: &Field, _: f64) {
        self.push(field, ValueKind::F64);
    }

    fn record_i64(&mut self, field: &Field, _: i64) {
        self.push(field, ValueKind::I64);
    }

    fn record_u64(&mut self, field: &Field, _: u64) {
        self.push(field, ValueKind::U64);
    }

    fn record_bool(&mut self, field: &Field, _: bool) {
        self.push(field, ValueKind::Bool);
    }

    fn record_bytes(&mut self, field: &Field, _: &[u8]) {
        self.push(field, ValueKind::Bytes);
    }

    fn record_debug(&mut self, field: &Field, _: &dyn fmt::Debug) {
        self.push(field, ValueKind::Text);
    }
}

impl Visit for EventValues {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field, ValueKind::F64, value.to_bits(), 0);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, ValueKind::I64, value as u64, 0);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, ValueKind::U64, value, 0);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, ValueKind::Bool, value.into(), 0);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push_bytes(field, ValueKind::Text, |bounded| _ = fmt::Write::write_str(bounded, value));
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        let length = value.len().min(FIELD_BYTES_MAX as usize);
        self.push_bytes(field, ValueKind::Bytes, |bounded| bounded.put(value, length));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push_bytes(field, ValueKind::Text, |bounded| {
            _ = fmt::Write::write_fmt(bounded, format_args!("{value:?}"));
        });
    }
}
