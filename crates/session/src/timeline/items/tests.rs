//! A machine with a known schedule: its tiles and items, in one chunk and in many.

use std::path::Path;
use std::sync::Arc;

use kymo_script::Random;

use super::*;
use crate::open::{OpenOptions, Session};
use crate::timeline::{Items, TileQuestion, TimelineOptions};

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
event { name = "sched_waking"; id = 1; fields := struct { integer { size = 32; base = hex; } tid; }; };
"#;

/// Events of a packet.
const PACKET_EVENTS: usize = 40;
/// When the trace begins.
const BEGIN: u64 = 1000;

/// The true schedule: runs on the CPU with begin and end, and wakeups with the time when the thread
/// ran.
#[derive(Debug, Default)]
struct Truth {
    ran: Vec<(i64, i64, u32)>,
    woken: Vec<(i64, u32, i64)>,
    events: Vec<(i64, &'static str)>,
}

/// One CPU that threads 1 to 4 leave to sleep, one after the other, after they have woken the next one.
fn write_trace(folder: &Path, switches: usize) -> Truth {
    let mut truth = Truth::default();
    let (mut random, mut time, mut running) = (Random(7), BEGIN, 1u32);
    let (mut events, mut since) = (Vec::new(), None);
    for _ in 0..switches {
        let next = running % 4 + 1;
        // Threads run for long now and then, so that chunks have no edge of theirs.
        let longest = if random.below(20) == 0 { 9000 } else { 60 };
        time += 1 + random.below(longest) as u64;
        events.push((time, 1u32, next.to_le_bytes().to_vec()));
        truth.events.push((time.cast_signed(), "sched_waking"));
        let waked = time.cast_signed();
        time += 1 + random.below(60) as u64;
        events.push((time, 0, [running, 1, next].map(u32::to_le_bytes).concat()));
        truth.events.push((time.cast_signed(), "sched_switch"));
        let at = time.cast_signed();
        truth.ran.extend(since.map(|since| (since, at, running)));
        truth.woken.push((waked, next, at));
        (running, since) = (next, Some(at));
    }
    let mut stream = Vec::new();
    for packet in events.chunks(PACKET_EVENTS) {
        let content: Vec<u8> = packet
            .iter()
            .flat_map(|(time, id, fields)| [&id.to_le_bytes()[..], &time.to_le_bytes(), fields].concat())
            .collect();
        let bits = (4 * 8 + 4 + content.len() as u64) * 8;
        let (first, last) = (packet[0].0, packet[packet.len() - 1].0);
        stream.extend([first, last, bits, bits].iter().flat_map(|word| word.to_le_bytes()));
        stream.extend(0u32.to_le_bytes());
        stream.extend(content);
    }
    std::fs::write(folder.join("metadata"), METADATA).unwrap();
    std::fs::write(folder.join("channel_0"), stream).unwrap();
    truth
}

/// A timeline of which nothing is read yet.
fn unread(folder: &Path, slice_bytes: Option<u64>) -> Arc<Timeline> {
    let options = OpenOptions { threads: 2, ..OpenOptions::default() };
    let mut session = Session::open(&[folder.to_owned()], &options).unwrap();
    session.slice_bytes = slice_bytes;
    Arc::new(session).timeline(&TimelineOptions::default()).unwrap()
}

fn built(folder: &Path, slice_bytes: Option<u64>) -> Arc<Timeline> {
    let timeline = unread(folder, slice_bytes);
    timeline.start();
    timeline.wait(&Progress::default()).unwrap();
    timeline
}

fn number(timeline: &Timeline, id: &str) -> u32 {
    let tracks = timeline.catalogue(0, 0).tracks;
    tracks.iter().find(|track| track.id == id).unwrap_or_else(|| panic!("{id} is there: {tracks:?}")).number
}

fn asked(timeline: &Timeline, id: &str, (begin_ns, end_ns): (i64, i64), limit: u32) -> ItemsFound {
    let question = ItemQuestion { track: number(timeline, id), begin_ns, end_ns, limit };
    timeline.items(&question, &Progress::default()).unwrap()
}

/// Begin, end, label and flags of a run.
fn run(item: &TrackItem) -> (i64, i64, String, [bool; 3]) {
    match item {
        TrackItem::Run { begin_ns, end_ns, begin_known, end_known, in_doubt, value, .. } => {
            (*begin_ns, *end_ns, value.label.clone(), [*begin_known, *end_known, *in_doubt])
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_ran_when_is_told_to_the_nanosecond_wherever_it_began_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let truth = write_trace(folder.path(), 1500);
    let (many, one) = (built(folder.path(), Some(1)), built(folder.path(), None));
    assert!(many.chunks.len() > 40 && one.chunks.len() == 1, "{}", many.chunks.len());
    for timeline in [&many, &one] {
        for &(begin, end, tid) in truth.ran.iter().step_by(7) {
            for at in [begin, i64::midpoint(begin, end), end - 1] {
                let found = asked(timeline, "cpu/0/0/thread", (at, at), 10);
                let runs: Vec<_> = found.items.iter().map(run).collect();
                assert_eq!(runs, [(begin, end, format!("thread {tid}"), [true, true, false])], "at {at}");
                assert!(found.complete && found.next_ns.is_none());
            }
        }
        // The last one goes on behind the trace.
        let last = truth.ran[truth.ran.len() - 1].1;
        let runs: Vec<_> = asked(timeline, "cpu/0/0/thread", (last, last), 10).items.iter().map(run).collect();
        assert_eq!((runs.len(), runs[0].0, runs[0].3), (1, last, [true, false, false]), "{runs:?}");
        assert_eq!(asked(timeline, "cpu/0/0/thread", (last + 100, last + 200), 10).items, []);
        assert_eq!(asked(timeline, "cpu/0/0/thread", (0, 10), 10).items, []);
    }
}

#[test]
fn who_goes_on_where_an_answer_ends_misses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let truth = write_trace(folder.path(), 600);
    let timeline = built(folder.path(), Some(1));
    let end = truth.events[truth.events.len() - 1].0 + 1;
    for (id, count) in [("cpu/0/0/thread", truth.ran.len() + 2), ("events/0/0", truth.events.len())] {
        let (mut begin, mut all) = (0, 0);
        for _ in 0..1000 {
            let found = asked(&timeline, id, (begin, end), 9);
            assert!(found.items.len() <= 9);
            all += found.items.len();
            match found.next_ns {
                Some(next) => begin = next,
                None => break,
            }
        }
        // Before the first switch, the first thread ran, and the last one behind the last one.
        assert_eq!(all, count, "{id}");
    }
}

#[test]
fn events_come_with_all_their_fields_and_arrows_with_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let truth = write_trace(folder.path(), 300);
    let timeline = built(folder.path(), Some(1));
    for (place, &(woken, tid, at)) in truth.woken.iter().enumerate().skip(6).step_by(11) {
        let found = asked(&timeline, "events/0/0", (woken, at + 1), 10);
        let TrackItem::Event { time_ns, value, event, bases, .. } = &found.items[0] else { panic!("{found:?}") };
        assert_eq!((*time_ns, value.label.as_str(), found.items.len()), (woken, "sched_waking", 2));
        let event = event.as_ref().unwrap();
        assert_eq!((&event["time"], &event["payload"]["tid"]), (&woken.into(), &tid.into()));
        let path = vec!["payload".to_owned(), "tid".to_owned()];
        assert_eq!(*bases, [FieldBase { path, base: 16, bits: 32 }]);
        // Neither names its thread; a switch is an event of the thread before it.
        let ran = (tid + 2) % 4 + 1;
        for item in &found.items {
            let TrackItem::Event { thread, .. } = item else { panic!("{item:?}") };
            let row = number(&timeline, &format!("thread/0/{ran}/state"));
            let thread = thread.as_ref().map(|thread| (thread.label.clone(), thread.track));
            assert_eq!(thread, Some((format!("thread {ran}"), Some(row))), "{place}");
        }
        let found = asked(&timeline, "wakeups/0", (woken, woken), 10);
        let TrackItem::Arrow { begin_ns, end_ns, duration_ns, to, value, waker, .. } = &found.items[0] else {
            panic!("{found:?}")
        };
        assert_eq!((*begin_ns, *end_ns, *duration_ns), (woken, at, Some(woken.abs_diff(at))), "{place}");
        assert_eq!(
            (value.label.clone(), *to),
            (format!("thread {tid}"), number(&timeline, &format!("thread/0/{tid}/state")))
        );
        assert_eq!(waker.as_ref().map(|waker| waker.label.clone()), Some(format!("thread {ran}")));
    }
}

/// Tiles of few things have them one by one, with the same begins and ends.
#[test]
fn tiles_of_few_things_are_exact() {
    let folder = tempfile::tempdir().unwrap();
    let truth = write_trace(folder.path(), 1500);
    for timeline in [built(folder.path(), Some(1)), built(folder.path(), None)] {
        let tracks = ["cpu/0/0/thread", "events/0/0", "wakeups/0"].map(|id| number(&timeline, id)).to_vec();
        for &(begin, _, _) in truth.ran.iter().step_by(50) {
            let first = begin.abs_diff(timeline.span.0);
            let question = TileQuestion { level: 0, first, count: 256, tracks: tracks.clone() };
            let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
            let (from, to) = (begin, begin + 256);
            let [Items::Runs(runs), Items::ExactInstants(instants), Items::ExactArrows(arrows)] =
                [0, 1, 2].map(|place| tiles.tracks[place].items.clone())
            else {
                panic!("{tiles:?}")
            };
            let is_there = |run: &&(i64, i64, u32)| run.0 < to && from < run.1;
            let expected: Vec<_> = truth.ran.iter().filter(is_there).map(|run| (run.0, run.1)).collect();
            let found = runs.iter().filter(|run| run.flags & END_UNKNOWN == 0 && run.begin > i64::MIN);
            let found: Vec<_> = found.map(|run| (run.begin + from, run.end + from)).collect();
            let is_cut = |&&(_, end): &&(i64, i64)| end >= to;
            let cut = expected.len() - found.len();
            assert!(cut <= expected.iter().filter(is_cut).count().min(1), "{found:?} {expected:?}");
            assert_eq!(found, expected[..expected.len() - cut]);
            let expected: Vec<_> = truth.events.iter().filter(|event| (from..to).contains(&event.0)).collect();
            assert!(instants.iter().map(|found| found.time + from).eq(expected.iter().map(|event| event.0)));
            for arrow in arrows.iter().filter(|arrow| arrow.flags == 0) {
                let is_it = |woken: &&(i64, u32, i64)| woken.0 == arrow.begin + from;
                assert_eq!(truth.woken.iter().find(is_it).map(|woken| woken.2), Some(arrow.end + from));
            }
            assert_eq!(arrows.len(), truth.woken.iter().filter(|woken| (from..to).contains(&woken.0)).count());
        }
    }
}

/// Where they are more than a tile has buckets, arrows add up, and say how long the longest takes.
#[test]
fn the_longest_arrow_of_a_bucket_is_known_where_the_trace_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let truth = write_trace(folder.path(), 1500);
    let timeline = built(folder.path(), None);
    let level = (0..).find(|level| timeline.chunks[0].level <= level + 1).unwrap();
    let question = TileQuestion { level, first: 0, count: 400, tracks: vec![number(&timeline, "wakeups/0")] };
    let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
    let Items::Arrows(buckets) = &tiles.tracks[0].items else { panic!("{tiles:?}") };
    let end = timeline.span.0 + (400i64 << level);
    let longest = truth.woken.iter().filter(|woken| woken.0 < end).map(|woken| woken.0.abs_diff(woken.2)).max();
    assert_eq!(buckets.iter().filter_map(|bucket| bucket.longest_ns).max(), longest);
    let all = truth.woken.iter().filter(|woken| woken.0 < end).count();
    assert_eq!(buckets.iter().map(|bucket| bucket.count as usize).sum::<usize>(), all);
}

