//! Memory of users' eBPF programs: maps that a program's threads write, and its recorder reads.
//!
//! ```text
//! region   directory: object, place, bytes ││ object ││ object ││ ...          the recorder gives objects their places
//! object   lines: a lock for each run at the same time │ counts of programs │ maps
//! map      version, owner, entries, free ││ places │ keys │ marks │ values of each line
//! ```
//!
//! A hash table has open places: each names a slot, and tells a part of the hash. Its version is odd while a thread changes the table; look-ups
//! take no lock, and look again if the version has changed. A value of maps with several *lines* is that of one run at a time: a
//! run takes a line that no other one has, so that sums in it need no atomic operations. A thread of which a signal handler comes in the middle of a change
//! finds the table in use by itself: the change of the handler is not made, and counted.

mod recorder;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::layout::header;
use crate::memory::ProgramMemory;
use crate::rules::KeyHash;
use crate::sides::ProgramSide;

pub use recorder::{ObjectPlace, ObjectStops};

/// Runs at the same time that have lines of their own.
pub const OBJECT_LINES_MAX: u32 = 64;
/// Programs of an object, at most.
pub const OBJECT_PROGRAMS_MAX: u32 = 64;
/// Objects of a program at the same time.
pub const OBJECTS_MAX: u64 = 63;
const LINE: u64 = 64;
/// Bytes of an object before its maps.
pub const OBJECT_HEAD_BYTES: u64 = LINE * (OBJECT_LINES_MAX + OBJECT_PROGRAMS_MAX) as u64;
const DIRECTORY_BYTES: u64 = 4096;

/// Times that a thread looks for a table that is not being changed, before it says so.
const TRIES: u32 = 200;
const NO_ENTRY: i64 = -2;
const TOO_BIG: i64 = -7;
const EXISTS: i64 = -17;
const BAD_ARGUMENT: i64 = -22;
/// Flags of updates.
const ONLY_NEW: u64 = 1;
const ONLY_OLD: u64 = 2;

/// Words of a map.
mod map {
    pub(super) const VERSION: u64 = 0;
    /// The thread that changes it; 0: none does.
    pub(super) const OWNER: u64 = 8;
    /// Entries, and slots that were ever used.
    pub(super) const COUNT: u64 = 16;
    pub(super) const FRESH: u64 = 24;
    /// First free slot plus one; the next one is the first word of its key.
    pub(super) const FREE: u64 = 32;
    /// Where the search for an unused entry goes on.
    pub(super) const HAND: u64 = 40;
    pub(super) const HEAD_BYTES: u64 = 64;
}

/// Marks of slots.
const FREE: u8 = 0;
const TAKEN: u8 = 1;
const USED: u8 = 2;

/// A map in the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedMap {
    /// It is a hash table: else an array.
    pub is_hash: bool,
    /// If there is no room, an entry goes that was not used for long.
    pub is_lru: bool,
    /// Bytes of a key, at most 64.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Entries at most.
    pub entries: u32,
    /// Values of each entry.
    pub lines: u32,
    /// Its offset in the shared memory.
    pub place: u64,
}

/// A map with the offsets of its parts, so that they are not calculated again.
#[derive(Clone, Copy, Debug)]
pub struct PlacedMap {
    map: SharedMap,
    at: TableRegions,
    /// Bytes of all its values.
    values_bytes: u64,
}

/// Offsets of the parts of a map.
#[derive(Clone, Copy, Debug)]
struct TableRegions {
    places: u64,
    mask: u64,
    keys: u64,
    key_stride: u64,
    marks: u64,
    values: u64,
    stride: u64,
    end: u64,
}

