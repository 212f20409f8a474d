//! Files with code that processes have mapped, for traces that begin later: parts, and snapshots of flight recorders.
//!
//! ```text
//! kymo_map in an earlier part, or let go ─┐
//! state of the system at the beginning ───┴─> maps by process ── its first stack in this trace ──> kymo_map, if the trace has it not
//! ```
//!
//! A process that has ended is forgotten when no stack of it can come. All others of a machine are some megabytes.

use std::collections::HashMap;
use std::path::Path;

use kymo_ftrace::stacks::{MappedCode, StackRecord, next_record};

use crate::kernel::dump::CodeMap;

/// Bytes of maps, at most: further ones are not known to later parts and snapshots.
const BYTES_MAX: usize = 32 << 20;
/// Bytes of a map beside its texts, about.
const MAP_BYTES: usize = size_of::<KnownMap>() + 32;

/// A map, without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownMap {
    tid: i32,
    start: u64,
    end: u64,
    offset: u64,
    inode: u64,
    build_id: Vec<u8>,
    path: Vec<u8>,
    /// The part of the trace that has it; 0: none.
    part: u64,
}

impl KnownMap {
    fn bytes(&self) -> usize {
        MAP_BYTES + self.build_id.len() + self.path.len()
    }
}

/// Maps of all processes.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownMaps {
    processes: HashMap<i32, Vec<KnownMap>>,
    bytes: usize,
    /// The part of the trace that is written now, from 1.
    part: u64,
    /// There were more than are kept.
    pub(super) is_full: bool,
}

impl KnownMaps {
    /// Another trace begins.
    pub(super) fn begin_part(&mut self) {
        self.part += 1;
    }

    /// A process has mapped a file; the trace tells it, or does not.
    pub(super) fn learn(&mut self, map: &MappedCode<'_>, is_told: bool) {
        let known = KnownMap {
            tid: map.tid,
            start: map.start,
            end: map.end,
            offset: map.offset,
            inode: map.inode,
            build_id: map.build_id.to_vec(),
            path: map.path.to_vec(),
            part: if is_told { self.part } else { 0 },
        };
        // It is where others were.
        if let Some(maps) = self.processes.get_mut(&map.pid) {
            let bytes = &mut self.bytes;
            maps.retain(|before| {
                let stays = before.end <= known.start || before.start >= known.end;
                *bytes -= if stays { 0 } else { before.bytes() };
                stays
            });
        }
        self.add(map.pid, known);
    }

    /// The state of the system has a map of a process; the trace tells it, or does not.
    pub(super) fn learn_state(&mut self, pid: u32, map: &CodeMap, is_told: bool) {
        let (pid, part) = (pid as i32, if is_told { self.part } else { 0 });
        let maps = self.processes.entry(pid).or_default();
        let is_it = |known: &&mut KnownMap| {
            (known.start, known.end, &known.path[..]) == (map.start, map.end, map.path.as_bytes())
        };
        if let Some(known) = maps.iter_mut().find(is_it) {
            known.part = known.part.max(part);
            return;
        }
        let (build_id, path) = (Vec::new(), map.path.as_bytes().to_vec());
        let CodeMap { start, end, offset, inode, .. } = *map;
        self.add(pid, KnownMap { tid: pid, start, end, offset, inode, build_id, path, part });
    }

    fn add(&mut self, pid: i32, map: KnownMap) {
        if self.bytes + map.bytes() > BYTES_MAX {
            let of = |maps: &Vec<KnownMap>| maps.iter().map(KnownMap::bytes).sum::<usize>();
            if !self.is_full {
                // Ends of some were lost.
                self.processes.retain(|pid, _| Path::new(&format!("/proc/{pid}")).exists());
                self.bytes = self.processes.values().map(of).sum();
            }
            self.is_full = self.bytes + map.bytes() > BYTES_MAX;
            if self.is_full {
                return;
            }
        }
        self.bytes += map.bytes();
        self.processes.entry(pid).or_default().push(map);
    }

