//! Field classes of CTF 2.

use std::collections::HashMap;

use kymo_units::ByteOrder;

use crate::budget::FIELDS_MAX;
use crate::json::location::{Frames, ResolvedLocation};
use crate::json::object::{JsonObject, Result, array, integer, ranges, text, unsigned, wrong};
use crate::json::problem::JsonProblem;
use crate::json::reader::{JsonKind, JsonValue};
use crate::model::{
    BitMap, DisplayBase, DynamicArray, DynamicBlob, DynamicText, EnumerationMapping, FieldClass, FieldKind,
    FieldPathStep, FixedBits, FixedInteger, IntegerMeaning, IntegerRange, Member, Optional, Role, Scope, StaticArray,
    StaticBlob, StaticText, Structure, TextEncoding, VariableInteger, Variant, VariantOption,
};

/// Nesting of fields.
const DEPTH_MAX: usize = 64;

/// Field classes that have a name.
pub(crate) type Aliases<'v> = HashMap<String, &'v JsonValue>;

/// Reads the field class of one scope, or of an alias.
pub(crate) struct JsonFieldReader<'a, 'v> {
    pub(crate) aliases: &'a Aliases<'v>,
    pub(crate) frames: Frames<'a>,
    /// The clock of timestamps.
    pub(crate) clock: Option<usize>,
    depth: usize,
    /// A feature of the release candidate occurred.
    pub(crate) candidate: bool,
}

impl<'a, 'v> JsonFieldReader<'a, 'v> {
    pub(crate) fn new(aliases: &'a Aliases<'v>, frames: Frames<'a>, clock: Option<usize>) -> Self {
        Self { aliases, frames, clock, depth: 0, candidate: false }
    }

    /// The class of a scope: a structure.
    pub(crate) fn scope(&mut self, value: &'v JsonValue, property: &str) -> Result<FieldClass> {
        let class = self.class(value)?;
        match class.kind {
            FieldKind::Structure(_) => Ok(class),
            _ => Err((value.span.clone(), JsonProblem::NotStructure(property.to_owned()))),
        }
    }

    /// A class, or the name of one.
    pub(crate) fn class(&mut self, value: &'v JsonValue) -> Result<FieldClass> {
        self.depth += 1;
        if !self.frames.budget.take_fields(1) {
            return Err((value.span.clone(), JsonProblem::Fields(FIELDS_MAX)));
        }
        if self.depth > DEPTH_MAX {
            return Err((value.span.clone(), JsonProblem::Depth(DEPTH_MAX)));
        }
        let class = match &value.kind {
            JsonKind::Text(name) => match self.aliases.get(name) {
                Some(alias) => self.class(alias)?,
                None => {
                    return Err((
                        value.span.clone(),
                        JsonProblem::Unknown { what: "field class alias", name: name.clone() },
                    ));
                }
            },
            _ => self.object(value)?,
        };
        self.depth -= 1;
        let labels = class.integer_meaning().map_or(0, |meaning| meaning.mappings.len());
        if !self.frames.budget.take_fields(labels) {
            return Err((value.span.clone(), JsonProblem::Fields(FIELDS_MAX)));
        }
        Ok(class)
    }

    fn object(&mut self, value: &'v JsonValue) -> Result<FieldClass> {
        let mut object = JsonObject::new(value, "field class")?;
        let kind_value = object.need("type")?;
        let kind_name = text(kind_value, "type")?;
        object.what = format!("`{kind_name}`");
        let kind = self.kind(&object, &kind_name, kind_value)?;
        let attributes = object.attributes()?.map(Box::new);
        object.finish()?;
        Ok(FieldClass { kind, attributes })
    }

