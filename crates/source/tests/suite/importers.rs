//! Files in other formats: importers recognize them by their content, and make traces of them.

use std::fs;
use std::path::Path;

use kymo_source::{
    ByteSource, FileTree, ImportNote, ImportOptions, Imported, Importer, Importers, SourceError, SourceErrorKind,
    TraceFinder, TraceFolder, TreeFile, TreeImporter,
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

/// Folders with the metadata `leaf`, which are one trace below a folder `wood`: each named file is a stream with its root's
/// name.
#[derive(Debug)]
struct Woods;

impl TreeImporter for Woods {
    fn is_root(&self, name: &str) -> bool {
        name == "wood"
    }

    fn recognizes(&self, metadata: &[u8]) -> bool {
        metadata == b"leaf"
    }

    fn takes(&self, importer: &dyn Importer) -> bool {
        importer.format() == Lines.format()
    }

    fn import(&self, tree: &FileTree, _: &ImportOptions) -> Result<Vec<Imported>, SourceError> {
        let files = tree.folders.iter().flat_map(|folder| &folder.streams).chain(&tree.files);
        let stream = |file: &TreeFile| {
            let root = tree.root.as_deref().unwrap_or("nowhere");
            (file.name.clone(), format!("{root} {}", file.size).into_bytes())
        };
        let mut trace = Imported::ready(Vec::new(), files.clone().filter(|file| file.is_named).map(stream).collect());
        for (stream, file) in trace.streams.iter_mut().zip(files.filter(|file| file.is_named)) {
            stream.file = Some(file.on_disk.clone());
        }
        Ok(if tree.folders.iter().any(|folder| folder.is_named) { vec![trace] } else { Vec::new() })
    }
}

fn finder() -> TraceFinder {
    let importers = Importers { files: &[&Lines], trees: &[&Woods] };
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
        ("lines\nm\na/\n", "its importer names a stream \"/a\", which is no name of its own"),
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
    let below = folder.path().join("below");
    fs::create_dir_all(trace.join("below")).unwrap();
    fs::create_dir_all(&below).unwrap();
    fs::write(trace.join("metadata"), "").unwrap();
    for path in [trace.join("x.lines"), trace.join("stream"), trace.join("below/any.name"), below.join("any.name")] {
        fs::write(path, "lines\nthe metadata\nfirst\n").unwrap();
    }
    fs::write(below.join("broken.lines"), "lines\n").unwrap();
    fs::write(below.join("other.lines"), "none\n").unwrap();
    let mut first = finder();
    let found = first.find(folder.path()).unwrap();
    let paths: Vec<&Path> = found.iter().map(TraceFolder::below).collect();
    assert_eq!(paths, [Path::new("a"), Path::new("a/x.lines"), Path::new("below/any.name")], "a trace has none below");
    let names: Vec<&str> = found[0].streams().iter().map(|stream| &*stream.name).collect();
    assert_eq!(names, ["stream"]);
    assert_eq!(found[1].notes(), [ImportNote { assumption: "frequency", what: "Some(7)".to_owned() }]);
    let [skipped] = first.skipped() else { panic!("one is broken") };
    assert_eq!(skipped.path, below.join("broken.lines"));
}

/// A folder without a trace has none of the known formats either.
#[test]
fn folders_of_other_files_are_no_traces() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes"), "other\n").unwrap();
    let told = finder().find(folder.path()).unwrap_err().to_string();
    assert!(told.ends_with("a file named `metadata`; no file is a file of lines; it holds notes"), "{told}");
}

/// The names of a trace's streams.
fn streams(trace: &TraceFolder) -> Vec<&str> {
    trace.streams().iter().map(|stream| &*stream.name).collect()
}

/// A stream's bytes.
fn text(trace: &TraceFolder, stream: usize) -> String {
    let mut bytes = vec![0; trace.streams()[stream].size as usize];
    trace.stream(stream).read_at(0, &mut bytes).expect("it can be read");
    String::from_utf8(bytes).expect("it is text")
}

/// Two leaves, one below the other, a file beside them, another trace and a file that nobody knows.
fn wood(folder: &Path) {
    fs::create_dir_all(folder.join("a/b")).expect("there is room");
    fs::create_dir_all(folder.join("other/deep")).expect("there is room");
    for (name, content) in [
        ("a/metadata", "leaf"),
        ("a/one", "1"),
        ("a/b/metadata", "leaf"),
        ("a/b/two", "22"),
        ("a/b/x.lines", "lines\nm\nabc\n"),
        ("other/metadata", "other"),
        ("other/stream", ""),
        ("other/deep/metadata", "leaf"),
        ("unknown", "4444"),
    ] {
        fs::write(folder.join(name), content).expect("there is room");
    }
}

#[test]
fn folders_of_a_tree_are_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("wood");
    wood(&root);
    let all = ["a/b/two", "a/b/x.lines", "a/one"];
    for named in ["", "wood"] {
        let found = finder().find(&folder.path().join(named)).unwrap();
        let paths: Vec<&Path> = found.iter().map(TraceFolder::path).collect();
        assert_eq!(paths, [&*root, &root.join("other")], "{named:?}");
        assert_eq!((streams(&found[0]), text(&found[0], 0)), (all.to_vec(), "wood 2".to_owned()));
        assert_eq!(found[0].identity(2).unwrap().size, 6, "of a/one, as a stream");
    }
    for (named, expected) in [("a/b", &all[..2]), ("a/b/two", &all[..1]), ("a/metadata", &all), ("a", &all)] {
        let found = finder().find(&root.join(named)).unwrap();
        assert_eq!((found.len(), streams(&found[0])), (1, expected.to_vec()), "{named}");
        assert_eq!(text(&found[0], 0), "wood 2", "the root is known");
    }
    // A trace of another kind, and a file of a format, are themselves.
    assert_eq!(streams(finder().find(&root.join("other")).unwrap().last().unwrap()), ["stream"]);
    assert_eq!(streams(&finder().find(&root.join("a/b/x.lines")).unwrap()[0]), ["cba"]);
    // What was imported is not imported again, unless a file of it is another one.
    let mut first = finder();
    first.find(&root).unwrap();
    let (_, imported) = first.into_parts();
    let again = |imported| text(&finder().remembering(imported).find(&root).unwrap()[0], 2);
    assert_eq!(again(imported.clone()), "wood 1");
    fs::write(root.join("a/one"), "333").unwrap();
    assert_eq!(again(imported), "wood 3");
}

/// A tree without a root begins at its outermost folder, on disk and in an archive.
#[test]
fn a_tree_may_have_no_root() {
    let folder = tempfile::tempdir().unwrap();
    let trees = folder.path().join("trees");
    wood(&trees.join("x/wood"));
    wood(&trees.join("y"));
    let archive = folder.path().join("all.tar");
    let mut packed = tar::Builder::new(fs::File::create(&archive).unwrap());
    packed.append_dir_all("", &trees).unwrap();
    packed.finish().unwrap();
    for named in [trees, archive] {
        let found = finder().find(&named).unwrap();
        let traces: Vec<(String, String)> = found
            .iter()
            .filter(|trace| !trace.streams().is_empty())
            .map(|trace| (trace.below().display().to_string(), streams(trace).join(" ")))
            .collect();
        let expected = [
            ("x/wood", "a/b/two a/b/x.lines a/one"),
            ("x/wood/other", "stream"),
            ("y/a", "b/two b/x.lines one"),
            ("y/other", "stream"),
        ];
        assert_eq!(
            traces,
            expected.map(|(path, streams)| (path.to_owned(), streams.to_owned())),
            "{}",
            named.display()
        );
    }
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
