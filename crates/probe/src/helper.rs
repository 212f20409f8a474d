//! The helper: the only process that needs rights in the kernel. It sets up and hands over open files; it never sees an event.
//!
//! ```text
//! sudo kymo record --kernel
//!   ├─ helper, as root ── makes the instance, opens files ──┐ files, over a socket that only the user can connect to
//!   └─ the user again ── kymo ── recorder ──────────────────┘ reads pages, writes the trace, with the user's rights
//! ```
//!
//! Requests are structures of known words and numbers, each a message of its length and JSON. Names of events are looked up
//! among those that the kernel has; nothing else of a request becomes part of a path.

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

use crate::priority;
use crate::tracefs::{CpuFiles, TraceFs, TraceFsProblem, TraceInstance};

/// The word that makes a process a helper.
pub const HELPER_WORD: &str = "helper-of-the-kernel";
/// Bytes of a message at most.
const MESSAGE_MAX: u32 = 64 << 20;
/// Files that go with one byte at most; the kernel takes 253.
const FILES_MAX: usize = 128;
/// How long the helper waits for the next recorder.
const LONELY_MAX: Duration = Duration::from_secs(30);
/// Bytes of a ring buffer at most, for each CPU.
const RING_MAX: u64 = 4 << 30;

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
}

/// Requests of the recorder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
enum HelperRequest {
    /// Which events there are.
    Events,
    /// To set up; the answer has the files of an instance that is there already, if one is.
    Begin(KernelRequest),
    /// To let a thread of the recorder run before others.
    Hurry { thread: u32 },
    /// To remove all that was set up.
    End,
}

/// Answers of the helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
enum HelperReply {
    Events {
        events: Vec<String>,
    },
    Begun(BegunKernel),
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
    header_page: String,
    page_bytes: u32,
    formats: Vec<(String, String)>,
    cpus: Vec<u32>,
}

/// An instance that a helper has set up, with its open files.
#[derive(Debug)]
pub struct KernelFiles {
    /// The kernel's description of pages.
    pub header_page: String,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Subsystems and descriptions of events: those that are recorded, and those of all system calls.
    pub formats: Vec<(String, String)>,
    /// Turns recording on and off.
    pub switch: File,
    /// Files of CPUs.
    pub cpus: Vec<CpuFiles>,
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

    /// Names of the kernel's events, as `SYSTEM:NAME`.
    ///
    /// # Errors
    ///
    /// The helper does not answer, or may not use tracefs.
    pub fn events(&mut self) -> Result<Vec<String>, HelperProblem> {
        match self.ask(&HelperRequest::Events)? {
            HelperReply::Events { events } => Ok(events),
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
            HelperReply::Begun(begun) => begun,
            other => return Err(unexpected(other)),
        };
        let mut files = receive_files(&self.stream, 1 + 2 * begun.cpus.len())?.into_iter().map(File::from);
        let mut next = || files.next().ok_or_else(|| HelperProblem::Broken(io::ErrorKind::UnexpectedEof.into()));
        let switch = next()?;
        let mut cpus = Vec::with_capacity(begun.cpus.len());
        for cpu in begun.cpus {
            cpus.push(CpuFiles { cpu, pages: next()?, counts: next()? });
        }
        let BegunKernel { header_page, page_bytes, formats, .. } = begun;
        Ok(KernelFiles { header_page, page_bytes, formats, switch, cpus })
    }

