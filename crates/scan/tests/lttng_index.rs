//! LTTng's index files: what is refused, and that real ones say what the packets say.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_decode::{Compile, Decoder};
use kymo_scan::index::{hop, parse_lttng_index, rows_of_lttng_index};

/// A header and entries of packets of these sizes in bytes; `minor` is the version.
fn index(minor: u32, sizes: &[u64]) -> Vec<u8> {
    let entry_bytes = if minor == 0 { 56 } else { 72u32 };
    let header = [0xC1F1_DCC1, 1, minor, entry_bytes];
    let mut bytes: Vec<u8> = header.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    let mut offset = 0;
    for (number, size) in sizes.iter().enumerate() {
        let number = number as u64;
        let entry = [offset, size * 8, size * 8 - 8, 100 + number, 200 + number, 7, 0, 3, number];
        bytes.extend(entry[..entry_bytes as usize / 8].iter().flat_map(|word| word.to_be_bytes()));
        offset += size;
    }
    bytes
}

/// Entries as text, or the message.
fn check(bytes: &[u8], file_bytes: u64, expected: &str) {
    let shown = match parse_lttng_index(bytes, file_bytes) {
        Ok(entries) => entries
            .iter()
            .map(|it| {
                format!(
                    "{}+{} {}..{} {:?};",
                    it.offset_bytes, it.total_bits, it.begin_cycles, it.end_cycles, it.stream_and_sequence
                )
            })
            .collect(),
        Err(error) => error.to_string(),
    };
    assert_eq!(shown, expected);
}

#[test]
fn both_versions_are_read() {
    check(&index(0, &[10, 20]), 30, "0+80 100..200 None;10+160 101..201 None;");
    check(&index(1, &[10, 20]), 30, "0+80 100..200 Some((3, 0));10+160 101..201 Some((3, 1));");
    // More data than the index knows: the rest is hopped.
    check(&index(1, &[10]), 30, "0+80 100..200 Some((3, 0));");
    check(&index(1, &[]), 30, "");
}

#[test]
fn what_is_no_index_is_refused() {
    check(&[], 0, "at byte 0: expected a header of 16 bytes, found 0 bytes");
    check(&[1; 16], 0, "at byte 0: expected the magic number 0xC1F1DCC1, found 0x01010101");
    let mut bytes = index(1, &[10]);
    bytes[7] = 2;
    check(&bytes, 10, "at byte 4: expected version 1.0 or 1.1 with entries of 56 or 72 bytes, found 2.1 with 72");
    let bytes = index(1, &[10, 20]);
    check(&bytes[..100], 30, "at byte 88: expected an entry of 72 bytes, found 12");
}

#[test]
fn packets_must_tile_the_file() {
    let bytes = index(1, &[10, 20]);
    let cannot = "at byte 88: a packet of 160 bits with 152 bits of content cannot be at byte 10 of 29";
    check(&bytes, 29, cannot);
    let mut gap = bytes.clone();
    gap[88 + 7] = 11;
    check(&gap, 30, "at byte 88: expected a packet at byte 10, found byte 11");
    let mut huge = bytes.clone();
    huge[88 + 8] = 0xFF;
    check(
        &huge,
        30,
        "at byte 88: a packet of 18374686479671623840 bits with 152 bits of content cannot be at byte 10 of 30",
    );
    let mut empty = bytes;
    empty[88 + 15] = 0;
    check(&empty, 30, "at byte 88: a packet of 0 bits with 152 bits of content cannot be at byte 10 of 30");
}

/// The folder of real traces.
fn corpus() -> Option<PathBuf> {
    let named = std::env::var_os("KYMO_CORPUS").map(PathBuf::from);
    let corpus = named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"));
    corpus.is_dir().then_some(corpus)
}

/// The folders below that have one called `index`.
fn indexed(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name() == "index" {
            found.push(folder.to_owned());
        }
        indexed(&entry.path(), found);
    }
}

#[test]
fn real_indexes_say_what_the_packets_say() {
    let Some(corpus) = corpus() else {
        println!("CORPUS ABSENT: real_indexes_say_what_the_packets_say not run");
        return;
    };
    let mut folders = Vec::new();
    indexed(&corpus, &mut folders);
    // Those of `faults` are wrong on purpose; what comes of them is tested where packets are read.
    folders.retain(|folder| !folder.starts_with(corpus.join("faults")));
    let (mut used, mut refused) = (0, Vec::new());
    for path in &folders {
        let Ok(found) = kymo_source::find(path) else {
            continue;
        };
        let folder = &found[0];
        let metadata = kymo_format::parse(&folder.metadata().expect("the metadata can be read"));
        let Some(class) = metadata.trace_class else {
            continue;
        };
        let decoder = Decoder::new(Arc::new(class), Compile::default()).expect("the classes can be decoded");
        for (file, entry) in folder.streams().iter().enumerate() {
            let stream = folder.stream(file);
            let Some(index) = folder.index_file(file).expect("the index can be read") else {
                continue;
            };
            match rows_of_lttng_index(&decoder, &stream, file as u32, entry.size, &index) {
                Ok(rows) => {
                    let (hopped, _) = hop(&decoder, &stream, file as u32, entry.size);
                    assert!(rows.iter().copied().eq(hopped.range(0..rows.len())), "{}", stream.path().display());
                    used += 1;
                }
                Err(error) => refused.push(format!("{}: {error}", stream.path().display())),
            }
        }
    }
    println!("{used} index files agree with the data, {} are refused", refused.len());
    assert!(used > 0, "{refused:#?}");
    // Version 1.0 lacks sequence numbers; a tracer of 2014 wrote another magic number; one trace was cut.
    let reasons = ["the packets have sequence numbers", "found 0x43544649", "invalid-packet-size"];
    refused.retain(|message| !reasons.iter().any(|reason| message.contains(reason)));
    assert_eq!(refused, Vec::<String>::new());
}
