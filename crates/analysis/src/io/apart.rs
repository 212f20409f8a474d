//! The effects of acts while the files of fds before them are not known: most are of fds that were
//! made meanwhile.
//!
//! ```text
//! 7 opens 3 │ 7 reads 3 │ 9 reads 4 │ 7 closes 3 │ 9 closes 4        of 7 and 9 it is known which process they are of
//!   counted     counted     left over                ──> at the end: 3 and 4 are nothing now
//! ```
//!
//! An fd that was not changed yet is unknown; acts on it are left over, to be replayed when the
//! state before is known. Others are as known here, no matter which files they were before: only
//! the last of their changes is reported, at the end or before an act is left over that sees it.
//! The tables of processes alone are known: threads of an unknown process are left over.
//!
//! In a part that is read elsewhere, threads that nothing in it names are unknown, and the state of
//! CPUs before their first switch comes later. So it is done *alone* from where the last of these
//! switches is. The file of an fd that a thread of an unknown process sees or changes is reported,
//! and unknown from then on: the process may be any. The remaining acts are done apart *again* when
//! the state before is known.
//!
//! ```text
//! part   ──alone──> what is known  +  left over ──sent──> with what was before: again ──> left over, replayed
//! ```
//!
//! If it turns out then that a thread was of another process than the part said, which takes a
//! trace that contradicts itself, the part is *odd*, and has to be read again with the state
//! before.

use hashbrown::HashMap;

use super::acts::{EndedLife, FileAct, FileTarget, StatedOwner};
use super::file::{FdFile, FdOwner, FileKey, IoFileKind, Looked};
use super::file_rows::FileRows;
use super::log::{From, Logged};
use super::over::EndedIoLives;
use super::pids::Pids;
use super::sums::{BytesByKind, FileUse, OperationLimits, SlowOperation, ThreadUses};
use crate::Wishes;
use crate::calls::EventPosition;
use crate::threads::{Slots, ThreadKey};

/// Acts that follow each other, done as far as that is possible.
#[derive(Debug)]
pub(super) struct Apart<'a> {
    limits: &'a OperationLimits,
    pids: Pids,
    /// Those that were seen, and memory of others.
    threads: Vec<ApartThread>,
    /// How many were seen.
    seen: u32,
    places: Slots,
    tables: Vec<FdTable>,
    owners: HashMap<Process, u32>,
    /// As in [`super::files::Files`], as far as these acts say.
    stated: HashMap<(u16, i64), i32>,
    done: ActResults,
    mode: ThreadKnowledge,
    /// The last thread that acted where the part should have known it, and where; until the part
    /// says that it does not.
    told_since: Option<(ThreadKey, EventPosition)>,
    /// Alone, the tables that may know an fd.
    knowing: HashMap<i32, Vec<u32>>,
}

/// The known facts about threads besides those of acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadKnowledge {
    /// Everything.
    Whole,
    /// Nothing; from this place on, all acts are here.
    Alone(EventPosition),
    /// Everything, and the acts that are left over were done alone from this place on.
    Again(EventPosition),
}

/// Memory for doing acts apart: pages that were written to once are there.
#[derive(Debug, Default)]
pub(super) struct ApartBuffers {
    threads: Vec<ApartThread>,
    places: Slots,
    left: Vec<DeferredAct>,
}

/// The results of acts.
#[derive(Debug)]
pub(super) struct ActResults {
    pub(super) rows: FileRows,
    pub(super) over: EndedIoLives,
    /// In the order of places.
    pub(super) left: Vec<DeferredAct>,
    threads: Vec<ApartThread>,
    places: Slots,
    /// The results of doing it alone were wrong.
    pub(super) is_odd: bool,
}

impl ActResults {
    /// Takes the remains of lives that are over.
    pub(super) fn take_over(&mut self) -> EndedIoLives {
        std::mem::replace(&mut self.over, EndedIoLives::new(&Wishes::default(), 0))
    }

