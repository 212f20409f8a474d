//! Programs of the kernel count the calls of this thread.

use super::*;
use crate::helper::{Helper, help, listen};
use crate::probes::ProbeRights;

fn path(text: &str) -> WatchPath {
    let steps = text.split('.').map(|name| WatchStep::Name(name.to_owned())).collect();
    WatchPath { is_global: false, steps }
}

fn event(name: &str) -> WatchedEvent {
    WatchedEvent {
        system: String::new(),
        name: name.to_owned(),
        condition: None,
        keys: Vec::new(),
        sums: Vec::new(),
        histogram: None,
        since: None,
    }
}

/// Only calls of this thread.
fn own() -> Option<WatchCondition> {
    let number = rustix::thread::gettid().as_raw_nonzero().get().into();
    let tree = ConditionTree::Compare(
        kymo_ir::predicate::Relation::Equal.into(),
        ConditionNumber::Input(0),
        ConditionNumber::Integer(AnyInteger(number)),
    );
    Some(WatchCondition { inputs: vec![path("tid")], tree })
}

/// `None`: nothing can be counted here, which is told.
fn begin(events: Vec<WatchedEvent>, begins: Vec<WatchedBegin>, rows: u32) -> Option<KernelCounts> {
    match KernelCounts::begin(&WatchRequest { events, begins, rows, may_be_fewer: false }, None) {
        Ok(counting) => Some(counting),
        Err(why) if why.contains("Operation not permitted") || why.contains("btf") => {
            println!("NO BPF HERE: not run ({why})");
            None
        }
        Err(why) => panic!("{why}"),
    }
}

fn ask(times: u64) {
    (0..times).for_each(|_| _ = rustix::process::getppid());
}

fn counts(counting: &KernelCounts) -> WatchCounts {
    counting.counts().expect("they can be read")
}

/// A condition goes through the message, too.
fn own_call() -> WatchedEvent {
    WatchedEvent { condition: own(), ..event("sys_enter") }
}

#[test]
fn calls_of_a_thread_are_counted() {
    let calls = WatchedEvent { condition: own(), keys: vec![path("id")], ..event("sys_enter") };
    let Some(counting) = begin(vec![calls], Vec::new(), 100) else { return };
    ask(1234);
    let counts = counts(&counting);
    let row = counts.rows.iter().find(|row| row.keys == [WatchValue::Number(libc::SYS_getppid)]);
    assert_eq!(row.map(|row| row.count), Some(1234), "{counts:?}");
    assert_eq!((counts.unplaced, counts.missed), (0, 0));
}

#[test]
fn durations_are_in_a_histogram() {
    let keys = || vec![path("tid")];
    let ends = WatchedEvent {
        condition: own(),
        keys: vec![path("id")],
        sums: vec![path("took")],
        histogram: Some(path("took")),
        since: Some(keys()),
        ..event("sys_exit")
    };
    let begins = WatchedBegin { name: "sys_enter".to_owned(), keys: keys() };
    let Some(counting) = begin(vec![ends], vec![begins], 10_000) else { return };
    let begun = std::time::Instant::now();
    (0..20).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(2)));
    let slept = begun.elapsed().as_nanos() as u64;
    let counts = counts(&counting);
    let rows: Vec<&WatchRow> =
        counts.rows.iter().filter(|row| row.keys == [WatchValue::Number(libc::SYS_clock_nanosleep)]).collect();
    assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 20, "{counts:?}");
    let sum = rows.iter().map(|row| row.sums[0].0).sum::<i128>() as u64;
    assert!((40_000_000..=slept).contains(&sum), "{sum} of {slept}");
    for row in rows {
        let mean = (row.sums[0].0 / i128::from(row.count)) as u64;
        assert_eq!(row.bucket, Some(bucket_of(mean)), "a bucket has its numbers");
        assert!(mean >= 2_000_000, "{row:?}");
    }
}

