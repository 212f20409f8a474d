//! Filters that the recorder asks itself: of events that are on for another session too, and where a program cannot run them.
//!
//! ```text
//! port == 80 && $ctx.procname == "ser*"
//!
//! definition of the event ── names to places ──> predicate ── bytes of an event ──> keep it?
//! ```
//!
//! What an expression means is said by `kymo_filter` and the evaluator of `kymo_ir`, as for whoever reads the trace.

use std::cell::RefCell;

use kymo_filter::{Constant, Field, Fields, Filter, Found, Path, Step, nearest};
use kymo_ir::Predicate;
use kymo_ir::predicate::{Input, InputKind, Inputs};
use kymo_writer::packed::{Integer, Kind, Scalar};

use crate::definition::EventClass;

/// What is told of one event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told<'a> {
    /// The bytes of its fields.
    pub fields: &'a [u8],
    /// The CPU, if that is carried and known.
    pub cpu: Option<u16>,
    /// The process as it sees itself.
    pub pid: u32,
    /// The thread as it sees itself.
    pub tid: u32,
    /// The thread's name; zeros behind.
    pub name: [u8; 16],
}

/// Expressions of which one has to be true, for the events of one class.
#[derive(Clone, Debug)]
pub struct EventFilter {
    terms: Vec<Term>,
    /// Fields up to here have to be found.
    fields: usize,
}

#[derive(Clone, Debug)]
struct Term {
    predicate: Predicate,
    /// For each input.
    sources: Vec<Source>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A field, or an element of one.
    Field(usize, Option<u64>),
    Cpu,
    Pid,
    Tid,
    Name,
}

/// What is wrong with an expression for a class of events: lines for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl EventFilter {
    /// Makes a filter of expressions.
    ///
    /// # Errors
    ///
    /// An expression is wrong, or means nothing for this class.
    pub fn new(expressions: &[String], class: &EventClass) -> Result<Self, Refusal> {
        let terms = expressions.iter().map(|text| Term::new(text, class)).collect::<Result<Vec<_>, _>>()?;
        let field = |source: &Source| if let Source::Field(field, _) = source { field + 1 } else { 0 };
        let fields = terms.iter().flat_map(|term| &term.sources).map(field).max().unwrap_or(0);
        Ok(Self { terms, fields })
    }

    /// Whether an event is kept.
    #[must_use]
    pub fn keeps(&self, class: &EventClass, told: &Told<'_>) -> bool {
        let places = places(class, told.fields, self.fields);
        self.terms.iter().any(|term| term.predicate.keeps(&Values { term, class, told, places: &places }))
    }
}

impl Term {
    fn new(text: &str, class: &EventClass) -> Result<Self, Refusal> {
        let refused = |problems: Vec<kymo_filter::Problem>| {
            Refusal(problems.iter().map(|problem| problem.render(text)).collect())
        };
        let filter = Filter::parse(text).map_err(refused)?;
        let names = Names { class, sources: RefCell::default() };
        let binding = filter.bind(&names).map_err(refused)?;
        let known = names.sources.into_inner();
        let sources = binding.keys.iter().map(|key| known[*key as usize]).collect();
        Ok(Self { predicate: binding.predicate, sources })
    }
}

/// Names that none of these classes has, or what is wrong with the expression for one of them: lines for people.
///
/// # Errors
///
/// The expression is wrong, or none of the classes can be asked.
pub fn check(text: &str, classes: &[&EventClass]) -> Result<Vec<String>, Refusal> {
    let filter = Filter::parse(text)
        .map_err(|problems| Refusal(problems.iter().map(|problem| problem.render(text)).collect()))?;
    let mut asked = 0;
    let mut notes: Vec<String> = Vec::new();
    for class in classes {
        let names = Names { class, sources: RefCell::default() };
        match filter.bind(&names) {
            Ok(_) => asked += 1,
            Err(problems) => {
                let lines: String = problems.iter().map(|problem| problem.render(text)).collect();
                notes.push(format!("{}: {lines}", class.full_name()));
            }
        }
    }
    if asked == 0 && !notes.is_empty() {
        return Err(Refusal(notes.swap_remove(0)));
    }
    let has = |class: &EventClass, path: &Path| {
        let found = Names { class, sources: RefCell::default() }.find(path);
        !matches!(found, Found::Missing { .. })
    };
    let nowhere = filter
        .paths()
        .into_iter()
        .filter(|(path, _)| !classes.is_empty() && !classes.iter().any(|class| has(class, path)));
    let nowhere: Vec<String> = nowhere
        .map(|(path, span)| {
            let fields = classes.iter().flat_map(|class| class.fields.iter().map(|field| field.name.as_str()));
            filter.unknown_name(span, &nearest(&path.to_string(), fields)).render(text)
        })
        .collect();
    if nowhere.is_empty() { Ok(notes) } else { Err(Refusal(nowhere.concat())) }
}

