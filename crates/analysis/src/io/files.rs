//! What fds are, in the order of time; and so what was read from which file.

use std::hash::{Hash, Hasher};

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::log::Logged;
use super::ops::Category;
use super::over::{Over, SlowUse};
use super::rows::{Act, Limits, Slow, Sums, Target, Use, Whole};
use crate::calls::Place;
use crate::names::{Interner, NameId};
use crate::threads::ThreadKey;

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
    /// What comes is of the last piece.
    is_going_on: bool,
    doing: Option<Box<Doing>>,
}

/// What a thread does that lives.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Doing {
    /// What the fds of the call that it is in were when it was entered.
    looked: [Option<(FileKey, Kind)>; 2],
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
    tables: HashMap<Owner, HashMap<i32, File>>,
    threads: HashMap<ThreadKey, Current>,
    pub(super) rows: HashMap<FileKey, Sums>,
    /// Memory of threads that live no more.
    #[serde(skip)]
    spare: Spare,
}

/// Memory, the last one used on top: it is still in the cache.
#[derive(Debug, Default)]
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
            doing.looked = Default::default();
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
            tables: HashMap::default(),
            threads: HashMap::default(),
            rows: HashMap::default(),
            spare: Spare::default(),
        }
    }

    /// Does again what was logged; in the order of places.
    pub(super) fn replay(&mut self, limits: &Limits, over: &mut Over, logged: Logged) {
        let Logged { key, place, act } = logged;
        let is_wanted = limits.tids.is_empty() || limits.tids.contains(&i64::from(key.tid));
        match act {
            Act::Use(target, used) => {
                let (file, kind) = self.target(key, target);
                if is_wanted {
                    self.rows.entry(file).or_default().add(&used.sums());
                    self.count(key, place, kind, used);
                }
            }
            Act::Slow(target, slow) => {
                if is_wanted {
                    self.slow(limits, key, place, target, *slow);
                }
            }
            Act::Over(whole) => self.take(&whole, place, over),
            act => self.change(key, act, is_wanted),
        }
    }

    /// A life is over: what its thread used meanwhile was its.
    fn take(&mut self, whole: &Whole, until: Place, over: &mut Over) {
        let mut kinds = Kinds::default();
        let current = self.threads.get_mut(&whole.who.key);
        if let Some(Current { is_going_on, doing: known @ Some(_), .. }) = current
            && let Some(mut doing) = known.take()
        {
            let is_its = |piece: &mut Piece| whole.since <= Some(piece.since) && piece.since < until;
            for piece in doing.pieces.extract_if(.., is_its) {
                kinds.add(&piece.kinds);
                for (slow, file) in piece.slow.into_iter().filter(|_| whole.is_wanted) {
                    over.slow.push(slow.ns, || SlowUse { slow, file, who: whole.who });
                }
            }
            *is_going_on &= !doing.pieces.is_empty();
            match doing.pieces.is_empty() && doing.looked == [None, None] {
                true => self.spare.keep(doing),
                false => *known = Some(doing),
            }
        }
        if whole.is_wanted {
            over.take(whole, &kinds);
        }
    }

    fn owner(&self, key: ThreadKey) -> Owner {
        let pid = self.threads.get(&key).and_then(|current| current.pid);
        pid.map_or(Owner::Thread(key), |pid| Owner::Process(key.host, pid))
    }

    fn file(&self, key: ThreadKey, fd: i32) -> Option<File> {
        self.tables.get(&self.owner(key)).and_then(|table| table.get(&fd)).copied()
    }

    fn look(&self, key: ThreadKey, fd: i32) -> (FileKey, Kind) {
        let unnamed = || (FileKey::Fd(self.owner(key), fd), Kind::Unknown);
        self.file(key, fd).map_or_else(unnamed, |file| (FileKey::Named(file.name), file.kind))
    }

    fn target(&self, key: ThreadKey, target: Target) -> (FileKey, Kind) {
        match target {
            Target::Fd(fd) => self.look(key, fd),
            Target::Looked { is_other } => {
                let doing = self.threads.get(&key).and_then(|current| current.doing.as_ref());
                let looked = doing.and_then(|doing| doing.looked[usize::from(is_other)]);
                looked.unwrap_or((FileKey::None, Kind::Unknown))
            }
            Target::None => (FileKey::None, Kind::Unknown),
        }
    }

    fn piece(&mut self, key: ThreadKey, place: Place) -> &mut Piece {
        let Current { is_going_on, doing, .. } = self.threads.entry(key).or_default();
        let pieces = &mut doing.get_or_insert_with(|| self.spare.take()).pieces;
        if !std::mem::replace(is_going_on, true) {
            pieces.push(Piece { since: place, kinds: Kinds::default(), slow: Vec::new() });
        }
        pieces.last_mut().expect("one goes on")
    }

    fn count(&mut self, key: ThreadKey, place: Place, kind: Kind, used: Use) {
        if used.bytes == 0 || kind == Kind::Unknown {
            return;
        }
        let Kinds { read, write } = &mut self.piece(key, place).kinds;
        let bytes = if used.category == Category::Read { &mut read[kind as usize] } else { &mut write[kind as usize] };
        *bytes = bytes.saturating_add(used.bytes);
    }

    fn slow(&mut self, limits: &Limits, key: ThreadKey, place: Place, target: Target, slow: Slow) {
        let file = match (&slow.path, target) {
            (Some(path), _) => Some(FileKey::Named(self.names.intern(path))),
            (None, Target::None) => None,
            (None, target) => Some(self.target(key, target).0),
        };
        let all = &mut self.piece(key, place).slow;
        all.push((slow, file));
        if all.len() > limits.slow.saturating_add(CANDIDATES) {
            all.sort_unstable_by(|one, other| other.0.ns.cmp(&one.0.ns).then_with(|| one.cmp(other)));
            all.truncate(limits.slow);
        }
    }

    fn set(&mut self, key: ThreadKey, fd: i32, name: NameId, kind: Kind, closes_on_exec: bool) {
        let owner = self.owner(key);
        self.tables.entry(owner).or_default().insert(fd, File { name, kind, closes_on_exec });
    }

    fn unset(&mut self, key: ThreadKey, fd: i32) {
        let owner = self.owner(key);
        if let Some(table) = self.tables.get_mut(&owner) {
            table.remove(&fd);
        }
    }

    fn change(&mut self, key: ThreadKey, act: Act, is_wanted: bool) {
        match act {
            Act::Look(fd, other_fd) => {
                let looked = [fd, other_fd].map(|fd| fd.map(|fd| self.look(key, fd)));
                let doing = &mut self.threads.entry(key).or_default().doing;
                doing.get_or_insert_with(|| self.spare.take()).looked = looked;
            }
            Act::Open { path, fd, is_error, closes_on_exec } => {
                let name = self.names.intern(&path);
                if is_wanted {
                    let sums = Sums { opens: 1, errors: u64::from(is_error), ..Sums::default() };
                    self.rows.entry(FileKey::Named(name)).or_default().add(&sums);
                }
                if let Some(fd) = fd {
                    self.set(key, fd, name, Kind::Disk, closes_on_exec);
                }
            }
            Act::Make { fd, is_socket, is_net, closes_on_exec } => {
                let name = self.names.intern(if is_socket { b"socket" } else { b"pipe" });
                self.set(key, fd, name, if is_net { Kind::Net } else { Kind::Unknown }, closes_on_exec);
            }
            Act::Derive { from, fd, is_socket, closes_on_exec } => {
                self.derive(key, from, fd, is_socket, closes_on_exec);
            }
            Act::Close(fd) => self.unset(key, fd),
            Act::Exec => {
                let owner = self.owner(key);
                if let Some(table) = self.tables.get_mut(&owner) {
                    table.retain(|_, file| !file.closes_on_exec);
                }
            }
            Act::Fork(pid, parent_pid, parent) => self.fork(key, pid, parent_pid, parent),
            Act::Known(pid) => self.known(key, pid),
            Act::Said(tid, pid) => self.known(ThreadKey { tid, ..key }, pid),
            Act::Died => self.over(key),
            Act::FileState { pid, fd, path } => {
                let kind = if path.starts_with(b"/") { Kind::Disk } else { Kind::Unknown };
                let file = File { name: self.names.intern(&path), kind, closes_on_exec: false };
                self.tables.entry(Owner::Process(key.host, pid)).or_default().insert(fd, file);
            }
            Act::Use(..) | Act::Slow(..) | Act::Over(..) => unreachable!("these change nothing"),
        }
    }

    fn derive(&mut self, key: ThreadKey, from: i32, fd: i32, is_socket: bool, closes_on_exec: bool) {
        let file = self.file(key, from);
        if is_socket {
            let name = self.names.intern(b"socket");
            self.set(key, fd, name, file.map_or(Kind::Unknown, |file| file.kind), closes_on_exec);
            return;
        }
        let owner = self.owner(key);
        match file {
            Some(file) => {
                self.tables.entry(owner).or_default().insert(fd, File { closes_on_exec, ..file });
            }
            None => self.unset(key, fd),
        }
    }

    /// A thread is made.
    fn fork(&mut self, key: ThreadKey, pid: Option<i32>, parent_pid: Option<i32>, parent: Option<ThreadKey>) {
        if let (Some(parent), Some(pid)) = (parent, parent_pid) {
            self.known(parent, pid);
        }
        self.over(key);
        self.tables.remove(&Owner::Thread(key));
        let current = self.threads.entry(key).or_default();
        current.pid = pid;
        current.doing.iter_mut().for_each(|doing| doing.looked = Default::default());
        if let (Some(pid), Some(parent_pid)) = (pid, parent_pid)
            && pid != parent_pid
        {
            let table = self.tables.get(&Owner::Process(key.host, parent_pid)).cloned().unwrap_or_default();
            self.tables.insert(Owner::Process(key.host, pid), table);
        }
    }

    /// A thread's process becomes known: its fds are that one's.
    fn known(&mut self, key: ThreadKey, pid: i32) {
        let current = self.threads.entry(key).or_default();
        if current.pid == Some(pid) {
            return;
        }
        current.pid = Some(pid);
        if let Some(own) = self.tables.remove(&Owner::Thread(key)) {
            let table = self.tables.entry(Owner::Process(key.host, pid)).or_default();
            for (fd, file) in own {
                table.entry(fd).or_insert(file);
            }
        }
    }

    /// What comes from now on may be of another life.
    fn over(&mut self, key: ThreadKey) {
        if let Some(current) = self.threads.get_mut(&key) {
            current.is_going_on = false;
            current.doing.iter_mut().for_each(|doing| doing.looked = Default::default());
        }
    }
}
