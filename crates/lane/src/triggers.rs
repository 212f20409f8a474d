//! Triggers: an event of a program starts or stops recording, at once and in all of its threads.
//!
//! ```text
//! recorder   images of the control bytes: of sessions that no trigger controls, and of each group of those that one does
//!            base: the groups that record now        states: the action of each trigger, and whether it is armed
//! program    event matches ── claim ── change the groups ── control bytes = images of the groups that record ── bell
//!                                                                                 └ firing: time, trigger, event
//! ```
//!
//! A *group* is one bit: sessions that start and stop together. The last bit, [`OTHER_GROUPS`], is
//! that of all sessions that no trigger controls; it is always on.
//!
//! # One writer each
//!
//! The recorder writes the base, the program the groups. Each base has a number, and says how many
//! changes of the program the recorder knew; the groups count their changes, and name the base that they
//! follow. A base counts as long as there is no change that its recorder did not know. So the recorder
//! changes groups with one word, and no firing is lost between a read of the recorder and its write.
//!
//! # Which events belong to a session
//!
//! A thread that has read its control byte may still record its event after another thread's trigger
//! has stopped recording. Recorders cut such events by their time: a firing says when it happened. It
//! *begins*, then reads the clock. A recorder that has looked at events therefore waits until all firings
//! that have begun are over: then it knows of each firing that is earlier than any event that it saw.
//!
//! Firings have the numbers of the changes that they make: their order is that of the groups' states. The ticks
//! of two threads may be in another order.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::layout::{GROUPS_MAX, TRIGGERS_MAX, header, trigger, triggers};
use crate::memory::{MemoryView, ProgramMemory};
use crate::sides::{ProgramSide, RecorderSide};

/// The group of all sessions that no trigger controls.
pub const OTHER_GROUPS: u8 = 1 << GROUPS_MAX;

/// The trigger may fire.
const IS_ARMED: u64 = 1;
/// It stays armed after it has fired.
const REPEATS: u64 = 2;
/// It fires also if its groups are already as it makes them.
const ALWAYS: u64 = 4;
/// How often a thread draws the control bytes again because another thread has changed the groups. After
/// that, the recorder does.
const DRAWS_MAX: u32 = 64;

/// Effect of a trigger on its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TriggerAction {
    /// They record from now on.
    Start = 1,
    /// They record no more.
    Stop = 2,
    /// They record no more until the recorder has written their events.
    Snapshot = 3,
    /// They stay as they are: the recorder alone acts.
    Tell = 4,
}

impl TriggerAction {
    #[inline]
    fn of(byte: u8) -> Option<Self> {
        [Self::Start, Self::Stop, Self::Snapshot, Self::Tell].into_iter().find(|action| *action as u8 == byte)
    }

    /// The groups that it would change, of which these record.
    #[inline]
    fn changed(self, groups: u8, recording: u8) -> u8 {
        match self {
            Self::Start => groups & !recording,
            Self::Stop | Self::Snapshot => groups & recording,
            Self::Tell => 0,
        }
    }
}

/// A trigger, as the recorder sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggerState {
    /// A number that grows whenever the trigger is armed anew.
    pub epoch: u64,
    /// It may fire.
    pub is_armed: bool,
    /// It stays armed after it has fired.
    pub repeats: bool,
    /// It fires also if its groups are already as it makes them: the recorder does not know yet whether they are.
    pub is_always: bool,
    /// Least number of ticks between two firings.
    pub interval: u64,
    /// Number of matches that it takes to fire: 1 for the first one.
    pub count: u32,
    /// Its effect.
    pub action: TriggerAction,
    /// The groups that it does that to.
    pub groups: u8,
}

/// A trigger has fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Firing {
    /// How many changes of the groups were before its own.
    pub number: u64,
    /// When.
    pub ticks: u64,
    /// The trigger.
    pub trigger: u8,
    /// Its effect.
    pub action: TriggerAction,
    /// Groups that it did that to.
    pub groups: u8,
    /// The event.
    pub event: u16,
    /// The thread.
    pub tid: u32,
}

