//! Recorders are killed at any instant: what programs recorded is in one trace, once, or counted.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::recorded::{self, Place, Program};

/// The recorder of a place, if one runs.
fn recorder(place: &Place) -> Option<rustix::process::Pid> {
    let folder = place.path("");
    let is_it = |process: &Path| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        let own = format!("XDG_RUNTIME_DIR={}", folder.display().to_string().trim_end_matches('/'));
        line.ends_with(b"recorder-of-this-user\0")
            && environment.split(|byte| *byte == 0).any(|variable| variable == own.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").expect("there are some").filter_map(Result::ok);
    let found = processes.map(|process| process.path()).find(|process| is_it(process))?;
    rustix::process::Pid::from_raw(found.file_name()?.to_str()?.parse().ok()?)
}

pub fn kill_recorder(place: &Place) -> bool {
    let Some(pid) = recorder(place) else { return false };
    // It may have ended.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    recorded::until(|| recorder(place) != Some(pid));
    true
}

/// Numbers that look like any.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

const PROGRAMS: u64 = 3;
const KILLS: u64 = 6;
const EACH: u64 = 15_000;
/// Values of one program begin so far behind those of the one before.
const APART: u64 = 1_000_000;

/// What was found when it was over.
struct Found {
    place: Place,
    summary: serde_json::Value,
    values: Vec<u64>,
    emitted: Vec<u64>,
}

/// Records programs with a recorder that is killed again and again, also while it goes on.
fn record(seed: u64, options: &[&str]) -> Found {
    let (place, mut chance) = (Place::new(), Chance(seed));
    let mut programs: Vec<Program> = (0..PROGRAMS).map(|_| place.program()).collect();
    let pids: Vec<String> = programs.iter().map(|program| program.pid.to_string()).collect();
    let mut words = vec!["record", "--detach", "--name", "s", "--output", "trace", "--event", "test:count"];
    pids.iter().for_each(|pid| words.extend(["--process", pid]));
    place.says(&[&words[..], options].concat(), 0);
    for (program, first) in programs.iter_mut().zip((0..).step_by(APART as usize)) {
        program.tell("on");
        program.tell(&format!("from {first}"));
    }
    let mut follow = place.kymo(&["print", "--follow", "trace"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = follow.stdout.take().expect("it is piped");
    let followed = std::thread::spawn(move || {
        let mut text = String::new();
        lines.read_to_string(&mut text).map(|_| text)
    });
    for _ in 0..KILLS {
        programs.iter_mut().for_each(|program| program.say(&format!("slowly {EACH}")));
        std::thread::sleep(Duration::from_millis(chance.below(60)));
        kill_recorder(&place);
        // The next one is killed while it begins, now and then.
        while chance.below(2) == 0 {
            let mut next =
                place.kymo(&["sessions"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
            std::thread::sleep(Duration::from_millis(chance.below(40)));
            kill_recorder(&place);
            next.wait().expect("it ends");
        }
        assert!(place.says(&["sessions"], 0).contains("session s"));
        programs.iter_mut().for_each(Program::wait);
    }
    let summary = place.json(&["stop", "s", "--json"])[0].clone();
    let text = followed.join().expect("it ends").expect("it is text");
    let said = follow.wait_with_output().expect("it ends");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let values = place.values(&place.path("trace"), "test:count");
    let mut of_text: Vec<u64> = text.lines().filter(|line| line.contains("test:count")).map(value).collect();
    let mut sorted = values.clone();
    of_text.sort_unstable();
    sorted.sort_unstable();
    let at = of_text.iter().zip(&sorted).take_while(|(one, other)| one == other).count();
    let around = |values: &[u64]| values[at.saturating_sub(2).min(values.len())..(at + 3).min(values.len())].to_vec();
    assert!(
        of_text == sorted,
        "who followed it has seen something else: {:?}, {:?}",
        around(&of_text),
        around(&sorted)
    );
    let emitted = (0..PROGRAMS).flat_map(|program| (0..KILLS * EACH).map(move |number| program * APART + number));
    Found { place, summary, values, emitted: emitted.collect() }
}

fn value(line: &str) -> u64 {
    let digits = line.split_once("value = ").expect("it has one").1;
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().expect("a number")
}

impl Found {
    /// Each program's events are in order, once.
    fn are_in_order(&self) {
        for program in 0..PROGRAMS {
            let its = self.values.iter().filter(|value| **value / APART == program);
            assert!(its.is_sorted_by(|one, next| one < next), "something is twice, or out of order");
        }
    }

    fn is_whole(&self) {
        self.are_in_order();
        let mut values = self.values.clone();
        values.sort_unstable();
        let missing = self.emitted.iter().filter(|value| values.binary_search(value).is_err());
        let missing: Vec<_> = missing.collect();
        assert!(missing.is_empty(), "{} events are missing, from {} on; {}", missing.len(), missing[0], self.summary);
        assert_eq!(self.number("/events"), self.emitted.len() as u64, "{}", self.summary);
        assert_eq!((self.lost(), self.number("/overwritten")), (0, 0), "{}", self.summary);
        assert_eq!(self.number("/programs"), PROGRAMS, "{}", self.summary);
        assert_eq!(self.summary["problems"], serde_json::json!([]));
        self.place.says(&["check", "trace"], 0);
    }

    fn lost(&self) -> u64 {
        ["full", "no_lane", "unwritten"].iter().map(|why| self.number(&format!("/lost/{why}"))).sum()
    }

    fn number(&self, at: &str) -> u64 {
        self.summary.pointer(at).and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("{at}: {}", self.summary))
    }

    /// What babeltrace2 says of it; `None`: it is not there.
    fn babeltrace(&self) -> Option<(usize, String)> {
        let output = Command::new("babeltrace2").arg(self.place.path("trace")).output();
        let Ok(output) = output else {
            eprintln!("NOT TESTED: what babeltrace2 says, which is not there");
            return None;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let count = text.lines().filter(|line| line.contains("test:count")).count();
        Some((count, String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

#[test]
fn a_trace_goes_on_wherever_its_recorder_was_killed() {
    let found = record(1, &[]);
    found.is_whole();
    if let Some((count, said)) = found.babeltrace() {
        assert_eq!((count, &*said), (found.emitted.len(), ""));
    }
}

#[test]
fn so_does_one_of_ctf_2_with_other_contexts() {
    record(2, &["--format", "ctf2", "--context", "vtid,cpu_id"]).is_whole();
}

#[test]
fn so_does_one_of_parts() {
    let found = record(3, &["--rotate-size", "300KiB"]);
    found.is_whole();
    assert!(found.place.path("trace/000003").exists());
    if let Some((count, said)) = found.babeltrace() {
        assert_eq!((count, &*said), (found.emitted.len(), ""));
    }
}

#[test]
fn what_had_no_room_meanwhile_is_counted_once() {
    let found = record(4, &["--pool-size", "64KiB"]);
    found.are_in_order();
    assert_eq!(found.number("/events"), found.values.len() as u64, "{}", found.summary);
    assert!(found.lost() > 0, "there was room for everything: {}", found.summary);
    assert_eq!(found.number("/events") + found.lost(), found.emitted.len() as u64, "{}", found.summary);
    let info = found.place.json(&["info", "--exact", "--json", "trace"]);
    println!("{info}");
}
