//! Reads switches. All events of a class have their fields in the same columns, so the columns of a
//! batch are looked up once.
//!
//! ```text
//! batch     prev_tid │ next_tid │ next_comm │ ...        one class of events almost always
//! switch    thread, time  ──────> sums of the CPU
//!           next thread   ──────> note
//! ```

use kymo_ir::Cells;

use super::rows::Small;
use super::sums::{CpuFirstSwitch, CpuState, ThreadRun, TimeBins};
use crate::roles::{EventRole, PID, TID, switch};
use crate::threads::{is_dead, is_runnable};
use crate::{BoundClass, ColumnKind, Comm, EventRows, FieldSlot, LaneFacts, LaneNotes, RoleEvent};

/// A lane while it is read.
#[derive(Debug)]
pub struct CpuLane<'a> {
    facts: &'a LaneFacts,
    /// CPU of events that do not name one.
    cpu: u32,
    /// Almost always one.
    cpus: Vec<LaneCpu>,
}

/// A CPU of a lane.
#[derive(Debug)]
struct LaneCpu {
    number: u32,
    state: CpuState,
}

/// The notes about threads.
#[derive(Debug)]
pub enum CpuNote {
    /// A CPU changes threads: the one that its last switch began ran for so long, without any doubt.
    Switch(CpuSwitch),
    /// It changes threads otherwise.
    Other(Box<OtherSwitch>),
    /// A thread is made.
    Fork(Fork),
    /// A thread is known by these: its number, process and name.
    Known(i32, Option<i32>, Comm),
}

const _: () = assert!(size_of::<CpuNote>() <= 64, "notes are written and read again for each switch");

/// A thread is made.
#[derive(Debug)]
pub struct Fork {
    pub(super) child: i32,
    pub(super) child_pid: Option<i32>,
    pub(super) comm: Comm,
    /// The thread that made it, and its process.
    pub(super) parent: Option<(i32, i32)>,
}

/// A CPU changes threads.
#[derive(Debug)]
pub struct CpuSwitch {
    /// Names are empty if they are not known.
    pub(super) prev_comm: Comm,
    pub(super) next_comm: Comm,
    /// For how long the thread ran that its last switch began.
    pub(super) run_ns: u64,
    pub(super) cpu: u32,
    pub(super) prev: i32,
    pub(super) next: i32,
    pub(super) next_prio: Small,
    pub(super) prev_pid: Small,
    pub(super) is_preempted: bool,
    pub(super) is_dead: bool,
}

/// A CPU's first switch, or one that ends another thread than the CPU is known to have run or a run that is in doubt.
#[derive(Debug)]
pub struct OtherSwitch {
    pub(super) switch: CpuSwitch,
    /// The thread that it ran, and how long, if its last switch was seen.
    pub(super) ran: Option<(i32, ThreadRun)>,
}

/// Where the fields of switches are if all are columns or nowhere, which is so in almost every trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchColumns {
    prev: u16,
    next: u16,
    state: Option<u16>,
    prev_comm: Option<u16>,
    next_comm: Option<u16>,
    next_prio: Option<u16>,
    /// The context's TID and PID.
    context: Option<(u16, u16)>,
}

/// Cells of a column.
type Words<'a> = &'a [[u8; 8]];

/// These columns in a batch.
struct SwitchCells<'a> {
    prev: Words<'a>,
    next: Words<'a>,
    state: Option<Words<'a>>,
    prev_comm: Option<Words<'a>>,
    next_comm: Option<Words<'a>>,
    next_prio: Option<Words<'a>>,
    context: Option<(Words<'a>, Words<'a>)>,
    /// Fields that hold names.
    bytes: &'a [u8],
}

/// Facts of a switch.
struct SwitchFacts {
    prev: i32,
    next: i32,
    state: Option<i64>,
    prev_comm: Comm,
    next_comm: Comm,
    next_prio: Small,
    prev_pid: Small,
}

impl SwitchColumns {
    /// Those of a class that means switches and nothing else.
    pub(super) fn of(class: &BoundClass) -> Option<Self> {
        let [bound] = &class.roles[..] else { return None };
        let column = |slot: &FieldSlot, wanted: ColumnKind| match *slot {
            FieldSlot::Absent => Some(None),
            FieldSlot::Column { column, kind, is_optional: false, .. } if kind == wanted => Some(Some(column)),
            _ => None,
        };
        let number = |slot: &FieldSlot| column(slot, ColumnKind::Integer);
        let slots = (bound.role == EventRole::Switch).then_some(&bound.slots)?;
        let (tid, pid) = (number(&class.context[TID])?, number(&class.context[PID])?);
        Some(Self {
            prev: number(&slots[switch::PREV_TID])??,
            next: number(&slots[switch::NEXT_TID])??,
            state: number(&slots[switch::PREV_STATE])?,
            prev_comm: column(&slots[switch::PREV_COMM], ColumnKind::Text)?,
            next_comm: column(&slots[switch::NEXT_COMM], ColumnKind::Text)?,
            next_prio: number(&slots[switch::NEXT_PRIO])?,
            context: tid.zip(pid),
        })
    }

    fn cells<'a>(&self, cells: &'a Cells, bytes: &'a [u8]) -> SwitchCells<'a> {
        let words = |column: Option<u16>| column.map(|column| cells.words(column));
        SwitchCells {
            prev: cells.words(self.prev),
            next: cells.words(self.next),
            state: words(self.state),
            prev_comm: words(self.prev_comm),
            next_comm: words(self.next_comm),
            next_prio: words(self.next_prio),
            context: self.context.map(|(tid, pid)| (cells.words(tid), cells.words(pid))),
            bytes,
        }
    }
}

