//! Filters of events: programs evaluate them where possible, so that a rejected event is never
//! written; otherwise the recorder does.
//!
//! ```text
//! text ── class of events ──> ClassFilter ──┬── any: the filters of all sessions ── Placer ──┬── machine code, in the program's arena
//!                                           │                                               ├── bytecode, in its control file
//!                                           │                                               └── nowhere: all events are recorded
//!                                           └── asked ──> Asked: what each session asks of what was recorded
//! ```
//!
//! A filter means the same wherever it runs: the evaluator of [`kymo_ir::predicate`] defines it.
//! [`Placed`] tells where a program has it and why.
//!
//! A program's slots, pages and bytes of bytecode are never used twice while it lives, so that a
//! site that still uses an old filter finds that very one. The same question for the same arguments
//! is one filter, however often it is switched off and on again.

mod arena;
mod ask;
mod class;
mod compile;
mod judge;
mod names;
mod texts;
mod why;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use kymo_filter::Verdict;
use kymo_lane::{Arena, FIRST_SLOT, FilterCode, FilterCodeKind, FilterEngine, MemoryView, NoArena, RecorderSide};
use kymo_schema::definition::EventClass;

use crate::program::Program;
use arena::{ArenaOwner, ProgramArena};
use compile::{Compiled, FilterSource};
use judge::{JudgementQuestions, JudgementSource};

pub(crate) use ask::RecorderKey;
pub use ask::{RecordedEvent, RecorderFilter};
pub(crate) use class::arguments;
pub use class::{ClassFilter, key_value};
pub use compile::FilterCompiler;
pub use judge::{JudgedEntry, JudgedEvent};
pub use names::ProgramConstants;
pub(crate) use names::{contexts_named, is_of_traces};
pub use texts::{Wrong, check};
pub use why::FallbackReason;

/// Where a program has a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Control value for the event: 0 is off, 1 is on, other values are the filter's slot.
    pub control: u8,
    /// Where it runs.
    pub place: FilterPlace,
    /// Why it does not run as machine code, and why not as bytecode, if it does not.
    pub why: Vec<FallbackReason>,
}

/// Where a filter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterPlace {
    /// Nowhere: it is true of all events of the class, or of none.
    Nowhere,
    /// In the program, as machine code.
    Native,
    /// In the program, as bytecode.
    Interpreter,
    /// In the recorder: the program records all events of the class.
    Recorder,
}

impl Placed {
    /// The place, as people read it.
    #[must_use]
    pub fn place_name(&self) -> &'static str {
        match (self.place, self.control) {
            (FilterPlace::Nowhere, 0) => "never",
            (FilterPlace::Nowhere, _) => "always",
            (FilterPlace::Native, _) => "native",
            (FilterPlace::Interpreter, _) => "interpreter",
            (FilterPlace::Recorder, _) => "recorder",
        }
    }
}

/// Puts filters into one program.
#[derive(Debug)]
pub struct Placer {
    code: Result<ProgramArena, FallbackReason>,
    /// Where the next bytecode may go.
    bytecode_next: u32,
    /// Slots that no filter ever had, the last one first.
    slots: Vec<u8>,
    placed: HashMap<FilterSource, Placed>,
    /// Questions of judgements, and judgements.
    codes: HashMap<FilterSource, FilterCode>,
    judged: HashMap<JudgementSource, Placed>,
    /// Functions for all questions of a judgement.
    whole: HashMap<JudgementQuestions, FilterCode>,
}

