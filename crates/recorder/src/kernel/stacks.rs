//! Call stacks, beside the pages: samples of busy CPUs, and the stacks of chosen events.
//!
//! ```text
//! look n      records of all CPUs, and a mark ──> spool
//! converter   records up to a mark ──> kymo_stack, when a stack is new, and kymo_callstack with its number
//!                                  ──> kymo_map, when a process maps a file with code
//! at the end  functions of the kernel that are in stacks ──> kymo_kernel_function
//! ```
//!
//! A mark tells the clocks' times: the kernel writes records with `CLOCK_MONOTONIC`, and the trace has the clock of programs.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_ftrace::fields::{FieldList, KernelValue};
use kymo_ftrace::stacks::{CallStack, MappedCode, StackRecord, begun_processes, lost_record, next_record};
use kymo_lane::ClockSource;
use kymo_probe::stacks::{StackFiles, StackRings};
use kymo_writer::WriteError;

use crate::kernel::dump::{self, CodeMap, StateEvent};
use crate::kernel::known_maps::KnownMaps;
use crate::kernel::marked::{ClockPair, MarkedRounds, MarkedSpool, MarkedWriter, RoundMark, all_entries};
use crate::kernel::output::KernelOutput;
use crate::kernel::wanted::WantedTimes;

/// Addresses of known stacks at most: beyond that, all stacks get new numbers, and are written again.
const ADDRESSES_MAX: usize = 8 << 20;

/// Beginnings of names of functions that call programs at tracepoints, and how many frames a stack has at most from the program to
/// the last of them.
const CALLERS: [&str; 2] = ["bpf_trace_run", "__bpf_trace_"];
const CALLERS_MAX: usize = 4;

/// Moves records from rings to their spool.
#[derive(Debug)]
pub(super) struct StackReader {
    rings: StackRings,
    writer: MarkedWriter,
    source: ClockSource,
    maps: MapKeeping,
}

/// Files with code for traces that begin later than these were mapped.
#[derive(Clone, Debug)]
pub(super) enum MapKeeping {
    /// There is one trace.
    None,
    /// A trace has parts.
    Parts,
    /// A flight recorder lets records go.
    Flight(Arc<Mutex<KnownMaps>>),
}

fn lock(maps: &Mutex<KnownMaps>) -> MutexGuard<'_, KnownMaps> {
    maps.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StackReader {
    /// Moves all records, if there is room for them, and marks that. `may_forget`: no snapshot needs the oldest.
    pub(super) fn read(&mut self, has_room: bool, is_over: bool, may_forget: bool) -> io::Result<()> {
        let Self { rings, writer, source, maps } = self;
        writer.begin();
        if has_room && !writer.is_crowded() {
            rings.drain(|cpu, records, was_full| {
                writer.entry(cpu, |batch| {
                    batch.extend_from_slice(records);
                    // The kernel counts losses before the next record, which does not come any more: there was one at least.
                    if was_full && is_over {
                        batch.extend_from_slice(&lost_record(ClockPair::now(*source).nanos));
                    }
                });
            });
        }
        writer.end(0, 0)?;
        rings.release();
        match maps {
            MapKeeping::Flight(maps) if may_forget => writer.keep_newest(|round| lock(maps).learn_round(round)),
            _ => Ok(()),
        }
    }

    /// Bytes that wait for conversion.
    pub(super) fn waiting(&self) -> u64 {
        self.writer.waiting()
    }
}

/// Counts of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StackCounts {
    /// Events in the trace.
    pub(super) events: u64,
    /// Call stacks of these.
    pub(super) stacks: u64,
    /// Records that had no room.
    pub(super) lost: u64,
}

/// The way of records to converters.
#[derive(Debug)]
pub(super) struct StackSource {
    marked: MarkedSpool,
    /// Places of events' names, by the numbers of perf events, and where the fields of these have the thread that they wake.
    ids: HashMap<u64, (u16, Option<u16>)>,
    names: Vec<String>,
    symbols: Option<File>,
    is_by_programs: bool,
    maps: MapKeeping,
}

/// Records for the converter.
#[derive(Debug)]
pub(super) struct StackFeed {
    rounds: MarkedRounds,
    ids: HashMap<u64, (u16, Option<u16>)>,
    names: Vec<String>,
    symbols: Option<File>,
    /// Code of the kernel that calls programs, which stacks begin in; `None`: they do not, or it is not yet known.
    callers: Option<Vec<(u64, u64)>>,
    is_by_programs: bool,
    /// The end of the round that is read.
    mark: Option<RoundMark>,
    /// The spool cannot be read any more.
    is_gone: bool,
    known: KnownStacks,
    maps: Option<KnownMaps>,
    /// By CPU: until these ticks, the trace of an earlier recorder has them.
    written_until: HashMap<u32, u64>,
    pub(super) counts: StackCounts,
    /// The kernel has sampled less often than it was asked to.
    pub(super) is_throttled: bool,
}

