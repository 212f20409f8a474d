//! The parts of a run that machine code needs: places in memory as addresses of the process, helper functions, and a way back to the
//! evaluator in the middle of a program.
//!
//! ```text
//! BpfMachine::begin ──> MachineRun ── machine code takes steps ── ends, or is stuck at an instruction ── finish: the evaluator goes on there
//! ```
//!
//! Everything here is safe: it gives out addresses, and whoever uses them must know how long they hold. Those of the context, of its data
//! and of the stack hold for the whole run, those of values until a helper function is called, and so do those of records.

use super::helper::BpfHelper;
use super::map::BpfMapType;
use super::memory;
pub use super::memory::MemoryPlace;
pub use super::memory::{
    FRAME_BYTES, FRAMES_MAX, context_address, function_address, map_address, map_at, stack_end, value_address,
};
use super::problem::MachineFault;
pub use super::run::{MachineFunctions, MachineRun, MapsVersion};
pub use super::table::KeyPlace;
use super::table::MULTIPLIER;

/// The number by which the home of a word in a hash table is found: both halves of the product of this and the word, which has been
/// mixed with the table's seed, are folded into one.
pub const HOME_MULTIPLIER: u64 = MULTIPLIER;

/// The sizes of a map that code depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSizes {
    /// Its type.
    pub map_type: BpfMapType,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Entries at most.
    pub entries_max: u32,
    /// Programs cannot write it.
    pub is_read_only: bool,
}

/// Where the parts of a map are in memory, until it changes.
#[derive(Clone, Copy, Debug)]
pub struct MapParts {
    /// Its sizes.
    pub shape: MapSizes,
    /// Values of the run's CPU, or those that CPUs share.
    pub values: *mut u8,
    /// Bytes of them.
    pub values_bytes: usize,
    /// Places of its hash table, of which there are a power of 2; null: it has none.
    pub places: *const KeyPlace,
    /// How many places, less 1.
    pub places_mask: u64,
    /// Mixed with words before their home is found.
    pub seed: u64,
}

/// Arguments that a helper function looks at.
#[must_use]
pub fn argument_count(number: u32) -> usize {
    match BpfHelper::of(number) {
        Some(
            BpfHelper::Nanos | BpfHelper::BootNanos | BpfHelper::Cpu | BpfHelper::ProcessAndThread | BpfHelper::Random,
        ) => 0,
        Some(BpfHelper::RingSubmit | BpfHelper::RingDiscard) => 1,
        Some(BpfHelper::MapLookup | BpfHelper::MapDelete | BpfHelper::ThreadName | BpfHelper::RingReserve) => 2,
        Some(BpfHelper::MapLookupOfCpu | BpfHelper::ProbeRead | BpfHelper::ProbeReadText | BpfHelper::CompareText) => 3,
        Some(BpfHelper::MapUpdate) => 4,
        _ => 5,
    }
}

/// Whether a helper function may move values of maps or records in memory, or call functions that do.
#[must_use]
pub fn may_move(number: u32) -> bool {
    !matches!(
        BpfHelper::of(number),
        Some(
            BpfHelper::Nanos
                | BpfHelper::BootNanos
                | BpfHelper::Random
                | BpfHelper::Cpu
                | BpfHelper::ProcessAndThread
                | BpfHelper::ThreadName
                | BpfHelper::ProbeRead
                | BpfHelper::ProbeReadText
                | BpfHelper::EventOutput
                | BpfHelper::RingOutput
                | BpfHelper::RingQuery
                | BpfHelper::PrintText
                | BpfHelper::PrintTextArray
                | BpfHelper::FormatText
                | BpfHelper::CompareText
        )
    )
}

/// Whether a helper function is the look-up of a key.
#[must_use]
pub fn is_map_lookup(number: u32) -> bool {
    BpfHelper::of(number) == Some(BpfHelper::MapLookup)
}

/// Whether a helper function may write into the stack, or call functions that do.
#[must_use]
pub fn may_write_stack(number: u32) -> bool {
    !matches!(
        BpfHelper::of(number),
        Some(
            BpfHelper::MapLookup
                | BpfHelper::MapUpdate
                | BpfHelper::MapDelete
                | BpfHelper::MapLookupOfCpu
                | BpfHelper::Nanos
                | BpfHelper::BootNanos
                | BpfHelper::Random
                | BpfHelper::Cpu
                | BpfHelper::ProcessAndThread
                | BpfHelper::EventOutput
                | BpfHelper::RingOutput
                | BpfHelper::RingReserve
                | BpfHelper::RingSubmit
                | BpfHelper::RingDiscard
                | BpfHelper::RingQuery
                | BpfHelper::PrintText
                | BpfHelper::PrintTextArray
                | BpfHelper::CompareText
        )
    )
}

impl MachineRun<'_> {
    /// Steps that are left.
    #[must_use]
    #[inline]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Says how many steps are left.
    #[inline]
    pub fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// The first byte of the stack, of [`FRAMES_MAX`] times [`FRAME_BYTES`] bytes.
    pub fn stack(&mut self) -> *mut u8 {
        self.memory.stack.as_mut_ptr()
    }

    /// Clears the stack of the function that is called inside of so many others, fewer than [`FRAMES_MAX`].
    ///
    /// # Panics
    ///
    /// If there are more.
    pub fn clear_frame(&mut self, depth: usize) {
        self.memory.clear_frame(depth);
    }

    /// Where the parts of a map are; `None`: there is no such map.
    pub fn map_parts(&mut self, map: usize) -> Option<MapParts> {
        let cpu = self.moment.cpu.unwrap_or(0) as usize;
        let map = self.memory.maps.get_mut(map)?;
        let definition = map.definition();
        let shape = MapSizes {
            map_type: definition.map_type,
            key_bytes: definition.key_bytes,
            value_bytes: definition.value_bytes,
            entries_max: definition.entries_max,
            is_read_only: definition.is_read_only,
        };
        let table = map.table().map(|table| (table.places().as_ptr(), table.places().len() as u64 - 1, table.seed()));
        let (places, places_mask, seed) = table.unwrap_or((std::ptr::null(), 0, 0));
        let values = map.values_mut(cpu);
        let (values, values_bytes) = (values.as_mut_ptr(), values.len());
        Some(MapParts { shape, values, values_bytes, places, places_mask, seed })
    }

    /// The place in memory with the bytes from an address, which may be written if `is_write`; `None`: they are not there.
    pub fn find_place(&mut self, address: u64, bytes: u64, is_write: bool) -> Option<MemoryPlace> {
        self.memory.place_of(address, bytes, is_write)
    }

    /// Calls the helper function of the instruction at an index, inside of so many functions.
    ///
    /// # Errors
    ///
    /// Why it stops there.
    ///
    /// # Panics
    ///
    /// If the instruction calls none.
    pub fn call_helper(&mut self, at: usize, arguments: [u64; 5], depth: usize) -> Result<u64, MachineFault> {
        let super::instruction::MachineInstruction::CallHelper { number } = self.code[at] else {
            panic!("instruction {at} calls no helper function")
        };
        self.call(number, arguments, (at, depth))
    }

    /// The evaluator goes on at an instruction of a function, inside of so many others, to the end of that function.
    ///
    /// # Errors
    ///
    /// Why it stops.
    pub fn finish(&mut self, at: usize, registers: &mut [u64; 11], depth: usize) -> Result<(), MachineFault> {
        registers[10] = memory::stack_end(depth);
        self.go_on(at, registers, depth)
    }
}
