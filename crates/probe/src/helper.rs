//! The helper: the only process that needs rights in the kernel. It sets up and hands over open files; it never sees an event.
//!
//! ```text
//! sudo kymo record --kernel
//!   ├─ helper, as root ── makes the instance, opens files ──┐ files, over a socket that only the user can connect to
//!   └─ the user again ── kymo ── recorder ──────────────────┘ reads pages, writes the trace, with the user's rights
//! ```
//!
//! Requests are structures of known words and numbers, each a message of its length and JSON. Names of events are looked up
//! among those that the kernel has; nothing else of a request becomes part of a path. Probes are checked by [`crate::probes`].

mod handing;
mod objects;
mod perf;
mod ruling;
mod set_up;
mod watching;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::call_texts::CallTexts;
use crate::helper::handing::handed_over;
use crate::helper::ruling::BegunRules;
use crate::helper::set_up::{known_formats, set_up};
use crate::objects::{EndedObject, KernelObject, LoadedObject, ObjectRefusal, ObjectRequest};
use crate::perf_sched::SchedEvents;
use crate::priority;
use crate::probes::{ProbeRequest, ProbeRights, ProbedFiles};
use crate::record_test::{RecordFilter, UnfilteredEvent};
use crate::rings::ProgramRingFiles;
use crate::rules::{KernelRuleRequest, KernelRules, RuleFiles};
use crate::stacks::{StackEventId, StackEvents, StackFiles, StackRequest};
use crate::state_iterators::{STATE_PARTS, StateIterators};
use crate::thread_limit::ThreadLimit;
use crate::tracefs::{CpuFiles, TraceFs, TraceFsProblem, TraceInstance};
use crate::watch::{KernelCounts, WatchCounts, WatchRequest, WatchValue};

pub use objects::ObjectProblem;

/// The word that makes a process a helper.
pub const HELPER_WORD: &str = "helper-of-the-kernel";
/// Bytes of a message at most.
const MESSAGE_MAX: u32 = 64 << 20;
/// Files that go with one byte at most; the kernel takes 253.
const FILES_MAX: usize = 128;
/// How long the helper waits for the next recorder.
const LONELY_MAX: Duration = Duration::from_secs(30);
/// Addresses of the kernel's functions.
const SYMBOLS: &str = "/proc/kallsyms";

/// The clock of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelClock {
    /// The processor's counter.
    Counter,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

/// A recorder's request to set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRequest {
    /// Events, as `SYSTEM:NAME`.
    pub events: Vec<String>,
    /// Their clock.
    pub clock: KernelClock,
    /// Bytes of each CPU's ring buffer.
    pub ring_bytes: u64,
    /// Processes that its events are about, and those that they start; `None`: all. Events of subsystems that run on behalf of
    /// others (interrupts, timers, disks, networks, work queues) are those of all in any case.
    pub processes: Option<Vec<u32>>,
    /// Probes.
    #[serde(default)]
    pub probes: Vec<ProbeRequest>,
    /// Texts of system calls, too.
    pub texts: bool,
    /// Call stacks, too.
    #[serde(default)]
    pub stacks: Option<StackRequest>,
    /// Conditions of some of the events.
    #[serde(default)]
    pub filters: Vec<RecordFilter>,
    /// Rules about other events, of which only those are recorded that took long.
    #[serde(default)]
    pub rules: Vec<KernelRuleRequest>,
    /// Counts beside the events.
    #[serde(default)]
    pub watches: Vec<WatchRequest>,
}

