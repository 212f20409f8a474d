//! Memory: what many ask for at once waits for its turn, and all of them are answered.

use std::io::Write;
use std::time::Duration;

use kymo_server::ServerOptions;

use crate::client::{Running, serve_with};
use crate::timeline::complete;

/// As little as a server can have.
fn small(patience: Duration) -> Running {
    let mut options = ServerOptions::default().patient(Duration::from_secs(10), patience, 100);
    options.memory_bytes = 16 << 20;
    serve_with(options)
}

/// A question whose answer has many megabytes: the same track a thousand times, in a thousand buckets.
fn large(server: &Running) -> String {
    let status = complete(server);
    let level = status["level_max"].as_u64().unwrap() - 10;
    let tracks = vec!["0"; 1000].join(",");
    format!("/api/v1/tiles?level={level}&first=0&count=1000&tracks={tracks}")
}

#[test]
fn large_questions_of_many_are_all_answered() {
    let server = small(Duration::from_secs(30));
    let target = large(&server);
    let first = server.get(&target).body;
    assert!(first.len() > 4 << 20, "{}", first.len());
    std::thread::scope(|scope| {
        for number in 0..12 {
            let (server, target, first) = (&server, &target, &first);
            scope.spawn(move || {
                for _ in 0..2 {
                    let viewer = format!("kymo-viewer: {}", number % 5);
                    let answer = server.ask("GET", target, &[&viewer], "");
                    assert_eq!((answer.status, &answer.body == first), (200, true));
                    assert_eq!(server.get("/api/v1/health").status, 200);
                }
            });
        }
    });
}

/// Memory of answers that nobody takes comes back when who asked for them is let go; what needs none is answered meanwhile.
#[test]
fn answers_that_nobody_takes_do_not_keep_others_waiting() {
    let server = small(Duration::from_millis(300));
    let target = large(&server);
    let idle: Vec<_> = (0..4)
        .map(|_| {
            let mut stream = server.connect();
            let (here, token) = (server.address, &server.token);
            write!(stream, "GET {target} HTTP/1.1\r\nhost: {here}\r\nauthorization: Bearer {token}\r\n\r\n").unwrap();
            stream
        })
        .collect();
    assert_eq!(server.get("/api/v1/timeline").status, 200);
    assert_eq!(server.get(&target).status, 200);
    drop(idle);
}
