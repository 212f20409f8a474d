//! Notes of people on the traces: read, kept and removed one by one, so that writing one leaves
//! those of others alone.

use axum::extract::{Path, Request};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use kymo_session::{NotesFailure, TraceNotes};
use serde_json::{Map, Value, json};

use crate::body;
use crate::pool::Viewer;
use crate::query::RequestParameters;
use crate::refusal::{RequestRefusal, answer};
use crate::shared::OpenTraces;

fn refusal(failure: &NotesFailure) -> RequestRefusal {
    match failure {
        NotesFailure::NoNote(_) => RequestRefusal::new(StatusCode::BAD_REQUEST, "body", failure),
        NotesFailure::File { .. } | NotesFailure::TooMany(_) => {
            RequestRefusal::new(StatusCode::CONFLICT, "notes", failure)
        }
    }
}

fn notes(asked: &OpenTraces) -> Result<&TraceNotes, RequestRefusal> {
    asked
        .notes
        .as_ref()
        .ok_or_else(|| RequestRefusal::absent("there is no notes file: uploaded traces and the sample have none"))
}

/// All notes, and the parts of their file that are not notes.
pub(crate) async fn all(asked: OpenTraces, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    let shared = asked.clone();
    let told = asked.pool.ask(&viewer, move |_| told(notes(&shared)?)).await??;
    Ok(answer(&told))
}

fn told(notes: &TraceNotes) -> Result<Value, RequestRefusal> {
    let found = notes.read().map_err(|failure| refusal(&failure))?;
    let problem = |(line, message): (usize, String)| json!({"line": line, "message": message});
    let problems: Vec<Value> = found.problems.into_iter().map(problem).collect();
    Ok(json!({"file": notes.path().to_string_lossy(), "notes": found.notes, "problems": problems}))
}

/// Keeps a note under an id.
pub(crate) async fn put(
    asked: OpenTraces,
    viewer: Viewer,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, RequestRefusal> {
    RequestParameters::new(request.uri(), &[])?;
    let mut note: Map<String, Value> = body::read(request).await?;
    if note.get("id").is_some_and(|said| said.as_str() != Some(&id)) {
        return Err(RequestRefusal::parameter(
            "id",
            format!("the note says another `id` than `{id}`, under which it is kept"),
        ));
    }
    note.insert("id".to_owned(), json!(id));
    let shared = asked.clone();
    let kept = note.clone();
    let is_new =
        asked.pool.ask(&viewer, move |_| notes(&shared)?.put(kept).map_err(|failure| refusal(&failure))).await??;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, answer(&Value::Object(note))).into_response())
}

/// Removes a note.
pub(crate) async fn remove(
    asked: OpenTraces,
    viewer: Viewer,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    let (shared, wanted) = (asked.clone(), id.clone());
    let was_there = asked
        .pool
        .ask(&viewer, move |_| notes(&shared)?.remove(&wanted).map_err(|failure| refusal(&failure)))
        .await??;
    match was_there {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(RequestRefusal::absent(format!("there is no note `{id}`"))),
    }
}
