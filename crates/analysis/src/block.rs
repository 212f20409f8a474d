//! `block`: the requests to block devices, and how long they took.
//!
//! ```text
//! insert (8,0) sector 64 ────> issue (8,0) sectors 64..72 ────> complete (8,0) ..72
//!              └── queue time ──┘└────────── latency ───────────┘
//! ```
//!
//! A request waits under the sector that it begins with: while it waits, others are added to its
//! end. An issued request is known by the sector that it ends before: a request that is done piece
//! by piece is done when its last piece is.

mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::chains::{ChainFate, Chains, OPEN_MAX, Timed};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::ranking::Ranking;
use crate::roles::{EventRole, block, disk_state};
use crate::windows::Windows;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, EventValue, Histogram, LaneFacts, LaneNotes, Merge, Needs,
    PartShape, Question, RoleEvent, Setup, SpoolError, Wishes,
};

/// The analysis.
#[derive(Debug)]
pub struct BlockAnalysis {
    lanes: Vec<LaneFacts>,
    /// Where events of any lane may be missing.
    holes: Windows,
    wishes: Wishes,
}

/// A device of a machine.
type DeviceKey = (u16, i64);

/// A request: its device and a sector.
type RequestKey = (DeviceKey, i64);

/// A request that goes to its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlockRequest {
    time: i64,
    sector: i64,
    sectors: u64,
    is_write: bool,
}

/// A request that waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Queued(i64);

/// State of a device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Device {
    reads: u64,
    writes: u64,
    sectors: u64,
    errors: u64,
    latencies: Histogram,
    queues: Histogram,
    began_before: u64,
    never_ended: u64,
    lost_inside: u64,
}

/// A request that took long: when it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SlowRequest {
    request: BlockRequest,
    device: DeviceKey,
    end: i64,
}

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct BlockState {
    queued: Chains<RequestKey, Queued, i64>,
    issued: Chains<RequestKey, BlockRequest, i64>,
    sums: BlockSums,
}

/// Results that are final.
#[derive(Debug, Serialize, Deserialize)]
struct BlockSums {
    devices: BTreeMap<DeviceKey, Device>,
    names: BTreeMap<DeviceKey, Box<[u8]>>,
    longest: Ranking<SlowRequest>,
}

/// The notes of a lane; sectors are those of the keys.
#[derive(Debug)]
pub enum BlockNote {
    /// A request waits: its device and its sector.
    Insert(i64, i64),
    /// A request goes to this device.
    Issue(i64, BlockRequest),
    /// A device is done with a request up to a sector; whether that went wrong.
    Complete(i64, i64, bool),
    /// A device has a name.
    Disk(i64, Box<[u8]>),
}

/// The longest ones that are shown by default.
const LONGEST: usize = 10;
const SECTOR_BYTES: u64 = 512;

impl Timed for Queued {
    fn time(&self) -> i64 {
        self.0
    }
}

impl Timed for BlockRequest {
    fn time(&self) -> i64 {
        self.time
    }
}

impl BlockAnalysis {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions { durations: true, ..SupportedOptions::NONE };
        const SENTENCE: &str = "Latencies of requests to block devices";
        AnalysisDescription::new("block", "Block devices", SENTENCE, OPTIONS)
            .with_examples(
                "kymo block my-trace\n\
                 kymo block --min 10ms my-trace",
            )
            .with_view(&["per-device", "longest", "distribution"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[EventRole::BlockIssue], Self::new)
    }

    /// Roles and fields that it needs.
    pub(crate) fn needs() -> Needs {
        use block::*;
        Needs {
            roles: vec![
                (EventRole::BlockInsert, vec![DEV, SECTOR]),
                (EventRole::BlockIssue, vec![DEV, SECTOR, SECTORS, BYTES, RWBS]),
                (EventRole::BlockComplete, vec![DEV, SECTOR, SECTORS, BYTES, ERROR]),
                (EventRole::DiskState, vec![disk_state::DISK_DEV, disk_state::DISK_NAME]),
            ],
            ..Needs::default()
        }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let lanes = setup.lanes.to_vec();
        let holes = setup.holes();
        Self { lanes, holes, wishes: setup.wishes.clone() }
    }

