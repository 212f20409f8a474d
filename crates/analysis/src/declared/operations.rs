//! Operations: from a begin event to the end event with the same key, and the steps between them.
//!
//! ```text
//! CPU 0   begin 7 ───────── step 7 ───────────── end 7     offset of a step: since the begin
//! CPU 1            step 7 ────────── step 7                latency of a step: since the step before
//! CPU 2   step 8  begin 8 ─────────────────────── end 8    step 8 comes before its begin: clocks disagree
//! ```
//!
//! Steps may come from any CPU, so that a part of a trace can decide nothing until all parts before
//! it have: it keeps its events ([`OperationPost`]), and they are played back when it is merged. Only
//! the first part has open operations and sums.
//!
//! Several operations with one key may be open, if their groups differ or the places where they
//! began: an event is a step of each of them.

mod report;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::ranking::Ranking;
use crate::windows::Windows;
use crate::{Histogram, Wishes};

pub(super) use report::OperationNames;

/// State of one item: the operations of a part of a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Operations {
    /// Events that wait for the parts before this one.
    posts: Vec<OperationPost>,
    /// Nothing comes before.
    is_first: bool,
    keys: HashMap<Key, OpenKey>,
    /// Open operations and their steps, together.
    open: usize,
    sums: OperationSums,
    /// Events that lack a field.
    pub(super) lacking: u64,
}

/// Facts that decide about operations.
pub(super) struct OperationContext<'a> {
    pub(super) holes: &'a Windows,
    pub(super) wishes: &'a Wishes,
    /// How far clocks of CPUs may disagree.
    pub(super) early_ns: u64,
}

/// An event of operations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OperationPost {
    pub(super) key: Key,
    pub(super) act: OperationAct,
    pub(super) step: OperationStep,
    /// It is a step of the operations that are open with its key; false where another rule has said so already.
    pub(super) is_step: bool,
    /// Its CPU and thread are wanted.
    pub(super) is_wanted: bool,
}

/// The effect of an event on operations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum OperationAct {
    Begin(OperationIdentity),
    Step,
    End(OperationIdentity),
}

/// The parts of an operation's identity that its steps need not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OperationIdentity {
    pub(super) group: Key,
    pub(super) within: Key,
}

/// When and where an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct OperationStep {
    pub(super) time: i64,
    /// Place of its name among the names of all classes of events.
    pub(super) name: u32,
    pub(super) cpu: Option<u32>,
    /// Its machine.
    pub(super) host: u16,
}

/// The operations that are open with one key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct OpenKey {
    operations: Vec<OpenOperation>,
    /// The last step without an operation, if one that begins soon may have it.
    early: Option<i64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct OpenOperation {
    identity: OperationIdentity,
    begin: OperationStep,
    is_wanted: bool,
    /// A step came before the begin, as clocks say.
    is_out_of_order: bool,
    steps: Vec<OperationStep>,
}

/// The decided operations.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OperationSums {
    groups: HashMap<Key, OperationGroup>,
    /// Groups beyond [`ROWS_MAX`] together.
    others: OperationGroup,
    steps: HashMap<(Key, u32), StepSums>,
    /// Steps beyond [`ROWS_MAX`] together.
    other_steps: StepSums,
    longest: Ranking<LongOperation>,
    unmatched: UnmatchedSums,
}

/// The figures of the operations of a group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct OperationGroup {
    durations: Histogram,
    never_ended: u64,
    lost_inside: u64,
    out_of_order: u64,
}

/// The figures of a step of a group's operations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StepSums {
    /// Since the begin.
    offsets: Histogram,
    /// Since the step before.
    latencies: Histogram,
}

/// Events without an operation, and operations that were given up.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct UnmatchedSums {
    began_before: u64,
    /// Ends of operations that may have begun in a hole.
    lost_inside: u64,
    loose_steps: u64,
    given_up: u64,
}

/// An operation that took long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct LongOperation {
    begin: OperationStep,
    group: Key,
    key: Key,
    /// The last one is the end.
    steps: Vec<OperationStep>,
}

