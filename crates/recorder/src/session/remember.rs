//! Rules that the recorder asks itself, about events that a program has recorded without having asked them: in its
//! first instant, or because it cannot.
//!
//! The answers are those of the program (`kymo_tracer`): one question, in the order in which events are taken.
//! Lanes are taken one after the other, so that the begin of another thread may not be known yet; the end is kept then.
//!
//! When a program begins to ask, it knows nothing of the events before: of those that it keeps then, the recorder lets go
//! the ones that it would not have kept after these.
//!
//! ```text
//! recorded without an answer │ with answers
//! begin 7                    │ end 7         the program: unknown, kept     the recorder: its begin was 2 ms ago
//! first of 100               │ first of 100  the program: kept              the recorder: too early by 99
//! ```

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kymo_schema::definition::EventClass;

use crate::filters::{ProgramConstants, RecordedEvent, RecorderKey, key_value};
use crate::program::walk::EventFate;
use crate::rule::{KeyField, RecorderCounts, RuleLimit, RuleOptions, RuleTest};
use crate::session::rules::kind_hashes;

/// Keys of a rule that are remembered.
const KEYS_MAX: usize = 1 << 14;

/// A program, and a class of it by its address.
type ClassPlace = (u64, usize);

/// Rules that the recorder asks.
#[derive(Debug, Default)]
pub(crate) struct RecorderRules {
    classes: HashMap<ClassPlace, ClassRules>,
    states: HashMap<(u64, Arc<str>), RuleState>,
    /// Programs that ask a rule themselves by now, and ticks of the first event that says so: later begins are not of
    /// interest.
    judging: HashMap<(u64, Arc<str>), u64>,
    /// Since the last call of [`RecorderRules::counts`], by program and rule.
    counts: BTreeMap<(u64, Arc<str>), RecorderCounts>,
}

/// Rules about events of a class.
#[derive(Debug, Default)]
struct ClassRules {
    begins: Vec<(Arc<str>, RecorderKey)>,
    asked: Vec<AskedRule>,
    /// `judging` has these rules already.
    is_judged: bool,
}

#[derive(Debug)]
struct AskedRule {
    name: Arc<str>,
    test: RuleTest,
    /// The limit that was set for it, and those of kinds, by their hashes.
    set: Option<u64>,
    limits: Vec<(u64, u64)>,
    key: RecorderKey,
    kind: Option<RecorderKey>,
}

/// Memory of a rule, of a program.
#[derive(Debug, Default)]
struct RuleState {
    /// By key: ticks of the begin; number of events, and whether the program goes on with them; or the begin of the window,
    /// and events in it.
    keys: HashMap<u64, (u64, u64)>,
    /// Running limits of kinds in nanoseconds, and numbers of their events.
    running: HashMap<u64, (f64, u64)>,
}

