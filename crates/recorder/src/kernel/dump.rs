//! The state of the system when the recording begins, as LTTng's events tell it.
//!
//! ```text
//! iterators of the kernel ──> threads, open files, mapped code of all processes ──┐
//! /proc, as far as this user may see it: what iterators do not tell ──────────────┼──> events
//! /sys ──> disks, networks, interrupts, processors ───────────────────────────────┘
//! ```
//!
//! Threads that come or go while it is read may be missing, or be there although they are gone: forks and exits tell the rest.

mod iterators;
mod maps;
mod namespaces;
mod proc;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use kymo_ftrace::fields::{FieldList, KernelValue};
use kymo_probe::state_iterators::{StateIterators, StatePart};
use rustix::fs::OFlags;

pub(super) use self::maps::CodeMap;
use crate::kernel::state::{StateOrigin, StateSource};

/// Maximum number of open files of a process in the dump.
const FILES_MAX: usize = 4096;
/// The flag of threads of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The event of a thread.
const PROCESS_STATE: &str = "lttng_statedump_process_state";
/// Of LTTng's enumerations.
const MODE_UNKNOWN: i32 = 5;
const SUBMODE_UNKNOWN: i32 = 1;

/// An event about the state.
pub(super) struct StateEvent {
    pub(super) name: &'static str,
    pub(super) fields: FieldList,
    /// The process and the file with code that it is about.
    pub(super) code: Option<(u32, CodeMap)>,
}

/// A file that is mapped: its path, and its inode there.
pub(super) type CodeFile = (String, u64);

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DumpedThread {
    pub(super) tid: u32,
    pub(super) pid: u32,
    ppid: u32,
    pub(super) name: Vec<u8>,
    is_kernel: bool,
    status: ThreadStatus,
    cpu: u32,
    /// Its numbers in PID namespaces, this process' own one first; empty: these were not told.
    numbers: Vec<u32>,
}

/// Statuses of LTTng, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadStatus {
    WaitsForCpu = 2,
    Zombie = 4,
    Waits = 5,
    Dead = 7,
}

/// Calls `tell` with each event, in order, and `knows` with each thread. Returns where it is from.
pub(super) fn tell(
    source: StateSource,
    mut knows: impl FnMut(&DumpedThread),
    mut tell: impl FnMut(StateEvent),
) -> StateOrigin {
    tell(event("lttng_statedump_start", |_| {}));
    let mut origin = source.origin();
    if let Err(why) = iterators::tell(source, &mut knows, &mut tell) {
        origin = origin.without(&why);
    }
    disks(&mut tell);
    interfaces(&mut tell);
    interrupts(&mut tell);
    processors(&mut tell);
    tell(event("lttng_statedump_end", |_| {}));
    origin
}

/// Numbers of processes that the kernel's iterators tell this process, or why they tell none.
pub(crate) fn told_by_iterators() -> Result<HashSet<u32>, String> {
    let iterators = StateIterators::load();
    if let Some(problem) = iterators.problem() {
        return Err(problem.to_owned());
    }
    iterators::processes(iterators.open(StatePart::Tasks)?.into()).map_err(|error| error.to_string())
}

fn event(name: &'static str, fill: impl FnOnce(&mut FieldList)) -> StateEvent {
    let mut fields = FieldList::default();
    fill(&mut fields);
    StateEvent { name, fields, code: None }
}

impl DumpedThread {
    fn event(&self) -> StateEvent {
        event(PROCESS_STATE, |fields| {
            fields.add("tid", KernelValue::I32(self.tid as i32));
            fields.add("pid", KernelValue::I32(self.pid as i32));
            fields.add("ppid", KernelValue::I32(self.ppid as i32));
            fields.add("name", KernelValue::ThreadName(&self.name));
            fields.add("type", KernelValue::I32(i32::from(self.is_kernel)));
            fields.add("mode", KernelValue::I32(MODE_UNKNOWN));
            fields.add("submode", KernelValue::I32(SUBMODE_UNKNOWN));
            fields.add("status", KernelValue::I32(self.status as i32));
            fields.add("cpu", KernelValue::U32(self.cpu));
        })
    }
}

/// The event of the build id of a file that was mapped, if that is known.
pub(super) fn build_id_event((path, inode): &CodeFile) -> Option<StateEvent> {
    let id = build_id(path, *inode)?;
    Some(event("kymo_statedump_build_id", |fields| {
        fields.add("inode", KernelValue::U64(*inode));
        fields.add("build_id", KernelValue::Text(&build_id_text(&id)));
        fields.add("filename", KernelValue::Text(path));
    }))
}