/// A begin is known wherever its thread has gone until the end: this call moves its caller to another CPU.
#[test]
fn durations_of_threads_that_move_are_known() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let all = sched_getaffinity(None).expect("it is known");
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).take(2).collect();
    let [first, second] = cpus[..] else { return println!("ONE CPU HERE: not run") };
    let keys = || vec![path("tid")];
    let ends = WatchedEvent {
        condition: own(),
        keys: vec![path("id"), path("cpu_id")],
        sums: vec![path("took")],
        since: Some(keys()),
        ..event("sys_exit")
    };
    let begins = WatchedBegin { name: "sys_enter".to_owned(), keys: keys() };
    let Some(counting) = begin(vec![ends], vec![begins], 10_000) else { return };
    for number in 0..101 {
        let mut one = CpuSet::new();
        one.set(if number % 2 == 0 { first } else { second });
        sched_setaffinity(None, &one).expect("they are ours");
    }
    let counts = counts(&counting);
    sched_setaffinity(None, &all).expect("they are ours");
    let of = |cpu: usize| {
        let keys = [libc::SYS_sched_setaffinity, cpu as i64].map(WatchValue::Number);
        counts.rows.iter().find(|row| row.keys == keys)
    };
    let [first, second] = [of(first), of(second)].map(|row| row.map(|row| (row.count, row.sums[0].0 > 0)));
    assert_eq!((first, second), (Some((51, true)), Some((50, true))), "{counts:?}");
    assert_eq!((counts.unplaced, counts.missed), (0, 0));
}

/// Threads remember their own begins, in any number, and other keys are remembered apart.
#[test]
fn begins_are_those_of_a_thread_or_of_a_key() {
    for others in [&[][..], &["pid"]] {
        let keys = || ["tid"].iter().chain(others).map(|key| path(key)).collect::<Vec<_>>();
        let own_process = ConditionTree::Compare(
            kymo_ir::predicate::Relation::Equal.into(),
            ConditionNumber::Input(0),
            ConditionNumber::Integer(AnyInteger(std::process::id().into())),
        );
        let ends = WatchedEvent {
            condition: Some(WatchCondition { inputs: vec![path("pid")], tree: own_process }),
            keys: vec![path("tid"), path("id")],
            histogram: Some(path("took")),
            since: Some(keys()),
            ..event("sys_exit")
        };
        let begins = WatchedBegin { name: "sys_enter".to_owned(), keys: keys() };
        let Some(counting) = begin(vec![ends], vec![begins], 50_000) else { return };
        let tid = || rustix::thread::gettid().as_raw_nonzero().get();
        let of_threads: Vec<i32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=40).map(|number| scope.spawn(move || (ask(number), tid()).1)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
        });
        let counts = counts(&counting);
        let of = |tid: i32| {
            let keys = [i64::from(tid), libc::SYS_getppid].map(WatchValue::Number);
            counts.rows.iter().filter(|row| row.keys == keys).map(|row| row.count).sum::<u64>()
        };
        let mut all: Vec<i32> = of_threads.clone();
        all.sort_unstable();
        all.dedup();
        // A thread may have the number of one that has ended.
        if all.len() == of_threads.len() {
            assert!((1..).zip(&of_threads).all(|(number, tid)| of(*tid) == number), "{others:?}: {counts:?}");
        }
        assert_eq!(all.iter().map(|tid| of(*tid)).sum::<u64>(), 40 * 41 / 2, "{others:?}");
    }
}

/// The kernel puts numbers where [`bucket_of`] does, for all lengths of numbers, and negative ones apart.
#[test]
fn buckets_are_those_of_the_kernel() {
    // A call that does not exist, with a number as its first argument: the kernel asks for nothing.
    let nothing = 0x7fff_fff0_i64;
    let condition = own().map(|mut condition| {
        let is_it = ConditionTree::Compare(
            kymo_ir::predicate::Relation::Equal.into(),
            ConditionNumber::Input(1),
            ConditionNumber::Integer(AnyInteger(nothing.into())),
        );
        condition.inputs.push(path("id"));
        condition.tree = ConditionTree::All(vec![condition.tree, is_it]);
        condition
    });
    let steps = vec![WatchStep::Name("args".to_owned()), WatchStep::Index(0)];
    let first = WatchPath { is_global: false, steps };
    let calls = WatchedEvent { condition, keys: vec![first.clone()], histogram: Some(first), ..event("sys_enter") };
    let Some(counting) = begin(vec![calls], Vec::new(), 10_000) else { return };
    let mut numbers: Vec<u64> =
        (0..64).flat_map(|bit| [1_u64 << bit, (1_u64 << bit) - 1, (1 << bit) + (1 << bit) / 3]).collect();
    numbers.push(u64::MAX);
    numbers.sort_unstable();
    numbers.dedup();
    numbers.iter().for_each(|number| call(nothing, *number));
    let counts = counts(&counting);
    assert_eq!(counts.rows.len(), numbers.len());
    for row in &counts.rows {
        let [WatchValue::Number(number)] = row.keys[..] else { panic!("{row:?}") };
        assert_eq!((row.bucket, row.count), (Some(bucket_of(number as u64)), 1), "{number}");
    }
}

