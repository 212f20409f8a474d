//! A mapping from its text.
//!
//! The text is TOML; its meaning is read from TOML's tree with the place of everything, so that
//! each mistake is told with its place, all of them at once.

use std::ops::Range;

use kymo_filter::{Filter, FilterProblem, NamePath, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{MappingErrors, MappingProblem, MappingProblemKind};
use super::{Alternatives, NamePattern, RoleMapping, Section, ValueSource};
use crate::roles::{CONTEXT, EventRole, ROLES};

pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// Reads a mapping.
pub(super) fn mapping(text: &str) -> Result<RoleMapping, MappingErrors> {
    let mut reader = MappingReader { text, problems: Vec::new() };
    let mapping = match DeTable::parse(text) {
        Ok(table) => reader.mapping(table.get_ref()),
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            reader.problem(span.start, MappingProblemKind::Toml(error.message().to_owned()));
            RoleMapping::new("")
        }
    };
    let mut problems = reader.problems;
    problems.sort_by_key(|problem| (problem.line, problem.column));
    if problems.is_empty() { Ok(mapping) } else { Err(MappingErrors { problems }) }
}

/// Reads texts, and reports their errors.
pub(crate) struct MappingReader<'t> {
    pub(crate) text: &'t str,
    pub(crate) problems: Vec<MappingProblem>,
}

pub(crate) const A_TEXT: &str = "a text";
const A_ROLE: &str = "a table: `[[role]]` with its keys";
const A_FIELD: &str =
    "a field as a text, `{ value = 3 }`, `{ capture = 1 }`, or a list of these, of which the first that exists counts";

