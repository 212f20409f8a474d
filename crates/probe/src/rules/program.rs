//! The program of an event that a rule is about.
//!
//! ```text
//! a thread that is not recorded ── end
//! key                  begins[key] never seen: unknown; 0: nothing has begun; else took = now - begin, and begins[key] = 0
//! condition            no ── end
//! kind ── its slot     took > limit? ── no ── counts let_go
//!                      the running limit follows
//! longer, or unknown   record ── ring of this CPU; counts kept
//! ```
//!
//! Of each CPU, a program has its own counts: the kernel lets no program interrupt itself there.

use std::os::fd::BorrowedFd;

use super::memory::{COUNT_BYTES, RuleMemory, SLOT_BITS, count, slot};
use super::{RULE_HEAD_BYTES, RULE_KINDS_MAX, head};
use crate::assembly::{BpfAssembly, Condition, KernelFunction, Label, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, STACK};
use crate::thread_limit::{RecordedThreads, ThreadLimit};
use crate::watch::begins::BeginsOfPrograms;
use crate::watch::parts::{ReadPart, StackOverflow, StackRoom, parts, update};
use crate::watch::pieces::PiecePlaces;
use crate::watch::program::CompiledCondition;

/// An entry must be new.
const NEW: i32 = 1;
const NO_WAKEUP: i32 = 1;
/// A running limit moves by this share of itself at least: 0.02, in parts of 2^32.
const SHARE_MIN: i32 = 85_899_346;
/// Running limits are in parts of a nanosecond.
const FRACTION_BITS: i32 = 16;
/// Nanoseconds of longer times, 2^46, are as long.
const TOOK_BITS: u32 = 46;
/// How long an event took whose begin is not known, and one that ends nothing.
const UNKNOWN: i32 = -1;
const UNPAIRED: i32 = 0;

/// A program to be written.
#[derive(Clone, Debug)]
pub(super) struct RulePlan {
    /// The number of the rule, and that of the event in it.
    pub(super) rule: u16,
    pub(super) event: u16,
    pub(super) condition: Option<CompiledCondition>,
    /// The key of the event that began it.
    pub(super) since: Vec<ReadPart>,
    /// The value that tells kinds.
    pub(super) kind: Option<ReadPart>,
    /// Values that a record has.
    pub(super) fields: Vec<ReadPart>,
    pub(super) ask: RuleAsk,
    /// Threads that the event is recorded of.
    pub(super) threads: RecordedThreads,
    /// The key is the thread that runs: one that has begun after the rule ends nothing that began before.
    pub(super) by_thread: Option<ThreadAge>,
}

/// What a rule asks about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleAsk {
    /// Whether it took longer than the limit: the part of 2^32 of all times that the running limit is not exceeded by; `None`: it is fixed.
    Over(Option<u32>),
    /// Nothing but the condition.
    Each,
    /// Whether something of its key has begun, and has not ended.
    Between,
}

/// How a program finds out whether the thread that runs is younger than the rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadAge {
    /// Where the description of a thread has its begin: `CLOCK_MONOTONIC`.
    pub(super) begin_at: i16,
    /// When the rule began.
    pub(super) rule_nanos: u64,
}

/// Maps of the programs of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleMaps<'a> {
    /// What has begun; `None`: nothing begins.
    pub(super) begins: Option<BeginsOfPrograms<'a>>,
    /// Slots of kinds, by their value.
    pub(super) kinds: Option<BorrowedFd<'a>>,
    /// Limits and counts.
    pub(super) memory: BorrowedFd<'a>,
    pub(super) shape: RuleMemory,
    /// Rings, by the CPU.
    pub(super) rings: BorrowedFd<'a>,
    /// Threads that are recorded; `None`: all are.
    pub(super) threads: Option<&'a ThreadLimit>,
}

