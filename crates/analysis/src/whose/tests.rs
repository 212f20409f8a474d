//! Cases of `threads`: the owners of events, and how certain they are.

use expect_test::{Expect, expect};

use super::WhoseAnalysis;
use crate::testing::{Random, Script, nonsense, text};
use crate::{Analysis, Wishes};

fn check_with(script: &str, wishes: &Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let whose = WhoseAnalysis::new(&script.setup(wishes));
    expect.assert_eq(&text(&whose.finish(&script.state(&whose)).unwrap()));
    script.check_cuts(&whose, 200);
}

fn check(script: &str, by: &[&str], expect: &Expect) {
    let by = by.iter().map(|&by| by.to_owned()).collect();
    check_with(script, &Wishes { by, ..Wishes::default() }, expect);
}

/// Events are of the thread that runs, from the trace's begin to its end; a switch is of the one that it ends.
#[test]
fn events_are_of_who_runs() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         10 0 'timer'
         100 0 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=0
         150 0 'timer'
         160 0 'timer'
         200 0 thread_switch prev_tid=0 next_tid=8 next_comm=cc
         300 0 syscall_entry syscall=read
         310 0 syscall_exit syscall=read ret=1
         400 1 thread_switch prev_tid=0 next_tid=7 next_comm=make
         450 1 'timer'
         500 1 thread_fork parent_tid=7 parent_pid=7 child_tid=9 child_pid=9 child_comm=make
         600 0 thread_switch prev_tid=8 prev_comm=cc next_tid=9 next_comm=sh
         900 0 'timer'",
        &[],
        &expect![[r#"
            per-thread
              thread=`make pid 7 tid 7` incarnation=0 count=4
              thread=`cc pid ? tid 8` incarnation=0 count=3
              thread=`sh pid 9 tid 9` incarnation=0 count=1
              thread=`idle pid 0 tid 0` incarnation=0 count=4
            per-process
              process=`make pid 7` threads=1 count=4
              process=`sh pid 9` threads=1 count=1
              process=`idle pid 0` threads=0 count=4
              process=? threads=1 count=3
            per-application
              application=`make` processes=1 threads=1 count=4
              application=`cc` processes=0 threads=1 count=3
              application=`sh` processes=1 threads=1 count=1
              application=`idle` processes=0 threads=0 count=4
            per-cpu
              cpu=0 count=9
              cpu=1 count=3
            total
              count=12 idle=4 unknown=0 lost=0
        "#]],
    );
}

