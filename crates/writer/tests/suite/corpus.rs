//! Real traces: the tree reader finds as many events as Babeltrace 2.1, and what it reads, written
//! again into packets of another size, is read back equal.
//!
//! The traces are not part of the repository: without them the test says so and passes.

use std::fs;
use std::path::{Path, PathBuf};

use kymo_decode::tree::stream::{PacketRecords, read_file};
use kymo_format::model::TraceClass;
use kymo_writer::{EventParts, MetadataSource, TraceWriter, WriteProblem, WriterOptions};

/// A stream file longer than this is left out: the tree reader is plain, not fast.
const FILE_LENGTH_MAX: u64 = 2_000_000;

fn corpus() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let root = std::env::var_os("KYMO_CORPUS").map_or(default, PathBuf::from);
    root.join("ctf/expected.tsv").exists().then(|| root.join("ctf"))
}

/// The stream files of a trace, unless it is too large.
fn stream_files(folder: &Path) -> Option<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name().into_string().ok()?;
        if name == "metadata" || name.starts_with('.') || !entry.path().is_file() {
            continue;
        }
        if entry.metadata().ok()?.len() > FILE_LENGTH_MAX {
            return None;
        }
        files.push((name, fs::read(entry.path()).ok()?));
    }
    files.sort();
    Some(files)
}

fn write(class: &TraceClass, folder: &Path, name: &str, packets: &[PacketRecords]) -> Result<(), WriteProblem> {
    let options = WriterOptions { metadata: MetadataSource::Text(String::new()), packet_bytes: 3000, index: true };
    let trace = TraceWriter::create(folder, class, options).map_err(|error| error.problem)?;
    let first = &packets[0];
    let stream = trace.stream(first.stream_class, first.stream_id, name);
    let mut stream = stream.map_err(|error| error.problem)?;
    for packet in packets {
        packet.context.iter().for_each(|context| stream.packet_context(context));
        packet.header.iter().for_each(|header| stream.packet_header(header));
        for event in &packet.events {
            let parts = EventParts {
                header: None,
                common: event.common.as_ref(),
                specific: event.specific.as_ref(),
                payload: event.payload.as_ref(),
            };
            let written = stream.event(event.cycles, event.class, &parts);
            written.map_err(|error| error.problem)?;
        }
        stream.flush().map_err(|error| error.problem)?;
    }
    Ok(())
}

/// Everything that a reader is told of the events, without where they lie.
fn told(packets: &[PacketRecords]) -> Vec<impl PartialEq + std::fmt::Debug + '_> {
    let events = packets.iter().flat_map(|packet| &packet.events);
    events.map(|event| (event.cycles, event.class, &event.common, &event.specific, &event.payload)).collect()
}

#[test]
fn real_traces_are_read_and_survive_writing() {
    let Some(root) = corpus() else {
        eprintln!("CORPUS ABSENT: real traces are not run");
        return;
    };
    let table = fs::read_to_string(root.join("expected.tsv")).unwrap();
    let columns: Vec<&str> = table.lines().next().unwrap().split('\t').collect();
    let column = |name| columns.iter().position(|column| *column == name).unwrap();
    let (exit, events) = (column("exit_21"), column("events_21"));
    let scratch = std::env::temp_dir().join(format!("kymo-writer-{}", std::process::id()));
    let (mut counted, mut traces, mut copied, mut files) = (0, 0, 0, 0);
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let folder = root.join(cells[0]);
        let Ok(metadata) = fs::read(folder.join("metadata")) else {
            continue;
        };
        let Some(class) = kymo_format::parse(&metadata).trace_class else {
            continue;
        };
        let Some(streams) = stream_files(&folder) else {
            continue;
        };
        if cells[exit] != "0" {
            // Must end, without a panic.
            streams.iter().for_each(|(_, bytes)| drop(read_file(&class, bytes)));
            continue;
        }
        traces += 1;
        let mut found = 0;
        for (name, bytes) in &streams {
            let (packets, fault) = read_file(&class, bytes);
            found += packets.iter().map(|packet| packet.events.len()).sum::<usize>();
            if packets.is_empty() || fault.is_some() {
                continue;
            }
            files += 1;
            let target = scratch.join(files.to_string());
            match write(&class, &target, name, &packets) {
                Ok(()) => {
                    let copy = fs::read(target.join(name)).unwrap();
                    let (again, fault) = read_file(&class, &copy);
                    assert_eq!(fault, None, "{} {name}", cells[0]);
                    assert!(told(&again) == told(&packets), "{} {name} differs", cells[0]);
                    copied += 1;
                }
                Err(problem) => eprintln!("not written: {} {name}: {problem}", cells[0]),
            }
        }
        match cells[events].parse() == Ok(found) {
            true => counted += 1,
            false => eprintln!("{}: {found} events, expected {}", cells[0], cells[events]),
        }
    }
    fs::remove_dir_all(&scratch).ok();
    eprintln!("event counts equal: {counted} of {traces}; stream files copied: {copied} of {files}");
    assert_eq!((counted, copied), (traces, files));
    assert!(traces > 100, "only {traces} traces were found");
}
