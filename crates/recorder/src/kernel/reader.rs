//! Reads the rings of all CPUs into their spools.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use kymo_lane::ClockSource;
use kymo_probe::helper::RingFiles;
use kymo_probe::tracefs::CpuFiles;
use rustix::time::{ClockId, clock_gettime};

use crate::clock;
use crate::kernel::KernelShared;
use crate::kernel::perf_sched::SchedReader;
use crate::kernel::rules::RuleReader;
use crate::kernel::spool::{PAGE_HEAD, PageSpool};
use crate::kernel::stacks::StackReader;
use crate::kernel::texts::TextReader;

/// Between two looks at the rings.
const LOOK: Duration = Duration::from_millis(20);
/// Looks between two questions for the kernel's counts, each of which is a system call for each CPU.
const LOOKS: u32 = 5;
/// Bytes of pages that are written to a spool at a time: when the recorder is killed, so many may be lost.
const BATCH: usize = 64 << 10;
/// Bytes of spools that may wait for conversion: beyond, rings keep their newest events.
const WAITING_MAX: u64 = 256 << 20;
/// Bytes before a page's records.
const HEAD: usize = 16;
/// Bits of the number before them: events were lost before the page, and how many stands behind its records.
const LOST: u64 = 1 << 31;
const LOST_STORED: u64 = 1 << 30;
/// Bytes of that number.
const LOST_BYTES: usize = 8;

/// Reads rings.
#[derive(Debug)]
pub(super) struct RingReader {
    rings: Vec<Ring>,
    page_bytes: usize,
    clock: ClockSource,
    /// The kernel keeps the newest events until they are asked for, and the spool so many bytes of them for each CPU.
    kept_bytes: Option<u64>,
    beside: BesidePages,
}

/// Readers of what the kernel writes to other rings.
#[derive(Debug, Default)]
pub(super) struct BesidePages {
    pub(super) texts: Option<TextReader>,
    pub(super) stacks: Option<StackReader>,
    pub(super) sched: Option<SchedReader>,
    pub(super) rules: Option<RuleReader>,
}

impl BesidePages {
    fn is_none(&self) -> bool {
        self.texts.is_none() && self.stacks.is_none() && self.rules.is_none()
    }

    /// Bytes that wait for conversion.
    fn waiting(&self) -> u64 {
        self.texts.as_ref().map_or(0, TextReader::waiting)
            + self.stacks.as_ref().map_or(0, StackReader::waiting)
            + self.sched.as_ref().map_or(0, SchedReader::waiting)
            + self.rules.as_ref().map_or(0, RuleReader::waiting)
    }
}

/// To read the rings now, and say when that is done.
pub(super) type ReadRequest = Sender<()>;

#[derive(Debug)]
struct Ring {
    pages: File,
    counts: File,
    spool: Arc<PageSpool>,
    /// Overwritten events that pages have told until now; `None`: those that an earlier recorder has read told some, too.
    told: Option<u64>,
}

/// Counts of a ring, as the kernel tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RingCounts {
    /// Events that were overwritten or dropped.
    lost: u64,
    /// Events that were overwritten.
    overwritten: u64,
    /// Events that were read.
    read: u64,
}

impl RingReader {
    pub(super) fn new(
        rings: Vec<RingFiles>,
        page_bytes: u32,
        spools: Vec<Arc<PageSpool>>,
        clock: ClockSource,
        kept_bytes: Option<u64>,
        beside: BesidePages,
    ) -> Self {
        let rings = rings.into_iter().zip(spools);
        let ring = |(RingFiles { cpu: CpuFiles { pages, counts, .. }, .. }, spool)| {
            let ring = Ring { pages, counts, spool, told: None };
            Ring { told: (ring.counts() == RingCounts::default()).then_some(0), ..ring }
        };
        let rings = rings.map(ring);
        Self { rings: rings.collect(), page_bytes: page_bytes as usize, clock, kept_bytes, beside }
    }

