//! From files to a schema: imports are read, names are found, numbers are given, and all is checked.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use kymo_schema::definition::{ELEMENTS_MAX, LABELS_MAX, NAME_MAX};
use kymo_schema::field::{ByteCount, ScalarType};
use kymo_schema::level::LEVELS;

use crate::lexer::BYTES_MAX;
use crate::model::{
    Schema, SchemaDuration, SchemaEnumeration, SchemaEvent, SchemaField, SchemaLabel, SchemaSubsystem, SchemaType,
};
use crate::parse::{
    FileElements, FileEnumeration, FileEvent, FileField, FileItem, FileMeaning, FileNumber, FileSubsystem, Named,
};
use crate::parse::{is_schema, parse};
use crate::pleco::{PlecoEvent, PlecoFile};
use crate::problem::{SchemaPlace, SchemaProblem, SchemaProblems};

mod meaning;
mod names;
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
    resolver.open(&plain_path(path), &text, reader);
    resolver.all_meanings();
    resolver.check_made();
    resolver.found.problems.sort_by_key(|problem| problem.place);
    // A fact of several events is looked at for each of them.
    resolver.found.problems.dedup();
    let beyond = resolver.found.problems.len().saturating_sub(PROBLEMS_MAX);
    if beyond > 0 {
        resolver.found.problems.truncate(PROBLEMS_MAX);
        let place = resolver.found.problems[PROBLEMS_MAX - 1].place;
        resolver.error(place, format!("and {beyond} more mistakes"));
    }
    let Resolver { mut schema, found, .. } = resolver;
    schema.subsystems.sort_by_key(|subsystem| subsystem.id);
    let schema = (!found.has_errors()).then_some(schema);
    Ok((schema, found))
}

/// Reads a file that `schema` imports, where files come from elsewhere: it has to be a file of usual size, in the same folder or
/// below it. Readers of traces use it.
///
/// # Errors
///
/// It is none of these, or cannot be read.
pub fn read_import(schema: &Path, import: &Path) -> io::Result<String> {
    let folder = plain_path(schema.parent().unwrap_or(Path::new("")));
    let is_below = |below: &Path| below.components().all(|part| matches!(part, Component::Normal(_)));
    if !import.strip_prefix(&folder).is_ok_and(is_below) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not in the folder of the schema"));
    }
    read_file(import)
}

/// The text of a file of usual size.
///
/// # Errors
///
/// It is no file, has too many bytes or is not UTF-8, or cannot be read.
pub fn read_file(path: &Path) -> io::Result<String> {
    let other = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    // A pipe or a device could block, or have no end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(other("it is no file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    if text.len() > BYTES_MAX { Err(other("it has more than 16 MiB")) } else { Ok(text) }
}

