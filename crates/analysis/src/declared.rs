//! Own analyses: pairs of events, states and counters, declared in a file instead of in Rust.
//!
//! ```toml
//! name = "requests"
//!
//! [[pairs]]                                   # what begins and ends
//! name = "request"
//! begin = { event = "server:begin", when = "size > 0" }
//! end = "server:end"
//! key = "id"
//!
//! [[states]]                                  # who is how, and for how long
//! name = "worker"
//! key = "$ctx.vtid"
//! set = [{ event = "server:begin", to = "busy" }, { event = "server:end", to = "idle" }]
//!
//! [[counters]]                                # how much there is
//! name = "queue"
//! change = [{ event = "queue:put", add = 1 }, { event = "queue:get", add = -1 }]
//! ```
//!
//! ```text
//! text ──read──> Declaration ──mapping──> Bindings: which events fulfil which rules, and where their fields are
//!                      └──────> Declared: pairs (crate::pairs), states, counters, in parts that merge
//! ```
//!
//! Each rule becomes a section of a mapping, of the role [`EventRole::Rule`], so that conditions have
//! the same meaning everywhere.

mod analysis;
mod counters;
mod history;
mod read;
mod states;
#[cfg(test)]
mod tests;

pub use analysis::{DeclaredAnalysis, DeclaredLane, DeclaredNote, DeclaredState};
pub use history::{History, HistoryTexts};
pub use read::KEY_FIELDS_MAX;

use kymo_filter::Filter;

use crate::description::{AnalysisDescription, SupportedOptions};
use crate::headline::{Headline, HeadlineRow, HeadlineTables};
use crate::mapping::{MappingErrors, NamePattern, RoleMapping, Section, ValueSource};
use crate::pairs::PairsAnalysis;
use crate::roles::{EventRole, rule};
use crate::{Needs, Question, Wishes};

/// An own analysis, as its file says it.
#[derive(Clone, Debug)]
pub struct AnalysisDeclaration {
    /// Its name for people.
    pub name: String,
    /// Its items, in the order of the file.
    pub items: Vec<DeclaredItem>,
    /// All rules: first those that end something, then the others in the order of the file. They are applied in this order.
    pub rules: Vec<EventRule>,
}

/// An item of an own analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredItem {
    /// Its name for people.
    pub name: String,
    /// Its kind.
    pub kind: ItemKind,
    /// The unit of a counter, if the file has one: `bytes`.
    pub unit: Option<String>,
}

/// The kinds of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Pairs that begin and end.
    Pairs {
        /// A key that begins twice ends twice.
        is_nested: bool,
    },
    /// Keys with one state at a time.
    States,
    /// A number that changes.
    Counter,
}

/// The effect of an event.
#[derive(Clone, Debug)]
pub struct EventRule {
    /// To which of the items.
    pub item: usize,
    /// The act.
    pub act: RuleAction,
    /// Classes of events with a name that matches one of these.
    pub events: Vec<NamePattern>,
    /// Of these the events for which this is true.
    pub when: Option<Filter>,
    /// The key.
    pub key: Vec<ValueSource>,
    /// The value of the act: the group of a pair, the state, the number.
    pub value: Option<ValueSource>,
}

/// The act of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// Something begins.
    Begin,
    /// It ends.
    End,
    /// It is in this state from now on.
    Set,
    /// It is in no state from now on.
    Clear,
    /// There is so much more.
    Add,
    /// There is so much.
    To,
}

