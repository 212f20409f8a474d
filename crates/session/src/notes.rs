//! Notes of people on a trace: a small text file beside it, a line for each note, which git can
//! merge.
//!
//! ```text
//! my-trace/                 {"id":"n1","begin_ns":1795219372256000000,"text":"here it begins"}
//! my-trace.kymo-notes ────> {"id":"n2","begin_ns":1795219372259000000,"end_ns":1795219372260000000,"text":"slow","author":"ada"}
//! ```
//!
//! Lines are in the order of times. A line that is no note, as where git could not merge, is told
//! and stays as it is; so do unknown members of a note.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

/// Notes of a file.
const NOTES_MAX: usize = 10_000;
/// Bytes of a note.
const NOTE_BYTES_MAX: usize = 64 << 10;
/// Bytes of a file.
const BYTES_MAX: u64 = 64 << 20;
/// Characters of a note's id.
const ID_MAX: usize = 64;

/// The notes of a trace.
#[derive(Debug)]
pub struct TraceNotes {
    path: PathBuf,
    /// One writes at a time.
    writing: Mutex<()>,
}

/// The content of a file of notes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotesFound {
    /// Notes in the order of times: each an object with `id`, `begin_ns`, `text`, and maybe `end_ns`, `track` and others.
    pub notes: Vec<Map<String, Value>>,
    /// Lines that are no notes: their numbers from 1 on, and why.
    pub problems: Vec<(usize, String)>,
}

/// Why notes are not there, or not kept.
#[derive(Debug, thiserror::Error)]
pub enum NotesFailure {
    /// The file cannot be read or written.
    #[error("notes in {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It is no note.
    #[error("{0}")]
    NoNote(String),
    /// There are as many as there may be, or the file is too large.
    #[error("{0}")]
    TooMany(String),
}

/// A line of the file.
enum NoteLine {
    Note(Map<String, Value>),
    /// As it stands there, and why it is no note.
    Other(String, String),
}

