//! Selection of the events and programs that a session wants: a sequence of steps, of which the
//! last matching one decides.
//!
//! ```text
//! enable net:*                    net:sent yes      net:lost yes                disk:read no
//! enable disk:* if bytes > 4096   net:sent yes      net:lost yes                disk:read when bytes > 4096
//! filter net:lost by port == 80   net:sent yes      net:lost when port == 80    disk:read when bytes > 4096
//! disable net:sent                net:sent no       ...
//! ```
//!
//! If an event was enabled with several filters, at least one of them has to be true.

mod subject;

use kymo_schema::glob::matches;
use serde::{Deserialize, Serialize};

pub use self::subject::{ProgramSurroundings, SubjectRule, component_path};

/// Steps that a session remembers.
const STEPS_MAX: usize = 1000;

/// Kind of change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Records events; with a filter, those for which it is true.
    Enable,
    /// Stops recording events.
    Disable,
    /// Limits recorded events to those that the filter accepts; without a filter, records all of
    /// them.
    Filter,
}

/// Matches events of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectionRule {
    /// Patterns of `provider:name`: an event has to match at least one, and none of those after
    /// `!`; without any, all events match.
    pub events: Vec<String>,
    /// Only events that are at least as important: 0 is the most important level.
    pub level: Option<u8>,
    /// Patterns of names of programs, or their PIDs; without any, all programs.
    pub processes: Vec<String>,
    /// Only programs that this session's command started, known by this tag.
    pub tag: Option<String>,
    /// A filter expression.
    pub filter: Option<String>,
    /// Only programs that other rules want events of: this rule brings none, whatever else it says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_within: bool,
    /// Only these programs and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<SubjectRule>,
    /// None of these programs and threads: other rules are about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<SubjectRule>,
}

/// One change of a selection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectionStep {
    /// The kind of change.
    pub act: StepKind,
    /// The events that it is about.
    pub rule: SelectionRule,
}

/// Facts about a program that decide whether it is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramCandidate<'a> {
    /// Its PID in the recorder's namespace, if it is visible there.
    pub pid: Option<u32>,
    /// Its PID in its own namespace.
    pub own_pid: u32,
    /// Its name.
    pub name: &'a str,
    /// The path of its executable.
    pub path: &'a str,
    /// The tag in the name of its memory.
    pub tag: Option<&'a str>,
    /// Its label.
    pub label: &'a str,
    /// Its effective user.
    pub user: u32,
    /// The path of its control group; empty: unknown.
    pub cgroup: &'a str,
}

impl ProgramCandidate<'_> {
    /// Whether this is its PID, or a pattern of its name or its file.
    fn is_named(&self, wanted: &str) -> bool {
        match wanted.parse::<u32>() {
            Ok(number) => self.pid.unwrap_or(self.own_pid) == number,
            Err(_) => {
                let file = self.path.rsplit('/').next().unwrap_or_default();
                [self.name, file, self.path].iter().any(|name| !name.is_empty() && matches(wanted, name))
            }
        }
    }
}

/// Whether an event is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RecordDecision {
    /// Never.
    #[default]
    No,
    /// Always.
    Yes,
    /// If one of these expressions is true.
    When(Vec<String>),
}

/// The selection of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSelection {
    steps: Vec<SelectionStep>,
}

impl SelectionRule {
    fn takes_event(&self, event: &str, level: u8) -> bool {
        let (not, wanted): (Vec<&String>, Vec<&String>) =
            self.events.iter().partition(|pattern| pattern.starts_with('!'));
        let is_wanted = wanted.is_empty() || wanted.iter().any(|pattern| matches(pattern, event));
        is_wanted
            && !not.iter().any(|pattern| matches(&pattern[1..], event))
            && self.level.is_none_or(|limit| level <= limit)
    }

    /// Whether it matches events of this name, at any level.
    #[must_use]
    pub fn takes_name(&self, event: &str) -> bool {
        Self { level: None, ..self.clone() }.takes_event(event, 0)
    }

