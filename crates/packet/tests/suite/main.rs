//! Tests of packets.

mod classic;
#[cfg(target_os = "linux")]
mod kernel;
mod pcapng;
