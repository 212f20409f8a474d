//! Dumps of Barrelfish.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use expect_test::expect;
use serde_json::Value;

use super::{Setup, corpus};

/// Two cores, between other output of a console; the second core's clock is 5 cycles ahead of the first one's, which the
/// kernel writes as 2^63 - 5.
const DUMP: &str = "\
kernel 0: tracing\r\n\
# Start 1000 Duration 0 Stop 18446744073709551615\n\
# Min_timestamp 1000\n\
# Core 0 LOG DUMP ==================================================\n\
# Offset 0 0\n\
# DCB 0 ffffff8002656c00 examples\n\
# DCB 0 ffffff8003410200 monitor\n\
0 1000 10000000000000\n\
0 1010 2656c00\n\
0 1020 1300000000\n\
0 1030 1300000001\n\
spawnd: hello\n\
0 1040 0 4th column\r\n\
0 1050 500001234\n\
0 1060 400002656c00\n\
0 1070 3410200\n\
0 1080 ea0000776f803000\n\
# Core 1 LOG DUMP ==================================================\n\
# Offset 1 9223372036854775803\n\
# DCB 1 ffffff80068ca000 monitor\n\
1 1090 68ca000\n\
1 1100 eb0000776f803000\n\
1 1099 200020060c950\n\
1 1120 ffff000000000008\n\
1 1130 6300000009\n\
1 1140 10000100000000\n";

