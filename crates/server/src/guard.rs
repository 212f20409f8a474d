//! Access checks. All programs on this machine can reach the server, among them pages of other
//! origins in a browser:
//!
//! ```text
//! another user of the machine     knows no token                                  401
//! a page of another origin        its browser says so: Origin, Sec-Fetch-Site     403
//! a page whose name was made to   its browser asks for another host               421
//!   lead here (DNS rebinding)
//! ```

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::query;
use crate::refusal::RequestRefusal;
use crate::token::Token;

/// Bytes of a URL.
const URL_BYTES_MAX: usize = 16 << 10;

/// Header lines of a request.
const HEADERS_MAX: usize = 64;

/// The content security policy of pages: they load only content from this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
                      connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Headers of every answer.
const ALWAYS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The checks of each request.
#[derive(Debug)]
pub(crate) struct Guard {
    token: Token,
    /// The address that the server listens on.
    address: SocketAddr,
}

impl Guard {
    pub(crate) fn new(token: Token, address: SocketAddr) -> Self {
        Self { token, address }
    }

    /// Whether the request is for us, and of our own pages or of no page.
    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), RequestRefusal> {
        let bytes = uri.path_and_query().map_or(0, |text| text.as_str().len());
        if bytes > URL_BYTES_MAX {
            let message = format!("the URL has {bytes} bytes; {URL_BYTES_MAX} are the most");
            return Err(RequestRefusal::new(StatusCode::URI_TOO_LONG, "url", message));
        }
        let lines = headers.len();
        if lines > HEADERS_MAX {
            let message = format!("the request has {lines} headers; {HEADERS_MAX} are the most");
            return Err(RequestRefusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "header", message));
        }
        let host = host(uri, headers)?;
        if !self.is_own(&host) {
            let message = format!("this is no server of `{host}`: ask for {}", self.address);
            return Err(RequestRefusal::new(StatusCode::MISDIRECTED_REQUEST, "host", message));
        }
        match text(headers, &header::ORIGIN)? {
            Some(origin) if origin.strip_prefix("http://") != Some(host.as_str()) => {
                let message = format!("pages of `{}` get nothing from here", shortened(origin));
                Err(RequestRefusal::new(StatusCode::FORBIDDEN, "origin", message))
            }
            _ => Ok(()),
        }
    }

    /// Whether a host is this one: names that lead here by the will of others are not.
    fn is_own(&self, host: &Authority) -> bool {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let listened = self.address.ip();
        // Addresses are not names: DNS cannot make them lead elsewhere.
        name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip == listened || listened.is_unspecified())
    }

    /// Whether a URL has the token: a request for a page with it gets data of the traces. A page
    /// that leads a browser there does not read the response.
    pub(crate) fn is_known(&self, uri: &Uri) -> bool {
        query::token(uri).is_some_and(|said| self.token.is(&said))
    }

    /// Whether the request has the token and does not come from a page of another site.
    fn check_token(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), RequestRefusal> {
        if let Some(site @ ("cross-site" | "same-site")) = text(headers, &HeaderName::from_static("sec-fetch-site"))? {
            let message = format!("a {site} page gets nothing from here");
            return Err(RequestRefusal::new(StatusCode::FORBIDDEN, "origin", message));
        }
        let bearer = text(headers, &header::AUTHORIZATION)?.map(|text| match text.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim().to_owned()),
            _ => Err(unauthorized("authorization is `Authorization: Bearer TOKEN`, or `?token=TOKEN`")),
        });
        let Some(said) = bearer.transpose()?.or_else(|| query::token(uri)) else {
            return Err(unauthorized(
                "the token is missing: `Authorization: Bearer TOKEN` or `?token=TOKEN`, as in the URL that `kymo view` prints",
            ));
        };
        if self.token.is(&said) {
            Ok(())
        } else {
            Err(unauthorized("the token is another one: take the URL that `kymo view` has printed last"))
        }
    }
}

fn unauthorized(message: &str) -> RequestRefusal {
    RequestRefusal::new(StatusCode::UNAUTHORIZED, "token", message)
}

/// The host that the request is for.
fn host(uri: &Uri, headers: &HeaderMap) -> Result<Authority, RequestRefusal> {
    let refused = |message: &str| RequestRefusal::new(StatusCode::BAD_REQUEST, "host", message);
    let said = text(headers, &header::HOST)?.ok_or_else(|| refused("the request does not say which host it is for"))?;
    let host: Authority = said.parse().map_err(|_| refused("the host of the request is none"))?;
    if host.as_str().contains('@') || uri.authority().is_some_and(|other| other != &host) {
        return Err(refused("the request says of two hosts that it is for them"));
    }
    Ok(host)
}

/// A header that stands there once at most.
fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, RequestRefusal> {
    let refused =
        |what: &str| RequestRefusal::new(StatusCode::BAD_REQUEST, "header", format!("the header `{name}` {what}"));
    let mut all = headers.get_all(name).iter();
    let Some(first) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(refused("stands there more than once"));
    }
    first.to_str().map(Some).map_err(|_| refused("is no text"))
}

/// Enough of it to know it again.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Refuses requests that fail the checks of host, origin and size, and adds to responses the
/// headers that browsers need.
pub(crate) async fn outer(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => closing(refusal),
    };
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Refuses requests that may not read the traces.
pub(crate) async fn inner(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.check_token(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => closing(refusal),
    }
}

