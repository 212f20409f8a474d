//! The journal of a trace, for crash recovery: written beside the trace, and always before a
//! recorder may need it.
//!
//! ```text
//! DIR/.kymo-journal   {"uuid":...,"facts":...,"before":...}             how the trace, or this chunk of it, began
//!                     {"stream":{"id":1,"contexts":[...]}}              a line for each class, before the metadata has it
//!                     {"event":{"stream_class":1,"id":3,"class":{...}}}
//! ```
//!
//! Of two lines for the same id the last one holds: the metadata could not be written after the
//! first. An incomplete line does not count. Packets hold all other state.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kymo_lane::ClockSource;
use kymo_schema::definition::EventClass;
use kymo_schema::field::DefinedField;
use kymo_writer::{CtfVersion, EnvironmentValue};
use serde::{Deserialize, Serialize};

use crate::clock::{ClockDescription, ClockSample, TickSource};
use crate::program::drain::DrainProgress;
use crate::program::namespaces::NamespaceKinds;
use crate::trace::file_error;
use crate::trace::{OutputOptions, Tally};

/// Name of the journal: readers skip names that begin with a dot.
const NAME: &str = ".kymo-journal";
/// Version of this format.
const VERSION: u32 = 1;

/// Facts from the beginning of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalHead {
    version: u32,
    /// Folder of the whole trace.
    pub(crate) root: PathBuf,
    /// Number of the chunk, from 1.
    pub(crate) chunk: u64,
    pub(crate) uuid: [u8; 16],
    pub(crate) format: CtfVersion,
    is_monotonic: bool,
    pub(crate) facts: ClockDescription,
    /// Since when the recorder has watched the clock.
    pub(crate) watched: ClockSample,
    environment: Vec<(String, JournalValue)>,
    /// Namespaces that packets tell.
    pub(crate) namespaces: NamespaceKinds,
    /// When it began, in nanoseconds since the system booted.
    pub(crate) began_ns: i64,
    /// Events, losses and bytes of the chunks before.
    pub(crate) before: Tally,
    pub(crate) programs: HashMap<u64, DrainProgress>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum JournalValue {
    Integer(i64),
    Text(String),
}

/// A class in the metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalLine {
    Stream { id: u32, contexts: Vec<DefinedField> },
    Event { stream_class: u32, id: u16, class: EventClass },
}

impl JournalHead {
    /// Beginning of a trace without chunks before it.
    pub(crate) fn new(
        root: &Path,
        uuid: [u8; 16],
        format: CtfVersion,
        clock: (ClockSource, ClockDescription, ClockSample),
    ) -> Self {
        let (source, facts, watched) = clock;
        Self {
            version: VERSION,
            root: root.to_owned(),
            chunk: 1,
            uuid,
            format,
            is_monotonic: source == ClockSource::Monotonic,
            facts,
            watched,
            environment: Vec::new(),
            namespaces: NamespaceKinds::default(),
            began_ns: crate::clock::uptime_ns(),
            before: Tally::default(),
            programs: HashMap::new(),
        }
    }

    pub(crate) fn source(&self) -> ClockSource {
        if self.is_monotonic { ClockSource::Monotonic } else { ClockSource::Counter }
    }

    pub(crate) fn set_environment(&mut self, all: &[(String, EnvironmentValue)]) {
        let value = |value: &EnvironmentValue| match value {
            EnvironmentValue::Integer(integer) => JournalValue::Integer(*integer as i64),
            EnvironmentValue::Text(text) => JournalValue::Text(text.clone()),
        };
        self.environment = all.iter().map(|(name, found)| (name.clone(), value(found))).collect();
    }

    pub(crate) fn environment(&self) -> Vec<(String, EnvironmentValue)> {
        let value = |value: &JournalValue| match value {
            JournalValue::Integer(integer) => EnvironmentValue::Integer((*integer).into()),
            JournalValue::Text(text) => EnvironmentValue::Text(text.clone()),
        };
        self.environment.iter().map(|(name, found)| (name.clone(), value(found))).collect()
    }
}

/// Beginning of a trace, now.
pub(crate) fn beginning(
    root: &Path,
    options: &OutputOptions,
    clock: &TickSource,
    facts: ClockDescription,
) -> Result<JournalHead, kymo_writer::WriteError> {
    let uuid = random_uuid(root)?;
    let mut environment = environment();
    environment
        .extend(options.environment.iter().map(|(name, value)| (name.clone(), EnvironmentValue::Text(value.clone()))));
    let mut beginning = JournalHead::new(root, uuid, options.format, (clock.source(), facts, clock.watched()));
    beginning.set_environment(&environment);
    beginning.namespaces = options.namespaces;
    Ok(beginning)
}

/// A random UUID for a trace in a folder.
pub(crate) fn random_uuid(root: &Path) -> Result<[u8; 16], kymo_writer::WriteError> {
    let mut uuid = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut uuid))
        .map_err(|error| file_error(root, error))?;
    // Version and variant of a random UUID, as RFC 9562 wants them.
    (uuid[6], uuid[8]) = (uuid[6] & 0x0f | 0x40, uuid[8] & 0x3f | 0x80);
    Ok(uuid)
}

