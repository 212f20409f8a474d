//! An own analysis from its text, with everything that is wrong with it.

use std::ops::Range;

use kymo_filter::nearest;
use toml::de::{DeTable, DeValue};

use super::{AnalysisDeclaration, DeclaredItem, EventRule, ItemKind, RuleAction};
use crate::mapping::read::{MappingReader, Value};
use crate::mapping::{MappingErrors, MappingProblemKind as Kind, ValueSource};

/// Fields that a key may have.
pub const KEY_FIELDS_MAX: usize = 8;

const A_RULE: &str = "an event's name, a table (`{ event = ..., when = ... }`), or a list of these";
const AN_ITEM: &str = "tables: `[[pairs]]`, `[[operations]]`, `[[states]]`, `[[counters]]` with their keys";

/// Reads an own analysis.
pub(super) fn declaration(text: &str) -> Result<AnalysisDeclaration, MappingErrors> {
    let mut reader = Declarer { reader: MappingReader { text, problems: Vec::new() }, items: Vec::new() };
    let mut name = String::new();
    match DeTable::parse(text) {
        Ok(table) => name = reader.file(table.get_ref()),
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            reader.reader.problem(span.start, Kind::Toml(error.message().to_owned()));
        }
    }
    let mut problems = reader.reader.problems;
    problems.sort_by_key(|problem| (problem.line, problem.column));
    if !problems.is_empty() {
        return Err(MappingErrors { problems });
    }
    // The tree has an order of its own.
    let mut items = reader.items;
    items.sort_by_key(|item| item.at);
    let mut rules: Vec<(u8, usize, EventRule)> = Vec::new();
    for (place, item) in items.iter_mut().enumerate() {
        for (at, rule) in item.rules.drain(..) {
            rules.push((rule.act.turn(), at, EventRule { item: place, ..rule }));
        }
    }
    rules.sort_by_key(|&(turn, at, _)| (turn, at));
    let rules = rules.into_iter().map(|(_, _, rule)| rule).collect();
    Ok(AnalysisDeclaration { name, items: items.into_iter().map(|item| item.item).collect(), rules })
}

struct Declarer<'t> {
    reader: MappingReader<'t>,
    items: Vec<ReadItem>,
}

struct ReadItem {
    at: usize,
    item: DeclaredItem,
    /// With where they stand.
    rules: Vec<(usize, EventRule)>,
}

/// The items that a file may have.
const ITEMS: [&str; 4] = ["pairs", "operations", "states", "counters"];

/// Words that a rule of an item may have.
struct Grammar<'k> {
    /// How messages call the rule.
    place: &'static str,
    words: &'static [&'static str],
    act: RuleAction,
    key: &'k [ValueSource],
    /// Words that all of them have.
    value: Option<ValueSource>,
}

fn get<'v, 't>(table: &'v DeTable<'t>, word: &str) -> Option<&'v Value<'t>> {
    table.iter().find(|(key, _)| key.get_ref().as_ref() == word).map(|(_, value)| value)
}

