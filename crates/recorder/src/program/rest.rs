//! Programs that rest: not much comes from them, so that they are looked at seldom. They ring the [bell](crate::daemon::bell) when that changes.
//!
//! ```text
//!   awake ── quiet for a while, and rings this bell: it is told ──> dozing ── the next look finds little ──> resting: seldom a look
//!     ^                                                               │  ^                                       │
//!     │                                                  it has rung  v  │ there is little                       │
//!     └── there is a sub-buffer, or something is lost ────────────── rung <──────────────────────────────────────┘
//! ```
//!
//! Who has an event now and then rings too, as sub-buffers are closed when they are old: that wakes nobody for long.
//!
//! What rings and why nothing is slept through is [told](kymo_lane#the-bell) where the memory is. What a program records that rests stays in
//! the sub-buffer that it has; a look takes all of it. Who has no bell, or another one, is always awake: an older program, one in a container
//! with a folder of its own, or one that may not make the call.

use std::time::{Duration, Instant, SystemTime};

use kymo_lane::{Bell, Rings};

use crate::program::{Drained, Patience, Program};

/// Between two looks at a program that rests.
const SELDOM: Duration = Duration::from_millis(250);
/// How long nothing may have happened before a program rests.
const QUIET: Duration = Duration::from_millis(200);
/// Events of programs that are awake may wait so long for others; what rests has none that wait.
const WAIT: Duration = Duration::from_millis(100);

/// Whether a program rests, and since when.
#[derive(Debug)]
pub(crate) struct Rest {
    phase: Phase,
    /// It has filled much of a sub-buffer, lost or defined something since the last round.
    has_turned: bool,
    /// When the last look began that took what there was.
    looked: Option<SystemTime>,
    looks: u64,
    asked: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Since when it is quiet.
    Awake { quiet: Option<Instant> },
    /// It has rung, and nobody has looked since.
    Rung,
    /// It was told, and nobody has looked since.
    Dozing,
    /// Until when.
    Resting { next: Instant },
}

impl Rest {
    pub(crate) fn new() -> Self {
        Self { phase: Phase::Awake { quiet: None }, has_turned: false, looked: None, looks: 0, asked: None }
    }

    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Resting { .. })
    }

    /// How often it was looked at.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Whether it is looked at in the round that begins at that time.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !matches!(self.phase, Phase::Resting { next } if next > now)
    }

    /// The next round looks at it.
    pub(crate) fn hurry(&mut self, now: Instant) {
        if let Phase::Resting { next } = &mut self.phase {
            *next = now;
        }
    }

    /// What it is to do may be another thing now.
    pub(crate) fn wake(&mut self) {
        (self.phase, self.looked) = (Phase::Awake { quiet: None }, None);
    }

    /// Something has changed for which it need not have rung.
    pub(crate) fn turns(&mut self) {
        self.has_turned = true;
    }

    /// The bell has rung; perhaps it was this one.
    pub(crate) fn hear(&mut self, program: &Program) {
        if self.is_resting() && program.lane().has_rung().unwrap_or(false) {
            self.phase = Phase::Rung;
        }
    }

    /// How what it has is taken.
    pub(crate) fn patience(&self, patience: Patience) -> Patience {
        let is_awake = matches!(self.phase, Phase::Awake { .. });
        if patience == Patience::Wait && !is_awake { Patience::Seldom } else { patience }
    }

    /// It was drained by a look that began at that time; `None`: it is gone.
    pub(crate) fn took(&mut self, drained: Option<&Drained>, sub_buffer_bytes: u32, began: SystemTime) {
        self.looked = Some(began);
        let Some(drained) = drained else { return };
        let is_much = drained.given_back > 0 && drained.bytes >= u64::from(sub_buffer_bytes / 2);
        self.has_turned |= is_much || drained.is_left && drained.given_back > 0;
        self.has_turned |= drained.lost > 0 || drained.discarded > 0;
    }

    /// Everything is taken that happened before that, but for what waits in programs that are awake. Who was looked at just now: `began`.
    pub(crate) fn taken(&self, began: SystemTime) -> SystemTime {
        let seldom = self.looked.filter(|_| self.is_resting()).map(|looked| looked + WAIT);
        seldom.map_or(began, |looked| looked.min(began))
    }

    /// Whether it is time to ask whether it is dead.
    pub(crate) fn asks(&mut self, now: Instant) -> bool {
        let is_time = self.is_due(now) || self.asked.is_none_or(|asked| now.duration_since(asked) >= SELDOM);
        if is_time {
            self.asked = Some(now);
        }
        is_time
    }

    /// A round is over that has looked at it. `bell` is what the recorder hears, and `rings` what it wants to be told of.
    pub(crate) fn end_round(&mut self, program: &Program, bell: Option<Bell>, rings: Rings, now: Instant) {
        self.looks += 1;
        let has_rung = || program.lane().has_rung().unwrap_or(false);
        self.phase = match self.phase {
            phase if std::mem::take(&mut self.has_turned) => {
                if !matches!(phase, Phase::Awake { .. }) {
                    let _ = program.lane().wake();
                }
                Phase::Awake { quiet: None }
            }
            Phase::Awake { quiet } => {
                let since = quiet.unwrap_or(now);
                let is_quiet = now.duration_since(since) >= QUIET;
                if is_quiet && sleep(program, bell, rings) {
                    Phase::Dozing
                } else {
                    Phase::Awake { quiet: Some(since) }
                }
            }
            Phase::Rung if sleep(program, bell, rings) => Phase::Dozing,
            Phase::Rung => Phase::Awake { quiet: Some(now) },
            Phase::Dozing | Phase::Resting { .. } if has_rung() => Phase::Rung,
            Phase::Dozing | Phase::Resting { .. } => Phase::Resting { next: now + SELDOM },
        };
    }
}

/// Tells a program that it is not looked at from now on, if it rings this bell. It is asked what it says itself: a bell that it could not
/// ring is none any more.
fn sleep(program: &Program, bell: Option<Bell>, rings: Rings) -> bool {
    bell.is_some() && program.lane().bell().is_ok_and(|its| its == bell) && program.lane().sleep(rings).is_ok()
}
