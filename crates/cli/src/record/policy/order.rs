//! Which of several policies is about a thread: the most specific one.
//!
//! Conditions count in this order, as far as Genode has them as Genode does: a PID, the whole label, how
//! long a prefix of it is, how long a suffix, a pattern of it, the name of the program, its control
//! group, its user, and the name of the thread. The first policy of the file wins if two are equal.
//! Unlike Genode's, the thread's name is part of the match: two policies may share a component.

use kymo_recorder::select::SubjectRule;

use super::file::Policy;

/// Characters of a pattern that stand for themselves, and one more if it has no others.
fn exactness(pattern: &str) -> usize {
    let plain = pattern.chars().filter(|letter| !matches!(letter, '*' | '?')).count();
    2 * plain + usize::from(plain == pattern.chars().count()) + 1
}

/// The exactness of the least exact one of several patterns.
fn least(patterns: &[String]) -> usize {
    patterns.iter().map(|pattern| exactness(pattern)).min().unwrap_or(0)
}

fn rank(subject: &SubjectRule) -> [usize; 9] {
    let is_pid = |process: &String| process.parse::<u32>().is_ok();
    let has_pid = !subject.processes.is_empty() && subject.processes.iter().all(is_pid);
    let length = |text: &Option<String>| text.as_ref().map_or(0, |text| text.chars().count() + 1);
    [
        usize::from(has_pid),
        usize::from(subject.label.is_some()),
        length(&subject.label_prefix),
        length(&subject.label_suffix),
        subject.label_glob.as_deref().map_or(0, exactness),
        least(&subject.processes),
        least(&subject.cgroups),
        usize::from(!subject.users.is_empty()),
        subject.thread.as_deref().map_or(0, exactness),
    ]
}

/// The policies that win over this one where both are about a thread.
pub(super) fn before<'p>(all: &'p [Policy], policy: &Policy) -> Vec<&'p Policy> {
    let own = rank(&policy.subject);
    let at = all.iter().position(|known| known.name == policy.name).unwrap_or(all.len());
    let wins = |(place, other): &(usize, &Policy)| {
        let rank = rank(&other.subject);
        rank > own || (rank == own && *place < at)
    };
    all.iter().enumerate().filter(wins).map(|(_, other)| other).collect()
}

#[cfg(test)]
mod tests {
    use kymo_recorder::select::{ProgramCandidate, RecordDecision};

    use super::super::file::PolicyFile;
    use super::super::read;

    /// Policies, and whose events each thread's are.
    const POLICIES: &str = r#"
        [[policy]]
        name = "rest"

        [[policy]]
        name = "init"
        label_prefix = "init -> "

        [[policy]]
        name = "runtime"
        label_prefix = "init -> runtime -> "

        [[policy]]
        name = "routers"
        label_prefix = "init -> "
        label_suffix = "router"

        [[policy]]
        name = "ping"
        label = "init -> ping"

        [[policy]]
        name = "ping-ep"
        label = "init -> ping"
        thread = "ep"

        [[policy]]
        name = "ping-ep-too"
        label = "init -> ping"
        thread = "ep"

        [[policy]]
        name = "eps"
        thread = "ep*"

        [[policy]]
        name = "server"
        process = "server"

        [[policy]]
        name = "servers"
        process = "s*"

        [[policy]]
        name = "number"
        process = "77"

        [[policy]]
        name = "quiet"
        label_glob = "*secret*"
        record = false
    "#;

    /// The policies that record a thread.
    fn winners(file: &PolicyFile, label: &str, name: &str, pid: u32, thread: &str) -> Vec<String> {
        let program = ProgramCandidate { pid: Some(pid), own_pid: pid, name, label, ..ProgramCandidate::default() };
        let is_true = |filter: &str| {
            // Conditions on threads, as they are made: `NAME == "PATTERN"` and `!(...)`, with `&&`.
            filter.split(" && ").all(|part| {
                let wanted = part.split('"').nth(1).expect("each compares with a text");
                kymo_schema::glob::matches(wanted, thread) != part.starts_with('!')
            })
        };
        let takes = |policy: &&super::Policy| match file.selection(policy).chosen(&program, "a:b", 6) {
            RecordDecision::No => false,
            RecordDecision::Yes => true,
            RecordDecision::When(filters) => filters.iter().any(|filter| is_true(filter)),
        };
        file.recorded().filter(takes).map(|policy| policy.name.clone()).collect()
    }

    #[test]
    fn the_most_specific_policy_wins() {
        let file = read::policies(POLICIES).expect("they are right");
        for (label, name, pid, thread, winner) in [
            ("other", "other", 1, "main", "rest"),
            ("other", "other", 1, "ep", "eps"),
            ("init -> timer", "timer", 1, "main", "init"),
            ("init -> timer", "timer", 1, "ep", "init"),
            ("init -> runtime -> fs", "fs", 1, "main", "runtime"),
            ("init -> runtime -> nic_router", "nic_router", 1, "ep", "runtime"),
            ("init -> nic_router", "nic_router", 1, "ep", "routers"),
            ("init -> ping", "ping", 1, "main", "ping"),
            ("init -> ping", "ping", 1, "ep", "ping-ep"),
            ("init -> ping -> ep", "ping", 1, "ep", "init"),
            ("server", "server", 1, "ep", "server"),
            ("sshd", "sshd", 1, "ep", "servers"),
            ("init -> ping", "ping", 77, "ep", "number"),
            ("a secret of all", "server", 1, "ep", ""),
        ] {
            let winners = winners(&file, label, name, pid, thread);
            assert_eq!(winners.join(" "), winner, "{label}, {name}, {thread}");
        }
    }
}
