//! What becomes of the packet index while a trace changes: a trace of many small packets, made here.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use expect_test::{Expect, expect};

use crate::copies;
use crate::platform;
use crate::program;

const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
stream { packet.context := struct { u32 content_size; u32 packet_size; }; event.header := struct { u32 id; }; };
event { id = 0; name = \"tick\"; fields := struct { u32 value; }; };
";
/// Words of 32 bits in a packet: magic number, two sizes, one event, padding.
const PACKET_WORDS: usize = 8;

struct Setup {
    root: PathBuf,
}

impl Setup {
    /// A trace whose stream has so many packets.
    fn new(name: &str, packets: u32) -> Self {
        let root = std::env::temp_dir().join(format!("kymo-index-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("trace")).expect("temporary files may be written");
        let setup = Self { root };
        setup.metadata(METADATA);
        setup.stream(packets);
        setup
    }

    fn metadata(&self, text: &str) {
        fs::write(self.root.join("trace/metadata"), text).expect("temporary files may be written");
    }

    /// Writes the stream in place, at a time of its own.
    fn stream(&self, packets: u32) {
        let packet = |number| {
            let mut words = vec![0xc1fc_1fc1, 5 * 32, PACKET_WORDS as u32 * 32, 0, number];
            words.resize(PACKET_WORDS, 0);
            words
        };
        let bytes: Vec<u8> = (0..packets).flat_map(packet).flat_map(u32::to_le_bytes).collect();
        fs::write(self.root.join("trace/stream"), bytes).expect("temporary files may be written");
        self.touch(1000);
    }

    fn touch(&self, second: u64) {
        let stream = OpenOptions::new().write(true).open(self.root.join("trace/stream")).expect("it is there");
        stream.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).expect("it may be set");
    }

    fn append(&self, bytes: &[u8]) {
        let path = self.root.join("trace/stream");
        let mut all = fs::read(&path).expect("it is there");
        all.extend(bytes);
        fs::write(path, all).expect("temporary files may be written");
    }

    /// What `kymo index` says, without times and sizes of places that differ from run to run.
    fn says(&self, arguments: &str) -> String {
        let done = program::kymo()
            .arg("index")
            .args(arguments.split_whitespace())
            .arg("trace")
            .current_dir(&self.root)
            .env("XDG_CACHE_HOME", self.root.join("cache"))
            .output()
            .expect("the program is there");
        let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
        text += &String::from_utf8_lossy(&done.stderr);
        if let Some(status) = done.status.code().filter(|status| *status != 0) {
            text += &format!("exit status {status}\n");
        }
        let lines = text.lines().filter(|line| !line.starts_with("  time  "));
        let root = self.root.display().to_string();
        let text: String = lines.map(|line| line.replace(&root, "ROOT") + "\n").collect();
        platform::as_on_linux(&text)
    }

    fn check(&self, arguments: &str, expected: &Expect) {
        expected.assert_eq(&self.says(arguments));
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // What cannot be removed is removed with the other temporary files some day.
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[test]
fn built_once_and_valid_until_removed() {
    let setup = Setup::new("once", 100);
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   100 in 1 file, 3.1 KiB
          index     built: there was none
          kept      1 file, 7.1 KiB, in ROOT/cache/kymograph
    "#]],
    );
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   100 in 1 file, 3.1 KiB
          index     valid
          kept      1 file, 7.1 KiB, in ROOT/cache/kymograph
    "#]],
    );
    setup.check(
        "--remove",
        &expect![[r#"
        trace
          index     removed
    "#]],
    );
    setup.check(
        "--remove",
        &expect![[r#"
        trace
          index     absent
    "#]],
    );
}

/// The file only grew: what was known is kept, but for the last packet, which the old end may have cut.
#[test]
fn a_stream_that_grew() {
    let setup = Setup::new("grew", 100);
    setup.says("");
    setup.stream(120);
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   120 in 1 file, 3.8 KiB
          index     extended: the file grew behind 99 packets
          kept      1 file, 8.5 KiB, in ROOT/cache/kymograph
    "#]],
    );
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   120 in 1 file, 3.8 KiB
          index     valid
          kept      1 file, 8.5 KiB, in ROOT/cache/kymograph
    "#]],
    );
}

/// Each rule of validity that does not hold is named.
#[test]
fn a_stream_that_changed() {
    let setup = Setup::new("changed", 100);
    setup.says("");
    setup.touch(2000);
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   100 in 1 file, 3.1 KiB
          index     built: the stream's file was written to (its time of change differs)
          kept      1 file, 7.1 KiB, in ROOT/cache/kymograph
    "#]],
    );
    setup.stream(90);
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   90 in 1 file, 2.8 KiB
          index     built: the stream's file shrank from 3200 to 2880 bytes
          kept      1 file, 6.4 KiB, in ROOT/cache/kymograph
    "#]],
    );
    setup.metadata(&METADATA.replace("tick", "tock"));
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   90 in 1 file, 2.8 KiB
          index     built: the metadata changed
          kept      1 file, 6.4 KiB, in ROOT/cache/kymograph
    "#]],
    );
    let index = fs::read_dir(setup.root.join("cache/kymograph")).unwrap().next().unwrap().unwrap().path();
    fs::write(index, "not what was written").unwrap();
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   90 in 1 file, 2.8 KiB
          index     built: it was damaged
          kept      1 file, 6.4 KiB, in ROOT/cache/kymograph
    "#]],
    );
}

