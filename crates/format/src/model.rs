//! The trace class: one model for CTF 1.8, CTF 2 and the CTF 2 release candidate.
//!
//! ```text
//! TraceClass ─┬─ clock classes
//!             └─ data stream classes ── event record classes
//!                  │ packet context       │ specific context
//!                  │ event record header  │ payload
//!                  └ common context       ┘        each scope is one structure field class
//! ```
//!
//! Names follow the CTF 2 specification. CTF 1.8's meaningful *names* (`packet_size`,
//! `timestamp_begin`, `id`) become [`Role`]s here, as in CTF 2, so no code downstream compares
//! names. Every reference to another field (a length, a selector) is resolved to a [`FieldPath`];
//! no code downstream looks names up.

use std::collections::HashSet;

use kymo_units::{ByteOrder, Uuid};

/// User attributes, in the JSON form of CTF 2.
pub type Attributes = serde_json::Value;

/// The trace's whole description of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceClass {
    /// The language of the description.
    pub dialect: Dialect,
    /// CTF 1.8 `trace.uuid`, CTF 2 preamble `uuid`: the identity of the metadata stream.
    pub uuid: Option<Uuid>,
    /// CTF 2 identity.
    pub namespace: Option<String>,
    /// CTF 2 name of the trace.
    pub name: Option<String>,
    /// CTF 2 unique id of the trace.
    pub uid: Option<String>,
    /// CTF 1.8 `trace.byte_order`.
    pub native_byte_order: Option<ByteOrder>,
    /// Entries in the order of the text.
    pub environment: Vec<(String, EnvironmentValue)>,
    /// A structure, or nothing.
    pub packet_header: Option<FieldClass>,
    /// In the order of the text; other parts point here by index.
    pub clock_classes: Vec<ClockClass>,
    /// In the order of the text. At least one: CTF 1.8 without a `stream` block has class 0.
    pub stream_classes: Vec<DataStreamClass>,
    /// User attributes of the trace class.
    pub attributes: Option<Attributes>,
}

/// The language of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// TSDL, CTF 1.8.
    Ctf1,
    /// CTF 2, final.
    Ctf2,
    /// CTF 2 as drafted in SPECRC 7.0, which some writers emitted.
    Ctf2Candidate,
}

/// The value of one environment entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentValue {
    /// A signed integer; an unsigned one above `i64::MAX` fits too.
    Integer(i128),
    /// Text.
    Text(String),
}

/// A clock, and the relation of its cycles to time.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockClass {
    /// CTF 1.8 name, CTF 2 `id`: unique in its trace class.
    pub id: String,
    /// CTF 2 namespace.
    pub namespace: Option<String>,
    /// CTF 1.8 `name`, CTF 2 `name`.
    pub name: Option<String>,
    /// CTF 2 `uid`.
    pub uid: Option<String>,
    /// CTF 1.8 `uuid`.
    pub uuid: Option<Uuid>,
    /// For people.
    pub description: Option<String>,
    /// Cycles in a second, at least 1.
    pub frequency_hz: u64,
    /// In cycles.
    pub precision_cycles: Option<u64>,
    /// In cycles.
    pub accuracy_cycles: Option<u64>,
    /// Whole seconds from the origin to cycle 0.
    pub offset_s: i64,
    /// Further cycles from the origin to cycle 0 (CTF 1.8 allows negative ones).
    pub offset_cycles: i128,
    /// The meaning of time 0.
    pub origin: ClockOrigin,
    /// User attributes.
    pub attributes: Option<Attributes>,
}

/// A clock that counts nanoseconds from an unknown origin: that of CTF 1.8 where nothing else is
/// said.
impl Default for ClockClass {
    fn default() -> Self {
        Self {
            id: String::new(),
            namespace: None,
            name: None,
            uid: None,
            uuid: None,
            description: None,
            frequency_hz: 1_000_000_000,
            precision_cycles: None,
            accuracy_cycles: None,
            offset_s: 0,
            offset_cycles: 0,
            origin: ClockOrigin::Unknown,
            attributes: None,
        }
    }
}

impl ClockClass {
    /// Whole seconds and further cycles, fewer than a second has, from the origin to cycle 0, where
    /// the clock is taken to be `shift_ns` ahead of its own description. Rounded down to a cycle.
    #[must_use]
    pub fn offset_ahead(&self, shift_ns: i64) -> (i64, u64) {
        let frequency = i128::from(self.frequency_hz.max(1));
        let shift = i128::from(shift_ns).saturating_mul(frequency).div_euclid(1_000_000_000);
        let cycles = self.offset_cycles.saturating_add(shift);
        let seconds = i128::from(self.offset_s).saturating_add(cycles.div_euclid(frequency));
        let seconds = seconds.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        (seconds, cycles.rem_euclid(frequency) as u64)
    }
}

