//! Processor time of threads, as the kernel counts it itself: `/proc/PID/task/TID/schedstat`.

use super::{load, rows, told, value};

/// Threads use processor time, some with rests, more than there are CPUs. Each tells its number and the kernel's count of its time, as it
/// is behind its last rest: a count of a thread that runs is older.
const LOAD: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
static void *work(void *number) {
    volatile unsigned long sum = 0;
    long which = (long)number;
    double next = 0;
    while (used() < 0.05 * (which + 1)) {
        for (int n = 0; n < 20000; n++) sum += n;
        if (which % 2 && used() > next) {
            usleep(1000);
            next = used() + 0.01;
        }
    }
    char path[64];
    unsigned long run, waited, runs;
    usleep(1000);
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", gettid());
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%lu %lu %lu", &run, &waited, &runs) != 3) exit(77);
    fclose(file);
    printf("%d %lu %lu\n", gettid(), run, runs);
    return 0;
}
int main(void) {
    pthread_t threads[5];
    for (long n = 0; n < 5; n++) if (pthread_create(&threads[n], 0, work, (void *)n)) return 1;
    for (int n = 0; n < 5; n++) pthread_join(threads[n], 0);
    return 0;
}
"#;
/// Nanoseconds of a thread behind its last count, in which it tells that and ends.
const END: u64 = 2_000_000;

/// The two agree to a hundredth, although they look at different moments of a switch: its record is written behind the kernel's decision, and
/// where a wakeup made that, the kernel counts from the wakeup on. Runs of this load are long enough for these microseconds.
#[test]
fn processor_time_is_that_of_the_kernel() {
    let Some((place, program)) = load("runners", LOAD, &[]) else { return };
    let stolen_before = stolen();
    let words = ["record", "--kernel=sched", "--json", "--output", "trace"];
    let output = place.kymo(&words).arg("--").arg(&program).output().expect("it starts");
    if output.status.code() == Some(77) {
        eprintln!("NO SCHEDSTAT HERE: not run");
        return;
    }
    // A host that takes time may have begun to take a hundredth that it has not told.
    let stolen = (stolen() - stolen_before + u64::from(stolen_before > 0)) * 10_000_000;
    let (said, _) = told(&output);
    let known: Vec<Vec<u64>> =
        said.lines().map(|line| line.split(' ').map(|word| word.parse().expect("it is a number")).collect()).collect();
    assert_eq!(known.len(), 5, "{said}");
    let answer = place.json(&["cpu", "--json", "trace"]);
    let threads = rows(&answer, "per-thread");
    for its in known {
        let [tid, run, runs] = its[..] else { panic!("{its:?}") };
        let thread = threads.iter().find(|row| row["thread"]["tid"] == tid).unwrap_or_else(|| panic!("no {tid}"));
        let time = &thread["run_time"];
        let of = |bound: &str| if time.is_object() { time[bound].as_u64().unwrap_or(u64::MAX) } else { value(time) };
        // Where the kernel left out a switch, the bounds have the time.
        let (least, most) = (run - run / 100, run + run / 100 + END + stolen);
        assert!(
            of("low") <= most && of("high") >= least,
            "{tid}: {time}, and {run} by the kernel in {runs} runs, {stolen} stolen"
        );
    }
}

/// Hundredths of a second that the machine's host took from its CPUs.
fn stolen() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").expect("it is there");
    let all = text.lines().find_map(|line| line.strip_prefix("cpu ")).expect("it has a line of all CPUs");
    all.split_whitespace().nth(7).map_or(0, |ticks| ticks.parse().expect("a number"))
}
