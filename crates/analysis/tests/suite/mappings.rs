//! The mappings that are built in, and guesses, with small metadata: the meaning of each class of
//! events.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

use std::fmt::Write;
use std::sync::Arc;

use expect_test::{Expect, expect};
use kymo_analysis::bind::StreamClass;
use kymo_analysis::bind::matching::{FieldMatch, FieldOrigin, Matcher, Matching};
use kymo_analysis::guess;
use kymo_analysis::mapping::RoleMapping;
use kymo_analysis::roles::{CONTEXT, FieldFacts};
use kymo_decode::{Compile, Decoder, FilterFacts, fields};

/// Metadata of one data stream class. Events are lines `name: field field`, fields of which the name ends in `$` are
/// text, in `[]` arrays, the others integers.
fn metadata(environment: &str, contexts: &str, events: &str) -> String {
    let members = |fields: &str| -> String {
        let member = |field: &str| match (field.strip_suffix('$'), field.strip_suffix("[]")) {
            (Some(name), _) => format!("string {name};"),
            (_, Some(name)) => format!("u32 {name}[2];"),
            _ => format!("u32 {field};"),
        };
        fields.split_whitespace().map(member).collect()
    };
    let event = |(id, line): (usize, &str)| {
        let (name, fields) = line.rsplit_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
        format!(
            "event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{ {} }}; }};\n",
            members(fields)
        )
    };
    let lines = events.lines().map(str::trim).filter(|line| !line.is_empty());
    format!(
        "/* CTF 1.8 */\ntypealias integer {{ size = 32; align = 8; signed = false; }} := u32;\n\
         trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u32 stream_id; }}; }};\n\
         env {{ {environment} }};\n\
         stream {{ id = 0; event.header := struct {{ u32 id; }}; packet.context := struct {{ u32 cpu_id; }}; \
         event.context := struct {{ {} }}; }};\n{}",
        members(contexts),
        lines.enumerate().map(event).collect::<String>()
    )
}

fn decoder(metadata: &str) -> Arc<Decoder> {
    let metadata = kymo_format::parse(metadata.as_bytes());
    let trace = metadata.trace_class.unwrap_or_else(|| panic!("{:?}", metadata.diagnostics));
    Arc::new(Decoder::new(Arc::new(trace), Compile::Never).unwrap())
}

fn facts() -> FilterFacts<'static> {
    FilterFacts { clock: None, trace_name: "test", suggests: false, instant: &|_| None }
}

fn choices(names: &[FieldFacts], choices: &[FieldMatch], into: &mut String) {
    for (field, choice) in names.iter().zip(choices) {
        let name = field.name;
        match choice {
            FieldMatch::NotSaid => {}
            FieldMatch::Chosen(FieldOrigin::Path(path)) => write!(into, " {name}={path}").unwrap(),
            FieldMatch::Chosen(FieldOrigin::Integer(value)) => write!(into, " {name}:{value}").unwrap(),
            FieldMatch::Chosen(FieldOrigin::Text(text)) => write!(into, " {name}:'{text}'").unwrap(),
            FieldMatch::Missing { .. } => write!(into, " {name}?").unwrap(),
            FieldMatch::Unfit { path, what } => write!(into, " {name}!={path}({what})").unwrap(),
        }
    }
}

fn show(matching: &Matching<'_>, context: &[FieldMatch]) -> String {
    let role = matching.section.role.facts();
    let mut line = format!("    {} ({})", role.name, matching.mapping.name);
    choices(role.fields, &matching.fields, &mut line);
    line.push_str(" |");
    choices(CONTEXT, context, &mut line);
    if let Some(condition) = matching.condition {
        write!(line, " where {}", condition.text()).unwrap();
    }
    line + "\n"
}

fn check(environment: &str, contexts: &str, events: &str, expected: Expect) {
    check_with(RoleMapping::built_in(), environment, contexts, events, expected);
}

