//! Everything at once: threads that live for milliseconds, signals, jumps, children of all kinds, programs and recorders that are killed at
//! any instant, switches and filters meanwhile. What is written and what is counted as lost is what happened.
//!
//! `KYMO_TEST_SECONDS` makes it long, `KYMO_TEST_SEED` says with which story it begins.

mod written;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use written::Written;

use crate::recorded::Place;

/// Bytes of what programs say that they have recorded: `struct shared`.
const COUNTS_BYTES: u64 = 32 + 32 * (1 << 20);
/// Programs at a time, besides their children.
const PROGRAMS_MAX: usize = 3;

/// Numbers that look like any.
struct Chance(u64);

impl Chance {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % count
    }
}

/// Builds libkymo, beside what this test was built in; the folder it is in.
fn library() -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_kymo")).ancestors().nth(2).expect("it lies in target/PROFILE");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--offline", "--profile", "libkymo", "--package", "kymo-libkymo", "--target-dir"]);
    assert!(cargo.arg(target).current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("it starts").success());
    target.join("libkymo")
}

/// Builds the program; `None`: there is no compiler, which is said.
fn program(place: &Place) -> Option<PathBuf> {
    let (own, built) = (Path::new(env!("CARGO_MANIFEST_DIR")), place.path("chaos-program"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]);
    compiler.arg(own.join("../../include")).arg(own.join("tests/suite/chaos/program.c")).arg("-o").arg(&built);
    compiler.arg(library().join("libkymo.a")).args(["-ldl", "-lrt"]);
    let Ok(status) = compiler.status() else {
        eprintln!("NOT TESTED: there is no C compiler on this machine");
        return None;
    };
    assert!(status.success(), "{compiler:?}");
    Some(built)
}

/// A session, programs that it records, and whoever interferes.
struct Story {
    place: Place,
    program: PathBuf,
    chance: Chance,
    running: Vec<Child>,
    begun: u32,
    killed: u32,
    recorders: u32,
    is_on: bool,
}

impl Story {
    /// Whatever it says: the recorder may be killed meanwhile.
    fn ask(&mut self, words: &[&str]) {
        let _ = self.place.kymo(words).output().expect("it starts");
    }

    fn begin_program(&mut self) {
        let seed = 1 + self.chance.below(1 << 40);
        let mut command = self.place.command(&self.program);
        self.running.push(command.arg(seed.to_string()).spawn().expect("it starts"));
        self.begun += 1;
    }

    fn kill_program(&mut self) {
        let at = self.chance.below(self.running.len() as u64) as usize;
        let mut child = self.running.swap_remove(at);
        child.kill().expect("it is not waited for");
        child.wait().expect("it ends");
        self.killed += 1;
    }

    /// Kills the recorder, perhaps while it is asked something.
    fn kill_recorder(&mut self) {
        let status = self.place.json(&["status", "--json"]);
        let Some(pid) = status["pid"].as_u64().and_then(|pid| rustix::process::Pid::from_raw(pid as i32)) else {
            return;
        };
        let asked = (self.chance.below(3) == 0).then(|| {
            let mut command = self.place.kymo(&["enable", "chaos:counted", "--session", "chaos"]);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().expect("it starts")
        });
        std::thread::sleep(Duration::from_micros(self.chance.below(20_000)));
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
        asked.into_iter().for_each(|mut asked| _ = asked.wait().expect("it ends"));
        std::thread::sleep(Duration::from_millis(self.chance.below(100)));
        assert!(self.place.says(&["sessions"], 0).contains("session chaos"), "it goes on");
        self.recorders += 1;
    }

    fn interfere(&mut self) {
        match self.chance.below(12) {
            0..3 if self.running.len() < PROGRAMS_MAX => self.begin_program(),
            3 if self.running.len() > 1 => self.kill_program(),
            4 | 5 => {
                let word = if self.is_on { "disable" } else { "enable" };
                self.is_on = !self.is_on;
                self.ask(&[word, "chaos:switched", "--session", "chaos"]);
            }
            6 | 7 => {
                let filter = format!("number < {} || slot > 100", self.chance.below(100_000));
                self.ask(&["filter", &filter, "--session", "chaos", "--event", "chaos:switched"]);
            }
            8 if self.chance.below(3) == 0 => self.kill_recorder(),
            9 => self.ask(&["status", "--events"]),
            _ => std::thread::sleep(Duration::from_millis(self.chance.below(60))),
        }
    }
}

/// Records for so long what happens, and looks whether everything is there.
fn tell(seed: u64, time: Duration) {
    // The load of this test would make other tests miss their deadlines.
    let place = Place::alone();
    let Some(program) = program(&place) else { return };
    let counts = place.path("counts");
    let file = File::options().write(true).create_new(true).open(&counts).expect("there is room");
    file.set_len(COUNTS_BYTES).expect("there is room");
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // In some, programs have so little memory that events are lost.
    let pool = ["128MiB", "128MiB", "1MiB"][chance.below(3) as usize];
    let fixed = ["record", "--detach", "--name", "chaos", "--output", "trace", "--pool-size", pool];
    let chosen = ["--process", "chaos-program", "--event", "chaos:counted", "--event", "chaos:switched"];
    place.says(&[&fixed[..], &chosen].concat(), 0);
    place.says(&["enable", "chaos:kept", "--session", "chaos", "--filter", "value >= 100"], 1);
    let running = Vec::new();
    let mut story = Story { place, program, chance, running, begun: 0, killed: 0, recorders: 1, is_on: true };
    let began = Instant::now();
    story.begin_program();
    while began.elapsed() < time {
        story.interfere();
    }
    file.write_all_at(&1_u64.to_le_bytes(), 0).expect("there is room");
    for mut child in std::mem::take(&mut story.running) {
        let status = child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
    let said = story.place.says(&["stop", "chaos"], 0);
    let Story { place, begun, killed, recorders, .. } = story;
    println!("seed {seed}: {begun} programs, {killed} killed, {recorders} recorders, pools of {pool}\n{said}");
    let trace = place.path("trace");
    let counts = std::fs::read(&counts).expect("it is there");
    let checked = std::panic::catch_unwind(|| Written::read(&trace).check(&counts, pool == "128MiB"));
    if let Err(why) = checked {
        let kept = std::env::temp_dir().join(format!("kymo-chaos-{seed}-{}", std::process::id()));
        let is_kept = std::fs::rename(&trace, &kept).and_then(|()| std::fs::write(kept.join("counts"), &counts));
        println!("seed {seed}: the trace is kept in {}: {is_kept:?}", kept.display());
        std::panic::resume_unwind(why);
    }
}

#[test]
fn whatever_happens_everything_is_written_or_counted() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let time = Duration::from_secs(number("KYMO_TEST_SECONDS").unwrap_or(4));
    let mut seed = number("KYMO_TEST_SEED").unwrap_or(1);
    let began = Instant::now();
    while began.elapsed() < time {
        println!("seed {seed}");
        tell(seed, Duration::from_secs(20).min(time));
        seed += 1;
    }
}