/// Stacks that the trace has.
#[derive(Debug, Default)]
struct KnownStacks {
    /// By process and addresses: those of the kernel, a zero, those of the program.
    numbers: HashMap<Box<[u64]>, u32>,
    /// The place where keys are made.
    key: Vec<u64>,
    addresses: usize,
    /// The number of the last one.
    last: u32,
    /// Of the kernel.
    kernel: BTreeSet<u64>,
}

/// The reader of call stacks, and their way to converters. `names` are those of the events, the clock's first. A flight recorder
/// keeps so many bytes.
pub(super) fn begin(
    (files, symbols): (StackFiles, Option<File>),
    names: Vec<String>,
    source: ClockSource,
    (kept_bytes, maps): (Option<u64>, MapKeeping),
) -> Result<(StackReader, StackSource), String> {
    let rings = StackRings::map(&files).map_err(|error| format!("their rings cannot be mapped: {error}"))?;
    let kept_bytes = kept_bytes.map(|bytes| bytes * files.cpus.len() as u64);
    let marked = MarkedSpool::open(files.spool, kept_bytes).map_err(|error| error.to_string())?;
    let writer = MarkedWriter::new(marked.clone(), source).map_err(|error| error.to_string())?;
    let reader = StackReader { rings, writer, source, maps: maps.clone() };
    let ids = files.ids.into_iter().map(|(id, event, woken_at)| (id, (event, woken_at))).collect();
    let is_by_programs = files.is_by_programs;
    Ok((reader, StackSource { marked, ids, names, symbols, is_by_programs, maps }))
}

impl StackSource {
    /// Records as they are added, or those that are kept now. `written_until` tells until which ticks the trace of an earlier recorder
    /// has those of a CPU.
    pub(super) fn feed(&self, written_until: HashMap<u32, u64>) -> io::Result<StackFeed> {
        let before = self.marked.before;
        let counts = StackCounts { events: before.events, stacks: before.understood, lost: 0 };
        let mut maps = match &self.maps {
            MapKeeping::None => None,
            MapKeeping::Parts => Some(KnownMaps::default()),
            MapKeeping::Flight(maps) => Some(lock(maps).clone()),
        };
        maps.iter_mut().for_each(KnownMaps::begin_part);
        Ok(StackFeed {
            rounds: self.marked.rounds()?,
            ids: self.ids.clone(),
            names: self.names.clone(),
            symbols: self.symbols.as_ref().map(File::try_clone).transpose()?,
            callers: None,
            is_by_programs: self.is_by_programs,
            mark: None,
            is_gone: false,
            // Each stack is an event: so none has a number of those before.
            known: KnownStacks { last: before.events as u32, ..KnownStacks::default() },
            maps,
            written_until,
            counts,
            is_throttled: false,
        })
    }
}

impl StackFeed {
    /// Whether records wait for conversion.
    pub(super) fn waits(&self) -> bool {
        self.mark.is_some() || !self.is_gone && self.rounds.waits()
    }

    /// Ticks up to which records are converted.
    pub(super) fn until(&self) -> u64 {
        self.rounds.last()
    }

    /// Converts records up to the next mark, if it is known which times are wanted until then; returns whether it did.
    pub(super) fn convert(&mut self, output: &mut KernelOutput, wanted: &WantedTimes) -> Result<bool, String> {
        if self.mark.is_none() && !self.is_gone {
            self.mark = self.rounds.next().map_err(|error| {
                self.is_gone = true;
                format!("call stacks are gone: {error}")
            })?;
        }
        let Some(mark) = self.mark.filter(|mark| mark.pair.ticks <= wanted.known_until) else { return Ok(false) };
        self.mark = None;
        let entries = self.rounds.take_entries();
        let (mut converted, mut ended) = (Ok(()), Vec::new());
        // On another CPU, a new process may have a stack before the record of its beginning.
        if let Some(maps) = &mut self.maps {
            let begun = all_entries(&entries).flat_map(|(_, records)| begun_processes(records));
            begun.for_each(|(pid, parent)| maps.begin(pid, parent));
        }
        for (cpu, records) in all_entries(&entries) {
            converted = converted.and(self.records((cpu, records), &mark, (output, wanted), &mut ended));
        }
        self.maps.iter_mut().for_each(|maps| ended.iter().for_each(|pid| maps.end(*pid)));
        self.rounds.end(&mark);
        converted.and(output.flush_beside()).map_err(|error| error.to_string())?;
        self.rounds.is_done(mark.place, self.counts.events, self.counts.stacks);
        Ok(true)
    }