/// Groups, and steps, that are told apart.
const ROWS_MAX: usize = 1 << 16;
/// Open operations and their steps, together: some 30 MB.
const OPEN_MAX: usize = 1 << 20;
/// The default number of the longest operations that are shown.
const LONGEST: usize = 10;

impl Operations {
    /// No operation was seen.
    pub(super) fn new(wishes: &Wishes) -> Self {
        let sums = OperationSums {
            groups: HashMap::new(),
            others: OperationGroup::default(),
            steps: HashMap::new(),
            other_steps: StepSums::default(),
            longest: Ranking::new(Some(wishes.top.unwrap_or(LONGEST))),
            unmatched: UnmatchedSums::default(),
        };
        Self { posts: Vec::new(), is_first: false, keys: HashMap::new(), open: 0, sums, lacking: 0 }
    }

    /// An event, behind all others so far.
    pub(super) fn note(&mut self, context: &OperationContext<'_>, post: OperationPost) {
        if self.is_first { self.play(context, post) } else { self.posts.push(post) }
    }

    /// Nothing comes before this part.
    pub(super) fn anchor(&mut self, context: &OperationContext<'_>) {
        self.is_first = true;
        std::mem::take(&mut self.posts).into_iter().for_each(|post| self.play(context, post));
    }

    /// Adds the part that follows, which is not the first.
    pub(super) fn merge(&mut self, context: &OperationContext<'_>, right: Self) {
        self.lacking += right.lacking;
        right.posts.into_iter().for_each(|post| self.note(context, post));
    }

    /// Whether each event is one of so many classes.
    pub(super) fn fits(&self, names: usize) -> bool {
        let fits = |step: &OperationStep| (step.name as usize) < names;
        let mut open = self.keys.values().flat_map(|open| &open.operations);
        let mut long = self.sums.longest.rows();
        self.posts.iter().all(|post| fits(&post.step))
            && open.all(|open| fits(&open.begin) && open.steps.iter().all(fits))
            && long.all(|long| fits(&long.begin) && long.steps.iter().all(fits))
            && self.sums.steps.keys().all(|(_, name)| (*name as usize) < names)
    }

    /// Decides about an event; everything before it is decided.
    fn play(&mut self, context: &OperationContext<'_>, post: OperationPost) {
        let OperationPost { key, act, step, is_step, is_wanted } = post;
        let Self { keys, open, sums, .. } = self;
        let with_key = keys.entry(key.clone()).or_default();
        match act {
            OperationAct::Begin(identity) => {
                if let Some(replaced) = with_key.take(&identity) {
                    *open -= replaced.weight();
                    sums.never_ended(context, &replaced);
                }
                *open += with_key.step(step, is_step);
                let is_before = |early: i64| early < step.time && early.abs_diff(step.time) <= context.early_ns;
                let is_out_of_order = with_key.early.is_some_and(is_before);
                with_key.operations.push(OpenOperation {
                    identity,
                    begin: step,
                    is_wanted,
                    is_out_of_order,
                    steps: Vec::new(),
                });
                *open += 1;
            }
            OperationAct::Step if with_key.operations.is_empty() => {
                sums.unmatched.loose_steps += 1;
                with_key.early = Some(step.time).filter(|_| context.early_ns > 0);
            }
            OperationAct::Step => *open += with_key.step(step, is_step),
            OperationAct::End(identity) => {
                match with_key.take(&identity) {
                    Some(mut ended) => {
                        *open -= ended.weight();
                        ended.steps.push(step);
                        sums.complete(context, &key, ended);
                    }
                    None if is_wanted => sums.ended_alone(context, step.time),
                    None => {}
                }
                *open += with_key.step(step, is_step);
            }
        }
        if with_key.operations.is_empty() && with_key.early.is_none() {
            keys.remove(&key);
        }
        if self.open.max(self.keys.len()) > OPEN_MAX {
            self.give_up(context, step.time);
        }
    }

