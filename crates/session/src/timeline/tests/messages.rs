//! Messages of the sample against a replay of its events as they are printed, in one chunk and in
//! many: jobs go from the submitting thread to the worker, and their results back to the thread
//! that submits the next one.

use serde_json::Value;

use super::declared::events;
use super::*;
use crate::{ItemQuestion, TrackItem};

const ROLES: &str = r#"
    name = "jobs"
    [[send]]
    event = "jobs:submit"
    key = "id"
    group = { value = "job" }
    [[receive]]
    event = "jobs:begin"
    key = "id"
    group = { value = "job" }
    [[send]]
    event = "jobs:end"
    key = { value = "done" }
    group = { value = "result" }
    [[receive]]
    event = "jobs:submit"
    key = { value = "done" }
    name = "name"
    group = { value = "result" }
    count = "queue_depth"
"#;

/// When a message leaves and comes, from which thread to which, and its name.
type Sent = (i64, i64, i64, i64, String);

/// All messages of some events, in the order of their begins. Those that come at once and go the
/// same way are reported with the average of their durations.
fn replayed(is_there: impl Fn(&Value) -> bool) -> Vec<Sent> {
    let mut ways: BTreeMap<(i64, i64, i64, String), Vec<i64>> = BTreeMap::new();
    for (begin, end, from, to, name) in sent(is_there) {
        ways.entry((end, from, to, name)).or_default().push(end - begin);
    }
    let mut found = Vec::new();
    for ((end, from, to, name), took) in ways {
        let average = took.iter().sum::<i64>() / took.len() as i64;
        found.extend(took.iter().map(|_| (end - average, end, from, to, name.clone())));
    }
    found.sort();
    found
}

/// All messages as these events say them.
fn sent(is_there: impl Fn(&Value) -> bool) -> Vec<Sent> {
    let (mut found, mut jobs, mut results): (Vec<Sent>, Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new(), Vec::new());
    let come = |sent: &Value, event: &Value, name: &str| -> Sent {
        let of = |event: &Value| (event["time"].as_i64().unwrap(), event["common_context"]["vtid"].as_i64().unwrap());
        let ((begin, from), (end, to)) = (of(sent), of(event));
        (begin, end, from, to, name.to_owned())
    };
    for event in events().into_iter().filter(is_there) {
        match event["event"].as_str().unwrap() {
            "jobs:submit" => {
                let name = event["payload"]["name"].as_str().unwrap();
                let depth = event["payload"]["queue_depth"].as_u64().unwrap().max(1) as usize;
                let taken = results.len().min(depth);
                found.extend(results.drain(..taken).map(|sent| come(&sent, &event, name)));
                jobs.push(event);
            }
            "jobs:begin" => {
                let sent = jobs.iter().position(|job| job["payload"]["id"] == event["payload"]["id"]);
                found.extend(sent.map(|sent| come(&jobs.remove(sent), &event, "job")));
            }
            "jobs:end" => {
                results.push(event);
                // Maximum number of messages in transit with one key.
                results.drain(..results.len().saturating_sub(32));
            }
            _ => {}
        }
    }
    found
}

fn built_with(roles: &Path, slice_bytes: Option<u64>, cache: Option<&Path>) -> Arc<Timeline> {
    let options = OpenOptions { threads: 2, cache: cache.map(Path::to_owned), ..OpenOptions::default() };
    let mut session = Session::open(&[demo()], &options).unwrap();
    session.slice_bytes = slice_bytes;
    let options = TimelineOptions { roles: Some(roles.to_owned()), ..TimelineOptions::default() };
    let timeline = Arc::new(session).timeline(&options).unwrap();
    timeline.start();
    timeline.wait(&Progress::default()).unwrap();
    timeline
}

fn tracks(timeline: &Timeline) -> Vec<Track> {
    timeline.catalogue(0, 0).tracks
}

/// The messages that leave in a window, as items tell them.
fn told(timeline: &Timeline, track: u32, (begin_ns, end_ns): (i64, i64)) -> Vec<Sent> {
    let question = ItemQuestion { track, begin_ns, end_ns, limit: 1000 };
    let found = timeline.items(&question, &Progress::default()).unwrap();
    let all = tracks(timeline);
    let message = |item: TrackItem| {
        let TrackItem::Arrow { begin_ns, end_ns, from, to, value, waker: None, .. } = item else { panic!("{item:?}") };
        assert_eq!(value.kind, "message");
        let [from, to] = [from, to].map(|number| {
            let track = &all[number as usize];
            assert!(track.id.ends_with("/events"), "{}", track.id);
            i64::from(track.tid.unwrap())
        });
        (begin_ns, end_ns, from, to, value.label)
    };
    let mut told: Vec<Sent> = found.items.into_iter().map(message).collect();
    told.sort();
    told
}

