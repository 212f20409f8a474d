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
//! *begins*, then reads the clock. A recorder that has looked at events therefore waits until as many
//! firings are over as had begun after its look: then it knows of each firing that is earlier than any
//! event that it saw.

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
}

impl TriggerAction {
    fn of(byte: u8) -> Option<Self> {
        [Self::Start, Self::Stop, Self::Snapshot].into_iter().find(|action| *action as u8 == byte)
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
    /// Least number of ticks between two firings.
    pub interval: u64,
    /// Its effect.
    pub action: TriggerAction,
    /// The groups that it does that to.
    pub groups: u8,
}

/// A trigger has fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Firing {
    /// How many firings of the program were before it.
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
    /// Number of the base that the groups followed.
    pub base: u32,
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
        if !self.memory.reserve(at, triggers::IMAGES) {
            return false;
        }
        let covered = self.covered();
        (0..=GROUPS_MAX).all(|number| self.memory.reserve(self.layout.image(number), covered.into()))
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

    /// Whether any of these triggers, one bit each, could fire now.
    #[must_use]
    pub fn may_fire(&self, triggers: u32) -> bool {
        (0..TRIGGERS_MAX as u8).filter(|number| triggers >> number & 1 != 0).any(|number| {
            let armed = self.memory.load(self.state(number) + trigger::ARMED, Acquire);
            let has_fired = self.memory.load(self.state(number) + trigger::FIRED, Relaxed) >= armed >> 8;
            armed & IS_ARMED != 0 && (armed & REPEATS != 0 || !has_fired)
        })
    }

    /// An event has matched a trigger: fires it, unless it is not armed or has no effect now. Returns
    /// the groups that it has changed. The caller blocks signals. `clock` tells the ticks.
    pub fn fire(&self, number: u8, event: u16, tid: u32, clock: impl Fn() -> u64) -> Option<u8> {
        if u32::from(number) >= TRIGGERS_MAX {
            return None;
        }
        let (at, region) = (self.state(number), self.layout.triggers());
        let armed = self.memory.load(at + trigger::ARMED, Acquire);
        let said = self.memory.load(at + trigger::ACTION, Relaxed);
        let (action, groups) = (TriggerAction::of(said as u8)?, (said >> 8) as u8 & !OTHER_GROUPS);
        if armed & IS_ARMED == 0 || self.effect(action, groups) == 0 || !self.is_due(at, armed, clock()) {
            return None;
        }
        self.memory.add(region + triggers::BEGUN, 1);
        // The clock is read after the firing has begun, see above.
        self.memory.fence(SeqCst);
        let ticks = clock();
        let fired = self.claim_firing(at, armed, ticks).then(|| self.change(action, groups)).flatten();
        if let Some((changed, base)) = fired {
            self.draw();
            // The recorder needs longer to wake than this firing to end.
            self.memory.ring();
            // Threads that are started before this thread records its event are not: that is the first one.
            let ticks = if action == TriggerAction::Start { clock() } else { ticks };
            self.publish_firing(&Firing {
                number: 0,
                ticks,
                trigger: number,
                action,
                groups: changed,
                event,
                tid,
                base,
            });
        }
        self.memory.fence(SeqCst);
        self.memory.add(region + triggers::DONE, 1);
        fired.map(|(changed, _)| changed)
    }

    fn state(&self, number: u8) -> u64 {
        self.layout.triggers() + triggers::STATES + u64::from(number) * triggers::STATE_BYTES
    }

    /// The groups that an action would change now.
    fn effect(&self, action: TriggerAction, groups: u8) -> u8 {
        let bits = self.groups().bits;
        if action == TriggerAction::Start { groups & !bits } else { groups & bits }
    }

    /// Whether enough time has passed since the last firing, and a trigger that fires once has not.
    fn is_due(&self, at: u64, armed: u64, now: u64) -> bool {
        if armed & REPEATS == 0 {
            return self.memory.load(at + trigger::FIRED, Relaxed) < armed >> 8;
        }
        let (last, interval) =
            (self.memory.load(at + trigger::LAST, Relaxed), self.memory.load(at + trigger::INTERVAL, Relaxed));
        let is_due = last == 0 || now.saturating_sub(last) >= interval;
        if !is_due {
            self.memory.add(at + trigger::SUPPRESSED, 1);
        }
        is_due
    }

    /// Of several threads one fires.
    fn claim_firing(&self, at: u64, armed: u64, ticks: u64) -> bool {
        if armed & REPEATS == 0 {
            let before = self.memory.load(at + trigger::FIRED, Relaxed);
            return before < armed >> 8 && self.memory.compare_exchange(at + trigger::FIRED, before, armed >> 8);
        }
        let before = self.memory.load(at + trigger::LAST, Relaxed);
        let interval = self.memory.load(at + trigger::INTERVAL, Relaxed);
        let is_due = before == 0 || ticks.saturating_sub(before) >= interval;
        is_due && self.memory.compare_exchange(at + trigger::LAST, before, ticks)
    }

