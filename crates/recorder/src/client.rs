//! Client of the recorder, which it starts if there is none.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::folder::{FolderProblem, SOCKET_BYTES_MAX, at, own_folder, own_user, prepare_folder, shared_folder};
use crate::protocol::{self, ANSWER_BYTES_MAX, RecorderReply, RecorderRequest, VERSION};

/// The first argument of the program that is started as the recorder.
pub const RECORDER_WORD: &str = "recorder-of-this-user";
/// The recorder's message that it listens.
pub(crate) const READY: &str = "ready";

/// Why a client cannot reach the recorder.
#[derive(Debug, thiserror::Error)]
pub enum ClientProblem {
    /// The folder cannot be relied on.
    #[error(transparent)]
    Folder(#[from] FolderProblem),
    /// No session is recorded.
    #[error("no session is recorded now; `kymo record` begins one")]
    Nobody,
    /// The recorder could not be started.
    #[error("the recorder does not start: {0}")]
    Start(String),
    /// The recorder is of another version.
    #[error(
        "the recorder that runs (process {pid}, kymo {kymo}) speaks version {found}, this kymo version {VERSION}: end its sessions \
         with its own `kymo stop --all`"
    )]
    Version {
        /// Its version of the protocol.
        found: u32,
        /// Its version of kymo.
        kymo: String,
        /// Its PID.
        pid: u32,
    },
    /// The reply took longer than the client's limit.
    #[error("{0}")]
    Slow(String),
    /// The recorder is gone, or sent an invalid reply.
    #[error("the recorder does not answer: {0}")]
    Broken(#[from] io::Error),
    /// The recorder refused the request.
    #[error("{0}")]
    Refused(String),
}

/// A connection to the recorder.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    /// PID of the recorder.
    pub pid: u32,
    /// Its version of kymo.
    pub kymo: String,
    tells: fn(&str),
    /// How long to wait for a reply; `None`: as long as it takes.
    patience: Option<Duration>,
}

/// How long a recorder is silent before the client looks whether it has been stopped, and before it
/// counts as one that hangs.
const SILENCE: Duration = Duration::from_secs(2);
const HANGS: Duration = Duration::from_secs(10);

/// Whether there are sessions that a recorder continues.
#[must_use]
pub fn has_sessions() -> bool {
    !kept_sessions().is_empty()
}

/// Names of sessions that a recorder continues.
#[must_use]
pub fn kept_sessions() -> Vec<String> {
    let mut names: Vec<String> = files(&[own_folder()], "session")
        .iter()
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

/// Whether there is memory of programs, which may be gone.
#[must_use]
pub fn has_leavings() -> bool {
    !files(&[own_folder(), shared_folder(own_user())], "ctl").is_empty()
}

/// Files of a kind.
fn files(folders: &[PathBuf], kind: &str) -> Vec<PathBuf> {
    let entries = folders.iter().flat_map(std::fs::read_dir).flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|found| found == kind)).collect()
}

/// The path of the recorder's socket.
pub(crate) fn socket(folder: &Path) -> PathBuf {
    folder.join("recorder.sock")
}

impl Client {
    /// Connects to the recorder of this user, if there is one.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be talked to.
    pub fn connect() -> Result<Self, ClientProblem> {
        let path = socket(&own_folder());
        let bytes = path.as_os_str().len();
        if bytes > SOCKET_BYTES_MAX {
            return Err(FolderProblem::Long { path, bytes }.into());
        }
        let began = Instant::now();
        loop {
            match connect_at_once(&path) {
                // As many clients as there is room for wait to be accepted.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && began.elapsed() < SILENCE => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                connected => return Self::connected(connected, &path, None),
            }
        }
    }

    /// The same, and never waits longer than this, neither now nor for any reply.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be talked to in that time.
    pub fn connect_for(patience: Duration) -> Result<Self, ClientProblem> {
        let path = socket(&own_folder());
        Self::connected(connect_at_once(&path), &path, Some(patience))
    }

    fn connected(
        connected: io::Result<UnixStream>,
        path: &Path,
        patience: Option<Duration>,
    ) -> Result<Self, ClientProblem> {
        match connected {
            Ok(stream) => Self::greet(stream, patience),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                Err(ClientProblem::Nobody)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(slow(error, None)),
            Err(error) => Err(ClientProblem::Broken(at(path, &error))),
        }
    }

    /// The same; if there is no recorder, starts `program` with [`RECORDER_WORD`] as the recorder.
    ///
    /// # Errors
    ///
    /// The recorder cannot be started, or it cannot be talked to.
    pub fn connect_or_start(program: &[OsString]) -> Result<Self, ClientProblem> {
        prepare_folder(&own_folder())?;
        // A recorder that is just ending is gone at one of the next attempts.
        let begin = Instant::now();
        loop {
            match Self::connect() {
                Err(ClientProblem::Nobody | ClientProblem::Broken(_)) if begin.elapsed() < HANGS => start(program)?,
                answer => return answer,
            }
        }
    }

