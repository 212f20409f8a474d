//! Judgements of events in a program: filters of groups of sessions, and triggers.
//!
//! ```text
//! entries ──┬── a function for each question ────────────> behind it: which of them fired, which groups keep it
//!           └── one function for all of them, in the slot: that one is called only where a trigger may fire
//! ```

use std::collections::HashSet;

use kymo_filter::Verdict;
use kymo_jit::NativeJudgement;
use kymo_lane::judgement::{self, ENTRIES_MAX, JudgementEntry, JudgementHead, JudgementKind};
use kymo_lane::{FilterCode, FilterCodeKind, JudgeAddresses, MemoryView, OTHER_GROUPS, RecorderSide};
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
    /// Groups that keep it, triggers that it fires, and rules that it begins for.
    pub entries: Vec<JudgedEntry<'a>>,
}

/// A question about an event that is judged.
#[derive(Clone, Debug)]
pub struct JudgedEntry<'a> {
    /// Its subject.
    pub kind: JudgementKind,
    /// The filter.
    pub filter: &'a ClassFilter,
    /// Rules that are asked if that says yes, each with its keys.
    pub rules: Vec<JudgementKind>,
}

/// A judgement before it is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct JudgementSource {
    id: u16,
    entries: JudgementQuestions,
}

/// Its questions: `None` is the one with the answer yes.
pub(super) type JudgementQuestions = Vec<(JudgementKind, Option<FilterSource>, Vec<JudgementKind>)>;