    /// A process has started another one, which has the same maps.
    pub(super) fn begin(&mut self, pid: i32, parent: i32) {
        let mut maps = self.processes.get(&parent).cloned().unwrap_or_default();
        // It may be known already.
        let own = self.processes.get(&pid).map_or(&[][..], |own| own);
        maps.retain(|map| own.iter().all(|known| (known.start, known.end) != (map.start, map.end)));
        maps.into_iter().for_each(|map| self.add(pid, KnownMap { tid: pid, part: 0, ..map }));
    }

    /// The first thread of a process has ended: the process too, unless others go on.
    pub(super) fn end(&mut self, pid: i32) {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        if threads < 2
            && let Some(maps) = self.processes.remove(&pid)
        {
            self.bytes -= maps.iter().map(KnownMap::bytes).sum::<usize>();
            self.is_full = false;
        }
    }

    /// Learns of the records of a round that are let go.
    pub(super) fn learn_round(&mut self, mut records: &[u8]) {
        let mut ended = Vec::new();
        let mut begun = Vec::new();
        while let Some((record, behind)) = next_record(records) {
            match record {
                StackRecord::Map(map) => self.learn(&map, false),
                StackRecord::Begun { pid, parent } => begun.push((pid, parent)),
                StackRecord::Ended { pid } => ended.push(pid),
                _ => {}
            }
            records = behind;
        }
        // Records of CPUs are behind each other, and not in the order of time.
        begun.into_iter().for_each(|(pid, parent)| self.begin(pid, parent));
        ended.into_iter().for_each(|pid| self.end(pid));
    }

    /// Calls `tell` with the maps of a process that the trace has not.
    pub(super) fn tell<E>(
        &mut self,
        pid: i32,
        mut tell: impl FnMut(&MappedCode<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let part = self.part;
        let untold = self.processes.get_mut(&pid).into_iter().flatten().filter(|map| map.part != part);
        for map in untold {
            map.part = part;
            tell(&MappedCode {
                tid: map.tid,
                pid,
                nanos: 0,
                start: map.start,
                end: map.end,
                offset: map.offset,
                inode: map.inode,
                build_id: &map.build_id,
                path: &map.path,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pid: i32, start: u64, path: &'static str) -> MappedCode<'static> {
        let (tid, nanos, offset, inode, build_id) = (pid, 0, 0, 9, &[][..]);
        MappedCode { tid, pid, nanos, start, end: start + 0x100, offset, inode, build_id, path: path.as_bytes() }
    }

    fn told(maps: &mut KnownMaps, pid: i32) -> Vec<String> {
        let mut told = Vec::new();
        let add = |map: &MappedCode<'_>| {
            told.push(String::from_utf8_lossy(map.path).into_owned());
            Ok::<(), ()>(())
        };
        maps.tell(pid, add).expect("it adds");
        told
    }

    #[test]
    fn each_part_has_the_maps_of_its_processes_once() {
        let mut maps = KnownMaps::default();
        maps.begin_part();
        maps.learn(&map(-5, 0x1000, "a"), true);
        maps.learn(&map(-5, 0x2000, "b"), false);
        assert_eq!((told(&mut maps, -5), told(&mut maps, -5)), (vec!["b".to_owned()], vec![]));
        maps.begin_part();
        // One is where another one was, and the state of the system has one.
        maps.learn(&map(-5, 0x1080, "c"), false);
        let state = CodeMap { start: 0x2000, end: 0x2100, flags: 5, offset: 0, inode: 9, path: "b".to_owned() };
        maps.learn_state(-5_i32 as u32, &state, true);
        assert_eq!(told(&mut maps, -5), ["c"]);
    }

    #[test]
    fn processes_begin_with_maps_and_are_forgotten() {
        let mut maps = KnownMaps::default();
        maps.begin_part();
        maps.learn(&map(-5, 0x1000, "a"), true);
        maps.begin(-6, -5);
        maps.begin(-6, -5);
        assert_eq!(told(&mut maps, -6), ["a"]);
        maps.end(-5);
        maps.end(-6);
        maps.begin_part();
        assert_eq!((told(&mut maps, -5), told(&mut maps, -6), maps.bytes), (vec![], vec![], 0));
    }
}
