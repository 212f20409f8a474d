//! Makes a trace of the spool: a stream for each CPU, with LTTng's names.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kymo_format::model::EventRecordClass;
use kymo_ftrace::{EVENT_HEAD_BYTES, EventCatalog, KernelThreads, LostBefore, Page, PageLayout, RecordContext};
use kymo_lane::ClockSource;
use kymo_schema::field::{DefinedField, FieldType, IntegerType, ScalarType};
use kymo_units::Uuid;
use kymo_writer::{EnvironmentValue, HEAD_BYTES, RawOptions, RawPacket, RawStream, RawTrace, WriteError};

use crate::clock::{ClockDescription, TickSource};
use crate::kernel::dump::StateEvent;
use crate::kernel::reader::{hurry, idle, thread_ns};
use crate::kernel::spool::PageSpool;
use crate::kernel::{KernelShared, dump};
use crate::trace::chunk::raw_clock;
use crate::trace::journal::beginning;
use crate::trace::{OutputOptions, live};

/// Bytes of a packet before its events: the head, and the number of the CPU.
const BEFORE: usize = HEAD_BYTES + 4;
/// A packet has about so many bytes.
const PACKET: usize = 64 << 10;
/// Bytes of the spool that are converted before the next CPU's.
const TURN: usize = 1 << 20;
/// Between two looks at a spool that has nothing.
const LOOK: Duration = Duration::from_millis(20);
/// Between two words to readers that follow the trace.
const SAID: Duration = Duration::from_millis(100);
/// Bytes that may wait for an idle CPU.
const WAITING_MAX: u64 = 32 << 20;
/// The only class of streams.
const STREAM_CLASS: u32 = 0;

/// Converts pages.
#[derive(Debug)]
pub(super) struct KernelConverter {
    trace: RawTrace,
    catalog: EventCatalog,
    layout: PageLayout,
    threads: KernelThreads,
    source: ClockSource,
    facts: ClockDescription,
    /// Ids in the trace, by the plan of the event.
    ids: Vec<Option<u16>>,
    /// Those of the state of the system, by name.
    named: HashMap<&'static str, u16>,
    next_id: u16,
    streams: Vec<CpuStream>,
    /// The state of the system at the beginning.
    dump: Option<CpuStream>,
    spools: Vec<Arc<PageSpool>>,
    session: Option<PathBuf>,
    counts: ConvertCounts,
    faults: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ConvertCounts {
    events: u64,
    /// Events about the state of the system.
    state_events: u64,
    /// Records that became events, or needed not.
    understood: u64,
}

/// The stream of a CPU.
#[derive(Debug)]
struct CpuStream {
    cpu: u32,
    raw: RawStream,
    /// The packet that is made now.
    bytes: Vec<u8>,
    begin: u64,
    end: u64,
    events: u64,
    /// Events that were lost, and packets that tell it.
    discarded: u64,
    /// Events that could not be written.
    unwritten: u64,
}

impl KernelConverter {
    pub(super) fn create(
        path: &Path,
        options: &OutputOptions,
        (clock, facts): (&TickSource, ClockDescription),
        (catalog, layout): (EventCatalog, PageLayout),
        spools: Vec<Arc<PageSpool>>,
    ) -> Result<Self, WriteError> {
        let head = beginning(path, options, clock, facts)?;
        let mut trace = RawTrace::create(
            path,
            RawOptions {
                format: options.format,
                uuid: Uuid(head.uuid),
                clock: raw_clock(clock.source(), &facts),
                environment: environment(head.environment()),
                packet_fields: vec![DefinedField {
                    name: "cpu_id".to_owned(),
                    kind: FieldType::Scalar(ScalarType::Integer(IntegerType::unsigned(4))),
                }],
                // Other users' threads are in it.
                is_private: true,
            },
        )?;
        trace.stream_class(&[])?;
        live::begin(path, options.session.as_deref());
        let streams = spools.iter().enumerate();
        let streams =
            streams.map(|(number, spool)| CpuStream::new(&trace, &format!("cpu_{}", spool.cpu), spool.cpu, number));
        Ok(Self {
            streams: streams.collect(),
            dump: None,
            trace,
            catalog,
            layout,
            threads: KernelThreads::default(),
            source: clock.source(),
            facts,
            ids: Vec::new(),
            named: HashMap::new(),
            next_id: 0,
            spools,
            session: options.session.clone(),
            counts: ConvertCounts::default(),
            faults: BTreeSet::new(),
        })
    }

