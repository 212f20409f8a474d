//! Rules of sessions in a program: their events, limits and counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kymo_lane::judgement::{JudgedTest, JudgementKind, KeyPart, RuleKey, RuleNumber};
use kymo_lane::{KindPlace, RULES_MAX};
use kymo_schema::definition::EventClass;

use super::Served;
use crate::filters::FilterCompiler;
use crate::filters::{Placed, key_value};
use crate::rule::{KeyField, RuleKind, RuleLimit, RuleOptions, RuleQuestion, RuleStatus, RuleTest};
use crate::session::rules::{ProgramRule, RuleMatch, SessionRules, kind_hashes};
use crate::session::{RecordingSession, WatchedClocks};

/// Kinds of a rule that a status names.
const KINDS_MAX: usize = 64;

/// Rules of an event.
#[derive(Debug, Default)]
pub(super) struct EventRules {
    /// Rules that remember its time, each with its keys.
    pub(super) begins: Vec<(RuleNumber, Vec<JudgementKind>)>,
    /// Rules that a session asks about it, with their keys, by group.
    pub(super) asked: BTreeMap<u8, Vec<JudgementKind>>,
    /// Groups of sessions that do not record it, because it only begins something.
    pub(super) hidden: BTreeSet<u8>,
    /// Those that a trigger asks, by session and trigger.
    pub(super) of_triggers: HashMap<(String, String), Vec<JudgementKind>>,
}

/// Why a program does not ask a rule of a session about an event.
pub(super) type RuleProblem = (String, String, String);

impl Served {
    /// Rules of events that are not switched yet.
    pub(super) fn event_rules(
        &mut self,
        sessions: &[&RecordingSession],
        compiler: &FilterCompiler,
    ) -> HashMap<u16, EventRules> {
        let mut all = HashMap::<u16, EventRules>::new();
        let mut misfits: Vec<RuleProblem> = Vec::new();
        let tests = self.object_tests(sessions, compiler);
        for session in sessions {
            let Some(group) = session.triggers.group(self.key()) else { continue };
            let Some(places) = session.rules.places.get(&self.key()) else { continue };
            for rule in session.rules.everything() {
                let Some(ProgramRule { number: Some(number), epoch, .. }) = places.get(&rule.name) else { continue };
                let number = RuleNumber { number: *number, epoch: *epoch };
                let mut misfit = |why: String| misfits.push((session.name.clone(), rule.name.clone(), why));
                for id in &self.unsettled {
                    let Some(Some(class)) = self.program.known().events.get(usize::from(*id)) else { continue };
                    let name = class.full_name();
                    if rule.asks.begins_at(&name) {
                        match keys(&rule.asks, class, true) {
                            Ok(keys) => {
                                let its = all.entry(*id).or_default();
                                its.begins.push((number, keys));
                                if session.choosing.hides(self.key(), rule, &name) && !rule.name.starts_with("trigger:")
                                {
                                    its.hidden.insert(group);
                                }
                            }
                            Err(why) => misfit(why),
                        }
                    }
                    if rule.takes_name(&name) {
                        let of_object = tests.get(&(session.instance(), rule.name.clone(), *id)).cloned();
                        let judged = of_object.unwrap_or_else(|| Ok(test(&rule.asks.test)));
                        match judged.and_then(|test| Ok((test, keys(&rule.asks, class, false)?))) {
                            Ok((test, keys)) => {
                                let its = all.entry(*id).or_default();
                                let asked = match rule.name.strip_prefix("trigger:") {
                                    Some(trigger) => {
                                        its.of_triggers.entry((session.name.clone(), trigger.to_owned())).or_default()
                                    }
                                    None => its.asked.entry(group).or_default(),
                                };
                                asked.push(JudgementKind::Rule(number, test));
                                asked.extend(keys);
                            }
                            Err(why) => misfit(why),
                        }
                    }
                }
            }
        }
        self.rule_misfits.extend(misfits);
        all
    }

