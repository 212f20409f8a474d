//! The files of fds, in the order of time; and so the reads and writes of each file.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::acts::{EndedLife, FileAct, FileTarget, StatedOwner};
use super::apart::{ActResults, DeferredAct};
use super::file::{FdFile, FdOwner, FileKey, IoFileKind, Looked, renamed};
use super::file_rows::FileRows;
use super::log::Logged;
use super::over::{EndedIoLives, SlowUse};
use super::pids::Pids;
use super::sums::{BytesByKind, FileUse, OperationLimits, SlowOperation, ThreadUses};
use crate::calls::{Bases, EventPosition};
use crate::names::NameId;
use crate::threads::{Slots, ThreadKey};

/// The state of a thread for files. There are as many of these as threads were seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct FileThread {
    pid: Option<i32>,
    /// The table of its process, once that was asked for.
    table: Option<u32>,
    /// Later uses are of the last piece.
    is_going_on: bool,
    doing: Option<Box<ThreadActivity>>,
}

/// The current calls and uses of a living thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ThreadActivity {
    /// The files of its current call's fds when it was entered.
    looked: Looked,
    /// Where that was.
    looked_at: Option<EventPosition>,
    /// The call has ended.
    is_used: bool,
    /// Uses that wait until their life is known.
    pieces: Vec<ThreadUses>,
}

/// The files of fds, up to some place in time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Files {
    pub(super) rows: FileRows,
    tables: Vec<HashMap<i32, FdFile>>,
    owners: HashMap<FdOwner, u32>,
    /// Processes by machine and address of their table of files.
    stated: HashMap<(u16, i64), i32>,
    threads: Vec<FileThread>,
    places: Slots,
    /// Memory of threads that live no more.
    #[serde(skip)]
    spare: SpareMemory,
}

/// A thread, and its place.
type Asked = (ThreadKey, u32);

/// Memory, the last one used on top: it is still in the cache.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "boxes are taken out and put back")]
struct SpareMemory(Vec<Box<ThreadActivity>>);

impl Clone for SpareMemory {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl SpareMemory {
    /// The maximum that is kept.
    const MOST: usize = 64;

    #[inline]
    fn take(&mut self) -> Box<ThreadActivity> {
        self.0.pop().unwrap_or_default()
    }

    #[inline]
    fn keep(&mut self, mut doing: Box<ThreadActivity>) {
        if self.0.len() < Self::MOST {
            (doing.looked, doing.looked_at, doing.is_used) = Default::default();
            doing.pieces.clear();
            self.0.push(doing);
        }
    }
}

impl Files {
    /// Before anything is known of fds, with the operations on files nevertheless.
    pub(super) fn new(rows: FileRows) -> Self {
        Self {
            rows,
            tables: Vec::new(),
            owners: HashMap::default(),
            stated: HashMap::default(),
            threads: Vec::new(),
            places: Slots::default(),
            spare: SpareMemory::default(),
        }
    }

    /// Whether its numbers point into its tables.
    pub(super) fn fits(&self) -> bool {
        let is_named = |name: NameId| name == NameId::OTHER || (name.0 as usize) < self.rows.names.count();
        let is_table = |table: u32| (table as usize) < self.tables.len();
        let is_unknown = |file: &FileKey| matches!(file, FileKey::Named(name) if !is_named(*name));
        let looked = self.threads.iter().filter_map(|current| current.doing.as_ref()).flat_map(|doing| &doing.looked);
        self.places.all().all(|(_, place)| (place as usize) < self.threads.len())
            && self.owners.values().all(|table| is_table(*table))
            && self.threads.iter().all(|current| current.table.is_none_or(is_table))
            && self.tables.iter().flat_map(HashMap::values).all(|file| is_named(file.name))
            && !looked.flatten().any(|looked| is_unknown(&looked.0))
    }

    /// Forgets the operations, but not the files of fds.
    pub(super) fn forget(&mut self) {
        self.rows.forget();
        for current in &mut self.threads {
            current.is_going_on = false;
            current.doing.iter_mut().for_each(|doing| doing.pieces.clear());
        }
    }

    /// Where a thread is.
    #[inline]
    fn place(&mut self, key: ThreadKey) -> Asked {
        let threads = &mut self.threads;
        let place = self.places.of(key, || {
            threads.push(FileThread::default());
            (threads.len() - 1) as u32
        });
        (key, place)
    }

