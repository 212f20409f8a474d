//! Lines of `bpf_printk`: the kernel makes an event of each, which an instance of tracefs of our own passes on as text.
//!
//! ```text
//!           cat-1234    [001] ...11   123.456789: bpf_trace_printk: the line
//! ```
//!
//! The kernel does not say which program wrote a line: lines of all programs of the system are there.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use crate::tracefs::{TraceFs, TraceInstance};

/// The event of a line.
const EVENT: &str = "events/bpf_trace/bpf_trace_printk/enable";
const BEFORE_TEXT: &str = ": bpf_trace_printk: ";
/// Bytes that are read at a time.
const STEP: usize = 1 << 16;

/// An instance that records lines; it goes with this value.
pub(super) struct PrintedLines {
    instance: Option<TraceInstance>,
}

impl PrintedLines {
    /// Begins; returns the file that has them, too.
    pub(super) fn begin() -> Result<(Self, OwnedFd), String> {
        let fs = TraceFs::find().map_err(|problem| problem.to_string())?;
        let instance = fs.instance().map_err(|problem| problem.to_string())?;
        let mut lines = Self { instance: None };
        let set_up = || {
            instance.set("trace_clock", "mono")?;
            instance.set(EVENT, "1")?;
            let pipe = instance.pipe()?;
            instance.switch(true)?;
            Ok(OwnedFd::from(pipe))
        };
        let file = set_up().map_err(|problem: crate::tracefs::TraceFsProblem| problem.to_string());
        lines.instance = Some(instance);
        file.map(|file| (lines, file))
    }
}

impl Drop for PrintedLines {
    fn drop(&mut self) {
        if let Some(instance) = self.instance.take() {
            // The next helper removes one that stays.
            let _ = instance.remove();
        }
    }
}

impl TraceInstance {
    /// The file with its events as text, which goes on as they come.
    fn pipe(&self) -> Result<File, crate::tracefs::TraceFsProblem> {
        let path = self.place("trace_pipe");
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        file.map_err(|error| crate::tracefs::TraceFsProblem::File { path, error })
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedLine {
    /// Its time by `CLOCK_MONOTONIC`, in whole microseconds.
    pub nanos: Option<u64>,
    /// Its text.
    pub text: String,
}

/// Reads the lines that are there; `rest` keeps the begin of one that is not whole yet.
pub(super) fn read_lines(file: &mut File, rest: &mut Vec<u8>) -> std::io::Result<Vec<PrintedLine>> {
    let mut step = vec![0; STEP];
    loop {
        match file.read(&mut step) {
            Ok(0) => break,
            Ok(read) => rest.extend_from_slice(&step[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
            Err(error) => return Err(error),
        }
    }
    let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(Vec::new()) };
    let whole: Vec<u8> = rest.drain(..=end).collect();
    Ok(String::from_utf8_lossy(&whole).lines().filter_map(parsed).collect())
}

/// A line of the pipe; `None`: it is about something else, such as lost events.
fn parsed(line: &str) -> Option<PrintedLine> {
    let (head, text) = line.split_once(BEFORE_TEXT)?;
    Some(PrintedLine { nanos: head.rsplit(' ').next().and_then(nanos), text: text.trim_end().to_owned() })
}

/// `12.345678` as nanoseconds.
fn nanos(seconds: &str) -> Option<u64> {
    let (whole, part) = seconds.split_once('.')?;
    let part = (part.len() <= 9).then(|| format!("{part:0<9}"))?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_times_and_texts() {
        let line = "             cat-1234    [001] ...11   123.000789: bpf_trace_printk: a: b \n";
        let expected = PrintedLine { nanos: Some(123_000_789_000), text: "a: b".to_owned() };
        assert_eq!(parsed(line), Some(expected));
        assert_eq!(parsed("CPU:1 [LOST 5 EVENTS]"), None);
    }
}
