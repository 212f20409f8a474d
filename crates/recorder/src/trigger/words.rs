//! Triggers in words, as `--trigger` takes them.
//!
//! ```text
//! end: stop on net:lost, net:late after 3 when port == 80
//! name effect  patterns           options      expression: the whole rest
//! ```

use std::ops::Range;

use kymo_filter::{Dimension, nearest, quantity, with_place};
use kymo_schema::glob::event_pattern;

use crate::rule::words as rule;
use crate::select::SelectionRule;
use crate::trigger::{EXCLUDED, TriggerEffect, TriggerOptions, TriggerScope};

/// Why words are no trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerWordsProblem {
    /// The bytes of the text that it is about.
    pub span: Range<usize>,
    /// The problem.
    pub kind: TriggerWordsProblemKind,
}

/// Kinds of problems in the words of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerWordsProblemKind {
    /// Something else is expected there.
    Expected {
        /// It, for people.
        expected: &'static str,
        /// The word there; `None`: the end.
        found: Option<String>,
        /// How to write it.
        help: Option<String>,
    },
    /// A pattern is none, for this reason.
    Pattern(String),
    /// There is nothing between two commas, or behind the last one.
    NoPattern,
    /// A time is none, or is 0.
    Time,
    /// A number of events is none, or is 0.
    Count,
    /// An option stands there for the second time.
    Twice(String),
    /// There is nothing behind `when`.
    NoExpression,
    /// `for` of a trigger that does not start.
    ForWithoutStart,
    /// `every` of a trigger that does not repeat.
    EveryWithoutRepeat,
    /// The name is none.
    Name,
    /// Another one has the name.
    NameTaken,
    /// A limit is none.
    Limit,
    /// More events than these.
    Many(u32),
    /// More fields than these.
    ManyFields(usize),
    /// Options of a trigger that exclude each other.
    Excluded(&'static str),
}

/// Words that may stand behind the patterns.
const OPTIONS: [&str; 8] = ["over", "after", "last", "for", "repeat", "every", "in", "when"];
const OPTIONS_EXPECTED: &str =
    "`over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`";
/// Words that others use for `when`.
const CONDITIONS: [&str; 4] = ["if", "where", "filter", "unless"];

impl TriggerWordsProblem {
    /// The problem for people: a sentence, the text with the place underlined, and how to write it.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        use TriggerWordsProblemKind as Kind;
        let found = &text[self.span.clone()];
        let (message, help) = match &self.kind {
            Kind::Expected { expected, found, help } => {
                let found = found.as_ref().map_or("the end".to_owned(), |found| format!("`{found}`"));
                (format!("expected {expected}, found {found}"), help.clone())
            }
            Kind::Pattern(why) => (why.clone(), None),
            Kind::NoPattern => {
                ("there is no event at this comma".to_owned(), Some("`stop on net:lost,net:late`".to_owned()))
            }
            Kind::Time if quantity(found, Dimension::Time, Some(1)) == Some(0) => {
                ("a time is more than 0".to_owned(), Some("leave the option out, or write `1ms`".to_owned()))
            }
            Kind::Time => (
                format!("`{found}` is no time"),
                Some("a duration is a number and one of ns, us, ms, s, min, h, d: `1.5ms`".to_owned()),
            ),
            Kind::Count => (
                format!("`{found}` is no number of events"),
                Some(format!("a number of events is at least 1, and at most {}", u32::MAX)),
            ),
            Kind::Twice(word) => {
                (format!("`{word}` stands here for the second time"), Some("leave one out".to_owned()))
            }
            Kind::NoExpression => {
                ("there is no expression behind `when`".to_owned(), Some("`when port == 80`".to_owned()))
            }
            Kind::ForWithoutStart => (
                "only a trigger that starts can say for how long".to_owned(),
                Some("`start on bench:begin for 5s` stops after that time".to_owned()),
            ),
            Kind::EveryWithoutRepeat => (
                "only a trigger that repeats has a least time between two firings".to_owned(),
                Some("`repeat every 1min`".to_owned()),
            ),
            Kind::Name => (
                "a name has 1 to 64 letters, digits, `-`, `_` and `.`".to_owned(),
                Some("it stands before the rest, with a colon: `end: ...`".to_owned()),
            ),
            Kind::NameTaken => (format!("another one is called `{found}`"), Some("names differ".to_owned())),
            Kind::Limit => {
                let help = "a limit is a time, such as `5ms`, or a percentile, such as `p99` or `p99.9`";
                (format!("`{found}` is no limit"), Some(help.to_owned()))
            }
            Kind::Many(most) => (format!("`{found}` events are too many"), Some(format!("at most {most}"))),
            Kind::ManyFields(most) => {
                (format!("`{found}` are too many fields"), Some(format!("a key has at most {most}")))
            }
            Kind::Excluded(why) => ((*why).to_owned(), None),
        };
        with_place(&message, text, &self.span, help.as_deref())
    }
}

