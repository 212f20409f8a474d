//! Finds programs: files of their memory in folders of users, also of other users and on other
//! mounts.
//!
//! ```text
//! own folders          /run/user/1000/kymo, /dev/shm/kymo-1000       looked at when something changes there, and each second
//! other users'         /run/user/*/kymo, /dev/shm/kymo-*             each second, by who may
//! other mounts         the same behind /proc/PID/root,               each second, by who may; paths cannot lead out of there
//!                      of one process for each namespace
//! ```
//!
//! The recorder believes nothing that it finds: a folder has to belong to the user that its name
//! says, and a file has to be regular and the folder owner's. The code that opens the file checks
//! its content.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CStr, OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::folder::{own_folder, own_user, shared_folder};
use crate::program::ProgramRefusal;

/// Time between two looks at all places.
const LOOK: Duration = Duration::from_secs(1);
/// Changes of a folder that may be new files.
const CHANGES: WatchFlags = WatchFlags::CREATE.union(WatchFlags::MOVED_TO).union(WatchFlags::ONLYDIR);
/// Folders of other users, or on other mounts, and the time between two looks at them because
/// something changed.
const OTHERS_MAX: usize = 1024;
const OTHERS_LOOK: Duration = Duration::from_millis(10);
/// New files of a folder per look.
const FILES_MAX: usize = 4096;
/// Files that are known at the same time.
const KNOWN_MAX: usize = 1 << 16;

/// A program that cannot be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreachable {
    /// The file of its memory, or the folder.
    pub path: PathBuf,
    /// Its name, if it is visible.
    pub name: Option<String>,
    /// Its PID in the recorder's namespace.
    pub pid: Option<u32>,
    /// Its user.
    pub user: Option<u32>,
    /// Another recorder records it.
    pub is_recorded: bool,
    /// Why, in a sentence.
    pub why: String,
}

/// A file that may be a program's memory.
#[derive(Debug)]
pub struct ProgramFile {
    /// Its path.
    pub path: PathBuf,
    /// Its user.
    pub user: u32,
    /// It is seen through the root of another process.
    pub is_contained: bool,
    /// The tag after the number in its name.
    pub tag: Option<String>,
    /// Identity of the file.
    pub key: ProgramFileId,
    folder: Arc<OwnedFd>,
    name: OsString,
}

impl ProgramFile {
    /// A path that leads to this very file, even when the folders above it change.
    #[must_use]
    pub fn way(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.folder.as_raw_fd().to_string()).join(&self.name)
    }

    /// Deletes the file.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn delete(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())?)
    }
}

/// Device and inode of a file, and the number in its name: several paths may lead to one file, and
/// when it is gone, the next program's file may have its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramFileId(u64, u64, [u8; 16]);

/// Looks for programs.
#[derive(Debug)]
pub struct ProgramFinder {
    own: Vec<PathBuf>,
    watch: Option<OwnedFd>,
    looked: Option<Instant>,
    /// Files that were handed out or that cannot be used: they are not handed out again.
    known: HashSet<ProgramFileId>,
    unreachable: BTreeMap<PathBuf, Unreachable>,
    /// Files that were handed out and could not be used.
    refused: HashMap<ProgramFileId, Unreachable>,
    /// Files that may be usable in a moment, and since when.
    waiting: HashMap<ProgramFileId, Instant>,
    /// Folders of other users, or on other mounts, that the last look at all places found.
    others: Vec<SearchFolder>,
    has_looked: bool,
    /// When they were looked at, and whether a folder has changed since.
    looked_at_others: Option<Instant>,
    has_changed_since: bool,
}

/// A folder where programs may be.
#[derive(Clone, Debug)]
pub(crate) struct SearchFolder {
    pub(crate) path: PathBuf,
    pub(crate) folder: Arc<OwnedFd>,
    /// One of this user's folders, seen as programs see it.
    pub(crate) is_own: bool,
    pub(crate) user: u32,
    is_contained: bool,
}

