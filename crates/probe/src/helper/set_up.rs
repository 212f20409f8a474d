//! What a recorder asks for is set up: instances of tracefs with their events and probes, programs that read texts, perf events.

use std::collections::BTreeMap;

use super::{HelpedInstance, KernelClock, KernelRequest, take_down};
use kymo_ftrace::format::EventFormat;

use crate::call_texts::CallTexts;
use crate::probes::{self, ProbePlace, ProbeRequest, ProbedFiles};
use crate::record_test::{self, UnfilteredEvent};
use crate::rules::KernelRules;
use crate::stacks::{STACK_EVENTS_MAX, StackEvents, StackPoint, StackRequest, StackSources};
use crate::thread_limit::{OF_THREADS, ThreadLimit, WAKING};
use crate::tracefs::{TraceFs, TraceFsProblem, TraceInstance};
use crate::watch::{KernelCounts, WATCHES_MAX};

/// Bytes of a ring buffer at most, for each CPU.
const RING_MAX: u64 = 4 << 30;
/// Which part of that a ring with texts of system calls has.
const TEXTS_OF_RING: u64 = 4;
/// Which part of it a ring with records of rules has.
const RULES_OF_RING: u64 = 4;
/// Which part of it a ring with call stacks has.
pub(super) const STACKS_OF_RING: u64 = 4;
/// How often a ring with call stacks is made half as large.
const HALVES: u32 = 4;
/// Pages of a ring buffer at least, if they are not too small for that, and KiB of each.
const PAGES_MIN: u64 = 32;
const PAGE_KIB_MIN: u64 = 4;
const PAGE_KIB_MAX: u64 = 64;

pub(super) fn set_up(fs: &TraceFs, request: KernelRequest, files: &ProbedFiles) -> Result<HelpedInstance, String> {
    probes::check(&request.probes, files).map_err(|refusal| refusal.to_string())?;
    if request.stacks.is_some() && !files.stacks {
        return Err("the command that started the helper wanted no call stacks".to_owned());
    }
    let known = fs.events().map_err(|problem| problem.to_string())?;
    let formats = formats(fs, &request.events, &known)?;
    let filters = record_test::texts(&request.filters, &formats)?;
    let mut unfiltered = Vec::new();
    let (instances, limit, texts) = make_instances(fs, &request, (&formats, &filters), files, &mut unfiltered)?;
    // Where no event is about threads, nothing has limited them until now.
    let limit = match (limit, &request.processes) {
        (None, Some(processes)) if request.stacks.is_some() || asks_of_threads(&request) => {
            Some(ThreadLimit::follow(|| Ok(threads(processes))))
        }
        (limit, _) => limit,
    };
    let begun = rules(&request, files, limit.as_ref())
        .and_then(|rules| Ok((rules, counting(&request, files, limit.as_ref())?)));
    let (rules, counting) = match begun {
        Ok(begun) => begun,
        Err(why) => {
            let _ = take_down(Some(fs), instances, &request);
            return Err(why);
        }
    };
    // Last: the work of setting up is none of the system's.
    let stacks =
        request.stacks.as_ref().map(|wanted| stacks((fs, &known), &instances, wanted, (&request, limit.as_ref())));
    let limit = limit.and_then(Result::ok);
    Ok(HelpedInstance {
        instances,
        request,
        formats,
        _limit: limit,
        texts,
        stacks,
        sched: None,
        spools: BTreeMap::new(),
        unfiltered,
        rules,
        counting,
    })
}

/// Whether rules or counts are about some threads.
fn asks_of_threads(request: &KernelRequest) -> bool {
    !request.rules.is_empty() || !request.watches.is_empty()
}

/// Whether there are programs that ask which threads are recorded.
fn has_programs(request: &KernelRequest) -> bool {
    request.texts || request.stacks.is_some() || asks_of_threads(request)
}

