//! How far a long job is: bytes of packets that are behind, of all that it has to read; and whether it should go on.
//!
//! The threads that read add, a thread that watches looks; neither waits for the other. Showing it
//! is the caller's duty.
//!
//! ```text
//! cancel() ──> cursors deliver nothing more ──> all reading comes to an end ──> whole(answer): Err(Cancelled)
//! ```
//!
//! A job that is canceled need not know: its result is thrown away where it was begun. As a
//! cancellation is never taken back, an answer is whole if the job was not canceled when all its
//! threads had ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kymo_scan::{BatchContent, Mark, Packet, Round, StopFlag, StreamBatch};

use crate::open::Session;
use crate::open::rehearsal::{Rehearsal, Took};

/// How far a job is, and whether it should go on; may be asked and told by any thread.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    stop: StopFlag,
    rehearsal: Option<Rehearsal>,
}

/// The job was canceled: there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was cancelled")]
pub struct Cancelled;

impl Progress {
    /// Of a job that is canceled when this becomes true, as the handler of a signal makes it.
    #[must_use]
    pub fn ended_by(flag: Arc<AtomicBool>) -> Self {
        Self { stop: flag.into(), ..Self::default() }
    }

    /// For an analysis where one thread does the work of so many: see [`Progress::took`].
    #[must_use]
    pub fn rehearsing(threads: usize) -> Self {
        Self { rehearsal: Some(Rehearsal::new(threads.max(1))), ..Self::default() }
    }

    /// The work that each thread would have done, in the order of time, if that is rehearsed.
    #[must_use]
    pub fn took(&self) -> Vec<Took> {
        self.rehearsal.as_ref().map(Rehearsal::took).unwrap_or_default()
    }

    /// How long rehearsing lasted: the other time of a run would be as long without.
    #[must_use]
    pub fn rehearsed(&self) -> Duration {
        self.rehearsal.as_ref().map(Rehearsal::time).unwrap_or_default()
    }

    pub(crate) fn rehearsal(&self) -> Option<&Rehearsal> {
        self.rehearsal.as_ref()
    }

    /// Bytes that are behind, and all of them; 0 if that is not known.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (if total == 0 { done } else { done.min(total) }, total)
    }

    /// Cancels the job: it ends soon, with [`Cancelled`]. That cannot be taken back.
    pub fn cancel(&self) {
        self.stop.raise();
    }

    /// Whether it was canceled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.stop.is_raised()
    }

    /// The job's result, which is the whole answer only if it was not canceled. All threads that
    /// read for it must have ended.
    pub(crate) fn whole<T>(&self, answer: T) -> Result<T, Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(answer) }
    }

    /// The flag that ends cursors.
    pub(crate) fn stop(&self) -> StopFlag {
        self.stop.clone()
    }

    /// There is more to do than was known.
    pub(crate) fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Session {
    /// A job will read the packets that may have events between two times.
    pub(crate) fn expect(&self, progress: &Progress, begin_ns: Option<i64>, end_ns: Option<i64>) {
        for (_, stream) in self.streams() {
            progress.expect(stream.packets.packet_bytes(stream.packets_between(begin_ns, end_ns)));
        }
    }
}

/// How far a job is in one data stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    packet: Option<u64>,
    /// Bytes of the packet, and how many of them are behind.
    bytes: u64,
    done: u64,
}

impl Steps {
    /// The job is at a position of a packet, in bits.
    pub(crate) fn at(&mut self, progress: &Progress, packet: &Packet, position: u64) {
        let mut step = 0;
        if self.packet.replace(packet.number) != Some(packet.number) {
            // The skipped rest of the packet before counts too.
            step += self.bytes - self.done;
            (self.bytes, self.done) = (packet.row.total_bits / 8, 0);
        }
        let now = (position / 8).clamp(self.done, self.bytes);
        progress.add(step + now - self.done);
        self.done = now;
    }

    /// The job is behind the first rows of a batch.
    pub(crate) fn behind(&mut self, progress: &Progress, batch: &StreamBatch, rows: usize) {
        match &batch.content {
            BatchContent::Events(events) => {
                let last = rows.checked_sub(1).map_or(0, |last| events.records.positions[last]);
                self.at(progress, &events.packet, last);
            }
            BatchContent::Mark(Mark::PacketEnd { packet, .. }) => self.at(progress, packet, packet.row.total_bits),
            BatchContent::Mark(_) => {}
        }
    }
}

/// How far a job is that reads all data streams in the order of time.
pub(crate) struct Follower<'a> {
    progress: &'a Progress,
    streams: Vec<Steps>,
}

impl<'a> Follower<'a> {
    pub(crate) fn new(session: &Session, progress: &'a Progress) -> Self {
        Self { progress, streams: vec![Steps::default(); session.streams().len()] }
    }

    /// The job is behind a round.
    pub(crate) fn behind(&mut self, round: &Round<StreamBatch>) {
        for part in &round.parts {
            self.streams[part.stream].behind(self.progress, &part.batch, part.rows.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use crate::{CountOptions, CutOptions, OpenOptions, PrintFormat, PrintOptions, Progress, Session};

    fn demo() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
    }

    /// Bytes done and bytes expected, after a job.
    fn after(job: impl FnOnce(&Session, &Progress)) -> (u64, u64) {
        let (session, progress) = (Session::open(&[demo()], &OpenOptions::default()).unwrap(), Progress::default());
        job(&session, &progress);
        progress.bytes()
    }

    /// Jobs that read everything are done when they have.
    #[test]
    fn everything_that_was_expected_is_done() {
        let all = (135_168, 135_168);
        for format in [PrintFormat::Text, PrintFormat::Silent, PrintFormat::Details] {
            let options = PrintOptions { format, ..PrintOptions::default() };
            let print = |session: &Session, progress: &Progress| {
                session.print(&options, &mut Vec::new(), progress).unwrap();
            };
            assert_eq!(after(print), all, "{format:?}");
        }
        assert_eq!(after(|session, progress| drop(session.count(&CountOptions::default(), progress))).1, all.1);
        assert_eq!(after(|_, progress| drop(crate::check(&[demo()], &crate::ImportOptions::default(), progress))), all);
        let cut = |session: &Session, progress: &Progress| {
            let folder = tempfile::tempdir().unwrap();
            session.cut(&CutOptions::default(), &folder.path().join("part"), progress).unwrap();
        };
        assert_eq!(after(cut), all);
    }

    /// Packets that cannot have events of a span are not expected.
    #[test]
    fn a_span_is_less() {
        let begin_ns = Some(1_795_219_372_300_000_000);
        let options = PrintOptions { begin_ns, ..PrintOptions::default() };
        let (done, total) = after(|session, progress| {
            session.print(&options, &mut Vec::new(), progress).unwrap();
        });
        assert!(done == total && total > 0 && total < 135_168 / 2, "{done} of {total}");
    }
}
