//! Recording: finds programs, drains their lanes, and turns the events into CTF.
//!
//! This crate must never know analyses and user interfaces. It believes nothing that a program
//! says: it maps none of its memory, reads and writes it by system calls alone, and walks every
//! event before any reader has to.
//!
//! ```text
//! Program ── drain ──> Run: events of a lane, as they are ──> Output: walk, choose, name ──> packets, index
//!    └ definitions ──> EventClass ─────────────────────────────┘           └ metadata, as far as it is needed
//! ```
//!
//! Programs run on Linux.
//!
//! ```text
//! client ─┐                 ┌─> session ──> trace      one session: what it selects, its traces
//! doctor ─┼─> daemon ───────┤      └──> filters        filters in programs, and those the recorder evaluates
//! recover ┘      │          └─> program                one program: its memory, lanes, definitions, threads
//!                └─> protocol                          what commands and the recorder say to each other
//! select: rules which events are recorded   folder: folders of a user   clock: clocks of traces   capture: output of commands
//! packets: those of network interfaces
//! prepare: counters of CPUs, before a session   probes: functions and USDT probes in files, by their names
//! watch: events of the kernel, counted there   objects: users' eBPF programs in the kernel
//! ```

#![cfg(target_os = "linux")]

pub mod capture;
pub mod client;
pub mod clock;
mod daemon;
pub mod doctor;
pub mod filters;
pub mod folder;
pub mod kernel;
pub mod kernel_filter;
mod kernel_pairs;
pub mod kernel_rule;
mod layout;
mod number;
pub mod objects;
pub mod packets;
pub mod prepare;
mod presets;
pub mod probes;
pub mod program;
pub mod protocol;
pub mod recover;
pub mod rule;
pub mod select;
mod session;
pub mod trace;
pub mod tracepoints;
pub mod trigger;
pub mod user_programs;
pub mod watch;
mod watch_options;
mod words;
mod writing;

pub use daemon::record_for_user;
pub use kymo_filter::nearest;
pub use kymo_lane::contexts;
pub use program::drain::{DrainProgress, Position};
pub use program::run::{EventRun, LaneEnd, RunSink};
pub use trace::mend::{FileDamage, MendProblem, Mended, mend};
pub use trace::repair::{Repaired, repair};
pub use trace::resume::Resumed;
pub use words::{WordsProblem, WordsProblemKind};
