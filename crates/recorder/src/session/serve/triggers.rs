//! Sessions that triggers control, in a program: images of its control bytes, judgements, and firings.

use std::collections::{BTreeSet, HashMap};
use std::io;

use kymo_lane::judgement::JudgementKind;
use kymo_lane::{
    ClockSource, FilterEngine, Firing, GROUPS_MAX, OTHER_GROUPS, TRIGGERS_MAX, TriggerAction, TriggerState,
};

use super::rules::EventRules;
use super::{EventFilter, Served};
use crate::clock::ticks;
use crate::filters::{ClassFilter, FilterCompiler, JudgedEntry, JudgedEvent, Placed, Placer, ProgramConstants};
use crate::program::groups::LearnedFirings;
use crate::session::triggers::{ProgramFiring, SessionTrigger, SessionTriggers, TriggerPlaces};
use crate::session::watch::TriggerName;
use crate::session::{RecordingSession, WatchedClocks};
use crate::trigger::{TriggerEffect, TriggerFiring, TriggerStatus};

/// How long threads may take from the read of a control byte to the end of their event.
const SETTLES_NS: u64 = 1_000_000;
/// The recorder looks at each program within this time.
const SEEN_NS: u64 = 2_000_000_000;

/// A trigger of an event, with its number in the program; `None`: the program cannot judge it.
pub(super) struct TriggerFilter {
    pub(super) name: TriggerName,
    pub(super) number: Option<u8>,
    pub(super) filter: ClassFilter,
    /// It takes several matches.
    counts: bool,
    /// It asks a rule, which the recorder cannot.
    has_rule: bool,
    /// Of the trigger; see there.
    epoch: u64,
    /// Ticks since which it is armed.
    since: u64,
}

/// Whether a program has just begun to judge events itself. Those before that may have started or stopped sessions, and are
/// not read yet: until then, all groups record, and the program tells each start. The recorder cuts
/// the events outside of windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FirstJudgements {
    /// It has not, or all events before that were read.
    #[default]
    None,
    /// Events until these ticks may be from before.
    Until(u64),
    /// The next look has all of these.
    NextLook,
    /// All of them were read: the program is to follow.
    Read,
}

/// An event's trigger as it was armed: its session, its name and its epoch.
pub(super) type JudgedTrigger = (u16, TriggerName, u64);

/// Entries of an event's judgement.
type EntryFilters = Vec<(JudgementKind, ClassFilter, Vec<JudgementKind>)>;

/// Entries of the judgement of an event: triggers, sessions without groups and groups, each with its filter, and rules that
/// remember its time.
fn entries_of<'f>(
    fired: &[TriggerFilter],
    rules: Option<&EventRules>,
    others: &Result<ClassFilter, u8>,
    of_groups: impl Iterator<Item = (u8, &'f Result<ClassFilter, u8>)>,
) -> EntryFilters {
    let none = EventRules::default();
    let rules = rules.unwrap_or(&none);
    let wants = |filter: &Result<ClassFilter, u8>| match filter {
        Ok(filter) => Some(filter.clone()),
        Err(1) => Some(ClassFilter::always()),
        Err(_) => None,
    };
    let others_want = |filter| (JudgementKind::Groups(OTHER_GROUPS), filter, Vec::new());
    let fires = fired.iter().filter_map(|trigger| {
        let asked = if trigger.has_rule { rules.of_triggers.get(&trigger.name)?.clone() } else { Vec::new() };
        Some((JudgementKind::Trigger(trigger.number?), trigger.filter.clone(), asked))
    });
    // The recorder watches the other triggers, but for those with rules.
    let watched = fired.iter().filter(|trigger| trigger.number.is_none() && !trigger.has_rule);
    let watched = watched.map(|trigger| others_want(trigger.filter.clone()));
    let its = of_groups.filter_map(|(group, filter)| {
        let asked = rules.asked.get(&group).cloned();
        let is_wanted = asked.is_some() || !rules.hidden.contains(&group);
        let filter = wants(filter).filter(|_| is_wanted)?;
        Some((JudgementKind::Groups(1 << group), filter, asked.unwrap_or_default()))
    });
    let begins = rules.begins.iter();
    let begins = begins.map(|(rule, keys)| (JudgementKind::Begin(*rule), ClassFilter::always(), keys.clone()));
    fires.chain(wants(others).map(others_want)).chain(watched).chain(its).chain(begins).collect()
}

