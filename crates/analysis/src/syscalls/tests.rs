//! Cases of `syscalls`: every class of interval, and threads that wander, die and come again.

use expect_test::{Expect, expect};

use super::Syscalls;
use crate::testing::{Random, Script, text};
use crate::{Analysis, Wishes};

fn check_wishes(script: &str, wishes: &Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let syscalls = Syscalls::new(&script.setup(wishes));
    expect.assert_eq(&text(&syscalls.finish(&script.state(&syscalls)).unwrap()));
    script.check_cuts(&syscalls, 200);
}

fn check(script: &str, by: &[&str], expect: &Expect) {
    let wishes = Wishes { by: by.iter().map(|&by| by.to_owned()).collect(), bins: 3, ..Wishes::default() };
    check_wishes(script, &wishes, expect);
}

/// All tables of a small trace: two calls in one run, one across runs and CPUs.
#[test]
fn calls_are_matched_in_runs_and_across_them() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         5 0 thread_state known_tid=7 known_pid=6 known_comm=old
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=sh
         110 0 syscall_entry syscall=read
         130 0 syscall_exit syscall=read ret=5
         140 0 syscall_entry syscall=read
         150 0 syscall_exit syscall=read ret=-11
         160 0 syscall_entry syscall=futex
         170 0 thread_switch prev_tid=7 prev_comm=sh prev_state=1 next_tid=0
         300 1 thread_switch prev_tid=0 next_tid=7 next_comm=sh
         310 1 syscall_exit syscall=futex ret=0
         320 1 syscall_entry syscall=exit
         330 1 thread_switch prev_tid=7 prev_comm=sh prev_state=16 next_tid=0",
        &[],
        &expect![[r#"
            per-syscall
              syscall=`futex` count=1 errors=0 total=150 min=150 avg=150 max=150 p50=150 p90=150 p99=150 p999=150 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              syscall=`read` count=2 errors=1 total=30 min=10 avg=15 max=20 stdev=7 p50=10 p90=20 p99=20 p999=20 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              syscall=`exit` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
            per-thread
              thread=`sh pid 6 tid 7` incarnation=0 syscall=`futex` count=1 errors=0 total=150 min=150 avg=150 max=150 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=`sh pid 6 tid 7` incarnation=0 syscall=`read` count=2 errors=1 total=30 min=10 avg=15 max=20 stdev=7 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=`sh pid 6 tid 7` incarnation=0 syscall=`exit` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
            errors
              syscall=`read` errno=11 count=1
            slowest
              time=160..310 duration=150 thread=`sh pid 6 tid 7` incarnation=0 syscall=`futex` ret=0
              time=110..130 duration=20 thread=`sh pid 6 tid 7` incarnation=0 syscall=`read` ret=5
              time=140..150 duration=10 thread=`sh pid 6 tid 7` incarnation=0 syscall=`read` ret=-11
            distribution
              low=10 high=25 count=2
              low=25 high=61 count=0
              low=61 high=151 count=1
            uring
            uring-threads
            uring-errors
            uring-slowest
        "#]],
    );
}

