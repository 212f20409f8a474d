//! The protocol between commands and the recorder: one JSON object a line, in turns, over a socket
//! in the user's folder.
//!
//! ```text
//! command    {"ask":"hello","version":1}          {"ask":"status"}
//! recorder   {"answer":"hello","version":1,...}   {"answer":"status",...}
//! ```
//!
//! Both sides belong to the same user, as the kernel confirms, or the command belongs to an
//! administrator. A request has at most one mebibyte, and a reply at most 64.

mod words;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kymo_skew::CpuCounter;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use crate::program::find::Unreachable;
use crate::program::namespaces::NamespaceKinds;
use crate::rule::{RuleOptions, RuleStatus};
use crate::select::{SelectionStep, SessionSelection};
use crate::tracepoints::{KernelOptions, KernelSummary};
use crate::trigger::{TriggerOptions, TriggerStatus};
use crate::user_programs::{ObjectContents, ObjectOptions};

/// Version of this protocol.
pub const VERSION: u32 = 10;
/// Bytes of a request.
pub(crate) const QUESTION_BYTES_MAX: u64 = 8 << 20;
/// Bytes of a reply.
pub(crate) const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// How lanes act when they have no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// New events are discarded, and counted: the recorder writes all others to the trace as they
    /// come.
    #[default]
    Oldest,
    /// The oldest events are overwritten (flight recorder): the recorder writes no events before a
    /// snapshot.
    Newest,
}

/// The dialect of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceDialect {
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
    /// Name of the session; empty: the recorder finds a name.
    pub name: String,
    /// Another name is fine: if the name is taken, the recorder adds a number.
    pub takes_any_name: bool,
    /// The folder of its trace, an absolute path.
    pub output: PathBuf,
    /// The folder is a tree: each component has a trace of this name in a folder of its label.
    pub components: Option<String>,
    /// The dialect.
    pub dialect: TraceDialect,
    /// Which events are kept when there is no room for all.
    pub keep: Keep,
    /// Bytes that a thread may have; `None`: as many as are free.
    pub lane_bytes: Option<u64>,
    /// Bytes that a program may have; `None`: 16 MiB, and more when events are lost.
    pub pool_bytes: Option<u64>,
    /// Contexts that events carry: bits of `kymo_lane::contexts`.
    pub contexts: u64,
    /// Namespaces that packets tell.
    pub namespaces: NamespaceKinds,
    /// Names of contexts that programs define.
    pub own_contexts: Vec<String>,
    /// A new chunk of the trace begins when one has so many bytes.
    pub rotate_bytes: Option<u64>,
    /// A new chunk of the trace begins after so many seconds.
    pub rotate_seconds: Option<u64>,
    /// The oldest chunks are deleted when all have more bytes than this.
    pub kept_bytes: Option<u64>,
    /// Events that it records.
    pub selection: SessionSelection,
    /// The session continues when the client that began it is gone.
    pub is_detached: bool,
    /// The session ends by itself after so many milliseconds.
    pub duration_ms: Option<u64>,
    /// Command that was started for the session: the trace names it.
    pub command: Option<String>,
    /// Events that start and stop it.
    pub triggers: Vec<TriggerOptions>,
    /// Rules that limit its events.
    pub rules: Vec<RuleOptions>,
    /// Users' eBPF objects, whose programs are rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectOptions>,
    /// Counters of CPUs, which its trace tells; empty: they were not compared.
    pub counters: Vec<CpuCounter>,
    /// Each snapshot has only the events that no snapshot before it has, and the recorder writes a
    /// last one when the session ends.
    pub drains: bool,
    /// The recorder writes a snapshot after so many milliseconds, again and again (autoflush).
    pub flush_ms: Option<u64>,
    /// Events of the kernel that it records; `None`: none.
    pub kernel: Option<KernelOptions>,
}

