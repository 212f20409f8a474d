//! Programs of images as machine code: the state that code shares with the functions that it calls, and these functions.
//!
//! ```text
//! code(state, context, its bytes, stack, steps, arguments) -> r0
//!  ├── fill     a part of the context that is no plain number
//!  ├── find     where memory of the program is that the code does not know
//!  ├── helper   a helper function
//!  └── stuck    the interpreter goes on at an instruction, to the end: so every stop is named by it
//! ```
//!
//! Code is made for an image, for the addresses of these functions, and for the offsets of its maps in the shared memory.

#![allow(unsafe_code, reason = "machine code knows no borrows")]

use super::form::ObjectImage;
use super::limits::STEPS_MAX;
use super::memory::{ProgramPlace, RunMemory, stack_end};
use super::run::{ObjectRun, POINTER, moved};
use super::surroundings::{ObjectStop, ObjectSurroundings};
use crate::texts::Texts;

/// The part of a run that machine code reads and writes.
#[repr(C)]
#[derive(Debug)]
pub struct NativeState {
    /// Steps that are left, while a function is called.
    pub steps: u64,
    /// Functions outside of the one that runs.
    pub depth: u64,
    /// Not 0: the program has stopped.
    pub has_stopped: u64,
    /// The instruction that a function is called for, or at which the interpreter goes on.
    pub at: u64,
    /// Registers for the interpreter, and those beyond the convention of calls.
    pub registers: [u64; 11],
    /// The begin of all stacks, while a function is called.
    pub stack: *mut u8,
    /// The address for programs of the place that was found last.
    pub place_begin: u64,
    /// Its bytes.
    pub place_bytes: u64,
    /// Those that may be written.
    pub place_writable: u64,
    /// Where it is.
    pub place: *mut u8,
    /// The shared memory.
    pub base: *mut u8,
    /// Which of a map's lines the run has.
    pub line: u64,
}

// Recorders of other builds write code for these places: another layout, or other arguments of the functions, needs another number of
// `kymo_lane::ABI`.
const _: () = {
    assert!(core::mem::offset_of!(NativeState, registers) == 32 && core::mem::offset_of!(NativeState, stack) == 120);
    assert!(core::mem::offset_of!(NativeState, place_begin) == 128 && core::mem::offset_of!(NativeState, place) == 152);
    assert!(core::mem::offset_of!(NativeState, base) == 160 && core::mem::offset_of!(NativeState, line) == 168);
};

impl Default for NativeState {
    fn default() -> Self {
        Self {
            steps: 0,
            depth: 0,
            has_stopped: 0,
            at: 0,
            registers: [0; 11],
            stack: core::ptr::null_mut(),
            place_begin: 0,
            place_bytes: 0,
            place_writable: 0,
            place: core::ptr::null_mut(),
            base: core::ptr::null_mut(),
            line: 0,
        }
    }
}

/// Addresses of the functions that machine code of images calls; 0: there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NativeFunctions {
    /// `(state, number of a move)`: fills a part of the context.
    pub fill: u64,
    /// `(state, address, bytes, is written) -> place`; 0: there is none.
    pub find: u64,
    /// `(state, r1 ..= r5) -> r0`: the helper function that the instruction calls.
    pub helper: u64,
    /// `(state) -> r0`: the interpreter goes on.
    pub stuck: u64,
}

impl NativeFunctions {
    /// The addresses as words, as a program tells them.
    #[must_use]
    pub fn words(self) -> [u64; 4] {
        [self.fill, self.find, self.helper, self.stuck]
    }

    /// Those of [`words`](Self::words).
    #[must_use]
    pub fn of_words([fill, find, helper, stuck]: [u64; 4]) -> Self {
        Self { fill, find, helper, stuck }
    }
}

/// The arguments of an event, and what tells the texts behind addresses among them.
#[derive(Debug)]
pub struct EventArguments<'a, T> {
    /// The structure.
    pub bytes: &'a [u8],
    /// Texts.
    pub texts: &'a T,
}

/// Memory of a run; the stack has that of one function.
#[derive(Debug)]
pub struct NativeMemory<'m> {
    /// The context: zeros.
    pub context: &'m mut [u8],
    /// The stack: zeros.
    pub stack: &'m mut [u8],
    /// The shared memory.
    pub base: *mut u8,
    /// Which of a map's lines the run has: one that all its maps have, or that have one line only.
    pub line: u32,
}

/// A run of machine code.
#[repr(C)]
pub struct NativeRun<'r, S, T> {
    // Code has the address of this.
    state: NativeState,
    image: ObjectImage<'r>,
    arguments: EventArguments<'r, T>,
    context: *mut [u8],
    stack: *mut [u8],
    surroundings: *mut S,
    stop: Option<ObjectStop>,
}

/// The code of a program.
type NativeProgram = extern "C" fn(*mut NativeState, *mut u8, u64, *mut u8, u64, *const u8) -> u64;

