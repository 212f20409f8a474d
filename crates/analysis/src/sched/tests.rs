//! Cases of `sched`: how long threads wait, their other states, and unknown times.

mod many;

use expect_test::{Expect, expect};

use super::Sched;
use crate::testing::{Script, text};
use crate::{Analysis, Wishes};

fn check_with(script: &str, wishes: &Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let sched = Sched::new(&script.setup(wishes));
    expect.assert_eq(&text(&sched.finish(&script.state(&sched)).unwrap()));
    script.check_cuts(&sched, 200);
}

fn check(script: &str, by: &[&str], expect: &Expect) {
    let by = by.iter().map(|&by| by.to_owned()).collect();
    check_with(script, &Wishes { by, bins: 2, ..Wishes::default() }, expect);
}

/// The whole way of a thread: blocked in a call, woken, run, preempted, run elsewhere.
#[test]
fn threads_wait_and_run() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a next_prio=20
         110 0 syscall_entry syscall=read
         200 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=8 next_comm=b next_prio=20
         300 0 thread_waking woken_tid=7 target_cpu=0
         310 1 thread_wakeup woken_tid=7 target_cpu=0
         350 1 thread_switch prev_tid=0 next_tid=7 next_comm=a next_prio=19
         360 1 syscall_exit syscall=read
         400 1 thread_switch prev_tid=7 prev_comm=a prev_state=0 next_tid=0
         500 1 thread_switch prev_tid=0 next_tid=7 next_comm=a next_prio=20",
        &[],
        &expect![[r#"
            total
              count=1 total=50 min=50 avg=50 max=50 p50=50 p90=50 p99=50 p999=50 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=1
            per-thread
              thread=`a pid ? tid 7` incarnation=0 count=1 total=50 min=50 avg=50 max=50 p50=50 p90=50 p99=50 p999=50 never_ended=0 lost_inside=0 unseen=0
            per-priority
              priority=19 count=1 total=50 min=50 avg=50 max=50 p50=50 p90=50 p99=50 p999=50 lost_inside=0
            top
              woken=300 latency=50 thread=`a pid ? tid 7` incarnation=0 priority=19 cpu=1 target=0 waker=`b pid ? tid 8` waker_incarnation=0
            wakers
              waker=`b pid ? tid 8` waker_incarnation=0 thread=`a pid ? tid 7` incarnation=0 count=1 total=50
            runs
              thread=`a pid ? tid 7` incarnation=0 count=2 total=150 min=50 avg=75 max=100 stdev=35 cut=1 preemptions=1 migrations=1
              thread=`b pid ? tid 8` incarnation=0 count=0 total=0 cut=1 preemptions=0 migrations=0
            states
              thread=`a pid ? tid 7` incarnation=0 running=650 preempted=100 waiting=50 blocked=100 new=0 unknown=100
              thread=`b pid ? tid 8` incarnation=0 running=800 preempted=0 waiting=0 blocked=0 new=0 unknown=200
            blocked
              thread=`a pid ? tid 7` incarnation=0 syscall=`read` count=1 total=100
            distribution
              low=50 high=51 count=1
        "#]],
    );
}

