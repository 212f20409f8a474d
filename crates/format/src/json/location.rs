//! Field locations of CTF 2: from names to the field that is meant.
//!
//! ```text
//! {"path": ["len"]}                       in the structure around the user
//! {"path": [null, "len"]}                 in the structure around that one
//! {"origin": "packet-context", "path": ["len"]}     from a scope downwards
//! ```

use std::collections::HashSet;

use crate::budget::{Budget, STEPS_MAX, TARGET_STEPS};
use crate::json::object::{JsonObject, Result, array, text, wrong};
use crate::json::problem::JsonProblem;
use crate::json::reader::{JsonKind, JsonValue};
use crate::model::{FieldClass, FieldKind, FieldPath, FieldPathStep, Member, Scope};

/// The structures around the field that is being read, and the scopes before.
pub(crate) struct Frames<'a> {
    /// `None`: an alias; its locations outside have no meaning yet.
    pub(crate) scope: Option<Scope>,
    pub(crate) before: Vec<(Scope, &'a FieldClass)>,
    pub(crate) steps: Vec<FieldPathStep>,
    pub(crate) budget: &'a Budget,
    open: Vec<JsonFrame>,
}

/// A structure being read.
struct JsonFrame {
    members: Vec<Member>,
    names: HashSet<String>,
    /// Steps that lead to it.
    steps: usize,
}