    fn greet(stream: UnixStream, patience: Option<Duration>) -> Result<Self, ClientProblem> {
        // The PID of the listening process, from the kernel: a stopped process does not say it.
        let pid =
            rustix::net::sockopt::socket_peercred(&stream).map_or(0, |peer| peer.pid.as_raw_nonzero().get() as u32);
        let stream = BufReader::new(stream);
        let mut client = Self { stream, pid, kymo: String::new(), tells: |_| {}, patience };
        match client.ask(&RecorderRequest::Hello { version: VERSION })? {
            RecorderReply::Hello { version: VERSION, kymo, pid } => {
                (client.pid, client.kymo) = (pid, kymo);
                Ok(client)
            }
            RecorderReply::Hello { version, kymo, pid } => Err(ClientProblem::Version { found: version, kymo, pid }),
            _ => Err(nonsense()),
        }
    }

    /// Sets a function that gets the reason why a reply takes long, as a sentence.
    #[must_use]
    pub fn telling(self, tells: fn(&str)) -> Self {
        Self { tells, ..self }
    }

    /// Waits at most this long for each reply from now on.
    #[must_use]
    pub fn waiting_for(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Sends a request, and waits for the reply. A recorder that has much to do says so every two
    /// seconds; one that says nothing has been stopped, or hangs.
    ///
    /// # Errors
    ///
    /// The recorder is gone, stopped, too slow, or refuses the request.
    pub fn ask(&mut self, question: &RecorderRequest) -> Result<RecorderReply, ClientProblem> {
        let asked = Instant::now();
        let mut why = None;
        self.wait_until(asked)
            .and_then(|()| protocol::say(self.stream.get_mut(), question))
            .map_err(|error| slow(error, None))?;
        // Such a question is not worth more than this; changes and ends of sessions are.
        let is_glance = matches!(
            question,
            RecorderRequest::Status
                | RecorderRequest::Sessions
                | RecorderRequest::Maps
                | RecorderRequest::Classes { .. }
        );
        loop {
            if is_glance && asked.elapsed() >= HANGS {
                return Err(ClientProblem::Slow(why.unwrap_or_else(|| self.silent())));
            }
            if !self.listen(asked) {
                let silent = || ClientProblem::Slow(self.silent());
                return Err(why.filter(|_| !is_stopped(self.pid)).map_or_else(silent, ClientProblem::Slow));
            }
            let heard = self.wait_until(asked).and_then(|()| protocol::hear(&mut self.stream, ANSWER_BYTES_MAX));
            match heard.map_err(|error| slow(error, why.take()))? {
                Some(RecorderReply::Later { writes_to, milliseconds }) => {
                    let later = later(writes_to.as_deref(), milliseconds);
                    (self.tells)(&later);
                    why = Some(later);
                }
                Some(RecorderReply::Refused { message }) => return Err(ClientProblem::Refused(message)),
                Some(answer) => return Ok(answer),
                None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is gone").into()),
            }
        }
    }

    /// Waits until the recorder says something; returns whether it does.
    fn listen(&self, asked: Instant) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let since = Instant::now();
        while self.stream.buffer().is_empty() {
            let left = self.patience.map_or(SILENCE, |patience| patience.saturating_sub(asked.elapsed()).min(SILENCE));
            let wait = Timespec::try_from(left).ok();
            let mut stream = [PollFd::new(self.stream.get_ref(), PollFlags::IN)];
            match poll(&mut stream, wait.as_ref()) {
                Ok(0) => {}
                Err(rustix::io::Errno::INTR) => continue,
                // The read reports the error.
                Ok(_) | Err(_) => break,
            }
            let is_over = self.patience.is_some_and(|patience| asked.elapsed() >= patience);
            if is_over || is_stopped(self.pid) || since.elapsed() >= HANGS {
                return false;
            }
        }
        true
    }

    /// Why the recorder says nothing.
    fn silent(&self) -> String {
        let pid = self.pid;
        if is_stopped(pid) {
            return format!(
                "the recorder does not answer: process {pid} has been stopped (`kill -CONT {pid}` lets it go on). Programs keep \
                 their events as long as they have room"
            );
        }
        "the recorder does not answer in time: it may have been stopped, or hangs".to_owned()
    }

    /// Lets the next call wait for the rest of the time since the request.
    fn wait_until(&self, asked: Instant) -> io::Result<()> {
        let Some(patience) = self.patience else { return Ok(()) };
        let left = patience.checked_sub(asked.elapsed()).filter(|left| !left.is_zero());
        let left = left.ok_or(io::ErrorKind::WouldBlock)?;
        self.stream.get_ref().set_read_timeout(Some(left))?;
        self.stream.get_ref().set_write_timeout(Some(left))
    }
}

