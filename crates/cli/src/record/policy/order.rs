//! Which of several policies is about a thread: the most specific one.
//!
//! Conditions count in this order, as far as Genode has them as Genode does: a PID, the whole label, how
//! long a prefix of it is, how long a suffix, a pattern of it, the name of the program, its control
//! group, its user, and the name of the thread. The first policy of the file wins if two are equal.
//! Unlike Genode's, the thread's name is part of the match: two policies may share a component.

use kymo_recorder::select::SubjectRule;

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

/// The subjects that win over this one, which is at that place, where both are about a thread.
pub(super) fn before<'s>(all: &[&'s SubjectRule], subject: &SubjectRule, at: usize) -> Vec<&'s SubjectRule> {
    let own = rank(subject);
    let wins = |(place, other): &(usize, &&SubjectRule)| {
        let rank = rank(other);
        rank > own || (rank == own && *place < at)
    };
    all.iter().enumerate().filter(wins).map(|(_, other)| *other).collect()
}
