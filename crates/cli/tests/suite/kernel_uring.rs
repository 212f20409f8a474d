//! Requests of io_uring that a program makes, recorded from the kernel: each is counted once, with its bytes, by opcode.

use serde_json::Value;

use crate::c_programs;
use crate::kernel::can_record;
use crate::recorded::Place;

/// Makes a known number of requests, by the kernel's interface alone; 77: there is no io_uring here.
const RING: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct { int fd; unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask; struct io_uring_sqe *sqes; struct io_uring_cqe *cqes; unsigned queued; } ring;

static void *map(size_t size, off_t at)
{
    void *found = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, at);
    if (found == MAP_FAILED) { perror("mmap"); exit(3); }
    return found;
}

static void set_up(unsigned flags)
{
    struct io_uring_params p = { .flags = flags };
    ring.fd = (int)syscall(SYS_io_uring_setup, 64, &p);
    if (ring.fd < 0) { perror("io_uring_setup"); exit(77); }
    char *sq = map(p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    char *cq = map(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring.sqes = map(p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring.sq_tail = (unsigned *)(sq + p.sq_off.tail);
    ring.sq_mask = (unsigned *)(sq + p.sq_off.ring_mask);
    ring.sq_array = (unsigned *)(sq + p.sq_off.array);
    ring.cq_head = (unsigned *)(cq + p.cq_off.head);
    ring.cq_tail = (unsigned *)(cq + p.cq_off.tail);
    ring.cq_mask = (unsigned *)(cq + p.cq_off.ring_mask);
    ring.cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
}

static struct io_uring_sqe *next(unsigned char opcode, int fd, const void *address, unsigned length, uint64_t user_data)
{
    unsigned tail = *ring.sq_tail + ring.queued++, place = tail & *ring.sq_mask;
    struct io_uring_sqe *sqe = &ring.sqes[place];
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = opcode;
    sqe->fd = fd;
    sqe->addr = (uintptr_t)address;
    sqe->len = length;
    sqe->user_data = user_data;
    ring.sq_array[place] = place;
    return sqe;
}

static void submit(unsigned wait)
{
    __atomic_store_n(ring.sq_tail, *ring.sq_tail + ring.queued, __ATOMIC_RELEASE);
    int done = (int)syscall(SYS_io_uring_enter, ring.fd, ring.queued, wait, IORING_ENTER_GETEVENTS, 0, 0);
    if (done != (int)ring.queued) { fprintf(stderr, "io_uring_enter: %d of %u (%s)\n", done, ring.queued, strerror(errno)); exit(4); }
    ring.queued = 0;
}

struct completion { uint64_t user_data; int res; unsigned flags; };

static struct completion take(void)
{
    unsigned head = *ring.cq_head;
    if (head == __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE))
        submit(1);
    struct io_uring_cqe *cqe = &ring.cqes[head & *ring.cq_mask];
    struct completion taken = { cqe->user_data, cqe->res, cqe->flags };
    __atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
    return taken;
}

static void expect(int wanted)
{
    struct completion cqe = take();
    if (cqe.res != wanted) { fprintf(stderr, "request %llu: %d instead of %d\n", (unsigned long long)cqe.user_data, cqe.res, wanted); exit(5); }
}

static char block[4096];

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    set_up(0);
    int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int n = 0; n < 20; n++) { next(IORING_OP_NOP, -1, 0, 0, 1); submit(1); expect(0); }
    for (int n = 0; n < 7; n++) { next(IORING_OP_WRITE, file, block, 4096, 2)->off = (uint64_t)n * 4096; submit(1); expect(4096); }
    for (int n = 0; n < 5; n++) { next(IORING_OP_READ, file, block, 1000, 3)->off = (uint64_t)n * 1000; submit(1); expect(1000); }
    struct io_uring_sqe *sqe = next(IORING_OP_READ, file, block, 500, 4);
    sqe->flags = IOSQE_ASYNC;
    submit(1); expect(500);
    next(IORING_OP_READ, 999, block, 10, 5); submit(1); expect(-EBADF);
    next(200, 1, 0, 0, 6); submit(1); expect(-EINVAL);
    struct { int64_t seconds, nanos; } time = { 0, 3000000 };
    next(IORING_OP_TIMEOUT, -1, &time, 1, 7); submit(1); expect(-ETIME);
    /* Two that are linked: the second one is canceled, as the first one fails. */
    next(IORING_OP_READ, 999, block, 10, 8)->flags = IOSQE_IO_LINK;
    next(IORING_OP_NOP, -1, 0, 0, 9); submit(2); expect(-EBADF); expect(-ECANCELED);
    next(IORING_OP_FSYNC, file, 0, 0, 10); submit(1); expect(0);
    /* A poll that completes three times, and a last time when it is removed. */
    int ends[2];
    if (pipe(ends)) return 6;
    sqe = next(IORING_OP_POLL_ADD, ends[0], 0, IORING_POLL_ADD_MULTI, 11);
    sqe->poll32_events = POLLIN; submit(0);
    for (int n = 0; n < 3; n++) {
        if (write(ends[1], "x", 1) != 1) return 7;
        struct completion cqe = take();
        if (cqe.user_data != 11 || !(cqe.flags & IORING_CQE_F_MORE)) { fprintf(stderr, "poll: %d %x\n", cqe.res, cqe.flags); return 8; }
        if (read(ends[0], block, 1) != 1) return 9;
    }
    next(IORING_OP_POLL_REMOVE, -1, (void *)11, 0, 12); submit(2);
    take(); take();
    return 0;
}
"#;