/// Writes the program of an event that a rule is about.
pub(super) fn judged(plan: &RulePlan, maps: RuleMaps<'_>) -> Result<Vec<[u8; 8]>, StackOverflow> {
    let mut room = StackRoom::default();
    let places = PiecePlaces { scratch: room.take(8)?, took: room.take(8)?, event: 0 };
    let mut program = JudgedProgram { code: BpfAssembly::default(), maps, places, now: room.take(8)? };
    let [end, keep, let_go, test] = std::array::from_fn(|_| program.code.label());
    program.code.copy(R6, R1);
    if let Some(threads) = maps.threads {
        let place = program.places.scratch;
        plan.threads.check(&mut program.code, threads, place, end);
    }
    match (plan.ask, maps.begins) {
        (RuleAsk::Over(_), Some(begins)) => program.took(&plan.since, begins, plan.by_thread, &mut room)?,
        (RuleAsk::Between, Some(begins)) => program.since_begin(&plan.since, begins, &mut room)?,
        _ => program.time(),
    }
    let not_true = if plan.ask == RuleAsk::Each { let_go } else { end };
    if let Some(condition) = &plan.condition {
        let base = room.take(condition.inputs.iter().map(ReadPart::bytes).sum())?;
        parts(&mut program.code, &condition.inputs, base, places);
        program.code.copy(R1, STACK);
        program.code.add(R1, base.into());
        program.code.call_part(test);
        program.code.jump_if(Condition::Equal, R0, 0, not_true);
    }
    if let RuleAsk::Over(running) = plan.ask {
        program.code.jump_if(Condition::Equal, R8, UNPAIRED, let_go);
        program.code.jump_if(Condition::Equal, R8, UNKNOWN, keep);
        program.slot(plan.kind.as_ref(), &mut room)?;
        program.judge(running, plan.kind.is_some(), keep);
    } else {
        program.code.jump_if(Condition::Equal, R8, UNPAIRED, let_go);
        program.is_open(keep);
    }
    program.code.jump(let_go);
    program.code.place(keep);
    program.record(plan, &mut room, end)?;
    program.code.jump(end);
    program.code.place(let_go);
    program.count_of_cpu(plan.event, end);
    program.count(count::LET_GO);
    program.code.place(end);
    program.code.exit();
    if let Some(condition) = &plan.condition {
        program.code.place(test);
        program.code.append(condition.instructions.iter().copied());
    }
    Ok(program.code.finish())
}

/// Registers: r6 the arguments, r8 how long it took, r9 the slot, or the counts of this CPU.
struct JudgedProgram<'a> {
    code: BpfAssembly,
    maps: RuleMaps<'a>,
    places: PiecePlaces,
    /// The time.
    now: i16,
}

