//! Pages in any direction are parts of what is read from begin to end.

use std::path::Path;

use kymo_table::arrow::datatypes::{UInt32Type, UInt64Type};

use super::*;
use crate::made_traces::{Random, trace};
use crate::{Filter, OpenOptions, Selection};

fn open(path: &Path) -> Arc<Session> {
    let opened = Session::open(&[path.to_owned()], &OpenOptions { threads: 1, ..OpenOptions::default() });
    Arc::new(opened.unwrap_or_else(|failure| panic!("{}", failure.render())))
}

fn demo() -> Arc<Session> {
    open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo"))
}

/// Cycles, streams and the number of each row.
fn rows(batches: &[RecordBatch]) -> Vec<(u64, u32)> {
    let of = |batch: &RecordBatch| {
        let cycles = batch.column_by_name("cycles").unwrap().as_primitive::<UInt64Type>().clone();
        let streams = batch.column_by_name("stream").unwrap().as_primitive::<UInt32Type>().clone();
        (0..batch.num_rows()).map(|row| (cycles.value(row), streams.value(row))).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

fn all(session: &Arc<Session>, question: &EventsQuestion) -> Vec<(u64, u32)> {
    let mut parts = session.events(question).unwrap().partitions(1);
    let batches: Vec<RecordBatch> = parts.remove(0).map(|batch| batch.unwrap()).collect();
    rows(&batches)
}

/// All rows in pages of so many, forwards from the begin and back from the end.
fn in_pages(pages: &EventPages, limit: u64) -> [Vec<(u64, u32)>; 2] {
    let progress = Arc::default();
    let (mut forwards, mut place) = (Vec::new(), RowPlace { time_ns: i64::MIN, behind: 0 });
    for _ in 0..100_000 {
        let page = pages.page(PageOf::From(place), limit, &progress).unwrap();
        forwards.extend(rows(&page.batches));
        place = page.after;
        if page.is_end {
            break;
        }
    }
    let (mut back, mut place) = (Vec::new(), RowPlace { time_ns: i64::MAX, behind: 0 });
    for _ in 0..100_000 {
        let page = pages.page(PageOf::Before(place), limit, &progress).unwrap();
        assert!(rows(&page.batches).len() as u64 <= limit);
        back.splice(0..0, rows(&page.batches));
        place = page.before;
        if page.is_end {
            break;
        }
    }
    [forwards, back]
}

#[test]
fn pages_in_both_directions_are_all_rows() {
    let session = demo();
    let filter = Some(Filter::parse("id % 7 == 3").unwrap());
    for selection in [Selection::default(), Selection { filter, ..Selection::default() }] {
        let question = EventsQuestion { selection, batch_rows: 100, ..EventsQuestion::default() };
        let (expected, pages) = (all(&session, &question), session.event_pages(&question).unwrap());
        assert!(expected.len() > 50);
        for limit in [1, 17, 500, PAGE_ROWS_MAX] {
            if limit == 1 && expected.len() > 1000 {
                continue;
            }
            assert_eq!(in_pages(&pages, limit), [expected.clone(), expected.clone()], "{limit}");
        }
    }
}

/// Events of one time, of several streams, in packets of a few events; and a question that is cut.
#[test]
fn rows_of_one_time_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    let mut compared = 0;
    for number in 0..60 {
        let path = folder.path().join(format!("trace{number}"));
        // One whose events are where its packets say.
        trace(&path, 15 * number, &mut random);
        let session = open(&path);
        let mut question = EventsQuestion::default();
        if number % 3 == 2 {
            question.begin_ns = Some(random.below(3000).cast_signed());
            question.end_ns = Some(3000 + random.below(3000).cast_signed());
        }
        let (expected, pages) = (all(&session, &question), session.event_pages(&question).unwrap());
        let [forwards, back] = in_pages(&pages, 1 + random.below(40));
        assert_eq!([&forwards, &back], [&expected, &expected], "{number}");
        compared += expected.len();
    }
    assert!(compared > 1000);
}

#[test]
fn a_place_says_what_is_before_and_behind_it() {
    let session = demo();
    let question =
        EventsQuestion { columns: Some(vec!["cycles".into(), "stream".into()]), ..EventsQuestion::default() };
    let (expected, pages) = (all(&session, &question), session.event_pages(&question).unwrap());
    let progress = Arc::default();
    let first = pages.page(PageOf::From(RowPlace { time_ns: i64::MIN, behind: 0 }), 1000, &progress).unwrap();
    assert_eq!(pages.schema().fields().len(), 2);
    assert_eq!(first.batches[0].num_columns(), 2, "times are read and not shown");
    let before = pages.page(PageOf::Before(first.after), 3, &progress).unwrap();
    assert_eq!((rows(&before.batches), before.after), (expected[997..1000].to_vec(), first.after));
    let behind = pages.page(PageOf::From(before.before), 2, &progress).unwrap();
    assert_eq!((rows(&behind.batches), behind.before), (expected[997..999].to_vec(), before.before));
    // Where nothing is, the place stays.
    let nothing = pages.page(PageOf::Before(first.before), 3, &progress).unwrap();
    assert_eq!((nothing.batches.len(), nothing.is_end, nothing.before), (0, true, first.before));
}

#[test]
fn events_are_counted_or_guessed() {
    let session = demo();
    let progress = Arc::default();
    let pages = session.event_pages(&EventsQuestion::default()).unwrap();
    assert_eq!(pages.count(u64::MAX, &progress).unwrap(), EventCount { events: 2400, is_exact: true });
    let mut session = Session::open(
        &[Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")],
        &OpenOptions::default(),
    )
    .unwrap();
    session.slice_bytes = Some(8_000);
    let pages = Arc::new(session).event_pages(&EventsQuestion::default()).unwrap();
    let guessed = pages.count(40_000, &progress).unwrap();
    assert!(!guessed.is_exact && (1200..4800).contains(&guessed.events), "{guessed:?}");
}

#[test]
fn places_are_texts() {
    for (text, place) in [("15", Some((15, 0))), ("-3.2", Some((-3, 2))), ("15.0", Some((15, 0)))] {
        assert_eq!(text.parse().ok(), place.map(|(time_ns, behind)| RowPlace { time_ns, behind }));
    }
    for text in ["", "x", "+5", "1.", "1.-2", "1.+2", "1.2.3", ".5", "99999999999999999999"] {
        assert_eq!(text.parse::<RowPlace>(), Err(NotAPlace), "{text}");
    }
    assert_eq!(RowPlace { time_ns: -7, behind: 3 }.to_string(), "-7.3");
    assert_eq!(RowPlace { time_ns: 7, behind: 0 }.to_string(), "7");
}
