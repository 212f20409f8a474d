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

mod bell;
pub mod capture;
mod choose;
mod chunk;
pub mod client;
pub mod clock;
mod control;
mod daemon;
pub mod doctor;
mod drain;
pub mod filters;
pub mod find;
mod flight;
pub mod folder;
mod journal;
mod listen;
mod live;
mod mend;
pub mod namespaces;
mod objects;
pub mod output;
mod own;
pub mod program;
pub mod recover;
mod repair;
mod reply;
mod rest;
mod resume;
mod run;
pub mod select;
mod serve;
mod session;
mod started;
pub mod walk;
pub mod wire;
mod words;
mod writing;

pub use daemon::record_for_user;
pub use drain::{Position, Progress};
pub use kymo_filter::nearest;
pub use kymo_lane::contexts;
pub use mend::{Damage, MendProblem, Mended, mend};
pub use repair::{Repaired, repair};
pub use resume::Resumed;
pub use run::{End, Run, Sink};