    fn kind(&mut self, object: &JsonObject<'v>, name: &str, value: &JsonValue) -> Result<FieldKind> {
        Ok(match name {
            "fixed-length-bit-array" => {
                // Drafts gave bit arrays a base, too; they are always shown in hexadecimal.
                object.get("preferred-display-base");
                FieldKind::BitArray(bits(object)?)
            }
            "fixed-length-bit-map" => FieldKind::BitMap(bit_map(object)?),
            "fixed-length-boolean" => FieldKind::Boolean(bits(object)?),
            "fixed-length-unsigned-integer" => self.integer(object, false, false)?,
            "fixed-length-signed-integer" => self.integer(object, true, false)?,
            "fixed-length-unsigned-enumeration" => self.integer(object, false, true)?,
            "fixed-length-signed-enumeration" => self.integer(object, true, true)?,
            "fixed-length-floating-point-number" => FieldKind::Real(real(object)?),
            "variable-length-unsigned-integer" => self.variable(object, false, false)?,
            "variable-length-signed-integer" => self.variable(object, true, false)?,
            "variable-length-unsigned-enumeration" => self.variable(object, false, true)?,
            "variable-length-signed-enumeration" => self.variable(object, true, true)?,
            "null-terminated-string" => FieldKind::NullTerminatedText(encoding(object)?),
            "static-length-string" => {
                let length = unsigned(object.need("length")?, "length")?;
                FieldKind::StaticText(StaticText { length, encoding: encoding(object)?, alignment: 8 })
            }
            "dynamic-length-string" => {
                let length = self.length(object)?;
                FieldKind::DynamicText(DynamicText { length, encoding: encoding(object)?, alignment: 8 })
            }
            "static-length-blob" => self.static_blob(object)?,
            "dynamic-length-blob" => {
                FieldKind::DynamicBlob(DynamicBlob { length: self.length(object)?, media_type: media_type(object)? })
            }
            "structure" => FieldKind::Structure(self.structure(object)?),
            "static-length-array" => {
                let length = unsigned(object.need("length")?, "length")?;
                let (element, minimum_alignment) = self.elements(object)?;
                FieldKind::StaticArray(StaticArray { length, element, minimum_alignment })
            }
            "dynamic-length-array" => {
                let length = self.length(object)?;
                let (element, minimum_alignment) = self.elements(object)?;
                FieldKind::DynamicArray(DynamicArray { length, element, minimum_alignment })
            }
            "optional" => FieldKind::Optional(Box::new(self.optional(object)?)),
            "variant" => FieldKind::Variant(self.variant(object)?),
            _ => return wrong(value, "type", "the type of a field class"),
        })
    }

    fn integer(&mut self, object: &JsonObject<'v>, signed: bool, old: bool) -> Result<FieldKind> {
        let bits = bits(object)?;
        let meaning = self.meaning(object, signed, old)?;
        Ok(FieldKind::Integer(FixedInteger { bits, meaning }))
    }

    fn variable(&mut self, object: &JsonObject<'v>, signed: bool, old: bool) -> Result<FieldKind> {
        Ok(FieldKind::VariableInteger(VariableInteger { meaning: self.meaning(object, signed, old)? }))
    }

    fn meaning(&mut self, object: &JsonObject<'v>, signed: bool, old: bool) -> Result<IntegerMeaning> {
        self.candidate |= old;
        let base = match object.get("preferred-display-base") {
            None => DisplayBase::Decimal,
            Some(value) => match value.kind {
                JsonKind::Integer(2) => DisplayBase::Binary,
                JsonKind::Integer(8) => DisplayBase::Octal,
                JsonKind::Integer(10) => DisplayBase::Decimal,
                JsonKind::Integer(16) => DisplayBase::Hexadecimal,
                _ => return wrong(value, "preferred-display-base", "2, 8, 10 or 16"),
            },
        };
        let mappings = match object.get("mappings") {
            None if old => {
                let missing = JsonProblem::Missing { what: object.what.clone(), property: "mappings" };
                return Err((object.span.clone(), missing));
            }
            None => Vec::new(),
            Some(value) => mappings(value, signed)?,
        };
        let roles = if signed { Vec::new() } else { self.roles(object)? };
        let timed = |role: &Role| matches!(role, Role::DefaultClockTimestamp | Role::PacketEndDefaultClockTimestamp);
        let clock = if roles.iter().any(timed) { self.clock } else { None };
        let enumeration = !mappings.is_empty();
        Ok(IntegerMeaning { signed, base, enumeration, mappings, roles, clock, encoding: None })
    }

