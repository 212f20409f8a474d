//! Checks for problems that keep programs from being recorded, and their fixes.
//!
//! Each check looks at one thing and reports its finding; it changes nothing. Facts that the system
//! does not give are no finding.
//!
//! The kernel's part is in `kernel`.

mod kernel;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::client::{Client, ClientProblem};
use crate::folder::{FolderProblem, check_folder, check_open, own_folder, own_user};
use crate::program::find::ProgramFinder;
use crate::program::{Program, ProgramRefusal};
use crate::protocol::{RecorderReply, RecorderRequest, Status, Unreachable};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// As it should be.
    Good,
    /// Recording is slower or less complete than it could be.
    Note,
    /// Programs are not recorded, or not all of them.
    Wrong,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorFinding {
    /// Subject of the check.
    pub about: String,
    /// Severity.
    pub grade: Grade,
    /// The finding.
    pub found: String,
    /// The fix.
    pub help: Option<String>,
}

/// Bytes that a program's lanes may have.
const POOL_BYTES: u64 = 16 << 20;
/// With less room than this, two programs fill it.
const ROOM_BYTES: u64 = 64 << 20;
/// With less room than this on a disk, a trace does not get far.
const DISK_BYTES: u64 = 1 << 30;

/// Runs all checks.
#[must_use]
pub fn examine() -> Vec<DoctorFinding> {
    let folder = own_folder();
    let mut findings = vec![examine_folder(&folder)];
    findings.extend(examine_room(&folder));
    findings.extend(memory_limit().map(|(limit, used)| judge_memory(limit, used)));
    findings.extend(read("/proc/cpuinfo").map(|text| judge_counter(&text, std::env::consts::ARCH)));
    findings.extend(read("/proc/sys/vm/memfd_noexec").map(|text| judge_memfd(&text)));
    findings.extend(read("/proc/sys/kernel/yama/ptrace_scope").map(|text| judge_ptrace(&text, own_user())));
    findings.push(judge_files(rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum));
    findings.extend(examine_disk());
    findings.extend(kernel::examine(own_user()));
    let status = examine_recorder(&mut findings);
    let unreachable = status.map_or_else(look, |status| status.unreachable);
    findings.extend(judge_programs(&unreachable));
    findings
}

