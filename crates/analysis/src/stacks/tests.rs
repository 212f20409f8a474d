//! Cases of `stacks`: which stack a wait has, and what is counted of each.

use std::sync::Arc;

use expect_test::{Expect, expect};

use super::StackAnalysis;
use crate::resolve::{ResolvedStacks, StackFrame, StackId, StackResolver};
use crate::testing::{Random, Script, text};
use crate::{Analysis, Setup, Wishes};

/// Stack 12 is `f2` of the program called by `f1`; above 90 there are none; 5 is of the kernel alone, 6 of an interrupt.
#[derive(Debug)]
struct Digits;

impl StackResolver for Digits {
    fn resolve(&self, stacks: &[StackId]) -> ResolvedStacks {
        let frame = |place: usize| match place {
            0 => StackFrame { function: "schedule".to_owned(), object: "kernel".to_owned(), is_kernel: true, begin: 0 },
            place if place < 10 => StackFrame {
                function: format!("f{place}"),
                object: format!("lib{}", place % 2),
                is_kernel: false,
                begin: 0,
            },
            13 => StackFrame {
                function: "asm_sysvec_timer".to_owned(),
                object: "kernel".to_owned(),
                is_kernel: true,
                begin: 0,
            },
            place => StackFrame {
                function: format!("k{}", place - 10),
                object: "kernel".to_owned(),
                is_kernel: true,
                begin: 0,
            },
        };
        let functions = |number: u32| match number {
            5 => Some(vec![0, 11]),
            6 => Some(vec![11, 13, 2, 1]),
            number if number > 90 => None,
            number => Some(vec![0, 12, number % 10, number / 10 % 10]),
        };
        let stacks = stacks.iter().map(|stack| functions(stack.number)).collect();
        ResolvedStacks { frames: (0..20).map(frame).collect(), stacks }
    }

    fn event(&self, _: u32, event: u16) -> Option<String> {
        (event == 7).then(|| "block_rq_issue".to_owned())
    }
}

fn check_with(script: &str, wishes: &Wishes, expect: &Expect) {
    let script = Script::parse(script);
    let resolver: Arc<dyn StackResolver> = Arc::new(Digits);
    let stacks = StackAnalysis::new(&Setup { stacks: Some(&resolver), ..script.setup(wishes) });
    expect.assert_eq(&text(&stacks.finish(&script.state(&stacks)).unwrap()));
    script.check_cuts(&stacks, 200);
}

fn check(script: &str, expect: &Expect) {
    check_with(script, &Wishes::default(), expect);
}