    /// Changes the groups; returns those that are different now, and their base.
    fn change(&self, action: TriggerAction, groups: u8) -> Option<(u8, u32)> {
        let at = self.layout.triggers();
        loop {
            let own = self.memory.load(at + triggers::GROUPS, Acquire);
            let now = recording(self.base(), own);
            let bits = if action == TriggerAction::Start { now.bits | groups } else { now.bits & !groups };
            if bits == now.bits {
                return None;
            }
            let new = Base::of(RecordingGroups { bits, base: now.base, changes: now.changes.wrapping_add(1) }).0;
            if self.memory.compare_exchange(at + triggers::GROUPS, own, new) {
                return Some((bits ^ now.bits, now.base));
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
        let region = self.layout.triggers();
        let number = self.memory.add(region + triggers::FIRED, 1);
        let at = region + triggers::FIRINGS + number % triggers::FIRINGS_MAX * triggers::FIRING_BYTES;
        let Firing { ticks, trigger, action, groups, event, tid, base, .. } = *firing;
        let effect =
            u64::from(event) << 32 | u64::from(groups) << 16 | u64::from(action as u8) << 8 | u64::from(trigger);
        // While it is written, it is no firing.
        self.memory.store(at, 0, Relaxed);
        self.memory.fence(SeqCst);
        self.memory.store(at + 8, ticks, Relaxed);
        self.memory.store(at + 16, effect, Relaxed);
        self.memory.store(at + 24, u64::from(base) << 32 | u64::from(tid), Relaxed);
        self.memory.store(at, number + 1, Release);
    }
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
        let at = self.layout.triggers()
            + triggers::STATES
            + u64::from(number).min(u64::from(TRIGGERS_MAX) - 1) * triggers::STATE_BYTES;
        // It cannot fire while it is half set.
        self.view.set_byte(at + trigger::ARMED, 0)?;
        self.view.settle();
        if self.view.word(at + trigger::ARMED)? >> 8 != state.epoch {
            // Another trigger may have had the number. The program writes these while it is armed.
            self.view.set_word(at + trigger::LAST, 0)?;
            self.view.set_word(at + trigger::SUPPRESSED, 0)?;
        }
        self.view.set_word(at + trigger::INTERVAL, state.interval)?;
        self.view.set_word(at + trigger::ACTION, u64::from(state.groups) << 8 | state.action as u64)?;
        self.view.set_word(at + trigger::ARMED, state.epoch << 8)?;
        let flags = (if state.is_armed { IS_ARMED } else { 0 }) | (if state.repeats { REPEATS } else { 0 });
        self.view.set_byte(at + trigger::ARMED, flags as u8)
    }

    /// Firings of a trigger that came too early after another one.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn suppressed(&self, number: u8) -> Result<u64, V::Fault> {
        let state = u64::from(number).min(u64::from(TRIGGERS_MAX) - 1) * triggers::STATE_BYTES;
        self.view.word(self.layout.triggers() + triggers::STATES + state + trigger::SUPPRESSED)
    }

    /// Number of events that had a judgement and were recorded without it.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn unjudged(&self) -> Result<u64, V::Fault> {
        self.view.word(self.layout.triggers() + triggers::UNJUDGED)
    }

    /// Number of firings that have begun, for [`is_over`](Self::is_over).
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn begun(&self) -> Result<u64, V::Fault> {
        self.view.word(self.layout.triggers() + triggers::BEGUN)
    }

    /// Whether so many firings are over: those that had begun when [`begun`](Self::begun) was called.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn is_over(&self, begun: u64) -> Result<bool, V::Fault> {
        Ok(self.view.word(self.layout.triggers() + triggers::DONE)? >= begun)
    }

    /// Firings from a number on, in their order. Returns the number behind the last one, and how many are
    /// not known any more: a ring holds the last 256.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn firings(&self, from: u64, mut each: impl FnMut(Firing)) -> Result<(u64, u64), V::Fault> {
        let region = self.layout.triggers();
        let fired = self.view.word(region + triggers::FIRED)?;
        let first = from.max(fired.saturating_sub(triggers::FIRINGS_MAX));
        let mut unknown = first - from.min(first);
        for number in first..fired {
            let at = region + triggers::FIRINGS + number % triggers::FIRINGS_MAX * triggers::FIRING_BYTES;
            let known = self.view.word(at)?;
            if known <= number {
                // It is still being written.
                return Ok((number, unknown));
            }
            let (ticks, effect, origin) = (self.view.word(at + 8)?, self.view.word(at + 16)?, self.view.word(at + 24)?);
            self.view.fence();
            let is_whole = known == number + 1 && self.view.word(at)? == known;
            let Some(action) = TriggerAction::of((effect >> 8) as u8).filter(|_| is_whole) else {
                unknown += 1;
                continue;
            };
            let (trigger, groups, event) = (effect as u8, (effect >> 16) as u8, (effect >> 32) as u16);
            let (tid, base) = (origin as u32, (origin >> 32) as u32);
            each(Firing { number, ticks, trigger, action, groups, event, tid, base });
        }
        Ok((fired.max(from), unknown))
    }
}
