//! Rules as people ask for them: filters that remember earlier events.

pub(crate) mod words;

use std::collections::BTreeMap;

use kymo_lane::RuleCounts;
use serde::{Deserialize, Serialize};

use crate::presets::shown;
use crate::select::SelectionRule;

/// Rules of a session, at most.
pub const RULES_MAX: usize = 8;
/// Kinds of a rule with a limit of their own, at most.
const KINDS_MAX: usize = 32;
/// Fields of a key, at most.
pub(crate) const KEYS_MAX: usize = 4;
/// Events that a rule keeps in a time, at most.
const EVENTS_MAX: u32 = 65_535;

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
    /// It is only about events of which this expression is true: for events of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
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
        /// The events that begin are recorded, too.
        #[serde(default)]
        with_begins: bool,
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
    /// A question about events of the kernel, which the kernel is asked.
    OfKernel {
        /// The question.
        test: KernelTest,
        /// It keeps none until it is opened.
        #[serde(default)]
        is_closed: bool,
    },
    /// A user's eBPF program runs at the event.
    Program {
        /// The name of its object.
        object: String,
        /// Its name.
        program: String,
        /// Its result says whether the event is kept: it is not, if that is 0.
        is_filter: bool,
    },
}

/// What only the kernel is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelTest {
    /// Nothing but the rule's condition.
    Each,
    /// Whether something of the same key has begun and has not ended.
    Between {
        /// Events that begin it.
        begin: Vec<String>,
        /// Events that end it.
        end: Vec<String>,
        /// Fields of those that end it, one for each part of the key; `thread` is the thread.
        end_keys: Vec<String>,
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
    /// Its words, without the name.
    #[must_use]
    pub fn words(&self) -> String {
        let when = self.condition.as_ref().map_or_else(String::new, |condition| format!(" when {condition}"));
        let asks = self.asks.words();
        let space = if asks.is_empty() { "" } else { " " };
        format!("{}{space}{asks}{when}", shown(&self.events))
    }

    /// Why it cannot be; `None`: it can.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(is_plain) {
            return Some("a rule's name has 1 to 64 letters, digits, `-`, `_` and `.`");
        }
        if self.is_all_begins() {
            return Some("all events of a rule begin: it is to be about others, behind them");
        }
        self.asks.fault()
    }

    /// Whether each event that it names begins: none is left.
    pub(crate) fn is_all_begins(&self) -> bool {
        let RuleTest::Over { since, .. } = &self.asks.test else { return false };
        let mut named = self.events.iter().filter(|pattern| !pattern.starts_with('!')).peekable();
        named.peek().is_some() && named.all(|pattern| since.contains(pattern) || takes(since, pattern))
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
            (RuleTest::OfKernel { is_closed, .. }, set) => {
                if set.map_or(*is_closed, |set| set > 0) { "closed" } else { "open" }.to_owned()
            }
            (RuleTest::Program { .. }, _) => String::new(),
        }
    }

    /// Sets the limit, in words, of all events or of one kind; without words it is that of the question again.
    ///
    /// # Errors
    ///
    /// Why that cannot be, for people.
    pub fn set_limit(&mut self, kind: Option<&str>, words: Option<&str>) -> Result<(), String> {
        let limit = words.map(|text| words::new_limit(text, &self.asks.test)).transpose()?;
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

    /// Whether it may let events go.
    pub(crate) fn lets_go(&self) -> bool {
        !matches!(self.asks.test, RuleTest::Program { is_filter: false, .. })
    }

    /// Whether it is about events of this name. Those that begin are not.
    #[must_use]
    pub fn takes_name(&self, event: &str) -> bool {
        takes(&self.events, event) && !self.asks.begins_at(event)
    }
}