/// The stack of a switch comes before or behind it, and the wait ends when the thread runs, on any CPU.
#[test]
fn waits_have_the_stacks_of_their_switches() {
    check(
        "lane cpu=0 span=0..10000
         lane cpu=1 span=0..10000
         90 0 call_stack kind=wait stack=12 stack_tid=7 stack_pid=7
         100 0 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=8 next_comm=cc
         400 1 thread_switch prev_tid=0 next_tid=7 next_comm=make
         500 1 thread_switch prev_tid=7 prev_comm=make prev_state=0 next_tid=0
         501 1 call_stack kind=wait stack=21 stack_tid=7 stack_pid=7
         600 1 thread_switch prev_tid=0 next_tid=7 next_comm=make
         700 0 call_stack kind=wait stack=5 stack_tid=8 stack_pid=6
         710 0 thread_switch prev_tid=8 prev_comm=cc prev_state=2 next_tid=0
         800 0 call_stack kind=sample stack=21 stack_tid=7 stack_pid=7
         801 0 call_stack kind=sample stack=22 stack_tid=7 stack_pid=7
         802 0 call_stack kind=event stack_event=7 stack=99 stack_tid=7 stack_pid=7",
        &expect![[r#"
            functions
              function=`schedule` object=`kernel` self=2 self_share=1.000 total=2 total_share=1.000
              function=`f2` object=`lib0` self=0 self_share=0.000 total=2 total_share=1.000
              function=`k2` object=`kernel` self=0 self_share=0.000 total=2 total_share=1.000
              function=`f1` object=`lib1` self=0 self_share=0.000 total=1 total_share=0.500
            samples
              function=`f1` count=1 stack=`f2;f1;k2;schedule`
              function=`f2` count=1 stack=`f2;f2;k2;schedule`
            waits
              function=`f2` caller=`f1` kernel=`k2` waited=300 waits=1 longest=300 open=0 stack=`f1;f2;k2;schedule`
            preempted
              function=`f1` caller=`f2` kernel=`k2` waited=100 waits=1 longest=100 open=0 stack=`f2;f1;k2;schedule`
            kernel-waits
              kernel=`k1` waited=0 waits=0 longest=0 open=1 stack=`k1;schedule`
            kernel-preempted
            wakers
            events
              event=`block_rq_issue` function=`[unknown]` count=1 stack=`[unknown]`
            per-thread
              thread=`make pid 7 tid 7` samples=2 waited=300 waits=1 events=1 without_stack=0 without_end=0
              thread=`cc pid 6 tid 8` samples=0 waited=0 waits=0 events=0 without_stack=0 without_end=0
            total
              samples=2 waits=1 waited=300 without_stack=0 without_end=0 events=1
        "#]],
    );
}

/// A wait has the stack of the last one that woke its thread, on whichever CPU; a thread that does not wait is not woken.
#[test]
fn waits_have_the_stacks_that_end_them() {
    check(
        "lane cpu=0 span=0..10000
         lane cpu=1 span=0..10000
         50 1 call_stack kind=waker stack=44 stack_event=2 stack_tid=8 stack_pid=8 woken_tid=7
         100 0 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=0
         101 0 call_stack kind=wait stack=12 stack_tid=7 stack_pid=7
         300 1 call_stack kind=waker stack=34 stack_event=2 stack_tid=8 stack_pid=8 woken_tid=7
         310 1 call_stack kind=waker stack=5 stack_event=2 stack_tid=0 stack_pid=0 woken_tid=7
         400 1 thread_switch prev_tid=8 prev_comm=cc prev_state=0 next_tid=7 next_comm=make
         500 1 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=8
         501 1 call_stack kind=wait stack=12 stack_tid=7 stack_pid=7
         600 0 call_stack kind=waker stack=34 stack_event=2 stack_tid=9 stack_pid=8 woken_tid=7
         700 0 thread_switch prev_tid=0 next_tid=7 next_comm=make
         800 0 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=0
         801 0 call_stack kind=wait stack=12 stack_tid=7 stack_pid=7
         850 1 call_stack kind=waker stack=6 stack_event=2 stack_tid=9 stack_pid=8 woken_tid=7
         900 0 thread_switch prev_tid=0 next_tid=7 next_comm=make",
        &expect![[r#"
            functions
            samples
            waits
              function=`f2` caller=`f1` kernel=`k2` waited=600 waits=3 longest=300 open=0 stack=`f1;f2;k2;schedule`
            preempted
            kernel-waits
            kernel-preempted
            wakers
              function=`f2` waker=`schedule` kernel=`schedule` waited=300 waits=1 longest=300 stack=`f1;f2;k2;schedule` waker_stack=`k1;schedule`
              function=`f2` waker=`f4` kernel=`schedule` waited=200 waits=1 longest=200 stack=`f1;f2;k2;schedule` waker_stack=`f3;f4;k2;schedule`
              function=`f2` waker=`[interrupt]` kernel=`k1` waited=100 waits=1 longest=100 stack=`f1;f2;k2;schedule` waker_stack=`asm_sysvec_timer;k1`
            events
              event=`2` function=`f4` count=2 stack=`f3;f4;k2;schedule`
              event=`2` function=`k1` count=1 stack=`k1;schedule`
              event=`2` function=`[interrupt]` count=1 stack=`f1;f2;asm_sysvec_timer;k1`
              event=`2` function=`f4` count=1 stack=`f4;f4;k2;schedule`
            per-thread
              thread=`make pid 7 tid 7` samples=0 waited=600 waits=3 events=0 without_stack=0 without_end=0
              thread=`cc pid 8 tid 8` samples=0 waited=0 waits=0 events=2 without_stack=1 without_end=0
              thread=`? pid 8 tid 9` samples=0 waited=0 waits=0 events=2 without_stack=0 without_end=0
              thread=`idle pid 0 tid 0` samples=0 waited=0 waits=0 events=1 without_stack=0 without_end=0
            total
              samples=0 waits=3 waited=600 without_stack=1 without_end=0 events=5
        "#]],
    );
}

/// A stack that is far from its switch is of another one, whose event was lost; so is a switch without a stack.
#[test]
fn lost_stacks_are_not_made_up() {
    check(
        "lane cpu=0 span=0..900000000 lost=3
         100 0 call_stack kind=wait stack=12 stack_tid=7 stack_pid=7
         200000000 0 thread_switch prev_tid=7 prev_state=1 next_tid=0
         200000500 0 thread_switch prev_tid=0 next_tid=7
         300000000 0 thread_switch prev_tid=7 prev_state=1 next_tid=0
         300000000 0 thread_switch prev_tid=0 next_tid=8
         300000001 0 call_stack kind=wait stack=13 stack_tid=7 stack_pid=7
         300000002 0 call_stack kind=wait stack=14 stack_tid=7 stack_pid=7
         400000000 0 thread_switch prev_tid=8 prev_state=1 next_tid=7
         500000000 0 thread_switch prev_tid=7 prev_state=1 next_tid=0
         600000000 0 thread_switch prev_tid=7 prev_state=1 next_tid=0
         600000001 0 call_stack kind=wait stack=15 stack_tid=7 stack_pid=7
         699999999 0 call_stack kind=wait stack=16 stack_tid=7 stack_pid=7
         700000000 0 thread_switch prev_tid=7 prev_state=1 next_tid=0
         710000000 0 thread_switch prev_tid=0 next_tid=7",
        &expect![[r#"
            functions
            samples
            waits
              function=`f3` kernel=`k2` waited=100000000[100000000,none] waits=1[1,4] longest=100000000[100000000,none] open=0 stack=`f1;f3;k2;schedule`
              function=`f6` caller=`f1` kernel=`k2` waited=10000000[10000000,none] waits=1[1,4] longest=10000000[10000000,none] open=0 stack=`f1;f6;k2;schedule`
            preempted
            kernel-waits
            kernel-preempted
            wakers
            events
            per-thread
              thread=`? pid 7 tid 7` samples=0[0,3] waited=110000000[110000000,none] waits=2[2,5] events=0[0,3] without_stack=1 without_end=2
            total
              samples=0[0,3] waits=2[2,5] waited=110000000[110000000,none] without_stack=1 without_end=2 events=0[0,3]
        "#]],
    );
}

const CHOSEN: &str = "lane cpu=0 span=0..1000 hole=450..460
 10 0 call_stack kind=sample stack=12 stack_tid=7 stack_pid=7
 20 0 call_stack kind=sample stack=34 stack_tid=8 stack_pid=8
 100 0 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=8 next_comm=cc
 101 0 call_stack kind=wait stack=12 stack_tid=7 stack_pid=7
 200 0 thread_switch prev_tid=8 prev_comm=cc prev_state=1 next_tid=7 next_comm=make
 201 0 call_stack kind=wait stack=34 stack_tid=8 stack_pid=8
 400 0 thread_switch prev_tid=7 prev_comm=make prev_state=1 next_tid=8 next_comm=cc
 401 0 call_stack kind=wait stack=12 stack_tid=7 stack_pid=7
 900 0 thread_switch prev_tid=8 prev_comm=cc prev_state=1 next_tid=7 next_comm=make";

/// Waits in which events are missing are not counted; filters choose by thread, name, function and duration.
#[test]
fn chosen_stacks() {
    let all = Wishes::default();
    let name = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    check_with(
        CHOSEN,
        &Wishes { comms: name(&["c?"]), ..all.clone() },
        &expect![[r#"
            functions
              function=`schedule` object=`kernel` self=1 self_share=1.000 total=1 total_share=1.000
              function=`f3` object=`lib1` self=0 self_share=0.000 total=1 total_share=1.000
              function=`f4` object=`lib0` self=0 self_share=0.000 total=1 total_share=1.000
              function=`k2` object=`kernel` self=0 self_share=0.000 total=1 total_share=1.000
            samples
              function=`f4` count=1 stack=`f3;f4;k2;schedule`
            waits
              function=`f4` caller=`f3` kernel=`k2` waited=200 waits=1 longest=200 open=0 stack=`f3;f4;k2;schedule`
            preempted
            kernel-waits
            kernel-preempted
            wakers
            events
            per-thread
              thread=`cc pid 8 tid 8` samples=1 waited=200 waits=1 events=0 without_stack=0 without_end=0
            total
              samples=1 waits=1 waited=200 without_stack=0 without_end=0 events=0
        "#]],
    );
    check_with(
        CHOSEN,
        &Wishes { names: name(&["f2"]), min_ns: Some(100), ..all.clone() },
        &expect![[r#"
            functions
              function=`schedule` object=`kernel` self=1 self_share=1.000 total=1 total_share=1.000
              function=`f1` object=`lib1` self=0 self_share=0.000 total=1 total_share=1.000
              function=`f2` object=`lib0` self=0 self_share=0.000 total=1 total_share=1.000
              function=`k2` object=`kernel` self=0 self_share=0.000 total=1 total_share=1.000
            samples
              function=`f2` count=1 stack=`f1;f2;k2;schedule`
            waits
              function=`f2` caller=`f1` kernel=`k2` waited=100 waits=1 longest=100 open=0 stack=`f1;f2;k2;schedule`
            preempted
            kernel-waits
            kernel-preempted
            wakers
            events
            per-thread
              thread=`make pid 7 tid 7` samples=1 waited=100 waits=1 events=0 without_stack=0 without_end=0
            total
              samples=1 waits=1 waited=100 without_stack=0 without_end=0 events=0
        "#]],
    );
    check_with(
        CHOSEN,
        &Wishes { tids: vec![9], ..all },
        &expect![[r#"
            functions
            samples
            waits
            preempted
            kernel-waits
            kernel-preempted
            wakers
            events
            per-thread
            total
              samples=0 waits=0 waited=0 without_stack=0 without_end=0 events=0
        "#]],
    );
}

/// Wherever the trace is cut, the answer is the same.
#[test]
fn any_cut_gives_the_same() {
    let mut random = Random(11);
    for _ in 0..300 {
        let mut script = "lane cpu=0 span=0..9000\nlane cpu=1 span=0..9000 hole=500..510\n".to_owned();
        for at in 0..40 {
            let (time, lane, tid) = (10 * at + random.below(10), random.below(2), 7 + random.below(3));
            let (stack, other) = (1 + random.below(97), [0, 7, 8, 9][random.below(4)]);
            let kind = ["wait", "wait", "waker", "sample", "event"][random.below(5)];
            script += &match random.below(6) {
                0..3 => format!(
                    "{time} {lane} thread_switch prev_tid={tid} prev_state={} next_tid={other}\n",
                    [0, 1, 1, 16][random.below(4)]
                ),
                3..5 => format!(
                    "{time} {lane} call_stack kind={kind} stack={stack} stack_tid={tid} stack_pid=7 stack_event=7 woken_tid={other}\n"
                ),
                _ => format!(
                    "{time} {lane} thread_fork parent_tid=7 parent_pid=7 child_tid={tid} child_pid={tid} child_comm=sh\n"
                ),
            };
        }
        let script = Script::parse(&script);
        let wishes = Wishes::default();
        let resolver: Arc<dyn StackResolver> = Arc::new(Digits);
        let stacks = StackAnalysis::new(&Setup { stacks: Some(&resolver), ..script.setup(&wishes) });
        script.check_cuts(&stacks, 30);
    }
}
