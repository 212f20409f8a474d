//! Records about the state of the system, as the kernel's iterators give them: threads, open files, mapped code.
//!
//! ```text
//! thread   72 numbers and its name │ its numbers in PID namespaces, the outermost one first         always 160 bytes
//! file     u32 process, u32 fd, u32 bytes of the path, u32 │ path, zero byte
//! map      u32 process, u32 bytes of the path, u64 start, end, flags, pgoff, inode, vdso │ path, zero byte
//! ```
//!
//! Numbers of threads are those of the outermost namespace; the reader knows which one is its own. Programs of
//! `state_programs` write records. Any bytes are read: what is no record ends the reading with an error.

use std::io::{self, ErrorKind, Read};

/// Namespaces in each other that a record has room for.
pub(crate) const LEVELS_MAX: usize = 16;
/// Bytes of a record of a thread.
pub(crate) const TASK_BYTES: usize = 160;
/// Bytes of a record of an open file before its path.
pub(crate) const FILE_HEAD_BYTES: usize = 16;
/// Bytes of a record of mapped code before its path.
pub(crate) const MAP_HEAD_BYTES: usize = 56;
/// Bytes of a path at most, with its zero byte.
pub(crate) const PATH_BYTES_MAX: usize = 4096;
/// Bytes that are read at a time: more than the kernel's own buffer has.
const TURN: usize = 64 << 10;

/// Places in a record of a thread.
pub(crate) mod task_places {
    pub(crate) const THREAD: i16 = 0;
    pub(crate) const PROCESS: i16 = 4;
    pub(crate) const PARENT: i16 = 8;
    pub(crate) const FLAGS: i16 = 12;
    pub(crate) const STATE: i16 = 16;
    pub(crate) const EXIT_STATE: i16 = 20;
    pub(crate) const CPU: i16 = 24;
    pub(crate) const LEVEL: i16 = 28;
    pub(crate) const USER: i16 = 32;
    pub(crate) const GROUP: i16 = 36;
    pub(crate) const PID_NAMESPACE: i16 = 40;
    pub(crate) const USER_NAMESPACE: i16 = 44;
    /// Six, in the order of [`super::PLAIN_NAMESPACES`].
    pub(crate) const NAMESPACES: i16 = 48;
    /// Not 0: the namespaces have changed while they were read.
    pub(crate) const CHANGED: i16 = 72;
    pub(crate) const NAME: i16 = 80;
    pub(crate) const NUMBERS: i16 = 96;
}

/// Places in heads of records of files and maps.
pub(crate) mod file_places {
    pub(crate) const PROCESS: i16 = 0;
    pub(crate) const FD: i16 = 4;
    pub(crate) const PATH_BYTES: i16 = 8;
}
pub(crate) mod map_places {
    pub(crate) const PROCESS: i16 = 0;
    pub(crate) const PATH_BYTES: i16 = 4;
    pub(crate) const START: i16 = 8;
    pub(crate) const END: i16 = 16;
    pub(crate) const FLAGS: i16 = 24;
    pub(crate) const OFFSET: i16 = 32;
    pub(crate) const INODE: i16 = 40;
    pub(crate) const VDSO: i16 = 48;
}

/// Namespaces that have a number alone, as `/proc/PID/ns` names them.
pub const PLAIN_NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mnt", "net", "uts", "time"];

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its number in the outermost namespace.
    pub thread: u32,
    /// That of its process.
    pub process: u32,
    /// That of the process of its parent.
    pub parent: u32,
    /// The kernel's flags of threads.
    pub flags: u32,
    /// The kernel's state, and its state when it has ended.
    pub state: u32,
    /// See `state`.
    pub exit_state: u32,
    /// Where it ran last.
    pub cpu: u32,
    /// Its name, up to a zero byte.
    pub name: [u8; 16],
    /// Its numbers in PID namespaces, the outermost one first: at least one. Those of the innermost ones may be missing.
    pub numbers: Vec<u32>,
    /// How many PID namespaces are around its own.
    pub level: u32,
    /// The number of its PID namespace.
    pub pid_namespace: u32,
    /// Facts about the process; `None`: it is not the first thread.
    pub of_process: Option<ProcessFacts>,
}