impl<'r, S: ObjectSurroundings, T: Texts> NativeRun<'r, S, T> {
    /// The functions that its code calls.
    #[must_use]
    pub fn functions() -> NativeFunctions {
        NativeFunctions {
            fill: Self::fill as *const () as u64,
            find: Self::find as *const () as u64,
            helper: Self::helper as *const () as u64,
            stuck: Self::stuck as *const () as u64,
        }
    }

    /// Runs the code of an image, as [`ObjectImage::run`] does; it fills the context first.
    ///
    /// # Errors
    ///
    /// As [`ObjectImage::run`].
    ///
    /// # Safety
    ///
    /// At `code` is a function that was compiled for this image, for [`functions`](Self::functions) of this type, and for offsets of maps
    /// from `base`, where they are. Arguments have the image's size.
    #[inline]
    pub unsafe fn run(
        (image, code): (ObjectImage<'r>, usize),
        arguments: EventArguments<'r, T>,
        memory: NativeMemory<'_>,
        surroundings: &mut S,
    ) -> Result<u64, ObjectStop> {
        let NativeMemory { context, stack, base, line } = memory;
        let (context_place, context_bytes, stack_place) =
            (context.as_mut_ptr(), context.len() as u64, stack.as_mut_ptr());
        let (state, bytes) =
            (NativeState { base, line: line.into(), ..NativeState::default() }, arguments.bytes.as_ptr());
        let mut run = Self { state, image, arguments, context, stack, surroundings, stop: None };
        let pointer = &raw mut run;
        // Safety: the caller's promise. The state is the first part of the run. Nothing else uses the run, the context and the stack until
        // the code returns, but for the functions that it calls, one after the other.
        unsafe {
            let code: NativeProgram = core::mem::transmute(code);
            let result = code(pointer.cast(), context_place, context_bytes, stack_place, STEPS_MAX.into(), bytes);
            match (*pointer).stop {
                None => Ok(result),
                Some(stop) => Err(stop),
            }
        }
    }

    /// The memory of a run.
    ///
    /// # Safety
    ///
    /// Machine code waits for the function that calls this, and nothing else uses that memory meanwhile.
    #[inline]
    unsafe fn memory<'m>(run: *mut Self) -> RunMemory<'m, 'r, S> {
        // Safety: see above; it outlives the run.
        unsafe {
            RunMemory {
                image: (*run).image,
                context: &mut *(*run).context,
                stack: &mut *(*run).stack,
                surroundings: &mut *(*run).surroundings,
            }
        }
    }

    /// # Safety
    ///
    /// Machine code waits for the function that calls this.
    #[cold]
    unsafe fn stop(run: *mut Self, stop: ObjectStop) -> u64 {
        // Safety: see above.
        unsafe {
            ((*run).state.has_stopped, (*run).stop) = (1, Some(stop));
        }
        0
    }

    unsafe extern "C" fn fill(run: *mut Self, number: u64) -> u64 {
        // Safety: machine code hands in its state, which begins its run, and waits.
        unsafe {
            let (number, EventArguments { bytes, texts }) = (number as usize, &(*run).arguments);
            let context = &mut *(*run).context;
            (*run).image.moves().nth(number).and_then(|step| moved(&step, number, bytes, *texts, context));
        }
        0
    }

    unsafe extern "C" fn find(run: *mut Self, address: u64, bytes: u64, is_write: u64) -> u64 {
        // Safety: as above.
        unsafe {
            let found =
                Self::memory(run).find(address, bytes as usize).filter(|found| found.is_writable || is_write == 0);
            let Some(found) = found else { return 0 };
            let state = &mut (*run).state;
            let place = match found.place {
                ProgramPlace::Own(place) => place,
                ProgramPlace::Shared(at) => state.base.wrapping_add(at as usize),
            };
            (state.place_begin, state.place_bytes, state.place) = (found.begin, found.bytes, place);
            state.place_writable = if found.is_writable { found.bytes } else { 0 };
            place as u64 + (address - found.begin)
        }
    }

    unsafe extern "C" fn helper(run: *mut Self, first: u64, second: u64, third: u64, fourth: u64, fifth: u64) -> u64 {
        let registers = [0, first, second, third, fourth, fifth, 0, 0, 0, 0, 0];
        // Safety: as above.
        unsafe {
            let at = (*run).state.at as u32;
            let mut part = ObjectRun { memory: Self::memory(run), steps: (*run).state.steps as u32 };
            let result = part.helper(at as usize, &registers);
            (*run).state.steps = part.steps.into();
            match result {
                Ok(result) => result,
                Err(kind) => Self::stop(run, ObjectStop { at, kind }),
            }
        }
    }

    unsafe extern "C" fn stuck(run: *mut Self) -> u64 {
        // Safety: as above.
        unsafe {
            let mut registers = (*run).state.registers;
            registers[POINTER] = stack_end(0);
            let mut part = ObjectRun { memory: Self::memory(run), steps: (*run).state.steps as u32 };
            match part.execute((*run).state.at as usize, &mut registers) {
                Ok(result) => result,
                Err(stop) => Self::stop(run, stop),
            }
        }
    }
}
