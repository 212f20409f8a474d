//! Questions in words, as `kymo watch` takes them.
//!
//! ```text
//! sched:sched_switch when prev_state != 0
//! block_rq_complete over 5ms since block_rq_issue by rq
//! name patterns     limit    name patterns        key    condition
//! ```

use std::ops::Range;

use kymo_filter::{Dimension, Filter, NamePath, NameStep, nearest, quantity};
use kymo_probe::watch::{WatchPath, WatchStep};

use crate::rule::words::plain;
use crate::tracepoints;
use crate::words::{OptionWords, WordsProblem, WordsProblemKind};

/// Words that end a list of names.
const BEHIND_EVENTS: [&str; 3] = ["over", "since", "when"];
const BEHIND_SINCE: [&str; 2] = ["by", "when"];
const CALLS: &str = "syscalls";
/// The end of all calls.
const CALL_EXIT: &str = "raw_syscalls:sys_exit";
/// Patterns of one list at most.
const PATTERNS_MAX: usize = 64;

/// A question.
#[derive(Clone, Debug)]
pub struct WatchQuestion {
    /// Patterns of the events that are counted.
    pub(super) events: Vec<String>,
    /// Events that those end.
    pub(super) since: Option<SinceWords>,
    /// Only if it took longer: nanoseconds.
    pub(super) over: Option<u64>,
    /// Only if this is true.
    pub(super) condition: Option<Filter>,
}

/// Events that begin something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SinceWords {
    pub(super) events: Vec<String>,
    /// Fields of the event that ends it, and of the one that begins it.
    pub(super) keys: Vec<(WatchPath, WatchPath)>,
}

impl WatchQuestion {
    /// A question in words: `EVENTS [[over TIME] since EVENTS [by FIELD[,FIELD]]] [when EXPRESSION]`.
    ///
    /// # Errors
    ///
    /// The problem, with its place underlined.
    ///
    /// ```
    /// use kymo_recorder::watch::WatchQuestion;
    /// assert!(WatchQuestion::parse("sched_switch when prev_state != 0").is_ok());
    /// let problem = WatchQuestion::parse("sys_exit sinc sys_enter").unwrap_err();
    /// assert!(problem.contains("did you mean `since`?"), "{problem}");
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = OptionWords::of(text);
        parse(&mut words).map_err(|problem| match problem {
            QuestionProblem::Words(problem) => problem.render(text),
            QuestionProblem::Told(told) => told,
        })
    }
}

impl WatchQuestion {
    /// A name: that of its first event, or that of all calls.
    pub(super) fn name(&self) -> String {
        if self.since.is_some() && self.events == [CALL_EXIT] { CALLS.to_owned() } else { plain(&self.events) }
    }
}

enum QuestionProblem {
    Words(WordsProblem),
    Told(String),
}

impl From<WordsProblem> for QuestionProblem {
    fn from(problem: WordsProblem) -> Self {
        Self::Words(problem)
    }
}

fn parse(words: &mut OptionWords<'_>) -> Result<WatchQuestion, QuestionProblem> {
    let written = list(words, &BEHIND_EVENTS, "an event, such as `sched_switch`")?;
    let over = match words.next_if("over") {
        Some(_) => Some(limit(words)?),
        None => None,
    };
    let since = match words.next_if("since") {
        Some(_) => {
            let events = list(words, &BEHIND_SINCE, "an event, where the time begins")?;
            let keys = match words.next_if("by") {
                Some(_) => keys(words)?,
                None => vec![thread()],
            };
            Some(SinceWords { events: patterns(&events), keys })
        }
        None => None,
    };
    let condition = match words.next_if("when") {
        Some(word) => Some(condition(words, word.span)?),
        None => None,
    };
    if let Some(other) = words.take() {
        let expected = "`over TIME`, `since EVENT`, `by FIELD`, `when EXPRESSION` or the end";
        let near = nearest(other.text, ["over", "since", "by", "when"]);
        let help = near.first().map(|near| format!("did you mean `{near}`?"));
        return Err(words.expected(expected, Some(&other), help).into());
    }
    // Calls are pairs by nature.
    if since.is_none() && written == [CALLS] {
        let pair = |name: &str| vec![format!("raw_syscalls:{name}")];
        let since = Some(SinceWords { events: pair("sys_enter"), keys: vec![thread()] });
        return Ok(WatchQuestion { events: pair("sys_exit"), since, over, condition });
    }
    if over.is_some() && since.is_none() {
        return Err(words.expected("`since EVENT`, where the time begins", None, None).into());
    }
    Ok(WatchQuestion { events: patterns(&written), since, over, condition })
}