    fn records(
        &mut self,
        (cpu, mut records): (u32, &[u8]),
        mark: &RoundMark,
        (output, wanted): (&mut KernelOutput, &WantedTimes),
        ended: &mut Vec<i32>,
    ) -> Result<(), WriteError> {
        let mut written = Ok(());
        while let Some((record, behind)) = next_record(records) {
            records = behind;
            written = written.and(match record {
                StackRecord::Stack(stack) => {
                    let ticks = self.rounds.ticks_at(mark, stack.nanos);
                    if wanted.has(ticks) && !self.is_written(cpu, ticks) {
                        self.stack((cpu, ticks), stack, output)
                    } else {
                        Ok(())
                    }
                }
                // Also those before the times that are wanted: stacks in these need them.
                StackRecord::Map(map) => {
                    let ticks = self.rounds.ticks_at(mark, map.nanos);
                    self.maps.iter_mut().for_each(|maps| maps.learn(&map, true));
                    if self.is_written(cpu, ticks) { Ok(()) } else { self.map((cpu, ticks), &map, output) }
                }
                StackRecord::Lost { records, nanos } => {
                    // They were lost after the look before, or later.
                    let ticks = self.rounds.ticks_at(mark, nanos);
                    if wanted.overlaps(self.rounds.last().min(ticks), ticks) {
                        self.counts.lost += records;
                        output.loses_stacks(cpu, records)
                    } else {
                        Ok(())
                    }
                }
                StackRecord::Throttled => {
                    self.is_throttled = true;
                    Ok(())
                }
                StackRecord::Begun { pid, parent } => {
                    self.maps.iter_mut().for_each(|maps| maps.begin(pid, parent));
                    Ok(())
                }
                StackRecord::Ended { pid } => {
                    ended.push(pid);
                    Ok(())
                }
                StackRecord::Other => Ok(()),
            });
        }
        written
    }

    /// Whether an earlier recorder has written a record; the first one of a CPU that it has not tells that of all later ones.
    fn is_written(&mut self, cpu: u32, ticks: u64) -> bool {
        let is_written = self.written_until.get(&cpu).is_some_and(|until| ticks <= *until);
        if !is_written {
            self.written_until.remove(&cpu);
        }
        is_written
    }

    fn map(&mut self, at: (u32, u64), map: &MappedCode<'_>, output: &mut KernelOutput) -> Result<(), WriteError> {
        self.counts.events += 1;
        let fields = map_fields(map);
        output.stack_event(at, ("kymo_map", 0), (|| fields.class(), fields.bytes()))
    }

    fn stack(&mut self, at: (u32, u64), mut stack: CallStack, output: &mut KernelOutput) -> Result<(), WriteError> {
        let Some((event, woken_at)) = self.ids.get(&stack.id).copied() else { return Ok(()) };
        if event > 0 && self.is_by_programs {
            self.leave_programs(&mut stack.kernel);
        }
        let (number, is_new) = self.known.number(&stack);
        if is_new {
            self.earlier_maps(at, &stack, output)?;
            let mut fields = FieldList::default();
            fields.add("stack", KernelValue::U32(number));
            fields.add("pid", KernelValue::I32(if stack.user.is_empty() { 0 } else { stack.pid }));
            fields.add("kernel", KernelValue::Addresses(&stack.kernel));
            fields.add("user", KernelValue::Addresses(&stack.user));
            self.counts.events += 1;
            output.stack_event(at, ("kymo_stack", 0), (|| fields.class(), fields.bytes()))?;
        }
        let mut fields = FieldList::default();
        fields.add("tid", KernelValue::I32(stack.tid));
        fields.add("pid", KernelValue::I32(stack.pid));
        fields.add("event", KernelValue::U16(event));
        fields.add("stack", KernelValue::U32(number));
        let woken = woken_at.and_then(|at| stack.raw.get(usize::from(at)..)?.first_chunk());
        let woken = woken.map(|bytes| i32::from_le_bytes(*bytes));
        woken.iter().for_each(|tid| fields.add("woken_tid", KernelValue::I32(*tid)));
        (self.counts.events, self.counts.stacks) = (self.counts.events + 1, self.counts.stacks + 1);
        let class = || fields.class_with_names("event", &self.names);
        output.stack_event(at, ("kymo_callstack", woken.is_some().into()), (class, fields.bytes()))
    }

