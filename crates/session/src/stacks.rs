//! The functions of call stacks that traces have.
//!
//! ```text
//! kymo_stack             number ──> process, addresses       ┐
//! kymo_map, vm_map       process ──> code at addresses ──────┼──> file, build id, offset ──> symbols ──> functions
//! kymo_kernel_function   addresses of the kernel ──> function┘    /tmp/perf-PID.map
//! ```
//!
//! These events are read once for a session, from the whole trace, also if a part is selected: the stack of an event may be told long
//! before it, or behind it.

mod events;
mod perf_map;
mod symbols;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_analysis::resolve::{ResolvedStacks, StackFrame, StackId, StackResolver};

use self::symbols::KnownFunctions;
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::ReportProblem;
use crate::open::stacks::{CodeOffset, FunctionRange, PlacedStack, StackFacts, TraceStacks};

/// Finds the functions of stacks, each once.
#[derive(Debug)]
pub(crate) struct SessionStacks {
    facts: Arc<StackFacts>,
    known: Mutex<KnownFunctions>,
}

impl Session {
    /// Finds the functions of the traces' stacks.
    pub(crate) fn stacks(&self, progress: &Progress) -> Arc<SessionStacks> {
        let facts = match self.stacks.get() {
            Some(facts) => Arc::clone(facts),
            None => {
                let facts = Arc::new(StackFacts::read(self, progress));
                // Those of a job that was canceled are not whole.
                if progress.is_cancelled() { facts } else { Arc::clone(self.stacks.get_or_init(|| facts)) }
            }
        };
        Arc::new(SessionStacks { facts, known: Mutex::default() })
    }
}

impl SessionStacks {
    /// Why functions have no names, and the places that could not be read.
    pub(crate) fn take_problems(&self) -> Vec<ReportProblem> {
        self.known().take_problems().into_iter().chain(self.facts.faults.iter().cloned()).collect()
    }

    fn known(&self) -> MutexGuard<'_, KnownFunctions> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stack(&self, id: &StackId) -> Option<(u32, &TraceStacks, &PlacedStack)> {
        let trace = self.facts.traces.get(id.trace as usize)?;
        Some((id.trace, trace, trace.stacks.get(&id.number)?))
    }
}

impl StackResolver for SessionStacks {
    fn resolve(&self, stacks: &[StackId]) -> ResolvedStacks {
        let mut known = self.known();
        let found: Vec<_> = stacks.iter().map(|id| self.stack(id)).collect();
        known.misses(found.iter().filter(|stack| stack.is_none()).count());
        let mut asked: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
        for (trace, _, stack) in found.iter().flatten() {
            for CodeOffset { source, offset } in stack.user.iter().flatten() {
                asked.entry((*trace, *source)).or_default().push(*offset);
            }
        }
        for ((trace, source), offsets) in asked {
            known.learn((trace, source), &self.facts.traces[trace as usize], offsets);
        }
        let mut table = FrameTable::default();
        let resolved = found.into_iter().map(|stack| {
            let (trace, facts, stack) = stack?;
            // The innermost functions of the kernel are those that recorded the stack.
            let kernel = stack.kernel.iter().skip_while(|address| facts.records(**address));
            let mut frames: Vec<u32> = kernel.map(|address| table.kernel(trace, facts, *address)).collect();
            for place in &stack.user {
                match place {
                    Some(place) => {
                        frames.extend(known.frames(trace, *place).iter().map(|frame| table.place(frame)));
                    }
                    None => frames.push(table.place(&StackFrame::default())),
                }
            }
            Some(frames)
        });
        let stacks = resolved.collect();
        ResolvedStacks { frames: table.frames, stacks }
    }

    fn event(&self, trace: u32, event: u16) -> Option<String> {
        let trace = self.facts.traces.get(trace as usize)?;
        let known = trace.events.iter().find(|(range, _)| range.contains(&i128::from(event)));
        known.map(|(_, name)| name.clone())
    }
}

impl TraceStacks {
    fn function(&self, address: u64) -> Option<(u64, &FunctionRange)> {
        let (start, function) = self.functions.range(..=address).next_back()?;
        (address < function.end).then_some((*start, function))
    }

    /// Whether a function of the kernel is there because its caller was recorded.
    fn records(&self, address: u64) -> bool {
        const BEGINNINGS: [&str; 3] = ["__traceiter_", "__bpf_trace_", "perf_trace_"];
        let function = self.function(address);
        function.is_some_and(|(_, function)| BEGINNINGS.iter().any(|begin| function.name.starts_with(begin)))
    }
}

/// Functions, each once.
#[derive(Default)]
struct FrameTable {
    places: HashMap<StackFrame, u32>,
    /// Of the kernel, by their trace and first address.
    kernel: HashMap<(u32, u64), u32>,
    frames: Vec<StackFrame>,
}

impl FrameTable {
    fn place(&mut self, frame: &StackFrame) -> u32 {
        if let Some(place) = self.places.get(frame) {
            return *place;
        }
        self.frames.push(frame.clone());
        self.places.insert(frame.clone(), self.frames.len() as u32 - 1);
        self.frames.len() as u32 - 1
    }

    fn kernel(&mut self, trace: u32, facts: &TraceStacks, address: u64) -> u32 {
        let function = facts.function(address);
        let key = (trace, function.as_ref().map_or(address, |(start, _)| *start));
        if let Some(place) = self.kernel.get(&key) {
            return *place;
        }
        let begin = function.as_ref().map_or(0, |(start, _)| *start);
        let (function, object) = match function {
            Some((_, FunctionRange { name, module, .. })) if module.is_empty() => (name.clone(), "kernel".to_owned()),
            Some((_, FunctionRange { name, module, .. })) => (name.clone(), format!("[{module}]")),
            None => (format!("{address:#x}"), "kernel".to_owned()),
        };
        let place = self.place(&StackFrame { function, object, is_kernel: true, begin });
        self.kernel.insert(key, place);
        place
    }
}

/// The name of a file, without its folders.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
