//! The timeline: tiles are those of the session, and sent once.

use std::sync::Arc;

use kymo_session::{Items, Progress, Quality, TileQuestion, Timeline, TimelineOptions};
use serde_json::Value;

use crate::client::{Running, serve, session};

/// The timeline of a server, once it is complete.
pub fn complete(server: &Running) -> Value {
    for _ in 0..10_000 {
        let status = server.get("/api/v1/timeline").json();
        if status["state"] == "complete" {
            return status;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("the timeline is not complete")
}

/// The same in this process.
fn own() -> Arc<Timeline> {
    let timeline = session().timeline(&TimelineOptions::default()).unwrap();
    timeline.start();
    timeline.wait(&Progress::default()).unwrap();
    timeline
}

/// Little-endian numbers, one after the other.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn word(&mut self) -> u32 {
        let (word, rest) = self.0.split_at(4);
        self.0 = rest;
        u32::from_le_bytes(word.try_into().unwrap())
    }

    fn words<const N: usize>(&mut self) -> [u32; N] {
        [0; N].map(|_| self.word())
    }
}

/// The first word of a time.
fn low(time: i64) -> u32 {
    (time as f64).to_bits() as u32
}

/// The numbers of tracks by what they are called everywhere.
fn ids(catalogue: &Value) -> Vec<(String, u64)> {
    let tracks = catalogue["tracks"].as_array().unwrap().iter();
    tracks.map(|track| (track["id"].as_str().unwrap().to_owned(), track["number"].as_u64().unwrap())).collect()
}

#[test]
fn it_is_told_how_far_it_is_and_what_there_is() {
    let server = serve();
    let (status, timeline) = (complete(&server), own());
    let expected = timeline.status();
    assert_eq!(status["begin_ns"].as_i64(), Some(expected.begin_ns));
    assert_eq!((&status["events"], &status["failure"]), (&Value::from(2400), &Value::Null));
    // The name of the run is that of all answers, and another one of another run.
    assert_eq!(server.get("/api/v1/timeline").json()["instance"], status["instance"]);
    assert_ne!(serve().get("/api/v1/timeline").json()["instance"], status["instance"]);
    let catalogue = server.get("/api/v1/catalogue").json();
    let own = serde_json::to_value(timeline.catalogue(0, 0)).unwrap();
    assert_eq!(catalogue["tracks"].as_array().map(Vec::len), own["tracks"].as_array().map(Vec::len));
    // Lists go on where somebody has stopped.
    let rest = server.get("/api/v1/catalogue?tracks_from=1&values_from=1").json();
    assert_eq!(ids(&rest), ids(&catalogue)[1..]);
}

/// What is in the bytes, read as docs/http.md says, is what the session says: in buckets, and one by one.
#[test]
fn tiles_are_those_of_the_session() {
    let server = serve();
    let level = complete(&server)["level_max"].as_u64().unwrap() as u8;
    for (level, forms) in [(level - 6, [0, 2, 4, 5].as_slice()), (level - 11, &[1, 6, 7])] {
        let found = compared(&server, level);
        assert!(found.iter().any(|form| forms.contains(form)), "level {level}: {found:?}");
    }
}

