//! The recorder of a user: one process that holds all of the user's sessions.
//!
//! ```text
//!        ┌── answer: questions of commands ─┐   each millisecond while there is something to do,
//!        │   find:   new programs           │   each hundredth of a second while there is not;
//!        │   drain:  what they recorded     │   programs that rest four times in a second, and when they ring
//!        └── beat:   clocks, deaths, ends ──┘
//! ```
//!
//! It begins with the first session and ends with the last one. A session ends when the client that
//! began it is gone, unless the session is detached.

mod bell;
mod control;
mod edit;
mod flush;
mod listen;
pub(crate) mod publish;
mod recover;
mod reply;
mod rules;
mod snapshots;
mod started;
mod triggers;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use kymo_lane::Rings;

use crate::client::{READY, socket};
use crate::daemon::bell::FolderBell;
use crate::daemon::listen::{Ear, Heard};
use crate::daemon::publish::Publisher;
use crate::daemon::triggers::drain_last;
use crate::filters::FilterCompiler;
use crate::folder::{at, own_folder, own_user, prepare_folder};
use crate::number;
use crate::program::find::ProgramFinder;
use crate::program::run::{EventRun, LaneEnd, RunSink};
use crate::program::{DrainTiming, Drained, ProgramFacts, ProgramRefusal};
use crate::protocol::{Keep, RecorderReply, SessionSummary};
use crate::session::serve::{Served, UnwantedProgram};
use crate::session::{RecordingSession, WatchedClocks};
use crate::writing::WriterState;

/// Time between two looks at programs: while there is work, and at most.
const BUSY: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(10);
/// Time between two beats.
const BEAT: Duration = Duration::from_millis(100);
/// How long the recorder stays when it is not needed any more: the next command is often near.
const LINGER: Duration = Duration::from_millis(500);
/// How long other recorders may look at a program that a session has started, before the session
/// ends without it.
const LOOKED_AT: Duration = Duration::from_secs(2);
/// How long threads that have seen an event switched on have to record it: later events belong to
/// no session.
const SETTLE: Duration = Duration::from_millis(2);
/// Dead programs whose last events are kept for a snapshot.
const DEAD_MAX: usize = 64;
/// Programs of another user that the recorder looks at: each takes descriptors.
const OTHERS_MAX: usize = 1024;
/// How many programs that no session wants the recorder checks at a time for their end.
const SEEN_MAX: usize = 256;
/// Time between two such checks.
const SEEN: Duration = Duration::from_secs(1);
/// Summaries of ended sessions that the recorder keeps.
const ENDED_MAX: usize = 64;

/// Becomes the recorder of this user, as [`RECORDER_WORD`](crate::client::RECORDER_WORD) asks for:
/// reports on standard output that it listens, or why not, and returns when it is not needed any
/// more.
///
/// # Errors
///
/// The recorder cannot listen.
pub fn record_for_user() -> io::Result<()> {
    let told = |told: io::Result<()>| {
        let _ = writeln!(io::stdout(), "{}", told.as_ref().map_or_else(ToString::to_string, |()| READY.to_owned()));
        told
    };
    // Without a terminal of its own, the process gets no signals from keys.
    let _ = rustix::process::setsid();
    let folder = own_folder();
    let lock = match prepare_folder(&folder).map_err(io::Error::other).and_then(|()| lock(&folder)) {
        Ok(Some(lock)) => lock,
        Ok(None) => return told(Ok(())),
        Err(error) => return told(Err(error)),
    };
    let daemon = match Daemon::begin(&folder) {
        Ok(daemon) => daemon,
        Err(error) => return told(Err(error)),
    };
    told(Ok(()))?;
    // The process that started this one reads the pipe to its end, so standard output must not stay
    // open.
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    daemon.run();
    // While the lock is held: afterwards the path may already be the next recorder's socket.
    let _ = std::fs::remove_file(socket(&folder));
    drop(lock);
    Ok(())
}

