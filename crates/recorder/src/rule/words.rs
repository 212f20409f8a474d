//! Rules in words, as `--only` takes them.
//!
//! ```text
//! slow: http:end over 5ms since http:begin by id per route
//! name patterns  question                  key   kinds
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use kymo_filter::{Dimension, nearest, quantity};

use crate::rule::{EVENTS_MAX, KEYS_MAX, KeyField, RuleLimit, RuleOptions, RuleQuestion, RuleTest};
use crate::words::{self, OptionWords, PlacedWord, WordsProblem, WordsProblemKind};

/// Words that begin a question.
const QUESTIONS: [&str; 3] = ["over", "every", "at"];
const QUESTIONS_EXPECTED: &str = "`over LIMIT since EVENT`, `every N` or `at most N in TIME`";
const KEYS_EXPECTED: &str = "`by FIELD`, `per FIELD`, `with begins` or the end";

impl RuleOptions {
    /// A rule in words: `[NAME:] GLOB[,GLOB...] over LIMIT since GLOB[,GLOB...]`, `... every N`, or `... at most N in TIME`, each
    /// with `by FIELD[,FIELD...]`; the first one also with `per FIELD` and `with begins`. Without a name it is called as its events are.
    ///
    /// # Errors
    ///
    /// Which word is wrong.
    ///
    /// ```
    /// use kymo_recorder::rule::{RuleLimit, RuleOptions, RuleTest};
    /// let rule = RuleOptions::parse("slow: http:end over 5ms since http:begin by id").unwrap();
    /// assert_eq!(rule.name, "slow");
    /// assert!(matches!(rule.asks.test, RuleTest::Over { limit: RuleLimit::Time(5_000_000), .. }));
    /// ```
    pub fn parse(text: &str) -> Result<Self, WordsProblem> {
        parse(text).map(|(rule, _)| rule)
    }

    /// Several rules: those without a name get one that no other has.
    ///
    /// # Errors
    ///
    /// The number of the text that is none, and which of its words is wrong.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, (usize, WordsProblem)> {
        let mut all: Vec<Self> = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let (mut rule, name) = parse(text).map_err(|problem| (number, problem))?;
            let known: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
            rule.name = words::free_name(&rule.name, name, &known).map_err(|problem| (number, problem))?;
            all.push(rule);
        }
        Ok(all)
    }
}

/// A rule, and the place of its name, if it has one.
fn parse(text: &str) -> Result<(RuleOptions, Option<Range<usize>>), WordsProblem> {
    let mut words = OptionWords::of(text);
    let name = name(&mut words)?;
    let place = words.peek();
    let events = words::patterns(&mut words, &QUESTIONS).map_err(of_kernel)?;
    let asks = question(&mut words)?;
    if let Some(other) = words.take() {
        let (expected, known) = match asks.test {
            RuleTest::Over { .. } => (KEYS_EXPECTED, &["by", "per", "with"][..]),
            _ => ("`by FIELD` or the end", &["by"][..]),
        };
        let help = match other.text {
            "per" => Some("kinds are those of `over`; `by FIELD` tells all values apart".to_owned()),
            "with" => Some("only `over` has events that begin".to_owned()),
            text => nearest(text, known.iter().copied()).first().map(|near| format!("did you mean `{near}`?")),
        };
        return Err(words.expected(expected, Some(&other), help));
    }
    let (name, span) = name.map_or_else(|| (plain(&events), None), |name| (name.text.to_owned(), Some(name.span)));
    let rule = RuleOptions { name, events, asks, set: None, limits: BTreeMap::new(), condition: None };
    match place.filter(|_| rule.is_all_begins()) {
        Some(place) => Err(place.problem(WordsProblemKind::Begins)),
        None => Ok((rule, span)),
    }
}

/// Events of the kernel may have no provider.
fn of_kernel(problem: WordsProblem) -> WordsProblem {
    let kind = match problem.kind {
        WordsProblemKind::Pattern(why) => WordsProblemKind::RulePattern(why),
        kind => kind,
    };
    WordsProblem { kind, ..problem }
}

