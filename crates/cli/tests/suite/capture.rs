//! `kymo record --capture-output`: what a program writes is in the trace, and comes out as without it.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::recorded::{Place, Program, until, words};

/// `kymo record --capture-output`, of a script.
fn captured(place: &Place, options: &[&str], script: &str) -> Command {
    let mut command = place.kymo(&["record", "--capture-output", "--output", "trace"]);
    command.args(options).args(["--", "sh", "-c", script]);
    command
}

/// The lines of a trace, in its order: `stdout: ...`, `stderr: ...`, and how many bytes are missing of those that are cut.
fn lines(place: &Place, trace: &Path) -> Vec<String> {
    let text = place.says(&["print", "--event", "output:*", &trace.display().to_string()], 0);
    let line = |event: &str| {
        let (stream, line) = event.split_once("output:")?.1.split_once(": ")?;
        let (text, rest) = line.split_once("line = \"")?.1.rsplit_once("\", cut = ")?;
        let cut = rest.split_once(',')?.0;
        Some(format!("{stream}: {text}{}", if cut == "0" { String::new() } else { format!(" and {cut} more") }))
    };
    text.lines().filter(|event| event.contains("output:")).map(|event| line(event).expect("it is one")).collect()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&patient(&output.stderr)).into_owned()
}

/// What was said but for that a busy machine makes people wait, which may stand anywhere.
fn patient(said: &[u8]) -> Vec<u8> {
    const WAITS: &[u8] = b"warning: the recorder has not answered";
    let mut left = said.to_vec();
    while let Some(at) = left.windows(WAITS.len()).position(|bytes| bytes == WAITS) {
        let end = left[at..].iter().position(|byte| *byte == b'\n').map_or(left.len(), |end| at + end + 1);
        left.drain(at..end);
    }
    left
}

/// What no program would write: lines of all lengths, with all ends, of all bytes; five million, and no end of the last line.
fn mixed(mut seed: u64) -> Vec<u8> {
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let mut bytes = Vec::new();
    while bytes.len() < 5_000_000 {
        let length = [random() % 100, random() % 100, random() % 100, random() % 20_000][random() % 4];
        match random() % 3 {
            0 => bytes.extend((0..length).map(|_| random() as u8)),
            _ => bytes.extend((0..length).map(|_| b' ' + (random() % 90) as u8)),
        }
        bytes.extend(["\n", "\n", "\r\n", "\r", "\n\n\n", "\u{20ac}\n"][random() % 6].as_bytes());
    }
    bytes.extend(b"no end");
    bytes
}

/// Lines as they are defined, counted otherwise than the command does.
fn count(bytes: &[u8]) -> usize {
    let ends = (0..bytes.len()).filter(|at| match bytes[*at] {
        b'\n' => *at == 0 || bytes[*at - 1] != b'\r',
        byte => byte == b'\r',
    });
    ends.count() + 1
}

#[test]
fn every_byte_comes_out_and_every_line_is_in_the_trace_or_counted() {
    let place = Place::new();
    let (out, err) = (mixed(1), mixed(2));
    std::fs::write(place.path("out"), &out).expect("there is room");
    std::fs::write(place.path("err"), &err).expect("there is room");
    let script = "cat out & cat err >&2; wait; exit 7";
    let output = captured(&place, &["--json"], script).output().expect("it starts");
    assert_eq!(output.status.code(), Some(7));
    // Behind what the program wrote is what the command says.
    let (program, summary) = output.stdout.split_at(out.len());
    assert!(
        program == out && patient(&output.stderr) == err,
        "{} and {} bytes",
        output.stdout.len(),
        output.stderr.len()
    );
    let summary: serde_json::Value = serde_json::from_slice(summary).expect("it is an object");
    let all = (count(&out) + count(&err)) as u64;
    assert_eq!(summary["captured"]["lines"], all);
    let lost = summary["lost"]["full"].as_u64().expect("a number");
    assert_eq!(summary["events"].as_u64().expect("a number") + lost, all);
    let text = place.says(&["count", "trace", "--event", "output:*"], 0);
    assert_eq!(
        text.lines().last().and_then(|line| line.split_whitespace().next()).map(|all| all.replace(',', "")),
        Some((all - lost).to_string()),
        "{text}"
    );
    place.says(&["check", "trace"], if lost == 0 { 0 } else { 1 });
}

