//! Gives parts of the trace to threads, and merges the states of neighbors.
//!
//! ```text
//! thread 0   ├── part 0 ──┤├─ part 3 ─┤ 01+2 ├ 6 ┤ 0123+45     parts become shorter, so that all threads end together
//! thread 1   ├─── part 1 ────┤ 0+1 ├ part 4 ┤├ 7 ┤             what lies side by side is merged by whichever
//! thread 2   ├───── part 2 ────────┤├ part 5 ┤ 4+5             thread comes by, several at a time
//! ```
//!
//! States from other places come to the same desk, in any order. Where an analysis merges in order,
//! only the first state is merged with others, and any thread does the remaining work of that.

mod rehearse;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use kymo_analysis::{AnyAnalysis, AnyState, LaneFacts, Later, PartShape};
use kymo_scan::{DataStream, Lengths, Slice, Slices, Unsliceable};

use super::part::{PartRead, PartReader, ReadFault};
use super::prepare::Prepared;
use crate::open::progress::Progress;
use crate::open::report::{Report, ReportProblem};
use crate::open::{Doubts, Session};

/// Bytes of a part at least, about: less is not worth a merge. Nor is a part that is shorter than a packet of each stream is
/// long: the half of these before it are passed over again.
const PART_BYTES_MIN: u64 = 4 << 20;
/// The same of a part that is read elsewhere, where the caller wants that.
const SHARE_BYTES_MIN: u64 = 1 << 20;
/// The same where there is much to read: the request and the answer of a part take as long as some
/// MiB of it.
const SHARE_BYTES_MIN_OF_MANY: u64 = 16 << 20;
/// Bytes of a part at most.
const PART_BYTES_MAX: u64 = 1 << 30;

/// The same where parts wait until all before them are merged. Shorter parts keep fewer notes
/// waiting for their turn.
const WAITING_BYTES_MAX: u64 = 32 << 20;
/// The same of a part that is read elsewhere.
const SHARE_WAITING_BYTES_MAX: u64 = 64 << 20;

/// How many parts were read and merged.
#[cfg(test)]
pub(super) static MERGED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// The result of reading.
pub(super) struct PartsResult {
    pub(super) state: AnyState,
    pub(super) faults: Vec<ReadFault>,
    pub(super) doubts: BTreeMap<usize, Doubts>,
    /// For each data stream, how many events had fields that could not be read.
    pub(super) left_out: BTreeMap<usize, u64>,
    /// The streams that name no CPU and have switches of several ones.
    pub(super) mixed: BTreeSet<usize>,
    /// The streams with a clock that was set back: see [`PartReader::set_back`].
    pub(super) set_back: BTreeMap<usize, Option<(i64, i64)>>,
}

impl PartsResult {
    /// The differences between the answer and the whole truth.
    pub(super) fn report(&self, session: &Session, prepared: &Prepared) -> Report {
        let mut report = prepared.losses(session);
        let notes = self.doubts.iter().flat_map(|(stream, doubts)| session.assumptions_of(*stream, *doubts));
        report.assumptions.extend(notes);
        report.unreadable.extend(self.faults.iter().map(|fault| session.problem(&fault.fault)));
        for (&stream, count) in &self.left_out {
            let place = session.place(stream);
            let message = match count {
                1 => "1 event has fields that cannot be read: it is left out".to_owned(),
                count => format!("{count} events have fields that cannot be read: they are left out"),
            };
            report.unreadable.push(ReportProblem { place, message });
        }
        report
    }

    /// Takes all of the lanes in which several CPUs cannot be told apart for a hole; whether there are new ones.
    pub(super) fn mark_mixed(&self, lanes: &mut [LaneFacts]) -> bool {
        let mut is_news = false;
        for stream in &self.mixed {
            let Some(lane) = lanes.iter_mut().find(|lane| lane.streams.contains(stream)) else { continue };
            let (begin, end) = lane.span_ns.unwrap_or((i64::MIN, i64::MAX));
            lane.holes.add(begin, end);
            is_news |= !std::mem::replace(&mut lane.mixes_cpus, true);
        }
        is_news
    }