#[cfg(test)]
impl SearchFolder {
    pub(crate) fn of(path: &Path) -> Self {
        let folder = Arc::new(OwnedFd::from(std::fs::File::open(path).expect("it is there")));
        Self { path: path.to_owned(), folder, is_own: true, user: own_user(), is_contained: false }
    }
}

impl ProgramFinder {
    /// Looks for programs of this user, and of others if this process may.
    #[must_use]
    pub fn new() -> Self {
        let user = own_user();
        let mut own = vec![own_folder(), shared_folder(user), run_folder(user)];
        own.sort();
        own.dedup();
        let (known, unreachable) = (HashSet::new(), BTreeMap::new());
        let (refused, waiting) = (HashMap::new(), HashMap::new());
        let (watch, looked, others, has_looked) = (None, None, Vec::new(), false);
        let (looked_at_others, has_changed_since) = (None, false);
        let mut finder = Self {
            own,
            watch,
            looked,
            known,
            unreachable,
            refused,
            waiting,
            others,
            has_looked,
            looked_at_others,
            has_changed_since,
        };
        finder.watch();
        finder
    }

    /// Watches folders for new files; without a watch, they are found a second later.
    ///
    /// One watch serves the finder's whole life, and folders are added to it again: to close one
    /// may take the kernel most of a second while a program with real-time priority keeps a
    /// processor busy, and programs' pools do not last as long.
    fn watch(&mut self) {
        if self.watch.is_none() {
            self.watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        }
        let Some(watch) = &self.watch else { return };
        for folder in &self.own {
            // The regular look each second finds folders that do not exist yet.
            let _ = inotify::add_watch(watch, folder, CHANGES);
        }
        for place in &self.others {
            let open = format!("/proc/self/fd/{}", place.folder.as_raw_fd());
            let _ = inotify::add_watch(watch, open, CHANGES);
        }
    }

    /// Whether the last look at all places was after the last call of [`folders`](Self::folders).
    pub(crate) fn has_new_folders(&self) -> bool {
        self.has_looked
    }

    fn look_for_folders(&mut self) {
        let (others, contained) = (self.other_places(), self.contained_places());
        self.others = others.into_iter().chain(contained).take(OTHERS_MAX).collect();
        self.watch();
    }

    /// Folders where programs may start: as the last look found them, or as they are now.
    pub(crate) fn folders(&mut self, now: bool) -> Vec<SearchFolder> {
        self.has_looked = false;
        if now {
            self.look_for_folders();
        }
        let mut folders = self.own_places();
        folders.extend(self.others.iter().cloned());
        folders
    }

    /// Makes folders of programs, where there are none: this user's, and root's recorder also those
    /// of all users that have processes.
    pub(crate) fn make_folders(&self) {
        self.own.iter().for_each(|folder| _ = DirBuilder::new().mode(0o700).create(folder));
        if own_user() == 0 {
            users().into_iter().for_each(|user| {
                make_for(&shared_folder(user), user);
                make_for(&run_folder(user), user);
            });
        }
    }

    /// Makes the next look cover all places, whatever the time: a program may have come and gone
    /// where no folder is watched.
    pub fn hurry(&mut self) {
        self.looked = None;
    }

