//! The trace of the kernel's events: a stream for each CPU, and one for the state of the system when it begins.
//!
//! ```text
//! OUTPUT/kernel/cpu_0 cpu_1 ... state          a session
//! OUTPUT/kernel/000001/ 000002/ ...            a session that rotates: chunks, each with the state when it begins
//! OUTPUT/kernel-2/                             its recorder was killed: the rest
//! ```

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use kymo_filter::Verdict;
use kymo_format::model::{EventRecordClass, FieldClass};
use kymo_ftrace::fields::FieldList;
use kymo_ftrace::perf_sched::SchedEvent;
use kymo_ftrace::texts::KnownTexts;
use kymo_ftrace::{
    EVENT_HEAD_BYTES, EventPlan, KernelThreads, PlanNumber, RecordContext, UnreadableRecord, record_thread,
};
use kymo_schema::field::{DefinedField, FieldType, IntegerType, ScalarType};
use kymo_units::Uuid;
use kymo_writer::{EnvironmentValue, HEAD_BYTES, RawOptions, RawPacket, RawStream, RawTrace, WriteError};

use crate::clock::{ClockDescription, TickSource};
use crate::kernel::dump::{self, CodeMap, StateEvent};
use crate::kernel::filter::{BoundFilters, RecordedRecord};
use crate::kernel::place::WrittenBefore;
use crate::kernel::state::{SharedHelper, StateOrigin, StateSource};
use crate::layout::{COUNT_STREAM, STATE_STREAM, cpu_stream, rule_stream, stack_stream};
use crate::trace::chunk::raw_clock;
use crate::trace::journal::beginning;
use crate::trace::{OutputOptions, live};
use crate::watch::events::{CountEvent, count_class};

/// Bytes of a packet before its events: the head, and the number of the CPU.
const BEFORE: usize = HEAD_BYTES + 4;
/// A packet has about so many bytes.
pub(super) const PACKET: usize = 64 << 10;
/// The only class of streams.
const STREAM_CLASS: u32 = 0;
/// The trace, with its chunks.
#[derive(Debug)]
pub(super) struct KernelOutput {
    path: PathBuf,
    options: OutputOptions,
    clock: TickSource,
    facts: ClockDescription,
    /// The streams: which of a CPU's ring buffers, and which CPU.
    cpus: Vec<(u8, u32)>,
    chunk: KernelChunk,
    number: u64,
    begun: Instant,
    /// Complete chunks that are there, and the bytes of all complete ones.
    chunks: VecDeque<(PathBuf, u64)>,
    bytes_before: u64,
    /// The origin of texts of system calls.
    texts: Option<String>,
    /// It opens the state of the system. That of the chunk, until it is written, and where it was from.
    helper: SharedHelper,
    state: Option<StateSource>,
    state_origin: StateOrigin,
    /// Events about the state of the system, and those that could not be written.
    state_events: u64,
    unwritten: u64,
    /// The state has the build ids of files with code.
    pub(super) has_build_ids: bool,
    /// Files with code that the state has told, by process: as long as they are wanted.
    pub(super) code: Vec<(u32, CodeMap)>,
}

/// A trace of its own.
#[derive(Debug)]
struct KernelChunk {
    trace: RawTrace,
    /// Ids of events by their plans, and those of other events by name and variant.
    ids: Vec<Option<u16>>,
    named: HashMap<(&'static str, u8), u16>,
    next_id: u16,
    streams: Vec<CpuStream>,
    state: CpuStream,
    /// Those beside the pages, by kind and CPU.
    beside: BTreeMap<(BesideStream, u32), CpuStream>,
    /// Ids of events that rules have kept.
    ruled: HashMap<RuleEventKey, u16>,
    /// Ids of events that tell counts, by question.
    counted: HashMap<(usize, CountEvent), u16>,
}

/// A kind of streams beside those of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BesideStream {
    Stacks,
    Rules,
    Counts,
}

/// An event that a rule has kept: those with the same have one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RuleEventKey {
    pub(super) rule: u16,
    pub(super) event: u16,
    /// The number of the system call.
    pub(super) call: Option<u64>,
    /// It is known how long it took.
    pub(super) is_timed: bool,
}