#[allow(unsafe_code)]
fn call(number: i64, argument: u64) {
    // SAFETY: there is no such call, so that the kernel looks at no argument.
    let answer = unsafe { libc::syscall(number, argument) };
    assert_eq!(answer, -1);
}

/// A call of the 32-bit table has the number of another one in the other: `writev` where `getpid` happened.
#[cfg(target_arch = "x86_64")]
#[test]
#[allow(unsafe_code)]
fn calls_of_32_bit_programs_are_told_apart() {
    const GETPID: i64 = 20;
    let calls = WatchedEvent { condition: own(), keys: vec![path("name")], ..event("sys_enter") };
    let Some(counting) = begin(vec![calls], Vec::new(), 100) else { return };
    for _ in 0..7 {
        let mut number = GETPID;
        // SAFETY: the call takes nothing and changes nothing but the register of its number.
        unsafe {
            std::arch::asm!("int 0x80", inout("rax") number, out("r8") _, out("r9") _, out("r10") _, out("r11") _)
        };
        if number != i64::from(std::process::id()) {
            return println!("NO 32-BIT CALLS HERE: not run ({number})");
        }
    }
    let counts = counts(&counting);
    let of = |number| counts.rows.iter().find(|row| row.keys == [WatchValue::Number(number)]).map(|row| row.count);
    assert_eq!((of(GETPID | COMPAT_CALL), of(GETPID)), (Some(7), None), "{counts:?}");
}

/// Where there is no room for a key, its events are counted as such.
#[test]
fn a_full_map_is_told() {
    let calls = WatchedEvent { condition: own(), keys: vec![path("id")], ..event("sys_enter") };
    let Some(counting) = begin(vec![calls], Vec::new(), 1) else { return };
    ask(100);
    let _ = std::fs::metadata("/");
    ask(100);
    let counts = counts(&counting);
    let counted: u64 = counts.rows.iter().map(|row| row.count).sum();
    assert!(counts.unplaced >= 1 && counted + counts.unplaced >= 201, "{counts:?}");
}

/// Fields that tracefs derives from the arguments lead to the same here; and the kernel takes each of them.
#[test]
fn all_fields_of_the_table_are_read() {
    let events = match WatchableEvents::of_this_kernel() {
        Ok(events) => events,
        Err(why) => return println!("NO BTF HERE: not run ({why})"),
    };
    let mut taken = 0;
    for name in events.names() {
        let fields = known::fields_of(name);
        for some in fields.chunks(2) {
            let keys = some.iter().filter(|field| !field.name.contains('[')).map(|field| path(field.name)).collect();
            let watched = WatchedEvent { keys, ..event(name) };
            if begin(vec![watched], Vec::new(), 100).is_none() {
                return;
            }
            taken += some.len();
        }
    }
    assert!(taken > 80, "{taken}");
}

/// A user's helper counts only for the command that wanted that, and as long as the connection is there.
#[test]
fn a_helper_counts() {
    let user = rustix::process::getuid().as_raw();
    for watch in [false, true] {
        let name = format!("kymo-watch-test-{}-{watch}", std::process::id());
        let listener = listen(&name).expect("the name is free");
        let helper = std::thread::spawn(move || {
            help(&listener, user, ProbeRights { watch, ..ProbeRights::default() });
        });
        let mut asked = Helper::connect(&name).expect("it is there");
        let request = WatchRequest {
            events: vec![event("sched_switch"), own_call()],
            begins: Vec::new(),
            rows: 10,
            may_be_fewer: false,
        };
        match asked.watch(&request) {
            Err(problem) if !watch => {
                assert_eq!(problem.to_string(), "the command that started the helper counts no events");
                asked.end().expect("it ends");
            }
            Err(problem) => {
                assert!(problem.to_string().contains("not permitted"), "{problem}");
                return println!("NO BPF HERE: not run ({problem})");
            }
            Ok(()) => {
                assert!(watch, "it may not");
                std::thread::sleep(std::time::Duration::from_millis(20));
                let counts = asked.counts().expect("it counts");
                assert!(counts.rows[0].count > 1, "{counts:?}");
                asked.measure(true).expect("it may");
                std::thread::sleep(std::time::Duration::from_millis(20));
                asked.measure(false).expect("it may");
                let why = "the command that started the helper records nothing";
                assert_eq!(asked.state().expect_err("it only counts").to_string(), why);
                let request = crate::helper::KernelRequest {
                    events: vec!["sched:sched_switch".to_owned()],
                    clock: crate::helper::KernelClock::Monotonic,
                    ring_bytes: 1 << 16,
                    processes: None,
                    probes: Vec::new(),
                    texts: false,
                    stacks: None,
                    filters: Vec::new(),
                    rules: Vec::new(),
                    watches: Vec::new(),
                };
                assert_eq!(asked.begin(&request).expect_err("it only counts").to_string(), why);
                assert_eq!(asked.hurry(1).expect_err("it only counts").to_string(), why);
                let counts = asked.counts().expect("it counts");
                assert!(counts.cost.runs > 0 && counts.cost.run_ns > 0, "{counts:?}");
                drop(asked);
            }
        }
        helper.join().expect("it ends by itself");
    }
}

