//! Drives analyses: which events they get, in which parts of the trace, on which threads.
//!
//! ```text
//! prepare   mappings, needs, selection ──> bindings, filters, lanes
//! read      parts ──next──> any thread: cursors, projectors, analysis ──state──> desk: merged from left to right
//! finish    state ──> Answer
//! ```
//!
//! Parts rely on the times of packets; where those turn out to be wrong, everything is read again
//! as one part. An unreadable place is a hole of its lane: it is read again then too, as holes are
//! known before reading.

mod lanes;
mod part;
mod parts;
mod periods;
mod prepare;
mod shares;
mod states;
mod stream_names;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use kymo_analysis::mapping::{MappingErrors, NamePattern, RoleMapping};
use kymo_analysis::setup::span_ns;
use kymo_analysis::{
    AnalysisKind, Answer, AnyAnalysis, AnyState, EventRole, FieldSlot, LaneFacts, Question, Room, Setup, SpoolError,
    Wishes, in_series,
};

use crate::answers::analysis_options::AnalysisOptions;
use crate::answers::roles::{Mappings, RolesFailure};
use crate::cache::spool::FileSpool;
use crate::open::Session;
use crate::open::progress::{Cancelled, Progress};
use crate::open::report::Report;
use crate::open::thinned::ThinnedEvents;

pub use self::shares::{ShareFailure, Shares};
pub use self::states::OwnStates;

pub(crate) use self::part::{PartReader, ReadFault};
pub(crate) use self::prepare::Prepared;
use self::prepare::StackFunctions;

/// The result of an analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysed {
    /// The answer.
    pub answer: Answer,
    /// The differences between the result and the whole truth.
    pub report: Report,
}

/// Why an analysis has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnalyseFailure {
    /// A file of mappings cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A mapping is wrong.
    #[error("{}", errors.render(&path.display().to_string()).trim_end())]
    Mapping {
        /// The file.
        path: std::path::PathBuf,
        /// The errors in it.
        errors: MappingErrors,
    },
    /// No event has the role that the analysis needs.
    #[error("no event of these traces has the role `{}`: {}; `kymo roles` shows the roles of events{left_out}", role.name(), role.facts().meaning)]
    NoRole {
        /// The missing role.
        role: EventRole,
        /// The rules that have left such events out, as further parts of the sentence.
        left_out: String,
    },
    /// The analysis is about each change of threads, and the selection leaves some out.
    #[error(
        "this analysis needs all events of the role `thread_switch`, and the selection leaves some of `{class}` out; \
         choose CPUs, threads or a time instead"
    )]
    NotAllSwitches {
        /// Their event record class.
        class: String,
    },
    /// The question names events or fields that these traces do not have.
    #[error("{0}")]
    NoName(String),
    /// Rows did not fit into memory, and could not be put aside.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// There are too many periods, or none.
    #[error("{0}")]
    Periods(String),
    /// The result cannot be written to its file.
    #[error("the states of CPUs and threads cannot be encoded: {0}")]
    Written(Arc<dyn std::error::Error + Send + Sync>),
    /// The request was canceled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The trace does not reach there.
    #[error("the trace is from {begin_ns} to {end_ns} ns")]
    Outside {
        /// When it begins, in nanoseconds.
        begin_ns: i64,
        /// When it ends.
        end_ns: i64,
    },
}

/// The results of reading.
struct ReadResults {
    analysis: Box<dyn AnyAnalysis>,
    state: AnyState,
    report: Report,
    /// From when to when lanes are.
    span_ns: Option<(i64, i64)>,
    /// Why functions in call stacks are shown as numbers, once the answer is made.
    stacks: Option<StackFunctions>,
}

impl Session {
    /// Answers a question about the traces.
    ///
    /// # Errors
    ///
    /// There are no events that it could be about, a mapping is wrong, or it was canceled.
    pub fn ask(
        &self,
        kind: &AnalysisKind,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        let asked = match kind {
            AnalysisKind::Periods(question) => self.ask_periods(question, options, progress),
            kind => self.analyse(&kind.question(&options.wishes), options, progress),
        };
        progress.whole(asked)?
    }

    /// Runs an analysis.
    ///
    /// # Errors
    ///
    /// There are no events that it could be about, or a mapping is wrong.
    pub(crate) fn analyse(
        &self,
        question: &Question<'_>,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        let room = room();
        let has_length = options.wishes.period_ns.is_some() && !question.has_periods;
        if options.periods.is_some() || has_length {
            return self.analyse_periods(question, options, &room, progress);
        }
        let ReadResults { analysis, state, mut report, stacks, .. } = self.find(question, options, &room, progress)?;
        let answer = in_series(analysis.finish(&state)?, &options.wishes);
        report.assumptions.extend(stacks.into_iter().flat_map(|functions| functions.stacks.take_problems()));
        Ok(Analysed { answer, report })
    }