/// Requests of the recorder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
enum HelperRequest {
    /// Which events there are.
    Events,
    /// How records of these events are described.
    Formats { events: Vec<String> },
    /// To set up; the answer has the files of an instance that is there already, if one is.
    Begin(KernelRequest),
    /// To open the state of the system, as it is now.
    State,
    /// To count events.
    Watch(WatchRequest),
    /// The counts until now, or those with this number beside a recording.
    Counts { beside: Option<usize> },
    /// To have the kernel measure what counting costs, or no more.
    Measure { is_on: bool },
    /// To set the limit of a kind of a rule, in nanoseconds.
    Kind { rule: usize, value: WatchValue, nanos: u64 },
    /// To ask rules no more.
    StopRules,
    /// To count no more beside a recording.
    StopCounts,
    /// To load an object; its file comes behind this.
    LoadObject(ObjectRequest),
    /// To detach it, and to read its tables.
    EndObject,
    /// To let a thread of the recorder run before others.
    Hurry { thread: u32, is_first: bool },
    /// To remove all that was set up.
    End,
}

/// Answers of the helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
enum HelperReply {
    Events {
        events: Vec<String>,
        /// Why tracefs cannot be used: the events are those that perf gives.
        tracefs_absent: Option<String>,
    },
    Formats {
        formats: Vec<(String, String)>,
    },
    Begun(Box<BegunKernel>),
    /// For each part: why it has no file.
    State {
        absent: [Option<String>; 3],
    },
    Watching,
    /// Counts; behind the first message, only more of their rows.
    Counted {
        counts: WatchCounts,
        is_last: bool,
    },
    Kind,
    /// Times that programs of rules did not run.
    Stopped {
        missed: u64,
    },
    /// Files of its rings come behind this.
    ObjectLoaded(LoadedObject),
    ObjectRefused(ObjectRefusal),
    /// The file with the contents of its tables comes behind this.
    ObjectEnded(EndedObject),
    Hurries,
    Ended {
        problem: Option<String>,
    },
    Refused {
        why: String,
    },
    /// The helper's user may not do it.
    Forbidden {
        why: String,
    },
}

/// A description of an instance and its events, without files.
#[derive(Debug, Serialize, Deserialize)]
struct BegunKernel {
    is_resumed: bool,
    header_page: String,
    page_bytes: u32,
    formats: Vec<(String, String)>,
    probes: Vec<(String, String)>,
    /// CPUs of each instance.
    rings: Vec<Vec<u32>>,
    /// CPUs and bytes of rings with texts of system calls, or why there are none.
    texts: Option<Result<(Vec<u32>, u32), String>>,
    /// Call stacks, or why there are none.
    stacks: Option<Result<BegunStacks, String>>,
    /// CPUs and bytes of rings with context switches, where there are no instances.
    #[serde(default)]
    sched: Option<(Vec<u32>, u32)>,
    #[serde(default)]
    unfiltered: Vec<UnfilteredEvent>,
    #[serde(default)]
    rules: Option<BegunRules>,
}

/// A description of rings with call stacks, without files.
#[derive(Debug, Serialize, Deserialize)]
struct BegunStacks {
    ring_bytes: u32,
    cpus: Vec<u32>,
    ids: Vec<StackEventId>,
    is_by_programs: bool,
    /// There is a file with addresses of the kernel's functions behind the rings.
    has_symbols: bool,
}

/// An instance that a helper has set up, with its open files.
#[derive(Debug)]
pub struct KernelFiles {
    /// It was there already: a recorder before this one has begun it.
    pub is_resumed: bool,
    /// The kernel's description of pages.
    pub header_page: String,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Subsystems and descriptions of events: those that are recorded, and those of all system calls.
    pub formats: Vec<(String, String)>,
    /// Names and descriptions of the events of probes.
    pub probes: Vec<(String, String)>,
    /// These turn recording on and off.
    pub switches: Vec<File>,
    /// Ring buffers of CPUs, of which there may be several for each.
    pub rings: Vec<RingFiles>,
    /// Rings with texts of system calls, or why there are none; `None`: no such texts are recorded.
    pub texts: Option<Result<ProgramRingFiles, String>>,
    /// Rings with call stacks, and addresses of the kernel's functions as far as they may be had; or why there are none; `None`: no
    /// stacks are recorded.
    pub stacks: Option<Result<(StackFiles, Option<File>), String>>,
    /// Rings with context switches, and memory for their records, which the helper keeps; `None`: tracefs gives the events.
    pub sched: Option<StackFiles>,
    /// Events of which the kernel does not ask the condition that was asked for.
    pub unfiltered: Vec<UnfilteredEvent>,
    /// Rings with records of rules, and the memory of each; `None`: there are no rules.
    pub rules: Option<RuleFiles>,
}