    /// Its memory, when all was taken.
    pub(super) fn memory(self) -> ApartBuffers {
        let Self { threads, mut places, mut left, .. } = self;
        places.clear();
        left.clear();
        ApartBuffers { threads, places, left }
    }
}

/// An act that has to be done when the state before is known.
#[derive(Debug)]
pub(super) enum DeferredAct {
    /// An act.
    Act(Logged),
    /// A thread's uses of files that are known; and whether its life was over then.
    Used(ThreadKey, ThreadUses, bool),
    /// The file of an fd now.
    Set(FdOwner, i32, Option<FdFile>),
    /// The files of the fds of a thread's current call when it was entered.
    Looked(ThreadKey, (EventPosition, Looked)),
    /// It was done after all.
    Nothing,
}

impl ActResults {
    /// The rest as acts, in the order of places; nothing was reported before `since`.
    pub(super) fn acts(&mut self, since: EventPosition) -> impl Iterator<Item = Logged> {
        let mut last = since;
        self.left.drain(..).filter_map(move |left| {
            let logged = match left {
                DeferredAct::Act(logged) => logged,
                DeferredAct::Used(key, used, is_over) => {
                    Logged { place: used.since, key, act: FileAct::Used(Box::new(used), is_over) }
                }
                DeferredAct::Set(FdOwner::Process(host, pid), fd, file) => {
                    Logged { place: last, key: ThreadKey { host, tid: 0 }, act: FileAct::Set(pid, fd, file) }
                }
                DeferredAct::Looked(key, (at, looked)) => {
                    Logged { place: last, key, act: FileAct::Looked(at, Box::new(looked)) }
                }
                DeferredAct::Set(FdOwner::Thread(_), ..) | DeferredAct::Nothing => return None,
            };
            last = last.max(logged.place);
            Some(logged)
        })
    }
}

/// A process of a machine.
type Process = (u16, i32);

/// The fds of a process.
#[derive(Debug)]
struct FdTable {
    process: Process,
    /// Those that were changed; nothing: it is none now.
    fds: HashMap<i32, Option<FdFile>>,
}

/// The state of a thread.
#[derive(Debug, Default)]
struct ApartThread {
    pid: Option<i32>,
    /// The table of its process, once that was asked for.
    table: Option<u32>,
    /// If its call was entered here, and its fds were known; and where.
    looked: Option<(EventPosition, Looked)>,
    /// The call has ended.
    is_used: bool,
    /// Its uses, among the rest.
    piece: Option<u32>,
    /// All its uses since it was born.
    pieces: Vec<u32>,
    /// When it was born, if that was here.
    born: Option<EventPosition>,
    /// Where that is left, if it need not be reported once another thread of this number is born:
    /// it was not the first one here, its birth says nothing of others, and nothing else of it was
    /// left over.
    made_at: Option<u32>,
    /// The part that follows reports its process.
    is_told: bool,
    /// It reports its birth.
    is_made: bool,
    /// Since then something of it was left over.
    is_left: bool,
}

impl ApartThread {
    /// Another thread is here now.
    fn begin(&mut self, pid: Option<i32>) {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        *self = Self { pid, pieces, ..Self::default() };
    }
}

/// A thread, and its place.
type Asked = (ThreadKey, usize);

impl<'a> Apart<'a> {
    /// Before the first act; with the process of each thread then.
    pub(super) fn new(
        limits: &'a OperationLimits,
        wishes: &Wishes,
        pids: Pids,
        memory: ApartBuffers,
        mode: ThreadKnowledge,
    ) -> Self {
        let ApartBuffers { threads, places, left } = memory;
        let (rows, over) = (FileRows::default(), EndedIoLives::new(wishes, limits.slow));
        let done = ActResults { rows, over, left, threads: Vec::new(), places: Slots::default(), is_odd: false };
        let (tables, owners, stated, knowing) = Default::default();
        Self { limits, pids, threads, seen: 0, places, tables, owners, stated, done, mode, told_since: None, knowing }
    }

