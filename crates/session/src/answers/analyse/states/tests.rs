//! Kept states give the same answers as new ones, and only for their own trace.

use kymo_analysis::Cell;
use kymo_script::Random;

use super::*;
use crate::OpenOptions;
use crate::answers::analyse::tests::corpus;

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace { major = 1; minor = 8; byte_order = le; };
env { domain = "kernel"; tracer_name = "lttng-modules"; };
clock { name = monotonic; freq = 1000000000; offset = 0; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := time_t;
stream {
  packet.context := struct { time_t timestamp_begin; time_t timestamp_end; uint64_t content_size; uint64_t packet_size;
                             uint32_t cpu_id; };
  event.header := struct { uint32_t id; time_t timestamp; };
};
event { name = "sched_switch"; id = 0; fields := struct { uint32_t prev_tid; uint32_t prev_state; uint32_t next_tid; }; };
event { name = "syscall_entry_read"; id = 1; fields := struct { uint32_t fd; }; };
event { name = "syscall_exit_read"; id = 2; fields := struct { uint64_t ret; }; };
"#;

/// A trace of a machine with two CPUs: packets of a few events each.
pub(in crate::answers::analyse) fn write_trace(folder: &Path, seed: u64, events: usize) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("metadata"), METADATA).unwrap();
    for cpu in 0..2u32 {
        let mut random = Random(seed + u64::from(cpu));
        let (mut time, mut running, mut stream) = (1000u64, 0u32, Vec::new());
        for _ in 0..events / 50 {
            let (begin, mut content) = (time, Vec::new());
            for _ in 0..50 {
                time += 1 + random.below(100) as u64;
                let (id, fields) = match random.below(3) {
                    0 => {
                        let next = cpu * 100 + random.below(9) as u32;
                        let fields = [running, random.below(3) as u32, next].map(u32::to_le_bytes).concat();
                        running = next;
                        (0u32, fields)
                    }
                    1 => (1, 3u32.to_le_bytes().to_vec()),
                    _ => (2, 5u64.to_le_bytes().to_vec()),
                };
                content.extend(id.to_le_bytes());
                content.extend(time.to_le_bytes());
                content.extend(fields);
            }
            let bits = (4 * 8 + 4 + content.len() as u64) * 8;
            stream.extend([begin, time, bits, bits].iter().flat_map(|word| word.to_le_bytes()));
            stream.extend(cpu.to_le_bytes());
            stream.extend(content);
        }
        fs::write(folder.join(format!("channel_{cpu}")), stream).unwrap();
    }
}

fn session(trace: &Path, cache: Option<&Path>, (threads, slice_bytes): (usize, Option<u64>)) -> Session {
    let cache = cache.map(Path::to_owned);
    let options = OpenOptions { threads, cache, ..OpenOptions::default() };
    let mut session = Session::open(&[trace.to_path_buf()], &options).unwrap();
    session.slice_bytes = slice_bytes;
    session
}

fn at(session: &Session, at_ns: i64) -> Option<Answer> {
    let found = session.state_at(at_ns, None, &AnalysisOptions::default(), &Progress::default());
    found.ok().map(|analysed| analysed.answer)
}

/// Files of runs in a folder, with when they were written.
fn files(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|found| found == KIND.extension)).collect()
}

#[test]
fn what_is_kept_answers_as_what_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, cache) = (folder.path().join("trace"), folder.path().join("cache"));
    write_trace(&trace, 1, 3000);
    let kept = session(&trace, Some(&cache), (3, Some(3000)));
    for at_ns in (1100..100_000).step_by(3777) {
        let found = at(&session(&trace, None, (1, None)), at_ns);
        assert_eq!(at(&kept, at_ns), found, "at {at_ns}");
        assert!(found.is_some_and(|answer| answer.tables.iter().any(|table| !table.rows.is_empty())));
    }
    assert_eq!(files(&cache).len(), 1);
    // The first packet begins at 1000, and has nothing before its first event.
    let first = (0..2).map(|cpu| raw_events(&trace, cpu)[0].0).min().unwrap();
    let outside = kept.state_at(first - 1, None, &AnalysisOptions::default(), &Progress::default());
    assert!(matches!(outside, Err(AnalyseFailure::Outside { begin_ns, .. }) if begin_ns == first));
    assert!(at(&kept, first).is_some());
}

/// A changed trace, or a damaged file: everything is found out again.
#[test]
fn what_is_stale_or_broken_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, cache) = (folder.path().join("trace"), folder.path().join("cache"));
    let truth = |at_ns| at(&session(&trace, None, (1, None)), at_ns);
    let kept = |at_ns| at(&session(&trace, Some(&cache), (2, Some(3000))), at_ns);
    write_trace(&trace, 1, 3000);
    let first = kept(50_000);
    assert_eq!(first, truth(50_000));
    write_trace(&trace, 2, 3000);
    assert_eq!(kept(50_000), truth(50_000));
    assert_ne!(kept(50_000), first);
    let path = files(&cache).remove(0);
    let bytes = fs::read(&path).unwrap();
    let mut random = Random(5);
    for _ in 0..60 {
        let mut damaged = bytes.clone();
        match random.below(3) {
            0 => damaged.truncate(random.below(bytes.len())),
            _ => damaged[random.below(bytes.len())] ^= 1 << random.below(8),
        }
        fs::write(&path, damaged).unwrap();
        assert_eq!(kept(50_000), truth(50_000));
    }
}

