//! Copies of the demo trace with clocks that are taken to be apart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{OffsetFailure, Offsets, TraceOffset};
use crate::{
    AnalysisOptions, CutOptions, MetadataForm, OpenFailure, OpenOptions, PrintFormat, PrintOptions, Progress, Session,
    ShareFailure, ShareProblem, Shares, find_analysis,
};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/demo");

/// `one` and `hosts/two` in a folder, each a copy of the demo.
fn copies() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "hosts/two"] {
        let copy = folder.path().join(name);
        std::fs::create_dir_all(&copy).unwrap();
        for file in std::fs::read_dir(DEMO).unwrap().map(Result::unwrap) {
            if file.file_type().unwrap().is_file() {
                std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
            }
        }
    }
    folder
}

fn options(folder: &Path, clock_shift_ns: i64, offsets: &[(&str, i64)]) -> OpenOptions {
    let offset = |(path, offset_ns): &(&str, i64)| TraceOffset { path: folder.join(path), offset_ns: *offset_ns };
    OpenOptions { clock_shift_ns, trace_offsets: offsets.iter().map(offset).collect(), ..OpenOptions::default() }
}

fn open(folder: &Path, paths: &[&str], clock_shift_ns: i64, offsets: &[(&str, i64)]) -> Session {
    let paths: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
    Session::open(&paths, &options(folder, clock_shift_ns, offsets)).unwrap()
}

/// The time and everything else of each event, in the order in which they are printed.
fn events(session: &Session) -> Vec<(i64, String)> {
    let mut out = Vec::new();
    let options = PrintOptions { format: PrintFormat::Csv, ..PrintOptions::default() };
    session.print(&options, &mut out, &Progress::default()).unwrap();
    let line = |line: &str| {
        let (time, rest) = line.split_once(',').unwrap();
        // Streams are counted over all traces.
        let fields: Vec<&str> = rest.splitn(4, ',').collect();
        (time.parse().unwrap(), format!("{} {} {}", fields[0], fields[1], fields[3]))
    };
    String::from_utf8(out).unwrap().lines().skip(1).map(line).collect()
}

/// Every event of both, each at its trace's time; those of the first come first where times are equal.
#[test]
fn events_come_in_the_order_of_shifted_times() {
    let folder = copies();
    let of_one = |name: &str| events(&open(folder.path(), &[name], 0, &[]));
    let apart = [of_one("one"), of_one("hosts/two")];
    for (all_ns, offset_ns) in [(0, 0), (0, 400_000), (0, -3), (7, 1_000_000_000_000)] {
        let mut expected: Vec<(i64, String)> =
            apart[0].iter().map(|(time, event)| (time + all_ns, event.clone())).collect();
        expected.extend(apart[1].iter().map(|(time, event)| (time + all_ns + offset_ns, event.clone())));
        expected.sort_by_key(|(time, _)| *time);
        let session = open(folder.path(), &["one", "hosts"], all_ns, &[("hosts", offset_ns)]);
        assert_eq!(events(&session), expected, "{offset_ns} ns");
        let info = session.info();
        let (begin, end) = (info.traces[0].span_ns.unwrap(), info.traces[1].span_ns.unwrap());
        assert_eq!((end.0 - begin.0, end.1 - begin.1), (offset_ns, offset_ns));
        assert_eq!([info.traces[0].clock_shift_ns, info.traces[1].clock_shift_ns], [all_ns, all_ns + offset_ns]);
        assert_eq!(info.span_ns, expected.first().map(|first| first.0).zip(expected.last().map(|last| last.0)));
    }
}

/// Of two offsets for a trace, the one that is nearer to it counts.
#[test]
fn the_nearest_counts() {
    let folder = copies();
    let given = [("hosts/two", 2), (".", 1), ("hosts/../one/", 3)];
    let shifts = |given: &[(&str, i64)]| {
        let session = open(folder.path(), &["one", "hosts"], 10, given);
        session.traces.iter().map(|trace| trace.clock_shift_ns).collect::<Vec<_>>()
    };
    assert_eq!(shifts(&given), [13, 12]);
    assert_eq!(shifts(&given[..2]), [11, 12]);
    assert_eq!(shifts(&given[..1]), [10, 12]);
    // A name that begins alike is another one.
    let offsets = options(folder.path(), 0, &[("hosts/tw", 5)]).trace_offsets;
    assert_eq!(Offsets::new(&offsets).unwrap().of(&folder.path().join("hosts/two")), 0);
}

