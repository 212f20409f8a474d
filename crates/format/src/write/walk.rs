//! Fields by their paths, and places by their names.

use crate::model::{FieldClass, FieldKind, FieldPath, FieldPathStep, Scope, TraceClass};

/// Which data stream class and event record class a scope belongs to, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScopeOwner {
    pub(crate) stream: Option<usize>,
    pub(crate) event: Option<usize>,
}

impl ScopeOwner {
    /// The owner of the field referred to from here: a scope that is shared has fewer owners.
    pub(crate) fn of_scope(self, scope: Scope) -> Self {
        match scope {
            Scope::PacketHeader => Self { stream: None, event: None },
            Scope::PacketContext | Scope::EventHeader | Scope::EventCommonContext => Self { event: None, ..self },
            Scope::EventSpecificContext | Scope::EventPayload => self,
        }
    }
}

/// The class of a scope.
pub(crate) fn root(trace: &TraceClass, owner: ScopeOwner, scope: Scope) -> Option<&FieldClass> {
    if scope == Scope::PacketHeader {
        return trace.packet_header.as_ref();
    }
    let stream = &trace.stream_classes[owner.stream?];
    match scope {
        Scope::PacketHeader => None,
        Scope::PacketContext => stream.packet_context.as_ref(),
        Scope::EventHeader => stream.event_header.as_ref(),
        Scope::EventCommonContext => stream.event_common_context.as_ref(),
        Scope::EventSpecificContext => stream.event_classes[owner.event?].specific_context.as_ref(),
        Scope::EventPayload => stream.event_classes[owner.event?].payload.as_ref(),
    }
}

/// The field at the end of a path.
pub(crate) fn target<'t>(trace: &'t TraceClass, owner: ScopeOwner, path: &FieldPath) -> Option<&'t FieldClass> {
    root(trace, owner, path.scope)?.at(&path.steps)
}

/// The names on the way from a class along steps; only members have names that references use.
pub(crate) fn names<'t>(mut class: &'t FieldClass, mut steps: &[FieldPathStep]) -> Option<Vec<&'t str>> {
    let mut names = Vec::new();
    while let Some(step) = steps.first() {
        if let (FieldKind::Structure(structure), FieldPathStep::Member(index)) = (&class.kind, step) {
            names.push(structure.members.get(*index)?.name.as_str());
        }
        (class, steps) = class.further(steps)?;
    }
    Some(names)
}

/// The name of a scope as CTF 2 writes it.
pub(crate) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "packet-header",
        Scope::PacketContext => "packet-context",
        Scope::EventHeader => "event-record-header",
        Scope::EventCommonContext => "event-record-common-context",
        Scope::EventSpecificContext => "event-record-specific-context",
        Scope::EventPayload => "event-record-payload",
    }
}

/// The place of a field, for messages.
pub(crate) fn place(trace: &TraceClass, owner: ScopeOwner, path: &FieldPath) -> String {
    let mut out = String::new();
    if let Some(stream) = owner.stream.map(|stream| &trace.stream_classes[stream]) {
        out.push_str(&format!("data stream class {}, ", stream.id));
        if let Some(event) = owner.event.map(|event| &stream.event_classes[event]) {
            match &event.name {
                Some(name) => out.push_str(&format!("event record class `{name}`, ")),
                None => out.push_str(&format!("event record class {}, ", event.id)),
            }
        }
    }
    out.push_str(scope_name(path.scope));
    let names = root(trace, owner, path.scope).and_then(|root| names(root, &path.steps)).unwrap_or_default();
    for name in names {
        out.push_str(&format!(" `{name}`"));
    }
    out
}
