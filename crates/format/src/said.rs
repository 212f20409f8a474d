//! Event properties that CTF 1.8 states and CTF 2 leaves to attributes: log levels and EMF URIs.
//!
//! Babeltrace writes them as `{"babeltrace.org,2020": {"log-level": "warning", "emf-uri": "..."}}`; so do we.

use kymo_schema::level::{LEVELS, LogLevel};
use serde_json::{Map, Value, json};

use crate::model::{Attributes, EventRecordClass};

const NAMESPACE: &str = "babeltrace.org,2020";

/// The log level in attributes: a name, or a number for those without.
pub(crate) fn log_level(attributes: Option<&Attributes>) -> Option<i64> {
    match attributes?.get(NAMESPACE)?.get("log-level")? {
        Value::String(name) => LEVELS.iter().position(|known| known.attribute == name).map(|level| level as i64),
        other => other.as_i64(),
    }
}

/// The EMF URI in attributes.
pub(crate) fn emf_uri(attributes: Option<&Attributes>) -> Option<String> {
    attributes?.get(NAMESPACE)?.get("emf-uri")?.as_str().map(str::to_owned)
}

impl EventRecordClass {
    /// Writes the log level and the EMF URI into the attributes too, which is where CTF 2 metadata has them.
    pub fn fill_attributes(&mut self) {
        if let Some(level) = self.log_level
            && log_level(self.attributes.as_ref()) != Some(level)
        {
            let name = LogLevel::of(level).map(|level| level.attribute);
            put(&mut self.attributes, "log-level", name.map_or_else(|| json!(level), |name| json!(name)));
        }
        if self.emf_uri.is_some() && emf_uri(self.attributes.as_ref()) != self.emf_uri {
            put(&mut self.attributes, "emf-uri", json!(self.emf_uri));
        }
    }
}

fn put(attributes: &mut Option<Attributes>, name: &str, value: Value) {
    let all = object(attributes.get_or_insert_with(|| Value::Object(Map::new())));
    let own = object(all.entry(NAMESPACE).or_insert_with(|| Value::Object(Map::new())));
    own.insert(name.to_owned(), value);
}

/// The object that a value is, or becomes.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made above")
}
