//! Own analyses on the timeline: the states that they declare are rows, and their counters lines.
//!
//! Their rules are sections of one mapping, numbered through all files; pairs that begin and end by
//! them stay in the tables of `kymo analyse`.

use super::Thing;
use super::called::Called;
use super::digest::Digest;
use crate::EventValue;
use crate::declared::{AnalysisDeclaration, EventRule, ItemKind, RuleAction};
use crate::mapping::RoleMapping;

/// The states and counters of own analyses.
#[derive(Clone, Debug, Default)]
pub struct DeclaredTracks {
    items: Vec<TrackNaming>,
    rules: Vec<Fulfilled>,
    sections: Vec<EventRule>,
}

#[derive(Clone, Debug)]
struct TrackNaming {
    /// The name of the analysis, and its own.
    names: [String; 2],
    unit: Option<String>,
}

/// Fields of a rule that an event which matches it must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fulfilled {
    item: usize,
    pub(super) thing: Thing,
    /// Of the analysis and the item: the key follows.
    pub(super) digest: Digest,
    pub(super) act: RuleAction,
    pub(super) key_fields: usize,
}

impl DeclaredTracks {
    /// The tracks of own analyses.
    #[must_use]
    pub fn new(declarations: &[AnalysisDeclaration]) -> Self {
        let mut own = Self::default();
        for declaration in declarations {
            let first = own.items.len();
            let named = |item: &crate::declared::DeclaredItem| TrackNaming {
                names: [declaration.name.clone(), item.name.clone()],
                unit: item.unit.clone(),
            };
            own.items.extend(declaration.items.iter().map(named));
            for rule in &declaration.rules {
                let thing = match declaration.items[rule.item].kind {
                    ItemKind::Pairs { .. } | ItemKind::Operations { .. } => continue,
                    ItemKind::States => Thing::Component,
                    ItemKind::Counter => Thing::Counter,
                };
                let item = first + rule.item;
                let text = |digest: Digest, name: &String| digest.with(EventValue::Text(name.as_bytes()));
                // A mapping's components and counters have digests of one to three values, none of which is a number alone.
                let digest = own.items[item].names.iter().fold(Digest::default().with(EventValue::Integer(-1)), text);
                own.rules.push(Fulfilled { item, thing, digest, act: rule.act, key_fields: rule.key.len() });
                own.sections.push(rule.clone());
            }
        }
        own
    }

    /// Whether there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules as a mapping.
    #[must_use]
    pub fn mapping(&self) -> RoleMapping {
        let mut mapping = RoleMapping::new("own analyses".to_owned());
        mapping.sections = self.sections.iter().enumerate().map(|(number, rule)| rule.section(number)).collect();
        mapping
    }

    pub(super) fn rule(&self, number: usize) -> Option<Fulfilled> {
        self.rules.get(number).copied()
    }

    /// Name of the track of a key.
    pub(super) fn called(&self, rule: Fulfilled, key: &[String]) -> Called {
        let TrackNaming { names: [analysis, name], unit } = &self.items[rule.item];
        let name = if key.is_empty() { name.clone() } else { format!("{name} {}", key.join(", ")) };
        Called { name, within: None, group: Some(analysis.clone()), unit: unit.clone(), is_own: true }
    }
}

#[cfg(test)]
mod tests;
