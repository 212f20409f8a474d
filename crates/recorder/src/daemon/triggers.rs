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
        let mut fired = Vec::new();
        if !sessions.iter().any(|session| session.triggers.is_limited()) {
            return HashSet::new();
        }
        // All looks come before all firings: an event of one program may be later than a firing of another.
        let mut has_looked = HashSet::new();
        for program in served.iter_mut() {
            let is_due = patience != DrainTiming::Wait || program.rest.is_due(*round);
            if is_due && program.program.look().is_ok() {
                has_looked.insert(program.key());
            }
        }
        // A program that rests has no new events, but may have fired.
        let mut is_waiting = false;
        for program in served.iter_mut() {
            let watched =
                if has_looked.contains(&program.key()) { program.watch(sessions, clocks) } else { Vec::new() };
            let (firings, waits) = hear_of(program, watched, sessions, clocks);
            is_waiting |= waits;
            fired.extend(firings);
        }
        // Firings of a program are in their order, also those of the same tick.
        fired.sort_by_key(|(_, fired)| fired.firing.ticks);
        self.act(&fired);
        if !is_waiting || patience != DrainTiming::Wait {
            return HashSet::new();
        }
        // The firing may be of all programs.
        let waiting = self.served.iter_mut().filter(|program| program.groups.is_used());
        let forget = |program: &mut Served| {
            program.program.forget_look();
            program.key()
        };
        waiting.map(forget).collect()
    }

    /// Triggers have fired, or the time of a start is over: programs follow.
    pub(crate) fn act(&mut self, fired: &[(TriggerName, ProgramFiring)]) {
        let Self { served, sessions, clocks, compiler, .. } = self;
        let now = clocks.now();
        tell_fired(fired, sessions, clocks);
        let has_changed = sessions.iter_mut().fold(false, |any, session| session.triggers.has_changed() | any);
        sessions.iter_mut().for_each(|session| session.is_on = session.triggers.is_on_for_all(now));
        for program in served.iter_mut() {
            // Programs no longer judge a trigger that has fired once.
            let _ = if has_changed { program.switch(sessions, compiler) } else { program.follow(sessions) };
        }
    }
}

/// Firings of a program, those that the recorder has found in its events among them, and whether events have
/// to wait because one is not over.
pub(super) fn hear_of(
    program: &mut Served,
    mut fired: Vec<(TriggerName, ProgramFiring)>,
    sessions: &mut [RecordingSession],
    clocks: &mut WatchedClocks,
) -> (Vec<(TriggerName, ProgramFiring)>, bool) {
    if !program.program.has_triggers()
        || !sessions.iter().any(|session| session.triggers.group(program.key()).is_some())
    {
        return (fired, false);
    }
    let Ok(learned) = program.learn_firings() else { return (fired, false) };
    program.tell_unknown(&learned, sessions);
    fired.extend(learned.firings.iter().filter_map(|firing| program.fired(firing, sessions, clocks)));
    fired.sort_by_key(|(_, fired)| fired.firing.ticks);
    (fired, learned.is_waiting)
}

/// Sessions learn of the triggers that have fired, in the order of their times.
pub(super) fn tell_fired(
    fired: &[(TriggerName, ProgramFiring)],
    sessions: &mut [RecordingSession],
    clocks: &mut WatchedClocks,
) {
    for ((session, trigger), firing) in fired {
        if let Some(session) = sessions.iter_mut().find(|known| known.name == *session) {
            session.fires(trigger, firing, clocks);
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
        program.program.look()?;
        let watched = program.watch(sessions, clocks);
        let (mut fired, mut is_waiting) = hear_of(program, watched, sessions, clocks);
        let since = Instant::now();
        while is_waiting && patience != DrainTiming::Last && since.elapsed() < FIRES {
            std::thread::sleep(BUSY);
            let (more, waits) = hear_of(program, Vec::new(), sessions, clocks);
            fired.extend(more);
            is_waiting = waits;
        }
        tell_fired(&fired, sessions, clocks);
    }
    drain(program, sessions, clocks, patience)
}
