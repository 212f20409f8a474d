//! Bytes as a file in another format, as definitions of its events, or as a thread in a tree of folders: see `kymo_promises::imports`.

#![no_main]

use kymo_promises::imports::ImportFolder;

thread_local! {
    static FOLDER: ImportFolder = ImportFolder::new();
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| FOLDER.with(|folder| match data.split_first() {
    // No format begins with these bytes.
    Some((0xDE, definitions)) => folder.hold_definitions(definitions),
    Some((0xDD, thread)) => folder.hold_thread(thread),
    _ => folder.hold(data),
}));
