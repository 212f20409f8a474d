//! Cases of `states`: known and unknown states at instants.

use std::sync::Arc;

use expect_test::expect;

use super::*;
use crate::Wishes;
use crate::runs::runs_between;
use crate::testing::{Random, Script, text};

fn check(script: &str, at: i64, expect: &expect_test::Expect) {
    let script = Script::parse(script);
    let wishes = Wishes::default();
    let states = StatesAnalysis::new(&script.setup(&wishes));
    let history = text(&states.finish(&script.state(&states)).unwrap());
    let (runs, texts) = states.into_runs(script.state(&states));
    let spool = Arc::clone(&script.room.spool);
    let mut found = Vec::new();
    runs_between(&*spool, &runs.finish().unwrap(), (at, at), |run| found.push(run)).unwrap();
    let moment = InstantStates { at, texts: &texts, wishes: &wishes };
    expect.assert_eq(&format!("{history}{}", text(&moment.answer(&found))));
    script.check_cuts(&states, 200);
}

/// On the way back from a signal a kernel does not say the call's number any more: it is that of the call.
#[test]
fn an_exit_without_a_number_is_of_the_call_before() {
    check(
        "lane cpu=0
         10 0 thread_switch prev_tid=0 next_tid=7
         20 0 syscall_entry number=15
         30 0 syscall_exit number=-1
         40 0 syscall_entry number=15
         50 0 syscall_exit number=16
         60 0 thread_switch prev_tid=7 prev_state=0 next_tid=0",
        25,
        &expect![[r#"
            history
              what=`CPU: thread of 0` begin=? end=10 value=0 uncertain=false
              what=`CPU: thread of 0` begin=10 end=60 value=7 uncertain=false
              what=`CPU: thread of 0` begin=60 value=0 uncertain=false
              what=`thread: state of 7` begin=10 end=60 value=`running on 0` uncertain=false
              what=`thread: state of 7` begin=60 value=`preempted` uncertain=false
              what=`thread: call of 7` begin=20 end=30 value=`#15` uncertain=false
              what=`thread: call of 7` begin=40 end=50 value=`#15` uncertain=true
            cpus
              cpu=0 thread=`? pid ? tid 7` call=`#15` since=10 for=15 until=60 uncertain=false
            threads
              thread=`? pid ? tid 7` state=`running` cpu=0 call=`#15` since=10 for=15 until=60 uncertain=false
        "#]],
    );
}

/// CPUs and threads of two machines have the same numbers.
#[test]
fn rows_of_several_machines_name_them() {
    check(
        "lane cpu=0
         lane cpu=0 host=1
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         20 1 thread_switch prev_tid=0 next_tid=7 next_comm=b",
        30,
        &expect![[r#"
            history
              what=`CPU: thread of 0` begin=? end=10 value=0 uncertain=false
              what=`CPU: thread of 0` begin=10 value=7 uncertain=false
              what=`CPU: thread of 0` begin=? end=20 value=0 uncertain=false
              what=`CPU: thread of 0` begin=20 value=7 uncertain=false
              what=`thread: state of 7` begin=10 value=`running on 0` uncertain=false
              what=`thread: state of 7` begin=20 value=`running on 0` uncertain=false
              what=`thread: name of 7` begin=10 value=`a` uncertain=false
              what=`thread: name of 7` begin=20 value=`b` uncertain=false
            cpus
              cpu=0 host=`machine 1` thread=`a pid ? tid 7` since=10 for=20 uncertain=false
              cpu=0 host=`machine 2` thread=`b pid ? tid 7` since=20 for=10 uncertain=false
            threads
              thread=`a pid ? tid 7` host=`machine 1` state=`running` cpu=0 since=10 for=20 uncertain=false
              thread=`b pid ? tid 7` host=`machine 2` state=`running` cpu=0 since=20 for=10 uncertain=false
        "#]],
    );
}

/// The whole way of a thread: running, in a call, blocked in it, woken, on another CPU; dead.
#[test]
fn threads_and_cpus() {
    check(
        "lane cpu=0
         lane cpu=1
         90  0 thread_fork child_tid=7 child_pid=5 child_comm=a parent_tid=5 parent_pid=5
         100 0 thread_switch prev_tid=5 prev_comm=sh prev_state=0 next_tid=7 next_comm=a
         105 0 syscall_entry syscall=open
         106 0 syscall_exit syscall=open
         110 0 syscall_entry syscall=read
         120 0 irq_entry irq=41 irq_name=ahci
         125 0 softirq_entry vec=4
         130 0 softirq_exit vec=4
         140 0 irq_exit irq=41
         200 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         300 1 thread_waking woken_tid=7
         310 1 thread_wakeup woken_tid=7
         350 1 thread_switch prev_tid=0 next_tid=7 next_comm=b
         360 1 syscall_exit syscall=read
         400 1 thread_switch prev_tid=7 prev_comm=b prev_state=0x20 next_tid=0"
            .replace("0x20", "32")
            .as_str(),
        128,
        &expect![[r#"
            history
              what=`CPU: thread of 0` begin=? end=100 value=5 uncertain=false
              what=`CPU: thread of 0` begin=100 end=200 value=7 uncertain=false
              what=`CPU: thread of 0` begin=200 value=0 uncertain=false
              what=`CPU: thread of 1` begin=? end=350 value=0 uncertain=false
              what=`CPU: thread of 1` begin=350 end=400 value=7 uncertain=false
              what=`CPU: thread of 1` begin=400 value=0 uncertain=false
              what=`thread: state of 5` begin=? end=100 value=`running on 0` uncertain=false
              what=`thread: state of 5` begin=100 value=`preempted` uncertain=false
              what=`thread: state of 7` begin=90 end=100 value=`new` uncertain=false
              what=`thread: state of 7` begin=100 end=200 value=`running on 0` uncertain=false
              what=`thread: state of 7` begin=200 end=300 value=`blocked` uncertain=false
              what=`thread: state of 7` begin=300 end=350 value=`waiting for a CPU` uncertain=false
              what=`thread: state of 7` begin=350 end=400 value=`running on 1` uncertain=false
              what=`CPU: irq of 0` begin=120 end=140 value=`irq 41 ahci` uncertain=false
              what=`thread: call of 7` begin=105 end=106 value=`open` uncertain=false
              what=`thread: call of 7` begin=110 end=360 value=`read` uncertain=false
              what=`CPU: softirq of 0` begin=125 end=130 value=`softirq 4 ?` uncertain=false
              what=`thread: name of 5` begin=100 value=`sh` uncertain=false
              what=`thread: name of 7` begin=90 end=350 value=`a` uncertain=false
              what=`thread: name of 7` begin=350 end=400 value=`b` uncertain=false
              what=`thread: process of 5` begin=90 value=5 uncertain=false
              what=`thread: process of 7` begin=90 end=400 value=5 uncertain=false
            cpus
              cpu=0 thread=`a pid 5 tid 7` call=`read` irq=`irq 41 ahci` softirq=`softirq 4 ?` since=100 for=28 until=200 uncertain=false
              cpu=1 thread=`idle` since=? for=? until=350 uncertain=false
            threads
              thread=`a pid 5 tid 7` state=`running` cpu=0 call=`read` since=100 for=28 until=200 uncertain=false
              thread=`sh pid 5 tid 5` state=`preempted` since=100 for=28 uncertain=false
        "#]],
    );
}

/// States from before the trace, without an end, and impossible ones: a thread on two CPUs, exits
/// of other calls.
#[test]
fn what_was_lost() {
    check(
        "lane cpu=0 hole=130..190
         lane cpu=1
         100 0 syscall_exit syscall=read
         110 0 thread_switch prev_tid=7 prev_state=2 next_tid=8
         120 0 syscall_entry syscall=write
         200 0 syscall_exit syscall=futex
         210 0 thread_switch prev_tid=9 prev_state=1 next_tid=0
         220 1 thread_switch prev_tid=0 next_tid=8
         230 1 syscall_entry syscall=write
         240 1 syscall_entry syscall=read
         250 0 irq_exit irq=3
         260 0 thread_wakeup woken_tid=8
         270 0 thread_wakeup woken_tid=7",
        245,
        &expect![[r#"
            history
              what=`CPU: thread of 0` begin=? end=110 value=7 uncertain=false
              what=`CPU: thread of 0` begin=110 end=210 value=8 uncertain=true
              what=`CPU: thread of 0` begin=210 value=0 uncertain=false
              what=`CPU: thread of 1` begin=? end=220 value=0 uncertain=false
              what=`CPU: thread of 1` begin=220 value=8 uncertain=false
              what=`thread: state of 7` begin=? end=110 value=`running on 0` uncertain=false
              what=`thread: state of 7` begin=110 end=270 value=`uninterruptible` uncertain=false
              what=`thread: state of 7` begin=270 value=`waiting for a CPU` uncertain=false
              what=`thread: state of 8` begin=110 end=220 value=`running on 0` uncertain=true
              what=`thread: state of 8` begin=220 value=`running on 1` uncertain=false
              what=`thread: state of 9` begin=? end=210 value=`running on 0` uncertain=false
              what=`thread: state of 9` begin=210 value=`blocked` uncertain=false
              what=`CPU: irq of 0` begin=? end=250 value=`irq 3 ?` uncertain=false
              what=`thread: call of 7` begin=? end=100 value=`read` uncertain=false
              what=`thread: call of 8` begin=230 end=240 value=`write` uncertain=true
              what=`thread: call of 8` begin=240 value=`read` uncertain=false
              what=`thread: call of 9` begin=120 end=200 value=`write` uncertain=true
            cpus
              cpu=0 thread=`idle` irq=`irq 3 ?` since=210 for=35 uncertain=false
              cpu=1 thread=`? pid ? tid 8` call=`read` since=220 for=25 uncertain=false
            threads
              thread=`? pid ? tid 8` state=`running` cpu=1 call=`read` since=220 for=25 uncertain=false
              thread=`? pid ? tid 9` state=`blocked` since=210 for=35 uncertain=false
              thread=`? pid ? tid 7` state=`uninterruptible` since=110 for=135 until=270 uncertain=true
        "#]],
    );
}

/// Cut anywhere, merged in any order: the same runs, for any trace.
#[test]
fn any_cut_tells_the_same() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut script = String::from("lane cpu=0 hole=100..150\nlane cpu=1\nlane\n");
        for step in 1..=60 {
            let (time, lane) = (step * 10 - random.below(2) * 10, random.below(3));
            // Where nothing was lost, no thread runs on two CPUs at once, and none is made that runs.
            let (one, other) = (lane * 10 + random.below(4), lane * 10 + random.below(4));
            let event = match random.below(12) {
                0 => format!("thread_waking woken_tid={one}"),
                1 => format!("thread_wakeup woken_tid={one} woken_comm=w{other}"),
                2 => format!("thread_fork child_tid={} child_pid={other} child_comm=f{other}", one + 4),
                3 | 4 => format!("syscall_entry syscall=call{}", random.below(2)),
                5 => "syscall_exit".to_owned(),
                6 => format!("syscall_exit syscall=call{}", random.below(2)),
                7 => format!("thread_state known_tid={one} known_comm=w{other} known_pid={other}"),
                8 => format!("irq_entry irq={other}"),
                9 => format!("irq_exit irq={other}"),
                _ => {
                    let state = [0, 1, 2, 32][random.below(4)];
                    format!("thread_switch prev_tid={one} prev_comm=w{one} prev_state={state} next_tid={other}")
                }
            };
            script += &format!("{time} {lane} {event}\n");
        }
        let script = Script::parse(&script);
        let wishes = Wishes::default();
        script.check_cuts(&StatesAnalysis::new(&script.setup(&wishes)), 40);
    }
}
