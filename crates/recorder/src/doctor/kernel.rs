//! Checks for recording the kernel's events: rights, tracefs, clocks, probes, eBPF, leftovers.
//!
//! Programs are recorded without all of that, so that nothing here is wrong: a missing part is a note. A part that this user may
//! not look at is named as such.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kymo_lane::ClockSource;
use kymo_probe::tracefs::{InstanceRights, instance_rights};
use kymo_probe::{KernelProgram, perf_sched};

use super::{DoctorFinding, Grade, read};
use crate::kernel::{MISSING, kernel_source, told_by_iterators};

/// Numbers of capabilities.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
/// Those that let a helper do more, with their names.
const CAPABILITIES: [(u32, &str); 6] = [
    (1, "CAP_DAC_OVERRIDE"),
    (2, "CAP_DAC_READ_SEARCH"),
    (23, "CAP_SYS_NICE"),
    (34, "CAP_SYSLOG"),
    (CAP_PERFMON, "CAP_PERFMON"),
    (39, "CAP_BPF"),
];
/// How a group comes to a buffer.
const PREPARE: &str = "sudo kymo record --kernel; docs/kernel.md, Rights, says how root prepares a buffer for a group";
/// The file that shows whether tracefs may be used.
const EVENTS: &str = "available_events";
/// Where tracefs may be mounted.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Runs all checks of the kernel.
pub(super) fn examine(user: u32) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let status = read("/proc/self/status");
    let has = |number: u32| status.as_deref().is_some_and(|status| has_capability(status, "CapEff:", number));
    let mounts = read("/proc/self/mounts").unwrap_or_default();
    let place = PLACES.iter().map(PathBuf::from).find(|place| is_mounted(place, &mounts));
    let (finding, is_open) = judge_tracefs(place.as_deref(), &mounts, read("/proc/filesystems").as_deref());
    let is_usable = finding.grade == Grade::Good;
    findings.extend(status.as_deref().map(|status| judge_rights(status, user, is_usable)));
    findings.push(finding);
    findings.extend((!is_usable).then(|| judge_switches(perf_sched::is_possible())));
    if let Some(place) = place.filter(|_| is_open) {
        findings.extend(examine_tracefs(&place));
    }
    findings.extend(read("/sys/kernel/security/lockdown").map(|text| judge_lockdown(&text)));
    findings.push(examine_bpf());
    findings.extend(read("/proc/sys/kernel/perf_event_paranoid").map(|text| judge_perf(&text, user, has(CAP_PERFMON))));
    let told = told_by_iterators();
    let others = look_at_others(told.as_ref().unwrap_or(&HashSet::new()));
    findings.push(judge_others(&mounts, others, told.as_ref().err().map(String::as_str), user));
    findings
}

/// The line of a file system's mount.
fn mount_of<'m>(place: &Path, mounts: &'m str) -> Option<(&'m str, &'m str)> {
    let lines = mounts.lines().rev().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut all = lines.filter_map(|words| Some((*words.get(1)?, *words.get(2)?, *words.get(3)?)));
    all.find(|(at, ..)| Path::new(at) == place).map(|(_, kind, options)| (kind, options))
}

fn is_mounted(place: &Path, mounts: &str) -> bool {
    mount_of(place, mounts).is_some_and(|(kind, _)| kind == "tracefs")
}

fn line<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn has_capability(status: &str, set: &str, number: u32) -> bool {
    let set = line(status, set).and_then(|set| u64::from_str_radix(set, 16).ok()).unwrap_or(0);
    set >> number & 1 == 1
}

