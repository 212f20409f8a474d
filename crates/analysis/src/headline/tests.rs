//! Headlines: which row is the greatest, and the sentences of each analysis about small traces.

use super::*;
use crate::answer::{CellClass, Column};
use crate::block::BlockAnalysis;
use crate::count::CountAnalysis;
use crate::cpu::Cpu;
use crate::declared::AnalysisDeclaration;
use crate::gaps::Gaps;
use crate::io::Io;
use crate::irq::Irq;
use crate::memory::MemoryAnalysis;
use crate::pairs::{PairsAnalysis, PairsOptions};
use crate::rates::Rates;
use crate::sched::Sched;
use crate::states::InstantStates;
use crate::syscalls::Syscalls;
use crate::testing::Script;
use crate::whose::WhoseAnalysis;
use crate::{Analysis, AnalysisEntry, Setup, Wishes, find_analysis};

/// A headline with cells as tests write them: `value`, `low..high`, `low..`.
fn words(headline: &Headline) -> String {
    fn number<T: Copy + PartialEq + ToString>(number: &Bounded<T>, endless: T) -> String {
        let Bounded { value, low, high } = *number;
        if number.is_exact() {
            value.to_string()
        } else if high == endless {
            format!("{}..", low.to_string())
        } else {
            format!("{}..{}", low.to_string(), high.to_string())
        }
    }
    let cell = |cell: &Cell| match cell {
        Cell::Count(count) | Cell::Duration(count) | Cell::Size(count) => number(count, u64::MAX),
        Cell::Ratio(ratio) => number(ratio, f64::INFINITY),
        Cell::Integer(number) | Cell::Timestamp(number) => number.to_string(),
        Cell::Cpu(cpu) => cpu.to_string(),
        Cell::Text(text) | Cell::Syscall(text) | Cell::Path(text) | Cell::Disk(text) => text.clone(),
        Cell::Irq { number, .. } => format!("irq {number}"),
        Cell::Process { name, tid, pid } => {
            format!("{} ({})", name.as_deref().unwrap_or("?"), tid.or(*pid).unwrap_or(-1))
        }
        other => format!("{other:?}"),
    };
    let part = |part: &HeadlinePart| match part {
        HeadlinePart::Text(text) => text.clone(),
        HeadlinePart::Cell(shown, _) => cell(shown),
        HeadlinePart::Counted(shown, noun) => match &*cell(shown) {
            "1" => format!("1 {noun}"),
            several => format!("{several} {noun}s"),
        },
    };
    headline.parts.iter().map(part).collect()
}

fn answer(runs: &[(u64, u64, u64)], omitted: u64) -> Answer {
    let columns =
        vec![Column::new("thread", "Thread", CellClass::Text), Column::new("time", "Time", CellClass::Duration)];
    let mut table = Table { omitted, ..Table::new("threads", "Threads", columns) };
    for (number, &(low, value, high)) in runs.iter().enumerate() {
        table.rows.push(vec![Cell::Text(format!("t{number}")), Cell::Duration(Bounded { value, low, high })]);
    }
    Answer { tables: vec![table] }
}

fn said_of(row: Option<HeadlineRow<'_>>, sentence: &str) -> String {
    let mut headline = Headline::default();
    if let Some(row) = row {
        headline.say(&row, sentence);
    }
    words(&headline)
}

fn most(answer: &Answer, is_lossy: bool, sentence: &str) -> String {
    said_of(HeadlineTables::new(answer, is_lossy).most("threads", "time"), sentence)
}

const MOST: &str = "{thread} took most: {time}";

