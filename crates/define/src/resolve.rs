//! From files to a schema: imports are read, names are found, numbers are given, and all is checked.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use kymo_schema::definition::{ELEMENTS_MAX, LABELS_MAX, NAME_MAX};
use kymo_schema::field::{ByteCount, ScalarType};
use kymo_schema::level::LEVELS;

use crate::model::{Schema, SchemaEnumeration, SchemaEvent, SchemaField, SchemaLabel, SchemaSubsystem, SchemaType};
use crate::parse::{FileElements, FileEnumeration, FileEvent, FileField, FileItem, FileNumber, FileSubsystem, Named};
use crate::parse::{is_schema, parse};
use crate::pleco::{PlecoEvent, PlecoFile};
use crate::problem::{SchemaPlace, SchemaProblem, SchemaProblems};

mod meaning;
mod reserved;

/// Reads the text of a file.
pub type SchemaReader<'r> = &'r dyn Fn(&Path) -> io::Result<String>;

/// Reads a schema and all that it imports. The schema is there unless the problems have errors.
///
/// # Errors
///
/// The file cannot be read. Files that it imports are problems of the schema.
///
/// ```
/// use std::path::Path;
/// let text = "schema shop 1; subsystem cache { event look \"A page is looked for\" { text page }, };";
/// let (schema, problems) = kymo_define::read(Path::new("shop.kymo"), &|_| Ok(text.to_owned())).unwrap();
/// assert_eq!(problems.to_string(), "");
/// assert_eq!(schema.unwrap().subsystems[0].events[0].fields[0].name, "page");
/// ```
pub fn read(path: &Path, reader: SchemaReader<'_>) -> io::Result<(Option<Schema>, SchemaProblems)> {
    let text = reader(path)?;
    let mut resolver = Resolver::default();
    resolver.open(path, &text, reader);
    resolver.found.problems.sort_by_key(|problem| problem.place);
    // A fact of several events is looked at for each of them.
    resolver.found.problems.dedup();
    let Resolver { mut schema, found, .. } = resolver;
    schema.subsystems.sort_by_key(|subsystem| subsystem.id);
    let schema = (!found.has_errors()).then_some(schema);
    Ok((schema, found))
}

/// Fields of an event, as the tracer has it.
const FIELDS_MAX: usize = 64;
/// Bytes of the fields of an event.
const EVENT_BYTES_MAX: u32 = 16 << 10;
/// Files that a schema may have.
const FILES_MAX: usize = 256;

#[derive(Default)]
struct Resolver {
    schema: Schema,
    found: SchemaProblems,
    /// Files that import the one that is read.
    chain: Vec<PathBuf>,
    /// The functions that C programs get, and the events that they are of.
    functions: HashMap<String, String>,
}

impl Resolver {
    fn error(&mut self, place: SchemaPlace, message: impl Into<String>) {
        self.found.problems.push(SchemaProblem::error(place, message));
    }

    fn helped(&mut self, place: SchemaPlace, message: impl Into<String>, help: impl Into<String>) {
        self.found.problems.push(SchemaProblem::error(place, message).help(help));
    }

    fn warning(&mut self, place: SchemaPlace, message: impl Into<String>, help: impl Into<String>) {
        self.found.problems.push(SchemaProblem::warning(place, message).help(help));
    }

    /// Adds a file: the first one, or one that is imported.
    fn open(&mut self, path: &Path, text: &str, reader: SchemaReader<'_>) {
        let file = self.found.files.len();
        self.found.files.push(path.to_owned());
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !is_schema(text) {
            return self.plain(path, text, file);
        }
        let parsed = match parse(text, file) {
            Ok(parsed) => parsed,
            Err(problem) => return self.found.problems.push(problem),
        };
        self.check_name(&parsed.name, "a schema");
        let version = self.small(parsed.version, "a version", 1..=u32::MAX);
        if file == 0 {
            let (name, text) = (parsed.name.name, parsed.text);
            (self.schema.name, self.schema.version, self.schema.text) = (name, version.unwrap_or(1), text);
        }
        self.chain.push(path.to_owned());
        for item in parsed.items {
            match item {
                FileItem::Import(name) => self.import(&name, path, reader),
                FileItem::Enumeration(item) => self.enumeration(item),
                FileItem::Subsystem(item) => self.subsystem(item, version.unwrap_or(u32::MAX)),
            }
        }
        self.chain.pop();
    }

