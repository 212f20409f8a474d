//! Questions and their answers, which are those of the session.

use std::io::Cursor;

use kymo_session::arrow::array::Array;
use kymo_session::arrow::datatypes::Schema;
use kymo_session::arrow::ipc::reader::StreamReader;
use kymo_session::arrow::record_batch::RecordBatch;
use kymo_session::{
    AnalysisDeclaration, AnalysisKind, AnalysisOptions, EventsQuestion, Progress, Table, Wishes, find_analysis,
    json as as_json,
};
use serde_json::{Value, json};

use crate::client::{Answer, Running, serve, session};

fn rows(answer: &Answer) -> Vec<RecordBatch> {
    assert_eq!((answer.status, answer.headers["content-type"].as_str()), (200, "application/vnd.apache.arrow.stream"));
    StreamReader::try_new(Cursor::new(&answer.body), None).unwrap().map(Result::unwrap).collect()
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

#[test]
fn what_the_traces_hold() {
    let server = serve();
    let info = as_json::info(&session().info());
    assert_eq!(server.get("/api/v1/info").json(), info);
    assert_eq!(server.get("/api/v1/traces").json(), json!({"traces": info["traces"]}));
    assert_eq!(server.get("/api/v1/health").json()["status"], "ok");
}

#[test]
fn events_are_those_of_the_session() {
    let server = serve();
    let session = session();
    let table = session.events(&EventsQuestion::default()).unwrap();
    let all: Vec<RecordBatch> = table.stream().map(Result::unwrap).collect();
    let answer = rows(&server.get("/api/v1/events?limit=1000000"));
    assert_eq!(answer[0].schema(), *table.schema_to_show());
    // Whoever shows them knows in which base the trace wishes that.
    let of = |schema: &Schema| schema.field_with_name("checksum").unwrap().metadata().get("kymo.bases").cloned();
    assert_eq!(of(&answer[0].schema()).as_deref(), Some(r#"[{"path":[],"base":16,"bits":64}]"#));
    let page = rows(&server.get("/api/v1/events?from=0&limit=5&columns=checksum"));
    assert_eq!(of(&page[0].schema()), of(&answer[0].schema()));
    assert_eq!((count(&answer), count(&all)), (2400, 2400));
    let times = |batches: &[RecordBatch]| -> Vec<i64> {
        let of = |batch: &RecordBatch| {
            batch.column_by_name("time").unwrap().to_data().buffers()[0].typed_data::<i64>().to_vec()
        };
        batches.iter().flat_map(|batch| of(batch)[..batch.num_rows()].to_vec()).collect()
    };
    assert_eq!(times(&answer), times(&all));
}

#[test]
fn events_are_as_many_as_asked_for() {
    let server = serve();
    for limit in [1, 2, 999, 2400, 2401] {
        assert_eq!(count(&rows(&server.get(&format!("/api/v1/events?limit={limit}")))), limit.min(2400));
    }
    assert_eq!(count(&rows(&server.get("/api/v1/events"))), 1000);
    let none = rows(&server.get("/api/v1/events?end=0"));
    assert_eq!(count(&none), 0);
    let few = rows(&server.get("/api/v1/events?columns=time,name&limit=3"));
    let names: Vec<String> = few[0].schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["time", "name"]);
}

/// A list goes back and forth by what pages say of themselves, and finds the same.
#[test]
fn pages_of_events_go_back_and_forth() {
    let server = serve();
    let ask = |query: &str| server.get(&format!("/api/v1/events?columns=cycles&{query}"));
    let cycles = |answer: &Answer| -> Vec<u64> {
        let of = |batch: RecordBatch| {
            let data = batch.column(0).to_data();
            data.buffers()[0].typed_data::<u64>()[data.offset()..][..batch.num_rows()].to_vec()
        };
        rows(answer).into_iter().flat_map(of).collect()
    };
    let all = cycles(&ask("limit=2400"));
    let first = ask("from=0&limit=1500");
    assert_eq!((cycles(&first), first.headers["kymo-end"].as_str()), (all[..1500].to_vec(), "false"));
    let back = ask(&format!("before={}&limit=10", first.headers["kymo-after"]));
    assert_eq!(cycles(&back), all[1490..1500]);
    let again = ask(&format!("from={}&limit=5", back.headers["kymo-before"]));
    assert_eq!(
        (cycles(&again), &again.headers["kymo-before"]),
        (all[1490..1495].to_vec(), &back.headers["kymo-before"])
    );
    let begin = ask(&format!("before={}&limit=5", first.headers["kymo-before"]));
    assert_eq!((cycles(&begin), begin.headers["kymo-end"].as_str()), (vec![], "true"));
    // The previous match.
    let matches = cycles(&ask("filter=id%20==%2030&limit=2400"));
    let previous = ask(&format!("filter=id%20==%2030&limit=1&before={}", i64::MAX));
    assert_eq!(cycles(&previous), matches[matches.len() - 1..]);
}

#[test]
fn events_are_counted() {
    let server = serve();
    let count = |query: &str| server.get(&format!("/api/v1/events/count?{query}")).json();
    assert_eq!(count(""), json!({"events": 2400, "exact": true}));
    assert_eq!(count("event=jobs:begin"), json!({"events": 400, "exact": true}));
    assert_eq!(count("end=0"), json!({"events": 0, "exact": true}));
}

/// A job, once it has ended.
fn ended(server: &Running, asks: &Value) -> Value {
    let begun = server.post("/api/v1/jobs", asks);
    assert_eq!(begun.status, 201, "{}", begun.text());
    let place = begun.headers["location"].clone();
    for _ in 0..10_000 {
        let job = server.get(&place).json();
        if job["state"] == "done" || job["state"] == "failed" {
            return job;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("the job has not ended")
}

/// To the byte what `kymo KIND --json` prints.
#[test]
fn answers_of_jobs_are_those_of_the_command() {
    let server = serve();
    let session = session();
    for name in ["count", "rates", "gaps"] {
        let kind = &find_analysis(name).unwrap().kind;
        let job = ended(&server, &json!({"kind": name}));
        let found = session.ask(kind, &AnalysisOptions::default(), &Progress::default()).unwrap();
        let tables: Vec<&Table> = found.answer.tables.iter().collect();
        let mut expected = Vec::new();
        as_json::write_answer(&tables, &found.report, &mut expected).unwrap();
        assert_eq!((&job["state"], &job["done"]), (&json!("done"), &job["total"]));
        let id = job["id"].as_str().unwrap();
        assert_eq!(
            server.get(&format!("/api/v1/jobs/{id}/result")).text(),
            String::from_utf8(expected).unwrap(),
            "{name}"
        );
    }
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().unwrap().len(), 3);
}

/// The same where the body names events: to the byte the output of `kymo breakdown --start ... --json`.
#[test]
fn operations_of_jobs_are_those_of_the_command() {
    let server = serve();
    let named = json!({"start": ["jobs:begin"], "stop": ["jobs:end"], "keys": ["id"]});
    let job = ended(&server, &json!({"kind": "breakdown", "options": {"pairs": named, "top": 3}}));
    let result = server.get(&format!("/api/v1/jobs/{}/result", job["id"].as_str().unwrap()));
    let told = result.text();
    let texts = |text: &str| vec![text.to_owned()];
    let operations =
        AnalysisDeclaration::of_operations(&texts("jobs:begin"), &[], &texts("jobs:end"), &texts("id")).unwrap();
    let wishes = Wishes { top: Some(3), ..Wishes::default() };
    let options = AnalysisOptions { wishes, ..AnalysisOptions::default() };
    let (session, kind) = (session(), AnalysisKind::Own(operations));
    let found = session.ask(&kind, &options, &Progress::default()).unwrap();
    let tables: Vec<&Table> = found.answer.tables.iter().collect();
    let mut expected = Vec::new();
    as_json::write_answer(&tables, &found.report, &mut expected).unwrap();
    assert_eq!(told, String::from_utf8(expected).unwrap());
    assert!(told.contains("jobs:chunk") && told.contains("3186790"), "{told}");
    let lacking = json!({"start": ["jobs:begin"], "stop": ["jobs:end"]});
    let refused = server.post("/api/v1/jobs", &json!({"kind": "breakdown", "options": {"pairs": lacking}}));
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("`breakdown` needs `start`, `stop` and `keys`"), "{}", refused.text());
}

#[test]
fn jobs_are_told_why_they_fail_and_forgotten() {
    let server = serve();
    let job = ended(&server, &json!({"kind": "sched", "options": {"top": 3}}));
    assert_eq!(
        (&job["state"], &job["failure"]["code"], &job["options"]["top"]),
        (&json!("failed"), &json!("traces"), &json!(3))
    );
    let place = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
    assert_eq!(server.get(&format!("{place}/result")).status, 409);
    assert_eq!(server.ask("DELETE", &place, &[], "").status, 204);
    assert_eq!(server.get(&place).status, 404);
    assert_eq!(server.ask("DELETE", &place, &[], "").status, 404);
}

#[test]
fn analyses_say_what_they_answer() {
    let all = serve().get("/api/v1/analyses").json();
    let cpu = &all["analyses"][0];
    assert_eq!(
        (&cpu["kind"], &cpu["understands"]["by"]),
        (&json!("cpu"), &json!(["cpu", "thread", "process", "application"]))
    );
    assert_eq!(cpu["tables"][0]["columns"][0]["name"], "cpu");
}

#[test]
fn expressions_are_checked_while_they_are_typed() {
    let server = serve();
    let check = |text: &str| server.post("/api/v1/filter/check", &json!({"filter": text})).json();
    let good = check("event.name == \"*\"");
    assert_eq!((&good["valid"], &good["problems"]), (&json!(true), &json!([])), "{good}");
    let bad = check("\"ä😀\" == x && (");
    assert_eq!(bad["valid"], false);
    let problem = &bad["problems"][0];
    // Two bytes and one unit for the first letter, four bytes and two units for the second.
    let (bytes, units) = (problem["begin"].as_u64().unwrap(), problem["begin_utf16"].as_u64().unwrap());
    assert_eq!(bytes - units, 3, "{problem}");
    let unknown = check("nothing_of_this_name == 1");
    assert_eq!((&unknown["valid"], &unknown["problems"][0]["begin"]), (&json!(false), &json!(0)), "{unknown}");
}
