//! Meaning of names in a filter for the events of one class, while they are recorded.
//!
//! ```text
//! port  stack[3]             payload, then what events carry, then words of the language
//! $ctx.vtid  $ctx.user       what events carry          $payload.port   the payload alone
//! event.name  event.log_level
//! ```
//!
//! Names mean the same as when the trace is read. Names that only a trace has (`time`, `packet.*`,
//! `trace.*`, ...) are unknown here, and a filter that uses them is refused.

use std::cell::RefCell;
use std::sync::Arc;

use kymo_filter::{Constant, FieldResolver, FilterField, NamePath, NameStep, PathMeaning, nearest};
use kymo_ir::Encoding;
use kymo_ir::predicate::InputKind;
use kymo_lane::contexts;
use kymo_schema::definition::{ContextClass, EventClass};
use kymo_schema::field::{FieldType, IntegerType, ScalarType};

/// Source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum InputSource {
    /// A field of the event, by its number.
    Field(u16),
    /// An element of an array or a sequence.
    Element(u16, u32),
    /// A context that the event carries.
    Carried(EventContext),
}

/// A context of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EventContext {
    Cpu,
    Pid,
    Tid,
    Name,
    Ip,
    /// One of the program's own, by its number.
    Own(u8),
}

/// Facts about a program before any event.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramConstants<'a> {
    /// Its PID in its own namespace.
    pub pid: Option<u32>,
    /// Contexts that its events may carry, by number.
    pub contexts: &'a [Option<Arc<ContextClass>>],
}

/// One class of events.
pub(crate) struct ClassNames<'a> {
    class: &'a EventClass,
    facts: ProgramConstants<'a>,
    /// Sources that the filter uses, by key.
    known: RefCell<Vec<InputSource>>,
}

/// Contexts of events, with the names that LTTng and others use.
const CARRIED: [(&str, EventContext); 8] = [
    ("cpu_id", EventContext::Cpu),
    ("vpid", EventContext::Pid),
    ("pid", EventContext::Pid),
    ("vtid", EventContext::Tid),
    ("tid", EventContext::Tid),
    ("procname", EventContext::Name),
    ("thread_name", EventContext::Name),
    ("ip", EventContext::Ip),
];

/// Contexts that a filter may need for any event class: those whose names are in its text.
pub(crate) fn contexts_named(filter: &str) -> u64 {
    let named = CARRIED.iter().filter(|(name, _)| filter.contains(name));
    named.fold(0, |all, (_, context)| {
        all | match context {
            EventContext::Cpu => contexts::CPU,
            EventContext::Ip => contexts::IP,
            EventContext::Name => contexts::NAME,
            // Packets say these.
            EventContext::Pid | EventContext::Tid | EventContext::Own(_) => 0,
        }
    })
}

/// Words of the language that only traces can answer.
const OF_TRACES: [&str; 7] = ["time", "cycles", "packet", "stream", "trace", "env", "event"];
const OF_EVENTS: [&str; 2] = ["event.name", "event.log_level"];

/// Whether a name that no field has is one that traces have.
pub(crate) fn is_of_traces(path: &NamePath) -> bool {
    matches!(path.steps.first(), Some(NameStep::Name(word)) if OF_TRACES.contains(&word.as_str()))
}

/// The name of a field in the metadata of a trace.
fn identifier(name: &str) -> impl Iterator<Item = char> {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
}

fn is_named(own: &str, name: &str) -> bool {
    own == name || identifier(own).eq(name.chars())
}

impl<'a> ClassNames<'a> {
    pub(crate) fn new(class: &'a EventClass, facts: ProgramConstants<'a>) -> Self {
        Self { class, facts, known: RefCell::default() }
    }

    /// Sources of the values with these keys.
    pub(crate) fn sources(&self, keys: &[u32]) -> Vec<InputSource> {
        let known = self.known.borrow();
        keys.iter().map(|key| known[*key as usize]).collect()
    }

    fn key(&self, source: InputSource) -> u32 {
        let mut known = self.known.borrow_mut();
        let place = known.iter().position(|have| *have == source).unwrap_or_else(|| {
            known.push(source);
            known.len() - 1
        });
        place as u32
    }

    fn scalar(&self, source: InputSource, name: &str, scalar: &ScalarType, optional: bool) -> PathMeaning {
        let mut field = FilterField {
            key: 0,
            name: name.to_owned(),
            kind: InputKind::Real,
            optional,
            labels: Vec::new(),
            unit: None,
            base: 10,
        };
        match scalar {
            ScalarType::Integer(integer) => field.kind = of_integer(*integer),
            ScalarType::Enumeration(integer, labels) => {
                field.kind = of_integer(*integer);
                for label in labels {
                    let range = (label.value, label.value);
                    match field.labels.iter_mut().find(|(known, _)| *known == label.name) {
                        Some((_, ranges)) => ranges.push(range),
                        None => field.labels.push((label.name.clone(), vec![range])),
                    }
                }
            }
            ScalarType::Real(_) => {}
            ScalarType::Boolean => field.kind = InputKind::Integer { signed: false, bits: 1 },
        }
        field.key = self.key(source);
        PathMeaning::Field(field)
    }

