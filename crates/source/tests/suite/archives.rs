//! Archives as virtual folders give what the same files on disk give.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use kymo_source::{TraceFinder, TraceFolder, find};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// One session with two traces, and names that lead nowhere.
const FILES: [(&str, &str); 8] = [
    ("session/ust/metadata", "UST"),
    ("session/ust/chan_1", "second"),
    ("session/ust/chan_0", "first"),
    ("session/ust/.hidden", "no"),
    ("session/ust/index/chan_0.idx", "index"),
    ("./session/kernel/metadata", "KERNEL"),
    ("session/kernel/stream", "0123456789"),
    ("session/kernel/deeper/metadata", "not a trace of its own"),
];

fn tar_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn zip_of(method: CompressionMethod, files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn gzip_of(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// Everything that is in the traces of an archive of those bytes, or the message.
fn show(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive");
    fs::write(&path, bytes).unwrap();
    show_path(&path).replace(&path.display().to_string(), "ARCHIVE").replace('\\', "/")
}

fn show_path(path: &Path) -> String {
    match find(path) {
        Ok(traces) => show_traces(&traces),
        Err(error) => format!("{error}\n"),
    }
}

/// What is before the damage, and what is said of it.
fn show_broken(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive");
    fs::write(&path, bytes).unwrap();
    let mut finder = TraceFinder::default();
    let traces = finder.find(&path).unwrap();
    let skipped: Vec<String> = finder.skipped().iter().map(|skipped| format!("{skipped}\n")).collect();
    let text = show_traces(&traces) + &skipped.concat();
    text.replace(&path.display().to_string(), "ARCHIVE").replace('\\', "/")
}

fn show_traces(traces: &[TraceFolder]) -> String {
    let mut text = String::new();
    for trace in traces {
        let metadata = trace.metadata().unwrap();
        text += &format!("{} {}\n", trace.path().display(), String::from_utf8(metadata).unwrap());
        for (index, entry) in trace.streams().iter().enumerate() {
            let mut bytes = vec![0; 64];
            let read = trace.stream(index).read_at(1, &mut bytes).unwrap();
            let content = String::from_utf8_lossy(&bytes[..read]).into_owned();
            let lttng = trace.index_file(index).unwrap().is_some();
            text += &format!("  {} {} from byte 1: {content} index: {lttng}\n", entry.name, entry.size);
        }
    }
    text
}

const EXPECTED: &str = "\
ARCHIVE/session/kernel KERNEL
  stream 10 from byte 1: 123456789 index: false
ARCHIVE/session/ust UST
  chan_0 5 from byte 1: irst index: true
  chan_1 6 from byte 1: econd index: false
";

#[test]
fn every_packing_shows_the_same() {
    let tar = tar_of(&FILES);
    assert_eq!(show(&tar), EXPECTED, "tar");
    assert_eq!(show(&gzip_of(&tar)), EXPECTED, "tar.gz");
    assert_eq!(show(&zstd_of(&tar)), EXPECTED, "tar.zst");
    assert_eq!(show(&zip_of(CompressionMethod::Stored, &FILES)), EXPECTED, "zip, stored");
    assert_eq!(show(&zip_of(CompressionMethod::Deflated, &FILES)), EXPECTED, "zip, deflated");
}

#[test]
fn compressed_parts_may_follow_each_other() {
    // pigz, pzstd and `cat` write several members; they are one file.
    let tar = tar_of(&FILES);
    let (front, back) = tar.split_at(1000);
    assert_eq!(show(&[gzip_of(front), gzip_of(back)].concat()), EXPECTED);
    assert_eq!(show(&[zstd_of(front), zstd_of(back)].concat()), EXPECTED);
}

#[test]
fn long_names_are_whole() {
    let long = "folder-with-a-long-name/".repeat(12) + "trace";
    let (metadata, stream) = (format!("{long}/metadata"), format!("{long}/stream"));
    let shown = show(&tar_of(&[(&metadata, "M"), (&stream, "12")]));
    assert_eq!(shown, format!("ARCHIVE/{long} M\n  stream 2 from byte 1: 2 index: false\n"));
}

#[test]
fn pax_names_are_understood() {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in [("trace/metadata", "M"), ("trace/größe", "12")] {
        builder.append_pax_extensions([("path", name.as_bytes())]).unwrap();
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, "short", content.as_bytes()).unwrap();
    }
    let shown = show(&builder.into_inner().unwrap());
    assert_eq!(shown, "ARCHIVE/trace M\n  größe 2 from byte 1: 2 index: false\n");
}

#[test]
fn names_that_lead_out_are_not_there() {
    let mut tar = tar_of(&[("xx/metadata", "EVIL"), ("metadata", "GOOD"), ("a", "1")]);
    // The builder refuses such a name, an attacker does not.
    tar[..2].copy_from_slice(b"..");
    let sum: u32 = tar[..148].iter().chain(&[b' '; 8]).chain(&tar[156..512]).map(|&byte| u32::from(byte)).sum();
    tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert_eq!(show(&tar), "ARCHIVE GOOD\n  a 1 from byte 1:  index: false\n");
}

#[test]
fn an_archive_without_a_trace_says_what_it_holds() {
    assert_eq!(
        show(&tar_of(&[("notes.txt", "hello")])),
        "ARCHIVE: there is no trace here: neither this folder nor one below it has a file named `metadata`; it holds notes.txt\n"
    );
}

#[test]
fn a_cut_archive_gives_what_is_there() {
    let tar = tar_of(&[("metadata", "M"), ("stream", "0123456789")]);
    let cut = 3 * 512 + 4;
    let (metadata, end) = ("ARCHIVE M\n", "without its end mark: it was cut short\n");
    let stream = "  stream 4 from byte 1: 123 index: false\n";
    assert_eq!(show_broken(&tar[..cut]), format!("{metadata}{stream}ARCHIVE: the archive ends at byte {cut} {end}"));
    // Between two entries nothing else tells that one is missing.
    assert_eq!(show_broken(&tar[..1024]), format!("{metadata}ARCHIVE: the archive ends at byte 1024 {end}"));
}

/// Of what is compressed there is what could be unpacked.
#[test]
fn a_cut_compressed_archive_gives_what_is_there() {
    let mut seed = 1u32;
    let noise = (0..300_000).map(|_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'!' + (seed >> 26) as u8)
    });
    let noise: String = noise.collect();
    let tar = tar_of(&[("metadata", "M"), ("stream", &noise), ("then", "lost")]);
    let packed = gzip_of(&tar);
    let shown = show_broken(&packed[..packed.len() * 3 / 4]);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "ARCHIVE M"), "{shown}");
    let size: usize = lines[1].split(' ').nth(3).unwrap().parse().unwrap();
    assert!(size > 100_000 && size < 300_000, "{shown}");
    assert!(lines[2].starts_with("ARCHIVE: the compressed data can be unpacked to byte "), "{shown}");
    // Zstandard keeps its window to itself until a frame is complete; frames that are stay.
    let packed = [zstd_of(&tar[..100_000]), zstd_of(&tar[100_000..])].concat();
    let end = "ARCHIVE: the compressed data can be unpacked to byte 100000 only: it was cut short or is damaged\n";
    let shown = show_broken(&packed[..packed.len() * 3 / 4]);
    assert!(shown.starts_with("ARCHIVE M\n  stream 98464 from byte 1: ") && shown.ends_with(end), "{shown}");
}

