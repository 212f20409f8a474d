//! Which event of a trace a record becomes.

use crate::calls::{CallFormats, NUMBER};
use crate::format::EventFormat;
use crate::plan::{EventPlan, KernelThreads, value};

/// Calls with other numbers than these become events of unknown calls.
const CALLS_MAX: u64 = 4096;

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
}

#[derive(Debug)]
enum EventKind {
    /// One event.
    One { format: Box<EventFormat>, plan: Option<PlanNumber> },
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
            _ => EventKind::One { format: Box::new(format), plan: None },
        };
        *place(&mut self.formats, id.into()) = Some(kind);
    }

    /// The plan of a record's event; `None`: it becomes no event.
    ///
    /// # Errors
    ///
    /// The number of an event that was not added, or no number.
    #[inline]
    pub fn plan(
        &mut self,
        cpu: u32,
        record: &[u8],
        threads: &mut KernelThreads,
    ) -> Result<Option<PlanNumber>, Option<u16>> {
        let id = value(record, 0, 2, false).ok_or(None)? as u16;
        match self.formats.get_mut(usize::from(id)).and_then(Option::as_mut).ok_or(Some(id))? {
            EventKind::One { format, plan } => Ok(Some(numbered(&mut self.plans, plan, format))),
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
                let plan = place(&mut self.entries, number as usize);
                Ok(Some(*plan.get_or_insert_with(|| add(&mut self.plans, self.calls.entry(number)))))
            }
            EventKind::CallExit => {
                let number = call_number(record).ok_or(Some(id))?;
                let plan = place(&mut self.exits, number as usize);
                Ok(Some(*plan.get_or_insert_with(|| add(&mut self.plans, self.calls.exit(number)))))
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
