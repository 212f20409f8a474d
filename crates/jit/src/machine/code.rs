//! Functions of a program in Cranelift's intermediate form.
//!
//! ```text
//! fn(state, r1, r2, r3, r4, r5) -> r0
//! r0 to r9 are variables, r10 is known; where machine code is stuck, live registers go to the state, and the evaluator goes on
//! ```
//!
//! Before a run of instructions without a jump or a call, its steps are subtracted at once, if there are as many; `left` of them are given
//! back where it is stuck in the middle.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AliasRegion, AliasRegionData, Block, InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use kymo_ir::machine::native::{
    FRAME_BYTES, FRAMES_MAX, argument_count, context_address, function_address, map_address, stack_end, value_address,
};
use kymo_ir::machine::{
    AluOperation, AtomicOperation, MachineInstruction, MachineOperand, MapDefinition, WideConstant,
};

use super::flow::{ARGUMENTS, FunctionFlow, LEFT, RegisterHabits, RegisterSet};
use super::kinds::{KnownNumbers, MemoryAccess, MemoryRegion, known_numbers};
use super::operations;
use super::outside::{CodeHome, CodeOutside};
use super::state::{self, state_offset};

/// Instructions of a program that is worth compiling; longer ones are left to the evaluator.
const INSTRUCTIONS_MAX: usize = 4096;
/// Functions of it.
const FUNCTIONS_MAX: usize = 256;

/// The facts about a program before its code is written.
pub(super) struct ProgramPlan<'p> {
    pub(super) code: &'p [MachineInstruction],
    pub(super) maps: &'p [MapDefinition],
    /// Maps that it names.
    pub(super) used: Vec<u32>,
    pub(super) functions: Vec<FunctionPlan>,
    habits: RegisterHabits,
}

pub(super) struct FunctionPlan {
    flow: FunctionFlow,
    live: BTreeMap<usize, RegisterSet>,
    known: BTreeMap<usize, KnownNumbers>,
    /// Its first argument is the context, and nothing calls it.
    pub(super) has_context: bool,
}

/// The needs of code.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodeFacts {
    /// Bytes of a context that accesses without a check need.
    pub(super) context_bytes: usize,
    /// Bytes at the end of the first function's stack that its code clears, and accesses without a check.
    pub(super) stack_bytes: usize,
    /// It may write anywhere in the stack.
    pub(super) writes_stack: bool,
}

impl<'p> ProgramPlan<'p> {
    /// A plan; `None`: the program is too long.
    pub(super) fn new(code: &'p [MachineInstruction], maps: &'p [MapDefinition]) -> Option<Self> {
        let (mut starts, mut used) = (BTreeSet::new(), BTreeSet::new());
        for instruction in code {
            match *instruction {
                MachineInstruction::Call { target }
                | MachineInstruction::LoadConstant { value: WideConstant::Function(target), .. } => {
                    starts.insert(target as usize);
                }
                MachineInstruction::LoadConstant {
                    value: WideConstant::Map(map) | WideConstant::MapValue { map, .. },
                    ..
                } => {
                    used.insert(map);
                }
                _ => {}
            }
        }
        let is_first_called = !starts.insert(0);
        if code.len() > INSTRUCTIONS_MAX || starts.len() > FUNCTIONS_MAX {
            return None;
        }
        let flows: Vec<FunctionFlow> = starts.iter().map(|start| FunctionFlow::new(code, *start)).collect();
        if flows.iter().map(FunctionFlow::size).sum::<usize>() > INSTRUCTIONS_MAX {
            return None;
        }
        let habits = habits(code, &flows);
        let functions = flows.into_iter().map(|flow| {
            let has_context = flow.start == 0 && !is_first_called;
            let known = known_numbers(code, &flow, maps, has_context);
            FunctionPlan { live: flow.live(code, habits), known, flow, has_context }
        });
        let functions = functions.collect();
        Some(Self { code, maps, used: used.into_iter().collect(), functions, habits })
    }

    /// Whether its first function takes the context, and whether functions read registers that their callers left.
    pub(super) fn habits(&self) -> [bool; 2] {
        [self.functions[0].has_context, self.habits.reads_left]
    }

    /// The first instructions of its functions.
    pub(super) fn starts(&self) -> Box<[usize]> {
        self.functions.iter().map(|function| function.flow.start).collect()
    }
}