/// Rights of this process, and those that it cannot have.
fn judge_rights(status: &str, user: u32, is_tracefs_usable: bool) -> DoctorFinding {
    let about = "kernel: rights";
    let has = |set: &str| has_capability(status, set, CAP_SYS_ADMIN);
    let line = |name: &str| line(status, name);
    if has("CapEff:") {
        return DoctorFinding::new(about, Grade::Good, "this process has CAP_SYS_ADMIN");
    }
    if user == 0 {
        let found = "root has no CAP_SYS_ADMIN, as in most containers: it can use tracefs where it is mounted, and cannot mount it";
        return DoctorFinding::new(about, Grade::Note, found).help(
            "begin the container with --volume /sys/kernel/tracing:/sys/kernel/tracing, or record outside of it",
        );
    }
    let own = CAPABILITIES.iter().filter(|(number, _)| has_capability(status, "CapEff:", *number));
    let own: Vec<&str> = own.map(|(_, name)| *name).collect();
    let is_perfmon = has_capability(status, "CapEff:", CAP_PERFMON);
    if user != 0 && (is_tracefs_usable || is_perfmon) {
        let own = if own.is_empty() { "no capability".to_owned() } else { own.join(", ") };
        let found = format!(
            "user {user} is not root, and has {own}: the kernel's events can be recorded without sudo, as far as the next lines say"
        );
        return DoctorFinding::new(about, Grade::Good, found);
    }
    let found =
        format!("user {user} is not root: the kernel's events can be recorded by sudo alone; programs without it");
    let finding = DoctorFinding::new(about, Grade::Note, found);
    match (line("NoNewPrivs:"), has("CapBnd:")) {
        (Some("1"), _) => {
            finding.help("sudo kymo record --kernel, in a shell that is not begun with no_new_privs: this one is")
        }
        (_, false) => finding
            .help("sudo kymo record --kernel, outside of this container, in which no process can have CAP_SYS_ADMIN"),
        _ => finding.help("sudo kymo record --kernel"),
    }
}

/// Whether tracefs is there, and may be used.
fn judge_tracefs(place: Option<&Path>, mounts: &str, filesystems: Option<&str>) -> (DoctorFinding, bool) {
    let about = "kernel: tracefs";
    let note = |found: String| DoctorFinding::new(about, Grade::Note, found);
    let Some(place) = place else {
        let is_known =
            filesystems.map(|text| text.lines().any(|line| line.split_whitespace().last() == Some("tracefs")));
        return match is_known {
            Some(false) => {
                let found = "this kernel has none: its events cannot be recorded; programs can".to_owned();
                (note(found).help("boot a kernel with CONFIG_FTRACE"), false)
            }
            _ => {
                let found = "it is not mounted; kymo mounts it when it records the kernel as root".to_owned();
                (note(found).help("sudo mount -t tracefs tracefs /sys/kernel/tracing"), false)
            }
        };
    };
    let shown = place.display();
    if let Err(error) = File::open(place.join(EVENTS)) {
        let help =
            if error.kind() == ErrorKind::PermissionDenied { "sudo kymo doctor" } else { "ls -l /sys/kernel/tracing" };
        let found =
            format!("{shown} cannot be used: {error}; clocks, system calls, probes and leftovers were not looked at");
        return (note(found).help(help), false);
    }
    let is_read_only = mount_of(place, mounts).is_some_and(|(_, options)| options.split(',').any(|word| word == "ro"));
    if is_read_only {
        let found = format!("{shown} is mounted read-only: no buffer can be made there; programs can be recorded");
        return (note(found).help(format!("sudo mount -o remount,rw {shown}")), true);
    }
    let found = match instance_rights(place) {
        InstanceRights::None => {
            let found = format!("{shown} can be read, but this user may make no buffer there");
            return (note(found).help(PREPARE), true);
        }
        InstanceRights::Makes => format!("{shown} can be used"),
        InstanceRights::Prepared(count) => format!(
            "{shown} can be used, with the buffers that root has prepared there: {count}; probes need root's own rights"
        ),
    };
    (DoctorFinding::new(about, Grade::Good, found), true)
}

