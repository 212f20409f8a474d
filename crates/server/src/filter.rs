//! The meaning of an expression for the traces, checked while a user types it.

use axum::extract::Request;
use axum::response::Response;
use kymo_session::{Filter, FilterProblem, Selection, Session, Zone};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body;
use crate::pool::Viewer;
use crate::query::RequestParameters;
use crate::refusal::{RequestRefusal, answer};
use crate::selection::{problem, problems_of};
use crate::shared::OpenTraces;

/// The body of the request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterQuestion {
    filter: String,
}

/// Reports the errors of an expression, and of how many classes of events some may be meant.
pub(crate) async fn check(asked: OpenTraces, viewer: Viewer, request: Request) -> Result<Response, RequestRefusal> {
    RequestParameters::new(request.uri(), &[])?;
    let FilterQuestion { filter } = body::read(request).await?;
    let session = asked.current.session();
    let checked = asked.pool.ask(&viewer, move |_| checked(&session, &filter)).await?;
    Ok(answer(&checked))
}

fn checked(session: &Session, text: &str) -> Value {
    let shown =
        |problems: &[FilterProblem]| -> Vec<Value> { problems.iter().map(|found| problem(text, found)).collect() };
    let filter = match Filter::parse(text) {
        Ok(filter) => filter,
        Err(problems) => {
            return json!({"valid": false, "problems": shown(&problems), "applies": 0, "never": 0, "untyped": 0});
        }
    };
    let selection = Selection { events: Vec::new(), filter: Some(filter.clone()), zone: Zone::Local };
    let meaning = session.meaning(&selection);
    let problems = problems_of(&meaning, &filter);
    json!({
        // As a question it would be refused only if nothing could be meant.
        "valid": meaning.applies > 0 || problems.is_empty(),
        "problems": shown(&problems),
        "applies": meaning.applies,
        "never": meaning.never,
        "untyped": meaning.untyped.len(),
    })
}
