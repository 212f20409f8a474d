//! The same trace in one chunk and in many, at all levels; kept pyramids; refused questions.

mod borders;
mod declared;
mod findings;
mod growing;
mod messages;
mod names;
mod selected;
mod timed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::Selection;
use crate::open::OpenOptions;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

/// The timeline of a trace in chunks of so many bytes, built.
fn built(path: &Path, slice_bytes: Option<u64>, cache: Option<&Path>) -> Arc<Timeline> {
    let options = OpenOptions { threads: 2, cache: cache.map(Path::to_owned), ..OpenOptions::default() };
    let mut session = Session::open(&[path.to_owned()], &options).unwrap();
    session.slice_bytes = slice_bytes;
    let timeline = Arc::new(session).timeline(&TimelineOptions::default()).unwrap();
    timeline.start();
    timeline.wait(&Progress::default()).unwrap();
    timeline
}

/// Content of a bucket of a track: values by name, how often something begins, shares of the
/// bucket: of the first two values, and of all that are not at rest.
#[derive(Debug, PartialEq)]
struct Said {
    values: [String; 3],
    begins: u32,
    shares: [i32; 3],
}

/// Content of a tile, by the ids of tracks and by buckets; the state before the first bucket is in
/// bucket -1.
fn said(timeline: &Timeline, level: Level, (first, count): (u64, u32)) -> BTreeMap<(String, i64), Said> {
    let catalogue = timeline.catalogue(0, 0);
    let tracks = catalogue.tracks.iter().map(|track| track.number).collect();
    let tiles = timeline.tiles(&TileQuestion { level, first, count, tracks }, &Progress::default()).unwrap();
    let catalogue = timeline.catalogue(0, 0);
    let name = |number: u32| catalogue.tracks.iter().find(|track| track.number == number).unwrap().id.clone();
    let value = |number: Option<u32>| number.map_or("-", |number| &catalogue.values[number as usize].label).to_owned();
    let mut said = BTreeMap::new();
    for TrackTile { number, items } in &tiles.tracks {
        let mut say = |bucket: i64, values: [Option<u32>; 3], begins, shares: [u16; 3]| {
            let held = Said { values: values.map(value), begins, shares: shares.map(i32::from) };
            let known: &mut Said = said.entry((name(*number), bucket)).or_insert(Said { begins: 0, ..held });
            known.begins += begins;
        };
        match items {
            Items::States { carry, buckets } => {
                say(-1, [*carry; 3], 0, [0; 3]);
                for at in buckets {
                    say(
                        at.bucket.into(),
                        [at.value, at.second, at.last],
                        at.begins,
                        [at.share, at.share_second, at.busy],
                    );
                }
            }
            Items::Instants(buckets) => {
                buckets.iter().for_each(|at| say(at.bucket.into(), [Some(at.value), None, None], at.count, [0; 3]));
            }
            Items::Heat(buckets) => buckets.iter().for_each(|at| say(at.bucket.into(), [None; 3], at.count, [0; 3])),
            Items::Arrows(buckets) => buckets.iter().for_each(|at| say(at.bucket.into(), [None; 3], at.count, [0; 3])),
            Items::Runs(runs) => {
                let before = runs.iter().find(|run| run.begin < 0 && 0 < run.end).map(|run| run.value);
                say(-1, [before; 3], 0, [0; 3]);
                let is_rest = |value: u32| catalogue.values[value as usize].is_rest;
                for at in bucketed(runs, level, count, &is_rest) {
                    say(
                        at.bucket.into(),
                        [at.value, at.second, at.last],
                        at.begins,
                        [at.share, at.share_second, at.busy],
                    );
                }
            }
            Items::ExactInstants(all) => {
                all.iter().for_each(|at| say(at.time >> level, [Some(at.value), None, None], 1, [0; 3]));
            }
            Items::ExactArrows(all) => all.iter().for_each(|at| say(at.begin >> level, [None; 3], 1, [0; 3])),
            Items::Counter { buckets, .. } => {
                buckets.iter().for_each(|at| say(at.bucket.into(), [None; 3], at.changes, [0; 3]));
            }
        }
    }
    said
}

