//! What the command says, and what its options mean, for a face in another language: one question has one answer, in the
//! same words.

use std::path::PathBuf;

use kymo_session::{Info, Problem, Report};
use serde_json::{Value, json};

use crate::{answer, info};

/// An answer for people and for programs.
pub struct Said {
    /// What the command shows.
    pub text: String,
    /// What it prints with `--json`.
    pub json: String,
}

/// What traces hold.
#[must_use]
pub fn info(info: &Info, paths: &[PathBuf]) -> Said {
    let mut text = Vec::new();
    info::screen(info, paths, &mut text).expect("memory takes all bytes");
    Said { text: String::from_utf8_lossy(&text).into_owned(), json: info::as_json(info).to_string() }
}

/// What traces hold, in a few words.
#[must_use]
pub fn summary(info: &Info) -> String {
    info::summary(info)
}

/// Everything that stands between an answer and the whole truth, as JSON.
#[must_use]
pub fn report(report: &Report) -> String {
    let problem = |problem: &Problem| json!({"place": problem.place, "message": problem.message.trim_end()});
    let mut object: serde_json::Map<String, Value> =
        answer::json::losses(report).map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    object.insert("unreadable".to_owned(), report.unreadable.iter().map(problem).collect());
    object.insert("assumptions".to_owned(), report.assumptions.iter().map(problem).collect());
    Value::Object(object).to_string()
}
