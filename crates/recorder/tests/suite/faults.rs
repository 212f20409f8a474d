//! Whatever happens to programs, recorders and disks: what is in a trace can be read, and what is not is counted.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

use kymo_lane::{ClockSource, OverflowMode, RecordingSettings, WriterThread};
use kymo_recorder::clock::TickSource;
use kymo_recorder::program::{DrainTiming, Program, ProgramFacts, ProgramIdentity, ProgramRefusal};
use kymo_recorder::trace::{Everything, Output, OutputOptions, SingleTrace};
use kymo_recorder::{EventRun, LaneEnd, RunSink, repair};
use kymo_schema::definition::{Definition, parse};

use crate::recording::{Recording, Stage, WANTS, check, numbers, read, wait};

fn is_from(numbers: &[u64], first: u64) -> bool {
    numbers.iter().copied().eq(first..first + numbers.len() as u64)
}

#[test]
fn what_is_written_and_what_is_counted_is_all() {
    let stage = Stage::new();
    let mut running = stage.program(2);
    let path = stage.path("trace");
    let few = RecordingSettings { lane: 2, pool: 3, ..WANTS };
    let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &few);
    recording.until_done(&mut running, "numbers 300000");
    let tally = recording.finish(DrainTiming::Now);
    assert_eq!(tally.events + tally.discarded, 600_000);
    assert!(tally.discarded > 0, "the pool was meant to be too small");
    let (lines, report) = read(&path);
    assert_eq!((report.events_discarded, report.discarded_is_lower_bound), (tally.discarded, false));
    assert_eq!((report.packets_lost, lines.len() as u64), (0, tally.events + tally.own));
    for numbers in numbers(&lines).values() {
        assert!(numbers.is_sorted_by(|one, next| one < next), "they are out of order");
    }
    check(&path);
}

#[test]
fn of_a_program_that_is_killed_everything_up_to_its_last_event_is_there() {
    for _ in 0..5 {
        let stage = Stage::new();
        let mut running = stage.program(2);
        let path = stage.path("trace");
        let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &WANTS);
        running.tell("slowly 1000000");
        wait("an event", || {
            recording.step(DrainTiming::Wait).expect("it is there");
            recording.output.tally().events > 100
        });
        assert!(!recording.program.is_dead(), "it runs");
        running.child.kill().expect("it runs");
        running.child.wait().expect("it ran");
        assert!(recording.program.is_dead(), "nobody has its memory");
        let tally = recording.finish(DrainTiming::Last);
        let (lines, report) = read(&path);
        assert!(report.is_complete() && !report.has_losses(), "{report:?}");
        let found = numbers(&lines);
        assert!(found.values().all(|numbers| is_from(numbers, 0)), "something is missing in between");
        assert_eq!(found.values().map(|numbers| numbers.len() as u64).sum::<u64>(), tally.events);
        check(&path);
    }
}

/// Is killed when it has taken so many runs.
struct Mortal<'o>(&'o mut Output, u32);

impl RunSink for Mortal<'_> {
    fn take(&mut self, program: &ProgramFacts, run: &EventRun<'_>) {
        self.0.take(program, run, &mut Everything);
        self.1 -= 1;
        assert!(self.1 > 0, "killed");
    }

    fn end(&mut self, program: &ProgramFacts, end: &LaneEnd) {
        self.0.end(program, end);
    }
}

