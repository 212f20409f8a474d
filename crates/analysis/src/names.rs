//! Names as small numbers: of threads, files, devices.
//!
//! ```text
//! bytes   b a s h s s h d k w o r k e r / 0        all names, one behind the other
//! ends            4       8             15 ...     the place in here is the number
//! ```
//!
//! Numbers are given in the order in which names are first seen, and [`Interner::merge`] appends
//! the names that the later part saw first. So the parts of a trace, merged from left to right in
//! any grouping, give the numbers that one reading gives.
//!
//! Names take a limited amount of memory. The first one that does not fit closes the interner: names that are new from
//! then on are all [`NameId::OTHER`]. Which names have numbers does not depend on how the trace is cut even then; but a
//! part that is full by itself may say `OTHER` for a name that has its number from an earlier part.

use std::borrow::Cow;
use std::fmt;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::merge::Weight;

/// The number of a name, in one [`Interner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NameId(pub u32);

impl NameId {
    /// Any name that had no room.
    pub const OTHER: Self = Self(u32::MAX);
}

impl Weight for NameId {}

/// Thread names as the kernel writes them: 16 bytes, filled up with zeros.
pub type PaddedName = [u8; 16];

/// How many padded names are remembered as they are.
const RECENT: usize = 64;
/// What a name takes besides its bytes.
const NAME_BYTES: usize = 2 * size_of::<u32>() + 1;

/// Numbers for names, and names for numbers.
///
/// ```
/// use kymo_analysis::Interner;
/// let mut names = Interner::default();
/// let bash = names.intern(b"bash");
/// assert_eq!(names.intern_padded(b"bash\0\0\0\0\0\0\0\0\0\0\0\0"), bash);
/// assert_eq!(names.text(bash).as_deref(), Some("bash"));
/// ```
#[derive(Clone)]
pub struct Interner {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    ids: HashTable<u32>,
    hashes: DefaultHashBuilder,
    /// The name asked for last: events of one kind come in bursts.
    last: NameId,
    /// Padded names by a few bits of theirs; made when the first one comes.
    recent: Option<Box<[(PaddedName, NameId); RECENT]>>,
    limit_bytes: usize,
    is_full: bool,
}

impl Default for Interner {
    /// For names of 16 MiB together.
    fn default() -> Self {
        Self::new(16 << 20)
    }
}

impl Interner {
    /// No names yet, and room for `limit_bytes`, at most 2 GiB.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            ids: HashTable::new(),
            hashes: DefaultHashBuilder::default(),
            last: NameId::OTHER,
            recent: None,
            limit_bytes: limit_bytes.min(2 << 30),
            is_full: false,
        }
    }

    /// The number of a name; a new one if it has none.
    #[inline]
    pub fn intern(&mut self, name: &[u8]) -> NameId {
        if self.name(self.last) == Some(name) {
            return self.last;
        }
        self.last = self.look_up(name);
        self.last
    }

    /// The number of a name that ends before its first zero, or with its 16 bytes.
    #[inline]
    pub fn intern_padded(&mut self, name: &PaddedName) -> NameId {
        if let Some(recent) = &self.recent {
            let (known, id) = &recent[recent_place(name)];
            if known == name && *id != NameId::OTHER {
                return *id;
            }
        }
        self.intern_padded_anew(name)
    }

    #[cold]
    fn intern_padded_anew(&mut self, name: &PaddedName) -> NameId {
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let id = self.look_up(&name[..length]);
        let recent = self.recent.get_or_insert_with(|| Box::new([(PaddedName::default(), NameId::OTHER); RECENT]));
        recent[recent_place(name)] = (*name, id);
        id
    }

    fn look_up(&mut self, name: &[u8]) -> NameId {
        let hash = self.hashes.hash_one(name);
        if let Some(id) = self.find_hashed(name, hash) {
            return id;
        }
        let taken = self.bytes.len() + name.len() + (self.ends.len() + 1) * NAME_BYTES;
        self.is_full |= taken > self.limit_bytes;
        if self.is_full {
            return NameId::OTHER;
        }
        let id = self.ends.len() as u32;
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len() as u32);
        let (bytes, ends, hashes) = (&self.bytes, &self.ends, &self.hashes);
        self.ids.insert_unique(hash, id, |&id| hashes.hash_one(name_at(bytes, ends, id)));
        NameId(id)
    }

    fn find_hashed(&self, name: &[u8], hash: u64) -> Option<NameId> {
        self.ids.find(hash, |&id| name_at(&self.bytes, &self.ends, id) == name).map(|&id| NameId(id))
    }

    /// The number of a name, if it has one.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<NameId> {
        self.find_hashed(name, self.hashes.hash_one(name))
    }

    /// The name of a number; `None` for [`NameId::OTHER`] and for numbers of other interners that are too large.
    #[inline]
    #[must_use]
    pub fn name(&self, id: NameId) -> Option<&[u8]> {
        ((id.0 as usize) < self.ends.len()).then(|| name_at(&self.bytes, &self.ends, id.0))
    }

    /// The name of a number as text; bytes that are no UTF-8 become replacement characters.
    #[must_use]
    pub fn text(&self, id: NameId) -> Option<Cow<'_, str>> {
        self.name(id).map(String::from_utf8_lossy)
    }

    /// All names, in the order of their numbers.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|id| name_at(&self.bytes, &self.ends, id as u32))
    }

    /// How many names there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Whether names were left out for lack of room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Absorbs the names of a later part of the trace; says which number each of its numbers has become.
    pub fn merge(&mut self, later: &Self) -> Renumbering {
        let ids = later.names().map(|name| self.look_up(name)).collect();
        // What had no room there has none here, because here are at least as many names.
        self.is_full |= later.is_full;
        Renumbering { ids }
    }
}

