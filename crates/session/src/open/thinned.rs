//! Rules of recorders that have kept only some events of traces: an answer about such events is one about those that were kept.
//!
//! ```text
//! environment   kernel_ruled, kernel_rules, ruled, rules: rules, and the events that they are about     from the begin on
//! kernel        kymo_kernel_rule, at the end of a stream: events that were kept and let go
//! programs      kymo:rule, again and again, by program: all of that, also of rules that came later
//! ```
//!
//! Parts and snapshots of a recording, and traces of programs beside each other, tell counts since the recording began: of each program the
//! largest ones count.

use std::collections::BTreeMap;
use std::sync::Arc;

use kymo_decode::fields::FieldValue;
use kymo_decode::text::details::grouped_unsigned;
use kymo_format::model::EnvironmentValue;
use kymo_scan::{DataStream, Trace};
use kymo_schema::glob;
use serde::{Deserialize, Serialize};

use crate::open::Session;
use crate::open::told::{ToldEvents, event_class};

/// Entries of the environment: events that rules are about, and their words.
const KERNEL_RULES: [&str; 2] = ["kernel_ruled", "kernel_rules"];
const PROGRAM_RULES: [&str; 2] = ["ruled", "rules"];
/// Between events of which a rule has kept some, and those of which it has kept none.
const WITHOUT: &str = " without ";
/// Counts of rules of the kernel, and of programs.
const OF_KERNEL: &str = "kymo_kernel_rule";
const KERNEL_FIELDS: [&str; 4] = ["rule", "kept", "let_go", "unknown"];
const OF_PROGRAM: &str = "kymo:rule";
const PROGRAM_FIELDS: [&str; 8] = ["rule", "kept", "let_go", "unknown", "program", "words", "events", "without"];
/// Counts of the kernel's rules are in the last packets of a stream.
const LAST_PACKETS: usize = 2;
/// Streams that are looked into.
const STREAMS_MAX: usize = 16;
/// The program that stands for the kernel.
const KERNEL: i128 = -1;
/// Events that a sentence names.
const NAMES_MAX: usize = 4;

/// A rule that has kept only some events of traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinnedEvents {
    /// The rule's name.
    pub rule: String,
    /// Its words.
    pub words: String,
    /// Patterns of names of the events that it has kept some of; `!` excludes.
    pub events: Vec<String>,
    /// The same of events that it needs, and has kept none of.
    pub without: Vec<String>,
    /// Counts since the recording began; `None`: the traces do not tell them.
    pub counts: Option<ThinnedCounts>,
}

/// Events that a rule has kept and let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinnedCounts {
    /// Kept.
    pub kept: u64,
    /// Let go.
    pub let_go: u64,
    /// Without a known begin, of those that were kept.
    pub unknown: u64,
}

impl ThinnedEvents {
    /// What the rule has kept, as a sentence without a full stop.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { rule, words, counts, .. } = self;
        let (events, without) = (names(&self.events), names(&self.without));
        let kept = match counts {
            Some(ThinnedCounts { kept, let_go, .. }) => {
                let all = grouped_unsigned(kept.saturating_add(*let_go));
                format!("{} of {all} events of {events}", grouped_unsigned(*kept))
            }
            None => format!("only some events of {events}"),
        };
        let without = if without.is_empty() { without } else { format!(", and none of {without}") };
        let unknown = if counts.is_none() { "; the trace does not tell how many it let go" } else { "" };
        format!("rule `{rule}` kept {kept}{without}{unknown} ({words})")
    }

    /// Whether a class of events of this name lacks some.
    #[must_use]
    pub fn is_about(&self, name: &str) -> bool {
        takes(&self.events, name) || takes(&self.without, name)
    }

    /// The same of any class that may have a name like this pattern.
    pub(crate) fn may_be_about(&self, pattern: &str) -> bool {
        let literal = |text: &str| text.find(['*', '?']).map_or(text.len(), |at| at);
        let meets = |own: &String| {
            let (one, other) = (&own[..literal(own)], &pattern[..literal(pattern)]);
            match (one.len() < own.len(), other.len() < pattern.len()) {
                (true, true) => one.starts_with(other) || other.starts_with(one),
                _ => glob::matches(own, pattern) || glob::matches(pattern, own),
            }
        };
        self.is_about(pattern) || self.events.iter().chain(&self.without).any(meets)
    }

    /// The same of one of these patterns.
    pub(crate) fn is_about_some(&self, patterns: &[String]) -> bool {
        patterns.iter().any(|pattern| self.may_be_about(pattern))
    }
}

