//! Events of the Linux kernel's ring buffers, as CTF events with LTTng's names.
//!
//! It must never know where bytes come from, nor files, threads, privileges.
//!
//! ```text
//! events/*/format ── EventFormat ──> EventCatalog ── EventPlan ─────────────┐
//! per_cpu/cpuN/trace_pipe_raw ── Page ──> PageRecord (ticks, bytes) ────────┼──> bytes of an event
//! rings of perf ── SchedRecord ──> SchedTracker ── where there is no tracefs ───┤
//! rings of texts ── TextRecord ──> TextJoin ── the texts of a call ──────────┘
//! ```

mod call_names;
mod calls;
mod catalog;
mod compat;
pub mod fields;
pub mod format;
pub mod listing;
pub mod lttng;
mod names;
mod page;
pub mod perf_sched;
mod plan;
pub mod print;
mod probe;
pub mod shape;
pub mod stacks;
pub mod texts;

pub use call_names::{call_names, compat_call_name};
pub use calls::CallTable;
pub use catalog::{CallRecord, EventCatalog, PlanNumber, whole_call};
pub use names::{event_name, has_system};
pub use page::{LostBefore, Page, PageLayout, PageProblem, PageRecord, PageRecords};
pub use plan::{
    ARGUMENTS_MAX, AskedPlace, EVENT_HEAD_BYTES, EventPlan, KernelThreads, RecordContext, UnreadableRecord,
    record_thread,
};
pub use probe::ProbeFacts;