#[inline]
fn name_at<'a>(bytes: &'a [u8], ends: &[u32], id: u32) -> &'a [u8] {
    let id = id as usize;
    let begin = if id == 0 { 0 } else { ends[id - 1] };
    &bytes[begin as usize..ends[id] as usize]
}

/// Where a padded name is remembered.
#[inline]
fn recent_place(name: &PaddedName) -> usize {
    let name = u128::from_le_bytes(*name);
    let folded = (name as u64) ^ ((name >> 64) as u64).rotate_left(29);
    (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - RECENT.ilog2())) as usize
}

/// The new numbers of a merged [`Interner`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renumbering {
    ids: Vec<NameId>,
}

impl Renumbering {
    /// The number that stands for the same name now.
    #[must_use]
    pub fn of(&self, id: NameId) -> NameId {
        self.ids.get(id.0 as usize).copied().unwrap_or(NameId::OTHER)
    }

    /// Whether all numbers have stayed the same, so that nothing needs to be renumbered.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.ids.iter().enumerate().all(|(place, id)| place == id.0 as usize)
    }
}

impl Weight for Interner {
    fn weight(&self) -> usize {
        let recent = if self.recent.is_some() { RECENT * size_of::<(PaddedName, NameId)>() } else { 0 };
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>() + self.ids.allocation_size() + recent
    }
}

/// Equal if the same names have the same numbers.
impl PartialEq for Interner {
    fn eq(&self, other: &Self) -> bool {
        (&self.bytes, &self.ends, self.is_full) == (&other.bytes, &other.ends, other.is_full)
    }
}

impl Eq for Interner {}

impl fmt::Debug for Interner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.names().map(String::from_utf8_lossy)).finish()
    }
}

#[derive(Serialize, Deserialize)]
struct StoredNames<N> {
    limit_bytes: u64,
    is_full: bool,
    names: Vec<N>,
}

/// A name as bytes in one piece.
struct NamePiece<'a>(Cow<'a, [u8]>);

impl Serialize for NamePiece<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for NamePiece<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameBytes;
        impl Visitor<'_> for NameBytes {
            type Value = NamePiece<'static>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the bytes of a name")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(NamePiece(bytes.to_vec().into()))
            }
        }
        deserializer.deserialize_bytes(NameBytes)
    }
}

