//! The state of machine code beside the program's memory, and the functions that it calls.
//!
//! The state has one address for as long as the program is compiled, which its code has as a constant. Only raw pointers lead to it:
//! machine code, functions that it calls, and machine code that these call in turn all use it, one after the other.

use std::cell::Cell;

use kymo_bytecode::object::NativeState;
use kymo_ir::machine::native::{
    FRAMES_MAX, KeyPlace, MachineFunctions, MachineRun, MapSizes, MapsVersion, context_address,
};
use kymo_ir::machine::{BpfMachine, MachineFault, MachineProgram, MapDefinition, RunInput};

/// Shared by machine code and functions that it calls.
#[repr(C)]
#[derive(Debug)]
pub(super) struct MachineState {
    /// The part that code knows.
    of_code: NativeState,
    /// Parts of maps that the program uses.
    rows: Box<[MapRow]>,
    /// These maps, and the sizes for which code was made.
    maps: Box<[(usize, MapSizes)]>,
    /// When this was so; values of CPUs are looked for again in each run.
    version: MapsVersion,
    has_cpu_values: bool,
    /// The run, from when a function that machine code calls needs it.
    run: *mut MachineRun<'static>,
    begun: Option<MachineRun<'static>>,
    pending: PendingRun,
    fault: Option<MachineFault>,
}

/// The arguments of a run that has not begun: most short programs end without one.
#[derive(Clone, Copy, Debug)]
struct PendingRun {
    machine: *mut BpfMachine,
    program: *const MachineProgram,
    functions: *const FunctionTable,
    input: *mut RunInput<'static>,
}

impl PendingRun {
    const NONE: Self = Self {
        machine: std::ptr::null_mut(),
        program: std::ptr::null(),
        functions: std::ptr::null(),
        input: std::ptr::null_mut(),
    };
}

/// Where parts of a map are.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct MapRow {
    pub(super) values: *mut u8,
    pub(super) values_bytes: u64,
    pub(super) places: *const KeyPlace,
    pub(super) places_mask: u64,
    pub(super) seed: u64,
}

impl MapRow {
    const EMPTY: Self =
        Self { values: std::ptr::null_mut(), values_bytes: 0, places: std::ptr::null(), places_mask: 0, seed: 0 };
}

/// The offset of a field of the state's part that code knows.
macro_rules! state_offset {
    ($field:ident) => {
        std::mem::offset_of!(kymo_bytecode::object::NativeState, $field) as i32
    };
}
pub(super) use state_offset;

/// Owns a state.
#[derive(Debug)]
pub(super) struct StatePointer(*mut MachineState);

impl Drop for StatePointer {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and the code that has its address is of the same program, which runs no longer.
        #[allow(unsafe_code)]
        drop(unsafe { Box::from_raw(self.0) });
    }
}

pub(super) fn shape(map: &MapDefinition) -> MapSizes {
    MapSizes {
        map_type: map.map_type,
        key_bytes: map.key_bytes,
        value_bytes: map.value_bytes,
        entries_max: map.entries_max,
        is_read_only: map.is_read_only,
    }
}

impl StatePointer {
    pub(super) fn new(used: &[u32], maps_of: &[MapDefinition]) -> Self {
        let maps = used.iter().map(|map| (*map as usize, shape(&maps_of[*map as usize]))).collect();
        Self(Box::into_raw(Box::new(MachineState {
            of_code: NativeState::default(),
            rows: vec![MapRow::EMPTY; used.len()].into(),
            has_cpu_values: used.iter().any(|map| maps_of[*map as usize].map_type.is_per_cpu()),
            maps,
            version: MapsVersion::default(),
            run: std::ptr::null_mut(),
            begun: None,
            pending: PendingRun::NONE,
            fault: None,
        })))
    }

    pub(super) fn pointer(&self) -> *mut MachineState {
        self.0
    }

    /// The address of the first row.
    pub(super) fn rows(&self) -> usize {
        // SAFETY: the state is there, and nothing uses it now.
        #[allow(unsafe_code)]
        unsafe {
            (*self.0).rows.as_ptr() as usize
        }
    }

