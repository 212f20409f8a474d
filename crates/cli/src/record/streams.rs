//! A program's output, on its way through this process to its destination: every byte as it is, the
//! lines recorded.
//!
//! ```text
//! program ── pipe, or a terminal where ours is one ──> Pump: record the lines ── write ──> our own stream
//! ```
//!
//! Where both streams go to the same place, one thread passes on the bytes in their order of
//! arrival; otherwise each has its own, so that neither stream waits for the other.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::Duration;

use kymo_recorder::capture::{CapturedLines, LineCount, OutputStream};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

/// Bytes that are passed on at a time: the capacity of a pipe.
const CHUNK: usize = 64 << 10;
/// More than any pipe or terminal holds: a process that still writes when the program has ended is
/// not waited for.
const LEFT: usize = 128 << 10;
/// Between two checks whether all bytes were passed on.
const LOOK: Duration = Duration::from_millis(2);
/// The word of the event for the program's end; others are places of sources.
const ENDED: u64 = u64::MAX;

/// Both streams of a program that is about to begin. Their reader already knows the stream that
/// comes first.
pub(crate) struct OutputStreams {
    pumps: Vec<Pump>,
    /// Terminals that the program has instead of ours.
    terminals: Vec<(OutputStream, OwnedFd)>,
}

/// Both streams of a program that runs.
pub(crate) struct Pumps {
    threads: Vec<JoinHandle<Passed>>,
    terminals: Vec<(OutputStream, OwnedFd)>,
    /// Closing these tells the other ends that the program has ended.
    ends: Vec<OwnedFd>,
}

/// The passed bytes.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) count: LineCount,
    /// Failures, in sentences.
    pub(crate) problems: Vec<String>,
}

struct LineSource {
    stream: OutputStream,
    from: OwnedFd,
    lines: CapturedLines,
    /// Bytes that our own stream did not take, and why the last ones.
    missing: (u64, Option<Errno>),
}

impl OutputStreams {
    /// The streams, and the program's standard output and standard error.
    pub(crate) fn new() -> io::Result<(Self, [Stdio; 2])> {
        let mut terminals = Vec::new();
        let (stdout, for_stdout) = LineSource::new(OutputStream::Stdout, &mut terminals)?;
        let (stderr, for_stderr) = LineSource::new(OutputStream::Stderr, &mut terminals)?;
        let places = [place(OutputStream::Stdout), place(OutputStream::Stderr)];
        let pumps = if places[0].is_some() && places[0] == places[1] {
            vec![Pump::new(vec![stdout, stderr])?]
        } else {
            vec![Pump::new(vec![stdout])?, Pump::new(vec![stderr])?]
        };
        Ok((Self { pumps, terminals }, [for_stdout, for_stderr]))
    }

    /// Passes on the output of a running program.
    pub(crate) fn pass(self, pid: u32) -> io::Result<Pumps> {
        let mut pumps = Pumps { threads: Vec::new(), terminals: self.terminals, ends: Vec::new() };
        for mut pump in self.pumps {
            pump.sources.iter_mut().flatten().for_each(|source| source.lines = CapturedLines::of(source.stream, pid));
            let (end, told) = pipe_with(PipeFlags::CLOEXEC)?;
            pumps.ends.push(told);
            pumps.threads.push(std::thread::spawn(move || {
                let ended = pump.run(&end);
                pump.passed(ended)
            }));
        }
        Ok(pumps)
    }
}

impl Pumps {
    /// Our terminal has another size: so have those that the program has; whether it has any.
    pub(crate) fn resize(&self) -> bool {
        for (stream, terminal) in &self.terminals {
            // The program's looks are all that depends on it.
            let _ = tcgetwinsize(own(*stream)).and_then(|size| tcsetwinsize(terminal, size));
        }
        !self.terminals.is_empty()
    }

    /// The program has ended: passes on the remaining bytes, unless `is_over` says not to wait for
    /// that.
    pub(crate) fn end(self, mut is_over: impl FnMut() -> bool) -> Passed {
        drop(self.ends);
        let mut all = Passed::default();
        for thread in self.threads {
            while !thread.is_finished() {
                if is_over() {
                    all.problems.push("the last output of the program was not passed on".to_owned());
                    return all;
                }
                std::thread::sleep(LOOK);
            }
            let passed = thread.join().expect("it does not panic");
            all.count.lines += passed.count.lines;
            all.count.cut += passed.count.cut;
            all.problems.extend(passed.problems);
        }
        all
    }
}

/// A thread that passes on the bytes of some streams.
struct Pump {
    sources: Vec<Option<LineSource>>,
    passed: Passed,
    events: OwnedFd,
}

impl Pump {
    fn new(sources: Vec<LineSource>) -> io::Result<Self> {
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (place, source) in (0..).zip(&sources) {
            epoll::add(&events, &source.from, EventData::new_u64(place), WANTED)?;
        }
        let sources = sources.into_iter().map(Some).collect();
        Ok(Self { sources, passed: Passed::default(), events })
    }

