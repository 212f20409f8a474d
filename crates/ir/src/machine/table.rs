//! The hash table of a map: from keys to the slots in which their values are.
//!
//! ```text
//! places  │ word │ offset, slot + 1 │ ...      open addressing: a key is at its home, or behind it before the next free place
//! word: the key itself, of up to 8 bytes; of longer keys a hash: keys of equal words are compared
//! home: the product of word ^ seed and a constant, both halves folded
//! ```
//!
//! At most a quarter of the places are taken. The seed is another one for each table, so that the data of a trace cannot choose keys that all have one home.
//! Machine code looks keys up in these places, too.

use std::hash::{BuildHasher, RandomState};

/// Bytes of keys that are their own words.
const WORD_BYTES: usize = 8;
const PLACES_MIN: usize = 8;
/// Places for each key at least: with fewer, processors guess wrong more often whether a key is at its home.
const PLACES_OF_KEY: usize = 4;
/// The odd number that words are multiplied by: 2^64 divided by the golden ratio.
pub(super) const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A place of a table.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct KeyPlace {
    /// The key, or its hash.
    pub word: u64,
    /// Where the value of the slot begins.
    pub offset: u32,
    /// The slot, counted from 1; 0: the place is free.
    pub slot: u32,
}

/// Keys and their slots.
#[derive(Clone, Debug)]
pub(super) struct KeySlots {
    places: Vec<KeyPlace>,
    taken: usize,
    seed: u64,
    key_bytes: usize,
    /// Bytes from a value to the next.
    stride: usize,
    /// The keys of all slots.
    keys: Vec<u8>,
}

fn folded(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD_BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

impl KeySlots {
    pub(super) fn new(key_bytes: usize, stride: usize) -> Self {
        let seed = RandomState::new().hash_one(key_bytes);
        let places = vec![KeyPlace::default(); PLACES_MIN];
        Self { places, taken: 0, seed, key_bytes, stride, keys: Vec::new() }
    }

    pub(super) fn places(&self) -> &[KeyPlace] {
        &self.places
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Keys that it has.
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// The key that a slot has or had.
    pub(super) fn key(&self, slot: u32) -> &[u8] {
        &self.keys[slot as usize * self.key_bytes..][..self.key_bytes]
    }

    fn word(&self, key: &[u8]) -> u64 {
        match key.len() {
            4 => u32::from_le_bytes([key[0], key[1], key[2], key[3]]).into(),
            0..=WORD_BYTES => word_of(key),
            _ => key.chunks(WORD_BYTES).fold(self.seed, |hash, bytes| folded(hash ^ word_of(bytes), MULTIPLIER)),
        }
    }

    fn home(&self, word: u64) -> usize {
        folded(word ^ self.seed, MULTIPLIER) as usize & (self.places.len() - 1)
    }

    fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    /// Places from one to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }

    /// The place of a key, or the free one that it would get.
    fn place(&self, key: &[u8], word: u64) -> usize {
        let mut at = self.home(word);
        loop {
            let place = &self.places[at];
            let is_found = || place.word == word && (key.len() <= WORD_BYTES || self.key(place.slot - 1) == key);
            if place.slot == 0 || is_found() {
                return at;
            }
            at = self.behind(at);
        }
    }

    /// The slot of a key.
    pub(super) fn find(&self, key: &[u8]) -> Option<u32> {
        self.places[self.place(key, self.word(key))].slot.checked_sub(1)
    }

    /// Gives a slot to a key that is not there.
    pub(super) fn insert(&mut self, key: &[u8], slot: u32) {
        if PLACES_OF_KEY * (self.taken + 1) > self.places.len() {
            self.grow();
        }
        let (at, end) = (slot as usize * self.key_bytes, (slot as usize + 1) * self.key_bytes);
        if self.keys.len() < end {
            self.keys.resize(end, 0);
        }
        self.keys[at..end].copy_from_slice(key);
        let word = self.word(key);
        let place = self.place(key, word);
        self.places[place] = KeyPlace { word, offset: (slot as usize * self.stride) as u32, slot: slot + 1 };
        self.taken += 1;
    }

    fn grow(&mut self) {
        let places = vec![KeyPlace::default(); 2 * self.places.len()];
        for place in std::mem::replace(&mut self.places, places) {
            if place.slot > 0 {
                let mut at = self.home(place.word);
                while self.places[at].slot > 0 {
                    at = self.behind(at);
                }
                self.places[at] = place;
            }
        }
    }

    /// Removes a key; its slot.
    pub(super) fn remove(&mut self, key: &[u8]) -> Option<u32> {
        let mut hole = self.place(key, self.word(key));
        let slot = self.places[hole].slot.checked_sub(1)?;
        // Keys behind it move up, unless that is before their home.
        let mut at = self.behind(hole);
        while self.places[at].slot > 0 {
            if self.distance(self.home(self.places[at].word), at) >= self.distance(hole, at) {
                self.places[hole] = self.places[at];
                hole = at;
            }
            at = self.behind(at);
        }
        self.places[hole] = KeyPlace::default();
        self.taken -= 1;
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Keys of a few values come and go as in a table of the standard library.
    #[track_caller]
    fn check(key_bytes: usize) {
        let (mut table, mut expected) = (KeySlots::new(key_bytes, 8), HashMap::new());
        let (mut free, mut slots, mut number) = (Vec::new(), 0, 1_u64);
        for _ in 0..20_000 {
            number = folded(number + 1, MULTIPLIER);
            let mut key = vec![7; key_bytes];
            key[key_bytes - 1] = (number >> 20) as u8 % 200;
            match expected.get(&key) {
                Some(slot) if number.is_multiple_of(3) => {
                    assert_eq!(table.remove(&key), Some(*slot));
                    free.push(*slot);
                    expected.remove(&key);
                }
                Some(_) => {}
                None => {
                    assert_eq!((table.find(&key), table.remove(&key)), (None, None));
                    let slot = free.pop().unwrap_or_else(|| {
                        slots += 1;
                        slots - 1
                    });
                    table.insert(&key, slot);
                    expected.insert(key, slot);
                }
            }
            assert_eq!(table.len(), expected.len());
        }
        assert!(expected.len() > 50);
        for (key, slot) in &expected {
            assert_eq!((table.find(key), table.key(*slot)), (Some(*slot), &key[..]));
        }
        for place in table.places.iter().filter(|place| place.slot > 0) {
            assert_eq!(place.offset, 8 * (place.slot - 1));
        }
    }

    #[test]
    fn keys_come_and_go() {
        for key_bytes in [1, 3, 4, 8, 9, 16, 37] {
            check(key_bytes);
        }
    }
}
