//! Rules about events of the kernel: of those that end something, the ones that took long are recorded, and all others only counted.
//!
//! ```text
//! request: events, what began them, conditions, fields     names and typed trees, no code
//!   └─ program    instructions, for the verifier
//!       └─ running    maps and programs ──> records in a ring of each CPU ──> recorder
//!   memory of each rule: limits and counts, mapped by programs, the recorder, and others that move limits
//! ```
//!
//! A record is [`RULE_HEAD_BYTES`] long, and the fields of its event behind that: 8 bytes of an integer, and as many of a text as it has at
//! most, rounded up to 8.

mod memory;
mod program;
mod running;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use self::memory::{RuleMemory, count, slot};
use crate::mapped::Mapped;
use crate::rings::ProgramRingFiles;
use crate::watch::{WatchCondition, WatchPath, WatchValue, WatchedBegin};
pub(crate) use running::KernelRules;

/// Rules of a request at most.
pub const KERNEL_RULES_MAX: usize = 8;
/// Events of a rule at most, with those that begin.
pub const RULED_EVENTS_MAX: usize = 64;
/// Kinds of a rule with a limit of their own at most.
pub const RULE_KINDS_MAX: usize = 64;
/// Bytes of a record before its fields.
pub const RULE_HEAD_BYTES: usize = 48;
/// Bytes of a text that tells kinds, at most.
const KIND_BYTES: usize = 64;
/// Running limits are in parts of a nanosecond.
const FRACTION_BITS: u32 = 16;

/// Places in a record.
mod head {
    pub(super) const NANOS: i16 = 0;
    pub(super) const TOOK: i16 = 8;
    pub(super) const RULE: i16 = 16;
    pub(super) const EVENT: i16 = 18;
    pub(super) const CPU: i16 = 20;
    pub(super) const TID: i16 = 24;
    pub(super) const PID: i16 = 28;
    pub(super) const COMM: i16 = 32;
}

/// A rule that programs in the kernel ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRuleRequest {
    /// Events that it is about.
    pub events: Vec<RuledEvent>,
    /// Events that begin something.
    pub begins: Vec<WatchedBegin>,
    /// Events behind which it is over, for [`KernelAsk::Between`].
    pub ends: Vec<WatchedBegin>,
    /// What it asks.
    pub ask: KernelAsk,
    /// Limits of single kinds, in nanoseconds.
    pub kinds: Vec<(WatchValue, u64)>,
}

/// What a rule asks about its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelAsk {
    /// Whether more time has passed since the begin.
    Over(KernelLimit),
    /// Nothing but their condition.
    Each {
        /// It keeps none until it is opened.
        is_closed: bool,
    },
    /// Whether something of their key has begun and has not ended.
    Between {
        /// It keeps none until it is opened.
        is_closed: bool,
    },
}

/// A limit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelLimit {
    /// Nanoseconds.
    Nanos(u64),
    /// The running percentile of all times, in parts of 2^32.
    Running(u32),
}

/// An event that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuledEvent {
    /// As `SYSTEM:NAME`.
    pub name: String,
    /// The rule is only about events of which this is true.
    pub condition: Option<WatchCondition>,
    /// The key of what has begun.
    pub since: Vec<WatchPath>,
    /// The value that tells kinds.
    pub kind: Option<WatchPath>,
    /// Fields of its records.
    pub fields: Vec<WatchPath>,
}

/// A record of an event that a rule has kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleRecord<'r> {
    /// When it was: `CLOCK_MONOTONIC`.
    pub nanos: u64,
    /// Nanoseconds since its begin; `None`: that is not known.
    pub took: Option<u64>,
    /// The number of the rule in the request.
    pub rule: u16,
    /// The number of the event in the rule.
    pub event: u16,
    /// Where it was.
    pub cpu: u32,
    /// The thread that ran.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// The name of the thread, up to a zero byte.
    pub comm: &'r [u8],
    /// The bytes of its fields.
    pub fields: &'r [u8],
}

impl<'r> RuleRecord<'r> {
    /// Reads one; `None`: it is too short.
    #[must_use]
    pub fn read(bytes: &'r [u8]) -> Option<Self> {
        let (head, fields) = bytes.split_at_checked(RULE_HEAD_BYTES)?;
        let long = |at: i16| head[at as usize..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let word = |at: i16| head[at as usize..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let half = |at: i16| head[at as usize..].first_chunk().map_or(0, |bytes| u16::from_ne_bytes(*bytes));
        Some(Self {
            nanos: long(head::NANOS),
            took: Some(long(head::TOOK)).filter(|took| *took != u64::MAX),
            rule: half(head::RULE),
            event: half(head::EVENT),
            cpu: word(head::CPU),
            tid: word(head::TID),
            pid: word(head::PID),
            comm: &head[head::COMM as usize..],
            fields,
        })
    }
}

/// Files of rules, as the helper hands them over.
#[derive(Debug)]
pub struct RuleFiles {
    /// The rings of records.
    pub rings: ProgramRingFiles,
    /// The memory of each rule, and its shape.
    pub memories: Vec<(OwnedFd, RuleShape)>,
}

/// The shape of the memory of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleShape {
    /// CPUs that there may be.
    pub cpus: u32,
    /// Events that end something.
    pub events: u32,
    /// Its kinds have numbers, and not texts.
    pub has_numbers: bool,
}

/// Events that a rule has kept and let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelRuleCounts {
    /// Kept.
    pub kept: u64,
    /// Let go.
    pub let_go: u64,
    /// Without a known begin, of those that were kept.
    pub unknown: u64,
    /// Lost, of those that were kept: their ring was full.
    pub lost: u64,
}

