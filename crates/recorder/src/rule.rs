//! Rules as people ask for them: filters that remember earlier events.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::SplitWhitespace;

use kymo_schema::glob::event_pattern;
use serde::{Deserialize, Serialize};

use crate::select::SelectionRule;
use crate::trigger::{duration, expected, number};

/// Rules of a session, at most.
pub const RULES_MAX: usize = 8;
/// Kinds of a rule with a limit of their own, at most.
const KINDS_MAX: usize = 32;
/// Fields of a key, at most.
const KEYS_MAX: usize = 4;

/// A rule of a session: of the events that it is about, the session records those that it keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleOptions {
    /// Its name, which no other rule of the session has.
    pub name: String,
    /// Its events.
    pub events: Vec<String>,
    /// What it asks of them.
    pub asks: RuleQuestion,
    /// Another limit than that of its question, set while it is asked: nanoseconds, or events.
    #[serde(default)]
    pub set: Option<u64>,
    /// Limits of single kinds, in nanoseconds.
    #[serde(default)]
    pub limits: BTreeMap<String, u64>,
}

/// What a rule asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleQuestion {
    /// The question.
    pub test: RuleTest,
    /// Fields that tell one thing from another: it is asked for each of their values apart.
    #[serde(default)]
    pub keys: Vec<KeyField>,
}

/// A question that takes memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleTest {
    /// Whether more time has passed since the begin than the limit.
    Over {
        /// The limit.
        limit: RuleLimit,
        /// Events that begin.
        since: Vec<String>,
        /// The field that tells kinds of events, which have limits of their own.
        #[serde(default)]
        per: Option<String>,
    },
    /// Whether it is the first one, or so many behind the last one that was kept.
    Every(u32),
    /// Whether fewer than so many were kept in this time.
    AtMost {
        /// So many.
        events: u32,
        /// The time, in nanoseconds.
        ns: u64,
    },
}

/// A limit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleLimit {
    /// Nanoseconds.
    Time(u64),
    /// The running percentile of all events, in parts of a million: p99 is 990,000.
    Percentile(u32),
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyField {
    /// The thread.
    Thread,
    /// A field of the event, and that of the begin.
    Field {
        /// Of the event.
        end: String,
        /// Of the begin.
        begin: String,
    },
}

