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
mod replay;
mod report;
mod requests;
mod rows;
mod sums;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::block::{self, BlockAnalysis};
use crate::calls::{
    self, CallEntry, CallExit, CallLane, CallNames, CallObserver, CallOutcome, CallState, CallSummary, CpuAt,
    EventPosition, LifeView, Settings, ToldRun,
};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::events::RoleEvent;
use crate::roles::{
    CPU, EventRole, PID, TID, exec, file_state, fork, interface_state, net, syscall_entry, syscall_exit, thread_state,
};
use crate::threads::ThreadKey;
use crate::uring::{Uring, UringLane, UringNote, UringState};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, FieldSlot, LaneNotes, Later, Needs, PartShape, Question, Setup,
    SpoolError, Wishes,
};

pub use acts::{FileAct, StatedOwner};
use file_rows::FileRows;
use files::Files;
pub use log::Logged;
use log::{Log, Renumbered};
use ops::{CLOSE_ON_EXEC, DUPLICATE, FileEffect, INTERNET};
use pids::Pids;
use replay::ReplayBuffers;
pub use rows::{IoRows, IoRun, IoTotals};
use sums::{IoSums, OperationLimits};

/// The analysis.
#[derive(Debug)]
pub struct Io {
    settings: Settings,
    names: CallNames,
    /// For each name of a call.
    ops: Vec<FileEffect>,
    /// Calls that are no operations need not be looked at.
    are_exits_named: bool,
    block: BlockAnalysis,
    uring: Uring,
    wishes: Wishes,
    /// The same for rows that are kept: where there are requests of io_uring, those of all threads.
    kept: Wishes,
    limits: OperationLimits,
    room: Mutex<ReplayBuffers>,
}

/// The facts that it keeps about an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoEntry {
    op: FileEffect,
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
pub struct IoState {
    calls: CallState<IoEntry, IoExit, IoRun, IoRows>,
    totals: IoTotals,
    /// CPUs with runs in which acts wait for their thread, and since when.
    #[serde(skip)]
    busy: Vec<(CpuAt, EventPosition)>,
    /// The counts that were reported for runs that go on.
    #[serde(skip)]
    told: Vec<(CpuAt, IoSums)>,
    /// If nothing comes before.
    files: Option<Files>,
    /// Otherwise the operations on files, as far as these are known.
    rows: FileRows,
    /// Where the last CPU switched for the first time in this part.
    #[serde(skip)]
    switched: Option<EventPosition>,
    /// The results of parts by themselves were wrong.
    is_odd: bool,
    /// Which process each thread is of where the acts that are replayed later end, since parts were
    /// merged.
    #[serde(skip)]
    pids: Option<Pids>,
    block: block::BlockState,
    uring: UringState,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct IoLane<'a> {
    calls: CallLane<'a, Io>,
    uring: UringLane<'a>,
}

/// The notes of a lane.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "notes of disks are few")]
pub enum IoNote {
    /// Of calls and threads.
    Calls(calls::CallNote<IoEntry, IoExit, IoRun>),
    /// A thread does something.
    Act(RunActs),
    /// Something waits for the end of this CPU's run.
    Busy(CpuAt, EventPosition),
    /// Of files that were there before.
    Log(Logged),
    /// Of disks.
    Block(block::BlockNote),
    /// Of io_uring.
    Uring(Box<UringNote>),
}

/// The acts of a thread in a run that is certainly its own.
#[derive(Debug)]
pub struct RunActs {
    tid: i32,
    cpu: u32,
    /// See [`EventPosition::nth`].
    nth: u32,
    act: FileAct,
}

const _: () = assert!(size_of::<IoNote>() <= 88, "notes are written and read again for each operation");

impl From<calls::CallNote<IoEntry, IoExit, IoRun>> for IoNote {
    fn from(note: calls::CallNote<IoEntry, IoExit, IoRun>) -> Self {
        Self::Calls(note)
    }
}