/// Groups of sessions that record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingGroups {
    /// One bit each.
    pub bits: u8,
    /// The base that they follow.
    pub base: u32,
    /// Changes of the program so far: as many as firings.
    pub changes: u32,
}

/// A base or the program's groups, as a word.
#[derive(Clone, Copy)]
struct Base(u64);

impl Base {
    fn of(groups: RecordingGroups) -> Self {
        let RecordingGroups { bits, base, changes } = groups;
        Self(u64::from(changes) << 32 | u64::from(base & BASE_MAX) << 8 | u64::from(bits))
    }

    fn changes(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn number(self) -> u32 {
        (self.0 >> 8) as u32 & BASE_MAX
    }
}

/// The largest number of a base.
const BASE_MAX: u32 = (1 << 24) - 1;

/// The groups that record, by both words.
fn recording(base: u64, own: u64) -> RecordingGroups {
    let (base, own) = (Base(base), Base(own));
    let is_followed = base.number() == own.number() || base.changes() != own.changes();
    let now = if is_followed { own } else { base };
    RecordingGroups { bits: now.0 as u8, base: now.number(), changes: own.changes() }
}

impl<M: ProgramMemory> ProgramSide<'_, M> {
    /// Gives the region of triggers its memory; returns whether it has any. Call this before the
    /// functions below.
    #[must_use]
    pub fn reserve_triggers(&self) -> bool {
        let at = self.layout.triggers();
        let covered = u64::from(self.covered());
        if self.memory.load(at + triggers::RESERVED, Relaxed) == covered + 1 {
            return true;
        }
        let is_there = self.memory.reserve(at, triggers::IMAGES)
            && (0..=GROUPS_MAX).all(|number| self.memory.reserve(self.layout.image(number), covered));
        if is_there {
            self.memory.store(at + triggers::RESERVED, covered + 1, Relaxed);
        }
        is_there
    }

    /// Number of events that the images cover.
    fn covered(&self) -> u32 {
        let covered = self.memory.load(self.layout.triggers() + triggers::IMAGE_EVENTS, Acquire);
        covered.min(self.layout.events.into()) as u32
    }

    /// Groups of sessions that record now.
    #[inline]
    #[must_use]
    pub fn groups(&self) -> RecordingGroups {
        let at = self.layout.triggers();
        // The program's word first: one that follows a later base than the one read below counts as old
        // for that moment, and its thread draws the control bytes itself.
        let own = self.memory.load(at + triggers::GROUPS, Acquire);
        recording(self.base(), own)
    }

    #[inline]
    fn base(&self) -> u64 {
        let at = self.layout.triggers();
        loop {
            let number = self.memory.byte(at + triggers::BASE);
            let base = self.memory.load(at + triggers::BASES[usize::from(number & 1)], Acquire);
            // The word is written again only after the byte names the other one.
            if self.memory.byte(at + triggers::BASE) == number {
                return base;
            }
        }
    }

    /// Counts an event that has a judgement and is recorded without it, before the event.
    pub fn note_unjudged(&self) {
        self.memory.add(self.layout.triggers() + triggers::UNJUDGED, 1);
        self.memory.fence(SeqCst);
    }

    /// An event has matched these triggers, one bit each: those that may fire now, and those that cannot, because
    /// they take several matches and would have no effect on the groups that record. The others of these have counted
    /// this match.
    #[inline]
    #[must_use]
    pub fn reached(&self, triggers: u32, recording: RecordingGroups) -> (u32, u32) {
        let (mut matched, mut reached, mut idle) = (triggers, 0, 0);
        while matched != 0 {
            let bit = matched & matched.wrapping_neg();
            matched ^= bit;
            match self.is_reached(bit.trailing_zeros() as u8, recording.bits) {
                Some(true) => reached |= bit,
                Some(false) => {}
                None => idle |= bit,
            }
        }
        (reached, idle)
    }

