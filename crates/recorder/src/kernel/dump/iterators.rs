//! Threads, open files and mapped code as the kernel's iterators tell them: of all processes, also those of other users.
//!
//! Records have the numbers of the outermost PID namespace that is, and those of all others inside of it. Events have those of
//! this process' own namespace, as `/proc` does. What a record does not tell is read in `/proc`, for that process alone.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;

use kymo_probe::state_records::{CodeMapRecord, TaskRecord, read_code_maps, read_open_files, read_tasks};

use super::maps::{self, CodeMap};
use super::namespaces::{self, NamespaceNumbers, NamespaceTable, ProcessIdentity};
use super::{DumpedThread, FILES_MAX, KERNEL_THREAD, StateEvent, ThreadStatus, file_event, proc};
use crate::kernel::state::StateSource;

/// States of the kernel that users see, and the numbers of bits of two of them: the highest bit counts.
const TOLD: u32 = 0x7f;
const ENDED: u32 = 4;
const ZOMBIE: u32 = 5;
/// It is frozen, or waits for a lock, which users see as waiting.
const WAITS_OTHERWISE: u32 = 0x8000 | 0x1000;
/// Flags of mapped memory: read, write, execute; others may share it.
const MODES: u64 = 7;
const MAY_BE_SHARED: u64 = 0x80;
/// As the kernel names its own code in `/proc/PID/maps`.
const VDSO: &str = "[vdso]";
const VSYSCALL: &str = "[vsyscall]";

/// Processes of programs: their numbers in this process' namespace by their outermost ones.
type ProgramNumbers = HashMap<u32, u32>;

