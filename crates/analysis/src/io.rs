//! `io`: how much each thread read and wrote, of which files, disks and networks, and how long that
//! took.
//!
//! ```text
//! run of 7 on CPU 0:   [read fd 3] [read fd 3] [write fd 1]      three uses
//! run of 8 on CPU 1:   close 3 …… open "/a" = 3 …                changes of what fds are
//!
//! log, by place:   7 uses 3 │ 7 uses 3 │ 8 closes 3 │ 8 opens 3 │ ...   ──replay──> files, kinds
//! ```
//!
//! Bytes, operations and latencies of threads need no order: they are counted where calls are
//! matched (`calls`). The file of an fd does: any thread of the process changes it, on any CPU, and
//! perhaps only an earlier part knows which process that is. So runs have *acts*: uses of fds, and
//! changes. Where a lane lost nothing, a run's thread is known when the run begins, and its acts
//! are reported as notes when they happen. Otherwise they wait for the run's end, and go to a log,
//! each with its place in time. A state that nothing comes before replays acts as they come, and
//! the log up to the first run that others have to wait for. Other states only collect. When they
//! are added in order, the threads of all acts are known, and any thread replays them as far as
//! that is possible without the files of fds before them (`apart`); the rest is short.
//!
//! A call whose thread is known, or that leaves its run, looks up its file when it is entered; the
//! answer waits with its thread.

mod acts;
mod apart;
mod done;
mod file;
mod file_rows;
mod files;
mod log;
mod ops;
mod over;
mod pids;
mod report;
mod rows;
mod sums;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::block::{self, Block};
use crate::calls::{
    self, Bases, CallLane, CallNames, CallState, CpuAt, Entry, Exit, LifeView, Outcome, Place, Settings, Summary,
    ToldRun, Watch,
};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::events::Meaning;
use crate::roles::{
    CPU, PID, Role, TID, exec, file_state, fork, interface_state, net, syscall_entry, syscall_exit, thread_state,
};
use crate::threads::ThreadKey;
use crate::{Analysis, Answer, Event, Identity, Later, Needs, Notes, Question, Setup, Shape, Slot, SpoolError, Wishes};

pub use acts::Act;
use apart::{Apart, Done, Mode};
use file_rows::FileRows;
use files::Files;
pub use log::Logged;
use log::{Behind, Log, Renumbered, Settled, Waiting};
use ops::{CLOSE_ON_EXEC, DUPLICATE, INTERNET, Op};
use pids::Pids;
pub use rows::{IoRows, IoRun, Totals};
use sums::{Limits, Sums};

/// The analysis.
#[derive(Debug)]
pub struct Io {
    settings: Settings,
    names: CallNames,
    /// For each name of a call.
    ops: Vec<Op>,
    /// Calls that are no operations need not be looked at.
    are_exits_named: bool,
    block: Block,
    wishes: Wishes,
    limits: Limits,
    room: Mutex<Room>,
}

/// Memory of acts that were replayed: pages that were written to once are there.
#[derive(Debug, Default)]
struct Room {
    logs: Vec<Vec<Logged>>,
    apart: Vec<apart::Memory>,
}

/// The facts that it keeps about an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoEntry {
    op: Op,
    fd: Option<i32>,
    other_fd: Option<i32>,
    path: Option<Box<[u8]>>,
    /// The new fd goes when its process becomes another program.
    closes_on_exec: bool,
    /// It makes a socket of the internet.
    is_net: bool,
    /// It makes another number for a file.
    is_duplicate: bool,
    /// Its thread was known when it was entered: its acts are reported when they happen.
    is_told: bool,
}

/// The facts that it keeps about an exit: the two fds of a pipe.
pub type IoExit = Option<(i32, i32)>;

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    calls: CallState<IoEntry, IoExit, IoRun, IoRows>,
    totals: Totals,
    /// CPUs with runs in which acts wait for their thread, and since when.
    #[serde(skip)]
    busy: Vec<(CpuAt, Place)>,
    /// The counts that were reported for runs that go on.
    #[serde(skip)]
    told: Vec<(CpuAt, Sums)>,
    /// If nothing comes before.
    files: Option<Files>,
    /// Otherwise the operations on files, as far as these are known.
    rows: FileRows,
    /// Where the last CPU switched for the first time in this part.
    #[serde(skip)]
    switched: Option<Place>,
    /// The results of parts by themselves were wrong.
    is_odd: bool,
    /// Which process each thread is of where the acts that are replayed later end, since parts were
    /// merged.
    #[serde(skip)]
    pids: Option<Pids>,
    block: block::State,
}