impl RecorderRules {
    /// Learns the rules about events of a class; returns whether they begin anything.
    pub(crate) fn learn(
        &mut self,
        place: ClassPlace,
        class: &EventClass,
        facts: ProgramConstants<'_>,
        rules: &[RuleOptions],
    ) -> bool {
        let (name, mut its) = (class.full_name(), ClassRules::default());
        for rule in rules {
            let key = |is_begin: bool| {
                let part = |field: &'_ KeyField| match field {
                    KeyField::Thread => None,
                    KeyField::Field { end, begin } => Some(if is_begin { begin.clone() } else { end.clone() }),
                };
                let parts: Vec<Option<String>> = rule.asks.keys.iter().map(part).collect();
                let parts: Vec<Option<&str>> = parts.iter().map(Option::as_deref).collect();
                let is_key = parts.iter().flatten().all(|field| key_value(class, field).is_ok());
                RecorderKey::new(class, &parts, facts).filter(|_| is_key)
            };
            if rule.asks.begins_at(&name)
                && let Some(key) = key(true)
            {
                its.begins.push((rule.name.as_str().into(), key));
            }
            let kind = match &rule.asks.test {
                RuleTest::Over { per: Some(per), .. } => {
                    RecorderKey::new(class, &[Some(per)], facts).filter(|_| key_value(class, per).is_ok()).map(Some)
                }
                _ => Some(None),
            };
            // A rule that is not about such events keeps them.
            if rule.takes_name(&name)
                && let (Some(key), Some(kind)) = (key(false), kind)
            {
                let limits = rule.limits.iter().flat_map(|(kind, ns)| kind_hashes(kind).map(|hash| (hash, *ns)));
                let (name, test, set) = (rule.name.as_str().into(), rule.asks.test.clone(), rule.set);
                its.asked.push(AskedRule { name, test, set, limits: limits.collect(), key, kind });
            }
        }
        let begins = !its.begins.is_empty();
        self.classes.insert(place, its);
        begins
    }

    /// The program has asked the rules of a class itself about an event of these ticks.
    pub(crate) fn judges(&mut self, place: ClassPlace, ticks: u64) {
        let Some(its) = self.classes.get_mut(&place).filter(|its| !its.is_judged) else { return };
        its.is_judged = true;
        for name in its.begins.iter().map(|(name, _)| name).chain(its.asked.iter().map(|rule| &rule.name)) {
            self.judging.entry((place.0, Arc::clone(name))).or_insert(ticks);
        }
    }

    /// Remembers the time of an event, if it begins anything.
    pub(crate) fn begin(&mut self, place: ClassPlace, ticks: u64, event: &RecordedEvent<'_>) {
        let Some(its) = self.classes.get(&place) else { return };
        for (rule, key) in &its.begins {
            let of = (place.0, Arc::clone(rule));
            if self.judging.get(&of).is_some_and(|since| ticks > *since) {
                continue;
            }
            let state = self.states.entry(of.clone()).or_default();
            let forgotten = state.make_room();
            if forgotten > 0 {
                self.counts.entry(of).or_default().asked.forgotten += forgotten;
            }
            state.keys.insert(key.hash(event, 0), (ticks, 0));
        }
    }

    /// Whether an event is kept that the program has kept, so many ticks after its begin, if it knows that; `nanos` tells
    /// the time of ticks.
    pub(crate) fn reconsider(
        &mut self,
        place: ClassPlace,
        ticks: u64,
        since: Option<u64>,
        event: &RecordedEvent<'_>,
        nanos: impl Fn(u64) -> u64,
    ) -> EventFate {
        let mut fate = since.map_or(EventFate::Keep, |since| EventFate::KeepSince(nanos(since)));
        let Some(its) = self.classes.get(&place) else { return fate };
        for (number, rule) in its.asked.iter().enumerate() {
            let of = (place.0, Arc::clone(&rule.name));
            let Some(state) = self.states.get_mut(&of).filter(|state| !state.keys.is_empty()) else { continue };
            let key = rule.key.hash(event, 0);
            let is_kept = match rule.test {
                RuleTest::Over { limit, .. } => match state.keys.remove(&key).filter(|_| since.is_none()) {
                    None => true,
                    Some((begin, _)) => {
                        let took = nanos(ticks.saturating_sub(begin));
                        fate = EventFate::KeepSince(took);
                        self.counts.entry(of).or_default().undone.unknown += 1;
                        let kind = rule.kind.as_ref().map_or(0, |kind| kind.hash(event, 0));
                        state.is_over(rule, limit, kind, took)
                    }
                },
                RuleTest::Every(events) => match state.keys.get_mut(&key) {
                    Some((count, goes_on @ 0)) => {
                        *goes_on = 1;
                        *count % rule.set.unwrap_or(events.into()).max(1) == 0
                    }
                    _ => true,
                },
                RuleTest::OfKernel { .. } | RuleTest::Program { .. } => true,
                RuleTest::AtMost { events, ns } => match state.keys.get_mut(&key) {
                    Some((begin, count)) if nanos(ticks.saturating_sub(*begin)) < ns => {
                        let is_within = *count < rule.set.unwrap_or(events.into());
                        *count += u64::from(is_within);
                        is_within
                    }
                    _ => true,
                },
            };
            if !is_kept {
                // The rules behind it are not asked.
                for rule in &its.asked[number..] {
                    self.counts.entry((place.0, Arc::clone(&rule.name))).or_default().undone.kept += 1;
                }
                self.counts.entry((place.0, Arc::clone(&rule.name))).or_default().asked.let_go += 1;
                return EventFate::Drop;
            }
        }
        fate
    }

    /// Whether rules keep an event; `nanos` tells the time of ticks.
    pub(crate) fn ask(
        &mut self,
        place: ClassPlace,
        ticks: u64,
        event: &RecordedEvent<'_>,
        nanos: impl Fn(u64) -> u64,
    ) -> EventFate {
        let Some(its) = self.classes.get(&place) else { return EventFate::Keep };
        let mut fate = EventFate::Keep;
        for rule in &its.asked {
            let state = self.states.entry((place.0, Arc::clone(&rule.name))).or_default();
            let counts = &mut self.counts.entry((place.0, Arc::clone(&rule.name))).or_default().asked;
            let key = rule.key.hash(event, 0);
            let is_kept = match rule.test {
                RuleTest::Over { limit, .. } => match state.keys.remove(&key) {
                    None => {
                        counts.unknown += 1;
                        true
                    }
                    Some((begin, _)) => {
                        let took = nanos(ticks.saturating_sub(begin));
                        fate = EventFate::KeepSince(took);
                        let kind = rule.kind.as_ref().map_or(0, |kind| kind.hash(event, 0));
                        state.is_over(rule, limit, kind, took)
                    }
                },
                RuleTest::Every(events) => {
                    counts.forgotten += state.make_room();
                    let (count, _) = state.keys.entry(key).or_default();
                    *count += 1;
                    (*count - 1) % rule.set.unwrap_or(events.into()).max(1) == 0
                }
                RuleTest::OfKernel { .. } => true,
                // Only the program runs it: the recorder has another memory.
                RuleTest::Program { .. } => {
                    counts.unknown += 1;
                    true
                }
                RuleTest::AtMost { events, ns } => {
                    counts.forgotten += state.make_room();
                    let (begin, count) = state.keys.entry(key).or_default();
                    if *count == 0 || nanos(ticks.saturating_sub(*begin)) >= ns {
                        (*begin, *count) = (ticks, 0);
                    }
                    let is_within = *count < rule.set.unwrap_or(events.into());
                    *count += u64::from(is_within);
                    is_within
                }
            };
            *(if is_kept { &mut counts.kept } else { &mut counts.let_go }) += 1;
            if !is_kept {
                return EventFate::Drop;
            }
        }
        fate
    }

    /// Events that it was asked about since the last call, by program and rule.
    pub(crate) fn counts(&mut self) -> BTreeMap<(u64, Arc<str>), RecorderCounts> {
        std::mem::take(&mut self.counts)
    }

    /// Rules or classes have changed.
    pub(crate) fn choose_again(&mut self) {
        self.classes.clear();
    }

    /// A rule is gone, or another one has its name.
    pub(crate) fn forget(&mut self, rule: &str) {
        self.states.retain(|(_, of), _| &**of != rule);
        self.judging.retain(|(_, of), _| &**of != rule);
    }

    /// A program is gone.
    pub(crate) fn parts(&mut self, program: u64) {
        self.classes.retain(|(of, _), _| *of != program);
        self.states.retain(|(of, _), _| *of != program);
        self.judging.retain(|(of, _), _| *of != program);
    }
}