/// A word, and its bytes of the text.
#[derive(Clone, Debug)]
pub(crate) struct PlacedWord<'t> {
    pub(crate) text: &'t str,
    pub(crate) span: Range<usize>,
}

/// The words that are not read yet.
pub(crate) struct TriggerWords<'t> {
    text: &'t str,
    /// Where the next one may begin.
    at: usize,
}

impl<'t> TriggerWords<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The next word, if it is this one.
    pub(crate) fn next_if(&mut self, wanted: &str) -> Option<PlacedWord<'t>> {
        self.peek().filter(|word| word.text == wanted)?;
        self.take()
    }

    pub(crate) fn peek(&self) -> Option<PlacedWord<'t>> {
        let rest = &self.text[self.at..];
        let begin = self.at + (rest.len() - rest.trim_start().len());
        let text = self.text[begin..].split(char::is_whitespace).next().filter(|word| !word.is_empty())?;
        Some(PlacedWord { text, span: begin..begin + text.len() })
    }

    pub(crate) fn take(&mut self) -> Option<PlacedWord<'t>> {
        let word = self.peek()?;
        self.at = word.span.end;
        Some(word)
    }

    /// The rest of the text.
    fn take_rest(&mut self) -> &'t str {
        let rest = self.text[self.at..].trim();
        self.at = self.text.len();
        rest
    }

    /// Something else was expected than this word.
    pub(crate) fn expected(
        &self,
        expected: &'static str,
        found: Option<&PlacedWord<'t>>,
        help: Option<String>,
    ) -> TriggerWordsProblem {
        let end = self.text.trim_end().len();
        let span = found.map_or(end..end, |found| found.span.clone());
        let found = found.map(|found| found.text.to_owned());
        TriggerWordsProblem { span, kind: TriggerWordsProblemKind::Expected { expected, found, help } }
    }
}

impl PlacedWord<'_> {
    pub(crate) fn problem(&self, kind: TriggerWordsProblemKind) -> TriggerWordsProblem {
        TriggerWordsProblem { span: self.span.clone(), kind }
    }
}

impl TriggerOptions {
    /// A trigger in words: `[NAME:] EFFECT on GLOB[,GLOB...] [over LIMIT since GLOB[,GLOB...] [by FIELD]] [after
    /// COUNT] [last COUNT] [for TIME] [repeat [every TIME]] [in program] [when EXPR]`. Without a name it has that of its effect.
    ///
    /// # Errors
    ///
    /// Which word is wrong.
    ///
    /// ```
    /// use kymo_recorder::trigger::{TriggerEffect, TriggerOptions};
    /// let trigger = TriggerOptions::parse("end: stop on net:lost after 3 when port == 80").unwrap();
    /// assert_eq!((trigger.name.as_str(), trigger.effect, trigger.after), ("end", TriggerEffect::Stop, Some(3)));
    /// ```
    pub fn parse(text: &str) -> Result<Self, TriggerWordsProblem> {
        parse(text).map(|(trigger, _)| trigger)
    }

    /// Several triggers: those without a name get one that no other has.
    ///
    /// # Errors
    ///
    /// The number of the text that is none, and which of its words is wrong.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, (usize, TriggerWordsProblem)> {
        let mut all: Vec<Self> = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let (mut trigger, name) = parse(text).map_err(|problem| (number, problem))?;
            let known: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
            trigger.name = free_name(&trigger.name, name, &known).map_err(|problem| (number, problem))?;
            all.push(trigger);
        }
        Ok(all)
    }
}