    /// Adds unreadable parts to the lanes as holes, and all of lanes whose events are of several CPUs; whether there
    /// are new ones.
    pub(super) fn add_holes(&self, lanes: &mut [LaneFacts]) -> bool {
        let mut is_news = false;
        for fault in &self.faults {
            let Some(lane) = lanes.iter_mut().find(|lane| lane.streams.contains(&fault.fault.stream)) else {
                continue;
            };
            let before = lane.holes.clone();
            lane.holes.add(fault.after_ns, fault.until_ns);
            is_news |= lane.holes != before || lane.lost.take().is_some();
        }
        is_news |= self.mark_mixed(lanes);
        for (stream, span) in &self.set_back {
            let Some(lane) = lanes.iter_mut().find(|lane| lane.streams.contains(stream)) else { continue };
            let before = (lane.span_ns, lane.holes.clone());
            match span {
                // Packets have other times than analyses see.
                Some(span) if lane.span_ns != Some(*span) && lane.streams.len() == 1 => lane.span_ns = Some(*span),
                Some(_) => {}
                // What is behind the step has times of before it: nothing is certain.
                None => lane.holes.add(i64::MIN, i64::MAX),
            }
            is_news |= before != (lane.span_ns, lane.holes.clone());
        }
        is_news
    }
}

/// Reads everything, on all threads if the trace can be cut.
pub(super) fn read(
    session: &Session,
    prepared: &Prepared,
    analysis: &dyn AnyAnalysis,
    can_cut: &mut bool,
    progress: &Progress,
) -> PartsResult {
    // Where nothing names CPUs, the switches of a stream are compared from its begin to its end.
    let is_whole = prepared.reads_all_switches && prepared.lanes.iter().any(|lane| lane.names_no_cpu);
    *can_cut &= !is_whole;
    let is_cut = session.threads > 1 || session.slice_bytes.is_some() || progress.rehearsal().is_some();
    if *can_cut && is_cut {
        if let Ok(read) = read_parts(session, prepared, analysis, progress) {
            return read;
        }
        *can_cut = false;
    }
    prepared.expect(session, progress);
    let mut reader = PartReader::new(session, prepared, progress);
    // Losses and requested times are those of packets.
    let is_all = prepared.whole.begin == i64::MIN && prepared.whole.end.is_none();
    if is_all && prepared.lanes.iter().all(|lane| lane.holes.is_empty()) {
        reader.measure_intervals();
    }
    read_with(reader, prepared, analysis, true)
}

/// Reads everything as one part, on this thread; whether it is the first one, before which nothing is known.
pub(super) fn read_whole(
    session: &Session,
    prepared: &Prepared,
    analysis: &dyn AnyAnalysis,
    is_first: bool,
    progress: &Progress,
) -> PartsResult {
    read_with(PartReader::new(session, prepared, progress), prepared, analysis, is_first)
}

fn read_with(
    mut reader: PartReader<'_>,
    prepared: &Prepared,
    analysis: &dyn AnyAnalysis,
    is_first: bool,
) -> PartsResult {
    let Ok(PartRead { state, faults }) = reader.read_any(analysis, &prepared.whole, is_first, false) else {
        unreachable!("nothing is relied on")
    };
    let (mut doubts, mut left_out) = (BTreeMap::new(), BTreeMap::new());
    reader.doubt(&mut doubts, &mut left_out);
    let (mixed, set_back) = (reader.mixed(), reader.set_back());
    PartsResult { state, faults, doubts, left_out, mixed, set_back }
}

fn read_parts(
    session: &Session,
    prepared: &Prepared,
    analysis: &dyn AnyAnalysis,
    progress: &Progress,
) -> Result<PartsResult, Unsliceable> {
    // Rehearsed are the parts of other threads than there are.
    let rehearsal = progress.rehearsal();
    let threads = rehearsal.map_or(session.threads, |rehearsal| rehearsal.threads);
    let desk = PartScheduler::new(
        PartSequence::new(session, prepared, analysis, threads, PartReaders::Here)?,
        analysis.merges_in_order(),
    );
    let (desk, changed) = (Mutex::new(desk), Condvar::new());
    prepared.expect(session, progress);
    let worker = || Worker { reader: PartReader::new(session, prepared, progress), analysis };
    match rehearsal {
        Some(rehearsal) => rehearse::rehearse(&desk, worker, rehearsal),
        None => serve_all(threads, &desk, &changed, worker),
    }
    let desk = desk.into_inner().expect("no thread panics while it holds the desk");
    #[cfg(test)]
    MERGED.fetch_add(desk.next, std::sync::atomic::Ordering::Relaxed);
    match desk.done.into_values().next() {
        Some(run) if !desk.is_vain => {
            let (doubts, left_out) = (desk.doubts, desk.left_out);
            let (mixed, set_back) = (BTreeSet::new(), BTreeMap::new());
            Ok(PartsResult { state: run.state, faults: Vec::new(), doubts, left_out, mixed, set_back })
        }
        _ => Err(Unsliceable),
    }
}