/// Parts of a tracefs that can be read.
fn examine_tracefs(place: &Path) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let clocks = fs::read_to_string(place.join("trace_clock")).ok();
    findings.extend(clocks.map(|clocks| judge_clocks(&clocks, kernel_source())));
    let part = |about: &str, file: &str, there: &str, missing: &str, option: &str| match place.join(file).exists() {
        true => DoctorFinding::new(about, Grade::Good, there),
        false => DoctorFinding::new(about, Grade::Note, format!("this kernel has none: {missing}"))
            .help(format!("boot a kernel with {option}")),
    };
    findings.extend([
        part(
            "kernel: system calls",
            "events/raw_syscalls/sys_enter",
            "they can be recorded",
            "events of system calls are missing; all other tracepoints can be recorded",
            "CONFIG_FTRACE_SYSCALLS",
        ),
        part(
            "kernel: kprobes",
            "kprobe_events",
            "functions of the kernel can have probes",
            "functions of the kernel can have no probes; tracepoints and system calls can be recorded",
            "CONFIG_KPROBES and CONFIG_KPROBE_EVENTS",
        ),
        part(
            "kernel: uprobes",
            "uprobe_events",
            "functions of programs can have probes",
            "functions of programs can have no probes of the kernel; kymo's own events of programs need none",
            "CONFIG_UPROBES and CONFIG_UPROBE_EVENTS",
        ),
    ]);
    findings.extend(examine_instances(place));
    findings
}

fn judge_clocks(clocks: &str, source: ClockSource) -> DoctorFinding {
    let about = "kernel: clock";
    let wanted = match source {
        ClockSource::Counter => "x86-tsc",
        ClockSource::Monotonic => "mono",
    };
    // The one in brackets is that of the top level, which kymo does not use.
    if clocks.split_whitespace().any(|word| word.trim_matches(['[', ']']) == wanted) {
        return DoctorFinding::new(about, Grade::Good, format!("it has {wanted}, the clock of programs"));
    }
    let found = format!("it has no {wanted}, the clock of programs: its events cannot be recorded; programs can");
    DoctorFinding::new(about, Grade::Note, found)
        .help("boot a kernel with a newer version, of the processor's own architecture")
}

/// Buffers of recordings.
fn examine_instances(place: &Path) -> Option<DoctorFinding> {
    let about = "kernel: buffers";
    let folder = place.join("instances");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) => {
            let found = format!("{} was not looked at: {error}", folder.display());
            return Some(DoctorFinding::new(about, Grade::Note, found).help("sudo kymo doctor"));
        }
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    // `kymo-PID-NUMBER`
    let owned = names.filter_map(|name| {
        let pid: u32 = name.strip_prefix("kymo-")?.split('-').next()?.parse().ok()?;
        Some((name, pid))
    });
    let (used, stale): (Vec<_>, Vec<_>) = owned.partition(|(_, pid)| Path::new(&format!("/proc/{pid}")).exists());
    Some(judge_instances(&folder, &used, &stale))
}

fn judge_instances(folder: &Path, used: &[(String, u32)], stale: &[(String, u32)]) -> DoctorFinding {
    let about = "kernel: buffers";
    if stale.is_empty() {
        let found = match used.len() {
            0 => "no recording has one".to_owned(),
            1 => "1 of a recording that runs".to_owned(),
            count => format!("{count} of recordings that run"),
        };
        return DoctorFinding::new(about, Grade::Good, found);
    }
    let told: Vec<String> = stale.iter().map(|(name, pid)| format!("{name} of process {pid}")).collect();
    let paths: Vec<String> = stale.iter().map(|(name, _)| folder.join(name).display().to_string()).collect();
    let found = format!(
        "{}: gone, and its memory is still taken; the next recording of the kernel removes it",
        told.join(", ")
    );
    DoctorFinding::new(about, Grade::Note, found).help(format!("sudo rmdir {}", paths.join(" ")))
}

fn judge_lockdown(text: &str) -> DoctorFinding {
    let about = "kernel: lockdown";
    let mode = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).unwrap_or("unknown");
    if mode != "confidentiality" {
        return DoctorFinding::new(about, Grade::Good, format!("{mode}: it forbids no recording"));
    }
    let found = "confidentiality: even root can record no events of the kernel; programs can be recorded";
    DoctorFinding::new(about, Grade::Note, found).help("boot with lockdown=integrity, or without lockdown")
}

