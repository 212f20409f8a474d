//! Gives parts of the trace to threads, and merges what they found from left to right.
//!
//! ```text
//! thread 0   ├── part 0 ──┤├─ part 3 ─┤├ 5 ┤        parts become shorter, so that all threads end together
//! thread 1   ├─── part 1 ────┤├ part 2 ┤├ 4 ┤
//! merged        0            0 1   2 3    4 5       by whichever thread comes when the next one is there
//! ```

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use kymo_analysis::{Analysis, Shape};
use kymo_scan::{DataStream, Lengths, Slice, Slices, Unsliceable};

use super::part::{Fault, PartRead, Reader, Strays};
use super::prepare::Prepared;
use crate::open::{Doubts, Session};
use crate::progress::Progress;
use crate::rehearsal::{Rehearsal, Work};

/// Bytes of a part at least, about: less is not worth a merge.
const PART_BYTES_MIN: u64 = 4 << 20;
/// Bytes of a part at most.
const PART_BYTES_MAX: u64 = 1 << 30;

/// How many parts were merged.
#[cfg(test)]
pub(super) static MERGED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// What was read.
pub(super) struct Read<S> {
    pub(super) state: S,
    pub(super) faults: Vec<Fault>,
    pub(super) doubts: BTreeMap<usize, Doubts>,
    /// For each data stream, how many events had fields that could not be read.
    pub(super) left_out: BTreeMap<usize, u64>,
}

/// Reads everything, on all threads if the trace can be cut.
pub(super) fn read<A: Analysis>(
    session: &Session,
    prepared: &Prepared,
    analysis: &A,
    can_cut: &mut bool,
    progress: &Progress,
) -> Read<A::State> {
    let is_cut = session.threads > 1 || session.slice_bytes.is_some() || progress.rehearsal().is_some();
    if *can_cut && is_cut {
        if let Ok(read) = read_parts(session, prepared, analysis, progress) {
            return read;
        }
        *can_cut = false;
    }
    prepared.expect(session, progress);
    read_whole(session, prepared, analysis, true, progress)
}

/// Reads everything as one part, on this thread; whether it is the first one, before which nothing is known.
pub(super) fn read_whole<A: Analysis>(
    session: &Session,
    prepared: &Prepared,
    analysis: &A,
    is_first: bool,
    progress: &Progress,
) -> Read<A::State> {
    let mut reader = Reader::new(session, prepared, analysis, progress);
    let Ok(PartRead { state, faults }) = reader.read(&prepared.whole, is_first, false) else {
        unreachable!("nothing is relied on")
    };
    let (mut doubts, mut left_out) = (BTreeMap::new(), BTreeMap::new());
    reader.doubt(&mut doubts, &mut left_out);
    Read { state, faults, doubts, left_out }
}

fn read_parts<A: Analysis>(
    session: &Session,
    prepared: &Prepared,
    analysis: &A,
    progress: &Progress,
) -> Result<Read<A::State>, Unsliceable> {
    // Rehearsed are the parts of other threads than there are.
    let rehearsal = progress.rehearsal();
    let rehearsed = rehearsal.map(|rehearsal| rehearsal.threads);
    let threads = if rehearsed.is_some() { 1 } else { session.threads };
    let desk = Mutex::new(Desk {
        parts: Parts::new(session, prepared, analysis.shape(), rehearsed.unwrap_or(threads))?,
        next: 0,
        done: BTreeMap::new(),
        merged: None,
        is_merging: false,
        merged_parts: 0,
        is_unsliceable: false,
        doubts: BTreeMap::new(),
        left_out: BTreeMap::new(),
    });
    prepared.expect(session, progress);
    std::thread::scope(|scope| {
        let serve = || serve(&desk, Reader::new(session, prepared, analysis, progress), analysis, rehearsal);
        for _ in 1..threads {
            scope.spawn(serve);
        }
        serve();
    });
    let desk = desk.into_inner().expect("no thread panics while it holds the desk");
    #[cfg(test)]
    MERGED.fetch_add(desk.merged_parts, std::sync::atomic::Ordering::Relaxed);
    match desk.merged {
        Some(state) if !desk.is_unsliceable => {
            Ok(Read { state, faults: Vec::new(), doubts: desk.doubts, left_out: desk.left_out })
        }
        _ => Err(Unsliceable),
    }
}