/// So many threads work for a desk.
fn serve_all<'a>(
    threads: usize,
    desk: &Mutex<PartScheduler<'a>>,
    changed: &Condvar,
    worker: impl Fn() -> Worker<'a> + Sync,
) {
    std::thread::scope(|scope| {
        let serve = || worker().serve(desk, changed);
        for _ in 1..threads {
            scope.spawn(serve);
        }
        serve();
    });
}

/// The parts that so many readers elsewhere get.
pub(super) fn all(
    session: &Session,
    prepared: &Prepared,
    analysis: &dyn AnyAnalysis,
    readers: usize,
) -> Result<Vec<Slice>, Unsliceable> {
    let mut parts = PartSequence::new(session, prepared, analysis, readers, PartReaders::Elsewhere)?;
    let mut all = Vec::new();
    while let Some(part) = parts.next_part()? {
        all.push(part);
    }
    Ok(all)
}

/// States of parts that follow each other from elsewhere, once they are decoded: the number of the
/// first one and of the one behind the last, and the state. `None`: it cannot be, and the others
/// are of no use.
pub(super) type Given<'a> = Box<dyn FnOnce() -> Option<Vec<(u64, u64, AnyState)>> + Send + 'a>;

/// Decodes and merges states of parts, on all threads, while more of them come, in any order.
pub(super) fn together<'a>(
    session: &'a Session,
    prepared: &'a Prepared,
    analysis: &'a dyn AnyAnalysis,
    given: impl Iterator<Item = Given<'a>>,
    progress: &'a Progress,
) -> Option<AnyState> {
    let desk = PartScheduler { is_open: true, ..PartScheduler::new(PartSequence::none(), analysis.merges_in_order()) };
    let (desk, changed) = (Mutex::new(desk), Condvar::new());
    let serve = || Worker { reader: PartReader::new(session, prepared, progress), analysis }.serve(&desk, &changed);
    std::thread::scope(|scope| {
        let _open = IntakeGuard { desk: &desk, changed: &changed };
        for _ in 0..session.threads {
            scope.spawn(serve);
        }
        for given in given {
            let mut held = lock(&desk);
            if held.is_vain {
                break;
            }
            held.given.push_back(given);
            drop(held);
            changed.notify_one();
        }
    });
    let desk = desk.into_inner().expect("no thread panics while it holds the desk");
    desk.done.into_values().next().filter(|_| !desk.is_vain).map(|run| run.state)
}

/// While this is there, more may be given.
struct IntakeGuard<'g, 'a> {
    desk: &'g Mutex<PartScheduler<'a>>,
    changed: &'g Condvar,
}

impl Drop for IntakeGuard<'_, '_> {
    fn drop(&mut self) {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner).is_open = false;
        self.changed.notify_all();
    }
}

/// Where parts are given out, and their states come together.
struct PartScheduler<'a> {
    parts: PartSequence,
    /// Number of the next part.
    next: u64,
    /// How many jobs are being done.
    busy: usize,
    /// The states of parts that no thread works on, by the first of those that follow each other.
    done: BTreeMap<u64, PartRun>,
    /// Only the first state is merged with others.
    is_in_order: bool,
    /// The remaining work of merges of the first state, in order.
    later: VecDeque<MergeStep<'a>>,
    /// How many steps were there before these.
    ended: usize,
    /// The states from elsewhere.
    given: VecDeque<Given<'a>>,
    /// There may be more of that.
    is_open: bool,
    /// There will be no answer: a packet strays, or the request was canceled.
    is_vain: bool,
    doubts: BTreeMap<usize, Doubts>,
    left_out: BTreeMap<usize, u64>,
}

