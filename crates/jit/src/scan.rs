//! The scan of a data stream class: one loop in machine code.
//!
//! ```text
//! while position < end and count < limit
//!     read the header                     inlined
//!     class = ids[id]                     a table
//!     cycles[count], classes[count], positions[count] = ...
//!     position += entry of the class      a constant, or a call
//!     count += 1                          with tests: if that call says so
//! ```
//!
//! A record is written to the arrays before it is known whether it is kept: one that is dropped is
//! overwritten by the next one, and no branch has to be guessed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use kymo_ir::{ClassTest, PacketWindow, ProgramFault, ReadState, Records, ScanPlan, ScanStop, eval};

use crate::body::{self, RecordSelection, ScanEntry};
use crate::engine::JitEngine;
use crate::sound;
use crate::translate::{FunctionContext, Translator, trusted};

/// Records of a layout that the evaluator reads before the layout is compiled: compiling costs about as much.
pub const COMPILE_AFTER: u32 = 400;
/// Ids up to here are looked up in a table; records with others are left to the evaluator.
const IDS_MAX: u64 = 1 << 16;
const NO_CLASS: u32 = u32::MAX;

/// A compiled scan. May be used by several threads at once.
#[derive(Debug)]
pub struct Scan {
    /// Keeps the code alive.
    engine: JitEngine,
    address: usize,
    plan: Arc<ScanPlan>,
    slots: usize,
    /// For each class, a [`ScanEntry`].
    entries: Vec<AtomicU64>,
    /// For each class, which of `used`.
    class_unit: Vec<usize>,
    /// For each pair of a layout and a test, how often the evaluator read it.
    used: Vec<AtomicU32>,
    has_tests: bool,
    compile_after: u32,
    ids: Vec<u32>,
}

/// The values that the machine code reads and writes.
#[repr(C)]
struct ScanArguments {
    base: usize,
    end: u64,
    position: u64,
    clock: u64,
    slots: *mut u64,
    cycles: *mut u64,
    classes: *mut u32,
    positions: *mut u64,
    count: u64,
    limit: u64,
    entries: *const AtomicU64,
    ids: *const u32,
    ids_count: u64,
}

const END: i64 = 0;
const FULL: i64 = 1;

macro_rules! offset {
    ($field:ident) => {
        std::mem::offset_of!(ScanArguments, $field) as i32
    };
}

impl Scan {
    /// Compiles the loop; `None` if the header has a part that is left to the evaluator.
    #[must_use]
    pub fn new(engine: &JitEngine, plan: &Arc<ScanPlan>, compile_after: u32) -> Option<Self> {
        let header = sound::slots(&plan.header)?;
        let slots = plan.bodies.iter().chain(&plan.tests).map(sound::slots_used).fold(header, usize::max);
        let bodies_are_there = plan.class_body.iter().all(|&body| (body as usize) < plan.bodies.len());
        let test_is_there =
            |test: &ClassTest| !matches!(*test, ClassTest::Test(test) if test as usize >= plan.tests.len());
        let classes = plan.class_body.len();
        let mut named = plan.ids.iter().map(|(_, class)| *class).chain(plan.only_class);
        if !bodies_are_there
            || !plan.class_test.iter().all(test_is_there)
            || named.any(|class| class as usize >= classes)
        {
            return None;
        }
        let has_tests = plan.class_test.iter().any(|test| *test != ClassTest::Always);
        let address = engine.compile(1, |builder| Loop::write(engine, builder, plan, has_tests))?;
        let mut ids = Vec::new();
        for &(id, class) in plan.ids.iter().filter(|(id, _)| *id < IDS_MAX) {
            ids.resize((id as usize + 1).max(ids.len()), NO_CLASS);
            ids[id as usize] = class;
        }
        let (class_unit, units) = units(plan);
        let entry = |class: usize| {
            let body = &plan.bodies[plan.class_body[class] as usize];
            match class_test(plan, class) {
                ClassTest::Always => body::fixed(body, true),
                ClassTest::Never => body::fixed(body, false),
                ClassTest::Test(_) => None,
            }
        };
        let entries = (0..classes).map(|class| AtomicU64::new(entry(class).unwrap_or(ScanEntry::COLD).0)).collect();
        let scan = Self {
            engine: engine.clone(),
            address,
            plan: Arc::clone(plan),
            slots,
            entries,
            class_unit,
            used: (0..units).map(|_| AtomicU32::new(0)).collect(),
            has_tests,
            compile_after,
            ids,
        };
        Some(scan)
    }

