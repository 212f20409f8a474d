//! Mappings: which events have which roles, and which of their fields are the role's, as files that people edit.
//!
//! ```toml
//! name = "my-rtos"
//! when = 'env.tracer_name == "my-rtos"'      # for which traces; without it, for all
//!
//! [context]                                  # who was there when it happened: fields of events of all roles
//! cpu = "packet.cpu_id"
//! tid = ["$ctx.tid", "$ctx.vtid"]            # the first that a class of events has
//!
//! [[thread_switch]]
//! event = "task_*_resumed"                   # `*` is any text, `?` any character; a list is any of them
//! when = "from != to"                        # of which events
//! prev_tid = "from"
//! next_tid = "to"
//! next_comm = { capture = 1 }                # what the first `*` stands for
//! prev_state = { value = 1 }                 # the same for all events
//! ```
//!
//! ```text
//! text ──read──> Mapping ──bind (crate::bind)──> what events of a trace mean
//!                   └──write──> text, with what each role means
//! ```
//!
//! Fields are paths of the filter language, conditions are its expressions. Mappings of known tracers are built in.

mod carried;
mod pattern;
mod problem;
pub(crate) mod read;
mod write;

use std::fmt;
use std::sync::LazyLock;

use kymo_filter::{Filter, NamePath};
use kymo_format::TraceClass;

use crate::roles::{CONTEXT, EventRole, FieldIndex};

pub use pattern::{Captures, NamePattern};
pub use problem::{MappingErrors, MappingProblem, MappingProblemKind};

/// Binds events to roles.
#[derive(Clone, Debug)]
pub struct RoleMapping {
    /// Its name for people.
    pub name: String,
    /// Of traces for which this is true; of all if there is none.
    pub when: Option<Filter>,
    /// Where each field of [`CONTEXT`] is.
    pub context: Vec<Alternatives>,
    /// In the order in which they are tried.
    pub sections: Vec<Section>,
}

/// Events of a role.
#[derive(Clone, Debug)]
pub struct Section {
    /// The role.
    pub role: EventRole,
    /// Classes of events with a name that matches one of these.
    pub events: Vec<NamePattern>,
    /// Of their events those for which this is true; all if there is none.
    pub when: Option<Filter>,
    /// Where each field of [`CONTEXT`] is, where that differs from the mapping's.
    pub context: Vec<Alternatives>,
    /// Where each field of the role is.
    pub fields: Vec<Alternatives>,
    /// Fields that this section requires, beside those that the role requires.
    pub required: Vec<FieldIndex>,
}

/// The first that a class of events has; nothing, if the mapping does not say where.
pub type Alternatives = Vec<ValueSource>;

/// Where a field's value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSource {
    /// A field of the event.
    Path(NamePath),
    /// The same for all events.
    Integer(i64),
    /// The same for all events.
    Text(String),
    /// The text of a star of the pattern, counted from 1.
    Capture(usize),
}

/// Mappings that are built in, in the order in which they are tried; the last one has usual names of contexts only.
const BUILT_IN: [&str; 7] = [
    include_str!("mappings/lttng-kernel.toml"),
    include_str!("mappings/lttng-ust.toml"),
    include_str!("mappings/tracepoints.toml"),
    include_str!("mappings/genode.toml"),
    include_str!("mappings/barrelfish.toml"),
    include_str!("mappings/kymo.toml"),
    include_str!("mappings/default.toml"),
];

impl RoleMapping {
    /// An empty mapping.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), when: None, context: vec![Vec::new(); CONTEXT.len()], sections: Vec::new() }
    }

    /// Reads a mapping from its text.
    ///
    /// # Errors
    ///
    /// All that is wrong with it.
    ///
    /// ```
    /// use kymo_analysis::mapping::RoleMapping;
    /// let error = RoleMapping::parse("name = 'mine'\n[[thread_swich]]\nevent = 'resumed'").unwrap_err();
    /// assert_eq!(error.to_string(), "2:3: there is no role `thread_swich`; did you mean `thread_switch`?");
    /// ```
    pub fn parse(text: &str) -> Result<Self, MappingErrors> {
        read::mapping(text)
    }

    /// The mapping that a trace carries: the meanings that the schemas of its programs give to their events. `None`:
    /// it carries none.
    #[must_use]
    pub fn carried(trace: &TraceClass) -> Option<Self> {
        carried::mapping(trace)
    }

    /// The mappings that are built in, in the order in which they are tried. Their text is parsed once, when they are first asked for.
    ///
    /// # Panics
    ///
    /// Never: they are tested.
    #[must_use]
    pub fn built_in() -> &'static [Self] {
        static PARSED: LazyLock<Vec<RoleMapping>> = LazyLock::new(|| {
            BUILT_IN
                .iter()
                .map(|text| RoleMapping::parse(text).expect("mappings that are built in are tested"))
                .collect()
        });
        &PARSED
    }
}

impl Section {
    /// A section without fields.
    #[must_use]
    pub fn new(role: EventRole, events: Vec<NamePattern>) -> Self {
        let fields = vec![Vec::new(); role.facts().fields.len()];
        Self { role, events, when: None, context: vec![Vec::new(); CONTEXT.len()], fields, required: Vec::new() }
    }

    /// The texts of the stars of the first pattern that a name matches.
    #[must_use]
    pub fn captures<'n>(&self, name: &'n str) -> Option<Captures<'n>> {
        self.events.iter().find_map(|pattern| pattern.captures(name))
    }
}

impl fmt::Display for RoleMapping {
    /// As a file to edit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write::mapping(self, f)
    }
}

impl fmt::Display for Section {
    /// As it stands in a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write::section(self, f)
    }
}

impl fmt::Display for ValueSource {
    /// As it stands in a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write::source(self, f)
    }
}

#[cfg(test)]
mod tests;
