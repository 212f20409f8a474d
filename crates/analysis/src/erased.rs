//! Analyses of a type that is not known to the code that drives them.
//!
//! ```text
//! generic, compiled once for each analysis      driver, compiled once
//! Analysis, Part<A>, its state as bytes    <──  &dyn AnyAnalysis, Box<dyn AnyPart>, AnyState
//! ```
//!
//! The driver makes a virtual call for each batch of events and for each round of notes, never for each event. Code that is
//! generic over [`Analysis`] is compiled once for each analysis: threads, queues, caches and periods are not generic.

use std::any::Any;

use crate::{Analysis, Answer, Feed, Later, PartShape, Setup, SpoolError, StateError, TracePart};

/// The state of some analysis. Only the analysis that made it can use it; another one panics.
pub struct AnyState(Box<dyn Any + Send>);

impl AnyState {
    fn new<S: Send + 'static>(state: S) -> Self {
        Self(Box::new(state))
    }

    /// The state, as the type that its analysis has.
    ///
    /// # Panics
    ///
    /// It is of another analysis.
    #[must_use]
    pub fn downcast<S: 'static>(self) -> S {
        *self.0.downcast().expect(FOREIGN)
    }

    /// The same, borrowed.
    ///
    /// # Panics
    ///
    /// It is of another analysis.
    #[must_use]
    pub fn downcast_ref<S: 'static>(&self) -> &S {
        self.0.downcast_ref().expect(FOREIGN)
    }

    fn downcast_mut<S: 'static>(&mut self) -> &mut S {
        self.0.downcast_mut().expect(FOREIGN)
    }
}

const FOREIGN: &str = "a state is given to the analysis that made it";

/// An analysis of any type; all that have type `Analysis` are. Each method is described there.
pub trait AnyAnalysis: Sync {
    /// See [`Analysis::shape`].
    fn shape(&self) -> PartShape;

    /// See [`Analysis::init`].
    fn init(&self) -> AnyState;

    /// Reads a part with so many lanes, the first one of a trace or another one. `None`: not all of it was fed.
    fn read(&self, lanes: usize, is_first: bool, feed: &mut Feed<'_>) -> Option<AnyState>;

    /// See [`Analysis::merge`].
    fn merge(&self, left: &mut AnyState, right: AnyState);

    /// See [`Analysis::merges_in_order`].
    fn merges_in_order(&self) -> bool;

    /// See [`Analysis::merge_later`].
    fn merge_later<'a>(&'a self, left: &mut AnyState, right: AnyState) -> Option<Box<dyn Later<AnyState> + 'a>>;

    /// See [`Analysis::forget`].
    fn forget(&self, state: &mut AnyState, at: i64) -> bool;

    /// See [`Analysis::condense`].
    fn condense(&self, state: &mut AnyState);

    /// See [`Analysis::is_odd`].
    fn is_odd(&self, state: &AnyState) -> bool;

    /// See [`Analysis::finish`].
    ///
    /// # Errors
    ///
    /// Rows that did not fit into memory cannot be put aside, or do not come back.
    fn finish(&self, state: &AnyState) -> Result<Answer, SpoolError>;

    /// See [`crate::encode`].
    ///
    /// # Errors
    ///
    /// Parts of it are on a disk that cannot be read.
    fn encode(&self, setup: &Setup<'_>, state: &AnyState) -> Result<Vec<u8>, postcard::Error>;

    /// See [`crate::decode`].
    ///
    /// # Errors
    ///
    /// The bytes are no state of this analysis, version and setup, or not as they were.
    fn decode(&self, setup: &Setup<'_>, bytes: &[u8]) -> Result<AnyState, StateError>;

    /// The analysis, to be asked for its type.
    fn as_any(&self) -> &dyn Any;
}

impl dyn AnyAnalysis + '_ {
    /// The analysis, as the type that it has.
    ///
    /// # Panics
    ///
    /// It has another type.
    #[must_use]
    pub fn downcast_ref<A: Analysis + 'static>(&self) -> &A {
        self.as_any().downcast_ref().expect("an analysis is asked for the type that it was made with")
    }
}

impl<A: Analysis + 'static> AnyAnalysis for A {
    fn shape(&self) -> PartShape {
        Analysis::shape(self)
    }

    fn init(&self) -> AnyState {
        AnyState::new(Analysis::init(self))
    }

    fn read(&self, lanes: usize, is_first: bool, feed: &mut Feed<'_>) -> Option<AnyState> {
        TracePart::read(self, lanes, is_first, feed).map(AnyState::new)
    }

    fn merge(&self, left: &mut AnyState, right: AnyState) {
        Analysis::merge(self, left.downcast_mut(), right.downcast());
    }

    fn merges_in_order(&self) -> bool {
        Analysis::merges_in_order(self)
    }

    fn merge_later<'a>(&'a self, left: &mut AnyState, right: AnyState) -> Option<Box<dyn Later<AnyState> + 'a>> {
        let later = Analysis::merge_later(self, left.downcast_mut(), right.downcast())?;
        Some(Box::new(AnyLater(later)))
    }

    fn forget(&self, state: &mut AnyState, at: i64) -> bool {
        Analysis::forget(self, state.downcast_mut(), at)
    }

    fn condense(&self, state: &mut AnyState) {
        Analysis::condense(self, state.downcast_mut());
    }

    fn is_odd(&self, state: &AnyState) -> bool {
        Analysis::is_odd(self, state.downcast_ref())
    }

    fn finish(&self, state: &AnyState) -> Result<Answer, SpoolError> {
        Analysis::finish(self, state.downcast_ref())
    }

    fn encode(&self, setup: &Setup<'_>, state: &AnyState) -> Result<Vec<u8>, postcard::Error> {
        crate::encode(self, setup, state.downcast_ref())
    }

    fn decode(&self, setup: &Setup<'_>, bytes: &[u8]) -> Result<AnyState, StateError> {
        crate::decode(self, setup, bytes).map(AnyState::new)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct AnyLater<'a, S>(Box<dyn Later<S> + 'a>);

impl<S: 'static> Later<AnyState> for AnyLater<'_, S> {
    fn run(&mut self) {
        self.0.run();
    }

    fn end(self: Box<Self>, state: &mut AnyState) {
        self.0.end(state.downcast_mut());
    }
}
