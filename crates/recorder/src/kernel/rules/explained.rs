//! The programs that rules would have in the kernel; nothing is loaded.

use kymo_probe::tracefs::TraceFs;
use kymo_probe::watch::{WatchPath, WatchableEvents};
use serde::Serialize;

use super::asked::{asked, names_in_traces};
use crate::rule::RuleOptions;
use crate::watch::EventList;
use crate::watch::words::thread;

/// A rule, and its programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedRule {
    /// Its name.
    pub rule: String,
    /// Its words.
    pub words: String,
    /// What it gets wrong, as far as that is known before any event.
    pub warning: Option<String>,
    /// Its programs.
    pub programs: Vec<RuleProgram>,
}

/// A program at an event of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleProgram {
    /// The event, as `SYSTEM:NAME`.
    pub tracepoint: String,
    /// `begins`, `ends`, or `asks`: it keeps events, or lets them go.
    pub does: &'static str,
    /// Fields that make the key; none: nothing begins.
    pub key: Vec<String>,
    /// The field whose values have limits of their own.
    pub per: Option<String>,
    /// Names, or patterns of names, of kept events in the trace.
    pub events: Vec<String>,
    /// Fields of kept events in the trace, beside the thread.
    pub records: Vec<String>,
    /// Fields that keys and conditions may name.
    pub fields: Vec<String>,
}

/// Tells which programs rules would have in the kernel, with the fields that they may ask.
///
/// # Errors
///
/// The rules cannot be about this kernel's events; in sentences.
pub fn kernel_rule_programs(rules: &[RuleOptions]) -> Result<Vec<ExplainedRule>, String> {
    let known = TraceFs::find().and_then(|fs| fs.events()).ok();
    let all = asked(rules, known.as_deref(), || Ok(Vec::new()))?;
    let types = WatchableEvents::of_this_kernel()?;
    let list = EventList::new(&types, known);
    let explained = |(rule, request): (&RuleOptions, &kymo_probe::rules::KernelRuleRequest)| {
        let beside = |does: &'static str, event: &str, keys: &[WatchPath]| {
            let fields = list.fields(event, false).map(|fields| fields.names()).unwrap_or_default();
            let (key, tracepoint) = (keys.iter().map(shown).collect(), list.whole(event));
            RuleProgram { tracepoint, does, key, per: None, events: Vec::new(), records: Vec::new(), fields }
        };
        let begins = request.begins.iter().map(|begin| beside("begins", &begin.name, &begin.keys));
        let ends = request.ends.iter().map(|end| beside("ends", &end.name, &end.keys));
        let is_timed = !request.begins.is_empty();
        let asks = request.events.iter().map(|event| RuleProgram {
            tracepoint: event.name.clone(),
            does: "asks",
            key: event.since.iter().map(shown).collect(),
            per: event.kind.as_ref().map(shown),
            events: names_in_traces(&event.name),
            records: event.fields.iter().map(shown).collect(),
            fields: list.fields(&event.name, is_timed).map(|fields| fields.names()).unwrap_or_default(),
        });
        let programs = begins.chain(ends).chain(asks).collect();
        ExplainedRule { rule: rule.name.clone(), words: rule.words(), warning: rule.key_note(), programs }
    };
    Ok(all.options.iter().zip(&all.requests).map(explained).collect())
}

/// A field in words.
fn shown(path: &WatchPath) -> String {
    if *path == thread().0 { "thread".to_owned() } else { path.to_string() }
}
