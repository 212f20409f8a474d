//! Lives of one thread number in a part of a trace: the runs between its borders.
//!
//! ```text
//! tid 7     ═══ before ═══x death   fork ═══ a ═══ fork ═══ b ═══x death   fork ═══ c ═══
//!           early                        over        before                     current
//! ```
//!
//! Borders (deaths, forks) are seen in the part, so a life between two of them is known when the
//! second one is there: the life is *over*, given away and forgotten. But a thread without a
//! visible death may still be on a CPU when its number is given away, so it stays one border longer
//! (`before`). The life before the first border goes on in the part before (`early`, and `late` for
//! runs of it that end behind the border). Where it may have died with a run, and only the part
//! before knows whether that was its own, all that follows waits too, as it came (`deferred`). And
//! a life with a head waits until the part before says where that run began (`stuck`).

use serde::{Deserialize, Serialize};

use super::lane::{CpuCalls, RunEnd, ThreadFacts};
use super::{CallSummary, EventPosition};
use crate::Comm;
use crate::threads::ThreadKey;

/// Where a CPU is: its lane, and its number.
pub type CpuAt = (u32, u32);

/// The state of a life: of entries `A`, exits `B`, runs `C` and rows `R`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallLife<A, B, C, R> {
    /// The border that it began with; `None`: it may have begun before.
    pub border: Option<LifeBorder>,
    /// The border that it ended with.
    pub end: Option<LifeBorder>,
    /// Its runs up to the last one that began before the part.
    pub earlier: Vec<LifePiece<A, B, C>>,
    /// Its runs behind those, in the order of their ends.
    pub summary: CallSummary<A, B>,
    /// Its counts, without those of heads.
    pub rows: R,
    /// Its name as switches have it.
    pub comm: Option<(EventPosition, Comm)>,
    /// Its name as others have it.
    pub told: Option<(EventPosition, Comm)>,
    /// Its process.
    pub pid: Option<(EventPosition, i32)>,
    /// It was made in this trace.
    pub is_forked: bool,
    /// Something was about it.
    pub is_seen: bool,
}

/// Between two lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifeBorder {
    /// Where.
    pub place: EventPosition,
    /// The life before was seen to end.
    pub is_death: bool,
}

/// Runs that nothing can come between any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LifePiece<A, B, C> {
    /// Their meaning for others.
    Runs(CallSummary<A, B>),
    /// One run that began before this part.
    Head(Box<RunHead<A, B, C>>),
}

/// A run that began before a part, and ended in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunHead<A, B, C> {
    /// Its CPU.
    pub at: CpuAt,
    /// Its end.
    pub end: EventPosition,
    /// Something was about the thread.
    pub is_seen: bool,
    /// The calls of the run.
    pub run: CpuCalls<A, B, C>,
}

/// All lives of a thread number. There are as many of these as threads were seen: rare data has its
/// own memory, and so has a life, which is given back when it is over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallLives<A, B, C, R> {
    /// The thread.
    pub key: ThreadKey,
    /// How many lives behind the first border are over, or are the one before the last.
    pub over: u32,
    /// The one before the last died.
    pub is_before_dead: bool,
    /// The first one, which may have begun before the part.
    pub early: Option<Box<CallLife<A, B, C, R>>>,
    /// The first border that is certain.
    pub first: Option<LifeBorder>,
    /// The last one.
    pub border: Option<LifeBorder>,
    /// The one before the last, if it did not die.
    pub before: Option<Box<CallLife<A, B, C, R>>>,
    /// The last one, behind the last border, if anything is known of it.
    pub current: Option<Box<CallLife<A, B, C, R>>>,
    /// Data that most threads have not.
    pub rare: Option<Box<Rare<A, B, C, R>>>,
}

/// Data that the part before has to resolve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rare<A, B, C, R> {
    /// The border that the first life behind the first border begins with, if that is another one:
    /// a fork behind a death.
    pub begin: Option<LifeBorder>,
    /// The notes behind the thread's death with a head, if that was its own.
    pub deferred: Vec<Deferred<A, B, C, R>>,
    /// Runs that ended behind the first border, but began before it.
    pub late: Vec<RunEnd<A, B, C>>,
    /// Runs that ended behind the death of their life, and began before the part.
    pub lost: Vec<RunEnd<A, B, C>>,
    /// Lives that are over but for their heads.
    pub stuck: Vec<Stuck<A, B, C, R>>,
}

