//! The events that the kernel's descriptions become, without a record.

use kymo_format::model::{FieldClass, FieldKind, Member};

use crate::calls::{CallFormats, CallTable};
use crate::catalog::CALLS_MAX;
use crate::format::EventFormat;
use crate::names::field_name;
use crate::plan::EventPlan;
use crate::shape::ListedType;

/// An event as it would be in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEvent {
    /// The kernel's name, as `SYSTEM:NAME`.
    pub kernel: String,
    /// The name in a trace.
    pub name: String,
    /// Its fields; lengths of sequences are part of these.
    pub fields: Vec<ListedField>,
}

/// A field of such an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedField {
    /// Its name in a trace.
    pub name: String,
    /// Its type.
    pub shape: ListedType,
    /// The kernel's field that it is made of, if it is one.
    pub kernel: Option<String>,
    /// Its value is another one than that of the kernel's field.
    pub is_converted: bool,
}

/// An event that records of a description become.
#[derive(Debug)]
pub struct PlannedEvent<'f> {
    /// The description.
    pub format: &'f EventFormat,
    /// The call that records are about, and its number; all others that no plan here is about have one above them all.
    pub call: Option<(CallTable, u64)>,
    /// The kernel describes the call, if it is one.
    pub is_described: bool,
    /// How records become events.
    pub plan: EventPlan,
}

/// The events of these descriptions. Those of `raw_syscalls` become one for each call, in each of these numberings.
#[must_use]
pub fn planned<'f>(formats: &'f [EventFormat], has_texts: bool, tables: &[CallTable]) -> Vec<PlannedEvent<'f>> {
    let mut calls = CallFormats::default();
    calls.has_texts = has_texts;
    formats.iter().filter(|format| format.system == "syscalls").for_each(|format| calls.add(format));
    let mut all = Vec::new();
    for format in formats.iter().filter(|format| format.system != "syscalls") {
        let plan_of: fn(&CallFormats, CallTable, u64) -> EventPlan = match (&format.system[..], &format.name[..]) {
            ("raw_syscalls", "sys_enter") => CallFormats::entry,
            ("raw_syscalls", "sys_exit") => CallFormats::exit,
            _ => {
                all.push(PlannedEvent { format, call: None, is_described: true, plan: EventPlan::of(format) });
                continue;
            }
        };
        for &table in tables {
            let numbers = (0..CALLS_MAX).filter(|number| calls.name(table, *number).is_some()).chain([u64::MAX]);
            all.extend(numbers.map(|number| PlannedEvent {
                format,
                call: Some((table, number)),
                is_described: number == u64::MAX || table == CallTable::Native && calls.describes(number),
                plan: plan_of(&calls, table, number),
            }));
        }
    }
    all
}

/// The events of these descriptions. Those of `raw_syscalls` become two for each call that is described.
#[must_use]
pub fn list(formats: &[EventFormat]) -> Vec<ListedEvent> {
    let planned = planned(formats, false, &[CallTable::Native]);
    let listed =
        planned.into_iter().filter(|event| event.is_described).map(|PlannedEvent { format, call, plan, .. }| {
            let kernel = format!("{}:{}", format.system, format.name);
            ListedEvent::of(kernel, &plan, |ours| match call {
                Some(_) => Some((ours.to_owned(), false)),
                None => made_of(format, ours),
            })
        });
    listed.collect()
}

impl ListedEvent {
    /// An event whose fields are these.
    ///
    /// # Panics
    ///
    /// If they are no structure.
    #[must_use]
    pub fn new(kernel: String, name: String, fields: &FieldClass) -> Self {
        let FieldKind::Structure(structure) = &fields.kind else { panic!("fields are a structure") };
        let is_length = |name: &str| {
            let of = name.strip_prefix('_').and_then(|name| name.strip_suffix("_length"));
            of.is_some_and(|of| structure.members.iter().any(|member| member.name == of))
        };
        let members = structure.members.iter().filter(|member| !is_length(&member.name));
        let fields = members.map(|Member { name, class }| ListedField {
            name: name.clone(),
            shape: ListedType::of(class),
            kernel: None,
            is_converted: false,
        });
        Self { kernel, name, fields: fields.collect() }
    }

    fn of(kernel: String, plan: &EventPlan, made_of: impl Fn(&str) -> Option<(String, bool)>) -> Self {
        let mut event = Self::new(kernel, plan.name.clone(), &plan.payload);
        for field in &mut event.fields {
            match made_of(&field.name) {
                Some((kernel, is_converted)) => (field.kernel, field.is_converted) = (Some(kernel), is_converted),
                None => field.is_converted = true,
            }
        }
        event
    }
}

/// The kernel's field behind one of ours, and whether its value is converted.
fn made_of(format: &EventFormat, ours: &str) -> Option<(String, bool)> {
    format.fields.iter().find_map(|field| {
        let (name, making) = field_name(&format.system, &field.name);
        (name == ours).then(|| (field.name.clone(), making.changes_value()))
    })
}