/// Events before a thread's first switch: that it was made, or that it waited for something.
#[test]
fn first_wakeups_count() {
    check(
        "lane cpu=0 span=0..1000
         10 0 thread_wakeup woken_tid=5 woken_comm=old target_cpu=0
         20 0 thread_fork child_tid=6 child_pid=6 child_comm=new
         30 0 thread_wakeup woken_tid=6 target_cpu=0
         50 0 thread_switch prev_tid=9 prev_comm=boss prev_state=1 next_tid=5 next_comm=old next_prio=20
         90 0 thread_switch prev_tid=5 prev_comm=old prev_state=1 next_tid=6 next_comm=new next_prio=20
         95 0 thread_wakeup woken_tid=4 woken_comm=late",
        &["thread", "waker", "state"],
        &expect![[r#"
            total
              count=2 total=100 min=40 avg=50 max=60 stdev=14 p50=40 p90=60 p99=60 p999=60 never_ended=1 lost_inside=0 unseen=0 wrong_cpu=0
            per-thread
              thread=`new pid 6 tid 6` incarnation=0 count=1 total=60 min=60 avg=60 max=60 p50=60 p90=60 p99=60 p999=60 never_ended=0 lost_inside=0 unseen=0
              thread=`old pid ? tid 5` incarnation=0 count=1 total=40 min=40 avg=40 max=40 p50=40 p90=40 p99=40 p999=40 never_ended=0 lost_inside=0 unseen=0
              thread=`late pid ? tid 4` incarnation=0 count=0 total=0 never_ended=1 lost_inside=0 unseen=0
            wakers
              waker=`new pid 6 tid 6` waker_incarnation=0 thread=`late pid ? tid 4` incarnation=0 count=1 total=0
              waker=`boss pid ? tid 9` waker_incarnation=0 thread=`old pid ? tid 5` incarnation=0 count=1 total=40
              waker=`boss pid ? tid 9` waker_incarnation=0 thread=`new pid 6 tid 6` incarnation=0 count=1 total=60
            states
              thread=`new pid 6 tid 6` incarnation=0 running=910 preempted=0 waiting=60 blocked=0 new=10 unknown=0
              thread=`late pid ? tid 4` incarnation=0 running=0 preempted=0 waiting=905 blocked=0 new=0 unknown=95
              thread=`old pid ? tid 5` incarnation=0 running=40 preempted=0 waiting=40 blocked=910 new=0 unknown=10
              thread=`boss pid ? tid 9` incarnation=0 running=50 preempted=0 waiting=0 blocked=950 new=0 unknown=0
            blocked
              thread=`boss pid ? tid 9` incarnation=0 count=1 total=950
              thread=`old pid ? tid 5` incarnation=0 count=1 total=910
            distribution
              low=40 high=49 count=1
              low=49 high=61 count=1
            thread-distribution
              low=60 high=61 count=1
            thread-distribution
              low=40 high=41 count=1
        "#]],
    );
}

/// A wakeup of a thread that runs, or could run, changes nothing but its target.
#[test]
fn wakeups_of_who_is_awake_change_nothing() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         150 1 thread_wakeup woken_tid=7 target_cpu=1
         200 0 thread_switch prev_tid=7 prev_comm=a prev_state=0 next_tid=8 next_comm=b
         250 1 thread_wakeup woken_tid=7 target_cpu=1
         300 0 thread_switch prev_tid=8 prev_comm=b prev_state=1 next_tid=7 next_comm=a
         400 0 thread_switch prev_tid=7 prev_comm=a prev_state=2 next_tid=0
         450 1 thread_waking woken_tid=7 target_cpu=1
         460 1 thread_wakeup woken_tid=7 target_cpu=0
         470 1 thread_waking woken_tid=7 target_cpu=1
         500 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         600 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         650 0 thread_switch prev_tid=0 next_tid=7 next_comm=a",
        &["thread", "state"],
        &expect![[r#"
            total
              count=1 total=50 min=50 avg=50 max=50 p50=50 p90=50 p99=50 p999=50 never_ended=0 lost_inside=0 unseen=1 wrong_cpu=0
            per-thread
              thread=`a pid ? tid 7` incarnation=0 count=1 total=50 min=50 avg=50 max=50 p50=50 p90=50 p99=50 p999=50 never_ended=0 lost_inside=0 unseen=1
            states
              thread=`a pid ? tid 7` incarnation=0 running=650 preempted=100 waiting=50 blocked=100 new=0 unknown=100
              thread=`b pid ? tid 8` incarnation=0 running=100 preempted=0 waiting=0 blocked=700 new=0 unknown=200
            blocked
              thread=`b pid ? tid 8` incarnation=0 count=1 total=700
              thread=`a pid ? tid 7` incarnation=0 count=2 total=100
            distribution
              low=50 high=51 count=1
            thread-distribution
              low=50 high=51 count=1
        "#]],
    );
}

/// The call that a thread waits in may have been entered long before, and many switches ago.
#[test]
fn calls_are_open_over_several_waits() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         50 0 syscall_entry syscall=poll
         100 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         200 1 thread_wakeup woken_tid=7 target_cpu=1
         210 1 thread_switch prev_tid=0 next_tid=7 next_comm=a
         250 1 thread_switch prev_tid=7 prev_comm=a prev_state=0 next_tid=0
         260 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         300 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         400 1 thread_wakeup woken_tid=7 target_cpu=1
         410 1 thread_switch prev_tid=0 next_tid=7 next_comm=a
         420 1 syscall_exit syscall=poll
         430 1 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         500 1 thread_wakeup woken_tid=7 target_cpu=1
         510 1 thread_switch prev_tid=0 next_tid=7 next_comm=a
         520 1 syscall_entry number=15
         530 1 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0",
        &["state"],
        &expect![[r#"
            total
              count=3 total=30 min=10 avg=10 max=10 stdev=0 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
            states
              thread=`a pid ? tid 7` incarnation=0 running=220 preempted=10 waiting=30 blocked=740 new=0 unknown=0
            blocked
              thread=`a pid ? tid 7` incarnation=0 syscall=`15` count=1 total=470
              thread=`a pid ? tid 7` incarnation=0 syscall=`poll` count=2 total=200
              thread=`a pid ? tid 7` incarnation=0 count=1 total=70
            distribution
              low=10 high=11 count=3
        "#]],
    );
}

/// A hole of any CPU puts wakeups in doubt, and runs of its own CPU.
#[test]
fn holes_put_in_doubt() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000 hole=300..320 lost=?
         100 0 thread_switch prev_tid=0 next_tid=8 next_comm=b
         200 1 thread_switch prev_tid=0 next_tid=9 next_comm=c
         290 0 thread_wakeup woken_tid=7 target_cpu=0
         310 0 thread_switch prev_tid=8 prev_comm=b prev_state=1 next_tid=7 next_comm=a next_prio=1
         400 1 thread_switch prev_tid=9 prev_comm=c prev_state=1 next_tid=0
         500 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         600 0 thread_wakeup woken_tid=7 target_cpu=0
         700 0 thread_switch prev_tid=0 next_tid=7 next_comm=a next_prio=1",
        &["thread", "priority", "run", "state"],
        &expect![[r#"
            total
              count=1 total=100 min=100 avg=100 max=100 p50=100 p90=100 p99=100 p999=100 never_ended=0 lost_inside=1 unseen=0 wrong_cpu=0
            per-thread
              thread=`a pid ? tid 7` incarnation=0 count=1 total=100 min=100 avg=100 max=100 p50=100 p90=100 p99=100 p999=100 never_ended=0 lost_inside=1 unseen=0
            per-priority
              priority=1 count=1 total=100 min=100 avg=100 max=100 p50=100 p90=100 p99=100 p999=100 lost_inside=1
            runs
              thread=`b pid ? tid 8` incarnation=0 count=1 total=210 min=210 avg=210 max=210 cut=0 preemptions=0 migrations=0
              thread=`a pid ? tid 7` incarnation=0 count=1 total=190 min=190 avg=190 max=190 cut=1 preemptions=0 migrations=0
              thread=`c pid ? tid 9` incarnation=0 count=0 total=0 cut=1 preemptions=0 migrations=0
            states
              thread=`a pid ? tid 7` incarnation=0 running=490[0,1000] preempted=0[0,1000] waiting=120[0,1000] blocked=100[0,1000] new=0[0,1000] unknown=290[0,1000]
              thread=`b pid ? tid 8` incarnation=0 running=210[0,1000] preempted=0[0,1000] waiting=0[0,1000] blocked=690[0,1000] new=0[0,1000] unknown=100[0,1000]
              thread=`c pid ? tid 9` incarnation=0 running=200[0,1000] preempted=0[0,1000] waiting=0[0,1000] blocked=600[0,1000] new=0[0,1000] unknown=200[0,1000]
            blocked
              thread=`b pid ? tid 8` incarnation=0 count=1[0,none] total=690[0,1000]
              thread=`c pid ? tid 9` incarnation=0 count=1[0,none] total=600[0,1000]
              thread=`a pid ? tid 7` incarnation=0 count=1[0,none] total=100[0,1000]
            distribution
              low=100 high=101 count=1
            priority-distribution
              low=100 high=101 count=1
            thread-distribution
              low=100 high=101 count=1
        "#]],
    );
}

/// Its number is given to a new thread before the old one has left its CPU.
#[test]
fn numbers_are_used_again() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=old
         200 1 thread_fork child_tid=7 child_pid=5 child_comm=sh
         210 1 thread_wakeup woken_tid=7 target_cpu=1
         220 0 thread_switch prev_tid=7 prev_comm=old prev_state=32 next_tid=0
         300 1 thread_switch prev_tid=0 next_tid=7 next_comm=new
         400 1 thread_switch prev_tid=7 prev_comm=new prev_state=16 next_tid=0
         500 0 thread_wakeup woken_tid=7 woken_comm=third target_cpu=0
         510 0 thread_switch prev_tid=0 next_tid=7 next_comm=third",
        &["thread", "waker", "run", "state"],
        &expect![[r#"
            total
              count=2 total=100 min=10 avg=50 max=90 stdev=57 p50=10 p90=90 p99=90 p999=90 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
            per-thread
              thread=`new pid 5 tid 7` incarnation=1 count=1 total=90 min=90 avg=90 max=90 p50=90 p90=90 p99=90 p999=90 never_ended=0 lost_inside=0 unseen=0
              thread=`third pid ? tid 7` incarnation=2 count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=0 unseen=0
            wakers
              waker=`? pid ? tid 0` thread=`new pid 5 tid 7` incarnation=1 count=1 total=90
              waker=`? pid ? tid 0` thread=`third pid ? tid 7` incarnation=2 count=1 total=10
            runs
              thread=`old pid ? tid 7` incarnation=0 count=1 total=120 min=120 avg=120 max=120 cut=0 preemptions=0 migrations=0
              thread=`new pid 5 tid 7` incarnation=1 count=1 total=100 min=100 avg=100 max=100 cut=0 preemptions=0 migrations=0
              thread=`third pid ? tid 7` incarnation=2 count=0 total=0 cut=1 preemptions=0 migrations=0
            states
              thread=`third pid ? tid 7` incarnation=2 running=490 preempted=0 waiting=10 blocked=0 new=0 unknown=0
              thread=`new pid 5 tid 7` incarnation=1 running=100 preempted=0 waiting=90 blocked=0 new=10 unknown=0
              thread=`old pid ? tid 7` incarnation=0 running=100 preempted=0 waiting=0 blocked=0 new=0 unknown=100
            blocked
            distribution
              low=10 high=30 count=1
              low=30 high=91 count=1
            thread-distribution
              low=90 high=91 count=1
            thread-distribution
              low=10 high=11 count=1
        "#]],
    );
}

/// A switch away from a thread that was not running: the state of the one that was running is
/// unknown since then.
#[test]
fn odd_switches() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         110 0 syscall_entry syscall=read
         200 0 thread_switch prev_tid=8 prev_comm=b prev_state=1 next_tid=0
         250 1 thread_wakeup woken_tid=7
         300 1 thread_switch prev_tid=0 next_tid=7 next_comm=a
         400 1 thread_switch prev_tid=0 next_tid=9 next_comm=c
         450 0 thread_switch prev_tid=0 next_tid=9 next_comm=c
         460 1 thread_switch prev_tid=0 next_tid=0
         500 0 thread_wakeup woken_tid=8
         600 1 thread_switch prev_tid=8 prev_state=0 next_tid=0",
        &["thread", "run", "state"],
        &expect![[r#"
            total
              count=0 total=0 never_ended=0 lost_inside=1 unseen=0 wrong_cpu=0
            per-thread
              thread=`? pid ? tid 8` incarnation=0 count=0 total=0 never_ended=0 lost_inside=1 unseen=0
            runs
              thread=`a pid ? tid 7` incarnation=0 count=0 total=0 cut=2 preemptions=0 migrations=1
              thread=`? pid ? tid 8` incarnation=0 count=0 total=0 cut=0 preemptions=1 migrations=0
              thread=`c pid ? tid 9` incarnation=0 count=0 total=0 cut=2 preemptions=0 migrations=1
            states
              thread=`c pid ? tid 9` incarnation=0 running=600 preempted=0 waiting=0 blocked=0 new=0 unknown=400
              thread=`? pid ? tid 8` incarnation=0 running=0 preempted=400 waiting=100 blocked=300 new=0 unknown=200
              thread=`a pid ? tid 7` incarnation=0 running=200 preempted=0 waiting=0 blocked=0 new=0 unknown=800
            blocked
              thread=`? pid ? tid 8` incarnation=0 count=1 total=300
        "#]],
    );
}

/// A waker may have run since before the trace, be an idle CPU, or be unknown.
#[test]
fn wakers() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         lane cpu=2 span=0..1000
         10 0 thread_wakeup woken_tid=7 woken_comm=a
         20 1 thread_wakeup woken_tid=8 woken_comm=b
         30 2 thread_wakeup woken_tid=9 woken_comm=c
         40 0 thread_switch prev_tid=5 prev_comm=boss prev_state=0 next_tid=7 next_comm=a
         50 1 thread_switch prev_tid=0 next_tid=8 next_comm=b
         60 1 thread_wakeup woken_tid=6 woken_comm=d
         70 1 thread_switch prev_tid=8 prev_comm=b prev_state=1 next_tid=6 next_comm=d",
        &["waker", "top"],
        &expect![[r#"
            total
              count=3 total=70 min=10 avg=23 max=30 stdev=12 p50=30 p90=30 p99=30 p999=30 never_ended=1 lost_inside=0 unseen=0 wrong_cpu=0
            top
              woken=10 latency=30 thread=`a pid ? tid 7` incarnation=0 cpu=0 waker=`boss pid ? tid 5` waker_incarnation=0
              woken=20 latency=30 thread=`b pid ? tid 8` incarnation=0 cpu=1 waker=`? pid ? tid 0`
              woken=60 latency=10 thread=`d pid ? tid 6` incarnation=0 cpu=1 waker=`b pid ? tid 8` waker_incarnation=0
            wakers
              waker=`b pid ? tid 8` waker_incarnation=0 thread=`d pid ? tid 6` incarnation=0 count=1 total=10
              waker=`boss pid ? tid 5` waker_incarnation=0 thread=`a pid ? tid 7` incarnation=0 count=1 total=30
              waker=`? pid ? tid 0` thread=`b pid ? tid 8` incarnation=0 count=1 total=30
              waker=? thread=`c pid ? tid 9` incarnation=0 count=1 total=0
            distribution
              low=10 high=17 count=1
              low=17 high=31 count=2
        "#]],
    );
}

/// Only some threads, CPUs and lengths of waits.
#[test]
fn wishes_narrow() {
    let script = "lane cpu=0 span=0..1000
         10 0 thread_wakeup woken_tid=7 woken_comm=abc
         20 0 thread_wakeup woken_tid=8 woken_comm=abd
         30 0 thread_switch prev_tid=5 prev_comm=boss prev_state=0 next_tid=7 next_comm=abc
         40 0 thread_switch prev_tid=7 prev_comm=abc prev_state=1 next_tid=8 next_comm=abd
         50 0 thread_wakeup woken_tid=7 woken_comm=abc
         60 0 thread_switch prev_tid=8 prev_comm=abd prev_state=1 next_tid=7 next_comm=abc";
    let by = vec!["thread".to_owned()];
    let base = Wishes { by, bins: 2, ..Wishes::default() };
    check_with(
        script,
        &Wishes { min_ns: Some(15), ..base.clone() },
        &expect![[r#"
            total
              count=2 total=40 min=20 avg=20 max=20 stdev=0 p50=20 p90=20 p99=20 p999=20 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
            per-thread
              thread=`abc pid ? tid 7` incarnation=0 count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 never_ended=0 lost_inside=0 unseen=0
              thread=`abd pid ? tid 8` incarnation=0 count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 never_ended=0 lost_inside=0 unseen=0
            distribution
              low=15 high=17 count=0
              low=17 high=21 count=2
            thread-distribution
              low=15 high=17 count=0
              low=17 high=21 count=1
            thread-distribution
              low=15 high=17 count=0
              low=17 high=21 count=1
        "#]],
    );
    check_with(
        script,
        &Wishes { max_ns: Some(15), tids: vec![7], ..base.clone() },
        &expect![[r#"
            total
              count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
            per-thread
              thread=`abc pid ? tid 7` incarnation=0 count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 never_ended=0 lost_inside=0 unseen=0
            distribution
              low=10 high=12 count=1
              low=12 high=16 count=0
            thread-distribution
              low=10 high=12 count=1
              low=12 high=16 count=0
        "#]],
    );
    check_with(
        script,
        &Wishes { comms: vec!["*d".to_owned()], ..base.clone() },
        &expect![[r#"
            total
              count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
            per-thread
              thread=`abd pid ? tid 8` incarnation=0 count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 never_ended=0 lost_inside=0 unseen=0
            distribution
              low=20 high=21 count=1
            thread-distribution
              low=20 high=21 count=1
        "#]],
    );
    check_with(
        script,
        &Wishes { cpus: vec![1], ..base },
        &expect![[r#"
        total
          count=0 total=0 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
        per-thread
    "#]],
    );
}

/// Processes are known from the contexts of events, as long as these name the thread that leaves.
#[test]
fn processes_come_from_contexts() {
    check(
        "lane cpu=0 span=0..1000
         100 0 thread_switch prev_tid=5 prev_state=1 next_tid=7 next_comm=a @tid=5 @pid=4
         200 0 thread_switch prev_tid=7 prev_state=1 next_tid=8 next_comm=b @tid=7 @pid=6
         300 0 thread_switch prev_tid=8 prev_state=1 next_tid=0 @tid=9 @pid=9",
        &["run"],
        &expect![[r#"
            total
              count=0 total=0 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
            runs
              thread=`a pid 6 tid 7` incarnation=0 count=1 total=100 min=100 avg=100 max=100 cut=0 preemptions=0 migrations=0
              thread=`b pid ? tid 8` incarnation=0 count=1 total=100 min=100 avg=100 max=100 cut=0 preemptions=0 migrations=0
              thread=`? pid 4 tid 5` incarnation=0 count=0 total=0 cut=1 preemptions=0 migrations=0
        "#]],
    );
}

/// A wait, a run and a call go over the end of a period; CPU 1 switches for the first time in the second one.
#[test]
fn threads_go_on_from_period_to_period() {
    let script = Script::parse(
        "lane cpu=0 span=0..400
         lane cpu=1 span=0..400
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=a next_prio=20
         20 0 syscall_entry syscall=read
         30 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=8 next_comm=b next_prio=20
         150 0 thread_wakeup woken_tid=7 target_cpu=1
         230 1 thread_switch prev_tid=9 prev_comm=c prev_state=0 next_tid=7 next_comm=a next_prio=20
         250 0 thread_switch prev_tid=8 prev_comm=b prev_state=1 next_tid=0",
    );
    let wishes = Wishes { by: ["thread", "waker", "run", "state"].map(str::to_owned).to_vec(), ..Wishes::default() };
    let answers = script.periods(&[100, 200], &wishes, Sched::new);
    let text = answers.iter().map(|answer| format!("--\n{}", text(answer))).collect::<String>();
    expect![[r#"
        --
        total
          count=0 total=0 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
        per-thread
        wakers
        runs
          thread=`a pid ? tid 7` incarnation=0 count=1 total=20 min=20 avg=20 max=20 cut=0 preemptions=0 migrations=0
          thread=`b pid ? tid 8` incarnation=0 count=0 total=0 cut=1 preemptions=0 migrations=0
        states
          thread=`b pid ? tid 8` incarnation=0 running=70 preempted=0 waiting=0 blocked=0 new=0 unknown=30
          thread=`a pid ? tid 7` incarnation=0 running=20 preempted=0 waiting=0 blocked=70 new=0 unknown=10
        blocked
          thread=`a pid ? tid 7` incarnation=0 syscall=`read` count=1 total=70
        --
        total
          count=0 total=0 never_ended=1 lost_inside=0 unseen=0 wrong_cpu=0
        per-thread
          thread=`a pid ? tid 7` incarnation=0 count=0 total=0 never_ended=1 lost_inside=0 unseen=0
        wakers
          waker=`b pid ? tid 8` waker_incarnation=0 thread=`a pid ? tid 7` incarnation=0 count=1 total=0
        runs
          thread=`b pid ? tid 8` incarnation=0 count=0 total=0 cut=1 preemptions=0 migrations=0
        states
          thread=`b pid ? tid 8` incarnation=0 running=100 preempted=0 waiting=0 blocked=0 new=0 unknown=0
          thread=`a pid ? tid 7` incarnation=0 running=0 preempted=0 waiting=50 blocked=50 new=0 unknown=0
        blocked
          thread=`a pid ? tid 7` incarnation=0 syscall=`read` count=0 total=50
        --
        total
          count=1 total=80 min=80 avg=80 max=80 p50=80 p90=80 p99=80 p999=80 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
        per-thread
          thread=`a pid ? tid 7` incarnation=0 count=1 total=80 min=80 avg=80 max=80 p50=80 p90=80 p99=80 p999=80 never_ended=0 lost_inside=0 unseen=0
        wakers
          waker=`b pid ? tid 8` waker_incarnation=0 thread=`a pid ? tid 7` incarnation=0 count=0 total=80
        runs
          thread=`b pid ? tid 8` incarnation=0 count=1 total=220 min=220 avg=220 max=220 cut=0 preemptions=0 migrations=0
          thread=`a pid ? tid 7` incarnation=0 count=0 total=0 cut=1 preemptions=0 migrations=1
          thread=`c pid ? tid 9` incarnation=0 count=0 total=0 cut=1 preemptions=1 migrations=0
        states
          thread=`a pid ? tid 7` incarnation=0 running=170 preempted=0 waiting=30 blocked=0 new=0 unknown=0
          thread=`c pid ? tid 9` incarnation=0 running=30 preempted=170 waiting=0 blocked=0 new=0 unknown=0
          thread=`b pid ? tid 8` incarnation=0 running=50 preempted=0 waiting=0 blocked=150 new=0 unknown=0
        blocked
          thread=`b pid ? tid 8` incarnation=0 count=1 total=150
        distribution
          low=80 high=81 count=1
        thread-distribution
          low=80 high=81 count=1
    "#]]
    .assert_eq(&text);
}