    /// The next act, in the order of places; it may be taken.
    #[inline]
    pub(super) fn act(&mut self, logged: &mut Logged, from: From) {
        let asked = self.place(logged.key);
        let is_done = match self.mode {
            ThreadKnowledge::Whole => self.does(asked, logged, from),
            ThreadKnowledge::Alone(since) => self.does_alone(asked, logged, since),
            ThreadKnowledge::Again(since) => {
                self.check(asked, logged, since, from);
                self.does(asked, logged, from)
            }
        };
        if !is_done {
            let Logged { place, key, ref mut act } = *logged;
            if !matches!(act, FileAct::Fork(..)) {
                self.threads[asked.1].made_at = None;
            }
            // Moved out of the log without a copy: any act without memory can take its place.
            let act = std::mem::replace(act, FileAct::Died);
            self.done.left.push(DeferredAct::Act(Logged { place, key, act }));
        }
    }

    /// The results.
    pub(super) fn end(mut self) -> ActResults {
        self.done.is_odd |= self.told_since.is_some();
        for table in 0..self.tables.len() {
            self.tell_all(table);
        }
        for (key, place) in self.places.all() {
            let ApartThread { looked, is_used, .. } = &self.threads[place as usize];
            if let Some(looked) = looked.filter(|_| !is_used) {
                self.done.left.push(DeferredAct::Looked(key, looked));
            }
        }
        ActResults { threads: self.threads, places: self.places, ..self.done }
    }

    /// Does an act where the state before is unknown; `false`: the act has to be left over.
    fn does_alone(&mut self, asked: Asked, logged: &mut Logged, since: EventPosition) -> bool {
        let tells = matches!(
            logged.act,
            FileAct::Fork(..) | FileAct::Known(_) | FileAct::Said(..) | FileAct::Died | FileAct::Over(_)
        );
        if logged.place < since && !tells {
            self.threads[asked.1].is_left = true;
            return false;
        }
        if let FileAct::Asks { fd, other_fd, is_any } = logged.act {
            self.give_up_some(asked, [fd, other_fd], is_any);
            return false;
        }
        if self.threads[asked.1].pid.is_none() {
            logged.act.fds().into_iter().flatten().for_each(|fd| self.give_up(fd));
            if logged.act == FileAct::Exec {
                self.give_up_all();
            }
        }
        self.does(asked, logged, From::Part)
    }

    /// Reports the file of an fd in each table that knows it, and forgets it there: a thread of an
    /// unknown process sees or changes it.
    fn give_up(&mut self, fd: i32) {
        for table in self.knowing.remove(&fd).unwrap_or_default() {
            self.tell(table as usize, fd);
            self.tables[table as usize].fds.remove(&fd);
        }
    }

    /// The same of the fds that a thread may change, or of all that it may see.
    fn give_up_some(&mut self, asked: Asked, fds: [Option<i32>; 2], is_any: bool) {
        match self.table(asked) {
            None if is_any => self.give_up_all(),
            None => fds.into_iter().flatten().for_each(|fd| self.give_up(fd)),
            Some(table) => {
                let known: Vec<i32> = self.tables[table].fds.keys().copied().collect();
                for fd in known.into_iter().filter(|fd| is_any || fds.contains(&Some(*fd))) {
                    self.tell(table, fd);
                    self.tables[table].fds.remove(&fd);
                }
            }
        }
    }

    /// The same of all fds.
    fn give_up_all(&mut self) {
        for table in 0..self.tables.len() {
            self.tell_all(table);
            self.tables[table].fds.clear();
        }
        self.knowing.clear();
    }