/// Requests of commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum RecorderRequest {
    /// The first request: which version the client speaks.
    Hello {
        /// [`VERSION`] of the client.
        version: u32,
    },
    /// Begins a session.
    Start {
        /// Options of the session.
        options: Box<SessionOptions>,
    },
    /// Changes the events that a session records.
    Take {
        /// The session; `None`: the only one.
        session: Option<String>,
        /// The change.
        step: Box<SelectionStep>,
    },
    /// Changes sessions at one moment.
    Edit {
        /// The changes.
        edits: Vec<SessionEdit>,
    },
    /// Adds a trigger to a session, or replaces that of its name.
    Trigger {
        /// The session; `None`: the only one.
        session: Option<String>,
        /// The trigger.
        trigger: Box<TriggerOptions>,
    },
    /// Changes triggers of a session, or starts and stops it now.
    Turn {
        /// The session; `None`: the only one.
        session: Option<String>,
        /// The change.
        turn: TriggerTurn,
    },
    /// Changes rules of a session.
    Rule {
        /// The session; `None`: the only one.
        session: Option<String>,
        /// The change.
        change: RuleChange,
    },
    /// Writes the events that a session that keeps the newest events holds now.
    Snapshot {
        /// The session; `None`: the only one.
        session: Option<String>,
        /// The folder of the trace, an absolute path; `None`: in the session's folder, numbered.
        output: Option<PathBuf>,
    },
    /// Ends a session.
    Stop {
        /// The session; `None`: the only one.
        session: Option<String>,
        /// All sessions.
        all: bool,
    },
    /// Asks how far a session is.
    Progress {
        /// The session.
        session: String,
    },
    /// Claims a session for this client, after its recorder was killed and this one continues it.
    Own {
        /// The session.
        session: String,
    },
    /// Writes the events that ended programs have left and that no session wants, and then deletes
    /// them.
    Recover {
        /// The folder of the trace, an absolute path.
        output: PathBuf,
    },
    /// Asks for the status of the recorder, its sessions and programs.
    Status,
    /// Asks for the status of sessions, without a look at programs, and without their selections.
    Sessions,
    /// The same of sessions with users' objects, with what the maps of these have now.
    Maps,
    /// Asks which events a session could record, and which of them it does.
    Classes {
        /// The session.
        session: String,
    },
    /// A program's request about the sessions that record it: see [`ControlRequest`].
    #[serde(skip)]
    Control(ControlRequest),
}

/// A request of a program that is recorded, as a line of text: such programs outlive versions of this protocol.
///
/// ```text
/// program     kymo-control 1 stop \t session or nothing \t argument
/// recorder    ok \t ...          refused \t why \r more lines of it          later
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlRequest {
    /// The program, as the kernel tells it.
    pub pid: u32,
    /// Its request.
    pub verb: String,
    /// The session; `None`: all that record the program.
    pub session: Option<String>,
    /// What the request is about; may be empty.
    pub argument: String,
    /// Where the reply's file is put, if it has one.
    pub(crate) file: HandedFile,
}

/// A file that goes to a program with the reply.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandedFile(Arc<Mutex<Option<OwnedFd>>>);

impl HandedFile {
    pub(crate) fn put(&self, file: OwnedFd) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    }

    pub(crate) fn take(&self) -> Option<OwnedFd> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl PartialEq for HandedFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HandedFile {}

impl ControlRequest {
    /// Reads such a line; `None`: it is none.
    pub(crate) fn read(line: &str, pid: u32) -> Option<Self> {
        let mut parts = line.strip_prefix(CONTROL)?.splitn(3, '\t');
        let mut part = || parts.next().map(str::to_owned);
        let (verb, session, argument) = (part()?, part()?, part()?);
        let session = Some(session).filter(|session| !session.is_empty());
        Some(Self { pid, verb, session, argument, file: HandedFile::default() })
    }
}

/// Beginning of a program's request.
pub(crate) const CONTROL: &str = "kymo-control 1 ";

/// A change of triggers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerTurn {
    /// Arms a trigger anew; `None`: all.
    Arm(Option<String>),
    /// Disarms a trigger; `None`: all.
    Disarm(Option<String>),
    /// Removes a trigger.
    Remove(String),
    /// The session records from now on.
    Start,
    /// The session records no more.
    Stop,
}

/// A change of a session, among others at the same moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionEdit {
    /// It records other events.
    Select {
        /// The session.
        session: String,
        /// The events.
        selection: SessionSelection,
    },
    /// It begins.
    Begin {
        /// A session that ends then: an event is in one of the two.
        instead_of: Option<String>,
        /// Options of the new one.
        options: Box<SessionOptions>,
    },
    /// It ends.
    End {
        /// The session.
        session: String,
    },
}

