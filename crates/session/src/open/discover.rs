//! Finds traces in the paths that users name. No other module of this crate asks [`kymo_source`]
//! where traces are.

use std::path::Path;

use kymo_source::{Importer, LiveState, SourceError, TraceFinder, TraceFolder};

use crate::open::logical;
use crate::open::report::ReportProblem;

/// Formats other than CTF.
#[cfg(not(test))]
const IMPORTERS: &[&dyn Importer] = &[];
/// Tests have one, which shows how the answers treat an imported file.
#[cfg(test)]
const IMPORTERS: &[&dyn Importer] = &[&tests::Numbers];

/// Results.
#[derive(Debug)]
pub(crate) struct Discovered {
    /// Traces in the order of the paths, and paths at which there is none.
    pub(crate) found: Vec<Result<TraceFolder, SourceError>>,
    /// Folders below the paths that could not be listed, and archives that are not whole.
    pub(crate) skipped: Vec<SourceError>,
}

/// All traces at or below the paths. Folders that are parts of one trace are one trace.
pub(crate) fn discover<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Discovered {
    discover_machines(paths, &|_| None)
}

/// The same, where folders that `machine` gives different numbers are of different machines.
pub(crate) fn discover_machines<P: AsRef<Path>>(
    paths: impl IntoIterator<Item = P>,
    machine: &dyn Fn(&Path) -> Option<usize>,
) -> Discovered {
    let mut finder = TraceFinder::with_importers(IMPORTERS);
    let mut found = Vec::new();
    for path in paths {
        match finder.find(path.as_ref()) {
            Ok(folders) => found.extend(folders.into_iter().map(Ok)),
            Err(error) => found.push(Err(error)),
        }
    }
    Discovered { found: logical::join(found, machine), skipped: finder.into_skipped() }
}

/// The traces at or below a path, or a reason why there are none or not all.
pub(crate) fn discover_all(path: &Path) -> Result<Vec<TraceFolder>, SourceError> {
    let Discovered { found, skipped } = discover([path]);
    let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
    skipped.into_iter().next_back().map_or(Ok(found), Err)
}

/// A recorder's description of the trace that it has begun in a folder, which may have no metadata
/// yet.
pub(crate) fn live(folder: &Path) -> Option<LiveState> {
    LiveState::of(folder)
}

impl Discovered {
    /// The traces, and unreadable folders.
    pub(crate) fn split(self) -> (Vec<TraceFolder>, Vec<SourceError>) {
        let (mut traces, mut errors) = (Vec::new(), Vec::new());
        for found in self.found {
            match found {
                Ok(folder) => traces.push(folder),
                Err(error) => errors.push(error),
            }
        }
        errors.extend(self.skipped);
        (traces, errors)
    }
}

/// Unreadable folders, for a report.
pub(crate) fn problem(error: &SourceError) -> ReportProblem {
    ReportProblem { place: error.path.display().to_string(), message: error.kind.to_string() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kymo_source::{ByteSource, Imported, Importer, SourceError};

    use crate::{OpenOptions, PrintOptions, Progress, Session};

    /// A file of lines with a number each, which become events.
    #[derive(Debug)]
    pub(super) struct Numbers;

    const HEAD: &[u8] = b"numbers\n";
    const METADATA: &str = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
        event { name = number; fields := struct { integer { size = 8; } value; }; };";

    impl Importer for Numbers {
        fn recognizes(&self, name: &Path, head: &[u8]) -> bool {
            name.extension().is_some_and(|extension| extension == "numbers") && head.starts_with(HEAD)
        }

        fn import(&self, file: &ByteSource) -> Result<Vec<Imported>, SourceError> {
            let text = String::from_utf8_lossy(&std::fs::read(file.path()).expect("it is there")).into_owned();
            let (mut bytes, mut problems) = (Vec::new(), Vec::new());
            for (number, line) in text.lines().enumerate().skip(1) {
                match line.parse::<u8>() {
                    Ok(value) => bytes.push(value),
                    Err(error) => problems.push(format!("line {}: `{line}`: {error}", number + 1)),
                }
            }
            let (name, metadata) = (String::new(), METADATA.as_bytes().to_vec());
            Ok(vec![Imported { name, metadata, streams: vec![("all".to_owned(), bytes)], problems }])
        }
    }

    /// Lines that an importer cannot read are reported with their places, and the others are read.
    #[test]
    fn an_importer_reports_bad_lines_and_keeps_the_others() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("a.numbers");
        std::fs::write(&path, "numbers\n7\nseven\n8\n300\n").expect("there is room");
        let session = Session::open(std::slice::from_ref(&path), &OpenOptions::default()).expect("it is a trace");
        let mut text = Vec::new();
        let printed = session.print(&PrintOptions::default(), &mut text, &Progress::default()).expect("it can be");
        let text = String::from_utf8(text).expect("it is text");
        assert!(text.contains("{ value = 7 }") && text.contains("{ value = 8 }"), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!printed.report.is_complete());
        let told: Vec<_> = printed.report.unreadable.iter().map(|problem| &*problem.message).collect();
        let bad =
            ["line 3: `seven`: invalid digit found in string", "line 5: `300`: number too large to fit in target type"];
        assert_eq!(told, bad);
        let findings = crate::check(&[path], &Progress::default()).expect("it goes on");
        let listed: Vec<_> =
            findings.iter().filter(|finding| finding.rule == "import").map(|found| &*found.message).collect();
        assert_eq!(listed, bad);
    }
}