/// The state of parts that follow each other.
struct PartRun {
    /// Number of the part behind them.
    end: u64,
    state: AnyState,
}

/// Something that is left to do of a merge.
enum MergeStep<'a> {
    Waits(Box<dyn Later<AnyState> + 'a>),
    /// A thread does it.
    IsDone,
    /// It was done, and can be given back.
    Done(Box<dyn Later<AnyState> + 'a>),
}

/// The next job of a thread.
enum PartJob<'a> {
    /// Reads a part.
    Read(u64, Slice),
    /// Decodes a state from elsewhere.
    Given(Given<'a>),
    /// Merges two neighbors, of which the first one begins with this part.
    Merge(u64, PartRun, PartRun),
    /// Does the remaining work of a merge.
    Later(usize, Box<dyn Later<AnyState> + 'a>),
    /// Gives that back to the first state.
    End(PartRun, Box<dyn Later<AnyState> + 'a>),
}

/// The result of a job.
enum PartJobResult<'a> {
    /// The number of the first part, the state then, the remaining work.
    Run(u64, PartRun, Option<Box<dyn Later<AnyState> + 'a>>),
    /// The remaining work is done; the number of that step.
    Later(usize, Box<dyn Later<AnyState> + 'a>),
    /// The states of some parts.
    Known(Vec<(u64, u64, AnyState)>),
    /// A packet strays, or a state from elsewhere means nothing.
    Vain,
}

fn lock<'g, 'a>(desk: &'g Mutex<PartScheduler<'a>>) -> MutexGuard<'g, PartScheduler<'a>> {
    desk.lock().expect("no thread panics while it holds the desk")
}

/// Tells waiting threads when a thread panics: its job is never done.
struct Alarm<'g, 'a> {
    desk: &'g Mutex<PartScheduler<'a>>,
    changed: &'g Condvar,
}

impl Drop for Alarm<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut held = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
            // The job that panicked will not be put back. With the count too high, other threads
            // would wait for ever.
            held.busy = held.busy.saturating_sub(1);
            held.is_vain = true;
            drop(held);
            self.changed.notify_all();
        }
    }
}

/// Works for a desk.
struct Worker<'a> {
    reader: PartReader<'a>,
    analysis: &'a dyn AnyAnalysis,
}

impl<'a> Worker<'a> {
    /// A thread's life.
    fn serve(mut self, desk: &Mutex<PartScheduler<'a>>, changed: &Condvar) {
        let _alarm = Alarm { desk, changed };
        let mut held = lock(desk);
        loop {
            // The result of a merge would be thrown away.
            held.is_vain |= self.reader.progress().is_cancelled();
            if let Some(job) = held.job() {
                drop(held);
                let done = self.work(job);
                held = lock(desk);
                held.put(done);
                changed.notify_all();
            } else if held.busy > 0 || held.is_open {
                // The jobs of other threads may leave something to do.
                held = changed.wait(held).expect("no thread panics while it holds the desk");
            } else {
                break;
            }
        }
        drop(held);
        self.leave(desk);
    }

