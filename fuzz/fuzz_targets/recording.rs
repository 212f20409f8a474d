//! Bytes as what becomes of a program and its recorder: see `kymo_promises::recording`.

#![no_main]

use kymo_promises::random::RandomNumbers;
use kymo_promises::recorded::RecordingStage;
use kymo_promises::recording;

thread_local! {
    static STAGE: RecordingStage = RecordingStage::new();
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    STAGE.with(|stage| recording::hold(&mut RandomNumbers::chosen(data), stage));
});
