//! Triggers as people ask for them, and their states.

use kymo_filter::{Dimension, quantity};
use kymo_schema::glob::event_pattern;
use serde::{Deserialize, Serialize};

use crate::select::SelectionRule;

/// Triggers of a session, at most.
pub const TRIGGERS_MAX: usize = 16;

/// Effect of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerEffect {
    /// The session records from this event on.
    Start,
    /// The session records no more after this event.
    Stop,
    /// The session writes the events that it holds; it keeps the newest events.
    Snapshot,
}

/// Programs that a trigger acts on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerScope {
    /// All programs of the session: the program of the event at once, the others through the recorder.
    #[default]
    Session,
    /// The program of the event.
    Program,
}

/// A trigger of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerOptions {
    /// Its name, which no other trigger of the session has.
    pub name: String,
    /// Events that it watches, with a filter. Only events of programs that the session records count.
    pub rule: SelectionRule,
    /// Its effect.
    pub effect: TriggerEffect,
    /// The programs that it acts on.
    #[serde(default)]
    pub scope: TriggerScope,
    /// It stays armed after it has fired.
    #[serde(default)]
    pub repeats: bool,
    /// Least time between two firings, in nanoseconds.
    #[serde(default)]
    pub interval_ns: Option<u64>,
    /// A start: the session records for this time, in nanoseconds, and then no more.
    #[serde(default)]
    pub for_ns: Option<u64>,
    /// It fires at this match of a program, 1 being the first; `None`: at the first.
    #[serde(default)]
    pub after: Option<u32>,
}

impl TriggerEffect {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Snapshot => "snapshot",
        }
    }
}

impl TriggerOptions {
    /// A trigger in words: `[NAME:] EFFECT on GLOB[,GLOB...] [after COUNT] [for TIME] [repeat [every TIME]] [in
    /// program] [when EXPR]`. Without a name it has that of its effect.
    ///
    /// # Errors
    ///
    /// Which word is wrong, for people.
    ///
    /// ```
    /// use kymo_recorder::trigger::{TriggerEffect, TriggerOptions};
    /// let trigger = TriggerOptions::parse("end: stop on net:lost after 3 when port == 80").unwrap();
    /// assert_eq!((trigger.name.as_str(), trigger.effect, trigger.after), ("end", TriggerEffect::Stop, Some(3)));
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        // The expression may have any words.
        let (head, filter) = match text.split_once(" when ") {
            Some((head, filter)) => (head, Some(filter.trim().to_owned())),
            None => (text, None),
        };
        let mut words = head.split_whitespace().peekable();
        let name = words.next_if(|word| word.ends_with(':')).map(|word| word.trim_end_matches(':').to_owned());
        let effect = match words.next() {
            Some("start") => TriggerEffect::Start,
            Some("stop") => TriggerEffect::Stop,
            Some("snapshot") => TriggerEffect::Snapshot,
            other => return Err(expected("`start`, `stop` or `snapshot`", other)),
        };
        match words.next() {
            Some("on") => {}
            other => return Err(expected("`on`", other)),
        }
        let Some(events) = words.next() else { return Err(expected("an event `PROVIDER:NAME`", None)) };
        let events = events.split(',').map(event_pattern).collect::<Result<Vec<_>, _>>()?;
        let mut trigger = Self {
            name: name.unwrap_or_else(|| effect.word().to_owned()),
            rule: SelectionRule { events, filter, ..SelectionRule::default() },
            effect,
            scope: TriggerScope::Session,
            repeats: false,
            interval_ns: None,
            for_ns: None,
            after: None,
        };
        while let Some(word) = words.next() {
            let mut time = || {
                let time = words.next().ok_or_else(|| expected("a time, such as `5s`", None))?;
                duration(time).map(Some)
            };
            match word {
                "after" => trigger.after = Some(number(words.next())?),
                "for" => trigger.for_ns = time()?,
                "every" => trigger.interval_ns = time()?,
                "repeat" => trigger.repeats = true,
                "in" if words.next() == Some("program") => trigger.scope = TriggerScope::Program,
                other => {
                    return Err(expected(
                        "`after N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`",
                        Some(other),
                    ));
                }
            }
        }
        Ok(trigger)
    }

    /// It takes several matches, and the recorder counts them, in the order of their times. Programs count those of
    /// triggers that repeat: others of the session have to see each firing at once.
    #[must_use]
    pub fn is_counted_later(&self) -> bool {
        !self.repeats && self.after.is_some_and(|count| count > 1)
    }

    /// Why it cannot be; `None`: it can.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(is_plain) {
            return Some("a trigger's name has 1 to 64 letters, digits, `-`, `_` and `.`");
        }
        if self.for_ns.is_some() && self.effect != TriggerEffect::Start {
            return Some("only a trigger that starts can say for how long");
        }
        if self.interval_ns.is_some() && !self.repeats {
            return Some("only a trigger that repeats has a least time between two firings");
        }
        None
    }
}

/// State of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerStatus {
    /// The trigger.
    pub options: TriggerOptions,
    /// It may fire.
    pub is_armed: bool,
    /// How often it has fired.
    pub firings: u64,
    /// Firings that came too early after another one, as far as they are known.
    pub suppressed: u64,
    /// Matches of a trigger with `after`: the most that a program has had since it is armed or has fired.
    #[serde(default)]
    pub counted: u64,
    /// Patterns that no event of any program has matched since it was added, and similar names of events.
    #[serde(default)]
    pub unmatched: Vec<(String, Vec<String>)>,
    /// Why its filter is true of no event that its patterns have matched, for people; `None`: it may be true.
    #[serde(default)]
    pub never: Option<String>,
    /// How its filter was understood, in lines for people.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Its last firing.
    pub last: Option<TriggerFiring>,
    /// Programs in which it is armed at the event, and those for which the recorder watches the events.
    pub programs: u64,
    /// See [`TriggerStatus::programs`].
    pub watched: u64,
    /// Why the recorder watches.
    pub why: Vec<String>,
}

/// A firing of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerFiring {
    /// Nanoseconds since 1970: see [`TriggerFiring::is_exact`].
    pub ns: i64,
    /// The event.
    pub event: String,
    /// The program, its PID here, and the thread there.
    pub program: String,
    /// See [`TriggerFiring::program`].
    pub pid: u32,
    /// See [`TriggerFiring::program`].
    pub tid: u32,
    /// The recorder has seen the event in the trace, later than it happened.
    pub is_late: bool,
    /// `ns` is the time of the event. Otherwise it is that of the firing, some microseconds before the event.
    #[serde(default)]
    pub is_exact: bool,
}

/// Nanoseconds, at least one; a bare number counts seconds.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    let nanos = quantity(text, Dimension::Time, Some(1_000_000_000)).filter(|nanos| *nanos > 0);
    nanos.ok_or_else(|| "a duration is a number and one of ns, us, ms, s, min, h, d: `1.5ms`".to_owned())
}

pub(crate) fn number(text: Option<&str>) -> Result<u32, String> {
    let number = text.and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    number.ok_or_else(|| format!("a number of events is at least 1, and at most {}", u32::MAX))
}

pub(crate) fn expected(expected: &str, found: Option<&str>) -> String {
    let found = found.map_or("the end".to_owned(), |found| format!("`{found}`"));
    format!("expected {expected}, found {found}")
}