impl SharedMap {
    #[inline]
    fn places(&self) -> TableRegions {
        let entries = u64::from(self.entries);
        let [key_stride, stride] = [self.key_bytes, self.value_bytes].map(|bytes| u64::from(bytes.next_multiple_of(8)));
        let begin = self.place + map::HEAD_BYTES;
        let count = if self.is_hash { (2 * entries).next_power_of_two() } else { 0 };
        let keys = begin + 8 * count;
        let marks = keys + if self.is_hash { entries * key_stride } else { 0 };
        let values = marks + if self.is_hash { entries.next_multiple_of(8) } else { 0 };
        let end = values + stride * entries * u64::from(self.lines);
        TableRegions { places: begin, mask: count.wrapping_sub(1), keys, key_stride, marks, values, stride, end }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.places().end - self.place).next_multiple_of(LINE)
    }

    /// Offset of its values.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.places().values
    }

    /// The same with the offsets of its parts.
    #[must_use]
    pub fn placed(self) -> PlacedMap {
        let at = self.places();
        PlacedMap { map: self, at, values_bytes: at.end - at.values }
    }
}

impl PlacedMap {
    /// Offset of bytes of a value, by the distance from the first value; `None`: they are not inside of one.
    #[inline]
    #[must_use]
    pub fn value(&self, distance: u64, bytes: u64) -> Option<u64> {
        let inside = if distance < self.at.stride { distance } else { distance % self.at.stride };
        let is_inside = inside + bytes <= self.map.value_bytes.into() && distance + bytes <= self.values_bytes;
        is_inside.then_some(self.at.values + distance)
    }

    /// Behind its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.at.end
    }

    /// The map.
    #[must_use]
    pub fn map(&self) -> &SharedMap {
        &self.map
    }
}

/// A thread that uses an object, in a word: a hash of the thread, and where its stack is. One word, so that a signal handler that comes at any
/// time, and perhaps jumps away, finds all of it or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectUser(u64);

/// Bits of addresses of programs.
const FRAME_BITS: u32 = 47;
/// Bytes between two places of one stack, at most.
const STACK_BYTES_MAX: u64 = 1 << 26;

impl ObjectUser {
    /// A thread by a number that no other one has, and its stack pointer. The stack grows downwards.
    #[must_use]
    pub fn new(thread: u64, frame: u64) -> Self {
        let hash = (thread >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> FRAME_BITS;
        Self(hash << FRAME_BITS | frame & ((1 << FRAME_BITS) - 1))
    }

    fn frame(self) -> u64 {
        self.0 & ((1 << FRAME_BITS) - 1)
    }

    /// Whether the word is of the same thread.
    fn is_own(self, word: u64) -> bool {
        let other = Self(word);
        word >> FRAME_BITS == self.0 >> FRAME_BITS && self.frame().abs_diff(other.frame()) < STACK_BYTES_MAX
    }

    /// Whether the thread has left what it once took with that word, by a jump out of a handler: code that a handler has interrupted is
    /// above the handler.
    fn has_left(self, word: u64) -> bool {
        self.is_own(word) && Self(word).frame() <= self.frame()
    }
}

/// A line that a run has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenLine(u32);

impl TakenLine {
    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A table is being changed: look again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableInUse {
    /// By this thread, which a signal handler has interrupted: the handler would wait for ever.
    pub is_own: bool,
}

/// A key as words; bytes behind it are 0.
#[derive(Clone, Copy)]
struct KeyWords {
    words: [u64; 8],
    count: usize,
    hash: u64,
}

impl KeyWords {
    fn new(key: &[u8]) -> Self {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(key.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        let count = key.len().div_ceil(8).min(8);
        let hash = words[..count].iter().fold(KeyHash::new(0), |hash, word| hash.number(*word)).word();
        Self { words, count, hash: hash >> 32 }
    }
}

impl<M: ProgramMemory> ProgramSide<'_, M> {
    /// Number of IDs whose events a recorder has switched as its sessions want them.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.memory.load(header::SETTLED, Acquire)
    }

    /// Gives an object its memory: the region behind its place must have as many bytes. Returns whether there is memory.
    #[must_use]
    pub fn reserve_object(&self, place: u64, bytes: u64) -> bool {
        let region = self.layout.objects();
        let is_inside = place >= region && place.saturating_add(bytes) <= self.layout.bytes();
        is_inside && self.memory.reserve(place, bytes)
    }

