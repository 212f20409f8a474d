//! Rules of a session, and the events that programs have kept and let go for it.
//!
//! ```text
//! program   counts since it began ──> the session's share: those since it has the rule ──> summary, and events of the trace
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kymo_lane::{KeyHash, RuleCounts};
use serde::{Deserialize, Serialize};

use crate::clock::uptime_ns;
use crate::kernel_pairs::is_of_kernel;
use crate::program::ProgramFacts;
use crate::protocol::Keep;
use crate::rule::{RecorderCounts, RuleKind, RuleOptions, RuleStatus, RuleTotals, ToldRuleWords};
use crate::session::{RecordingSession, WatchedClocks};

/// Least time between two counts of a rule in a trace.
const TOLD_NS: i64 = 1_000_000_000;
/// Removed rules whose counts a session keeps for its summary.
const REMOVED_MAX: usize = 32;
/// Reasons that are told.
const WHYS_MAX: usize = 10;

/// Rules of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionRules {
    all: Vec<RuleOptions>,
    /// Those that triggers ask.
    of_triggers: Vec<RuleOptions>,
    /// By program and rule.
    pub(crate) places: HashMap<u64, BTreeMap<String, ProgramRule>>,
    /// Counts of programs that are gone, and how many these are, by rule.
    gone: BTreeMap<String, (RuleTotals, u64)>,
    /// Programs that cannot ask a rule, and why, by rule.
    without: BTreeMap<String, (BTreeSet<u64>, BTreeSet<String>)>,
    /// Events that a rule cannot be about, and why, by rule.
    misfits: BTreeMap<String, BTreeSet<String>>,
    /// Whether the patterns of a rule, and those of its begins, have matched an event, and names like theirs.
    matches: BTreeMap<String, [RuleMatch; 2]>,
    /// Running limits and kinds of programs that are gone, by rule.
    kinds: BTreeMap<String, (Option<u64>, Vec<RuleKind>)>,
    /// Rules that were removed, or replaced, with their counts.
    removed: Vec<RuleStatus>,
    /// The places of these, by program and name, until no program asks them any more.
    #[serde(skip)]
    retired: Vec<(u64, String, ProgramRule)>,
    /// Rules that the recorder has to forget, too.
    #[serde(skip)]
    outdated: Vec<String>,
}

/// Matches of patterns with the events of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuleMatch {
    is_matched: bool,
    /// One that they match, but the session does not select.
    unselected: Option<String>,
    /// Names like them.
    near: BTreeSet<String>,
}

/// A rule in a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProgramRule {
    /// Its number there; `None`: the program cannot ask it.
    pub(crate) number: Option<u8>,
    /// Keys of different epochs are different.
    pub(crate) epoch: u32,
    /// Counts of the number before, and the last that are known.
    before: RuleTotals,
    now: RuleTotals,
    by_recorder: RecorderCounts,
    /// Counts that the trace has, and since when.
    told: RuleTotals,
    told_ns: i64,
    /// When they were read last.
    #[serde(skip)]
    read_ns: i64,
}

/// Hashes of a kind, as a text and as a number if it is one.
pub(crate) fn kind_hashes(kind: &str) -> impl Iterator<Item = u64> + use<> {
    let text = KeyHash::new(0).text(kind.as_bytes()).word();
    let number = kind
        .parse::<i128>()
        .ok()
        .and_then(|number| u64::try_from(number).ok().or_else(|| i64::try_from(number).ok().map(i64::cast_unsigned)));
    std::iter::once(text).chain(number.map(|number| KeyHash::new(0).number(number).word()))
}

impl RuleMatch {
    /// Of events of a program, each with its name and whether the session selects it.
    pub(crate) fn of<'n>(
        pattern: &str,
        takes: impl Fn(&str) -> bool,
        names: impl Iterator<Item = (&'n str, bool)> + Clone,
    ) -> Self {
        let mut its = names.clone().filter(|(name, _)| takes(name));
        let near = kymo_filter::nearest(pattern, names.map(|(name, _)| name));
        Self {
            is_matched: its.clone().any(|(_, is_selected)| is_selected),
            unselected: its.next().map(|(name, _)| name.to_owned()),
            near: near.into_iter().collect(),
        }
    }
}

