//! Makes a trace of the spool.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use kymo_filter::Verdict;
use kymo_ftrace::texts::NO_TEXTS;
use kymo_ftrace::{CallTable, EventCatalog, KernelThreads, LostBefore, Page, PageLayout, record_thread};
use kymo_writer::WriteError;

use crate::clock::{ClockDescription, TickSource};
use crate::kernel::KernelShared;
use crate::kernel::counts::CountFeed;
use crate::kernel::filter::EventFilters;
use crate::kernel::output::KernelOutput;
use crate::kernel::perf_sched::SchedFeed;
use crate::kernel::place::WrittenBefore;
use crate::kernel::reader::{page_begin, thread_ns};
use crate::kernel::rules::RuleFeed;
use crate::kernel::spare::SpareTime;
use crate::kernel::spool::{PageSpool, SpoolProgress, next_page};
use crate::kernel::stacks::StackFeed;
use crate::kernel::state::{SharedHelper, StateOrigin};
use crate::kernel::texts::TextFeed;
use crate::kernel::wanted::WantedTimes;
use crate::trace::OutputOptions;
use crate::tracepoints::KernelSummary;

/// Bytes of a CPU's spool that are read at a time.
const RUN: usize = 256 << 10;
/// Between two looks at a spool that has nothing.
const LOOK: Duration = Duration::from_millis(20);
/// Between two words to readers that follow the trace.
const SAID: Duration = Duration::from_millis(100);

/// Converts pages.
#[derive(Debug)]
pub(super) struct KernelConverter {
    output: KernelOutput,
    catalog: EventCatalog,
    layout: PageLayout,
    threads: KernelThreads,
    cpus: Vec<ConvertedCpu>,
    /// Texts of system calls, which pages wait for, and the number of those that are not known.
    texts: Option<TextFeed>,
    unknown_texts: u64,
    stacks: Option<StackFeed>,
    /// Context switches, if there are no pages.
    sched: Option<SchedFeed>,
    /// Events that rules have kept.
    rules: Option<RuleFeed>,
    /// Counts beside the events.
    counts: Option<CountFeed>,
    /// All threads of the pages that are converted now are known.
    has_looked_ahead: bool,
    filters: EventFilters,
    /// Events that filters did not keep.
    filtered: u64,
    faults: BTreeSet<String>,
}

/// Where the pages come from, and where the trace begins.
#[derive(Debug)]
pub(super) struct Conversion<'a> {
    pub(super) path: &'a Path,
    pub(super) options: &'a OutputOptions,
    pub(super) clock: (&'a TickSource, ClockDescription),
    pub(super) catalog: EventCatalog,
    pub(super) layout: PageLayout,
    pub(super) cpus: Vec<ConvertedCpu>,
    pub(super) before: WrittenBefore,
    /// Texts of system calls, and their origin.
    pub(super) texts: (Option<TextFeed>, Option<String>),
    pub(super) stacks: Option<StackFeed>,
    pub(super) sched: Option<SchedFeed>,
    pub(super) rules: Option<RuleFeed>,
    pub(super) counts: Option<CountFeed>,
    /// It opens the state of the system.
    pub(super) helper: SharedHelper,
    pub(super) filters: EventFilters,
}

/// A CPU's pages.
#[derive(Debug)]
pub(super) struct ConvertedCpu {
    spool: Arc<PageSpool>,
    /// So far, in packets or not.
    events: u64,
    understood: u64,
    /// Of its events that the trace should have.
    lost: u64,
    /// Ticks of the last record.
    last: Option<u64>,
    /// The newest pages, and others before them were let go.
    is_newest: bool,
    /// Events until these ticks are in the trace of an earlier recorder.
    written_until: Option<u64>,
}

impl ConvertedCpu {
    /// Goes on where an earlier recorder ended, whose trace has events until these ticks.
    pub(super) fn new(spool: Arc<PageSpool>, before: SpoolProgress, written_until: Option<u64>) -> Self {
        let SpoolProgress { events, understood, .. } = before;
        Self { spool, events, understood, lost: 0, last: None, is_newest: false, written_until }
    }

