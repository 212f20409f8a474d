//! Iterators of the kernel that tell the state of the system, also of processes of other users: loaded by the helper, and opened
//! for each reading. The recorder reads them; the helper sees nothing of it.

use std::os::fd::{AsFd, OwnedFd};

use crate::btf::KernelTypes;
use crate::error::{KernelAction, ProbeError, ProbeErrorKind};
use crate::linux::{self, BpfMapShape, MapKind};
use crate::state_programs::{self, FilePlaces, MapPlaces, SCRATCH_BYTES, StatePlaces};

/// A map with one record.
const SCRATCH: BpfMapShape<'_> =
    BpfMapShape { kind: MapKind::Array, key_bytes: 4, value_bytes: SCRATCH_BYTES, entries: 1, flags: 0, inner: None };

/// A part of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatePart {
    /// Threads, with facts about their processes.
    Tasks,
    /// Open files.
    OpenFiles,
    /// Mapped code.
    CodeMaps,
}

/// All parts.
pub const STATE_PARTS: [StatePart; 3] = [StatePart::Tasks, StatePart::OpenFiles, StatePart::CodeMaps];

impl StatePart {
    /// The kernel's function for programs of the iterator.
    fn function(self) -> &'static str {
        match self {
            Self::Tasks => "bpf_iter_task",
            Self::OpenFiles => "bpf_iter_task_file",
            Self::CodeMaps => "bpf_iter_task_vma",
        }
    }

    /// The name of its program.
    fn name(self) -> &'static str {
        match self {
            Self::Tasks => "kymo_tasks",
            Self::OpenFiles => "kymo_files",
            Self::CodeMaps => "kymo_maps",
        }
    }
}

/// Iterators of all parts, or why there are none.
#[derive(Debug)]
pub struct StateIterators([Result<StateIterator, String>; 3]);

/// It can be opened as long as this is there.
#[derive(Debug)]
struct StateIterator(OwnedFd);

fn told(act: KernelAction) -> impl Fn(ProbeErrorKind) -> String {
    move |kind| ProbeError { act, kind }.to_string()
}

impl StateIterators {
    /// Loads the programs. Nothing runs before an iterator is read.
    #[must_use]
    pub fn load() -> Self {
        let types = KernelTypes::of_this_kernel();
        let places = types.as_ref().map_err(String::clone).and_then(|types| {
            StatePlaces::find(types).ok_or_else(|| "the kernel does not describe its threads".to_owned())
        });
        Self(STATE_PARTS.map(|part| StateIterator::load(part, types.as_ref()?, places.as_ref()?)))
    }

    /// Why one of them is missing.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.0.iter().find_map(|iterator| iterator.as_ref().err()).map(String::as_str)
    }

    /// Opens the iterator of a part: what is read is the state of that time.
    ///
    /// # Errors
    ///
    /// Why not, in a sentence; with the verifier's log.
    pub fn open(&self, part: StatePart) -> Result<OwnedFd, String> {
        let iterator = self.0[part as usize].as_ref().map_err(String::clone)?;
        linux::open_iterator(iterator.0.as_fd()).map_err(told(KernelAction::Iterate))
    }
}

