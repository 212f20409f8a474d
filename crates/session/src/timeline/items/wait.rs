//! The reason why a thread waits: the call that it is in, its requests to disks, the thread that
//! woke it and from within which interrupt, the thread that has its CPU.
//!
//! ```text
//! thread 7   │ in read (fd 5) ───────────────────────────────────────────────────────
//!            │ runs ─│ blocked ──────────────────────│ waits for a CPU ──│ runs on 2
//! CPU 0      │ 7 ────│ 0 (idle) ─────[ softirq: wakes 7 ]
//! CPU 2      │ 9 ────────────────────────────────────────────────────────│ 7
//! ```
//!
//! However long a thread waits, only the chunks are read in which that begins and ends, and the one
//! in which its call was entered: nodes know the time between. Facts that cannot be told are listed
//! apart from facts that the traces do not record.

use kymo_analysis::causes::{self, Causes, Extent, Requests, ThreadRequest};
use kymo_analysis::states::{ThreadState, cpu_track, thread_track};
use kymo_analysis::timeline::{Thing, TrackKey};
use kymo_analysis::{EventRole, LaneFacts};
use serde::Serialize;

use super::{FoundItem, TrackWalk};
use crate::answers::analyse::{PartReader, Prepared};
use crate::open::progress::Progress;
use crate::timeline::catalogue::{TrackValue, meaning};
use crate::timeline::exact::{TrackRequest, TrackRun};
use crate::timeline::tiles::{BEGIN_UNKNOWN, END_UNKNOWN, IN_DOUBT};
use crate::timeline::{Timeline, TimelineFailure};

/// Answers with more items do not tell why threads wait: each may take reading a few chunks.
const WAITS_MAX: usize = 4;

/// Why a thread waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitReason {
    /// The system call that it is in.
    pub call: Option<WaitCall>,
    /// The thread that woke it.
    pub waker: Option<Waker>,
    /// Of a thread that could run: the thread that has the CPU when that begins.
    pub instead: Option<TrackValue>,
    /// Of a thread that could run: the track of the CPU that it gets in the end.
    pub to: Option<u32>,
    /// Its requests to block devices that were not done when it began to wait, as far as the chunk
    /// tells in which that is.
    pub requests: Vec<WaitRequest>,
    /// The unknown parts of this: `call`, `waker`, `instead`, `to`.
    pub unknown: Vec<&'static str>,
    /// The parts for which these traces have no events: `calls`, `wakeups`, `interrupts`,
    /// `requests`.
    pub unrecorded: Vec<&'static str>,
}

/// A system call in which a thread waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitCall {
    /// Which.
    pub value: TrackValue,
    /// When it was entered; where that is unknown, it was there since then at least.
    pub begin_ns: i64,
    /// Whether that is known.
    pub begin_known: bool,
    /// Whether events are missing around it.
    pub in_doubt: bool,
    /// The file that it is about, by its number, where the trace has that.
    pub fd: Option<i64>,
}

/// The thread that wakes another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waker {
    /// When.
    pub time_ns: i64,
    /// The track of the CPU where that happens.
    pub from: u32,
    /// The thread that runs there then, if that is known.
    pub value: Option<TrackValue>,
    /// The interrupt that the CPU serves then.
    pub irq: Option<TrackValue>,
    /// The softirq that it serves then.
    pub softirq: Option<TrackValue>,
}

/// A request to a block device that is not done when a thread begins to wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitRequest {
    /// The device, by its major and minor number.
    pub device: String,
    /// Where it begins.
    pub sector: i64,
    /// How much it is.
    pub bytes: u64,
    /// Whether it writes.
    pub write: bool,
    /// When it was asked for.
    pub begin_ns: i64,
    /// When the device was done with it, if that is before the thread was woken, and was read.
    pub end_ns: Option<i64>,
}

/// The facts about waiting, and the roles of events that tell them.
const TOLD_BY: [(&str, &[EventRole]); 4] = [
    ("calls", &[EventRole::SyscallEntry]),
    ("wakeups", &[EventRole::Waking, EventRole::Wakeup]),
    ("interrupts", &[EventRole::IrqEntry, EventRole::SoftirqEntry]),
    ("requests", &[EventRole::BlockInsert, EventRole::BlockIssue]),
];

/// Bits of a device's number that are its minor number's, and bytes of a sector.
const MINOR_BITS: u32 = 20;
const SECTOR_BYTES: u64 = 512;

