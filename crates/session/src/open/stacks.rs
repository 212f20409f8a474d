//! Facts about the call stacks of traces, once they were read: addresses, and the code that processes had there.

mod code;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::open::report::ReportProblem;

pub(crate) use self::code::{FileMapping, ProcessCode, ToldStack};

/// Facts about the stacks of all traces.
#[derive(Debug, Default)]
pub(crate) struct StackFacts {
    pub(crate) traces: Vec<TraceStacks>,
    /// Places that could not be read.
    pub(crate) faults: Vec<ReportProblem>,
}

/// The stacks of a trace.
#[derive(Debug, Default)]
pub(crate) struct TraceStacks {
    pub(crate) stacks: BTreeMap<u32, PlacedStack>,
    /// Sources of code, by their numbers.
    pub(crate) sources: Vec<CodeSource>,
    /// By their first addresses.
    pub(crate) functions: BTreeMap<u64, FunctionRange>,
    /// Names of events that have stacks.
    pub(crate) events: Vec<(RangeInclusive<i128>, String)>,
    /// It is of this machine.
    pub(crate) is_here: bool,
}

/// A stack, the innermost addresses first; those of callers are in their calls.
#[derive(Debug)]
pub(crate) struct PlacedStack {
    pub(crate) kernel: Box<[u64]>,
    /// Places in code; `None`: the process had none there.
    pub(crate) user: Box<[Option<CodeOffset>]>,
}

/// A place in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeOffset {
    /// The number of the source.
    pub(crate) source: u32,
    /// Offset in the file; the address, where a process has made the code itself.
    pub(crate) offset: u64,
}

/// A function of the kernel.
#[derive(Debug)]
pub(crate) struct FunctionRange {
    /// Not in it any more.
    pub(crate) end: u64,
    pub(crate) name: String,
    /// Empty: it is none of a module.
    pub(crate) module: String,
}

/// The source of code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum CodeSource {
    /// A file.
    File(CodeFile),
    /// A process has made it itself; when it began, if that is known.
    Own(i32, Option<i64>),
    /// Something of the kernel: `[vdso]`.
    Special(String),
}

/// A file with code.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CodeFile {
    pub(crate) path: PathBuf,
    /// In hexadecimal; empty: unknown.
    pub(crate) build_id: String,
    /// 0: unknown.
    pub(crate) inode: u64,
    /// There was no file of that name any more.
    pub(crate) is_deleted: bool,
}
