//! Before traces are open: what there is to choose from, and what becomes of what somebody chooses.

use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use kymo_server::{RecordHint, SampleTrace, TraceChoice};
use kymo_session::{OpenOptions, Recent};
use serde_json::{Value, json};

use crate::checker::Checker;
use crate::client::{Answer, Running, demo, serve, serve_choice};
use crate::description::description;

const SAMPLE: SampleTrace =
    SampleTrace { name: "server.tar.gz", bytes: include_bytes!("../../../../examples/traces/server.tar.gz") };
const HINTS: &[RecordHint] = &[RecordHint { command: "kymo record", what: "all" }];
const BYTES: [&str; 1] = ["content-type: application/octet-stream"];

fn choice(cache: Option<&Path>) -> TraceChoice {
    let open = OpenOptions { cache: cache.map(Path::to_owned), ..OpenOptions::default() };
    TraceChoice { open, sample: Some(SAMPLE), record: HINTS, upload_bytes_max: 1 << 20 }
}

fn open(server: &Running, paths: &[&Path]) -> Answer {
    server.post("/api/v1/start/open", &json!({"paths": paths}))
}

fn start(server: &Running) -> Value {
    server.get("/api/v1/start").json()
}

/// Whether it is an answer of `GET /api/v1/start` as described.
fn check(told: &Value, state: &str) {
    let root = description();
    let problems = Checker::new(&root).problems(told, &root["components"]["schemas"]["Start"], "");
    assert_eq!((problems, told["state"].as_str()), (Vec::new(), Some(state)), "{told}");
}

/// A copy of the demo in a folder, to be opened by another path than its own.
fn copied(to: &Path) -> PathBuf {
    let trace = to.join("mine");
    std::fs::create_dir(&trace).unwrap();
    for (name, path) in files() {
        let path = std::fs::read(path).unwrap();
        let target = trace.join(name);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, path).unwrap();
    }
    trace
}

/// The files of the demo, by their names in it.
fn files() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for (folder, within) in [(demo(), ""), (demo().join("index"), "index/")] {
        let files = std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_file());
        found.extend(files.map(|entry| (format!("{within}{}", entry.file_name().to_str().unwrap()), entry.path())));
    }
    found
}

#[test]
fn nothing_is_told_of_traces_before_there_are_any() {
    let server = serve_choice(choice(None));
    check(&start(&server), "choosing");
    for target in ["health", "openapi.json", "analyses"] {
        assert_eq!(server.get(&format!("/api/v1/{target}")).status, 200, "{target}");
    }
    let mut asked = 0;
    for (path, operations) in description()["paths"].as_object().unwrap() {
        // Which analyses there are is the same of all traces; who records some is asked while they are waited for.
        let always = ["/health", "/openapi.json", "/analyses", "/recording"];
        if path.contains("/start") || always.iter().any(|end| path.ends_with(end)) {
            continue;
        }
        for method in operations.as_object().unwrap().keys().filter(|method| *method != "parameters") {
            let target = path.replace("{id}", "1");
            let answer = server.ask(&method.to_uppercase(), &target, &["content-type: application/json"], "{}");
            assert_eq!(
                answer.line(),
                r#"409 {"error":{"code":"start","message":"no traces are open yet; /api/v1/start says which can be opened"}}"#,
                "{method} {path}"
            );
            asked += 1;
        }
    }
    assert!(asked > 15, "{asked}");
    let stranger = server.say(&format!("GET /api/v1/start HTTP/1.1\r\nhost: {}\r\n\r\n", server.address));
    assert_eq!(stranger.status, 401);
}

