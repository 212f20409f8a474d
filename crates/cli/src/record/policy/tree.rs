//! Trees as Genode's trace recorder writes them, made of the marks in traces of the recorder.
//!
//! ```text
//! .ping/init/ping/ping/metadata, lane_1, ...     a session's traces: each has events of many threads
//!       │
//!       v
//! init/ping/metadata, ep, signal_proxy           a file for each thread; packets with its name and label
//! ```
//!
//! Differences from Genode: signals received are there too, a second thread of a name has a file of its
//! own (`ep (2)`), and times are nanoseconds since 1970.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_recorder::select::{SelectionRule, component_path};
use kymo_session::messages::{EventAt, FieldRef, MessageBatch, MessageRow, MessageValue, MessagesQuestion};
use kymo_session::{OpenOptions, Session};

/// The metadata of each component.
const METADATA: &str = include_str!("genode.tsdl");
const MAGIC: u32 = 0xC1FC_1FC1;
/// Bytes of a packet's head before its texts.
const HEAD_BYTES: usize = 33;
const PACKET_BYTES_MAX: usize = 32 << 10;

/// Marks that have a name in Genode's traces.
pub(super) const MARKS: [&str; 9] = [
    "kymo:rpc_call",
    "kymo:rpc_return",
    "kymo:rpc_dispatch",
    "kymo:rpc_reply",
    "kymo:signal_submit",
    "kymo:signal_receive",
    "kymo:checkpoint",
    "kymo:begin",
    "kymo:end",
];
const SIGNAL_SUBMIT: usize = 4;
const SIGNAL_RECEIVE: usize = 5;
const CHECKPOINT: usize = 6;

/// The marks that patterns of events match.
pub(super) fn marks(events: &[String]) -> Vec<String> {
    let rule = SelectionRule { events: events.to_vec(), ..SelectionRule::default() };
    MARKS.iter().filter(|mark| rule.takes_name(mark)).map(|mark| (*mark).to_owned()).collect()
}

/// Writes the marks of a policy's traces as a tree into a dated folder; returns how many events it has.
///
/// # Errors
///
/// A file cannot be written, or the traces not be read: then they stay as they are.
pub(super) fn write(recorded: &Path, policy: &str, folder: &Path) -> io::Result<u64> {
    let session = Session::open(&[recorded.to_owned()], &OpenOptions::default()).map_err(io::Error::other)?;
    let messages = Arc::new(session).messages(&MessagesQuestion::default()).map_err(io::Error::other)?;
    let facts = Arc::clone(messages.facts());
    let labels: Vec<String> = facts
        .traces
        .iter()
        .map(|trace| label_of(trace.path.strip_prefix(recorded).unwrap_or(&trace.path), policy))
        .collect();
    let mut tree = GenodeTree {
        folder: folder.to_owned(),
        components: HashMap::new(),
        threads: HashMap::new(),
        taken: BTreeSet::new(),
        events: 0,
    };
    // Threads of a component may have the name of another component inside it.
    for label in &labels {
        tree.component(label)?;
    }
    for batch in messages {
        let batch = batch.map_err(io::Error::other)?;
        for &row in batch.rows() {
            let MessageRow::Event(at) = row else { continue };
            let stream = &facts.streams[batch.stream(at)];
            let class = &facts.traces[stream.trace].class.stream_classes[stream.class].event_classes[batch.class(at)];
            let name = class.name.as_deref().unwrap_or_default();
            let Some(mark) = MARKS.iter().position(|mark| *mark == name) else { continue };
            let packet = |name: &str| {
                let field = stream.packet_fields.position(name)?;
                batch.packet_field(at, field)
            };
            let thread = (labels[stream.trace].clone(), number(packet("vpid")), number(packet("vtid")));
            let name = text(packet("procname"));
            let time = batch.nanos(at).and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(0);
            tree.event(&thread, &name, time, mark, &batch, at)?;
        }
    }
    tree.finish()
}

