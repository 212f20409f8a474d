//! Bytes as what becomes of a program and its recorder: see `kymo_promises::recording`.

#![no_main]

use kymo_promises::random::Random;
use kymo_promises::recorded::Stage;
use kymo_promises::recording;

thread_local! {
    static STAGE: Stage = Stage::new();
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    STAGE.with(|stage| recording::hold(&mut Random::chosen(data), stage));
});
