//! The meaning of a filter for traces: how it was understood, its form for each class of events,
//! and how much of the traces it leaves out unread.

use std::sync::Arc;

use kymo_decode::filter::{ClassOutcome, StreamFilter};
use kymo_filter::{Binding, FilterNote, FilterProblem, MissingName, Verdict, bpf, bytecode};
use kymo_ir::Predicate;
use kymo_ir::predicate::{ArgumentLayout, Refusal};
use kymo_scan::index::HeadReader;

use crate::open::Session;
use crate::open::select::Selection;

/// Bytes of a text in a structure of arguments where its own may not be told: a name of a Linux task.
const TEXT_BYTES: u32 = 16;

/// A filter, explained.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The expression as a tree, a line for each part.
    pub tree: String,
    /// Event record classes for which it means the same.
    pub classes: Vec<ExplainedClasses>,
    /// Packets of the traces.
    pub packets: SkippedPackets,
}

/// Event record classes for which a filter means the same.
#[derive(Clone, Debug)]
pub struct ExplainedClasses {
    /// Their names, each once.
    pub names: Vec<String>,
    /// Its meaning.
    pub meaning: ClassMeaning,
}

/// The meaning of a filter for a class.
#[derive(Clone, Debug)]
pub enum ClassMeaning {
    /// It cannot be typed.
    Untyped(Vec<FilterProblem>),
    /// It can.
    Typed {
        /// Its verdict for all events.
        verdict: Verdict,
        /// The typed predicate as text.
        predicate: String,
        /// Names that the class has not.
        missing: Vec<MissingName>,
        /// How it was understood.
        notes: Vec<FilterNote>,
        /// Its forms, where it depends on the event.
        forms: Option<Box<Forms>>,
    },
}

/// The forms of a predicate.
#[derive(Clone, Debug)]
pub struct Forms {
    /// The read program with its questions, as text.
    pub program: String,
    /// For traced programs: bytes, and instructions as text.
    pub bytecode: Result<(usize, String), Refusal>,
    /// For traced programs: bytes of machine code.
    pub native_bytes: Result<usize, Refusal>,
    /// For the kernel: instructions as text.
    pub bpf: Result<Vec<String>, Refusal>,
}

/// Packets that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedPackets {
    /// All packets.
    pub all: u64,
    /// Bytes of all packets.
    pub all_bytes: u64,
    /// Those that are left out for their time or their data stream.
    pub unread: u64,
    /// Bytes of those.
    pub unread_bytes: u64,
    /// Those of which only the head is read: their context says that nothing is in them.
    pub by_context: u64,
    /// Bytes of those.
    pub by_context_bytes: u64,
}

impl Session {
    /// Explains the filter of a selection.
    #[must_use]
    pub fn explain(&self, selection: &Selection) -> Explanation {
        let mut explanation = Explanation::default();
        let Some(filter) = &selection.filter else { return explanation };
        explanation.tree = filter.tree();
        let mut seen: Vec<Arc<StreamFilter>> = Vec::new();
        let mut known: Vec<String> = Vec::new();
        for (rank, filter) in self.filters(selection).into_iter().enumerate() {
            let Some(filter) = filter else { continue };
            self.packets_skipped(rank, Some(&filter), (None, None), &mut explanation.packets);
            if seen.iter().any(|seen| Arc::ptr_eq(seen, &filter)) {
                continue;
            }
            let classes = &filter.decoder().stream_class(filter.stream_class()).event_classes;
            for (number, class) in classes.iter().enumerate() {
                let Some((key, meaning)) = meaning(&filter, number) else { continue };
                let name = class.name.clone().unwrap_or_else(|| format!("<event {}>", class.id));
                match known.iter().position(|known| *known == key) {
                    Some(at) if explanation.classes[at].names.contains(&name) => {}
                    Some(at) => explanation.classes[at].names.push(name),
                    None => {
                        known.push(key);
                        explanation.classes.push(ExplainedClasses { names: vec![name], meaning });
                    }
                }
            }
            seen.push(filter);
        }
        explanation
    }

