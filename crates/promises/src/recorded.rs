//! A place for recordings, and traces that are read again.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kymo_recorder::clock::TickSource;
use kymo_recorder::trace::Tally;
use kymo_session::{OpenOptions, PrintOptions, Progress, Report, Session};

/// A folder in memory, and a clock that was watched for a while.
#[derive(Debug)]
pub struct RecordingStage {
    folder: tempfile::TempDir,
    clock: TickSource,
}

impl RecordingStage {
    /// Makes it.
    ///
    /// # Panics
    ///
    /// If there is no room.
    #[must_use]
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let mut clock = TickSource::begin(kymo_lane::ClockSource::Counter);
        clock.frequency();
        Self { folder: folder.expect("there is room"), clock }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The clock, for a later recording that goes on.
    pub(crate) fn clock(&self) -> TickSource {
        self.clock
    }

    /// The owner of these files.
    pub(crate) fn user(&self) -> u32 {
        std::fs::metadata(self.path()).expect("it is there").uid()
    }
}

impl Default for RecordingStage {
    fn default() -> Self {
        Self::new()
    }
}

/// The result of this project's reader for a trace.
#[derive(Debug)]
pub(crate) struct TraceReading {
    pub(crate) events: u64,
    pub(crate) report: Report,
}

impl TraceReading {
    /// Reads a trace, in which nothing may be wrong.
    pub(crate) fn read(path: &Path) -> Self {
        let session = Session::open(&[path.to_owned()], &OpenOptions::default()).expect("it is a trace");
        assert!(session.opening_report().is_complete(), "{:?}", session.opening_report());
        let mut text = Vec::new();
        let printed = session.print(&PrintOptions::default(), &mut text, &Progress::default()).expect("it is printed");
        assert!(printed.report.is_complete(), "{:?}", printed.report);
        let mut findings =
            kymo_session::check(&[path.to_owned()], &kymo_session::ImportOptions::default(), &Progress::default())
                .expect("nobody cancels it");
        // Programs write any bytes as text, and what a tracer lost is no fault of the trace.
        findings.retain(|finding| !["events-discarded", "packets-lost", "text-encoding"].contains(&finding.rule));
        assert!(findings.is_empty(), "{findings:?}");
        let events = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        Self { events, report: printed.report }
    }

    /// It agrees with its writer's tally, and reports the losses.
    pub(crate) fn is_what(&self, tally: &Tally) {
        assert_eq!(self.events, tally.events + tally.own, "{tally:?}");
        assert_eq!(self.report.events_discarded, tally.discarded, "{tally:?}");
        // Where bytes are no events, more is missing, and it is unknown how much.
        assert!(tally.unreadable > 0 || self.report.packets_lost == tally.missing, "{self:?}: {tally:?}");
    }
}
