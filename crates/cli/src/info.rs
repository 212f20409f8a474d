//! `kymo TRACE`: one screen that says what is there and what to type next.

use std::io::{self, Write};

use jiff::Timestamp;
use kymo_session::{Info, Progress, Session, TraceInfo};
use serde_json::json;

use crate::Outcome;
use crate::arguments::InfoArguments;
use crate::progress::watched;
use crate::show::{self, bytes, duration, grouped, sparkline};

/// Traces that are described one by one.
const TRACES_MAX: usize = 4;
/// Classes that are named.
const CLASSES_MAX: usize = 8;

/// Shows what the traces hold.
pub(crate) fn run(session: &Session, arguments: &InfoArguments) -> io::Result<Outcome> {
    let progress = Progress::default();
    let info = if arguments.exact { watched(&progress, || session.info_exact(&progress)) } else { session.info() };
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", as_json(&info))?;
    } else {
        let path = arguments.common.traces[0].display().to_string();
        screen(&info, &path, &mut out)?;
    }
    Ok(show::report(&info.report))
}

fn screen(info: &Info, path: &str, out: &mut impl Write) -> io::Result<()> {
    for trace in info.traces.iter().take(TRACES_MAX) {
        describe(trace, out)?;
    }
    if info.traces.len() > TRACES_MAX {
        writeln!(out, "... and {} more traces", info.traces.len() - TRACES_MAX)?;
    }
    writeln!(out)?;
    let size = bytes(info.bytes);
    writeln!(out, "  streams   {} with {} packets, {size}", grouped(info.streams as u64), grouped(info.packets))?;
    let about = if info.events.is_exact { "" } else { "about " };
    let span = info.span_ns.map(|(begin, end)| i128::from(end) - i128::from(begin));
    let rate = span.filter(|span| *span > 0).map_or(String::new(), |span| {
        format!(", {about}{} per second", grouped((info.events.value as f64 * 1e9 / span as f64) as u64))
    });
    writeln!(out, "  events    {about}{}{rate}", grouped(info.events.value))?;
    if let (Some((begin, end)), Some(span)) = (info.span_ns, span) {
        writeln!(out, "  span      {}  from {} to {}", duration(span), time(info, begin), time(info, end))?;
        writeln!(out, "  density   {}  (bytes over the span)", sparkline(&info.density))?;
    }
    writeln!(out, "  losses    {}", show::losses(&info.report).unwrap_or_else(|| "none reported".to_owned()))?;
    classes(info, out)?;
    writeln!(out, "\nNext:  kymo print {path} | less\n       kymo count {path}")
}

fn describe(trace: &TraceInfo, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}  ({})", trace.name, trace.path)?;
    let value = |name: &str| trace.recorded_by.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    if let Some(tracer) = value("tracer_name") {
        let version: Vec<&str> = ["tracer_major", "tracer_minor"].iter().filter_map(|name| value(name)).collect();
        let host = value("hostname").map_or(String::new(), |host| format!(" on {host}"));
        let kernel = value("kernel_release").map_or(String::new(), |kernel| format!(", kernel {kernel}"));
        writeln!(out, "  recorded  by {tracer} {}{host}{kernel}", version.join("."))?;
    }
    for clock in &trace.clocks {
        let origin = if clock.is_unix { "since 1970" } else { "since its own origin" };
        writeln!(out, "  clock     {}, {} Hz, {origin}", clock.name, grouped(clock.frequency_hz))?;
    }
    writeln!(out, "  declares  {} event classes", grouped(trace.classes as u64))
}

fn time(info: &Info, nanos: i64) -> String {
    let unix = info.is_unix.then(|| Timestamp::from_nanosecond(i128::from(nanos)).ok()).flatten();
    unix.map_or_else(|| format!("{:.9} s", nanos as f64 / 1e9), |time| time.to_string())
}

fn classes(info: &Info, out: &mut impl Write) -> io::Result<()> {
    if info.busiest.is_empty() {
        return Ok(());
    }
    let sampled = if info.events.is_exact { "" } else { "  (estimated from a few packets)" };
    writeln!(out, "  busiest event classes{sampled}")?;
    for (name, share) in info.busiest.iter().take(CLASSES_MAX) {
        let bar = "█".repeat((share * 30.0).round() as usize);
        writeln!(out, "    {:>5.1}%  {bar:<30}  {name}", share * 100.0)?;
    }
    match info.busiest.len().checked_sub(CLASSES_MAX) {
        Some(more) if more > 0 => writeln!(out, "            ... and {more} more"),
        _ => Ok(()),
    }
}

fn as_json(info: &Info) -> serde_json::Value {
    let trace = |trace: &TraceInfo| {
        let environment: serde_json::Map<String, serde_json::Value> =
            trace.recorded_by.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let clocks: Vec<_> = trace
            .clocks
            .iter()
            .map(|clock| json!({"name": clock.name, "frequency_hz": clock.frequency_hz, "unix": clock.is_unix}))
            .collect();
        json!({"name": trace.name, "path": trace.path, "environment": environment, "classes": trace.classes, "clocks": clocks})
    };
    json!({
        "traces": info.traces.iter().map(trace).collect::<Vec<_>>(),
        "streams": info.streams,
        "packets": info.packets,
        "size_bytes": info.bytes,
        "events": {"value": info.events.value, "exact": info.events.is_exact},
        "begin_ns": info.span_ns.map(|span| span.0),
        "end_ns": info.span_ns.map(|span| span.1),
        "unix": info.is_unix,
        "density_bytes": info.density,
        "busiest": info.busiest.iter().map(|(name, share)| json!({"name": name, "share": share})).collect::<Vec<_>>(),
        "events_discarded": info.report.events_discarded,
        "events_discarded_is_lower_bound": info.report.discarded_is_lower_bound,
        "packets_lost": info.report.packets_lost,
        "complete": info.report.is_complete(),
    })
}