#[test]
fn lines_are_told_from_each_other_and_from_what_is_no_text() {
    let place = Place::new();
    let long = "x".repeat(5000);
    let script = format!(
        r#"printf 'one\r\ntwo\rthree \033[1m\\\n'; echo '{long}' >&2; printf '\377\000\n\303\251'; printf 'end' >&2"#
    );
    let output = captured(&place, &[], &script).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(output.stdout, b"one\r\ntwo\rthree \x1b[1m\\\n\xff\0\n\xc3\xa9");
    assert!(told(&output).starts_with(&format!("{long}\nend")), "{}", told(&output));
    assert!(
        told(&output).contains("  output    7 lines, 1 of them cut, recorded by kymo itself\n"),
        "{}",
        told(&output)
    );
    let lines = lines(&place, &place.path("trace"));
    let of = |stream: &str| -> Vec<&str> { lines.iter().filter_map(|line| line.strip_prefix(stream)).collect() };
    assert_eq!(of("stdout: "), ["one", "two", "three \\e[1m\\\\", "\\\\xff\\\\x00", "\u{e9}"]);
    assert_eq!(of("stderr: "), [&format!("{} and 1000 more", &long[..4000]), "end"]);
}

#[test]
fn nothing_that_is_selected_of_the_program_takes_lines_away() {
    let place = Place::new();
    let mut command = place.kymo(&["record", "--capture-output", "--output", "trace", "--event", "test:count"]);
    command.args(["--level", "info", "--filter", "value >= 5", "--"]).args(words()).stderr(Stdio::piped());
    let mut program = Program::of(&mut command);
    program.tell("count 10");
    program.tell("other 10");
    program.say("exit 4");
    let ended = program.end();
    assert_eq!(ended.status.code(), Some(4), "{}", told(&ended));
    assert_eq!(place.values(&place.path("trace"), "test:*"), [5, 6, 7, 8, 9]);
    let lines = lines(&place, &place.path("trace"));
    assert_eq!(lines.iter().filter(|line| *line == "stdout: @done").count(), 2, "{lines:?}");
}

#[test]
fn the_last_words_of_a_program_that_is_killed_are_there() {
    for options in [&[][..], &["--mode", "overwrite"]] {
        let place = Place::new();
        let script = "seq 1000; echo bad >&2; printf last; kill -9 $$";
        let output = captured(&place, options, script).output().expect("it starts");
        assert_eq!(output.status.code(), Some(128 + 9), "{}", told(&output));
        let mut lines = lines(&place, &place.path("trace"));
        lines.retain(|line| line != "stderr: bad");
        let mut expected: Vec<String> = (1..=1000).map(|number| format!("stdout: {number}")).collect();
        expected.push("stdout: last".to_owned());
        assert_eq!(lines, expected, "{options:?}");
        assert!(output.stdout.ends_with(b"1000\nlast"));
    }
}

#[test]
fn who_still_writes_when_the_program_has_ended_is_not_waited_for() {
    let place = Place::new();
    let began = Instant::now();
    let output = captured(&place, &[], "sleep 300 & echo $!").output().expect("it starts");
    assert!(began.elapsed() < Duration::from_secs(200));
    let sleeps = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
    kill_process(Pid::from_raw(sleeps).expect("not 0"), Signal::KILL).expect("it is there");
    assert_eq!(lines(&place, &place.path("trace")), [format!("stdout: {sleeps}")]);
    // One that never stops writing is not waited for either.
    let place = Place::new();
    let output = captured(&place, &[], "yes & echo first; sleep 0.1").stdout(Stdio::piped()).output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn a_program_finds_out_that_nobody_reads_what_it_writes() {
    let place = Place::new();
    let mut kymo = captured(&place, &[], "exec yes").stdout(Stdio::piped()).spawn().expect("it starts");
    let mut first = [0; 4];
    kymo.stdout.take().expect("it is piped").read_exact(&mut first).expect("it writes");
    assert_eq!((&first, kymo.wait().expect("it ends").code()), (b"y\ny\n", Some(128 + 13)));
    // Where the disk is full, the program goes on, and that is told.
    let place = Place::new();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let output = captured(&place, &[], "echo one; sleep 0.1; echo two").stdout(full).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("problem   standard output: No space left on device"), "{}", told(&output));
    assert!(told(&output).contains("it did not get 8 bytes"), "{}", told(&output));
    assert_eq!(lines(&place, &place.path("trace")), ["stdout: one", "stdout: two"]);
}

