//! Notes: kept one by one in a file that others may write, too.

use expect_test::expect;
use serde_json::{Value, json};

use crate::client::{Running, serve};

fn put(server: &Running, id: &str, note: &Value) -> (u16, Value) {
    let answer =
        server.ask("PUT", &format!("/api/v1/notes/{id}"), &["content-type: application/json"], &note.to_string());
    (answer.status, answer.json())
}

#[test]
fn notes_are_kept_beside_those_of_others() {
    let server = serve();
    let file = server.folder.path().join("demo.kymo-notes");
    assert_eq!(server.get("/api/v1/notes").json()["notes"], json!([]));
    let mine = json!({"begin_ns": 1_795_219_372_256_000_001i64, "text": "here \u{1f41e}", "track": "cpu/0/0/thread"});
    let (status, kept) = put(&server, "mine", &mine);
    assert_eq!((status, &kept["id"], &kept["begin_ns"]), (201, &json!("mine"), &mine["begin_ns"]));
    // Somebody else, or git, writes besides.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{{\"id\":\"theirs\",\"begin_ns\":1,\"text\":\"\"}}\n=======\n{text}")).unwrap();
    assert_eq!(put(&server, "mine", &json!({"id": "mine", "begin_ns": 2, "text": "again"})).0, 200);
    let found = server.get("/api/v1/notes").json();
    let ids: Vec<&Value> = found["notes"].as_array().unwrap().iter().map(|note| &note["id"]).collect();
    assert_eq!(ids, ["theirs", "mine"]);
    assert_eq!(found["problems"][0]["line"], 1);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("=======\n"));
    assert_eq!(server.ask("DELETE", "/api/v1/notes/theirs", &[], "").status, 204);
    assert_eq!(server.ask("DELETE", "/api/v1/notes/theirs", &[], "").status, 404);
    assert_eq!(server.get("/api/v1/notes").json()["notes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_no_note_is_refused() {
    let server = serve();
    let said = |id: &str, note: Value| {
        let (status, answer) = put(&server, id, &note);
        format!("{status} {}", answer["error"]["message"].as_str().unwrap())
    };
    expect!["400 `begin_ns` is \"now\"; expected a whole number of nanoseconds"]
        .assert_eq(&said("a", json!({"begin_ns": "now", "text": ""})));
    expect!["400 `id` is \"a b\"; expected 1 to 64 letters, digits, `-` and `_`"]
        .assert_eq(&said("a%20b", json!({"begin_ns": 1, "text": ""})));
    expect!["400 the note says another `id` than `a`, under which it is kept"]
        .assert_eq(&said("a", json!({"id": "b", "begin_ns": 1, "text": ""})));
    std::fs::create_dir(server.folder.path().join("demo.kymo-notes")).unwrap();
    let (status, answer) = put(&server, "a", &json!({"begin_ns": 1, "text": ""}));
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("notes")));
}
