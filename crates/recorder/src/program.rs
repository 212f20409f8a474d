//! A traced program, as its control file shows it.
//!
//! ```text
//! open ── definitions ── switch, say ── drain, drain, ... ── is_dead? drain, finish
//! ```
//!
//! The recorder maps no part of the file: if the program truncates it, a read fails, and the
//! program counts as gone. It believes nothing that the file says: [`kymo_lane`] checks positions,
//! [`walk`] checks events.

mod control;
pub(crate) mod drain;
pub mod find;
pub(crate) mod groups;
pub mod namespaces;
pub(crate) mod objects;
pub(crate) mod rest;
pub(crate) mod run;
pub mod walk;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_lane::{
    Arena, ClockSource, LayoutRefusal, MemoryLayout, MemoryView, NoArena, RecorderSide, RecordingSettings, contexts,
};
use kymo_schema::definition::{self, ContextClass, Definition, DefinitionError, EventClass};
use kymo_schema::field::DefinedField;

use crate::folder::own_user;
pub use crate::program::control::Control;
use crate::program::drain::{DrainProgress, Lanes, REAP, REAP_WHO_RESTS};
use crate::program::run::{EventRun, RunSink};

/// Limits of the definitions that the recorder reads of a program, and of their bytes: one for each
/// event id, and some more for contexts.
const DEFINITIONS_MAX: u64 = (1 << 16) + 64;
const DEFINITION_BYTES_MAX: u64 = 16 << 20;

/// Why a file is not a program that can be recorded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ProgramRefusal {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error("it is no regular file")]
    Kind,
    #[error("its name is not that of a control file: 16 hexadecimal digits and `.ctl`")]
    Name,
    #[error("it is user {found}'s, not {expected}'s")]
    Owner { found: u32, expected: u32 },
    #[error("another recorder has it")]
    Taken,
    #[error("it is no traced program's, or not yet")]
    NoProgram,
    #[error("the program is of version {found} of the tracer's memory; known is {}", kymo_lane::ABI)]
    Version { found: u64 },
    #[error("it says that it has {found} {what}; there are at most {most}")]
    Size { what: &'static str, found: u64, most: u64 },
    #[error("{most} programs of user {user} are looked at already")]
    Many { user: u32, most: usize },
    #[error("its clock is {} than the recorder's, as it is in another time namespace", seconds(*behind_ns))]
    Time { behind_ns: i64 },
}

/// How far off a clock is, for people.
fn seconds(behind_ns: i64) -> String {
    let word = if behind_ns < 0 { "later" } else { "earlier" };
    format!("{:.3} s {word}", behind_ns.unsigned_abs() as f64 / 1e9)
}

/// Identity of a program, as the program reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramIdentity {
    /// The number of its control file, which no other program's file ever has.
    pub key: u64,
    /// Its PID in its own namespace.
    pub pid: u32,
    /// When it began, in the kernel's clock ticks.
    pub started: u64,
    /// The inode of its PID namespace; 0: the program cannot tell.
    pub pid_namespace: u64,
    /// Its effective user.
    pub user: u32,
    /// The clock that stamps its events.
    pub clock: ClockSource,
    /// Its name.
    pub name: String,
    /// The path of its executable, as the program sees it.
    pub path: String,
    /// Its label; empty: it has none.
    pub label: String,
    /// Where machine code can be put.
    pub arena: Result<Arena, NoArena>,
    /// When its memory began, in ticks of its clock; 0: unknown.
    pub began: u64,
    /// Numbers of the published selections that it began with: of the recorder of its folder's owner,
    /// and of root's; 0: none.
    pub began_with: [u64; 2],
    /// Which of the two is this recorder's.
    pub ours: usize,
}

/// A process. Several copies of the tracer in it (a plugin's own, a library's) report the same
/// process, and each has memory of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) enum Process {
    /// When it began, its PID, the PID's namespace, and its executable.
    Known(u64, u32, u64, String),
    /// The start time is unknown: the number of the memory.
    Unknown(u64),
}

