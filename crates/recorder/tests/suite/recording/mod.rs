//! Programs that are recorded, and traces that are read again.

#![allow(dead_code, reason = "each test needs some of it")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kymo_lane::{OverflowMode, RecordingSettings};
use kymo_recorder::clock::TickSource;
use kymo_recorder::program::{DrainTiming, Program, ProgramRefusal};
use kymo_recorder::trace::{Output, OutputOptions, SingleTrace};
use kymo_session::{OpenOptions, PrintOptions, Progress, Report, Session};
use kymo_tracer::Event;

pub static NUMBER: Event = Event::new(b"event app:number\nlevel 6\nsource recording.rs:1\nfield u64 number\n");
pub static ALL: Event = Event::new(
    b"event app:all\nrole begin\nfield text what\nfield enum u8(idle=0, busy) state\nfield sequence u16 some\n\
      field array 3 x8 three\nfield bool yes\nfield f64 real\nfield i32 less\nfield pointer where.is.it\nfield sequence u8 bytes\n",
);

/// Not a test: the program that tests of this binary record, in a child process: when it is told a number, it records so many events, each with
/// its number.
#[test]
fn child() {
    let Ok(threads) = std::env::var("KYMO_TEST_CHILD") else { return };
    assert!(NUMBER.register() && ALL.register(), "there is room for them");
    println!("ready {}", std::process::id());
    let threads: u64 = threads.parse().expect("it is a number");
    for line in std::io::stdin().lines() {
        let line = line.expect("it can be read");
        let (word, count) = line.split_once(' ').expect("a word and a number");
        let count: u64 = count.parse().expect("it is a number");
        // They are recorded at the same time.
        let all_there = std::sync::Barrier::new(threads as usize);
        let emit = |thread: u64| {
            all_there.wait();
            (0..count).for_each(|number| match word {
                "numbers" => NUMBER.record(&(thread << 48 | number).to_le_bytes()),
                "slowly" => {
                    NUMBER.record(&(thread << 48 | number).to_le_bytes());
                    std::thread::sleep(Duration::from_micros(50));
                }
                _ => ALL.record(&all(number)),
            });
        };
        std::thread::scope(|scope| (1..=threads).for_each(|thread| _ = scope.spawn(move || emit(thread))));
        println!("done");
    }
    std::process::exit(0);
}

/// The fields of [`ALL`].
fn all(number: u64) -> Vec<u8> {
    let text = format!("text {number}");
    let mut bytes = (text.len() as u16).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.push((number % 2) as u8);
    bytes.extend([2, 0, 1, 0, number as u8, 0]);
    bytes.extend([1, 2, 0xff, u8::from(number.is_multiple_of(3))]);
    bytes.extend((number as f64 / 2.0).to_le_bytes());
    bytes.extend((-(number as i32)).to_le_bytes());
    bytes.extend((0x1000 + number).to_le_bytes());
    bytes.extend([3, 0, 7, 8, 9]);
    bytes
}

/// A folder that goes with its test, and what is recorded in it.
pub struct Stage {
    pub folder: tempfile::TempDir,
}

impl Stage {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir_in("/dev/shm").expect("there is room") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Begins a program; it has registered its events when this is over.
    pub fn program(&self, threads: u32) -> Running {
        let mut command = Command::new(std::env::current_exe().expect("it is known"));
        command.args(["--exact", "recording::child", "--nocapture"]).env("KYMO_TEST_CHILD", threads.to_string());
        self.started(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
    }

    /// The same of a command.
    pub fn started(&self, command: &mut Command) -> Running {
        let before = self.controls();
        let mut child = command.env("XDG_RUNTIME_DIR", self.folder.path()).spawn().expect("it begins");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut running = Running { child, input, output: BufReader::new(output), control: PathBuf::new() };
        running.wait_for("ready");
        let new = |path: &PathBuf| !before.contains(path);
        running.control = self.controls().into_iter().find(new).expect("it has a control file");
        running
    }

    fn controls(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("kymo")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "ctl")).collect()
    }
}

/// How long a recorder's lock may outlive the recorder.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program that runs.
pub struct Running {
    pub child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub control: PathBuf,
}

impl Running {
    pub fn tell(&mut self, what: &str) {
        writeln!(self.input, "{what}").expect("it listens");
    }