/// Continues the sessions of a recorder that was killed.
fn go_on(folder: &Path, clocks: &mut WatchedClocks) -> Vec<RecordingSession> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "session")).collect();
    let mut sessions = Vec::new();
    for file in files {
        match RecordingSession::resume(&file, clocks) {
            Some(mut session) => {
                session.keep(folder);
                sessions.push(session);
            }
            None => _ = std::fs::remove_file(file),
        }
    }
    started::sweep(folder, &sessions);
    sessions
}

/// The process that holds the lock is the recorder. `None`: there is one, and it listens.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join("recorder.lock");
    let file =
        File::options().create(true).truncate(false).write(true).open(&path).map_err(|error| at(&path, &error))?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(std::fs::TryLockError::Error(error)) => return Err(at(&path, &error)),
            // The lock alone does not say that a recorder listens: it is taken first, and given up
            // last.
            Err(std::fs::TryLockError::WouldBlock) if UnixStream::connect(socket(folder)).is_ok() => return Ok(None),
            // Another recorder is ending, or beginning.
            Err(_) if began.elapsed() < Duration::from_secs(10) => std::thread::sleep(IDLE),
            Err(_) => {
                let what = "another recorder holds the lock but does not listen: `fuser` says which process that is";
                return Err(at(&path, &io::Error::other(what)));
            }
        }
    }
}

/// State of the recorder.
#[derive(Debug)]
pub(crate) struct Daemon {
    ear: Ear,
    finder: ProgramFinder,
    publisher: Publisher,
    pub(crate) served: Vec<Served>,
    pub(crate) seen: Vec<UnwantedProgram>,
    pub(crate) sessions: Vec<RecordingSession>,
    pub(crate) ended: Vec<SessionSummary>,
    pub(crate) clocks: WatchedClocks,
    pub(crate) writing: WriterState,
    /// Compiles filters for programs.
    compiler: FilterCompiler,
    pub(crate) folder: PathBuf,
    /// Sessions have begun, ended or changed their selections.
    pub(crate) has_changed: bool,
    beaten: Instant,
    /// When the recorder last checked programs that no session wants.
    looked_after: Instant,
    /// When the last look at the events of all programs began.
    drained: Option<SystemTime>,
    /// When this round began.
    round: Instant,
    needed: Instant,
    is_asked_to_end: Arc<AtomicBool>,
}