/// The notes of a lane.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "notes of disks are few")]
pub enum Note {
    /// Of calls and threads.
    Calls(calls::Note<IoEntry, IoExit, IoRun>),
    /// A thread does something.
    Act(Told),
    /// Something waits for the end of this CPU's run.
    Busy(CpuAt, Place),
    /// Of files that were there before.
    Log(Logged),
    /// Of disks.
    Block(block::Note),
}

/// The acts of a thread in a run that is certainly its own.
#[derive(Debug)]
pub struct Told {
    tid: i32,
    cpu: u32,
    /// See [`Place::nth`].
    nth: u32,
    act: Act,
}

const _: () = assert!(size_of::<Note>() <= 88, "notes are written and read again for each operation");

impl From<calls::Note<IoEntry, IoExit, IoRun>> for Note {
    fn from(note: calls::Note<IoEntry, IoExit, IoRun>) -> Self {
        Self::Calls(note)
    }
}

impl Io {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions {
            by: &["thread", "process", "file", "category", "disk", "interface", "slowest", "distribution"],
            sizes: true,
            ..SupportedOptions::COMMON
        };
        const SENTENCE: &str = "Bytes read and written, by thread, file, disk and network interface";
        AnalysisDescription::new("io", "Input and output", SENTENCE, OPTIONS).with_examples(
            "kymo io my-trace\n\
                 kymo io --by file --comm nginx my-trace",
        )
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question { wanted: &Self::wants, ..Question::new(Self::needs(), &[Role::SyscallEntry], Self::new) }
    }

    /// The roles and fields that it needs.
    fn needs() -> Needs {
        use syscall_entry::{COMMAND, ENTRY_NAME, ENTRY_NUMBER, FAMILY, FD, FLAGS, OTHER_FD, PATH};
        use syscall_exit::{EXIT_NAME, EXIT_NUMBER, NEW_FD, NEW_OTHER_FD, RET};
        let mut roles = vec![
            (Role::Switch, crate::syscalls::switch_fields()),
            (Role::Fork, vec![fork::CHILD_TID, fork::CHILD_PID, fork::CHILD_COMM, fork::PARENT_TID, fork::PARENT_PID]),
            (Role::ThreadState, vec![thread_state::KNOWN_TID, thread_state::KNOWN_PID, thread_state::KNOWN_COMM]),
            (Role::Exec, vec![exec::EXEC_TID]),
            (Role::SyscallEntry, vec![ENTRY_NAME, ENTRY_NUMBER, FD, OTHER_FD, PATH, FLAGS, FAMILY, COMMAND]),
            (Role::SyscallExit, vec![EXIT_NAME, EXIT_NUMBER, RET, NEW_FD, NEW_OTHER_FD]),
            (Role::FileState, vec![file_state::FILE_PID, file_state::FILE_FD, file_state::FILE_PATH]),
            (Role::NetSend, vec![net::INTERFACE, net::LENGTH]),
            (Role::NetReceive, vec![net::INTERFACE, net::LENGTH]),
            (Role::InterfaceState, vec![interface_state::INTERFACE_NAME]),
        ];
        roles.extend(Block::needs().roles);
        Needs { roles, context: vec![CPU, TID, PID, crate::roles::COMM], ..Needs::default() }
    }

    /// Whether it is interested in a call of that name. An exit without name may be of any.
    #[must_use]
    pub fn wants(role: Role, name: &str) -> bool {
        (role == Role::SyscallExit && name.is_empty())
            || !matches!(role, Role::SyscallEntry | Role::SyscallExit)
            || Op::of(name) != Op::Other && (role, Op::of(name)) != (Role::SyscallExit, Op::Close)
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let names = CallNames::new(setup);
        let ops = names.named().map(|(_, name)| Op::of(name)).collect();
        let mut exits =
            setup.classes.iter().flat_map(|class| &class.roles).filter(|role| role.role == Role::SyscallExit);
        let are_exits_named = exits.all(|exit| matches!(exit.slots[syscall_exit::EXIT_NAME], Slot::Text(_)));
        let wishes = setup.wishes.clone();
        let limits = Limits::new(&wishes);
        let (block, room) = (Block::new(setup), Mutex::default());
        Self { settings: Settings::new(setup), names, ops, are_exits_named, block, wishes, limits, room }
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn op(&self, call: calls::CallId) -> Op {
        call.place().and_then(|place| self.ops.get(place)).copied().unwrap_or(Op::Other)
    }

    fn call_entry(&self, lane: &mut CallLane<'_, Self>, meaning: &Meaning<'_>, place: usize, notes: &mut Notes<Note>) {
        use syscall_entry::{COMMAND, FAMILY, FD, FLAGS, OTHER_FD, PATH};
        let call = self.names.call(meaning, place);
        let op = self.op(call);
        let fd = || meaning.small(FD);
        if op == Op::Close
            && let Some(fd) = fd()
        {
            act(lane, meaning, notes, Act::Close(fd));
        }
        // If an exit did not name its call, each entry would be needed to know which call it ends.
        if self.are_exits_named && matches!(op, Op::Other | Op::Close) {
            return;
        }
        let mut more = IoEntry {
            op,
            fd: None,
            other_fd: None,
            path: None,
            closes_on_exec: false,
            is_net: false,
            is_duplicate: false,
            is_told: lane.told().is_some(),
        };
        if op.category().is_some() {
            more.fd = fd();
        }
        match op {
            Op::Both => more.other_fd = meaning.small(OTHER_FD),
            Op::Open => more.path = meaning.text(PATH).map(Into::into),
            Op::Socket => more.is_net = meaning.integer(FAMILY).is_some_and(|family| INTERNET.contains(&family)),
            Op::Fcntl => {
                let command = meaning.integer(COMMAND);
                more.is_duplicate = command.is_some_and(|command| DUPLICATE.contains(&command));
                more.closes_on_exec = command == Some(DUPLICATE[1]);
            }
            _ => {}
        }
        if matches!(op, Op::Open | Op::Socket | Op::Accept | Op::Dup | Op::Pipe) {
            more.closes_on_exec = meaning.integer(FLAGS).is_some_and(|flags| flags & CLOSE_ON_EXEC != 0);
        }
        if more.is_told {
            if more.fd.is_some() || more.other_fd.is_some() {
                act(lane, meaning, notes, Act::Look(more.fd, more.other_fd));
            }
            lane.enter(meaning, call, more, notes);
            tell(lane, notes);
        } else {
            busy(lane, notes);
            lane.enter(meaning, call, more, notes);
        }
    }

    fn exit(&self, lane: &mut CallLane<'_, Self>, meaning: &Meaning<'_>, place: usize, notes: &mut Notes<Note>) {
        use syscall_exit::{NEW_FD, NEW_OTHER_FD, RET};
        let call = self.names.call(meaning, place);
        if self.are_exits_named && matches!(self.op(call), Op::Other | Op::Close) {
            return;
        }
        let new = meaning.small(NEW_FD).zip(meaning.small(NEW_OTHER_FD));
        // A call that left an earlier run is settled when this one ends.
        busy(lane, notes);
        lane.exit(meaning, call, meaning.integer(RET), new, notes);
        tell(lane, notes);
    }

    /// An event that is neither about calls nor about threads.
    fn other(&self, lane: &mut CallLane<'_, Self>, meaning: &Meaning<'_>, at: Place, notes: &mut Notes<Note>) {
        let host = self.settings.facts(at.lane).host;
        match meaning.role {
            Role::FileState => {
                let (pid, fd) = (meaning.small(file_state::FILE_PID), meaning.small(file_state::FILE_FD));
                if let (Some(pid), Some(fd), Some(path)) = (pid, fd, meaning.text(file_state::FILE_PATH)) {
                    let act = Act::FileState { pid, fd, path: path.into() };
                    let logged = Logged { place: at, key: ThreadKey { host, tid: 0 }, act };
                    notes.push(at.time, Note::Log(logged));
                }
            }
            Role::NetSend | Role::NetReceive => {
                let name = meaning.text(net::INTERFACE).unwrap_or_default();
                let length = meaning.integer(net::LENGTH).unwrap_or(0).max(0).cast_unsigned();
                lane.totals().packet(host, name, meaning.role == Role::NetSend, length);
            }
            _ => {}
        }
    }
}

