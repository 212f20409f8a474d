//! Bytes as a small trace class and a packet: see `kymo_promises::packets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kymo_promises::packets::hold(data));
