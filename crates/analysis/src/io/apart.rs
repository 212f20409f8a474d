//! What acts come to while it is not known what fds were before them: most are of fds that were made meanwhile.
//!
//! ```text
//! 7 opens 3 │ 7 reads 3 │ 9 reads 4 │ 7 closes 3 │ 9 closes 4        of 7 and 9 it is known which process they are of
//!   counted     counted     left over                ──> at the end: 3 and 4 are nothing now
//! ```
//!
//! An fd that was not changed yet is unknown; what is done with it is left over, to be replayed when what was before is known.
//! Others are as known here, whatever they were before: only the last of their changes is told, at the end or before something
//! is left over that sees it. The tables of processes alone are known: threads whose process nobody knows are left over.

use hashbrown::HashMap;

use super::acts::{Act, Slow, Target, Use, Whole};
use super::file_rows::FileRows;
use super::files::{File, FileKey, Kind, Kinds, Looked, Owner, Piece};
use super::log::Logged;
use super::ops::Category;
use super::over::Over;
use super::pids::Pids;
use super::rows::Limits;
use crate::Wishes;
use crate::calls::Place;
use crate::threads::{Slots, ThreadKey};

/// Acts that follow each other, done as far as that is possible.
#[derive(Debug)]
pub(super) struct Apart<'a> {
    limits: &'a Limits,
    pids: Pids,
    /// Those that were seen, and memory of others.
    threads: Vec<Current>,
    /// How many were seen.
    seen: u32,
    places: Slots,
    tables: Vec<Table>,
    owners: HashMap<Process, u32>,
    done: Done,
}

/// Memory for what is done apart: pages that were written to once are there.
#[derive(Debug, Default)]
pub(super) struct Memory {
    threads: Vec<Current>,
    places: Slots,
    left: Vec<Left>,
}

/// What came of acts.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) rows: FileRows,
    pub(super) over: Over,
    /// In the order of places.
    pub(super) left: Vec<Left>,
    threads: Vec<Current>,
    places: Slots,
}

impl Done {
    /// Its memory, when all was taken.
    pub(super) fn memory(self) -> Memory {
        let Self { threads, mut places, mut left, .. } = self;
        places.clear();
        left.clear();
        Memory { threads, places, left }
    }
}

/// Something that has to be done when it is known what was before.
#[derive(Debug)]
pub(super) enum Left {
    /// An act.
    Act(Logged),
    /// What a thread used of files that are known; and whether its life was over then.
    Used(ThreadKey, Piece, bool),
    /// What an fd is now.
    Set(Owner, i32, Option<File>),
    /// What the fds of a call that a thread is in were when it was entered.
    Looked(ThreadKey, Looked),
    /// It was done after all.
    Nothing,
}

/// A process of a machine.
type Process = (u16, i32);

/// What is known of the fds of a process.
#[derive(Debug)]
struct Table {
    process: Process,
    /// Those that were changed; nothing: it is none now.
    fds: HashMap<i32, Option<File>>,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Current {
    pid: Option<i32>,
    /// The table of its process, once that was asked for.
    table: Option<u32>,
    /// If its call was entered here, and its fds were known.
    looked: Option<Looked>,
    /// The call has ended.
    is_used: bool,
    /// What it uses, among what is left.
    piece: Option<u32>,
    /// All that it used since it was born.
    pieces: Vec<u32>,
    /// When it was born, if that was here.
    born: Option<Place>,
    /// Since then something of it was left over.
    is_left: bool,
}

impl Current {
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
    /// Before the first act; with what process each thread is of then.
    pub(super) fn new(limits: &'a Limits, wishes: &Wishes, pids: Pids, memory: Memory) -> Self {
        let Memory { threads, places, left } = memory;
        let over = Over::new(wishes, limits.slow);
        let done = Done { rows: FileRows::default(), over, left, threads: Vec::new(), places: Slots::default() };
        let (tables, owners) = Default::default();
        Self { limits, pids, threads, seen: 0, places, tables, owners, done }
    }

    /// The next act, in the order of places; it may be taken.
    #[inline]
    pub(super) fn act(&mut self, logged: &mut Logged) {
        if !self.does(logged) {
            let Logged { place, key, ref mut act } = *logged;
            let act = std::mem::replace(act, Act::Died);
            self.done.left.push(Left::Act(Logged { place, key, act }));
        }
    }

    /// What came of it.
    pub(super) fn end(mut self) -> Done {
        for table in 0..self.tables.len() {
            self.tell_all(table);
        }
        for (key, place) in self.places.all() {
            let Current { looked, is_used, .. } = &self.threads[place as usize];
            if let Some(looked) = looked.filter(|_| !is_used) {
                self.done.left.push(Left::Looked(key, looked));
            }
        }
        Done { threads: self.threads, places: self.places, ..self.done }
    }