/// A question for a chunk that others read waits for them: there is one node, and all have it.
#[test]
fn a_chunk_that_many_want_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(folder.path(), 1500);
    let timeline = built(folder.path(), None);
    let (known, progress, begins) = (timeline.desk.known(), Progress::default(), std::sync::Barrier::new(8));
    let nodes: Vec<_> = std::thread::scope(|scope| {
        let read = || {
            begins.wait();
            timeline.exact(0, None, known, &progress).unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(nodes.iter().all(|node| Arc::ptr_eq(node, &nodes[0])));
}

/// A question that needs a chunk takes more memory than one for a chunk that was read, and a
/// refused one takes none.
#[test]
fn questions_say_how_much_memory_they_take() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(folder.path(), 1500);
    let timeline = built(folder.path(), None);
    let question = TileQuestion { level: 0, first: 0, count: 256, tracks: vec![0] };
    let before = timeline.tiles_bytes(&question);
    timeline.tiles(&question, &Progress::default()).unwrap();
    let after = timeline.tiles_bytes(&question);
    assert!(after > 0 && before >= after + timeline.items_bytes(), "{before} {after}");
    assert_eq!(timeline.tiles_bytes(&TileQuestion { count: 0, ..question.clone() }), 0);
    let more = TileQuestion { tracks: vec![0; 100], ..question };
    assert_eq!(timeline.tiles_bytes(&more), 100 * after);
}

#[test]
fn questions_without_an_answer_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(folder.path(), 100);
    let timeline = built(folder.path(), None);
    let ask = |track, limit| {
        let question = ItemQuestion { track, begin_ns: 0, end_ns: 1, limit };
        timeline
            .items(&question, &Progress::default())
            .map(|found| found.items.len())
            .map_err(|error| error.to_string())
    };
    assert_eq!(ask(0, 0), Err("limit is 0, but 1 to 1000 items can be asked for".into()));
    assert_eq!(ask(9999, 1), Err("track is 9999, but no track has that number".into()));
    let heat = number(&timeline, "latency/0/waiting");
    assert_eq!(ask(heat, 1), Err(format!("track is {heat}, but this track shows sums and has no items")));
}

