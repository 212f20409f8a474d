//! Filters in programs: what a program keeps is what the recorder would keep, wherever it is asked, also while filters are switched.
//!
//! This module is also the programs: it starts itself.

mod random;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_lane::judgement::JudgementKind;
use kymo_lane::{
    Arena, FilterCode, FilterCodeKind, FilterEngine, OTHER_GROUPS, OverflowMode, RecordingGroups, RecordingSettings,
};
use kymo_recorder::filters::{
    ClassFilter, FallbackReason, FilterCompiler, FilterPlace, JudgedEntry, JudgedEvent, Placed, Placer,
    ProgramConstants,
};
use kymo_recorder::program::{DrainTiming, Program, ProgramFacts};
use kymo_recorder::{EventRun, LaneEnd, RunSink};
use kymo_schema::definition::EventClass;
use kymo_tracer::Event;

/// What is filtered. Who needs it makes it known. An event of `event!` does that by itself, in each process of this
/// binary: the programs of other tests are among those, and expect that their own events have the first ids.
static SAMPLE: Event = Event::new(b"event test:sample\nfield u32 value\nfield text text\n");
/// How far the program is.
static MARK: Event = Event::new(b"event test:mark\nfield u32 iteration\n");

fn sample(value: u32, text: &str) {
    kymo_tracer::recorded!(SAMPLE, value: u32, text: &str);
}

fn mark(iteration: u32) {
    kymo_tracer::recorded!(MARK, iteration: u32);
}

/// Says which program this is to be.
const ROLE: &str = "KYMO_TEST_ROLE";

/// A program that is started for a test, and ends when that has enough of it.
struct Started {
    child: Child,
    input: Option<ChildStdin>,
    memory: PathBuf,
    folder: tempfile::TempDir,
    user: u32,
}

impl Started {
    fn new(role: &str, environment: &[(&str, &str)], user: Option<u32>) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let mut command = command(role, folder.path(), user);
        command.envs(environment.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = start(&mut command);
        let output = BufReader::new(child.stdout.take().expect("it is there"));
        let mut said = output.lines().map(|line| line.expect("it is text"));
        let memory = said.find_map(|line| Some(PathBuf::from(line.split_once("memory ")?.1))).expect("it says so");
        // What else it says, nobody wants to know; but it may say it.
        std::thread::spawn(move || said.for_each(drop));
        let input = child.stdin.take();
        let user = user.unwrap_or_else(|| rustix::process::getuid().as_raw());
        Self { child, input, memory, folder, user }
    }

    fn open(&self) -> Program {
        open(&self.memory, self.child.id(), self.user)
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().expect("it is a child").success());
    }
}

fn open(memory: &Path, pid: u32, user: u32) -> Program {
    let mut program = Program::open(memory, user).expect("it can be recorded");
    program.is_known_as(pid);
    program.definitions().expect("it is there");
    program
}

/// Starts it. While another test of this process starts something, the copy may still look as if it were being written.
fn start(command: &mut Command) -> Child {
    loop {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            started => return started.expect("it starts"),
        }
    }
}

/// This very program, where another user may execute it.
fn command(role: &str, folder: &Path, user: Option<u32>) -> Command {
    let program = folder.join("program");
    if !program.exists() {
        std::fs::copy(std::env::current_exe().expect("it runs"), &program).expect("there is room");
    }
    let mut command = Command::new(&program);
    command.args(["--exact", "filters::a_program_that_is_started", "--nocapture"]);
    command.env(ROLE, role).env("XDG_RUNTIME_DIR", folder);
    if let Some(user) = user {
        std::os::unix::fs::chown(folder, Some(user), Some(user)).expect("root may do that");
        command.uid(user).gid(user);
    }
    command
}

#[test]
fn a_program_that_is_started() {
    let Ok(role) = std::env::var(ROLE) else { return };
    assert!(SAMPLE.register() && MARK.register(), "there is room for them");
    match role.as_str() {
        "load" => load(),
        "still" => say_and_wait(),
        "undumpable" => {
            let no = rustix::process::DumpableBehavior::NotDumpable;
            rustix::process::set_dumpable_behavior(no).expect("everybody may do that");
            say_and_wait();
        }
        "recorder" => record_another(),
        "random" => random::ask_all(),
        "full" => use_everything_up(),
        role => panic!("{role} is no program"),
    }
}