fn names(patterns: &[String]) -> String {
    // Those of 32-bit programs are the same calls.
    let is_named = |pattern: &&String| !pattern.starts_with('!') && !pattern.starts_with("compat_syscall_");
    let names = patterns.iter().filter(is_named);
    let mut named: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if let Some(more) = named.len().checked_sub(NAMES_MAX).filter(|more| *more > 0) {
        named.truncate(NAMES_MAX);
        named.push(format!("{more} more"));
    }
    match named.pop() {
        Some(last) if !named.is_empty() => format!("{} and {last}", named.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn takes(patterns: &[String], name: &str) -> bool {
    let (without, with): (Vec<&str>, Vec<&str>) =
        patterns.iter().map(String::as_str).partition(|pattern| pattern.starts_with('!'));
    with.iter().any(|pattern| glob::matches(pattern, name))
        && !without.iter().any(|pattern| glob::matches(&pattern[1..], name))
}

impl Session {
    /// Rules that have kept only some events of the traces.
    #[must_use]
    pub fn thinned(&self) -> &[ThinnedEvents] {
        self.thinned.get_or_init(|| of_traces(&self.traces))
    }
}

/// Rules that have kept only some events of these traces.
pub(crate) fn of_traces(traces: &[Arc<Trace>]) -> Vec<ThinnedEvents> {
    let mut found = FoundRules::default();
    traces.iter().for_each(|trace| found.add(trace));
    found.all()
}

/// Rules by their names and words.
#[derive(Default)]
struct FoundRules(BTreeMap<(String, String), ToldRule>);

/// A rule as traces tell it.
#[derive(Default)]
struct ToldRule {
    events: Vec<String>,
    without: Vec<String>,
    /// By program.
    counts: BTreeMap<i128, ThinnedCounts>,
}

impl FoundRules {
    fn add(&mut self, trace: &Trace) {
        let of_kernel = ruled(trace, KERNEL_RULES);
        for ThinnedEvents { rule, words, events, without, .. } in
            of_kernel.iter().cloned().chain(ruled(trace, PROGRAM_RULES))
        {
            let known = self.0.entry((rule, words)).or_default();
            (known.events, known.without) = (events, without);
        }
        if !of_kernel.is_empty() {
            for (rule, counts) in counts_of_kernel(trace) {
                let Some(known) = of_kernel.iter().find(|known| known.rule == rule) else { continue };
                self.count((rule, known.words.clone()), KERNEL, counts);
            }
        }
        if text(trace, "tracer_name") == Some("kymo") {
            self.add_of_programs(trace);
        }
    }

    fn count(&mut self, rule: (String, String), program: i128, counts: ThinnedCounts) {
        let known = self.0.entry(rule).or_default().counts.entry(program).or_default();
        let ThinnedCounts { kept, let_go, unknown } = counts;
        known.kept = known.kept.max(kept);
        known.let_go = known.let_go.max(let_go);
        known.unknown = known.unknown.max(unknown);
    }

    /// The recorder's own events are all in one stream.
    fn add_of_programs(&mut self, trace: &Trace) {
        let class = |stream: &DataStream| event_class(&trace.class.stream_classes[stream.class], OF_PROGRAM);
        let declaring = trace.streams.iter().filter(|stream| class(stream).is_some());
        for stream in declaring.take(STREAMS_MAX).filter(|stream| is_own(trace, stream)) {
            let Some(told) = ToldEvents::of(trace, stream, OF_PROGRAM, &PROGRAM_FIELDS) else { continue };
            for row in stream.packets.iter() {
                told.packet(&row, usize::MAX, |fields| _ = self.program(fields));
            }
        }
    }

    /// What an event tells of a rule and a program; `None`: it lacks a field.
    fn program(&mut self, fields: &[Option<FieldValue>]) -> Option<()> {
        let (rule, counts) = told_counts(fields)?;
        let FieldValue::Integer(program) = fields.get(4)?.as_ref()? else { return None };
        let [words, events, without] = [5, 6, 7].map(|at| told_text(fields, at));
        let key = (rule, words?);
        let (events, without) = (patterns(&events?, ","), patterns(&without?, ","));
        // A trigger asks it, and nothing is let go.
        if events.is_empty() && without.is_empty() {
            return None;
        }
        let known = self.0.entry(key.clone()).or_default();
        (known.events, known.without) = (events, without);
        self.count(key, *program, counts);
        Some(())
    }

    fn all(self) -> Vec<ThinnedEvents> {
        let rule = |((rule, words), told): ((String, String), ToldRule)| {
            let ToldRule { events, without, counts } = told;
            let sum = |sum: ThinnedCounts, more: ThinnedCounts| ThinnedCounts {
                kept: sum.kept.saturating_add(more.kept),
                let_go: sum.let_go.saturating_add(more.let_go),
                unknown: sum.unknown.saturating_add(more.unknown),
            };
            let counts = counts.into_values().reduce(sum);
            ThinnedEvents { rule, words, events, without, counts }
        };
        self.0.into_iter().map(rule).collect()
    }
}

fn text<'t>(trace: &'t Trace, name: &str) -> Option<&'t str> {
    match trace.class.environment(name) {
        Some(EnvironmentValue::Text(text)) => Some(text),
        _ => None,
    }
}

fn patterns(list: &str, between: &str) -> Vec<String> {
    list.split(between).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Rules as the environment tells them, without counts.
fn ruled(trace: &Trace, [ruled, words]: [&str; 2]) -> Vec<ThinnedEvents> {
    let Some(ruled) = text(trace, ruled) else { return Vec::new() };
    let words = text(trace, words).unwrap_or_default();
    let mut behind = words;
    let mut all = Vec::new();
    let mut rules = ruled.split("; ").filter_map(|rule| rule.split_once(": ")).peekable();
    while let Some((name, events)) = rules.next() {
        let (events, without) = events.split_once(WITHOUT).unwrap_or((events, ""));
        // A condition may have a semicolon, too: words end where those of the next rule begin, at the last such place.
        let own = behind.strip_prefix(&format!("{name}: ")).unwrap_or(behind);
        let next = rules.peek().and_then(|(next, _)| own.rfind(&format!("; {next}: ")));
        let (own, rest) = own.split_at(next.unwrap_or(own.len()));
        behind = rest.strip_prefix("; ").unwrap_or(rest);
        let (events, without) = (patterns(events, ", "), patterns(without, ", "));
        all.push(ThinnedEvents { rule: name.to_owned(), words: own.to_owned(), events, without, counts: None });
    }
    all
}

/// Counts of the rules of the kernel, where the recording has ended: they are in one of the shortest streams.
fn counts_of_kernel(trace: &Trace) -> Vec<(String, ThinnedCounts)> {
    let mut streams: Vec<&DataStream> = trace.streams.iter().collect();
    streams.sort_by_key(|stream| stream.packets.packet_bytes(0..stream.packets.len()));
    let of = |stream: &DataStream| {
        let mut found = Vec::new();
        let told = ToldEvents::of(trace, stream, OF_KERNEL, &KERNEL_FIELDS)?;
        for packet in stream.packets.len().saturating_sub(LAST_PACKETS)..stream.packets.len() {
            told.packet(&stream.packets.get(packet), usize::MAX, |fields| found.extend(told_counts(fields)));
        }
        Some(found).filter(|found| !found.is_empty())
    };
    streams.into_iter().find_map(of).unwrap_or_default()
}

/// Whether a stream begins with events of the recorder.
fn is_own(trace: &Trace, stream: &DataStream) -> bool {
    let Some(first) = stream.packets.iter().find(|row| row.content_bits > 0) else { return false };
    let class = &trace.class.stream_classes[stream.class];
    let own = class.event_classes.iter().filter_map(|class| class.name.as_deref());
    own.filter(|name| name.starts_with("kymo:")).any(|name| {
        let mut has_some = false;
        let told = ToldEvents::of(trace, stream, name, &[]);
        told.into_iter().for_each(|told| told.packet(&first, 1, |_| has_some = true));
        has_some
    })
}

/// A rule's name, and its counts.
fn told_counts(fields: &[Option<FieldValue>]) -> Option<(String, ThinnedCounts)> {
    let number = |at: usize| match fields.get(at)?.as_ref()? {
        FieldValue::Integer(value) => u64::try_from(*value).ok(),
        _ => None,
    };
    let counts = ThinnedCounts { kept: number(1)?, let_go: number(2)?, unknown: number(3)? };
    Some((told_text(fields, 0)?, counts))
}

fn told_text(fields: &[Option<FieldValue>], at: usize) -> Option<String> {
    match fields.get(at)?.as_ref()? {
        FieldValue::Text(text) => Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(events: &[&str], without: &[&str], counts: Option<ThinnedCounts>) -> ThinnedEvents {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (rule, words) = ("slow".to_owned(), "a over 5ms since b".to_owned());
        ThinnedEvents { rule, words, events: owned(events), without: owned(without), counts }
    }

    #[test]
    fn rules_are_about_the_names_that_they_take() {
        let slow = rule(&["http:*", "!http:poll"], &["net:begin"], None);
        let about = ["http:end", "http:poll", "net:begin", "net:end"].map(|name| slow.is_about(name));
        assert_eq!(about, [true, false, true, false]);
        let calls = rule(&["syscall_exit_*"], &["syscall_entry_*"], None);
        let may = ["syscall_entry_*", "syscall_entry_openat", "sys*", "*", "sched_switch", "syscall_exi"];
        assert_eq!(may.map(|name| calls.may_be_about(name)), [true, true, true, true, false, false]);
    }

    #[test]
    fn sentences_tell_what_is_known() {
        let counts = ThinnedCounts { kept: 26, let_go: 42_640, unknown: 6 };
        assert_eq!(
            rule(&["syscall_exit_*", "compat_syscall_exit_*"], &["syscall_entry_*"], Some(counts)).sentence(),
            "rule `slow` kept 26 of 42,666 events of `syscall_exit_*`, and none of `syscall_entry_*` (a over 5ms since b)"
        );
        assert_eq!(
            rule(&["a", "!b", "c", "d", "e", "f"], &[], None).sentence(),
            "rule `slow` kept only some events of `a`, `c`, `d`, `e` and 1 more; the trace does not tell how many it let go \
             (a over 5ms since b)"
        );
    }
}
