//! Users' eBPF programs over the events of traces.
//!
//! ```text
//! object ── programs with SEC("kymo/EVENT") ── for each class of events: a structure of its fields ──┐
//! events in the order of time ──> context, moment ──> the program runs ──> maps, records, lines <──────┘
//! ```
//!
//! A program is made for each class of events whose name matches: its structure has the class's fields, at the places where the program has
//! them, and CO-RE relocations tell it which ones the class has. One thread runs the programs: their maps see the events in the order
//! of time.

mod context;
mod fields;
mod program;
mod trace;

use std::collections::HashMap;
use std::sync::Arc;

use kymo_bpf::LinkedProgram;
pub use kymo_bpf::{
    AttachPoint, BpfObject, BpfValue, BpfValueMember, BpfValueType, COUNT_SECTION, MachineMaps, ObjectMap,
    ObjectProblem, ObjectProgram, counting_object, kernel_object,
};
use kymo_decode::Compile;
use kymo_ir::machine::{BpfMachine, MachineProgram, RunInput, RunOutputs};
use kymo_jit::JitEngine;
use kymo_schema::glob;

pub use self::trace::{BpfClock, BpfTrace, BpfTraceProblem};

use self::context::{ContextPlan, MomentPlan};
use self::program::EventProgram;
use crate::messages::{ClassFields, EventAt, MessageBatch, MessageRow, MessagesFailure, MessagesQuestion};
use crate::open::Session;
use crate::open::report::Report;
use crate::open::select::Selection;

/// Which events programs run over, of those that they are for.
#[derive(Clone, Debug, Default)]
pub struct BpfQuestion {
    /// Only those; its patterns of names are replaced by those of the programs.
    pub selection: Selection,
    /// Not before, in nanoseconds since the clock's origin.
    pub begin_ns: Option<i64>,
    /// Not after.
    pub end_ns: Option<i64>,
}

/// Something that a program has put out.
#[derive(Debug)]
pub enum BpfOutput<'a> {
    /// A record of a ring.
    Record {
        /// The time of its event.
        nanos: Option<i64>,
        /// The ring.
        map: &'a ObjectMap,
        /// Its value; bytes if its type is unknown.
        value: BpfValue,
    },
    /// A line of `bpf_printk`.
    Line {
        /// The time of its event.
        nanos: Option<i64>,
        /// The line.
        text: &'a str,
    },
}

/// How often a program ran.
#[derive(Clone, Debug, Default)]
pub struct BpfProgramRuns {
    /// Its name.
    pub name: String,
    /// Names of events that it is for.
    pub events: String,
    /// How often it ran.
    pub runs: u64,
    /// How often it stopped before its end.
    pub stopped: u64,
    /// Why it did for the first time.
    pub first_stop: Option<String>,
    /// Classes of events that it cannot run over, and why.
    pub unfit: Vec<(String, String)>,
}

/// An entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct BpfEntry {
    /// Its key.
    pub key: BpfValue,
    /// Its values, each with its CPU: 0 if CPUs share it.
    pub values: Vec<(usize, BpfValue)>,
}

/// A map at the end.
#[derive(Clone, Debug)]
pub struct BpfMapContents {
    /// The map.
    pub map: ObjectMap,
    /// Its entries; of arrays, those that are not 0.
    pub entries: Vec<BpfEntry>,
    /// Entries of an array that are 0.
    pub zeros: u64,
}

/// The result of programs.
#[derive(Debug)]
pub struct BpfRuns {
    /// The programs.
    pub programs: Vec<BpfProgramRuns>,
    /// Their maps, without rings and constants.
    pub maps: Vec<BpfMapContents>,
    /// Records that found no room in a ring.
    pub lost: u64,
    /// The time of the last event that a program ran over.
    pub end_ns: Option<i64>,
    /// The unreadable parts and the assumptions.
    pub report: Report,
}

