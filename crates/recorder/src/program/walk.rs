//! Walks from event to event, over bytes that may have any value.
//!
//! ```text
//! id u16 │ ticks u32, the low half │ contexts │ fields         packed, one event behind the other
//! ```
//!
//! Readers can decode all events that a walk accepts: each id is known, each event ends within the
//! bytes, and times step neither back nor beyond the last one. After a thread moved to a processor
//! with a counter slightly behind, its next event gets the time of the one before, and is counted.
//! At the first violation the walk ends, and no byte after it is believed. On the way the walk
//! replaces ids by those of the trace, and closes the gaps of events that no session wants.
//!
//! For each id of a program, one word of a table tells the walk how to treat its events, so that
//! events of fixed size cost one look:
//!
//! ```text
//! 63 ... 32                    19 ... 16                                            15 ... 0
//! bytes behind the head, or    not known │ keep │ drop │ ask │ lose │ refuse, and   id in the trace
//! where its steps begin        the same for those whose size has to be found out
//! ```

use std::collections::HashMap;

use kymo_lane::{VERDICT_BYTES, VERDICT_ID, VERDICT_KEPT, VERDICT_MORE, VERDICT_UNJUDGED, contexts};
use kymo_schema::definition;
use kymo_schema::field::{ByteCount, DefinedField, FieldType, IntegerType, ScalarType};
use kymo_writer::EVENT_HEAD_BYTES;

use crate::program::ProgramFacts;
use crate::program::run::EventRun;

const _: () =
    assert!(contexts::OWN_MAX == definition::CONTEXTS_MAX, "lanes have room for the contexts that can be defined");

/// How to treat events of one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTreatment {
    /// The trace keeps them, with this id.
    Keep(u16),
    /// The trace drops them.
    Drop,
    /// A filter decides on each.
    Ask(u16),
    /// The same; those with a known begin have the second ID, and the time since then behind their fields.
    AskSince(u16, u16),
    /// They cannot be kept, and are counted.
    Lose,
    /// Their definition cannot be used: they are counted, and skipped.
    Refuse,
}

/// How to treat events of a program, for sub-buffers that carry the same contexts.
#[derive(Clone, Debug)]
pub struct TreatmentTable {
    entries: Vec<u64>,
    steps: Vec<WalkStep>,
    contexts: Vec<WalkStep>,
    /// IDs of events with the time since their begin, by ID of the program.
    since: HashMap<u16, u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalkStep {
    /// So many bytes.
    Fixed(u32),
    /// `u16`: a count of elements, of so many bytes each.
    Counted(u32),
    /// The contexts end here, or the event does.
    End,
}

const KEEP: u64 = 1;
const DROP: u64 = 2;
const ASK: u64 = 3;
const LOSE: u64 = 4;
const REFUSE: u64 = 5;
const VARIABLE: u64 = 8;
const WHAT: u64 = 0xf;

/// Progress of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventWalk {
    /// Bytes that were read, and those of them that are kept: they come first.
    pub read: usize,
    /// See [`EventWalk::read`].
    pub kept: usize,
    /// Events that are kept.
    pub events: u64,
    /// Events that are lost because they cannot be kept.
    pub lost: u64,
    /// Events with definitions that cannot be used.
    pub refused: u64,
    /// Events outside of the window.
    pub outside: u64,
    /// Events with times slightly before the event before them, or after the last one: they get
    /// that one's time.
    pub stepped: u64,
    /// A verdict about the next event of its ID. It may stand at the end of one run, and its event at
    /// the begin of the next one.
    pub verdict: Option<EventVerdict>,
    /// Ticks from the begin to the first event that is kept.
    pub first: u32,
    /// Ticks from the begin to the last event.
    offset: u32,
}

/// Bytes of the time since a begin, behind the fields of an event.
pub const SINCE_BYTES: usize = 8;

/// Words of a program about its next event with an ID: it has fired triggers, or rules keep it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventVerdict {
    /// The event's ID.
    pub event: u16,
    /// Groups of sessions that keep the event.
    pub groups: u8,
    /// Triggers that it has fired, one bit each.
    pub triggers: u32,
    /// First and last number of the changes of these.
    pub changes: [u32; 2],
    /// The program has not judged it.
    pub is_unjudged: bool,
    /// Groups of sessions whose filters and rules keep it, while they record; `None`: no rule was asked.
    pub kept: Option<u8>,
    /// Ticks since its begin, by group; 0: none is known.
    pub since: [u64; 8],
}

