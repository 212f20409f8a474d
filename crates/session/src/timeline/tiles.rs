//! Questions for tiles, and the parts of answers.

use kymo_analysis::timeline::cells::{LEVEL_MAX, Level};

use super::TimelineFailure;

/// Buckets of a question at most.
pub const BUCKETS_MAX: u32 = 4096;
/// Tracks of a question at most.
pub const TRACKS_MAX: usize = 1024;
/// Buckets of all tracks together at most.
pub const BUCKETS_ALL_MAX: u64 = 1 << 20;

/// A run's begin is before the known data.
pub const BEGIN_UNKNOWN: u32 = 1;
/// A run's end is behind the read data; of an arrow: it is not known when the woken thread ran.
pub const END_UNKNOWN: u32 = 2;
/// Events are missing around it.
pub const IN_DOUBT: u32 = 4;
/// A message was received before it was sent, as clocks say: it begins where it is received.
pub const RECEIVED_FIRST: u32 = 8;

/// A value from when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactRun {
    /// When it begins, in nanoseconds after the begin of the question's first bucket; it may be before it.
    pub begin: i64,
    /// When it ends; it may be behind the last bucket.
    pub end: i64,
    /// The value, by its number.
    pub value: u32,
    /// [`BEGIN_UNKNOWN`], [`END_UNKNOWN`], [`IN_DOUBT`].
    pub flags: u32,
}

/// Something that takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactInstant {
    /// When, in nanoseconds after the begin of the question's first bucket.
    pub time: i64,
    /// The value, by its number.
    pub value: u32,
    /// None so far.
    pub flags: u32,
}

/// Something goes from one track to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactArrow {
    /// When it leaves, in nanoseconds after the begin of the question's first bucket.
    pub begin: i64,
    /// When it has come: the woken thread runs.
    pub end: i64,
    /// From which track, if that is known.
    pub from: Option<u32>,
    /// To which.
    pub to: Option<u32>,
    /// The woken thread, or the name of a message, by the number of the value.
    pub value: u32,
    /// [`END_UNKNOWN`], [`RECEIVED_FIRST`].
    pub flags: u32,
}

/// Which buckets of which tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileQuestion {
    /// The level: buckets are `1 << level` nanoseconds wide.
    pub level: Level,
    /// The first bucket, counted from the timeline's begin.
    pub first: u64,
    /// How many: 1 to [`BUCKETS_MAX`].
    pub count: u32,
    /// Numbers of tracks: [`TRACKS_MAX`] at most.
    pub tracks: Vec<u32>,
}

/// How true buckets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Quality {
    /// They are as in the trace.
    Exact,
    /// They are guessed from the packets' own properties.
    Estimated,
    /// The state before them is not known yet: some values at their begin are missing.
    Building,
    /// Nothing is known: there is no trace there.
    Unknown,
}

/// Buckets that are equally true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileSpan {
    /// The first one, counted from the question's first.
    pub begin: u32,
    /// Behind the last one.
    pub end: u32,
    /// How true they are.
    pub quality: Quality,
}

/// The answer to a question for tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiles {
    /// See [`TileQuestion`].
    pub level: Level,
    /// The first bucket.
    pub first: u64,
    /// How many there are.
    pub count: u32,
    /// How true they are; all buckets in order.
    pub spans: Vec<TileSpan>,
    /// In the order of the question.
    pub tracks: Vec<TrackTile>,
}

/// Buckets of a track in which something happens, counted from the question's first.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackTile {
    /// The track.
    pub number: u32,
    /// The items.
    pub items: Items,
}

