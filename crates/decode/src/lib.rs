//! A trace class to read programs, and packets to records, columns and text.
//!
//! It must never know files, threads, or callers.

mod builder;
mod clock;
pub mod columns;
mod decoder;
pub mod fields;
pub mod filter;
mod head;
mod hot;
mod lower;
mod measure;
mod names;
mod plan;
mod scopes;
mod slots;
pub mod text;
pub mod tree;
mod walk;

pub use clock::ClockConverter;
pub use decoder::{Compile, Decoder};
pub use head::{HeadError, PacketHead};
pub use lower::LowerError;
pub use names::FilterFacts;