    /// Checks that facts which the part did not know, when it was done alone, agree with its
    /// results.
    fn check(&mut self, asked: Asked, logged: &Logged, since: EventPosition, from: From) {
        let Logged { key, place, ref act } = *logged;
        if from == From::Part {
            // Where the part knew less than is known now, it has an act `Asks` of that thread at
            // that place.
            let is_told =
                |asked: (ThreadKey, EventPosition)| matches!(act, FileAct::Asks { .. }) && asked == (key, place);
            self.done.is_odd |= self.told_since.take().is_some_and(|asked| !is_told(asked));
            return;
        }
        if matches!(act, FileAct::Over(_) | FileAct::Count(_)) {
            return;
        }
        if place >= since {
            self.done.is_odd |= self.told_since.replace((key, place)).is_some_and(|asked| asked != (key, place));
        }
        let tells = match act {
            FileAct::Fork(pid, ..) => Some((key, *pid)),
            FileAct::Known(pid) => Some((key, Some(*pid))),
            FileAct::Said(tid, pid) => Some((ThreadKey { tid: *tid, ..key }, Some(*pid))),
            _ => None,
        };
        let parent = match act {
            FileAct::Fork(_, Some(pid), Some(parent)) => Some((*parent, Some(*pid))),
            _ => None,
        };
        let is_other = |apart: &mut Self, (key, pid): (ThreadKey, Option<i32>)| {
            let place = apart.place(key).1;
            apart.threads[place].is_told && apart.threads[place].pid != pid
        };
        self.done.is_odd |=
            self.threads[asked.1].is_made || tells.into_iter().chain(parent).any(|told| is_other(self, told));
    }

    /// Does an act; `false`: the act has to be left over.
    fn does(&mut self, asked: Asked, logged: &mut Logged, from: From) -> bool {
        let Logged { key, place, ref mut act } = *logged;
        match act {
            FileAct::Count(_) | FileAct::Asks { .. } => true,
            FileAct::Use(target, used) => self.uses(asked, place, *target, *used),
            FileAct::Slow(target, slow) => self.slow(asked, place, *target, slow),
            FileAct::Look(fd, other_fd) => self.look(asked, place, [*fd, *other_fd]),
            FileAct::Over(whole) => self.take(asked, place, whole),
            FileAct::Died => self.died(asked),
            // A birth is left over even if it was done here: the state before has to know the
            // thread's process and its fds too.
            FileAct::Fork(pid, parent_pid, parent) => {
                self.fork(asked, place, (*pid, *parent_pid, *parent), from);
                false
            }
            FileAct::Known(pid) => !self.known(asked, *pid, from),
            FileAct::Said(tid, pid) => {
                let said = self.place(ThreadKey { tid: *tid, ..key });
                let is_new = self.known(said, *pid, from);
                self.threads[said.1].made_at = self.threads[said.1].made_at.filter(|_| !is_new);
                !is_new
            }
            // It is left over too: the acts that follow these may name the table.
            FileAct::FileTable { table, pid } => {
                self.stated.insert((key.host, *table), *pid);
                false
            }
            FileAct::FileState { of, fd, path } => {
                let pid = match of {
                    StatedOwner::Process(pid) => Some(*pid),
                    StatedOwner::Table(table) => self.stated.get(&(key.host, *table)).copied(),
                };
                let Some(pid) = pid else {
                    // Of any process, as far as is known here.
                    for table in 0..self.tables.len() {
                        self.tell(table, *fd);
                        self.tables[table].fds.remove(fd);
                    }
                    return false;
                };
                let file = FdFile::stated(&mut self.done.rows.names, path);
                let table = self.table_of((key.host, pid));
                self.tables[table as usize].fds.insert(*fd, Some(file));
                self.knows(table as usize, *fd);
                true
            }
            FileAct::Used(_, is_over) => {
                let current = &mut self.threads[asked.1];
                current.is_left = true;
                current.piece = current.piece.filter(|_| !*is_over);
                false
            }
            FileAct::Set(pid, fd, _) => {
                let table = self.table_of((key.host, *pid));
                self.tables[table as usize].fds.remove(fd);
                false
            }
            FileAct::Looked(..) => {
                let current = &mut self.threads[asked.1];
                (current.looked, current.is_used) = (None, false);
                false
            }
            FileAct::Open { .. }
            | FileAct::Make { .. }
            | FileAct::Derive { .. }
            | FileAct::Close(_)
            | FileAct::Exec => {
                let Some(table) = self.table(asked) else { return false };
                act.fds().into_iter().flatten().for_each(|fd| self.knows(table, fd));
                self.changes(key, table, act)
            }
        }
    }

