//! The tables of `stacks`: sums of stacks, with the names of their functions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::sums::{MissedWaits, StackKind, StackSum};
use super::{StackAnalysis, StackState};
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::count::{at_least, lost_of};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::resolve::{ResolvedStacks, StackFrame, StackId, StackResolver};
use crate::statistics::leave;
use crate::threads::ThreadKey;

/// Of a stack nothing is known.
const UNKNOWN: &str = "[unknown]";
/// Functions of the kernel in which all waits begin.
const CHANGES_THREADS: &[&str] = &[
    "__schedule",
    "schedule",
    "schedule_timeout",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "schedule_preempt_disabled",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_irq",
    "__cond_resched",
    "io_schedule",
    "io_schedule_timeout",
];

/// Functions of the kernel through which all kinds of waits end.
const WAKES: &[&str] = &[
    "try_to_wake_up",
    "wake_up_process",
    "wake_up_state",
    "wake_up_q",
    "default_wake_function",
    "autoremove_wake_function",
    "woken_wake_function",
    "pollwake",
    "ep_poll_callback",
    "ep_autoremove_wake_function",
    "swake_up_locked",
    "swake_up_one",
    "complete",
    "complete_with_flags",
];
/// An interrupt did it.
const INTERRUPT: &str = "[interrupt]";
/// Beginnings of functions through which interrupts come.
const INTERRUPTS: &[&str] =
    &["asm_sysvec_", "asm_common_interrupt", "common_interrupt", "el1_interrupt", "el0_interrupt", "__irq_exit_rcu"];

/// Stacks with the same functions: of several processes, of several traces.
#[derive(Default)]
struct StackGroups<'a> {
    /// Where groups are, by the functions.
    places: HashMap<&'a [u32], usize>,
    /// For each group its functions.
    groups: Vec<&'a [u32]>,
}

/// Everything that the tables show.
struct StackTotals<'a> {
    frames: &'a [StackFrame],
    groups: Vec<&'a [u32]>,
    /// By kind and group.
    sums: BTreeMap<(StackKind, usize), StackSum>,
    /// By the groups of waits, and of the threads that ended them.
    wakers: BTreeMap<(usize, usize), StackSum>,
    /// By thread.
    threads: BTreeMap<ThreadKey, ThreadSum>,
    /// Names of events.
    events: Vec<String>,
}

/// Names of events, each once.
#[derive(Default)]
struct EventNames {
    numbers: BTreeMap<(u32, u16), u16>,
    names: Vec<String>,
}

/// The sums of a thread.
#[derive(Default)]
struct ThreadSum {
    samples: u64,
    waits: StackSum,
    events: u64,
    missed: MissedWaits,
}

/// A function by its name, its object, and its begin there.
type FunctionName<'a> = (&'a str, &'a str, u64);

/// How often a function is in samples.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FunctionSum {
    innermost: u64,
    anywhere: u64,
}