impl ProgramIdentity {
    /// It, and the clock of its events.
    pub(crate) fn place(&self) -> (u64, ClockSource) {
        (self.key, self.clock)
    }
}

/// A program that says nothing of itself.
impl Default for ProgramIdentity {
    fn default() -> Self {
        Self {
            key: 0,
            pid: 0,
            started: 0,
            pid_namespace: 0,
            user: 0,
            clock: ClockSource::Counter,
            name: String::new(),
            path: String::new(),
            label: String::new(),
            arena: Err(NoArena::Off),
            began: 0,
            began_with: [0; 2],
            ours: 0,
        }
    }
}

impl ProgramIdentity {
    /// The number of the selections that the program began with of this user's recorder, and that of
    /// the other recorder; 0: none.
    pub(crate) fn selections(&self) -> (u64, u64) {
        (self.began_with[self.ours % 2], self.began_with[1 - self.ours % 2])
    }

    /// The process that the memory belongs to.
    pub(crate) fn process(&self) -> Process {
        match self.started {
            0 => Process::Unknown(self.key),
            started => Process::Known(started, self.pid, self.pid_namespace, self.path.clone()),
        }
    }
}

/// Everything that the recorder knows of a program.
#[derive(Clone, Debug, Default)]
pub struct ProgramFacts {
    /// Its identity.
    pub identity: ProgramIdentity,
    /// Its PID in the recorder's namespace, if it was found out.
    pub pid_outside: Option<u32>,
    /// Its events, by id.
    pub events: Vec<Option<Arc<EventClass>>>,
    /// Contexts that its events may carry, by number.
    pub contexts: Vec<Option<Arc<ContextClass>>>,
    /// Fields of events whose definitions cannot be used, by id, as far as their sizes are known.
    pub refused: HashMap<u16, Vec<DefinedField>>,
}

/// A definition that a program has made.
#[derive(Clone, Debug)]
pub struct Defined {
    /// The event's id; or the number of the context.
    pub id: u16,
    /// It defines a context.
    pub is_context: bool,
    /// Name of an event whose definition cannot be used, as far as it can be read.
    pub name: String,
    /// The definition, or its error.
    pub what: Result<Definition, DefinitionError>,
}

/// When to take the events of a sub-buffer that is not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainTiming {
    /// When it is half full, or its oldest event is a tenth of a second old, because packets of a
    /// few events cost more than they are worth. The events are safe where they are: a later
    /// recorder finds them there.
    Wait,
    /// Now: a reader follows, or the session ends.
    Now,
    /// The same, because the recorder does not look again for a while.
    Seldom,
    /// Now, and no more events come: the program is dead. Open sub-buffers are given back too.
    Last,
}

/// Result of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Runs, and their bytes.
    pub runs: u64,
    /// See [`Drained::runs`].
    pub bytes: u64,
    /// Sub-buffers that were given back.
    pub given_back: u64,
    /// Events that were lost where no lane could count them, since the last drain, and in total.
    pub discarded: u64,
    /// See [`Drained::discarded`].
    pub discarded_ever: u64,
    /// Events that lanes have lost, as soon as that is known; runs count them when the lane goes
    /// on.
    pub lost: u64,
    /// Texts that were cut, since the last report, about once a second, and in total.
    pub cut: u64,
    /// See [`Drained::cut`].
    pub cut_ever: u64,
    /// There are events that have to wait.
    pub is_left: bool,
}

/// A program that is recorded. While this value exists no other recorder records it.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    lane: RecorderSide<Control>,
    known: ProgramFacts,
    last: Option<kymo_lane::DefinitionPlace>,
    read: RegistryContent,
    /// New definitions, until the next call of [`Program::definitions`].
    new: Vec<Defined>,
    lanes: Lanes,
    /// A look at its lanes whose events are not taken yet, and how many firings of triggers had begun after it.
    looked: Option<Vec<kymo_lane::SubBufferSnapshot>>,
    has_triggers: bool,
}

