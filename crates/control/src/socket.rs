//! The connection to the recorder of this program's folder.

#![allow(unsafe_code, reason = "system calls")]

use core::time::Duration;

use crate::{ControlError, ControlErrorKind};

/// An open socket.
struct Socket(libc::c_int);

impl Socket {
    /// The descriptor is the caller's from now on.
    fn into_number(self) -> i32 {
        let number = self.0;
        core::mem::forget(self);
        number
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Safety: the descriptor belongs to this value.
        unsafe { libc::close(self.0) };
    }
}

fn failed() -> ControlError {
    ControlError::new(ControlErrorKind::Failed, "the connection to the recorder has failed")
}

fn nobody() -> ControlError {
    ControlError::new(ControlErrorKind::NoRecorder, "no recorder runs for this program")
}

/// Sends a line, and returns the reply's without its end, and its file. The recorder may ask for more time.
pub(crate) fn exchange<'r>(
    line: &[u8],
    reply: &'r mut [u8],
    patience: Duration,
) -> Result<(&'r [u8], Option<i32>), ControlError> {
    let socket = connect()?;
    let mut file = None;
    let mut sent = 0;
    while sent < line.len() {
        // Safety: the bytes are there. No signal is raised if the other side is gone.
        let now = unsafe {
            let rest = &line[sent..];
            libc::send(socket.0, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL)
        };
        match usize::try_from(now) {
            Ok(now) => sent += now,
            Err(_) if was_interrupted() => {}
            Err(_) => return Err(failed()),
        }
    }
    let mut length = 0;
    loop {
        let end = reply[..length].iter().position(|byte| *byte == b'\n');
        match end {
            // What follows comes with a patience of its own.
            Some(end) if reply[..end] == *b"later" => {
                reply.copy_within(end + 1..length, 0);
                length -= end + 1;
            }
            Some(end) => return Ok((&reply[..end], file.map(Socket::into_number))),
            None if length == reply.len() => return Err(failed()),
            None => length += received(&socket, &mut reply[length..], &mut file, patience)?,
        }
    }
}

fn received(
    socket: &Socket,
    into: &mut [u8],
    file: &mut Option<Socket>,
    patience: Duration,
) -> Result<usize, ControlError> {
    let mut wanted = libc::pollfd { fd: socket.0, events: libc::POLLIN, revents: 0 };
    let milliseconds = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
    // Safety: there is one descriptor, and the buffer has that length.
    let (ready, now) = unsafe {
        let ready = libc::poll(&raw mut wanted, 1, milliseconds);
        let now = if ready > 0 { receive(socket, into, file) } else { 0 };
        (ready, now)
    };
    match (ready, usize::try_from(now)) {
        (1.., Ok(0)) => Err(ControlError::new(
            ControlErrorKind::Failed,
            "the recorder has closed the connection: those that are older than requests of programs do that",
        )),
        (1.., Ok(now)) => Ok(now),
        (0, _) => Err(ControlError::new(ControlErrorKind::TimedOut, "the recorder does not reply")),
        _ if was_interrupted() => Ok(0),
        _ => Err(failed()),
    }
}

/// Words that a message may have beside its bytes: the head of one descriptor, and room to spare.
const BESIDE: usize = 8;

/// # Safety
///
/// The socket is open.
unsafe fn receive(socket: &Socket, into: &mut [u8], file: &mut Option<Socket>) -> libc::ssize_t {
    let mut beside = [0_u64; BESIDE];
    let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // Safety: a message of zeros is one; the buffers outlive the call, and have those lengths. The kernel says where things
    // beside the bytes are.
    unsafe {
        let mut message: libc::msghdr = core::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
        message.msg_control = beside.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&beside) as _;
        let now = libc::recvmsg(socket.0, &raw mut message, libc::MSG_CMSG_CLOEXEC);
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        if now > 0 && !head.is_null() && (*head).cmsg_type == libc::SCM_RIGHTS {
            *file = Some(Socket(libc::CMSG_DATA(head).cast::<libc::c_int>().read_unaligned()));
        }
        now
    }
}

/// Maps a file, of which others have the same memory; `None`: the kernel does not.
pub(crate) fn map(file: i32, bytes: usize) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // Safety: a new mapping at a place of the kernel's choice, of a file that is open.
    let begin = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file, 0) };
    (begin != libc::MAP_FAILED).then_some(begin.cast())
}

/// Closes a file.
pub(crate) fn close(number: i32) {
    // Safety: the descriptor belongs to the caller.
    unsafe { libc::close(number) };
}

/// Gives memory back that [`SharedRule::into_raw`](crate::SharedRule::into_raw) has given away.
///
/// # Safety
///
/// It is given back once, and nothing uses it any more.
pub unsafe fn unmap(begin: *mut u8, bytes: usize) {
    // Safety: see above.
    unsafe { libc::munmap(begin.cast(), bytes) };
}

fn connect() -> Result<Socket, ControlError> {
    // Safety: sockets are plain numbers, and an address of zeros is one.
    let (number, mut address) = unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        (libc::socket(libc::AF_UNIX, kind, 0), core::mem::zeroed::<libc::sockaddr_un>())
    };
    if number < 0 {
        return Err(failed());
    }
    let socket = Socket(number);
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let mut path = [0; 256];
    let length = kymo_tracer::recorder_socket(&mut path).ok_or_else(nobody)?;
    // The last byte stays zero.
    let room = address.sun_path.len() - 1;
    let to = address.sun_path.get_mut(..length).filter(|_| length <= room).ok_or_else(nobody)?;
    to.iter_mut().zip(&path).for_each(|(to, byte)| *to = *byte as libc::c_char);
    let bytes = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // Safety: the address has that length.
    match unsafe { libc::connect(socket.0, (&raw const address).cast(), bytes) } {
        0 => Ok(socket),
        _ => Err(nobody()),
    }
}

fn was_interrupted() -> bool {
    // Safety: each thread has one.
    unsafe { *libc::__errno_location() == libc::EINTR }
}

/// Sleeps for about so long; returns how long it was.
pub(crate) fn sleep(length: Duration) -> Duration {
    let before = now();
    let time = libc::timespec {
        tv_sec: length.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(length.subsec_nanos() as i32),
    };
    // Safety: the time is a valid one. A signal may end it early.
    unsafe { libc::nanosleep(&raw const time, core::ptr::null_mut()) };
    now().saturating_sub(before)
}

fn now() -> Duration {
    // Safety: `time` has room for the result.
    let time = unsafe {
        let mut time: libc::timespec = core::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time
    };
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}
