//! What is kept of a trace answers as if it were found out anew, and only for the trace that it was found in.

use kymo_analysis::testing::Random;

use super::*;
use crate::OpenOptions;
use crate::analyse::tests::corpus;

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
pub(in crate::analyse) fn write_trace(folder: &Path, seed: u64, events: usize) {
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
    let found = session.state_at(at_ns, &AnalysisOptions::default(), &Progress::default());
    found.ok().map(|analysed| analysed.answer)
}

/// Files of runs in a folder, with when they were written.
fn files(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|found| found == EXTENSION)).collect()
}

#[test]
fn what_is_kept_answers_as_what_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, cache) = (folder.path().join("trace"), folder.path().join("cache"));
    write_trace(&trace, 1, 3000);
    let kept = session(&trace, Some(&cache), (3, Some(3000)));
    for at_ns in (1000..100_000).step_by(3777) {
        let found = at(&session(&trace, None, (1, None)), at_ns);
        assert_eq!(at(&kept, at_ns), found, "at {at_ns}");
        assert!(found.is_some_and(|answer| answer.tables.iter().any(|table| !table.rows.is_empty())));
    }
    assert_eq!(files(&cache).len(), 1);
    let outside = kept.state_at(999, &AnalysisOptions::default(), &Progress::default());
    assert!(matches!(outside, Err(AnalyseFailure::Outside { begin_ns: 1000, .. })));
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
        let Some(first) = whole.first_ns() else { continue };
        for step in 0..20 {
            let at_ns = first + step * step * 10_000_000;
            let (one, other) = (at(&whole, at_ns), at(&cut, at_ns));
            assert!(one == other, "{} at {at_ns}: {one:#?} became {other:#?}", folder.display());
            asked += usize::from(one.is_some());
        }
    }
    assert!(traces.is_empty() || asked > 40, "{asked}");
}