    /// Whether a map lies within the region.
    #[must_use]
    pub fn has_map(&self, map: &SharedMap) -> bool {
        let region = self.layout.objects();
        let is_inside = (region..self.layout.bytes()).contains(&map.place);
        is_inside && map.placed().end() <= self.layout.bytes()
    }

    /// Takes a line of an object that no other run has; the first one that is tried is `first`. `None`: all are taken.
    pub fn take_line(&self, state: u64, (first, lines): (u32, u32), user: ObjectUser) -> Option<TakenLine> {
        (0..lines).map(|step| (first + step) % lines).find_map(|line| {
            let at = state + LINE * u64::from(line);
            let owner = self.memory.load(at, Relaxed);
            let is_free = owner == 0 || user.has_left(owner);
            (is_free && self.memory.compare_exchange(at, owner, user.0)).then_some(TakenLine(line))
        })
    }

    /// Gives a line back.
    pub fn give_line(&self, state: u64, line: TakenLine) {
        self.memory.store(state + LINE * u64::from(line.0), 0, Release);
    }

    /// Counts a run of a program that has stopped before its end, or without a line, and remembers the first reason.
    pub fn note_stop(&self, state: u64, program: u32, reason: u64) {
        let at = state + LINE * u64::from(OBJECT_LINES_MAX + program);
        self.memory.add(at, 1);
        self.memory.compare_exchange(at + 8, 0, reason);
    }

    /// Counts a change that was not made, because the table was in use.
    pub fn note_busy(&self, state: u64, program: u32) {
        self.memory.add(state + LINE * u64::from(OBJECT_LINES_MAX + program) + 16, 1);
    }

    /// The offset of a key's value in the values of a map.
    ///
    /// # Errors
    ///
    /// The table is being changed.
    #[inline]
    pub fn look_up(
        &self,
        placed: &PlacedMap,
        (line, user): (u32, ObjectUser),
        key: &[u8],
    ) -> Result<Option<u32>, TableInUse> {
        let PlacedMap { map, at, .. } = placed;
        let of_slot = |slot: u64| ((u64::from(line % map.lines) * u64::from(map.entries) + slot) * at.stride) as u32;
        if !map.is_hash {
            let index = key.first_chunk().map_or(u32::MAX, |key| u32::from_le_bytes(*key));
            return Ok((index < map.entries).then(|| of_slot(index.into())));
        }
        let key = KeyWords::new(key);
        for _ in 0..TRIES {
            let version = self.memory.load(map.place + map::VERSION, Acquire);
            if version.is_multiple_of(2) {
                let found = self.find_key(map, at, &key).map(|(_, slot)| slot);
                self.memory.fence(Acquire);
                if self.memory.load(map.place + map::VERSION, Relaxed) == version {
                    found.filter(|_| map.is_lru).into_iter().for_each(|slot| self.mark_used(at, slot));
                    return Ok(found.map(of_slot));
                }
            } else {
                let owner = self.memory.load(map.place + map::OWNER, Relaxed);
                if user.has_left(owner) {
                    // Only this thread can take its place.
                    self.memory.store(map.place + map::OWNER, user.0, Relaxed);
                    self.repair(map, at);
                    self.leave_table(map);
                } else if user.is_own(owner) {
                    return Err(TableInUse { is_own: true });
                }
            }
            core::hint::spin_loop();
        }
        Err(TableInUse { is_own: false })
    }

    /// An entry was used, if it is still there.
    fn mark_used(&self, at: &TableRegions, slot: u64) {
        if self.memory.load_part(at.marks + slot, 1) == TAKEN.into() {
            let used = |mark| if mark == u64::from(TAKEN) { USED.into() } else { mark };
            self.memory.change_part(at.marks + slot, 1, used);
        }
    }