/// A recorder has kept slow calls alone: their exits tell when they began, and one without a known begin began before.
#[test]
fn exits_alone_tell_how_long_calls_took() {
    let exits = "30 0 syscall_exit syscall=read ret=5 took_ns=20
         40 0 syscall_exit syscall=read ret=-11 took_ns=30
         50 0 syscall_exit syscall=poll ret=1";
    let expect = expect![[r#"
        per-thread
          thread=`sh pid ? tid 7` incarnation=0 syscall=`read` count=2 errors=1 total=50 min=20 avg=25 max=30 stdev=7 began_before=0 child_returns=0 never_ended=0 lost_inside=0
          thread=`sh pid ? tid 7` incarnation=0 syscall=`poll` count=0 errors=0 total=0 began_before=1 child_returns=0 never_ended=0 lost_inside=0
        slowest
          time=10..40 duration=30 thread=`sh pid ? tid 7` incarnation=0 syscall=`read` ret=-11
          time=10..30 duration=20 thread=`sh pid ? tid 7` incarnation=0 syscall=`read` ret=5
    "#]];
    let switch = "20 0 thread_switch prev_tid=0 next_tid=7 next_comm=sh";
    check(&format!("lane cpu=0 span=0..1000\n{switch}\n{exits}"), &["thread", "slowest"], &expect);
    // An entry anywhere says that calls have entries.
    let entry = "25 0 syscall_entry syscall=read";
    let expect = expect![[r#"
        per-thread
          thread=`sh pid ? tid 7` incarnation=0 syscall=`read` count=1 errors=0 total=5 min=5 avg=5 max=5 began_before=0 child_returns=0 never_ended=0 lost_inside=1
          thread=`sh pid ? tid 7` incarnation=0 syscall=`poll` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
    "#]];
    check(&format!("lane cpu=0 span=0..1000\n{switch}\n{entry}\n{exits}"), &["thread"], &expect);
}

/// Calls that the edges of the trace cut.
#[test]
fn calls_begin_before_and_never_end() {
    check(
        "lane cpu=0 span=0..1000
         10 0 syscall_exit syscall=poll ret=1
         20 0 syscall_entry syscall=read
         30 0 thread_switch prev_tid=7 prev_comm=sh next_tid=8 next_comm=cc
         40 0 syscall_exit syscall=wait4 ret=1
         50 0 thread_switch prev_tid=8 prev_comm=cc next_tid=9 next_comm=ld
         60 0 syscall_entry syscall=write",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=`sh pid ? tid 7` incarnation=0 syscall=`poll` count=0 errors=0 total=0 began_before=1 child_returns=0 never_ended=0 lost_inside=0
              thread=`sh pid ? tid 7` incarnation=0 syscall=`read` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
              thread=`cc pid ? tid 8` incarnation=0 syscall=`wait4` count=0 errors=0 total=0 began_before=1 child_returns=0 never_ended=0 lost_inside=0
              thread=`ld pid ? tid 9` incarnation=0 syscall=`write` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
        "#]],
    );
}

/// A clone returns twice; in the child it was never entered.
#[test]
fn children_return_from_the_call_that_made_them() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=sh
         20 0 syscall_entry syscall=clone
         30 0 thread_fork child_tid=8 child_pid=8 child_comm=sh parent_tid=7 parent_pid=7
         40 1 thread_switch prev_tid=0 next_tid=8 next_comm=sh
         50 1 syscall_exit syscall=clone ret=0
         60 0 syscall_exit syscall=clone ret=8
         70 1 syscall_entry syscall=exit_group
         80 1 thread_switch prev_tid=8 prev_comm=sh prev_state=32 next_tid=0
         90 0 thread_switch prev_tid=7 prev_comm=sh prev_state=1 next_tid=0",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=`sh pid 7 tid 7` incarnation=0 syscall=`clone` count=1 errors=0 total=40 min=40 avg=40 max=40 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=`sh pid 8 tid 8` incarnation=0 syscall=`clone` count=0 errors=0 total=0 began_before=0 child_returns=1 never_ended=0 lost_inside=0
              thread=`sh pid 8 tid 8` incarnation=0 syscall=`exit_group` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
        "#]],
    );
}

/// Entries and exits that do not fit each other; exits without a name fit all.
#[test]
fn what_does_not_fit_was_lost_inside() {
    check(
        "lane cpu=0 span=0..1000
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=sh
         20 0 syscall_entry syscall=read
         30 0 syscall_entry syscall=write
         40 0 syscall_exit syscall=open ret=3
         50 0 syscall_exit syscall=close ret=0
         60 0 syscall_entry syscall=ioctl
         70 0 syscall_exit ret=0
         80 0 syscall_exit ret=0
         90 0 thread_switch prev_tid=7 prev_comm=sh prev_state=1 next_tid=0",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=`sh pid ? tid 7` incarnation=0 syscall=`ioctl` count=1 errors=0 total=10 min=10 avg=10 max=10 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=`sh pid ? tid 7` incarnation=0 syscall=`close` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
              thread=`sh pid ? tid 7` incarnation=0 syscall=`open` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
              thread=`sh pid ? tid 7` incarnation=0 syscall=`read` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
              thread=`sh pid ? tid 7` incarnation=0 syscall=`write` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
              thread=`sh pid ? tid 7` incarnation=0 count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
        "#]],
    );
}

/// A hole of this CPU makes calls around it doubtful; a hole of another CPU only calls that left
/// this one.
#[test]
fn holes_doubt_what_they_may_hold() {
    check(
        "lane cpu=0 span=0..1000 hole=500..510 lost=1
         lane cpu=1 span=0..1000 hole=120..130 lost=1
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=sh
         110 0 syscall_entry syscall=read
         140 0 syscall_exit syscall=read ret=1
         150 0 syscall_entry syscall=poll
         160 0 thread_switch prev_tid=7 prev_comm=sh prev_state=1 next_tid=0
         200 0 thread_switch prev_tid=0 next_tid=7 next_comm=sh
         210 0 syscall_exit syscall=poll ret=1
         220 0 syscall_entry syscall=futex
         230 0 thread_switch prev_tid=7 prev_comm=sh prev_state=1 next_tid=0
         600 0 thread_switch prev_tid=0 next_tid=7 next_comm=sh
         610 0 syscall_exit syscall=futex ret=1
         620 0 syscall_entry syscall=pause
         630 0 thread_switch prev_tid=7 prev_comm=sh prev_state=1 next_tid=0
         700 1 thread_switch prev_tid=8 prev_comm=cc prev_state=1 next_tid=9
         710 1 syscall_exit syscall=wait4 ret=0
         720 1 thread_switch prev_tid=9 prev_comm=ld prev_state=1 next_tid=0",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=`sh pid ? tid 7` incarnation=0 syscall=`poll` count=1 errors=0 total=60 min=60 avg=60 max=60 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=`sh pid ? tid 7` incarnation=0 syscall=`read` count=1 errors=0 total=30 min=30 avg=30 max=30 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=`sh pid ? tid 7` incarnation=0 syscall=`futex` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
              thread=`sh pid ? tid 7` incarnation=0 syscall=`pause` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
              thread=`ld pid ? tid 9` incarnation=0 syscall=`wait4` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
        "#]],
    );
}

/// The thread before a hole is known if it is the one behind the hole: calls in the hole are its
/// own too. The thread that wrote before the first switch is unknown, and so is the one that polled
/// when 9 is found in the place of 8; behind the hole it is 9.
#[test]
fn holes_cut_runs() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000 hole=300..500 lost=1
         lane cpu=2 span=0..1000 hole=300..500 lost=1
         10 1 syscall_entry syscall=write
         100 0 syscall_entry syscall=read
         250 0 syscall_exit syscall=read ret=1
         260 0 syscall_entry syscall=read
         270 2 thread_switch prev_tid=0 next_tid=8
         280 2 syscall_entry syscall=poll
         290 2 syscall_exit syscall=poll ret=0
         350 1 syscall_entry syscall=read
         450 1 syscall_exit syscall=read ret=1
         550 1 thread_switch prev_tid=6 prev_state=1 next_tid=0
         560 2 syscall_entry syscall=open
         570 2 syscall_exit syscall=open ret=3
         580 2 thread_switch prev_tid=9 next_tid=8
         590 2 syscall_entry syscall=close
         600 0 syscall_exit syscall=read ret=1
         610 0 thread_switch prev_tid=5 next_tid=7",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=`? pid ? tid 5` incarnation=0 syscall=`read` count=2 errors=0 total=490 min=150 avg=245 max=340 stdev=134 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=? syscall=`poll` count=1 errors=0 total=10 min=10 avg=10 max=10 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=`? pid ? tid 9` incarnation=0 syscall=`open` count=1 errors=0 total=10 min=10 avg=10 max=10 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=? syscall=`write` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
              thread=`? pid ? tid 6` incarnation=0 syscall=`read` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
              thread=`? pid ? tid 8` incarnation=0 syscall=`close` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
        "#]],
    );
}