    /// The program cannot judge an event: sessions record all events that their rules are about.
    pub(super) fn lack_rules(&mut self, of: Option<&EventRules>, sessions: &[&RecordingSession], placed: &Placed) {
        let Some(of) = of else { return };
        let mut why: Vec<String> = placed.why.iter().map(ToString::to_string).collect();
        if why.is_empty() {
            why.push("a program cannot judge an event".to_owned());
        }
        for session in sessions {
            let places = session.rules.places.get(&self.key()).into_iter().flatten();
            for (name, place) in places {
                let is_its = |kind: &JudgementKind| matches!(kind, JudgementKind::Rule(rule, _) if Some(rule.number) == place.number);
                let begins = of.begins.iter().any(|(rule, _)| Some(rule.number) == place.number);
                if begins || of.asked.values().flatten().any(is_its) {
                    let problems = why.iter().map(|why| (session.name.clone(), name.clone(), why.clone()));
                    self.rule_problems.extend(problems);
                }
            }
        }
    }

    /// Gives rules of a session their numbers, where there are any.
    pub(super) fn assign_rules(&self, at: usize, sessions: &mut [RecordingSession]) {
        let key = self.key();
        let lane = self.program.lane();
        let is_able = lane.has_rules().unwrap_or(false) && sessions[at].triggers.group(key).is_some();
        let others = sessions.iter().filter_map(|session| session.rules.places.get(&key)).flat_map(BTreeMap::values);
        let retired = sessions.iter().flat_map(|session| session.rules.retired_numbers(key));
        let mut numbers: Vec<u8> = others.filter_map(|place| place.number).chain(retired).collect();
        let session = &mut sessions[at];
        let mut new = Vec::new();
        for rule in session.rules.everything().cloned().collect::<Vec<_>>() {
            // One that found no number may find one now, as other rules have gone.
            if places_of(session, key).get(&rule.name).is_some_and(|place| place.number.is_some()) {
                continue;
            }
            let free = (0..RULES_MAX as u8).find(|number| !numbers.contains(number)).filter(|_| is_able);
            let counts = free.and_then(|number| lane.counts(number).ok());
            if let (Some(number), Some(counts)) = (free, counts) {
                numbers.push(number);
                let known = places_of(session, key).remove(&rule.name).unwrap_or_default();
                let place = known.numbered(number, counts);
                new.push((number, place.epoch));
                places_of(session, key).insert(rule.name.clone(), place);
                session.rules.can_ask(key, &rule.name);
            } else if !places_of(session, key).contains_key(&rule.name) {
                let why = match lane.has_rules() {
                    Ok(false) => "a program is built with a tracer that is older than rules",
                    _ => "a program has too many rules, or sessions with rules and triggers",
                };
                session.rules.lacks(key, &rule.name, why);
                places_of(session, key).insert(rule.name.clone(), ProgramRule::default());
            }
        }
        self.set_limits(session);
        // If the program is gone, the next look reports that.
        new.into_iter().for_each(|(number, epoch)| _ = lane.begin_rule(number, epoch));
    }

    /// The events of a session begin now: it has no counts of earlier ones.
    pub(crate) fn count_anew(&self, session: &mut RecordingSession) {
        let places = session.rules.places.get_mut(&self.key());
        for place in places.into_iter().flat_map(BTreeMap::values_mut) {
            if let Some(counts) = place.number.and_then(|number| self.program.lane().counts(number).ok()) {
                place.counts_from(counts);
            }
        }
    }

    /// The program is switched: it asks the rules that a session has removed no more.
    pub(crate) fn retire_rules(&self, session: &mut RecordingSession, clocks: &mut WatchedClocks) {
        let lane = self.program.lane();
        session.retire(self.program.known(), |number| lane.counts(number).ok(), clocks);
    }

