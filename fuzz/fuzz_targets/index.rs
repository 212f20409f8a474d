//! Bytes as an index file: see `kymo_promises::index`.

#![no_main]

use kymo_promises::index::IndexedFolder;

thread_local! {
    static INDEXED: IndexedFolder = IndexedFolder::new();
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| INDEXED.with(|indexed| indexed.hold(data)));
