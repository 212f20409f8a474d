//! Texts with any bytes between parts, as an automaton that is unrolled over the places of the text.
//!
//! It looks for one part after the other, as Knuth, Morris and Pratt do: after a byte that does not fit it knows how much
//! of the part has been seen anyway. Each pair of a place and a state that can be reached is a node of code:
//!
//! ```text
//! "*ab*"      place 0           place 1           place 2
//!             seen ""  ─ a ──>  seen "a"  ─ b ──> found: yes
//!                │                 │ a ─────────> seen "a"
//!                └─ other ─────> seen ""  ─ ...         a zero byte: no
//! ```
//!
//! The first part must stand at the beginning. The last one must stand at the end: it is looked for
//! like the others, and the answer is yes if all of it is seen where the text ends. States that
//! cannot be finished in the remaining part of the place are no.

use std::collections::BTreeMap;

use kymo_ir::predicate::Assembler;

use super::assembly::BpfLabel;
use super::instruction::{BpfOperand, JumpCondition};
use super::text::{Inline, can_begin};
use super::{ANSWER, BpfCompiler, Targets};

/// How far the automaton is: parts found behind the first one, bytes seen of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GlobState {
    part: usize,
    seen: usize,
}

struct Automaton<'g> {
    /// All but the first part.
    parts: &'g [Box<[u8]>],
    /// For each part and each count of bytes seen: the most bytes seen that are fewer.
    shorter: Vec<Vec<usize>>,
    /// For each part: the bytes of it and of those behind it.
    bytes_left: Vec<usize>,
}

impl<'g> Automaton<'g> {
    fn new(parts: &'g [Box<[u8]>]) -> Self {
        let shorter = parts.iter().map(|part| borders(part)).collect();
        let mut bytes_left: Vec<usize> = parts
            .iter()
            .rev()
            .scan(0, |sum, part| {
                *sum += part.len();
                Some(*sum)
            })
            .collect();
        bytes_left.reverse();
        Self { parts, shorter, bytes_left }
    }

    fn is_last(&self, state: GlobState) -> bool {
        state.part + 1 == self.parts.len()
    }

    /// Bytes that must follow at least.
    fn missing(&self, state: GlobState) -> usize {
        self.bytes_left[state.part] - state.seen
    }

    /// Any bytes may follow.
    fn is_decided(&self, state: GlobState) -> bool {
        self.is_last(state) && self.parts[state.part].is_empty()
    }

    /// The states that follow for certain bytes, the first one of a byte counts; any other byte leads to no bytes seen.
    fn steps(&self, state: GlobState) -> Vec<(u8, GlobState)> {
        let part = &self.parts[state.part];
        let mut steps: Vec<(u8, GlobState)> = Vec::new();
        let mut seen = state.seen;
        loop {
            if let Some(&byte) = part.get(seen)
                && steps.iter().all(|(other, _)| *other != byte)
            {
                let next = GlobState { part: state.part, seen: seen + 1 };
                let is_found = next.seen == part.len() && !self.is_last(state);
                steps.push((byte, if is_found { GlobState { part: state.part + 1, seen: 0 } } else { next }));
            }
            if seen == 0 {
                return steps;
            }
            seen = self.shorter[state.part][seen];
        }
    }
}

/// For each beginning of a part: the length of its longest end, shorter than itself, that the part begins with.
fn borders(part: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; part.len() + 1];
    let mut length = 0;
    for at in 1..part.len() {
        while length > 0 && part[at] != part[length] {
            length = borders[length];
        }
        length += usize::from(part[at] == part[length]);
        borders[at + 1] = length;
    }
    borders
}

impl BpfCompiler<'_> {
    pub(super) fn glob(&mut self, place: Inline, parts: &[Box<[u8]>], targets: Targets) {
        let is_possible = parts.iter().all(|part| !part.contains(&0));
        let Some((first, behind)) = parts.split_first().filter(|_| is_possible) else {
            return self.jump(targets.on_false);
        };
        if !can_begin(place, first) {
            return self.jump(targets.on_false);
        }
        self.equal(place.offset, first, targets.on_false);
        let automaton = Automaton::new(behind);
        let start = GlobState { part: 0, seen: 0 };
        if automaton.is_decided(start) {
            return self.jump(targets.on_true);
        }
        let mut nodes = BTreeMap::from([(start, self.code.label())]);
        for index in first.len() as u32..=place.capacity {
            let mut next = BTreeMap::new();
            for (state, label) in nodes {
                self.code.place(label);
                self.node(place, index, &automaton, state, &mut next, targets);
            }
            nodes = next;
        }
    }

    /// The node of a place and a state; those that it leads to are noted in `next`.
    fn node(
        &mut self,
        place: Inline,
        index: u32,
        automaton: &Automaton<'_>,
        state: GlobState,
        next: &mut BTreeMap<GlobState, BpfLabel>,
        targets: Targets,
    ) {
        let missing = automaton.missing(state);
        if missing > (place.capacity - index) as usize || self.code.is_full() {
            return self.code.jump(targets.on_false);
        }
        let at_end = if missing == 0 { targets.on_true } else { targets.on_false };
        if index == place.capacity {
            return self.code.jump(at_end);
        }
        self.load_byte(place, index);
        self.code.jump_if(JumpCondition::Equal, ANSWER, BpfOperand::Constant(0), at_end);
        let mut target = |compiler: &mut Self, state: GlobState| {
            if automaton.is_decided(state) {
                return targets.on_true;
            }
            *next.entry(state).or_insert_with(|| compiler.code.label())
        };
        for (byte, state) in automaton.steps(state) {
            let label = target(self, state);
            self.code.jump_if(JumpCondition::Equal, ANSWER, BpfOperand::Constant(i32::from(byte)), label);
        }
        let otherwise = target(self, GlobState { seen: 0, ..state });
        self.code.jump(otherwise);
    }
}
