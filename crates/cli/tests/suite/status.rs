//! What each command ends with: 0 everything was read, 1 something could not be, 2 wrong usage.

use std::fs;
use std::path::{Path, PathBuf};

use crate::imported::genode::{METADATA as METADATA_OF_GENODE, packet};
use crate::program;

/// Commands that read a trace; what they write goes to the folder `out`.
const COMMANDS: &[&str] = &[
    "info",
    "info --json",
    "info --exact",
    "print",
    "print --format none",
    "print --format details",
    "print --format json",
    "print --format csv",
    "count",
    "count --sizes",
    "count --json",
    "cut --output out",
    "check",
    "check --json",
    #[cfg(feature = "export")]
    "export --output out",
];

const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace { major = 1; minor = 8; byte_order = le; };
event { name = \"tick\"; fields := struct { u32 value; }; };
";

struct Setup {
    root: PathBuf,
}

impl Setup {
    fn new(name: &str, metadata: &str, stream: &[u8]) -> Self {
        let root = std::env::temp_dir().join(format!("kymo-status-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("trace")).expect("temporary files may be written");
        fs::write(root.join("trace/metadata"), metadata).expect("temporary files may be written");
        fs::write(root.join("trace/stream"), stream).expect("temporary files may be written");
        Self { root }
    }

    fn status(&self, arguments: &str) -> Option<i32> {
        let _ = fs::remove_dir_all(self.root.join("out"));
        status(arguments, &self.root)
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // What cannot be removed is removed with the other temporary files some day.
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn status(arguments: &str, folder: &Path) -> Option<i32> {
    let done = program::kymo()
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .expect("the program is there");
    assert!(done.stderr.is_empty() || done.status.code() != Some(0) || !arguments.contains("--strict"));
    done.status.code()
}

#[test]
fn everything_was_read() {
    let setup = Setup::new("sound", METADATA, &[0; 12]);
    for command in COMMANDS {
        assert_eq!(setup.status(&format!("{command} trace")), Some(0), "{command}");
        assert_eq!(setup.status(&format!("{command} --strict trace")), Some(0), "{command} --strict");
    }
    for command in [
        "index trace",
        "index --remove trace",
        "metadata trace",
        "metadata --as ctf2 --strict trace",
        "completions fish",
    ] {
        assert_eq!(setup.status(command), Some(0), "{command}");
    }
    for command in ["trace", "trace trace", "--json trace", "trace --exact", "-- trace", "./trace"] {
        assert_eq!(setup.status(command), Some(0), "{command}: the same as `info`");
    }
}

/// The metadata lack their signature: a warning, but with `--strict` an error.
#[test]
fn something_was_assumed() {
    let setup = Setup::new("assumed", METADATA.strip_prefix("/* CTF 1.8 */\n").unwrap(), &[0; 12]);
    for command in COMMANDS.iter().chain(&["metadata"]) {
        assert_eq!(setup.status(&format!("{command} trace")), Some(0), "{command}");
        assert_eq!(setup.status(&format!("{command} --strict trace")), Some(1), "{command} --strict");
    }
}

const JSON: &str = "\u{1e}{\"type\": \"preamble\", \"version\": 2}\u{1e}{\"type\": \"data-stream-class\"}\
\u{1e}{\"type\": \"event-record-class\", \"name\": \"tick\", \"payload-field-class\": {\"type\": \"structure\", \
\"member-classes\": [{\"name\": \"value\", \"field-class\": {\"type\": \"fixed-length-unsigned-integer\", \
\"length\": 32, \"byte-order\": \"little-endian\"}}]}}";

/// The release candidate gave the trace class a UUID; the final specification gives the preamble one.
const RC: &str = "{\"type\": \"trace-class\", \"uuid\": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}\u{1e}";

const CLOCK: &str = "clock { name = c; freq = 1000; };
stream { event.header := struct { integer { size = 64; map = clock.c.value; } timestamp; }; };
event";
const UUID: &str = "uuid = \"00000000-0000-0000-0000-000000000001\"; \
                    packet.header := struct { integer { size = 8; align = 8; } uuid[16]; }; };";

/// Packets that say when they begin and end, in milliseconds.
const LTTNG: &str = "env { tracer_name = \"lttng-modules\"; };
clock { name = c; freq = 1000; };
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
stream { packet.context := struct { time timestamp_begin; time timestamp_end; u32 content_size; u32 packet_size; };
event.header := struct { time timestamp; }; };
event";

/// A full packet of a page from 1 ms to a time, with events in its first moment.
fn timed(end: u8) -> Vec<u8> {
    let times = [[1, 0, 0, 0, 0, 0, 0, 0], [end, 0, 0, 0, 0, 0, 0, 0]].concat();
    let sizes = [8 * (24 + 12 * 339), 8 * 4096_u32].map(u32::to_le_bytes).concat();
    let events = [1, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9].repeat(339);
    let mut page = [times, sizes, events].concat();
    page.resize(4096, 0);
    page
}

/// Each assumption of the closed list is a warning with its name, and an error with `--strict`.
#[test]
fn every_assumption() {
    let header = |clocks: &str, fields: &str| -> Vec<u8> {
        let stream = format!("{clocks} stream {{ event.header := struct {{ {fields} }}; }};\nevent");
        METADATA.replace("event", &stream).into()
    };
    let payload = |fields: &str| -> Vec<u8> { METADATA.replace("u32 value;", fields).into() };
    let switch = METADATA.replace("event", CLOCK).replace("tick", "sched_switch");
    let cases: [(&str, Vec<u8>, &[u8]); 18] = [
        ("missing-signature", METADATA.replace("/* CTF 1.8 */", "").into(), &[0; 8]),
        ("unknown-attribute", METADATA.replace("byte_order = le;", "byte_order = le; colour = 3;").into(), &[0; 8]),
        (
            "release-candidate-dialect",
            JSON.replace("{\"type\": \"data-", &format!("{RC}{{\"type\": \"data-")).into(),
            &[0; 8],
        ),
        ("trailing-comma", JSON.replace("}}]", "}},]").into(), &[0; 8]),
        ("metadata-encoding", [METADATA.as_bytes(), b"/* \xff */"].concat(), &[0; 8]),
        ("byte-order-mark", [b"\xef\xbb\xbf", METADATA.as_bytes()].concat(), &[0; 8]),
        ("nul-characters", [METADATA.as_bytes(), b"\0"].concat(), &[0; 8]),
        ("implicit-clock", header("", "u32 timestamp;"), &[0; 8]),
        ("unmapped-timestamp", header("clock { name = a; }; clock { name = b; };", "u32 timestamp;"), &[0; 8]),
        ("special-field-type", header("", "integer { size = 8; signed = true; } id;"), &[0; 10]),
        ("reserved-word", payload("u32 struct;"), &[0; 8]),
        ("label-out-of-range", payload("enum : u32 { A = -1 } value;"), &[0; 8]),
        ("ambiguous-name", payload("integer { size = 16; } _a; integer { size = 16; } a;"), &[0; 8]),
        ("uuid-mismatch", METADATA.replacen("le; };", &format!("le; {UUID}"), 1).into(), &[0; 20]),
        (
            "clock-steps-back",
            METADATA.replace("event", CLOCK).into(),
            &[2, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 1, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9],
        ),
        ("time-out-of-range", METADATA.replace("event", CLOCK).into(), &[255; 12]),
        ("cpu-unknown", switch.replace("u32 value;", "u32 prev_tid; u32 next_tid;").into(), &[0; 16]),
        ("ends-early", METADATA.replace("event", LTTNG).into(), &timed(2)),
    ];
    let names = cases.each_ref().map(|(name, ..)| *name);
    assert_eq!(listed_assumptions()[..names.len()], names, "docs/assumptions.md");
    for (name, metadata, stream) in cases {
        let setup = Setup::new(name, "", stream);
        fs::write(setup.root.join("trace/metadata"), metadata).expect("temporary files may be written");
        if name == "ends-early" {
            fs::write(setup.root.join("trace/other"), timed(12)).expect("temporary files may be written");
        }
        // Only analyses rely on CPUs.
        let command = if name == "cpu-unknown" { "cpu" } else { "print" };
        for (option, gravity, status) in [("--clock-gmt", "warning", 0), ("--strict", "error", 1)] {
            let done = program::kymo().args([command, option, "trace"]).current_dir(&setup.root).output();
            let done = done.expect("the program is there");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(said.contains(&format!("{gravity}[{name}]: ")), "{name} {option}: {said}");
            assert_eq!(done.status.code(), Some(status), "{name} {option}: {said}");
            assert!(!done.stdout.is_empty(), "{name} {option}");
        }
    }
}

fn listed_assumptions() -> Vec<&'static str> {
    let list = include_str!("../../../../docs/assumptions.md");
    list.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

/// The other half of the list: files in other formats.
#[test]
fn every_assumption_about_imported_files() {
    const HEAD: &str = "# Start 1 Duration 0 Stop 2\n# Min_timestamp 1\n# Core 0 LOG DUMP ===\n# Offset 0 0\n";
    let full: String = (0..2998).map(|time| format!("0 {time} 1\n")).collect();
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // A section, an interface, a packet without a time.
    let simple = [
        words(&[0x0A0D_0D0A, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28]),
        words(&[1, 20, 1, 0, 20]),
        words(&[3, 20, 4, 0, 20]),
    ];
    // Of a day too late in a leap year.
    let late = 1_704_067_200_000_000_u64 + 86_400_000_000;
    let capture = [
        words(&[0x0A0D_0D0A, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28]),
        words(&[1, 20, 1, 0, 20]),
        words(&[6, 36, 0, (late >> 32) as u32, late as u32, 4, 4, 0, 36]),
    ];
    let thread = |begin: u64, end: u64| packet("init", "ep", &[(1, begin, b"a\0"), (2, end, b"a\0")]);
    let (two, short) = (thread(9, 20), thread((1 << 31) + 9, (1 << 32) - 9));
    let cases = [
        ("unknown-frequency", "file", format!("{HEAD}0 1 1\n").into_bytes()),
        ("guessed-definitions", "file", format!("{HEAD}0 1 1\n").into_bytes()),
        ("unnamed-events", "file", format!("{HEAD}0 1 5000000000000\n").into_bytes()),
        ("other-lines", "file", format!("{HEAD}noise\n0 1 1\n").into_bytes()),
        ("unordered-events", "file", format!("{HEAD}0 2 1\n0 1 1\n").into_bytes()),
        ("repeated-events", "file", format!("{HEAD}0 1 1\n{HEAD}0 1 1\n").into_bytes()),
        ("buffer-full", "file", format!("{HEAD}{full}").into_bytes()),
        ("no-time", "file", simple.concat()),
        ("folder-date", "2024-1-1 0:0:0/init/ep", thread(1, 2)),
        ("shared-name", "2024-1-1 0:0:0/init/ep", [two, thread(10, 21)].concat()),
        ("short-clock", "2024-1-1 0:0:0/init/ep", [short, thread(3, 4)].concat()),
        ("leap-day", "2024-1-1 0:0:0/init.pcapng", capture.concat()),
    ];
    let names = cases.each_ref().map(|(name, ..)| *name);
    let listed = listed_assumptions();
    assert_eq!(listed[listed.len() - names.len()..], names, "docs/assumptions.md");
    for (name, path, content) in cases {
        let setup = Setup::new(name, "", &[]);
        let write = |path: &Path, content: &[u8]| fs::write(path, content).expect("temporary files may be written");
        let path = setup.root.join("all").join(path);
        if name == "unnamed-events" {
            fs::create_dir_all(setup.root.join("all")).expect("temporary files may be written");
            write(&path.with_file_name("trace_defs.pleco"), b"subsystem a { event b \"\", };");
        }
        let component = setup.root.join("all/2024-1-1 0:0:0/init");
        fs::create_dir_all(&component).expect("temporary files may be written");
        if path.extension().is_some() || path.starts_with(&component) {
            write(&component.join("metadata"), METADATA_OF_GENODE);
        }
        write(&path, &content);
        for (option, gravity, status) in [("--clock-gmt", "warning", 0), ("--strict", "error", 1)] {
            let done = program::kymo().args(["print", option, "all"]).current_dir(&setup.root).output();
            let done = done.expect("the program is there");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(said.contains(&format!("{gravity}[{name}]: ")), "{name} {option}: {said}");
            assert_eq!(done.status.code(), Some(status), "{name} {option}: {said}");
            assert!(!done.stdout.is_empty(), "{name} {option}");
        }
    }
}

const SIZES: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
stream { packet.context := struct { u32 packet_size; u32 content_size; }; };
event { name = \"tick\"; fields := struct { u32 value; }; };
";

/// A packet of [`SIZES`] with one event, which gives its size in bits or in bytes.
fn packet_of_sizes(in_bytes: bool) -> Vec<u8> {
    let size = if in_bytes { 16 } else { 8 * 16 };
    [0xc1fc_1fc1, size, size, 7_u32].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Traces are folders of this machine: standard output and URLs are refused, not made into folders of that name.
#[test]
fn a_new_folder_is_no_stream_and_no_url() {
    let setup = Setup::new("folders", METADATA, &[0; 4]);
    let mut commands = vec!["cut trace"];
    if cfg!(target_os = "linux") {
        commands.extend(["record", "snapshot", "recover"]);
    }
    for command in commands {
        for (output, why) in [("-", "standard output cannot hold"), ("tcp://host/trace", "cannot be a URL")] {
            let words = command.split_whitespace().chain(["--output", output]);
            let done = program::kymo().args(words).current_dir(&setup.root).output().expect("the program is there");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.code() == Some(2) && said.contains(why), "{command} {output}: {said}");
        }
    }
    assert_eq!(setup.status("cut trace --output ./-"), Some(0));
    assert!(setup.root.join("-/metadata").is_file() && !setup.root.join("tcp:").exists());
}

/// Errors name their common cause where there is one.
#[test]
fn errors_name_their_common_cause() {
    let said = |stream: &[u8]| {
        let setup = Setup::new("cause", SIZES, stream);
        let done = program::kymo().args(["print", "trace"]).current_dir(&setup.root).output();
        let done = done.expect("the program is there");
        assert_eq!(done.status.code(), Some(1));
        (String::from_utf8_lossy(&done.stdout).lines().count(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (lines, text) = said(&packet_of_sizes(true));
    assert!(lines == 0 && text.contains("; its sizes look like bytes, where bits are expected"), "{text}");
    let (lines, text) = said(&[packet_of_sizes(false), vec![0; 1000]].concat());
    let expected =
        "at byte 16: the rest of the file, 1000 bytes, is zeros: recording ended before packets were written there";
    assert!(lines == 1 && text.contains(expected), "{text}");
    let (lines, text) = said(&[packet_of_sizes(false), vec![0; 1000], vec![1]].concat());
    assert!(lines == 1 && text.contains("at byte 16: at bit 0: the packet begins with 0x00000000"), "{text}");
}

/// An expression may begin with a minus, and Babeltrace's other words for names mean the same.
#[test]
fn words_that_look_like_others() {
    let setup = Setup::new("words", METADATA, &[0; 12]);
    for command in ["count --filter -value==0", "print -F -1<value", "print --names arg", "print --names args,ctx"] {
        assert_eq!(setup.status(&format!("{command} trace")), Some(0), "{command}");
    }
    assert_eq!(setup.status("print --begin 12:48:1 trace"), Some(2));
}

/// A message that cannot be written is no reason to stop, but to say so in the end.
#[cfg(target_os = "linux")]
#[test]
fn messages_without_room() {
    let setup = Setup::new("full", METADATA.strip_prefix("/* CTF 1.8 */\n").unwrap(), &[0; 12]);
    let run = |arguments: &[&str]| {
        let full = fs::File::create("/dev/full").expect("Linux has it");
        let done = program::kymo().args(arguments).current_dir(&setup.root).stderr(full).output();
        done.expect("the program is there")
    };
    let done = run(&["print", "trace"]);
    assert_eq!(done.status.code(), Some(1), "its warning is lost");
    assert_eq!(String::from_utf8_lossy(&done.stdout).lines().count(), 3);
    assert_eq!(run(&["print", "absent"]).status.code(), Some(1));
    assert_eq!(run(&["print", "--filter", "1 +", "trace"]).status.code(), Some(2));
    let sound = Setup::new("full-sound", METADATA, &[0; 12]);
    fs::rename(sound.root.join("trace"), setup.root.join("sound")).expect("temporary files may be written");
    assert_eq!(run(&["print", "sound"]).status.code(), Some(0), "it has no message");
}

/// Names of a trace do not change the terminal.
#[test]
fn control_characters_are_escaped() {
    let metadata = METADATA.replace("tick", "ti\x1b[31mck").replace("u32 value;", "u32 value; u32 \x1b]0;t\x07;");
    let setup = Setup::new("controls", &metadata, &[0; 12]);
    let harmless = |text: &[u8]| text.iter().all(|byte| !byte.is_ascii_control() || matches!(byte, b'\n' | b'\t'));
    let sound =
        METADATA.replace("tick", "ti\x1b[31mck").replace("trace {", "env { hostname = \"h\x1b[2J\"; };\ntrace {");
    for (name, metadata) in [("metadata", &metadata), ("sound", &sound)] {
        fs::write(setup.root.join("trace/metadata"), metadata).expect("temporary files may be written");
        for command in ["info", "print", "print --format details", "count", "check", "count --event no\x1bne"] {
            let done = program::kymo().args(command.split(' ')).arg("trace").current_dir(&setup.root).output();
            let done = done.expect("the program is there");
            assert!(harmless(&done.stdout), "{name} {command}: {:?}", String::from_utf8_lossy(&done.stdout));
            assert!(harmless(&done.stderr), "{name} {command}: {:?}", String::from_utf8_lossy(&done.stderr));
        }
    }
}

/// The last event is cut: what is before it is shown.
#[test]
fn something_could_not_be_read() {
    let setup = Setup::new("cut", METADATA, &[0; 14]);
    for command in COMMANDS {
        assert_eq!(setup.status(&format!("{command} trace")), Some(1), "{command}");
    }
    // These look at no event.
    assert_eq!(setup.status("index trace"), Some(0));
    assert_eq!(setup.status("metadata trace"), Some(0));
}

#[test]
fn nothing_could_be_read() {
    let setup = Setup::new("broken", "/* CTF 1.8 */ trace {", &[0; 12]);
    for command in COMMANDS.iter().chain(&["index", "metadata", "metadata --as tsdl"]) {
        assert_eq!(setup.status(&format!("{command} trace")), Some(1), "{command}");
        assert_eq!(setup.status(&format!("{command} absent")), Some(1), "{command}, absent");
    }
}

#[test]
fn wrong_usage() {
    let setup = Setup::new("usage", METADATA, &[]);
    for command in COMMANDS.iter().chain(&["index", "metadata"]) {
        assert_eq!(setup.status(&format!("{command} --nonsense trace")), Some(2), "{command}");
        assert_eq!(setup.status(command), Some(2), "{command} without a trace");
    }
    for command in
        ["", "print --begin soon trace", "count --by colour trace", "cut trace", "completions tcl", "man nonsense"]
    {
        assert_eq!(setup.status(command), Some(2), "{command}");
    }
    for command in ["print", "cut --output out", "print --format details"] {
        assert_eq!(setup.status(&format!("{command} --begin 5 --end 3 trace")), Some(2), "{command}");
        assert_eq!(setup.status(&format!("{command} --begin 9999-01-01T00:00 trace")), Some(2), "{command}");
        assert_eq!(setup.status(&format!("{command} --begin 5 --end 5 trace")), Some(0), "{command}");
    }
}

/// Whoever reads what we write has left before we begin: nobody wants to hear of it.
#[test]
fn a_closed_pipe_is_no_news() {
    let setup = Setup::new("pipe", METADATA, &[0; 12]);
    let others =
        ["index", "metadata", "metadata --as ctf2", "completions bash", "completions fish", "man", "man print"];
    for command in COMMANDS.iter().chain(&others) {
        let needs_trace = !command.starts_with("completions") && !command.starts_with("man");
        let _ = fs::remove_dir_all(setup.root.join("out"));
        let (reader, writer) = std::io::pipe().expect("pipes can be made");
        drop(reader);
        let done = program::kymo()
            .args(command.split_whitespace())
            .args(needs_trace.then_some("trace"))
            .current_dir(&setup.root)
            .env("XDG_CACHE_HOME", setup.root.join("cache"))
            .stdout(writer)
            .output()
            .expect("the program is there");
        assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{command}");
        assert_eq!(done.status.code(), Some(0), "{command}");
    }
}

/// A package has the pages of all commands, which the page of `kymo` lists.
#[test]
fn manual_pages_are_written_to_a_folder() {
    let setup = Setup::new("man", METADATA, &[0; 12]);
    assert_eq!(setup.status("man --output pages/man1"), Some(0));
    let page = |name: &str| fs::read_to_string(setup.root.join("pages/man1").join(name)).expect("there is a page");
    let all = page("kymo.1");
    let listed = all.lines().filter_map(|line| line.strip_prefix("kymo\\-")?.strip_suffix("(1)"));
    let names: Vec<String> = listed.map(|name| format!("kymo-{}.1", name.replace("\\-", "-"))).collect();
    assert!(names.len() > 20 && names.contains(&"kymo-print.1".to_owned()), "{names:?}");
    for name in &names {
        assert!(page(name).contains("\n.SH EXTRA\nExample"), "{name}");
    }
    assert_eq!(setup.status("man --output trace/metadata"), Some(1));
    assert_eq!(setup.status("man print --output pages"), Some(2));
}

/// The help of every command ends with examples, which begin like what people type, and fits a terminal.
#[test]
fn help_has_examples() {
    let help = |command: &str| {
        let done = program::kymo().args(command.split_whitespace()).arg("--help").output();
        String::from_utf8(done.expect("the program is there").stdout).expect("help is text")
    };
    let all = help("");
    // Groups of commands stand between the usage and the options.
    let listed = all.lines().skip_while(|line| !line.ends_with(':')).take_while(|line| *line != "Options:");
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let commands: Vec<&str> = names.collect();
    assert!(commands.len() > 30 && commands.contains(&"index") && commands.contains(&"cut"), "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let text = help(command);
        let (_, examples) = text.rsplit_once("\nExample").unwrap_or_else(|| panic!("{command} has no examples"));
        let lines: Vec<&str> = examples.lines().skip(1).take_while(|line| !line.is_empty()).collect();
        assert!(lines.iter().any(|line| line.starts_with(&format!("  kymo {command} "))), "{command}: {lines:?}");
    }
}
