//! Traces of many threads: random ones cut anywhere, and lives without further use.

use expect_test::expect;

use super::super::Sched;
use crate::testing::{Random, Script, Sum, text};
use crate::{Analysis, Wishes, encode};

/// A machine on which threads are made, wake a long-lived thread, and die.
fn short_lives(count: usize) -> String {
    let mut script = "lane cpu=0 span=0..1000000000\nlane cpu=1 span=0..1000000000\n".to_owned();
    let mut add = |time: usize, event: &str| script += &format!("{time} {event}\n");
    add(1, "1 thread_switch prev_tid=0 next_tid=1 next_comm=old prev_state=0");
    add(2, "1 thread_switch prev_tid=1 next_tid=0 prev_state=1");
    for number in 0..count {
        let (time, tid) = (10 + number * 100, 100 + number % 3000);
        add(time, &format!("0 thread_fork child_tid={tid} child_comm=n{number} child_pid={tid}"));
        add(time + 1, &format!("0 thread_wakeup woken_tid={tid} target_cpu=0"));
        add(time + 5, &format!("0 thread_switch prev_tid=0 next_tid={tid} next_comm=n{number} next_prio=20"));
        add(time + 9, "0 thread_wakeup woken_tid=1 target_cpu=1");
        // Sometimes the old one runs when its waker has died.
        let away = format!("0 thread_switch prev_tid={tid} prev_state=32 next_tid=0");
        add(time + [20, 40][number % 2], &away);
        add(time + 30, "1 thread_switch prev_tid=0 next_tid=1 next_comm=old next_prio=10");
        add(time + 50 + number % 7, "1 thread_switch prev_tid=1 prev_state=1 next_tid=0");
    }
    script
}

/// Lives that are over take no memory but that of rows that are shown, also those that woke a
/// living thread.
#[test]
fn lives_that_are_over_are_forgotten() {
    let script = Script::parse(&short_lives(20_000));
    let wishes = Wishes { top: Some(2), by: vec!["waker".to_owned(), "run".to_owned()], ..Wishes::default() };
    let setup = script.setup(&wishes);
    let sched = Sched::new(&setup);
    let bytes = encode(&sched, &setup, &script.state(&sched)).unwrap().len();
    assert!(bytes < 200_000, "{bytes} bytes");
}

/// Without events about forks, all of them may have been there before the trace: they are forgotten
/// as well.
#[test]
fn lives_that_were_there_before_are_forgotten() {
    let mut script = "lane cpu=0 span=0..10000000\n".to_owned();
    for tid in 1..20_000 {
        let time = tid * 100;
        script += &format!("{time} 0 thread_wakeup woken_tid={tid} target_cpu=0\n");
        script += &format!("{} 0 thread_switch prev_tid=0 next_tid={tid} next_comm=n{tid}\n", time + 5);
        script += &format!("{} 0 thread_switch prev_tid={tid} prev_state=32 next_tid=0\n", time + 9);
    }
    let script = Script::parse(&script);
    let wishes = Wishes { top: Some(2), ..Wishes::default() };
    let setup = script.setup(&wishes);
    let sched = Sched::new(&setup);
    let bytes = |is_first| encode(&sched, &setup, &script.cut_state(&sched, &[], |_| is_first)).unwrap().len();
    let (first, other) = (bytes(1), bytes(0));
    assert!(first < 400_000 && first * 5 < other, "{first} bytes, else {other}");
}