/// The meaning of a clock's time 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockOrigin {
    /// 1970-01-01T00:00:00Z (CTF 1.8: `absolute = true`).
    UnixEpoch,
    /// Not given: comparable with no other clock, but with one of the same UUID in CTF 1.8.
    Unknown,
    /// An origin of the producer's own, comparable where all three parts are equal.
    Custom {
        /// Namespace.
        namespace: Option<String>,
        /// Name.
        name: String,
        /// Unique id.
        uid: String,
    },
}

/// One kind of data stream.
#[derive(Clone, Debug, PartialEq)]
pub struct DataStreamClass {
    /// Unique in its trace class.
    pub id: u64,
    /// CTF 2 namespace.
    pub namespace: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// CTF 2 uid.
    pub uid: Option<String>,
    /// Index into [`TraceClass::clock_classes`].
    pub default_clock: Option<usize>,
    /// A structure, or nothing.
    pub packet_context: Option<FieldClass>,
    /// A structure, or nothing.
    pub event_header: Option<FieldClass>,
    /// A structure, or nothing. CTF 1.8 calls it `stream.event.context`.
    pub event_common_context: Option<FieldClass>,
    /// In the order of the text.
    pub event_classes: Vec<EventRecordClass>,
    /// User attributes.
    pub attributes: Option<Attributes>,
}

impl DataStreamClass {
    /// A data stream class without fields, events and a clock.
    #[must_use]
    pub fn empty(id: u64) -> Self {
        Self {
            id,
            namespace: None,
            name: None,
            uid: None,
            default_clock: None,
            packet_context: None,
            event_header: None,
            event_common_context: None,
            event_classes: Vec::new(),
            attributes: None,
        }
    }
}

/// One kind of event record.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecordClass {
    /// Unique in its data stream class.
    pub id: u64,
    /// CTF 2 namespace.
    pub namespace: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// CTF 2 uid.
    pub uid: Option<String>,
    /// CTF 1.8 `loglevel`.
    pub log_level: Option<i64>,
    /// CTF 1.8 `model.emf.uri`.
    pub emf_uri: Option<String>,
    /// A structure, or nothing. CTF 1.8 calls it `event.context`.
    pub specific_context: Option<FieldClass>,
    /// A structure, or nothing. CTF 1.8 calls it `event.fields`.
    pub payload: Option<FieldClass>,
    /// User attributes.
    pub attributes: Option<Attributes>,
}

/// The layout of one field in the bytes and its meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldClass {
    /// Shape and meaning.
    pub kind: FieldKind,
    /// User attributes.
    pub attributes: Option<Box<Attributes>>,
}

/// The shapes of fields.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// Bits without a numeric meaning, at most 64.
    BitArray(FixedBits),
    /// Bits with names.
    BitMap(BitMap),
    /// True if any bit is set.
    Boolean(FixedBits),
    /// Integer of a fixed number of bits.
    Integer(FixedInteger),
    /// Integer in LEB128.
    VariableInteger(VariableInteger),
    /// IEEE 754; `bits.length` gives the format (16, 32, 64, 128...).
    Real(FixedBits),
    /// Text up to and including a zero code unit. Alignment 8.
    NullTerminatedText(TextEncoding),
    /// Text of a fixed length, ending early at a zero code unit. Alignment as given.
    StaticText(StaticText),
    /// Text with its length in another field. Alignment as given.
    DynamicText(DynamicText),
    /// Bytes.
    StaticBlob(StaticBlob),
    /// Bytes with their number in another field.
    DynamicBlob(DynamicBlob),
    /// Named members one after the other.
    Structure(Structure),
    /// A fixed number of equal elements.
    StaticArray(StaticArray),
    /// Equal elements with their number in another field.
    DynamicArray(DynamicArray),
    /// Content or nothing, chosen by another field.
    Optional(Box<Optional>),
    /// One of several contents, chosen by another field.
    Variant(Variant),
}

/// How a fixed number of bits lies in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedBits {
    /// Bits, at least 1; at most 64 except for [`FieldKind::Real`].
    pub length: u32,
    /// Byte order.
    pub byte_order: ByteOrder,
    /// The bit order is not the natural one of the byte order (little-endian: first to last):
    /// the bits of the value are reversed.
    pub reversed: bool,
    /// In bits, a power of two.
    pub alignment: u64,
}

/// A fixed-length integer, enumeration included.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedInteger {
    /// Layout.
    pub bits: FixedBits,
    /// Meaning.
    pub meaning: IntegerMeaning,
}

