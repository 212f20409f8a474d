//! Bytes as a file in another format, or as definitions of its events: see `kymo_promises::imports`.

#![no_main]

use kymo_promises::imports::ImportFolder;

thread_local! {
    static FOLDER: ImportFolder = ImportFolder::new();
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| FOLDER.with(|folder| match data.split_first() {
    // No format begins with that byte.
    Some((0xDE, definitions)) => folder.hold_definitions(definitions),
    _ => folder.hold(data),
}));
