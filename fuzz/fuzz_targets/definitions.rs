//! Bytes as what a program says of an event: see `kymo_promises::definitions`.

#![no_main]

use kymo_promises::recorded::RecordingStage;
use kymo_promises::definitions;

thread_local! {
    static STAGE: RecordingStage = RecordingStage::new();
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    STAGE.with(|stage| definitions::hold(data, stage));
});