/// Why programs do not run.
#[derive(Debug, thiserror::Error)]
pub enum BpfFailure {
    /// No program is for events.
    #[error("no program of the object is for events of traces: these are in sections SEC(\"kymo/EVENT\")")]
    NoProgram,
    /// A program cannot run at all.
    #[error("program {name}: {problem}")]
    Program {
        /// Its name.
        name: String,
        /// Why.
        problem: ObjectProblem,
    },
    /// The maps cannot be made.
    #[error(transparent)]
    Maps(#[from] ObjectProblem),
    /// Events cannot be read.
    #[error(transparent)]
    Messages(#[from] MessagesFailure),
}

/// A program for a class of events.
struct ClassProgram {
    /// Its number among those that are for events.
    number: usize,
    program: EventProgram,
    linked: LinkedProgram,
    context: ContextPlan,
    moment: MomentPlan,
}

/// Programs that run.
struct BpfRunner<'o> {
    object: &'o BpfObject,
    programs: Vec<(&'o ObjectProgram, BpfProgramRuns)>,
    maps: MachineMaps,
    machine: BpfMachine,
    /// When programs become machine code, and the compiler, if there is one.
    compile: Compile,
    engine: Option<JitEngine>,
    /// Programs for each class that has occurred; the class is kept, so that no other one has its address.
    classes: HashMap<usize, (Arc<ClassFields>, Vec<ClassProgram>)>,
    lost: u64,
    end_ns: Option<i64>,
}

/// Why a program cannot run in user space, wherever it attaches; `None`: it can.
#[must_use]
pub fn bpf_refusal(object: &BpfObject, program: &ObjectProgram) -> Option<ObjectProblem> {
    let linked = object.link(program, None);
    linked.and_then(|linked| object.for_machine(&linked, &object.machine_maps())).err()
}

impl Session {
    /// Runs the programs of an object that are for events of traces over the events, in the order of time; their records and lines are
    /// handed over as they come.
    ///
    /// # Errors
    ///
    /// A program cannot run, or nothing can be read.
    pub fn run_bpf(
        self: &Arc<Self>,
        object: &BpfObject,
        question: &BpfQuestion,
        mut output: impl FnMut(BpfOutput<'_>),
    ) -> Result<BpfRuns, BpfFailure> {
        let mut runner = BpfRunner::new(object, self.compile)?;
        let patterns = runner.programs.iter().map(|(_, runs)| runs.events.clone()).collect();
        let selection = Selection { events: patterns, ..question.selection.clone() };
        let (begin_ns, end_ns) = (question.begin_ns, question.end_ns);
        let wanted = MessagesQuestion { selection, begin_ns, end_ns, stream_intersection: false, marks: false };
        let mut messages = self.messages(&wanted)?;
        for batch in messages.by_ref() {
            let batch = batch?;
            for row in batch.rows() {
                if let MessageRow::Event(at) = row {
                    runner.event(&batch, *at, &mut output);
                }
            }
        }
        Ok(runner.finish(messages.report().clone()))
    }
}

impl<'o> BpfRunner<'o> {
    fn new(object: &'o BpfObject, compile: Compile) -> Result<Self, BpfFailure> {
        let mut programs = Vec::new();
        for program in object.programs() {
            let Some(events) = program.attach.events() else { continue };
            if let Some(problem) = bpf_refusal(object, program) {
                return Err(BpfFailure::Program { name: program.name.clone(), problem });
            }
            let (name, events) = (program.name.clone(), events.to_owned());
            programs.push((program, BpfProgramRuns { name, events, ..BpfProgramRuns::default() }));
        }
        if programs.is_empty() {
            return Err(BpfFailure::NoProgram);
        }
        let maps = object.machine_maps();
        let machine = object.machine(&maps)?;
        let engine = if compile == Compile::Never { None } else { JitEngine::new() };
        Ok(Self { object, programs, maps, machine, compile, engine, classes: HashMap::new(), lost: 0, end_ns: None })
    }

    fn event(&mut self, batch: &MessageBatch, at: EventAt, output: &mut impl FnMut(BpfOutput<'_>)) {
        let class = batch.class_fields(at);
        let key = Arc::as_ptr(class) as usize;
        if !self.classes.contains_key(&key) {
            let programs = self.programs_for(batch, at);
            self.classes.insert(key, (Arc::clone(class), programs));
        }
        let nanos = batch.nanos(at);
        let (_, programs) = self.classes.get_mut(&key).expect("they were just made");
        for program in programs {
            let runs = &mut self.programs[program.number].1;
            runs.runs += 1;
            self.end_ns = nanos.or(self.end_ns);
            let moment = program.moment.at(batch, at);
            let result = match program.context.fill(batch, at) {
                Some((mut context, data)) => {
                    let input = RunInput { context: &mut context, data: &data, moment: &moment };
                    program.program.run(&mut self.machine, self.engine.as_ref(), input).map_err(|fault| {
                        let line = self.object.line(&program.linked, fault.at).map(|line| format!(" ({line})"));
                        format!("{fault}{}", line.unwrap_or_default())
                    })
                }
                None => Err("the event's fields cannot be read".to_owned()),
            };
            if let Err(why) = result {
                runs.stopped += 1;
                runs.first_stop.get_or_insert(why);
            }
            let outputs = self.machine.take_outputs();
            self.lost += outputs.lost;
            put_out(self.object, &self.maps, nanos, &outputs, output);
        }
    }

    /// Programs for the class of an event; classes that a program does not fit are noted.
    fn programs_for(&mut self, batch: &MessageBatch, at: EventAt) -> Vec<ClassProgram> {
        let name = event_name(batch, at);
        let (object, maps) = (self.object, &self.maps);
        let mut made = Vec::new();
        for (number, (program, runs)) in self.programs.iter_mut().enumerate() {
            if !glob::matches(&runs.events, &name) {
                continue;
            }
            match class_program(object, program, maps, batch, at) {
                Ok((program, linked, context)) => {
                    let program = EventProgram::new(program, self.compile);
                    let moment = MomentPlan::new(&program.helpers(), batch, at);
                    made.push(ClassProgram { number, program, linked, context, moment });
                }
                Err(why) => {
                    let unfit = (name.clone(), why);
                    if !runs.unfit.contains(&unfit) {
                        runs.unfit.push(unfit);
                    }
                }
            }
        }
        made
    }

    fn finish(self, report: Report) -> BpfRuns {
        let contents = self.machine.maps().iter().zip(&self.maps.of_object).filter_map(|(found, number)| {
            let map = &self.object.maps()[*number];
            let is_table = found.definition().map_type.is_table();
            let entries = found.entries().map(|entry| (entry.key, entry.values));
            (is_table && !map.is_constant()).then(|| bpf_contents(map, entries))
        });
        let maps = contents.collect();
        let programs = self.programs.into_iter().map(|(_, runs)| runs).collect();
        BpfRuns { programs, maps, lost: self.lost, end_ns: self.end_ns, report }
    }
}

type MadeProgram = (MachineProgram, LinkedProgram, ContextPlan);

fn class_program(
    object: &BpfObject,
    program: &ObjectProgram,
    maps: &MachineMaps,
    batch: &MessageBatch,
    at: EventAt,
) -> Result<MadeProgram, String> {
    let context = ContextPlan::new(object, program, batch.class_fields(at))?;
    let linked = object.link(program, context.types.as_ref()).map_err(|problem| problem.to_string())?;
    let program = object.for_machine(&linked, maps).map_err(|problem| problem.to_string())?;
    Ok((program, linked, context))
}

fn event_name(batch: &MessageBatch, at: EventAt) -> String {
    let facts = batch.facts();
    let stream = &facts.streams[batch.stream(at)];
    let class = &facts.traces[stream.trace].class.stream_classes[stream.class];
    class.event_classes.get(batch.class(at)).and_then(|class| class.name.clone()).unwrap_or_default()
}

fn put_out(
    object: &BpfObject,
    maps: &MachineMaps,
    nanos: Option<i64>,
    outputs: &RunOutputs,
    output: &mut impl FnMut(BpfOutput<'_>),
) {
    for record in &outputs.records {
        let map = &object.maps()[maps.of_object[record.map]];
        output(BpfOutput::Record { nanos, map, value: value(map.value.as_ref(), &record.bytes) });
    }
    for text in &outputs.lines {
        output(BpfOutput::Line { nanos, text });
    }
}

/// The value of a record of a ring; bytes if its type is unknown.
#[must_use]
pub fn bpf_record(map: &ObjectMap, bytes: &[u8]) -> BpfValue {
    value(map.value.as_ref(), bytes)
}

fn value(value_type: Option<&BpfValueType>, bytes: &[u8]) -> BpfValue {
    value_type.map_or_else(|| BpfValue::Bytes(bytes.to_vec()), |value_type| value_type.value(bytes))
}

/// The contents of a map with these entries: keys, and values of CPUs. Of arrays, entries that are 0 are only counted.
pub fn bpf_contents<'e, K: AsRef<[u8]>>(
    map: &ObjectMap,
    all: impl IntoIterator<Item = (K, Vec<(usize, &'e [u8])>)>,
) -> BpfMapContents {
    let is_array = map.type_name().ends_with("array") && !map.is_variables();
    let (mut entries, mut zeros) = (Vec::new(), 0);
    for (key, values) in all {
        if is_array && values.iter().all(|(_, bytes)| bytes.iter().all(|byte| *byte == 0)) {
            zeros += 1;
            continue;
        }
        let values = values.iter().map(|(cpu, bytes)| (*cpu, value(map.value.as_ref(), bytes)));
        entries.push(BpfEntry { key: value(map.key.as_ref(), key.as_ref()), values: values.collect() });
    }
    BpfMapContents { map: map.clone(), entries, zeros }
}
