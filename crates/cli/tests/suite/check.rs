//! What `kymo check` says of every kind of problem: a trace made here, wrong in one way each.

use std::fs;
use std::path::PathBuf;

use expect_test::{Expect, expect};

use crate::platform;
use crate::program;

const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace {
  major = 1; minor = 8; byte_order = le; uuid = \"01020304-0102-0304-0102-030401020304\";
  packet.header := struct { u32 magic; u8 uuid[16]; };
};
clock { name = c; freq = 1000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := time;
stream {
  packet.context := struct {
    u32 content_size; u32 packet_size; time timestamp_begin; time timestamp_end;
    u32 events_discarded; u32 packet_seq_num;
  };
  event.header := struct { u32 id; time timestamp; };
};
event { id = 0; name = \"tick\"; fields := struct { u32 value; }; };
";
/// Words of 32 bits before a packet's first event.
const HEAD_WORDS: u32 = 13;
/// Words of an event.
const TICK_WORDS: u32 = 4;

/// A packet of ticks.
#[derive(Clone)]
struct Packet {
    begin: u32,
    end: u32,
    discarded: u32,
    sequence: u32,
    ticks: Vec<u32>,
}

/// Between two times, with a tick at each.
fn packet(sequence: u32, begin: u32, end: u32) -> Packet {
    Packet { begin, end, discarded: 0, sequence, ticks: vec![begin, end] }
}

impl Packet {
    fn words(&self) -> Vec<u32> {
        let bits = (HEAD_WORDS + TICK_WORDS * self.ticks.len() as u32) * 32;
        let uuid = u32::from_le_bytes([1, 2, 3, 4]);
        let head = [0xc1fc_1fc1, uuid, uuid, uuid, uuid];
        let context = [bits, bits, self.begin, 0, self.end, 0, self.discarded, self.sequence];
        let ticks = self.ticks.iter().flat_map(|&time| [0, time, 0, 7]);
        head.into_iter().chain(context).chain(ticks).collect()
    }
}

fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// A trace in a folder of its own.
struct Setup {
    root: PathBuf,
}

impl Setup {
    fn new(name: &str, packets: &[Packet]) -> Self {
        Self::of_bytes(name, &bytes(packets.iter().flat_map(Packet::words)))
    }

    fn of_bytes(name: &str, stream: &[u8]) -> Self {
        let root = std::env::temp_dir().join(format!("kymo-check-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("trace/index")).expect("temporary files may be written");
        let setup = Self { root };
        setup.write("metadata", METADATA.as_bytes());
        setup.write("stream", stream);
        setup
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.root.join("trace").join(name), bytes).expect("temporary files may be written");
    }

    /// What is found, and the exit status where it is not 0.
    fn check_with(&self, arguments: &str, expected: &Expect) {
        let done = program::kymo()
            .arg("check")
            .args(arguments.split_whitespace())
            .current_dir(&self.root)
            .output()
            .expect("the program is there");
        assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
        let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
        if let Some(status) = done.status.code().filter(|status| *status != 0) {
            text += &format!("exit status {status}\n");
        }
        expected.assert_eq(&platform::as_on_linux(&text));
    }

    fn check(&self, expected: &Expect) {
        self.check_with("trace", expected);
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // What cannot be removed is removed with the other temporary files some day.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Two packets that follow each other.
fn sound() -> Vec<Packet> {
    vec![packet(0, 10, 20), packet(1, 30, 40)]
}

#[test]
fn nothing_is_wrong() {
    Setup::new("sound", &sound()).check(&expect![[r#"
        no problems found
    "#]]);
}

#[test]
fn metadata_with_errors() {
    let setup = Setup::new("metadata", &sound());
    setup.write("metadata", METADATA.replace("u32 value;", "u33 value;").as_bytes());
    setup.check(&expect![[r#"
        trace/metadata:17:51: error[metadata]: there is no type named `u33`
          help: a `typealias`, `typedef` or named compound type has to come before its first use
        1 error, 0 warnings
        exit status 1
    "#]]);
}

/// What has to be assumed is a warning, unless that is strictly refused.
#[test]
fn metadata_with_an_assumption() {
    let setup = Setup::new("assumption", &sound());
    setup.write("metadata", METADATA.strip_prefix("/* CTF 1.8 */\n").unwrap().as_bytes());
    setup.check(&expect![[r#"
        trace/metadata:1:1: warning[missing-signature]: the text does not begin with `/* CTF 1.8`
          help: make `/* CTF 1.8 */` its first line
        0 errors, 1 warning
    "#]]);
    setup.check_with(
        "--strict trace",
        &expect![[r#"
            trace/metadata:1:1: error[missing-signature]: the text does not begin with `/* CTF 1.8`
              help: make `/* CTF 1.8 */` its first line
            1 error, 0 warnings
            exit status 1
        "#]],
    );
}

#[test]
fn a_field_that_no_reader_decodes() {
    let setup = Setup::new("class", &sound());
    let real = "floating_point { exp_dig = 15; mant_dig = 113; } value;";
    setup.write("metadata", METADATA.replace("u32 value;", real).as_bytes());
    setup.check(&expect![[r#"
        trace: error[field-class]: a floating point number of 128 bits cannot be decoded; 16, 32 and 64 can
          help: let the tracer write a field that can be decoded: nothing of the trace is read
        1 error, 0 warnings
        exit status 1
    "#]]);
}

#[test]
fn paths_that_are_no_traces() {
    let setup = Setup::new("path", &sound());
    fs::create_dir(setup.root.join("empty")).unwrap();
    setup.check_with("absent empty", &expect![[r#"
        absent: error[unreadable-file]: No such file or directory (os error 2)
          help: check the path and its permissions
        empty: error[unreadable-file]: there is no trace here: neither this folder nor one below it has a file named `metadata`; it is empty
          help: check the path and its permissions
        2 errors, 0 warnings
        exit status 1
    "#]]);
}

#[test]
fn a_packet_without_magic_number() {
    let mut words: Vec<u32> = sound().iter().flat_map(Packet::words).collect();
    words[(HEAD_WORDS + 2 * TICK_WORDS) as usize] = 7;
    Setup::of_bytes("magic", &bytes(words)).check(&expect![[r#"
        trace/stream: error[packet-head]: at byte 84: at bit 0: the packet begins with 0x00000007; the magic number is 0xc1fc1fc1
          help: the rest of the file is not read; record again, or cut the file there
        1 error, 0 warnings
        exit status 1
    "#]]);
}

#[test]
fn an_event_that_does_not_exist() {
    let mut words: Vec<u32> = sound().iter().flat_map(Packet::words).collect();
    words[(HEAD_WORDS + TICK_WORDS) as usize] = 5;
    Setup::of_bytes("record", &bytes(words)).check(&expect![[r#"
        trace/stream: error[record]: packet 0 at byte 0: the event record at bit 544: at bit 544: no event record class has the id 5
          help: the rest of the packet is not read; the metadata may be of another trace
        1 error, 0 warnings
        exit status 1
    "#]]);
}

#[test]
fn a_packet_that_is_cut() {
    let bytes = bytes(sound().iter().flat_map(Packet::words));
    Setup::of_bytes("cut", &bytes[..bytes.len() - 6]).check(&expect![[r#"
        trace/stream: error[cut-packet]: packet 1 at byte 84: the file ends 624 bits after the packet's beginning, before the packet does
          help: the copy or the recording was interrupted; copy it again
        1 error, 0 warnings
        exit status 1
    "#]]);
}

/// The second packet's too: it is counted, not told again.
#[test]
fn another_uuid() {
    let mut words: Vec<u32> = sound().iter().flat_map(Packet::words).collect();
    (words[1], words[(HEAD_WORDS + 2 * TICK_WORDS) as usize + 1]) = (9, 9);
    Setup::of_bytes("uuid", &bytes(words)).check(&expect![[r#"
        trace/stream: warning[uuid-mismatch]: packet at byte 0: its UUID is not the metadata's
          help: the file may be of another trace: compare the uuid in the metadata
          and 1 time more in this file
        0 errors, 1 warning
    "#]]);
}

#[test]
fn a_clock_that_steps_back() {
    let mut packets = sound();
    packets[1].ticks = vec![40, 31];
    Setup::new("clock", &packets).check(&expect![[r#"
        trace/stream: warning[clock-steps-back]: packet at byte 84: the event at bit 640 has the time 31 cycles, the one before it 40
          help: the tracer's clock is not monotonic: record with one that is
        0 errors, 1 warning
    "#]]);
}

#[test]
fn packets_that_are_missing() {
    Setup::new("gap", &[packet(0, 10, 20), packet(3, 30, 40)]).check(&expect![[r#"
        trace/stream: warning[packets-lost]: packet at byte 84: sequence number 3 follows 0: 2 packets are missing
          help: the tracer overwrote or lost packets: use more or larger buffers
        0 errors, 1 warning
    "#]]);
}

#[test]
fn sequence_numbers_that_step_back() {
    Setup::new("back", &[packet(5, 10, 20), packet(5, 30, 40)]).check(&expect![[r#"
        trace/stream: warning[sequence-steps-back]: packet at byte 84: sequence number 5 follows 5
          help: packets may be of several recordings in one file
        0 errors, 1 warning
    "#]]);
}

/// What was lost before the first packet is not known; afterwards the counter tells.
#[test]
fn events_that_were_discarded() {
    let mut packets = [sound(), vec![packet(2, 50, 60)]].concat();
    for (packet, discarded) in packets.iter_mut().zip([3, 3, 10]) {
        packet.discarded = discarded;
    }
    Setup::new("discarded", &packets).check(&expect![[r#"
        trace/stream: warning[events-discarded]: packet at byte 0: events were discarded before the first packet ended; how many is not known
          help: nothing says how many of them are of this trace; where that matters, record from the program's start
        trace/stream: warning[events-discarded]: packet at byte 168: 7 events were discarded before its end
          help: the tracer had no room: use more or larger buffers
        0 errors, 2 warnings
    "#]]);
}

#[test]
fn a_counter_of_discarded_events_that_steps_back() {
    let mut packets = [sound(), vec![packet(2, 50, 60)]].concat();
    packets[1].discarded = 4;
    packets[2].discarded = 1;
    Setup::new("counter", &packets).check(&expect![[r#"
        trace/stream: warning[events-discarded]: packet at byte 84: 4 events were discarded before its end
          help: the tracer had no room: use more or larger buffers
        trace/stream: warning[discarded-steps-back]: packet at byte 168: its count of discarded events is 1, where the packet before had 4
          help: the number of discarded events cannot be trusted
        0 errors, 2 warnings
    "#]]);
}

#[test]
fn a_packet_that_ends_before_it_begins() {
    let mut packets = sound();
    (packets[1].begin, packets[1].end) = (35, 33);
    packets[1].ticks = vec![35];
    Setup::new("times", &packets).check(&expect![[r#"
        trace/stream: warning[begin-after-end]: packet at byte 84: begins at 35 cycles, after its end at 33
          help: the tracer wrote the packet's times wrongly; events have their own
        0 errors, 1 warning
    "#]]);
}

#[test]
fn packets_that_overlap() {
    Setup::new("overlap", &[packet(0, 10, 31), packet(1, 30, 40)]).check(&expect![[r#"
        trace/stream: warning[packets-overlap]: packet at byte 84: begins at 30 cycles; the packet before ends at 31
          help: searching by time may miss events near the packets' borders
        trace/stream: warning[clock-steps-back]: packet at byte 84: the event at bit 512 has the time 30 cycles, the one before it 31
          help: the tracer's clock is not monotonic: record with one that is
        0 errors, 2 warnings
    "#]]);
}

#[test]
fn an_event_outside_of_its_packet() {
    let mut packets = sound();
    packets[0].ticks = vec![10, 25];
    Setup::new("outside", &packets).check(&expect![[r#"
        trace/stream: warning[event-outside-packet]: packet at byte 0: the event at bit 640 has the time 25 cycles, outside of 10 to 20
          help: searching by time may miss the event; its own time is used
        0 errors, 1 warning
    "#]]);
}

/// Index files of LTTng 2.11: (magic, version, entry size), entries of nine numbers.
fn index(entries: &[[u64; 9]]) -> Vec<u8> {
    let header = [0xc1f1_dcc1_u32, 1, 1, 72].into_iter().flat_map(u32::to_be_bytes);
    header.chain(entries.iter().flatten().flat_map(|number| number.to_be_bytes())).collect()
}

/// The entries of the sound packets.
fn entries() -> Vec<[u64; 9]> {
    let bits = u64::from(HEAD_WORDS + 2 * TICK_WORDS) * 32;
    let entry = |packet: &Packet| {
        let (sequence, offset) = (u64::from(packet.sequence), u64::from(packet.sequence) * bits / 8);
        [offset, bits, bits, packet.begin.into(), packet.end.into(), packet.discarded.into(), 0, 0, sequence]
    };
    sound().iter().map(entry).collect()
}

#[test]
fn index_files() {
    let setup = Setup::new("index", &sound());
    setup.write("index/stream.idx", &index(&entries()));
    setup.check(&expect![[r#"
        no problems found
    "#]]);
    // Times of another packet.
    let mut wrong = entries();
    wrong[1][4] += 1;
    setup.write("index/stream.idx", &index(&wrong));
    setup.check(&expect![[r#"
        trace/stream: warning[index-disagrees]: its index file: at byte 88: the entry does not agree with the packet at byte 84
          help: packets are read as they say themselves: delete the index file, or index the file anew
        0 errors, 1 warning
    "#]]);
    setup.write("index/stream.idx", &index(&entries()[..1]));
    setup.check(&expect![[r#"
        trace/stream: warning[index-disagrees]: its index file knows 1 of 2 packets
          help: packets are read as they say themselves: delete the index file, or index the file anew
        0 errors, 1 warning
    "#]]);
    setup.write("index/stream.idx", b"no index");
    setup.check(&expect![[r#"
        trace/stream: warning[index-disagrees]: its index file: at byte 0: expected a header of 16 bytes, found 8 bytes
          help: packets are read as they say themselves: delete the index file, or index the file anew
        0 errors, 1 warning
    "#]]);
}

/// One finding a line for programs.
#[test]
fn json() {
    Setup::new("json", &[packet(0, 10, 20), packet(3, 30, 40)]).check_with("--json trace", &expect![[r#"
        {"errors":0,"findings":[{"severity":"warning","rule":"packets-lost","assumption":false,"place":"trace/stream","message":"packet at byte 84: sequence number 3 follows 0: 2 packets are missing","help":"the tracer overwrote or lost packets: use more or larger buffers","times":1}]}
    "#]]);
}

#[test]
fn a_problem_of_several_files_is_told_once() {
    let lossy = bytes([packet(0, 10, 20), packet(3, 30, 40)].iter().flat_map(Packet::words));
    let setup = Setup::of_bytes("several", &lossy);
    for name in ["a", "b"] {
        setup.write(name, &lossy);
    }
    // It lacks one packet less.
    setup.write("c", &bytes([packet(0, 10, 20), packet(2, 30, 40)].iter().flat_map(Packet::words)));
    setup.check(&expect![[r#"
        trace/a: warning[packets-lost]: packet at byte 84: sequence number 3 follows 0: 2 packets are missing
          help: the tracer overwrote or lost packets: use more or larger buffers
          also b, stream
        trace/c: warning[packets-lost]: packet at byte 84: sequence number 2 follows 0: 1 packet is missing
          help: the tracer overwrote or lost packets: use more or larger buffers
        0 errors, 4 warnings
    "#]]);
}
