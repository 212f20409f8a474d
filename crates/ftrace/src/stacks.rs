//! Records of perf events: call stacks, and files with code that are mapped into memory.
//!
//! ```text
//! u32 kind, u16 flags, u16 bytes │ of the kind │ pid, tid, time, number of the event (a call stack has them first)
//! ```
//!
//! Of each record the event was opened with `PERF_SAMPLE_IDENTIFIER`, `TID`, `TIME`, `PERIOD` and `CALLCHAIN`, and with
//! `sample_id_all`.

/// Bytes before what a record says.
const HEAD: usize = 8;
/// Bytes behind it, but for call stacks.
const TRAILER: usize = 24;
const LOST: u32 = 2;
const EXIT: u32 = 4;
const THROTTLED: u32 = 5;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MAP: u32 = 10;
const LOST_SAMPLES: u32 = 13;
/// The map has a build id instead of an inode.
const HAS_BUILD_ID: u16 = 1 << 14;
const BUILD_ID_MAX: usize = 20;
/// Numbers from here on are no addresses: they say where the next ones are.
const MARKS: u64 = -4095_i64 as u64;
const OF_KERNEL: u64 = -128_i64 as u64;
const OF_USER: u64 = -512_i64 as u64;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackRecord<'b> {
    /// A call stack.
    Stack(CallStack),
    /// A file with code is mapped.
    Map(MappedCode<'b>),
    /// A process has started another one, which has its maps.
    Begun {
        /// The new one.
        pid: i32,
        /// The one that has started it.
        parent: i32,
    },
    /// A process has ended: its first thread.
    Ended {
        /// The process.
        pid: i32,
    },
    /// Records had no room.
    Lost {
        /// How many.
        records: u64,
        /// Nanoseconds of the clock when there was room again.
        nanos: u64,
    },
    /// The kernel samples less often than it was asked to, for a while.
    Throttled,
    /// Another one.
    Other,
}

/// Where a thread was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallStack {
    /// The number of the perf event.
    pub id: u64,
    /// The thread.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Nanoseconds of the clock.
    pub nanos: u64,
    /// Addresses in the kernel, the innermost first: those behind it are of the instruction after a call.
    pub kernel: Vec<u64>,
    /// The same in the program.
    pub user: Vec<u64>,
    /// The event's own fields, if it was opened with `PERF_SAMPLE_RAW`.
    pub raw: Vec<u8>,
}

/// A file with code in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedCode<'b> {
    /// The thread that has mapped it.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Nanoseconds of the clock.
    pub nanos: u64,
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Its place in the file.
    pub offset: u64,
    /// The file's; 0: the build id is known instead.
    pub inode: u64,
    /// The build id of the file, if the kernel has found it.
    pub build_id: &'b [u8],
    /// The file, as the kernel names it.
    pub path: &'b [u8],
}

/// Splits off the first record; `None`: there is none, or it is not whole.
///
/// ```
/// use kymo_ftrace::stacks::{StackRecord, next_record};
///
/// let record = kymo_ftrace::stacks::lost_record(77);
/// assert_eq!(next_record(&record), Some((StackRecord::Lost { records: 1, nanos: 77 }, &[][..])));
/// ```
#[must_use]
pub fn next_record(bytes: &[u8]) -> Option<(StackRecord<'_>, &[u8])> {
    let kind = u32::from_le_bytes(*bytes.first_chunk()?);
    let flags = u16::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
    let length = usize::from(u16::from_le_bytes(*bytes.get(6..)?.first_chunk()?));
    let (record, rest) = bytes.split_at_checked(length.max(HEAD))?;
    let body = &record[HEAD..];
    let record = match kind {
        SAMPLE => CallStack::read(body).map(StackRecord::Stack),
        MAP => MappedCode::read(body, flags).map(StackRecord::Map),
        LOST => lost(body, 8),
        LOST_SAMPLES => lost(body, 0),
        THROTTLED => Some(StackRecord::Throttled),
        FORK | EXIT => of_process(kind, body),
        _ => Some(StackRecord::Other),
    };
    Some((record.unwrap_or(StackRecord::Other), rest))
}