impl RuleState {
    /// Forgets the older half of the keys if there is no room for one more; returns how many that were.
    fn make_room(&mut self) -> u64 {
        if self.keys.len() < KEYS_MAX {
            return 0;
        }
        let mut all: Vec<u64> = self.keys.values().map(|(begin, _)| *begin).collect();
        let middle = all.len() / 2;
        let (_, median, _) = all.select_nth_unstable(middle);
        let (before, median) = (self.keys.len(), *median);
        self.keys.retain(|_, (begin, _)| *begin > median);
        (before - self.keys.len()) as u64
    }

    fn is_over(&mut self, rule: &AskedRule, limit: RuleLimit, kind: u64, took: u64) -> bool {
        let running = match limit {
            RuleLimit::Time(_) => None,
            RuleLimit::Percentile(part) => Some(self.follow(kind, f64::from(part) / 1e6, took as f64)),
        };
        let set = rule.limits.iter().find(|(hash, _)| *hash == kind).map(|(_, ns)| *ns).or(rule.set);
        match (set, limit) {
            (Some(ns), _) | (None, RuleLimit::Time(ns)) => took > ns,
            (None, RuleLimit::Percentile(_)) => running.unwrap_or(true),
        }
    }

    /// Whether a time is more than the running limit of its kind, which follows it then: as in the program.
    fn follow(&mut self, kind: u64, part: f64, took: f64) -> bool {
        if self.running.len() >= KEYS_MAX {
            self.running.clear();
        }
        let (limit, events) = self.running.entry(kind).or_default();
        let share = f64::max(0.02, 1.0 / (*events as f64 + 1.0));
        let is_over = took > *limit;
        *limit = match events {
            0 => took,
            _ if is_over => *limit * (1.0 + share * part),
            _ => *limit * (1.0 - share * (1.0 - part)),
        };
        *events += 1;
        is_over
    }
}
