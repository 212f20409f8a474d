//! Lives of one thread number in a part of a trace: what came between its borders.
//!
//! ```text
//! tid 7     ═══ before ═══x death     fork ═══════════════ still there
//!           life, no border           life, border: one for a death and the fork after it
//! ```

use serde::{Deserialize, Serialize};

use super::{Place, Summary};
use crate::Comm;

/// Where a CPU is: its lane, and its number.
pub type CpuAt = (u32, u32);

/// What is known of a life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Life<A, B, R> {
    /// What it began with; `None`: it may have begun before.
    pub border: Option<Border>,
    /// Its runs, in the order of their ends.
    pub pieces: Vec<Piece<A, B, R>>,
    /// What was counted of it, but for heads.
    pub rows: R,
    /// Its name as switches have it.
    pub comm: Option<(Place, Comm)>,
    /// Its name as others have it.
    pub told: Option<(Place, Comm)>,
    /// Its process.
    pub pid: Option<(Place, i32)>,
    /// It was made in this trace.
    pub is_forked: bool,
    /// Something was about it.
    pub is_seen: bool,
}

/// Between two lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Border {
    /// Where.
    pub place: Place,
    /// The life before was seen to end.
    pub is_death: bool,
    /// It counts only if the head of this CPU is a run of the life before, which was the last then.
    pub head: Option<CpuAt>,
}

/// Runs that nothing can come between any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Piece<A, B, R> {
    /// What they mean to others.
    pub summary: Summary<A, B>,
    /// It is one run that began before this part.
    pub head: Option<Box<Head>>,
    /// What was counted of it, if it is a head.
    pub rows: R,
}

/// A run that began before a part, and ended in it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Its CPU.
    pub at: CpuAt,
    /// Its end.
    pub end: Place,
    /// The thread's name.
    pub comm: Comm,
    /// Which thread is of which process, as an event says.
    pub said: Option<(i32, i32)>,
    /// Something was about the thread.
    pub is_seen: bool,
}

impl<A, B, R: Default> Life<A, B, R> {
    /// A life that begins with a border.
    pub fn new(border: Option<Border>) -> Self {
        Self {
            border,
            pieces: Vec::new(),
            rows: R::default(),
            comm: None,
            told: None,
            pid: None,
            is_forked: false,
            is_seen: false,
        }
    }

    /// Keeps what was said last of its name and process.
    pub fn tell(&mut self, other: &Self) {
        latest(&mut self.comm, other.comm);
        latest(&mut self.told, other.told);
        latest(&mut self.pid, other.pid);
        self.is_forked |= other.is_forked;
        self.is_seen |= other.is_seen;
    }
}

impl<A, B, R> Life<A, B, R> {
    /// Keeps what a run says of it.
    pub fn ran(&mut self, tid: i32, end: Place, comm: Comm, said: Option<(i32, i32)>, is_seen: bool) {
        latest(&mut self.comm, (!comm.is_empty()).then_some((end, comm)));
        latest(&mut self.pid, said.filter(|said| said.0 == tid).map(|said| (end, said.1)));
        self.is_seen |= is_seen;
    }
}

/// Keeps what is said later.
pub fn latest<T: Copy>(known: &mut Option<(Place, T)>, other: Option<(Place, T)>) {
    if let Some(new) = other
        && known.is_none_or(|known| known.0 <= new.0)
    {
        *known = other;
    }
}

/// The life in which a place is: the last whose border is not behind it; the first one is made if there is none.
pub fn life_at<A, B, R: Default>(lives: &mut Vec<Life<A, B, R>>, place: Option<Place>) -> usize {
    let is_before = |life: &Life<A, B, R>| match (life.border, place) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(border), Some(place)) => border.place <= place,
    };
    let before = lives.partition_point(is_before);
    if before == 0 {
        lives.insert(0, Life::new(None));
    }
    before.saturating_sub(1)
}
