//! Filters that the recorder evaluates, on bytes as they are in sub-buffers: packed.
//!
//! ```text
//! u32 port │ u16 n, n bytes: host │ u8 state │ u16 n, n x i32: values │ f64 load
//! 0: 0..                            1: 0..                              2: 0..        stretch: bytes of it
//! ```
//!
//! A *stretch* begins after each field that tells its own length. Each event's stretches are
//! located once, and only as far as a filter needs them. An input outside of the bytes, whatever
//! lengths say, is missing.

use kymo_ir::predicate::{Input, Inputs, Predicate};
use kymo_lane::{KeyHash, WriterThread, contexts};
use kymo_schema::definition::EventClass;
use kymo_schema::field::{FieldType, ScalarType};
use smallvec::SmallVec;

use super::class::ClassFilter;
use super::names::{EventContext, InputSource, ProgramConstants};

/// An event as it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecordedEvent<'a> {
    /// The thread that recorded it.
    pub thread: &'a WriterThread,
    /// Contexts that it carries: [`kymo_lane::contexts`].
    pub contexts: u64,
    /// The bytes of the contexts.
    pub carried: &'a [u8],
    /// The bytes of its fields.
    pub fields: &'a [u8],
}

/// A filter for the recorder to evaluate, on events of one class of a program.
#[derive(Clone, Debug)]
pub struct RecorderFilter {
    predicate: Predicate,
    /// Place of each input.
    places: Vec<RecordedPlace>,
    /// Ends of the first stretches: where the length is in the stretch, and bytes of each counted
    /// element.
    ends: Vec<(usize, usize)>,
    /// Kinds of the program's own contexts, by number.
    own: Vec<Option<FieldType>>,
}

#[derive(Clone, Copy, Debug)]
enum RecordedPlace {
    /// So many bytes after the begin of a stretch.
    Field {
        stretch: usize,
        offset: usize,
        what: RecordedShape,
    },
    Carried(EventContext),
}

#[derive(Clone, Copy, Debug)]
enum RecordedShape {
    One(One),
    /// `u16`, then so many bytes.
    Text,
    /// So many bytes, up to the first zero.
    Fixed(usize),
    /// An element of those after a `u16` that counts them.
    Element(usize, One),
}

/// One value of so many bytes.
#[derive(Clone, Copy, Debug)]
enum One {
    Unsigned(usize),
    Signed(usize),
    Real(usize),
    Boolean,
}

impl ClassFilter {
    /// The filter for the recorder to evaluate.
    #[must_use]
    pub fn asked(&self, class: &EventClass, facts: ProgramConstants<'_>) -> RecorderFilter {
        let mut ends = Vec::new();
        let mut at = 0;
        let fields: Vec<(usize, usize)> = class
            .fields
            .iter()
            .map(|field| {
                let place = (ends.len(), at);
                match size(&field.kind) {
                    Size::Fixed(bytes) => at += bytes,
                    Size::Each(bytes) => {
                        ends.push((at, bytes));
                        at = 0;
                    }
                }
                place
            })
            .collect();
        let place = |source: &InputSource| {
            let (field, index) = match *source {
                InputSource::Field(field) => (usize::from(field), 0),
                InputSource::Element(field, index) => (usize::from(field), index as usize),
                InputSource::Carried(carried) => return RecordedPlace::Carried(carried),
            };
            let (stretch, offset) = fields[field];
            match &class.fields[field].kind {
                FieldType::Scalar(scalar) => {
                    RecordedPlace::Field { stretch, offset, what: RecordedShape::One(one(scalar)) }
                }
                FieldType::Text => RecordedPlace::Field { stretch, offset, what: RecordedShape::Text },
                FieldType::FixedText(bytes) => {
                    RecordedPlace::Field { stretch, offset, what: RecordedShape::Fixed(*bytes as usize) }
                }
                FieldType::Array(element, _) => {
                    let offset = offset + index * usize::from(element.bytes());
                    RecordedPlace::Field { stretch, offset, what: RecordedShape::One(one(element)) }
                }
                FieldType::Sequence(element) => {
                    RecordedPlace::Field { stretch, offset, what: RecordedShape::Element(index, one(element)) }
                }
            }
        };
        let places: Vec<RecordedPlace> = self.sources.iter().map(place).collect();
        let needed =
            |place: &RecordedPlace| if let RecordedPlace::Field { stretch, .. } = place { *stretch } else { 0 };
        ends.truncate(places.iter().map(needed).max().unwrap_or(0));
        let own = facts.contexts.iter().map(|own| own.as_ref().map(|own| own.field.kind.clone())).collect();
        RecorderFilter { predicate: self.predicate.clone(), places, ends, own }
    }
}

