//! Fields of all types: what is told of them, what is recorded, and what is too long.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kymo_lane::{OverflowMode, RecordingSettings, contexts};
use kymo_tracer::{Context, Hex, Own, control_file, event, labels};

use crate::alone;
use crate::recorder::Control;

labels! {
    /// What somebody does.
    pub enum State: i8 { Gone = -1, Idle = 0, Busy = 5 }
}

event! {
    /// Nothing but that it happened.
    fn nothing() = "test:nothing";
    fn numbers(a: u8, b: i64, c: f64, d: bool, e: Hex<u16>, f: State) = "test:numbers", level 6, role "counter";
    fn lists(ports: [u16; 3], name: &str, bytes: &[u8], words: &[u32], place: *const u8) = "test:lists";
}

/// A context of the program: a text.
static REQUEST: Context = Context::new(b"context request\nfield text name\n", 0, request);

extern "C" fn request(own: &mut Own) {
    let name = b"GET /";
    (own.text, own.length) = (name.as_ptr(), name.len() as u64);
}

struct Seen {
    recorder: kymo_lane::RecorderSide<Control>,
    taken: usize,
}

impl Seen {
    /// What was recorded since: bytes behind id and ticks.
    fn next(&mut self) -> (u64, Vec<u8>) {
        let ready = self.recorder.ready().expect("it can be read");
        let look = |number| self.recorder.look(number).expect("it can be read");
        let last = (0..ready).filter_map(look).max_by_key(|seen| seen.sequence).expect("there is one");
        let mut bytes = vec![0; last.bytes as usize];
        assert!(self.recorder.copy(&last, 0, &mut bytes).expect("it can be read"));
        // Other contexts begin another sub-buffer.
        let begin = if self.taken > bytes.len() { 0 } else { self.taken };
        self.taken = bytes.len();
        (last.contexts, bytes[begin + 6..].to_vec())
    }

    fn wants(&mut self, contexts: u64) {
        let wants = RecordingSettings { mode: OverflowMode::DiscardNewest, lane: 32, pool: 512, contexts };
        self.recorder.say(&wants).expect("it can be written");
        self.taken = usize::MAX;
    }
}

fn definitions(recorder: &kymo_lane::RecorderSide<Control>) -> Vec<(bool, u16, String)> {
    let (mut all, mut last) = (Vec::new(), None);
    while let Some(next) = recorder.definition(last.as_ref()).expect("it can be read") {
        let mut text = vec![0; next.bytes as usize];
        recorder.said(&next, &mut text).expect("it can be read");
        let text = String::from_utf8(text).expect("it is text");
        let without_source = text.lines().filter(|line| !line.starts_with("source "));
        all.push((next.is_context, next.id, without_source.collect::<Vec<_>>().join("|")));
        last = Some(next);
    }
    all
}

/// Alone: all threads of a process record to the memory that is looked at here, and how often it was cut is counted.
#[test]
fn fields_are_what_was_told_of_them() {
    alone::run("fields::fields_are_what_was_told_of_them", |_| record_all());
}