impl DoctorFinding {
    fn new(about: &str, grade: Grade, found: impl Into<String>) -> Self {
        Self { about: about.to_owned(), grade, found: found.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn size(bytes: u64) -> String {
    let (each, unit) = match bytes {
        0..0x100000 => (1 << 10, "KiB"),
        0x100000..0x40000000 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    format!("{:.1} {unit}", bytes as f64 / f64::from(each))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn examine_folder(folder: &Path) -> DoctorFinding {
    let about = "folder of programs";
    match check_folder(folder, own_user()).and_then(|_| check_open(folder)) {
        Ok(()) => DoctorFinding::new(about, Grade::Good, format!("{}, this user's alone", folder.display())),
        Err(FolderProblem::Unreachable { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
            examine_missing(folder)
        }
        Err(problem) => {
            let help = match &problem {
                FolderProblem::Mode { path, .. } | FolderProblem::Closed { path } => {
                    format!("chmod 700 {}", path.display())
                }
                FolderProblem::Owner { path, .. } => {
                    format!(
                        "rm -r {} as its owner or root, or set XDG_RUNTIME_DIR to a folder of this user",
                        path.display()
                    )
                }
                FolderProblem::Unreachable { .. } | FolderProblem::Long { .. } => {
                    "set XDG_RUNTIME_DIR to a folder of this user".to_owned()
                }
            };
            DoctorFinding::new(about, Grade::Wrong, problem.to_string()).help(help)
        }
    }
}

/// The first program or recorder makes the folder, if its parent exists.
fn examine_missing(folder: &Path) -> DoctorFinding {
    let about = "folder of programs";
    match folder.parent().filter(|parent| !parent.is_dir()) {
        Some(parent) => {
            let found = format!("{} is not there, so that {} cannot be made", parent.display(), folder.display());
            DoctorFinding::new(about, Grade::Wrong, found)
                .help("set XDG_RUNTIME_DIR to a folder that is there, or unset it")
        }
        None => {
            let found = format!("{} is not there; the first program or recorder makes it", folder.display());
            DoctorFinding::new(about, Grade::Good, found)
        }
    }
}

/// Room for memory of programs.
fn examine_room(folder: &Path) -> Option<DoctorFinding> {
    let there = folder.ancestors().find(|path| path.is_dir())?;
    let system = rustix::fs::statvfs(there).ok()?;
    let files = judge_inodes(there, system.f_favail, system.f_files);
    Some(
        files
            .unwrap_or_else(|| judge_room(there, system.f_bavail * system.f_frsize, system.f_blocks * system.f_frsize)),
    )
}

/// A file system without free inodes has no room either, however many bytes are free.
fn judge_inodes(path: &Path, free: u64, all: u64) -> Option<DoctorFinding> {
    let found = format!("none of {all} files is left that there may be in {}", path.display());
    let help = format!("mount -o remount,nr_inodes=0 {}, or delete unneeded files", mount_point(path).display());
    (free == 0 && all > 0).then(|| DoctorFinding::new("room for events", Grade::Wrong, found).help(help))
}

fn judge_room(path: &Path, free: u64, all: u64) -> DoctorFinding {
    let found = format!("{} of {} are free in {}", size(free), size(all), path.display());
    let grade = match free {
        0..POOL_BYTES => Grade::Wrong,
        POOL_BYTES..ROOM_BYTES => Grade::Note,
        _ => Grade::Good,
    };
    let finding = DoctorFinding::new("room for events", grade, found);
    if grade == Grade::Good {
        return finding;
    }
    finding.help(format!(
        "a program needs up to 16 MiB: mount -o remount,size=1G {}, in Docker --shm-size=256m; or kymo record --pool-size 2MiB",
        mount_point(path).display()
    ))
}

/// The mount point of the file system that holds a path.
fn mount_point(path: &Path) -> &Path {
    let device = |path: &Path| rustix::fs::stat(path).ok().map(|found| found.st_dev);
    let own = device(path);
    path.ancestors().take_while(|around| device(around) == own).last().unwrap_or(path)
}

/// Problem with the room for the events of programs that begin now, if each may have so many bytes;
/// `None`: 16 MiB.
#[must_use]
pub fn lacks_room(pool_bytes: Option<u64>) -> Option<DoctorFinding> {
    let there = own_folder();
    let there = there.ancestors().find(|path| path.is_dir())?;
    let system = rustix::fs::statvfs(there).ok()?;
    let (free, all) = (system.f_bavail * system.f_frsize, system.f_blocks * system.f_frsize);
    let lacks_bytes = free < pool_bytes.unwrap_or(POOL_BYTES).min(POOL_BYTES);
    judge_inodes(there, system.f_favail, system.f_files).or_else(|| lacks_bytes.then(|| judge_room(there, free, all)))
}

/// The limit of this process' cgroup, and how much of it is used.
fn memory_limit() -> Option<(u64, u64)> {
    let group = read("/proc/self/cgroup")?;
    let group = group.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = PathBuf::from(format!("/sys/fs/cgroup{group}"));
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    Some((number("memory.max")?, number("memory.current")?))
}

fn judge_memory(limit: u64, used: u64) -> DoctorFinding {
    let free = limit.saturating_sub(used);
    let found = format!("{} are left of {}", size(free), size(limit));
    if free >= ROOM_BYTES {
        return DoctorFinding::new("limit of memory", Grade::Good, found);
    }
    let help = "events wait in memory that counts: raise memory.max of the group, or kymo record --pool-size 2MiB";
    DoctorFinding::new("limit of memory", Grade::Note, found).help(help)
}

fn judge_counter(cpuinfo: &str, architecture: &str) -> DoctorFinding {
    let about = "clock";
    if architecture != "x86_64" {
        return DoctorFinding::new(about, Grade::Good, "the processor's counter runs at one rate");
    }
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|found| found == flag);
    let missing: Vec<&str> = ["constant_tsc", "nonstop_tsc"].into_iter().filter(|flag| !has(flag)).collect();
    if missing.is_empty() {
        return DoctorFinding::new(about, Grade::Good, "the processor's counter runs at one rate and does not stop");
    }
    let found = format!("the processor's counter is not known to be steady ({} missing)", missing.join(", "));
    DoctorFinding::new(about, Grade::Note, found)
        .help("events are stamped with CLOCK_MONOTONIC, which takes some ns longer")
}

fn judge_memfd(sysctl: &str) -> DoctorFinding {
    let about = "machine code of filters";
    // Memory for code is marked as executable: 1 affects only memory that is not.
    if matches!(sysctl.trim(), "0" | "1") {
        return DoctorFinding::new(about, Grade::Good, "programs may have memory for it");
    }
    DoctorFinding::new(about, Grade::Note, format!("vm.memfd_noexec is {}: filters are interpreted", sysctl.trim()))
        .help("sysctl vm.memfd_noexec=1")
}

fn judge_ptrace(sysctl: &str, user: u32) -> DoctorFinding {
    let about = "rights over programs";
    let scope = sysctl.trim();
    if matches!(scope, "0" | "1") || (scope == "2" && user == 0) {
        return DoctorFinding::new(
            about,
            Grade::Good,
            "filters can be handed to programs of this user as machine code",
        );
    }
    DoctorFinding::new(
        about,
        Grade::Note,
        format!("kernel.yama.ptrace_scope is {scope}: filters may have to be interpreted"),
    )
    .help("sysctl kernel.yama.ptrace_scope=1")
}

fn judge_files(limit: Option<u64>) -> DoctorFinding {
    let about = "open files";
    match limit {
        Some(limit) if limit < 1024 => {
            DoctorFinding::new(about, Grade::Note, format!("{limit} at most, and each program and lane takes one"))
                .help("ulimit -n 65536, before the first kymo record")
        }
        Some(limit) => DoctorFinding::new(about, Grade::Good, format!("{limit} at most")),
        None => DoctorFinding::new(about, Grade::Good, "as many as are needed"),
    }
}

/// Room for traces in the current directory.
fn examine_disk() -> Option<DoctorFinding> {
    let here = std::env::current_dir().ok()?;
    let system = rustix::fs::statvfs(&here).ok()?;
    let free = system.f_bavail * system.f_frsize;
    let found = format!("{} are free in {}", size(free), here.display());
    let about = "room for traces";
    Some(match free {
        0..DISK_BYTES => DoctorFinding::new(about, Grade::Note, found)
            .help("kymo record --output DIR writes elsewhere; --rotate-size 100MiB --keep 500MiB deletes old parts"),
        _ => DoctorFinding::new(about, Grade::Good, found),
    })
}

/// Whether a recorder runs, and its status.
fn examine_recorder(findings: &mut Vec<DoctorFinding>) -> Option<Status> {
    let about = "recorder";
    let mut client = match Client::connect() {
        Ok(client) => client,
        Err(ClientProblem::Nobody) => {
            findings.push(DoctorFinding::new(about, Grade::Good, "none runs; the first session starts it"));
            return None;
        }
        Err(problem) => {
            findings.push(DoctorFinding::new(about, Grade::Wrong, problem.to_string()));
            return None;
        }
    };
    let found = format!("process {}, kymo {}", client.pid, client.kymo);
    match client.ask(&RecorderRequest::Status) {
        Ok(RecorderReply::Status(status)) => {
            let found = format!(
                "{found}: {}, {}",
                counted(status.sessions.len(), "session"),
                counted(status.programs.len(), "program")
            );
            findings.push(DoctorFinding::new(about, Grade::Good, found));
            Some(*status)
        }
        Ok(_) | Err(_) => {
            findings.push(
                DoctorFinding::new(about, Grade::Wrong, format!("{found}, does not answer")).help("end that process"),
            );
            None
        }
    }
}

/// Programs that cannot be recorded, found here when no recorder runs that knows them.
fn look() -> Vec<Unreachable> {
    let mut finder = ProgramFinder::new();
    for found in finder.look() {
        match Program::open(&found.way(), found.user) {
            // A program that is just beginning, or has ended.
            Ok(_) | Err(ProgramRefusal::NoProgram) => {}
            Err(refusal) => finder.refuse(&found, &refusal, false),
        }
    }
    finder.unreachable()
}

fn judge_programs(unreachable: &[Unreachable]) -> Vec<DoctorFinding> {
    let about = "programs";
    if unreachable.is_empty() {
        return vec![DoctorFinding::new(about, Grade::Good, "none is visible that cannot be recorded")];
    }
    let own = own_user();
    let finding = |one: &Unreachable| {
        let found = format!("{}: {}", one.path.display(), one.why);
        // This user cannot fix programs of other users, and a program that is already recorded
        // needs no fix.
        let is_fine = one.is_recorded || one.user.is_some_and(|user| user != own);
        let grade = if is_fine { Grade::Note } else { Grade::Wrong };
        DoctorFinding::new(about, grade, found)
    };
    unreachable.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_its_cure() {
        let room = |free| judge_room(Path::new("/dev/shm"), free, 64 << 20);
        assert_eq!(
            (room(1 << 20).grade, room(32 << 20).grade, room(64 << 20).grade),
            (Grade::Wrong, Grade::Note, Grade::Good)
        );
        assert!(room(1 << 20).help.is_some_and(|help| help.contains("--shm-size")) && room(64 << 20).help.is_none());
        let files = |free, all| judge_inodes(Path::new("/dev/shm"), free, all);
        assert!(files(0, 0).is_none() && files(1, 5).is_none(), "there are some, or nobody counts them");
        assert!(
            files(0, 5).is_some_and(|files| files.grade == Grade::Wrong && files.found.contains("none of 5 files"))
        );
        let steady = judge_counter("model\t: x\nflags\t\t: fpu constant_tsc nonstop_tsc sse\n", "x86_64");
        assert_eq!(steady.grade, Grade::Good);
        let unsteady = judge_counter("flags\t\t: fpu constant_tsc\n", "x86_64");
        assert!(unsteady.grade == Grade::Note && unsteady.found.contains("nonstop_tsc missing"), "{unsteady:?}");
        assert_eq!((judge_memfd("0\n").grade, judge_memfd("2\n").grade), (Grade::Good, Grade::Note));
        assert_eq!((judge_ptrace("2\n", 0).grade, judge_ptrace("2\n", 5).grade), (Grade::Good, Grade::Note));
        assert_eq!(judge_memory(1 << 30, (1 << 30) - 5).grade, Grade::Note);
        assert_eq!((judge_files(Some(100)).grade, judge_files(None).grade), (Grade::Note, Grade::Good));
    }

    #[test]
    fn folders_that_are_not_their_users_are_wrong() {
        let around = tempfile::tempdir().expect("temporary files may be written");
        let path = around.path().join("kymo");
        assert_eq!(examine_folder(&path).grade, Grade::Good, "it can be made");
        assert_eq!(examine_folder(&path.join("kymo")).grade, Grade::Wrong, "it cannot");
        fs::create_dir(&path).expect("it can be made");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
        let finding = examine_folder(&path);
        assert_eq!((finding.grade, finding.help), (Grade::Wrong, Some(format!("chmod 700 {}", path.display()))));
    }

    #[test]
    fn what_is_others_is_no_fault() {
        let one = |user| Unreachable { user: Some(user), why: "why".to_owned(), ..Unreachable::default() };
        assert_eq!(judge_programs(&[one(own_user())])[0].grade, Grade::Wrong);
        assert_eq!(judge_programs(&[one(own_user() + 1)])[0].grade, Grade::Note);
        let taken = Unreachable { is_recorded: true, ..one(own_user()) };
        assert_eq!(judge_programs(&[taken])[0].grade, Grade::Note);
        assert_eq!(judge_programs(&[])[0].grade, Grade::Good);
    }
}
