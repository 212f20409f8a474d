//! Programs that control the sessions that record them: they start and stop a session, arm its triggers,
//! wait until one has stopped it, and have its events written.
//!
//! It must never know sessions, traces or analyses. The recorder does all of it; this crate asks for it, over
//! the recorder's socket.
//!
//! ```text
//! program     kymo-control 1 stop \t session or nothing \t argument
//! recorder    ok \t ...          refused \t why \r more lines of it          later (it may wait for a disk)
//! ```
//!
//! Each request is a connection of its own, with lines of plain text: programs outlive versions of the
//! recorder. It allocates no heap, and blocks the calling thread alone. Not for signal handlers.
//!
//! ```no_run
//! use core::time::Duration;
//! use kymo_control::ControlledSession;
//!
//! let session = ControlledSession::own();
//! session.trigger("stop on net:lost after 3")?;
//! // ... work ...
//! session.wait(Some(Duration::from_secs(10)))?;
//! session.flush()?;
//! # Ok::<(), kymo_control::ControlError>(())
//! ```

#![no_std]
#![allow(clippy::result_large_err, reason = "there is no heap: an error has its text in it")]

#[cfg(test)]
extern crate std;

#[cfg_attr(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))), path = "elsewhere.rs")]
mod socket;

mod shared;

use core::fmt;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

pub use socket::unmap;

/// Bytes of a request, and of a reply.
pub const MESSAGE_BYTES_MAX: usize = 4096;
/// How long a request waits for its reply, unless the recorder says that it takes longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a wait sleeps between two questions, at first and at most.
const NAPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// Sessions of the recorder that this program belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlledSession<'n> {
    name: Option<&'n str>,
}

/// Reason why a request had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlErrorKind {
    /// No recorder runs for this program.
    NoRecorder,
    /// The recorder has refused it; the text says why.
    Refused,
    /// The time is over.
    TimedOut,
    /// A system call has failed, or the reply is none.
    Failed,
}

/// Firings of a trigger, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlledFirings {
    /// Triggers that are armed.
    pub armed: u64,
    /// How often they have fired.
    pub firings: u64,
    /// Firings that came too early after another one.
    pub suppressed: u64,
    /// Matches of a trigger with `after`: the most that a program has had since it is armed or has fired.
    pub counted: u64,
    /// The last firing.
    pub last: Option<LastFiring>,
}

/// The last firing of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastFiring {
    /// Nanoseconds since 1970: of the event, or of the firing some microseconds before it.
    pub ns: u64,
    /// The same in ticks of the clock of the program's events.
    pub ticks: u64,
    /// The process, and the thread there.
    pub pid: u32,
    /// See [`LastFiring::pid`].
    pub tid: u32,
}

/// Events of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlledRule {
    /// Events that it has kept.
    pub kept: u64,
    /// Events that it has let go.
    pub let_go: u64,
    /// Of those that it has kept, ends without a known begin.
    pub unknown: u64,
    /// Keys that it has forgotten, because there were too many at a time.
    pub forgotten: u64,
    /// Its limit: nanoseconds, or events.
    pub limit: u64,
}

/// Counts of a session, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlledCounts {
    /// Events in the traces.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Bytes of the traces.
    pub bytes: u64,
    /// Snapshots that were taken.
    pub snapshots: u64,
}

/// A request that had no effect.
#[derive(Clone, Copy)]
pub struct ControlError {
    /// The reason.
    pub kind: ControlErrorKind,
    text: MessageText,
}

impl ControlError {
    fn new(kind: ControlErrorKind, text: &str) -> Self {
        let mut text = MessageText::of(text);
        // A reply is one line.
        text.bytes.iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
        Self { kind, text }
    }

    /// The reason in words. Further lines show the place in the words of a trigger, and how to write them.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_str()
    }
}

impl fmt::Debug for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text())
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for ControlError {}

/// A text of a bounded length; what does not fit is missing.
#[derive(Clone, Copy)]
struct MessageText {
    bytes: [u8; 512],
    length: usize,
}

impl MessageText {
    fn of(text: &str) -> Self {
        let mut bytes = [0; 512];
        let length = text.floor_char_boundary(bytes.len());
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self { bytes, length }
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or("")
    }
}

impl<'n> ControlledSession<'n> {
    /// All sessions that record this program.
    #[must_use]
    pub const fn own() -> Self {
        Self { name: None }
    }

