//! The recorder's socket: a thread for each client, and requests in the order in which they come.
//!
//! ```text
//! command ── socket ── thread ── Asked { question, answer to } ──> the recorder, which answers between two looks at programs
//!                         └───── Gone { who } when nobody is there any more
//! program ── bell ────── thread ── Rung
//! ```
//!
//! A slow client keeps its thread waiting, and not the recorder.

use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::daemon::bell::FolderBell;
use crate::folder::{at, own_user};
use crate::protocol::{self, CONTROL, ControlRequest, QUESTION_BYTES_MAX, RecorderReply, RecorderRequest, VERSION};
use crate::writing::WriterState;

/// Clients that are connected at the same time.
const TALKING_MAX: usize = 256;
/// Requests that wait at the same time.
const WAITING_MAX: usize = 64;
/// How long a client waits before it is told why.
const WITHOUT_A_WORD: Duration = Duration::from_secs(2);

/// Events at the socket.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A client sends a request.
    Asked {
        /// The client: a number that no other client has.
        who: u64,
        /// The request.
        question: RecorderRequest,
        /// Where the reply goes.
        answer: mpsc::Sender<RecorderReply>,
    },
    /// A program has rung, or the bell is gone.
    Rung,
    /// A client is gone.
    Gone {
        /// The client.
        who: u64,
    },
}

/// The socket.
#[derive(Debug)]
pub(crate) struct Ear {
    /// Receives the events at the socket.
    pub(crate) heard: Receiver<Heard>,
    /// The bell that programs ring; `None`: there is none.
    pub(crate) bell: Option<FolderBell>,
    talking: Arc<AtomicUsize>,
}

impl Ear {
    /// Listens at a path; a socket that was there before belongs to no recorder.
    pub(crate) fn open(path: &Path, writing: &WriterState) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(path, &error)),
            _ => {}
        }
        let socket = UnixListener::bind(path).map_err(|error| at(path, &error))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(|error| at(path, &error))?;
        let (say, heard) = mpsc::sync_channel(WAITING_MAX);
        let talking = Arc::new(AtomicUsize::new(0));
        // If the channel is full, the recorder has so many requests that it is awake anyway.
        let rung = say.clone();
        let bell =
            path.parent().and_then(|folder| FolderBell::hear(folder, move || _ = rung.try_send(Heard::Rung)).ok());
        let ear = Self { heard, bell, talking: Arc::clone(&talking) };
        let writing = writing.clone();
        std::thread::Builder::new()
            .name("kymo-listens".to_owned())
            .spawn(move || accept(&socket, &say, &talking, &writing))?;
        Ok(ear)
    }

    /// Clients that are connected now.
    pub(crate) fn talking(&self) -> usize {
        self.talking.load(Ordering::Acquire)
    }
}

