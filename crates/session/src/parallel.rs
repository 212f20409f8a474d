//! Threads that read: where reading starts them, their input, and their results, which they hand
//! back in order.

pub(crate) mod desk;
pub(crate) mod engine;
pub(crate) mod priority;