#[test]
fn messages_are_those_of_the_events() {
    let folder = tempfile::tempdir().unwrap();
    let roles = folder.path().join("jobs.toml");
    std::fs::write(&roles, ROLES).unwrap();
    let expected = replayed(|_| true);
    assert!(expected.len() > 700, "{}", expected.len());
    let cache = folder.path().join("cache");
    let timelines = [(None, None), (Some(1), None), (Some(1), Some(&*cache)), (Some(1), Some(&*cache))]
        .map(|(slice, cache)| built_with(&roles, slice, cache));
    for timeline in &timelines {
        let track = tracks(timeline).into_iter().find(|track| track.id == "messages/0").unwrap();
        assert_eq!((track.kind, &*track.group), (TrackKind::Arrows, "Arrows"));
        let status = timeline.status();
        for (at, sent) in expected.iter().enumerate().step_by(40) {
            let window = (sent.0, expected.get(at + 12).map_or(status.end_ns, |behind| behind.0));
            let inside = expected.iter().filter(|sent| (window.0..window.1).contains(&sent.0));
            // A message that comes several chunks behind the window is not looked for.
            let found = told(timeline, track.number, window);
            let missing: Vec<_> = inside.filter(|sent| !found.contains(sent)).collect();
            assert!(missing.iter().all(|sent| sent.1 >= window.1), "{window:?}: {missing:?}");
            assert!(found.iter().all(|sent| expected.contains(sent)), "{found:?}");
            assert!(!found.is_empty());
        }
        counted(timeline, track.number, &expected);
    }
}

/// Of some events, messages are there of which both are: sent and received.
#[test]
fn messages_of_some_events_are_those_of_these_events() {
    let folder = tempfile::tempdir().unwrap();
    let roles = folder.path().join("jobs.toml");
    std::fs::write(&roles, ROLES).unwrap();
    let is_third = |event: &Value| event["payload"]["id"].as_i64().is_some_and(|id| id % 3 == 0);
    let third = Selection { filter: Some(crate::Filter::parse("id % 3 == 0").unwrap()), ..Selection::default() };
    let is_job = |event: &Value| ["jobs:submit", "jobs:begin"].contains(&event["event"].as_str().unwrap());
    let of_jobs = ["jobs:submit", "jobs:begin"].map(str::to_owned).to_vec();
    let jobs = Selection { events: of_jobs, ..Selection::default() };
    let ends = Selection { events: vec!["jobs:end".to_owned()], ..Selection::default() };
    let expected = [(third, replayed(is_third)), (jobs, replayed(is_job)), (ends, Vec::new())];
    for slice_bytes in [None, Some(1)] {
        let all = built_with(&roles, slice_bytes, None);
        let track = tracks(&all).into_iter().find(|track| track.id == "messages/0").unwrap();
        for (selection, expected) in &expected {
            let selected = all.selected(selection.clone()).unwrap();
            selected.start();
            selected.wait(&Progress::default()).unwrap();
            assert!(expected.len() > 100 || selection.events.len() == 1, "{}", expected.len());
            counted(&selected, track.number, expected);
        }
    }
}

/// However wide buckets are, as many messages come as there are.
fn counted(timeline: &Timeline, track: u32, expected: &[Sent]) {
    let names = tracks(timeline);
    for level in [14, 18, 22, timeline.status().level_max] {
        let buckets = (timeline.span.0.abs_diff(timeline.span.1) >> level) + 1;
        let question =
            TileQuestion { level, first: 0, count: u32::try_from(buckets).unwrap().min(4096), tracks: vec![track] };
        let end = timeline.span.0 + (i64::from(question.count) << level);
        let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
        let mut all: BTreeMap<(i64, i64), usize> = BTreeMap::new();
        let tid = |number: Option<u32>| i64::from(names[number.unwrap() as usize].tid.unwrap());
        match &tiles.tracks[0].items {
            Items::Arrows(buckets) => {
                buckets.iter().for_each(|at| *all.entry((tid(at.from), tid(at.to))).or_default() += at.count as usize);
            }
            Items::ExactArrows(arrows) => {
                arrows.iter().for_each(|at| *all.entry((tid(at.from), tid(at.to))).or_default() += 1);
            }
            other => panic!("{other:?}"),
        }
        let mut sums: BTreeMap<(i64, i64), usize> = BTreeMap::new();
        for (_, _, from, to, _) in expected.iter().filter(|sent| sent.1 < end) {
            *sums.entry((*from, *to)).or_default() += 1;
        }
        assert_eq!(all, sums, "level {level}");
    }
}
