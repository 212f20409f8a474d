//! Index files are what LTTng would say: its own packets, indexed by our code, give its own index files, and ours give ours.
//!
//! ```text
//! LTTng, kymo ── packets ──┬── the writer's stream, packet by packet ──┬── the same packets, the same index, byte for byte
//!             └─ index     └── the repair of a killed recorder's trace ┘
//! ```

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use kymo_lane::RecordingSettings;
use kymo_recorder::program::DrainTiming;
use kymo_recorder::trace::OutputOptions;
use kymo_units::Uuid;
use kymo_writer::{CtfVersion, HEAD_BYTES, RawClock, RawOptions, RawPacket, RawTrace};

use crate::recording::{Recording, Stage, WANTS, wait};

/// What stands in a stream file's packets, whose heads have the same form in LTTng's traces and in ours.
#[derive(Debug, Default)]
struct Found {
    packets: u64,
    discarded: u64,
    /// Packets at its beginning that are as long as ours without events, which tell 25 bytes of who wrote them, and bytes of those packets.
    long_packets: u64,
    long_bytes: usize,
}

/// The packets of a stream file and its index, given to the writer, are the same again.
fn is_written_again(folder: &Path, name: &str, empty: &Path) -> Found {
    let file = fs::read(folder.join(name)).expect("it is there");
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes"));
    let clock = RawClock {
        name: "clock".to_owned(),
        description: String::new(),
        frequency_hz: 1_000_000_000,
        precision_cycles: 0,
        offset_s: 0,
        offset_cycles: 0,
        is_absolute: false,
    };
    let uuid = Uuid(file[4..20].try_into().expect("16 bytes"));
    let options = RawOptions {
        format: CtfVersion::Ctf18,
        uuid,
        clock,
        environment: Vec::new(),
        packet_fields: Vec::new(),
        is_private: false,
    };
    let trace = RawTrace::create(empty, options).expect("there is room");
    let mut stream = trace.stream(name, word(20) as u32, word(24));
    let (mut at, mut sequence) = (0, 0);
    let mut found = Found::default();
    while at < file.len() {
        let [begin, end, content_bits, bits, number, discarded] = std::array::from_fn(|of| word(at + 32 + 8 * of));
        let padding = ((bits - content_bits) / 8) as usize;
        let packet = RawPacket { begin, end, discarded, missing: number - sequence, padding };
        let size = (bits / 8) as usize;
        let mut bytes = file[at..at + size].to_vec();
        bytes[..HEAD_BYTES].fill(0);
        stream.packet(&mut bytes, &packet).expect("it is a packet");
        (at, sequence) = (at + size, number + 1);
        if found.long_packets == found.packets && size - padding >= HEAD_BYTES + 25 {
            (found.long_packets, found.long_bytes) = (found.long_packets + 1, at);
        }
        (found.packets, found.discarded) = (found.packets + 1, discarded);
    }
    stream.close();
    assert!(fs::read(empty.join(name)).expect("it is there") == file, "{name}: other packets");
    has_index(empty, name, &index(folder, name));
    found
}

fn index(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(format!("index/{name}.idx"))).expect("it has an index")
}

/// A stream's index has these bytes.
fn has_index(folder: &Path, name: &str, expected: &[u8]) {
    let found = index(folder, name);
    let words = |bytes: &[u8]| -> Vec<u64> {
        bytes[16..].chunks(8).map(|word| u64::from_be_bytes(word.try_into().expect("8 bytes"))).collect()
    };
    assert!(found == expected, "{name}: {:?} {:?}", words(&found), words(expected));
}

/// Stream files that have an index.
fn streams(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("index")).expect("it has indexes");
    let names = entries.map(|entry| entry.expect("it is readable").file_name().into_string().expect("it is text"));
    names.map(|name| name.strip_suffix(".idx").expect("it is an index").to_owned()).collect()
}

/// The index that a repair makes of a stream file, which has none, is the one beside it: of its first packets, where others are shorter than
/// any of ours.
fn is_repaired(folder: &Path, name: &str, empty: &Path, found: &Found) {
    fs::create_dir(empty).expect("there is room");
    // Only streams of ours are repaired.
    let bytes = fs::read(folder.join(name)).expect("it is there");
    fs::write(empty.join("lane_1"), &bytes[..found.long_bytes]).expect("there is room");
    let repaired = kymo_recorder::repair(empty).expect("it is readable");
    assert_eq!((repaired.packets, repaired.cut_bytes), (found.long_packets, 0));
    if found.long_packets > 0 {
        has_index(empty, "lane_1", &index(folder, name)[..16 + 72 * found.long_packets as usize]);
    }
}

