//! `kymo bpf run OBJECT --kernel`: an object of the user runs in the kernel, and this shows the output of its programs.
//!
//! ```text
//! sudo kymo bpf run OBJECT --kernel
//!   ├─ helper, as root ── loads the object, attaches its programs; they go with it ──┐ rings and tables, as files
//!   └─ the user again ── reads the object, shows records and maps ───────────────────┘
//! ```

use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant};

use kymo_recorder::kernel::ProbeRights;
use kymo_recorder::objects::{
    AttachPlace, EndedKernelObject, HelperProblem, KernelTable, ObjectHelper, ObjectProblem, ObjectRecord,
    ObjectRefusal, ObjectRequest, PrintedLine, RanProgram, RunningObject, TableEntry, WantedProgram, monotonic_ns,
};
use kymo_session::Zone;
use kymo_session::bpf::{
    BpfMapContents, BpfObject, BpfOutput, BpfValue, BpfValueType, COUNT_SECTION, ObjectMap, bpf_contents, bpf_record,
    counting_object, kernel_object,
};
use serde_json::{Value, json};

use super::RecordProblem;
use super::child::ChildProcess;
use super::signals::{Signals, forward};
use crate::CommandOutcome;
use crate::answer::words::InstantFormat;
use crate::arguments::BpfRunArguments;
use crate::bpf::{self, BpfPrinter, TracedOutput};
use crate::message::{plain_output, write_line};
use crate::show::{self, counted};
use crate::stop::StopReason;

/// Records of a trace may come so late for the order of time.
const LATE_MAX_NS: u64 = 1_000_000_000;
/// Members that tell the time of a record, in the order of preference.
const TIME_MEMBERS: [&str; 5] = ["time_ns", "timestamp_ns", "ts_ns", "timestamp", "ts"];
/// Sections of variables and functions of the kernel.
const OF_KERNEL: [&str; 2] = [".kconfig", ".ksyms"];
/// Between two looks at signals and clocks.
const LOOK: Duration = Duration::from_millis(10);

pub(super) fn run(arguments: &BpfRunArguments) -> Result<CommandOutcome, RecordProblem> {
    let rights = ProbeRights { objects: true, ..ProbeRights::default() };
    super::kernel::become_user(&rights)?;
    let path = &arguments.object;
    let name = super::kernel::helper(&rights)?;
    // First: the helper ends with the connection, also where the object cannot be read.
    let helper = ObjectHelper::connect(&name).map_err(broken)?;
    let (object, bytes) = bpf::object_and_bytes(path)?;
    let request = request(path, &object)?;
    let signals = Signals::catch()?;
    let bytes = kernel_object(&bytes).unwrap_or(bytes);
    let counting = counting_object(&bytes);
    let running = helper.load(&bytes, counting.as_deref(), &request).map_err(|problem| refused(path, problem))?;
    if counting.is_some() && !running.counts_losses() {
        write_line(
            "note: records that find no room in ring buffers are not counted: the kernel does not take programs that do",
        );
    }
    if let Some(why) = running.no_lines() {
        write_line(&format!("note: lines of bpf_printk are not shown: {why}"));
    }
    let run = KernelRun::new(running, &object, arguments)?;
    let child = match &arguments.command[..] {
        [] => None,
        words => Some(ChildProcess::start_alone(words).map_err(|error| {
            StopReason::Expression(format!("error: {} cannot be started: {error}\n", words[0].display()))
        })?),
    };
    run.run(&signals, child.as_ref())
}

/// Programs of the object that are for the kernel.
fn request(path: &Path, object: &BpfObject) -> Result<ObjectRequest, StopReason> {
    let stop = |why: &str| {
        let name = path.display();
        let help = format!("help: `kymo bpf show {name}` tells where each program can run\n");
        StopReason::Expression(format!("error: {name}: {why}\n{help}"))
    };
    let Some(types) = object.types() else {
        let why = "it has no types (BTF), by which its maps and records are described: `clang -g` writes them";
        return Err(StopReason::unanswerable(&format!("{}: {why}", path.display())));
    };
    if (0..types.types().len() as u32).any(|number| OF_KERNEL.contains(&types.name(number))) {
        let why = "it uses variables or functions of the kernel (`__kconfig`, `__ksym`), which its loader, the crate `aya`, does \
                   not have";
        return Err(stop(why));
    }
    let mut programs = Vec::new();
    for program in object.programs() {
        if program.attach.events().is_some() {
            write_line(&format!("note: program {} is for events of traces, and does not run here", program.name));
            continue;
        }
        AttachPlace::of(&program.section).map_err(|why| stop(&format!("program {}: {why}", program.name)))?;
        programs.push(WantedProgram { name: program.name.clone(), section: program.section.clone() });
    }
    if programs.is_empty() {
        return Err(stop("no program of the object is for the kernel"));
    }
    Ok(ObjectRequest { programs, lines: object.prints() })
}

