//! KernelCounts for a command, as its helper does it and as the command asks for it.

use super::{Helper, HelperProblem, HelperReply, HelperRequest, HelperState, unexpected};
use crate::KernelProgram;
use crate::watch::{KernelCounts, WatchCounts, WatchRequest};

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
        match self.ask(&HelperRequest::Counts)? {
            HelperReply::Counted(counts) => Ok(counts),
            other => Err(unexpected(other)),
        }
    }
}

impl HelperState {
    pub(super) fn watch(&mut self, request: &WatchRequest) -> HelperReply {
        if !self.files.watch {
            return HelperReply::Refused { why: "the command that started the helper counts no events".to_owned() };
        }
        match KernelCounts::begin(request) {
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

    pub(super) fn counts(&self) -> HelperReply {
        let counts = self.counting.as_ref().map(KernelCounts::counts);
        match counts.unwrap_or_else(|| Err("nothing is counted".to_owned())) {
            Ok(counts) => HelperReply::Counted(counts),
            Err(why) => HelperReply::Refused { why },
        }
    }
}

/// Whether this process may load programs at all.
fn may_load() -> bool {
    // r0 = 0; exit
    let nothing = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    !KernelProgram::load(&nothing).is_err_and(|error| error.is_unavailable())
}