/// The meaning of a location.
pub(crate) struct ResolvedLocation {
    pub(crate) path: FieldPath,
    /// The fields it may lead to: several where the path leads through a variant; none if it leads out of an alias.
    pub(crate) targets: Vec<FieldClass>,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(scope: Option<Scope>, before: Vec<(Scope, &'a FieldClass)>, budget: &'a Budget) -> Self {
        Self { scope, before, steps: Vec::new(), budget, open: Vec::new() }
    }

    pub(crate) fn enter(&mut self) {
        self.open.push(JsonFrame { members: Vec::new(), names: HashSet::new(), steps: self.steps.len() });
    }

    pub(crate) fn leave(&mut self) -> Vec<Member> {
        self.open.pop().expect("every structure is entered first").members
    }

    pub(crate) fn declares(&self, name: &str) -> bool {
        self.open.last().is_some_and(|frame| frame.names.contains(name))
    }

    pub(crate) fn declare(&mut self, member: Member) {
        let frame = self.open.last_mut().expect("every structure is entered first");
        frame.names.insert(member.name.clone());
        frame.members.push(member);
    }

    /// The field that a location means.
    pub(crate) fn locate(&self, value: &JsonValue, property: &str) -> Result<ResolvedLocation> {
        let (origin, path, start) = parse(value, property)?;
        let lost = || {
            let spent = self.budget.steps_ran_out();
            (value.span.clone(), if spent { JsonProblem::Steps(STEPS_MAX) } else { JsonProblem::Location })
        };
        let Some(scope) = self.scope else {
            // The users of the alias decide on locations outside of it.
            let inside = (origin.is_none()).then(|| self.open.len().checked_sub(1 + start)).flatten();
            let found = inside.map(|frame| self.below_frame(frame, &path).ok_or_else(lost)).transpose()?;
            let path = FieldPath { scope: Scope::EventPayload, steps: Vec::new() };
            return Ok(ResolvedLocation { path, targets: found.map_or(Vec::new(), |(_, targets)| targets) });
        };
        let found = match origin {
            Some(origin) if origin != scope => {
                let (_, root) = self.before.iter().find(|(before, _)| *before == origin).ok_or_else(lost)?;
                let (mut steps, mut targets) = (Vec::new(), Vec::new());
                self.descend(root, &path, &mut steps, &mut targets).ok_or_else(lost)?;
                return Ok(ResolvedLocation { path: FieldPath { scope: origin, steps }, targets });
            }
            Some(_) => self.below_frame(0, &path),
            None => {
                let innermost = self.open.len().checked_sub(1 + start);
                innermost.and_then(|frame| self.below_frame(frame, &path))
            }
        };
        let (steps, targets) = found.ok_or_else(lost)?;
        Ok(ResolvedLocation { path: FieldPath { scope, steps }, targets })
    }

    /// Down from a structure that is being read: into members that are complete, or through the one that is not.
    fn below_frame(&self, frame: usize, path: &[String]) -> Option<(Vec<FieldPathStep>, Vec<FieldClass>)> {
        let open = self.open.get(frame)?;
        let (first, rest) = path.split_first()?;
        if let Some(index) = member(&open.members, first, self.budget) {
            let mut steps = self.steps[..open.steps].to_vec();
            steps.push(FieldPathStep::Member(index));
            let mut targets = Vec::new();
            self.descend(&open.members[index].class, rest, &mut steps, &mut targets)?;
            return Some((steps, targets));
        }
        // The member that is being read has no name here yet; only structures directly inside it are entered.
        self.open.get(frame + 1)?;
        if rest.is_empty() { None } else { self.below_frame(frame + 1, rest) }
    }

    /// From a complete field downwards. Variants and optionals have no names: a path leads through
    /// their content.
    fn descend(
        &self,
        class: &FieldClass,
        path: &[String],
        steps: &mut Vec<FieldPathStep>,
        targets: &mut Vec<FieldClass>,
    ) -> Option<()> {
        match (&class.kind, path) {
            (FieldKind::Structure(structure), [first, rest @ ..]) => {
                let index = member(&structure.members, first, self.budget)?;
                steps.push(FieldPathStep::Member(index));
                self.descend(&structure.members[index].class, rest, steps, targets)
            }
            (FieldKind::Optional(optional), _) => {
                steps.push(FieldPathStep::Content);
                self.descend(&optional.content, path, steps, targets)
            }
            (FieldKind::Variant(variant), _) => {
                let mut inside = vec![Vec::new(); variant.options.len()];
                for (option, steps) in variant.options.iter().zip(&mut inside) {
                    self.descend(&option.class, path, steps, targets)?;
                }
                steps.push(FieldPathStep::Selected(inside));
                (!variant.options.is_empty()).then_some(())
            }
            (FieldKind::Structure(_) | FieldKind::StaticArray(_) | FieldKind::DynamicArray(_), []) => None,
            (_, []) => {
                let labels = class.integer_meaning().map_or(0, |meaning| meaning.mappings.len());
                self.budget.take_steps(TARGET_STEPS + labels).then(|| targets.push(class.clone()))
            }
            _ => None,
        }
    }
}

/// (origin, names, how many structures outwards the path begins)
fn parse(value: &JsonValue, property: &str) -> Result<(Option<Scope>, Vec<String>, usize)> {
    if let JsonKind::Array(values) = &value.kind {
        return candidate(values, value, property);
    }
    let object = JsonObject::new(value, property)?;
    let origin = object.get("origin").map(|value| scope(value, "origin")).transpose()?;
    let path_value = object.need("path")?;
    let values = array(path_value, "path")?;
    object.finish()?;
    let (mut names, mut outwards) = (Vec::new(), 0);
    for value in values {
        match &value.kind {
            JsonKind::Null => match (names.pop(), origin) {
                (Some(_), _) => {}
                (None, None) => outwards += 1,
                (None, Some(_)) => return wrong(path_value, "path", "a way that does not leave its scope"),
            },
            _ => names.push(text(value, "path")?),
        }
    }
    if names.is_empty() || matches!(values.last().map(|value| &value.kind), Some(JsonKind::Null)) {
        return wrong(path_value, "path", "names, the last of which is not null");
    }
    Ok((origin, names, outwards))
}

/// The release candidate wrote the origin as the first name.
fn candidate(values: &[JsonValue], value: &JsonValue, property: &str) -> Result<(Option<Scope>, Vec<String>, usize)> {
    let Some((first, rest)) = values.split_first() else { return wrong(value, property, "an origin and names") };
    let origin = scope(first, property)?;
    let names = rest.iter().map(|value| text(value, property)).collect::<Result<_>>()?;
    Ok((Some(origin), names, 0))
}

fn scope(value: &JsonValue, property: &str) -> Result<Scope> {
    Ok(match text(value, property)?.as_str() {
        "packet-header" => Scope::PacketHeader,
        "packet-context" => Scope::PacketContext,
        "event-record-header" => Scope::EventHeader,
        "event-record-common-context" => Scope::EventCommonContext,
        "event-record-specific-context" => Scope::EventSpecificContext,
        "event-record-payload" => Scope::EventPayload,
        _ => return wrong(value, property, "the name of a scope"),
    })
}

/// The place of a member. Looking for it takes steps, whether it is there or not.
fn member(members: &[Member], name: &str, budget: &Budget) -> Option<usize> {
    let found = members.iter().position(|member| member.name == name);
    budget.take_steps(found.unwrap_or(members.len()) + 1).then_some(found)?
}
