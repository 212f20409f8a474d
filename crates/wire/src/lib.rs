//! CTF byte facts that writers and readers share: magic numbers, layouts, bits, LEB128, clocks.
//!
//! It must never know files, metadata text or the heap: everything works on slices and integers,
//! so that a tracer inside a program and a reader on another machine use the same lines.
//!
//! ```text
//! magic      numbers at the beginning of packets, metadata packets and index files
//! metadata   the 37 bytes in front of each piece of packetised metadata
//! index      LTTng's index files
//! bits       integers of 1 to 64 bits at any bit, in any byte and bit order
//! leb128     integers of variable length
//! clock      full clock values from their low bits
//! ```

#![no_std]

#[cfg(test)]
extern crate std;

mod align;
pub mod bits;
pub mod clock;
pub mod index;
pub mod leb128;
pub mod magic;
pub mod metadata;

pub use align::align_up;
pub use bits::{get_bits, put_bits};