/// Habits are found from what is live with those that are known, until there are no more.
fn habits(code: &[MachineInstruction], flows: &[FunctionFlow]) -> RegisterHabits {
    let mut habits = RegisterHabits::default();
    loop {
        let before = habits;
        for flow in flows {
            let live = flow.live(code, habits);
            habits.reads_left |= live[&flow.start] & LEFT != 0;
            habits.reads_arguments |= flow.reads_arguments(code, &live);
        }
        if habits == before {
            return habits;
        }
    }
}

/// Writes a function with these arguments.
pub(super) fn write(
    builder: &mut FunctionBuilder<'_>,
    arguments: &[Value],
    (plan, function): (&ProgramPlan<'_>, &FunctionPlan),
    outside: CodeOutside<'_>,
    facts: &mut CodeFacts,
) {
    let blocks = function.flow.blocks.keys().map(|first| (*first, builder.create_block())).collect();
    let (stuck, stopped) = (builder.create_block(), builder.create_block());
    builder.set_cold_block(stuck);
    builder.set_cold_block(stopped);
    for _ in 0..12 {
        builder.append_block_param(stuck, types::I64);
    }
    let variables: Vec<Variable> = (0..11).map(|_| builder.declare_var(types::I64)).collect();
    let [state, memory, tables] = [1, 2, 3].map(|number| {
        let description = ["state", "memory", "tables"][number as usize - 1].into();
        builder.func.dfg.alias_regions.insert(AliasRegionData { user_id: number, description })
    });
    let zero = builder.ins().iconst(types::I64, 0);
    let mut writer = FunctionWriter {
        builder,
        outside,
        plan,
        function,
        facts,
        state: arguments[0],
        base: zero,
        registers: variables[..10].try_into().expect("ten of them"),
        steps: variables[10],
        depth: zero,
        frame: zero,
        stack: zero,
        context: [zero; 2],
        stack_pointer: zero,
        blocks,
        stuck,
        stopped,
        regions: MemoryRegions { state, memory, tables },
        known: function.known[&function.flow.start].clone(),
        at: function.flow.start,
        left: 0,
    };
    writer.begin(arguments);
    for (first, block) in &function.flow.blocks {
        writer.block(*first, block.end);
    }
    writer.end();
}

/// Kinds of memory that have no byte in common.
#[derive(Clone, Copy)]
struct MemoryRegions {
    state: AliasRegion,
    memory: AliasRegion,
    tables: AliasRegion,
}

pub(super) struct FunctionWriter<'w, 'f> {
    pub(super) builder: &'w mut FunctionBuilder<'f>,
    pub(super) outside: CodeOutside<'w>,
    pub(super) plan: &'w ProgramPlan<'w>,
    function: &'w FunctionPlan,
    pub(super) facts: &'w mut CodeFacts,
    pub(super) state: Value,
    /// The shared memory of a traced program.
    pub(super) base: Value,
    registers: [Variable; 10],
    steps: Variable,
    /// Functions outside of this one.
    depth: Value,
    /// The end of its stack, where that is in memory, and for the program.
    pub(super) frame: Value,
    stack_pointer: Value,
    /// The begin of all stacks.
    pub(super) stack: Value,
    /// The context and its bytes, in the function that takes it.
    pub(super) context: [Value; 2],
    blocks: BTreeMap<usize, Block>,
    stuck: Block,
    stopped: Block,
    regions: MemoryRegions,
    /// The instruction that is being written, and what is known there.
    at: usize,
    pub(super) known: KnownNumbers,
    /// Steps that are already counted for it and those behind it.
    left: usize,
}

impl FunctionWriter<'_, '_> {
    pub(super) fn number(&mut self, number: u64) -> Value {
        self.builder.ins().iconst(types::I64, number as i64)
    }

    pub(super) fn register(&mut self, register: u8) -> Value {
        match self.registers.get(usize::from(register)) {
            Some(variable) => self.builder.use_var(*variable),
            None => self.stack_pointer,
        }
    }

    pub(super) fn set(&mut self, register: u8, value: Value) {
        self.builder.def_var(self.registers[usize::from(register)], value);
    }

    /// The state, and rows of maps.
    fn of_state(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.regions.state))
    }

    /// Memory of the program, at any address, in little-endian order.
    pub(super) fn of_program(&self) -> MemFlagsData {
        let order = cranelift_codegen::ir::Endianness::Little;
        MemFlagsData::new().with_notrap().with_endianness(order).with_alias_region(Some(self.regions.memory))
    }

    /// Places of hash tables.
    pub(super) fn of_tables(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.regions.tables))
    }

    pub(super) fn load_state(&mut self, offset: i32) -> Value {
        let flags = self.of_state();
        self.builder.ins().load(types::I64, flags, self.state, offset)
    }

    fn store_state(&mut self, value: Value, offset: i32) {
        let flags = self.of_state();
        self.builder.ins().store(flags, value, self.state, offset);
    }

    /// The address of a map's first value.
    pub(super) fn values(&mut self, map: u32) -> Value {
        match self.outside.home {
            CodeHome::Here { .. } => self.of_row(map, std::mem::offset_of!(state::MapRow, values)),
            CodeHome::Traced { values, .. } => {
                let offset = self.number(values[map as usize]);
                self.builder.ins().iadd(self.base, offset)
            }
        }
    }

    /// A part of a map's row, by its offset there.
    pub(super) fn of_row(&mut self, map: u32, offset: usize) -> Value {
        let CodeHome::Here { rows, .. } = self.outside.home else { unreachable!("code of traced programs has none") };
        let row = self.plan.used.iter().position(|used| *used == map).expect("the program names its maps");
        let address = self.number((rows + row * size_of::<state::MapRow>()) as u64);
        let flags = self.of_state();
        self.builder.ins().load(types::I64, flags, address, offset as i32)
    }

    /// Calls a function of the process that has the code, with numbers of 64 bits.
    pub(super) fn call_outside(&mut self, address: u64, arguments: &[Value]) -> Value {
        let address = self.number(address);
        self.call_address(address, arguments)
    }

    fn call_address(&mut self, address: Value, arguments: &[Value]) -> Value {
        let signature = self.builder.import_signature(self.outside.signature(arguments.len()));
        let call = self.builder.ins().call_indirect(signature, address, arguments);
        self.builder.inst_results(call)[0]
    }

    fn register_offset(register: u8) -> i32 {
        state_offset!(registers) + 8 * i32::from(register)
    }

    fn begin(&mut self, arguments: &[Value]) {
        self.stack_pointer = self.number(stack_end(0));
        let whole = self.number(self.outside.stack_bytes());
        let zero = self.depth;
        if self.function.has_context {
            self.context = [arguments[1], arguments[2]];
            self.stack = arguments[3];
            self.builder.def_var(self.steps, arguments[4]);
            (0..10).for_each(|register| self.set(register, zero));
            let context = self.number(context_address());
            self.set(1, context);
            self.frame = self.builder.ins().iadd(self.stack, whole);
            match self.outside.home {
                CodeHome::Here { .. } => self.clear_stack(),
                CodeHome::Traced { .. } => self.begin_traced(arguments[5]),
            }
        } else {
            let steps = self.load_state(state_offset!(steps));
            self.builder.def_var(self.steps, steps);
            for register in 0..10_u8 {
                let value = match register {
                    1..=5 => arguments[usize::from(register)],
                    _ if self.plan.habits.reads_left => self.load_state(Self::register_offset(register)),
                    _ => zero,
                };
                self.set(register, value);
            }
            self.stack = self.load_state(state_offset!(stack));
            self.depth = self.load_state(state_offset!(depth));
            let frame_bytes = self.number(FRAME_BYTES as u64);
            let above = self.builder.ins().imul(self.depth, frame_bytes);
            let end = self.builder.ins().iadd(self.stack, whole);
            self.frame = self.builder.ins().isub(end, above);
            self.stack_pointer = self.builder.ins().isub(self.stack_pointer, above);
        }
        let first = self.blocks[&self.function.flow.start];
        self.builder.ins().jump(first, &[]);
    }

    /// Clears the part of the first function's stack that is accessed without a check.
    fn clear_stack(&mut self) {
        let mut lowest = 0;
        for (first, block) in &self.function.flow.blocks {
            let mut known = self.function.known[first].clone();
            for at in *first..block.end {
                let instruction = &self.plan.code[at];
                if let Some((MemoryRegion::Stack, begin)) =
                    access(instruction).and_then(|access| known.proven(access, self.plan.maps))
                {
                    lowest = lowest.min(begin);
                }
                known.step(at, instruction, self.plan.maps);
            }
        }
        let words = lowest.unsigned_abs().div_ceil(8);
        self.facts.stack_bytes = 8 * words as usize;
        let (zero, flags) = (self.depth, self.of_program());
        for word in 1..=words as i32 {
            self.builder.ins().store(flags, zero, self.frame, -8 * word);
        }
    }

    fn block(&mut self, first: usize, end: usize) {
        self.builder.switch_to_block(self.blocks[&first]);
        self.known = self.function.known[&first].clone();
        let code = self.plan.code;
        let mut counted = first;
        for (at, instruction) in (first..).zip(&code[first..end]) {
            self.at = at;
            if at == counted {
                counted = self.segment_end(at, end);
                self.left = 0;
                self.count_steps(counted - at);
            }
            self.left = counted - at;
            self.instruction(instruction);
            self.known.step(at, instruction, self.plan.maps);
        }
        let falls_through = !matches!(
            code[end - 1],
            MachineInstruction::Jump { .. }
                | MachineInstruction::JumpIf { .. }
                | MachineInstruction::Exit
                | MachineInstruction::Absent
        );
        if falls_through {
            let next = self.blocks[&end];
            self.builder.ins().jump(next, &[]);
        }
    }

    /// Behind the instructions that are counted together with one.
    fn segment_end(&self, first: usize, end: usize) -> usize {
        let mut known = self.known.clone();
        for at in first..end {
            let instruction = &self.plan.code[at];
            let is_call = match instruction {
                MachineInstruction::Call { .. } => true,
                MachineInstruction::CallHelper { number } => self.looked_up(&known, *number).is_none(),
                _ => false,
            };
            if is_call {
                return at + 1;
            }
            known.step(at, instruction, self.plan.maps);
        }
        end
    }

    /// The map in which code looks a key up, without the helper function.
    fn looked_up(&self, known: &KnownNumbers, number: u32) -> Option<u32> {
        let maps = self.plan.maps;
        known.looked_up(number, maps).filter(|map| self.outside.looks_up(maps[*map as usize].map_type))
    }

    fn count_steps(&mut self, count: usize) {
        let steps = self.builder.use_var(self.steps);
        let count = self.number(count as u64);
        let is_enough = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, steps, count);
        self.go_on_if(is_enough);
        let steps = self.builder.ins().isub(steps, count);
        self.builder.def_var(self.steps, steps);
    }

    /// Goes on if a condition holds; else the evaluator goes on at this instruction.
    pub(super) fn go_on_if(&mut self, condition: Value) {
        let (next, leaving) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(leaving);
        self.builder.ins().brif(condition, next, &[], leaving, &[]);
        self.builder.switch_to_block(leaving);
        self.leave();
        self.builder.switch_to_block(next);
    }

    /// The evaluator goes on at this instruction.
    fn leave(&mut self) {
        let live = self.function.live[&self.at];
        let (at, zero) = (self.number(self.at as u64), self.number(0));
        let mut steps = self.builder.use_var(self.steps);
        if self.left > 0 {
            let left = self.number(self.left as u64);
            steps = self.builder.ins().iadd(steps, left);
        }
        let mut arguments = vec![at.into(), steps.into()];
        for register in 0..10_u8 {
            let is_live = live & (1 << register) != 0;
            let value = if is_live { self.register(register) } else { zero };
            arguments.push(value.into());
        }
        self.builder.ins().jump(self.stuck, &arguments);
    }

    fn end(&mut self) {
        self.builder.switch_to_block(self.stuck);
        let values = self.builder.block_params(self.stuck).to_vec();
        self.store_state(values[0], state_offset!(at));
        self.store_state(values[1], state_offset!(steps));
        for (register, value) in (0..).zip(&values[2..]) {
            self.store_state(*value, Self::register_offset(register));
        }
        let result = self.call_outside(self.outside.stuck(), &[self.state]);
        self.builder.ins().return_(&[result]);
        self.builder.switch_to_block(self.stopped);
        let zero = self.number(0);
        self.builder.ins().return_(&[zero]);
    }

    fn operand(&mut self, operand: MachineOperand, is_wide: bool) -> Value {
        match operand {
            MachineOperand::Register(register) => self.low(register, is_wide),
            MachineOperand::Constant(constant) => {
                operations::number(self.builder, operations::width(is_wide), constant.into())
            }
        }
    }

    fn low(&mut self, register: u8, is_wide: bool) -> Value {
        let value = self.register(register);
        if is_wide { value } else { self.builder.ins().ireduce(types::I32, value) }
    }

    fn extended(&mut self, value: Value) -> Value {
        let is_wide = self.builder.func.dfg.value_type(value) == types::I64;
        if is_wide { value } else { self.builder.ins().uextend(types::I64, value) }
    }

    fn instruction(&mut self, instruction: &MachineInstruction) {
        use MachineInstruction as I;
        match *instruction {
            I::Alu { operation, is_wide, to, from } => self.calculate(operation, is_wide, to, from),
            I::SignExtend { to, from, bits, is_wide } => {
                let value = self.register(from);
                let mut value = operations::sign_extended(self.builder, value, bits);
                if !is_wide {
                    let low = self.builder.ins().ireduce(types::I32, value);
                    value = self.builder.ins().uextend(types::I64, low);
                }
                self.set(to, value);
            }
            I::ByteSwap { to, order, bits } => {
                let value = self.register(to);
                let value = operations::swapped(self.builder, value, order, bits);
                self.set(to, value);
            }
            I::Load { to, base, offset, bytes, is_signed } => {
                let place = self.place(MemoryAccess { base, offset, bytes, is_write: false });
                let value = self.load(place, bytes);
                let value =
                    if is_signed { self.builder.ins().sextend(types::I64, value) } else { self.extended(value) };
                self.set(to, value);
            }
            I::Store { base, offset, bytes, from } => {
                let place = self.place(MemoryAccess { base, offset, bytes, is_write: true });
                let value = self.operand(from, true);
                self.store(place, value, bytes);
            }
            I::Atomic { .. } => self.atomic(instruction),
            I::Jump { target } => {
                let target = self.blocks[&(target as usize)];
                self.builder.ins().jump(target, &[]);
            }
            I::JumpIf { relation, is_wide, left, right, target } => {
                let (left, right) = (self.low(left, is_wide), self.operand(right, is_wide));
                let holds = operations::holds(self.builder, relation, left, right);
                let (target, next) = (self.blocks[&(target as usize)], self.blocks[&(self.at + 1)]);
                self.builder.ins().brif(holds, target, &[], next, &[]);
            }
            I::Call { target } => self.call(target as usize),
            I::CallHelper { number } => match self.looked_up(&self.known, number) {
                Some(map) => self.look_up(map),
                None => self.call_helper(number),
            },
            I::LoadConstant { to, value } => {
                let number = match value {
                    WideConstant::Number(number) => number,
                    WideConstant::Map(map) => map_address(map),
                    WideConstant::MapValue { map, offset } => value_address(map as usize, 0, offset),
                    WideConstant::Function(target) => function_address(target),
                };
                let number = self.number(number);
                self.set(to, number);
            }
            I::SecondHalf => {}
            I::Absent => self.leave(),
            I::Exit => self.exit(),
        }
    }

    fn calculate(&mut self, operation: AluOperation, is_wide: bool, to: u8, from: MachineOperand) {
        let divisor = match from {
            MachineOperand::Constant(constant) => Some(constant),
            MachineOperand::Register(_) => None,
        };
        let right = self.operand(from, is_wide);
        // A register that is only written has no number to begin with.
        let left = if operation == AluOperation::Move { right } else { self.low(to, is_wide) };
        let value = operations::calculated(self.builder, operation, [left, right], divisor);
        let value = self.extended(value);
        self.set(to, value);
    }

    pub(super) fn load(&mut self, place: Value, bytes: u8) -> Value {
        let flags = self.of_program();
        self.builder.ins().load(operations::integer(bytes), flags, place, 0)
    }

    fn store(&mut self, place: Value, value: Value, bytes: u8) {
        let value = if bytes == 8 { value } else { self.builder.ins().ireduce(operations::integer(bytes), value) };
        let flags = self.of_program();
        self.builder.ins().store(flags, value, place, 0);
    }

    fn atomic(&mut self, instruction: &MachineInstruction) {
        let MachineInstruction::Atomic { operation, base, offset, bytes, from, fetches } = *instruction else { return };
        let access = MemoryAccess { base, offset, bytes, is_write: true };
        if self.outside.is_traced() && !self.is_own(access) {
            return self.atomic_beside_others(operation, access, (from, fetches));
        }
        let place = self.place(access);
        let before = self.load(place, bytes);
        let value = self.low(from, bytes == 8);
        let after = match operation {
            AtomicOperation::Add => self.builder.ins().iadd(before, value),
            AtomicOperation::Or => self.builder.ins().bor(before, value),
            AtomicOperation::And => self.builder.ins().band(before, value),
            AtomicOperation::Xor => self.builder.ins().bxor(before, value),
            AtomicOperation::Exchange => value,
            AtomicOperation::CompareExchange => {
                let expected = self.low(0, bytes == 8);
                let is_there = self.builder.ins().icmp(IntCC::Equal, before, expected);
                self.builder.ins().select(is_there, value, before)
            }
        };
        let flags = self.of_program();
        self.builder.ins().store(flags, after, place, 0);
        let before = self.extended(before);
        match operation {
            AtomicOperation::CompareExchange => self.set(0, before),
            _ if fetches => self.set(from, before),
            _ => {}
        }
    }

    /// Goes on unless the program has stopped in a function that was called.
    fn go_on_unless_stopped(&mut self) {
        let has_stopped = self.load_state(state_offset!(has_stopped));
        let next = self.builder.create_block();
        self.builder.ins().brif(has_stopped, self.stopped, &[], next, &[]);
        self.builder.switch_to_block(next);
        let steps = self.load_state(state_offset!(steps));
        self.builder.def_var(self.steps, steps);
    }

    fn call_helper(&mut self, number: u32) {
        let (at, steps) = (self.number(self.at as u64), self.builder.use_var(self.steps));
        self.store_state(at, state_offset!(at));
        self.store_state(steps, state_offset!(steps));
        let mut arguments = vec![self.state];
        for register in 1..6_u8 {
            let is_read = usize::from(register) <= argument_count(number);
            arguments.push(if is_read { self.register(register) } else { at });
        }
        let result = self.call_outside(self.outside.helper(number), &arguments);
        self.go_on_unless_stopped();
        self.set(0, result);
    }

    fn call(&mut self, target: usize) {
        let index = self.plan.functions.iter().position(|function| function.flow.start == target);
        let index = index.expect("targets of calls are functions");
        if !self.function.has_context {
            let limit = self.number(FRAMES_MAX as u64 - 1);
            let is_flat = self.builder.ins().icmp(IntCC::UnsignedLessThan, self.depth, limit);
            self.go_on_if(is_flat);
        }
        let steps = self.builder.use_var(self.steps);
        self.store_state(steps, state_offset!(steps));
        let habits = self.plan.habits;
        if habits.reads_left {
            self.keep_registers(LEFT);
        }
        let CodeHome::Here { functions, .. } = self.outside.home else { unreachable!("traced programs call none") };
        self.call_outside(state::enter as *const () as u64, &[self.state]);
        let place = self.number(functions.place(index) as u64);
        let flags = self.of_state();
        let address = self.builder.ins().load(types::I64, flags, place, 0);
        let mut arguments = vec![self.state];
        arguments.extend((1..6).map(|register| self.register(register)));
        let result = self.call_address(address, &arguments);
        self.store_state(self.depth, state_offset!(depth));
        self.go_on_unless_stopped();
        self.set(0, result);
        if habits.reads_arguments {
            for register in 1..6 {
                let value = self.load_state(Self::register_offset(register));
                self.set(register, value);
            }
        }
    }

    fn keep_registers(&mut self, registers: RegisterSet) {
        for register in (0..10_u8).filter(|register| registers & (1 << register) != 0) {
            let value = self.register(register);
            self.store_state(value, Self::register_offset(register));
        }
    }

    fn exit(&mut self) {
        if !self.function.has_context {
            let steps = self.builder.use_var(self.steps);
            self.store_state(steps, state_offset!(steps));
        }
        if self.plan.habits.reads_arguments {
            self.keep_registers(ARGUMENTS);
        }
        let result = self.register(0);
        self.builder.ins().return_(&[result]);
    }
}

/// The access of an instruction to memory.
fn access(instruction: &MachineInstruction) -> Option<MemoryAccess> {
    match *instruction {
        MachineInstruction::Load { base, offset, bytes, .. } => {
            Some(MemoryAccess { base, offset, bytes, is_write: false })
        }
        MachineInstruction::Store { base, offset, bytes, .. }
        | MachineInstruction::Atomic { base, offset, bytes, .. } => {
            Some(MemoryAccess { base, offset, bytes, is_write: true })
        }
        _ => None,
    }
}
