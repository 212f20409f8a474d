//! What events carry with them, before their own bytes, in this order.

/// `u16`: the CPU; 0xffff: nobody says.
pub const CPU: u64 = 1;
/// `u32`: the process, as it sees itself.
pub const PID: u64 = 1 << 1;
/// `u32`: the thread, as it sees itself.
pub const TID: u64 = 1 << 2;
/// 16 bytes: the thread's name, zeros behind.
pub const NAME: u64 = 1 << 3;
/// `u64`: the address behind the call of the site.
pub const IP: u64 = 1 << 4;
/// `u16`: how many, then so many `u64`: return addresses, the nearest first.
pub const STACK: u64 = 1 << 5;
/// Of contexts that the program defines, the first one; the others are the bits behind it, in the order of their ids.
pub const FIRST_OWN: u64 = 1 << 16;
/// How many of those there may be.
pub const OWN_MAX: u32 = 16;
/// All of those.
pub const ALL_OWN: u64 = ((1 << OWN_MAX) - 1) * FIRST_OWN;