#[test]
fn a_dump_is_a_trace() {
    let setup = Setup::new(&[("a.trc", DUMP.as_bytes())]);
    expect![[r#"
        [00:00:00.000001000] (+?.?????????) xmpl:START: { cpu_id = 0 }, { dispatcher = 4, application = "(unknown)" }, { argument = 0 }
        [00:00:00.000001010] (+0.000000010) kernel:CSWITCH: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { dcb = 0x2656C00, from = 4, from_application = "(unknown)" }
        [00:00:00.000001020] (+0.000000010) kernel:SC_MAP: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { phase = ( "enter" : container = 0 ) }
        [00:00:00.000001030] (+0.000000010) kernel:SC_MAP: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { phase = ( "leave" : container = 1 ) }
        [00:00:00.000001040] (+0.000000010) kernel:CSWITCH: { cpu_id = 0 }, { dispatcher = 0, application = "(idle)" }, { dcb = 0x0, from = 1, from_application = "examples" }
        [00:00:00.000001050] (+0.000000010) kernel:SCHED_REMOVE: { cpu_id = 0 }, { dispatcher = 0, application = "(idle)" }, { dcb = 0x1234, target = -1, target_application = "" }
        [00:00:00.000001060] (+0.000000010) kernel:event: { cpu_id = 0 }, { dispatcher = 0, application = "(idle)" }, { event = 0x4000, argument = 0x2656C00 }
        [00:00:00.000001070] (+0.000000010) kernel:CSWITCH: { cpu_id = 0 }, { dispatcher = 2, application = "monitor" }, { dcb = 0x3410200, from = 0, from_application = "(idle)" }
        [00:00:00.000001080] (+0.000000010) ump:send: { cpu_id = 0 }, { dispatcher = 2, application = "monitor" }, { message = 0x776F803000, channel = 0x776F803000, sequence = 0 }
        [00:00:00.000001085] (+0.000000005) kernel:CSWITCH: { cpu_id = 1 }, { dispatcher = 3, application = "monitor" }, { dcb = 0x68CA000, from = 5, from_application = "(unknown)" }
        [00:00:00.000001094] (+0.000000009) threads:MUTEX_LOCK_ENTER: { cpu_id = 1 }, { dispatcher = 3, application = "monitor" }, { address = 0x60C950 }
        [00:00:00.000001095] (+0.000000001) ump:receive: { cpu_id = 1 }, { dispatcher = 3, application = "monitor" }, { message = 0x776F803000, channel = 0x776F803000, sequence = 0 }
        [00:00:00.000001115] (+0.000000020) unknown:event: { cpu_id = 1 }, { dispatcher = 3, application = "monitor" }, { subsystem = 0xFFFF, event = 0x0, argument = 0x8 }
        [00:00:00.000001125] (+0.000000010) kernel:event: { cpu_id = 1 }, { dispatcher = 3, application = "monitor" }, { event = 0x63, argument = 0x9 }
        [00:00:00.000001135] (+0.000000010) xmpl:STOP: { cpu_id = 1 }, { dispatcher = 3, application = "monitor" }, { argument = 0 }
        a.trc: warning[unordered-events]: core 1: 1 event is behind later ones in the file, and here in the order of time
        a.trc: warning[unknown-frequency]: no frequency of the clock is known: 1 cycle counts as 1 ns; --clock-frequency sets it
        a.trc: warning[guessed-definitions]: events have the names of Barrelfish's last revision, as no definitions are beside the dump; --definitions names a file
        a.trc: warning[other-lines]: 2 lines are no part of a dump; the first is line 1
        status 0
    "#]].assert_eq(&setup.all("print a.trc"));
    expect![[r#"
        a.trc: error[unreadable-file]: definitions nowhere.pleco: No such file or directory (os error 2)
          help: check the path and its permissions
        1 error, 0 warnings
        status 1
    "#]]
    .assert_eq(&setup.all("check --definitions nowhere.pleco a.trc"));
    expect![[r#"
        a.trc: warning[unordered-events]: core 1: 1 event is behind later ones in the file, and here in the order of time
          help: the time of an event is read before its place is taken: an interrupt came between these
        a.trc: warning[unknown-frequency]: no frequency of the clock is known: 1 cycle counts as 1 ns; --clock-frequency sets it
          help: say how many cycles a second has: --clock-frequency 2.8GHz
        a.trc: warning[guessed-definitions]: events have the names of Barrelfish's last revision, as no definitions are beside the dump; --definitions names a file
          help: name the definitions: --definitions FILE
        a.trc: warning[other-lines]: 2 lines are no part of a dump; the first is line 1
          help: see whether the lines belong to the trace
        0 errors, 4 warnings
        status 0
    "#]].assert_eq(&setup.all("check a.trc"));
    // It is recognized by its content.
    setup.write("other", DUMP.as_bytes());
    assert_eq!(setup.run("print other"), setup.run("print a.trc"));
}

#[test]
fn analyses_need_no_mapping() {
    let setup = Setup::new(&[("a.trc", DUMP.as_bytes())]);
    expect![[r#"
        Applications  0.000001000 s to 0.000001135 s (135 ns)
        Application  Processes  Threads  Run time  Share  Runs
        monitor              0        2     60 ns  44.4%     2
        examples             0        1     30 ns  22.2%     1
        (unknown)            0        2     10 ns   7.4%     2

        Busy over time, all CPUs  0.000001000 s to 0.000001135 s (135 ns)
        Time                              Busy
        0.000001000 s to 0.000001007 s  100.0%
        0.000001007 s to 0.000001014 s  100.0%
        0.000001014 s to 0.000001021 s  100.0%
        0.000001021 s to 0.000001028 s  100.0%
        0.000001028 s to 0.000001035 s  100.0%
        0.000001035 s to 0.000001042 s   71.4%
        0.000001042 s to 0.000001049 s    0.0%
        0.000001049 s to 0.000001056 s    0.0%
        0.000001056 s to 0.000001063 s    0.0%
        0.000001063 s to 0.000001070 s    0.0%
        0.000001070 s to 0.000001077 s  100.0%
        0.000001077 s to 0.000001084 s  100.0%
        0.000001084 s to 0.000001091 s  100.0%
        0.000001091 s to 0.000001098 s  100.0%
        0.000001098 s to 0.000001105 s  100.0%
        0.000001105 s to 0.000001112 s  100.0%
        0.000001112 s to 0.000001119 s  100.0%
        0.000001119 s to 0.000001126 s  100.0%
        0.000001126 s to 0.000001133 s  100.0%
        0.000001133 s to 0.000001135 s  100.0%
        a.trc: warning[unordered-events]: core 1: 1 event is behind later ones in the file, and here in the order of time
        a.trc: warning[unknown-frequency]: no frequency of the clock is known: 1 cycle counts as 1 ns; --clock-frequency sets it
        a.trc: warning[guessed-definitions]: events have the names of Barrelfish's last revision, as no definitions are beside the dump; --definitions names a file
        a.trc: warning[other-lines]: 2 lines are no part of a dump; the first is line 1
        status 0
    "#]].assert_eq(&setup.all("cpu --by application a.trc"));
    expect![[r#"
        All pairs  0.000001000 s to 0.000001135 s (135 ns)
        Intervals  Total  Min  Average  Max  Deviation  50 %  90 %  99 %  99.9 %  Never ended  Lost inside  Began before  Without key  Given up
                0   0 ns    -        -    -          -     -     -     -       -            1            0             0            0         0

        Groups  0.000001000 s to 0.000001135 s (135 ns)
        Group  Intervals  Total  Min  Average  Max  Deviation  50 %  90 %  99 %  99.9 %  Never ended  Lost inside
        MUTEX          0   0 ns    -        -    -          -     -     -     -       -            1            0

        The longest  0.000001000 s to 0.000001135 s (135 ns)
        nothing

        Never ended  0.000001000 s to 0.000001135 s (135 ns)
                Begin  Key               Group
        0.000001094 s  wait, 6342992, 3  MUTEX

        How long pairs last  0.000001000 s to 0.000001135 s (135 ns)
        nothing
        a.trc: warning[unordered-events]: core 1: 1 event is behind later ones in the file, and here in the order of time
        a.trc: warning[unknown-frequency]: no frequency of the clock is known: 1 cycle counts as 1 ns; --clock-frequency sets it
        a.trc: warning[guessed-definitions]: events have the names of Barrelfish's last revision, as no definitions are beside the dump; --definitions names a file
        a.trc: warning[other-lines]: 2 lines are no part of a dump; the first is line 1
        status 0
    "#]].assert_eq(&setup.all("pairs a.trc"));
}

/// Broken lines are left out and reported, and all others are there.
/// Numbered messages have their sends, whichever is first; where messages are not numbered, those of one channel are
/// received in the order in which they are sent.
#[test]
fn messages_are_told_where_clocks_disagree() {
    let dump = |number: &str| {
        let [first, second] = [format!("ea0000776f803{number}"), format!("eb0000776f803{number}")];
        format!(
            "# Start 900 Duration 0 Stop 18446744073709551615\n# Min_timestamp 990\n# Core 0 LOG DUMP ===\n# DCB 0 ffffff8002656c00 client\n0 1000 2656c00\n0 1010 {first}\n0 1100 eb00000012345000\n\
             # Core 1 LOG DUMP ===\n# DCB 1 ffffff80068ca000 server\n1 990 68ca000\n1 1005 {second}\n1 1090 ea00000012345000\n"
        )
    };
    let setup = Setup::new(&[("numbered.trc", dump("007").as_bytes()), ("plain.trc", dump("000").as_bytes())]);
    expect![[r#"
        All messages  0.000000990 s to 0.000001100 s (110 ns)
        Messages  Total    Min  Average    Max  Deviation   50 %   90 %   99 %  99.9 %  Received first  Never received  Sent before  Lost inside  Without key  Given up
               1  10 ns  10 ns    10 ns  10 ns          -  10 ns  10 ns  10 ns   10 ns               1               0            0            0            0         0

        Routes  0.000000990 s to 0.000001100 s (110 ns)
        From        To          Name  Messages  Total    Min  Average    Max  Deviation   50 %   90 %   99 %  99.9 %  Received first  Lost inside
        server (2)  client (1)  UMP          1  10 ns  10 ns    10 ns  10 ns          -  10 ns  10 ns  10 ns   10 ns               0            0
        client (1)  server (2)  UMP          0   0 ns      -        -      -          -      -      -      -       -               1            0

        The longest  0.000000990 s to 0.000001100 s (110 ns)
        Latency           Sent       Received  From        To          Name
          10 ns  0.000001090 s  0.000001100 s  server (2)  client (1)  UMP

        Received before they were sent  0.000000990 s to 0.000001100 s (110 ns)
        Early by       Received           Sent  From        To          Name
            5 ns  0.000001005 s  0.000001010 s  client (1)  server (2)  UMP

        Not received  0.000000990 s to 0.000001100 s (110 ns)
        nothing

        How long messages take  0.000000990 s to 0.000001100 s (110 ns)
         From  Below  Intervals
        10 ns  11 ns          1
    "#]].assert_eq(&setup.run("flows numbered.trc"));
    expect![[r#"
        All messages  0.000000990 s to 0.000001100 s (110 ns)
        Messages  Total    Min  Average    Max  Deviation   50 %   90 %   99 %  99.9 %  Received first  Never received  Sent before  Lost inside  Without key  Given up
               1  10 ns  10 ns    10 ns  10 ns          -  10 ns  10 ns  10 ns   10 ns               0               1            1            0            0         0

        Routes  0.000000990 s to 0.000001100 s (110 ns)
        From CPU  To CPU  Messages  Total    Min  Average    Max  Deviation   50 %   90 %   99 %  99.9 %  Received first  Lost inside
        1         0              1  10 ns  10 ns    10 ns  10 ns          -  10 ns  10 ns  10 ns   10 ns               0            0

        The longest  0.000000990 s to 0.000001100 s (110 ns)
        Latency           Sent       Received  From CPU  To CPU
          10 ns  0.000001090 s  0.000001100 s  1         0

        Received before they were sent  0.000000990 s to 0.000001100 s (110 ns)
        nothing

        Not received  0.000000990 s to 0.000001100 s (110 ns)
                 Sent  From CPU
        0.000001010 s  0

        How long messages take  0.000000990 s to 0.000001100 s (110 ns)
         From  Below  Intervals
        10 ns  11 ns          1
    "#]].assert_eq(&setup.run("flows plain.trc --by cpu"));
}

#[test]
fn broken_lines_are_reported() {
    let broken = "\
1 1141 ffff0063000000007\n\
1 1142 26kernel 1: hello\n\
1 18446744073709551616 1\n\
1024 1143 1\n\
# Offset 1 x\n\
1 1150 100001400";
    let setup = Setup::new(&[("a.trc", format!("{DUMP}{broken}").as_bytes()), ("whole.trc", DUMP.as_bytes())]);
    let said = setup.say("print a.trc");
    assert_eq!((said.output, said.status), (setup.run("print whole.trc"), Some(1)));
    let errors: Vec<&str> = said.errors.lines().filter(|line| line.starts_with("error")).collect();
    expect![[r#"
        error: a.trc: line 27: expected up to 16 hexadecimal digits as its third word, found `1 1141 ffff0063000000007`
        error: a.trc: line 28: expected up to 16 hexadecimal digits as its third word, found `1 1142 26kernel 1: hello`
        error: a.trc: line 29: expected a time of 64 bits as its second word, found `1 18446744073709551616 1`
        error: a.trc: line 30: expected the number of a core below 1024 at its beginning, found `1024 1143 1`
        error: a.trc: line 31: expected # Offset CORE CYCLES, found `# Offset 1 x`
        error: a.trc: line 32: the file ends in this event, which may be cut and is left out"#]]
    .assert_eq(&errors.join("\n"));
}

/// As a trace in CTF, it is the same.
#[test]
fn dumps_are_converted() {
    let setup = Setup::new(&[("a.trc", DUMP.as_bytes())]);
    for dialect in ["tsdl", "ctf2"] {
        let output = format!("converted-{dialect}");
        setup.run(&format!("cut a.trc --as {dialect} --output {output}"));
        assert_eq!(setup.run(&format!("print {output}")), setup.run("print a.trc"), "{dialect}");
        assert_eq!(setup.run(&format!("cpu {output}")), setup.run("cpu a.trc"), "{dialect}");
    }
}

/// Before 2013, times count from the start, numbers of events are fixed, and programs are listed behind the first event.
const LEGACY: &str = "\
# Start 5000 Duration 20 Stop 5020\n\
# Core 0 LOG DUMP ==================================================\n\
0 0 1234000000000001\n\
# DCB 0 ffffff0000000100 fish\n\
# DCB 0 ffffff0000000200 \n\
0 1 ffffcccc00000100\n\
0 2 bbbb\n\
0 3 ffffcccc00000200\n\
0 4 ffffcccc00000000\n\
0 6 ffffcccc00000100\n\
0 7 aaaa\n\
0 8 ea0000776f8033a8\n\
0 9 bfbf000100000000\n\
0 10 aaaaaaaaaaaaaaaa\n\
# Core 3 LOG DUMP ==================================================\n\
3 12 eb0000776f8033a8\n";

#[test]
fn legacy_dumps_have_fixed_numbers() {
    let setup = Setup::new(&[("a.log", LEGACY.as_bytes())]);
    expect![[r#"
        [00:00:00.000000000] (+?.?????????) bench:PCBENCH: { cpu_id = 0 }, { dispatcher = 3, application = "(unknown)" }, { argument = 1 }
        [00:00:00.000000000] (+0.000000000) kernel:CSWITCH: { cpu_id = 0 }, { dispatcher = 1, application = "fish" }, { dcb = 0x100, from = 3, from_application = "(unknown)" }
        [00:00:00.000000001] (+0.000000001) domain:BLOCK: { cpu_id = 0 }, { dispatcher = 1, application = "fish" }, { }
        [00:00:00.000000001] (+0.000000000) kernel:CSWITCH: { cpu_id = 0 }, { dispatcher = 2, application = "0x200" }, { dcb = 0x200, from = 1, from_application = "fish" }
        [00:00:00.000000002] (+0.000000001) kernel:CSWITCH: { cpu_id = 0 }, { dispatcher = 0, application = "(idle)" }, { dcb = 0x0, from = 2, from_application = "0x200" }
        [00:00:00.000000003] (+0.000000001) kernel:CSWITCH: { cpu_id = 0 }, { dispatcher = 1, application = "fish" }, { dcb = 0x100, from = 0, from_application = "(idle)" }
        [00:00:00.000000003] (+0.000000000) domain:UNBLOCK: { cpu_id = 0 }, { dispatcher = 1, application = "fish" }, { }
        [00:00:00.000000004] (+0.000000001) ump:send: { cpu_id = 0 }, { dispatcher = 1, application = "fish" }, { message = 0x776F8033A8, channel = 0x776F800000, sequence = 13224 }
        [00:00:00.000000004] (+0.000000000) bflib:event: { cpu_id = 0 }, { dispatcher = 1, application = "fish" }, { event = 0x1, argument = 0x0 }
        [00:00:00.000000005] (+0.000000001) unknown:event: { cpu_id = 0 }, { dispatcher = 1, application = "fish" }, { subsystem = 0xAAAA, event = 0xAAAA, argument = 0xAAAAAAAA }
        [00:00:00.000000006] (+0.000000001) ump:receive: { cpu_id = 3 }, { dispatcher = 4, application = "(unknown)" }, { message = 0x776F8033A8, channel = 0x776F800000, sequence = 13224 }
        status 0
    "#]].assert_eq(&setup.all("print --clock-frequency 2GHz a.log"));
    // The next dump of the same machine began 100 cycles later, one before it after another start.
    let later = LEGACY.replace("5000", "5100");
    setup.write("two.log", [LEGACY, &later].concat().as_bytes());
    let printed = setup.run("print --clock-cycles --fields none two.log");
    let times: Vec<&str> = printed.lines().filter(|line| line.contains("domain:BLOCK")).collect();
    expect![[r#"
        [
            "[00000000000000000002] (+000000000001) domain:BLOCK: { cpu_id = 0 }, { dispatcher = 1, application = \"fish\" }, { }",
            "[00000000000000000102] (+000000000001) domain:BLOCK: { cpu_id = 0 }, { dispatcher = 1, application = \"fish\" }, { }",
        ]
    "#]].assert_debug_eq(&times);
    setup.write("boots.log", [&later, LEGACY].concat().as_bytes());
    let info: Value = serde_json::from_str(&setup.run("info --json boots.log")).unwrap();
    let names: Vec<&str> =
        info["traces"].as_array().unwrap().iter().map(|trace| trace["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["boot-1", "boot-2"]);
}

/// One dump is as long as the network said, the second one is not, and the third is cut.
#[test]
fn dumps_from_a_network_have_their_length_before_them() {
    let lengths = |length: usize| {
        [
            format!("{length:06}").into_bytes(),
            format!("{length}\0\u{7}\u{7}\u{7}\u{7}\u{7}\u{7}\u{7}").into_bytes()[..8].to_vec(),
        ]
    };
    for length in lengths(DUMP.len() - "kernel 0: tracing\r\n".len()) {
        let dump = [&length[..], &DUMP.as_bytes()["kernel 0: tracing\r\n".len()..]].concat();
        let setup =
            Setup::new(&[("a.bin", &dump), ("twice.bin", &[&dump[..], &dump].concat()), ("cut.bin", &dump[..400])]);
        assert_eq!(setup.run("print a.bin").lines().count(), setup.run("print twice.bin").lines().count() / 2);
        let said = setup.all("check cut.bin");
        assert!(said.contains("bytes before the end that it announces"), "{said}");
    }
}

#[test]
fn definitions_are_of_the_dump() {
    let pleco = "subsystem mine { event CSWITCH \"\", event \"B\" }";
    let setup = Setup::new(&[
        ("a.trc", DUMP.as_bytes()),
        ("mine.pleco", b"subsystem mine { event A \"\", event B \"\", };"),
        ("broken.pleco", pleco.as_bytes()),
    ]);
    let names = |words: &str| -> BTreeMap<String, u64> {
        let counted: Value = serde_json::from_str(&setup.run(words)).unwrap();
        let groups = counted["groups"].as_array().unwrap().iter();
        groups.map(|group| (group["class"].as_str().unwrap().to_owned(), group["events"].as_u64().unwrap())).collect()
    };
    expect![[r#"
        {
            "mine:A": 4,
            "mine:event": 5,
            "ump:receive": 1,
            "ump:send": 1,
            "unknown:event": 4,
        }
    "#]]
    .assert_debug_eq(&names("count --json --definitions mine.pleco a.trc"));
    expect![[r#"
        error: a.trc: definitions broken.pleco: 1:42: expected the event's name: letters, digits and `_`, a letter first, found `"`
        status 1
    "#]].assert_eq(&setup.all("print --definitions broken.pleco a.trc"));
    // Those beside the dump count.
    setup.write("a.json", b"{ 0 : { \"name\" : \"kernel\", \"events\" : { 0 : \"Context Switch\" } } }");
    expect![[r#"
        {
            "kernel:CSWITCH": 4,
            "kernel:event": 5,
            "ump:receive": 1,
            "ump:send": 1,
            "unknown:event": 4,
        }
    "#]]
    .assert_debug_eq(&names("count --json a.trc"));
    assert!(!setup.all("print a.trc").contains("guessed-definitions"));
}

#[test]
fn a_dump_without_events_is_an_empty_trace() {
    let setup = Setup::new(&[("a.trc", b"# Start 0 Duration 0 Stop 0\n# Min_timestamp 18446744073709551615\n")]);
    expect![[r#"
        a.trc
          recorded  by barrelfish
          clock     tsc, 1,000,000,000 Hz, since its own origin
          declares  320 event classes

          streams   0 with 0 packets, 0 B
          events    none: nothing was recorded
          losses    none reported

        Next:  kymo metadata a.trc | less
        a.trc: warning[unknown-frequency]: no frequency of the clock is known: 1 cycle counts as 1 ns; --clock-frequency sets it
        a.trc: warning[guessed-definitions]: events have the names of Barrelfish's last revision, as no definitions are beside the dump; --definitions names a file
        status 0
    "#]].assert_eq(&setup.all("info a.trc"));
    assert_eq!(setup.run("print a.trc"), "");
}

/// In a folder, they are found with other traces; options are of traces.
#[test]
fn folders_of_dumps_are_read() {
    let setup =
        Setup::new(&[("logs/a.trc", DUMP.as_bytes()), ("logs/b/c", LEGACY.as_bytes()), ("logs/notes.txt", b"0 1 2\n")]);
    let info: Value = serde_json::from_str(&setup.run("info --json logs")).unwrap();
    let names: Vec<&str> =
        info["traces"].as_array().unwrap().iter().map(|trace| trace["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.trc", "c"]);
    for (words, error) in [
        ("filter --clock-frequency 1GHz a==1", "--clock-frequency is of a trace that is named"),
        ("info --clock-frequency 1.5 logs", "a frequency is a whole number of Hz"),
    ] {
        let said = setup.say(words);
        assert!(said.status == Some(2) && said.errors.contains(error), "{words}: {}", said.errors);
    }
}

/// A dump of two cores with capability operations: subsystem, event, number of the operation.
fn operations() -> String {
    const CAPOPS: u64 = 6;
    const KERNEL: u64 = 1;
    const CORE_0: &[(u64, u64, u64, u64)] = &[
        (1000, CAPOPS, 0, 0),  // START
        (1010, CAPOPS, 16, 7), // USER_DELETE_CALL
        (1020, CAPOPS, 18, 7), // USER_DELETE_RPC
        (1030, CAPOPS, 20, 7), // MONITOR_DELETE_ENTER
        (1040, CAPOPS, 5, 7),  // DELETE_ENTER
        (1080, CAPOPS, 3, 7),  // DELETE_DONE
        (1090, CAPOPS, 21, 7), // MONITOR_DELETE_REPLY
        (1100, CAPOPS, 17, 7), // USER_DELETE_RESP
        (1200, CAPOPS, 16, 8),
        (1250, CAPOPS, 17, 8),
        (1300, CAPOPS, 16, 9),
        (1400, KERNEL, 0, 3), // DELETE_ENTER
        (1405, KERNEL, 8, 3), // MDB_REMOVE
        (1410, KERNEL, 1, 3), // DELETE_DONE
    ];
    // DELETE_REMOTE_RX; the clock of this core is behind.
    const CORE_1: &[(u64, u64, u64, u64)] = &[(1060, CAPOPS, 14, 7), (1195, CAPOPS, 14, 8)];
    let mut dump = "# Start 1000 Duration 0 Stop 18446744073709551615\n# Min_timestamp 1000\n".to_owned();
    for (core, events) in [CORE_0, CORE_1].into_iter().enumerate() {
        let _ = writeln!(dump, "# Core {core} LOG DUMP {}\n# Offset {core} 0", "=".repeat(50));
        for (time, subsystem, event, number) in events {
            let _ = writeln!(dump, "{core} {time} {:x}", subsystem << 48 | event << 32 | number);
        }
    }
    dump
}

/// What pyaquarium breaks down, with nothing configured: worked out by hand. Options say the same of other events.
#[test]
fn operations_are_broken_down_by_their_numbers() {
    let setup = Setup::new(&[("a.trc", operations().as_bytes())]);
    let csv = |words: &str| setup.run(&format!("breakdown --csv --table {words} a.trc")).replace('\r', "");
    expect![[r#"
        operation,count,total,min,avg,max,stdev,p50,p90,p99,p999,never_ended,lost_inside,out_of_order
        USER_DELETE,1,90,90,90,90,,90,90,90,90,1,0,1
        MONITOR_DELETE,1,60,60,60,60,,60,60,60,60,0,0,0
        DELETE,1,40,40,40,40,,40,40,40,40,0,0,0
        kernel DELETE,1,10,10,10,10,,10,10,10,10,0,0,0
    "#]]
    .assert_eq(&csv("operations"));
    expect![[r#"
        operation,step,count,total,share,min,avg,p50,p99,max,offset_min,offset_avg,offset_p50,offset_p99,offset_max
        USER_DELETE,capops:USER_DELETE_RPC,1,10,0.1111111111111111,10,10,10,10,10,10,10,10,10,10
        USER_DELETE,capops:MONITOR_DELETE_ENTER,1,10,0.1111111111111111,10,10,10,10,10,20,20,20,20,20
        USER_DELETE,capops:DELETE_ENTER,1,10,0.1111111111111111,10,10,10,10,10,30,30,30,30,30
        USER_DELETE,capops:DELETE_REMOTE_RX,1,20,0.2222222222222222,20,20,20,20,20,50,50,50,50,50
        USER_DELETE,capops:DELETE_DONE,1,20,0.2222222222222222,20,20,20,20,20,70,70,70,70,70
        USER_DELETE,capops:MONITOR_DELETE_REPLY,1,10,0.1111111111111111,10,10,10,10,10,80,80,80,80,80
        USER_DELETE,capops:USER_DELETE_RESP,1,10,0.1111111111111111,10,10,10,10,10,90,90,90,90,90
        MONITOR_DELETE,capops:DELETE_ENTER,1,10,0.16666666666666666,10,10,10,10,10,10,10,10,10,10
        MONITOR_DELETE,capops:DELETE_REMOTE_RX,1,20,0.3333333333333333,20,20,20,20,20,30,30,30,30,30
        MONITOR_DELETE,capops:DELETE_DONE,1,20,0.3333333333333333,20,20,20,20,20,50,50,50,50,50
        MONITOR_DELETE,capops:MONITOR_DELETE_REPLY,1,10,0.16666666666666666,10,10,10,10,10,60,60,60,60,60
        DELETE,capops:DELETE_REMOTE_RX,1,20,0.5,20,20,20,20,20,20,20,20,20,20
        DELETE,capops:DELETE_DONE,1,20,0.5,20,20,20,20,20,40,40,40,40,40
        kernel DELETE,kernel_capops:MDB_REMOVE,1,5,0.5,5,5,5,5,5,5,5,5,5,5
        kernel DELETE,kernel_capops:DELETE_DONE,1,5,0.5,5,5,5,5,5,10,10,10,10,10
    "#]]
    .assert_eq(&csv("steps"));
    expect![[r#"
        operation,key,step,cpu,time,offset,latency
        USER_DELETE,7,capops:USER_DELETE_CALL,0,1010,0,0
    "#]]
    .assert_eq(&csv("breakdown --top 1"));
    expect![[r#"
        began_before,lost_inside,loose_steps,without_field,given_up
        0,0,1,0,0
    "#]]
    .assert_eq(&csv("unmatched"));
    let named = "--start capops:*_CALL --stop capops:*_RESP --key operation a.trc";
    let told = |words: &str| setup.run(&format!("breakdown --json --table breakdown {words}"));
    let steps = |json: &str| serde_json::from_str::<Value>(json).expect("it is JSON")["tables"][0]["rows"].clone();
    assert_eq!(steps(&told(named))[0], steps(&told("a.trc"))[0]);
    let refused = setup.say("breakdown --start capops:*_CALL a.trc");
    assert_eq!(refused.status, Some(2), "{}", refused.errors);
}

/// An operation with an unreadable line inside may have a step more, also in the same trace in CTF.
#[test]
fn unreadable_lines_are_holes() {
    let dump = operations().replace("0 1405 1000800000003\n", "0 1405 1000800000003 0 1406 x\n0 1407 y\n");
    let setup = Setup::new(&[("a.trc", dump.as_bytes())]);
    let told = |words: &str| {
        let said = setup.say(&format!("breakdown --csv --table operations {words}"));
        let row = said.output.lines().find(|line| line.starts_with("kernel")).unwrap_or_default().to_owned();
        (row, said.errors.contains("1 event discarded"), said.status)
    };
    let row = "kernel DELETE,0,0,,,,,,,,,0,1,0".to_owned();
    assert_eq!(told("a.trc"), (row.clone(), true, Some(1)));
    setup.say("cut a.trc --output copy");
    assert_eq!(told("copy"), (row, true, Some(0)));
    // Behind the last event of a core, more may be missing.
    let cut = operations().replace("1 1195 6000e00000008\n", "1 1195 6000e000000zz\n");
    let setup = Setup::new(&[("a.trc", cut.as_bytes())]);
    let said = setup.say("breakdown --csv --table operations a.trc");
    assert!(
        said.errors.contains("warning[ends-early]: what is behind its last event cannot be read"),
        "{}",
        said.errors
    );
    assert!(said.output.contains("kernel DELETE,0,0,,,,,,,,,0,1,0"), "{}", said.output);
}

/// All dumps of the corpus have the events that were counted in another way.
#[test]
fn dumps_of_the_corpus_are_read_whole() {
    let folder = corpus().join("barrelfish");
    let Ok(manifest) = fs::read(folder.join("logs_manifest.json")) else {
        eprintln!("CORPUS ABSENT: {}: not run", folder.display());
        return;
    };
    let manifest: Value = serde_json::from_slice(&manifest).expect("it is JSON");
    let setup = Setup::new(&[]);
    let logs = fs::read_dir(folder.join("logs")).expect("it is there").map(|entry| entry.unwrap().path());
    let mut count = 0;
    for log in logs.chain([folder.join("atrace.trc")]) {
        let name = log.file_name().unwrap().to_str().unwrap().to_owned();
        let expected = &manifest[&name];
        let ask = |words: &str| -> Value {
            serde_json::from_str(&setup.run(&format!("{words} {}", log.display()))).expect("it is JSON")
        };
        let counted = ask("count --json");
        assert_eq!(counted["events"], expected["events"], "{name}");
        let mut classes: BTreeMap<String, u64> = BTreeMap::new();
        for group in counted["groups"].as_array().unwrap() {
            *classes.entry(manifest_class(group["class"].as_str().unwrap())).or_default() +=
                group["events"].as_u64().unwrap();
        }
        let expected_classes: BTreeMap<String, u64> = serde_json::from_value(expected["classes"].clone()).unwrap();
        assert_eq!(classes, expected_classes, "{name}");
        let info = ask("info --json");
        let span = (&info["begin_ns"], &info["end_ns"], info["streams"].as_u64().unwrap() as usize);
        let cores = expected["cores"].as_array().unwrap().len();
        assert_eq!(span, (&expected["ts_min"], &expected["ts_max"], cores), "{name}");
        // Not all that a dump lists ran.
        let listed: Vec<String> = serde_json::from_value(expected["apps"].clone()).unwrap();
        let ran = applications(&ask("cpu --json --by application --top all"));
        assert!(ran.iter().all(|application| listed.contains(application)), "{name}: {ran:?} of {listed:?}");
        assert_eq!(steps_back(&ask("check --json")), expected["per_core_backsteps"].as_u64().unwrap(), "{name}");
        if classes.contains_key("ump_send") {
            assert_eq!(
                messages(&setup.run(&format!("print --event ump:* {}", log.display()))),
                messages_of(expected),
                "{name}"
            );
            let total = total_of(&ask("flows --json"));
            let found = ["count", "never_received", "sent_before"].map(|column| total[column]);
            let expected = messages_of(expected);
            // Where a core's memory was full, it is not known which messages these are.
            if total["lost_inside"] == 0 {
                assert_eq!(found, expected, "{name}");
            }
            let all = found.iter().sum::<u64>() + total["lost_inside"];
            assert_eq!(all, expected.iter().sum::<u64>(), "{name}");
            assert_eq!(Some(total["early"]), manifest[&name]["msg_matched_backward"].as_u64(), "{name}");
        }
        count += 1;
    }
    assert!(count > 40, "{count}");
}

/// Barrelfish's own code printed it; the same bytes came over a network.
#[test]
fn dumps_of_the_kernel_itself_are_read() {
    let folder = corpus().join("barrelfish/golden");
    if !folder.exists() {
        eprintln!("CORPUS ABSENT: {}: not run", folder.display());
        return;
    }
    let setup = Setup::new(&[]);
    let said = setup.all(&format!("print --fields none {}", folder.join("xmpl_current_format.trc").display()));
    expect![[r#"
        [00:00:45.163585368] (+?.?????????) xmpl:START: { cpu_id = 0 }, { dispatcher = 4, application = "(unknown)" }, { argument = 0 }
        [00:00:45.163586068] (+0.000000700) kernel:CSWITCH: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { dcb = 0x2656C00, from = 4, from_application = "(unknown)" }
        [00:00:45.163586568] (+0.000000500) kernel:BZERO: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { phase = ( "begin" : container = 1 ) }
        [00:00:45.163587268] (+0.000000700) kernel:BZERO: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { phase = ( "end" : container = 0 ) }
        [00:00:45.163587368] (+0.000000100) xmpl:EV1: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { argument = 1 }
        [00:00:45.163587468] (+0.000000100) xmpl:EV2: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { argument = 2 }
        [00:00:45.163587568] (+0.000000100) threads:MUTEX_LOCK_ENTER: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { address = 0x60C950 }
        [00:00:45.163587668] (+0.000000100) threads:MUTEX_LOCK_LEAVE: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { address = 0x60C950 }
        [00:00:45.163587868] (+0.000000200) threads:MUTEX_UNLOCK: { cpu_id = 0 }, { dispatcher = 1, application = "examples" }, { address = 0x60C950 }
        [00:00:45.163587968] (+0.000000100) kernel:CSWITCH: { cpu_id = 0 }, { dispatcher = 2, application = "monitor" }, { dcb = 0x3410200, from = 1, from_application = "examples" }
        [00:00:45.163588068] (+0.000000100) ump:send: { cpu_id = 0 }, { dispatcher = 2, application = "monitor" }, { message = 0x776F803000, channel = 0x776F803000, sequence = 0 }
        [00:00:45.163588668] (+0.000000600) kernel:CSWITCH: { cpu_id = 1 }, { dispatcher = 3, application = "monitor" }, { dcb = 0x68CA000, from = 5, from_application = "(unknown)" }
        [00:00:45.163588868] (+0.000000200) ump:receive: { cpu_id = 1 }, { dispatcher = 3, application = "monitor" }, { message = 0x776F803000, channel = 0x776F803000, sequence = 0 }
        [00:00:45.163589268] (+0.000000400) ump:send: { cpu_id = 1 }, { dispatcher = 3, application = "monitor" }, { message = 0x776F900000, channel = 0x776F900000, sequence = 0 }
        [00:00:45.163589768] (+0.000000500) ump:receive: { cpu_id = 0 }, { dispatcher = 2, application = "monitor" }, { message = 0x776F900000, channel = 0x776F900000, sequence = 0 }
        [00:00:45.163589868] (+0.000000100) kernel:TIMER: { cpu_id = 2 }, { dispatcher = 6, application = "(unknown)" }, { time = 4711 }
        [00:00:45.163590368] (+0.000000500) memserv:ALLOC: { cpu_id = 0 }, { dispatcher = 2, application = "monitor" }, { bits = 12 }
        [00:00:45.163594368] (+0.000004000) xmpl:STOP: { cpu_id = 0 }, { dispatcher = 2, application = "monitor" }, { argument = 0 }
        GOLDEN/xmpl_current_format.trc: warning[unknown-frequency]: no frequency of the clock is known: 1 cycle counts as 1 ns; --clock-frequency sets it
        status 0
    "#]].assert_eq(&said.replace(&folder.display().to_string(), "GOLDEN"));
    let stream = setup.run(&format!("print --fields none {}", folder.join("xmpl_bfscope_stream.bin").display()));
    assert!(said.starts_with(&stream));
}

fn manifest_class(class: &str) -> String {
    match class {
        "ump:send" => "ump_send",
        "ump:receive" => "ump_recv",
        "domain:BLOCK" => "raw_bbbb",
        "domain:UNBLOCK" => "raw_aaaa",
        "domain:POLL" => "raw_bbb",
        "domain:POLL_END" => "raw_aaa",
        // The only one in these dumps.
        "unknown:event" => "aaaa",
        other => other.split(':').next().expect("it is there"),
    }
    .to_owned()
}

/// How many messages were received that were sent before, were never received, and never sent; in that order.
fn messages(printed: &str) -> [u64; 3] {
    let (mut sent, mut received, mut never_sent) = (BTreeMap::<&str, u64>::new(), 0, 0);
    for line in printed.lines() {
        let message = line.split("message = ").nth(1).expect("it is there").split(',').next().expect("it is there");
        let waiting = sent.entry(message).or_default();
        match (line.contains("ump:send"), *waiting) {
            (true, _) => *waiting += 1,
            (false, 0) => never_sent += 1,
            (false, _) => (*waiting, received) = (*waiting - 1, received + 1),
        }
    }
    [received, sent.values().sum(), never_sent]
}

fn messages_of(expected: &Value) -> [u64; 3] {
    ["msg_matched_forward", "msg_unmatched_send", "msg_unmatched_recv"]
        .map(|name| expected[name].as_u64().expect("it is there"))
}

/// The numbers in the table of totals of an answer.
fn total_of(answer: &Value) -> BTreeMap<String, u64> {
    let total = answer["tables"].as_array().expect("it is there").iter().find(|table| table["class"] == "total");
    let total = total.expect("it is there");
    let names = total["columns"].as_array().expect("it is there").iter().map(|column| column["name"].as_str());
    let cells = total["rows"][0].as_array().expect("it is there").iter().map(Value::as_u64);
    names.zip(cells).filter_map(|(name, cell)| Some((name?.to_owned(), cell?))).collect()
}

/// The applications that ran and have a name.
fn applications(answer: &Value) -> Vec<String> {
    let tables = answer["tables"].as_array().expect("it is there");
    let table = tables.iter().find(|table| table["class"] == "per-application").expect("it is there");
    let names = table["rows"].as_array().expect("it is there").iter().filter_map(|row| row[0].as_str());
    names.filter(|name| *name != "(unknown)" && !name.starts_with("0x")).map(str::to_owned).collect()
}

fn steps_back(found: &Value) -> u64 {
    let findings = found["findings"].as_array().expect("it is there").iter();
    let counts = findings.filter(|found| found["rule"] == "unordered-events").map(|found| {
        let message = found["message"].as_str().expect("it is there");
        message
            .split(": ")
            .nth(1)
            .expect("it is there")
            .split(' ')
            .next()
            .expect("it is there")
            .parse::<u64>()
            .expect("it is there")
    });
    counts.sum()
}
