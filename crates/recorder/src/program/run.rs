//! What a lane held, on its way from a program to traces.

use kymo_lane::Thread;

use crate::program::Known;

/// Events of a lane, one behind the other, as they are; of one sub-buffer.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The lane.
    pub lane: u16,
    /// Who wrote it.
    pub thread: Thread,
    /// How many sub-buffers the lane had taken before this one.
    pub sequence: u64,
    /// Bytes of the sub-buffer before these.
    pub from: u32,
    /// What events carry: [`kymo_lane::contexts`].
    pub contexts: u64,
    /// Ticks that no event is before: those when the sub-buffer was taken, or of the last event that came before these.
    pub begin: u64,
    /// Ticks of the last event.
    pub last: u64,
    /// The events.
    pub bytes: &'a [u8],
    /// Events that the lane has lost since its run before.
    pub discarded: u64,
    /// What the lane had lost altogether when the sub-buffer was taken.
    pub discarded_ever: u64,
    /// Sub-buffers that are missing before this one, because the program has overwritten them.
    pub missing: u64,
}

/// Where runs go.
pub trait Sink {
    /// Takes a run: the program may overwrite it as soon as this is over.
    fn take(&mut self, program: &Known, run: &Run<'_>);

    /// The lane holds nothing more, and has lost so many events since its last run.
    fn end(&mut self, program: &Known, end: &End);
}

/// A lane whose thread is gone, or whose program is; or one at the end of a session.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The lane.
    pub lane: u16,
    /// Who wrote it last.
    pub thread: Thread,
    /// Events that it has lost since its last run.
    pub discarded: u64,
    /// What it has lost altogether.
    pub discarded_ever: u64,
    /// Ticks before which nothing comes any more.
    pub ticks: u64,
}