/// The name, with a colon behind it.
pub(crate) fn name<'t>(words: &mut OptionWords<'t>) -> Result<Option<PlacedWord<'t>>, WordsProblem> {
    let Some(first) = words.peek().filter(|word| word.text.ends_with(':')) else { return Ok(None) };
    words.take();
    let (text, begin) = (first.text.trim_end_matches(':'), first.span.start);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match text.len() {
        1..=64 if text.bytes().all(is_plain) => Ok(Some(PlacedWord { text, span: begin..begin + text.len() })),
        _ => Err(first.problem(WordsProblemKind::Name)),
    }
}

/// A question. The first word that does not belong to it stays.
pub(crate) fn question(words: &mut OptionWords<'_>) -> Result<RuleQuestion, WordsProblem> {
    let first = words.take();
    let mut test = match first.as_ref().map(|word| word.text) {
        Some("over") => {
            let limit = limit(words)?;
            follows(words, "since", "`since EVENT`, where the time begins")?;
            RuleTest::Over {
                limit,
                since: words::patterns(words, &["by", "per", "with"])?,
                per: None,
                with_begins: false,
            }
        }
        Some("every") => RuleTest::Every(words::count(words, u32::MAX)?),
        Some("at") => {
            let _ = words.next_if("most");
            let events = words::count(words, EVENTS_MAX)?;
            follows(words, "in", "`in TIME`")?;
            RuleTest::AtMost { events, ns: words::time(words)? }
        }
        found => {
            let near = nearest(found.unwrap_or_default(), QUESTIONS);
            let help = near.first().map(|near| format!("did you mean `{near}`?"));
            return Err(words.expected(QUESTIONS_EXPECTED, first.as_ref(), help));
        }
    };
    let mut keys = Vec::new();
    loop {
        if words.next_if("by").is_some() {
            let Some(fields) = words.take() else { return Err(words.expected("a field, or `thread`", None, None)) };
            keys.extend(fields.text.split(',').map(key));
            if keys.len() > KEYS_MAX {
                return Err(fields.problem(WordsProblemKind::ManyFields(KEYS_MAX)));
            }
        } else if let RuleTest::Over { per, .. } = &mut test
            && words.next_if("per").is_some()
        {
            let Some(field) = words.take() else { return Err(words.expected("a field", None, None)) };
            *per = Some(field.text.to_owned());
        } else if let RuleTest::Over { with_begins, .. } = &mut test
            && words.next_if("with").is_some()
        {
            follows(words, "begins", "`begins`")?;
            *with_begins = true;
        } else {
            break;
        }
    }
    // The events of one thread are one behind the other.
    if keys.is_empty() && matches!(test, RuleTest::Over { .. }) {
        keys.push(KeyField::Thread);
    }
    Ok(RuleQuestion { test, keys })
}

fn follows(words: &mut OptionWords<'_>, word: &str, expected: &'static str) -> Result<(), WordsProblem> {
    match words.take() {
        Some(found) if found.text == word => Ok(()),
        other => Err(words.expected(expected, other.as_ref(), None)),
    }
}

pub(crate) fn limit(words: &mut OptionWords<'_>) -> Result<RuleLimit, WordsProblem> {
    let Some(word) = words.take() else {
        return Err(words.expected("a limit, such as `5ms` or `p99`", None, None));
    };
    limit_of(word.text).ok_or_else(|| word.problem(WordsProblemKind::Limit))
}

fn limit_of(text: &str) -> Option<RuleLimit> {
    match text.strip_prefix('p').map(str::parse::<f64>) {
        Some(Ok(part)) if part > 0.0 && part < 100.0 => {
            let millionths = part * 10_000.0;
            let is_whole = (millionths - millionths.round()).abs() < 1e-6;
            is_whole.then_some(RuleLimit::Percentile(millionths.round() as u32))
        }
        Some(_) => None,
        None => quantity(text, Dimension::Time, None).filter(|nanos| *nanos > 0).map(RuleLimit::Time),
    }
}

