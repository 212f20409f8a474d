//! Cases of requests of io_uring, as `syscalls` and `io` show them.

use expect_test::{Expect, expect};

use crate::io::Io;
use crate::syscalls::Syscalls;
use crate::testing::{Random, Script, Sum, text};
use crate::{Analysis, Wishes};

/// Without the cells that are 0.
fn short(text: &str) -> String {
    let is_kept = |word: &&str| !word.ends_with("=0") || word.starts_with("errno");
    let line = |line: &str| {
        let indent = &line[..line.len() - line.trim_start().len()];
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).filter(is_kept).collect();
        format!("{indent}{}\n", words.join(" "))
    };
    text.lines().map(line).collect()
}

fn wishes(by: &str) -> Wishes {
    Wishes { by: vec![by.to_owned()], bins: 2, ..Wishes::default() }
}

fn check(script: &str, expect: &Expect) {
    let (script, wishes) = (Script::parse(script), wishes("uring"));
    let syscalls = Syscalls::new(&script.setup(&wishes));
    expect.assert_eq(&short(&text(&syscalls.finish(&script.state(&syscalls)).unwrap())));
    script.check_cuts(&syscalls, 200);
}

fn check_io(script: &str, by: &str, expect: &Expect) {
    let (script, wishes) = (Script::parse(script), wishes(by));
    let io = Io::new(&script.setup(&wishes));
    expect.assert_eq(&short(&text(&io.finish(&script.state(&io)).unwrap())));
    script.check_cuts(&io, 200);
}

/// A request that is done at once, one that fails, one that a worker does, with requests to a disk of both.
const HANDED_OVER: &str = "
    lane cpu=0 span=0..1000
    lane cpu=1 span=0..1000
    5 0 thread_state known_tid=7 known_pid=6 known_comm=db
    10 0 thread_switch prev_tid=0 next_tid=7 next_comm=db
    20 0 uring_submit ring=1 request=100 user_data=1 opcode=READ
    22 0 block_issue dev=1 sector=8 sectors=8
    30 0 uring_complete ring=1 request=100 user_data=1 result=512
    40 0 uring_submit ring=1 request=100 user_data=1 opcode=READ
    41 0 uring_complete ring=1 request=100 user_data=1 result=-9
    50 0 uring_submit ring=1 request=100 user_data=2 opcode=WRITE
    55 0 uring_queue ring=1 request=100
    60 0 thread_switch prev_tid=7 prev_comm=db prev_state=1 next_tid=0
    75 1 thread_switch prev_tid=0 next_tid=8 next_comm=iou-wrk-7
    76 1 uring_file ring=1 request=100
    80 1 block_issue dev=1 sector=80 sectors=8
    90 1 uring_complete ring=1 request=100 user_data=2 result=4096
    95 1 thread_switch prev_tid=8 prev_comm=iou-wrk-7 prev_state=1 next_tid=0";

