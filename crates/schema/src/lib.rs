//! What traced programs define: events, their fields and log levels, and patterns of their names.
//!
//! A program says what its events are as text, which recorders parse:
//!
//! ```text
//! event net:sent            word     the words of that text, alone: a tracer has no allocator
//! level 6                   level    log levels
//! role begin                field    types of fields, from words and back
//! field u32 port            definition   the parser
//! field text host           meaning  roles of events and their facts, which travel in traces
//!                           glob     patterns of names
//!                           published    selections of sessions, which programs read when they start
//! ```
//!
//! It must never know any format of traces, nor memory of programs.

#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
pub mod definition;
#[cfg(feature = "std")]
pub mod field;
pub mod glob;
#[cfg(feature = "std")]
pub mod level;
#[cfg(feature = "std")]
pub mod meaning;
pub mod published;
pub mod word;

#[cfg(test)]
mod tests;