/// The label of a component, of the path of its trace in the tree: `NAME-snapshot-1/init/ping/NAME-2/monotonic`.
pub(super) fn label_of(path: &Path, policy: &str) -> String {
    let mut parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let is_trace = |part: &str| part == policy || part.strip_prefix(policy).is_some_and(|rest| rest.starts_with('-'));
    if parts.first().is_some_and(|part| is_trace(part) && part.contains("-snapshot-")) {
        parts.remove(0);
    }
    let end = parts.iter().rposition(|part| is_trace(part)).unwrap_or(parts.len());
    parts[..end].join(" -> ")
}

fn number(field: Option<FieldRef<'_>>) -> u64 {
    match field.map(|field| field.value()) {
        Some(MessageValue::Unsigned(number) | MessageValue::Bits(number)) => number,
        Some(MessageValue::Signed(number)) => number.cast_unsigned(),
        _ => 0,
    }
}

fn text(field: Option<FieldRef<'_>>) -> Vec<u8> {
    match field.map(|field| field.value()) {
        Some(MessageValue::Text(bytes, _)) => bytes.iter().copied().take_while(|byte| *byte != 0).collect(),
        _ => Vec::new(),
    }
}

/// A component's label, and the process and the thread.
type ThreadOfComponent = (String, u64, u64);

/// A tree that is being written.
struct GenodeTree {
    folder: PathBuf,
    /// Folders by label.
    components: HashMap<String, PathBuf>,
    threads: HashMap<ThreadOfComponent, ThreadFile>,
    /// Files of threads.
    taken: BTreeSet<PathBuf>,
    events: u64,
}

/// The file of a thread, and the packet that is next.
struct ThreadFile {
    path: PathBuf,
    label: String,
    name: Vec<u8>,
    begin: u64,
    end: u64,
    events: Vec<u8>,
}

impl GenodeTree {
    fn event(
        &mut self,
        thread: &ThreadOfComponent,
        name: &[u8],
        time: u64,
        mark: usize,
        batch: &MessageBatch,
        at: EventAt,
    ) -> io::Result<()> {
        let fields = batch.class_fields(at);
        let field = |name: &str| fields.position(name).and_then(|field| batch.field(at, field));
        let mut event = Vec::new();
        // Begins and ends of durations are checkpoints.
        event.push(mark.min(CHECKPOINT) as u8 + 1);
        event.extend(time.to_le_bytes());
        match mark {
            ..SIGNAL_SUBMIT => event.extend(text(field("name"))),
            SIGNAL_SUBMIT => event.extend((number(field("number")) as u32).to_le_bytes()),
            SIGNAL_RECEIVE => {
                event.extend((number(field("number")) as u32).to_le_bytes());
                event.extend(number(field("context")).to_le_bytes());
            }
            _ => {
                let kind = if mark == CHECKPOINT { number(field("type")) as u8 } else { (mark - CHECKPOINT) as u8 };
                event.extend((number(field("data")) as u32).to_le_bytes());
                event.extend(number(field("object")).to_le_bytes());
                event.push(kind);
                event.extend(text(field("name")));
            }
        }
        if !matches!(mark, SIGNAL_SUBMIT | SIGNAL_RECEIVE) {
            event.push(0);
        }
        self.events += 1;
        if !self.threads.contains_key(thread) {
            let file = self.file(&thread.0, name);
            self.threads.insert(thread.clone(), file);
        }
        let file = self.threads.get_mut(thread).expect("it was just put there");
        file.put(time, &event)
    }

    /// Makes the folder of a component; one with another trace, of a policy with its name, is not it.
    fn component(&mut self, label: &str) -> io::Result<()> {
        if self.components.contains_key(label) {
            return Ok(());
        }
        let plain = self.folder.join(component_path(label));
        let numbered = |number: usize| {
            let mut name = plain.file_name().unwrap_or_default().to_owned();
            name.push(format!("-{number}"));
            plain.with_file_name(name)
        };
        let mut folders = std::iter::once(plain.clone()).chain((2..).map(numbered));
        let is_free = |folder: &PathBuf| {
            fs::read(folder.join("metadata")).is_ok_and(|text| text == METADATA.as_bytes())
                || !folder.join("metadata").exists()
        };
        let folder = folders.find(is_free).expect("numbers do not end");
        fs::create_dir_all(&folder)?;
        self.components.insert(label.to_owned(), folder);
        Ok(())
    }