    /// The session of that name.
    #[must_use]
    pub const fn named(name: &'n str) -> Self {
        Self { name: Some(name) }
    }

    /// The session records from now on, in all of its programs.
    ///
    /// # Errors
    ///
    /// It had no effect: see [`ControlErrorKind`]. So it is of all functions here.
    pub fn start(&self) -> Result<(), ControlError> {
        self.ask("start", "").map(drop)
    }

    /// The session records no more, in all of its programs: no event behind this call is in its trace.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn stop(&self) -> Result<(), ControlError> {
        self.ask("stop", "").map(drop)
    }

    /// A session with `--mode overwrite` writes the events that it holds, and goes on.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn snapshot(&self) -> Result<(), ControlError> {
        self.ask("snapshot", "").map(drop)
    }

    /// Events before this call are in the files of the trace when it returns.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn flush(&self) -> Result<(), ControlError> {
        self.ask("flush", "").map(drop)
    }

    /// Adds a trigger, in the words of `kymo record --trigger`, or replaces that of its name, and arms it.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn trigger(&self, words: &str) -> Result<(), ControlError> {
        self.ask("trigger", words).map(drop)
    }

    /// Arms a trigger anew; `None`: all.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn arm(&self, trigger: Option<&str>) -> Result<(), ControlError> {
        self.turn("arm", trigger)
    }

    /// Disarms a trigger; `None`: all.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn disarm(&self, trigger: Option<&str>) -> Result<(), ControlError> {
        self.turn("disarm", trigger)
    }

    /// Removes a trigger; `None`: all. A session without triggers records.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn remove_trigger(&self, trigger: Option<&str>) -> Result<(), ControlError> {
        self.turn("remove", trigger)
    }

    fn turn(&self, verb: &str, trigger: Option<&str>) -> Result<(), ControlError> {
        self.ask(verb, named(trigger)?).map(drop)
    }

    /// Firings of a trigger until now; `None`: of all.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn firings(&self, trigger: Option<&str>) -> Result<ControlledFirings, ControlError> {
        let [armed, firings, suppressed, counted, ns, ticks, pid, tid] = self.numbers("firings", named(trigger)?)?;
        let (pid, tid) = (u32::try_from(pid).unwrap_or(0), u32::try_from(tid).unwrap_or(0));
        let last = (firings > 0).then_some(LastFiring { ns, ticks, pid, tid });
        Ok(ControlledFirings { armed, firings, suppressed, counted, last })
    }

    /// Events, losses, bytes and snapshots until now.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn counts(&self) -> Result<ControlledCounts, ControlError> {
        let [events, lost, bytes, snapshots] = self.numbers("counts", "")?;
        Ok(ControlledCounts { events, lost, bytes, snapshots })
    }

    /// Adds a rule to the session, or replaces that of its name: of some events it keeps only those that took long, or
    /// some of many, in the words of `kymo record --only`.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn only(&self, words: &str) -> Result<(), ControlError> {
        self.ask("only", words).map(drop)
    }

    /// Sets the limit of a rule, such as `5ms` or `100`, of all its events or of one kind; `None`: that of its words again.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn limit(&self, rule: &str, kind: Option<&str>, limit: Option<&str>) -> Result<(), ControlError> {
        let (limit, kind) = (limit.unwrap_or("-"), kind.unwrap_or(""));
        let space = if kind.is_empty() { "" } else { " " };
        self.ask_parts("limit", &[rule, " ", limit, space, kind]).map(drop)
    }

    /// Events that a rule has kept and let go until now.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn rule(&self, rule: &str) -> Result<ControlledRule, ControlError> {
        let [kept, let_go, unknown, forgotten, limit] = self.numbers("rule", rule)?;
        Ok(ControlledRule { kept, let_go, unknown, forgotten, limit })
    }

    /// Shares the memory of a rule about events of the kernel: from then on, its limit is set and its counts are read without a system
    /// call. Rules with kinds have many limits, and are refused.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start); the kernel does not map the memory.
    pub fn share(&self, rule: &str) -> Result<SharedRule, ControlError> {
        let (said, file) = self.ask_with_file("share", &[rule])?;
        let [bytes, limit_at, counts_at, between, counts] = numbers_of(&said).map(|number| number as usize);
        let memory = shared::SharedMemory::map(file, bytes)?;
        Ok(SharedRule { memory, places: SharedPlaces { limit_at, counts_at, between, counts } })
    }

    fn numbers<const COUNT: usize>(&self, verb: &str, argument: &str) -> Result<[u64; COUNT], ControlError> {
        self.ask(verb, argument).map(|said| numbers_of(&said))
    }

    /// The session records events of this program that match a pattern of `provider:name`, such as `net:*`.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn enable(&self, events: &str) -> Result<(), ControlError> {
        self.ask("enable", events).map(drop)
    }

    /// The session records no such events of this program any more; `*`: none at all.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn disable(&self, events: &str) -> Result<(), ControlError> {
        self.ask("disable", events).map(drop)
    }

    /// Whether the session records this program now.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn is_recording(&self) -> Result<bool, ControlError> {
        self.ask("state", "").map(|said| said.as_str() == "recording")
    }

    /// Waits until the session records this program no more; `None`: without an end.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn wait(&self, timeout: Option<Duration>) -> Result<(), ControlError> {
        let (mut left, mut nap) = (timeout, NAPS[0]);
        while self.is_recording()? {
            let now = left.map_or(nap, |left| left.min(nap));
            if now.is_zero() {
                return Err(ControlError::new(ControlErrorKind::TimedOut, "the session still records"));
            }
            let slept = socket::sleep(now);
            left = left.map(|left| left.saturating_sub(slept));
            nap = NAPS[1].min(nap * 2);
        }
        Ok(())
    }

    /// Sends a request, as [`start`](Self::start) and the other functions do; for those who have its words as text.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn request(&self, verb: &str, argument: &str) -> Result<(), ControlError> {
        self.ask(verb, argument).map(drop)
    }

    fn ask(&self, verb: &str, argument: &str) -> Result<MessageText, ControlError> {
        self.ask_parts(verb, &[argument])
    }

    /// The same, with an argument of these parts.
    fn ask_parts(&self, verb: &str, argument: &[&str]) -> Result<MessageText, ControlError> {
        let (said, file) = self.ask_with_file(verb, argument)?;
        file.into_iter().for_each(socket::close);
        Ok(said)
    }

    /// The same, with the file of the reply.
    fn ask_with_file(&self, verb: &str, argument: &[&str]) -> Result<(MessageText, Option<i32>), ControlError> {
        let mut line = Line::default();
        let name = self.name.unwrap_or("");
        let is_plain = |text: &&str| !text.bytes().any(|byte| byte < b' ');
        let head = ["kymo-control 1 ", verb, "\t", name, "\t"];
        let fits = head.iter().chain(argument).chain(&["\n"]).all(|part| line.push(part));
        if !fits || ![verb, name].iter().chain(argument).all(is_plain) {
            return Err(ControlError::new(ControlErrorKind::Refused, "a request is one line of at most 4096 bytes"));
        }
        let mut reply = [0; MESSAGE_BYTES_MAX];
        let (said, file) = socket::exchange(line.as_bytes(), &mut reply, PATIENCE)?;
        match understood(said) {
            Ok(said) => Ok((said, file)),
            Err(error) => {
                file.into_iter().for_each(socket::close);
                Err(error)
            }
        }
    }
}

