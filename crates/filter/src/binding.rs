//! What a filter is for one class of events, and what it says of all of them.

use kymo_ir::Predicate;
use kymo_ir::predicate::Test;

use crate::problem::{Missing, Note};

/// What a filter means for one class of events.
#[derive(Clone, Debug)]
pub struct Binding {
    /// What is to be asked of each event: without what is known before, the cheap tests first. It is sound
    /// ([`Predicate::verify`]).
    pub predicate: Predicate,
    /// The key that [`Fields`](crate::Fields) gave, for each input of the predicate.
    pub keys: Vec<u32>,
    /// Names that this class does not have.
    pub missing: Vec<Missing>,
    /// How the expression was understood.
    pub notes: Vec<Note>,
}

/// What a filter says of all events of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It keeps all of them.
    AlwaysTrue,
    /// It keeps none.
    NeverTrue,
    /// It depends on the event.
    Depends,
}

impl Binding {
    /// What it says of all events of the class.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.predicate.root {
            Test::Constant(Some(true)) => Verdict::AlwaysTrue,
            Test::Constant(_) => Verdict::NeverTrue,
            _ => {
                let outcomes = self.predicate.outcomes(&[]);
                match (outcomes.is_true, outcomes.is_false || outcomes.is_unknown) {
                    (true, false) => Verdict::AlwaysTrue,
                    (false, _) => Verdict::NeverTrue,
                    (true, true) => Verdict::Depends,
                }
            }
        }
    }
}
