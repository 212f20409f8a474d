use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
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

/// What a tile says, by the names of tracks and values.
fn said(timeline: &Timeline, level: Level, (first, count): (u64, u32)) -> Vec<String> {
    let catalogue = timeline.catalogue(0, 0);
    let tracks = catalogue.tracks.iter().map(|track| track.number).collect();
    let tiles = timeline.tiles(&TileQuestion { level, first, count, tracks }, &Progress::default()).unwrap();
    let catalogue = timeline.catalogue(0, 0);
    let name = |number: u32| catalogue.tracks.iter().find(|track| track.number == number).unwrap().id.clone();
    let value = |number: Option<u32>| number.map_or("-", |number| &catalogue.values[number as usize].label);
    let mut said: Vec<String> = tiles.spans.iter().map(|span| format!("{span:?}")).collect();
    for track in &tiles.tracks {
        let name = name(track.number);
        match &track.items {
            Items::States { carry, buckets } => {
                said.push(format!("{name} {}", value(*carry)));
                said.extend(buckets.iter().map(|at| {
                    let StateBucket { bucket, begins, share, share_second, .. } = at;
                    let values = [at.value, at.second, at.last].map(value);
                    format!("{name} {bucket} {values:?} {begins} {share} {share_second}")
                }));
            }
            Items::Instants(buckets) => said.extend(buckets.iter().map(|at| {
                let InstantBucket { bucket, count, count_of_value, .. } = at;
                format!("{name} {bucket} {} {count_of_value} of {count}", value(Some(at.value)))
            })),
            Items::Heat(buckets) => {
                said.extend(buckets.iter().map(|at| format!("{name} {} {} {}", at.bucket, at.bin, at.count)));
            }
            Items::Arrows(buckets) => said.extend(buckets.iter().map(|at| {
                let (from, to) = (catalogue_name(&catalogue, at.from), catalogue_name(&catalogue, at.to));
                format!("{name} {} {from} to {to} {}", at.bucket, at.count)
            })),
        }
    }
    said.sort();
    said
}

fn catalogue_name(catalogue: &Catalogue, number: u32) -> String {
    catalogue.tracks.iter().find(|track| track.number == number).map_or("?", |track| &track.id).to_owned()
}

/// The demo's chunks are as many as its packets allow; as one, it is read in the finest buckets.
#[test]
fn a_pyramid_says_what_the_chunks_say_at_every_level() {
    let (many, one) = (built(&demo(), Some(1), None), built(&demo(), None, None));
    assert!(many.chunks.len() > 8 && one.chunks.len() == 1, "{} {}", many.chunks.len(), one.chunks.len());
    assert!(many.pyramid.heights() > 2);
    let level_max = many.status().level_max;
    for level in 8..=level_max {
        let buckets = (many.span.0.abs_diff(many.span.1) >> level) + 2;
        let count = buckets.min(700) as u32;
        for first in [0, buckets / 3, buckets - u64::from(count)] {
            let said = [&many, &one].map(|timeline| said(timeline, level, (first, count)));
            assert_eq!(said[0], said[1], "level {level}, from {first}");
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
    let is_lane = |track: &&Track| track.id.starts_with("events/");
    let catalogue = timeline.catalogue(0, 0);
    let tracks: Vec<u32> = catalogue.tracks.iter().filter(is_lane).map(|track| track.number).collect();
    for level in (timeline.status().level_max - 12)..=timeline.status().level_max {
        let question = TileQuestion { level, first: 0, count: 4096, tracks: tracks.clone() };
        let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
        let count = |track: &TrackTile| match &track.items {
            Items::Instants(buckets) => buckets.iter().map(|bucket| u64::from(bucket.count)).sum::<u64>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(tiles.tracks.iter().map(count).sum::<u64>(), all, "level {level}");
    }
}

#[test]
fn a_pyramid_that_was_kept_answers_alike_and_is_made_anew_when_it_is_broken() {
    let cache = tempfile::tempdir().unwrap();
    let first = built(&demo(), Some(1), Some(cache.path()));
    let level = first.status().level_max - 6;
    let expected = said(&first, level, (0, 100));
    let file = std::fs::read_dir(cache.path()).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.extension().is_some_and(|extension| extension == "tiles").then_some(path)
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
    assert_eq!(ask(20, 1 << 40, 1, vec![0]), Ok(1));
}