#[test]
fn a_recorder_goes_on_where_one_before_it_was_killed() {
    let stage = Stage::new();
    let mut running = stage.program(2);
    let (first, second) = (stage.path("first"), stage.path("second"));
    let mut recording = Recording::begin(running.open(), &first, OutputOptions::default(), &WANTS);
    running.tell("numbers 60000");
    running.wait_for("done");
    let taken = Program::open(
        &running.control,
        fs::metadata(&running.control).map_or(0, |it| {
            use std::os::unix::fs::MetadataExt;
            it.uid()
        }),
    );
    assert!(matches!(taken, Err(ProgramRefusal::Taken)), "two recorders have one program");
    let killed = catch_unwind(AssertUnwindSafe(|| {
        recording.program.drain(DrainTiming::Now, &mut Mortal(&mut recording.output, 7))
    }));
    assert!(killed.is_err(), "it was meant to be killed");
    drop(recording);
    // The last thing that it did was half of a packet.
    let file = File::options().append(true).open(first.join("lane_1")).expect("it is there");
    std::io::Write::write_all(&mut &file, &fs::read(first.join("lane_1")).expect("it is there")[..200]).expect("room");
    let repaired = repair(&first).expect("it can be written");
    assert_eq!(repaired.cut_bytes, 200);
    check(&first);
    let mut program = running.open();
    program.resume(&repaired.programs[&program.identity().key]);
    let mut recording = Recording::begin(program, &second, OutputOptions::default(), &WANTS);
    recording.until_done(&mut running, "all 10");
    recording.finish(DrainTiming::Now);
    let (mut lines, _) = read(&first);
    let before = lines.len();
    lines.extend(read(&second).0);
    assert!(before > 1000 && lines.len() > before + 1000, "{before} of {}", lines.len());
    let found = numbers(&lines);
    assert_eq!(found.len(), 2);
    for (thread, numbers) in found {
        let fault = numbers.iter().zip(0..).find(|(found, number)| **found != *number);
        assert_eq!((fault, numbers.len()), (None, 60_000), "thread {thread}: a hole, or something twice");
    }
    check(&second);
}

#[test]
fn a_program_that_cuts_its_memory_off_is_gone_and_its_trace_stays() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let path = stage.path("trace");
    let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &WANTS);
    recording.until_done(&mut running, "numbers 50000");
    recording.step(DrainTiming::Now).expect("it is there");
    let file = File::options().write(true).open(&running.control).expect("it is there");
    for bytes in [6 << 20, 4096, 100, 0] {
        file.set_len(bytes).expect("it can be cut");
        let _ = recording.step(DrainTiming::Now);
        let _ = recording.program.definitions();
    }
    assert!(recording.step(DrainTiming::Now).is_err(), "nothing is there");
    let tally = recording.output.finish(&mut recording.clock).expect("it can be written");
    assert_eq!((tally.events, numbers(&read(&path).0)[&1].len()), (50_000, 50_000));
    check(&path);
}

/// Numbers that look like any.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// What a program leaves when it is killed while a recorder had not taken everything.
fn left_behind(stage: &Stage) -> (std::path::PathBuf, u32) {
    use std::os::unix::fs::MetadataExt;
    let mut running = stage.program(2);
    let program = running.open();
    program.say(&RecordingSettings { contexts: 1 | 1 << 3, ..WANTS }).expect("it is there");
    (0..2).for_each(|id| program.switch(id, 1).expect("it is there"));
    running.tell("numbers 4000");
    running.wait_for("done");
    running.tell("all 500");
    running.wait_for("done");
    let control = running.control.clone();
    let user = fs::metadata(&control).expect("it is there").uid();
    (control, user)
}

fn record_what_is_left(control: &Path, user: u32, path: &Path) -> Option<kymo_recorder::trace::Tally> {
    let mut program = Program::open(control, user).ok()?;
    let mut clock = TickSource::begin(program.identity().clock);
    // An hour is long enough for what was recorded before.
    let earliest = clock.now().saturating_sub(3600 * clock.frequency());
    let mut output = Output::create(path, OutputOptions::default(), &mut clock, earliest).expect("there is room");
    let _ = program.definitions();
    output.program(program.known());
    for patience in [DrainTiming::Wait, DrainTiming::Now, DrainTiming::Last] {
        let _ = program.drain(patience, &mut SingleTrace(&mut output));
        output.beat(&mut clock);
    }
    let _ = program.reap(true, &mut SingleTrace(&mut output));
    let _ = program.end(clock.now(), &mut SingleTrace(&mut output));
    Some(output.finish(&mut clock).expect("there is room"))
}

