//! A filter for one class of events: its predicate, and the sources of its inputs.

use std::collections::HashMap;
use std::ops::Range;

use kymo_filter::{Binding, FieldResolver, Verdict};
use kymo_filter::{Filter, FilterNote, FilterProblem, MissingName, PathMeaning, ProblemKind};
use kymo_ir::predicate::{ArgumentLayout, Input, InputClass, InputKind, InputPlace, Predicate, Refusal, Test};
use kymo_lane::contexts;
use kymo_lane::judgement::KeyPart;
use kymo_schema::definition::EventClass;
use kymo_schema::field::{FieldType, ScalarType};
use kymo_units::ByteOrder;

use super::names::{ClassNames, EventContext, InputSource, ProgramConstants, is_of_traces};

/// Meaning of a filter for a class of events, or of several filters of which at least one has to be
/// true.
#[derive(Clone, Debug)]
pub struct ClassFilter {
    pub(super) predicate: Predicate,
    /// Source of each input.
    pub(super) sources: Vec<InputSource>,
    verdict: Verdict,
    missing: Vec<MissingName>,
    notes: Vec<FilterNote>,
}

impl ClassFilter {
    /// Resolves a filter for a class.
    ///
    /// # Errors
    ///
    /// Why it cannot be evaluated on events of the class.
    ///
    /// ```
    /// use kymo_filter::{Filter, Verdict};
    /// use kymo_schema::definition::{Definition, parse};
    /// use kymo_recorder::filters::{ClassFilter, ProgramConstants};
    /// let Ok(Definition::Event(event)) = parse(b"event net:sent\nfield u16 port\n") else { panic!() };
    /// let verdict = |text| ClassFilter::new(&Filter::parse(text).unwrap(), &event, ProgramConstants::default()).unwrap().verdict();
    /// assert_eq!(verdict("port == 80"), Verdict::Depends);
    /// assert_eq!(verdict("event.name == \"net:*\""), Verdict::AlwaysTrue);
    /// assert_eq!(verdict("prot == 80"), Verdict::NeverTrue);
    /// ```
    pub fn new(filter: &Filter, class: &EventClass, facts: ProgramConstants<'_>) -> Result<Self, Vec<FilterProblem>> {
        let names = ClassNames::new(class, facts);
        let unknown: Vec<FilterProblem> =
            filter.paths().into_iter().filter_map(|path| of_traces(&names, path)).collect();
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let binding = filter.bind(&names)?;
        let verdict = binding.verdict();
        let Binding { predicate, keys, missing, notes } = binding;
        Ok(Self { predicate, sources: names.sources(&keys), verdict, missing, notes })
    }

    /// The filter that is true for all events.
    #[must_use]
    pub fn always() -> Self {
        let predicate = Predicate { inputs: Vec::new(), root: Test::Constant(Some(true)) };
        let (sources, missing, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { predicate, sources, verdict: Verdict::AlwaysTrue, missing, notes }
    }

    /// The filter that is true for all events, with these fields as its inputs: keys are read from them.
    pub(super) fn of_fields(class: &EventClass, fields: &[usize]) -> Self {
        let input = |field: &usize| InputClass {
            name: class.fields[*field].name.as_str().into(),
            kind: InputKind::Integer { signed: false, bits: 64 },
            optional: true,
        };
        let predicate = Predicate { inputs: fields.iter().map(input).collect(), root: Test::Constant(Some(true)) };
        let sources = fields.iter().map(|field| InputSource::Field(*field as u16)).collect();
        Self { predicate, sources, ..Self::always() }
    }

    #[cfg(test)]
    pub(super) fn of(predicate: Predicate, sources: Vec<InputSource>) -> Self {
        Self { predicate, sources, verdict: Verdict::Depends, missing: Vec::new(), notes: Vec::new() }
    }

    /// The filter that is true where at least one of these is: a program has it for several
    /// sessions. Without any filter it is false.
    #[must_use]
    pub fn any<'f>(filters: impl IntoIterator<Item = &'f Self>) -> Self {
        let mut inputs = Vec::new();
        let mut sources = Vec::new();
        let mut numbers = HashMap::new();
        let mut tests: Vec<Test> = Vec::new();
        let mut verdict = Verdict::NeverTrue;
        for filter in filters {
            verdict = match (verdict, filter.verdict) {
                (Verdict::AlwaysTrue, _) | (_, Verdict::AlwaysTrue) => Verdict::AlwaysTrue,
                (Verdict::Depends, _) | (_, Verdict::Depends) => Verdict::Depends,
                (Verdict::NeverTrue, Verdict::NeverTrue) => Verdict::NeverTrue,
            };
            if filter.verdict == Verdict::NeverTrue {
                continue;
            }
            let mut test = filter.predicate.root.clone();
            test.each_input(&mut |input| {
                let (class, source) =
                    (&filter.predicate.inputs[usize::from(input.0)], filter.sources[usize::from(input.0)]);
                *input = *numbers.entry(source).or_insert_with(|| {
                    inputs.push(class.clone());
                    sources.push(source);
                    Input(sources.len() as u16 - 1)
                });
            });
            if !tests.contains(&test) {
                tests.push(test);
            }
        }
        let root = match (verdict, tests.len()) {
            (Verdict::AlwaysTrue, _) => Test::Constant(Some(true)),
            (Verdict::NeverTrue, _) => Test::Constant(Some(false)),
            (Verdict::Depends, 1) => tests.remove(0),
            (Verdict::Depends, _) => Test::Any(tests),
        };
        Self { predicate: Predicate { inputs, root }, sources, verdict, missing: Vec::new(), notes: Vec::new() }
    }