/// Facts of the first thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Its effective user and group, as the first user namespace numbers them.
    pub user: u32,
    /// See `user`.
    pub group: u32,
    /// The number of its user namespace.
    pub user_namespace: u32,
    /// The numbers of its other namespaces, in the order of [`PLAIN_NAMESPACES`]; 0: it has none. `None`: they changed while they
    /// were read.
    pub namespaces: Option<[u32; 6]>,
}

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFileRecord<'b> {
    /// The number of the process in the outermost namespace.
    pub process: u32,
    /// The number of the file.
    pub fd: u32,
    /// Its path; `None`: the kernel does not tell it.
    pub path: Option<&'b [u8]>,
}

/// Mapped memory with code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMapRecord<'b> {
    /// The number of the process in the outermost namespace.
    pub process: u32,
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// The kernel's flags of mapped memory.
    pub flags: u64,
    /// Where it begins in the file, in pages.
    pub page: u64,
    /// The number of the file; 0: there is no file.
    pub inode: u64,
    /// The kernel's own code for programs.
    pub is_vdso: bool,
    /// The path of the file; `None`: there is no file, or the kernel does not tell it.
    pub path: Option<&'b [u8]>,
}

/// The number at a place of a record that has it.
fn word(record: &[u8], at: i16) -> u32 {
    let bytes = record[at as usize..].first_chunk().expect("records have all of their places");
    u32::from_ne_bytes(*bytes)
}

fn long(record: &[u8], at: i16) -> u64 {
    let bytes = record[at as usize..].first_chunk().expect("records have all of their places");
    u64::from_ne_bytes(*bytes)
}

impl TaskRecord {
    fn read(record: &[u8; TASK_BYTES]) -> Self {
        use task_places::{
            CHANGED, CPU, EXIT_STATE, FLAGS, GROUP, LEVEL, NAME, NAMESPACES, NUMBERS, PARENT, PID_NAMESPACE, PROCESS,
            STATE, THREAD, USER, USER_NAMESPACE,
        };
        let of = |at| word(record, at);
        let level = of(LEVEL);
        let known = (level as usize).min(LEVELS_MAX - 1) as i16 + 1;
        let numbers = (0..known).map(|at| of(NUMBERS + 4 * at)).collect();
        let mut namespaces = [0; 6];
        namespaces.iter_mut().zip((NAMESPACES..).step_by(4)).for_each(|(to, at)| *to = of(at));
        let facts = || ProcessFacts {
            user: of(USER),
            group: of(GROUP),
            user_namespace: of(USER_NAMESPACE),
            namespaces: (of(CHANGED) == 0).then_some(namespaces),
        };
        Self {
            thread: of(THREAD),
            process: of(PROCESS),
            parent: of(PARENT),
            flags: of(FLAGS),
            state: of(STATE),
            exit_state: of(EXIT_STATE),
            cpu: of(CPU),
            name: *record[NAME as usize..].first_chunk().expect("records have all of their places"),
            numbers,
            level,
            pid_namespace: of(PID_NAMESPACE),
            of_process: (of(THREAD) == of(PROCESS)).then(facts),
        }
    }
}

/// Reads all threads.
///
/// # Errors
///
/// The kernel's, or that there is no whole number of records.
pub fn read_tasks(file: impl Read, mut tell: impl FnMut(TaskRecord)) -> io::Result<()> {
    read(file, |bytes| {
        let record = bytes.first_chunk()?;
        tell(TaskRecord::read(record));
        Some(TASK_BYTES)
    })
}