    fn roles(&self, object: &JsonObject<'v>) -> Result<Vec<Role>> {
        let Some(value) = object.get("roles") else { return Ok(Vec::new()) };
        let role = |value: &JsonValue| {
            let name = text(value, "roles")?;
            let unknown = || (value.span.clone(), JsonProblem::Unknown { what: "role", name: name.clone() });
            ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role).ok_or_else(unknown)
        };
        let roles: Vec<Role> = array(value, "roles")?.iter().map(role).collect::<Result<_>>()?;
        // In other scopes than its own a role means nothing.
        Ok(roles.into_iter().filter(|role| self.frames.scope.is_none_or(|scope| belongs(*role, scope))).collect())
    }

    fn static_blob(&mut self, object: &JsonObject<'v>) -> Result<FieldKind> {
        let length_value = object.need("length")?;
        let length = unsigned(length_value, "length")?;
        let roles = self.roles(object)?;
        if roles.contains(&Role::MetadataStreamUuid) && length != 16 {
            return wrong(length_value, "length", "16 for a UUID");
        }
        Ok(FieldKind::StaticBlob(StaticBlob { length, media_type: media_type(object)?, roles }))
    }

    fn structure(&mut self, object: &JsonObject<'v>) -> Result<Structure> {
        let minimum_alignment = alignment(object, "minimum-alignment")?;
        let members = object.get("member-classes").map_or(Ok(&[][..]), |value| array(value, "member-classes"))?;
        self.frames.enter();
        for (index, value) in members.iter().enumerate() {
            let member = JsonObject::new(value, "member class")?;
            let name_value = member.need("name")?;
            let name = text(name_value, "name")?;
            if self.frames.declares(&name) {
                return Err((name_value.span.clone(), JsonProblem::Twice(format!("the member `{name}`"))));
            }
            let class_value = member.need("field-class")?;
            member.attributes()?;
            member.finish()?;
            self.frames.steps.push(FieldPathStep::Member(index));
            let class = self.class(class_value)?;
            self.frames.steps.pop();
            self.frames.declare(Member { name, class });
        }
        Ok(Structure { members: self.frames.leave(), minimum_alignment })
    }

    fn elements(&mut self, object: &JsonObject<'v>) -> Result<(Box<FieldClass>, u64)> {
        let minimum_alignment = alignment(object, "minimum-alignment")?;
        self.frames.steps.push(FieldPathStep::Element);
        let element = self.class(object.need("element-field-class")?)?;
        self.frames.steps.pop();
        Ok((Box::new(element), minimum_alignment))
    }

    fn length(&mut self, object: &JsonObject<'v>) -> Result<crate::model::FieldPath> {
        let value = object.need("length-field-location")?;
        let located = self.locate(value, "length-field-location")?;
        let is_length = |class: &FieldClass| class.integer_meaning().is_some_and(|meaning| !meaning.signed);
        if located.targets.iter().all(is_length) {
            return Ok(located.path);
        }
        Err((value.span.clone(), JsonProblem::Target("an unsigned integer")))
    }

    fn locate(&mut self, value: &'v JsonValue, property: &str) -> Result<ResolvedLocation> {
        self.candidate |= matches!(value.kind, JsonKind::Array(_));
        self.frames.locate(value, property)
    }

    fn optional(&mut self, object: &JsonObject<'v>) -> Result<Optional> {
        let location = object.need("selector-field-location")?;
        let located = self.locate(location, "selector-field-location")?;
        let ranges_value = object.get("selector-field-ranges");
        let ranges = ranges_value.map(|value| ranges(value, "selector-field-ranges")).transpose()?;
        let boolean = |class: &FieldClass| matches!(class.kind, FieldKind::Boolean(_));
        if !located.targets.is_empty() {
            let booleans = located.targets.iter().all(boolean);
            let integers = located.targets.iter().all(|class| class.integer_meaning().is_some());
            match (&ranges, ranges_value) {
                (None, _) if !booleans && integers => {
                    let what = object.what.clone();
                    return Err((
                        object.span.clone(),
                        JsonProblem::Missing { what, property: "selector-field-ranges" },
                    ));
                }
                (Some(_), Some(value)) if booleans => {
                    return wrong(value, "selector-field-ranges", "absent where the selector is a boolean");
                }
                _ if !booleans && !integers => {
                    return Err((location.span.clone(), JsonProblem::Target("a boolean or an integer")));
                }
                _ => {}
            }
        }
        self.frames.steps.push(FieldPathStep::Content);
        let content = self.class(object.need("field-class")?)?;
        self.frames.steps.pop();
        Ok(Optional { selector: located.path, ranges, content })
    }

    fn variant(&mut self, object: &JsonObject<'v>) -> Result<Variant> {
        let location = object.need("selector-field-location")?;
        let located = self.locate(location, "selector-field-location")?;
        if located.targets.iter().any(|class| class.integer_meaning().is_none()) {
            return Err((location.span.clone(), JsonProblem::Target("an integer")));
        }
        let options_value = object.need("options")?;
        let values = array(options_value, "options")?;
        if values.is_empty() {
            return wrong(options_value, "options", "at least one option");
        }
        let mut options: Vec<VariantOption> = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            let option = JsonObject::new(value, "variant option")?;
            let name = option.text("name")?;
            if name.is_some() && options.iter().any(|other| other.name == name) {
                let name = name.unwrap_or_default();
                return Err((value.span.clone(), JsonProblem::Twice(format!("the option `{name}`"))));
            }
            let ranges_value = option.need("selector-field-ranges")?;
            let ranges = ranges(ranges_value, "selector-field-ranges")?;
            let overlaps = |other: &IntegerRange| {
                ranges.iter().any(|range| range.lower <= other.upper && other.lower <= range.upper)
            };
            let unsigned = |class: &FieldClass| class.integer_meaning().is_some_and(|meaning| !meaning.signed);
            if ranges.iter().any(|range| range.lower < 0) && located.targets.iter().any(unsigned) {
                return wrong(ranges_value, "selector-field-ranges", "of 0 or more for an unsigned selector");
            }
            if options.iter().flat_map(|option| &option.ranges).any(overlaps) {
                return Err((ranges_value.span.clone(), JsonProblem::Overlap));
            }
            self.frames.steps.push(FieldPathStep::Option(index));
            let class = self.class(option.need("field-class")?)?;
            self.frames.steps.pop();
            option.attributes()?;
            option.finish()?;
            options.push(VariantOption { name, ranges, class });
        }
        Ok(Variant { selector: located.path, options })
    }
}

