//! Machine code with the meaning of the evaluator of `kymo-ir`.
//!
//! It must never know CTF, nor the text of predicates. It compiles with Cranelift on x86-64 and
//! aarch64; elsewhere, and where executable memory is not allowed, [`JitEngine::new`] reports that and
//! the evaluator does the work.
//!
//! ```text
//! ScanPlan ──Scan──> one loop: header inlined, bodies called through a table, filled as classes occur
//! Program ──Rows───> one loop over positions that fills columns
//! Program ──Text───> one call per record that prints it
//! Predicate ──NativeFilter──> code for other programs: one call per event that says whether to keep it
//! MachineProgram ──CompiledProgram──> a program of eBPF: one call per run
//!                ──compile_traced──> code for other programs: one call per event
//! ```
//!
//! Machine code never reports *why* it stopped. It gives back the record it is stuck at, and the
//! evaluator reads that record again and names the fault precisely.

mod body;
mod engine;
mod keep;
mod machine;
mod native;
mod pieces;
mod predicate;
mod rows;
mod scan;
mod sound;
mod text;
mod translate;

pub use engine::JitEngine;
pub use machine::{CompiledProgram, TracedPlaces, compile_traced};
pub use native::{LoadedCode, LoadedFilter, NativeFilter, NativeJudgement, NativeQuestion, NativeTarget};
pub use rows::CompiledRows;
pub use scan::{COMPILE_AFTER, Scan};
pub use text::CompiledText;
