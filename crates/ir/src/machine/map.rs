//! Maps: tables in memory that programs share, and rings into which they write records.
//!
//! ```text
//! value of slot s and CPU c: values[c][s * stride ..][.. value_bytes]       arrays: a slot is the key
//!                                                                           hash tables: `table` finds it
//! ```
//!
//! Memory grows with the entries that are there, out of one allowance for all maps of a machine.

use thiserror::Error;

use super::table::KeySlots;

/// Memory of all maps of a machine at most.
pub const MAP_BYTES_MAX: usize = 1 << 30;
/// Bytes that an entry of a hash table takes beside its key and value, about.
const ENTRY_BYTES: usize = 64;
/// CPUs that have values of their own at most.
const CPUS_MAX: usize = 1 << 12;

pub(super) const NO_ENTRY: i64 = -2;
pub(super) const TOO_BIG: i64 = -7;
pub(super) const NO_MEMORY: i64 = -12;
pub(super) const BAD_ADDRESS: i64 = -14;
pub(super) const EXISTS: i64 = -17;
pub(super) const BAD_ARGUMENT: i64 = -22;

/// Types of maps that the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BpfMapType {
    /// A hash table.
    Hash,
    /// An array: keys are numbers of 32 bits.
    Array,
    /// A hash table with a value for each CPU.
    PerCpuHash,
    /// An array with a value for each CPU.
    PerCpuArray,
    /// A hash table that drops an entry that was not used for long when it is full.
    LruHash,
    /// The same with a value for each CPU.
    LruPerCpuHash,
    /// Records go out by `bpf_perf_event_output`.
    PerfEventArray,
    /// Records go out in the order of their reservation.
    RingBuffer,
}

impl BpfMapType {
    /// The one with this number in Linux; `None`: the machine does not have it.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Hash,
            2 => Self::Array,
            4 => Self::PerfEventArray,
            5 => Self::PerCpuHash,
            6 => Self::PerCpuArray,
            9 => Self::LruHash,
            10 => Self::LruPerCpuHash,
            27 => Self::RingBuffer,
            _ => return None,
        })
    }

    /// Its name, as bpftool writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Array => "array",
            Self::PerCpuHash => "percpu_hash",
            Self::PerCpuArray => "percpu_array",
            Self::LruHash => "lru_hash",
            Self::LruPerCpuHash => "lru_percpu_hash",
            Self::PerfEventArray => "perf_event_array",
            Self::RingBuffer => "ringbuf",
        }
    }

    /// It has a value for each CPU.
    #[must_use]
    pub fn is_per_cpu(self) -> bool {
        matches!(self, Self::PerCpuHash | Self::PerCpuArray | Self::LruPerCpuHash)
    }

    /// It has keys and values.
    #[must_use]
    pub fn is_table(self) -> bool {
        !matches!(self, Self::PerfEventArray | Self::RingBuffer)
    }

    fn is_array(self) -> bool {
        matches!(self, Self::Array | Self::PerCpuArray)
    }

    fn is_lru(self) -> bool {
        matches!(self, Self::LruHash | Self::LruPerCpuHash)
    }
}

/// The size and kind of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDefinition {
    /// Its name.
    pub name: Box<str>,
    /// Its type.
    pub map_type: BpfMapType,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Entries at most; of a ring: its bytes.
    pub entries_max: u32,
    /// Programs cannot write it.
    pub is_read_only: bool,
}

/// Why there is no such map.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("map {name}: {kind}")]
pub struct MapDefinitionProblem {
    /// Its name.
    pub name: Box<str>,
    /// The reason.
    pub kind: MapDefinitionProblemKind,
}

/// Why there is no such map.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MapDefinitionProblemKind {
    /// Keys of arrays are numbers of 32 bits.
    #[error("keys of an array have 4 bytes, and these have {found}")]
    ArrayKey {
        /// How many there were.
        found: u32,
    },
    /// A table without keys or values.
    #[error("keys have {key_bytes} bytes and values {value_bytes}: a table needs both, each of at most {limit}")]
    Sizes {
        /// Bytes of a key.
        key_bytes: u32,
        /// Bytes of a value.
        value_bytes: u32,
        /// At most so many.
        limit: u32,
    },
    /// It has no entries.
    #[error("max_entries is 0")]
    NoEntries,
    /// The arrays are too big together.
    #[error("{found} bytes are needed; all maps together may take {limit}")]
    Memory {
        /// Bytes of this one.
        found: u64,
        /// At most so many.
        limit: u64,
    },
    /// There are too many maps.
    #[error("it is one too many: at most {limit} are allowed")]
    Count {
        /// At most so many.
        limit: usize,
    },
}

/// Bytes of a key or of a value at most.
const CELL_BYTES_MAX: u32 = 1 << 24;

