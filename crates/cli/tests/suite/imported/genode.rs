//! Trees of Genode's trace recorder.

use expect_test::expect;

use super::{Setup, corpus};

pub(crate) const METADATA: &[u8] = include_bytes!("../../../../../tests/genode/metadata");
const START: u64 = 5_000_000_000_000;

/// The packet of a thread with events: their ids, times, and payloads.
pub(crate) fn packet(label: &str, thread: &str, events: &[(u8, u64, &[u8])]) -> Vec<u8> {
    let names = [label.as_bytes(), &[0], thread.as_bytes(), &[0]].concat();
    let time = |event: &(u8, u64, &[u8])| event.1.to_le_bytes();
    let body: Vec<u8> = events.iter().flat_map(|event| [&[event.0][..], &time(event), event.2].concat()).collect();
    let head_bits = (33 + names.len()) * 8;
    let head = [
        &0xC1FC_1FC1_u32.to_le_bytes()[..],
        &[0; 4],
        &time(&events[0]),
        &time(&events[events.len() - 1]),
        &((head_bits + body.len() * 8) as u32).to_le_bytes(),
        &(head_bits as u16).to_le_bytes(),
        &[0x02, 0x11, 120],
    ];
    [&head.concat()[..], &names, &body].concat()
}

fn checkpoint(data: u32, kind: u8, name: &str) -> Vec<u8> {
    [&data.to_le_bytes()[..], &[0; 8], &[kind], name.as_bytes(), &[0]].concat()
}

/// A client that calls a server, which does something meanwhile; packets of the network beside it.
fn recording() -> Setup {
    let (start, end) = (checkpoint(32, 1, "handle"), checkpoint(32, 2, "handle"));
    let signal = [&1_u32.to_le_bytes()[..], &0x7F00_1000_u64.to_le_bytes()].concat();
    let client = packet(
        "init -> ping",
        "ep",
        &[
            (6, START, &signal),
            (7, START + 1_000, &start),
            (1, START + 2_000, b"submit\0"),
            (2, START + 20_000, b"submit\0"),
            (7, START + 21_000, &end),
            (5, START + 22_000, &1_u32.to_le_bytes()),
        ],
    );
    let other = packet("init -> ping", "ep", &[(1, START + 5_000, b"submit\0"), (2, START + 30_000, b"submit\0")]);
    let server = packet(
        "init -> router",
        "ep",
        &[
            (3, START + 3_000, b"submit\0"),
            (7, START + 4_000, &checkpoint(7, 0x12, "session")),
            (4, START + 19_000, b"submit\0"),
            (3, START + 23_000, b"submit\0"),
            (4, START + 29_000, b"submit\0"),
        ],
    );
    let at = |name: &str| format!("rec/2022-8-29 14:3:9/init/{name}");
    let setup = Setup::new(&[]);
    setup.write(&at("ping/ep"), &[client, other].concat());
    setup.write(&at("router/ep"), &server);
    setup.write(&at("ping/metadata"), METADATA);
    setup.write(&at("router/metadata"), METADATA);
    setup
}