impl Declarer<'_> {
    /// Reports unknown words.
    fn words(&mut self, table: &DeTable<'_>, place: &'static str, words: &[&str]) {
        for (key, _) in table {
            let name = key.get_ref().as_ref();
            if !words.contains(&name) {
                let near = nearest(name, words.iter().copied());
                self.reader.problem(key.span().start, Kind::Word { place, name: name.to_owned(), near });
            }
        }
    }

    /// A word that must be there.
    fn required<'v, 't>(
        &mut self,
        table: &'v DeTable<'t>,
        at: usize,
        (place, word, meaning): (&'static str, &'static str, &'static str),
    ) -> Option<&'v Value<'t>> {
        let value = get(table, word);
        if value.is_none() {
            self.reader.problem(at, Kind::Lacks { place, word, meaning });
        }
        value
    }

    fn name(&mut self, table: &DeTable<'_>, at: usize, place: &'static str) -> String {
        let value = self.required(table, at, (place, "name", "its displayed name"));
        value.and_then(|value| self.reader.string(value)).unwrap_or_default()
    }

    /// The file; its name.
    fn file(&mut self, table: &DeTable<'_>) -> String {
        self.words(table, "an own analysis", &[&["name"], &ITEMS[..]].concat());
        let name = self.name(table, 0, "an own analysis");
        for word in ITEMS {
            for value in get(table, word).map(|value| self.reader.list(value)).unwrap_or_default() {
                let DeValue::Table(table) = value.get_ref() else {
                    self.reader.unexpected(value, AN_ITEM);
                    continue;
                };
                match word {
                    "pairs" => self.pairs(table, value.span()),
                    "operations" => self.operations(table, value.span()),
                    "states" => self.states(table, value.span()),
                    _ => self.counters(table, value.span()),
                }
            }
        }
        name
    }

    fn pairs(&mut self, table: &DeTable<'_>, span: Range<usize>) {
        const PLACE: &str = "`pairs`";
        self.words(table, PLACE, &["name", "key", "begin", "end", "group", "nested"]);
        let name = self.name(table, span.start, PLACE);
        let key = self.key(table);
        let group = get(table, "group").and_then(|value| self.reader.source(value));
        let is_nested = match get(table, "nested").map(|value| (value, value.get_ref())) {
            Some((_, DeValue::Boolean(is_nested))) => *is_nested,
            Some((value, _)) => {
                self.reader.unexpected(value, "a truth value");
                false
            }
            None => false,
        };
        let words = &["event", "when", "key"][..];
        let grammar = |place, act, value| Grammar { place, words, act, key: &key, value };
        let mut rules = Vec::new();
        if let Some(value) = self.required(table, span.start, (PLACE, "begin", "the event that begins a pair")) {
            self.rules(value, &grammar("`begin`", RuleAction::Begin, group), &mut rules);
        }
        if let Some(value) = self.required(table, span.start, (PLACE, "end", "the event that ends a pair")) {
            self.rules(value, &grammar("`end`", RuleAction::End, None), &mut rules);
        }
        self.item(span.start, DeclaredItem { name, kind: ItemKind::Pairs { is_nested }, unit: None }, rules);
    }

    fn operations(&mut self, table: &DeTable<'_>, span: Range<usize>) {
        const PLACE: &str = "`operations`";
        const KEY: (&str, &str, &str) = (PLACE, "key", "the fields that all events of an operation have");
        self.words(table, PLACE, &["name", "key", "begin", "step", "end", "group", "within", "early"]);
        let name = self.name(table, span.start, PLACE);
        self.required(table, span.start, KEY);
        let key = self.key(table);
        let group = get(table, "group").and_then(|value| self.reader.source(value));
        let early = get(table, "early").and_then(|value| self.reader.integer(value, "a number of nanoseconds"));
        let words = &["event", "when", "key"][..];
        let with_group = &["event", "when", "key", "group"][..];
        let grammar = |place, act, value: &Option<ValueSource>| {
            let words = if act == RuleAction::Step { words } else { with_group };
            Grammar { place, words, act, key: &key, value: value.clone() }
        };
        let (mut rules, mut ends) = (Vec::new(), Vec::new());
        match get(table, "step") {
            Some(value) => self.rules(value, &grammar("`step`", RuleAction::Step, &None), &mut rules),
            None => rules.push((span.start, EventRule::any_step(key.clone()))),
        }
        if let Some(value) = self.required(table, span.start, (PLACE, "begin", "the event that begins an operation")) {
            self.rules(value, &grammar("`begin`", RuleAction::Begin, &group), &mut ends);
        }
        if let Some(value) = self.required(table, span.start, (PLACE, "end", "the event that ends an operation")) {
            self.rules(value, &grammar("`end`", RuleAction::End, &group), &mut ends);
        }
        // Begins and ends have their place in common, too, which steps need not have.
        let within: Vec<ValueSource> = get(table, "within")
            .map(|value| self.reader.list(value))
            .unwrap_or_default()
            .into_iter()
            .filter_map(|field| self.reader.source(field))
            .collect();
        let longest = ends.iter().map(|(_, rule)| rule.key.len() + within.len()).max().unwrap_or(0);
        if longest > KEY_FIELDS_MAX {
            self.reader.problem(span.start, Kind::KeyFieldsMax(longest));
        }
        let key_fields = key.len();
        let kind = ItemKind::Operations { key_fields, early_ns: early.unwrap_or(0).try_into().unwrap_or(0) };
        rules.extend(ends);
        self.item(span.start, DeclaredItem { name, kind, unit: None }, rules);
        let item = self.items.last_mut().expect("it was added");
        for (_, rule) in item.rules.iter_mut().filter(|(_, rule)| rule.act != RuleAction::Step) {
            rule.key.extend_from_slice(&within);
        }
    }

    fn states(&mut self, table: &DeTable<'_>, span: Range<usize>) {
        const PLACE: &str = "`states`";
        self.words(table, PLACE, &["name", "key", "set"]);
        let name = self.name(table, span.start, PLACE);
        let key = self.key(table);
        let words = &["event", "when", "key", "to"][..];
        let grammar = Grammar { place: "`set`", words, act: RuleAction::Set, key: &key, value: None };
        let mut rules = Vec::new();
        if let Some(value) = self.required(table, span.start, (PLACE, "set", "which events set which state")) {
            self.rules(value, &grammar, &mut rules);
        }
        self.item(span.start, DeclaredItem { name, kind: ItemKind::States, unit: None }, rules);
    }

    fn counters(&mut self, table: &DeTable<'_>, span: Range<usize>) {
        const PLACE: &str = "`counters`";
        self.words(table, PLACE, &["name", "key", "unit", "change"]);
        let name = self.name(table, span.start, PLACE);
        let unit = get(table, "unit").and_then(|unit| self.reader.string(unit));
        let key = self.key(table);
        let words = &["event", "when", "key", "add", "to"][..];
        let grammar = Grammar { place: "`change`", words, act: RuleAction::Add, key: &key, value: None };
        let mut rules = Vec::new();
        if let Some(value) = self.required(table, span.start, (PLACE, "change", "which events change it")) {
            self.rules(value, &grammar, &mut rules);
        }
        self.item(span.start, DeclaredItem { name, kind: ItemKind::Counter, unit }, rules);
    }

    /// Keys of rules of an item must have equally many fields.
    fn item(&mut self, at: usize, item: DeclaredItem, rules: Vec<(usize, EventRule)>) {
        let expected = rules.first().map_or(0, |first| first.1.key.len());
        for (at, rule) in &rules {
            let found = rule.key.len();
            if found > KEY_FIELDS_MAX {
                self.reader.problem(*at, Kind::KeyFieldsMax(found));
            } else if found != expected {
                self.reader.problem(*at, Kind::KeyFields { found, expected });
            }
        }
        self.items.push(ReadItem { at, item, rules });
    }

    fn key(&mut self, table: &DeTable<'_>) -> Vec<ValueSource> {
        let fields = get(table, "key").map(|value| self.reader.list(value)).unwrap_or_default();
        fields.into_iter().filter_map(|field| self.reader.source(field)).collect()
    }

    fn rules(&mut self, value: &Value<'_>, grammar: &Grammar<'_>, into: &mut Vec<(usize, EventRule)>) {
        for value in self.reader.list(value) {
            let at = value.span().start;
            let rule = |events| EventRule {
                item: 0,
                act: grammar.act,
                events,
                when: None,
                key: grammar.key.to_vec(),
                value: grammar.value.clone(),
            };
            match value.get_ref() {
                DeValue::Table(table) => {
                    let mut rule = rule(Vec::new());
                    self.rule(table, at, grammar, &mut rule);
                    into.push((at, rule));
                }
                // An event alone changes nothing.
                DeValue::String(_) if matches!(grammar.act, RuleAction::Begin | RuleAction::Step | RuleAction::End) => {
                    into.push((at, rule(self.reader.patterns(value))));
                }
                _ => self.reader.unexpected(value, A_RULE),
            }
        }
    }

    fn rule(&mut self, table: &DeTable<'_>, at: usize, grammar: &Grammar<'_>, rule: &mut EventRule) {
        self.words(table, grammar.place, grammar.words);
        let event = self.required(table, at, (grammar.place, "event", "the name of an event, or a pattern of it"));
        rule.events = event.map(|event| self.reader.patterns(event)).unwrap_or_default();
        rule.when = get(table, "when").and_then(|when| self.reader.filter(when));
        if get(table, "key").is_some() {
            rule.key = self.key(table);
        }
        if let Some(group) = get(table, "group").filter(|_| grammar.words.contains(&"group")) {
            rule.value = self.reader.source(group);
        }
        let (add, to) = (get(table, "add"), get(table, "to"));
        match grammar.act {
            RuleAction::Set => match to {
                Some(to) => rule.value = self.value(to),
                None => rule.act = RuleAction::Clear,
            },
            RuleAction::Add => match (add, to) {
                (Some(add), None) => rule.value = self.value(add),
                (None, Some(to)) => (rule.act, rule.value) = (RuleAction::To, self.value(to)),
                _ => self.reader.problem(at, Kind::Change),
            },
            RuleAction::Begin | RuleAction::Step | RuleAction::End | RuleAction::Clear | RuleAction::To => {}
        }
        let stars = rule.events.iter().map(crate::mapping::NamePattern::stars).min().unwrap_or(0);
        for source in rule.key.iter().chain(&rule.value) {
            if let ValueSource::Capture(wanted) = source
                && !(1..=stars).contains(wanted)
            {
                self.reader.problem(at, Kind::Capture { wanted: *wanted as i64, stars });
            }
        }
    }

    /// A literal text or integer, or the value of a field.
    fn value(&mut self, value: &Value<'_>) -> Option<ValueSource> {
        match value.get_ref() {
            DeValue::String(text) => Some(ValueSource::Text(text.clone().into_owned())),
            DeValue::Integer(_) => self.reader.integer(value, "an integer").map(ValueSource::Integer),
            DeValue::Table(table) if table.len() == 1 && get(table, "field").is_some() => {
                get(table, "field").and_then(|field| self.reader.source(field))
            }
            DeValue::Table(table) if get(table, "capture").is_some() => self.reader.source(value),
            _ => {
                self.reader.unexpected(value, "a text, an integer, or the value of a field: `{ field = \"name\" }`");
                None
            }
        }
    }
}