const ROLES: [(&str, Role); 11] = [
    ("packet-magic-number", Role::PacketMagicNumber),
    ("metadata-stream-uuid", Role::MetadataStreamUuid),
    ("data-stream-class-id", Role::DataStreamClassId),
    ("data-stream-id", Role::DataStreamId),
    ("packet-total-length", Role::PacketTotalLength),
    ("packet-content-length", Role::PacketContentLength),
    ("default-clock-timestamp", Role::DefaultClockTimestamp),
    ("packet-end-default-clock-timestamp", Role::PacketEndDefaultClockTimestamp),
    ("discarded-event-record-counter-snapshot", Role::DiscardedEventRecordCounterSnapshot),
    ("packet-sequence-number", Role::PacketSequenceNumber),
    ("event-record-class-id", Role::EventRecordClassId),
];

/// The name of a role.
pub(crate) fn role_name(role: Role) -> &'static str {
    ROLES.iter().find(|(_, known)| *known == role).map(|(name, _)| *name).expect("the table has every role")
}

fn belongs(role: Role, scope: Scope) -> bool {
    match role {
        Role::PacketMagicNumber | Role::MetadataStreamUuid | Role::DataStreamClassId | Role::DataStreamId => {
            scope == Scope::PacketHeader
        }
        Role::DefaultClockTimestamp => matches!(scope, Scope::PacketContext | Scope::EventHeader),
        Role::EventRecordClassId => scope == Scope::EventHeader,
        _ => scope == Scope::PacketContext,
    }
}