impl ProgramRule {
    /// A rule gets a number in a program that has counted so much under it before.
    pub(crate) fn numbered(self, number: u8, before: RuleCounts) -> Self {
        let (before, epoch) = (before.into(), (uptime_ns() / 1000) as u32);
        Self { number: Some(number), epoch, before, now: before, ..self }
    }

    /// What the program has counted until now is not of the session.
    pub(crate) fn counts_from(&mut self, before: RuleCounts) {
        self.before = before.into();
        self.now = self.before;
    }

    /// The session's share of the counts.
    pub(crate) fn counts(&self) -> RuleTotals {
        self.now.since(self.before).since(self.by_recorder.undone).plus(self.by_recorder.asked)
    }

    /// The share, if the trace does not have it yet and it is time; it has, after this.
    pub(crate) fn untold(&mut self, is_last: bool) -> Option<RuleTotals> {
        let (counts, now) = (self.counts(), uptime_ns());
        let is_due = is_last || now.saturating_sub(self.told_ns) >= TOLD_NS;
        // Events that begin are not recorded from the first one on, although nothing was counted.
        if counts == self.told && self.told_ns != 0 || !is_due {
            return None;
        }
        (self.told, self.told_ns) = (counts, now);
        Some(counts)
    }
}

impl SessionRules {
    pub(crate) fn new(all: Vec<RuleOptions>) -> Self {
        Self { all, ..Self::default() }
    }

    pub(crate) fn all(&self) -> &[RuleOptions] {
        &self.all
    }

    /// Those, and the ones that triggers ask.
    pub(crate) fn everything(&self) -> impl Iterator<Item = &RuleOptions> {
        self.all.iter().chain(&self.of_triggers)
    }

    /// Triggers ask these.
    pub(crate) fn ask_for_triggers(&mut self, rules: Vec<RuleOptions>) {
        let before = std::mem::take(&mut self.of_triggers);
        for known in &before {
            // One that is asked as before goes on as it is.
            if !rules.iter().any(|rule| rule.name == known.name && rule.asks == known.asks) {
                self.forget(&known.name);
            }
        }
        let same = |rule: RuleOptions| {
            before.iter().find(|known| known.name == rule.name && known.asks == rule.asks).cloned().unwrap_or(rule)
        };
        self.of_triggers = rules.into_iter().map(same).collect();
    }

    /// Adds a rule, or replaces that of its name, which begins anew then.
    pub(crate) fn set(&mut self, options: RuleOptions) {
        self.remove(&options.name);
        self.all.push(options);
    }