    /// The newest pages that are kept.
    pub(super) fn newest(spool: Arc<PageSpool>) -> Self {
        Self { is_newest: true, ..Self::new(spool, SpoolProgress::default(), None) }
    }

    /// Whether events between the last record and a page are missing in the trace.
    fn misses(&self, begin: u64, wanted: &WantedTimes) -> bool {
        !(self.is_newest && self.last.is_none()) && wanted.overlaps(self.last.unwrap_or(0), begin)
    }

    /// Whether an earlier recorder has written an event; the first one that it has not tells that of all later ones.
    fn is_written(&mut self, ticks: u64) -> bool {
        let is_written = self.written_until.is_some_and(|until| ticks <= until);
        self.written_until = self.written_until.filter(|_| is_written);
        is_written
    }
}

impl KernelConverter {
    pub(super) fn create(conversion: Conversion<'_>) -> Result<Self, WriteError> {
        let Conversion {
            path,
            options,
            clock,
            mut catalog,
            layout,
            cpus,
            before,
            texts,
            stacks,
            sched,
            rules,
            counts,
            helper,
            filters,
        } = conversion;
        let (texts, origin) = texts;
        if texts.is_some() {
            catalog.expect_texts();
        }
        let numbers = cpus.iter().map(|cpu| (cpu.spool.ring, cpu.spool.cpu));
        let numbers = numbers.chain(sched.iter().flat_map(SchedFeed::streams)).collect();
        let mut threads = KernelThreads::default();
        if sched.is_some() {
            threads.keep_names();
        }
        let mut output = KernelOutput::create(path, options, clock, numbers, (before, origin, helper))?;
        output.has_build_ids = stacks.is_some();
        Ok(Self {
            output,
            catalog,
            layout,
            threads,
            cpus,
            texts,
            unknown_texts: 0,
            stacks,
            sched,
            rules,
            counts,
            has_looked_ahead: false,
            filters,
            filtered: 0,
            faults: BTreeSet::new(),
        })
    }

    /// Writes the state of the system, as of now.
    pub(super) fn dump_state(&mut self) {
        let dumped = self.output.dump_state(&mut self.threads, &told_state(&self.cpus, self.sched.as_ref()));
        self.failed(dumped);
        if let Some(sched) = &mut self.sched {
            sched.knows(&mut self.threads);
        }
        self.learn_state();
    }