    /// Outcome of an issued request.
    fn decide(&self, sums: &mut BlockSums, key: RequestKey, fate: &ChainFate<BlockRequest, i64>) {
        let (device, _) = key;
        match *fate {
            ChainFate::Pair(request, end) => {
                let latency = request.time.abs_diff(end);
                if self.holes.touch(request.time, end) {
                    sums.device(device).lost_inside += 1;
                } else if self.wishes.wants_duration(latency) {
                    sums.longest.push(latency, || SlowRequest { request, device, end });
                    sums.device(device).latencies.record(latency);
                }
            }
            ChainFate::Alone(end) => self.ended_alone(sums.device(device), end),
            ChainFate::Replaced(request) | ChainFate::GivenUp(request) => self.left_open(sums.device(device), &request),
        }
    }

    /// Nothing that was seen was completed then: it was issued before the trace, or in a hole.
    fn ended_alone(&self, device: &mut Device, end: i64) {
        *if self.holes.touch(i64::MIN, end) { &mut device.lost_inside } else { &mut device.began_before } += 1;
    }

    /// No completion was seen: it never came, or came in a hole.
    fn left_open(&self, device: &mut Device, request: &BlockRequest) {
        let is_lost = self.holes.touch(request.time, i64::MAX);
        *if is_lost { &mut device.lost_inside } else { &mut device.never_ended } += 1;
    }

    /// Outcome of a waiting request.
    fn decide_queued(&self, sums: &mut BlockSums, key: RequestKey, fate: &ChainFate<Queued, i64>) {
        if let ChainFate::Pair(Queued(begin), end) = *fate
            && !self.holes.touch(begin, end)
        {
            sums.device(key.0).queues.record(begin.abs_diff(end));
        }
    }
}

/// Sectors of a request; where only its bytes are known, these.
pub(crate) fn sectors(meaning: RoleEvent<'_>) -> u64 {
    let bytes = || meaning.integer(block::BYTES).map(|bytes| bytes.max(0) / SECTOR_BYTES as i64);
    meaning.integer(block::SECTORS).or_else(bytes).unwrap_or(0).max(0).cast_unsigned()
}

/// A number has the kernel's flags, a text letters.
pub(crate) fn is_write(rwbs: Option<EventValue<'_>>) -> bool {
    match rwbs {
        Some(EventValue::Text(text)) => text.contains(&b'W') || text.contains(&b'D') || !text.contains(&b'R'),
        Some(EventValue::Integer(flags)) => flags & 1 != 0,
        _ => false,
    }
}

/// Facts of an event in one of its roles.
fn note(meaning: RoleEvent<'_>) -> Option<BlockNote> {
    if meaning.role == EventRole::DiskState {
        let device = meaning.integer(disk_state::DISK_DEV)?;
        return Some(BlockNote::Disk(device, meaning.text(disk_state::DISK_NAME)?.into()));
    }
    if !matches!(meaning.role, EventRole::BlockInsert | EventRole::BlockIssue | EventRole::BlockComplete) {
        return None;
    }
    let device = meaning.integer(block::DEV)?;
    let sector = meaning.integer(block::SECTOR)?;
    Some(match meaning.role {
        EventRole::BlockInsert => BlockNote::Insert(device, sector),
        EventRole::BlockIssue => {
            let is_write = is_write(meaning.value(block::RWBS));
            BlockNote::Issue(
                device,
                BlockRequest { time: meaning.event.time, sector, sectors: sectors(meaning), is_write },
            )
        }
        _ => {
            let is_wrong = meaning.integer(block::ERROR).is_some_and(|error| error != 0);
            BlockNote::Complete(device, sector.wrapping_add_unsigned(sectors(meaning)), is_wrong)
        }
    })
}

