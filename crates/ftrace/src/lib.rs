//! Events of the Linux kernel's ring buffers, as CTF events with LTTng's names.
//!
//! It must never know where bytes come from, nor files, threads, privileges.
//!
//! ```text
//! events/*/format ── EventFormat ──> EventCatalog ── EventPlan ─────────────┐
//! per_cpu/cpuN/trace_pipe_raw ── Page ──> PageRecord (ticks, bytes) ────────┴──> bytes of an event
//! ```

mod calls;
mod catalog;
pub mod fields;
pub mod format;
mod names;
mod page;
mod plan;

pub use catalog::{EventCatalog, PlanNumber};
pub use names::event_name;
pub use page::{LostBefore, Page, PageLayout, PageProblem, PageRecord, PageRecords};
pub use plan::{EVENT_HEAD_BYTES, EventPlan, KernelThreads, RecordContext, UnreadableRecord};