fn bits(object: &JsonObject<'_>) -> Result<FixedBits> {
    let length = object.need("length")?;
    match integer(length, "length")? {
        1..=64 => layout(object, length),
        _ => wrong(length, "length", "from 1 to 64"),
    }
}

fn real(object: &JsonObject<'_>) -> Result<FixedBits> {
    let length = object.need("length")?;
    match integer(length, "length")? {
        16 | 32 | 64 | 128 => layout(object, length),
        _ => wrong(length, "length", "16, 32, 64 or 128"),
    }
}

fn layout(object: &JsonObject<'_>, length: &JsonValue) -> Result<FixedBits> {
    let length = unsigned(length, "length")? as u32;
    let order = object.need("byte-order")?;
    let byte_order = match text(order, "byte-order")?.as_str() {
        "little-endian" => ByteOrder::Little,
        "big-endian" => ByteOrder::Big,
        _ => return wrong(order, "byte-order", "`little-endian` or `big-endian`"),
    };
    let natural = if byte_order == ByteOrder::Little { "first-to-last" } else { "last-to-first" };
    let reversed = match object.get("bit-order") {
        None => false,
        Some(value) => match text(value, "bit-order")?.as_str() {
            order @ ("first-to-last" | "last-to-first") => order != natural,
            _ => return wrong(value, "bit-order", "`first-to-last` or `last-to-first`"),
        },
    };
    Ok(FixedBits { length, byte_order, reversed, alignment: alignment(object, "alignment")? })
}

fn alignment(object: &JsonObject<'_>, property: &'static str) -> Result<u64> {
    let Some(value) = object.get(property) else { return Ok(1) };
    match value.kind {
        JsonKind::Integer(number) if (1..=1 << 32).contains(&number) && (number as u64).is_power_of_two() => {
            Ok(number as u64)
        }
        _ => wrong(value, property, "a power of two, at most 2^32"),
    }
}

fn encoding(object: &JsonObject<'_>) -> Result<TextEncoding> {
    let Some(value) = object.get("encoding") else { return Ok(TextEncoding::Utf8) };
    Ok(match text(value, "encoding")?.as_str() {
        "utf-8" => TextEncoding::Utf8,
        "utf-16be" => TextEncoding::Utf16Be,
        "utf-16le" => TextEncoding::Utf16Le,
        "utf-32be" => TextEncoding::Utf32Be,
        "utf-32le" => TextEncoding::Utf32Le,
        _ => return wrong(value, "encoding", "`utf-8`, `utf-16be`, `utf-16le`, `utf-32be` or `utf-32le`"),
    })
}

fn media_type(object: &JsonObject<'_>) -> Result<String> {
    Ok(object.text("media-type")?.unwrap_or_else(|| "application/octet-stream".to_owned()))
}

fn mappings(value: &JsonValue, signed: bool) -> Result<Vec<EnumerationMapping>> {
    let object = JsonObject::new(value, "mappings")?;
    let mapping = |member: &crate::json::reader::JsonMember| {
        let ranges = ranges(&member.value, "mappings")?;
        if !signed && ranges.iter().any(|range| range.lower < 0) {
            return wrong(&member.value, "mappings", "of 0 or more for an unsigned integer");
        }
        Ok(EnumerationMapping { label: member.name.clone(), ranges })
    };
    object.members().iter().map(mapping).collect()
}

fn bit_map(object: &JsonObject<'_>) -> Result<BitMap> {
    let bits = bits(object)?;
    let value = object.need("flags")?;
    let flags = mappings(value, false)?;
    if flags.is_empty() {
        return wrong(value, "flags", "at least one flag");
    }
    Ok(BitMap { bits, flags })
}
