//! Embeds the built pages of the viewer: `web/dist`, or what `KYMO_WEB_DIST` names. Without them there is one page that says how to
//! build them, so that neither building nor testing the server needs Node.
//!
//! ```text
//! web/dist/index.html          ──> EmbeddedFile { name: "/index.html", kind, bytes, gzip, tag }
//! web/dist/assets/main-4f2.js  ──> EmbeddedFile { name: "/assets/main-4f2.js", ... }
//! ```
//!
//! The table names copies in its own folder, so that the same pages are the same code wherever they are built.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-env-changed=KYMO_WEB_DIST");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=pages");
    let web = own.join("../../web");
    let built = std::env::var_os("KYMO_WEB_DIST").map_or_else(|| web.join("dist"), PathBuf::from);
    let pages = if built.join("index.html").is_file() { built } else { own.join("pages") };
    // A folder that is not there counts as changed each time; so it is its parent that is looked at until it is.
    for watched in [&pages, &web] {
        if watched.is_dir() && (watched != &web || !pages.starts_with(&web)) {
            println!("cargo::rerun-if-changed={}", watched.display());
        }
    }
    let mut files = Vec::new();
    collect(&pages, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for (number, path) in files.iter().enumerate() {
        embed(&pages, path, number, &out, &mut table)?;
    }
    table.push(']');
    fs::write(out.join("pages.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// A row of the table, and a compressed copy where that is smaller.
fn embed(root: &Path, path: &Path, number: usize, out: &Path, table: &mut String) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let parts = path.strip_prefix(root).expect("it was found there").components();
    let name = parts.fold(String::new(), |name, part| name + "/" + &part.as_os_str().to_string_lossy());
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes)?;
    let packed = encoder.finish()?;
    let gzip = if packed.len() < bytes.len() {
        let copy = format!("{number}.gz");
        fs::write(out.join(&copy), &packed)?;
        format!("Some(include_bytes!({copy:?}))")
    } else {
        "None".to_owned()
    };
    let source = format!("{number}.page");
    fs::write(out.join(&source), &bytes)?;
    let (kind, tag) = (kind(&name), tag(&bytes));
    writeln!(
        table,
        "EmbeddedFile {{ name: {name:?}, kind: {kind:?}, tag: \"{tag:016x}\", bytes: include_bytes!({source:?}), gzip: {gzip} }},"
    )
    .expect("memory takes all text");
    Ok(())
}

/// Of what kind a file is, by its name's end.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// FNV-1a: what changes when the content does.
fn tag(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |tag, byte| (tag ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
