//! Call stacks: perf events of the kernel, opened by the helper and read by a recorder.
//!
//! ```text
//! helper    each CPU: cpu-clock, so many times a second ─┐
//!           each CPU: tracepoints, each time ────────────┼─> the CPU's ring ── mapped ──> recorder
//!           each CPU: new maps with code, threads ───────┘
//! ```
//!
//! If only some threads are recorded, programs of `thread_limit` decide about the upper two.
//!
//! Records are as the kernel writes them (`perf_event_open(2)`). The helper never reads them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use crate::linux::filter_samples;
use crate::loading::spool;
use crate::mapped::Mapped;
use crate::thread_limit::{LimitedEvent, ThreadLimit};

/// Times a second, at most.
const STACKS_HZ_MAX: u32 = 50_000;
/// Tracepoints with stacks, at most: each takes a file for each CPU.
pub const STACK_EVENTS_MAX: usize = 64;
/// Bytes of a ring.
pub(crate) const STACK_RING_BYTES_MIN: u32 = 256 << 10;
const RING_BYTES_MAX: u64 = 64 << 20;

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const CPU_CLOCK: u64 = 0;
const DUMMY: u64 = 9;
const BY_PROGRAM: u64 = 10;
/// Words of records: the number of the event, the thread, the time, the period, the call stack. Without the period, the kernel writes as
/// many records for an event as its count says, such as one for each nanosecond.
const SAMPLE_TYPE: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 8 | 1 << 5;
/// The fields of the event itself, behind these.
const RAW: u64 = 1 << 10;
/// Bytes of a record at most.
const RECORD_MAX: u64 = 1 << 16;
/// How often a second the kernel samples at most.
const HZ_MAX_AT: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
const DISABLED: u64 = 1;
const EXCLUDE_IDLE: u64 = 1 << 7;
const MAPS: u64 = 1 << 8;
const NAMES: u64 = 1 << 9;
const TASKS: u64 = 1 << 13;
const FREQUENCY: u64 = 1 << 10;
const THREADS: u64 = 1 << 13;
const ID_IN_ALL: u64 = 1 << 18;
const MAPS_2: u64 = 1 << 23;
const EXEC_NAMES: u64 = 1 << 24;
const USE_CLOCK: u64 = 1 << 25;
const SWITCHES: u64 = 1 << 26;
const BUILD_IDS: u64 = 1 << 34;
/// `PERF_FORMAT_LOST`.
const COUNT_LOST: u64 = 1 << 4;
const CLOSE_ON_EXEC: u64 = 1 << 3;
/// `PERF_EVENT_IOC_ENABLE`.
const ENABLE: u64 = 0x2400;
/// `PERF_EVENT_IOC_SET_OUTPUT`.
const SET_OUTPUT: u64 = 0x2405;
/// `PERF_EVENT_IOC_ID`, which has the size of a pointer in it.
const ASK_ID: u64 = 0x8000_2407 | (size_of::<usize>() as u64) << 16;
/// Places in the first page of a ring.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// A request for call stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackRequest {
    /// Samples of each busy CPU in a second of its time; 0: none.
    pub hz: u32,
    /// Tracepoints whose every event has a stack, as `SYSTEM:NAME`.
    pub events: Vec<String>,
}

/// `struct perf_event_attr`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    config_1: u64,
    config_2: u64,
    branch_type: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    kernel_registers: u64,
    aux_watermark: u32,
    stack_max: u16,
    reserved_2: u16,
    aux_size: u32,
    reserved_3: u32,
}