impl Program {
    /// Opens the control file of a program, which that user has to own.
    ///
    /// # Errors
    ///
    /// The file is not a program's, or the program cannot be recorded now.
    pub fn open(path: &Path, user: u32) -> Result<Self, ProgramRefusal> {
        let key = key(path).ok_or(ProgramRefusal::Name)?;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        let file = File::options().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(ProgramRefusal::Kind);
        }
        if found.uid() != user {
            return Err(ProgramRefusal::Owner { found: found.uid(), expected: user });
        }
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => ProgramRefusal::Taken,
            std::fs::TryLockError::Error(error) => ProgramRefusal::File(error),
        })?;
        let mut program = Self::of(path, key, Control(file), found.len())?;
        program.known.identity.ours = usize::from(user != own_user());
        Ok(program)
    }

    /// Opens a copy of a control file, of any name. The copy is only read.
    ///
    /// # Errors
    ///
    /// The file is not a program's.
    pub fn open_copy(path: &Path) -> Result<Self, ProgramRefusal> {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(ProgramRefusal::Kind);
        }
        // Any number except 0 tells the programs of one trace from each other.
        let key = key(path).unwrap_or_else(|| found.ino().max(1));
        Self::of(path, key, Control(file), found.len())
    }

    fn of(path: &Path, key: u64, control: Control, bytes: u64) -> Result<Self, ProgramRefusal> {
        let layout = MemoryLayout::read(&control, bytes)?.map_err(|refused| match refused {
            LayoutRefusal::NoProgram => ProgramRefusal::NoProgram,
            LayoutRefusal::Version(found) => ProgramRefusal::Version { found },
            LayoutRefusal::Size { what, found, most } => ProgramRefusal::Size { what, found, most },
        })?;
        let lane = RecorderSide::new(control, layout);
        let identity = identity(&lane, key)?;
        let known = ProgramFacts { identity, ..ProgramFacts::default() };
        let (read, new, lanes) = (RegistryContent::default(), Vec::new(), Lanes::default());
        let (looked, has_triggers) = (None, lane.has_triggers()?);
        Ok(Self { path: path.to_owned(), lane, known, last: None, read, new, lanes, looked, has_triggers })
    }

    /// The path of its control file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its identity, as the program reports it.
    #[must_use]
    pub fn identity(&self) -> &ProgramIdentity {
        &self.known.identity
    }

    /// Everything that the recorder knows of it.
    #[must_use]
    pub fn known(&self) -> &ProgramFacts {
        &self.known
    }

    /// Sets its PID in the recorder's namespace.
    pub fn is_known_as(&mut self, pid_outside: u32) {
        self.known.pid_outside = Some(pid_outside);
    }

    /// Its memory, to write filters to.
    #[must_use]
    pub fn lane(&self) -> &RecorderSide<Control> {
        &self.lane
    }

    /// Definitions that are new since the last call.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn definitions(&mut self) -> io::Result<Vec<Defined>> {
        self.learn()?;
        Ok(std::mem::take(&mut self.new))
    }

    /// Whether it defines more events than there is room for: those beyond are never recorded.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn is_full(&self) -> io::Result<bool> {
        self.lane.is_full()
    }

    /// Definitions with ids that earlier ones have: the recorder does not read them.
    #[must_use]
    pub fn unread(&self) -> u64 {
        self.read.others
    }

    /// Whether it has more definitions than the recorder reads.
    #[must_use]
    pub fn has_too_many(&self) -> bool {
        !self.read.has_room()
    }

    fn learn(&mut self) -> io::Result<()> {
        while self.read.has_room()
            && let Some(found) = self.lane.definition(self.last.as_ref())?
        {
            self.last = Some(found);
            if !self.read.takes(&found) {
                continue;
            }
            // Also of a definition that is too long: the sizes of its fields are needed.
            let mut text = vec![0; found.bytes as usize];
            self.lane.said(&found, &mut text)?;
            let what = definition::parse(&text);
            self.known.learn(&found, &what);
            let mut name = String::new();
            if what.is_err() && !found.is_context {
                name = event_name(&text);
                self.known.refused.extend(definition::shape(&text).map(|fields| (found.id, fields)));
            }
            self.new.push(Defined { id: found.id, is_context: found.is_context, name, what });
        }
        Ok(())
    }

    /// Switches an event: 0 is off, 1 is on, other values are filters.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn switch(&self, id: u16, to: u8) -> io::Result<()> {
        self.lane.switch(id, to)
    }

    /// Switches off all chosen ids that are on, also those without an event yet.
    pub(crate) fn switch_off(&self, is_chosen: impl Fn(u16) -> bool) -> io::Result<()> {
        let layout = self.lane.layout();
        let mut control = vec![0; layout.events as usize];
        self.lane.view().copy(layout.control(0), &mut control)?;
        let mut ids = 0..layout.events.min(1 << 16);
        let is_on = |id: &u32| control[*id as usize] != 0 && is_chosen(*id as u16);
        while let Some(first) = ids.find(is_on) {
            let behind = ids.find(|id| !is_on(id)).unwrap_or(ids.end);
            let zeros = vec![0; (behind - first) as usize];
            self.lane.view().0.write_all_at(&zeros, layout.control(first as u16))?;
        }
        Ok(())
    }

    /// Tells the program how to record.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn say(&self, wants: &RecordingSettings) -> io::Result<()> {
        self.lane.say(wants)
    }

    /// Takes the events that its lanes hold, in their order, and gives back full sub-buffers once
    /// the sink has them.
    ///
    /// # Errors
    ///
    /// The program is gone; events taken before stay taken.
    pub fn drain(&mut self, patience: DrainTiming, sink: &mut dyn RunSink) -> io::Result<Drained> {
        let all = match self.looked.take() {
            Some(all) => all,
            None => self.lanes.look(&self.lane)?,
        };
        // The definitions of all events that were seen exist by now.
        self.learn()?;
        self.lanes.drain(&self.lane, &self.known, &all, patience, sink)
    }

    /// Looks at its lanes; the next [`Program::drain`] takes the events of this look.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        let all = self.lanes.look(&self.lane)?;
        // What is read of its triggers from now on is later than the look: see `kymo_lane`'s triggers.
        self.lane.view().fence();
        self.looked = Some(all);
        Ok(())
    }

    /// Looks into the events of the last look that are new since the last call, before they are taken.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub(crate) fn peek(&mut self, each: &mut dyn FnMut(&ProgramFacts, &EventRun<'_>)) -> io::Result<()> {
        self.learn()?;
        let Some(all) = &self.looked else { return Ok(()) };
        let known = &self.known;
        self.lanes.peek(&self.lane, known, all, &mut |run| each(known, run))
    }

    /// The events of the last look are not taken.
    pub(crate) fn forget_look(&mut self) {
        self.looked = None;
    }

    /// Whether events can act in it.
    pub(crate) fn has_triggers(&self) -> bool {
        self.has_triggers
    }

    /// Copies the events that its lanes hold, each lane to its end, and takes none away: the
    /// snapshot of a flight recorder.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn snapshot(&mut self, sink: &mut dyn RunSink) -> io::Result<Drained> {
        let all = self.lanes.look_once(&self.lane)?;
        self.learn()?;
        self.lanes.snapshot(&self.lane, &self.known, &all, sink)
    }

    /// Ticks of the first and of the last event that its lanes hold; `None`: they hold none.
    pub(crate) fn span(&mut self) -> Option<(u64, u64)> {
        let all = self.lanes.look_once(&self.lane).ok()?;
        let (first, last) = (all.iter().map(|seen| seen.begin).min()?, all.iter().map(|seen| seen.last).max()?);
        (first <= last).then_some((first, last))
    }

    /// Events that it has lost since it began, as far as its counters can be read.
    pub(crate) fn lost_ever(&self) -> u64 {
        let lanes = drain::all_losses(&self.lane).unwrap_or_default();
        let lost = lanes.into_iter().map(|(_, losses)| losses.discarded);
        lost.fold(self.lane.discarded().unwrap_or(0), u64::saturating_add)
    }

    /// The sub-buffers that its lanes hold, as lane and number, and their bytes.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub(crate) fn held(&mut self) -> io::Result<(HashSet<(u16, u64)>, u64)> {
        let all = self.lanes.look_once(&self.lane)?;
        let bytes = all.iter().map(|seen| u64::from(seen.bytes)).sum();
        Ok((all.iter().map(|seen| (seen.lane, seen.sequence)).collect(), bytes))
    }

    /// The sub-buffers that its lanes hold now. Events that come later are not part of them,
    /// whether these are taken or skipped.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn past(&mut self) -> io::Result<Past> {
        self.lanes.look(&self.lane).map(Past)
    }

    /// Skips those, and the losses of its lanes so far: they are not this recorder's, and the
    /// sub-buffers are given back.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn skip(&mut self, past: &Past) -> io::Result<()> {
        self.lanes.skip(&self.lane, &past.0)
    }

    /// Whether it holds events that no recorder has taken, as far as this one knows.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub(crate) fn has_new(&mut self) -> io::Result<bool> {
        self.lanes.has_new(&self.lane)
    }

    /// Whether any event id is switched on, also one that it has not defined: a session wants its
    /// events.
    pub(crate) fn is_on(&self) -> io::Result<bool> {
        let layout = self.lane.layout();
        let mut control = vec![0; layout.events as usize];
        self.lane.view().copy(layout.control(0), &mut control)?;
        Ok(control.iter().any(|to| *to != 0))
    }

    /// Whether all events that it ever recorded were still there, and none is older than these
    /// ticks. This holds for children of a recorded program, which begin with their parent's
    /// switches.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn is_since(&self, past: &Past, ticks: u64) -> io::Result<bool> {
        Lanes::is_since(&self.lane, &past.0, ticks)
    }

    /// How far this recorder has drained it.
    #[must_use]
    pub fn progress(&self) -> DrainProgress {
        self.lanes.progress()
    }

    /// Goes on after the events that an earlier recorder has written: the progress that
    /// [`repair`](crate::repair()) has found for this program's [`key`](ProgramIdentity::key), or
    /// that of this recorder when it had the program before.
    pub fn resume(&mut self, progress: &DrainProgress) {
        self.lanes.resume(progress);
    }

    /// Whether it is time for [`Program::reap`] of a quiet program.
    pub(crate) fn reaps_who_rests(&self) -> bool {
        self.lanes.reaps(REAP_WHO_RESTS)
    }

    /// Takes lanes from threads that ended without notice, and ends those that no thread has: once
    /// a second, however often you call it.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn reap(&mut self, is_drained: bool, sink: &mut dyn RunSink) -> io::Result<()> {
        if !self.lanes.reaps(REAP) {
            return Ok(());
        }
        let threads = ProcessThreads::of(self.known.pid_outside, self.known.identity.pid_namespace);
        self.lanes.reap(&self.lane, &self.known, |tid| threads.lives(tid), is_drained, sink)
    }

    /// Gives all of its lanes a [`LaneEnd`](crate::LaneEnd), after the last [`Program::drain`] of a
    /// session.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn end(&mut self, ticks: u64, sink: &mut dyn RunSink) -> io::Result<()> {
        self.lanes.end(&self.lane, &self.known, ticks, true, sink)
    }

    /// The same for one session of several: the other sessions still have to get the losses.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn end_one(&mut self, ticks: u64, sink: &mut dyn RunSink) -> io::Result<()> {
        self.lanes.end(&self.lane, &self.known, ticks, false, sink)
    }

    /// Whether no process has its memory any more, so that no more events come. No other process
    /// may have its file open then.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        kymo_tracer::nobody_has(self.lane.view().0.as_raw_fd())
    }
}

