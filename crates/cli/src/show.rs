//! Numbers, times and tables for people; losses on the last lines.

use std::io::{self, IsTerminal};

use kymo_session::{PrintedLoss, Report, Session, TraceCounters};

use crate::CommandOutcome;

/// Lines of one kind that are shown before the rest is counted.
const LINES_MAX: usize = 20;

/// Reports on standard error why the answer is not the whole truth; if `strict`, an assumption
/// counts as an error.
pub(crate) fn report(report: &Report, strict: bool) -> CommandOutcome {
    for problem in report.assumptions.iter().take(LINES_MAX) {
        message!("{}", assumption(&problem.message, strict));
    }
    if let Some(more) = report.assumptions.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        message!("{}: and {}", if strict { "error" } else { "warning" }, counted(more as u64, "more assumption"));
    }
    for problem in report.unreadable.iter().take(LINES_MAX) {
        message!("error: {problem}");
    }
    if let Some(more) = report.unreadable.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        message!("error: and {} could not be read", counted(more as u64, "more place"));
    }
    for rule in report.thinned.iter().take(LINES_MAX) {
        message!("warning: {}: other events are not in this answer", rule.sentence());
    }
    if let Some(more) = report.thinned.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        message!("warning: and {}", counted(more as u64, "more rule"));
    }
    // Of missing ends, the assumptions tell.
    if let Some(losses) = reported_losses(report) {
        message!("warning: {losses}");
    }
    let is_good = report.is_complete() && (!strict || report.assumptions.is_empty());
    if is_good { CommandOutcome::Complete } else { CommandOutcome::Incomplete }
}

/// Writes a line about each loss, in Babeltrace's words, which scripts look for; only some where a person reads them.
pub(crate) fn each_loss(losses: &[PrintedLoss]) {
    let most = if io::stderr().is_terminal() { LINES_MAX } else { losses.len() };
    for loss in losses.iter().take(most) {
        message!("WARNING: {}", loss.sentence);
    }
    if losses.len() > most {
        message!("WARNING: and {} more losses; 2>FILE writes a line about each", losses.len() - most);
    }
}

/// Lists, in lines, patterns that match nothing: their events are not there.
pub(crate) fn unmatched(session: &Session, patterns: &[String]) -> String {
    let line = |pattern: &str| {
        let near = session.class_names_like(pattern).into_iter().next();
        let near = near.map_or_else(String::new, |name| format!("; there is `{name}`"));
        format!("warning: no event record class is called `{pattern}`{near}\n")
    };
    session.unmatched(patterns).into_iter().map(line).collect()
}

/// A line about an assumption, which calls itself a warning.
pub(crate) fn assumption(message: &str, strict: bool) -> String {
    let message = message.trim_end();
    if strict { message.replacen(": warning[", ": error[", 1) } else { message.to_owned() }
}

/// The losses of tracers, in a sentence.
fn reported_losses(report: &Report) -> Option<String> {
    let mut parts = Vec::new();
    if report.events_discarded == 0 && report.discarded_is_lower_bound {
        parts.push("an unknown number of events discarded".to_owned());
    } else if report.events_discarded > 0 {
        let at_least = if report.discarded_is_lower_bound { "at least " } else { "" };
        parts.push(format!("{at_least}{} discarded", counted(report.events_discarded, "event")));
    }
    if report.packets_lost > 0 {
        parts.push(format!("{} lost", counted(report.packets_lost, "packet")));
    }
    (!parts.is_empty()).then(|| format!("the tracer reports {}", parts.join(" and ")))
}

/// Missing events, in a sentence.
pub(crate) fn losses(report: &Report) -> Option<String> {
    let streams = report.ends_missing;
    let lack = if streams == 1 { "lacks its end" } else { "lack their ends" };
    let missing = (streams > 0).then(|| format!("{} {lack}", counted(streams, "data stream")));
    let all: Vec<String> = reported_losses(report).into_iter().chain(missing).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// `12,513,488`
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 packet`, `2 packets`, `3 event classes`
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{} {}", grouped(count), noun_of(count, noun))
}

/// `packet` of 1, `packets` of others
pub(crate) fn noun_of(count: u64, noun: &str) -> String {
    let plural = match noun {
        _ if count == 1 => "",
        noun if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{noun}{plural}")
}

/// `401.9 MiB`
pub(crate) fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// `1.234 s`, `56.7 ms`
pub(crate) fn duration(nanos: i128) -> String {
    if nanos < 1000 {
        return format!("{nanos} ns");
    }
    let nanos = nanos as f64;
    for (limit, divisor, unit) in [(1e6, 1e3, "us"), (1e9, 1e6, "ms"), (120e9, 1e9, "s"), (7200e9, 60e9, "min")] {
        if nanos < limit {
            return format!("{:.3} {unit}", nanos / divisor);
        }
    }
    if nanos < 48.0 * 3600e9 { format!("{:.1} h", nanos / 3600e9) } else { format!("{:.1} days", nanos / 86_400e9) }
}

/// How far the counters of CPUs are apart, behind a word of ten characters.
pub(crate) fn counters(counters: &TraceCounters) -> String {
    let lines = std::iter::once(counters.words()).chain(counters.differences());
    lines.collect::<Vec<_>>().join("\n            ")
}

/// One character per number, higher for larger ones; a space only for zero.
pub(crate) fn sparkline(values: &[u64]) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.iter().copied().max().unwrap_or(0).max(1);
    let step = |value: &u64| {
        if *value == 0 { ' ' } else { STEPS[(u128::from(*value) * 7 / u128::from(highest)) as usize] }
    };
    values.iter().map(step).collect()
}
