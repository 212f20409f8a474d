//! `kymo count`

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};

use kymo_session::{ClassCount, Counts, Session};
use serde_json::json;

use crate::Outcome;
use crate::arguments::CountArguments;
use crate::progress::watched;
use crate::show::{self, grouped};

/// Characters of the longest bar.
const BAR: usize = 30;

/// Shows how often each class occurs.
pub(crate) fn run(session: &Session, arguments: &CountArguments) -> io::Result<Outcome> {
    let progress = session.progress();
    let mut counts = watched(&progress, || session.count(&progress));
    if !arguments.by_stream {
        join_streams(&mut counts);
    }
    let span = session.span_ns().map(|(begin, end)| i128::from(end) - i128::from(begin)).filter(|span| *span > 0);
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", as_json(&counts, span))?;
    } else {
        // A pipe gets rows that are easy to cut apart, without bars.
        table(&Table { counts: &counts, by_stream: arguments.by_stream, span, bars: out.is_terminal() }, &mut out)?;
    }
    Ok(show::report(&counts.report))
}

/// Adds up the streams of each trace.
fn join_streams(counts: &mut Counts) {
    let mut places: HashMap<(String, u64, Option<String>), usize> = HashMap::new();
    let mut joined: Vec<ClassCount> = Vec::new();
    for class in counts.classes.drain(..) {
        let key = (class.trace.clone(), class.id, class.name.clone());
        match places.get(&key) {
            Some(&place) => joined[place].events += class.events,
            None => {
                places.insert(key, joined.len());
                joined.push(class);
            }
        }
    }
    joined.sort_by(|one, other| other.events.cmp(&one.events).then_with(|| one.name.cmp(&other.name)));
    counts.classes = joined;
}

struct Table<'a> {
    counts: &'a Counts,
    by_stream: bool,
    /// Nanoseconds in which the events occurred, where packets say so.
    span: Option<i128>,
    bars: bool,
}

fn table(table: &Table<'_>, out: &mut impl Write) -> io::Result<()> {
    let counts = table.counts;
    let width = grouped(counts.total).len().max(6);
    let rate = |events: u64| per_second(events, table.span).map_or("-".to_owned(), |rate| grouped(rate.round() as u64));
    let rate_width = rate(counts.total).len().max(8);
    writeln!(out, "{:>width$}  {:>6}  {:>rate_width$}  event", "events", "share", "events/s")?;
    let most = counts.classes.iter().map(|class| class.events).max().unwrap_or(0).max(1);
    for class in &counts.classes {
        let share = class.events as f64 * 100.0 / counts.total.max(1) as f64;
        let name = class.name.clone().unwrap_or_else(|| format!("<event {}>", class.id));
        let stream = if table.by_stream { format!("  (stream {})", class.stream) } else { String::new() };
        let bar = if table.bars { bar(class.events, most) } else { String::new() };
        let (events, rate) = (grouped(class.events), rate(class.events));
        writeln!(out, "{events:>width$}  {share:>5.1}%  {rate:>rate_width$}  {bar}{name}{stream}")?;
    }
    let (events, rate) = (grouped(counts.total), rate(counts.total));
    writeln!(out, "{events:>width$}  {:>5.1}%  {rate:>rate_width$}  all events", 100.0)
}

/// A bar and the space after it, as long for every class.
fn bar(events: u64, most: u64) -> String {
    let filled = (events as f64 / most as f64 * BAR as f64).round() as usize;
    format!("{:<BAR$}  ", "█".repeat(filled))
}

fn per_second(events: u64, span: Option<i128>) -> Option<f64> {
    span.map(|span| events as f64 * 1e9 / span as f64)
}

fn as_json(counts: &Counts, span: Option<i128>) -> serde_json::Value {
    let class = |class: &ClassCount| {
        json!({
            "trace": class.trace, "stream": class.stream, "id": class.id, "name": class.name, "events": class.events,
            "events_per_second": per_second(class.events, span),
        })
    };
    json!({
        "events": counts.total,
        "events_per_second": per_second(counts.total, span),
        "classes": counts.classes.iter().map(class).collect::<Vec<_>>(),
        "complete": counts.report.is_complete(),
    })
}
