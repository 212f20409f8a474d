//! Counting events in the kernel: eBPF programs at tracepoints add to maps, and no event is recorded.
//!
//! ```text
//! request: events, conditions, keys, sums, a histogram     names and typed trees, no code
//!   └─ fields    the meaning of names, by the kernel's own description of its types
//!       └─ program    instructions, for the verifier
//!           └─ running    maps and programs, as long as they are wanted ── rows
//! ```
//!
//! A helper with rights gets the request and does all of it; the command has read the same descriptions before, to explain problems in
//! the words of the question. [`crate::helper`] has the messages.

pub(crate) mod begins;
mod condition;
pub(crate) mod counting;
pub(crate) mod fields;
mod known;
pub(crate) mod parts;
pub(crate) mod pieces;
pub(crate) mod program;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use condition::{AnyInteger, ConditionNumber, ConditionText, ConditionTree, InexpressibleTest};
pub(crate) use counting::KernelCounts;
pub use fields::{COMPAT_CALL, FoundPath, TracepointFields, WatchKind, WatchMeaning, WatchableEvents, WatchedField};

/// Programs of a request at most, of which each is at one tracepoint.
pub const WATCHED_EVENTS_MAX: usize = 256;
/// Questions that are counted beside a recording at most.
pub const WATCHES_MAX: usize = 16;
/// Keys of a row at most.
pub const WATCH_KEYS_MAX: usize = 4;
/// Parts of a name at most.
pub const WATCH_STEPS_MAX: usize = 32;
/// Fields that an event has in common with the one that began it, at most.
pub const BEGIN_KEYS_MAX: usize = 8;
/// Rows of a map at most.
pub const WATCH_ROWS_MAX: u32 = 1 << 20;
/// Parts that each power of two has in a histogram, as a power of two.
pub const BUCKET_BITS: u32 = 3;
/// Buckets of a histogram for numbers of at least 0.
pub const BUCKETS: u32 = (64 - BUCKET_BITS + 1) << BUCKET_BITS;

/// A request to count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchRequest {
    /// Events that are counted.
    pub events: Vec<WatchedEvent>,
    /// Events that begin something, which the counted ones end.
    pub begins: Vec<WatchedBegin>,
    /// Rows of the map, at most.
    pub rows: u32,
    /// There may be fewer, where as many take too much memory.
    pub may_be_fewer: bool,
}

/// An event that is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedEvent {
    /// The tracepoint, without its subsystem.
    pub name: String,
    /// Its subsystem, if it is known: it tells which threads the event is about.
    #[serde(default)]
    pub system: String,
    /// Only events of which this is true.
    pub condition: Option<WatchCondition>,
    /// A row for each combination of these. All events have as many.
    pub keys: Vec<WatchPath>,
    /// Integers that each row adds up.
    pub sums: Vec<WatchPath>,
    /// An integer, whose buckets are counted.
    pub histogram: Option<WatchPath>,
    /// The key of the event that began it, if one does.
    pub since: Option<Vec<WatchPath>>,
}

/// An event that begins something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedBegin {
    /// The tracepoint, without its subsystem.
    pub name: String,
    /// Values that it has in common with the event that ends it.
    pub keys: Vec<WatchPath>,
}

/// A condition: a tree of tests about fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchCondition {
    /// The fields, by their numbers in the tree.
    pub inputs: Vec<WatchPath>,
    /// The tree.
    pub tree: ConditionTree,
}

/// The name of a field: `next_tid`, `skb.dev.name`, `args[0]`, `$ctx.tid`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WatchPath {
    /// It begins with `$`.
    pub is_global: bool,
    /// At least one; the first one is a name.
    pub steps: Vec<WatchStep>,
}

/// A part of such a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchStep {
    /// `.name`, or `->name`.
    Name(String),
    /// `[index]`
    Index(u64),
}

/// The counts of a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchCounts {
    /// Rows, in no order. With a histogram, each bucket of a key has one.
    pub rows: Vec<WatchRow>,
    /// Events without a row, because the map was full.
    pub unplaced: u64,
    /// Events that end something of which no begin is known.
    pub unbegun: u64,
    /// Times that a program did not run, because it ran already on that CPU.
    pub missed: u64,
    /// Nanoseconds since counting began.
    pub counted_ns: u64,
    /// The cost of the programs.
    pub cost: WatchCost,
}

/// A row of counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchRow {
    /// Its keys.
    pub keys: Vec<WatchValue>,
    /// The bucket; `None` without a histogram.
    pub bucket: Option<u32>,
    /// Events.
    pub count: u64,
    /// Sums, in the order of the request.
    pub sums: Vec<AnyInteger>,
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WatchValue {
    /// An integer, as 64 bits in two's complement.
    Number(i64),
    /// A text.
    Text(String),
}

/// The cost of watching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchCost {
    /// Nanoseconds in which the kernel measured its programs; 0: it was not asked, or does not let this user.
    pub measured_ns: u64,
    /// Nanoseconds that the programs ran in this time.
    pub run_ns: u64,
    /// Times that they ran in this time.
    pub runs: u64,
    /// Nanoseconds of processor time of the helper itself.
    pub helper_ns: u64,
}

/// The smallest number of a bucket of [`WatchRow::bucket`]; the bucket of negative numbers, which is the last one, has `None`.
///
/// ```
/// use kymo_probe::watch::{BUCKETS, bucket_begin};
/// assert_eq!([0, 7, 8, 15, 16, 17].map(bucket_begin), [0, 7, 8, 15, 16, 18].map(Some));
/// assert_eq!(bucket_begin(BUCKETS - 1), Some(0xf000_0000_0000_0000));
/// assert_eq!(bucket_begin(BUCKETS), None);
/// ```
#[must_use]
pub fn bucket_begin(bucket: u32) -> Option<u64> {
    let parts = 1 << BUCKET_BITS;
    match bucket {
        BUCKETS.. => None,
        bucket if bucket < parts => Some(bucket.into()),
        bucket => Some(u64::from(bucket % parts + parts) << (bucket / parts - 1)),
    }
}

/// The bucket of a number.
///
/// ```
/// use kymo_probe::watch::{bucket_begin, bucket_of};
/// for number in [0, 1, 9, 1000, 123_456_789, u64::MAX] {
///     let begin = bucket_begin(bucket_of(number)).unwrap();
///     assert!(begin <= number && number - begin <= number / 8);
/// }
/// ```
#[must_use]
pub fn bucket_of(number: u64) -> u32 {
    let above = (u64::BITS - number.leading_zeros()).saturating_sub(BUCKET_BITS + 1);
    (above << BUCKET_BITS) + (number >> above) as u32
}

impl std::fmt::Display for WatchPath {
    /// As people write it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_global { "$" } else { "" })?;
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                WatchStep::Name(name) if number == 0 => f.write_str(name)?,
                WatchStep::Name(name) => write!(f, ".{name}")?,
                WatchStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