/// A LEB128 integer, enumeration included. Alignment 8.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableInteger {
    /// Meaning.
    pub meaning: IntegerMeaning,
}

/// The meaning of an integer's value.
#[derive(Clone, Debug, PartialEq)]
pub struct IntegerMeaning {
    /// Two's complement.
    pub signed: bool,
    /// Preferred base for people.
    pub base: DisplayBase,
    /// It is an enumeration (CTF 1.8 `enum`; CTF 2: has mappings).
    pub enumeration: bool,
    /// Labels with their values, in the order of the text. A label may occur again, ranges may
    /// overlap, a value may have none.
    pub mappings: Vec<EnumerationMapping>,
    /// Its uses for readers of packets.
    pub roles: Vec<Role>,
    /// CTF 1.8 `map = clock.X.value`: index into [`TraceClass::clock_classes`]. In CTF 2 the
    /// role [`Role::DefaultClockTimestamp`] with the stream class' clock sets it too.
    pub clock: Option<usize>,
    /// CTF 1.8 `encoding`: the integer is a character.
    pub encoding: Option<TextEncoding>,
}

impl IntegerMeaning {
    /// An unsigned decimal integer.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            signed: false,
            base: DisplayBase::Decimal,
            enumeration: false,
            mappings: Vec::new(),
            roles: Vec::new(),
            clock: None,
            encoding: None,
        }
    }
}

/// The base in which people want to see an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisplayBase {
    /// 2
    Binary,
    /// 8
    Octal,
    /// 10
    #[default]
    Decimal,
    /// 16
    Hexadecimal,
}

/// A label and one or more ranges of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumerationMapping {
    /// Label.
    pub label: String,
    /// At least one.
    pub ranges: Vec<IntegerRange>,
}

/// Both ends are included. Holds every 64-bit value, signed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerRange {
    /// Lowest value.
    pub lower: i128,
    /// Highest value, not below `lower`.
    pub upper: i128,
}

/// Bits with names.
#[derive(Clone, Debug, PartialEq)]
pub struct BitMap {
    /// Layout.
    pub bits: FixedBits,
    /// A name and the bit indexes (0 is the least significant) that show it.
    pub flags: Vec<EnumerationMapping>,
}

/// The use of a field in reading packets. Where several fields have one role, the last read wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Packet header: 0xC1FC1FC1.
    PacketMagicNumber,
    /// Packet header, 16-byte blob: equals [`TraceClass::uuid`].
    MetadataStreamUuid,
    /// Packet header.
    DataStreamClassId,
    /// Packet header. CTF 1.8 `stream_instance_id`.
    DataStreamId,
    /// Packet context, in bits.
    PacketTotalLength,
    /// Packet context, in bits.
    PacketContentLength,
    /// Packet context (time of its beginning) and event record header. Updates the clock.
    DefaultClockTimestamp,
    /// Packet context. Does not update the clock.
    PacketEndDefaultClockTimestamp,
    /// Packet context: free-running count.
    DiscardedEventRecordCounterSnapshot,
    /// Packet context.
    PacketSequenceNumber,
    /// Event record header.
    EventRecordClassId,
}

/// How characters are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TextEncoding {
    /// CTF 1.8 `ASCII`; a subset of UTF-8.
    Ascii,
    #[default]
    Utf8,
    Utf16Be,
    Utf16Le,
    Utf32Be,
    Utf32Le,
}

/// Text of a fixed length.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticText {
    /// In bytes.
    pub length: u64,
    /// Encoding.
    pub encoding: TextEncoding,
    /// In bits: 8 in CTF 2; that of the element in CTF 1.8.
    pub alignment: u64,
}

/// Text with its length in bytes in another field.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicText {
    /// The field with the length in bytes.
    pub length: FieldPath,
    /// Encoding.
    pub encoding: TextEncoding,
    /// In bits: 8 in CTF 2; that of the element in CTF 1.8.
    pub alignment: u64,
}

/// Bytes, alignment 8.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticBlob {
    /// In bytes.
    pub length: u64,
    /// IANA media type.
    pub media_type: String,
    /// [`Role::MetadataStreamUuid`] or nothing.
    pub roles: Vec<Role>,
}

/// Bytes, alignment 8, with their number in another field.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicBlob {
    /// The field with the length in bytes.
    pub length: FieldPath,
    /// IANA media type.
    pub media_type: String,
}

/// Named members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structure {
    /// Names are unique.
    pub members: Vec<Member>,
    /// In bits; the structure aligns to the largest of this and of its members' alignments.
    pub minimum_alignment: u64,
}

