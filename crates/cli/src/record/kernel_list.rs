//! `kymo record --kernel=EVENTS --list`

use std::io::{self, Write};

use kymo_recorder::kernel::{KernelEvent, kernel_events};
use kymo_recorder::tracepoints;

use super::RecordProblem;
use crate::CommandOutcome;
use crate::message::plain_output;
use crate::stop::StopReason;

/// Lists the events that words choose.
pub(super) fn run(words: &[String], is_json: bool) -> Result<CommandOutcome, RecordProblem> {
    let patterns = tracepoints::patterns(words.iter().map(|word| word.trim()).filter(|word| !word.is_empty()));
    let events = kernel_events(&patterns).map_err(StopReason::Usage)?;
    let mut out = plain_output();
    if is_json {
        writeln!(out, "{}", serde_json::to_string(&events).map_err(io::Error::from)?)?;
    } else {
        events.iter().try_for_each(|event| show(event, &mut out))?;
    }
    Ok(CommandOutcome::Complete)
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