    /// Tells the maps of a process that this trace has not.
    fn earlier_maps(&mut self, at: (u32, u64), stack: &CallStack, output: &mut KernelOutput) -> Result<(), WriteError> {
        let Some(mut maps) = self.maps.take_if(|_| !stack.user.is_empty()) else { return Ok(()) };
        let told = maps.tell(stack.pid, |map| {
            let path = std::str::from_utf8(map.path).ok().filter(|_| map.build_id.is_empty());
            let id = path.and_then(|path| dump::build_id(path, map.inode)).unwrap_or_default();
            let build_id = if id.is_empty() { map.build_id } else { &id };
            self.map(at, &MappedCode { build_id, ..map.clone() }, output)
        });
        self.maps = Some(maps);
        told
    }

    /// The state of the system has these.
    pub(super) fn learn_state(&mut self, code: &[(u32, CodeMap)]) {
        let Some(maps) = &mut self.maps else { return };
        code.iter().for_each(|(pid, map)| maps.learn_state(*pid, map, true));
    }

    /// Whether files with code were not kept.
    pub(super) fn lacks_maps(&self) -> bool {
        self.maps.as_ref().is_some_and(|maps| maps.is_full)
    }

    /// Leaves out the program that has made an event, and its callers: the stack begins at the tracepoint, as those without a program.
    fn leave_programs(&mut self, frames: &mut Vec<u64>) {
        let callers = self.callers.get_or_insert_with(|| {
            // Where addresses are hidden, the frames stay.
            let text = self.symbols.as_mut().and_then(|file| read_again(file).ok()).unwrap_or_default();
            let all = symbols(&text);
            let ends = all.iter().skip(1).map(|symbol| symbol.0).chain([u64::MAX]);
            let callers =
                all.iter().zip(ends).filter(|((.., name, _), _)| CALLERS.iter().any(|it| name.starts_with(it)));
            callers.map(|(symbol, end)| (symbol.0, end)).collect()
        });
        let is_caller = |frame: &u64| {
            let behind = callers.partition_point(|(start, _)| start <= frame);
            behind > 0 && callers[behind - 1].1 > *frame
        };
        let last = frames.iter().take(CALLERS_MAX).rposition(is_caller);
        frames.drain(..last.map_or(0, |at| at + 1));
    }

    /// A part of the trace ends: it has the functions of the kernel in its stacks, and the next one begins without any stack.
    pub(super) fn end_part(&mut self, output: &mut KernelOutput) -> Result<(), String> {
        let known = std::mem::take(&mut self.known);
        self.known.last = known.last;
        self.maps.iter_mut().for_each(KnownMaps::begin_part);
        let Some(file) = self.symbols.as_mut().filter(|_| !known.kernel.is_empty()) else { return Ok(()) };
        let text = read_again(file);
        let text = text.map_err(|error| format!("the kernel does not tell the addresses of its functions: {error}"))?;
        let functions = functions(&text, &known.kernel);
        if functions.is_empty() {
            return Err(
                "the kernel hides the addresses of its functions (kernel.kptr_restrict): stacks have only numbers"
                    .to_owned(),
            );
        }
        self.counts.events += functions.len() as u64;
        let told = |function: &SymbolRange<'_>| {
            let mut fields = FieldList::default();
            fields.add("start", KernelValue::Hex(function.start));
            fields.add("end", KernelValue::Hex(function.end));
            fields.add("name", KernelValue::Text(function.name));
            fields.add("module", KernelValue::Text(function.module));
            StateEvent { name: "kymo_kernel_function", fields, code: None }
        };
        let mut all = functions.iter().map(told);
        all.try_for_each(|event| output.fact(&event)).map_err(|error| error.to_string())
    }
}

impl KnownStacks {
    /// The number of a stack, and whether it is new.
    fn number(&mut self, stack: &CallStack) -> (u32, bool) {
        let process = if stack.user.is_empty() { 0 } else { stack.pid as u64 };
        let Self { key, .. } = self;
        key.clear();
        key.extend([process].iter().chain(&stack.kernel).chain(&[0]).chain(&stack.user));
        if let Some(number) = self.numbers.get(&key[..]) {
            return (*number, false);
        }
        let length = key.len();
        if self.addresses + length > ADDRESSES_MAX {
            (self.numbers, self.addresses) = (HashMap::new(), 0);
        }
        self.addresses += length;
        // Those of callers are behind the call, which may be the last instruction of its function.
        self.kernel.extend(stack.kernel.iter().enumerate().map(|(at, address)| address - u64::from(at > 0)));
        self.last = self.last.wrapping_add(1);
        self.numbers.insert(self.key.as_slice().into(), self.last);
        (self.last, true)
    }
}