/// Events that can be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownEvents {
    /// Their names, as `SYSTEM:NAME`.
    pub events: Vec<String>,
    /// Why tracefs cannot be used: the events are those that perf gives.
    pub tracefs_absent: Option<String>,
}

/// Files of a ring buffer.
#[derive(Debug)]
pub struct RingFiles {
    /// Which of a CPU's ring buffers it is, from 0.
    pub number: u8,
    /// The files.
    pub cpu: CpuFiles,
    /// Memory for its pages, which the helper keeps for the next recorder, if this one is killed.
    pub spool: File,
}

/// Why the helper has refused.
#[derive(Debug, thiserror::Error)]
pub enum HelperProblem {
    /// It is not there any more, or the connection broke.
    #[error("the helper that reads the kernel's events cannot be reached: {0}")]
    Broken(#[from] io::Error),
    /// It refused.
    #[error("{0}")]
    Refused(String),
    /// Its user may not use tracefs.
    #[error("this user may not read the kernel's events: {0}")]
    Forbidden(String),
}

/// A recorder's connection to its helper.
#[derive(Debug)]
pub struct Helper {
    stream: UnixStream,
}

impl Helper {
    /// Connects to the socket of a helper of this name.
    ///
    /// # Errors
    ///
    /// There is none, or another user has taken the name.
    pub fn connect(name: &str) -> Result<Self, HelperProblem> {
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(io::Error::from)?;
        if !(peer.uid.is_root() || peer.uid == rustix::process::geteuid()) {
            return Err(HelperProblem::Refused("another user listens where the helper should".to_owned()));
        }
        Ok(Self { stream })
    }

    /// Events that can be recorded.
    ///
    /// # Errors
    ///
    /// The helper does not answer, or may use neither tracefs nor perf.
    pub fn events(&mut self) -> Result<KnownEvents, HelperProblem> {
        match self.ask(&HelperRequest::Events)? {
            HelperReply::Events { events, tracefs_absent } => Ok(KnownEvents { events, tracefs_absent }),
            other => Err(unexpected(other)),
        }
    }

    /// Descriptions of records of events, with their subsystems; and those of all system calls, if these are among them.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn formats(&mut self, events: &[String]) -> Result<Vec<(String, String)>, HelperProblem> {
        match self.ask(&HelperRequest::Formats { events: events.to_vec() })? {
            HelperReply::Formats { formats } => Ok(formats),
            other => Err(unexpected(other)),
        }
    }