/// Outcome of the change of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EditedSession {
    /// Why nothing has changed.
    pub refused: Option<String>,
    /// Name of the session that has begun.
    pub begun: Option<String>,
    /// Notes about its triggers and rules for people, in lines.
    pub notes: Vec<String>,
    /// The session that has ended.
    pub ended: Option<SessionSummary>,
}

/// A change of rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleChange {
    /// Adds a rule, or replaces that of its name.
    Set(Box<RuleOptions>),
    /// Removes a rule.
    Remove(String),
    /// Sets a limit.
    Limit {
        /// Of this rule; `None`: the only one.
        rule: Option<String>,
        /// Of this kind; `None`: of all events.
        kind: Option<String>,
        /// The limit, in words; `None`: that of the rule's words again.
        limit: Option<String>,
    },
}

/// Replies of the recorder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum RecorderReply {
    /// The recorder speaks the same version.
    Hello {
        /// Its [`VERSION`].
        version: u32,
        /// Version of kymo.
        kymo: String,
        /// PID of the recorder.
        pid: u32,
    },
    /// A session has begun.
    Started {
        /// Name of the session.
        session: String,
        /// The folder of its trace.
        output: PathBuf,
        /// Notes about its triggers for people, in lines.
        notes: Vec<String>,
    },
    /// The selection of a session has changed.
    Taken {
        /// Events and programs that the change matched.
        matched: Matched,
    },
    /// Sessions have changed.
    Edited {
        /// For each change, in order.
        outcomes: Vec<EditedSession>,
    },
    /// Rules have changed.
    Ruled {
        /// Events that a new rule is about, if there is one.
        matched: Matched,
        /// The session now.
        status: Box<SessionStatus>,
    },
    /// Triggers have changed.
    Triggered {
        /// Events that a new trigger watches, if there is one.
        matched: Matched,
        /// Status of the session.
        status: Box<SessionStatus>,
    },
    /// A trace was written.
    Snapshot {
        /// The folder of the trace.
        output: PathBuf,
        /// Summary of the trace.
        summary: SessionSummary,
    },
    /// Sessions have ended.
    Stopped {
        /// Their summaries.
        summaries: Vec<SessionSummary>,
    },
    /// How far a session is.
    Progress {
        /// Summary so far; `has_ended` says whether more events may come.
        summary: SessionSummary,
    },
    /// The events that ended programs had left are written.
    Recovered {
        /// The recovered events; `None`: there were none.
        rescued: Option<Rescued>,
    },
    /// Status of the recorder, its sessions and programs.
    Status(Box<Status>),
    /// Status of sessions.
    Sessions {
        /// All sessions.
        sessions: Vec<SessionStatus>,
    },
    /// Events that a session could record.
    Classes(ClassesStatus),
    /// A program's request had its effect.
    #[serde(skip)]
    Controlled {
        /// The answer to its question: a word, or numbers.
        text: String,
    },
    /// The reply comes later.
    Later {
        /// The folder that the recorder has been writing to all the time.
        writes_to: Option<PathBuf>,
        /// How long the client has waited for the reply.
        milliseconds: u64,
    },
    /// The recorder refused the request.
    Refused {
        /// Why: sentences for people, the first of which begins without `error: `.
        message: String,
    },
}

/// Events and programs that a change matched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    /// The session.
    pub session: String,
    /// Events that the rule matched.
    pub events: u64,
    /// Programs that have such events.
    pub programs: u64,
    /// All programs that are present.
    pub all_programs: u64,
    /// Patterns that match no event yet, and similar names of existing events.
    pub unmatched: Vec<(String, Vec<String>)>,
    /// Notes about the filter for people, in lines.
    pub notes: Vec<String>,
}

/// Lost events, by reason. None of these is in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostEvents {
    /// Events for which there was no room in memory.
    pub full: u64,
    /// Events of threads that found no lane.
    pub no_lane: u64,
    /// Events that could not be written to the disk.
    pub unwritten: u64,
    /// Events whose definitions cannot be used.
    #[serde(default)]
    pub undefined: u64,
}

impl LostEvents {
    /// All lost events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.full + self.no_lane + self.unwritten + self.undefined
    }
}

