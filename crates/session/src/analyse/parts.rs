//! Gives parts of the trace to threads, and merges what they found about neighbours.
//!
//! ```text
//! thread 0   ├── part 0 ──┤├─ part 3 ─┤ 01+2 ├ 6 ┤ 0123+45     parts become shorter, so that all threads end together
//! thread 1   ├─── part 1 ────┤ 0+1 ├ part 4 ┤├ 7 ┤             what lies side by side is merged by whichever
//! thread 2   ├───── part 2 ────────┤├ part 5 ┤ 4+5             thread comes by, several at a time
//! ```

mod rehearse;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use kymo_analysis::{Analysis, Shape};
use kymo_scan::{DataStream, Lengths, Slice, Slices, Unsliceable};

use super::part::{Fault, PartRead, Reader};
use super::prepare::Prepared;
use crate::open::{Doubts, Session};
use crate::progress::Progress;

/// Bytes of a part at least, about: less is not worth a merge. Nor is a part that is shorter than a packet of each stream is
/// long: the half of these before it are passed over again.
const PART_BYTES_MIN: u64 = 4 << 20;
/// Bytes of a part at most.
const PART_BYTES_MAX: u64 = 1 << 30;

/// How many parts were read and merged.
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
    let mut reader = Reader::new(session, prepared, progress);
    let Ok(PartRead { state, faults }) = reader.read(analysis, &prepared.whole, is_first, false) else {
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
    let threads = rehearsal.map_or(session.threads, |rehearsal| rehearsal.threads);
    let desk = Mutex::new(Desk {
        parts: Parts::new(session, prepared, analysis.shape(), threads)?,
        next: 0,
        done: BTreeMap::new(),
        is_unsliceable: false,
        doubts: BTreeMap::new(),
        left_out: BTreeMap::new(),
    });
    prepared.expect(session, progress);
    let worker = || Worker { reader: Reader::new(session, prepared, progress), analysis };
    match rehearsal {
        Some(rehearsal) => rehearse::rehearse(&desk, worker, rehearsal),
        None => std::thread::scope(|scope| {
            let serve = || worker().serve(&desk);
            for _ in 1..threads {
                scope.spawn(serve);
            }
            serve();
        }),
    }
    let desk = desk.into_inner().expect("no thread panics while it holds the desk");
    #[cfg(test)]
    MERGED.fetch_add(desk.next, std::sync::atomic::Ordering::Relaxed);
    match desk.done.into_values().next() {
        Some(run) if !desk.is_unsliceable => {
            Ok(Read { state: run.state, faults: Vec::new(), doubts: desk.doubts, left_out: desk.left_out })
        }
        _ => Err(Unsliceable),
    }
}

/// Where parts are given out, and their states come together.
struct Desk<S> {
    parts: Parts,
    /// Number of the next part.
    next: u64,
    /// What is known of parts that nobody works on, by the first of those that follow each other.
    done: BTreeMap<u64, Run<S>>,
    is_unsliceable: bool,
    doubts: BTreeMap<usize, Doubts>,
    left_out: BTreeMap<usize, u64>,
}

/// What is known of parts that follow each other.
struct Run<S> {
    /// Number of the part behind them.
    end: u64,
    state: S,
}

/// What a thread does next.
enum Job<S> {
    /// Reads a part.
    Read(u64, Slice),
    /// Merges two neighbours, of which the first one begins with this part.
    Merge(u64, Run<S>, Run<S>),
}

/// What came of it: the number of the first part, and what is known then; nothing, if a packet strays.
type Done<S> = Option<(u64, Run<S>)>;

fn lock<S>(desk: &Mutex<Desk<S>>) -> MutexGuard<'_, Desk<S>> {
    desk.lock().expect("no thread panics while it holds the desk")
}

/// Works for a desk.
struct Worker<'a, A> {
    reader: Reader<'a>,
    analysis: &'a A,
}

impl<A: Analysis> Worker<'_, A> {
    /// A thread's life.
    fn serve(mut self, desk: &Mutex<Desk<A::State>>) {
        let mut job = lock(desk).job();
        while let Some(now) = job {
            let done = self.work(now);
            let mut held = lock(desk);
            held.put(done);
            job = held.job();
        }
        self.leave(desk);
    }

    fn work(&mut self, job: Job<A::State>) -> Done<A::State> {
        match job {
            Job::Read(number, slice) => {
                let PartRead { state, .. } = self.reader.read(self.analysis, &slice, number == 0, true).ok()?;
                Some((number, Run { end: number + 1, state }))
            }
            Job::Merge(first, mut left, right) => {
                self.analysis.merge(&mut left.state, right.state);
                Some((first, Run { end: right.end, state: left.state }))
            }
        }
    }

    fn leave(&self, desk: &Mutex<Desk<A::State>>) {
        let Desk { doubts, left_out, .. } = &mut *lock(desk);
        self.reader.doubt(doubts, left_out);
    }
}

impl<S> Desk<S> {
    /// Work that was done.
    fn put(&mut self, done: Done<S>) {
        match done {
            Some((first, run)) => {
                self.done.insert(first, run);
            }
            None => self.is_unsliceable = true,
        }
    }

    /// What is to be done: neighbours are merged as soon as there are any, so that few states wait. Those at the front go
    /// first: what is settled there needs no more memory.
    fn job(&mut self) -> Option<Job<S>> {
        if self.is_unsliceable {
            return None;
        }
        let neighbours = self.done.iter().zip(self.done.keys().skip(1)).find(|((_, run), next)| run.end == **next);
        if let Some(((&first, _), &next)) = neighbours {
            return Some(Job::Merge(first, self.done.remove(&first)?, self.done.remove(&next)?));
        }
        match self.parts.next_part() {
            Ok(part) => {
                let number = self.next;
                let slice = part?;
                self.next += 1;
                Some(Job::Read(number, slice))
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
        // All packets are asked: the last one is often a small one, and with a total that is too low the second half of the
        // trace would be cut into the smallest parts.
        let bytes = |stream: &usize| streams[*stream].1.packets.packet_bytes(prepared.whole.wanted[*stream].clone());
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
