//! Programs of eBPF, as clang makes them, and the evaluator that runs them in user space.
//!
//! ```text
//! instructions, 8 bytes each ── MachineProgram::new ──> checked ── BpfMachine::run(context) ──> r0
//!   map 0, map 1, ... by index                                        │
//!                                                     maps ── records of rings ── lines of bpf_printk
//! ```
//!
//! Programs are refused before they run where one instruction could not: see [`MachineProgram`]. Everything else is checked while
//! they run: memory is a few pieces (`memory` draws them), and no number becomes an address of the process; each run has a limit of
//! steps, which are instructions, and bytes that helper functions copy: so its time has one, too. So a program that the kernel's verifier has never seen can do nothing but stop with a [`MachineFault`].
//!
//! Division by 0 is 0, a remainder by 0 is the first number, shifts are by the number modulo the width, as RFC 9669 defines them.
//! Results of 32 bits have zeros above. Memory is that of a little-endian machine.
//!
//! The helper functions are those that programs for tracing use most; facts about the event, such as its thread, are in
//! [`RunMoment`]. Where instructions and maps come from is the duty of callers: there a map is its index in a list.

mod calls;
mod helper;
mod instruction;
mod map;
mod memory;
pub mod native;
mod printing;
mod problem;
mod program;
mod run;
mod table;

pub use helper::name_of as helper_name;
pub use instruction::{
    ABSENT_FIELD_CALL, AluOperation, AtomicOperation, JumpRelation, MachineInstruction, MachineOperand, SwapOrder,
    WideConstant,
};
pub use map::{
    BpfMap, BpfMapType, MAP_BYTES_MAX, MapDefinition, MapDefinitionProblem, MapDefinitionProblemKind, MapEntry,
};
pub use problem::{MachineFault, MachineFaultKind, MachineProblem, MachineProblemKind};
pub use program::{INSTRUCTIONS_MAX, MachineProgram};
pub use run::{BpfMachine, OutputRecord, RunInput, RunMoment, RunOutputs, STEPS_MAX, data_address};
