//! The recorder's side: places of objects, and contents of their maps.

use super::{DIRECTORY_BYTES, FREE, LINE, OBJECT_LINES_MAX, OBJECTS_MAX, SharedMap, map};
use crate::layout::header;
use crate::memory::MemoryView;
use crate::sides::RecorderSide;

/// An object of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectPlace {
    /// Its hash.
    pub hash: u64,
    /// Its number in the directory.
    pub number: u64,
    /// Its offset in the shared memory.
    pub place: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Runs of a program of an object that did not come to their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectStops {
    /// How many.
    pub stops: u64,
    /// Why the first one did not; 0: none has stopped.
    pub first: u64,
    /// Changes of tables that were not made, because they were in use.
    pub busy: u64,
}

impl<V: MemoryView> RecorderSide<V> {
    /// Whether the program can run users' objects. Those that are built with older tracers cannot, nor those whose files must
    /// be small.
    #[must_use]
    pub fn has_objects(&self) -> bool {
        self.layout.object_bytes > 0
    }

    /// The events of so many IDs are switched as sessions want them.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn set_settled(&self, ids: u64) -> Result<(), V::Fault> {
        self.view.set_word(header::SETTLED, ids)
    }

    /// The place of an object, and whether it is in the directory. One that is not can have this place: once it is filled,
    /// [`keep_object`](Self::keep_object) takes it in. `None`: there is no room.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn object_place(&self, hash: u64, bytes: u64) -> Result<Option<(ObjectPlace, bool)>, V::Fault> {
        let region = self.layout.objects();
        let end = self.layout.bytes();
        let mut next = region + DIRECTORY_BYTES;
        for number in 0..OBJECTS_MAX {
            let at = region + LINE * number;
            let [hash_there, place, bytes_there] =
                [self.view.word(at)?, self.view.word(at + 8)?, self.view.word(at + 16)?];
            if hash_there == 0 {
                let is_room = next.checked_add(bytes).is_some_and(|behind| behind <= end);
                return Ok(is_room.then_some((ObjectPlace { hash, number, place: next, bytes }, false)));
            }
            // A program may say anything.
            let is_place = place >= next && place.checked_add(bytes_there).is_some_and(|behind| behind <= end);
            if hash_there == hash && bytes_there == bytes && is_place {
                return Ok(Some((ObjectPlace { hash, number, place, bytes }, true)));
            }
            next = if is_place { (place + bytes_there).next_multiple_of(LINE) } else { next };
        }
        Ok(None)
    }

    /// Takes an object into the directory.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn keep_object(&self, object: &ObjectPlace) -> Result<(), V::Fault> {
        let at = self.layout.objects() + LINE * object.number;
        self.view.set_word(at + 8, object.place)?;
        self.view.set_word(at + 16, object.bytes)?;
        self.view.set_word(at, object.hash)
    }

    /// Writes the first value of a map, before programs use it.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn fill_map(&self, map: &SharedMap, bytes: &[u8]) -> Result<(), V::Fault> {
        let bytes = &bytes[..bytes.len().min(map.value_bytes as usize)];
        for (at, bytes) in (map.values()..).step_by(8).zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            // New memory is zeros.
            if word != [0; 8] {
                self.view.set_word(at, u64::from_le_bytes(word))?;
            }
        }
        Ok(())
    }

    /// A number that changes with each change of a table; odd: it is being changed.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn table_version(&self, map: &SharedMap) -> Result<u64, V::Fault> {
        self.view.word(map.place + map::VERSION)
    }

    /// Copies values of an array that follow each other, with up to 7 bytes behind each.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn array_values(&self, map: &SharedMap, first: u32, into: &mut [u8]) -> Result<(), V::Fault> {
        let at = map.places();
        self.view.copy(at.values + u64::from(first) * at.stride, into)
    }

    /// Runs of a program that have stopped.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn object_stops(&self, state: u64, program: u32) -> Result<ObjectStops, V::Fault> {
        let at = state + LINE * u64::from(OBJECT_LINES_MAX + program);
        Ok(ObjectStops { stops: self.view.word(at)?, first: self.view.word(at + 8)?, busy: self.view.word(at + 16)? })
    }

    /// Number of entries of a map; of an array, all.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn map_entries(&self, map: &SharedMap) -> Result<u32, V::Fault> {
        if !map.is_hash {
            return Ok(map.entries);
        }
        Ok(self.view.word(map.place + map::FRESH)?.min(map.entries.into()) as u32)
    }

    /// Copies the key and the values of a slot, one for each line; returns whether it has an entry. The key's room has `key_bytes`, and
    /// that of values `value_bytes` for each line.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn map_entry(&self, map: &SharedMap, slot: u32, key: &mut [u8], values: &mut [u8]) -> Result<bool, V::Fault> {
        let (at, slot) = (map.places(), u64::from(slot));
        if map.is_hash {
            let mut mark = [0];
            self.view.copy(at.marks + slot, &mut mark)?;
            if mark[0] == FREE {
                return Ok(false);
            }
            self.view.copy(at.keys + slot * at.key_stride, key)?;
        } else {
            key.copy_from_slice(&(slot as u32).to_le_bytes());
        }
        for (line, value) in values.chunks_mut(map.value_bytes as usize).enumerate() {
            self.view.copy(at.values + (line as u64 * u64::from(map.entries) + slot) * at.stride, value)?;
        }
        Ok(true)
    }
}