impl Serialize for Interner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.names().map(|name| NamePiece(name.into())).collect();
        StoredNames { limit_bytes: self.limit_bytes as u64, is_full: self.is_full, names }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Interner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredNames { limit_bytes, is_full, names } = StoredNames::<NamePiece<'static>>::deserialize(deserializer)?;
        let mut interner = Self::new(usize::try_from(limit_bytes).unwrap_or(usize::MAX));
        for (place, NamePiece(name)) in names.iter().enumerate() {
            if interner.look_up(name).0 as usize != place {
                return Err(D::Error::custom("a name is listed twice, or there are more than have room"));
            }
        }
        interner.is_full = is_full;
        Ok(interner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn interned(names: &[Vec<u8>], limit_bytes: usize) -> (Interner, Vec<NameId>) {
        let mut interner = Interner::new(limit_bytes);
        let ids = names.iter().map(|name| interner.intern(name)).collect();
        (interner, ids)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Cut anywhere, with room for all names or not, parts merge to what one reading gives.
        #[test]
        fn parts_have_the_numbers_of_the_whole(
            names in vec(vec(0u8..3, 0..4), 0..120),
            cuts in (0usize..120, 0usize..120),
            limit_bytes in prop_oneof![Just(1usize << 20), 0usize..600],
            is_right_first in any::<bool>(),
        ) {
            let (whole, ids) = interned(&names, limit_bytes);
            let first = cuts.0.min(cuts.1).min(names.len());
            let second = cuts.0.max(cuts.1).min(names.len());
            let (mut left, left_ids) = interned(&names[..first], limit_bytes);
            let (mut middle, middle_ids) = interned(&names[first..second], limit_bytes);
            let (right, right_ids) = interned(&names[second..], limit_bytes);
            let mut merged = left_ids;
            if is_right_first {
                let right = middle.merge(&right);
                let renumbering = left.merge(&middle);
                merged.extend(middle_ids.iter().map(|&id| renumbering.of(id)));
                merged.extend(right_ids.iter().map(|&id| renumbering.of(right.of(id))));
            } else {
                let renumbering = left.merge(&middle);
                merged.extend(middle_ids.iter().map(|&id| renumbering.of(id)));
                let renumbering = left.merge(&right);
                merged.extend(right_ids.iter().map(|&id| renumbering.of(id)));
            }
            prop_assert_eq!(&left, &whole);
            for (merged, id) in merged.iter().zip(&ids) {
                prop_assert!(merged == id || whole.is_full() && *merged == NameId::OTHER);
            }
            for (name, id) in names.iter().zip(ids) {
                let known = id != NameId::OTHER;
                prop_assert_eq!(whole.name(id), known.then_some(&name[..]));
                prop_assert_eq!(whole.find(name), known.then_some(id));
                prop_assert!(known || whole.is_full());
            }
            let bytes = postcard::to_allocvec(&whole).unwrap();
            prop_assert_eq!(&postcard::from_bytes::<Interner>(&bytes).unwrap(), &whole);
        }

        #[test]
        fn damaged_bytes_are_refused_or_harmless(
            names in vec(vec(0u8..3, 0..4), 1..40),
            damage in vec((any::<usize>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = postcard::to_allocvec(&interned(&names, 1 << 16).0).unwrap();
            for (position, byte) in damage {
                let position = position % bytes.len();
                bytes[position] = byte;
            }
            if let Ok(mut interner) = postcard::from_bytes::<Interner>(&bytes) {
                let id = interner.intern(b"another");
                prop_assert!(interner.name(id).is_none_or(|name| name == b"another"));
                prop_assert!(interner.weight() < 1 << 16);
            }
        }

        /// Padded names are remembered in few places; collisions and the empty name must not matter.
        #[test]
        fn padded_names_are_names(names in vec(vec(0u8..4, 0..17), 0..300)) {
            let mut interner = Interner::default();
            for name in &names {
                let mut padded = PaddedName::default();
                padded[..name.len()].copy_from_slice(name);
                let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                let id = interner.intern_padded(&padded);
                prop_assert_eq!(interner.name(id), Some(&name[..end]));
                prop_assert_eq!(interner.find(&name[..end]), Some(id));
            }
        }
    }

    #[test]
    fn renumbering_nothing_is_told() {
        let (mut left, _) = interned(&[b"a".to_vec(), b"b".to_vec()], 1000);
        let (right, _) = interned(&[b"a".to_vec()], 1000);
        assert!(left.merge(&right).is_identity());
        let (other, _) = interned(&[b"b".to_vec()], 1000);
        let renumbering = left.merge(&other);
        assert!(!renumbering.is_identity());
        assert_eq!(renumbering.of(NameId(0)), NameId(1));
        assert_eq!(renumbering.of(NameId::OTHER), NameId::OTHER);
    }
}