/// Opens an event of all threads of a CPU.
#[allow(unsafe_code)]
fn open(cpu: u32, attributes: &EventAttributes) -> io::Result<OwnedFd> {
    let [all, none] = [-1_i32; 2];
    // SAFETY: the structure has the size that it says, and lives during the call; the kernel only reads it.
    let file = unsafe {
        libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(attributes), all, cpu as i32, none, CLOSE_ON_EXEC)
    };
    match i32::try_from(file) {
        // SAFETY: the kernel has just opened it, for this process.
        Ok(file @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Opens the event of a CPU that tells of its switches, and of threads that begin, end, and get names.
pub(crate) fn open_sched(cpu: u32) -> io::Result<OwnedFd> {
    let attributes = EventAttributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<EventAttributes>() as u32,
        config: DUMMY,
        // The thread, and the time.
        sample_type: 1 << 1 | 1 << 2,
        flags: ID_IN_ALL | USE_CLOCK | NAMES | TASKS | EXEC_NAMES | SWITCHES,
        clock: libc::CLOCK_MONOTONIC,
        ..EventAttributes::default()
    };
    open(cpu, &attributes)
}

/// Opens the event of a CPU for records that programs put out; reading its file tells how many were lost, where Linux counts them (6.0).
pub(crate) fn open_output(cpu: u32) -> io::Result<OwnedFd> {
    let attributes = |read_format| EventAttributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<EventAttributes>() as u32,
        config: BY_PROGRAM,
        period: 1,
        sample_type: 1 << 2 | RAW,
        read_format,
        flags: USE_CLOCK,
        wakeup: 1,
        clock: libc::CLOCK_MONOTONIC,
        ..EventAttributes::default()
    };
    open(cpu, &attributes(COUNT_LOST)).or_else(|_| open(cpu, &attributes(0)))
}