    /// The analysis' state in the end; of all that it should know, unless it was canceled.
    fn find(
        &self,
        question: &Question<'_>,
        options: &AnalysisOptions,
        room: &Room,
        progress: &Progress,
    ) -> Result<ReadResults, AnalyseFailure> {
        let mut prepared = self.prepare(question, options)?;
        prepared.read_stacks(self, progress);
        let (mut reads, mut can_cut) = (0, true);
        loop {
            let analysis = (question.make)(&prepared.setup(&options.wishes, room));
            let read = parts::read(self, &prepared, &*analysis, &mut can_cut, progress);
            progress.whole(())?;
            reads += 1;
            // The second time, unreadable places are known; unless these change while they are
            // read.
            if !read.add_holes(&mut prepared.lanes) || reads == READS_MAX {
                let report = read.report(self, &prepared);
                let span_ns = span_ns(&prepared.lanes);
                return Ok(ReadResults {
                    analysis,
                    state: read.state,
                    report,
                    span_ns,
                    stacks: prepared.stacks.into_inner(),
                });
            }
        }
    }

    /// The known facts before reading.
    pub(crate) fn prepare(
        &self,
        question: &Question<'_>,
        options: &AnalysisOptions,
    ) -> Result<Prepared, AnalyseFailure> {
        let mappings = self.mappings_for(question, options)?;
        let mut prepared = Prepared::new(self, question, &mappings, options);
        prepared.thinned = self.thinned_of(question, options, &mappings, &prepared);
        match question.essential.first() {
            // A class without a data stream has its roles, too: of such traces, the answer is that nothing was found.
            Some(&role)
                if !question.essential.iter().any(|&role| prepared.has(role))
                    && !self.declares(question.essential, &mappings) =>
            {
                let unmatched = question.mapping.as_ref().map(|own| self.unmatched_names(own)).unwrap_or_default();
                let left_out: String = prepared.thinned.iter().map(|rule| format!("; {}", rule.sentence())).collect();
                Err(match unmatched.into_iter().next() {
                    Some(sentence) => AnalyseFailure::NoName(sentence + &left_out),
                    None => AnalyseFailure::NoRole { role, left_out },
                })
            }
            _ => {
                let unread = prepared.unread_switch.as_ref();
                if let Some(class) = unread.filter(|_| question.needs_all_switches()) {
                    return Err(AnalyseFailure::NotAllSwitches { class: class.clone() });
                }
                match self.absent_field(question, &prepared) {
                    Some(message) => Err(AnalyseFailure::NoName(message)),
                    None => Ok(prepared),
                }
            }
        }
    }

    /// Rules that have kept only some of the events that a question is about, be these in the traces or not.
    fn thinned_of(
        &self,
        question: &Question<'_>,
        options: &AnalysisOptions,
        mappings: &[RoleMapping],
        prepared: &Prepared,
    ) -> Vec<ThinnedEvents> {
        let is_needed = |role: EventRole| question.needs.roles.iter().any(|(needed, _)| *needed == role);
        let sections =
            || mappings.iter().flat_map(|mapping| &mapping.sections).filter(|section| is_needed(section.role));
        let is_about = |rule: &&ThinnedEvents| match question.needs.is_all() {
            true => options.selection.events.is_empty() || rule.is_about_some(&options.selection.events),
            false => {
                // Sections about any name tell nothing before there is an event.
                let patterns = sections().flat_map(|section| &section.events);
                let mut patterns = patterns.filter(|pattern| !pattern.text().starts_with(['*', '?']));
                prepared.bindings.classes.iter().any(|class| rule.is_about(&class.name))
                    || patterns.any(|pattern| rule.may_be_about(pattern.text()))
            }
        };
        self.thinned().iter().filter(is_about).cloned().collect()
    }

    /// Events that an own mapping names, and these traces do not have, in sentences without full stops.
    fn unmatched_names(&self, own: &RoleMapping) -> Vec<String> {
        let names = self.class_names();
        let patterns = own.sections.iter().flat_map(|section| &section.events);
        let is_unmatched = |pattern: &&NamePattern| !names.iter().any(|name| pattern.captures(name).is_some());
        let sentence = |pattern: &NamePattern| {
            let near = self.class_names_like(pattern.text()).into_iter().next();
            let near = near.map_or_else(String::new, |name| format!("; there is `{name}`"));
            format!("no event record class is called `{}`{near}", pattern.text())
        };
        let mut sentences: Vec<String> = patterns.filter(is_unmatched).map(sentence).collect();
        sentences.dedup();
        sentences
    }

