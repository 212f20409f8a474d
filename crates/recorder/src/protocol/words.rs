//! Describes the effect of a selection change, in sentences that every interface uses.

use crate::protocol::Matched;
use crate::select::StepKind;
use crate::trigger::TriggerStatus;

impl Matched {
    /// The effect of the change, in a sentence.
    #[must_use]
    pub fn sentence(&self, act: &StepKind) -> String {
        let done = match (act, self.events) {
            (StepKind::Enable, 1) => "is recorded",
            (StepKind::Enable, _) => "are recorded",
            (StepKind::Disable, 1) => "is not recorded any more",
            (StepKind::Disable, _) => "are not recorded any more",
            (StepKind::Filter, 1) => "has this filter, where it is recorded",
            (StepKind::Filter, _) => "have this filter, where they are recorded",
        };
        self.told(done)
    }

    /// The events that a new trigger watches, in a sentence.
    #[must_use]
    pub fn trigger_sentence(&self) -> String {
        self.told(if self.events == 1 { "fires the trigger" } else { "fire the trigger" })
    }

    fn told(&self, done: &str) -> String {
        match (self.events, self.all_programs) {
            (0, 0) => "no program runs that records; it holds for those that begin".to_owned(),
            (0, all) => format!("no event of {} matches; it holds for those that come", counted(all, "program")),
            (events, _) => format!("{} of {} {done}", counted(events, "event"), counted(self.programs, "program")),
        }
    }

    /// Patterns that match no event, a sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(pattern, near): &(String, Vec<String>)| {
            let help = near.first().map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!("no event of a program that runs is called `{pattern}`{help}")
        };
        self.unmatched.iter().map(warning).collect()
    }
}

impl TriggerStatus {
    /// Patterns that no event has matched, and an expression that is true of none: sentences, with lines that show the
    /// place.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(pattern, near): &(String, Vec<String>)| {
            let help = near.first().map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!("no event of the session's programs is called `{pattern}`{help}")
        };
        let never = self.never.iter().map(|why| format!("its expression is never true: {why}"));
        self.unmatched.iter().map(warning).chain(never).collect()
    }
}

/// `1 event`, `2,000 events`
fn counted(count: u64, what: &str) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_agree_in_number() {
        let said = |events, programs, act| {
            let matched = Matched { events, programs, all_programs: 2, ..Matched::default() };
            matched.sentence(&act)
        };
        assert_eq!(said(1, 1, StepKind::Enable), "1 event of 1 program is recorded");
        assert_eq!(said(1_234_567, 2, StepKind::Disable), "1,234,567 events of 2 programs are not recorded any more");
        assert_eq!(said(0, 0, StepKind::Filter), "no event of 2 programs matches; it holds for those that come");
        let near = vec![("net:snet".to_owned(), vec!["net:sent".to_owned()]), ("x:*".to_owned(), Vec::new())];
        assert_eq!(
            Matched { unmatched: near, ..Matched::default() }.warnings(),
            [
                "no event of a program that runs is called `net:snet`; did you mean `net:sent`?",
                "no event of a program that runs is called `x:*`"
            ]
        );
    }
}
