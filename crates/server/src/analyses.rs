//! The list of analyses, and the tables of their answers.

use axum::http::Uri;
use axum::response::Response;
use kymo_session::{AnalysisEntry, AnalysisKind, Column, SupportedOptions, Table, analyses};
use serde_json::{Value, json};

use crate::query::RequestParameters;
use crate::refusal::{RequestRefusal, answer};

/// All of them, as a list to choose from.
pub(crate) async fn list(uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    let described = |entry: &AnalysisEntry| {
        json!({
            "kind": entry.name, "title": entry.title, "description": format!("{}.", entry.sentence),
            "tables": tables(&entry.kind), "understands": understood(&entry.options, &entry.kind),
        })
    };
    let all: Vec<Value> = analyses().iter().map(described).collect();
    Ok(answer(&json!({"analyses": all})))
}

fn tables(kind: &AnalysisKind) -> Vec<Value> {
    let column = |column: &Column| json!({"name": column.name, "title": column.title, "class": column.class.name(), "unit": column.unit});
    let table = |table: &Table| {
        let columns: Vec<Value> = table.columns.iter().map(column).collect();
        json!({"class": table.class, "title": table.title, "columns": columns})
    };
    kind.tables().tables.iter().map(table).collect()
}

/// Which options would change something.
fn understood(understood: &SupportedOptions, kind: &AnalysisKind) -> Value {
    json!({
        "by": understood.by, "durations": understood.durations, "sizes": understood.sizes, "cpus": understood.cpus,
        "threads": understood.threads, "interrupts": understood.interrupts, "names": understood.names,
        "events": !kind.needs_all_switches(),
    })
}
