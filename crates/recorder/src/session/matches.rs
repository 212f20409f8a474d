//! Events that a trigger could fire at: which of its patterns have matched an event so far, and whether its filter
//! can be true of one. The summary of a session tells the others: programs may be gone by then.

use kymo_filter::{Filter, Verdict, nearest};
use kymo_schema::definition::EventClass;
use kymo_schema::glob;
use serde::{Deserialize, Serialize};

use crate::filters::{ClassFilter, ProgramConstants};
use crate::select::{ProgramCandidate, SelectionRule};

/// Matches of a trigger's patterns and filter with the events of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TriggerMatches {
    /// Patterns that no event has matched, and similar names.
    pub(crate) unmatched: Vec<(String, Vec<String>)>,
    /// The filter may be true of an event that the rule matches.
    is_possible: bool,
    /// Why it is true of none so far.
    never: Option<String>,
    /// How it was understood, for people.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

/// Why a filter is true of no event of a class.
pub(crate) struct Misfit {
    /// For people.
    pub(crate) why: String,
    /// It has a name that the event lacks, or compares text with a number, say.
    pub(crate) is_wrong: bool,
}

impl TriggerMatches {
    pub(crate) fn of(rule: &SelectionRule) -> Self {
        let wanted = rule.events.iter().filter(|pattern| !pattern.starts_with('!'));
        let unmatched = wanted.map(|pattern| (pattern.clone(), Vec::new())).collect();
        Self { unmatched, is_possible: rule.filter.is_none(), ..Self::default() }
    }

    /// Why the filter is true of no event that the rule has matched; `None`: it may be true.
    pub(crate) fn never(&self) -> Option<&str> {
        self.never.as_deref().filter(|_| !self.is_possible)
    }

    /// A program has an event.
    pub(crate) fn sees(
        &mut self,
        rule: &SelectionRule,
        program: &ProgramCandidate<'_>,
        class: &EventClass,
        facts: ProgramConstants<'_>,
    ) {
        if self.unmatched.is_empty() && self.is_possible {
            return;
        }
        let name = class.full_name();
        self.unmatched.retain(|(pattern, _)| !glob::matches(pattern, &name));
        for (pattern, near) in &mut self.unmatched {
            *near = near_names(pattern, near.iter().map(String::as_str).chain([name.as_str()]));
        }
        let Some(text) = rule.filter.as_deref().filter(|_| !self.is_possible) else { return };
        if !rule.takes(program, &name, class.level) {
            return;
        }
        match possible(text, class, facts) {
            Ok(notes) => (self.is_possible, self.notes) = (true, notes),
            Err(misfit) => _ = self.never.get_or_insert(misfit.why),
        }
    }
}

/// Notes about a filter that may be true of events of a class; `Err`: it is never.
pub(crate) fn possible(text: &str, class: &EventClass, facts: ProgramConstants<'_>) -> Result<Vec<String>, Misfit> {
    let name = class.full_name();
    let misfit = |lines: String| Misfit { why: format!("{name}: {}", lines.trim_end()), is_wrong: true };
    let filter = Filter::parse(text).and_then(|filter| ClassFilter::new(&filter, class, facts));
    let filter =
        filter.map_err(|problems| misfit(problems.iter().map(|problem| problem.render(text)).collect::<String>()))?;
    if filter.verdict() != Verdict::NeverTrue {
        return Ok(filter.notes().iter().map(|note| note.render(text)).collect());
    }
    let missing: String = filter.missing().iter().map(|missing| missing.render(text)).collect();
    Err(match missing.as_str() {
        "" => Misfit { why: format!("it is true of no event {name}"), is_wrong: false },
        _ => misfit(missing),
    })
}

/// Names like a pattern that matches none: of events, and of their providers.
pub(crate) fn near_names<'n>(pattern: &str, names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
    let providers = names.clone().filter_map(|name| Some(name.split_once(':')?.0));
    let wanted = pattern.trim_end_matches('*').trim_end_matches(':');
    nearest(wanted, names.chain(providers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_schema::definition::{Definition, parse};

    fn class(definition: &str) -> EventClass {
        match parse(definition.as_bytes()) {
            Ok(Definition::Event(class)) => class,
            other => panic!("{other:?}"),
        }
    }

    fn seen(events: &[&str], filter: Option<&str>, classes: &[&str]) -> TriggerMatches {
        let (events, filter) = (events.iter().map(|event| (*event).to_owned()).collect(), filter.map(str::to_owned));
        let rule = SelectionRule { events, filter, ..SelectionRule::default() };
        let program =
            ProgramCandidate { pid: Some(1), own_pid: 1, name: "a", path: "/a", ..ProgramCandidate::default() };
        let mut matches = TriggerMatches::of(&rule);
        classes.iter().for_each(|it| matches.sees(&rule, &program, &class(it), ProgramConstants::default()));
        matches
    }

    const SENT: &str = "event net:sent\nfield u16 port\n";
    const LOST: &str = "event net:lost\nfield text port\n";

    #[test]
    fn patterns_without_an_event_have_similar_names() {
        let unmatched = |events: &[&str], classes: &[&str]| seen(events, None, classes).unmatched;
        let none = Vec::new;
        assert_eq!(
            unmatched(&["net:snet", "!net:lost", "nte:*"], &[]),
            [("net:snet".to_owned(), none()), ("nte:*".to_owned(), none())]
        );
        assert_eq!(
            unmatched(&["net:snet", "nte:*", "net:s*"], &[LOST, SENT]),
            [("net:snet".to_owned(), vec!["net:sent".to_owned()]), ("nte:*".to_owned(), vec!["net".to_owned()])]
        );
    }

    #[test]
    fn a_filter_is_told_that_is_true_of_no_event() {
        let never = |filter: &str, classes: &[&str]| seen(&["net:*"], Some(filter), classes).never().map(str::to_owned);
        assert_eq!(never("prot == 1", &[]), None, "no event is known");
        assert_eq!(never("port == 1", &[LOST, SENT]), None, "it is a number in one of them");
        assert!(seen(&["net:*"], Some("port > 1us"), &[SENT]).notes[0].starts_with("`port` has no unit"));
        let why = never("port == 1", &[LOST]).expect("it is text");
        assert!(why.starts_with("net:lost: `port` is text and `1` is a number: they cannot be compared\n"), "{why}");
        let why = never("prot == 1", &[SENT]).expect("there is no such field");
        assert!(why.starts_with("net:sent: there is no `prot`") && why.contains("did you mean `port`?"), "{why}");
        assert_eq!(never("port > 70000", &[SENT]).as_deref(), Some("it is true of no event net:sent"));
    }
}
