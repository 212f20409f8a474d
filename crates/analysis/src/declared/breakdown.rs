//! `breakdown`: operations with steps, of which the events are named in a command, or those of Barrelfish.
//!
//! ```text
//! --start 'server:*_begin'  --stop 'server:*_end'  --key id
//! ```

use super::operations::Operations;
use super::{AnalysisDeclaration, DeclaredItem, EventRule, ItemKind, RuleAction};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::mapping::{NamePattern, ValueSource};
use crate::pairs::question::{events, key};
use crate::pairs::{PairEvents, PairsProblem};

/// The name of the analysis, and of its declarations.
const NAME: &str = "breakdown";

/// The description that people see before they ask.
pub(crate) fn description() -> AnalysisDescription {
    const SENTENCE: &str = "Steps of operations: how long each takes, from a start event to its stop event";
    AnalysisDescription::new(NAME, "Steps of operations", SENTENCE, SupportedOptions::COMMON)
        .with_view(&["operations", "steps", "breakdown"], Operations::headline)
}

impl AnalysisDeclaration {
    /// Capability operations of Barrelfish.
    ///
    /// # Panics
    ///
    /// Never: it is tested.
    #[must_use]
    pub fn breakdown() -> Self {
        Self::parse(include_str!("capops.toml")).expect("declarations that are built in are tested")
    }

    /// Operations from events of `start` to those of `stop`; all other events with their keys are steps, or those of
    /// `step`. Events are `NAME` or `NAME if EXPRESSION`, where `*` in a name is any text; keys are `FIELD`, or
    /// `FIELD=FIELD` where it has another name in the event that ends. If names of both have a `*`, operations are told
    /// apart by the text that the first one stands for.
    ///
    /// # Errors
    ///
    /// The error.
    pub fn of_operations(
        start: &[String],
        step: &[String],
        stop: &[String],
        keys: &[String],
    ) -> Result<Self, PairsProblem> {
        if start.is_empty() || stop.is_empty() || keys.is_empty() {
            return Err(PairsProblem::Half);
        }
        let all = |texts: &[String]| texts.iter().map(|text| events(text)).collect::<Result<Vec<_>, _>>();
        let (start, stop, step) = (all(start)?, all(stop)?, all(step)?);
        let keys = keys.iter().map(|text| key(text)).collect::<Result<Vec<_>, _>>()?;
        let (of_start, of_stop): (Vec<_>, Vec<_>) =
            keys.into_iter().map(|(start, stop)| (ValueSource::Path(start), ValueSource::Path(stop))).unzip();
        let has_star = |events: &PairEvents| events.names.iter().all(|name| name.stars() > 0);
        let group = start.iter().chain(&stop).all(has_star).then_some(ValueSource::Capture(1));
        let rule = |act, key: &[ValueSource], PairEvents { names, when }: PairEvents| EventRule {
            item: 0,
            act,
            events: names,
            when,
            key: key.to_vec(),
            value: group.clone().filter(|_| act != RuleAction::Step),
        };
        let any = || vec![PairEvents { names: vec![NamePattern::new("*")], when: None }];
        let steps = if step.is_empty() { any() } else { step };
        let step_keys = if of_start == of_stop { vec![&of_start] } else { vec![&of_start, &of_stop] };
        let mut rules: Vec<EventRule> =
            stop.into_iter().map(|events| rule(RuleAction::End, &of_stop, events)).collect();
        rules.extend(start.into_iter().map(|events| rule(RuleAction::Begin, &of_start, events)));
        let of_steps = |key: &&Vec<ValueSource>| -> Vec<EventRule> {
            steps.iter().map(|events| rule(RuleAction::Step, key, events.clone())).collect()
        };
        rules.extend(step_keys.iter().flat_map(of_steps));
        let kind = ItemKind::Operations { key_fields: of_start.len(), early_ns: 0 };
        let items = vec![DeclaredItem { name: String::new(), kind, unit: None }];
        Ok(Self { name: NAME.to_owned(), items, rules })
    }
}