impl JudgedProgram<'_> {
    /// The time; r8 tells no begin.
    fn time(&mut self) {
        self.code.call(KernelFunction::Nanos);
        self.code.store((STACK, self.now), R0, 8);
        self.code.set(R8, UNKNOWN);
        self.code.store((STACK, self.places.took), R8, 8);
    }

    /// r8 becomes the time since the begin of what has not ended.
    fn since_begin(
        &mut self,
        keys: &[ReadPart],
        begins: BeginsOfPrograms<'_>,
        room: &mut StackRoom,
    ) -> Result<(), StackOverflow> {
        let Self { code, places, now, .. } = self;
        let [unpaired, done] = std::array::from_fn(|_| code.label());
        code.call(KernelFunction::Nanos);
        code.store((STACK, *now), R0, 8);
        code.copy(R8, R0);
        begins.look_up(code, keys, room, *places)?;
        code.jump_if(Condition::Equal, R0, 0, unpaired);
        code.load(R1, (R0, 0), 8);
        code.jump_if(Condition::Equal, R1, 0, unpaired);
        code.subtract_register(R8, R1);
        code.jump_if(Condition::AboveSigned, R8, 0, done);
        // It has begun in this very moment, on another CPU.
        code.set(R8, 1);
        code.jump(done);
        code.place(unpaired);
        code.set(R8, UNPAIRED);
        code.place(done);
        code.store((STACK, places.took), R8, 8);
        Ok(())
    }

    /// To `is_open` if the rule keeps events now.
    fn is_open(&mut self, is_open: Label) {
        self.code.map_value(R1, self.maps.memory, RuleMemory::slot_at(0) as i32);
        self.code.load(R1, (R1, slot::SET), 8);
        self.code.jump_if(Condition::Equal, R1, 0, is_open);
    }

    /// r8 becomes how long it took.
    fn took(
        &mut self,
        keys: &[ReadPart],
        begins: BeginsOfPrograms<'_>,
        age: Option<ThreadAge>,
        room: &mut StackRoom,
    ) -> Result<(), StackOverflow> {
        let zero = room.take(8)?;
        let Self { code, places, now, .. } = self;
        let [new, unpaired, done] = std::array::from_fn(|_| code.label());
        code.call(KernelFunction::Nanos);
        code.store((STACK, *now), R0, 8);
        code.copy(R8, R0);
        let key = begins.look_up(code, keys, room, *places)?;
        code.jump_if(Condition::Equal, R0, 0, new);
        code.load(R1, (R0, 0), 8);
        code.jump_if(Condition::Equal, R1, 0, unpaired);
        code.store_constant((R0, 0), 0, 8);
        code.subtract_register(R8, R1);
        // Another one may have begun on another CPU meanwhile.
        code.jump_if(Condition::LessSigned, R8, 0, unpaired);
        code.jump(done);
        // The next end of this key without a begin is none.
        code.place(new);
        code.store_constant((STACK, zero), 0, 8);
        begins.put(code, key, zero, NEW);
        if let Some(ThreadAge { begin_at, rule_nanos }) = age {
            code.call(KernelFunction::CurrentTask);
            code.load(R1, (R0, begin_at), 8);
            code.set_long(R2, rule_nanos);
            code.jump_if_register(Condition::Above, R1, R2, unpaired);
        }
        code.set(R8, UNKNOWN);
        code.jump(done);
        code.place(unpaired);
        code.set(R8, UNPAIRED);
        code.place(done);
        code.store((STACK, places.took), R8, 8);
        Ok(())
    }

    /// r9 becomes the slot of the event's kind.
    fn slot(&mut self, kind: Option<&ReadPart>, room: &mut StackRoom) -> Result<(), StackOverflow> {
        let (Some(kind), Some(kinds)) = (kind, self.maps.kinds) else {
            self.code.map_value(R9, self.maps.memory, RuleMemory::SLOTS_AT as i32);
            return Ok(());
        };
        let (key, number) = (room.take(kind.bytes())?, room.take(8)?);
        let Self { code, maps, places, .. } = self;
        let [found, shared, named] = std::array::from_fn(|_| code.label());
        parts(code, std::slice::from_ref(kind), key, *places);
        code.look_up(kinds, key);
        code.jump_if(Condition::NotEqual, R0, 0, found);
        // Kinds beyond those that have slots share one.
        code.map_value(R1, maps.memory, 0);
        code.load(R2, (R1, 0), 8);
        code.jump_if(Condition::Above, R2, RULE_KINDS_MAX as i32 - 1, shared);
        code.set(R2, 1);
        code.fetch_add((R1, 0), R2);
        code.jump_if(Condition::Above, R2, RULE_KINDS_MAX as i32 - 1, shared);
        code.add(R2, 1);
        code.store((STACK, number), R2, 8);
        update(code, kinds, key, number, NEW);
        code.copy(R7, R0);
        code.look_up(kinds, key);
        code.jump_if(Condition::Equal, R0, 0, shared);
        code.jump_if(Condition::NotEqual, R7, 0, found);
        // It is ours: it gets its name.
        self.slot_of_number(shared);
        let Self { code, .. } = self;
        for at in (0..kind.bytes() as i16).step_by(8) {
            code.load(R1, (STACK, key + at), 8);
            code.store((R9, slot::KEY + at), R1, 8);
        }
        code.store_constant((R9, slot::IS_USED), 1, 8);
        code.jump(named);
        code.place(shared);
        code.map_value(R9, self.maps.memory, RuleMemory::SLOTS_AT as i32);
        code.jump(named);
        code.place(found);
        self.slot_of_number(shared);
        self.code.place(named);
        Ok(())
    }

    /// r9 becomes the slot of the number that r0 leads to.
    fn slot_of_number(&mut self, shared: Label) {
        let code = &mut self.code;
        code.load(R1, (R0, 0), 8);
        code.jump_if(Condition::Above, R1, RULE_KINDS_MAX as i32, shared);
        code.shift_left(R1, SLOT_BITS);
        code.map_value(R9, self.maps.memory, RuleMemory::SLOTS_AT as i32);
        code.add_register(R9, R1);
    }

    /// To `is_over` if it took longer than the limit of the slot, which follows all times if it is a running one.
    fn judge(&mut self, running: Option<u32>, has_kinds: bool, is_over: Label) {
        let code = &mut self.code;
        if running.is_none() && has_kinds {
            code.set(R1, 1);
            code.add_to((R9, slot::EVENTS), R1);
        }
        code.load(R7, (R9, slot::SET), 8);
        if let Some(part) = running {
            follow(code, part, is_over);
        }
        code.jump_if_register(Condition::Above, R8, R7, is_over);
    }

    /// Puts the record into the ring of this CPU, and counts it.
    fn record(&mut self, plan: &RulePlan, room: &mut StackRoom, end: Label) -> Result<(), StackOverflow> {
        let bytes = RULE_HEAD_BYTES as u32 + plan.fields.iter().map(ReadPart::bytes).sum::<u32>();
        let (record, cpu) = (room.take(bytes)?, room.take(8)?);
        let Self { code, maps, places, now } = self;
        let [lost, has_begin] = std::array::from_fn(|_| code.label());
        code.load(R1, (STACK, *now), 8);
        code.store((STACK, record + head::NANOS), R1, 8);
        code.store((STACK, record + head::TOOK), R8, 8);
        code.store_constant((STACK, record + head::RULE), plan.rule.into(), 2);
        code.store_constant((STACK, record + head::EVENT), plan.event.into(), 2);
        code.call(KernelFunction::Cpu);
        code.store((STACK, record + head::CPU), R0, 4);
        code.store_constant((STACK, cpu), 0, 8);
        code.store((STACK, cpu), R0, 4);
        code.call(KernelFunction::ProcessAndThread);
        code.store((STACK, record + head::TID), R0, 4);
        code.shift_right(R0, 32);
        code.store((STACK, record + head::PID), R0, 4);
        for at in [0, 8] {
            code.store_constant((STACK, record + head::COMM + at), 0, 8);
        }
        code.copy(R1, STACK);
        code.add(R1, (record + head::COMM).into());
        code.set(R2, 16);
        code.call(KernelFunction::CurrentName);
        parts(code, &plan.fields, record + RULE_HEAD_BYTES as i16, *places);
        // r8 is not needed any more.
        code.set(R8, 1);
        code.look_up(maps.rings, cpu);
        code.jump_if(Condition::Equal, R0, 0, lost);
        code.copy(R1, R0);
        code.copy(R2, STACK);
        code.add(R2, record.into());
        code.set(R3, bytes as i32);
        code.set(R4, NO_WAKEUP);
        code.call(KernelFunction::Output);
        code.copy(R8, R0);
        code.place(lost);
        self.count_of_cpu(plan.event, end);
        self.count(count::KEPT);
        if matches!(plan.ask, RuleAsk::Over(_)) {
            self.code.load(R1, (STACK, record + head::TOOK), 8);
            self.code.jump_if(Condition::NotEqual, R1, UNKNOWN, has_begin);
            self.count(count::UNKNOWN);
            self.code.place(has_begin);
        }
        self.code.jump_if(Condition::Equal, R8, 0, end);
        self.count(count::LOST);
        Ok(())
    }

    /// r9 becomes the counts of this CPU; or to `outside`.
    fn count_of_cpu(&mut self, event: u16, outside: Label) {
        let RuleMaps { memory, shape, .. } = self.maps;
        let code = &mut self.code;
        code.call(KernelFunction::Cpu);
        code.jump_if(Condition::Above, R0, shape.cpus as i32 - 1, outside);
        code.shift_left(R0, COUNT_BYTES.trailing_zeros() as i32);
        code.map_value(R9, memory, shape.counts_at(event.into()) as i32);
        code.add_register(R9, R0);
    }

    /// One more.
    fn count(&mut self, place: i16) {
        self.code.load(R1, (R9, place), 8);
        self.code.add(R1, 1);
        self.code.store((R9, place), R1, 8);
    }
}

