//! What `kymo` prints of the trace that the project ships: arguments in, text out.

use std::path::Path;
use std::process::Output;

use expect_test::{Expect, expect};

use crate::program;

fn kymo(arguments: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    program::kymo()
        .args(arguments.split_whitespace())
        .current_dir(root)
        .env("TZ", "UTC")
        .env("XDG_CACHE_HOME", std::env::temp_dir().join("kymo-cli-tests"))
        .output()
        .expect("the program is there")
}

/// Standard output, and the exit status where it is not 0; of standard error its lines.
fn check(arguments: &str, expected: &Expect) {
    let done = kymo(arguments);
    let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
    for line in String::from_utf8_lossy(&done.stderr).lines() {
        text += &format!("stderr: {line}\n");
    }
    if let Some(status) = done.status.code().filter(|status| *status != 0) {
        text += &format!("exit status {status}\n");
    }
    expected.assert_eq(&text);
}

#[test]
fn text_of_one_class() {
    check(
        "print --limit 2 --event jobs:e?d examples/traces/demo",
        &expect![[r#"
        [00:02:52.255544156] (+?.?????????) vm jobs:end: { cpu_id = 0 }, { vpid = 29832, vtid = 29836, procname = "demo" }, { id = 2, result = 2 }
        [00:02:52.255559729] (+0.000015573) vm jobs:end: { cpu_id = 0 }, { vpid = 29832, vtid = 29838, procname = "demo" }, { id = 1, result = 1 }
    "#]],
    );
}

#[test]
fn both_ends_in_one_option() {
    let times = ["00:02:52.255544156", "00:02:52.255559729"];
    let of_both = kymo(&format!("print --begin {} --end {} examples/traces/demo", times[0], times[1]));
    for range in [format!("--timerange {},{}", times[0], times[1]), format!("-t [{},{}]", times[0], times[1])] {
        let of_range = kymo(&format!("print {range} examples/traces/demo"));
        assert_eq!(of_range.stdout, of_both.stdout, "{range}");
    }
    assert!(of_both.stdout.iter().filter(|byte| **byte == b'\n').count() > 1);
    assert_eq!(kymo("print --timerange 1,2 --begin 1 examples/traces/demo").status.code(), Some(2));
    assert_eq!(kymo("print --timerange 2,1 examples/traces/demo").status.code(), Some(2));
}

#[test]
fn patterns_may_be_repeated() {
    check(
        "print --limit 3 --no-delta --event jobs:begin --event jobs:sub* examples/traces/demo",
        &expect![[r#"
        [00:02:52.255263261] vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 0, kind = ( "CUSTOM" : container = 5 ), name = "config.toml", queue_depth = 1 }
        [00:02:52.255278164] vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 1, kind = ( "COMPRESS" : container = 1 ), name = "frame.raw", queue_depth = 2 }
        [00:02:52.255278554] vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 2, kind = ( "RENDER" : container = 2 ), name = "scene \"A\"", queue_depth = 3 }
    "#]],
    );
}

#[test]
fn a_pattern_that_nothing_matches() {
    check(
        "print --event nothing examples/traces/demo",
        &expect![[r#"
        stderr: warning: no event record class is called `nothing`
    "#]],
    );
    check(
        "print --limit 1 --no-delta --event jobs:begin --event job:end examples/traces/demo",
        &expect![[r#"
        [00:02:52.255297979] vm jobs:begin: { cpu_id = 0 }, { vpid = 29832, vtid = 29837, procname = "demo" }, { id = 0, worker = 1 }
        stderr: warning: no event record class is called `job:end`; there is `jobs:end`
    "#]],
    );
}

#[test]
fn json() {
    check(
        "print --limit 2 --format json examples/traces/demo",
        &expect![[r#"
            {"time":1795219372255263261,"cycles":5425812897170,"trace":"demo","stream":1,"event":"jobs:submit","id":0,"packet_context":{"cpu_id":1},"common_context":{"vpid":29832,"vtid":29832,"procname":"demo"},"payload":{"id":0,"kind":{"value":5,"labels":["CUSTOM"]},"name":"config.toml","queue_depth":1}}
            {"time":1795219372255278164,"cycles":5425812912073,"trace":"demo","stream":1,"event":"jobs:submit","id":0,"packet_context":{"cpu_id":1},"common_context":{"vpid":29832,"vtid":29832,"procname":"demo"},"payload":{"id":1,"kind":{"value":1,"labels":["COMPRESS"]},"name":"frame.raw","queue_depth":2}}
        "#]],
    );
}

#[test]
fn csv_of_different_events() {
    check(
        "print --limit 2 --format csv examples/traces/demo",
        &expect![[r#"
            time,cycles,trace,stream,event,fields
            1795219372255263261,5425812897170,demo,1,jobs:submit,"{""id"":0,""packet_context"":{""cpu_id"":1},""common_context"":{""vpid"":29832,""vtid"":29832,""procname"":""demo""},""payload"":{""id"":0,""kind"":{""value"":5,""labels"":[""CUSTOM""]},""name"":""config.toml"",""queue_depth"":1}}"
            1795219372255278164,5425812912073,demo,1,jobs:submit,"{""id"":0,""packet_context"":{""cpu_id"":1},""common_context"":{""vpid"":29832,""vtid"":29832,""procname"":""demo""},""payload"":{""id"":1,""kind"":{""value"":1,""labels"":[""COMPRESS""]},""name"":""frame.raw"",""queue_depth"":2}}"
        "#]],
    );
}

#[test]
fn csv_of_one_class_has_a_column_for_each_field() {
    check(
        "print --limit 2 --format csv --event jobs:chunk examples/traces/demo",
        &expect![[r#"
        time,cycles,trace,stream,event,packet_context.cpu_id,common_context.vpid,common_context.vtid,common_context.procname,id,_sizes_length,sizes,checksum,ratio
        1795219372255302656,5425812936565,demo,0,jobs:chunk,0,29832,29837,demo,0,0,"[]",12638153115695167455,0.0
        1795219372255303216,5425812937125,demo,0,jobs:chunk,0,29832,29837,demo,0,1,"[0]",590684067820433389,0.0
    "#]],
    );
}

#[test]
fn silence_reads_everything() {
    check("print --format none examples/traces/demo", &expect![[r#""#]]);
}

#[test]
fn wrong_usage() {
    check(
        "print --format xml examples/traces/demo",
        &expect![[r#"
            stderr: error: invalid value 'xml' for '--format <FORMAT>'
            stderr:   [possible values: text, details, json, csv, none]
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
}

#[test]
fn details_of_what_is_between_two_times() {
    let text = kymo(
        "print --format details --no-stream-name --begin 00:02:52.25554 --end 00:02:52.25555 examples/traces/demo",
    );
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let from = text.find("    Stream (ID 1").unwrap_or(0);
    expect![[r#"
            Stream (ID 1, Class ID 0)

        [5,425,813,173,909 cycles, 1,795,219,372,255,540,000 ns from origin]
        {Trace 0, Stream class ID 0, Stream ID 0}
        Packet beginning:
          Context:
            cpu_id: 0

        [5,425,813,173,909 cycles, 1,795,219,372,255,540,000 ns from origin]
        {Trace 0, Stream class ID 0, Stream ID 1}
        Stream beginning:
          Trace `vm`:
            UUID: 255c7b0f-63ec-4584-b260-73b10ea56e2b
            Environment (10 entries):
              architecture_bit_width: 64
              domain: ust
              hostname: vm
              trace_creation_datetime: 20261121T000252+0000
              trace_name: demo
              tracer_buffering_id: 0
              tracer_buffering_scheme: uid
              tracer_major: 2
              tracer_minor: 13
              tracer_name: lttng-ust
            Stream (ID 0, Class ID 0)
            Stream (ID 1, Class ID 0)

        [5,425,813,173,909 cycles, 1,795,219,372,255,540,000 ns from origin]
        {Trace 0, Stream class ID 0, Stream ID 1}
        Packet beginning:
          Context:
            cpu_id: 1

        [5,425,813,178,065 cycles, 1,795,219,372,255,544,156 ns from origin]
        {Trace 0, Stream class ID 0, Stream ID 0}
        Event `jobs:end` (Class ID 3):
          Common context:
            vpid: 29,832
            vtid: 29,836
            procname: demo
          Payload:
            id: 2
            result: 2

        [5,425,813,183,909 cycles, 1,795,219,372,255,550,000 ns from origin]
        {Trace 0, Stream class ID 0, Stream ID 0}
        Packet end

        [5,425,813,183,909 cycles, 1,795,219,372,255,550,000 ns from origin]
        {Trace 0, Stream class ID 0, Stream ID 0}
        Stream end

        [5,425,813,183,909 cycles, 1,795,219,372,255,550,000 ns from origin]
        {Trace 0, Stream class ID 0, Stream ID 1}
        Packet end

        [5,425,813,183,909 cycles, 1,795,219,372,255,550,000 ns from origin]
        {Trace 0, Stream class ID 0, Stream ID 1}
        Stream end
    "#]]
    .assert_eq(&text[from..]);
}

#[test]
fn only_while_all_streams_are_active() {
    check(
        "print --stream-intersection --limit 1 --no-delta --event jobs:* examples/traces/demo",
        &expect![[r#"
        [00:02:52.255263261] vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 0, kind = ( "CUSTOM" : container = 5 ), name = "config.toml", queue_depth = 1 }
    "#]],
    );
}

#[test]
fn colours() {
    let of = |arguments: &str| {
        let text = kymo(&format!("print --limit 1 --event jobs:end --color always {arguments} examples/traces/demo"));
        String::from_utf8_lossy(&text.stdout).replace('\x1b', "^")
    };
    expect![[r#"
        [^[1m^[1m^[33m00:02:52.255544156^[0m] (+?.?????????) vm ^[1m^[1m^[35mjobs:end^[0m: { ^[36mcpu_id^[0m = ^[1m0^[0m }, { ^[36mvpid^[0m = ^[1m29832^[0m, ^[36mvtid^[0m = ^[1m29836^[0m, ^[36mprocname^[0m = ^[1m"demo"^[0m }, { ^[36mid^[0m = ^[1m2^[0m, ^[36mresult^[0m = ^[1m2^[0m }
    "#]].assert_eq(&of(""));
    expect![[r#"
        ^[1mtimestamp^[0m = ^[1m^[1m^[33m00000005425813178065^[0m, ^[1mdelta^[0m = +????????????, ^[1mtrace:hostname^[0m = vm, ^[1mname^[0m = ^[1m^[1m^[35mjobs:end^[0m, ^[1mstream.packet.context^[0m = { ^[36mcpu_id^[0m = ^[1m0^[0m }, ^[1mstream.event.context^[0m = { ^[36mvpid^[0m = ^[1m29832^[0m, ^[36mvtid^[0m = ^[1m29836^[0m, ^[36mprocname^[0m = ^[1m"demo"^[0m }, ^[1mevent.fields^[0m = { ^[36mid^[0m = ^[1m2^[0m, ^[36mresult^[0m = ^[1m2^[0m }
    "#]].assert_eq(&of("--names all --clock-cycles"));
    assert!(of("--format details").contains("Event^[0m `^[32mjobs:end^[0m` (Class ID ^[1m3^[0m):"));
}

/// Babeltrace separates named parts only behind a stamp, which is imitated; it shows negative times without their sign, which is not.
#[test]
fn oddities_of_babeltrace() {
    check(
        "print --limit 2 --event jobs:end --clock-offset -1795219373 --verbose examples/traces/demo",
        &expect![[r#"
            [-0.744455844] (+?.?????????) vm jobs:end: { cpu_id = 0 }, { vpid = 29832, vtid = 29836, procname = "demo" }, { id = 2, result = 2 }
            [-0.744440271] (+0.000015573) vm jobs:end: { cpu_id = 0 }, { vpid = 29832, vtid = 29838, procname = "demo" }, { id = 1, result = 1 }
            stderr: 2 events
        "#]],
    );
    check(
        "print --limit 1 --event jobs:end --names header --fields all --no-delta examples/traces/demo",
        &expect![[r#"
            timestamp = 00:02:52.255544156, trace = vm, , trace:hostname = vm, trace:domain = ust, loglevel = TRACE_DEBUG_LINE (13), name = jobs:end, { 0 }, { 29832, 29836, "demo" }, { 2, 2 }
        "#]],
    );
}

/// In a pipe: rows without bars; the rate is over the span of the packets.
#[test]
fn counts_by_class() {
    check(
        "count examples/traces/demo",
        &expect![[r#"
            events   share  events/s  event
             1,200   50.0%    18,000  jobs:chunk
               400   16.7%     6,000  jobs:begin
               400   16.7%     6,000  jobs:end
               400   16.7%     6,000  jobs:submit
             2,400  100.0%    35,999  all events
        "#]],
    );
}

/// Rows of one class stay apart by data stream.
#[test]
fn counts_by_stream_and_class() {
    check(
        "count --by class,stream examples/traces/demo",
        &expect![[r#"
            events   share  events/s  stream      event
               933   38.9%    13,995  0 jobs_0    jobs:chunk
               311   13.0%     4,665  0 jobs_0    jobs:begin
               310   12.9%     4,650  0 jobs_0    jobs:end
               267   11.1%     4,005  1 jobs_1    jobs:chunk
               231    9.6%     3,465  1 jobs_1    jobs:submit
               169    7.0%     2,535  0 jobs_0    jobs:submit
                90    3.8%     1,350  1 jobs_1    jobs:end
                89    3.7%     1,335  1 jobs_1    jobs:begin
             2,400  100.0%    35,999  all events
        "#]],
    );
}

#[test]
fn counts_by_trace() {
    check(
        "count --by trace examples/traces/demo",
        &expect![[r#"
            events   share  events/s  trace
             2,400  100.0%    35,999  examples/traces/demo
             2,400  100.0%    35,999  all events
        "#]],
    );
}

/// With sizes; what is in no event is told below, so that all bytes of the files are accounted for.
#[test]
fn counts_with_sizes() {
    check(
        "count --sizes --by stream examples/traces/demo",
        &expect![[r#"
            events   share  events/s       size   share  B/event  stream
             1,723   71.8%    25,844   91.7 KiB   72.1%     54.5  0 jobs_0
               677   28.2%    10,155   35.4 KiB   27.9%     53.5  1 jobs_1
             2,400  100.0%    35,999  127.1 KiB  100.0%     54.2  all events

            packets have 132.0 KiB, of which 1.4 KiB are their heads and 3.5 KiB unused
        "#]],
    );
}

/// What `--exact` says of events agrees with `count`; nothing is marked as estimated.
#[test]
fn info_with_every_event_counted() {
    check(
        "info --exact examples/traces/demo",
        &expect![[r#"
            demo  (examples/traces/demo)
              recorded  by lttng-ust 2.13 on vm
              clock     monotonic, 1,000,000,000 Hz, since 1970
              declares  4 event classes

              streams   2 with 17 packets, 132.0 KiB
              events    2,400, 35,999 per second
              span      66.668 ms  from 2026-11-21T00:02:52.255263261Z to 2026-11-21T00:02:52.321931298Z
              density   ▄▄▄▄▄▄█▄▄▄▆▄▄▄▆▃▃▃▃▆▃▃▃▅▆▄▄▄▄▄▄▆▃▃▃▃▃▅▄▄▄▄▆▄▄▃▆▃▃▃▆▃▃▃▅▂▂▂▂▂  (bytes over the span)
              losses    none reported
              busiest event classes
                 50.0%  ███████████████                 jobs:chunk
                 16.7%  █████                           jobs:begin
                 16.7%  █████                           jobs:end
                 16.7%  █████                           jobs:submit

            Next:  kymo print examples/traces/demo | less
                   kymo count examples/traces/demo
        "#]],
    );
}

fn parsed(arguments: &str) -> serde_json::Value {
    serde_json::from_slice(&kymo(arguments).stdout).expect("the output is JSON")
}

/// Sums over groups are the sums, agree between groupings, and with what the packets' own sizes say.
#[test]
fn counts_as_json_add_up() {
    let number = |value: &serde_json::Value| value.as_u64().expect("a whole number");
    let info = parsed("info --exact --json examples/traces/demo");
    for by in ["class", "stream", "trace", "trace,stream,class"] {
        let counts = parsed(&format!("count --json --sizes --by {by} examples/traces/demo"));
        let sum = |key: &str| {
            counts["groups"].as_array().expect("groups is a list").iter().map(|group| number(&group[key])).sum::<u64>()
        };
        let sizes = &counts["size_bits"];
        assert_eq!((sum("events"), sum("size_bits")), (number(&counts["events"]), number(&sizes["events"])), "{by}");
        assert_eq!(counts["events"], info["events"]["value"], "{by}");
        assert_eq!(number(&sizes["packets"]), number(&info["size_bytes"]) * 8, "{by}");
        assert!(counts["events_per_second"].as_f64().is_some_and(|rate| rate > 0.0));
    }
}