/// Has an event write to the ring of another one.
#[allow(unsafe_code)]
fn write_to(event: &OwnedFd, ring: &OwnedFd) -> io::Result<()> {
    // SAFETY: both are open, and the call takes a number.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, ring.as_raw_fd()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets an event begin.
#[allow(unsafe_code)]
fn enable(event: &OwnedFd) -> io::Result<()> {
    // SAFETY: it is open, and the call takes a number.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), ENABLE as _, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The number that stands in records of an event.
#[allow(unsafe_code)]
fn id(event: &OwnedFd) -> io::Result<u64> {
    let mut id = 0_u64;
    // SAFETY: the kernel writes 8 bytes, which are there.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), ASK_ID as _, std::ptr::from_mut(&mut id)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
}

/// Why an event is not opened, and a remedy.
fn refused(name: &str, hz: u32, error: &io::Error) -> String {
    let most = std::fs::read_to_string(HZ_MAX_AT).ok().and_then(|text| text.trim().parse::<u32>().ok());
    match (name, most, error.raw_os_error()) {
        ("samples", Some(most), Some(libc::EINVAL)) if hz > most => {
            format!(
                "the kernel takes {most} samples a second at most: kernel.perf_event_max_sample_rate; {hz} are wanted"
            )
        }
        (_, _, Some(libc::EMFILE | libc::ENFILE)) => {
            format!(
                "the kernel opens no more perf events than it has, for {name}: fewer events with stacks need fewer files"
            )
        }
        _ => format!("the kernel opens no perf event for {name}: {error}"),
    }
}

/// A CPU's ring.
#[derive(Debug)]
struct StackRing {
    /// Its event, which tells of new maps.
    file: OwnedFd,
    /// Others can write to a ring only while one has it mapped.
    _mapped: Mapped,
    /// The others, by their numbers.
    events: Vec<OwnedFd>,
}

/// Events of all CPUs.
#[derive(Debug)]
pub(crate) struct StackEvents {
    rings: Vec<StackRing>,
    pub(crate) ring_bytes: u32,
    pub(crate) cpus: Vec<u32>,
    /// As those of [`StackFiles::ids`].
    pub(crate) ids: Vec<StackEventId>,
    /// Programs that make events of tracepoints.
    limited: Vec<LimitedEvent>,
    /// Memory for their records.
    spool: OwnedFd,
}

/// A tracepoint, the events of which have call stacks.
#[derive(Clone, Debug)]
pub(crate) struct StackPoint {
    /// As `SYSTEM:NAME`.
    pub(crate) name: String,
    pub(crate) number: u64,
    /// Where its events have the number of the thread that they wake.
    pub(crate) woken_at: Option<u16>,
}

/// Events that have call stacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackSources<'a> {
    /// Samples of each busy CPU in a second; 0: none.
    pub(crate) hz: u32,
    /// Tracepoints.
    pub(crate) tracepoints: &'a [StackPoint],
    /// Threads that they are about; `None`: all.
    pub(crate) limit: Option<&'a ThreadLimit>,
}

impl StackEvents {
    /// Opens the events of these CPUs, as far as they are on; times are of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    ///
    /// Why not, in a sentence.
    pub(crate) fn open(cpus: &[u32], sources: StackSources<'_>, ring_bytes: u64) -> Result<Self, String> {
        let ring_bytes = ring_bytes.clamp(STACK_RING_BYTES_MIN.into(), RING_BYTES_MAX).next_power_of_two() as u32;
        let (rings, limited, ids) = Default::default();
        let mut all = Self { rings, ring_bytes, cpus: Vec::new(), ids, limited, spool: spool("kymo-stacks")? };
        let sources = StackSources { hz: sources.hz.min(STACKS_HZ_MAX), ..sources };
        for cpu in cpus {
            all.add(*cpu, sources)?;
        }
        if all.cpus.is_empty() {
            return Err("no CPU is on".to_owned());
        }
        if let Some(limit) = sources.limit {
            all.limit_to(limit, sources).map_err(|why| format!("those of some threads cannot be told: {why}"))?;
        }
        Ok(all)
    }

    fn limit_to(&mut self, limit: &ThreadLimit, sources: StackSources<'_>) -> Result<(), String> {
        let first = usize::from(sources.hz > 0);
        if first == 1 {
            let program = limit.samples()?;
            let filter = |ring: &StackRing| {
                filter_samples(ring.events[0].as_fd(), &program)?;
                enable(&ring.events[0])
            };
            self.rings.iter().try_for_each(filter).map_err(|error| format!("samples take no program: {error}"))?;
        }
        for (number, StackPoint { name, .. }) in sources.tracepoints.iter().enumerate() {
            let events = self.cpus.iter().zip(&self.rings);
            let events: Vec<_> = events.map(|(cpu, ring)| (*cpu, ring.events[first + number].as_fd())).collect();
            let name = name.split_once(':').map_or(name.as_str(), |(_, name)| name);
            self.limited.push(limit.event(name, &events)?);
        }
        Ok(())
    }

    fn add(&mut self, cpu: u32, StackSources { hz, tracepoints, limit }: StackSources<'_>) -> Result<(), String> {
        let told = |error: io::Error| format!("the kernel opens no perf event on CPU {cpu}: {error}");
        let usual = || EventAttributes {
            size: size_of::<EventAttributes>() as u32,
            sample_type: SAMPLE_TYPE,
            flags: ID_IN_ALL | USE_CLOCK,
            clock: libc::CLOCK_MONOTONIC,
            ..EventAttributes::default()
        };
        let maps = EventAttributes { kind: TYPE_SOFTWARE, config: DUMMY, ..usual() };
        let with_maps = |more| EventAttributes { flags: maps.flags | MAPS | MAPS_2 | THREADS | more, ..usual() };
        let with_maps = |more| EventAttributes { kind: TYPE_SOFTWARE, config: DUMMY, ..with_maps(more) };
        // Linux before 5.12 has no build ids.
        let file = match open(cpu, &with_maps(BUILD_IDS)).or_else(|_| open(cpu, &with_maps(0))) {
            // It is off.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(()),
            opened => opened.map_err(told)?,
        };
        let page = rustix::param::page_size();
        let mapped =
            Mapped::new(&file, 0, page + self.ring_bytes as usize, libc::PROT_READ | libc::PROT_WRITE).map_err(told)?;
        let clock = EventAttributes {
            kind: TYPE_SOFTWARE,
            config: CPU_CLOCK,
            period: hz.into(),
            // Until a program filters them.
            flags: usual().flags | FREQUENCY | EXCLUDE_IDLE | if limit.is_some() { DISABLED } else { 0 },
            ..usual()
        };
        let clock = (hz > 0).then_some((0, ("samples", None, clock))).into_iter();
        let point = |StackPoint { name, number, woken_at }: &'_ StackPoint| {
            // A program makes those of some threads, and gives nothing but the number.
            let (kind, config, woken_at) = match limit.is_some() {
                true => (TYPE_SOFTWARE, BY_PROGRAM, woken_at.map(|_| 0)),
                false => (TYPE_TRACEPOINT, *number, *woken_at),
            };
            let sample_type = SAMPLE_TYPE | if woken_at.is_some() { RAW } else { 0 };
            (name.clone(), woken_at, EventAttributes { kind, config, sample_type, period: 1, ..usual() })
        };
        let points: Vec<_> = tracepoints.iter().map(point).collect();
        let points = (1..).zip(points.iter().map(|(name, woken_at, attributes)| (&**name, *woken_at, *attributes)));
        let mut events = Vec::new();
        for (number, (name, woken_at, attributes)) in clock.chain(points) {
            let opened = open(cpu, &attributes).and_then(|event| {
                write_to(&event, &file)?;
                self.ids.push((id(&event)?, number, woken_at));
                Ok(event)
            });
            events.push(opened.map_err(|error| refused(name, hz, &error))?);
        }
        self.cpus.push(cpu);
        self.rings.push(StackRing { file, _mapped: mapped, events });
        Ok(())
    }

    /// Whether programs make the events of tracepoints.
    pub(crate) fn is_by_programs(&self) -> bool {
        !self.limited.is_empty()
    }

    /// Files of the rings, and the memory, for the recorder.
    pub(crate) fn files(&self) -> io::Result<Vec<OwnedFd>> {
        self.rings.iter().map(|ring| &ring.file).chain([&self.spool]).map(OwnedFd::try_clone).collect()
    }
}

