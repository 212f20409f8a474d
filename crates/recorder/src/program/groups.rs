//! Groups of sessions that triggers start and stop in a program: the recorder's part ([`kymo_lane`] has the
//! program's).
//!
//! ```text
//! settle   images of the control bytes ──> triggers ──> base ──> control bytes, again until no trigger has come between
//! round    look at lanes ──> no firing is under way? ──> times of all are known ──> events are taken
//! ```

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use kymo_lane::{Firing, GROUPS_MAX, MemoryView, OTHER_GROUPS, RecorderSide, RecordingGroups, TriggerState, merged};

use crate::program::Control;

type Memory = RecorderSide<Control>;

/// Images: that of sessions without triggers, and one of each group.
const IMAGES: usize = GROUPS_MAX as usize + 1;
/// How long the recorder takes no events of a program because a firing is not over: its thread does not run.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the recorder asks whether a firing is over, before it waits: most need some microseconds.
const ASKS_MAX: u32 = 64;
/// How often the recorder draws control bytes again because a trigger has come between.
const DRAWS_MAX: u32 = 16;

/// Groups and triggers of a program, as the recorder has set them.
#[derive(Debug, Default)]
pub(crate) struct GroupControl {
    images: [Vec<u8>; IMAGES],
    /// The same as the program has them.
    written: [Vec<u8>; IMAGES],
    triggers: HashMap<u8, TriggerState>,
    /// Matches of triggers, by number and epoch, that the program has been told of.
    counted: HashMap<u8, (u64, u64)>,
    /// Number of the base that was set last; 0: none.
    base: u32,
    /// Number of the next firing.
    next: u64,
    /// Ticks of the last one.
    latest: u64,
    /// Since when a firing is not over.
    waits: Option<Instant>,
}

/// Firings that were learned.
#[derive(Debug, Default)]
pub(crate) struct LearnedFirings {
    pub(crate) firings: Vec<Firing>,
    /// Firings that the program has forgotten before they were read.
    pub(crate) unknown: u64,
    /// A firing is not over: events that the recorder has seen may be later. They wait.
    pub(crate) is_waiting: bool,
    /// It has not been over for too long: events do not wait any more.
    pub(crate) is_stuck: bool,
}

impl GroupControl {
    /// Sets the control bytes of an event, of all images.
    pub(crate) fn set(&mut self, id: u16, controls: [u8; IMAGES]) {
        for (image, control) in self.images.iter_mut().zip(controls) {
            if image.len() <= usize::from(id) {
                image.resize(usize::from(id) + 1, 0);
            }
            image[usize::from(id)] = control;
        }
    }

    /// Whether no recorder has ever said which groups record: the program leaves that to the recorder, event by event.
    pub(crate) fn is_first(&self, memory: &Memory) -> io::Result<bool> {
        Ok(self.base == 0 && memory.groups()?.base == 0)
    }

    /// Whether these groups record now, and no others.
    pub(crate) fn is_as(&self, memory: &Memory, bits: u8) -> io::Result<bool> {
        Ok(memory.groups()?.bits == bits | OTHER_GROUPS)
    }

    /// Whether the program has or had any trigger.
    pub(crate) fn is_used(&self) -> bool {
        self.base > 0
    }

    /// Writes all that has changed to the program, then its base for these groups. The triggers are all that it
    /// has from now on.
    pub(crate) fn write(&mut self, memory: &Memory, triggers: &HashMap<u8, TriggerState>, bits: u8) -> io::Result<()> {
        for (number, (image, written)) in (0..).zip(self.images.iter().zip(&mut self.written)) {
            if image != written {
                memory.set_image(number, image)?;
                written.clone_from(image);
            }
        }
        memory.cover(self.images[0].len() as u32)?;
        self.follow(memory, bits)?;
        for (number, state) in self.triggers.iter().filter(|(number, _)| !triggers.contains_key(number)) {
            memory.set_trigger(*number, &TriggerState { is_armed: false, ..*state })?;
        }
        for (number, state) in triggers {
            if self.triggers.get(number) != Some(state) {
                memory.set_trigger(*number, state)?;
            }
        }
        self.triggers.clone_from(triggers);
        self.draw(memory)
    }