/// Where parts are given out, and their states come together.
struct Desk<S> {
    parts: Parts,
    /// Number of the next part.
    next: u64,
    /// States of parts that wait for those before.
    done: BTreeMap<u64, S>,
    /// The state behind the first parts, unless somebody merges.
    merged: Option<S>,
    is_merging: bool,
    merged_parts: u64,
    is_unsliceable: bool,
    doubts: BTreeMap<usize, Doubts>,
    left_out: BTreeMap<usize, u64>,
}

fn lock<S>(desk: &Mutex<Desk<S>>) -> MutexGuard<'_, Desk<S>> {
    desk.lock().expect("no thread panics while it holds the desk")
}

/// A thread's life.
fn serve<A: Analysis>(
    desk: &Mutex<Desk<A::State>>,
    mut reader: Reader<'_, A>,
    analysis: &A,
    rehearsal: Option<&Rehearsal>,
) {
    loop {
        let Some((number, slice)) = lock(desk).give() else { break };
        let begun = Instant::now();
        let read = reader.read(&slice, number == 0, true);
        if let Some(rehearsal) = rehearsal {
            rehearsal.add(Work::Read, number, begun);
        }
        match read {
            Ok(PartRead { state, .. }) => {
                lock(desk).done.insert(number, state);
                merge(desk, analysis, rehearsal);
            }
            Err(Strays) => lock(desk).is_unsliceable = true,
        }
    }
    let Desk { doubts, left_out, .. } = &mut *lock(desk);
    reader.doubt(doubts, left_out);
}

/// Merges what can be merged, unless somebody does.
fn merge<A: Analysis>(desk: &Mutex<Desk<A::State>>, analysis: &A, rehearsal: Option<&Rehearsal>) {
    let mut held = lock(desk);
    if held.is_merging {
        return;
    }
    held.is_merging = true;
    loop {
        let number = held.merged_parts;
        let Some(right) = held.done.remove(&number) else { break };
        let left = held.merged.take();
        drop(held);
        let begun = Instant::now();
        let merged = match left {
            Some(mut left) => {
                analysis.merge(&mut left, right);
                left
            }
            None => right,
        };
        if let Some(rehearsal) = rehearsal {
            rehearsal.add(Work::Merge, number, begun);
        }
        held = lock(desk);
        held.merged = Some(merged);
        held.merged_parts += 1;
    }
    held.is_merging = false;
}

impl<S> Desk<S> {
    fn give(&mut self) -> Option<(u64, Slice)> {
        if self.is_unsliceable {
            return None;
        }
        match self.parts.next_part() {
            Ok(part) => {
                let number = self.next;
                self.next += 1;
                part.map(|slice| (number, slice))
            }
            Err(Unsliceable) => {
                self.is_unsliceable = true;
                None
            }
        }
    }
}

/// The parts of a trace, one after the other.
struct Parts {
    /// One for all lanes, or one for each.
    cuts: std::vec::IntoIter<Slices>,
    current: Option<Slices>,
    /// Where the first part begins and the last one ends.
    begin: i64,
    end: Option<i64>,
    /// Where parts are cut besides.
    cuts_ns: Vec<i64>,
    /// What is behind such a cut.
    rest: Option<Slice>,
}

impl Parts {
    /// The parts that so many threads get.
    fn new(session: &Session, prepared: &Prepared, shape: Shape, threads: usize) -> Result<Self, Unsliceable> {
        let streams = session.streams();
        let all: Vec<usize> = (0..streams.len()).collect();
        let groups: Vec<&[usize]> = match shape {
            Shape::Slice => vec![&all],
            Shape::Lane => prepared.lanes.iter().map(|lane| &lane.streams[..]).collect(),
        };
        let bytes = |stream: &usize| bytes(streams[*stream].1, &prepared.whole.wanted[*stream]);
        let total: u64 = all.iter().map(bytes).sum();
        let readers = threads as u64;
        let least = session.slice_bytes.unwrap_or(PART_BYTES_MIN);
        if session.slice_bytes.is_none() && total < 2 * readers * least {
            return Err(Unsliceable);
        }
        let mut behind = 0;
        let mut cuts = Vec::new();
        for group in groups {
            // What is left of all lanes says how long parts are.
            let most = session.slice_bytes.unwrap_or(PART_BYTES_MAX);
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

/// Bytes of packets, about: they resemble each other.
fn bytes(stream: &DataStream, wanted: &std::ops::Range<usize>) -> u64 {
    if wanted.is_empty() {
        return 0;
    }
    let (first, last) = (stream.packets.get(wanted.start), stream.packets.get(wanted.end - 1));
    (first.total_bits + last.total_bits) / 2 / 8 * wanted.len() as u64
}