/// The memory of this very program.
fn own_memory() -> &'static Path {
    Path::new(kymo_tracer::control_file().expect("it has begun").to_str().expect("it is text"))
}

fn say_and_wait() {
    println!("memory {}", own_memory().display());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Two threads that record as fast as a recorder on a busy machine can follow.
fn load() {
    for _ in 0..2 {
        std::thread::spawn(|| {
            for iteration in 0..u32::MAX {
                sample(iteration, if iteration % 2 == 0 { "even" } else { "odd" });
                if iteration % 256 == 255 {
                    mark(iteration);
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
    }
    say_and_wait();
}

/// What lanes held.
struct Lanes {
    mark: u16,
    /// By lane: whether it is a mark, and its number.
    found: BTreeMap<u16, Vec<(bool, u32)>>,
    lost: u64,
}

impl RunSink for Lanes {
    fn take(&mut self, _: &ProgramFacts, run: &EventRun<'_>) {
        self.lost += run.discarded + run.missing;
        let found = self.found.entry(run.lane).or_default();
        let mut rest = run.bytes;
        while let Some((head, behind)) = rest.split_first_chunk::<10>() {
            let is_mark = u16::from_le_bytes([head[0], head[1]]) == self.mark;
            let text = if is_mark { 0 } else { 2 + usize::from(u16::from_le_bytes([behind[0], behind[1]])) };
            found.push((is_mark, u32::from_le_bytes([head[6], head[7], head[8], head[9]])));
            rest = &behind[text..];
        }
        assert_eq!(rest, b"", "events are whole");
    }

    fn end(&mut self, _: &ProgramFacts, _: &LaneEnd) {}
}

fn find(program: &Program, name: &str) -> (u16, Arc<EventClass>) {
    let mut all = (0..).zip(&program.known().events);
    let found = all.find_map(|(id, class)| Some((id, class.clone().filter(|class| class.name == name)?)));
    found.expect("it is defined")
}

/// Places one filter, alone.
fn place(placer: &mut Placer, program: &Program, compiler: &mut FilterCompiler, text: &str) -> Placed {
    let (_, class) = find(program, "sample");
    let filter = ClassFilter::of_texts([text], &class, ProgramConstants::default()).expect("it can be asked");
    placer.place(program.lane(), compiler, &[(&filter, &class)]).expect("it is there").remove(0)
}

fn runs(program: &Program, placed: &Placed) -> FilterEngine {
    program.lane().runs(placed.control).expect("it is there")
}

type Keeps = fn(u32) -> bool;

/// What the event is switched to, in turn.
const PHASES: [(&str, Keeps); 5] = [
    ("value % 3 == 0", |value| value % 3 == 0),
    ("text == \"odd\" && value % 5 == 0", |value| value % 10 == 5),
    ("0", |_| false),
    ("text == \"e*n\"", |value| value % 2 == 0),
    ("1", |_| true),
];

/// Switches a program under load from filter to filter: nothing else is recorded, and nothing is missing.
fn switch_under_load(environment: &[(&str, &str)], expected: FilterPlace) {
    switch_under_load_with(environment, expected, |program, started| {
        Placer::new(program, started.user).expect("it is there")
    });
}

fn switch_under_load_with(
    environment: &[(&str, &str)],
    expected: FilterPlace,
    placer: impl Fn(&Program, &Started) -> Placer,
) {
    let started = Started::new("load", environment, None);
    let mut program = started.open();
    let pool = program.lane().layout().sub_buffers;
    program
        .say(&RecordingSettings { mode: OverflowMode::DiscardNewest, lane: pool, pool, contexts: 0 })
        .expect("it is there");
    let ((sample, _), (mark, _)) = (find(&program, "sample"), find(&program, "mark"));
    let (mut compiler, mut placer) = (FilterCompiler::default(), placer(&program, &started));
    let mut lanes = Lanes { mark, found: BTreeMap::new(), lost: 0 };
    program.switch(mark, 1).expect("it is there");
    let mut before: Keeps = |_| false;
    for (text, keeps) in PHASES.iter().cycle().take(4 * PHASES.len()) {
        let placed = place(&mut placer, &program, &mut compiler, text);
        let is_filter = placed.control > 1;
        assert_eq!(placed.place, if is_filter { expected } else { FilterPlace::Nowhere }, "{placed:?}");
        program.switch(sample, placed.control).expect("it is there");
        // Behind what was written before the switch was seen.
        program.drain(DrainTiming::Now, &mut lanes).expect("it is there");
        lanes.found.values().for_each(|found| check_all(found, before, *keeps));
        lanes.found.clear();
        let began = Instant::now();
        while lanes.found.values().filter(|found| marks(found).count() >= 8).count() < 2 {
            assert!(began.elapsed() < Duration::from_secs(60), "the program goes on");
            program.drain(DrainTiming::Now, &mut lanes).expect("it is there");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(lanes.lost, 0, "there is room");
        lanes.found.values().for_each(|found| check_all(found, before, *keeps));
        lanes.found.values().for_each(|found| check_between_marks(found, *keeps, text));
        lanes.found.clear();
        if is_filter {
            let done = if expected == FilterPlace::Native { FilterEngine::Native } else { FilterEngine::Interpreted };
            assert_eq!(runs(&program, &placed), done);
        }
        before = *keeps;
    }
    assert_eq!(program.lane().discarded().expect("it is there"), 0);
    started.end();
}

fn marks(found: &[(bool, u32)]) -> impl Iterator<Item = usize> {
    found.iter().enumerate().filter(|(_, (is_mark, _))| *is_mark).map(|(at, _)| at)
}

/// While it is switched, one filter or the other is asked, and nothing else.
fn check_all(found: &[(bool, u32)], before: Keeps, now: Keeps) {
    let is_right = |(is_mark, value): &(bool, u32)| *is_mark || before(*value) || now(*value);
    assert_eq!(found.iter().find(|found| !is_right(found)), None);
}

/// Behind the first mark, everything is there that the filter keeps.
fn check_between_marks(found: &[(bool, u32)], keeps: Keeps, text: &str) {
    let (first, last) = (marks(found).next().expect("there are some"), marks(found).last().expect("there are some"));
    let values = found[first..last].iter().filter(|(is_mark, _)| !is_mark).map(|(_, value)| *value);
    let expected = (found[first].1 + 1..=found[last].1).filter(|value| keeps(*value));
    assert_eq!(values.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{text}");
}

#[test]
fn machine_code_is_switched_under_load() {
    switch_under_load(&[], FilterPlace::Native);
}

/// A program may have closed the descriptor, or have something else there by now: what it has mapped is found all the same by who may.
#[test]
fn machine_code_comes_to_programs_that_have_closed_the_descriptor() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT TESTED: code for programs that have closed the descriptor, as this is not root");
        return;
    }
    for descriptor in [0, 9999] {
        switch_under_load_with(&[], FilterPlace::Native, |program, started| {
            let arena = Arena { descriptor, ..program.identity().arena.expect("it has one") };
            let pid = Some(started.child.id());
            Placer::open(program.lane(), Ok(arena), pid, started.user).expect("it is there")
        });
    }
}

/// Groups that do not record, by the byte that machine code reads, and the values that are kept then.
const GROUPS: [(u8, Keeps); 3] = [
    (0, |value| value % 3 == 0 || value % 5 == 0),
    (1, |value| value % 3 == 0),
    (2, |value| value % 3 == 0 || value % 5 == 0),
];

/// Other sessions keep some events, and those of a group others; a trigger is asked at each event, and not armed.
#[test]
fn judgements_are_machine_code() {
    let started = Started::new("load", &[], None);
    let mut program = started.open();
    let pool = program.lane().layout().sub_buffers;
    program
        .say(&RecordingSettings { mode: OverflowMode::DiscardNewest, lane: pool, pool, contexts: 0 })
        .expect("it is there");
    let ((sample, class), (mark, _)) = (find(&program, "sample"), find(&program, "mark"));
    let ask = |text| ClassFilter::of_texts([text], &class, ProgramConstants::default()).expect("it can be asked");
    let filters = ["value % 7 == 0", "value % 3 == 0", "value % 5 == 0"].map(ask);
    let kinds = [JudgementKind::Trigger(0), JudgementKind::Groups(OTHER_GROUPS), JudgementKind::Groups(1)];
    let entries = kinds.into_iter().zip(&filters);
    let entries = entries.map(|(kind, filter)| JudgedEntry { kind, filter, rules: Vec::new() }).collect();
    let event = JudgedEvent { id: sample, class: &class, entries };
    let (mut compiler, mut placer) =
        (FilterCompiler::default(), Placer::new(&program, started.user).expect("it is there"));
    let placed = placer.judge(program.lane(), &mut compiler, &[event.clone(), event]).expect("it is there");
    assert_eq!(placed[0], placed[1], "it is the same");
    assert_eq!((placed[0].place, &*placed[0].why), (FilterPlace::Native, &[][..]));
    let mut lanes = Lanes { mark, found: BTreeMap::new(), lost: 0 };
    program.switch(mark, 1).expect("it is there");
    let mut before: Keeps = |_| false;
    for (base, (stopped, keeps)) in (1..).zip(GROUPS) {
        let groups = RecordingGroups { bits: !stopped, base, changes: 0 };
        program.lane().set_base(groups).expect("it is there");
        program.lane().draw_groups(!stopped).expect("it is there");
        program.switch(sample, placed[0].control).expect("it is there");
        program.drain(DrainTiming::Now, &mut lanes).expect("it is there");
        lanes.found.values().for_each(|found| check_all(found, before, keeps));
        lanes.found.clear();
        let began = Instant::now();
        while lanes.found.values().filter(|found| marks(found).count() >= 8).count() < 2 {
            assert!(began.elapsed() < Duration::from_secs(60), "the program goes on");
            program.drain(DrainTiming::Now, &mut lanes).expect("it is there");
            std::thread::sleep(Duration::from_millis(1));
        }
        lanes.found.values().for_each(|found| check_all(found, before, keeps));
        lanes.found.values().for_each(|found| check_between_marks(found, keeps, "judgement"));
        lanes.found.clear();
        before = keeps;
    }
    assert_eq!(runs(&program, &placed[0]), FilterEngine::Native);
    started.end();
}

#[test]
fn bytecode_is_switched_under_load() {
    switch_under_load(&[("KYMO_NATIVE", "off")], FilterPlace::Interpreter);
}

#[test]
fn programs_and_the_recorder_keep_the_same() {
    for seed in ["1", "2", "3", "4"] {
        Started::new("random", &[("KYMO_TEST_SEED", seed)], None).end();
    }
}

#[test]
fn reasons_are_told() {
    let started = Started::new("still", &[("KYMO_NATIVE", "off")], None);
    let program = started.open();
    let (mut compiler, mut placer) =
        (FilterCompiler::default(), Placer::new(&program, started.user).expect("it is there"));
    let mut told = |text: &str| {
        let placed = place(&mut placer, &program, &mut compiler, text);
        let why: Vec<String> = placed.why.iter().map(ToString::to_string).collect();
        format!("{} {} ({})\n", placed.control, placed.place_name(), why.join("; "))
    };
    let said =
        ["value == 1", "value == 2", "value == 1", "text =~ \"a+\"", "$ctx.tid == 3", "value >= 0", "other == 2"]
            .map(&mut told)
            .concat();
    expect_test::expect![[r#"
        2 interpreter (KYMO_NATIVE=off)
        3 interpreter (KYMO_NATIVE=off)
        2 interpreter (KYMO_NATIVE=off)
        1 recorder (KYMO_NATIVE=off; bytecode has no regular expressions: text =~ "a+")
        1 recorder (context fields are not known before events are recorded: $ctx.tid)
        1 always ()
        0 never ()
    "#]]
    .assert_eq(&said);
    started.end();
}

/// A recorder that may do no more than the program, as another user than root.
fn record_another() {
    let said = std::env::var("KYMO_TEST_PROGRAM").expect("it was said");
    let (pid, memory) = said.split_once(' ').expect("there are two words");
    let user = rustix::process::getuid().as_raw();
    let program = open(Path::new(memory), pid.parse().expect("it is a number"), user);
    let (mut compiler, mut placer) = (FilterCompiler::default(), Placer::new(&program, user).expect("it is there"));
    let placed = place(&mut placer, &program, &mut compiler, "value == 1");
    println!(
        "memory {memory}\nplaced {} {}",
        placed.place_name(),
        placed.why.iter().map(ToString::to_string).collect::<String>()
    );
}

/// Where a recorder without privileges has a filter of a program.
fn placed_without_privileges(role: &str) -> String {
    let user = rustix::process::getuid().is_root().then_some(65534);
    let started = Started::new(role, &[], user);
    let mut command = command("recorder", started.folder.path(), user);
    command.env("KYMO_TEST_PROGRAM", format!("{} {}", started.child.id(), started.memory.display()));
    let child = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let output = child.wait_with_output().expect("it is a child");
    let said = String::from_utf8(output.stdout).expect("it is text");
    let placed = said.lines().find_map(|line| line.strip_prefix("placed ")).unwrap_or_else(|| {
        panic!("it says so: {said}{}", String::from_utf8_lossy(&output.stderr));
    });
    started.end();
    placed.to_owned()
}

#[test]
fn adding_code_demands_what_tracing_demands() {
    assert_eq!(placed_without_privileges("still"), "native ");
    let why = "no permission: the program is not dumpable, or another user's";
    assert_eq!(placed_without_privileges("undumpable"), format!("interpreter {why}"));
}

#[test]
fn nothing_is_written_but_to_the_memory_of_the_program() {
    let started = Started::new("still", &[], None);
    let program = started.open();
    let arena = program.identity().arena.expect("it has one");
    let own = std::process::id();
    let refused = |arena: Arena, pid: Option<u32>| {
        let placer = Placer::open(program.lane(), Ok(arena), pid, started.user).expect("it is there");
        placer.why_not_native().cloned()
    };
    assert_eq!(refused(arena, Some(started.child.id())), None);
    assert_eq!(refused(arena, None), Some(FallbackReason::Number));
    assert_eq!(refused(Arena { machine: 1, ..arena }, Some(started.child.id())), Some(FallbackReason::Machine));
    let nowhere = Arena { address: 4096, ..arena };
    for descriptor in [0, 1, 9999, u32::MAX] {
        let why = refused(Arena { descriptor, ..nowhere }, Some(started.child.id()));
        assert_eq!(why, Some(FallbackReason::Descriptor), "{descriptor} is another file");
    }
    // A program may name any file that it can open, with its inode.
    let file = tempfile::NamedTempFile::new().expect("there is room");
    std::fs::write(file.path(), "all mine").expect("it is ours");
    let inode = file.as_file().metadata().expect("it is there").ino();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(file.as_file()) as u32;
    assert_eq!(refused(Arena { descriptor, inode, ..nowhere }, Some(own)), Some(FallbackReason::Descriptor));
    // Memory of another user, which the program may read.
    let memory = rustix::fs::memfd_create("theirs", rustix::fs::MemfdFlags::CLOEXEC).expect("there is room");
    rustix::fs::ftruncate(&memory, arena.bytes.into()).expect("it is ours");
    let inode = rustix::fs::fstat(&memory).expect("it is there").st_ino;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&memory) as u32;
    assert_eq!(refused(Arena { descriptor, inode, ..nowhere }, Some(own)), None, "it is its user's");
    if rustix::process::getuid().is_root() {
        let other = rustix::fs::Uid::from_raw(65534);
        rustix::fs::fchown(&memory, Some(other), None).expect("root may do that");
        assert_eq!(refused(Arena { descriptor, inode, ..nowhere }, Some(own)), Some(FallbackReason::Descriptor));
    }
    // It says that there is more than there is.
    rustix::fs::ftruncate(&memory, 4096).expect("it is ours");
    if rustix::process::getuid().is_root() {
        rustix::fs::fchown(&memory, Some(rustix::process::getuid()), None).expect("root may do that");
    }
    let small = Arena { descriptor, inode, bytes: u32::MAX, ..nowhere };
    let mut placer = Placer::open(program.lane(), Ok(small), Some(own), started.user).expect("it is there");
    let mut compiler = FilterCompiler::default();
    assert_eq!(place(&mut placer, &program, &mut compiler, "value == 1").place, FilterPlace::Native);
    assert_eq!(place(&mut placer, &program, &mut compiler, "value == 2").why, [FallbackReason::ArenaFull]);
    assert_eq!(rustix::fs::fstat(&memory).expect("it is there").st_size, 4096, "it is as large as it was");
    assert_eq!(std::fs::read(file.path()).expect("it is there"), b"all mine");
    started.end();
}

#[test]
fn slots_may_say_anything() {
    let started = Started::new("still", &[], None);
    let program = started.open();
    let mut compiler = FilterCompiler::default();
    let mut placed = |native: FilterCode| {
        program.lane().say_code(2, native).expect("it is there");
        let mut placer = Placer::new(&program, started.user).expect("it is there");
        place(&mut placer, &program, &mut compiler, "value == 1")
    };
    let everywhere = FilterCode { kind: FilterCodeKind::Native, offset: u32::MAX, bytes: (1 << 30) - 1 };
    let first = placed(everywhere);
    assert_eq!((first.place, first.why), (FilterPlace::Interpreter, vec![FallbackReason::ArenaFull]));
    let everywhere = FilterCode { kind: FilterCodeKind::Bytecode, ..everywhere };
    assert_eq!(placed(everywhere).place, FilterPlace::Native);
    for slot in 2..=255 {
        program.lane().say_code(slot, everywhere).expect("it is there");
    }
    let last = placed(everywhere);
    assert_eq!((last.control, last.place, last.why), (1, FilterPlace::Recorder, vec![FallbackReason::SlotsFull]));
    started.end();
}

/// All pages and slots of a program, which is this one.
fn use_everything_up() {
    let (user, event) = (rustix::process::getuid().as_raw(), random::event());
    let program = open(own_memory(), std::process::id(), user);
    let (id, class) = find(&program, "random");
    let mut compiler = FilterCompiler::default();
    let mut placer = Placer::new(&program, user).expect("it is there");
    let mut places = BTreeMap::new();
    for value in 0..300 {
        if value % 50 == 0 {
            // Another recorder begins, and knows nothing of the first.
            placer = Placer::new(&program, user).expect("it is there");
        }
        let filter = ClassFilter::of_texts([format!("g == {value}").as_str()], &class, ProgramConstants::default());
        let wanted = [(&filter.expect("it can be asked"), &*class)];
        let placed = placer.place(program.lane(), &mut compiler, &wanted).expect("it is there").remove(0);
        *places.entry(placed.place_name()).or_insert(0) += 1;
        program.switch(id, placed.control).expect("it is there");
        let is_kept = |g: u64| event.is_kept(&random::Arguments::of(g));
        assert!(is_kept(value), "{placed:?}");
        assert_eq!(is_kept(value + 1), placed.place == FilterPlace::Recorder, "{placed:?}");
        if placed.control > 1 {
            let done =
                if placed.place == FilterPlace::Native { FilterEngine::Native } else { FilterEngine::Interpreted };
            assert_eq!(runs(&program, &placed), done);
        }
    }
    assert_eq!(places, BTreeMap::from([("native", 64), ("interpreter", 190), ("recorder", 46)]));
    say_and_wait();
}

#[test]
fn programs_run_out_of_room_for_filters() {
    Started::new("full", &[], None).end();
}
