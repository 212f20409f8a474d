//! Executable mappings of a program: with them, addresses in a trace become names of functions,
//! later and elsewhere.
//!
//! ```text
//! /proc/PID/maps ── executable ──> address, size, offset, path
//!    └ /proc/PID/map_files/..., else /proc/PID/root/path ──> ELF ── PT_NOTE ──> NT_GNU_BUILD_ID
//! ```
//!
//! The program controls all of that, so it may have any value.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use crate::program::find::start_time;

/// Bytes of a list of mappings that the recorder reads.
const MAPS_BYTES_MAX: u64 = 4 << 20;
/// Objects of a program that a trace tells.
const OBJECTS_MAX: usize = 4096;
/// Bytes of a table of segments, of one segment of notes, and of a build ID.
const SEGMENTS_BYTES_MAX: usize = 64 << 10;
const NOTES_BYTES_MAX: usize = 64 << 10;
const BUILD_ID_BYTES_MAX: usize = 64;

/// A part of a file that a program can execute.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ExecutableObject {
    /// Where it is mapped, and how many bytes.
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// Where that is in the file.
    pub(crate) offset: u64,
    /// Path of the file, as the program sees it.
    pub(crate) path: String,
    /// Hexadecimal digits; empty: it has none, or none that could be read.
    pub(crate) build_id: String,
}

/// The objects of a process, as far as they are known.
#[derive(Debug)]
pub(crate) struct Objects {
    pid: u32,
    /// When the process with this PID began: another process may have the PID later.
    started: Option<u64>,
    known: HashSet<(u64, u64, u64, String)>,
    all: Vec<ExecutableObject>,
    /// Build IDs by device and inode.
    build_ids: HashMap<(u64, u64), String>,
}

/// A line of the list of mappings.
#[derive(Debug, PartialEq, Eq)]
struct MemoryMapping<'t> {
    begin: u64,
    end: u64,
    offset: u64,
    /// Major and minor number.
    device: (u32, u32),
    inode: u64,
    path: &'t str,
}

impl Objects {
    /// Objects of the process with this PID here.
    pub(crate) fn of(pid: u32) -> Self {
        let started = start_time(pid);
        Self { pid, started, known: HashSet::new(), all: Vec::new(), build_ids: HashMap::new() }
    }

    /// All that are known.
    pub(crate) fn all(&self) -> &[ExecutableObject] {
        &self.all
    }

    /// Looks for new objects.
    pub(crate) fn look(&mut self) {
        let mut text = Vec::new();
        let file = File::open(format!("/proc/{}/maps", self.pid));
        // Objects of a process that is gone, or that this one may not look at, stay unknown.
        let is_read = file.and_then(|file| file.take(MAPS_BYTES_MAX).read_to_end(&mut text)).is_ok();
        if !is_read || self.started.is_none() || start_time(self.pid) != self.started {
            return;
        }
        let text = String::from_utf8_lossy(&text);
        for mapping in text.lines().filter_map(mapping) {
            let key = (mapping.begin, mapping.end, mapping.offset, mapping.path.to_owned());
            if self.all.len() >= OBJECTS_MAX || !self.known.insert(key) {
                continue;
            }
            let device = rustix::fs::makedev(mapping.device.0, mapping.device.1);
            let build_id = self.build_ids.entry((device, mapping.inode));
            let build_id = build_id.or_insert_with(|| build_id_of(self.pid, &mapping).unwrap_or_default());
            self.all.push(ExecutableObject {
                address: mapping.begin,
                bytes: mapping.end - mapping.begin,
                offset: mapping.offset,
                path: crate::program::text(mapping.path.as_bytes()),
                build_id: build_id.clone(),
            });
        }
    }
}

/// The build ID of a process' executable; empty: unknown.
pub(crate) fn build_id_of_process(pid: u32) -> String {
    let file = open(&PathBuf::from(format!("/proc/{pid}/exe")), None);
    file.and_then(|file| build_id(&file)).unwrap_or_default()
}

/// `address-end perms offset major:minor inode      path`, if it is of a file and can be executed.
fn mapping(line: &str) -> Option<MemoryMapping<'_>> {
    let (range, rest) = line.split_once(' ')?;
    let (access, rest) = rest.split_once(' ')?;
    let (offset, rest) = rest.split_once(' ')?;
    let (device, rest) = rest.split_once(' ')?;
    let (inode, path) = rest.split_once(' ')?;
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let (begin, end) = range.split_once('-')?;
    let (major, minor) = device.split_once(':')?;
    let number = |digits: &str| u32::from_str_radix(digits, 16).ok();
    let (begin, end, path) = (hex(begin)?, hex(end)?, path.trim_start_matches(' '));
    let is_one = access.as_bytes().get(2) == Some(&b'x') && path.starts_with('/') && begin < end;
    let (offset, device, inode) = (hex(offset)?, (number(major)?, number(minor)?), inode.parse().ok()?);
    is_one.then_some(MemoryMapping { begin, end, offset, device, inode, path })
}

/// The build ID of a mapped file.
fn build_id_of(pid: u32, mapping: &MemoryMapping<'_>) -> Option<String> {
    let mapped = PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.begin, mapping.end));
    // Without permission for that path, the recorder finds the file by its name, as the program
    // does; it may be another file by now.
    let named = || open(&PathBuf::from(format!("/proc/{pid}/root{}", mapping.path)), Some(mapping));
    build_id(&open(&mapped, None).or_else(named)?)
}

