//! Programs and threads, chosen by more than the name of a program: a policy says whom it is about.
//!
//! ```text
//! label   KYMO_LABEL in the program's environment, `init -> ping`; without it, the name of the program
//! user    the number of the program's effective user
//! cgroup  the path of its control group, `/system.slice/nginx.service`
//! thread  the name that a thread has when it records an event
//! ```

use kymo_schema::glob::matches;
use serde::{Deserialize, Serialize};

use super::ProgramCandidate;
use crate::program::ProgramIdentity;

/// Matches programs, and threads in them. All conditions have to be met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubjectRule {
    /// Patterns of names of programs, or their PIDs: at least one of them.
    pub processes: Vec<String>,
    /// The whole label.
    pub label: Option<String>,
    /// Beginning of the label.
    pub label_prefix: Option<String>,
    /// End of the label.
    pub label_suffix: Option<String>,
    /// Pattern of the label: `*` matches any text, `?` any character.
    pub label_glob: Option<String>,
    /// Users: one of them.
    pub users: Vec<u32>,
    /// Patterns of paths of control groups: one of them.
    pub cgroups: Vec<String>,
    /// Pattern of names of threads: `*` matches any text.
    pub thread: Option<String>,
}

/// Facts about the surroundings of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSurroundings {
    /// Its label.
    pub label: String,
    /// The path of its control group; empty: unknown.
    pub cgroup: String,
}

impl SubjectRule {
    /// Whether it can match threads of a program.
    #[must_use]
    pub fn takes_program(&self, program: &ProgramCandidate<'_>) -> bool {
        let label = program.label;
        let is_its = |wanted: &String| program.is_named(wanted);
        (self.processes.is_empty() || self.processes.iter().any(is_its))
            && self.label.as_deref().is_none_or(|whole| whole == label)
            && self.label_prefix.as_deref().is_none_or(|prefix| label.starts_with(prefix))
            && self.label_suffix.as_deref().is_none_or(|suffix| label.ends_with(suffix))
            && self.label_glob.as_deref().is_none_or(|pattern| matches(pattern, label))
            && (self.users.is_empty() || self.users.contains(&program.user))
            && (self.cgroups.is_empty() || self.cgroups.iter().any(|pattern| matches(pattern, program.cgroup)))
    }

    /// The condition on threads in the filter language; `None`: all threads.
    #[must_use]
    pub fn thread_filter(&self) -> Option<String> {
        let name = self.thread.as_deref()?.replace('"', "\\\"");
        Some(format!("$ctx.procname == \"{name}\""))
    }
}

impl ProgramSurroundings {
    /// Those of a program: without a label of its own it has its name. The control group is that of its process now,
    /// if that is still there.
    pub(crate) fn of_process(pid: Option<u32>, identity: &ProgramIdentity) -> Self {
        let label = match identity.label.trim() {
            "" => identity.name.clone(),
            label => label.to_owned(),
        };
        let cgroup = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok());
        Self { label, cgroup: cgroup_in(&cgroup.unwrap_or_default()) }
    }
}

/// The path in the unified hierarchy, or in the first one that has a path.
fn cgroup_in(text: &str) -> String {
    let mut paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let first = paths.clone().find(|path| *path != "/").or(paths.next());
    let unified = text.lines().find_map(|line| line.strip_prefix("0::"));
    unified.filter(|path| *path != "/").or(first).unwrap_or_default().to_owned()
}

/// The folder of a component: ` -> ` of its label leads to another folder, as in trees of Genode.
///
/// No part of a label leads out of the tree.
#[must_use]
pub fn component_path(label: &str) -> String {
    let part = |part: &str| {
        let letter = |letter: char| if letter == '/' || letter.is_control() { '_' } else { letter };
        let plain: String = part.trim().chars().map(letter).collect();
        match plain.as_str() {
            "" | "." | ".." => "_".to_owned(),
            _ => plain,
        }
    };
    label.split(" -> ").map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_folders_that_stay_in_the_tree() {
        for (label, path) in [
            ("init -> runtime -> nic_router", "init/runtime/nic_router"),
            ("server", "server"),
            ("/usr/bin/x -> ..", "_usr_bin_x/_"),
            ("", "_"),
            (". -> a\u{1}b", "_/a_b"),
        ] {
            assert_eq!(component_path(label), path, "{label:?}");
        }
    }

    #[test]
    fn control_groups_are_those_of_the_unified_hierarchy() {
        assert_eq!(cgroup_in("0::/system.slice/nginx.service\n"), "/system.slice/nginx.service");
        assert_eq!(cgroup_in("12:cpu:/a\n1:name=systemd:/b\n0::/c\n"), "/c");
        assert_eq!(cgroup_in("12:cpu:/a\n0::/\n"), "/a");
        assert_eq!(cgroup_in("0::/\n"), "/");
        assert_eq!(cgroup_in(""), "");
    }

    #[test]
    fn all_conditions_have_to_be_met() {
        let program = ProgramCandidate {
            pid: Some(7),
            name: "ping",
            label: "init -> ping",
            user: 1000,
            cgroup: "/user.slice/a",
            ..ProgramCandidate::default()
        };
        let text = |text: &str| Some(text.to_owned());
        let any = SubjectRule::default;
        let takes = |rule: SubjectRule| rule.takes_program(&program);
        assert!(takes(any()) && takes(SubjectRule { thread: text("ep"), ..any() }));
        assert!(takes(SubjectRule { label: text("init -> ping"), users: vec![1, 1000], ..any() }));
        assert!(!takes(SubjectRule { label: text("init -> ping"), users: vec![1], ..any() }));
        assert!(!takes(SubjectRule { label: text("init"), ..any() }));
        assert!(takes(SubjectRule { label_prefix: text("init -> "), label_suffix: text("ping"), ..any() }));
        assert!(!takes(SubjectRule { label_prefix: text("init -> "), label_suffix: text("pong"), ..any() }));
        assert!(takes(SubjectRule { label_glob: text("*p?ng"), cgroups: vec!["/user.slice/*".into()], ..any() }));
        assert!(!takes(SubjectRule { cgroups: vec!["/system.slice/*".into()], ..any() }));
        assert!(takes(SubjectRule { processes: vec!["7".into()], ..any() }));
        assert!(!takes(SubjectRule { processes: vec!["pong".into()], ..any() }));
    }
}