/// Rows of a table as objects, by the names of its columns.
fn rows(answer: &Value, class: &str) -> Vec<serde_json::Map<String, Value>> {
    let tables = answer["tables"].as_array().expect("there are tables");
    let table = tables.iter().find(|table| table["class"] == class).unwrap_or_else(|| panic!("no table {class}"));
    let names = || table["columns"].as_array().expect("it has columns").iter().map(|column| column["name"].as_str());
    let row = |row: &Value| {
        let cells = row.as_array().expect("it is a row").iter().cloned();
        names().map(|name| name.expect("it has a name").to_owned()).zip(cells).collect()
    };
    table["rows"].as_array().expect("it has rows").iter().map(row).collect()
}

/// Recordings until one tells all switches of the thread: some kernels leave some out, and then nothing says which thread a CPU
/// ran when a request was submitted.
const TRIES: usize = 10;

/// Every request of a program is one row's: by opcode, with results, errors, bytes and hand-overs, in `syscalls` and `io`.
#[test]
fn requests_of_a_program_are_counted() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    let Some(library) = c_programs::library() else { return };
    let program = c_programs::program(&place.path("."), &library, "ring", RING);
    let mut problem = None;
    for number in 0..TRIES {
        let trace = format!("trace{number}");
        let mut command = place.kymo(&["record", "--kernel=io", "--json", "--output", &trace, "--"]);
        let output = command.arg(&program).arg(place.path("file")).output().expect("it starts");
        if output.status.code() == Some(77) {
            eprintln!("NO IO_URING HERE: not run ({})", String::from_utf8_lossy(&output.stderr).trim_end());
            return;
        }
        assert!(output.status.success(), "{output:?}");
        let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!(summary["kernel"]["lost"], 0, "{summary}");
        for analysis in ["syscalls", "io"] {
            assert_eq!(by_opcode(&place.json(&[analysis, "--json", &trace])), expected(), "{analysis}");
        }
        let its = ["syscalls", "io"].map(|analysis| place.json(&[analysis, "--json", "--procname", "ring", &trace]));
        if its.iter().all(|answer| by_opcode(answer) == expected()) {
            let none = ["began_before", "never_ended", "silent", "lost_inside", "loose"];
            let rows = its.iter().flat_map(|answer| rows(answer, "uring"));
            rows.for_each(|row| assert!(none.iter().all(|name| row[*name] == 0), "{row:?}"));
            // Switches that are missing elsewhere make rows of unknown threads.
            let agreed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| agree(&place, &trace)));
            if agreed.is_ok() {
                return;
            }
            problem = agreed.err();
        }
    }
    if let Some(problem) = problem {
        std::panic::resume_unwind(problem);
    }
    eprintln!(
        "NOT TESTED: this kernel left out switches in {TRIES} recordings, and the owner of requests is not known"
    );
}