/// Loads a program that does nothing, and looks for the descriptions of the kernel's types.
fn examine_bpf() -> DoctorFinding {
    let about = "kernel: eBPF";
    // r0 = 0; exit
    let loaded = KernelProgram::load(&[[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]]);
    let sysctl = read("/proc/sys/kernel/unprivileged_bpf_disabled");
    let without = "texts of system calls and `kymo watch` need it; tracepoints do not";
    if let Err(error) = loaded {
        let limit = sysctl.map_or(String::new(), |text| format!(", unprivileged_bpf_disabled is {}", text.trim()));
        let error = error.to_string().lines().next().unwrap_or_default().to_owned();
        let found = format!("{error}{limit}; {without}");
        return DoctorFinding::new(about, Grade::Note, found).help("sudo kymo doctor");
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        let found = format!(
            "programs can be loaded, but there is no /sys/kernel/btf/vmlinux for those that read the kernel's structures; {without}"
        );
        return DoctorFinding::new(about, Grade::Note, found).help("boot a kernel with CONFIG_DEBUG_INFO_BTF");
    }
    DoctorFinding::new(about, Grade::Good, "programs can be loaded, and the kernel describes its types")
}

/// Whether context switches can be recorded where tracefs cannot be used.
fn judge_switches(possible: std::io::Result<()>) -> DoctorFinding {
    let about = "kernel: context switches";
    match possible {
        Ok(()) => {
            let found = format!(
                "where tracefs cannot be used, perf tells them, with forks, names and ends of threads: {MISSING}"
            );
            DoctorFinding::new(about, Grade::Good, found)
        }
        Err(error) => {
            let found = format!("perf does not tell them either, which would do without tracefs: {error}");
            let help = "sudo kymo record --kernel; or CAP_PERFMON, or sudo sysctl kernel.perf_event_paranoid=0";
            DoctorFinding::new(about, Grade::Note, found).help(help)
        }
    }
}

fn judge_perf(text: &str, user: u32, is_perfmon: bool) -> DoctorFinding {
    let about = "kernel: perf events";
    let level = text.trim();
    let unbound = if user == 0 { Some("root") } else { is_perfmon.then_some("a user with CAP_PERFMON") };
    if let Some(unbound) = unbound {
        let found = format!("kernel.perf_event_paranoid is {level}, which does not bind {unbound}");
        return DoctorFinding::new(about, Grade::Good, found);
    }
    match level.parse::<i32>() {
        Ok(..=1) => DoctorFinding::new(about, Grade::Good, format!("kernel.perf_event_paranoid is {level}")),
        _ => {
            let found = format!(
                "kernel.perf_event_paranoid is {level}: `perf` counts nothing in the kernel for user {user}; without sudo there are no stacks, and no context switches where tracefs cannot be used"
            );
            DoctorFinding::new(about, Grade::Note, found).help("sudo sysctl kernel.perf_event_paranoid=1")
        }
    }
}

/// Processes that are there.
#[derive(Clone, Copy, Debug, Default)]
struct OtherProcesses {
    all: usize,
    /// Those that may not be inspected, and those of them that iterators do not tell.
    denied: usize,
    untold: usize,
}

fn look_at_others(told: &HashSet<u32>) -> OtherProcesses {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    processes.fold(OtherProcesses::default(), |sum, pid| {
        let error = fs::read_link(format!("/proc/{pid}/ns/pid")).err();
        let is_denied = error.is_some_and(|error| error.kind() == ErrorKind::PermissionDenied);
        let is_untold = is_denied && !told.contains(&pid);
        OtherProcesses {
            all: sum.all + 1,
            denied: sum.denied + usize::from(is_denied),
            untold: sum.untold + usize::from(is_untold),
        }
    })
}

