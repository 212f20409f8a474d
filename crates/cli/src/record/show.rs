//! The recorded session, for people.

use std::io::{self, Write};

use kymo_recorder::capture::LineCount;
use kymo_recorder::packets::PacketCounts;
use kymo_recorder::protocol::{LostEvents, SessionSummary};
use kymo_recorder::rule::{RuleKind, RuleStatus, RuleTest};
use kymo_recorder::select::{SelectionRule, SubjectRule};
use kymo_recorder::tracepoints::{KernelSummary, WatchSummary};
use kymo_recorder::trigger::{TriggerEffect, TriggerFiring, TriggerOptions, TriggerScope, TriggerStatus};
use kymo_schema::level::LogLevel;
use kymo_session::TraceCounters;

use super::console::ConsoleResult;
use super::kernel_list::counted_places;
use crate::show::{self, bytes, counted, duration, grouped};

/// Facts about a session where it ends, beside those from its recorder.
#[derive(Default)]
pub(crate) struct SessionFacts<'a> {
    /// Lines of its command that were recorded.
    pub(crate) captured: Option<LineCount>,
    /// Packets that were recorded.
    pub(crate) packets: Option<&'a PacketCounts>,
    /// The counters of CPUs, if they were compared.
    pub(crate) counters: Option<&'a TraceCounters>,
    /// The command that was started for it.
    pub(crate) command: Option<&'a str>,
    /// The arguments choose programs.
    pub(crate) chooses_programs: bool,
    /// Its events were printed.
    pub(crate) printed: Option<&'a ConsoleResult>,
}

/// The summary of a session that is over.
pub(crate) fn ended(summary: &SessionSummary, told: &SessionFacts<'_>) -> String {
    let took = duration(i128::from(summary.milliseconds) * 1_000_000);
    let events = counted(summary.events, "event");
    let programs = match summary.kernel {
        None => counted(summary.programs, "program"),
        Some(_) if summary.programs == 0 => "the kernel".to_owned(),
        Some(_) => format!("the kernel and {}", counted(summary.programs, "program")),
    };
    let is_kept = told.printed.is_none_or(|printed| printed.is_kept);
    let mut text = match summary.snapshots {
        Some(snapshots) if summary.events == 0 => return kept(summary, told, snapshots),
        _ if !is_kept => format!("recorded {events} of {programs} in {took}\n"),
        Some(snapshots) => {
            let taken = counted(snapshots.into(), "snapshot");
            format!("recorded {events} of {programs} in {took}, {} in {taken}\n", bytes(summary.bytes))
        }
        None => format!("recorded {events} of {programs} in {took}, {}\n", bytes(summary.bytes)),
    };
    if is_kept {
        text += &format!("  trace     {}\n", summary.output.display());
    }
    if let Some(LineCount { lines, cut }) = told.captured {
        let cut = if cut == 0 { String::new() } else { format!(", {} of them cut", grouped(cut)) };
        text += &format!("  output    {}{cut}, recorded by kymo itself\n", counted(lines, "line"));
    }
    text += &told.packets.map_or_else(String::new, packets);
    text += &summary.kernel.as_ref().map_or_else(String::new, kernel);
    text += &rules(summary);
    text += &super::user_objects::stopped(summary);
    text += &counters(told);
    if summary.filtered > 0 {
        text += &format!("  filtered  {}\n", counted(summary.filtered, "event"));
    }
    let lost = losses(summary).into_iter().chain(told.packets.and_then(dropped_packets));
    let lost: Vec<String> = lost.chain(summary.kernel.as_ref().and_then(kernel_losses)).collect();
    text += &format!("  losses    {}\n", if lost.is_empty() { "none".to_owned() } else { lost.join("; ") });
    text += &triggers(summary);
    text += &unprinted(summary, told);
    text += &problems(summary);
    let path = quoted(&summary.output.display().to_string());
    let room = room(summary);
    text += &match summary.events {
        // That says it all.
        0 if summary.programs == 0 && !room.is_empty() => String::new(),
        0 => format!("\nnote: {}\n", nothing(summary, told)),
        _ if !is_kept => String::new(),
        _ => format!("\nNext:  kymo {path}\n       kymo print {path} | less\n"),
    };
    text += &super::user_objects::maps(summary);
    text + &room + &still_running(summary, told)
}

