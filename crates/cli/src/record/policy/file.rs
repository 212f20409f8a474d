//! Policies: the programs and threads that are recorded, their events, and the means.

use std::path::{Path, PathBuf};

use kymo_recorder::packets::{self, PacketOptions};
use kymo_recorder::program::namespaces::NamespaceKinds;
use kymo_recorder::protocol::{Keep, SessionOptions, TraceDialect};
use kymo_recorder::rule::RuleOptions;
use kymo_recorder::select::{SelectionRule, SelectionStep, SessionSelection, StepKind, SubjectRule};
use kymo_recorder::trigger::TriggerOptions;

use super::order;

/// Bytes of a policy's name.
pub(super) const NAME_BYTES_MAX: usize = 40;
/// Policies of a file: each is a session of the recorder.
pub(super) const POLICIES_MAX: usize = 32;

/// A file of policies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PolicyFile {
    /// It records now.
    pub(super) is_enabled: bool,
    /// The folder for dated folders.
    pub(super) output: Option<PathBuf>,
    /// In the order of the file. If it has packets, the last one is about these.
    pub(super) policies: Vec<Policy>,
    /// Packets of network interfaces, which this process records.
    pub(super) packets: Option<PacketOptions>,
    /// Words without a meaning here, for people.
    pub(super) notes: Vec<String>,
}

/// A policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Policy {
    /// No other one has its name.
    pub(super) name: String,
    /// Its number in the file.
    pub(super) place: usize,
    pub(super) subject: SubjectRule,
    /// `false`: its programs and threads are not recorded.
    pub(super) is_recorded: bool,
    pub(super) events: Vec<String>,
    pub(super) level: Option<u8>,
    pub(super) filter: Option<String>,
    pub(super) triggers: Vec<TriggerOptions>,
    pub(super) rules: Vec<RuleOptions>,
    pub(super) how: PolicyMeans,
}

/// How a policy records. Changes need a new session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PolicyMeans {
    pub(super) keep: Keep,
    pub(super) pool_bytes: Option<u64>,
    pub(super) lane_bytes: Option<u64>,
    /// Period of snapshots of a flight recorder.
    pub(super) period_ms: Option<u64>,
    pub(super) format: PolicyFormat,
    pub(super) writers: PolicyWriters,
    pub(super) contexts: (u64, NamespaceKinds, Vec<String>),
}

impl Default for PolicyMeans {
    fn default() -> Self {
        Self {
            keep: Keep::Oldest,
            pool_bytes: None,
            lane_bytes: None,
            period_ms: None,
            format: PolicyFormat::Trace(TraceDialect::Tsdl),
            writers: PolicyWriters { ctf: true, pcapng: false },
            contexts: (kymo_recorder::contexts::CPU, NamespaceKinds::default(), Vec::new()),
        }
    }
}

/// The kinds of files that a policy writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PolicyWriters {
    /// Traces.
    pub(super) ctf: bool,
    /// Captures of the packets among the events.
    pub(super) pcapng: bool,
}

/// The form of the files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PolicyFormat {
    /// Traces of the recorder.
    Trace(TraceDialect),
    /// Marks, under the names and in the packets of Genode's recorder.
    Genode,
}

/// Something that is wrong with a file of policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PolicyProblem {
    /// Both from 1.
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) text: String,
}

impl PolicyProblem {
    /// At this byte of a text.
    pub(super) fn at(text: &str, byte: usize, what: String) -> Self {
        let before = &text[..text.floor_char_boundary(byte)];
        let line_begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (line, column) = (before.matches('\n').count() + 1, before[line_begin..].chars().count() + 1);
        Self { line, column, text: what }
    }
}