/// A kind of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelKind {
    /// Its value.
    pub value: WatchValue,
    /// Its running limit, in nanoseconds; 0: there is none.
    pub running_ns: u64,
    /// Its events.
    pub events: u64,
}

/// The memory of a rule, mapped: programs in the kernel use the same bytes.
#[derive(Debug)]
pub struct MappedRule {
    memory: Mapped,
    shape: RuleMemory,
    has_numbers: bool,
}

impl MappedRule {
    /// Maps it.
    ///
    /// # Errors
    ///
    /// The kernel does not allow it.
    pub fn map(file: &OwnedFd, shape: RuleShape) -> io::Result<Self> {
        let memory = RuleMemory { cpus: shape.cpus as usize, events: shape.events as usize };
        let bytes = memory.bytes().next_multiple_of(rustix::param::page_size());
        let mapped = Mapped::new(file, 0, bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(Self { memory: mapped, shape: memory, has_numbers: shape.has_numbers })
    }

    fn number(&self, at: usize, place: i16) -> u64 {
        self.memory.long(at + place as usize).load(Ordering::Relaxed)
    }

    /// Counts until now.
    #[must_use]
    pub fn counts(&self) -> KernelRuleCounts {
        let mut all = KernelRuleCounts::default();
        for at in self.shape.all_counts() {
            all.kept += self.number(at, count::KEPT);
            all.let_go += self.number(at, count::LET_GO);
            all.unknown += self.number(at, count::UNKNOWN);
            all.lost += self.number(at, count::LOST);
        }
        all
    }

    /// The limit that was set, of events without a kind, in nanoseconds; 0: the running one counts.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.number(RuleMemory::slot_at(0), slot::SET)
    }

    /// Bytes of the memory, the place of that limit, that of the first counts, the bytes between two, and how many there are.
    #[must_use]
    pub fn places(&self) -> [usize; 5] {
        let limit = RuleMemory::slot_at(0) + slot::SET as usize;
        let bytes = self.shape.bytes().next_multiple_of(rustix::param::page_size());
        [bytes, limit, self.shape.counts_at(0), memory::COUNT_BYTES, self.shape.events * self.shape.cpus]
    }

    /// Events on a CPU that were kept and lost.
    #[must_use]
    pub fn lost_of(&self, cpu: u32) -> u64 {
        if cpu as usize >= self.shape.cpus {
            return 0;
        }
        (0..self.shape.events).map(|event| self.number(self.shape.counts_of(event, cpu as usize), count::LOST)).sum()
    }

    /// The running limit of events without a kind, in nanoseconds; 0: there is none.
    #[must_use]
    pub fn running_ns(&self) -> u64 {
        self.running(0)
    }

    fn running(&self, slot: usize) -> u64 {
        self.number(RuleMemory::slot_at(slot), slot::RUNNING) >> FRACTION_BITS
    }

    /// Kinds that have a slot of their own.
    #[must_use]
    pub fn kinds(&self) -> Vec<KernelKind> {
        self.used()
            .map(|slot| KernelKind {
                value: self.value(slot),
                running_ns: self.running(slot),
                events: self.number(RuleMemory::slot_at(slot), slot::EVENTS),
            })
            .collect()
    }

    /// Number of the events of kinds that have none, where the rule has kinds.
    #[must_use]
    pub fn shared_events(&self) -> u64 {
        self.number(RuleMemory::slot_at(0), slot::EVENTS)
    }

    fn used(&self) -> impl Iterator<Item = usize> {
        let is_used = |slot: &usize| {
            self.memory.long(RuleMemory::slot_at(*slot) + slot::IS_USED as usize).load(Ordering::Acquire) != 0
        };
        (1..=RULE_KINDS_MAX).filter(is_used)
    }

    fn value(&self, slot: usize) -> WatchValue {
        let at = RuleMemory::slot_at(slot) + slot::KEY as usize;
        if self.has_numbers {
            return WatchValue::Number(self.memory.long(at).load(Ordering::Relaxed).cast_signed());
        }
        let mut text = Vec::with_capacity(KIND_BYTES);
        self.memory.copy(at, KIND_BYTES, &mut text);
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        WatchValue::Text(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// The next slot of a kind; `None`: there is none.
    fn new_kind(&self) -> Option<usize> {
        let known = self.memory.long(0).fetch_add(1, Ordering::Relaxed) as usize;
        (known < RULE_KINDS_MAX).then_some(known + 1)
    }

    fn name_kind(&self, slot: usize, key: &[u8]) {
        let at = RuleMemory::slot_at(slot);
        for (number, word) in key.chunks_exact(8).enumerate() {
            let word = word.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            self.memory.long(at + slot::KEY as usize + 8 * number).store(word, Ordering::Relaxed);
        }
        self.memory.long(at + slot::IS_USED as usize).store(1, Ordering::Release);
    }

    fn set_slot(&self, slot: usize, nanos: u64) {
        if slot <= RULE_KINDS_MAX {
            self.memory.long(RuleMemory::slot_at(slot) + slot::SET as usize).store(nanos, Ordering::Relaxed);
        }
    }

    /// Sets the limit of all events, in nanoseconds, but for kinds of which `own` tells another one; 0: the running one counts.
    pub fn set_limit(&self, nanos: u64, own: impl Fn(&WatchValue) -> Option<u64>) {
        for slot in 0..=RULE_KINDS_MAX {
            let at = RuleMemory::slot_at(slot);
            let is_used = slot > 0 && self.number(at, slot::IS_USED) != 0;
            let nanos = is_used.then(|| own(&self.value(slot))).flatten().unwrap_or(nanos);
            self.memory.long(at + slot::SET as usize).store(nanos, Ordering::Relaxed);
        }
    }
}
