//! Tests of packets.

mod classic;
mod pcapng;
