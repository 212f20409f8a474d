//! Before traces are open: the traces that the user can open, uploaded files, and how to record
//! traces.

use std::path::{self, PathBuf};

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use kymo_session::{RecentFound, RecentTraces};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::begin::TraceChoice;
use crate::body;
use crate::host::{Host, Hosted};
use crate::pool::Viewer;
use crate::query::RequestParameters;
use crate::refusal::{RequestRefusal, answer};
use crate::stage::{self, ChosenTraces, ServerStage};
use crate::uploads;

/// Paths that are opened together.
const PATHS_MAX: usize = 256;

/// The traces to open: one of these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartRequest {
    /// Traces of this machine.
    paths: Option<Vec<String>>,
    /// Files that were sent.
    upload: Option<String>,
}

/// The choice, and whether traces are chosen.
pub(crate) async fn start(State(host): State<Hosted>, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    Ok(answer(&told(&host, &viewer).await?))
}

/// The JSON of that.
pub(crate) async fn told(host: &Host, viewer: &Viewer) -> Result<Value, RequestRefusal> {
    let (state, failure, waiting) = match host.stage.state() {
        stage::StageState::Choosing(failure) => ("choosing", failure, None),
        stage::StageState::Opening => ("opening", None, None),
        stage::StageState::Waiting(why) => ("waiting", None, why),
        stage::StageState::Open => ("open", None, None),
    };
    let none = TraceChoice::default();
    let choice = host.stage.choice.as_ref().unwrap_or(&none);
    let recent = match host.stage.recent() {
        // Whether a path is there takes as long as its disk does.
        Some(recent) => host.pool.ask(viewer, move |_| recent.read()).await?,
        None => RecentFound::default(),
    };
    let hints = choice.record.iter().map(|hint| json!({"command": hint.command, "what": hint.what}));
    Ok(json!({
        "failure": failure,
        "problem": recent.problem,
        "recent": recent.entries.iter().filter_map(entry).collect::<Vec<_>>(),
        "record": hints.collect::<Vec<_>>(),
        "sample": choice.sample.is_some(),
        "state": state,
        "upload_bytes_max": choice.upload_bytes_max,
        "waiting": waiting,
    }))
}

fn entry(traces: &RecentTraces) -> Option<Value> {
    let paths: Option<Vec<&str>> = traces.paths.iter().map(|path| path.to_str()).collect();
    Some(json!({"opened_ns": traces.opened_ns, "paths": paths?, "there": traces.there}))
}

/// Opens traces of this machine, or files that were sent.
pub(crate) async fn open(
    State(host): State<Hosted>,
    viewer: Viewer,
    request: Request,
) -> Result<Response, RequestRefusal> {
    RequestParameters::new(request.uri(), &[])?;
    host.stage.choosing()?;
    match body::read(request).await? {
        StartRequest { paths: Some(paths), upload: None } => {
            let paths = checked(&paths)?;
            host.open(move |_| Ok(ChosenTraces { paths, stays: true })).await?;
        }
        StartRequest { paths: None, upload: Some(id) } => {
            host.open(move |stage| Ok(ChosenTraces { paths: stage.uploads.paths(&id)?, stays: false })).await?;
        }
        _ => return Err(RequestRefusal::parameter("paths", "give either `paths` or an `upload`")),
    }
    Ok(answer(&told(&host, &viewer).await?))
}

fn checked(paths: &[String]) -> Result<Vec<PathBuf>, RequestRefusal> {
    let refused = |message: &str| RequestRefusal::parameter("paths", message);
    match paths.len() {
        0 => Err(refused("`paths` names no trace")),
        1..=PATHS_MAX if paths.iter().any(|path| path.trim().is_empty() || path.contains('\0')) => {
            Err(refused("a path of `paths` is empty, or has a NUL in it"))
        }
        1..=PATHS_MAX => Ok(paths.iter().map(|path| typed(path)).collect()),
        many => Err(refused(&format!("`paths` has {many} paths; {PATHS_MAX} are the most"))),
    }
}

/// A path as the user typed it: `~` is the user's own folder.
fn typed(text: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    match text.strip_prefix('~') {
        Some("") => home().unwrap_or_else(|| text.into()),
        Some(rest) if rest.starts_with('/') => home().map_or_else(|| text.into(), |home| home.join(&rest[1..])),
        _ => path::Path::new(text).to_owned(),
    }
}

/// Opens the sample trace for a user without traces.
pub(crate) async fn sample(State(host): State<Hosted>, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    let choice = host.stage.choosing()?;
    let sample = choice.sample.ok_or_else(|| RequestRefusal::absent("there is no sample in this kymo"))?;
    let find = move |stage: &ServerStage| {
        let path = stage.uploads.keep(sample.name, sample.bytes)?;
        Ok(ChosenTraces { paths: vec![path], stays: false })
    };
    host.open(find).await?;
    Ok(answer(&told(&host, &viewer).await?))
}

/// Takes a file, as part of an upload that is opened together.
pub(crate) async fn put(
    State(host): State<Hosted>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Result<Response, RequestRefusal> {
    RequestParameters::new(request.uri(), &[])?;
    host.stage.choosing()?;
    let Path((id, name)) = path.map_err(|_| RequestRefusal::parameter("path", "the name of a file is UTF-8"))?;
    let bytes = uploads::receive(&host.stage.uploads, id, name, request).await?;
    Ok((StatusCode::CREATED, answer(&json!({"bytes": bytes}))).into_response())
}

/// Forgets files that were sent.
pub(crate) async fn remove(
    State(host): State<Hosted>,
    viewer: Viewer,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    host.stage.choosing()?;
    let Path(id) = id.map_err(|_| RequestRefusal::parameter("id", "the name of an upload is UTF-8"))?;
    let uploads = std::sync::Arc::clone(&host.stage.uploads);
    host.pool.ask(&viewer, move |_| uploads.remove(&id)).await??;
    Ok(StatusCode::NO_CONTENT.into_response())
}
