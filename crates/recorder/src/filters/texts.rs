//! Filters as people write them, for the existing events.

use kymo_filter::{FieldResolver, Filter, FilterProblem, NamePath, PathMeaning, nearest};
use kymo_schema::definition::EventClass;

use super::class::ClassFilter;
use super::names::{ClassNames, ProgramConstants};

/// Errors of an expression: lines for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

impl Wrong {
    fn new(problems: &[FilterProblem], text: &str) -> Self {
        Self(problems.iter().map(|problem| problem.render(text)).collect())
    }
}

impl ClassFilter {
    /// Expressions of which at least one has to be true. An expression that cannot be evaluated on
    /// these events is never true.
    ///
    /// # Errors
    ///
    /// None of them can be evaluated.
    pub fn of_texts<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        class: &EventClass,
        facts: ProgramConstants<'_>,
    ) -> Result<Self, Wrong> {
        let mut filters = Vec::new();
        let mut wrong = None;
        for text in texts {
            match Filter::parse(text).and_then(|filter| Self::new(&filter, class, facts)) {
                Ok(filter) => filters.push(filter),
                Err(problems) => _ = wrong.get_or_insert_with(|| Wrong::new(&problems, text)),
            }
        }
        match wrong {
            Some(wrong) if filters.is_empty() => Err(wrong),
            _ => Ok(Self::any(&filters)),
        }
    }
}

/// Notes for people about an expression for these events: events that it cannot be evaluated on,
/// and events without the names that it uses.
///
/// # Errors
///
/// The expression is wrong, it can be evaluated on none of them, or it uses a name that looks like one of theirs and is
/// none. A name like no other may be that of a program that starts later.
pub fn check(text: &str, classes: &[&EventClass]) -> Result<Vec<String>, Wrong> {
    let filter = Filter::parse(text).map_err(|problems| Wrong::new(&problems, text))?;
    let (mut asked, mut lacking) = (0, Vec::new());
    let mut notes: Vec<String> = Vec::new();
    for class in classes {
        match ClassFilter::new(&filter, class, ProgramConstants::default()) {
            Ok(bound) => {
                asked += 1;
                if bound.missing().iter().any(|missing| !missing.is_asked_for) {
                    lacking.push(bound.missing().iter().map(|missing| missing.render(text)).collect::<String>());
                }
                for note in bound
                    .notes()
                    .iter()
                    .map(|note| note.render(text))
                    .filter(|note| !notes.contains(note))
                    .collect::<Vec<_>>()
                {
                    notes.push(note);
                }
            }
            Err(problems) => notes.push(format!("{}: {}", class.full_name(), Wrong::new(&problems, text).0)),
        }
    }
    if asked == 0 && !notes.is_empty() {
        return Err(Wrong(notes.swap_remove(0)));
    }
    let (mistaken, unknown) = names_of_none(&filter, classes);
    if !mistaken.is_empty() {
        return Err(Wrong::new(&mistaken, text));
    }
    notes.extend(unknown.iter().map(|problem| format!("so far, {}", problem.render(text))));
    if let Some(first) = lacking.first() {
        let lack = if lacking.len() == 1 { "lacks" } else { "lack" };
        notes.push(format!("{} of {} events {lack} something of it: {first}", lacking.len(), classes.len()));
    }
    Ok(notes)
}

/// Names that none of the classes has: those like one of theirs, and others.
fn names_of_none(filter: &Filter, classes: &[&EventClass]) -> (Vec<FilterProblem>, Vec<FilterProblem>) {
    let has = |class: &EventClass, path: &NamePath| {
        !matches!(ClassNames::new(class, ProgramConstants::default()).find(path), PathMeaning::Missing { .. })
    };
    let names = filter.paths().into_iter();
    let unknown = names.filter(|(path, _)| !classes.is_empty() && !classes.iter().any(|class| has(class, path)));
    let (mut mistaken, mut others) = (Vec::new(), Vec::new());
    for (path, span) in unknown {
        let fields = classes.iter().flat_map(|class| class.fields.iter().map(|field| field.name.as_str()));
        let near = nearest(&path.to_string(), fields);
        if near.is_empty() { &mut others } else { &mut mistaken }.push(filter.unknown_name(span, &near));
    }
    (mistaken, others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_schema::definition::{Definition, parse};

    fn class(definition: &str) -> EventClass {
        match parse(definition.as_bytes()) {
            Ok(Definition::Event(class)) => class,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_stands() {
        let sent = class("event net:sent\nfield i16 delta\nfield text host\nfield bool ok\n");
        let lost = class("event net:lost\nfield i16 delta\nfield u8 host\n");
        let check = |text: &str| check(text, &[&sent, &lost]).map_err(|wrong| wrong.0);
        assert_eq!(check("delta == 1"), Ok(Vec::new()));
        let lines = check("ok && dleta == 1").expect_err("there is no such field");
        assert_eq!(
            lines,
            "no class of events has `dleta`\n    ok && dleta == 1\n          ^^^^^\nhelp: there is `delta`\n"
        );
        let notes = check("queue_depth > 3").expect("a program that starts later may have it");
        assert_eq!(notes[0], "so far, no class of events has `queue_depth`\n    queue_depth > 3\n    ^^^^^^^^^^^\n");
        let notes = check("host == 1").expect("one has a number");
        assert!(notes[0].starts_with("net:sent: `host` is text and `1` is a number"), "{notes:?}");
        let notes = check("ok").expect("one has it");
        assert_eq!(notes, ["1 of 2 events lacks something of it: there is no `ok`\n    ok\n    ^^\n"]);
        let lines = check("delta == \"a\"").expect_err("both are numbers");
        assert!(lines.starts_with("net:sent: `delta` is a number") || lines.contains("cannot be compared"), "{lines}");
        assert!(check("host ==").expect_err("it has no end").starts_with("found the end, expected a value"));
        assert_eq!(super::check("anything == 1", &[]).expect("nobody knows yet"), [""; 0]);
    }

    #[test]
    fn of_several_those_are_asked_that_can_be() {
        let sent = class("event net:sent\nfield text host\n");
        let of =
            |texts: &[&'static str]| ClassFilter::of_texts(texts.iter().copied(), &sent, ProgramConstants::default());
        assert_eq!(
            of(&["host == 1", "host == \"a\""]).map(|filter| filter.verdict()),
            Ok(kymo_filter::Verdict::Depends)
        );
        assert!(of(&["host == 1", "host == 2"]).expect_err("none").0.contains("host == 1"));
    }
}