impl StackAnalysis {
    /// The answer so far.
    pub(super) fn report(&self, mut state: StackState) -> Answer {
        let mut sums = std::mem::take(&mut state.sums);
        for (key, waits) in &state.waits {
            if let Some((_, can_run, stack)) = waits.open() {
                sums.add_open(*key, StackKind::of_wait(can_run), stack);
            }
        }
        let wants = |key: ThreadKey| {
            self.wishes.wants_thread(key.tid, || state.threads.get(&key).and_then(|known| known.comm.text()))
        };
        let mut all: Vec<(StackKind, StackId, ThreadKey, &StackSum)> =
            sums.iter().filter(|(_, _, thread, _)| wants(*thread)).collect();
        all.sort_unstable_by_key(|(kind, stack, thread, _)| (*kind, *stack, *thread));
        let mut wakers: Vec<(StackId, StackId, ThreadKey, &StackSum)> =
            sums.wakers().filter(|(_, _, thread, _)| wants(*thread)).collect();
        wakers.sort_unstable_by_key(|(stack, waker, thread, _)| (*stack, *waker, *thread));
        let asked = all.iter().map(|(_, stack, ..)| *stack).chain(wakers.iter().map(|(_, waker, ..)| *waker));
        let asked: Vec<StackId> = asked.collect::<BTreeSet<_>>().into_iter().collect();
        let resolved = self.resolved(&asked);
        let mut totals = self.totals(&resolved, &asked, &all, &wakers);
        // Whether a wait without a stack has a function is not known.
        for (thread, missed) in sums.missed().filter(|(thread, _)| self.wishes.names.is_empty() && wants(*thread)) {
            totals.threads.entry(thread).or_default().missed = missed;
        }
        let mut tables = vec![
            self.functions(&totals),
            self.stacks(&totals, "samples", "Call stacks of busy CPUs", |kind| kind == StackKind::Sample),
            self.waits(&totals, "waits", "Where programs waited", (StackKind::Wait, true)),
            self.waits(&totals, "preempted", "Where programs were preempted", (StackKind::Preempted, true)),
            self.waits(
                &totals,
                "kernel-waits",
                "Where the kernel waited, outside of programs",
                (StackKind::Wait, false),
            ),
            self.waits(
                &totals,
                "kernel-preempted",
                "Where the kernel was preempted, outside of programs",
                (StackKind::Preempted, false),
            ),
            self.wakers(&totals),
            self.stacks(&totals, "events", "Call stacks of events", |kind| matches!(kind, StackKind::Event(_))),
            self.threads(&state, &totals),
            self.total(&totals),
        ];
        let span_ns = crate::setup::span_ns(&self.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    fn resolved(&self, asked: &[StackId]) -> ResolvedStacks {
        let none = || ResolvedStacks { frames: Vec::new(), stacks: vec![None; asked.len()] };
        self.resolver.as_ref().map_or_else(none, |resolver| resolver.resolve(asked))
    }

    /// The sums of stacks that are wanted, by their functions.
    fn totals<'a>(
        &self,
        resolved: &'a ResolvedStacks,
        asked: &[StackId],
        all: &[(StackKind, StackId, ThreadKey, &StackSum)],
        woken: &[(StackId, StackId, ThreadKey, &StackSum)],
    ) -> StackTotals<'a> {
        let mut groups = StackGroups::default();
        let frames = &resolved.frames;
        let of = |stack: &StackId| {
            let at = asked.binary_search(stack).ok()?;
            resolved.stacks.get(at)?.as_deref()
        };
        let is_named = |frame: &u32| frames.get(*frame as usize).is_some_and(|frame| self.is_named(&frame.function));
        let (mut sums, mut threads, mut names) = (BTreeMap::new(), BTreeMap::new(), EventNames::default());
        for &(kind, ref stack, thread, sum) in all {
            let functions = of(stack).unwrap_or_default();
            if !self.wishes.names.is_empty() && !functions.iter().any(is_named) {
                continue;
            }
            let group = groups.of(functions);
            // Recordings number their events each by itself.
            let kind = match kind {
                StackKind::Event(event) => StackKind::Event(names.number(self.resolver.as_deref(), stack.trace, event)),
                kind => kind,
            };
            sums.entry((kind, group)).or_insert_with(StackSum::default).add(sum);
            let of_thread: &mut ThreadSum = threads.entry(thread).or_default();
            match kind {
                StackKind::Sample => of_thread.samples += sum.count,
                StackKind::Wait => of_thread.waits.add(sum),
                StackKind::Preempted => {}
                StackKind::Event(_) => of_thread.events += sum.count,
            }
        }
        let mut wakers: BTreeMap<(usize, usize), StackSum> = BTreeMap::new();
        for (stack, waker, _, sum) in woken {
            let [waits, wakes] = [stack, waker].map(|stack| of(stack).unwrap_or_default());
            // An interrupt has nothing to do with the program that it stops.
            let is_entry = |frame: &u32| frames.get(*frame as usize).is_some_and(StackFrame::is_interrupt);
            let wakes = wakes.iter().rposition(is_entry).map_or(wakes, |entry| &wakes[..=entry]);
            if self.wishes.names.is_empty() || waits.iter().chain(wakes).any(is_named) {
                wakers.entry((groups.of(waits), groups.of(wakes))).or_default().add(sum);
            }
        }
        StackTotals { frames, groups: groups.groups, sums, wakers, threads, events: names.names }
    }

    fn is_named(&self, function: &str) -> bool {
        self.wishes.wants_called(function)
    }