/// The running limit of the slot in r9 follows the time in r8. If no other limit was set (r7 is 0), r7 becomes the running one before
/// that; the first event is over it.
fn follow(code: &mut BpfAssembly, part: u32, is_over: Label) {
    let [is_short, is_set, is_first, up, moved, stored] = std::array::from_fn(|_| code.label());
    // r2 is the time, with its fraction; r1 the limit, r4 the events before it.
    code.copy(R2, R8);
    code.copy(R3, R8);
    code.shift_right(R3, TOOK_BITS as i32);
    code.jump_if(Condition::Equal, R3, 0, is_short);
    code.set_long(R2, (1 << TOOK_BITS) - 1);
    code.place(is_short);
    code.shift_left(R2, FRACTION_BITS);
    code.load(R1, (R9, slot::RUNNING), 8);
    code.jump_if(Condition::NotEqual, R7, 0, is_set);
    code.copy(R7, R1);
    code.shift_right(R7, FRACTION_BITS);
    code.place(is_set);
    code.load(R4, (R9, slot::EVENTS), 8);
    code.copy(R5, R4);
    code.add(R5, 1);
    code.store((R9, slot::EVENTS), R5, 8);
    code.jump_if(Condition::Equal, R4, 0, is_first);
    // r0 becomes the share of itself that it moves by.
    code.set_long(R0, 1 << 32);
    code.divide_by(R0, R5);
    let is_enough = code.label();
    code.jump_if(Condition::Above, R0, SHARE_MIN, is_enough);
    code.set(R0, SHARE_MIN);
    code.place(is_enough);
    code.jump_if_register(Condition::Above, R2, R1, up);
    multiplied(code, (1 << 32) - u64::from(part));
    code.subtract_register(R1, R3);
    code.jump(moved);
    code.place(up);
    multiplied(code, part.into());
    code.add_register(R1, R3);
    code.place(moved);
    // It is a nanosecond at least.
    code.jump_if(Condition::Above, R1, (1 << FRACTION_BITS) - 1, stored);
    code.set(R1, 1 << FRACTION_BITS);
    code.jump(stored);
    code.place(is_first);
    code.copy(R1, R2);
    code.store((R9, slot::RUNNING), R1, 8);
    code.load(R3, (R9, slot::SET), 8);
    code.jump_if(Condition::Equal, R3, 0, is_over);
    code.place(stored);
    code.store((R9, slot::RUNNING), R1, 8);
}

/// r3 becomes r1 · r0 · `part` / 2^64; r0, r4 and r5 change.
fn multiplied(code: &mut BpfAssembly, part: u64) {
    code.set_long(R5, part);
    code.multiply_by(R0, R5);
    code.shift_right(R0, 32);
    code.copy(R3, R1);
    code.shift_right(R3, 32);
    code.multiply_by(R3, R0);
    code.copy(R4, R1);
    code.shift_left(R4, 32);
    code.shift_right(R4, 32);
    code.multiply_by(R4, R0);
    code.shift_right(R4, 32);
    code.add_register(R3, R4);
}