    /// Does an act, or says that it has to be left over.
    fn does(&mut self, logged: &mut Logged) -> bool {
        let Logged { key, place, ref mut act } = *logged;
        let asked = self.place(key);
        match act {
            Act::Count(_) => true,
            Act::Use(target, used) => self.uses(asked, place, *target, *used),
            Act::Slow(target, slow) => self.slow(asked, place, *target, slow),
            Act::Look(fd, other_fd) => self.look(asked, [*fd, *other_fd]),
            Act::Over(whole) => self.take(asked, place, whole),
            Act::Died => self.died(asked),
            Act::Fork(pid, parent_pid, parent) => {
                self.fork(asked, place, (*pid, *parent_pid, *parent));
                false
            }
            Act::Known(pid) => !self.known(asked, *pid),
            Act::Said(tid, pid) => {
                let said = self.place(ThreadKey { tid: *tid, ..key });
                !self.known(said, *pid)
            }
            Act::FileState { pid, fd, path } => {
                let file = File::stated(&mut self.done.rows.names, path);
                let table = self.table_of((key.host, *pid));
                self.tables[table as usize].fds.insert(*fd, Some(file));
                true
            }
            Act::Open { .. } | Act::Make { .. } | Act::Derive { .. } | Act::Close(_) | Act::Exec => {
                self.table(asked).is_some_and(|table| self.changes(key, table, act))
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
                None => threads.push(Current { pid, ..Current::default() }),
            }
            place
        });
        (key, place as usize)
    }

    fn table_of(&mut self, process: Process) -> u32 {
        let tables = &mut self.tables;
        *self.owners.entry(process).or_insert_with(|| {
            tables.push(Table { process, fds: HashMap::default() });
            (tables.len() - 1) as u32
        })
    }