/// Memory of lives that were given away, the last one on top: it is still in the cache.
#[derive(Debug)]
#[allow(clippy::vec_box, reason = "boxes are taken out and put back")]
pub struct SpareLives<A, B, C, R>(Vec<Box<CallLife<A, B, C, R>>>);

/// A life that is over but for its heads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stuck<A, B, C, R> {
    /// Its place among the lives behind the first border.
    pub number: u32,
    /// Where the next one begins.
    pub until: EventPosition,
    /// The state of the life.
    pub life: CallLife<A, B, C, R>,
}

/// Notes while it is not known which life is current.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Deferred<A, B, C, R> {
    /// The thread dies with a run, if that is of its last life.
    Death {
        /// The run's CPU.
        at: CpuAt,
        /// Where it began; `None`: before the part.
        begin: Option<EventPosition>,
        /// Where it ends.
        place: EventPosition,
    },
    /// A run ends; something was about the thread, even if there was no call.
    Run(Box<RunEnd<A, B, C>>, bool),
    /// Something is said of the thread.
    Told(EventPosition, ThreadFacts),
    /// The state of the life that is the last one then.
    Life(Box<CallLife<A, B, C, R>>),
}

/// The life that a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOwner {
    /// The first one, while there is no border that is certain.
    Early,
    /// The one before the first border that is certain.
    Late,
    /// One that was seen to die.
    Nobody,
    /// The one before the last.
    Before,
    /// The last one.
    Current,
}

impl<A, B, C> RunHead<A, B, C> {
    /// The end of the same run, as it was noted.
    pub fn end_of(self, key: ThreadKey) -> RunEnd<A, B, C> {
        RunEnd { key, cpu: self.at.1, place: self.end, is_dead: false, is_over: true, run: self.run }
    }
}

impl<A, B, C, R: Default> CallLife<A, B, C, R> {
    /// A life that begins with a border.
    pub fn new(border: Option<LifeBorder>) -> Self {
        Self {
            border,
            end: None,
            earlier: Vec::new(),
            summary: CallSummary::default(),
            rows: R::default(),
            comm: None,
            told: None,
            pid: None,
            is_forked: false,
            is_seen: false,
        }
    }

    /// Another life begins, in the memory of one that was given away.
    #[inline]
    fn begin_anew(&mut self, border: Option<LifeBorder>) {
        (self.border, self.end) = (border, None);
        (self.comm, self.told, self.pid) = (None, None, None);
        (self.is_forked, self.is_seen) = (false, false);
        self.summary = CallSummary::default();
    }

    /// Adds a run of which the part before knows more.
    pub fn push_head(&mut self, head: RunHead<A, B, C>) {
        let before = std::mem::take(&mut self.summary);
        self.earlier.extend(before.is_touched.then_some(LifePiece::Runs(before)));
        self.earlier.push(LifePiece::Head(Box::new(head)));
    }
}

impl<A, B, C, R> CallLife<A, B, C, R> {
    /// Keeps its latest name and process.
    pub fn tell(&mut self, other: &Self) {
        latest(&mut self.comm, other.comm);
        latest(&mut self.told, other.told);
        latest(&mut self.pid, other.pid);
        self.is_forked |= other.is_forked;
        self.is_seen |= other.is_seen;
    }

    /// Keeps the facts that a run tells about it.
    #[inline]
    pub fn ran(&mut self, tid: i32, end: EventPosition, comm: Comm, said: Option<(i32, i32)>, is_seen: bool) {
        latest(&mut self.comm, (!comm.is_empty()).then_some((end, comm)));
        latest(&mut self.pid, said.filter(|said| said.0 == tid).map(|said| (end, said.1)));
        self.is_seen |= is_seen;
    }
}

