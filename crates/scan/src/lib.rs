//! A set of traces as packets in time: packet index, clock correlation, batches, time merge.
//!
//! It must never know threads, caches on disk, SQL, or faces: the caller drives it.

pub mod merge;