fn patterns(words: &[String]) -> Vec<String> {
    tracepoints::patterns(words.iter().map(String::as_str))
}

/// Names with commas between them, up to one of these words.
pub(crate) fn list(
    words: &mut OptionWords<'_>,
    behind: &[&str],
    expected: &'static str,
) -> Result<Vec<String>, WordsProblem> {
    let mut all = Vec::new();
    let mut is_open = true;
    while let Some(word) = words.peek() {
        let begins = word.text.starts_with(',');
        if behind.contains(&word.text) || !(is_open || begins) || all.len() > PATTERNS_MAX {
            break;
        }
        words.take();
        all.extend(word.text.split(',').filter(|part| !part.is_empty()).map(str::to_owned));
        is_open = word.text.ends_with(',');
    }
    if all.is_empty() {
        let found = words.peek();
        return Err(words.expected(expected, found.as_ref(), None));
    }
    Ok(all)
}

fn limit(words: &mut OptionWords<'_>) -> Result<u64, WordsProblem> {
    let Some(word) = words.take() else { return Err(words.expected("a limit, such as `5ms`", None, None)) };
    let nanos = quantity(word.text, Dimension::Time, None).filter(|nanos| *nanos > 0);
    nanos.ok_or_else(|| word.problem(WordsProblemKind::Limit))
}

fn keys(words: &mut OptionWords<'_>) -> Result<Vec<(WatchPath, WatchPath)>, QuestionProblem> {
    let Some(fields) = words.take() else { return Err(words.expected("a field, or `thread`", None, None).into()) };
    let key = |text: &str| match text.split_once('=') {
        _ if text == "thread" => Ok(thread()),
        Some((end, begin)) => Ok((path(end)?, path(begin)?)),
        None => path(text).map(|path| (path.clone(), path)),
    };
    fields.text.split(',').map(key).collect::<Result<_, _>>().map_err(QuestionProblem::Told)
}

/// The thread that runs.
pub(crate) fn thread() -> (WatchPath, WatchPath) {
    let steps = ["ctx", "tid"].map(|name| WatchStep::Name(name.to_owned())).to_vec();
    let path = WatchPath { is_global: true, steps };
    (path.clone(), path)
}

fn condition(words: &mut OptionWords<'_>, when: Range<usize>) -> Result<Filter, QuestionProblem> {
    let text = words.take_rest();
    if text.is_empty() {
        return Err(WordsProblem { span: when, kind: WordsProblemKind::NoExpression }.into());
    }
    Filter::parse(text)
        .map_err(|problems| QuestionProblem::Told(problems.iter().map(|problem| problem.render(text)).collect()))
}

/// The path that a text is, as expressions have them.
pub(crate) fn path(text: &str) -> Result<WatchPath, String> {
    let none = || format!("`{text}` is no name of a field, such as `next_tid`, `skb->dev->name` or `args[0]`");
    let filter = Filter::parse(&format!("has({text})")).map_err(|_| none())?;
    match &filter.paths()[..] {
        [(path, span)] if span.len() == text.trim().len() + "has()".len() => Ok(of(path)),
        _ => Err(none()),
    }
}

