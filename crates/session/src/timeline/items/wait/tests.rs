//! Two CPUs with threads that call, sleep, use disks and wake each other by a script: items about
//! their waiting.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_script::Random;

use crate::open::progress::Progress;
use crate::open::select::Selection;
use crate::open::{OpenOptions, Session};
use crate::print::{PrintFormat, PrintOptions};
use crate::timeline::{ItemQuestion, Timeline, TimelineOptions, Track, TrackItem, TrackValue, WaitReason};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
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
"#;
const WAKEUPS: &str = r#"event { name = "sched_waking"; id = 1; fields := struct { uint32_t tid; }; };
"#;
const OTHERS: &str = r#"event { name = "syscall_entry_read"; id = 2; fields := struct { uint32_t fd; }; };
event { name = "syscall_exit_read"; id = 3; fields := struct { int32_t ret; }; };
event { name = "irq_handler_entry"; id = 4; fields := struct { int32_t irq; }; };
event { name = "irq_handler_exit"; id = 5; fields := struct { int32_t irq; int32_t ret; }; };
event { name = "irq_softirq_entry"; id = 6; fields := struct { uint32_t vec; }; };
event { name = "irq_softirq_exit"; id = 7; fields := struct { uint32_t vec; }; };
event { name = "block_rq_issue"; id = 8; fields := struct { uint32_t dev; uint64_t sector; uint32_t nr_sector; uint32_t bytes; int32_t tid; uint32_t rwbs; }; };
event { name = "block_rq_complete"; id = 9; fields := struct { uint32_t dev; uint64_t sector; uint32_t nr_sector; uint32_t rwbs; }; };
"#;
/// The disk that is asked, and how much at a time.
const DISK: u32 = 8 << 20 | 1;
const SECTORS: u32 = 8;

/// A true wait, with the expected facts about it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Waited {
    begin: i64,
    end: i64,
    state: &'static str,
    /// When it was entered, and its file.
    call: Option<(i64, i64)>,
    /// CPU, thread, interrupt, softirq.
    waker: Option<(u32, u32, bool, bool)>,
    instead: Option<u32>,
    to: Option<u32>,
    /// When each was asked for and done.
    requests: Vec<(i64, Option<i64>)>,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    call: Option<(i64, i64)>,
    wait: Option<Waited>,
    /// It was in a call at some time.
    has_called: bool,
}

/// The machine while it is made.
struct Machine {
    random: Random,
    time: u64,
    running: [u32; 2],
    threads: BTreeMap<u32, Thread>,
    events: [Vec<(u64, u32, Vec<u8>)>; 2],
    sector: u64,
    done: Vec<(u32, Waited, bool)>,
}

impl Machine {
    fn new() -> Self {
        // All but the first one can run; since when, is not asked.
        let wait = Some(Waited { state: "waiting for a CPU", ..Waited::default() });
        let thread = |tid| (tid, Thread { wait: wait.clone().filter(|_| tid != 1), ..Thread::default() });
        let threads = (1..=5).map(thread).collect();
        let events = [Vec::new(), Vec::new()];
        Self { random: Random(11), time: 1000, running: [1, 0], threads, events, sector: 0, done: Vec::new() }
    }

    fn event(&mut self, cpu: usize, id: u32, fields: &[&[u8]]) -> i64 {
        // Long sleeps now and then, so that there are chunks in which nothing happens to a thread.
        let longest = if self.random.below(30) == 0 { 9000 } else { 40 };
        self.time += 1 + self.random.below(longest) as u64;
        self.events[cpu].push((self.time, id, fields.concat()));
        self.time.cast_signed()
    }

    fn switch(&mut self, cpu: usize, state: u32, next: u32) {
        let prev = self.running[cpu];
        let at = self.event(cpu, 0, &[&prev.to_le_bytes(), &state.to_le_bytes(), &next.to_le_bytes()]);
        self.running[cpu] = next;
        if prev != 0 {
            let instead = (state == 0).then_some(next);
            let state = ["preempted", "blocked", "uninterruptible"][state as usize];
            let thread = self.threads.get_mut(&prev).unwrap();
            let requests = thread.wait.take().map(|wait| wait.requests).unwrap_or_default();
            thread.wait = Some(Waited { begin: at, state, call: thread.call, instead, requests, ..Waited::default() });
        }
        if let Some(wait) = (next != 0).then(|| self.threads.get_mut(&next).unwrap().wait.take()).flatten() {
            let wait = Waited { end: at, to: Some(cpu as u32), ..wait };
            self.done.push((next, wait, self.threads[&next].has_called));
        }
    }

