//! The paths of the API, each with its handler. `openapi.json` describes them; a test checks that
//! the description is correct.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use kymo_session::json;
use serde_json::json;

use crate::host::Hosted;
use crate::options::Asks;
use crate::pool::Viewer;
use crate::query::RequestParameters;
use crate::refusal::{RequestRefusal, answer};
use crate::shared::OpenTraces;
use crate::{analyses, body, changes, filter, guard, notes, pages, recording, rows, start, timeline, told};

/// Everything that is served.
pub(crate) fn router(host: &Hosted) -> Router {
    let recorded = get(recording::get).post(recording::post).with_state(Arc::clone(&host.recording));
    let api = Router::new()
        .route("/v1/health", get(health))
        .route("/v1/openapi.json", get(openapi))
        .route("/v1/info", get(info))
        .route("/v1/traces", get(traces))
        .route("/v1/findings", get(timeline::findings))
        .route("/v1/timeline", get(timeline::status))
        .route("/v1/catalogue", get(timeline::catalogue))
        .route("/v1/tiles", get(timeline::tiles))
        .route("/v1/items", get(timeline::items))
        .route("/v1/events", get(rows::events))
        .route("/v1/events/count", get(rows::count))
        .route("/v1/filter/check", post(filter::check))
        .route("/v1/analyses", get(analyses::list))
        .route("/v1/jobs", get(jobs).post(begin_job))
        .route("/v1/jobs/{id}", get(job).delete(end_job))
        .route("/v1/jobs/{id}/result", get(job_result))
        .route("/v1/notes", get(notes::all))
        .route("/v1/notes/{id}", put(notes::put).delete(notes::remove))
        .route("/v1/changes", get(changes::changes))
        .route("/v1/recording", recorded)
        .route("/v1/start", get(start::start))
        .route("/v1/start/open", post(start::open))
        .route("/v1/start/sample", post(start::sample))
        .route("/v1/start/uploads/{id}", delete(start::remove))
        // Slashes of the path are written as `%2F`.
        .route("/v1/start/uploads/{id}/{path}", put(start::put))
        .fallback(|| async { RequestRefusal::absent("no such resource; /api/v1/openapi.json lists all resources") })
        .method_not_allowed_fallback(pages::not_allowed)
        .layer(from_fn_with_state(Arc::clone(&host.guard), guard::inner));
    Router::new()
        .nest("/api", api)
        .fallback(pages::page)
        .layer(from_fn_with_state(Arc::clone(&host.guard), guard::outer))
        .with_state(host.clone())
}

async fn health(uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    Ok(answer(&json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")})))
}

async fn openapi(uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((kind, description().as_str()).into_response())
}

/// The OpenAPI description, with the names of all analyses.
fn description() -> &'static String {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let names: Vec<&str> = kymo_session::analyses().iter().map(|entry| &*entry.name).collect();
        include_str!("openapi.json").replace("ANALYSES", &names.join("\", \""))
    });
    &TEXT
}

async fn info(asked: OpenTraces, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    Ok(answer(&json::info(&*asked.info(&viewer).await?)))
}

async fn traces(asked: OpenTraces, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    Ok(answer(&told::traces(&asked, &viewer).await?))
}

async fn jobs(asked: OpenTraces, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    Ok(answer(&json!({"jobs": asked.jobs.all()})))
}

async fn begin_job(asked: OpenTraces, viewer: Viewer, request: Request) -> Result<Response, RequestRefusal> {
    RequestParameters::new(request.uri(), &[])?;
    let asks: Asks = body::read(request).await?;
    let shared = asked.clone();
    let job = asked.pool.ask(&viewer, move |_| shared.jobs.begin(asks)).await??;
    let place = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap_or_default());
    let place = HeaderValue::from_str(&place).map_err(RequestRefusal::fault)?;
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], answer(&job)).into_response())
}

async fn job(asked: OpenTraces, Path(id): Path<String>, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    asked.jobs.one(&id).map(|job| answer(&job))
}

async fn end_job(asked: OpenTraces, Path(id): Path<String>, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    asked.jobs.end(&id).map(|()| StatusCode::NO_CONTENT.into_response())
}

async fn job_result(asked: OpenTraces, Path(id): Path<String>, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    let bytes = asked.jobs.answer(&id)?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes).into_response())
}