fn track(thing: Thing, host: u16, number: i32, track: usize) -> u64 {
    TrackKey { thing, host, number, track: track as u8 }.key()
}

/// The tracks that tell why a thread waits, with its own; `None`: it is no track of a thread's
/// state.
pub(super) fn keys(timeline: &Timeline, key: u64) -> Option<Vec<u64>> {
    let (host, tid) = thread_of(key)?;
    let mut keys = vec![key, track(Thing::Thread, host, tid, thread_track::CALL), track(Thing::Wakeups, host, 0, 0)];
    for cpu in timeline.names.cpus(host) {
        keys.extend([cpu_track::THREAD, cpu_track::IRQ, cpu_track::SOFTIRQ].map(|of| track(Thing::Cpu, host, cpu, of)));
    }
    Some(keys)
}

/// The machine and the thread of a track of states.
fn thread_of(key: u64) -> Option<(u16, i32)> {
    let TrackKey { thing, host, number, track } = TrackKey::of(key)?;
    (thing == Thing::Thread && usize::from(track) == thread_track::STATE).then_some((host, number))
}

impl TrackWalk<'_> {
    /// For each item why a thread waits, if it does.
    pub(super) fn waits(&mut self) -> Result<Vec<Option<Box<WaitReason>>>, TimelineFailure> {
        let mut waits = vec![None; self.found.len()];
        let Some(thread) = thread_of(self.key).filter(|_| waits.len() <= WAITS_MAX) else { return Ok(waits) };
        for (place, wait) in waits.iter_mut().enumerate() {
            if let FoundItem::Run(run) = self.found[place] {
                *wait = self.wait(run, thread)?.map(Box::new);
            }
        }
        Ok(waits)
    }

    fn wait(&mut self, run: TrackRun, (host, tid): (u16, i32)) -> Result<Option<WaitReason>, TimelineFailure> {
        let Some((doing, _)) = ThreadState::of(run.value).filter(|(doing, _)| *doing != ThreadState::Running) else {
            return Ok(None);
        };
        let (is_begun, is_over) = (run.flags & BEGIN_UNKNOWN == 0, run.flags & END_UNKNOWN == 0);
        let mut wait = WaitReason { unrecorded: self.unrecorded(host), ..WaitReason::default() };
        let call = self.call(&mut wait, run, (host, tid))?;
        match doing {
            ThreadState::Preempted | ThreadState::Woken | ThreadState::New => {
                if doing == ThreadState::Woken && is_begun {
                    self.woken(&mut wait, run.begin, (host, tid))?;
                }
                let to = if is_over { self.runs_on((host, tid), run.end, |run| run.begin)? } else { None };
                // A preempted thread waits on its CPU; a woken one, for the CPU that takes it.
                let of = match doing {
                    ThreadState::Preempted if is_begun => self.runs_on((host, tid), run.begin, |run| run.end)?,
                    ThreadState::Preempted => None,
                    _ => to,
                };
                wait.to = to.map(|cpu| self.timeline.names.number(track(Thing::Cpu, host, cpu, cpu_track::THREAD)));
                wait.instead = match of {
                    Some(cpu) => self.on_cpu((host, cpu), cpu_track::THREAD, run.begin)?,
                    None => None,
                };
                wait.unknown.extend((wait.instead.is_none()).then_some("instead"));
                wait.unknown.extend((is_over && wait.to.is_none()).then_some("to"));
            }
            _ if is_over => self.woken(&mut wait, run.end, (host, tid))?,
            _ => {}
        }
        let is_blocked = matches!(doing, ThreadState::Blocked | ThreadState::Uninterruptible | ThreadState::Away);
        self.asked(&mut wait, run, ((host, tid), call, is_blocked))?;
        Ok(Some(wait))
    }

    /// The call that a thread is in; returned is when it was entered, if that is known.
    fn call(
        &mut self,
        wait: &mut WaitReason,
        run: TrackRun,
        (host, tid): (u16, i32),
    ) -> Result<Option<i64>, TimelineFailure> {
        let key = track(Thing::Thread, host, tid, thread_track::CALL);
        let (found, is_known) = self.at(key, run.begin)?;
        let Some(call) = found.last() else {
            let is_recorded = !wait.unrecorded.contains(&"calls");
            wait.unknown.extend((is_recorded && !is_known).then_some("call"));
            return Ok(None);
        };
        let begin_known = call.flags & BEGIN_UNKNOWN == 0;
        wait.call = self.value(key, call.value).map(|value| WaitCall {
            value,
            begin_ns: self.timeline.span.0.saturating_add(call.begin),
            begin_known,
            in_doubt: call.flags & IN_DOUBT != 0,
            fd: None,
        });
        Ok(begin_known.then_some(call.begin))
    }

    /// Finds the thread that wakes another at a time.
    fn woken(&mut self, wait: &mut WaitReason, at: i64, (host, tid): (u16, i32)) -> Result<(), TimelineFailure> {
        let key = track(Thing::Wakeups, host, 0, 0);
        let chunk = self.timeline.chunk_at(at);
        let is_it = |value: u64| value as u32 == tid.cast_unsigned();
        let wakeup = self.exactly(chunk, |exactly| {
            Ok(exactly.cells(key).find(|cell| cell.bucket.cast_signed() == at && is_it(cell.value)))
        })?;
        let Some(wakeup) = wakeup else {
            wait.unknown.extend((!wait.unrecorded.contains(&"wakeups")).then_some("waker"));
            return Ok(());
        };
        let cpu = (wakeup.value >> 32) as i32;
        wait.waker = Some(Waker {
            time_ns: self.timeline.span.0.saturating_add(at),
            from: self.timeline.names.number(track(Thing::Cpu, host, cpu, cpu_track::THREAD)),
            value: self.on_cpu((host, cpu), cpu_track::THREAD, at)?,
            irq: self.on_cpu((host, cpu), cpu_track::IRQ, at)?,
            softirq: self.on_cpu((host, cpu), cpu_track::SOFTIRQ, at)?,
        });
        Ok(())
    }

    /// The CPU with a run of a thread that has an edge at a time.
    fn runs_on(
        &mut self,
        (host, tid): (u16, i32),
        at: i64,
        edge: impl Fn(&TrackRun) -> i64,
    ) -> Result<Option<i32>, TimelineFailure> {
        for cpu in self.timeline.names.cpus(host) {
            let (runs, _) = self.around(track(Thing::Cpu, host, cpu, cpu_track::THREAD), at)?;
            if runs.iter().any(|run| run.value == u64::from(tid.cast_unsigned()) && edge(run) == at) {
                return Ok(Some(cpu));
            }
        }
        Ok(None)
    }

    /// The value of a CPU's track at a time.
    fn on_cpu(&mut self, (host, cpu): (u16, i32), of: usize, at: i64) -> Result<Option<TrackValue>, TimelineFailure> {
        let key = track(Thing::Cpu, host, cpu, of);
        let (runs, _) = self.at(key, at)?;
        Ok(runs.last().and_then(|run| self.value(key, run.value)))
    }

    fn value(&self, key: u64, value: u64) -> Option<TrackValue> {
        let names = &self.timeline.names;
        names.told(names.value(&self.timeline.analysis, meaning(key)?, value))
    }

    /// The runs of a track that hold a time, and whether anything is known of that time.
    fn at(&mut self, key: u64, at: i64) -> Result<(Vec<TrackRun>, bool), TimelineFailure> {
        let (mut runs, is_known) = self.around(key, at)?;
        runs.retain(|run| run.begin <= at && at < run.end);
        Ok((runs, is_known))
    }

    /// The same with those that end then.
    fn around(&mut self, key: u64, at: i64) -> Result<(Vec<TrackRun>, bool), TimelineFailure> {
        let chunk = self.timeline.chunk_at(at);
        self.is_complete &= chunk <= self.known;
        let known = self.timeline.known_before(vec![key], chunk)?;
        let before = self.timeline.before_of(known.get(&key).copied().flatten());
        let wanted = TrackRequest { key, window: (at.saturating_sub(1), at.saturating_add(1)), ..self.wanted(chunk) };
        let is_told = self.exactly(chunk, |exactly| {
            Ok(exactly.cells(key).next().is_some_and(|cell| cell.bucket.cast_signed() <= at))
        })?;
        Ok((self.runs(chunk, before, wanted)?, is_told || known.contains_key(&key)))
    }

    /// The requests of the thread: the file of its call, and the disk requests that were open when
    /// it began to wait.
    fn asked(
        &mut self,
        wait: &mut WaitReason,
        run: TrackRun,
        ((host, tid), call, is_blocked): ((u16, i32), Option<i64>, bool),
    ) -> Result<(), TimelineFailure> {
        let timeline = self.timeline;
        let at_ns = |at: i64| timeline.span.0.saturating_add(at);
        let wants_requests = is_blocked && run.flags & BEGIN_UNKNOWN == 0 && !wait.unrecorded.contains(&"requests");
        let of_call = call.map(|at| timeline.chunk_at(at));
        let (begin, end) = (timeline.chunk_at(run.begin), timeline.chunk_at(run.end));
        let is_over = run.flags & END_UNKNOWN == 0;
        let of_requests = [Some(begin), Some(end).filter(|end| is_over && *end != begin)];
        let mut chunks: Vec<usize> = of_requests.into_iter().flatten().filter(|_| wants_requests).collect();
        chunks.extend(of_call.filter(|chunk| !chunks.contains(chunk)));
        let mut requests = Requests::default();
        for chunk in chunks {
            let is_of_requests = wants_requests && (chunk == begin || chunk == end);
            let asks = Causes {
                call_at: call.filter(|_| of_call == Some(chunk)).map(at_ns),
                requests: is_of_requests.then_some((i64::MIN, at_ns(run.end))),
            };
            let Some((found, prepared)) = timeline.causes(&asks, chunk, self.progress)? else { return Ok(()) };
            let is_here = |lane: usize| causes::host_of(&prepared.lanes[lane], &timeline.prepared.lanes) == Some(host);
            let calls = found.calls.iter().filter(|(lane, _)| is_here(*lane)).map(|(_, call)| call);
            let calls: Vec<_> = calls.filter(|call| call.tid.is_none_or(|of| of == tid)).collect();
            // Several at one instant that do not say their thread: it is unknown which one it is.
            if let (Some(told), [call]) = (&mut wait.call, &calls[..]) {
                told.fd = call.fd;
            }
            let steps = found.steps.iter().filter(|(lane, ..)| is_here(*lane));
            steps.for_each(|(_, time, step)| requests.step(*time, *step, (tid, at_ns(run.begin))));
        }
        wait.requests = requests.open_at(at_ns(run.begin)).into_iter().map(told).collect();
        Ok(())
    }

    /// The roles that the traces of a machine have no events of.
    fn unrecorded(&self, host: u16) -> Vec<&'static str> {
        let Some(prepared) = self.timeline.prepared_for_causes() else { return Vec::new() };
        let is_of_host = |lane: &&LaneFacts| causes::host_of(lane, &self.timeline.prepared.lanes) == Some(host);
        let of = |prepared: &Prepared, lanes: Vec<&LaneFacts>, roles: &[EventRole]| {
            let mut kinds =
                lanes.into_iter().flat_map(|lane| &lane.streams).filter_map(|stream| prepared.streams[*stream]);
            kinds.any(|kind| causes::has_any(prepared.bindings.classes_of(kind), roles))
        };
        let has = |roles: &[EventRole]| {
            let own = &self.timeline.prepared;
            of(prepared, prepared.lanes.iter().filter(is_of_host).collect(), roles)
                || of(own, own.lanes.iter().filter(is_of_host).collect(), roles)
        };
        TOLD_BY.iter().filter(|(_, roles)| !has(roles)).map(|(name, _)| *name).collect()
    }
}