/// The sub-buffers that the lanes of a program held at one time.
#[derive(Debug, Default)]
pub struct Past(Vec<kymo_lane::SubBufferSnapshot>);

/// The definitions read from a registry, which may hold any bytes.
#[derive(Debug, Default)]
struct RegistryContent {
    ids: HashSet<(bool, u16)>,
    bytes: u64,
    others: u64,
}

impl RegistryContent {
    fn has_room(&self) -> bool {
        self.ids.len() as u64 + self.others < DEFINITIONS_MAX && self.bytes < DEFINITION_BYTES_MAX
    }

    /// Whether it is new. The first definition stays: no id is given twice.
    fn takes(&mut self, found: &kymo_lane::DefinitionPlace) -> bool {
        let is_new = self.ids.insert((found.is_context, found.id));
        self.bytes += if is_new { u64::from(found.bytes) } else { 0 };
        self.others += u64::from(!is_new);
        is_new
    }
}

impl ProgramFacts {
    fn learn(&mut self, found: &kymo_lane::DefinitionPlace, what: &Result<Definition, DefinitionError>) {
        match what {
            Ok(Definition::Event(class)) if !found.is_context => put(&mut self.events, found.id.into(), class),
            Ok(Definition::Context(class)) if found.is_context && u32::from(found.id) < contexts::OWN_MAX => {
                // The registry gives the number of the context.
                let class = ContextClass { id: found.id as u8, ..class.clone() };
                put(&mut self.contexts, found.id.into(), &class);
            }
            _ => {}
        }
    }
}

