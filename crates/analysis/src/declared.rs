//! Own analyses: pairs of events, operations with steps, states and counters, declared in a file instead of in Rust.
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
//! [[operations]]                              # what begins and ends, and the steps between
//! name = "copy"
//! begin = "disk:copy_begin"
//! end = "disk:copy_end"
//! key = "number"
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
//!                      └──────> Declared: pairs (crate::pairs), operations, states, counters, in parts that merge
//! ```
//!
//! Each rule becomes a section of a mapping, of the role [`EventRole::Rule`], so that conditions have
//! the same meaning everywhere.

mod analysis;
mod breakdown;
mod counters;
mod history;
mod operations;
mod read;
mod states;
#[cfg(test)]
mod tests;

pub use analysis::{DeclaredAnalysis, DeclaredLane, DeclaredNote, DeclaredState};
pub(crate) use breakdown::description as breakdown_description;
pub use history::{History, HistoryTexts};
pub use read::KEY_FIELDS_MAX;

use kymo_filter::Filter;

use self::operations::Operations;
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::headline::{Headline, HeadlineRow, HeadlineTables};
use crate::mapping::{MappingErrors, NamePattern, RoleMapping, Section, ValueSource};
use crate::pairs::PairsAnalysis;
use crate::roles::{CPU, EventRole, rule};
use crate::{Needs, Question, Wishes};

/// An own analysis, as its file says it.
#[derive(Clone, Debug)]
pub struct AnalysisDeclaration {
    /// Its name for people.
    pub name: String,
    /// Its items, in the order of the file.
    pub items: Vec<DeclaredItem>,
    /// All rules: first those that end something, then the others in the order of the file, then those of steps. They are
    /// applied in this order.
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
    /// Operations that begin and end, with the steps between.
    Operations {
        /// Fields of the key; begins and ends have more fields where they must have more in common.
        key_fields: usize,
        /// How far clocks of CPUs may disagree.
        early_ns: u64,
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
    /// It goes on.
    Step,
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
        let of_operations = tables.parts("operations").map(|part| Operations::headline(&part));
        of_operations.filter(|said| !said.is_empty()).take(1).for_each(|said| headline.join(said));
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
            Question::new(self.needs(wishes), &[EventRole::Rule], |setup| DeclaredAnalysis::new(setup, self));
        Question { mapping: Some(self.mapping()), has_periods: true, ..question }
    }

    /// In which states things were: the question that [`History`] answers.
    #[must_use]
    pub fn history(&self) -> Question<'_> {
        let needs = self.needs(&Wishes::default());
        let question = Question::new(needs, &[EventRole::Rule], |setup| History::new(setup, self));
        Question { mapping: Some(self.mapping()), ..question }
    }

    /// The events that it looks for, as people call them: the first few.
    #[must_use]
    pub fn looked_for(&self) -> String {
        const SHOWN: usize = 4;
        let named = self.rules.iter().filter(|rule| rule.act != RuleAction::Step).flat_map(|rule| &rule.events);
        let mut names: Vec<&str> = named.map(NamePattern::text).collect();
        names.sort_unstable();
        names.dedup();
        let more = if names.len() > SHOWN { " and others" } else { "" };
        let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
        format!("the events {}{more}", shown.join(", "))
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
    pub fn needs(&self, wishes: &Wishes) -> Needs {
        let fields = (0..EventRole::Rule.facts().fields.len()).collect();
        let mut context = wishes.context();
        context.extend((self.has_operations() && !context.contains(&CPU)).then_some(CPU));
        Needs { roles: vec![(EventRole::Rule, fields)], context, ..Needs::default() }
    }

    /// Whether it is about operations, the steps of which have CPUs.
    fn has_operations(&self) -> bool {
        self.items.iter().any(|item| matches!(item.kind, ItemKind::Operations { .. }))
    }
}

impl RuleAction {
    /// Of the rules of an event, those that end something come first, and those of steps last.
    fn turn(self) -> u8 {
        match self {
            Self::End => 0,
            Self::Step => 2,
            Self::Begin | Self::Set | Self::Clear | Self::Add | Self::To => 1,
        }
    }
}

impl EventRule {
    /// Every event with this key is a step.
    fn any_step(key: Vec<ValueSource>) -> Self {
        Self { item: 0, act: RuleAction::Step, events: vec![NamePattern::new("*")], when: None, key, value: None }
    }

    pub(crate) fn section(&self, number: usize) -> Section {
        let mut section = Section::new(EventRole::Rule, self.events.clone());
        section.when = self.when.clone();
        section.fields[rule::NUMBER] = vec![ValueSource::Integer(number as i64)];
        section.fields[rule::VALUE] = self.value.iter().cloned().collect();
        for (place, field) in self.key.iter().enumerate() {
            section.fields[rule::KEY_1 + place] = vec![field.clone()];
            // Any event may be a step, but only if it has the key.
            section.required.extend((self.act == RuleAction::Step).then_some(rule::KEY_1 + place));
        }
        section
    }
}