impl TraceNotes {
    /// Those of a file, which need not be there yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, writing: Mutex::default() }
    }

    /// The default place of notes on a trace: beside it.
    #[must_use]
    pub fn beside(trace: &Path) -> PathBuf {
        // `.` and `trace/..` have names of their own.
        let trace = std::fs::canonicalize(trace).unwrap_or_else(|_| trace.to_owned());
        let mut name = trace.file_name().unwrap_or_default().to_owned();
        name.push(".kymo-notes");
        trace.with_file_name(name)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All notes that there are now.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is too large to be one of notes.
    pub fn read(&self) -> Result<NotesFound, NotesFailure> {
        let mut found = NotesFound::default();
        for (number, line) in lines(&self.text()?) {
            match line {
                NoteLine::Note(note) => found.notes.push(note),
                NoteLine::Other(_, why) => found.problems.push((number, why)),
            }
        }
        found.notes.sort_by_key(begin);
        Ok(found)
    }

    /// Keeps a note: a new one, or in the place of the one with its id; whether it is new.
    ///
    /// # Errors
    ///
    /// It is no note, there are too many, or the file cannot be written.
    pub fn put(&self, note: Map<String, Value>) -> Result<bool, NotesFailure> {
        let note = checked(note).map_err(NotesFailure::NoNote)?;
        self.change(|lines| {
            let is_it = |line: &NoteLine| line.id() == note.get("id");
            if let Some(place) = lines.iter().position(is_it) {
                // Where both sides of a merge kept a note, it is there twice.
                lines.retain(|line| !is_it(line));
                lines.insert(place, NoteLine::Note(note));
                return Ok(false);
            }
            if lines.len() >= NOTES_MAX {
                return Err(NotesFailure::TooMany(format!("there are {NOTES_MAX} notes, as many as there may be")));
            }
            lines.push(NoteLine::Note(note));
            Ok(true)
        })
    }

    /// Removes a note; whether it was there.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn remove(&self, id: &str) -> Result<bool, NotesFailure> {
        self.change(|lines| {
            let before = lines.len();
            lines.retain(|line| line.id().and_then(Value::as_str) != Some(id));
            Ok(lines.len() < before)
        })
    }

    fn too_large(&self, bytes: u64) -> NotesFailure {
        NotesFailure::TooMany(format!("{}: found {bytes} bytes, expected {BYTES_MAX} at most", self.path.display()))
    }

    fn failed(&self, cause: io::Error) -> NotesFailure {
        NotesFailure::File { path: self.path.clone(), cause }
    }

    /// The text of the file; empty if there is no file.
    fn text(&self) -> Result<String, NotesFailure> {
        let size = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            found => found.map_err(|error| self.failed(error))?.len(),
        };
        if size > BYTES_MAX {
            return Err(self.too_large(size));
        }
        let bytes = std::fs::read(&self.path).map_err(|error| self.failed(error))?;
        String::from_utf8(bytes).map_err(|error| {
            self.failed(io::Error::new(ErrorKind::InvalidData, format!("found no UTF-8: {}", error.utf8_error())))
        })
    }

    /// Changes the current text of the file, and writes it anew if something has changed: a reader
    /// sees all of the old or all of the new.
    fn change(
        &self,
        with: impl FnOnce(&mut Vec<NoteLine>) -> Result<bool, NotesFailure>,
    ) -> Result<bool, NotesFailure> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Other processes wait, where a system can have a folder locked; where it cannot, the last one wins.
        let held = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
        let mut lines: Vec<NoteLine> = lines(&self.text()?).map(|(_, line)| line).collect();
        let before = joined(&lines);
        let changed = with(&mut lines)?;
        if joined(&lines) != before {
            lines.sort_by_key(NoteLine::begin);
            let text = joined(&lines);
            if text.len() as u64 > BYTES_MAX {
                return Err(self.too_large(text.len() as u64));
            }
            self.write(folder, &text).map_err(|error| self.failed(error))?;
        }
        drop(held);
        Ok(changed)
    }

    fn write(&self, folder: &Path, text: &str) -> io::Result<()> {
        let mut file = builder().tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        if let Ok(known) = std::fs::metadata(&self.path) {
            file.as_file().set_permissions(known.permissions())?;
        }
        file.persist(&self.path)?;
        Ok(())
    }
}

/// Lines with their numbers from 1 on, but for empty ones.
fn lines(text: &str) -> impl Iterator<Item = (usize, NoteLine)> + '_ {
    let numbered = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    numbered.map(|(number, line)| (number + 1, NoteLine::new(line)))
}

fn joined(lines: &[NoteLine]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// New files have the same mode as other files of this user, not that of temporary files, which are
/// for this user alone.
fn builder() -> tempfile::Builder<'static, 'static> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only there files have modes"))]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(<std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder
}

impl NoteLine {
    fn new(text: &str) -> Self {
        let note = serde_json::from_str(text).map_err(|error| format!("found no JSON object: {error}"));
        match note.and_then(checked) {
            Ok(note) => Self::Note(note),
            Err(why) => Self::Other(text.to_owned(), why),
        }
    }

    fn id(&self) -> Option<&Value> {
        match self {
            Self::Note(note) => note.get("id"),
            Self::Other(..) => None,
        }
    }

    /// Lines that are no notes stand before all notes, in their order.
    fn begin(&self) -> Option<i64> {
        match self {
            Self::Note(note) => Some(begin(note)),
            Self::Other(..) => None,
        }
    }
}

impl std::fmt::Display for NoteLine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Note(note) => write!(formatter, "{}", Value::Object(note.clone())),
            Self::Other(text, _) => formatter.write_str(text),
        }
    }
}

fn begin(note: &Map<String, Value>) -> i64 {
    note.get("begin_ns").and_then(Value::as_i64).unwrap_or(i64::MIN)
}

