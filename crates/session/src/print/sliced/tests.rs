//! Whatever a trace is like: several threads print what one prints.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::report::Report;
use crate::{OpenOptions, PrintFormat, PrintOptions, Progress, Session};

/// Text, number of events, and what is reported.
fn printed(path: &Path, options: &PrintOptions, threads: usize, slice_bytes: Option<u64>) -> (String, u64, Report) {
    let opened = Session::open(&[path.to_owned()], &OpenOptions { threads, ..OpenOptions::default() });
    let Ok(mut session) = opened else { return (String::new(), 0, Report::default()) };
    session.slice_bytes = slice_bytes;
    let mut out = Vec::new();
    let printed = session.print(options, &mut out, &Progress::default());
    let printed = printed.expect("a vector takes everything");
    (String::from_utf8_lossy(&out).into_owned(), printed.events, printed.report)
}

fn check(name: &str, path: &Path, options: &PrintOptions, slice_bytes: u64) {
    let expected = printed(path, options, 1, None);
    let sliced = printed(path, options, 3, Some(slice_bytes));
    if sliced == expected {
        return;
    }
    let pairs = expected.0.lines().zip(sliced.0.lines()).enumerate();
    let first = pairs.filter(|(_, (one, other))| one != other).map(|(line, pair)| (line + 1, pair)).next();
    panic!(
        "{name}, slices of {slice_bytes} bytes: {} events became {}; first line that differs: {first:#?}; {:#?} became {:#?}",
        expected.1, sliced.1, expected.2, sliced.2
    );
}

/// A generator that needs nothing.
struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

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
        integer { size = 64; align = 8; } packet_seq_num;
    };
    event.header := struct { integer { size = 64; align = 8; map = clock.c.value; } timestamp; };
};
event { name = e; fields := struct { integer { size = 32; align = 8; } n; }; };
";

/// What a stream does that it should not.
struct Habits {
    /// Events leave the time of their packets, or it steps back, one in so many.
    strays: u64,
    /// Packets have no events, one in so many.
    empty: u64,
    /// The file is damaged in the end.
    damaged: bool,
}

fn packet(file: &mut Vec<u8>, context: [u64; 4], times: &[u64]) {
    let bits = (48 + 12 * times.len() as u64) * 8;
    for word in [bits, bits].into_iter().chain(context) {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (number, time) in times.iter().enumerate() {
        file.extend_from_slice(&time.to_le_bytes());
        file.extend_from_slice(&(number as u32).to_le_bytes());
    }
}

/// A stream file, with what can go wrong in its times.
fn stream(random: &mut Random, habits: &Habits) -> Vec<u8> {
    let mut file = Vec::new();
    let mut now = random.below(200);
    let (mut discarded, mut sequence) = (0, 0);
    for _ in 0..random.below(30) {
        now += random.below(3) * random.below(100);
        let begin = now;
        let count = if random.one_in(habits.empty) { 0 } else { random.below(40) };
        let mut times = Vec::new();
        for _ in 0..count {
            now += random.below(12);
            times.push(now);
        }
        now += random.below(2) * random.below(50);
        if random.one_in(habits.strays) && count > 0 {
            let time = &mut times[random.below(count) as usize];
            *time = (*time + random.below(400)).saturating_sub(200);
            // An event that belongs far before its packet: into a slice that would be over by then.
            times[0] = times[0].saturating_sub(random.below(2) * random.below(4000));
        }
        discarded += random.below(8).saturating_sub(6);
        sequence += 1 + random.below(8) / 7;
        let end = if random.one_in(habits.strays * 4) { begin + random.below(20) } else { now };
        packet(&mut file, [begin, end, discarded, sequence], &times);
    }
    if habits.damaged && !file.is_empty() {
        let at = random.below(file.len() as u64) as usize;
        if random.one_in(2) { file.truncate(at) } else { file[at] ^= 1 << random.below(8) }
    }
    file
}

/// Traces of few streams whose packets are short, so that cuts come everywhere.
#[test]
fn random_traces_sliced_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    for number in 0..600 {
        let path = folder.path().join(format!("trace{number}"));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("metadata"), METADATA).unwrap();
        for name in 0..=random.below(4) {
            let (strays, empty) = if number % 3 == 0 { (1 << 30, 4) } else { (20, 2 + number % 8) };
            let habits = Habits { strays, empty, damaged: number % 5 == 4 && random.one_in(2) };
            std::fs::write(path.join(format!("s{name}")), stream(&mut random, &habits)).unwrap();
        }
        let mut options = PrintOptions::default();
        if number % 4 == 3 {
            options.begin_ns = Some(random.below(3000) as i64);
            options.end_ns = Some(random.below(6000) as i64);
        }
        if number % 7 == 6 {
            options.format = PrintFormat::Json;
        }
        check(&format!("trace {number}"), &path, &options, 1 + random.below(3) * random.below(4000));
        std::fs::remove_dir_all(&path).unwrap();
    }
    let sliced = super::FINISHED.load(Ordering::Relaxed);
    assert!(sliced > 250, "of 600 traces only {sliced} were sliced to their end");
}

/// The first event of a late packet belongs where everything is printed long before that packet's turn; packets without
/// events lie between.
#[test]
fn an_event_far_before_its_packet() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("metadata"), METADATA).unwrap();
    let (mut steady, mut late) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let begin = number * 50;
        packet(&mut steady, [begin, begin + 49, 0, number], &[begin, begin + 20, begin + 49]);
    }
    packet(&mut late, [0, 10, 0, 0], &[5]);
    packet(&mut late, [4000, 4010, 0, 1], &[]);
    packet(&mut late, [4100, 4110, 0, 2], &[]);
    packet(&mut late, [4500, 4510, 0, 3], &[105, 4505]);
    std::fs::write(folder.path().join("steady"), steady).unwrap();
    std::fs::write(folder.path().join("late"), late).unwrap();
    check("an event far before its packet", folder.path(), &PrintOptions::default(), 200);
}

/// Every trace of the corpus that is not large.
#[test]
fn real_traces() {
    let fallback = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus"));
    let corpus = std::env::var_os("KYMO_CORPUS").map_or_else(fallback, PathBuf::from).join("ctf");
    let Ok(list) = std::fs::read_to_string(corpus.join("expected.tsv")) else {
        println!("CORPUS ABSENT: {} is not there; real traces were not cut", corpus.display());
        return;
    };
    for line in list.lines().skip(1) {
        let name = line.split('\t').next().unwrap();
        let folder = corpus.join(name);
        let bytes: u64 = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.metadata().map_or(0, |file| file.len()))
            .sum();
        if bytes < 2 << 20 {
            check(name, &folder, &PrintOptions::default(), 1 + bytes / 7);
        }
    }
}