    /// Files that were not handed out before, if it is time to look.
    pub fn look(&mut self) -> Vec<ProgramFile> {
        let is_time = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
        let is_awaited = self.waiting.values().any(|since| since.elapsed() < LOOK);
        let has_changed = self.has_changed();
        self.has_changed_since |= has_changed;
        let is_late = self.has_changed_since && self.looked_at_others.is_none_or(|last| last.elapsed() >= OTHERS_LOOK);
        if !has_changed && !is_time && !is_awaited && !is_late {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut places = self.own_places();
        // Other users can make files without end: their folders are not looked at all the time.
        let with_others = is_time || self.looked_at_others.is_none_or(|last| last.elapsed() >= OTHERS_LOOK);
        if with_others {
            (self.looked_at_others, self.has_changed_since) = (Some(Instant::now()), false);
        }
        if is_time {
            (self.looked, self.has_looked) = (Some(Instant::now()), true);
            self.unreachable.clear();
            self.look_for_folders();
            places.extend(self.others.iter().cloned());
            let mut there = HashSet::new();
            places.into_iter().for_each(|place| self.look_at(place, &mut found, &mut there));
            self.known.retain(|key| there.contains(key));
            self.refused.retain(|key, _| there.contains(key));
            self.waiting.retain(|key, _| there.contains(key));
        } else {
            if with_others {
                places.extend(self.others.iter().cloned());
            }
            places.into_iter().for_each(|place| self.look_at(place, &mut found, &mut HashSet::new()));
        }
        found
    }

    fn has_changed(&self) -> bool {
        let mut events = [0; 4096];
        let Some(watch) = &self.watch else { return false };
        let mut changed = false;
        while rustix::io::read(watch, &mut events).is_ok_and(|read| read > 0) {
            changed = true;
        }
        changed
    }

    /// Reports that a file cannot be used, or not now: then the next look hands it out again.
    pub fn refuse(&mut self, found: &ProgramFile, why: &ProgramRefusal, again: bool) {
        // A recorder that checks whether a process has the file keeps others from opening it for
        // that moment.
        let is_leased = matches!(why, ProgramRefusal::File(error) if error.kind() == io::ErrorKind::WouldBlock);
        let is_recorded = is_leased || matches!(why, ProgramRefusal::Taken);
        let (path, user) = (found.path.clone(), Some(found.user));
        let why = why.to_string();
        self.refused.insert(found.key, Unreachable { path, user, why, is_recorded, ..Unreachable::default() });
        if again {
            self.known.remove(&found.key);
            // A file can be found while its program is still beginning.
            self.waiting.entry(found.key).or_insert_with(Instant::now);
        }
    }

    /// Reports that a file can be used after all.
    pub fn take(&mut self, found: &ProgramFile) {
        self.refused.remove(&found.key);
        self.waiting.remove(&found.key);
    }

    /// Whether another recorder has, or looks at, the memory of a program that was started for a
    /// session.
    pub(crate) fn is_taken(&self, wanted: &str) -> bool {
        let is_its = |refused: &Unreachable| refused.path.file_name().and_then(tag).is_some_and(|tag| tag == wanted);
        self.refused.values().any(|refused| refused.is_recorded && is_its(refused))
    }

    /// Visible programs that cannot be recorded, and why.
    #[must_use]
    pub fn unreachable(&self) -> Vec<Unreachable> {
        self.unreachable.values().chain(self.refused.values()).cloned().collect()
    }

    fn own_places(&mut self) -> Vec<SearchFolder> {
        let user = own_user();
        let own = self.own.clone();
        own.iter().filter_map(|path| self.place(path, path, CWD, user, false)).collect()
    }

    /// Folders of other users on the mounts that this process sees.
    fn other_places(&mut self) -> Vec<SearchFolder> {
        let (own, known) = (own_user(), self.own.clone());
        let named = named_folders(Path::new("/"));
        let others = named.into_iter().filter(|(path, user)| *user != own && !known.contains(path));
        others.filter_map(|(path, user)| self.place(&path, &path, CWD, user, false)).collect()
    }

    /// Folders on mounts that this process does not see.
    fn contained_places(&mut self) -> Vec<SearchFolder> {
        let mut places = Vec::new();
        for pid in strangers() {
            let root = PathBuf::from(format!("/proc/{pid}/root"));
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(opened) = rustix::fs::open(&root, flags, Mode::empty()) else { continue };
            for (path, user) in named_folders(&root) {
                let Ok(inside) = path.strip_prefix(&root) else { continue };
                places.extend(self.place(&path, inside, opened.as_fd(), user, true));
            }
        }
        places
    }

    /// Opens a folder, if it belongs to the right user.
    fn place(
        &mut self,
        path: &Path,
        inside: &Path,
        root: impl AsFd,
        user: u32,
        is_contained: bool,
    ) -> Option<SearchFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = if is_contained {
            // Links inside the other root resolve inside it.
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            rustix::fs::openat2(root, inside, flags, Mode::empty(), resolve)
        } else {
            rustix::fs::openat(root, inside, flags, Mode::empty())
        };
        let why = match opened {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::XDEV) => return None,
            Err(Errno::ACCESS | Errno::PERM) => {
                format!("it belongs to user {user}: only that user and root may record these programs")
            }
            Err(error) => error.to_string(),
            Ok(folder) => match rustix::fs::fstat(&folder) {
                Ok(found) if found.st_uid != user => {
                    format!("it belongs to user {}, not to user {user}: programs do not record there", found.st_uid)
                }
                Ok(found) if found.st_mode & 0o077 != 0 => {
                    let mode = found.st_mode & 0o777;
                    format!("it has mode {mode:03o}, so that others may use it: programs do not record there")
                }
                Ok(_) => {
                    let (path, folder) = (path.to_owned(), Arc::new(folder));
                    let is_own = !is_contained && user == own_user();
                    return Some(SearchFolder { path, folder, is_own, user, is_contained });
                }
                Err(error) => error.to_string(),
            },
        };
        self.cannot(path, Some(user), why);
        None
    }

    fn cannot(&mut self, path: &Path, user: Option<u32>, why: String) {
        self.unreachable
            .insert(path.to_owned(), Unreachable { path: path.to_owned(), user, why, ..Unreachable::default() });
    }

    /// New files of a folder.
    fn look_at(&mut self, place: SearchFolder, found: &mut Vec<ProgramFile>, there: &mut HashSet<ProgramFileId>) {
        let folder = place.folder;
        let Ok(entries) = Dir::read_from(&*folder) else { return };
        let names = entries.filter_map(Result::ok).map(|entry| entry.file_name().to_owned());
        let mut new = 0;
        for name in names.filter(|name| is_memory(name)).take(KNOWN_MAX) {
            let number = std::array::from_fn(|digit| name.to_bytes().get(digit).copied().unwrap_or_default());
            let name = OsStr::from_bytes(name.to_bytes());
            let path = place.path.join(name);
            let Ok(stat) = rustix::fs::statat(&*folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let key = ProgramFileId(stat.st_dev, stat.st_ino, number);
            there.insert(key);
            if self.known.contains(&key) || self.known.len() >= KNOWN_MAX || new >= FILES_MAX {
                continue;
            }
            new += 1;
            self.known.insert(key);
            let (user, is_contained) = (place.user, place.is_contained);
            let (tag, name, folder) = (tag(name), name.to_owned(), Arc::clone(&folder));
            found.push(ProgramFile { path, user, is_contained, tag, key, folder, name });
        }
    }
}