impl Served {
    /// The same with sessions that triggers control: images of the control bytes, of which the program itself
    /// chooses.
    pub(super) fn settle_groups(
        &mut self,
        grouped: &[&RecordingSession],
        (others, filters): (Vec<(u16, u8)>, &[EventFilter]),
        of_groups: &[Vec<EventFilter>],
        (triggers, rules): (&HashMap<u16, Vec<TriggerFilter>>, &HashMap<u16, EventRules>),
        compiler: &mut FilterCompiler,
    ) -> io::Result<()> {
        let key = self.key();
        let groups: Vec<u8> = grouped.iter().filter_map(|session| session.triggers.group(key)).collect();
        let mut images: Vec<[u8; GROUPS_MAX as usize + 1]> = Vec::new();
        let mut entries: Vec<(usize, &[TriggerFilter], EntryFilters)> = Vec::new();
        let of_groups_placed = of_groups.iter().map(|filters| self.place(filters, compiler));
        let of_groups_placed = of_groups_placed.collect::<io::Result<Vec<_>>>()?;
        for (at, (id, control)) in others.iter().enumerate() {
            let mut controls = [0; GROUPS_MAX as usize + 1];
            controls[0] = *control;
            for (group, placed) in groups.iter().zip(&of_groups_placed) {
                controls[usize::from(*group) + 1] = placed[at].1;
            }
            images.push(controls);
            let (fired, its_rules) = (triggers.get(id).map_or(&[][..], Vec::as_slice), rules.get(id));
            if self.is_dead || fired.is_empty() && its_rules.is_none() {
                continue;
            }
            let of_groups = groups.iter().zip(of_groups).map(|(group, filters)| (*group, &filters[at].2));
            entries.push((at, fired, entries_of(fired, its_rules, &filters[at].2, of_groups)));
        }
        let judged = entries.iter().map(|(at, _, entries)| {
            let entries = entries
                .iter()
                .map(|(kind, filter, rules)| JudgedEntry { kind: *kind, filter, rules: rules.clone() })
                .collect();
            JudgedEvent { id: others[*at].0, class: &filters[*at].1, entries }
        });
        let placed = self.judge(&judged.collect::<Vec<_>>(), compiler)?;
        let mut judged: HashMap<u16, bool> = HashMap::new();
        for ((at, fired, _), placed) in entries.iter().zip(placed) {
            images[*at] = [0; GROUPS_MAX as usize + 1];
            // Where the program cannot judge, it records all events, and the recorder watches.
            images[*at][0] = placed.control;
            if placed.control == 1 {
                self.watch_all(fired, &placed);
                self.lack_rules(rules.get(&others[*at].0), grouped, &placed);
            }
            judged.insert(others[*at].0, placed.control > 1);
            self.placed.insert(others[*at].0, placed);
        }
        for ((id, _), controls) in others.iter().zip(images) {
            self.groups.set(*id, controls);
            self.switched.insert(*id, controls.into_iter().fold(0, u8::max));
        }
        if self.groups.is_first(self.program.lane())? {
            let now = ticks(self.who.identity.clock);
            self.first = FirstJudgements::Until(now.saturating_add(self.ticks_of(SETTLES_NS)));
        }
        let states = self.trigger_states(grouped);
        let bits = self.recording(grouped);
        self.groups.write(self.program.lane(), &states, bits)?;
        self.watch_events(triggers, |id| judged.get(&id) == Some(&true));
        Ok(())
    }

    /// The recorder watches events; those that the program judges, up to the ticks from which on it does.
    pub(super) fn watch_events(
        &mut self,
        triggers: &HashMap<u16, Vec<TriggerFilter>>,
        is_judged: impl Fn(u16) -> bool,
    ) {
        let contexts = self.program.known().contexts.clone();
        let facts = ProgramConstants { pid: Some(self.who.identity.pid), contexts: &contexts };
        // Threads that had read the control byte before may still record.
        let now = ticks(self.who.identity.clock);
        let settled = now.saturating_add(self.ticks_of(SETTLES_NS));
        let before = std::mem::take(&mut self.judged);
        for (id, all) in triggers {
            let Some(class) = self.program.known().events.get(usize::from(*id)).and_then(Option::as_ref) else {
                continue;
            };
            for trigger in all.iter().filter(|trigger| !trigger.has_rule) {
                let mut until = u64::MAX;
                if trigger.number.is_some() && is_judged(*id) {
                    let key = (*id, trigger.name.clone(), trigger.epoch);
                    // Matches that the program counts must not count twice.
                    let first = if trigger.counts { now } else { settled };
                    until = before.get(&key).copied().unwrap_or(first);
                    self.judged.insert(key, until);
                }
                let name = (trigger.name.clone(), &trigger.filter);
                self.watch.add(*id, class, facts, name, trigger.since..=until);
            }
        }
        // Events that are not switched again.
        let others = before.into_iter().filter(|((id, ..), _)| !self.unsettled.contains(id));
        self.judged.extend(others.collect::<Vec<_>>());
    }

