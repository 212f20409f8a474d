//! As much of JSON schema as `tests/lami/lami-1.0.schema.json` needs; a word that is not known here is an error.

use std::path::Path;

use serde_json::Value;

/// What is wrong with an object that is to be `part` of LAMI 1.0: `metadata`, `results`, `error`.
pub fn problems(value: &Value, part: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lami/lami-1.0.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema lies with the tests");
    let root: Value = serde_json::from_str(&text).expect("the schema is JSON");
    let mut problems = Vec::new();
    let checker = Checker { root: &root };
    checker.check(value, &root["definitions"][part], part, &mut problems);
    problems
}

struct Checker<'s> {
    root: &'s Value,
}

impl Checker<'_> {
    fn is_good(&self, value: &Value, schema: &Value) -> bool {
        let mut problems = Vec::new();
        self.check(value, schema, "", &mut problems);
        problems.is_empty()
    }

    fn check(&self, value: &Value, schema: &Value, place: &str, problems: &mut Vec<String>) {
        let words = schema.as_object().unwrap_or_else(|| panic!("a schema at {place} is an object"));
        for (word, says) in words {
            let mut wrong = |what: &str| problems.push(format!("{place}: {what}: {value}"));
            match word.as_str() {
                "$ref" => {
                    let name = says.as_str().and_then(|name| name.strip_prefix("#/")).expect("references are local");
                    let target = self.root.pointer(&format!("/{name}")).expect("references lead somewhere");
                    self.check(value, target, place, problems);
                }
                "type" => {
                    let types = says.as_array().map_or(std::slice::from_ref(says), Vec::as_slice);
                    if !types.iter().any(|name| is_of_type(value, name.as_str().expect("types are names"))) {
                        wrong("not of the type");
                    }
                }
                "const" if value != says => wrong("another constant"),
                "enum" if !says.as_array().expect("values").contains(value) => wrong("not among the values"),
                "const" | "enum" => {}
                "required" => {
                    for name in says.as_array().expect("names") {
                        if value.get(name.as_str().expect("a name")).is_none() {
                            wrong(&format!("without {name}"));
                        }
                    }
                }
                "properties" => {
                    for (name, schema) in says.as_object().expect("properties have names") {
                        if let Some(value) = value.get(name) {
                            self.check(value, schema, &format!("{place}/{name}"), problems);
                        }
                    }
                }
                "additionalProperties" => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        self.check(value, says, &format!("{place}/{name}"), problems);
                    }
                }
                "minProperties" => {
                    if value.as_object().is_some_and(|object| (object.len() as u64) < says.as_u64().expect("a number"))
                    {
                        wrong("too few properties");
                    }
                }
                "items" => {
                    for (number, value) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(value, says, &format!("{place}/{number}"), problems);
                    }
                }
                "anyOf" => {
                    if !says.as_array().expect("schemas").iter().any(|schema| self.is_good(value, schema)) {
                        wrong("none of what it may be");
                    }
                }
                "allOf" => {
                    for schema in says.as_array().expect("schemas") {
                        self.check(value, schema, place, problems);
                    }
                }
                other => panic!("the word {other} of JSON schema is not known here"),
            }
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}
