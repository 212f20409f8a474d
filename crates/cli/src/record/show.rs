//! What was recorded, for people.

use kymo_recorder::capture::Count;
use kymo_recorder::wire::{Lost, Summary};

use crate::show::{bytes, counted, duration, grouped};

/// What a session recorded, when it is over.
pub(crate) fn ended(summary: &Summary, captured: Option<Count>, command: Option<&str>) -> String {
    let took = duration(i128::from(summary.milliseconds) * 1_000_000);
    let (events, programs) = (counted(summary.events, "event"), counted(summary.programs, "program"));
    let mut text = format!("recorded {events} of {programs} in {took}, {}\n", bytes(summary.bytes));
    text += &format!("  trace     {}\n", summary.output.display());
    if let Some(Count { lines, cut }) = captured {
        let cut = if cut == 0 { String::new() } else { format!(", {} of them cut", grouped(cut)) };
        text += &format!("  output    {}{cut}, recorded by kymo itself\n", counted(lines, "line"));
    }
    if summary.filtered > 0 {
        text += &format!("  filtered  {}\n", counted(summary.filtered, "event"));
    }
    text += &format!("  losses    {}\n", losses(summary).unwrap_or_else(|| "none".to_owned()));
    for problem in &summary.problems {
        text += &format!("  problem   {}\n", problem.replace('\n', "\n            "));
    }
    let path = quoted(&summary.output.display().to_string());
    match summary.events {
        0 => text + &nothing(summary, captured.is_some(), command),
        _ => text + &format!("\nNext:  kymo {path}\n       kymo print {path} | less\n"),
    }
}

/// Why there may be nothing.
fn nothing(summary: &Summary, is_captured: bool, command: Option<&str>) -> String {
    // Whoever records the lines is one.
    let programs = summary.programs.saturating_sub(is_captured.into());
    let lines = if is_captured { "and wrote no line" } else { "`--capture-output` records the lines that it writes" };
    let why = match command {
        Some(command) if programs == 0 => format!(
            "neither `{command}` nor what it started has events, which C and C++ have with libkymo, Rust with kymo_tracer\n      \
             or kymo_tracing (`kymo doctor` says what else may be in the way); {lines}"
        ),
        None if programs == 0 => "no program was found that records; `kymo doctor` says why that may be".to_owned(),
        _ if summary.filtered > 0 => "of what happened, the filter keeps nothing".to_owned(),
        _ => "what was selected did not happen; `kymo status --events` shows what programs have, while a session runs"
            .to_owned(),
    };
    format!("\nnote: {why}\n")
}

/// What is missing, in a sentence.
pub(crate) fn losses(summary: &Summary) -> Option<String> {
    let Lost { full, no_lane, unwritten } = summary.lost;
    let parts = [
        (full, "for which there was no room: `--pool-size` gives more"),
        (no_lane, "of threads that found no lane"),
        (unwritten, "that could not be written"),
    ];
    let mut said: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{} {why}", counted(*count, "event")))
        .collect();
    if summary.overwritten > 0 {
        said.push(format!("what {} held was overwritten meanwhile", counted(summary.overwritten, "sub-buffer")));
    }
    if summary.damaged_bytes > 0 {
        said.push(format!("{} of damaged memory", bytes(summary.damaged_bytes)));
    }
    if summary.cut > 0 {
        said.push(format!("{} cut", counted(summary.cut, "text")));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// A line that says how far a session is.
pub(crate) fn line(summary: &Summary, per_second: f64) -> String {
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
    if word.bytes().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_by_its_reason() {
        let mut summary =
            Summary { events: 12_345, bytes: 1 << 20, programs: 2, milliseconds: 1500, ..Summary::default() };
        assert_eq!(losses(&summary), None);
        assert_eq!(line(&summary, 100.4), "1.5 s  12,345 events (100/s)  1.0 MiB  2 programs  nothing lost");
        summary.lost = Lost { full: 3, no_lane: 1, unwritten: 0 };
        assert_eq!(
            losses(&summary).as_deref(),
            Some(
                "3 events for which there was no room: `--pool-size` gives more; 1 event of threads that found no lane"
            )
        );
        assert!(ended(&summary, None, None).starts_with("recorded 12,345 events of 2 programs in 1.500 s, 1.0 MiB\n"));
    }
}