impl EventVerdict {
    /// A verdict, which may go on with the one before.
    fn of(bytes: &[u8], before: Option<Self>) -> Option<Self> {
        let [e0, e1, groups, flags, t0, t1, t2, t3, ref last @ ..] = *bytes else { return None };
        let event = u16::from_le_bytes([e0, e1]);
        let mut verdict =
            before.filter(|before| flags & VERDICT_MORE != 0 && before.event == event).unwrap_or_default();
        verdict.event = event;
        let (first, second) = last.split_first_chunk::<4>()?;
        let [first, second] = [*first, *second.first_chunk::<4>()?].map(u32::from_le_bytes);
        if flags & VERDICT_KEPT == 0 {
            verdict.groups |= groups;
            verdict.triggers |= u32::from_le_bytes([t0, t1, t2, t3]);
            verdict.changes = [first, second];
            verdict.is_unjudged |= flags & VERDICT_UNJUDGED != 0;
        } else {
            verdict.kept = Some(verdict.kept.unwrap_or(0) | groups);
            let since = u64::from(second) << 32 | u64::from(first);
            let its = verdict.since.iter_mut().enumerate().filter(|(group, _)| groups >> group & 1 != 0);
            its.for_each(|(_, of)| *of = since);
        }
        Some(verdict)
    }

    /// Whether rules keep the event for a session with this group, as a bit, and for how long its begin is past, in
    /// ticks; `None`: the program has not asked them.
    #[must_use]
    pub fn kept_by_rules(&self, group: u8) -> Option<Option<u64>> {
        let kept = self.kept.filter(|_| group != 0 && !self.is_unjudged)?;
        Some((kept & group != 0).then(|| self.since[group.trailing_zeros() as usize % 8]))
    }
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFate {
    /// It is dropped.
    Drop,
    /// It is kept.
    Keep,
    /// It is kept, so many nanoseconds after its begin.
    KeepSince(u64),
}

impl EventFate {
    /// Kept or not.
    #[must_use]
    pub fn of(is_kept: bool) -> Self {
        if is_kept { Self::Keep } else { Self::Drop }
    }
}

/// Decides on events of a walk.
pub trait JudgeEvents {
    /// Whether to keep an event, by its ID in the program, with its time in ticks after the begin of the run, the
    /// bytes after its head, and its verdict.
    fn passes(&mut self, id: u16, offset: u32, event: &[u8], verdict: Option<&EventVerdict>) -> EventFate;

    /// Nanoseconds since the begin of an event that is kept anyway; `None`: none is known.
    fn since(&self, _: &EventVerdict) -> Option<u64> {
        None
    }

    /// An event is kept, so many ticks after the begin of the run.
    fn keeps(&mut self, _: u32) {}

    /// Whether the verdict about an event keeps it, at any time: its own is so many ticks after the begin of the run.
    fn forces(&mut self, offset: u32, verdict: &EventVerdict) -> bool;
}

/// Possible times, in ticks after the begin of the run's sub-buffer or the event before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickRange<'w> {
    /// The low half of the ticks at the begin.
    pub begin: u32,
    /// Ticks from there to the last event.
    pub span: u32,
    /// Ticks from there to the first event that is wanted.
    pub first: u32,
    /// Ticks from there to the last event that is wanted; a value before the first one means that
    /// none is.
    pub last: u32,
    /// Later times that are wanted too, first and last ones, in order.
    pub more: &'w [(u32, u32)],
    /// How many ticks a time may be before the one before it.
    pub back: u32,
    /// Ticks of the first and the last event that a verdict may keep.
    pub judged: (u32, u32),
}

/// Ticks after the begin of a run.
fn within(run: &EventRun<'_>, ticks: u64) -> u32 {
    ticks.saturating_sub(run.begin).min(u32::MAX.into()) as u32
}