    /// `None`: it does not count, because it would have no effect.
    #[inline]
    fn is_reached(&self, number: u8, recording: u8) -> Option<bool> {
        let at = self.state(number);
        let armed = self.memory.load(at + trigger::ARMED, Acquire);
        let has_fired = self.memory.load(at + trigger::FIRED, Relaxed) == armed >> 8;
        if armed & IS_ARMED == 0 || armed & REPEATS == 0 && has_fired {
            return Some(false);
        }
        let said = self.memory.load(at + trigger::ACTION, Relaxed);
        let count = said >> 32;
        if count <= 1 {
            return Some(true);
        }
        TriggerAction::of(said as u8).filter(|action| action.changed((said >> 8) as u8, recording) != 0)?;
        Some(self.memory.add(at + trigger::COUNTED, 1) + 1 + self.before(at, has_fired) >= count)
    }

    /// Matches that the recorder has counted; those count for the first firing.
    fn before(&self, at: u64, has_fired: bool) -> u64 {
        if has_fired { 0 } else { self.memory.load(at + trigger::BEFORE, Relaxed) }
    }

    /// A trigger that repeats and takes several matches has fired: it begins again.
    fn count_again(&self, at: u64, armed: u64) {
        let count = self.memory.load(at + trigger::ACTION, Relaxed) >> 32;
        if armed & REPEATS == 0 || count <= 1 {
            return;
        }
        let has_fired = self.memory.load(at + trigger::FIRED, Relaxed) == armed >> 8;
        let counted = count.saturating_sub(self.before(at, has_fired));
        self.memory.store(at + trigger::FIRED, armed >> 8, Relaxed);
        self.memory.add(at + trigger::COUNTED, counted.wrapping_neg());
    }

    /// A trigger is [reached](Self::reached): fires it, unless it is not armed or has no effect now. Returns
    /// the groups that it has changed, and the number of that change. The caller blocks signals. `clock` tells the ticks.
    pub fn fire(&self, number: u8, event: u16, tid: u32, clock: impl Fn() -> u64) -> Option<(u8, u32)> {
        if u32::from(number) >= TRIGGERS_MAX {
            return None;
        }
        let (at, region) = (self.state(number), self.layout.triggers());
        let armed = self.memory.load(at + trigger::ARMED, Acquire);
        let said = self.memory.load(at + trigger::ACTION, Relaxed);
        let (action, groups) = (TriggerAction::of(said as u8)?, (said >> 8) as u8 & !OTHER_GROUPS);
        // Once it has fired, its groups are known to the program.
        let has_fired = armed & REPEATS != 0 && self.memory.load(at + trigger::LAST, Relaxed) != 0;
        let is_always = armed & ALWAYS != 0 && !has_fired;
        let is_always = is_always || action == TriggerAction::Tell;
        let has_effect = is_always || self.effect(action, groups) != 0;
        if armed & IS_ARMED == 0 || !has_effect || !self.is_due(at, armed, clock()) {
            return None;
        }
        self.memory.add(region + triggers::BEGUN, 1);
        // The clock is read after the firing has begun, see above.
        self.memory.fence(SeqCst);
        let ticks = clock();
        let fired = self.claim_firing(at, armed, ticks).and_then(|claim| {
            let change = self.change(action, groups, is_always);
            if change.is_none() {
                // Another trigger was first: this one has not fired.
                self.memory.compare_exchange(claim.at, claim.after, claim.before);
            }
            change
        });
        if let Some((changed, changes)) = fired {
            self.count_again(at, armed);
            // The recorder waits for the end of this firing. If this thread were preempted behind the
            // firing, its event would be late.
            self.wake();
            if action != TriggerAction::Tell {
                self.draw();
            }
            // Threads that are started before this thread records its event are not: that is the first one.
            let ticks = if action == TriggerAction::Start { clock() } else { ticks };
            let (trigger, number, groups) = (number, changes.into(), changed);
            self.publish_firing(&Firing { number, ticks, trigger, action, groups, event, tid });
        }
        self.memory.fence(SeqCst);
        self.memory.add(region + triggers::DONE, 1);
        fired
    }

    /// Whether a trigger starts.
    #[must_use]
    pub fn starts(&self, number: u8) -> bool {
        let said = self.memory.load(self.state(number) + trigger::ACTION, Relaxed);
        TriggerAction::of(said as u8) == Some(TriggerAction::Start)
    }