/// Why an event was not added.
enum NotAdded {
    Unreadable(UnreadableRecord),
    /// A filter does not keep it.
    Filtered,
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

impl KernelOutput {
    /// Begins it in a folder, with the state of the system.
    pub(super) fn create(
        path: &Path,
        options: &OutputOptions,
        (clock, facts): (&TickSource, ClockDescription),
        cpus: Vec<(u8, u32)>,
        (before, texts, helper): (WrittenBefore, Option<String>, SharedHelper),
    ) -> Result<Self, WriteError> {
        let WrittenBefore { chunk: number, chunks, bytes, state_events } = before;
        let number = number + 1;
        let state = StateSource::open(&helper);
        let state_origin = state.origin();
        let origins = (texts.clone(), state_origin.word);
        let chunk = KernelChunk::create(path, options, (clock, facts), &cpus, (number, origins))?;
        Ok(Self {
            path: path.to_owned(),
            options: options.clone(),
            clock: *clock,
            facts,
            cpus,
            chunk,
            number,
            begun: Instant::now(),
            chunks: chunks.into(),
            bytes_before: bytes,
            texts,
            helper,
            state: Some(state),
            state_origin,
            state_events,
            unwritten: 0,
            has_build_ids: false,
            code: Vec::new(),
        })
    }

    /// The folder that is written now.
    pub(super) fn folder(&self) -> &Path {
        self.chunk.trace.path()
    }

    pub(super) fn state_events(&self) -> u64 {
        self.state_events
    }

    /// Where the state of the system is from.
    pub(super) fn state_origin(&self) -> &StateOrigin {
        &self.state_origin
    }

    pub(super) fn unwritten(&self) -> u64 {
        self.unwritten + self.chunk.unwritten()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes_before + self.chunk.bytes()
    }

    /// Says that it has all events until this time, if that is known.
    pub(super) fn say(&self, until: Option<SystemTime>) {
        live::say(self.folder(), true, until, self.options.session.as_deref());
    }

    /// Writes the state of the system, as of now. Calls `told` with the number of all its events that are in packets.
    pub(super) fn dump_state(&mut self, threads: &mut KernelThreads, told: &dyn Fn(u64)) -> Result<(), WriteError> {
        let at = crate::clock::ticks(self.clock.source()).saturating_sub(self.facts.base);
        let (mut error, mut events, before) = (None, 0, self.state_events);
        let (mut files, needs_build_ids) = (BTreeSet::new(), self.has_build_ids);
        let code = &mut self.code;
        let source = self.state.take().unwrap_or_else(|| StateSource::open(&self.helper));
        self.state_origin = dump::tell(
            source,
            |thread| {
                threads.knows(thread.tid, thread.pid);
                threads.names(thread.tid, &thread.name);
            },
            |event| {
                let written = self.chunk.state_event(at, &event);
                error = written.err().or(error.take());
                events += 1;
                if let Some((pid, map)) = event.code.filter(|_| needs_build_ids) {
                    files.insert((map.path.clone(), map.inode));
                    code.push((pid, map));
                }
                if self.chunk.state.events == 0 {
                    told(before + events);
                }
            },
        );
        for event in files.iter().filter_map(dump::build_id_event) {
            error = self.chunk.state_event(at, &event).err().or(error.take());
            events += 1;
        }
        self.state_events += events;
        error = self.chunk.state.flush().err().or(error);
        told(self.state_events);
        error.map_or(Ok(()), Err)
    }

    /// Adds an event of a CPU, if a filter keeps it; returns whether it does.
    pub(super) fn event(
        &mut self,
        (at, ticks): (usize, u64),
        (number, plan): (PlanNumber, &EventPlan),
        filter: Option<&BoundFilters>,
        (record, texts): (&[u8], &KnownTexts),
        threads: &mut KernelThreads,
    ) -> Result<bool, String> {
        let id = self.chunk.id(number, plan).map_err(|error| error.to_string())?;
        let stream = &mut self.chunk.streams[at];
        // Readers refuse a data stream whose time steps back: an earlier time in a damaged page becomes the last one.
        let cycles = ticks.saturating_sub(self.facts.base).max(stream.last());
        if stream.is_far(cycles) {
            stream.flush().map_err(|error| error.to_string())?;
        }
        let cpu = stream.cpu;
        let mut context = RecordContext { cpu, threads, texts };
        let filter = filter.filter(|filter| filter.verdict() == Verdict::Depends);
        let added = stream.add(cycles, |into| {
            let begin = into.len();
            plan.write((id, cycles), record, &mut context, into).map_err(NotAdded::Unreadable)?;
            let tid = record_thread(record);
            let payload = &into[begin + plan.head_bytes()..];
            if filter.is_none_or(|filter| filter.keeps(&RecordedRecord { cpu, tid, payload })) {
                return Ok(());
            }
            into.truncate(begin);
            Err(NotAdded::Filtered)
        });
        match added {
            Ok(()) => Ok(true),
            Err(NotAdded::Filtered) => Ok(false),
            Err(NotAdded::Unreadable(problem)) => Err(format!("{}: {problem}", plan.name)),
        }
    }