    /// Removes a rule; returns whether it was there. Its counts stay for people.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let Some(at) = self.all.iter().position(|known| known.name == name) else { return false };
        let its = |(program, places): (&u64, &mut BTreeMap<String, ProgramRule>)| {
            places.remove(name).map(|place| (*program, name.to_owned(), place))
        };
        let retired: Vec<_> = self.places.iter_mut().filter_map(its).collect();
        let status = self.statuses().swap_remove(at);
        self.removed.push(RuleStatus { programs: status.programs + retired.len() as u64, ..status });
        self.retired.extend(retired);
        self.removed.drain(..self.removed.len().saturating_sub(REMOVED_MAX));
        self.all.remove(at);
        self.forget(name);
        self.outdated.push(name.to_owned());
        true
    }

    /// Counts of a program for the rule of this name that was removed last.
    fn are_last(&mut self, name: &str, place: &ProgramRule) {
        let RuleTotals { kept, let_go, unknown, forgotten } = place.counts();
        if let Some(status) = self.removed.iter_mut().rfind(|status| status.options.name == name) {
            status.kept += kept;
            status.let_go += let_go;
            status.unknown += unknown;
            status.forgotten += forgotten;
        }
    }

    /// Whether a program has no number for a rule.
    pub(crate) fn lacks_numbers(&self) -> bool {
        self.places.values().flat_map(BTreeMap::values).any(|place| place.number.is_none())
    }

    /// Those rules.
    pub(crate) fn removed_options(&self) -> Vec<RuleOptions> {
        self.removed.iter().map(|rule| rule.options.clone()).collect()
    }

    /// What traces tell of the rule of this name.
    fn told(&self, name: &str) -> ToldRuleWords {
        let own = self.all.iter().find(|rule| rule.name == name).map(ToldRuleWords::of);
        let of_trigger = || self.of_triggers.iter().find(|rule| rule.name == name).map(ToldRuleWords::of_trigger);
        own.or_else(of_trigger).unwrap_or_else(|| self.removed_words(name))
    }

    /// The same of the one of this name that was removed last.
    fn removed_words(&self, name: &str) -> ToldRuleWords {
        let removed = self.removed.iter().rfind(|rule| rule.options.name == name);
        let bare = || ToldRuleWords { name: name.to_owned(), ..ToldRuleWords::default() };
        removed.map_or_else(bare, |rule| ToldRuleWords::of(&rule.options))
    }

    /// Rules that were removed, with their last counts.
    pub(crate) fn removed(&self) -> &[RuleStatus] {
        &self.removed
    }

    fn forget(&mut self, name: &str) {
        self.places.values_mut().for_each(|places| _ = places.remove(name));
        self.gone.remove(name);
        self.without.remove(name);
        self.misfits.remove(name);
        self.matches.remove(name);
        self.kinds.remove(name);
    }

    /// A rule, to set its limits.
    pub(crate) fn rule_mut(&mut self, name: &str) -> Option<&mut RuleOptions> {
        self.all.iter_mut().chain(&mut self.of_triggers).find(|known| known.name == name)
    }

    /// A program cannot ask a rule.
    pub(crate) fn lacks(&mut self, program: u64, name: &str, why: &str) {
        let (programs, whys) = self.without.entry(name.to_owned()).or_default();
        programs.insert(program);
        if whys.len() < WHYS_MAX {
            whys.insert(why.to_owned());
        }
    }

    /// A program can ask a rule after all.
    pub(crate) fn can_ask(&mut self, program: u64, name: &str) {
        let Some((programs, whys)) = self.without.get_mut(name) else { return };
        programs.remove(&program);
        if programs.is_empty() {
            whys.clear();
        }
    }

    /// A rule cannot be about some events of a program.
    pub(crate) fn misfits(&mut self, name: &str, why: String) {
        let known = self.misfits.entry(name.to_owned()).or_default();
        if known.len() < WHYS_MAX {
            known.insert(why);
        }
    }

    /// Whether patterns of a rule have matched an event so far: its own, and those of its begins.
    pub(crate) fn has_matched(&self, name: &str, is_begin: bool) -> bool {
        self.matches.get(name).is_some_and(|matches| matches[usize::from(is_begin)].is_matched)
    }

    /// Patterns of a rule match an event of a program, match one that the session does not select, or there are names like
    /// theirs.
    pub(crate) fn matches(&mut self, name: &str, is_begin: bool, found: RuleMatch) {
        let known = &mut self.matches.entry(name.to_owned()).or_default()[usize::from(is_begin)];
        known.is_matched |= found.is_matched;
        known.unselected = known.unselected.take().or(found.unselected);
        if known.near.is_empty() {
            known.near = found.near;
        }
    }

    /// What is wrong with a rule, for people.
    fn problems(&self, rule: &RuleOptions) -> Vec<String> {
        let mut all: Vec<String> = self.misfits.get(&rule.name).into_iter().flatten().cloned().collect();
        for (patterns, matches) in [Some(&rule.events[..]), rule.asks.begins()]
            .into_iter()
            .zip(self.matches.get(&rule.name).into_iter().flatten())
        {
            let Some(patterns) = patterns.filter(|_| !matches.is_matched) else { continue };
            if let Some(name) = &matches.unselected {
                all.push(format!("the session selects no event of the rule: `--event {name}` does"));
                continue;
            }
            let near = matches.near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let is_of_kernel = patterns.iter().any(|pattern| is_of_kernel(pattern));
            let help = if is_of_kernel {
                "; `kymo record --kernel-only` is for rules about events of the kernel"
            } else {
                &near
            };
            all.push(format!("no event of a program is called `{}`{help}", patterns.join(",")));
        }
        all
    }

    /// A program has these counts now.
    pub(crate) fn learns(&mut self, program: u64, name: &str, counts: RuleCounts) {
        if let Some(place) = self.places.get_mut(&program).and_then(|places| places.get_mut(name)) {
            (place.now, place.read_ns) = (counts.into(), uptime_ns());
        }
    }

    /// A program has these running limits and kinds, and is gone or the session ends.
    pub(crate) fn leaves(&mut self, status: RuleStatus) {
        // Limits that are set are those of the rule, and may change.
        let its = status.kinds.into_iter().filter(|kind| kind.events > 0);
        let kinds = its.map(|kind| RuleKind { set_ns: None, ..kind }).collect();
        self.kinds.insert(status.options.name, (status.running_ns, kinds));
    }

    /// The recorder has asked rules itself.
    pub(crate) fn has_asked(&mut self, counts: BTreeMap<(u64, Arc<str>), RecorderCounts>) {
        for ((program, rule), counts) in counts {
            let place = self.places.entry(program).or_default().entry(rule.to_string()).or_default();
            place.by_recorder = place.by_recorder.plus(counts);
        }
    }

    /// The recorder has asked rules itself for a snapshot; `is_more`: about other events than those of snapshots before. A
    /// flight recorder's programs hold some events for several snapshots.
    pub(crate) fn are_asked_of_snapshot(&mut self, counts: &BTreeMap<(u64, Arc<str>), RecorderCounts>, is_more: bool) {
        for ((program, rule), counts) in counts {
            let place = self.places.entry(*program).or_default().entry(rule.to_string()).or_default();
            let all = |counts: &RecorderCounts| counts.asked.kept + counts.asked.let_go + counts.undone.kept;
            match is_more {
                true => place.by_recorder = place.by_recorder.plus(*counts),
                false if all(counts) >= all(&place.by_recorder) => place.by_recorder = *counts,
                false => {}
            }
        }
    }

    /// Numbers in a program of rules that it may still ask, though they were removed.
    pub(crate) fn retired_numbers(&self, program: u64) -> impl Iterator<Item = u8> {
        self.retired.iter().filter(move |(of, ..)| *of == program).filter_map(|(_, _, place)| place.number)
    }

    /// A program is gone.
    pub(crate) fn parts(&mut self, program: u64) {
        for (name, place) in self.places.remove(&program).into_iter().flatten() {
            let (counts, programs) = self.gone.entry(name).or_default();
            (*counts, *programs) = (counts.plus(place.counts()), *programs + 1);
        }
    }

    /// States for people; the caller adds kinds and running limits of programs that are there.
    pub(crate) fn statuses(&self) -> Vec<RuleStatus> {
        let status = |options: &RuleOptions| {
            let (gone, programs) = self.gone.get(&options.name).copied().unwrap_or_default();
            let here = || self.places.values().filter_map(|places| places.get(&options.name));
            let counts = here().fold(gone, |sum, place| sum.plus(place.counts()));
            let without = self.without.get(&options.name);
            let (running_ns, kinds) = self.kinds.get(&options.name).cloned().unwrap_or_default();
            let mut status = RuleStatus {
                options: options.clone(),
                words: options.words(),
                kept: counts.kept,
                let_go: counts.let_go,
                unknown: counts.unknown,
                forgotten: counts.forgotten,
                programs: programs + here().count() as u64,
                without: without.map_or(0, |(programs, _)| programs.len() as u64),
                why: without.map_or_else(Vec::new, |(_, whys)| whys.iter().cloned().collect()),
                problems: self.problems(options),
                running_ns,
                kinds,
                lost: None,
                shared: 0,
            };
            status.sort_kinds();
            status
        };
        self.everything().map(status).collect()
    }
}