/// The same path, for the kernel.
pub(super) fn of(path: &NamePath) -> WatchPath {
    let step = |step: &NameStep| match step {
        NameStep::Name(name) => WatchStep::Name(name.clone()),
        NameStep::Index(index) => WatchStep::Index(*index),
    };
    WatchPath { is_global: path.is_global, steps: path.steps.iter().map(step).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match WatchQuestion::parse(text) {
            Ok(WatchQuestion { events, since, over, condition }) => {
                let since = since.map(|since| {
                    let keys = since.keys.iter().map(|(end, begin)| format!("{end}={begin}"));
                    format!(" since {} by {}", since.events.join(","), keys.collect::<Vec<_>>().join(","))
                });
                let over = over.map(|nanos| format!(" over {nanos}"));
                let when = condition.map(|filter| format!(" when {}", filter.text()));
                let parts = [over, since, when].map(Option::unwrap_or_default);
                format!("{}{}\n", events.join(","), parts.concat())
            }
            // An empty question is a line of spaces, which sources do not have.
            Err(problem) => problem.lines().map(|line| format!("{}\n", line.trim_end())).collect(),
        }
    }

    #[test]
    fn questions_are_words() {
        let all = [
            "sched_switch",
            "sched:*, !sched_waking when comm == \"a b\"",
            "syscalls",
            "syscalls over 1ms",
            "block_rq_complete since block_rq_issue by rq",
            "sched_switch over 1.5ms since sched_waking by next_tid=tid when next_prio > 3",
            "irq",
            "",
            "a over since b",
            "a over 5ms",
            "a since",
            "a since b by",
            "a since b by x-y",
            "a when",
            "a when x >",
            "a wen x",
        ];
        let text: String = all.iter().map(|text| format!("--- {text}\n{}", shown(text))).collect();
        expect_test::expect![[r#"
            --- sched_switch
            sched_switch
            --- sched:*, !sched_waking when comm == "a b"
            sched:*,!sched_waking when comm == "a b"
            --- syscalls
            raw_syscalls:sys_exit since raw_syscalls:sys_enter by $ctx.tid=$ctx.tid
            --- syscalls over 1ms
            raw_syscalls:sys_exit over 1000000 since raw_syscalls:sys_enter by $ctx.tid=$ctx.tid
            --- block_rq_complete since block_rq_issue by rq
            block_rq_complete since block_rq_issue by rq=rq
            --- sched_switch over 1.5ms since sched_waking by next_tid=tid when next_prio > 3
            sched_switch over 1500000 since sched_waking by next_tid=tid when next_prio > 3
            --- irq
            ?irq:irq_handler_*,?irq:softirq_*
            --- 
            expected an event, such as `sched_switch`, found the end
    
                ^
            --- a over since b
            `since` is no limit
                a over since b
                       ^^^^^
            help: a limit is a time, such as `5ms`, or a percentile with at most four digits behind the point, such as `p99.9`
            --- a over 5ms
            expected `since EVENT`, where the time begins, found the end
                a over 5ms
                          ^
            --- a since
            expected an event, where the time begins, found the end
                a since
                       ^
            --- a since b by
            expected a field, or `thread`, found the end
                a since b by
                            ^
            --- a since b by x-y
            `x-y` is no name of a field, such as `next_tid`, `skb->dev->name` or `args[0]`
            --- a when
            there is no expression behind `when`
                a when
                  ^^^^
            help: `when port == 80`
            --- a when x >
            found the end, expected a value: a field, a number, a text, or `(`
                x >
                   ^
            --- a wen x
            expected `over TIME`, `since EVENT`, `by FIELD`, `when EXPRESSION` or the end, found `wen`
                a wen x
                  ^^^
            help: did you mean `when`?
        "#]].assert_eq(&text);
    }

    #[test]
    fn paths_are_those_of_expressions() {
        for text in ["next_tid", "skb->dev->name", "args[3]", "$ctx.tid", "a.b.c"] {
            let again = path(text).expect("it is one").to_string();
            assert_eq!(again, text.replace("->", "."));
        }
        for text in ["", "a b", "a) || has(b", "1", "a ==", "a)", "(a"] {
            assert!(path(text).is_err(), "{text}");
        }
    }
}