/// A named member or option.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// As written (CTF 1.8: with its underscore; see [`display_name`]).
    pub name: String,
    /// Class.
    pub class: FieldClass,
}

/// A fixed number of elements.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticArray {
    /// Number of elements.
    pub length: u64,
    /// Their class.
    pub element: Box<FieldClass>,
    /// In bits; the array aligns to the largest of this and of its element's alignment.
    pub minimum_alignment: u64,
}

/// Elements with their number in another field.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicArray {
    /// The field with the number of elements.
    pub length: FieldPath,
    /// Their class.
    pub element: Box<FieldClass>,
    /// In bits; the array aligns to the largest of this and of its element's alignment.
    pub minimum_alignment: u64,
}

/// Content or nothing. No alignment of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Optional {
    /// The field that decides: a boolean, or an integer with `ranges`.
    pub selector: FieldPath,
    /// The integer values for which the content is there; `None` for a boolean selector.
    pub ranges: Option<Vec<IntegerRange>>,
    /// The content that is there or not.
    pub content: FieldClass,
}

/// One of several contents. No alignment of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The integer field that decides.
    pub selector: FieldPath,
    /// The first option whose ranges hold the selector's value is there; none: the data is invalid.
    pub options: Vec<VariantOption>,
}

/// One content of a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantOption {
    /// As written (CTF 1.8: with its underscore; see [`display_name`]). CTF 2 allows none.
    pub name: Option<String>,
    /// Values of the selector. In CTF 1.8 taken from the labels of the tag enumeration that
    /// equal the name; empty when no label does: the option then never occurs.
    pub ranges: Vec<IntegerRange>,
    /// Class.
    pub class: FieldClass,
}

/// The six places where fields live, in the order in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Scope {
    PacketHeader,
    PacketContext,
    EventHeader,
    EventCommonContext,
    EventSpecificContext,
    EventPayload,
}

/// Where a field that another one needs is: from the structure of a scope downwards.
///
/// The target is read before its user, is an integer or a boolean, and, where the path enters
/// a variant's option, an optional's content or an array's element, the user is inside the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath {
    /// Where the path starts.
    pub scope: Scope,
    /// At least one step.
    pub steps: Vec<FieldPathStep>,
}

/// One step of a path, from a compound field to one inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldPathStep {
    /// Member of a structure, by index.
    Member(usize),
    /// Option of a variant, by index.
    Option(usize),
    /// The option of a variant that is there, whichever it is: for each option the steps inside it. The last
    /// step of its path.
    Selected(Vec<Vec<FieldPathStep>>),
    /// Content of an optional.
    Content,
    /// The element of an array that contains the user.
    Element,
}

impl FieldPath {
    /// The path with the options that are there, as `option_of` gives them for variants.
    #[must_use]
    pub fn resolved(&self, option_of: impl Fn(&Self) -> Option<usize>) -> Option<Self> {
        let mut path = self.clone();
        while let Some(FieldPathStep::Selected(_)) = path.steps.last() {
            let Some(FieldPathStep::Selected(mut options)) = path.steps.pop() else { break };
            let option = option_of(&path).filter(|option| *option < options.len())?;
            path.steps.push(FieldPathStep::Option(option));
            path.steps.append(&mut options[option]);
        }
        Some(path)
    }

    /// How many steps are left when this path has led to the field at `place`, whose steps leave no option open;
    /// `None` if it leads elsewhere.
    #[must_use]
    pub fn left_at(&self, place: &Self) -> Option<usize> {
        let (mut meant, mut place_steps) = (&self.steps[..], &place.steps[..]);
        if self.scope != place.scope {
            return None;
        }
        while let Some((step, rest)) = place_steps.split_first() {
            meant = match (meant.split_first()?, step) {
                ((FieldPathStep::Selected(options), _), FieldPathStep::Option(index)) => options.get(*index)?,
                ((first, after), step) if first == step => after,
                _ => return None,
            };
            place_steps = rest;
        }
        Some(meant.len())
    }
}

/// The name that people see: CTF 1.8 members and options lose one leading underscore.
#[must_use]
pub fn display_name(dialect: Dialect, name: &str) -> &str {
    match dialect {
        Dialect::Ctf1 => name.strip_prefix('_').unwrap_or(name),
        Dialect::Ctf2 | Dialect::Ctf2Candidate => name,
    }
}

