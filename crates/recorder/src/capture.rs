//! Lines that a program writes, recorded as events by the process that reads them:
//! `kymo record --capture-output`.
//!
//! ```text
//! bytes ── ends: \n, \r, \r\n ──> line ── at most LINE_BYTES, what is no text as \xNN ──> output:stdout, output:stderr
//! ```
//!
//! The reader thereby becomes a traced program. Its recorder knows it by a tag of its own, so that
//! a selection of the program's events does not affect the lines.

use std::borrow::Cow;
use std::fmt::Write;

use kymo_tracer::{Event, Field};

use crate::select::{SelectionRule, SelectionStep, StepKind};

/// Bytes of a line that are kept, at most: even if each of them becomes four, the event is not too
/// long.
pub const LINE_BYTES: usize = 4000;

static STDOUT: Event = Event::new(b"event output:stdout\nlevel 6\nfield text line\nfield u64 cut\nfield u32 pid\n");
static STDERR: Event = Event::new(b"event output:stderr\nlevel 4\nfield text line\nfield u64 cut\nfield u32 pid\n");

/// An output stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
}

/// Begins to record lines for a session that [selects] this word; returns whether there is memory
/// for them.
#[must_use]
pub fn begin(word: &str, contexts: u64) -> bool {
    // A process calls this once.
    kymo_tracer::record_for(String::leak(word.to_owned()), contexts);
    STDOUT.register() && STDERR.register()
}

/// The selection step of a session that is to have the lines.
#[must_use]
pub fn selects(word: &str) -> SelectionStep {
    let rule =
        SelectionRule { events: vec!["output:*".to_owned()], tag: Some(word.to_owned()), ..SelectionRule::default() };
    SelectionStep { act: StepKind::Enable, rule }
}

/// Count of recorded lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCount {
    /// Lines.
    pub lines: u64,
    /// Lines that were cut because they are too long.
    pub cut: u64,
}

/// The lines of a stream of a program.
#[derive(Debug)]
pub struct CapturedLines {
    stream: OutputStream,
    pid: u32,
    /// The begin of a line without an end so far, and the length of that line so far.
    begun: Vec<u8>,
    bytes: u64,
    /// The last byte was `\r`: a following `\n` does not end another line.
    has_returned: bool,
    count: LineCount,
}

impl CapturedLines {
    /// Lines of a process.
    #[must_use]
    pub fn of(stream: OutputStream, pid: u32) -> Self {
        Self { stream, pid, begun: Vec::new(), bytes: 0, has_returned: false, count: LineCount::default() }
    }

    /// Records the lines that end in these bytes, which follow earlier ones.
    pub fn take(&mut self, mut bytes: &[u8]) {
        if self.has_returned && !bytes.is_empty() {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            self.has_returned = false;
        }
        while let Some(at) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(at);
            if self.bytes == 0 {
                self.record(line, line.len() as u64);
            } else {
                self.keep(line);
                self.end();
            }
            let end = if rest.starts_with(b"\r\n") { 2 } else { 1 };
            self.has_returned = rest == b"\r";
            bytes = &rest[end..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        // One byte more shows whether a character goes on.
        let room = LINE_BYTES + 1 - self.begun.len();
        self.begun.extend(&bytes[..bytes.len().min(room)]);
        self.bytes += bytes.len() as u64;
    }

    /// Records the text after the last end of a line.
    pub fn end(&mut self) {
        if self.bytes > 0 {
            let begun = std::mem::take(&mut self.begun);
            self.record(&begun, self.bytes);
            (self.begun, self.bytes) = (begun, 0);
            self.begun.clear();
        }
    }

    /// The count so far.
    #[must_use]
    pub fn count(&self) -> LineCount {
        self.count
    }

    fn record(&mut self, line: &[u8], bytes: u64) {
        let shown = begin_of(line);
        let cut = bytes - shown.len() as u64;
        self.count.lines += 1;
        self.count.cut += u64::from(cut > 0);
        let event = match self.stream {
            OutputStream::Stdout => &STDOUT,
            OutputStream::Stderr => &STDERR,
        };
        record(event, &text(shown), cut, self.pid);
    }
}

/// The part of a line that is kept: whole characters.
fn begin_of(line: &[u8]) -> &[u8] {
    if line.len() <= LINE_BYTES {
        return line;
    }
    let goes_on = |byte: u8| byte & 0xc0 == 0x80;
    let end = (LINE_BYTES - 3..=LINE_BYTES).rfind(|end| !goes_on(line[*end]));
    &line[..end.unwrap_or(LINE_BYTES)]
}

/// Bytes as a text: shows invalid bytes, and zeros, which end texts for some readers, as C would
/// write them.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !bytes.contains(&0)
    {
        return text.into();
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\0' => text.push_str("\\x00"),
                character => text.push(character),
            }
        }
        // A write to a text cannot fail.
        chunk.invalid().iter().for_each(|byte| _ = write!(text, "\\x{byte:02x}"));
    }
    text.into()
}

