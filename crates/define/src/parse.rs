//! A schema's text as it stands there: names are not resolved yet.
//!
//! ```text
//! schema shop 3 "The shop";
//! import "common.kymo";
//! enum outcome: u8 { missing = 0, found = 1 "it is there" };
//! subsystem cache "Pages" {
//!     event look "A page is looked for" level info id 4 since 2 { text page, u32 size unit "bytes", outcome result },
//!     pair fetch { begin fetch_begin, end fetch_end (key number), key id },
//! };
//! ```
//!
//! After a mistake, reading goes on behind the end of the item or of the event.

use crate::lexer::{BYTES_MAX, SchemaToken, SchemaTokenKind, tokens};
use crate::problem::{SchemaPlace, SchemaProblem};

/// A word or name, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) place: SchemaPlace,
}

/// A number, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileNumber {
    pub(crate) number: i128,
    pub(crate) place: SchemaPlace,
}

/// A file.
#[derive(Clone, Debug)]
pub(crate) struct SchemaFile {
    pub(crate) name: Named,
    pub(crate) version: FileNumber,
    pub(crate) text: String,
    pub(crate) items: Vec<FileItem>,
}

/// Something that stands in a file.
#[derive(Clone, Debug)]
pub(crate) enum FileItem {
    Import(Named),
    Enumeration(FileEnumeration),
    Subsystem(FileSubsystem),
}

/// An enumeration.
#[derive(Clone, Debug)]
pub(crate) struct FileEnumeration {
    pub(crate) name: Named,
    pub(crate) integer: Named,
    pub(crate) text: String,
    pub(crate) labels: Vec<(Named, Option<FileNumber>, String)>,
}

/// A subsystem.
#[derive(Clone, Debug)]
pub(crate) struct FileSubsystem {
    pub(crate) name: Named,
    pub(crate) text: String,
    pub(crate) id: Option<FileNumber>,
    pub(crate) events: Vec<FileEvent>,
    /// Durations, each with the place of its begin event; its end event is the next one.
    pub(crate) durations: Vec<(Named, usize)>,
    pub(crate) meanings: Vec<FileMeaning>,
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct FileEvent {
    pub(crate) name: Named,
    pub(crate) text: String,
    pub(crate) level: Option<Named>,
    pub(crate) id: Option<FileNumber>,
    pub(crate) since: Option<FileNumber>,
    pub(crate) fields: Vec<FileField>,
}

/// A field.
#[derive(Clone, Debug)]
pub(crate) struct FileField {
    pub(crate) kind: Named,
    pub(crate) elements: FileElements,
    pub(crate) name: Named,
    pub(crate) unit: Option<String>,
    pub(crate) text: String,
}

/// How many values a field has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileElements {
    One,
    Array(FileNumber),
    Sequence,
}

/// A pair, flow, counter or state.
#[derive(Clone, Debug)]
pub(crate) struct FileMeaning {
    pub(crate) word: Named,
    pub(crate) name: Named,
    pub(crate) text: String,
    /// Roles, their events, and facts of those alone.
    pub(crate) events: Vec<(Named, Named, Vec<FileFact>)>,
    pub(crate) facts: Vec<FileFact>,
}

/// A fact of an event.
#[derive(Clone, Debug)]
pub(crate) struct FileFact {
    pub(crate) word: Named,
    pub(crate) value: FileValue,
    pub(crate) place: SchemaPlace,
}

/// Where the value of a fact is.
#[derive(Clone, Debug)]
pub(crate) enum FileValue {
    Name(String),
    Text(String),
    Number(i128),
}

/// The words that begin items of a file.
const ITEMS: [&str; 3] = ["import", "enum", "subsystem"];
/// The words that define what events mean.
pub(crate) const MEANINGS: [&str; 4] = ["pair", "flow", "counter", "state"];
/// Words that begin a role of an event within a meaning.
const ROLES: [&str; 7] = ["begin", "end", "send", "receive", "change", "enter", "leave"];

/// Whether a text is in this language: it begins with `schema`.
pub(crate) fn is_schema(text: &str) -> bool {
    match tokens_of_first(text) {
        Some(SchemaTokenKind::Word(word)) => word == "schema",
        _ => false,
    }
}