/// The parts of a run that are wanted, and not before `earliest`: first and last ticks after its begin.
pub(crate) fn wanted_parts(run: &EventRun<'_>, windows: &[(u64, u64)], earliest: u64) -> Vec<(u32, u32)> {
    let windows = windows.iter().map(|(first, last)| ((*first).max(earliest), *last));
    let its = windows.filter(|(first, last)| *first <= run.last && *last >= run.begin);
    its.map(|(first, last)| (within(run, first), within(run, last))).collect()
}

impl<'w> TickRange<'w> {
    /// Times of a run, of which those [parts](wanted_parts) are wanted.
    pub(crate) fn of(run: &EventRun<'_>, parts: &'w [(u32, u32)], back: u32) -> Self {
        // Without any, the run has no event that is wanted.
        let ((first, last), more) = parts.split_first().map_or(((1, 0), &[][..]), |(part, more)| (*part, more));
        let judged = (0, u32::MAX);
        Self { begin: run.begin as u32, span: within(run, run.last), first, last, more, back, judged }
    }

    /// Verdicts keep only events between these ticks of the clock, both included.
    pub(crate) fn judged(self, run: &EventRun<'_>, (first, last): (u64, u64)) -> Self {
        Self { judged: (within(run, first), within(run, last)), ..self }
    }

    /// Corrects a time that is not between the event before and the last one; `None`: it is no
    /// event. A small difference is a step; only a large one has wrapped.
    #[cold]
    fn stepped(&self, offset: u32, before: u32) -> Option<u32> {
        if offset > self.span && offset - self.span <= self.back {
            return Some(self.span);
        }
        (before.wrapping_sub(offset) <= self.back).then_some(before)
    }
}

/// The wanted times of a run that a walk has come to.
struct WantedPart<'w> {
    first: u64,
    ticks: u64,
    last: u32,
    more: &'w [(u32, u32)],
}

impl<'w> WantedPart<'w> {
    fn of(times: &TickRange<'w>) -> Self {
        Self { more: times.more, ..Self::new(times.first, times.last) }
    }

    fn new(first: u32, last: u32) -> Self {
        Self { first: first.into(), ticks: (u64::from(last) + 1).saturating_sub(first.into()), last, more: &[] }
    }

    #[inline]
    fn lacks(&self, offset: u32) -> bool {
        u64::from(offset).wrapping_sub(self.first) >= self.ticks
    }

    /// Turns to the part that may have a time, if this one is over.
    #[cold]
    fn turn(&mut self, offset: u32) -> &Self {
        while offset > self.last
            && let Some(((first, last), more)) = self.more.split_first()
        {
            *self = Self { more, ..Self::new(*first, *last) };
        }
        self
    }
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStop {
    /// The walk reached the end of the bytes.
    End,
    /// The table does not have this id; once it does, the walk can go on.
    Unknown(u16),
    /// The next bytes are not an event.
    Broken,
}

impl EventWalk {
    /// Before the first event.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            read: 0,
            kept: 0,
            events: 0,
            refused: 0,
            lost: 0,
            outside: 0,
            stepped: 0,
            verdict: None,
            first: 0,
            offset: 0,
        }
    }

    /// The same where the events begin behind so many bytes that are free, so that what is kept may be longer.
    #[must_use]
    pub fn begin_behind(free: usize) -> Self {
        Self { read: free, ..Self::begin() }
    }
}

impl TreatmentTable {
    /// For events that carry these contexts.
    #[must_use]
    pub fn new(contexts: &[DefinedField]) -> Self {
        let mut steps = Vec::new();
        contexts.iter().for_each(|field| add(&mut steps, &field.kind));
        Self { entries: Vec::new(), steps: Vec::new(), contexts: steps, since: HashMap::new() }
    }

