//! The recorder's ear: a socket, a thread for whoever talks to it, and questions in the order in which they come.
//!
//! ```text
//! command ── socket ── thread ── Asked { question, answer to } ──> the recorder, which answers between two looks at programs
//!                         └───── Gone { who } when nobody is there any more
//! ```
//!
//! Whoever is slow to ask or to listen keeps a thread waiting, and not the recorder.

use std::io::{self, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};

use crate::folder::own_user;
use crate::wire::{self, Answer, QUESTION_BYTES_MAX, Question, VERSION};

/// Commands that talk at the same time.
const TALKING_MAX: usize = 256;
/// Questions that wait at the same time.
const WAITING_MAX: usize = 64;

/// What happens at the socket.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Somebody asks.
    Asked {
        /// Who: a number that nobody else has.
        who: u64,
        /// What.
        question: Question,
        /// Where the answer goes.
        answer: mpsc::Sender<Answer>,
    },
    /// Somebody is gone.
    Gone {
        /// Who.
        who: u64,
    },
}

/// The socket.
#[derive(Debug)]
pub(crate) struct Ear {
    /// What happens there.
    pub(crate) heard: Receiver<Heard>,
    talking: Arc<AtomicUsize>,
}

impl Ear {
    /// Listens at a path; what was there before is nobody's.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let (say, heard) = mpsc::sync_channel(WAITING_MAX);
        let talking = Arc::new(AtomicUsize::new(0));
        let ear = Self { heard, talking: Arc::clone(&talking) };
        std::thread::Builder::new().name("kymo-listens".to_owned()).spawn(move || accept(&socket, &say, &talking))?;
        Ok(ear)
    }

    /// Commands that talk to it now.
    pub(crate) fn talking(&self) -> usize {
        self.talking.load(Ordering::Acquire)
    }
}

fn accept(socket: &UnixListener, say: &SyncSender<Heard>, talking: &Arc<AtomicUsize>) {
    for who in 0.. {
        let Ok((stream, _)) = socket.accept() else {
            // Out of descriptors, say: that passes.
            std::thread::sleep(std::time::Duration::from_millis(10));
            continue;
        };
        if talking.load(Ordering::Acquire) >= TALKING_MAX || !is_trusted(&stream) {
            continue;
        }
        talking.fetch_add(1, Ordering::AcqRel);
        let (say, left) = (say.clone(), Arc::clone(talking));
        let talk = move || {
            // Whatever goes wrong with whoever asks: it is gone then.
            let _ = converse(who, &stream, &say);
            let _ = say.send(Heard::Gone { who });
            left.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().name("kymo-talks".to_owned()).spawn(talk).is_err() {
            talking.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The socket's mode keeps others away; this does where a system does not look at modes of sockets.
fn is_trusted(stream: &UnixStream) -> bool {
    let who = rustix::net::sockopt::socket_peercred(stream);
    who.is_ok_and(|who| who.uid.is_root() || who.uid.as_raw() == own_user())
}

fn converse(who: u64, stream: &UnixStream, say: &SyncSender<Heard>) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::new(stream), stream);
    let mut is_known = false;
    while let Some(question) = wire::hear::<Question>(&mut from, QUESTION_BYTES_MAX)? {
        let answer = match (&question, is_known) {
            (Question::Hello { version }, _) => {
                is_known = *version == VERSION;
                let kymo = env!("CARGO_PKG_VERSION").to_owned();
                Answer::Hello { version: VERSION, kymo, pid: std::process::id() }
            }
            (_, false) => Answer::Refused { message: "nobody said which version is spoken".to_owned() },
            (_, true) => {
                let (answer, answered) = mpsc::channel();
                say.send(Heard::Asked { who, question, answer }).map_err(io::Error::other)?;
                answered.recv().map_err(io::Error::other)?
            }
        };
        wire::say(&mut to, &answer)?;
    }
    Ok(())
}