    /// How much was sampled and waited for, and where most.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        if let Some(row) = tables.greatest(&["functions"], &["self"]).filter(|row| !row.is_zero("self")) {
            headline.say(&row, "CPUs were most often in {function}: {self:sample}, {self_share} of all");
        }
        if let Some(row) = tables.greatest(&["waits"], &["waited"]).filter(|row| !row.is_zero("waited")) {
            headline.say(&row, "Threads waited longest in {function}: {waited+} in {waits:wait}");
        }
        if let Some(row) = tables.first("total").filter(|row| !row.is_zero("without_end")) {
            headline.say(&row, "The end of {without_end:other wait} is not in the trace, which no sum has");
        }
        headline
    }

    /// How many events are lost, if that is known.
    fn lost(&self) -> Option<u64> {
        lost_of(self.lanes.iter().filter(|lane| self.wishes.wants_lane(lane)))
    }

    /// How much there is, and how many waits are in no other row.
    fn total(&self, totals: &StackTotals<'_>) -> Table {
        let mut table = Table::new(
            "total",
            "All call stacks",
            vec![
                Column::of("samples", "Samples", "samples"),
                Column::of("waits", "Waits", "waits"),
                Column::new("waited", "Waited", CellClass::Duration),
                Column::of("without_stack", "Waits without stack", "waits"),
                Column::of("without_end", "Waits without end", "waits"),
                Column::of("events", "Events", "events").detail(),
            ],
        );
        let mut all = ThreadSum::default();
        for sum in totals.threads.values() {
            all.samples += sum.samples;
            all.events += sum.events;
            all.waits.add(&sum.waits);
            all.missed.without_stack += sum.missed.without_stack;
            all.missed.without_end += sum.missed.without_end;
        }
        let missed = [all.missed.without_stack, all.missed.without_end];
        let mut row = vec![self.count(all.samples), self.count(all.waits.count), self.duration(all.waits.nanos)];
        row.extend(missed.map(|count| Cell::Count(Bounded::exact(count))));
        row.push(self.count(all.events));
        table.rows.push(row);
        table
    }

    /// Functions by the samples that they are in.
    fn functions(&self, totals: &StackTotals<'_>) -> Table {
        let mut table = Table::new(
            "functions",
            "Functions that CPUs ran",
            vec![
                Column::new("function", "Function", CellClass::Text),
                Column::new("object", "Object", CellClass::Text).detail(),
                Column::of("self", "Self", "samples"),
                Column::new("self_share", "Self share", CellClass::Ratio),
                Column::of("total", "Total", "samples"),
                Column::new("total_share", "Total share", CellClass::Ratio).detail(),
            ],
        );
        table.plot = Some(Plot::Bars { value: 2 });
        let mut sums: BTreeMap<FunctionName<'_>, FunctionSum> = BTreeMap::new();
        let mut all = 0;
        for ((_, group), sum) in totals.sums.iter().filter(|((kind, _), _)| *kind == StackKind::Sample) {
            all += sum.count;
            let functions = totals.groups[*group];
            let names: Vec<FunctionName<'_>> = functions.iter().map(|frame| totals.name(*frame)).collect();
            sums.entry(names.first().copied().unwrap_or((UNKNOWN, "", 0))).or_default().innermost += sum.count;
            let each: BTreeSet<FunctionName<'_>> = names.into_iter().collect();
            let each = if each.is_empty() { BTreeSet::from([(UNKNOWN, "", 0)]) } else { each };
            each.into_iter().for_each(|name| sums.entry(name).or_default().anywhere += sum.count);
        }
        let mut rows: Vec<(FunctionName<'_>, FunctionSum)> = sums.into_iter().collect();
        rows.sort_by_key(|(name, sum)| (Reverse(*sum), *name));
        table.omitted = leave(&mut rows, self.wishes.top);
        let share = |count: u64| Cell::Ratio(Bounded::exact(count as f64 / all.max(1) as f64));
        for ((function, object, _), FunctionSum { innermost, anywhere }) in rows {
            table.rows.push(vec![
                Cell::Text(function.to_owned()),
                text(object),
                self.count(innermost),
                share(innermost),
                self.count(anywhere),
                share(anywhere),
            ]);
        }
        table
    }

    /// Stacks of some kinds, counted.
    fn stacks(
        &self,
        totals: &StackTotals<'_>,
        class: &'static str,
        title: &str,
        is_of: impl Fn(StackKind) -> bool,
    ) -> Table {
        let of_events = class == "events";
        let mut columns = vec![Column::new("function", "Function", CellClass::Text)];
        if of_events {
            columns.insert(0, Column::new("event", "Event", CellClass::Text));
        }
        columns.push(Column::of("count", "Count", if of_events { "events" } else { "samples" }));
        columns.push(Column::new("stack", "Stack", CellClass::Text).detail());
        let mut table = Table::new(class, title, columns);
        table.plot = Some(Plot::Bars { value: 1 + usize::from(of_events) });
        let mut rows: Vec<(StackKind, usize, u64)> = totals
            .sums
            .iter()
            .filter(|((kind, _), _)| is_of(*kind))
            .map(|((kind, group), sum)| (*kind, *group, sum.count))
            .collect();
        rows.sort_by_key(|(kind, group, count)| (Reverse(*count), *kind, *group));
        table.omitted = leave(&mut rows, self.wishes.top);
        for (kind, group, count) in rows {
            let functions = totals.groups[group];
            let place = if of_events { totals.event_place(functions) } else { totals.place(functions) };
            let mut cells = vec![place, self.count(count), totals.text(functions)];
            if let (true, StackKind::Event(event)) = (of_events, kind) {
                cells.insert(
                    0,
                    totals.events.get(usize::from(event)).map_or(Cell::Unknown, |name| Cell::Text(name.clone())),
                );
            }
            table.rows.push(cells);
        }
        table
    }

    /// Stacks in which threads stopped running, by how long they did.
    fn waits(
        &self,
        totals: &StackTotals<'_>,
        class: &'static str,
        title: &str,
        (kind, of_programs): (StackKind, bool),
    ) -> Table {
        let mut columns = vec![
            Column::new("kernel", "In the kernel", CellClass::Text),
            Column::new("waited", "Waited", CellClass::Duration),
            Column::of("waits", "Waits", "waits"),
            Column::new("longest", "Longest", CellClass::Duration).detail(),
            Column::of("open", "Not over", "waits").rest(),
            Column::new("stack", "Stack", CellClass::Text).detail(),
        ];
        if of_programs {
            columns.insert(0, Column::new("function", "Function", CellClass::Text));
            columns.insert(1, Column::new("caller", "Called from", CellClass::Text));
        }
        let plot = columns.iter().position(|column| column.name == "waited").map(|value| Plot::Bars { value });
        let mut table = Table { plot, ..Table::new(class, title, columns) };
        let of_kind = totals.sums.range((kind, 0)..=(kind, usize::MAX));
        let mut rows: Vec<(&[u32], StackSum)> = of_kind
            .map(|((_, group), sum)| (totals.groups[*group], *sum))
            .filter(|(functions, _)| totals.is_of_program(functions) == of_programs)
            .collect();
        rows.sort_by_key(|(_, sum)| Reverse((sum.nanos, sum.count, sum.open)));
        table.omitted = leave(&mut rows, self.wishes.top);
        for (functions, sum) in rows {
            let mut cells = vec![
                totals.kernel_place(functions),
                self.duration(sum.nanos),
                self.count(sum.count),
                self.duration(sum.longest),
                Cell::Count(Bounded::exact(sum.open)),
                totals.text(functions),
            ];
            if of_programs {
                cells.insert(0, totals.place(functions));
                cells.insert(1, totals.caller(functions));
            }
            table.rows.push(cells);
        }
        table
    }

    /// The stacks that ended waits, by how long these were.
    fn wakers(&self, totals: &StackTotals<'_>) -> Table {
        let mut table = Table::new(
            "wakers",
            "The ends of waits",
            vec![
                Column::new("function", "Waited in", CellClass::Text),
                Column::new("waker", "Woken in", CellClass::Text),
                Column::new("kernel", "In the kernel", CellClass::Text),
                Column::new("waited", "Waited", CellClass::Duration),
                Column::of("waits", "Waits", "waits"),
                Column::new("longest", "Longest", CellClass::Duration).detail(),
                Column::new("stack", "Stack of the wait", CellClass::Text).detail(),
                Column::new("waker_stack", "Stack of the waker", CellClass::Text).detail(),
            ],
        );
        table.plot = Some(Plot::Bars { value: 3 });
        let mut rows: Vec<(&(usize, usize), &StackSum)> = totals.wakers.iter().collect();
        rows.sort_by_key(|(groups, sum)| (Reverse((sum.nanos, sum.count)), **groups));
        table.omitted = leave(&mut rows, self.wishes.top);
        for ((waits, wakes), sum) in rows {
            let [waits, wakes] = [*waits, *wakes].map(|group| totals.groups[group]);
            table.rows.push(vec![
                totals.place(waits),
                totals.waker(wakes),
                totals.waker_in_kernel(wakes),
                self.duration(sum.nanos),
                self.count(sum.count),
                self.duration(sum.longest),
                totals.text(waits),
                totals.text(wakes),
            ]);
        }
        table
    }

    fn threads(&self, state: &StackState, totals: &StackTotals<'_>) -> Table {
        let mut table = Table::new(
            "per-thread",
            "Threads",
            vec![
                Column::new("thread", "Thread", CellClass::Process),
                Column::of("samples", "Samples", "samples"),
                Column::new("waited", "Waited", CellClass::Duration),
                Column::of("waits", "Waits", "waits").detail(),
                Column::of("events", "Events", "events").rest(),
                Column::of("without_stack", "Without stack", "waits").rest(),
                Column::of("without_end", "Without end", "waits").rest(),
            ],
        );
        table.plot = Some(Plot::Bars { value: 1 });
        let mut rows: Vec<(&ThreadKey, &ThreadSum)> = totals.threads.iter().collect();
        let rank = |sum: &ThreadSum| Reverse((sum.samples, sum.waits.nanos, sum.events));
        rows.sort_by_key(|(key, sum)| (rank(sum), **key));
        table.omitted = leave(&mut rows, self.wishes.top);
        let hosts: Vec<u16> = rows.iter().map(|(key, _)| key.host).collect();
        for (key, sum) in rows {
            let known = state.threads.get(key).copied().unwrap_or_default();
            let thread = Cell::Process {
                name: if key.tid == 0 { Some("idle".to_owned()) } else { known.comm.text() },
                pid: known.pid.map(i64::from),
                tid: Some(i64::from(key.tid)),
            };
            let waits = &sum.waits;
            let mut cells = vec![thread, self.count(sum.samples), self.duration(waits.nanos), self.count(waits.count)];
            cells.push(self.count(sum.events));
            let missed = [sum.missed.without_stack, sum.missed.without_end];
            cells.extend(missed.map(|count| Cell::Count(Bounded::exact(count))));
            table.rows.push(cells);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn count(&self, count: u64) -> Cell {
        Cell::Count(at_least(count, self.lost()))
    }

    /// Durations of waits that were seen.
    fn duration(&self, nanos: u64) -> Cell {
        let high = if self.lost() == Some(0) { nanos } else { u64::MAX };
        Cell::Duration(Bounded { value: nanos, low: nanos, high })
    }
}

impl StackFrame {
    /// Whether an interrupt of the kernel begins there.
    fn is_interrupt(&self) -> bool {
        self.is_kernel && INTERRUPTS.iter().any(|begin| self.function.starts_with(begin))
    }
}

impl EventNames {
    /// The number of the name of a trace's event.
    fn number(&mut self, resolver: Option<&dyn StackResolver>, trace: u32, event: u16) -> u16 {
        let names = &mut self.names;
        *self.numbers.entry((trace, event)).or_insert_with(|| {
            let name = resolver.and_then(|resolver| resolver.event(trace, event)).unwrap_or_else(|| event.to_string());
            let known = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            u16::try_from(known).unwrap_or(u16::MAX)
        })
    }
}

impl<'a> StackGroups<'a> {
    fn of(&mut self, functions: &'a [u32]) -> usize {
        *self.places.entry(functions).or_insert_with(|| {
            self.groups.push(functions);
            self.groups.len() - 1
        })
    }
}

impl StackTotals<'_> {
    fn is_kernel(&self, frame: u32) -> bool {
        self.frames.get(frame as usize).is_some_and(|frame| frame.is_kernel)
    }

    /// Functions of the kernel, the innermost first.
    fn of_kernel<'f>(&'f self, functions: &'f [u32]) -> impl Iterator<Item = &'f str> {
        functions.iter().take_while(|frame| self.is_kernel(**frame)).map(|frame| self.names(*frame).0)
    }

    /// Functions of the program, and the files with their code, the innermost first.
    fn of_program<'f>(&'f self, functions: &'f [u32]) -> impl Iterator<Item = (&'f str, &'f str)> {
        functions.iter().skip_while(|frame| self.is_kernel(**frame)).map(|frame| self.names(*frame))
    }

    /// A function, the file with its code, and where it begins there.
    fn name(&self, frame: u32) -> FunctionName<'_> {
        let (function, object) = self.names(frame);
        (function, object, self.frames.get(frame as usize).map_or(0, |frame| frame.begin))
    }

    /// A function, and the file with its code.
    fn names(&self, frame: u32) -> (&str, &str) {
        let frame = self.frames.get(frame as usize).filter(|frame| !frame.function.is_empty());
        frame.map_or((UNKNOWN, ""), |frame| (&frame.function, &frame.object))
    }

    /// Whether a stack is of a program; of one of which nothing is known it is.
    fn is_of_program(&self, functions: &[u32]) -> bool {
        functions.is_empty() || self.of_program(functions).next().is_some()
    }

    /// The innermost function of the program, or of the kernel if there is none.
    fn place(&self, functions: &[u32]) -> Cell {
        match self.of_program(functions).next() {
            Some((function, _)) => Cell::Text(function.to_owned()),
            None if functions.is_empty() => Cell::Text(UNKNOWN.to_owned()),
            None => self.kernel_place(functions),
        }
    }

    /// The function of another object that called the one of the program: of a program, where that is in a library.
    fn caller(&self, functions: &[u32]) -> Cell {
        let mut names = self.of_program(functions);
        let Some((_, innermost)) = names.next() else { return Cell::Empty };
        let caller = names.find(|(function, object)| *object != innermost && *function != UNKNOWN);
        caller.map_or(Cell::Empty, |(function, _)| Cell::Text(function.to_owned()))
    }

    /// The innermost function of the kernel that says something: a wait begins where threads are changed.
    fn kernel_place(&self, functions: &[u32]) -> Cell {
        let mut names = self.of_kernel(functions);
        let says_something = |function: &&str| !CHANGES_THREADS.contains(function);
        let place = names.find(says_something).or_else(|| self.of_kernel(functions).next());
        place.map_or(Cell::Empty, |function| Cell::Text(function.to_owned()))
    }

    /// The function of the program that wakes a thread, unless an interrupt does.
    fn waker(&self, functions: &[u32]) -> Cell {
        let outermost = functions.last().and_then(|frame| self.frames.get(*frame as usize));
        match outermost.is_some_and(StackFrame::is_interrupt) {
            true => Cell::Text(INTERRUPT.to_owned()),
            false if self.is_of_program(functions) => self.place(functions),
            false => self.waker_in_kernel(functions),
        }
    }

    /// The place of an event, unless it happens in an interrupt.
    fn event_place(&self, functions: &[u32]) -> Cell {
        let is_interrupt = |frame: &u32| self.frames.get(*frame as usize).is_some_and(StackFrame::is_interrupt);
        if functions.iter().any(is_interrupt) { Cell::Text(INTERRUPT.to_owned()) } else { self.place(functions) }
    }

    /// The innermost function of the kernel in a waker's stack, without those through which all kinds of waits end.
    fn waker_in_kernel(&self, functions: &[u32]) -> Cell {
        let says_something = |function: &&str| !WAKES.contains(function) && !function.starts_with("__wake_up");
        let place = self.of_kernel(functions).find(says_something).or_else(|| self.of_kernel(functions).next());
        place.map_or(Cell::Empty, |function| Cell::Text(function.to_owned()))
    }

    /// All functions, the outermost first, as tools for flame graphs read them.
    fn text(&self, functions: &[u32]) -> Cell {
        // Names in Java have some of their own.
        let names = functions.iter().rev().map(|frame| self.names(*frame).0.replace(';', ":"));
        let names: Vec<String> = names.collect();
        Cell::Text(if names.is_empty() { UNKNOWN.to_owned() } else { names.join(";") })
    }
}

fn text(text: &str) -> Cell {
    if text.is_empty() { Cell::Empty } else { Cell::Text(text.to_owned()) }
}
