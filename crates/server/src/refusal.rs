//! Why a request has no answer, as every answer of that kind is written.
//!
//! ```text
//! 400 {"error": {"code": "parameter", "message": "`level` is 70; it is from 0 to 62", "parameter": "level"}}
//! ```

use std::fmt::Display;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// A JSON object as an answer.
pub(crate) fn answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// A request that is not answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestRefusal {
    status: StatusCode,
    /// For programs; `docs/http.md` lists them.
    code: &'static str,
    /// For people.
    message: String,
    /// Further members of the object.
    details: Map<String, Value>,
}

impl RequestRefusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Display) -> Self {
        Self { status, code, message: message.to_string(), details: Map::new() }
    }

    /// A parameter, or a member of the body, is wrong.
    pub(crate) fn parameter(name: &str, message: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "parameter", message).with("parameter", json!(name))
    }

    /// There is nothing of this name.
    pub(crate) fn absent(message: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "absent", message)
    }

    /// Others are asking, too.
    pub(crate) fn busy(message: impl Display) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    /// Something of ours went wrong.
    pub(crate) fn fault(message: impl Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "fault", message)
    }

    /// The same with another member.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.details.insert(name.to_owned(), value);
        self
    }

    /// The message for people.
    pub(crate) fn message(&self) -> String {
        self.message.clone()
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The object under `error`.
    pub(crate) fn as_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("code".to_owned(), json!(self.code));
        object.insert("message".to_owned(), json!(self.message));
        object.extend(self.details.clone());
        Value::Object(object)
    }
}

impl IntoResponse for RequestRefusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, answer(&json!({"error": self.as_json()}))).into_response();
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"kymo\""));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