    /// A file of `pleco`: each of its events has the one argument of Barrelfish's records.
    fn plain(&mut self, path: &Path, text: &str, file: usize) {
        let place = |place: crate::pleco::PlecoPlace| SchemaPlace { file, line: place.line, column: place.column };
        let parsed = match PlecoFile::parse(text) {
            Ok(parsed) => parsed,
            Err(problem) => {
                let message = format!("expected {}, found {}", problem.expected, problem.found);
                return self.helped(
                    place(problem.place),
                    message,
                    "this file is read as Barrelfish's `pleco` reads it; `schema NAME VERSION;` in its first line allows more",
                );
            }
        };
        if let Some(rest) = parsed.rest {
            self.warning(
                place(rest),
                "text behind the last subsystem has no effect: `pleco` ignores it too",
                "a subsystem begins with `subsystem NAME {` and ends with `};`",
            );
        }
        if file == 0 {
            self.schema.is_plain = true;
            self.schema.name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        }
        let start = SchemaPlace { file, line: 1, column: 1 };
        for subsystem in parsed.subsystems {
            let id = self.schema.subsystems.last().map_or(0, |last| last.id.wrapping_add(1));
            let event = |(id, event): (u16, PlecoEvent)| SchemaEvent {
                name: event.name,
                text: event.description,
                id,
                level: LEVELS.len() as u8 - 1,
                since: 0,
                fields: vec![plain_argument(start)],
                place: start,
            };
            let events = (0..).zip(subsystem.events).map(event).collect();
            let (name, text, meanings, place) = (subsystem.name, String::new(), Vec::new(), start);
            self.schema.subsystems.push(SchemaSubsystem { name, text, id, events, meanings, place });
        }
    }

    fn import(&mut self, name: &Named, by: &Path, reader: SchemaReader<'_>) {
        let path = by.parent().unwrap_or(Path::new("")).join(&name.name);
        if let Some(at) = self.chain.iter().position(|known| *known == path) {
            let chain: Vec<String> =
                self.chain[at..].iter().chain([&path]).map(|file| file.display().to_string()).collect();
            return self.error(name.place, format!("files import each other: {}", chain.join(" imports ")));
        }
        if self.found.files.contains(&path) {
            return;
        }
        if self.found.files.len() == FILES_MAX {
            return self.error(name.place, format!("a schema has at most {FILES_MAX} files"));
        }
        match reader(&path) {
            Ok(text) => self.open(&path, &text, reader),
            Err(error) => self.helped(
                name.place,
                format!("{}: {error}", path.display()),
                "imported files are looked for beside the file that imports them",
            ),
        }
    }

    /// A name that is an identifier of programs.
    fn check_name(&mut self, named: &Named, of: &str) {
        if named.name.len() > NAME_MAX / 4 {
            self.error(
                named.place,
                format!("the name of {of} has {} bytes; at most {} can be", named.name.len(), NAME_MAX / 4),
            );
        } else if named.name.starts_with('_') || named.name.contains("__") {
            self.helped(
                named.place,
                format!("the name of {of} cannot begin with `_` or have `__` in it"),
                "compilers and readers of traces keep such names for themselves",
            );
        }
    }