impl RuleQuestion {
    /// Why it cannot be; `None`: it can.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.keys.len() > KEYS_MAX {
            return Some("a key has at most 4 fields");
        }
        match self.test {
            RuleTest::Over { limit: RuleLimit::Percentile(part), .. } if !(1..1_000_000).contains(&part) => {
                Some("a percentile is more than 0 and less than 100: `p99.9`")
            }
            RuleTest::AtMost { events, .. } if events > EVENTS_MAX => {
                Some("a rule keeps at most 65,535 events in a time")
            }
            RuleTest::OfKernel { .. } => Some("only the kernel is asked that, about its own events"),
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
            RuleTest::Over { limit, since, per, with_begins } => {
                let begins = if *with_begins { " with begins" } else { "" };
                let per = per.as_ref().map_or_else(String::new, |per| format!(" per {per}"));
                format!("over {} since {}{by}{per}{begins}", limit.words(), shown(since))
            }
            RuleTest::Every(count) => format!("every {count}{by}"),
            RuleTest::AtMost { events, ns } => format!("at most {events} in {}{by}", time(*ns)),
            RuleTest::OfKernel { test, is_closed } => {
                let closed = if *is_closed { "closed" } else { "" };
                let KernelTest::Between { begin, end, end_keys } = test else { return closed.to_owned() };
                let key = |(own, end): (&KeyField, &String)| {
                    let (own, begin) = match own {
                        KeyField::Thread => ("thread", "thread"),
                        KeyField::Field { end, begin } => (end.as_str(), begin.as_str()),
                    };
                    // As in words, a field that is not named is called as the one before.
                    match (own == begin, begin == end) {
                        (true, true) => own.to_owned(),
                        (false, true) => format!("{own}={begin}"),
                        (_, false) => format!("{own}={begin}={end}"),
                    }
                };
                let keys: Vec<String> = self.keys.iter().zip(end_keys).map(key).collect();
                let space = if *is_closed { " " } else { "" };
                format!("between {} and {} by {}{space}{closed}", shown(begin), shown(end), keys.join(","))
            }
            RuleTest::Program { object, program, is_filter } => {
                format!("{} {program} of {object}", if *is_filter { "filtered by" } else { "seen by" })
            }
        }
    }

    /// The events that begin.
    pub(crate) fn begins(&self) -> Option<&[String]> {
        match &self.test {
            RuleTest::Over { since, .. } => Some(since),
            RuleTest::Every(_) | RuleTest::AtMost { .. } | RuleTest::OfKernel { .. } | RuleTest::Program { .. } => None,
        }
    }

    /// Whether events of this name are recorded because they begin.
    pub(crate) fn shows(&self, event: &str) -> bool {
        matches!(&self.test, RuleTest::Over { with_begins: true, .. }) && self.begins_at(event)
    }

    /// Whether events of this name are not recorded because they only begin.
    pub(crate) fn hides(&self, event: &str) -> bool {
        matches!(&self.test, RuleTest::Over { with_begins: false, .. }) && self.begins_at(event)
    }

    /// Whether events of this name begin.
    pub(crate) fn begins_at(&self, event: &str) -> bool {
        matches!(&self.test, RuleTest::Over { since, .. } if takes(since, event))
    }
}

impl RuleLimit {
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

/// What a trace tells of a rule beside its counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToldRuleWords {
    pub(crate) name: String,
    pub(crate) words: String,
    /// Patterns of the events that it keeps some of, with commas between them; of triggers none.
    pub(crate) events: String,
    /// Patterns of those that it needs and are not recorded for it.
    pub(crate) without: String,
}

impl ToldRuleWords {
    /// Those of a rule that a session records by.
    pub(crate) fn of(rule: &RuleOptions) -> Self {
        if !rule.lets_go() {
            return Self::of_trigger(rule);
        }
        let without = match &rule.asks.test {
            RuleTest::Over { since, with_begins: false, .. } => since.join(","),
            _ => String::new(),
        };
        Self { events: rule.events.join(","), without, ..Self::of_trigger(rule) }
    }

    /// The events that it is about, as the environment of a trace tells them.
    pub(crate) fn ruled(&self) -> String {
        let Self { name, events, without, .. } = self;
        let list = |patterns: &str| patterns.replace(',', ", ");
        let without = if without.is_empty() { String::new() } else { format!(" without {}", list(without)) };
        format!("{name}: {}{without}", list(events))
    }