impl RecordingSession {
    /// Whether it needs a group of its own in programs.
    pub(crate) fn needs_group(&self) -> bool {
        self.triggers.is_limited() || !self.rules.all().is_empty()
    }

    /// Events that the recorder has asked rules about since the last call, by program and rule.
    pub(crate) fn has_asked(&mut self) -> BTreeMap<(u64, Arc<str>), RecorderCounts> {
        self.choosing.remembers.counts()
    }

    /// A program does not ask removed rules any more: these have their last counts.
    pub(crate) fn retire(
        &mut self,
        program: &ProgramFacts,
        counts: impl Fn(u8) -> Option<RuleCounts>,
        clocks: &mut WatchedClocks,
    ) {
        let key = program.identity.key;
        let (its, others) = std::mem::take(&mut self.rules.retired).into_iter().partition(|(of, ..)| *of == key);
        self.rules.retired = others;
        for (_, name, mut place) in its {
            place.now = place.number.and_then(&counts).map_or(place.now, RuleTotals::from);
            if let Some(counts) = place.untold(true).filter(|_| self.options.keep == Keep::Oldest) {
                let rule = self.rules.removed_words(&name);
                self.with_output(program.identity.place(), clocks, |output, _| output.rule(program, &rule, &counts));
            }
            self.rules.are_last(&name, &place);
        }
    }