    /// Whether it can match events of a program.
    #[must_use]
    pub fn takes_program(&self, program: &ProgramCandidate<'_>) -> bool {
        let has_tag = self.tag.as_deref().is_none_or(|tag| program.tag == Some(tag));
        let is_others = |other: &SubjectRule| other.thread.is_none() && other.takes_program(program);
        has_tag
            && (self.processes.is_empty() || self.processes.iter().any(|wanted| program.is_named(wanted)))
            && self.subject.as_ref().is_none_or(|subject| subject.takes_program(program))
            && !self.unless.iter().any(is_others)
    }

    /// Its filter for the events of a program: it has the conditions on threads. `None`: all events.
    fn filter_of(&self, program: &ProgramCandidate<'_>) -> Option<String> {
        let thread = self.subject.as_ref().and_then(SubjectRule::thread_filter);
        let others = self.unless.iter().filter(|other| other.takes_program(program));
        let others = others.filter_map(SubjectRule::thread_filter).map(|filter| format!("!({filter})"));
        let threads: Vec<String> = thread.into_iter().chain(others).collect();
        match (&self.filter, threads.is_empty()) {
            (filter, true) => filter.clone(),
            (None, false) => Some(threads.join(" && ")),
            (Some(filter), false) => Some(format!("({filter}) && {}", threads.join(" && "))),
        }
    }

    /// Texts of all filters that it may have.
    pub(crate) fn filter_texts(&self) -> impl Iterator<Item = String> {
        let threads = self.subject.iter().chain(&self.unless).filter_map(SubjectRule::thread_filter);
        self.filter.clone().into_iter().chain(threads)
    }

    /// Whether it matches an event of a program.
    #[must_use]
    pub fn takes(&self, program: &ProgramCandidate<'_>, event: &str, level: u8) -> bool {
        self.takes_event(event, level) && self.takes_program(program)
    }

    /// Whether it is about the same events of the same programs.
    fn is_about_same(&self, other: &Self) -> bool {
        let of = |rule: &Self| Self { filter: None, ..rule.clone() };
        of(self) == of(other)
    }
}

impl SelectionStep {
    /// Whether a later step about the same events leaves no effect of this one. A step that brings
    /// programs always keeps an effect.
    fn is_overridden(&self, by: &Self) -> bool {
        let is_last_word = by.act != StepKind::Enable || by.rule.filter.is_none();
        self.rule.is_within
            && is_last_word
            && self.rule.is_about_same(&by.rule)
            && (by.act != StepKind::Filter || self.act == StepKind::Filter)
    }
}

impl SessionSelection {
    /// Takes a step. It replaces steps that are equal, and those that it leaves no effect of.
    pub fn take(&mut self, step: SelectionStep) {
        self.steps.retain(|known| *known != step && !known.is_overridden(&step));
        self.steps.push(step);
        let too_many = self.steps.len().saturating_sub(STEPS_MAX);
        self.steps.drain(..too_many);
    }