fn refused(path: &Path, problem: ObjectProblem) -> RecordProblem {
    let name = path.display();
    match problem {
        ObjectProblem::Refused(ObjectRefusal { program, why, help, is_forbidden }) => {
            let program = program.map_or_else(String::new, |program| format!("program {program}: "));
            let rights = "`sudo kymo bpf run ... --kernel` has the rights, and so has a process with CAP_BPF and CAP_PERFMON; \
                          `kymo doctor` says what is missing";
            let help = help.or_else(|| is_forbidden.then(|| rights.to_owned()));
            let help = help.map_or_else(String::new, |help| format!("help: {help}\n"));
            StopReason::Expression(format!("error: {name}: {program}{}\n{help}", why.trim_end())).into()
        }
        ObjectProblem::Helper(problem) => StopReason::Expression(format!("error: {name}: {problem}\n")).into(),
    }
}

/// The helper is gone.
fn broken(problem: HelperProblem) -> RecordProblem {
    RecordProblem::Stop(StopReason::Output(io::Error::other(problem)))
}

/// Something that a program has put out.
enum ObjectOutput<'o> {
    Record(&'o ObjectMap, BpfValue),
    Line(String),
}

/// An object that runs, until it ends.
struct KernelRun<'a> {
    running: RunningObject,
    object: &'a BpfObject,
    arguments: &'a BpfRunArguments,
    printer: BpfPrinter,
    /// Where records and lines go, if they are not shown.
    file: Option<TracedOutput<'a>>,
    begun: Instant,
}

impl<'a> KernelRun<'a> {
    fn new(
        running: RunningObject,
        object: &'a BpfObject,
        arguments: &'a BpfRunArguments,
    ) -> Result<Self, RecordProblem> {
        let printer = BpfPrinter::new(arguments.json, InstantFormat::new(true, Zone::Local, false));
        let file = arguments.output.as_deref().map(|folder| {
            // As recordings of the kernel: it tells of processes of other users, too.
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let mut file = TracedOutput::new(folder, &arguments.object, object, true);
            file.begin(running.offset_ns()).map(|()| file)
        });
        Ok(Self { running, object, arguments, printer, file: file.transpose()?, begun: Instant::now() })
    }

    fn run(mut self, signals: &Signals, child: Option<&ChildProcess>) -> Result<CommandOutcome, RecordProblem> {
        let duration = self.arguments.duration.map(Duration::from_nanos);
        let mut status = None;
        loop {
            status = status.or_else(|| child.and_then(ChildProcess::status));
            let is_over = status.is_some() || duration.is_some_and(|duration| self.begun.elapsed() >= duration);
            let signal = signals.take();
            if let (Some(signal), Some(child)) = (signal, child) {
                forward(signal, child);
            }
            // A command that gets a signal ends by itself.
            if is_over || signal.is_some() && child.is_none() {
                break;
            }
            self.pass_on()?;
            let left = duration.map_or(LOOK, |duration| duration.saturating_sub(self.begun.elapsed()));
            self.running.wait(left.min(LOOK));
        }
        let ended = self.running.end().map_err(broken)?;
        while self.pass_on()? {}
        let is_whole = self.end(&ended)?;
        Ok(match status {
            Some(status) if status > 0 || is_whole => CommandOutcome::Status(status),
            _ if is_whole => CommandOutcome::Complete,
            _ => CommandOutcome::Incomplete,
        })
    }

    /// Shows records and lines that came, in the order of time; whether there were records.
    fn pass_on(&mut self) -> Result<bool, RecordProblem> {
        let Self { running, object, printer, file, .. } = self;
        let (begun_ns, offset_ns) = (running.begun_ns(), running.offset_ns());
        let (now, mut all) = (monotonic_ns(), Vec::new());
        let lines = running.drain(|ObjectRecord { map, nanos, bytes }| {
            if let Some(map) = object.maps().iter().find(|known| known.name == map) {
                let value = bpf_record(map, bytes);
                let nanos = nanos.or_else(|| record_time(map, &value, begun_ns, monotonic_ns())).unwrap_or(now);
                all.push((nanos, ObjectOutput::Record(map, value)));
            }
        })?;
        let has_records = !all.is_empty();
        all.extend(
            lines.into_iter().map(|PrintedLine { nanos, text }| (nanos.unwrap_or(now), ObjectOutput::Line(text))),
        );
        all.sort_by_key(|(nanos, _)| *nanos);
        for (nanos, output) in all {
            let nanos = Some(unix(nanos, offset_ns));
            let output = match &output {
                ObjectOutput::Record(map, value) => BpfOutput::Record { nanos, map, value: value.clone() },
                ObjectOutput::Line(text) => BpfOutput::Line { nanos, text },
            };
            match file {
                Some(file) => file.output(&output)?,
                None => printer.output(&output)?,
            }
        }
        if let Some(file) = file {
            file.settle(unix(now.saturating_sub(LATE_MAX_NS), offset_ns))?;
        }
        plain_output().flush()?;
        Ok(has_records)
    }

