//! Programs that rest: few events come from them, so the recorder looks at them seldom. They ring
//! the [bell](crate::daemon::bell) when that changes.
//!
//! ```text
//!   awake ── quiet for a while, and rings this bell: it is told ──> dozing ── the next look finds little ──> resting: seldom a look
//!     ^                                                               │  ^                                       │
//!     │                                                  it has rung  v  │ there is little                       │
//!     └── there is a sub-buffer, or something is lost ────────────── rung <──────────────────────────────────────┘
//! ```
//!
//! A program with an event now and then rings too, because its old sub-buffers are closed: such a
//! ring wakes it only briefly.
//!
//! The memory's documentation [tells](kymo_lane#the-bell) what rings and why no event is slept
//! through. A resting program records to the sub-buffer that it has; a look takes all of it. A
//! program without a bell, or with another one, is always awake: an older program, one in a
//! container with a folder of its own, or one that may not make the call.

use std::time::{Duration, Instant, SystemTime};

use kymo_lane::{BellIdentity, Rings};

use crate::program::{DrainTiming, Drained, Program};

/// Time between two looks at a program that rests.
const SELDOM: Duration = Duration::from_millis(250);
/// How long a program has to be quiet before it rests.
const QUIET: Duration = Duration::from_millis(200);
/// How long events of an awake program may wait for more; events of a resting program do not wait.
const WAIT: Duration = Duration::from_millis(100);

/// Whether a program rests, and since when.
#[derive(Debug)]
pub(crate) struct Rest {
    phase: RestPhase,
    /// It has filled much of a sub-buffer, or lost or defined events since the last round.
    has_turned: bool,
    /// When the last look began that took its events.
    looked: Option<SystemTime>,
    looks: u64,
    asked: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum RestPhase {
    /// Since when it is quiet.
    Awake { quiet: Option<Instant> },
    /// It has rung, and the recorder has not looked since.
    Rung,
    /// It was told to ring, and the recorder has not looked since.
    Dozing,
    /// When the next look is due.
    Resting { next: Instant },
}

impl Rest {
    pub(crate) fn new() -> Self {
        Self { phase: RestPhase::Awake { quiet: None }, has_turned: false, looked: None, looks: 0, asked: None }
    }

    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.phase, RestPhase::Resting { .. })
    }

    /// How often the recorder has looked at it.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Whether the round that begins at that time looks at it.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !matches!(self.phase, RestPhase::Resting { next } if next > now)
    }

    /// The next round looks at it.
    pub(crate) fn hurry(&mut self, now: Instant) {
        if let RestPhase::Resting { next } = &mut self.phase {
            *next = now;
        }
    }

    /// Wakes it, because its task may have changed.
    pub(crate) fn wake(&mut self) {
        (self.phase, self.looked) = (RestPhase::Awake { quiet: None }, None);
    }

    /// Notes a change for which it need not have rung.
    pub(crate) fn turns(&mut self) {
        self.has_turned = true;
    }

    /// The bell has rung; perhaps this program rang it.
    pub(crate) fn hear(&mut self, program: &Program) {
        // All programs of the folder share one bell, so each of them is asked whether it was the
        // one.
        if self.is_resting() && program.lane().has_rung().unwrap_or(false) {
            self.phase = RestPhase::Rung;
        }
    }

    /// How to take its events.
    pub(crate) fn patience(&self, patience: DrainTiming) -> DrainTiming {
        let is_awake = matches!(self.phase, RestPhase::Awake { .. });
        // The next look is a quarter of a second away: events that waited for more would be late.
        if patience == DrainTiming::Wait && !is_awake { DrainTiming::Seldom } else { patience }
    }

    /// It was drained by a look that began at that time; `None`: it is gone.
    pub(crate) fn took(&mut self, drained: Option<&Drained>, sub_buffer_bytes: u32, began: SystemTime) {
        // The time is that of the begin: events recorded during the look may have been missed.
        self.looked = Some(began);
        let Some(drained) = drained else { return };
        // A full sub-buffer with few events comes from a lane that was closed, and is no reason to
        // poll.
        let is_much = drained.given_back > 0 && drained.bytes >= u64::from(sub_buffer_bytes / 2);
        self.has_turned |= is_much || drained.is_left && drained.given_back > 0;
        self.has_turned |= drained.lost > 0 || drained.discarded > 0;
    }

    /// Up to this time all events are taken, except those that wait in awake programs. For a
    /// program that was looked at just now: `began`.
    pub(crate) fn taken(&self, began: SystemTime) -> SystemTime {
        let seldom = self.looked.filter(|_| self.is_resting()).map(|looked| looked + WAIT);
        seldom.map_or(began, |looked| looked.min(began))
    }

    /// Whether it is time to check whether it is dead.
    pub(crate) fn asks(&mut self, now: Instant) -> bool {
        let is_time = self.is_due(now) || self.asked.is_none_or(|asked| now.duration_since(asked) >= SELDOM);
        if is_time {
            self.asked = Some(now);
        }
        is_time
    }

    /// Ends a round that has looked at it. `bell` is the recorder's bell, and `rings` the changes
    /// that it has to ring for.
    pub(crate) fn end_round(&mut self, program: &Program, bell: Option<BellIdentity>, rings: Rings, now: Instant) {
        self.looks += 1;
        let has_rung = || program.lane().has_rung().unwrap_or(false);
        self.phase = match self.phase {
            // The guard resets the flag in each phase, because this arm comes first.
            phase if std::mem::take(&mut self.has_turned) => {
                if !matches!(phase, RestPhase::Awake { .. }) {
                    // Otherwise it would ring, with a system call, for a recorder that polls
                    // anyway.
                    let _ = program.lane().wake();
                }
                RestPhase::Awake { quiet: None }
            }
            RestPhase::Awake { quiet } => {
                let since = quiet.unwrap_or(now);
                let is_quiet = now.duration_since(since) >= QUIET;
                // Not resting yet: events that came before the program saw the request are found by
                // one more look, in phase *dozing*.
                if is_quiet && sleep(program, bell, rings) {
                    RestPhase::Dozing
                } else {
                    RestPhase::Awake { quiet: Some(since) }
                }
            }
            // Without a quiet time first: one event now and then must not keep it awake.
            RestPhase::Rung if sleep(program, bell, rings) => RestPhase::Dozing,
            RestPhase::Rung => RestPhase::Awake { quiet: Some(now) },
            RestPhase::Dozing | RestPhase::Resting { .. } if has_rung() => RestPhase::Rung,
            RestPhase::Dozing | RestPhase::Resting { .. } => RestPhase::Resting { next: now + SELDOM },
        };
    }
}

/// Tells a program to ring this bell, because the recorder looks at it seldom from now on. The
/// recorder asks the program for its bell: a bell that the program could not ring does not count.
fn sleep(program: &Program, bell: Option<BellIdentity>, rings: Rings) -> bool {
    bell.is_some() && program.lane().bell().is_ok_and(|its| its == bell) && program.lane().sleep(rings).is_ok()
}