/// Events, losses and problems of a session so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// Name of the session.
    pub session: String,
    /// The folder of its trace.
    pub output: PathBuf,
    /// Events in the trace; of a session that drains, in all of its snapshots.
    pub events: u64,
    /// Events of the recorder itself, which are in the trace too: names of programs, samples of the
    /// clock.
    #[serde(default)]
    pub own_events: u64,
    /// Events of those that were written when an earlier recorder was killed, before this one
    /// continued the session; `None`: no recorder was killed.
    #[serde(default)]
    pub resumed: Option<u64>,
    /// Bytes of the trace.
    pub bytes: u64,
    /// Programs that it recorded.
    pub programs: u64,
    /// Programs of those that started while the session ran and could not read its selection: events
    /// from before the recorder found them are not recorded, and not counted as lost.
    #[serde(default)]
    pub late_programs: u64,
    /// Folders of programs of other users or in containers that came while the session ran: programs
    /// there that ended before the recorder found the folder are not recorded, and not counted.
    #[serde(default)]
    pub late_folders: Vec<PathBuf>,
    /// No recorder ran for a while, after one was killed: programs that came and went meanwhile are not
    /// recorded.
    #[serde(default)]
    pub has_gap: bool,
    /// Events that a filter dropped in the recorder.
    pub filtered: u64,
    /// Events that were lost.
    pub lost: LostEvents,
    /// Texts that were cut.
    pub cut: u64,
    /// Bytes of programs that are not events: their memory was damaged.
    pub damaged_bytes: u64,
    /// Events with times slightly before those of the events before them; in the trace they have
    /// those times.
    pub stepped: u64,
    /// Sub-buffers that programs overwrote before the recorder read them, as happens with
    /// snapshots.
    pub overwritten: u64,
    /// How long the session has recorded.
    pub milliseconds: u64,
    /// Programs of those that are still running.
    #[serde(default)]
    pub running: u64,
    /// Its rules, and what they have kept and let go.
    #[serde(default)]
    pub rules: Vec<RuleStatus>,
    /// Contents of maps of users' objects, of each program; and programs that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectContents>,
    /// See there.
    #[serde(default)]
    pub more_objects: u64,
    /// The objects, if some program ran them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub object_files: Vec<ObjectOptions>,
    /// The same of rules that were removed or replaced: the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_rules: Vec<RuleStatus>,
    /// Number of snapshots taken; `None`: the session writes all the time.
    #[serde(default)]
    pub snapshots: Option<u32>,
    /// Its triggers, without the numbers of programs. A [`SessionStatus`] has them beside the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerStatus>,
    /// Its events of the kernel, which the other counts have too; `None`: it records none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelSummary>,
    /// The session has ended.
    pub has_ended: bool,
    /// Problems, in sentences.
    pub problems: Vec<String>,
}

/// Status of the recorder, its sessions and programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The recorder's process.
    pub pid: u32,
    /// Version of kymo.
    pub kymo: String,
    /// The folder of its socket.
    pub folder: PathBuf,
    /// Sessions.
    pub sessions: Vec<SessionStatus>,
    /// Programs that can be recorded.
    pub programs: Vec<ProgramStatus>,
    /// Programs that are visible but cannot be recorded.
    pub unreachable: Vec<Unreachable>,
}

/// Status of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Its summary so far.
    pub summary: SessionSummary,
    /// Its options.
    pub options: SessionOptions,
    /// It records now, in programs that come.
    #[serde(default)]
    pub is_on: bool,
    /// Its triggers.
    #[serde(default)]
    pub triggers: Vec<TriggerStatus>,
}

/// Status of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// Its PID in the recorder's namespace.
    pub pid: Option<u32>,
    /// Its PID in its own namespace.
    pub own_pid: u32,
    /// Its name.
    pub name: String,
    /// The path of its executable, as the program sees it.
    pub path: String,
    /// Its user.
    pub user: u32,
    /// The clock that stamps its events: `counter` or `monotonic`.
    pub clock: String,
    /// The file of its shared memory.
    pub file: PathBuf,
    /// It sees other files than the recorder does.
    pub is_contained: bool,
    /// The recorder serves it: a session wants events of it.
    pub is_attached: bool,
    /// It has ended; its events are still to be read.
    pub is_dead: bool,
    /// It is quiet, so the recorder looks at it seldom.
    pub is_resting: bool,
    /// How often the recorder has looked at it.
    pub looks: u64,
    /// Bytes that its threads use, bytes that have memory, and the limit.
    pub pool: LanePool,
    /// Lanes that threads hold.
    pub lanes: u32,
    /// Events that it has lost since it started.
    pub lost: u64,
    /// Its events.
    pub events: Vec<EventStatus>,
    /// Definitions that the recorder cannot use, and why.
    pub unusable: Vec<String>,
    /// Copies of the tracer in the program: the counts here are of all of them.
    pub copies: u32,
}