    /// Its result for all events of the class.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Names that the class does not have: their values are unknown, and an event is kept only if
    /// the whole filter is true.
    #[must_use]
    pub fn missing(&self) -> &[MissingName] {
        &self.missing
    }

    /// Notes for people about how the filter was understood.
    #[must_use]
    pub fn notes(&self) -> &[FilterNote] {
        &self.notes
    }

    /// Contexts that events have to carry for it: [`kymo_lane::contexts`]. Lanes tell threads and
    /// their names.
    #[must_use]
    pub fn carried(&self) -> u64 {
        let bit = |source: &InputSource| match source {
            InputSource::Field(_) | InputSource::Element(..) => 0,
            InputSource::Carried(carried) => match carried {
                EventContext::Cpu => contexts::CPU,
                EventContext::Pid => contexts::PID,
                EventContext::Tid | EventContext::Name => 0,
                EventContext::Ip => contexts::IP,
                EventContext::Own(number) => contexts::FIRST_OWN << number,
            },
        };
        self.sources.iter().fold(0, |all, source| all | bit(source))
    }

    /// Places of its inputs among the arguments of sites in programs: a structure as C lays it out.
    ///
    /// # Errors
    ///
    /// The first part that programs do not have when they evaluate the filter.
    pub(super) fn layout(&self, class: &EventClass) -> Result<ArgumentLayout, Refusal> {
        let (size, places) = arguments(class);
        let place = |(number, source): (usize, &InputSource)| {
            let refuse = |why| Err(Refusal { part: self.predicate.inputs[number].name.to_string(), why });
            match *source {
                InputSource::Field(field) => Ok(places[usize::from(field)]),
                InputSource::Element(..) => refuse("elements of arrays are not looked at in programs"),
                InputSource::Carried(_) => refuse("context fields are not known before events are recorded"),
            }
        };
        let places = self.sources.iter().enumerate().map(place).collect::<Result<_, _>>()?;
        Ok(ArgumentLayout { size, places })
    }
}

/// The problem with a name that only traces know.
fn of_traces(names: &ClassNames<'_>, (path, span): (kymo_filter::NamePath, Range<usize>)) -> Option<FilterProblem> {
    let PathMeaning::Missing { near } = names.find(&path) else { return None };
    let help = near.first().map(|near| format!("there is `{near}`"));
    is_of_traces(&path).then(|| FilterProblem { span, kind: ProblemKind::NotWhileRecorded(path.to_string()), help })
}

