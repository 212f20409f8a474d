//! Reads the rings of all CPUs into their spools.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kymo_probe::tracefs::CpuFiles;
use rustix::time::{ClockId, clock_gettime};

use crate::kernel::KernelShared;
use crate::kernel::spool::PageSpool;
use crate::tracepoints::KernelSummary;

/// Between two looks at the rings.
const LOOK: Duration = Duration::from_millis(20);
/// Looks between two questions for the kernel's counts, each of which is a system call for each CPU.
const LOOKS: u32 = 5;
/// Bytes of pages that are written to a spool at a time.
const BATCH: usize = 256 << 10;
/// Bytes of spools that may wait for conversion: beyond, rings keep their newest events.
const WAITING_MAX: u64 = 256 << 20;
/// Bytes before a page's records.
const HEAD: usize = 16;

/// Reads rings.
#[derive(Debug)]
pub(super) struct RingReader {
    rings: Vec<Ring>,
    page_bytes: usize,
}

#[derive(Debug)]
struct Ring {
    pages: File,
    counts: File,
    spool: Arc<PageSpool>,
}

/// Counts of a ring, as the kernel tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RingCounts {
    /// Events that were overwritten or dropped.
    lost: u64,
    /// Events that were read.
    read: u64,
}

impl RingReader {
    pub(super) fn new(cpus: Vec<CpuFiles>, page_bytes: u32, spools: Vec<Arc<PageSpool>>) -> Self {
        let rings = cpus.into_iter().zip(spools);
        let rings = rings.map(|(CpuFiles { pages, counts, .. }, spool)| Ring { pages, counts, spool });
        Self { rings: rings.collect(), page_bytes: page_bytes as usize }
    }

    /// Reads until the recording is over, and then the rest.
    pub(super) fn run(mut self, shared: &KernelShared) {
        let mut batch = vec![0; BATCH.max(2 * self.page_bytes)];
        let (mut cpu_ns, mut looks) = (0, 0_u32);
        loop {
            // Asked before the rings are read: all that was recorded until then is read.
            let is_over = shared.is_over.load(Ordering::Acquire);
            let room = WAITING_MAX.saturating_sub(self.rings.iter().map(|ring| ring.spool.waiting()).sum());
            for ring in &mut self.rings {
                ring.spool.free();
                // At the end, nothing comes behind what is there.
                if room == 0 && !is_over {
                    continue;
                }
                if let Err(error) = ring.read(self.page_bytes, &mut batch) {
                    shared.problem(format!("events of CPU {} cannot be read: {error}", ring.spool.cpu));
                }
            }
            if is_over || looks % LOOKS == 0 {
                let counts: Vec<_> = self.rings.iter().map(Ring::counts).collect();
                let now_ns = thread_ns();
                let more_ns = now_ns - std::mem::replace(&mut cpu_ns, now_ns);
                shared.count(|summary| {
                    *summary = KernelSummary {
                        lost: counts.iter().map(|counts| counts.lost).sum(),
                        read: counts.iter().map(|counts| counts.read).sum(),
                        cpus: counts.iter().filter(|counts| counts.read > 0).count() as u64,
                        cpu_ns: summary.cpu_ns + more_ns,
                        ..*summary
                    };
                });
            }
            looks = looks.wrapping_add(1);
            if is_over {
                break;
            }
            std::thread::sleep(LOOK);
        }
        shared.is_read.store(true, Ordering::Release);
    }
}

impl Ring {
    /// Moves all pages to the spool.
    fn read(&mut self, page_bytes: usize, batch: &mut [u8]) -> io::Result<()> {
        loop {
            let (mut used, mut is_empty) = (0, false);
            while used + 4 + page_bytes <= batch.len() {
                let page = &mut batch[used + 4..used + 4 + page_bytes];
                match (&self.pages).read(page) {
                    Ok(0) => is_empty = true,
                    Ok(bytes) => {
                        let bytes = used_bytes(&page[..bytes]);
                        batch[used..used + 4].copy_from_slice(&(bytes as u32).to_le_bytes());
                        used += 4 + bytes;
                        // The kernel still writes to this page: it has more each time, if reading it is an event, too.
                        is_empty = bytes < page_bytes / 2;
                        if !is_empty {
                            continue;
                        }
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                        is_empty = true;
                    }
                    Err(error) => return Err(error),
                }
                break;
            }
            self.spool.put(&batch[..used])?;
            if is_empty {
                return Ok(());
            }
        }
    }

    fn counts(&self) -> RingCounts {
        let mut text = [0; 1024];
        let bytes = self.counts.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..bytes]);
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim_start_matches(':').trim().parse::<u64>().ok()).unwrap_or(0)
        };
        RingCounts { lost: of("overrun") + of("dropped events"), read: of("read events") }
    }
}

/// Bytes of a page up to its last record, and the number of lost events behind it.
fn used_bytes(page: &[u8]) -> usize {
    let commit = page.get(8..16).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let records = (commit & ((1 << 30) - 1)) as usize;
    HEAD.saturating_add(records).saturating_add(8).min(page.len())
}

/// Processor time of this thread, in nanoseconds.
pub(super) fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Lets a thread run when no other thread wants its CPU.
pub(super) fn idle() -> i32 {
    let thread = rustix::thread::gettid();
    kymo_probe::priority::idle(thread.as_raw_nonzero().get());
    thread.as_raw_nonzero().get()
}

/// Lets a thread run as others do.
pub(super) fn hurry(thread: i32) {
    if thread != 0 {
        kymo_probe::priority::normal(thread);
    }
}