/// Numbers of a reply. A later recorder may say more, and an earlier one less.
fn numbers_of<const COUNT: usize>(said: &MessageText) -> [u64; COUNT] {
    let mut words = said.as_str().split(' ');
    core::array::from_fn(|_| words.next().and_then(|word| word.parse().ok()).unwrap_or(0))
}

/// A rule about events of the kernel: its limit and counts are in memory that this program shares with the kernel.
///
/// ```no_run
/// # use kymo_control::ControlledSession;
/// let slow = ControlledSession::own().share("slow")?;
/// slow.set_limit(5_000_000);
/// let counts = slow.counts();
/// println!("{} of {} calls took longer", counts.kept, counts.kept + counts.let_go);
/// # Ok::<(), kymo_control::ControlError>(())
/// ```
#[derive(Debug)]
pub struct SharedRule {
    memory: shared::SharedMemory,
    places: SharedPlaces,
}

/// Places in the memory of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedPlaces {
    /// Where the limit is.
    pub limit_at: usize,
    /// Where counts begin: each has four numbers, those that were kept, let go, are of those kept without a begin, or lost.
    pub counts_at: usize,
    /// Bytes between two of them.
    pub between: usize,
    /// How many there are.
    pub counts: usize,
}

impl SharedRule {
    /// Sets the limit, in nanoseconds; 0: that of a running percentile.
    pub fn set_limit(&self, nanos: u64) {
        if let Some(word) = self.memory.word(self.places.limit_at) {
            word.store(nanos, Relaxed);
        }
    }