#[test]
fn whatever_a_program_says_what_is_written_can_be_read() {
    let stage = Stage::new();
    let (control, user) = left_behind(&stage);
    let file = File::options().read(true).write(true).open(&control).expect("it is there");
    let mut before = vec![0; 8 << 20];
    file.read_exact_at(&mut before, 0).expect("it is there");
    let whole = record_what_is_left(&control, user, &stage.path("whole")).expect("it is a program's");
    assert_eq!((whole.events, whole.unreadable), (9_000, 0));
    let (mut less, mut none) = (0, 0);
    for round in 0..120_u64 {
        let mut chance = Chance(round + 1);
        let mut bytes = before.clone();
        for _ in 0..=chance.next() % 8 {
            // The header, control bytes and lanes, descriptors, definitions, sub-buffers.
            let (from, to) =
                [(0, 1100), (69_632, 70_000), (331_776, 333_000), (1_118_000, 1_119_000), (5_300_000, 8 << 20)]
                    [chance.next() as usize % 5];
            let at = from + chance.next() as usize % (to - from);
            let word = [0, u64::MAX, chance.next(), chance.next() & 0xffff][chance.next() as usize % 4].to_le_bytes();
            let count = 1 + chance.next() as usize % 8;
            let end = (at + count).min(bytes.len());
            bytes[at..end].copy_from_slice(&word[..end - at]);
        }
        file.write_all_at(&bytes, 0).expect("there is room");
        let path = stage.path("trace");
        match record_what_is_left(&control, user, &path) {
            None => none += 1,
            Some(tally) => {
                let (lines, report) = read(&path);
                assert!(report.is_complete(), "round {round}: {report:?}");
                assert_eq!(lines.len() as u64, tally.events + tally.own, "round {round}");
                check(&path);
                less += u64::from(tally.events < whole.events);
                fs::remove_dir_all(&path).expect("it is there");
            }
        }
    }
    assert!(
        less > 10 && less + none < 120,
        "{less} have less events, {none} are none: these are no faults to learn from"
    );
}

/// Bytes of an event of a number that carries its CPU and its thread's name.
const NUMBER_BYTES: u64 = 32;
/// The lanes of a program with the default layout: behind the header and the control bytes.
const LANES: u64 = 4096 + 65_536;
/// Where descriptions of sub-buffers are, and of each what is published, and its begin.
const DESCRIPTORS: u64 = 331_776;
const PUBLISHED: u64 = 8;
const BEGIN: u64 = 24;