    /// The same as [`eval::scan`] with the plan.
    ///
    /// # Panics
    ///
    /// If the state has too few slots, or the position lies before the window.
    pub fn run(
        &self,
        window: PacketWindow<'_>,
        position: &mut u64,
        state: &mut ReadState,
        records: &mut Records,
        limit: usize,
    ) -> ScanStop {
        if *position >= window.end() {
            return ScanStop::End;
        }
        // Calls of functions with tests return a shifted position, which must not lose its upper
        // bit.
        if window.end() >= body::POSITION_MAX {
            return eval::scan(&self.plan, window, position, state, records, limit);
        }
        sound::check(window, &[*position], &state.slots, self.slots);
        loop {
            match self.machine(window, position, state, records, limit) {
                END => return ScanStop::End,
                FULL => return ScanStop::Full,
                _ => {}
            }
            if let Err(fault) = self.evaluated(window, position, state, records) {
                return ScanStop::Fault(fault);
            }
        }
    }

    /// Reads the record that the machine code is stuck at.
    fn evaluated(
        &self,
        window: PacketWindow<'_>,
        position: &mut u64,
        state: &mut ReadState,
        records: &mut Records,
    ) -> Result<(), ProgramFault> {
        let plan = &*self.plan;
        let clock = state.clock;
        // A record that cannot be read must not move the clock: the caller may go on from there.
        let found = eval::scan_one(plan, window, *position, state).inspect_err(|_| state.clock = clock)?;
        if found.kept {
            records.cycles.push(state.clock);
            records.classes.push(found.class);
            records.positions.push(found.position);
        }
        *position = found.end;
        self.heat(found.class as usize);
        Ok(())
    }

    /// Compiles a layout with its test when they were needed often enough.
    fn heat(&self, class: usize) {
        let unit = self.class_unit[class];
        // Of several threads exactly one gets this number, so a layout is compiled once. The others
        // go on with the evaluator and do not wait.
        if self.used[unit].fetch_add(1, Ordering::Relaxed) != self.compile_after {
            return;
        }
        let Some(entry) = self.compile(class) else { return };
        for (class, _) in self.class_unit.iter().enumerate().filter(|(_, of_class)| **of_class == unit) {
            // After the code is complete. Other threads are in the loop meanwhile, and read the
            // word for each record.
            self.entries[class].store(entry.0, Ordering::Release);
        }
    }

    fn compile(&self, class: usize) -> Option<ScanEntry> {
        let plan = &*self.plan;
        let body = &plan.bodies[plan.class_body[class] as usize];
        if !self.has_tests {
            return body::compile(&self.engine, body);
        }
        let kept = match class_test(plan, class) {
            ClassTest::Always => RecordSelection::All,
            ClassTest::Never => RecordSelection::None,
            ClassTest::Test(test) => RecordSelection::Test(&plan.tests[test as usize]),
        };
        body::compile_tested(&self.engine, body, kept)
    }

