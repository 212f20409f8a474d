//! Events and the marks beside them, one by one in the order of time, for a caller that pulls them.
//!
//! ```text
//! a thread: engine ──round──> MessageBatch ──channel, few at a time──> Messages ──> whoever asks
//! ```
//!
//! A batch is handed over as it was read: where the events are, their times and classes. The values
//! of a field are decoded for all events of a batch when the caller asks for the first one; a field
//! that was asked for once is decoded by the reading threads from then on. Reading is ahead by a
//! few batches; it ends when the [`Messages`] are dropped.
//!
//! Values and classes are shown as they are in the format ([`model`], [`ColumnShape`]); their display is
//! a face's duty.

mod batch;
mod columns;
mod facts;
mod feed;
mod value;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

pub use kymo_decode::ClockConverter;
pub use kymo_decode::columns::{ColumnShape, ScopeField};
pub use kymo_decode::text::details::StreamTraits;
pub use kymo_format::model;
pub use kymo_scan::Packet;

pub use batch::{EventAt, MarkKind, MarkMessage, MessageBatch, MessageRow};
pub use columns::{ClassFields, PacketFields, PacketValues};
pub use facts::{MessageStream, MessageTrace, MessagesFacts};
pub use value::{FieldRef, MessageValue};

pub(crate) use self::feed::each_batch;

use self::feed::Fed;
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::Report;
use crate::open::select::Selection;

/// Which messages are wanted.
#[derive(Clone, Debug, Default)]
pub struct MessagesQuestion {
    /// Only these events.
    pub selection: Selection,
    /// Not before, in nanoseconds since the clock's origin.
    pub begin_ns: Option<i64>,
    /// Not after.
    pub end_ns: Option<i64>,
    /// Of each trace only the time in which all its data streams are active.
    pub stream_intersection: bool,
    /// Not only events, but also where streams and packets begin and end, and losses. At the first
    /// time the open streams and packets begin, at the second one they end.
    pub marks: bool,
}

/// Why there are no further messages.
#[derive(Debug, thiserror::Error)]
pub enum MessagesFailure {
    /// No time is known in which all data streams are active.
    #[error("{0}")]
    NoIntersection(std::io::Error),
    /// No thread can be started.
    #[error("no thread can be started: {0}")]
    NoThread(std::io::Error),
    /// The reading threads stayed behind when the process was forked.
    #[error("the iteration began in another process, which goes on with it; begin another one here")]
    Forked,
    /// A thread panicked.
    #[error("the reading thread stopped: this is a bug")]
    Stopped,
}

/// The messages of a session, in batches. To be moved to any thread; dropping it ends the reading.
#[derive(Debug)]
pub struct Messages {
    facts: Arc<MessagesFacts>,
    /// `None` when all is over, or was begun in another process.
    receiver: Option<Receiver<Fed>>,
    report: Report,
    progress: Arc<Progress>,
    process: u32,
}

/// The result of [`Messages::next_within`].
#[derive(Debug)]
pub enum Pulled {
    /// The next batch, which is not empty.
    Batch(Arc<MessageBatch>),
    /// Nothing yet.
    Nothing,
    /// There are no more.
    End,
}

impl Session {
    /// Begins to read messages.
    ///
    /// # Errors
    ///
    /// Nothing can be read.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use kymo_session::messages::{MessageRow, MessageValue, MessagesQuestion};
    /// use kymo_session::{OpenOptions, Session};
    ///
    /// let session = Arc::new(Session::open(&["trace".into()], &OpenOptions::default())?);
    /// for batch in session.messages(&MessagesQuestion::default())? {
    ///     let batch = batch?;
    ///     for &row in batch.rows() {
    ///         let MessageRow::Event(at) = row else { continue };
    ///         let class = batch.class_fields(at);
    ///         if let Some(field) = class.position("next_tid").and_then(|field| batch.field(at, field))
    ///             && let MessageValue::Signed(tid) = field.value()
    ///         {
    ///             println!("{:?} {tid}", batch.nanos(at));
    ///         }
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn messages(self: &Arc<Self>, question: &MessagesQuestion) -> Result<Messages, MessagesFailure> {
        let progress = Arc::<Progress>::default();
        let (facts, receiver) = feed::start(self, question, Arc::clone(&progress))?;
        let report = self.opening_report().clone();
        Ok(Messages { facts, receiver: Some(receiver), report, progress, process: std::process::id() })
    }

    /// The traces and streams that messages would be of.
    #[must_use]
    pub fn messages_facts(&self) -> MessagesFacts {
        MessagesFacts::new(self)
    }

    /// The text of a trace's metadata, by the trace's index.
    #[must_use]
    pub fn metadata_text(&self, trace: usize) -> &str {
        &self.traces[trace].metadata.text
    }
}

impl Messages {
    /// The traces and streams that messages are of.
    #[must_use]
    pub fn facts(&self) -> &Arc<MessagesFacts> {
        &self.facts
    }

    /// The unreadable parts and the assumptions; complete when there are no more messages.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The next batch, if it comes before so much time is over.
    ///
    /// # Errors
    ///
    /// There will be no more, though this is not the end.
    pub fn next_within(&mut self, time: Duration) -> Result<Pulled, MessagesFailure> {
        self.check_process()?;
        let Some(receiver) = &self.receiver else { return Ok(Pulled::End) };
        match receiver.recv_timeout(time) {
            Ok(Fed::Batch(batch)) => Ok(Pulled::Batch(batch)),
            Ok(Fed::End(report)) => {
                self.report = *report;
                self.receiver = None;
                Ok(Pulled::End)
            }
            Err(RecvTimeoutError::Timeout) => Ok(Pulled::Nothing),
            Err(RecvTimeoutError::Disconnected) => {
                self.receiver = None;
                Err(MessagesFailure::Stopped)
            }
        }
    }

    /// Threads do not follow into a forked process: what is waited for there never comes.
    fn check_process(&mut self) -> Result<(), MessagesFailure> {
        if self.process == std::process::id() {
            return Ok(());
        }
        // Its lock may be held by a thread that is not here.
        std::mem::forget(self.receiver.take());
        Err(MessagesFailure::Forked)
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.receiver.take());
        }
        // Nothing may ever be found that it could be told by.
        self.progress.cancel();
    }
}

/// How long an iterator waits before it looks again; it has nothing else to do.
const LONG: Duration = Duration::from_secs(60);

impl Iterator for Messages {
    type Item = Result<Arc<MessageBatch>, MessagesFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_within(LONG) {
                Ok(Pulled::Batch(batch)) => return Some(Ok(batch)),
                Ok(Pulled::Nothing) => {}
                Ok(Pulled::End) => return None,
                Err(failure) => return Some(Err(failure)),
            }
        }
    }
}