    fn small(&mut self, numbered: FileNumber, of: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let number = u32::try_from(numbered.number).ok().filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = (range.start(), range.end());
            self.error(numbered.place, format!("{of} is a number from {least} to {most}, not {}", numbered.number));
        }
        number
    }

    /// The number that something is given, or else that behind the last one.
    fn id(
        &mut self,
        given: Option<FileNumber>,
        of: &Named,
        taken: &mut HashMap<u16, String>,
        last: Option<u16>,
    ) -> u16 {
        let next = last.map_or(0, |last| u32::from(last) + 1);
        let id = match given {
            Some(given) => self.small(given, "an id", 0..=u32::from(u16::MAX)).unwrap_or(next),
            None => next,
        };
        let place = given.map_or(of.place, |given| given.place);
        let Ok(id) = u16::try_from(id) else {
            self.error(place, format!("`{}` would have the id {id}; ids are at most {}", of.name, u16::MAX));
            return u16::MAX;
        };
        if let Some(other) = taken.insert(id, of.name.clone()) {
            self.error(place, format!("`{}` and `{other}` have the id {id}", of.name));
        }
        id
    }

    fn enumeration(&mut self, item: FileEnumeration) {
        self.check_name(&item.name, "an enumeration");
        let word = match ScalarType::named(&item.integer.name) {
            Some(ScalarType::Integer(integer)) if !integer.is_hex => known_word(&item.integer.name),
            _ => None,
        };
        let Some(word) = word else {
            let message = format!("`{}` is no type of integers", item.integer.name);
            return self.helped(item.integer.place, message, "it is u8 to u64, or i8 to i64");
        };
        let is_known = self.schema.enumerations.iter().any(|known| known.name == item.name.name);
        if is_known || kind_of_word(&item.name.name) {
            self.error(item.name.place, format!("there is a type `{}` already", item.name.name));
        }
        let mut enumeration = SchemaEnumeration {
            name: item.name.name,
            text: item.text,
            word,
            labels: Vec::new(),
            place: item.name.place,
        };
        if item.labels.is_empty() || item.labels.len() > LABELS_MAX {
            self.error(enumeration.place, format!("an enumeration has 1 to {LABELS_MAX} labels"));
        }
        let range = enumeration.integer().range();
        for (name, given, text) in item.labels.into_iter().take(LABELS_MAX) {
            self.check_name(&name, "a label");
            let next = enumeration.labels.last().map_or(0, |label| label.value + 1);
            let (value, place) = given.map_or((next, name.place), |given| (given.number, given.place));
            if !range.contains(&value) {
                self.error(place, format!("{value} does not fit into {word}"));
            }
            if enumeration.labels.iter().any(|label| label.name == name.name) {
                self.error(name.place, format!("there is a label `{}` already", name.name));
            }
            enumeration.labels.push(SchemaLabel { name: name.name, value, text });
        }
        self.schema.enumerations.push(enumeration);
    }

    fn subsystem(&mut self, item: FileSubsystem, version: u32) {
        self.check_name(&item.name, "a subsystem");
        if self.schema.subsystem(&item.name.name).is_some() {
            self.error(item.name.place, format!("there is a subsystem `{}` already", item.name.name));
        }
        if item.events.is_empty() {
            self.error(item.name.place, format!("the subsystem `{}` has no event", item.name.name));
        }
        let mut taken =
            self.schema.subsystems.iter().map(|known| (known.id, known.name.clone())).collect::<HashMap<_, _>>();
        let last = self.schema.subsystems.last().map(|last| last.id);
        let id = self.id(item.id, &item.name, &mut taken, last);
        let (name, text, place) = (item.name.name, item.text, item.name.place);
        let mut subsystem = SchemaSubsystem { name, text, id, events: Vec::new(), meanings: Vec::new(), place };
        let mut taken = HashMap::new();
        for event in item.events {
            let last = subsystem.events.last().map(|last: &SchemaEvent| last.id);
            let id = self.id(event.id, &event.name, &mut taken, last);
            if subsystem.event(&event.name.name).is_some() {
                self.error(event.name.place, format!("there is an event `{}` already", event.name.name));
            }
            self.function(&subsystem.name, &event.name);
            let event = self.event(event, id, version);
            subsystem.events.push(event);
        }
        self.meanings(&mut subsystem, item.meanings);
        self.schema.subsystems.push(subsystem);
    }

    /// The functions that C programs have for an event must not be those of another one.
    fn function(&mut self, subsystem: &str, event: &Named) {
        let title = format!("{subsystem}:{}", event.name);
        let function = format!("kymo_{subsystem}_{}", event.name);
        for function in [format!("{function}_is_on"), function] {
            if let Some(other) = self.functions.insert(function.clone(), title.clone()).filter(|other| *other != title)
            {
                let message = format!("`{title}` and `{other}` would both have the function `{function}` in C");
                self.helped(event.place, message, "rename one of them");
            }
        }
    }

    fn event(&mut self, item: FileEvent, id: u16, version: u32) -> SchemaEvent {
        self.check_name(&item.name, "an event");
        let level = item.level.map_or(LEVELS.len() - 1, |level| {
            LEVELS.iter().position(|known| known.name == level.name).unwrap_or_else(|| {
                let names: Vec<&str> = LEVELS.iter().map(|level| level.name).collect();
                let help = format!("levels are {}", names.join(", "));
                self.helped(level.place, format!("there is no level `{}`", level.name), help);
                0
            })
        });
        let since = item.since.and_then(|since| self.small(since, "a version", 1..=version)).unwrap_or(0);
        let mut fields: Vec<SchemaField> = Vec::new();
        let mut bytes = 0_u32;
        if item.fields.len() > FIELDS_MAX {
            self.error(item.name.place, format!("an event has at most {FIELDS_MAX} fields"));
        }
        for field in item.fields {
            if fields.iter().any(|known| known.name == field.name.name) {
                self.error(field.name.place, format!("there is a field `{}` already", field.name.name));
            }
            let Some(field) = self.field(field) else { continue };
            bytes = bytes.saturating_add(match self.schema.field_type(&field.kind).byte_count() {
                ByteCount::Fixed(bytes) => bytes,
                ByteCount::Counted(_) => 2,
            });
            fields.push(field);
        }
        if bytes > EVENT_BYTES_MAX {
            self.error(
                item.name.place,
                format!("the event has at least {bytes} bytes; at most {EVENT_BYTES_MAX} can be"),
            );
        }
        SchemaEvent {
            name: item.name.name,
            text: item.text,
            id,
            level: level as u8,
            since,
            fields,
            place: item.name.place,
        }
    }

    fn field(&mut self, item: FileField) -> Option<SchemaField> {
        self.check_name(&item.name, "a field");
        if let Some(language) = reserved::language(&item.name.name) {
            let message = format!("a field cannot be called `{}`: {language} reserves that word", item.name.name);
            self.helped(item.name.place, message, format!("`{}_` is free, for example", item.name.name));
        }
        let kind = self.kind(&item.kind, item.elements)?;
        let is_number = match &kind {
            SchemaType::Scalar(word) | SchemaType::Array(word, _) | SchemaType::Sequence(word) => *word != "bool",
            SchemaType::Enumeration(_) | SchemaType::Text => false,
        };
        if item.unit.is_some() && !is_number {
            self.error(item.name.place, format!("`{}` is no number, so that it has no unit", item.name.name));
        }
        let (name, text, unit, place) = (item.name.name, item.text, item.unit, item.name.place);
        Some(SchemaField { name, text, unit, kind, place })
    }

    fn kind(&mut self, named: &Named, elements: FileElements) -> Option<SchemaType> {
        let (word, place) = (named.name.as_str(), named.place);
        if let Some(enumeration) = self.schema.enumerations.iter().position(|known| known.name == word) {
            return match elements {
                FileElements::One => Some(SchemaType::Enumeration(enumeration)),
                _ => {
                    self.helped(place, "elements are numbers, not enumerations", "use the enumeration's integer");
                    None
                }
            };
        }
        if word == "text" {
            return match elements {
                FileElements::One => Some(SchemaType::Text),
                _ => {
                    self.helped(place, "elements are numbers, not texts", "a text has any length");
                    None
                }
            };
        }
        let Some(word) = known_word(word) else {
            let help = "types are u8 to u64, i8 to i64, x8 to x64 (hexadecimal), pointer, f32, f64, bool, text, and enumerations that stand before";
            self.helped(place, format!("there is no type `{word}`"), help);
            return None;
        };
        Some(match elements {
            FileElements::One => SchemaType::Scalar(word),
            FileElements::Sequence => SchemaType::Sequence(word),
            FileElements::Array(count) => {
                SchemaType::Array(word, self.small(count, "a count of elements", 1..=ELEMENTS_MAX)?)
            }
        })
    }
}

/// The argument of Barrelfish's records.
fn plain_argument(place: SchemaPlace) -> SchemaField {
    SchemaField { name: "argument".to_owned(), text: String::new(), unit: None, kind: SchemaType::Scalar("x32"), place }
}

/// The words of types of one value.
const WORDS: [&str; 16] =
    ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "x8", "x16", "x32", "x64", "pointer", "f32", "f64", "bool"];

fn known_word(word: &str) -> Option<&'static str> {
    WORDS.iter().copied().find(|known| *known == word)
}

fn kind_of_word(word: &str) -> bool {
    word == "text" || known_word(word).is_some()
}