impl Daemon {
    fn begin(folder: &Path) -> io::Result<Self> {
        let is_asked_to_end = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&is_asked_to_end))?;
        }
        // The kernel sends SIGIO when another process opens a leased file, unless the lease names
        // another signal, as those of `nobody_has` do. By default SIGIO ends a process.
        signal_hook::flag::register(signal_hook::consts::SIGIO, Arc::new(AtomicBool::new(false)))?;
        // Each program takes one descriptor.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let most = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, most);
        let writing = WriterState::default();
        let mut clocks = WatchedClocks::new();
        let mut sessions = go_on(folder, &mut clocks);
        sessions.iter_mut().for_each(|session| session.writing = writing.clone());
        let has_changed = !sessions.is_empty();
        // After the sessions: a client that connects finds those that it may claim.
        let ear = Ear::open(&socket(folder), &writing)?;
        let now = Instant::now();
        Ok(Self {
            ear,
            finder: ProgramFinder::new(),
            publisher: Publisher::new(),
            served: Vec::new(),
            seen: Vec::new(),
            sessions,
            ended: Vec::new(),
            clocks,
            writing,
            compiler: FilterCompiler::default(),
            folder: folder.to_owned(),
            has_changed,
            beaten: now,
            looked_after: now,
            drained: None,
            round: now,
            needed: now,
            is_asked_to_end,
        })
    }

    fn run(mut self) {
        let mut wait = BUSY;
        if !self.sessions.is_empty() {
            // A session's statement tells readers up to which time its trace has all events, so
            // the recorder first takes the events that programs have kept meanwhile.
            self.find();
            self.drain(DrainTiming::Now);
        }
        while !self.is_over() {
            self.answer(wait);
            self.hear();
            self.find_due();
            let is_busy = self.drain(DrainTiming::Wait);
            self.take_snapshots();
            self.flush_due();
            self.end_round();
            // Each idle round doubles the wait, so that a recorder without work costs little.
            wait = if is_busy { BUSY } else { IDLE.min(wait * 2) };
            if self.beaten.elapsed() >= BEAT {
                self.beaten = Instant::now();
                self.beat();
            }
        }
        self.end_all();
    }

    fn is_over(&mut self) -> bool {
        if !self.sessions.is_empty() || self.ear.talking() > 0 {
            self.needed = Instant::now();
        }
        self.needed.elapsed() >= LINGER || self.is_asked_to_end.load(Ordering::Relaxed)
    }

    /// Replies to requests, and waits up to this long for the first one.
    fn answer(&mut self, wait: Duration) {
        let mut next = self.ear.heard.recv_timeout(wait).ok();
        while let Some(heard) = next {
            match heard {
                Heard::Asked { who, question, answer } => {
                    let said = self.reply(who, question).unwrap_or_else(|message| RecorderReply::Refused { message });
                    // The client may be gone.
                    let _ = answer.send(said);
                }
                Heard::Rung => {}
                Heard::Gone { who } => self.end_where(|session| session.owner == Some(who)),
            }
            next = self.ear.heard.try_recv().ok();
        }
    }

    /// Begins a round: programs that have rung are awake.
    fn hear(&mut self) {
        self.round = Instant::now();
        let has_rung = self.ear.bell.as_ref().is_some_and(FolderBell::has_rung);
        let can_ring = self.ear.bell.as_ref().is_some_and(|bell| bell.which().is_some());
        for program in &mut self.served {
            // Without a bell no program may rest, because none could report that it has events
            // again.
            match can_ring {
                true if has_rung => program.rest.hear(&program.program),
                true => {}
                false => program.rest.wake(),
            }
        }
    }

    /// Ends a round: decides for each program that was looked at whether it rests from now on.
    fn end_round(&mut self) {
        let Self { ear, served, sessions, round, .. } = self;
        let (bell, now) = (ear.bell.as_ref().and_then(FolderBell::which), Instant::now());
        for program in served.iter_mut().filter(|program| program.rest.is_due(*round)) {
            let rings = if is_drained(program, sessions) { Rings::ForAll } else { Rings::ForDefinitions };
            program.rest.end_round(&program.program, bell, rings, now);
        }
    }

    /// Looks for programs everywhere, however recent the last look was.
    pub(crate) fn look_everywhere(&mut self) {
        self.finder.hurry();
        self.find();
    }

    /// Looks for programs, and for new definitions of the known ones.
    pub(crate) fn find(&mut self) {
        self.round = Instant::now();
        self.served.iter_mut().for_each(|program| program.rest.hurry(self.round));
        self.find_due();
    }

    /// The same, except for programs that rest.
    fn find_due(&mut self) {
        // Before the look: a program that starts during it begins with the new selections.
        self.publish();
        for found in self.finder.look() {
            if found.user != own_user() && self.known_of(found.user) >= OTHERS_MAX {
                let refusal = ProgramRefusal::Many { user: found.user, most: OTHERS_MAX };
                self.finder.refuse(&found, &refusal, true);
                continue;
            }
            match Served::open(found) {
                Ok(served) => {
                    self.finder.take(&served.found);
                    self.meet(served);
                }
                Err(refused) => {
                    let (found, refusal) = *refused;
                    // These may change: a file that has just begun, or one that another recorder
                    // lets go.
                    let again =
                        matches!(refusal, ProgramRefusal::NoProgram | ProgramRefusal::Taken | ProgramRefusal::File(_));
                    self.finder.refuse(&found, &refusal, again);
                }
            }
        }
        let all = std::mem::take(&mut self.has_changed);
        if all {
            self.look_again();
        }
        let Self { served, sessions, compiler, clocks, round, .. } = self;
        for program in served {
            if all {
                program.rest.wake();
            } else if !program.rest.is_due(*round) {
                continue;
            }
            // If the program is gone, the next look reports that.
            let is_new = program.learn(sessions, compiler);
            if all {
                program.assign(sessions, clocks);
                let _ = program.switch(sessions, compiler);
            }
            if matches!(is_new, Ok(true)) {
                program.rest.turns();
                // The program may have loaded a plugin.
                program.tell_objects(sessions, clocks);
            }
        }
    }

    /// Publishes the selections of sessions for programs that start, if they have changed or other
    /// folders are known.
    fn publish(&mut self) {
        if self.has_changed {
            self.publisher.select(&self.sessions);
            self.finder.make_folders();
        }
        self.reach_folders();
        if self.has_changed {
            // Once the file is there: programs read it again when they see its number.
            self.served.iter_mut().for_each(|served| served.applies(self.publisher.number()));
        }
    }

    /// Number of known programs of a user.
    fn known_of(&self, user: u32) -> usize {
        let served = self.served.iter().filter(|served| served.found.user == user).count();
        served + self.seen.iter().filter(|seen| seen.found.user == user).count()
    }

    /// Looks for programs that a session has started. Recorders of other folders may be looking at
    /// them, which takes a moment.
    fn find_all(&mut self, name: &str) {
        let its = self.sessions.iter().filter(|session| session.name == name);
        let (tags, began): (Vec<String>, _) =
            (its.flat_map(RecordingSession::tags).map(str::to_owned).collect(), Instant::now());
        loop {
            self.finder.hurry();
            self.find();
            let is_taken = tags.iter().any(|tag| self.finder.is_taken(tag));
            if !is_taken || began.elapsed() >= LOOKED_AT {
                return;
            }
            std::thread::sleep(BUSY);
        }
    }

    /// Publishes in folders that have come, or everywhere if selections have changed.
    fn reach_folders(&mut self) {
        if self.has_changed || self.finder.has_new_folders() {
            let folders = self.finder.folders(self.has_changed);
            let new = self.publisher.publish(&folders);
            self.sessions.iter_mut().for_each(|session| session.is_published(&new));
        }
    }

    /// Meets a program that was not known.
    fn meet(&mut self, mut served: Served) {
        let is_wanted = self.sessions.iter().any(|session| session.takes_program(&served.who));
        if is_wanted {
            served.applies(self.publisher.number());
        }
        let Served { who, program, .. } = &mut served;
        // One look serves all sessions: events that the program records meanwhile are not past
        // events that a session might leave out.
        let held = program.past().unwrap_or_default();
        let takes_past = |session: &&RecordingSession| session.takes_past(who, program, &held);
        let past: Vec<&RecordingSession> = self.sessions.iter().filter(takes_past).collect();
        if !is_wanted || (served.is_dead && past.is_empty()) {
            // Events of an ended program that no session wants stay for a client that comes back
            // for them.
            if served.is_dead && !served.has_events() {
                let _ = served.found.delete();
            } else {
                self.close(&mut served);
                self.seen.push(served.seen());
            }
            return;
        }
        if past.is_empty() {
            // Its events were recorded for others.
            let _ = served.program.skip(&held);
        }
        // All sessions get the events that are new to at least one of them; each knows which of
        // them it has.
        let all = past.iter().filter_map(|session| session.progress(served.key()));
        if let Some(common) = all.reduce(|one, other| one.common(&other)) {
            served.program.resume(&common);
        }
        self.introduce(&served);
        let Self { sessions, clocks, compiler, .. } = self;
        served.assign(sessions, clocks);
        // Triggers may have fired while no recorder was there.
        let (fired, _) = triggers::hear_of(&mut served, Vec::new(), sessions, clocks);
        triggers::tell_fired(&fired, sessions, clocks);
        let _ = served.switch(sessions, compiler);
        served.tell_objects(sessions, clocks);
        self.served.push(served);
    }

    /// Switches off all events that a program of this user has begun with for a session that does
    /// not want it, or is over.
    fn close(&self, served: &mut Served) {
        // Recorders of other folders have sessions that are not known here.
        let is_tagged = served.found.path.parent() == Some(&*self.folder) && served.who.tag.is_some();
        // A program that another recorder's selection applies to is closed by the last of them.
        let (began_with, _) = served.who.identity.selections();
        let is_ours = is_tagged || number::is_own(began_with) && !served.is_others();
        if is_ours && !self.sessions.iter().any(|session| session.has_started(&served.who)) {
            let _ = served.leave();
        }
    }

    /// Sessions meet a program.
    fn introduce(&mut self, served: &Served) {
        let others = served.program.progress();
        let Self { sessions, clocks, .. } = self;
        let known = served.program.known();
        sessions.iter_mut().for_each(|session| session.meets(&served.who, known, others.clone(), clocks));
    }

    /// Selections have changed: sessions may want programs that they did not want, and the other
    /// way around.
    fn look_again(&mut self) {
        let all = self.seen.iter().map(|seen| &seen.who).chain(self.served.iter().map(|served| &served.who));
        all.for_each(|who| self.sessions.iter_mut().for_each(|session| session.hears_of(who)));
        for seen in std::mem::take(&mut self.seen) {
            let is_wanted = self.sessions.iter().any(|session| session.takes_program(&seen.who));
            if !is_wanted || seen.is_dead {
                self.seen.push(seen);
                continue;
            }
            self.open_again(seen);
        }
        for mut served in std::mem::take(&mut self.served) {
            if self.sessions.iter().any(|session| session.takes_program(&served.who)) {
                self.introduce(&served);
                let Self { sessions, clocks, .. } = self;
                served.tell_objects(sessions, clocks);
                self.served.push(served);
            } else {
                let _ = served.leave();
                self.meet(served);
            }
        }
    }

    /// Takes the events that programs have recorded; returns whether there were any.
    pub(crate) fn drain(&mut self, patience: DrainTiming) -> bool {
        let began = SystemTime::now();
        let waiting = self.hear_triggers(patience);
        let Self { served, sessions, clocks, round, drained: before, .. } = self;
        let (mut is_busy, mut taken) = (false, began);
        for program in served {
            if patience != DrainTiming::Wait || program.rest.is_due(*round) {
                if !is_drained(program, sessions) {
                    continue;
                }
                if waiting.contains(&program.key()) {
                    is_busy = true;
                    taken = before.map_or(taken, |before| taken.min(before));
                    continue;
                }
                let drained = drain(program, sessions, clocks, program.rest.patience(patience)).ok();
                is_busy |= drained.is_some_and(|drained| drained.runs > 0);
                let sub_buffer_bytes = program.program.lane().layout().sub_buffer_bytes;
                program.rest.took(drained.as_ref(), sub_buffer_bytes, began);
            }
            // The trace may promise only the time up to which all programs are drained.
            taken = taken.min(program.rest.taken(began));
        }
        self.drained = Some(taken);
        is_busy
    }

    fn beat(&mut self) {
        let Self { sessions, clocks, served, compiler, drained, .. } = self;
        sessions.iter_mut().for_each(|session| session.beat(*drained, clocks));
        for program in served.iter_mut() {
            let is_resting = program.rest.is_resting();
            // One that keeps nothing rests, and counts.
            if !is_resting || sessions.iter().any(|session| session.is_count_due(program.key())) {
                program.tell_rules(sessions, clocks, false);
            }
            if !is_resting {
                program.tell_problems(sessions);
                let _ = program.grow(sessions, compiler);
            }
            // Threads that end without notice leave lanes that other threads could have, also when
            // no program has rung since.
            if !is_resting || program.program.reaps_who_rests() {
                let is_drained = is_drained(program, sessions);
                let _ = program.program.reap(is_drained, &mut Everybody { sessions, clocks });
            }
        }
        if self.looked_after.elapsed() >= SEEN {
            self.looked_after = Instant::now();
            self.look_after_seen();
        }
        self.bury();
        self.end_where(RecordingSession::is_over);
    }

    /// Programs that no session wants end too: deletes their memory, unless a client may come back
    /// for their events. Each call checks some of them.
    fn look_after_seen(&mut self) {
        let some = self.seen.len().min(SEEN_MAX);
        // Those that stay go to the end of the list, so later calls check the others.
        for seen in self.seen.drain(..some).collect::<Vec<_>>() {
            if !seen.found.way().exists() {
                continue;
            }
            let lives = || seen.who.pid.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
            if seen.is_dead || lives() {
                self.seen.push(seen);
            } else {
                self.open_again(seen);
            }
        }
    }

    /// A program that was seen may be wanted now, or dead.
    fn open_again(&mut self, seen: UnwantedProgram) {
        match Served::open(seen.found) {
            Ok(mut served) => {
                served.program.resume(&seen.progress);
                self.meet(served);
            }
            Err(refused) => self.finder.refuse(&refused.0, &refused.1, true),
        }
    }

    /// Takes the last events of dead programs, and deletes their memory.
    pub(crate) fn bury(&mut self) {
        let Self { served, sessions, clocks, .. } = self;
        let (mut dead, now) = (0, Instant::now());
        // From the newest on, so that of too many dead programs the last ones are kept.
        for mut program in std::mem::take(served).into_iter().rev() {
            // The test takes a lease on the file, so a resting program is tested less often.
            program.is_dead = program.is_dead || program.rest.asks(now) && program.program.is_dead();
            if !program.is_dead {
                served.push(program);
                continue;
            }
            if !is_drained(&program, sessions) && dead < DEAD_MAX {
                // A session may want a snapshot of it.
                dead += 1;
                sessions.iter_mut().for_each(|session| session.has_ended(program.key()));
                served.push(program);
                continue;
            }
            // The last definitions, because its last events may need them.
            let _ = program.note_new(sessions);
            program.tell_problems(sessions);
            let _ = drain_last(&mut program, sessions, clocks, DrainTiming::Last);
            program.tell_rules(sessions, clocks, true);
            program.leave_counts(sessions);
            let ticks = clocks.of(program.who.identity.clock).now();
            let _ = program.program.end(ticks, &mut Everybody { sessions, clocks });
            sessions.iter_mut().for_each(|session| session.parts(program.key()));
            let _ = program.found.delete();
        }
        served.reverse();
    }

    /// Ends sessions.
    pub(crate) fn end_where(&mut self, is_over: impl Fn(&RecordingSession) -> bool) {
        let names: Vec<String> =
            self.sessions.iter().filter(|session| is_over(session)).map(|session| session.name.clone()).collect();
        names.iter().for_each(|name| _ = self.end(name));
    }

    fn end_all(&mut self) {
        self.end_where(|_| true);
        self.look_again();
    }

    /// Ends a session: all events recorded until now are in its trace.
    pub(crate) fn end(&mut self, name: &str) -> Option<SessionSummary> {
        self.find_all(name);
        self.reach_folders();
        self.drain(DrainTiming::Now);
        self.take_snapshots();
        self.bury();
        let at = self.sessions.iter().position(|session| session.name == name)?;
        self.flush_last(at);
        let mut session = self.sessions.remove(at);
        let taken = session.tags().filter(|tag| self.finder.is_taken(tag)).count();
        if taken > 0 {
            session.problem(
                "another recorder has a program that was started for this session: `kymo status` says which".to_owned(),
            );
        }
        // Programs that are started for it from now on begin with all events off.
        started::unmark(&self.folder, &session);
        self.has_changed = true;
        self.publish();
        let Self { served, sessions, clocks, compiler, .. } = self;
        // Events that only this session wanted are off before the recorder takes the remaining
        // ones.
        for program in served.iter_mut().filter(|program| session.takes_program(&program.who)) {
            let _ = program.switch(sessions, compiler);
        }
        // Threads that were about to record an event have done so after this.
        std::thread::sleep(SETTLE);
        for program in served.iter_mut() {
            if !session.takes_program(&program.who) {
                continue;
            }
            program.tell_objects(std::slice::from_mut(&mut session), clocks);
            program.tell_problems(std::slice::from_mut(&mut session));
            if session.options.keep == Keep::Oldest {
                // The session that ends takes part in one more drain with the others: an event leaves
                // the lane only once, and must reach all of them.
                sessions.push(session);
                let _ = drain_last(program, sessions, clocks, DrainTiming::Now);
                session = sessions.pop().expect("it was just put there");
                let ticks = clocks.of(program.who.identity.clock).now();
                let alone = std::slice::from_mut(&mut session);
                let mut alone = Everybody { sessions: alone, clocks };
                let _ = match sessions.iter().any(|other| other.has_met(program.program.known())) {
                    // The losses stay unreported for the other sessions.
                    true => program.program.end_one(ticks, &mut alone),
                    false => program.program.end(ticks, &mut alone),
                };
            }
            program.tell_rules(std::slice::from_mut(&mut session), clocks, true);
        }
        let its = self.served.iter().filter(|program| session.takes_program(&program.who)).collect::<Vec<_>>();
        its.iter().for_each(|program| program.leave_counts(std::slice::from_mut(&mut session)));
        self.forget_the_dead();
        let summary = session.finish(&mut self.clocks);
        // A command may ask for the maps of a session that ended by itself: of older ones, they are not kept.
        for older in &mut self.ended {
            (older.objects, older.object_files) = (Vec::new(), Vec::new());
        }
        self.ended.push(summary.clone());
        let too_many = self.ended.len().saturating_sub(ENDED_MAX);
        self.ended.drain(..too_many);
        Some(summary)
    }

    /// Deletes memory of dead programs that was kept for snapshots, when no session that wants them
    /// is left.
    fn forget_the_dead(&mut self) {
        let Self { served, sessions, .. } = self;
        served.retain(|program| {
            let is_wanted = !program.is_dead || sessions.iter().any(|session| session.takes_program(&program.who));
            if !is_wanted {
                let _ = program.found.delete();
            }
            is_wanted
        });
    }

    /// Programs that are visible but cannot be recorded.
    pub(crate) fn unreachable(&self) -> Vec<crate::protocol::Unreachable> {
        self.finder.unreachable()
    }
}

