//! How far the clocks of single traces are ahead, where several traces are opened as one experiment.
//!
//! ```text
//! --trace-offset host2=+1ms --trace-offset host2/ust=+1.5ms
//!
//! host1/kernel       0
//! host2/kernel    +1 ms     below host2
//! host2/ust     +1.5 ms     below both; host2/ust says more of it
//! ```
//!
//! An offset that applies to no trace is a mistake: without an error, the wrong times would go
//! unnoticed.

use std::fmt;
use std::path::{Path, PathBuf};

/// How far the clocks of a trace, or of all traces below a folder or in an archive, are ahead,
/// besides the shift of all clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOffset {
    /// The trace, folder or archive.
    pub path: PathBuf,
    /// Nanoseconds that are added to its times.
    pub offset_ns: i64,
}

/// Errors in offsets of traces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OffsetFailure {
    /// Nothing that is opened is there.
    #[error(
        "{}: an offset is given for its clocks, but it is none of the traces, nor has it one below; there {}",
        path.display(), Listed(found)
    )]
    NoTrace {
        /// The path as it was given.
        path: PathBuf,
        /// The traces.
        found: Vec<PathBuf>,
    },
    /// Both cannot be meant.
    #[error("{}: two offsets are given for its clocks, {first_ns:+} ns and {second_ns:+} ns; one is expected", path.display())]
    Twice {
        /// The path as it was given.
        path: PathBuf,
        /// One offset.
        first_ns: i64,
        /// The other one.
        second_ns: i64,
    },
}

impl OffsetFailure {
    /// The path that it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        let (Self::NoTrace { path, .. } | Self::Twice { path, .. }) = self;
        path
    }
}

/// Traces that are named in a message.
const NAMES_MAX: usize = 8;

/// `are: host1/kernel, host2/kernel`
struct Listed<'a>(&'a [PathBuf]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().take(NAMES_MAX).map(|path| path.display().to_string()).collect();
        f.write_str(if self.0.len() == 1 { "is: " } else { "are: " })?;
        f.write_str(&names.join(", "))?;
        match self.0.len().saturating_sub(NAMES_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Offsets that are to be applied.
pub(crate) struct Offsets<'a> {
    /// Each with its path as the system knows it.
    given: Vec<(PathBuf, &'a TraceOffset)>,
}

impl<'a> Offsets<'a> {
    /// Offsets that may be given together.
    pub(crate) fn new(offsets: &'a [TraceOffset]) -> Result<Self, OffsetFailure> {
        let mut given: Vec<(PathBuf, &TraceOffset)> = Vec::with_capacity(offsets.len());
        for offset in offsets {
            let path = resolved(&offset.path);
            if let Some((_, first)) = given.iter().find(|(known, _)| *known == path) {
                let (first_ns, second_ns) = (first.offset_ns, offset.offset_ns);
                return Err(OffsetFailure::Twice { path: offset.path.clone(), first_ns, second_ns });
            }
            given.push((path, offset));
        }
        Ok(Self { given })
    }

    /// Whether each of them is of one of these paths.
    pub(crate) fn check(&self, paths: &[PathBuf]) -> Result<(), OffsetFailure> {
        if self.given.is_empty() {
            return Ok(());
        }
        let resolved: Vec<PathBuf> = paths.iter().map(|path| resolved(path)).collect();
        let is_unused = |(path, _): &&(PathBuf, &TraceOffset)| !resolved.iter().any(|trace| trace.starts_with(path));
        match self.given.iter().find(is_unused) {
            None => Ok(()),
            Some((_, offset)) => Err(OffsetFailure::NoTrace { path: offset.path.clone(), found: paths.to_vec() }),
        }
    }

    /// The offset of a trace: the one that is given for the path nearest to it.
    pub(crate) fn of(&self, trace: &Path) -> i64 {
        self.number_of(trace).map_or(0, |number| self.given[number].1.offset_ns)
    }

    /// The number of that offset. Folders with different numbers are of different machines, even
    /// if they have one UUID.
    pub(crate) fn number_of(&self, trace: &Path) -> Option<usize> {
        if self.given.is_empty() {
            return None;
        }
        let trace = resolved(trace);
        let mine = (0..self.given.len()).filter(|number| trace.starts_with(&self.given[*number].0));
        mine.max_by_key(|number| self.given[*number].0.components().count())
    }
}

/// The path without links, from the root. Inside of an archive there are no files: resolves the
/// existing part of the path.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = absolute.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, there)) = there else { return absolute };
    match absolute.strip_prefix(above) {
        Ok(rest) if rest.as_os_str().is_empty() => there,
        Ok(rest) => there.join(rest),
        Err(_) => absolute,
    }
}

#[cfg(test)]
mod tests;