#[test]
fn a_clock_that_steps_back_a_little_costs_no_event() {
    let stage = Stage::new();
    let (control, user) = left_behind(&stage);
    let file = File::options().read(true).write(true).open(&control).expect("it is there");
    let change = |at: u64, by: i32| {
        let mut ticks = [0; 4];
        file.read_exact_at(&mut ticks, at).expect("it is there");
        let ticks = u32::from_le_bytes(ticks).wrapping_add_signed(by);
        file.write_all_at(&ticks.to_le_bytes(), at).expect("there is room");
    };
    let mut before = vec![0; 8 << 20];
    file.read_exact_at(&mut before, 0).expect("it is there");
    let layout = kymo_lane::MemoryLayout::default();
    // All of these are full of numbers.
    for number in 0..6_u32 {
        let (begin, events) = (layout.sub_buffer(number), u64::from(layout.sub_buffer_bytes) / NUMBER_BYTES);
        // Before the begin, back and still back, forth again.
        [0, 100, 101, 500].into_iter().for_each(|event| change(begin + NUMBER_BYTES * event + 2, -300_000));
        let described = DESCRIPTORS + 128 * u64::from(number);
        match number {
            // The last one of all, too; or the begin itself, which is before the end of the sub-buffer before it.
            0 | 1 => {
                [described + PUBLISHED, begin + NUMBER_BYTES * (events - 1) + 2]
                    .into_iter()
                    .for_each(|at| change(at, -5));
            }
            2 | 3 => change(described + BEGIN, -300_000),
            _ => {}
        }
    }
    let path = stage.path("trace");
    let tally = record_what_is_left(&control, user, &path).expect("it is a program's");
    assert_eq!((tally.events, tally.unreadable, tally.discarded, tally.missing), (9_000, 0, 0, 0));
    // All of 24 but those before which the program had lost its processor for longer than the step.
    assert!(tally.stepped >= 12, "{tally:?}");
    let (lines, report) = read(&path);
    assert!(report.is_complete() && lines.len() as u64 == tally.events + tally.own, "{report:?}");
    for numbers in numbers(&lines).values() {
        assert_eq!((numbers.len(), numbers.is_sorted_by(|one, next| one < next)), (4_000, true));
    }
    check(&path);

    // Far back is no such step: what is behind it cannot be told.
    file.write_all_at(&before, 0).expect("there is room");
    change(layout.sub_buffer(0) + NUMBER_BYTES * 100 + 2, -300_000_000);
    let path = stage.path("far");
    let tally = record_what_is_left(&control, user, &path).expect("it is a program's");
    assert!(tally.events < 9_000 && tally.unreadable > 0, "{tally:?}");
}

#[test]
fn files_go_from_lane_to_lane() {
    let stage = Stage::new();
    let mut running = stage.program(2);
    let path = stage.path("trace");
    let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &WANTS);
    for _ in 0..5 {
        recording.until_done(&mut running, "numbers 100");
        recording.step(DrainTiming::Now).expect("it is there");
        // Whether threads are gone is looked at once in a second.
        std::thread::sleep(std::time::Duration::from_millis(1010));
        let Recording { program, output, .. } = &mut recording;
        program.reap(true, &mut SingleTrace(output)).expect("it is there");
    }
    let tally = recording.finish(DrainTiming::Now);
    assert_eq!((tally.events, tally.discarded), (1_000, 0));
    assert!(tally.files <= 3, "10 threads, of which 2 ran at a time, have {} files", tally.files);
    assert_eq!(read(&path).0.len() as u64, tally.events + tally.own);
    check(&path);
}

#[test]
fn a_flight_recorder_has_the_last_events() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let program = running.open();
    program
        .say(&RecordingSettings { mode: OverflowMode::OverwriteOldest, lane: 4, pool: 8, contexts: 0 })
        .expect("it is there");
    let mut program = program;
    (0..2).for_each(|id| program.switch(id, 1).expect("it is there"));
    running.tell("numbers 100000");
    running.wait_for("done");
    for name in ["once", "again"] {
        let path = stage.path(name);
        let mut clock = TickSource::begin(program.identity().clock);
        let earliest = clock.now().saturating_sub(60 * clock.frequency());
        let mut output = Output::create(&path, OutputOptions::default(), &mut clock, earliest).expect("there is room");
        program.snapshot(&mut SingleTrace(&mut output)).expect("it is there");
        let tally = output.finish(&mut clock).expect("there is room");
        assert_eq!((tally.discarded, tally.missing, tally.unreadable), (0, 0, 0));
        let found = &numbers(&read(&path).0)[&1];
        assert!(is_from(found, 100_000 - found.len() as u64) && found.len() > 1000, "{} events", found.len());
        check(&path);
    }
}