/// A number, if it fits into 32 bits.
#[inline]
fn small(cell: [u8; 8]) -> Option<i32> {
    i32::try_from(i64::from_ne_bytes(cell)).ok()
}

impl SwitchCells<'_> {
    #[inline]
    fn said(&self, row: usize) -> Option<SwitchFacts> {
        let (prev, next) = (small(self.prev[row])?, small(self.next[row])?);
        let comm = |cells: Option<Words<'_>>| {
            cells.map_or(Comm::default(), |cells| Comm::of_span(self.bytes, Cells::span_of(cells[row])))
        };
        let prev_pid = match self.context {
            Some((tid, pid)) if small(tid[row]) == Some(prev) => small(pid[row]),
            _ => None,
        };
        Some(SwitchFacts {
            prev,
            next,
            state: self.state.map(|state| i64::from_ne_bytes(state[row])),
            prev_comm: comm(self.prev_comm),
            next_comm: comm(self.next_comm),
            next_prio: Small::of(self.next_prio.and_then(|prio| small(prio[row]))),
            prev_pid: Small::of(prev_pid),
        })
    }
}

impl SwitchFacts {
    fn of(event: RoleEvent<'_>) -> Option<Self> {
        let prev = event.small(switch::PREV_TID)?;
        let prev_pid = event.event.small_context(PID).filter(|_| event.event.small_context(TID) == Some(prev));
        Some(Self {
            prev,
            next: event.small(switch::NEXT_TID)?,
            state: event.integer(switch::PREV_STATE),
            prev_comm: event.comm(switch::PREV_COMM),
            next_comm: event.comm(switch::NEXT_COMM),
            next_prio: Small::of(event.small(switch::NEXT_PRIO)),
            prev_pid: Small::of(prev_pid),
        })
    }
}

impl<'a> CpuLane<'a> {
    pub(super) fn new(facts: &'a LaneFacts, cpu: u32) -> Self {
        Self { facts, cpu, cpus: Vec::new() }
    }

    /// Results of its CPUs.
    pub(super) fn end(self) -> Vec<(u32, CpuState)> {
        self.cpus.into_iter().map(|cpu| (cpu.number, cpu.state)).collect()
    }

    /// The events of a batch; those that are no switches with columns go to `other` with their row.
    pub(super) fn steps(
        &mut self,
        (bins, columns): (&TimeBins, &[Option<SwitchColumns>]),
        rows: &EventRows,
        bytes: &[u8],
        notes: &mut LaneNotes<CpuNote>,
        mut other: impl FnMut(&mut Self, usize, &mut LaneNotes<CpuNote>),
    ) {
        let mut known: Option<(u32, SwitchCells<'_>)> = None;
        for (row, (&(number, place), &time)) in rows.places.iter().zip(&rows.times).enumerate() {
            if known.as_ref().is_none_or(|known| known.0 != number) {
                let Some(of_class) = columns[number as usize].filter(|_| self.facts.cpu.is_some()) else {
                    other(self, row, notes);
                    continue;
                };
                known = Some((number, of_class.cells(&rows.cells[number as usize], bytes)));
            }
            let said = known.as_ref().and_then(|(_, cells)| cells.said(place as usize));
            if let Some(said) = said {
                self.switch(bins, time, self.cpu, &said, notes);
            }
        }
    }

    /// A switch wherever its fields are.
    pub(super) fn switch_anywhere(&mut self, bins: &TimeBins, event: RoleEvent<'_>, notes: &mut LaneNotes<CpuNote>) {
        let number = match self.facts.cpu {
            Some(cpu) => cpu,
            None => event.event.cpu().unwrap_or(self.cpu),
        };
        if let Some(said) = SwitchFacts::of(event) {
            self.switch(bins, event.event.time, number, &said, notes);
        }
    }

    #[inline]
    fn switch(&mut self, bins: &TimeBins, time: i64, number: u32, said: &SwitchFacts, notes: &mut LaneNotes<CpuNote>) {
        let facts = self.facts;
        let cpu = &mut self.cpu(number).state;
        let SwitchFacts { prev, next, .. } = *said;
        cpu.sums.switches += 1;
        let ran = cpu.tail.map(|tail| (tail.1, cpu.ran(bins, &facts.holes, tail, (time, prev))));
        if ran.is_none() {
            cpu.head = Some(CpuFirstSwitch { time, prev });
        }
        cpu.tail = Some((time, next));
        let switch = CpuSwitch {
            prev_comm: said.prev_comm,
            next_comm: said.next_comm,
            run_ns: ran.map_or(0, |ran| ran.1.ns),
            cpu: number,
            prev,
            next,
            next_prio: said.next_prio,
            prev_pid: said.prev_pid,
            is_preempted: said.state.is_some_and(is_runnable),
            is_dead: said.state.is_some_and(|state| is_dead(state, facts.kernel)),
        };
        let note = match ran.is_some_and(|(tid, run)| tid == prev && run.doubt_ns == 0) {
            true => CpuNote::Switch(switch),
            false => CpuNote::Other(Box::new(OtherSwitch { switch, ran })),
        };
        notes.push(time, note);
    }

    #[inline]
    fn cpu(&mut self, number: u32) -> &mut LaneCpu {
        let at = self.cpus.iter().position(|known| known.number == number);
        let at = at.unwrap_or_else(|| {
            self.cpus.push(LaneCpu { number, state: CpuState::default() });
            self.cpus.len() - 1
        });
        &mut self.cpus[at]
    }
}