    /// Tells the program the limits of a session's rules.
    pub(crate) fn set_limits(&self, session: &RecordingSession) {
        let Some(places) = session.rules.places.get(&self.key()) else { return };
        for rule in session.rules.everything() {
            let Some(number) = places.get(&rule.name).and_then(|place| place.number) else { continue };
            let (limit, window) = match rule.asks.test {
                RuleTest::Over { limit: RuleLimit::Time(ns), .. } => (self.ticks_of(rule.set.unwrap_or(ns)), 0),
                RuleTest::Over { limit: RuleLimit::Percentile(_), .. } => {
                    (rule.set.map_or(0, |ns| self.ticks_of(ns)), 0)
                }
                RuleTest::Every(events) => (rule.set.unwrap_or(events.into()), 0),
                RuleTest::AtMost { events, ns } => (rule.set.unwrap_or(events.into()), self.ticks_of(ns)),
                RuleTest::OfKernel { .. } | RuleTest::Program { .. } => continue,
            };
            let kinds: Vec<(u64, u64)> = rule
                .limits
                .iter()
                .flat_map(|(kind, ns)| kind_hashes(kind).map(|hash| (hash, self.ticks_of(*ns))))
                .collect();
            // If the program is gone, the next look reports that.
            let lane = self.program.lane();
            let _ = lane.set_limits_of(number, &kinds).and_then(|()| lane.set_limit(number, limit, window));
        }
    }

    /// Sessions learn the program's counts for their rules, and those that it cannot ask. Their traces have the counts
    /// once in a second, and the last ones.
    pub(crate) fn tell_rules(&mut self, sessions: &mut [RecordingSession], clocks: &mut WatchedClocks, is_last: bool) {
        let key = self.key();
        for (session, rule, why) in std::mem::take(&mut self.rule_problems) {
            let its = sessions.iter_mut().find(|known| known.name == session);
            its.into_iter().for_each(|session| session.rules.lacks(key, &rule, &why));
        }
        for (session, rule, why) in std::mem::take(&mut self.rule_misfits) {
            let its = sessions.iter_mut().find(|known| known.name == session);
            its.into_iter().for_each(|session| session.rules.misfits(&rule, why.clone()));
        }
        for session in sessions {
            self.match_rules(session);
            let places = session.rules.places.get(&key).into_iter().flatten();
            let numbers: Vec<(String, u8)> =
                places.filter_map(|(name, place)| Some((name.clone(), place.number?))).collect();
            for (name, number) in numbers {
                if let Ok(counts) = self.program.lane().counts(number) {
                    session.rules.learns(key, &name, counts);
                }
            }
            session.tell_counts(self.program.known(), clocks, is_last);
        }
    }

    /// A session learns which patterns of its rules match events of the program.
    fn match_rules(&self, session: &mut RecordingSession) {
        let is_known = |rule: &RuleOptions, is_begin: bool| session.rules.has_matched(&rule.name, is_begin);
        let is_open =
            |rule: &RuleOptions| !is_known(rule, false) || rule.asks.begins().is_some() && !is_known(rule, true);
        let open: Vec<RuleOptions> = session.rules.everything().filter(|rule| is_open(rule)).cloned().collect();
        if open.is_empty() || !session.takes_program(&self.who) {
            return;
        }
        let is_selected = |class: &EventClass| session.filters(&self.who, class).is_some();
        let names: Vec<(String, bool)> =
            self.events().map(|(_, class)| (class.full_name(), is_selected(class))).collect();
        for rule in open {
            for (is_begin, patterns) in [(false, Some(&rule.events[..])), (true, rule.asks.begins())] {
                let Some(patterns) = patterns.filter(|_| !session.rules.has_matched(&rule.name, is_begin)) else {
                    continue;
                };
                let takes = |name: &str| if is_begin { rule.asks.begins_at(name) } else { rule.takes_name(name) };
                // Begins, and the events of triggers, need not be selected.
                let is_free = is_begin || rule.name.starts_with("trigger:");
                let names = names.iter().map(|(name, is_selected)| (name.as_str(), *is_selected || is_free));
                session.rules.matches(&rule.name, is_begin, RuleMatch::of(&patterns[0], takes, names));
            }
        }
    }

    /// Sessions learn which of their rules are about events of the program. Where that has changed, all are to be switched
    /// again.
    pub(super) fn use_rules(&mut self, sessions: &mut [RecordingSession]) {
        let mut is_new = false;
        for session in sessions.iter_mut().filter(|session| !session.rules.all().is_empty()) {
            let is_used = |rule: &RuleOptions| {
                let mut classes = self.events().map(|(_, class)| class);
                classes.any(|class| rule.takes_name(&class.full_name()) && keys(&rule.asks, class, false).is_ok())
            };
            is_new |= session.takes_program(&self.who) && session.uses_rules(self.key(), is_used);
        }
        if is_new {
            self.unsettle();
        }
    }