    fn machine(
        &self,
        window: PacketWindow<'_>,
        position: &mut u64,
        state: &mut ReadState,
        records: &mut Records,
        limit: usize,
    ) -> i64 {
        let count = records.len();
        let limit = limit.max(count);
        // Before the addresses are taken: machine code never allocates, and the arrays must not
        // move.
        records.cycles.reserve(limit - count);
        records.classes.reserve(limit - count);
        records.positions.reserve(limit - count);
        let mut arguments = ScanArguments {
            // The address that the packet's first byte would have, so that positions need no
            // subtraction. It may lie outside of any memory, and is never read itself.
            base: (window.bytes().as_ptr() as usize).wrapping_sub(window.origin() as usize),
            end: window.end(),
            position: *position,
            clock: state.clock,
            slots: state.slots.as_mut_ptr(),
            cycles: records.cycles.as_mut_ptr(),
            classes: records.classes.as_mut_ptr(),
            positions: records.positions.as_mut_ptr(),
            count: count as u64,
            limit: limit as u64,
            entries: self.entries.as_ptr(),
            ids: self.ids.as_ptr(),
            ids_count: self.ids.len() as u64,
        };
        // SAFETY: `address` is a function of this type that `engine`, which this holds, compiled from this plan.
        // The verifier accepted each program of it before it was compiled, and every class has a body.
        // It reads the window's bytes from `position`, which lies inside, to `end` and at most `SLACK` bytes more,
        // which `PacketWindow` promises, writes the record arrays below `limit`, for which they have room, reads
        // `entries` by the classes of the same plan and `ids` below `ids_count`, and slots, of which there are enough.
        #[allow(unsafe_code)]
        let stop = unsafe {
            let function: extern "C" fn(*mut ScanArguments) -> i64 = std::mem::transmute(self.address);
            function(&raw mut arguments)
        };
        let count = arguments.count as usize;
        // SAFETY: the function wrote every element of the three arrays below `count`, which is at most `limit`.
        #[allow(unsafe_code)]
        unsafe {
            records.cycles.set_len(count);
            records.classes.set_len(count);
            records.positions.set_len(count);
        }
        *position = arguments.position;
        state.clock = arguments.clock;
        stop
    }
}

fn class_test(plan: &ScanPlan, class: usize) -> ClassTest {
    plan.class_test.get(class).copied().unwrap_or_default()
}

/// For each class the number of its pair of layout and test, and how many such pairs there are.
fn units(plan: &ScanPlan) -> (Vec<usize>, usize) {
    let mut known = HashMap::new();
    let pairs = plan.class_body.iter().enumerate().map(|(class, &body)| (body, class_test(plan, class)));
    let units = pairs.map(|pair| {
        let next = known.len();
        *known.entry(pair).or_insert(next)
    });
    (units.collect(), known.len())
}

/// The loop being written.
struct Loop<'b, 'f> {
    builder: &'b mut FunctionBuilder<'f>,
    arguments: Value,
    position: Variable,
    clock: Variable,
    count: Variable,
    /// The position before the current record.
    start: Variable,
    /// The clock before the current record.
    clock_before: Variable,
    stuck: Block,
    /// Calls return whether the record is kept.
    has_tests: bool,
}

const STUCK: i64 = 2;

impl<'b, 'f> Loop<'b, 'f> {
    fn write(engine: &JitEngine, builder: &'b mut FunctionBuilder<'f>, plan: &ScanPlan, has_tests: bool) -> Option<()> {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let arguments = builder.block_params(entry)[0];
        let stuck = builder.create_block();
        // The loop's code stays together, without the code that is rarely run.
        builder.set_cold_block(stuck);
        let mut variable = |offset: i32| {
            let variable = builder.declare_var(types::I64);
            let value = builder.ins().load(types::I64, trusted(), arguments, offset);
            builder.def_var(variable, value);
            variable
        };
        let (position, clock, count) =
            (variable(offset!(position)), variable(offset!(clock)), variable(offset!(count)));
        let (start, clock_before) = (variable(offset!(position)), variable(offset!(clock)));
        let this = Self { builder, arguments, position, clock, count, start, clock_before, stuck, has_tests };
        this.body(engine, plan)
    }

    fn argument(&mut self, offset: i32) -> Value {
        self.builder.ins().load(types::I64, trusted(), self.arguments, offset)
    }