/// The environment of the recording, with the names that LTTng uses.
pub(crate) fn environment() -> Vec<(String, EnvironmentValue)> {
    let system = rustix::system::uname();
    let text = |name: &str, value: &std::ffi::CStr| {
        (name.to_owned(), EnvironmentValue::Text(crate::program::text(value.to_bytes())))
    };
    let plain = |name: &str, value: &str| (name.to_owned(), EnvironmentValue::Text(value.to_owned()));
    let number = |name: &str, value: &str| (name.to_owned(), EnvironmentValue::Integer(value.parse().unwrap_or(0)));
    vec![
        text("hostname", system.nodename()),
        plain("domain", "ust"),
        plain("tracer_name", "kymo"),
        number("tracer_major", env!("CARGO_PKG_VERSION_MAJOR")),
        number("tracer_minor", env!("CARGO_PKG_VERSION_MINOR")),
        number("tracer_patchlevel", env!("CARGO_PKG_VERSION_PATCH")),
        text("sysname", system.sysname()),
        text("kernel_release", system.release()),
        text("kernel_version", system.version()),
        text("machine", system.machine()),
        number("architecture_bit_width", "64"),
    ]
}

/// The journal of a trace that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    bytes: u64,
}

impl Journal {
    pub(crate) fn create(folder: &Path, beginning: &JournalHead) -> io::Result<Self> {
        let mut journal = Self { path: folder.join(NAME), bytes: 0 };
        File::create(&journal.path)?;
        journal.put(beginning)?;
        Ok(journal)
    }

    /// The journal of a trace that no recorder writes.
    pub(crate) fn nowhere() -> Self {
        Self { path: PathBuf::new(), bytes: 0 }
    }

    /// Reads the journal of a folder; `None`: there is none, or not even its beginning is complete.
    pub(crate) fn read(folder: &Path) -> io::Result<Option<(JournalHead, Vec<JournalLine>, Self)>> {
        let path = folder.join(NAME);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // A line without its end was being written when the recorder was killed. The packets that
        // need its class did not exist yet.
        let mut whole = text.split_inclusive(|byte| *byte == b'\n').take_while(|line| line.ends_with(b"\n"));
        let Some(first) = whole.next() else { return Ok(None) };
        let beginning: JournalHead = serde_json::from_slice(first)?;
        if beginning.version != VERSION {
            let what = format!("{} is of version {}, not {VERSION}", path.display(), beginning.version);
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let (mut lines, mut bytes) = (Vec::new(), first.len() as u64);
        for line in whole {
            lines.push(serde_json::from_slice(line)?);
            bytes += line.len() as u64;
        }
        Ok(Some((beginning, lines, Self { path, bytes })))
    }

    pub(crate) fn say(&mut self, line: &JournalLine) -> io::Result<()> {
        self.put(line)
    }

    /// Writes a complete line, or leaves the journal as it was.
    fn put(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(what)?;
        text.push(b'\n');
        // Opened for each line: lines are rare, and a recorder of many traces has few descriptors
        // to spare. The line goes behind the last complete one, over the rest of one that failed.
        let file = File::options().write(true).open(&self.path)?;
        let written = file.write_all_at(&text, self.bytes);
        if written.is_err() {
            let _ = file.set_len(self.bytes);
        }
        written?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A complete trace needs no journal.
    pub(crate) fn delete(folder: &Path) {
        let _ = fs::remove_file(folder.join(NAME));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_not_whole_are_none() {
        let folder = tempfile::tempdir().expect("there is room");
        let mut clock = crate::clock::TickSource::begin(ClockSource::Monotonic);
        let clock = (ClockSource::Monotonic, clock.facts(0), clock.watched());
        let mut beginning = JournalHead::new(folder.path(), [7; 16], CtfVersion::Ctf2, clock);
        let text = |text: &str| EnvironmentValue::Text(text.to_owned());
        let environment = [("a".to_owned(), text("1")), ("b".to_owned(), EnvironmentValue::Integer(-1))];
        beginning.set_environment(&environment);
        assert_eq!(beginning.environment(), environment);
        assert!(Journal::read(folder.path()).expect("there is none").is_none());
        let mut journal = Journal::create(folder.path(), &beginning).expect("there is room");
        let definition =
            b"event a:b\nrole end\nsource a.c:1\nfield enum u64(a=0, b=18446744073709551615) x\nfield text t\n";
        let Ok(kymo_schema::definition::Definition::Event(class)) = kymo_schema::definition::parse(definition) else {
            panic!()
        };
        let contexts = crate::program::walk::context_fields(1);
        let lines = [JournalLine::Stream { id: 1, contexts }, JournalLine::Event { stream_class: 1, id: 3, class }];
        lines.iter().for_each(|line| journal.say(line).expect("there is room"));
        let whole = fs::read(journal.path()).expect("it is there");
        for length in 0..whole.len() {
            fs::write(journal.path(), &whole[..length]).expect("there is room");
            let found = Journal::read(folder.path()).expect("it can be read");
            let count = whole[..length].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(found.is_some(), count > 0);
            if let Some((found, said, again)) = found {
                assert_eq!((&found, &said[..]), (&beginning, &lines[..count - 1]));
                assert!(again.bytes <= length as u64);
            }
        }
        fs::write(journal.path(), "{\"version\":1}\n").expect("there is room");
        assert!(Journal::read(folder.path()).is_err());
    }
}