    /// Converts until the reader has ended and nothing waits.
    pub(super) fn run(mut self, shared: &KernelShared) -> Self {
        self.dump_state();
        // From now on, it may wait for an idle CPU.
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        shared.converter.store(thread, Ordering::SeqCst);
        let mut said = Instant::now();
        let (mut runs, mut cpu_ns, mut spare) = (Vec::new(), 0, SpareTime::default());
        loop {
            let is_read = shared.is_read.load(Ordering::Acquire);
            let (began, wanted) = (SystemTime::now(), shared.wanted());
            let may_work = !shared.is_patient.load(Ordering::SeqCst) || spare.is_there();
            let is_busy = may_work
                && (self.more_stacks(&wanted)
                    | self.more_switches(&wanted)
                    | self.more_of_rules(&wanted)
                    | self.more_counts(&wanted)
                    | (self.round(&mut runs, &wanted) || self.more_texts(is_read, &wanted)));
            let is_done = self.cpus.iter().all(|cpu| cpu.spool.waiting() == 0)
                && !self.stacks.as_ref().is_some_and(StackFeed::waits)
                && !self.sched.as_ref().is_some_and(SchedFeed::waits)
                && !self.rules.as_ref().is_some_and(RuleFeed::waits)
                && !self.counts.as_ref().is_some_and(CountFeed::waits);
            self.roll_if_due();
            let now_ns = thread_ns();
            let more_ns = now_ns - std::mem::replace(&mut cpu_ns, now_ns);
            // Before the lock, for which the reader waits.
            let mut sums = shared.summary();
            self.sum(&mut sums, &wanted);
            shared.count(|summary| {
                (summary.events, summary.bytes, summary.texts_unknown) = (sums.events, sums.bytes, sums.texts_unknown);
                (summary.stacks, summary.stacks_lost) = (sums.stacks, sums.stacks_lost);
                (summary.state, summary.state_absent) = (sums.state, sums.state_absent);
                (summary.lost, summary.cpus, summary.filtered) = (sums.lost, sums.cpus, sums.filtered);
                (summary.ruled, summary.ruled_lost) = (sums.ruled, sums.ruled_lost);
                summary.cpu_ns += more_ns;
            });
            std::mem::take(&mut self.faults).into_iter().for_each(|fault| shared.problem(fault));
            if may_work && !is_busy && is_read && is_done {
                return self;
            }
            if said.elapsed() >= SAID {
                said = Instant::now();
                self.output.say(self.until(wanted.known_at.unwrap_or(began)));
                shared.writes_to(self.output.folder());
            }
            if !is_busy {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Converts all pages that there are.
    pub(super) fn convert_all(&mut self, wanted: &WantedTimes) {
        let mut runs = Vec::new();
        while self.round(&mut runs, wanted) {}
        while self.more_stacks(wanted) {}
        while self.more_of_rules(wanted) {}
        while self.more_counts(wanted) {}
    }

    fn sum(&self, summary: &mut KernelSummary, wanted: &WantedTimes) {
        let stacks = self.stacks.as_ref().map(|stacks| stacks.counts).unwrap_or_default();
        (summary.stacks, summary.stacks_lost) = (stacks.stacks, stacks.lost);
        let of_cpus: u64 = self.cpus.iter().map(|cpu| cpu.events).sum();
        let sched = self.sched.as_ref().map(|sched| sched.counts).unwrap_or_default();
        let rules = self.rules.as_ref().map(|rules| rules.counts).unwrap_or_default();
        (summary.ruled, summary.ruled_lost) = (rules.kept, rules.lost);
        let counts = self.counts.as_ref().map_or(0, |counts| counts.written);
        summary.events = of_cpus + self.output.state_events() + stacks.events + sched.events + rules.events + counts;
        summary.bytes = self.output.bytes();
        summary.texts_unknown = self.unknown_texts;
        summary.filtered = self.filtered;
        let StateOrigin { word, why } = self.output.state_origin();
        (summary.state, summary.state_absent) = ((*word).to_owned(), why.clone());
        if wanted.is_limited {
            summary.lost = self.cpus.iter().map(|cpu| cpu.lost).sum();
        }
        if let Some(sched) = &self.sched {
            (summary.lost, summary.cpus) = (sched.counts.lost, sched.streams().len() as u64);
        }
    }

    /// Up to when all events are in packets, where pages that wait were read after this time; `None`: that is not known.
    fn until(&self, began: SystemTime) -> Option<SystemTime> {
        let waits =
            (0..self.cpus.len()).filter(|at| self.cpus[*at].spool.waiting() > 0 || !self.output.is_flushed(*at));
        let stacks = self.stacks.as_ref().filter(|stacks| stacks.waits());
        let stacks = stacks.map(|stacks| self.output.time_at(stacks.until()));
        let sched = self.sched.as_ref().map(|sched| self.output.time_at(sched.until()));
        let rules = self.rules.as_ref().filter(|rules| rules.waits());
        let rules = rules.map(|rules| self.output.time_at(rules.until()));
        let mut ends = waits.map(|at| self.output.written_until(at)).chain(stacks).chain(sched).chain(rules);
        ends.try_fold(began, |first, end| Some(first.min(end?)))
    }

    fn roll_if_due(&mut self) {
        if self.output.is_over() && (0..self.cpus.len()).all(|at| self.flush(at)) {
            self.end_stacks();
            let rolled = self.output.roll(&mut self.threads, &told_state(&self.cpus, self.sched.as_ref()));
            self.failed(rolled);
            self.learn_state();
        }
    }

    /// The state of the system has files with code.
    fn learn_state(&mut self) {
        let code = std::mem::take(&mut self.output.code);
        self.stacks.iter_mut().for_each(|stacks| stacks.learn_state(&code));
    }

    /// Converts more call stacks, if their times are known; returns whether there were any.
    fn more_stacks(&mut self, wanted: &WantedTimes) -> bool {
        let Some(stacks) = &mut self.stacks else { return false };
        stacks.convert(&mut self.output, wanted).unwrap_or_else(|fault| {
            self.faults.insert(fault);
            false
        })
    }

    /// The same of events that rules have kept.
    fn more_of_rules(&mut self, wanted: &WantedTimes) -> bool {
        let Some(rules) = &mut self.rules else { return false };
        rules.convert(&mut self.output, wanted).unwrap_or_else(|fault| {
            self.faults.insert(fault);
            false
        })
    }

    /// Writes more counts, if their times are known; returns whether there were any.
    fn more_counts(&mut self, wanted: &WantedTimes) -> bool {
        let Some(counts) = &mut self.counts else { return false };
        counts.convert(&mut self.output, wanted).unwrap_or_else(|error| {
            self.faults.insert(error.to_string());
            false
        })
    }

    /// The same of context switches.
    fn more_switches(&mut self, wanted: &WantedTimes) -> bool {
        let Some(sched) = &mut self.sched else { return false };
        let filters = (&mut self.filters, &mut self.filtered);
        sched.convert(&mut self.output, wanted, filters).unwrap_or_else(|fault| {
            self.faults.insert(fault);
            false
        })
    }

    /// A part of the trace ends.
    fn end_stacks(&mut self) {
        let ended = self.stacks.as_mut().map_or(Ok(()), |stacks| stacks.end_part(&mut self.output));
        self.faults.extend(ended.err());
        if self.stacks.as_ref().is_some_and(StackFeed::lacks_maps) {
            let fault = "more files with code are mapped than are kept: those of some processes are not in the trace";
            self.faults.insert(fault.to_owned());
        }
        if self.stacks.as_ref().is_some_and(|stacks| stacks.is_throttled) {
            let fault =
                "the kernel has sampled call stacks less often than it was asked to, to keep the machine usable";
            self.faults.insert(fault.to_owned());
        }
    }

    fn failed(&mut self, written: Result<(), WriteError>) {
        self.faults.extend(written.err().map(|error| error.to_string()));
    }

    /// Takes more texts, if all pages are converted that have theirs; returns whether there were any. `is_all`: none will come.
    fn more_texts(&mut self, is_all: bool, wanted: &WantedTimes) -> bool {
        // Those that wait for other reasons will need the texts that are here.
        let Some(texts) = self.texts.as_mut().filter(|texts| texts.until <= wanted.known_until) else { return false };
        texts.advance(is_all).unwrap_or_else(|error| {
            self.faults.insert(format!("texts of system calls are gone: {error}"));
            texts.give_up();
            false
        })
    }

    /// Converts some pages of all CPUs in the order of their begins, so that parts of the trace follow each other; returns
    /// whether there were any.
    fn round(&mut self, runs: &mut Vec<PageRun>, wanted: &WantedTimes) -> bool {
        let until = self.texts.as_ref().map_or(u64::MAX, |texts| texts.until).min(wanted.known_until);
        runs.resize_with(self.cpus.len(), PageRun::default);
        for (cpu, run) in self.cpus.iter().zip(runs.iter_mut()) {
            if let Err(error) = run.fill(&cpu.spool) {
                self.faults.insert(format!("pages of CPU {} are gone: {error}", cpu.spool.cpu));
            }
        }
        self.has_looked_ahead = false;
        let mut is_busy = false;
        while let Some(at) = next_cpu(runs, until) {
            let Some((page, _, behind)) = next_page(runs[at].rest()) else { break };
            self.page((at, page), runs, wanted);
            let used = runs[at].rest().len() - behind.len();
            runs[at].used += used;
            self.cpus[at].spool.used(used);
            is_busy = true;
            if self.output.is_full(at) {
                self.flush(at);
            }
            self.is_done(at);
        }
        for (at, run) in runs.iter().enumerate() {
            let is_held = run.next().is_some_and(|(_, read_at)| read_at > until);
            if (self.cpus[at].spool.waiting() == 0 || is_held) && self.flush(at) {
                self.is_done(at);
            }
        }
        is_busy
    }

    /// Says how far it is, if packets have all events of a CPU. The next snapshot has those of a snapshot, too.
    fn is_done(&self, at: usize) {
        let ConvertedCpu { spool, events, understood, is_newest, .. } = &self.cpus[at];
        if !is_newest && self.output.is_flushed(at) {
            spool.is_done(&SpoolProgress { done: spool.place(), events: *events, understood: *understood });
        }
    }

    /// Whether packets have all events of a CPU now.
    fn flush(&mut self, at: usize) -> bool {
        let flushed = self.output.flush(at);
        self.failed(flushed);
        self.output.is_flushed(at)
    }

    fn page(&mut self, (at, bytes): (usize, &[u8]), runs: &[PageRun], wanted: &WantedTimes) {
        let cpu = self.cpus[at].spool.cpu;
        let page = match Page::read(self.layout, bytes) {
            Ok(page) => page,
            Err(problem) => return self.fault(cpu, &problem),
        };
        let lost = match page.lost {
            LostBefore::None => 0,
            LostBefore::Known(events) => events,
            LostBefore::Some => 1,
        };
        if lost > 0 && self.cpus[at].misses(page.begin, wanted) {
            self.cpus[at].lost += lost;
            let flushed = self.output.loses(at, lost);
            self.failed(flushed);
        }
        for record in page.records() {
            let record = match record {
                Ok(record) => record,
                Err(problem) => return self.fault(cpu, &problem),
            };
            self.cpus[at].last = Some(record.ticks);
            if !self.has_looked_ahead && self.is_of_unknown_thread(record.bytes) {
                self.look_ahead(at, runs);
            }
            if let Err(fault) = self.record(at, record.ticks, record.bytes, wanted) {
                self.fault(cpu, &fault);
            }
        }
    }

    /// Whether a record tells of a thread that an unknown one has made: pages are converted one behind the other, and the record
    /// that tells of that one may be in a page of another CPU, which began later.
    fn is_of_unknown_thread(&self, record: &[u8]) -> bool {
        if !self.catalog.tells_of_threads(record) {
            return false;
        }
        let maker = u32::try_from(record_thread(record)).ok().filter(|maker| *maker != 0);
        maker.is_some_and(|maker| self.threads.process(maker).is_none())
    }

    /// Learns of the threads in the pages of other CPUs that are to be converted now.
    fn look_ahead(&mut self, at: usize, runs: &[PageRun]) {
        self.has_looked_ahead = true;
        let mut ahead = Vec::new();
        for (other, run) in runs.iter().enumerate().filter(|(other, _)| *other != at) {
            let cpu = self.cpus[other].spool.cpu;
            let mut rest = run.rest();
            while let Some((page, _, behind)) = next_page(rest) {
                rest = behind;
                let Ok(page) = Page::read(self.layout, page) else { continue };
                let records = page.records().map_while(Result::ok);
                let telling = records.filter(|record| self.catalog.tells_of_threads(record.bytes));
                ahead.extend(telling.map(|record| (record.ticks, cpu, record.bytes)));
            }
        }
        ahead.sort_by_key(|(ticks, ..)| *ticks);
        // These records have their turn later: until then, nothing that is known changes.
        let mut later = self.threads.clone();
        for (_, cpu, record) in ahead {
            if let Ok(Some(number)) = self.catalog.plan(cpu, record, CallTable::Native, &mut later) {
                self.catalog.plan_of(number).learn(record, cpu, &mut later);
            }
        }
        self.threads.take_unknown(later);
    }

    fn fault(&mut self, cpu: u32, fault: &dyn std::fmt::Display) {
        self.faults.insert(format!("CPU {cpu}: {fault}"));
    }

    fn record(&mut self, at: usize, ticks: u64, bytes: &[u8], wanted: &WantedTimes) -> Result<(), String> {
        let cpu = &mut self.cpus[at];
        let mut unknown = 0;
        let (table, texts) = match &mut self.texts {
            Some(texts) => texts.of(&mut self.catalog, ticks, bytes, &mut unknown),
            None => (CallTable::Native, None),
        };
        let plan = self.catalog.plan(cpu.spool.cpu, bytes, table, &mut self.threads);
        let number = match plan {
            Ok(Some(number)) => number,
            Ok(None) => {
                cpu.understood += 1;
                return Ok(());
            }
            Err(Some(id)) => {
                return Err(format!(
                    "there is an event with the number {id}, which is none of those that are recorded"
                ));
            }
            Err(None) => return Err("an event has no number".to_owned()),
        };
        let plan = self.catalog.plan_of(number);
        let filter = (!self.filters.is_empty()).then(|| self.filters.of_plan(number, plan));
        // Forks tell of threads, also those that the trace does not have.
        let mut is_event = wanted.has(ticks);
        let is_never = filter.is_some_and(|filter| filter.verdict() == Verdict::NeverTrue);
        if !is_event || cpu.is_written(ticks) || is_never {
            plan.learn(bytes, cpu.spool.cpu, &mut self.threads);
            self.filtered += u64::from(is_event && is_never);
            is_event &= !is_never;
        } else {
            let texts = texts.as_ref().unwrap_or(&NO_TEXTS);
            is_event = self.output.event((at, ticks), (number, plan), filter, (bytes, texts), &mut self.threads)?;
            self.unknown_texts += if is_event { unknown } else { 0 };
            self.filtered += u64::from(!is_event);
        }
        cpu.events += u64::from(is_event);
        cpu.understood += 1;
        Ok(())
    }

    /// Ends the trace, which has everything until these ticks. Returns problems, in sentences.
    pub(super) fn finish(
        mut self,
        clock: (&mut TickSource, Option<ClockDescription>),
        until: u64,
        wanted: &WantedTimes,
        summary: &mut KernelSummary,
    ) -> Vec<String> {
        self.end_stacks();
        let told = self.rules.as_mut().map_or(Ok(()), |rules| rules.end(&summary.rules, &mut self.output));
        self.faults.extend(told.err());
        let told = self.counts.as_mut().map_or(Ok(()), |counts| counts.end(&mut self.output, wanted));
        self.failed(told);
        self.sum(summary, wanted);
        let Self { output, cpus, faults, .. } = self;
        let unwritten = output.unwritten();
        let understood: u64 = cpus.iter().map(|cpu| cpu.understood).sum();
        summary.events -= unwritten.min(summary.events);
        summary.unreadable = summary.read.saturating_sub(understood.saturating_sub(unwritten));
        let ended = output.finish(clock, until);
        faults.into_iter().chain(ended.err().map(|error| error.to_string())).collect()
    }
}

/// Tells the next recorder how many events about the state of the system are in packets.
fn told_state(cpus: &[ConvertedCpu], sched: Option<&SchedFeed>) -> impl Fn(u64) {
    let spool =
        cpus.first().filter(|cpu| !cpu.is_newest).map(|cpu| &cpu.spool).or(sched.map(|sched| &sched.spool)).cloned();
    move |events| {
        if let Some(spool) = &spool {
            spool.told_state(events);
        }
    }
}

/// Pages of a CPU that were read from its spool.
#[derive(Debug, Default)]
struct PageRun {
    bytes: Vec<u8>,
    /// Bytes that are converted.
    used: usize,
    /// The spool has more behind it.
    has_more: bool,
}

impl PageRun {
    fn fill(&mut self, spool: &PageSpool) -> std::io::Result<()> {
        self.used = 0;
        let read = spool.peek(RUN, &mut self.bytes);
        if read.is_err() {
            spool.used(self.bytes.len());
            self.bytes.clear();
        }
        self.has_more = spool.waiting() > self.bytes.len() as u64;
        read
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// When the next page begins, and when it was read.
    fn next(&self) -> Option<(u64, u64)> {
        let (page, read_at, _) = next_page(self.rest())?;
        Some((page_begin(page), read_at))
    }
}

/// The CPU with the oldest page; `None`: there is none, it was read later than this, or an older one may come.
fn next_cpu(runs: &[PageRun], known_until: u64) -> Option<usize> {
    let mut oldest: Option<(u64, usize)> = None;
    for (at, run) in runs.iter().enumerate() {
        match run.next() {
            Some((begin, read_at)) if read_at <= known_until && oldest.is_none_or(|(first, _)| begin < first) => {
                oldest = Some((begin, at));
            }
            None if run.has_more => return None,
            _ => {}
        }
    }
    oldest.map(|(_, at)| at)
}