/// The number of an event in records; which one it is; and where its own fields have the thread that it wakes.
pub type StackEventId = (u64, u16, Option<u16>);

/// Files of the rings of all CPUs, as the helper hands them over.
#[derive(Debug)]
pub struct StackFiles {
    /// Bytes of each ring.
    pub ring_bytes: u32,
    /// CPUs of the rings.
    pub cpus: Vec<u32>,
    /// Their rings.
    pub rings: Vec<OwnedFd>,
    /// Numbers of events in records, and which they are: 0 is the clock; tracepoints follow as they were asked for.
    pub ids: Vec<StackEventId>,
    /// Programs make the events of tracepoints: stacks in the kernel begin in them.
    pub is_by_programs: bool,
    /// Memory for their records, which the helper keeps for the next recorder, if this one is killed.
    pub spool: OwnedFd,
}

/// Rings of all CPUs, mapped.
#[derive(Debug)]
pub struct StackRings {
    rings: Vec<MappedStacks>,
    page: usize,
    mask: u64,
}

#[derive(Debug)]
struct MappedStacks {
    cpu: u32,
    memory: Mapped,
    /// How far it was drained.
    drained: u64,
}

impl StackRings {
    /// Maps them.
    ///
    /// # Errors
    ///
    /// The kernel does not allow it, or there are not as many rings as CPUs.
    pub fn map(files: &StackFiles) -> io::Result<Self> {
        Self::of_cpus(&files.cpus, &files.rings, files.ring_bytes)
    }