/// Processes that others have started, and those, of some records.
pub fn begun_processes(mut records: &[u8]) -> impl Iterator<Item = (i32, i32)> {
    std::iter::from_fn(move || {
        loop {
            let kind = u32::from_le_bytes(*records.first_chunk()?);
            let length = u16::from_le_bytes(*records.get(6..)?.first_chunk()?);
            let (record, rest) = records.split_at_checked(usize::from(length).max(HEAD))?;
            records = rest;
            // The others are many, and long.
            if kind == FORK
                && let Some(StackRecord::Begun { pid, parent }) = of_process(kind, &record[HEAD..])
            {
                return Some((pid, parent));
            }
        }
    })
}

/// The record of one lost record.
#[must_use]
pub fn lost_record(nanos: u64) -> Vec<u8> {
    let body = [0, 1, 0, nanos, 0].map(u64::to_le_bytes).concat();
    let length = (HEAD + body.len()) as u16;
    [&LOST.to_le_bytes()[..], &[0; 2], &length.to_le_bytes(), &body].concat()
}

/// Tells of processes, and not of further threads of them.
fn of_process(kind: u32, body: &[u8]) -> Option<StackRecord<'static>> {
    let (pid, parent, tid) = (number(body, 0)?, number(body, 4)?, number(body, 8)?);
    let is_first = pid == tid;
    is_first.then_some(if kind == FORK { StackRecord::Begun { pid, parent } } else { StackRecord::Ended { pid } })
}

fn lost(body: &[u8], at: usize) -> Option<StackRecord<'static>> {
    let trailer = body.len().checked_sub(TRAILER)?;
    Some(StackRecord::Lost { records: word(body, at)?, nanos: word(body, trailer + 8)? })
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn number(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
}

impl CallStack {
    fn read(body: &[u8]) -> Option<Self> {
        let (id, pid, tid) = (word(body, 0)?, number(body, 8)?, number(body, 12)?);
        // The period is between both.
        let (nanos, count) = (word(body, 16)?, word(body, 32)?);
        let bytes = usize::try_from(count).ok()?.checked_mul(8)?;
        let frames = body.get(40..)?.get(..bytes)?;
        let (size, raw) = body[40 + bytes..].split_first_chunk().unwrap_or((&[0; 4], &[]));
        let raw = raw.get(..u32::from_le_bytes(*size) as usize).unwrap_or_default().to_vec();
        let mut stack = Self { id, tid, pid, nanos, raw, ..Self::default() };
        // Of the kernel, or of the program; those of guests and hypervisors are left out.
        let mut is_kernel = Some(true);
        for address in frames.chunks_exact(8).filter_map(|bytes| word(bytes, 0)) {
            match (address, is_kernel) {
                (OF_KERNEL, _) => is_kernel = Some(true),
                (OF_USER, _) => is_kernel = Some(false),
                (MARKS.., _) => is_kernel = None,
                (_, Some(true)) => stack.kernel.push(address),
                (_, Some(false)) => stack.user.push(address),
                (_, None) => {}
            }
        }
        Some(stack)
    }
}