    /// Whether the state says where the maps of a machine are.
    #[inline]
    pub(super) fn is_known(&self, machine: &BpfMachine) -> bool {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            (*self.0).version == machine.maps_version()
        }
    }

    /// Whether the maps of a machine have the sizes for which code was made.
    pub(super) fn fits(&self, machine: &BpfMachine) -> bool {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        let maps = unsafe { &(*self.0).maps };
        maps.iter()
            .all(|(map, expected)| machine.maps().get(*map).is_some_and(|map| shape(map.definition()) == *expected))
    }

    /// Values of CPUs are looked for again in the next run, which may be on another one.
    pub(super) fn forget_cpu_values(&self) {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            if (*self.0).has_cpu_values {
                (*self.0).version = MapsVersion::default();
            }
        }
    }
}

/// The run for which machine code runs.
///
/// # Safety
///
/// Machine code waits for the function that calls this, and nothing else uses the state and the run.
#[allow(unsafe_code)]
unsafe fn running<'s>(state: *mut MachineState) -> &'s mut MachineRun<'static> {
    // SAFETY: the caller's promise. The arguments of a run outlive it: it ends in `run_first`, which has them, and uses none of
    // them before.
    unsafe {
        if (*state).run.is_null() {
            let PendingRun { machine, program, functions, input } = (*state).pending;
            let RunInput { context, data, moment } = &mut *input;
            let input = RunInput { context, data, moment };
            let run = (*machine).begin(&*program, input, Some(&*functions));
            (*state).run = (*state).begun.insert(run);
        }
        &mut *(*state).run
    }
}

/// Looks again where parts of maps are, and forgets the place that was found last.
///
/// # Safety
///
/// The state is there, and nothing else uses it now.
#[allow(unsafe_code)]
unsafe fn refresh(state: *mut MachineState, run: &mut MachineRun<'_>) {
    // SAFETY: the caller's promise.
    let (rows, maps) = unsafe {
        ((*state).of_code.place_bytes, (*state).of_code.place_writable) = (0, 0);
        if (*state).version == run.maps_version() {
            return;
        }
        (*state).version = run.maps_version();
        (&mut (*state).rows, &(*state).maps)
    };
    for (row, (map, _)) in rows.iter_mut().zip(maps) {
        let parts = run.map_parts(*map);
        *row = parts.map_or(MapRow::EMPTY, |parts| MapRow {
            values: parts.values,
            values_bytes: parts.values_bytes as u64,
            places: parts.places,
            places_mask: parts.places_mask,
            seed: parts.seed,
        });
    }
}

/// Functions of a program, by their first instruction, and where their machine code is.
#[derive(Debug)]
pub(super) struct FunctionTable {
    starts: Box<[usize]>,
    addresses: Box<[Cell<usize>]>,
    /// The first function of the program takes the context, and no other one.
    first_takes_context: bool,
    /// Functions read registers that their callers left.
    reads_left: bool,
    state: *mut MachineState,
}

/// The first function of most programs: it takes the context, its bytes, the stack, and the steps that are left.
type FirstFunction = extern "C" fn(*mut MachineState, *mut u8, u64, *mut u8, u64, u64) -> u64;

/// Another function, with its five arguments.
type MachineFunction = extern "C" fn(*mut MachineState, u64, u64, u64, u64, u64) -> u64;

impl FunctionTable {
    /// A table without machine code. `first_takes_context`: the first function of the program does, and nothing calls it; `reads_left`:
    /// functions read registers that their callers left.
    pub(super) fn new(
        starts: Box<[usize]>,
        [first_takes_context, reads_left]: [bool; 2],
        state: *mut MachineState,
    ) -> Self {
        let addresses = starts.iter().map(|_| Cell::new(0)).collect();
        Self { starts, addresses, first_takes_context, reads_left, state }
    }

    pub(super) fn set(&self, index: usize, address: usize) {
        self.addresses[index].set(address);
    }

    /// Where the address of a function is.
    pub(super) fn place(&self, index: usize) -> usize {
        self.addresses[index].as_ptr() as usize
    }