#[test]
fn a_recording_is_one_trace() {
    let setup = recording();
    expect![[r#"
        2022-8-29 14:3:9  (rec/2022-8-29 14:3:9)
          recorded  by genode
          clock     monotonic, 1,000,000,000 Hz, since 1970
          declares  7 event classes

          streams   3 with 3 packets, 456 B
          events    13, 433,333 per second
          span      30.000 us  from 2022-08-29T14:03:09.000000000Z to 2022-08-29T14:03:09.000030000Z
          density   ▄▄▄▄▄▆▆▆▆███████████████████████████████████▄▄▄▄▄▄▄▄▄▄▄▄▄▄▂▂  (bytes over the span)
          losses    none reported
          busiest event classes
             23.1%  ███████                         Checkpoint
             15.4%  █████                           Rpc_call
             15.4%  █████                           Rpc_dispatch
             15.4%  █████                           Rpc_reply
             15.4%  █████                           Rpc_returned
              7.7%  ██                              Signal_receive
              7.7%  ██                              Signal_submit

        Next:  kymo print rec | less
               kymo count rec
        rec/2022-8-29 14:3:9: warning[shared-name]: init/ping/ep has packets of 2 threads of that name, told apart by affinity, priority and time
        rec/2022-8-29 14:3:9: warning[folder-date]: the clock's time is that of the folder's name, in UTC, at the first event, give or take a second and the silence before it
        status 0
    "#]].assert_eq(&setup.all("info rec"));
    expect![[r#"
        [14:03:09.000000000] (+?.?????????) Signal_receive: { hdrsz = 392, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> ping", thread_name = "ep", thread = "init -> ping: ep" }, { number = 1, context = 2130710528 }
        [14:03:09.000001000] (+0.000001000) Checkpoint: { hdrsz = 392, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> ping", thread_name = "ep", thread = "init -> ping: ep" }, { data = 32, addr = 0, type = 1, name = "handle" }
        [14:03:09.000002000] (+0.000001000) Rpc_call: { hdrsz = 392, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> ping", thread_name = "ep", thread = "init -> ping: ep" }, { name = "submit" }
        [14:03:09.000003000] (+0.000001000) Rpc_dispatch: { hdrsz = 408, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> router", thread_name = "ep", thread = "init -> router: ep" }, { name = "submit" }
        [14:03:09.000004000] (+0.000001000) Checkpoint: { hdrsz = 408, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> router", thread_name = "ep", thread = "init -> router: ep" }, { data = 7, addr = 0, type = 18, name = "session" }
        [14:03:09.000005000] (+0.000001000) Rpc_call: { hdrsz = 392, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> ping", thread_name = "ep", thread = "init -> ping: ep (2)" }, { name = "submit" }
        [14:03:09.000019000] (+0.000014000) Rpc_reply: { hdrsz = 408, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> router", thread_name = "ep", thread = "init -> router: ep" }, { name = "submit" }
        [14:03:09.000020000] (+0.000001000) Rpc_returned: { hdrsz = 392, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> ping", thread_name = "ep", thread = "init -> ping: ep" }, { name = "submit" }
        [14:03:09.000021000] (+0.000001000) Checkpoint: { hdrsz = 392, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> ping", thread_name = "ep", thread = "init -> ping: ep" }, { data = 32, addr = 0, type = 2, name = "handle" }
        [14:03:09.000022000] (+0.000001000) Signal_submit: { hdrsz = 392, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> ping", thread_name = "ep", thread = "init -> ping: ep" }, { number = 1 }
        [14:03:09.000023000] (+0.000001000) Rpc_dispatch: { hdrsz = 408, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> router", thread_name = "ep", thread = "init -> router: ep" }, { name = "submit" }
        [14:03:09.000029000] (+0.000006000) Rpc_reply: { hdrsz = 408, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> router", thread_name = "ep", thread = "init -> router: ep" }, { name = "submit" }
        [14:03:09.000030000] (+0.000001000) Rpc_returned: { hdrsz = 392, xpos = 2, ypos = 0, width = 1, height = 1, priority = 120, session_label = "init -> ping", thread_name = "ep", thread = "init -> ping: ep (2)" }, { name = "submit" }
    "#]].assert_eq(&setup.run("print rec"));
    expect![[r#"
        rec/2022-8-29 14:3:9: warning[shared-name]: init/ping/ep has packets of 2 threads of that name, told apart by affinity, priority and time
          help: give each thread of a component a name of its own
        rec/2022-8-29 14:3:9: warning[folder-date]: the clock's time is that of the folder's name, in UTC, at the first event, give or take a second and the silence before it
          help: the recorder writes no time of day for its clock: times of one recording are right among each other
        0 errors, 2 warnings
        status 0
    "#]].assert_eq(&setup.all("check rec"));
}

/// Calls and what their servers do meanwhile are pairs of their own; two threads of one name do not mix.
#[test]
fn calls_dispatches_and_checkpoints_are_pairs() {
    let setup = recording();
    expect![[r#"
        The longest  2022-08-29 14:03:09.000000000 to 14:03:09.000030000 (30.000 us)
        Duration               Begin                 End  Key                                       Group
         25.0 us  14:03:09.000005000  14:03:09.000030000  rpc call, submit, init -> ping: ep (2)    rpc call, submit
         20.0 us  14:03:09.000001000  14:03:09.000021000  checkpoint, handle, init -> ping: ep      handle
         18.0 us  14:03:09.000002000  14:03:09.000020000  rpc call, submit, init -> ping: ep        rpc call, submit
         16.0 us  14:03:09.000003000  14:03:09.000019000  rpc dispatch, submit, init -> router: ep  rpc dispatch, submit
         6.00 us  14:03:09.000023000  14:03:09.000029000  rpc dispatch, submit, init -> router: ep  rpc dispatch, submit
    "#]]
    .assert_eq(&setup.run("pairs rec --table longest"));
    expect![[r#"
        Groups  2022-08-29 14:03:09.000000000 to 14:03:09.000030000 (30.000 us)
        Group                 Intervals    Total      Min  Average      Max  Deviation     50 %     90 %     99 %   99.9 %  Never ended  Lost inside
        rpc call, submit              2  43.0 us  18.0 us  21.5 us  25.0 us    4.95 us  18.0 us  25.0 us  25.0 us  25.0 us            0            0
        rpc dispatch, submit          2  22.0 us  6.00 us  11.0 us  16.0 us    7.07 us  6.00 us  16.0 us  16.0 us  16.0 us            0            0
        handle                        1  20.0 us  20.0 us  20.0 us  20.0 us          -  20.0 us  20.0 us  20.0 us  20.0 us            0            0
    "#]].assert_eq(&setup.run("pairs rec --table per-group"));
}

#[test]
fn the_context_of_packets_is_in_filters_and_columns() {
    let setup = recording();
    let filter = r#"packet.session_label == "init -> router" && $event.name == "Rpc_reply""#;
    let text = setup.say_words(&["print", "rec", "--filter", filter]);
    assert_eq!(text.lines().count(), 2, "{text}");
    if cfg!(feature = "sql") {
        let query = "select session_label, thread, priority, count(*) from \"Rpc_call\" group by all order by thread";
        expect![[r#"
            session_label  thread                priority  count(*)
            init -> ping   init -> ping: ep           120         1
            init -> ping   init -> ping: ep (2)       120         1
        "#]]
        .assert_eq(&setup.say_words(&["sql", "rec", query]));
    }
}

/// A copy as plain CTF has the same events, which other readers understand.
#[test]
fn a_recording_becomes_plain_ctf() {
    let setup = recording();
    let text = setup.run("print rec");
    for version in ["tsdl", "ctf2"] {
        setup.run(&format!("cut rec --output {version} --as {version}"));
        assert_eq!(setup.run(&format!("print {version}")), text, "{version}");
    }
}

/// The numbers that were derived by hand from the times in the tree.
#[test]
fn the_tree_of_the_corpus_has_its_latencies() {
    let tree = corpus().join("genode/synthetic");
    if !tree.is_dir() {
        eprintln!("CORPUS ABSENT: {}: not run", tree.display());
        return;
    }
    let setup = Setup::new(&[]);
    let count = setup.say_words(&["count", &tree.display().to_string()]);
    assert!(count.contains("28"), "events of threads, and packets: {count}");
    let longest = setup.say_words(&["pairs", &tree.display().to_string(), "--json", "--table", "longest"]);
    let answer: serde_json::Value = serde_json::from_str(&longest).expect("it is JSON");
    let rows = answer.pointer("/tables/0/rows").and_then(|rows| rows.as_array()).unwrap_or_else(|| panic!("{longest}"));
    let cycles = |ns: &serde_json::Value| (ns.as_f64().expect("a duration") * 1.992).round() as u64;
    let mut found: Vec<String> = rows.iter().map(|row| format!("{} {row}", cycles(&row[0]))).collect();
    found.sort();
    expect![[r#"
        1000 [502,1661781789002510542,1661781789002511044,{"class":"string","value":"rpc dispatch, elapsed_ms, init -> timer: ep"},{"class":"string","value":"rpc dispatch, elapsed_ms"}]
        16000 [8032,1661781789000011044,1661781789000019076,{"class":"string","value":"rpc dispatch, submit, init -> runtime -> nic_router: ep"},{"class":"string","value":"rpc dispatch, submit"}]
        18000 [9036,1661781789000010542,1661781789000019578,{"class":"string","value":"rpc call, submit, init -> ping: ep"},{"class":"string","value":"rpc call, submit"}]
        20000 [10040,1661781789000010040,1661781789000020080,{"class":"string","value":"checkpoint, handle, init -> ping: ep"},{"class":"string","value":"handle"}]
        3000 [1506,1661781789002510040,1661781789002511546,{"class":"string","value":"rpc call, elapsed_ms, init -> ping: ep"},{"class":"string","value":"rpc call, elapsed_ms"}]
        6000 [3012,1661781789000000502,1661781789000003514,{"class":"string","value":"rpc dispatch, trigger_once, init -> timer: ep"},{"class":"string","value":"rpc dispatch, trigger_once"}]
        8000 [4016,1661781789000000000,1661781789000004016,{"class":"string","value":"rpc call, trigger_once, init -> ping: ep"},{"class":"string","value":"rpc call, trigger_once"}]"#]].assert_eq(&found.join("\n"));
}