    /// Shows maps and counts; whether nothing was lost.
    fn end(&mut self, ended: &EndedKernelObject) -> Result<bool, RecordProblem> {
        let contents = self.contents(&ended.tables);
        let all_lost: Vec<(String, u64)> = self.lost(ended);
        if let Some(file) = self.file.take() {
            let lost = all_lost.iter().map(|(_, records)| records).sum();
            file.finish(Some(unix(monotonic_ns(), self.running.offset_ns())), &contents, lost)?;
        }
        self.printer.maps(&contents)?;
        let lost = all_lost.iter().map(|(map, records)| json!({ "kind": "lost", "map": map, "records": records }));
        let programs = ended.programs.iter().map(|program| self.program_json(program));
        let objects: Vec<Value> = lost.chain(programs).collect();
        let ran: Vec<String> = ended.programs.iter().map(program_words).collect();
        self.printer.end(&format!("programs ran: {}", ran.join(", ")), &objects)?;
        let mut is_whole = true;
        for (map, records) in &all_lost {
            write_line(&format!("warning: {} found no room in {map}", counted(*records, "record")));
            is_whole = false;
        }
        for program in ended.programs.iter().filter(|program| program.missed > 0) {
            let times = counted(program.missed, "time");
            write_line(&format!(
                "warning: program {} did not run {times}, because it ran already on that CPU",
                program.name
            ));
            is_whole = false;
        }
        for table in &ended.tables {
            if let Some(problem) = &table.problem {
                write_line(&format!("warning: map {} cannot be read: {problem}", table.name));
                is_whole = false;
            }
        }
        Ok(is_whole)
    }

    /// Records that found no room: in the only ring buffer, or in any of them; and in perf rings.
    fn lost(&self, ended: &EndedKernelObject) -> Vec<(String, u64)> {
        let count = ended.tables.iter().find(|table| table.name == COUNT_SECTION).and_then(|table| {
            let (_, values) = table.entries.first()?;
            values.first()?.1.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
        });
        let mut rings = self.object.maps().iter().filter(|map| map.type_name() == "ringbuf");
        let name = match (rings.next(), rings.next()) {
            (Some(only), None) => only.name.clone(),
            _ => "ring buffers".to_owned(),
        };
        let counted = count.filter(|count| *count > 0).map(|count| (name, count));
        counted.into_iter().chain(ended.lost.iter().cloned()).collect()
    }

    /// Tables of the object in its order, without constants.
    fn contents(&self, tables: &[KernelTable]) -> Vec<BpfMapContents> {
        let maps = self.object.maps().iter().filter(|map| !map.is_constant());
        let found = maps.filter_map(|map| Some((map, tables.iter().find(|table| table.name == map.name)?)));
        let entries = |map, table: &'_ KernelTable| {
            bpf_contents(map, table.entries.iter().map(|entry| (&entry.0, used(map, entry))))
        };
        found.map(|(map, table)| entries(map, table)).collect()
    }

    fn program_json(&self, program: &RanProgram) -> Value {
        let mut programs = self.object.programs().iter();
        let section = programs.find(|known| known.name == program.name).map(|known| &known.section);
        json!({
            "kind": "program", "name": program.name, "section": section, "runs": program.runs, "run_ns": program.run_ns,
            "missed": program.missed,
        })
    }
}

/// Values of CPUs. Those that never used a value of their own are left out, as they are where programs run in user space.
fn used<'t>(map: &ObjectMap, (_, values): &'t TableEntry) -> Vec<(usize, &'t [u8])> {
    let is_per_cpu = map.type_name().contains("percpu");
    let all = || values.iter().map(|(cpu, value)| (*cpu, &**value));
    let used: Vec<_> = all().filter(|(_, value)| !is_per_cpu || value.iter().any(|byte| *byte != 0)).collect();
    if used.is_empty() { all().take(1).collect() } else { used }
}

fn program_words(program: &RanProgram) -> String {
    let RanProgram { name, runs, run_ns, .. } = program;
    match runs {
        None => format!("{name} an unknown number of times"),
        Some(0) => format!("{name} 0 times"),
        Some(runs) => {
            let each = show::duration(i128::from(run_ns / runs));
            format!("{name} {} ({each} each)", counted(*runs, "time"))
        }
    }
}

fn unix(monotonic_ns: u64, offset_ns: i64) -> i64 {
    i64::try_from(monotonic_ns).unwrap_or(i64::MAX).saturating_add(offset_ns)
}

/// The time of a record by `CLOCK_MONOTONIC`, if one of its members tells it: an unsigned integer of 64 bits between two times.
fn record_time(map: &ObjectMap, value: &BpfValue, earliest: u64, latest: u64) -> Option<u64> {
    let (Some(BpfValueType::Structure { members: types, .. }), BpfValue::Members(members)) = (&map.value, value) else {
        return None;
    };
    TIME_MEMBERS.iter().find_map(|name| {
        let at = types.iter().position(|member| &*member.name == *name)?;
        let is_time = types[at].value_type == BpfValueType::Integer { bits: 64, is_signed: false };
        match &members.get(at)?.1 {
            BpfValue::Integer(time) if is_time => {
                u64::try_from(*time).ok().filter(|time| (earliest..=latest).contains(time))
            }
            _ => None,
        }
    })
}