#[test]
fn a_worker_serves_what_is_handed_over() {
    check(
        HANDED_OVER,
        &expect![[r#"
            uring
              opcode=`WRITE` count=1 total=40 min=40 avg=40 max=40 p50=40 p90=40 p99=40 p999=40 write=4096 handovers=1 waits=1 worker_wait=20 worker_wait_max=20 blocks=1
              opcode=`READ` count=2 errors=1 total=11 min=1 avg=6 max=10 stdev=6 p50=1 p90=10 p99=10 p999=10 read=512 blocks=1
            uring-threads
              thread=`db pid 6 tid 7` opcode=`WRITE` count=1 total=40 min=40 avg=40 max=40 write=4096 handovers=1 waits=1 worker_wait=20 worker_wait_max=20 blocks=1
              thread=`db pid 6 tid 7` opcode=`READ` count=2 errors=1 total=11 min=1 avg=6 max=10 stdev=6 read=512 blocks=1
            uring-errors
              opcode=`READ` errno=9 count=1
            uring-slowest
              time=50..90 duration=40 thread=`db pid 6 tid 7` opcode=`WRITE` ret=4096 handed_over=true worker_wait=20 blocks=1 request=100 user_data=2
              time=20..30 duration=10 thread=`db pid 6 tid 7` opcode=`READ` ret=512 handed_over=false blocks=1 request=100 user_data=1
              time=40..41 duration=1 thread=`db pid 6 tid 7` opcode=`READ` ret=-9 handed_over=false request=100 user_data=1
        "#]],
    );
    check_io(
        HANDED_OVER,
        "thread",
        &expect![[r#"
        per-thread
          thread=`db pid 6 tid 7` read=512 write=4096 read_unknown=512 write_unknown=4096 reads=2 writes=1 errors=1
    "#]],
    );
    check_io(
        HANDED_OVER,
        "process",
        &expect![[r#"
        per-process
          process=`? pid 6` read=512 write=4096 read_unknown=512 write_unknown=4096 reads=2 writes=1 errors=1
    "#]],
    );
    check_io(
        HANDED_OVER,
        "category",
        &expect![[r#"
        per-category
          category=`read` count=2 total=11 min=1 avg=6 max=10 stdev=6 p50=1 p90=10 p99=10 p999=10
          category=`write` count=1 total=40 min=40 avg=40 max=40 p50=40 p90=40 p99=40 p999=40
    "#]],
    );
    check_io(
        HANDED_OVER,
        "slowest",
        &expect![[r#"
        slowest
          time=50..90 duration=40 thread=`db pid 6 tid 7` syscall=`io_uring WRITE` ret=4096
          time=20..30 duration=10 thread=`db pid 6 tid 7` syscall=`io_uring READ` ret=512
          time=40..41 duration=1 thread=`db pid 6 tid 7` syscall=`io_uring READ` ret=-9
    "#]],
    );
}

/// The bytes of calls and requests of one thread are in one row, and the worker has none.
#[test]
fn calls_and_requests_of_a_thread_are_added() {
    check_io(
        "lane cpu=0 span=0..1000
         5 0 thread_state known_tid=7 known_pid=7 known_comm=db
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=db
         11 0 syscall_entry syscall=write fd=1
         12 0 syscall_exit syscall=write ret=100
         13 0 syscall_entry syscall=io_uring_enter fd=3
         20 0 uring_submit ring=1 request=100 user_data=1 opcode=WRITE
         30 0 uring_complete ring=1 request=100 user_data=1 result=512
         31 0 syscall_exit syscall=io_uring_enter ret=1
         40 0 thread_switch prev_tid=7 prev_comm=db prev_state=1 next_tid=0",
        "thread",
        &expect![[r#"
            per-thread
              thread=`db pid 7 tid 7` write=612 write_unknown=612 writes=2
        "#]],
    );
}

/// A poll that has several results, which name no request; a message from another ring; a send whose buffer is given back by
/// a notice of a request of the kernel's own.
#[test]
fn requests_have_several_results() {
    check(
        "lane cpu=0 span=0..1000
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=db
         20 0 uring_submit ring=1 request=100 user_data=5 opcode=RECV
         30 0 uring_complete ring=1 request=0 user_data=5 result=10 result_flags=2
         40 0 uring_complete ring=1 request=0 user_data=5 result=20 result_flags=2
         45 0 uring_complete ring=1 request=0 user_data=77 result=1
         50 0 uring_complete ring=1 request=100 user_data=5 result=-125
         60 0 uring_submit ring=1 request=200 user_data=6 opcode=SEND_ZC
         70 0 uring_complete ring=1 request=200 user_data=6 result=1000 result_flags=2
         80 0 uring_complete ring=1 request=300 user_data=6 result=0 result_flags=8
         90 0 thread_switch prev_tid=7 prev_comm=db prev_state=1 next_tid=0",
        &expect![[r#"
            uring
              opcode=`RECV` count=1 errors=1 total=30 min=30 avg=30 max=30 p50=30 p90=30 p99=30 p999=30 read=30 more=2
              opcode=`SEND_ZC` count=1 total=20 min=20 avg=20 max=20 p50=20 p90=20 p99=20 p999=20 write=1000 more=1
              loose=1
            uring-threads
              thread=`db pid ? tid 7` opcode=`RECV` count=1 errors=1 total=30 min=30 avg=30 max=30 read=30 more=2
              thread=`db pid ? tid 7` opcode=`SEND_ZC` count=1 total=20 min=20 avg=20 max=20 write=1000 more=1
            uring-errors
              opcode=`RECV` errno=125 count=1
            uring-slowest
              time=20..50 duration=30 thread=`db pid ? tid 7` opcode=`RECV` ret=-125 handed_over=false request=100 user_data=5
              time=60..80 duration=20 thread=`db pid ? tid 7` opcode=`SEND_ZC` ret=1000 handed_over=false request=200 user_data=6
        "#]],
    );
}

/// Begun before the trace; never completed; the same address again without a completion between, asked for or not; and a
/// request with holes.
#[test]
fn requests_without_an_end() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000 hole=500..510
         5 0 thread_state known_tid=7 known_pid=7 known_comm=db
         6 0 uring_ring ring=1 ring_fd=3
         10 0 uring_complete ring=1 request=50 user_data=9 result=3
         20 0 uring_submit ring=1 request=100 user_data=1 opcode=NOP
         30 0 uring_submit ring=1 request=100 user_data=1 opcode=FSYNC request_flags=64
         35 0 uring_submit ring=1 request=100 user_data=1 opcode=READ
         40 0 uring_complete ring=1 request=100 user_data=1 result=5
         490 0 uring_submit ring=1 request=100 user_data=1 opcode=READ
         495 0 uring_submit ring=1 request=200 user_data=1 opcode=TIMEOUT
         520 0 uring_complete ring=1 request=100 user_data=1 result=7
         600 0 uring_submit ring=1 request=300 user_data=3 opcode=POLL_ADD
         700 0 thread_switch prev_tid=7 prev_comm=db prev_state=1 next_tid=0",
        &expect![[r#"
            uring
              opcode=`READ` count=1 total=5 min=5 avg=5 max=5 p50=5 p90=5 p99=5 p999=5 read=12 lost_inside=1
              began_before=1
              opcode=`FSYNC` silent=1
              opcode=`NOP` lost_inside=1
              opcode=`POLL_ADD` never_ended=1
              opcode=`TIMEOUT` lost_inside=1
            uring-threads
              thread=`db pid 7 tid 7` opcode=`READ` count=1 total=5 min=5 avg=5 max=5 read=12 lost_inside=1
              thread=`db pid 7 tid 7` began_before=1
              thread=`db pid 7 tid 7` opcode=`FSYNC` silent=1
              thread=`db pid 7 tid 7` opcode=`NOP` lost_inside=1
              thread=`db pid 7 tid 7` opcode=`POLL_ADD` never_ended=1
              thread=`db pid 7 tid 7` opcode=`TIMEOUT` lost_inside=1
            uring-errors
            uring-slowest
              time=35..40 duration=5 thread=`db pid 7 tid 7` opcode=`READ` ret=5 handed_over=false request=100 user_data=1
        "#]],
    );
}

/// A thread of the kernel submits and completes: the requests are those of the thread that made the ring, or, if nothing
/// tells that, of the one in the kernel thread's name. The ring's address is used again.
#[test]
fn rings_have_owners() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         5 0 thread_state known_tid=7 known_pid=7 known_comm=db
         6 0 thread_state known_tid=9 known_pid=9 known_comm=web
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=db
         12 0 uring_ring ring=1 ring_fd=3
         20 1 thread_switch prev_tid=0 next_tid=8 next_comm=iou-sqp-9
         30 1 uring_submit ring=1 request=100 user_data=1 opcode=READ by_kernel=1
         40 1 uring_complete ring=1 request=100 user_data=1 result=10
         50 1 uring_submit ring=2 request=100 user_data=1 opcode=READ by_kernel=1
         60 1 uring_complete ring=2 request=100 user_data=1 result=20
         70 0 thread_switch prev_tid=7 prev_comm=db prev_state=1 next_tid=9 next_comm=web
         80 0 uring_ring ring=1 ring_fd=4
         90 1 uring_submit ring=1 request=100 user_data=1 opcode=READ by_kernel=1
         95 0 uring_complete ring=1 request=100 user_data=1 result=40
         99 0 thread_switch prev_tid=9 prev_comm=web prev_state=1 next_tid=0",
        &expect![[r#"
            uring
              opcode=`READ` count=3 total=25 min=5 avg=8 max=10 stdev=3 p50=10 p90=10 p99=10 p999=10 read=70
            uring-threads
              thread=`web pid 9 tid 9` opcode=`READ` count=2 total=15 min=5 avg=8 max=10 stdev=4 read=60
              thread=`db pid 7 tid 7` opcode=`READ` count=1 total=10 min=10 avg=10 max=10 read=10
            uring-errors
            uring-slowest
              time=30..40 duration=10 thread=`db pid 7 tid 7` opcode=`READ` ret=10 handed_over=false request=100 user_data=1
              time=50..60 duration=10 thread=`web pid 9 tid 9` opcode=`READ` ret=20 handed_over=false request=100 user_data=1
              time=90..95 duration=5 thread=`web pid 9 tid 9` opcode=`READ` ret=40 handed_over=false request=100 user_data=1
        "#]],
    );
}

/// A thread's number is given to another one while a request is open: it stays that of the first. What a CPU did before its
/// first switch is of the thread that this names.
#[test]
fn lives_are_told_apart() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         10 0 uring_submit ring=1 request=100 user_data=1 opcode=READ
         20 0 thread_switch prev_tid=7 prev_comm=old prev_state=16 next_tid=0
         30 0 thread_fork child_tid=7 child_pid=7 child_comm=new parent_tid=1 parent_pid=1
         40 1 thread_switch prev_tid=0 next_tid=7 next_comm=new
         50 1 uring_submit ring=2 request=200 user_data=1 opcode=READ
         60 1 uring_complete ring=1 request=100 user_data=1 result=10
         70 1 uring_complete ring=2 request=200 user_data=1 result=30
         80 1 thread_switch prev_tid=7 prev_comm=new prev_state=1 next_tid=0",
        &expect![[r#"
            uring
              opcode=`READ` count=2 total=70 min=20 avg=35 max=50 stdev=21 p50=20 p90=50 p99=50 p999=50 read=40
            uring-threads
              thread=`old pid ? tid 7` opcode=`READ` count=1 total=50 min=50 avg=50 max=50 read=10
              thread=`new pid 7 tid 7` incarnation=1 opcode=`READ` count=1 total=20 min=20 avg=20 max=20 read=30
            uring-errors
            uring-slowest
              time=10..60 duration=50 thread=`old pid ? tid 7` opcode=`READ` ret=10 handed_over=false request=100 user_data=1
              time=50..70 duration=20 thread=`new pid 7 tid 7` incarnation=1 opcode=`READ` ret=30 handed_over=false request=200 user_data=1
        "#]],
    );
}

/// Only requests that are asked for count: by duration, thread and name.
#[test]
fn requests_are_selected() {
    let script = Script::parse(HANDED_OVER);
    let count = |wishes: Wishes| {
        let syscalls = Syscalls::new(&script.setup(&wishes));
        let answer = text(&syscalls.finish(&script.state(&syscalls)).unwrap());
        let rows = answer.lines().skip_while(|line| *line != "uring").skip(1).take_while(|line| line.starts_with(' '));
        let count = |row: &str| row.split_once(" count=").unwrap().1.split(' ').next().unwrap().parse::<u64>().unwrap();
        rows.map(count).sum::<u64>()
    };
    assert_eq!(count(wishes("uring")), 3);
    assert_eq!(count(Wishes { min_ns: Some(5), ..wishes("uring") }), 2);
    assert_eq!(count(Wishes { max_ns: Some(5), ..wishes("uring") }), 1);
    assert_eq!(count(Wishes { tids: vec![8], ..wishes("uring") }), 0, "the worker owns none");
    assert_eq!(count(Wishes { comms: vec!["d*".to_owned()], ..wishes("uring") }), 3);
    assert_eq!(count(Wishes { names: vec!["WR*".to_owned()], ..wishes("uring") }), 1);
    assert_eq!(count(Wishes { cpus: vec![1], ..wishes("uring") }), 1, "where it completes");
}

/// A thread that comes first only with its requests is shown, although fewer rows are asked for.
#[test]
fn requests_decide_which_threads_come_first() {
    let script = Script::parse(
        "lane cpu=0 span=0..1000
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=calls
         11 0 syscall_entry syscall=write fd=1
         12 0 syscall_exit syscall=write ret=100
         20 0 thread_switch prev_tid=7 prev_comm=calls prev_state=1 next_tid=8 next_comm=both
         21 0 syscall_entry syscall=write fd=1
         22 0 syscall_exit syscall=write ret=10
         23 0 uring_submit ring=1 request=100 user_data=1 opcode=WRITE
         24 0 uring_complete ring=1 request=100 user_data=1 result=512
         30 0 thread_switch prev_tid=8 prev_comm=both prev_state=1 next_tid=0",
    );
    let wishes = Wishes { top: Some(1), ..wishes("thread") };
    let io = Io::new(&script.setup(&wishes));
    let answer = io.finish(&script.state(&io)).unwrap();
    assert_eq!(answer.tables[0].omitted, 1);
    assert!(text(&answer).contains("`both pid ? tid 8` incarnation=0 read=0 write=522"), "{}", text(&answer));
    script.check_cuts(&io, 100);
}

/// Anything in any order, cut anywhere.
#[test]
fn cuts_change_nothing() {
    for seed in 0..60 {
        let script = Script::parse(&random(&mut Random(seed)));
        let wishes = Wishes::default();
        script.check_cuts(&Syscalls::new(&script.setup(&wishes)), 20);
        script.check_cuts(&Io::new(&script.setup(&wishes)), 20);
        let sums =
            ["count", "errors", "total", "read", "write", "handovers", "blocks", "more", "began_before", "loose"];
        let sums = sums.map(|column| Sum { class: "uring", keys: &["opcode"], column });
        script.check_periods(20, &Wishes { by: vec!["uring".to_owned()], ..wishes }, Syscalls::new, &sums);
    }
}

fn random(random: &mut Random) -> String {
    let mut script = String::from("lane cpu=0 span=0..9000 hole=1500..1510\nlane cpu=1 span=0..9000\n");
    let names = ["idle", "db", "web", "iou-wrk-1", "iou-sqp-2"];
    let (mut time, mut running) = (0, [random.below(5), random.below(5)]);
    for _ in 0..150 {
        time += random.below(20);
        let (lane, request, ring) = (random.below(2), 1 + random.below(6), 1 + random.below(2));
        let opcode = ["READ", "WRITE", "NOP", "FSYNC"][random.below(4)];
        let data = random.below(3);
        let event = match random.below(14) {
            0..4 => format!(
                "uring_submit ring={ring} request={request} user_data={data} opcode={opcode} by_kernel={} request_flags={}",
                random.below(2),
                64 * random.below(2)
            ),
            4..7 => format!(
                "uring_complete ring={ring} request={} user_data={data} result={} result_flags={}",
                if random.below(3) == 0 { 0 } else { request },
                random.below(9) as i64 - 3,
                [0, 0, 0, 2, 8][random.below(5)]
            ),
            7 => format!("uring_queue ring={ring} request={request}"),
            8 => format!("uring_file ring={ring} request={request}"),
            9 if random.below(2) == 0 => format!("uring_ring ring={ring} ring_fd=3"),
            9 => format!("uring_ring ring={ring}"),
            10 => "block_issue dev=1 sector=8 sectors=8".to_owned(),
            _ => {
                let next = random.below(5);
                let prev = std::mem::replace(&mut running[lane], next);
                let state = [0, 1, 16][random.below(3)];
                format!(
                    "thread_switch prev_tid={prev} prev_comm={} prev_state={state} next_tid={next} next_comm={}",
                    names[prev], names[next]
                )
            }
        };
        script += &format!("{time} {lane} {event}\n");
    }
    script
}