    /// Adds an event of a CPU that perf tells.
    pub(super) fn sched_event(&mut self, at: usize, ticks: u64, event: &SchedEvent) -> Result<(), WriteError> {
        let id = self.chunk.named((event.name, event.variant), || event.fields.class())?;
        let stream = &mut self.chunk.streams[at];
        let cycles = ticks.saturating_sub(self.facts.base).max(stream.last());
        if stream.is_far(cycles) {
            stream.flush()?;
        }
        stream.add_fields((id, cycles), [event.fields.bytes()]);
        if stream.bytes.len() >= PACKET { stream.flush() } else { Ok(()) }
    }

    /// Adds an event about call stacks of a CPU, or about files with code, by its name and variant.
    pub(super) fn stack_event(
        &mut self,
        (cpu, ticks): (u32, u64),
        name: (&'static str, u8),
        (payload, bytes): (impl FnOnce() -> FieldClass, &[u8]),
    ) -> Result<(), WriteError> {
        let id = self.chunk.named(name, payload)?;
        self.add_beside((BesideStream::Stacks, cpu), ticks, id, [bytes])
    }

    /// Adds an event of a CPU that a rule has kept: its name, the classes of its context and payload if they are new, and their bytes.
    pub(super) fn rule_event(
        &mut self,
        (cpu, ticks): (u32, u64),
        key: RuleEventKey,
        class: impl FnOnce() -> (String, FieldClass, FieldClass),
        bytes: [&[u8]; 2],
    ) -> Result<(), WriteError> {
        let id = match self.chunk.ruled.get(&key) {
            Some(id) => *id,
            None => {
                let (name, context, payload) = class();
                let id = self.chunk.class(name, Some(context), payload)?;
                self.chunk.ruled.insert(key, id);
                id
            }
        };
        self.add_beside((BesideStream::Rules, cpu), ticks, id, bytes)
    }

    /// Adds an event that tells counts of a question.
    pub(super) fn count_event(
        &mut self,
        ticks: u64,
        (question, name): (usize, &str),
        (event, fields): (CountEvent, &FieldList),
    ) -> Result<(), WriteError> {
        let id = match self.chunk.counted.get(&(question, event)) {
            Some(id) => *id,
            None => {
                let id = self.chunk.record_class(|id| count_class(name, id, event, fields))?;
                self.chunk.counted.insert((question, event), id);
                id
            }
        };
        self.add_beside((BesideStream::Counts, 0), ticks, id, [fields.bytes()])
    }

    fn add_beside<const N: usize>(
        &mut self,
        of: (BesideStream, u32),
        ticks: u64,
        id: u16,
        bytes: [&[u8]; N],
    ) -> Result<(), WriteError> {
        let stream = self.chunk.beside(of);
        let cycles = ticks.saturating_sub(self.facts.base).max(stream.last());
        if stream.is_far(cycles) {
            stream.flush()?;
        }
        stream.add_fields((id, cycles), bytes);
        if stream.bytes.len() >= PACKET { stream.flush() } else { Ok(()) }
    }

    /// Call stacks of a CPU were lost: between the packet before and the next one.
    pub(super) fn loses_stacks(&mut self, cpu: u32, records: u64) -> Result<(), WriteError> {
        self.loses_beside((BesideStream::Stacks, cpu), records)
    }

    /// The same of events that rules have kept.
    pub(super) fn loses_of_rules(&mut self, cpu: u32, records: u64) -> Result<(), WriteError> {
        self.loses_beside((BesideStream::Rules, cpu), records)
    }

    fn loses_beside(&mut self, of: (BesideStream, u32), records: u64) -> Result<(), WriteError> {
        let stream = self.chunk.beside(of);
        let written = stream.flush();
        stream.discarded += records;
        written
    }

    /// Writes the packets beside the pages that are made now.
    pub(super) fn flush_beside(&mut self) -> Result<(), WriteError> {
        self.chunk.beside.values_mut().try_for_each(CpuStream::flush)
    }

    /// Adds an event about the state of the system, as of now.
    pub(super) fn fact(&mut self, event: &StateEvent) -> Result<(), WriteError> {
        let at = crate::clock::ticks(self.clock.source()).saturating_sub(self.facts.base);
        self.chunk.state_event(at, event)
    }

    /// Events of a CPU were lost: between the packet before and the next one.
    pub(super) fn loses(&mut self, at: usize, events: u64) -> Result<(), WriteError> {
        let written = self.flush(at);
        self.chunk.streams[at].discarded += events;
        written
    }

    /// Writes the packet of a CPU that is made now.
    pub(super) fn flush(&mut self, at: usize) -> Result<(), WriteError> {
        self.chunk.streams[at].flush()
    }

    /// Whether a CPU's packet is long enough.
    pub(super) fn is_full(&self, at: usize) -> bool {
        self.chunk.streams[at].bytes.len() >= PACKET
    }

    /// Whether no event waits to be in a packet.
    pub(super) fn is_flushed(&self, at: usize) -> bool {
        self.chunk.streams[at].events == 0
    }

    /// When the last event of a CPU's packets was; `None`: that is not known.
    pub(super) fn written_until(&self, at: usize) -> Option<SystemTime> {
        self.time_of(self.chunk.streams[at].raw.end())
    }

    /// The time of these ticks, if it is known.
    pub(super) fn time_at(&self, ticks: u64) -> Option<SystemTime> {
        self.time_of(ticks.saturating_sub(self.facts.base))
    }

    fn time_of(&self, cycles: u64) -> Option<SystemTime> {
        let ns = u64::try_from(self.facts.nanos(cycles)).ok()?;
        self.facts.is_absolute.then(|| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns))
    }