    fn place(&mut self, key: ThreadKey) -> Asked {
        let Self { threads, seen, places, pids, .. } = self;
        let place = places.of(key, || {
            let (place, pid) = (*seen, pids.get(key));
            *seen += 1;
            match threads.get_mut(place as usize) {
                Some(current) => current.begin(pid),
                None => threads.push(ApartThread { pid, ..ApartThread::default() }),
            }
            place
        });
        (key, place as usize)
    }

    fn table_of(&mut self, process: Process) -> u32 {
        let tables = &mut self.tables;
        *self.owners.entry(process).or_insert_with(|| {
            tables.push(FdTable { process, fds: HashMap::default() });
            (tables.len() - 1) as u32
        })
    }

    /// The table of a thread, if its process is known.
    #[inline]
    fn table(&mut self, (key, place): Asked) -> Option<usize> {
        let ApartThread { pid, table, .. } = self.threads[place];
        let table = match table {
            Some(table) => table,
            None => {
                let table = self.table_of((key.host, pid?));
                self.threads[place].table = Some(table);
                table
            }
        };
        Some(table as usize)
    }

    /// A table may know an fd from now on.
    #[inline]
    fn knows(&mut self, table: usize, fd: i32) {
        // In the other modes the processes of all threads are known, and no fd has to be given up.
        if matches!(self.mode, ThreadKnowledge::Alone(_)) {
            self.knowing.entry(fd).or_default().push(table as u32);
        }
    }

    /// The file of an fd, if it is known.
    #[inline]
    fn file(&mut self, asked: Asked, fd: i32) -> Option<(FileKey, IoFileKind)> {
        let table = self.table(asked)?;
        let FdTable { process: (host, pid), fds } = &self.tables[table];
        Some(match fds.get(&fd)? {
            Some(file) => (FileKey::Named(file.name), file.kind),
            None => (FileKey::Fd(FdOwner::Process(*host, *pid), fd), IoFileKind::Unknown),
        })
    }

    fn target(&mut self, asked: Asked, target: FileTarget) -> Option<(FileKey, IoFileKind)> {
        match target {
            FileTarget::Fd(fd) => self.file(asked, fd),
            FileTarget::Looked { is_other } => {
                let ApartThread { looked, is_used, .. } = &mut self.threads[asked.1];
                let (_, looked) = looked.as_ref()?;
                *is_used = true;
                Some(looked[usize::from(is_other)].unwrap_or((FileKey::None, IoFileKind::Unknown)))
            }
            FileTarget::None => Some((FileKey::None, IoFileKind::Unknown)),
        }
    }

    fn uses(&mut self, asked: Asked, place: EventPosition, target: FileTarget, used: FileUse) -> bool {
        let Some((file, kind)) = self.target(asked, target) else {
            self.threads[asked.1].is_left = true;
            return false;
        };
        if self.limits.wants(asked.0.tid) {
            self.done.rows.of(file).count(used);
            if used.moves(kind) {
                self.piece(asked, place).kinds.count(kind, used);
            }
        }
        true
    }

    fn slow(&mut self, asked: Asked, place: EventPosition, target: FileTarget, slow: &mut SlowOperation) -> bool {
        if !self.limits.wants(asked.0.tid) {
            return true;
        }
        let file = match (&slow.path, target) {
            (Some(path), _) => Some(FileKey::Named(self.done.rows.names.intern(path))),
            (None, FileTarget::None) => None,
            (None, target) => match self.target(asked, target) {
                Some((file, _)) => Some(file),
                None => {
                    self.threads[asked.1].is_left = true;
                    return false;
                }
            },
        };
        let (slow, limits) = (slow.clone(), self.limits);
        self.piece(asked, place).slow(limits, slow, file);
        true
    }