/// The summary of a flight recorder that has written no snapshot, or only those that commands asked for.
fn kept(summary: &SessionSummary, told: &SessionFacts<'_>, snapshots: u32) -> String {
    let (took, programs) =
        (duration(i128::from(summary.milliseconds) * 1_000_000), counted(summary.programs, "program"));
    let taken = counted(snapshots.into(), "snapshot");
    let text = format!("kept the events of {programs} in memory for {took}; {taken} taken\n")
        + &told.packets.map_or_else(String::new, packets)
        + &rules(summary)
        + &super::user_objects::stopped(summary)
        + &counters(told)
        + &triggers(summary)
        + &unprinted(summary, told)
        + &problems(summary)
        + &super::user_objects::maps(summary);
    let is_lost = snapshots == 0 && summary.programs > 0 && told.printed.is_none();
    text + if is_lost { "\nnote: nothing was written: `kymo snapshot` does, while a session lasts\n" } else { "" }
}

/// Events that are not on standard output, and why.
fn unprinted(summary: &SessionSummary, told: &SessionFacts<'_>) -> String {
    let Some(printed) = told.printed else { return String::new() };
    let problem = printed.problem().map(|problem| format!("  problem   {problem}\n"));
    let events = match printed.unprinted(summary) {
        0 => String::new(),
        events => format!(
            "  unprinted {}, which had to be deleted before standard output took them; `--output` keeps all\n",
            counted(events, "event")
        ),
    };
    problem.unwrap_or_default() + &events
}