#[test]
fn a_broken_archive_says_where() {
    let mut tar = tar_of(&[("metadata", "M"), ("stream", "0123456789")]);
    tar[1024 + 30] ^= 1;
    assert_eq!(show(&tar), "ARCHIVE: at byte 1024: expected the header of a tar entry\n");
    let gzip = gzip_of(&tar_of(&FILES));
    assert!(show(&gzip[..gzip.len() / 2]).starts_with("ARCHIVE: "));
    let zstd = zstd_of(&tar_of(&FILES));
    assert!(show(&zstd[..zstd.len() / 2]).starts_with("ARCHIVE: "));
    let zip = zip_of(CompressionMethod::Deflated, &FILES);
    assert!(show(&zip[..zip.len() / 2]).starts_with("ARCHIVE: "));
}

#[test]
fn no_mutant_of_an_archive_panics() {
    let tar = tar_of(&FILES);
    let all = [gzip_of(&tar), zstd_of(&tar), zip_of(CompressionMethod::Deflated, &FILES), tar];
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    for bytes in &all {
        for _ in 0..150 {
            let mut mutant = bytes.clone();
            for _ in 0..3 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (seed >> 33) as usize % mutant.len();
                mutant[at] ^= 1 << (seed & 7);
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("archive");
            fs::write(&path, &mutant).unwrap();
            if let Ok(traces) = find(&path) {
                for trace in traces {
                    let _ = trace.metadata();
                    for index in 0..trace.streams().len() {
                        let _ = trace.stream(index).read_at(0, &mut [0; 64]);
                    }
                }
            }
        }
    }
}

#[test]
fn a_bomb_is_refused() {
    // zstd packs zeros 30,000 times smaller; 64 MiB and a thousand times the size are allowed.
    let mut files = Vec::new();
    let zeros = "\0".repeat(80 << 20);
    files.push(("metadata", zeros.as_str()));
    let bomb = zstd_of(&tar_of(&files));
    let limit = bomb.len() as u64 * 1000 + (64 << 20);
    assert!(limit < 80 << 20, "the bomb packs too badly to be one: {}", bomb.len());
    assert_eq!(
        show(&bomb),
        format!(
            "ARCHIVE: the archive unpacks to more than {limit} bytes, which is suspicious: unpack it yourself if it is meant\n"
        )
    );
}

#[test]
fn in_a_trace_only_the_name_makes_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("metadata"), "M").unwrap();
    fs::write(folder.path().join("stream"), gzip_of(b"packets may begin like this")).unwrap();
    fs::write(folder.path().join("inner.tar"), tar_of(&FILES)).unwrap();
    assert_eq!(find(&folder.path().join("stream")).unwrap()[0].streams()[0].name, "stream");
    assert_eq!(find(&folder.path().join("inner.tar")).unwrap().len(), 2);
}
