//! `kymo TRACE`: one screen with the traces' contents and the commands to type next.

use std::io::{self, Write};
use std::path::PathBuf;

use jiff::tz::TimeZone;
use kymo_session::{
    Bounded, Cell, CellClass, Column, Info, Plot, Progress, Report, Session, Table, TraceInfo, Zone, json,
};

use crate::CommandOutcome;
use crate::answer::InstantFormat;
use crate::answer::screen::Screen;
use crate::answer::table::{self, TableLook};
use crate::answer::words::{CellDetail, CellFormatter, full_time, seconds};
use crate::arguments::{Color, InfoArguments};
use crate::message::plain_output;
use crate::progress::watched;
use crate::show::{self, bytes, counted, duration, grouped, sparkline};

/// Traces that are described one by one.
const TRACES_MAX: usize = 4;
/// Traces that have a line, where there are more.
const SUMMARIES_MAX: usize = 16;
/// Folders of a trace that are named.
const PATHS_MAX: usize = 4;
/// Classes that are named.
const CLASSES_MAX: usize = 8;

/// Shows the contents of the traces.
pub(crate) fn run(session: &Session, arguments: &InfoArguments) -> io::Result<CommandOutcome> {
    let progress = Progress::default();
    let info = match arguments.exact {
        true => watched(&progress, || session.info_exact(&progress)).map_err(io::Error::other)?,
        false => session.info(),
    };
    let mut out = plain_output();
    if arguments.json {
        writeln!(out, "{}", json::info(&info))?;
    } else {
        let terminal = Screen::of_output(Color::Never, false);
        screen(&info, &arguments.common.traces, terminal, &mut out)?;
    }
    // The rules are told above.
    let report = Report { thinned: Vec::new(), ..info.report };
    Ok(show::report(&report, arguments.common.strict))
}

/// Columns before a fact.
const FACT: usize = 12;

pub(crate) fn screen(info: &Info, paths: &[PathBuf], terminal: Screen, out: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::new();
    facts(info, terminal, &mut text)?;
    out.write_all(terminal.hung(&String::from_utf8_lossy(&text), FACT).as_bytes())?;
    // Commands stay whole.
    next(info, paths, out)
}

fn facts(info: &Info, terminal: Screen, out: &mut impl Write) -> io::Result<()> {
    if info.traces.len() <= TRACES_MAX {
        info.traces.iter().try_for_each(|trace| describe(trace, out))?;
    } else {
        summaries(&info.traces, out)?;
    }
    writeln!(out)?;
    let packets = counted(info.packets, "packet");
    writeln!(out, "  streams   {} with {packets}, {}", grouped(info.streams as u64), bytes(info.bytes))?;
    writeln!(out, "  events    {}", events(info))?;
    match info.span_ns {
        Some(span) => {
            writeln!(out, "  span      {}", span_of(span, info.is_unix))?;
            if let Some(silence) = silence(info, span) {
                writeln!(out, "  silence   {silence}")?;
            }
            // Events that are all in one moment have no shape.
            if span.1 > span.0 {
                writeln!(out, "  density   {}", density(&info.density, terminal.width))?;
            }
        }
        None if info.traces.iter().any(|trace| trace.span_ns.is_some()) => apart(info, out)?,
        None if info.events.value > 0 && info.traces.iter().any(|trace| !trace.clocks.is_empty()) => {
            writeln!(out, "  span      unknown: the packets carry no times; `--exact` asks the events")?;
        }
        None => {}
    }
    writeln!(out, "  losses    {}", show::losses(&info.report).unwrap_or_else(|| "none reported".to_owned()))?;
    for (number, rule) in info.report.thinned.iter().enumerate() {
        let title = if number == 0 { "rules" } else { "" };
        writeln!(out, "  {title:<10}{}", rule.sentence().trim_start_matches("rule "))?;
    }
    classes(info, terminal, out)
}

/// How long packets go on before the first event and behind the last one, if that is long beside the span.
fn silence(info: &Info, (begin, end): (i64, i64)) -> Option<String> {
    let packets = info.packets_ns?;
    let length = |from: i64, to: i64| i128::from(to) - i128::from(from);
    let shortest = (length(begin, end) / 10).max(1_000_000);
    let before = length(packets.0, begin);
    let behind = length(end, packets.1);
    let before = (before >= shortest).then(|| format!("begin {} before the first event", duration(before)));
    let behind = (behind >= shortest).then(|| format!("end {} behind the last event", duration(behind)));
    let parts: Vec<String> = before.into_iter().chain(behind).collect();
    (!parts.is_empty()).then(|| format!("packets {}", parts.join(" and ")))
}

