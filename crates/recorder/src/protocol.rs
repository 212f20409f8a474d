//! What commands and the recorder say to each other: one JSON object a line, in turns, over a socket in the user's folder.
//!
//! ```text
//! command    {"ask":"hello","version":1}          {"ask":"status"}
//! recorder   {"answer":"hello","version":1,...}   {"answer":"status",...}
//! ```
//!
//! Both sides are the same user's, which the system vouches for, or the command is an administrator's. A line has a mebibyte at most
//! when it asks, and 64 when it answers.

mod words;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use crate::program::find::Unreachable;
use crate::program::namespaces::Kinds;
use crate::select::{Selection, Step};

/// What is written down here.
pub const VERSION: u32 = 3;
/// Bytes of a question.
pub(crate) const QUESTION_BYTES_MAX: u64 = 1 << 20;
/// Bytes of an answer.
pub(crate) const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// What lanes do without room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// New events are lost, and counted: everything is written to the trace as it comes.
    #[default]
    Oldest,
    /// The oldest events are overwritten: nothing is written before somebody takes a snapshot.
    Newest,
}

/// The dialect of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// CTF 1.8, which every tool reads.
    #[default]
    Tsdl,
    /// CTF 2.
    Ctf2,
}

/// How a session records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionOptions {
    /// What it is called; empty: the recorder finds a name.
    pub name: String,
    /// Another name is as good: the recorder puts a number behind one that there is.
    pub takes_any_name: bool,
    /// The folder of its trace, from the root.
    pub output: PathBuf,
    /// The dialect.
    pub dialect: Dialect,
    /// What is kept where there is no room for everything.
    pub keep: Keep,
    /// Bytes that a thread may have; `None`: as many as are free.
    pub lane_bytes: Option<u64>,
    /// Bytes that a program may have; `None`: 16 MiB, and more when events are lost.
    pub pool_bytes: Option<u64>,
    /// What events carry: bits of `kymo_lane::contexts`.
    pub contexts: u64,
    /// Namespaces that packets tell.
    pub namespaces: Kinds,
    /// Names of contexts that programs define.
    pub own_contexts: Vec<String>,
    /// A new part of the trace begins when one has so many bytes.
    pub rotate_bytes: Option<u64>,
    /// A new part of the trace begins after so many seconds.
    pub rotate_seconds: Option<u64>,
    /// The oldest parts are deleted when all have more bytes than this.
    pub kept_bytes: Option<u64>,
    /// What it records.
    pub selection: Selection,
    /// It goes on when who asked for it is gone.
    pub is_detached: bool,
    /// It ends by itself after so many milliseconds.
    pub duration_ms: Option<u64>,
    /// What was started for it: it stands in the trace.
    pub command: Option<String>,
}

/// What commands ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Question {
    /// First of all: which version is spoken.
    Hello {
        /// [`VERSION`] of who asks.
        version: u32,
    },
    /// Begins a session.
    Start {
        /// How.
        options: Box<SessionOptions>,
    },
    /// Changes what a session records.
    Take {
        /// Which; `None`: the only one.
        session: Option<String>,
        /// What is changed.
        step: Step,
    },
    /// Writes what a session that keeps the newest events has now.
    Snapshot {
        /// Which; `None`: the only one.
        session: Option<String>,
        /// The folder of the trace, from the root; `None`: in the session's folder, numbered.
        output: Option<PathBuf>,
    },
    /// Ends a session.
    Stop {
        /// Which; `None`: the only one.
        session: Option<String>,
        /// All of them.
        all: bool,
    },
    /// How far a session is.
    Progress {
        /// Which.
        session: String,
    },
    /// Says that a session is whose who asks, as its recorder was killed and this one goes on.
    Own {
        /// Which.
        session: String,
    },
    /// Writes what programs have left that are gone and that no session wants, and deletes it then.
    Recover {
        /// The folder of the trace, from the root.
        output: PathBuf,
    },
    /// How everything is.
    Status,
    /// How sessions are, without a look at programs, and without what they select.
    Sessions,
    /// Which events a session could record, and which of them it does.
    Classes {
        /// Which.
        session: String,
    },
}