#[test]
fn a_row_is_the_greatest_only_if_no_other_can_be() {
    let in_doubt = "t0 took most: 6..9, as far as the trace shows.";
    assert_eq!(most(&answer(&[(6, 7, 9), (1, 2, 5)], 0), false, MOST), "t0 took most: 6..9.");
    assert_eq!(most(&answer(&[(6, 7, 9), (1, 2, 6)], 0), false, MOST), in_doubt);
    assert_eq!(most(&answer(&[(6, 7, 9), (1, 2, u64::MAX)], 0), false, MOST), in_doubt);
    assert_eq!(most(&answer(&[(7, 7, 7)], 3), false, MOST), "t0 took most: 7.");
    // The bounds of rows that are left out are unknown.
    assert_eq!(most(&answer(&[(6, 7, 9)], 3), false, MOST), in_doubt);
    assert_eq!(most(&answer(&[(0, 0, 0), (0, 0, 9)], 0), false, MOST), "", "none took any");
}

/// Where events were lost, rows may have more than they show, and others may be missing.
#[test]
fn losses_may_change_which_row_is_the_greatest() {
    let in_doubt = "t0 took most: 7, as far as the trace shows.";
    assert_eq!(most(&answer(&[(7, 7, 7)], 0), true, MOST), in_doubt);
    assert_eq!(most(&answer(&[(7, 7, 7), (1, 1, 1)], 0), true, MOST), in_doubt);
    let of_cpus = |runs: &[(u64, u64, u64)], omitted| {
        let answer = answer(runs, omitted);
        said_of(HeadlineTables::new(&answer, true).greatest_by_bounds(&["threads"], &["time"]), MOST)
    };
    assert_eq!(of_cpus(&[(6, 7, 9), (1, 2, 5)], 0), "t0 took most: 6..9.");
    assert_eq!(of_cpus(&[(6, 7, 9), (1, 2, 6)], 0), "t0 took most: 6..9, as far as the trace shows.");
}

#[test]
fn rows_that_are_as_great_are_mentioned() {
    let exact = |values: &[u64]| answer(&values.iter().map(|&value| (value, value, value)).collect::<Vec<_>>(), 0);
    assert_eq!(most(&exact(&[5, 9, 9]), false, MOST), "t1 took most: 9; another is equal.");
    assert_eq!(most(&exact(&[9, 9, 5, 9]), false, MOST), "t0 took most: 9; others are equal.");
    assert_eq!(most(&exact(&[9, 9]), true, MOST), "t0 took most: 9; another is equal, as far as the trace shows.");
    // Equal only by chance.
    assert_eq!(
        most(&answer(&[(5, 7, 9), (5, 7, 9)], 0), false, MOST),
        "t0 took most: 5..9, as far as the trace shows."
    );
}

#[test]
fn what_was_seen_is_a_lower_bound_where_events_were_lost() {
    let one = answer(&[(7, 7, 7)], 0);
    assert_eq!(most(&one, true, "the longest took {time+}"), "the longest took 7.., as far as the trace shows.");
    assert_eq!(most(&one, false, "the longest took {time+}"), "the longest took 7.");
    assert_eq!(most(&answer(&[], 0), false, "the longest took {time+}"), "");
    assert_eq!(most(&answer(&[(6, 7, 9)], 0), false, "it took at most {time-}"), "it took at most 9.");
}

#[test]
fn a_table_in_another_order_must_be_whole() {
    let (whole, cut) = (answer(&[(1, 1, 1), (2, 2, 2)], 0), answer(&[(1, 1, 1), (2, 2, 2)], 1));
    let most = |answer: &Answer| HeadlineTables::new(answer, false).most_of_all("threads", "time").is_some();
    assert!(most(&whole) && !most(&cut));
}