impl<'b> MappedCode<'b> {
    fn read(body: &'b [u8], flags: u16) -> Option<Self> {
        let (before, trailer) = body.split_at_checked(body.len().checked_sub(TRAILER)?)?;
        let (pid, tid, nanos) = (number(before, 0)?, number(before, 4)?, word(trailer, 8)?);
        let (start, bytes, offset) = (word(before, 8)?, word(before, 16)?, word(before, 24)?);
        let file = before.get(32..56)?;
        let (inode, build_id) = match flags & HAS_BUILD_ID != 0 {
            true => (0, &file[4..4 + usize::from(file[0]).min(BUILD_ID_MAX)]),
            false => (word(file, 8)?, &[][..]),
        };
        let path = before.get(64..)?;
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(Self { tid, pid, nanos, start, end: start.saturating_add(bytes), offset, inode, build_id, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, flags: u16, body: &[u8]) -> Vec<u8> {
        let length = (HEAD + body.len()) as u16;
        [&kind.to_le_bytes()[..], &flags.to_le_bytes(), &length.to_le_bytes(), body].concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn addresses_are_of_the_kernel_or_of_the_program() {
        let frames = [OF_KERNEL, 1, 2, OF_USER, 3, -2048_i64 as u64, 4];
        let body = words(&[&[77, 7 << 32 | 6, 1000, 1, frames.len() as u64][..], &frames].concat());
        let bytes = record(SAMPLE, 0, &body);
        let (read, rest) = next_record(&bytes).expect("it is whole");
        let (kernel, user) = (vec![1, 2], vec![3]);
        assert_eq!(
            read,
            StackRecord::Stack(CallStack { id: 77, tid: 7, pid: 6, nanos: 1000, kernel, user, raw: Vec::new() })
        );
        assert!(rest.is_empty());
        // Fields of the event itself; and some that are not whole.
        let raw = |body: &[u8]| match next_record(&record(SAMPLE, 0, body)) {
            Some((StackRecord::Stack(stack), [])) => stack.raw,
            other => panic!("{other:?}"),
        };
        assert_eq!(raw(&[&body[..], &12_u32.to_le_bytes(), &[9; 12]].concat()), [9; 12]);
        assert!(raw(&[&body[..], &u32::MAX.to_le_bytes(), &[9; 12]].concat()).is_empty());
        assert!(raw(&[&body[..], &[1, 2]].concat()).is_empty());
        // More addresses than bytes.
        let bytes = record(SAMPLE, 0, &words(&[77, 0, 0, 1, u64::MAX / 8]));
        assert_eq!(next_record(&bytes), Some((StackRecord::Other, &[][..])));
        assert_eq!(next_record(&bytes[..20]), None);
    }

    #[test]
    fn processes_begin_and_end() {
        let read = |kind, tid: u64| {
            let body = words(&[2 << 32 | 6, 2 << 32 | tid, 1000, 7 << 32 | 6, 1000, 77]);
            next_record(&record(kind, 0, &body)).map(|read| format!("{:?}", read.0))
        };
        assert_eq!(read(FORK, 6).as_deref(), Some("Begun { pid: 6, parent: 2 }"));
        let body = words(&[2 << 32 | 6, 2 << 32 | 6, 1000, 7 << 32 | 6, 1000, 77]);
        let records = [record(EXIT, 0, &body), record(FORK, 0, &body)].concat();
        assert_eq!(begun_processes(&records).collect::<Vec<_>>(), [(6, 2)]);
        assert_eq!(read(EXIT, 6).as_deref(), Some("Ended { pid: 6 }"));
        assert_eq!(read(FORK, 7).as_deref(), Some("Other"), "another thread");
    }

    #[test]
    fn maps_have_a_build_id_or_an_inode() {
        let body = |file: [u64; 3]| {
            let maps = words(&[&[7 << 32 | 6, 0x1000, 0x200, 0x3000][..], &file, &[5]].concat());
            [maps, b"/bin/a\0\0".to_vec(), words(&[7 << 32 | 6, 1000, 77])].concat()
        };
        let with_inode = record(MAP, 0, &body([1, 99, 0]));
        let wanted = MappedCode {
            tid: 7,
            pid: 6,
            nanos: 1000,
            start: 0x1000,
            end: 0x1200,
            offset: 0x3000,
            inode: 99,
            build_id: &[],
            path: b"/bin/a",
        };
        assert_eq!(next_record(&with_inode).map(|read| read.0), Some(StackRecord::Map(wanted.clone())));
        let with_id = record(MAP, HAS_BUILD_ID, &body([0xaabb_0000_0004, 0xccdd, 0]));
        let wanted = MappedCode { inode: 0, build_id: &[0xbb, 0xaa, 0, 0], ..wanted };
        assert_eq!(next_record(&with_id).map(|read| read.0), Some(StackRecord::Map(wanted)));
    }
}
