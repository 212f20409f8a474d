//! The output of programs as a trace, wherever they run.

use std::path::{Path, PathBuf};

use kymo_session::bpf::{BpfClock, BpfMapContents, BpfObject, BpfOutput, BpfTrace, BpfTraceProblem};

use crate::message::write_line;
use crate::show::counted;
use crate::stop::StopReason;

const NANOS: i64 = 1_000_000_000;

/// A trace of the output of programs. Its folder is made when the time of the first output is known.
pub(crate) struct TracedOutput<'o> {
    folder: PathBuf,
    name: String,
    object: &'o BpfObject,
    is_unix: bool,
    /// The trace, and the time of its clock's zero.
    trace: Option<(BpfTrace, i64)>,
    /// The time of the last output.
    last_ns: i64,
}

impl<'o> TracedOutput<'o> {
    pub(crate) fn new(folder: &Path, path: &Path, object: &'o BpfObject, is_unix: bool) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { folder: folder.to_owned(), name, object, is_unix, trace: None, last_ns: 0 }
    }

    /// The trace begins now, with a clock whose zero is at this time.
    pub(crate) fn begin(&mut self, zero_ns: i64) -> Result<(), StopReason> {
        let clock = BpfClock { offset_ns: zero_ns, is_unix: self.is_unix };
        let trace = BpfTrace::create(&self.folder, self.object, &self.name, clock);
        self.trace = Some((trace.map_err(|problem| self.problem(&problem))?, zero_ns));
        Ok(())
    }

    fn problem(&self, problem: &BpfTraceProblem) -> StopReason {
        StopReason::unanswerable(&format!("{}: {problem}", self.folder.display()))
    }

    /// The trace and its zero, which is before this time.
    fn trace(&mut self, nanos: i64) -> Result<(&mut BpfTrace, i64), StopReason> {
        if self.trace.is_none() {
            // Times before the origin have a zero of their own.
            self.begin(nanos.min(0).div_euclid(NANOS).saturating_mul(NANOS))?;
        }
        let (trace, zero_ns) = self.trace.as_mut().expect("it was just put there");
        Ok((trace, *zero_ns))
    }

    /// Something that a program has put out; output without a time has that of the one before it.
    pub(crate) fn output(&mut self, output: &BpfOutput<'_>) -> Result<(), StopReason> {
        let (BpfOutput::Record { nanos, .. } | BpfOutput::Line { nanos, .. }) = output;
        let nanos = nanos.unwrap_or(self.last_ns);
        self.last_ns = nanos;
        let (trace, zero_ns) = self.trace(nanos)?;
        let cycles = cycles(nanos, zero_ns);
        let written = match output {
            BpfOutput::Record { map, value, .. } => trace.record(cycles, &map.name, value),
            BpfOutput::Line { text, .. } => trace.line(cycles, text),
        };
        written.map_err(|problem| self.problem(&problem))
    }

    /// No output from before this time is expected any more.
    #[cfg(target_os = "linux")]
    pub(crate) fn settle(&mut self, nanos: i64) -> Result<(), StopReason> {
        let Some((trace, zero_ns)) = &mut self.trace else { return Ok(()) };
        let settled = trace.settle(cycles(nanos, *zero_ns));
        settled.map_err(|problem| self.problem(&problem))
    }

    /// The maps at the end.
    pub(crate) fn finish(mut self, nanos: Option<i64>, maps: &[BpfMapContents], lost: u64) -> Result<(), StopReason> {
        let nanos = nanos.unwrap_or(self.last_ns);
        self.trace(nanos)?;
        let Some((trace, zero_ns)) = self.trace.take() else { return Ok(()) };
        let finished = trace.finish(cycles(nanos, zero_ns), maps, lost);
        let late = finished.map_err(|problem| self.problem(&problem))?;
        write_line(&format!("records and maps are in {}", self.folder.display()));
        if late > 0 {
            let records = counted(late, "record");
            write_line(&format!(
                "note: {records} came too late for the order of time, and got the time of the event before"
            ));
        }
        Ok(())
    }
}

fn cycles(nanos: i64, zero_ns: i64) -> u64 {
    u64::try_from(nanos.saturating_sub(zero_ns)).unwrap_or(0)
}
