//! What was set up is handed over: a description, and open files in the order that the recorder takes them in.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};

use super::ruling::BegunRules;
use super::set_up::probe_events;
use super::{BegunKernel, BegunStacks, HelpedInstance, SYMBOLS};
use crate::tracefs::{CpuFiles, TraceFs, TraceFsProblem, TraceInstance};

/// Memory for the pages of a ring buffer, or for other records.
fn spool(spools: &mut BTreeMap<(usize, u32), OwnedFd>, of: (usize, u32)) -> Result<OwnedFd, TraceFsProblem> {
    let no_memory = |error: rustix::io::Errno| TraceFsProblem::Memory(error.into());
    let spool = match spools.entry(of) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => place.insert(memfd_create("kymo-kernel", MemfdFlags::CLOEXEC).map_err(no_memory)?),
    };
    spool.try_clone().map_err(TraceFsProblem::Memory)
}

pub(super) fn handed_over(
    fs: Option<&TraceFs>,
    helped: &mut HelpedInstance,
) -> Result<(BegunKernel, Vec<OwnedFd>), TraceFsProblem> {
    let HelpedInstance { instances, request, formats, texts, stacks, sched, spools, unfiltered, rules, .. } = helped;
    let (mut rings, mut files) = (Vec::new(), Vec::new());
    for (number, instance) in instances.iter().enumerate() {
        files.push(OwnedFd::from(instance.switch_file()?));
        let mut cpus = Vec::new();
        for CpuFiles { cpu, pages, counts } in instance.cpus()? {
            files.extend([OwnedFd::from(pages), OwnedFd::from(counts), spool(spools, (number, cpu))?]);
            cpus.push(cpu);
        }
        rings.push(cpus);
    }
    let group = instances.first().map_or_else(String::new, TraceInstance::group);
    let probes = probe_events(&request.probes).into_iter();
    let probes = probes.flat_map(|event| fs.map(|fs| Ok((event.to_owned(), fs.format(&group, event)?))));
    let probes = probes.collect::<Result<_, _>>()?;
    let page_bytes = instances.first().map_or(Ok(0), TraceInstance::page_bytes)?;
    let texts = texts.as_ref().map(|texts| {
        let texts = texts.as_ref().map_err(String::clone)?;
        files.extend(texts.files().map_err(|error| error.to_string())?);
        Ok((texts.cpus.clone(), texts.ring_bytes))
    });
    let stacks = stacks.as_ref().map(|stacks| {
        let stacks = stacks.as_ref().map_err(String::clone)?;
        files.extend(stacks.files().map_err(|error| error.to_string())?);
        // The kernel tells addresses to the one who opened the file.
        let symbols = File::open(SYMBOLS).ok();
        let has_symbols = symbols.is_some();
        files.extend(symbols.map(OwnedFd::from));
        let (ring_bytes, cpus, ids) = (stacks.ring_bytes, stacks.cpus.clone(), stacks.ids.clone());
        Ok(BegunStacks { ring_bytes, cpus, ids, is_by_programs: stacks.is_by_programs(), has_symbols })
    });
    if let Some(sched) = sched {
        files.extend(sched.files().map_err(TraceFsProblem::Memory)?);
        files.push(spool(spools, (instances.len(), 0))?);
    }
    let sched = sched.as_ref().map(|sched| (sched.cpus.clone(), sched.ring_bytes));
    if let Some(rules) = rules {
        files.extend(rules.files().map_err(TraceFsProblem::Memory)?);
    }
    let rules = rules.as_ref().map(BegunRules::of);
    let header_page = fs.map_or_else(|| Ok(String::new()), TraceFs::header_page)?;
    let (formats, unfiltered) = (formats.clone(), unfiltered.clone());
    let is_resumed = false;
    let begun = BegunKernel {
        is_resumed,
        header_page,
        page_bytes,
        formats,
        probes,
        rings,
        texts,
        stacks,
        sched,
        unfiltered,
        rules,
    };
    Ok((begun, files))
}
