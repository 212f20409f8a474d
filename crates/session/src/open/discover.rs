//! Finds traces in the paths that users name. No other module of this crate asks [`kymo_source`]
//! where traces are.

use std::path::Path;

use kymo_source::{Importer, LiveState, SourceError, TraceFinder, TraceFolder};

use crate::open::report::ReportProblem;

/// Formats other than CTF.
const IMPORTERS: &[&dyn Importer] = &[];

/// Results.
#[derive(Debug)]
pub(crate) struct Discovered {
    /// Traces in the order of the paths, and paths at which there is none.
    pub(crate) found: Vec<Result<TraceFolder, SourceError>>,
    /// Folders below the paths that could not be listed, and archives that are not whole.
    pub(crate) skipped: Vec<SourceError>,
}

/// All traces at or below the paths.
pub(crate) fn discover<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Discovered {
    let mut finder = TraceFinder::with_importers(IMPORTERS);
    let mut found = Vec::new();
    for path in paths {
        match finder.find(path.as_ref()) {
            Ok(folders) => found.extend(folders.into_iter().map(Ok)),
            Err(error) => found.push(Err(error)),
        }
    }
    Discovered { found, skipped: finder.into_skipped() }
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
