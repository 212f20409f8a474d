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

use super::acts::{Act, Target, Whole};
use super::file::{File, FileKey, Kind, Looked, Owner};
use super::file_rows::FileRows;
use super::log::{From, Logged};
use super::over::Over;
use super::pids::Pids;
use super::sums::{Kinds, Limits, Piece, Slow, Use};
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
    mode: Mode,
    /// The last thread that acted where the part should have known it, and where; until the part
    /// says that it does not.
    told_since: Option<(ThreadKey, Place)>,
    /// Alone, the tables that may know an fd.
    knowing: HashMap<i32, Vec<u32>>,
}

/// The known facts about threads besides those of acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Everything.
    Whole,
    /// Nothing; from this place on, all acts are here.
    Alone(Place),
    /// Everything, and the acts that are left over were done alone from this place on.
    Again(Place),
}

/// Memory for doing acts apart: pages that were written to once are there.
#[derive(Debug, Default)]
pub(super) struct Memory {
    threads: Vec<Current>,
    places: Slots,
    left: Vec<Left>,
}

/// The results of acts.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) rows: FileRows,
    pub(super) over: Over,
    /// In the order of places.
    pub(super) left: Vec<Left>,
    threads: Vec<Current>,
    places: Slots,
    /// The results of doing it alone were wrong.
    pub(super) is_odd: bool,
}

impl Done {
    /// Takes the remains of lives that are over.
    pub(super) fn take_over(&mut self) -> Over {
        std::mem::replace(&mut self.over, Over::new(&Wishes::default(), 0))
    }

    /// Its memory, when all was taken.
    pub(super) fn memory(self) -> Memory {
        let Self { threads, mut places, mut left, .. } = self;
        places.clear();
        left.clear();
        Memory { threads, places, left }
    }
}

/// An act that has to be done when the state before is known.
#[derive(Debug)]
pub(super) enum Left {
    /// An act.
    Act(Logged),
    /// A thread's uses of files that are known; and whether its life was over then.
    Used(ThreadKey, Piece, bool),
    /// The file of an fd now.
    Set(Owner, i32, Option<File>),
    /// The files of the fds of a thread's current call when it was entered.
    Looked(ThreadKey, (Place, Looked)),
    /// It was done after all.
    Nothing,
}

