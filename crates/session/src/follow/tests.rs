//! Traces that grow while tests read them.

use std::fs::OpenOptions as FileOptions;
use std::io::Write;

use super::*;
use crate::made_traces::{METADATA, Random, packet};
use crate::print::{PrintFormat, PrintOptions};
use crate::{StampOptions, TraceOffset};

/// Runs once, between the reads of statements and of the sizes of files.
#[derive(Default)]
pub(super) struct Meanwhile(Option<Box<dyn FnOnce() + Send>>);

impl Meanwhile {
    pub(super) fn run(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

/// A trace that grows: three streams, and its recorder's statement.
struct Growing {
    folder: tempfile::TempDir,
    /// Events that are not in a file yet, by stream.
    waiting: [Vec<u64>; 3],
    sequences: [u64; 3],
}

impl Growing {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("metadata"), METADATA).unwrap();
        Self { folder, waiting: Default::default(), sequences: [0; 3] }
    }

    fn flush(&mut self, stream: usize) {
        let times = std::mem::take(&mut self.waiting[stream]);
        let (Some(first), Some(last)) = (times.first(), times.last()) else { return };
        let mut bytes = Vec::new();
        packet(&mut bytes, [*first, *last, 0, self.sequences[stream]], &times);
        self.sequences[stream] += 1;
        let path = self.folder.path().join(format!("stream_{stream}"));
        let mut file = FileOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(&bytes).unwrap();
    }

    fn say(&self, state: &str, watermark: u64) {
        let process = std::process::id();
        let line = format!("kymo-live 1 {state} {watermark} {process}");
        std::fs::write(self.folder.path().join(kymo_source::LIVE_FILE), format!("{line:63}\n")).unwrap();
    }

    fn follow(&self) -> Follow {
        self.follow_ahead(0)
    }

    /// Its clock is taken to be ahead.
    fn follow_ahead(&self, offset_ns: i64) -> Follow {
        let path = self.folder.path().to_owned();
        let trace_offsets = vec![TraceOffset { path: path.clone(), offset_ns }];
        Follow::new(vec![path], OpenOptions { trace_offsets, ..OpenOptions::default() })
    }
}

fn print(session: &Session, options: &PrintOptions, out: &mut Vec<u8>) -> crate::Printed {
    session.print(options, out, &Progress::default()).unwrap()
}

/// Events of all streams in turn; files get them late, but never later than the recorder says,
/// with times that are the trace's own.
#[test]
fn each_event_is_in_one_window() {
    for seed in 0..5 {
        let mut random = Random(seed);
        let mut growing = Growing::new();
        let offset_ns = [0, 1000, -7][seed as usize % 3];
        let mut follow = growing.follow_ahead(offset_ns);
        let (mut out, mut continued, mut now) = (Vec::new(), None, 100);
        for _ in 0..6 {
            for _ in 0..random.below(60) {
                now += random.below(4);
                let stream = random.below(3) as usize;
                growing.waiting[stream].push(now);
                if random.one_in(7) {
                    growing.flush(stream);
                }
            }
            // Everything before the watermark is there, and some later events.
            (0..3).for_each(|stream| growing.flush(stream));
            let watermark = now - random.below(20).min(now);
            growing.say("recording", watermark);
            // Events from now on have the watermark's time, or are later.
            let behind = follow.behind_ns;
            if behind.is_some_and(|behind| behind >= watermark as i64 + offset_ns) {
                continue;
            }
            let window = follow.next(&Progress::default()).unwrap().unwrap();
            assert_eq!((&*window.begins_ns, window.end_ns), (&[behind][..], Some(watermark as i64 + offset_ns - 1)));
            let options = PrintOptions {
                format: PrintFormat::Csv,
                begins_ns: window.begins_ns,
                end_ns: window.end_ns,
                continued,
                ..PrintOptions::default()
            };
            continued = Some(print(&window.session, &options, &mut out).ended);
        }
        growing.say("ended", now);
        let window = follow.next(&Progress::default()).unwrap().unwrap();
        assert_eq!(window.end_ns, None);
        let options = PrintOptions {
            format: PrintFormat::Csv,
            begins_ns: window.begins_ns,
            continued,
            ..PrintOptions::default()
        };
        print(&window.session, &options, &mut out);
        assert!(follow.next(&Progress::default()).unwrap().is_none(), "it is over");
        let mut whole = Vec::new();
        let options = PrintOptions { format: PrintFormat::Csv, ..PrintOptions::default() };
        print(&window.session, &options, &mut whole);
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole), "seed {seed}");
    }
}

