//! Field locations of CTF 2: from names to the field that is meant.
//!
//! ```text
//! {"path": ["len"]}                       in the structure around the user
//! {"path": [null, "len"]}                 in the structure around that one
//! {"origin": "packet-context", "path": ["len"]}     from a scope downwards
//! ```

use crate::json::object::{Object, Result, array, text, wrong};
use crate::json::problem::Problem;
use crate::json::reader::{Kind, Value};
use crate::model::{FieldClass, FieldKind, FieldPath, Member, Scope, Step};

/// The structures around the field that is being read, and the scopes before.
pub(crate) struct Frames<'a> {
    /// `None`: an alias, whose locations mean nothing yet.
    pub(crate) scope: Option<Scope>,
    pub(crate) before: Vec<(Scope, &'a FieldClass)>,
    pub(crate) steps: Vec<Step>,
    open: Vec<Frame>,
}

/// A structure being read.
struct Frame {
    members: Vec<Member>,
    /// Steps that lead to it.
    steps: usize,
}

/// What a location means.
pub(crate) struct Located {
    pub(crate) path: FieldPath,
    /// The fields it may lead to: several where the path leads through a variant; none for an alias.
    pub(crate) targets: Vec<FieldClass>,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(scope: Option<Scope>, before: Vec<(Scope, &'a FieldClass)>) -> Self {
        Self { scope, before, steps: Vec::new(), open: Vec::new() }
    }

    pub(crate) fn enter(&mut self) {
        self.open.push(Frame { members: Vec::new(), steps: self.steps.len() });
    }

    pub(crate) fn leave(&mut self) -> Vec<Member> {
        self.open.pop().expect("every structure is entered first").members
    }

    pub(crate) fn declares(&self, name: &str) -> bool {
        self.open.last().is_some_and(|frame| frame.members.iter().any(|member| member.name == name))
    }

    pub(crate) fn declare(&mut self, member: Member) {
        self.open.last_mut().expect("every structure is entered first").members.push(member);
    }

    /// The field that a location means.
    pub(crate) fn locate(&self, value: &Value, property: &str) -> Result<Located> {
        let (origin, path, start) = parse(value, property)?;
        let lost = || (value.span.clone(), Problem::Location);
        let Some(scope) = self.scope else {
            let path = FieldPath { scope: Scope::EventPayload, steps: Vec::new() };
            return Ok(Located { path, targets: Vec::new() });
        };
        let found = match origin {
            Some(origin) if origin != scope => {
                let (_, root) = self.before.iter().find(|(before, _)| *before == origin).ok_or_else(lost)?;
                let mut targets = Vec::new();
                let steps = descend(root, &path, Vec::new(), &mut targets).ok_or_else(lost)?;
                return Ok(Located { path: FieldPath { scope: origin, steps }, targets });
            }
            Some(_) => self.below_frame(0, &path),
            None => {
                let innermost = self.open.len().checked_sub(1 + start);
                innermost.and_then(|frame| self.below_frame(frame, &path))
            }
        };
        let (steps, targets) = found.ok_or_else(lost)?;
        Ok(Located { path: FieldPath { scope, steps }, targets })
    }

    /// Down from a structure that is being read: into members that are complete, or through the one that is not.
    fn below_frame(&self, frame: usize, path: &[String]) -> Option<(Vec<Step>, Vec<FieldClass>)> {
        let open = self.open.get(frame)?;
        let (first, rest) = path.split_first()?;
        if let Some(index) = open.members.iter().position(|member| member.name == *first) {
            let mut steps = self.steps[..open.steps].to_vec();
            steps.push(Step::Member(index));
            let mut targets = Vec::new();
            let steps = descend(&open.members[index].class, rest, steps, &mut targets)?;
            return Some((steps, targets));
        }
        // The member that is being read has no name here yet; only structures directly inside of it are entered.
        self.open.get(frame + 1)?;
        if rest.is_empty() { None } else { self.below_frame(frame + 1, rest) }
    }
}

/// (origin, names, how many structures outwards the path begins)
fn parse(value: &Value, property: &str) -> Result<(Option<Scope>, Vec<String>, usize)> {
    if let Kind::Array(values) = &value.kind {
        return candidate(values, value, property);
    }
    let object = Object::new(value, property)?;
    let origin = object.get("origin").map(|value| scope(value, "origin")).transpose()?;
    let path_value = object.need("path")?;
    let values = array(path_value, "path")?;
    object.finish()?;
    let (mut names, mut outwards) = (Vec::new(), 0);
    for value in values {
        match &value.kind {
            Kind::Null => match (names.pop(), origin) {
                (Some(_), _) => {}
                (None, None) => outwards += 1,
                (None, Some(_)) => return wrong(path_value, "path", "a way that does not leave its scope"),
            },
            _ => names.push(text(value, "path")?),
        }
    }
    if names.is_empty() || matches!(values.last().map(|value| &value.kind), Some(Kind::Null)) {
        return wrong(path_value, "path", "names, the last of which is not null");
    }
    Ok((origin, names, outwards))
}

/// The release candidate wrote the origin as the first name.
fn candidate(values: &[Value], value: &Value, property: &str) -> Result<(Option<Scope>, Vec<String>, usize)> {
    let Some((first, rest)) = values.split_first() else { return wrong(value, property, "an origin and names") };
    let origin = scope(first, property)?;
    let names = rest.iter().map(|value| text(value, property)).collect::<Result<_>>()?;
    Ok((Some(origin), names, 0))
}

fn scope(value: &Value, property: &str) -> Result<Scope> {
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

/// From a complete field downwards. Variants and optionals have no names: a path leads through what is there.
fn descend(
    class: &FieldClass,
    path: &[String],
    mut steps: Vec<Step>,
    targets: &mut Vec<FieldClass>,
) -> Option<Vec<Step>> {
    match (&class.kind, path) {
        (FieldKind::Structure(structure), [first, rest @ ..]) => {
            let index = structure.members.iter().position(|member| member.name == *first)?;
            steps.push(Step::Member(index));
            descend(&structure.members[index].class, rest, steps, targets)
        }
        (FieldKind::Optional(optional), _) => {
            steps.push(Step::Content);
            descend(&optional.content, path, steps, targets)
        }
        (FieldKind::Variant(variant), _) => {
            steps.push(Step::Selected);
            let mut found = None;
            for option in &variant.options {
                found = Some(descend(&option.class, path, steps.clone(), targets)?);
            }
            found
        }
        (_, []) => {
            targets.push(class.clone());
            Some(steps)
        }
        _ => None,
    }
}