/// Labels, and the values that have them.
type Labels = Vec<(String, Vec<(i128, i128)>)>;

/// What names mean for the events of a class.
struct Names<'a> {
    class: &'a EventClass,
    /// What was asked for, by key.
    sources: RefCell<Vec<Source>>,
}

/// Contexts, by all of their names.
const CONTEXTS: [(&str, Source); 6] = [
    ("cpu_id", Source::Cpu),
    ("pid", Source::Pid),
    ("vpid", Source::Pid),
    ("tid", Source::Tid),
    ("vtid", Source::Tid),
    ("procname", Source::Name),
];

impl Names<'_> {
    fn field(&self, source: Source, name: String, kind: InputKind, labels: Labels) -> Found {
        let mut sources = self.sources.borrow_mut();
        let key = sources.iter().position(|known| *known == source).unwrap_or_else(|| {
            sources.push(source);
            sources.len() - 1
        });
        // Sequences may be too short, and CPUs unknown.
        let optional = matches!(source, Source::Cpu | Source::Field(_, Some(_)));
        Found::Field(Field { key: key as u32, name, kind, optional, labels, unit: None })
    }

    fn context(&self, name: &str) -> Option<Found> {
        let (_, source) = CONTEXTS.iter().find(|(known, _)| *known == name)?;
        let kind = match source {
            Source::Name => InputKind::Text(kymo_ir::program::Encoding::Utf8),
            Source::Cpu => InputKind::Integer { signed: false, bits: 16 },
            _ => InputKind::Integer { signed: false, bits: 32 },
        };
        Some(self.field(*source, format!("$ctx.{name}"), kind, Vec::new()))
    }

    /// A field by its name, which may have dots in it, or an element of one.
    fn payload(&self, steps: &[Step]) -> Option<Found> {
        let (names, index) = match steps {
            [names @ .., Step::Index(index)] => (names, Some(*index)),
            names => (names, None),
        };
        let mut parts = Vec::new();
        for step in names {
            let Step::Name(name) = step else { return None };
            parts.push(name.as_str());
        }
        let name = parts.join(".");
        let at = self.class.fields.iter().position(|field| field.name == name)?;
        let element = |scalar: &Scalar, index: u64| {
            let (kind, labels) = scalar_kind(scalar);
            self.field(Source::Field(at, Some(index)), format!("{name}[{index}]"), kind, labels)
        };
        Some(match (&self.class.fields[at].kind, index) {
            (Kind::Scalar(scalar), None) => {
                let (kind, labels) = scalar_kind(scalar);
                self.field(Source::Field(at, None), name, kind, labels)
            }
            (Kind::Text | Kind::FixedText(_), None) => {
                let kind = InputKind::Text(kymo_ir::program::Encoding::Utf8);
                self.field(Source::Field(at, None), name, kind, Vec::new())
            }
            (Kind::Array(scalar, count), Some(index)) if index < u64::from(*count) => element(scalar, index),
            (Kind::Sequence(scalar), Some(index)) => element(scalar, index),
            (Kind::Array(..), None) => Found::Compound { what: "an array" },
            (Kind::Sequence(_), None) => Found::Compound { what: "a sequence" },
            (_, Some(_)) => return None,
        })
    }

    fn constant(&self, name: &str) -> Option<Found> {
        Some(Found::Constant(match name {
            "name" => Constant::Text(self.class.full_name()),
            "log_level" => Constant::Integer(self.class.level.into()),
            _ => return None,
        }))
    }
}