fn check_with(mappings: &[RoleMapping], environment: &str, contexts: &str, events: &str, expected: Expect) {
    let decoder = decoder(&metadata(environment, contexts, events));
    let matcher = Matcher::new(mappings, decoder.trace_class(), "test");
    let facts = facts();
    let mut shown = String::new();
    for (number, class) in decoder.stream_class(0).event_classes.iter().enumerate() {
        let names = fields::names(&decoder, 0, number, &facts);
        let name = class.name.as_deref().unwrap_or_default();
        let roles = matcher.roles(name, &names, &|_, _| true, &|_, _| true);
        writeln!(shown, "{name}{}", if roles.is_empty() { ": nothing" } else { "" }).unwrap();
        for matching in roles.iter().flatten() {
            shown += &show(matching, &matcher.context(Some(matching), &names, &[0, 1, 2, 3]));
        }
    }
    expected.assert_eq(&shown);
}

/// Version 2.0: `sys_*` and one exit for all; softirqs without prefix; wakeups without a thread; no
/// `bytes` and no process ids.
#[test]
fn lttng_kernel_of_2_0() {
    check(
        "domain = \"kernel\"; tracer_name = \"lttng-modules\"; tracer_major = 2; tracer_minor = 0;",
        "",
        "sched_switch: prev_comm$ prev_tid prev_prio prev_state next_comm$ next_tid next_prio
         sched_wakeup: comm$ tid prio success target_cpu
         sched_process_fork: parent_comm$ parent_tid child_comm$ child_tid
         sys_read: fd buf count
         sys_dup: fildes
         sys_pipe: fildes
         sys_unknown: id args[]
         compat_sys_openat: dfd filename$ flags mode
         exit_syscall: ret
         softirq_raise: vec
         block_rq_issue: dev sector nr_sector rwbs comm$
         block_rq_complete: dev sector nr_sector errors rwbs
         lttng_statedump_file_descriptor: pid fd filename$
         lttng_statedump_process_state: tid vtid pid vpid ppid vppid name$ type
         lttng_statedump_start:",
        expect![[r#"
            sched_switch
                thread_switch (lttng-kernel) prev_tid=prev_tid prev_state=prev_state next_tid=next_tid prev_comm=prev_comm next_comm=next_comm prev_prio=prev_prio next_prio=next_prio | cpu=packet.cpu_id
            sched_wakeup
                thread_wakeup (lttng-kernel) woken_tid=$payload.tid woken_comm=comm woken_prio=$payload.prio target_cpu=target_cpu | cpu=packet.cpu_id where !has(success) || success != 0
            sched_process_fork
                thread_fork (lttng-kernel) child_tid=child_tid child_pid? child_comm=child_comm parent_tid=parent_tid parent_pid? | cpu=packet.cpu_id
            sys_read
                syscall_entry (lttng-kernel) syscall:'read' fd=fd other_fd? count=count path? flags? family? command? | cpu=packet.cpu_id
            sys_dup
                syscall_entry (lttng-kernel) syscall:'dup' fd=fildes | cpu=packet.cpu_id
            sys_pipe
                syscall_entry (lttng-kernel) syscall:'pipe' fd? other_fd? count? path? flags? family? command? | cpu=packet.cpu_id
            sys_unknown
                syscall_entry (lttng-kernel) number=id | cpu=packet.cpu_id
            compat_sys_openat
                syscall_entry (lttng-kernel) syscall:'openat' fd? other_fd? count? path=filename flags=flags family? command? | cpu=packet.cpu_id
            exit_syscall
                syscall_exit (lttng-kernel) ret=ret | cpu=packet.cpu_id
            softirq_raise
                softirq_raise (lttng-kernel) vec=vec | cpu=packet.cpu_id
            block_rq_issue
                block_issue (lttng-kernel) dev=dev sector=sector sectors=nr_sector bytes? rwbs=rwbs block_tid? block_comm=comm | cpu=packet.cpu_id
            block_rq_complete
                block_complete (lttng-kernel) dev=dev sector=sector sectors=nr_sector bytes? rwbs=rwbs error=errors | cpu=packet.cpu_id
            lttng_statedump_file_descriptor
                file_state (lttng-kernel) file_pid=$payload.pid file_fd=fd file_path=filename file_table? | cpu=packet.cpu_id
            lttng_statedump_process_state
                thread_state (lttng-kernel) known_tid=$payload.tid known_pid=$payload.pid known_ppid=$payload.ppid known_comm=name known_cpu? known_file_table? | cpu=packet.cpu_id
            lttng_statedump_start: nothing
        "#]],
    );
}

/// From version 2.6 on: entries and exits by name; newer names; contexts; files by table.
#[test]
fn lttng_kernel_of_2_13() {
    check(
        "domain = \"kernel\"; tracer_name = \"lttng-modules\"; tracer_major = 2; tracer_minor = 13;",
        "tid pid procname$",
        "sched_wakeup: comm$ tid prio target_cpu
         sched_waking: comm$ tid prio target_cpu
         sched_process_exec: filename$ tid old_tid
         syscall_entry_sendfile64: out_fd in_fd offset count
         syscall_entry_splice: fd_in off_in fd_out off_out len flags
         syscall_entry_recvfrom: fd size flags addr_len
         syscall_exit_pipe2: ret fildes[]
         compat_syscall_exit_read: ret buf
         syscall_exit_unknown: id ret args[]
         irq_softirq_entry: vec
         irq_handler_entry: irq name$
         kmem_mm_page_alloc: page order
         net_if_receive_skb: skbaddr len name$
         lttng_statedump_process_state: tid pid ppid name$ cpu file_table_address
         lttng_statedump_file_descriptor: file_table_address fd flags fmode filename$",
        expect![[r#"
            sched_wakeup
                thread_wakeup (lttng-kernel) woken_tid=$payload.tid woken_comm=comm woken_prio=$payload.prio target_cpu=target_cpu | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            sched_waking
                thread_waking (lttng-kernel) woken_tid=$payload.tid woken_comm=comm woken_prio=$payload.prio target_cpu=target_cpu | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            sched_process_exec
                thread_exec (lttng-kernel) exec_tid=$payload.tid filename=filename | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            syscall_entry_sendfile64
                syscall_entry (lttng-kernel) syscall:'sendfile64' fd=in_fd other_fd=out_fd count=count path? flags? family? command? | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            syscall_entry_splice
                syscall_entry (lttng-kernel) syscall:'splice' fd=fd_in other_fd=fd_out count=len path? flags=flags family? command? | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            syscall_entry_recvfrom
                syscall_entry (lttng-kernel) syscall:'recvfrom' fd=fd other_fd? count=size path? flags=flags family? command? | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            syscall_exit_pipe2
                syscall_exit (lttng-kernel) syscall:'pipe2' ret=ret new_fd=fildes[0] new_other_fd=fildes[1] took_ns? | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            compat_syscall_exit_read
                syscall_exit (lttng-kernel) syscall:'read' ret=ret new_fd? new_other_fd? took_ns? | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            syscall_exit_unknown
                syscall_exit (lttng-kernel) number=id ret=ret took_ns? | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            irq_softirq_entry
                softirq_entry (lttng-kernel) vec=vec | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            irq_handler_entry
                irq_entry (lttng-kernel) irq=irq irq_name=name | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            kmem_mm_page_alloc
                page_alloc (lttng-kernel) order=order | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            net_if_receive_skb
                net_receive (lttng-kernel) interface=name length=len | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            lttng_statedump_process_state
                thread_state (lttng-kernel) known_tid=$payload.tid known_pid=$payload.pid known_ppid=$payload.ppid known_comm=name known_cpu=cpu known_file_table=file_table_address | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
            lttng_statedump_file_descriptor
                file_state (lttng-kernel) file_pid? file_fd=fd file_path=filename file_table=file_table_address | cpu=packet.cpu_id tid=$ctx.tid pid=$ctx.pid comm=$ctx.procname
        "#]],
    );
}

/// Functions begin and end, even if the trace names events like those of the kernel.
#[test]
fn lttng_ust() {
    check(
        "domain = \"ust\"; tracer_name = \"lttng-ust\"; vpid = 77; procname = \"app\";",
        "vtid",
        "lttng_ust_cyg_profile:func_entry: addr call_site
         lttng_ust_cyg_profile:func_exit: addr call_site
         lttng_ust_cyg_profile_fast:func_exit:
         sys_read: fd count
         my_app:request: id",
        expect![[r#"
            lttng_ust_cyg_profile:func_entry
                begin (lttng-ust) name=addr within=$ctx.vtid group:'function' | cpu=packet.cpu_id tid=$ctx.vtid pid=env.vpid comm=env.procname
            lttng_ust_cyg_profile:func_exit
                end (lttng-ust) name=addr within=$ctx.vtid group:'function' | cpu=packet.cpu_id tid=$ctx.vtid pid=env.vpid comm=env.procname
            lttng_ust_cyg_profile_fast:func_exit
                end (lttng-ust) name? within=$ctx.vtid group:'function' | cpu=packet.cpu_id tid=$ctx.vtid pid=env.vpid comm=env.procname
            sys_read: nothing
            my_app:request: nothing
        "#]],
    );
}

/// Traces that perf converts: the subsystem stands before the name, pids are threads, the CPU is in
/// the event.
#[test]
fn perf() {
    let common = "perf_tid perf_pid perf_cpu common_pid";
    check(
        "domain = \"kernel\"; tracer_name = \"perf\";",
        "",
        &format!(
            "sched:sched_switch: {common} prev_comm$ prev_pid prev_prio prev_state next_comm$ next_pid next_prio
             sched:sched_wakeup: {common} comm$ pid prio success target_cpu
             sched:sched_process_fork: {common} parent_comm$ parent_pid child_comm$ child_pid
             raw_syscalls:sys_enter: {common} id args[]
             raw_syscalls:sys_exit: {common} id ret
             syscalls:sys_enter_openat: {common} nr dfd filename flags
             syscalls:sys_exit_openat: {common} nr ret
             block:block_rq_issue: {common} dev sector nr_sector bytes rwbs$ comm$
             perf_comm: pid tid comm$"
        ),
        expect![[r#"
            sched:sched_switch
                thread_switch (tracepoints) prev_tid=prev_pid prev_state=prev_state next_tid=next_pid prev_comm=prev_comm next_comm=next_comm prev_prio=prev_prio next_prio=next_prio | cpu=perf_cpu tid=perf_tid pid=perf_pid
            sched:sched_wakeup
                thread_wakeup (tracepoints) woken_tid=pid woken_comm=comm woken_prio=prio target_cpu=target_cpu | cpu=perf_cpu tid=perf_tid pid=perf_pid where !has(success) || success != 0
            sched:sched_process_fork
                thread_fork (tracepoints) child_tid=child_pid child_comm=child_comm parent_tid=parent_pid | cpu=perf_cpu tid=perf_tid pid=perf_pid
            raw_syscalls:sys_enter
                syscall_entry (tracepoints) number=id | cpu=perf_cpu tid=perf_tid pid=perf_pid
            raw_syscalls:sys_exit
                syscall_exit (tracepoints) number=id ret=ret | cpu=perf_cpu tid=perf_tid pid=perf_pid
            syscalls:sys_enter_openat
                syscall_entry (tracepoints) syscall:'openat' number=nr fd? other_fd? count? path!=filename(an integer) flags=flags family? command? | cpu=perf_cpu tid=perf_tid pid=perf_pid
            syscalls:sys_exit_openat
                syscall_exit (tracepoints) syscall:'openat' number=nr ret=ret | cpu=perf_cpu tid=perf_tid pid=perf_pid
            block:block_rq_issue
                block_issue (tracepoints) dev=dev sector=sector sectors=nr_sector bytes=bytes rwbs=rwbs block_comm=comm | cpu=perf_cpu tid=perf_tid pid=perf_pid
            perf_comm
                thread_rename (tracepoints) changed_tid=tid new_comm=comm | cpu=packet.cpu_id
        "#]],
    );
}

/// ftrace's own names, from a converter that says nothing of itself.
#[test]
fn ftrace() {
    check(
        "",
        "",
        "sched_switch: common_pid prev_comm$ prev_pid prev_prio prev_state$ next_comm$ next_pid next_prio
         sys_enter: common_pid id args[]
         sys_enter_read: common_pid __syscall_nr fd buf count
         sys_exit_read: common_pid __syscall_nr ret
         irq_handler_entry: common_pid irq name$
         sched_waking: common_pid comm$ pid prio target_cpu",
        expect![[r#"
            sched_switch
                thread_switch (tracepoints) prev_tid=prev_pid prev_state!=prev_state(text) next_tid=next_pid prev_comm=prev_comm next_comm=next_comm prev_prio=prev_prio next_prio=next_prio | cpu=packet.cpu_id tid=common_pid
            sys_enter
                syscall_entry (tracepoints) number=id | cpu=packet.cpu_id tid=common_pid
            sys_enter_read
                syscall_entry (tracepoints) syscall:'read' number=_syscall_nr fd=fd other_fd? count=count path? flags? family? command? | cpu=packet.cpu_id tid=common_pid
            sys_exit_read
                syscall_exit (tracepoints) syscall:'read' number=_syscall_nr ret=ret | cpu=packet.cpu_id tid=common_pid
            irq_handler_entry
                irq_entry (lttng-kernel) irq=irq irq_name=name | cpu=packet.cpu_id tid=common_pid
            sched_waking
                thread_waking (tracepoints) woken_tid=pid woken_comm=comm woken_prio=prio target_cpu=target_cpu | cpu=packet.cpu_id tid=common_pid
        "#]],
    );
}

/// Calls of remote procedures, on both sides.
#[test]
fn genode() {
    check(
        "",
        "",
        "Rpc_call: name$\nRpc_returned: name$\nRpc_dispatch: name$\nRpc_reply: name$\nCheckpoint: name$",
        expect![[r#"
            Rpc_call
                begin (genode) key=name name=name within? group:'rpc call' | cpu=packet.cpu_id
                send (genode) key=name name=name group:'rpc call' | cpu=packet.cpu_id
            Rpc_returned
                end (genode) key=name name=name within? group:'rpc call' | cpu=packet.cpu_id
                receive (genode) key=name name=name group:'rpc reply' | cpu=packet.cpu_id
            Rpc_dispatch
                begin (genode) key=name name=name within? group:'rpc dispatch' | cpu=packet.cpu_id
                receive (genode) key=name name=name group:'rpc call' | cpu=packet.cpu_id
            Rpc_reply
                end (genode) key=name name=name within? group:'rpc dispatch' | cpu=packet.cpu_id
                send (genode) key=name name=name group:'rpc reply' | cpu=packet.cpu_id
            Checkpoint: nothing
        "#]],
    );
}

/// People's own mapping comes before those that are built in; sections with conditions are alternatives.
#[test]
fn own_mappings_come_first() {
    let own = RoleMapping::parse(
        r#"
        name = "mine"
        when = 'env.tracer_name == "mine"'
        [context]
        cpu = "core"
        [[thread_switch]]
        event = "sched_switch"
        prev_tid = "old"
        next_tid = ["new", "next_tid"]
        [[begin]]
        event = "phase"
        when = "kind == 1"
        key = "id"
        [[end]]
        event = "phase"
        when = "kind == 2"
        key = "id"
        [[begin]]
        event = "phase"
        when = "kind == 3"
        key = "core"
        [[irq_entry]]
        event = "irq*_begin"
        irq = { capture = 1 }
        irq_name = "id"
        "#,
    );
    let mut mappings = vec![own.unwrap()];
    mappings.extend_from_slice(RoleMapping::built_in());
    let events = "sched_switch: core old new\nphase: kind id core\nirq17_begin: id\nphase_two: kind";
    check_with(
        &mappings,
        "tracer_name = \"mine\";",
        "",
        events,
        expect![[r#"
        sched_switch
            thread_switch (mine) prev_tid=old next_tid=new | cpu=core
        phase
            begin (mine) key=id | cpu=core where kind == 1
            begin (mine) key=core | cpu=core where kind == 3
            end (mine) key=id | cpu=core where kind == 2
        irq17_begin
            irq_entry (mine) irq:17 irq_name!=id(an integer) | cpu=packet.cpu_id
        phase_two: nothing
    "#]],
    );
    check_with(
        &mappings,
        "tracer_name = \"other\";",
        "",
        events,
        expect![[r#"
        sched_switch: nothing
        phase: nothing
        irq17_begin: nothing
        phase_two: nothing
    "#]],
    );
}

fn check_guesses(contexts: &str, events: &str, expected: Expect) {
    let decoder = decoder(&metadata("", contexts, events));
    let stream = StreamClass { decoder: &decoder, stream_class: 0, facts: facts(), selection: None };
    let mut shown = String::new();
    for guess in guess::guesses(&[stream], RoleMapping::built_in()) {
        let role = guess.section.role.facts();
        let events: Vec<String> = guess.section.events.iter().map(ToString::to_string).collect();
        write!(shown, "{:.2} {} {}", guess.confidence, role.name, events.join(" ")).unwrap();
        for (field, said) in role.fields.iter().zip(&guess.section.fields) {
            said.iter().for_each(|source| write!(shown, " {}={source}", field.name).unwrap());
        }
        writeln!(shown, "\n     {}", guess.reason).unwrap();
    }
    expected.assert_eq(&shown);
}

/// Pairs by names, with the best key that both have; pairs of a mapping are not guessed.
#[test]
fn pairs_are_guessed() {
    check_guesses(
        "",
        "lib.eal.service.run.begin: id lcore_id
         lib.eal.service.run.end: id lcore_id
         Event_IoOperationBegin: locationID handle mode matchingId bytes
         Event_IoOperationComplete: locationID handle bytes matchingId
         ust_libc:malloc: size ptr
         ust_libc:calloc: nmemb size ptr
         ust_libc:free: ptr
         app:request_sent: a
         app:open: mode
         app:close: rc
         irq_handler_entry: irq name$
         irq_handler_exit: irq ret
         begin:
         my_start: what$ seq_length
         my_end: seq_length",
        expect![[r#"
            0.95 begin lib.eal.service.run.begin key="id" name={ value = "lib.eal.service.run" } within="lcore_id" group={ value = "lib.eal.service.run.end" }
                 ended by `lib.eal.service.run.end` by their names; both have `id`
            0.95 end lib.eal.service.run.end key="id" name={ value = "lib.eal.service.run" } within="lcore_id" group={ value = "lib.eal.service.run.end" }
                 begun by `lib.eal.service.run.begin` by their names; both have `id`
            0.45 begin my_start name="what" within="packet.cpu_id" group={ value = "my_end" }
                 ended by `my_end` by their names; each end ends the last begin of the CPU
            0.45 end my_end name={ value = "my" } within="packet.cpu_id" group={ value = "my_end" }
                 begun by `my_start` by their names; each end ends the last begin of the CPU
            0.85 begin Event_IoOperationBegin key="matchingId" name={ value = "Event_IoOperation" } within="handle" group={ value = "Event_IoOperationComplete" }
                 ended by `Event_IoOperationComplete` by their names; both have `matchingId`
            0.85 end Event_IoOperationComplete key="matchingId" name={ value = "Event_IoOperation" } within="handle" group={ value = "Event_IoOperationComplete" }
                 begun by `Event_IoOperationBegin` by their names; both have `matchingId`
            0.85 begin ust_libc:malloc key="ptr" name={ value = "ust_libc" } group={ value = "ust_libc:free" }
                 ended by `ust_libc:free` by their names; both have `ptr`
            0.85 end ust_libc:free key="ptr" name={ value = "ust_libc" } group={ value = "ust_libc:free" }
                 begun by `ust_libc:malloc` by their names; both have `ptr`
            0.85 begin ust_libc:calloc key="ptr" name={ value = "ust_libc" } group={ value = "ust_libc:free" }
                 ended by `ust_libc:free` by their names; both have `ptr`
            0.25 begin app:open name={ value = "app" } within="packet.cpu_id" group={ value = "app:close" }
                 ended by `app:close` by their names; nothing tells which object it is; each end ends the last begin of the CPU
            0.25 end app:close name={ value = "app" } within="packet.cpu_id" group={ value = "app:close" }
                 begun by `app:open` by their names; nothing tells which object it is; each end ends the last begin of the CPU
        "#]],
    );
    check_guesses(
        "vtid",
        "ros:callback_start: cb\nros:callback_end: cb\nphase_begin: what$\nphase_end:",
        expect![[r#"
        0.80 begin phase_begin name="what" within="$ctx.vtid" group={ value = "phase_end" }
             ended by `phase_end` by their names; each end ends the last begin of the thread
        0.80 end phase_end name={ value = "phase" } within="$ctx.vtid" group={ value = "phase_end" }
             begun by `phase_begin` by their names; each end ends the last begin of the thread
        0.75 begin ros:callback_start key="cb" name={ value = "ros:callback" } group={ value = "ros:callback_end" }
             ended by `ros:callback_end` by their names; both have `cb`, though it does not look like a key
        0.75 end ros:callback_end key="cb" name={ value = "ros:callback" } group={ value = "ros:callback_end" }
             begun by `ros:callback_start` by their names; both have `cb`, though it does not look like a key
    "#]],
    );
}

/// Blocks of memory of one size are not the same block, and any thread may free one: such a guess is not used.
#[test]
fn a_measure_is_no_key() {
    check_guesses(
        "vtid",
        "redis:alloc: size\nredis:free: size\nq:lock:\nq:unlock:\nb:alloc: size ptr\nb:free: ptr size",
        expect![[r#"
            0.40 begin redis:alloc name={ value = "redis" } within="$ctx.vtid" group={ value = "redis:free" }
                 ended by `redis:free` by their names; nothing tells which object it is; each end ends the last begin of the thread
            0.40 end redis:free name={ value = "redis" } within="$ctx.vtid" group={ value = "redis:free" }
                 begun by `redis:alloc` by their names; nothing tells which object it is; each end ends the last begin of the thread
            0.85 begin b:alloc key="ptr" name={ value = "b" } group={ value = "b:free" }
                 ended by `b:free` by their names; both have `ptr`
            0.85 end b:free key="ptr" name={ value = "b" } group={ value = "b:free" }
                 begun by `b:alloc` by their names; both have `ptr`
            0.35 begin q:lock name={ value = "q" } within="$ctx.vtid" group={ value = "q:unlock" }
                 ended by `q:unlock` by their names; nothing tells which object it is; each end ends the last begin of the thread
            0.35 end q:unlock name={ value = "q" } within="$ctx.vtid" group={ value = "q:unlock" }
                 begun by `q:lock` by their names; nothing tells which object it is; each end ends the last begin of the thread
        "#]],
    );
}

/// One thread follows another: only shown.
#[test]
fn switches_are_guessed() {
    check_guesses(
        "",
        "context_switch: old_task new_task
         moved: from to
         resized: old_size new_size
         rtos_sched: prev_thread_id next_thread_id prev_prio",
        expect![[r#"
            0.80 thread_switch context_switch prev_tid="old_task" next_tid="new_task"
                 `old_task` and `new_task` look like threads of which one follows the other
            0.40 thread_switch moved prev_tid="from" next_tid="to"
                 `from` and `to` look like threads of which one follows the other
            0.80 thread_switch rtos_sched prev_tid="prev_thread_id" next_tid="next_thread_id"
                 `prev_thread_id` and `next_thread_id` look like threads of which one follows the other
        "#]],
    );
}

/// Names that differ in any way end nothing, and nothing ends itself.
#[test]
fn odd_names_are_no_pairs() {
    check_guesses(
        "",
        "begin_end: id\nbegin_begin: id\nend: id\nbegin_start: id\n::: x",
        expect![[r#"
        0.95 begin begin_begin key="id" name={ value = "begin" } group={ value = "begin_end" }
             ended by `begin_end` by their names; both have `id`
        0.95 end begin_end key="id" name={ value = "begin" } group={ value = "begin_end" }
             begun by `begin_begin` by their names; both have `id`
        0.90 begin begin_start key="id" name={ value = "begin" } group={ value = "begin_end" }
             ended by `begin_end` by their names; both have `id`
    "#]],
    );
}