/// A note, if it is one.
fn checked(note: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let found = |name: &str| note.get(name).map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let is_id = |id: &str| {
        (1..=ID_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if !note.get("id").and_then(Value::as_str).is_some_and(is_id) {
        return Err(format!("`id` is {}; expected 1 to {ID_MAX} letters, digits, `-` and `_`", found("id")));
    }
    let Some(begin) = note.get("begin_ns").and_then(Value::as_i64) else {
        return Err(format!("`begin_ns` is {}; expected a whole number of nanoseconds", found("begin_ns")));
    };
    let is_end = |end: &Value| end.as_i64().is_some_and(|end| begin <= end);
    if !note.get("end_ns").is_none_or(is_end) {
        return Err(format!("`end_ns` is {}; expected a time that is not before `begin_ns`", found("end_ns")));
    }
    if !note.get("text").is_some_and(Value::is_string) {
        return Err(format!("`text` is {}; expected a text", found("text")));
    }
    if let Some(name) =
        ["track", "author", "colour"].into_iter().find(|name| note.get(*name).is_some_and(|found| !found.is_string()))
    {
        return Err(format!("`{name}` is {}; expected a text", found(name)));
    }
    let bytes = Value::Object(note.clone()).to_string().len();
    match bytes <= NOTE_BYTES_MAX {
        true => Ok(note),
        false => Err(format!("the note has {bytes} bytes; {NOTE_BYTES_MAX} are the most")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn note(id: &str, begin_ns: i64, text: &str) -> Map<String, Value> {
        json!({"id": id, "begin_ns": begin_ns, "text": text}).as_object().unwrap().clone()
    }

    fn of(folder: &tempfile::TempDir) -> TraceNotes {
        TraceNotes::new(folder.path().join("trace.kymo-notes"))
    }

    #[test]
    fn notes_are_kept_by_line_in_the_order_of_times() {
        let folder = tempfile::tempdir().unwrap();
        let notes = of(&folder);
        assert_eq!(notes.read().unwrap(), NotesFound::default());
        assert!(notes.put(note("b", 1_795_219_372_256_000_123, "two\nlines")).unwrap());
        assert!(notes.put(note("a", -5, "first")).unwrap());
        assert!(!notes.put(note("b", 1_795_219_372_256_000_123, "another text")).unwrap());
        let text = std::fs::read_to_string(notes.path()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expected = [note("a", -5, "first"), note("b", 1_795_219_372_256_000_123, "another text")];
        assert_eq!(lines, expected.map(Value::Object));
        assert!(text.ends_with('\n'));
        assert_eq!(notes.read().unwrap().notes[1]["begin_ns"].as_i64(), Some(1_795_219_372_256_000_123));
        assert!(notes.remove("a").unwrap() && !notes.remove("a").unwrap());
        assert_eq!(notes.read().unwrap().notes.len(), 1);
    }

    #[test]
    fn what_nobody_understands_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let notes = of(&folder);
        let mine = "{\"id\":\"a\",\"begin_ns\":7,\"text\":\"mine\",\"later\":[1,2]}";
        std::fs::write(notes.path(), format!("<<<<<<< mine\n{mine}\n=======\n\n{{\"id\":\"a b\"}}\n>>>>>>> theirs\n"))
            .unwrap();
        let found = notes.read().unwrap();
        assert_eq!((found.notes.len(), found.problems.len()), (1, 4));
        let numbers: Vec<usize> = found.problems.iter().map(|problem| problem.0).collect();
        assert_eq!(numbers, [1, 3, 5, 6]);
        assert!(found.problems[2].1.starts_with("`id` is \"a b\"; expected"), "{:?}", found.problems);
        notes.put(note("z", 9, "more")).unwrap();
        let text = std::fs::read_to_string(notes.path()).unwrap();
        for kept in ["<<<<<<< mine\n=======\n{\"id\":\"a b\"}\n>>>>>>> theirs\n", "\"later\":[1,2]", "more"] {
            assert!(text.contains(kept), "{text}");
        }
    }

    #[test]
    fn a_file_is_written_only_if_a_note_changes() {
        let folder = tempfile::tempdir().unwrap();
        let notes = of(&folder);
        assert!(!notes.remove("a").unwrap());
        assert!(!notes.path().exists());
        let text = "{\"text\":\"by hand\",\"id\":\"a\",\"begin_ns\":7}\n\n{\"id\":\"b\",\"begin_ns\":3,\"text\":\"\"}";
        std::fs::write(notes.path(), text).unwrap();
        assert!(!notes.remove("c").unwrap());
        assert!(!notes.put(note("b", 3, "")).unwrap());
        assert_eq!(std::fs::read_to_string(notes.path()).unwrap(), text);
    }

    #[test]
    fn of_notes_that_a_merge_has_doubled_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let notes = of(&folder);
        let doubled =
            "{\"id\":\"a\",\"begin_ns\":7,\"text\":\"mine\"}\n{\"id\":\"a\",\"begin_ns\":8,\"text\":\"theirs\"}\n";
        std::fs::write(notes.path(), doubled).unwrap();
        assert!(!notes.put(note("a", 9, "ours")).unwrap());
        assert_eq!(notes.read().unwrap().notes, [note("a", 9, "ours")]);
    }

    #[test]
    #[cfg(unix)]
    fn a_new_file_is_for_whoever_other_new_files_are_for() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let notes = of(&folder);
        notes.put(note("a", 1, "")).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let other = folder.path().join("other");
        std::fs::write(&other, "").unwrap();
        assert_eq!(mode(notes.path()), mode(&other));
        std::fs::set_permissions(notes.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
        notes.put(note("b", 2, "")).unwrap();
        assert_eq!(mode(notes.path()), 0o640);
    }

    #[test]
    fn what_is_no_note_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let notes = of(&folder);
        let refused = |note: Value| notes.put(note.as_object().unwrap().clone()).unwrap_err().to_string();
        assert_eq!(refused(json!({"begin_ns": 1})), "`id` is nothing; expected 1 to 64 letters, digits, `-` and `_`");
        let found = refused(json!({"id": "a", "begin_ns": 1.5, "text": ""}));
        assert_eq!(found, "`begin_ns` is 1.5; expected a whole number of nanoseconds");
        let found = refused(json!({"id": "a", "begin_ns": 2, "end_ns": 1, "text": ""}));
        assert_eq!(found, "`end_ns` is 1; expected a time that is not before `begin_ns`");
        let found = refused(json!({"id": "a", "begin_ns": 2, "text": "x".repeat(1 << 17)}));
        assert!(found.ends_with("65536 are the most"), "{found}");
        let found = refused(json!({"id": "a", "begin_ns": 2, "text": "", "track": 7}));
        assert_eq!(found, "`track` is 7; expected a text");
        assert!(!notes.path().exists());
        let nowhere = TraceNotes::new(folder.path().join("absent/notes"));
        assert!(nowhere.put(note("a", 1, "")).unwrap_err().to_string().contains("absent/notes"));
    }

    #[test]
    fn notes_lie_beside_the_trace() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        std::fs::create_dir(&trace).unwrap();
        let expected = std::fs::canonicalize(folder.path()).unwrap().join("trace.kymo-notes");
        assert_eq!(TraceNotes::beside(&trace), expected);
        assert_eq!(TraceNotes::beside(&trace.join(".")), expected);
    }

    #[test]
    fn many_who_write_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let notes = of(&folder);
                scope.spawn(move || {
                    for number in 0..10 {
                        notes.put(note(&format!("w{writer}-{number}"), number, "")).unwrap();
                    }
                });
            }
        });
        assert_eq!(of(&folder).read().unwrap().notes.len(), 40);
    }
}