    /// Whether it is time for the next chunk.
    pub(super) fn is_over(&self) -> bool {
        // A part that has only the state of the system is no long one.
        let streams = self.chunk.streams.iter().chain(self.chunk.beside.values());
        let events: u64 = streams.map(|stream| stream.raw.bytes()).sum();
        let is_long = self.options.chunk_bytes().is_some_and(|most| events > 0 && events >= most);
        is_long || self.options.chunk_time.is_some_and(|most| self.begun.elapsed() >= most)
    }

    /// Ends the chunk and begins the next one, with the state of the system.
    pub(super) fn roll(&mut self, threads: &mut KernelThreads, told: &dyn Fn(u64)) -> Result<(), WriteError> {
        self.begun = Instant::now();
        let facts = ClockDescription { base: self.facts.base, ..self.clock.facts(self.facts.base) };
        let state = StateSource::open(&self.helper);
        let about = (self.number + 1, (self.texts.clone(), state.origin().word));
        let next = KernelChunk::create(&self.path, &self.options, (&self.clock, facts), &self.cpus, about)?;
        // Followers always find one that goes on.
        live::go_on(self.folder(), next.trace.path());
        self.number += 1;
        self.state = Some(state);
        let mut old = std::mem::replace(&mut self.chunk, next);
        self.facts = facts;
        // Events until now may still wait for their turn.
        let ended = old.end(0);
        let (path, bytes) = (old.trace.path().to_owned(), old.bytes());
        self.bytes_before += bytes;
        self.unwritten += old.unwritten();
        old.close();
        self.chunks.push_back((path, bytes));
        self.delete();
        ended.and(self.dump_state(threads, told))
    }

    /// Deletes the oldest chunks of a ring.
    fn delete(&mut self) {
        let Some(most) = self.options.ring_bytes else { return };
        let mut all = self.chunk.bytes() + self.chunks.iter().map(|chunk| chunk.1).sum::<u64>();
        while all + self.options.chunk_bytes().unwrap_or(0) > most {
            let Some((path, bytes)) = self.chunks.pop_front() else { break };
            // A reader may have deleted it already.
            let _ = std::fs::remove_dir_all(&path);
            all -= bytes;
        }
    }