/// Tells everything about all processes, from iterators as far as these are there.
///
/// # Errors
///
/// Why an iterator was not read to its end; the rest is from `/proc` then.
pub(super) fn tell(
    source: StateSource,
    knows: &mut impl FnMut(&DumpedThread),
    tell: &mut impl FnMut(StateEvent),
) -> Result<(), String> {
    let [tasks, files, maps] = source.0;
    let Ok(tasks) = tasks else {
        proc::tell(&proc::processes(), knows, tell);
        return Ok(());
    };
    let (threads, table, programs) = match threads(tasks) {
        Ok(read) => read,
        Err(error) => {
            proc::tell(&proc::processes(), knows, tell);
            return Err(told("threads", &error));
        }
    };
    tell_threads(&threads, &table, knows, tell);
    // Some kernels keep a process from all programs, and one may have begun meanwhile.
    let is_told = |pid: u32| threads.binary_search_by_key(&pid, |thread| thread.pid).is_ok();
    let others: Vec<u32> = proc::processes().into_iter().filter(|pid| !is_told(*pid)).collect();
    if !others.is_empty() {
        proc::tell(&others, knows, tell);
    }
    let mut problems = Vec::new();
    let mut done = HashSet::new();
    let read = files.map(|files| open_files(files, &programs, &mut done, tell));
    if is_incomplete("open files", read, &mut problems) {
        rest(&programs, &done, |pid| proc::open_files(pid, tell));
    }
    done.clear();
    let read = maps.map(|maps| code_maps(maps, &programs, &mut done, tell));
    if is_incomplete("mapped code", read, &mut problems) {
        rest(&programs, &done, |pid| maps::tell(pid, tell));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

fn told(part: &str, error: &io::Error) -> String {
    format!("the kernel's iterator of {part} was not read to its end: {error}")
}

/// Whether processes are missing that `/proc` may tell.
fn is_incomplete(part: &str, read: Result<io::Result<()>, String>, problems: &mut Vec<String>) -> bool {
    match read {
        Ok(Ok(())) => false,
        Ok(Err(error)) => {
            problems.push(told(part, &error));
            true
        }
        Err(_) => true,
    }
}

/// Calls `tell` with the programs of which nothing was told.
fn rest(programs: &ProgramNumbers, done: &HashSet<u32>, tell: impl FnMut(u32)) {
    let mut pids: Vec<u32> = programs.values().copied().filter(|pid| !done.contains(pid)).collect();
    pids.sort_unstable();
    pids.into_iter().for_each(tell);
}

/// Numbers of the processes that an iterator of threads tells.
pub(super) fn processes(tasks: File) -> io::Result<HashSet<u32>> {
    Ok(threads(tasks)?.0.into_iter().map(|thread| thread.pid).collect())
}

/// Reads all threads, in the order of their processes.
fn threads(file: File) -> io::Result<(Vec<DumpedThread>, NamespaceTable, ProgramNumbers)> {
    let mut records = Vec::new();
    read_tasks(file, |record| records.push(record))?;
    let (own, own_pid) = (std::process::id(), namespaces::number(std::process::id(), "pid"));
    let is_own = |record: &&TaskRecord| {
        Some(record.pid_namespace) == own_pid && record.numbers.get(record.level as usize) == Some(&own)
    };
    // How many namespaces are around this process' own: without knowing that, the numbers of others mean nothing.
    let level = records.iter().find(is_own).map(|record| record.level as usize).ok_or(io::ErrorKind::NotFound)?;
    let number = |record: &TaskRecord| record.numbers.get(level).copied().filter(|number| *number != 0);
    let leaders = records.iter().filter(|record| record.of_process.is_some());
    let pids: HashMap<u32, u32> = leaders.filter_map(|record| Some((record.process, number(record)?))).collect();
    // Only in the outermost namespace, a process that came or went meanwhile has this number.
    let pid = |process: u32| pids.get(&process).copied().or((level == 0).then_some(process));
    let is_kernel = |record: &TaskRecord| u64::from(record.flags) & KERNEL_THREAD != 0;
    let (mut processes, mut programs, mut threads) = (HashMap::new(), HashMap::new(), Vec::new());
    for record in &records {
        let (Some(tid), Some(pid)) = (number(record), pid(record.process)) else { continue };
        let numbers = match record.level as usize {
            inner if inner < record.numbers.len() => record.numbers[level..].to_vec(),
            // Only this one is known of its own namespace.
            _ => vec![tid],
        };
        if let Some(facts) = record.of_process {
            let namespaces = NamespaceNumbers {
                pid: Some(record.pid_namespace),
                user: Some(facts.user_namespace),
                plain: facts.namespaces,
            };
            let (uid, gid) = (facts.user, facts.group);
            processes.insert(pid, ProcessIdentity { numbers: numbers.clone(), uid, gid, namespaces });
            if !is_kernel(record) {
                programs.insert(record.process, pid);
            }
        }
        threads.push(DumpedThread {
            tid,
            pid,
            ppid: if level == 0 { record.parent } else { pids.get(&record.parent).copied().unwrap_or(0) },
            name: record.name.iter().copied().take_while(|byte| *byte != 0).collect(),
            is_kernel: is_kernel(record),
            status: status(record.state, record.exit_state),
            cpu: record.cpu,
            numbers,
        });
    }
    threads.sort_unstable_by_key(|thread| (thread.pid, thread.tid));
    Ok((threads, NamespaceTable::new(processes, own_pid), programs))
}

/// The status of a thread, by the same rules as the kernel's letters in `/proc/PID/stat`.
fn status(state: u32, exit_state: u32) -> ThreadStatus {
    let told = (state | exit_state) & TOLD;
    match told.checked_ilog2() {
        Some(ZOMBIE) => ThreadStatus::Zombie,
        Some(ENDED) => ThreadStatus::Dead,
        None if state & WAITS_OTHERWISE == 0 => ThreadStatus::WaitsForCpu,
        _ => ThreadStatus::Waits,
    }
}

fn tell_threads(
    threads: &[DumpedThread],
    table: &NamespaceTable,
    knows: &mut impl FnMut(&DumpedThread),
    tell: &mut impl FnMut(StateEvent),
) {
    for process in threads.chunk_by(|left, right| left.pid == right.pid) {
        for thread in process {
            knows(thread);
            tell(thread.event());
            table.thread(thread, tell);
        }
        if process.iter().all(|thread| !thread.is_kernel) {
            table.process(process[0].pid, tell);
        }
    }
}

/// Tells open files. Processes that began after the threads were read are those of later events.
fn open_files(
    file: File,
    programs: &ProgramNumbers,
    done: &mut HashSet<u32>,
    tell: &mut impl FnMut(StateEvent),
) -> io::Result<()> {
    let mut last = (0, 0);
    let read = read_open_files(file, |record| {
        let Some(pid) = programs.get(&record.process).copied() else { return };
        last = if last.0 == pid { (pid, last.1 + 1) } else { (pid, 1) };
        done.insert(pid);
        match record.path {
            _ if last.1 > FILES_MAX => {}
            Some(path) => tell(file_event(pid, record.fd, &String::from_utf8_lossy(path))),
            None => proc::open_file(pid, record.fd, tell),
        }
    });
    // The rest of its files is in `/proc`.
    read.inspect_err(|_| _ = done.remove(&last.0))
}

/// Tells mapped code.
fn code_maps(
    file: File,
    programs: &ProgramNumbers,
    done: &mut HashSet<u32>,
    tell: &mut impl FnMut(StateEvent),
) -> io::Result<()> {
    let mut code = ProcessCode { vsyscall: maps::own(VSYSCALL), ..ProcessCode::default() };
    let read = read_code_maps(file, |record| {
        let Some(pid) = programs.get(&record.process).copied() else { return };
        if code.pid != pid {
            code.tell(tell);
            code.pid = pid;
            done.insert(pid);
        }
        code.add(&record);
    });
    match &read {
        Ok(()) => code.tell(tell),
        // All of it is in `/proc`.
        Err(_) => _ = done.remove(&code.pid),
    }
    read
}

/// Mapped code of a process.
#[derive(Debug, Default)]
struct ProcessCode {
    pid: u32,
    maps: Vec<CodeMap>,
    /// One of them has a name that only `/proc` tells.
    has_unnamed: bool,
    /// One is where only 64-bit programs have memory.
    is_wide: bool,
    /// Code of the kernel that lies in all 64-bit programs, and is no mapping.
    vsyscall: Option<CodeMap>,
}

impl ProcessCode {
    fn add(&mut self, record: &CodeMapRecord<'_>) {
        let is_named = record.is_vdso || record.path.is_some();
        self.has_unnamed |= !is_named;
        self.is_wide |= record.end > u64::from(u32::MAX);
        if self.maps.len() >= maps::MAPS_MAX {
            return;
        }
        let path = record.path.map(|path| String::from_utf8_lossy(path).into_owned());
        let shared = if record.flags & MAY_BE_SHARED == 0 { 0 } else { MODES + 1 };
        let offset = if record.path.is_some() { record.page * rustix::param::page_size() as u64 } else { 0 };
        self.maps.push(CodeMap {
            start: record.start,
            end: record.end,
            flags: record.flags & MODES | shared,
            offset,
            inode: record.inode,
            path: path.unwrap_or_else(|| if record.is_vdso { VDSO.to_owned() } else { String::new() }),
        });
    }

    /// Tells them, and forgets them. Where `/proc` is open, it names mapped memory without a file.
    fn tell(&mut self, tell: &mut impl FnMut(StateEvent)) {
        let (mut told, is_wide) = (false, std::mem::take(&mut self.is_wide));
        if std::mem::take(&mut self.has_unnamed) {
            maps::tell(self.pid, &mut |event| {
                told = true;
                tell(event);
            });
        }
        self.maps.extend(self.vsyscall.clone().filter(|_| is_wide));
        let maps = self.maps.drain(..).take(maps::MAPS_MAX);
        maps.filter(|_| !told).for_each(|map| tell(map.event(self.pid)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Read;
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::kernel::dump::tests::{iterators, no_iterators};
    use crate::kernel::dump::{self, PROCESS_STATE};

    /// Numbers of namespaces are no smaller: the first ones, which the kernel begins with.
    const FIRST_NAMESPACE: u32 = 0xefff_fff8;

    /// Events of some processes.
    fn told_of(source: StateSource, pids: &[u32]) -> BTreeSet<(&'static str, Vec<u8>)> {
        let mut all = BTreeSet::new();
        dump::tell(
            source,
            |_| {},
            |event| {
                if pids.iter().any(|pid| event.fields.bytes().starts_with(&pid.to_le_bytes())) {
                    all.insert((event.name, event.fields.bytes().to_vec()));
                }
            },
        );
        all
    }

    fn has_iterators() -> bool {
        let origin = iterators().origin();
        if origin.word != "eBPF" {
            eprintln!("NO ITERATORS HERE: not run ({origin:?})");
        }
        origin.word == "eBPF"
    }

    /// A shell that has said something and waits; it ends with its input.
    fn shell(words: &[&str], script: &str) -> Option<Child> {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["sh", "-c", &format!("{script}; echo; read line")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut byte = [0];
        let has_begun = child.stdout.as_mut().is_some_and(|output| output.read_exact(&mut byte).is_ok());
        has_begun.then_some(child)
    }

    fn end(mut child: Child) {
        drop(child.stdin.take());
        child.wait().expect("it ends");
    }

    /// Of processes that rest, iterators tell everything that `/proc` tells, and nothing else.
    #[test]
    fn iterators_tell_what_proc_tells() {
        if !has_iterators() {
            return;
        }
        let folder = tempfile::tempdir().expect("temporary files may be written");
        let path = folder.path().join("a b\u{e4}'");
        std::fs::write(&path, "").expect("it can be written");
        let opens = format!(
            "exec 7<'{}'; printf '\\377) (\\001' > /proc/$$/comm",
            path.display().to_string().replace('\'', "'\\''")
        );
        let odd = shell(&["env"], &opens).expect("there is a shell");
        let inside = shell(&["unshare", "--pid", "--fork"], ":");
        let inner = inside.as_ref().map(|outer| {
            let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", outer.id()));
            children.expect("they can be read").trim().parse::<u32>().expect("there is one")
        });
        let pids: Vec<u32> = [Some(odd.id()), inside.as_ref().map(Child::id), inner].into_iter().flatten().collect();
        let rests = |pid: &u32| {
            let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.windows(3).any(|state| state == b") S")
        };
        let begun = std::time::Instant::now();
        while !pids.iter().all(rests) && begun.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        let (with, without) = (told_of(iterators(), &pids), told_of(no_iterators(), &pids));
        end(odd);
        inside.into_iter().for_each(end);
        let missing: Vec<_> = without.difference(&with).collect();
        let more: Vec<_> = with.difference(&without).collect();
        assert!(missing.is_empty() && more.is_empty(), "missing {missing:?}, more {more:?}");
        let count = |name: &str| with.iter().filter(|(found, _)| *found == name).count();
        assert_eq!(count(PROCESS_STATE), pids.len());
        assert_eq!(count("lttng_statedump_process_pid_ns"), if inner.is_some() { 4 } else { 1 });
        assert!(count("lttng_statedump_vm_map") >= 2 && count("lttng_statedump_file_descriptor") >= 5);
        let name = b"\xff) (\x01\0";
        let is_odd = |(told, bytes): &(&str, Vec<u8>)| *told == PROCESS_STATE && bytes[12..].starts_with(name);
        assert!(with.iter().any(is_odd), "{with:?}");
        if inner.is_none() {
            eprintln!("NOT TESTED: this user may make no namespace");
        }
    }

    /// Says that it is over, also when a test fails.
    struct Ending<'a>(&'a AtomicBool);

    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Threads that come and go meanwhile are told whole, or not at all.
    #[test]
    fn threads_come_and_go() {
        if !has_iterators() {
            return;
        }
        let (is_over, own) = (AtomicBool::new(false), std::process::id());
        let inum = namespaces::number(own, "pid").expect("it can be read");
        let parent = std::os::unix::process::parent_id();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let short = |_| std::thread::Builder::new().name("comes-and-goes".to_owned()).spawn(|| {});
                        let begun: Vec<_> = (0..50).map(short).collect();
                        begun.into_iter().flatten().for_each(|thread| thread.join().expect("it ends"));
                    }
                });
            }
            let ending = Ending(&is_over);
            let (mut tids, mut ours, mut programs) = (BTreeSet::new(), 0, Vec::new());
            for _ in 0..40 {
                programs.extend(Command::new("true").spawn());
                let origin = dump::tell(
                    iterators(),
                    |thread| {
                        tids.insert(thread.tid);
                    },
                    |event| {
                        let word = |at: usize| {
                            event
                                .fields
                                .bytes()
                                .get(at..)
                                .and_then(|bytes| Some(u32::from_le_bytes(*bytes.first_chunk()?)))
                        };
                        let word = |at: usize| word(at).unwrap_or(0);
                        if event.name == PROCESS_STATE && word(4) == own {
                            ours += 1;
                            let name: Vec<u8> =
                                event.fields.bytes()[12..28].iter().copied().take_while(|byte| *byte != 0).collect();
                            assert_eq!(word(8), parent);
                            assert!(!name.is_empty() && name.is_ascii(), "{name:?}");
                            assert!(matches!(word(40), 2 | 4 | 5 | 7), "{:?}", event.fields.bytes());
                            assert!(word(44) < 8192, "{:?}", event.fields.bytes());
                        }
                        if event.name == "lttng_statedump_process_pid_ns" && (word(8), word(16)) == (own, 0) {
                            assert_eq!((word(12), word(20)), (parent, inum));
                        }
                        if namespaces::PLAIN.contains(&event.name) {
                            // Namespaces of programs that come and go are those of this one, or of containers.
                            assert!(word(4) >= FIRST_NAMESPACE, "{}: {:#x}", event.name, word(4));
                        }
                    },
                );
                assert_eq!((origin.word, origin.why), ("eBPF", None));
            }
            drop(ending);
            programs.into_iter().for_each(|mut program| drop(program.wait()));
            assert!(ours >= 40 * 6 && tids.len() > 100, "{ours} of {}", tids.len());
        });
    }

    #[test]
    fn statuses_are_those_of_proc() {
        assert_eq!(status(0, 0), ThreadStatus::WaitsForCpu);
        assert_eq!(status(0x800, 0), ThreadStatus::WaitsForCpu, "it is new");
        for state in [1, 2, 4, 8, 0x40, 0x402, 0x2001, 0x8000] {
            assert_eq!(status(state, 0), ThreadStatus::Waits, "{state:#x}");
        }
        assert_eq!((status(0x80, 0x20), status(0x80, 0x10)), (ThreadStatus::Zombie, ThreadStatus::Dead));
        assert_eq!(status(0x80, 0x30), ThreadStatus::Zombie);
    }
}