impl Placer {
    /// Looks at the memory of a program, which that user owns, and with a PID here that may be
    /// known.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn new(program: &Program, user: u32) -> io::Result<Self> {
        let pid = program.known().pid_outside;
        Self::open(program.lane(), program.identity().arena, pid, user)
    }

    /// The same, for any memory.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn open<V: MemoryView>(
        lane: &RecorderSide<V>,
        arena: Result<Arena, NoArena>,
        pid: Option<u32>,
        user: u32,
    ) -> Result<Self, V::Fault> {
        let mut code = ProgramArena::open(arena, ArenaOwner { pid, user });
        // Questions of judgements, and users' programs, have code without a slot of their own.
        let used = u32::try_from(lane.arena_used()?).unwrap_or(u32::MAX);
        code.iter_mut().for_each(|code| code.was_used(0, used));
        let mut slots = Vec::new();
        let mut bytecode_next = 0_u32;
        for slot in (FIRST_SLOT..=u8::MAX).rev() {
            match lane.said_code(slot)? {
                Some(FilterCode { kind: FilterCodeKind::Native, offset, bytes }) => {
                    code.iter_mut().for_each(|code| code.was_used(offset, bytes));
                }
                Some(FilterCode { offset, bytes, .. }) => {
                    bytecode_next = bytecode_next.max(offset.saturating_add(bytes));
                }
                None => slots.push(slot),
            }
        }
        let (placed, codes, judged, whole) = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        Ok(Self { code, bytecode_next, slots, placed, codes, judged, whole })
    }

    /// Why no filter can run as machine code; `None`: one may.
    #[must_use]
    pub fn why_not_native(&self) -> Option<&FallbackReason> {
        self.code.as_ref().err()
    }

    /// Puts filters for events of these classes into the program. Filters that are placed together
    /// take less of its memory. The caller then switches the events to the [control
    /// values](Placed::control).
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn place<V: MemoryView>(
        &mut self,
        lane: &RecorderSide<V>,
        compiler: &mut FilterCompiler,
        wanted: &[(&ClassFilter, &EventClass)],
    ) -> Result<Vec<Placed>, V::Fault> {
        let questions: Vec<Result<FilterSource, Placed>> =
            wanted.iter().map(|(filter, class)| question(filter, class)).collect();
        let mut once = HashSet::new();
        let unknown = questions.iter().flatten().filter(|question| !self.placed.contains_key(question));
        // Filters beyond the free slots are not compiled.
        let new = unknown.filter(|question| once.insert(*question)).take(self.slots.len());
        let mut new: Vec<New> = new.map(|question| New::of(question, compiler)).collect();
        self.write_native(compiler, &mut new);
        self.note_used(lane)?;
        self.write_bytecode(lane, &mut new)?;
        let mut refused = HashMap::new();
        for new in new {
            match self.say(lane, &new)? {
                Ok(placed) => _ = self.placed.insert(new.question, placed),
                // A filter that is not in the program may find room there later.
                Err(placed) => _ = refused.insert(new.question, placed),
            }
        }
        let full = recorded(vec![FallbackReason::SlotsFull]);
        let placed = questions.into_iter().map(|question| match question {
            Ok(question) => self.placed.get(&question).or_else(|| refused.get(&question)).unwrap_or(&full).clone(),
            Err(placed) => placed,
        });
        Ok(placed.collect())
    }

    /// Writes all filters that can be machine code, in one piece.
    fn write_native(&mut self, compiler: &FilterCompiler, new: &mut [New]) {
        let code = match &mut self.code {
            Ok(code) => code,
            Err(why) => return new.iter_mut().for_each(|new| new.whys.push(why.clone())),
        };
        let mut pieces: Vec<(Arc<Compiled>, &mut New)> = Vec::new();
        for new in new {
            match compiler.native(&new.question, &new.filter) {
                Ok(_) => pieces.push((Arc::clone(&new.filter), new)),
                Err(refusal) => new.whys.push(refusal.into()),
            }
        }
        let codes = pieces.iter().filter_map(|(filter, _)| filter.code());
        let said = code.write_pieces(&codes.collect::<Vec<_>>());
        for ((_, new), said) in pieces.into_iter().zip(said) {
            match said {
                Ok(said) => new.said = Some(said),
                Err(why) => new.whys.push(why),
            }
        }
    }

    /// Writes the filters that are not machine code.
    fn write_bytecode<V: MemoryView>(&mut self, lane: &RecorderSide<V>, new: &mut [New]) -> Result<(), V::Fault> {
        for new in new.iter_mut().filter(|new| new.said.is_none()) {
            let bytes = match FilterCompiler::bytecode(&new.question, &new.filter) {
                Ok(bytes) => bytes,
                Err(refusal) => {
                    new.whys.push(refusal.into());
                    continue;
                }
            };
            new.said = self.write_behind_slots(lane, FilterCodeKind::Bytecode, bytes)?;
            if new.said.is_none() {
                new.whys.push(FallbackReason::BytecodeFull);
            }
        }
        Ok(())
    }

    /// Writes bytecode or a judgement; `None`: there is no room.
    fn write_behind_slots<V: MemoryView>(
        &mut self,
        lane: &RecorderSide<V>,
        kind: FilterCodeKind,
        bytes: &[u8],
    ) -> Result<Option<FilterCode>, V::Fault> {
        let offset = self.bytecode_next;
        if bytes.len() > lane.layout().filter_bytes.saturating_sub(offset) as usize {
            return Ok(None);
        }
        lane.put_bytecode(offset, bytes)?;
        self.bytecode_next += bytes.len() as u32;
        Ok(Some(FilterCode { kind, offset, bytes: bytes.len() as u32 }))
    }

    /// Writes machine code of a user's program; where it is, and its bytes. `None`: the program takes none, has no more room beside that
    /// of filters, or is gone.
    pub(crate) fn put_code<V: MemoryView>(&mut self, lane: &RecorderSide<V>, code: &[u8]) -> Option<(u32, u32)> {
        let arena = self.code.as_mut().ok()?;
        if arena.is_nearly_full() {
            return None;
        }
        let said = arena.write_pieces(&[code]);
        self.note_used(lane).ok()?;
        said.into_iter().flatten().next().map(|code| (code.offset, code.bytes))
    }

    /// The next recorder of the program writes no code over that of this one.
    fn note_used<V: MemoryView>(&self, lane: &RecorderSide<V>) -> Result<(), V::Fault> {
        let used = self.code.as_ref().ok().and_then(ProgramArena::used);
        used.map_or(Ok(()), |used| lane.set_arena_used(used))
    }

    /// Writes the image of a user's program; where it is, and its bytes. `None`: there is no room.
    pub(crate) fn put_image<V: MemoryView>(
        &mut self,
        lane: &RecorderSide<V>,
        image: &[u8],
    ) -> Result<Option<(u32, u32)>, V::Fault> {
        let said = self.write_behind_slots(lane, FilterCodeKind::Judgement, image)?;
        Ok(said.map(|code| (code.offset, code.bytes)))
    }

    /// Gives a filter a slot. `Err`: it is not in the program.
    fn say<V: MemoryView>(&mut self, lane: &RecorderSide<V>, new: &New) -> Result<Result<Placed, Placed>, V::Fault> {
        let Some(said) = new.said else { return Ok(Err(recorded(new.whys.clone()))) };
        let Some(slot) = self.take_slot(lane, said)? else {
            return Ok(Err(recorded(vec![FallbackReason::SlotsFull])));
        };
        let place = if said.kind == FilterCodeKind::Native { FilterPlace::Native } else { FilterPlace::Interpreter };
        Ok(Ok(Placed { control: slot, place, why: new.whys.clone() }))
    }

    /// Gives code a slot; `None`: all of them were used.
    fn take_slot<V: MemoryView>(&mut self, lane: &RecorderSide<V>, said: FilterCode) -> Result<Option<u8>, V::Fault> {
        while let Some(slot) = self.slots.pop() {
            // A child process has filters of its parent that this placer has not written.
            if lane.runs(slot)? != FilterEngine::NotYet || lane.said_code(slot)?.is_some() {
                continue;
            }
            lane.say_code(slot, said)?;
            return Ok(Some(slot));
        }
        Ok(None)
    }
}