    /// Sets up, and receives the files.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn begin(&mut self, request: &KernelRequest) -> Result<KernelFiles, HelperProblem> {
        let begun = match self.ask(&HelperRequest::Begin(request.clone()))? {
            HelperReply::Begun(begun) => *begun,
            other => return Err(unexpected(other)),
        };
        let count: usize = begun.rings.iter().map(|cpus| 1 + 3 * cpus.len()).sum();
        let of_texts = begun.texts.as_ref().and_then(|texts| texts.as_ref().ok()).map_or(0, |(cpus, _)| cpus.len() + 2);
        let of_stacks = begun.stacks.as_ref().and_then(|stacks| stacks.as_ref().ok());
        let of_stacks = of_stacks.map_or(0, |stacks| stacks.cpus.len() + 1 + usize::from(stacks.has_symbols));
        let of_sched = begun.sched.as_ref().map_or(0, |(cpus, _)| cpus.len() + 1);
        let of_rules = begun.rules.as_ref().map_or(0, BegunRules::files);
        let count = count + of_texts + of_stacks + of_sched + of_rules;
        let mut files = receive_files(&self.stream, count)?.into_iter().map(File::from);
        let mut next = || files.next().ok_or_else(|| HelperProblem::Broken(io::ErrorKind::UnexpectedEof.into()));
        let BegunKernel { is_resumed, header_page, page_bytes, formats, probes, rings: numbers, .. } = begun;
        let (texts, stacks, sched) = (begun.texts, begun.stacks, begun.sched);
        let (unfiltered, rules) = (begun.unfiltered, begun.rules);
        let (mut switches, mut rings) = (Vec::new(), Vec::new());
        for (number, cpus) in (0..).zip(numbers) {
            switches.push(next()?);
            for cpu in cpus {
                let cpu = CpuFiles { cpu, pages: next()?, counts: next()? };
                rings.push(RingFiles { number, cpu, spool: next()? });
            }
        }
        let texts = match texts {
            Some(Ok((cpus, ring_bytes))) => {
                let rings = cpus.iter().map(|_| next().map(OwnedFd::from)).collect::<Result<_, _>>()?;
                Some(Ok(ProgramRingFiles { ring_bytes, cpus, rings, counts: next()?.into(), spool: next()?.into() }))
            }
            Some(Err(why)) => Some(Err(why)),
            None => None,
        };
        let stacks = match stacks {
            Some(Ok(BegunStacks { ring_bytes, cpus, ids, is_by_programs, has_symbols })) => {
                let rings = cpus.iter().map(|_| next().map(OwnedFd::from)).collect::<Result<_, _>>()?;
                let spool = next()?.into();
                let symbols = has_symbols.then(&mut next).transpose()?;
                Some(Ok((StackFiles { ring_bytes, cpus, rings, ids, is_by_programs, spool }, symbols)))
            }
            Some(Err(why)) => Some(Err(why)),
            None => None,
        };
        let sched = sched.map(|(cpus, ring_bytes)| {
            let rings = cpus.iter().map(|_| next().map(OwnedFd::from)).collect::<Result<_, _>>()?;
            let (ids, is_by_programs, spool) = (Vec::new(), false, next()?.into());
            Ok::<_, HelperProblem>(StackFiles { ring_bytes, cpus, rings, ids, is_by_programs, spool })
        });
        let sched = sched.transpose()?;
        let rules = rules.map(|rules| rules.with(&mut next)).transpose()?;
        Ok(KernelFiles {
            is_resumed,
            header_page,
            page_bytes,
            formats,
            probes,
            switches,
            rings,
            texts,
            stacks,
            sched,
            unfiltered,
            rules,
        })
    }

    /// Opens iterators of threads, open files and mapped code, of all processes; or says why there is none. Their records are
    /// those of [`crate::state_records`].
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn state(&mut self) -> Result<[Result<File, String>; 3], HelperProblem> {
        let absent = match self.ask(&HelperRequest::State)? {
            HelperReply::State { absent } => absent,
            other => return Err(unexpected(other)),
        };
        let count = absent.iter().filter(|why| why.is_none()).count();
        let mut files = receive_files(&self.stream, count)?.into_iter().map(File::from);
        Ok(absent.map(|why| match why {
            None => files.next().ok_or_else(|| "the helper has not sent it".to_owned()),
            Some(why) => Err(why),
        }))
    }

    /// Lets a thread of this process run before others: where all CPUs are busy, rings would be full before their reader has its
    /// turn.
    ///
    /// # Errors
    ///
    /// The helper may not do that.
    pub fn hurry(&mut self, thread: u32) -> Result<(), HelperProblem> {
        self.order(thread, true)
    }

    /// Lets a thread of this process run as most do: a user without rights may make it wait for an idle CPU, and not undo that.
    ///
    /// # Errors
    ///
    /// The helper may not do that.
    pub fn usual(&mut self, thread: u32) -> Result<(), HelperProblem> {
        self.order(thread, false)
    }

    fn order(&mut self, thread: u32, is_first: bool) -> Result<(), HelperProblem> {
        match self.ask(&HelperRequest::Hurry { thread, is_first })? {
            HelperReply::Hurries => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Has everything removed that was set up: the caller has closed its files.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn end(&mut self) -> Result<(), HelperProblem> {
        match self.ask(&HelperRequest::End)? {
            HelperReply::Ended { problem: None } => Ok(()),
            HelperReply::Ended { problem: Some(problem) } => Err(HelperProblem::Refused(problem)),
            other => Err(unexpected(other)),
        }
    }

    fn ask(&mut self, request: &HelperRequest) -> io::Result<HelperReply> {
        send(&self.stream, request)?;
        receive(&self.stream)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

fn unexpected(reply: HelperReply) -> HelperProblem {
    match reply {
        HelperReply::Refused { why } => HelperProblem::Refused(why),
        HelperReply::Forbidden { why } => HelperProblem::Forbidden(why),
        other => HelperProblem::Refused(format!("the helper's answer is another one: {other:?}")),
    }
}

/// Listens at a socket of this name, which no file has.
///
/// # Errors
///
/// The name is taken.
pub fn listen(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Helps recorders of a user that connect to a socket, until one of them has ended or none has come for half a minute. Any
/// process of the user may ask: probes, which read the memory of programs, are made only where `rights` say.
pub fn help(listener: &UnixListener, user: u32, rights: ProbeRights) {
    let mut state = HelperState { files: ProbedFiles::open(rights), ..HelperState::default() };
    let mut lonely = Instant::now();
    while lonely.elapsed() < LONELY_MAX {
        if !is_ready(listener.as_fd(), LONELY_MAX.saturating_sub(lonely.elapsed())) {
            continue;
        }
        let Ok((stream, _)) = listener.accept() else { break };
        let peer = rustix::net::sockopt::socket_peercred(&stream);
        let is_allowed = |peer: rustix::net::UCred| {
            // Any program in the kernel is more than other processes of the user should get: only the command itself has one loaded,
            // which started this process and is the same one after it has become its user.
            let is_starter = rustix::process::getppid() == Some(peer.pid);
            (peer.uid.is_root() || peer.uid.as_raw() == user) && (is_starter || !state.files.objects)
        };
        if !peer.is_ok_and(is_allowed) {
            continue;
        }
        let is_over = state.converse(&stream).unwrap_or(false);
        // There is no other command that goes on with counts or an object.
        if is_over || state.files.watch || state.files.objects {
            break;
        }
        lonely = Instant::now();
    }
    let _ = state.end();
}

fn is_ready(file: BorrowedFd<'_>, timeout: Duration) -> bool {
    let mut files = [PollFd::from_borrowed_fd(file, PollFlags::IN)];
    let timeout = rustix::event::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    poll(&mut files, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// The instance, when it is set up.
#[derive(Debug, Default)]
struct HelperState {
    files: ProbedFiles,
    fs: Option<TraceFs>,
    instance: Option<HelpedInstance>,
    /// When they were asked for.
    state: Option<StateIterators>,
    /// Events that are counted.
    counting: Option<KernelCounts>,
    /// An object of the user.
    object: Option<KernelObject>,
}

/// What a recorder has asked for.
#[derive(Debug)]
struct HelpedInstance {
    /// One, or two: that of some threads, and that of all.
    instances: Vec<TraceInstance>,
    request: KernelRequest,
    /// Subsystems and descriptions of events.
    formats: Vec<(String, String)>,
    /// Threads that are recorded, if not all are: programs keep them as long as this is there.
    _limit: Option<ThreadLimit>,
    /// Programs that read texts of system calls, as long as this is there, or why there are none.
    texts: Option<Result<CallTexts, String>>,
    /// The same of call stacks.
    stacks: Option<Result<StackEvents, String>>,
    /// Context switches, if there are no instances.
    sched: Option<SchedEvents>,
    /// By instance and CPU: memory for pages.
    spools: BTreeMap<(usize, u32), OwnedFd>,
    /// Events of which the kernel does not ask their condition.
    unfiltered: Vec<UnfilteredEvent>,
    /// Rules that programs ask, as long as this is there.
    rules: Option<KernelRules>,
    /// Events that are counted, as long as this is there.
    counting: Vec<KernelCounts>,
}

impl HelperState {
    /// Answers requests; whether the helper is no longer needed.
    fn converse(&mut self, stream: &UnixStream) -> io::Result<bool> {
        while let Some(request) = receive::<HelperRequest>(stream)? {
            match request {
                HelperRequest::Begin(_)
                | HelperRequest::State
                | HelperRequest::Formats { .. }
                | HelperRequest::Hurry { .. }
                    if self.files.watch || self.files.objects =>
                {
                    let why = "the command that started the helper records nothing".to_owned();
                    send(stream, &HelperReply::Refused { why })?;
                }
                HelperRequest::LoadObject(request) => self.load_object(stream, &request)?,
                HelperRequest::EndObject => self.end_object(stream)?,
                HelperRequest::Events => {
                    send(stream, &self.known())?;
                }
                HelperRequest::Formats { events } => {
                    let fs = self.fs().cloned().map_err(|problem| problem.to_string());
                    let reply = match fs.and_then(|fs| known_formats(&fs, &events)) {
                        Ok(formats) => HelperReply::Formats { formats },
                        Err(why) => HelperReply::Refused { why },
                    };
                    send(stream, &reply)?;
                }
                HelperRequest::Begin(request) => match self.begin(request) {
                    Ok((begun, files)) => {
                        send(stream, &HelperReply::Begun(Box::new(begun)))?;
                        send_files(stream, &files)?;
                    }
                    Err(problem) => send(stream, &HelperReply::Refused { why: problem })?,
                },
                HelperRequest::State => {
                    let (absent, files) = self.open_state();
                    send(stream, &HelperReply::State { absent })?;
                    send_files(stream, &files)?;
                }
                HelperRequest::Watch(request) => send(stream, &self.watch(&request))?,
                HelperRequest::Counts { beside } => self.send_counts(stream, beside)?,
                HelperRequest::Measure { is_on } => send(stream, &self.measure(is_on))?,
                HelperRequest::Kind { rule, value, nanos } => send(stream, &self.set_kind(rule, &value, nanos))?,
                HelperRequest::StopRules => send(stream, &self.stop_rules())?,
                HelperRequest::StopCounts => send(stream, &self.stop_counts())?,
                HelperRequest::Hurry { thread, is_first } => {
                    let reply = hurry(stream, thread, is_first).map_or_else(
                        |error| HelperReply::Refused { why: format!("thread {thread} cannot be hurried: {error}") },
                        |()| HelperReply::Hurries,
                    );
                    send(stream, &reply)?;
                }
                HelperRequest::End => {
                    let problem = self.end().err().map(|problem| problem.to_string());
                    send(stream, &HelperReply::Ended { problem })?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn fs(&mut self) -> Result<&TraceFs, TraceFsProblem> {
        if self.fs.is_none() {
            let fs = TraceFs::find()?;
            fs.check_instances()?;
            fs.clean();
            self.fs = Some(fs);
        }
        Ok(self.fs.as_ref().expect("it was just put there"))
    }

    /// Events of tracefs, or those of perf.
    fn known(&mut self) -> HelperReply {
        match self.fs().and_then(|fs| fs.events()) {
            Ok(events) => HelperReply::Events { events, tracefs_absent: None },
            Err(problem) => perf::known_without(&problem),
        }
    }

    fn begin(&mut self, request: KernelRequest) -> Result<(BegunKernel, Vec<OwnedFd>), String> {
        let fs = self.fs().ok().cloned();
        let is_resumed = self.instance.is_some();
        if !is_resumed {
            self.instance = Some(match &fs {
                Some(fs) => set_up(fs, request, &self.files)?,
                None => perf::set_up(request, &self.files)?,
            });
        }
        let helped = self.instance.as_mut().expect("it was just put there");
        let (begun, files) = handed_over(fs.as_ref(), helped).map_err(|problem| problem.to_string())?;
        Ok((BegunKernel { is_resumed, ..begun }, files))
    }

    /// Iterators, and why there are none.
    fn open_state(&mut self) -> ([Option<String>; 3], Vec<OwnedFd>) {
        let iterators = self.state.get_or_insert_with(StateIterators::load);
        let mut files = Vec::new();
        let absent = STATE_PARTS.map(|part| iterators.open(part).map(|file| files.push(file)).err());
        (absent, files)
    }

    fn end(&mut self) -> Result<(), TraceFsProblem> {
        let fs = self.fs.clone();
        self.instance.take().map_or(Ok(()), |helped| take_down(fs.as_ref(), helped.instances, &helped.request))
    }
}

/// Gives a thread of the process at the other end the lowest real-time priority. More weight alone does not help: a thread that
/// sleeps between short looks was seen to wait for most of a second behind two that hand each other a byte.
fn hurry(stream: &UnixStream, thread: u32, is_first: bool) -> io::Result<()> {
    let process = rustix::net::sockopt::socket_peercred(stream)?.pid;
    let is_its = Path::new(&format!("/proc/{process}/task/{thread}")).exists();
    let thread = i32::try_from(thread).ok().filter(|_| is_its);
    let thread = thread.ok_or(io::ErrorKind::NotFound)?;
    if is_first { priority::real_time(thread) } else { priority::usual(thread) }
}

/// Removes instances and the probes of the group of the first; returns the first problem.
fn take_down(
    fs: Option<&TraceFs>,
    instances: Vec<TraceInstance>,
    request: &KernelRequest,
) -> Result<(), TraceFsProblem> {
    let removed = match (fs, instances.first()) {
        (Some(fs), Some(instance)) if !request.probes.is_empty() => {
            // The kernel keeps probes that record.
            let _ = instance.set("events/enable", "0");
            fs.remove_probes(&instance.group())
        }
        _ => Ok(()),
    };
    instances.into_iter().fold(removed, |problem, instance| instance.remove().and(problem))
}

fn send<M: Serialize>(mut stream: &UnixStream, message: &M) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MESSAGE_MAX);
    let length = length.ok_or(io::ErrorKind::InvalidData)?;
    stream.write_all(&length.to_le_bytes())?;
    stream.write_all(&text)
}

/// The next message; `None`: the other side has closed the connection.
fn receive<M: DeserializeOwned>(mut stream: &UnixStream) -> io::Result<Option<M>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes(length);
    if length > MESSAGE_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = Vec::new();
    stream.take(length.into()).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map(Some).map_err(io::Error::from)
}

/// Sends open files: each byte has some of them.
fn send_files(stream: &UnixStream, files: &[OwnedFd]) -> io::Result<()> {
    for some in files.chunks(FILES_MAX) {
        let some: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        with.push(SendAncillaryMessage::ScmRights(&some));
        sendmsg(stream, &[IoSlice::new(b"f")], &mut with, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

fn receive_files(stream: &UnixStream, count: usize) -> io::Result<Vec<OwnedFd>> {
    let mut files = Vec::with_capacity(count);
    while files.len() < count {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let got = recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut with, RecvFlags::CMSG_CLOEXEC)?;
        if got.bytes == 0 || got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for message in with.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                files.extend(some);
            }
        }
    }
    Ok(files)
}
