//! `kymo record --kernel=EVENTS --list`, and `--kernel-filter EXPR --explain`

use std::io::{self, Write};

use kymo_recorder::kernel::{
    ExplainedRule, KernelEvent, RuleProgram, kernel_events, kernel_filter_places, kernel_rule_programs,
};
use kymo_recorder::kernel_filter::{FilterRuns, KernelFilter, KernelFilterPlace};
use kymo_recorder::rule::RuleOptions;
use kymo_recorder::tracepoints;

use super::RecordProblem;
use crate::CommandOutcome;
use crate::arguments::{KernelTexts, SessionArguments};
use crate::message::plain_output;
use crate::show::counted;
use crate::stop::StopReason;

/// Names in a line at most.
const NAMES_SHOWN: usize = 8;

/// Lists the events that words choose.
pub(super) fn run(words: &[String], is_json: bool) -> Result<CommandOutcome, RecordProblem> {
    let events = kernel_events(&patterns(words)).map_err(StopReason::Usage)?;
    let mut out = plain_output();
    if is_json {
        writeln!(out, "{}", serde_json::to_string(&events).map_err(io::Error::from)?)?;
    } else {
        events.iter().try_for_each(|event| show(event, &mut out))?;
    }
    Ok(CommandOutcome::Complete)
}

/// The patterns that words of the command line mean.
pub(super) fn patterns(words: &[String]) -> Vec<String> {
    tracepoints::patterns(words.iter().map(|word| word.trim()).filter(|word| !word.is_empty()))
}

/// The filters of the kernel's events, each understood.
pub(super) fn filters(arguments: &SessionArguments) -> Result<Vec<String>, StopReason> {
    let filters = &arguments.kernel_filters;
    let wrong = |lines: String| StopReason::Expression(format!("error: {lines}"));
    filters.iter().try_for_each(|text| KernelFilter::parse(text).map(|_| ()).map_err(wrong))?;
    Ok(filters.clone())
}

/// Tells where filters would run, and the programs of rules.
pub(super) fn explain(arguments: &SessionArguments, is_json: bool) -> Result<CommandOutcome, RecordProblem> {
    let what = match (arguments.kernel_filters.is_empty(), arguments.kernel_rules.is_empty()) {
        (false, true) => return explain_filters(arguments, is_json),
        (true, false) => None,
        (true, true) => Some("`--explain` tells of `--kernel-filter` or `--kernel-only`: one is missing"),
        (false, false) => {
            Some("`--explain` tells either of filters or of rules: leave `--kernel-filter` or `--kernel-only` out")
        }
    };
    what.map_or(Ok(()), |what| Err(StopReason::Usage(what.to_owned())))?;
    let wrong = |problem: String| StopReason::Expression(format!("error: rule: {problem}\n"));
    let rules = RuleOptions::parse_of_kernel(&arguments.kernel_rules).map_err(wrong)?;
    let explained = kernel_rule_programs(&rules).map_err(|why| StopReason::Expression(format!("error: {why}\n")))?;
    let mut out = plain_output();
    if is_json {
        writeln!(out, "{}", serde_json::to_string(&explained).map_err(io::Error::from)?)?;
    } else {
        explained.iter().try_for_each(|rule| show_rule(rule, &mut out))?;
    }
    Ok(CommandOutcome::Complete)
}

/// A rule, with a line for each program, and lines of the fields there.
fn show_rule(rule: &ExplainedRule, out: &mut impl Write) -> io::Result<()> {
    let ExplainedRule { rule: name, words, warning, programs } = rule;
    writeln!(out, "{name}: {words}")?;
    if let Some(warning) = warning {
        writeln!(out, "  warning: {warning}")?;
    }
    for RuleProgram { tracepoint, does, key, per, events, records, fields } in programs {
        let by = if key.is_empty() { String::new() } else { format!(" by {}", key.join(",")) };
        let per = per.as_ref().map_or_else(String::new, |per| format!(" per {per}"));
        writeln!(out, "  {tracepoint} {does}{by}{per}")?;
        if !events.is_empty() {
            writeln!(out, "    in the trace  {}: {}", events.join(", "), records.join(", "))?;
        }
        writeln!(out, "    can be asked  {}", fields.join(", "))?;
    }
    Ok(())
}