#[test]
fn traces_of_this_machine_are_opened_once_and_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, trace) = (folder.path().join("cache"), copied(folder.path()));
    let server = serve_choice(choice(Some(&cache)));
    let wrong = open(&server, &[folder.path().join("nothing").as_path()]);
    assert_eq!((wrong.status, wrong.json()["error"]["code"].as_str()), (400, Some("unopened")), "{}", wrong.line());
    let told = start(&server);
    check(&told, "choosing");
    assert_eq!((&told["failure"], &told["recent"]), (&wrong.json()["error"]["message"], &json!([])));
    assert!(told["failure"].as_str().unwrap().contains("nothing"), "{told}");

    let opened = open(&server, &[&trace]);
    assert_eq!(opened.status, 200, "{}", opened.line());
    check(&opened.json(), "open");
    assert_eq!(server.get("/api/v1/traces").json()["traces"][0]["name"], "mine");
    assert_eq!(server.get("/api/v1/timeline").status, 200);
    // Notes lie beside it.
    let note =
        server.ask("PUT", "/api/v1/notes/a", &["content-type: application/json"], r#"{"begin_ns": 5, "text": "x"}"#);
    assert_eq!((note.status, folder.path().join("mine.kymo-notes").is_file()), (201, true));
    expect![[r#"409 {"error":{"code":"open","message":"traces are open already; another `kymo view` shows others"}}"#]]
        .assert_eq(&open(&server, &[&trace]).line());
    drop(server);

    let again = serve_choice(choice(Some(&cache)));
    let recent = start(&again)["recent"].clone();
    assert_eq!(recent.as_array().unwrap().len(), 1, "{recent}");
    assert_eq!((&recent[0]["there"], &recent[0]["paths"][0]), (&json!(true), &json!(trace.canonicalize().unwrap())));
    std::fs::remove_dir_all(&trace).unwrap();
    assert_eq!(start(&again)["recent"][0]["there"], false);
    // A list that is damaged is told, and keeps nobody from anything.
    let file =
        std::fs::read_dir(&cache).unwrap().flatten().find(|entry| entry.path().extension() == Some("json".as_ref()));
    std::fs::write(file.unwrap().path(), "damaged").unwrap();
    let told = start(&again);
    assert!(
        told["problem"].as_str().unwrap().contains("is rewritten when a trace is opened")
            && told["recent"] == json!([]),
        "{told}"
    );
    assert_eq!(open(&again, &[&demo()]).status, 200);
    assert_eq!(Recent::in_folder(&cache).read().entries.len(), 1);
}

#[test]
fn the_sample_is_a_trace() {
    let server = serve_choice(choice(None));
    let opened = server.ask("POST", "/api/v1/start/sample", &[], "");
    check(&opened.json(), "open");
    let info = server.get("/api/v1/info").json();
    assert!(info["events"].as_u64().unwrap_or(0) > 100 || info.to_string().contains("server:request_begin"), "{info}");
    // What is gone when the server ends has no notes beside it.
    assert_eq!(server.get("/api/v1/notes").status, 404);
    let without = serve_choice(TraceChoice { sample: None, ..choice(None) });
    assert_eq!(without.ask("POST", "/api/v1/start/sample", &[], "").status, 404);
}

#[test]
fn files_that_are_sent_are_opened_together_and_kept_no_longer_than_the_server() {
    let mut server = serve_choice(choice(None));
    for (name, path) in files() {
        let bytes = std::fs::read(path).unwrap();
        let target = format!("/api/v1/start/uploads/u1/sent%2F{}", name.replace('/', "%2F"));
        let answer = send(&server, &target, &bytes);
        assert_eq!((answer.status, &answer.json()["bytes"]), (201, &json!(bytes.len())), "{}", answer.line());
    }
    let opened = server.post("/api/v1/start/open", &json!({"upload": "u1"}));
    assert_eq!(opened.status, 200, "{}", opened.line());
    let traces = server.get("/api/v1/traces").json();
    let path = PathBuf::from(traces["traces"][0]["path"].as_str().unwrap());
    assert_eq!((&traces["traces"][0]["name"], path.join("metadata").is_file()), (&json!("sent"), true));
    server.end();
    assert!(!path.exists() && !path.parent().unwrap().parent().unwrap().exists());
}

fn send(server: &Running, target: &str, bytes: &[u8]) -> Answer {
    let mut stream = server.connect();
    let head = format!(
        "PUT {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {}\r\ncontent-type: application/octet-stream\r\ncontent-length: {}\r\n\r\n",
        server.address,
        server.token,
        bytes.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(bytes).unwrap();
    Answer::read(&mut BufReader::new(stream))
}

#[test]
fn names_of_files_lead_nowhere_else() {
    let server = serve_choice(choice(None));
    let tricks = [
        "..",
        "..%2Fx",
        "a%2F..%2Fb",
        "%2Fetc%2Fpasswd",
        "a%5C..%5Cb",
        "a%00",
        "a%2F",
        "%2e%2e%2fx",
        "a%2F%2Fb",
        "%FF",
    ];
    for trick in tricks {
        let answer = server.ask("PUT", &format!("/api/v1/start/uploads/u/{trick}"), &BYTES, "x");
        assert_eq!(
            (answer.status, answer.json()["error"]["parameter"].as_str()),
            (400, Some("path")),
            "{trick}: {}",
            answer.line()
        );
    }
    for trick in ["u/a/b", "u/", "../u/a", "u"] {
        let status = server.ask("PUT", &format!("/api/v1/start/uploads/{trick}"), &BYTES, "x").status;
        assert!(status == 404 || status == 405, "{trick}: {status}");
    }
    for id in ["%2E%2E", "a%2Fb", "%20"] {
        let answer = server.ask("PUT", &format!("/api/v1/start/uploads/{id}/a"), &BYTES, "x");
        assert_eq!(answer.json()["error"]["parameter"], "id", "{id}: {}", answer.line());
    }
    // Nothing came, so nothing can be opened.
    let refused = |body: Value, expected: &Expect| expected.assert_eq(&server.post("/api/v1/start/open", &body).line());
    refused(
        json!({"upload": "u"}),
        &expect![[r#"404 {"error":{"code":"absent","message":"there is no upload `u`"}}"#]],
    );
    refused(
        json!({"paths": []}),
        &expect![[r#"400 {"error":{"code":"parameter","message":"`paths` names no trace","parameter":"paths"}}"#]],
    );
    refused(
        json!({"paths": [" "]}),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"a path of `paths` is empty, or has a NUL in it","parameter":"paths"}}"#
        ]],
    );
    refused(
        json!({"paths": ["a"], "upload": "u"}),
        &expect![[
            r#"400 {"error":{"code":"parameter","message":"give either `paths` or an `upload`","parameter":"paths"}}"#
        ]],
    );
}

#[test]
fn files_have_so_many_bytes_and_no_more() {
    let server = serve_choice(TraceChoice { upload_bytes_max: 1000, ..choice(None) });
    let put = |name: &str, bytes: usize| send(&server, &format!("/api/v1/start/uploads/u/{name}"), &vec![7; bytes]);
    assert_eq!((put("a", 600).status, put("a", 1).status), (201, 409));
    expect![[r#"413 {"error":{"code":"body","message":"all files together have 1000 bytes at most"}}"#]]
        .assert_eq(&put("b", 401).line());
    // Whoever does not say how much comes is stopped where it is too much.
    let mut stream = server.connect();
    let chunks = "4\r\nabcd\r\n".repeat(101) + "0\r\n\r\n";
    let head = format!(
        "PUT /api/v1/start/uploads/u/c HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {}\r\ntransfer-encoding: chunked\r\n\r\n",
        server.address, server.token
    );
    stream.write_all((head + &chunks).as_bytes()).unwrap();
    assert_eq!(Answer::read(&mut BufReader::new(stream)).status, 413);
    assert_eq!((put("d", 400).status, put("e", 1).status), (201, 413));
    assert_eq!(server.ask("DELETE", "/api/v1/start/uploads/u", &[], "").status, 204);
    assert_eq!(
        (
            put("a", 1000).status,
            server.ask("PUT", "/api/v1/start/uploads/u/f", &["content-type: text/plain"], "").status
        ),
        (201, 415)
    );
    let none = serve_choice(TraceChoice { upload_bytes_max: 0, ..choice(None) });
    assert_eq!(send(&none, "/api/v1/start/uploads/u/a", b"").status, 413);
}

/// Of a file whose sender has gone, nothing is kept.
#[test]
fn a_file_that_was_cut_is_not_opened() {
    let server = serve_choice(TraceChoice { upload_bytes_max: 1000, ..choice(None) });
    let mut stream = server.connect();
    let head = format!(
        "PUT /api/v1/start/uploads/u/a HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: 900\r\n\r\nsome",
        server.address, server.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    drop(stream);
    // The server notices when it does; until then the file is coming.
    loop {
        let line = server.post("/api/v1/start/open", &json!({"upload": "u"})).line();
        if line.starts_with("404") {
            break;
        }
        assert!(line.starts_with("409") && line.contains("unfinished"), "{line}");
        std::thread::yield_now();
    }
    assert_eq!(send(&server, "/api/v1/start/uploads/u/a", &[7; 1000]).status, 201);
}

/// Where traces were open from the begin on, there is nothing to choose.
#[test]
fn who_has_traces_chooses_none() {
    let server = serve();
    let told = start(&server);
    check(&told, "open");
    assert_eq!((&told["recent"], &told["upload_bytes_max"], &told["sample"]), (&json!([]), &json!(0), &json!(false)));
    for (method, target) in [("POST", "sample"), ("DELETE", "uploads/u"), ("PUT", "uploads/u/a")] {
        assert_eq!(server.ask(method, &format!("/api/v1/start/{target}"), &[], "").status, 409, "{target}");
    }
}