impl AnalysisDeclaration {
    /// Reads an own analysis from its text.
    ///
    /// # Errors
    ///
    /// All that is wrong with it.
    ///
    /// ```
    /// use kymo_analysis::declared::AnalysisDeclaration;
    /// let error = AnalysisDeclaration::parse("name = 'mine'\n[[pairs]]\nname = 'x'\nbegn = 'a'\nend = 'b'").unwrap_err();
    /// assert_eq!(error.to_string().lines().nth(1), Some("4:1: `pairs` has no `begn`; did you mean `begin`?"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, MappingErrors> {
        read::declaration(text)
    }

    /// What people see of all own analyses before they ask; each has a title of its own.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions { by: &["key", "value"], ..SupportedOptions::COMMON };
        AnalysisDescription::new("own", "", "What a file declares", OPTIONS).with_view(&[], Self::headline)
    }

    /// The first things to say: of the pairs with the longest one, of states, and of a counter.
    fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        let longest = |part: &HeadlineTables<'_>| part.first("total").and_then(|total| total.duration_ns("max"));
        let mut pairs: Vec<HeadlineTables<'_>> = tables.parts("total").collect();
        pairs.sort_by_key(|part| std::cmp::Reverse(longest(part)));
        let mut said = pairs.iter().map(|part| (part.first("total"), PairsAnalysis::headline(part)));
        if let Some((total, said)) = said.find(|(_, said)| !said.is_empty()) {
            Self::name_item(&mut headline, total, pairs.len());
            headline.join(said);
        }
        if let Some(state) = tables.most_of_all("states", "total") {
            Self::name_item(&mut headline, Some(state), tables.parts("states").count());
            headline.say(&state, "{key} was in state {value} longest: {total+}");
        }
        // Counters of different things do not compare.
        let mut counters = tables.parts("counters");
        if let Some(counter) = counters.find_map(|part| part.most_of_all("counters", "max")) {
            Self::name_item(&mut headline, Some(counter), tables.parts("counters").count());
            headline.say(&counter, "Counter {key} rose highest: to {max}");
        }
        headline
    }

    /// Says which of several items the next sentence is about: titles of their tables begin with their names.
    fn name_item(headline: &mut Headline, row: Option<HeadlineRow<'_>>, items: usize) {
        let name = row.and_then(|row| Some(row.title().rsplit_once(": ")?.0));
        if let Some(name) = name.filter(|_| items > 1) {
            headline.tell(&format!("{name}:"));
        }
    }

    /// The question that it answers.
    pub(crate) fn question(&self, wishes: &Wishes) -> Question<'_> {
        let question =
            Question::new(Self::needs(wishes), &[EventRole::Rule], |setup| DeclaredAnalysis::new(setup, self));
        Question { mapping: Some(self.mapping()), has_periods: true, ..question }
    }

    /// In which states things were: the question that [`History`] answers.
    #[must_use]
    pub fn history(&self) -> Question<'_> {
        let needs = Self::needs(&Wishes::default());
        let question = Question::new(needs, &[EventRole::Rule], |setup| History::new(setup, self));
        Question { mapping: Some(self.mapping()), ..question }
    }

    /// Its rules as a mapping. Others are bound beside it only to say which thread was there when
    /// something happened.
    #[must_use]
    pub fn mapping(&self) -> RoleMapping {
        let mut mapping = RoleMapping::new(self.name.clone());
        mapping.sections = self.rules.iter().enumerate().map(|(number, rule)| rule.section(number)).collect();
        mapping
    }

    /// The roles and fields that it needs.
    #[must_use]
    pub fn needs(wishes: &Wishes) -> Needs {
        let fields = (0..EventRole::Rule.facts().fields.len()).collect();
        Needs { roles: vec![(EventRole::Rule, fields)], context: wishes.context(), ..Needs::default() }
    }
}

impl EventRule {
    pub(crate) fn section(&self, number: usize) -> Section {
        let mut section = Section::new(EventRole::Rule, self.events.clone());
        section.when = self.when.clone();
        section.fields[rule::NUMBER] = vec![ValueSource::Integer(number as i64)];
        section.fields[rule::VALUE] = self.value.iter().cloned().collect();
        for (place, field) in self.key.iter().enumerate() {
            section.fields[rule::KEY_1 + place] = vec![field.clone()];
        }
        section
    }
}