/// The recorder takes no events from a flight recorder and so knows none of its lanes; threads may end without notice there, too.
#[test]
fn a_flight_recorder_takes_lanes_from_ended_threads() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let mut program = running.open();
    program
        .say(&RecordingSettings { mode: OverflowMode::OverwriteOldest, lane: 4, pool: 8, contexts: 0 })
        .expect("it is there");
    (0..2).for_each(|id| program.switch(id, 1).expect("it is there"));
    running.tell("numbers 100");
    running.wait_for("done");
    // The thread may give the lane back a little later than it says that it is done.
    wait("the lane", || program.lane().holder(0).expect("it is there").is_none());
    // The lane's state becomes that of a lane that its thread did not give back.
    let file = std::fs::File::options().write(true).open(program.path()).expect("it is there");
    file.write_all_at(&[1], LANES).expect("there is room");
    let holder = program.lane().holder(0).expect("it is there").expect("the thread has it again");
    assert!(holder.tid.is_some(), "{holder:?}");
    let mut clock = TickSource::begin(program.identity().clock);
    let mut output = Output::create(&stage.path("trace"), OutputOptions::default(), &mut clock, 0).expect("it can be");
    program.reap(false, &mut SingleTrace(&mut output)).expect("it is there");
    assert_eq!(program.lane().holder(0).expect("it is there"), None);
}

#[test]
fn chunks_are_traces_and_a_ring_has_the_last_ones() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let (all, ring) = (stage.path("all"), stage.path("ring"));
    let options = OutputOptions { chunk_bytes: Some(200_000), ..OutputOptions::default() };
    let mut recording = Recording::begin(running.open(), &all, options, &WANTS);
    for _ in 0..5 {
        recording.until_done(&mut running, "slowly 4000");
        recording.step(DrainTiming::Now).expect("it is there");
        std::thread::sleep(std::time::Duration::from_millis(1000));
    }
    let tally = recording.finish(DrainTiming::Now);
    let chunks = fs::read_dir(&all).expect("it is there").count() as u64;
    assert!(chunks >= 2 && chunks == tally.chunks, "{chunks} of {}", tally.chunks);
    let (lines, report) = read(&all);
    assert!(report.is_complete() && !report.has_losses(), "{report:?}");
    assert_eq!((numbers(&lines)[&1].len(), tally.events), (20_000, 20_000));
    check(&all);
    let options = OutputOptions { ring_bytes: Some(400_000), chunk_bytes: Some(50_000), ..OutputOptions::default() };
    let mut recording = Recording::begin(running.open(), &ring, options, &WANTS);
    for _ in 0..10 {
        recording.until_done(&mut running, "numbers 5000");
        recording.step(DrainTiming::Now).expect("it is there");
        std::thread::sleep(std::time::Duration::from_millis(1000));
    }
    let tally = recording.finish(DrainTiming::Now);
    let (lines, report) = read(&ring);
    assert!(report.is_complete() && tally.deleted > 0, "{tally:?}");
    let found = &numbers(&lines)[&1];
    assert!(found.len() < 50_000 && found.ends_with(&(0..5000).collect::<Vec<u64>>()), "{} events", found.len());
}

#[test]
fn a_folder_that_is_removed_is_told_and_what_is_lost_is_counted() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let path = stage.path("trace");
    let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &WANTS);
    recording.until_done(&mut running, "numbers 1000");
    recording.step(DrainTiming::Now).expect("it is there");
    fs::remove_dir_all(&path).expect("it is there");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    recording.step(DrainTiming::Now).expect("it is there");
    recording.until_done(&mut running, "numbers 1000");
    recording.step(DrainTiming::Now).expect("it is there");
    let said = recording.output.error().expect("it is told").to_string();
    assert!(said.contains("No such file"), "{said}");
    let tally = recording.output.tally();
    assert_eq!((tally.events, tally.unwritten, tally.discarded), (0, 2000, 2000));
    assert!(recording.output.finish(&mut recording.clock).is_err(), "it is told at the end too");
}

