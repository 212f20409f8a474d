//! eBPF object files, as clang and libbpf's conventions make them: programs, maps, variables, and their types.
//!
//! It must never know the kernel, traces, nor faces: it reads bytes.
//!
//! ```text
//! bytes ── BpfObject::read ──> programs ── link ──> instructions ── for_machine ──> kymo_ir::machine::MachineProgram
//!                              maps with BpfValueType of keys and values ── machine ──> BpfMachine
//!       ── kernel_object, counting_object ──> bytes of objects that loaders of the kernel take
//! ```
//!
//! The crate `object` reads the ELF file. The types (BTF) are read here: those of an object, and those of a kernel or of events that CO-RE
//! relocations are applied for. `aya-obj` reads both, too; it refuses sections that the kernel does not have, such as
//! `SEC("kymo/EVENT")`, and panics on damaged objects. Here any bytes are an object or are refused.

mod attach;
mod btf;
mod core;
mod counting;
mod elf;
mod extension;
mod link;
mod maps;
mod object;
mod parts;
mod problem;
mod rewrite;
mod value;

pub use attach::AttachPoint;
pub use btf::{BtfKind, BtfMember, BtfProblem, BtfType, BtfTypes};
pub use counting::{COUNT_SECTION, counting_object};
pub use extension::SourceLine;
pub use link::LinkedProgram;
pub use maps::ObjectMap;
pub use object::{BpfObject, MachineMaps, ObjectProgram};
pub use problem::{LinkProblem, ObjectProblem};
pub use rewrite::kernel_object;
pub use value::{BpfValue, BpfValueMember, BpfValueType};