/// Opens a regular file, which has to be the mapped one. It opens no other kind of file, because
/// that may have effects, or wait.
fn open(path: &Path, mapping: Option<&MemoryMapping<'_>>) -> Option<File> {
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let found = rustix::fs::fstat(&place).ok()?;
    let device = (rustix::fs::major(found.st_dev), rustix::fs::minor(found.st_dev));
    let is_it = mapping.is_none_or(|mapping| (found.st_ino, device) == (mapping.inode, mapping.device));
    let is_regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    (is_it && is_regular).then(|| File::open(format!("/proc/self/fd/{}", place.as_raw_fd())).ok())?
}

/// The build ID in an ELF file of 64 bits: hexadecimal digits.
fn build_id(file: &File) -> Option<String> {
    const NOTES: u32 = 4;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    let is_elf = head.starts_with(b"\x7fELF\x02\x01");
    let (size, count) = (half(&head, 54)?, half(&head, 56)?);
    if !is_elf || size < 56 {
        return None;
    }
    let segments = read(file, word(&head, 32)?, size * count, SEGMENTS_BYTES_MAX)?;
    let notes = segments.chunks_exact(size).filter(|segment| number(segment, 0) == Some(NOTES));
    notes
        .filter_map(|segment| {
            let bytes = usize::try_from(word(segment, 32)?).ok()?;
            note(&read(file, word(segment, 8)?, bytes, NOTES_BYTES_MAX)?)
        })
        .next()
}

/// The build ID among notes: `name bytes, bytes, type, name, bytes`, both padded to multiples of 4.
fn note(mut notes: &[u8]) -> Option<String> {
    const BUILD_ID: u32 = 3;
    loop {
        let (name, bytes, kind) = (number(notes, 0)? as usize, number(notes, 4)? as usize, number(notes, 8)?);
        let begin = name.checked_next_multiple_of(4)?.checked_add(12)?;
        let said = notes.get(begin..begin.checked_add(bytes)?)?;
        if kind == BUILD_ID && notes.get(12..12 + name) == Some(b"GNU\0") && (1..=BUILD_ID_BYTES_MAX).contains(&bytes) {
            return Some(said.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(begin + bytes.checked_next_multiple_of(4)?..)?;
    }
}

fn read(file: &File, at: u64, bytes: usize, most: usize) -> Option<Vec<u8>> {
    if bytes > most {
        return None;
    }
    let mut read = vec![0; bytes];
    file.read_exact_at(&mut read, at).ok()?;
    Some(read)
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?).into())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_mappings_of_files_are_found_in_lines() {
        let line = "7f00-7f80 r-xp 00001000 fd:01 1234                       /usr/lib/a b.so (deleted)";
        let expected = MemoryMapping {
            begin: 0x7f00,
            end: 0x7f80,
            offset: 0x1000,
            device: (0xfd, 1),
            inode: 1234,
            path: "/usr/lib/a b.so (deleted)",
        };
        assert_eq!(mapping(line), Some(expected));
        for other in [
            "7f00-7f80 r--p 00001000 fd:01 1234 /usr/lib/a.so",
            "7f00-7f80 r-xp 00000000 00:00 0 [vdso]",
            "7f00-7f80 r-xp 00000000 00:00 0",
            "7f80-7f00 r-xp 00001000 fd:01 1234 /usr/lib/a.so",
            "7f00 r-xp 00001000 fd:01 1234 /usr/lib/a.so",
            "",
        ] {
            assert_eq!(mapping(other), None, "{other}");
        }
    }

    /// The mappings of this very test, compared with `readelf`, if it is there.
    #[test]
    fn build_ids_are_what_readelf_says() {
        let mut objects = Objects::of(std::process::id());
        objects.look();
        let found = objects.all().to_vec();
        assert!(found.iter().any(|object| object.path.contains("libc.so")), "{found:?}");
        let own = build_id_of as *const () as u64;
        let here = found.iter().find(|object| (object.address..object.address + object.bytes).contains(&own));
        let here = here.expect("this is mapped");
        let path = std::env::current_exe().expect("it runs");
        assert_eq!(here.path, path.to_str().expect("it is text"));
        assert_eq!(here.build_id, build_id_of_process(std::process::id()));
        objects.look();
        assert_eq!(objects.all(), found, "nothing is there twice");
        let Ok(output) = std::process::Command::new("readelf").args(["--notes", "--wide"]).arg(&path).output() else {
            eprintln!("NOT TESTED: there is no readelf");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let id = said.lines().find_map(|line| line.split_once("Build ID: ")).map_or("", |(_, id)| id.trim());
        assert_eq!(here.build_id, id);
    }

    #[test]
    fn whatever_bytes_there_are_nothing_goes_wrong() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("object");
        let whole = std::fs::read("/proc/self/exe").expect("it runs");
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut known = 0;
        for time in 0..500 {
            let mut bytes = whole[..whole.len().min(4096)].to_vec();
            if time > 0 {
                bytes.truncate((random() % 4096) as usize);
                for _ in 0..time % 8 {
                    let at = (random() as usize) % bytes.len().max(1);
                    bytes.iter_mut().skip(at).take(1 + (random() % 8) as usize).for_each(|byte| *byte = random() as u8);
                }
            }
            std::fs::write(&path, &bytes).expect("there is room");
            known += usize::from(build_id(&open(&path, None).expect("it is there")).is_some());
        }
        assert!(known < 500);
        for notes in [&b""[..], &[0xff; 40], &[4, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 3, 0, 0, 0, b'G', b'N', b'U', 0]] {
            assert_eq!(note(notes), None);
        }
        assert!(open(folder.path(), None).is_none(), "a folder is no object");
    }
}