/// What the recorder answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// It speaks the same version.
    Hello {
        /// Its [`VERSION`].
        version: u32,
        /// Which kymo it is.
        kymo: String,
        /// Its process.
        pid: u32,
    },
    /// A session has begun.
    Started {
        /// What it is called.
        session: String,
        /// The folder of its trace.
        output: PathBuf,
    },
    /// A session records something else now.
    Taken {
        /// What that matched.
        matched: Matched,
    },
    /// A trace was written.
    Snapshot {
        /// The folder of it.
        output: PathBuf,
        /// What is in it.
        summary: Summary,
    },
    /// Sessions have ended.
    Stopped {
        /// What they recorded.
        summaries: Vec<Summary>,
    },
    /// How far a session is.
    Progress {
        /// So far; `has_ended` says whether there is more to come.
        summary: Summary,
    },
    /// What programs had left is written.
    Recovered {
        /// What was found; `None`: there was nothing.
        rescued: Option<Rescued>,
    },
    /// How everything is.
    Status(Box<Status>),
    /// How sessions are.
    Sessions {
        /// All of them.
        sessions: Vec<SessionStatus>,
    },
    /// What a session could record.
    Classes(Classes),
    /// The answer comes later.
    Later {
        /// The folder that is written to all the time.
        writes_to: Option<PathBuf>,
        /// How long somebody has waited for the answer.
        milliseconds: u64,
    },
    /// It was not done.
    Refused {
        /// Why: sentences for people, the first of which begins without `error: `.
        message: String,
    },
}

/// What a change matched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    /// The session.
    pub session: String,
    /// Events that the rule matched.
    pub events: u64,
    /// Programs that have such events.
    pub programs: u64,
    /// Programs that are there.
    pub all_programs: u64,
    /// Patterns that match nothing yet, and names like them that there are.
    pub unmatched: Vec<(String, Vec<String>)>,
    /// What people should know of the filter, in lines.
    pub notes: Vec<String>,
}

/// What was lost, by reason. None of these is in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Events for which there was no room in memory.
    pub full: u64,
    /// Events of threads that found no lane.
    pub no_lane: u64,
    /// Events that could not be written to the disk.
    pub unwritten: u64,
}

impl Lost {
    /// All of them.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.full + self.no_lane + self.unwritten
    }
}

/// What a session recorded so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// What it is called.
    pub session: String,
    /// The folder of its trace.
    pub output: PathBuf,
    /// Events in the trace.
    pub events: u64,
    /// Of those, the ones that were written when its recorder was killed, before this one went on; `None`: none was.
    #[serde(default)]
    pub resumed: Option<u64>,
    /// Bytes of it.
    pub bytes: u64,
    /// Programs that it recorded.
    pub programs: u64,
    /// Events that a filter dropped in the recorder.
    pub filtered: u64,
    /// What is missing.
    pub lost: Lost,
    /// Texts that were cut.
    pub cut: u64,
    /// Bytes of programs that are no events: their memory was damaged.
    pub damaged_bytes: u64,
    /// Events whose times were a little before those of the events before them, which they have in the trace.
    pub stepped: u64,
    /// Sub-buffers that programs have overwritten before they were read, as they do for snapshots.
    pub overwritten: u64,
    /// How long it took.
    pub milliseconds: u64,
    /// Programs of those that are still there.
    #[serde(default)]
    pub running: u64,
    /// Snapshots that were taken of it; `None`: it writes all the time.
    #[serde(default)]
    pub snapshots: Option<u32>,
    /// It is over.
    pub has_ended: bool,
    /// What went wrong, in sentences.
    pub problems: Vec<String>,
}

/// How everything is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The recorder's process.
    pub pid: u32,
    /// Which kymo it is.
    pub kymo: String,
    /// Where it listens.
    pub folder: PathBuf,
    /// Sessions.
    pub sessions: Vec<SessionStatus>,
    /// Programs that can be recorded.
    pub programs: Vec<ProgramStatus>,
    /// Programs that are visible but cannot be recorded.
    pub unreachable: Vec<Unreachable>,
}

/// How a session is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// What it recorded so far.
    pub summary: Summary,
    /// How.
    pub options: SessionOptions,
}

/// How a program is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// Its number as the recorder sees it.
    pub pid: Option<u32>,
    /// Its number as it sees itself.
    pub own_pid: u32,
    /// What it is called.
    pub name: String,
    /// The path of what it runs, as it sees it.
    pub path: String,
    /// Its user.
    pub user: u32,
    /// What its events are stamped with: `counter` or `monotonic`.
    pub clock: String,
    /// The file of its memory.
    pub file: PathBuf,
    /// It sees other files than the recorder.
    pub is_contained: bool,
    /// The recorder serves it: somebody wants something of it.
    pub is_attached: bool,
    /// It has ended; what it left is still to be read.
    pub is_dead: bool,
    /// It is quiet, so that it is looked at seldom.
    pub is_resting: bool,
    /// How often it was looked at.
    pub looks: u64,
    /// Bytes that its threads have, that there is memory for, and that there may be at most.
    pub pool: Pool,
    /// Lanes that threads have.
    pub lanes: u32,
    /// Events that it lost since it is there.
    pub lost: u64,
    /// Its events.
    pub events: Vec<EventStatus>,
    /// Definitions that are not understood, and why.
    pub unusable: Vec<String>,
    /// Copies of the tracer that are in it: what is counted here is of all of them.
    pub copies: u32,
}