/// All problems of a file, for people.
pub(super) fn told(path: &Path, problems: &[PolicyProblem]) -> String {
    let line = |problem: &PolicyProblem| {
        format!("{}:{}:{}: {}", path.display(), problem.line, problem.column, problem.text.trim_end())
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl PolicyFile {
    /// The events of a policy's session: those of its programs and threads, without those of more specific policies.
    pub(super) fn selection(&self, policy: &Policy) -> SessionSelection {
        let subjects: Vec<&SubjectRule> = self.policies.iter().map(|policy| &policy.subject).collect();
        let others = order::before(&subjects, &policy.subject, policy.place);
        let rule = SelectionRule {
            events: policy.events.clone(),
            level: policy.level,
            filter: policy.filter.clone(),
            processes: policy.subject.processes.clone(),
            subject: Some(policy.subject.clone()),
            unless: others.into_iter().cloned().collect(),
            ..SelectionRule::default()
        };
        let mut selection = SessionSelection::default();
        if policy.how.writers.pcapng {
            let events = packets::EVENTS.map(str::to_owned).to_vec();
            let rule = SelectionRule { events, level: None, ..rule.clone() };
            selection.take(SelectionStep { act: StepKind::Enable, rule });
        }
        if policy.how.writers.ctf {
            selection.take(SelectionStep { act: StepKind::Enable, rule });
        }
        selection
    }

    /// A policy's triggers, at events of its threads.
    pub(super) fn triggers(&self, policy: &Policy) -> Vec<TriggerOptions> {
        let thread = policy.subject.thread_filter();
        let its = |trigger: &TriggerOptions| {
            let mut trigger = trigger.clone();
            trigger.rule.filter = match (trigger.rule.filter, &thread) {
                (Some(filter), Some(thread)) => Some(format!("({filter}) && {thread}")),
                (filter, thread) => filter.or_else(|| thread.clone()),
            };
            trigger
        };
        policy.triggers.iter().map(its).collect()
    }

    /// The policies that record, as each has a session. One that writes events and captures is two, so that each
    /// packet is in one of them.
    pub(super) fn recorded(&self) -> impl Iterator<Item = Policy> {
        self.policies.iter().filter(|policy| policy.is_recorded).flat_map(Policy::parts)
    }

    /// The session of a policy in a dated folder.
    pub(super) fn options(&self, policy: &Policy, folder: &Path, name: String) -> SessionOptions {
        let how = &policy.how;
        let (contexts, namespaces, own_contexts) = how.contexts.clone();
        SessionOptions {
            name,
            takes_any_name: true,
            output: policy.output(folder),
            components: Some(policy.name.clone()),
            dialect: match how.format {
                PolicyFormat::Trace(dialect) => dialect,
                PolicyFormat::Genode => TraceDialect::Tsdl,
            },
            keep: how.keep,
            lane_bytes: how.lane_bytes,
            pool_bytes: how.pool_bytes,
            contexts,
            namespaces,
            own_contexts,
            selection: self.selection(policy),
            triggers: self.triggers(policy),
            rules: policy.rules.clone(),
            drains: how.keep == Keep::Newest,
            flush_ms: how.period_ms,
            ..SessionOptions::default()
        }
    }
}

impl PolicyMeans {
    /// Other files are made of the traces, which do not stay.
    pub(super) fn is_converted(&self) -> bool {
        self.format == PolicyFormat::Genode || !self.writers.ctf
    }
}

impl Policy {
    fn parts(&self) -> Vec<Self> {
        if self.how.is_converted() || !self.how.writers.pcapng {
            return vec![self.clone()];
        }
        let (mut events, mut captures) = (self.clone(), self.clone());
        events.how.writers.pcapng = false;
        if events.events.is_empty() {
            events.events.push("*".to_owned());
        }
        events.events.extend(packets::EVENTS.map(|event| format!("!{event}")));
        captures.name = self.captures_name();
        captures.how.writers.ctf = false;
        (captures.triggers, captures.rules) = (Vec::new(), Vec::new());
        vec![events, captures]
    }

    /// The name of its part that has packets alone.
    pub(super) fn captures_name(&self) -> String {
        format!("{}-packets", self.name)
    }
    /// The tree that its session writes to, in a dated folder. Readers of that skip names that begin with a dot.
    pub(super) fn output(&self, folder: &Path) -> PathBuf {
        if self.how.is_converted() { folder.join(format!(".{}", self.name)) } else { folder.to_owned() }
    }
}

/// A name of a session made of any text.
pub(super) fn plain_name(text: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' };
    let name: String = text.replace(" -> ", ".").chars().map(letter).take(NAME_BYTES_MAX).collect();
    name.trim_start_matches('.').to_owned()
}