/// Requests, errors, bytes read and written, and further results of each opcode.
fn by_opcode(answer: &Value) -> Vec<(String, [u64; 5])> {
    let of = |row: &serde_json::Map<String, Value>| {
        let number = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{name} of {row:?}"));
        let opcode = row["opcode"].as_str().expect("it has an opcode").to_owned();
        (opcode, ["count", "errors", "read", "write", "more"].map(number))
    };
    let mut counts: Vec<_> = rows(answer, "uring").iter().map(of).collect();
    counts.sort();
    counts
}

fn expected() -> Vec<(String, [u64; 5])> {
    let counts = [
        ("FSYNC", [1, 0, 0, 0, 0]),
        // It is no opcode of the kernel.
        ("INVALID", [1, 1, 0, 0, 0]),
        ("NOP", [21, 1, 0, 0, 0]),
        ("POLL_ADD", [1, 1, 0, 0, 3]),
        ("POLL_REMOVE", [1, 0, 0, 0, 0]),
        ("READ", [8, 2, 5 * 1000 + 500, 0, 0]),
        ("TIMEOUT", [1, 1, 0, 0, 0]),
        ("WRITE", [7, 0, 0, 7 * 4096, 0]),
    ];
    counts.map(|(opcode, counts)| (opcode.to_owned(), counts)).into()
}

/// The requests are added to the calls of the one thread that made them, and are pairs, too.
fn agree(place: &Place, trace: &str) {
    let io = place.json(&["io", "--json", "--procname", "ring", trace]);
    let threads = rows(&io, "per-thread");
    let [thread] = &threads[..] else { panic!("{threads:?}") };
    // Its own calls are 3 reads and 3 writes of a byte at the pipe, and those that load the program.
    assert_eq!(thread["write"], 7 * 4096 + 3, "{thread:?}");
    assert_eq!(thread["writes"], 7 + 3, "{thread:?}");
    let of_calls = place.json(&["syscalls", "--json", "--by", "thread", "--procname", "ring", trace]);
    let reads = rows(&of_calls, "per-thread")
        .iter()
        .filter(|row| row["syscall"] == "read" || row["syscall"] == "pread64")
        .map(|row| row["count"].as_u64().expect("it is a number"))
        .sum::<u64>();
    assert_eq!(thread["reads"], reads + 8, "{thread:?}");
    let tid = &thread["thread"]["tid"];
    let slowest = place.json(&["syscalls", "--json", "--top", "100", "--by", "uring", "--procname", "ring", trace]);
    let slowest = rows(&slowest, "uring-slowest");
    assert_eq!(slowest.len(), 41);
    assert!(slowest.iter().all(|row| row["thread"]["tid"] == *tid), "{slowest:?}");
    let by_worker: Vec<_> = slowest.iter().filter(|row| row["user_data"] == 4).collect();
    assert!(by_worker.len() == 1 && by_worker[0]["handed_over"] == true, "IOSQE_ASYNC: {by_worker:?}");
    // Where a wait is known, it is within the request.
    assert!(slowest.iter().all(|row| row["worker_wait"].as_u64() <= row["duration"].as_u64()), "{slowest:?}");
    let pairs = place.json(&["pairs", "--json", "--top", "all", trace]);
    let reads = rows(&pairs, "per-group").into_iter().find(|row| row["group"]["value"] == "READ");
    assert_eq!(reads.unwrap_or_else(|| panic!("reads are pairs: {pairs}"))["count"], 8);
}