impl<A, B, C, R> Default for Rare<A, B, C, R> {
    fn default() -> Self {
        let (deferred, late, lost, stuck) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { begin: None, deferred, late, lost, stuck }
    }
}

impl<A, B, C, R> Default for SpareLives<A, B, C, R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<A, B, C, R: Default> SpareLives<A, B, C, R> {
    /// Lives whose memory is kept at most.
    const MOST: usize = 64;

    /// A life that begins with a border.
    #[inline]
    pub fn life(&mut self, border: Option<LifeBorder>) -> Box<CallLife<A, B, C, R>> {
        match self.0.pop() {
            Some(mut life) => {
                life.begin_anew(border);
                life
            }
            None => Box::new(CallLife::new(border)),
        }
    }

    /// A life was given away.
    #[inline]
    pub fn keep(&mut self, life: Box<CallLife<A, B, C, R>>) {
        if self.0.len() < Self::MOST {
            self.0.push(life);
        }
    }
}

impl<A, B, C, R: Default> CallLives<A, B, C, R> {
    /// Nothing is known yet.
    pub fn new(key: ThreadKey) -> Self {
        Self {
            key,
            over: 0,
            is_before_dead: false,
            early: None,
            first: None,
            border: None,
            before: None,
            current: None,
            rare: None,
        }
    }

    /// Data that most threads have not.
    pub fn rare(&mut self) -> &mut Rare<A, B, C, R> {
        self.rare.get_or_insert_default()
    }

    /// The life of a run that began there; `None`: before the part.
    #[inline]
    pub fn whose(&self, begin: Option<EventPosition>) -> RunOwner {
        match self.border {
            None => RunOwner::Early,
            // `None` is less than each place, so a run from before the part is never the current
            // life's.
            Some(border) if begin >= Some(border.place) => RunOwner::Current,
            Some(_) if self.is_before_dead => RunOwner::Nobody,
            Some(_) if self.before.is_some() => RunOwner::Before,
            Some(_) => RunOwner::Late,
        }
    }

    /// One of them; it is made if there is none.
    #[inline]
    pub fn life(&mut self, whose: RunOwner, spare: &mut SpareLives<A, B, C, R>) -> &mut CallLife<A, B, C, R> {
        match (whose, &mut self.before) {
            (RunOwner::Current, _) => self.current.get_or_insert_with(|| spare.life(self.border)),
            (RunOwner::Before, Some(before)) => before,
            _ => self.early.get_or_insert_with(|| spare.life(None)),
        }
    }

    /// Which one is the last.
    #[inline]
    pub fn whose_last(&self) -> RunOwner {
        if self.border.is_some() { RunOwner::Current } else { RunOwner::Early }
    }

    /// The last life.
    #[inline]
    pub fn last(&mut self, spare: &mut SpareLives<A, B, C, R>) -> &mut CallLife<A, B, C, R> {
        self.life(self.whose_last(), spare)
    }

    /// Whether later notes have to wait.
    #[inline]
    pub fn defers(&self) -> bool {
        self.border.is_none() && self.rare.as_ref().is_some_and(|rare| !rare.deferred.is_empty())
    }

    /// Something is said of the life that is not over.
    #[inline]
    pub fn tell(&mut self, place: EventPosition, told: &ThreadFacts, spare: &mut SpareLives<A, B, C, R>) {
        if self.defers() {
            self.rare().deferred.push(Deferred::Told(place, *told));
            return;
        }
        let life = self.last(spare);
        life.is_seen = true;
        latest(&mut life.told, (!told.comm.is_empty()).then_some((place, told.comm)));
        latest(&mut life.pid, told.pid.map(|pid| (place, pid)));
    }

    /// Whether it is the last one.
    pub fn is_last(&self, whose: RunOwner) -> bool {
        whose == RunOwner::Current || self.border.is_none()
    }
}

/// Keeps the later value.
#[inline]
pub fn latest<T: Copy>(known: &mut Option<(EventPosition, T)>, other: Option<(EventPosition, T)>) {
    if let Some(new) = other
        // At the same place, the value that comes later counts.
        && known.is_none_or(|known| known.0 <= new.0)
    {
        *known = other;
    }
}
