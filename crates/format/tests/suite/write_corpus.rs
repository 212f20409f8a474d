//! All metadata of the corpus that can be read can be written in both languages, and mean the same again.
//!
//! The corpus is not part of the repository: without it the test says so and passes.

use std::path::{Path, PathBuf};

use kymo_format::model::{Dialect, TraceClass};
use kymo_format::write::{as_ctf1, as_ctf2, to_json, to_tsdl};

fn corpus() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let root = std::env::var_os("KYMO_CORPUS").map_or(default, PathBuf::from);
    root.is_dir().then_some(root)
}

/// Every file named `metadata`.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be listed").path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().expect("entries have names").to_string_lossy().into_owned();
        if path.is_dir() {
            files(&path, found);
        } else if name == "metadata" {
            found.push(path);
        }
    }
}

fn read(text: &str, origin: &Path) -> TraceClass {
    let metadata = kymo_format::parse(text.as_bytes());
    let problems: Vec<String> =
        metadata.diagnostics.iter().map(|it| it.render_plain(&metadata.text, &origin.to_string_lossy())).collect();
    metadata.trace_class.unwrap_or_else(|| panic!("written metadata can be read:\n{}", problems.concat()))
}

#[test]
fn what_can_be_read_can_be_written() {
    let Some(root) = corpus() else {
        println!("CORPUS ABSENT: writing the corpus' metadata was not run");
        return;
    };
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let (mut sound, mut json, mut tsdl) = (0, 0, 0);
    let mut refused = Vec::new();
    for path in &paths {
        let Some(trace) = kymo_format::parse(&std::fs::read(path).unwrap()).trace_class else { continue };
        sound += 1;
        match to_json(&trace) {
            Ok(text) => {
                assert_eq!(read(&text, path), as_ctf2(&trace).unwrap(), "{}", path.display());
                json += 1;
            }
            Err(problem) => refused.push((path, trace.dialect, "CTF 2", problem)),
        }
        match to_tsdl(&trace) {
            Ok(text) => {
                assert_eq!(read(&text, path), as_ctf1(&trace).unwrap(), "{}", path.display());
                tsdl += 1;
            }
            Err(problem) => refused.push((path, trace.dialect, "TSDL", problem)),
        }
    }
    println!("metadata written again: {json} of {sound} as CTF 2, {tsdl} of {sound} as TSDL");
    for (path, dialect, language, problem) in &refused {
        println!("  {} ({dialect:?}) as {language}: {problem}", path.strip_prefix(&root).unwrap().display());
    }
    for (path, dialect, language, problem) in &refused {
        let own = (*dialect == Dialect::Ctf1) == (*language == "TSDL");
        assert!(!own && *language == "TSDL", "{} is not written as {language}: {problem}", path.display());
    }
    assert!(sound > 400, "only {sound} of {} are understood", paths.len());
}