/// Items in buckets; or one by one, where the trace was read and there are no more things than
/// buckets, or few.
#[derive(Clone, Debug, PartialEq)]
pub enum Items {
    /// One value at a time. Buckets that are not there hold the last value of the one before, or
    /// `carry`.
    States {
        /// The value at the begin.
        carry: Option<u32>,
        /// Buckets in which it changes.
        buckets: Vec<StateBucket>,
    },
    /// Things that take no time.
    Instants(Vec<InstantBucket>),
    /// Durations, by bin.
    Heat(Vec<HeatBucket>),
    /// From one track to another.
    Arrows(Vec<ArrowBucket>),
    /// Values from when to when, in the order of their begins.
    Runs(Vec<ExactRun>),
    /// Things that take no time, in order.
    ExactInstants(Vec<ExactInstant>),
    /// From one track to another, in the order of their begins.
    ExactArrows(Vec<ExactArrow>),
    /// A number. In buckets that are not there it is the last value of the one before, or `carry`.
    Counter {
        /// The value at the begin.
        carry: Option<f64>,
        /// Buckets in which it changes; see [`CounterBucket`].
        buckets: Vec<CounterBucket>,
    },
}

/// A bucket in which a value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateBucket {
    /// Which.
    pub bucket: u32,
    /// The value that covers most of it.
    pub value: Option<u32>,
    /// The one that covers most of the rest.
    pub second: Option<u32>,
    /// The one at its end.
    pub last: Option<u32>,
    /// How many begin in it.
    pub begins: u32,
    /// How much of it `value` covers, of 65535.
    pub share: u16,
    /// How much of it `second` covers.
    pub share_second: u16,
    /// Of the values that are not at rest, the one that covers most of it.
    pub busiest: Option<u32>,
    /// How much of it all values cover that are not at rest.
    pub busy: u16,
}

/// A bucket in which things happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantBucket {
    /// Which.
    pub bucket: u32,
    /// The most frequent value.
    pub value: u32,
    /// How many things happen.
    pub count: u32,
    /// How many of them are that.
    pub count_of_value: u32,
}

/// A bucket in which durations end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeatBucket {
    /// Which.
    pub bucket: u32,
    /// How long they are: see [`kymo_analysis::timeline::bin`].
    pub bin: u32,
    /// How many.
    pub count: u32,
}

/// A bucket in which something goes from one track to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrowBucket {
    /// Which.
    pub bucket: u32,
    /// From which track; absent: from several.
    pub from: Option<u32>,
    /// To which; absent: to several.
    pub to: Option<u32>,
    /// How often.
    pub count: u32,
    /// The longest, in nanoseconds, where that is known.
    pub longest_ns: Option<u64>,
}

/// A bucket in which a number changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterBucket {
    /// Which.
    pub bucket: u32,
    /// How often it changes.
    pub changes: u32,
    /// The minimum; the value at the bucket's begin is among that.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The value at the end.
    pub last: f64,
    /// The average, as long as there is a value.
    pub mean: f64,
}

impl TileQuestion {
    pub(super) fn check(&self) -> Result<(), TimelineFailure> {
        let bounds = |name, found, is_right: bool, expected: &dyn Fn() -> String| match is_right {
            true => Ok(()),
            false => Err(TimelineFailure::Bounds { name, found, expected: expected() }),
        };
        let Self { level, first, count, tracks } = self;
        bounds("level", (*level).into(), *level <= LEVEL_MAX, &|| format!("{LEVEL_MAX} is the widest"))?;
        let is_count = (1..=BUCKETS_MAX).contains(count);
        bounds("count", (*count).into(), is_count, &|| format!("1 to {BUCKETS_MAX} buckets can be asked for"))?;
        let last = first.checked_add(u64::from(*count)).and_then(|end| end.checked_shl((*level).into()));
        let is_first = last.is_some_and(|end| end >> level >= *first && end <= i64::MAX.cast_unsigned());
        bounds("first", *first, is_first, &|| "the last bucket must end before 2^63 ns".to_owned())?;
        let is_few = tracks.len() <= TRACKS_MAX;
        bounds("tracks", tracks.len() as u64, is_few, &|| format!("{TRACKS_MAX} can be asked for at once"))?;
        let all = u64::from(*count) * tracks.len() as u64;
        let expected = || format!("{BUCKETS_ALL_MAX} buckets of all tracks together can be asked for");
        bounds("count times tracks", all, all <= BUCKETS_ALL_MAX, &expected)
    }
}