/// A limit that is set while a rule is asked.
pub(super) fn new_limit(text: &str, test: &RuleTest) -> Result<u64, String> {
    let events = || text.parse::<u32>().ok().filter(|events| *events > 0).map(u64::from);
    match test {
        RuleTest::Over { .. } => match limit_of(text) {
            Some(RuleLimit::Time(ns)) => Ok(ns),
            Some(RuleLimit::Percentile(_)) => {
                Err("a percentile belongs to the words of a rule; `--reset` sets it again".to_owned())
            }
            None => Err(format!(
                "`{text}` is no time: a number of at least 1ns and one of ns, us, ms, s, min, h, d, such as `1.5ms`"
            )),
        },
        RuleTest::OfKernel { .. } => match text {
            "open" => Ok(0),
            "closed" => Ok(1),
            _ => Err(format!("`{text}` is neither `open` nor `closed`: the rule has no other limit")),
        },
        RuleTest::Program { .. } => Err("a user's program has no limit: its maps are its own".to_owned()),
        RuleTest::Every(_) => events().ok_or_else(|| format!("`{text}` is no number of events")),
        RuleTest::AtMost { .. } => {
            let events = events().filter(|events| *events <= EVENTS_MAX.into());
            events.ok_or_else(|| format!("`{text}` is no number of events from 1 to {EVENTS_MAX}"))
        }
    }
}

pub(crate) fn key(word: &str) -> KeyField {
    match word.split_once('=') {
        _ if word == "thread" => KeyField::Thread,
        Some((end, begin)) => KeyField::Field { end: end.to_owned(), begin: begin.to_owned() },
        None => KeyField::Field { end: word.to_owned(), begin: word.to_owned() },
    }
}

