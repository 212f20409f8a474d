//! Who gets nothing, and what is said then.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::client::{Running, serve};

fn check(server: &Running, request: &str, expected: &Expect) {
    let answer = server.say(request);
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.headers["cache-control"], "no-store");
    expected.assert_eq(&answer.line().replace(&server.address.to_string(), "HERE"));
}

fn get(server: &Running, target: &str, expected: &Expect) {
    expected.assert_eq(&server.get(target).line());
}

#[test]
fn strangers_get_nothing() {
    let server = serve();
    let (here, token) = (server.address, &server.token);
    let request = |lines: &str| format!("GET /api/v1/info HTTP/1.1\r\n{lines}\r\n");
    check(
        &server,
        &request(&format!("host: {here}\r\n")),
        &expect![[
            r#"401 {"error":{"code":"token","message":"the token is missing: `Authorization: Bearer TOKEN` or `?token=TOKEN`, as in the URL that `kymo view` prints"}}"#
        ]],
    );
    let wrong = "0".repeat(32);
    check(
        &server,
        &request(&format!("host: {here}\r\nauthorization: Bearer {wrong}\r\n")),
        &expect![[
            r#"401 {"error":{"code":"token","message":"the token is another one: take the URL that `kymo view` has printed last"}}"#
        ]],
    );
    let known = format!("authorization: Bearer {token}\r\n");
    check(
        &server,
        &request(&format!("host: evil.example\r\n{known}")),
        &expect![[r#"421 {"error":{"code":"host","message":"this is no server of `evil.example`: ask for HERE"}}"#]],
    );
    check(
        &server,
        &request(&format!("host: {here}\r\norigin: http://evil.example\r\n{known}")),
        &expect![[
            r#"403 {"error":{"code":"origin","message":"pages of `http://evil.example` get nothing from here"}}"#
        ]],
    );
    check(
        &server,
        &request(&format!("host: {here}\r\nsec-fetch-site: cross-site\r\n{known}")),
        &expect![[r#"403 {"error":{"code":"origin","message":"a cross-site page gets nothing from here"}}"#]],
    );
    check(
        &server,
        &format!("GET /api/v1/info HTTP/1.0\r\n{known}\r\n"),
        &expect![[r#"400 {"error":{"code":"host","message":"the request does not say which host it is for"}}"#]],
    );
    check(
        &server,
        &format!("GET http://evil.example/api/v1/info HTTP/1.1\r\nhost: {here}\r\n{known}\r\n"),
        &expect![[r#"400 {"error":{"code":"host","message":"the request says of two hosts that it is for them"}}"#]],
    );
}

/// What a browser would ask before it lets another page ask.
#[test]
fn other_origins_are_not_let_in() {
    let server = serve();
    let here = server.address;
    let answer = server.say(&format!(
        "OPTIONS /api/v1/jobs HTTP/1.1\r\nhost: {here}\r\norigin: http://evil.example\r\naccess-control-request-method: POST\r\n\r\n"
    ));
    assert_eq!(answer.status, 403);
    assert!(!answer.headers.keys().any(|name| name.starts_with("access-control")), "{:?}", answer.headers);
}

/// Nothing of the API is told without the token, not even what there is.
#[test]
fn everything_of_the_api_needs_the_token() {
    let server = serve();
    for target in ["/api", "/api/v1/nothing", "/api/v1/health", "/api/v1/openapi.json", "/api/v1/jobs/1"] {
        let answer = server.say(&format!("GET {target} HTTP/1.1\r\nhost: {}\r\n\r\n", server.address));
        assert_eq!(answer.status, 401, "{target}");
        assert_eq!(answer.headers["connection"], "close");
        assert_eq!(answer.headers["www-authenticate"], "Bearer realm=\"kymo\"");
    }
}

#[test]
fn what_there_is_not() {
    let server = serve();
    get(
        &server,
        "/api/v1/nothing",
        &expect![[
            r#"404 {"error":{"code":"absent","message":"no such resource; /api/v1/openapi.json lists all resources"}}"#
        ]],
    );
    get(&server, "/api/v1/jobs/17", &expect![[r#"404 {"error":{"code":"absent","message":"there is no job `17`"}}"#]]);
    let answer = server.ask("PUT", "/api/v1/jobs", &[], "");
    expect![[r#"405 {"error":{"code":"method","message":"this method means nothing here"}}"#]]
        .assert_eq(&answer.line());
    assert_eq!(answer.headers["allow"], "GET,HEAD,POST");
}

#[test]
fn absurd_questions_are_refused_by_name() {
    let server = serve();
    let events = |query: &str, expected: &Expect| get(&server, &format!("/api/v1/events?{query}"), expected);
    events(
        "threads=1",
        &expect![
            r#"400 {"error":{"code":"parameter","message":"`threads` stands with `from` or `before`","parameter":"threads"}}"#
        ],
    );
    events(
        "limit=0",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`limit` is `0`; it is a whole number from 1 to 9223372036854775807","parameter":"limit"}}"#
        ]],
    );
    events(
        "limit=99999999999999999999",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`limit` is `99999999999999999999`; it is a whole number from 1 to 9223372036854775807","parameter":"limit"}}"#
        ]],
    );
    events(
        "begin=1e9",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`begin` is `1e9`; it is a whole number from -9223372036854775808 to 9223372036854775807","parameter":"begin"}}"#
        ]],
    );
    events(
        "begin=5&end=4",
        &expect![[r#"400 {"error":{"code":"parameter","message":"`end` is before `begin`","parameter":"end"}}"#]],
    );
    events(
        "event=nothing",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"no event has a name like `nothing`","parameter":"event"}}"#
        ]],
    );
    events(
        "columns=nothing",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"no selected event has a column `nothing`","parameter":"columns","near":[]}}"#
        ]],
    );
    events(
        "filtre=x",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"there is no parameter `filtre` here; there are: begin, end, filter, event, columns, limit, from, before, threads","parameter":"filtre"}}"#
        ]],
    );
    events(
        "filter=id%20%3D",
        &expect![[
            r#"400 {"error":{"code":"filter","message":"found `=`, expected an operator or the end","parameter":"filter","problems":[{"message":"found `=`, expected an operator or the end","help":"equality is `==`","begin":3,"end":4,"begin_utf16":3,"end_utf16":4}]}}"#
        ]],
    );
    let long = format!("/api/v1/events?filter={}", "a".repeat(20_000));
    get(
        &server,
        &long,
        &expect![[r#"414 {"error":{"code":"url","message":"the URL has 20022 bytes; 16384 are the most"}}"#]],
    );
    let many = format!("/api/v1/events?{}", "event=*&".repeat(65));
    get(
        &server,
        many.trim_end_matches('&'),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`event` has 65 names; 64 are the most","parameter":"event"}}"#
        ]],
    );
}