impl ProgramStatus {
    /// Adds another copy of the tracer in the same process.
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
pub struct LanePool {
    /// Bytes that lanes use now.
    pub used_bytes: u64,
    /// Bytes that have memory.
    pub ready_bytes: u64,
    /// The limit in bytes.
    pub limit_bytes: u64,
}

/// Status of an event class of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventStatus {
    /// `provider:name`.
    pub name: String,
    /// Its log level.
    pub level: u8,
    /// The program records it.
    pub is_on: bool,
    /// Where its filter runs: `native`, `interpreter`, `recorder`; `always`, `never`: the filter
    /// decides the same for all events of the class; `None`: the class has no filter.
    pub runs: Option<String>,
    /// Why it runs there.
    pub why: Option<String>,
    /// Sessions that want the class, and their filters.
    pub sessions: BTreeMap<String, Vec<String>>,
}

/// Event classes of the programs that a session records, including those that it does not record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassesStatus {
    /// By name, in order; at most about a mebibyte of them.
    pub classes: Vec<ClassStatus>,
    /// How many more there are.
    pub more: u64,
}

/// Bytes of names and filters of [`ClassesStatus`], about.
pub(crate) const CLASSES_BYTES_MAX: usize = 1 << 20;

/// Status of the event classes of one name, in all programs that define it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassStatus {
    /// `provider:name`.
    pub name: String,
    /// Its log level; where programs disagree, the most important one.
    pub level: u8,
    /// Programs that define it.
    pub programs: u64,
    /// The session records it, of at least one program.
    pub is_on: bool,
    /// Filters that the session has for it; at least one of them has to be true.
    pub filters: Vec<String>,
    /// Where its filters run: see [`EventStatus::runs`].
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

/// Events that were recovered from memory, and written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rescued {
    /// The folder of the trace.
    pub output: PathBuf,
    /// Events in the trace, and its bytes.
    pub events: u64,
    /// See [`Rescued::events`].
    pub bytes: u64,
    /// The programs that recorded them.
    pub programs: Vec<RescuedProgram>,
    /// The date of the events is known; otherwise their times are only relative to each other.
    pub has_times: bool,
    /// Bytes that are not events.
    pub damaged_bytes: u64,
    /// Problems, in sentences.
    pub problems: Vec<String>,
}

/// A program that left events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescuedProgram {
    /// Its name.
    pub name: String,
    /// Its PID in its own namespace.
    pub pid: u32,
    /// The file of its shared memory.
    pub file: PathBuf,
    /// Its events in the trace.
    pub events: u64,
    /// Events that it had lost since it began; those that recorders know of are in their traces.
    pub lost: u64,
}

/// Sends one message.
pub(crate) fn say<T: Serialize>(to: &mut impl Write, what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Receives one message; `None`: the other side has closed the connection.
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
        say(&mut said, &RecorderRequest::Hello { version: 1 }).expect("memory takes all bytes");
        assert_eq!(String::from_utf8_lossy(&said), "{\"ask\":\"hello\",\"version\":1}\n");
        let heard = |bytes: &[u8], most| hear::<RecorderRequest>(&mut io::BufReader::new(bytes), most);
        assert_eq!(heard(&said, 100).expect("it is whole"), Some(RecorderRequest::Hello { version: 1 }));
        assert_eq!(heard(b"", 100).expect("nobody is there"), None);
        assert_eq!(heard(&said, 10).expect_err("too long").to_string(), "a line is too long");
        assert_eq!(heard(b"{\"ask\"", 100).expect_err("cut").to_string(), "a line is not whole");
        assert!(heard(b"{\"ask\":\"nothing\"}\n", 100).is_err());
        assert!(heard(&[b"[".repeat(500), b"\n".to_vec()].concat(), 1000).is_err(), "depth is bounded");
    }
}
