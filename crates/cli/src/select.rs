//! The selection of events: `--event` and `--filter`, and notes on them.

use kymo_session::{Filter, FilterMeaning, Selection, Session, Zone};

use crate::show;
use crate::stop::StopReason;

/// Classes and problems of one kind that are shown before the rest is counted.
const SHOWN_MAX: usize = 3;

/// The requested selection; reports on standard error where it means nothing.
pub(crate) fn selection(
    session: &Session,
    events: &[String],
    filter: Option<&str>,
    zone: Zone,
) -> Result<Selection, StopReason> {
    let (selection, warnings) = understood(session, events, filter, zone)?;
    message_text!("{warnings}");
    Ok(selection)
}

/// The requested selection, and lines about parts that mean nothing. Stops where no event can be
/// meant: the pattern is mistyped.
pub(crate) fn understood(
    session: &Session,
    events: &[String],
    filter: Option<&str>,
    zone: Zone,
) -> Result<(Selection, String), StopReason> {
    let filter = filter.map(parsed).transpose()?;
    let selection = Selection { events: events.to_vec(), filter, zone };
    let mut warnings = String::new();
    if let Some(filter) = &selection.filter {
        let meaning = session.meaning(&selection);
        let is_error = meaning.applies == 0 && (!meaning.unknown.is_empty() || !meaning.untyped.is_empty());
        warnings = told(&meaning, filter, is_error);
        if is_error {
            return Err(StopReason::Expression(warnings));
        }
    }
    warnings += &show::unmatched(session, events);
    Ok((selection, warnings))
}

/// The expression, or the error in it.
pub(crate) fn parsed(text: &str) -> Result<Filter, StopReason> {
    Filter::parse(text).map_err(|problems| {
        StopReason::Expression(problems.iter().map(|problem| format!("error: {}", problem.render(text))).collect())
    })
}

/// Where the expression means nothing, in lines.
pub(crate) fn told(meaning: &FilterMeaning, filter: &Filter, is_error: bool) -> String {
    let gravity = if is_error { "error" } else { "warning" };
    let mut lines = String::new();
    for name in &meaning.unknown {
        let problem = filter.unknown_name(name.span.clone(), &name.near);
        lines += &format!("{gravity}: {}", problem.render(filter.text()));
    }
    // The same is wrong with many classes, most often.
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for untyped in &meaning.untyped {
        let text: String = untyped.problems.iter().map(|problem| problem.render(filter.text())).collect();
        match told.iter_mut().find(|known| known.0 == text) {
            Some(known) => known.1.push(&untyped.class),
            None => told.push((text, vec![&untyped.class])),
        }
    }
    for (text, classes) in told.iter().take(SHOWN_MAX) {
        let more = classes.len().saturating_sub(SHOWN_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = classes.iter().take(SHOWN_MAX).copied().collect::<Vec<_>>().join(", ");
        lines += &format!("{gravity}: in {names}{more}: {text}");
    }
    if let Some(more) = told.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        lines += &format!("{gravity}: and {}\n", show::counted(more as u64, "more problem"));
    }
    lines
}