    /// Remembers why the program does not judge an event.
    fn watch_all(&mut self, triggers: &[TriggerFilter], placed: &Placed) {
        for trigger in triggers {
            let why = placed.why.iter().map(ToString::to_string);
            self.watched.entry(trigger.name.clone()).or_default().extend(why);
        }
    }

    /// Puts judgements of events into the program.
    fn judge(&mut self, events: &[JudgedEvent<'_>], compiler: &mut FilterCompiler) -> io::Result<Vec<Placed>> {
        let mut placer = match self.placer.take() {
            Some(placer) => placer,
            None => Placer::new(&self.program, self.found.user)?,
        };
        let placed = placer.judge(self.program.lane(), compiler, events);
        // Before the error below returns: the placer knows which slots are in use.
        self.placer = Some(placer);
        placed
    }

    /// Armed triggers, by event that is not switched yet.
    pub(super) fn trigger_filters(&self, sessions: &[&RecordingSession]) -> HashMap<u16, Vec<TriggerFilter>> {
        let facts = ProgramConstants { pid: Some(self.who.identity.pid), contexts: &self.program.known().contexts };
        let (mut all, candidate) = (HashMap::<u16, Vec<TriggerFilter>>::new(), self.who.candidate());
        let tells = self.program.lane().triggers_tell().unwrap_or(false);
        for session in sessions {
            for trigger in session.triggers.all().iter().filter(|trigger| trigger.is_armed) {
                let options = &trigger.options;
                // Without a group, the program could not tell whether the trigger has an effect.
                let group = session.triggers.group(self.key());
                let number = group.and_then(|_| session.triggers.number(self.key(), &options.name));
                let may = !options.is_counted_later() && (tells || !options.effect.is_gate());
                let number = number.filter(|_| may);
                for id in &self.unsettled {
                    let class = self.program.known().events.get(usize::from(*id)).and_then(Option::as_ref);
                    let Some(class) =
                        class.filter(|class| options.rule.takes(&candidate, &class.full_name(), class.level))
                    else {
                        continue;
                    };
                    let filter = match &options.rule.filter {
                        None => Ok(ClassFilter::always()),
                        Some(text) => ClassFilter::of_texts([text.as_str()], class, facts),
                    };
                    // A filter that cannot be evaluated on events of a class is true of none of them.
                    let name = (session.name.clone(), options.name.clone());
                    let (epoch, since) = (trigger.epoch, trigger.since[self.who.identity.clock as usize]);
                    all.entry(*id).or_default().extend(filter.ok().map(|filter| TriggerFilter {
                        name,
                        number,
                        filter,
                        counts: options.after.is_some_and(|count| count > 1),
                        has_rule: options.asks.is_some(),
                        epoch,
                        since,
                    }));
                }
            }
        }
        all
    }

    /// States of triggers in this program, by number.
    fn trigger_states(&self, grouped: &[&RecordingSession]) -> HashMap<u8, TriggerState> {
        let key = self.key();
        let mut states = HashMap::new();
        for session in grouped {
            let Some(group) = session.triggers.group(key) else { continue };
            for trigger in session.triggers.all() {
                let Some(number) = session.triggers.number(key, &trigger.options.name) else { continue };
                let action = match trigger.options.effect {
                    TriggerEffect::Start => TriggerAction::Start,
                    TriggerEffect::Stop => TriggerAction::Stop,
                    TriggerEffect::Snapshot => TriggerAction::Snapshot,
                    TriggerEffect::Open | TriggerEffect::Close => TriggerAction::Tell,
                };
                let interval = trigger.options.interval_ns.map_or(0, |ns| self.ticks_of(ns));
                let (epoch, is_armed, repeats) = (trigger.epoch, trigger.is_armed, trigger.options.repeats);
                let (count, groups) = (trigger.options.after.unwrap_or(1), 1 << group);
                let is_always = self.is_unsure(session) && action == TriggerAction::Start;
                let state = TriggerState { epoch, is_armed, repeats, is_always, interval, count, action, groups };
                states.insert(number, state);
            }
        }
        states
    }

    /// Firings of the program that are new.
    pub(crate) fn learn_firings(&mut self) -> io::Result<LearnedFirings> {
        let (clock, margin) = (self.who.identity.clock, self.ticks_of(SETTLES_NS));
        // Other processors' counters may be ahead.
        self.groups.learn(self.program.lane(), || ticks(clock).saturating_add(margin))
    }

    /// Ticks of the program's clock in that time.
    pub(super) fn ticks_of(&self, ns: u64) -> u64 {
        u64::try_from(u128::from(ns) * u128::from(self.frequency) / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// Whether it is not known yet if a session records in this program. A start that counts would count what it should not.
    fn is_unsure(&self, session: &RecordingSession) -> bool {
        let counts = |trigger: &SessionTrigger| {
            trigger.options.effect == TriggerEffect::Start && trigger.options.after.is_some_and(|count| count > 1)
        };
        !matches!(self.first, FirstJudgements::None | FirstJudgements::Read)
            && !session.triggers.all().iter().any(counts)
    }

    /// Groups of sessions that record in this program now, or may do so, one bit each.
    fn recording(&self, grouped: &[&RecordingSession]) -> u8 {
        let identity = &self.who.identity;
        let now = ticks(identity.clock);
        let is_on = |session: &&&RecordingSession| {
            session.triggers.is_on(identity.key, identity.clock, now) || self.is_unsure(session)
        };
        let groups = grouped.iter().filter(is_on).filter_map(|session| session.triggers.group(identity.key));
        groups.fold(0, |bits, group| bits | 1 << group)
    }

    /// A firing in this program, with the trigger that it is of; `None`: no session knows it, or one knows it
    /// already.
    pub(crate) fn fired(
        &self,
        firing: &Firing,
        sessions: &mut [RecordingSession],
        clocks: &mut WatchedClocks,
    ) -> Option<(TriggerName, ProgramFiring)> {
        let key = self.key();
        let name = sessions.iter_mut().find_map(|session| {
            let places = session.triggers.places.get_mut(&key)?;
            let (name, _) = places.triggers.iter().find(|(_, number)| **number == firing.trigger)?;
            let name = (session.name.clone(), name.clone());
            let is_new = places.firings <= firing.number;
            places.firings = places.firings.max(firing.number + 1);
            is_new.then_some(name)
        })?;
        Some((name, self.told(firing, clocks, false)))
    }

    /// Firings that the recorder finds in recorded events.
    pub(crate) fn watch(
        &mut self,
        sessions: &mut [RecordingSession],
        clocks: &mut WatchedClocks,
    ) -> Vec<(TriggerName, ProgramFiring)> {
        let now = ticks(self.who.identity.clock);
        self.first = match self.first {
            FirstJudgements::Until(until) if until < now => FirstJudgements::NextLook,
            FirstJudgements::NextLook => FirstJudgements::Read,
            other => other,
        };
        let unjudged = if self.program.has_triggers() { self.program.lane().unjudged().unwrap_or(0) } else { 0 };
        for id in self.refused() {
            self.watch.goes_on(id);
            self.judged.retain(|(of, ..), _| *of != id);
        }
        if self.watch.has_unjudged(unjudged) {
            self.watch.watches_until = now.saturating_add(self.ticks_of(SEEN_NS));
        }
        if !self.watch.is_needed(now.saturating_sub(self.ticks_of(SEEN_NS))) {
            return Vec::new();
        }
        let fired = self.watch.look(&mut self.program);
        if fired.unknown > 0 {
            let its = sessions.iter_mut().filter(|session| session.triggers.is_limited());
            its.filter(|session| session.takes_program(&self.who)).for_each(|session| self.tell_missed(session));
        }
        fired.firings.into_iter().map(|(name, firing)| (name, self.told(&firing, clocks, true))).collect()
    }

    /// Events whose judgements the program could not read, or may not run.
    fn refused(&self) -> BTreeSet<u16> {
        let is_refused = |id: &u16| {
            let slot = self.placed.get(id).map_or(0, |placed| placed.control);
            slot > 1 && matches!(self.program.lane().runs(slot), Ok(FilterEngine::Not))
        };
        self.judged.keys().map(|(id, ..)| *id).filter(is_refused).collect()
    }

    /// A firing in words.
    fn told(&self, firing: &Firing, clocks: &mut WatchedClocks, is_late: bool) -> ProgramFiring {
        let clock = clocks.of(self.who.identity.clock);
        let frequency = clock.frequency();
        // From now back: it was not long ago.
        let now = clock.sample();
        let since = i128::from(now.ticks.saturating_sub(firing.ticks)) * 1_000_000_000 / i128::from(frequency.max(1));
        let event = self.program.known().events.get(usize::from(firing.event)).and_then(Option::as_ref);
        let told = TriggerFiring {
            ns: i64::try_from(i128::from(now.realtime_ns) - since).unwrap_or(0),
            ticks: firing.ticks,
            event: event.map_or_else(String::new, |class| class.full_name()),
            program: self.who.identity.name.clone(),
            pid: self.who.pid.unwrap_or(self.who.identity.pid),
            tid: firing.tid,
            is_late,
            is_exact: is_late,
        };
        let (program, vpid, clock) = (self.key(), self.who.identity.pid, self.who.identity.clock);
        let frequencies = [ClockSource::Counter, ClockSource::Monotonic].map(|source| clocks.of(source).frequency());
        ProgramFiring { program, vpid, clock, firing: *firing, told, frequencies }
    }

    /// Adds the state of a trigger in this program to its status.
    pub(crate) fn add_trigger(&self, session: &str, status: &mut TriggerStatus, triggers: &SessionTriggers) {
        let name = &status.options.name;
        let place = (session.to_owned(), name.clone());
        let why: Vec<String> = match (triggers.group(self.key()), triggers.number(self.key(), name)) {
            _ if !self.program.has_triggers() => {
                vec!["a program is built with a tracer that is older than triggers".to_owned()]
            }
            _ if status.options.is_counted_later() => {
                status.counted = status.counted.max(triggers.counted(self.key(), name));
                vec!["it counts events".to_owned()]
            }
            (Some(_), Some(number)) => {
                status.suppressed += self.program.lane().suppressed(number).unwrap_or(0);
                let counted = self.program.lane().counted(number).unwrap_or(0) + triggers.counted(self.key(), name);
                status.counted = status.counted.max(counted);
                self.watched.get(&place).into_iter().flatten().cloned().collect()
            }
            _ => vec!["a program has too many triggers, or sessions with triggers".to_owned()],
        };
        let is_watched = !why.is_empty() || self.watched.contains_key(&place);
        status.programs += u64::from(!is_watched);
        status.watched += u64::from(is_watched);
        status.why.extend(why.into_iter().filter(|why| !status.why.contains(why)).collect::<Vec<_>>());
    }

    /// The program is gone, or the sessions end: its counts stay with them.
    pub(crate) fn leave_counts(&self, sessions: &mut [RecordingSession]) {
        self.leave_objects(sessions);
        for session in sessions.iter_mut().filter(|session| session.takes_program(&self.who)) {
            for mut status in session.triggers.statuses(|_, _| None) {
                (status.suppressed, status.counted) = (0, 0);
                self.add_trigger(&session.name, &mut status, &session.triggers);
                session.triggers.leaves(&status.options.name, status.suppressed, status.counted);
            }
            for mut status in session.rules.statuses() {
                self.add_rule(&mut status, &session.rules);
                session.rules.leaves(status);
            }
        }
    }

    /// Tells sessions which of these events there are: triggers may match them.
    pub(super) fn tell_events(&self, ids: &[u16], sessions: &mut [RecordingSession]) {
        let facts = ProgramConstants { pid: Some(self.who.identity.pid), contexts: &self.program.known().contexts };
        let class = |id: &u16| self.program.known().events.get(usize::from(*id))?.as_ref();
        let is_asked =
            |session: &&mut RecordingSession| !session.triggers.all().is_empty() && session.takes_program(&self.who);
        for session in sessions.iter_mut().filter(is_asked) {
            ids.iter().filter_map(class).for_each(|class| session.triggers.sees(&self.who.candidate(), class, facts));
        }
    }

    /// Tells sessions of firings that are not known.
    pub(crate) fn tell_unknown(&self, learned: &LearnedFirings, sessions: &mut [RecordingSession]) {
        let (name, pid) = (&self.who.identity.name, self.who.pid.unwrap_or(self.who.identity.pid));
        let its = sessions.iter_mut().filter(|session| session.triggers.group(self.key()).is_some());
        for session in its {
            if learned.unknown > 0 {
                self.tell_missed(session);
            }
            if learned.is_stuck {
                session.problem(format!(
                    "{name} (process {pid}): a thread does not run while it fires a trigger: events after that may be in the trace"
                ));
            }
        }
    }

    fn tell_missed(&self, session: &mut RecordingSession) {
        let (name, pid) = (&self.who.identity.name, self.who.pid.unwrap_or(self.who.identity.pid));
        session.problem(format!(
            "{name} (process {pid}): triggers fired more often than the recorder could follow: between them, the trace \
             may have events that it should not have, or lack some"
        ));
    }

    /// Sessions that triggers control may have started or stopped: the program follows.
    pub(crate) fn follow(&mut self, sessions: &[RecordingSession]) -> io::Result<()> {
        if !self.groups.is_used() {
            return Ok(());
        }
        let key = self.key();
        let its =
            |session: &&RecordingSession| session.takes_program(&self.who) && session.triggers.group(key).is_some();
        let grouped: Vec<&RecordingSession> = sessions.iter().filter(its).collect();
        for session in &grouped {
            for (number, counted) in session.triggers.counts(key) {
                self.groups.count(self.program.lane(), number, counted)?;
            }
        }
        let bits = self.recording(&grouped);
        if self.groups.follow(self.program.lane(), bits)? {
            self.groups.draw(self.program.lane())?;
        }
        // A firing that is not known yet comes first: then the next look tells.
        if self.first == FirstJudgements::Read && self.groups.is_as(self.program.lane(), bits)? {
            let states = self.trigger_states(&grouped);
            self.groups.write(self.program.lane(), &states, bits)?;
            self.first = FirstJudgements::None;
        }
        Ok(())
    }

    /// Gives sessions that triggers control their groups in this program, and the triggers their numbers.
    pub(crate) fn assign(&mut self, sessions: &mut [RecordingSession], clocks: &mut WatchedClocks) {
        let key = self.key();
        let is_limited = |session: &RecordingSession| session.needs_group() && session.takes_program(&self.who);
        if !sessions.iter().any(is_limited) {
            return;
        }
        if !self.program.has_triggers() {
            let all = (0..sessions.len()).filter(|at| is_limited(&sessions[*at])).collect::<Vec<_>>();
            return all.into_iter().for_each(|at| self.assign_rules(at, sessions));
        }
        if self.frequency == 0 {
            self.frequency = clocks.of(self.who.identity.clock).frequency();
        }
        let known = sessions.iter().filter_map(|session| Some(session.triggers.places.get(&key)?.firings));
        let firings = self.groups.next_firing(self.program.lane());
        self.groups.begin(known.min().unwrap_or(firings));
        for at in 0..sessions.len() {
            if !is_limited(&sessions[at]) {
                continue;
            }
            let places = || sessions.iter().filter_map(|session| session.triggers.places.get(&key));
            let groups: Vec<u8> = places().filter_map(|places| places.group).collect();
            let mut numbers: Vec<u8> = places().flat_map(|places| places.triggers.values().copied()).collect();
            let names: Vec<String> =
                sessions[at].triggers.all().iter().map(|trigger| trigger.options.name.clone()).collect();
            let new = || TriggerPlaces { firings, ..TriggerPlaces::default() };
            let own = sessions[at].triggers.places.entry(key).or_insert_with(new);
            own.group = own.group.or_else(|| (0..GROUPS_MAX as u8).find(|group| !groups.contains(group)));
            for name in names {
                if own.triggers.contains_key(&name) {
                    continue;
                }
                if let Some(number) = (0..TRIGGERS_MAX as u8).find(|number| !numbers.contains(number)) {
                    numbers.push(number);
                    own.triggers.insert(name, number);
                }
            }
            self.assign_rules(at, sessions);
            // A recorder that goes on after this one needs the numbers.
            sessions[at].keep_again();
        }
    }
}
