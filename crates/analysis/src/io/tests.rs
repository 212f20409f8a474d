//! Cases of `io`: the file of an fd, and its users.

use expect_test::{Expect, expect};

use super::Io;
use crate::roles::EventRole;
use crate::syscalls::tests::random_script;
use crate::testing::{Random, Script, text};
use crate::{Analysis, Wishes};

fn check(script: &str, by: &[&str], expect: &Expect) {
    let script = Script::parse(script);
    let wishes = Wishes { by: by.iter().map(|&by| by.to_owned()).collect(), bins: 2, ..Wishes::default() };
    let io = Io::new(&script.setup(&wishes));
    expect.assert_eq(&text(&io.finish(&script.state(&io)).unwrap()));
    script.check_cuts(&io, 200);
}

/// All tables of a small trace.
#[test]
fn what_is_read_and_written_is_counted() {
    check(
        "lane cpu=0 span=0..1000
         5 0 thread_state known_tid=7 known_pid=7 known_comm=cat
         6 0 file_state file_pid=7 file_fd=1 file_path=/dev/pts/0
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=cat
         20 0 syscall_entry syscall=openat path=/etc/motd flags=0
         30 0 syscall_exit syscall=openat ret=3
         40 0 syscall_entry syscall=read fd=3
         50 0 syscall_exit syscall=read ret=100
         60 0 syscall_entry syscall=read fd=3
         65 0 syscall_exit syscall=read ret=20
         70 0 syscall_entry syscall=write fd=1
         80 0 syscall_exit syscall=write ret=120
         85 0 syscall_entry syscall=openat path=/nowhere
         90 0 syscall_exit syscall=openat ret=-2
         92 0 syscall_entry syscall=close fd=3
         94 0 syscall_exit syscall=close ret=0
         96 0 syscall_entry syscall=read fd=3
         98 0 syscall_exit syscall=read ret=-9
         100 0 block_issue dev=8388608 sector=64 sectors=16 rwbs=R
         110 0 block_complete dev=8388608 sector=64 sectors=16
         120 0 net_send interface=eth0 length=60
         130 0 net_receive interface=eth0 length=90
         140 0 thread_switch prev_tid=7 prev_comm=cat prev_state=1 next_tid=0",
        &[],
        &expect![[r#"
            per-thread
              thread=`cat pid 7 tid 7` incarnation=0 read=120 write=120 read_disk=120 read_net=0 read_unknown=0 write_disk=120 write_net=0 write_unknown=0 reads=3 writes=1 opens=2 syncs=0 errors=2
            per-process
              process=`cat pid 7` read=120 write=120 read_disk=120 read_net=0 read_unknown=0 write_disk=120 write_net=0 write_unknown=0 reads=3 writes=1 opens=2 syncs=0 errors=2
            per-file
              path=`/etc/motd` read=120 write=0 reads=2 writes=0 opens=1 syncs=0 errors=0
              path=`/dev/pts/0` read=0 write=120 reads=0 writes=1 opens=0 syncs=0 errors=0
              path=`/nowhere` read=0 write=0 reads=0 writes=0 opens=1 syncs=0 errors=1
              fd=3 process=`cat pid 7` read=0 write=0 reads=1 writes=0 opens=0 syncs=0 errors=1
            per-category
              category=`open` count=2 total=15 min=5 avg=8 max=10 stdev=4 p50=5 p90=10 p99=10 p999=10
              category=`read` count=3 total=17 min=2 avg=6 max=10 stdev=4 p50=5 p90=10 p99=10 p999=10
              category=`write` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10
            per-disk
              device=`8,0` reads=1 writes=0 sectors=16 bytes=8192 errors=0 count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10 queue_count=0 queue_total=0 began_before=0 never_ended=0 lost_inside=0
            per-interface
              interface=`eth0` sent=1 sent_bytes=60 received=1 received_bytes=90
            slowest
              time=20..30 duration=10 thread=`cat pid 7 tid 7` incarnation=0 syscall=`openat` path=`/etc/motd` ret=3
              time=40..50 duration=10 thread=`cat pid 7 tid 7` incarnation=0 syscall=`read` path=`/etc/motd` ret=100
              time=70..80 duration=10 thread=`cat pid 7 tid 7` incarnation=0 syscall=`write` path=`/dev/pts/0` ret=120
              time=60..65 duration=5 thread=`cat pid 7 tid 7` incarnation=0 syscall=`read` path=`/etc/motd` ret=20
              time=85..90 duration=5 thread=`cat pid 7 tid 7` incarnation=0 syscall=`openat` path=`/nowhere` ret=-2
              time=96..98 duration=2 thread=`cat pid 7 tid 7` incarnation=0 syscall=`read` fd=3 process=`cat pid 7` ret=-9
            distribution
              low=2 high=4 count=1
              low=4 high=11 count=5
            uring
        "#]],
    );
}

/// A thread of the process closes and opens on another CPU the fd that this one reads: each read is
/// of the file that the fd was when the read was entered, also where that was runs before.
#[test]
fn threads_of_a_process_share_their_fds() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         5 0 thread_state known_tid=7 known_pid=7 known_comm=main
         6 0 thread_state known_tid=8 known_pid=7 known_comm=work
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=main
         20 0 syscall_entry syscall=open path=/a
         30 0 syscall_exit syscall=open ret=3
         31 1 thread_switch prev_tid=0 next_tid=8 next_comm=work
         32 1 syscall_entry syscall=read fd=3
         33 1 thread_switch prev_tid=8 prev_comm=work prev_state=1 next_tid=0
         40 0 syscall_entry syscall=close fd=3
         41 0 syscall_exit syscall=close ret=0
         42 0 syscall_entry syscall=open path=/b
         43 0 syscall_exit syscall=open ret=3
         50 1 thread_switch prev_tid=0 next_tid=8 next_comm=work
         51 1 syscall_exit syscall=read ret=10
         52 1 syscall_entry syscall=read fd=3
         53 1 syscall_exit syscall=read ret=20
         54 1 thread_switch prev_tid=8 prev_comm=work prev_state=1 next_tid=0
         60 0 thread_switch prev_tid=7 prev_comm=main prev_state=1 next_tid=0",
        &["file", "thread"],
        &expect![[r#"
            per-thread
              thread=`work pid 7 tid 8` incarnation=0 read=30 write=0 read_disk=30 read_net=0 read_unknown=0 write_disk=0 write_net=0 write_unknown=0 reads=2 writes=0 opens=0 syncs=0 errors=0
              thread=`main pid 7 tid 7` incarnation=0 read=0 write=0 read_disk=0 read_net=0 read_unknown=0 write_disk=0 write_net=0 write_unknown=0 reads=0 writes=0 opens=2 syncs=0 errors=0
            per-file
              path=`/b` read=20 write=0 reads=1 writes=0 opens=1 syncs=0 errors=0
              path=`/a` read=10 write=0 reads=1 writes=0 opens=1 syncs=0 errors=0
        "#]],
    );
}

/// Sockets, duplicates, pipes; a child gets copies of the fds, and a new program loses some.
#[test]
fn fds_are_made_and_copied() {
    check(
        "lane cpu=0 span=0..1000
         5 0 thread_state known_tid=7 known_pid=7 known_comm=main
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=main
         20 0 syscall_entry syscall=socket family=2 flags=524289
         21 0 syscall_exit syscall=socket ret=3
         22 0 syscall_entry syscall=accept fd=3
         23 0 syscall_exit syscall=accept ret=4
         24 0 syscall_entry syscall=dup2 fd=4 other_fd=9
         25 0 syscall_exit syscall=dup2 ret=9
         26 0 syscall_entry syscall=pipe
         27 0 syscall_exit syscall=pipe ret=0 new_fd=5 new_other_fd=6
         28 0 syscall_entry syscall=fcntl fd=9 command=1
         29 0 syscall_exit syscall=fcntl ret=1
         30 0 thread_fork child_tid=8 child_pid=8 child_comm=child parent_tid=7 parent_pid=7
         31 0 syscall_entry syscall=close fd=9
         32 0 syscall_exit syscall=close ret=0
         40 0 thread_switch prev_tid=7 prev_comm=main prev_state=1 next_tid=8 next_comm=child
         41 0 syscall_entry syscall=sendfile fd=9 other_fd=6
         42 0 syscall_exit syscall=sendfile ret=1000
         43 0 thread_exec exec_tid=8
         44 0 syscall_entry syscall=read fd=3
         45 0 syscall_exit syscall=read ret=7
         46 0 syscall_entry syscall=fsync fd=6
         47 0 syscall_exit syscall=fsync ret=-22
         50 0 thread_switch prev_tid=8 prev_comm=child prev_state=1 next_tid=0",
        &["file", "process"],
        &expect![[r#"
            per-process
              process=`child pid 8` read=1007 write=1000 read_disk=0 read_net=1000 read_unknown=7 write_disk=0 write_net=0 write_unknown=1000 reads=2 writes=1 opens=0 syncs=1 errors=1
              process=`main pid 7` read=0 write=0 read_disk=0 read_net=0 read_unknown=0 write_disk=0 write_net=0 write_unknown=0 reads=0 writes=0 opens=4 syncs=0 errors=0
            per-file
              path=`pipe` read=0 write=1000 reads=0 writes=1 opens=0 syncs=1 errors=1
              path=`socket` read=1000 write=0 reads=1 writes=0 opens=0 syncs=0 errors=0
              fd=3 process=`child pid 8` read=7 write=0 reads=1 writes=0 opens=0 syncs=0 errors=0
        "#]],
    );
}

/// Without its entry the file is unknown; without its process an fd is the thread's own; in holes
/// there may have been more.
#[test]
fn what_is_not_known_is_said() {
    check(
        "lane cpu=0 span=0..1000 hole=400..500 lost=2
         10 0 syscall_exit syscall=read ret=5
         20 0 syscall_entry syscall=write fd=2
         30 0 syscall_exit syscall=write ret=6
         40 0 thread_switch prev_tid=7 prev_comm=main prev_state=1 next_tid=8 next_comm=other
         50 0 syscall_entry syscall=write fd=2
         600 0 syscall_exit syscall=write ret=9
         700 0 syscall_exit ret=3
         710 0 thread_switch prev_tid=8 prev_comm=other prev_state=1 next_tid=0",
        &["thread", "file", "category"],
        &expect![[r#"
            per-thread
              thread=`main pid ? tid 7` incarnation=0 read=5[5,none] write=6[6,none] read_disk=0[0,none] read_net=0[0,none] read_unknown=5[5,none] write_disk=0[0,none] write_net=0[0,none] write_unknown=6[6,none] reads=1[1,none] writes=1[1,none] opens=0[0,none] syncs=0[0,none] errors=0[0,none]
              thread=`other pid ? tid 8` incarnation=0 read=0[0,none] write=9[9,none] read_disk=0[0,none] read_net=0[0,none] read_unknown=0[0,none] write_disk=0[0,none] write_net=0[0,none] write_unknown=9[9,none] reads=0[0,none] writes=1[1,none] opens=0[0,none] syncs=0[0,none] errors=0[0,none]
            per-file
              fd=2 process=`other pid ? tid 8` read=0[0,none] write=9[9,none] reads=0[0,none] writes=1[1,none] opens=0[0,none] syncs=0[0,none] errors=0[0,none]
              fd=2 process=`main pid ? tid 7` read=0[0,none] write=6[6,none] reads=0[0,none] writes=1[1,none] opens=0[0,none] syncs=0[0,none] errors=0[0,none]
              path=? read=5[5,none] write=0[0,none] reads=1[1,none] writes=0[0,none] opens=0[0,none] syncs=0[0,none] errors=0[0,none]
            per-category
              category=`write` count=1 total=10 min=10 avg=10 max=10 p50=10 p90=10 p99=10 p999=10
        "#]],
    );
}

/// The slowest operations, each with its file.
#[test]
fn the_slowest_are_named() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=main
         20 0 syscall_entry syscall=open path=/a
         30 0 syscall_exit syscall=open ret=3
         40 0 syscall_entry syscall=read fd=3
         50 0 thread_switch prev_tid=7 prev_comm=main prev_state=1 next_tid=0
         90 1 thread_switch prev_tid=0 next_tid=7 next_comm=main
         95 1 syscall_exit syscall=read ret=4096
         96 1 syscall_entry syscall=close fd=3
         97 1 syscall_exit syscall=close ret=0",
        &["slowest", "distribution"],
        &expect![[r#"
            slowest
              time=40..95 duration=55 thread=`main pid ? tid 7` incarnation=0 syscall=`read` path=`/a` ret=4096
              time=20..30 duration=10 thread=`main pid ? tid 7` incarnation=0 syscall=`open` path=`/a` ret=3
            distribution
              low=10 high=23 count=1
              low=23 high=56 count=1
        "#]],
    );
}

/// Processes that are over have names, and so have lives before the last one of a number.
#[test]
fn who_died_has_a_name() {
    check(
        "lane cpu=0 span=0..1000
         5 0 thread_fork child_tid=7 child_pid=7 child_comm=one parent_tid=1 parent_pid=1
         10 0 thread_switch prev_tid=0 next_tid=7 next_comm=one
         20 0 syscall_entry syscall=write fd=1
         30 0 syscall_exit syscall=write ret=3
         40 0 thread_switch prev_tid=7 prev_comm=one prev_state=16 next_tid=0
         50 0 thread_fork child_tid=7 child_pid=8 child_comm=two parent_tid=1 parent_pid=1
         60 0 thread_switch prev_tid=0 next_tid=7 next_comm=two
         70 0 syscall_entry syscall=write fd=1
         80 0 syscall_exit syscall=write ret=4
         90 0 thread_switch prev_tid=7 prev_comm=two prev_state=16 next_tid=0",
        &["thread", "process", "slowest"],
        &expect![[r#"
            per-thread
              thread=`two pid 8 tid 7` incarnation=1 read=0 write=4 read_disk=0 read_net=0 read_unknown=0 write_disk=0 write_net=0 write_unknown=4 reads=0 writes=1 opens=0 syncs=0 errors=0
              thread=`one pid 7 tid 7` incarnation=0 read=0 write=3 read_disk=0 read_net=0 read_unknown=0 write_disk=0 write_net=0 write_unknown=3 reads=0 writes=1 opens=0 syncs=0 errors=0
            per-process
              process=`? pid 8` read=0 write=4 read_disk=0 read_net=0 read_unknown=0 write_disk=0 write_net=0 write_unknown=4 reads=0 writes=1 opens=0 syncs=0 errors=0
              process=`one pid 7` read=0 write=3 read_disk=0 read_net=0 read_unknown=0 write_disk=0 write_net=0 write_unknown=3 reads=0 writes=1 opens=0 syncs=0 errors=0
            slowest
              time=20..30 duration=10 thread=`one pid 7 tid 7` incarnation=0 syscall=`write` fd=1 process=`one pid 7` ret=3
              time=70..80 duration=10 thread=`two pid 8 tid 7` incarnation=1 syscall=`write` fd=1 process=`? pid 8` ret=4
        "#]],
    );
}

/// Calls that are no operations are not read where exits say which call they are.
#[test]
fn only_some_calls_are_wanted() {
    assert!(Io::wants(EventRole::SyscallEntry, "read") && Io::wants(EventRole::SyscallExit, "read"));
    assert!(Io::wants(EventRole::SyscallEntry, "close") && !Io::wants(EventRole::SyscallExit, "close"));
    assert!(!Io::wants(EventRole::SyscallEntry, "futex") && Io::wants(EventRole::Switch, ""));
}

/// Random threads of random processes on random CPUs: cutting changes nothing.
#[test]
fn cuts_change_nothing() {
    for seed in 0..60 {
        let calls = [&["read", "open", "close"][..], &["write", "openat", "close", "dup", "futex", "sendfile"]];
        let script = Script::parse(&random_script(seed, calls[seed as usize % 2], true));
        for wishes in [Wishes::default(), Wishes { tids: vec![1, 2], top: Some(4), ..Wishes::default() }] {
            let io = Io::new(&script.setup(&wishes));
            script.check_cuts(&io, 12);
        }
    }
}

/// A machine on which processes are made and end, share their fds among threads, and become other
/// programs. Where it is not `is_honest`, the reported processes are wrong.
fn processes(seed: u64, is_honest: bool) -> String {
    let mut random = Random(seed);
    let lanes = 1 + random.below(3);
    let mut script: String = (0..lanes).map(|lane| format!("lane cpu={lane} span=0..9000\n")).collect();
    // Threads that live, and their processes; the threads of the CPUs.
    let mut alive: Vec<(usize, usize)> = (1..=4).map(|tid| (tid, 1 + tid / 3)).collect();
    let mut current = vec![0; lanes];
    let mut time = 0;
    for _ in 0..300 {
        time += 1 + random.below(9);
        let lane = random.below(lanes);
        let runs = alive.iter().copied().find(|thread| thread.0 == current[lane]);
        let (fd, call) = (random.below(4), ["read", "write"][random.below(2)]);
        let event = match (random.below(14), runs) {
            (0..3, _) | (_, None) => {
                let waiting: Vec<usize> =
                    alive.iter().map(|thread| thread.0).filter(|tid| !current.contains(tid)).collect();
                let next = if waiting.is_empty() { 0 } else { waiting[random.below(waiting.len())] };
                let prev = std::mem::replace(&mut current[lane], next);
                let is_dead = prev > 0 && alive.len() > 2 && random.below(5) == 0;
                alive.retain(|thread| !is_dead || thread.0 != prev);
                let state = if is_dead { 0x10 } else { 1 };
                format!(
                    "thread_switch prev_tid={prev} prev_state={state} prev_comm=n{prev} next_tid={next} next_comm=n{next}"
                )
            }
            (3, Some((parent, pid))) if alive.len() < 7 => {
                let free = |tid: &usize| alive.iter().all(|thread| thread.0 != *tid && thread.1 != *tid);
                let tid = (1..30).find(free).expect("so many are not alive");
                let own = if random.below(3) == 0 { pid } else { tid };
                let said = if is_honest { own } else { 1 + random.below(9) };
                alive.push((tid, own));
                format!(
                    "thread_fork child_tid={tid} child_pid={said} child_comm=n{tid} parent_tid={parent} parent_pid={pid}"
                )
            }
            (4, Some((tid, pid))) => {
                let (tid, pid) = if is_honest { (tid, pid) } else { (1 + random.below(9), 1 + random.below(9)) };
                let table =
                    if random.below(2) == 0 { format!(" known_file_table={}", 1000 + pid) } else { String::new() };
                format!("thread_state known_tid={tid} known_pid={pid}{table}")
            }
            (5, Some((tid, _))) => format!("thread_exec exec_tid={tid}"),
            (6, Some((_, pid))) if random.below(2) == 0 => {
                format!("file_state file_table={} file_fd={fd} file_path=/t{fd}", 1000 + pid)
            }
            (6, Some((_, pid))) => format!("file_state file_pid={pid} file_fd={fd} file_path=/s{fd}"),
            (7, Some(_)) => format!("syscall_entry syscall=close fd={fd}"),
            (8, Some(_)) => {
                format!("syscall_entry syscall=openat path=/p{} flags={}", random.below(9), 524_288 * random.below(2))
            }
            (9, Some(_)) => format!("syscall_exit syscall=openat ret={fd}"),
            (10, Some(_)) => format!(
                "syscall_entry syscall=dup fd={fd}\n{time} {lane} syscall_exit syscall=dup ret={}",
                random.below(4)
            ),
            (11, Some(_)) => format!("syscall_exit syscall={call} ret={}", 1 + random.below(50)),
            _ => format!("syscall_entry syscall={call} fd={fd}"),
        };
        script += &format!("{time} {lane} {event}\n");
    }
    script
}

/// LTTng names the table of files since 2.12, and not the process: files that were open before belong to the process that has it.
#[test]
fn files_that_were_open_before_are_of_the_process_with_their_table() {
    check(
        "lane cpu=0 span=0..1000
         lane cpu=1 span=0..1000
         1 0 thread_state known_tid=100 known_pid=100 known_comm=nginx known_file_table=77
         2 1 file_state file_table=77 file_fd=5 file_path=/var/log/a.log
         3 0 thread_state known_tid=101 known_pid=100 known_comm=worker known_file_table=77
         4 0 thread_state known_tid=200 known_pid=200 known_comm=other known_file_table=78
         5 1 file_state file_table=78 file_fd=5 file_path=/etc/b.conf
         6 1 file_state file_table=79 file_fd=5 file_path=/nobody/has/it
         10 0 thread_switch prev_tid=0 next_tid=101 next_comm=worker
         20 0 syscall_entry syscall=read fd=5
         30 0 syscall_exit syscall=read ret=64
         40 0 thread_switch prev_tid=101 prev_comm=worker prev_state=1 next_tid=200 next_comm=other
         50 0 syscall_entry syscall=read fd=5
         60 0 syscall_exit syscall=read ret=32
         70 0 thread_switch prev_tid=200 prev_comm=other prev_state=1 next_tid=0",
        &["file"],
        &expect![[r#"
            per-file
              path=`/var/log/a.log` read=64 write=0 reads=1 writes=0 opens=0 syncs=0 errors=0
              path=`/etc/b.conf` read=32 write=0 reads=1 writes=0 opens=0 syncs=0 errors=0
        "#]],
    );
}

/// Parts that are done by themselves as far as that is possible come to the same.
#[test]
fn what_is_condensed_comes_to_the_same() {
    let (mut condensed, mut left) = (0, [0, 0]);
    for seed in 0..3000 {
        let is_honest = seed % 3 > 0;
        let script = Script::parse(&processes(seed, is_honest));
        let wishes = Wishes { tids: [vec![], vec![1, 5]][usize::from(seed % 7 == 0)].clone(), ..Wishes::default() };
        let io = Io::new(&script.setup(&wishes));
        let whole = text(&io.finish(&script.state(&io)).unwrap());
        let mut random = Random(seed);
        for _ in 0..3 {
            let cuts = script.random_cuts(&mut random);
            let mut parts = script.parts(&io, &cuts, true).into_iter();
            let mut all = parts.next().expect("there is one");
            for mut part in parts {
                if random.below(5) > 0 {
                    left[0] += part.totals.log.settled_acts();
                    io.condense(&mut part);
                    left[1] += part.totals.log.settled_acts();
                    condensed += usize::from(part.totals.log.is_done());
                }
                io.merge(&mut all, script.sent(&io, &part));
            }
            assert!(!io.is_odd(&all), "seed {seed}: cut at {cuts:?}, what was said of a part alone is wrong");
            let found = text(&io.finish(&all).unwrap());
            assert!(found == whole, "seed {seed}, cut at {cuts:?}: {found} instead of {whole}");
        }
    }
    assert!(condensed > 5000, "only {condensed} parts are condensed");
    assert!(left[1] < left[0] * 9 / 10, "of {} acts, {} are left", left[0], left[1]);
}