    #[inline]
    fn current(&mut self, asked: Asked) -> &mut FileThread {
        &mut self.threads[asked.1 as usize]
    }

    /// The table of an owner; it is made if there is none.
    fn table_of(&mut self, owner: FdOwner) -> u32 {
        let tables = &mut self.tables;
        *self.owners.entry(owner).or_insert_with(|| {
            tables.push(HashMap::default());
            (tables.len() - 1) as u32
        })
    }

    /// The table of a thread.
    #[inline]
    fn table(&mut self, asked: Asked) -> &mut HashMap<i32, FdFile> {
        let place = match self.current(asked).table {
            Some(place) => place,
            None => {
                let owner = self.owner(asked);
                let place = self.table_of(owner);
                self.current(asked).table = Some(place);
                place
            }
        };
        &mut self.tables[place as usize]
    }

    /// Does logged acts again; in the order of places.
    pub(super) fn replay(&mut self, limits: &OperationLimits, over: &mut EndedIoLives, logged: Logged) {
        let Logged { key, place, act } = logged;
        let is_wanted = limits.wants(key.tid);
        let asked = self.place(key);
        match act {
            FileAct::Use(target, used) => {
                let (file, kind) = self.target(asked, target);
                if is_wanted {
                    self.rows.of(file).count(used);
                    self.count(asked, place, kind, used);
                }
            }
            FileAct::Slow(target, slow) => {
                if is_wanted {
                    self.slow(limits, asked, place, target, *slow);
                }
            }
            FileAct::Over(whole) => self.take(&whole, place, over),
            FileAct::Used(used, is_over) => self.used(limits, asked, *used, is_over),
            act => self.change(asked, place, act, is_wanted),
        }
    }

    /// Which process each thread is of.
    pub(super) fn pids(&self) -> Pids {
        let mut pids = Pids::default();
        self.places.all().for_each(|(key, place)| pids.set(key, self.threads[place as usize].pid));
        pids
    }

    /// Adds the results of acts that were done apart: all that follows the known state here.
    pub(super) fn follow(&mut self, limits: &OperationLimits, over: &mut EndedIoLives, done: &mut ActResults) {
        let names = self.rows.add(&done.rows);
        over.add(done.take_over(), &Bases::default());
        for left in done.left.drain(..) {
            match left {
                DeferredAct::Act(logged) => self.replay(limits, over, logged),
                DeferredAct::Used(key, mut used, is_over) => {
                    used.rename(&names);
                    let asked = self.place(key);
                    self.used(limits, asked, used, is_over);
                }
                DeferredAct::Set(owner, fd, file) => {
                    let table = self.table_of(owner);
                    set(&mut self.tables[table as usize], fd, file.map(|file| file.renamed(&names)));
                }
                DeferredAct::Looked(key, (at, looked)) => {
                    let asked = self.place(key);
                    self.looked(asked, at, renamed(looked, &names));
                }
                DeferredAct::Nothing => {}
            }
        }
    }

    /// A thread's uses of files that were known elsewhere.
    fn used(&mut self, limits: &OperationLimits, asked: Asked, used: ThreadUses, is_over: bool) {
        let piece = self.piece(asked, used.since);
        piece.kinds.add(&used.kinds);
        used.slow.into_iter().for_each(|(slow, file)| piece.slow(limits, slow, file));
        if is_over {
            self.over(asked);
        }
    }

    /// A life is over: the uses of its thread meanwhile were its own.
    fn take(&mut self, whole: &EndedLife, until: EventPosition, over: &mut EndedIoLives) {
        let mut kinds = BytesByKind::default();
        let asked = self.place(whole.who.key);
        let FileThread { is_going_on, doing: known, .. } = &mut self.threads[asked.1 as usize];
        if let Some(mut doing) = known.take() {
            let last = doing.pieces.last().map(|piece| piece.since);
            let is_its = |piece: &mut ThreadUses| whole.since <= Some(piece.since) && piece.since < until;
            for piece in doing.pieces.extract_if(.., is_its) {
                kinds.add(&piece.kinds);
                for (slow, file) in piece.slow.into_iter().filter(|_| whole.is_wanted) {
                    over.slow.push(slow.ns, || SlowUse { slow, file, who: whole.who });
                }
            }
            *is_going_on &= last.is_some() && doing.pieces.last().map(|piece| piece.since) == last;
            // The files of a call that is still open are needed at its end.
            match doing.pieces.is_empty() && (doing.is_used || doing.looked == [None, None]) {
                true => self.spare.keep(doing),
                false => *known = Some(doing),
            }
        }
        if whole.is_wanted {
            over.take(whole, &kinds);
        }
    }