    pub fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert!(self.output.read_line(&mut line).expect("it speaks") > 0, "it ended before it said {word}");
        }
    }

    pub fn open(&self) -> Program {
        let user = fs::metadata(&self.control).expect("it is there").uid();
        // A process that another test is just about to start has a copy of the lock of a recorder
        // that is over, until it becomes the program that it starts.
        let patience = Instant::now() + PATIENCE;
        let mut program = loop {
            match Program::open(&self.control, user) {
                Err(ProgramRefusal::Taken) if Instant::now() < patience => thread::sleep(Duration::from_millis(1)),
                opened => break opened.expect("it is a program"),
            }
        };
        program.is_known_as(self.child.id());
        program
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub const WANTS: RecordingSettings =
    RecordingSettings { mode: OverflowMode::DiscardNewest, lane: 4096, pool: 512, contexts: 1 };

/// A session that records one program.
pub struct Recording {
    pub program: Program,
    pub output: Output,
    pub clock: TickSource,
}

impl Recording {
    pub fn begin(mut program: Program, path: &Path, options: OutputOptions, wants: &RecordingSettings) -> Self {
        let mut clock = TickSource::begin(program.identity().clock);
        // Something may have been recorded before.
        let earliest = clock.now().saturating_sub(60 * clock.frequency());
        let mut output = Output::create(path, options, &mut clock, earliest).expect("it can be made");
        program.say(wants).expect("it is there");
        for defined in program.definitions().expect("it is there") {
            defined.what.expect("it can be understood");
            program.switch(defined.id, 1).expect("it is there");
        }
        output.program(program.known());
        Self { program, output, clock }
    }

    pub fn step(&mut self, patience: DrainTiming) -> std::io::Result<()> {
        let drained = self.program.drain(patience, &mut SingleTrace(&mut self.output))?;
        if drained.discarded > 0 {
            self.output.lost(self.program.known(), drained.discarded, drained.discarded_ever);
        }
        self.output.beat(&mut self.clock);
        Ok(())
    }

    /// Drains until the program says that it has done something.
    pub fn until_done(&mut self, running: &mut Running, what: &str) {
        running.tell(what);
        let done = std::thread::scope(|scope| {
            let waits = scope.spawn(|| running.wait_for("done"));
            while !waits.is_finished() {
                self.step(DrainTiming::Wait).expect("it is there");
                std::thread::sleep(Duration::from_millis(1));
            }
            waits.join()
        });
        done.expect("it did");
    }

    /// Ends it: the tally.
    pub fn finish(mut self, patience: DrainTiming) -> kymo_recorder::trace::Tally {
        self.step(patience).expect("it is there");
        let now = self.clock.now();
        self.program.end(now, &mut SingleTrace(&mut self.output)).expect("it is there");
        self.output.finish(&mut self.clock).expect("it can be written")
    }
}

/// The lines of a trace, as this project's reader prints them, and what it has to say of it.
pub fn read(path: &Path) -> (Vec<String>, Report) {
    let session = Session::open(&[path.to_owned()], &OpenOptions::default()).expect("it is a trace");
    assert!(session.opening_report().is_complete(), "{:?}", session.opening_report());
    let mut text = Vec::new();
    let printed = session.print(&PrintOptions::default(), &mut text, &Progress::default()).expect("it can be printed");
    // Programs write what they like.
    let text = String::from_utf8_lossy(&text);
    (text.lines().map(str::to_owned).collect(), printed.report)
}

/// This project's checks find nothing wrong in a trace, indexes that are not what packets say among it; what was lost is told.
pub fn check(path: &Path) {
    let mut findings =
        kymo_session::check(&[path.to_owned()], &kymo_session::ImportOptions::default(), &Progress::default())
            .expect("nobody cancels it");
    // Programs write any bytes as text.
    findings.retain(|finding| !["events-discarded", "packets-lost", "text-encoding"].contains(&finding.rule));
    assert!(findings.is_empty(), "{findings:?}");
}

/// The lines of a trace are those that babeltrace2 and the one before it print, without a warning. That one is not there is told.
pub fn compare_with_babeltrace(path: &Path, lines: &[String]) {
    let ours: String = lines.iter().map(|line| format!("{line}\n")).collect();
    // They share no code that reads.
    for reader in ["babeltrace2", "babeltrace"] {
        let Ok(output) = Command::new(reader).arg(path).env("TZ", "UTC").output() else {
            eprintln!("NOT TESTED: what {reader} says of our traces, which is not there");
            continue;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{reader} says: {said}");
        let theirs = String::from_utf8(output.stdout).expect("it is text");
        let difference = kymo_cases::same::difference(&theirs, &ours);
        assert!(difference.is_none(), "{reader} prints something else: {}", difference.unwrap_or_default());
    }
}

/// The numbers of [`NUMBER`]'s events, by thread, in the order of the lines.
pub fn numbers(lines: &[String]) -> std::collections::BTreeMap<u64, Vec<u64>> {
    let mut numbers = std::collections::BTreeMap::<u64, Vec<u64>>::new();
    for line in lines.iter().filter(|line| line.contains(" app:number: ")) {
        let number = line.rsplit_once(" number = ").expect("it has one").1;
        let number: u64 = number.trim_end_matches(" }").parse().expect("it is a number");
        numbers.entry(number >> 48).or_default().push(number & 0xffff_ffff_ffff);
    }
    numbers
}

/// Waits for something.
pub fn wait(what: &str, mut is_there: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_there() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}
