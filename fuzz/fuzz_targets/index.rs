//! Bytes as an index file: see `kymo_promises::index`.

#![no_main]

use kymo_promises::index::Indexed;

thread_local! {
    static INDEXED: Indexed = Indexed::new();
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| INDEXED.with(|indexed| indexed.hold(data)));
