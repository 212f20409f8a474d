//! Events of the kernel and probes that `kymo record` wants: words become options, and a helper is started that may read them.

use kymo_recorder::probes::{ProbeRights, ProbeWords};
use kymo_recorder::rule::RuleOptions;
use kymo_recorder::tracepoints::{self, KernelOptions, StackOptions};
use kymo_recorder::watch::WatchOptions;

use crate::arguments::{KernelTexts, SessionArguments};
use crate::message::write_line;
use crate::stop::StopReason;

/// Events of the kernel and probes, if some are wanted: starts the helper that may read them.
pub(super) fn of(arguments: &SessionArguments) -> Result<Option<KernelOptions>, StopReason> {
    let words = ProbeWords {
        functions: arguments.uprobes.clone(),
        usdt: arguments.usdt.clone(),
        kernel: arguments.kprobes.clone(),
    };
    let rules = RuleOptions::parse_of_kernel(&arguments.kernel_rules)
        .map_err(|problem| StopReason::Expression(format!("error: rule: {problem}")))?;
    rules.iter().filter_map(RuleOptions::key_note).for_each(|note| write_line(&format!("warning: {note}")));
    let watches = WatchOptions::parse_all(&arguments.watches)
        .map_err(|problem| StopReason::Expression(format!("error: watch: {problem}\n")))?;
    if !arguments.kernel_of.is_empty() && arguments.kernel.is_none() && rules.is_empty() && watches.is_empty() {
        let what = "`--kernel-of` chooses processes for `--kernel`, `--kernel-only` or `--watch`";
        return Err(StopReason::Usage(what.to_owned()));
    }
    if arguments.kernel.is_none() && words.is_empty() && rules.is_empty() && watches.is_empty() {
        let what = "`--kernel-buffer` is the memory for events of the kernel and of probes: `--kernel` or `--uprobe` records some";
        return arguments.kernel_buffer.map_or(Ok(None), |_| Err(StopReason::Usage(what.to_owned())));
    }
    let filters = super::kernel_list::filters(arguments)?;
    let rights = words.rights().map_err(StopReason::Usage)?;
    let (stacks, counts) = (arguments.stacks.is_some(), !watches.is_empty());
    let rights = ProbeRights { stacks, rules: !rules.is_empty(), counts, ..rights };
    super::kernel::become_user(&rights)?;
    let probes = words.plan().map_err(StopReason::Usage)?;
    probes.notes.iter().for_each(|note| write_line(&format!("note: {note}")));
    let stacks = arguments
        .stacks
        .as_ref()
        .map(|words| StackOptions::of(words.iter().map(|word| word.trim()).filter(|word| !word.is_empty())));
    let stacks = stacks.transpose().map_err(StopReason::Usage)?;
    let events = match &arguments.kernel {
        Some(words) => super::kernel_list::patterns(words),
        None => tracepoints::patterns(tracepoints::PROGRAMS.split_ascii_whitespace()),
    };
    let ring_bytes = arguments.kernel_buffer.unwrap_or(tracepoints::RING_BYTES);
    let scope = super::scope::find(&arguments.kernel_of, !arguments.command.is_empty())?;
    let texts = arguments.kernel_texts == KernelTexts::Read;
    let helper = super::kernel::helper(&rights)?;
    Ok(Some(KernelOptions { helper, events, ring_bytes, texts, scope, probes, stacks, filters, rules, watches }))
}