/// Where events name their thread, the running thread does not matter.
#[test]
fn events_that_say_whose_they_are() {
    check(
        "lane cpu=0 span=0..1000
         10 0 'a' @tid=7 @pid=5 @comm=worker
         100 0 thread_switch prev_tid=8 next_tid=0 @tid=8 @comm=main
         150 0 'a' @tid=0
         200 0 'a' @tid=7
         210 0 'a' @pid=5
         220 0 'a' @tid=5 @comm=server",
        &[],
        &expect![[r#"
            per-thread
              thread=`worker pid 5 tid 7` incarnation=0 count=2
              thread=`server pid ? tid 5` incarnation=0 count=1
              thread=`main pid ? tid 8` incarnation=0 count=1
              thread=`idle pid 0 tid 0` incarnation=0 count=2
            per-process
              process=`? pid 5` threads=1 count=2
              process=`idle pid 0` threads=0 count=2
              process=? threads=2 count=2
            per-application
              application=`worker` processes=1 threads=1 count=2
              application=`main` processes=0 threads=1 count=1
              application=`server` processes=0 threads=1 count=1
              application=`idle` processes=0 threads=0 count=2
            per-cpu
              cpu=0 count=6
            total
              count=6 idle=2 unknown=0 lost=0
        "#]],
    );
}

/// A number that is used again is another thread, with counts of its own.
#[test]
fn numbers_that_are_used_again() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         50 0 'a' @tid=7
         100 0 'a'
         200 0 thread_switch prev_tid=7 prev_comm=old prev_state=16 next_tid=0
         300 1 thread_switch prev_tid=3 prev_comm=sh next_tid=7 next_comm=new
         310 1 'a'
         320 0 'a' @tid=7
         400 1 thread_switch prev_tid=7 prev_comm=new prev_state=16 next_tid=0
         500 0 thread_fork parent_tid=3 parent_pid=3 child_tid=7 child_pid=7 child_comm=sh
         510 0 'a' @tid=7",
        &["thread", "application"],
        &expect![[r#"
            per-thread
              thread=`old pid ? tid 7` incarnation=0 count=3
              thread=`new pid ? tid 7` incarnation=1 count=3
              thread=`sh pid 3 tid 3` incarnation=0 count=1
              thread=`sh pid 7 tid 7` incarnation=2 count=1
              thread=`idle pid 0 tid 0` incarnation=0 count=1
            per-application
              application=`new` processes=0 threads=1 count=3
              application=`old` processes=0 threads=1 count=3
              application=`sh` processes=2 threads=2 count=2
              application=`idle` processes=0 threads=0 count=1
            total
              count=9 idle=1 unknown=0 lost=0
        "#]],
    );
}

/// Events behind a hole are of the thread that a switch names on the same side, or in doubt.
#[test]
fn holes_give_bounds() {
    check(
        "lane cpu=0 span=0..1000 hole=200..300 lost=3
         lane cpu=1 span=0..1000
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         110 0 'x'
         250 0 'x'
         310 0 'x'
         400 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=8 next_comm=b
         410 0 'x'
         500 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         510 1 'x'",
        &[],
        &expect![[r#"
            per-thread
              thread=`a pid ? tid 7` incarnation=0 count=4[3,10]
              thread=`b pid ? tid 8` incarnation=0 count=2[0,7]
              thread=`idle pid 0 tid 0` incarnation=0 count=1[1,8]
              thread=? count=1
            per-process
              process=`idle pid 0` threads=0 count=1[1,8]
              process=? threads=2 count=7
            per-application
              application=`a` processes=0 threads=1 count=4[3,10]
              application=`b` processes=0 threads=1 count=2[0,7]
              application=`idle` processes=0 threads=0 count=1[1,8]
              application=? processes=0 threads=0 count=1
            per-cpu
              cpu=0 count=7[7,10]
              cpu=1 count=1
            total
              count=8[8,11] idle=1[1,8] unknown=1 lost=3
        "#]],
    );
}

/// Programs name themselves; an event that names only a process is of none of its threads for
/// certain.
#[test]
fn programs_without_a_kernel() {
    check(
        "lane span=0..1000 lost=2
         lane cpu=1 span=0..1000
         10 0 'app:a' @tid=11 @pid=10 @comm=worker
         20 1 'app:a' @tid=11 @pid=10 @comm=worker/2
         20 0 'app:b' @tid=12 @pid=10
         30 0 'app:b' @pid=10
         40 1 'app:b' @pid=20 @comm=other
         50 0 'app:b'
         60 1 'app:a' @tid=0
         70 1 'app:a' @tid=13 @comm=stray",
        &[],
        &expect![[r#"
            per-thread
              thread=`worker/2 pid 10 tid 11` incarnation=0 count=2[2,7]
              thread=`? pid 10 tid 12` incarnation=0 count=1[1,6]
              thread=`stray pid ? tid 13` incarnation=0 count=1[1,6]
              thread=`idle pid 0 tid 0` incarnation=0 count=1[1,6]
              thread=? count=3
            per-process
              process=`? pid 10` threads=2 count=4[4,7]
              process=`? pid 20` threads=0 count=1[1,4]
              process=`idle pid 0` threads=0 count=1[1,4]
              process=? threads=1 count=2
            per-application
              application=`worker` processes=1 threads=2 count=4[4,7]
              application=`other` processes=1 threads=0 count=1[1,4]
              application=`stray` processes=0 threads=1 count=1[1,4]
              application=`idle` processes=0 threads=0 count=1[1,4]
              application=? processes=0 threads=0 count=1
            per-cpu
              cpu=1 count=4
              count=4[4,6]
            total
              count=8[8,10] idle=1[1,6] unknown=3 lost=2
        "#]],
    );
}

/// Only the selection is counted: CPUs; rows of threads are shown by number and name.
#[test]
fn some_cpus_and_some_threads() {
    let script = "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 thread_switch prev_tid=7 prev_comm=make next_tid=8 next_comm=cc
         110 0 'x'
         400 1 thread_switch prev_tid=9 prev_comm=sh next_tid=7 next_comm=make
         450 1 'x'";
    let wishes = Wishes { cpus: vec![0], ..Wishes::default() };
    check_with(
        script,
        &wishes,
        &expect![[r#"
        per-thread
          thread=`make pid ? tid 7` incarnation=0 count=1
          thread=`cc pid ? tid 8` incarnation=0 count=1
        per-process
          process=? threads=2 count=2
        per-application
          application=`cc` processes=0 threads=1 count=1
          application=`make` processes=0 threads=1 count=1
        per-cpu
          cpu=0 count=2
        total
          count=2 idle=0 unknown=0 lost=0
    "#]],
    );
    let wishes = Wishes { tids: vec![8], ..Wishes::default() };
    check_with(
        script,
        &wishes,
        &expect![[r#"
        per-thread
          thread=`cc pid ? tid 8` incarnation=0 count=1
        per-process
          process=? threads=1 count=1
        per-application
          application=`cc` processes=0 threads=1 count=1
        per-cpu
          cpu=0 count=2
          cpu=1 count=2
        total
          count=4 idle=0 unknown=0 lost=0
    "#]],
    );
    let wishes = Wishes { comms: vec!["m*".to_owned()], top: Some(1), ..Wishes::default() };
    check_with(
        script,
        &wishes,
        &expect![[r#"
        per-thread
          thread=`make pid ? tid 7` incarnation=0 count=2
        per-process
          process=? threads=3 count=4
        per-application
          application=`make` processes=0 threads=1 count=2
        per-cpu
          cpu=0 count=2
          cpu=1 count=2
        total
          count=4 idle=0 unknown=0 lost=0
    "#]],
    );
}

/// However it is cut, a contradictory trace gives the same answer.
#[test]
fn nonsense_is_cut_anywhere() {
    for seed in 0..60 {
        let script = Script::parse(&nonsense(&mut Random(seed)));
        let wishes = Wishes::default();
        script.check_cuts(&WhoseAnalysis::new(&script.setup(&wishes)), 10);
        let wishes = Wishes { tids: vec![0, 2, 4], ..Wishes::default() };
        script.check_cuts(&WhoseAnalysis::new(&script.setup(&wishes)), 10);
    }
}