#[test]
fn short_lives_cut_anywhere() {
    let script = Script::parse(&short_lives(40));
    for top in [None, Some(3)] {
        let wishes = Wishes { top, ..Wishes::default() };
        script.check_cuts(&Sched::new(&script.setup(&wishes)), 60);
    }
    let wishes = Wishes { top: Some(3), bins: 2, by: vec!["waker".to_owned(), "top".to_owned()], ..Wishes::default() };
    let sched = Sched::new(&script.setup(&wishes));
    expect![[r#"
        total
          count=80 total=1000 min=4 avg=13 max=21 stdev=9 p50=4 p90=21 p99=21 p999=21 never_ended=0 lost_inside=0 unseen=0 wrong_cpu=0
        top
          woken=19 latency=21 thread=`old pid ? tid 1` incarnation=0 priority=10 cpu=1 target=1 waker=`n0 pid 100 tid 100` waker_incarnation=0
          woken=119 latency=21 thread=`old pid ? tid 1` incarnation=0 priority=10 cpu=1 target=1 waker=`n1 pid 101 tid 101` waker_incarnation=0
          woken=219 latency=21 thread=`old pid ? tid 1` incarnation=0 priority=10 cpu=1 target=1 waker=`n2 pid 102 tid 102` waker_incarnation=0
        wakers
          waker=`n0 pid 100 tid 100` waker_incarnation=0 thread=`old pid ? tid 1` incarnation=0 count=1 total=21
          waker=`n1 pid 101 tid 101` waker_incarnation=0 thread=`old pid ? tid 1` incarnation=0 count=1 total=21
          waker=`n2 pid 102 tid 102` waker_incarnation=0 thread=`old pid ? tid 1` incarnation=0 count=1 total=21
          and 77 more
        distribution
          low=4 high=9 count=40
          low=9 high=22 count=40
    "#]].assert_eq(&text(&sched.finish(&script.state(&sched)).unwrap()));
}

/// Random threads that a kernel could run: cutting changes nothing.
#[test]
fn plausible_kernels_cut_anywhere() {
    for seed in 0..150_u64 {
        let script = Script::parse(&plausible(&mut Random(seed)));
        let wishes = Wishes { bins: 3, ..Wishes::default() };
        let sched = Sched::new(&script.setup(&wishes));
        script.check_cuts(&sched, 10);
    }
}

/// Random events that no kernel would say: cutting changes nothing.
#[test]
fn anything_cut_anywhere() {
    for seed in 0..400_u64 {
        let mut random = Random(seed.wrapping_mul(77_777));
        let script = Script::parse(&anything(&mut random, 20 + (seed as usize % 5) * 20));
        let wishes = Wishes { bins: 3, top: (seed % 4 == 0).then_some(3), ..Wishes::default() };
        let sched = Sched::new(&script.setup(&wishes));
        script.check_cuts(&sched, 12);
    }
}

/// Sums: latencies count where they end, times where they pass, all else where it begins.
const SUMS: &[(&str, &[&str], &[&str])] = &[
    ("total", &[], &["count", "total", "unseen", "wrong_cpu"]),
    ("per-thread", &["thread", "incarnation"], &["count", "total", "unseen"]),
    ("per-priority", &["priority"], &["count", "total"]),
    ("wakers", &["waker", "waker_incarnation", "thread", "incarnation"], &["count", "total"]),
    ("runs", &["thread", "incarnation"], &["count", "total", "preemptions", "migrations"]),
    ("states", &["thread", "incarnation"], &["running", "preempted", "waiting", "blocked", "new"]),
    ("blocked", &["thread", "incarnation", "syscall"], &["count", "total"]),
];

fn check_periods(script: &str, wants: impl Fn(&Sum) -> bool) {
    let script = Script::parse(script);
    let columns =
        SUMS.iter().flat_map(|&(class, keys, columns)| columns.iter().map(move |&column| Sum { class, keys, column }));
    let columns: Vec<Sum> = columns.filter(wants).collect();
    script.check_periods(20, &Wishes::default(), Sched::new, &columns);
}

/// Every CPU switches before the first period ends, so that everything is known then.
fn begun(script: &str) -> String {
    let lanes = script.lines().filter(|line| line.starts_with("lane")).count();
    let first = |lane| format!("1 {lane} thread_switch prev_tid=0 next_tid=0\n");
    script.to_owned() + &(0..lanes).map(first).collect::<String>()
}

#[test]
fn periods_add_up() {
    check_periods(&begun(&short_lives(40)), |_| true);
    for seed in 0..150_u64 {
        let script = plausible(&mut Random(seed));
        check_periods(&begun(&script), |_| true);
        // The thread before a CPU's first switch is known late: that does not change waiting times.
        check_periods(&script, |sum| sum.keys.is_empty() || sum.class == "per-priority");
        let script = anything(&mut Random(seed.wrapping_mul(77_777)), 20 + (seed as usize % 5) * 20);
        check_periods(&begun(&script), |_| true);
    }
}

fn lanes(random: &mut Random) -> (usize, String) {
    let lanes = 1 + random.below(3);
    let script = (0..lanes).map(|lane| {
        let hole = 900 * lane + random.below(500);
        let hole = if random.below(2) == 0 { format!(" hole={hole}..{} lost=?", hole + 30) } else { String::new() };
        format!("lane cpu={lane} span=0..3000{hole}\n")
    });
    (lanes, script.collect())
}

/// Threads that are forked, woken, run on one CPU at a time, and die; tids are used again while the old thread is on its CPU.
fn plausible(random: &mut Random) -> String {
    let (lanes, mut script) = lanes(random);
    let mut current = vec![0; lanes];
    let mut asleep: Vec<usize> = (1..6).collect();
    let mut ready: Vec<usize> = vec![6];
    let mut free: Vec<usize> = vec![7, 8];
    for step in 1..120 {
        let (time, lane) = (step * 20, random.below(lanes));
        match random.below(6) {
            0 if !asleep.is_empty() => {
                let tid = asleep.swap_remove(random.below(asleep.len()));
                let target = random.below(lanes);
                script += &format!("{time} {lane} thread_waking woken_tid={tid} target_cpu={target}\n");
                script += &format!("{} {target} thread_wakeup woken_tid={tid} target_cpu={target}\n", time + 3);
                ready.push(tid);
            }
            1 if !free.is_empty() => {
                let tid = free.swap_remove(random.below(free.len()));
                script += &format!("{time} {lane} thread_fork child_tid={tid} child_pid={tid}\n");
                script += &format!("{} {lane} thread_wakeup woken_tid={tid} target_cpu={lane}\n", time + 2);
                ready.push(tid);
            }
            2 => {
                let role = ["entry syscall=read", "entry syscall=poll", "exit syscall=read"][random.below(3)];
                script += &format!("{time} {lane} syscall_{role}\n");
            }
            _ => {
                let prev = current[lane];
                let next = if ready.is_empty() || random.below(4) == 0 {
                    0
                } else {
                    ready.swap_remove(random.below(ready.len()))
                };
                let state = [0, 1, 2, 0x20, 0x10][random.below(5)];
                if prev != 0 && state >= 0x10 && random.below(4) == 0 {
                    let other = (lane + 1) % lanes;
                    script += &format!("{} {other} thread_fork child_tid={prev} child_comm=f{step}\n", time - 2);
                    ready.push(prev);
                } else if prev != 0 {
                    [&mut ready, &mut asleep, &mut free]
                        [[0, 1, 1, 2, 2][[0, 1, 2, 0x20, 0x10].iter().position(|known| *known == state).unwrap()]]
                    .push(prev);
                }
                script += &format!(
                    "{time} {lane} thread_switch prev_tid={prev} prev_comm=n{prev} prev_state={state} next_tid={next} next_comm=n{next} next_prio={}\n",
                    next % 3
                );
                current[lane] = next;
            }
        }
    }
    script
}

fn anything(random: &mut Random, events: usize) -> String {
    let (lanes, mut script) = lanes(random);
    for step in 1..=events {
        let (time, lane) = (step * 20, random.below(lanes));
        let mut tid = || random.below(4);
        let (one, other) = (tid(), tid());
        let event = match random.below(9) {
            0 => format!("thread_waking woken_tid={one} target_cpu={other}"),
            1 => format!("thread_wakeup woken_tid={one} target_cpu={other} woken_comm=w{step}"),
            2 => format!("thread_fork child_tid={one} child_pid={one} child_comm=f{step}"),
            3 => format!("syscall_entry syscall=call{other}"),
            4 => "syscall_exit".to_owned(),
            5 => format!("thread_state known_tid={one} known_comm=k{step} known_pid={step}"),
            _ => {
                // Two lives within a nanosecond would be one.
                let state = [0, 1, 2, if one == other { 1 } else { 0x20 }][random.below(4)];
                format!(
                    "thread_switch prev_tid={one} prev_comm=p{step} prev_state={state} next_tid={other} next_prio={one}"
                )
            }
        };
        script += &format!("{time} {lane} {event}\n");
    }
    script
}