impl ProgramStatus {
    /// Another copy of the tracer is in the same process.
    pub(crate) fn add(&mut self, other: Self) {
        self.is_attached |= other.is_attached;
        self.is_dead &= other.is_dead;
        self.is_resting &= other.is_resting;
        self.looks += other.looks;
        self.pool.used_bytes += other.pool.used_bytes;
        self.pool.ready_bytes += other.pool.ready_bytes;
        self.pool.limit_bytes += other.pool.limit_bytes;
        self.lanes += other.lanes;
        self.lost += other.lost;
        self.copies += other.copies;
        self.events.extend(other.events);
        self.unusable.extend(other.unusable);
    }
}

/// Memory of a program's lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Bytes that lanes have now.
    pub used_bytes: u64,
    /// Bytes that have memory.
    pub ready_bytes: u64,
    /// Bytes that there may be.
    pub limit_bytes: u64,
}

/// How an event of a program is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventStatus {
    /// `provider:name`.
    pub name: String,
    /// Its level.
    pub level: u8,
    /// The program records it.
    pub is_on: bool,
    /// Where its filter runs: `native`, `interpreter`, `recorder`; `always`, `never`: it says the same of all such events; `None`: it has
    /// none.
    pub runs: Option<String>,
    /// Why it runs there.
    pub why: Option<String>,
    /// Sessions that want it, and their filters.
    pub sessions: BTreeMap<String, Vec<String>>,
}

/// Events of the programs that a session records, whether it records them or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes {
    /// By name, in its order; so many that they have a mebibyte at most.
    pub classes: Vec<ClassStatus>,
    /// How many there are besides.
    pub more: u64,
}

/// Bytes of names and filters of [`Classes`], about.
pub(crate) const CLASSES_BYTES_MAX: usize = 1 << 20;

/// How events of one name are, in all programs that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassStatus {
    /// `provider:name`.
    pub name: String,
    /// Its level; where programs do not agree, that of the most important one.
    pub level: u8,
    /// Programs that have it.
    pub programs: u64,
    /// The session records it, of some program.
    pub is_on: bool,
    /// Filters that the session has for it, one of which has to be true.
    pub filters: Vec<String>,
    /// Where filters of it run: see [`EventStatus::runs`].
    pub runs: Vec<String>,
    /// Why they run there.
    pub why: Vec<String>,
}

impl ClassStatus {
    /// Bytes of its texts.
    pub(crate) fn bytes(&self) -> usize {
        let texts = self.filters.iter().chain(&self.runs).chain(&self.why);
        self.name.len() + texts.map(String::len).sum::<usize>()
    }
}

/// What was found in memory, and written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rescued {
    /// The folder of the trace.
    pub output: PathBuf,
    /// Events in it, and its bytes.
    pub events: u64,
    /// See [`Rescued::events`].
    pub bytes: u64,
    /// Whose they were.
    pub programs: Vec<RescuedProgram>,
    /// When it was is known; otherwise times only say how long after each other events were.
    pub has_times: bool,
    /// Bytes that are no events.
    pub damaged_bytes: u64,
    /// What could not be done, in sentences.
    pub problems: Vec<String>,
}

/// A program of which something was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescuedProgram {
    /// What it was called.
    pub name: String,
    /// Its number, as it saw itself.
    pub pid: u32,
    /// Its memory.
    pub file: PathBuf,
    /// Events of it.
    pub events: u64,
    /// Events that it had lost since it began; what recorders know of them stands in their traces.
    pub lost: u64,
}

/// Says something.
pub(crate) fn say<T: Serialize>(to: &mut impl Write, what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Hears something; `None`: nobody is there any more.
pub(crate) fn hear<T: DeserializeOwned>(from: &mut impl BufRead, bytes_max: u64) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let taken = from.by_ref().take(bytes_max).read_until(b'\n', &mut line)?;
    if taken == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        let what = if taken as u64 == bytes_max { "a line is too long" } else { "a line is not whole" };
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    serde_json::from_slice(&line).map(Some).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_whole() {
        let mut said = Vec::new();
        say(&mut said, &Question::Hello { version: 1 }).expect("memory takes all bytes");
        assert_eq!(String::from_utf8_lossy(&said), "{\"ask\":\"hello\",\"version\":1}\n");
        let heard = |bytes: &[u8], most| hear::<Question>(&mut io::BufReader::new(bytes), most);
        assert_eq!(heard(&said, 100).expect("it is whole"), Some(Question::Hello { version: 1 }));
        assert_eq!(heard(b"", 100).expect("nobody is there"), None);
        assert_eq!(heard(&said, 10).expect_err("too long").to_string(), "a line is too long");
        assert_eq!(heard(b"{\"ask\"", 100).expect_err("cut").to_string(), "a line is not whole");
        assert!(heard(b"{\"ask\":\"nothing\"}\n", 100).is_err());
        assert!(heard(&[b"[".repeat(500), b"\n".to_vec()].concat(), 1000).is_err(), "depth is bounded");
    }
}
