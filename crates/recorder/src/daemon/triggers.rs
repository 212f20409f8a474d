//! Triggers that have fired: sessions start and stop, and programs follow.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use super::{BUSY, Daemon, drain};
use crate::program::{DrainTiming, Drained};
use crate::session::serve::Served;
use crate::session::triggers::ProgramFiring;
use crate::session::watch::TriggerName;
use crate::session::{RecordingSession, WatchedClocks};

/// How long a session that ends waits for a thread that fires a trigger.
const FIRES: Duration = Duration::from_millis(100);

impl Daemon {
    /// Looks at the programs with triggers that may fire, and learns of all firings that are earlier than the events
    /// that were seen: these decide which of the events sessions want. Returns programs whose events have to
    /// wait.
    pub(super) fn hear_triggers(&mut self, patience: DrainTiming) -> HashSet<u64> {
        let Self { served, sessions, clocks, round, .. } = self;
        let (mut waiting, mut fired) = (HashSet::new(), Vec::new());
        if !sessions.iter().any(|session| session.triggers.is_limited()) {
            return waiting;
        }
        // All looks come before all firings: an event of one program may be later than a firing of another.
        let is_due = |program: &&mut Served| patience != DrainTiming::Wait || program.rest.is_due(*round);
        let looked: Vec<_> = served
            .iter_mut()
            .filter(is_due)
            .filter_map(|program| {
                let begun = program.program.look().ok()?;
                Some((program, begun))
            })
            .collect();
        for (program, begun) in looked {
            let (firings, is_waiting) = hear_of(program, begun, sessions, clocks);
            if is_waiting && patience == DrainTiming::Wait {
                program.program.forget_look();
                waiting.insert(program.key());
            }
            fired.extend(firings);
        }
        fired.sort_by_key(|(_, fired)| fired.firing.ticks);
        self.act(&fired);
        waiting
    }

    /// Triggers have fired, or the time of a start is over: programs follow.
    pub(crate) fn act(&mut self, fired: &[(TriggerName, ProgramFiring)]) {
        let Self { served, sessions, clocks, compiler, .. } = self;
        let now = clocks.now();
        tell_fired(fired, sessions, now);
        sessions.iter_mut().for_each(|session| session.is_on = session.triggers.is_on_for_all(now));
        for program in served.iter_mut() {
            // Programs no longer judge a trigger that has fired once.
            let _ = if fired.is_empty() { program.follow(sessions) } else { program.switch(sessions, compiler) };
        }
    }
}

/// Firings of a program, and whether its events have to wait because one is not over. `begun`: how many had
/// begun after the look at its events.
pub(super) fn hear_of(
    program: &mut Served,
    begun: u64,
    sessions: &mut [RecordingSession],
    clocks: &mut WatchedClocks,
) -> (Vec<(TriggerName, ProgramFiring)>, bool) {
    let mut fired = program.watch(clocks);
    if !program.program.has_triggers()
        || !sessions.iter().any(|session| session.triggers.group(program.key()).is_some())
    {
        return (fired, false);
    }
    let Ok(learned) = program.groups.learn(program.program.lane(), begun) else { return (fired, false) };
    program.tell_unknown(&learned, sessions);
    fired.extend(learned.firings.iter().filter_map(|firing| program.fired(firing, sessions, clocks)));
    fired.sort_by_key(|(_, fired)| fired.firing.ticks);
    (fired, learned.is_waiting)
}

/// Sessions learn of the triggers that have fired, in the order of their times.
pub(super) fn tell_fired(fired: &[(TriggerName, ProgramFiring)], sessions: &mut [RecordingSession], now: [u64; 2]) {
    for ((session, trigger), firing) in fired {
        if let Some(session) = sessions.iter_mut().find(|known| known.name == *session) {
            session.triggers.fired(trigger, firing, now);
        }
    }
}

/// Takes the last events that a program has recorded: firings that are earlier than they count.
pub(super) fn drain_last(
    program: &mut Served,
    sessions: &mut [RecordingSession],
    clocks: &mut WatchedClocks,
    patience: DrainTiming,
) -> io::Result<Drained> {
    if sessions.iter().any(|session| session.triggers.is_limited()) {
        let begun = program.program.look()?;
        let (mut fired, mut is_waiting) = hear_of(program, begun, sessions, clocks);
        let since = Instant::now();
        while is_waiting && patience != DrainTiming::Last && since.elapsed() < FIRES {
            std::thread::sleep(BUSY);
            let (more, waits) = hear_of(program, begun, sessions, clocks);
            fired.extend(more);
            is_waiting = waits;
        }
        tell_fired(&fired, sessions, clocks.now());
    }
    drain(program, sessions, clocks, patience)
}
