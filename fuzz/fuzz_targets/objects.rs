//! Bytes as an eBPF object: see `kymo_promises::objects`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kymo_promises::objects::hold(data, None);
});