/// Compares the tiles of a level; the forms of those in which something happens.
fn compared(server: &Running, level: u8) -> Vec<u32> {
    let timeline = own();
    let (theirs, ours) =
        (ids(&server.get("/api/v1/catalogue").json()), ids(&serde_json::to_value(timeline.catalogue(0, 0)).unwrap()));
    let id =
        |all: &[(String, u64)], number: u32| all.iter().find(|track| track.1 == u64::from(number)).unwrap().0.clone();
    let numbers: Vec<String> = theirs.iter().map(|track| track.1.to_string()).collect();
    let answer = server.get(&format!("/api/v1/tiles?level={level}&first=1&count=32&tracks={}", numbers.join(",")));
    assert_eq!((answer.status, answer.headers["content-type"].as_str()), (200, "application/vnd.kymograph.tiles"));
    let question =
        TileQuestion { level, first: 1, count: 32, tracks: ours.iter().map(|track| track.1 as u32).collect() };
    let expected = timeline.tiles(&question, &Progress::default()).unwrap();

    let mut words = Words(&answer.body);
    let [magic, found, first, high, count, spans, tracks] = words.words();
    assert_eq!((magic, found, first, high, count), (u32::from_le_bytes(*b"KYT2"), level.into(), 1, 0, 32));
    let spans: Vec<[u32; 3]> = (0..spans).map(|_| words.words()).collect();
    let as_words = |span: &kymo_session::TileSpan| [span.begin, span.end, span.quality as u32];
    assert_eq!(spans, expected.spans.iter().map(as_words).collect::<Vec<_>>());
    let mut found: Vec<(String, u32, usize, Vec<u32>)> = (0..tracks)
        .map(|_| {
            let [number, form, _, items] = words.words();
            let size = [8, 6, 4, 10, 6, 3, 4, 8][form as usize];
            // The buckets and times, which depend on no number of a value.
            let buckets = (0..items).map(|_| (0..size).map(|_| words.word()).collect::<Vec<u32>>()[0]).collect();
            (id(&theirs, number), form, items as usize, buckets)
        })
        .collect();
    assert!(words.0.is_empty());
    let mut wanted: Vec<_> = expected
        .tracks
        .iter()
        .map(|track| {
            let (form, buckets): (u32, Vec<u32>) = match &track.items {
                Items::States { buckets, .. } => (0, buckets.iter().map(|one| one.bucket).collect()),
                Items::Instants(all) => (2, all.iter().map(|one| one.bucket).collect()),
                Items::Counter { buckets, .. } => (3, buckets.iter().map(|one| one.bucket).collect()),
                Items::Arrows(all) => (4, all.iter().map(|one| one.bucket).collect()),
                Items::Heat(all) => (5, all.iter().map(|one| one.bucket).collect()),
                Items::Runs(all) => (1, all.iter().map(|one| low(one.begin)).collect()),
                Items::ExactInstants(all) => (6, all.iter().map(|one| low(one.time)).collect()),
                Items::ExactArrows(all) => (7, all.iter().map(|one| low(one.begin)).collect()),
            };
            (id(&ours, track.number), form, buckets.len(), buckets)
        })
        .collect();
    found.sort();
    wanted.sort();
    assert!(wanted.iter().any(|track| track.2 > 5), "something happens");
    assert_eq!(found, wanted);
    found.into_iter().filter(|track| track.2 > 0).map(|track| track.1).collect()
}

/// What is at a time on a track, as the session says it: an event with all its fields.
#[test]
fn items_are_events_with_their_fields() {
    let server = serve();
    let status = complete(&server);
    let catalogue = server.get("/api/v1/catalogue").json();
    let events = ids(&catalogue).into_iter().find(|(id, _)| id.starts_with("events/")).unwrap().1;
    let (begin, end) = (&status["begin_ns"], &status["end_ns"]);
    let found = server.get(&format!("/api/v1/items?track={events}&begin={begin}&end={end}&limit=3")).json();
    assert_eq!((&found["complete"], found["items"].as_array().map(Vec::len)), (&Value::Bool(true), Some(3)), "{found}");
    for item in found["items"].as_array().unwrap() {
        assert_eq!((&item["kind"], &item["event"]["time"]), (&"event".into(), &item["time_ns"]));
        assert_eq!(item["event"]["event"], item["value"]["label"]);
        let again = server.get(&format!("/api/v1/items?track={events}&at={}", item["time_ns"])).json();
        assert!(again["items"].as_array().unwrap().contains(item), "{again} {item}");
    }
    let next = found["next_ns"].as_i64().unwrap();
    assert!(next > found["items"][2]["time_ns"].as_i64().unwrap());
}

/// Tiles that are exact have a tag that holds as long as the server runs, and no longer.
#[test]
fn exact_tiles_are_sent_once() {
    let server = serve();
    let status = complete(&server);
    let level = status["level_max"].as_u64().unwrap() - 6;
    let target = format!("/api/v1/tiles?level={level}&first=1&count=8&tracks=0");
    let tiles = server.get(&target);
    assert_eq!(Words(&tiles.body[28..]).words(), [0, 8, Quality::Exact as u32], "all of it is exact");
    let tag = &tiles.headers["etag"];
    let again = server.ask("GET", &target, &[&format!("if-none-match: {tag}")], "");
    assert_eq!((again.status, again.body.len(), &again.headers["etag"]), (304, 0, tag));
    assert_eq!(again.headers["cache-control"], "private, no-cache");
    let other = serve();
    complete(&other);
    assert_eq!(other.ask("GET", &target, &[&format!("if-none-match: {tag}")], "").status, 200);
}