    /// A thread that sleeps is woken.
    fn wake(&mut self, cpu: usize, (irq, softirq): (bool, bool)) {
        let is_asleep = |thread: &Thread| {
            thread.wait.as_ref().is_some_and(|wait| ["blocked", "uninterruptible"].contains(&wait.state))
        };
        let asleep: Vec<u32> =
            self.threads.iter().filter(|(_, thread)| is_asleep(thread)).map(|(tid, _)| *tid).collect();
        let Some(&tid) = asleep.get(self.random.below(asleep.len().max(1))) else { return };
        // The last one sleeps for long.
        if tid == 5 && self.random.below(40) != 0 {
            return;
        }
        let mut requests = self.threads[&tid].wait.as_ref().unwrap().requests.clone();
        // The disk is done with all but the last of three, and with that one too late.
        for (place, (_, end)) in requests.iter_mut().enumerate().filter(|(place, _)| *place < 2) {
            *end = Some(self.disk_is_done(cpu, place as u64));
        }
        let at = self.event(cpu, 1, &[&tid.to_le_bytes()]);
        if !requests.is_empty() {
            self.disk_is_done(cpu, 2);
        }
        let waker = Some((cpu as u32, self.running[cpu], irq, softirq));
        let thread = self.threads.get_mut(&tid).unwrap();
        let wait = Waited { end: at, waker, requests, ..thread.wait.take().unwrap() };
        thread.wait =
            Some(Waited { begin: at, state: "waiting for a CPU", call: thread.call, waker, ..Waited::default() });
        self.done.push((tid, wait, self.threads[&tid].has_called));
    }

    /// One of the three last requests is done.
    fn disk_is_done(&mut self, cpu: usize, place: u64) -> i64 {
        let sector = self.sector - u64::from(SECTORS) * (3 - place);
        let fields = [&DISK.to_le_bytes()[..], &sector.to_le_bytes(), &SECTORS.to_le_bytes(), &0u32.to_le_bytes()];
        self.event(cpu, 9, &fields)
    }

    fn runnable(&mut self) -> u32 {
        let can_run = |thread: &Thread| {
            thread.wait.as_ref().is_some_and(|wait| ["preempted", "waiting for a CPU"].contains(&wait.state))
        };
        let waiting: Vec<u32> =
            self.threads.iter().filter(|(_, thread)| can_run(thread)).map(|(tid, _)| *tid).collect();
        match waiting.len() {
            0 => 0,
            count => waiting[self.random.below(count)],
        }
    }

    fn interrupt(&mut self, cpu: usize) {
        let is_irq = self.random.below(2) == 0;
        let (entry, exit, number) = if is_irq { (4, 5, 41u32) } else { (6, 7, 4u32) };
        self.event(cpu, entry, &[&number.to_le_bytes()]);
        self.wake(cpu, (is_irq, !is_irq));
        let more: &[u8] = if is_irq { &[0; 4] } else { &[] };
        self.event(cpu, exit, &[&number.to_le_bytes(), more]);
    }

    /// Asks the disk for three things; only while no other thread does, so that their places
    /// distinguish them.
    fn ask(&mut self, cpu: usize, tid: u32) {
        let mut requests = Vec::new();
        for _ in 0..3 {
            let (sector, bytes) = (self.sector.to_le_bytes(), (SECTORS * 512).to_le_bytes());
            let fields = [
                &DISK.to_le_bytes()[..],
                &sector,
                &SECTORS.to_le_bytes(),
                &bytes,
                &tid.to_le_bytes(),
                &0u32.to_le_bytes(),
            ];
            requests.push((self.event(cpu, 8, &fields), None));
            self.sector += u64::from(SECTORS);
        }
        self.threads.get_mut(&tid).unwrap().wait = Some(Waited { requests, ..Waited::default() });
    }