/// Asks rules from now on, if there are some.
pub(super) fn rules(
    request: &KernelRequest,
    files: &ProbedFiles,
    limit: Option<&Result<ThreadLimit, String>>,
) -> Result<Option<KernelRules>, String> {
    if request.rules.is_empty() {
        return Ok(None);
    }
    if !files.rules {
        return Err("the command that started the helper has no rules about events of the kernel".to_owned());
    }
    let limit = limit.map(|limit| limit.as_ref().map_err(String::clone)).transpose()?;
    KernelRules::begin(&request.rules, request.ring_bytes / RULES_OF_RING, limit).map(Some)
}

/// Counts from now on what is to be counted beside the events.
pub(super) fn counting(
    request: &KernelRequest,
    files: &ProbedFiles,
    limit: Option<&Result<ThreadLimit, String>>,
) -> Result<Vec<KernelCounts>, String> {
    if !request.watches.is_empty() && !files.counts {
        return Err("the command that started the helper counts no events".to_owned());
    }
    if request.watches.len() > WATCHES_MAX {
        return Err(format!("at most {WATCHES_MAX} questions are counted at a time"));
    }
    if request.watches.is_empty() {
        return Ok(Vec::new());
    }
    let limit = limit.map(|limit| limit.as_ref().map_err(String::clone)).transpose()?;
    request.watches.iter().map(|watch| KernelCounts::begin(watch, limit)).collect()
}

/// Threads that are recorded, or why they cannot be told; `None`: all are, or no program asks.
type WantedLimit = Option<Result<ThreadLimit, String>>;

/// Texts of the kernel: subsystems and descriptions of events, or events and filters.
type NamedTexts = [(String, String)];

/// Instances, the threads that one of them is limited to, and the programs that read texts of system calls.
type MadeInstances = (Vec<TraceInstance>, WantedLimit, Option<Result<CallTexts, String>>);

fn make_instances(
    fs: &TraceFs,
    request: &KernelRequest,
    (formats, filters): (&NamedTexts, &NamedTexts),
    files: &ProbedFiles,
    unfiltered: &mut Vec<UnfilteredEvent>,
) -> Result<MadeInstances, String> {
    let (of_threads, of_all): (Vec<&String>, Vec<&String>) =
        request.events.iter().partition(|event| request.processes.is_some() && is_of_thread(event));
    let (mut instances, mut limit, mut read) = (Vec::new(), None, None);
    for (events, processes) in [(of_threads, request.processes.as_deref()), (of_all, None)] {
        // Probes are about the thread that runs.
        let has_probes =
            instances.is_empty() && !request.probes.is_empty() && processes == request.processes.as_deref();
        if events.is_empty() && !has_probes {
            continue;
        }
        let made = fs.instance().map_err(|problem| problem.to_string()).and_then(|instance| {
            instances.push(instance);
            let instance = &instances[instances.len() - 1];
            let probes = if has_probes { &request.probes[..] } else { &[] };
            add_probes(fs, instance, probes, files)?;
            if let Some(processes) = processes {
                instance.limit_to(&threads(processes)).map_err(|problem| problem.to_string())?;
                let now = || instance.limited_to().map_err(|problem| problem.to_string());
                limit = has_programs(request).then(|| ThreadLimit::follow(now));
            }
            // Before the events: so texts are read before their call is recorded.
            if request.texts && events.iter().any(|event| is_call(event)) {
                read = Some(texts(instance, request, formats, limit.as_ref()));
            }
            let its = filters.iter().filter(|(event, _)| events.contains(&event));
            unfiltered.extend(its.filter_map(|(event, filter)| filtered(instance, event, filter).err()));
            prepare(instance, request, (&events, probes)).map_err(|problem| problem.to_string())
        });
        if let Err(problem) = made {
            let _ = take_down(Some(fs), instances, request);
            return Err(problem);
        }
    }
    Ok((instances, limit, read))
}

/// Whether an event is about the thread that runs, or about another one.
fn is_of_thread(event: &str) -> bool {
    event.split_once(':').is_some_and(|(system, _)| OF_THREADS.contains(&system))
}

