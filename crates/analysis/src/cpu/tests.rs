//! Cases of `cpu`: times of threads, and unknown times.

use expect_test::{Expect, expect};

use super::Cpu;
use crate::testing::{Random, Script, text};
use crate::{Analysis, Wishes};

fn check(script: &str, by: &[&str], expect: &Expect) {
    check_with(script, Wishes { by: by.iter().map(|&by| by.to_owned()).collect(), ..Wishes::default() }, expect);
}

fn check_with(script: &str, wishes: Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let wishes = Wishes { bins: 2, ..wishes };
    let cpu = Cpu::new(&script.setup(&wishes));
    expect.assert_eq(&text(&cpu.finish(&script.state(&cpu)).unwrap()));
    script.check_cuts(&cpu, 200);
}

/// Before its first switch a CPU ran the thread that this switch ends, after its last one the thread that it begins.
#[test]
fn runs_reach_to_the_edges_of_the_trace() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=10..900
         100 0 thread_switch prev_tid=7 prev_comm=make prev_state=0 next_tid=0
         150 1 thread_switch prev_tid=0 next_tid=7 next_comm=cc next_prio=20
         300 0 thread_switch prev_tid=0 next_tid=8 next_comm=sh
         400 1 thread_switch prev_tid=7 prev_comm=cc prev_state=1 next_tid=0",
        &[],
        &expect![[r#"
            per-cpu
              cpu=0 begin=0 end=1000 busy=800 share=0.800 idle=200 unknown=0 switches=2
              cpu=1 begin=10 end=900 busy=250 share=0.281 idle=640 unknown=0 switches=2
            per-thread
              thread=`sh pid ? tid 8` incarnation=0 run_time=700 share=0.700 runs=1 migrations=0 preemptions=0
              thread=`cc pid ? tid 7` incarnation=0 run_time=350 share=0.350 runs=2 migrations=1 preemptions=1 priority=20
            per-process
              process=? threads=2 run_time=1050 share=1.050 runs=3
            per-application
              application=`sh` processes=0 threads=1 run_time=700 share=0.700 runs=1
              application=`cc` processes=0 threads=1 run_time=350 share=0.350 runs=2
            course
              time=0..500 busy=0.556
              time=500..1000 busy=0.556
        "#]],
    );
}

const TWO_CPUS: &str = "lane cpu=0 span=0..1000 hole=0..40 lost=2
     lane cpu=1 span=0..1000
     10 0 thread_fork child_tid=7 child_pid=7 child_comm=make
     20 0 thread_fork child_tid=8 child_pid=7 child_comm=cc
     100 0 thread_switch prev_tid=7 prev_comm=make prev_state=0 next_tid=0
     150 1 thread_switch prev_tid=0 next_tid=7 next_comm=make
     300 0 thread_switch prev_tid=0 next_tid=8 next_comm=cc
     400 1 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=0";