    fn state(&self, number: u8) -> u64 {
        self.layout.triggers() + triggers::STATES + u64::from(number) * triggers::STATE_BYTES
    }

    /// The groups that an action would change now.
    fn effect(&self, action: TriggerAction, groups: u8) -> u8 {
        action.changed(groups, self.groups().bits)
    }

    /// Whether enough time has passed since the last firing, and a trigger that fires once has not.
    fn is_due(&self, at: u64, armed: u64, now: u64) -> bool {
        if armed & REPEATS == 0 {
            return self.memory.load(at + trigger::FIRED, Relaxed) != armed >> 8;
        }
        let is_due = self.is_late_enough(at, self.memory.load(at + trigger::LAST, Relaxed), now);
        if !is_due {
            self.memory.add(at + trigger::SUPPRESSED, 1);
        }
        is_due
    }

    fn is_late_enough(&self, at: u64, last: u64, now: u64) -> bool {
        last == 0 || now.saturating_sub(last) >= self.memory.load(at + trigger::INTERVAL, Relaxed)
    }

    /// Of several threads one fires.
    fn claim_firing(&self, at: u64, armed: u64, ticks: u64) -> Option<FiringClaim> {
        let repeats = armed & REPEATS != 0;
        let at_word = at + if repeats { trigger::LAST } else { trigger::FIRED };
        let before = self.memory.load(at_word, Relaxed);
        let (after, is_due) = match repeats {
            true => (ticks, self.is_late_enough(at, before, ticks)),
            false => (armed >> 8, before != armed >> 8),
        };
        let is_ours = is_due && self.memory.compare_exchange(at_word, before, after);
        is_ours.then_some(FiringClaim { at: at_word, before, after })
    }

    /// Changes the groups; returns those that are different now, or all of them if it is to fire always, and how many changes
    /// were before.
    fn change(&self, action: TriggerAction, groups: u8, is_always: bool) -> Option<(u8, u32)> {
        let at = self.layout.triggers();
        loop {
            let own = self.memory.load(at + triggers::GROUPS, Acquire);
            let now = recording(self.base(), own);
            let bits = match action {
                TriggerAction::Start => now.bits | groups,
                TriggerAction::Stop | TriggerAction::Snapshot => now.bits & !groups,
                TriggerAction::Tell => now.bits,
            };
            if bits == now.bits && !is_always {
                return None;
            }
            let new = Base::of(RecordingGroups { bits, base: now.base, changes: now.changes.wrapping_add(1) }).0;
            if self.memory.compare_exchange(at + triggers::GROUPS, own, new) {
                let is_whole = is_always && action != TriggerAction::Tell;
                let changed = if is_whole { groups } else { bits ^ now.bits };
                return Some((changed, now.changes));
            }
        }
    }

    /// Draws the control bytes from the images of the groups that record. Of threads that do it at a
    /// time the last one sees the last change.
    fn draw(&self) {
        let at = self.layout.triggers();
        for _ in 0..DRAWS_MAX {
            let own = self.memory.load(at + triggers::GROUPS, Acquire);
            let base = self.base();
            let bits = recording(base, own).bits;
            // A thread that does not see this one's change below has stored its bytes before these.
            self.memory.fence(SeqCst);
            self.memory.put(header::STOPPED, &[!bits]);
            for id in 0..self.covered() {
                let images = (0..=GROUPS_MAX).filter(|number| *number == 0 || bits >> (number - 1) & 1 != 0);
                let merged = merged(images.map(|number| self.memory.byte(self.layout.image(number) + u64::from(id))));
                let control = self.layout.control(id as u16);
                if self.memory.byte(control) != merged {
                    self.memory.put(control, &[merged]);
                }
            }
            self.memory.fence(SeqCst);
            let is_last = self.memory.load(at + triggers::GROUPS, Acquire) == own && self.base() == base;
            if is_last {
                return;
            }
        }
    }

