//! Context switches of all CPUs as perf events, where tracefs cannot be used: opened by the helper and read by a
//! recorder. Their records are those of [`kymo_ftrace::perf_sched`].

use std::io;
use std::os::fd::OwnedFd;

use crate::mapped::Mapped;
use crate::stacks::{STACK_RING_BYTES_MIN, open_sched};

/// CPUs that there may be.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
/// CPUs that are on.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Bytes of a ring.
const RING_BYTES_MIN: u64 = 64 << 10;
const RING_BYTES_MAX: u64 = 64 << 20;

/// Events of all CPUs.
#[derive(Debug)]
pub(crate) struct SchedEvents {
    /// Each with its memory: it writes to it only while a process has it mapped.
    rings: Vec<(OwnedFd, Mapped)>,
    pub(crate) ring_bytes: u32,
    pub(crate) cpus: Vec<u32>,
}

impl SchedEvents {
    /// Opens the events of CPUs that are on; times are of `CLOCK_MONOTONIC`. Rings are smaller where the kernel gives this user no
    /// more memory.
    ///
    /// # Errors
    ///
    /// Why not, in a sentence.
    pub(crate) fn open(ring_bytes: u64) -> Result<Self, String> {
        let mut bytes = ring_bytes.clamp(RING_BYTES_MIN, RING_BYTES_MAX).next_power_of_two();
        loop {
            match Self::open_with(bytes as u32) {
                Err(error) if is_no_memory(&error) && bytes > RING_BYTES_MIN => bytes /= 2,
                opened => return opened.map_err(|error| format!("the kernel opens no perf event: {error}")),
            }
        }
    }

    fn open_with(ring_bytes: u32) -> io::Result<Self> {
        let mut all = Self { rings: Vec::new(), ring_bytes, cpus: Vec::new() };
        let bytes = rustix::param::page_size() + ring_bytes as usize;
        for cpu in online()? {
            let file = match open_sched(cpu) {
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                opened => opened?,
            };
            let mapped = Mapped::new(&file, 0, bytes, libc::PROT_READ | libc::PROT_WRITE)?;
            all.rings.push((file, mapped));
            all.cpus.push(cpu);
        }
        if all.cpus.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(all) }
    }

    /// Whether this user may have more rings.
    pub(crate) fn has_room() -> bool {
        Self::open_with(STACK_RING_BYTES_MIN).is_ok()
    }

    /// Whether there are no smaller rings.
    pub(crate) fn is_smallest(&self) -> bool {
        u64::from(self.ring_bytes) <= RING_BYTES_MIN
    }

    /// Files of the rings, for the recorder.
    pub(crate) fn files(&self) -> io::Result<Vec<OwnedFd>> {
        self.rings.iter().map(|(file, _)| file.try_clone()).collect()
    }
}

/// Whether the kernel gives a user no more memory for rings.
fn is_no_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM | libc::EAGAIN))
}

/// Whether this process may have them; nothing is recorded.
///
/// # Errors
///
/// The kernel's.
pub fn is_possible() -> io::Result<()> {
    let cpu = online()?.first().copied().unwrap_or(0);
    open_sched(cpu).map(drop)
}

/// CPUs that are on.
fn online() -> io::Result<Vec<u32>> {
    Ok(cpus(&std::fs::read_to_string(ONLINE)?))
}

/// CPUs that there may be.
pub(crate) fn possible_cpus() -> Result<Vec<u32>, String> {
    let text = std::fs::read_to_string(POSSIBLE).map_err(|error| format!("{POSSIBLE}: {error}"))?;
    let cpus = cpus(&text);
    if cpus.is_empty() {
        return Err(format!("{POSSIBLE}: {:?} is no list of CPUs, such as 0-3", text.trim()));
    }
    Ok(cpus)
}

/// The CPUs of a list like `0-3,5`.
pub(crate) fn cpus(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;
    use crate::stacks::{StackFiles, StackRings};

    #[test]
    fn lists_of_cpus_have_ranges() {
        assert_eq!(cpus("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cpus("0\n"), [0]);
        assert_eq!(cpus("none"), [0; 0]);
    }

    /// A thread that rests and a program that starts are in the rings.
    #[test]
    fn switches_are_in_rings() {
        let events = match SchedEvents::open(1 << 18) {
            Ok(events) => events,
            Err(why) => return println!("NO PERF EVENTS HERE: not run ({why})"),
        };
        let (rings, cpus, ids) = (events.files().expect("there are more"), events.cpus.clone(), Vec::new());
        let (ring_bytes, is_by_programs) = (events.ring_bytes, false);
        let spool = memfd_create("kymo-test", MemfdFlags::CLOEXEC).expect("there is memory");
        let files = StackFiles { ring_bytes, cpus, rings, ids, is_by_programs, spool };
        let mut rings = StackRings::map(&files).expect("they can be mapped");
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::process::Command::new("true").status().expect("it starts");
        let mut kinds = std::collections::BTreeMap::<u32, usize>::new();
        rings.drain(|_, records, _| {
            let mut rest = records;
            while let Some(head) = rest.first_chunk::<8>() {
                let head = u64::from_le_bytes(*head);
                *kinds.entry(head as u32).or_default() += 1;
                rest = &rest[(head >> 48) as usize..];
            }
        });
        let of = |kind| kinds.get(&kind).copied().unwrap_or(0);
        // Names, ends, forks, and switches: out and in.
        assert!(of(3) >= 1 && of(4) >= 1 && of(7) >= 1 && of(15) >= 40, "{kinds:?}");
    }
}
