//! Threads at the desk: the remaining work of merges comes back in order, and a thread that panics
//! leaves no other one waiting.

use std::path::Path;
use std::sync::Arc;

use kymo_analysis::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, LaneNotes, Later, MemorySpool, Needs, PartShape, Question, Room,
    Setup, SpoolError,
};
use serde::{Deserialize, Serialize};

use crate::{AnalysisOptions, OpenOptions, Progress, Session};

/// Counts events, and merges in order.
struct Counting {
    panics_in: Option<Work>,
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Read,
    Merge,
    Later,
    End,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    events: u64,
    merges: u64,
    ends: u64,
}

/// The remaining work of a merge.
struct Left<'a> {
    counting: &'a Counting,
    number: u64,
    is_done: bool,
}

impl Counting {
    fn works(&self, work: Work) {
        assert!(self.panics_in != Some(work), "as it was told");
    }
}

impl Later<State> for Left<'_> {
    fn run(&mut self) {
        self.counting.works(Work::Later);
        assert!(!std::mem::replace(&mut self.is_done, true), "it is done once");
    }

    fn end(self: Box<Self>, state: &mut State) {
        self.counting.works(Work::End);
        assert!(self.is_done && self.number == state.ends, "{} comes back as {}", self.number, state.ends);
        state.ends += 1;
    }
}

impl Analysis for Counting {
    type State = State;
    type Lane<'a> = u64;
    type Note = ();

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "counting", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> State {
        State::default()
    }

    fn enter(&self, _: usize) -> u64 {
        0
    }

    fn step(&self, lane: &mut u64, _: &AnalysisEvent<'_>, _: &mut LaneNotes<()>) {
        *lane += 1;
    }

    fn note(&self, _: &mut State, _: usize, _: i64, (): ()) {}

    fn leave(&self, state: &mut State, _: usize, end: u64) {
        state.events += end;
    }

    fn merge(&self, _: &mut State, _: State) {
        unreachable!("what is left to do is left to others")
    }

    fn merges_in_order(&self) -> bool {
        true
    }

    fn merge_later<'a>(&'a self, left: &mut State, right: State) -> Option<Box<dyn Later<State> + 'a>> {
        self.works(Work::Merge);
        assert_eq!(right.merges, 0, "only the first state is merged with others");
        left.events += right.events;
        left.merges += 1;
        Some(Box::new(Left { counting: self, number: left.merges - 1, is_done: false }))
    }

    fn anchor(&self, _: &mut State) {
        self.works(Work::Read);
    }

    fn finish(&self, _: &State) -> Result<Answer, SpoolError> {
        Ok(Answer::default())
    }
}

fn count(threads: usize, panics_in: Option<Work>) -> State {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    let mut session = Session::open(&[demo], &OpenOptions { threads, ..OpenOptions::default() }).unwrap();
    session.slice_bytes = Some(4096);
    let make = |_: &Setup<'_>| Counting { panics_in };
    let question = Question::new(Needs { all: true, ..Needs::default() }, &[], make);
    let room = Room { spool: Arc::<MemorySpool>::default(), budget_bytes: 1 << 20 };
    match session.find(&question, &AnalysisOptions::default(), &room, &Progress::default()) {
        Ok(found) => found.state.downcast(),
        Err(problem) => panic!("{problem}"),
    }
}

#[test]
fn what_is_left_to_do_comes_back_in_order() {
    let whole = count(1, None);
    assert!(whole.merges > 3);
    for threads in 2..6 {
        let State { events, merges, ends } = count(threads, None);
        assert_eq!((events, ends), (whole.events, merges), "{threads} threads");
    }
}

#[test]
fn a_thread_that_panics_leaves_nobody_waiting() {
    for work in [Work::Read, Work::Merge, Work::Later, Work::End] {
        let panic = std::panic::catch_unwind(|| count(3, Some(work))).expect_err("it panics");
        drop(panic);
    }
}
