//! Passes events and spans of programs that use [`tracing`](https://docs.rs/tracing) to Kymograph's
//! tracer.
//!
//! It must never know recorders and files. A program needs one line, and no new instrumentation:
//!
//! ```
//! use tracing_subscriber::prelude::*;
//! tracing_subscriber::registry().with(kymo_tracing::layer()).init();
//!
//! let request = tracing::info_span!("request", id = 7);
//! request.in_scope(|| tracing::info!(port = 443, host = "example.org", "connected"));
//! ```
//!
//! docs/tracer-rust.md describes the recorded events and the cost.
//!
//! ```text
//! callsite ──registered──> site: definitions, all fields text        (site, definition)
//!    │ Filter::enabled: is one of its control bytes on?              (layer)
//!    └─event──> values: kinds, numbers, texts of `Debug`             (values)
//!                 └─ kinds ──> variant: another definition of the same event, with these types ──> filter ──> lane
//! ```
//!
//! The types of fields are known only when values arrive. So each callsite is defined at least
//! twice, unless all of its fields are text. An event takes no lock and allocates no memory, except
//! the first one with its combination of types.

mod definition;
mod layer;
mod site;
mod values;

pub use layer::{Recording, Wanted, layer, only};

/// Compiles the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tracer-rust.md")]
struct Documentation;