    fn body(mut self, engine: &JitEngine, plan: &ScanPlan) -> Option<()> {
        let base = self.argument(offset!(base));
        let end = self.argument(offset!(end));
        let slots = self.argument(offset!(slots));
        let limit = self.argument(offset!(limit));
        let (head, full, done) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        let position = self.builder.use_var(self.position);
        self.builder.def_var(self.start, position);
        let clock = self.builder.use_var(self.clock);
        self.builder.def_var(self.clock_before, clock);
        let ended = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, position, end);
        self.leave_if(ended, done);
        let count = self.builder.use_var(self.count);
        let filled = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, count, limit);
        self.leave_if(filled, full);
        let id =
            self.header(plan, &FunctionContext { base, end, slots, stuck: self.stuck, position: self.position })?;
        let class = self.class(plan, id);
        self.append(plan, class, count);
        let kept = self.skip(engine, plan, class, [base, end, slots]);
        let next = match kept {
            Some(kept) => self.builder.ins().iadd(count, kept),
            None => self.builder.ins().iadd_imm_s(count, 1),
        };
        self.builder.def_var(self.count, next);
        self.builder.ins().jump(head, &[]);
        self.exit(done, END);
        self.exit(full, FULL);
        let stuck = self.stuck;
        self.builder.switch_to_block(stuck);
        // Everything is as it was before the record, because the evaluator reads all of it again.
        let position = self.builder.use_var(self.start);
        self.builder.def_var(self.position, position);
        let clock = self.builder.use_var(self.clock_before);
        self.builder.def_var(self.clock, clock);
        self.leave(STUCK);
        Some(())
    }

    fn leave_if(&mut self, condition: Value, to: Block) {
        let next = self.builder.create_block();
        self.builder.ins().brif(condition, to, &[], next, &[]);
        self.builder.switch_to_block(next);
    }

    /// Reads the header; the id it names.
    fn header(&mut self, plan: &ScanPlan, frame: &FunctionContext) -> Option<Value> {
        let id = self.builder.declare_var(types::I64);
        let zero = self.builder.ins().iconst(types::I64, 0);
        self.builder.def_var(id, zero);
        let mut translator = Translator::new(self.builder, &plan.header, frame);
        translator.clock = Some(self.clock);
        translator.event_class = Some(id);
        translator.block(&plan.header.body)?;
        Some(self.builder.use_var(id))
    }

    fn class(&mut self, plan: &ScanPlan, id: Value) -> Value {
        if let Some(class) = plan.only_class {
            return self.builder.ins().iconst(types::I64, i64::from(class));
        }
        let count = self.argument(offset!(ids_count));
        let unknown = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, id, count);
        self.leave_if(unknown, self.stuck);
        let ids = self.argument(offset!(ids));
        let offset = self.builder.ins().ishl_imm_u(id, 2);
        let address = self.builder.ins().iadd(ids, offset);
        let class = self.builder.ins().load(types::I32, trusted(), address, 0);
        let class = self.builder.ins().uextend(types::I64, class);
        let unknown = self.builder.ins().icmp_imm_s(IntCC::Equal, class, i64::from(NO_CLASS));
        self.leave_if(unknown, self.stuck);
        class
    }

    fn append(&mut self, plan: &ScanPlan, class: Value, count: Value) {
        let position = if plan.from_start { self.start } else { self.position };
        let position = self.builder.use_var(position);
        let clock = self.builder.use_var(self.clock);
        let class = self.builder.ins().ireduce(types::I32, class);
        for (offset, value, shift) in
            [(offset!(cycles), clock, 3), (offset!(positions), position, 3), (offset!(classes), class, 2)]
        {
            let array = self.argument(offset);
            let at = self.builder.ins().ishl_imm_u(count, shift);
            let address = self.builder.ins().iadd(array, at);
            self.builder.ins().store(trusted(), value, address, 0);
        }
    }

    /// Moves the position behind the record; 1 if it is kept and 0 if not, where there are tests.
    fn skip(
        &mut self,
        engine: &JitEngine,
        plan: &ScanPlan,
        class: Value,
        [base, end, slots]: [Value; 3],
    ) -> Option<Value> {
        let entries = self.argument(offset!(entries));
        let at = self.builder.ins().ishl_imm_u(class, 3);
        let address = self.builder.ins().iadd(entries, at);
        let entry = self.builder.ins().load(types::I64, trusted(), address, 0);
        let from = self.builder.use_var(if plan.from_start { self.start } else { self.position });
        let (fixed, call, behind) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let next = self.builder.append_block_param(behind, types::I64);
        let kept = self.has_tests.then(|| self.builder.append_block_param(behind, types::I64));
        let is_fixed = self.builder.ins().band_imm_s(entry, 1);
        self.builder.ins().brif(is_fixed, fixed, &[], call, &[]);
        self.builder.switch_to_block(fixed);
        let found = self.fixed(entry, from, end);
        self.builder.ins().jump(behind, &found);
        self.builder.switch_to_block(call);
        let cold = self.builder.ins().icmp_imm_s(IntCC::Equal, entry, 0);
        self.leave_if(cold, self.stuck);
        let found = self.called(engine, entry, [base, from, end, slots]);
        self.builder.ins().jump(behind, &found);
        self.builder.switch_to_block(behind);
        let start = self.builder.use_var(self.start);
        // A record without any bits would be found again for ever. The evaluator reports it.
        let empty = self.builder.ins().icmp(IntCC::Equal, next, start);
        self.leave_if(empty, self.stuck);
        self.builder.def_var(self.position, next);
        kept
    }

    /// The position behind a record of a fixed size, and whether it is kept.
    fn fixed(&mut self, entry: Value, from: Value, end: Value) -> Vec<BlockArg> {
        let bits = self.builder.ins().ushr_imm_u(entry, i64::from(ScanEntry::BITS));
        let left = self.builder.ins().isub(end, from);
        // Compared with the rest, because `from + bits` could wrap.
        let short = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, bits, left);
        self.leave_if(short, self.stuck);
        let position = self.builder.ins().iadd(from, bits);
        if !self.has_tests {
            return vec![position.into()];
        }
        let flag = self.builder.ins().ushr_imm_u(entry, i64::from(ScanEntry::DROPPED));
        let dropped = self.builder.ins().band_imm_s(flag, 1);
        let kept = self.builder.ins().bxor_imm_s(dropped, 1);
        vec![position.into(), kept.into()]
    }

    /// The position behind a record that a function reads, and whether it is kept.
    fn called(&mut self, engine: &JitEngine, entry: Value, [base, from, end, slots]: [Value; 4]) -> Vec<BlockArg> {
        let mut arguments = vec![base, from, end, slots];
        if self.has_tests {
            arguments.push(self.builder.use_var(self.clock));
        }
        let signature = self.builder.import_signature(engine.signature(arguments.len()));
        let call = self.builder.ins().call_indirect(signature, entry, &arguments);
        let answer = self.builder.inst_results(call)[0];
        let failed = self.builder.ins().icmp_imm_s(IntCC::Equal, answer, body::STUCK);
        self.leave_if(failed, self.stuck);
        if !self.has_tests {
            return vec![answer.into()];
        }
        let position = self.builder.ins().ushr_imm_u(answer, 1);
        let kept = self.builder.ins().band_imm_s(answer, 1);
        vec![position.into(), kept.into()]
    }

    fn exit(&mut self, block: Block, code: i64) {
        self.builder.switch_to_block(block);
        self.leave(code);
    }

    fn leave(&mut self, code: i64) {
        for (offset, variable) in
            [(offset!(position), self.position), (offset!(clock), self.clock), (offset!(count), self.count)]
        {
            let value = self.builder.use_var(variable);
            self.builder.ins().store(trusted(), value, self.arguments, offset);
        }
        let code = self.builder.ins().iconst(types::I64, code);
        self.builder.ins().return_(&[code]);
    }
}
