//! What traced programs define: log levels, names of events and patterns of them.
//!
//! It must never know any format, nor memory of programs: these are words that all of them share.

pub mod glob;
pub mod level;