#[test]
fn on_a_full_disk_the_trace_so_far_stays_and_goes_on_when_there_is_room() {
    let stage = Stage::new();
    let disk = stage.path("disk");
    fs::create_dir(&disk).expect("there is room");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&disk).output();
    if !mount.is_ok_and(|it| it.status.success()) {
        return eprintln!("a small disk cannot be mounted here: what happens on full ones is not tested");
    }
    let path = disk.join("trace");
    let mut running = stage.program(1);
    fs::write(disk.join("filler"), vec![1; 500_000]).expect("there is room");
    let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &WANTS);
    recording.until_done(&mut running, "numbers 100000");
    recording.step(DrainTiming::Now).expect("it is there");
    let said = recording.output.error().map(ToString::to_string);
    let (lines, report) = read(&path);
    fs::remove_file(disk.join("filler")).expect("it is there");
    recording.until_done(&mut running, "numbers 1000");
    let tally = recording.finish(DrainTiming::Now);
    let (after, last) = read(&path);
    let copied = Command::new("cp").arg("-r").arg(&path).arg(stage.path("copy")).status();
    let unmounted = Command::new("umount").arg(&disk).status();
    check(&stage.path("copy"));
    assert!(copied.is_ok_and(|it| it.success()) && unmounted.is_ok_and(|it| it.success()), "it can be unmounted");
    assert!(said.as_ref().is_some_and(|said| said.contains("No space")), "{said:?}");
    assert!(report.is_complete() && lines.len() > 1000, "{report:?}");
    assert!(tally.unwritten > 0 && after.len() > lines.len());
    assert_eq!((tally.events + tally.discarded, last.events_discarded), (101_000, tally.discarded));
}

/// A program that is not there, with so many events.
fn liar(key: u64, events: u32) -> ProgramFacts {
    let event = |id: u32| match parse(format!("event of{key}:{id}").as_bytes()) {
        Ok(Definition::Event(class)) => Some(std::sync::Arc::new(class)),
        other => panic!("{other:?}"),
    };
    let identity = ProgramIdentity { key, pid: 1, name: String::from("liar"), ..ProgramIdentity::default() };
    ProgramFacts { identity, events: (0..events).map(event).collect(), ..ProgramFacts::default() }
}

/// What it says, some ticks behind the begin.
fn said(begin: u64, last: u64, bytes: &[u8]) -> EventRun<'_> {
    let (thread, discarded) = (WriterThread::default(), 0);
    let (lane, sequence, from, contexts, discarded_ever, missing) = (0, 0, 0, 0, 0, 0);
    EventRun { lane, thread, sequence, from, contexts, begin, last, bytes, discarded, discarded_ever, missing }
}

fn event(id: u16, ticks: u64) -> Vec<u8> {
    [&id.to_le_bytes(), &(ticks as u32).to_le_bytes()[..]].concat()
}

fn output_now(path: &Path) -> (Output, TickSource, u64) {
    let mut clock = TickSource::begin(ClockSource::Counter);
    let now = clock.now();
    let output = Output::create(path, OutputOptions::default(), &mut clock, now).expect("there is room");
    (output, clock, now)
}

/// Losses without a packet: the trace gives the reasons by which the summary counts them.
#[test]
fn a_trace_gives_the_reasons_of_its_tally() {
    let stage = Stage::new();
    let path = stage.path("trace");
    let (mut output, mut clock, now) = output_now(&path);
    let known = liar(1, 1);
    output.end(
        &known,
        &LaneEnd { lane: 3, thread: WriterThread::default(), discarded: 5, discarded_ever: 5, ticks: now },
    );
    output.lost(&known, 7, 7);
    let tally = output.finish(&mut clock).expect("it can be written");
    assert_eq!((tally.discarded, tally.no_lane, tally.unwritten, tally.undefined), (12, 7, 0, 0));
    let (lines, report) = read(&path);
    let why = |events: u64| {
        let wanted = format!(" events = {events},");
        let line = lines.iter().find(|line| line.contains("kymo:lost") && line.contains(&wanted));
        line.and_then(|line| line.split("why = ").nth(1)?.split(',').next()).unwrap_or_default().to_owned()
    };
    assert!(why(5).contains("\"full\"") && why(7).contains("\"no_lane\""), "{lines:#?}");
    assert_eq!(report.events_discarded, 12);
}