    fn text(&self, source: InputSource, name: &str, optional: bool) -> PathMeaning {
        let (key, kind) = (self.key(source), InputKind::Text(Encoding::Utf8));
        let (name, labels) = (name.to_owned(), Vec::new());
        PathMeaning::Field(FilterField { key, name, kind, optional, labels, unit: None, base: 10 })
    }

    /// A field of the payload. Names may contain dots, which paths have too.
    fn field(&self, steps: &[NameStep], name: &str) -> Option<PathMeaning> {
        let named = steps.iter().take_while(|step| matches!(step, NameStep::Name(_))).count();
        let joined = steps[..named].iter().map(|step| if let NameStep::Name(name) = step { name } else { "" });
        let joined = joined.collect::<Vec<_>>().join(".");
        let number = self.class.fields.iter().position(|field| is_named(&field.name, &joined))?;
        let source = InputSource::Field(number as u16);
        Some(match (&self.class.fields[number].kind, &steps[named..]) {
            (FieldType::Scalar(scalar), []) => self.scalar(source, name, scalar, false),
            (FieldType::Text | FieldType::FixedText(_), []) => self.text(source, name, false),
            (FieldType::Array(element, count), [NameStep::Index(index)]) if *index < u64::from(*count) => {
                self.scalar(InputSource::Element(number as u16, *index as u32), name, element, false)
            }
            (FieldType::Sequence(element), [NameStep::Index(index)]) if *index <= u64::from(u16::MAX) => {
                self.scalar(InputSource::Element(number as u16, *index as u32), name, element, true)
            }
            (FieldType::Array(..) | FieldType::Sequence(_), []) => PathMeaning::Compound { what: "an array" },
            (FieldType::Text | FieldType::FixedText(_), _) => PathMeaning::Compound { what: "a character of text" },
            _ => PathMeaning::Missing { near: Vec::new() },
        })
    }

    /// A context that events carry.
    fn context(&self, wanted: &str, name: &str) -> Option<PathMeaning> {
        if let Some(own) = self.own(wanted, name) {
            return Some(own);
        }
        let carried = CARRIED.iter().find(|(known, _)| *known == wanted)?.1;
        let integer = |bytes| ScalarType::Integer(IntegerType::unsigned(bytes));
        let source = InputSource::Carried(carried);
        Some(match (carried, self.facts.pid) {
            (EventContext::Pid, Some(pid)) => PathMeaning::Constant(Constant::Integer(pid.into())),
            (EventContext::Name, _) => self.text(source, name, true),
            (EventContext::Cpu, _) => self.scalar(source, name, &integer(2), true),
            (EventContext::Ip, _) => self.scalar(source, name, &integer(8), true),
            _ => self.scalar(source, name, &integer(4), true),
        })
    }

    /// A context that the program defines.
    fn own(&self, wanted: &str, name: &str) -> Option<PathMeaning> {
        let own = self.facts.contexts.iter().flatten().find(|own| is_named(&own.field.name, wanted))?;
        let source = InputSource::Carried(EventContext::Own(own.id));
        Some(match &own.field.kind {
            FieldType::Scalar(scalar) => self.scalar(source, name, scalar, true),
            _ => self.text(source, name, true),
        })
    }

    /// One of the language's own words.
    fn word(&self, word: &str, rest: &[NameStep], name: &str) -> Option<PathMeaning> {
        match (word, rest) {
            ("payload", [_, ..]) => self.field(rest, name),
            ("ctx", [NameStep::Name(context)]) => self.context(context, name),
            ("app", [NameStep::Name(context)]) => {
                self.own(&format!("app.{context}"), name).or_else(|| self.own(context, name))
            }
            ("event", [NameStep::Name(what)]) => match what.as_str() {
                "name" => Some(PathMeaning::Constant(Constant::Text(self.class.full_name()))),
                "log_level" | "loglevel" => Some(PathMeaning::Constant(Constant::Integer(self.class.level.into()))),
                _ => None,
            },
            _ => None,
        }
    }

    fn missing(&self, name: &str) -> PathMeaning {
        let fields = self.class.fields.iter().map(|field| field.name.as_str());
        let own = self.facts.contexts.iter().flatten().map(|own| own.field.name.as_str());
        let names = fields.chain(own).chain(CARRIED.iter().map(|(name, _)| *name)).chain(OF_EVENTS);
        let wanted = name.trim_start_matches('$');
        PathMeaning::Missing { near: nearest(wanted.strip_prefix("ctx.").unwrap_or(wanted), names) }
    }
}

fn of_integer(integer: IntegerType) -> InputKind {
    InputKind::Integer { signed: integer.is_signed, bits: 8 * integer.bytes }
}

impl FieldResolver for ClassNames<'_> {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let name = path.to_string();
        let Some((NameStep::Name(word), rest)) = path.steps.split_first() else { return self.missing(&name) };
        let found = if path.is_global {
            self.word(word, rest, &name)
        } else {
            let is_context = || if rest.is_empty() { self.context(word, &name) } else { None };
            let is_bare = !matches!(word.as_str(), "ctx" | "app" | "payload");
            let found = self.field(&path.steps, &name).or_else(is_context);
            found.or_else(|| if is_bare { self.word(word, rest, &name) } else { None })
        };
        match found {
            None | Some(PathMeaning::Missing { .. }) => self.missing(&name),
            Some(found) => found,
        }
    }

    /// Only traces have times.
    fn instant(&self, _: &str) -> Option<i64> {
        None
    }
}