/// Arguments of a line that filters see, laid out as in C.
#[repr(C)]
struct LineArguments<'a> {
    line: <&'a str as Field>::Argument,
    cut: u64,
    pid: u32,
}

fn record(event: &Event, line: &str, cut: u64, pid: u32) {
    let arguments = LineArguments { line: line.argument(), cut, pid };
    if !event.is_on() || !event.is_kept(&arguments) {
        return;
    }
    let fixed = <&str as Field>::FIXED + u64::FIXED + u32::FIXED;
    if let Some(mut write) = event.enter(fixed + line.varying()) {
        line.put(&mut write, line.varying());
        cut.put(&mut write, 0);
        pid.put(&mut write, 0);
        if cut > 0 {
            write.was_cut();
        }
        write.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines as they are recorded from chunks of bytes.
    fn lines(chunks: &[&[u8]]) -> (Vec<String>, LineCount) {
        let mut all = CapturedLines::of(OutputStream::Stdout, 1);
        let mut said = Vec::new();
        let mut note = |lines: &mut CapturedLines| said.push(format!("{} {}", lines.count.lines, lines.bytes));
        for chunk in chunks {
            all.take(chunk);
            note(&mut all);
        }
        all.end();
        note(&mut all);
        (said, all.count)
    }

    #[test]
    fn ends_of_lines_are_found_wherever_chunks_end() {
        let whole = b"one\r\n\ntwo\rthree\n\r\r\nfour";
        for at in 0..=whole.len() {
            let (begin, end) = whole.split_at(at);
            assert_eq!(lines(&[begin, b"", end]).1.lines, 7, "{at}");
        }
        assert_eq!(lines(&[b"a\r", b"\n", b"b"]).0, ["1 0", "1 0", "1 1", "2 0"]);
        assert_eq!(lines(&[b"", b"\n", b"end\n"]).0, ["0 0", "1 0", "2 0", "2 0"]);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let long = [b"a".repeat(LINE_BYTES - 1), "\u{20ac}".repeat(5).into_bytes()].concat();
        assert_eq!(begin_of(&long).len(), LINE_BYTES - 1);
        assert_eq!(begin_of(&long[1..]).len(), LINE_BYTES - 2);
        assert_eq!(begin_of(&long[2..]).len(), LINE_BYTES);
        assert_eq!(begin_of(&[0x80; 2 * LINE_BYTES]).len(), LINE_BYTES, "that is no text");
        assert_eq!(lines(&[&long, &long, b"\nend"]).1, LineCount { lines: 2, cut: 1 });
        assert_eq!(lines(&[&long[..LINE_BYTES], b"\n"]).1, LineCount { lines: 1, cut: 0 });
    }

    #[test]
    fn what_is_no_text_is_shown_as_c_writes_it() {
        assert_eq!(text("caf\u{e9} \x1b[1m".as_bytes()), "caf\u{e9} \x1b[1m");
        assert_eq!(text(b"a\0b\xff\xc3"), "a\\x00b\\xff\\xc3");
        assert!(text(&[0; LINE_BYTES]).len() + 14 <= kymo_tracer::FIELD_BYTES_MAX as usize);
    }
}