    /// Writes the state of the system, as of now.
    fn dump_state(&mut self) {
        let number = self.streams.len();
        let mut stream = CpuStream::new(&self.trace, "state", 0, number);
        let at = crate::clock::ticks(self.source).saturating_sub(self.facts.base);
        let mut threads = std::mem::take(&mut self.threads);
        let mut error = None;
        dump::tell(
            |thread| threads.knows(thread.tid, thread.pid),
            |event| {
                let written = self.state_event(&mut stream, at, event);
                error = written.err().or(error.take());
            },
        );
        self.threads = threads;
        error = stream.flush().err().or(error);
        self.faults.extend(error.map(|error| error.to_string()));
        self.dump = Some(stream);
    }

    fn state_event(&mut self, stream: &mut CpuStream, at: u64, event: StateEvent) -> Result<(), WriteError> {
        let id = self.class(event.name, event.payload)?;
        let head = [&id.to_le_bytes()[..], &(at as u32).to_le_bytes()].concat();
        let written = stream.add(at, |into| {
            into.extend_from_slice(&head);
            into.extend_from_slice(&event.bytes);
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = written;
        self.counts.state_events += 1;
        stream.flush_if(PACKET)
    }

    /// The id of an event that is written by its name; known ones are not added again.
    fn class(&mut self, name: &'static str, payload: kymo_format::model::FieldClass) -> Result<u16, WriteError> {
        if let Some(id) = self.named.get(name) {
            return Ok(*id);
        }
        let id = self.say(name.to_owned(), payload)?;
        self.named.insert(name, id);
        Ok(id)
    }

    fn say(&mut self, name: String, payload: kymo_format::model::FieldClass) -> Result<u16, WriteError> {
        let id = self.next_id;
        let class = EventRecordClass {
            id: id.into(),
            namespace: None,
            name: Some(name),
            uid: None,
            log_level: None,
            emf_uri: None,
            specific_context: None,
            payload: Some(payload),
            attributes: None,
        };
        self.trace.event_record_class(STREAM_CLASS, class)?;
        self.next_id += 1;
        Ok(id)
    }

    /// Converts until the reader has ended and nothing waits.
    pub(super) fn run(mut self, shared: &KernelShared) -> Self {
        self.dump_state();
        let thread = idle();
        shared.converter.store(thread, Ordering::SeqCst);
        // The end may have come before: then it did not know this thread.
        if shared.is_over.load(Ordering::SeqCst) {
            hurry(thread);
        }
        let mut pages = Vec::new();
        let (mut cpu_ns, mut is_idle, mut said) = (0, true, Instant::now());
        loop {
            let is_read = shared.is_read.load(Ordering::Acquire);
            let began = std::time::SystemTime::now();
            let mut is_busy = false;
            for at in 0..self.spools.len() {
                is_busy |= self.turn(at, &mut pages);
            }
            let waiting: u64 = self.spools.iter().map(|spool| spool.waiting()).sum();
            let now_ns = thread_ns();
            let more_ns = now_ns - std::mem::replace(&mut cpu_ns, now_ns);
            let (events, bytes) = (self.counts.events, self.bytes());
            shared.count(|summary| {
                (summary.events, summary.bytes, summary.cpu_ns) = (events, bytes, summary.cpu_ns + more_ns);
            });
            std::mem::take(&mut self.faults).into_iter().for_each(|fault| shared.problem(fault));
            if !is_busy && is_read && waiting == 0 {
                return self;
            }
            if is_idle && waiting > WAITING_MAX {
                hurry(thread);
                is_idle = false;
            }
            if !is_busy {
                if said.elapsed() >= SAID {
                    said = Instant::now();
                    live::say(self.trace.path(), true, Some(began), self.session.as_deref());
                }
                std::thread::sleep(LOOK);
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.trace.metadata_bytes()
            + self.streams.iter().chain(&self.dump).map(|stream| stream.raw.bytes()).sum::<u64>()
    }

    /// Converts some of a CPU's pages; returns whether there were any.
    fn turn(&mut self, at: usize, pages: &mut Vec<u8>) -> bool {
        let spool = Arc::clone(&self.spools[at]);
        if let Err(error) = spool.peek(TURN, pages) {
            self.faults.insert(format!("pages of CPU {} are gone: {error}", spool.cpu));
            spool.used(pages.len());
            return !pages.is_empty();
        }
        let mut rest = &pages[..];
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let Some((page, behind)) = behind.split_at_checked(u32::from_le_bytes(*length) as usize) else { break };
            self.page(at, page);
            rest = behind;
        }
        let used = pages.len() - rest.len();
        spool.used(used);
        if spool.waiting() == 0
            && let Err(error) = self.streams[at].flush()
        {
            self.faults.insert(error.to_string());
        }
        used > 0
    }

    fn page(&mut self, at: usize, bytes: &[u8]) {
        let cpu = self.streams[at].cpu;
        let page = match Page::read(self.layout, bytes) {
            Ok(page) => page,
            Err(problem) => return self.fault(cpu, &problem),
        };
        let lost = match page.lost {
            LostBefore::None => 0,
            LostBefore::Known(events) => events,
            LostBefore::Some => 1,
        };
        if lost > 0 {
            // They were lost between this packet and the next.
            self.flush(at);
            self.streams[at].discarded += lost;
        }
        for record in page.records() {
            let record = match record {
                Ok(record) => record,
                Err(problem) => return self.fault(cpu, &problem),
            };
            if let Err(fault) = self.record(at, cpu, record.ticks, record.bytes) {
                self.fault(cpu, &fault);
            }
        }
        if self.streams[at].bytes.len() >= PACKET {
            self.flush(at);
        }
    }

    fn fault(&mut self, cpu: u32, fault: &dyn std::fmt::Display) {
        self.faults.insert(format!("CPU {cpu}: {fault}"));
    }

    fn record(&mut self, at: usize, cpu: u32, ticks: u64, bytes: &[u8]) -> Result<(), String> {
        let plan = self.catalog.plan(cpu, bytes, &mut self.threads);
        let number = match plan {
            Ok(Some(number)) => number,
            Ok(None) => {
                self.counts.understood += 1;
                return Ok(());
            }
            Err(Some(id)) => {
                return Err(format!(
                    "there is an event with the number {id}, which is none of those that are recorded"
                ));
            }
            Err(None) => return Err("an event has no number".to_owned()),
        };
        let id = match self.ids.get(usize::from(number)).copied().flatten() {
            Some(id) => id,
            None => {
                let plan = self.catalog.plan_of(number);
                let (name, payload) = (plan.name.clone(), plan.payload.clone());
                let id = self.say(name, payload).map_err(|error| error.to_string())?;
                if self.ids.len() <= usize::from(number) {
                    self.ids.resize(usize::from(number) + 1, None);
                }
                self.ids[usize::from(number)] = Some(id);
                id
            }
        };
        let stream = &mut self.streams[at];
        // Readers refuse a data stream whose time steps back: an earlier time in a damaged page becomes the last one.
        let cycles = ticks.saturating_sub(self.facts.base).max(stream.last());
        if stream.is_far(cycles) {
            stream.flush().map_err(|error| error.to_string())?;
        }
        let plan = self.catalog.plan_of(number);
        let mut context = RecordContext { cpu, threads: &mut self.threads };
        stream
            .add(cycles, |into| plan.write((id, cycles), bytes, &mut context, into))
            .map_err(|problem| format!("{}: {problem}", plan.name))?;
        self.counts.events += 1;
        self.counts.understood += 1;
        Ok(())
    }

    fn flush(&mut self, at: usize) {
        let stream = &mut self.streams[at];
        if let Err(error) = stream.flush() {
            self.faults.insert(error.to_string());
        }
    }

    /// Ends the trace, which has everything until these ticks.
    pub(super) fn finish(mut self, clock: &mut TickSource, until: u64, shared: &KernelShared) {
        let until = until.saturating_sub(self.facts.base);
        for at in 0..self.streams.len() {
            self.flush(at);
            if let Err(error) = self.streams[at].end(until) {
                self.faults.insert(error.to_string());
            }
        }
        let better = clock.facts(self.facts.base);
        if let Err(error) = self.trace.say_clock(&raw_clock(clock.source(), &better)) {
            self.faults.insert(error.to_string());
        }
        let (events, bytes, understood) = (self.counts.events, self.bytes(), self.counts.understood);
        let unwritten: u64 = self.streams.iter().map(|stream| stream.unwritten).sum();
        shared.count(|summary| {
            (summary.events, summary.bytes) = (events - unwritten, bytes);
            summary.unreadable = summary.read.saturating_sub(understood - unwritten);
        });
        self.faults.into_iter().for_each(|fault| shared.problem(fault));
        let path = self.trace.path().to_owned();
        self.streams.into_iter().chain(self.dump).for_each(|stream| stream.raw.close());
        live::say(&path, false, None, None);
    }
}

impl CpuStream {
    fn new(trace: &RawTrace, name: &str, cpu: u32, number: usize) -> Self {
        let raw = trace.stream(name, STREAM_CLASS, number as u64);
        let (bytes, begin, end, events, discarded, unwritten) = Default::default();
        Self { cpu, raw, bytes, begin, end, events, discarded, unwritten }
    }

    /// When its last event was.
    fn last(&self) -> u64 {
        if self.events > 0 { self.end } else { self.raw.end() }
    }

    /// The lower half of the time of an event would not tell how much later it is.
    fn is_far(&self, cycles: u64) -> bool {
        self.events > 0 && cycles.wrapping_sub(self.end) > u64::from(u32::MAX)
    }

    /// Adds an event.
    fn add<E>(&mut self, cycles: u64, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        if self.events == 0 {
            self.bytes.clear();
            self.bytes.resize(BEFORE, 0);
            self.begin = cycles.max(self.raw.end());
        }
        write(&mut self.bytes)?;
        self.end = cycles.max(self.begin);
        self.events += 1;
        Ok(())
    }

    fn flush_if(&mut self, bytes: usize) -> Result<(), WriteError> {
        if self.bytes.len() >= bytes { self.flush() } else { Ok(()) }
    }

    /// Writes the packet.
    fn flush(&mut self) -> Result<(), WriteError> {
        let events = std::mem::take(&mut self.events);
        if events == 0 {
            return Ok(());
        }
        debug_assert!(self.bytes.len() >= BEFORE + EVENT_HEAD_BYTES, "an event has a head");
        let (begin, end) = (self.begin, self.end);
        let written = self.put(begin, end);
        if written.is_err() {
            self.unwritten += events;
            self.discarded += events;
        }
        written
    }

    fn put(&mut self, begin: u64, end: u64) -> Result<(), WriteError> {
        self.bytes[HEAD_BYTES..BEFORE].copy_from_slice(&self.cpu.to_le_bytes());
        let packet = RawPacket { begin, end, discarded: self.discarded, missing: 0, padding: 0 };
        self.raw.packet(&mut self.bytes, &packet)
    }

    /// Tells that there is nothing up to this time.
    fn end(&mut self, until: u64) -> Result<(), WriteError> {
        if self.raw.bytes() == 0 && self.discarded == 0 {
            return Ok(());
        }
        let begin = self.raw.end();
        self.bytes.clear();
        self.bytes.resize(BEFORE, 0);
        self.put(begin, until.max(begin))
    }
}

/// The environment as LTTng's kernel tracer writes it: Trace Compass chooses its analyses by that.
fn environment(own: Vec<(String, EnvironmentValue)>) -> Vec<(String, EnvironmentValue)> {
    let lttng: HashMap<&str, EnvironmentValue> = HashMap::from([
        ("domain", EnvironmentValue::Text("kernel".to_owned())),
        ("tracer_name", EnvironmentValue::Text("lttng-modules".to_owned())),
        ("tracer_major", EnvironmentValue::Integer(2)),
        ("tracer_minor", EnvironmentValue::Integer(13)),
        ("tracer_patchlevel", EnvironmentValue::Integer(0)),
    ]);
    let recorded_by =
        ("recorded_by".to_owned(), EnvironmentValue::Text(concat!("kymo ", env!("CARGO_PKG_VERSION")).to_owned()));
    let own = own.into_iter().map(|(name, value)| {
        let value = lttng.get(name.as_str()).cloned().unwrap_or(value);
        (name, value)
    });
    own.chain([recorded_by]).collect()
}
