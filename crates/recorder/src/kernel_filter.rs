//! Filters of the kernel's events: which events they are about, and where they run.
//!
//! ```text
//! sched_switch when next_prio < 100       events, and an expression that has to be true of each
//! prev_tid == 42                          of all events
//! ```
//!
//! The kernel asks as much of a filter as its own can say, and the recorder asks the rest.

use kymo_filter::{Filter, FilterProblem};
use kymo_schema::glob;
use serde::{Deserialize, Serialize};

/// The word between events and an expression.
const WHEN: &str = "when";

/// A filter of the kernel's events.
#[derive(Clone, Debug)]
pub struct KernelFilter {
    /// Patterns of events; none: all.
    events: Vec<String>,
    /// The expression as it was written, and understood.
    text: String,
    expression: Filter,
}

impl KernelFilter {
    /// Reads words: `EXPR`, or `EVENTS when EXPR`.
    ///
    /// # Errors
    ///
    /// The fault of the expression, and where: lines for people.
    ///
    /// ```
    /// use kymo_recorder::kernel_filter::KernelFilter;
    /// let filter = KernelFilter::parse("sched_switch, irq:* when cpu_id == 3").unwrap();
    /// assert!(filter.is_about("irq_handler_entry", "irq:irq_handler_entry"));
    /// assert!(!filter.is_about("sched_waking", "sched:sched_waking"));
    /// assert!(KernelFilter::parse("next_prio <").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let (events, expression) = split(text);
        let events: Vec<String> = events.split(',').map(|event| event.trim().to_owned()).collect();
        let events = events.into_iter().filter(|event| !event.is_empty()).collect();
        let told = |problems: Vec<FilterProblem>| problems.iter().map(|problem| problem.render(expression)).collect();
        let text = expression.to_owned();
        Ok(Self {
            events,
            text,
            expression: Filter::parse(expression).map_err(|problems| -> String { told(problems) })?,
        })
    }

    /// Whether it is about an event of this name in the trace, and this one of the kernel, `SYSTEM:NAME`. Calls of programs of 32
    /// bits are meant by the names of the others, too: `compat_syscall_entry_open` by `syscall_entry_open`.
    #[must_use]
    pub fn is_about(&self, name: &str, kernel: &str) -> bool {
        let own = kernel.split_once(':').map_or("", |(_, own)| own);
        let native = name.strip_prefix("compat_").unwrap_or(name);
        let takes = |pattern: &str| [name, native, kernel, own].iter().any(|name| glob::matches(pattern, name));
        let (not, wanted): (Vec<&String>, Vec<&String>) = self.events.iter().partition(|event| event.starts_with('!'));
        (wanted.is_empty() || wanted.iter().any(|pattern| takes(pattern)))
            && !not.iter().any(|pattern| takes(&pattern[1..]))
    }

    /// The patterns of its events; none: all.
    #[must_use]
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// The expression.
    #[must_use]
    pub fn expression(&self) -> &Filter {
        &self.expression
    }

    /// The expression as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The events and the expression of words. Before `when` there are patterns of names, or there are no events.
fn split(text: &str) -> (&str, &str) {
    let is_pattern = |letter: char| letter.is_ascii_alphanumeric() || " _:*?!,-[]".contains(letter);
    let places = text.match_indices(WHEN).map(|(at, _)| (&text[..at], &text[at + WHEN.len()..]));
    let is_word = |(before, behind): &(&str, &str)| {
        before.ends_with(char::is_whitespace) && behind.starts_with([' ', '(', '!', '\t', '\n'])
    };
    let mut split = places.filter(is_word).filter(|(before, _)| before.chars().all(is_pattern));
    split.next().unwrap_or(("", text))
}

/// Where the filters of an event run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFilterPlace {
    /// The event, as the kernel names it.
    pub tracepoint: String,
    /// Where.
    pub runs: FilterRuns,
    /// The condition that the kernel asks of each record, as its files `filter` have it.
    pub kernel: Option<String>,
    /// Why the kernel does not ask all of it.
    pub why: Option<String>,
}

/// Where a filter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterRuns {
    /// Nowhere: all of these events are recorded.
    Always,
    /// Nowhere: none of these events is recorded, and the kernel is not asked for them.
    Never,
    /// In the kernel.
    Kernel,
    /// A part in the kernel, and all of it in the recorder.
    Both,
    /// In the recorder: the kernel records all of these events.
    Recorder,
}

impl FilterRuns {
    /// As people read it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Never => "never",
            Self::Kernel => "kernel",
            Self::Both => "kernel+recorder",
            Self::Recorder => "recorder",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_events_and_an_expression() {
        let of = |text| {
            let filter = KernelFilter::parse(text).expect("it is one");
            (filter.events.join(" "), filter.text)
        };
        let parts = |events: &str, text: &str| (events.to_owned(), text.trim().to_owned());
        let of = |text| {
            let (events, text): (String, String) = of(text);
            (events, text.trim().to_owned())
        };
        assert_eq!(of("sched_switch when prev_tid == 1"), parts("sched_switch", "prev_tid == 1"));
        assert_eq!(of("a:b, !c* when (x == 1)"), parts("a:b !c*", "(x == 1)"));
        assert_eq!(of("x == \"a when b\""), parts("", "x == \"a when b\""));
        assert_eq!(of("when_done == 1"), parts("", "when_done == 1"));
        assert_eq!(of("a when b == \"c when d\""), parts("a", "b == \"c when d\""));
        let wrong = KernelFilter::parse("sched_switch when prev_tid ==").expect_err("it has no end");
        assert!(wrong.contains("expected a value"), "{wrong}");
    }

    #[test]
    fn events_are_named_as_in_traces_and_in_the_kernel() {
        let is_about = |text: &str, name, kernel| KernelFilter::parse(text).expect("it is one").is_about(name, kernel);
        assert!(is_about("ret < 0", "syscall_exit_read", "raw_syscalls:sys_exit"));
        assert!(is_about("syscall_exit_* when ret < 0", "syscall_exit_read", "raw_syscalls:sys_exit"));
        assert!(is_about("sys_exit when ret < 0", "syscall_exit_read", "raw_syscalls:sys_exit"));
        assert!(is_about("!sys_enter when ret < 0", "syscall_exit_read", "raw_syscalls:sys_exit"));
        assert!(is_about("syscall_exit_read when ret < 0", "compat_syscall_exit_read", "raw_syscalls:sys_exit"));
        assert!(!is_about("compat_* when ret < 0", "syscall_exit_read", "raw_syscalls:sys_exit"));
        assert!(!is_about("!raw_syscalls:* when ret < 0", "syscall_exit_read", "raw_syscalls:sys_exit"));
    }
}
