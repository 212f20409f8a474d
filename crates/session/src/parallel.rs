//! Threads that read: where reading starts them, what they are given, and what they hand back in order.

pub(crate) mod desk;
pub(crate) mod engine;
pub(crate) mod priority;
