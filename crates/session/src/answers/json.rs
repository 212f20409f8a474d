//! Facts about traces as JSON, for every face that hands it to programs: one question has one
//! answer, in one form.
//!
//! ```text
//! Info ───────────> info()          one object                        kymo info --json, GET /api/v1/info
//! Answer, Report ─> write_answer()  one object, row by row            kymo cpu --json, results of jobs
//! Report ─────────> losses()        the members that all answers have
//! Finding ────────> finding()       one object                        kymo check --json, GET /api/v1/findings
//! ```

mod answer;

use kymo_skew::{CounterOffset, CpuCounter};
use serde_json::{Map, Value, json};

use crate::answers::check::{CheckFinding, Gravity};
use crate::answers::info::{Info, TraceInfo};
use crate::open::counters::TraceCounters;
use crate::open::report::{Report, ReportProblem};
use crate::open::thinned::ThinnedEvents;

pub use self::answer::write_answer;

/// The differences between an answer and the whole truth, in the words of all answers.
#[must_use]
pub fn losses(report: &Report) -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("events_discarded", json!(report.events_discarded)),
        ("events_discarded_is_lower_bound", json!(report.discarded_is_lower_bound)),
        ("packets_lost", json!(report.packets_lost)),
        ("complete", json!(report.is_complete())),
    ];
    if !report.thinned.is_empty() {
        all.push(("rules", report.thinned.iter().map(rule).collect()));
    }
    all
}

/// A rule that has kept only some events.
fn rule(rule: &ThinnedEvents) -> Value {
    json!({
        "rule": rule.rule,
        "words": rule.words,
        "events": rule.events,
        "without": rule.without,
        "kept": rule.counts.map(|counts| counts.kept),
        "let_go": rule.counts.map(|counts| counts.let_go),
        "unknown": rule.counts.map(|counts| counts.unknown),
        "message": rule.sentence(),
    })
}

/// The same with every place that could not be read, and everything that had to be assumed.
#[must_use]
pub fn report(report: &Report) -> Value {
    let problem = |problem: &ReportProblem| json!({"place": problem.place, "message": problem.message.trim_end()});
    let mut object: Map<String, Value> =
        losses(report).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    object.insert("unreadable".to_owned(), report.unreadable.iter().map(problem).collect());
    object.insert("assumptions".to_owned(), report.assumptions.iter().map(problem).collect());
    Value::Object(object)
}

/// A finding; `is_error`: to the caller it is an error, as opposed to a warning.
#[must_use]
pub fn finding(found: &CheckFinding, is_error: bool) -> Value {
    json!({
        "severity": if is_error { "error" } else { "warning" },
        "rule": found.rule,
        "assumption": found.gravity == Gravity::Assumption,
        "place": found.place,
        "message": found.message,
        "help": found.help,
        "times": found.times,
    })
}

/// The contents of traces.
#[must_use]
pub fn info(info: &Info) -> Value {
    let mut object = json!({
        "traces": traces(&info.traces),
        "streams": info.streams,
        "packets": info.packets,
        "size_bytes": info.bytes,
        "events": {"value": info.events.value, "exact": info.events.is_exact},
        "begin_ns": info.span_ns.map(|span| span.0),
        "end_ns": info.span_ns.map(|span| span.1),
        "unix": info.is_unix,
        "density_bits": info.density,
        "busiest": info.busiest.iter().map(|(name, share)| json!({"name": name, "share": share})).collect::<Vec<_>>(),
    });
    let losses = losses(&info.report).into_iter().map(|(name, value)| (name.to_owned(), value));
    object.as_object_mut().expect("it was made one").extend(losses);
    object
}

/// The descriptions of the traces by themselves.
#[must_use]
pub fn traces(traces: &[TraceInfo]) -> Value {
    traces.iter().map(trace).collect()
}

/// The counters of CPUs: how far they are apart, and each of them in ticks and in nanoseconds.
#[must_use]
pub fn counters(counters: &TraceCounters) -> Value {
    let frequency_hz = counters.frequency_hz;
    let cpu = |counter: &CpuCounter| match counter.offset {
        Some(CounterOffset { offset_ticks, error_ticks, trip_ticks }) => json!({
            "cpu": counter.cpu,
            "offset_ns": kymo_skew::nanos(offset_ticks, frequency_hz),
            "error_ns": kymo_skew::nanos_at_most(error_ticks, frequency_hz),
            "offset_ticks": offset_ticks,
            "error_ticks": error_ticks,
            "trip_ticks": trip_ticks,
        }),
        None => json!({"cpu": counter.cpu, "offset_ns": null}),
    };
    json!({"agree": counters.agree(), "apart_ns": counters.apart_ns(), "frequency_hz": frequency_hz,
        "cpus": counters.cpus.iter().map(cpu).collect::<Vec<_>>()})
}

fn trace(trace: &TraceInfo) -> Value {
    let environment: Map<String, Value> =
        trace.recorded_by.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let clocks: Vec<_> = trace
        .clocks
        .iter()
        .map(|clock| json!({"name": clock.name, "frequency_hz": clock.frequency_hz, "unix": clock.is_unix}))
        .collect();
    json!({"name": trace.name, "path": trace.path, "other_paths": trace.other_paths, "environment": environment,
        "classes": trace.classes, "clocks": clocks, "counters": trace.counters.as_ref().map(counters),
        "clock_shift_ns": trace.clock_shift_ns, "streams": trace.streams, "size_bytes": trace.bytes, "unix": trace.is_unix,
        "begin_ns": trace.span_ns.map(|span| span.0), "end_ns": trace.span_ns.map(|span| span.1)})
}