fn is_call(event: &str) -> bool {
    event.starts_with("raw_syscalls:")
}

/// Descriptions of the events, and of all system calls if those are among them.
fn formats(fs: &TraceFs, events: &[String], known: &[String]) -> Result<Vec<(String, String)>, String> {
    if let Some(unknown) = events.iter().find(|event| !known.contains(event)) {
        return Err(format!("the kernel has no event `{unknown}`"));
    }
    let has_calls = events.iter().any(|event| is_call(event));
    let calls = known.iter().filter(|event| has_calls && event.starts_with("syscalls:sys_enter_"));
    let all = events.iter().chain(calls).map(|event| {
        let (system, name) = event.split_once(':').expect("it is one of the kernel's");
        Ok((system.to_owned(), fs.format(system, name).map_err(|problem| problem.to_string())?))
    });
    all.collect()
}

/// The same of any events.
pub(super) fn known_formats(fs: &TraceFs, events: &[String]) -> Result<Vec<(String, String)>, String> {
    formats(fs, events, &fs.events().map_err(|problem| problem.to_string())?)
}

/// The kernel keeps those records of an event alone; or says why not.
fn filtered(instance: &TraceInstance, event: &str, filter: &str) -> Result<(), UnfilteredEvent> {
    let (system, name) = event.split_once(':').expect("it is one of the kernel's");
    let file = format!("events/{system}/{name}/filter");
    instance.set(&file, filter).map_err(|problem| {
        // One that was refused would keep nothing.
        let _ = instance.set(&file, "0");
        UnfilteredEvent { event: event.to_owned(), why: format!("the kernel refuses `{filter}`: {problem}") }
    })
}

/// Reads texts of system calls from now on.
fn texts(
    instance: &TraceInstance,
    request: &KernelRequest,
    formats: &[(String, String)],
    limit: Option<&Result<ThreadLimit, String>>,
) -> Result<CallTexts, String> {
    let files = instance.cpus().map_err(|problem| problem.to_string())?;
    let cpus: Vec<u32> = files.iter().map(|files| files.cpu).collect();
    let limit = limit.map(|limit| limit.as_ref().map_err(String::clone)).transpose()?;
    CallTexts::attach(&cpus, request.ring_bytes / TEXTS_OF_RING, formats, limit)
}

/// Records call stacks from now on.
fn stacks(
    (fs, known): (&TraceFs, &[String]),
    instances: &[TraceInstance],
    wanted: &StackRequest,
    (request, limit): (&KernelRequest, Option<&Result<ThreadLimit, String>>),
) -> Result<StackEvents, String> {
    let instance = instances.first().ok_or("no event is recorded")?;
    let cpus = instance.cpus().map_err(|problem| problem.to_string())?;
    let cpus: Vec<u32> = cpus.iter().map(|files| files.cpu).collect();
    let id = |event: &String| match event.split_once(':').filter(|_| known.contains(event)) {
        Some((system, name)) => fs.event_id(system, name).map_err(|problem| problem.to_string()),
        None => Err(format!("the kernel has no event `{event}`")),
    };
    if wanted.events.len() > STACK_EVENTS_MAX {
        return Err(format!("at most {STACK_EVENTS_MAX} events have stacks"));
    }
    let tracepoints = wanted.events.iter().map(|event| {
        let (name, number) = (event.clone(), id(event)?);
        Ok(StackPoint { name, number, woken_at: woken_at(fs, event) })
    });
    let tracepoints = tracepoints.collect::<Result<Vec<_>, String>>()?;
    let limit = limit.map(|limit| limit.as_ref().map_err(String::clone)).transpose()?;
    let sources = StackSources { hz: wanted.hz, tracepoints: &tracepoints, limit };
    open_stacks(&cpus, sources, request.ring_bytes / STACKS_OF_RING)
}