/// What ends the search for packets is told; an index of a part would hide it.
#[test]
fn a_stream_that_ends_in_rubbish() {
    let setup = Setup::new("rubbish", 100);
    setup.append(&[7; 40]);
    setup.check("", &expect![[r#"
        trace
          packets   100 in 1 file, 3.2 KiB
          index     incomplete: at byte 3200: at bit 0: the packet begins with 0x07070707; the magic number is 0xc1fc1fc1
        exit status 1
    "#]]);
}

#[test]
fn few_packets_need_no_index() {
    let setup = Setup::new("few", 10);
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   10 in 1 file, 320 B
          index     not needed: so few packets are found faster without
    "#]],
    );
}

/// Streams of one trace may differ; a trace that cannot be opened keeps none from being indexed.
#[test]
fn several_streams_and_traces() {
    let setup = Setup::new("several", 100);
    setup.says("");
    fs::copy(setup.root.join("trace/stream"), setup.root.join("trace/other")).unwrap();
    setup.touch(2000);
    setup.check(
        "",
        &expect![[r#"
        trace
          packets   200 in 2 files, 6.2 KiB
          index     built: the stream's file was written to (its time of change differs)  (stream)
                    built: there was none  (other)
          kept      2 files, 14.2 KiB, in ROOT/cache/kymograph
    "#]],
    );
    fs::create_dir(setup.root.join("broken")).unwrap();
    fs::write(setup.root.join("broken/metadata"), "/* CTF 1.8 */ trace {").unwrap();
    setup.check(
        "broken absent",
        &expect![[r#"
        trace
          packets   200 in 2 files, 6.2 KiB
          index     valid
          kept      2 files, 14.2 KiB, in ROOT/cache/kymograph
        broken/metadata:1:22: error: found the end of the text, expected a type
          /* CTF 1.8 */ trace {
                               ^
        broken/metadata:1:22: error: the metadata has no `trace`
          /* CTF 1.8 */ trace {
                               ^
        error: absent: No such file or directory (os error 2)
        exit status 1
    "#]],
    );
}

#[test]
fn a_cache_that_cannot_be_written() {
    let setup = Setup::new("unwritable", 100);
    fs::write(setup.root.join("cache"), "a file, no folder").unwrap();
    let text = setup.says("");
    assert!(text.contains("  index     not written: ") && text.ends_with("exit status 1\n"), "{text}");
}

#[test]
fn json() {
    let setup = Setup::new("json", 100);
    let said: serde_json::Value = serde_json::from_str(&setup.says("--json")).expect("the output is JSON");
    let stream = &said["traces"][0]["streams"][0];
    let of_stream = ["name", "size_bytes", "packets", "state", "reason"].map(|key| stream[key].to_string()).join(" ");
    expect![[r#""stream" 3200 100 "built" "there was none""#]].assert_eq(&of_stream);
    assert_eq!(said["complete"], true);
    let bytes = fs::metadata(stream["index"].as_str().unwrap().replace("ROOT", setup.root.to_str().unwrap()));
    assert_eq!(stream["index_bytes"], bytes.unwrap().len());
}

/// Opening compares an LTTng index with the first, the middle and the last packet. An entry between them that is wrong loses
/// no event: reading reports it with its file and packet.
#[test]
fn an_entry_of_an_lttng_index_that_is_wrong() {
    const HEADER_BYTES: usize = 16;
    let setup = Setup::new("lttng", 0);
    let trace = setup.root.join("demo");
    copies::copy(&copies::demo(), &trace);
    let path = trace.join("index/jobs_0.idx");
    let sound = fs::read(&path).expect("the demo has an index");
    let entry_bytes = u32::from_be_bytes(sound[12..16].try_into().expect("four bytes")) as usize;
    let entries = (sound.len() - HEADER_BYTES) / entry_bytes;
    assert!(entries >= 5, "{entries} entries: none is neither first, middle nor last");
    for (at, change, what) in [
        (16, -800, "the index says the packet has INDEX bits of content, its own head says PACKET"),
        (24, -5, "the index says that the packet's begin is INDEX, its own head says PACKET"),
        (32, 3, "the index says that the packet's end is INDEX, its own head says PACKET"),
        (40, 1, "the index says that the packet's count of discarded events is INDEX, its own head says PACKET"),
        (64, 7, "the index says that the packet's sequence number is INDEX, its own head says PACKET"),
    ] {
        let at = HEADER_BYTES + entry_bytes + at;
        let packet = u64::from_be_bytes(sound[at..at + 8].try_into().expect("eight bytes"));
        let index = packet.wrapping_add_signed(change);
        let mut wrong = sound.clone();
        wrong[at..at + 8].copy_from_slice(&index.to_be_bytes());
        fs::write(&path, wrong).expect("temporary files may be written");
        let mut print = program::kymo();
        print.env("XDG_CACHE_HOME", setup.root.join(format!("cache-{at}"))).arg("print").arg(&trace);
        let done = print.output().expect("the program is there");
        assert_eq!(String::from_utf8_lossy(&done.stdout).lines().count(), 2400);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let expected = what.replace("INDEX", &index.to_string()).replace("PACKET", &packet.to_string());
        assert!(said.contains("jobs_0") && said.contains(&expected), "{said}");
        assert_eq!(done.status.code(), Some(1));
    }
}