/// Runs as buckets, counted anew: those in which something begins or ends.
fn bucketed(runs: &[ExactRun], level: Level, count: u32, is_rest: &dyn Fn(u32) -> bool) -> Vec<StateBucket> {
    let edges = runs.iter().flat_map(|run| [Some(run.begin), (run.flags & END_UNKNOWN == 0).then_some(run.end)]);
    let edges = edges.flatten().map(|at| at >> level).filter(|bucket| (0..i64::from(count)).contains(bucket));
    let buckets: std::collections::BTreeSet<i64> = edges.collect();
    // The last bucket reaches behind the trace's end, where a run does not end either.
    let end_of = |run: &ExactRun| if run.flags & END_UNKNOWN == 0 { run.end } else { i64::MAX };
    let of = |bucket: i64| {
        let (begin, end) = (bucket << level, (bucket + 1) << level);
        let mut held: BTreeMap<u32, i64> = BTreeMap::new();
        for run in runs {
            let lasts = end_of(run).min(end) - run.begin.max(begin);
            *held.entry(run.value).or_default() += lasts.max(0);
        }
        let mut held: Vec<(u32, i64)> = held.into_iter().filter(|(_, lasts)| *lasts > 0).collect();
        held.sort_by_key(|&(value, lasts)| (std::cmp::Reverse(lasts), value));
        if held.is_empty() {
            held.extend(runs.iter().find(|run| run.begin >> level == bucket).map(|run| (run.value, 0)));
        }
        let part = |lasts: i64| ((i128::from(lasts) * 65535) >> level) as u16;
        let share = |place: usize| held.get(place).map_or(0, |(_, lasts)| part(*lasts));
        let value = |place: usize| held.get(place).map(|(value, _)| *value);
        let last = runs.iter().rev().find(|run| run.begin < end && end <= end_of(run)).map(|run| run.value);
        let begins = runs.iter().filter(|run| (begin..end).contains(&run.begin)).count() as u32;
        let (bucket, share, share_second) = (bucket as u32, share(0), share(1));
        let at_work = || held.iter().filter(|(value, _)| !is_rest(*value));
        let (busiest, busy) = (at_work().map(|at| at.0).next(), part(at_work().map(|at| at.1).sum()));
        StateBucket { bucket, value: value(0), second: value(1), last, begins, share, share_second, busiest, busy }
    };
    buckets.into_iter().map(of).collect()
}

/// Whether nodes of the pyramid, which round times to a 64th of a bucket and tell a few values
/// apart, agree with the chunks that were read.
fn agrees(node: &Said, read: &Said) -> bool {
    // Begins and ends that were rounded, as often up as down: two of them, or as many as the root of all that there are.
    let slack = 65536 / 64 * read.begins.isqrt().max(2);
    let near = |a: i32, b: i32| a.abs_diff(b) <= slack;
    let are_alike = near(read.shares[0], read.shares[1]);
    let is_same = |place: usize| node.values[place] == read.values[place] || node.values.contains(&"others".to_owned());
    node.begins == read.begins
        && is_same(2)
        && near(node.shares[2], read.shares[2])
        && (is_same(0) && near(node.shares[0], read.shares[0]) || are_alike || node.values[0] == "others")
}

/// The demo's chunks are as many as its packets allow; as one, it is read in the finest buckets.
#[test]
fn a_pyramid_says_what_the_chunks_say_at_every_level() {
    agree_at_every_level(&built(&demo(), Some(1), None), &built(&demo(), None, None));
}

/// Many chunks give the same answer as one.
fn agree_at_every_level(many: &Timeline, one: &Timeline) {
    assert!(many.chunks.len() > 8 && one.chunks.len() == 1, "{} {}", many.chunks.len(), one.chunks.len());
    assert!(many.pyramid.heights() > 2);
    let level_max = many.status().level_max;
    for level in 8..=level_max {
        let buckets = (many.span.0.abs_diff(many.span.1) >> level) + 2;
        let count = buckets.min(700) as u32;
        for first in [0, buckets / 3, buckets - u64::from(count)] {
            let [many, one] = [many, one].map(|timeline| said(timeline, level, (first, count)));
            assert!(many.keys().eq(one.keys()), "level {level}, from {first}");
            for (place, node) in &many {
                assert!(
                    agrees(node, &one[place]),
                    "level {level}, from {first}: {place:?}: {node:?}, {:?}",
                    one[place]
                );
            }
        }
    }
}