    fn work(&mut self, job: PartJob<'a>) -> PartJobResult<'a> {
        match job {
            PartJob::Read(number, slice) => match self.reader.read_any(self.analysis, &slice, number == 0, true) {
                Ok(PartRead { state, .. }) => PartJobResult::Run(number, PartRun { end: number + 1, state }, None),
                Err(_) => PartJobResult::Vain,
            },
            PartJob::Given(known) => known().map_or(PartJobResult::Vain, PartJobResult::Known),
            PartJob::Merge(first, mut left, right) => {
                let later = self.analysis.merge_later(&mut left.state, right.state);
                PartJobResult::Run(first, PartRun { end: right.end, state: left.state }, later)
            }
            PartJob::Later(number, mut later) => {
                later.run();
                PartJobResult::Later(number, later)
            }
            PartJob::End(mut run, later) => {
                later.end(&mut run.state);
                PartJobResult::Run(0, run, None)
            }
        }
    }

    fn leave(&self, desk: &Mutex<PartScheduler<'a>>) {
        let PartScheduler { doubts, left_out, .. } = &mut *lock(desk);
        self.reader.doubt(doubts, left_out);
    }
}

impl<'a> PartScheduler<'a> {
    fn new(parts: PartSequence, is_in_order: bool) -> Self {
        Self {
            parts,
            next: 0,
            busy: 0,
            done: BTreeMap::new(),
            is_in_order,
            later: VecDeque::new(),
            ended: 0,
            given: VecDeque::new(),
            is_open: false,
            is_vain: false,
            doubts: BTreeMap::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// Work that was done.
    fn put(&mut self, done: PartJobResult<'a>) {
        self.busy -= 1;
        match done {
            PartJobResult::Run(first, run, later) => {
                self.done.insert(first, run);
                self.later.extend(later.map(MergeStep::Waits));
            }
            PartJobResult::Later(number, later) => self.later[number - self.ended] = MergeStep::Done(later),
            PartJobResult::Known(runs) => {
                self.done.extend(runs.into_iter().map(|(first, end, state)| (first, PartRun { end, state })));
            }
            PartJobResult::Vain => self.is_vain = true,
        }
    }

    /// The next job, if there is one now.
    fn job(&mut self) -> Option<PartJob<'a>> {
        let job = match self.is_vain {
            true => None,
            // Merging goes before reading, so that few states wait in memory.
            false => self.known().or_else(|| self.read()),
        };
        self.busy += usize::from(job.is_some());
        job
    }

    /// The next job for the states at hand.
    fn known(&mut self) -> Option<PartJob<'a>> {
        let given = |desk: &mut Self| desk.given.pop_front().map(PartJob::Given);
        self.end().or_else(|| self.merge()).or_else(|| self.later()).or_else(|| given(self))
    }

    /// The remaining work of a merge is given back, as soon as the first state is here.
    fn end(&mut self) -> Option<PartJob<'a>> {
        if !self.done.contains_key(&0) || !matches!(self.later.front(), Some(MergeStep::Done(_))) {
            return None;
        }
        let (Some(first), Some(MergeStep::Done(later))) = (self.done.remove(&0), self.later.pop_front()) else {
            unreachable!("both are here")
        };
        self.ended += 1;
        Some(PartJob::End(first, later))
    }

    /// Neighbors are merged as soon as there are any, so that few states wait. Those at the front
    /// go first: settled data there needs no more memory.
    fn merge(&mut self) -> Option<PartJob<'a>> {
        let mut neighbours = self.done.iter().zip(self.done.keys().skip(1));
        let can_merge =
            |((first, run), next): &((&u64, &PartRun), &u64)| run.end == **next && (**first == 0 || !self.is_in_order);
        let ((&first, _), &next) = neighbours.find(can_merge)?;
        Some(PartJob::Merge(first, self.done.remove(&first)?, self.done.remove(&next)?))
    }

    /// The remaining work of merges, the first ones first.
    fn later(&mut self) -> Option<PartJob<'a>> {
        let at = self.later.iter().position(|step| matches!(step, MergeStep::Waits(_)))?;
        match std::mem::replace(&mut self.later[at], MergeStep::IsDone) {
            MergeStep::Waits(later) => Some(PartJob::Later(self.ended + at, later)),
            MergeStep::IsDone | MergeStep::Done(_) => unreachable!("it waits"),
        }
    }

    fn read(&mut self) -> Option<PartJob<'a>> {
        match self.parts.next_part() {
            Ok(part) => {
                let number = self.next;
                let slice = part?;
                self.next += 1;
                Some(PartJob::Read(number, slice))
            }
            Err(Unsliceable) => {
                self.is_vain = true;
                None
            }
        }
    }
}

/// The parts of a trace, one after the other.
struct PartSequence {
    /// One for all lanes, or one for each.
    cuts: std::vec::IntoIter<Slices>,
    current: Option<Slices>,
    /// Where the first part begins and the last one ends.
    begin: i64,
    end: Option<i64>,
    /// Where parts are cut besides.
    cuts_ns: Vec<i64>,
    /// The rest of the slice behind such a cut.
    rest: Option<Slice>,
}

/// The readers of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartReaders {
    /// Threads of this process.
    Here,
    /// Others.
    Elsewhere,
}

