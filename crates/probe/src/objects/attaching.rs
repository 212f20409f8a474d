//! Programs of an object are loaded for their places and attached there.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use aya::programs::fentry::FEntryLinkId;
use aya::programs::fexit::FExitLinkId;
use aya::programs::kprobe::KProbeLinkId;
use aya::programs::raw_trace_point::RawTracePointLinkId;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::trace_point::TracePointLinkId;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope};
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf};

use super::place::AttachPlace;
use super::{ObjectRefusal, refusal};
use crate::btf::KernelTypes;
use crate::tracefs::TraceFs;

/// Where the kernel has probes of its own functions.
const FUNCTION_PROBES: &str = "/sys/bus/event_source/devices/kprobe";

/// A program that is attached.
pub(super) struct AttachedProgram {
    name: String,
    link: ProgramLink,
}

enum ProgramLink {
    Typed(BtfTracePointLinkId),
    Raw(RawTracePointLinkId),
    Event(TracePointLinkId),
    Begin(FEntryLinkId),
    End(FExitLinkId),
    Function(KProbeLinkId),
    File(UProbeLinkId),
}

impl AttachedProgram {
    /// It does not run any more.
    pub(super) fn detach(self, programs: &mut Ebpf) {
        let Some(program) = programs.program_mut(&self.name) else { return };
        // One that cannot be detached goes with its file.
        let _ = match (program, self.link) {
            (Program::BtfTracePoint(program), ProgramLink::Typed(link)) => program.detach(link),
            (Program::RawTracePoint(program), ProgramLink::Raw(link)) => program.detach(link),
            (Program::TracePoint(program), ProgramLink::Event(link)) => program.detach(link),
            (Program::FEntry(program), ProgramLink::Begin(link)) => program.detach(link),
            (Program::FExit(program), ProgramLink::End(link)) => program.detach(link),
            (Program::KProbe(program), ProgramLink::Function(link)) => program.detach(link),
            (Program::UProbe(program), ProgramLink::File(link)) => program.detach(link),
            _ => Ok(()),
        };
    }
}

/// Places that this kernel does not have are told before anything is loaded.
pub(super) fn check(places: &[(&str, AttachPlace)], types: &KernelTypes) -> Result<(), ObjectRefusal> {
    for (name, place) in places {
        check_place(name, place, types)?;
    }
    Ok(())
}

fn check_place(program: &str, place: &AttachPlace, types: &KernelTypes) -> Result<(), ObjectRefusal> {
    match place {
        AttachPlace::TypedTracepoint(name) | AttachPlace::RawTracepoint(name) => {
            if types.typedef(&format!("btf_trace_{name}")).is_none() {
                let known = types.typedefs_behind("btf_trace_");
                return Err(absent(program, "tracepoint", name, known.iter().map(String::as_str)));
            }
        }
        AttachPlace::Tracepoint(system, name) => {
            // Where tracefs cannot be read, attaching says so.
            let Ok(known) = TraceFs::find().and_then(|fs| fs.events()) else { return Ok(()) };
            let wanted = format!("{system}:{name}");
            if !known.contains(&wanted) {
                let known: Vec<String> = known.iter().map(|event| event.replacen(':', "/", 1)).collect();
                return Err(absent(program, "event", &format!("{system}/{name}"), known.iter().map(String::as_str)));
            }
        }
        AttachPlace::Function { name, .. } => {
            if types.function(name).is_none() {
                let known = types.functions();
                return Err(absent(program, "function", name, known.iter().map(String::as_str)));
            }
        }
        AttachPlace::FunctionProbe { name, .. } => {
            if !Path::new(FUNCTION_PROBES).exists() {
                let why = "this kernel has no probes of its own functions: it was built without CONFIG_KPROBES";
                return Err(ObjectRefusal::of_program(program, why)
                    .with_help(format!("`SEC(\"fentry/{name}\")` attaches without them")));
            }
        }
        AttachPlace::FileProbe { .. } => {}
    }
    Ok(())
}

fn absent<'n>(program: &str, kind: &str, name: &str, known: impl Iterator<Item = &'n str>) -> ObjectRefusal {
    let refusal = ObjectRefusal::of_program(program, format!("the kernel has no {kind} `{name}`"));
    let near: Vec<String> = kymo_filter::nearest(name, known).iter().map(|name| format!("`{name}`")).collect();
    match near.is_empty() {
        true => refusal,
        false => refusal.with_help(format!("the kernel has {}", near.join(", "))),
    }
}

/// Has the kernel verify a program for its place.
pub(super) fn load(programs: &mut Ebpf, name: &str, place: &AttachPlace, types: &Btf) -> Result<(), ObjectRefusal> {
    let program = programs.program_mut(name).ok_or_else(|| unfit(name))?;
    let loaded = match (program, place) {
        (Program::BtfTracePoint(program), AttachPlace::TypedTracepoint(tracepoint)) => program.load(tracepoint, types),
        (Program::RawTracePoint(program), AttachPlace::RawTracepoint(_)) => program.load(),
        (Program::TracePoint(program), AttachPlace::Tracepoint(..)) => program.load(),
        (Program::FEntry(program), AttachPlace::Function { name, .. }) => program.load(name, types),
        (Program::FExit(program), AttachPlace::Function { name, .. }) => program.load(name, types),
        (Program::KProbe(program), AttachPlace::FunctionProbe { .. }) => program.load(),
        (Program::UProbe(program), AttachPlace::FileProbe { .. }) => program.load(),
        _ => return Err(unfit(name)),
    };
    loaded.map_err(|error| refusal::not_verified(name, &error))
}

/// Attaches a loaded program.
pub(super) fn attach(programs: &mut Ebpf, name: &str, place: &AttachPlace) -> Result<AttachedProgram, ObjectRefusal> {
    let program = programs.program_mut(name).ok_or_else(|| unfit(name))?;
    let link: Result<ProgramLink, ProgramError> = match (program, place) {
        (Program::BtfTracePoint(program), _) => program.attach().map(ProgramLink::Typed),
        (Program::RawTracePoint(program), AttachPlace::RawTracepoint(tracepoint)) => {
            program.attach(tracepoint).map(ProgramLink::Raw)
        }
        (Program::TracePoint(program), AttachPlace::Tracepoint(system, event)) => {
            program.attach(system, event).map(ProgramLink::Event)
        }
        (Program::FEntry(program), _) => program.attach().map(ProgramLink::Begin),
        (Program::FExit(program), _) => program.attach().map(ProgramLink::End),
        (Program::KProbe(program), AttachPlace::FunctionProbe { name, offset, .. }) => {
            program.attach(name, *offset).map(ProgramLink::Function)
        }
        (Program::UProbe(program), AttachPlace::FileProbe { file, symbol, offset, .. }) => {
            let location = match symbol {
                Some(symbol) => UProbeAttachLocation::SymbolOffset(symbol, *offset),
                None => UProbeAttachLocation::AbsoluteOffset(*offset),
            };
            program.attach(location, file, UProbeScope::AllProcesses).map(ProgramLink::File)
        }
        _ => return Err(unfit(name)),
    };
    let link = link.map_err(|error| refusal::not_attached(name, place, &error))?;
    Ok(AttachedProgram { name: name.to_owned(), link })
}

/// The file of a loaded program.
pub(super) fn file(program: &Program) -> Option<BorrowedFd<'_>> {
    program.fd().ok().map(AsFd::as_fd)
}

fn unfit(name: &str) -> ObjectRefusal {
    ObjectRefusal::of_program(name, "the object has no such program in this section")
}