impl Io {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions {
            by: &["thread", "process", "file", "category", "disk", "interface", "slowest", "distribution", "uring"],
            sizes: true,
            ..SupportedOptions::COMMON
        };
        const SENTENCE: &str = "Bytes read and written, by thread, file, disk and network interface";
        AnalysisDescription::new("io", "Input and output", SENTENCE, OPTIONS)
            .with_examples(
                "kymo io my-trace\n\
                 kymo io --by file --comm nginx my-trace",
            )
            .with_view(&["per-thread", "per-file", "per-disk", "slowest", "uring"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question {
            wanted: &Self::wants,
            ..Question::new(Self::needs(), &[EventRole::SyscallEntry, EventRole::UringSubmit], Self::new)
        }
    }

    /// The roles and fields that it needs.
    fn needs() -> Needs {
        use syscall_entry::{COMMAND, ENTRY_NAME, ENTRY_NUMBER, FAMILY, FD, FLAGS, OTHER_FD, PATH};
        use syscall_exit::{EXIT_NAME, EXIT_NUMBER, NEW_FD, NEW_OTHER_FD, RET};
        let mut roles = vec![
            (EventRole::Switch, crate::syscalls::switch_fields()),
            (
                EventRole::Fork,
                vec![fork::CHILD_TID, fork::CHILD_PID, fork::CHILD_COMM, fork::PARENT_TID, fork::PARENT_PID],
            ),
            (
                EventRole::ThreadState,
                vec![
                    thread_state::KNOWN_TID,
                    thread_state::KNOWN_PID,
                    thread_state::KNOWN_COMM,
                    thread_state::KNOWN_FILE_TABLE,
                ],
            ),
            (EventRole::Exec, vec![exec::EXEC_TID]),
            (EventRole::SyscallEntry, vec![ENTRY_NAME, ENTRY_NUMBER, FD, OTHER_FD, PATH, FLAGS, FAMILY, COMMAND]),
            (EventRole::SyscallExit, vec![EXIT_NAME, EXIT_NUMBER, RET, NEW_FD, NEW_OTHER_FD]),
            (
                EventRole::FileState,
                vec![file_state::FILE_PID, file_state::FILE_FD, file_state::FILE_PATH, file_state::FILE_TABLE],
            ),
            (EventRole::NetSend, vec![net::INTERFACE, net::LENGTH]),
            (EventRole::NetReceive, vec![net::INTERFACE, net::LENGTH]),
            (EventRole::InterfaceState, vec![interface_state::INTERFACE_NAME]),
        ];
        roles.extend(BlockAnalysis::needs().roles);
        roles.extend(Uring::roles());
        Needs { roles, context: vec![CPU, TID, PID, crate::roles::COMM], ..Needs::default() }
    }

    /// Whether it is interested in a call of that name. An exit without name may be of any.
    #[must_use]
    pub fn wants(role: EventRole, name: &str) -> bool {
        (role == EventRole::SyscallExit && name.is_empty())
            || !matches!(role, EventRole::SyscallEntry | EventRole::SyscallExit)
            || FileEffect::of(name) != FileEffect::Other
                && (role, FileEffect::of(name)) != (EventRole::SyscallExit, FileEffect::Close)
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let names = CallNames::new(setup);
        let ops = names.named().map(|(_, name)| FileEffect::of(name)).collect();
        let mut exits =
            setup.classes.iter().flat_map(|class| &class.roles).filter(|role| role.role == EventRole::SyscallExit);
        let are_exits_named = exits.all(|exit| matches!(exit.slots[syscall_exit::EXIT_NAME], FieldSlot::Text(_)));
        let wishes = setup.wishes.clone();
        let limits = OperationLimits::new(&wishes);
        let (block, room, uring) = (BlockAnalysis::new(setup), Mutex::default(), Uring::new(setup));
        // Bytes of requests are added at the end, so that any thread may come first.
        let top = if uring.is_any() { wishes.top.map(|_| usize::MAX) } else { wishes.top };
        let kept = Wishes { top, ..wishes.clone() };
        Self { settings: Settings::new(setup), names, ops, are_exits_named, block, uring, wishes, kept, limits, room }
    }

    fn op(&self, call: calls::CallId) -> FileEffect {
        call.place().and_then(|place| self.ops.get(place)).copied().unwrap_or(FileEffect::Other)
    }

    fn call_entry(
        &self,
        lane: &mut CallLane<'_, Self>,
        meaning: &RoleEvent<'_>,
        place: usize,
        notes: &mut LaneNotes<IoNote>,
    ) {
        use syscall_entry::{COMMAND, FAMILY, FD, FLAGS, OTHER_FD, PATH};
        let call = self.names.call(meaning, place);
        let op = self.op(call);
        let fd = || meaning.small(FD);
        if op == FileEffect::Close
            && let Some(fd) = fd()
        {
            act(lane, meaning, notes, FileAct::Close(fd));
        }
        // If an exit did not name its call, each entry would be needed to know which call it ends.
        if self.are_exits_named && matches!(op, FileEffect::Other | FileEffect::Close) {
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
            FileEffect::Both => more.other_fd = meaning.small(OTHER_FD),
            FileEffect::Open => more.path = meaning.text(PATH).map(Into::into),
            FileEffect::Socket => {
                more.is_net = meaning.integer(FAMILY).is_some_and(|family| INTERNET.contains(&family));
            }
            FileEffect::Fcntl => {
                let command = meaning.integer(COMMAND);
                more.is_duplicate = command.is_some_and(|command| DUPLICATE.contains(&command));
                more.closes_on_exec = command == Some(DUPLICATE[1]);
            }
            _ => {}
        }
        if matches!(op, FileEffect::Open | FileEffect::Socket | FileEffect::Accept | FileEffect::Dup | FileEffect::Pipe)
        {
            more.closes_on_exec = meaning.integer(FLAGS).is_some_and(|flags| flags & CLOSE_ON_EXEC != 0);
        }
        if more.is_told {
            if more.fd.is_some() || more.other_fd.is_some() {
                act(lane, meaning, notes, FileAct::Look(more.fd, more.other_fd));
            }
            lane.enter(meaning, call, more, notes);
            tell(lane, notes);
        } else {
            busy(lane, notes);
            lane.enter(meaning, call, more, notes);
        }
    }

    fn exit(
        &self,
        lane: &mut CallLane<'_, Self>,
        meaning: &RoleEvent<'_>,
        place: usize,
        notes: &mut LaneNotes<IoNote>,
    ) {
        use syscall_exit::{NEW_FD, NEW_OTHER_FD, RET};
        let call = self.names.call(meaning, place);
        if self.are_exits_named && matches!(self.op(call), FileEffect::Other | FileEffect::Close) {
            return;
        }
        let new = meaning.small(NEW_FD).zip(meaning.small(NEW_OTHER_FD));
        // A call that left an earlier run is settled when this one ends.
        busy(lane, notes);
        lane.exit(meaning, call, meaning.integer(RET), new, notes);
        tell(lane, notes);
    }

    /// An event that is neither about calls nor about threads.
    fn other(
        &self,
        lane: &mut CallLane<'_, Self>,
        meaning: &RoleEvent<'_>,
        at: EventPosition,
        notes: &mut LaneNotes<IoNote>,
    ) {
        let host = self.settings.facts(at.lane).host;
        match meaning.role {
            // One that has no files has no table.
            EventRole::ThreadState => {
                let (table, pid) =
                    (meaning.integer(thread_state::KNOWN_FILE_TABLE), meaning.small(thread_state::KNOWN_PID));
                if let Some((table, pid)) = table.filter(|table| *table != 0).zip(pid) {
                    let act = FileAct::FileTable { table, pid };
                    let logged = Logged { place: at, key: ThreadKey { host, tid: 0 }, act };
                    notes.push(at.time, IoNote::Log(logged));
                }
            }
            EventRole::FileState => {
                let process = meaning.small(file_state::FILE_PID).map(StatedOwner::Process);
                let of = process.or_else(|| meaning.integer(file_state::FILE_TABLE).map(StatedOwner::Table));
                let fd = meaning.small(file_state::FILE_FD);
                if let (Some(of), Some(fd), Some(path)) = (of, fd, meaning.text(file_state::FILE_PATH)) {
                    let act = FileAct::FileState { of, fd, path: path.into() };
                    let logged = Logged { place: at, key: ThreadKey { host, tid: 0 }, act };
                    notes.push(at.time, IoNote::Log(logged));
                }
            }
            EventRole::NetSend | EventRole::NetReceive => {
                let name = meaning.text(net::INTERFACE).unwrap_or_default();
                let length = meaning.integer(net::LENGTH).unwrap_or(0).max(0).cast_unsigned();
                lane.totals().packet(host, name, meaning.role == EventRole::NetSend, length);
            }
            _ => {}
        }
    }
}

impl CallObserver for Io {
    type Entry = IoEntry;
    type Exit = IoExit;
    type Run = IoRun;
    type Rows = IoRows;
    type Totals = IoTotals;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn settle_in_run(&self, totals: &mut IoTotals, run: &mut IoRun, outcome: CallOutcome<IoEntry, IoExit>) {
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

    fn settle(&self, totals: &mut IoTotals, key: ThreadKey, rows: &mut IoRows, outcome: CallOutcome<IoEntry, IoExit>) {
        done::settle(&self.limits, |call| self.op(call), totals, (key, rows), outcome);
    }

    fn count(&self, totals: &mut IoTotals, key: ThreadKey, rows: &mut IoRows, run: IoRun) {
        rows::count(totals, key, rows, run);
    }

    fn add(&self, rows: &mut IoRows, later: IoRows) {
        rows.add(later);
    }

    fn over(&self, totals: &mut IoTotals, life: LifeView<'_, IoRows>) {
        totals.over(&self.wishes, life);
    }

    fn leaves_open(&self, totals: &mut IoTotals, key: ThreadKey, entry: &CallEntry<IoEntry>) {
        let IoEntry { fd, other_fd, is_told, .. } = entry.more;
        // A call with a known thread looked up its file when it was entered.
        if !is_told && (fd.is_some() || other_fd.is_some()) {
            totals.log(entry.place, key, FileAct::Look(fd, other_fd));
        }
    }

    fn asks(&self, totals: &mut IoTotals, key: ThreadKey, exit: &CallExit<IoExit>) {
        let (op, fd) = (self.op(exit.call), exit.ret.and_then(|ret| i32::try_from(ret).ok()).filter(|fd| *fd >= 0));
        let (fd, other_fd) = exit.more.map_or((fd, None), |(fd, other_fd)| (Some(fd), Some(other_fd)));
        let is_any = matches!(op, FileEffect::Other | FileEffect::Accept | FileEffect::Dup | FileEffect::Fcntl);
        totals.log(exit.place, key, FileAct::Asks { fd, other_fd, is_any });
    }

    fn says(&self, run: &mut IoRun, place: EventPosition, tid: i32, pid: i32) {
        run.act(place, FileAct::Said(tid, pid));
    }
}

/// Place of the first thing that a run that goes on has not reported yet.
fn first_to_tell(summary: &CallSummary<IoEntry, IoExit>, run: &IoRun) -> Option<EventPosition> {
    let asked = summary.asks.as_ref().map(|exit| exit.place);
    let open = summary.open.as_ref().filter(|entry| !entry.more.is_told).map(|entry| entry.place);
    run.acts.iter().map(|act| act.0).chain(asked).chain(open).min()
}

/// The thread that runs does something besides its calls.
fn act(lane: &mut CallLane<'_, Io>, meaning: &RoleEvent<'_>, notes: &mut LaneNotes<IoNote>, act: FileAct) {
    if lane.told().is_none() {
        busy(lane, notes);
    }
    lane.act(meaning, notes, |place, run| run.act(place, act));
    tell(lane, notes);
}

/// Reports the acts that wait for the thread of the CPU's run, if that thread is certain.
#[inline]
fn tell(lane: &mut CallLane<'_, Io>, notes: &mut LaneNotes<IoNote>) {
    let Some(ToldRun { tid, cpu, counted, is_told }) = lane.told() else { return };
    for (place, act) in counted.tell() {
        *is_told = true;
        notes.push(place.time, IoNote::Act(RunActs { tid, cpu, nth: place.nth, act }));
    }
}

/// Notes that something is about to wait for the end of the run.
#[inline]
fn busy(lane: &mut CallLane<'_, Io>, notes: &mut LaneNotes<IoNote>) {
    if let Some((cpu, place)) = lane.begins_to_wait() {
        notes.push(place.time, IoNote::Busy((place.lane, cpu), place));
    }
}

impl IoState {
    /// Replays acts that cannot change any more; or puts them aside, if the state before is
    /// unknown.
    fn settle(&mut self, io: &Io, until: Option<EventPosition>) {
        let Self { totals: IoTotals { log, over, .. }, files, .. } = self;
        match files {
            Some(files) => log.hand_over(until, |logged| files.replay(&io.limits, over, logged)),
            None => log.settle(until),
        }
    }