/// A path without `.`, and without `..` where that leads to a folder that it names.
fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// Maximum number of reported mistakes.
const PROBLEMS_MAX: usize = 200;
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
    subsystem_names: HashSet<String>,
    /// Ids of subsystems.
    subsystem_ids: HashMap<u16, String>,
    /// Meanings of subsystems, by the places of these, until all subsystems are known.
    meanings: Vec<(usize, Vec<FileMeaning>)>,
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
        let (parsed, problems) = parse(text, file);
        self.found.problems.extend(problems);
        let Some(parsed) = parsed else { return };
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
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            self.schema.name = crate::emit::identifier(&stem);
        }
        for event in parsed.subsystems.iter().flat_map(|subsystem| &subsystem.events) {
            // `pleco` writes descriptions into the JSON, but not into the header.
            let is_bad = |letter: &char| matches!(letter, '"' | '\\') || letter.is_control();
            if let Some(letter) = event.description.chars().find(is_bad) {
                let name = &event.name;
                self.warning(
                    place(event.place),
                    format!("`{}` in the description of `{name}`: the file that `pleco` makes is no JSON", letter.escape_debug()),
                    "`pleco` writes descriptions as they are, and Barrelfish's readers do not understand the file; leave it out",
                );
            }
        }
        let start = SchemaPlace { file, line: 1, column: 1 };
        for subsystem in parsed.subsystems {
            let next = self.schema.subsystems.last().map_or(Some(0), |last| last.id.checked_add(1));
            let Some(id) = next.filter(|_| subsystem.events.len() <= usize::from(u16::MAX)) else {
                let name = subsystem.name;
                return self.error(start, format!("`{name}`: ids are at most {}", u16::MAX));
            };
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
            let (name, text, durations, meanings) = (subsystem.name, String::new(), Vec::new(), Vec::new());
            let place = start;
            self.schema.subsystems.push(SchemaSubsystem { name, text, id, events, durations, meanings, place });
        }
    }

    fn import(&mut self, name: &Named, by: &Path, reader: SchemaReader<'_>) {
        let path = plain_path(&by.parent().unwrap_or(Path::new("")).join(&name.name));
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

    /// A name that no language reserves.
    fn check_reserved(&mut self, named: &Named, of: &str) {
        if let Some(language) = reserved::language(&named.name) {
            let message = format!("{of} cannot be called `{}`: {language} reserves that word", named.name);
            self.helped(named.place, message, format!("`{}_` is free, for example", named.name));
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
        let (mut names, mut values) = (HashSet::new(), HashMap::new());
        for (name, given, text) in item.labels.into_iter().take(LABELS_MAX) {
            self.check_name(&name, "a label");
            let next = enumeration.labels.last().map_or(0, |label| label.value + 1);
            let (value, place) = given.map_or((next, name.place), |given| (given.number, given.place));
            if !range.contains(&value) {
                self.error(place, format!("{value} does not fit into {word}"));
            }
            if !names.insert(name.name.clone()) {
                self.error(name.place, format!("there is a label `{}` already", name.name));
            }
            if let Some(other) = values.insert(value, name.name.clone()) {
                self.helped(
                    place,
                    format!("`{}` and `{other}` are both {value}", name.name),
                    "each value has one label, which people see",
                );
            }
            enumeration.labels.push(SchemaLabel { name: name.name, value, text });
        }
        self.schema.enumerations.push(enumeration);
    }

    fn subsystem(&mut self, item: FileSubsystem, version: u32) {
        self.check_name(&item.name, "a subsystem");
        self.check_reserved(&item.name, "a subsystem");
        if self.subsystem_names.contains(&item.name.name) {
            self.error(item.name.place, format!("there is a subsystem `{}` already", item.name.name));
        }
        self.subsystem_names.insert(item.name.name.clone());
        if item.events.is_empty() {
            self.error(item.name.place, format!("the subsystem `{}` has no event", item.name.name));
        }
        let mut taken = std::mem::take(&mut self.subsystem_ids);
        let last = self.schema.subsystems.last().map(|last| last.id);
        let id = self.id(item.id, &item.name, &mut taken, last);
        self.subsystem_ids = taken;
        let (name, text, place) = (item.name.name, item.text, item.name.place);
        for (named, _) in &item.durations {
            self.check_reserved(named, "a duration");
        }
        let duration = |(named, begin): (Named, usize)| SchemaDuration { name: named.name, begin, place: named.place };
        let durations = item.durations.into_iter().map(duration).collect();
        let (events, meanings) = (Vec::new(), Vec::new());
        let mut subsystem = SchemaSubsystem { name, text, id, events, durations, meanings, place };
        let (mut taken, mut names) = (HashMap::new(), HashSet::new());
        for event in item.events {
            let last = subsystem.events.last().map(|last: &SchemaEvent| last.id);
            let id = self.id(event.id, &event.name, &mut taken, last);
            if !names.insert(event.name.name.clone()) {
                self.error(event.name.place, format!("there is an event `{}` already", event.name.name));
            }
            let event = self.event(event, id, version);
            subsystem.events.push(event);
        }
        self.meanings.push((self.schema.subsystems.len(), item.meanings));
        self.schema.subsystems.push(subsystem);
    }

    fn event(&mut self, item: FileEvent, id: u16, version: u32) -> SchemaEvent {
        self.check_name(&item.name, "an event");
        self.check_reserved(&item.name, "an event");
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
        for field in item.fields.into_iter().take(FIELDS_MAX) {
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
        self.check_reserved(&item.name, "a field");
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
        if word == "pointer" && !matches!(elements, FileElements::One) {
            self.helped(place, "elements are numbers, not addresses", "`x64` shows them alike");
            return None;
        }
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