impl StateIterator {
    fn load(part: StatePart, types: &KernelTypes, places: &StatePlaces) -> Result<Self, String> {
        let absent = || format!("this kernel has no iterator `{}`", part.function());
        let number = types.function(part.function()).ok_or_else(absent)?;
        let unknown = || "the kernel does not describe its files and mapped memory".to_owned();
        // The program keeps it when it is loaded. Another process of the user that reads an iterator at the same time disturbs
        // records of this one, which are checked.
        let scratch = linux::create_map(SCRATCH, "kymo_record").map_err(told(KernelAction::Map))?;
        let code = match part {
            StatePart::Tasks => state_programs::tasks(places),
            StatePart::OpenFiles => {
                let file = FilePlaces::find(types).ok_or_else(unknown)?;
                state_programs::open_files(places, &file, scratch.as_fd())
            }
            StatePart::CodeMaps => {
                let map = MapPlaces::find(types).ok_or_else(unknown)?;
                state_programs::code_maps(places, &map, scratch.as_fd())
            }
        };
        let program = linux::load_iterator(&code, part.name(), number).map_err(told(KernelAction::Load))?;
        linux::link_iterator(&program).map(Self).map_err(told(KernelAction::Iterate))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::btf::TYPES;
    use crate::state_records::{PLAIN_NAMESPACES, read_code_maps, read_open_files, read_tasks};

    /// The opened iterator of a part; `None`: there is none here, and it was said.
    fn opened(part: StatePart) -> Option<File> {
        match StateIterators::load().open(part) {
            Ok(file) => Some(file.into()),
            Err(why) => {
                let is_absent = why.starts_with(TYPES) || why.contains("not permitted") || why.contains("no iterator");
                assert!(is_absent, "{why}");
                eprintln!("NO ITERATORS HERE: not run ({why})");
                None
            }
        }
    }

    /// A program that the verifier does not take is refused with its log.
    #[test]
    fn the_verifier_says_why() {
        if opened(StatePart::Tasks).is_none() {
            return;
        }
        let types = KernelTypes::of_this_kernel().expect("it is there");
        let number = types.function(StatePart::Tasks.function()).expect("it is there");
        // r0 = r5: nothing is in r5.
        let code = [[0xbf, 0x50, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
        let refused = linux::load_iterator(&code, "kymo_none", number).map_err(told(KernelAction::Load));
        assert!(refused.as_ref().is_err_and(|why| why.contains("R5 !read_ok")), "{refused:?}");
    }

    #[test]
    fn threads_of_this_process() {
        let Some(file) = opened(StatePart::Tasks) else { return };
        let (is_over, gone) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("a) b (c\u{e4}".to_owned()).spawn(move || {
            let link = fs::read_link("/proc/thread-self").expect("it is there");
            let number = link.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            tell.send(number.expect("it is a number")).expect("it waits");
            let _ = gone.recv();
        });
        let other = told.recv().expect("it was begun");
        let mut all = HashMap::new();
        let read = read_tasks(file, |thread| drop(all.insert(*thread.numbers.last().expect("one"), thread)));
        read.expect("it can be read");
        drop(is_over);
        thread.expect("it was begun").join().expect("it ends");
        let (own, other) = (&all[&std::process::id()], &all[&other]);
        let facts = own.of_process.expect("it is the first thread");
        assert_eq!((own.thread, other.process), (own.process, own.process));
        assert!(other.of_process.is_none() && other.name.starts_with("a) b (c\u{e4}\0".as_bytes()), "{other:?}");
        assert_eq!(
            (facts.user, facts.group),
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
        );
        let number = |name: &str| {
            let link = fs::read_link(format!("/proc/self/ns/{name}")).expect("this process has it");
            let link = link.to_string_lossy().into_owned();
            link.split_once('[').and_then(|(_, number)| number.strip_suffix(']')?.parse().ok()).expect("a number")
        };
        assert_eq!((own.pid_namespace, facts.user_namespace), (number("pid"), number("user")));
        assert_eq!(facts.namespaces, Some(PLAIN_NAMESPACES.map(number)));
    }

    #[test]
    fn files_of_this_process() {
        let path = std::env::temp_dir().join(format!("kymo a\n\u{e4} {}", std::process::id()));
        let open = File::create(&path).expect("it can be made");
        let Some(file) = opened(StatePart::OpenFiles) else { return };
        let mut found = false;
        let read = read_open_files(file, |file| {
            let is_it = file.path == Some(path.as_os_str().as_bytes());
            found |= is_it && file.fd == open.as_raw_fd() as u32;
        });
        let _ = fs::remove_file(&path);
        assert!(read.is_ok() && found, "{read:?}");
    }

    #[test]
    fn code_of_this_process() {
        let Some(file) = opened(StatePart::CodeMaps) else { return };
        let (own, here) =
            (std::env::current_exe().expect("it is known"), (code_of_this_process as fn()) as usize as u64);
        let (mut found, mut vdso) = (false, false);
        let read = read_code_maps(file, |map| {
            found |= map.path == Some(own.as_os_str().as_bytes()) && (map.start..map.end).contains(&here);
            vdso |= map.is_vdso;
        });
        assert!(read.is_ok() && found, "{read:?}");
        assert_eq!(vdso, cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
    }
}