    /// All steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[SelectionStep] {
        &self.steps
    }

    /// Whether it may want events of a program.
    #[must_use]
    pub fn takes_program(&self, program: &ProgramCandidate<'_>) -> bool {
        let brings = |step: &SelectionStep| {
            step.act == StepKind::Enable && !step.rule.is_within && step.rule.takes_program(program)
        };
        self.steps.iter().any(brings)
    }

    /// Whether an event of a program is recorded.
    #[must_use]
    pub fn chosen(&self, program: &ProgramCandidate<'_>, event: &str, level: u8) -> RecordDecision {
        if !self.takes_program(program) {
            return RecordDecision::No;
        }
        let steps = self.steps.iter().filter(|step| step.rule.takes(program, event, level));
        steps.fold(RecordDecision::No, |chosen, step| match (&step.act, step.rule.filter_of(program), chosen) {
            (StepKind::Enable, None, _) => RecordDecision::Yes,
            (StepKind::Enable, Some(_), RecordDecision::Yes) => RecordDecision::Yes,
            (StepKind::Enable, Some(filter), RecordDecision::When(mut filters)) => {
                if !filters.contains(&filter) {
                    filters.push(filter);
                }
                RecordDecision::When(filters)
            }
            (StepKind::Enable, Some(filter), RecordDecision::No) => RecordDecision::When(vec![filter]),
            (StepKind::Disable, ..) | (StepKind::Filter, _, RecordDecision::No) => RecordDecision::No,
            (StepKind::Filter, None, _) => RecordDecision::Yes,
            (StepKind::Filter, Some(filter), _) => RecordDecision::When(vec![filter]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(act: StepKind, events: &str, filter: Option<&str>) -> SelectionStep {
        let events = events.split_whitespace().map(str::to_owned).collect();
        SelectionStep {
            act,
            rule: SelectionRule { events, filter: filter.map(str::to_owned), ..SelectionRule::default() },
        }
    }

    #[test]
    fn the_last_step_has_its_say() {
        let program = ProgramCandidate::default();
        let mut selection = SessionSelection::default();
        let chosen = |selection: &SessionSelection, event| selection.chosen(&program, event, 14);
        assert_eq!(chosen(&selection, "net:sent"), RecordDecision::No);
        selection.take(step(StepKind::Enable, "net:*", Some("port == 1")));
        selection.take(step(StepKind::Enable, "*:s* !net:send*", Some("port == 2")));
        assert_eq!(chosen(&selection, "net:sent"), RecordDecision::When(vec!["port == 1".into(), "port == 2".into()]));
        assert_eq!(chosen(&selection, "net:sending"), RecordDecision::When(vec!["port == 1".into()]));
        selection.take(step(StepKind::Filter, "net:sending disk:*", Some("port == 3")));
        assert_eq!(chosen(&selection, "net:sending"), RecordDecision::When(vec!["port == 3".into()]));
        assert_eq!(chosen(&selection, "disk:read"), RecordDecision::No);
        selection.take(step(StepKind::Filter, "", None));
        assert_eq!(chosen(&selection, "net:sending"), RecordDecision::Yes);
        selection.take(step(StepKind::Disable, "*:sending", None));
        assert_eq!(chosen(&selection, "net:sending"), RecordDecision::No);
        assert_eq!(chosen(&selection, "net:sent"), RecordDecision::Yes);
    }

    #[test]
    fn steps_that_are_repeated_take_no_room() {
        let mut selection = SessionSelection::default();
        for _ in 0..2 * STEPS_MAX {
            selection.take(step(StepKind::Enable, "a:*", None));
            selection.take(step(StepKind::Disable, "a:*", None));
        }
        assert_eq!(selection.steps().len(), 2);
    }

    /// A rule without programs matches those that other rules bring, and does not fill the memory
    /// of steps.
    #[test]
    fn a_step_within_brings_no_programs() {
        let ours = ProgramCandidate { name: "server", ..ProgramCandidate::default() };
        let other = ProgramCandidate { name: "other", ..ProgramCandidate::default() };
        let mut selection = SessionSelection::default();
        let mut first = step(StepKind::Enable, "net:*", None);
        first.rule.processes = vec!["server".into()];
        selection.take(first);
        let within = |act, events: &str, filter: Option<&str>| {
            let SelectionStep { act, rule } = step(act, events, filter);
            SelectionStep { act, rule: SelectionRule { is_within: true, ..rule } }
        };
        selection.take(within(StepKind::Enable, "disk:read", None));
        assert_eq!(selection.chosen(&ours, "disk:read", 6), RecordDecision::Yes);
        assert_eq!(selection.chosen(&other, "disk:read", 6), RecordDecision::No);
        assert!(selection.takes_program(&ours) && !selection.takes_program(&other));
        for number in 0..2 * STEPS_MAX {
            let filter = format!("port == {number}");
            selection.take(within(StepKind::Filter, "net:sent", Some(&filter)));
            selection.take(within(StepKind::Disable, "disk:read", None));
            selection.take(within(StepKind::Enable, "disk:read", None));
        }
        assert_eq!(selection.steps().len(), 3);
        assert_eq!(selection.chosen(&ours, "net:sent", 6), RecordDecision::When(vec!["port == 1999".into()]));
        assert_eq!(selection.chosen(&ours, "disk:read", 6), RecordDecision::Yes);
        // If an event was enabled with several filters, at least one has to be true.
        selection.take(within(StepKind::Disable, "disk:read", None));
        selection.take(within(StepKind::Enable, "disk:read", Some("bytes > 1")));
        selection.take(within(StepKind::Enable, "disk:read", Some("bytes < 1")));
        assert_eq!(
            selection.chosen(&ours, "disk:read", 6),
            RecordDecision::When(vec!["bytes > 1".into(), "bytes < 1".into()])
        );
        selection.take(within(StepKind::Filter, "disk:read", None));
        assert_eq!(selection.chosen(&ours, "disk:read", 6), RecordDecision::Yes);
    }

    #[test]
    fn programs_are_chosen_by_name_number_and_who_started_them() {
        let program = ProgramCandidate {
            pid: Some(12),
            own_pid: 3,
            name: "server",
            path: "/usr/bin/server-2",
            tag: Some("demo"),
            ..ProgramCandidate::default()
        };
        let takes = |processes: &[&str], tag: Option<&str>| {
            let processes = processes.iter().map(|process| (*process).to_owned()).collect();
            SelectionRule { processes, tag: tag.map(str::to_owned), ..SelectionRule::default() }.takes_program(&program)
        };
        assert!(takes(&[], None) && takes(&["12"], None) && takes(&["other", "ser*"], Some("demo")));
        assert!(takes(&["server-2"], None) && takes(&["/usr/bin/*"], None));
        assert!(!takes(&["3"], None) && !takes(&["serve"], None) && !takes(&[], Some("other")));
    }

    /// Events of a program go to one rule, by program and by thread.
    #[test]
    fn rules_leave_out_programs_and_threads_of_others() {
        let subject = |label: &str, thread: Option<&str>| SubjectRule {
            label_prefix: Some(label.to_owned()),
            thread: thread.map(str::to_owned),
            ..SubjectRule::default()
        };
        let chosen = |label: &str, filter: Option<&str>| {
            let rule = SelectionRule {
                filter: filter.map(str::to_owned),
                subject: Some(subject("init", None)),
                unless: vec![subject("init -> ping", Some("ep")), subject("init -> pong", None)],
                ..SelectionRule::default()
            };
            let mut selection = SessionSelection::default();
            selection.take(SelectionStep { act: StepKind::Enable, rule });
            selection.chosen(&ProgramCandidate { label, ..ProgramCandidate::default() }, "a:b", 6)
        };
        let when = |text: &str| RecordDecision::When(vec![text.to_owned()]);
        assert_eq!(chosen("other", None), RecordDecision::No);
        assert_eq!(chosen("init -> timer", None), RecordDecision::Yes);
        assert_eq!(chosen("init -> timer", Some("a > 1")), when("a > 1"));
        assert_eq!(chosen("init -> pong", None), RecordDecision::No);
        assert_eq!(chosen("init -> ping", None), when("!($ctx.procname == \"ep\")"));
        let both = "(a > 1 || b) && !($ctx.procname == \"ep\")";
        assert_eq!(chosen("init -> ping", Some("a > 1 || b")), when(both));
    }

    #[test]
    fn levels_are_limits() {
        let rule = SelectionRule { level: Some(6), ..SelectionRule::default() };
        assert!(
            rule.takes(&ProgramCandidate::default(), "a:b", 6) && !rule.takes(&ProgramCandidate::default(), "a:b", 7)
        );
    }
}