    /// The place of a key, and its slot.
    fn find_key(&self, map: &SharedMap, at: &TableRegions, key: &KeyWords) -> Option<(u64, u64)> {
        let mut place = key.hash & at.mask;
        for _ in 0..=at.mask {
            let word = self.memory.load(at.places + 8 * place, Acquire);
            if word == 0 {
                return None;
            }
            let slot = (word & 0xffff_ffff).wrapping_sub(1);
            if word >> 32 == key.hash && slot < map.entries.into() && self.has_key(at, slot, key) {
                return Some((place, slot));
            }
            place = (place + 1) & at.mask;
        }
        None
    }

    fn has_key(&self, at: &TableRegions, slot: u64, key: &KeyWords) -> bool {
        let begin = at.keys + slot * at.key_stride;
        (begin..).step_by(8).zip(&key.words[..key.count]).all(|(at, word)| self.memory.load(at, Relaxed) == *word)
    }

    /// Sets a value; 0, or an error number.
    ///
    /// # Errors
    ///
    /// The table is being changed.
    pub fn update(
        &self,
        placed: &PlacedMap,
        (line, user): (u32, ObjectUser),
        (key, value): (&[u8], &[u8]),
        flags: u64,
    ) -> Result<i64, TableInUse> {
        if flags > ONLY_OLD {
            return Ok(BAD_ARGUMENT);
        }
        let PlacedMap { map, at, .. } = placed;
        if !map.is_hash {
            return Ok(match self.look_up(placed, (line, user), key)? {
                None => TOO_BIG,
                Some(_) if flags == ONLY_NEW => EXISTS,
                Some(offset) => {
                    self.put_words(at.values + u64::from(offset), value);
                    0
                }
            });
        }
        let key = KeyWords::new(key);
        self.changing((map, at), user, || {
            let line = u64::from(line % map.lines);
            let value_at = |slot: u64| at.values + (line * u64::from(map.entries) + slot) * at.stride;
            match (self.find_key(map, at, &key), flags) {
                (Some(_), ONLY_NEW) => EXISTS,
                (None, ONLY_OLD) => NO_ENTRY,
                (Some((_, slot)), _) => {
                    if map.is_lru {
                        self.mark_used(at, slot);
                    }
                    self.put_words(value_at(slot), value);
                    0
                }
                (None, _) => match self.insert_key(map, at, &key) {
                    Some(slot) => {
                        self.put_words(value_at(slot), value);
                        self.publish_slot(at, &key, slot);
                        0
                    }
                    None => TOO_BIG,
                },
            }
        })
    }

    /// Removes a key; 0, or an error number.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub fn remove(&self, placed: &PlacedMap, user: ObjectUser, key: &[u8]) -> Result<i64, TableInUse> {
        let PlacedMap { map, at, .. } = placed;
        if !map.is_hash {
            return Ok(BAD_ARGUMENT);
        }
        let key = KeyWords::new(key);
        self.changing((map, at), user, || match self.find_key(map, at, &key) {
            None => NO_ENTRY,
            Some((place, slot)) => {
                self.free_slot(map, at, place, slot);
                0
            }
        })
    }

    /// Changes a table, alone.
    fn changing(
        &self,
        (map, at): (&SharedMap, &TableRegions),
        user: ObjectUser,
        change: impl FnOnce() -> i64,
    ) -> Result<i64, TableInUse> {
        let [version, owner] = [map::VERSION, map::OWNER].map(|at| map.place + at);
        for _ in 0..TRIES {
            let owner_now = self.memory.load(owner, Relaxed);
            let is_left = user.has_left(owner_now);
            if !is_left && user.is_own(owner_now) {
                return Err(TableInUse { is_own: true });
            }
            if (is_left || owner_now == 0) && self.memory.compare_exchange(owner, owner_now, user.0) {
                // Odd, also if it was left so.
                let before = self.memory.load(version, Relaxed);
                self.memory.store(version, before | 1, Relaxed);
                self.memory.fence(Release);
                if is_left {
                    self.repair(map, at);
                }
                let result = change();
                self.leave_table(map);
                return Ok(result);
            }
            core::hint::spin_loop();
        }
        Err(TableInUse { is_own: false })
    }

