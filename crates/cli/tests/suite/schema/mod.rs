//! Whether JSON is LAMI 1.0.

mod checker;

use std::path::Path;

use serde_json::Value;

use checker::Checker;

/// What is wrong with an object that is to be `part` of LAMI 1.0: `metadata`, `results`, `error`.
pub fn problems(value: &Value, part: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lami/lami-1.0.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema lies with the tests");
    let root: Value = serde_json::from_str(&text).expect("the schema is JSON");
    Checker::new(&root).problems(value, &root["definitions"][part], part)
}
