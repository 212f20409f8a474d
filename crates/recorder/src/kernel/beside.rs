//! Rings beside those with pages begin to be read: texts of system calls, call stacks, events that rules have kept.

use std::fs::File;
use std::sync::{Arc, Mutex};

use kymo_lane::ClockSource;
use kymo_probe::rings::ProgramRingFiles;
use kymo_probe::rules::RuleFiles;
use kymo_probe::stacks::StackFiles;

use crate::kernel::dump::{self, StateEvent};
use crate::kernel::known_maps::KnownMaps;
use crate::kernel::reader::BesidePages;
use crate::kernel::rules::{self, AskedRules, RuleControl, RuleSource};
use crate::kernel::stacks::{self, MapKeeping, StackReader, StackSource};
use crate::kernel::state::{SharedHelper, StateSource};
use crate::kernel::texts::{self, TextSource};
use crate::kernel::{KernelBeginning, KernelShared};
use crate::protocol::Keep;

/// What the helper has handed over, or why it has not.
pub(super) struct HandedBeside {
    pub(super) texts: Option<Result<ProgramRingFiles, String>>,
    /// With the names of the events that have stacks.
    pub(super) stacks: (Option<Result<HandedStacks, String>>, Vec<String>),
    pub(super) rules: (Option<RuleFiles>, AskedRules),
}

/// Readers, and the ways of their records to converters.
pub(super) struct BegunBeside {
    pub(super) texts: Option<TextSource>,
    /// The origin of texts.
    pub(super) texts_from: Option<String>,
    pub(super) stacks: Option<Arc<StackSource>>,
    pub(super) rules: Option<Arc<RuleSource>>,
    pub(super) control: Option<RuleControl>,
    pub(super) readers: BesidePages,
}

/// Begins to read; `has_texts`: texts of system calls are wanted, or there are no calls.
pub(super) fn begin(
    handed: HandedBeside,
    (helper, beginning): (&SharedHelper, &KernelBeginning<'_>),
    (source, frequency): (ClockSource, u64),
    (shared, has_texts): (&KernelShared, bool),
) -> Result<BegunBeside, String> {
    let HandedBeside { texts, stacks, rules: (rule_files, asked) } = handed;
    let kept_bytes = (beginning.keep == Keep::Newest).then_some(beginning.options.ring_bytes);
    let texts = texts::begin(texts, (source, frequency), kept_bytes);
    let texts_from = texts::origin(&texts, has_texts);
    let (text_reader, texts) = texts.map(Option::unzip).unwrap_or_else(|why| {
        shared.count(|summary| summary.texts_absent = Some(why));
        (None, None)
    });
    let (stack_reader, stacks) = begin_stacks(stacks, helper, beginning, source).unwrap_or_else(|why| {
        shared.count(|summary| summary.stacks_absent = Some(why));
        (None, None)
    });
    let (mut rule_reader, mut rules, mut control) = (None, None, None);
    if let Some(files) = rule_files {
        let (reader, its, of_rules) = rules::begin(files, asked, source, kept_bytes)?;
        (rule_reader, rules, control) = (Some(reader), Some(its), Some(of_rules));
    }
    let readers = BesidePages { texts: text_reader, stacks: stack_reader, sched: None, rules: rule_reader };
    Ok(BegunBeside { texts, texts_from, stacks, rules, control, readers })
}

/// Rings with call stacks, and the addresses of the kernel's functions.
pub(super) type HandedStacks = (StackFiles, Option<File>);

/// The reader of call stacks and their way to converters, if some are wanted; or why there are none.
fn begin_stacks(
    (files, names): (Option<Result<HandedStacks, String>>, Vec<String>),
    helper: &SharedHelper,
    beginning: &KernelBeginning<'_>,
    source: ClockSource,
) -> Result<(Option<StackReader>, Option<Arc<StackSource>>), String> {
    let Some(files) = files else { return Ok((None, None)) };
    let files = files?;
    let kept_bytes = (beginning.keep == Keep::Newest).then_some(beginning.options.ring_bytes);
    let maps = match kept_bytes {
        Some(_) => MapKeeping::Flight(Arc::new(Mutex::new(mapped_now(helper)))),
        None if beginning.trace.has_chunks() => MapKeeping::Parts,
        None => MapKeeping::None,
    };
    let (reader, stacks) = stacks::begin(files, names, source, (kept_bytes, maps))?;
    Ok((Some(reader), Some(Arc::new(stacks))))
}

/// Files with code that are mapped now: of processes that have ended, no snapshot finds them.
fn mapped_now(helper: &SharedHelper) -> KnownMaps {
    let mut maps = KnownMaps::default();
    let learn = |event: StateEvent| event.code.iter().for_each(|(pid, map)| maps.learn_state(*pid, map, false));
    dump::tell(StateSource::open(helper), |_| {}, learn);
    maps
}
