//! The maps of an object in a traced program, as its recorder reads them.

use kymo_bytecode::object::ObjectStopKind;
use kymo_lane::{MemoryView, ObjectPlace, RecorderSide, SharedMap};
use serde::{Deserialize, Serialize};

use super::UserObject;

/// Bytes of an array's values that are copied together, about.
const BLOCK_BYTES: usize = 64 << 10;
/// Times that a table is read which threads change meanwhile.
const READINGS_MAX: u32 = 3;

/// The maps of an object in a program, and its runs that stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectContents {
    /// The name of the object.
    pub object: String,
    /// The name of the program's process.
    pub process: String,
    /// The process.
    pub pid: u32,
    /// Its maps, without constants and rings, in the order of the object.
    pub maps: Vec<SharedMapContents>,
    /// Programs with runs that stopped before their end.
    pub stopped: Vec<StoppedProgram>,
}

/// A map in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedMapContents {
    /// Its name.
    pub name: String,
    /// Its entries: of an array, those that are not 0.
    pub entries: Vec<SharedMapEntry>,
    /// Entries of an array that are 0.
    #[serde(default)]
    pub zeros: u64,
    /// Entries that are left out, as there are too many.
    #[serde(default)]
    pub more: u64,
}

/// An entry of a map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedMapEntry {
    /// The bytes of its key.
    pub key: Vec<u8>,
    /// Those of its values: one, or those of each run at the same time.
    pub values: Vec<Vec<u8>>,
}

/// Runs of a program that stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedProgram {
    /// Its name.
    pub program: String,
    /// How many.
    pub runs: u64,
    /// Why the first one did, and where; empty: none has stopped.
    pub why: String,
    /// Changes of maps that were not made, because another thread was changing them.
    pub busy: u64,
}

/// A reading of a map.
struct MapReader {
    contents: SharedMapContents,
    bytes_left: usize,
}

impl MapReader {
    fn take(&mut self, key: &[u8], values: Vec<Vec<u8>>) {
        match self.bytes_left.checked_sub(key.len() + values.iter().map(Vec::len).sum::<usize>()) {
            Some(left) => {
                self.bytes_left = left;
                self.contents.entries.push(SharedMapEntry { key: key.to_vec(), values });
            }
            None => self.contents.more += 1,
        }
    }

    /// Entries one by one.
    fn entries<V: MemoryView>(&mut self, map: &SharedMap, lane: &RecorderSide<V>) -> Result<(), V::Fault> {
        let mut key = vec![0; map.key_bytes as usize];
        let mut values = vec![0; map.value_bytes as usize * map.lines as usize];
        for slot in 0..lane.map_entries(map)? {
            if !lane.map_entry(map, slot, &mut key, &mut values)? {
                continue;
            }
            if !map.is_hash && values.iter().all(|byte| *byte == 0) {
                self.contents.zeros += 1;
                continue;
            }
            self.take(&key, values.chunks(map.value_bytes as usize).map(<[u8]>::to_vec).collect());
        }
        Ok(())
    }

    /// An array with one value for each entry; variables are told also if they are 0.
    fn array<V: MemoryView>(
        &mut self,
        map: &SharedMap,
        is_variables: bool,
        lane: &RecorderSide<V>,
    ) -> Result<(), V::Fault> {
        let (size, stride) = (map.value_bytes as usize, map.value_bytes.next_multiple_of(8) as usize);
        let in_block = (BLOCK_BYTES / stride).max(1) as u32;
        let mut block = vec![0; stride * in_block.min(map.entries) as usize];
        for first in (0..map.entries).step_by(in_block as usize) {
            let count = in_block.min(map.entries - first) as usize;
            let block = &mut block[..stride * count];
            lane.array_values(map, first, block)?;
            for (index, value) in (first..).zip(block.chunks(stride)) {
                let value = &value[..size];
                if !is_variables && value.iter().all(|byte| *byte == 0) {
                    self.contents.zeros += 1;
                } else {
                    self.take(&index.to_le_bytes(), vec![value.to_vec()]);
                }
            }
        }
        Ok(())
    }
}

impl UserObject {
    /// The maps of the object in a program; so many bytes of keys and values may be told.
    pub(crate) fn contents<V: MemoryView>(
        &self,
        place: ObjectPlace,
        lane: &RecorderSide<V>,
        bytes_left: &mut usize,
    ) -> Result<(Vec<SharedMapContents>, Vec<StoppedProgram>), V::Fault> {
        let mut all = Vec::new();
        for (number, map) in self.maps_at(place.place).enumerate() {
            let of_object = &self.object.maps()[self.machine.of_object[number]];
            if of_object.is_ring() || of_object.is_constant() {
                continue;
            }
            let mut contents = SharedMapContents { name: of_object.name.clone(), ..SharedMapContents::default() };
            for reading in 1..=READINGS_MAX {
                let before = lane.table_version(&map)?;
                let mut reader = MapReader { contents: contents.clone(), bytes_left: *bytes_left };
                match map.is_hash || map.lines > 1 {
                    true => reader.entries(&map, lane)?,
                    false => reader.array(&map, of_object.is_variables(), lane)?,
                }
                let is_same = before.is_multiple_of(2) && lane.table_version(&map)? == before;
                if is_same || reading == READINGS_MAX {
                    (contents, *bytes_left) = (reader.contents, reader.bytes_left);
                    break;
                }
            }
            all.push(contents);
        }
        Ok((all, self.stopped(place, lane)?))
    }

    fn stopped<V: MemoryView>(
        &self,
        place: ObjectPlace,
        lane: &RecorderSide<V>,
    ) -> Result<Vec<StoppedProgram>, V::Fault> {
        let mut all = Vec::new();
        for (number, program) in (0..).zip(self.object.programs()).take(kymo_lane::OBJECT_PROGRAMS_MAX as usize) {
            let found = lane.object_stops(place.place, number)?;
            if found.stops + found.busy > 0 {
                let why = self.reason(program, found.first);
                all.push(StoppedProgram { program: program.name.clone(), runs: found.stops, why, busy: found.busy });
            }
        }
        Ok(all)
    }

    /// Why a program stopped, and where in its source; a program may say any number.
    fn reason(&self, program: &kymo_bpf::ObjectProgram, reason: u64) -> String {
        let (at, kind) = ((reason >> 32) as usize, reason as u32 as u8);
        let why = match ObjectStopKind::of(kind) {
            Some(ObjectStopKind::OutsideMemory) => "an access outside of memory",
            Some(ObjectStopKind::NoEnd) => "more than 65,536 steps",
            Some(ObjectStopKind::DeepCalls) => "calls that are too deep",
            Some(ObjectStopKind::Absent) => "a field that the event does not have",
            Some(ObjectStopKind::NoMap) => {
                "a helper function was called without a map, or to write a value of more than 512 bytes"
            }
            None if kind == 6 => return "too many threads ran it at the same time".to_owned(),
            None => return String::new(),
        };
        let line = self.object.link(program, None).ok().and_then(|linked| self.object.line(&linked, at));
        match line {
            Some(line) => format!("{why}, at {line}"),
            None => format!("{why}, at instruction {at}"),
        }
    }
}