    /// Lets a thread of this process run before others: where all CPUs are busy, rings would be full before their reader has its
    /// turn.
    ///
    /// # Errors
    ///
    /// The helper may not do that.
    pub fn hurry(&mut self, thread: u32) -> Result<(), HelperProblem> {
        match self.ask(&HelperRequest::Hurry { thread })? {
            HelperReply::Hurries => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Has everything removed that was set up: the caller has closed its files.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn end(mut self) -> Result<(), HelperProblem> {
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

/// Helps recorders of a user that connect to a socket, until one of them has ended or none has come for half a minute.
pub fn help(listener: &UnixListener, user: u32) {
    let mut state = HelperState::default();
    let mut lonely = Instant::now();
    while lonely.elapsed() < LONELY_MAX {
        if !is_ready(listener.as_fd(), LONELY_MAX.saturating_sub(lonely.elapsed())) {
            continue;
        }
        let Ok((stream, _)) = listener.accept() else { break };
        let peer = rustix::net::sockopt::socket_peercred(&stream);
        if !peer.is_ok_and(|peer| peer.uid.is_root() || peer.uid.as_raw() == user) {
            continue;
        }
        let is_over = state.converse(&stream).unwrap_or(false);
        if is_over {
            return;
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
    fs: Option<TraceFs>,
    instance: Option<(TraceInstance, KernelRequest)>,
}

impl HelperState {
    /// Answers requests; whether the helper is no longer needed.
    fn converse(&mut self, stream: &UnixStream) -> io::Result<bool> {
        while let Some(request) = receive::<HelperRequest>(stream)? {
            match request {
                HelperRequest::Events => {
                    let events = self.fs().and_then(|fs| fs.events());
                    send(stream, &events.map_or_else(refused, |events| HelperReply::Events { events }))?;
                }
                HelperRequest::Begin(request) => match self.begin(request) {
                    Ok((begun, files)) => {
                        send(stream, &HelperReply::Begun(begun))?;
                        send_files(stream, &files)?;
                    }
                    Err(problem) => send(stream, &HelperReply::Refused { why: problem })?,
                },
                HelperRequest::Hurry { thread } => {
                    let reply = hurry(stream, thread).map_or_else(
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
            fs.clean();
            self.fs = Some(fs);
        }
        Ok(self.fs.as_ref().expect("it was just put there"))
    }

    fn begin(&mut self, request: KernelRequest) -> Result<(BegunKernel, Vec<OwnedFd>), String> {
        let fs = self.fs().map_err(|problem| problem.to_string())?.clone();
        if self.instance.is_none() {
            let instance = set_up(&fs, &request)?;
            self.instance = Some((instance, request));
        }
        let (instance, request) = self.instance.as_ref().expect("it was just put there");
        handed_over(&fs, instance, request).map_err(|problem| problem.to_string())
    }

    fn end(&mut self) -> Result<(), TraceFsProblem> {
        self.instance.take().map_or(Ok(()), |(instance, _)| instance.remove())
    }
}

fn refused(problem: TraceFsProblem) -> HelperReply {
    let why = problem.to_string();
    if problem.is_forbidden() { HelperReply::Forbidden { why } } else { HelperReply::Refused { why } }
}

/// Gives a thread of the process at the other end the lowest real-time priority. More weight alone does not help: a thread that
/// sleeps between short looks was seen to wait for most of a second behind two that hand each other a byte.
fn hurry(stream: &UnixStream, thread: u32) -> io::Result<()> {
    let process = rustix::net::sockopt::socket_peercred(stream)?.pid;
    let is_its = Path::new(&format!("/proc/{process}/task/{thread}")).exists();
    let thread = i32::try_from(thread).ok().filter(|_| is_its);
    priority::real_time(thread.ok_or(io::ErrorKind::NotFound)?)
}

fn set_up(fs: &TraceFs, request: &KernelRequest) -> Result<TraceInstance, String> {
    let known = fs.events().map_err(|problem| problem.to_string())?;
    if let Some(unknown) = request.events.iter().find(|event| !known.contains(event)) {
        return Err(format!("the kernel has no event `{unknown}`"));
    }
    let instance = fs.instance().map_err(|problem| problem.to_string())?;
    match prepare(&instance, request) {
        Ok(()) => Ok(instance),
        Err(problem) => {
            let _ = instance.remove();
            Err(problem.to_string())
        }
    }
}

fn prepare(instance: &TraceInstance, request: &KernelRequest) -> Result<(), TraceFsProblem> {
    let clock = match request.clock {
        KernelClock::Counter => "x86-tsc",
        KernelClock::Monotonic => "mono",
    };
    instance.set("trace_clock", clock)?;
    instance.set("options/overwrite", "1")?;
    // Readers have names and processes from events: the kernel need not note them at each switch.
    for option in ["record-cmd", "record-tgid"] {
        let _ = instance.set(&format!("options/{option}"), "0");
    }
    let kib = request.ring_bytes.clamp(1 << 12, RING_MAX) >> 10;
    instance.set("buffer_size_kb", &kib.to_string())?;
    for event in &request.events {
        let (system, name) = event.split_once(':').expect("it is one of the kernel's");
        instance.set(&format!("events/{system}/{name}/enable"), "1")?;
    }
    Ok(())
}

fn handed_over(
    fs: &TraceFs,
    instance: &TraceInstance,
    request: &KernelRequest,
) -> Result<(BegunKernel, Vec<OwnedFd>), TraceFsProblem> {
    let mut formats = Vec::new();
    let has_calls = request.events.iter().any(|event| event.starts_with("raw_syscalls:"));
    let all = if has_calls { fs.events()? } else { Vec::new() };
    let calls = all.iter().filter(|event| event.starts_with("syscalls:sys_enter_"));
    for event in request.events.iter().chain(calls) {
        let (system, name) = event.split_once(':').expect("it is one of the kernel's");
        formats.push((system.to_owned(), fs.format(system, name)?));
    }
    let cpus = instance.cpus()?;
    let begun = BegunKernel {
        header_page: fs.header_page()?,
        page_bytes: instance.page_bytes()?,
        formats,
        cpus: cpus.iter().map(|files| files.cpu).collect(),
    };
    let mut files = vec![OwnedFd::from(instance.switch_file()?)];
    for CpuFiles { pages, counts, .. } in cpus {
        files.extend([OwnedFd::from(pages), OwnedFd::from(counts)]);
    }
    Ok((begun, files))
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