    fn owner(&self, (key, place): Asked) -> FdOwner {
        let pid = self.threads[place as usize].pid;
        pid.map_or(FdOwner::Thread(key), |pid| FdOwner::Process(key.host, pid))
    }

    #[inline]
    fn file(&mut self, asked: Asked, fd: i32) -> Option<FdFile> {
        self.table(asked).get(&fd).copied()
    }

    #[inline]
    fn look(&mut self, asked: Asked, fd: i32) -> (FileKey, IoFileKind) {
        match self.file(asked, fd) {
            Some(file) => (FileKey::Named(file.name), file.kind),
            None => (FileKey::Fd(self.owner(asked), fd), IoFileKind::Unknown),
        }
    }

    #[inline]
    fn looked(&mut self, asked: Asked, at: EventPosition, looked: Looked) {
        let doing = &mut self.threads[asked.1 as usize].doing;
        let doing = doing.get_or_insert_with(|| self.spare.take());
        // A look-up of an earlier thread of the same number may be reported again.
        if doing.looked_at <= Some(at) {
            (doing.looked, doing.looked_at, doing.is_used) = (looked, Some(at), false);
        }
    }

    fn target(&mut self, asked: Asked, target: FileTarget) -> (FileKey, IoFileKind) {
        match target {
            FileTarget::Fd(fd) => self.look(asked, fd),
            FileTarget::Looked { is_other } => {
                let doing = self.current(asked).doing.as_mut();
                let looked = doing.and_then(|doing| {
                    doing.is_used = true;
                    doing.looked[usize::from(is_other)]
                });
                looked.unwrap_or((FileKey::None, IoFileKind::Unknown))
            }
            FileTarget::None => (FileKey::None, IoFileKind::Unknown),
        }
    }

    fn piece(&mut self, asked: Asked, place: EventPosition) -> &mut ThreadUses {
        let FileThread { is_going_on, doing, .. } = &mut self.threads[asked.1 as usize];
        let pieces = &mut doing.get_or_insert_with(|| self.spare.take()).pieces;
        if !std::mem::replace(is_going_on, true) {
            pieces.push(ThreadUses::new(place));
        }
        pieces.last_mut().expect("one goes on")
    }

    fn count(&mut self, asked: Asked, place: EventPosition, kind: IoFileKind, used: FileUse) {
        if used.moves(kind) {
            self.piece(asked, place).kinds.count(kind, used);
        }
    }

    fn slow(
        &mut self,
        limits: &OperationLimits,
        asked: Asked,
        place: EventPosition,
        target: FileTarget,
        slow: SlowOperation,
    ) {
        let file = match (&slow.path, target) {
            (Some(path), _) => Some(FileKey::Named(self.rows.names.intern(path))),
            (None, FileTarget::None) => None,
            (None, target) => Some(self.target(asked, target).0),
        };
        self.piece(asked, place).slow(limits, slow, file);
    }

    fn set(&mut self, asked: Asked, fd: i32, file: Option<FdFile>) {
        set(self.table(asked), fd, file);
    }

