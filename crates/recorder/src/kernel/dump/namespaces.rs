//! Numbers of threads in their own namespaces, and the namespaces and control groups of processes.
//!
//! Threads of a process have one PID namespace. Their other namespaces are told for the first thread of each process: a thread that
//! has left them on its own is not told.

use std::collections::HashMap;
use std::fs;

use kymo_ftrace::fields::KernelValue;
use kymo_probe::state_records::PLAIN_NAMESPACES;

use super::{DumpedThread, StateEvent, event};

/// Events of the namespaces with a number alone, in the order of [`PLAIN_NAMESPACES`].
pub(super) const PLAIN: [&str; 6] = [
    "lttng_statedump_process_cgroup_ns",
    "lttng_statedump_process_ipc_ns",
    "lttng_statedump_process_mnt_ns",
    "lttng_statedump_process_net_ns",
    "lttng_statedump_process_uts_ns",
    "lttng_statedump_process_time_ns",
];

/// Processes, with their numbers in the namespaces that they are in, the outermost one first.
#[derive(Debug)]
pub(super) struct NamespaceTable {
    processes: HashMap<u32, ProcessIdentity>,
    /// Namespaces of this process.
    own_pid: Option<u32>,
    own_user: Option<u32>,
}

/// A process, as other users may see it, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessIdentity {
    pub(super) numbers: Vec<u32>,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) namespaces: NamespaceNumbers,
}

/// Numbers of namespaces; those that are `None` may be read in `/proc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NamespaceNumbers {
    pub(super) pid: Option<u32>,
    pub(super) user: Option<u32>,
    /// In the order of [`PLAIN_NAMESPACES`]; 0: there is none.
    pub(super) plain: Option<[u32; 6]>,
}

impl NamespaceTable {
    /// Reads the numbers of all processes: a child may have a lower number than its parent.
    pub(super) fn read(pids: &[u32]) -> Self {
        let of = |pid: &u32| Some((*pid, read_identity(&format!("/proc/{pid}/status"))?));
        let processes: HashMap<u32, ProcessIdentity> = pids.iter().filter_map(of).collect();
        let own = std::process::id();
        let is_here = read_identity("/proc/self/status").is_some_and(|process| process.numbers.len() == 1);
        Self::new(processes, number(own, "pid").filter(|_| is_here))
    }

    /// All processes, and the number of this process' own PID namespace, if their first numbers are those of it.
    pub(super) fn new(processes: HashMap<u32, ProcessIdentity>, own_pid: Option<u32>) -> Self {
        Self { processes, own_pid, own_user: number(std::process::id(), "user") }
    }

    /// A thread's numbers in the PID namespaces that are known: the outermost one, and its own.
    pub(super) fn thread(&self, thread: &DumpedThread, tell: &mut impl FnMut(StateEvent)) {
        let DumpedThread { tid, pid, ppid, .. } = *thread;
        let Some(process) = self.processes.get(&pid) else { return };
        let level = process.numbers.len() - 1;
        if let Some(inum) = self.own_pid {
            tell(pid_event(tid, [tid, pid, ppid], 0, inum));
        }
        if level == 0 {
            return;
        }
        let Some(inum) = process.namespaces.pid.or_else(|| number(pid, "pid")) else { return };
        let vtid = match tid == pid {
            true => process.numbers.get(level).copied(),
            false if !thread.numbers.is_empty() => thread.numbers.get(level).copied(),
            false => {
                let identity = read_identity(&format!("/proc/{pid}/task/{tid}/status"));
                identity.and_then(|identity| identity.numbers.get(level).copied())
            }
        };
        let Some(vtid) = vtid else { return };
        let parent = self.processes.get(&ppid).and_then(|parent| parent.numbers.get(level));
        let numbers = [vtid, process.numbers[level], parent.copied().unwrap_or(0)];
        tell(pid_event(tid, numbers, level, inum));
    }

    /// The other namespaces of a process, and its control group.
    pub(super) fn process(&self, pid: u32, tell: &mut impl FnMut(StateEvent)) {
        let known = self.processes.get(&pid).map(|process| process.namespaces).unwrap_or_default();
        for (at, (name, told)) in PLAIN_NAMESPACES.iter().zip(PLAIN).enumerate() {
            let inum = match known.plain {
                Some(plain) => Some(plain[at]).filter(|inum| *inum != 0),
                None => number(pid, name),
            };
            if let Some(inum) = inum {
                tell(event(told, |fields| {
                    fields.add("tid", KernelValue::I32(pid as i32));
                    fields.add("ns_inum", KernelValue::U32(inum));
                }));
            }
        }
        let user = known.user.or_else(|| number(pid, "user"));
        if let (Some(inum), Some(process)) = (user, self.processes.get(&pid)) {
            self.user(pid, inum, process, tell);
        }
        // Every user may read that.
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        if let Some(group) = groups.lines().find_map(|line| line.strip_prefix("0::")) {
            tell(event("kymo_statedump_process_cgroup", |fields| {
                fields.add("pid", KernelValue::I32(pid as i32));
                fields.add("cgroup", KernelValue::Text(group));
            }));
        }
    }

    fn user(&self, pid: u32, inum: u32, process: &ProcessIdentity, tell: &mut impl FnMut(StateEvent)) {
        let inside = |id: u32, map: &str| match self.own_user == Some(inum) {
            true => Some(id),
            false => mapped(id, &fs::read_to_string(format!("/proc/{pid}/{map}")).ok()?),
        };
        let (Some(vuid), Some(vgid)) = (inside(process.uid, "uid_map"), inside(process.gid, "gid_map")) else { return };
        tell(event("lttng_statedump_process_user_ns", |fields| {
            fields.add("tid", KernelValue::I32(pid as i32));
            fields.add("vuid", KernelValue::U32(vuid));
            fields.add("vgid", KernelValue::U32(vgid));
            fields.add("ns_inum", KernelValue::U32(inum));
        }));
    }
}

