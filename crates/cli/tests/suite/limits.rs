//! Traces that would take too much of something: files open at once, memory, bits that a narrow number could count.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::{alone, program};

/// Address space, of which code, stacks and the allocator's reserves are part.
const MEMORY_BYTES: u64 = 1 << 30;

fn limit(resource: Resource, most: u64) {
    let mut limit = getrlimit(resource);
    limit.current = Some(most.min(limit.maximum.unwrap_or(u64::MAX)));
    setrlimit(resource, limit).expect("a limit may be lowered");
}

/// A folder with metadata.
fn trace(name: &str, metadata: &str) -> PathBuf {
    let root = std::env::temp_dir().join(format!("kymo-limits-{name}-{}", std::process::id()));
    fs::create_dir_all(&root).expect("temporary files may be written");
    fs::write(root.join("metadata"), format!("/* CTF 1.8 */ {metadata}")).expect("temporary files may be written");
    root
}

/// What a command says of a trace, standard error last.
fn says(words: &[&str], root: &Path, jit: &str) -> String {
    let mut kymo = program::kymo();
    kymo.args(words).arg(root).env("KYMO_JIT", jit).env("XDG_CACHE_HOME", root.join(".cache"));
    let done = kymo.output().expect("the program is there");
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

/// Alone: limits are the whole process's, and those of `kymo` are its parent's.
#[test]
fn limits() {
    alone::run("limits::limits", |_| {
        limit(Resource::As, MEMORY_BYTES);
        events_of_one_bit();
        more_fields_than_are_compiled();
        positions_beyond_four_gigabits();
        many_streams_few_files();
    });
}

const EVENT: &str = "integer { size = 8; align = 8; signed = false; }";

/// 5,000 streams while the process may open 1024 or 64 files.
fn many_streams_few_files() {
    let metadata = format!(
        "trace {{ major = 1; minor = 8; byte_order = le; }}; clock {{ name = c; }}; \
         stream {{ event.header := struct {{ integer {{ size = 16; align = 8; map = clock.c.value; }} t; }}; }}; \
         event {{ name = e; fields := struct {{ {EVENT} a; }}; }};"
    );
    let root = trace("streams", &metadata);
    for stream in 0..5000_u16 {
        // Two events, one in each half of the trace, so that all streams are open at the same time.
        let [early, late] = [stream.to_le_bytes(), (stream + 5000).to_le_bytes()];
        let bytes = [early[0], early[1], 1, late[0], late[1], 2];
        fs::write(root.join(format!("{stream:04}")), bytes).expect("temporary files may be written");
    }
    for files in [1024, 64] {
        limit(Resource::Nofile, files);
        let text = says(&["print", "--names", "none", "--no-delta", "--clock-cycles"], &root, "off");
        assert_eq!(text.lines().count(), 10_000, "{files} files: {}", text.lines().last().unwrap_or_default());
        // Lines begin with times of one length.
        assert!(text.lines().is_sorted(), "{files} files: not in the order of time");
    }
    fs::remove_dir_all(root).expect("it was made before");
}

/// Eight million events in a megabyte: what is made of them must not be held at once.
fn events_of_one_bit() {
    let root = trace(
        "bits",
        "trace { major = 1; minor = 8; byte_order = le; }; \
         event { name = e; fields := struct { integer { size = 1; align = 1; signed = false; } a; }; };",
    );
    fs::write(root.join("stream"), vec![0xA5; 1 << 20]).expect("temporary files may be written");
    for jit in ["off", "always"] {
        let text = says(&["count", "--json"], &root, jit);
        assert!(text.contains("8388608"), "{jit}: {text}");
    }
    fs::remove_dir_all(root).expect("it was made before");
}

/// An event of 20,000 fields is read by the evaluator even where all else is compiled: its code would be megabytes.
fn more_fields_than_are_compiled() {
    let fields: String = (0..20_000).map(|number| format!("{EVENT} f{number};")).collect();
    let root = trace(
        "fields",
        &format!(
            "trace {{ major = 1; minor = 8; byte_order = le; }}; event {{ name = e; fields := struct {{ {fields} }}; }};"
        ),
    );
    fs::write(root.join("stream"), [1; 40_000]).expect("temporary files may be written");
    let began = std::time::Instant::now();
    let [evaluated, compiled] = ["off", "always"].map(|jit| says(&["print"], &root, jit));
    assert_eq!(evaluated.matches("f19999 = 1").count(), 2, "{}", evaluated.len());
    assert!(evaluated == compiled, "the evaluator and machine code differ");
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    fs::remove_dir_all(root).expect("it was made before");
}

/// A packet of 5 * 2^30 bits, a hole but for a few lengths: positions have more than 32 bits.
fn positions_beyond_four_gigabits() {
    const RECORD_BYTES: u64 = 32 << 20;
    const RECORDS: u64 = 20;
    let metadata = format!(
        "trace {{ major = 1; minor = 8; byte_order = le; }}; \
         stream {{ event.header := struct {{ {EVENT} id; }}; }}; \
         event {{ name = long; id = 0; fields := struct {{ integer {{ size = 32; align = 8; }} n; {EVENT} a[n]; }}; }}; \
         event {{ name = last; id = 1; fields := struct {{ {EVENT} a; }}; }};"
    );
    let root = trace("long", &metadata);
    let mut stream = File::create(root.join("stream")).expect("temporary files may be written");
    for record in 0..RECORDS {
        stream.seek(SeekFrom::Start(record * RECORD_BYTES)).expect("files may have holes");
        let length = RECORD_BYTES as u32 - 5;
        stream.write_all(&[[0].as_slice(), &length.to_le_bytes()].concat()).expect("temporary files may be written");
    }
    stream.seek(SeekFrom::Start(RECORDS * RECORD_BYTES)).expect("files may have holes");
    stream.write_all(&[1, 77, 9]).expect("temporary files may be written");
    for jit in ["off", "always"] {
        let text = says(&["print", "--event", "last"], &root, jit);
        let lines: Vec<&str> = text.lines().collect();
        let unknown = format!("the event record at bit {0}: at bit {0}: no event record class has the id 9", {
            8 * (RECORDS * RECORD_BYTES + 2)
        });
        assert_eq!(lines[0], "last: { a = 77 }", "{jit}: {text}");
        assert!(text.contains(&unknown), "{jit}: {text}\nexpected {unknown}");
    }
    fs::remove_dir_all(root).expect("it was made before");
}
