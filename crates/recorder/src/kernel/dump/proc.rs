//! Threads and open files as `/proc` tells them, as far as this user may see them.

use std::fs;
use std::path::Path;

use super::namespaces::NamespaceTable;
use super::{DumpedThread, FILES_MAX, KERNEL_THREAD, StateEvent, ThreadStatus, file_event, maps};

/// All processes.
pub(super) fn processes() -> Vec<u32> {
    numbers(Path::new("/proc"))
}

/// Tells everything about processes.
pub(super) fn tell(pids: &[u32], knows: &mut impl FnMut(&DumpedThread), tell: &mut impl FnMut(StateEvent)) {
    let table = NamespaceTable::read(pids);
    for pid in pids.iter().copied() {
        let mut is_kernel = false;
        let folder = format!("/proc/{pid}");
        for tid in numbers(&Path::new(&folder).join("task")) {
            let stat = fs::read(format!("{folder}/task/{tid}/stat"));
            if let Some(thread) = stat.ok().and_then(|stat| thread(&stat, pid)) {
                knows(&thread);
                tell(thread.event());
                table.thread(&thread, tell);
                is_kernel |= thread.is_kernel;
            }
        }
        // Threads of the kernel have its own namespaces, no files and no maps.
        if !is_kernel {
            table.process(pid, tell);
            open_files(pid, tell);
            maps::tell(pid, tell);
        }
    }
}

/// Names in a folder that are numbers, in order.
pub(super) fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Reads a line of `/proc/PID/task/TID/stat`. The name may have any bytes.
fn thread(stat: &[u8], pid: u32) -> Option<DumpedThread> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let begin = stat.windows(2).position(|bytes| bytes == b" (")?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(DumpedThread {
        tid: std::str::from_utf8(&stat[..begin]).ok()?.parse().ok()?,
        pid,
        ppid: words.get(1)?.parse().ok()?,
        name: stat.get(begin + 2..end)?.to_owned(),
        is_kernel: words.get(6)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
        status: match words.first()?.chars().next()? {
            'R' => ThreadStatus::WaitsForCpu,
            'Z' => ThreadStatus::Zombie,
            'X' | 'x' => ThreadStatus::Dead,
            _ => ThreadStatus::Waits,
        },
        cpu: words.get(36)?.parse().ok()?,
        numbers: Vec::new(),
    })
}

/// Tells open files of a process.
pub(super) fn open_files(pid: u32, tell: &mut impl FnMut(StateEvent)) {
    let folder = format!("/proc/{pid}/fd");
    for fd in numbers(Path::new(&folder)).into_iter().take(FILES_MAX) {
        open_file(pid, fd, tell);
    }
}

/// Tells an open file of a process.
pub(super) fn open_file(pid: u32, fd: u32, tell: &mut impl FnMut(StateEvent)) {
    if let Ok(path) = fs::read_link(format!("/proc/{pid}/fd/{fd}")) {
        tell(file_event(pid, fd, &path.to_string_lossy()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_threads_have_any_bytes() {
        let rest =
            "S 1 2 3 4 5 2097216 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 3";
        let of = |name: &[u8]| {
            let stat = [b"42 (", name, b") ", rest.as_bytes()].concat();
            thread(&stat, 40).expect("it is one")
        };
        let odd = of(b"a) b (c)\xff");
        assert_eq!((odd.name.as_slice(), odd.tid, odd.pid), (&b"a) b (c)\xff"[..], 42, 40));
        assert_eq!((odd.ppid, odd.cpu, odd.status), (1, 3, ThreadStatus::Waits));
        assert!(odd.is_kernel);
        assert_eq!((thread(b"", 1), thread(b"1 (a)", 1), thread(b") (", 1)), (None, None, None));
    }
}
