//! Events and spans of programs that use [`tracing`](https://docs.rs/tracing), handed to Kymograph's tracer.
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
//! What recorders see of that, and what it costs, says docs/tracer-rust.md.
//!
//! ```text
//! callsite ──registered──> site: definitions, all fields text        (site, definition)
//!    │ Filter::enabled: is one of its control bytes on?              (layer)
//!    └─event──> values: kinds, numbers, texts of `Debug`             (values)
//!                 └─ kinds ──> variant: another definition of the same event, with these types ──> filter ──> lane
//! ```
//!
//! Types of fields are known only when values come: so each callsite is defined twice at least, unless all it has is text. Nothing is locked
//! or allocated with an event, but when it is the first one of its kinds.

mod definition;
mod layer;
mod site;
mod values;

pub use layer::{Recording, Wanted, layer, only};

/// The examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tracer-rust.md")]
struct Documentation;