impl BlockSums {
    fn device(&mut self, device: DeviceKey) -> &mut Device {
        self.devices.entry(device).or_default()
    }
}

impl Merge for Device {
    fn merge(&mut self, later: Self) {
        self.reads += later.reads;
        self.writes += later.writes;
        self.sectors += later.sectors;
        self.errors += later.errors;
        self.latencies.merge(later.latencies);
        self.queues.merge(later.queues);
        self.began_before += later.began_before;
        self.never_ended += later.never_ended;
        self.lost_inside += later.lost_inside;
    }
}

impl Analysis for BlockAnalysis {
    type State = BlockState;
    type Lane<'a> = ();
    type Note = BlockNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "block", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> BlockState {
        let longest = Ranking::new(Some(self.wishes.top.unwrap_or(LONGEST)));
        let sums = BlockSums { devices: BTreeMap::new(), names: BTreeMap::new(), longest };
        BlockState { queued: Chains::new(false, OPEN_MAX), issued: Chains::new(false, OPEN_MAX), sums }
    }

    fn enter(&self, _: usize) {}

    fn step(&self, (): &mut (), event: &AnalysisEvent<'_>, notes: &mut LaneNotes<BlockNote>) {
        for meaning in event.roles() {
            if let Some(note) = note(meaning) {
                notes.push(event.time, note);
            }
        }
    }

    fn note(&self, state: &mut BlockState, lane: usize, time: i64, note: BlockNote) {
        let host = self.lanes[lane].host;
        let BlockState { queued, issued, sums } = state;
        match &note {
            BlockNote::Insert(device, sector) => {
                let key = ((host, *device), *sector);
                queued.begin(key, Queued(time), |key, fate| self.decide_queued(sums, *key, &fate));
            }
            BlockNote::Issue(device, request) => {
                let key = (host, *device);
                queued.end(&(key, request.sector), time, |key, fate| self.decide_queued(sums, *key, &fate));
                let row = sums.device(key);
                row.reads += u64::from(!request.is_write);
                row.writes += u64::from(request.is_write);
                row.sectors = row.sectors.saturating_add(request.sectors);
                let end = request.sector.wrapping_add_unsigned(request.sectors);
                issued.begin((key, end), *request, |key, fate| self.decide(sums, *key, &fate));
            }
            BlockNote::Complete(device, end, is_wrong) => {
                let key = (host, *device);
                sums.device(key).errors += u64::from(*is_wrong);
                issued.end(&(key, *end), time, |key, fate| self.decide(sums, *key, &fate));
            }
            BlockNote::Disk(device, name) => {
                sums.names.insert((host, *device), name.clone());
            }
        }
    }

    fn leave(&self, _: &mut BlockState, _: usize, (): ()) {}

    fn merge(&self, left: &mut BlockState, right: BlockState) {
        let BlockState { queued, issued, sums } = left;
        for (key, device) in right.sums.devices {
            sums.device(key).merge(device);
        }
        sums.names.extend(right.sums.names);
        sums.longest.merge(right.sums.longest);
        queued.merge(right.queued, |key, fate| self.decide_queued(sums, *key, &fate));
        issued.merge(right.issued, |key, fate| self.decide(sums, *key, &fate));
    }

    fn anchor(&self, state: &mut BlockState) {
        let BlockState { queued, issued, sums } = state;
        queued.anchor(|key, fate| self.decide_queued(sums, *key, &fate));
        issued.anchor(|key, fate| self.decide(sums, *key, &fate));
    }

    fn forget(&self, state: &mut BlockState, _: i64) -> bool {
        let names = std::mem::take(&mut state.sums.names);
        state.sums = BlockSums { names, ..self.init().sums };
        true
    }

    fn finish(&self, state: &BlockState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
