//! What `kymo roles` says of traces that are made here, and what it binds in those of the corpus.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect, expect_file};
use serde_json::Value;

use crate::program;

/// A system of somebody's own, and two pairs that can be guessed.
const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace { major = 1; minor = 8; byte_order = le; };
env { tracer_name = \"my-rtos\"; };
stream { event.header := struct { u32 id; }; packet.context := struct { u32 core; }; };
event { id = 0; name = \"task_resumed\"; fields := struct { u32 from; u32 to; string task; }; };
event { id = 1; name = \"flash.write.begin\"; fields := struct { u32 id; u32 size; }; };
event { id = 2; name = \"flash.write.end\"; fields := struct { u32 id; }; };
event { id = 3; name = \"isr_enter\"; fields := struct { u32 vector; }; };
event { id = 4; name = \"isr_leave\"; };
event { id = 5; name = \"sched_switch\"; fields := struct { string prev_tid; u32 next; }; };
";

const MINE: &str = "name = \"mine\"
when = 'env.tracer_name == \"my-*\"'
[context]
cpu = \"packet.core\"
[[thread_switch]]
event = \"task_resumed\"
when = \"from != to\"
prev_tid = \"from\"
next_tid = \"to\"
next_comm = \"task\"
[[irq_entry]]
event = \"isr_entr\"
irq = \"vector\"
[[irq_exit]]
event = \"isr_leave\"
irq = \"vecto\"
";

struct Setup {
    root: PathBuf,
}

impl Setup {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("kymo-roles-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("trace")).expect("temporary files may be written");
        fs::write(root.join("trace/metadata"), METADATA).expect("temporary files may be written");
        fs::write(root.join("trace/stream"), [0; 4]).expect("temporary files may be written");
        fs::write(root.join("mine.toml"), MINE).expect("temporary files may be written");
        Self { root }
    }

    fn run(&self, arguments: &str) -> String {
        let done = program::kymo()
            .args(arguments.split_whitespace())
            .current_dir(&self.root)
            .env("XDG_CACHE_HOME", self.root.join(".cache"))
            .output()
            .expect("the program is there");
        let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
        for line in String::from_utf8_lossy(&done.stderr).lines() {
            writeln!(text, "stderr: {line}").expect("text can be written");
        }
        if let Some(status) = done.status.code().filter(|status| *status != 0) {
            writeln!(text, "exit status {status}").expect("text can be written");
        }
        text
    }

    fn check(&self, arguments: &str, expected: &Expect) {
        expected.assert_eq(&self.run(arguments));
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // What cannot be removed is removed with the other temporary files some day.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Without a mapping pairs are guessed and used; what is called as in LTTng but has other fields is told.
#[test]
fn what_is_guessed() {
    let setup = Setup::new("guessed");
    setup.check("roles trace", &expect![[r#"
        no event has a role but for the guessed ones below

        context
          cpu           unknown
          tid           unknown
          pid           unknown
          comm          unknown

        guessed, those marked + are used, since nothing else has these roles
        +  95 %  begin             flash.write.begin
                  ended by `flash.write.end` by their names; both have `id`
        +  95 %  end               flash.write.end
                  begun by `flash.write.begin` by their names; both have `id`
           40 %  begin             isr_enter
                  ended by `isr_leave` by their names; nothing tells which end belongs to which begin
           40 %  end               isr_leave
                  begun by `isr_enter` by their names; nothing tells which end belongs to which begin
           80 %  thread_switch     task_resumed
                  `from` and `to` look like threads of which one follows the other

        not bound, though called so
          sched_switch: no thread_switch of lttng-kernel: `prev_tid` is text, which `prev_tid` cannot be; there is nothing for `next_tid`
          sched_switch: no thread_switch of tracepoints: there is nothing for `prev_tid`; there is nothing for `next_tid`

        no event is
          thread_switch thread_waking thread_wakeup thread_migrate thread_fork thread_exec thread_exit
          thread_free thread_priority thread_rename thread_state syscall_entry syscall_exit irq_entry
          irq_exit softirq_raise softirq_entry softirq_exit block_insert block_issue block_complete net_send
          net_receive page_alloc page_free file_state disk_state interface_state counter state send receive
          uring_submit uring_queue uring_file uring_complete uring_ring call_stack
    "#]]);
}

/// A mapping is used, and what is wrong with it is told.
#[test]
fn own_mapping() {
    let setup = Setup::new("own");
    setup.check("roles --roles mine.toml trace", &expect![[r#"
        thread_switch     task_resumed  (mine)
            where from != to
            prev_tid: from, next_tid: to, next_comm: task

        context
          cpu           packet.core
          tid           unknown
          pid           unknown
          comm          unknown

        guessed, those marked + are used, since nothing else has these roles
        +  95 %  begin             flash.write.begin
                  ended by `flash.write.end` by their names; both have `id`
        +  95 %  end               flash.write.end
                  begun by `flash.write.begin` by their names; both have `id`
        +  50 %  begin             isr_enter
                  ended by `isr_leave` by their names; each end ends the last begin of the CPU
        +  50 %  end               isr_leave
                  begun by `isr_enter` by their names; each end ends the last begin of the CPU

        not bound, though called so
          isr_leave: no irq_exit of mine: there is nothing for `irq`
          sched_switch: no thread_switch of lttng-kernel: `prev_tid` is text, which `prev_tid` cannot be; there is nothing for `next_tid`
          sched_switch: no thread_switch of tracepoints: there is nothing for `prev_tid`, but `prev_tid`; there is nothing for `next_tid`

        no event is
          thread_waking thread_wakeup thread_migrate thread_fork thread_exec thread_exit thread_free
          thread_priority thread_rename thread_state syscall_entry syscall_exit irq_entry irq_exit
          softirq_raise softirq_entry softirq_exit block_insert block_issue block_complete net_send
          net_receive page_alloc page_free file_state disk_state interface_state counter state send receive
          uring_submit uring_queue uring_file uring_complete uring_ring call_stack
        stderr: warning: irq_entry: no event record class is called `isr_entr`; there is `isr_enter`
    "#]]);
}

/// A mapping that is not about the trace is of no use, which is told.
#[test]
fn mapping_of_other_traces() {
    let setup = Setup::new("other");
    fs::write(setup.root.join("mine.toml"), MINE.replace("my-*", "other")).unwrap();
    setup.check("roles --roles mine.toml --write - trace", &expect![[r##"
        # What events mean, for `--roles`. It goes before what is built in: sections may be changed, added and deleted.
        # Fields are paths as in filters: `next_tid`, `packet.cpu_id`, `$ctx.vtid`; of a list the first that exists counts.
        name = "mine"

        # Guessed, 95 % sure: ended by `flash.write.end` by their names; both have `id`.
        [[begin]]
        event = "flash.write.begin"
        key = "id"
        name = { value = "flash.write" }
        group = { value = "flash.write.end" }

        # Guessed, 95 % sure: begun by `flash.write.begin` by their names; both have `id`.
        [[end]]
        event = "flash.write.end"
        key = "id"
        name = { value = "flash.write" }
        group = { value = "flash.write.end" }

        # Guessed, 40 % sure: ended by `isr_leave` by their names; nothing tells which end belongs to which begin.
        # [[begin]]
        # event = "isr_enter"
        # name = { value = "isr" }
        # group = { value = "isr_leave" }

        # Guessed, 40 % sure: begun by `isr_enter` by their names; nothing tells which end belongs to which begin.
        # [[end]]
        # event = "isr_leave"
        # name = { value = "isr" }
        # group = { value = "isr_leave" }

        # Guessed, 80 % sure: `from` and `to` look like threads of which one follows the other.
        [[thread_switch]]
        event = "task_resumed"
        prev_tid = "from"
        next_tid = "to"
        stderr: warning: thread_switch: the mapping's `when` is not true of any of these traces
        stderr: warning: irq_entry: the mapping's `when` is not true of any of these traces
        stderr: warning: irq_exit: the mapping's `when` is not true of any of these traces
    "##]]);
}

/// Mistakes in a mapping are told with their place.
#[test]
fn wrong_mapping() {
    let setup = Setup::new("wrong");
    fs::write(setup.root.join("mine.toml"), MINE.replace("prev_tid", "prv_tid")).unwrap();
    setup.check(
        "roles --roles mine.toml trace",
        &expect![[r#"
        stderr: error: mine.toml:5:1: thread_switch needs `prev_tid`: without it an event has not the role
        stderr: mine.toml:8:1: thread_switch has no field `prv_tid`; did you mean `prev_tid`?
        exit status 2
    "#]],
    );
    setup.check(
        "roles --roles none.toml trace",
        &expect![[r#"
        stderr: error: none.toml: No such file or directory (os error 2)
        exit status 2
    "#]],
    );
}

/// What is written binds the same, and what is there is not overwritten.
#[test]
fn written_mappings_bind_the_same() {
    let setup = Setup::new("written");
    setup.check(
        "roles --roles mine.toml --write new.toml trace",
        &expect![[r#"
        stderr: warning: irq_entry: no event record class is called `isr_entr`; there is `isr_enter`
    "#]],
    );
    setup.check(
        "roles --roles mine.toml --write new.toml trace",
        &expect![[r#"
        stderr: warning: irq_entry: no event record class is called `isr_entr`; there is `isr_enter`
        stderr: error: new.toml: File exists (os error 17)
        exit status 1
    "#]],
    );
    let before: Value = serde_json::from_str(&setup.run("roles --json trace")).unwrap();
    setup.run("roles --write all.toml trace");
    let text = fs::read_to_string(setup.root.join("all.toml")).unwrap();
    expect![[r##"
        # What events mean, for `--roles`. It goes before what is built in: sections may be changed, added and deleted.
        # Fields are paths as in filters: `next_tid`, `packet.cpu_id`, `$ctx.vtid`; of a list the first that exists counts.
        name = "mine"

        # Guessed, 95 % sure: ended by `flash.write.end` by their names; both have `id`.
        [[begin]]
        event = "flash.write.begin"
        key = "id"
        name = { value = "flash.write" }
        group = { value = "flash.write.end" }

        # Guessed, 95 % sure: begun by `flash.write.begin` by their names; both have `id`.
        [[end]]
        event = "flash.write.end"
        key = "id"
        name = { value = "flash.write" }
        group = { value = "flash.write.end" }

        # Guessed, 40 % sure: ended by `isr_leave` by their names; nothing tells which end belongs to which begin.
        # [[begin]]
        # event = "isr_enter"
        # name = { value = "isr" }
        # group = { value = "isr_leave" }

        # Guessed, 40 % sure: begun by `isr_enter` by their names; nothing tells which end belongs to which begin.
        # [[end]]
        # event = "isr_leave"
        # name = { value = "isr" }
        # group = { value = "isr_leave" }

        # Guessed, 80 % sure: `from` and `to` look like threads of which one follows the other.
        [[thread_switch]]
        event = "task_resumed"
        prev_tid = "from"
        next_tid = "to"
    "##]].assert_eq(&text);
    let behind: Value = serde_json::from_str(&setup.run("roles --roles all.toml --json trace")).unwrap();
    let is_sure = |guess: &&Value| guess["confidence"].as_f64().unwrap() >= 0.5;
    let guessed = before["guessed"].as_array().unwrap().iter().filter(is_sure).count();
    assert_eq!(behind["bound"].as_array().unwrap().len(), guessed);
}

/// A program whose events have roles of their own, as `KYMO_EVENT_AS` defines them.
const OF_A_PROGRAM: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := time;
trace { major = 1; minor = 8; byte_order = le; };
env { tracer_name = \"kymo\"; };
clock { name = c; freq = 1000000000; };
stream {
    packet.context := struct { u32 vpid; u32 vtid; };
    event.header := struct { u32 id; time timestamp; };
};
event { id = 0; name = \"app:on\"; model.emf.uri = \"kymo:begin?source=a.c:1\"; fields := struct { u32 key; u32 name; }; };
event { id = 1; name = \"app:off\"; model.emf.uri = \"kymo:end?source=a.c:2\"; fields := struct { u32 key; }; };
event { id = 2; name = \"app:in_call\"; model.emf.uri = \"kymo:begin\"; };
event { id = 3; name = \"app:out_of_call\"; model.emf.uri = \"kymo:end\"; };
event { id = 4; name = \"app:depth\"; model.emf.uri = \"kymo:counter?source=a.c:5\"; fields := struct { u32 value; }; };
event { id = 5; name = \"app:sent\"; model.emf.uri = \"kymo:send?source=a.c:6\"; fields := struct { u32 id; }; };
event { id = 6; name = \"app:got\"; model.emf.uri = \"kymo:receive?source=a.c:7\"; fields := struct { u32 id; }; };
event { id = 7; name = \"app:point\"; model.emf.uri = \"kymo:checkpoint?source=a.c:8\"; fields := struct { u32 type; u32 name; u32 data; }; };
event { id = 8; name = \"app:plain\"; model.emf.uri = \"kymo:?source=a.c:9\"; fields := struct { u32 key; }; };
";

/// A packet of [`OF_A_PROGRAM`] with these events, every 10 ns: ids, and words of fields.
fn packet(events: &[&[u32]]) -> Vec<u8> {
    let mut packet: Vec<u8> = [7_u32, 8].iter().flat_map(|word| word.to_le_bytes()).collect();
    for (words, time) in events.iter().zip((10_u64..).step_by(10)) {
        packet.extend(words[0].to_le_bytes());
        packet.extend(time.to_le_bytes());
        packet.extend(words[1..].iter().flat_map(|word| word.to_le_bytes()));
    }
    packet
}

/// The role that a program defines an event with binds it, under any name; durations of checkpoints are pairs.
#[test]
fn roles_of_definitions_bind() {
    let setup = Setup::new("defined");
    fs::write(setup.root.join("trace/metadata"), OF_A_PROGRAM).unwrap();
    let events: [&[u32]; 10] =
        [&[0, 1, 5], &[2], &[3], &[1, 1], &[4, 3], &[5, 9], &[6, 9], &[7, 1, 4, 0], &[7, 2, 4, 0], &[8, 1]];
    fs::write(setup.root.join("trace/stream"), packet(&events)).unwrap();
    setup.check(
        "roles trace",
        &expect![[r#"
            begin             app:on  (kymo)
                key, name, within: packet.vpid, group: by its name
            begin             app:in_call  (kymo)
                name: by its name, within: packet.vtid, group: by its name
                without key
            begin             app:point  (kymo)
                where event.emf_uri == "kymo:checkpoint*" && type == 1
                key: name, name, within: packet.vtid, group: by its name
            end               app:off  (kymo)
                key, name: by its name, within: packet.vpid, group: by its name
            end               app:out_of_call  (kymo)
                name: by its name, within: packet.vtid, group: by its name
                without key
            end               app:point  (kymo)
                where event.emf_uri == "kymo:checkpoint*" && type == 2
                key: name, name, within: packet.vtid, group: by its name
            counter           app:depth  (kymo)
                name: by its name, value, within: packet.vpid
            state             app:point  (kymo)
                where event.emf_uri == "kymo:checkpoint*" && type == 0x12
                name, state: data, within: packet.vpid, group: = "Checkpoints"
            send              app:sent  (kymo)
                key: id, name: by its name, group: by its name
            receive           app:got  (kymo)
                key: id, name: by its name, group: by its name

            context
              cpu           unknown
              tid           packet.vtid (8) or $ctx.vtid (1)
              pid           packet.vpid (8) or $ctx.vpid (1)
              comm          unknown

            not bound, though called so
              47 roles of 9 classes, by kymo: its condition is never true (--all shows them)
              8 roles of 8 classes, by kymo: there is nothing for `value` (--all shows them)
              7 roles of 7 classes, by kymo: there is nothing for `name` (--all shows them)
              6 roles of 3 classes, by kymo: there is nothing for `key` (--all shows them)

            no event is
              thread_switch thread_waking thread_wakeup thread_migrate thread_fork thread_exec thread_exit
              thread_free thread_priority thread_rename thread_state syscall_entry syscall_exit irq_entry
              irq_exit softirq_raise softirq_entry softirq_exit block_insert block_issue block_complete net_send
              net_receive page_alloc page_free file_state disk_state interface_state uring_submit uring_queue
              uring_file uring_complete uring_ring call_stack
        "#]],
    );
    let answer: Value = serde_json::from_str(&setup.run("pairs --json --top all trace")).unwrap();
    let longest = answer["tables"].as_array().unwrap().iter().find(|table| table["class"] == "longest").unwrap();
    let durations: Vec<u64> = longest["rows"].as_array().unwrap().iter().map(|row| row[0].as_u64().unwrap()).collect();
    assert_eq!(durations, [30, 10, 10], "{longest}");
}

fn corpus() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    std::env::var_os("KYMO_CORPUS").map_or_else(beside, PathBuf::from)
}

/// What is bound in traces of many tracers and versions: classes by role and mapping, fields that are nowhere.
#[test]
fn corpus_traces_are_bound() {
    let corpus = corpus().join("ctf");
    if !corpus.exists() {
        eprintln!("CORPUS ABSENT: {}: not run", corpus.display());
        return;
    }
    let setup = Setup::new("corpus");
    let mut shown = String::new();
    for folder in [
        "metadata-only/kernel",
        "metadata-only/trace2",
        "metadata-only/django-benchmark/django-db",
        "tracecompass/flipping-endianness",
        "tracecompass/bug446190",
        "tracecompass/many-threads",
        "babeltrace/succeed/lttng-tracefile-rotation",
        "tracecompass/perf-taskset2",
        "tracecompass/context-switches",
        "tracecompass/cyg-profile",
        "tracecompass/exp",
        "tracecompass/mpi_gather",
        "tracecompass/dpdk_service_cores",
    ] {
        let text = setup.run(&format!("roles --json {}", corpus.join(folder).display()));
        let found: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{folder}: {error}: {text}"));
        writeln!(shown, "{folder}").unwrap();
        summarise(&found, &mut shown);
    }
    expect_file!["../roles-corpus.txt"].assert_eq(&shown);
}

fn summarise(found: &Value, into: &mut String) {
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    for bound in list(&found["bound"]) {
        let (role, mapping) = (bound["role"].as_str().unwrap(), bound["mapping"].as_str().unwrap());
        let nowhere = |field: &(&String, &Value)| list(&field.1["places"]).is_empty();
        let fields = bound["fields"].as_object().unwrap();
        let missing: Vec<&str> = fields.iter().filter(nowhere).map(|(name, _)| name.as_str()).collect();
        let missing = if missing.is_empty() { String::new() } else { format!(" without {}", missing.join(" ")) };
        writeln!(into, "    {role} {mapping} {}{missing}", list(&bound["classes"]).len()).unwrap();
    }
    let context = found["context"]
        .as_object()
        .unwrap()
        .iter()
        .filter_map(|(name, field)| Some(format!("{name}={}", list(&field["places"]).first()?["place"].as_str()?)));
    writeln!(into, "    context {}", context.collect::<Vec<_>>().join(" ")).unwrap();
    for guess in list(&found["guessed"]).iter().take(6) {
        let (role, class) = (guess["role"].as_str().unwrap(), guess["class"].as_str().unwrap());
        writeln!(into, "    guessed {} {role} {class}", guess["confidence"]).unwrap();
    }
    for refused in list(&found["refused"]) {
        writeln!(into, "    refused {} {}", refused["class"].as_str().unwrap(), refused["why"].as_str().unwrap())
            .unwrap();
    }
}