/// The first token, if the comments before it end.
fn tokens_of_first(text: &str) -> Option<SchemaTokenKind> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let length = match rest {
            rest if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            rest if rest.starts_with("/*") => crate::pleco::comment_length(rest)?,
            _ => break,
        };
        rest = rest[length..].trim_start();
    }
    let word: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    Some(SchemaTokenKind::Word(word))
}

/// Reads a file, as far as it is right.
pub(crate) fn parse(text: &str, file: usize) -> (Option<SchemaFile>, Vec<SchemaProblem>) {
    if text.len() > BYTES_MAX {
        let place = SchemaPlace { file, line: 1, column: 1 };
        let message = format!("the file has {} bytes; at most {BYTES_MAX} can be", text.len());
        return (None, vec![SchemaProblem::error(place, message)]);
    }
    match tokens(text, file) {
        Ok(tokens) => FileParser { tokens: &tokens, at: 0, problems: Vec::new() }.file(),
        Err(problem) => (None, vec![problem]),
    }
}

impl FileSubsystem {
    /// Adds what a duration stands for: the events of its begin and its end, and their pair. Durations of a thread are nested,
    /// so that the pair needs no key.
    fn add_duration(&mut self, duration: FileEvent) {
        let FileEvent { name, text, level, id, since, fields } = duration;
        let named = |name: String, place| Named { name, place };
        let of = |end: &str| named(format!("{}_{end}", name.name), name.place);
        let role = |role: &str| (named(role.to_owned(), name.place), of(role), Vec::new());
        self.durations.push((name.clone(), self.events.len()));
        let word = named("pair".to_owned(), name.place);
        let events = vec![role("begin"), role("end")];
        self.meanings.push(FileMeaning { word, name: name.clone(), text: text.clone(), events, facts: Vec::new() });
        // The end has the id behind that of the begin.
        let end_text = format!("The end of `{}`", name.name);
        let end =
            FileEvent { name: of("end"), text: end_text, level: level.clone(), id: None, since, fields: Vec::new() };
        self.events.extend([FileEvent { name: of("begin"), text, level, id, since, fields }, end]);
    }
}

struct FileParser<'t> {
    tokens: &'t [SchemaToken],
    at: usize,
    problems: Vec<SchemaProblem>,
}