/// Bytes over the span, as wide as the screen allows: several parts are one character of a narrow one.
fn density(parts: &[u64], width: Option<usize>) -> String {
    const HEAD: usize = "  density   ".len();
    const LEGEND: &str = "  (bytes over the span)";
    let width = width.unwrap_or(usize::MAX);
    let together = parts.len().div_ceil(width.saturating_sub(HEAD).max(1)).max(1);
    let line = sparkline(&parts.chunks(together).map(|parts| parts.iter().sum()).collect::<Vec<u64>>());
    let has_room = HEAD + parts.len().div_ceil(together) + LEGEND.len() <= width;
    if has_room { line + LEGEND } else { line }
}

/// The number of events and how many a second.
fn events(info: &Info) -> String {
    if info.packets == 0 {
        let readable = info.report.is_complete();
        return if readable { "none: nothing was recorded" } else { "none that can be read" }.to_owned();
    }
    let about = if info.events.is_exact { "" } else { "about " };
    let number = grouped(info.events.value) + if info.report.is_complete() { "" } else { " that can be read" };
    let span = info.span_ns.map(|(begin, end)| i128::from(end) - i128::from(begin)).filter(|span| *span > 0);
    match span.filter(|_| info.events.value > 0) {
        Some(span) => {
            format!("{about}{number}, {about}{} per second", rate(info.events.value as f64 * 1e9 / span as f64))
        }
        None => format!("{about}{number}"),
    }
}

/// Events and span in a few words.
pub(crate) fn summary(info: &Info) -> String {
    let about = if info.events.is_exact { "" } else { "about " };
    let events = format!("{about}{}", counted(info.events.value, "event"));
    let span = info.span_ns.map(|(begin, end)| format!(" in {}", duration(i128::from(end) - i128::from(begin))));
    events + &span.unwrap_or_default()
}

/// Small rates need digits behind the point.
fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 10.0 => grouped(rate.round() as u64),
        rate if rate >= 0.01 => format!("{rate:.2}"),
        _ => "less than 0.01".to_owned(),
    }
}

fn describe(trace: &TraceInfo, out: &mut impl Write) -> io::Result<()> {
    // A folder that was named as it is called needs no other name.
    let path = if trace.path == trace.name { String::new() } else { format!("  ({})", trace.path) };
    writeln!(out, "{}{path}", trace.name)?;
    if !trace.other_paths.is_empty() {
        let (others, paths) = (trace.other_paths.len(), trace.other_paths.iter().take(PATHS_MAX));
        let more = if others > PATHS_MAX { format!(" and {} more", others - PATHS_MAX) } else { String::new() };
        let paths: Vec<&str> = paths.map(String::as_str).collect();
        writeln!(out, "  parts     {}: that one, {}{more}", counted(1 + others as u64, "folder"), paths.join(", "))?;
    }
    if let Some(recorder) = recorder(trace) {
        let value = |name| environment(trace, name);
        let host = value("hostname").map_or(String::new(), |host| format!(" on {host}"));
        let kernel = value("kernel_release").map_or(String::new(), |kernel| format!(", kernel {kernel}"));
        writeln!(out, "  recorded  by {recorder}{host}{kernel}")?;
    }
    if let Some(texts) = environment(trace, "syscall_texts").and_then(|texts| texts.strip_prefix("addresses: ")) {
        writeln!(out, "  texts     of system calls are addresses: {}", texts.lines().next().unwrap_or_default())?;
    }
    for clock in &trace.clocks {
        let origin = if clock.is_unix { "since 1970" } else { "since its own origin" };
        let shift = match trace.clock_shift_ns {
            0 => String::new(),
            shift => format!(", shifted by {}{}", if shift > 0 { "+" } else { "" }, seconds(shift)),
        };
        writeln!(out, "  clock     {}, {} Hz, {origin}{shift}", clock.name, grouped(clock.frequency_hz))?;
    }
    if let Some(counters) = &trace.counters {
        writeln!(out, "  counters  {}", show::counters(counters))?;
    }
    writeln!(out, "  declares  {}", counted(trace.classes as u64, "event class"))
}