#[test]
fn every_event_is_counted_at_every_level() {
    let timeline = built(&demo(), Some(1), None);
    let session = Session::open(&[demo()], &OpenOptions::default()).unwrap();
    let counts = session.count(&crate::CountOptions::default(), &Progress::default()).unwrap();
    let all: u64 = counts.classes.iter().map(|class| class.events).sum();
    assert_eq!(timeline.status().events, Some(all));
    let catalogue = timeline.catalogue(0, 0);
    let of = |begin: &str| -> Vec<u32> {
        catalogue.tracks.iter().filter(|track| track.id.starts_with(begin)).map(|track| track.number).collect()
    };
    let (tracks, together) = (of("events/"), of("all/events"));
    assert!(tracks.len() > 1 && together.len() == 1);
    for level in (timeline.status().level_max - 12)..=timeline.status().level_max {
        let count = |track: &TrackTile| match &track.items {
            Items::Instants(buckets) => buckets.iter().map(|bucket| u64::from(bucket.count)).sum::<u64>(),
            Items::ExactInstants(all) => all.len() as u64,
            other => panic!("{other:?}"),
        };
        for tracks in [&tracks, &together] {
            let question = TileQuestion { level, first: 0, count: 4096, tracks: tracks.clone() };
            let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
            assert_eq!(tiles.tracks.iter().map(count).sum::<u64>(), all, "level {level}");
        }
    }
}

/// The demo's jobs begin and end, one after the other on each of its threads.
#[test]
fn durations_that_programs_tell_of_are_drawn_at_every_level() {
    let timeline = built(&demo(), Some(1), None);
    let session = Session::open(&[demo()], &OpenOptions::default()).unwrap();
    let counts = session.count(&crate::CountOptions::default(), &Progress::default()).unwrap();
    let begins = counts.classes.iter().filter(|class| class.name.as_deref() == Some("jobs:begin"));
    let begun: u64 = begins.map(|class| class.events).sum();
    let catalogue = timeline.catalogue(0, 0);
    let is_slices = |track: &&Track| track.id.contains("/slices/");
    let tracks: Vec<&Track> = catalogue.tracks.iter().filter(is_slices).collect();
    assert!(tracks.iter().all(|track| (track.kind, track.depth) == (TrackKind::States, Some(0))), "{tracks:?}");
    let tracks: Vec<u32> = tracks.iter().map(|track| track.number).collect();
    for level in (timeline.status().level_max - 12)..=timeline.status().level_max {
        let question = TileQuestion { level, first: 0, count: 4096, tracks: tracks.clone() };
        let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
        let values = timeline.catalogue(0, 0).values;
        let begins = |track: &TrackTile| match &track.items {
            Items::States { buckets, .. } => {
                let is_job =
                    |value: u32| values[value as usize].kind == "slice" && values[value as usize].label == "jobs";
                assert!(buckets.iter().filter_map(|bucket| bucket.value).all(is_job), "{buckets:?}");
                buckets.iter().map(|bucket| u64::from(bucket.begins)).sum::<u64>()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(tiles.tracks.iter().map(begins).sum::<u64>(), begun, "level {level}");
    }
}

#[test]
fn a_pyramid_that_was_kept_answers_alike_and_is_made_anew_when_it_is_broken() {
    let cache = tempfile::tempdir().unwrap();
    let first = built(&demo(), Some(1), Some(cache.path()));
    let level = first.status().level_max - 6;
    let expected = said(&first, level, (0, 100));
    let kept = || {
        let mut paths = std::fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|extension| extension == "tiles"))
    };
    // The thread that has built the last chunk keeps them, after it has woken the waiting threads.
    let file = (0..2000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(if kept().is_some() { 0 } else { 5 }));
        kept()
    });
    let file = file.expect("it was kept");
    let options = OpenOptions { cache: Some(cache.path().to_owned()), ..OpenOptions::default() };
    let open = || {
        let mut session = Session::open(&[demo()], &options).unwrap();
        session.slice_bytes = Some(1);
        Arc::new(session).timeline(&TimelineOptions::default()).unwrap()
    };
    let second = open();
    assert_eq!(second.status().state, TimelineState::Complete);
    assert_eq!(said(&second, level, (0, 100)), expected);
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(open().status().state, TimelineState::Idle);
}

