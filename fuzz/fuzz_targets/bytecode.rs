//! Bytes as bytecode: see `kymo_promises::bytecode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kymo_promises::bytecode::hold_as_they_are(data);
});
