//! Bytes as events of the kernel: see `kymo_promises::kernel`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kymo_promises::kernel::hold(data);
});