    /// Adds running limits and kinds of a rule in this program to its status.
    pub(crate) fn add_rule(&self, status: &mut RuleStatus, rules: &SessionRules) {
        let place = rules.places.get(&self.key()).and_then(|places| places.get(&status.options.name));
        let place = place.and_then(|place| place.number);
        let (Some(number), RuleTest::Over { limit, per, .. }) = (place, &status.options.asks.test) else { return };
        let is_running = matches!(limit, RuleLimit::Percentile(_));
        let lane = self.program.lane();
        let largest = |known: Option<u64>, ticks: f64| Some(known.unwrap_or(0).max(self.nanos_of(ticks)));
        let Some(per) = per else {
            let (running, events) = lane.running(number).unwrap_or_default();
            if is_running && events > 0 {
                status.running_ns = largest(status.running_ns, running);
            }
            return;
        };
        let is_number = self.events().any(|(_, class)| {
            status.options.takes_name(&class.full_name()) && matches!(key_value(class, per), Ok(KeyPart::Number { .. }))
        });
        // If the program is gone, nothing is added.
        let _ = lane.kinds(number, |kind| {
            let name = kind_name(&kind.name, is_number);
            let known = match status.kinds.iter().position(|known| known.name == name) {
                Some(at) => &mut status.kinds[at],
                None if status.kinds.len() < KINDS_MAX => {
                    status.kinds.push(RuleKind { name, ..RuleKind::default() });
                    status.kinds.last_mut().expect("it was just put there")
                }
                None => return,
            };
            known.events = known.events.saturating_add(kind.events);
            if is_running && kind.events > 0 {
                known.running_ns = largest(known.running_ns, kind.running);
            }
        });
    }

    /// Nanoseconds of ticks of the program's clock, which may be any number.
    fn nanos_of(&self, ticks: f64) -> u64 {
        (ticks.max(0.0) * 1e9 / self.frequency.max(1) as f64) as u64
    }
}

fn places_of(session: &mut RecordingSession, program: u64) -> &mut BTreeMap<String, ProgramRule> {
    session.rules.places.entry(program).or_default()
}

/// Keys of a rule among the arguments of a class, and its kind.
pub(crate) fn keys(asks: &RuleQuestion, class: &EventClass, is_begin: bool) -> Result<Vec<JudgementKind>, String> {
    let key = |field: &KeyField| match field {
        KeyField::Thread => Ok(KeyPart::Thread),
        KeyField::Field { end, begin } => key_value(class, if is_begin { begin } else { end }),
    };
    let mut keys = Vec::new();
    for field in &asks.keys {
        keys.push(JudgementKind::Key(RuleKey { is_kind: false, value: key(field)? }));
    }
    if let RuleTest::Over { per: Some(per), .. } = &asks.test
        && !is_begin
    {
        keys.push(JudgementKind::Key(RuleKey { is_kind: true, value: key_value(class, per)? }));
    }
    Ok(keys)
}

fn test(test: &RuleTest) -> JudgedTest {
    match test {
        RuleTest::Over { limit: RuleLimit::Time(_), .. } => JudgedTest::Over(0),
        RuleTest::Over { limit: RuleLimit::Percentile(part), .. } => {
            JudgedTest::Over((u64::from(*part) * (1 << 32) / 1_000_000).max(1) as u32)
        }
        RuleTest::Every(_) => JudgedTest::Every,
        // No program has a rule of the kernel: `RuleQuestion::fault`.
        // Programs have images of their own: `object_tests`.
        RuleTest::AtMost { .. } | RuleTest::OfKernel { .. } | RuleTest::Program { .. } => JudgedTest::AtMost,
    }
}

fn kind_name(name: &[u8; KindPlace::NAME_BYTES], is_number: bool) -> String {
    if is_number {
        let number = name.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        return number.cast_signed().to_string();
    }
    String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}
