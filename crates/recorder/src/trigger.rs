//! Triggers as people ask for them, and their states.

mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::rule::{RuleOptions, RuleQuestion, RuleTest};
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
    /// A rule about the kernel keeps events from this event on.
    Open,
    /// It keeps none any more.
    Close,
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
    /// It fires only at events for which the answer to this is yes: programs remember what it takes.
    #[serde(default)]
    pub asks: Option<RuleQuestion>,
    /// A snapshot: it has so many events, the last ones with that of the trigger; `None`: all.
    #[serde(default)]
    pub last: Option<u32>,
    /// The rule about the kernel that it opens or closes: it does so at each of its events.
    #[serde(default)]
    pub gate: Option<String>,
}

impl TriggerEffect {
    pub(crate) const ALL: [Self; 5] = [Self::Start, Self::Stop, Self::Snapshot, Self::Open, Self::Close];

    /// The effect of that word.
    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.word() == word)
    }

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Snapshot => "snapshot",
            Self::Open => "open",
            Self::Close => "close",
        }
    }

    /// Whether it opens or closes a rule about the kernel.
    #[must_use]
    pub fn is_gate(self) -> bool {
        matches!(self, Self::Open | Self::Close)
    }
}

impl TriggerOptions {
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
        if self.last.is_some() && self.effect != TriggerEffect::Snapshot {
            return Some("only a snapshot has the last events");
        }
        if self.effect.is_gate() != self.gate.is_some() {
            return Some("a trigger that opens or closes names a rule, and no other does");
        }
        if self.effect.is_gate() && (self.after.is_some() || !self.repeats || self.scope == TriggerScope::Program) {
            return Some(GATE_ALWAYS);
        }
        if self.asks.is_some() && self.after.is_some() {
            return Some(EXCLUDED);
        }
        if self.asks.as_ref().is_some_and(|asks| !matches!(asks.test, RuleTest::Over { .. })) {
            return Some("a trigger asks how long after its begin an event comes: `over 5ms since EVENT`");
        }
        self.asks.as_ref().and_then(RuleQuestion::fault)
    }

    /// Its effect in words.
    #[must_use]
    pub fn effect_words(&self) -> String {
        self.gate
            .as_ref()
            .map_or_else(|| self.effect.word().to_owned(), |rule| format!("{} {rule}", self.effect.word()))
    }

    /// The rule that it asks.
    #[must_use]
    pub(crate) fn as_rule(&self) -> Option<RuleOptions> {
        let asks = self.asks.clone()?;
        let (name, events) = (format!("trigger:{}", self.name), self.rule.events.clone());
        Some(RuleOptions { name, events, asks, set: None, limits: BTreeMap::new(), condition: None })
    }
}

/// Of two options, a trigger has one.
pub(crate) const EXCLUDED: &str =
    "a trigger has one of `after` and `over`: it fires at the first event that took so long";

/// Options that make no sense of a rule that is opened or closed.
pub(crate) const GATE_ALWAYS: &str =
    "a rule is opened or closed at each event of the trigger, for all programs: without `after` and `in program`";

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
    /// The same time in ticks of the clock of the program's events.
    #[serde(default)]
    pub ticks: u64,
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