impl Fields for Names<'_> {
    fn find(&self, path: &Path) -> Found {
        let second = |steps: &[Step]| match steps {
            [_, Step::Name(name)] => Some(name.clone()),
            _ => None,
        };
        let word = match path.steps.first() {
            Some(Step::Name(word)) => word.as_str(),
            _ => "",
        };
        let of_word = || match word {
            "ctx" | "packet" => self.context(&second(&path.steps)?),
            "payload" => self.payload(&path.steps[1..]),
            "event" => self.constant(&second(&path.steps)?),
            _ => None,
        };
        let found = if path.is_global {
            of_word()
        } else {
            let alone = || if path.steps.len() == 1 { self.context(word) } else { None };
            self.payload(&path.steps).or_else(alone).or_else(of_word)
        };
        found.unwrap_or_else(|| {
            let fields = self.class.fields.iter().map(|field| field.name.as_str());
            Found::Missing { near: nearest(&path.to_string(), fields) }
        })
    }

    fn instant(&self, _: &str) -> Option<i64> {
        None
    }
}

fn scalar_kind(scalar: &Scalar) -> (InputKind, Labels) {
    let integer = |integer: &Integer| InputKind::Integer { signed: integer.is_signed, bits: 8 * integer.bytes };
    match scalar {
        Scalar::Integer(kind) => (integer(kind), Vec::new()),
        Scalar::Boolean => (InputKind::Integer { signed: false, bits: 8 }, Vec::new()),
        Scalar::Real(_) => (InputKind::Real, Vec::new()),
        Scalar::Enumeration(kind, labels) => {
            let mut ranges = Labels::new();
            for label in labels {
                match ranges.iter_mut().find(|(name, _)| *name == label.name) {
                    Some((_, values)) => values.push((label.value, label.value)),
                    None => ranges.push((label.name.clone(), vec![(label.value, label.value)])),
                }
            }
            (integer(kind), ranges)
        }
    }
}

/// Where the first fields of an event are: first byte, and how many elements or bytes of text. What is not there is left out.
fn places(class: &EventClass, bytes: &[u8], count: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::with_capacity(count);
    let mut at = 0;
    for field in class.fields.iter().take(count) {
        let length = || bytes.get(at..at + 2).map(|two| usize::from(u16::from_le_bytes([two[0], two[1]])));
        let (begin, elements, each) = match &field.kind {
            Kind::Scalar(scalar) => (at, 1, usize::from(scalar.bytes())),
            Kind::FixedText(length) => (at, *length as usize, 1),
            Kind::Array(scalar, count) => (at, *count as usize, usize::from(scalar.bytes())),
            Kind::Text => {
                let Some(length) = length() else { break };
                (at + 2, length, 1)
            }
            Kind::Sequence(scalar) => {
                let Some(length) = length() else { break };
                (at + 2, length, usize::from(scalar.bytes()))
            }
        };
        at = begin + elements * each;
        if at > bytes.len() {
            break;
        }
        found.push((begin, elements));
    }
    found
}

/// The inputs of a predicate, of one event.
struct Values<'a> {
    term: &'a Term,
    class: &'a EventClass,
    told: &'a Told<'a>,
    places: &'a [(usize, usize)],
}

impl Inputs for Values<'_> {
    fn number(&self, input: Input) -> Option<u64> {
        match self.term.sources[usize::from(input.0)] {
            Source::Cpu => self.told.cpu.map(u64::from),
            Source::Pid => Some(self.told.pid.into()),
            Source::Tid => Some(self.told.tid.into()),
            Source::Name => None,
            Source::Field(field, element) => {
                let (begin, elements) = *self.places.get(field)?;
                let scalar = match &self.class.fields[field].kind {
                    Kind::Scalar(scalar) | Kind::Array(scalar, _) | Kind::Sequence(scalar) => scalar,
                    Kind::Text | Kind::FixedText(_) => return None,
                };
                let element = element.unwrap_or(0);
                let size = usize::from(scalar.bytes());
                let at = begin + usize::try_from(element).ok().filter(|element| *element < elements)? * size;
                Some(number(scalar, self.told.fields.get(at..at + size)?))
            }
        }
    }

    fn text(&self, input: Input) -> Option<&[u8]> {
        let whole = match self.term.sources[usize::from(input.0)] {
            Source::Name => &self.told.name[..],
            Source::Field(field, None) => {
                let (begin, length) = *self.places.get(field)?;
                self.told.fields.get(begin..begin + length)?
            }
            _ => return None,
        };
        // As readers show it.
        whole.split(|byte| *byte == 0).next()
    }
}

