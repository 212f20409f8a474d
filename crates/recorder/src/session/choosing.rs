//! The events that a session wants: its selection, its filters, and the events that start and stop it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kymo_lane::WriterThread;
use kymo_schema::definition::{ContextClass, EventClass};

use crate::filters::{ClassFilter, ProgramConstants, RecordedEvent, RecorderFilter};
use crate::program::ProgramIdentity;
use crate::program::walk::{EventFate, EventVerdict};
use crate::rule::{RuleOptions, RuleTest};
use crate::select::{ProgramCandidate, RecordDecision, SelectionRule, SessionSelection};
use crate::session::remember::RecorderRules;
use crate::session::serve::ProgramId;
use crate::trace::{AskedEvent, Choose, ClassDecision};

/// Programs that the environment of a new trace names.
const BINARIES_MAX: usize = 32;

/// By program and class. It is asked at each event.
type ClassTable<T> = hashbrown::HashMap<(u64, usize), T>;

/// The selection, and the filters that it asks for.
#[derive(Debug, Default)]
pub(crate) struct Choosing {
    pub(crate) selection: SessionSelection,
    pub(crate) known: HashMap<u64, ProgramId>,
    /// By program and class.
    pub(crate) filters: ClassTable<AskedClass>,
    /// Events that triggers watch.
    pub(crate) watched: Vec<SelectionRule>,
    /// Rules that limit them.
    pub(crate) rules: Vec<RuleOptions>,
    /// Rules that were removed: programs may have asked them about events that are still to come.
    pub(crate) removed_rules: Vec<RuleOptions>,
    /// Rules that no event of a program has the fields or the name for, so far: they hide no events that begin.
    pub(crate) idle: BTreeSet<(u64, String)>,
    /// Those that the recorder asks.
    pub(crate) remembers: RecorderRules,
    pub(crate) filtered: u64,
    pub(crate) problems: Vec<String>,
    /// The run that is being filtered.
    pub(crate) run: RunFacts,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) contexts: u64,
    pub(crate) thread: WriterThread,
    /// The session's group in the program, as a bit; 0: none.
    pub(crate) groups: u8,
    /// Ticks in a second.
    pub(crate) frequency: u64,
    /// Changes of the program's groups that are the session's: those of firings that count.
    pub(crate) changes: Vec<u32>,
    /// Events of the program that have fired triggers which the recorder watches, by their ticks and threads.
    pub(crate) late: Vec<(u64, u32)>,
    /// Events of the run that have fired triggers: the changes that they made, and their ticks.
    pub(crate) fired: Vec<([u32; 2], u64)>,
    /// Classes of the program's own contexts.
    pub(crate) own: Vec<Option<Arc<ContextClass>>>,
}

/// A class whose events the recorder looks at one by one.
#[derive(Debug)]
pub(crate) struct AskedClass {
    /// `None`: they only begin something.
    filter: Option<RecorderFilter>,
    /// The program decides by rules, where it can.
    has_rules: bool,
}