/// What rules have kept and let go.
pub(super) fn rules(summary: &SessionSummary) -> String {
    let mut text = Vec::new();
    // Memory takes any text.
    summary.rules.iter().for_each(|status| rule_status(status, &mut text).expect("there is memory"));
    for RuleStatus { options, words, kept, let_go, .. } in &summary.removed_rules {
        let (kept, all) = (grouped(*kept), counted(kept + let_go, "event"));
        let line = writeln!(text, "  rule      {}: kept {kept} of {all} until it was removed ({words})", options.name);
        line.expect("there is memory");
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Packets that are missing, in a sentence.
pub(super) fn dropped_packets(counts: &PacketCounts) -> Option<String> {
    let dropped = Some(counts.dropped).filter(|dropped| *dropped > 0)?;
    Some(format!("{} that the kernel dropped: a smaller snap length leaves room for more", counted(dropped, "packet")))
}

/// How many packets were recorded.
pub(super) fn packets(counts: &PacketCounts) -> String {
    let PacketCounts { packets, cut, interfaces, .. } = counts;
    let of: Vec<&str> = interfaces.keys().map(String::as_str).collect();
    let of = if of.is_empty() { String::new() } else { format!(" of {}", of.join(", ")) };
    let cut = if *cut == 0 { String::new() } else { format!(", {} of them cut", grouped(*cut)) };
    format!("  packets   {}{of}{cut}, recorded by kymo itself\n", counted(*packets, "packet"))
}

/// Events of the kernel, and the cost of reading them.
fn kernel(kernel: &KernelSummary) -> String {
    let KernelSummary { events, bytes: size, classes, probes, cpus, cpu_ns, texts_unknown, .. } = *kernel;
    let absent = kernel.texts_absent.as_ref();
    let absent = absent.map(|why| {
        format!("  texts     of system calls are addresses: {}\n", why.trim_end().replace('\n', "\n            "))
    });
    let unknown = match texts_unknown.saturating_sub(kernel.texts_lost) {
        0 => String::new(),
        count => format!("  texts     {} of system calls could not be read, and are empty\n", grouped(count)),
    };
    let of = if kernel.tracefs_absent.is_some() { "kind" } else { "tracepoint" };
    let tracepoints = counted(classes, of);
    let kinds = if probes > 0 { format!("{} and {tracepoints}", counted(probes, "probe")) } else { tracepoints };
    let told = format!(
        "  kernel    {} of {kinds} on {}, {}; recording them took {} of processor time\n",
        counted(events, "event"),
        counted(cpus, "CPU"),
        bytes(size),
        duration(i128::from(cpu_ns))
    );
    let why = kernel.state_absent.as_ref().map(|why| format!(": {}", why.trim_end().replace('\n', "\n            ")));
    let state = match kernel.state.as_str() {
        "" => String::new(),
        source => format!("  state     at the beginning is from {source}{}\n", why.unwrap_or_default()),
    };
    let tracefs = kernel.tracefs_absent.as_ref().map_or_else(String::new, |why| format!("  tracefs   {why}\n"));
    told + &filters(kernel)
        + &watches(kernel)
        + &tracefs
        + &state
        + &unknown
        + &absent.unwrap_or_default()
        + &stacks(kernel)
}

/// Where filters ran, and how many events the recorder read and did not keep.
fn filters(kernel: &KernelSummary) -> String {
    if kernel.filters.is_empty() {
        return String::new();
    }
    let places = counted_places(&kernel.filters);
    let filtered = counted(kernel.filtered, "event");
    format!("  filters   {places}; the recorder let go of {filtered} that the kernel recorded\n")
}

/// Counts beside the events.
fn watches(kernel: &KernelSummary) -> String {
    let line = |watch: &WatchSummary| {
        let (events, rows) = (counted(watch.events, "event"), counted(watch.rows, "row"));
        let unbegun = watch.unbegun.filter(|events| *events > 0);
        let unbegun = unbegun.map(|events| format!(", and {} without a known begin", grouped(events)));
        let unread = if watch.is_complete { "" } else { ", and those that could not be read at the end" };
        let notes: String = watch.notes.iter().map(|note| format!("            {note}\n")).collect();
        let WatchSummary { name, words, .. } = watch;
        format!("  counted   {name}: {events} in {rows}{}{unread} ({words})\n{notes}", unbegun.unwrap_or_default())
    };
    kernel.watches.iter().map(line).collect()
}

/// Call stacks, or why there are none.
fn stacks(kernel: &KernelSummary) -> String {
    match (&kernel.stacks_absent, kernel.stacks) {
        (Some(why), _) => format!("  stacks    none: {}\n", why.trim_end().replace('\n', "\n            ")),
        (None, 0) => String::new(),
        (None, stacks) => format!("  stacks    {}\n", counted(stacks, "call stack")),
    }
}

/// Events of the kernel that are missing, in a sentence.
fn kernel_losses(kernel: &KernelSummary) -> Option<String> {
    let parts = [
        (kernel.lost, "of the kernel for which its buffers had no room: `--kernel-buffer` gives more"),
        (kernel.unreadable, "of the kernel that could not be read or written, as the problems say"),
    ];
    let said =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{} {why}", counted(*count, "event")));
    let texts = Some(kernel.texts_lost).filter(|lost| *lost > 0).map(|lost| {
        format!("{} of system calls for which there was no room: `--kernel-buffer` gives more", counted(lost, "text"))
    });
    let stacks = Some(kernel.stacks_lost).filter(|lost| *lost > 0);
    let stacks = stacks.map(|lost| {
        format!("{} for which there was no room: `--kernel-buffer` gives more", counted(lost, "record of call stacks"))
    });
    let ruled = Some(kernel.ruled_lost).filter(|lost| *lost > 0).map(|lost| {
        format!(
            "{} that rules have kept, for which there was no room: `--kernel-buffer` gives more",
            counted(lost, "event")
        )
    });
    let unasked = Some(kernel.unasked).filter(|times| *times > 0);
    let unasked = unasked.map(|times| {
        format!("{} that interrupted the rules of the kernel, which were not asked about them", counted(times, "event"))
    });
    let uncounted = kernel.watches.iter().flat_map(|watch| {
        let full = "were not counted, as the map is full (`--rows` makes a larger one)";
        let busy = "were not counted, as they interrupted the program that counts";
        let parts = [(watch.map_full, full), (watch.interrupted, busy)].into_iter().filter(|(count, _)| *count > 0);
        parts.map(|(count, why)| format!("{} of `{}` {why}", counted(count, "event"), watch.name))
    });
    let said: Vec<String> = said.chain(texts).chain(stacks).chain(ruled).chain(unasked).chain(uncounted).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// The same for machines.
pub(super) fn packets_json(counts: &PacketCounts) -> serde_json::Value {
    let PacketCounts { packets, cut, dropped, interfaces, .. } = counts;
    serde_json::json!({"packets": packets, "cut": cut, "dropped": dropped, "interfaces": interfaces})
}

fn counters(told: &SessionFacts<'_>) -> String {
    told.counters.map_or_else(String::new, |counters| format!("  counters  {}\n", show::counters(counters)))
}

/// Whether its triggers have fired.
pub(super) fn triggers(summary: &SessionSummary) -> String {
    summary.triggers.iter().map(|status| trigger_text(status, TriggerTense::Over)).collect()
}

fn problems(summary: &SessionSummary) -> String {
    summary
        .problems
        .iter()
        .map(|problem| format!("  problem   {}\n", problem.replace('\n', "\n            ")))
        .collect()
}

/// Why there may be nothing.
fn nothing(summary: &SessionSummary, told: &SessionFacts<'_>) -> String {
    let is_captured = told.captured.is_some();
    // The process that records lines and packets is one.
    let programs = summary.programs.saturating_sub((is_captured || told.packets.is_some()).into());
    let lines = if is_captured { "and wrote no line" } else { "`--capture-output` records the lines that it writes" };
    match told.command {
        _ if summary.lost.events() > 0 => "everything that was selected was lost".to_owned(),
        _ if programs == 0 && told.chooses_programs => {
            "no program was found that records and is called so, or has that number; `kymo status` says which there are, while a\n      \
             session runs"
                .to_owned()
        }
        Some(command) if programs == 0 => format!(
            "no program with events was found among `{command}` and the programs that it started; {lines}.\n      \
             Programs have events with libkymo (C, C++), kymo_tracer or kymo_tracing (Rust). They are not found if they run as\n      \
             another user (sudo, setuid), in a container, with KYMO=off or too small limits, without both environment and\n      \
             parents (env -i of a daemon), or if libkymo.so was not found; `kymo doctor` checks this machine"
        ),
        None if programs == 0 && told.packets.is_some_and(|counts| counts.packets == 0) => {
            "no packet came that the filter keeps, if there is one, and no program was found that records".to_owned()
        }
        None if programs == 0 => "no program was found that records; `kymo doctor` says why that may be".to_owned(),
        _ if summary.rules.iter().any(|rule| rule.let_go > 0) => "the rules kept no event".to_owned(),
        _ if summary.filtered > 0 => "the filter kept no event".to_owned(),
        _ => "no selected event occurred; `kymo status --events` shows the events of programs while a session runs"
            .to_owned(),
    }
}

/// Where programs found no memory, there may be none.
fn room(summary: &SessionSummary) -> String {
    if summary.programs > 0 && summary.lost.full + summary.lost.no_lane == 0 {
        return String::new();
    }
    kymo_recorder::doctor::lacks_room(None).map_or_else(String::new, |finding| {
        let help = finding.help.map_or_else(String::new, |help| format!("\nhelp: {help}"));
        format!("\nnote: programs may have had no room for events: {}{help}\n", finding.found)
    })
}

/// A daemon, say.
fn still_running(summary: &SessionSummary, told: &SessionFacts<'_>) -> String {
    match (told.command, summary.running.saturating_sub((told.captured.is_some() || told.packets.is_some()).into())) {
        (None, _) | (_, 0) => String::new(),
        (Some(command), running) => {
            let (go, are) = if running == 1 { ("goes", "is") } else { ("go", "are") };
            let programs = counted(running, "program");
            format!(
                "\nnote: {programs} that `{command}` has started {go} on, and {are} not recorded any more: `kymo record --process`\n      \
                 does, without a command\n"
            )
        }
    }
}

/// The losses, in a sentence.
pub(crate) fn losses(summary: &SessionSummary) -> Option<String> {
    let LostEvents { full, no_lane, unwritten, undefined } = summary.lost;
    let parts = [
        (full, "for which there was no room: `--pool-size` gives more, and so does `--lane-size` where it was said"),
        (no_lane, "of threads that found no lane"),
        (unwritten, "that could not be written"),
        (undefined, "whose definitions cannot be used, as the problems say"),
    ];
    let mut said: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{} {why}", counted(*count, "event")))
        .collect();
    if summary.has_gap {
        said.push("what programs did that came and went while no recorder ran is not known".to_owned());
    }
    if summary.late_programs > 0 {
        let programs = counted(summary.late_programs, "program");
        said.push(format!("what {programs} did before the recorder found them is not known"));
    }
    if let [first, more @ ..] = &summary.late_folders[..] {
        let more = if more.is_empty() {
            String::new()
        } else {
            format!(" and {}", counted(more.len() as u64, "other folder"))
        };
        said.push(format!(
            "what programs in {}{more} did before the recorder found that folder is not known, if there were any",
            first.display()
        ));
    }
    if summary.overwritten > 0 {
        said.push(format!("{} were overwritten meanwhile", counted(summary.overwritten, "sub-buffer")));
    }
    if summary.damaged_bytes > 0 {
        said.push(format!("{} of damaged memory", bytes(summary.damaged_bytes)));
    }
    if summary.stepped > 0 {
        let events = counted(summary.stepped, "event");
        said.push(format!(
            "{events} that the clock put a little before the one before: the trace has them, with the time of that one"
        ));
    }
    if summary.cut > 0 {
        said.push(format!("{} cut", counted(summary.cut, "text")));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// A line with the progress of a session.
pub(crate) fn line(summary: &SessionSummary, per_second: f64) -> String {
    let took = summary.milliseconds as f64 / 1000.0;
    let lost = match summary.lost.events() {
        0 => "nothing lost".to_owned(),
        lost => format!("{} lost", grouped(lost)),
    };
    let rate = grouped(per_second.round() as u64);
    let programs = counted(summary.programs, "program");
    format!(
        "{took:.1} s  {} ({rate}/s)  {}  {programs}  {lost}",
        counted(summary.events, "event"),
        bytes(summary.bytes)
    )
}

/// A word as a shell needs it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=~".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Events and programs that a rule matches, for people.
pub(super) fn rule(rule: &SelectionRule) -> String {
    let events = if rule.events.is_empty() { "everything".to_owned() } else { rule.events.join(" ") };
    let level = rule.level.map_or(String::new(), |level| {
        format!(", at least {}", LogLevel::of(level.into()).map_or("?", |level| level.name))
    });
    let of = match (&rule.tag, rule.processes.is_empty()) {
        (None, true) if rule.is_within => ", of programs that it records".to_owned(),
        (_, false) => format!(", of {}", rule.processes.join(" ")),
        (Some(_), true) => ", of its command".to_owned(),
        (None, true) => String::new(),
    };
    let filter = rule.filter.as_ref().map_or(String::new(), |filter| format!(", if {filter}"));
    let subject = rule.subject.as_ref().map_or(String::new(), subject);
    let others = match rule.unless.len() {
        0 => "",
        _ => ", but for threads of more specific policies",
    };
    events + &level + &of + &subject + others + &filter
}

/// Conditions of a policy, but for the names of programs.
fn subject(subject: &SubjectRule) -> String {
    let text = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!(", {name} `{value}`"));
    let list = |name: &str, values: &[String]| (!values.is_empty()).then(|| format!(", {name} {}", values.join(" ")));
    let users: Vec<String> = subject.users.iter().map(u32::to_string).collect();
    [
        text("label", &subject.label),
        text("label that begins with", &subject.label_prefix),
        text("label that ends with", &subject.label_suffix),
        text("label like", &subject.label_glob),
        list("user", &users),
        list("group", &subject.cgroups),
        text("thread", &subject.thread),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Kinds of a rule that are shown.
const KINDS_SHOWN: usize = 10;

/// A rule with its counts and limits, for people.
pub(super) fn rule_status(status: &RuleStatus, out: &mut impl Write) -> io::Result<()> {
    let RuleStatus {
        options,
        words,
        kept,
        let_go,
        unknown,
        forgotten,
        programs,
        without,
        why,
        problems,
        running_ns,
        kinds,
        lost,
        shared,
    } = status;
    let ns = |ns: u64| duration(ns.into());
    let asked = kept + let_go;
    let is_seen = matches!(options.asks.test, RuleTest::Program { is_filter: false, .. });
    let outcome = match is_seen {
        true => format!("ran for {}", counted(asked - unknown.min(&asked), "event")),
        false => format!("kept {} of {}", grouped(*kept), counted(asked, "event")),
    };
    writeln!(out, "  rule      {}: {outcome} ({words})", options.name)?;
    let is_set = options.set.is_some().then(|| format!("limit {}", options.limit()));
    let running = running_ns.map(|running| format!("the running limit is {}", ns(running)));
    let now: Vec<String> = is_set.into_iter().chain(running).collect();
    if !now.is_empty() {
        writeln!(out, "            {}", now.join("; "))?;
    }
    if *unknown > 0 && matches!(options.asks.test, RuleTest::Program { .. }) {
        let (events, of) = (counted(*unknown, "event"), if is_seen { "more" } else { "of these" });
        writeln!(
            out,
            "            {events} {of} did not meet it, and are kept: it was not in their program, or not yet"
        )?;
    } else if *unknown > 0 {
        // A trigger fires at none of them: they are among those that it did not keep.
        let (of, fate) =
            if options.name.starts_with("trigger:") { ("of all", "fire nothing") } else { ("of these", "are kept") };
        writeln!(out, "            {} {of} had no known begin, and {fate}", grouped(*unknown))?;
    }
    if let Some(note) = status.unknown_note() {
        writeln!(out, "            {note}")?;
    }
    if *forgotten > 0 {
        writeln!(out, "            {} were forgotten, as there were too many at a time", counted(*forgotten, "key"))?;
    }
    if let Some(lost @ 1..) = lost {
        writeln!(out, "            {} of these were lost, as their ring was full", grouped(*lost))?;
    }
    kinds_status(kinds, *shared, out)?;
    for problem in problems {
        writeln!(out, "            {problem}")?;
    }
    if *without > 0 {
        let all = counted((*programs).max(*without), "program");
        writeln!(
            out,
            "            {without} of {all} cannot ask it at some events, and the recorder does: {}",
            why.join("; ")
        )?;
    }
    Ok(())
}

/// Kinds of a rule, and the events of those that share one limit.
fn kinds_status(kinds: &[RuleKind], shared: u64, out: &mut impl Write) -> io::Result<()> {
    let ns = |ns: u64| duration(ns.into());
    for kind in kinds.iter().take(KINDS_SHOWN) {
        let set = kind.set_ns.map(|set| format!("limit {}", ns(set)));
        let running = kind.running_ns.map(|running| format!("running limit {}", ns(running)));
        let its: Vec<String> = set.into_iter().chain(running).chain([counted(kind.events, "event")]).collect();
        writeln!(out, "            {}: {}", kind.name, its.join(", "))?;
    }
    if kinds.len() > KINDS_SHOWN {
        writeln!(out, "            and {} more", counted((kinds.len() - KINDS_SHOWN) as u64, "kind"))?;
    }
    if shared > 0 {
        let events = counted(shared, "event");
        writeln!(
            out,
            "            other kinds share one limit, as {} have limits of their own: {events}",
            kinds.len()
        )?;
    }
    Ok(())
}

/// How a session with these triggers goes on that records nothing now.
pub(super) fn start_word(triggers: &[TriggerStatus]) -> String {
    let starts = || triggers.iter().filter(|status| status.options.effect == TriggerEffect::Start);
    let armed: Vec<String> =
        starts().filter(|status| status.is_armed).map(|status| format!("`{}`", status.options.name)).collect();
    match (&armed[..], starts().next()) {
        ([], None) => "no trigger starts it, `kymo trigger --start` does".to_owned(),
        ([], Some(_)) => {
            "no trigger that starts it is armed: `kymo trigger --arm` arms them, `kymo trigger --start` starts it now"
                .to_owned()
        }
        ([one], _) => format!("it waits for trigger {one}; `kymo trigger --start` starts it now"),
        (all, _) => {
            format!("it waits for one of the triggers {}; `kymo trigger --start` starts it now", all.join(", "))
        }
    }
}

/// Whether a trigger may fire again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TriggerTense {
    Running,
    /// Its session is over.
    Over,
}

/// A trigger with its state, for people.
pub(super) fn trigger(status: &TriggerStatus, out: &mut impl Write) -> io::Result<()> {
    out.write_all(trigger_text(status, TriggerTense::Running).as_bytes())
}

fn trigger_text(status: &TriggerStatus, tense: TriggerTense) -> String {
    let mut lines = vec![trigger_state(status, tense)];
    lines.extend(status.last.as_ref().map(last_firing));
    if status.watched > 0 {
        let of = counted(status.programs + status.watched, "program");
        let why = if status.why.is_empty() { String::new() } else { format!(": {}", status.why.join("; ")) };
        lines.push(format!("in {} of {of}; the recorder watches the others{why}", status.programs));
    }
    // A running session has told the others when the trigger was added.
    let notes = status.notes.iter().filter(|_| tense == TriggerTense::Over);
    let warnings = status.warnings();
    lines.extend(warnings.iter().chain(notes).map(|line| line.trim_end().replace('\n', "\n            ")));
    let lines = lines.iter().map(|line| format!("            {line}\n"));
    format!("  trigger   {}\n", trigger_words(&status.options)) + &lines.collect::<String>()
}

fn trigger_words(options: &TriggerOptions) -> String {
    let effect = options.effect_words();
    let name = if options.name == options.effect.word() { String::new() } else { format!("{}: ", options.name) };
    let length = options.for_ns.map_or(String::new(), |ns| format!(" for {}", duration(ns.into())));
    let repeats = if options.repeats { ", each time" } else { "" };
    let every = options.interval_ns.map_or(String::new(), |ns| format!(", at most once in {}", duration(ns.into())));
    let scope = if options.scope == TriggerScope::Program { ", its program alone" } else { "" };
    let rule = rule(&options.rule);
    let after = options.after.map_or(String::new(), |count| format!(", after {}", counted(count.into(), "event")));
    let asks = options.asks.as_ref().map_or_else(String::new, |asks| format!(" {}", asks.words()));
    let last =
        options.last.map_or(String::new(), |count| format!(", with the last {}", counted(count.into(), "event")));
    format!("{name}{effect} on {rule}{asks}{after}{last}{length}{repeats}{every}{scope}")
}

fn trigger_state(status: &TriggerStatus, tense: TriggerTense) -> String {
    let TriggerStatus { is_armed, firings, suppressed, .. } = status;
    let fired = format!("has fired {}", counted(*firings, "time"));
    let state = match (is_armed, firings, tense) {
        (_, 0, TriggerTense::Over) => "has not fired".to_owned(),
        (_, _, TriggerTense::Over) => fired,
        (true, 0, _) => "armed".to_owned(),
        (true, ..) => format!("armed; {fired}"),
        (false, 0, _) => "disarmed".to_owned(),
        (false, ..) => format!("{fired}; `kymo trigger --arm` arms it anew"),
    };
    let early =
        if *suppressed > 0 { format!(", and was too early {}", counted(*suppressed, "time")) } else { String::new() };
    let is_counting = status.options.after.is_some() && (tense == TriggerTense::Running || *is_armed);
    let so_far = if is_counting { format!("; {} counted", status.counted) } else { String::new() };
    state + &early + &so_far
}

fn last_firing(last: &TriggerFiring) -> String {
    let time =
        jiff::Timestamp::from_nanosecond(last.ns.into()).map_or_else(|_| last.ns.to_string(), |time| time.to_string());
    let late = if last.is_late { ", found in the trace" } else { "" };
    let at = if last.is_exact { format!("last at {time},") } else { format!("last fired at {time}, just before") };
    format!("{at} {} of {} (process {}, thread {}){late}", last.event, last.program, last.pid, last.tid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_by_its_reason() {
        let mut summary = SessionSummary {
            events: 12_345,
            bytes: 1 << 20,
            programs: 2,
            milliseconds: 1500,
            ..SessionSummary::default()
        };
        assert_eq!(losses(&summary), None);
        assert_eq!(line(&summary, 100.4), "1.5 s  12,345 events (100/s)  1.0 MiB  2 programs  nothing lost");
        summary.lost = LostEvents { full: 3, no_lane: 1, unwritten: 0, undefined: 0 };
        assert_eq!(
            losses(&summary).as_deref(),
            Some(
                "3 events for which there was no room: `--pool-size` gives more, and so does `--lane-size` where it was \
                 said; 1 event of threads that found no lane"
            )
        );
        let ended = ended(&summary, &SessionFacts::default());
        assert!(ended.starts_with("recorded 12,345 events of 2 programs in 1.500 s, 1.0 MiB\n"));
    }
}
