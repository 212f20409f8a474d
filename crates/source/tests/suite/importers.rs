//! Files in other formats: importers recognize them by their content, and make traces of them.

use std::fs;
use std::path::Path;

use kymo_source::{
    ByteSource, ImportNote, ImportOptions, Imported, Importer, Importers, SourceError, SourceErrorKind, TraceFinder,
    TraceFolder,
};

/// Files that begin with `lines`: each further line is a stream, the first one the metadata.
#[derive(Debug)]
struct Lines;

impl Importer for Lines {
    fn format(&self) -> &'static str {
        "file of lines"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["lines"]
    }

    fn recognizes(&self, head: &[u8]) -> bool {
        head.starts_with(b"lines\n")
    }

    fn import(&self, file: &ByteSource, options: &ImportOptions) -> Result<Vec<Imported>, SourceError> {
        let mut bytes = [0; 512];
        let size = file.read_at(0, &mut bytes)?;
        let text = String::from_utf8_lossy(&bytes[..size]).into_owned();
        if text == "lines\nnone\n" {
            return Ok(Vec::new());
        }
        let mut lines = text.lines().skip(1);
        let missing = || SourceError {
            path: file.path().to_owned(),
            kind: SourceErrorKind::Import("line 2 is missing".to_owned()),
        };
        let metadata = lines.next().ok_or_else(missing)?.as_bytes().to_vec();
        // Lines that begin alike have one name.
        let stream = |line: &str| (line.chars().rev().take(3).collect(), line.as_bytes().to_vec());
        let problems = text.match_indices('?').map(|(at, _)| format!("byte {at}")).collect();
        let what = format!("{:?}", options.clock_frequency);
        let notes = vec![ImportNote { assumption: "frequency", what }];
        Ok(vec![Imported { problems, notes, ..Imported::ready(metadata, lines.map(stream).collect()) }])
    }
}

fn finder() -> TraceFinder {
    let importers = Importers { files: &[&Lines], nests: Some(|metadata| metadata == b"nests") };
    TraceFinder::with_importers(importers, ImportOptions { clock_frequency: Some(7), ..ImportOptions::default() })
}

#[test]
fn a_file_is_recognized_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.name");
    fs::write(&path, "lines\nthe metadata\nfirst\nsecond\n").unwrap();
    let [found] = &finder().find(&path).unwrap()[..] else { panic!("one trace is in it") };
    assert_eq!((found.path(), found.metadata().unwrap()), (&*path, b"the metadata".to_vec()));
    let names: Vec<(&str, u64)> = found.streams().iter().map(|stream| (&*stream.name, stream.size)).collect();
    assert_eq!(names, [("dno", 6), ("tsr", 5)], "in the order of names");
    let mut bytes = [0; 8];
    assert_eq!(found.stream(0).read_at(2, &mut bytes).unwrap(), 4);
    assert_eq!(&bytes[..4], b"cond");
    assert_eq!(found.stream(1).read_at(5, &mut bytes).unwrap(), 0, "it ends there");
    assert_eq!(found.index_file(0).unwrap(), None);
    assert!(found.live().is_none());
    // It is another one when the file is.
    let before = found.identity(0).unwrap();
    assert_eq!((before, before.size), (found.identity(0).unwrap(), 6));
    fs::remove_file(&path).unwrap();
    assert!(found.identity(0).is_err());
}

#[test]
fn what_nobody_recognizes_or_is_broken_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.lines");
    fs::write(&path, "other\n").unwrap();
    assert!(matches!(finder().find(&path).unwrap_err().kind, SourceErrorKind::NotInTrace { .. }));
    let error = finder().find(&path).unwrap_err().to_string();
    assert!(error.contains("zip archive, no file of lines, and its folder has no file"), "{error}");
    fs::write(&path, "lines\n").unwrap();
    assert_eq!(finder().find(&path).unwrap_err().to_string(), format!("{}: line 2 is missing", path.display()));
    // Without an importer, the file is not recognized.
    assert!(matches!(TraceFinder::default().find(&path).unwrap_err().kind, SourceErrorKind::NotInTrace { .. }));
    for (text, wrong) in [
        ("lines\nnone\n", "this is a file of lines, and there is no trace in it"),
        ("lines\nm\nabc\nabc\n", "its importer names a stream \"cba\", which is no name of its own"),
        ("lines\nm\na/b\n", "its importer names a stream \"b/a\", which is no name of its own"),
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(finder().find(&path).unwrap_err().to_string(), format!("{}: {wrong}", path.display()));
    }
    fs::write(&path, "lines\nm\nabc\n").unwrap();
    // In a folder with metadata, any bytes may begin a stream.
    fs::write(folder.path().join("metadata"), "").unwrap();
    let stream = folder.path().join("stream");
    fs::rename(&path, &stream).unwrap();
    assert_eq!(finder().find(&stream).unwrap()[0].path(), folder.path());
}

/// Those in folders are found with the traces there, and are no streams of them.
#[test]
fn files_in_folders_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a");
    let below = trace.join("below");
    fs::create_dir_all(&below).unwrap();
    fs::write(trace.join("metadata"), "nests").unwrap();
    for path in [trace.join("x.lines"), trace.join("stream"), below.join("any.name")] {
        fs::write(path, "lines\nthe metadata\nfirst\n").unwrap();
    }
    fs::write(below.join("broken.lines"), "lines\n").unwrap();
    fs::write(below.join("other.lines"), "none\n").unwrap();
    let mut first = finder();
    let found = first.find(folder.path()).unwrap();
    let paths: Vec<&Path> = found.iter().map(TraceFolder::below).collect();
    assert_eq!(paths, [Path::new("a"), Path::new("a/x.lines"), Path::new("a/below/any.name")]);
    let names: Vec<&str> = found[0].streams().iter().map(|stream| &*stream.name).collect();
    assert_eq!(names, ["stream"]);
    assert_eq!(found[1].notes(), [ImportNote { assumption: "frequency", what: "Some(7)".to_owned() }]);
    let [skipped] = first.skipped() else { panic!("one is broken") };
    assert_eq!(skipped.path, below.join("broken.lines"));
    // Other traces have none below.
    fs::write(trace.join("metadata"), "").unwrap();
    assert_eq!(finder().find(folder.path()).unwrap().len(), 2);
}

/// A file of nothing but faults is described by the first of them.
#[test]
fn problems_are_counted_behind_the_first_hundred() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.name");
    for (count, reported, last) in
        [(0, 0, None), (100, 100, Some("byte 105")), (103, 101, Some("and 3 more parts that could not be read"))]
    {
        fs::write(&path, format!("lines\n{}\n", "?".repeat(count))).unwrap();
        let [found] = &finder().find(&path).unwrap()[..] else { panic!("one trace is in it") };
        assert_eq!((found.problems().len(), found.problems().last().map(|problem| &**problem)), (reported, last));
    }
}