/// How many events tiles of a track of events tell of, as docs/http.md says; `None`: not all of them are read.
fn events_in(body: &[u8]) -> Option<u32> {
    let mut words = Words(body);
    let [_, _, _, _, _, spans, tracks] = words.words();
    let spans: Vec<[u32; 3]> = (0..spans).map(|_| words.words()).collect();
    let is_read = spans.first().is_some_and(|span| span[2] == Quality::Exact as u32);
    let mut all = 0;
    for _ in 0..tracks {
        let [_, form, _, items] = words.words();
        for _ in 0..items {
            let [_, _, count, _] = words.words();
            all += if form == 6 { 1 } else { count };
        }
    }
    is_read.then_some(all)
}

/// Events that a filter selects are counted apart, under tags of their own, until the server is asked for too many other filters.
#[test]
fn tiles_of_some_events_are_built_when_somebody_asks() {
    let server = serve();
    let level = complete(&server)["level_max"].as_u64().unwrap();
    let tracks = ids(&server.get("/api/v1/catalogue").json());
    // That of all events together, or of the one lane that there is.
    let named = |start: &str| tracks.iter().find(|(id, _)| id.starts_with(start));
    let (_, track) = named("all/events").or_else(|| named("events/")).unwrap();
    let target = format!("/api/v1/tiles?level={level}&first=0&count=1&tracks={track}");
    let all = server.get(&target);
    let version = || server.get("/api/v1/timeline").json()["version"].as_u64().unwrap();
    let (mut sum, mut before) = (0, version());
    // More of them than there are timelines at a time.
    for filter in
        ["id<1", "id>=1%20%26%26%20id<9", "id>=9%20%26%26%20id<20", "id>=20%20%26%26%20id<40", "id>=40", "id<1"]
    {
        let target = format!("{target}&filter={}", filter.replace('<', "%3C").replace('>', "%3E"));
        let found = (0..10_000).find_map(|_| {
            let answer = server.ask("GET", &target, &[&format!("if-none-match: {}", all.headers["etag"])], "");
            assert_eq!(answer.status, 200, "{}", answer.line());
            std::thread::sleep(std::time::Duration::from_millis(1));
            Some((events_in(&answer.body)?, answer))
        });
        let (count, answer) = found.expect("it is built");
        let again = server.ask("GET", &target, &[&format!("if-none-match: {}", answer.headers["etag"])], "");
        assert_eq!(again.status, 304);
        sum += if filter == "id<1" { 0 } else { count };
        assert!(version() >= before, "{filter}");
        before = version();
    }
    let counted = server.get("/api/v1/events/count?filter=id%20%3E%3D%201").json();
    assert_eq!(counted["events"].as_u64(), Some(sum.into()), "{counted}");
    assert!(sum > 0 && sum < events_in(&all.body).unwrap());
}

#[test]
fn some_events_say_nothing_of_states() {
    let server = serve();
    complete(&server);
    let catalogue = server.get("/api/v1/catalogue").json();
    let tracks = catalogue["tracks"].as_array().unwrap();
    let other = tracks.iter().find(|track| track["kind"] == "states").unwrap()["number"].as_u64().unwrap();
    let refused = server.get(&format!("/api/v1/tiles?level=9&first=0&count=1&tracks=0,{other}&event=jobs:begin"));
    assert_eq!((refused.status, &refused.json()["error"]["parameter"]), (400, &Value::from("tracks")));
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains(&format!("track {other} ")));
    let is_told = |track: &&Value| ["instants", "heat", "arrows"].contains(&track["kind"].as_str().unwrap());
    let told: Vec<String> = tracks.iter().filter(is_told).map(|track| track["number"].to_string()).collect();
    let target = format!("/api/v1/tiles?level=9&first=0&count=1&tracks={}&event=jobs:begin", told.join(","));
    assert_eq!(server.get(&target).status, 200);
    let refused = server.get("/api/v1/tiles?level=9&first=0&count=1&tracks=0&event=nobody");
    assert_eq!((refused.status, &refused.json()["error"]["parameter"]), (400, &Value::from("event")));
    let refused = server.get("/api/v1/tiles?level=9&first=0&count=1&tracks=0&filter=id%20%3D");
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &Value::from("filter")));
}