fn accept(socket: &UnixListener, say: &SyncSender<Heard>, talking: &Arc<AtomicUsize>, writing: &WriterState) {
    for who in 0.. {
        let Ok((stream, _)) = socket.accept() else {
            // For example, there are no more descriptors: that passes.
            std::thread::sleep(std::time::Duration::from_millis(10));
            continue;
        };
        if talking.load(Ordering::Acquire) >= TALKING_MAX || !is_trusted(&stream) {
            continue;
        }
        talking.fetch_add(1, Ordering::AcqRel);
        let (say, left, writing) = (say.clone(), Arc::clone(talking), writing.clone());
        let talk = move || {
            // After any error the client counts as gone.
            let _ = converse(who, &stream, &say, &writing);
            let _ = say.send(Heard::Gone { who });
            left.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().name("kymo-talks".to_owned()).spawn(talk).is_err() {
            talking.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The socket's mode keeps other users away; this check does so where a system ignores modes of
/// sockets.
fn is_trusted(stream: &UnixStream) -> bool {
    let who = rustix::net::sockopt::socket_peercred(stream);
    who.is_ok_and(|who| who.uid.is_root() || who.uid.as_raw() == own_user())
}

fn converse(who: u64, stream: &UnixStream, say: &SyncSender<Heard>, writing: &WriterState) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::new(stream), stream);
    let mut is_known = false;
    if from.fill_buf()?.first() == CONTROL.as_bytes().first() {
        return control(who, stream, from, say);
    }
    while let Some(question) = protocol::hear::<RecorderRequest>(&mut from, QUESTION_BYTES_MAX)? {
        let answer = match (&question, is_known) {
            (RecorderRequest::Hello { version }, _) => {
                is_known = *version == VERSION;
                let kymo = env!("CARGO_PKG_VERSION").to_owned();
                RecorderReply::Hello { version: VERSION, kymo, pid: std::process::id() }
            }
            (_, false) => RecorderReply::Refused { message: "the client did not send its protocol version".to_owned() },
            (_, true) => {
                let (answer, answered) = mpsc::channel();
                say.send(Heard::Asked { who, question, answer }).map_err(io::Error::other)?;
                wait(&answered, &mut to, writing, WITHOUT_A_WORD)?
            }
        };
        protocol::say(&mut to, &answer)?;
    }
    Ok(())
}

/// Bytes of a program's request.
const CONTROL_BYTES_MAX: u64 = 4096;

/// The request of a program, which has a connection of its own.
fn control(who: u64, stream: &UnixStream, from: BufReader<&UnixStream>, say: &SyncSender<Heard>) -> io::Result<()> {
    let (mut line, mut to) = (String::new(), stream);
    from.take(CONTROL_BYTES_MAX).read_line(&mut line)?;
    let pid = rustix::net::sockopt::socket_peercred(stream)?.pid.as_raw_nonzero().get().cast_unsigned();
    let Some(request) = line.strip_suffix('\n').and_then(|line| ControlRequest::read(line, pid)) else {
        return to.write_all(b"refused\tthe request is none\n");
    };
    let (answer, answered) = mpsc::channel();
    let handed = request.file.clone();
    say.send(Heard::Asked { who, question: RecorderRequest::Control(request), answer }).map_err(io::Error::other)?;
    let reply = wait_saying(&answered, WITHOUT_A_WORD, || to.write_all(b"later\n"))?;
    let line = match reply {
        RecorderReply::Controlled { text } => format!("ok\t{text}\n"),
        RecorderReply::Refused { message } => format!("refused\t{}\n", message.trim_end().replace('\n', "\r")),
        _ => "refused\tthe recorder has another reply\n".to_owned(),
    };
    match handed.take() {
        Some(file) => send_with(stream, line.as_bytes(), &file),
        None => to.write_all(line.as_bytes()),
    }
}

/// Sends a line and a file.
fn send_with(stream: &UnixStream, line: &[u8], file: &OwnedFd) -> io::Result<()> {
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    with.push(SendAncillaryMessage::ScmRights(&files));
    let sent = sendmsg(stream, &[IoSlice::new(line)], &mut with, SendFlags::NOSIGNAL)?;
    let mut rest = stream;
    rest.write_all(&line[sent..])
}

/// Waits for the recorder's reply, and reports again and again that it takes long: the recorder may
/// wait for a disk.
fn wait(
    answered: &Receiver<RecorderReply>,
    to: &mut impl io::Write,
    writing: &WriterState,
    patience: Duration,
) -> io::Result<RecorderReply> {
    let asked = Instant::now();
    wait_saying(answered, patience, || {
        let written = writing.now().filter(|(_, since)| *since >= patience / 2);
        let writes_to = written.map(|(folder, _)| folder);
        protocol::say(to, &RecorderReply::Later { writes_to, milliseconds: asked.elapsed().as_millis() as u64 })
    })
}

/// The same with other words.
fn wait_saying(
    answered: &Receiver<RecorderReply>,
    patience: Duration,
    mut later: impl FnMut() -> io::Result<()>,
) -> io::Result<RecorderReply> {
    loop {
        match answered.recv_timeout(patience) {
            Ok(answer) => return Ok(answer),
            Err(error @ RecvTimeoutError::Disconnected) => return Err(io::Error::other(error)),
            Err(RecvTimeoutError::Timeout) => later()?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_long_is_told_what_for() {
        let (writing, patience) = (WriterState::default(), Duration::from_millis(20));
        let (answer, answered) = mpsc::channel();
        let (mut to, refused) = (Vec::new(), RecorderReply::Refused { message: "no".to_owned() });
        let ended = std::thread::scope(|scope| {
            let (to, telling) = (&mut to, writing.clone());
            let waits = scope.spawn(move || wait(&answered, to, &telling, patience));
            std::thread::sleep(3 * patience);
            let writes = writing.begin(Path::new("/traces/slow"));
            std::thread::sleep(10 * patience);
            drop(writes);
            std::thread::sleep(3 * patience);
            answer.send(refused.clone()).expect("somebody waits");
            waits.join().expect("it ends")
        });
        assert_eq!(ended.expect("it was answered"), refused);
        let (mut from, mut told) = (to.as_slice(), Vec::new());
        while let Some(said) = protocol::hear::<RecorderReply>(&mut from, 1000).expect("whole lines") {
            let RecorderReply::Later { writes_to, .. } = said else { panic!("{said:?}") };
            told.push(writes_to);
        }
        let slow = Some(Path::new("/traces/slow").to_owned());
        assert!(told.contains(&slow) && told.first() == Some(&None) && told.last() == Some(&None), "{told:?}");
    }
}