/// The value of some bytes: an integer as 64 bits, a real as a double's.
fn number(scalar: &Scalar, bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let value = u64::from_le_bytes(all);
    match scalar {
        Scalar::Real(4) => f64::from(f32::from_bits(value as u32)).to_bits(),
        Scalar::Integer(integer) | Scalar::Enumeration(integer, _) if integer.is_signed => {
            let unused = 64 - 8 * u32::from(integer.bytes);
            ((value << unused).cast_signed() >> unused).cast_unsigned()
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Definition, parse};

    const DEFINITION: &[u8] = b"event net:sent\nlevel 6\nfield i16 delta\nfield text host\nfield sequence u32 sizes\n\
        field enum u8(idle=0, busy=1, busy=2) state\nfield f32 load\nfield array 2 u8 pair\nfield u64 http.status\nfield bool ok\n";

    fn class() -> EventClass {
        match parse(DEFINITION) {
            Ok(Definition::Event(class)) => class,
            other => panic!("{other:?}"),
        }
    }

    fn event() -> Vec<u8> {
        let mut bytes = (-5_i16).to_le_bytes().to_vec();
        bytes.extend(3_u16.to_le_bytes());
        bytes.extend(b"abc");
        bytes.extend(2_u16.to_le_bytes());
        bytes.extend(7_u32.to_le_bytes());
        bytes.extend(8_u32.to_le_bytes());
        bytes.push(2);
        bytes.extend(0.5_f32.to_le_bytes());
        bytes.extend([10, 11]);
        bytes.extend(404_u64.to_le_bytes());
        bytes.push(1);
        bytes
    }

    fn keeps(expression: &str) -> bool {
        let filter = EventFilter::new(&[expression.to_owned()], &class()).expect(expression);
        let mut name = [0; 16];
        name[..6].copy_from_slice(b"server");
        let fields = event();
        filter.keeps(&class(), &Told { fields: &fields, cpu: Some(3), pid: 12, tid: 13, name })
    }

    #[test]
    fn expressions_see_fields_and_contexts() {
        for expression in [
            "delta == -5",
            "host == \"a*\" && $payload.host != \"b\"",
            "sizes[1] == 8 && pair[1] == 11",
            "state == \"busy\"",
            "load == 0.5 && ok",
            "http.status == 404",
            "$ctx.vtid == 13 && pid == 12 && $ctx.procname == \"server\" && cpu_id == 3",
            "event.name == \"net:sent\" && event.log_level == 6",
            "!has(sizes[2]) && !has(nothing)",
        ] {
            assert!(keeps(expression), "{expression}");
        }
        for expression in ["delta > 0", "sizes[2] == 0", "state == \"idle\"", "nothing == 1", "host < \"abc\""] {
            assert!(!keeps(expression), "{expression}");
        }
    }

    #[test]
    fn of_several_one_has_to_say_yes() {
        let filter = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            EventFilter::new(&texts, &class()).expect("they are right")
        };
        let fields = event();
        let told = Told { fields: &fields, ..Told::default() };
        assert!(filter(&["delta > 0", "ok"]).keeps(&class(), &told));
        assert!(!filter(&["delta > 0", "!ok"]).keeps(&class(), &told));
        // What was cut off is not there, whatever it is.
        for length in 0..fields.len() {
            let told = Told { fields: &fields[..length], ..Told::default() };
            assert!(!filter(&["ok"]).keeps(&class(), &told), "{length}");
        }
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_stands() {
        let class = class();
        let check = |text: &str| check(text, &[&class]).map_err(|refusal| refusal.0);
        assert_eq!(check("delta == 1"), Ok(Vec::new()));
        let lines = check("ok && dleta == 1").expect_err("there is no such field");
        assert_eq!(
            lines,
            "no class of events has `dleta`\n    ok && dleta == 1\n          ^^^^^\nhelp: there is `delta`\n"
        );
        let lines = check("host == 1").expect_err("text is no number");
        assert!(lines.starts_with("net:sent: `host` is text and `1` is a number"), "{lines}");
        assert!(check("host ==").expect_err("it has no end").starts_with("found the end, expected a value"));
        assert_eq!(super::check("anything == 1", &[]).expect("nobody knows yet"), [""; 0]);
    }
}