    fn step(&mut self) {
        let cpu = self.random.below(2);
        let (tid, what) = (self.running[cpu], self.random.below(10));
        let is_asking =
            self.threads.values().any(|thread| thread.wait.as_ref().is_some_and(|wait| !wait.requests.is_empty()));
        match (tid, what) {
            (_, 0) => self.interrupt(cpu),
            (0, _) => {
                let next = self.runnable();
                if next != 0 {
                    self.switch(cpu, 0, next);
                } else if what < 4 {
                    self.interrupt(cpu);
                }
            }
            (_, 1 | 2) => {
                let fd = self.random.below(9) as i64;
                let thread = &self.threads[&tid];
                let call = match thread.call {
                    Some(_) => {
                        self.event(cpu, 3, &[&[0; 4]]);
                        None
                    }
                    None => Some((self.event(cpu, 2, &[&(fd as u32).to_le_bytes()]), fd)),
                };
                let thread = self.threads.get_mut(&tid).unwrap();
                (thread.call, thread.has_called) = (call, true);
            }
            (_, 3..6) => {
                if !is_asking && self.random.below(2) == 0 {
                    self.ask(cpu, tid);
                }
                let next = self.runnable();
                let state = 1 + self.random.below(2) as u32;
                self.switch(cpu, state, next);
            }
            (_, 6) => {
                let next = self.runnable();
                if next != 0 {
                    self.switch(cpu, 0, next);
                }
            }
            _ => self.wake(cpu, (false, false)),
        }
    }

    fn write(&self, folder: &Path, metadata: &str, ids: std::ops::Range<u32>) {
        std::fs::write(folder.join("metadata"), metadata).unwrap();
        for (cpu, events) in self.events.iter().enumerate() {
            let mut stream = Vec::new();
            for packet in events.chunks(40) {
                let told = packet.iter().filter(|(_, id, _)| ids.contains(id));
                let event = |(time, id, fields): &(u64, u32, Vec<u8>)| {
                    [&id.to_le_bytes()[..], &time.to_le_bytes(), fields].concat()
                };
                let content: Vec<u8> = told.flat_map(event).collect();
                let bits = (4 * 8 + 4 + content.len() as u64) * 8;
                let context = [packet[0].0, packet[packet.len() - 1].0, bits, bits];
                stream.extend(context.iter().flat_map(|word| word.to_le_bytes()));
                stream.extend((cpu as u32).to_le_bytes());
                stream.extend(content);
            }
            std::fs::write(folder.join(format!("channel_{cpu}")), stream).unwrap();
        }
    }
}

fn made(steps: usize) -> Machine {
    let mut machine = Machine::new();
    (0..steps).for_each(|_| machine.step());
    machine
}

fn built(folder: &Path, slice_bytes: Option<u64>) -> Arc<Timeline> {
    let options = OpenOptions { threads: 2, ..OpenOptions::default() };
    let mut session = Session::open(&[folder.to_owned()], &options).unwrap();
    session.slice_bytes = slice_bytes;
    let timeline = Arc::new(session).timeline(&TimelineOptions::default()).unwrap();
    timeline.start();
    timeline.wait(&Progress::default()).unwrap();
    timeline
}

/// The tracks of a timeline by their ids.
fn tracks(timeline: &Timeline) -> HashMap<String, Track> {
    timeline.catalogue(0, 0).tracks.into_iter().map(|track| (track.id.clone(), track)).collect()
}

/// The item of a thread at a time: the run's begin and end, its state, the reason.
fn asked(
    timeline: &Timeline,
    tracks: &HashMap<String, Track>,
    tid: u32,
    at: i64,
) -> (i64, i64, String, Option<WaitReason>) {
    let track = tracks[&format!("thread/0/{tid}/state")].number;
    let question = ItemQuestion { track, begin_ns: at, end_ns: at, limit: 1 };
    let found = timeline.items(&question, &Progress::default()).unwrap();
    assert!(found.complete);
    let [TrackItem::Run { begin_ns, end_ns, value, wait, .. }] = &found.items[..] else { panic!("{found:?}") };
    (*begin_ns, *end_ns, value.label.clone(), wait.as_deref().cloned())
}