    /// Reads until the recording is over, and then the rest.
    pub(super) fn run(mut self, shared: &KernelShared, requests: &Receiver<ReadRequest>) {
        let mut batch = vec![0; BATCH.max(PAGE_HEAD + self.page_bytes + LOST_BYTES)];
        let (mut cpu_ns, mut looks) = (0, 0_u32);
        let _is_read = EndOfReading(shared);
        loop {
            let request = self.wait(shared, requests);
            // Asked before the rings are read: all that was recorded until then is read.
            let is_over = shared.is_over.load(Ordering::Acquire);
            self.read_all(shared, &mut batch, (is_over, request.is_some()));
            if is_over || request.is_some() || looks % LOOKS == 0 {
                let more_ns = thread_ns() - cpu_ns;
                cpu_ns += more_ns;
                self.count(shared, more_ns);
            }
            // If the one who asked is gone, it does not matter.
            request.into_iter().for_each(|request| _ = request.send(()));
            looks = looks.wrapping_add(1);
            if is_over {
                break;
            }
        }
    }

    fn wait(&self, shared: &KernelShared, requests: &Receiver<ReadRequest>) -> Option<ReadRequest> {
        let gone = || shared.is_over.store(true, Ordering::Release);
        match self.kept_bytes {
            // The sender is gone when the recording is over.
            Some(_) if self.beside.is_none() => requests.recv().inspect_err(|_| gone()).ok(),
            _ => requests
                .recv_timeout(LOOK)
                .inspect_err(|error| {
                    if *error == RecvTimeoutError::Disconnected {
                        gone();
                    }
                })
                .ok(),
        }
    }

    fn read_all(&mut self, shared: &KernelShared, batch: &mut [u8], (is_over, is_asked): (bool, bool)) {
        let Self { rings, page_bytes, clock, kept_bytes, beside } = self;
        let waiting: u64 = rings.iter().map(|ring| ring.spool.waiting()).sum();
        let waiting = waiting + beside.waiting();
        shared.waiting.store(waiting, Ordering::Relaxed);
        let room = WAITING_MAX.saturating_sub(waiting);
        // The kernel keeps the newest pages; it does not overwrite texts and stacks.
        let is_due = kept_bytes.is_none() || is_asked || is_over;
        for ring in rings.iter_mut().filter(|_| is_due) {
            ring.spool.free();
            // At the end, nothing comes behind what is there.
            if room == 0 && !is_over && kept_bytes.is_none() {
                continue;
            }
            let read = ring.read(*page_bytes, *clock, batch);
            let kept = kept_bytes.map_or(Ok(()), |most| ring.spool.keep_newest(most));
            if let Err(error) = read.and(kept) {
                shared.problem(format!("events of CPU {} cannot be read: {error}", ring.spool.cpu));
            }
        }
        let may_forget = !is_asked && shared.snapshots.load(Ordering::Acquire) == 0;
        // After the pages, so that those are not without their texts.
        if let Some(Err(error)) = beside.texts.as_mut().map(|texts| texts.read(room > 0 || is_over, may_forget)) {
            shared.problem(format!("texts of system calls cannot be kept: {error}"));
        }
        if let Some(Err(error)) =
            beside.stacks.as_mut().map(|stacks| stacks.read(room > 0 || is_over, is_over, may_forget))
        {
            shared.problem(format!("call stacks cannot be kept: {error}"));
        }
        if let Some(Err(error)) = beside.sched.as_mut().map(|sched| sched.read(room > 0 || is_over, is_over)) {
            shared.problem(format!("context switches cannot be kept: {error}"));
        }
        if let Some(Err(error)) = beside.rules.as_mut().map(|rules| rules.read(room > 0 || is_over, may_forget)) {
            shared.problem(format!("events that rules have kept cannot be kept: {error}"));
        }
    }

    fn count(&self, shared: &KernelShared, more_ns: u64) {
        let counts: Vec<_> = self.rings.iter().map(Ring::counts).collect();
        let read = self.rings.iter().zip(&counts).filter(|(_, counts)| counts.read > 0);
        let cpus: BTreeSet<u32> = read.map(|(ring, _)| ring.spool.cpu).collect();
        let is_limited = shared.wanted().is_limited;
        shared.count(|summary| {
            // Without rings, the converter counts.
            if self.rings.is_empty() {
                summary.cpu_ns += more_ns;
                return;
            }
            if !is_limited {
                summary.lost = counts.iter().map(|counts| counts.lost).sum();
            }
            summary.read = counts.iter().map(|counts| counts.read).sum();
            summary.cpus = cpus.len() as u64;
            summary.cpu_ns += more_ns;
            if let Some(texts) = &self.beside.texts {
                (summary.texts, summary.texts_lost) = (texts.read, texts.lost);
            }
        });
        // The next recorder counts it, too.
        if let Some(ring) = self.rings.first() {
            ring.spool.told_cost(shared.summary().cpu_ns);
        } else if let Some(sched) = &self.beside.sched {
            sched.told_cost(shared.summary().cpu_ns);
        }
    }
}