/// Events of kernels name no thread: those of a thread are those that its CPU was seen to run it at.
#[cfg(feature = "columns")]
#[test]
fn pages_of_threads_have_the_events_at_which_their_cpus_ran_them() {
    use kymo_table::arrow::array::AsArray;
    use kymo_table::arrow::datatypes::TimestampNanosecondType;

    use crate::timeline::EventsOfThreads;
    use crate::{EventsQuestion, PageOf, RowPlace};

    let folder = tempfile::tempdir().unwrap();
    let truth = write_trace(folder.path(), 300);
    for (slice_bytes, tids) in
        [(Some(1), vec![1..=1]), (None, vec![2..=2]), (Some(1), vec![4..=4, 2..=2]), (None, vec![2..=7, 1..=2, 3..=3])]
    {
        let timeline = built(folder.path(), slice_bytes);
        // Each thread wakes the next one, and leaves its CPU to it.
        let is_of = |number: usize| tids.iter().any(|range| range.contains(&((number / 2 % 4) as i32 + 1)));
        let expected: Vec<i64> =
            truth.events.iter().enumerate().filter(|(number, _)| is_of(*number)).map(|(_, event)| event.0).collect();
        let question = EventsQuestion { columns: Some(vec!["time".into()]), ..EventsQuestion::default() };
        let wanted = EventsOfThreads::new(&timeline, tids.clone());
        let pages = timeline.session.event_pages(&question).unwrap().of_threads(wanted);
        let progress = Arc::new(Progress::default());
        let counted = pages.count(u64::MAX, &progress).unwrap();
        assert_eq!((counted.events as usize, counted.is_exact), (expected.len(), true));
        let page = |of: PageOf| {
            let page = pages.page(of, 7, &progress).unwrap();
            let times = page.batches.iter().map(|batch| batch.column(0).as_primitive::<TimestampNanosecondType>());
            let times = times.flat_map(|times| times.values().to_vec());
            (times.collect::<Vec<i64>>(), page)
        };
        let (mut found, mut place) = (Vec::new(), RowPlace { time_ns: i64::MIN, behind: 0 });
        loop {
            let (times, page) = page(PageOf::From(place));
            found.extend(times);
            place = page.after;
            if page.is_end {
                break;
            }
        }
        assert_eq!(found, expected, "{tids:?}");
        let mut back = Vec::new();
        place = RowPlace { time_ns: i64::MAX, behind: 0 };
        loop {
            let (times, page) = page(PageOf::Before(place));
            back.splice(0..0, times);
            place = page.before;
            if page.is_end {
                break;
            }
        }
        assert_eq!(back, expected, "{tids:?}");
    }
}

