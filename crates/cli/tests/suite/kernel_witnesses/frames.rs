//! A program that knows its own frames: as many calls of one function as it says, in two threads, where it waits and where it runs.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use super::{load, told};
use crate::kernel::{events, name};

/// Each of two threads calls `descend` in itself as often as it has to, and then waits and runs in turns. It tells its number, that depth,
/// how often it has waited, and the addresses of the functions. The C library has no frame pointers: calls go to the kernel
/// without it.
const LOAD: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define TIMES 40
#define FUNCTION __attribute__((noinline, noclone, aligned(512))) static
static volatile unsigned long sum;
FUNCTION void rest(void) {
    struct timespec time = {0, 1000000};
#ifdef __x86_64__
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_nanosleep), "D"(&time), "S"(0) : "rcx", "r11", "memory");
#else
    register long call __asm__("x8") = SYS_nanosleep;
    register long first __asm__("x0") = (long)&time;
    register long second __asm__("x1") = 0;
    __asm__ volatile("svc 0" : "+r"(first) : "r"(call), "r"(second) : "memory");
#endif
    sum++;
}
FUNCTION void burn(void) { for (int n = 0; n < 2000000; n++) sum += n; }
FUNCTION void descend(int more) {
    if (more > 1) descend(more - 1);
    else for (int n = 0; n < TIMES; n++) { rest(); burn(); }
    sum++;
}
FUNCTION void *begin(void *depth) {
    descend((int)(long)depth);
    printf("%d %ld %d %lu %lu %lu %lu\n", gettid(), (long)depth, TIMES, (unsigned long)rest, (unsigned long)burn, (unsigned long)descend, (unsigned long)begin);
    return 0;
}
int main(void) {
    pthread_t threads[2];
    if (pthread_create(&threads[0], 0, begin, (void *)90L) || pthread_create(&threads[1], 0, begin, (void *)7L)) return 1;
    for (int n = 0; n < 2; n++) pthread_join(threads[n], 0);
    return 0;
}
"#;
const WORDS: [&str; 3] = ["-O0", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
/// Each function begins at a multiple of so many bytes, and has fewer.
const FUNCTION: u64 = 512;

#[test]
fn frames_are_those_that_the_program_knows() {
    let Some((place, program)) = load("descends", LOAD, &WORDS) else { return };
    let words = ["record", "--kernel=sched", "--stacks=997Hz,sched_switch", "--json", "--output", "trace"];
    let output = place.kymo(&words).arg("--").arg(&program).output().expect("it starts");
    let (said, summary) = told(&output);
    if let Some(why) = summary["kernel"]["stacks_absent"].as_str() {
        eprintln!("NO PERF EVENTS HERE: not run ({why})");
        return;
    }
    assert_eq!(summary["kernel"]["stacks_lost"], 0, "{summary}");
    let events = events(&place, "trace");
    let known: Vec<Vec<u64>> =
        said.lines().map(|line| line.split(' ').map(|word| word.parse().expect("it is a number")).collect()).collect();
    assert_eq!(known.len(), 2, "{said}");
    for its in known {
        let [tid, depth, times, rest, burn, descend, begin] = its[..] else { panic!("{its:?}") };
        let of = |start: u64| start..start + FUNCTION;
        let outer = Outer { depth: depth as usize, descend: of(descend), begin: of(begin) };
        let waits = stacks(&events, tid, "sched_switch", &of(rest));
        assert!(waits.len() as u64 >= times, "{} waits of {times}", waits.len());
        assert!(waits.iter().all(|frames| outer.is(frames)), "{tid}, {depth} deep: {waits:x?}");
        let samples = stacks(&events, tid, "sample", &of(burn));
        let whole = samples.iter().filter(|frames| outer.is(frames)).count();
        // The first two instructions of a function make its frame, and at the last one it is gone: its caller is missing there.
        let inner = Outer { depth: outer.depth - 1, ..outer.clone() };
        assert!(samples.iter().all(|frames| outer.is(frames) || inner.is(frames)), "{tid}, {depth} deep: {samples:x?}");
        assert!(whole >= 20 && whole * 20 >= samples.len() * 19, "{whole} of {}", samples.len());
    }
}

/// The frames behind the innermost one.
#[derive(Clone)]
struct Outer {
    depth: usize,
    descend: Range<u64>,
    begin: Range<u64>,
}

impl Outer {
    fn is(&self, frames: &[u64]) -> bool {
        let descends = frames.iter().skip(1).take_while(|frame| self.descend.contains(frame)).count();
        descends == self.depth && frames.get(1 + descends).is_some_and(|frame| self.begin.contains(frame))
    }
}

/// Addresses in the program of the stacks of an event of a thread, whose innermost one is in a function.
fn stacks(events: &[Value], tid: u64, of: &str, innermost: &Range<u64>) -> Vec<Vec<u64>> {
    let addresses = |stack: &Value| -> Vec<u64> {
        let all = stack["payload"]["user"].as_array().expect("it has addresses");
        all.iter().map(|address| address.as_u64().expect("it is an address")).collect()
    };
    let stacks = events.iter().filter(|event| name(event) == "kymo_stack");
    let stacks: HashMap<u64, Vec<u64>> =
        stacks.map(|stack| (stack["payload"]["stack"].as_u64().expect("it has a number"), addresses(stack))).collect();
    let is_its = |event: &&Value| {
        let payload = &event["payload"];
        name(event) == "kymo_callstack" && payload["tid"] == tid && payload["event"]["labels"][0] == of
    };
    let its = events.iter().filter(is_its).map(|event| &stacks[&event["payload"]["stack"].as_u64().expect("a number")]);
    its.filter(|frames| frames.first().is_some_and(|frame| innermost.contains(frame))).cloned().collect()
}