    /// A thread does something.
    #[inline]
    fn act(&mut self, io: &Io, place: EventPosition, told: RunActs) {
        let RunActs { tid, cpu, act, .. } = told;
        if let Some(used) = act.counts() {
            self.sums((place.lane, cpu)).count(used);
        }
        let key = ThreadKey { host: io.settings.facts(place.lane).host, tid };
        let Self { totals: IoTotals { log, over, .. }, files, busy, .. } = self;
        match files {
            // Nothing waits, so nothing can come before this act: it needs no log.
            Some(files) if busy.is_empty() && log.is_empty() => {
                files.replay(&io.limits, over, Logged { place, key, act });
            }
            None if busy.is_empty() && log.is_empty() => {
                if !matches!(act, FileAct::Count(_)) {
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
    fn sums(&mut self, at: CpuAt) -> &mut IoSums {
        let place = self.told.iter().position(|told| told.0 == at).unwrap_or_else(|| {
            self.told.push((at, IoSums::default()));
            self.told.len() - 1
        });
        &mut self.told[place].1
    }

    /// Replays logged acts, or puts them aside, where nothing else can come before them.
    #[inline]
    fn go_on(&mut self, io: &Io) {
        let Self { totals: IoTotals { log, over, .. }, files, busy, .. } = self;
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
    fn calls(&mut self, io: &Io, note: calls::CallNote<IoEntry, IoExit, IoRun>) {
        rows::log_note(&mut self.totals, &note);
        let at = match &note {
            calls::CallNote::Run(end) => {
                self.switched = self.switched.max(Some(end.place).filter(|_| end.run.begin.is_none()));
                Some((end.place.lane, end.cpu))
            }
            calls::CallNote::End(end) => Some((end.place.lane, end.cpu)),
            calls::CallNote::Fork { .. } | calls::CallNote::Known { .. } => None,
        };
        // The end of a run is what others waited for.
        if let Some(at) = at.filter(|_| !self.busy.is_empty()) {
            self.busy.retain(|busy| busy.0 != at);
        }
        match note {
            calls::CallNote::End(end) => {
                let sums = std::mem::take(self.sums((end.place.lane, end.cpu)));
                self.calls.end(io, &mut self.totals, end, IoRun::told(sums));
            }
            calls::CallNote::Run(mut end) if end.is_over => {
                let sums = std::mem::take(self.sums((end.place.lane, end.cpu)));
                end.run.counted.extend(IoRun::told(sums));
                self.calls.note(io, &mut self.totals, calls::CallNote::Run(end));
            }
            note => self.calls.note(io, &mut self.totals, note),
        }
        self.go_on(io);
    }
}

impl Analysis for Io {
    type State = IoState;
    type Lane<'a> = IoLane<'a>;
    type Note = IoNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "io", version: 6 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> IoState {
        let calls = CallState::new(self.settings.lanes.len());
        let (mut totals, block) = (IoTotals::new(&self.kept), self.block.init());
        totals.log = Log::new(self.room().logs.pop().unwrap_or_default());
        let rows = FileRows::default();
        IoState {
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
            uring: UringState::default(),
        }
    }

    fn enter(&self, lane: usize) -> IoLane<'_> {
        let calls = CallLane::new(self, lane, IoTotals::new(&self.kept));
        IoLane { calls, uring: UringLane::new(&self.uring, lane) }
    }

    fn step(&self, lane: &mut IoLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<IoNote>) {
        let IoLane { calls: lane, uring } = lane;
        let at = lane.arrive(event);
        for (place, meaning) in event.roles().enumerate() {
            uring.step(&meaning, |note| notes.push(event.time, IoNote::Uring(Box::new(note))));
            match meaning.role {
                EventRole::SyscallEntry => self.call_entry(lane, &meaning, place, notes),
                EventRole::SyscallExit => self.exit(lane, &meaning, place, notes),
                EventRole::Switch => lane.switch(&meaning, notes),
                EventRole::Fork => lane.fork(&meaning, notes),
                EventRole::ThreadState => {
                    lane.known(&meaning, notes);
                    self.other(lane, &meaning, at, notes);
                }
                EventRole::Exec => {
                    act(lane, &meaning, notes, FileAct::Exec);
                }
                EventRole::BlockInsert | EventRole::BlockIssue | EventRole::BlockComplete | EventRole::DiskState => {
                    let mut inner = LaneNotes::default();
                    self.block.step(&mut (), event, &mut inner);
                    inner.notes.into_iter().for_each(|note| notes.push(event.time, IoNote::Block(note)));
                    // It went through all roles of the event.
                    return;
                }
                _ => self.other(lane, &meaning, at, notes),
            }
        }
    }

    fn note(&self, state: &mut IoState, lane: usize, time: i64, note: IoNote) {
        match note {
            IoNote::Block(note) => self.block.note(&mut state.block, lane, time, note),
            IoNote::Uring(note) => self.uring.note(&mut state.uring, lane, time, &note),
            IoNote::Busy(at, place) => state.busy.push((at, place)),
            IoNote::Log(logged) => state.totals.log(logged.place, logged.key, logged.act),
            IoNote::Calls(note) => state.calls(self, note),
            IoNote::Act(told) => {
                let place = EventPosition { time, lane: lane as u32, nth: told.nth };
                state.act(self, place, told);
            }
        }
    }

    fn leave(&self, state: &mut IoState, lane: usize, end: IoLane<'_>) {
        self.uring.leave(&mut state.uring, lane, end.uring);
        let totals = state.calls.leave(lane, end.calls);
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

    fn merge(&self, left: &mut IoState, right: IoState) {
        if let Some(mut later) = self.merge_later(left, right) {
            later.run();
            later.end(left);
        }
    }

    fn merges_in_order(&self) -> bool {
        true
    }

    fn merge_later<'a>(&'a self, left: &mut IoState, right: IoState) -> Option<Box<dyn Later<IoState> + 'a>> {
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
        self.uring.merge(&mut left.uring, right.uring);
        self.replay_later(left, (settled, numbers))
    }

    fn anchor(&self, state: &mut IoState) {
        self.block.anchor(&mut state.block);
        self.uring.anchor(&mut state.uring);
        if state.files.is_none() {
            let mut known = std::mem::replace(&mut state.totals, IoTotals::new(&self.kept));
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

    fn condense(&self, state: &mut IoState) {
        // Only then the part has all acts behind the first switch of each CPU, with their threads.
        // Acts before that are left over.
        let is_whole = self.settings.holes.is_empty() && state.calls.is_switched(&self.settings);
        let Some(since) = state.switched.filter(|_| is_whole && state.files.is_none()) else { return };
        self.replay_alone(state, since);
    }

    fn is_odd(&self, state: &IoState) -> bool {
        state.is_odd
    }

    fn fits(&self, state: &IoState) -> bool {
        state.calls.fits(self.settings.lanes.len()) && state.files.as_ref().is_none_or(Files::fits)
    }

    fn forget(&self, state: &mut IoState, at: i64) -> bool {
        self.uring.forget(&mut state.uring);
        let IoState { calls, totals, files, rows, block, .. } = state;
        calls.forget(self);
        rows.forget();
        totals.forget(&self.kept);
        files.iter_mut().for_each(Files::forget);
        self.block.forget(block, at)
    }

    fn finish(&self, state: &IoState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
