//! The budget for reading metadata, and where the parts of a trace class were written.
//!
//! Types and aliases are shared by all that name them, so that few words can mean very much, and a reference may
//! lead through all of it. One budget for the whole trace class keeps that from hurting.

use std::cell::Cell;
use std::ops::Range;

/// Fields and labels of a trace class, at most.
pub(crate) const FIELDS_MAX: u64 = 1 << 20;
/// Steps that finding all references may take.
pub(crate) const STEPS_MAX: u64 = 1 << 26;
/// Steps taken for each field that a reference may mean: the way there is kept.
pub(crate) const TARGET_STEPS: usize = 64;
/// Reported findings of one kind, at most: one mistake in generated text may be there ten thousand
/// times.
const FINDINGS_MAX: usize = 100;

/// The remaining budget.
#[derive(Debug)]
pub(crate) struct Budget {
    fields: Cell<u64>,
    steps: Cell<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { fields: Cell::new(FIELDS_MAX), steps: Cell::new(STEPS_MAX) }
    }
}

impl Budget {
    /// Takes fields and labels; false if there are not as many.
    pub(crate) fn take_fields(&self, count: usize) -> bool {
        take(&self.fields, count)
    }

    /// Takes steps from name to name; false if there are not as many.
    pub(crate) fn take_steps(&self, count: usize) -> bool {
        take(&self.steps, count)
    }

    /// A reference was not found because its steps ran out.
    pub(crate) fn steps_ran_out(&self) -> bool {
        self.steps.get() == 0
    }
}

fn take(left: &Cell<u64>, amount: usize) -> bool {
    let rest = left.get().checked_sub(amount as u64);
    left.set(rest.unwrap_or(0));
    rest.is_some()
}

/// The places of a trace class' parts in the text, in the order of the class.
#[derive(Debug, Default)]
pub(crate) struct ClassPlaces {
    pub(crate) packet_header: Range<usize>,
    pub(crate) streams: Vec<StreamPlaces>,
}

/// Of one data stream class.
#[derive(Debug, Default)]
pub(crate) struct StreamPlaces {
    pub(crate) own: Range<usize>,
    pub(crate) events: Vec<Range<usize>>,
}

/// The first findings in the order of the text; one more counts those left out.
pub(crate) fn first_of<P>(mut findings: Vec<(Range<usize>, P)>, more: impl Fn(usize) -> P) -> Vec<(Range<usize>, P)> {
    findings.sort_by_key(|(span, _)| span.start);
    if findings.len() > FINDINGS_MAX {
        let left_out = more(findings.len() - FINDINGS_MAX);
        findings.truncate(FINDINGS_MAX);
        let last = findings[FINDINGS_MAX - 1].0.clone();
        findings.push((last, left_out));
    }
    findings
}
