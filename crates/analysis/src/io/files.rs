//! The files of fds, in the order of time; and so the reads and writes of each file.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::acts::{Act, Target, Whole};
use super::apart::{Done, Left};
use super::file::{File, FileKey, Kind, Looked, Owner, renamed};
use super::file_rows::FileRows;
use super::log::Logged;
use super::over::{Over, SlowUse};
use super::pids::Pids;
use super::sums::{Kinds, Limits, Piece, Slow, Use};
use crate::calls::{Bases, Place};
use crate::names::NameId;
use crate::threads::{Slots, ThreadKey};

/// The state of a thread for files. There are as many of these as threads were seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Current {
    pid: Option<i32>,
    /// The table of its process, once that was asked for.
    table: Option<u32>,
    /// Later uses are of the last piece.
    is_going_on: bool,
    doing: Option<Box<Doing>>,
}

/// The current calls and uses of a living thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Doing {
    /// The files of its current call's fds when it was entered.
    looked: Looked,
    /// Where that was.
    looked_at: Option<Place>,
    /// The call has ended.
    is_used: bool,
    /// Uses that wait until their life is known.
    pieces: Vec<Piece>,
}

/// The files of fds, up to some place in time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Files {
    pub(super) rows: FileRows,
    tables: Vec<HashMap<i32, File>>,
    owners: HashMap<Owner, u32>,
    threads: Vec<Current>,
    places: Slots,
    /// Memory of threads that live no more.
    #[serde(skip)]
    spare: Spare,
}

/// A thread, and its place.
type Asked = (ThreadKey, u32);

/// Memory, the last one used on top: it is still in the cache.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "boxes are taken out and put back")]
struct Spare(Vec<Box<Doing>>);

impl Clone for Spare {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Spare {
    /// The maximum that is kept.
    const MOST: usize = 64;

    #[inline]
    fn take(&mut self) -> Box<Doing> {
        self.0.pop().unwrap_or_default()
    }

