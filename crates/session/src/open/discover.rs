//! Finds traces in the paths that users name. No other module of this crate asks [`kymo_source`]
//! where traces are.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use kymo_source::{ImportOptions, ImportedFiles, Importers, LiveState, SourceError, TraceFinder, TraceFolder};

use crate::open::logical;
use crate::open::report::ReportProblem;

/// Formats other than CTF.
#[cfg(not(test))]
const IMPORTERS: Importers = kymo_import::IMPORTERS;
/// Tests have another one besides, which shows how the answers treat an imported file.
#[cfg(test)]
const IMPORTERS: Importers = Importers { files: &[&tests::Numbers], ..kymo_import::IMPORTERS };

/// How files in other formats are read, and those that were.
#[derive(Debug, Default)]
pub(crate) struct Importing {
    options: ImportOptions,
    known: Mutex<ImportedFiles>,
}

impl Importing {
    pub(crate) fn new(options: &ImportOptions) -> Self {
        Self { options: options.clone(), known: Mutex::default() }
    }
}

/// Results.
#[derive(Debug)]
pub(crate) struct Discovered {
    /// Traces in the order of the paths, and paths at which there is none.
    pub(crate) found: Vec<Result<TraceFolder, SourceError>>,
    /// Folders below the paths that could not be listed, and archives that are not whole.
    pub(crate) skipped: Vec<SourceError>,
}

/// All traces at or below the paths. Folders that are parts of one trace are one trace.
pub(crate) fn discover<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, options: &ImportOptions) -> Discovered {
    discover_machines(paths, &Importing::new(options), &|_| None)
}

/// Traces that are recorded, at or below a path: no files in other formats.
pub(crate) fn discover_recorded(path: &Path) -> Vec<Result<TraceFolder, SourceError>> {
    match TraceFinder::default().find(path) {
        Ok(folders) => folders.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    }
}

/// The same, where folders that `machine` gives different numbers are of different machines.
pub(crate) fn discover_machines<P: AsRef<Path>>(
    paths: impl IntoIterator<Item = P>,
    importing: &Importing,
    machine: &dyn Fn(&Path) -> Option<usize>,
) -> Discovered {
    let known = std::mem::take(&mut *importing.known.lock().unwrap_or_else(PoisonError::into_inner));
    let mut finder = TraceFinder::with_importers(IMPORTERS, importing.options.clone()).remembering(known);
    let mut found = Vec::new();
    for path in paths {
        match finder.find(path.as_ref()) {
            Ok(folders) => found.extend(folders.into_iter().map(Ok)),
            Err(error) => found.push(Err(error)),
        }
    }
    let (skipped, known) = finder.into_parts();
    *importing.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
    Discovered { found: logical::join(found, machine), skipped }
}

/// The traces at or below a path, or a reason why there are none or not all.
pub(crate) fn discover_all(path: &Path, options: &ImportOptions) -> Result<Vec<TraceFolder>, SourceError> {
    let Discovered { found, skipped } = discover([path], options);
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
    use kymo_source::{ByteSource, ImportOptions, Imported, Importer, SourceError};

    use crate::{OpenOptions, PrintOptions, Progress, Session};

    /// A file of lines with a number each, which become events.
    #[derive(Debug)]
    pub(super) struct Numbers;

    const HEAD: &[u8] = b"numbers\n";
    const METADATA: &str = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
        event { name = number; fields := struct { integer { size = 8; } value; }; };";

    impl Importer for Numbers {
        fn format(&self) -> &'static str {
            "file of numbers"
        }

        fn recognizes(&self, head: &[u8]) -> bool {
            head.starts_with(HEAD)
        }

        fn import(&self, file: &ByteSource, _: &ImportOptions) -> Result<Vec<Imported>, SourceError> {
            let text = String::from_utf8_lossy(&std::fs::read(file.path()).expect("it is there")).into_owned();
            let (mut bytes, mut problems) = (Vec::new(), Vec::new());
            for (number, line) in text.lines().enumerate().skip(1) {
                match line.parse::<u8>() {
                    Ok(value) => bytes.push(value),
                    Err(error) => problems.push(format!("line {}: `{line}`: {error}", number + 1)),
                }
            }
            let ready = Imported::ready(METADATA.as_bytes().to_vec(), vec![("all".to_owned(), bytes)]);
            Ok(vec![Imported { problems: problems.into_iter().collect(), ..ready }])
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
        let findings = crate::check(&[path], &ImportOptions::default(), &Progress::default()).expect("it goes on");
        let listed: Vec<_> =
            findings.iter().filter(|finding| finding.rule == "import").map(|found| &*found.message).collect();
        assert_eq!(listed, bad);
    }
}