fn environment<'a>(trace: &'a TraceInfo, name: &str) -> Option<&'a str> {
    trace.recorded_by.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|it| !it.is_empty())
}

/// The tracer and its version.
fn recorder(trace: &TraceInfo) -> Option<String> {
    // Recordings of the kernel name LTTng as their tracer, for tools that know that one alone.
    if let Some(recorder) = environment(trace, "recorded_by") {
        let scope = environment(trace, "kernel_scope");
        return Some(scope.map_or_else(|| recorder.to_owned(), |scope| format!("{recorder}, only of {scope}")));
    }
    let tracer = environment(trace, "tracer_name")?;
    let version: Vec<&str> =
        ["tracer_major", "tracer_minor"].iter().map_while(|name| environment(trace, name)).collect();
    Some(if version.is_empty() { tracer.to_owned() } else { format!("{tracer} {}", version.join(".")) })
}

/// Many traces in a line each.
fn summaries(traces: &[TraceInfo], out: &mut impl Write) -> io::Result<()> {
    for trace in traces.iter().take(SUMMARIES_MAX) {
        let streams = counted(trace.streams as u64, "stream");
        let recorder = recorder(trace).map_or(String::new(), |recorder| format!("  {recorder}"));
        let more = match trace.other_paths.len() {
            0 => String::new(),
            others => format!(" and {}", counted(others as u64, "other folder")),
        };
        writeln!(out, "{}{more}  {streams}, {}{recorder}", trace.path, bytes(trace.bytes))?;
    }
    match traces.len().checked_sub(SUMMARIES_MAX) {
        Some(more) if more > 0 => writeln!(out, "... and {}", counted(more as u64, "more trace")),
        _ => Ok(()),
    }
}

/// Spans of traces with unrelated clocks.
fn apart(info: &Info, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "  spans     the clocks count from different origins:")?;
    let spans = info.traces.iter().filter_map(|trace| Some((trace, trace.span_ns?)));
    for (trace, span) in spans.clone().take(SUMMARIES_MAX) {
        writeln!(out, "    {}  {}", trace.name, span_of(span, trace.is_unix))?;
    }
    match spans.count().checked_sub(SUMMARIES_MAX) {
        Some(more) if more > 0 => writeln!(out, "    ... and {more} more"),
        _ => Ok(()),
    }
}

fn span_of((begin, end): (i64, i64), is_unix: bool) -> String {
    if begin == end {
        return format!("one moment, {}", time(begin, is_unix));
    }
    let length = duration(i128::from(end) - i128::from(begin));
    format!("{length}  from {} to {}", time(begin, is_unix), time(end, is_unix))
}

/// In the local zone, as other commands show times, with the zone's name.
fn time(nanos: i64, is_unix: bool) -> String {
    time_in(nanos, is_unix, Zone::Local.time_zone())
}

/// Always with nine digits behind the point.
fn time_in(nanos: i64, is_unix: bool, zone: TimeZone) -> String {
    is_unix.then(|| full_time(nanos, zone)).flatten().unwrap_or_else(|| seconds(nanos))
}

/// The commands to type next: words that a shell understands as they are.
fn next(info: &Info, paths: &[PathBuf], out: &mut impl Write) -> io::Result<()> {
    let paths: Vec<String> = paths.iter().map(|path| quoted(&path.display().to_string())).collect();
    let (first, all) = (&paths[0], paths.join(" "));
    let mut commands = Vec::new();
    if !info.report.is_complete() {
        commands.push(format!("kymo check {all}"));
    }
    match info.events.value {
        0 => commands.push(format!("kymo metadata {first} | less")),
        _ => commands.extend([format!("kymo print {all} | less"), format!("kymo count {all}")]),
    }
    writeln!(out, "\nNext:  {}", commands.join("\n       "))
}

/// A word as a shell needs it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=~".contains(&byte);
    if word.bytes().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

fn classes(info: &Info, terminal: Screen, out: &mut impl Write) -> io::Result<()> {
    if info.busiest.is_empty() {
        return Ok(());
    }
    let sampled = if info.events.is_exact { "" } else { "  (estimated from a few packets)" };
    writeln!(out, "  busiest event classes{sampled}")?;
    if let Some(width) = terminal.width {
        let fitted = Screen { width: Some(width.saturating_sub(INDENT)), ..terminal };
        return fitted_classes(&info.busiest, fitted, out);
    }
    for (name, share) in info.busiest.iter().take(CLASSES_MAX) {
        let bar = "█".repeat((share * 30.0).round() as usize);
        writeln!(out, "    {:>5.1}%  {bar:<30}  {name}", share * 100.0)?;
    }
    match info.busiest.len().checked_sub(CLASSES_MAX) {
        Some(more) if more > 0 => writeln!(out, "            ... and {more} more"),
        _ => Ok(()),
    }
}