/// Where an event has the number of the thread that it wakes, if it wakes one.
fn woken_at(fs: &TraceFs, event: &str) -> Option<u16> {
    let (system, name) = event.split_once(':').filter(|(_, name)| WAKING.contains(name))?;
    let format = EventFormat::parse(system, &fs.format(system, name).ok()?).ok()?;
    let field = format.fields.iter().find(|field| field.name == "pid" && field.size == 4)?;
    u16::try_from(field.offset).ok()
}

/// Opens them, with smaller rings where the kernel gives this user no more memory; the first reason, if that does not help.
pub(super) fn open_stacks(cpus: &[u32], sources: StackSources<'_>, ring_bytes: u64) -> Result<StackEvents, String> {
    let open = |bytes| StackEvents::open(cpus, sources, bytes);
    open(ring_bytes).or_else(|why| {
        let mut smaller = (1..HALVES).map(|half| ring_bytes >> half);
        smaller.find_map(|bytes| open(bytes).ok()).ok_or(why)
    })
}

fn add_probes(
    fs: &TraceFs,
    instance: &TraceInstance,
    probes: &[ProbeRequest],
    files: &ProbedFiles,
) -> Result<(), String> {
    let (group, has_types) = (instance.group(), fs.has_argument_types());
    for probe in probes {
        if probe.is_of_kernel() && !fs.has_function_probes() {
            let why = "this kernel has no probes of its own functions: it was built without CONFIG_KPROBE_EVENTS";
            return Err(why.to_owned());
        }
        let line = probe.line(&group, has_types, files);
        fs.add_probe(&line, probe.is_of_kernel()).map_err(|problem| {
            let why = fs.last_objection(&line).map_or_else(|| problem.to_string(), |why| why.to_lowercase());
            let place = match &probe.place {
                ProbePlace::File { path, offset, .. } => format!("{path}:{offset:#x}"),
                ProbePlace::Function { name } => name.clone(),
            };
            format!("the kernel does not make the probe `{}` at {place}: {why}", probe.event)
        })?;
    }
    Ok(())
}

/// Events of probes, each once.
pub(super) fn probe_events(probes: &[ProbeRequest]) -> Vec<&str> {
    let mut all: Vec<&str> = probes.iter().map(|probe| probe.event.as_str()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Threads of processes, as far as they are there.
fn threads(processes: &[u32]) -> Vec<u32> {
    let of = |process: &u32| {
        let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect::<Vec<u32>>()
    };
    processes.iter().flat_map(of).collect()
}

fn prepare(
    instance: &TraceInstance,
    request: &KernelRequest,
    (events, probes): (&[&String], &[ProbeRequest]),
) -> Result<(), TraceFsProblem> {
    let clock = match request.clock {
        KernelClock::Counter => "x86-tsc",
        KernelClock::Monotonic => "mono",
    };
    instance.set("trace_clock", clock)?;
    instance.set("options/overwrite", "1")?;
    // Readers have names and processes from events: the kernel need not note them at each switch.
    for option in ["record-cmd", "record-tgid"] {
        let _ = instance.set(&format!("options/{option}"), "0");
    }
    let kib = request.ring_bytes.clamp(1 << 12, RING_MAX) >> 10;
    // Reading a page is a system call, and an event itself. Kernels before 6.9 have pages of one size.
    let _ = instance.set("buffer_subbuf_size_kb", &page_kib(kib).to_string());
    instance.set("buffer_size_kb", &kib.to_string())?;
    for event in events {
        let (system, name) = event.split_once(':').expect("it is one of the kernel's");
        instance.set(&format!("events/{system}/{name}/enable"), "1")?;
    }
    for event in probe_events(probes) {
        instance.set(&format!("events/{}/{event}/enable", instance.group()), "1")?;
    }
    Ok(())
}

/// KiB of the pages of a ring with so many.
fn page_kib(ring_kib: u64) -> u64 {
    let most = (ring_kib / PAGES_MIN).clamp(PAGE_KIB_MIN, PAGE_KIB_MAX);
    1 << most.ilog2()
}