    /// Opens a gate: a rule without a limit (`when`, `between`) keeps events from now on, or none.
    pub fn set_open(&self, is_open: bool) {
        self.set_limit(u64::from(!is_open));
    }

    /// The limit, in nanoseconds; 0: that of a running percentile.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.memory.word(self.places.limit_at).map_or(0, |word| word.load(Relaxed))
    }

    /// Events that the rule has kept and let go until now.
    #[must_use]
    pub fn counts(&self) -> ControlledRule {
        let SharedPlaces { counts_at, between, counts, .. } = self.places;
        let sum = |number: usize| {
            let places = (0..counts).map(|count| counts_at + count * between + 8 * number);
            places.filter_map(|at| self.memory.word(at)).map(|word| word.load(Relaxed)).sum()
        };
        ControlledRule { kept: sum(0), let_go: sum(1), unknown: sum(2), forgotten: 0, limit: self.limit() }
    }

    /// The memory, its bytes, and the places in it: the caller gives the memory back, with [`unmap`].
    #[must_use]
    pub fn into_raw(self) -> (*mut u8, usize, SharedPlaces) {
        let (begin, bytes) = self.memory.into_raw();
        (begin, bytes, self.places)
    }
}

/// The name of a trigger, as requests have it; `None`: all.
fn named(trigger: Option<&str>) -> Result<&str, ControlError> {
    match trigger {
        Some("") => Err(ControlError::new(ControlErrorKind::Refused, "the name of the trigger is empty")),
        name => Ok(name.unwrap_or("")),
    }
}

/// A reply, without the end of its line.
fn understood(said: &[u8]) -> Result<MessageText, ControlError> {
    let said = core::str::from_utf8(said).unwrap_or("");
    let (word, text) = said.split_once('\t').unwrap_or((said, ""));
    match word {
        "ok" => Ok(MessageText::of(text)),
        "refused" => Err(ControlError::new(ControlErrorKind::Refused, text)),
        _ => Err(ControlError::new(
            ControlErrorKind::Failed,
            "the recorder has another reply than those to requests of programs",
        )),
    }
}

/// A request.
struct Line {
    bytes: [u8; MESSAGE_BYTES_MAX],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { bytes: [0; MESSAGE_BYTES_MAX], length: 0 }
    }
}

impl Line {
    /// Returns whether there was room.
    fn push(&mut self, text: &str) -> bool {
        let room = self.bytes.get_mut(self.length..self.length + text.len());
        let fits = room.is_some();
        room.into_iter().for_each(|room| room.copy_from_slice(text.as_bytes()));
        self.length += if fits { text.len() } else { 0 };
        fits
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_understood() {
        assert_eq!(understood(b"ok\trecording").map(|text| text.as_str() == "recording").ok(), Some(true));
        let refused = understood(b"refused\tthere is no session `x`").map(drop).expect_err("it is refused");
        assert_eq!((refused.kind, refused.text()), (ControlErrorKind::Refused, "there is no session `x`"));
        let refused = understood(b"refused\tit is wrong\r    so\r    ^^").map(drop).expect_err("it is refused");
        assert_eq!(refused.text(), "it is wrong\n    so\n    ^^");
        for strange in [&b""[..], b"{\"answer\":1}", b"\xff\xff"] {
            assert_eq!(understood(strange).map(drop).map_err(|error| error.kind), Err(ControlErrorKind::Failed));
        }
    }

    #[test]
    fn requests_are_one_line() {
        let long = std::string::String::from_utf8(std::vec![b'x'; MESSAGE_BYTES_MAX]).expect("it is text");
        for argument in ["a\nb", "a\tb", &long] {
            let error = ControlledSession::own().trigger(argument).expect_err("it is refused");
            assert_eq!(error.kind, ControlErrorKind::Refused, "{argument}");
        }
        let error = ControlledSession::own().arm(Some("")).expect_err("it is no name");
        assert_eq!(error.text(), "the name of the trigger is empty");
        let told = ControlError::new(ControlErrorKind::Refused, &"\u{e4}".repeat(300));
        assert_eq!(told.text().chars().count(), 256);
    }
}
