//! The kernel as a source of a session's events: its ring buffers are read into a spool, and the spool becomes a trace.
//!
//! ```text
//! helper ── open files ──> reader ── pages, as they are ──> spool ──> converter ──> OUTPUT/kernel/cpu_N
//!                          every 20 ms                      memory    at idle priority, at the end at once
//!        ── rings of texts ─┘ ────── texts of calls ──────> spool ───┘
//! ```
//!
//! The reader copies pages, so that the rings have room again; the converter makes events of them when a CPU has nothing else to
//! do. When the session ends, when the spool is long, or when a reader follows the trace, it no longer waits for that.
//!
//! Where tracefs cannot be used, there are no pages: context switches of perf take their place (`perf_sched`).
//!
//! Of a flight recorder, the rings themselves keep the newest events. A snapshot reads them into the spool, which keeps as many for
//! the next snapshot, and makes a trace of it. Rings of texts and call stacks do not overwrite: the reader moves those to spools that
//! keep the newest.
//!
//! The helper has the rings and the memory of the spool open, too: when the recorder is killed, the next one goes on with them.

mod beside;
mod convert;
mod counts;
mod dump;
mod filter;
mod known_maps;
mod listing;
mod marked;
mod output;
mod perf_sched;
mod place;
mod reader;
mod rules;
mod spare;
mod spool;
mod stacks;
mod state;
mod texts;
pub(crate) mod wanted;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

pub(crate) use dump::told_by_iterators;
use kymo_ftrace::format::EventFormat;
use kymo_ftrace::{EventCatalog, PageLayout, ProbeFacts};
use kymo_lane::ClockSource;
pub use kymo_probe::helper::{HELPER_WORD, help, listen};
use kymo_probe::helper::{Helper, HelperProblem, KernelClock, KernelFiles, KernelRequest, KnownEvents, RingFiles};
pub use kymo_probe::probes::ProbeRights;
use kymo_probe::stacks::{STACK_EVENTS_MAX, StackRequest};
pub use listing::{KernelEvent, KernelField, kernel_events, kernel_filter_places};
pub(crate) use perf_sched::MISSING;

use crate::clock::{ClockDescription, TickSource};
use crate::kernel::beside::{BegunBeside, HandedBeside};
use crate::kernel::convert::{Conversion, ConvertedCpu, KernelConverter};
use crate::kernel::counts::{CountSource, CountedQuestion};
use crate::kernel::filter::{AskedOfKernel, EventFilters};
use crate::kernel::perf_sched::SchedFeed;
use crate::kernel::place::{KernelPlace, WrittenBefore};
use crate::kernel::reader::{BesidePages, ReadRequest, RingReader};
use crate::kernel::rules::{AskedRules, RuleControl, RuleFeed, RuleSource};
pub use crate::kernel::rules::{ExplainedRule, RuleProgram, kernel_rule_programs};
use crate::kernel::spool::{PageSpool, SpoolProgress};
use crate::kernel::stacks::{StackFeed, StackSource};
use crate::kernel::state::{SharedHelper, lock};
use crate::kernel::texts::{TextFeed, TextSource};
use crate::kernel::wanted::WantedTimes;
use crate::kernel_filter::KernelFilterPlace;
pub use crate::layout::KERNEL_FOLDER;
use crate::probes::ProbePlan;
use crate::protocol::Keep;
use crate::rule::{RuleOptions, RuleStatus};
use crate::trace::{OutputOptions, live};
use crate::tracepoints::{KernelOptions, KernelSummary, StackOptions, chosen};

/// State that a recording's threads share.
#[derive(Debug, Default)]
struct KernelShared {
    /// The reader reads what is there, and ends.
    is_over: AtomicBool,
    /// The reader has ended.
    is_read: AtomicBool,
    /// Bytes that wait for the converter: pages, and records beside them.
    waiting: AtomicU64,
    /// Snapshots that are being written: they need what is kept.
    snapshots: AtomicU32,
    /// The thread that converts, when it has written the state of the system; 0: it has not.
    converter: AtomicI32,
    /// It converts only while CPUs are idle.
    is_patient: AtomicBool,
    wanted: Mutex<Arc<WantedTimes>>,
    /// The folder that is written now.
    folder: Mutex<PathBuf>,
    summary: Mutex<KernelSummary>,
    problems: Mutex<Vec<String>>,
}