/// At which cycles printed events are.
fn cycles(out: &[u8]) -> Vec<u64> {
    let text = std::str::from_utf8(out).unwrap();
    text.lines().map(|line| line[1..].split(']').next().unwrap().parse().unwrap()).collect()
}

/// A clock that is said anew, to which an event more or less is before the end of the last window.
#[test]
fn each_event_is_in_one_window_though_the_clock_is_learned() {
    let clocks = [(1_010_000_000_u64, 0_u64), (990_000_000, 0), (1_000_000_000, 12), (1_003_000_000, 7)];
    for (seed, (frequency, offset)) in (0..).zip(clocks) {
        let mut growing = Growing::new();
        let mut random = Random(seed);
        let mut follow = growing.follow();
        let mut out = Vec::new();
        for round in 1..4_u64 {
            for time in round * 1000..(round + 1) * 1000 {
                growing.waiting[random.below(3) as usize].push(time);
            }
            (0..3).for_each(|stream| growing.flush(stream));
            let is_last = round == 3;
            growing.say(if is_last { "ended" } else { "recording" }, round * 1000 + 500);
            let window = follow.next(&Progress::default()).unwrap().unwrap();
            let options = PrintOptions {
                stamp: StampOptions { cycles: true, ..StampOptions::default() },
                begins_ns: window.begins_ns,
                end_ns: window.end_ns,
                ..PrintOptions::default()
            };
            print(&window.session, &options, &mut out);
            let clock = format!("clock {{ name = c; freq = {frequency}; offset = {}; }};", offset * round);
            let metadata = METADATA.replace("clock { name = c; freq = 1000000000; };", &clock);
            std::fs::write(growing.folder.path().join("metadata"), metadata).unwrap();
        }
        assert!(follow.next(&Progress::default()).unwrap().is_none(), "it is over");
        // In any order: windows are printed one after the other, each in its order.
        let mut cycles = cycles(&out);
        cycles.sort_unstable();
        assert_eq!(cycles, (1000..4000).collect::<Vec<u64>>(), "{frequency} Hz");
    }
}

