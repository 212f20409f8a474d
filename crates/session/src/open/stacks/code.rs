//! The code that processes have at their addresses, as time goes on.
//!
//! ```text
//! time   map of 7 ── fork 7 → 9 ── map of 9 ── stack of 9 ── map of 9 (100 ms later at most)
//!                    9 has what 7 has now
//! ```

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::{CodeFile, CodeOffset, CodeSource, PlacedStack};

/// Other CPUs may tell a map so much later than a stack in it, in nanoseconds.
const LATE_NS: i64 = 100_000_000;
/// Maps that are looked at for that, at most.
const LATE_MAX: usize = 256;

/// The code of all processes of a trace, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct ProcessCode {
    events: Vec<(i64, CodeEvent)>,
    stacks: Vec<ToldStack>,
    /// Build ids of files that were there at the beginning, by inode and path.
    build_ids: HashMap<(u64, String), String>,
    numbers: HashMap<CodeSource, u32>,
    sources: Vec<CodeSource>,
}

#[derive(Debug)]
enum CodeEvent {
    Map(FileMapping),
    /// A process makes another one.
    Fork(i32, i32),
}

/// A map, as an event tells it.
#[derive(Debug, Default)]
pub(crate) struct FileMapping {
    pub(crate) pid: i32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The offset of its beginning in the file.
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    pub(crate) build_id: String,
    pub(crate) path: String,
}

/// A stack, as an event tells it.
#[derive(Debug)]
pub(crate) struct ToldStack {
    pub(crate) number: u32,
    pub(crate) nanos: i64,
    pub(crate) pid: i32,
    pub(crate) kernel: Box<[u64]>,
    pub(crate) user: Box<[u64]>,
}

/// Code from one address to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LiveRange {
    end: u64,
    offset: u64,
    /// `None`: the process makes it itself.
    source: Option<u32>,
}

/// The code of a process, by its first addresses.
type LiveCode = BTreeMap<u64, LiveRange>;

/// All processes at a time.
#[derive(Debug, Default)]
struct LiveProcesses {
    code: HashMap<i32, Arc<LiveCode>>,
    begun: HashMap<i32, i64>,
}

impl ProcessCode {
    /// A process has a map.
    pub(crate) fn map(&mut self, nanos: i64, map: FileMapping) {
        self.events.push((nanos, CodeEvent::Map(map)));
    }

    /// A process makes another one.
    pub(crate) fn fork(&mut self, nanos: i64, (parent, child): (i32, i32)) {
        self.events.push((nanos, CodeEvent::Fork(parent, child)));
    }

    /// A file has this build id.
    pub(crate) fn build_id(&mut self, inode: u64, path: String, build_id: String) {
        self.build_ids.insert((inode, path), build_id);
    }

    /// There is such a stack.
    pub(crate) fn stack(&mut self, stack: ToldStack) {
        self.stacks.push(stack);
    }

    /// Ends the reading: returns stacks by number, with the places of their addresses, and the sources of code by number.
    pub(crate) fn placed(mut self) -> (BTreeMap<u32, PlacedStack>, Vec<CodeSource>) {
        let mut events = std::mem::take(&mut self.events);
        let mut stacks = std::mem::take(&mut self.stacks);
        events.sort_by_key(|(nanos, _)| *nanos);
        stacks.sort_by_key(|stack| stack.nanos);
        let ranges: Vec<Option<(i32, u64, LiveRange)>> =
            events.iter_mut().map(|(_, event)| self.range(event)).collect();
        let (mut live, mut at, mut placed) = (LiveProcesses::default(), 0, BTreeMap::new());
        for stack in stacks {
            while let Some((nanos, event)) = events.get(at).filter(|(nanos, _)| *nanos <= stack.nanos) {
                match (event, ranges[at]) {
                    (CodeEvent::Fork(parent, child), _) => live.fork(*nanos, *parent, *child),
                    (_, Some((pid, start, range))) => live.cover(pid, start, range),
                    (_, None) => {}
                }
                at += 1;
            }
            let late = events[at..].iter().zip(&ranges[at..]);
            let late = late.take_while(|((nanos, _), _)| nanos.saturating_sub(stack.nanos) <= LATE_NS).take(LATE_MAX);
            let late: Vec<(u64, LiveRange)> = late
                .filter_map(|(_, range)| range.filter(|(pid, ..)| *pid == stack.pid))
                .map(|(_, start, range)| (start, range))
                .collect();
            let place = |address: &u64| {
                let range = live
                    .at(stack.pid, *address)
                    .or_else(|| late.iter().find(|(start, range)| (*start..range.end).contains(address)).copied());
                let (start, range) = range?;
                Some(match range.source {
                    Some(source) => CodeOffset { source, offset: (address - start).wrapping_add(range.offset) },
                    None => {
                        let own = CodeSource::Own(stack.pid, live.begun.get(&stack.pid).copied());
                        CodeOffset { source: self.number(own), offset: *address }
                    }
                })
            };
            let user = stack.user.iter().map(place).collect();
            placed.insert(stack.number, PlacedStack { kernel: stack.kernel, user });
        }
        (placed, self.sources)
    }

    /// The range of a map, with the number of its source.
    fn range(&mut self, event: &mut CodeEvent) -> Option<(i32, u64, LiveRange)> {
        let CodeEvent::Map(map) = event else { return None };
        let FileMapping { pid, start, end, offset, inode, build_id, path } = std::mem::take(map);
        let source = match &*path {
            path if is_nameless(path) => None,
            path if path.starts_with('[') => Some(self.number(CodeSource::Special(path.to_owned()))),
            _ => Some(self.file(path, build_id, inode)),
        };
        (start < end).then_some((pid, start, LiveRange { end, offset, source }))
    }