/// Whether the kernel's trace begins with all processes: `problem` is why the kernel's iterators do not tell them.
fn judge_others(mounts: &str, others: OtherProcesses, problem: Option<&str>, user: u32) -> DoctorFinding {
    let about = "kernel: processes of others";
    let OtherProcesses { all, denied, untold } = others;
    let capabilities = "grep Cap /proc/1/status /proc/self/status shows the capabilities that root lacks here";
    let Some(problem) = problem else {
        if untold == 0 {
            let found = format!("eBPF tells all {all} processes with their files, namespaces and maps");
            return DoctorFinding::new(about, Grade::Good, found);
        }
        let found = format!(
            "eBPF does not tell {untold} of {all} processes, which cannot be inspected either: at the beginning of the kernel's trace, their files, namespaces and maps are missing"
        );
        return DoctorFinding::new(about, Grade::Note, found).help(capabilities);
    };
    let options = mount_of(Path::new("/proc"), mounts).map_or("", |(_, options)| options);
    let hidden =
        options.split(',').find(|word| word.starts_with("hidepid=") && !matches!(*word, "hidepid=0" | "hidepid=off"));
    if let Some(option) = hidden.filter(|_| user != 0) {
        let found = format!(
            "/proc is mounted with {option}: the kernel's trace names the threads of others at its beginning only where eBPF tells them"
        );
        return DoctorFinding::new(about, Grade::Note, found).help("sudo kymo doctor says whether it does");
    }
    if denied == 0 {
        return DoctorFinding::new(
            about,
            Grade::Good,
            format!("/proc tells all {all} processes, which can be inspected"),
        );
    }
    if user != 0 {
        let found = format!(
            "this user may not inspect {denied} of {all} processes: the kernel's trace begins with their files, namespaces and maps only where eBPF tells them"
        );
        return DoctorFinding::new(about, Grade::Note, found).help("sudo kymo doctor says whether it does");
    }
    let why = problem.lines().next().unwrap_or_default();
    let found = format!(
        "{denied} of {all} processes cannot be inspected: at the beginning of the kernel's trace, their files, namespaces and maps are missing, as /proc is read and not eBPF ({why})"
    );
    DoctorFinding::new(about, Grade::Note, found).help(capabilities)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(finding: &DoctorFinding) -> (Grade, &str, &str) {
        (finding.grade, &finding.found, finding.help.as_deref().unwrap_or(""))
    }

    #[test]
    fn rights_are_told() {
        let status = |effective: &str, bounding: &str, no_new: u8| {
            format!("CapEff:\t{effective}\nCapBnd:\t{bounding}\nNoNewPrivs:\t{no_new}\n")
        };
        let (all, none) = ("000001fffeffffff", "00000000a80425fb");
        assert_eq!(judge_rights(&status(all, all, 0), 0, true).grade, Grade::Good);
        let user = judge_rights(&status("0", all, 0), 1000, false);
        assert_eq!((told(&user).0, told(&user).2), (Grade::Note, "sudo kymo record --kernel"));
        let group = judge_rights(&status("0", all, 0), 1000, true);
        assert!(told(&group).0 == Grade::Good && told(&group).1.contains("has no capability"), "{group:?}");
        let some = judge_rights(&status("000000c000000000", all, 0), 1000, false);
        assert!(told(&some).0 == Grade::Good && told(&some).1.contains("CAP_PERFMON, CAP_BPF"), "{some:?}");
        assert!(told(&judge_rights(&status(none, none, 0), 0, true)).1.contains("containers"));
        assert!(told(&judge_rights(&status("0", none, 0), 1000, false)).2.contains("container"));
        assert!(told(&judge_rights(&status("0", all, 1), 1000, false)).2.contains("no_new_privs"));
    }

    #[test]
    fn tracefs_is_looked_for() {
        let (absent, is_open) = judge_tracefs(None, "", Some("nodev\ttracefs\n"));
        assert!(!is_open && told(&absent).2.starts_with("sudo mount -t tracefs"), "{absent:?}");
        let (absent, _) = judge_tracefs(None, "", Some("nodev\tproc\n\text4\n"));
        assert!(told(&absent).1.contains("this kernel has none"), "{absent:?}");
        let folder = tempfile::tempdir().expect("temporary files may be written");
        let mounts = |options: &str| format!("x {} tracefs {options} 0 0\n", folder.path().display());
        assert!(is_mounted(folder.path(), &mounts("rw")) && !is_mounted(Path::new("/a"), &mounts("rw")));
        let (closed, is_open) = judge_tracefs(Some(folder.path()), &mounts("rw"), None);
        assert!(!is_open && told(&closed).1.contains("were not looked at"), "{closed:?}");
        fs::write(folder.path().join(EVENTS), "").expect("it can be written");
        let (fixed, is_open) = judge_tracefs(Some(folder.path()), &mounts("ro,relatime"), None);
        assert!(is_open && told(&fixed).2.contains("remount,rw"), "{fixed:?}");
        fs::create_dir(folder.path().join("instances")).expect("it can be made");
        assert_eq!(judge_tracefs(Some(folder.path()), &mounts("rw"), None).0.grade, Grade::Good);
    }

    #[test]
    fn parts_are_missing() {
        let folder = tempfile::tempdir().expect("temporary files may be written");
        fs::create_dir_all(folder.path().join("events/raw_syscalls/sys_enter")).expect("it can be made");
        fs::create_dir_all(folder.path().join("instances/kymo-4294967295-0")).expect("it can be made");
        fs::create_dir_all(folder.path().join("instances/other")).expect("it can be made");
        let findings = examine_tracefs(folder.path());
        let of = |about: &str| {
            findings.iter().find(|finding| finding.about == about).unwrap_or_else(|| panic!("no {about}"))
        };
        assert_eq!(of("kernel: system calls").grade, Grade::Good);
        assert!(told(of("kernel: kprobes")).2.contains("CONFIG_KPROBES"));
        let buffers = told(of("kernel: buffers"));
        assert!(
            buffers.1.contains("process 4294967295") && buffers.2.ends_with("instances/kymo-4294967295-0"),
            "{buffers:?}"
        );
        assert!(findings.iter().all(|finding| finding.about != "kernel: clock"), "it was not looked at");
        assert_eq!(judge_clocks("[local] mono x86-tsc\n", ClockSource::Counter).grade, Grade::Good);
        assert_eq!(judge_clocks("[local] mono\n", ClockSource::Counter).grade, Grade::Note);
        assert_eq!(judge_clocks("local [mono]\n", ClockSource::Monotonic).grade, Grade::Good);
    }

    #[test]
    fn limits_are_told() {
        assert_eq!(judge_lockdown("none [integrity] confidentiality\n").grade, Grade::Good);
        assert!(told(&judge_lockdown("none integrity [confidentiality]\n")).1.contains("even root"));
        assert_eq!(judge_switches(Ok(())).grade, Grade::Good);
        let refused = judge_switches(Err(ErrorKind::PermissionDenied.into()));
        assert!(refused.grade == Grade::Note && told(&refused).2.contains("CAP_PERFMON"), "{refused:?}");
        assert_eq!((judge_perf("4\n", 0, false).grade, judge_perf("1\n", 5, false).grade), (Grade::Good, Grade::Good));
        assert_eq!((judge_perf("2\n", 5, false).grade, judge_perf("-1\n", 5, false).grade), (Grade::Note, Grade::Good));
        assert_eq!(judge_perf("2\n", 5, true).grade, Grade::Good);
        let proc = "proc /proc proc rw,hidepid=invisible 0 0\n";
        let seen = |all, denied, untold| OtherProcesses { all, denied, untold };
        let others = |seen, user| judge_others(proc, seen, Some("no iterators\nlog"), user);
        assert!(others(seen(1, 0, 0), 5).found.contains("hidepid=invisible"));
        assert_eq!(others(seen(9, 0, 0), 0).grade, Grade::Good, "it does not bind root");
        let denied = |user| judge_others("proc /proc proc rw 0 0\n", seen(9, 2, 2), Some("no iterators\nlog"), user);
        assert!(denied(0).grade == Grade::Note && denied(0).found.starts_with("2 of 9 processes"), "{:?}", denied(0));
        assert!(denied(0).found.ends_with("(no iterators)"), "{:?}", denied(0));
        assert!(denied(5).help.is_some_and(|help| help.starts_with("sudo kymo doctor")));
        let told = |untold| judge_others(proc, seen(9, 2, untold), None, 0);
        assert!(told(0).grade == Grade::Good && told(0).found.starts_with("eBPF tells all 9"), "{:?}", told(0));
        assert!(told(1).grade == Grade::Note && told(1).found.contains("1 of 9 processes"), "{:?}", told(1));
    }
}
