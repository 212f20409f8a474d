//! What fds are, in the order of time; and so what was read from which file.

use std::hash::{Hash, Hasher};

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::acts::{Act, Slow, Target, Use, Whole};
use super::log::Logged;
use super::ops::Category;
use super::over::{Over, SlowUse};
use super::rows::{Limits, Sums};
use crate::calls::Place;
use crate::names::{Interner, NameId};
use crate::threads::{Slots, ThreadKey};

/// What an operation concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FileKey {
    /// A file by its name.
    Named(NameId),
    /// An fd that nobody explains.
    Fd(Owner, i32),
    /// Nobody knows.
    None,
}

/// Whose fds are these?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Owner {
    /// A process, of a machine.
    Process(u16, i32),
    /// A thread whose process nobody knows.
    Thread(ThreadKey),
}

impl Hash for Owner {
    /// As one number: tables are looked up for every act.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (kind, host, number) = match *self {
            Self::Process(host, pid) => (0_u64, host, pid),
            Self::Thread(ThreadKey { host, tid }) => (1, host, tid),
        };
        state.write_u64(kind << 48 | u64::from(host) << 32 | u64::from(number.cast_unsigned()));
    }
}

/// What it leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A path.
    Disk,
    /// The internet.
    Net,
    /// Something else, or nobody knows.
    #[default]
    Unknown,
}

/// What an fd is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct File {
    name: NameId,
    kind: Kind,
    closes_on_exec: bool,
}

/// Bytes that were read, and that were written: disk, net. The others are of kinds that nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Kinds {
    pub(super) read: [u64; 2],
    pub(super) write: [u64; 2],
}

/// What a thread is to files. There are as many of these as threads were seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Current {
    pid: Option<i32>,
    /// The table of its process, once that was asked for.
    table: Option<u32>,
    /// What comes is of the last piece.
    is_going_on: bool,
    doing: Option<Box<Doing>>,
}

/// What a thread does that lives.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Doing {
    /// What the fds of the call that it is in were when it was entered.
    looked: [Option<(FileKey, Kind)>; 2],
    /// The call has ended.
    is_used: bool,
    /// What waits to be told whose life it is of.
    pieces: Vec<Piece>,
}

/// What a thread used since a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Piece {
    since: Place,
    kinds: Kinds,
    slow: Vec<(Slow, Option<FileKey>)>,
}

/// What fds were, up to some place in time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Files {
    pub(super) names: Interner,
    tables: Vec<HashMap<i32, File>>,
    owners: HashMap<Owner, u32>,
    threads: Vec<Current>,
    places: Slots,
    /// By name.
    named: Vec<Sums>,
    others: HashMap<FileKey, Sums>,
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
    /// What is kept at most.
    const MOST: usize = 64;

    #[inline]
    fn take(&mut self) -> Box<Doing> {
        self.0.pop().unwrap_or_default()
    }

    #[inline]
    fn keep(&mut self, mut doing: Box<Doing>) {
        if self.0.len() < Self::MOST {
            (doing.looked, doing.is_used) = Default::default();
            doing.pieces.clear();
            self.0.push(doing);
        }
    }
}

/// Room for candidates for the slowest operations beyond those that are asked for.
const CANDIDATES: usize = 64;

impl Kinds {
    pub(super) fn add(&mut self, other: &Self) {
        let add = |own: &mut [u64; 2], more: &[u64; 2]| {
            own.iter_mut().zip(more).for_each(|(own, more)| *own = own.saturating_add(*more));
        };
        add(&mut self.read, &other.read);
        add(&mut self.write, &other.write);
    }
}

impl Files {
    pub(super) fn new() -> Self {
        Self {
            names: Interner::default(),
            tables: Vec::new(),
            owners: HashMap::default(),
            threads: Vec::new(),
            places: Slots::default(),
            named: Vec::new(),
            others: HashMap::default(),
            spare: Spare::default(),
        }
    }

