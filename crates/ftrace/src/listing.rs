//! The events that the kernel's descriptions become, without a record.

use kymo_format::model::{FieldClass, FieldKind, Member};
use syscalls::Sysno;

use crate::calls::{CallFormats, CallTable};
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

/// The events of these descriptions. Those of `raw_syscalls` become two for each call that is described.
#[must_use]
pub fn list(formats: &[EventFormat]) -> Vec<ListedEvent> {
    let mut calls = CallFormats::default();
    formats.iter().filter(|format| format.system == "syscalls").for_each(|format| calls.add(format));
    let mut all = Vec::new();
    for format in formats.iter().filter(|format| format.system != "syscalls") {
        let kernel = format!("{}:{}", format.system, format.name);
        let plan_of: fn(&CallFormats, CallTable, u64) -> EventPlan = match kernel.as_str() {
            "raw_syscalls:sys_enter" => CallFormats::entry,
            "raw_syscalls:sys_exit" => CallFormats::exit,
            _ => {
                all.push(ListedEvent::of(kernel, &EventPlan::of(format), |ours| made_of(format, ours)));
                continue;
            }
        };
        let numbers = Sysno::iter().map(|call| call.id() as u64).filter(|number| calls.describes(*number));
        let own = |ours: &str| Some((ours.to_owned(), false));
        all.extend(
            numbers.map(|number| ListedEvent::of(kernel.clone(), &plan_of(&calls, CallTable::Native, number), own)),
        );
        all.push(ListedEvent::of(kernel.clone(), &plan_of(&calls, CallTable::Native, u64::MAX), own));
    }
    all
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