/// Whether a process has been stopped, by a signal or a debugger.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before the state may contain any character.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

/// Connects without waiting for the other side to accept: the recorder may have been stopped.
fn connect_at_once(path: &Path) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&stream, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Why no reply came: it takes too long, for this reason, or the recorder is gone.
fn slow(error: io::Error, why: Option<String>) -> ClientProblem {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientProblem::Slow(
            why.unwrap_or_else(|| "the recorder does not answer in time: it may have been stopped".to_owned()),
        ),
        _ => error.into(),
    }
}

/// Why a reply takes long.
fn later(writes_to: Option<&Path>, milliseconds: u64) -> String {
    let seconds = milliseconds as f64 / 1000.0;
    let why = writes_to.map_or_else(
        || "it has much to do".to_owned(),
        |folder| format!("writing to {} takes that long; programs continue and count lost events", folder.display()),
    );
    format!("the recorder has not answered for {seconds:.0} s: {why}")
}

/// The error for a reply to another request.
#[must_use]
pub fn nonsense() -> ClientProblem {
    io::Error::new(io::ErrorKind::InvalidData, "its answer is one to something else").into()
}

/// Starts the recorder, and waits until it listens, or another one does.
fn start(program: &[OsString]) -> Result<(), ClientProblem> {
    let problem = |path: &Path, error: &io::Error| ClientProblem::Start(at(path, error).to_string());
    let (program, words) =
        program.split_first().ok_or_else(|| ClientProblem::Start("there is no program".to_owned()))?;
    let mut command = Command::new(program);
    command.args(words).arg(RECORDER_WORD).current_dir("/");
    let null = Path::new("/dev/null");
    let nowhere = File::options().read(true).write(true).open(null).map_err(|error| problem(null, &error))?;
    let also_nowhere = nowhere.try_clone().map_err(|error| problem(null, &error))?;
    command.stdin(nowhere).stdout(Stdio::piped()).stderr(also_nowhere);
    let mut child = command.spawn().map_err(|error| problem(Path::new(program), &error))?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut said).map_err(|error| problem(Path::new(program), &error))?;
    }
    match said.trim_end() {
        READY => Ok(()),
        "" => Err(ClientProblem::Start(format!("{} ended without a word", Path::new(program).display()))),
        said => Err(ClientProblem::Start(said.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A client that limits its wait gets the reason why there was no reply.
    #[test]
    fn patience_is_bounded() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("recorder.sock");
        let patience = Duration::from_millis(50);
        let connect = || Client::connected(connect_at_once(&path), &path, Some(patience));
        assert!(matches!(connect(), Err(ClientProblem::Nobody)));
        let socket = UnixListener::bind(&path).expect("it is free");
        // The socket has no process that accepts, as when the recorder was stopped.
        let mut waiting = Vec::new();
        let problem = loop {
            match connect_at_once(&path) {
                Ok(stream) if waiting.len() < 100_000 => waiting.push(stream),
                Ok(_) => panic!("a queue without an end"),
                Err(error) => break error,
            }
            if let [_] = waiting[..] {
                let problem = connect().expect_err("nobody greets");
                assert!(matches!(&problem, ClientProblem::Slow(why) if why.contains("stopped")), "{problem}");
            }
        };
        assert_eq!(problem.kind(), io::ErrorKind::WouldBlock);
        assert!(matches!(connect(), Err(ClientProblem::Slow(_))));
        drop((waiting, socket));
        assert!(matches!(connect(), Err(ClientProblem::Nobody)));
    }

    /// A client does not wait longer for a recorder that says that it takes longer; the reason is
    /// told.
    #[test]
    fn a_reason_is_told() {
        let (ours, mut theirs) = UnixStream::pair().expect("the system has some");
        let later = RecorderReply::Later { writes_to: Some("/traces/slow".into()), milliseconds: 2000 };
        let hello = RecorderReply::Hello { version: VERSION, kymo: "1".to_owned(), pid: 7 };
        for answer in [&hello, &later] {
            writeln!(theirs, "{}", serde_json::to_string(answer).expect("it is text")).expect("it is open");
        }
        let mut client = Client::greet(ours, Some(Duration::from_millis(50))).expect("it greets");
        let problem = client.ask(&RecorderRequest::Sessions).expect_err("it never answers");
        assert!(matches!(&problem, ClientProblem::Slow(why) if why.contains("/traces/slow")), "{problem}");
        drop(theirs);
        assert!(matches!(client.ask(&RecorderRequest::Sessions), Err(ClientProblem::Broken(_))));
    }
}
