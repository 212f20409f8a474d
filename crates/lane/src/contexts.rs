//! Contexts: data that events carry before their own fields, in this order.

/// `u16`: CPU number; 0xffff: unknown.
pub const CPU: u64 = 1;
/// `u32`: process ID, as the process sees it.
pub const PID: u64 = 1 << 1;
/// `u32`: thread ID, as the process sees it.
pub const TID: u64 = 1 << 2;
/// 16 bytes: thread name, padded with zeros.
pub const NAME: u64 = 1 << 3;
/// `u64`: return address of the callsite.
pub const IP: u64 = 1 << 4;
/// `u16`: a count, then as many `u64` return addresses, innermost first.
pub const STACK: u64 = 1 << 5;
/// First of the contexts that the program defines; the others are the bits above it, in the order
/// of their IDs.
pub const FIRST_OWN: u64 = 1 << 16;
/// Maximum number of contexts that the program defines.
pub const OWN_MAX: u32 = 16;
/// Mask of all contexts that the program can define.
pub const ALL_OWN: u64 = ((1 << OWN_MAX) - 1) * FIRST_OWN;