    /// Maps those of these CPUs.
    pub(crate) fn of_cpus(cpus: &[u32], rings: &[OwnedFd], ring_bytes: u32) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let bytes = ring_bytes as usize;
        if !bytes.is_power_of_two() || bytes < page || rings.len() != cpus.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let map = |file| Mapped::new(file, 0, page + bytes, libc::PROT_READ | libc::PROT_WRITE);
        let rings = cpus.iter().zip(rings);
        let rings = rings.map(|(cpu, file)| Ok(MappedStacks { cpu: *cpu, memory: map(file)?, drained: 0 }));
        Ok(Self { rings: rings.collect::<io::Result<_>>()?, page, mask: bytes as u64 - 1 })
    }

    /// Calls `each` with each CPU and the records that it has written and that were not released, whole ones, behind each other; and
    /// whether there may have been no room for more of them.
    pub fn drain(&mut self, mut each: impl FnMut(u32, &[u8], bool)) {
        let mut bytes = Vec::new();
        for MappedStacks { cpu, memory: mapped, drained } in &mut self.rings {
            let (end, begin) = (mapped.long(HEAD_AT), mapped.long(TAIL_AT));
            let (head, tail) = (end.load(Ordering::Acquire), begin.load(Ordering::Relaxed));
            *drained = head;
            // The kernel does not write what was not read; another process of this user might.
            let length = head.wrapping_sub(tail);
            bytes.clear();
            if length == 0 {
                continue;
            }
            if length > self.mask + 1 {
                each(*cpu, &[], true);
                continue;
            }
            let place = tail & self.mask;
            let first = length.min(self.mask + 1 - place);
            mapped.copy(self.page + place as usize, first as usize, &mut bytes);
            mapped.copy(self.page, (length - first) as usize, &mut bytes);
            each(*cpu, &bytes, length + RECORD_MAX > self.mask + 1);
        }
    }

    /// Gives the room of drained records back.
    pub fn release(&self) {
        for MappedStacks { memory, drained, .. } in &self.rings {
            if *drained != 0 {
                memory.long(TAIL_AT).store(*drained, Ordering::Release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs::TraceFs;

    /// A busy thread is sampled, its switches have stacks, and a program that starts tells of its maps.
    #[test]
    fn stacks_are_in_rings() {
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").expect("it is there");
        let last = online.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u32>().ok());
        let cpus: Vec<u32> = (0..=last.expect("a number")).collect();
        let switch = TraceFs::find().ok().and_then(|fs| fs.event_id("sched", "sched_switch").ok());
        let Some(switch) = switch else { return println!("NO TRACEFS HERE: not run") };
        let tracepoints = [StackPoint { name: "sched:sched_switch".to_owned(), number: switch, woken_at: None }];
        let sources = StackSources { hz: 999, tracepoints: &tracepoints, limit: None };
        let events = match StackEvents::open(&cpus, sources, 1 << 20) {
            Ok(events) => events,
            Err(why) => return println!("NO PERF EVENTS HERE: not run ({why})"),
        };
        let files = StackFiles {
            ring_bytes: events.ring_bytes,
            cpus: events.cpus.clone(),
            rings: events.rings.iter().map(|ring| ring.file.try_clone().expect("there are more")).collect(),
            ids: events.ids.clone(),
            is_by_programs: false,
            spool: spool("kymo-test").expect("there is room"),
        };
        let mut rings = StackRings::map(&files).expect("they can be mapped");
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_millis(100) {
            std::hint::black_box(0);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        std::process::Command::new("true").status().expect("it starts");
        let (mut samples, mut switches, mut maps) = (0, 0, 0);
        rings.drain(|_, records, _| {
            let mut rest = records;
            while rest.len() >= 8 {
                let word = |at: usize| u64::from_le_bytes(*rest[at..].first_chunk().expect("it has a head"));
                let (kind, length) = (word(0) as u32, (word(0) >> 48) as usize);
                let is_of = |number| files.ids.contains(&(word(8), number, None));
                match kind {
                    9 => {
                        samples += u32::from(is_of(0));
                        switches += u32::from(is_of(1));
                        assert!(is_of(0) || is_of(1), "it is one of both");
                    }
                    10 => maps += 1,
                    _ => {}
                }
                rest = &rest[length..];
            }
            assert!(rest.is_empty(), "records are whole");
        });
        assert!(samples > 20 && switches > 0 && maps > 0, "{samples} {switches} {maps}");
    }
}
