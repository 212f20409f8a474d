//! Cases of `memory`: the owners of pages, and how certain they are.

use expect_test::{Expect, expect};

use super::MemoryAnalysis;
use crate::testing::{Random, Script, nonsense, text};
use crate::{Analysis, Wishes};

fn check_with(script: &str, wishes: &Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let memory = MemoryAnalysis::new(&script.setup(wishes));
    expect.assert_eq(&text(&memory.finish(&script.state(&memory)).unwrap()));
    script.check_cuts(&memory, 200);
}

fn check(script: &str, by: &[&str], expect: &Expect) {
    let by = by.iter().map(|&by| by.to_owned()).collect();
    check_with(script, &Wishes { by, bins: 2, ..Wishes::default() }, expect);
}

/// Pages are of the thread that runs, from the trace's begin to its end; those of an idle CPU are a row.
#[test]
fn pages_are_of_who_runs() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         10 0 page_free order=2
         100 0 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=0
         150 0 page_alloc order=0
         200 0 thread_switch prev_tid=0 next_tid=8 next_comm=cc
         300 0 page_alloc order=3
         310 0 page_alloc order=0
         400 1 thread_switch prev_tid=0 next_tid=7 next_comm=make
         450 1 page_alloc order=1
         500 1 thread_fork parent_tid=7 parent_pid=7 child_tid=9 child_pid=9 child_comm=sh
         600 0 page_free order=0
         900 1 page_free order=1",
        &[],
        &expect![[r#"
            total
              allocations=4 allocated=12 frees=3 freed=7 relative=5 lowest=-4 highest=8
            per-thread
              thread=`cc pid ? tid 8` incarnation=0 allocations=2 allocated=9 frees=1 freed=1 relative=8
              thread=`make pid 7 tid 7` incarnation=0 allocations=1 allocated=2 frees=2 freed=6 relative=-4
              thread=`idle pid 0 tid 0` incarnation=0 allocations=1 allocated=1 frees=0 freed=0 relative=1
            per-process
              process=`make pid 7` threads=1 allocations=1 allocated=2 frees=2 freed=6 relative=-4
              process=`idle pid 0` threads=0 allocations=1 allocated=1 frees=0 freed=0 relative=1
              process=? threads=1 allocations=2 allocated=9 frees=1 freed=1 relative=8
            per-cpu
              cpu=0 allocations=3 allocated=10 frees=2 freed=5 relative=5
              cpu=1 allocations=1 allocated=2 frees=1 freed=2 relative=0
            course
              time=0..500 allocated=12 freed=4 relative=8 held=12
              time=500..1000 allocated=0 freed=3 relative=5 held=9
        "#]],
    );
}

