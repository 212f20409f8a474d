//! `kymo bpf`

mod printer;
mod traced;
mod words;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use kymo_session::bpf::{
    AttachPoint, BpfFailure, BpfObject, BpfOutput, BpfProgramRuns, BpfQuestion, BpfRuns, BpfValueType, ObjectMap,
    ObjectProgram, bpf_refusal,
};
use kymo_session::{Session, Zone};
use serde_json::{Value, json};

use crate::CommandOutcome;
use crate::answer::words::InstantFormat;
use crate::arguments::{BpfArguments, BpfCommand, BpfRunArguments, BpfShowArguments};
use crate::message::plain_output;
use crate::select::selection;
use crate::show::{self, counted};
use crate::stop::StopReason;
pub(crate) use printer::{BpfPrinter, contents_json};
pub(crate) use traced::TracedOutput;
pub(crate) use words::show_map;

/// Bytes of an object at most.
const OBJECT_MAX: u64 = 64 << 20;
/// Classes that a program does not fit, of which the reasons are shown.
const UNFIT_MAX: usize = 5;

pub(crate) fn run(arguments: &BpfArguments) -> Result<CommandOutcome, StopReason> {
    match &arguments.command {
        BpfCommand::Show(arguments) => show(arguments),
        BpfCommand::Run(arguments) if arguments.kernel => in_kernel(arguments),
        BpfCommand::Run(arguments) => match crate::open(&arguments.common, 0) {
            Some(session) => run_over(&Arc::new(session), arguments),
            None => Ok(CommandOutcome::Incomplete),
        },
    }
}

#[cfg(target_os = "linux")]
fn in_kernel(arguments: &BpfRunArguments) -> Result<CommandOutcome, StopReason> {
    crate::record::run_object(arguments)
}

#[cfg(not(target_os = "linux"))]
fn in_kernel(_arguments: &BpfRunArguments) -> Result<CommandOutcome, StopReason> {
    Err(StopReason::Usage("`--kernel` is for Linux: other systems have no eBPF in their kernels".to_owned()))
}

fn object(path: &Path) -> Result<BpfObject, StopReason> {
    object_and_bytes(path).map(|(object, _)| object)
}

/// An object, and the bytes that it was read from.
pub(crate) fn object_and_bytes(path: &Path) -> Result<(BpfObject, Vec<u8>), StopReason> {
    let name = path.display();
    let size = std::fs::metadata(path).map_err(|error| StopReason::unanswerable(&format!("{name}: {error}")))?.len();
    if size > OBJECT_MAX {
        let sentence = format!("{name}: it has {size} bytes; objects have at most {OBJECT_MAX}");
        return Err(StopReason::unanswerable(&sentence));
    }
    let bytes = std::fs::read(path).map_err(|error| StopReason::unanswerable(&format!("{name}: {error}")))?;
    let object = BpfObject::read(&bytes).map_err(|problem| StopReason::unanswerable(&format!("{name}: {problem}")))?;
    Ok((object, bytes))
}

/// Why a program does not run in user space; `None`: it does.
fn refusal(object: &BpfObject, program: &ObjectProgram) -> Option<String> {
    match &program.attach {
        AttachPoint::Event(_) | AttachPoint::EventFilter(_) => {
            bpf_refusal(object, program).map(|problem| problem.to_string())
        }
        AttachPoint::Kernel { place, .. } => Some(format!("it attaches to {place}")),
        AttachPoint::Unknown => {
            Some(format!("section {} is none of libbpf's, and none of `kymo/EVENT`", program.section))
        }
    }
}

fn show(arguments: &BpfShowArguments) -> Result<CommandOutcome, StopReason> {
    let object = object(&arguments.object)?;
    let mut is_refused = false;
    let in_recorded = refused_in_recorded(&arguments.object);
    let programs: Vec<ShownProgram<'_>> =
        object.programs().iter().map(|program| ShownProgram::new(&object, program, &in_recorded)).collect();
    for ShownProgram { program, refusal, .. } in &programs {
        is_refused |= program.attach.events().is_some() && refusal.is_some();
    }
    let mut out = plain_output();
    if arguments.json {
        let programs: Vec<Value> = programs.iter().map(program_json).collect();
        let maps: Vec<Value> = object.maps().iter().map(map_json).collect();
        let has_types = object.types().is_some();
        let all = json!({ "license": object.license(), "types": has_types, "programs": programs, "maps": maps });
        writeln!(out, "{all}")?;
    } else {
        show_object(&object, &programs, &mut out)?;
    }
    out.flush()?;
    Ok(if is_refused { CommandOutcome::Incomplete } else { CommandOutcome::Complete })
}

