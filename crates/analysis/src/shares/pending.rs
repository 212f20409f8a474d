//! The amounts of a run as long as its thread is unknown, and how certain the thread is once it is
//! known.

use serde::{Deserialize, Serialize};

use super::Amount;

/// Usage, and the doubtful part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct AmountShare<A> {
    pub(crate) all: A,
    /// The part that may belong to another thread.
    pub(crate) doubt: A,
}

/// Usage of a run while its ends are unknown.
///
/// An *epoch* is the time between two holes, by the number of holes that began before it. Only
/// usage in the first epoch can belong to the thread of the run's begin, and only usage in the last
/// one to the thread of its end: the rest is in doubt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending<A> {
    /// The first and the last epoch, if there are any.
    epochs: Vec<(usize, A)>,
    doubt: A,
}

impl<A: Amount> AmountShare<A> {
    pub(crate) fn certain(amount: A) -> Self {
        Self { all: amount, doubt: A::default() }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.all.add(&other.all);
        self.doubt.add(&other.doubt);
    }
}

impl<A: Amount> Pending<A> {
    /// Adds usage in an epoch; `None`: in a hole.
    #[inline]
    pub(crate) fn add(&mut self, epoch: Option<usize>, amount: A) {
        match epoch {
            None => self.doubt.add(&amount),
            Some(epoch) => self.push((epoch, amount)),
        }
    }

    /// Adds later usage.
    pub(crate) fn append(&mut self, later: Self) {
        later.epochs.into_iter().for_each(|epoch| self.push(epoch));
        self.doubt.add(&later.doubt);
    }

    #[inline]
    fn push(&mut self, (epoch, amount): (usize, A)) {
        match self.epochs.last_mut().filter(|last| last.0 == epoch) {
            Some(last) => last.1.add(&amount),
            None => self.epochs.push((epoch, amount)),
        }
        if self.epochs.len() > 2 {
            let between = self.epochs.remove(1);
            self.doubt.add(&between.1);
        }
    }

    pub(crate) fn all(&self) -> A {
        let mut all = self.doubt;
        self.epochs.iter().for_each(|(_, amount)| all.add(amount));
        all
    }

    pub(crate) fn all_in_doubt(&self) -> AmountShare<A> {
        let all = self.all();
        AmountShare { all, doubt: all }
    }

    /// All of it, in doubt where it is not of a certain epoch.
    pub(crate) fn share(&self, is_certain: impl Fn(usize) -> bool) -> AmountShare<A> {
        let mut doubt = self.doubt;
        self.epochs.iter().filter(|(epoch, _)| !is_certain(*epoch)).for_each(|(_, amount)| doubt.add(amount));
        AmountShare { all: self.all(), doubt }
    }
}