    /// Gives up the older half of all open operations, if it does not help to forget early steps that no operation can
    /// have now.
    fn give_up(&mut self, context: &OperationContext<'_>, now: i64) {
        let Self { keys, open, sums, .. } = self;
        for with_key in keys.values_mut() {
            with_key.early = with_key.early.filter(|early| early.abs_diff(now) <= context.early_ns);
        }
        if keys.values().filter(|open| !open.is_empty()).count().max(*open) > OPEN_MAX {
            let mut begins: Vec<i64> =
                keys.values().flat_map(|open| &open.operations).map(|open| open.begin.time).collect();
            let middle = begins.len() / 2;
            let border = if begins.is_empty() { now } else { *begins.select_nth_unstable(middle).1 };
            for with_key in keys.values_mut() {
                with_key.early = None;
                for old in with_key.operations.extract_if(.., |operation| operation.begin.time <= border) {
                    sums.unmatched.given_up += u64::from(old.is_wanted);
                    sums.never_ended(context, &old);
                }
            }
            *open = keys.values().flat_map(|open| &open.operations).map(OpenOperation::weight).sum();
        }
        keys.retain(|_, open| !open.is_empty());
    }
}

impl OpenKey {
    fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.early.is_none()
    }

    fn take(&mut self, identity: &OperationIdentity) -> Option<OpenOperation> {
        let place = self.operations.iter().position(|open| open.identity == *identity)?;
        Some(self.operations.remove(place))
    }

    /// Adds a step to all operations; how many have it now.
    fn step(&mut self, step: OperationStep, is_step: bool) -> usize {
        if !is_step {
            return 0;
        }
        self.operations.iter_mut().for_each(|open| open.steps.push(step));
        self.operations.len()
    }
}

impl OpenOperation {
    fn weight(&self) -> usize {
        1 + self.steps.len()
    }
}

impl OperationSums {
    fn group(&mut self, group: &Key) -> &mut OperationGroup {
        let is_full = self.groups.len() >= ROWS_MAX && !self.groups.contains_key(group);
        if is_full { &mut self.others } else { self.groups.entry(group.clone()).or_default() }
    }

    fn complete(&mut self, context: &OperationContext<'_>, key: &Key, ended: OpenOperation) {
        let OpenOperation { identity: OperationIdentity { group, .. }, begin, steps, .. } = ended;
        let end = steps.last().map_or(begin.time, |end| end.time);
        let duration = begin.time.abs_diff(end);
        if !ended.is_wanted || !context.wishes.wants_duration(duration) {
            return;
        }
        let sums = self.group(&group);
        if context.holes.touch(begin.time, end) {
            sums.lost_inside += 1;
            return;
        }
        if ended.is_out_of_order {
            sums.out_of_order += 1;
            return;
        }
        sums.durations.record(duration);
        let mut before = begin.time;
        for step in &steps {
            let known = (group.clone(), step.name);
            let is_full = self.steps.len() >= ROWS_MAX && !self.steps.contains_key(&known);
            let sums = if is_full { &mut self.other_steps } else { self.steps.entry(known).or_default() };
            sums.offsets.record(begin.time.abs_diff(step.time));
            sums.latencies.record(before.abs_diff(step.time));
            before = step.time;
        }
        self.longest.push(duration, || LongOperation { begin, group, key: key.clone(), steps });
    }

    /// The end of an operation was not seen: it has none, or in a hole.
    fn never_ended(&mut self, context: &OperationContext<'_>, open: &OpenOperation) {
        if open.is_wanted {
            let is_lost = context.holes.touch(open.begin.time, i64::MAX);
            let group = self.group(&open.identity.group);
            *if is_lost { &mut group.lost_inside } else { &mut group.never_ended } += 1;
        }
    }

    fn ended_alone(&mut self, context: &OperationContext<'_>, end: i64) {
        let is_lost = context.holes.touch(i64::MIN, end);
        let UnmatchedSums { began_before, lost_inside, .. } = &mut self.unmatched;
        *if is_lost { lost_inside } else { began_before } += 1;
    }
}