impl Watch for Io {
    type Entry = IoEntry;
    type Exit = IoExit;
    type Run = IoRun;
    type Rows = IoRows;
    type Totals = Totals;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn settle_in_run(&self, totals: &mut Totals, run: &mut IoRun, outcome: Outcome<IoEntry, IoExit>) {
        done::settle_in_run(&self.limits, |call| self.op(call), totals, run, outcome);
    }

    fn is_empty(&self, run: &IoRun) -> bool {
        run.is_empty()
    }

    fn forget(&self, run: &mut IoRun) {
        run.forget();
    }

    fn extend(&self, run: &mut IoRun, later: IoRun) {
        run.extend(later);
    }

    fn settle(&self, totals: &mut Totals, key: ThreadKey, rows: &mut IoRows, outcome: Outcome<IoEntry, IoExit>) {
        done::settle(&self.limits, |call| self.op(call), totals, (key, rows), outcome);
    }

    fn count(&self, totals: &mut Totals, key: ThreadKey, rows: &mut IoRows, run: IoRun) {
        rows::count(totals, key, rows, run);
    }

    fn add(&self, rows: &mut IoRows, later: IoRows) {
        rows.add(later);
    }

    fn over(&self, totals: &mut Totals, life: LifeView<'_, IoRows>) {
        totals.over(&self.wishes, life);
    }