    /// The file of a thread that has none.
    fn file(&mut self, label: &str, name: &[u8]) -> ThreadFile {
        let plain = component_path(&String::from_utf8_lossy(name).replace(" -> ", "__"));
        let plain = if plain == "metadata" || plain.starts_with('.') { format!("_{plain}") } else { plain };
        let component = &self.components[label];
        let numbered = (2..).map(|number| format!("{plain} ({number})"));
        let mut paths = std::iter::once(plain.clone()).chain(numbered).map(|name| component.join(name));
        let path = paths.find(|path| !self.taken.contains(path) && !path.exists()).expect("numbers do not end");
        self.taken.insert(path.clone());
        ThreadFile { path, label: label.to_owned(), name: name.to_vec(), begin: 0, end: 0, events: Vec::new() }
    }

    fn finish(mut self) -> io::Result<u64> {
        self.threads.values_mut().try_for_each(ThreadFile::flush)?;
        let folders: BTreeSet<PathBuf> = self.taken.iter().filter_map(|path| Some(path.parent()?.to_owned())).collect();
        folders.iter().try_for_each(|folder| fs::write(folder.join("metadata"), METADATA))?;
        Ok(self.events)
    }
}

impl ThreadFile {
    fn head_bytes(&self) -> usize {
        HEAD_BYTES + self.label.len() + 1 + self.name.len() + 1
    }

    fn put(&mut self, time: u64, event: &[u8]) -> io::Result<()> {
        if self.head_bytes() + self.events.len() + event.len() > PACKET_BYTES_MAX {
            self.flush()?;
        }
        if self.events.is_empty() {
            self.begin = time;
        }
        self.end = time;
        self.events.extend(event);
        Ok(())
    }

    /// Writes the packet.
    fn flush(&mut self) -> io::Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let head_bits = 8 * self.head_bytes();
        let packet_bits = head_bits + 8 * self.events.len();
        let mut packet = Vec::with_capacity(packet_bits / 8);
        packet.extend(MAGIC.to_le_bytes());
        packet.extend([0; 4]);
        packet.extend(self.begin.to_le_bytes());
        packet.extend(self.end.to_le_bytes());
        packet.extend((packet_bits as u32).to_le_bytes());
        packet.extend((head_bits as u16).to_le_bytes());
        // The affinity: column and row 0 of one column and one row; no priority.
        packet.extend([0x00, 0x11, 0]);
        packet.extend(self.label.as_bytes());
        packet.push(0);
        packet.extend(&self.name);
        packet.push(0);
        packet.append(&mut self.events);
        File::options().create(true).append(true).open(&self.path)?.write_all(&packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_told_by_paths() {
        for (path, label) in [
            ("init/ping/all", "init -> ping"),
            ("init/ping/all-2/monotonic", "init -> ping"),
            ("all-snapshot-1/init/all", "init"),
            ("all/all", "all"),
            ("server/all", "server"),
        ] {
            assert_eq!(label_of(Path::new(path), "all"), label, "{path}");
        }
    }

    #[test]
    fn patterns_choose_marks() {
        let marks = |events: &[&str]| marks(&events.iter().map(|event| (*event).to_owned()).collect::<Vec<_>>());
        assert_eq!(marks(&[]).len(), MARKS.len());
        assert_eq!(marks(&["kymo:rpc_*", "!*:rpc_re*"]), ["kymo:rpc_call", "kymo:rpc_dispatch"]);
        assert_eq!(marks(&["net:*"]), Vec::<String>::new());
    }
}