    /// Adds what is left out of a data stream.
    pub(crate) fn packets_skipped(
        &self,
        rank: usize,
        filter: Option<&StreamFilter>,
        (begin, end): (Option<i64>, Option<i64>),
        skipped: &mut SkippedPackets,
    ) {
        let (trace, stream) = self.streams()[rank];
        let is_never = filter.is_some_and(StreamFilter::is_never);
        let wanted = if is_never { 0..0 } else { stream.packets_for(begin, end, filter) };
        let mut heads = HeadReader::default();
        for (number, row) in stream.packets.iter().enumerate() {
            let bytes = row.total_bits / 8;
            (skipped.all, skipped.all_bytes) = (skipped.all + 1, skipped.all_bytes + bytes);
            if !wanted.contains(&number) {
                (skipped.unread, skipped.unread_bytes) = (skipped.unread + 1, skipped.unread_bytes + bytes);
                continue;
            }
            let Some(filter) = filter else { continue };
            let clock = row.begin_cycles.unwrap_or(0);
            let file = trace.folder.stream(row.file as usize);
            let Ok(head) = heads.read(&trace.decoder, &file, row.offset_bytes, clock) else { continue };
            let mut state = trace.decoder.state(&head, clock);
            let window = heads.window(&head);
            filter.enter(&head, window, &mut state);
            if !filter.may_match(&state, || stream.times(&trace.class, number)) {
                (skipped.by_context, skipped.by_context_bytes) =
                    (skipped.by_context + 1, skipped.by_context_bytes + bytes);
            }
        }
    }
}

/// What a filter means for a class, and a text that is the same where that is.
fn meaning(filter: &StreamFilter, class: usize) -> Option<(String, ClassMeaning)> {
    match &filter.outcomes()[class] {
        ClassOutcome::NotSelected | ClassOutcome::Bound(None) => None,
        ClassOutcome::Untyped(problems) => Some((format!("{problems:?}"), ClassMeaning::Untyped(problems.clone()))),
        ClassOutcome::Bound(Some(binding)) => {
            let program = filter.test(class).map(ToString::to_string);
            let key = format!("{}{:?}{program:?}", binding.predicate, binding.missing);
            Some((key, typed(binding, program)))
        }
    }
}

fn typed(binding: &Binding, program: Option<String>) -> ClassMeaning {
    ClassMeaning::Typed {
        verdict: binding.verdict(),
        predicate: binding.predicate.to_string(),
        missing: binding.missing.clone(),
        notes: binding.notes.clone(),
        forms: program.map(|program| Box::new(forms(&binding.predicate, program))),
    }
}

/// The predicate for a tracepoint with just these arguments.
fn forms(predicate: &Predicate, program: String) -> Forms {
    let (outside, inside) =
        (ArgumentLayout::packed(predicate, None), ArgumentLayout::packed(predicate, Some(TEXT_BYTES)));
    let listing = |code: Vec<u8>| {
        let text = kymo_bytecode::validate(&code).map(|program| program.to_string()).unwrap_or_default();
        (code.len(), text)
    };
    Forms {
        program,
        bytecode: bytecode::compile(predicate, &outside).map(listing),
        native_bytes: native_bytes(predicate, &outside),
        bpf: bpf::compile(predicate, &inside).map(|code| code.iter().map(ToString::to_string).collect()),
    }
}

fn native_bytes(predicate: &Predicate, layout: &ArgumentLayout) -> Result<usize, Refusal> {
    let none = || Refusal { part: predicate.to_string(), why: "there is no compiler for this machine" };
    let target = kymo_jit::NativeTarget::host().ok_or_else(none)?;
    kymo_jit::NativeFilter::new(&target, predicate, layout).map(|filter| filter.code().len())
}
