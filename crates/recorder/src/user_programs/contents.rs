//! The maps of an object in a traced program, as its recorder reads them.

use kymo_bytecode::object::ObjectStopKind;
use kymo_lane::{MemoryView, ObjectPlace, RecorderSide};
use serde::{Deserialize, Serialize};

use super::UserObject;

/// Bytes of all entries of an object in a program that are told, at most.
const TOLD_BYTES_MAX: usize = 4 << 20;

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

impl UserObject {
    /// The maps of the object in a program.
    pub(crate) fn contents<V: MemoryView>(
        &self,
        place: ObjectPlace,
        lane: &RecorderSide<V>,
    ) -> Result<(Vec<SharedMapContents>, Vec<StoppedProgram>), V::Fault> {
        let (mut all, mut bytes_left) = (Vec::new(), TOLD_BYTES_MAX);
        for (number, map) in self.maps_at(place.place).enumerate() {
            let of_object = &self.object.maps()[self.machine.of_object[number]];
            if of_object.is_ring() || of_object.is_constant() {
                continue;
            }
            let mut contents = SharedMapContents { name: of_object.name.clone(), ..SharedMapContents::default() };
            let mut key = vec![0; map.key_bytes as usize];
            let mut values = vec![0; map.value_bytes as usize * map.lines as usize];
            for slot in 0..lane.map_entries(&map)? {
                if !lane.map_entry(&map, slot, &mut key, &mut values)? {
                    continue;
                }
                if !map.is_hash && !of_object.is_variables() && values.iter().all(|byte| *byte == 0) {
                    contents.zeros += 1;
                    continue;
                }
                match bytes_left.checked_sub(key.len() + values.len()) {
                    Some(left) => bytes_left = left,
                    None => {
                        contents.more += 1;
                        continue;
                    }
                }
                let values = values.chunks(map.value_bytes as usize).map(<[u8]>::to_vec).collect();
                contents.entries.push(SharedMapEntry { key: key.clone(), values });
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
            Some(ObjectStopKind::NoMap) => "a helper function was called without a map",
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