    /// Of programs that are gone, the counts that are known are the last ones.
    pub(crate) fn retire_others(&mut self) {
        for (_, name, place) in std::mem::take(&mut self.rules.retired) {
            self.rules.are_last(&name, &place);
        }
    }

    /// Whether counts of a program for its rules were not read for so long that the trace may lack some.
    pub(crate) fn is_count_due(&self, program: u64) -> bool {
        let now = uptime_ns();
        let is_due = |place: &ProgramRule| place.number.is_some() && now.saturating_sub(place.read_ns) >= TOLD_NS;
        self.rules.places.get(&program).is_some_and(|places| places.values().any(is_due))
    }

    /// Rules have changed.
    pub(crate) fn rule<T>(&mut self, act: impl FnOnce(&mut SessionRules) -> T) -> T {
        let result = act(&mut self.rules);
        let outdated = std::mem::take(&mut self.rules.outdated);
        outdated.iter().for_each(|name| self.choosing.remembers.forget(name));
        self.options.rules = self.rules.all().to_vec();
        let selection = self.choosing.selection.clone();
        self.select(selection);
        self.keep_again();
        result
    }

    /// Writes what a program has kept and let go for its rules, where the trace does not have that yet.
    pub(crate) fn tell_counts(&mut self, program: &ProgramFacts, clocks: &mut WatchedClocks, is_last: bool) {
        self.rules.has_asked(self.choosing.remembers.counts());
        let places = self.rules.places.get_mut(&program.identity.key).into_iter().flatten();
        let untold = places.filter_map(|(name, place)| Some((name.clone(), place.untold(is_last)?)));
        let untold: Vec<(String, RuleTotals)> = untold.collect();
        let told = |(name, counts): (String, RuleTotals)| (self.rules.told(&name), counts);
        let untold: Vec<(ToldRuleWords, RuleTotals)> = untold.into_iter().map(told).collect();
        if !untold.is_empty() && self.options.keep == Keep::Oldest {
            self.with_output(program.identity.place(), clocks, |output, _| {
                untold.iter().for_each(|(rule, counts)| output.rule(program, rule, counts));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_the_counts_since_it_has_the_rule() {
        let counts = |kept, let_go| RuleCounts { kept, let_go, ..RuleCounts::default() };
        let mut rules = SessionRules::new(vec![RuleOptions::parse("a:b every 10").expect("it is one")]);
        for (program, before) in [(1, counts(5, 50)), (2, counts(0, 0))] {
            rules.places.entry(program).or_default().insert("b".to_owned(), ProgramRule::default().numbered(3, before));
        }
        rules.learns(1, "b", counts(7, 68));
        rules.learns(2, "b", counts(1, 9));
        rules.learns(3, "b", counts(100, 100));
        let place = rules.places.get_mut(&1).and_then(|places| places.get_mut("b")).expect("it is there");
        assert_eq!(place.untold(true).map(|counts| (counts.kept, counts.let_go)), Some((2, 18)));
        assert_eq!(place.untold(true), None);
        rules.parts(1);
        rules.lacks(9, "b", "it is old");
        let status = rules.statuses().remove(0);
        assert_eq!((status.kept, status.let_go, status.programs, status.without), (3, 27, 2, 1));
        rules.set(RuleOptions::parse("b: a:b every 20").expect("it is one"));
        assert_eq!(rules.statuses()[0].kept, 0);
    }
}