    /// Whether its numbers point into its tables.
    pub(super) fn fits(&self) -> bool {
        let is_named = |name: NameId| name == NameId::OTHER || (name.0 as usize) < self.names.count();
        let is_table = |table: u32| (table as usize) < self.tables.len();
        let is_unknown = |file: &FileKey| matches!(file, FileKey::Named(name) if !is_named(*name));
        let looked = self.threads.iter().filter_map(|current| current.doing.as_ref()).flat_map(|doing| &doing.looked);
        self.places.all().all(|(_, place)| (place as usize) < self.threads.len())
            && self.owners.values().all(|table| is_table(*table))
            && self.threads.iter().all(|current| current.table.is_none_or(is_table))
            && self.tables.iter().flat_map(HashMap::values).all(|file| is_named(file.name))
            && !looked.flatten().any(|looked| is_unknown(&looked.0))
    }

    /// What was done is forgotten, what fds are is not.
    pub(super) fn forget(&mut self) {
        self.named.clear();
        self.others.clear();
        for current in &mut self.threads {
            current.is_going_on = false;
            current.doing.iter_mut().for_each(|doing| doing.pieces.clear());
        }
    }

    /// What was done with each file.
    pub(super) fn rows(&self) -> impl Iterator<Item = (FileKey, &Sums)> {
        let named = self.named.iter().enumerate().filter(|(_, sums)| **sums != Sums::default());
        let named = named.map(|(name, sums)| (FileKey::Named(NameId(name as u32)), sums));
        named.chain(self.others.iter().map(|(file, sums)| (*file, sums)))
    }