#[cfg(unix)]
#[test]
fn links_are_what_they_lead_to() {
    let folder = copies();
    std::os::unix::fs::symlink(folder.path().join("hosts"), folder.path().join("latest")).unwrap();
    let session = open(folder.path(), &["one", "hosts"], 0, &[("latest/two", 5)]);
    assert_eq!(session.traces[1].clock_shift_ns, 5);
    let session = open(folder.path(), &["one", "latest"], 0, &[("hosts", 6)]);
    assert_eq!(session.traces[1].clock_shift_ns, 6);
}

#[test]
fn mistakes_are_refused() {
    let folder = copies();
    let refused = |offsets: &[(&str, i64)], paths: &[&str]| {
        let paths: Vec<PathBuf> = paths.iter().map(|path| folder.path().join(path)).collect();
        match Session::open(&paths, &options(folder.path(), 0, offsets)) {
            Err(OpenFailure::Offset(failure)) => failure,
            other => panic!("{other:?}"),
        }
    };
    let (one, two, here) = (folder.path().join("one"), folder.path().join("hosts/two"), folder.path().join("here"));
    let failure = refused(&[("here", 1)], &["one", "hosts"]);
    assert_eq!(failure, OffsetFailure::NoTrace { path: here.clone(), found: vec![one.clone(), two.clone()] });
    let expected = format!(
        "{}: an offset is given for its clocks, but it is none of the traces, nor has it one below; there are: {}, {}",
        here.display(),
        one.display(),
        two.display()
    );
    assert_eq!(failure.to_string(), expected);
    // It is there, but not opened.
    assert!(matches!(refused(&[("hosts/two", 1)], &["one"]), OffsetFailure::NoTrace { .. }));
    let failure = refused(&[("one", 1), ("hosts/../one/", -2)], &["one"]);
    assert!(failure.to_string().ends_with("two offsets are given for its clocks, +1 ns and -2 ns; one is expected"));
}

/// That a trace cannot be read is told of it, as without an offset.
#[test]
fn an_offset_of_what_cannot_be_read_is_no_mistake() {
    let folder = copies();
    std::fs::write(folder.path().join("hosts/two/metadata"), "what?").unwrap();
    let session = open(folder.path(), &["one", "hosts", "gone"], 0, &[("hosts", 5), ("gone", 6)]);
    assert_eq!((session.traces.len(), session.opening_report().unreadable.len()), (1, 2));
}

/// Events keep their times in a part of the traces, in each dialect.
#[test]
fn parts_say_so_of_their_clocks() {
    let folder = copies();
    let session = open(folder.path(), &["one", "hosts"], 5, &[("hosts/two", 1_500_000)]);
    for (number, form) in [MetadataForm::AsIs, MetadataForm::Ctf2, MetadataForm::Tsdl].into_iter().enumerate() {
        let output = folder.path().join(format!("part{number}"));
        session.cut(&CutOptions { form, ..CutOptions::default() }, &output, &Progress::default()).unwrap();
        let part = Session::open(&[output.join("one"), output.join("hosts/two")], &OpenOptions::default()).unwrap();
        assert_eq!(events(&part), events(&session), "{form:?}");
    }
}

/// A cut between two times takes other events of a trace with another offset.
#[test]
fn what_is_cut_depends_on_offsets() {
    let folder = copies();
    let span = open(folder.path(), &["one"], 0, &[]).info().span_ns.unwrap();
    let cut = |offset_ns: i64| {
        let session = open(folder.path(), &["one", "hosts"], 0, &[("hosts", offset_ns)]);
        let output = folder.path().join(format!("part{offset_ns}"));
        let options = CutOptions { end_ns: Some(span.0 + 30_000_000), ..CutOptions::default() };
        let cut = session.cut(&options, &output, &Progress::default()).unwrap();
        let expected = events(&session).iter().filter(|(time, _)| *time <= span.0 + 30_000_000).count();
        assert_eq!(cut.events, expected as u64);
        cut.events
    };
    let (same, later, apart) = (cut(0), cut(10_000_000), cut(1_000_000_000));
    assert!(same > later && later > apart && apart * 2 == same, "{same} {later} {apart}");
}

/// Parts that are read elsewhere with other offsets are not merged with parts that are read here.
#[test]
fn shares_are_of_one_offset() {
    let folder = copies();
    let shares = |offset_ns: i64| {
        let mut session = open(folder.path(), &["one", "hosts"], 0, &[("hosts", offset_ns)]);
        session.slice_bytes = Some(1 << 14);
        Shares::new(Arc::new(session), find_analysis("rates").unwrap().kind.clone(), AnalysisOptions::default())
            .unwrap()
    };
    let (here, same, other) = (shares(3), shares(3), shares(4));
    let share = here.split(2).unwrap().swap_remove(0);
    assert!(same.read(&share, &Progress::default()).is_ok());
    assert!(matches!(
        other.read(&share, &Progress::default()),
        Err(ShareFailure::Share(ShareProblem::OtherTrace { .. }))
    ));
}
