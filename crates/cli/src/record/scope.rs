//! Processes that the kernel's events are about: `--kernel-of command`, PIDs, control groups, containers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kymo_recorder::tracepoints::KernelScope;

use crate::stop::StopReason;

/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup";
/// The file with the processes of a group.
const PROCESSES: &str = "cgroup.procs";
/// Characters of a container's name at least: fewer would be part of many others.
const NAME_MIN: usize = 4;

/// The processes that words mean; `None`: no words, and all processes.
pub(super) fn find(words: &[String], has_command: bool) -> Result<Option<KernelScope>, StopReason> {
    if words.is_empty() {
        return Ok(None);
    }
    let mut processes = BTreeSet::new();
    for word in words {
        let found = if word == "command" {
            // The command is started by this process.
            has_command.then(|| [std::process::id()].into()).ok_or_else(|| {
                "`--kernel-of command` is about the COMMAND of this recording, and there is none".to_owned()
            })
        } else if let Ok(pid) = word.parse::<u32>() {
            let is_there = Path::new(&format!("/proc/{pid}")).exists();
            is_there.then(|| [pid].into()).ok_or_else(|| format!("`--kernel-of {pid}`: there is no process {pid}"))
        } else if let Some(path) = word.strip_prefix("cgroup:") {
            group(path)
        } else if let Some(name) = word.strip_prefix("container:") {
            container(name)
        } else {
            Err(format!("`--kernel-of {word}` is none of `command`, a PID, `cgroup:PATH` and `container:NAME`"))
        };
        processes.extend(found.map_err(StopReason::Usage)?);
    }
    Ok(Some(KernelScope { said: words.join(","), processes: processes.into_iter().collect() }))
}

/// Processes of a control group and those below it.
fn group(path: &str) -> Result<BTreeSet<u32>, String> {
    let relative = path.trim_start_matches('/');
    let folders: Vec<PathBuf> = if path.starts_with(GROUPS) {
        vec![PathBuf::from(path)]
    } else {
        hierarchies().into_iter().map(|root| root.join(relative)).collect()
    };
    let folders: Vec<PathBuf> = folders.into_iter().filter(|folder| folder.join(PROCESSES).exists()).collect();
    if folders.is_empty() {
        return Err(format!("there is no control group `{path}` in {GROUPS}"));
    }
    let found: BTreeSet<u32> = folders.iter().flat_map(|folder| processes(folder)).collect();
    if found.is_empty() { Err(format!("the control group `{path}` has no process")) } else { Ok(found) }
}

/// The roots of control groups: one of version 2, and those of version 1 below it.
fn hierarchies() -> Vec<PathBuf> {
    let root = PathBuf::from(GROUPS);
    if root.join(PROCESSES).exists() {
        return vec![root];
    }
    folders(&root)
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.path()).collect()
}

fn processes(group: &Path) -> BTreeSet<u32> {
    let text = fs::read_to_string(group.join(PROCESSES)).unwrap_or_default();
    let own = text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0);
    own.chain(folders(group).iter().flat_map(|below| processes(below))).collect()
}

/// Processes of a container, as its control groups are called: `docker-ID.scope`, `libpod-ID.scope`, `cri-containerd-ID.scope`,
/// `lxc.payload.NAME`, `ID` and the like.
fn container(name: &str) -> Result<BTreeSet<u32>, String> {
    if name.len() < NAME_MIN {
        return Err(format!("`container:{name}`: at least {NAME_MIN} characters of the name or ID are needed"));
    }
    let mut groups = Vec::new();
    hierarchies().iter().for_each(|root| containers(root, name, &mut groups));
    let names: BTreeSet<&str> = groups.iter().filter_map(|group| group.file_name()?.to_str()).collect();
    if names.len() > 1 {
        let names = names.into_iter().collect::<Vec<_>>().join("`, `");
        return Err(format!("`container:{name}` means several control groups: `{names}`"));
    }
    let found: BTreeSet<u32> = groups.iter().flat_map(|group| processes(group)).collect();
    if found.is_empty() {
        return Err(format!(
            "there is no container `{name}` with processes: no control group in {GROUPS} is called by it\n\
             help: the ID of a container is known in any case, its name may not be: `docker inspect -f {{{{.Id}}}} {name}`"
        ));
    }
    Ok(found)
}

fn containers(path: &Path, name: &str, found: &mut Vec<PathBuf>) {
    for folder in folders(path) {
        let own = folder.file_name().and_then(|own| own.to_str()).unwrap_or_default();
        if is_container(own, name) {
            found.push(folder);
        } else {
            containers(&folder, name, found);
        }
    }
}

/// Whether a control group's name has a container's name, or the first characters of its ID.
fn is_container(group: &str, name: &str) -> bool {
    let group = group.strip_suffix(".scope").unwrap_or(group);
    let is_id = |id: &str| id.len() == 64 && id.bytes().all(|digit| digit.is_ascii_hexdigit()) && id.starts_with(name);
    let last = group.rsplit(['-', '.', ':']).next().unwrap_or(group);
    let has_prefix = ["lxc.payload.", "machine-"].iter().any(|kind| group.strip_prefix(kind) == Some(name));
    group == name || is_id(last) || has_prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_have_their_ids_in_groups() {
        let id = "0123456789abcdef".repeat(4);
        for group in
            [format!("docker-{id}.scope"), id.clone(), format!("libpod-{id}.scope"), format!("kubepods:cri:{id}")]
        {
            assert!(is_container(&group, "01234567") && is_container(&group, &id), "{group}");
            assert!(!is_container(&group, "12345678"), "{group}");
        }
        assert!(is_container("lxc.payload.web1", "web1") && is_container("machine-web1.scope", "web1"));
        assert!(!is_container("lxc.payload.web12", "web1") && !is_container("lxc.monitor.web1", "web1"));
        assert!(!is_container("docker-0123.scope", "0123"), "that is no ID");
    }

    #[test]
    fn words_are_understood_or_refused() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert!(find(&[], false).is_ok_and(|none| none.is_none()));
        let own = std::process::id();
        let found = find(&words(&["command", &own.to_string()]), true).ok().flatten().expect("it is there");
        assert_eq!((found.said, found.processes), (format!("command,{own}"), vec![own]));
        for (wrong, told) in [
            ("command", "there is none"),
            ("4194399", "there is no process 4194399"),
            ("cgroup:/none/such", "there is no control group `/none/such`"),
            ("container:abc", "at least 4 characters"),
            ("container:none-such", "there is no container `none-such`"),
            ("me", "is none of `command`"),
        ] {
            let Err(StopReason::Usage(why)) = find(&words(&[wrong]), false) else { panic!("{wrong} is refused") };
            assert!(why.contains(told), "{why}");
        }
    }
}
