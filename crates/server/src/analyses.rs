//! Which analyses there are, and with what they answer.

use axum::http::Uri;
use axum::response::Response;
use kymo_session::{AnalysisKind, Column, READY, Table, Understood};
use serde_json::{Value, json};

use crate::query::Query;
use crate::refusal::{Refusal, answer};

/// All of them, as a list to choose from.
pub(crate) async fn list(uri: Uri) -> Result<Response, Refusal> {
    Query::new(&uri, &[])?;
    let all: Vec<Value> = READY
        .iter()
        .map(|ready| {
            json!({
                "kind": ready.name, "title": ready.title, "description": ready.description,
                "tables": tables(&ready.kind), "understands": understood(&ready.kind.understood()),
            })
        })
        .collect();
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
fn understood(understood: &Understood) -> Value {
    json!({
        "by": understood.by, "durations": understood.durations, "sizes": understood.sizes, "cpus": understood.cpus,
        "threads": understood.threads, "interrupts": understood.interrupts, "names": understood.names,
    })
}