impl FileParser<'_> {
    fn token(&self) -> &SchemaToken {
        &self.tokens[self.at]
    }

    fn place(&self) -> SchemaPlace {
        self.token().place
    }

    fn next(&mut self) {
        // The end stays.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn expected<T>(&self, expected: &str) -> Result<T, SchemaProblem> {
        Err(SchemaProblem::error(self.place(), format!("expected {expected}, found {}", self.token().kind.words())))
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token().kind, SchemaTokenKind::Word(found) if found == word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        if is_there {
            self.next();
        }
        is_there
    }

    fn eat(&mut self, symbol: char) -> bool {
        let is_there = self.token().kind == SchemaTokenKind::Symbol(symbol);
        if is_there {
            self.next();
        }
        is_there
    }

    fn symbol(&mut self, symbol: char, why: &str) -> Result<(), SchemaProblem> {
        if self.eat(symbol) { Ok(()) } else { self.expected(&format!("`{symbol}`{why}")) }
    }

    fn name(&mut self, expected: &str) -> Result<Named, SchemaProblem> {
        let SchemaTokenKind::Word(name) = &self.token().kind else { return self.expected(expected) };
        let name = Named { name: name.clone(), place: self.place() };
        self.next();
        Ok(name)
    }

    fn number(&mut self, expected: &str) -> Result<FileNumber, SchemaProblem> {
        let SchemaTokenKind::Number(number) = self.token().kind else { return self.expected(expected) };
        let number = FileNumber { number, place: self.place() };
        self.next();
        Ok(number)
    }

    /// A text, if one is there.
    fn text(&mut self) -> Option<String> {
        let SchemaTokenKind::Text(text) = &self.token().kind else { return None };
        let text = text.clone();
        self.next();
        Some(text)
    }

    fn file(mut self) -> (Option<SchemaFile>, Vec<SchemaProblem>) {
        let head = self.head();
        let file = head.map_err(|problem| self.problems.push(problem)).ok().map(|(name, version, text)| {
            let mut items = Vec::new();
            while self.token().kind != SchemaTokenKind::End {
                match self.item() {
                    Ok(item) => items.push(item),
                    Err(problem) => self.recover(problem, |before, next| before == ';' && ITEMS.contains(&next)),
                }
            }
            SchemaFile { name, version, text, items }
        });
        (file, self.problems)
    }

    /// After a mistake, goes on where something begins that stands behind such a sign.
    fn recover(&mut self, problem: SchemaProblem, begins: impl Fn(char, &str) -> bool) {
        self.problems.push(problem);
        while self.token().kind != SchemaTokenKind::End {
            let before = self.at.checked_sub(1).map(|before| &self.tokens[before].kind);
            if let (Some(SchemaTokenKind::Symbol(before)), SchemaTokenKind::Word(next)) = (before, &self.token().kind)
                && begins(*before, next)
            {
                return;
            }
            self.next();
        }
    }

    fn head(&mut self) -> Result<(Named, FileNumber, String), SchemaProblem> {
        if !self.eat_word("schema") {
            return self.expected("`schema NAME VERSION;`");
        }
        let name = self.name("the schema's name")?;
        let version = self.number("the schema's version: a number from 1 on")?;
        let text = self.text().unwrap_or_default();
        self.symbol(';', " after the version")?;
        Ok((name, version, text))
    }

    fn item(&mut self) -> Result<FileItem, SchemaProblem> {
        let item = if self.eat_word("import") {
            let place = self.place();
            let Some(name) = self.text() else { return self.expected("the name of a file in quotes") };
            FileItem::Import(Named { name, place })
        } else if self.eat_word("enum") {
            FileItem::Enumeration(self.enumeration()?)
        } else if self.eat_word("subsystem") {
            FileItem::Subsystem(self.subsystem()?)
        } else {
            return self.expected("`import`, `enum` or `subsystem`");
        };
        self.symbol(';', " after it")?;
        Ok(item)
    }

    fn enumeration(&mut self) -> Result<FileEnumeration, SchemaProblem> {
        let name = self.name("the enumeration's name")?;
        self.symbol(':', " and the type of its integer, such as `: u8`")?;
        let integer = self.name("the type of its integer, such as `u8`")?;
        let text = self.text().unwrap_or_default();
        let mut labels = Vec::new();
        self.symbol('{', "")?;
        while !self.eat('}') {
            let label = self.name("a label or `}`")?;
            let value = if self.eat('=') { Some(self.number("the label's value")?) } else { None };
            labels.push((label, value, self.text().unwrap_or_default()));
            self.comma("the label")?;
        }
        Ok(FileEnumeration { name, integer, text, labels })
    }

    /// A comma, which may be absent before the end of a list.
    fn comma(&mut self, what: &str) -> Result<(), SchemaProblem> {
        if self.eat(',') || matches!(self.token().kind, SchemaTokenKind::Symbol('}' | ')')) {
            return Ok(());
        }
        self.expected(&format!("`,` after {what}"))
    }

    fn subsystem(&mut self) -> Result<FileSubsystem, SchemaProblem> {
        let name = self.name("the subsystem's name")?;
        let text = self.text().unwrap_or_default();
        let id = if self.eat_word("id") { Some(self.number("the subsystem's number")?) } else { None };
        let (events, durations, meanings) = (Vec::new(), Vec::new(), Vec::new());
        let mut subsystem = FileSubsystem { name, text, id, events, durations, meanings };
        self.symbol('{', "")?;
        while !self.eat('}') {
            if let Err(problem) = self.member(&mut subsystem) {
                let is_member = |next: &str| matches!(next, "event" | "duration") || MEANINGS.contains(&next);
                self.recover(problem, |before, next| match before {
                    ',' | '}' | '{' => is_member(next),
                    ';' => ITEMS.contains(&next),
                    _ => false,
                });
                if ITEMS.iter().any(|item| self.is_word(item)) || self.token().kind == SchemaTokenKind::End {
                    // The subsystem ended with the mistake: the semicolon behind it was passed.
                    self.at -= usize::from(self.token().kind != SchemaTokenKind::End);
                    break;
                }
            }
        }
        Ok(subsystem)
    }

    /// An event, a duration or a meaning of a subsystem.
    fn member(&mut self, subsystem: &mut FileSubsystem) -> Result<(), SchemaProblem> {
        if self.eat_word("event") {
            subsystem.events.push(self.event("the event's name")?);
        } else if self.eat_word("duration") {
            let begin = self.event("the duration's name")?;
            subsystem.add_duration(begin);
        } else if MEANINGS.iter().any(|word| self.is_word(word)) {
            subsystem.meanings.push(self.meaning()?);
        } else {
            return self.expected("`event`, `duration`, `pair`, `flow`, `counter`, `state` or `}`");
        }
        self.comma("it")
    }

    fn event(&mut self, name: &str) -> Result<FileEvent, SchemaProblem> {
        let name = self.name(name)?;
        let text = self.text().unwrap_or_default();
        let mut event = FileEvent { name, text, level: None, id: None, since: None, fields: Vec::new() };
        loop {
            let place = self.place();
            let is_twice = if self.eat_word("level") {
                event.level.replace(self.name("a log level, such as `info`")?).is_some()
            } else if self.eat_word("id") {
                event.id.replace(self.number("the event's number")?).is_some()
            } else if self.eat_word("since") {
                event.since.replace(self.number("the version that first has it")?).is_some()
            } else {
                break;
            };
            if is_twice {
                return Err(SchemaProblem::error(place, "the event says this twice"));
            }
        }
        if self.eat('{') {
            while !self.eat('}') {
                event.fields.push(self.field()?);
                self.comma("the field")?;
            }
        }
        Ok(event)
    }

    fn field(&mut self) -> Result<FileField, SchemaProblem> {
        let kind = self.name("the type of a field, or `}`")?;
        let elements = if self.eat('[') {
            if self.eat(']') {
                FileElements::Sequence
            } else {
                let count = self.number("how many elements, or `]`")?;
                self.symbol(']', "")?;
                FileElements::Array(count)
            }
        } else {
            FileElements::One
        };
        let name = self.name("the field's name")?;
        let (mut unit, mut text) = (None, String::new());
        if self.eat_word("unit") {
            let place = self.place();
            let Some(found) = self.text() else { return self.expected("the unit in quotes") };
            if found.contains(['\n', '\t']) {
                return Err(SchemaProblem::error(place, "a unit is of one line"));
            }
            unit = Some(found);
        }
        text.extend(self.text());
        Ok(FileField { kind, elements, name, unit, text })
    }

    fn meaning(&mut self) -> Result<FileMeaning, SchemaProblem> {
        let word = self.name("a meaning")?;
        let name = self.name("its name")?;
        let text = self.text().unwrap_or_default();
        let mut meaning = FileMeaning { word, name, text, events: Vec::new(), facts: Vec::new() };
        self.symbol('{', "")?;
        while !self.eat('}') {
            if ROLES.iter().any(|role| self.is_word(role)) {
                let role = self.name("a role")?;
                let mut event = self.name("the event's name")?;
                if self.eat('.') {
                    event.name =
                        format!("{}.{}", event.name, self.name("the name of an event of that subsystem")?.name);
                }
                let mut facts = Vec::new();
                if self.eat('(') {
                    while !self.eat(')') {
                        facts.push(self.fact()?);
                        self.comma("the fact")?;
                    }
                }
                meaning.events.push((role, event, facts));
            } else {
                meaning.facts.push(self.fact()?);
            }
            self.comma("it")?;
        }
        Ok(meaning)
    }

    fn fact(&mut self) -> Result<FileFact, SchemaProblem> {
        let word = self.name("an event (`begin NAME`), or a fact (`key FIELD`)")?;
        let place = self.place();
        let value = match &self.token().kind {
            SchemaTokenKind::Word(name) => FileValue::Name(name.clone()),
            SchemaTokenKind::Text(text) => FileValue::Text(text.clone()),
            SchemaTokenKind::Number(number) => FileValue::Number(*number),
            _ => return self.expected("a field, a text in quotes, or a number"),
        };
        self.next();
        Ok(FileFact { word, value, place })
    }
}
