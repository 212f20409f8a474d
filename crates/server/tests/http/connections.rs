//! Those who are slow, many, or gone.

use std::io::{BufReader, Read, Write};
use std::time::Duration;

use expect_test::expect;
use kymo_server::ServerOptions;

use crate::client::{Answer, LONG, chunk, serve, serve_with};

fn impatient(connections: usize) -> ServerOptions {
    ServerOptions::default().patient(Duration::from_millis(100), Duration::from_millis(100), connections)
}

/// Who sends half a head is let go.
#[test]
fn heads_come_within_some_time() {
    let server = serve_with(impatient(16));
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: ").unwrap();
    let mut rest = Vec::new();
    // It ends, without an answer or with one that says why.
    stream.read_to_end(&mut rest).unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn there_are_so_many_connections_and_no_more() {
    let server = serve_with(ServerOptions::default().patient(LONG, LONG, 2));
    let mut both: Vec<_> = (0..2).map(|_| server.connect()).collect();
    // One that is served has its place for sure.
    for stream in &mut both {
        stream.write_all(format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", server.address).as_bytes()).unwrap();
        assert_eq!(Answer::read(&mut BufReader::new(stream)).status, 200);
    }
    let away = Answer::read(&mut BufReader::new(server.connect()));
    assert_eq!(
        away.line(),
        "503 {\"error\":{\"code\":\"busy\",\"message\":\"too many connections: close some, or ask later\"}}"
    );
    assert_eq!(away.headers["retry-after"], "1");
}

#[test]
fn heads_are_of_some_size() {
    let server = serve();
    let many = server.ask("GET", "/", &["x: y"; 70], "");
    expect![[r#"431 {"error":{"code":"header","message":"the request has 74 headers; 64 are the most"}}"#]]
        .assert_eq(&many.line());
    let (more, large) = ("x: y\r\n".repeat(200), format!("x: {}\r\n", "y".repeat(200_000)));
    for lines in [more, large] {
        let mut stream = server.connect();
        // The server may close before all of it is there.
        let _ = stream.write_all(format!("GET / HTTP/1.1\r\nhost: {}\r\n{lines}\r\n", server.address).as_bytes());
        let mut said = [0; 12];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 431", "{}", lines.len());
    }
}

/// Somebody listens, and is told at once how things are.
#[test]
fn who_listens_is_told_how_things_are() {
    let server = serve();
    let mut stream = server.connect();
    let request = format!("GET /api/v1/changes?token={} HTTP/1.1\r\nhost: {}\r\n\r\n", server.token, server.address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        std::io::BufRead::read_line(&mut stream, &mut head).unwrap();
    }
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let mut told = String::new();
    while !(told.contains("event: jobs\ndata: {\"jobs\":[]}\n\n")
        && told.contains("event: timeline\ndata: {\"begin_ns\":"))
    {
        told += std::str::from_utf8(&chunk(&mut stream).unwrap()).unwrap();
    }
    assert_eq!(server.post("/api/v1/jobs", &serde_json::json!({"kind": "count"})).status, 201);
    while !told.contains("\"state\":\"done\"") {
        told += std::str::from_utf8(&chunk(&mut stream).unwrap()).unwrap();
    }
}

/// A server that is ended ends, whoever is connected.
#[test]
fn the_end_waits_for_nobody() {
    let mut server = serve();
    let mut listens = server.connect();
    let request = format!("GET /api/v1/changes?token={} HTTP/1.1\r\nhost: {}\r\n\r\n", server.token, server.address);
    listens.write_all(request.as_bytes()).unwrap();
    listens.read_exact(&mut [0; 12]).unwrap();
    let idle = server.connect();
    server.end();
    listens.read_to_end(&mut Vec::new()).unwrap();
    drop(idle);
}

/// Viewers that all ask at once are all answered, also while one of them asks for all there is again and again.
#[test]
fn many_viewers_are_answered() {
    let server = serve();
    std::thread::scope(|scope| {
        let greedy = scope.spawn(|| {
            for _ in 0..20 {
                assert_eq!(server.get("/api/v1/events?limit=1000000").status, 200);
            }
        });
        for number in 0..50 {
            let server = &server;
            scope.spawn(move || {
                for _ in 0..4 {
                    let name = format!("kymo-viewer: {number}");
                    assert_eq!(server.ask("GET", "/api/v1/catalogue", &[&name], "").status, 200);
                }
            });
        }
        greedy.join().unwrap();
    });
}
