//! Promises for any input, as functions over bytes: the bodies of fuzz targets, which tests run
//! too.
//!
//! It must never be part of anything handed to others: only tests and `fuzz/` use it. A promise
//! that is broken panics.
//!
//! ```text
//! bytes ── metadata ── parsing says what is wrong, and what it accepts can be written and read again
//!       ├─ index ───── index files of LTTng and of ours are read or refused
//!       ├─ imports ─── files in other formats are refused, or read without a fault, as are definitions of their events
//!       ├─ sites ───── programs with places for probes are read or refused, and their arguments are in registers and memory
//!       ├─ objects ─── eBPF objects are read or refused, and their programs run inside of their memory, or stop
//!       ├─ images ──── programs of eBPF do the same in traced programs as in the evaluator
//!       ├─ machine ─── programs of eBPF do the same in machine code as in the evaluator
//!       ├─ packets ─── evaluator, machine code and the plain tree reader find the same events and faults
//!       ├─ filters ─── text is an expression or is refused, and what binds can be evaluated
//!       ├─ programs ── evaluator and machine code run any read program alike
//!       ├─ definitions ─ what a program says of an event is refused, or can be named in a trace that is read
//!       ├─ recording ── a program that lies: the recorder goes on, and what it writes can be read and counted
//!       ├─ native ──── machine code of a filter keeps what the evaluator keeps
//!       ├─ bytecode ── what the validator accepts runs to its end, inside of its arguments, as its instructions say
//!       ├─ written ─── what the writer writes, every engine reads
//!       ├─ filtering ─ a filter in the scan finds what it is true for
//!       └─ fields ──── fields that are read alone have the values that they have among all
//! ```

pub mod bytecode;
#[cfg(target_os = "linux")]
pub mod definitions;
pub mod fields;
mod filter_text;
pub mod filtering;
pub mod filters;
#[cfg(target_os = "linux")]
pub mod images;
pub mod imports;
pub mod index;
pub mod kernel;
#[cfg(target_os = "linux")]
mod kernel_state;
mod kernel_switches;
mod kernel_texts;
pub mod machine;
mod measured;
pub mod metadata;
pub mod native;
pub mod objects;
pub mod packets;
mod plain_machine;
#[cfg(target_os = "linux")]
mod program;
pub mod programs;
mod random_bytecode;
mod random_program;
mod random_test;
pub mod reading;
#[cfg(target_os = "linux")]
pub mod recorded;
#[cfg(target_os = "linux")]
pub mod recording;
mod shaped;
pub mod sites;
pub mod starts;
mod stripped;
mod values;
pub mod written;

pub use kymo_random as random;
