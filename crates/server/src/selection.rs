//! The events that names and an expression select, or the errors in them and their places.

use axum::http::StatusCode;
use kymo_session::{Filter, FilterMeaning, FilterProblem, Selection, Session, Zone};
use serde_json::{Value, json};

use crate::refusal::RequestRefusal;

/// Patterns of one request.
pub(crate) const PATTERNS_MAX: usize = 64;

/// The selection. Refused where no event can be meant: the names or the filter have a typo.
pub(crate) fn selection(
    session: &Session,
    events: Vec<String>,
    filter: Option<&str>,
) -> Result<Selection, RequestRefusal> {
    if let Some(pattern) = session.unmatched(&events).first() {
        return Err(RequestRefusal::parameter("event", format!("no event has a name like `{pattern}`")));
    }
    let filter = filter.map(|text| Filter::parse(text).map_err(|problems| refused(text, &problems))).transpose()?;
    let selection = Selection { events, filter, zone: Zone::Local };
    if let Some(filter) = &selection.filter {
        let meaning = session.meaning(&selection);
        let problems = problems_of(&meaning, filter);
        if meaning.applies == 0 && !problems.is_empty() {
            return Err(refused(filter.text(), &problems));
        }
    }
    Ok(selection)
}

/// The problems of an expression with the traces as they are: names that do not exist, and classes
/// for which it makes no sense. Equal problems are listed once.
pub(crate) fn problems_of(meaning: &FilterMeaning, filter: &Filter) -> Vec<FilterProblem> {
    let mut problems: Vec<FilterProblem> =
        meaning.unknown.iter().map(|name| filter.unknown_name(name.span.clone(), &name.near)).collect();
    for problem in meaning.untyped.iter().flat_map(|untyped| &untyped.problems) {
        if !problems.contains(problem) {
            problems.push(problem.clone());
        }
    }
    problems
}

/// The expression is wrong in these places.
fn refused(text: &str, problems: &[FilterProblem]) -> RequestRefusal {
    let message = problems.first().map(|problem| problem.kind.to_string()).unwrap_or_default();
    let all: Vec<Value> = problems.iter().map(|found| problem(text, found)).collect();
    RequestRefusal::new(StatusCode::BAD_REQUEST, "filter", message)
        .with("parameter", json!("filter"))
        .with("problems", json!(all))
}

/// A problem and its place: in bytes of UTF-8, and in units of UTF-16 for clients that count in
/// these.
pub(crate) fn problem(text: &str, problem: &FilterProblem) -> Value {
    let units = |bytes: usize| text.get(..bytes.min(text.len())).map_or(0, |before| before.encode_utf16().count());
    json!({
        "message": problem.kind.to_string(),
        "help": problem.help,
        "begin": problem.span.start, "end": problem.span.end,
        "begin_utf16": units(problem.span.start), "end_utf16": units(problem.span.end),
    })
}