impl RuleOptions {
    /// A rule in words: `[NAME:] GLOB[,GLOB...] over LIMIT since GLOB[,GLOB...]`, `... every N`, or `... at most N in TIME`, each
    /// with `by FIELD[,FIELD...]`; the first one also with `per FIELD`. Without a name it is called as its events are.
    ///
    /// # Errors
    ///
    /// Which word is wrong, for people.
    ///
    /// ```
    /// use kymo_recorder::rule::{RuleLimit, RuleOptions, RuleTest};
    /// let rule = RuleOptions::parse("slow: http:end over 5ms since http:begin by id").unwrap();
    /// assert_eq!(rule.name, "slow");
    /// assert!(matches!(rule.asks.test, RuleTest::Over { limit: RuleLimit::Time(5_000_000), .. }));
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace().peekable();
        let name = words.next_if(|word| word.ends_with(':')).map(|word| word.trim_end_matches(':').to_owned());
        let events = events(words.next())?;
        let asks = RuleQuestion::parse(&mut words)?;
        if let Some(other) = words.next() {
            return Err(expected("`by FIELD`, `per FIELD` or the end", Some(other)));
        }
        let name = name.unwrap_or_else(|| plain(&events[0]));
        let rule = Self { name, events, asks, set: None, limits: BTreeMap::new() };
        rule.fault().map_or(Ok(rule), |fault| Err(fault.to_owned()))
    }

    /// Its words, without the name.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{} {}", self.events.join(","), self.asks.words())
    }

    /// Why it cannot be; `None`: it can.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(is_plain) {
            return Some("a rule's name has 1 to 64 letters, digits, `-`, `_` and `.`");
        }
        self.asks.fault()
    }

    /// Its limit now, in words.
    #[must_use]
    pub fn limit(&self) -> String {
        match (&self.asks.test, self.set) {
            (RuleTest::Over { .. }, Some(ns)) => time(ns),
            (RuleTest::Over { limit, .. }, None) => limit.words(),
            (RuleTest::Every(events) | RuleTest::AtMost { events, .. }, set) => {
                set.map_or_else(|| events.to_string(), |set| set.to_string())
            }
        }
    }

    /// Sets the limit, in words, of all events or of one kind; without words it is that of the question again.
    ///
    /// # Errors
    ///
    /// Why that cannot be, for people.
    pub fn set_limit(&mut self, kind: Option<&str>, words: Option<&str>) -> Result<(), String> {
        let limit = match (words, &self.asks.test) {
            (None, _) => None,
            (Some(words), RuleTest::Over { .. }) => match limit(Some(words))? {
                RuleLimit::Time(ns) => Some(ns),
                RuleLimit::Percentile(_) => {
                    return Err(
                        "a percentile belongs to the words of a rule; without a limit, it has its own again".to_owned()
                    );
                }
            },
            (Some(words), RuleTest::Every(_)) => Some(number(Some(words))?.into()),
            (Some(words), RuleTest::AtMost { .. }) => Some(u64::from(number(Some(words))?))
                .filter(|events| *events < 65_536)
                .map(Some)
                .ok_or("a rule keeps at most 65,535 events in a time")?,
        };
        match (kind, &self.asks.test) {
            (None, _) => self.set = limit,
            (Some(kind), RuleTest::Over { per: Some(_), .. }) => match limit {
                Some(ns) if self.limits.len() < KINDS_MAX || self.limits.contains_key(kind) => {
                    self.limits.insert(kind.to_owned(), ns);
                }
                Some(_) => return Err(format!("a rule has limits of at most {KINDS_MAX} kinds")),
                None => _ = self.limits.remove(kind),
            },
            (Some(_), _) => return Err(format!("rule `{}` has no kinds: `per FIELD` says what they are", self.name)),
        }
        Ok(())
    }

    /// Whether it is about events of this name.
    #[must_use]
    pub fn takes_name(&self, event: &str) -> bool {
        takes(&self.events, event)
    }
}

impl RuleQuestion {
    /// Reads its words; the first word that is none of them stays.
    pub(crate) fn parse(words: &mut Peekable<SplitWhitespace<'_>>) -> Result<Self, String> {
        let mut test = match words.next() {
            Some("over") => {
                let limit = limit(words.next())?;
                match words.next() {
                    Some("since") => RuleTest::Over { limit, since: events(words.next())?, per: None },
                    other => return Err(expected("`since EVENT`, where the time begins", other)),
                }
            }
            Some("every") => RuleTest::Every(number(words.next())?),
            Some("at") => {
                let _ = words.next_if(|word| *word == "most");
                let events = number(words.next())?;
                match words.next() {
                    Some("in") => {}
                    other => return Err(expected("`in TIME`", other)),
                }
                let time = words.next().ok_or_else(|| expected("a time, such as `1s`", None))?;
                RuleTest::AtMost { events, ns: duration(time)? }
            }
            other => return Err(expected("`over LIMIT since EVENT`, `every N` or `at most N in TIME`", other)),
        };
        let mut keys = Vec::new();
        loop {
            if words.next_if(|word| *word == "by").is_some() {
                let fields = words.next().ok_or_else(|| expected("a field, or `thread`", None))?;
                keys.extend(fields.split(',').map(key));
            } else if let RuleTest::Over { per, .. } = &mut test
                && words.next_if(|word| *word == "per").is_some()
            {
                *per = Some(words.next().ok_or_else(|| expected("a field", None))?.to_owned());
            } else {
                break;
            }
        }
        // What one thread does is one thing after the other.
        if keys.is_empty() && matches!(test, RuleTest::Over { .. }) {
            keys.push(KeyField::Thread);
        }
        let question = Self { test, keys };
        question.fault().map_or(Ok(question), |fault| Err(fault.to_owned()))
    }