    /// A change was left in the middle: entries are those that a place names, and all other slots are free.
    #[cold]
    fn repair(&self, map: &SharedMap, at: &TableRegions) {
        let fresh = self.memory.load(map.place + map::FRESH, Relaxed).min(map.entries.into());
        (0..fresh).for_each(|slot| self.memory.store_part(at.marks + slot, 1, FREE.into()));
        for place in 0..=at.mask {
            let slot = (self.memory.load(at.places + 8 * place, Relaxed) & 0xffff_ffff).wrapping_sub(1);
            if slot < fresh {
                self.memory.store_part(at.marks + slot, 1, TAKEN.into());
            }
            self.memory.store(at.places + 8 * place, 0, Relaxed);
        }
        let (mut count, mut free) = (0, 0);
        for slot in 0..fresh {
            if self.memory.load_part(at.marks + slot, 1) == TAKEN.into() {
                count += 1;
                self.publish_slot(at, &self.key_of(at, slot), slot);
            } else {
                self.memory.store(at.keys + slot * at.key_stride, free, Relaxed);
                free = slot + 1;
            }
        }
        self.memory.store(map.place + map::COUNT, count, Relaxed);
        self.memory.store(map.place + map::FREE, free, Relaxed);
    }

    /// The key of a slot.
    fn key_of(&self, at: &TableRegions, slot: u64) -> KeyWords {
        let mut key = [0; 64];
        let bytes = (at.key_stride as usize).min(key.len());
        for (word, bytes) in (at.keys + slot * at.key_stride..).step_by(8).zip(key[..bytes].chunks_exact_mut(8)) {
            bytes.copy_from_slice(&self.memory.load(word, Relaxed).to_le_bytes());
        }
        KeyWords::new(&key[..bytes])
    }

    /// A change is over: the version is even, and another one.
    fn leave_table(&self, map: &SharedMap) {
        let version = map.place + map::VERSION;
        self.memory.store(version, (self.memory.load(version, Relaxed) | 1) + 1, Release);
        self.memory.store(map.place + map::OWNER, 0, Release);
    }

    /// A slot for a new key, whose values are 0; its place comes later.
    fn insert_key(&self, map: &SharedMap, at: &TableRegions, key: &KeyWords) -> Option<u64> {
        let [count, fresh, free] =
            [map::COUNT, map::FRESH, map::FREE].map(|at| self.memory.load(map.place + at, Relaxed));
        if count >= map.entries.into() {
            if !map.is_lru {
                return None;
            }
            self.drop_unused(map, at);
            return self.insert_into_free(map, at, key);
        }
        if free == 0 && fresh < map.entries.into() {
            self.memory.store(map.place + map::FRESH, fresh + 1, Relaxed);
            return Some(self.begin_slot(map, at, fresh, key));
        }
        self.insert_into_free(map, at, key)
    }

    fn insert_into_free(&self, map: &SharedMap, at: &TableRegions, key: &KeyWords) -> Option<u64> {
        let slot = self.memory.load(map.place + map::FREE, Relaxed).checked_sub(1)?;
        // Only this code writes the list, so that a slot beyond the map means that something else has.
        if slot >= map.entries.into() {
            return None;
        }
        let next = self.memory.load(at.keys + slot * at.key_stride, Relaxed);
        self.memory.store(map.place + map::FREE, next, Relaxed);
        Some(self.begin_slot(map, at, slot, key))
    }

    fn begin_slot(&self, map: &SharedMap, at: &TableRegions, slot: u64, key: &KeyWords) -> u64 {
        let count = self.memory.load(map.place + map::COUNT, Relaxed);
        self.memory.store(map.place + map::COUNT, count + 1, Relaxed);
        let begin = at.keys + slot * at.key_stride;
        (begin..).step_by(8).zip(&key.words[..key.count]).for_each(|(at, word)| self.memory.store(at, *word, Relaxed));
        for line in 0..u64::from(map.lines) {
            let value = at.values + (line * u64::from(map.entries) + slot) * at.stride;
            (value..value + at.stride).step_by(8).for_each(|at| self.memory.store(at, 0, Relaxed));
        }
        self.memory.store_part(at.marks + slot, 1, TAKEN.into());
        slot
    }

