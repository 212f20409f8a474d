//! Meaning of names in a filter for one of the kernel's events, while it is recorded.
//!
//! ```text
//! next_prio  args[2]         payload, then facts of every record: tid, cpu_id
//! $payload.tid  $ctx.tid     one of the two alone
//! event.name
//! ```

use std::cell::RefCell;

use kymo_filter::{Constant, FieldResolver, FilterField, NamePath, NameStep, PathMeaning, nearest};
use kymo_format::model::{DisplayBase, FieldClass, FieldKind, FixedInteger, Member};
use kymo_ir::Encoding;
use kymo_ir::predicate::InputKind;

/// Source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordSource {
    /// A field, by its number in the payload.
    Field(usize),
    /// An element of an array.
    Element(usize, u64),
    /// The CPU that recorded it.
    Cpu,
    /// The thread that ran there, by the kernel's number.
    Tid,
}

/// Facts of every record.
const CARRIED: [(&str, RecordSource, bool); 2] =
    [("tid", RecordSource::Tid, true), ("cpu_id", RecordSource::Cpu, false)];

/// One class of events.
pub(super) struct RecordNames<'a> {
    name: &'a str,
    members: &'a [Member],
    known: RefCell<Vec<RecordSource>>,
}

/// The fields of a structure.
pub(super) fn members(payload: &FieldClass) -> &[Member] {
    match &payload.kind {
        FieldKind::Structure(structure) => &structure.members,
        _ => &[],
    }
}

impl<'a> RecordNames<'a> {
    pub(super) fn new(name: &'a str, payload: &'a FieldClass) -> Self {
        Self { name, members: members(payload), known: RefCell::default() }
    }

    /// Sources of the values with these keys.
    pub(super) fn sources(&self, keys: &[u32]) -> Vec<RecordSource> {
        let known = self.known.borrow();
        keys.iter().map(|key| known[*key as usize]).collect()
    }

    fn found(&self, source: RecordSource, name: &str, kind: InputKind, optional: bool) -> FilterField {
        let mut known = self.known.borrow_mut();
        let place = known.iter().position(|have| *have == source).unwrap_or_else(|| {
            known.push(source);
            known.len() - 1
        });
        let (key, name) = (place as u32, name.to_owned());
        FilterField { key, name, kind, optional, labels: Vec::new(), unit: None, base: 10 }
    }

    fn integer(&self, source: RecordSource, name: &str, integer: &FixedInteger, optional: bool) -> PathMeaning {
        let meaning = &integer.meaning;
        let kind = InputKind::Integer { signed: meaning.signed, bits: integer.bits.length.min(64) as u8 };
        let mut field = self.found(source, name, kind, optional);
        let ranges = meaning.mappings.iter().map(|mapping| {
            (mapping.label.clone(), mapping.ranges.iter().map(|range| (range.lower, range.upper)).collect())
        });
        field.labels = ranges.collect();
        if meaning.base == DisplayBase::Hexadecimal {
            field.base = 16;
        }
        PathMeaning::Field(field)
    }

    fn field(&self, steps: &[NameStep], name: &str) -> Option<PathMeaning> {
        let (NameStep::Name(first), rest) = steps.split_first()? else { return None };
        let number = self.members.iter().position(|member| member.name == *first)?;
        let source = RecordSource::Field(number);
        let text = || PathMeaning::Field(self.found(source, name, InputKind::Text(Encoding::Utf8), false));
        let element = |class: &FieldClass, index: u64, optional| match &class.kind {
            FieldKind::Integer(integer) => self.integer(RecordSource::Element(number, index), name, integer, optional),
            _ => PathMeaning::Compound { what: "an array" },
        };
        Some(match (&self.members[number].class.kind, rest) {
            (FieldKind::Integer(integer), []) => self.integer(source, name, integer, false),
            (FieldKind::StaticText(_) | FieldKind::NullTerminatedText(_), []) => text(),
            (FieldKind::StaticArray(array), [NameStep::Index(index)]) if *index < array.length => {
                element(&array.element, *index, false)
            }
            (FieldKind::DynamicArray(array), [NameStep::Index(index)]) => element(&array.element, *index, true),
            (FieldKind::StaticArray(_) | FieldKind::DynamicArray(_), []) => PathMeaning::Compound { what: "an array" },
            (FieldKind::StaticText(_) | FieldKind::NullTerminatedText(_), _) => {
                PathMeaning::Compound { what: "a character of text" }
            }
            _ => return None,
        })
    }

    fn context(&self, wanted: &str, name: &str) -> Option<PathMeaning> {
        let (_, source, signed) = CARRIED.iter().find(|(known, ..)| *known == wanted)?;
        let kind = InputKind::Integer { signed: *signed, bits: 32 };
        Some(PathMeaning::Field(self.found(*source, name, kind, false)))
    }

    /// One of the language's own words.
    fn word(&self, word: &str, rest: &[NameStep], name: &str) -> Option<PathMeaning> {
        match (word, rest) {
            ("payload", [_, ..]) => self.field(rest, name),
            ("ctx", [NameStep::Name(context)]) => self.context(context, name),
            ("event", [NameStep::Name(fact)]) if fact == "name" => {
                Some(PathMeaning::Constant(Constant::Text(self.name.to_owned())))
            }
            _ => None,
        }
    }
}

impl FieldResolver for RecordNames<'_> {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let name = path.to_string();
        let found = match path.steps.split_first() {
            Some((NameStep::Name(word), rest)) if path.is_global => self.word(word, rest, &name),
            Some((NameStep::Name(word), rest)) => {
                let context = || if rest.is_empty() { self.context(word, &name) } else { None };
                self.field(&path.steps, &name).or_else(context).or_else(|| self.word(word, rest, &name))
            }
            _ => None,
        };
        found.unwrap_or_else(|| {
            let fields = self.members.iter().map(|member| member.name.as_str()).filter(|name| !name.starts_with('_'));
            let names = fields.chain(CARRIED.iter().map(|(name, ..)| *name)).chain(["event.name"]);
            let wanted = name.trim_start_matches('$');
            PathMeaning::Missing { near: nearest(wanted.strip_prefix("ctx.").unwrap_or(wanted), names) }
        })
    }

    /// Only traces have times.
    fn instant(&self, _: &str) -> Option<i64> {
        None
    }
}
