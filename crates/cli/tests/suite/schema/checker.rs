//! As much of JSON schema as the tests of this repository need, the server's as well; a word that is not known here is an error.

use serde_json::Value;

/// Compares values with schemas of a document.
pub struct Checker<'s> {
    root: &'s Value,
}

impl<'s> Checker<'s> {
    /// References of schemas lead into this document.
    pub fn new(root: &'s Value) -> Self {
        Self { root }
    }

    /// What is wrong with a value, and where.
    pub fn problems(&self, value: &Value, schema: &Value, place: &str) -> Vec<String> {
        let mut problems = Vec::new();
        self.check(value, schema, place, &mut problems);
        problems
    }

    fn is_good(&self, value: &Value, schema: &Value) -> bool {
        self.problems(value, schema, "").is_empty()
    }

    fn check(&self, value: &Value, schema: &Value, place: &str, problems: &mut Vec<String>) {
        let words = schema.as_object().unwrap_or_else(|| panic!("a schema at {place} is an object"));
        for (word, says) in words {
            self.parts(value, (word, says), schema, place, problems);
            if !self.holds(value, (word, says)) {
                problems.push(format!("{place}: not as `{word}` says: {value}"));
            }
        }
    }

    /// What a word says of the value as a whole.
    fn holds(&self, value: &Value, (word, says): (&str, &Value)) -> bool {
        let list = || says.as_array().map_or(std::slice::from_ref(says), Vec::as_slice);
        let good = || list().iter().filter(|schema| self.is_good(value, schema)).count();
        match word {
            "$ref" | "allOf" | "properties" | "items" | "description" | "format" => true,
            "additionalProperties" => true,
            "type" => list().iter().any(|name| is_of_type(value, name.as_str().expect("types are names"))),
            "const" => value == says,
            "enum" => list().contains(value),
            "required" => list().iter().all(|name| value.get(name.as_str().expect("a name")).is_some()),
            "anyOf" => good() > 0,
            "oneOf" => good() == 1,
            "minProperties" => value.as_object().is_none_or(|all| all.len() as u64 >= says.as_u64().expect("a number")),
            // Bounds are of integers, some of which are beyond what a double tells apart.
            "minimum" => integer(value).zip(integer(says)).is_none_or(|(value, low)| value >= low),
            "maximum" => integer(value).zip(integer(says)).is_none_or(|(value, high)| value <= high),
            other => panic!("the word {other} of JSON schema is not known here"),
        }
    }

    /// What a word says of parts of the value, or in another place.
    fn parts(
        &self,
        value: &Value,
        (word, says): (&str, &Value),
        schema: &Value,
        place: &str,
        problems: &mut Vec<String>,
    ) {
        let members = || value.as_object().into_iter().flatten();
        match word {
            "$ref" => {
                let name = says.as_str().and_then(|name| name.strip_prefix('#')).expect("references are local");
                let target = self.root.pointer(name).unwrap_or_else(|| panic!("{name} leads somewhere"));
                self.check(value, target, place, problems);
            }
            "properties" => {
                for (name, schema) in says.as_object().expect("properties have names") {
                    if let Some(value) = value.get(name) {
                        self.check(value, schema, &format!("{place}/{name}"), problems);
                    }
                }
            }
            "additionalProperties" if says == false => {
                let is_known = |name: &str| schema["properties"].get(name).is_some();
                let unknown = members().filter(|(name, _)| !is_known(name));
                problems.extend(unknown.map(|(name, _)| format!("{place}: {name} is not described")));
            }
            "additionalProperties" => {
                members().for_each(|(name, value)| self.check(value, says, &format!("{place}/{name}"), problems));
            }
            "items" => {
                for (number, value) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(value, says, &format!("{place}/{number}"), problems);
                }
            }
            "allOf" => {
                for schema in says.as_array().expect("schemas") {
                    self.check(value, schema, place, problems);
                }
            }
            _ => {}
        }
    }
}

fn integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
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