    #[inline]
    fn row(&mut self, file: FileKey) -> &mut Sums {
        match file {
            FileKey::Named(name) if name != NameId::OTHER => {
                let name = name.0 as usize;
                if self.named.len() <= name {
                    self.named.resize(name + 1, Sums::default());
                }
                &mut self.named[name]
            }
            file => self.others.entry(file).or_default(),
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

    /// Does again what was logged; in the order of places.
    pub(super) fn replay(&mut self, limits: &Limits, over: &mut Over, logged: Logged) {
        let Logged { key, place, act } = logged;
        let is_wanted = limits.tids.is_empty() || limits.tids.contains(&i64::from(key.tid));
        let asked = self.place(key);
        match act {
            Act::Use(target, used) => {
                let (file, kind) = self.target(asked, target);
                if is_wanted {
                    self.row(file).count(used);
                    self.count(asked, place, kind, used);
                }
            }
            Act::Slow(target, slow) => {
                if is_wanted {
                    self.slow(limits, asked, place, target, *slow);
                }
            }
            Act::Over(whole) => self.take(&whole, place, over),
            act => self.change(asked, act, is_wanted),
        }
    }

    /// A life is over: what its thread used meanwhile was its.
    fn take(&mut self, whole: &Whole, until: Place, over: &mut Over) {
        let mut kinds = Kinds::default();
        let asked = self.place(whole.who.key);
        let Current { is_going_on, doing: known, .. } = &mut self.threads[asked.1 as usize];
        if let Some(mut doing) = known.take() {
            let is_its = |piece: &mut Piece| whole.since <= Some(piece.since) && piece.since < until;
            for piece in doing.pieces.extract_if(.., is_its) {
                kinds.add(&piece.kinds);
                for (slow, file) in piece.slow.into_iter().filter(|_| whole.is_wanted) {
                    over.slow.push(slow.ns, || SlowUse { slow, file, who: whole.who });
                }
            }
            *is_going_on &= !doing.pieces.is_empty();
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
            pieces.push(Piece { since: place, kinds: Kinds::default(), slow: Vec::new() });
        }
        pieces.last_mut().expect("one goes on")
    }

    fn count(&mut self, asked: Asked, place: Place, kind: Kind, used: Use) {
        if used.bytes == 0 || kind == Kind::Unknown {
            return;
        }
        let Kinds { read, write } = &mut self.piece(asked, place).kinds;
        let bytes = if used.category == Category::Read { &mut read[kind as usize] } else { &mut write[kind as usize] };
        *bytes = bytes.saturating_add(used.bytes);
    }

    fn slow(&mut self, limits: &Limits, asked: Asked, place: Place, target: Target, slow: Slow) {
        let file = match (&slow.path, target) {
            (Some(path), _) => Some(FileKey::Named(self.names.intern(path))),
            (None, Target::None) => None,
            (None, target) => Some(self.target(asked, target).0),
        };
        let all = &mut self.piece(asked, place).slow;
        all.push((slow, file));
        if all.len() > limits.slow.saturating_add(CANDIDATES) {
            all.sort_unstable_by(|one, other| other.0.ns.cmp(&one.0.ns).then_with(|| one.cmp(other)));
            all.truncate(limits.slow);
        }
    }

    fn set(&mut self, asked: Asked, fd: i32, name: NameId, kind: Kind, closes_on_exec: bool) {
        self.table(asked).insert(fd, File { name, kind, closes_on_exec });
    }

    fn unset(&mut self, asked: Asked, fd: i32) {
        self.table(asked).remove(&fd);
    }

    fn change(&mut self, asked: Asked, act: Act, is_wanted: bool) {
        let key = asked.0;
        match act {
            Act::Look(fd, other_fd) => {
                let looked = [fd, other_fd].map(|fd| fd.map(|fd| self.look(asked, fd)));
                let doing = &mut self.threads[asked.1 as usize].doing;
                let doing = doing.get_or_insert_with(|| self.spare.take());
                (doing.looked, doing.is_used) = (looked, false);
            }
            Act::Open { path, fd, is_error, closes_on_exec, counts } => {
                let name = self.names.intern(&path);
                if is_wanted && counts {
                    let opened = Use { bytes: 0, category: Category::Open, is_error, is_second: false };
                    self.row(FileKey::Named(name)).count(opened);
                }
                if let Some(fd) = fd {
                    self.set(asked, fd, name, Kind::Disk, closes_on_exec);
                }
            }
            Act::Make { fd, is_socket, is_net, closes_on_exec } => {
                let name = self.names.intern(if is_socket { b"socket" } else { b"pipe" });
                self.set(asked, fd, name, if is_net { Kind::Net } else { Kind::Unknown }, closes_on_exec);
            }
            Act::Derive { from, fd, is_socket, closes_on_exec } => {
                self.derive(asked, from, fd, is_socket, closes_on_exec);
            }
            Act::Close(fd) => self.unset(asked, fd),
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
                let kind = if path.starts_with(b"/") { Kind::Disk } else { Kind::Unknown };
                let file = File { name: self.names.intern(&path), kind, closes_on_exec: false };
                let table = self.table_of(Owner::Process(key.host, pid));
                self.tables[table as usize].insert(fd, file);
            }
            Act::Count(_) => {}
            Act::Use(..) | Act::Slow(..) | Act::Over(..) => unreachable!("these change nothing"),
        }
    }

    fn derive(&mut self, asked: Asked, from: i32, fd: i32, is_socket: bool, closes_on_exec: bool) {
        let file = self.file(asked, from);
        if is_socket {
            let name = self.names.intern(b"socket");
            self.set(asked, fd, name, file.map_or(Kind::Unknown, |file| file.kind), closes_on_exec);
            return;
        }
        match file {
            Some(file) => self.set(asked, fd, file.name, file.kind, closes_on_exec),
            None => self.unset(asked, fd),
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
        // The fds of whoever had the number before, if nobody knew of which process that was.
        let own = self.owners.get(&Owner::Thread(key)).copied();
        own.into_iter().for_each(|own| self.tables[own as usize].clear());
        if let (Some(pid), Some(parent_pid)) = (pid, parent_pid)
            && pid != parent_pid
        {
            let table = self.table_of(Owner::Process(key.host, parent_pid));
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
            for (fd, file) in own {
                table.entry(fd).or_insert(file);
            }
        }
    }

    /// What comes from now on may be of another life.
    fn over(&mut self, asked: Asked) {
        self.current(asked).is_going_on = false;
    }
}