    fn change(&mut self, asked: Asked, place: EventPosition, act: FileAct, is_wanted: bool) {
        let key = asked.0;
        match act {
            FileAct::Look(fd, other_fd) => {
                let looked = [fd, other_fd].map(|fd| fd.map(|fd| self.look(asked, fd)));
                self.looked(asked, place, looked);
            }
            FileAct::Open { path, fd, is_error, closes_on_exec, counts } => {
                let name = self.rows.names.intern(&path);
                if is_wanted && counts {
                    self.rows.of(FileKey::Named(name)).count(FileUse::open(is_error));
                }
                if let Some(fd) = fd {
                    self.set(asked, fd, Some(FdFile { name, kind: IoFileKind::Disk, closes_on_exec }));
                }
            }
            FileAct::Make { fd, is_socket, is_net, closes_on_exec } => {
                let file = FdFile::made(&mut self.rows.names, is_socket, is_net, closes_on_exec);
                self.set(asked, fd, Some(file));
            }
            FileAct::Derive { from, fd, is_socket, closes_on_exec } => {
                let file = self.file(asked, from);
                let file = FdFile::derived(&mut self.rows.names, file, is_socket, closes_on_exec);
                self.set(asked, fd, file);
            }
            FileAct::Close(fd) => self.set(asked, fd, None),
            FileAct::Exec => {
                self.table(asked).retain(|_, file| !file.closes_on_exec);
            }
            FileAct::Fork(pid, parent_pid, parent) => self.fork(asked, pid, parent_pid, parent),
            FileAct::Known(pid) => self.known(asked, pid),
            FileAct::Said(tid, pid) => {
                let said = self.place(ThreadKey { tid, ..key });
                self.known(said, pid);
            }
            FileAct::Died => self.over(asked),
            FileAct::FileTable { table, pid } => {
                self.stated.insert((key.host, table), pid);
            }
            FileAct::FileState { of, fd, path } => {
                let pid = match of {
                    StatedOwner::Process(pid) => Some(pid),
                    StatedOwner::Table(table) => self.stated.get(&(key.host, table)).copied(),
                };
                let Some(pid) = pid else { return };
                let file = FdFile::stated(&mut self.rows.names, &path);
                let table = self.table_of(FdOwner::Process(key.host, pid));
                self.tables[table as usize].insert(fd, file);
            }
            FileAct::Set(pid, fd, file) => {
                let table = self.table_of(FdOwner::Process(key.host, pid));
                set(&mut self.tables[table as usize], fd, file);
            }
            FileAct::Looked(at, looked) => self.looked(asked, at, *looked),
            FileAct::Count(_) | FileAct::Asks { .. } => {}
            FileAct::Use(..) | FileAct::Slow(..) | FileAct::Over(..) | FileAct::Used(..) => {
                unreachable!("these change nothing")
            }
        }
    }

    /// A thread is made.
    fn fork(&mut self, asked: Asked, pid: Option<i32>, parent_pid: Option<i32>, parent: Option<ThreadKey>) {
        if let (Some(parent), Some(pid)) = (parent, parent_pid) {
            let parent = self.place(parent);
            self.known(parent, pid);
        }
        self.over(asked);
        let key = asked.0;
        let current = self.current(asked);
        (current.pid, current.table) = (pid, None);
        // The fds of the thread that had the number before, if its process was unknown.
        let own = self.owners.get(&FdOwner::Thread(key)).copied();
        own.into_iter().for_each(|own| self.tables[own as usize].clear());
        if let (Some(pid), Some(parent_pid)) = (pid, parent_pid)
            && pid != parent_pid
        {
            let table = self.table_of(FdOwner::Process(key.host, parent_pid));
            // A process gets copies of its parent's fds. A thread of the same process shares them,
            // and needs none.
            let copy = self.tables[table as usize].clone();
            let table = self.table_of(FdOwner::Process(key.host, pid));
            self.tables[table as usize] = copy;
        }
    }

    /// A thread's process becomes known: its fds are that one's.
    fn known(&mut self, asked: Asked, pid: i32) {
        let key = asked.0;
        let current = self.current(asked);
        if current.pid == Some(pid) {
            return;
        }
        (current.pid, current.table) = (Some(pid), None);
        if let Some(&own) = self.owners.get(&FdOwner::Thread(key)) {
            let own = std::mem::take(&mut self.tables[own as usize]);
            let table = self.table_of(FdOwner::Process(key.host, pid));
            let table = &mut self.tables[table as usize];
            // An fd that the process has is newer knowledge than one of the thread alone.
            for (fd, file) in own {
                table.entry(fd).or_insert(file);
            }
        }
    }

    /// Later acts may be of another life.
    fn over(&mut self, asked: Asked) {
        self.current(asked).is_going_on = false;
    }
}

fn set(table: &mut HashMap<i32, FdFile>, fd: i32, file: Option<FdFile>) {
    match file {
        Some(file) => table.insert(fd, file),
        None => table.remove(&fd),
    };
}