/// Gives fields that would be shown under one name more underscores, so that each can be found.
pub(crate) fn tell_apart(members: &mut [Member]) {
    let (protected, others): (Vec<&mut Member>, Vec<_>) =
        members.iter_mut().partition(|member| member.name.starts_with('_'));
    if protected.is_empty() {
        return;
    }
    let mut shown: HashSet<String> = others.iter().map(|member| member.name.clone()).collect();
    for member in protected {
        while !shown.insert(display_name(Dialect::Ctf1, &member.name).to_owned()) {
            member.name.insert(0, '_');
        }
    }
}

impl FieldClass {
    /// A class without attributes.
    #[must_use]
    pub fn new(kind: FieldKind) -> Self {
        Self { kind, attributes: None }
    }

    /// The field at the end of steps that begin here; of several that may be meant the first.
    #[must_use]
    pub fn at(&self, mut steps: &[FieldPathStep]) -> Option<&Self> {
        let mut class = self;
        while !steps.is_empty() {
            (class, steps) = class.further(steps)?;
        }
        Some(class)
    }

    /// The field one step further and the steps that are left; of several options the first
    /// represents all.
    #[must_use]
    pub fn further<'s>(&self, steps: &'s [FieldPathStep]) -> Option<(&Self, &'s [FieldPathStep])> {
        let (step, rest) = steps.split_first()?;
        let class = match (&self.kind, step) {
            (FieldKind::Structure(structure), FieldPathStep::Member(index)) => &structure.members.get(*index)?.class,
            (FieldKind::Variant(variant), FieldPathStep::Option(index)) => &variant.options.get(*index)?.class,
            (FieldKind::Variant(variant), FieldPathStep::Selected(options)) => {
                return Some((&variant.options.first()?.class, options.first()?));
            }
            (FieldKind::Optional(optional), FieldPathStep::Content) => &optional.content,
            (FieldKind::StaticArray(array), FieldPathStep::Element) => &array.element,
            (FieldKind::DynamicArray(array), FieldPathStep::Element) => &array.element,
            _ => return None,
        };
        Some((class, rest))
    }

    /// The alignment of the field in bits: a power of two, 1 when the field has none of its own.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        match &self.kind {
            FieldKind::BitArray(bits) | FieldKind::Boolean(bits) | FieldKind::Real(bits) => bits.alignment,
            FieldKind::BitMap(map) => map.bits.alignment,
            FieldKind::Integer(integer) => integer.bits.alignment,
            FieldKind::StaticText(text) => text.alignment,
            FieldKind::DynamicText(text) => text.alignment,
            FieldKind::VariableInteger(_)
            | FieldKind::NullTerminatedText(_)
            | FieldKind::StaticBlob(_)
            | FieldKind::DynamicBlob(_) => 8,
            FieldKind::Structure(structure) => structure.alignment(),
            FieldKind::StaticArray(array) => array.minimum_alignment.max(array.element.alignment()),
            FieldKind::DynamicArray(array) => array.minimum_alignment.max(array.element.alignment()),
            FieldKind::Optional(_) | FieldKind::Variant(_) => 1,
        }
    }

    /// The meaning, if this is an integer or an enumeration.
    #[must_use]
    pub fn integer_meaning(&self) -> Option<&IntegerMeaning> {
        match &self.kind {
            FieldKind::Integer(integer) => Some(&integer.meaning),
            FieldKind::VariableInteger(integer) => Some(&integer.meaning),
            _ => None,
        }
    }

    /// The roles of this field itself.
    #[must_use]
    pub fn roles(&self) -> &[Role] {
        match &self.kind {
            FieldKind::StaticBlob(blob) => &blob.roles,
            _ => self.integer_meaning().map_or(&[], |meaning| &meaning.roles),
        }
    }
}

impl Structure {
    /// See [`FieldClass::alignment`].
    #[must_use]
    pub fn alignment(&self) -> u64 {
        let members = self.members.iter().map(|member| member.class.alignment());
        members.max().unwrap_or(1).max(self.minimum_alignment)
    }
}

impl IntegerRange {
    /// The range of one value.
    #[must_use]
    pub fn single(value: i128) -> Self {
        Self { lower: value, upper: value }
    }

    /// Whether `value` lies in the range.
    #[must_use]
    pub fn contains(self, value: i128) -> bool {
        self.lower <= value && value <= self.upper
    }
}

impl TraceClass {
    /// A trace class that has nothing.
    pub(crate) fn empty(dialect: Dialect) -> Self {
        Self {
            dialect,
            uuid: None,
            namespace: None,
            name: None,
            uid: None,
            native_byte_order: None,
            environment: Vec::new(),
            packet_header: None,
            clock_classes: Vec::new(),
            stream_classes: Vec::new(),
            attributes: None,
        }
    }

    /// The environment entry of that name.
    #[must_use]
    pub fn environment(&self, name: &str) -> Option<&EnvironmentValue> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}