impl Placer {
    /// Puts judgements of events into the program. Where that cannot be, all events of a class are recorded, and fire
    /// nothing there. Judgements that are placed together take less of the program's memory.
    ///
    /// # Errors
    ///
    /// The program is gone.
    pub fn judge<V: MemoryView>(
        &mut self,
        lane: &RecorderSide<V>,
        compiler: &mut FilterCompiler,
        events: &[JudgedEvent<'_>],
    ) -> Result<Vec<Placed>, V::Fault> {
        let sources: Vec<Result<JudgementSource, Placed>> = events.iter().map(source).collect();
        let mut once = HashSet::new();
        let unknown = sources.iter().flatten().filter(|source| !self.judged.contains_key(source));
        let unknown = unknown.filter(|source| length(&source.entries) <= ENTRIES_MAX && once.insert(*source));
        // Judgements beyond the free slots are not compiled.
        let unknown: Vec<&JudgementSource> = unknown.take(self.slots.len()).collect();
        let mut why = self.write_questions(lane, compiler, &unknown)?;
        let addresses = lane.judge()?;
        self.write_whole(compiler, &unknown, addresses, &mut why);
        self.note_used(lane)?;
        let mut refused = Vec::new();
        for source in unknown {
            match self.say_judgement(lane, source)? {
                Ok(mut placed) => {
                    placed.why.clone_from(&why);
                    self.judged.insert(source.clone(), placed);
                }
                Err(more) => {
                    let mut why = why.clone();
                    why.extend(more);
                    refused.push((source, recorded(why)));
                }
            }
        }
        let full = recorded(vec![FallbackReason::SlotsFull]);
        let placed = sources.iter().map(|source| match source {
            Ok(source) => {
                let refused = || refused.iter().find(|(of, _)| *of == source).map(|(_, placed)| placed);
                self.judged.get(source).or_else(refused).unwrap_or(&full).clone()
            }
            Err(placed) => placed.clone(),
        });
        Ok(placed.collect())
    }

    /// Gives a judgement a slot. `Err`: why it is not in the program.
    fn say_judgement<V: MemoryView>(
        &mut self,
        lane: &RecorderSide<V>,
        source: &JudgementSource,
    ) -> Result<Result<Placed, Option<FallbackReason>>, V::Fault> {
        let code = |question: &FilterSource| self.codes.get(question).copied();
        let mut entries = Vec::new();
        for (kind, question, rules) in &source.entries {
            let question = match question {
                None => None,
                Some(question) => match code(question) {
                    Some(code) => Some(code),
                    None => return Ok(Err(None)),
                },
            };
            entries.push(JudgementEntry { kind: *kind, question });
            entries.extend(rules.iter().map(|kind| JudgementEntry { kind: *kind, question: None }));
        }
        let mut bytes = vec![0; judgement::bytes(entries.len())];
        let code = self.whole.get(&source.entries).map(|code| (code.offset, code.bytes));
        let head = JudgementHead { id: source.id, code };
        judgement::write(head, &entries, &mut bytes).expect("there are as many bytes as it needs");
        let Some(said) = self.write_behind_slots(lane, FilterCodeKind::Judgement, &bytes)? else {
            return Ok(Err(Some(FallbackReason::BytecodeFull)));
        };
        let Some(control) = self.take_slot(lane, said)? else { return Ok(Err(Some(FallbackReason::SlotsFull))) };
        let is_native = |entry: &JudgementEntry| entry.question.is_none_or(|code| code.kind == FilterCodeKind::Native);
        let place = if entries.iter().all(is_native) { FilterPlace::Native } else { FilterPlace::Interpreter };
        Ok(Ok(Placed { control, place, why: Vec::new() }))
    }

    /// Writes the questions of judgements that the program does not have yet; returns why some of them
    /// are not where they would be best.
    fn write_questions<V: MemoryView>(
        &mut self,
        lane: &RecorderSide<V>,
        compiler: &mut FilterCompiler,
        sources: &[&JudgementSource],
    ) -> Result<Vec<FallbackReason>, V::Fault> {
        let mut once = HashSet::new();
        let unknown =
            sources.iter().flat_map(|source| &source.entries).filter_map(|(_, question, _)| question.as_ref());
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

    /// Writes the functions for all questions of a judgement. Judgements without one work, and take longer.
    fn write_whole(
        &mut self,
        compiler: &FilterCompiler,
        sources: &[&JudgementSource],
        addresses: JudgeAddresses,
        why: &mut Vec<FallbackReason>,
    ) {
        let Ok(arena) = &mut self.code else { return };
        let mut once = HashSet::new();
        let new = sources.iter().map(|source| &source.entries);
        let new = new.filter(|entries| !self.whole.contains_key(*entries) && once.insert(*entries));
        let wholes = new.filter_map(|entries| whole(entries, addresses).map(|whole| (entries, whole)));
        let codes = wholes.filter_map(|(entries, whole)| Some((entries, compiler.judgement(&whole).ok()?)));
        let codes: Vec<(&JudgementQuestions, Box<[u8]>)> = codes.collect();
        let pieces: Vec<&[u8]> = codes.iter().map(|(_, code)| &**code).collect();
        for ((entries, _), said) in codes.iter().zip(arena.write_pieces(&pieces)) {
            match said {
                Ok(code) => _ = self.whole.insert((*entries).clone(), code),
                Err(reason) if !why.contains(&reason) => why.push(reason),
                Err(_) => {}
            }
        }
    }
}

/// The judgement of an event; `Err`: one of its questions cannot be asked in programs.
fn source(event: &JudgedEvent<'_>) -> Result<JudgementSource, Placed> {
    let mut entries = Vec::new();
    for JudgedEntry { kind, filter, rules } in &event.entries {
        match (filter.verdict(), question(filter, event.class)) {
            (Verdict::NeverTrue, _) => {}
            (Verdict::AlwaysTrue, _) => entries.push((*kind, None, rules.clone())),
            (Verdict::Depends, Ok(asked)) => entries.push((*kind, Some(asked), rules.clone())),
            (Verdict::Depends, Err(placed)) => return Err(placed),
        }
    }
    Ok(JudgementSource { id: event.id, entries })
}

/// Number of entries with those of rules.
fn length(entries: &JudgementQuestions) -> usize {
    entries.iter().map(|(_, _, rules)| 1 + rules.len()).sum()
}

/// One function for all questions; `None`: there are rules, or a trigger without a question, so that the other one is
/// called at each event.
fn whole(entries: &JudgementQuestions, addresses: JudgeAddresses) -> Option<NativeJudgement<'_>> {
    let JudgeAddresses { function: otherwise, stopped } = addresses;
    let mut whole = NativeJudgement { rare: Vec::new(), groups: Vec::new(), otherwise, stopped };
    for (kind, question, rules) in entries {
        let question = question.as_ref().map(FilterSource::as_native);
        match kind {
            JudgementKind::Trigger(_) if rules.is_empty() => whole.rare.push(question?),
            JudgementKind::Groups(bits) if rules.is_empty() => {
                whole.groups.push(((bits & OTHER_GROUPS == 0).then_some(*bits), question));
            }
            _ => return None,
        }
    }
    (otherwise != 0 && stopped != 0).then_some(whole)
}
