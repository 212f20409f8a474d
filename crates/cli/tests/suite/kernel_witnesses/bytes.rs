//! Bytes that processes read and write, as the kernel counts them itself: `rchar` and `wchar` of `/proc/PID/io`.

use super::{first_mark, load, moments, range, rows, told, value};
use crate::kernel::events;

/// Three processes read and write in all ways that the kernel counts, between two looks at their counts, which their parent says, and marks.
/// With a second word, they send and receive 1234 bytes, and splice 500.
const LOAD: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static char bytes[20000];
static void must(long done, long wanted) {
    if (done == wanted) return;
    fprintf(stderr, "%ld instead of %ld\n", done, wanted);
    exit(4);
}
static void act(int worker, int is_more) {
    char path[32];
    int ends[2];
    snprintf(path, sizeof path, "file-%d", worker);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), copy = open(path, O_WRONLY);
    int null = open("/dev/null", O_WRONLY), zero = open("/dev/zero", O_RDONLY);
    struct iovec parts[3] = {{bytes, 10}, {bytes, 300}, {bytes, 7}};
    for (int n = 0; n < 50 * (worker + 1); n++) {
        must(write(file, bytes, 1000 + n), 1000 + n);
        must(pwrite(file, bytes, 50, 5), 50);
        must(writev(file, parts, 3), 317);
        must(pwritev(file, parts, 2, 0), 310);
        must(pread(file, bytes, 999, 1), 999);
        must(preadv(file, parts, 3, 0), 317);
        must(read(zero, bytes, 20000), 20000);
        must(write(null, bytes, 20000), 20000);
    }
    must(lseek(file, 0, SEEK_SET), 0);
    must(readv(file, parts, 3), 317);
    off_t from = 0, to = 100000;
    must(sendfile(null, file, &from, 4321), 4321);
    from = 0;
    must(copy_file_range(file, &from, copy, &to, 3000, 0), 3000);
    must(pipe(ends), 0);
    must(write(ends[1], bytes, 100), 100);
    must(read(ends[0], bytes, 200), 100);
    must(read(999999, bytes, 200), -1);
    if (is_more) {
        from = 0;
        must(splice(file, &from, ends[1], 0, 500, 0), 500);
        must(read(ends[0], bytes, 500), 500);
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        must(send(ends[0], bytes, 1234, 0), 1234);
        must(recv(ends[1], bytes, 2000, 0), 1234);
        must(write(ends[0], bytes, 40), 40);
        must(read(ends[1], bytes, 2000), 40);
    }
}
/* The kernel counts a call when it ends: the worker has to wait in its next one. */
static void until_it_waits(pid_t worker) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", worker);
    while (state != 'S') {
        FILE *file = fopen(path, "r");
        if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) exit(5);
        fclose(file);
        usleep(1000);
    }
}
static void look(pid_t worker) {
    char path[64];
    long read, written;
    snprintf(path, sizeof path, "/proc/%d/io", worker);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "rchar: %ld\nwchar: %ld", &read, &written) != 2) exit(77);
    fclose(file);
    printf("%d %ld %ld\n", worker, read, written);
}
int main(int count, char **words) {
    int begin[2], end[2], done[2];
    long mark = atol(words[1]);
    pid_t workers[3];
    char byte;
    must(pipe(begin) | pipe(end) | pipe(done), 0);
    for (int n = 0; n < 3; n++) {
        workers[n] = fork();
        if (workers[n]) continue;
        must(read(begin[0], &byte, 1), 1);
        act(n, count > 2);
        must(write(done[1], "x", 1), 1);
        must(read(end[0], &byte, 1), 1);
        _exit(0);
    }
    for (int look_number = 0; look_number < 2; look_number++) {
        for (int n = 0; n < 3; n++) until_it_waits(workers[n]);
        for (int n = 0; n < 3; n++) look(workers[n]);
        syscall(SYS_timer_getoverrun, mark + look_number);
        must(write(look_number ? end[1] : begin[1], "xyz", 3), 3);
        for (int n = 0; n < 3 && !look_number; n++) must(read(done[0], &byte, 1), 1);
    }
    for (int n = 0; n < 3; n++) must(wait(0) > 0, 1);
    return 0;
}
"#;

/// Bytes of `send` and `recv`, and of `splice`, which the kernel counts in neither.
const UNCOUNTED: u64 = 1234 + 500;

#[test]
fn bytes_are_those_of_the_kernel() {
    compare("counted", &[], 0);
}

#[test]
fn bytes_of_sockets_and_splices_are_added_to_those_of_the_kernel() {
    compare("added", &["more"], UNCOUNTED);
}

/// Records the load, and compares its processes with the kernel's counts.
fn compare(name: &str, words: &[&str], uncounted: u64) {
    let Some((place, program)) = load(name, LOAD, &[]) else { return };
    let mark = first_mark();
    let mut command = place.kymo(&["record", "--kernel=io", "--json", "--output", "trace", "--"]);
    let output = command.arg(&program).arg(mark.to_string()).args(words).output().expect("it starts");
    if output.status.code() == Some(77) {
        eprintln!("NO COUNTS OF BYTES IN /proc/PID/io HERE: not run");
        return;
    }
    let (said, _) = told(&output);
    let looks: Vec<Vec<u64>> =
        said.lines().map(|line| line.split(' ').map(|word| word.parse().expect("it is a number")).collect()).collect();
    assert_eq!(looks.len(), 6, "{said}");
    let events = events(&place, "trace");
    let [[begin], [end]] = [mark, mark + 1].map(|mark| <[u64; 1]>::try_from(moments(&events, mark)).expect("one mark"));
    let answer = place.json(&["io", "--json", "--timerange", &range(begin, end), "trace"]);
    let threads = rows(&answer, "per-thread");
    // Each has one thread. The state at the beginning, which tells processes, is not in this range.
    for (before, after) in looks[..3].iter().zip(&looks[3..]) {
        let row = threads.iter().find(|row| row["thread"]["tid"] == before[0]);
        let row = row.unwrap_or_else(|| panic!("no thread {}: {threads:?}", before[0]));
        let ours = (value(&row["read"]), value(&row["write"]));
        let theirs = (after[1] - before[1] + uncounted, after[2] - before[2] + uncounted);
        assert_eq!(ours, theirs, "{row:?}");
        // The read of a file that is not open.
        assert_eq!(value(&row["errors"]), 1, "{row:?}");
    }
}
