//! The state of the system when the recording begins, from `/proc` and `/sys`, as LTTng's events tell it.
//!
//! Threads that come or go while it is read may be missing, or be there although they are gone: forks and exits tell the rest.

use std::fs;
use std::path::Path;

use kymo_format::model::FieldClass;
use kymo_ftrace::fields::{FieldList, KernelValue};

/// Maximum number of open files of a process in the dump.
const FILES_MAX: usize = 4096;
/// The flag of threads of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Of LTTng's enumerations.
const MODE_UNKNOWN: i32 = 5;
const SUBMODE_UNKNOWN: i32 = 1;
const WAITS_FOR_CPU: i32 = 2;
const ZOMBIE: i32 = 4;
const WAITS: i32 = 5;
const DEAD: i32 = 7;

/// An event about the state.
pub(super) struct StateEvent {
    pub(super) name: &'static str,
    pub(super) payload: FieldClass,
    pub(super) bytes: Vec<u8>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DumpedThread {
    pub(super) tid: u32,
    pub(super) pid: u32,
    ppid: u32,
    name: String,
    is_kernel: bool,
    state: char,
    cpu: u32,
}

/// Calls `tell` with each event, in order, and `knows` with each thread.
pub(super) fn tell(mut knows: impl FnMut(&DumpedThread), mut tell: impl FnMut(StateEvent)) {
    tell(event("lttng_statedump_start", |_| {}));
    for pid in numbers(Path::new("/proc")) {
        let folder = format!("/proc/{pid}");
        for tid in numbers(&Path::new(&folder).join("task")) {
            let stat = fs::read_to_string(format!("{folder}/task/{tid}/stat"));
            if let Some(thread) = stat.ok().and_then(|stat| thread(&stat, pid)) {
                knows(&thread);
                tell(thread.event());
            }
        }
        open_files(pid, &mut tell);
    }
    disks(&mut tell);
    interfaces(&mut tell);
    interrupts(&mut tell);
    processors(&mut tell);
    tell(event("lttng_statedump_end", |_| {}));
}

fn event(name: &'static str, fill: impl FnOnce(&mut FieldList)) -> StateEvent {
    let mut fields = FieldList::default();
    fill(&mut fields);
    let (payload, bytes) = fields.finish();
    StateEvent { name, payload, bytes }
}

/// Names in a folder that are numbers, in order.
fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Reads a line of `/proc/PID/task/TID/stat`. The name may have any characters.
fn thread(stat: &str, pid: u32) -> Option<DumpedThread> {
    let (before, rest) = stat.rsplit_once(')')?;
    let (tid, name) = before.split_once(" (")?;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(DumpedThread {
        tid: tid.parse().ok()?,
        pid,
        ppid: words.get(1)?.parse().ok()?,
        name: name.to_owned(),
        is_kernel: words.get(6)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
        state: words.first()?.chars().next()?,
        cpu: words.get(36)?.parse().ok()?,
    })
}

impl DumpedThread {
    fn event(&self) -> StateEvent {
        let status = match self.state {
            'R' => WAITS_FOR_CPU,
            'Z' => ZOMBIE,
            'X' | 'x' => DEAD,
            _ => WAITS,
        };
        event("lttng_statedump_process_state", |fields| {
            fields.add("tid", KernelValue::I32(self.tid as i32));
            fields.add("pid", KernelValue::I32(self.pid as i32));
            fields.add("ppid", KernelValue::I32(self.ppid as i32));
            fields.add("name", KernelValue::ThreadName(&self.name));
            fields.add("type", KernelValue::I32(i32::from(self.is_kernel)));
            fields.add("mode", KernelValue::I32(MODE_UNKNOWN));
            fields.add("submode", KernelValue::I32(SUBMODE_UNKNOWN));
            fields.add("status", KernelValue::I32(status));
            fields.add("cpu", KernelValue::U32(self.cpu));
        })
    }
}

/// Open files, as far as this user may see them.
fn open_files(pid: u32, tell: &mut impl FnMut(StateEvent)) {
    let folder = format!("/proc/{pid}/fd");
    for fd in numbers(Path::new(&folder)).into_iter().take(FILES_MAX) {
        let Ok(path) = fs::read_link(format!("{folder}/{fd}")) else { continue };
        let path = path.to_string_lossy();
        tell(event("lttng_statedump_file_descriptor", |fields| {
            fields.add("pid", KernelValue::I32(pid as i32));
            fields.add("fd", KernelValue::I32(fd as i32));
            fields.add("filename", KernelValue::Text(&path));
        }));
    }
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
    for irq in numbers(Path::new("/proc/irq")) {
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
    use super::*;

    #[test]
    fn names_of_threads_have_any_characters() {
        let rest =
            "S 1 2 3 4 5 2097216 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 3";
        let of = |name: &str| thread(&format!("42 ({name}) {rest}"), 40).expect("it is one");
        let odd = of("a) b (c)");
        assert_eq!((odd.name.as_str(), odd.tid, odd.pid, odd.ppid, odd.cpu), ("a) b (c)", 42, 40, 1, 3));
        assert!(odd.is_kernel);
        assert_eq!(thread("", 1), None);
        assert_eq!(thread("1 (a)", 1), None);
    }

    #[test]
    fn this_process_is_there() {
        let (mut own, mut names) = (false, Vec::new());
        tell(|thread| own |= thread.tid == std::process::id(), |event| names.push(event.name));
        assert!(own);
        assert_eq!((names.first(), names.last()), (Some(&"lttng_statedump_start"), Some(&"lttng_statedump_end")));
        assert!(names.contains(&"lttng_statedump_cpu_topology"));
    }
}
