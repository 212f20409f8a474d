//! Expressions of the filter language: text to typed predicates, predicates to bytecode and eBPF.
//!
//! It must never know CTF, nor files: whoever has events says through [`Fields`] what names mean.
//!
//! ```text
//! text ── syntax ──> Filter ── bind, for a class of events ──> Binding { ir::Predicate }
//!                                                                 ├── bytecode: for the interpreter in traced programs
//!                                                                 ├── eBPF: for the kernel
//!                                                                 └── (decode, jit: machine code)
//! ```

pub mod bpf;
mod fields;

pub use fields::{Constant, Dimension, Field, Fields, Found, Path, Step, Unit};