    fn leaves_open(&self, totals: &mut Totals, key: ThreadKey, entry: &Entry<IoEntry>) {
        let IoEntry { fd, other_fd, is_told, .. } = entry.more;
        // A call with a known thread looked up its file when it was entered.
        if !is_told && (fd.is_some() || other_fd.is_some()) {
            totals.log(entry.place, key, Act::Look(fd, other_fd));
        }
    }

    fn asks(&self, totals: &mut Totals, key: ThreadKey, exit: &Exit<IoExit>) {
        let (op, fd) = (self.op(exit.call), exit.ret.and_then(|ret| i32::try_from(ret).ok()).filter(|fd| *fd >= 0));
        let (fd, other_fd) = exit.more.map_or((fd, None), |(fd, other_fd)| (Some(fd), Some(other_fd)));
        let is_any = matches!(op, Op::Other | Op::Accept | Op::Dup | Op::Fcntl);
        totals.log(exit.place, key, Act::Asks { fd, other_fd, is_any });
    }

    fn says(&self, run: &mut IoRun, place: Place, tid: i32, pid: i32) {
        run.act(place, Act::Said(tid, pid));
    }
}

/// Place of the first thing that a run that goes on has not reported yet.
fn first_to_tell(summary: &Summary<IoEntry, IoExit>, run: &IoRun) -> Option<Place> {
    let asked = summary.asks.as_ref().map(|exit| exit.place);
    let open = summary.open.as_ref().filter(|entry| !entry.more.is_told).map(|entry| entry.place);
    run.acts.iter().map(|act| act.0).chain(asked).chain(open).min()
}

/// The thread that runs does something besides its calls.
fn act(lane: &mut CallLane<'_, Io>, meaning: &Meaning<'_>, notes: &mut Notes<Note>, act: Act) {
    if lane.told().is_none() {
        busy(lane, notes);
    }
    lane.act(meaning, notes, |place, run| run.act(place, act));
    tell(lane, notes);
}

/// Reports the acts that wait for the thread of the CPU's run, if that thread is certain.
#[inline]
fn tell(lane: &mut CallLane<'_, Io>, notes: &mut Notes<Note>) {
    let Some(ToldRun { tid, cpu, counted, is_told }) = lane.told() else { return };
    for (place, act) in counted.tell() {
        *is_told = true;
        notes.push(place.time, Note::Act(Told { tid, cpu, nth: place.nth, act }));
    }
}