fn record_all() {
    let path = Path::new(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    let view = Control(std::fs::File::options().read(true).write(true).open(path).expect("it is there"));
    let layout = kymo_lane::MemoryLayout::default();
    let mut seen = Seen { recorder: kymo_lane::RecorderSide::new(view, layout), taken: 0 };
    assert!(REQUEST.register());
    let all = definitions(&seen.recorder);
    let id = |name: &str| all.iter().find(|(_, _, text)| text.contains(name)).unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!(id(":nothing").2, "event test:nothing");
    assert_eq!(
        id(":numbers").2,
        "event test:numbers|level 6|role counter|field u8 a|field i64 b|field f64 c|field bool d|field x16 e|field enum i8(Gone=-1,Idle=0,Busy=5,) f"
    );
    assert_eq!(
        id(":lists").2,
        "event test:lists|field array 3 u16 ports|field text name|field sequence u8 bytes|field sequence u32 words|field pointer place"
    );
    assert_eq!(id("request"), &(true, 0, "context request|field text name".to_owned()));
    nothing();
    assert_eq!(seen.recorder.ready().expect("it can be read"), 0, "nobody wants it");
    for name in [":nothing", ":numbers", ":lists"] {
        seen.recorder.switch(id(name).1, 1).expect("it can be written");
    }
    nothing();
    assert_eq!(seen.next(), (0, vec![]));
    numbers(1, -2, 0.5, true, Hex(0xABCD), State::Gone);
    let expected = [&[1][..], &(-2_i64).to_le_bytes(), &0.5_f64.to_le_bytes(), &[1, 0xCD, 0xAB, 0xFF]].concat();
    assert_eq!(seen.next(), (0, expected));
    lists([1, 2, 3], "ab\0c", b"xyz", &[7], std::ptr::without_provenance(0x1234));
    let expected =
        [&[1, 0, 2, 0, 3, 0, 2, 0][..], b"ab", &[3, 0], b"xyz", &[1, 0, 7, 0, 0, 0], &0x1234_u64.to_le_bytes()];
    assert_eq!(seen.next(), (0, expected.concat()));
    is_cut(&mut seen);
    carries(&mut seen);
}

/// The longest ones are cut, between elements, and that is counted.
fn is_cut(seen: &mut Seen) {
    seen.taken = {
        let ready = seen.recorder.ready().expect("it can be read");
        let look = |number| seen.recorder.look(number).expect("it can be read");
        (0..ready).filter_map(look).map(|seen| seen.bytes as usize).max().expect("there is one")
    };
    let long = "l".repeat(100_000);
    lists([0; 3], &long, b"short", &vec![1; 5000], std::ptr::null());
    let (_, bytes) = seen.next();
    assert!(bytes.len() <= 16 << 10 && bytes.len() > (16 << 10) - 8, "{}", bytes.len());
    let length = usize::from(u16::from_le_bytes([bytes[6], bytes[7]]));
    let behind = &bytes[8 + length..];
    assert_eq!(behind[..7], [&[5, 0][..], b"short"].concat());
    let words = usize::from(u16::from_le_bytes([behind[7], behind[8]]));
    assert_eq!(behind.len(), 9 + 4 * words + 8, "elements are whole");
    assert!(words * 4 <= length && length < words * 4 + 4, "both are as long: {length}, {words}");
    assert_eq!(seen.recorder.losses(0).expect("it can be read").cut, 1);
}

/// What events carry stands before their fields.
fn carries(seen: &mut Seen) {
    seen.wants(contexts::CPU);
    nothing();
    let (contexts, bytes) = seen.next();
    let cpus = std::thread::available_parallelism().expect("there are some").get() as u16;
    assert!(contexts == contexts::CPU && bytes.len() == 2 && u16::from_le_bytes([bytes[0], bytes[1]]) < 4096.max(cpus));
    // The second one goes the quick way.
    nothing();
    assert_eq!(seen.next().1.len(), 2);
    seen.wants(contexts::PID | contexts::TID | contexts::NAME | contexts::FIRST_OWN);
    nothing();
    let (_, bytes) = seen.next();
    assert_eq!(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), std::process::id());
    let comm = std::fs::read_to_string("/proc/thread-self/comm").expect("it is there");
    assert_eq!(String::from_utf8_lossy(&bytes[8..24]).trim_end_matches('\0'), comm.trim_end());
    assert_eq!(bytes[24..], [&[5, 0][..], b"GET /"].concat());
    seen.wants(contexts::IP | contexts::STACK);
    nothing();
    let (_, bytes) = seen.next();
    let ip = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    // The function that the event is in, or what that was put into, is a few pages from another one here.
    assert!(ip.abs_diff(carries as *const () as u64) < 1 << 20, "{ip:x}");
    let frames = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert!(bytes.len() == 10 + 8 * frames && frames <= 32);
    seen.wants(0);
    nothing();
    assert_eq!(seen.next(), (0, vec![]));
}