    /// Sets how to treat events of an id.
    pub fn say(&mut self, id: u16, fields: &[DefinedField], what: EventTreatment) {
        let mut steps = self.contexts.clone();
        fields.iter().for_each(|field| add(&mut steps, &field.kind));
        let (size, variable) = match steps[..] {
            [] => (0, 0),
            [WalkStep::Fixed(bytes)] => (bytes, 0),
            _ => {
                let begin = self.steps.len() as u32;
                self.steps.append(&mut steps);
                self.steps.push(WalkStep::End);
                (begin, VARIABLE)
            }
        };
        let (what, to) = match what {
            EventTreatment::Keep(to) => (KEEP, to),
            EventTreatment::Drop => (DROP, 0),
            EventTreatment::Ask(to) => (ASK, to),
            EventTreatment::AskSince(to, with_since) => {
                self.since.insert(id, with_since);
                (ASK, to)
            }
            EventTreatment::Lose => (LOSE, 0),
            EventTreatment::Refuse => (REFUSE, 0),
        };
        let at = usize::from(id);
        if self.entries.len() <= at {
            self.entries.resize(at + 1, 0);
        }
        self.entries[at] = u64::from(size) << 32 | (what | variable) << 16 | u64::from(to);
    }

    /// Bytes of the contexts that an event begins with.
    #[must_use]
    pub fn context_bytes(&self, event: &[u8]) -> usize {
        length(&self.contexts, event).unwrap_or(event.len())
    }

    /// Continues the walk; `judge` decides on events.
    pub fn walk(
        &self,
        bytes: &mut [u8],
        times: &TickRange<'_>,
        walk: &mut EventWalk,
        judge: &mut impl JudgeEvents,
    ) -> WalkStop {
        // Measured: an event of fixed size costs one look each at the table, the time and the size.
        let mut part = WantedPart::of(times);
        while walk.read < bytes.len() {
            let at = walk.read;
            let Some(head) = bytes.get(at..at + EVENT_HEAD_BYTES) else { return WalkStop::Broken };
            let id = u16::from_le_bytes([head[0], head[1]]);
            let mut offset = u32::from_le_bytes([head[2], head[3], head[4], head[5]]).wrapping_sub(times.begin);
            let entry = self.entries.get(usize::from(id)).copied().unwrap_or(0);
            let what = entry >> 16 & WHAT;
            let size = (entry >> 32) as usize;
            let size = match () {
                () if entry == 0 && id != VERDICT_ID => return WalkStop::Unknown(id),
                () if entry == 0 => self.verdict_length(&bytes[at + EVENT_HEAD_BYTES..]),
                () if what & VARIABLE == 0 => Some(size),
                () => self.length(size, &bytes[at + EVENT_HEAD_BYTES..]),
            };
            let end = size.map(|size| at + EVENT_HEAD_BYTES + size).filter(|end| *end <= bytes.len());
            let Some(end) = end else { return WalkStop::Broken };
            if offset < walk.offset || offset > times.span {
                let Some(time) = times.stepped(offset, walk.offset) else { return WalkStop::Broken };
                bytes[at + 2..at + EVENT_HEAD_BYTES].copy_from_slice(&times.begin.wrapping_add(time).to_le_bytes());
                (offset, walk.stepped) = (time, walk.stepped + 1);
            }
            (walk.offset, walk.read) = (offset, end);
            if entry == 0 {
                walk.verdict = EventVerdict::of(&bytes[end - VERDICT_BYTES as usize..end], walk.verdict.take());
                continue;
            }
            let verdict =
                if walk.verdict.is_some_and(|verdict| verdict.event == id) { walk.verdict.take() } else { None };
            let is_forced = verdict.is_some_and(|verdict| judge.forces(offset, &verdict))
                && (times.judged.0..=times.judged.1).contains(&offset);
            if part.lacks(offset) && !is_forced && part.turn(offset).lacks(offset) {
                walk.outside += 1;
                continue;
            }
            let fate = match what & !VARIABLE {
                KEEP => EventFate::Keep,
                ASK if is_forced => {
                    verdict.and_then(|verdict| judge.since(&verdict)).map_or(EventFate::Keep, EventFate::KeepSince)
                }
                ASK => judge.passes(id, offset, &bytes[at + EVENT_HEAD_BYTES..end], verdict.as_ref()),
                what => {
                    walk.lost += u64::from(what == LOSE);
                    walk.refused += u64::from(what == REFUSE);
                    EventFate::Drop
                }
            };
            if fate == EventFate::Drop {
                continue;
            }
            judge.keeps(offset);
            bytes[at..at + 2].copy_from_slice(&(entry as u16).to_le_bytes());
            if walk.kept != at {
                bytes.copy_within(at..end, walk.kept);
            }
            if let EventFate::KeepSince(nanos) = fate {
                self.add_since(id, nanos, (at, end), bytes, walk);
            }
            walk.first = if walk.events == 0 { offset } else { walk.first };
            walk.kept += end - at;
            walk.events += 1;
        }
        WalkStop::End
    }

