//! The pages that are embedded, and nothing else.

use crate::client::serve;

#[test]
fn the_page_is_there_without_the_token_and_says_what_it_may_do() {
    let server = serve();
    let page = server.say(&format!("GET /?token=x HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address));
    assert_eq!((page.status, page.headers["content-type"].as_str()), (200, "text/html; charset=utf-8"));
    assert!(page.text().contains("Kymograph"));
    let policy = &page.headers["content-security-policy"];
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http:"), "{policy}");
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    assert_eq!(page.headers["referrer-policy"], "no-referrer");
}

/// What the element in a page tells, by paths of the API.
fn told(page: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    let (_, behind) = page.split_once("<script type=\"application/json\" id=\"told\">")?;
    let (text, _) = behind.split_once("</script>")?;
    assert!(!text.contains('<'), "{text}");
    Some(serde_json::from_str(text).unwrap())
}

#[test]
fn who_knows_the_token_gets_the_page_with_what_it_would_ask_first() {
    let server = serve();
    let page = server.say(&format!(
        "GET /?token={} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        server.token, server.address
    ));
    assert_eq!(page.headers["cache-control"], "no-store");
    assert!(!page.headers.contains_key("etag"), "{:?}", page.headers);
    let told = told(page.text()).expect("something is told");
    let paths: Vec<&str> = told.keys().map(String::as_str).collect();
    assert_eq!(paths, ["start", "timeline", "traces", "catalogue?tracks_from=0&values_from=0"]);
    for path in ["start", "traces"] {
        assert_eq!(told[path], server.get(&format!("/api/v1/{path}")).text(), "{path}");
    }
    let timeline = |text: &str| {
        let status: serde_json::Value = serde_json::from_str(text).unwrap();
        ["begin_ns", "end_ns", "instance"].map(|name| status[name].clone())
    };
    assert_eq!(
        timeline(told["timeline"].as_str().unwrap()),
        timeline(server.get("/api/v1/timeline").text()),
        "what does not change while it is built"
    );
}

#[test]
fn who_does_not_know_the_token_is_told_nothing() {
    let server = serve();
    for query in ["", "?token=", "?token=x", "?tokens=1"] {
        let request = format!("GET /{query} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address);
        let page = server.say(&request);
        assert_eq!((page.status, told(page.text())), (200, None), "{query}");
        assert!(page.headers.contains_key("etag"), "{query}");
    }
}

#[test]
fn who_knows_a_page_is_not_sent_it_again() {
    let server = serve();
    let page = server.get("/");
    let known = format!("if-none-match: {}", page.headers["etag"]);
    let again = server.ask("GET", "/index.html", &[&known], "");
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(again.headers["etag"], page.headers["etag"]);
    let packed = server.ask("GET", "/", &["accept-encoding: gzip, br"], "");
    assert_ne!(packed.headers["etag"], page.headers["etag"]);
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert!(packed.body.len() < page.body.len());
    assert_eq!(server.ask("GET", "/", &["accept-encoding: gzip", &known], "").status, 200);
}

#[test]
fn a_head_is_a_page_without_its_body() {
    let server = serve();
    let mut stream = server.connect();
    let request = format!("HEAD / HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address);
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("\r\n\r\n"), "{text}");
    assert_eq!(server.ask("POST", "/", &[], "").status, 405);
}

/// Names lead to what was embedded under them, not to files.
#[test]
fn paths_lead_nowhere_else() {
    let server = serve();
    let tricks = [
        "/../Cargo.toml",
        "/./index.html",
        "//index.html",
        "/index.html/",
        "/assets/../index.html",
        "/%2e%2e/Cargo.toml",
        "/..%2fCargo.toml",
        "/index%2ehtml",
        "/index.html%00",
        "/etc/passwd",
        "/%5c..%5cindex.html",
        "/INDEX.HTML",
        "/.",
        "/*",
        "/build.rs",
        "/src/lib.rs",
        "/assets",
        "/assets/",
    ];
    for trick in tricks {
        assert_eq!(
            server.get(trick).line(),
            "404 {\"error\":{\"code\":\"absent\",\"message\":\"there is no page of this name\"}}",
            "{trick}"
        );
    }
    for trick in ["/api/../index.html", "/api/v1/../../etc/passwd", "/api/v1/jobs/../info"] {
        assert_eq!(server.get(trick).status, 404, "{trick}");
    }
}
