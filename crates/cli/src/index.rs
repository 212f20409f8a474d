//! `kymo index`

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use kymo_session::{IndexResults, IndexState, IndexedStream, IndexedTrace, Progress, cache_folder};
use serde_json::json;

use crate::CommandOutcome;
use crate::arguments::IndexArguments;
use crate::message::plain_output;
use crate::progress::watched;
use crate::show::{bytes, counted, duration, grouped};

/// Files of one state that are named.
const NAMES_MAX: usize = 3;

/// Makes or removes indexes, and reports the result for each.
pub(crate) fn run(arguments: &IndexArguments) -> io::Result<CommandOutcome> {
    let Some(cache) = cache_folder() else {
        message!("error: there is no folder for caches: neither XDG_CACHE_HOME nor HOME names one");
        return Ok(CommandOutcome::Incomplete);
    };
    let (progress, options) = (Progress::default(), arguments.import.options());
    let indexed = if arguments.remove {
        kymo_session::remove_index(&arguments.traces, &cache, &options)
    } else {
        watched(&progress, || kymo_session::index(&arguments.traces, &cache, &options, &progress))
    };
    let mut out = plain_output();
    if arguments.json {
        writeln!(out, "{}", as_json(&indexed, &cache))?;
    } else {
        for trace in indexed.traces.iter().filter(|trace| trace.failure.is_none()) {
            describe(trace, &cache, &mut out)?;
        }
    }
    for failure in indexed.traces.iter().filter_map(|trace| trace.failure.as_ref()) {
        message_text!("{}", failure.render());
    }
    for problem in &indexed.unreadable {
        message!("error: {problem}");
    }
    Ok(if indexed.is_complete() { CommandOutcome::Complete } else { CommandOutcome::Incomplete })
}

fn describe(trace: &IndexedTrace, cache: &Path, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", trace.path.display())?;
    let streams = &trace.streams;
    let packets: u64 = streams.iter().map(|stream| stream.packets).sum();
    let size = bytes(streams.iter().map(|stream| stream.size_bytes).sum());
    // The command did not read an index that it only removed.
    if packets > 0 {
        writeln!(out, "  packets   {} in {}, {size}", grouped(packets), counted(streams.len() as u64, "file"))?;
    }
    let mut by_state: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for stream in streams {
        by_state.entry(sentence(&stream.state)).or_default().push(&stream.name);
    }
    let is_mixed = by_state.len() > 1;
    let mut title = "index";
    for (state, names) in &by_state {
        let of = if is_mixed { format!("  ({})", some(names)) } else { String::new() };
        writeln!(out, "  {title:<8}  {state}{of}")?;
        title = "";
    }
    let kept: Vec<&IndexedStream> = streams.iter().filter(|stream| stream.index_bytes > 0).collect();
    if !kept.is_empty() {
        let size = bytes(kept.iter().map(|stream| stream.index_bytes).sum());
        writeln!(out, "  kept      {}, {size}, in {}", counted(kept.len() as u64, "file"), cache.display())?;
    }
    writeln!(out, "  time      {}", duration(trace.elapsed.as_nanos() as i128))
}

/// The first names, and how many there are beside.
fn some(names: &[&str]) -> String {
    let first = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        Some(more) if more > 0 => format!("{first} and {more} more"),
        _ => first,
    }
}

fn sentence(state: &IndexState) -> String {
    match (word(state), reason(state)) {
        (word, Some(reason)) => format!("{word}: {reason}"),
        (word, None) => word.to_owned(),
    }
}

fn word(state: &IndexState) -> &'static str {
    match state {
        IndexState::Valid => "valid",
        IndexState::Extended(_) => "extended",
        IndexState::Built(_) => "built",
        IndexState::Small => "not needed",
        IndexState::Broken(_) => "incomplete",
        IndexState::Unwritable(_) => "not written",
        IndexState::Removed => "removed",
        IndexState::Absent => "absent",
    }
}

fn reason(state: &IndexState) -> Option<String> {
    match state {
        IndexState::Extended(kept) => Some(format!("the file grew behind {}", counted(*kept, "packet"))),
        IndexState::Built(why) => Some(why.to_string()),
        IndexState::Small => Some("so few packets are found faster without".to_owned()),
        IndexState::Broken(why) | IndexState::Unwritable(why) => Some(why.clone()),
        IndexState::Valid | IndexState::Removed | IndexState::Absent => None,
    }
}

fn as_json(indexed: &IndexResults, cache: &Path) -> serde_json::Value {
    let stream = |stream: &IndexedStream| {
        json!({
            "name": stream.name,
            "size_bytes": stream.size_bytes,
            "packets": stream.packets,
            "state": word(&stream.state).replace(' ', "-"),
            "reason": reason(&stream.state),
            "index": stream.index.as_ref().map(|path| path.display().to_string()),
            "index_bytes": stream.index_bytes,
        })
    };
    let trace = |trace: &IndexedTrace| {
        json!({
            "path": trace.path.display().to_string(),
            "streams": trace.streams.iter().map(stream).collect::<Vec<_>>(),
            "elapsed_ns": trace.elapsed.as_nanos() as u64,
            "error": trace.failure.as_ref().map(kymo_session::OpenFailure::render),
        })
    };
    json!({
        "folder": cache.display().to_string(),
        "traces": indexed.traces.iter().map(trace).collect::<Vec<_>>(),
        "complete": indexed.is_complete(),
    })
}