    /// Tells the program of matches of a trigger that it has not counted itself.
    pub(crate) fn count(&mut self, memory: &Memory, number: u8, matches: u64) -> io::Result<()> {
        let Some(epoch) = self.triggers.get(&number).map(|state| state.epoch) else { return Ok(()) };
        if self.counted.insert(number, (epoch, matches)) != Some((epoch, matches)) {
            memory.set_before(number, matches)?;
        }
        Ok(())
    }

    /// These groups record from now on, unless they do already. Returns whether that was a change.
    pub(crate) fn follow(&mut self, memory: &Memory, bits: u8) -> io::Result<bool> {
        let bits = bits | OTHER_GROUPS;
        let now = memory.groups()?;
        // A firing that is not known yet may be the reason: the next round knows it.
        let is_known = now.changes == self.next as u32;
        if self.base > 0 && (now.bits == bits || !is_known) {
            return Ok(false);
        }
        // Another recorder may have set bases before.
        self.base = now.base.max(self.base) + 1;
        memory.set_base(RecordingGroups { bits, base: self.base, changes: now.changes })?;
        Ok(true)
    }

    /// Sets the control bytes as the groups say that record now, again if a trigger comes between.
    pub(crate) fn draw(&self, memory: &Memory) -> io::Result<()> {
        let mut control = vec![0; self.images[0].len()];
        for _ in 0..DRAWS_MAX {
            let groups = memory.groups()?;
            memory.draw_groups(groups.bits)?;
            memory.view().copy(memory.layout().control(0), &mut control)?;
            for (id, known) in control.iter().enumerate() {
                let images = self.images.iter().enumerate();
                let recording = images.filter(|(number, _)| *number == 0 || groups.bits >> (number - 1) & 1 != 0);
                let wanted = merged(recording.map(|(_, image)| image[id]));
                if *known != wanted {
                    memory.switch(id as u16, wanted)?;
                }
            }
            if memory.groups()? == groups {
                break;
            }
        }
        Ok(())
    }

    /// A recorder that goes on after another one begins with the firings that are not known.
    pub(crate) fn begin(&mut self, known: u64) {
        if self.base == 0 {
            self.next = self.next.max(known);
        }
    }

    /// Number of the next firing that is not known.
    pub(crate) fn next_firing(&self, memory: &Memory) -> u64 {
        memory.firings(self.next, |_| {}).map_or(self.next, |(next, _)| next)
    }

    /// Firings that are new, in their order. No one is earlier than the one before, or later than `now` tells then:
    /// the ticks that the program says are cut to that.
    pub(crate) fn learn(&mut self, memory: &Memory, now: impl Fn() -> u64) -> io::Result<LearnedFirings> {
        let mut learned = LearnedFirings::default();
        let mut is_quiet = memory.is_quiet()?;
        for _ in 0..ASKS_MAX {
            if is_quiet {
                break;
            }
            std::thread::yield_now();
            is_quiet = memory.is_quiet()?;
        }
        if is_quiet {
            self.waits = None;
        } else {
            let since = *self.waits.get_or_insert_with(Instant::now);
            learned.is_stuck = since.elapsed() >= PATIENCE;
            learned.is_waiting = !learned.is_stuck;
        }
        let (next, unknown) = memory.firings(self.next, |firing| learned.firings.push(firing))?;
        let now = now();
        for firing in &mut learned.firings {
            firing.ticks = firing.ticks.min(now).max(self.latest);
            self.latest = firing.ticks;
        }
        (self.next, learned.unknown) = (next, unknown);
        Ok(learned)
    }
}
