//! Events of dynamic probes: their names, which the kernel's are short forms of, and the thread that hit them.
//!
//! | the kernel's field | in the trace |
//! |---|---|
//! | `common_pid` | `tid`, in the event's context |
//! | `__probe_ip` | `ip` |
//! | `__probe_func`, `__probe_ret_ip` | `ip` of the function, and `parent_ip`, to which it returns: LTTng's names |
//! | others | the names that the facts say |

use crate::format::{EventFormat, FormatField, FormatShape};
use crate::plan::{COMMON_PID, EventPlan, PlanBuilder};

/// Facts about an event that its description does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeFacts {
    /// Its name in the trace.
    pub name: String,
    /// Names of its fields in the trace, by the kernel's name, and whether each is an address.
    pub fields: Vec<(String, String, bool)>,
}

impl EventPlan {
    /// The plan for an event of a probe.
    #[must_use]
    pub fn of_probe(format: &EventFormat, facts: &ProbeFacts) -> Self {
        let mut builder = PlanBuilder::default();
        builder.integer("tid", (COMMON_PID, 4), (4, true, false));
        builder.context();
        for field in &format.fields {
            let fact = facts.fields.iter().find(|(kernel, _, _)| *kernel == field.name);
            let (name, is_hex) = match (field.name.as_str(), fact) {
                ("__probe_ip" | "__probe_func", _) => ("ip", true),
                ("__probe_ret_ip", _) => ("parent_ip", true),
                (_, Some((_, name, is_hex))) => (name.as_str(), *is_hex),
                (name, None) => (name, false),
            };
            add(&mut builder, name, field, is_hex);
        }
        builder.build(facts.name.clone(), String::new())
    }
}

fn add(builder: &mut PlanBuilder, name: &str, field: &FormatField, is_hex: bool) {
    let size = u8::try_from(field.size).ok().filter(|size| matches!(size, 1 | 2 | 4 | 8));
    match (field.shape, size) {
        (FormatShape::Scalar, Some(size)) => {
            builder.integer(name, (field.offset, size), (size, field.is_signed, is_hex));
        }
        (FormatShape::Located | FormatShape::LocatedBehind, _) => {
            builder.located(name, field, field.offset + field.size);
        }
        _ => builder.bytes(name, field),
    }
}
