//! `kymo count`

use std::collections::HashMap;
use std::io::{self, Write};

use kymo_session::{ClassCount, Counts, Session};
use serde_json::json;

use crate::Outcome;
use crate::arguments::CountArguments;
use crate::show::{self, grouped};

/// Shows how often each class occurs.
pub(crate) fn run(session: &Session, arguments: &CountArguments) -> io::Result<Outcome> {
    let mut counts = session.count();
    if !arguments.by_stream {
        join_streams(&mut counts);
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", as_json(&counts))?;
    } else {
        table(&counts, arguments.by_stream, &mut out)?;
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

fn table(counts: &Counts, by_stream: bool, out: &mut impl Write) -> io::Result<()> {
    let width = grouped(counts.total).len().max(6);
    writeln!(out, "{:>width$}  {:>6}  event", "events", "share")?;
    for class in &counts.classes {
        let share = class.events as f64 * 100.0 / counts.total.max(1) as f64;
        let name = class.name.clone().unwrap_or_else(|| format!("<event {}>", class.id));
        let stream = if by_stream { format!("  (stream {})", class.stream) } else { String::new() };
        writeln!(out, "{:>width$}  {share:>5.1}%  {name}{stream}", grouped(class.events))?;
    }
    writeln!(out, "{:>width$}  {:>5.1}%  all events", grouped(counts.total), 100.0)
}

fn as_json(counts: &Counts) -> serde_json::Value {
    let class = |class: &ClassCount| json!({"trace": class.trace, "stream": class.stream, "id": class.id, "name": class.name, "events": class.events});
    json!({
        "events": counts.total,
        "classes": counts.classes.iter().map(class).collect::<Vec<_>>(),
        "complete": counts.report.is_complete(),
    })
}