/// A key of events of one class, as the recorder reads it: the same hash as in the program.
#[derive(Clone, Debug)]
pub(crate) struct RecorderKey {
    fields: RecorderFilter,
    /// Whether each part is a field; else it is the thread.
    parts: Vec<bool>,
}

impl RecorderKey {
    /// The key of these fields by name; `None`: the thread.
    pub(crate) fn new(class: &EventClass, parts: &[Option<&str>], facts: ProgramConstants<'_>) -> Option<Self> {
        let at = |name: &&str| class.fields.iter().position(|field| field.name == **name);
        let fields: Vec<usize> = parts.iter().flatten().map(at).collect::<Option<_>>()?;
        let parts = parts.iter().map(Option::is_some).collect();
        Some(Self { fields: ClassFilter::of_fields(class, &fields).asked(class, facts), parts })
    }

    /// The hash of the key of an event.
    pub(crate) fn hash(&self, event: &RecordedEvent<'_>, seed: u64) -> u64 {
        let of = FilterEvent { asked: &self.fields, event, begins: self.fields.begins(event) };
        let mut next = 0;
        let parts = self.parts.iter().fold(KeyHash::new(seed), |hash, is_field| {
            if !is_field {
                return hash.number(event.thread.tid.into());
            }
            let input = Input(next);
            next += 1;
            match of.place(input) {
                Some((_, _, RecordedShape::Text | RecordedShape::Fixed(_))) => {
                    hash.text(before_zero(of.text(input).unwrap_or_default()))
                }
                _ => hash.number(of.number(input).unwrap_or(0)),
            }
        });
        parts.word()
    }
}

impl RecorderFilter {
    /// Whether the filter keeps the event.
    #[must_use]
    pub fn keeps(&self, event: &RecordedEvent<'_>) -> bool {
        self.predicate.keeps(&FilterEvent { asked: self, event, begins: self.begins(event) })
    }

    /// Where stretches begin.
    fn begins(&self, event: &RecordedEvent<'_>) -> SmallVec<[usize; 8]> {
        let mut begins = SmallVec::from_slice(&[0]);
        let mut begin = 0_usize;
        for &(at, each) in &self.ends {
            let Some(count) = length(event.fields, begin + at) else { break };
            begin += at + 2 + count * each;
            begins.push(begin);
        }
        begins
    }

    /// Place of a context that the event carries.
    fn carried(&self, event: &RecordedEvent<'_>, wanted: EventContext) -> Option<(usize, RecordedShape)> {
        let mut at = 0;
        let mut has = |bit: u64, bytes: usize, carried: Option<EventContext>| {
            let is_there = event.contexts & bit != 0;
            let begin = at;
            at += if is_there { bytes } else { 0 };
            (is_there && carried == Some(wanted)).then_some(begin)
        };
        let unsigned = |bytes| RecordedShape::One(One::Unsigned(bytes));
        for (bit, bytes, carried, what) in [
            (contexts::CPU, 2, EventContext::Cpu, unsigned(2)),
            (contexts::PID, 4, EventContext::Pid, unsigned(4)),
            (contexts::TID, 4, EventContext::Tid, unsigned(4)),
            (contexts::NAME, 16, EventContext::Name, RecordedShape::Fixed(16)),
            (contexts::IP, 8, EventContext::Ip, unsigned(8)),
        ] {
            if let Some(begin) = has(bit, bytes, Some(carried)) {
                return Some((begin, what));
            }
        }
        if event.contexts & contexts::STACK != 0 {
            at += 2 + 8 * length(event.carried, at)?;
        }
        for (number, own) in (0..).zip(&self.own).take(contexts::OWN_MAX as usize) {
            if event.contexts & contexts::FIRST_OWN << number == 0 {
                continue;
            }
            let kind = own.as_ref()?;
            if wanted == EventContext::Own(number) {
                return Some((
                    at,
                    if let FieldType::Scalar(scalar) = kind {
                        RecordedShape::One(one(scalar))
                    } else {
                        RecordedShape::Text
                    },
                ));
            }
            at += match size(kind) {
                Size::Fixed(bytes) => bytes,
                Size::Each(bytes) => 2 + bytes * length(event.carried, at)?,
            };
        }
        None
    }
}

