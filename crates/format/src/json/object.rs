//! A JSON object with properties that are asked for one by one; a property that is never asked for
//! is an error.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Range;

use crate::json::problem::JsonProblem;
use crate::json::reader::{JsonKind, JsonMember, JsonValue};
use crate::model::{Attributes, IntegerRange};

pub(crate) type Span = Range<usize>;
pub(crate) type Result<T> = std::result::Result<T, (Span, JsonProblem)>;

/// An object being read.
pub(crate) struct JsonObject<'v> {
    pub(crate) span: Span,
    /// The kind of object, for messages.
    pub(crate) what: String,
    members: &'v [JsonMember],
    asked: RefCell<Vec<&'static str>>,
}

impl<'v> JsonObject<'v> {
    pub(crate) fn new(value: &'v JsonValue, what: &str) -> Result<Self> {
        let JsonKind::Object(members) = &value.kind else { return wrong(value, what, "an object") };
        let mut names = HashSet::with_capacity(members.len());
        for member in members {
            if !names.insert(member.name.as_str()) {
                return Err((member.name_span.clone(), JsonProblem::Twice(format!("the property `{}`", member.name))));
            }
        }
        Ok(Self { span: value.span.clone(), what: what.to_owned(), members, asked: RefCell::default() })
    }

    /// A property that may be absent.
    pub(crate) fn get(&self, name: &'static str) -> Option<&'v JsonValue> {
        self.asked.borrow_mut().push(name);
        self.members.iter().find(|member| member.name == name).map(|member| &member.value)
    }

    /// A property that must be there.
    pub(crate) fn need(&self, name: &'static str) -> Result<&'v JsonValue> {
        let missing = || (self.span.clone(), JsonProblem::Missing { what: self.what.clone(), property: name });
        self.get(name).ok_or_else(missing)
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>> {
        self.get(name).map(|value| text(value, name)).transpose()
    }

    pub(crate) fn unsigned(&self, name: &'static str) -> Result<Option<u64>> {
        self.get(name).map(|value| unsigned(value, name)).transpose()
    }

    /// Attributes, which anything may have. The release candidate called them `user-attributes`.
    pub(crate) fn attributes(&self) -> Result<Option<Attributes>> {
        let Some(value) = self.get("attributes").or_else(|| self.get("user-attributes")) else { return Ok(None) };
        match &value.kind {
            JsonKind::Object(_) => Ok(Some(value.to_plain())),
            _ => wrong(value, "attributes", "an object"),
        }
    }

    /// An error for each property that was not asked for.
    pub(crate) fn finish(&self) -> Result<()> {
        if let Some(extensions) = self.get("extensions") {
            let extensions = JsonObject::new(extensions, "extensions")?;
            if let Some(namespace) = extensions.members.first() {
                let names = JsonObject::new(&namespace.value, "extensions")?;
                let first = names.members.first().map_or(&namespace.name, |member| &member.name);
                return Err((namespace.name_span.clone(), JsonProblem::Extension(first.clone())));
            }
        }
        let asked = self.asked.borrow();
        match self.members.iter().find(|member| !asked.contains(&member.name.as_str())) {
            None => Ok(()),
            Some(member) => {
                let problem = JsonProblem::UnknownProperty { what: self.what.clone(), property: member.name.clone() };
                Err((member.name_span.clone(), problem))
            }
        }
    }

    pub(crate) fn members(&self) -> &'v [JsonMember] {
        self.members
    }
}

pub(crate) fn wrong<T>(value: &JsonValue, property: &str, expected: &'static str) -> Result<T> {
    Err((value.span.clone(), JsonProblem::Value { property: property.to_owned(), expected }))
}

pub(crate) fn text(value: &JsonValue, property: &str) -> Result<String> {
    match &value.kind {
        JsonKind::Text(text) => Ok(text.clone()),
        _ => wrong(value, property, "a string"),
    }
}

pub(crate) fn integer(value: &JsonValue, property: &str) -> Result<i128> {
    match value.kind {
        JsonKind::Integer(number) => Ok(number),
        _ => wrong(value, property, "an integer"),
    }
}

pub(crate) fn unsigned(value: &JsonValue, property: &str) -> Result<u64> {
    let number = integer(value, property)?;
    u64::try_from(number).or_else(|_| wrong(value, property, "an integer from 0 to 2^64 - 1"))
}

pub(crate) fn array<'v>(value: &'v JsonValue, property: &str) -> Result<&'v [JsonValue]> {
    match &value.kind {
        JsonKind::Array(values) => Ok(values),
        _ => wrong(value, property, "an array"),
    }
}

/// `[[1, 3], [7, 7]]`
pub(crate) fn ranges(value: &JsonValue, property: &str) -> Result<Vec<IntegerRange>> {
    let values = array(value, property)?;
    if values.is_empty() {
        return wrong(value, property, "at least one range");
    }
    values.iter().map(|range| one_range(range, property)).collect()
}

fn one_range(value: &JsonValue, property: &str) -> Result<IntegerRange> {
    let [lower, upper] = array(value, property)? else { return wrong(value, property, "ranges of two integers") };
    let (lower, upper) = (integer(lower, property)?, integer(upper, property)?);
    if lower > upper {
        return wrong(value, property, "ranges that do not end before they begin");
    }
    Ok(IntegerRange { lower, upper })
}