fn explain_filters(arguments: &SessionArguments, is_json: bool) -> Result<CommandOutcome, RecordProblem> {
    let (words, filters) = (arguments.kernel.as_deref().unwrap_or_default(), filters(arguments)?);
    let has_texts = arguments.kernel_texts == KernelTexts::Read;
    let wrong = |lines: String| StopReason::Expression(format!("error: {lines}\n"));
    let places = kernel_filter_places(&patterns(words), &filters, has_texts).map_err(wrong)?;
    let mut out = plain_output();
    if is_json {
        writeln!(out, "{}", serde_json::to_string(&places).map_err(io::Error::from)?)?;
    } else {
        show_places(&places, &mut out)?;
    }
    Ok(CommandOutcome::Complete)
}

fn show_places(places: &[KernelFilterPlace], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", counted_places(places))?;
    let is_filtered = |place: &&KernelFilterPlace| !matches!(place.runs, FilterRuns::Never | FilterRuns::Always);
    let filtered: Vec<&KernelFilterPlace> = places.iter().filter(is_filtered).collect();
    let name_width = filtered.iter().map(|place| place.tracepoint.len()).max().unwrap_or(0);
    let runs_width = filtered.iter().map(|place| place.runs.word().len()).max().unwrap_or(0);
    if !filtered.is_empty() {
        writeln!(out)?;
    }
    for KernelFilterPlace { tracepoint, runs, kernel, why } in filtered {
        let (runs, kernel) = (runs.word(), kernel.as_deref().unwrap_or(""));
        let line = format!("{tracepoint:name_width$}  {runs:runs_width$}  {kernel}");
        writeln!(out, "{}", line.trim_end())?;
        if let Some(why) = why {
            writeln!(out, "{:name_width$}  because: {why}", "")?;
        }
    }
    for runs in [FilterRuns::Never, FilterRuns::Always] {
        let mut groups: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
        for place in places.iter().filter(|place| place.runs == runs) {
            let why = place.why.as_deref();
            match groups.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(&place.tracepoint),
                None => groups.push((why, vec![&place.tracepoint])),
            }
        }
        for (why, names) in groups {
            let word = if runs == FilterRuns::Never { "never recorded" } else { "recorded whole" };
            let why = why.map_or_else(String::new, |why| format!(", because {why}"));
            writeln!(out, "\n{} {word}{why}: {}", names.len(), some_of(&names))?;
        }
    }
    Ok(())
}

/// Names, if they are not too many.
fn some_of(names: &[&str]) -> String {
    if names.len() <= NAMES_SHOWN { names.join(", ") } else { format!("{}, ...", names[..NAMES_SHOWN].join(", ")) }
}

/// How many events are filtered where, in a sentence.
pub(super) fn counted_places(places: &[KernelFilterPlace]) -> String {
    let count = |runs| places.iter().filter(|place| place.runs == runs).count();
    let parts = [
        (FilterRuns::Kernel, "filtered by the kernel"),
        (FilterRuns::Both, "by the kernel in part, and by the recorder"),
        (FilterRuns::Recorder, "by the recorder"),
        (FilterRuns::Never, "never recorded"),
        (FilterRuns::Always, "recorded whole"),
    ];
    let parts = parts.iter().map(|(runs, words)| (count(*runs), words)).filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, words)| format!("{count} {words}")).collect();
    format!("{}: {}", counted(places.len() as u64, "tracepoint"), parts.join(", "))
}

fn show(event: &KernelEvent, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}  ({})", event.event, event.tracepoint)?;
    let name_width = event.fields.iter().map(|field| field.name.len()).max().unwrap_or(0);
    let kind = |kind: &Option<String>| kind.clone().unwrap_or_else(|| "-".to_owned());
    let kind_width = event.fields.iter().map(|field| kind(&field.kind).len()).max().unwrap_or(0);
    for field in &event.fields {
        let note = field.note.as_deref().unwrap_or("");
        let (name, kind, source) = (&field.name, kind(&field.kind), field.source);
        let line = format!("  {name:name_width$}  {kind:kind_width$}  {source:7}  {note}");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