/// The number of a dead thread, and of one without a visible death, belongs to another thread from
/// then on.
#[test]
fn numbers_of_threads_are_used_again() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=old
         110 0 syscall_entry syscall=exit
         120 0 thread_switch prev_tid=7 prev_comm=old prev_state=16 next_tid=0
         130 1 thread_fork child_tid=7 child_comm=new
         140 1 thread_switch prev_tid=0 next_tid=7 next_comm=new
         150 1 syscall_exit syscall=clone ret=0
         160 1 syscall_entry syscall=exit
         165 0 thread_fork child_tid=7 child_comm=third
         170 1 thread_switch prev_tid=7 prev_comm=new prev_state=16 next_tid=0
         180 0 thread_switch prev_tid=0 next_tid=7 next_comm=third
         190 0 syscall_exit syscall=clone ret=0
         200 0 thread_switch prev_tid=7 prev_comm=third prev_state=1 next_tid=0",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=`old pid ? tid 7` incarnation=0 syscall=`exit` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
              thread=`new pid ? tid 7` incarnation=1 syscall=`clone` count=0 errors=0 total=0 began_before=0 child_returns=1 never_ended=0 lost_inside=0
              thread=`new pid ? tid 7` incarnation=1 syscall=`exit` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
              thread=`third pid ? tid 7` incarnation=2 syscall=`clone` count=0 errors=0 total=0 began_before=0 child_returns=1 never_ended=0 lost_inside=0
        "#]],
    );
}