/// Every table is about the chosen CPUs: a thread that ran elsewhere has no row, and losses elsewhere do not matter.
#[test]
fn a_chosen_cpu_is_that_of_all_tables() {
    check_with(
        TWO_CPUS,
        Wishes { cpus: vec![1], ..Wishes::default() },
        &expect![[r#"
            per-cpu
              cpu=1 begin=0 end=1000 busy=250 share=0.250 idle=750 unknown=0 switches=2
            per-thread
              thread=`make pid 7 tid 7` incarnation=0 run_time=250 share=0.250 runs=1 migrations=0[0,4] preemptions=0
            per-process
              process=`make pid 7` threads=1 run_time=250 share=0.250 runs=1
            per-application
              application=`make` processes=1 threads=1 run_time=250 share=0.250 runs=1
            course
              time=0..500 busy=0.500
              time=500..1000 busy=0.000
        "#]],
    );
    check_with(
        TWO_CPUS,
        Wishes { cpus: vec![99], ..Wishes::default() },
        &expect![[r#"
            per-cpu
            per-thread
            per-process
            per-application
            course
        "#]],
    );
}

/// Packets do not say when they begin and end: the time of the trace is that of its switches.
#[test]
fn shares_without_times_of_packets() {
    check(
        "lane cpu=0
         lane cpu=1
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         150 1 thread_switch prev_tid=0 next_tid=8 next_comm=b
         200 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         300 1 thread_switch prev_tid=8 prev_comm=b prev_state=1 next_tid=0",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=`b pid ? tid 8` incarnation=0 run_time=150 share=0.750 runs=1 migrations=0 preemptions=0
              thread=`a pid ? tid 7` incarnation=0 run_time=100 share=0.500 runs=1 migrations=0 preemptions=0
            course
        "#]],
    );
}

/// Nothing says when the CPU begins and ends.
#[test]
fn a_cpu_without_any_time() {
    check(
        "lane cpu=3\n 5 0 thread_fork child_tid=3",
        &["cpu"],
        &expect![[r#"
            per-cpu
              cpu=3 begin=? end=? busy=0 share=0.000 idle=0 unknown=0 switches=0
            course
        "#]],
    );
}

/// A process has the numbers of its chosen threads.
#[test]
fn chosen_threads_are_those_of_processes() {
    check_with(
        TWO_CPUS,
        Wishes { tids: vec![8], ..Wishes::default() },
        &expect![[r#"
            per-cpu
              cpu=0 begin=0 end=1000 busy=800[700,800] share=0.800[0.700,0.800] idle=200[200,300] unknown=0 switches=2[2,4]
              cpu=1 begin=0 end=1000 busy=250 share=0.250 idle=750 unknown=0 switches=2
            per-thread
              thread=`cc pid 7 tid 8` incarnation=0 run_time=700[700,800] share=0.700[0.700,0.800] runs=1[1,3] migrations=0[0,4] preemptions=0[0,2]
            per-process
              process=`make pid 7` threads=1 run_time=700[700,800] share=0.700[0.700,0.800] runs=1[1,3]
            per-application
              application=`make` processes=1 threads=1 run_time=700[700,800] share=0.700[0.700,0.800] runs=1[1,3]
            course
              time=0..500 busy=0.550
              time=500..1000 busy=0.500
        "#]],
    );
    check_with(
        TWO_CPUS,
        Wishes { tids: vec![99], ..Wishes::default() },
        &expect![[r#"
            per-cpu
              cpu=0 begin=0 end=1000 busy=800[700,800] share=0.800[0.700,0.800] idle=200[200,300] unknown=0 switches=2[2,4]
              cpu=1 begin=0 end=1000 busy=250 share=0.250 idle=750 unknown=0 switches=2
            per-thread
            per-process
            per-application
            course
              time=0..500 busy=0.550
              time=500..1000 busy=0.500
        "#]],
    );
}

/// A dead thread's number is given to a new one: two threads, two rows.
#[test]
fn numbers_of_threads_are_used_again() {
    check(
        "lane cpu=0 span=0..1000 kernel=4.4
         lane cpu=1 span=0..1000 kernel=4.4
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=old
         200 0 thread_switch prev_tid=7 prev_comm=old prev_state=64 next_tid=0
         300 1 thread_fork child_tid=7 child_pid=5 child_comm=sh
         400 1 thread_switch prev_tid=0 next_tid=7 next_comm=new
         450 1 thread_switch prev_tid=7 prev_comm=new prev_state=64 next_tid=0
         500 0 thread_switch prev_tid=0 next_tid=7 next_comm=third
         510 0 thread_switch prev_tid=7 prev_comm=third prev_state=0 next_tid=0",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=`old pid ? tid 7` incarnation=0 run_time=100 share=0.100 runs=1 migrations=0 preemptions=0
              thread=`new pid 5 tid 7` incarnation=1 run_time=50 share=0.050 runs=1 migrations=0 preemptions=0
              thread=`third pid ? tid 7` incarnation=2 run_time=10 share=0.010 runs=1 migrations=0 preemptions=1
            course
              time=0..500 busy=0.150
              time=500..1000 busy=0.010
        "#]],
    );
}

/// In a hole anything may have happened: numbers get bounds.
#[test]
fn holes_give_bounds() {
    check(
        "lane cpu=0 span=0..1000 hole=150..250 lost=3
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         200 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         500 0 thread_switch prev_tid=0 next_tid=8 next_comm=b
         600 0 thread_switch prev_tid=8 prev_comm=b prev_state=1 next_tid=0",
        &["cpu", "thread"],
        &expect![[r#"
            per-cpu
              cpu=0 begin=0 end=1000 busy=200[150,250] share=0.200[0.150,0.250] idle=800[750,850] unknown=0 switches=4[4,7]
            per-thread
              thread=`a pid ? tid 7` incarnation=0 run_time=100[50,150] share=0.100[0.050,0.150] runs=1[1,4] migrations=0[0,6] preemptions=0[0,3]
              thread=`b pid ? tid 8` incarnation=0 run_time=100[100,200] share=0.100[0.100,0.200] runs=1[1,4] migrations=0[0,6] preemptions=0[0,3]
            course
              time=0..500 busy=0.200
              time=500..1000 busy=0.200
        "#]],
    );
}

/// Threads of a process run side by side: it may have more than all of a CPU.
#[test]
fn a_process_has_more_than_one_cpu() {
    check(
        "lane cpu=0 span=0..1000 hole=900..950 lost=1
         lane cpu=1 span=0..1000
         0 0 thread_fork child_tid=7 child_pid=7 parent_tid=8 parent_pid=7
         10 0 thread_switch prev_tid=7 prev_state=1 next_tid=7
         10 1 thread_switch prev_tid=8 prev_state=1 next_tid=8",
        &["process"],
        &expect![[r#"
            per-process
              process=`? pid 7` threads=2 run_time=1990[1000,1990] share=1.990[1.000,1.990] runs=3[3,4]
              process=? threads=1 run_time=10[10,1000] share=0.010[0.010,1.000] runs=1[1,2]
            course
              time=0..500 busy=1.000
              time=500..1000 busy=1.000
        "#]],
    );
}

/// A switch away from a thread that was not running: uncounted events are missing.
#[test]
fn odd_switches_are_holes() {
    check(
        "lane cpu=0 span=0..1000
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         200 0 thread_switch prev_tid=8 prev_comm=b prev_state=1 next_tid=0",
        &["cpu", "thread"],
        &expect![[r#"
            per-cpu
              cpu=0 begin=0 end=1000 busy=100[0,100] share=0.100[0.000,0.100] idle=900[900,1000] unknown=0 switches=2[2,none]
            per-thread
              thread=`a pid ? tid 7` incarnation=0 run_time=100[0,100] share=0.100[0.000,0.100] runs=1[1,none] migrations=0[0,none] preemptions=0[0,none]
            course
              time=0..500 busy=0.200
              time=500..1000 busy=0.000
        "#]],
    );
}

/// The threads of a CPU without switches are unknown.
#[test]
fn a_cpu_without_switches_is_unknown() {
    check(
        "lane cpu=3 span=0..1000\n 5 0 thread_fork child_tid=3",
        &["cpu"],
        &expect![[r#"
        per-cpu
          cpu=3 begin=0 end=1000 busy=0[0,1000] share=0.000[0.000,1.000] idle=0[0,1000] unknown=1000 switches=0
        course
          time=0..500 busy=0.000
          time=500..1000 busy=0.000
    "#]],
    );
}

/// Random threads on random CPUs: cutting changes nothing.
#[test]
fn cuts_change_nothing() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let lanes = 1 + random.below(3);
        let mut script: String = (0..lanes)
            .map(|lane| format!("lane cpu={lane} span=0..3000 hole={0}..{1} lost=?\n", 900 * lane, 900 * lane + 30))
            .collect();
        let mut current = vec![0; lanes];
        let mut free: Vec<i32> = (1..9).collect();
        for time in 1..150 {
            let lane = random.below(lanes);
            let prev = current[lane];
            let next =
                if free.is_empty() || random.below(3) == 0 { 0 } else { free.swap_remove(random.below(free.len())) };
            if random.below(12) == 0 && next != 0 {
                script += &format!("{} {lane} thread_fork child_tid={next} child_pid={next}\n", time * 20 - 1);
            }
            let state = [0, 1, 2, 0x40, 0x20][random.below(5)];
            script += &format!(
                "{} {lane} thread_switch prev_tid={prev} prev_state={state} next_tid={next} next_comm=n{next}\n",
                time * 20
            );
            current[lane] = next;
            free.extend((prev != 0).then_some(prev));
        }
        let script = Script::parse(&script);
        let wishes = Wishes::default();
        let cpu = Cpu::new(&script.setup(&wishes));
        script.check_cuts(&cpu, 20);
        let wishes = Wishes { cpus: vec![0], tids: vec![1, 2, 3, 4], ..Wishes::default() };
        let cpu = Cpu::new(&script.setup(&wishes));
        script.check_cuts(&cpu, 20);
    }
}