    /// Ends the trace, which has everything until these ticks. The clock is described as it is known, or as well as it is now.
    pub(super) fn finish(
        mut self,
        (clock, known): (&mut TickSource, Option<ClockDescription>),
        until: u64,
    ) -> Result<(), WriteError> {
        let ended = self.chunk.end(until.saturating_sub(self.facts.base));
        let known = known.filter(|known| known.base == self.facts.base);
        let better = known.unwrap_or_else(|| clock.facts(self.facts.base));
        let said = self.chunk.trace.say_clock(&raw_clock(clock.source(), &better));
        self.chunk.close();
        ended.and(said)
    }
}

impl KernelChunk {
    fn create(
        path: &Path,
        options: &OutputOptions,
        (clock, facts): (&TickSource, ClockDescription),
        cpus: &[(u8, u32)],
        (number, (texts, state)): (u64, (Option<String>, &str)),
    ) -> Result<Self, WriteError> {
        let head = beginning(path, options, clock, facts)?;
        let path = if options.has_chunks() { path.join(format!("{number:06}")) } else { path.to_owned() };
        let mut trace = RawTrace::create(
            &path,
            RawOptions {
                format: options.format,
                uuid: Uuid(head.uuid),
                clock: raw_clock(clock.source(), &facts),
                environment: environment(head.environment(), texts, state),
                packet_fields: vec![DefinedField {
                    name: "cpu_id".to_owned(),
                    kind: FieldType::Scalar(ScalarType::Integer(IntegerType::unsigned(4))),
                }],
                // Other users' threads are in it.
                is_private: true,
            },
        )?;
        trace.stream_class(&[])?;
        live::begin(&path, options.session.as_deref());
        let streams = cpus.iter().enumerate();
        let streams = streams
            .map(|(number, (ring, cpu))| CpuStream::new(&trace, &cpu_stream(*ring, *cpu), *cpu, number))
            .collect();
        let state = CpuStream::new(&trace, STATE_STREAM, 0, cpus.len());
        let (named, beside, ruled, counted) = Default::default();
        Ok(Self { trace, ids: Vec::new(), named, next_id: 0, streams, state, beside, ruled, counted })
    }

    /// The id of an event, which is added if it is not known.
    fn id(&mut self, number: PlanNumber, plan: &EventPlan) -> Result<u16, WriteError> {
        if let Some(id) = self.ids.get(usize::from(number)).copied().flatten() {
            return Ok(id);
        }
        let id = self.class(plan.name.clone(), plan.context.clone(), plan.payload.clone())?;
        if self.ids.len() <= usize::from(number) {
            self.ids.resize(usize::from(number) + 1, None);
        }
        self.ids[usize::from(number)] = Some(id);
        Ok(id)
    }

    fn class(&mut self, name: String, context: Option<FieldClass>, payload: FieldClass) -> Result<u16, WriteError> {
        self.record_class(|id| EventRecordClass {
            id: id.into(),
            namespace: None,
            name: Some(name),
            uid: None,
            log_level: None,
            emf_uri: None,
            specific_context: context,
            payload: Some(payload),
            attributes: None,
        })
    }

    /// Adds a class with the next id.
    fn record_class(&mut self, class: impl FnOnce(u16) -> EventRecordClass) -> Result<u16, WriteError> {
        let id = self.next_id;
        self.trace.event_record_class(STREAM_CLASS, class(id))?;
        self.next_id += 1;
        Ok(id)
    }

    /// Adds an event about the state of the system.
    fn state_event(&mut self, at: u64, event: &StateEvent) -> Result<(), WriteError> {
        let id = self.named((event.name, 0), || event.fields.class())?;
        self.state.add_fields((id, at), [event.fields.bytes()]);
        if self.state.bytes.len() >= PACKET { self.state.flush() } else { Ok(()) }
    }