/// Notes that something is about to wait for the end of the run.
#[inline]
fn busy(lane: &mut CallLane<'_, Io>, notes: &mut Notes<Note>) {
    if let Some((cpu, place)) = lane.begins_to_wait() {
        notes.push(place.time, Note::Busy((place.lane, cpu), place));
    }
}

impl State {
    /// Replays acts that cannot change any more; or puts them aside, if the state before is
    /// unknown.
    fn settle(&mut self, io: &Io, until: Option<Place>) {
        let Self { totals: Totals { log, over, .. }, files, .. } = self;
        match files {
            Some(files) => log.hand_over(until, |logged| files.replay(&io.limits, over, logged)),
            None => log.settle(until),
        }
    }

    /// A thread does something.
    #[inline]
    fn act(&mut self, io: &Io, place: Place, told: Told) {
        let Told { tid, cpu, act, .. } = told;
        if let Some(used) = act.counts() {
            self.sums((place.lane, cpu)).count(used);
        }
        let key = ThreadKey { host: io.settings.facts(place.lane).host, tid };
        let Self { totals: Totals { log, over, .. }, files, busy, .. } = self;
        match files {
            // Nothing waits, so nothing can come before this act: it needs no log.
            Some(files) if busy.is_empty() && log.is_empty() => {
                files.replay(&io.limits, over, Logged { place, key, act });
            }
            None if busy.is_empty() && log.is_empty() => {
                if !matches!(act, Act::Count(_)) {
                    log.put_aside(place, key, act);
                }
            }
            _ => {
                log.push(place, key, act);
                self.go_on(io);
            }
        }
    }

    /// The counts that were reported for the run of a CPU.
    #[inline]
    fn sums(&mut self, at: CpuAt) -> &mut Sums {
        let place = self.told.iter().position(|told| told.0 == at).unwrap_or_else(|| {
            self.told.push((at, Sums::default()));
            self.told.len() - 1
        });
        &mut self.told[place].1
    }

    /// Replays logged acts, or puts them aside, where nothing else can come before them.
    #[inline]
    fn go_on(&mut self, io: &Io) {
        let Self { totals: Totals { log, over, .. }, files, busy, .. } = self;
        if busy.is_empty() {
            match files {
                Some(files) => log.drain(|logged| files.replay(&io.limits, over, logged)),
                None => log.settle_all(),
            }
        // Not for every note: sorting the log anew costs as much as its length.
        } else if log.is_long() {
            let until = self.busy.iter().map(|busy| busy.1).min();
            self.settle(io, until);
        }
    }

    /// A note of calls and threads.
    fn calls(&mut self, io: &Io, note: calls::Note<IoEntry, IoExit, IoRun>) {
        rows::log_note(&mut self.totals, &note);
        let at = match &note {
            calls::Note::Run(end) => {
                self.switched = self.switched.max(Some(end.place).filter(|_| end.run.begin.is_none()));
                Some((end.place.lane, end.cpu))
            }
            calls::Note::End(end) => Some((end.place.lane, end.cpu)),
            calls::Note::Fork { .. } | calls::Note::Known { .. } => None,
        };
        // The end of a run is what others waited for.
        if let Some(at) = at.filter(|_| !self.busy.is_empty()) {
            self.busy.retain(|busy| busy.0 != at);
        }
        match note {
            calls::Note::End(end) => {
                let sums = std::mem::take(self.sums((end.place.lane, end.cpu)));
                self.calls.end(io, &mut self.totals, end, IoRun::told(sums));
            }
            calls::Note::Run(mut end) if end.is_over => {
                let sums = std::mem::take(self.sums((end.place.lane, end.cpu)));
                end.run.counted.extend(IoRun::told(sums));
                self.calls.note(io, &mut self.totals, calls::Note::Run(end));
            }
            note => self.calls.note(io, &mut self.totals, note),
        }
        self.go_on(io);
    }
}

/// Acts that are replayed while others merge.
struct Replay<'a> {
    io: &'a Io,
    waiting: Waiting,
    done: Option<Done>,
}

