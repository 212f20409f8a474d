//! Rings for a recorder where tracefs cannot be used: perf events of context switches, and samples of busy CPUs.

use std::collections::BTreeMap;

use kymo_ftrace::perf_sched::PERF_EVENTS;

use super::set_up::{STACKS_OF_RING, counting, open_stacks, rules};
use super::{HelpedInstance, HelperReply, KernelRequest};
use crate::perf_sched::{SchedEvents, is_possible};
use crate::probes::ProbedFiles;
use crate::stacks::{StackEvents, StackRequest, StackSources};
use crate::tracefs::TraceFsProblem;

/// Which part of a ring buffer's bytes a ring with context switches has: its records are shorter.
const SCHED_OF_RING: u64 = 4;

/// The events that perf gives, or why there are none at all.
pub(super) fn known_without(problem: &TraceFsProblem) -> HelperReply {
    let why = problem.to_string();
    match is_possible() {
        Ok(()) => HelperReply::Events { events: PERF_EVENTS.map(str::to_owned).to_vec(), tracefs_absent: Some(why) },
        Err(error) => {
            let why = format!("{why}; and perf tells no context switches: {error}");
            if problem.is_forbidden() { HelperReply::Forbidden { why } } else { HelperReply::Refused { why } }
        }
    }
}

/// Records from now on.
pub(super) fn set_up(request: KernelRequest, files: &ProbedFiles) -> Result<HelpedInstance, String> {
    if !request.probes.is_empty() {
        return Err("probes need tracefs".to_owned());
    }
    if let Some(unknown) = request.events.iter().find(|event| !PERF_EVENTS.contains(&event.as_str())) {
        return Err(format!("`{unknown}` needs tracefs"));
    }
    if !request.filters.is_empty() {
        return Err("filters of the kernel need tracefs".to_owned());
    }
    if request.stacks.is_some() && !files.stacks {
        return Err("the command that started the helper wanted no call stacks".to_owned());
    }
    let (sched, stacks) = open(request.ring_bytes, request.stacks.as_ref())?;
    let rules = rules(&request, files, None)?;
    let counting = counting(&request, files, None)?;
    let (instances, formats) = (Vec::new(), Vec::new());
    let sched = Some(sched);
    Ok(HelpedInstance {
        instances,
        request,
        formats,
        _limit: None,
        texts: None,
        stacks,
        sched,
        spools: BTreeMap::new(),
        unfiltered: Vec::new(),
        rules,
        counting,
    })
}

/// Rings with context switches, and those with call stacks, if they are wanted.
type PerfRings = (SchedEvents, Option<Result<StackEvents, String>>);

/// Both share the memory that the kernel gives this user: call stacks get some of it, too.
fn open(ring_bytes: u64, wanted: Option<&StackRequest>) -> Result<PerfRings, String> {
    let mut bytes = ring_bytes / SCHED_OF_RING;
    loop {
        let sched = SchedEvents::open(bytes)?;
        let stacks = wanted.map(|wanted| match wanted.events.first() {
            Some(event) => Err(format!("the stacks of `{event}` need tracefs")),
            None => {
                let sources = StackSources { hz: wanted.hz, tracepoints: &[], limit: None };
                open_stacks(&sched.cpus, sources, ring_bytes / STACKS_OF_RING)
            }
        });
        // If there is room for others, there are no call stacks for another reason.
        if !matches!(stacks, Some(Err(_))) || sched.is_smallest() || SchedEvents::has_room() {
            return Ok((sched, stacks));
        }
        bytes = u64::from(sched.ring_bytes) / 2;
    }
}
