//! Triggers that the recorder watches, in the events that a program has recorded: the program cannot judge
//! them, or could not yet when they happened.
//!
//! ```text
//! look ── peek ──> events of watched classes ── filter: yes ──> firing, later than it happened ── windows ──> take
//! ```

use std::collections::HashMap;
use std::ops::RangeInclusive;

use kymo_lane::{Firing, TriggerAction};
use kymo_schema::definition::EventClass;

use crate::filters::{ClassFilter, ProgramConstants, RecordedEvent, RecorderFilter};
use crate::program::run::EventRun;
use crate::program::walk::{
    self, EventFate, EventTreatment, EventVerdict, EventWalk, JudgeEvents, TickRange, TreatmentTable, WalkStop,
};
use crate::program::{Program, ProgramFacts};

/// Most firings that are found in one look: those behind them are not known.
const FIRINGS_MAX: usize = 1 << 18;

/// A session, and a trigger of it.
pub(crate) type TriggerName = (String, String);

/// Triggers of a program's events.
#[derive(Debug, Default)]
pub(crate) struct TriggerWatch {
    /// By event.
    triggers: HashMap<u16, Vec<WatchedTrigger>>,
    /// Events that the program has recorded without judgements.
    unjudged: u64,
    /// Such events may come until these ticks.
    pub(crate) watches_until: u64,
    /// Verdicts at the end of what was seen of a lane: their events come.
    verdicts: HashMap<u16, EventVerdict>,
    /// Tables, by the contexts that events carry.
    tables: HashMap<u64, TreatmentTable>,
}

/// A trigger of events of one class.
#[derive(Debug)]
struct WatchedTrigger {
    name: TriggerName,
    filter: RecorderFilter,
    /// Earlier events were before it was armed; the program judges later ones itself.
    range: RangeInclusive<u64>,
}

/// Firings among the events of a look.
#[derive(Debug, Default)]
pub(crate) struct WatchedFirings {
    pub(crate) firings: Vec<(TriggerName, Firing)>,
    /// Those beyond them.
    pub(crate) unknown: u64,
}

impl TriggerWatch {
    /// Watches nothing any more.
    pub(crate) fn clear(&mut self) {
        self.triggers.clear();
        self.tables.clear();
    }

    /// Watches events with an ID, of these ticks.
    pub(crate) fn add(
        &mut self,
        id: u16,
        class: &EventClass,
        facts: ProgramConstants<'_>,
        (name, filter): (TriggerName, &ClassFilter),
        range: RangeInclusive<u64>,
    ) {
        let filter = filter.asked(class, facts);
        self.triggers.entry(id).or_default().push(WatchedTrigger { name, filter, range });
        self.tables.clear();
    }

    /// The program does not judge an event after all.
    pub(crate) fn goes_on(&mut self, id: u16) {
        for trigger in self.triggers.get_mut(&id).into_iter().flatten() {
            trigger.range = *trigger.range.start()..=u64::MAX;
        }
    }

    /// Whether the program has recorded more events without judgements.
    pub(crate) fn has_unjudged(&mut self, now: u64) -> bool {
        std::mem::replace(&mut self.unjudged, now) != now
    }

    /// Whether it watches events that are later than these ticks.
    pub(crate) fn is_needed(&self, ticks: u64) -> bool {
        self.watches_until >= ticks || self.triggers.values().flatten().any(|trigger| *trigger.range.end() >= ticks)
    }

    /// Firings among the events of the program's last look.
    pub(crate) fn look(&mut self, program: &mut Program) -> WatchedFirings {
        let mut fired = WatchedFirings::default();
        if self.triggers.is_empty() {
            return fired;
        }
        // If the program is gone, the next look reports that.
        let _ = program.peek(&mut |known, run| self.look_at(known, run, &mut fired));
        fired
    }

    fn look_at(&mut self, known: &ProgramFacts, run: &EventRun<'_>, fired: &mut WatchedFirings) {
        let Some(carried) = walk::carried(known, run.contexts) else { return };
        let table = self.tables.entry(run.contexts).or_insert_with(|| TreatmentTable::new(&carried));
        let mut bytes = run.bytes.to_vec();
        let parts = [(0, u32::MAX)];
        let times = TickRange::of(run, &parts, crate::clock::step_max(known.identity.clock));
        let mut walk = EventWalk::begin();
        walk.verdict = self.verdicts.remove(&run.lane);
        loop {
            let mut judge = WatchJudge { triggers: &self.triggers, table, run, fired };
            let WalkStop::Unknown(id) = table.walk(&mut bytes, &times, &mut walk, &mut judge) else {
                self.verdicts.extend(walk.verdict.map(|verdict| (run.lane, verdict)));
                return;
            };
            let is_watched = self.triggers.contains_key(&id);
            let treatment = if is_watched { EventTreatment::Ask(0) } else { EventTreatment::Drop };
            match (known.events.get(usize::from(id)).and_then(Option::as_ref), known.refused.get(&id)) {
                (Some(class), _) => table.say(id, &class.fields, treatment),
                (None, Some(fields)) => table.say(id, fields, EventTreatment::Drop),
                (None, None) => return,
            }
        }
    }
}

/// Notes firings during a walk.
struct WatchJudge<'a, 'f> {
    triggers: &'a HashMap<u16, Vec<WatchedTrigger>>,
    table: &'a TreatmentTable,
    run: &'a EventRun<'a>,
    fired: &'f mut WatchedFirings,
}

impl JudgeEvents for WatchJudge<'_, '_> {
    fn passes(&mut self, id: u16, offset: u32, event: &[u8], verdict: Option<&EventVerdict>) -> EventFate {
        let ticks = self.run.begin + u64::from(offset);
        let (carried, fields) = event.split_at(self.table.context_bytes(event));
        let (thread, contexts) = (&self.run.thread, self.run.contexts);
        let is_unjudged = verdict.is_some_and(|verdict| verdict.is_unjudged);
        for trigger in self.triggers.get(&id).into_iter().flatten() {
            let event = RecordedEvent { thread, contexts, carried, fields };
            let (first, last) = (*trigger.range.start(), *trigger.range.end());
            // The program has judged it.
            let is_told = verdict.is_some() && !is_unjudged && last < u64::MAX;
            if ticks < first || is_told || !is_unjudged && ticks > last || !trigger.filter.keeps(&event) {
                continue;
            }
            if self.fired.firings.len() == FIRINGS_MAX {
                self.fired.unknown += 1;
                continue;
            }
            let (number, action, groups) = (0, TriggerAction::Start, 0);
            let tid = self.run.thread.tid;
            let firing = Firing { number, ticks, trigger: 0, action, groups, event: id, tid };
            self.fired.firings.push((trigger.name.clone(), firing));
        }
        EventFate::Drop
    }

    fn forces(&mut self, _: u32, _: &EventVerdict) -> bool {
        false
    }
}