impl Later<State> for Replay<'_> {
    fn run(&mut self) {
        let (pids, memory) = (std::mem::take(&mut self.waiting.pids), self.io.room().apart.pop().unwrap_or_default());
        let mode = self.waiting.done_from().map_or(Mode::Whole, Mode::Again);
        let mut apart = Apart::new(&self.io.limits, &self.io.wishes, pids, memory, mode);
        let log = self.waiting.hand_over(|logged, from| apart.act(logged, from));
        self.done = Some(apart.end());
        self.io.room().logs.push(log);
    }

    fn end(self: Box<Self>, state: &mut State) {
        let mut done = self.done.expect("what is given back was done");
        state.is_odd |= done.is_odd || self.waiting.is_torn;
        let State { totals, files: Some(files), .. } = state else { unreachable!("nothing comes before it") };
        files.follow(&self.io.limits, &mut totals.over, &mut done);
        self.io.room().apart.push(done.memory());
    }
}

impl Io {
    /// Acts that cannot change any more wait to be replayed, with the settled acts of a part that
    /// follows: lives there count from these numbers on. Or they are put aside, if the state before
    /// is unknown.
    fn replay_later<'a>(
        &'a self,
        state: &mut State,
        (settled, numbers): (Settled, Renumbered),
    ) -> Option<Box<dyn Later<State> + 'a>> {
        let until = state.calls.settled_until(first_to_tell);
        let State { totals: Totals { log, .. }, files, pids, is_odd, .. } = state;
        let Some(files) = files else {
            *is_odd |= settled.is_done();
            log.unsettle(Behind::new(settled, &numbers));
            log.settle(until);
            return None;
        };
        let pids = pids.get_or_insert_with(|| files.pids());
        let waiting = log.take(until, (settled, numbers), pids);
        Some(Box::new(Replay { io: self, waiting, done: None }))
    }
}

impl Analysis for Io {
    type State = State;
    type Lane<'a> = CallLane<'a, Self>;
    type Note = Note;

    fn identity(&self) -> Identity {
        Identity { name: "io", version: 4 }
    }

    fn shape(&self) -> Shape {
        Shape::Slice
    }

    fn init(&self) -> State {
        let calls = CallState::new(self.settings.lanes.len());
        let (mut totals, block) = (Totals::new(&self.wishes), self.block.init());
        totals.log = Log::new(self.room().logs.pop().unwrap_or_default());
        let rows = FileRows::default();
        State {
            calls,
            totals,
            busy: Vec::new(),
            told: Vec::new(),
            files: None,
            rows,
            switched: None,
            is_odd: false,
            pids: None,
            block,
        }
    }