#[test]
fn of_our_packets_our_index_says_what_they_say() {
    let stage = Stage::new();
    let mut running = stage.program(3);
    let path = stage.path("trace");
    // So little room that events are lost.
    let wants = RecordingSettings { lane: 1, pool: 4, ..WANTS };
    let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &wants);
    for _ in 0..5 {
        running.tell("numbers 20000");
        running.wait_for("done");
        recording.step(DrainTiming::Wait).expect("it is there");
    }
    let tally = recording.finish(DrainTiming::Now);
    let names = streams(&path);
    let all = names.iter().map(|name| {
        let found = is_written_again(&path, name, &stage.path(name));
        is_repaired(&path, name, &stage.path(&format!("{name}-repaired")), &found);
        assert_eq!(found.long_packets, found.packets, "{name}");
        found
    });
    let (packets, discarded) = all.fold((0, 0), |(packets, lost), it| (packets + it.packets, lost + it.discarded));
    assert!(packets > 10 && discarded > 0 && discarded == tally.discarded, "{packets} {discarded} {tally:?}");
}

/// LTTng's session daemon, in a folder that is its home.
struct Lttng {
    home: PathBuf,
    daemon: Child,
}

/// As a user who has no other session daemon; root's would be everybody's.
fn as_user(home: &Path, program: &str) -> Command {
    let mut command = match rustix::process::geteuid().is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", program]);
            command
        }
        false => Command::new(program),
    };
    command.current_dir(home).env("HOME", home).env("LTTNG_HOME", home).env("LTTNG_UST_REGISTER_TIMEOUT", "-1");
    command
}

impl Lttng {
    fn begin(home: PathBuf) -> Self {
        let mut command = as_user(&home, "lttng-sessiond");
        let daemon = command.arg("--no-kernel").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let this = Self { home, daemon };
        wait("LTTng's session daemon", || this.run(&["list"]).status.success());
        this
    }

    fn run(&self, words: &[&str]) -> Output {
        as_user(&self.home, "lttng").arg("--no-sessiond").args(words).output().expect("it starts")
    }

    fn tell(&self, words: &[&str]) {
        let output = self.run(words);
        assert!(output.status.success(), "lttng {words:?}: {output:?}");
    }
}

impl Drop for Lttng {
    fn drop(&mut self) {
        // It ends its consumers.
        let daemon = rustix::process::Pid::from_child(&self.daemon);
        let _ = rustix::process::kill_process(daemon, rustix::process::Signal::TERM);
        let _ = self.daemon.wait();
    }
}

/// In bursts that are more than its buffers hold.
const TRACED: &str = r#"
#include <lttng/tracef.h>
#include <unistd.h>
int main(void)
{
    for (int burst = 0; burst < 20; burst++) {
        for (int number = 0; number < 500; number++)
            lttng_ust_tracef("number %d of burst %d", number, burst);
        usleep(5000);
    }
    return 0;
}
"#;

/// Builds the traced program; `None`: something that is needed is not there, which is told.
fn traced(home: &Path) -> Option<PathBuf> {
    let (source, program) = (home.join("traced.c"), home.join("traced"));
    fs::write(&source, TRACED).expect("there is room");
    let mut compiler = Command::new("cc");
    let built = compiler.arg(&source).arg("-o").arg(&program).args(["-llttng-ust", "-ldl"]).output();
    let is_built = built.is_ok_and(|built| built.status.success());
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let is_there = is_built && ["lttng", "lttng-sessiond", "setpriv"].into_iter().all(is_there);
    if !is_there {
        eprintln!("NOT TESTED: LTTng is not there (lttng-tools, liblttng-ust-dev): whether its indexes are like ours");
    }
    is_there.then_some(program)
}

#[test]
fn of_lttng_s_packets_our_code_makes_lttng_s_index() {
    // Where everybody can get to, whoever that is.
    let stage = tempfile::tempdir_in("/tmp").expect("there is room");
    let home = stage.path().join("home");
    fs::create_dir(&home).expect("there is room");
    let Some(program) = traced(&home) else { return };
    for path in [stage.path(), &home, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
    let lttng = Lttng::begin(home.clone());
    let trace = format!("--output={}", home.join("trace").display());
    lttng.tell(&["create", "s", &trace]);
    lttng.tell(&["enable-channel", "-u", "-s", "s", "--discard", "--num-subbuf=2", "--subbuf-size=4096", "c"]);
    lttng.tell(&["enable-event", "-u", "-s", "s", "-c", "c", "lttng_ust_tracef:*"]);
    lttng.tell(&["start", "s"]);
    let ran = as_user(&home, &program.display().to_string()).output().expect("it starts");
    assert!(ran.status.success(), "{ran:?}");
    lttng.tell(&["stop", "s"]);
    lttng.tell(&["destroy", "s"]);
    drop(lttng);
    let user = fs::read_dir(home.join("trace/ust/uid")).expect("it is recorded").next();
    let folder = user.expect("it has one").expect("it is readable").path().join("64-bit");
    let (mut packets, mut discarded, mut repaired) = (0, 0, 0);
    for name in streams(&folder) {
        let found = is_written_again(&folder, &name, &stage.path().join(&name));
        is_repaired(&folder, &name, &stage.path().join(format!("{name}-repaired")), &found);
        repaired += found.long_packets;
        (packets, discarded) = (packets + found.packets, discarded + found.discarded);
    }
    println!("{packets} packets of LTTng's, {discarded} events discarded, {repaired} packets repaired");
    assert!(packets > 10 && discarded > 0 && repaired > 10, "{packets} {discarded} {repaired}");
}
