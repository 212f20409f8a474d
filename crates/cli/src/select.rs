//! Which events are wanted: `--event` and `--filter`, and what is to be said of them.

use kymo_session::{Filter, Meaning, Selection, Session, Zone};

use crate::show;

/// Classes and problems of one kind that are shown before the rest is counted.
const SHOWN_MAX: usize = 3;

/// What was asked for. Ends the program where no event can be meant: somebody mistyped something.
pub(crate) fn selection(session: &Session, events: &[String], filter: Option<&str>, zone: Zone) -> Selection {
    let filter = filter.map(parsed);
    let selection = Selection { events: events.to_vec(), filter, zone };
    if let Some(filter) = &selection.filter {
        let meaning = session.meaning(&selection);
        let is_error = meaning.applies == 0 && (!meaning.unknown.is_empty() || !meaning.untyped.is_empty());
        tell(&meaning, filter, is_error);
        if is_error {
            std::process::exit(2);
        }
    }
    show::unmatched(session, events);
    selection
}

/// The expression; ends the program with what is wrong with it.
pub(crate) fn parsed(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|problems| {
        for problem in &problems {
            eprint!("error: {}", problem.render(text));
        }
        std::process::exit(2);
    })
}

/// Says on standard error where the expression means nothing.
pub(crate) fn tell(meaning: &Meaning, filter: &Filter, is_error: bool) {
    let gravity = if is_error { "error" } else { "warning" };
    for name in &meaning.unknown {
        eprint!("{gravity}: {}", filter.unknown_name(name.span.clone(), &name.near).render(filter.text()));
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
        eprint!("{gravity}: in {names}{more}: {text}");
    }
    if let Some(more) = told.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        eprintln!("{gravity}: and {}", show::counted(more as u64, "more problem"));
    }
}
