//! `openapi.json` is true: what it describes is answered, as it says; what is answered is described.

use std::collections::BTreeSet;

use kymo_session::analyses;
use serde_json::{Value, json};

use crate::checker::Checker;
use crate::client::{Running, serve};

pub fn description() -> Value {
    let names: Vec<&str> = analyses().iter().map(|entry| &*entry.name).collect();
    let text = include_str!("../../src/openapi.json").replace("ANALYSES", &names.join("\", \""));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_description_that_is_served_names_all_analyses() {
    let served: Value = serde_json::from_str(serve().get("/api/v1/openapi.json").text()).unwrap();
    assert_eq!(served, description());
    let kinds = served["components"]["schemas"]["Asks"]["properties"]["kind"]["enum"].as_array().unwrap();
    assert_eq!(kinds.len(), analyses().len() + 1);
}

/// Every path is routed, and every route described.
#[test]
fn paths_are_those_that_are_routed() {
    let routes = include_str!("../../src/api.rs").lines().filter_map(|line| {
        let path = line.trim().strip_prefix(".route(\"")?.split('"').next()?;
        Some(format!("/api{path}"))
    });
    let described: BTreeSet<String> = description()["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(routes.collect::<BTreeSet<String>>(), described);
}

/// A request for each operation that has an answer in JSON: its path, as it is described and as it is asked, and its body.
const ASKED: &[(&str, &str, &str, &str)] = &[
    ("get", "/api/v1/health", "/api/v1/health", ""),
    ("get", "/api/v1/openapi.json", "/api/v1/openapi.json", ""),
    ("get", "/api/v1/info", "/api/v1/info", ""),
    ("get", "/api/v1/traces", "/api/v1/traces", ""),
    ("get", "/api/v1/timeline", "/api/v1/timeline", ""),
    ("get", "/api/v1/catalogue", "/api/v1/catalogue", ""),
    ("get", "/api/v1/catalogue", "/api/v1/catalogue?tracks_from=4294967295&values_from=4294967295", ""),
    ("get", "/api/v1/tiles", "/api/v1/tiles?level=63&first=0&count=1", ""),
    ("get", "/api/v1/tiles", "/api/v1/tiles?level=62&first=9223372036854775807&count=4096", ""),
    ("get", "/api/v1/tiles", "/api/v1/tiles?level=9&first=0&count=1&tracks=0&event=nobody", ""),
    ("get", "/api/v1/items", "/api/v1/items?track=0&at=0", ""),
    ("get", "/api/v1/items", "/api/v1/items?track=0&begin=0&end=9223372036854775807&limit=5", ""),
    ("get", "/api/v1/items", "/api/v1/items?track=99999&at=0", ""),
    ("post", "/api/v1/filter/check", "/api/v1/filter/check", r#"{"filter": "id == 3"}"#),
    ("post", "/api/v1/filter/check", "/api/v1/filter/check", r#"{"filter": "id == "}"#),
    ("get", "/api/v1/analyses", "/api/v1/analyses", ""),
    ("post", "/api/v1/jobs", "/api/v1/jobs", r#"{"kind": "count"}"#),
    ("post", "/api/v1/jobs", "/api/v1/jobs", r#"{"kind": "sched", "options": {"top": 3, "by": ["thread"]}}"#),
    ("get", "/api/v1/jobs/{id}", "/api/v1/jobs/1", ""),
    ("get", "/api/v1/jobs/{id}/result", "/api/v1/jobs/1/result", ""),
    ("get", "/api/v1/jobs/{id}", "/api/v1/jobs/2", ""),
    ("get", "/api/v1/jobs/{id}/result", "/api/v1/jobs/2/result", ""),
    ("get", "/api/v1/jobs", "/api/v1/jobs", ""),
    ("get", "/api/v1/events", "/api/v1/events?limit=0", ""),
    ("get", "/api/v1/events", "/api/v1/events?filter=x%20%3D", ""),
    ("get", "/api/v1/events", "/api/v1/events?from=5.x", ""),
    ("get", "/api/v1/events/count", "/api/v1/events/count", ""),
    ("get", "/api/v1/events/count", "/api/v1/events/count?filter=x%20%3D", ""),
    ("delete", "/api/v1/jobs/{id}", "/api/v1/jobs/17", ""),
    (
        "put",
        "/api/v1/notes/{id}",
        "/api/v1/notes/a",
        r#"{"begin_ns": -5, "text": "old", "end_ns": 7, "author": "ada"}"#,
    ),
    ("put", "/api/v1/notes/{id}", "/api/v1/notes/a", r#"{"begin_ns": 1795219372256000001, "text": "new"}"#),
    ("put", "/api/v1/notes/{id}", "/api/v1/notes/b", r#"{"begin_ns": "now"}"#),
    ("get", "/api/v1/notes", "/api/v1/notes", ""),
    ("delete", "/api/v1/notes/{id}", "/api/v1/notes/b", ""),
    // Nobody records the traces; tests with a recorder are the command's.
    ("get", "/api/v1/recording", "/api/v1/recording", ""),
    ("post", "/api/v1/recording", "/api/v1/recording", r#"{"act": "stop"}"#),
    ("post", "/api/v1/recording", "/api/v1/recording", r#"{"act": "enable", "events": ["net"]}"#),
    ("get", "/api/v1/start", "/api/v1/start", ""),
    // Traces are open already; tests of their own ask where none are.
    ("post", "/api/v1/start/open", "/api/v1/start/open", r#"{"paths": ["."]}"#),
    ("post", "/api/v1/start/sample", "/api/v1/start/sample", ""),
    ("put", "/api/v1/start/uploads/{id}/{path}", "/api/v1/start/uploads/a/b", "bytes"),
    ("delete", "/api/v1/start/uploads/{id}", "/api/v1/start/uploads/a", ""),
];

#[test]
fn answers_are_as_described() {
    let (server, description) = (serve(), description());
    for &(method, described, target, body) in ASKED {
        if described == "/api/v1/jobs/{id}/result" {
            wait(&server, target.trim_end_matches("/result"));
        }
        let answer = server.ask(&method.to_uppercase(), target, &["content-type: application/json"], body);
        let responses = &description["paths"][described][method]["responses"];
        assert!(responses.is_object(), "{method} {described} is described");
        let response =
            resolved(&description, responses.get(answer.status.to_string()).unwrap_or(&responses["default"]));
        assert!(answer.status < 500, "{}", answer.line());
        let schema = &response["content"]["application/json"]["schema"];
        let problems = Checker::new(&description).problems(&answer.json(), schema, target);
        assert_eq!(problems, Vec::<String>::new(), "{method} {target}");
    }
}

/// A job has ended.
fn wait(server: &Running, place: &str) {
    for _ in 0..10_000 {
        if !["waiting", "running"].contains(&server.get(place).json()["state"].as_str().unwrap()) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{place} has not ended")
}

pub fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(name) => root.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{name} leads somewhere")),
        None => schema,
    }
}

/// Who checks answers with it notices what is wrong with them.
#[test]
fn the_checker_notices() {
    let root = json!({});
    let good = |value: Value, schema: Value| Checker::new(&root).problems(&value, &schema, "").is_empty();
    let schema = json!({"type": "object", "properties": {"a": {"type": ["integer", "null"], "minimum": 1}}, "required": ["a"], "additionalProperties": false});
    assert!(good(json!({"a": 1}), schema.clone()) && good(json!({"a": null}), schema.clone()));
    for bad in [json!({}), json!({"a": 0}), json!({"a": "1"}), json!({"a": 1, "b": 2}), json!([1])] {
        assert!(!good(bad.clone(), schema.clone()), "{bad}");
    }
}