/// The kernel looks at as many bytes of a key as its map has: all begins and ends have the same.
#[test]
fn keys_of_begins_and_ends_are_of_one_size() {
    let question = |ends: &[&str], begins: &[&[&str]]| {
        let paths = |names: &[&str]| names.iter().map(|name| path(name)).collect::<Vec<_>>();
        let events = vec![WatchedEvent { since: Some(paths(ends)), ..event("sched_switch") }];
        let begin = |keys: &&[&str]| WatchedBegin { name: "sched_waking".to_owned(), keys: paths(keys) };
        let begins = begins.iter().map(begin).collect();
        KernelCounts::begin(&WatchRequest { events, begins, rows: 10, may_be_fewer: false }, None).map(|_| ())
    };
    if let Err(why) = question(&["next_tid"], &[&["tid"]]) {
        assert!(why.contains("not permitted") || why.contains("btf"), "{why}");
        return println!("NO BPF HERE: not run ({why})");
    }
    assert_eq!(question(&["next_comm"], &[&["comm"]]), Ok(()));
    for (ends, begins) in [
        (&["next_comm"][..], &[&["tid"][..]][..]),
        (&["next_tid"], &[&["tid"], &["comm"]]),
        (&["next_tid"], &[&["tid", "prio"]]),
        (&[], &[&[]]),
        (&["next_tid"], &[]),
        (&["next_tid"; 9], &[&["tid"; 9]]),
    ] {
        let why = question(ends, begins).expect_err("keys differ");
        assert!(!why.contains("verifier") && why.contains(" in common") || why.contains("need others"), "{why}");
    }
}

/// More rows than a message has come in several, and sums of large numbers are those of all CPUs.
#[test]
fn many_rows_come_in_parts() {
    let user = rustix::process::getuid().as_raw();
    let name = format!("kymo-watch-test-{}-parts", std::process::id());
    let listener = listen(&name).expect("the name is free");
    let rights = ProbeRights { watch: true, ..ProbeRights::default() };
    let helper = std::thread::spawn(move || help(&listener, user, rights));
    let mut asked = Helper::connect(&name).expect("it is there");
    let steps = vec![WatchStep::Name("args".to_owned()), WatchStep::Index(0)];
    let first = WatchPath { is_global: false, steps };
    let calls = WatchedEvent {
        condition: own(),
        keys: vec![path("id"), first.clone()],
        sums: vec![first],
        ..event("sys_enter")
    };
    let request = WatchRequest { events: vec![calls], begins: Vec::new(), rows: 50_000, may_be_fewer: false };
    match asked.watch(&request) {
        Ok(()) => {
            let nothing = 0x7fff_fff0_i64;
            (0..40_000).for_each(|number| call(nothing, u64::MAX - number));
            let counts = asked.counts().expect("it counts");
            let rows = counts.rows.iter().filter(|row| row.keys[0] == WatchValue::Number(nothing));
            let sums: std::collections::BTreeSet<i128> = rows.map(|row| row.sums[0].0).collect();
            assert_eq!(sums, (0..40_000).map(|number| i128::from(u64::MAX) - number).collect(), "unsigned, and all");
        }
        Err(problem) => {
            assert!(problem.to_string().contains("not permitted"), "{problem}");
            println!("NO BPF HERE: not run ({problem})");
        }
    }
    drop(asked);
    helper.join().expect("it ends by itself");
}