    /// Look-ups find the key from now on.
    fn publish_slot(&self, at: &TableRegions, key: &KeyWords, slot: u64) {
        let mut place = key.hash & at.mask;
        // At most half of the places are taken.
        for _ in 0..=at.mask {
            if self.memory.load(at.places + 8 * place, Relaxed) == 0 {
                break;
            }
            place = (place + 1) & at.mask;
        }
        self.memory.store(at.places + 8 * place, key.hash << 32 | (slot + 1), Release);
    }

    /// Frees the slot of a place, and moves those behind it nearer to where they are looked for.
    fn free_slot(&self, map: &SharedMap, at: &TableRegions, place: u64, slot: u64) {
        let load = |place: u64| self.memory.load(at.places + 8 * place, Relaxed);
        let (mut hole, mut next) = (place, place);
        for _ in 0..at.mask {
            next = (next + 1) & at.mask;
            let word = load(next);
            if word == 0 {
                break;
            }
            // It may not come before its home.
            let home = (word >> 32) & at.mask;
            if (next.wrapping_sub(home) & at.mask) >= (next.wrapping_sub(hole) & at.mask) {
                self.memory.store(at.places + 8 * hole, word, Relaxed);
                hole = next;
            }
        }
        self.memory.store(at.places + 8 * hole, 0, Relaxed);
        self.memory.store_part(at.marks + slot, 1, FREE.into());
        let count = self.memory.load(map.place + map::COUNT, Relaxed);
        self.memory.store(map.place + map::COUNT, count.saturating_sub(1), Relaxed);
        let free = self.memory.load(map.place + map::FREE, Relaxed);
        self.memory.store(at.keys + slot * at.key_stride, free, Relaxed);
        self.memory.store(map.place + map::FREE, slot + 1, Relaxed);
    }

    /// Drops the first entry that was not used since the hand passed it.
    fn drop_unused(&self, map: &SharedMap, at: &TableRegions) {
        let entries = u64::from(map.entries);
        let mut hand = self.memory.load(map.place + map::HAND, Relaxed);
        // The first turn clears the marks at most: the second one finds an entry.
        for _ in 0..2 * entries {
            let slot = hand % entries;
            hand = slot + 1;
            if self.memory.load_part(at.marks + slot, 1) != TAKEN.into() {
                self.memory.store_part(at.marks + slot, 1, TAKEN.into());
                continue;
            }
            if let Some(place) = self.place_of(at, slot) {
                self.free_slot(map, at, place, slot);
                break;
            }
        }
        self.memory.store(map.place + map::HAND, hand, Relaxed);
    }

    /// The place that names a slot.
    fn place_of(&self, at: &TableRegions, slot: u64) -> Option<u64> {
        let mut place = self.key_of(at, slot).hash & at.mask;
        for _ in 0..=at.mask {
            match self.memory.load(at.places + 8 * place, Relaxed) {
                0 => return None,
                word if word & 0xffff_ffff == slot + 1 => return Some(place),
                _ => place = (place + 1) & at.mask,
            }
        }
        None
    }

    /// Writes bytes, and zeros up to the next word.
    fn put_words(&self, at: u64, bytes: &[u8]) {
        for (at, bytes) in (at..).step_by(8).zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.memory.store(at, u64::from_le_bytes(word), Relaxed);
        }
    }

    /// A number of so many bytes in the shared memory.
    #[inline]
    #[must_use]
    pub fn object_number(&self, at: u64, bytes: u8) -> u64 {
        self.memory.load_part(at, bytes)
    }

    /// Writes such a number.
    #[inline]
    pub fn set_object_number(&self, at: u64, bytes: u8, value: u64) {
        self.memory.store_part(at, bytes, value);
    }

    /// Changes such a number, at a multiple of its size; the one that was there.
    #[inline]
    pub fn change_object_number(&self, at: u64, bytes: u8, change: impl Fn(u64) -> u64) -> u64 {
        self.memory.change_part(at, bytes, change)
    }
}
