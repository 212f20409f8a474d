//! The six scopes of one event record class, and the targets of their fields' references.

use std::collections::HashSet;

use kymo_format::model::{DataStreamClass, EventRecordClass, FieldClass, FieldKind, FieldPath, Scope, TraceClass};

/// The scopes that a record of one class has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scopes<'a> {
    trace: Option<&'a TraceClass>,
    stream: Option<&'a DataStreamClass>,
    event: Option<&'a EventRecordClass>,
}

impl<'a> Scopes<'a> {
    pub(crate) fn of_trace(trace: &'a TraceClass) -> Self {
        Self { trace: Some(trace), ..Self::default() }
    }

    pub(crate) fn of_stream(trace: &'a TraceClass, stream: &'a DataStreamClass) -> Self {
        Self { trace: Some(trace), stream: Some(stream), event: None }
    }

    pub(crate) fn of_event(self, event: &'a EventRecordClass) -> Self {
        Self { event: Some(event), ..self }
    }

    /// The structure of a scope.
    pub(crate) fn get(&self, scope: Scope) -> Option<&'a FieldClass> {
        match scope {
            Scope::PacketHeader => self.trace?.packet_header.as_ref(),
            Scope::PacketContext => self.stream?.packet_context.as_ref(),
            Scope::EventHeader => self.stream?.event_header.as_ref(),
            Scope::EventCommonContext => self.stream?.event_common_context.as_ref(),
            Scope::EventSpecificContext => self.event?.specific_context.as_ref(),
            Scope::EventPayload => self.event?.payload.as_ref(),
        }
    }

    /// The class of the field at `path`.
    pub(crate) fn field(&self, path: &FieldPath) -> Option<&'a FieldClass> {
        self.get(path.scope)?.at(&path.steps)
    }
}

/// Adds every path that a field in `class` refers to.
pub(crate) fn collect_references(class: Option<&FieldClass>, into: &mut HashSet<FieldPath>) {
    let Some(class) = class else { return };
    match &class.kind {
        FieldKind::DynamicText(text) => {
            into.insert(text.length.clone());
        }
        FieldKind::DynamicBlob(blob) => {
            into.insert(blob.length.clone());
        }
        FieldKind::Structure(structure) => {
            for member in &structure.members {
                collect_references(Some(&member.class), into);
            }
        }
        FieldKind::StaticArray(array) => collect_references(Some(&array.element), into),
        FieldKind::DynamicArray(array) => {
            into.insert(array.length.clone());
            collect_references(Some(&array.element), into);
        }
        FieldKind::Optional(optional) => {
            into.insert(optional.selector.clone());
            collect_references(Some(&optional.content), into);
        }
        FieldKind::Variant(variant) => {
            into.insert(variant.selector.clone());
            for option in &variant.options {
                collect_references(Some(&option.class), into);
            }
        }
        _ => {}
    }
}
