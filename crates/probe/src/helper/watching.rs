//! Counting for a command, as its helper does it and as the command asks for it.

use std::io;
use std::os::unix::net::UnixStream;

use super::{Helper, HelperProblem, HelperReply, HelperRequest, HelperState, receive, send, unexpected};
use crate::KernelProgram;
use crate::watch::{KernelCounts, WatchCounts, WatchRequest};

/// Rows of a message: all texts of their keys may need six letters for each byte.
const MESSAGE_ROWS: usize = 1 << 14;

impl Helper {
    /// Begins to count. It ends with the connection.
    ///
    /// # Errors
    ///
    /// The helper's: what is wrong with the request, or the kernel's verifier's log.
    pub fn watch(&mut self, request: &WatchRequest) -> Result<(), HelperProblem> {
        match self.ask(&HelperRequest::Watch(request.clone()))? {
            HelperReply::Watching => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// From now on, the kernel measures its programs; or it does no more.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn measure(&mut self, is_on: bool) -> Result<(), HelperProblem> {
        match self.ask(&HelperRequest::Measure { is_on })? {
            HelperReply::Watching => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// The counts since the beginning.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn counts(&mut self) -> Result<WatchCounts, HelperProblem> {
        self.all_counts(None)
    }

    /// The same of counts beside a recording, by their place in its request.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn counts_beside(&mut self, number: usize) -> Result<WatchCounts, HelperProblem> {
        self.all_counts(Some(number))
    }

    /// Counts no more beside a recording: counts stay as they are.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn stop_counts(&mut self) -> Result<(), HelperProblem> {
        match self.ask(&HelperRequest::StopCounts)? {
            HelperReply::Watching => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    fn all_counts(&mut self, beside: Option<usize>) -> Result<WatchCounts, HelperProblem> {
        let mut reply = self.ask(&HelperRequest::Counts { beside })?;
        let mut all: Option<WatchCounts> = None;
        loop {
            let HelperReply::Counted { counts, is_last } = reply else { return Err(unexpected(reply)) };
            match &mut all {
                Some(all) => all.rows.extend(counts.rows),
                None => all = Some(counts),
            }
            if is_last {
                return Ok(all.unwrap_or_default());
            }
            reply = receive(&self.stream)?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        }
    }
}

impl HelperState {
    pub(super) fn watch(&mut self, request: &WatchRequest) -> HelperReply {
        if !self.files.watch {
            return HelperReply::Refused { why: "the command that started the helper counts no events".to_owned() };
        }
        match KernelCounts::begin(request, None) {
            Ok(counting) => {
                self.counting = Some(counting);
                HelperReply::Watching
            }
            Err(why) if may_load() => HelperReply::Refused { why },
            Err(why) => HelperReply::Forbidden { why },
        }
    }

    pub(super) fn measure(&mut self, is_on: bool) -> HelperReply {
        self.counting.iter_mut().for_each(|counting| counting.measure(is_on));
        HelperReply::Watching
    }

    pub(super) fn stop_counts(&mut self) -> HelperReply {
        self.instance.iter_mut().flat_map(|helped| &mut helped.counting).for_each(KernelCounts::stop);
        HelperReply::Watching
    }

    /// Counts in as many messages as their rows need.
    pub(super) fn send_counts(&self, stream: &UnixStream, beside: Option<usize>) -> io::Result<()> {
        let counting = match beside {
            None => self.counting.as_ref(),
            Some(number) => self.instance.as_ref().and_then(|helped| helped.counting.get(number)),
        };
        let counts = counting.map(KernelCounts::counts);
        let mut counts = match counts.unwrap_or_else(|| Err("nothing is counted".to_owned())) {
            Ok(counts) => counts,
            Err(why) => return send(stream, &HelperReply::Refused { why }),
        };
        let mut rows = std::mem::take(&mut counts.rows).into_iter();
        loop {
            counts.rows = rows.by_ref().take(MESSAGE_ROWS).collect();
            let is_last = rows.len() == 0;
            send(stream, &HelperReply::Counted { counts: std::mem::take(&mut counts), is_last })?;
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Whether this process may load programs at all.
pub(super) fn may_load() -> bool {
    // r0 = 0; exit
    let nothing = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    !KernelProgram::load(&nothing).is_err_and(|error| error.is_unavailable())
}