    fn file(&mut self, path: String, build_id: String, inode: u64) -> u32 {
        let key = (inode, path);
        let known = || self.build_ids.get(&key).cloned().unwrap_or_default();
        let build_id = if build_id.is_empty() { known() } else { build_id };
        let path = &key.1;
        let (path, is_deleted) = path.strip_suffix(" (deleted)").map_or((&**path, false), |path| (path, true));
        self.number(CodeSource::File(CodeFile { path: PathBuf::from(path), build_id, inode, is_deleted }))
    }

    fn number(&mut self, source: CodeSource) -> u32 {
        *self.numbers.entry(source).or_insert_with_key(|source| {
            self.sources.push(source.clone());
            self.sources.len() as u32 - 1
        })
    }
}

/// Whether memory has no file with code: perf says `//anon`, the state of the system gives the name of the kernel.
fn is_nameless(path: &str) -> bool {
    // The last is where .NET puts the code that it makes.
    const BEGINNINGS: [&str; 7] =
        ["//anon", "[anon", "[heap]", "[stack", "/dev/zero", "/anon_hugepage", "/memfd:doublemapper"];
    path.is_empty() || path.starts_with("/SYSV") || BEGINNINGS.iter().any(|begin| path.starts_with(begin))
}

impl LiveProcesses {
    fn fork(&mut self, nanos: i64, parent: i32, child: i32) {
        let code = self.code.get(&parent).cloned().unwrap_or_default();
        self.code.insert(child, code);
        self.begun.insert(child, nanos);
    }

    /// A process has this range from now on: the ranges there are no more.
    fn cover(&mut self, pid: i32, start: u64, range: LiveRange) {
        let code = Arc::make_mut(self.code.entry(pid).or_default());
        let before = code.range(..start).next_back().filter(|(_, before)| before.end > start);
        let inside: Vec<u64> =
            before.map(|(at, _)| *at).into_iter().chain(code.range(start..range.end).map(|(at, _)| *at)).collect();
        for at in inside {
            let Some(old) = code.remove(&at) else { continue };
            if at < start {
                code.insert(at, LiveRange { end: start, ..old });
            }
            if old.end > range.end {
                code.insert(range.end, LiveRange { offset: old.offset.wrapping_add(range.end - at), ..old });
            }
        }
        code.insert(start, range);
    }

    fn at(&self, pid: i32, address: u64) -> Option<(u64, LiveRange)> {
        let (start, range) = self.code.get(&pid)?.range(..=address).next_back()?;
        (address < range.end).then_some((*start, *range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pid: i32, start: u64, end: u64, path: &str) -> FileMapping {
        FileMapping { pid, start, end, offset: 0x1000, path: path.to_owned(), ..FileMapping::default() }
    }

    /// The places of the addresses of one stack of a process at a time.
    fn placed(code: ProcessCode, pid: i32, nanos: i64, addresses: &[u64]) -> Vec<String> {
        let mut code = code;
        code.stack(ToldStack { number: 5, nanos, pid, kernel: Box::new([]), user: addresses.into() });
        let (stacks, sources) = code.placed();
        let place = |place: &Option<CodeOffset>| match place {
            None => "nowhere".to_owned(),
            Some(CodeOffset { source, offset }) => match &sources[*source as usize] {
                CodeSource::File(file) => format!("{}+{offset:#x} {}", file.path.display(), file.build_id),
                other => format!("{other:?}+{offset:#x}"),
            },
        };
        stacks[&5].user.iter().map(place).collect()
    }

    #[test]
    fn children_have_the_code_of_their_parents_until_they_have_their_own() {
        let make = || {
            let mut code = ProcessCode::default();
            code.map(10, map(7, 0x10, 0x20, "/a"));
            code.fork(20, (7, 9));
            code.map(30, map(7, 0x10, 0x20, "/later"));
            code.map(40, map(9, 0x18, 0x1c, "/b"));
            code.build_id(0, "/a".to_owned(), "77".to_owned());
            code
        };
        assert_eq!(placed(make(), 9, 35, &[0x11, 0x19, 0x20]), ["/a+0x1001 77", "/a+0x1009 77", "nowhere"]);
        let addresses = [0x17, 0x18, 0x1b, 0x1c, 0x1f];
        let parts = ["/a+0x1007 77", "/b+0x1000 ", "/b+0x1003 ", "/a+0x100c 77", "/a+0x100f 77"];
        assert_eq!(placed(make(), 9, 45, &addresses), parts, "the range before is split");
        assert_eq!(placed(make(), 7, 45, &[0x11]), ["/later+0x1001 "]);
        assert_eq!(placed(make(), 8, 45, &[0x11]), ["nowhere"]);
    }

    #[test]
    fn maps_may_be_told_late_and_programs_make_code() {
        let make = |late| {
            let mut code = ProcessCode::default();
            code.fork(5, (1, 7));
            code.map(10 + late, map(7, 0x10, 0x20, "/a"));
            code.map(10, map(7, 0x30, 0x40, "//anon"));
            code.map(10, map(7, 0x50, 0x60, "[vdso]"));
            code.map(10, map(7, 0x70, 0x70, "/empty"));
            code
        };
        let expected = ["/a+0x1000 ", "Own(7, Some(5))+0x31", "Special(\"[vdso]\")+0x1001", "nowhere"];
        assert_eq!(placed(make(LATE_NS), 7, 10, &[0x10, 0x31, 0x51, 0x70]), expected);
        assert_eq!(placed(make(LATE_NS + 1), 7, 10, &[0x10]), ["nowhere"]);
    }
}