fn show_object(object: &BpfObject, programs: &[ShownProgram<'_>], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "license: {}", object.license().unwrap_or("none"))?;
    if object.types().is_none() {
        writeln!(out, "types: none; `clang -g` writes them, and maps and fields need them")?;
    }
    for ShownProgram { program, refusal, in_recorded } in programs {
        let size = counted(program.instructions() as u64, "instruction");
        writeln!(out, "\nprogram {}: {}, {size}", program.name, program.section)?;
        if let (Some(_), Some(context)) = (program.attach.events(), context(object, program)) {
            writeln!(out, "  context: {}", words::definition(&context))?;
        }
        match refusal {
            None => writeln!(out, "  runs in user space: yes, over events of traces")?,
            Some(why) => writeln!(out, "  runs in user space: no, {why}")?,
        }
        match in_recorded {
            Some(None) => writeln!(out, "  runs in recorded programs: yes, by `kymo record --bpf`")?,
            Some(Some(why)) => writeln!(out, "  runs in recorded programs: no, {why}")?,
            None => {}
        }
    }
    for map in object.maps() {
        writeln!(out, "\nmap {}: {}, {}", map.name, map.type_name(), size(map))?;
        let has_keys = map.key_bytes > 0 && !map.is_variables();
        let parts = [("key", map.key.as_ref().filter(|_| has_keys)), ("value", map.value.as_ref())];
        for (name, part) in parts {
            if let Some(part) = part {
                writeln!(out, "  {name}: {}", words::definition(part))?;
            }
        }
        if let Err(why) = map.definition() {
            writeln!(out, "  in user space: no, it is one {why}")?;
        }
    }
    Ok(())
}

/// A program of an object, and where it runs.
struct ShownProgram<'o> {
    program: &'o ObjectProgram,
    /// Why not over events of traces.
    refusal: Option<String>,
    /// A program for events of programs: why not in these; the inner `None`: it does.
    in_recorded: Option<Option<String>>,
}

impl<'o> ShownProgram<'o> {
    fn new(object: &BpfObject, program: &'o ObjectProgram, refused: &Result<Vec<(String, String)>, String>) -> Self {
        let why = || match refused {
            Ok(refused) => refused.iter().find(|(name, _)| *name == program.name).map(|(_, why)| why.clone()),
            Err(why) => Some(why.clone()),
        };
        let in_recorded = program.attach.events().map(|_| why());
        Self { program, refusal: refusal(object, program), in_recorded }
    }
}

/// Programs that cannot be in recorded programs.
#[cfg(target_os = "linux")]
fn refused_in_recorded(file: &Path) -> Result<Vec<(String, String)>, String> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = std::fs::read(file).map_err(|problem| problem.to_string())?;
    kymo_recorder::user_programs::refused_programs(&kymo_recorder::user_programs::ObjectOptions::new(&name, &bytes))
}

/// Programs that cannot be in recorded programs.
#[cfg(not(target_os = "linux"))]
fn refused_in_recorded(_: &Path) -> Result<Vec<(String, String)>, String> {
    Err("programs are recorded on Linux".to_owned())
}

fn context(object: &BpfObject, program: &ObjectProgram) -> Option<BpfValueType> {
    let types = object.types()?;
    Some(BpfValueType::of(types, types.first_argument(&program.name)?))
}

fn size(map: &ObjectMap) -> String {
    if map.type_name() == "ringbuf" {
        return show::bytes(map.entries_max.into());
    }
    let of_each =
        format!("keys of {} and values of {}", show::bytes(map.key_bytes.into()), show::bytes(map.value_bytes.into()));
    if map.is_variables() {
        show::bytes(map.value_bytes.into())
    } else if map.entries_max == 1 {
        format!("1 entry, {of_each}")
    } else {
        format!("at most {} entries, {of_each}", map.entries_max)
    }
}

fn program_json(ShownProgram { program, refusal, in_recorded }: &ShownProgram<'_>) -> Value {
    let (place, target) = match &program.attach {
        AttachPoint::Event(events) | AttachPoint::EventFilter(events) => ("events of traces", events.as_str()),
        AttachPoint::Kernel { place, target } => (*place, target.as_str()),
        AttachPoint::Unknown => ("unknown", ""),
    };
    json!({
        "name": program.name, "section": program.section, "place": place, "target": target,
        "instructions": program.instructions(), "user_space": refusal.is_none(), "refusal": refusal,
        "recorded_programs": in_recorded.as_ref().is_some_and(Option::is_none),
        "recorded_programs_refusal": in_recorded.as_ref().and_then(Option::as_ref),
    })
}