/// The place of a field among the arguments of a class, as a part of a key.
///
/// # Errors
///
/// Why it cannot be one, for people.
pub fn key_value(class: &EventClass, field: &str) -> Result<KeyPart, String> {
    let Some(at) = class.fields.iter().position(|known| known.name == field) else {
        let near = kymo_filter::nearest(field, class.fields.iter().map(|known| known.name.as_str()));
        let help = near.first().map_or_else(String::new, |near| format!("; there is `{near}`"));
        return Err(format!("{} has no field `{field}`{help}", class.full_name()));
    };
    let (_, places) = arguments(class);
    match (&class.fields[at].kind, places[at]) {
        (FieldType::Scalar(scalar), InputPlace::Integer { offset, bytes, .. }) => {
            let is_signed = match scalar {
                ScalarType::Integer(integer) | ScalarType::Enumeration(integer, _) => integer.is_signed,
                ScalarType::Real(_) | ScalarType::Boolean => false,
            };
            Ok(KeyPart::Number { offset, bytes, is_signed })
        }
        (FieldType::Text | FieldType::FixedText(_), InputPlace::Pointer { offset }) => Ok(KeyPart::Text { offset }),
        _ => Err(format!("`{field}` of {} is no whole number and no text: it cannot be a key", class.full_name())),
    }
}

