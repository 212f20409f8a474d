//! Declared states of the sample against a replay of its events as they are printed, in one chunk and in many.

use serde_json::Value;

use super::*;
use crate::print::{PrintFormat, PrintOptions};
use crate::{ItemQuestion, TrackItem};

/// Begin, end if any, and value.
type Told = (i64, Option<i64>, String);

fn mapping() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/oracles/jobs-states.toml")
}

/// The same as an own analysis, and the length of its queue.
const OWN: &str = r#"
    name = "jobs"
    [[states]]
    name = "worker"
    key = ["$ctx.vpid", "$ctx.vtid"]
    set = [
        { event = "jobs:begin", to = "busy" },
        { event = "jobs:chunk", to = "writing" },
        { event = "jobs:end", when = "result >= 0", to = "idle" },
        { event = "jobs:end", when = "result < 0" },
    ]
    [[counters]]
    name = "queue"
    unit = "jobs"
    change = [{ event = "jobs:submit", to = { field = "queue_depth" } }, { event = "jobs:end", add = -1 }]
"#;

fn built_with(roles: &Path, slice_bytes: Option<u64>) -> Arc<Timeline> {
    let mut session = Session::open(&[demo()], &OpenOptions { threads: 2, ..OpenOptions::default() }).unwrap();
    session.slice_bytes = slice_bytes;
    let own = vec![OwnTracks::parse(OWN).unwrap()];
    let options = TimelineOptions { roles: Some(roles.to_owned()), own, ..TimelineOptions::default() };
    let timeline = Arc::new(session).timeline(&options).unwrap();
    timeline.start();
    timeline.wait(&Progress::default()).unwrap();
    timeline
}

