//! Judgements of events: which groups of sessions keep one, and which triggers it fires.
//!
//! ```text
//! machine code ── a trigger's question: yes ──┐
//!     └── else as `judge` does without one    │
//! judge <─────────────────────────────────────┘
//!     ├── each trigger's question: yes ──> fire: groups change, control bytes are drawn, the recorder's bell
//!     └── each group's question: yes, and the group records ──> the event is kept
//! ```
//!
//! The recorder writes the machine code for this process: it knows the address of [`judge`]. Without it,
//! the slot's entry is `judge`.
//!
//! An event that has fired a trigger is kept for the groups that the trigger has changed: the start
//! event is the first one of its session, and the stop event is the last one. The session may not
//! want that event otherwise, and its time is later than that of the firing, so that the recorder has to
//! be told: a *verdict* stands before the event in its lane. So it does before each event that rules were asked
//! about, because the recorder cannot ask them again.
//!
//! ```text
//! fired   id 0xffff │ ticks │ contexts │ id of the event u16 │ groups u8 │ flags u8 │ trigger's bits u32 │ changes 2 u32
//! kept    id 0xffff │ ticks │ contexts │ id of the event u16 │ groups u8 │ flags u8 │ 0 u32 │ ticks since its begin u64
//! ```

#![allow(unsafe_code, reason = "machine code is called, and arguments lie in memory")]

use core::cell::Cell;
use core::iter::Peekable;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use kymo_bytecode::{BytecodeProgram, validate};
use kymo_lane::judgement::{self, JudgedTest, JudgementEntry, JudgementHead, JudgementKind, KeyPart, RuleNumber};
use kymo_lane::{
    FilterCode, FilterCodeKind, FilterEngine, OTHER_GROUPS, RecordingGroups, VERDICT_BYTES, VERDICT_ID, VERDICT_KEPT,
    VERDICT_MORE, VERDICT_UNJUDGED,
};

use crate::code::{Filter, code_bytes, copied, native, run};
use crate::event::Event;
use crate::objects::JudgedObject;
use crate::pages::{self, Errno, Quiet};
use crate::process::ProcessState;
use crate::remember::{JudgedRule, RuleAnswer};
use crate::{clock, thread};

/// Judgements by slot, in pages of this process. They are never removed.
static JUDGEMENTS: [AtomicPtr<Judgement>; 256] = [const { AtomicPtr::new(null_mut()) }; 256];

/// The event that verdicts are written as: it has an ID, and is never registered.
static VERDICT: Event = Event::unnamed(VERDICT_ID);

/// A judgement that was validated.
struct Judgement {
    /// ID of its events.
    event: u16,
    triggers: &'static [Judged],
    groups: &'static [Judged],
    /// Rules that remember its times, each with a question.
    begins: &'static [Judged],
    /// Sessions that no trigger controls keep all of its events.
    is_kept: bool,
    /// It has rules, and one of them asks for the time.
    remembers: bool,
    reads_clock: bool,
}

impl Judgement {
    /// The only rule that is asked, and the groups of its session, if there is nothing else: no trigger, no begin.
    #[inline]
    fn one_rule(&self) -> Option<(&'static Judged, &'static JudgedRule)> {
        match (self.triggers, self.groups, self.begins) {
            ([], [group], []) => {
                group.rules.split_first().filter(|(_, more)| more.is_empty()).map(|(rule, _)| (group, rule))
            }
            _ => None,
        }
    }

    /// The entry of its slot, without machine code.
    fn entry(&self) -> Filter {
        match self.remembers {
            false => judge,
            true if self.triggers.is_empty() && self.groups.is_empty() => remember,
            true if self.one_rule().is_some() => judge_by_rule,
            true => judge_by_rules,
        }
    }
}

/// Whether that is the entry of slots with judgements.
pub(crate) fn is_entry(place: *const ()) -> bool {
    [judge as Filter, remember, judge_by_rule, judge_by_rules]
        .iter()
        .any(|entry| core::ptr::eq(place, *entry as *const ()))
}

/// A trigger's number or bits of groups, and what they ask.
struct Judged {
    about: u8,
    question: JudgedQuestion,
    rules: &'static [JudgedRule],
}