    /// The uses of a thread.
    fn piece(&mut self, (key, place): Asked, since: EventPosition) -> &mut ThreadUses {
        let left = &mut self.done.left;
        let ApartThread { piece, pieces, .. } = &mut self.threads[place];
        let at = *piece.get_or_insert_with(|| {
            left.push(DeferredAct::Used(key, ThreadUses::new(since), false));
            pieces.push((left.len() - 1) as u32);
            (left.len() - 1) as u32
        });
        match &mut left[at as usize] {
            DeferredAct::Used(_, piece, _) => piece,
            _ => unreachable!("a place of what is used is forgotten with it"),
        }
    }

    fn look(&mut self, asked: Asked, place: EventPosition, fds: [Option<i32>; 2]) -> bool {
        let known = fds.map(|fd| fd.map(|fd| self.file(asked, fd)));
        let is_known = known.iter().flatten().all(Option::is_some);
        if !is_known && let Some(table) = self.table(asked) {
            // The other one is looked up at the same place.
            fds.into_iter().flatten().for_each(|fd| self.tell(table, fd));
        }
        let current = &mut self.threads[asked.1];
        (current.looked, current.is_used) = (is_known.then(|| (place, known.map(Option::flatten))), false);
        is_known
    }

    /// Reports the current file of an fd, if it is known.
    fn tell(&mut self, table: usize, fd: i32) {
        let FdTable { process: (host, pid), fds } = &self.tables[table];
        if let Some(file) = fds.get(&fd) {
            self.done.left.push(DeferredAct::Set(FdOwner::Process(*host, *pid), fd, *file));
        }
    }

    /// The same of all of a table.
    fn tell_all(&mut self, table: usize) {
        let FdTable { process: (host, pid), fds } = &self.tables[table];
        let owner = FdOwner::Process(*host, *pid);
        self.done.left.extend(fds.iter().map(|(fd, file)| DeferredAct::Set(owner, *fd, *file)));
    }

    /// A thread changes the files of fds.
    fn changes(&mut self, key: ThreadKey, table: usize, act: &FileAct) -> bool {
        let Self { limits, done: ActResults { rows, .. }, tables, .. } = self;
        let fds = &mut tables[table].fds;
        match act {
            FileAct::Open { path, fd, is_error, closes_on_exec, counts } => {
                let name = rows.names.intern(path);
                if *counts && limits.wants(key.tid) {
                    rows.of(FileKey::Named(name)).count(FileUse::open(*is_error));
                }
                if let Some(fd) = fd {
                    fds.insert(*fd, Some(FdFile { name, kind: IoFileKind::Disk, closes_on_exec: *closes_on_exec }));
                }
            }
            FileAct::Make { fd, is_socket, is_net, closes_on_exec } => {
                fds.insert(*fd, Some(FdFile::made(&mut rows.names, *is_socket, *is_net, *closes_on_exec)));
            }
            FileAct::Derive { from, fd, is_socket, closes_on_exec } => match fds.get(from).copied() {
                Some(file) => {
                    let file = FdFile::derived(&mut rows.names, file, *is_socket, *closes_on_exec);
                    fds.insert(*fd, file);
                }
                None => {
                    fds.remove(fd);
                    return false;
                }
            },
            FileAct::Close(fd) => {
                fds.insert(*fd, None);
            }
            FileAct::Exec => {
                fds.values_mut()
                    .filter(|file| file.is_some_and(|file| file.closes_on_exec))
                    .for_each(|file| *file = None);
                // Fds that were not changed here may be given up too.
                return false;
            }
            _ => unreachable!("these change no fds"),
        }
        true
    }

