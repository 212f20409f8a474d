//! Judgements of events in a program: filters of groups of sessions, and triggers.

use std::collections::HashSet;

use kymo_filter::Verdict;
use kymo_lane::judgement::{self, ENTRIES_MAX, JudgementEntry, JudgementKind};
use kymo_lane::{FilterCode, FilterCodeKind, MemoryView, RecorderSide};
use kymo_schema::definition::EventClass;

use super::compile::{FilterCompiler, FilterSource};
use super::{ClassFilter, FallbackReason, FilterPlace, New, Placed, Placer, question, recorded};

/// An event that is judged.
#[derive(Clone, Debug)]
pub struct JudgedEvent<'a> {
    /// Its ID.
    pub id: u16,
    /// Its class.
    pub class: &'a EventClass,
    /// Groups that keep it, and triggers that it fires, each with a filter.
    pub entries: Vec<(JudgementKind, &'a ClassFilter)>,
}

/// A judgement before it is compiled: `None` is the question with the answer yes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct JudgementSource {
    id: u16,
    entries: Vec<(JudgementKind, Option<FilterSource>)>,
}

impl Placer {
    /// Puts the judgement of an event into the program. If that cannot be, all events of its class are
    /// recorded, and fire nothing there.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn judge<V: MemoryView>(
        &mut self,
        lane: &RecorderSide<V>,
        compiler: &mut FilterCompiler,
        event: &JudgedEvent<'_>,
    ) -> Result<Placed, V::Fault> {
        let mut source = JudgementSource { id: event.id, entries: Vec::new() };
        for (kind, filter) in &event.entries {
            match (filter.verdict(), question(filter, event.class)) {
                (Verdict::NeverTrue, _) => {}
                (Verdict::AlwaysTrue, _) => source.entries.push((*kind, None)),
                (Verdict::Depends, Ok(asked)) => source.entries.push((*kind, Some(asked))),
                (Verdict::Depends, Err(placed)) => return Ok(placed),
            }
        }
        if let Some(placed) = self.judged.get(&source) {
            return Ok(placed.clone());
        }
        if source.entries.len() > ENTRIES_MAX || self.slots.is_empty() {
            return Ok(recorded(vec![FallbackReason::SlotsFull]));
        }
        let mut why = self.write_questions(lane, compiler, &source)?;
        let code = |question: &FilterSource| self.codes.get(question).copied();
        let entries = source.entries.iter().map(|(kind, question)| match question {
            None => Some(JudgementEntry { kind: *kind, question: None }),
            Some(question) => Some(JudgementEntry { kind: *kind, question: Some(code(question)?) }),
        });
        let Some(entries) = entries.collect::<Option<Vec<_>>>() else { return Ok(recorded(why)) };
        let mut bytes = vec![0; judgement::bytes(entries.len())];
        judgement::write(event.id, &entries, &mut bytes).expect("there are as many bytes as it needs");
        let Some(said) = self.write_behind_slots(lane, FilterCodeKind::Judgement, &bytes)? else {
            why.push(FallbackReason::BytecodeFull);
            return Ok(recorded(why));
        };
        let Some(control) = self.take_slot(lane, said)? else {
            return Ok(recorded(vec![FallbackReason::SlotsFull]));
        };
        let is_native = |entry: &JudgementEntry| entry.question.is_none_or(|code| code.kind == FilterCodeKind::Native);
        let place = if entries.iter().all(is_native) { FilterPlace::Native } else { FilterPlace::Interpreter };
        let placed = Placed { control, place, why };
        self.judged.insert(source, placed.clone());
        Ok(placed)
    }

    /// Writes the questions of a judgement that the program does not have yet; returns why some of them
    /// are not where they would be best.
    fn write_questions<V: MemoryView>(
        &mut self,
        lane: &RecorderSide<V>,
        compiler: &mut FilterCompiler,
        source: &JudgementSource,
    ) -> Result<Vec<FallbackReason>, V::Fault> {
        let mut once = HashSet::new();
        let unknown = source.entries.iter().filter_map(|(_, question)| question.as_ref());
        let unknown = unknown.filter(|question| !self.codes.contains_key(question) && once.insert(*question));
        let mut new: Vec<New> = unknown.map(|question| New::of(question, compiler)).collect();
        self.write_native(compiler, &mut new);
        self.write_bytecode(lane, &mut new)?;
        let mut why = Vec::new();
        for new in new {
            let code: Option<FilterCode> = new.said;
            self.codes.extend(code.map(|code| (new.question, code)));
            why.extend(new.whys.into_iter().filter(|reason| !why.contains(reason)).collect::<Vec<_>>());
        }
        Ok(why)
    }
}
