//! Events of a lane, on their way from a program to traces.

use kymo_lane::WriterThread;

use crate::program::ProgramFacts;

/// Events of one sub-buffer of a lane, packed as the program wrote them.
#[derive(Clone, Copy, Debug)]
pub struct EventRun<'a> {
    /// The lane.
    pub lane: u16,
    /// The thread that recorded them.
    pub thread: WriterThread,
    /// How many sub-buffers the lane had taken before this one.
    pub sequence: u64,
    /// Bytes of the sub-buffer before these.
    pub from: u32,
    /// Contexts that the events carry: [`kymo_lane::contexts`].
    pub contexts: u64,
    /// Ticks that no event is before: when the thread took the sub-buffer, or of the last event
    /// before these.
    pub begin: u64,
    /// Ticks of the last event.
    pub last: u64,
    /// The events.
    pub bytes: &'a [u8],
    /// Events that the lane has lost since its previous run.
    pub discarded: u64,
    /// Events that the lane had lost in total when the sub-buffer was taken.
    pub discarded_ever: u64,
    /// Sub-buffers that are missing before this one, because the program has overwritten them.
    pub missing: u64,
}

/// Receiver of runs.
pub trait RunSink {
    /// Takes a run: the program may overwrite it as soon as this returns.
    fn take(&mut self, program: &ProgramFacts, run: &EventRun<'_>);

    /// The lane holds no more events, and has lost so many since its last run.
    fn end(&mut self, program: &ProgramFacts, end: &LaneEnd);
}

/// End of a lane: its thread or its program is gone, or the session ends.
#[derive(Clone, Copy, Debug)]
pub struct LaneEnd {
    /// The lane.
    pub lane: u16,
    /// The last thread that recorded to it.
    pub thread: WriterThread,
    /// Events that it has lost since its last run.
    pub discarded: u64,
    /// Events that it has lost in total.
    pub discarded_ever: u64,
    /// No later event of the lane has ticks before these.
    pub ticks: u64,
}