/// The headline of an analysis of a scripted trace; fewer rows do not change it, except that others are as great.
fn said<A: Analysis>(name: &str, script: &str, make: impl Fn(&Setup<'_>) -> A) -> String {
    let script = Script::parse(script);
    let of = |top: Option<usize>| {
        let wishes = Wishes { bins: 2, top, ..Wishes::default() };
        let setup = script.setup(&wishes);
        let is_lossy = setup.lanes.iter().any(|lane| !lane.holes.is_empty());
        let analysis = make(&setup);
        let answer = analysis.finish(&script.state(&analysis)).expect("it fits into memory");
        let entry = find_analysis(name).expect("it is registered");
        (words(&entry.headline(&answer, is_lossy)), is_lossy)
    };
    let (whole, is_lossy) = of(None);
    if !is_lossy {
        assert_eq!(of(Some(2)).0, whole, "of {name}");
    }
    whole
}

const EMPTY: &str = "lane cpu=0 span=0..1000";

const SWITCHES: &str = "
    lane cpu=0 span=0..1000
    lane cpu=1 span=0..1000
    100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a next_prio=20
    150 1 thread_switch prev_tid=0 next_tid=9 next_comm=c
    160 1 thread_switch prev_tid=9 prev_comm=c prev_state=1 next_tid=0
    200 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=8 next_comm=b next_prio=20
    300 0 thread_waking woken_tid=7 target_cpu=0
    310 1 thread_wakeup woken_tid=7 target_cpu=0
    350 1 thread_switch prev_tid=0 next_tid=7 next_comm=a next_prio=19
    400 1 thread_switch prev_tid=7 prev_comm=a prev_state=0 next_tid=0";

#[test]
fn of_cpu() {
    let cpu = |script: &str| said("cpu", script, Cpu::new);
    assert_eq!(cpu(SWITCHES), "CPU 0 was busiest: 0.9 of the time. Thread b (8) ran longest: 800, 0.8 of the time.");
    assert_eq!(cpu(EMPTY), "CPU 0 was busy 0..1 of the time.");
    let idle = "lane cpu=0 span=0..1000
        100 0 thread_switch prev_tid=0 next_tid=0";
    assert_eq!(cpu(idle), "No CPU ran a thread.");
    let alike = "lane cpu=0 span=0..1000
        lane cpu=1 span=0..1000
        100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
        100 1 thread_switch prev_tid=0 next_tid=8 next_comm=b";
    assert_eq!(
        cpu(alike),
        "CPU 0 was busiest: 0.9 of the time; another is equal. Thread a (7) ran longest: 900, 0.9 of the time; another is \
         equal."
    );
    let lossy = "lane cpu=0 span=0..1000 hole=150..250 lost=3
        100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
        200 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
        500 0 thread_switch prev_tid=0 next_tid=8 next_comm=b
        600 0 thread_switch prev_tid=8 prev_comm=b prev_state=1 next_tid=0";
    assert_eq!(
        cpu(lossy),
        "CPU 0 was busy 0.15..0.25 of the time. Thread a (7) ran longest: 50..150, 0.05..0.15 of the time, as far as the \
         trace shows."
    );
}

/// Two machines have a CPU and a thread of the same number.
#[test]
fn of_several_machines() {
    let cpu = |script: &str| said("cpu", script, Cpu::new);
    let two = "lane cpu=0 span=0..1000
        lane cpu=0 host=1 span=0..1000
        100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
        300 1 thread_switch prev_tid=0 next_tid=7 next_comm=a";
    assert_eq!(
        cpu(two),
        "CPU 0 on machine 1 was busiest: 0.9 of the time. Thread a (7) on machine 1 ran longest: 900, 0.9 of the time."
    );
}

#[test]
fn of_sched() {
    let sched = |script: &str| said("sched", script, Sched::new);
    assert_eq!(
        sched(SWITCHES),
        "Thread a (7) waited longest for a CPU: 50, from 300 on. Of 1 wait, 99 % took at most 50."
    );
    assert_eq!(sched(EMPTY), "");
    assert_eq!(
        sched(&SWITCHES.replacen("span=0..1000", "span=0..1000 hole=10..20 lost=1", 1)),
        "Thread a (7) waited longest for a CPU: 50.., from 300 on, as far as the trace shows. Of 1 wait seen, 99 % took \
         at most 50."
    );
}

const CALLS: &str = "
    lane cpu=0 span=0..1000
    5 0 thread_state known_tid=7 known_pid=7 known_comm=cat
    10 0 thread_switch prev_tid=0 next_tid=7 next_comm=cat
    20 0 syscall_entry syscall=openat path=/etc/motd flags=0
    30 0 syscall_exit syscall=openat ret=3
    40 0 syscall_entry syscall=read fd=3
    90 0 syscall_exit syscall=read ret=100
    95 0 syscall_entry syscall=openat path=/nowhere
    99 0 syscall_exit syscall=openat ret=-2
    140 0 thread_switch prev_tid=7 prev_comm=cat prev_state=1 next_tid=0";

#[test]
fn of_syscalls() {
    let syscalls = |script: &str| said("syscalls", script, Syscalls::new);
    assert_eq!(
        syscalls(CALLS),
        "System call read took most time: 50 in 1 call. The most frequent error is 2 of openat: 1 time."
    );
    assert_eq!(
        syscalls(&CALLS.replace("ret=-2", "ret=4")),
        "System call read took most time: 50 in 1 call. The slowest call took 50: read of cat (7)."
    );
    assert_eq!(syscalls(EMPTY), "");
    assert_eq!(
        syscalls(&CALLS.replace("span=0..1000", "span=0..1000 hole=500..600 lost=1")),
        "System call read took most time: 50.. in 1.. calls, as far as the trace shows. The most frequent error is 2 of \
         openat: 1.. times, as far as the trace shows."
    );
    // Calls of `read` fail more often, but with several errors.
    let failing = |(at, (call, ret)): (usize, &(&str, i32))| {
        let begin = at * 10 + 20;
        format!("\n{begin} 0 syscall_entry syscall={call}\n{} 0 syscall_exit syscall={call} ret={ret}", begin + 5)
    };
    let calls = [("read", -11), ("read", -4), ("read", -11), ("read", -4), ("open", -2), ("open", -2), ("open", -2)];
    let calls: String = calls.iter().enumerate().map(failing).collect();
    let errors = syscalls(&format!("lane cpu=0 span=0..1000\n10 0 thread_switch prev_tid=0 next_tid=7{calls}"));
    assert!(errors.ends_with("The most frequent error is 2 of open: 3 times."), "{errors}");
}

#[test]
fn of_io() {
    let io = |script: &str| said("io", script, Io::new);
    assert_eq!(
        io(CALLS),
        "Thread cat (7) moved most: 100 read, 0 written. The slowest operation took 50: read of cat (7) in /etc/motd."
    );
    assert_eq!(io(EMPTY), "");
    assert_eq!(
        io(&CALLS.replace("span=0..1000", "span=0..1000 hole=500..600 lost=1")),
        "Thread cat (7) moved most: 100.. read, 0.. written, as far as the trace shows. The slowest operation took 50..: \
         read of cat (7) in /etc/motd, as far as the trace shows."
    );
    // Only opens.
    assert_eq!(
        io(&CALLS.replace("ret=100", "ret=-11")),
        "The slowest operation took 50: read of cat (7) in /etc/motd."
    );
}

#[test]
fn of_irq() {
    const IRQS: &str = "
        lane cpu=0 span=0..1000
        lane cpu=1 span=0..1000
        100 0 irq_entry irq=17 irq_name=disk
        200 0 irq_exit irq=17
        210 1 irq_entry irq=18 irq_name=net
        215 1 irq_exit irq=18
        300 0 softirq_entry vec=3
        310 0 softirq_exit vec=3";
    let irq = |script: &str| said("irq", script, Irq::new);
    assert_eq!(
        irq(IRQS),
        "Most time was spent in irq 17: 100 in 1 interrupt. The longest interrupt took 100: irq 17 on CPU 0."
    );
    assert_eq!(irq(EMPTY), "");
    assert_eq!(
        irq(&IRQS.replace("cpu=1 span=0..1000", "cpu=1 span=0..1000 hole=50..60 lost=1")),
        "Most time was spent in irq 17: 100.. in 1.. interrupts, as far as the trace shows. The longest interrupt took \
         100..: irq 17 on CPU 0, as far as the trace shows."
    );
    let alike = IRQS.replace("310 0 softirq_exit", "400 0 softirq_exit");
    assert!(irq(&alike).starts_with("Most time was spent in irq 17: 100 in 1 interrupt; another is equal."));
    let soft = IRQS.replace("310 0 softirq_exit", "500 0 softirq_exit");
    assert!(irq(&soft).starts_with("Most time was spent in irq 3: 200 in 1 interrupt."), "{}", irq(&soft));
}

#[test]
fn of_block() {
    const REQUESTS: &str = "
        lane cpu=0 span=0..1000
        5 0 disk_state disk_dev=8388608 disk_name=sda
        20 0 block_issue dev=8388608 sector=64 sectors=16 rwbs=R
        50 0 block_complete dev=8388608 sector=64 sectors=16
        60 0 block_issue dev=8388609 sector=0 sectors=8 rwbs=WS
        65 0 block_complete dev=8388609 sector=0 sectors=8";
    let block = |script: &str| said("block", script, BlockAnalysis::new);
    assert_eq!(
        block(REQUESTS),
        "Disk sda moved most: 8192 in 1 read and 0 writes. The slowest request took 30: a read of sda."
    );
    assert_eq!(block(EMPTY), "");
    assert_eq!(
        block(&REQUESTS.replace("span=0..1000", "span=0..1000 hole=500..600 lost=1")),
        "Disk sda moved most: 8192.. in 1.. reads and 0.. writes, as far as the trace shows. The slowest request took \
         30..: a read of sda, as far as the trace shows."
    );
}

#[test]
fn of_memory() {
    const PAGES: &str = "
        lane cpu=0 span=0..1000
        100 0 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=8 next_comm=cc
        300 0 page_alloc order=3
        310 0 page_free order=0";
    let memory = |script: &str| said("memory", script, MemoryAnalysis::new);
    assert_eq!(
        memory(PAGES),
        "The kernel allocated 8 pages and freed 1. Thread cc (8) moved most: 8 allocated, 1 freed."
    );
    assert_eq!(memory(EMPTY), "");
    assert!(
        memory(&PAGES.replace("span=0..1000", "span=0..1000 hole=500..600 lost=1"))
            .starts_with("The kernel allocated 8.. pages and freed 1..."),
    );
}

#[test]
fn of_pairs() {
    const PAIRS: &str = "
        lane cpu=0 span=0..1000
        10 0 begin name=main within=5 group=function
        20 0 end name=main within=5 group=function
        60 0 begin name=work within=5 group=function";
    let pairs = |script: &str| {
        said("pairs", script, |setup| {
            PairsAnalysis::new(setup, &PairsOptions { is_nested: true, ..PairsOptions::default() })
        })
    };
    assert_eq!(pairs(PAIRS), "Of 1 pair, 99 % took at most 10. The longest took 10, from 10 on, in group main.");
    assert_eq!(pairs(EMPTY), "");
    let open = "lane cpu=0 span=0..1000
        60 0 begin name=work within=5 group=function";
    assert_eq!(pairs(open), "No pair has both ends: 1 never ended, 0 began before.");
    assert_eq!(
        pairs(&PAIRS.replace("span=0..1000", "span=0..1000 hole=500..600 lost=1")),
        "Of 1 pair seen, 99 % took at most 10. The longest took 10.., from 10 on, in group main, as far as the trace \
         shows."
    );
}

const EVENTS: &str = "
    lane cpu=0 span=0..250
    lane cpu=1 span=10..200
    0 0 'open'
    99 0 'open'
    99 1 'close'
    150 1 'close'
    249 0 'open'";

#[test]
fn of_events() {
    let lossy = EVENTS.replace("span=0..250", "span=0..250 hole=110..120 lost=3");
    let count = |script: &str| said("count", script, CountAnalysis::new);
    assert_eq!(count(EVENTS), "There are 5 events. open is most frequent: 3.");
    assert_eq!(count(&lossy), "There are 5..8 events. open is most frequent: 3..6, as far as the trace shows.");
    assert_eq!(count(EMPTY), "");
    let rates = |script: &str| said("rates", script, Rates::new);
    assert_eq!(rates(EVENTS), "Event open is most frequent: 3 times, and 2 in its busiest period.");
    let in_doubt = "Event open is most frequent: 3..6 times, and 2.. in its busiest period, as far as the trace shows.";
    assert_eq!(rates(&lossy), in_doubt);
    let rates_by = |by: &[&str]| {
        let script = Script::parse(EVENTS);
        let wishes = Wishes { by: by.iter().map(|by| (*by).to_owned()).collect(), ..Wishes::default() };
        let rates = Rates::new(&script.setup(&wishes));
        let answer = rates.finish(&script.state(&rates)).expect("it fits into memory");
        words(&find_analysis("rates").expect("it is registered").headline(&answer, false))
    };
    assert!(rates_by(&["cpu", "name"]).starts_with("Event open of CPU 0 is most frequent: 3 times, and "));
    assert!(rates_by(&["cpu"]).starts_with("CPU 0 has most events: 3, and "), "{}", rates_by(&["cpu"]));
    assert_eq!(rates(EMPTY), "");
    let gaps = |script: &str| said("gaps", script, Gaps::new);
    assert_eq!(gaps(EVENTS), "No event came for 99, from 0 on. CPU 0 had none for longest: 150.");
    assert_eq!(
        gaps(&EVENTS.replace("span=0..250", "span=0..250 hole=10..20 lost=3")),
        "No event came for 99, from 0 on, and events were lost then. CPU 0 had none for longest: 150, as far as the trace \
         shows."
    );
    assert_eq!(gaps(EMPTY), "");
}

#[test]
fn of_threads() {
    let threads = |script: &str| said("threads", script, WhoseAnalysis::new);
    assert_eq!(threads(SWITCHES), "There are 8 events. Idle CPUs have most events: 4.");
    let busy = "lane cpu=0 span=0..1000
        100 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=8 next_comm=b
        200 0 'work'
        300 0 'work'";
    assert_eq!(threads(busy), "There are 3 events. Thread b (8) has most events: 2.");
    assert_eq!(threads(EVENTS), "There are 5 events. Most events are of unknown threads: 5.");
    assert_eq!(threads(EMPTY), "");
    assert!(threads("lane cpu=0 span=0..9\n5 0 'work'").starts_with("There is 1 event. "));
}

fn duration(ns: u64) -> Cell {
    Cell::Duration(Bounded::exact(ns))
}

/// Of `kymo state`: CPUs that run a thread, and the first thread.
#[test]
fn of_states() {
    let thread = |name: &str, tid| Cell::Process { name: Some(name.to_owned()), pid: None, tid: Some(tid) };
    let columns = |names: &[&'static str]| -> Vec<Column> {
        names.iter().map(|name| Column::new(name, *name, CellClass::Mixed)).collect()
    };
    let mut cpus = Table::new("cpus", "CPUs", columns(&["cpu", "thread", "uncertain"]));
    cpus.rows = vec![
        vec![Cell::Cpu(0), Cell::Text("idle".to_owned()), Cell::Flag(false)],
        vec![Cell::Cpu(1), thread("sh", 7), Cell::Flag(false)],
        vec![Cell::Cpu(2), Cell::Unknown, Cell::Flag(true)],
    ];
    let mut threads = Table::new("threads", "Threads", columns(&["thread", "state", "for", "uncertain"]));
    threads.rows = vec![vec![thread("sh", 7), Cell::Text("running".to_owned()), duration(50), Cell::Flag(false)]];
    let said = |tables: &[&Table]| {
        let answer = Answer { tables: tables.iter().map(|table| (*table).clone()).collect() };
        words(&InstantStates::headline(&answer, false))
    };
    let running = "1 of 3 CPUs runs a thread, and 1 other may.";
    assert_eq!(said(&[&cpus, &threads]), format!("{running} Thread sh (7) is running, for 50."));
    threads.rows[0][3] = Cell::Flag(true);
    let in_doubt = "Thread sh (7) is running, for 50, as far as the trace shows.";
    assert_eq!(said(&[&cpus, &threads]), format!("{running} {in_doubt}"));
    threads.rows[0][2] = Cell::Unknown;
    assert_eq!(said(&[&cpus, &threads]), running);
    cpus.rows[1][2] = Cell::Flag(true);
    assert_eq!(said(&[&cpus]), "0 of 3 CPUs run a thread, and 2 may.");
    cpus.rows.truncate(1);
    assert_eq!(said(&[&cpus]), "0 of 1 CPU runs a thread.");
    assert_eq!(said(&[]), "");
}

/// Of an own analysis: states and counters that leave nothing out.
#[test]
fn of_own_analyses() {
    let text = "name = 'own'\n[[pairs]]\nname = 'x'\nbegin = 'a'\nend = 'b'";
    let entry = AnalysisEntry::declared(AnalysisDeclaration::parse(text).expect("it is right"));
    let columns = |names: &[&'static str]| -> Vec<Column> {
        names.iter().map(|name| Column::new(name, *name, CellClass::Mixed)).collect()
    };
    let mut states = Table::new("states", "States", columns(&["key", "value", "total"]));
    states.rows = [("a", 5), ("b", 9)]
        .map(|(key, total)| vec![Cell::Text(key.to_owned()), Cell::Text("busy".to_owned()), duration(total)])
        .to_vec();
    let mut counters = Table::new("counters", "Counters", columns(&["key", "max"]));
    counters.rows = vec![vec![Cell::Text("queue".to_owned()), Cell::Integer(12)]];
    let answer = Answer { tables: vec![states.clone(), counters] };
    assert_eq!(
        words(&entry.headline(&answer, false)),
        "b was in state busy longest: 9. Counter queue rose highest: to 12."
    );
    states.omitted = 1;
    assert_eq!(words(&entry.headline(&Answer { tables: vec![states] }, false)), "", "others may have been longer");
    assert_eq!(words(&entry.headline(&entry.kind.tables(), false)), "");
}

/// Of an own analysis with several items of a kind: the one with the longest pair, and its name.
#[test]
fn of_several_own_pairs() {
    let text = "name = 'own'
        [[pairs]]\nname = 'a'\nbegin = 'a:begin'\nend = 'a:end'
        [[pairs]]\nname = 'b'\nbegin = 'b:begin'\nend = 'b:end'";
    let entry = AnalysisEntry::declared(AnalysisDeclaration::parse(text).expect("it is right"));
    let pairs = |name: &str, script: &str| {
        let script = Script::parse(script);
        let wishes = Wishes::default();
        let analysis = PairsAnalysis::new(&script.setup(&wishes), &PairsOptions::default());
        let mut tables = analysis.finish(&script.state(&analysis)).expect("it fits into memory").tables;
        tables.iter_mut().for_each(|table| table.title = format!("{name}: {}", table.title));
        tables
    };
    let lasting = |begin: u64, end: u64| {
        format!("lane cpu=0 span=0..1000\n{begin} 0 begin name=x within=5\n{end} 0 end name=x within=5")
    };
    let said = |tables: [Vec<Table>; 2]| words(&entry.headline(&Answer { tables: tables.concat() }, false));
    let (short, long) = (lasting(10, 12), lasting(10, 60));
    let longest = "b: Of 1 pair, 99 % took at most 50. The longest took 50, from 10 on, in group x.";
    assert_eq!(said([pairs("a", &short), pairs("b", &long)]), longest);
    assert_eq!(said([pairs("a", EMPTY), pairs("b", &long)]), longest);
}