impl Default for ProgramFinder {
    fn default() -> Self {
        Self::new()
    }
}

/// Users of processes.
fn users() -> HashSet<u32> {
    let process = |pid| std::fs::metadata(format!("/proc/{pid}"));
    processes().into_iter().filter_map(|pid| Some(process(pid).ok()?.uid())).collect()
}

/// Makes a folder that belongs to another user.
fn make_for(path: &Path, user: u32) {
    if DirBuilder::new().mode(0o700).create(path).is_err() {
        return;
    }
    // By the open folder: the path may lead to another one by now.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
    let owner = Some(rustix::process::Uid::from_raw(user));
    // Where the user may rename, it may be another folder of root's: only an empty one with the
    // mode of a new one is given away.
    let is_new = |folder: &OwnedFd| {
        let found = rustix::fs::fstat(folder)?;
        let is_ours = found.st_uid == 0 && found.st_mode & 0o7777 == 0o700;
        let is_empty = Dir::read_from(folder)?
            .all(|entry| entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")));
        if is_ours && is_empty { Ok(()) } else { Err(Errno::PERM) }
    };
    let given = opened.and_then(|folder| is_new(&folder).and_then(|()| rustix::fs::fchown(folder, owner, None)));
    if given.is_err() {
        let _ = std::fs::remove_dir(path);
    }
}

fn run_folder(user: u32) -> PathBuf {
    PathBuf::from(format!("/run/user/{user}/kymo"))
}

/// `0123456789abcdef.ctl`, also with a tag after the number: `0123456789abcdef-demo.ctl`.
fn is_memory(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.ends_with(b".ctl") && name.len() >= 20 && name[..16].iter().all(u8::is_ascii_hexdigit)
}

fn tag(name: &OsStr) -> Option<String> {
    let tag = name.to_str()?.get(16..)?.strip_suffix(".ctl")?.strip_prefix('-')?;
    Some(tag.to_owned())
}

/// Folders of users below a root, by their names.
fn named_folders(root: &Path) -> Vec<(PathBuf, u32)> {
    let children = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let name = |path: &Path| path.file_name().and_then(OsStr::to_str).map(str::to_owned);
    // Only as programs write it: else a user could have any number of folders.
    let user = |digits: &str| digits.parse::<u32>().ok().filter(|user| user.to_string() == digits);
    let shared = children("dev/shm").into_iter().filter_map(|path| {
        let user = user(name(&path)?.strip_prefix("kymo-")?)?;
        Some((path, user))
    });
    let run = children("run/user").into_iter().filter_map(|path| {
        let user = user(&name(&path)?)?;
        Some((path.join("kymo"), user))
    });
    shared.chain(run).collect()
}

/// One process for each mount namespace other than this process' own.
fn strangers() -> Vec<u32> {
    let mut known: HashSet<u64> = namespace("self", "mnt").into_iter().collect();
    let mut found = Vec::new();
    for pid in processes() {
        if let Some(inode) = namespace(&pid.to_string(), "mnt")
            && known.insert(inode)
        {
            found.push(pid);
        }
    }
    found
}

/// PIDs of all processes that this one sees.
fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The inode of a process' namespace.
pub(crate) fn namespace(process: &str, kind: &str) -> Option<u64> {
    std::fs::metadata(format!("/proc/{process}/ns/{kind}")).ok().map(|found| found.ino())
}

/// The PID in this process' namespace of a process with the PID `own_pid` in its own namespace;
/// `started` is when it began. `None`: it is gone, or it is not visible.
#[must_use]
pub fn outer_pid(own_pid: u32, namespace_inode: u64, started: u64) -> Option<u32> {
    let is_it = |pid: u32| match start_time(pid) {
        // In another time namespace, time begins elsewhere.
        Some(found) => found == started || namespace("self", "time") != namespace(&pid.to_string(), "time"),
        None => false,
    };
    if namespace_inode == 0 || namespace("self", "pid") == Some(namespace_inode) {
        return is_it(own_pid).then_some(own_pid);
    }
    processes().into_iter().find(|pid| {
        let is_there = namespace(&pid.to_string(), "pid") == Some(namespace_inode);
        is_there && innermost_pid(*pid) == Some(own_pid) && is_it(*pid)
    })
}

/// How far a process' `CLOCK_MONOTONIC` is behind this one's, if that is visible.
pub(crate) fn behind_ns(pid: u32) -> Option<i64> {
    if namespace("self", "time") == namespace(&pid.to_string(), "time") {
        return Some(0);
    }
    let offset = |process: &str| -> Option<i64> {
        let offsets = std::fs::read_to_string(format!("/proc/{process}/timens_offsets")).ok()?;
        let line = offsets.lines().find_map(|line| line.strip_prefix("monotonic"))?;
        let mut numbers = line.split_whitespace().map(str::parse::<i64>);
        let (seconds, nanos) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    };
    Some(offset("self")?.saturating_sub(offset(&pid.to_string())?))
}

/// The PID of a process in its own namespace.
pub(crate) fn innermost_pid(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// When a process began, in the kernel's clock ticks.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain any character but ends with the last parenthesis.
    stat[stat.rfind(')')? + 1..].split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_memory() {
        for (name, is, word) in [
            (c"0123456789abcdef.ctl", true, None),
            (c"0123456789abcdef-demo-1.ctl", true, Some("demo-1")),
            (c"0123456789abcdeg.ctl", false, None),
            (c"recorder.sock", false, None),
            (c"0123456789abcdef.ctl.new", false, None),
        ] {
            assert_eq!(is_memory(name), is, "{name:?}");
            if is {
                assert_eq!(tag(OsStr::from_bytes(name.to_bytes())).as_deref(), word, "{name:?}");
            }
        }
    }

    /// Looks in this folder alone, which is made.
    fn finder_of(folder: &Path) -> ProgramFinder {
        // The regular look at all places does not come due.
        let looked = Some(Instant::now() + Duration::from_secs(3600));
        let mut finder = ProgramFinder { own: vec![folder.to_owned()], looked, ..ProgramFinder::new() };
        finder.watch();
        finder
    }

    fn make_folder(folder: &Path) {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().mode(0o700).create(folder).expect("there is room");
    }

    fn names(found: &[ProgramFile]) -> Vec<&str> {
        found.iter().filter_map(|found| found.path.file_name()?.to_str()).collect()
    }

    #[test]
    fn a_file_that_has_the_inode_of_one_that_is_gone_is_another_program() {
        let place = tempfile::tempdir().expect("there is room");
        let folder = place.path().join("kymo");
        make_folder(&folder);
        let mut finder = finder_of(&folder);
        let [first, second] = ["0123456789abcdef.ctl", "fedcba9876543210.ctl"];
        std::fs::write(folder.join(first), "").expect("there is room");
        assert_eq!(names(&finder.look()), [first]);
        std::fs::rename(folder.join(first), folder.join(second)).expect("it is there");
        assert_eq!(names(&finder.look()), [second]);
        std::fs::write(folder.join("note"), "").expect("there is room");
        assert!(finder.look().is_empty(), "it is known");
    }

    #[test]
    fn files_that_are_known_take_no_place_of_new_ones() {
        let place = tempfile::tempdir().expect("there is room");
        let folder = place.path().join("kymo");
        make_folder(&folder);
        let mut finder = finder_of(&folder);
        for number in 0..FILES_MAX + 100 {
            std::fs::write(folder.join(format!("{number:016x}.ctl")), "").expect("there is room");
        }
        assert_eq!(finder.look().len(), FILES_MAX);
        finder.hurry();
        assert_eq!(finder.look().len(), 100);
    }

    #[test]
    fn who_is_in_a_hurry_sees_what_is_not_watched() {
        let place = tempfile::tempdir().expect("there is room");
        let folder = place.path().join("kymo");
        let mut finder = finder_of(&folder);
        make_folder(&folder);
        std::fs::write(folder.join("0123456789abcdef.ctl"), "").expect("there is room");
        assert!(finder.look().is_empty(), "the folder came later than the watch");
        finder.hurry();
        assert!(finder.look().iter().any(|found| found.path.starts_with(&folder)));
    }

    #[test]
    fn processes_are_found_by_what_they_see_of_themselves() {
        let own = std::process::id();
        let (inode, began) = (namespace("self", "pid").expect("there is one"), start_time(own).expect("it is there"));
        assert_eq!(outer_pid(own, inode, began), Some(own));
        assert_eq!(outer_pid(own, inode, began + 1), None, "that was another one of the same number");
        assert_eq!(innermost_pid(own), Some(own));
        assert_eq!(outer_pid(own, 1, began), None, "there is no such namespace");
    }
}
