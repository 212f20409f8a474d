//! The recorder's replies to requests.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use kymo_schema::definition::EventClass;

use crate::daemon::{Daemon, rules, started};
use crate::filters::{self, ProgramConstants};
use crate::program::{DrainTiming, Process};
use crate::protocol::{
    CLASSES_BYTES_MAX, ClassStatus, ClassesStatus, Keep, Matched, ProgramStatus, RecorderReply, RecorderRequest,
    SessionOptions, SessionStatus, Status, TriggerTurn,
};
use crate::rule::{RuleOptions, RuleStatus, RuleTest};
use crate::select::{SelectionRule, SelectionStep, SessionSelection};
use crate::session::matches::{near_names, possible};
use crate::session::serve::ProgramId;
use crate::session::{CONTENTS_MAX, RecordingSession};
use crate::trigger::{TRIGGERS_MAX, TriggerEffect, TriggerOptions};

/// Sessions that may run at the same time.
const SESSIONS_MAX: usize = 64;

impl Daemon {
    /// Acts on a request; `Err`: why not, in sentences.
    pub(crate) fn reply(&mut self, who: u64, question: RecorderRequest) -> Result<RecorderReply, String> {
        match question {
            RecorderRequest::Hello { .. } => Err("it was said which version is spoken".to_owned()),
            RecorderRequest::Start { options } => {
                let output = options.output.clone();
                self.start(who, *options).map(|(session, notes)| RecorderReply::Started { session, output, notes })
            }
            RecorderRequest::Take { session, step } => self.take(session.as_deref(), *step),
            RecorderRequest::Edit { edits } => Ok(self.edit(who, edits)),
            RecorderRequest::Trigger { session, trigger } => self.trigger(session.as_deref(), *trigger),
            RecorderRequest::Rule { session, change } => self.rule(session.as_deref(), change),
            RecorderRequest::Turn { session, turn } => self.turn(session.as_deref(), &turn),
            RecorderRequest::Snapshot { session, output } => self.snapshot(session.as_deref(), output),
            RecorderRequest::Stop { session, all } => self.stop(session.as_deref(), all),
            RecorderRequest::Progress { session } => self.progress(&session),
            RecorderRequest::Own { session } => self.own(who, &session),
            RecorderRequest::Recover { output } => self.recover(&output),
            RecorderRequest::Status => Ok(RecorderReply::Status(Box::new(self.status()))),
            RecorderRequest::Sessions => Ok(RecorderReply::Sessions { sessions: self.short_statuses() }),
            RecorderRequest::Maps => Ok(RecorderReply::Sessions { sessions: self.statuses_with_maps() }),
            RecorderRequest::Classes { session } => self.classes_of(&session),
            RecorderRequest::Control(request) => self.control(&request),
        }
    }

