//! The body of a request as values: JSON, so large and no larger, within so long and no longer.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::refusal::RequestRefusal;

/// Bytes of a body.
const BYTES_MAX: usize = 256 << 10;
/// For all of a body to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Parses the body.
pub(crate) async fn read<T: DeserializeOwned>(request: Request) -> Result<T, RequestRefusal> {
    let (parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        let message = "the body is JSON: `Content-Type: application/json`";
        return Err(RequestRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "body", message));
    }
    let bytes = bytes(body).await?;
    let mut json = serde_json::Deserializer::from_slice(&bytes);
    let value = object(&mut json).and_then(|value| json.end().map(|()| value));
    value.map_err(|error| RequestRefusal::new(StatusCode::BAD_REQUEST, "body", format!("the body is invalid: {error}")))
}

/// An object: a list is refused, which serde would accept for a type with named members.
pub(crate) fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    let members = Map::deserialize(from)?;
    T::deserialize(Value::Object(members)).map_err(D::Error::custom)
}

/// An object, or nothing.
pub(crate) fn perhaps_object<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    let members = Option::<Map<String, Value>>::deserialize(from)?;
    members.map(|members| T::deserialize(Value::Object(members)).map_err(D::Error::custom)).transpose()
}

async fn bytes(body: Body) -> Result<axum::body::Bytes, RequestRefusal> {
    let Ok(read) = tokio::time::timeout(PATIENCE, to_bytes(body, BYTES_MAX)).await else {
        let message = format!("the body did not come within {} seconds", PATIENCE.as_secs());
        return Err(RequestRefusal::new(StatusCode::REQUEST_TIMEOUT, "body", message));
    };
    read.map_err(|error| {
        let is_too_long =
            std::error::Error::source(&error).is_some_and(|source| source.to_string().contains("length limit"));
        match is_too_long {
            true => RequestRefusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body",
                format!("a body has {BYTES_MAX} bytes at most"),
            ),
            false => RequestRefusal::new(StatusCode::BAD_REQUEST, "body", "the body did not come as a whole"),
        }
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}