fn pid_event(tid: u32, [vtid, vpid, vppid]: [u32; 3], level: usize, inum: u32) -> StateEvent {
    event("lttng_statedump_process_pid_ns", |fields| {
        fields.add("tid", KernelValue::I32(tid as i32));
        fields.add("vtid", KernelValue::I32(vtid as i32));
        fields.add("vpid", KernelValue::I32(vpid as i32));
        fields.add("vppid", KernelValue::I32(vppid as i32));
        fields.add("ns_level", KernelValue::I32(level as i32));
        fields.add("ns_inum", KernelValue::U32(inum));
    })
}

/// The number of a namespace of a process, as far as this user may see it.
pub(super) fn number(pid: u32, name: &str) -> Option<u32> {
    let link = fs::read_link(format!("/proc/{pid}/ns/{name}")).ok()?;
    // `pid:[4026531836]`
    link.to_str()?.split_once('[')?.1.strip_suffix(']')?.parse().ok()
}

fn read_identity(path: &str) -> Option<ProcessIdentity> {
    // The name may have any bytes.
    identity(&String::from_utf8_lossy(&fs::read(path).ok()?))
}

/// Reads `/proc/PID/status`.
fn identity(status: &str) -> Option<ProcessIdentity> {
    let words = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|line| line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect::<Vec<u32>>())
    };
    let numbers = words("NSpid:").filter(|numbers| !numbers.is_empty())?;
    // The second ones are those that count.
    let (uid, gid) = (*words("Uid:")?.get(1)?, *words("Gid:")?.get(1)?);
    Some(ProcessIdentity { numbers, uid, gid, namespaces: NamespaceNumbers::default() })
}

/// The number inside of a user namespace, by its map; 65534 has no other one.
fn mapped(outside: u32, map: &str) -> Option<u32> {
    const UNMAPPED: u32 = 65534;
    for line in map.lines() {
        let words: Vec<u32> = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let [inside, begin, count] = words[..] else { return None };
        if let Some(offset) = outside.checked_sub(begin).filter(|offset| *offset < count) {
            return inside.checked_add(offset);
        }
    }
    Some(UNMAPPED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::dump::ThreadStatus;

    #[test]
    fn numbers_of_containers() {
        let status = "Name:\ta\nUid:\t0\t1000\t0\t0\nGid:\t5\t6\t5\t5\nNStgid:\t70\t7\nNSpid:\t70\t7\nNSpgid:\t1\t0\n";
        assert_eq!(
            identity(status),
            Some(ProcessIdentity { numbers: vec![70, 7], uid: 1000, gid: 6, ..ProcessIdentity::default() })
        );
        assert_eq!(identity("Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"), None);
        let map = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!((mapped(1000, map), mapped(100_004, map), mapped(7, map)), (Some(0), Some(5), Some(65534)));
        assert_eq!(mapped(1, "x"), None);
    }

    fn first_thread(pid: u32, ppid: u32) -> DumpedThread {
        let (name, numbers, status) = (Vec::new(), Vec::new(), ThreadStatus::Waits);
        DumpedThread { tid: pid, pid, ppid, name, is_kernel: false, status, cpu: 0, numbers }
    }

    #[test]
    fn a_container_has_other_numbers() {
        let begun = std::process::Command::new("unshare").args(["--pid", "--fork", "sleep", "60"]).spawn();
        let Ok(mut program) = begun else {
            eprintln!("NOT TESTED: there is no unshare");
            return;
        };
        let children = format!("/proc/{0}/task/{0}/children", program.id());
        let mut child = None;
        for _ in 0..500 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let text = fs::read_to_string(&children).unwrap_or_default();
            child = text.split_ascii_whitespace().next().and_then(|word| word.parse::<u32>().ok());
            if child.is_some() || program.try_wait().expect("it is a child").is_some() {
                break;
            }
        }
        let mut told = Vec::new();
        if let Some(child) = child {
            let table = NamespaceTable::read(&[std::process::id(), program.id(), child]);
            table.thread(&first_thread(child, program.id()), &mut |event| told.push(event.fields.bytes().to_vec()));
            let _ = std::process::Command::new("kill").args(["-9", &child.to_string()]).status();
        }
        let _ = program.kill();
        let _ = program.wait();
        let Some(child) = child else {
            eprintln!("NOT TESTED: this user may make no namespace");
            return;
        };
        let numbers = |bytes: &[u8]| -> Vec<u32> {
            bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
        };
        let [outside, inside] = &told[..] else { panic!("{told:?}") };
        let (outside, inside) = (numbers(outside), numbers(inside));
        assert_eq!(outside[..3], [child, child, child]);
        assert_eq!(inside[..5], [child, 1, 1, 0, 1], "its own number is 1, and its parent is not there");
        assert_ne!(outside[5], inside[5], "the namespaces are not the same");
    }

    #[test]
    fn this_process_is_in_its_namespaces() {
        let own = std::process::id();
        let table = NamespaceTable::read(&[own]);
        let mut names = Vec::new();
        table.thread(&first_thread(own, 1), &mut |event| names.push(event.name));
        table.process(own, &mut |event| names.push(event.name));
        for wanted in PLAIN {
            assert!(names.contains(&wanted), "{wanted} is not in {names:?}");
        }
        assert!(names.contains(&"lttng_statedump_process_user_ns"), "{names:?}");
        assert!(names.contains(&"lttng_statedump_process_pid_ns"), "{names:?}");
    }
}