fn map_fields(map: &MappedCode<'_>) -> FieldList {
    let mut fields = FieldList::default();
    fields.add("tid", KernelValue::I32(map.tid));
    fields.add("pid", KernelValue::I32(map.pid));
    fields.add("start", KernelValue::Hex(map.start));
    fields.add("end", KernelValue::Hex(map.end));
    fields.add("pgoff", KernelValue::U64(map.offset));
    fields.add("inode", KernelValue::U64(map.inode));
    fields.add("build_id", KernelValue::Text(&dump::build_id_text(map.build_id)));
    fields.add("filename", KernelValue::Text(&String::from_utf8_lossy(map.path)));
    fields
}

/// A function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SymbolRange<'t> {
    start: u64,
    /// The address of the next one.
    end: u64,
    name: &'t str,
    /// Empty: it is none of a module.
    module: &'t str,
}

fn read_again(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).map(|_| text)
}

/// Addresses, whether they are of code, names and modules, of the text of `/proc/kallsyms`, in the order of addresses.
fn symbols(text: &str) -> Vec<(u64, bool, &str, &str)> {
    let read = |line| {
        let mut words = str::split_ascii_whitespace(line);
        let start = u64::from_str_radix(words.next()?, 16).ok().filter(|start| *start != 0)?;
        let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
        let name = words.next()?;
        let module = words.next().map_or("", |word| word.trim_matches(['[', ']']));
        Some((start, is_code, name, module))
    };
    let mut all: Vec<_> = text.lines().filter_map(read).collect();
    // Of several names of an address, the first one counts.
    all.sort_by_key(|(start, is_code, ..)| (*start, !is_code));
    all.dedup_by_key(|(start, ..)| *start);
    all
}

/// The functions with these addresses, of the text of `/proc/kallsyms`.
fn functions<'t>(text: &'t str, addresses: &BTreeSet<u64>) -> Vec<SymbolRange<'t>> {
    let all = symbols(text);
    let mut found: Vec<SymbolRange<'t>> = Vec::new();
    for address in addresses {
        let behind = all.partition_point(|(start, ..)| start <= address);
        let Some((start, true, name, module)) = behind.checked_sub(1).map(|at| all[at]) else { continue };
        if found.last().is_none_or(|last| last.start != start) {
            let end = all.get(behind).map_or(u64::MAX, |(next, ..)| *next);
            found.push(SymbolRange { start, end, name, module });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_have_their_addresses() {
        let text = "ffff0000 T _text\nffff0000 T first\nffff0100 t second\nffff0200 D data\nffff0300 t third\t[loop]\n0000 T none\n";
        let of = |addresses: &[u64]| functions(text, &addresses.iter().copied().collect());
        let (second, third) = (
            SymbolRange { start: 0xffff_0100, end: 0xffff_0200, name: "second", module: "" },
            SymbolRange { start: 0xffff_0300, end: u64::MAX, name: "third", module: "loop" },
        );
        assert_eq!(of(&[0xffff_0110, 0xffff_0180, 0xffff_0333]), [second, third]);
        assert_eq!(of(&[0xffff_0000]).first().map(|function| function.name), Some("_text"));
        assert!(of(&[0x10, 0xffff_0250]).is_empty(), "before all functions, and in data");
    }

    #[test]
    fn stacks_have_one_number_each() {
        let stack = |pid, kernel: &[u64], user: &[u64]| CallStack {
            pid,
            kernel: kernel.to_vec(),
            user: user.to_vec(),
            ..CallStack::default()
        };
        let mut known = KnownStacks::default();
        let all = [stack(1, &[1, 2], &[3]), stack(1, &[1, 2], &[3]), stack(2, &[1, 2], &[3]), stack(1, &[1], &[2, 3])];
        assert_eq!(all.map(|stack| known.number(&stack)), [(1, true), (1, false), (2, true), (3, true)]);
        // Stacks of the kernel alone are those of all processes.
        assert_eq!([5, 6].map(|pid| known.number(&stack(pid, &[9], &[]))), [(4, true), (4, false)]);
        assert_eq!(known.kernel, BTreeSet::from([1, 9]), "the call before 2 is at 1");
    }
}