/// A name that is as like the first pattern as names can be.
pub(crate) fn plain(patterns: &[String]) -> String {
    let wanted = patterns.iter().find(|pattern| !pattern.starts_with('!'));
    let event = wanted.and_then(|pattern| pattern.rsplit(':').next()).unwrap_or_default();
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || "-_.".contains(*char);
    let name: String = event.chars().filter(is_plain).take(64).collect();
    if name.is_empty() { "rule".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_words() {
        for (text, name, again) in [
            ("slow: a:end over 5ms since a:begin by id", "slow", "a:end over 5ms since a:begin by id"),
            (
                "a:end over p99.9 since a:begin, b:* per route",
                "end",
                "a:end over p99.9 since a:begin,b:* by thread per route",
            ),
            (
                "a:end,!a:end_* over 1500ns since a:begin by id=request,thread",
                "end",
                "a:end,!a:end_* over 1500ns since a:begin by id=request,thread",
            ),
            ("a:* every 100", "rule", "a:* every 100"),
            ("!a:b every 100", "rule", "!a:b every 100"),
            ("a:end over 1s since a:begin with begins", "end", "a:end over 1s since a:begin by thread with begins"),
            ("a:x_* every 100 by port", "x_", "a:x_* every 100 by port"),
            ("a:x at most 10 in 1s by port,thread", "x", "a:x at most 10 in 1s by port,thread"),
            ("a:x at 10 in 90s", "x", "a:x at most 10 in 90s"),
        ] {
            let rule = RuleOptions::parse(text).unwrap_or_else(|problem| panic!("{}", problem.render(text)));
            assert_eq!((rule.name.as_str(), rule.words().as_str()), (name, again), "{text}");
            assert_eq!(RuleOptions::parse(&format!("{}: {again}", rule.name)), Ok(rule), "{again}");
        }
        let texts = ["a:b every 2", "a:b every 3"].map(str::to_owned);
        let names = RuleOptions::parse_all(&texts).map(|all| all.into_iter().map(|rule| rule.name).collect::<Vec<_>>());
        assert_eq!(names, Ok(vec!["b".to_owned(), "b-2".to_owned()]));
    }

    #[test]
    fn each_problem_has_its_place() {
        let texts = [
            "slow:",
            "end over 5ms since a:b",
            "a:end",
            "a:end after 5ms",
            "a:end over",
            "a:end over soon",
            "a:end over p100 since a:b",
            "a:end over 5ms",
            "a:end over 5ms since a:b by",
            "a:end over 5ms since a:b later",
            "a:end every 0",
            "a:end at most 5",
            "a:end at most 70000 in 1s",
            "a:end at most 0 in 1s",
            "a:end over 5 since a:b",
            "a:end over p99.99999 since a:b",
            "a:end over 5ms since a:end,a:b",
            "a:end every 3 with begins",
            "a:end every 3 per route",
            "a:end every 3 by a,b,c,d,e",
            "a/b: a:end every 3",
        ];
        let told = |text: &&str| {
            let problem = RuleOptions::parse(text).expect_err(text);
            format!("--- {text}\n{}", problem.render(text))
        };
        expect_test::expect![[r#"
            --- slow:
            expected an event `PROVIDER:NAME`, found the end
                slow:
                     ^
            --- end over 5ms since a:b
            an event is called PROVIDER:NAME; `end:*` is all of a provider, `*:end` one of this name of any
                end over 5ms since a:b
                ^^^
            help: rules about events of the kernel are those of `kymo record --kernel-only`
            --- a:end
            expected `over LIMIT since EVENT`, `every N` or `at most N in TIME`, found the end
                a:end
                     ^
            --- a:end after 5ms
            expected `over LIMIT since EVENT`, `every N` or `at most N in TIME`, found `after`
                a:end after 5ms
                      ^^^^^
            --- a:end over
            expected a limit, such as `5ms` or `p99`, found the end
                a:end over
                          ^
            --- a:end over soon
            `soon` is no limit
                a:end over soon
                           ^^^^
            help: a limit is a time, such as `5ms`, or a percentile with at most four digits behind the point, such as `p99.9`
            --- a:end over p100 since a:b
            `p100` is no limit
                a:end over p100 since a:b
                           ^^^^
            help: a limit is a time, such as `5ms`, or a percentile with at most four digits behind the point, such as `p99.9`
            --- a:end over 5ms
            expected `since EVENT`, where the time begins, found the end
                a:end over 5ms
                              ^
            --- a:end over 5ms since a:b by
            expected a field, or `thread`, found the end
                a:end over 5ms since a:b by
                                           ^
            --- a:end over 5ms since a:b later
            expected `by FIELD`, `per FIELD`, `with begins` or the end, found `later`
                a:end over 5ms since a:b later
                                         ^^^^^
            --- a:end every 0
            `0` is no number of events
                a:end every 0
                            ^
            help: a number of events is at least 1, and at most 4294967295
            --- a:end at most 5
            expected `in TIME`, found the end
                a:end at most 5
                               ^
            --- a:end at most 70000 in 1s
            `70000` are too many events
                a:end at most 70000 in 1s
                              ^^^^^
            help: a number of events is at least 1, and at most 65535
            --- a:end at most 0 in 1s
            `0` is no number of events
                a:end at most 0 in 1s
                              ^
            help: a number of events is at least 1, and at most 65535
            --- a:end over 5 since a:b
            `5` has no unit
                a:end over 5 since a:b
                           ^
            help: one of ns, us, ms, s, min, h, d: `5ms`
            --- a:end over p99.99999 since a:b
            `p99.99999` is no limit
                a:end over p99.99999 since a:b
                           ^^^^^^^^^
            help: a limit is a time, such as `5ms`, or a percentile with at most four digits behind the point, such as `p99.9`
            --- a:end over 5ms since a:end,a:b
            all of these events begin
                a:end over 5ms since a:end,a:b
                ^^^^^
            help: the rule is about others, behind them: `http:end over 5ms since http:begin`
            --- a:end every 3 with begins
            expected `by FIELD` or the end, found `with`
                a:end every 3 with begins
                              ^^^^
            help: only `over` has events that begin
            --- a:end every 3 per route
            expected `by FIELD` or the end, found `per`
                a:end every 3 per route
                              ^^^
            help: kinds are those of `over`; `by FIELD` tells all values apart
            --- a:end every 3 by a,b,c,d,e
            `a,b,c,d,e` are too many fields
                a:end every 3 by a,b,c,d,e
                                 ^^^^^^^^^
            help: a key has at most 4
            --- a/b: a:end every 3
            a name has 1 to 64 letters, digits, `-`, `_` and `.`
                a/b: a:end every 3
                ^^^^
            help: it stands before the rest, with a colon: `end: ...`
        "#]]
        .assert_eq(&texts.iter().map(told).collect::<String>());
    }
}
