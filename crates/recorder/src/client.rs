//! Talking to the recorder, which is started if there is none.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::folder::{FolderProblem, SOCKET_BYTES_MAX, at, own_folder, own_user, prepare_folder, shared_folder};
use crate::wire::{self, ANSWER_BYTES_MAX, Answer, Question, VERSION};

/// The word that the program which is started as the recorder is given first.
pub const RECORDER_WORD: &str = "recorder-of-this-user";
/// What it says when it listens.
pub(crate) const READY: &str = "ready";

/// Why there is nobody to talk to.
#[derive(Debug, thiserror::Error)]
pub enum ClientProblem {
    /// The folder cannot be relied on.
    #[error(transparent)]
    Folder(#[from] FolderProblem),
    /// Nothing records.
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
        /// Its version.
        found: u32,
        /// Which kymo it is.
        kymo: String,
        /// Its process.
        pid: u32,
    },
    /// It is gone, or says what makes no sense.
    #[error("the recorder does not answer: {0}")]
    Broken(#[from] io::Error),
    /// It says no.
    #[error("{0}")]
    Refused(String),
}

/// Somebody to talk to.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    /// The recorder's process.
    pub pid: u32,
    /// Which kymo it is.
    pub kymo: String,
    tells: fn(&str),
}

/// Whether there are sessions that a recorder goes on with.
#[must_use]
pub fn has_sessions() -> bool {
    !kept_sessions().is_empty()
}

/// Names of sessions that a recorder goes on with.
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

/// Where the recorder of a folder listens.
pub(crate) fn socket(folder: &Path) -> PathBuf {
    folder.join("recorder.sock")
}

impl Client {
    /// Talks to the recorder of this user, if there is one.
    ///
    /// # Errors
    ///
    /// There is none, or none to talk to.
    pub fn connect() -> Result<Self, ClientProblem> {
        let path = socket(&own_folder());
        let bytes = path.as_os_str().len();
        if bytes > SOCKET_BYTES_MAX {
            return Err(FolderProblem::Long { path, bytes }.into());
        }
        match UnixStream::connect(&path) {
            Ok(stream) => Self::greet(stream),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                Err(ClientProblem::Nobody)
            }
            Err(error) => Err(ClientProblem::Broken(at(&path, &error))),
        }
    }

    /// The same; if there is none, `program` with [`RECORDER_WORD`] becomes it.
    ///
    /// # Errors
    ///
    /// It cannot be started, or it is not to be talked to.
    pub fn connect_or_start(program: &[OsString]) -> Result<Self, ClientProblem> {
        prepare_folder(&own_folder())?;
        // One that ends just now is not there any more the next time.
        for _ in 0..10 {
            match Self::connect() {
                Err(ClientProblem::Nobody | ClientProblem::Broken(_)) => start(program)?,
                answer => return answer,
            }
        }
        Self::connect()
    }

    fn greet(stream: UnixStream) -> Result<Self, ClientProblem> {
        let mut client = Self { stream: BufReader::new(stream), pid: 0, kymo: String::new(), tells: |_| {} };
        match client.ask(&Question::Hello { version: VERSION })? {
            Answer::Hello { version: VERSION, kymo, pid } => {
                (client.pid, client.kymo) = (pid, kymo);
                Ok(client)
            }
            Answer::Hello { version, kymo, pid } => Err(ClientProblem::Version { found: version, kymo, pid }),
            _ => Err(nonsense()),
        }
    }

    /// Somebody to tell why an answer takes long, in a sentence.
    #[must_use]
    pub fn telling(self, tells: fn(&str)) -> Self {
        Self { tells, ..self }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    ///
    /// The recorder is gone, or says no.
    pub fn ask(&mut self, question: &Question) -> Result<Answer, ClientProblem> {
        wire::say(self.stream.get_mut(), question)?;
        loop {
            match wire::hear(&mut self.stream, ANSWER_BYTES_MAX)? {
                Some(Answer::Later { writes_to, milliseconds }) => {
                    (self.tells)(&later(writes_to.as_deref(), milliseconds));
                }
                Some(Answer::Refused { message }) => return Err(ClientProblem::Refused(message)),
                Some(answer) => return Ok(answer),
                None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is gone").into()),
            }
        }
    }
}

/// Why an answer takes long.
fn later(writes_to: Option<&Path>, milliseconds: u64) -> String {
    let seconds = milliseconds as f64 / 1000.0;
    let why = writes_to.map_or_else(
        || "it has much to do".to_owned(),
        |folder| {
            format!("what it writes to {} takes that long; programs go on and count what they lose", folder.display())
        },
    );
    format!("the recorder has not answered for {seconds:.0} s: {why}")
}

/// An answer to another question.
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