    /// Those of a rule that lets nothing go, as triggers ask them.
    pub(crate) fn of_trigger(rule: &RuleOptions) -> Self {
        Self { name: rule.name.clone(), words: rule.words(), ..Self::default() }
    }
}

/// Events of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuleTotals {
    pub(crate) kept: u64,
    pub(crate) let_go: u64,
    pub(crate) unknown: u64,
    pub(crate) forgotten: u64,
}

impl From<RuleCounts> for RuleTotals {
    fn from(counts: RuleCounts) -> Self {
        let RuleCounts { kept, let_go, unknown, forgotten } = counts;
        Self { kept, let_go, unknown, forgotten }
    }
}

impl RuleTotals {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            kept: self.kept.saturating_add(other.kept),
            let_go: self.let_go.saturating_add(other.let_go),
            unknown: self.unknown.saturating_add(other.unknown),
            forgotten: self.forgotten.saturating_add(other.forgotten),
        }
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            kept: self.kept.saturating_sub(before.kept),
            let_go: self.let_go.saturating_sub(before.let_go),
            unknown: self.unknown.saturating_sub(before.unknown),
            forgotten: self.forgotten.saturating_sub(before.forgotten),
        }
    }
}

/// Events that the recorder has asked a rule about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecorderCounts {
    /// Those that the program has not.
    pub(crate) asked: RuleTotals,
    /// Of what the program has counted, what is otherwise.
    pub(crate) undone: RuleTotals,
}

impl RecorderCounts {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { asked: self.asked.plus(other.asked), undone: self.undone.plus(other.undone) }
    }
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
    /// Patterns that match no event, and fields that events lack.
    #[serde(default)]
    pub problems: Vec<String>,
    /// Its running limit in nanoseconds, the largest of all programs; with kinds, see there.
    #[serde(default)]
    pub running_ns: Option<u64>,
    /// Its kinds, those with most events first.
    #[serde(default)]
    pub kinds: Vec<RuleKind>,
    /// Events that it has kept and that found no room; `None`: programs ask it, and not the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Number of the events so far whose kinds share one limit, as others have the limits of their own.
    #[serde(default)]
    pub shared: u64,
}

impl RuleStatus {
    /// Kinds with most events first, and the limits that were set for others.
    pub(crate) fn sort_kinds(&mut self) {
        for (name, ns) in &self.options.limits {
            match self.kinds.iter_mut().find(|kind| kind.name == *name) {
                Some(kind) => kind.set_ns = Some(*ns),
                None => self.kinds.push(RuleKind { name: name.clone(), set_ns: Some(*ns), ..RuleKind::default() }),
            }
        }
        self.kinds.sort_by(|one, other| other.events.cmp(&one.events).then_with(|| one.name.cmp(&other.name)));
    }

    /// Why its ends hardly have a known begin, in a sentence without a full stop; `None`: enough have.
    #[must_use]
    pub fn unknown_note(&self) -> Option<String> {
        let all = self.kept.saturating_add(self.let_go);
        if self.unknown.saturating_mul(2) <= all || self.options.name.starts_with("trigger:") {
            return None;
        }
        let share = if self.unknown == all { "none" } else { "less than half" };
        let help = self.options.key_note().unwrap_or_else(|| {
            "`by FIELD` names what the events that begin and those that end have in common, and what began before the recording is \
             unknown"
                .to_owned()
        });
        Some(format!("{share} of its ends had a known begin: {help}"))
    }

    /// Its limit now, in nanoseconds or events; `None`: there is none yet.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.options.set.or(match &self.options.asks.test {
            RuleTest::Over { limit: RuleLimit::Time(ns), .. } => Some(*ns),
            RuleTest::Over { .. } => {
                self.running_ns.or_else(|| self.kinds.iter().filter_map(|kind| kind.running_ns).max())
            }
            RuleTest::Every(events) | RuleTest::AtMost { events, .. } => Some((*events).into()),
            RuleTest::OfKernel { is_closed, .. } => Some((*is_closed).into()),
            RuleTest::Program { .. } => None,
        })
    }
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