/// An entry of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry<'m> {
    /// Its key.
    pub key: Box<[u8]>,
    /// Its values, each with its CPU: 0 if CPUs share it. A CPU that never used the map has none.
    pub values: Vec<(usize, &'m [u8])>,
}

/// A map with its entries.
#[derive(Clone, Debug)]
pub struct BpfMap {
    definition: MapDefinition,
    /// Bytes from a value to the next.
    stride: usize,
    /// Values of each CPU; of one, if CPUs share them.
    values: Vec<Vec<u8>>,
    /// Slots of keys in hash tables.
    table: Option<KeySlots>,
    /// Which slots of hash tables have a key.
    taken: Vec<bool>,
    free: Vec<u32>,
    /// Whether the key of a slot was used since the hand passed, and the hand.
    used: Vec<bool>,
    hand: usize,
}

impl BpfMap {
    pub(super) fn new(definition: MapDefinition, allowance: &mut usize) -> Result<Self, MapDefinitionProblem> {
        let kind = definition.map_type;
        let stride = (definition.value_bytes as usize).next_multiple_of(8);
        let fail = |kind| Err(MapDefinitionProblem { name: definition.name.clone(), kind });
        let mut values = Vec::new();
        if kind.is_table() {
            let (key_bytes, value_bytes) = (definition.key_bytes, definition.value_bytes);
            if kind.is_array() && key_bytes != 4 {
                return fail(MapDefinitionProblemKind::ArrayKey { found: key_bytes });
            }
            if [key_bytes, value_bytes].iter().any(|bytes| !(1..=CELL_BYTES_MAX).contains(bytes)) {
                return fail(MapDefinitionProblemKind::Sizes { key_bytes, value_bytes, limit: CELL_BYTES_MAX });
            }
            if definition.entries_max == 0 {
                return fail(MapDefinitionProblemKind::NoEntries);
            }
            let bytes = stride as u64 * u64::from(definition.entries_max);
            if kind.is_array() {
                if bytes > *allowance as u64 {
                    let limit = MAP_BYTES_MAX as u64;
                    return fail(MapDefinitionProblemKind::Memory { found: bytes, limit });
                }
                *allowance -= bytes as usize;
                values.push(vec![0; bytes as usize]);
            } else {
                values.push(Vec::new());
            }
        }
        let is_hash = kind.is_table() && !kind.is_array();
        let table = is_hash.then(|| KeySlots::new(definition.key_bytes as usize, stride));
        let (taken, free, used) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { definition, stride, values, table, taken, free, used, hand: 0 })
    }

    /// Its definition.
    #[must_use]
    pub fn definition(&self) -> &MapDefinition {
        &self.definition
    }

    /// Its entries, in the order of their slots.
    pub fn entries(&self) -> impl Iterator<Item = MapEntry<'_>> {
        let slots =
            if self.definition.map_type.is_array() { self.definition.entries_max as usize } else { self.taken.len() };
        let slots = if self.definition.map_type.is_table() { slots } else { 0 };
        (0..slots as u32).filter_map(|slot| Some(MapEntry { key: self.key(slot)?, values: self.values_of(slot) }))
    }

    fn values_of(&self, slot: u32) -> Vec<(usize, &[u8])> {
        let (at, size) = (slot as usize * self.stride, self.definition.value_bytes as usize);
        let values = self.values.iter().enumerate();
        values.filter_map(|(cpu, values)| Some((cpu, values.get(at..at + size)?))).collect()
    }

    /// Fills the first value, as loaders fill the variables of a program; bytes beyond it are ignored.
    pub fn fill(&mut self, bytes: &[u8]) {
        if let Some(values) = self.values.first_mut() {
            let size = bytes.len().min(self.definition.value_bytes as usize).min(values.len());
            values[..size].copy_from_slice(&bytes[..size]);
        }
    }

    /// The key of a slot; `None`: it is free.
    pub(super) fn key(&self, slot: u32) -> Option<Box<[u8]>> {
        if self.definition.map_type.is_array() {
            return (slot < self.definition.entries_max).then(|| slot.to_le_bytes().into());
        }
        let is_taken = *self.taken.get(slot as usize)?;
        is_taken.then(|| self.table.as_ref().map(|table| table.key(slot).into()))?
    }

    /// Slots that there are or were.
    pub(super) fn slot_count(&self) -> u32 {
        if self.definition.map_type.is_array() { self.definition.entries_max } else { self.taken.len() as u32 }
    }

    /// The slot of a key.
    pub(super) fn find(&mut self, key: &[u8]) -> Option<u32> {
        if self.definition.map_type.is_array() {
            let index = u32::from_le_bytes(*key.first_chunk()?);
            return (index < self.definition.entries_max).then_some(index);
        }
        let slot = self.table.as_ref()?.find(key)?;
        self.used[slot as usize] = true;
        Some(slot)
    }

    /// Where the value of a slot begins, in the values of a CPU, which are made if there are none.
    pub(super) fn place(&mut self, slot: u32, cpu: u32, allowance: &mut usize) -> Result<u32, i64> {
        let at = slot as usize * self.stride;
        let end = at + self.stride;
        let cpu = if self.definition.map_type.is_per_cpu() { cpu as usize } else { 0 };
        if cpu >= CPUS_MAX {
            return Err(TOO_BIG);
        }
        let size = if self.definition.map_type.is_array() { self.slot_count() as usize * self.stride } else { end };
        if self.values.len() <= cpu {
            let more = (cpu + 1 - self.values.len()) * size_of::<Vec<u8>>();
            *allowance = allowance.checked_sub(more).ok_or(NO_MEMORY)?;
            self.values.resize(cpu + 1, Vec::new());
        }
        let values = &mut self.values[cpu];
        if values.len() < size {
            let more = size - values.len();
            *allowance = allowance.checked_sub(more).ok_or(NO_MEMORY)?;
            values.resize(size, 0);
        }
        Ok(at as u32)
    }

    /// Bytes that are looked at or cleared for a new key.
    pub(super) fn bytes_to_clear(&self) -> u64 {
        let used = self.values.iter().filter(|values| !values.is_empty()).count();
        (self.values.len() * size_of::<Vec<u8>>() + used * self.stride) as u64
    }

    /// The slot of a key that was not there, with values of 0. Values that CPUs share are there with it, or it is not.
    pub(super) fn insert(&mut self, key: &[u8], allowance: &mut usize) -> Result<u32, i64> {
        if self.table.as_ref().is_none_or(|table| table.len() >= self.definition.entries_max as usize) {
            if !self.definition.map_type.is_lru() {
                return Err(TOO_BIG);
            }
            self.drop_unused();
        }
        let slot = self.free.last().copied().unwrap_or(self.taken.len() as u32);
        let is_new = slot as usize == self.taken.len();
        let needed = if is_new { ENTRY_BYTES + 2 * key.len() } else { 0 };
        let mut left = allowance.checked_sub(needed).ok_or(NO_MEMORY)?;
        if !self.definition.map_type.is_per_cpu() {
            self.place(slot, 0, &mut left)?;
        }
        *allowance = left;
        if is_new {
            self.taken.push(true);
            self.used.push(false);
        } else {
            self.free.pop();
        }
        let at = slot as usize * self.stride;
        for values in &mut self.values {
            if let Some(value) = values.get_mut(at..at + self.stride) {
                value.fill(0);
            }
        }
        if let Some(table) = &mut self.table {
            table.insert(key, slot);
        }
        self.taken[slot as usize] = true;
        self.used[slot as usize] = false;
        Ok(slot)
    }

    /// Removes a key; 0, or the error number.
    pub(super) fn remove(&mut self, key: &[u8]) -> i64 {
        let Some(table) = &mut self.table else { return BAD_ARGUMENT };
        let Some(slot) = table.remove(key) else { return NO_ENTRY };
        self.taken[slot as usize] = false;
        self.free.push(slot);
        0
    }

    /// Removes the first entry that was not used since the hand passed it.
    fn drop_unused(&mut self) {
        // The first turn clears the marks at most: the second one finds an entry.
        for _ in 0..2 * self.taken.len() {
            let slot = self.hand % self.taken.len();
            self.hand = slot + 1;
            if std::mem::take(&mut self.used[slot]) {
                continue;
            }
            if let Some(key) = self.key(slot as u32) {
                self.remove(&key);
                return;
            }
        }
    }

    /// The value of a slot of the shared values.
    pub(super) fn value_at(&self, cpu: usize, offset: usize, size: usize) -> Option<&[u8]> {
        self.is_inside(offset, size).then(|| self.values.get(cpu)?.get(offset..offset + size))?
    }

    pub(super) fn value_at_mut(&mut self, cpu: usize, offset: usize, size: usize) -> Option<&mut [u8]> {
        if !self.is_inside(offset, size) {
            return None;
        }
        self.values.get_mut(cpu)?.get_mut(offset..offset + size)
    }

    /// Its hash table, if it is one.
    pub(super) fn table(&self) -> Option<&KeySlots> {
        self.table.as_ref()
    }

    /// All values of a CPU, or those that CPUs share.
    pub(super) fn values_mut(&mut self, cpu: usize) -> &mut [u8] {
        let cpu = if self.definition.map_type.is_per_cpu() { cpu } else { 0 };
        self.values.get_mut(cpu).map_or(&mut [], |values| &mut values[..])
    }

    /// Bytes from a value to the next.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Bytes from there are those of one value.
    fn is_inside(&self, offset: usize, size: usize) -> bool {
        let inside = if self.stride == 0 { 0 } else { offset % self.stride };
        inside + size <= self.definition.value_bytes as usize
    }
}
