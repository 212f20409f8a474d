//! Recording: programs are found, their lanes drained, and what they hold becomes CTF.
//!
//! It must never know analyses and faces. It believes nothing that a program says: it maps none of its memory, reads and writes it by
//! system calls alone, and walks every event before any reader has to.
//!
//! ```text
//! Program ── drain ──> Run: events of a lane, as they are ──> Output: walk, choose, name ──> packets, index
//!    └ definitions ──> EventClass ─────────────────────────────┘           └ metadata, as far as it is needed
//! ```
//!
//! Programs run on Linux.

#![cfg(target_os = "linux")]

pub mod client;
pub mod clock;
mod daemon;
pub mod definition;
pub mod filters;
pub mod find;
pub mod folder;
mod glob;
mod listen;
pub mod output;
pub mod program;
mod reply;
mod run;
pub mod select;
mod serve;
mod session;
pub mod wire;

pub use daemon::record_for_user;
pub use run::{End, Run, Sink};