/// A build id as text.
pub(super) fn build_id_text(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The build id of a file that was mapped, if this user may read the file and it is still there.
pub(super) fn build_id(path: &str, inode: u64) -> Option<Vec<u8>> {
    let is_it = |found: &fs::Metadata| found.is_file() && found.ino() == inode;
    // Any user may have mapped a file and put something else in its place, which may wait for a writer.
    if !path.starts_with('/') || !fs::metadata(path).is_ok_and(|found| is_it(&found)) {
        return None;
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    kymo_sites::build_id(file).filter(|_| fs::metadata(path).is_ok_and(|found| is_it(&found)))
}

fn file_event(pid: u32, fd: u32, path: &str) -> StateEvent {
    event("lttng_statedump_file_descriptor", |fields| {
        fields.add("pid", KernelValue::I32(pid as i32));
        fields.add("fd", KernelValue::I32(fd as i32));
        fields.add("filename", KernelValue::Text(path));
    })
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

fn disks(tell: &mut impl FnMut(StateEvent)) {
    for name in names("/sys/class/block") {
        let dev = fs::read_to_string(format!("/sys/class/block/{name}/dev")).unwrap_or_default();
        let number = dev.trim().split_once(':').and_then(|(major, minor)| {
            let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
            Some(major << 20 | minor & 0xf_ffff)
        });
        if let Some(dev) = number {
            tell(event("lttng_statedump_block_device", |fields| {
                fields.add("dev", KernelValue::U32(dev));
                fields.add("diskname", KernelValue::Text(&name));
            }));
        }
    }
}

fn interfaces(tell: &mut impl FnMut(StateEvent)) {
    for name in names("/sys/class/net") {
        if Path::new("/sys/class/net").join(&name).join("ifindex").exists() {
            tell(event("lttng_statedump_network_interface", |fields| fields.add("name", KernelValue::Text(&name))));
        }
    }
}

fn interrupts(tell: &mut impl FnMut(StateEvent)) {
    for irq in proc::numbers(Path::new("/proc/irq")) {
        let of = |file: &str| fs::read_to_string(format!("/sys/kernel/irq/{irq}/{file}")).unwrap_or_default();
        let (chip, actions) = (of("chip_name"), of("actions"));
        for action in actions.trim().split(',').filter(|action| !action.is_empty()) {
            tell(event("lttng_statedump_interrupt", |fields| {
                fields.add("irq", KernelValue::U32(irq));
                fields.add("name", KernelValue::Text(chip.trim()));
                fields.add("action", KernelValue::Text(action));
            }));
        }
    }
}

fn processors(tell: &mut impl FnMut(StateEvent)) {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    for processor in text.split("\n\n") {
        let of = |name: &str| {
            let values = processor.lines().filter_map(|line| line.split_once(':'));
            values.into_iter().find(|(key, _)| key.trim() == name).map_or("", |(_, value)| value.trim())
        };
        let Ok(cpu) = of("processor").parse::<u16>() else { continue };
        tell(event("lttng_statedump_cpu_topology", |fields| {
            fields.add(
                "architecture",
                KernelValue::Text(if cfg!(target_arch = "x86_64") { "x86" } else { std::env::consts::ARCH }),
            );
            fields.add("cpu_id", KernelValue::U16(cpu));
            fields.add("vendor", KernelValue::Text(of("vendor_id")));
            fields.add("family", KernelValue::U8(of("cpu family").parse().unwrap_or(0)));
            fields.add("model", KernelValue::U8(of("model").parse().unwrap_or(0)));
            fields.add("model_name", KernelValue::Text(of("model name")));
            fields.add("physical_id", KernelValue::U16(of("physical id").parse().unwrap_or(0)));
            fields.add("core_id", KernelValue::U16(of("core id").parse().unwrap_or(0)));
            fields.add("cores", KernelValue::U16(of("cpu cores").parse().unwrap_or(0)));
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};
    use std::path::PathBuf;

    use kymo_ftrace::listing::ListedEvent;
    use kymo_ftrace::lttng::{LttngEvent, compare};
    use kymo_probe::state_iterators::STATE_PARTS;

    use super::*;

    /// Iterators of the kernel, opened by this process itself.
    pub(super) fn iterators() -> StateSource {
        let loaded = StateIterators::load();
        StateSource(STATE_PARTS.map(|part| loaded.open(part).map(std::fs::File::from)))
    }

    pub(super) fn no_iterators() -> StateSource {
        StateSource([0; 3].map(|_| Err("they are not wanted".to_owned())))
    }

    #[test]
    fn this_process_is_there() {
        for source in [no_iterators(), iterators()] {
            let (mut own, mut names) = (false, Vec::new());
            tell(source, |thread| own |= thread.tid == std::process::id(), |event| names.push(event.name));
            assert!(own);
            assert_eq!((names.first(), names.last()), (Some(&"lttng_statedump_start"), Some(&"lttng_statedump_end")));
            assert!(names.contains(&"lttng_statedump_cpu_topology"));
        }
    }

    /// Events about the state are as LTTng's kernel tracer describes them in traces, or the table says why not.
    #[test]
    fn state_is_told_as_lttng_does() {
        let mut ours = HashMap::new();
        tell(
            no_iterators(),
            |_| {},
            |event| {
                let listed = || ListedEvent::new(String::new(), event.name.to_owned(), &event.fields.class());
                ours.entry(event.name).or_insert_with(listed);
            },
        );
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
        let folder = std::env::var_os("KYMO_CORPUS").map_or(folder, PathBuf::from).join("ctf");
        let (mut used, mut untrue, mut compared) = (BTreeSet::new(), Vec::new(), 0);
        for (path, has_short_words) in [("tracecompass/many-threads", false), ("tracecompass/bug446190", true)] {
            let Ok(bytes) = fs::read(folder.join(path).join("metadata")) else {
                eprintln!("CORPUS ABSENT: the state of the system was not compared with {path}");
                return;
            };
            let class = kymo_format::parse(&bytes).trace_class.expect("it is metadata");
            let events = class.stream_classes.iter().flat_map(|stream| &stream.event_classes).map(LttngEvent::of);
            for event in events.filter(|event| event.name.starts_with("lttng_statedump_")) {
                // This machine may have no disk, no network, and no interrupt.
                if ours.contains_key(event.name.as_str()) {
                    compared += 1;
                    untrue.extend(compare(&event, |name| ours.get(name), has_short_words, &mut used));
                }
            }
        }
        assert!(untrue.is_empty() && compared >= 6, "{compared}: {untrue:?}");
    }
}