impl MappingReader<'_> {
    pub(crate) fn problem(&mut self, at: usize, kind: MappingProblemKind) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() as u64 + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
        self.problems.push(MappingProblem { line, column, kind });
    }

    pub(crate) fn unexpected(&mut self, value: &Value<'_>, expected: &'static str) {
        let found = match value.get_ref() {
            DeValue::String(_) => A_TEXT,
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a real number",
            DeValue::Boolean(_) => "a truth value",
            DeValue::Datetime(_) => "a time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.problem(value.span().start, MappingProblemKind::Found { found, expected });
    }

    fn mapping(&mut self, table: &DeTable<'_>) -> RoleMapping {
        let mut mapping = RoleMapping::new("");
        let mut is_named = false;
        // Roles keep the order of the text, which the tree does not.
        let mut sections: Vec<(usize, Section)> = Vec::new();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "name" => {
                    is_named = true;
                    mapping.name = self.string(value).unwrap_or_default();
                }
                "when" => mapping.when = self.filter(value),
                "context" => match value.get_ref() {
                    DeValue::Table(fields) => self.context(fields, &mut mapping.context),
                    _ => self.unexpected(value, "a table: `[context]`, then its fields"),
                },
                name => match EventRole::named(name) {
                    Some(role) => self.sections(role, value, &mut sections),
                    None => {
                        let words = ["name", "when", "context"];
                        let near = nearest(name, ROLES.iter().map(|facts| facts.name).chain(words));
                        self.problem(key.span().start, MappingProblemKind::Role { name: name.to_owned(), near });
                    }
                },
            }
        }
        if !is_named {
            self.problem(0, MappingProblemKind::NoName);
        }
        sections.sort_by_key(|(at, _)| *at);
        mapping.sections = sections.into_iter().map(|(_, section)| section).collect();
        mapping
    }

    fn context(&mut self, fields: &DeTable<'_>, into: &mut [Alternatives]) {
        for (key, value) in fields {
            let name = key.get_ref().as_ref();
            match CONTEXT.iter().position(|field| field.name == name) {
                Some(place) => into[place] = self.alternatives(value),
                None => {
                    let near = nearest(name, CONTEXT.iter().map(|field| field.name));
                    self.problem(key.span().start, MappingProblemKind::Context { name: name.to_owned(), near });
                }
            }
        }
    }

    fn sections(&mut self, role: EventRole, value: &Value<'_>, into: &mut Vec<(usize, Section)>) {
        match value.get_ref() {
            DeValue::Table(table) => into.push(self.section(role, table, value.span())),
            DeValue::Array(list) => {
                for value in list {
                    match value.get_ref() {
                        DeValue::Table(table) => into.push(self.section(role, table, value.span())),
                        _ => self.unexpected(value, A_ROLE),
                    }
                }
            }
            _ => self.unexpected(value, A_ROLE),
        }
    }

    fn section(&mut self, role: EventRole, table: &DeTable<'_>, span: Range<usize>) -> (usize, Section) {
        let facts = role.facts();
        let mut section = Section::new(role, Vec::new());
        let mut has_event = false;
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            match name {
                "event" => (has_event, section.events) = (true, self.patterns(value)),
                "when" => section.when = self.filter(value),
                _ => {
                    if let Some(field) = role.field(name) {
                        section.fields[field] = self.alternatives(value);
                    } else if let Some(field) = CONTEXT.iter().position(|field| field.name == name) {
                        section.context[field] = self.alternatives(value);
                    } else {
                        let words = facts.fields.iter().chain(CONTEXT).map(|field| field.name);
                        let near = nearest(name, words.chain(["event", "when"]));
                        let kind = MappingProblemKind::Field { role: facts.name, name: name.to_owned(), near };
                        self.problem(key.span().start, kind);
                    }
                }
            }
        }
        if !has_event {
            self.problem(span.start, MappingProblemKind::NoEvent(facts.name));
        }
        for (field, said) in facts.fields.iter().zip(&section.fields) {
            if field.is_required && said.is_empty() && !table.iter().any(|(key, _)| key.get_ref() == field.name) {
                let kind = MappingProblemKind::Required { role: facts.name, field: field.name };
                self.problem(span.start, kind);
            }
        }
        self.captures(table, &section);
        (span.start, section)
    }

    /// Captures stand for stars that all patterns have.
    fn captures(&mut self, table: &DeTable<'_>, section: &Section) {
        let stars = section.events.iter().map(NamePattern::stars).min().unwrap_or(0);
        let said = section.fields.iter().chain(&section.context).flatten();
        for source in said {
            if let ValueSource::Capture(wanted) = source
                && !(1..=stars).contains(wanted)
            {
                let at =
                    table.iter().find(|(key, _)| key.get_ref() == "event").map_or(0, |(_, value)| value.span().start);
                self.problem(at, MappingProblemKind::Capture { wanted: *wanted as i64, stars });
            }
        }
    }

    pub(crate) fn patterns(&mut self, value: &Value<'_>) -> Vec<NamePattern> {
        self.list(value).into_iter().filter_map(|value| self.string(value)).map(NamePattern::new).collect()
    }

    fn alternatives(&mut self, value: &Value<'_>) -> Alternatives {
        self.list(value).into_iter().filter_map(|value| self.source(value)).collect()
    }

    /// The elements of a list, or the value alone.
    pub(crate) fn list<'v, 't>(&self, value: &'v Value<'t>) -> Vec<&'v Value<'t>> {
        match value.get_ref() {
            DeValue::Array(values) => values.iter().collect(),
            _ => vec![value],
        }
    }

    pub(crate) fn source(&mut self, value: &Value<'_>) -> Option<ValueSource> {
        match value.get_ref() {
            DeValue::String(text) => match NamePath::parse(text) {
                Ok(path) => Some(ValueSource::Path(path)),
                Err(problem) => self.expression(value, text, &problem),
            },
            DeValue::Table(table) if table.len() == 1 => {
                let (key, value) = table.iter().next()?;
                match key.get_ref().as_ref() {
                    "value" => match value.get_ref() {
                        DeValue::String(text) => Some(ValueSource::Text(text.clone().into_owned())),
                        _ => self.integer(value, "an integer or a text").map(ValueSource::Integer),
                    },
                    "capture" => {
                        let number = self.integer(value, "the number of a star, from 1")?;
                        Some(ValueSource::Capture(usize::try_from(number).unwrap_or(0)))
                    }
                    name => {
                        self.problem(key.span().start, MappingProblemKind::Source { name: name.to_owned() });
                        None
                    }
                }
            }
            _ => {
                self.unexpected(value, A_FIELD);
                None
            }
        }
    }

    pub(crate) fn integer(&mut self, value: &Value<'_>, expected: &'static str) -> Option<i64> {
        let DeValue::Integer(integer) = value.get_ref() else {
            self.unexpected(value, expected);
            return None;
        };
        let parsed = i64::from_str_radix(integer.as_str(), integer.radix());
        if parsed.is_err() {
            self.problem(value.span().start, MappingProblemKind::Integer(integer.as_str().to_owned()));
        }
        parsed.ok()
    }

    pub(crate) fn string(&mut self, value: &Value<'_>) -> Option<String> {
        if let DeValue::String(text) = value.get_ref() {
            return Some(text.clone().into_owned());
        }
        self.unexpected(value, A_TEXT);
        None
    }

    pub(crate) fn filter(&mut self, value: &Value<'_>) -> Option<Filter> {
        let text = self.string(value)?;
        match Filter::parse(&text) {
            Ok(filter) => Some(filter),
            Err(problems) => {
                for problem in &problems {
                    self.expression::<()>(value, &text, problem);
                }
                None
            }
        }
    }

    /// The problems of an expression in a text.
    fn expression<T>(&mut self, value: &Value<'_>, text: &str, problem: &FilterProblem) -> Option<T> {
        let span = value.span();
        // Where the text is written as it is, the place in it is known too.
        let written = self.text.get(span.clone()).and_then(|raw| raw.find(text));
        let at = span.start + written.map_or(0, |before| before + problem.span.start);
        let help = problem.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        self.problem(at, MappingProblemKind::Expression(format!("{}{help}", problem.kind)));
        None
    }
}