    /// The thread is made: its process, that of its parent, and the parent.
    fn fork(
        &mut self,
        asked: Asked,
        place: EventPosition,
        (pid, parent_pid, parent): (Option<i32>, Option<i32>, Option<ThreadKey>),
        from: From,
    ) {
        let parent = parent.map(|parent| self.place(parent));
        let mut is_news = false;
        if let (Some(parent), Some(pid)) = (parent, parent_pid) {
            is_news = self.known(parent, pid, from);
        }
        if let Some((_, parent)) = parent {
            self.threads[parent].made_at = None;
        }
        let current = &mut self.threads[asked.1];
        if let Some(made_at) = current.made_at.take().filter(|_| current.pieces.is_empty()) {
            self.done.left[made_at as usize] = DeferredAct::Nothing;
        }
        let is_first = current.born.is_none();
        (current.pid, current.table, current.piece) = (pid, None, None);
        (current.born, current.is_left) = (Some(place), false);
        (current.is_told, current.is_made) = (from == From::Part, from == From::Part);
        current.pieces.clear();
        if let (Some(pid), Some(parent_pid)) = (pid, parent_pid)
            && pid != parent_pid
        {
            // Unknown fds are copied where they are known.
            let host = asked.0.host;
            let (parent, child) = (self.table_of((host, parent_pid)), self.table_of((host, pid)));
            let copy = self.tables[parent as usize].fds.clone();
            copy.keys().for_each(|fd| self.knows(child as usize, *fd));
            self.tables[child as usize].fds = copy;
        } else if !is_first && !is_news {
            self.threads[asked.1].made_at = Some(self.done.left.len() as u32);
        }
    }

    /// A thread's process becomes known; whether it was not.
    fn known(&mut self, (key, place): Asked, pid: i32, from: From) -> bool {
        let current = &mut self.threads[place];
        current.is_told |= from == From::Part;
        if current.pid == Some(pid) {
            return false;
        }
        let was_known = current.pid.is_some();
        (current.pid, current.table) = (Some(pid), None);
        if !was_known {
            // Fds that were its own are added to those that its process does not have.
            let table = self.table_of((key.host, pid)) as usize;
            self.tell_all(table);
            self.tables[table].fds.clear();
        }
        true
    }

    /// Later acts may be of another life.
    fn died(&mut self, (_, place): Asked) -> bool {
        let ApartThread { piece, born, is_left, .. } = &mut self.threads[place];
        let is_here = born.is_some() && !*is_left;
        if let Some(piece) = piece.take()
            && let DeferredAct::Used(_, _, is_over) = &mut self.done.left[piece as usize]
        {
            *is_over |= is_here;
        }
        is_here
    }

    /// A life is over. One that was all here is done with.
    fn take(&mut self, (_, place): Asked, until: EventPosition, whole: &EndedLife) -> bool {
        let ApartThread { piece: current, pieces, born, is_left, .. } = &mut self.threads[place];
        let left = &mut self.done.left;
        let is_here = born.is_some_and(|born| whole.since.is_some_and(|since| born <= since)) && !*is_left;
        let its = |left: &DeferredAct| match left {
            DeferredAct::Used(_, piece, _) if whole.since <= Some(piece.since) && piece.since < until => {
                Some((piece.kinds, piece.slow.is_empty()))
            }
            _ => None,
        };
        if !is_here || pieces.iter().filter_map(|at| its(&left[*at as usize])).any(|(_, is_quick)| !is_quick) {
            // Its uses from now on are not of this life.
            (*current, *is_left) = (None, true);
            return false;
        }
        let mut kinds = BytesByKind::default();
        pieces.retain(|at| {
            let Some((used, _)) = its(&left[*at as usize]) else { return true };
            kinds.add(&used);
            left[*at as usize] = DeferredAct::Nothing;
            *current = current.filter(|current| current != at);
            false
        });
        if whole.is_wanted {
            self.done.over.take(whole, &kinds);
        }
        true
    }
}

#[cfg(test)]
mod tests;
