//! The pages of the viewer, as they were when this was built. There are no files: only names that were embedded lead anywhere.
//!
//! A request with the token gets the page with the responses to its first requests; these differ
//! each time.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::host::Hosted;
use crate::pool::Viewer;
use crate::refusal::RequestRefusal;
use crate::{tags, told};

/// A file that is part of the program.
struct EmbeddedFile {
    /// Its path in URLs.
    name: &'static str,
    kind: &'static str,
    /// Changes when the content does.
    tag: &'static str,
    bytes: &'static [u8],
    /// The content, compressed, where that is smaller.
    gzip: Option<&'static [u8]>,
}

static PAGES: &[EmbeddedFile] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Answers for everything that is not the API.
pub(crate) async fn page(
    State(host): State<Hosted>,
    viewer: Viewer,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let name = if uri.path() == "/" { "/index.html" } else { uri.path() };
    let Some(page) = PAGES.iter().find(|page| page.name == name) else {
        return RequestRefusal::absent("there is no page of this name").into_response();
    };
    if method != Method::GET && method != Method::HEAD {
        return not_allowed().await.into_response();
    }
    if page.name == "/index.html"
        && let Some(told) = told::element(&host, &viewer, &uri).await
        && let Some(whole) = with(page.bytes, &told)
    {
        return ([(header::CONTENT_TYPE, page.kind)], whole).into_response();
    }
    let gzip = page.gzip.filter(|_| takes_gzip(&headers));
    let tag = format!("\"{}{}\"", page.tag, if gzip.is_some() { "-gzip" } else { "" });
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| tags::matches(known, &tag));
    let (status, body) = match is_known {
        true => (StatusCode::NOT_MODIFIED, Body::empty()),
        false => (StatusCode::OK, Body::from(gzip.unwrap_or(page.bytes))),
    };
    let mut response = (status, body).into_response();
    let answer = response.headers_mut();
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.kind));
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static(lasting(page.name)));
    answer.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    answer.insert(header::ETAG, HeaderValue::from_str(&tag).expect("it is digits"));
    if gzip.is_some() {
        answer.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// The page with another element at the end of its head.
fn with(page: &[u8], element: &str) -> Option<String> {
    let (head, body) = std::str::from_utf8(page).ok()?.split_once("</head>")?;
    Some(format!("{head}{element}</head>{body}"))
}

/// The response to a method that means nothing here.
pub(crate) async fn not_allowed() -> RequestRefusal {
    RequestRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "method", "this method means nothing here")
}

/// Names of assets identify their content: a changed asset has another name.
fn lasting(name: &str) -> &'static str {
    if name.starts_with("/assets/") { "public, max-age=31536000, immutable" } else { "no-cache" }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let said = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    said.flat_map(|text| text.split(',')).any(|one| {
        let (name, quality) = one.split_once(';').unwrap_or((one, "q=1"));
        let is_wanted = quality.trim().strip_prefix("q=").and_then(|q| q.parse().ok()).is_none_or(|q: f32| q > 0.0);
        name.trim().eq_ignore_ascii_case("gzip") && is_wanted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_taken_by_their_names() {
        let takes = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(text).unwrap());
            takes_gzip(&headers)
        };
        assert!(takes("gzip") && takes("br, GZIP;q=0.5") && takes("deflate, gzip"));
        assert!(!takes("gzip;q=0") && !takes("br") && !takes("gzip;q=0.0, br") && !takes(""));
    }
}
