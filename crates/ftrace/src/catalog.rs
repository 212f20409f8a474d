//! Which event of a trace a record becomes.

use crate::calls::{ARGUMENTS, CallFormats, CallTable, NUMBER};
use crate::format::EventFormat;
use crate::plan::{ARGUMENTS_MAX, COMMON_PID, EventPlan, KernelThreads, is_fork, value};
use crate::probe::ProbeFacts;

/// Calls with other numbers than these become events of unknown calls.
pub(crate) const CALLS_MAX: u64 = 4096;

/// Number of an event's plan in a catalog.
pub type PlanNumber = u16;

/// The events that records become, made when the first of their records comes.
#[derive(Debug, Default)]
pub struct EventCatalog {
    /// By the number in records.
    formats: Vec<Option<EventKind>>,
    calls: CallFormats,
    plans: Vec<EventPlan>,
    /// By the number of the call.
    entries: Vec<Option<PlanNumber>>,
    exits: Vec<Option<PlanNumber>>,
    compat_entries: Vec<Option<PlanNumber>>,
    compat_exits: Vec<Option<PlanNumber>>,
    /// By the number of the call, and made when it is first asked for: bits of arguments that are texts.
    texts: Vec<Option<u8>>,
    compat_texts: Vec<Option<u8>>,
}

/// A record of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// The thread.
    pub tid: u32,
    /// The number of the call.
    pub number: u64,
    /// It is the end of the call.
    pub is_exit: bool,
    /// Its arguments; zeros at the end of a call.
    pub arguments: [u64; ARGUMENTS_MAX],
}

#[derive(Debug)]
enum EventKind {
    /// One event, which may be that of a new thread.
    One { format: Box<EventFormat>, plan: Option<PlanNumber>, is_fork: bool },
    /// Tells of a thread that is about to be forked, and is an event besides.
    NewTask { format: Box<EventFormat>, plan: Option<PlanNumber>, is_wanted: bool },
    /// The beginning of any system call.
    CallEntry,
    /// The end of any system call.
    CallExit,
}

impl EventCatalog {
    /// Adds an event of the kernel. Those of `task_newtask` become events only where they are wanted: forks need them too.
    pub fn add(&mut self, format: EventFormat, is_wanted: bool) {
        if format.system == "syscalls" {
            self.calls.add(&format);
            return;
        }
        let id = format.id;
        let kind = match (format.system.as_str(), format.name.as_str()) {
            ("raw_syscalls", "sys_enter") => EventKind::CallEntry,
            ("raw_syscalls", "sys_exit") => EventKind::CallExit,
            ("task", "task_newtask") => EventKind::NewTask { format: Box::new(format), plan: None, is_wanted },
            _ => EventKind::One { plan: None, is_fork: is_fork(&format), format: Box::new(format) },
        };
        *place(&mut self.formats, id.into()) = Some(kind);
    }

    /// Adds the event of a probe.
    pub fn add_probe(&mut self, format: &EventFormat, facts: &ProbeFacts) {
        let plan = Some(add(&mut self.plans, EventPlan::of_probe(format, facts)));
        *place(&mut self.formats, format.id.into()) =
            Some(EventKind::One { format: Box::new(format.clone()), plan, is_fork: false });
    }

    /// Texts of calls are known, not only their addresses.
    pub fn expect_texts(&mut self) {
        self.calls.has_texts = true;
    }

    /// A bit for each argument of a call that is a text.
    pub fn texts(&mut self, table: CallTable, number: u64) -> u8 {
        let known = match table {
            CallTable::Native => &mut self.texts,
            CallTable::Compat => &mut self.compat_texts,
        };
        let number = number.min(CALLS_MAX);
        *place(known, number as usize).get_or_insert_with(|| self.calls.texts(table, number))
    }

    /// The name of a call; `None`: there is none with this number.
    #[must_use]
    pub fn call_name(&self, table: CallTable, number: u64) -> Option<String> {
        self.calls.name(table, number)
    }

    /// The plan for the beginning of a call, of records as [`whole_call`] makes them, too.
    #[must_use]
    pub fn call_entry(&self, table: CallTable, number: u64) -> EventPlan {
        self.calls.entry(table, number.min(CALLS_MAX))
    }

    /// The plan for the end of a call with its arguments, of records as [`whole_call`] makes them; `time`: with the time of the record, under
    /// this name.
    #[must_use]
    pub fn whole_call(&self, table: CallTable, number: u64, time: Option<&str>) -> EventPlan {
        self.calls.whole(table, number.min(CALLS_MAX), time)
    }