    fn fault(&self) -> Option<&'static str> {
        if self.keys.len() > KEYS_MAX {
            return Some("a key has at most 4 fields");
        }
        match self.test {
            RuleTest::Over { limit: RuleLimit::Percentile(part), .. } if !(1..1_000_000).contains(&part) => {
                Some("a percentile is more than 0 and less than 100: `p99.9`")
            }
            RuleTest::AtMost { events: 65_536.., .. } => Some("a rule keeps at most 65,535 events in a time"),
            _ => None,
        }
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> String {
        let key = |key: &KeyField| match key {
            KeyField::Thread => "thread".to_owned(),
            KeyField::Field { end, begin } if end == begin => end.clone(),
            KeyField::Field { end, begin } => format!("{end}={begin}"),
        };
        let keys: Vec<String> = self.keys.iter().map(key).collect();
        let by = if keys.is_empty() { String::new() } else { format!(" by {}", keys.join(",")) };
        match &self.test {
            RuleTest::Over { limit, since, per } => {
                let per = per.as_ref().map_or_else(String::new, |per| format!(" per {per}"));
                format!("over {} since {}{by}{per}", limit.words(), since.join(","))
            }
            RuleTest::Every(count) => format!("every {count}{by}"),
            RuleTest::AtMost { events, ns } => format!("at most {events} in {}{by}", time(*ns)),
        }
    }

    /// Whether events of this name begin.
    pub(crate) fn begins_at(&self, event: &str) -> bool {
        matches!(&self.test, RuleTest::Over { since, .. } if takes(since, event))
    }
}

impl RuleLimit {
    /// Reads a limit: `5ms`, or `p99`.
    ///
    /// # Errors
    ///
    /// Why it is none, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        limit(Some(text))
    }

    /// Its words.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Time(ns) => time(ns),
            Self::Percentile(part) => format!("p{}", f64::from(part) / 10_000.0),
        }
    }
}