/// A filter that a program does not have yet.
#[derive(Debug)]
struct New {
    question: FilterSource,
    filter: Arc<Compiled>,
    /// Why it is not where it would be best.
    whys: Vec<FallbackReason>,
    /// Where it is.
    said: Option<FilterCode>,
}

impl New {
    fn of(question: &FilterSource, compiler: &mut FilterCompiler) -> Self {
        Self { question: question.clone(), filter: compiler.filter(question), whys: Vec::new(), said: None }
    }
}

/// The question to compile; `Err`: there is none to compile.
fn question(filter: &ClassFilter, class: &EventClass) -> Result<FilterSource, Placed> {
    let nowhere = |control| Err(Placed { control, place: FilterPlace::Nowhere, why: Vec::new() });
    match filter.verdict() {
        Verdict::AlwaysTrue => return nowhere(1),
        Verdict::NeverTrue => return nowhere(0),
        Verdict::Depends => {}
    }
    match filter.layout(class) {
        Ok(layout) => Ok(FilterSource { predicate: filter.predicate.clone(), layout }),
        Err(refusal) => Err(recorded(vec![refusal.into()])),
    }
}

fn recorded(why: Vec<FallbackReason>) -> Placed {
    Placed { control: 1, place: FilterPlace::Recorder, why }
}

#[cfg(test)]
mod tests;