/// The name of one more: one that others do not have. A name that stands in the text, at this place, is that.
pub(crate) fn free_name(
    name: &str,
    place: Option<Range<usize>>,
    known: &[&str],
) -> Result<String, TriggerWordsProblem> {
    match place {
        Some(span) if known.contains(&name) => {
            Err(TriggerWordsProblem { span, kind: TriggerWordsProblemKind::NameTaken })
        }
        Some(_) => Ok(name.to_owned()),
        None => {
            let mut names = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}-{number}")));
            Ok(names.find(|name| !known.contains(&name.as_str())).expect("numbers do not end"))
        }
    }
}

/// A trigger, and the place of its name, if it has one.
fn parse(text: &str) -> Result<(TriggerOptions, Option<Range<usize>>), TriggerWordsProblem> {
    let mut words = TriggerWords::of(text);
    let name = name(&mut words)?;
    let effect = effect(&mut words)?;
    match words.take() {
        Some(word) if word.text == "on" => {}
        other => {
            let event = other.as_ref().filter(|word| word.text.contains(':'));
            let help = event.map(|event| format!("`{} on {}`", effect.word(), event.text));
            return Err(words.expected("`on`", other.as_ref(), help));
        }
    }
    let events = patterns(&mut words, &OPTIONS)?;
    let mut trigger = TriggerOptions {
        name: name.as_ref().map_or(effect.word(), |name| name.text).to_owned(),
        rule: SelectionRule { events, ..SelectionRule::default() },
        effect,
        scope: TriggerScope::Session,
        repeats: false,
        interval_ns: None,
        for_ns: None,
        after: None,
        asks: None,
        last: None,
    };
    options(&mut words, &mut trigger)?;
    Ok((trigger, name.map(|name| name.span)))
}

/// The name, with a colon behind it.
fn name<'t>(words: &mut TriggerWords<'t>) -> Result<Option<PlacedWord<'t>>, TriggerWordsProblem> {
    let Some(first) = words.peek() else { return Ok(None) };
    // `NAME: EFFECT`, `NAME:EFFECT`, `NAME : EFFECT`
    let length = match first.text.rsplit_once(':') {
        Some((name, effect)) if effect.is_empty() || TriggerEffect::of(effect).is_some() => name.len(),
        Some(_) => return Ok(None),
        None => {
            let behind = TriggerWords { at: first.span.end, ..*words }.peek();
            let Some(colon) = behind.filter(|word| word.text == ":") else { return Ok(None) };
            words.at = colon.span.end;
            first.text.len()
        }
    };
    let name = PlacedWord { text: &first.text[..length], span: first.span.start..first.span.start + length };
    words.at = words.at.max(name.span.end + usize::from(first.text.len() > length));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match name.text.len() {
        1..=64 if name.text.bytes().all(is_plain) => Ok(Some(name)),
        _ => Err(first.problem(TriggerWordsProblemKind::Name)),
    }
}

fn effect(words: &mut TriggerWords<'_>) -> Result<TriggerEffect, TriggerWordsProblem> {
    let word = words.take();
    word.as_ref().and_then(|word| TriggerEffect::of(word.text)).ok_or_else(|| {
        let found = word.as_ref().map_or("", |word| word.text);
        let near = nearest(found, TriggerEffect::ALL.map(TriggerEffect::word));
        let help = match (near.first(), found.contains(':')) {
            (Some(near), _) => Some(format!("did you mean `{near}`?")),
            (None, true) => Some(format!("`stop on {found}`")),
            (None, false) => None,
        };
        words.expected("`start`, `stop` or `snapshot`", word.as_ref(), help)
    })
}