#[test]
fn more_events_than_there_are_ids_are_counted_when_no_other_folder_can_be_made() {
    let stage = Stage::new();
    let path = stage.path("trace");
    let (mut output, mut clock, now) = output_now(&path);
    fs::create_dir(stage.path("trace-2")).expect("there is room");
    fs::write(stage.path("trace-2/metadata"), "another's").expect("there is room");
    for key in [1, 2] {
        let known = liar(key, 40_000);
        for part in 0..4_u16 {
            let bytes: Vec<u8> = (0..10_000).flat_map(|id| event(part * 10_000 + id, now)).collect();
            let sequence = u64::from(part);
            output.take(&known, &EventRun { sequence, ..said(now, now, &bytes) }, &mut Everything);
        }
    }
    output.beat(&mut clock);
    let tally = output.tally().clone();
    assert_eq!((tally.events + tally.unwritten, tally.discarded), (80_000, tally.unwritten));
    assert!(tally.events >= 60_000 && tally.unwritten > 10_000, "{tally:?}");
    assert!(output.error().is_some_and(|error| error.to_string().contains("trace-2")), "{:?}", output.error());
    // When there is room, they have ids.
    fs::remove_dir_all(stage.path("trace-2")).expect("it is there");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    output.beat(&mut clock);
    output.take(&liar(2, 40_000), &said(now, now, &event(39_999, now)), &mut Everything);
    let tally = output.finish(&mut clock).expect("it can be written");
    assert_eq!(tally.chunks, 2);
    let mut lines = read(&path).0.len();
    lines += read(&stage.path("trace-2")).0.len();
    assert_eq!(lines as u64, tally.events + tally.own);
    check(&path);
}

#[test]
fn an_event_of_the_last_tick_that_can_be_said_is_no_other_than_others() {
    let stage = Stage::new();
    let path = stage.path("trace");
    let (mut output, mut clock, now) = output_now(&path);
    let (begin, known) = (now - u64::from(u32::MAX) - 1000, liar(1, 1));
    output.wants(now, u64::MAX);
    let last = begin + u64::from(u32::MAX);
    output.take(&known, &said(begin, last, &event(0, last)), &mut Everything);
    assert_eq!((output.tally().events, output.tally().outside), (0, 1));
    output.take(&known, &EventRun { sequence: 1, ..said(now, now, &event(0, now)) }, &mut Everything);
    let tally = output.finish(&mut clock).expect("it can be written");
    assert_eq!((tally.events, tally.unwritten), (1, 0));
    check(&path);
}

#[test]
fn what_events_carry_cannot_be_anything_each_time() {
    let stage = Stage::new();
    let path = stage.path("trace");
    let (mut output, mut clock, now) = output_now(&path);
    let mut known = liar(1, 1);
    for id in 0..16 {
        let Ok(Definition::Context(context)) = parse(format!("context c{id} {id}\nfield u8 c{id}").as_bytes()) else {
            panic!("it is one")
        };
        known.contexts.push(Some(std::sync::Arc::new(context)));
    }
    // Nobody knows what that is.
    for bit in [1 << 15, 1 << 32, 1 << 63] {
        output.take(&known, &EventRun { contexts: bit, ..said(now, now, &event(0, now)) }, &mut Everything);
    }
    assert_eq!((output.tally().events, output.tally().unreadable), (0, 18));
    for lane in 0..300_u16 {
        let contexts = u64::from(lane) << 16;
        let bytes = [event(0, now), vec![1; contexts.count_ones() as usize]].concat();
        output.take(&known, &EventRun { lane, contexts, ..said(now, now, &bytes) }, &mut Everything);
    }
    let tally = output.finish(&mut clock).expect("it can be written");
    assert!(tally.events == 64 && tally.files <= 65 && tally.unreadable > 236 * 6, "{tally:?}");
    check(&path);
}