#[test]
fn places_that_are_none_are_refused_by_name() {
    let server = serve();
    let events = |query: &str, expected: &Expect| get(&server, &format!("/api/v1/events?{query}"), expected);
    events(
        "from=5&before=6",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`before` stands without `from`","parameter":"before"}}"#
        ]],
    );
    events(
        "before=5.x",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`before` is no place: a place is a time in nanoseconds, or with a point behind it how many rows of that time are before it: `1500.2`","parameter":"before"}}"#
        ]],
    );
    events(
        "before=5&limit=10001",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"a page has 10000 rows at most","parameter":"limit"}}"#
        ]],
    );
}

#[test]
fn items_of_nothing_are_refused_by_name() {
    let server = serve();
    let items = |query: &str, expected: &Expect| get(&server, &format!("/api/v1/items?{query}"), expected);
    items(
        "track=0",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`begin` is missing; or `at` alone is asked for","parameter":"begin"}}"#
        ]],
    );
    items(
        "track=0&begin=5&end=5",
        &expect![[r#"400 {"error":{"code":"parameter","message":"`end` is not behind `begin`","parameter":"end"}}"#]],
    );
    items(
        "track=99999&at=5",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"track is 99999, but no track has that number","parameter":"track"}}"#
        ]],
    );
}

#[test]
fn jobs_that_make_no_sense_are_refused_by_name() {
    let server = serve();
    let post =
        |body: serde_json::Value, expected: &Expect| expected.assert_eq(&server.post("/api/v1/jobs", &body).line());
    post(
        json!({"kind": "cpus"}),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"there is no analysis `cpus`; there are: cpu, syscalls, io, sched, stacks, irq, block, memory, pairs, breakdown, flows, periods, rates, gaps, threads, count, own","parameter":"kind"}}"#
        ]],
    );
    post(
        json!({"kind": "count", "options": {"cpus": [1]}}),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`count` has nothing that `cpus` could choose","parameter":"cpus"}}"#
        ]],
    );
    post(
        json!({"kind": "cpu", "options": {"by": ["colour"]}}),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`cpu` does not tell `colour` apart; it knows cpu, thread, process, application","parameter":"by"}}"#
        ]],
    );
    post(
        json!({"kind": "rates", "options": {"period_ns": 0}}),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"a period lasts at least a nanosecond","parameter":"period_ns"}}"#
        ]],
    );
    post(
        json!({"kind": "rates", "options": {"pairs": {}}}),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`pairs` says something to `pairs` alone","parameter":"pairs"}}"#
        ]],
    );
    post(
        json!({"kind": "own"}),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`own` requires `declaration`, which is missing","parameter":"declaration"}}"#
        ]],
    );
    post(
        json!({"kind": "count", "options": {"tpo": 1}}),
        &expect![[
            r#"400 {"error":{"code":"body","message":"the body is invalid: unknown field `tpo`, expected one of `begin_ns`, `end_ns`, `filter`, `by`, `top`, `min_ns`, `max_ns`, `min_bytes`, `max_bytes`, `cpus`, `tids`, `comms`, `irqs`, `softirqs`, `names`, `period_ns`, `periods`, `period_captures`, `bins`, `uniform_bins`, `series`, `pairs`, `sums`, `declaration`"}}"#
        ]],
    );
    post(
        json!(["count"]),
        &expect![[
            r#"400 {"error":{"code":"body","message":"the body is invalid: invalid type: sequence, expected a map at line 1 column 0"}}"#
        ]],
    );
    post(
        json!({"kind": "count", "options": []}),
        &expect![[
            r#"400 {"error":{"code":"body","message":"the body is invalid: invalid type: sequence, expected a map"}}"#
        ]],
    );
    post(
        json!({"kind": "pairs", "options": {"pairs": [[]]}}),
        &expect![[
            r#"400 {"error":{"code":"body","message":"the body is invalid: invalid type: sequence, expected a map"}}"#
        ]],
    );
}