/// Patterns of events, with commas between them.
pub(crate) fn patterns(words: &mut TriggerWords<'_>, behind: &[&str]) -> Result<Vec<String>, TriggerWordsProblem> {
    let mut patterns = Vec::new();
    // Spaces may stand on both sides of a comma; the last one that was read has no pattern behind it yet.
    let (mut comma, mut is_first) = (None, true);
    while let Some(word) = words.peek().filter(|word| is_first || comma.is_some() || word.text.starts_with(',')) {
        if comma.is_some() && behind.contains(&word.text) {
            break;
        }
        words.at = word.span.end;
        let mut begin = word.span.start;
        for (number, part) in word.text.split(',').enumerate() {
            if number > 0 && (std::mem::take(&mut is_first) || comma.is_some()) {
                return Err(no_pattern(begin - 1));
            }
            comma = (number > 0).then(|| begin - 1).or(comma);
            let place = PlacedWord { text: part, span: begin..begin + part.len() };
            begin = place.span.end + 1;
            if !part.is_empty() {
                let pattern = event_pattern(part);
                patterns.push(pattern.map_err(|why| place.problem(TriggerWordsProblemKind::Pattern(why)))?);
                (comma, is_first) = (None, false);
            }
        }
    }
    match comma {
        Some(comma) => Err(no_pattern(comma)),
        None if patterns.is_empty() => Err(words.expected("an event `PROVIDER:NAME`", None, None)),
        None => Ok(patterns),
    }
}

/// There is no pattern at this comma.
fn no_pattern(comma: usize) -> TriggerWordsProblem {
    TriggerWordsProblem { span: comma..comma + 1, kind: TriggerWordsProblemKind::NoPattern }
}

fn options(words: &mut TriggerWords<'_>, trigger: &mut TriggerOptions) -> Result<(), TriggerWordsProblem> {
    let mut every = None;
    let mut seen: Vec<&str> = Vec::new();
    while let Some(word) = words.take() {
        if OPTIONS.contains(&word.text) && seen.contains(&word.text) {
            return Err(word.problem(TriggerWordsProblemKind::Twice(word.text.to_owned())));
        }
        if ["over", "after"].contains(&word.text) && seen.iter().any(|known| ["over", "after"].contains(known)) {
            return Err(word.problem(TriggerWordsProblemKind::Excluded(EXCLUDED)));
        }
        seen.push(word.text);
        match word.text {
            "over" => {
                words.at = word.span.start;
                trigger.asks = Some(rule::question(words)?);
            }
            "after" => trigger.after = Some(count(words)?),
            "last" if trigger.effect != TriggerEffect::Snapshot => {
                return Err(word.problem(TriggerWordsProblemKind::Excluded("only a snapshot has the last events")));
            }
            "last" => trigger.last = Some(count(words)?),
            "for" if trigger.effect != TriggerEffect::Start => {
                return Err(word.problem(TriggerWordsProblemKind::ForWithoutStart));
            }
            "for" => trigger.for_ns = Some(time(words)?),
            "every" => (trigger.interval_ns, every) = (Some(time(words)?), Some(word)),
            "repeat" => trigger.repeats = true,
            "in" => match words.take() {
                Some(word) if word.text == "program" => trigger.scope = TriggerScope::Program,
                other => return Err(words.expected("`program`", other.as_ref(), Some("`in program`".to_owned()))),
            },
            "when" => match words.take_rest() {
                "" => return Err(word.problem(TriggerWordsProblemKind::NoExpression)),
                filter => trigger.rule.filter = Some(filter.to_owned()),
            },
            found => return Err(words.expected(OPTIONS_EXPECTED, Some(&word), option_help(found))),
        }
    }
    match every.filter(|_| !trigger.repeats) {
        Some(every) => Err(every.problem(TriggerWordsProblemKind::EveryWithoutRepeat)),
        None => Ok(()),
    }
}

/// How to write a word that is no option.
fn option_help(found: &str) -> Option<String> {
    if CONDITIONS.contains(&found) || found.contains(['=', '<', '>']) {
        return Some("an expression stands behind `when`, as the last: `when port == 80`".to_owned());
    }
    if found.contains(':') {
        return Some("a comma stands between two events: `stop on net:lost,net:late`".to_owned());
    }
    nearest(found, OPTIONS).first().map(|near| format!("did you mean `{near}`?"))
}

/// Nanoseconds, at least one; a bare number counts seconds.
pub(crate) fn time(words: &mut TriggerWords<'_>) -> Result<u64, TriggerWordsProblem> {
    let Some(word) = words.take() else { return Err(words.expected("a time, such as `5s`", None, None)) };
    let nanos = quantity(word.text, Dimension::Time, Some(1_000_000_000)).filter(|nanos| *nanos > 0);
    nanos.ok_or_else(|| word.problem(TriggerWordsProblemKind::Time))
}