/// A time in the largest unit that has a whole number of it.
#[must_use]
pub fn time(ns: u64) -> String {
    let units =
        [(3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let unit = units.into_iter().find(|(size, _)| ns >= *size && ns.is_multiple_of(*size));
    unit.map_or_else(|| format!("{ns}ns"), |(size, name)| format!("{}{name}", ns / size))
}

fn takes(patterns: &[String], event: &str) -> bool {
    SelectionRule { events: patterns.to_vec(), ..SelectionRule::default() }.takes_name(event)
}

fn events(word: Option<&str>) -> Result<Vec<String>, String> {
    let word = word.ok_or_else(|| expected("an event `PROVIDER:NAME`", None))?;
    word.split(',').map(event_pattern).collect()
}

fn limit(word: Option<&str>) -> Result<RuleLimit, String> {
    let word = word.ok_or_else(|| expected("a limit, such as `5ms` or `p99`", None))?;
    match word.strip_prefix('p').map(str::parse::<f64>) {
        // Less than a millionth is rounded.
        Some(Ok(part)) if part > 0.0 && part < 100.0 => {
            Ok(RuleLimit::Percentile(((part * 10_000.0).round() as u32).clamp(1, 999_999)))
        }
        Some(_) => Err("a percentile is more than 0 and less than 100: `p99.9`".to_owned()),
        None => duration(word).map(RuleLimit::Time),
    }
}

fn key(word: &str) -> KeyField {
    match word.split_once('=') {
        _ if word == "thread" => KeyField::Thread,
        Some((end, begin)) => KeyField::Field { end: end.to_owned(), begin: begin.to_owned() },
        None => KeyField::Field { end: word.to_owned(), begin: word.to_owned() },
    }
}

/// A name that is as like a pattern as names can be.
fn plain(pattern: &str) -> String {
    let event = pattern.rsplit(':').next().unwrap_or_default();
    let name: String =
        event.chars().filter(|byte| byte.is_ascii_alphanumeric() || "-_.".contains(*byte)).take(64).collect();
    if name.is_empty() { "rule".to_owned() } else { name }
}

/// State of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleStatus {
    /// The rule.
    pub options: RuleOptions,
    /// Its words.
    pub words: String,
    /// Events that it has kept, and let go.
    pub kept: u64,
    /// See [`RuleStatus::kept`].
    pub let_go: u64,
    /// Ends without a known begin, of those that it has kept.
    pub unknown: u64,
    /// Keys that it has forgotten, because there were too many at a time.
    pub forgotten: u64,
    /// Programs that ask it, now or before.
    pub programs: u64,
    /// Programs that cannot: all of their events are recorded.
    pub without: u64,
    /// Why not.
    pub why: Vec<String>,
    /// Its running limit in nanoseconds, the largest of all programs; with kinds, see there.
    #[serde(default)]
    pub running_ns: Option<u64>,
    /// Its kinds, those with most events first.
    #[serde(default)]
    pub kinds: Vec<RuleKind>,
}

/// A kind of a rule's events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleKind {
    /// Its name.
    pub name: String,
    /// Its running limit in nanoseconds, the largest of all programs; `None`: it has none.
    pub running_ns: Option<u64>,
    /// The limit that was set for it.
    pub set_ns: Option<u64>,
    /// Number of its events so far.
    pub events: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_words() {
        for (text, name, again) in [
            ("slow: a:end over 5ms since a:begin by id", "slow", "a:end over 5ms since a:begin by id"),
            (
                "a:end over p99.9 since a:begin,b:* per route",
                "end",
                "a:end over p99.9 since a:begin,b:* by thread per route",
            ),
            (
                "a:end,!a:end_* over 1500ns since a:begin by id=request,thread",
                "end",
                "a:end,!a:end_* over 1500ns since a:begin by id=request,thread",
            ),
            ("a:* every 100", "rule", "a:* every 100"),
            ("a:x_* every 100 by port", "x_", "a:x_* every 100 by port"),
            ("a:x at most 10 in 1s by port,thread", "x", "a:x at most 10 in 1s by port,thread"),
            ("a:x at 10 in 90s", "x", "a:x at most 10 in 90s"),
        ] {
            let rule = RuleOptions::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!((rule.name.as_str(), rule.words().as_str()), (name, again), "{text}");
            assert_eq!(RuleOptions::parse(&format!("{}: {again}", rule.name)), Ok(rule), "{again}");
        }
        for (text, why) in [
            ("", "expected an event `PROVIDER:NAME`, found the end"),
            ("end over 5ms since a:b", "an event is called PROVIDER:NAME"),
            ("a:end", "expected `over LIMIT since EVENT`, `every N` or `at most N in TIME`, found the end"),
            ("a:end over", "expected a limit, such as `5ms` or `p99`, found the end"),
            ("a:end over soon", "a duration is a number"),
            ("a:end over p100 since a:b", "a percentile is more than 0 and less than 100"),
            ("a:end over pp since a:b", "a percentile is more than 0 and less than 100"),
            ("a:end over 5ms", "expected `since EVENT`, where the time begins, found the end"),
            ("a:end over 5ms since a:b by", "expected a field, or `thread`, found the end"),
            ("a:end over 5ms since a:b later", "expected `by FIELD`, `per FIELD` or the end, found `later`"),
            ("a:end every 0", "a number of events is at least 1"),
            ("a:end at most 5", "expected `in TIME`, found the end"),
            ("a:end at most 70000 in 1s", "at most 65,535 events"),
            ("a:end every 3 per route", "expected `by FIELD`, `per FIELD` or the end, found `per`"),
            ("a:end every 3 by a,b,c,d,e", "a key has at most 4 fields"),
            ("a/b: a:end every 3", "a rule's name has 1 to 64 letters"),
        ] {
            let told = RuleOptions::parse(text).expect_err(text);
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