    /// Until `end` can be read: the program has ended.
    fn run(&mut self, end: &OwnedFd) -> io::Result<()> {
        epoll::add(&self.events, end, EventData::new_u64(ENDED), EventFlags::IN)?;
        let mut bytes = vec![0; CHUNK];
        let mut ready = Vec::with_capacity(4);
        while self.sources.iter().any(Option::is_some) {
            ready.clear();
            match epoll::wait(&self.events, rustix::buffer::spare_capacity(&mut ready), None) {
                Err(Errno::INTR) => continue,
                waited => waited?,
            };
            // In the order in which they became so.
            for event in &ready {
                let place = event.data.u64();
                if place == ENDED {
                    epoll::delete(&self.events, end)?;
                    (0..self.sources.len()).for_each(|place| self.finish(place, &mut bytes));
                    return Ok(());
                }
                let place = place as usize;
                match self.sources[place].as_mut().map(|source| source.pass(&mut bytes)) {
                    Some(Some(_)) => {
                        let source = self.sources[place].as_ref().expect("it was there just now");
                        let word = EventData::new_u64(place as u64);
                        epoll::modify(&self.events, &source.from, word, WANTED)?;
                    }
                    _ => self.close(place),
                }
            }
        }
        Ok(())
    }

    /// Passes on the remaining bytes.
    fn finish(&mut self, place: usize, bytes: &mut [u8]) {
        let mut left = LEFT;
        while let Some(source) = &mut self.sources[place] {
            match source.pass(bytes) {
                Some(passed) if passed > 0 && passed < left => left -= passed,
                _ => self.close(place),
            }
        }
    }

    /// Nothing more comes of it, or its destination is closed: writers find no reader.
    fn close(&mut self, place: usize) {
        let Some(mut source) = self.sources[place].take() else { return };
        source.lines.end();
        let LineCount { lines, cut } = source.lines.count();
        self.passed.count.lines += lines;
        self.passed.count.cut += cut;
        if let (missing, Some(error)) = source.missing {
            let name = if source.stream == OutputStream::Stdout { "output" } else { "error" };
            self.passed.problems.push(format!("standard {name}: {error}: it did not get {missing} bytes"));
        }
    }

    fn passed(mut self, ended: io::Result<()>) -> Passed {
        (0..self.sources.len()).for_each(|place| self.close(place));
        self.passed.problems.extend(ended.err().map(|error| format!("the program's output: {error}")));
        self.passed
    }
}

/// Each wakeup comes once, so that the next wakeup names the next stream with bytes.
const WANTED: EventFlags = EventFlags::IN.union(EventFlags::ONESHOT);

impl LineSource {
    /// One stream, and the program's end of it.
    fn new(stream: OutputStream, terminals: &mut Vec<(OutputStream, OwnedFd)>) -> io::Result<(Self, Stdio)> {
        let own = own(stream);
        let terminal = isatty(own).then(|| terminal(own)).transpose().unwrap_or_else(|error| {
            super::warn(&format!("the program finds a pipe instead of a terminal: {error}"));
            None
        });
        let (from, to) = match terminal {
            Some((from, to)) => {
                terminals.push((stream, to.try_clone()?));
                (from, to)
            }
            None => pipe_with(PipeFlags::CLOEXEC)?,
        };
        rustix::io::ioctl_fionbio(&from, true)?;
        Ok((Self { stream, from, lines: CapturedLines::of(stream, 0), missing: (0, None) }, to.into()))
    }

    /// Passes on the available bytes and returns their number; `None`: that was all, or the
    /// destination wants no more.
    fn pass(&mut self, bytes: &mut [u8]) -> Option<usize> {
        let read = match rustix::io::retry_on_intr(|| rustix::io::read(&self.from, &mut *bytes)) {
            Err(Errno::AGAIN) => return Some(0),
            // No process has it open any more.
            Ok(0) | Err(_) => return None,
            Ok(read) => read,
        };
        let bytes = &bytes[..read];
        self.lines.take(bytes);
        let own = own(self.stream);
        match write(own, bytes) {
            Ok(()) => Some(read),
            // As without us: no process reads the program's output.
            Err((_, Errno::PIPE | Errno::IO)) => None,
            Err((missing, error)) => {
                self.missing = (self.missing.0 + missing as u64, Some(error));
                Some(read)
            }
        }
    }
}

/// Writes all of it; else how many bytes it did not, and why.
fn write(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), (usize, Errno)> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // Another process that has it open does not want to wait; we do.
                let second = Timespec { tv_sec: 1, tv_nsec: 0 };
                let _ = poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], Some(&second));
            }
            Err(error) => return Err((bytes.len(), error)),
        }
    }
    Ok(())
}

fn own(stream: OutputStream) -> BorrowedFd<'static> {
    match stream {
        OutputStream::Stdout => rustix::stdio::stdout(),
        OutputStream::Stderr => rustix::stdio::stderr(),
    }
}

/// Which file a stream of ours is.
fn place(stream: OutputStream) -> Option<(u64, u64)> {
    rustix::fs::fstat(own(stream)).ok().map(|found| (found.st_dev, found.st_ino))
}

/// A terminal as ours is, but without our terminal's output processing; the program's end of it is
/// the second.
fn terminal(own: BorrowedFd<'_>) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let from = openpt(flags)?;
    unlockpt(&from)?;
    let to = ioctl_tiocgptpeer(&from, flags)?;
    let mut modes = tcgetattr(own)?;
    modes.output_modes.remove(OutputModes::OPOST);
    modes.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
    tcsetattr(&to, OptionalActions::Now, &modes)?;
    tcsetwinsize(&to, tcgetwinsize(own)?)?;
    Ok((from, to))
}