/// The structure of a class' arguments: its size, and the place of each field; for arrays, the
/// place of their address.
pub(crate) fn arguments(class: &EventClass) -> (u32, Vec<InputPlace>) {
    let mut size = 0_u32;
    let place = |kind: &FieldType| {
        let (bytes, alignment) = match kind {
            FieldType::Scalar(scalar) => (scalar.bytes().into(), u32::from(scalar.bytes())),
            FieldType::Array(..) => (8, 8),
            FieldType::Text | FieldType::FixedText(_) | FieldType::Sequence(_) => (16, 8),
        };
        let offset = size.next_multiple_of(alignment.max(1));
        size = offset + bytes;
        match kind {
            FieldType::Scalar(ScalarType::Real(bytes)) => InputPlace::Real { offset, bytes: *bytes },
            FieldType::Scalar(scalar) => {
                InputPlace::Integer { offset, bytes: scalar.bytes(), order: ByteOrder::Little }
            }
            _ => InputPlace::Pointer { offset },
        }
    };
    let places = class.fields.iter().map(|field| &field.kind).map(place).collect();
    // Sites in C have more bytes after it, sites in Rust need not.
    (size, places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_schema::definition::{Definition, parse};

    fn class(fields: &str) -> EventClass {
        let Ok(Definition::Event(class)) = parse(format!("event net:sent\nlevel 6\n{fields}").as_bytes()) else {
            panic!("{fields} is understood")
        };
        class
    }

    fn said(fields: &str, text: &str) -> String {
        let class = class(fields);
        let filter = match Filter::parse(text) {
            Ok(filter) => filter,
            Err(problems) => return problems.iter().map(|problem| problem.render(text)).collect(),
        };
        let facts = ProgramConstants { pid: Some(12), contexts: &[] };
        match ClassFilter::new(&filter, &class, facts) {
            Ok(bound) => {
                let mut said = format!("{:?}\n{}", bound.verdict(), bound.predicate);
                bound.missing().iter().for_each(|missing| said += &missing.render(text));
                match bound.layout(&class) {
                    Ok(layout) => said + &format!("{layout:?}\n"),
                    Err(refusal) => said + &format!("{refusal}\n"),
                }
            }
            Err(problems) => problems.iter().map(|problem| problem.render(text)).collect(),
        }
    }

    fn all_said(texts: &[&str]) -> String {
        let fields = "field u16 port\nfield text host\nfield enum u8(idle=0, busy=1) state\nfield f32 load\n\
                      field bool up\nfield x64 flags\nfield array 3 u8 mac\nfield sequence i32 values\nfield u8 http.status\n";
        texts.iter().map(|text| format!("--- {text}\n{}", said(fields, text))).collect()
    }

    #[test]
    fn names_are_fields() {
        let all = [
            "port == 80 && host == \"a*\" && up",
            "state == \"busy\" || load > 0.5 || flags & 4",
            "http.status == 200 || http_status == 4",
        ];
        expect_test::expect![[r#"
            --- port == 80 && host == "a*" && up
            Depends
            input 0  port: u16
            input 1  up: u1
            input 2  host: text Utf8
            all
              port == 80
              up == 1
              host begins with "a"
            ArgumentLayout { size: 73, places: [Integer { offset: 0, bytes: 2, order: Little }, Integer { offset: 32, bytes: 1, order: Little }, Pointer { offset: 8 }] }
            --- state == "busy" || load > 0.5 || flags & 4
            Depends
            input 0  state: u8
            input 1  flags: u64
            input 2  load: real
            any
              state == 1
              (flags & 4) != 0
              load > 0.5
            ArgumentLayout { size: 73, places: [Integer { offset: 24, bytes: 1, order: Little }, Integer { offset: 40, bytes: 8, order: Little }, Real { offset: 28, bytes: 4 }] }
            --- http.status == 200 || http_status == 4
            Depends
            input 0  http.status: u8
            any
              http.status == 200
              http.status == 4
            ArgumentLayout { size: 73, places: [Integer { offset: 72, bytes: 1, order: Little }] }
        "#]].assert_eq(&all_said(&all));
    }

    #[test]
    fn names_are_elements_contexts_and_words() {
        let all = [
            "mac[2] == 7",
            "mac[3] == 7",
            "values[3] == 7 || has(values)",
            "$ctx.vtid == 3 && port > 2",
            "$ctx.vpid == 12",
            "event.name == \"net:*\" && event.log_level <= 6",
        ];
        expect_test::expect![[r#"
            --- mac[2] == 7
            Depends
            input 0  mac[2]: u8
            mac[2] == 7
            elements of arrays are not looked at in programs: mac[2]
            --- mac[3] == 7
            NeverTrue
            false
            there is no `mac[3]`
                mac[3] == 7
                ^^^^^^
            ArgumentLayout { size: 73, places: [] }
            --- values[3] == 7 || has(values)
            AlwaysTrue
            true
            ArgumentLayout { size: 73, places: [] }
            --- $ctx.vtid == 3 && port > 2
            Depends
            input 0  $ctx.vtid: u32, may be missing
            input 1  port: u16
            all
              $ctx.vtid == 3
              port > 2
            context fields are not known before events are recorded: $ctx.vtid
            --- $ctx.vpid == 12
            AlwaysTrue
            true
            ArgumentLayout { size: 73, places: [] }
            --- event.name == "net:*" && event.log_level <= 6
            AlwaysTrue
            true
            ArgumentLayout { size: 73, places: [] }
        "#]]
        .assert_eq(&all_said(&all));
    }

    #[test]
    fn what_cannot_be_asked_is_told() {
        let all =
            ["prot == 80", "time > 5 && port == 1", "event.id == 1", "host == 4", "state == \"busi\"", "values == 3"];
        expect_test::expect![[r#"
            --- prot == 80
            NeverTrue
            false
            there is no `prot`
                prot == 80
                ^^^^
            help: did you mean `port`?
            ArgumentLayout { size: 73, places: [] }
            --- time > 5 && port == 1
            `time` is known of traces, not while events are recorded
                time > 5 && port == 1
                ^^^^
            --- event.id == 1
            `event.id` is known of traces, not while events are recorded
                event.id == 1
                ^^^^^^^^
            --- host == 4
            `host` is text and `4` is a number: they cannot be compared
                host == 4
                ^^^^^^^^^
            --- state == "busi"
            `state` has no label "busi"
                state == "busi"
                         ^^^^^^
            help: did you mean `"busy"`?
            --- values == 3
            `values` is an array, which has no single value
                values == 3
                ^^^^^^
            help: name one of its members, as in `values.member` or `values[0]`
        "#]]
        .assert_eq(&all_said(&all));
    }

    #[test]
    fn one_of_several_says_yes() {
        let class = class("field u16 port\nfield text host\n");
        let bound = |text| {
            ClassFilter::new(&Filter::parse(text).expect("it is one"), &class, ProgramConstants::default())
                .expect("it is typed")
        };
        let any = |texts: &[&'static str]| {
            let all: Vec<ClassFilter> = texts.iter().map(|text| bound(text)).collect();
            let any = ClassFilter::any(&all);
            assert_eq!(any.predicate.verify(), Ok(()));
            format!("{:?}\n{}", any.verdict(), any.predicate)
        };
        let several = ["host == \"a\"", "port == 1 && host == \"b\"", "host == \"a\"", "prot == 2"];
        expect_test::expect![[r#"
            Depends
            input 0  host: text Utf8
            input 1  port: u16
            any
              host is "a"
              all
                port == 1
                host is "b"
        "#]]
        .assert_eq(&any(&several));
        expect_test::expect![[r#"
            AlwaysTrue
            input 0  port: u16
            true
            NeverTrue
            false
        "#]]
        .assert_eq(&(any(&["port == 1", "port >= 0"]) + &any(&[])));
    }
}