/// A CPU without switches: the threads of these calls are unknown, but the calls count.
#[test]
fn calls_of_nobody_are_counted() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         10 0 syscall_entry syscall=read
         20 0 syscall_exit syscall=read ret=1
         30 1 thread_switch prev_tid=5 next_tid=6
         40 1 thread_switch prev_tid=6 next_tid=0
         50 1 syscall_entry syscall=open
         60 0 syscall_entry syscall=write",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=? syscall=`read` count=1 errors=0 total=10 min=10 avg=10 max=10 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=? syscall=`open` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
              thread=? syscall=`write` count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=1 lost_inside=0
        "#]],
    );
}

/// Without switches the context says the thread.
#[test]
fn threads_are_known_by_contexts() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         10 0 syscall_entry syscall=read @tid=7 @pid=6 @comm=sh
         15 0 syscall_entry syscall=poll @tid=8
         20 1 syscall_exit syscall=read ret=1 @tid=7
         30 1 syscall_exit syscall=poll ret=1 @tid=8
         40 1 syscall_exit syscall=poll ret=1 @tid=9",
        &["thread"],
        &expect![[r#"
            per-thread
              thread=`? pid ? tid 8` incarnation=0 syscall=`poll` count=1 errors=0 total=15 min=15 avg=15 max=15 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=`sh pid 6 tid 7` incarnation=0 syscall=`read` count=1 errors=0 total=10 min=10 avg=10 max=10 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              thread=`? pid ? tid 9` incarnation=0 syscall=`poll` count=0 errors=0 total=0 began_before=1 child_returns=0 never_ended=0 lost_inside=0
        "#]],
    );
}