impl Done {
    /// The rest as acts, in the order of places; nothing was reported before `since`.
    pub(super) fn acts(&mut self, since: Place) -> impl Iterator<Item = Logged> {
        let mut last = since;
        self.left.drain(..).filter_map(move |left| {
            let logged = match left {
                Left::Act(logged) => logged,
                Left::Used(key, used, is_over) => {
                    Logged { place: used.since, key, act: Act::Used(Box::new(used), is_over) }
                }
                Left::Set(Owner::Process(host, pid), fd, file) => {
                    Logged { place: last, key: ThreadKey { host, tid: 0 }, act: Act::Set(pid, fd, file) }
                }
                Left::Looked(key, (at, looked)) => Logged { place: last, key, act: Act::Looked(at, Box::new(looked)) },
                Left::Set(Owner::Thread(_), ..) | Left::Nothing => return None,
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
struct Table {
    process: Process,
    /// Those that were changed; nothing: it is none now.
    fds: HashMap<i32, Option<File>>,
}

/// The state of a thread.
#[derive(Debug, Default)]
struct Current {
    pid: Option<i32>,
    /// The table of its process, once that was asked for.
    table: Option<u32>,
    /// If its call was entered here, and its fds were known; and where.
    looked: Option<(Place, Looked)>,
    /// The call has ended.
    is_used: bool,
    /// Its uses, among the rest.
    piece: Option<u32>,
    /// All its uses since it was born.
    pieces: Vec<u32>,
    /// When it was born, if that was here.
    born: Option<Place>,
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
    /// Before the first act; with the process of each thread then.
    pub(super) fn new(limits: &'a Limits, wishes: &Wishes, pids: Pids, memory: Memory, mode: Mode) -> Self {
        let Memory { threads, places, left } = memory;
        let (rows, over) = (FileRows::default(), Over::new(wishes, limits.slow));
        let done = Done { rows, over, left, threads: Vec::new(), places: Slots::default(), is_odd: false };
        let (tables, owners, knowing) = Default::default();
        Self { limits, pids, threads, seen: 0, places, tables, owners, done, mode, told_since: None, knowing }
    }

    /// The next act, in the order of places; it may be taken.
    #[inline]
    pub(super) fn act(&mut self, logged: &mut Logged, from: From) {
        let asked = self.place(logged.key);
        let is_done = match self.mode {
            Mode::Whole => self.does(asked, logged, from),
            Mode::Alone(since) => self.does_alone(asked, logged, since),
            Mode::Again(since) => {
                self.check(asked, logged, since, from);
                self.does(asked, logged, from)
            }
        };
        if !is_done {
            let Logged { place, key, ref mut act } = *logged;
            if !matches!(act, Act::Fork(..)) {
                self.threads[asked.1].made_at = None;
            }
            // Moved out of the log without a copy: any act without memory can take its place.
            let act = std::mem::replace(act, Act::Died);
            self.done.left.push(Left::Act(Logged { place, key, act }));
        }
    }

    /// The results.
    pub(super) fn end(mut self) -> Done {
        self.done.is_odd |= self.told_since.is_some();
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

    /// Does an act where the state before is unknown; `false`: the act has to be left over.
    fn does_alone(&mut self, asked: Asked, logged: &mut Logged, since: Place) -> bool {
        let tells = matches!(logged.act, Act::Fork(..) | Act::Known(_) | Act::Said(..) | Act::Died | Act::Over(_));
        if logged.place < since && !tells {
            self.threads[asked.1].is_left = true;
            return false;
        }
        if let Act::Asks { fd, other_fd, is_any } = logged.act {
            self.give_up_some(asked, [fd, other_fd], is_any);
            return false;
        }
        if self.threads[asked.1].pid.is_none() {
            logged.act.fds().into_iter().flatten().for_each(|fd| self.give_up(fd));
            if logged.act == Act::Exec {
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
    fn check(&mut self, asked: Asked, logged: &Logged, since: Place, from: From) {
        let Logged { key, place, ref act } = *logged;
        if from == From::Part {
            // Where the part knew less than is known now, it has an act `Asks` of that thread at
            // that place.
            let is_told = |asked: (ThreadKey, Place)| matches!(act, Act::Asks { .. }) && asked == (key, place);
            self.done.is_odd |= self.told_since.take().is_some_and(|asked| !is_told(asked));
            return;
        }
        if matches!(act, Act::Over(_) | Act::Count(_)) {
            return;
        }
        if place >= since {
            self.done.is_odd |= self.told_since.replace((key, place)).is_some_and(|asked| asked != (key, place));
        }
        let tells = match act {
            Act::Fork(pid, ..) => Some((key, *pid)),
            Act::Known(pid) => Some((key, Some(*pid))),
            Act::Said(tid, pid) => Some((ThreadKey { tid: *tid, ..key }, Some(*pid))),
            _ => None,
        };
        let parent = match act {
            Act::Fork(_, Some(pid), Some(parent)) => Some((*parent, Some(*pid))),
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
            Act::Count(_) | Act::Asks { .. } => true,
            Act::Use(target, used) => self.uses(asked, place, *target, *used),
            Act::Slow(target, slow) => self.slow(asked, place, *target, slow),
            Act::Look(fd, other_fd) => self.look(asked, place, [*fd, *other_fd]),
            Act::Over(whole) => self.take(asked, place, whole),
            Act::Died => self.died(asked),
            // A birth is left over even if it was done here: the state before has to know the
            // thread's process and its fds too.
            Act::Fork(pid, parent_pid, parent) => {
                self.fork(asked, place, (*pid, *parent_pid, *parent), from);
                false
            }
            Act::Known(pid) => !self.known(asked, *pid, from),
            Act::Said(tid, pid) => {
                let said = self.place(ThreadKey { tid: *tid, ..key });
                let is_new = self.known(said, *pid, from);
                self.threads[said.1].made_at = self.threads[said.1].made_at.filter(|_| !is_new);
                !is_new
            }
            Act::FileState { pid, fd, path } => {
                let file = File::stated(&mut self.done.rows.names, path);
                let table = self.table_of((key.host, *pid));
                self.tables[table as usize].fds.insert(*fd, Some(file));
                self.knows(table as usize, *fd);
                true
            }
            Act::Used(_, is_over) => {
                let current = &mut self.threads[asked.1];
                current.is_left = true;
                current.piece = current.piece.filter(|_| !*is_over);
                false
            }
            Act::Set(pid, fd, _) => {
                let table = self.table_of((key.host, *pid));
                self.tables[table as usize].fds.remove(fd);
                false
            }
            Act::Looked(..) => {
                let current = &mut self.threads[asked.1];
                (current.looked, current.is_used) = (None, false);
                false
            }
            Act::Open { .. } | Act::Make { .. } | Act::Derive { .. } | Act::Close(_) | Act::Exec => {
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

    /// A table may know an fd from now on.
    #[inline]
    fn knows(&mut self, table: usize, fd: i32) {
        // In the other modes the processes of all threads are known, and no fd has to be given up.
        if matches!(self.mode, Mode::Alone(_)) {
            self.knowing.entry(fd).or_default().push(table as u32);
        }
    }

    /// The file of an fd, if it is known.
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
                let (_, looked) = looked.as_ref()?;
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

    /// The uses of a thread.
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

    fn look(&mut self, asked: Asked, place: Place, fds: [Option<i32>; 2]) -> bool {
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

    /// A thread changes the files of fds.
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
        place: Place,
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
            self.done.left[made_at as usize] = Left::Nothing;
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
            // Its uses from now on are not of this life.
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

#[cfg(test)]
mod tests;
