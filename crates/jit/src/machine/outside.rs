//! What code of a program calls, and where it finds maps: in this process, or in a traced program.

use cranelift_codegen::ir::Signature;
use cranelift_codegen::isa::CallConv;
use kymo_bytecode::object::{ImageMove, NativeFunctions};
use kymo_ir::machine::BpfMapType;
use kymo_ir::machine::native::{FRAME_BYTES, FRAMES_MAX, may_move};

use super::state::{self, FunctionTable};
use crate::engine::of_words;

/// The surroundings of code.
#[derive(Clone, Copy)]
pub(super) struct CodeOutside<'o> {
    pub(super) convention: CallConv,
    pub(super) home: CodeHome<'o>,
}

/// Where code runs.
#[derive(Clone, Copy)]
pub(super) enum CodeHome<'o> {
    /// Here, for one state: the address of its first row of maps, and the functions of the program.
    Here { rows: usize, functions: &'o FunctionTable },
    /// In a traced program, beside other threads: the functions that it calls there, and for each map the offset of its first value in the
    /// shared memory.
    Traced { functions: NativeFunctions, values: &'o [u64], moves: &'o [ImageMove], context_bytes: u32 },
}

impl CodeOutside<'_> {
    /// A function of 64-bit integers.
    pub(super) fn signature(&self, parameters: usize) -> Signature {
        of_words(self.convention, parameters)
    }

    /// The address of the function that finds memory.
    pub(super) fn find(&self) -> u64 {
        match self.home {
            CodeHome::Here { .. } => state::find as *const () as u64,
            CodeHome::Traced { functions, .. } => functions.find,
        }
    }

    /// That of the function that calls a helper function.
    pub(super) fn helper(&self, number: u32) -> u64 {
        match self.home {
            CodeHome::Here { .. } if may_move(number) => state::call_helper as *const () as u64,
            CodeHome::Here { .. } => state::call_quiet_helper as *const () as u64,
            CodeHome::Traced { functions, .. } => functions.helper,
        }
    }

    /// That of the function that goes on where code is stuck.
    pub(super) fn stuck(&self) -> u64 {
        match self.home {
            CodeHome::Here { .. } => state::go_on as *const () as u64,
            CodeHome::Traced { functions, .. } => functions.stuck,
        }
    }

    /// Bytes of all stacks that code has.
    pub(super) fn stack_bytes(&self) -> u64 {
        let frames = if self.is_traced() { 1 } else { FRAMES_MAX };
        (FRAME_BYTES * frames) as u64
    }

    pub(super) fn is_traced(&self) -> bool {
        matches!(self.home, CodeHome::Traced { .. })
    }

    /// Whether code looks keys up in such a map by itself. Hash tables change while a traced program looks.
    pub(super) fn looks_up(&self, map: BpfMapType) -> bool {
        match map {
            BpfMapType::Array => true,
            BpfMapType::PerCpuArray => self.is_traced(),
            _ => !self.is_traced(),
        }
    }
}