/// Calls that only have numbers are called by them.
#[test]
fn calls_without_names_have_numbers() {
    check(
        "lane cpu=0 span=0..1000
         10 0 thread_switch prev_tid=0 next_tid=7
         20 0 syscall_entry number=39
         30 0 syscall_exit number=39 ret=7
         40 0 syscall_exit number=-1 ret=7
         50 0 thread_switch prev_tid=7 next_tid=0",
        &["syscall"],
        &expect![[r#"
            per-syscall
              syscall=`39` count=1 errors=0 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              count=0 errors=0 total=0 began_before=0 child_returns=0 never_ended=0 lost_inside=1
        "#]],
    );
}

/// By name, by pattern, and by number where calls have no names.
#[test]
fn names_choose_calls() {
    let script = "
        lane cpu=0 span=0..1000
        5 0 thread_switch prev_tid=0 next_tid=7 next_comm=sh
        10 0 syscall_entry syscall=read
        20 0 syscall_exit syscall=read ret=1
        30 0 syscall_entry syscall=readv
        34 0 syscall_exit syscall=readv ret=1
        40 0 syscall_entry syscall=poll
        90 0 syscall_exit syscall=poll ret=-4
        100 0 syscall_entry number=12
        103 0 syscall_exit number=12 ret=0";
    let wishes = |names: &[&str]| Wishes {
        by: vec!["syscall".to_owned(), "slowest".to_owned()],
        names: names.iter().map(|&name| name.to_owned()).collect(),
        ..Wishes::default()
    };
    check_wishes(
        script,
        &wishes(&["read"]),
        &expect![[r#"
        per-syscall
          syscall=`read` count=1 errors=0 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 began_before=0 child_returns=0 never_ended=0 lost_inside=0
        slowest
          time=10..20 duration=10 thread=`sh pid ? tid 7` incarnation=0 syscall=`read` ret=1
    "#]],
    );
    check_wishes(
        script,
        &wishes(&["read*", "12"]),
        &expect![[r#"
        per-syscall
          syscall=`read` count=1 errors=0 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 began_before=0 child_returns=0 never_ended=0 lost_inside=0
          syscall=`readv` count=1 errors=0 total=4 min=4 avg=4 max=4 p50=4 p90=4 p99=4 p999=4 began_before=0 child_returns=0 never_ended=0 lost_inside=0
          syscall=`12` count=1 errors=0 total=3 min=3 avg=3 max=3 p50=3 p90=3 p99=3 p999=3 began_before=0 child_returns=0 never_ended=0 lost_inside=0
        slowest
          time=10..20 duration=10 thread=`sh pid ? tid 7` incarnation=0 syscall=`read` ret=1
          time=30..34 duration=4 thread=`sh pid ? tid 7` incarnation=0 syscall=`readv` ret=1
          time=100..103 duration=3 thread=`sh pid ? tid 7` incarnation=0 syscall=`12` ret=0
    "#]],
    );
    check_wishes(
        script,
        &wishes(&["gone"]),
        &expect![[r#"
        per-syscall
        slowest
    "#]],
    );
}

/// Only some threads, only calls of some length: the other tables are about those alone.
#[test]
fn wishes_choose_calls() {
    let wishes = Wishes {
        tids: vec![7],
        min_ns: Some(15),
        top: Some(2),
        by: ["syscall", "error", "slowest"].map(str::to_owned).into(),
        ..Wishes::default()
    };
    check_wishes(
        "lane cpu=0 span=0..1000
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=sh
         20 0 syscall_entry syscall=read
         30 0 syscall_exit syscall=read ret=-4
         40 0 syscall_entry syscall=read
         60 0 syscall_exit syscall=read ret=-4
         70 0 syscall_entry syscall=open
         90 0 syscall_exit syscall=open ret=3
         100 0 thread_switch prev_tid=7 prev_comm=sh next_tid=8 next_comm=cc
         110 0 syscall_entry syscall=read
         190 0 syscall_exit syscall=read ret=-4
         200 0 thread_switch prev_tid=8 prev_comm=cc next_tid=0",
        &wishes,
        &expect![[r#"
            per-syscall
              syscall=`open` count=1 errors=0 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 began_before=0 child_returns=0 never_ended=0 lost_inside=0
              syscall=`read` count=1 errors=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 began_before=0 child_returns=0 never_ended=0 lost_inside=0
            errors
              syscall=`read` errno=4 count=1
            slowest
              time=40..60 duration=20 thread=`sh pid ? tid 7` incarnation=0 syscall=`read` ret=-4
              time=70..90 duration=20 thread=`sh pid ? tid 7` incarnation=0 syscall=`open` ret=3
        "#]],
    );
}

/// Random threads on random CPUs, with switches, deaths, forks and holes that make no sense: cutting changes nothing.
#[test]
fn cuts_change_nothing() {
    for seed in 0..30 {
        let script = Script::parse(&random_script(seed, &["read", "write", "futex"], false));
        for wishes in [Wishes::default(), Wishes { tids: vec![1, 2, 3], top: Some(3), ..Wishes::default() }] {
            let syscalls = Syscalls::new(&script.setup(&wishes));
            script.check_cuts(&syscalls, 10);
        }
    }
}

/// A trace of nonsense.
pub(crate) fn random_script(seed: u64, calls: &[&str], is_sane: bool) -> String {
    let mut random = Random(seed);
    let lanes = 1 + random.below(3);
    let tids = 2 + random.below(5);
    let mut script: String = (0..lanes)
        .map(|lane| {
            let hole = if seed.is_multiple_of(3) {
                String::new()
            } else {
                format!("hole={0}..{1}", 900 * lane, 900 * lane + 30)
            };
            format!("lane cpu={lane} span=0..3000 {hole} lost=?\n")
        })
        .collect();
    // Most of the time switches make sense.
    let sense = [2, 8, 1000][random.below(3)];
    // Without losses, and if that is relied on, they always do.
    let is_sane = is_sane && seed.is_multiple_of(3);
    let mut current: Vec<usize> = (0..lanes).map(|lane| if is_sane && lane < tids { lane + 1 } else { 0 }).collect();
    let mut time = 0;
    for _ in 0..220 {
        // At one time, lanes come in their order, which need not make sense.
        time += i64::from(is_sane) + random.below(15) as i64;
        let lane = random.below(lanes);
        match random.below(10) {
            0..3 => {
                let prev = if random.below(sense) == 0 && !is_sane { random.below(tids) } else { current[lane] };
                let mut next = if random.below(3) == 0 { 0 } else { 1 + random.below(tids) };
                if is_sane && current.contains(&next) {
                    next = 0;
                }
                let state = [0, 1, 1, 1, 0x10][random.below(5)];
                script += &format!(
                    "{time} {lane} thread_switch prev_tid={prev} prev_state={state} prev_comm=n{prev} next_tid={next} next_comm=n{next}\n"
                );
                current[lane] = next;
            }
            3..6 => {
                let call = calls[random.below(calls.len())];
                let fd = random.below(4);
                script += &format!("{time} {lane} syscall_entry syscall={call} fd={fd} path=/p{fd}\n");
            }
            6..9 => {
                let call = calls[random.below(calls.len())];
                let name = if random.below(4) == 0 { String::new() } else { format!("syscall={call}") };
                let ret = random.below(6) as i64 - 1;
                script += &format!("{time} {lane} syscall_exit {name} ret={ret}\n");
            }
            _ => {
                let (tid, pid) = (1 + random.below(tids), 1 + random.below(3));
                if random.below(2) == 0 && !(is_sane && current.contains(&tid)) {
                    let parent = 1 + random.below(tids);
                    script += &format!(
                        "{time} {lane} thread_fork child_tid={tid} child_pid={pid} child_comm=n{tid} parent_tid={parent} parent_pid={pid}\n"
                    );
                } else {
                    script += &format!("{time} {lane} thread_state known_tid={tid} known_pid={pid}\n");
                }
            }
        }
    }
    script
}