/// A packet and a statement that come while the files are being looked at lose no event.
#[test]
fn events_written_between_two_reads_are_in_a_window() {
    for state in ["recording", "ended"] {
        let mut growing = Growing::new();
        growing.waiting[0].extend([1000, 1100]);
        growing.flush(0);
        growing.say("recording", 1500);
        let mut follow = growing.follow();
        let mut out = Vec::new();
        let mut show = |window: Window| {
            let options = PrintOptions {
                stamp: StampOptions { cycles: true, ..StampOptions::default() },
                begins_ns: window.begins_ns,
                end_ns: window.end_ns,
                ..PrintOptions::default()
            };
            print(&window.session, &options, &mut out);
        };
        show(follow.next(&Progress::default()).unwrap().unwrap());
        let folder = growing.folder.path().to_owned();
        growing.waiting[0].extend([1600, 1700]);
        follow.meanwhile = Meanwhile(Some(Box::new(move || {
            growing.flush(0);
            growing.say(state, 2000);
            // The folder stays until the test ends.
            std::mem::forget(growing);
        })));
        show(follow.next(&Progress::default()).unwrap().unwrap());
        assert_eq!(cycles(&out), [1000, 1100, 1600, 1700], "{state}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// An event that is written before its definition, and all that are later, wait for that; but not for ever.
#[test]
fn events_wait_for_their_definitions() {
    let (head, _) = METADATA.split_once("event {").unwrap();
    let with_ids = head.replace("} timestamp; };", "} timestamp; integer { size = 32; align = 8; } id; };");
    let define = |growing: &Growing, count: usize| {
        let events: String = (0..count).map(|id| format!("event {{ name = e{id}; id = {id}; }};\n")).collect();
        std::fs::write(growing.folder.path().join("metadata"), format!("{with_ids}{events}")).unwrap();
    };
    for comes in [true, false] {
        let mut growing = Growing::new();
        define(&growing, 1);
        // The number of an event in its packet is its id.
        growing.waiting = [vec![1000, 1100, 1200], vec![1050], vec![1150]];
        (0..3).for_each(|stream| growing.flush(stream));
        growing.say("recording", 5000);
        let mut follow = growing.follow();
        let mut out = Vec::new();
        let mut next = |follow: &mut Follow| {
            let window = follow.next(&Progress::default()).unwrap().unwrap();
            let options = PrintOptions {
                stamp: StampOptions { cycles: true, ..StampOptions::default() },
                begins_ns: window.begins_ns,
                end_ns: window.end_ns,
                ..PrintOptions::default()
            };
            print(&window.session, &options, &mut out);
            (window.end_ns, window.undefined.len())
        };
        assert_eq!(next(&mut follow), (Some(999), 0));
        if comes {
            define(&growing, 2);
            assert_eq!(next(&mut follow), (Some(1099), 0));
            assert!(matches!(follow.look().unwrap(), Look::Nothing), "the third one is not defined");
            define(&growing, 3);
            assert_eq!(next(&mut follow), (Some(4999), 0));
            assert_eq!(cycles(&out), [1000, 1050, 1100, 1150, 1200]);
        } else {
            assert!(matches!(follow.look().unwrap(), Look::Nothing), "it may still be defined");
            follow.undefined.have_waited(PATIENCE);
            assert_eq!(next(&mut follow), (Some(4999), 1), "the window tells what it lacks");
            assert_eq!(cycles(&out), [1000, 1050, 1150]);
        }
    }
}

/// Packets of a stream class that comes later: no event is handed out before that is known.
#[test]
fn events_wait_for_the_definitions_of_streams() {
    for comes in [true, false] {
        let mut growing = Growing::new();
        growing.waiting[0] = vec![1000, 1100];
        growing.flush(0);
        growing.say("recording", 5000);
        let metadata = growing.folder.path().join("metadata");
        let all = std::fs::read_to_string(&metadata).unwrap();
        std::fs::write(&metadata, all.split_once("stream {").unwrap().0).unwrap();
        let mut follow = growing.follow();
        assert!(matches!(follow.look().unwrap(), Look::Nothing), "the stream may still be defined");
        if comes {
            std::fs::write(&metadata, all).unwrap();
        } else {
            follow.undefined.have_waited(PATIENCE);
        }
        let window = follow.next(&Progress::default()).unwrap().unwrap();
        let mut out = Vec::new();
        let printed = print(&window.session, &PrintOptions::default(), &mut out);
        assert_eq!((printed.events, window.undefined.len()), if comes { (2, 0) } else { (0, 1) });
    }
}

/// The line of an event says how long after the one before it comes, which was in another window.
#[test]
fn text_goes_on() {
    let mut growing = Growing::new();
    let mut follow = growing.follow();
    let (mut out, mut continued) = (Vec::new(), None);
    for (state, now) in [("recording", 1000), ("recording", 2000), ("ended", 3000)] {
        growing.waiting[0].extend([now, now + 10]);
        growing.flush(0);
        growing.say(state, now + 500);
        let window = follow.next(&Progress::default()).unwrap().unwrap();
        let options =
            PrintOptions { begins_ns: window.begins_ns, end_ns: window.end_ns, continued, ..PrintOptions::default() };
        continued = Some(print(&window.session, &options, &mut out).ended);
    }
    let text = String::from_utf8(out).unwrap();
    let deltas: Vec<&str> = text.lines().map(|line| line.split(['(', ')']).nth(1).unwrap()).collect();
    let expected = ["+?.?????????", "+0.000000010", "+0.000000990", "+0.000000010", "+0.000000990", "+0.000000010"];
    assert_eq!(deltas, expected);
}

/// Other recorders do not say how far they are: the events that all streams have, and all that
/// there is when nothing grows any more.
#[test]
fn traces_of_others_are_followed_too() {
    let mut growing = Growing::new();
    growing.waiting[0].extend([1000, 1500]);
    growing.waiting[1].extend([1200, 1300]);
    (0..2).for_each(|stream| growing.flush(stream));
    let mut follow = growing.follow();
    let next = |follow: &mut Follow| follow.next(&Progress::default()).unwrap().unwrap().end_ns;
    assert_eq!(next(&mut follow), Some(1299));
    assert_eq!(next(&mut follow), Some(1500), "nothing grows");
    growing.waiting[1].extend([1600, 1700]);
    growing.flush(1);
    // The other stream has nothing behind that, which is known when nothing grows again.
    assert_eq!(next(&mut follow), Some(1700));
}

/// A killed recorder does not say that it is over.
#[test]
fn a_recorder_that_is_gone_writes_nothing_more() {
    let mut growing = Growing::new();
    growing.waiting[0].extend([1000, 1500]);
    growing.flush(0);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let process = child.id();
    child.wait().unwrap();
    let line = format!("kymo-live 1 recording 1200 {process}");
    std::fs::write(growing.folder.path().join(kymo_source::LIVE_FILE), line).unwrap();
    let mut follow = growing.follow();
    let window = follow.next(&Progress::default()).unwrap().unwrap();
    assert_eq!(window.end_ns, if cfg!(target_os = "linux") { None } else { Some(1199) });
}