pub(crate) fn count(words: &mut TriggerWords<'_>) -> Result<u32, TriggerWordsProblem> {
    let Some(word) = words.take() else { return Err(words.expected("a number of events", None, None)) };
    let count = word.text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| word.problem(TriggerWordsProblemKind::Count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> TriggerOptions {
        TriggerOptions::parse(text).unwrap_or_else(|problem| panic!("{}", problem.render(text)))
    }

    #[test]
    fn triggers_are_words() {
        let trigger = parsed("stop on net:lost,!net:lost_too when port == 80 && host == \" when \"");
        assert_eq!((trigger.name.as_str(), trigger.effect), ("stop", TriggerEffect::Stop));
        assert_eq!(trigger.rule.events, ["net:lost", "!net:lost_too"]);
        assert_eq!(trigger.rule.filter.as_deref(), Some("port == 80 && host == \" when \""));
        let trigger = parsed("first: start on bench:* for 5ms repeat every 1s in program");
        assert_eq!(
            (trigger.name.as_str(), trigger.for_ns, trigger.interval_ns),
            ("first", Some(5_000_000), Some(1_000_000_000))
        );
        assert!(trigger.repeats && trigger.scope == TriggerScope::Program && trigger.rule.filter.is_none());
        let trigger = parsed("  stop\ton bench:*   after 1000 ");
        assert_eq!((trigger.after, trigger.repeats), (Some(1000), false));
    }

    #[test]
    fn spaces_may_stand_at_commas_and_colons() {
        for text in ["stop on a:b,c:d", "stop on a:b, c:d", "stop on a:b ,c:d", "stop on a:b , c:d"] {
            assert_eq!(parsed(&format!("{text} after 2")).rule.events, ["a:b", "c:d"], "{text}");
        }
        for text in ["end: stop on a:b", "end:stop on a:b", "end : stop on a:b"] {
            assert_eq!((parsed(text).name, parsed(text).effect), ("end".to_owned(), TriggerEffect::Stop), "{text}");
        }
    }

    #[test]
    fn names_differ() {
        let all = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let all = TriggerOptions::parse_all(&texts).map_err(|(at, problem)| (at, problem.render(&texts[at])));
            all.map(|all| all.into_iter().map(|trigger| trigger.name).collect::<Vec<_>>())
        };
        assert_eq!(all(&["stop on a:b", "stop on a:c"]), Ok(vec!["stop".to_owned(), "stop-2".to_owned()]));
        let lines = "another one is called `x`\n    x: stop on a:c\n    ^\nhelp: names differ\n";
        assert_eq!(all(&["x: stop on a:b", "x: stop on a:c"]), Err((1, lines.to_owned())));
    }

    #[test]
    fn each_problem_has_its_place_and_its_remedy() {
        let texts = [
            "begin on a:b",
            "stpo on a:b",
            "net:lost",
            "stop",
            "stop net:lost",
            "stop on",
            "stop on lost",
            "stop on a:b,,c:d",
            "stop on a:b, after 2",
            "stop on a:b,",
            "stop on ,a:b",
            "stop on a:b c:d",
            "stop on a:b for 5",
            "start on a:b for 0s",
            "start on a:b for soon",
            "start on a:b for",
            "start on a:b every 5s",
            "start on a:b soon",
            "start on a:b reepat",
            "stop on a:b if port == 80",
            "stop on a:b after 0",
            "stop on a:b after",
            "stop on a:b after 2 after 3",
            "stop on a:b over 5ms since a:c after 2",
            "stop on a:b last 5",
            "stop on a:b in session",
            "stop on a:b when",
            "x/y: stop on a:b",
            ": stop on a:b",
        ];
        let told = |text: &&str| {
            let problem = TriggerOptions::parse(text).expect_err(text);
            format!("--- {text}\n{}", problem.render(text))
        };
        expect_test::expect![[r#"
            --- begin on a:b
            expected `start`, `stop` or `snapshot`, found `begin`
                begin on a:b
                ^^^^^
            --- stpo on a:b
            expected `start`, `stop` or `snapshot`, found `stpo`
                stpo on a:b
                ^^^^
            help: did you mean `stop`?
            --- net:lost
            expected `start`, `stop` or `snapshot`, found `net:lost`
                net:lost
                ^^^^^^^^
            help: `stop on net:lost`
            --- stop
            expected `on`, found the end
                stop
                    ^
            --- stop net:lost
            expected `on`, found `net:lost`
                stop net:lost
                     ^^^^^^^^
            help: `stop on net:lost`
            --- stop on
            expected an event `PROVIDER:NAME`, found the end
                stop on
                       ^
            --- stop on lost
            an event is called PROVIDER:NAME; `lost:*` is all of a provider, `*:lost` one of this name of any
                stop on lost
                        ^^^^
            --- stop on a:b,,c:d
            there is no event at this comma
                stop on a:b,,c:d
                            ^
            help: `stop on net:lost,net:late`
            --- stop on a:b, after 2
            there is no event at this comma
                stop on a:b, after 2
                           ^
            help: `stop on net:lost,net:late`
            --- stop on a:b,
            there is no event at this comma
                stop on a:b,
                           ^
            help: `stop on net:lost,net:late`
            --- stop on ,a:b
            there is no event at this comma
                stop on ,a:b
                        ^
            help: `stop on net:lost,net:late`
            --- stop on a:b c:d
            expected `over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`, found `c:d`
                stop on a:b c:d
                            ^^^
            help: a comma stands between two events: `stop on net:lost,net:late`
            --- stop on a:b for 5
            only a trigger that starts can say for how long
                stop on a:b for 5
                            ^^^
            help: `start on bench:begin for 5s` stops after that time
            --- start on a:b for 0s
            a time is more than 0
                start on a:b for 0s
                                 ^^
            help: leave the option out, or write `1ms`
            --- start on a:b for soon
            `soon` is no time
                start on a:b for soon
                                 ^^^^
            help: a duration is a number and one of ns, us, ms, s, min, h, d: `1.5ms`
            --- start on a:b for
            expected a time, such as `5s`, found the end
                start on a:b for
                                ^
            --- start on a:b every 5s
            only a trigger that repeats has a least time between two firings
                start on a:b every 5s
                             ^^^^^
            help: `repeat every 1min`
            --- start on a:b soon
            expected `over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`, found `soon`
                start on a:b soon
                             ^^^^
            --- start on a:b reepat
            expected `over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`, found `reepat`
                start on a:b reepat
                             ^^^^^^
            help: did you mean `repeat`?
            --- stop on a:b if port == 80
            expected `over LIMIT since EVENT`, `after N`, `last N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`, found `if`
                stop on a:b if port == 80
                            ^^
            help: an expression stands behind `when`, as the last: `when port == 80`
            --- stop on a:b after 0
            `0` is no number of events
                stop on a:b after 0
                                  ^
            help: a number of events is at least 1, and at most 4294967295
            --- stop on a:b after
            expected a number of events, found the end
                stop on a:b after
                                 ^
            --- stop on a:b after 2 after 3
            `after` stands here for the second time
                stop on a:b after 2 after 3
                                    ^^^^^
            help: leave one out
            --- stop on a:b over 5ms since a:c after 2
            a trigger has one of `after` and `over`: it fires at the first event that took so long
                stop on a:b over 5ms since a:c after 2
                                               ^^^^^
            --- stop on a:b last 5
            only a snapshot has the last events
                stop on a:b last 5
                            ^^^^
            --- stop on a:b in session
            expected `program`, found `session`
                stop on a:b in session
                               ^^^^^^^
            help: `in program`
            --- stop on a:b when
            there is no expression behind `when`
                stop on a:b when
                            ^^^^
            help: `when port == 80`
            --- x/y: stop on a:b
            a name has 1 to 64 letters, digits, `-`, `_` and `.`
                x/y: stop on a:b
                ^^^^
            help: it stands before the rest, with a colon: `end: ...`
            --- : stop on a:b
            a name has 1 to 64 letters, digits, `-`, `_` and `.`
                : stop on a:b
                ^
            help: it stands before the rest, with a colon: `end: ...`
        "#]]
        .assert_eq(&texts.iter().map(told).collect::<String>());
    }
}
