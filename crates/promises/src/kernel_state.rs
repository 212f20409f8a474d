//! Any bytes are records of the kernel's iterators, or are refused; in pieces of any size they are the same records.

use std::io::{ErrorKind, Read};

use kymo_probe::state_records::{read_code_maps, read_open_files, read_tasks};

/// Bytes of a record of a thread, and of others before their path.
const TASK_BYTES: usize = 160;
const FILE_HEAD_BYTES: usize = 16;
const MAP_HEAD_BYTES: usize = 56;

/// The promise; how many records there were.
pub(crate) fn hold(data: &[u8]) -> u64 {
    let pieces = |bytes| Pieces { rest: data, bytes, is_late: false };
    let lists = [tasks(data), files(data), maps(data)];
    for bytes in [1 + data.len() % 7, 157] {
        let others = [tasks(pieces(bytes)), files(pieces(bytes)), maps(pieces(bytes))];
        assert_eq!(others, lists, "in pieces of {bytes} bytes");
    }
    let [tasks, files, maps] = &lists;
    assert_eq!(tasks.0.len(), data.len() / TASK_BYTES);
    assert_eq!(tasks.1, data.len().is_multiple_of(TASK_BYTES));
    assert!(files.0.len() * FILE_HEAD_BYTES <= data.len() && maps.0.len() * MAP_HEAD_BYTES <= data.len());
    lists.iter().map(|(records, _)| records.len() as u64).sum()
}

/// Records as text, and whether the last one was whole.
type RecordList = (Vec<String>, bool);

fn tasks(file: impl Read) -> RecordList {
    let mut list = Vec::new();
    let read = read_tasks(file, |task| {
        assert!(!task.numbers.is_empty() && task.numbers.len() <= task.level as usize + 1, "{task:?}");
        assert_eq!(task.of_process.is_some(), task.thread == task.process, "{task:?}");
        list.push(format!("{task:?}"));
    });
    (list, read.is_ok())
}

fn files(file: impl Read) -> RecordList {
    let mut list = Vec::new();
    let read = read_open_files(file, |file| {
        check(file.path);
        list.push(format!("{file:?}"));
    });
    (list, read.is_ok())
}

fn maps(file: impl Read) -> RecordList {
    let mut list = Vec::new();
    let read = read_code_maps(file, |map| {
        check(map.path);
        assert!(!(map.is_vdso && map.path.is_some()), "{map:?}");
        list.push(format!("{map:?}"));
    });
    (list, read.is_ok())
}

fn check(path: Option<&[u8]>) {
    assert!(path.is_none_or(|path| !path.is_empty() && !path.contains(&0)), "{path:?}");
}

/// A file that gives a few bytes at a time, and says between them that it has none yet.
struct Pieces<'a> {
    rest: &'a [u8],
    bytes: usize,
    is_late: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.is_late = !self.is_late;
        if self.is_late {
            return Err(ErrorKind::WouldBlock.into());
        }
        let bytes = self.bytes.min(into.len());
        self.rest.read(&mut into[..bytes])
    }
}

/// Inputs to begin with.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let file = |path: &[u8]| [words(&[5, 3, path.len() as u32, 0]), path.to_vec()].concat();
    let map = |path: &[u8]| {
        let numbers = [0x1000, 0, 0x2000, 0, 5, 0, 1, 0, 77, 0, 0x1000, 0];
        [words(&[5, path.len() as u32]), words(&numbers), path.to_vec()].concat()
    };
    let task = |thread: u32, level: u32| {
        let head = [thread, 5, 1, 0, 0, 0, 1, level, 1000, 1000, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0];
        let numbers: Vec<u32> = (0..16).map(|number| thread + number).collect();
        [words(&head), b"name of a thread".to_vec(), words(&numbers)].concat()
    };
    vec![
        [task(5, 0), task(6, 3), task(7, 20)].concat(),
        [file(b"/a b\n\xff\0"), file(b""), file(b"/c\0behind")].concat(),
        [map(b"/bin/a\0"), map(b""), map(&[b'x'; 300])].concat(),
    ]
}