/// The same as it was made.
fn told(tracks: &HashMap<String, Track>, (begin, end, state): (i64, i64, &'static str), wait: &WaitReason) -> Waited {
    let cpu = |number: u32| tracks.values().find(|track| track.number == number).unwrap().cpu.unwrap();
    let tid = |label: &str| label.strip_prefix("thread ").map_or(0, |tid| tid.parse().unwrap());
    Waited {
        begin,
        end,
        state,
        call: wait.call.as_ref().map(|call| {
            assert_eq!((call.value.label.as_str(), call.begin_known, call.in_doubt), ("read", true, false));
            (call.begin_ns, call.fd.unwrap())
        }),
        waker: wait.waker.as_ref().map(|waker| {
            let of = |value: &Option<TrackValue>, label| match value {
                Some(value) => {
                    assert_eq!(value.label, label);
                    true
                }
                None => false,
            };
            let (irq, softirq) = (of(&waker.irq, "irq 41"), of(&waker.softirq, "BLOCK"));
            (cpu(waker.from), tid(&waker.value.as_ref().unwrap().label), irq, softirq)
        }),
        instead: wait.instead.as_ref().map(|value| tid(&value.label)),
        to: wait.to.map(cpu),
        requests: wait.requests.iter().map(|request| (request.begin_ns, request.end_ns)).collect(),
    }
}

#[test]
fn why_threads_wait_is_told_as_it_was_however_long_that_took() {
    let folder = tempfile::tempdir().unwrap();
    let machine = made(6000);
    machine.write(folder.path(), &[METADATA, WAKEUPS, OTHERS].concat(), 0..99);
    let (many, one) = (built(folder.path(), Some(1)), built(folder.path(), None));
    assert!(many.chunks.len() > 40 && one.chunks.len() == 1, "{}", many.chunks.len());
    let (mut called, mut asked_disks, mut across) = (0, 0, 0);
    let (of_many, of_one) = (tracks(&many), tracks(&one));
    // The first thread runs before any switch, and its calls until then are known too late for
    // chunks before that.
    let switched = machine.done.iter().filter(|(tid, ..)| *tid == 1).map(|(_, waited, _)| waited.begin).min().unwrap();
    let is_known = |waited: &Waited| waited.begin > 0 && waited.call.is_none_or(|(entered, _)| switched < entered);
    for (tid, waited, has_called) in machine.done.iter().filter(|(_, waited, _)| is_known(waited)) {
        for (timeline, tracks) in [(&many, &of_many), (&one, &of_one)] {
            let at = i64::midpoint(waited.begin, waited.end);
            let (begin, end, label, wait) = asked(timeline, tracks, *tid, at);
            assert_eq!((begin, end, label.as_str()), (waited.begin, waited.end, waited.state), "{waited:?}");
            let wait = wait.unwrap();
            let mut expected = waited.clone();
            if expected.state == "waiting for a CPU" {
                // The thread that ran on the CPU that took it, when it was woken.
                let ran = asked_cpu(timeline, tracks, expected.to.unwrap(), waited.begin);
                expected.instead = Some(ran);
            }
            let chunk = |at: i64| timeline.chunk_at(at - timeline.span.0);
            // Only requests in the chunk in which it begins to wait are known, if they end there or
            // where it was woken.
            expected.requests.retain(|(asked, _)| chunk(*asked) == chunk(begin));
            let is_read = |end: &i64| [begin, waited.end].map(chunk).contains(&chunk(*end));
            expected.requests.iter_mut().for_each(|(_, end)| *end = end.filter(is_read));
            assert_eq!(told(tracks, (begin, end, waited.state), &wait), expected, "{wait:?}");
            let unknown: &[&str] = if *has_called { &[] } else { &["call"] };
            assert_eq!((&wait.unknown[..], wait.unrecorded.len()), (unknown, 0), "{waited:?}");
            called += usize::from(wait.call.is_some());
            asked_disks += wait.requests.len();
            across += usize::from(chunk(end) > chunk(begin) + 3);
        }
    }
    assert!(called > 200 && asked_disks > 50 && across > 10, "{called} {asked_disks} {across}");
}

/// The thread on a CPU at a time, from the CPU's own track.
fn asked_cpu(timeline: &Timeline, tracks: &HashMap<String, Track>, cpu: u32, at: i64) -> u32 {
    let track = tracks[&format!("cpu/0/{cpu}/thread")].number;
    let question = ItemQuestion { track, begin_ns: at, end_ns: at, limit: 1 };
    let found = timeline.items(&question, &Progress::default()).unwrap();
    let [TrackItem::Run { value, wait: None, .. }] = &found.items[..] else { panic!("{found:?}") };
    value.label.strip_prefix("thread ").map_or(0, |tid| tid.parse().unwrap())
}

#[test]
fn what_was_not_recorded_is_said() {
    let machine = made(800);
    let is_asleep = |(_, waited, _): &&(u32, Waited, bool)| waited.state == "blocked" && waited.begin > 0;
    let (tid, waited, _) = machine.done.iter().filter(is_asleep).nth(9).unwrap();
    for (metadata, ids, unrecorded) in [
        ([METADATA, WAKEUPS].concat(), 0..2, &["calls", "interrupts", "requests"][..]),
        (METADATA.to_owned(), 0..1, &["calls", "wakeups", "interrupts", "requests"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        machine.write(folder.path(), &metadata, ids);
        let timeline = built(folder.path(), Some(1));
        let (.., wait) = asked(&timeline, &tracks(&timeline), *tid, waited.begin);
        let wait = wait.unwrap();
        assert_eq!((&wait.unrecorded[..], wait.call, wait.requests), (unrecorded, None, vec![]));
        let waker = wait.waker.map(|waker| (waker.irq, waker.softirq));
        assert_eq!(waker, (!unrecorded.contains(&"wakeups")).then_some((None, None)));
    }
}

/// Answers with many items have states without reasons.
#[test]
fn only_a_few_are_told_why() {
    let folder = tempfile::tempdir().unwrap();
    let machine = made(800);
    machine.write(folder.path(), &[METADATA, WAKEUPS, OTHERS].concat(), 0..99);
    let timeline = built(folder.path(), None);
    let track = tracks(&timeline)["thread/0/2/state"].number;
    for (limit, is_told) in [(super::WAITS_MAX as u32, true), (super::WAITS_MAX as u32 + 1, false)] {
        let question = ItemQuestion { track, begin_ns: 0, end_ns: i64::MAX, limit };
        let found = timeline.items(&question, &Progress::default()).unwrap();
        let has_wait = |item: &TrackItem| matches!(item, TrackItem::Run { wait: Some(_), .. });
        assert_eq!((found.items.len(), found.items.iter().any(has_wait)), (limit as usize, is_told));
    }
}

/// Events of a kernel, one after the other, about one thread that waits.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Since when, and whether it can run.
    away: Option<(i64, bool)>,
    /// The call's name, its file, when.
    call: Option<(String, Option<i64>, i64)>,
}

/// A wait as [`replayed`] found it: thread, begin and end, call, waker (CPU, thread, interrupt,
/// softirq).
type Found = (i64, (i64, i64), Option<(String, Option<i64>, i64)>, (u64, i64, bool, bool));

/// All times that threads slept until they were woken, told by playing the printed events through.
fn replayed(text: &str) -> Vec<Found> {
    let mut threads: BTreeMap<i64, Seen> = BTreeMap::new();
    let mut cpus: BTreeMap<u64, (i64, bool, bool)> = BTreeMap::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let (name, payload) = (event["event"].as_str().unwrap(), &event["payload"]);
        let (time, cpu) = (event["time"].as_i64().unwrap(), event["packet_context"]["cpu_id"].as_u64().unwrap());
        let on_cpu = cpus.entry(cpu).or_default();
        let number = |name: &str| payload[name].as_i64().unwrap();
        match name {
            "sched_switch" => {
                let (prev, next) = (number("prev_tid"), number("next_tid"));
                on_cpu.0 = next;
                // Some kernels report preempted threads so.
                let can_run = [0, 2048].contains(&number("prev_state"));
                threads.entry(prev).or_default().away = Some((time, can_run));
                threads.entry(next).or_default().away = None;
            }
            "sched_waking" | "sched_wakeup" => {
                let tid = number("tid");
                let seen = threads.entry(tid).or_default();
                if let Some((begin, false)) = seen.away {
                    found.push((tid, (begin, time), seen.call.clone(), (cpu, on_cpu.0, on_cpu.1, on_cpu.2)));
                    seen.away = Some((time, true));
                }
            }
            "irq_handler_entry" => on_cpu.1 = true,
            "irq_handler_exit" => on_cpu.1 = false,
            "irq_softirq_entry" => on_cpu.2 = true,
            "irq_softirq_exit" => on_cpu.2 = false,
            _ => {
                let seen = threads.entry(on_cpu.0).or_default();
                let entry = name.strip_prefix("syscall_entry_");
                let fd = ["fd", "epfd", "ufd"].into_iter().find_map(|name| payload[name].as_i64());
                seen.call = entry.map(|name| (name.to_owned(), fd, time));
            }
        }
    }
    found
}

/// The number that a thread's label ends with; 0 without a thread.
fn tid_of(label: &str) -> i64 {
    let digits = label.trim_end_matches(')').rsplit(|letter: char| !letter.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// The same of a kernel's trace, with a count that knows nothing of timelines.
#[test]
fn why_threads_of_a_kernel_wait_is_what_its_events_say() {
    let near = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let corpus = std::env::var_os("KYMO_CORPUS").map_or_else(near, PathBuf::from);
    let trace = corpus.join("ctf/tracecompass/many-threads");
    if !trace.exists() {
        eprintln!("CORPUS ABSENT: {} is not there; waits of a kernel's threads are not compared", trace.display());
        return;
    }
    let timeline = built(&trace, Some(1 << 20));
    let patterns = ["sched_switch", "sched_wak*", "irq_*_entry", "irq_*_exit", "syscall_*"];
    let selection = Selection { events: patterns.map(str::to_owned).to_vec(), ..Selection::default() };
    let options = PrintOptions { format: PrintFormat::Json, selection, ..PrintOptions::default() };
    let mut text = Vec::new();
    timeline.session.print(&options, &mut text, &Progress::default()).unwrap();
    let found = replayed(std::str::from_utf8(&text).unwrap());
    assert!(found.len() > 5000, "{}", found.len());
    let (tracks, mut told) = (tracks(&timeline), [0; 4]);
    let cpus: HashMap<u32, u32> = tracks.values().filter_map(|track| Some((track.number, track.cpu?))).collect();
    for (tid, (begin, end), call, woken) in found.iter().filter(|(tid, ..)| *tid != 0).step_by(17) {
        let (from, to, label, wait) = asked(&timeline, &tracks, *tid as u32, *begin);
        let wait = wait.unwrap();
        assert_eq!((from, to), (*begin, *end), "{tid}: {label}");
        let known = wait.call.as_ref().map(|call| (call.value.label.clone(), call.fd, call.begin_ns));
        // Calls that were entered before the trace are known by their ends alone.
        if call.is_some() || wait.call.as_ref().is_some_and(|call| call.begin_known) {
            assert_eq!(&known, call, "{tid} at {begin}");
        }
        let waker = wait.waker.unwrap();
        let ran = tid_of(&waker.value.unwrap().label);
        let cpu = cpus[&waker.from];
        let (irq, softirq) = (waker.irq.is_some(), waker.softirq.is_some());
        assert_eq!((u64::from(cpu), ran, irq, softirq), *woken, "{tid} at {begin}");
        for (place, is_it) in
            [call.is_some(), known.is_some_and(|call| call.1.is_some()), softirq, irq].into_iter().enumerate()
        {
            told[place] += u32::from(is_it);
        }
        assert_eq!(wait.unrecorded, ["requests"]);
    }
    assert!(told[0] > 100 && told[1] > 5 && told[2] > 10, "calls, files, softirqs, interrupts: {told:?}");
}