    /// Runs the program of these functions from its first instruction; its stack has been prepared. `is_known`: the state says
    /// where maps are.
    #[inline]
    pub(super) fn run_first(
        &self,
        program: &MachineProgram,
        machine: &mut BpfMachine,
        input: &mut RunInput<'_>,
        stack: *mut u8,
        is_known: bool,
    ) -> Result<u64, MachineFault> {
        let state = self.state;
        // SAFETY: machine code is not running, so that nothing uses the state. It says where maps are, or they are found first. `address` is a function of this type that was compiled from this program for this state; the engine that owns it lives as
        // long as the program. The context has as many bytes as were proven to be needed; beyond what was proven, it uses only bytes
        // after it has checked their place in a piece of memory.
        #[allow(unsafe_code)]
        unsafe {
            let (context, context_bytes) = (input.context.as_mut_ptr(), input.context.len() as u64);
            let steps = machine.steps_max();
            let input = std::ptr::from_mut(input).cast();
            (*state).pending = PendingRun { machine, program, functions: self, input };
            if !is_known {
                (*state).version = MapsVersion::default();
                refresh(state, running(state));
            }
            let result = if self.first_takes_context {
                let function: FirstFunction = std::mem::transmute(self.addresses[0].get());
                function(state, context, context_bytes, stack, steps, 0)
            } else {
                ((*state).of_code.stack, (*state).of_code.steps, (*state).of_code.registers) = (stack, steps, [0; 11]);
                let function: MachineFunction = std::mem::transmute(self.addresses[0].get());
                function(state, context_address(), 0, 0, 0, 0)
            };
            // Only functions that need a run stop a program.
            if (*state).run.is_null() { Ok(result) } else { self.end(result) }
        }
    }

    /// Ends a run that was begun.
    #[inline(never)]
    fn end(&self, result: u64) -> Result<u64, MachineFault> {
        // SAFETY: machine code has returned, so that nothing uses the state.
        #[allow(unsafe_code)]
        let has_stopped = unsafe {
            ((*self.state).run, (*self.state).begun) = (std::ptr::null_mut(), None);
            ((*self.state).of_code.place_bytes, (*self.state).of_code.place_writable, (*self.state).of_code.depth) =
                (0, 0, 0);
            (*self.state).of_code.has_stopped
        };
        if has_stopped == 0 { Ok(result) } else { Err(self.take_fault()) }
    }

    /// Why a program has stopped.
    // Moving a fault around takes longer than a short program, whether there is one or not.
    #[cold]
    fn take_fault(&self) -> MachineFault {
        // SAFETY: machine code has returned, so that nothing uses the state.
        #[allow(unsafe_code)]
        unsafe {
            (*self.state).of_code.has_stopped = 0;
            (*self.state).fault.take().expect("a program stops with a reason")
        }
    }

    /// Calls the machine code of a function; `None`: the program has stopped.
    ///
    /// # Safety
    ///
    /// The state says where the context, the stack and the maps of the run are, and the context has as many bytes as were proven to be
    /// needed; nothing else uses it now.
    #[inline]
    #[allow(unsafe_code)]
    unsafe fn call_code(&self, index: usize, [first, second, third, fourth, fifth]: [u64; 5]) -> Option<u64> {
        let (state, address) = (self.state, self.addresses[index].get());
        // SAFETY: `address` is a function of this type that was compiled from this program for this state; the engine that owns it lives
        // as long as the program. Beyond what was proven, it uses only bytes after it has checked their place in a piece of memory.
        unsafe {
            if self.reads_left {
                (*state).of_code.registers = [0; 11];
            }
            let function: MachineFunction = std::mem::transmute(address);
            let result = function(state, first, second, third, fourth, fifth);
            if (*state).of_code.has_stopped == 0 { Some(result) } else { None }
        }
    }
}