    /// The table of a thread, if its process is known.
    #[inline]
    fn table(&mut self, (key, place): Asked) -> Option<usize> {
        let Current { pid, table, .. } = self.threads[place];
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

    /// What an fd is, if it is known.
    #[inline]
    fn file(&mut self, asked: Asked, fd: i32) -> Option<(FileKey, Kind)> {
        let table = self.table(asked)?;
        let Table { process: (host, pid), fds } = &self.tables[table];
        Some(match fds.get(&fd)? {
            Some(file) => (FileKey::Named(file.name), file.kind),
            None => (FileKey::Fd(Owner::Process(*host, *pid), fd), Kind::Unknown),
        })
    }

    fn target(&mut self, asked: Asked, target: Target) -> Option<(FileKey, Kind)> {
        match target {
            Target::Fd(fd) => self.file(asked, fd),
            Target::Looked { is_other } => {
                let Current { looked, is_used, .. } = &mut self.threads[asked.1];
                let looked = looked.as_ref()?;
                *is_used = true;
                Some(looked[usize::from(is_other)].unwrap_or((FileKey::None, Kind::Unknown)))
            }
            Target::None => Some((FileKey::None, Kind::Unknown)),
        }
    }

    fn uses(&mut self, asked: Asked, place: Place, target: Target, used: Use) -> bool {
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

    fn slow(&mut self, asked: Asked, place: Place, target: Target, slow: &mut Slow) -> bool {
        if !self.limits.wants(asked.0.tid) {
            return true;
        }
        let file = match (&slow.path, target) {
            (Some(path), _) => Some(FileKey::Named(self.done.rows.names.intern(path))),
            (None, Target::None) => None,
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

    /// What a thread uses.
    fn piece(&mut self, (key, place): Asked, since: Place) -> &mut Piece {
        let left = &mut self.done.left;
        let Current { piece, pieces, .. } = &mut self.threads[place];
        let at = *piece.get_or_insert_with(|| {
            left.push(Left::Used(key, Piece::new(since), false));
            pieces.push((left.len() - 1) as u32);
            (left.len() - 1) as u32
        });
        match &mut left[at as usize] {
            Left::Used(_, piece, _) => piece,
            _ => unreachable!("a place of what is used is forgotten with it"),
        }
    }

    fn look(&mut self, asked: Asked, fds: [Option<i32>; 2]) -> bool {
        let known = fds.map(|fd| fd.map(|fd| self.file(asked, fd)));
        let is_known = known.iter().flatten().all(Option::is_some);
        if !is_known && let Some(table) = self.table(asked) {
            // The other one is looked up at the same place.
            fds.into_iter().flatten().for_each(|fd| self.tell(table, fd));
        }
        let current = &mut self.threads[asked.1];
        (current.looked, current.is_used) = (is_known.then(|| known.map(Option::flatten)), false);
        is_known
    }

    /// Says what an fd is here, if it is known.
    fn tell(&mut self, table: usize, fd: i32) {
        let Table { process: (host, pid), fds } = &self.tables[table];
        if let Some(file) = fds.get(&fd) {
            self.done.left.push(Left::Set(Owner::Process(*host, *pid), fd, *file));
        }
    }

    /// The same of all of a table.
    fn tell_all(&mut self, table: usize) {
        let Table { process: (host, pid), fds } = &self.tables[table];
        let owner = Owner::Process(*host, *pid);
        self.done.left.extend(fds.iter().map(|(fd, file)| Left::Set(owner, *fd, *file)));
    }

    /// A thread changes what fds are.
    fn changes(&mut self, key: ThreadKey, table: usize, act: &Act) -> bool {
        let Self { limits, done: Done { rows, .. }, tables, .. } = self;
        let fds = &mut tables[table].fds;
        match act {
            Act::Open { path, fd, is_error, closes_on_exec, counts } => {
                let name = rows.names.intern(path);
                if *counts && limits.wants(key.tid) {
                    rows.of(FileKey::Named(name)).count(Use::open(*is_error));
                }
                if let Some(fd) = fd {
                    fds.insert(*fd, Some(File { name, kind: Kind::Disk, closes_on_exec: *closes_on_exec }));
                }
            }
            Act::Make { fd, is_socket, is_net, closes_on_exec } => {
                fds.insert(*fd, Some(File::made(&mut rows.names, *is_socket, *is_net, *closes_on_exec)));
            }
            Act::Derive { from, fd, is_socket, closes_on_exec } => match fds.get(from).copied() {
                Some(file) => {
                    let file = File::derived(&mut rows.names, file, *is_socket, *closes_on_exec);
                    fds.insert(*fd, file);
                }
                None => {
                    fds.remove(fd);
                    return false;
                }
            },
            Act::Close(fd) => {
                fds.insert(*fd, None);
            }
            Act::Exec => {
                fds.values_mut()
                    .filter(|file| file.is_some_and(|file| file.closes_on_exec))
                    .for_each(|file| *file = None);
                // Fds that nobody changed here may be given up too.
                return false;
            }
            _ => unreachable!("these change no fds"),
        }
        true
    }

    /// A thread is made: its process, that of who made it, and who that is.
    fn fork(
        &mut self,
        asked: Asked,
        place: Place,
        (pid, parent_pid, parent): (Option<i32>, Option<i32>, Option<ThreadKey>),
    ) {
        if let (Some(parent), Some(pid)) = (parent, parent_pid) {
            let parent = self.place(parent);
            self.known(parent, pid);
        }
        let current = &mut self.threads[asked.1];
        (current.pid, current.table, current.piece) = (pid, None, None);
        (current.born, current.is_left) = (Some(place), false);
        current.pieces.clear();
        if let (Some(pid), Some(parent_pid)) = (pid, parent_pid)
            && pid != parent_pid
        {
            // What is not known is copied where it is known.
            let host = asked.0.host;
            let (from, to) = (self.table_of((host, parent_pid)), self.table_of((host, pid)));
            self.tables[to as usize].fds = self.tables[from as usize].fds.clone();
        }
    }

    /// A thread's process becomes known; whether it was not.
    fn known(&mut self, (key, place): Asked, pid: i32) -> bool {
        let current = &mut self.threads[place];
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

    /// What comes from now on may be of another life.
    fn died(&mut self, (_, place): Asked) -> bool {
        let Current { piece, born, is_left, .. } = &mut self.threads[place];
        let is_here = born.is_some() && !*is_left;
        if let Some(piece) = piece.take()
            && let Left::Used(_, _, is_over) = &mut self.done.left[piece as usize]
        {
            *is_over |= is_here;
        }
        is_here
    }

    /// A life is over. One that was all here is done with.
    fn take(&mut self, (_, place): Asked, until: Place, whole: &Whole) -> bool {
        let Current { piece: current, pieces, born, is_left, .. } = &mut self.threads[place];
        let left = &mut self.done.left;
        let is_here = born.is_some_and(|born| whole.since.is_some_and(|since| born <= since)) && !*is_left;
        let its = |left: &Left| match left {
            Left::Used(_, piece, _) if whole.since <= Some(piece.since) && piece.since < until => {
                Some((piece.kinds, piece.slow.is_empty()))
            }
            _ => None,
        };
        if !is_here || pieces.iter().filter_map(|at| its(&left[*at as usize])).any(|(_, is_quick)| !is_quick) {
            // What it uses from now on is not of this life.
            (*current, *is_left) = (None, true);
            return false;
        }
        let mut kinds = Kinds::default();
        pieces.retain(|at| {
            let Some((used, _)) = its(&left[*at as usize]) else { return true };
            kinds.add(&used);
            left[*at as usize] = Left::Nothing;
            *current = current.filter(|current| current != at);
            false
        });
        if whole.is_wanted {
            self.done.over.take(whole, &kinds);
        }
        true
    }
}

impl Kinds {
    /// Counts bytes of an operation on a file.
    #[inline]
    pub(super) fn count(&mut self, kind: Kind, used: Use) {
        let Self { read, write } = self;
        let bytes = if used.category == Category::Read { &mut read[kind as usize] } else { &mut write[kind as usize] };
        *bytes = bytes.saturating_add(used.bytes);
    }
}

#[cfg(test)]
mod tests;