/// An event that a filter is evaluated on.
struct FilterEvent<'e> {
    asked: &'e RecorderFilter,
    event: &'e RecordedEvent<'e>,
    /// Where stretches begin.
    begins: SmallVec<[usize; 8]>,
}

impl<'e> FilterEvent<'e> {
    /// The bytes that hold an input, its offset in them, and its kind.
    fn place(&self, input: Input) -> Option<(&'e [u8], usize, RecordedShape)> {
        match *self.asked.places.get(usize::from(input.0))? {
            RecordedPlace::Field { stretch, offset, what } => {
                Some((self.event.fields, self.begins.get(stretch)? + offset, what))
            }
            RecordedPlace::Carried(carried) => {
                let (at, what) = self.asked.carried(self.event, carried)?;
                Some((self.event.carried, at, what))
            }
        }
    }

    fn is_carried(&self, input: Input, what: EventContext) -> bool {
        matches!(self.asked.places.get(usize::from(input.0)), Some(RecordedPlace::Carried(carried)) if *carried == what)
    }
}

impl Inputs for FilterEvent<'_> {
    fn number(&self, input: Input) -> Option<u64> {
        let Some((bytes, at, what)) = self.place(input) else {
            // A lane belongs to one thread.
            return self.is_carried(input, EventContext::Tid).then_some(self.event.thread.tid.into());
        };
        match what {
            // This value stands for an unknown CPU.
            RecordedShape::One(one) if self.is_carried(input, EventContext::Cpu) => {
                one.of(bytes, at).filter(|cpu| *cpu != 0xffff)
            }
            RecordedShape::One(one) => one.of(bytes, at),
            RecordedShape::Element(index, one) if index < length(bytes, at)? => {
                one.of(bytes, at + 2 + index * one.bytes())
            }
            RecordedShape::Element(..) | RecordedShape::Text | RecordedShape::Fixed(_) => None,
        }
    }

    fn text(&self, input: Input) -> Option<&[u8]> {
        let Some((bytes, at, what)) = self.place(input) else {
            return self.is_carried(input, EventContext::Name).then(|| before_zero(&self.event.thread.name));
        };
        match what {
            RecordedShape::Text => bytes.get(at + 2..)?.get(..length(bytes, at)?),
            RecordedShape::Fixed(count) => bytes.get(at..)?.get(..count).map(before_zero),
            RecordedShape::One(_) | RecordedShape::Element(..) => None,
        }
    }
}

impl One {
    fn bytes(self) -> usize {
        match self {
            Self::Unsigned(bytes) | Self::Signed(bytes) | Self::Real(bytes) => bytes,
            Self::Boolean => 1,
        }
    }

    /// Its value in 64 bits.
    #[inline]
    fn of(self, bytes: &[u8], at: usize) -> Option<u64> {
        let count = self.bytes();
        let bytes = bytes.get(at..)?.get(..count)?;
        let mut word = [0; 8];
        word[..count].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        let unused = 64 - 8 * count as u32;
        Some(match self {
            Self::Unsigned(_) => word,
            Self::Signed(_) => ((word << unused) as i64 >> unused) as u64,
            Self::Real(4) => f64::from(f32::from_bits(word as u32)).to_bits(),
            Self::Real(_) => word,
            Self::Boolean => u64::from(word != 0),
        })
    }
}

/// Size of a kind.
enum Size {
    Fixed(usize),
    /// `u16`, and so many bytes for each element that it counts.
    Each(usize),
}

fn size(kind: &FieldType) -> Size {
    match kind {
        FieldType::Scalar(scalar) => Size::Fixed(scalar.bytes().into()),
        FieldType::FixedText(bytes) => Size::Fixed(*bytes as usize),
        FieldType::Array(element, count) => Size::Fixed(usize::from(element.bytes()) * *count as usize),
        FieldType::Text => Size::Each(1),
        FieldType::Sequence(element) => Size::Each(element.bytes().into()),
    }
}

fn one(scalar: &ScalarType) -> One {
    match scalar {
        ScalarType::Integer(integer) | ScalarType::Enumeration(integer, _) => match integer.is_signed {
            true => One::Signed(integer.bytes.into()),
            false => One::Unsigned(integer.bytes.into()),
        },
        ScalarType::Real(bytes) => One::Real((*bytes).into()),
        ScalarType::Boolean => One::Boolean,
    }
}

fn length(bytes: &[u8], at: usize) -> Option<usize> {
    let (count, _) = bytes.get(at..)?.split_first_chunk::<2>()?;
    Some(u16::from_le_bytes(*count).into())
}

fn before_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