#[test]
fn streams_that_go_to_one_place_stay_in_the_order_in_which_they_came() {
    for (script, expected) in [("echo o; echo e >&2", "o\ne\n"), ("echo e >&2; echo o", "e\no\n")] {
        let place = Place::new();
        let (mut from, to) = std::io::pipe().expect("there is room");
        // The command does not get to read before both were written.
        let runs = "grep -L '^State:.T' /proc/$PPID/task/*/status";
        let script =
            format!("kill -STOP $PPID; while {runs} | grep -q .; do :; done; {script}; : > written; kill -CONT $PPID");
        let mut command = captured(&place, &["--json"], &script);
        command.stdout(to.try_clone().expect("there is room")).stderr(to);
        let mut kymo = command.spawn().expect("it starts");
        drop(command);
        let mut text = String::new();
        from.read_to_string(&mut text).expect("it is text");
        assert!(kymo.wait().expect("it ends").success() && place.path("written").exists());
        let text = String::from_utf8_lossy(&patient(text.as_bytes())).into_owned();
        assert!(text.starts_with(expected), "{text}");
        let expected: Vec<String> =
            expected.lines().map(|line| format!("{}: {line}", if line == "o" { "stdout" } else { "stderr" })).collect();
        assert_eq!(lines(&place, &place.path("trace")), expected);
    }
}

/// A terminal of this size; who writes there is read from the first.
fn terminal(columns: u16) -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let from = openpt(flags).expect("there are some");
    unlockpt(&from).expect("it is ours");
    resize(&from, columns);
    let to = ioctl_tiocgptpeer(&from, flags).expect("it is ours");
    (from, to)
}

fn resize(terminal: &OwnedFd, columns: u16) {
    let size = Winsize { ws_row: 30, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("it is a terminal");
}

#[test]
fn a_program_on_a_terminal_has_one() {
    let place = Place::new();
    let (from, to) = terminal(90);
    let script = "trap 'stty size <&1; : > resized' WINCH; test -t 1 && test -t 2 && echo both; stty size <&1
        : > begun; until test -e resized; do sleep 0.02; done; printf 'end\n\n'
        until test -e seen; do sleep 0.02; done; echo error >&2";
    let mut command = captured(&place, &["--json"], script);
    command.stdout(to.try_clone().expect("there is room")).stderr(to);
    let mut kymo = command.spawn().expect("it starts");
    drop(command);
    until(|| place.path("begun").exists());
    resize(&from, 120);
    kill_process(Pid::from_child(&kymo), Signal::WINCH).expect("it runs");
    let (mut from, mut seen, mut bytes) = (std::fs::File::from(from), Vec::new(), [0; 256]);
    // Lines of its two outputs have no order but this.
    while !seen.ends_with(b"end\r\n\r\n") {
        let read = from.read(&mut bytes).expect("the program has the terminal open");
        seen.extend_from_slice(&bytes[..read]);
    }
    std::fs::write(place.path("seen"), "").expect("temporary files may be written");
    // It ends with an error: the terminal is not open any more.
    let _ = from.read_to_end(&mut seen);
    assert!(kymo.wait().expect("it ends").success());
    let seen = String::from_utf8_lossy(&patient(&seen)).into_owned();
    assert!(seen.starts_with("both\r\n30 90\r\n30 120\r\nend\r\n\r\nerror\r\n{\""), "{seen:?}");
    let lines = lines(&place, &place.path("trace"));
    assert_eq!(lines, ["stdout: both", "stdout: 30 90", "stdout: 30 120", "stdout: end", "stdout: ", "stderr: error"]);
}

#[test]
fn what_cannot_be_captured_is_not_started() {
    let place = Place::new();
    let output = captured(&place, &[], ": > started").env("KYMO", "off").output().expect("it starts");
    assert_eq!(output.status.code(), Some(126));
    assert!(
        told(&output).contains("error: sh: the lines that it writes cannot be recorded: `KYMO=off`"),
        "{}",
        told(&output)
    );
    assert!(!place.path("started").exists());
    let said = place.says(&["record", "--capture-output"], 2);
    assert!(said.contains("required") && said.contains("COMMAND"), "{said}");
    let place = Place::new();
    let mut kymo = captured(&place, &[], "read -r line; echo $line >&2");
    let mut kymo = kymo.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    writeln!(kymo.stdin.as_mut().expect("it is piped"), "to the program").expect("it reads");
    let output = kymo.wait_with_output().expect("it ends");
    assert!(told(&output).starts_with("to the program\n"), "{}", told(&output));
}