    fn enter(&self, lane: usize) -> CallLane<'_, Self> {
        CallLane::new(self, lane, Totals::new(&self.wishes))
    }

    fn step(&self, lane: &mut CallLane<'_, Self>, event: &Event<'_>, notes: &mut Notes<Note>) {
        let at = lane.arrive(event);
        for (place, meaning) in event.roles().enumerate() {
            match meaning.role {
                Role::SyscallEntry => self.call_entry(lane, &meaning, place, notes),
                Role::SyscallExit => self.exit(lane, &meaning, place, notes),
                Role::Switch => lane.switch(&meaning, notes),
                Role::Fork => lane.fork(&meaning, notes),
                Role::ThreadState => lane.known(&meaning, notes),
                Role::Exec => {
                    act(lane, &meaning, notes, Act::Exec);
                }
                Role::BlockInsert | Role::BlockIssue | Role::BlockComplete | Role::DiskState => {
                    let mut inner = Notes::default();
                    self.block.step(&mut (), event, &mut inner);
                    inner.notes.into_iter().for_each(|note| notes.push(event.time, Note::Block(note)));
                    // It went through all roles of the event.
                    return;
                }
                _ => self.other(lane, &meaning, at, notes),
            }
        }
    }

    fn note(&self, state: &mut State, lane: usize, time: i64, note: Note) {
        match note {
            Note::Block(note) => self.block.note(&mut state.block, lane, time, note),
            Note::Busy(at, place) => state.busy.push((at, place)),
            Note::Log(logged) => state.totals.log(logged.place, logged.key, logged.act),
            Note::Calls(note) => state.calls(self, note),
            Note::Act(told) => {
                let place = Place { time, lane: lane as u32, nth: told.nth };
                state.act(self, place, told);
            }
        }
    }

    fn leave(&self, state: &mut State, lane: usize, end: CallLane<'_, Self>) {
        let totals = state.calls.leave(lane, end);
        for (at, sums) in state.told.extract_if(.., |told| told.0.0 == lane as u32) {
            let run = state.calls.last(at).expect("what is told of a run is told before it ends");
            run.extend(IoRun::told(sums));
        }
        state.totals.add(totals, &Renumbered::default());
        state.busy.clear();
        if lane + 1 == self.settings.lanes.len() && state.files.is_none() {
            let until = state.calls.settled_until(first_to_tell);
            state.settle(self, until);
        }
    }

    fn merge(&self, left: &mut State, right: State) {
        if let Some(mut later) = self.merge_later(left, right) {
            later.run();
            later.end(left);
        }
    }

    fn merges_in_order(&self) -> bool {
        true
    }

    fn merge_later<'a>(&'a self, left: &mut State, right: State) -> Option<Box<dyn Later<State> + 'a>> {
        let mut more = right.totals;
        // Before `add`, which takes everything else of that log: settled acts are already in order,
        // and need not be sorted again.
        let settled = more.log.take_settled();
        let bases = left.calls.merge(self, &mut left.totals, right.calls);
        let rows = left.files.as_mut().map_or(&mut left.rows, |files| &mut files.rows);
        // Without names nothing has to be looked through for them.
        let names = Some(rows.add(&right.rows)).filter(|_| right.rows.names.count() > 0);
        let numbers = Renumbered { bases, names };
        left.totals.add(more, &numbers);
        left.is_odd |= right.is_odd;
        self.block.merge(&mut left.block, right.block);
        self.replay_later(left, (settled, numbers))
    }

    fn anchor(&self, state: &mut State) {
        self.block.anchor(&mut state.block);
        if state.files.is_none() {
            let mut known = std::mem::replace(&mut state.totals, Totals::new(&self.wishes));
            let settled = known.log.take_settled();
            let numbers = Renumbered { bases: state.calls.anchor(self, &mut state.totals), names: None };
            state.totals.add(known, &numbers);
            state.files = Some(Files::new(std::mem::take(&mut state.rows)));
            if let Some(mut later) = self.replay_later(state, (settled, numbers)) {
                later.run();
                later.end(state);
            }
            // Later acts in this part change it.
            state.pids = None;
        }
    }

    fn condense(&self, state: &mut State) {
        // Only then the part has all acts behind the first switch of each CPU, with their threads.
        // Acts before that are left over.
        let is_whole = self.settings.holes.is_empty() && state.calls.is_switched(&self.settings);
        let Some(since) = state.switched.filter(|_| is_whole && state.files.is_none()) else { return };
        let mut waiting = Waiting::alone(state.totals.log.take_settled());
        let memory = self.room().apart.pop().unwrap_or_default();
        let mut apart = Apart::new(&self.limits, &self.wishes, Pids::default(), memory, Mode::Alone(since));
        let mut last = Place { time: i64::MIN, lane: 0, nth: 0 };
        let room = waiting.hand_over(|logged, from| {
            last = logged.place;
            apart.act(logged, from);
        });
        let mut done = apart.end();
        state.totals.over.add(done.take_over(), &Bases::default());
        state.rows = std::mem::take(&mut done.rows);
        state.totals.log.done((since, last), done.acts(since), room);
        self.room().apart.push(done.memory());
    }

    fn is_odd(&self, state: &State) -> bool {
        state.is_odd
    }

    fn fits(&self, state: &State) -> bool {
        state.calls.fits(self.settings.lanes.len()) && state.files.as_ref().is_none_or(Files::fits)
    }

    fn forget(&self, state: &mut State, at: i64) -> bool {
        let State { calls, totals, files, rows, block, .. } = state;
        calls.forget(self);
        rows.forget();
        totals.forget(&self.wishes);
        files.iter_mut().for_each(Files::forget);
        self.block.forget(block, at)
    }

    fn finish(&self, state: &State) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