impl RunFacts {
    fn nanos(&self, ticks: u64) -> u64 {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

impl Choosing {
    /// Whether an event of a program is recorded, before the rules are asked.
    pub(crate) fn chosen(&self, program: &ProgramCandidate<'_>, event: &str, level: u8) -> RecordDecision {
        match self.selection.chosen(program, event, level) {
            RecordDecision::No
                if self.rules.iter().any(|rule| rule.asks.shows(event)) && self.selection.takes_program(program) =>
            {
                RecordDecision::Yes
            }
            chosen => chosen,
        }
    }

    /// Whether events of this name are not recorded because they only begin something for a rule.
    pub(crate) fn hides(&self, program: u64, rule: &RuleOptions, event: &str) -> bool {
        rule.asks.hides(event) && !self.idle.contains(&(program, rule.name.clone()))
    }

    /// Whether the selection, filters and rules keep an event.
    fn fate(&mut self, event: &AskedEvent<'_>) -> EventFate {
        let AskedEvent { program, class, contexts, fields, ticks, verdict } = *event;
        let place = (program.key, std::ptr::from_ref(class) as usize);
        let Some(AskedClass { filter, has_rules }) = self.filters.get(&place) else { return EventFate::Drop };
        let RunFacts { contexts: mask, thread, groups, .. } = &self.run;
        let event = RecordedEvent { thread, contexts: *mask, carried: contexts, fields };
        if let Some(kept) = verdict.and_then(|verdict| verdict.kept_by_rules(*groups)) {
            self.remembers.judges(place, ticks);
            if *has_rules {
                let Some(since) = kept else { return EventFate::Drop };
                let since = Some(since).filter(|since| *since > 0);
                return self.remembers.reconsider(place, ticks, since, &event, |ticks| self.run.nanos(ticks));
            }
        }
        self.remembers.begin(place, ticks, &event);
        let Some(filter) = filter else { return EventFate::Drop };
        if !filter.keeps(&event) {
            self.filtered += 1;
            return EventFate::Drop;
        }
        if *has_rules {
            self.remembers.ask(place, ticks, &event, |ticks| self.run.nanos(ticks))
        } else {
            EventFate::Keep
        }
    }

    /// Filters and choices are to be made anew.
    pub(crate) fn choose_again(&mut self) {
        self.filters.clear();
        self.remembers.choose_again();
    }

    /// Executables of the known programs, for the environment of a trace.
    pub(crate) fn binaries(&self) -> Vec<(String, String)> {
        let all: BTreeSet<_> = self.known.values().map(|who| (&who.identity.path, &who.build_id)).collect();
        let entries = |(number, (path, build_id)): (usize, (&String, &String))| {
            let prefix = if number == 0 { "binary".to_owned() } else { format!("binary_{}", number + 1) };
            let build_id = (format!("{prefix}_build_id"), build_id.clone());
            [(format!("{prefix}_path"), path.clone()), build_id]
        };
        all.into_iter()
            .take(BINARIES_MAX)
            .enumerate()
            .flat_map(entries)
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }
}

impl Choose for Choosing {
    fn choose(&mut self, program: &ProgramIdentity, class: &EventClass) -> ClassDecision {
        let Some(who) = self.known.get(&program.key) else { return ClassDecision::Drop };
        let (candidate, name) = (who.candidate(), class.full_name());
        let is_watched = self.watched.iter().any(|rule| rule.takes(&candidate, &name, class.level));
        let all_rules = self.rules.iter().chain(&self.removed_rules);
        let mut its_rules = all_rules.filter(|rule| rule.takes_name(&name)).peekable();
        let has_rules = its_rules.peek().is_some();
        let is_timed = its_rules.any(|rule| matches!(rule.asks.test, RuleTest::Over { .. }));
        let asked = if is_timed { ClassDecision::AskSince } else { ClassDecision::Ask };
        let facts = ProgramConstants { pid: Some(program.pid), contexts: &self.run.own };
        // The class' address is its identity: the program's list holds it as long as the
        // program is known, and `parts` removes all that is known of it.
        let place = (program.key, std::ptr::from_ref(class) as usize);
        let begins = !self.rules.is_empty() && self.remembers.learn(place, class, facts, &self.rules);
        let is_asked = self.rules.iter().any(|rule| rule.takes_name(&name));
        let is_hidden = begins && !is_asked && self.rules.iter().any(|rule| self.hides(program.key, rule, &name));
        let chosen = self.chosen(&candidate, &name, class.level);
        let expressions = match if is_hidden { RecordDecision::No } else { chosen } {
            RecordDecision::When(expressions) => expressions,
            // What the program has not asked its rules about is kept.
            RecordDecision::Yes if has_rules || begins => Vec::new(),
            RecordDecision::Yes => return ClassDecision::Keep,
            // Without a filter none passes: those are recorded that have fired a trigger.
            RecordDecision::No if is_watched && !begins => return ClassDecision::Ask,
            RecordDecision::No if begins => {
                self.filters.insert(place, AskedClass { filter: None, has_rules });
                return ClassDecision::Ask;
            }
            RecordDecision::No => return ClassDecision::Drop,
        };
        let filter = match expressions.is_empty() {
            true => Ok(ClassFilter::always()),
            false => ClassFilter::of_texts(expressions.iter().map(String::as_str), class, facts),
        };
        match filter {
            Ok(filter) => {
                self.filters.insert(place, AskedClass { filter: Some(filter.asked(class, facts)), has_rules });
                asked
            }
            Err(refusal) => {
                self.problems.push(format!("{} is not recorded: {}", class.full_name(), refusal.0.trim_end()));
                ClassDecision::Drop
            }
        }
    }

    fn passes(&mut self, event: &AskedEvent<'_>) -> EventFate {
        // An event that starts or stops the session is one of its events, whatever it selects.
        if self.run.late.contains(&(event.ticks, self.run.thread.tid)) {
            return EventFate::Keep;
        }
        self.fate(event)
    }

    fn measures(&self) -> bool {
        let mut all = self.rules.iter().chain(&self.removed_rules);
        all.any(|rule| matches!(rule.asks.test, RuleTest::Over { .. }))
    }

    fn since(&self, verdict: &EventVerdict) -> Option<u64> {
        let ticks = verdict.kept_by_rules(self.run.groups).flatten().filter(|ticks| *ticks > 0);
        ticks.map(|ticks| self.run.nanos(ticks))
    }

    fn forces(&mut self, _: &ProgramIdentity, verdict: &EventVerdict, ticks: u64) -> bool {
        self.run.fired.push((verdict.changes, ticks));
        // A trigger of the program may have fired that the session has disarmed meanwhile.
        let [first, last] = verdict.changes;
        let is_its = |change: &u32| change.wrapping_sub(first) <= last.wrapping_sub(first);
        verdict.groups & self.run.groups != 0 && self.run.changes.iter().any(is_its)
    }
}