/// The converter waits for nothing more, however the reader ends.
struct EndOfReading<'a>(&'a KernelShared);

impl Drop for EndOfReading<'_> {
    fn drop(&mut self) {
        self.0.is_read.store(true, Ordering::Release);
    }
}

impl Ring {
    /// Moves all that was recorded until now to the spool.
    fn read(&mut self, page_bytes: usize, clock: ClockSource, batch: &mut [u8]) -> io::Result<()> {
        let now = clock::ticks(clock);
        loop {
            let (mut used, mut is_empty) = (0, false);
            while used + PAGE_HEAD + page_bytes + LOST_BYTES <= batch.len() {
                let page = &mut batch[used + PAGE_HEAD..used + PAGE_HEAD + page_bytes + LOST_BYTES];
                match (&self.pages).read(&mut page[..page_bytes]) {
                    Ok(0) => is_empty = true,
                    Ok(bytes) => {
                        let (bytes, begin) = (self.with_losses(page, bytes), page_begin(page));
                        batch[used..used + 4].copy_from_slice(&(bytes as u32).to_le_bytes());
                        batch[used + 4..used + PAGE_HEAD].copy_from_slice(&clock::ticks(clock).to_le_bytes());
                        used += PAGE_HEAD + bytes;
                        // Reading is an event, too: there is always more.
                        is_empty = begin >= now;
                        if !is_empty {
                            continue;
                        }
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                        is_empty = true;
                    }
                    Err(error) => {
                        self.spool.put(&batch[..used])?;
                        return Err(error);
                    }
                }
                break;
            }
            self.spool.put(&batch[..used])?;
            if is_empty {
                return Ok(());
            }
        }
    }

    /// Bytes of a page that was just read, up to its last record and the number of events that were lost before it. The kernel leaves that
    /// number out where its page has no room. It counts all overwritten events of the ring, so those that no page has told were lost before
    /// this one. Some of them may have been overwritten since the page was read: then the next page tells as many less.
    fn with_losses(&mut self, page: &mut [u8], bytes: usize) -> usize {
        let commit = number(page, 8);
        let at = HEAD + (commit & (LOST_STORED - 1)) as usize;
        if commit & LOST == 0 || at > bytes {
            return used_bytes(&page[..bytes]);
        }
        let stored = (commit & LOST_STORED != 0 && at + LOST_BYTES <= bytes).then(|| number(page, at));
        let overwritten = self.counts().overwritten;
        // The count is that of now: without a number from the begin on, it tells nothing of a page that has its own.
        let told = self.told.filter(|told| overwritten > 0 && *told <= overwritten);
        let untold = told.map(|told| overwritten - told);
        let lost = match (stored, untold) {
            (Some(stored), Some(untold)) => stored.min(untold),
            (stored, untold) => stored.or(untold).unwrap_or(1),
        };
        if overwritten > 0 {
            self.told = match (told, stored) {
                (Some(told), _) => Some(told + lost),
                (None, None) => Some(overwritten),
                (None, Some(_)) => None,
            };
        }
        page[8..16].copy_from_slice(&(commit | LOST_STORED).to_le_bytes());
        page[at..at + LOST_BYTES].copy_from_slice(&lost.to_le_bytes());
        at + LOST_BYTES
    }

    fn counts(&self) -> RingCounts {
        let mut text = [0; 1024];
        let bytes = self.counts.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..bytes]);
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim_start_matches(':').trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let overwritten = of("overrun");
        let lost = overwritten + of("commit overrun") + of("dropped events");
        RingCounts { lost, overwritten, read: of("read events") }
    }
}

/// Ticks of the first event of a page.
pub(super) fn page_begin(page: &[u8]) -> u64 {
    page.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
}

/// The number at a place; 0: there is none.
fn number(page: &[u8], at: usize) -> u64 {
    page.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Bytes of a page up to its last record, and the number of lost events behind it.
fn used_bytes(page: &[u8]) -> usize {
    let records = (number(page, 8) & (LOST_STORED - 1)) as usize;
    HEAD.saturating_add(records).saturating_add(8).min(page.len())
}

/// Processor time of this thread, in nanoseconds.
pub(super) fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