/// Where events name their thread, the running thread does not matter.
#[test]
fn events_that_say_whose_they_are() {
    check(
        "lane cpu=0 span=0..1000
         10 0 page_alloc order=0 @tid=7 @pid=5
         100 0 thread_switch prev_tid=8 next_tid=0
         150 0 page_alloc order=1 @tid=0
         200 0 page_free @tid=7",
        &["thread"],
        &expect![[r#"
            total
              allocations=2 allocated=3 frees=1 freed=1[1,none] relative=2 lowest=0 highest=3
            per-thread
              thread=`? pid ? tid 7` incarnation=0 allocations=1 allocated=1 frees=1 freed=1[1,none] relative=0
              thread=`idle pid 0 tid 0` incarnation=0 allocations=1 allocated=2 frees=0 freed=0 relative=2
            course
              time=0..500 allocated=3 freed=1 relative=2 held=2
              time=500..1000 allocated=0 freed=0 relative=2 held=2
        "#]],
    );
}

/// Pages behind a hole are of the thread that a switch names on the same side, or in doubt.
#[test]
fn holes_give_bounds() {
    check(
        "lane cpu=0 span=0..1000 hole=200..300 lost=0
         lane cpu=1 span=0..1000
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         110 0 page_alloc order=0
         250 0 page_alloc order=2
         310 0 page_alloc order=3
         400 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=8 next_comm=b
         410 0 page_alloc order=0
         500 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0
         510 1 page_free order=0",
        &["thread", "process"],
        &expect![[r#"
            total
              allocations=4 allocated=14 frees=1 freed=1 relative=13 lowest=0 highest=14
            per-thread
              thread=`a pid ? tid 7` incarnation=0 allocations=3[2,4] allocated=13[9,14] frees=0[0,1] freed=0[0,1] relative=13
              thread=`b pid ? tid 8` incarnation=0 allocations=1[0,2] allocated=1[0,5] frees=0[0,1] freed=0[0,1] relative=1
              thread=? allocations=0 allocated=0 frees=1 freed=1 relative=-1
            per-process
              process=? threads=2 allocations=4 allocated=14 frees=1 freed=1 relative=13
            course
              time=0..500 allocated=14[14,none] freed=0[0,none] relative=14 held=14[0,none]
              time=500..1000 allocated=0 freed=1 relative=13 held=13[0,none]
        "#]],
    );
}

/// Between two holes the thread is unknown; lost events may be of any size.
#[test]
fn lost_events_bound_no_pages() {
    check(
        "lane cpu=0 span=0..1000 hole=200..300 hole=500..600 lost=3
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=a
         110 0 page_alloc order=0
         400 0 page_alloc order=1
         700 0 page_alloc order=2
         800 0 thread_switch prev_tid=7 prev_comm=a prev_state=1 next_tid=0",
        &["thread", "cpu"],
        &expect![[r#"
            total
              allocations=3[3,6] allocated=7[7,none] frees=0[0,3] freed=0[0,none] relative=7 lowest=0 highest=7
            per-thread
              thread=`a pid ? tid 7` incarnation=0 allocations=3[2,6] allocated=7[5,none] frees=0[0,3] freed=0[0,none] relative=7
            per-cpu
              cpu=0 allocations=3[3,6] allocated=7[7,none] frees=0[0,3] freed=0[0,none] relative=7
            course
              time=0..500 allocated=3[3,none] freed=0[0,none] relative=3 held=3[0,none]
              time=500..1000 allocated=4[4,none] freed=0[0,none] relative=7 held=7[0,none]
        "#]],
    );
}

/// A number that is given to another thread is another row.
#[test]
fn numbers_are_used_again() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         100 0 thread_switch prev_tid=0 next_tid=7 next_comm=old
         110 0 page_alloc order=0
         140 0 thread_switch prev_tid=7 prev_comm=old prev_state=16 next_tid=0
         145 1 thread_fork child_tid=7 child_pid=7 child_comm=sh
         150 1 thread_switch prev_tid=0 next_tid=7 next_comm=new
         160 1 page_alloc order=2
         170 1 thread_switch prev_tid=7 prev_comm=new prev_state=16 next_tid=0
         180 1 thread_switch prev_tid=0 next_tid=7 next_comm=third
         190 1 page_alloc order=3",
        &["thread"],
        &expect![[r#"
            total
              allocations=3 allocated=13 frees=0 freed=0 relative=13 lowest=0 highest=13
            per-thread
              thread=`third pid ? tid 7` incarnation=2 allocations=1 allocated=8 frees=0 freed=0 relative=8
              thread=`new pid 7 tid 7` incarnation=1 allocations=1 allocated=4 frees=0 freed=0 relative=4
              thread=`old pid ? tid 7` incarnation=0 allocations=1 allocated=1 frees=0 freed=0 relative=1
            course
              time=0..500 allocated=13 freed=0 relative=13 held=13
              time=500..1000 allocated=0 freed=0 relative=13 held=13
        "#]],
    );
}

/// How far it went down and up, between events of all CPUs.
#[test]
fn the_lowest_is_nothing() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         10 0 page_alloc order=1
         20 1 page_free order=3
         30 0 page_alloc order=4
         600 1 page_free order=0
         610 0 page_free order=3
         700 0 page_alloc order=0",
        &["cpu"],
        &expect![[r#"
            total
              allocations=3 allocated=19 frees=3 freed=17 relative=2 lowest=-6 highest=10
            per-cpu
              cpu=0 allocations=3 allocated=19 frees=1 freed=8 relative=11
              cpu=1 allocations=0 allocated=0 frees=2 freed=9 relative=-9
            course
              time=0..500 allocated=18 freed=8 relative=10 held=16
              time=500..1000 allocated=1 freed=9 relative=2 held=8
        "#]],
    );
}

/// Only some CPUs, and the rows that use most.
#[test]
fn wishes_narrow() {
    let wishes = Wishes { cpus: vec![0], top: Some(1), bins: 2, ..Wishes::default() };
    check_with(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         10 0 page_alloc order=1
         20 1 page_free order=3
         30 0 thread_switch prev_tid=5 next_tid=6 next_comm=b
         40 0 page_alloc order=4
         50 1 thread_switch prev_tid=6 next_tid=0",
        &wishes,
        &expect![[r#"
            total
              allocations=2 allocated=18 frees=0 freed=0 relative=18 lowest=0 highest=18
            per-thread
              thread=`b pid ? tid 6` incarnation=0 allocations=1 allocated=16 frees=0 freed=0 relative=16
              and 1 more
            per-process
              process=? threads=2 allocations=2 allocated=18 frees=0 freed=0 relative=18
            per-cpu
              cpu=0 allocations=2 allocated=18 frees=0 freed=0 relative=18
            course
              time=0..500 allocated=18 freed=0 relative=18 held=18
              time=500..1000 allocated=0 freed=0 relative=18 held=18
        "#]],
    );
}

/// Sizes that no kernel has count as unknown.
#[test]
fn sizes_that_are_none() {
    check(
        "lane cpu=0 span=0..1000
         10 0 page_alloc order=32
         20 0 page_free order=-1
         30 0 page_alloc order=31
         40 0 page_alloc order=31
         50 0 page_alloc order=31",
        &["cpu"],
        &expect![[r#"
            total
              allocations=4 allocated=6442450945[6442450945,none] frees=1 freed=1[1,none] relative=6442450944 lowest=0 highest=6442450944
            per-cpu
              cpu=0 allocations=4 allocated=6442450945[6442450945,none] frees=1 freed=1[1,none] relative=6442450944
            course
              time=0..500 allocated=6442450945 freed=1 relative=6442450944 held=6442450944
              time=500..1000 allocated=0 freed=0 relative=6442450944 held=6442450944
        "#]],
    );
}

/// Random threads on random CPUs: cutting changes nothing.
#[test]
fn cuts_change_nothing() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let lanes = 1 + random.below(3);
        let mut script: String = (0..lanes)
            .map(|lane| {
                let holes: Vec<String> = (0..random.below(4))
                    .map(|hole| 700 * hole + 90 * lane)
                    .map(|at| format!("hole={at}..{}", at + 80))
                    .collect();
                format!("lane cpu={lane} span=0..3000 {} lost=?\n", holes.join(" "))
            })
            .collect();
        let mut current = vec![0; lanes];
        let mut free: Vec<i32> = (1..9).collect();
        for time in 1..150 {
            let lane = random.below(lanes);
            if random.below(2) == 0 {
                let (role, order) = (["page_alloc", "page_free"][random.below(2)], random.below(4));
                let tid = if random.below(5) == 0 { format!("@tid={}", random.below(9)) } else { String::new() };
                script += &format!("{} {lane} {role} order={order} {tid}\n", time * 20);
                continue;
            }
            let prev = current[lane];
            let next =
                if free.is_empty() || random.below(3) == 0 { 0 } else { free.swap_remove(random.below(free.len())) };
            if random.below(12) == 0 && next != 0 {
                script += &format!("{} {lane} thread_fork child_tid={next} child_pid={next}\n", time * 20 - 1);
            }
            let state = [0, 1, 2, 0x40, 0x20][random.below(5)];
            // Now and then switches are missing.
            if random.below(8) > 0 {
                script += &format!(
                    "{} {lane} thread_switch prev_tid={prev} prev_state={state} next_tid={next} next_comm=n{next}\n",
                    time * 20
                );
            }
            current[lane] = next;
            free.extend((prev != 0).then_some(prev));
        }
        let script = Script::parse(&script);
        let wishes = Wishes { top: (seed % 2 == 0).then_some(3), ..Wishes::default() };
        script.check_cuts(&MemoryAnalysis::new(&script.setup(&wishes)), 20);
    }
}

/// The same where everything contradicts everything.
#[test]
fn nonsense_is_the_same_wherever_it_is_cut() {
    for seed in 0..400 {
        let script = Script::parse(&nonsense(&mut Random(seed)));
        let wishes = Wishes::default();
        script.check_cuts(&MemoryAnalysis::new(&script.setup(&wishes)), 10);
    }
}