/// All events, as they are printed.
pub(super) fn events() -> Vec<Value> {
    let session = Session::open(&[demo()], &OpenOptions::default()).unwrap();
    let mut lines = Vec::new();
    let options = PrintOptions { format: PrintFormat::Json, ..PrintOptions::default() };
    session.print(&options, &mut lines, &Progress::default()).unwrap();
    String::from_utf8(lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Expected states of each component, by the id of its track, from the mapping.
fn replayed() -> BTreeMap<String, Vec<Told>> {
    let mut all: BTreeMap<String, Vec<Told>> = BTreeMap::new();
    for event in events() {
        let (time, payload, context) = (event["time"].as_i64().unwrap(), &event["payload"], &event["common_context"]);
        let worker = || format!("state/0/Workers/{}/{}", context["vpid"], context["vtid"]);
        let (id, state) = match event["event"].as_str().unwrap() {
            "jobs:begin" => (worker(), Some("busy".to_owned())),
            "jobs:chunk" => (worker(), Some("writing".to_owned())),
            "jobs:end" => (worker(), (payload["result"].as_i64().unwrap() >= 0).then(|| "idle".to_owned())),
            "jobs:submit" => ("state/0/last kind".to_owned(), Some(payload["kind"]["value"].to_string())),
            other => panic!("{other}"),
        };
        let told = all.entry(id).or_default();
        if let Some(last) = told.last_mut() {
            last.1.get_or_insert(time);
        }
        told.extend(state.map(|state| (time, None, state)));
    }
    all
}

/// All runs of a track, page by page.
fn told(timeline: &Timeline, track: &Track) -> Vec<Told> {
    let status = timeline.status();
    let (mut told, mut next) = (Vec::new(), Some(status.begin_ns));
    while let Some(begin_ns) = next {
        let question = ItemQuestion { track: track.number, begin_ns, end_ns: status.end_ns + 1, limit: 37 };
        let found = timeline.items(&question, &Progress::default()).unwrap();
        for item in found.items {
            let TrackItem::Run { begin_ns, end_ns, begin_known, end_known, in_doubt, value, .. } = item else {
                panic!("{item:?}")
            };
            assert!(begin_known && !in_doubt && value.kind == "state", "{value:?}");
            let run = (begin_ns, end_known.then_some(end_ns), value.label);
            // A run that reaches into the next page is there, too.
            if told.last() != Some(&run) {
                told.push(run);
            }
        }
        next = found.next_ns.filter(|next| *next > begin_ns);
    }
    told
}

#[test]
fn declared_states_are_what_events_say() {
    let expected = replayed();
    assert!(expected.len() > 2 && expected.values().flatten().count() > 100);
    assert!(expected.values().flatten().any(|(_, end, _)| end.is_none()));
    for slice_bytes in [None, Some(1)] {
        let timeline = built_with(&mapping(), slice_bytes);
        let catalogue = timeline.catalogue(0, 0);
        let tracks: Vec<&Track> = catalogue.tracks.iter().filter(|track| track.id.starts_with("state/")).collect();
        let mut ids: Vec<&String> = tracks.iter().map(|track| &track.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, expected.keys().collect::<Vec<_>>());
        for track in &tracks {
            assert_eq!(track.kind, TrackKind::States);
            assert_eq!(track.process.is_some(), track.group == "Workers");
            assert_eq!(&told(&timeline, track), &expected[&track.id], "{}, {slice_bytes:?}", track.id);
        }
        let numbers: Vec<u32> = tracks.iter().map(|track| track.number).collect();
        for level in (timeline.status().level_max - 12)..=timeline.status().level_max {
            let question = TileQuestion { level, first: 0, count: 4096, tracks: numbers.clone() };
            let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
            for (track, tile) in tracks.iter().zip(&tiles.tracks) {
                let begins: u64 = match &tile.items {
                    Items::States { buckets, .. } => buckets.iter().map(|bucket| u64::from(bucket.begins)).sum(),
                    Items::Runs(runs) => runs.len() as u64,
                    other => panic!("{other:?}"),
                };
                assert_eq!(begins, expected[&track.id].len() as u64, "level {level}, {}", track.id);
            }
        }
    }
}

/// An own analysis that says the same has the same runs; its counter is the sum of the events.
#[test]
fn states_and_counters_of_own_analyses_are_tracks() {
    let expected = replayed();
    let mut depth = 0;
    let depths = events().into_iter().filter_map(|event| {
        match event["event"].as_str()? {
            "jobs:submit" => depth = event["payload"]["queue_depth"].as_i64()?,
            "jobs:end" => depth -= 1,
            _ => return None,
        }
        Some((event["time"].as_i64()?, depth as f64))
    });
    // At one time, the last one counts.
    let depths: BTreeMap<i64, f64> = depths.collect();
    assert!(depths.len() > 100);
    for slice_bytes in [None, Some(1)] {
        let timeline = built_with(&mapping(), slice_bytes);
        let tracks = timeline.catalogue(0, 0).tracks;
        let workers: Vec<&Track> = tracks.iter().filter(|track| track.id.starts_with("own/jobs/worker ")).collect();
        assert_eq!(workers.len(), expected.keys().filter(|id| id.starts_with("state/0/Workers/")).count());
        for track in workers {
            let key = track.id.strip_prefix("own/jobs/worker ").unwrap().replace(", ", "/");
            assert_eq!((track.name.as_str(), &*track.group), (&track.id["own/jobs/".len()..], "jobs"));
            assert_eq!(told(&timeline, track), expected[&format!("state/0/Workers/{key}")], "{}", track.id);
        }
        let queue = tracks.iter().find(|track| track.id == "own/jobs/queue").unwrap();
        assert_eq!((queue.kind, queue.unit.as_deref()), (TrackKind::Counter, Some("jobs")));
        for level in [14, 17, 20] {
            let found = numbers(&timeline, queue.number, level);
            let mut expected = BTreeMap::new();
            for (time, depth) in &depths {
                expected.insert((time - timeline.span.0) as u64 >> level, *depth);
            }
            assert_eq!(found, expected, "level {level}, {slice_bytes:?}");
        }
    }
}

/// Value of a counter at the end of each bucket in which it changes.
fn numbers(timeline: &Timeline, track: u32, level: Level) -> BTreeMap<u64, f64> {
    let (mut found, behind) = (BTreeMap::new(), timeline.span.0.abs_diff(timeline.span.1) >> level);
    for first in (0..=behind).step_by(BUCKETS_MAX as usize) {
        let question = TileQuestion { level, first, count: BUCKETS_MAX, tracks: vec![track] };
        let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
        let Items::Counter { buckets, .. } = &tiles.tracks[0].items else { panic!("{:?}", tiles.tracks) };
        found.extend(buckets.iter().map(|bucket| (first + u64::from(bucket.bucket), bucket.last)));
    }
    found
}

/// In one chunk and in many, at all levels.
#[test]
fn a_pyramid_of_declared_states_says_what_the_chunks_say() {
    let (many, one) = (built_with(&mapping(), Some(1)), built_with(&mapping(), None));
    assert!(many.chunks.len() > 8 && one.chunks.len() == 1);
    for level in 8..=many.status().level_max {
        let buckets = (many.span.0.abs_diff(many.span.1) >> level) + 2;
        let count = buckets.min(700) as u32;
        for first in [0, buckets / 3, buckets - u64::from(count)] {
            let [many, one] = [&many, &one].map(|timeline| said(timeline, level, (first, count)));
            assert!(many.keys().eq(one.keys()), "level {level}, from {first}");
            for (place, node) in
                many.iter().filter(|(place, _)| place.0.starts_with("state/") || place.0.starts_with("own/"))
            {
                assert!(
                    agrees(node, &one[place]),
                    "level {level}, from {first}: {place:?}: {node:?}, {:?}",
                    one[place]
                );
            }
        }
    }
}
