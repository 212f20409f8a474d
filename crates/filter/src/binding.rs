//! The meaning of a filter for one class of events, and its verdict on all of them.

use kymo_ir::Predicate;
use kymo_ir::predicate::Test;

use crate::problem::{FilterNote, MissingName};

/// The meaning of a filter for one class of events.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The predicate to evaluate for each event: without the parts known before, the cheap tests
    /// first. It is sound ([`Predicate::verify`]).
    pub predicate: Predicate,
    /// The key that [`FieldResolver`](crate::FieldResolver) gave, for each input of the predicate.
    pub keys: Vec<u32>,
    /// Names that this class does not have.
    pub missing: Vec<MissingName>,
    /// How the expression was understood.
    pub notes: Vec<FilterNote>,
}

/// The verdict of a filter on all events of a class.
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
    /// The verdict on all events of the class.
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
