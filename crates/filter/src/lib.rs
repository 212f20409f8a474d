//! Expressions of the filter language: text to typed predicates, predicates to bytecode and eBPF.
//!
//! It must never know CTF, nor files: the owner of the events gives names their meaning through
//! [`FieldResolver`].
//!
//! ```text
//! text ── syntax ──> Filter ── bind, for a class of events ──> Binding { ir::Predicate }
//!                                                                 ├── bytecode: for the interpreter in traced programs
//!                                                                 ├── eBPF: for the kernel
//!                                                                 └── (decode, jit: machine code)
//! ```
//!
//! ```text
//! lexer ──> parser ──> ast ──> check         types that no class of events can make right
//!             literal   │
//!                       └────> bind ──> fold ──> order ──> Binding
//!                              compare, measure
//! ```

mod ast;
mod bind;
mod binding;
pub mod bpf;
pub mod bytecode;
mod check;
mod compare;
mod fields;
mod filter;
mod fold;
mod lexer;
mod limits;
mod literal;
mod measure;
mod near;
mod order;
mod parser;
mod problem;
mod ranges;

pub use binding::{Binding, Verdict};
pub use fields::{Constant, Dimension, FieldResolver, FilterField, NamePath, NameStep, PathMeaning, Unit};
pub use filter::Filter;
pub use literal::{quantity, unit};
pub use near::nearest;
pub use problem::{FilterNote, FilterProblem, MissingName, ProblemKind, with_place};

#[cfg(test)]
mod tests;