fn map_json(map: &ObjectMap) -> Value {
    json!({
        "name": map.name, "type": map.type_name(), "key_size": map.key_bytes, "value_size": map.value_bytes,
        "max_entries": map.entries_max, "variables": map.is_variables(), "read_only": map.is_read_only,
        "key": map.key.as_ref().map(words::type_json), "value": map.value.as_ref().map(words::type_json),
        "user_space": map.definition().is_ok(), "refusal": map.definition().err(),
    })
}

fn run_over(session: &Arc<Session>, arguments: &BpfRunArguments) -> Result<CommandOutcome, StopReason> {
    let object = object(&arguments.object)?;
    let events: Vec<String> = object
        .programs()
        .iter()
        .filter_map(|program| match &program.attach {
            AttachPoint::Event(events) | AttachPoint::EventFilter(events) => Some(events.clone()),
            _ => None,
        })
        .collect();
    let selection = selection(session, &events, arguments.filter.as_deref(), Zone::Local)?;
    let question = BpfQuestion { selection, ..BpfQuestion::default() };
    let times = InstantFormat::new(session.times_are_unix(), Zone::Local, false);
    let mut printer = BpfPrinter::new(arguments.json, times);
    let mut file = arguments
        .output
        .as_deref()
        .map(|folder| TracedOutput::new(folder, &arguments.object, &object, session.times_are_unix()));
    let mut written: Result<(), StopReason> = Ok(());
    let put = |output: BpfOutput<'_>| {
        if written.is_ok() {
            written = match &mut file {
                Some(file) => file.output(&output),
                None => printer.output(&output).map_err(StopReason::from),
            };
        }
    };
    let runs = session.run_bpf(&object, &question, put).map_err(|failure| stop(&arguments.object, &failure))?;
    written?;
    if let Some(file) = file {
        file.finish(runs.end_ns, &runs.maps, runs.lost)?;
    }
    printer.maps(&runs.maps)?;
    let objects: Vec<Value> = runs.programs.iter().map(runs_json).collect();
    let ran: Vec<String> =
        runs.programs.iter().map(|program| format!("{} {}", program.name, counted(program.runs, "time"))).collect();
    printer.end(&format!("programs ran: {}", ran.join(", ")), &objects)?;
    let outcome = show::report(&runs.report, arguments.common.strict);
    Ok(if tell(&runs) { outcome } else { CommandOutcome::Incomplete })
}

fn stop(path: &Path, failure: &BpfFailure) -> StopReason {
    let name = path.display();
    let help = match failure {
        BpfFailure::NoProgram | BpfFailure::Program { .. } => {
            format!("help: `kymo bpf show {name}` tells where each program can run\n")
        }
        BpfFailure::Maps(_) | BpfFailure::Messages(_) => String::new(),
    };
    StopReason::Expression(format!("error: {name}: {failure}\n{help}"))
}

/// Reports programs that stopped, do not fit, or lost records; whether there are none.
fn tell(runs: &BpfRuns) -> bool {
    let mut is_whole = true;
    for program in &runs.programs {
        for (class, why) in program.unfit.iter().take(UNFIT_MAX) {
            message!("warning: program {} does not run over `{class}`: {why}", program.name);
            is_whole = false;
        }
        if let Some(more) = program.unfit.len().checked_sub(UNFIT_MAX).filter(|more| *more > 0) {
            message!("warning: nor does it over {}", counted(more as u64, "more class"));
        }
        if let Some(why) = &program.first_stop {
            let times = format!("{} of {}", program.stopped, counted(program.runs, "time"));
            message!("warning: program {} stopped {times} before its end, first at {why}", program.name);
            is_whole = false;
        }
    }
    if runs.lost > 0 {
        message!("warning: {} found no room in a ring", counted(runs.lost, "record"));
        is_whole = false;
    }
    is_whole
}

fn runs_json(program: &BpfProgramRuns) -> Value {
    let unfit: Vec<Value> = program.unfit.iter().map(|(class, why)| json!({ "class": class, "reason": why })).collect();
    json!({
        "kind": "program", "name": program.name, "events": program.events, "runs": program.runs,
        "stopped": program.stopped, "first_stop": program.first_stop, "unfit": unfit,
    })
}