/// The threads of a process, as far as they are visible.
struct ProcessThreads {
    its: Option<HashSet<u32>>,
}

impl ProcessThreads {
    fn of(pid: Option<u32>, namespace: u64) -> Self {
        // TIDs of another namespace have no meaning here.
        let is_ours = || std::fs::metadata("/proc/self/ns/pid").is_ok_and(|found| found.ino() == namespace);
        let folder = pid.filter(|_| is_ours()).map(|pid| format!("/proc/{pid}/task"));
        let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok());
        let number = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        Self { its: entries.map(|entries| entries.filter_map(number).collect()) }
    }

    /// A thread that shares the program's memory may be a process of its own.
    fn lives(&self, tid: u32) -> bool {
        self.its.as_ref().is_none_or(|its| its.contains(&tid)) || Path::new(&format!("/proc/{tid}")).exists()
    }
}

/// Name of the event in the first line of a definition that may be anything.
fn event_name(definition: &[u8]) -> String {
    let line = definition.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let name = line.strip_prefix(b"event ").unwrap_or_default();
    let name: String = text(name).chars().take(definition::NAME_MAX + 1).collect();
    if name.chars().count() > definition::NAME_MAX {
        name.chars().take(40).chain("...".chars()).collect()
    } else {
        name
    }
}