fn told(request: ThreadRequest) -> WaitRequest {
    let Extent { device, sector, sectors } = request.extent;
    WaitRequest {
        device: format!("{}:{}", device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1)),
        sector,
        bytes: sectors.saturating_mul(SECTOR_BYTES),
        write: request.is_write,
        begin_ns: request.begin,
        end_ns: request.end,
    }
}

impl Timeline {
    /// The preparation for reading why threads wait; made at the first request.
    fn prepared_for_causes(&self) -> Option<&Prepared> {
        let prepare = || {
            let question = Causes::question();
            // The mapping was read before; if it is removed meanwhile, less is told.
            self.session.prepare(&question, &self.options).ok()
        };
        self.causes.get_or_init(prepare).as_ref()
    }

    /// The facts in a chunk's events about why a thread waits.
    fn causes(
        &self,
        asks: &Causes,
        chunk: usize,
        progress: &Progress,
    ) -> Result<Option<(causes::CauseState, &Prepared)>, TimelineFailure> {
        let Some(prepared) = self.prepared_for_causes() else { return Ok(None) };
        let slice = &self.chunks[chunk].slice;
        let reader = &mut PartReader::new(&self.session, prepared, progress);
        let read = match reader.read(asks, slice, false, true) {
            Ok(read) => read,
            Err(_) => reader.read(asks, slice, false, false).unwrap_or_else(|_| unreachable!("nothing is relied on")),
        };
        Ok(Some((progress.whole(read.state)?, prepared)))
    }
}

#[cfg(test)]
mod tests;