    /// Whether a record tells which process a thread belongs to.
    #[inline]
    #[must_use]
    pub fn tells_of_threads(&self, record: &[u8]) -> bool {
        let id = value(record, 0, 2, false).and_then(|id| usize::try_from(id).ok());
        match id.and_then(|id| self.formats.get(id)?.as_ref()) {
            Some(EventKind::NewTask { .. }) => true,
            Some(EventKind::One { is_fork, .. }) => *is_fork,
            _ => false,
        }
    }

    /// The call that a record is about; `None`: it is about something else.
    #[must_use]
    pub fn call(&self, record: &[u8]) -> Option<CallRecord> {
        let id = value(record, 0, 2, false)? as usize;
        let is_exit = match self.formats.get(id)?.as_ref()? {
            EventKind::CallEntry => false,
            EventKind::CallExit => true,
            _ => return None,
        };
        let mut arguments = [0; ARGUMENTS_MAX];
        if !is_exit {
            for (from, argument) in (ARGUMENTS..).step_by(8).zip(&mut arguments) {
                *argument = value(record, from, 8, false)? as u64;
            }
        }
        let (tid, number) = (value(record, COMMON_PID, 4, false)? as u32, value(record, NUMBER, 8, false)? as u64);
        Some(CallRecord { tid, number, is_exit, arguments })
    }

    /// The plan of a record's event; `None`: it becomes no event. Calls have numbers of this table.
    ///
    /// # Errors
    ///
    /// The number of an event that was not added, or no number.
    #[inline]
    pub fn plan(
        &mut self,
        cpu: u32,
        record: &[u8],
        table: CallTable,
        threads: &mut KernelThreads,
    ) -> Result<Option<PlanNumber>, Option<u16>> {
        let id = value(record, 0, 2, false).ok_or(None)? as u16;
        match self.formats.get_mut(usize::from(id)).and_then(Option::as_mut).ok_or(Some(id))? {
            EventKind::One { format, plan, .. } => Ok(Some(numbered(&mut self.plans, plan, format))),
            EventKind::NewTask { format, plan, is_wanted } => {
                let of = |name: &str, size| {
                    let field = format.field(name).filter(|field| field.size == size)?;
                    value(record, field.offset, size as u8, false)
                };
                if let (Some(tid), Some(flags)) = (of("pid", 4), of("clone_flags", 8)) {
                    threads.made(cpu, tid as u32, flags as u64);
                }
                Ok(is_wanted.then(|| numbered(&mut self.plans, plan, format)))
            }
            EventKind::CallEntry => {
                let number = call_number(record).ok_or(Some(id))?;
                let entries = match table {
                    CallTable::Native => &mut self.entries,
                    CallTable::Compat => &mut self.compat_entries,
                };
                let plan = place(entries, number as usize);
                Ok(Some(*plan.get_or_insert_with(|| add(&mut self.plans, self.calls.entry(table, number)))))
            }
            EventKind::CallExit => {
                let number = call_number(record).ok_or(Some(id))?;
                let exits = match table {
                    CallTable::Native => &mut self.exits,
                    CallTable::Compat => &mut self.compat_exits,
                };
                let plan = place(exits, number as usize);
                Ok(Some(*plan.get_or_insert_with(|| add(&mut self.plans, self.calls.exit(table, number)))))
            }
        }
    }

    /// A plan.
    ///
    /// # Panics
    ///
    /// If the number is of another catalog.
    #[inline]
    #[must_use]
    pub fn plan_of(&self, number: PlanNumber) -> &EventPlan {
        &self.plans[usize::from(number)]
    }
}

/// The record of a call with its arguments, its result, and how long it took.
#[must_use]
pub fn whole_call(number: u64, arguments: [u64; ARGUMENTS_MAX], result: u64, took: u64) -> Vec<u8> {
    let words = [0, number].into_iter().chain(arguments).chain([result, took]);
    words.flat_map(u64::to_le_bytes).collect()
}

/// The element of a number; those before it are there, too.
fn place<T: Default>(all: &mut Vec<T>, number: usize) -> &mut T {
    if all.len() <= number {
        all.resize_with(number + 1, T::default);
    }
    &mut all[number]
}

fn call_number(record: &[u8]) -> Option<u64> {
    let number = value(record, NUMBER, 8, false)? as u64;
    // All others are one, so that a record with any number adds no event.
    Some(number.min(CALLS_MAX))
}

fn numbered(plans: &mut Vec<EventPlan>, plan: &mut Option<PlanNumber>, format: &EventFormat) -> PlanNumber {
    *plan.get_or_insert_with(|| add(plans, EventPlan::of(format)))
}

fn add(plans: &mut Vec<EventPlan>, plan: EventPlan) -> PlanNumber {
    let number = PlanNumber::try_from(plans.len()).expect("there are fewer events and calls than numbers");
    plans.push(plan);
    number
}