/// The first definition stays: no id is given twice.
fn put<T: Clone>(all: &mut Vec<Option<Arc<T>>>, at: usize, what: &T) {
    if all.len() <= at {
        all.resize(at + 1, None);
    }
    all[at].get_or_insert_with(|| Arc::new(what.clone()));
}

/// The number in the name of a control file; a tag after it may name the session that started the
/// program.
pub(crate) fn key(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".ctl")?;
    let (digits, rest) = digits.split_at_checked(16)?;
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit()) && (rest.is_empty() || rest.starts_with('-'));
    if is_plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

fn identity(lane: &RecorderSide<Control>, key: u64) -> io::Result<ProgramIdentity> {
    let mut path = [0; 3072];
    let said = lane.identity(&mut path)?;
    let kymo_lane::Identity {
        pid,
        started,
        pid_namespace,
        user,
        clock,
        arena,
        name,
        path,
        label,
        began,
        began_with,
        judge: _,
        objects: _,
    } = said;
    let (name, path, label) = (text(&name), text(path), text(label));
    Ok(ProgramIdentity {
        key,
        pid,
        started,
        pid_namespace,
        user,
        clock,
        name,
        path,
        label,
        arena,
        began,
        began_with,
        ours: 0,
    })
}

/// The text in these bytes, up to the first zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|character| if character.is_control() { '?' } else { character })
        .collect()
}