/// As long as a CPU's last switch is not read, nothing says which thread its events are of.
#[cfg(feature = "columns")]
#[test]
fn pages_of_threads_say_whether_events_may_be_missing() {
    use crate::timeline::EventsOfThreads;
    use crate::{EventsQuestion, PageOf, RowPlace};

    let folder = tempfile::tempdir().unwrap();
    write_trace(folder.path(), 300);
    let timeline = unread(folder.path(), Some(1));
    assert!(timeline.chunks.len() > 2);
    let asked = || {
        let wanted = EventsOfThreads::new(&timeline, vec![1..=4]);
        let pages = timeline.session.event_pages(&EventsQuestion::default()).unwrap().of_threads(wanted);
        let progress = Arc::new(Progress::default());
        let place = RowPlace { time_ns: i64::MAX, behind: 0 };
        let page = pages.page(PageOf::Before(place), 10, &progress).unwrap();
        (page.is_complete, pages.count(u64::MAX, &progress).unwrap().is_exact)
    };
    assert_eq!(asked(), (false, false));
    timeline.start();
    timeline.wait(&Progress::default()).unwrap();
    assert_eq!(asked(), (true, true));
}

/// A key begins again before it has ended, and a function ends with the one around it: their ends are no events.
#[test]
fn ends_of_durations_that_were_not_seen_are_in_doubt() {
    const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace { major = 1; minor = 8; byte_order = le; };
env { domain = "ust"; tracer_name = "kymo"; };
clock { name = monotonic; freq = 1000000000; offset = 0; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := time_t;
stream {
  packet.context := struct { time_t timestamp_begin; time_t timestamp_end; uint64_t content_size; uint64_t packet_size; };
  event.header := struct { uint32_t id; time_t timestamp; };
  event.context := struct { uint32_t vtid; };
};
event { name = "kymo:begin"; id = 0; fields := struct { uint32_t key; uint32_t name; }; };
event { name = "kymo:end"; id = 1; fields := struct { uint32_t key; uint32_t name; }; };
event { name = "lttng_ust_cyg_profile:func_entry"; id = 2; fields := struct { uint32_t addr; uint32_t unused; }; };
event { name = "lttng_ust_cyg_profile:func_exit"; id = 3; fields := struct { uint32_t addr; uint32_t unused; }; };
"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("metadata"), METADATA).unwrap();
    let write = |file: &str, tid: u32, events: &[(u64, u32, u32, u32)]| {
        let mut stream = Vec::new();
        // A packet for each, so that chunks may lie between any two.
        for &(time, id, key, name) in events {
            let bits = (4 * 8 + 4 + 8 + 4 + 8) * 8u64;
            stream.extend([time, time, bits, bits].iter().flat_map(|word| word.to_le_bytes()));
            stream.extend([&id.to_le_bytes()[..], &time.to_le_bytes()].concat());
            stream.extend([tid, key, name].iter().flat_map(|word| word.to_le_bytes()));
        }
        std::fs::write(folder.path().join(file), stream).unwrap();
    };
    write("keys", 7, &[(1000, 0, 1, 17), (1300, 0, 1, 18), (1400, 1, 1, 18), (1500, 0, 1, 19), (1600, 1, 1, 19)]);
    write("functions", 8, &[(1000, 2, 21, 0), (1100, 2, 22, 0), (1200, 3, 21, 0)]);
    let (seen, unseen) = ([true, true, false], [true, true, true]);
    for slice_bytes in [Some(1), None] {
        let timeline = built(folder.path(), slice_bytes);
        let runs = |id: &str| asked(&timeline, id, (1000, 2000), 10).items.iter().map(run).collect::<Vec<_>>();
        let said = |begin, end, name: &str, known| (begin, end, name.to_owned(), known);
        assert_eq!(
            runs("thread/0/7/slices/0"),
            [said(1000, 1300, "17", unseen), said(1300, 1400, "18", seen), said(1500, 1600, "19", seen)],
            "{slice_bytes:?}"
        );
        assert_eq!(runs("thread/0/8/slices/0"), [said(1000, 1200, "21", seen)], "{slice_bytes:?}");
        assert_eq!(runs("thread/0/8/slices/1"), [said(1100, 1200, "22", unseen)], "{slice_bytes:?}");
    }
}

/// As `perf` writes it: the thread stands among the fields of the event, with a name of its own.
#[test]
fn events_are_of_the_thread_that_the_field_of_their_tracer_names() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(folder.path(), 60);
    let path = folder.path().join("metadata");
    let metadata = std::fs::read_to_string(&path).unwrap();
    let changed = metadata.replace("sched_waking", "probe").replace(" } tid;", " } perf_tid;");
    assert_ne!(changed, metadata);
    std::fs::write(path, changed).unwrap();
    let timeline = built(folder.path(), None);
    let all = asked(&timeline, "events/0/0", (0, i64::MAX), 1000);
    let mut of_thread = 0;
    for item in &all.items {
        let TrackItem::Event { event: Some(event), thread, .. } = item else { panic!("{item:?}") };
        if event["event"] == "probe" {
            let tid = event["payload"]["perf_tid"].as_i64().unwrap();
            assert_eq!(thread.as_ref().map(|thread| thread.label.clone()), Some(format!("thread {tid}")));
            of_thread += usize::from(tid == 2);
        }
    }
    let found = asked(&timeline, "thread/0/2/events", (0, i64::MAX), 1000).items;
    assert!(found.len() == of_thread && of_thread > 10, "{of_thread} of {}", found.len());
    for item in &found {
        let TrackItem::Event { event: Some(event), .. } = item else { panic!("{item:?}") };
        assert_eq!(event["payload"]["perf_tid"], 2);
    }
}