    /// The id of an event that is no tracepoint, by its name and variant.
    fn named(&mut self, name: (&'static str, u8), payload: impl FnOnce() -> FieldClass) -> Result<u16, WriteError> {
        if let Some(id) = self.named.get(&name) {
            return Ok(*id);
        }
        let id = self.class(name.0.to_owned(), None, payload())?;
        self.named.insert(name, id);
        Ok(id)
    }

    /// A stream of a CPU beside those of pages.
    fn beside(&mut self, of: (BesideStream, u32)) -> &mut CpuStream {
        let number = self.streams.len() + 1 + self.beside.len();
        match self.beside.entry(of) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let (kind, cpu) = of;
                let name = match kind {
                    BesideStream::Stacks => stack_stream(cpu),
                    BesideStream::Rules => rule_stream(cpu),
                    BesideStream::Counts => COUNT_STREAM.to_owned(),
                };
                place.insert(CpuStream::new(&self.trace, &name, cpu, number))
            }
        }
    }

    fn bytes(&self) -> u64 {
        let streams = self.streams.iter().chain([&self.state]).chain(self.beside.values());
        self.trace.metadata_bytes() + streams.map(|stream| stream.raw.bytes()).sum::<u64>()
    }

    fn unwritten(&self) -> u64 {
        self.streams.iter().chain(self.beside.values()).map(|stream| stream.unwritten).sum()
    }

    /// All events are in packets, and there are none behind them up to this time.
    fn end(&mut self, until: u64) -> Result<(), WriteError> {
        let mut ended = self.state.flush();
        for stream in self.streams.iter_mut().chain(self.beside.values_mut()) {
            ended = ended.and(stream.flush()).and(stream.end(until));
        }
        ended
    }

    fn close(self) {
        let path = self.trace.path().to_owned();
        let streams = self.streams.into_iter().chain([self.state]).chain(self.beside.into_values());
        streams.for_each(|stream| stream.raw.close());
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

    /// Adds an event with this id of these fields.
    fn add_fields<const N: usize>(&mut self, (id, cycles): (u16, u64), fields: [&[u8]; N]) {
        let Ok(()) = self.add(cycles, |into| {
            into.extend_from_slice(&id.to_le_bytes());
            into.extend_from_slice(&(cycles as u32).to_le_bytes());
            fields.iter().for_each(|fields| into.extend_from_slice(fields));
            Ok::<(), std::convert::Infallible>(())
        });
    }

    /// Writes the packet.
    fn flush(&mut self) -> Result<(), WriteError> {
        let events = std::mem::take(&mut self.events);
        if events == 0 {
            return Ok(());
        }
        debug_assert!(self.bytes.len() >= BEFORE + EVENT_HEAD_BYTES, "an event has a head");
        let mut bytes = std::mem::take(&mut self.bytes);
        let written = self.put(&mut bytes, self.begin, self.end);
        self.bytes = bytes;
        self.bytes.clear();
        if written.is_err() {
            self.unwritten += events;
            self.discarded += events;
        }
        written
    }

    fn put(&mut self, bytes: &mut [u8], begin: u64, end: u64) -> Result<(), WriteError> {
        bytes[HEAD_BYTES..BEFORE].copy_from_slice(&self.cpu.to_le_bytes());
        let packet = RawPacket { begin, end, discarded: self.discarded, missing: 0, padding: 0 };
        if self.raw.bytes() == 0 && self.discarded > 0 {
            // Readers cannot tell losses before the first packet: one before it tells that there were none until then.
            let mut first = bytes[..BEFORE].to_vec();
            self.raw.packet(&mut first, &RawPacket { end: begin, discarded: 0, ..packet })?;
        }
        self.raw.packet(bytes, &packet)
    }

    /// Tells that there is nothing up to this time.
    fn end(&mut self, until: u64) -> Result<(), WriteError> {
        if self.raw.bytes() == 0 && self.discarded == 0 {
            return Ok(());
        }
        let begin = self.raw.end();
        self.put(&mut [0; BEFORE], begin, until.max(begin))
    }
}

/// The environment as LTTng's kernel tracer writes it: Trace Compass chooses its analyses by that.
fn environment(
    own: Vec<(String, EnvironmentValue)>,
    texts: Option<String>,
    state: &str,
) -> Vec<(String, EnvironmentValue)> {
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
    let texts = texts.map(|texts| ("syscall_texts".to_owned(), EnvironmentValue::Text(texts)));
    let state = ("state_source".to_owned(), EnvironmentValue::Text(state.to_owned()));
    own.chain([recorded_by]).chain(texts).chain([state]).collect()
}