impl MachineFunctions for FunctionTable {
    fn call(
        &self,
        run: &mut MachineRun<'_>,
        start: usize,
        arguments: [u64; 5],
        depth: usize,
    ) -> Option<Result<u64, MachineFault>> {
        let index = self.starts.iter().position(|known| *known == start)?;
        if depth == 0 || depth >= FRAMES_MAX || index == 0 && self.first_takes_context {
            return None;
        }
        run.clear_frame(depth);
        let state = self.state;
        // SAFETY: machine code waits for the helper function that has called this, and nothing else uses the state. `run` is used by
        // functions that machine code calls, by the pointer in the state, and here again when they have returned.
        #[allow(unsafe_code)]
        unsafe {
            refresh(state, run);
            (*state).of_code.stack = run.stack();
            let before = ((*state).run, (*state).of_code.depth);
            (*state).run = std::ptr::from_mut(run).cast();
            ((*state).of_code.depth, (*state).of_code.steps) = (depth as u64, run.steps());
            let result = self.call_code(index, arguments);
            run.set_steps((*state).of_code.steps);
            ((*state).run, (*state).of_code.depth) = before;
            Some(result.ok_or_else(|| self.take_fault()))
        }
    }
}

/// Calls a helper function, which may change maps.
pub(super) extern "C" fn call_helper(
    state: *mut MachineState,
    first: u64,
    second: u64,
    third: u64,
    fourth: u64,
    fifth: u64,
) -> u64 {
    let arguments = [first, second, third, fourth, fifth];
    // SAFETY: machine code hands in its state, and waits for this function.
    #[allow(unsafe_code)]
    unsafe {
        let result = helped(state, arguments);
        refresh(state, running(state));
        result.unwrap_or_else(|fault| stop(state, fault))
    }
}

/// Calls a helper function that leaves maps and records where they are.
pub(super) extern "C" fn call_quiet_helper(
    state: *mut MachineState,
    first: u64,
    second: u64,
    third: u64,
    fourth: u64,
    fifth: u64,
) -> u64 {
    let arguments = [first, second, third, fourth, fifth];
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        helped(state, arguments).unwrap_or_else(|fault| stop(state, fault))
    }
}

/// The result of the helper function that the instruction calls.
///
/// # Safety
///
/// The state is that of machine code that waits; `run` is the run that it was started for.
#[allow(unsafe_code)]
#[inline]
unsafe fn helped(state: *mut MachineState, arguments: [u64; 5]) -> Result<u64, MachineFault> {
    // SAFETY: see above.
    unsafe {
        let run = running(state);
        run.set_steps((*state).of_code.steps);
        let result = run.call_helper((*state).of_code.at as usize, arguments, (*state).of_code.depth as usize);
        (*state).of_code.steps = run.steps();
        result
    }
}

/// # Safety
///
/// The state is there, and nothing else uses it now.
#[allow(unsafe_code)]
unsafe fn stop(state: *mut MachineState, fault: MachineFault) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        ((*state).of_code.has_stopped, (*state).fault) = (1, Some(fault));
    }
    0
}

/// Goes on in the evaluator, with the registers in the state; the function's result.
pub(super) extern "C" fn go_on(state: *mut MachineState) -> u64 {
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        let run = running(state);
        run.set_steps((*state).of_code.steps);
        let mut registers = (*state).of_code.registers;
        let result = run.finish((*state).of_code.at as usize, &mut registers, (*state).of_code.depth as usize);
        ((*state).of_code.steps, (*state).of_code.registers) = (run.steps(), registers);
        refresh(state, run);
        result.map_or_else(|fault| stop(state, fault), |()| registers[0])
    }
}

/// Goes into a function: its stack is cleared.
pub(super) extern "C" fn enter(state: *mut MachineState) -> u64 {
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        (*state).of_code.depth += 1;
        let run = running(state);
        (*state).of_code.stack = run.stack();
        run.clear_frame((*state).of_code.depth as usize);
    }
    0
}

/// Where bytes from an address of the program are, and the place around them for the next accesses; 0: they are not there.
pub(super) extern "C" fn find(state: *mut MachineState, address: u64, bytes: u64, is_write: u64) -> u64 {
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        let Some(place) = running(state).find_place(address, bytes, is_write != 0) else { return 0 };
        ((*state).of_code.place_begin, (*state).of_code.place_bytes) = (place.begin, place.bytes);
        (*state).of_code.place_writable = if place.is_writable { place.bytes } else { 0 };
        (*state).of_code.place = place.pointer;
        place.pointer as u64 + (address - place.begin)
    }
}
