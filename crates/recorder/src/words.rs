//! Words that triggers and rules are made of, and what is wrong with them.

use std::ops::Range;

use kymo_filter::{Dimension, quantity, with_place};
use kymo_schema::glob::event_pattern;

/// Why words are no trigger, or no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordsProblem {
    /// The bytes of the text that it is about.
    pub span: Range<usize>,
    /// The problem.
    pub kind: WordsProblemKind,
}

/// Kinds of problems in such words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordsProblemKind {
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
    /// The same in a rule of programs, which may be meant for the kernel.
    RulePattern(String),
    /// There is nothing between two commas, or behind the last one.
    NoPattern,
    /// A time is none, or is 0.
    Time,
    /// A number of events is none, or is 0, or is more than this.
    Count(u32),
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
    /// All events of a rule begin.
    Begins,
    /// More fields than these.
    ManyFields(usize),
    /// Options of a trigger that exclude each other.
    Excluded(&'static str),
}

impl WordsProblem {
    /// The problem for people: a sentence, the text with the place underlined, and how to write it.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        use WordsProblemKind as Kind;
        let found = &text[self.span.clone()];
        let (message, help) = match &self.kind {
            Kind::Expected { expected, found, help } => {
                let found = found.as_ref().map_or("the end".to_owned(), |found| format!("`{found}`"));
                (format!("expected {expected}, found {found}"), help.clone())
            }
            Kind::Pattern(why) => (why.clone(), None),
            Kind::RulePattern(why) => {
                let help = "rules about events of the kernel are those of `kymo record --kernel-only`";
                (why.clone(), Some(help.to_owned()))
            }
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
            Kind::Count(most) => {
                let is_more = found.bytes().all(|byte| byte.is_ascii_digit()) && found.parse() != Ok(0_u32);
                let what = if is_more { "are too many events" } else { "is no number of events" };
                (format!("`{found}` {what}"), Some(format!("a number of events is at least 1, and at most {most}")))
            }
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
            Kind::Limit if found.parse::<f64>().is_ok() => {
                (format!("`{found}` has no unit"), Some(format!("one of ns, us, ms, s, min, h, d: `{found}ms`")))
            }
            Kind::Limit => {
                let help = "a limit is a time, such as `5ms`, or a percentile with at most four digits behind the point, such as `p99.9`";
                (format!("`{found}` is no limit"), Some(help.to_owned()))
            }
            Kind::Begins => (
                "all of these events begin".to_owned(),
                Some("the rule is about others, behind them: `http:end over 5ms since http:begin`".to_owned()),
            ),
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
pub(crate) struct OptionWords<'t> {
    pub(crate) text: &'t str,
    /// Where the next one may begin.
    pub(crate) at: usize,
}

impl<'t> OptionWords<'t> {
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
    pub(crate) fn take_rest(&mut self) -> &'t str {
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
    ) -> WordsProblem {
        let end = self.text.trim_end().len();
        let span = found.map_or(end..end, |found| found.span.clone());
        let found = found.map(|found| found.text.to_owned());
        WordsProblem { span, kind: WordsProblemKind::Expected { expected, found, help } }
    }
}

impl PlacedWord<'_> {
    pub(crate) fn problem(&self, kind: WordsProblemKind) -> WordsProblem {
        WordsProblem { span: self.span.clone(), kind }
    }
}

/// The name of one more: one that others do not have. A name that stands in the text, at this place, is that.
pub(crate) fn free_name(name: &str, place: Option<Range<usize>>, known: &[&str]) -> Result<String, WordsProblem> {
    match place {
        Some(span) if known.contains(&name) => Err(WordsProblem { span, kind: WordsProblemKind::NameTaken }),
        Some(_) => Ok(name.to_owned()),
        None => {
            let mut names = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}-{number}")));
            Ok(names.find(|name| !known.contains(&name.as_str())).expect("numbers do not end"))
        }
    }
}

/// Patterns of events, with commas between them.
pub(crate) fn patterns(words: &mut OptionWords<'_>, behind: &[&str]) -> Result<Vec<String>, WordsProblem> {
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
                patterns.push(pattern.map_err(|why| place.problem(WordsProblemKind::Pattern(why)))?);
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
fn no_pattern(comma: usize) -> WordsProblem {
    WordsProblem { span: comma..comma + 1, kind: WordsProblemKind::NoPattern }
}

/// Nanoseconds, at least one; a bare number counts seconds.
pub(crate) fn time(words: &mut OptionWords<'_>) -> Result<u64, WordsProblem> {
    let Some(word) = words.take() else { return Err(words.expected("a time, such as `5s`", None, None)) };
    let nanos = quantity(word.text, Dimension::Time, Some(1_000_000_000)).filter(|nanos| *nanos > 0);
    nanos.ok_or_else(|| word.problem(WordsProblemKind::Time))
}

/// A number of events: from 1 to `most`.
pub(crate) fn count(words: &mut OptionWords<'_>, most: u32) -> Result<u32, WordsProblem> {
    let Some(word) = words.take() else { return Err(words.expected("a number of events", None, None)) };
    let count = word.text.parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| word.problem(WordsProblemKind::Count(most)))
}