    /// Adds the time since its begin to an event that was moved to its place: its verdict was longer, and is gone.
    #[cold]
    fn add_since(&self, id: u16, nanos: u64, (at, end): (usize, usize), bytes: &mut [u8], walk: &mut EventWalk) {
        let place = walk.kept + (end - at);
        let Some(with_since) = self.since.get(&id).filter(|_| place + SINCE_BYTES <= end) else { return };
        bytes[walk.kept..walk.kept + 2].copy_from_slice(&with_since.to_le_bytes());
        bytes[place..place + SINCE_BYTES].copy_from_slice(&nanos.to_le_bytes());
        walk.kept += SINCE_BYTES;
    }

    /// Bytes of a verdict behind its head: the contexts come first.
    #[cold]
    fn verdict_length(&self, event: &[u8]) -> Option<usize> {
        Some(length(&self.contexts, event)? + VERDICT_BYTES as usize)
    }

    #[inline(never)]
    fn length(&self, begin: usize, event: &[u8]) -> Option<usize> {
        length(&self.steps[begin..], event)
    }
}

/// How many bytes the steps take; `None`: more than there are.
fn length(steps: &[WalkStep], event: &[u8]) -> Option<usize> {
    let mut at = 0_usize;
    for step in steps {
        match *step {
            WalkStep::Fixed(bytes) => at += bytes as usize,
            WalkStep::Counted(bytes) => {
                let count = event.get(at..at + 2)?;
                at += 2 + usize::from(u16::from_le_bytes([count[0], count[1]])) * bytes as usize;
            }
            WalkStep::End => break,
        }
    }
    (at <= event.len()).then_some(at)
}

fn add(steps: &mut Vec<WalkStep>, kind: &FieldType) {
    let fixed = match kind.byte_count() {
        ByteCount::Fixed(bytes) => bytes,
        ByteCount::Counted(bytes) => return steps.push(WalkStep::Counted(bytes)),
    };
    match steps.last_mut() {
        Some(WalkStep::Fixed(bytes)) => *bytes = bytes.saturating_add(fixed),
        _ if fixed > 0 => steps.push(WalkStep::Fixed(fixed)),
        _ => {}
    }
}

/// Contexts that every program knows, in their order, with LTTng's names.
#[must_use]
pub fn context_fields(carried: u64) -> Vec<DefinedField> {
    let integer = |bytes, is_hex| ScalarType::Integer(IntegerType { bytes, is_signed: false, is_hex });
    let all = [
        (contexts::CPU, "cpu_id", FieldType::Scalar(integer(2, false))),
        (contexts::PID, "vpid", FieldType::Scalar(integer(4, false))),
        (contexts::TID, "vtid", FieldType::Scalar(integer(4, false))),
        (contexts::NAME, "procname", FieldType::FixedText(16)),
        (contexts::IP, "ip", FieldType::Scalar(integer(8, true))),
        (contexts::STACK, "callstack_user", FieldType::Sequence(integer(8, true))),
    ];
    let carried = all.into_iter().filter(|(bit, ..)| carried & bit != 0);
    carried.map(|(_, name, kind)| DefinedField { name: name.to_owned(), kind }).collect()
}