/// A question about the arguments of an event.
#[derive(Clone, Copy)]
enum JudgedQuestion {
    /// The answer is always yes.
    Always,
    Native(Filter),
    Bytecode(BytecodeProgram<'static>),
}

impl JudgedQuestion {
    /// # Safety
    ///
    /// The question is about these arguments.
    #[inline]
    unsafe fn is_yes(&self, arguments: *const u8, slot_and_size: u64) -> bool {
        match self {
            Self::Always => true,
            // Safety: see above.
            Self::Native(filter) => unsafe { filter(arguments, slot_and_size) != 0 },
            // Safety: see above; `read` has compared the sizes.
            Self::Bytecode(program) => unsafe { run(program, arguments) },
        }
    }
}

/// Entry of slots with judgements.
pub(crate) unsafe extern "C" fn judge(arguments: *const u8, slot_and_size: u64) -> u64 {
    let slot = usize::from(slot_and_size as u8);
    // Safety: stored judgements are never removed.
    let Some(judgement) = (unsafe { JUDGEMENTS[slot].load(Ordering::Acquire).as_ref() }) else { return 1 };
    let mut hits = 0_u32;
    for Judged { about: number, question, .. } in judgement.triggers {
        // Safety: the recorder made the judgement for these arguments.
        hits |= u32::from(unsafe { question.is_yes(arguments, slot_and_size) }) << number;
    }
    if hits == 0 && judgement.is_kept {
        return 1;
    }
    let Some(process) = ProcessState::now() else { return 1 };
    let now = process.program().groups();
    let groups = recording(now);
    let mut kept = 0;
    for Judged { about: bits, question, .. } in judgement.groups {
        // Safety: see above.
        if bits & groups & !kept != 0 && unsafe { question.is_yes(arguments, slot_and_size) } {
            kept |= bits & groups;
        }
    }
    if hits != 0 && is_fired(process, judgement, hits, now) {
        return 1;
    }
    u64::from(kept != 0)
}

/// Entry of slots with judgements of events that are the begin of others, and that no session wants. They are recorded while
/// the recorder asks the rules.
unsafe extern "C" fn remember(arguments: *const u8, slot_and_size: u64) -> u64 {
    let slot = usize::from(slot_and_size as u8);
    // Safety: stored judgements are never removed.
    let Some(judgement) = (unsafe { JUDGEMENTS[slot].load(Ordering::Acquire).as_ref() }) else { return 1 };
    let now = clock::ticks();
    let Some(process) = ProcessState::now() else { return 1 };
    let program = process.program();
    let mut is_later = false;
    for begin in judgement.begins {
        // Safety: the recorder made the judgement for these arguments.
        unsafe {
            if begin.question.is_yes(arguments, slot_and_size) {
                begin.rules.iter().for_each(|rule| is_later |= !rule.begin(&program, arguments, now));
            }
        }
    }
    is_later.into()
}

/// Entry of slots with judgements of events that one rule is asked about, and nothing else: most are.
unsafe extern "C" fn judge_by_rule(arguments: *const u8, slot_and_size: u64) -> u64 {
    let slot = usize::from(slot_and_size as u8);
    // Safety: stored judgements are never removed.
    let Some(judgement) = (unsafe { JUDGEMENTS[slot].load(Ordering::Acquire).as_ref() }) else { return 1 };
    let now = if judgement.reads_clock { clock::ticks() } else { 0 };
    let Some(process) = ProcessState::now() else { return 1 };
    let Some((group, rule)) = judgement.one_rule() else { return 1 };
    let program = process.program();
    let kept = group.about & program.recording();
    // Safety: the recorder made the judgement for these arguments.
    if kept == 0 || !unsafe { group.question.is_yes(arguments, slot_and_size) } {
        return 0;
    }
    // Safety: see above.
    match unsafe { rule.answer(&program, arguments, now, true) } {
        RuleAnswer::No => 0,
        answer => keep_by_rule(process, judgement.event, kept, answer),
    }
}

/// An event is kept, or the recorder is to ask.
#[inline(never)]
fn keep_by_rule(process: &ProcessState, event: u16, kept: u8, answer: RuleAnswer) -> u64 {
    let is_recorded = match answer {
        RuleAnswer::No => false,
        RuleAnswer::Later => is_left(process, event, true),
        RuleAnswer::Yes(ticks) => {
            let mut since = [0; 8];
            since[kept.trailing_zeros() as usize % 8] = ticks;
            tell_kept(event, false, kept, &since)
        }
    };
    is_recorded.into()
}

/// Entry of slots with judgements of events that rules are asked about, or that are the begin of others.
unsafe extern "C" fn judge_by_rules(arguments: *const u8, slot_and_size: u64) -> u64 {
    let slot = usize::from(slot_and_size as u8);
    // Safety: stored judgements are never removed.
    let Some(judgement) = (unsafe { JUDGEMENTS[slot].load(Ordering::Acquire).as_ref() }) else { return 1 };
    // One reading for all rules. It takes long, and goes on while the rest is looked up.
    let now = if judgement.reads_clock { clock::ticks() } else { 0 };
    let Some(process) = ProcessState::now() else { return 1 };
    let program = process.program();
    for begin in judgement.begins {
        // Safety: see above.
        unsafe {
            if begin.question.is_yes(arguments, slot_and_size) {
                begin.rules.iter().for_each(|rule| _ = rule.begin(&program, arguments, now));
            }
        }
    }
    // Ticks since the begin, if all rules keep the event.
    let is_later = Cell::new(false);
    let asked = |judged: &Judged, is_kept_unknown: bool| {
        // Safety: see above.
        if !unsafe { judged.question.is_yes(arguments, slot_and_size) } {
            return None;
        }
        judged.rules.iter().try_fold(0, |since, rule| {
            // Safety: see above.
            match unsafe { rule.answer(&program, arguments, now, is_kept_unknown) } {
                RuleAnswer::No => None,
                RuleAnswer::Yes(ticks) => Some(if ticks == 0 { since } else { ticks }),
                RuleAnswer::Later => {
                    is_later.set(true);
                    None
                }
            }
        })
    };
    let mut hits = 0;
    for trigger in judgement.triggers {
        hits |= u32::from(asked(trigger, false).is_some()) << trigger.about;
    }
    let recording = program.recording();
    let (mut kept, mut since) = (0, None);
    for group in judgement.groups {
        let bits = group.about & recording & !kept;
        if bits != 0
            && let Some(ticks) = asked(group, true)
        {
            kept |= bits;
            since.get_or_insert([0; 8])[bits.trailing_zeros() as usize % 8] = ticks;
        }
    }
    let has_fired = hits != 0 && is_fired(process, judgement, hits, program.groups());
    if is_later.get() {
        // A child, say: without a word about it, the recorder asks. The verdict of a firing says none.
        return u64::from(has_fired || is_left(process, judgement.event, true));
    }
    if kept == 0 && !has_fired {
        return 0;
    }
    tell_kept(judgement.event, has_fired, kept, &since.unwrap_or_default()).into()
}

/// Writes which groups keep an event, by rules; returns whether there was room. Otherwise the event is lost, and counted.
fn tell_kept(event: u16, has_fired: bool, kept: u8, since: &[u64; 8]) -> bool {
    let mut flags = VERDICT_KEPT | if has_fired { VERDICT_MORE } else { 0 };
    let mut tell = |groups: u8, since: u64| {
        let Some(mut write) = VERDICT.enter(VERDICT_BYTES) else { return false };
        write.put(&event.to_le_bytes());
        write.put(&[groups, flags]);
        write.put(&[0; 4]);
        write.put(&since.to_le_bytes());
        write.leave();
        flags |= VERDICT_MORE;
        true
    };
    let others = (0..8).filter(|group| since[*group] == 0).fold(0, |bits, group| bits | 1 << group);
    // Mostly it is one group, with the time since the begin.
    let is_there = kept & others == 0 && kept != 0 || tell(kept & others, 0);
    let mut timed = since.iter().enumerate().filter(|(_, since)| **since != 0);
    is_there && timed.all(|(group, since)| tell(1 << group, *since))
}

/// Counts matches, and fires triggers; returns whether the event has to be kept for that, with its verdict before it.
#[inline]
fn is_fired(process: &ProcessState, judgement: &Judgement, hits: u32, now: RecordingGroups) -> bool {
    if now.base == 0 {
        // No recorder has met this child yet.
        return is_left(process, judgement.event, false);
    }
    let (reached, idle) = process.program().reached(hits, now);
    reached != 0 && fire(process, judgement, reached, idle)
}

/// Groups that record. In a child that the recorder has not met, all do: it decides later.
#[inline]
fn recording(groups: RecordingGroups) -> u8 {
    if groups.base == 0 { u8::MAX } else { groups.bits }
}

/// Fires triggers that are reached, and those that count once these have fired.
#[cold]
fn fire(process: &ProcessState, judgement: &Judgement, mut reached: u32, mut idle: u32) -> bool {
    let _errno = Errno::keep();
    let program = process.program();
    let (mut groups, mut fired) = (0, 0_u32);
    let mut changes: Option<[u32; 2]> = None;
    {
        // A handler that jumped out of a firing would leave it begun for ever.
        let _quiet = Quiet::new();
        if !program.reserve_triggers() {
            return false;
        }
        while reached != 0 {
            let number = reached.trailing_zeros() as u8;
            reached &= reached - 1;
            if let Some((changed, change)) = program.fire(number, judgement.event, thread::tid(), clock::ticks) {
                (groups, fired) = (groups | changed, fired | 1 << number);
                changes = Some([changes.map_or(change, |[first, _]| first), change]);
                // A stop that counts may have an effect now that this start has fired: it counts this event, which
                // belongs to the session. The event of a stop does, too, and starts do not count it.
                if program.starts(number) {
                    let (more, still_idle) = program.reached(idle, program.groups());
                    (reached, idle) = (reached | more, still_idle);
                }
            }
        }
    }
    // Without its verdict the event is lost, and counted as that.
    changes.is_some_and(|changes| tell(judgement.event, groups, 0, fired, changes))
}

/// Leaves the judgement of an event to the recorder; returns whether to record it. If nothing can be said of it, it is
/// as `otherwise` says.
#[cold]
fn is_left(process: &ProcessState, event: u16, otherwise: bool) -> bool {
    let _errno = Errno::keep();
    let is_there = {
        let _quiet = Quiet::new();
        process.program().reserve_triggers()
    };
    if !is_there {
        return otherwise;
    }
    process.program().note_unjudged();
    tell(event, 0, VERDICT_UNJUDGED, 0, [0; 2])
}

/// Writes a verdict, before its event; returns whether there was room. Otherwise one lost event is counted.
fn tell(event: u16, groups: u8, flags: u8, fired: u32, changes: [u32; 2]) -> bool {
    let Some(mut write) = VERDICT.enter(VERDICT_BYTES) else { return false };
    write.put(&event.to_le_bytes());
    write.put(&[groups, flags]);
    write.put(&fired.to_le_bytes());
    changes.iter().for_each(|change| write.put(&change.to_le_bytes()));
    write.leave();
    true
}

/// An event is recorded without the arguments that a judgement needs: if its slot has one, the recorder is
/// told, and watches for triggers itself.
pub(crate) fn tell_unjudged(slot: u8, event: u16) {
    let Some(process) = ProcessState::now() else { return };
    let arena_bytes = process.arena().map_or(0, |arena| arena.bytes);
    let code = process.program().code(slot, arena_bytes);
    if code.is_some_and(|code| code.kind == FilterCodeKind::Judgement) {
        is_left(process, event, true);
    }
}

/// Reads the judgement of a slot, for arguments of that size; returns the entry of the slot if this process can
/// judge.
pub(crate) fn read(process: &ProcessState, slot: u8, code: FilterCode, size: u64) -> Option<(Filter, FilterEngine)> {
    let (page, copy) = code_bytes(process, code).and_then(|bytes| copied(bytes, QUESTIONS_BYTES))?;
    let in_arena = |(offset, bytes)| native(process, FilterCode { kind: FilterCodeKind::Native, offset, bytes });
    let code = judgement::read(copy).and_then(|(head, _)| in_arena(head.code?));
    let length = copy.len() + QUESTIONS_BYTES;
    let Some((place, entry)) = questions(process, copy, size, page).and_then(|judgement| {
        let entry = judgement.entry();
        let place = pages::plain(size_of::<Judgement>())?.cast::<Judgement>();
        // Safety: pages are aligned, and have room.
        unsafe { place.write(judgement) };
        Some((place, entry))
    }) else {
        pages::unmap(page, length);
        return None;
    };
    if JUDGEMENTS[usize::from(slot)]
        .compare_exchange(null_mut(), place.as_ptr(), Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        // Another thread was faster, with the same judgement.
        pages::unmap(place.cast(), size_of::<Judgement>());
        pages::unmap(page, length);
    }
    Some(code.map_or((entry, FilterEngine::Interpreted), |filter| (filter, FilterEngine::Native)))
}

/// Room for the questions of a judgement, their rules, and the keys of these.
const QUESTIONS_BYTES: usize =
    judgement::ENTRIES_MAX * (size_of::<Judged>() + size_of::<JudgedRule>() + size_of::<KeyPart>());

/// The questions of a judgement in pages of this process: triggers first, then groups, then begins.
fn questions(process: &ProcessState, bytes: &[u8], size: u64, to: NonNull<u8>) -> Option<Judgement> {
    let (JudgementHead { id: event, .. }, _) = judgement::read(bytes)?;
    // Safety: the room is that of as many entries of each kind as a judgement may have, and each kind needs no more
    // alignment than the one before.
    let (judged, rules, keys) = unsafe {
        let rules = to.add(judgement::ENTRIES_MAX * size_of::<Judged>());
        let keys = rules.add(judgement::ENTRIES_MAX * size_of::<JudgedRule>());
        (Written::<Judged>::new(to), Written::<JudgedRule>::new(rules), Written::<KeyPart>::new(keys))
    };
    let mut all = (judged, rules, keys);
    let mut ends = [0; 3];
    for (wanted, end) in ends.iter_mut().enumerate() {
        // Rules and keys follow their entry.
        let mut entries = judgement::read(bytes)?.1.peekable();
        while let Some(entry) = entries.next() {
            let JudgementEntry { kind, question } = entry?;
            let (part, about, rule) = match kind {
                JudgementKind::Trigger(number) if number < 32 => (0, number, None),
                JudgementKind::Trigger(_) => return None,
                JudgementKind::Groups(bits) => (1, bits, None),
                JudgementKind::Begin(rule) => (2, rule.number, Some((rule, None))),
                // It belongs to another part.
                JudgementKind::Rule(..) | JudgementKind::Key(_) => continue,
            };
            if part != wanted {
                continue;
            }
            let first = all.1.count;
            let mut next = rule;
            loop {
                if let Some((rule, test)) = next.take() {
                    let rule = rule_of((process, rule, test), &mut entries, size, &mut all.2)?;
                    all.1.push(rule);
                }
                let Some(Some(JudgementEntry { kind: JudgementKind::Rule(rule, test), .. })) = entries.peek() else {
                    break;
                };
                next = Some((*rule, Some(*test)));
                entries.next();
            }
            let question = question.map_or(Some(JudgedQuestion::Always), |code| asked(process, code, size))?;
            let rules = all.1.from(first);
            all.0.push(Judged { about, question, rules });
        }
        *end = all.0.count;
    }
    let (remembers, reads_clock) = (all.1.count > 0, all.1.from(0).iter().any(JudgedRule::reads_clock));
    let all = all.0.from(0);
    let (triggers, groups, begins) = (&all[..ends[0]], &all[ends[0]..ends[1]], &all[ends[1]..]);
    let keeps = |judged: &Judged| {
        let is_always = matches!(judged.question, JudgedQuestion::Always) && judged.rules.is_empty();
        judged.about & OTHER_GROUPS != 0 && is_always
    };
    Some(Judgement { event, triggers, groups, begins, is_kept: groups.iter().any(keeps), remembers, reads_clock })
}

/// A rule with the keys that follow it.
fn rule_of(
    (process, rule, test): (&ProcessState, RuleNumber, Option<JudgedTest>),
    entries: &mut Peekable<impl Iterator<Item = Option<JudgementEntry>>>,
    size: u64,
    keys: &mut Written<KeyPart>,
) -> Option<JudgedRule> {
    let (first, mut kind) = (keys.count, None);
    while let Some(Some(JudgementEntry { kind: JudgementKind::Key(key), .. })) = entries.peek() {
        if !key.value.fits(size) {
            return None;
        }
        match key.is_kind {
            true => kind = Some(key.value),
            false => keys.push(key.value),
        }
        entries.next();
    }
    let object = match test {
        Some(JudgedTest::Object { offset, bytes }) => Some(JudgedObject::read(process, (offset, bytes), size)?),
        _ => None,
    };
    JudgedRule::new(rule, test, keys.from(first), kind, object)
}

/// Values that are written one behind the other.
struct Written<T> {
    first: NonNull<T>,
    count: usize,
}

impl<T: 'static> Written<T> {
    /// # Safety
    ///
    /// There is room for all values that are written, it is aligned, and never given back while they are used.
    unsafe fn new(first: NonNull<u8>) -> Self {
        Self { first: first.cast(), count: 0 }
    }

    fn push(&mut self, value: T) {
        // Safety: see `new`.
        unsafe { self.first.add(self.count).write(value) };
        self.count += 1;
    }

    /// Those from a number on. They are not changed any more.
    fn from(&self, first: usize) -> &'static [T] {
        // Safety: so many were written.
        unsafe { core::slice::from_raw_parts(self.first.add(first).as_ptr(), self.count - first) }
    }
}

fn asked(process: &ProcessState, code: FilterCode, size: u64) -> Option<JudgedQuestion> {
    match code.kind {
        FilterCodeKind::Native => native(process, code).map(JudgedQuestion::Native),
        FilterCodeKind::Bytecode => {
            let (page, copy) = copied(code_bytes(process, code)?, 0)?;
            let program = validate(copy).ok().filter(|program| u64::from(program.size()) <= size);
            if program.is_none() {
                pages::unmap(page, copy.len());
            }
            program.map(JudgedQuestion::Bytecode)
        }
        FilterCodeKind::Judgement => None,
    }
}