/// Strangers keep no connection.
fn closing(refusal: RequestRefusal) -> Response {
    ([(header::CONNECTION, "close")], refusal).into_response()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn guard(address: &str) -> Guard {
        Guard::new(Token::random().unwrap(), address.parse().unwrap())
    }

    fn headers(lines: &[&str]) -> HeaderMap {
        let line = |line: &&str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let mut map = HeaderMap::new();
        for (name, value) in lines.iter().map(line) {
            map.append(name, value);
        }
        map
    }

    /// The result of the check for a request for `/` with these headers.
    fn said(guard: &Guard, lines: &[&str]) -> String {
        let checked = guard.check(&"/".parse().unwrap(), &headers(lines));
        checked
            .map_or_else(|refusal| format!("{} {}", refusal.status().as_u16(), refusal.as_json()), |()| "ok".to_owned())
    }

    fn check(guard: &Guard, lines: &[&str], expected: &Expect) {
        expected.assert_eq(&said(guard, lines));
    }

    #[test]
    fn names_that_lead_here_by_the_will_of_others_are_refused() {
        let local = guard("127.0.0.1:8000");
        for own in ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:9", "[::1]:8000", "127.0.0.2", "localhost"] {
            assert_eq!(said(&local, &[&format!("host: {own}")]), "ok", "{own}");
        }
        check(
            &local,
            &["host: evil.example:8000"],
            &expect![[
                r#"421 {"code":"host","message":"this is no server of `evil.example:8000`: ask for 127.0.0.1:8000"}"#
            ]],
        );
        check(
            &local,
            &["host: 192.168.1.5:8000"],
            &expect![[
                r#"421 {"code":"host","message":"this is no server of `192.168.1.5:8000`: ask for 127.0.0.1:8000"}"#
            ]],
        );
        check(
            &local,
            &["host: localhost.evil.example"],
            &expect![[
                r#"421 {"code":"host","message":"this is no server of `localhost.evil.example`: ask for 127.0.0.1:8000"}"#
            ]],
        );
        check(
            &local,
            &[],
            &expect![[r#"400 {"code":"host","message":"the request does not say which host it is for"}"#]],
        );
        check(
            &local,
            &["host: localhost", "host: evil.example"],
            &expect![[r#"400 {"code":"header","message":"the header `host` stands there more than once"}"#]],
        );
        check(
            &local,
            &["host: localhost@evil.example"],
            &expect![[r#"400 {"code":"host","message":"the request says of two hosts that it is for them"}"#]],
        );
    }

    #[test]
    fn addresses_that_are_listened_on_are_our_own() {
        let (one, all) = (guard("192.168.1.5:8000"), guard("0.0.0.0:8000"));
        for host in ["192.168.1.5:8000", "127.0.0.1:8000"] {
            assert_eq!(
                (said(&one, &[&format!("host: {host}")]), said(&all, &[&format!("host: {host}")])),
                ("ok".into(), "ok".into())
            );
        }
        assert!(said(&one, &["host: 192.168.1.6:8000"]).starts_with("421"));
        assert!(said(&all, &["host: evil.example:8000"]).starts_with("421"));
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let local = guard("127.0.0.1:8000");
        check(&local, &["host: localhost:8000", "origin: http://localhost:8000"], &expect!["ok"]);
        check(
            &local,
            &["host: localhost:8000", "origin: http://localhost:3000"],
            &expect![[r#"403 {"code":"origin","message":"pages of `http://localhost:3000` get nothing from here"}"#]],
        );
        check(
            &local,
            &["host: localhost:8000", "origin: https://localhost:8000"],
            &expect![[r#"403 {"code":"origin","message":"pages of `https://localhost:8000` get nothing from here"}"#]],
        );
        check(
            &local,
            &["host: localhost:8000", "origin: null"],
            &expect![[r#"403 {"code":"origin","message":"pages of `null` get nothing from here"}"#]],
        );
    }

    #[test]
    fn tokens_are_said_in_two_ways() {
        let local = guard("127.0.0.1:8000");
        let token = local.token.text().to_owned();
        let said = |uri: &str, lines: &[&str]| {
            let checked = local.check_token(&uri.parse().unwrap(), &headers(lines));
            checked.map_or_else(
                |refusal| format!("{} {}", refusal.status().as_u16(), refusal.as_json()["code"]),
                |()| "ok".to_owned(),
            )
        };
        assert_eq!(said(&format!("/?a=b&token={token}"), &[]), "ok");
        assert_eq!(said("/", &[&format!("authorization: Bearer {token}"), "sec-fetch-site: same-origin"]), "ok");
        // The token of the header counts.
        assert_eq!(said(&format!("/?token={token}"), &["authorization: Bearer wrong"]), "401 \"token\"");
        assert_eq!(said("/", &[]), "401 \"token\"");
        assert_eq!(said("/?token=", &[]), "401 \"token\"");
        assert_eq!(said("/", &[&format!("authorization: Basic {token}")]), "401 \"token\"");
        assert_eq!(said(&format!("/?token={token}"), &["sec-fetch-site: cross-site"]), "403 \"origin\"");
    }
}