/// Reads all open files.
///
/// # Errors
///
/// The kernel's, or that there is no whole number of records.
pub fn read_open_files(file: impl Read, mut tell: impl FnMut(OpenFileRecord<'_>)) -> io::Result<()> {
    use file_places::{FD, PATH_BYTES, PROCESS};
    read(file, |bytes| {
        let head: &[u8; FILE_HEAD_BYTES] = bytes.first_chunk()?;
        let length = FILE_HEAD_BYTES + word(head, PATH_BYTES) as usize;
        let path = path(bytes.get(FILE_HEAD_BYTES..length)?);
        tell(OpenFileRecord { process: word(head, PROCESS), fd: word(head, FD), path });
        Some(length)
    })
}

/// Reads all mapped code.
///
/// # Errors
///
/// The kernel's, or that there is no whole number of records.
pub fn read_code_maps(file: impl Read, mut tell: impl FnMut(CodeMapRecord<'_>)) -> io::Result<()> {
    use map_places::{END, FLAGS, INODE, OFFSET, PATH_BYTES, PROCESS, START, VDSO};
    read(file, |bytes| {
        let head: &[u8; MAP_HEAD_BYTES] = bytes.first_chunk()?;
        let length = MAP_HEAD_BYTES + word(head, PATH_BYTES) as usize;
        let path = path(bytes.get(MAP_HEAD_BYTES..length)?);
        let (start, vdso) = (long(head, START), long(head, VDSO));
        tell(CodeMapRecord {
            process: word(head, PROCESS),
            start,
            end: long(head, END),
            flags: long(head, FLAGS),
            page: long(head, OFFSET),
            inode: long(head, INODE),
            is_vdso: vdso == start && path.is_none(),
            path,
        });
        Some(length)
    })
}

/// A path without its zero byte.
fn path(bytes: &[u8]) -> Option<&[u8]> {
    bytes.split(|byte| *byte == 0).next().filter(|path| !path.is_empty())
}

/// Reads to the end. `take` takes a record from the beginning and returns its bytes; `None`: it is not whole yet.
fn read(mut file: impl Read, mut take: impl FnMut(&[u8]) -> Option<usize>) -> io::Result<()> {
    let mut bytes = vec![0; TURN + TASK_BYTES.max(MAP_HEAD_BYTES + PATH_BYTES_MAX)];
    let mut there = 0;
    loop {
        let more = match file.read(&mut bytes[there..]) {
            // The kernel has passed over a million objects without a record, and goes on.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            more => more?,
        };
        if more == 0 {
            break;
        }
        there += more;
        let mut used = 0;
        while let Some(length) = take(&bytes[used..there]) {
            used += length;
        }
        bytes.copy_within(used..there, 0);
        there -= used;
    }
    if there > 0 {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time, after an interruption.
    struct Slow<'b>(&'b [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let bytes = 7.min(into.len());
            self.0.read(&mut into[..bytes])
        }
    }

    fn file_record(path: &[u8]) -> Vec<u8> {
        let words = [5_u32, 3, path.len() as u32, 0].map(u32::to_ne_bytes).concat();
        [&words[..], path].concat()
    }

    #[test]
    fn records_come_in_pieces() {
        let bytes = [file_record(b"/a b\n\xff\0"), file_record(b""), file_record(b"/c\0")].concat();
        let mut told = Vec::new();
        let read = read_open_files(Slow(&bytes, false), |file| {
            told.push((file.process, file.fd, file.path.map(<[u8]>::to_vec)));
        });
        assert!(read.is_ok());
        let path = |path: &[u8]| (5, 3, Some(path.to_vec()));
        assert_eq!(told, [path(b"/a b\n\xff"), (5, 3, None), path(b"/c")]);
    }

    #[test]
    fn any_bytes_are_records_or_an_error() {
        let whole = file_record(b"/a\0");
        for end in 1..whole.len() {
            let error = read_open_files(&whole[..end], |_| {}).expect_err("it is no whole record");
            assert_eq!(error.kind(), ErrorKind::InvalidData);
        }
        // A path that is longer than any.
        let long = [file_record(b"")[..8].to_vec(), vec![0xff; 100 << 10]].concat();
        assert!(read_open_files(&long[..], |_| {}).is_err());
        assert!(read_code_maps(&long[..], |_| {}).is_err());
        let mut threads = Vec::new();
        assert!(read_tasks(&[0xff; 2 * TASK_BYTES][..], |thread| threads.push(thread)).is_ok());
        assert_eq!((threads.len(), threads[0].numbers.len()), (2, LEVELS_MAX), "its level is higher than any");
    }
}