/// One that ends before everything is built leaves the built part; the next one goes on, and
/// answers like one that did all.
#[test]
fn what_is_half_built_is_kept_and_gone_on_with() {
    let cache = tempfile::tempdir().unwrap();
    let options = OpenOptions { cache: Some(cache.path().to_owned()), threads: 2, ..OpenOptions::default() };
    let open = || {
        let mut session = Session::open(&[demo()], &options).unwrap();
        session.slice_bytes = Some(1);
        Arc::new(session).timeline(&TimelineOptions::default()).unwrap()
    };
    let mut done = 0;
    let mut last = open();
    let chunks = last.chunks.len();
    for _ in 0..chunks {
        // As many chunks as one thread builds until it is told to stop: one at least, unless all are there.
        while last.desk.known() < (done + 2).min(chunks) {
            last.start();
            std::thread::yield_now();
        }
        last.stop();
        last = open();
        let known = last.desk.known();
        assert!(known == chunks || known >= done + 2, "{known} of {chunks}, {done} before");
        done = known;
        if done == chunks {
            break;
        }
        assert_eq!(last.status().state, TimelineState::Idle);
    }
    assert_eq!(done, chunks);
    assert_eq!(last.status().state, TimelineState::Complete);
    let whole = built(&demo(), Some(1), None);
    let level_max = whole.status().level_max;
    for level in [level_max - 8, level_max - 3] {
        assert_eq!(said(&last, level, (0, 300)), said(&whole, level, (0, 300)));
    }
    assert_eq!(last.status().events, whole.status().events);
}

#[test]
fn questions_out_of_bounds_are_refused_in_words() {
    let timeline = built(&demo(), None, None);
    let ask = |level, first, count, tracks: Vec<u32>| {
        let asked = timeline.tiles(&TileQuestion { level, first, count, tracks }, &Progress::default());
        asked.map_err(|failure| failure.to_string()).map(|tiles| tiles.tracks.len())
    };
    assert_eq!(ask(63, 0, 1, vec![]), Err("level is 63, but 62 is the widest".into()));
    assert_eq!(ask(0, 0, 0, vec![]), Err("count is 0, but 1 to 4096 buckets can be asked for".into()));
    assert_eq!(
        ask(0, u64::MAX, 1, vec![]),
        Err(format!("first is {}, but the last bucket must end before 2^63 ns", u64::MAX))
    );
    assert_eq!(
        ask(62, 1 << 40, 1, vec![]),
        Err(format!("first is {}, but the last bucket must end before 2^63 ns", 1u64 << 40))
    );
    assert_eq!(ask(20, 0, 1, vec![9999]), Err("tracks is 9999, but no track has that number".into()));
    assert_eq!(ask(20, 0, 1, vec![0; 1025]), Err("tracks is 1025, but 1024 can be asked for at once".into()));
    assert_eq!(
        ask(20, 0, 1025, vec![0; 1024]),
        Err("count times tracks is 1049600, but 1048576 buckets of all tracks together can be asked for".into())
    );
    assert_eq!(ask(20, 1 << 40, 1, vec![0]), Ok(1));
}

/// The times of a track's events, by the track's number, with their names.
fn instants(timeline: &Timeline, question: &TileQuestion) -> BTreeMap<u32, Vec<(i64, String)>> {
    let tiles = timeline.tiles(question, &Progress::default()).unwrap();
    assert!(tiles.spans.iter().any(|span| span.quality == Quality::Exact), "{:?}", tiles.spans);
    let values = timeline.catalogue(0, 0).values;
    let label = |number: u32| values[number as usize].label.clone();
    let of = |track: &TrackTile| match &track.items {
        Items::ExactInstants(all) => Some((track.number, all.iter().map(|at| (at.time, label(at.value))).collect())),
        Items::Instants(all) if all.is_empty() => Some((track.number, Vec::new())),
        _ => None,
    };
    tiles.tracks.iter().filter_map(of).collect()
}

