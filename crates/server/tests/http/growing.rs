//! Traces that grow while they are served: what a recorder writes is told when it says that it is all there.

use std::fs::OpenOptions as FileOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use kymo_server::{Growing, ServerOptions};
use kymo_session::{OpenOptions, Session};
use serde_json::{Value, json};

use crate::checker::Checker;
use crate::client::{Running, serve_growing};
use crate::description::description;

const METADATA: &str = "/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
stream {
    packet.context := struct {
        integer { size = 64; align = 8; } content_size;
        integer { size = 64; align = 8; } packet_size;
        integer { size = 64; align = 8; map = clock.c.value; } timestamp_begin;
        integer { size = 64; align = 8; map = clock.c.value; } timestamp_end;
        integer { size = 64; align = 8; } events_discarded;
    };
    event.header := struct { integer { size = 64; align = 8; map = clock.c.value; } timestamp; };
};
event { name = e; fields := struct { integer { size = 32; align = 8; } n; }; };
";

/// Somebody who records: a folder, and events that were lost so far.
struct Recorder {
    folder: tempfile::TempDir,
    lost: u64,
}

impl Recorder {
    /// Says that a trace has begun, of which nothing is there.
    fn new() -> Self {
        let recorder = Self { folder: tempfile::tempdir().unwrap(), lost: 0 };
        recorder.say("recording", 0);
        recorder
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn say(&self, state: &str, watermark: u64) {
        let line = format!("kymo-live 1 {state} {watermark} {}", std::process::id());
        std::fs::write(self.path().join(".kymo-live"), format!("{line:63}\n")).unwrap();
    }

    /// Appends a packet to a stream.
    fn write(&self, stream: u32, times: &[u64]) {
        let metadata = self.path().join("metadata");
        if !metadata.exists() {
            std::fs::write(metadata, METADATA).unwrap();
        }
        let bits = (40 + 12 * times.len() as u64) * 8;
        let context = [bits, bits, times[0], times[times.len() - 1], self.lost];
        let mut packet: Vec<u8> = context.iter().flat_map(|word| word.to_le_bytes()).collect();
        for (number, time) in times.iter().enumerate() {
            packet.extend(time.to_le_bytes());
            packet.extend((number as u32).to_le_bytes());
        }
        let path = self.path().join(format!("stream_{stream}"));
        FileOptions::new().append(true).create(true).open(path).unwrap().write_all(&packet).unwrap();
    }

    fn serve(&self, session: bool) -> Running {
        let paths = vec![self.path().to_owned()];
        let session = session.then(|| Session::open(&paths, &OpenOptions::default()).unwrap().into());
        serve_growing(Growing { session, paths, open: OpenOptions::default() }, ServerOptions::default())
    }
}

/// What is told at a path, once it is so.
fn told(server: &Running, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..4000 {
        last = server.get(path).json();
        if is_so(&last) {
            return last;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("it has not become so: {last}")
}

fn grown_to(watermark: u64) -> impl Fn(&Value) -> bool {
    move |told| told["live"]["watermark_ns"] == watermark && told["state"] == "complete"
}

fn count(server: &Running) -> u64 {
    server.get("/api/v1/events/count").json()["events"].as_u64().unwrap()
}

#[test]
fn a_recording_is_waited_for_followed_and_complete_in_the_end() {
    let mut recorder = Recorder::new();
    let server = recorder.serve(false);
    let root = description();
    let start = told(&server, "/api/v1/start", |told| told["state"] == "waiting");
    assert_eq!(Checker::new(&root).problems(&start, &root["components"]["schemas"]["Start"], ""), Vec::<String>::new());
    assert_eq!(server.get("/api/v1/timeline").status, 409);

    recorder.write(0, &[100, 110, 120, 130]);
    recorder.say("recording", 125);
    let first = told(&server, "/api/v1/timeline", |told| told["live"]["state"] == "recording" && grown_to(125)(told));
    assert_eq!(
        Checker::new(&root).problems(&first, &root["components"]["schemas"]["Timeline"], ""),
        Vec::<String>::new()
    );
    assert_eq!((&first["begin_ns"], &first["end_ns"], &first["events"]), (&json!(100), &json!(124), &json!(3)));
    // The event behind the watermark is there, and nobody knows yet what else is.
    assert_eq!(count(&server), 3);
    let tracks = server.get("/api/v1/catalogue").json()["tracks"].clone();

    recorder.write(1, &[126, 140, 150]);
    recorder.lost = 7;
    recorder.write(0, &[145, 170]);
    recorder.say("recording", 160);
    let second = told(&server, "/api/v1/timeline", grown_to(160));
    assert_eq!((&second["events"], &second["lost_events"], &second["begin_ns"]), (&json!(8), &json!(7), &json!(100)));
    assert!(second["version"].as_u64() > first["version"].as_u64(), "{first} {second}");
    assert_eq!(count(&server), 8);
    let more = server.get("/api/v1/catalogue").json()["tracks"].clone();
    let (tracks, more) = (tracks.as_array().unwrap(), more.as_array().unwrap());
    assert_eq!((&more[..tracks.len()], more.len()), (&tracks[..], tracks.len() + 1));
    let job = server.post("/api/v1/jobs", &json!({"kind": "count"}));
    assert_eq!(job.status, 201, "{}", job.text());

    // Nothing happens, but time goes by.
    recorder.say("recording", 165);
    let idle = told(&server, "/api/v1/timeline", grown_to(165));
    assert_eq!((&idle["events"], &idle["end_ns"]), (&json!(8), &json!(164)));

    recorder.say("ended", 200);
    let last =
        told(&server, "/api/v1/timeline", |told| told["live"]["state"] == "ended" && told["state"] == "complete");
    assert_eq!((&last["events"], &last["end_ns"], &last["live"]["behind_ms"]), (&json!(9), &json!(170), &Value::Null));
    assert_eq!(count(&server), 9);
}

/// Exact tiles stay what they are; those in which the watermark lies are asked for again, and are other ones.
#[test]
fn tiles_before_the_watermark_are_sent_once() {
    let recorder = Recorder::new();
    recorder.write(0, &[100, 110, 120]);
    recorder.say("recording", 120);
    let server = recorder.serve(false);
    told(&server, "/api/v1/timeline", grown_to(120));
    // Buckets of 4 ns: the watermark is at the begin of the sixth one.
    let tiles = |first: u32, count: u32, tag: &str| {
        let header = format!("if-none-match: {tag}");
        let target = format!("/api/v1/tiles?level=2&first={first}&count={count}&tracks=0");
        server.ask("GET", &target, &[&header], "")
    };
    let (before, around) = (tiles(0, 5, "\"\""), tiles(0, 6, "\"\""));
    let (exact, other) = (before.headers["etag"].clone(), around.headers["etag"].clone());
    assert!(exact.ends_with("-exact\"") && !other.ends_with("-exact\""), "{exact} {other}");
    recorder.write(0, &[120, 121, 140]);
    recorder.say("recording", 140);
    told(&server, "/api/v1/timeline", grown_to(140));
    assert_eq!(tiles(0, 5, &exact).status, 304);
    let later = tiles(0, 6, &other);
    assert_eq!(later.status, 200);
    assert!(later.headers["etag"].ends_with("-exact\"") && later.body != around.body);
}

/// What others record says nothing of itself: it is followed when its files grow.
#[test]
fn traces_of_others_are_followed_when_they_grow() {
    let recorder = Recorder::new();
    std::fs::remove_file(recorder.path().join(".kymo-live")).unwrap();
    recorder.write(0, &[100, 110]);
    let server = recorder.serve(true);
    let first = told(&server, "/api/v1/timeline", |told| told["state"] == "complete");
    assert_eq!((&first["live"], &first["events"]), (&Value::Null, &json!(2)));
    recorder.write(0, &[120, 130]);
    let grown = told(&server, "/api/v1/timeline", |told| told["live"]["state"] == "recording");
    assert_eq!(grown["begin_ns"], 100);
    // Nothing more comes: all that there is, is there.
    told(&server, "/api/v1/timeline", |told| told["events"] == 4 && told["live"]["watermark_ns"] == 131);
}

/// Half a packet, or metadata that is being written, is no end: it is whole the next time.
#[test]
fn what_is_half_written_is_told_and_waited_for() {
    let recorder = Recorder::new();
    let half: PathBuf = recorder.path().join("metadata");
    std::fs::write(&half, &METADATA[..METADATA.len() / 2]).unwrap();
    recorder.say("recording", 10);
    let server = recorder.serve(false);
    let start = told(&server, "/api/v1/start", |told| told["waiting"].is_string());
    assert_eq!(start["state"], "waiting");
    std::fs::write(&half, METADATA).unwrap();
    recorder.write(0, &[5, 6]);
    recorder.say("recording", 11);
    let told = told(&server, "/api/v1/timeline", grown_to(11));
    assert_eq!((&told["events"], &told["live"]["problem"]), (&json!(2), &Value::Null));
}