    fn publish_firing(&self, firing: &Firing) {
        let Firing { number, ticks, trigger, action, groups, event, tid } = *firing;
        let at = self.layout.firing(number as u32);
        let effect =
            u64::from(event) << 32 | u64::from(groups) << 16 | u64::from(action as u8) << 8 | u64::from(trigger);
        // While it is written, it is no firing.
        self.memory.store(at, 0, Relaxed);
        self.memory.fence(SeqCst);
        self.memory.store(at + 8, ticks, Relaxed);
        self.memory.store(at + 16, effect, Relaxed);
        self.memory.store(at + 24, tid.into(), Relaxed);
        self.memory.store(at, number + 1, Release);
    }
}

/// A word that one thread has changed: its trigger fires.
struct FiringClaim {
    at: u64,
    before: u64,
    after: u64,
}

/// The control byte of an event that groups want in these ways: the filter that all of them have, else
/// no filter.
#[must_use]
pub fn merged(wanted: impl Iterator<Item = u8>) -> u8 {
    wanted.fold(0, |all, one| match (all, one) {
        (all, 0) => all,
        (0, one) => one,
        (all, one) if all == one => all,
        _ => 1,
    })
}

impl<V: MemoryView> RecorderSide<V> {
    /// Whether the program can have triggers. Those that are built with older tracers cannot.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn has_triggers(&self) -> Result<bool, V::Fault> {
        Ok(self.view.word(header::TRIGGERS)? == self.layout.triggers())
    }

    /// Whether its triggers may [tell](TriggerAction::Tell).
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn triggers_tell(&self) -> Result<bool, V::Fault> {
        Ok(self.view.word(header::TELLS)? != 0)
    }

    /// Writes an image of the control bytes: 0 is that of sessions that no trigger controls, then come
    /// those of the groups.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn set_image(&self, number: u32, controls: &[u8]) -> Result<(), V::Fault> {
        let at = self.layout.image(number.min(GROUPS_MAX));
        let covered = controls.len().min(self.layout.events as usize);
        for (bytes, place) in controls[..covered].chunks(8).zip((at..).step_by(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.view.set_word(place, u64::from_le_bytes(word))?;
        }
        Ok(())
    }

    /// Says how many events the images cover. All of them are written by now.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn cover(&self, events: u32) -> Result<(), V::Fault> {
        self.view.set_word(self.layout.triggers() + triggers::IMAGE_EVENTS, events.into())
    }

    /// Says which groups record from now on, unless the program has changed them more often than `groups` says. Each
    /// base has the number behind that of the one before.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn set_base(&self, groups: RecordingGroups) -> Result<(), V::Fault> {
        let at = self.layout.triggers();
        self.view.set_word(at + triggers::BASES[groups.base as usize & 1], Base::of(groups).0)?;
        self.view.set_byte(at + triggers::BASE, groups.base as u8)
    }

    /// Says which groups record, to machine code of judgements. This belongs to drawing the control bytes.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn draw_groups(&self, bits: u8) -> Result<(), V::Fault> {
        self.view.set_byte(header::STOPPED, !bits)
    }

    /// The groups that record now.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn groups(&self) -> Result<RecordingGroups, V::Fault> {
        let at = self.layout.triggers();
        let own = self.view.word(at + triggers::GROUPS)?;
        let number = self.view.word(at + triggers::BASE)? as usize;
        Ok(recording(self.view.word(at + triggers::BASES[number & 1])?, own))
    }

    /// Sets a trigger.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn set_trigger(&self, number: u8, state: &TriggerState) -> Result<(), V::Fault> {
        let at = self.trigger(number);
        let flags = [(state.is_armed, IS_ARMED), (state.repeats, REPEATS), (state.is_always, ALWAYS)];
        let flags = flags.into_iter().fold(0, |all, (is_set, flag)| if is_set { all | flag } else { all }) as u8;
        let said = u64::from(state.count) << 32 | u64::from(state.groups) << 8 | state.action as u64;
        let [armed, interval, before] =
            [trigger::ARMED, trigger::INTERVAL, trigger::ACTION].map(|word| self.view.word(at + word));
        if (armed? >> 8, interval?, before?) == (state.epoch, state.interval, said) {
            // It is the same one, and misses no event.
            return self.view.set_byte(at + trigger::ARMED, flags);
        }
        // It cannot fire while it is half set.
        self.view.set_byte(at + trigger::ARMED, 0)?;
        self.view.settle();
        if self.view.word(at + trigger::ARMED)? >> 8 != state.epoch {
            // Another trigger may have had the number. The program writes these while it is armed.
            self.view.set_word(at + trigger::FIRED, 0)?;
            self.view.set_word(at + trigger::LAST, 0)?;
            self.view.set_word(at + trigger::SUPPRESSED, 0)?;
            self.view.set_word(at + trigger::BEFORE, 0)?;
            self.view.set_word(at + trigger::COUNTED, 0)?;
        }
        self.view.set_word(at + trigger::INTERVAL, state.interval)?;
        self.view.set_word(at + trigger::ACTION, said)?;
        self.view.set_word(at + trigger::ARMED, state.epoch << 8)?;
        self.view.set_byte(at + trigger::ARMED, flags)
    }

    /// Firings of a trigger that came too early after another one.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn suppressed(&self, number: u8) -> Result<u64, V::Fault> {
        self.view.word(self.trigger(number) + trigger::SUPPRESSED)
    }

    /// Matches that a trigger has counted in this program.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn counted(&self, number: u8) -> Result<u64, V::Fault> {
        self.view.word(self.trigger(number) + trigger::COUNTED)
    }

    /// Says how many matches of a trigger the program has not counted since it is armed.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn set_before(&self, number: u8, matches: u64) -> Result<(), V::Fault> {
        self.view.set_word(self.trigger(number) + trigger::BEFORE, matches)
    }

    fn trigger(&self, number: u8) -> u64 {
        let number = u64::from(number).min(u64::from(TRIGGERS_MAX) - 1);
        self.layout.triggers() + triggers::STATES + number * triggers::STATE_BYTES
    }

    /// Number of events that had a judgement and were recorded without it.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn unjudged(&self) -> Result<u64, V::Fault> {
        self.view.word(self.layout.triggers() + triggers::UNJUDGED)
    }

    /// Whether no firing is under way: all that have begun by now are over.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn is_quiet(&self) -> Result<bool, V::Fault> {
        let at = self.layout.triggers();
        // In this order: there are never fewer that have begun, so that equal numbers are those of the
        // first read.
        let done = self.view.word(at + triggers::DONE)?;
        Ok(self.view.word(at + triggers::BEGUN)? == done)
    }

    /// Firings from a number on, in the order of their changes. Returns the number behind the last one, and how
    /// many are not known any more: a ring holds the last 256.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn firings(&self, from: u64, mut each: impl FnMut(Firing)) -> Result<(u64, u64), V::Fault> {
        let changes = self.groups()?.changes;
        let is_quiet = self.is_quiet()?;
        // Of the number, the program has 32 bits.
        let fired = from + u64::from(changes.wrapping_sub(from as u32));
        let first = from.max(fired.saturating_sub(triggers::FIRINGS_MAX));
        let mut unknown = first - from;
        for number in first..fired {
            let at = self.layout.firing(number as u32);
            let (known, wanted) = (self.view.word(at)?, u64::from(number as u32) + 1);
            if known != wanted {
                // It may still be written, unless a later one is there.
                let is_coming = known == 0 || (known.wrapping_sub(wanted) as u32).cast_signed() < 0;
                if is_coming && !is_quiet {
                    return Ok((number, unknown));
                }
                unknown += 1;
                continue;
            }
            let (ticks, effect, tid) = (self.view.word(at + 8)?, self.view.word(at + 16)?, self.view.word(at + 24)?);
            self.view.fence();
            let is_whole = self.view.word(at)? == known;
            let Some(action) = TriggerAction::of((effect >> 8) as u8).filter(|_| is_whole) else {
                unknown += 1;
                continue;
            };
            let (trigger, groups, event) = (effect as u8, (effect >> 16) as u8, (effect >> 32) as u16);
            each(Firing { number, ticks, trigger, action, groups, event, tid: tid as u32 });
        }
        Ok((fired, unknown))
    }
}