/// Contexts that the events carry; `None`: one of them is not defined by the program.
pub(crate) fn carried(program: &ProgramFacts, carried: u64) -> Option<Vec<DefinedField>> {
    let mut fields = context_fields(carried);
    if fields.len() != (carried % contexts::FIRST_OWN).count_ones() as usize {
        return None;
    }
    for own in 0..64 - contexts::FIRST_OWN.trailing_zeros() {
        if carried & contexts::FIRST_OWN << own != 0 {
            fields.push(program.contexts.get(own as usize)?.as_ref()?.field.clone());
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str, bytes: u8) -> DefinedField {
        DefinedField {
            name: name.to_owned(),
            kind: FieldType::Scalar(ScalarType::Integer(IntegerType::unsigned(bytes))),
        }
    }

    fn text(name: &str) -> DefinedField {
        DefinedField { name: name.to_owned(), kind: FieldType::Text }
    }

    fn event(id: u16, ticks: u32, fields: &[u8]) -> Vec<u8> {
        [&id.to_le_bytes(), &ticks.to_le_bytes()[..], fields].concat()
    }

    const ALL: TickRange<'_> = TickRange {
        begin: 0xffff_fff0,
        span: 100,
        first: 0,
        last: u32::MAX,
        more: &[],
        back: 0,
        judged: (0, u32::MAX),
    };

    /// Events that begin with 7 pass; verdicts for group 0 keep theirs.
    struct Sevens;

    impl JudgeEvents for Sevens {
        fn passes(&mut self, _: u16, _: u32, event: &[u8], verdict: Option<&EventVerdict>) -> EventFate {
            match verdict.and_then(|verdict| verdict.kept_by_rules(1)) {
                Some(None) => EventFate::Drop,
                Some(Some(ticks)) if ticks > 0 => EventFate::KeepSince(10 * ticks),
                _ => EventFate::of(event.first() == Some(&7)),
            }
        }

        fn forces(&mut self, _: u32, verdict: &EventVerdict) -> bool {
            verdict.groups & 1 != 0
        }
    }

    fn walked(table: &TreatmentTable, bytes: &[u8], times: &TickRange<'_>) -> (Vec<u8>, EventWalk, WalkStop) {
        let mut bytes = bytes.to_vec();
        let mut walk = EventWalk::begin();
        let stop = table.walk(&mut bytes, times, &mut walk, &mut Sevens);
        bytes.truncate(walk.kept);
        (bytes, walk, stop)
    }

    #[test]
    fn what_is_wanted_is_closed_up_with_the_ids_of_the_trace() {
        let mut table = TreatmentTable::new(&context_fields(contexts::CPU));
        table.say(0, &[number("a", 4)], EventTreatment::Keep(100));
        table.say(1, &[], EventTreatment::Drop);
        table.say(2, &[number("a", 1), text("b"), number("c", 2)], EventTreatment::Ask(101));
        let asked = [7, 0, 1, 2, 0, b'h', b'i', 3, 0];
        let others = [8, 0, 1, 0, 0, 3, 0];
        let bytes = [
            event(0, 0xffff_fff1, &[0, 0, 1, 2, 3, 4]),
            event(1, 0xffff_fff2, &[0, 0]),
            event(2, 1, &asked),
            event(2, 2, &others),
            event(0, 2, &[0, 0, 5, 6, 7, 8]),
        ];
        let (kept, walk, stop) = walked(&table, &bytes.concat(), &ALL);
        let wanted =
            [event(100, 0xffff_fff1, &[0, 0, 1, 2, 3, 4]), event(101, 1, &asked), event(100, 2, &[0, 0, 5, 6, 7, 8])];
        assert_eq!((kept, walk.events, stop), (wanted.concat(), 3, WalkStop::End));
        // Each event belongs to one of two windows.
        let (_, before, _) = walked(&table, &bytes.concat(), &TickRange { last: 17, ..ALL });
        let (_, behind, _) = walked(&table, &bytes.concat(), &TickRange { first: 18, ..ALL });
        assert_eq!((before.events, before.outside, behind.events, behind.outside), (2, 2, 1, 3));
        // An empty window has no events, at any time.
        let last = event(0, 0xffff_ffff, &[0, 0, 1, 2, 3, 4]);
        let (_, none, _) = walked(&table, &last, &TickRange { begin: 0, span: u32::MAX, first: 1, last: 0, ..ALL });
        assert_eq!((none.events, none.outside), (0, 1));
    }

    /// A session that starts and stops has the events of several windows, and those that start and stop it.
    #[test]
    fn windows_and_verdicts_decide() {
        let mut table = TreatmentTable::new(&[]);
        table.say(0, &[number("a", 1)], EventTreatment::Keep(0));
        table.say(1, &[number("a", 1)], EventTreatment::Ask(1));
        let verdict = |ticks: u32, id: u8, groups: u8| {
            event(VERDICT_ID, ticks, &[id, 0, groups, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        };
        let ticks = [10, 20, 30, 40, 50, 60];
        let all: Vec<u8> = ticks.into_iter().flat_map(|ticks| event(0, ticks, &[ticks as u8])).collect();
        let kept = |bytes: &[u8], times: &TickRange<'_>| {
            let (kept, walk, stop) = walked(&table, bytes, times);
            let values: Vec<u8> = kept.chunks(7).map(|event| event[6]).collect();
            (values, walk.outside, walk.verdict, stop)
        };
        let times = TickRange { begin: 0, first: 15, last: 25, more: &[(40, 40), (55, 58), (60, 100)], ..ALL };
        assert_eq!(kept(&all, &times), (vec![20, 40, 60], 3, None, WalkStop::End));
        // The event of a verdict is kept at any time, if it is about a group of the session; others go between.
        let told = [
            verdict(70, 1, 1),
            event(0, 71, &[1]),
            event(1, 72, &[2]),
            event(1, 73, &[3]),
            verdict(74, 1, 2),
            event(1, 75, &[4]),
            verdict(76, 1, 1),
        ];
        let none = TickRange { begin: 0, first: 1, last: 0, ..ALL };
        let open = EventVerdict { event: 1, groups: 1, triggers: 9, ..EventVerdict::default() };
        assert_eq!(kept(&told.concat(), &none), (vec![2], 3, Some(open), WalkStop::End));
        // A verdict at the end of a run is about an event of the next one.
        let mut walk = EventWalk::begin();
        walk.verdict = Some(open);
        let mut next = event(1, 80, &[5]);
        assert_eq!(table.walk(&mut next, &none, &mut walk, &mut Sevens), WalkStop::End);
        assert_eq!((walk.events, walk.verdict), (1, None));
        assert_eq!(kept(&verdict(1, 1, 1)[..20], &none).3, WalkStop::Broken);
    }

    /// Events that rules keep have the time since their begin; what follows them has room for it.
    #[test]
    fn rules_keep_and_measure() {
        let mut table = TreatmentTable::new(&[]);
        table.say(0, &[number("a", 1)], EventTreatment::AskSince(0, 9));
        table.say(1, &[number("a", 1)], EventTreatment::Keep(1));
        let verdict = |flags: u8, groups: u8, since: u64| {
            event(VERDICT_ID, 1, &[&[0, 0, groups, flags, 0, 0, 0, 0], &since.to_le_bytes()[..]].concat())
        };
        let all = [
            event(0, 1, &[5]),
            verdict(VERDICT_KEPT, 1, 30),
            event(0, 1, &[1]),
            verdict(VERDICT_KEPT, 2, 0),
            event(0, 1, &[2]),
            event(1, 1, &[3]),
            verdict(VERDICT_KEPT, 0, 0),
            verdict(VERDICT_KEPT | VERDICT_MORE, 1, 40),
            verdict(VERDICT_KEPT | VERDICT_MORE, 2, 50),
            event(0, 1, &[4]),
            event(0, 1, &[7]),
        ];
        let since = |value: u8, nanos: u64| event(9, 1, &[&[value], &nanos.to_le_bytes()[..]].concat());
        let wanted = [since(1, 300), event(1, 1, &[3]), since(4, 400), event(0, 1, &[7])].concat();
        let times = TickRange { begin: 0, ..ALL };
        let (kept, walk, stop) = walked(&table, &all.concat(), &times);
        assert_eq!((kept, walk.events, stop), (wanted, 4, WalkStop::End));
        // The verdict was in the run before.
        let mut walk = EventWalk::begin_behind(SINCE_BYTES);
        walk.verdict = EventVerdict::of(&verdict(VERDICT_KEPT, 1, 30)[6..], None);
        let mut bytes = [&[0xff; SINCE_BYTES][..], &event(0, 1, &[1]), &event(1, 1, &[3])].concat();
        assert_eq!(table.walk(&mut bytes, &times, &mut walk, &mut Sevens), WalkStop::End);
        assert_eq!(bytes[..walk.kept], [since(1, 300), event(1, 1, &[3])].concat());
    }

    #[test]
    fn the_walk_ends_where_something_is_no_event() {
        let mut table = TreatmentTable::new(&[]);
        table.say(0, &[number("a", 4)], EventTreatment::Keep(0));
        table.say(1, &[text("b")], EventTreatment::Keep(1));
        let good = event(0, 3, &[1, 2, 3, 4]);
        for (why, bad, stop) in [
            ("an id that nobody knows", event(2, 4, &[]), WalkStop::Unknown(2)),
            ("half a head", vec![0, 0, 4], WalkStop::Broken),
            ("half of the fields", event(0, 4, &[1, 2]), WalkStop::Broken),
            ("a text that is longer than everything", event(1, 4, &[9, 0, b'x']), WalkStop::Broken),
            ("half of a length", event(1, 4, &[9]), WalkStop::Broken),
            ("a time before the one before", event(0, 2, &[1, 2, 3, 4]), WalkStop::Broken),
            ("a time behind the last", event(0, 200, &[1, 2, 3, 4]), WalkStop::Broken),
        ] {
            let (kept, walk, stopped) = walked(&table, &[good.clone(), bad].concat(), &ALL);
            assert_eq!((kept, walk.read, stopped), (good.clone(), good.len(), stop), "{why}");
        }
    }

    #[test]
    fn small_steps_back_are_put_right_and_large_ones_are_not() {
        let mut table = TreatmentTable::new(&[]);
        table.say(0, &[], EventTreatment::Keep(0));
        table.say(1, &[], EventTreatment::Drop);
        let times = TickRange { back: 10, ..ALL };
        let all = |ids_and_ticks: &[(u16, u32)]| -> Vec<u8> {
            ids_and_ticks.iter().flat_map(|(id, ticks)| event(*id, *ticks, &[])).collect()
        };
        // Ticks are 16 higher than the begin. Before the begin, over the edge where the low half
        // wraps, and after the last one.
        let bytes = [(0, 0xffff_ffec), (0, 0xffff_fff8), (1, 2), (0, 0xffff_fff9), (0, 5), (0, 90), (0, 84)];
        let (kept, walk, stop) = walked(&table, &all(&bytes), &times);
        let right = [(0, 0xffff_fff0), (0, 0xffff_fff8), (0, 2), (0, 5), (0, 84), (0, 84)];
        assert_eq!((kept, walk.events, walk.stepped, stop), (all(&right), 6, 3, WalkStop::End));
        for far in [0xffff_ffe5, 95, 0x7fff_ffff] {
            let (kept, walk, stop) = walked(&table, &all(&[(0, 0xffff_fff0), (0, far)]), &times);
            assert_eq!((kept.len(), walk.stepped, stop), (6, 0, WalkStop::Broken), "{far:x}");
        }
        // Nearly 2^32 ticks after the begin is no step back if there was that much time.
        let long = TickRange { span: u32::MAX - 2, ..times };
        let late = [(0, 0xffff_fff0), (0, 0xffff_ffec)];
        let (kept, walk, stop) = walked(&table, &all(&late), &long);
        assert_eq!((kept, walk.stepped, stop), (all(&late), 0, WalkStop::End));
    }

    #[test]
    fn no_bytes_make_it_panic_and_what_is_kept_walks_again() {
        let mut table = TreatmentTable::new(&context_fields(contexts::STACK));
        table.say(0, &[number("a", 1)], EventTreatment::Keep(0));
        table.say(1, &[text("b"), number("c", 8)], EventTreatment::Keep(1));
        table.say(2, &[], EventTreatment::Drop);
        let config = proptest::test_runner::Config { failure_persistence: None, ..Default::default() };
        let bytes = proptest::collection::vec(0_u8..4, 0..200);
        proptest::test_runner::TestRunner::new(config)
            .run(&bytes, |bytes| {
                let times = TickRange { begin: 0, span: 1 << 24, back: 1 << 16, ..ALL };
                let (kept, walk, _) = walked(&table, &bytes, &times);
                let (again, same, stop) = walked(&table, &kept, &times);
                proptest::prop_assert_eq!(
                    (again, same.events, same.stepped, stop),
                    (kept, walk.events, 0, WalkStop::End)
                );
                Ok(())
            })
            .expect("nothing breaks it");
    }
}
