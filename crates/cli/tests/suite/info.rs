//! What `kymo TRACE` says of traces that are not as one expects: made here, a file or two each.

use std::fs;
use std::path::PathBuf;

use expect_test::{Expect, expect};

use crate::platform;
use crate::program;

/// A trace whose packets have times, losses and events of one class.
const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
ENV
clock { name = c; freq = 1000000000; offset_s = 1000; ABSOLUTE };
typealias integer { size = 32; align = 8; signed = false; map = clock.c.value; } := time;
stream {
  packet.context := struct {
    u32 content_size; u32 packet_size; time timestamp_begin; time timestamp_end; u32 events_discarded;
  };
  event.header := struct { time timestamp; };
};
event { name = \"tick\"; };
";
/// The same without clock.
const TIMELESS: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace { major = 1; minor = 8; byte_order = le; };
event { name = \"tick\"; fields := struct { u32 value; }; };
";

struct Setup {
    root: PathBuf,
}

impl Setup {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("kymo-info-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).expect("temporary files may be written");
        Self { root }
    }

    fn trace(&self, name: &str, metadata: &str, words: &[u32]) {
        let folder = self.root.join(name);
        fs::create_dir_all(&folder).expect("temporary files may be written");
        fs::write(folder.join("metadata"), metadata).expect("temporary files may be written");
        if !words.is_empty() {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            fs::write(folder.join("stream"), bytes).expect("temporary files may be written");
        }
    }

    /// Standard output, the exit status where it is not 0; of standard error its lines.
    fn check(&self, arguments: &str, expected: &Expect) {
        let done = program::kymo()
            .args(arguments.split_whitespace())
            .current_dir(&self.root)
            .env("XDG_CACHE_HOME", self.root.join(".cache"))
            .env("TZ", "UTC")
            .output()
            .expect("the program is there");
        let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
        for line in String::from_utf8_lossy(&done.stderr).lines() {
            text += &format!("stderr: {line}\n");
        }
        if let Some(status) = done.status.code().filter(|status| *status != 0) {
            text += &format!("exit status {status}\n");
        }
        // A link may lead to the temporary files.
        let root = self.root.canonicalize().expect("it was made");
        let text = text.replace(&root.display().to_string(), "ROOT").replace(&self.root.display().to_string(), "ROOT");
        expected.assert_eq(&platform::as_on_linux(&text));
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // What cannot be removed is removed with the other temporary files some day.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The metadata of a trace of a tracer whose clock counts from 1970 or not.
fn metadata(environment: &str, absolute: bool) -> String {
    let absolute = if absolute { "absolute = true;" } else { "" };
    METADATA.replace("ENV", environment).replace("ABSOLUTE", absolute)
}

/// A packet with events at the times; `discarded` is the counter at its end.
fn packet(times: &[u32], discarded: u32) -> Vec<u32> {
    let bits = (6 + times.len() as u32) * 32;
    let (begin, end) = (times.first().copied().unwrap_or(5), times.last().copied().unwrap_or(5));
    [&[0xc1fc_1fc1, bits, bits, begin, end, discarded], times].concat()
}

#[test]
fn without_a_clock() {
    let setup = Setup::new("timeless");
    setup.trace("trace", TIMELESS, &[1, 2, 3]);
    setup.check(
        "trace",
        &expect![[r#"
        trace
          declares  1 event class

          streams   1 with 1 packet, 12 B
          events    3
          losses    none reported
          busiest event classes
            100.0%  ██████████████████████████████  tick

        Next:  kymo print trace | less
               kymo count trace
    "#]],
    );
}

/// Times since an origin that nobody knows are exact seconds; a tracer without a version has none.
#[test]
fn with_an_origin_of_its_own() {
    let setup = Setup::new("own-origin");
    setup.trace("trace", &metadata("env { tracer_name = \"t\"; };", false), &packet(&[1, 500, 1_500_000_001], 0));
    setup.check(
        "trace",
        &expect![[r#"
            trace
              recorded  by t
              clock     c, 1,000,000,000 Hz, since its own origin
              declares  1 event class

              streams   1 with 1 packet, 36 B
              events    3, 2.00 per second
              span      1.500 s  from 1000.000000001 s to 1001.500000001 s
              density   ████████████████████████████████████████████████████████████  (bytes over the span)
              losses    none reported
              busiest event classes
                100.0%  ██████████████████████████████  tick

            Next:  kymo print trace | less
                   kymo count trace
        "#]],
    );
}

#[test]
fn without_streams() {
    let setup = Setup::new("empty");
    setup.trace("trace", &metadata("", true), &[]);
    setup.check(
        "trace",
        &expect![[r#"
        trace
          clock     c, 1,000,000,000 Hz, since 1970
          declares  1 event class

          streams   0 with 0 packets, 0 B
          events    none: nothing was recorded
          losses    none reported

        Next:  kymo metadata trace | less
    "#]],
    );
}

/// Packets without events still say when and what was lost.
#[test]
fn nothing_but_losses() {
    let setup = Setup::new("losses");
    setup.trace("trace", &metadata("", true), &[packet(&[], 0), packet(&[], 1200)].concat());
    setup.check(
        "trace",
        &expect![[r#"
        trace
          clock     c, 1,000,000,000 Hz, since 1970
          declares  1 event class

          streams   1 with 2 packets, 48 B
          events    0
          span      one moment, 1970-01-01T00:16:40.000000005Z
          losses    the tracer reports 1,200 events discarded

        Next:  kymo metadata trace | less
        stderr: warning: the tracer reports 1,200 events discarded
    "#]],
    );
    // In the words of Babeltrace, which scripts look for.
    setup.check(
        "print --clock-gmt trace",
        &expect![[r#"
            stderr: WARNING: Tracer discarded 1200 events between [00:16:40.000000005] and [00:16:40.000000005] in trace "" (no UUID) within stream "ROOT/trace/stream" (stream class ID: 0, stream ID: 0).
            stderr: warning: the tracer reports 1,200 events discarded
        "#]],
    );
    setup.check(
        "print --format none trace",
        &expect![[r#"
        stderr: warning: the tracer reports 1,200 events discarded
    "#]],
    );
    setup.trace("first", &metadata("", true), &packet(&[], 3));
    setup.check(
        "count first",
        &expect![[r#"
        events  share  events/s  event
             0   0.0%         -  all events
        stderr: warning: the tracer reports an unknown number of events discarded
    "#]],
    );
    setup.check("print --clock-cycles --format csv first", &expect![[r#"
        time,cycles,trace,stream,event
        stderr: WARNING: Tracer may have discarded events between [00000000000000000005] and [00000000000000000005] in trace "" (no UUID) within stream "ROOT/first/stream" (stream class ID: 0, stream ID: 0).
        stderr: warning: the tracer reports an unknown number of events discarded
    "#]]);
}

/// Times that cannot be compared are told apart.
#[test]
fn clocks_of_different_origins() {
    let setup = Setup::new("origins");
    setup.trace("of host", &metadata("", true), &packet(&[1, 2], 0));
    setup.trace("of-device", &metadata("", false), &packet(&[1, 2], 0));
    setup.check(
        ".",
        &expect![[r#"
        of host  (./of host)
          clock     c, 1,000,000,000 Hz, since 1970
          declares  1 event class
        of-device  (./of-device)
          clock     c, 1,000,000,000 Hz, since its own origin
          declares  1 event class

          streams   2 with 2 packets, 64 B
          events    4
          spans     the clocks count from different origins:
            of host  1 ns  from 1970-01-01T00:16:40.000000001Z to 1970-01-01T00:16:40.000000002Z
            of-device  1 ns  from 1000.000000001 s to 1000.000000002 s
          losses    none reported
          busiest event classes
            100.0%  ██████████████████████████████  tick

        Next:  kymo print . | less
               kymo count .
    "#]],
    );
    setup.check(
        "print --clock-cycles --no-delta .",
        &expect![[r#"
            [00000000000000000001] tick: 
            [00000000000000000001] tick: 
            [00000000000000000002] tick: 
            [00000000000000000002] tick: 
            stderr: warning: the clocks count from different origins, so that events of one say nothing of when those of another were; --clock-force-correlate takes all as counted from 1970
        "#]],
    );
    setup.check(
        "print --clock-cycles --no-delta --clock-force-correlate .",
        &expect![[r#"
            [00000000000000000001] tick: 
            [00000000000000000001] tick: 
            [00000000000000000002] tick: 
            [00000000000000000002] tick: 
        "#]],
    );
}

/// Old LTTng-UST told packets to end when they were flushed: the last one of each stream ends with its last event.
#[test]
fn streams_that_end_with_their_last_event() {
    let setup = Setup::new("active");
    for (minor, name) in [(3, "old"), (12, "new")] {
        let environment = format!("env {{ tracer_name = \"lttng-ust\"; tracer_major = 2; tracer_minor = {minor}; }};");
        setup.trace(name, &metadata(&environment, false), &packet(&[1, 3, 5], 0));
        let mut ends_late = packet(&[2, 3, 4], 0);
        ends_late[4] = 9;
        let bytes: Vec<u8> = ends_late.iter().flat_map(|word| word.to_le_bytes()).collect();
        fs::write(setup.root.join(name).join("other"), bytes).expect("temporary files may be written");
    }
    setup.check(
        "print --clock-cycles --no-delta --stream-intersection old",
        &expect![[r#"
        [00000000000000000002] tick: 
        [00000000000000000003] tick: 
        [00000000000000000003] tick: 
        [00000000000000000004] tick: 
    "#]],
    );
    setup.check(
        "print --clock-cycles --no-delta --stream-intersection new",
        &expect![[r#"
        [00000000000000000002] tick: 
        [00000000000000000003] tick: 
        [00000000000000000003] tick: 
        [00000000000000000004] tick: 
        [00000000000000000005] tick: 
    "#]],
    );
}

#[test]
fn many_traces() {
    let setup = Setup::new("many");
    for number in 0..18 {
        setup.trace(&format!("t{number:02}"), &metadata("", true), &packet(&[number, number + 1], 0));
    }
    setup.check(
        ". --threads 1",
        &expect![[r#"
        ./t00  1 stream, 32 B
        ./t01  1 stream, 32 B
        ./t02  1 stream, 32 B
        ./t03  1 stream, 32 B
        ./t04  1 stream, 32 B
        ./t05  1 stream, 32 B
        ./t06  1 stream, 32 B
        ./t07  1 stream, 32 B
        ./t08  1 stream, 32 B
        ./t09  1 stream, 32 B
        ./t10  1 stream, 32 B
        ./t11  1 stream, 32 B
        ./t12  1 stream, 32 B
        ./t13  1 stream, 32 B
        ./t14  1 stream, 32 B
        ./t15  1 stream, 32 B
        ... and 2 more traces

          streams   18 with 18 packets, 576 B
          events    36, 2,000,000,000 per second
          span      18 ns  from 1970-01-01T00:16:40.000000000Z to 1970-01-01T00:16:40.000000018Z
          density   ▄▄▄█▄▄█▄▄█▄▄█▄▄█▄▄▇▃▃▃▇▄▄█▄▄█▄▄█▄▄█▄▄▇▃▃▃▇▄▄█▄▄█▄▄█▄▄█▄▄▄     (bytes over the span)
          losses    none reported
          busiest event classes
            100.0%  ██████████████████████████████  tick

        Next:  kymo print . | less
               kymo count .
    "#]],
    );
}

/// What a look into the packets shows to be unreadable is told, and what to do.
#[test]
fn what_cannot_be_read() {
    let setup = Setup::new("unreadable");
    let words = packet(&[1, 2, 3], 0);
    setup.trace("half", &metadata("", true), &words[..8]);
    setup.check(
        "half",
        &expect![[r#"
            half
              clock     c, 1,000,000,000 Hz, since 1970
              declares  1 event class

              streams   1 with 1 packet, 32 B
              events    2 that can be read, 1,000,000,000 per second
              span      2 ns  from 1970-01-01T00:16:40.000000001Z to 1970-01-01T00:16:40.000000003Z
              density   █████████████████████████████████████████                     (bytes over the span)
              losses    none reported
              busiest event classes
                100.0%  ██████████████████████████████  tick

            Next:  kymo check half
                   kymo print half | less
                   kymo count half
            stderr: error: half/stream: packet 0 at byte 0: the file ends 256 bits after the packet's beginning, before the packet does
            exit status 1
        "#]],
    );
    setup.trace("short", TIMELESS, &[1, 2]);
    fs::write(setup.root.join("short/stream"), [0; 6]).unwrap();
    setup.check("short", &expect![[r#"
        short
          declares  1 event class

          streams   1 with 1 packet, 6 B
          events    1 that can be read
          losses    none reported
          busiest event classes
            100.0%  ██████████████████████████████  tick

        Next:  kymo check short
               kymo print short | less
               kymo count short
        stderr: error: short/stream: packet 0 at byte 0: the event record at bit 32: at bit 32: the field needs 32 bits; 16 are left
        exit status 1
    "#]]);
    setup.check("info --exact short", &expect![[r#"
        short
          declares  1 event class

          streams   1 with 1 packet, 6 B
          events    1 that can be read
          losses    none reported
          busiest event classes
            100.0%  ██████████████████████████████  tick

        Next:  kymo check short
               kymo print short | less
               kymo count short
        stderr: error: short/stream: packet 0 at byte 0: the event record at bit 32: at bit 32: the field needs 32 bits; 16 are left
        exit status 1
    "#]]);
}

/// One trace that cannot be opened keeps no other from being shown.
#[test]
fn one_of_several_traces_is_broken() {
    let setup = Setup::new("one-broken");
    setup.trace("broken", "/* CTF 1.8 */\ntrace {", &[]);
    setup.trace("sound", TIMELESS, &[1, 2, 3]);
    setup.check(
        ". absent",
        &expect![[r#"
        sound  (./sound)
          declares  1 event class

          streams   1 with 1 packet, 12 B
          events    3 that can be read
          losses    none reported
          busiest event classes
            100.0%  ██████████████████████████████  tick

        Next:  kymo check . absent
               kymo print . absent | less
               kymo count . absent
        stderr: error: ./broken/metadata:2:8: found the end of the text, expected a type
        stderr: error: absent: No such file or directory (os error 2)
        exit status 1
    "#]],
    );
    setup.check(
        "print --limit 1 . --strict",
        &expect![[r#"
        tick: { value = 1 }
        stderr: error: ./broken/metadata:2:8: found the end of the text, expected a type
        exit status 1
    "#]],
    );
}

/// Tracers begin packets when a session is set up, and end them when it is destroyed.
#[test]
fn packets_that_go_on_without_events() {
    let setup = Setup::new("silence");
    let (first, last) = (900_000_000, 901_000_000);
    for (name, begin, end, expected) in [
        (
            "both",
            5,
            4_000_000_000,
            Some("packets begin 900.000 ms before the first event and end 3.099 s behind the last event"),
        ),
        ("behind", first - 50_000, 903_000_000, Some("packets end 2.000 ms behind the last event")),
        // A twentieth of the span is not worth a line.
        ("hardly", first - 50_000, last + 50_000, None),
        // No tracer was there when the clock began to count, or ends packets before they begin.
        ("origin", 0, last + 50_000, None),
        ("damaged", last + 60_000, last + 50_000, None),
    ] {
        let mut words = packet(&[first, first + 500, last], 0);
        (words[3], words[4]) = (begin, end);
        setup.trace(name, &metadata("", true), &words);
        let done = program::kymo().args(["info", name]).current_dir(&setup.root).env("TZ", "UTC").output();
        let text = String::from_utf8_lossy(&done.expect("the program is there").stdout).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("  silence   "));
        assert_eq!(line, expected, "{name}: {text}");
        assert!(text.contains("events    3"), "{name}: {text}");
    }
}