impl PartSequence {
    /// All are read already.
    fn none() -> Self {
        Self { cuts: Vec::new().into_iter(), current: None, begin: 0, end: None, cuts_ns: Vec::new(), rest: None }
    }

    /// The parts that so many get.
    fn new(
        session: &Session,
        prepared: &Prepared,
        analysis: &dyn AnyAnalysis,
        readers: usize,
        who: PartReaders,
    ) -> Result<Self, Unsliceable> {
        let streams = session.streams();
        let all: Vec<usize> = (0..streams.len()).collect();
        let groups: Vec<&[usize]> = match analysis.shape() {
            PartShape::Slice => vec![&all],
            PartShape::Lane => prepared.lanes.iter().map(|lane| &lane.streams[..]).collect(),
        };
        // All packets are asked: the last one is often a small one, and with a total that is too low the second half of the
        // trace would be cut into the smallest parts.
        let bytes = |stream: &usize| streams[*stream].1.packets.packet_bytes(prepared.whole.wanted[*stream].clone());
        let total: u64 = all.iter().map(bytes).sum();
        let readers = readers as u64;
        let (least, most_waiting) = match who {
            PartReaders::Here => (PART_BYTES_MIN, WAITING_BYTES_MAX),
            PartReaders::Elsewhere => (SHARE_BYTES_MIN, SHARE_WAITING_BYTES_MAX),
        };
        // Too little for two parts each: cutting and merging would cost more than they save.
        if session.slice_bytes.is_none() && total < 2 * readers * least {
            return Err(Unsliceable);
        }
        let least = session.slice_bytes.unwrap_or(match who {
            PartReaders::Here => least,
            PartReaders::Elsewhere => (total / (8 * readers)).clamp(least, SHARE_BYTES_MIN_OF_MANY),
        });
        let mut behind = 0;
        let mut cuts = Vec::new();
        for group in groups {
            // The remaining bytes of all lanes say how long parts are.
            let most = if analysis.merges_in_order() { most_waiting } else { PART_BYTES_MAX };
            let most = session.slice_bytes.unwrap_or(most);
            let of_packets: u64 = group.iter().map(|stream| packet_bytes(streams[*stream].1)).sum();
            let least = match session.slice_bytes {
                None if group.len() > 1 => least.max(of_packets.min(total / (2 * readers))),
                _ => least,
            };
            let lengths = Lengths { all: total - behind, least, most, readers };
            behind += group.iter().map(bytes).sum::<u64>();
            let wanted = |number: usize| match group.contains(&number) {
                true => prepared.whole.wanted[number].clone(),
                false => 0..0,
            };
            let streams = streams.iter().enumerate().map(|(number, (_, stream))| (*stream, wanted(number)));
            cuts.push(Slices::new(streams, lengths)?);
        }
        let Slice { begin, end, .. } = prepared.whole;
        let cuts_ns = session.cuts_ns.clone();
        Ok(Self { cuts: cuts.into_iter(), current: None, begin, end, cuts_ns, rest: None })
    }

    fn next_part(&mut self) -> Result<Option<Slice>, Unsliceable> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(self.cut(rest)));
        }
        loop {
            if let Some(current) = &mut self.current
                && let Some(mut slice) = current.next_slice()?
            {
                slice.begin = slice.begin.max(self.begin);
                // Slices are cut at packets, which may lie across the borders of the question.
                slice.end = slice.end.into_iter().chain(self.end).min();
                return Ok(Some(self.cut(slice)));
            }
            match self.cuts.next() {
                Some(next) => self.current = Some(next),
                None => return Ok(None),
            }
        }
    }

    /// The part up to the first cut in it; the rest is for later.
    fn cut(&mut self, mut slice: Slice) -> Slice {
        let is_inside = |cut: &&i64| slice.begin < **cut && slice.end.is_none_or(|end| **cut < end);
        if let Some(&cut) = self.cuts_ns.iter().find(is_inside) {
            self.rest = Some(Slice { begin: cut, ..slice.clone() });
            slice.end = Some(cut);
        }
        slice
    }
}

/// Bytes of a packet, about.
fn packet_bytes(stream: &DataStream) -> u64 {
    stream.packets.first().map_or(0, |packet| packet.total_bits / 8)
}
