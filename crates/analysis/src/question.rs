//! A question about traces: which events it needs, and the analysis that answers it.

use crate::mapping::RoleMapping;
use crate::{Analysis, AnyAnalysis, EventRole, Needs, Setup};

/// A question about traces, before their lanes are known.
pub struct Question<'a> {
    /// The roles and fields that it needs.
    pub needs: Needs,
    /// Roles without all of which there is no answer.
    pub essential: &'a [EventRole],
    /// Whether events of a role with this text of their name are of use.
    pub wanted: &'a (dyn Fn(EventRole, &str) -> bool + Sync),
    /// Makes the analysis, once lanes and classes are known.
    pub make: Make<'a>,
    /// The meaning of its own events; other mappings say nothing of roles that it has.
    pub mapping: Option<RoleMapping>,
    /// The analysis tells periods apart by itself.
    pub has_periods: bool,
    /// It needs the begins and ends of programs, not of kernels.
    pub is_of_programs: bool,
    /// Events that tell of threads are read whether the user selects them or not.
    pub reads_threads: bool,
}

/// A function that makes an analysis for the lanes and classes of a setup.
pub type Make<'a> = Box<dyn Fn(&Setup<'_>) -> Box<dyn AnyAnalysis> + Sync + 'a>;

impl<'a> Question<'a> {
    /// A question that needs all events of its roles. All that is generic in the analysis is compiled where this is called:
    /// call it in this crate, so that others need not compile it again.
    pub fn new<A: Analysis + 'static>(
        needs: Needs,
        essential: &'a [EventRole],
        make: impl Fn(&Setup<'_>) -> A + Sync + 'a,
    ) -> Self {
        Self {
            needs,
            essential,
            wanted: &|_, _| true,
            make: Box::new(move |setup| Box::new(make(setup))),
            mapping: None,
            has_periods: false,
            is_of_programs: false,
            reads_threads: true,
        }
    }

    /// Whether it is about each change of threads, so that it has no answer without some of them.
    #[must_use]
    pub fn needs_all_switches(&self) -> bool {
        self.essential.contains(&EventRole::Switch)
    }
}