#[test]
fn a_cache_that_cannot_be_written_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    write_trace(&trace, 1, 500);
    fs::write(folder.path().join("file"), "").unwrap();
    let cache = folder.path().join("file").join("inside");
    assert!(at(&session(&trace, Some(&cache), (1, None)), 2000).is_some());
}

const OWN: &str = r#"
name = "calls"
[[states]]
name = "read"
key = "$packet.cpu_id"
set = [{ event = "syscall_entry_read", to = { field = "fd" } }, { event = "syscall_exit_read", to = "out" }]
"#;

fn own(text: &str) -> OwnStates {
    OwnStates::parse(Path::new("own.toml"), text).unwrap()
}

fn own_at(session: &Session, at_ns: i64, text: &str) -> Answer {
    session.state_at(at_ns, Some(&own(text)), &AnalysisOptions::default(), &Progress::default()).unwrap().answer
}

/// Times and numbers of the classes of the events of a CPU, found without any analysis.
pub(in crate::answers::analyse) fn raw_events(folder: &Path, cpu: u32) -> Vec<(i64, u64)> {
    let stream = fs::read(folder.join(format!("channel_{cpu}"))).unwrap();
    let (mut events, mut at) = (Vec::new(), 0);
    let number =
        |at: usize, size: usize| stream[at..at + size].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    while at < stream.len() {
        let end = at + number(at + 16, 8) as usize / 8;
        at += 36;
        while at < end {
            let (id, time) = (number(at, 4), number(at + 4, 8) as i64);
            events.push((time, id));
            at += 12 + [12, 4, 8][id as usize];
        }
    }
    events
}

/// Own states stand beside those of CPUs and threads, and agree with the events, read here byte by
/// byte.
#[test]
fn own_states_are_what_events_say() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, cache) = (folder.path().join("trace"), folder.path().join("cache"));
    write_trace(&trace, 1, 3000);
    let kept = session(&trace, Some(&cache), (3, Some(3000)));
    let calls: Vec<_> = (0..2).map(|cpu| raw_events(&trace, cpu)).collect();
    for at_ns in (1100..100_000).step_by(777) {
        let answer = own_at(&kept, at_ns, OWN);
        assert_eq!(answer, own_at(&session(&trace, None, (1, None)), at_ns, OWN), "at {at_ns}");
        assert_eq!(answer.tables[..2], at(&kept, at_ns).unwrap().tables);
        let mut rows: Vec<_> = answer.tables[2].rows.iter().map(|row| row[..3].to_vec()).collect();
        rows.sort_by_key(|row| format!("{:?}", row[0]));
        let expected = calls.iter().enumerate().map(|(cpu, calls)| {
            let now = calls.iter().rev().find(|(time, id)| *id != 0 && *time <= at_ns);
            let state =
                now.map_or(Cell::Unknown, |(_, id)| if *id == 1 { Cell::Integer(3) } else { Cell::Text("out".into()) });
            vec![Cell::Integer(cpu as i64), state, now.map_or(Cell::Unknown, |(time, _)| Cell::Timestamp(*time))]
        });
        assert!(rows.iter().cloned().eq(expected), "at {at_ns}: {rows:?}");
    }
    assert_eq!(files(&cache).len(), 2);
}

/// Another text of the own analysis, another trace, or a damaged file: own states are found out again.
#[test]
fn own_states_that_are_stale_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, cache) = (folder.path().join("trace"), folder.path().join("cache"));
    let truth = |text: &str| own_at(&session(&trace, None, (1, None)), 50_000, text);
    let kept = |text: &str| own_at(&session(&trace, Some(&cache), (2, Some(3000))), 50_000, text);
    write_trace(&trace, 1, 3000);
    let other = OWN.replace("\"out\"", "\"outside\"").replace("{ field = \"fd\" }", "\"inside\"");
    assert_eq!(kept(OWN), truth(OWN));
    assert_eq!(kept(&other), truth(&other));
    assert_ne!(kept(&other), kept(OWN));
    assert_eq!(files(&cache).len(), 2, "a file that was changed has no other place");
    let before = kept(OWN);
    write_trace(&trace, 2, 3000);
    assert_eq!(kept(OWN), truth(OWN));
    assert_ne!(kept(OWN), before);
    let mut random = Random(5);
    for path in files(&cache) {
        let bytes = fs::read(&path).unwrap();
        for _ in 0..30 {
            let mut damaged = bytes.clone();
            match random.below(3) {
                0 => damaged.truncate(random.below(bytes.len())),
                _ => damaged[random.below(bytes.len())] ^= 1 << random.below(8),
            }
            fs::write(&path, damaged).unwrap();
            assert_eq!(kept(OWN), truth(OWN));
        }
    }
}

/// Every kernel trace that there is, cut and whole.
#[test]
fn the_corpus_says_the_same_however_it_is_cut() {
    let (traces, cache) = (corpus(), tempfile::tempdir().unwrap());
    let mut asked = 0;
    for folder in &traces {
        if Session::open(std::slice::from_ref(folder), &OpenOptions::default()).is_err() {
            continue;
        }
        let whole = session(folder, Some(&cache.path().join("whole")), (1, None));
        let cut = session(folder, Some(&cache.path().join("cut")), (3, Some(20_000)));
        let Some((first, _)) = whole.event_span() else { continue };
        for step in 0..20 {
            let at_ns = first.saturating_add(step * step * 10_000_000);
            let (one, other) = (at(&whole, at_ns), at(&cut, at_ns));
            assert!(one == other, "{} at {at_ns}: {one:#?} became {other:#?}", folder.display());
            asked += usize::from(one.is_some());
        }
    }
    assert!(traces.is_empty() || asked > 40, "{asked}");
}