#[test]
fn bodies_are_json_of_some_size() {
    let server = serve();
    let plain = server.ask("POST", "/api/v1/filter/check", &["content-type: text/plain"], "{}");
    expect![[r#"415 {"error":{"code":"body","message":"the body is JSON: `Content-Type: application/json`"}}"#]]
        .assert_eq(&plain.line());
    let large = server.post("/api/v1/filter/check", &json!({"filter": "a".repeat(300_000)}));
    expect![[r#"413 {"error":{"code":"body","message":"a body has 262144 bytes at most"}}"#]].assert_eq(&large.line());
    let twice =
        server.ask("POST", "/api/v1/filter/check", &["content-type: application/json"], "{\"filter\": \"a\"} {}");
    expect![[
        r#"400 {"error":{"code":"body","message":"the body is invalid: trailing characters at line 1 column 17"}}"#
    ]]
    .assert_eq(&twice.line());
}

#[test]
fn absurd_windows_are_refused_by_name() {
    let server = serve();
    let tiles = |query: &str, expected: &Expect| get(&server, &format!("/api/v1/tiles?{query}"), expected);
    tiles(
        "level=12&first=0",
        &expect![[r#"400 {"error":{"code":"parameter","message":"`count` is missing","parameter":"count"}}"#]],
    );
    tiles(
        "level=63&first=0&count=1",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`level` is `63`; it is a whole number from 0 to 62","parameter":"level"}}"#
        ]],
    );
    tiles(
        "level=12&first=0&count=4097",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`count` is `4097`; it is a whole number from 1 to 4096","parameter":"count"}}"#
        ]],
    );
    tiles(
        "level=12&first=0&count=0",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`count` is `0`; it is a whole number from 1 to 4096","parameter":"count"}}"#
        ]],
    );
    tiles(
        "level=12&first=-1&count=1",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`first` is `-1`; it is a whole number from 0 to 9223372036854775807","parameter":"first"}}"#
        ]],
    );
    tiles(
        "level=62&first=2&count=1",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"first is 2, but the last bucket must end before 2^63 ns","parameter":"first"}}"#
        ]],
    );
    tiles(
        "level=12&first=9223372036854775807&count=4096",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"first is 9223372036854775807, but the last bucket must end before 2^63 ns","parameter":"first"}}"#
        ]],
    );
    tiles(
        "level=12&first=0&count=1&tracks=99999",
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"tracks is 99999, but no track has that number","parameter":"tracks"}}"#
        ]],
    );
    let many = vec!["0"; 1025].join(",");
    tiles(
        &format!("level=12&first=0&count=1&tracks={many}"),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"`tracks` has 1025 numbers; 1024 are the most","parameter":"tracks"}}"#
        ]],
    );
}