    /// Events that a question names beside others, and these traces do not have, in sentences without full stops. Where
    /// no event is left that begins anything, the question has no answer, and [`AnalyseFailure::NoName`] says why.
    #[must_use]
    pub fn unmatched_events(&self, kind: &AnalysisKind) -> Vec<String> {
        let wishes = Wishes::default();
        let question = kind.question(&wishes);
        let Some(own) = &question.mapping else { return Vec::new() };
        let names = self.class_names();
        let is_essential = |role: EventRole| question.essential.is_empty() || question.essential.contains(&role);
        let mut essential = own.sections.iter().filter(|section| is_essential(section.role));
        match essential.any(|section| names.iter().any(|name| section.captures(name).is_some())) {
            true => self.unmatched_names(own),
            false => Vec::new(),
        }
    }

    /// A field that a question about own events names, and none of these events has.
    fn absent_field(&self, question: &Question<'_>, prepared: &Prepared) -> Option<String> {
        question.mapping.as_ref()?;
        let classes = &prepared.bindings.classes;
        let is_absent = |place: usize| classes.iter().all(|class| class.extra[place] == FieldSlot::Absent);
        let path = (0..question.needs.extra.len())
            .find(|place| is_absent(*place))
            .map(|place| &question.needs.extra[place])?;
        let names: HashSet<&str> = classes.iter().map(|class| &*class.name).collect();
        let near = self.fields_like(path, &|name| names.contains(name)).into_iter().next();
        let near = near.map_or_else(String::new, |name| format!("; there is `{name}`"));
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_unstable();
        let events = match &*names {
            [one] => format!("event `{one}`"),
            [one, other] => format!("event `{one}` or `{other}`"),
            _ => "event of the pairs".to_owned(),
        };
        Some(format!("no {events} has a field `{path}`{near}"))
    }

    /// The mappings that count, the most important first.
    fn mappings_for(&self, question: &Question<'_>, options: &AnalysisOptions) -> Result<Mappings, AnalyseFailure> {
        let is_of_pairs = |(role, _): &(EventRole, _)| matches!(role, EventRole::Begin | EventRole::End);
        let needs_pairs = question.mapping.is_none() && question.needs.roles.iter().any(is_of_pairs);
        let own = options.roles.as_deref();
        let mut mappings = match question.is_of_programs {
            true => self.mappings_of_programs(own)?,
            false => self.mappings(own, needs_pairs)?,
        };
        if let Some(own) = &question.mapping {
            let is_own = |role: EventRole| own.sections.iter().any(|section| section.role == role);
            let mappings = mappings.to_mut();
            mappings.iter_mut().for_each(|mapping| mapping.sections.retain(|section| !is_own(section.role)));
            mappings.insert(0, own.clone());
        }
        Ok(mappings)
    }
}

impl From<RolesFailure> for AnalyseFailure {
    fn from(failure: RolesFailure) -> Self {
        match failure {
            RolesFailure::File { path, error } => Self::File { path, error },
            RolesFailure::Mapping { path, errors } => Self::Mapping { path, errors },
        }
    }
}

/// The memory of a table of a part of the trace. A thread has a few of them at a time.
const TABLE_BYTES: usize = 8 << 20;

/// Where tables may put rows aside.
fn room() -> Room {
    Room { spool: Arc::new(FileSpool::default()), budget_bytes: TABLE_BYTES }
}

/// How often a trace is read that cannot be read as it stands.
const READS_MAX: usize = 3;

impl Prepared {
    /// The input of an analysis.
    fn setup<'a>(&'a self, wishes: &'a Wishes, room: &'a Room) -> Setup<'a> {
        let stacks = self.stacks.get().map(|stacks| &stacks.resolver);
        let (classes, traces) = (&self.bindings.classes, &self.traces);
        Setup { classes, lanes: &self.lanes, wishes, room: Some(room), traces, stacks }
    }

    fn has(&self, role: EventRole) -> bool {
        self.bindings.classes.iter().any(|class| class.roles.iter().any(|bound| bound.role == role))
    }
}

/// Lanes in the order in which ties in time are resolved: by CPU, those of no CPU last.
fn rank(lane: &LaneFacts) -> (u32, u16, usize) {
    (lane.cpu.unwrap_or(u32::MAX), lane.host, lane.streams.first().copied().unwrap_or(usize::MAX))
}