/// How many events there are of each track, and of which most are, by buckets so wide that there is one.
fn counted(timeline: &Timeline, tracks: &[u32]) -> BTreeMap<u32, (u32, u32)> {
    let level = timeline.status().level_max;
    let question = TileQuestion { level, first: 0, count: 1, tracks: tracks.to_vec() };
    let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
    let of = |track: &TrackTile| match &track.items {
        Items::Instants(all) => all.first().map(|at| (track.number, (at.count, at.count_of_value))),
        Items::ExactInstants(all) => Some((track.number, (all.len() as u32, all.len() as u32))),
        _ => None,
    };
    tiles.tracks.iter().filter_map(of).collect()
}

#[test]
fn what_is_selected_is_what_there_is_of_it_among_all() {
    let whole = built(&demo(), None, None);
    let events: Vec<Track> =
        whole.catalogue(0, 0).tracks.into_iter().filter(|track| track.kind == TrackKind::Instants).collect();
    let tracks: Vec<u32> = events.iter().map(|track| track.number).collect();
    // Fine enough for the one chunk to be read, and few enough buckets for a question.
    let question = TileQuestion { level: 15, first: 0, count: BUCKETS_MAX, tracks: tracks.clone() };
    assert!((whole.span.0.abs_diff(whole.span.1) >> question.level) < BUCKETS_MAX.into());
    let mut expected = instants(&whole, &question);
    expected.values_mut().for_each(|all| all.retain(|(_, name)| name == "jobs:begin"));
    let many: usize = expected.values().map(Vec::len).sum();
    assert!(many > 100, "{many}");
    let selection = Selection { events: vec!["jobs:begin".to_owned()], ..Selection::default() };
    for slice_bytes in [None, Some(1)] {
        let all = built(&demo(), slice_bytes, None);
        let selected = all.selected(selection.clone()).unwrap();
        selected.start();
        selected.wait(&Progress::default()).unwrap();
        // Tracks have numbers in the order in which they were met.
        let known = all.catalogue(0, 0).tracks;
        let number = |id: &str| known.iter().find(|track| track.id == id).expect("it is met").number;
        let tracks: Vec<u32> = events.iter().map(|track| number(&track.id)).collect();
        let of_number = |track: &Track| Some((number(&track.id), expected.get(&track.number)?.clone()));
        let expected: BTreeMap<u32, _> = events.iter().filter_map(of_number).collect();
        if slice_bytes.is_none() {
            let question = TileQuestion { tracks: tracks.clone(), ..question.clone() };
            assert_eq!(instants(&selected, &question), expected);
        }
        for (track, (count, of_value)) in counted(&selected, &tracks) {
            assert_eq!((count, of_value), (expected[&track].len() as u32, count), "{slice_bytes:?}, track {track}");
        }
        let threads = all.catalogue(0, 0).tracks.into_iter().find(|track| track.kind == TrackKind::States).unwrap();
        assert_eq!(all.first_told_by_all(&[tracks[0], threads.number]), Some(threads.number));
        assert_eq!(all.first_told_by_all(&tracks), None);
    }
}

#[test]
fn what_no_packet_has_is_nowhere_and_that_is_exact() {
    let all = built(&demo(), None, None);
    let selection =
        Selection { filter: Some(crate::Filter::parse("id > 1000000000").unwrap()), ..Selection::default() };
    let selected = all.selected(selection).unwrap();
    selected.start();
    selected.wait(&Progress::default()).unwrap();
    let TimelineStatus { level_max: level, .. } = all.status();
    let question = TileQuestion { level, first: 0, count: 1, tracks: vec![0] };
    let tiles = selected.tiles(&question, &Progress::default()).unwrap();
    assert_eq!(tiles.spans, [TileSpan { begin: 0, end: 1, quality: Quality::Exact }]);
    let is_empty = |items: &Items| {
        matches!(items, Items::Instants(all) if all.is_empty())
            || matches!(items, Items::ExactInstants(all) if all.is_empty())
    };
    assert!(tiles.tracks.iter().all(|track| is_empty(&track.items)), "{:?}", tiles.tracks);
}
