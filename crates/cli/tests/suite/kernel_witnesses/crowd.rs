//! Many threads that live for a moment, and programs that end while the state of the system is read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{first_mark, load, rows, told, value};
use crate::kernel::{events, name, read_by_babeltrace};
use crate::recorded::Place;

/// Starts threads, 100 at a time, of which each makes one call that no other thread makes.
const THREADS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static long mark;
static void *brief(void *nothing) {
    syscall(SYS_timer_getoverrun, mark);
    return nothing;
}
int main(int count, char **words) {
    pthread_t all[100];
    if (count < 3) return 1;
    mark = atol(words[1]);
    for (int n = atoi(words[2]); n > 0; n -= 100) {
        for (int m = 0; m < 100; m++) if (pthread_create(&all[m], 0, brief, 0)) return 1;
        for (int m = 0; m < 100; m++) pthread_join(all[m], 0);
    }
    printf("%d\n", getpid());
    return 0;
}
"#;
const BRIEF: usize = 3000;

#[test]
fn each_of_thousands_of_threads_is_known() {
    let Some((place, program)) = load("brief", THREADS, &[]) else { return };
    let mark = first_mark();
    let words = ["record", "--kernel=sched,syscalls", "--json", "--output", "trace", "--"];
    let output = place.kymo(&words).arg(&program).args([mark.to_string(), BRIEF.to_string()]).output();
    let (said, _) = told(&output.expect("it starts"));
    let pid: u64 = said.trim_end().parse().expect("it is a number");
    let all = events(&place, "trace");
    let number = |event: &Value, field: &str| event["payload"][field].as_u64();
    let forks =
        all.iter().filter(|event| name(event) == "sched_process_fork" && number(event, "child_pid") == Some(pid));
    let threads: BTreeSet<u64> = forks.filter_map(|fork| number(fork, "child_tid")).filter(|tid| *tid != pid).collect();
    assert_eq!(threads.len(), BRIEF);
    let exits = all.iter().filter(|event| name(event) == "sched_process_exit").filter_map(|exit| number(exit, "tid"));
    let ended: BTreeSet<u64> = exits.filter(|tid| threads.contains(tid)).collect();
    assert_eq!(ended.len(), BRIEF);
    assert_eq!(super::moments(&all, mark).len(), BRIEF);
    // Each made its one call, and none made that of another.
    let answer = place.json(&["syscalls", "--json", "--by", "thread", "--procname", "brief", "trace"]);
    let calls = rows(&answer, "per-thread").into_iter().filter(|row| row["syscall"] == "timer_getoverrun");
    let counts: BTreeMap<u64, u64> =
        calls.map(|row| (row["thread"]["tid"].as_u64().expect("it has a number"), value(&row["count"]))).collect();
    assert_eq!(counts, threads.iter().map(|tid| (*tid, 1)).collect::<BTreeMap<_, _>>());
    let of_process = rows(&place.json(&["threads", "--json", "trace"]), "per-process");
    let its = of_process.iter().find(|row| row["process"]["pid"] == pid).expect("it is there");
    let (known, whole) = (value(&its["threads"]), BRIEF as u64 + 1);
    // A switch that the kernel left out leaves its thread's events to the idle thread.
    assert!(known == whole || known < whole && are_left_out(&all), "{its:?}");
    read_by_babeltrace(&place, "trace");
}

/// Whether the kernel has left out switches: those of some virtual machines do so with switches from idle threads.
fn are_left_out(events: &[Value]) -> bool {
    let mut running = BTreeMap::new();
    let mut switches = events.iter().filter(|event| name(event) == "sched_switch");
    switches.any(|switch| {
        let cpu = switch["packet_context"]["cpu_id"].as_u64();
        let before = running.insert(cpu, switch["payload"]["next_tid"].clone());
        before.is_some_and(|before| before != switch["payload"]["prev_tid"])
    })
}