    /// Begins a session: its name, and notes for people.
    pub(super) fn start(&mut self, who: u64, mut options: SessionOptions) -> Result<(String, Vec<String>), String> {
        if self.sessions.len() >= SESSIONS_MAX {
            return Err(format!("there are {SESSIONS_MAX} sessions already"));
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if options.name.is_empty() || options.name.len() > 64 || !options.name.bytes().all(is_plain) {
            return Err("a session's name has 1 to 64 letters, digits, `-`, `_` and `.`".to_owned());
        }
        if options.takes_any_name {
            options.name = self.free_name(&options.name);
        } else if self.sessions.iter().any(|session| session.name == options.name) {
            return Err(format!("there is a session `{}` already: `kymo stop {0}` ends it", options.name));
        }
        self.check_options(&options)?;
        let owner = (!options.is_detached).then_some(who);
        let (output, is_tree) = (options.output.clone(), options.components.is_some());
        if options.components.as_deref().is_some_and(|name| !name.bytes().all(is_plain) || name.starts_with('.')) {
            return Err("a trace in a tree has a name of letters, digits, `-`, `_` and `.`".to_owned());
        }
        // Its first files may not be there yet.
        let is_in = |session: &&RecordingSession| {
            let theirs = &session.options.output;
            // In a tree, each session has traces of its own name, in folders that are not there yet.
            let is_shared_tree = is_tree && session.options.components.is_some();
            (output.starts_with(theirs) || theirs.starts_with(&output)) && !is_shared_tree
        };
        if let Some(session) = self.sessions.iter().find(is_in) {
            let (there, name) = (session.options.output.display(), &session.name);
            return Err(format!(
                "{}: session `{name}` writes to {there}, and a trace has a folder of its own",
                output.display()
            ));
        }
        // Others have folders that may have been there before.
        let is_new = options.keep == Keep::Oldest && !is_tree;
        let session = RecordingSession::begin(options, owner, &mut self.clocks);
        let mut session = session.map_err(|error| not_begun(&output, &error))?;
        session.writing = self.writing.clone();
        if let Err(why) = session.begin_kernel(&mut self.clocks) {
            if is_new {
                crate::kernel::discard(&output);
            }
            return Err(why);
        }
        let name = session.name.clone();
        session.keep(&self.folder);
        started::mark(&self.folder, &session);
        self.sessions.push(session);
        self.has_changed = true;
        // Programs that already run are switched on before the client gets the reply.
        self.find();
        self.count_rules(false);
        let session = self.sessions.iter().find(|session| session.name == name && session.has_programs());
        let notes = session.map_or_else(Vec::new, |session| {
            let rules = session.rules.statuses();
            let told = |rule: &RuleStatus| {
                let name = rule.options.name.clone();
                rule.problems.iter().map(move |why| format!("rule `{name}`: {why}")).collect::<Vec<_>>()
            };
            session.triggers.warnings().into_iter().chain(rules.iter().flat_map(told)).collect()
        });
        Ok((name, notes))
    }

    /// Why a session cannot have this selection, and these triggers and rules.
    fn check_options(&mut self, options: &SessionOptions) -> Result<(), String> {
        for step in options.selection.steps() {
            self.check(&step.rule, None)?;
        }
        if options.triggers.len() > TRIGGERS_MAX {
            return Err(format!("a session has at most {TRIGGERS_MAX} triggers"));
        }
        let of_triggers: Vec<RuleOptions> = options.triggers.iter().filter_map(TriggerOptions::as_rule).collect();
        let all_rules = || options.rules.iter().chain(&of_triggers);
        if options.triggers.iter().any(|trigger| trigger.rule.filter.is_some()) || all_rules().next().is_some() {
            self.find();
        }
        for (at, trigger) in options.triggers.iter().enumerate() {
            self.check_trigger(trigger, options)?;
            self.check_expression(&trigger.rule, &options.selection)
                .map_err(|why| format!("trigger `{}`: {why}", trigger.name))?;
            if options.triggers[..at].iter().any(|known| known.name == trigger.name) {
                return Err(format!("there are two triggers `{}`", trigger.name));
            }
        }
        let of_kernel = options.kernel.as_ref().map_or(&[][..], |kernel| &kernel.rules);
        rules::check(&options.rules, of_kernel)?;
        rules::check_objects(options)?;
        all_rules().try_for_each(|rule| self.check_keys(rule, &options.selection))?;
        Ok(())
    }

    fn free_name(&self, name: &str) -> String {
        let is_free = |name: &String| self.sessions.iter().all(|session| session.name != *name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        std::iter::once(name.to_owned()).chain(numbered).find(is_free).expect("numbers do not end")
    }

    /// The session of that name; `None`: the only one.
    pub(super) fn named(&self, name: Option<&str>) -> Result<usize, String> {
        let names = || self.sessions.iter().map(|session| session.name.as_str());
        match name {
            Some(name) => names().position(|known| known == name).ok_or_else(|| {
                let near = kymo_filter::nearest(name, names());
                let help = near.first().map_or(String::new(), |near| format!("; there is `{near}`"));
                format!("there is no session `{name}`{help}")
            }),
            None => match self.sessions.len() {
                0 => Err(crate::client::ClientProblem::Nobody.to_string()),
                1 => Ok(0),
                _ => Err(format!(
                    "there are several sessions, and one has to be named: {}",
                    names().collect::<Vec<_>>().join(", ")
                )),
            },
        }
    }

    /// All known event classes, each with its program.
    pub(super) fn classes(&self) -> Vec<(&ProgramId, &EventClass)> {
        let served = self.served.iter().flat_map(|served| served.events().map(|(_, class)| (&served.who, &**class)));
        let seen = self.seen.iter().flat_map(|seen| seen.events.iter().map(|class| (&seen.who, &**class)));
        served.chain(seen).collect()
    }

    /// The event classes that a rule of a session could match, if the session exists.
    fn classes_within(
        &self,
        rule: &SelectionRule,
        session: Option<&RecordingSession>,
    ) -> Vec<(&ProgramId, &EventClass)> {
        let mut classes = self.classes();
        classes.retain(|(who, _)| is_within(rule, session, who));
        classes
    }

    /// Notes about the filter of a rule, for the events that it matches; `Err`: why the filter is
    /// refused.
    fn check(&self, rule: &SelectionRule, session: Option<&RecordingSession>) -> Result<Vec<String>, String> {
        let Some(filter) = &rule.filter else { return Ok(Vec::new()) };
        let classes = self.classes_within(rule, session);
        let matching = classes
            .iter()
            .filter(|(who, class)| rule.takes(&who.candidate(), &class.full_name(), class.level))
            .map(|(_, class)| *class)
            .collect::<Vec<_>>();
        filters::check(filter, &matching).map_err(|refusal| refusal.0)
    }

    /// Notes about the expression of a trigger of a session that has this selection; `Err`: why it is refused.
    fn check_expression(&self, rule: &SelectionRule, selection: &SessionSelection) -> Result<Vec<String>, String> {
        let Some(text) = &rule.filter else { return Ok(Vec::new()) };
        let served = self.served.iter().flat_map(|served| {
            let events = served.events().map(|(_, class)| &**class);
            events.map(|class| (&served.who, class, &served.program.known().contexts))
        });
        let seen = self.seen.iter().flat_map(|seen| {
            let events = seen.events.iter().map(|class| &**class);
            events.map(|class| (&seen.who, class, &seen.contexts))
        });
        let matching: Vec<_> = served
            .chain(seen)
            .filter(|(who, class, _)| {
                let candidate = who.candidate();
                selection.takes_program(&candidate) && rule.takes(&candidate, &class.full_name(), class.level)
            })
            .collect();
        let classes: Vec<&EventClass> = matching.iter().map(|(_, class, _)| *class).collect();
        let notes = filters::check(text, &classes).map_err(|refusal| refusal.0)?;
        // Another event that matches a pattern with `*` may have the name.
        if rule.events.iter().any(|pattern| pattern.contains(['*', '?'])) {
            return Ok(notes);
        }
        let misfits = matching.iter().map(|(who, class, contexts)| {
            let facts = ProgramConstants { pid: Some(who.identity.pid), contexts };
            possible(text, class, facts).err().filter(|misfit| misfit.is_wrong)
        });
        match misfits.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().next()) {
            Some(misfit) => Err(misfit.why),
            None => Ok(notes),
        }
    }

    pub(super) fn take(&mut self, session: Option<&str>, step: SelectionStep) -> Result<RecorderReply, String> {
        let at = self.named(session)?;
        self.find();
        let known = &self.sessions[at];
        let notes = self.check(&step.rule, Some(known))?;
        let matched = Matched { session: known.name.clone(), notes, ..self.matched(&step.rule, known) };
        let mut selection = self.sessions[at].selection().clone();
        selection.take(step);
        // Events recorded until now follow the old selection.
        self.drain(DrainTiming::Now);
        self.select_at(at, selection);
        self.find();
        Ok(RecorderReply::Taken { matched })
    }

    /// Replaces the whole selection of a session; programs are switched later.
    pub(super) fn select(&mut self, session: &str, selection: SessionSelection) -> Result<(), String> {
        let at = self.named(Some(session))?;
        for step in selection.steps() {
            self.check(&step.rule, Some(&self.sessions[at]))?;
        }
        self.select_at(at, selection);
        Ok(())
    }

    fn select_at(&mut self, at: usize, selection: SessionSelection) {
        self.sessions[at].select(selection);
        self.sessions[at].keep(&self.folder);
        self.has_changed = true;
    }

    fn check_trigger(&self, trigger: &TriggerOptions, session: &SessionOptions) -> Result<(), String> {
        if let Some(fault) = trigger.fault() {
            return Err(fault.to_owned());
        }
        if let Some(gate) = &trigger.gate {
            let rules: Vec<&RuleOptions> = session.kernel.iter().flat_map(|kernel| &kernel.rules).collect();
            match rules.iter().find(|rule| rule.name == *gate) {
                Some(rule) if matches!(rule.asks.test, RuleTest::OfKernel { .. }) => {}
                Some(_) => {
                    return Err(format!("rule `{gate}` has a limit, and only rules without one are opened and closed"));
                }
                None => {
                    return Err(format!(
                        "no rule `{gate}` about the kernel: `--kernel-only '{gate}: EVENTS closed when EXPR'`"
                    ));
                }
            }
        }
        if trigger.effect == TriggerEffect::Snapshot && session.keep == Keep::Oldest {
            return Err(
                "a trigger takes snapshots of sessions with `--mode overwrite`: all others write everything".to_owned()
            );
        }
        Ok(())
    }

    pub(super) fn trigger(&mut self, session: Option<&str>, trigger: TriggerOptions) -> Result<RecorderReply, String> {
        let at = self.named(session)?;
        self.find();
        self.check_trigger(&trigger, &self.sessions[at].options)?;
        let triggers = self.sessions[at].triggers.all();
        let is_known = triggers.iter().any(|known| known.options.name == trigger.name);
        if triggers.len() >= TRIGGERS_MAX && !is_known {
            return Err(format!("session `{}` has {TRIGGERS_MAX} triggers already", self.sessions[at].name));
        }
        let known = &self.sessions[at];
        let notes = self.check_expression(&trigger.rule, known.selection())?;
        trigger.as_rule().iter().try_for_each(|rule| self.check_keys(rule, known.selection()))?;
        let mut matched = Matched { session: known.name.clone(), notes, ..self.matched(&trigger.rule, known) };
        // Events recorded until now follow the old triggers.
        self.drain(DrainTiming::Now);
        let now = self.clocks.now();
        let was_on = self.sessions[at].triggers.is_on_for_all(now);
        self.sessions[at].trigger(|triggers| triggers.set(trigger, now));
        if was_on && !self.sessions[at].triggers.is_on_for_all(now) {
            let waits =
                "the session has stopped recording: it waits for this trigger; `kymo trigger --start` starts it now";
            matched.notes.insert(0, waits.to_owned());
        }
        self.triggered(at, matched, false)
    }

    pub(super) fn turn(&mut self, session: Option<&str>, turn: &TriggerTurn) -> Result<RecorderReply, String> {
        let at = self.named(session)?;
        self.drain(DrainTiming::Now);
        let (now, name) = (self.clocks.now(), self.sessions[at].name.clone());
        // Its programs have a group for it already, and begin with the same events.
        let is_quick =
            self.sessions[at].triggers.is_limited() && matches!(turn, TriggerTurn::Start | TriggerTurn::Stop);
        let mut is_there = true;
        self.sessions[at].trigger(|triggers| match turn {
            TriggerTurn::Arm(of) => is_there = triggers.arm(of.as_deref(), true, now) > 0,
            TriggerTurn::Disarm(of) => is_there = triggers.arm(of.as_deref(), false, now) > 0,
            TriggerTurn::Remove(of) => is_there = triggers.remove(of, now),
            TriggerTurn::Start => triggers.turn(true, now),
            TriggerTurn::Stop => triggers.turn(false, now),
        });
        if !is_there {
            let names = self.sessions[at].triggers.all().iter().map(|trigger| trigger.options.name.as_str());
            let names: Vec<&str> = names.collect();
            let its = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            return Err(match turn {
                TriggerTurn::Arm(Some(of)) | TriggerTurn::Disarm(Some(of)) | TriggerTurn::Remove(of) => {
                    format!("session `{name}` has no trigger `{of}`: {its}")
                }
                _ => format!("session `{name}` has no triggers"),
            });
        }
        self.triggered(at, Matched { session: name, ..Matched::default() }, is_quick)
    }

    fn triggered(&mut self, at: usize, matched: Matched, is_quick: bool) -> Result<RecorderReply, String> {
        self.sessions[at].keep(&self.folder);
        if !is_quick {
            self.has_changed = true;
            self.find();
        }
        self.act(&[]);
        let status = Box::new(self.session_statuses().swap_remove(at));
        Ok(RecorderReply::Triggered { matched, status })
    }

    pub(super) fn matched(&self, rule: &SelectionRule, session: &RecordingSession) -> Matched {
        let classes = self.classes_within(rule, Some(session));
        let its =
            |(who, class): &&(&ProgramId, &EventClass)| rule.takes(&who.candidate(), &class.full_name(), class.level);
        let matched: Vec<_> = classes.iter().filter(its).map(|(who, _)| who.identity.process()).collect();
        let (events, programs) = (matched.len() as u64, BTreeSet::from_iter(matched));
        let all = self.served.iter().map(|served| &served.who).chain(self.seen.iter().map(|seen| &seen.who));
        let all = all.filter(|who| is_within(rule, Some(session), who));
        let all_programs: BTreeSet<_> = all.map(|who| who.identity.process()).collect();
        let names: Vec<String> = classes.iter().map(|(_, class)| class.full_name()).collect();
        let nothing = |pattern: &&String| {
            let alone = SelectionRule { events: vec![(*pattern).clone()], ..SelectionRule::default() };
            !names.iter().any(|name| alone.takes_name(name))
        };
        let near = |pattern: &String| near_names(pattern, names.iter().map(String::as_str));
        let wanted = rule.events.iter().filter(|pattern| !pattern.starts_with('!'));
        Matched {
            events,
            programs: programs.len() as u64,
            all_programs: all_programs.len() as u64,
            unmatched: wanted.filter(nothing).map(|pattern| (pattern.clone(), near(pattern))).collect(),
            ..Matched::default()
        }
    }

    fn stop(&mut self, session: Option<&str>, all: bool) -> Result<RecorderReply, String> {
        let names: Vec<String> = if all {
            self.sessions.iter().map(|session| session.name.clone()).collect()
        } else if let Some(ended) = session.and_then(|name| self.ended.iter().rfind(|summary| summary.session == name))
            && self.sessions.iter().all(|session| session.name != ended.session)
        {
            return Ok(RecorderReply::Stopped { summaries: vec![ended.clone()] });
        } else {
            vec![self.sessions[self.named(session)?].name.clone()]
        };
        let summaries = names.iter().filter_map(|name| self.end(name)).collect();
        Ok(RecorderReply::Stopped { summaries })
    }

    fn own(&mut self, who: u64, name: &str) -> Result<RecorderReply, String> {
        let at = self.named(Some(name))?;
        self.sessions[at].claim(who);
        self.progress(name)
    }

    fn progress(&self, name: &str) -> Result<RecorderReply, String> {
        let running = self.sessions.iter().find(|session| session.name == name).map(RecordingSession::summary);
        let ended = || self.ended.iter().rfind(|summary| summary.session == name).cloned();
        let summary = running.or_else(ended).ok_or_else(|| format!("there is no session `{name}`"))?;
        Ok(RecorderReply::Progress { summary })
    }

    /// Status of sessions.
    pub(super) fn session_statuses(&self) -> Vec<SessionStatus> {
        let status = |session: &RecordingSession| {
            let mut status = session.status();
            let its = || self.served.iter().filter(|served| session.takes_program(&served.who));
            for rule in &mut status.summary.rules {
                its().for_each(|served| served.add_rule(rule, &session.rules));
                rule.sort_kinds();
            }
            for trigger in &mut status.triggers {
                its().for_each(|served| served.add_trigger(&session.name, trigger, &session.triggers));
            }
            status
        };
        self.sessions.iter().map(status).collect()
    }

    /// Those of sessions with users' objects, with what the maps of these have now: of programs that are gone, and of those that run.
    fn statuses_with_maps(&mut self) -> Vec<SessionStatus> {
        self.find();
        let all = self.short_statuses();
        let told = self.sessions.iter().zip(all).filter(|(session, _)| !session.objects.is_empty());
        let with_maps = |(session, mut status): (&RecordingSession, SessionStatus)| {
            let summary = session.summary();
            (status.summary.objects, status.summary.object_files) = (summary.objects, session.options.objects.clone());
            let mut left = session.told_left;
            for served in &self.served {
                status.summary.objects.extend(served.object_contents(session, &mut left));
            }
            let more = status.summary.objects.len().saturating_sub(CONTENTS_MAX);
            status.summary.objects.truncate(CONTENTS_MAX);
            status.summary.more_objects = summary.more_objects + more as u64;
            status
        };
        told.map(with_maps).collect()
    }

    /// The same without the parts that may be long.
    fn short_statuses(&self) -> Vec<SessionStatus> {
        let mut all = self.session_statuses();
        all.iter_mut().for_each(|status| status.options.selection = SessionSelection::default());
        all
    }

    /// Events that a session could record, from known definitions only: clients may ask this all
    /// the time, and it wakes no program.
    fn classes_of(&self, name: &str) -> Result<RecorderReply, String> {
        let session = &self.sessions[self.named(Some(name))?];
        let mut classes = BTreeMap::<String, (ClassStatus, BTreeSet<Process>)>::new();
        let its = self.served.iter().filter(|served| !served.is_dead && session.takes_program(&served.who));
        for served in its {
            for (id, class) in served.events() {
                let name = class.full_name();
                let (status, programs) = classes.entry(name).or_default();
                served.add_class(id, class, session, status, programs.is_empty());
                programs.insert(served.who.identity.process());
            }
        }
        let all = classes.into_iter().map(|(name, (status, programs))| ClassStatus {
            name,
            programs: programs.len() as u64,
            ..status
        });
        Ok(RecorderReply::Classes(bounded(all.collect())))
    }

    fn status(&mut self) -> Status {
        self.find();
        self.count_rules(false);
        let served = self.served.iter().map(|served| (&served.who, served.status(&self.sessions)));
        let seen = self.seen.iter().map(|seen| (&seen.who, seen.status.clone()));
        Status {
            pid: std::process::id(),
            kymo: env!("CARGO_PKG_VERSION").to_owned(),
            folder: self.folder.clone(),
            sessions: self.session_statuses(),
            programs: by_process(served.chain(seen)),
            unreachable: self.unreachable(),
        }
    }
}

/// Whether a rule may match a program: a rule of a session with other rules too may be limited to
/// the programs that those match.
fn is_within(rule: &SelectionRule, session: Option<&RecordingSession>, who: &ProgramId) -> bool {
    !rule.is_within || session.is_some_and(|session| session.takes_program(who))
}

/// The first classes, up to the size that one reply may have.
fn bounded(mut classes: Vec<ClassStatus>) -> ClassesStatus {
    let sums = classes.iter().scan(0, |sum, class| {
        *sum += class.bytes();
        Some(*sum)
    });
    let told = sums.take_while(|sum| *sum <= CLASSES_BYTES_MAX).count();
    let more = (classes.len() - told) as u64;
    classes.truncate(told);
    ClassesStatus { classes, more }
}

/// Why a folder cannot hold a trace.
pub(super) fn not_begun(output: &Path, error: &io::Error) -> String {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let help = match error.kind() {
        PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull => {
            "\nhelp: `--output` names a folder elsewhere"
        }
        _ => "",
    };
    format!("{}: {error}{help}", output.display())
}

/// One status for each process, in the order in which they were found.
fn by_process<'w>(all: impl Iterator<Item = (&'w ProgramId, ProgramStatus)>) -> Vec<ProgramStatus> {
    let (mut programs, mut places) = (Vec::<ProgramStatus>::new(), BTreeMap::new());
    for (who, status) in all {
        let place = *places.entry(who.identity.process()).or_insert(programs.len());
        match programs.get_mut(place) {
            Some(known) => known.add(status),
            None => programs.push(status),
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program may have thousands of events, and a filter any length, so the reply is bounded.
    #[test]
    fn classes_are_told_up_to_a_size() {
        let class = |number: usize, bytes| ClassStatus {
            name: format!("net:{number:04}"),
            filters: vec!["x".repeat(bytes)],
            ..ClassStatus::default()
        };
        let all: Vec<ClassStatus> = (0..10).map(|number| class(number, 1000)).collect();
        assert_eq!(bounded(all.clone()), ClassesStatus { classes: all, more: 0 });
        let ClassesStatus { classes, more } = bounded((0..5000).map(|number| class(number, 1000)).collect());
        assert_eq!((classes.len(), more), (CLASSES_BYTES_MAX / 1008, 5000 - CLASSES_BYTES_MAX as u64 / 1008));
        assert_eq!(bounded(vec![class(0, 2 * CLASSES_BYTES_MAX)]), ClassesStatus { classes: Vec::new(), more: 1 });
    }
}