/// Whether the recorder drains a program. Programs of a flight recorder keep their events.
fn is_drained(program: &Served, sessions: &[RecordingSession]) -> bool {
    let mut wanting = sessions.iter().filter(|session| session.takes_program(&program.who));
    wanting.any(|session| session.options.keep == Keep::Oldest)
}

/// Takes the events that a program has recorded.
fn drain(
    program: &mut Served,
    sessions: &mut [RecordingSession],
    clocks: &mut WatchedClocks,
    patience: DrainTiming,
) -> io::Result<Drained> {
    let mut everybody = Everybody { sessions, clocks };
    let drained = program.program.drain(patience, &mut everybody)?;
    let Everybody { sessions, clocks } = everybody;
    program.lost_lately = program.lost_lately.saturating_add(drained.lost);
    if drained.discarded > 0 || drained.cut > 0 {
        for session in sessions.iter_mut().filter(|session| session.takes_program(&program.who)) {
            session.lost(program.program.known(), &drained, clocks);
        }
    }
    Ok(drained)
}

/// All sessions that have met the program.
struct Everybody<'a> {
    sessions: &'a mut [RecordingSession],
    clocks: &'a mut WatchedClocks,
}

impl RunSink for Everybody<'_> {
    fn take(&mut self, program: &ProgramFacts, run: &EventRun<'_>) {
        for session in self.sessions.iter_mut().filter(|session| session.has_met(program)) {
            session.take(program, run, self.clocks);
        }
    }

    fn end(&mut self, program: &ProgramFacts, end: &LaneEnd) {
        for session in self.sessions.iter_mut().filter(|session| session.has_met(program)) {
            session.end_lane(program, end, self.clocks);
        }
    }
}
