//! Which events of programs a trace is to have.

use crate::definition::EventClass;
use crate::program::Identity;

/// What becomes of events of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// None is wanted.
    Drop,
    /// All are.
    Keep,
    /// It depends: [`Choose::passes`].
    Ask,
}

/// Which events a session wants.
pub trait Choose {
    /// Asked once for each class of each program, and again after [`Output::choose_again`](crate::output::Output::choose_again).
    fn choose(&mut self, program: &Identity, class: &EventClass) -> Choice;

    /// Asked for each event of classes that are [`Choice::Ask`]: its contexts and its fields, as they are.
    fn passes(&mut self, program: &Identity, class: &EventClass, contexts: &[u8], fields: &[u8]) -> bool;
}

/// All of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Choose for Everything {
    fn choose(&mut self, _: &Identity, _: &EventClass) -> Choice {
        Choice::Keep
    }

    fn passes(&mut self, _: &Identity, _: &EventClass, _: &[u8], _: &[u8]) -> bool {
        true
    }
}