/// Starts programs and threads that end at once, until it is killed.
const ENDING: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static void *end(void *nothing) { return nothing; }
int main(int count, char **words) {
    pthread_t one;
    /* It was started to end. */
    if (count > 1) return 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        for (int n = 0; n < 8; n++) {
            pid_t child = fork();
            if (child) continue;
            if (n % 4 == 0) {
                execl(words[0], words[0], "end", (char *)0);
                _exit(1);
            }
            if (n % 2 == 0 && pthread_create(&one, 0, end, 0) == 0) usleep(100 * n);
            _exit(0);
        }
        while (waitpid(-1, 0, 0) > 0) {}
    }
}
"#;

/// The state at the beginning has each thread that was there before the recording and is there behind it, once, with its process, while other threads end.
#[test]
fn the_state_is_whole_while_programs_end() {
    let Some((place, program)) = load("ending", ENDING, &[]) else { return };
    let loads = (0..2).map(|_| place.command(&program).spawn().expect("it starts"));
    let mut loads: Vec<_> = loads.collect();
    let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        (0..3).for_each(|number| compare(&place, &format!("trace{number}"), None));
        let hide = "mount -t tmpfs none /sys/kernel/btf || exit 77; exec \"$0\" \"$@\"";
        (0..2).for_each(|number| compare(&place, &format!("other{number}"), Some(hide)));
    }));
    for load in &mut loads {
        let _ = load.kill();
        load.wait().expect("it ran");
    }
    if let Err(problem) = tried {
        std::panic::resume_unwind(problem);
    }
}

/// Threads that run now, with the numbers of their processes, and when they began.
fn threads() -> BTreeMap<u64, (u64, u64)> {
    let numbers = |path: String| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok()).collect::<Vec<_>>()
    };
    let mut all = BTreeMap::new();
    for pid in numbers("/proc".to_owned()) {
        for tid in numbers(format!("/proc/{pid}/task")) {
            // It may have ended by now.
            let Ok(stat) = std::fs::read(format!("/proc/{pid}/task/{tid}/stat")) else { continue };
            let stat = String::from_utf8_lossy(&stat).into_owned();
            let begin = stat.rsplit_once(')').and_then(|(_, behind)| behind.split_whitespace().nth(19)?.parse().ok());
            all.insert(tid, (pid, begin.expect("the kernel tells it")));
        }
    }
    all
}

/// Records, with iterators of the kernel or in a place where these cannot be had.
fn compare(place: &Place, trace: &str, hide: Option<&str>) {
    let before = threads();
    let words = ["record", "--kernel=sched", "--json", "--output", trace, "--", "true"];
    let mut command = match hide {
        None => place.kymo(&words),
        Some(script) => {
            let mut command = place.command("unshare");
            command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_kymo")]).args(words);
            command
        }
    };
    let Some(output) = command.output().ok().filter(|output| output.status.code() != Some(77)) else {
        return eprintln!("NOT TESTED: nothing can be mounted");
    };
    let (_, summary) = told(&output);
    let behind = threads();
    if hide.is_some() {
        assert_eq!(summary["kernel"]["state"], "/proc", "{summary}");
    }
    let all = events(place, trace);
    let state = all.iter().filter(|event| name(event) == "lttng_statedump_process_state");
    let mut told: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for event in state {
        let number = |field: &str| event["payload"][field].as_u64().unwrap_or_else(|| panic!("no {field}: {event}"));
        told.entry(number("tid")).or_default().push(number("pid"));
    }
    let lasting = before.iter().filter(|(tid, known)| behind.get(tid) == Some(known));
    let mut count = 0;
    for (tid, (pid, _)) in lasting {
        assert_eq!(told.get(tid), Some(&vec![*pid]), "{tid} of {pid} in {trace}: {summary}");
        count += 1;
    }
    // The tests, the kernel's threads, and the loads.
    assert!(count > 5, "{count} threads were there all the time");
    assert!(place.says(&["check", trace], 0).contains("no problems"));
    read_by_babeltrace(place, trace);
}
