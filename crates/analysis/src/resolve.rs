//! The functions of stacks, which the caller of an analysis provides.

use std::fmt::Debug;

/// A stack of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct StackId {
    /// The trace: as [`Setup::traces`](crate::Setup::traces) has it.
    pub trace: u32,
    /// The number that its events give to the stack.
    pub number: u32,
}

/// A function in a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackFrame {
    /// Its name; without one, where its code is: `libc.so.6+0x9c0f4`. Empty: nothing is known.
    pub function: String,
    /// The file with its code, without its folders; `kernel`, or a module of it: `[loop]`.
    pub object: String,
    /// It is of the kernel.
    pub is_kernel: bool,
    /// Address of the function in its object, which tells functions of one name apart; 0: unknown, or the function is inlined.
    pub begin: u64,
}

/// Stacks with their functions.
#[derive(Clone, Debug, Default)]
pub struct ResolvedStacks {
    /// Each function once.
    pub frames: Vec<StackFrame>,
    /// For each stack that was asked for the places of its functions, the innermost first; functions of the kernel come before
    /// those of the program, and inlined ones are functions like others. `None`: the trace does not have the stack.
    pub stacks: Vec<Option<Vec<u32>>>,
}

/// Knows the functions of stacks.
pub trait StackResolver: Debug + Send + Sync {
    /// The functions of stacks.
    fn resolve(&self, stacks: &[StackId]) -> ResolvedStacks;

    /// The name of an event that stacks are of, as the trace has it.
    fn event(&self, trace: u32, event: u16) -> Option<String>;
}