    #[inline]
    fn keep(&mut self, mut doing: Box<Doing>) {
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
            threads: Vec::new(),
            places: Slots::default(),
            spare: Spare::default(),
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
            threads.push(Current::default());
            (threads.len() - 1) as u32
        });
        (key, place)
    }

    #[inline]
    fn current(&mut self, asked: Asked) -> &mut Current {
        &mut self.threads[asked.1 as usize]
    }

    /// The table of an owner; it is made if there is none.
    fn table_of(&mut self, owner: Owner) -> u32 {
        let tables = &mut self.tables;
        *self.owners.entry(owner).or_insert_with(|| {
            tables.push(HashMap::default());
            (tables.len() - 1) as u32
        })
    }

    /// The table of a thread.
    #[inline]
    fn table(&mut self, asked: Asked) -> &mut HashMap<i32, File> {
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
    pub(super) fn replay(&mut self, limits: &Limits, over: &mut Over, logged: Logged) {
        let Logged { key, place, act } = logged;
        let is_wanted = limits.wants(key.tid);
        let asked = self.place(key);
        match act {
            Act::Use(target, used) => {
                let (file, kind) = self.target(asked, target);
                if is_wanted {
                    self.rows.of(file).count(used);
                    self.count(asked, place, kind, used);
                }
            }
            Act::Slow(target, slow) => {
                if is_wanted {
                    self.slow(limits, asked, place, target, *slow);
                }
            }
            Act::Over(whole) => self.take(&whole, place, over),
            Act::Used(used, is_over) => self.used(limits, asked, *used, is_over),
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
    pub(super) fn follow(&mut self, limits: &Limits, over: &mut Over, done: &mut Done) {
        let names = self.rows.add(&done.rows);
        over.add(done.take_over(), &Bases::default());
        for left in done.left.drain(..) {
            match left {
                Left::Act(logged) => self.replay(limits, over, logged),
                Left::Used(key, mut used, is_over) => {
                    used.rename(&names);
                    let asked = self.place(key);
                    self.used(limits, asked, used, is_over);
                }
                Left::Set(owner, fd, file) => {
                    let table = self.table_of(owner);
                    set(&mut self.tables[table as usize], fd, file.map(|file| file.renamed(&names)));
                }
                Left::Looked(key, (at, looked)) => {
                    let asked = self.place(key);
                    self.looked(asked, at, renamed(looked, &names));
                }
                Left::Nothing => {}
            }
        }
    }

    /// A thread's uses of files that were known elsewhere.
    fn used(&mut self, limits: &Limits, asked: Asked, used: Piece, is_over: bool) {
        let piece = self.piece(asked, used.since);
        piece.kinds.add(&used.kinds);
        used.slow.into_iter().for_each(|(slow, file)| piece.slow(limits, slow, file));
        if is_over {
            self.over(asked);
        }
    }

    /// A life is over: the uses of its thread meanwhile were its own.
    fn take(&mut self, whole: &Whole, until: Place, over: &mut Over) {
        let mut kinds = Kinds::default();
        let asked = self.place(whole.who.key);
        let Current { is_going_on, doing: known, .. } = &mut self.threads[asked.1 as usize];
        if let Some(mut doing) = known.take() {
            let last = doing.pieces.last().map(|piece| piece.since);
            let is_its = |piece: &mut Piece| whole.since <= Some(piece.since) && piece.since < until;
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

    fn owner(&self, (key, place): Asked) -> Owner {
        let pid = self.threads[place as usize].pid;
        pid.map_or(Owner::Thread(key), |pid| Owner::Process(key.host, pid))
    }

    #[inline]
    fn file(&mut self, asked: Asked, fd: i32) -> Option<File> {
        self.table(asked).get(&fd).copied()
    }

    #[inline]
    fn look(&mut self, asked: Asked, fd: i32) -> (FileKey, Kind) {
        match self.file(asked, fd) {
            Some(file) => (FileKey::Named(file.name), file.kind),
            None => (FileKey::Fd(self.owner(asked), fd), Kind::Unknown),
        }
    }

    #[inline]
    fn looked(&mut self, asked: Asked, at: Place, looked: Looked) {
        let doing = &mut self.threads[asked.1 as usize].doing;
        let doing = doing.get_or_insert_with(|| self.spare.take());
        // A look-up of an earlier thread of the same number may be reported again.
        if doing.looked_at <= Some(at) {
            (doing.looked, doing.looked_at, doing.is_used) = (looked, Some(at), false);
        }
    }

    fn target(&mut self, asked: Asked, target: Target) -> (FileKey, Kind) {
        match target {
            Target::Fd(fd) => self.look(asked, fd),
            Target::Looked { is_other } => {
                let doing = self.current(asked).doing.as_mut();
                let looked = doing.and_then(|doing| {
                    doing.is_used = true;
                    doing.looked[usize::from(is_other)]
                });
                looked.unwrap_or((FileKey::None, Kind::Unknown))
            }
            Target::None => (FileKey::None, Kind::Unknown),
        }
    }

    fn piece(&mut self, asked: Asked, place: Place) -> &mut Piece {
        let Current { is_going_on, doing, .. } = &mut self.threads[asked.1 as usize];
        let pieces = &mut doing.get_or_insert_with(|| self.spare.take()).pieces;
        if !std::mem::replace(is_going_on, true) {
            pieces.push(Piece::new(place));
        }
        pieces.last_mut().expect("one goes on")
    }

    fn count(&mut self, asked: Asked, place: Place, kind: Kind, used: Use) {
        if used.moves(kind) {
            self.piece(asked, place).kinds.count(kind, used);
        }
    }

    fn slow(&mut self, limits: &Limits, asked: Asked, place: Place, target: Target, slow: Slow) {
        let file = match (&slow.path, target) {
            (Some(path), _) => Some(FileKey::Named(self.rows.names.intern(path))),
            (None, Target::None) => None,
            (None, target) => Some(self.target(asked, target).0),
        };
        self.piece(asked, place).slow(limits, slow, file);
    }

    fn set(&mut self, asked: Asked, fd: i32, file: Option<File>) {
        set(self.table(asked), fd, file);
    }

    fn change(&mut self, asked: Asked, place: Place, act: Act, is_wanted: bool) {
        let key = asked.0;
        match act {
            Act::Look(fd, other_fd) => {
                let looked = [fd, other_fd].map(|fd| fd.map(|fd| self.look(asked, fd)));
                self.looked(asked, place, looked);
            }
            Act::Open { path, fd, is_error, closes_on_exec, counts } => {
                let name = self.rows.names.intern(&path);
                if is_wanted && counts {
                    self.rows.of(FileKey::Named(name)).count(Use::open(is_error));
                }
                if let Some(fd) = fd {
                    self.set(asked, fd, Some(File { name, kind: Kind::Disk, closes_on_exec }));
                }
            }
            Act::Make { fd, is_socket, is_net, closes_on_exec } => {
                let file = File::made(&mut self.rows.names, is_socket, is_net, closes_on_exec);
                self.set(asked, fd, Some(file));
            }
            Act::Derive { from, fd, is_socket, closes_on_exec } => {
                let file = self.file(asked, from);
                let file = File::derived(&mut self.rows.names, file, is_socket, closes_on_exec);
                self.set(asked, fd, file);
            }
            Act::Close(fd) => self.set(asked, fd, None),
            Act::Exec => {
                self.table(asked).retain(|_, file| !file.closes_on_exec);
            }
            Act::Fork(pid, parent_pid, parent) => self.fork(asked, pid, parent_pid, parent),
            Act::Known(pid) => self.known(asked, pid),
            Act::Said(tid, pid) => {
                let said = self.place(ThreadKey { tid, ..key });
                self.known(said, pid);
            }
            Act::Died => self.over(asked),
            Act::FileState { pid, fd, path } => {
                let file = File::stated(&mut self.rows.names, &path);
                let table = self.table_of(Owner::Process(key.host, pid));
                self.tables[table as usize].insert(fd, file);
            }
            Act::Set(pid, fd, file) => {
                let table = self.table_of(Owner::Process(key.host, pid));
                set(&mut self.tables[table as usize], fd, file);
            }
            Act::Looked(at, looked) => self.looked(asked, at, *looked),
            Act::Count(_) | Act::Asks { .. } => {}
            Act::Use(..) | Act::Slow(..) | Act::Over(..) | Act::Used(..) => unreachable!("these change nothing"),
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
        let own = self.owners.get(&Owner::Thread(key)).copied();
        own.into_iter().for_each(|own| self.tables[own as usize].clear());
        if let (Some(pid), Some(parent_pid)) = (pid, parent_pid)
            && pid != parent_pid
        {
            let table = self.table_of(Owner::Process(key.host, parent_pid));
            // A process gets copies of its parent's fds. A thread of the same process shares them,
            // and needs none.
            let copy = self.tables[table as usize].clone();
            let table = self.table_of(Owner::Process(key.host, pid));
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
        if let Some(&own) = self.owners.get(&Owner::Thread(key)) {
            let own = std::mem::take(&mut self.tables[own as usize]);
            let table = self.table_of(Owner::Process(key.host, pid));
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

fn set(table: &mut HashMap<i32, File>, fd: i32, file: Option<File>) {
    match file {
        Some(file) => table.insert(fd, file),
        None => table.remove(&fd),
    };
}