impl KernelShared {
    fn count(&self, change: impl FnOnce(&mut KernelSummary)) {
        change(&mut self.summary.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn summary(&self) -> KernelSummary {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn wanted(&self) -> Arc<WantedTimes> {
        Arc::clone(&self.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wants(&self, wanted: WantedTimes) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(wanted);
    }

    fn writes_to(&self, folder: &Path) {
        let mut known = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != folder {
            folder.clone_into(&mut known);
        }
    }

    fn problem(&self, problem: String) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if problems.len() < 20 && !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

/// A recording of the kernel's events.
#[derive(Debug)]
pub(crate) struct KernelRecording {
    shared: Arc<KernelShared>,
    helper: SharedHelper,
    switches: KernelSwitches,
    requests: Sender<ReadRequest>,
    reader: JoinHandle<()>,
    /// `None`: snapshots convert.
    converter: Option<JoinHandle<KernelConverter>>,
    pace: ConverterPace,
    events: KernelEvents,
    rules: Option<RuleControl>,
    /// The thread that reads counts.
    counts: Option<JoinHandle<()>>,
}

/// How much of a CPU the thread that converts asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConverterPace {
    /// It writes the state of the system.
    Begins,
    /// It waits for an idle CPU.
    Idle,
    /// It runs as most do.
    Usual,
}

/// A description of pages and events, and the memory with the pages.
#[derive(Clone, Debug)]
struct KernelEvents {
    layout: PageLayout,
    /// Whether they are events of the trace, too.
    formats: Vec<(EventFormat, bool)>,
    /// Those of probes, with their facts.
    probes: Vec<(EventFormat, ProbeFacts)>,
    spools: Vec<Arc<PageSpool>>,
    /// Texts of system calls, and their origin.
    texts: Option<TextSource>,
    texts_from: Option<String>,
    stacks: Option<Arc<StackSource>>,
    rules: Option<Arc<RuleSource>>,
    counts: Option<Arc<CountSource>>,
    /// It opens the state of the system.
    helper: SharedHelper,
    /// The texts of filters.
    filters: Vec<String>,
}

/// They turn the ring buffers on and off.
#[derive(Debug)]
struct KernelSwitches(Vec<std::fs::File>);

impl KernelSwitches {
    fn turn(&self, is_on: bool) -> std::io::Result<()> {
        let word: &[u8] = if is_on { b"1" } else { b"0" };
        self.0.iter().try_for_each(|mut switch| std::io::Write::write_all(&mut switch, word))
    }
}

/// How a recording begins.
#[derive(Debug)]
pub(crate) struct KernelBeginning<'a> {
    pub(crate) options: &'a KernelOptions,
    /// Whether the newest events are kept for snapshots.
    pub(crate) keep: Keep,
    /// The session's folder.
    pub(crate) output: &'a Path,
    pub(crate) trace: &'a OutputOptions,
    /// Ticks when the session began.
    pub(crate) earliest: u64,
    pub(crate) wanted: WantedTimes,
    /// The number of the recorder, from 0: those before it were killed.
    pub(crate) recorder: u32,
}

impl KernelBeginning<'_> {
    /// The trace's options, which say where its events are from.
    fn options_of(&self, tracefs_absent: Option<&String>) -> OutputOptions {
        let mut options = self.trace.clone();
        options
            .environment
            .extend(tracefs_absent.map(|why| ("kernel_events".to_owned(), format!("perf: tracefs {why}"))));
        options
    }
}

impl KernelRecording {
    /// Begins to record, or goes on.
    ///
    /// # Errors
    ///
    /// Why not, in sentences.
    pub(crate) fn begin(beginning: &KernelBeginning<'_>, clock: &mut TickSource) -> Result<Self, String> {
        let helper = Helper::connect(&beginning.options.helper).map_err(|problem| told(&problem))?;
        let helper = Arc::new(Mutex::new(helper));
        let asked = ask(&mut lock(&helper), beginning, clock.source());
        let begun = asked.and_then(|asked| Self::begin_with(&helper, asked, beginning, clock));
        match begun {
            Ok((shared, switches, (reader, requests, converter), events, rules)) => {
                let pace = ConverterPace::Begins;
                let counts = events.counts.as_ref().map(|counts| start_counts(&shared, counts)).transpose()?;
                Ok(Self { shared, helper, switches, requests, reader, converter, pace, events, rules, counts })
            }
            Err(why) => {
                let _ = lock(&helper).end();
                Err(why)
            }
        }
    }

    fn begin_with(
        helper: &SharedHelper,
        asked: AskedEvents,
        beginning: &KernelBeginning<'_>,
        clock: &mut TickSource,
    ) -> Result<BegunRecording, String> {
        let AskedEvents {
            files,
            formats,
            events: wanted_events,
            stack_names,
            thread_names,
            tracefs_absent,
            filters,
            rules: asked_rules,
            watches,
        } = asked;
        let KernelFiles { is_resumed, header_page, page_bytes, switches, rings, probes, texts, stacks, .. } = files;
        let rule_files = files.rules;
        let probes = probe_formats(&beginning.options.probes, &probes)?;
        // Perf has no pages.
        let layout = page_layout(&header_page, files.sched.is_none())?;
        let known = (&wanted_events[..], &thread_names[..]);
        let sched = files.sched.map(|files| perf_sched::begin(files, beginning, known, clock.source()));
        let (sched_reader, sched_feed) = sched.transpose()?.unzip();
        let trace = &beginning.options_of(tracefs_absent.as_ref());
        let shared = Arc::new(KernelShared::default());
        let is_flight = beginning.keep == Keep::Newest;
        // What a flight recorder overwrites is no loss.
        let is_limited = beginning.wanted.is_limited || is_flight;
        shared.wants(beginning.wanted.clone().limited(is_limited));
        shared.count(|summary| {
            (summary.classes, summary.probes) = (wanted_events.len() as u64, probes.len() as u64);
            summary.tracefs_absent = tracefs_absent;
            summary.filters = filters;
        });
        let opened = open_spools(&rings)?;
        let first = opened.first().map(|(spool, _)| spool).or(sched_feed.as_ref().map(|feed| &feed.spool)).cloned();
        shared.count(|summary| summary.cpu_ns = first.as_ref().map_or(0, |spool| spool.cost()));
        let spools = opened.iter().map(|(spool, _)| Arc::clone(spool)).collect();
        let has_calls = formats.iter().any(|(format, _)| format.system == "raw_syscalls");
        let kept_bytes = is_flight.then_some(beginning.options.ring_bytes);
        let has_texts = beginning.options.texts || !has_calls;
        let clock_facts = (clock.source(), clock.facts(beginning.earliest).frequency);
        let handed = HandedBeside { texts, stacks: (stacks, stack_names), rules: (rule_files, asked_rules) };
        let begun = beside::begin(handed, (helper, beginning), clock_facts, (&shared, has_texts))?;
        let BegunBeside { texts, texts_from, stacks, rules, control, readers } = begun;
        let counts =
            (!watches.is_empty()).then(|| CountSource::new(watches, helper, clock.source(), (is_flight, is_resumed)));
        let counts = counts.transpose()?.map(Arc::new);
        shared.count(|summary| summary.watches = counts.as_ref().map(|counts| counts.summary()).unwrap_or_default());
        let helper = Arc::clone(helper);
        let filters = beginning.options.filters.clone();
        let events =
            KernelEvents { layout, formats, probes, spools, texts, texts_from, stacks, rules, counts, helper, filters };
        let about = (beginning, trace, is_resumed);
        let converter = (!is_flight).then(|| events.first_converter(about, clock, (opened, first), sched_feed));
        let converter = converter.transpose()?;
        let readers = BesidePages { sched: sched_reader, ..readers };
        let reader = RingReader::new(rings, page_bytes, events.spools.clone(), clock.source(), kept_bytes, readers);
        let switches = KernelSwitches(switches);
        switches.turn(true).map_err(|error| format!("the kernel does not begin to record: {error}"))?;
        let threads = start(&shared, reader, converter, &events.helper)?;
        Ok((shared, switches, threads, events, control))
    }

    /// How far it is.
    pub(crate) fn summary(&self) -> KernelSummary {
        KernelSummary { rules: self.rule_statuses(), ..self.shared.summary() }
    }

    /// Rules that the kernel asks.
    pub(crate) fn rule_statuses(&self) -> Vec<RuleStatus> {
        self.rules.as_ref().map(RuleControl::statuses).unwrap_or_default()
    }

    /// Rules that the kernel asks, with the limits that were set.
    pub(crate) fn rule_options(&self) -> Vec<RuleOptions> {
        self.rules.as_ref().map(RuleControl::options).unwrap_or_default()
    }

    /// The memory of a rule of the kernel, for a program.
    pub(crate) fn shared_rule(&self, name: &str) -> Option<Result<(OwnedFd, [u64; 5]), String>> {
        self.rules.as_ref()?.shared(name)
    }

    /// Sets the limit of a rule of the kernel, in words, or that of one kind; without words it is that of the question again. `None`:
    /// there is no rule of this name.
    pub(crate) fn set_limit(
        &mut self,
        name: &str,
        (kind, limit): (Option<&str>, Option<&str>),
    ) -> Option<Result<(), String>> {
        self.rules.as_mut()?.set_limit(&self.helper, name, (kind, limit))
    }

    /// The times that the session wants, as they are known now. Called about ten times a second.
    pub(crate) fn wants(&mut self, wanted: WantedTimes) {
        self.shared.wants(wanted);
        let (waiting_max, is_usual) = (spare::waiting_max(), self.pace == ConverterPace::Usual);
        let waiting = self.shared.waiting.load(Ordering::Relaxed);
        let folder = self.shared.folder.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // A reader that follows the trace does not wait for an idle CPU, nor does a spool that is long.
        let limit = if is_usual { waiting_max / 8 } else { waiting_max };
        let is_urgent = waiting > limit || live::is_followed(&folder);
        let thread = self.shared.converter.load(Ordering::SeqCst);
        self.pace = match self.pace {
            ConverterPace::Begins | ConverterPace::Usual if thread != 0 && !is_urgent => {
                kymo_probe::priority::idle(thread);
                ConverterPace::Idle
            }
            // If the converter has the helper now, the next call does it.
            ConverterPace::Idle
                if is_urgent && self.helper.try_lock().is_ok_and(|mut helper| usual(&mut helper, thread)) =>
            {
                ConverterPace::Usual
            }
            same => same,
        };
        self.shared.is_patient.store(self.pace == ConverterPace::Idle && !is_urgent, Ordering::SeqCst);
    }

    /// Writes the events that are kept now, of these times, as a trace in a session's folder.
    pub(crate) fn snapshot(
        &self,
        output: &Path,
        trace: &OutputOptions,
        (clock, known): (&mut TickSource, Option<ClockDescription>),
        earliest: u64,
        wanted: &WantedTimes,
    ) -> Result<(KernelSummary, Vec<String>), String> {
        // What is kept now stays until the snapshot has it.
        let _needed = NeededRecords::new(&self.shared);
        let (tell, told) = channel();
        let is_read = self.requests.send(tell).is_ok() && told.recv().is_ok();
        if !is_read {
            return Err("the kernel's events are not read any more".to_owned());
        }
        if let Some(counts) = &self.events.counts {
            counts.read(&self.shared);
        }
        let until = clock.now();
        let before = self.summary();
        let begun_ns = reader::thread_ns();
        self.events.spools.iter().for_each(|spool| spool.rewind());
        let cpus = self.events.spools.iter();
        let cpus = cpus.map(|spool| ConvertedCpu::newest(Arc::clone(spool))).collect();
        let facts = clock.facts(earliest);
        let path = output.join(KERNEL_FOLDER);
        let beside = self.events.beside(TextSource::kept, Default::default())?;
        let before_it = WrittenBefore::default();
        let mut converter = self.events.converter((&path, before_it), trace, (clock, facts), (cpus, beside, None))?;
        converter.dump_state();
        converter.convert_all(wanted);
        let mut summary = KernelSummary { read: 0, ..before.clone() };
        let mut problems = converter.finish((clock, known), until, wanted, &mut summary);
        summary.cpu_ns = before.cpu_ns + (reader::thread_ns() - begun_ns);
        problems.append(&mut self.shared.problems.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((summary, problems))
    }

    /// Ends: all that the kernel has recorded until now is in the trace. Returns problems, in sentences.
    pub(crate) fn end(self, clock: &mut TickSource, known: Option<ClockDescription>) -> (KernelSummary, Vec<String>) {
        let Self { shared, helper, switches, requests, reader, converter, pace, events, rules, counts } = self;
        if let Err(error) = switches.turn(false) {
            shared.problem(format!("the kernel does not stop to record: {error}"));
        }
        if rules.is_some() {
            match lock(&helper).stop_rules() {
                Ok(unasked) => shared.count(|summary| summary.unasked = unasked),
                Err(problem) => shared.problem(format!("rules of the kernel are still asked: {problem}")),
            }
        }
        if counts.is_some()
            && let Err(problem) = lock(&helper).stop_counts()
        {
            shared.problem(format!("the kernel still counts: {problem}"));
        }
        let until = clock.now();
        // Nothing more will be known: the times that were wanted until now count for the rest.
        let wanted = (*shared.wanted()).clone().certain();
        shared.wants(wanted.clone());
        shared.is_over.store(true, Ordering::SeqCst);
        shared.is_patient.store(false, Ordering::SeqCst);
        drop(requests);
        if pace == ConverterPace::Idle {
            usual(&mut lock(&helper), shared.converter.load(Ordering::SeqCst));
        }
        let _ = reader.join();
        // Before the converter ends: the last counts are in the trace.
        counts.into_iter().for_each(|counts| _ = counts.join());
        drop((switches, events));
        if let Some(rules) = rules {
            let rules = rules.statuses();
            shared.count(|summary| summary.rules = rules);
        }
        match converter.map(JoinHandle::join) {
            None => {}
            Some(Ok(converter)) => {
                let mut summary = shared.summary();
                let problems = converter.finish((clock, known), until, &wanted, &mut summary);
                problems.into_iter().for_each(|problem| shared.problem(problem));
                shared.count(|told| *told = summary);
            }
            Some(Err(_)) => {
                shared.problem("events of the kernel could not be converted: that is a fault of kymo".to_owned());
            }
        }
        if let Err(problem) = lock(&helper).end() {
            shared.problem(format!("the kernel's buffer was not removed: {problem}"));
        }
        let problems = std::mem::take(&mut *shared.problems.lock().unwrap_or_else(PoisonError::into_inner));
        (shared.summary(), problems)
    }
}

/// A snapshot needs records that are kept.
struct NeededRecords<'a>(&'a KernelShared);

impl<'a> NeededRecords<'a> {
    fn new(shared: &'a KernelShared) -> Self {
        shared.snapshots.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for NeededRecords<'_> {
    fn drop(&mut self) {
        self.0.snapshots.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Texts, call stacks and events of rules for a converter.
type BesideFeeds = (Option<TextFeed>, Option<StackFeed>, Option<RuleFeed>);

/// By CPU: until which ticks an earlier recorder has written its call stacks, and the events that rules have kept.
type WrittenBeside = (HashMap<u32, u64>, HashMap<u32, u64>);

impl KernelEvents {
    /// What a converter reads beside pages.
    fn beside(
        &self,
        texts: impl Fn(&TextSource) -> io::Result<TextFeed>,
        (stacks_until, rules_until): WrittenBeside,
    ) -> Result<BesideFeeds, String> {
        let texts = self.texts.as_ref().map(texts).transpose();
        let stacks = self.stacks.as_ref().map(|stacks| stacks.feed(stacks_until)).transpose();
        let rules = self.rules.as_ref().map(|rules| rules.feed(rules_until)).transpose();
        texts.and_then(|texts| Ok((texts, stacks?, rules?))).map_err(|error| format!("records cannot be read: {error}"))
    }

    /// Begins the trace of a recording, or goes on where an earlier recorder was killed.
    fn first_converter(
        &self,
        (beginning, trace, is_resumed): (&KernelBeginning<'_>, &OutputOptions, bool),
        clock: &mut TickSource,
        (opened, first): (OpenedSpools, Option<Arc<PageSpool>>),
        mut sched: Option<SchedFeed>,
    ) -> Result<KernelConverter, String> {
        let facts = clock.facts(beginning.earliest);
        let mut place = match beginning.recorder {
            0 => KernelPlace::new(beginning.output),
            _ => KernelPlace::behind(beginning.output, trace).map_err(|error| error.to_string())?,
        };
        place.before.state_events = first.map_or(0, |spool| spool.state_events());
        let cpus = opened.into_iter().map(|(spool, progress)| {
            let until = place.written_until(spool.ring, spool.cpu).filter(|_| is_resumed);
            ConvertedCpu::new(spool, progress, until.map(|cycles| cycles + facts.base))
        });
        let cpus = cpus.collect();
        sched.iter_mut().for_each(|feed| feed.goes_on(&place, facts.base));
        let stacks_until = place.stacks_written_until(facts.base).filter(|_| is_resumed).collect();
        let rules_until = place.rules_written_until(facts.base).filter(|_| is_resumed).collect();
        let beside = self.beside(TextSource::feed, (stacks_until, rules_until))?;
        self.converter((&place.path, place.before), trace, (clock, facts), (cpus, beside, sched))
    }

    /// Begins a trace of the pages.
    fn converter(
        &self,
        (path, before): (&Path, WrittenBefore),
        options: &OutputOptions,
        clock: (&TickSource, ClockDescription),
        (cpus, (texts, stacks, rules), sched): (Vec<ConvertedCpu>, BesideFeeds, Option<SchedFeed>),
    ) -> Result<KernelConverter, String> {
        let mut catalog = EventCatalog::default();
        self.formats.iter().for_each(|(format, is_wanted)| catalog.add(format.clone(), *is_wanted));
        self.probes.iter().for_each(|(format, facts)| catalog.add_probe(format, facts));
        let texts = (texts, self.texts_from.clone());
        let mut options = options.clone();
        options.environment.extend(self.rules.as_ref().map(|rules| rules.environment()));
        let options = &options;
        let (layout, helper, filters) = (self.layout, Arc::clone(&self.helper), EventFilters::parse(&self.filters)?);
        let conversion = Conversion {
            path,
            options,
            clock,
            catalog,
            layout,
            cpus,
            before,
            texts,
            stacks,
            sched,
            rules,
            counts: self.counts.as_ref().map(CountSource::feed),
            helper,
            filters,
        };
        KernelConverter::create(conversion).map_err(|error| error.to_string())
    }
}

/// The layout of pages, if there are some.
fn page_layout(header_page: &str, has_pages: bool) -> Result<PageLayout, String> {
    let layout = has_pages.then(|| PageLayout::parse(header_page)).transpose();
    Ok(layout.map_err(|problem| problem.to_string())?.unwrap_or_default())
}

/// Memory for pages, and how far a recorder before this one was.
type OpenedSpools = Vec<(Arc<PageSpool>, SpoolProgress)>;

/// Memory for the pages of rings, and how far a recorder before this one was.
fn open_spools(rings: &[RingFiles]) -> Result<OpenedSpools, String> {
    let spools = rings.iter().map(|ring| PageSpool::open((ring.number, ring.cpu.cpu), ring.spool.try_clone()?));
    let opened: Result<_, std::io::Error> = spools.collect();
    opened.map_err(|error| format!("there is no memory for the kernel's events: {error}"))
}

/// Lets the thread that converts run as most do, with the helper's rights if this process has none; whether that is done.
fn usual(helper: &mut Helper, thread: i32) -> bool {
    kymo_probe::priority::usual(thread).is_ok() || helper.usual(thread.unsigned_abs()).is_ok()
}

/// Descriptions of the events of probes, with their facts.
fn probe_formats(plan: &ProbePlan, probes: &[(String, String)]) -> Result<Vec<(EventFormat, ProbeFacts)>, String> {
    let of = |(event, text): &(String, String)| {
        let format = EventFormat::parse("", text)
            .map_err(|problem| format!("the kernel's description of the probe {event} cannot be read: {problem}"))?;
        Ok((format, plan.facts(event)))
    };
    probes.iter().map(of).collect()
}

/// What the helper has set up.
struct AskedEvents {
    files: KernelFiles,
    /// Descriptions of events, and whether those are wanted.
    formats: Vec<(EventFormat, bool)>,
    /// Names of the wanted events, as `SYSTEM:NAME`, and those of events with call stacks.
    events: Vec<String>,
    stack_names: Vec<String>,
    /// Names of threads, where tracefs cannot be used.
    thread_names: Vec<(i32, Vec<u8>)>,
    /// What is missing as tracefs cannot be used, and why.
    tracefs_absent: Option<String>,
    /// Where filters run.
    filters: Vec<KernelFilterPlace>,
    rules: AskedRules,
    watches: Vec<CountedQuestion>,
}

/// Has the helper set up the events that a session wants.
fn ask(helper: &mut Helper, beginning: &KernelBeginning<'_>, source: ClockSource) -> Result<AskedEvents, String> {
    let options = beginning.options;
    let known = helper.events().map_err(|problem| told(&problem))?;
    let is_of_perf = known.tracefs_absent.is_some();
    let rules = asked_rules(helper, options, &known)?;
    let watches = counts::asked(&options.watches, &known)?;
    let mut events = match is_of_perf {
        _ if options.events.is_empty() && !rules.requests.is_empty() => Vec::new(),
        true => perf_sched::chosen_of_perf(beginning, &known)?,
        false => chosen(&options.events, &known.events)?,
    };
    events.retain(|event| !rules.ruled.contains(event));
    let clock = match source {
        ClockSource::Counter => KernelClock::Counter,
        ClockSource::Monotonic => KernelClock::Monotonic,
    };
    let mut filters = asked_filters(helper, options, (&events, is_of_perf))?;
    // Rules alone may be about all of them.
    let events = if events.is_empty() { events } else { filters.kept(events)? };
    let wants_new_tasks = events.iter().any(|event| event == NEW_TASK);
    let mut asked = events.clone();
    // Forks do not tell of the process of a new thread: this does.
    if !is_of_perf && !wants_new_tasks && asked.iter().any(|event| event == "sched:sched_process_fork") {
        asked.push(NEW_TASK.to_owned());
    }
    let probes = options.probes.requests.clone();
    let processes = options.scope.as_ref().map(|scope| scope.processes.clone());
    let texts = options.texts;
    let stacks = options.stacks.as_ref().map(|stacks| match &known.tracefs_absent {
        Some(why) => perf_sched::samples(stacks, why),
        None => stack_request(stacks, &known.events),
    });
    let stacks = stacks.transpose()?;
    let name = |event: &String| event.split_once(':').map_or("", |(_, name)| name).to_owned();
    let names = stacks.iter().flat_map(|stacks| stacks.events.iter().map(name));
    let names = std::iter::once(SAMPLE.to_owned()).chain(names).collect();
    let ring_bytes = options.ring_bytes;
    let conditions = std::mem::take(&mut filters.filters);
    let request = KernelRequest {
        events: asked,
        clock,
        ring_bytes,
        processes,
        probes,
        texts,
        stacks,
        filters: conditions,
        rules: rules.requests.clone(),
        watches: watches.iter().map(|question| question.request.clone()).collect(),
    };
    let thread_names = if is_of_perf { perf_sched::names() } else { Vec::new() };
    let files = helper.begin(&request).map_err(|problem| told(&problem))?;
    let is_wanted = |format: &EventFormat| wants_new_tasks || format.name != "task_newtask";
    let formats = described(&files.formats)?.into_iter().map(|format| {
        let is_wanted = is_wanted(&format);
        (format, is_wanted)
    });
    let formats = formats.collect();
    let tracefs_absent = known.tracefs_absent.as_deref().map(perf_sched::missing);
    filters.refused(&files.unfiltered);
    let filters = filters.places;
    let stack_names = names;
    Ok(AskedEvents { files, formats, events, stack_names, thread_names, tracefs_absent, filters, rules, watches })
}

/// The kernel's descriptions of events, by their subsystems.
fn described(formats: &[(String, String)]) -> Result<Vec<EventFormat>, String> {
    let read = |(system, text): &(String, String)| {
        EventFormat::parse(system, text)
            .map_err(|problem| format!("the kernel's description of an event of {system} cannot be read: {problem}"))
    };
    formats.iter().map(read).collect()
}

/// Conditions for the kernel, and where filters run.
fn asked_filters(
    helper: &mut Helper,
    options: &KernelOptions,
    (events, is_of_perf): (&[String], bool),
) -> Result<AskedOfKernel, String> {
    if options.filters.is_empty() {
        return Ok(AskedOfKernel::default());
    }
    let formats = (!is_of_perf).then(|| helper.formats(events).map_err(|problem| told(&problem)));
    let formats = formats.transpose()?.map(|formats| described(&formats)).transpose()?;
    filter::asked(&options.filters, formats.as_deref(), (options.texts, !options.probes.requests.is_empty()))
}

/// The meaning of rules for the events of this kernel.
fn asked_rules(helper: &mut Helper, options: &KernelOptions, known: &KnownEvents) -> Result<AskedRules, String> {
    let is_of_perf = known.tracefs_absent.is_some();
    let calls = || match is_of_perf {
        // Their arguments are numbers without names then.
        true => Ok(Vec::new()),
        false => {
            let formats = helper.formats(&["raw_syscalls:sys_exit".to_owned()]).map_err(|problem| told(&problem))?;
            described(&formats)
        }
    };
    rules::asked(&options.rules, (!is_of_perf).then_some(&known.events[..]), calls)
}

/// The request for call stacks of options, where the kernel has these events.
fn stack_request(options: &StackOptions, known: &[String]) -> Result<StackRequest, String> {
    let none = options.events.is_empty();
    let events = if none { Vec::new() } else { chosen(&options.events, known)? };
    if events.len() > STACK_EVENTS_MAX {
        return Err(format!(
            "call stacks of {} events are wanted; at most {STACK_EVENTS_MAX} can have them",
            events.len()
        ));
    }
    Ok(StackRequest { hz: options.hz, events })
}

/// The state of the threads, the switches, the threads, the events that they read, and the rules.
type BegunRecording = (Arc<KernelShared>, KernelSwitches, StartedThreads, KernelEvents, Option<RuleControl>);

/// Threads of a recording.
type StartedThreads = (JoinHandle<()>, Sender<ReadRequest>, Option<JoinHandle<KernelConverter>>);

fn start(
    shared: &Arc<KernelShared>,
    reader: RingReader,
    converter: Option<KernelConverter>,
    helper: &SharedHelper,
) -> Result<StartedThreads, String> {
    let (for_reader, for_converter) = (Arc::clone(shared), Arc::clone(shared));
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    let ((tell, told_thread), (requests, asked)) = (channel(), channel());
    let read = move || {
        let _ = tell.send(rustix::thread::gettid());
        reader.run(&for_reader, &asked);
    };
    let reader = thread("kymo-kernel").spawn(read);
    let reader = reader.map_err(|error| format!("no thread can be started: {error}"))?;
    let convert = |converter: KernelConverter| thread("kymo-converts").spawn(move || converter.run(&for_converter));
    let converter = converter.map(convert).transpose().map_err(|error| {
        shared.is_over.store(true, Ordering::SeqCst);
        format!("no thread can be started: {error}")
    })?;
    // Where the helper has no right to do that, the reader has its turns as others do.
    if let Ok(thread) = told_thread.recv() {
        let _ = lock(helper).hurry(thread.as_raw_nonzero().get().unsigned_abs());
    }
    Ok((reader, requests, converter))
}

/// A thread that reads counts.
fn start_counts(shared: &Arc<KernelShared>, counts: &Arc<CountSource>) -> Result<JoinHandle<()>, String> {
    let (shared, counts) = (Arc::clone(shared), Arc::clone(counts));
    let thread = std::thread::Builder::new().name("kymo-counts".to_owned()).spawn(move || counts.run(&shared));
    thread.map_err(|error| format!("no thread can be started: {error}"))
}

/// Why the helper has not done it, and a remedy.
fn told(problem: &HelperProblem) -> String {
    let help = match problem {
        HelperProblem::Forbidden(_) => {
            "\nhelp: `sudo kymo record --kernel` has a helper set up the kernel's buffers as root, and does everything else as you"
        }
        _ => "",
    };
    format!("{problem}{help}")
}

/// The clock of the kernel's events: that of programs, where the kernel has it.
pub(crate) fn kernel_source() -> ClockSource {
    if cfg!(target_arch = "x86_64") { kymo_tracer::usual_source() } else { ClockSource::Monotonic }
}

/// Removes the folder of a recording that could not begin.
pub(crate) fn discard(output: &Path) {
    let _ = std::fs::remove_dir_all(output.join(KERNEL_FOLDER));
    // If nothing else is there.
    let _ = std::fs::remove_dir(output);
}

/// The event of call stacks of samples.
const SAMPLE: &str = "sample";
/// Tells of new threads, with their flags.
const NEW_TASK: &str = "task:task_newtask";