/// Columns before the table of classes.
const INDENT: usize = 4;

/// The classes as a table that fits.
fn fitted_classes(busiest: &[(String, f64)], screen: Screen, out: &mut impl Write) -> io::Result<()> {
    let columns = vec![Column::new("class", "Event", CellClass::Text), Column::new("share", "Share", CellClass::Ratio)];
    let mut table = Table { plot: Some(Plot::Bars { value: 1 }), ..Table::new("classes", "", columns) };
    let row = |(name, share): &(String, f64)| vec![Cell::Text(name.clone()), Cell::Ratio(Bounded::exact(*share))];
    table.rows = busiest.iter().take(CLASSES_MAX).map(row).collect();
    let words = CellFormatter { times: InstantFormat::default(), unicode: screen.unicode, detail: CellDetail::Telling };
    let mut text = Vec::new();
    table::rows(&table, &words, screen, TableLook::WHOLE, &mut text)?;
    for line in String::from_utf8_lossy(&text).lines() {
        writeln!(out, "{:INDENT$}{line}", "")?;
    }
    match busiest.len().checked_sub(CLASSES_MAX) {
        Some(more) if more > 0 => writeln!(out, "{:INDENT$}... and {more} more (kymo count)", ""),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_classes_as_wide_as_it_is() {
        let busiest = |name: &str, share| (name.to_owned(), share);
        let all = [busiest("syscall_entry_clock_nanosleep_time64", 0.625), busiest("exit", 0.375)];
        let text = |width| {
            let mut out = Vec::new();
            let screen = Screen { width: Some(width), colours: false, unicode: true };
            fitted_classes(&all, screen, &mut out).expect("memory takes all bytes");
            String::from_utf8(out).expect("it is text")
        };
        let wide = "    Event                                 Share\n    \
                    syscall_entry_clock_nanosleep_time64  62.5%  ██████████████████████████████\n    \
                    exit                                  37.5%  ██████████████████\n";
        assert_eq!(text(80), wide);
        assert!(text(30).lines().all(|line| line.chars().count() <= 34), "{}", text(30));
        assert!(text(30).contains("62.5%") && text(30).contains('…'), "{}", text(30));
    }

    #[test]
    fn the_density_fits_and_keeps_all_bytes() {
        let parts: Vec<u64> = (0..60).map(|part| u64::from(part == 59)).collect();
        let long = |width| density(&parts, width);
        assert_eq!(long(None), long(Some(96)));
        assert!(long(None).ends_with("█  (bytes over the span)"), "{}", long(None));
        for width in 1..96 {
            let line = long(Some(width));
            // The last part has all bytes, and the others nothing.
            assert_eq!(line.trim_end_matches("  (bytes over the span)").trim_start(), "█", "{width}");
            assert!(12 + line.chars().count() <= width.max(13), "{width}: {line}");
        }
        assert_eq!(density(&[], Some(80)), "  (bytes over the span)");
    }

    #[test]
    fn times_are_exact() {
        assert_eq!(time(i64::MAX, false), "9223372036.854775807 s");
        assert_eq!(time(-1, false), "-0.000000001 s");
        assert_eq!(time_in(60, true, TimeZone::UTC), "1970-01-01T00:00:00.000000060Z");
        let new_york = TimeZone::fixed(jiff::tz::offset(-5));
        assert_eq!(time_in(60, true, new_york), "1969-12-31T19:00:00.000000060-05:00");
        assert_eq!(span_of((5, 5), false), "one moment, 0.000000005 s");
    }

    #[test]
    fn words_for_people_and_shells() {
        assert_eq!((counted(1, "event class"), counted(0, "packet")), ("1 event class".into(), "0 packets".into()));
        assert_eq!((rate(0.001), rate(9.5), rate(12.4)), ("less than 0.01".into(), "9.50".into(), "12".into()));
        assert_eq!((quoted("a/b-1"), quoted("it's")), ("a/b-1".into(), r"'it'\''s'".into()));
    }
}
