//! The evaluator: one instruction after the other, each checked.

use std::hash::{BuildHasher, RandomState};

use super::instruction::{
    AluOperation, AtomicOperation, JumpRelation, MachineInstruction, MachineOperand, STACK_POINTER, SwapOrder,
    WideConstant,
};
use super::map::{BpfMap, MAP_BYTES_MAX, MapDefinition, MapDefinitionProblem, MapDefinitionProblemKind};
use super::memory::{self, FRAMES_MAX, MAPS_MAX, MachineMemory, STACK_BYTES};
use super::problem::{MachineFault, MachineFaultKind};
use super::program::MachineProgram;

/// Steps that a run may take, unless a caller says otherwise: as many as the kernel's verifier follows. An instruction is a step, and so
/// are 64 bytes that a helper function copies, clears or compares.
pub const STEPS_MAX: u64 = 1_000_000;

/// What is known about the moment in which a program runs, for helper functions that ask. Missing facts end a program that asks for
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunMoment {
    /// Nanoseconds of the clock.
    pub nanos: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// The process and the thread.
    pub process: Option<u32>,
    /// The thread.
    pub thread: Option<u32>,
    /// The thread's name, of which 15 bytes count.
    pub thread_name: Option<Box<[u8]>>,
}

/// Arguments of a run.
#[derive(Debug)]
pub struct RunInput<'m> {
    /// The context: r1 is its address.
    pub context: &'m mut [u8],
    /// Bytes to which pointers in the context lead: [`data_address`] makes these.
    pub data: &'m [u8],
    /// The moment.
    pub moment: &'m RunMoment,
}

/// The number that is a pointer to a byte of [`RunInput::data`].
#[must_use]
pub fn data_address(offset: u32) -> u64 {
    memory::data_address(offset)
}

/// A record that a program has put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputRecord {
    /// The ring, by its index in the list of maps.
    pub map: usize,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Records and lines that programs have put out since they were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOutputs {
    /// Records of rings and of perf event arrays, in their order.
    pub records: Vec<OutputRecord>,
    /// Lines of `bpf_printk`.
    pub lines: Vec<String>,
    /// Records that found no room.
    pub lost: u64,
}

/// Maps, and programs that run on them.
#[derive(Debug)]
pub struct BpfMachine {
    maps: Vec<BpfMap>,
    /// A random number that no other machine has.
    identity: u64,
    /// Memory that maps may still take.
    allowance: usize,
    outputs: RunOutputs,
    random: u64,
    /// Steps that each run may take.
    steps_max: u64,
    /// The stack of programs, and where its written part begins.
    stack: Box<[u8]>,
    pub(super) stack_low: usize,
}

impl Clone for BpfMachine {
    fn clone(&self) -> Self {
        Self {
            maps: self.maps.clone(),
            identity: new_identity(),
            allowance: self.allowance,
            outputs: self.outputs.clone(),
            random: self.random,
            steps_max: self.steps_max,
            stack: self.stack.clone(),
            stack_low: self.stack_low,
        }
    }
}

fn new_identity() -> u64 {
    RandomState::new().hash_one(0)
}

impl BpfMachine {
    /// A machine with empty maps.
    ///
    /// # Errors
    ///
    /// The first map that cannot be made, and why.
    ///
    /// ```
    /// use kymo_ir::machine::{BpfMachine, MachineProgram, RunInput, RunMoment};
    ///
    /// // r0 = *(u32 *)(r1 + 4); exit
    /// let code = [[0x61, 0x10, 4, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    /// let program = MachineProgram::new(&code, &[])?;
    /// let mut machine = BpfMachine::new(&[])?;
    /// let moment = RunMoment::default();
    /// let context = &mut [0, 0, 0, 0, 5, 0, 0, 0];
    /// assert_eq!(machine.run(&program, RunInput { context, data: &[], moment: &moment })?, 5);
    ///
    /// let fault = machine.run(&program, RunInput { context: &mut [0; 6], data: &[], moment: &moment }).unwrap_err();
    /// assert_eq!(fault.to_string(), "instruction 0: it reads 4 bytes at offset 4 of the context, which has 6");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(maps: &[MapDefinition]) -> Result<Self, MapDefinitionProblem> {
        if let Some(map) = maps.get(MAPS_MAX) {
            let kind = MapDefinitionProblemKind::Count { limit: MAPS_MAX };
            return Err(MapDefinitionProblem { name: map.name.clone(), kind });
        }
        let mut allowance = MAP_BYTES_MAX;
        let maps = maps.iter().map(|map| BpfMap::new(map.clone(), &mut allowance)).collect::<Result<_, _>>()?;
        let (outputs, stack) = (RunOutputs::default(), vec![0; STACK_BYTES].into());
        let identity = new_identity();
        Ok(Self { maps, identity, allowance, outputs, random: 0, steps_max: STEPS_MAX, stack, stack_low: STACK_BYTES })
    }

    /// The same with another limit for the steps of each run.
    #[must_use]
    pub fn with_steps_max(mut self, steps_max: u64) -> Self {
        self.steps_max = steps_max;
        self
    }

    /// Its maps.
    #[must_use]
    pub fn maps(&self) -> &[BpfMap] {
        &self.maps
    }

    /// Fills the first value of a map; maps that are not there, and bytes beyond the value, are ignored.
    pub fn fill(&mut self, map: usize, bytes: &[u8]) {
        if let Some(map) = self.maps.get_mut(map) {
            map.fill(bytes);
        }
    }

    /// Takes the records and lines that programs have put out.
    pub fn take_outputs(&mut self) -> RunOutputs {
        std::mem::take(&mut self.outputs)
    }

    /// Runs a program from its first instruction; r0 at its end.
    ///
    /// # Errors
    ///
    /// The instruction at which it stopped, and why. What it has done to maps until then remains.
    pub fn run(&mut self, program: &MachineProgram, input: RunInput<'_>) -> Result<u64, MachineFault> {
        self.run_function(program, 0, input)
    }

    /// Runs a function of a program, by the index of its first instruction.
    ///
    /// # Errors
    ///
    /// As [`BpfMachine::run`].
    ///
    /// # Panics
    ///
    /// If the program has no such instruction.
    pub fn run_function(
        &mut self,
        program: &MachineProgram,
        start: usize,
        input: RunInput<'_>,
    ) -> Result<u64, MachineFault> {
        self.prepare_stack(0);
        self.begin(program, input, None).execute(start, [memory::context_address(), 0, 0, 0, 0], 0)
    }

    /// A number that changes when parts of its maps move in memory.
    #[must_use]
    #[inline]
    pub fn maps_version(&self) -> MapsVersion {
        MapsVersion { identity: self.identity, allowance: self.allowance }
    }

    /// Makes the stack zeros, but for so many bytes at its end, which the caller clears, and may write; its first byte.
    #[inline]
    pub fn prepare_stack(&mut self, cleared: usize) -> *mut u8 {
        if STACK_BYTES - self.stack_low != cleared {
            self.clear_stack(cleared);
        }
        self.stack.as_mut_ptr()
    }

    #[inline(never)]
    fn clear_stack(&mut self, cleared: usize) {
        if STACK_BYTES - self.stack_low > cleared {
            self.stack[self.stack_low..].fill(0);
            self.stack_low = STACK_BYTES;
        }
        self.note_stack_written(cleared);
    }

    /// Notes that so many bytes at the end of the stack may be written.
    #[inline]
    pub fn note_stack_written(&mut self, bytes: usize) {
        self.stack_low = self.stack_low.min(STACK_BYTES - bytes.min(STACK_BYTES));
    }

    /// Steps that each run may take.
    #[must_use]
    #[inline]
    pub fn steps_max(&self) -> u64 {
        self.steps_max
    }

    /// A run that has not begun, or in which only machine code has taken steps; its stack has been prepared. Functions that helper
    /// functions call are run by `functions`.
    pub fn begin<'m>(
        &'m mut self,
        program: &'m MachineProgram,
        input: RunInput<'m>,
        functions: Option<&'m dyn MachineFunctions>,
    ) -> MachineRun<'m> {
        let RunInput { context, data, moment } = input;
        MachineRun {
            code: &program.instructions,
            memory: MachineMemory {
                context,
                data,
                stack: &mut self.stack,
                stack_low: &mut self.stack_low,
                maps: &mut self.maps,
                reserved: Vec::new(),
                keys: Vec::new(),
            },
            moment,
            identity: self.identity,
            allowance: &mut self.allowance,
            outputs: &mut self.outputs,
            random: &mut self.random,
            ring_bytes: 0,
            line_bytes: 0,
            functions,
            steps: self.steps_max,
            steps_max: self.steps_max,
        }
    }
}

/// Functions of a program as machine code.
pub trait MachineFunctions: std::fmt::Debug {
    /// Runs the function that begins with this instruction, inside of so many others, fewer than 8; `None`: there is no
    /// machine code for it.
    fn call(
        &self,
        run: &mut MachineRun<'_>,
        start: usize,
        arguments: [u64; 5],
        depth: usize,
    ) -> Option<Result<u64, MachineFault>>;
}

/// Says whether parts of maps are where they were: they move only when a machine takes memory out of the allowance for its maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapsVersion {
    identity: u64,
    allowance: usize,
}

/// Bytes that count as a step.
pub(super) const STEP_BYTES: u64 = 64;

/// A running program.
#[derive(Debug)]
pub struct MachineRun<'m> {
    pub(super) code: &'m [MachineInstruction],
    pub(super) memory: MachineMemory<'m>,
    pub(super) moment: &'m RunMoment,
    pub(super) identity: u64,
    pub(super) allowance: &'m mut usize,
    pub(super) outputs: &'m mut RunOutputs,
    pub(super) random: &'m mut u64,
    /// Bytes of records in rings, and of lines.
    pub(super) ring_bytes: u64,
    pub(super) line_bytes: usize,
    functions: Option<&'m dyn MachineFunctions>,
    pub(super) steps: u64,
    steps_max: u64,
}

/// A function that waits for the one that it has called.
struct Caller {
    back: usize,
    kept: [u64; 4],
}

impl MachineRun<'_> {
    /// Changes when parts of maps move in memory.
    #[must_use]
    pub fn maps_version(&self) -> MapsVersion {
        MapsVersion { identity: self.identity, allowance: *self.allowance }
    }

    /// Runs a function to its end, inside of so many others.
    pub(super) fn execute(&mut self, start: usize, arguments: [u64; 5], depth: usize) -> Result<u64, MachineFault> {
        let functions = self.functions.filter(|_| depth < FRAMES_MAX);
        if let Some(result) = functions.and_then(|functions| functions.call(self, start, arguments, depth)) {
            return result;
        }
        let mut registers = [0; 11];
        registers[1..6].copy_from_slice(&arguments);
        self.enter(depth, &mut registers).map_err(|kind| MachineFault { at: start, kind })?;
        self.go_on(start, &mut registers, depth)?;
        Ok(registers[0])
    }

    /// Goes on with a function to its end, inside of so many others.
    pub(super) fn go_on(&mut self, start: usize, registers: &mut [u64; 11], depth: usize) -> Result<(), MachineFault> {
        let (mut at, mut callers) = (start, Vec::<Caller>::new());
        loop {
            let fault = |kind| MachineFault { at, kind };
            let Some(steps) = self.steps.checked_sub(1) else {
                return Err(fault(MachineFaultKind::NoEnd { limit: self.steps_max }));
            };
            self.steps = steps;
            match self.code[at] {
                MachineInstruction::Jump { target } => at = target as usize,
                MachineInstruction::JumpIf { relation, is_wide, left, right, target } => {
                    let numbers = (registers[left as usize], operand(registers, right));
                    at = if holds(relation, is_wide, numbers) { target as usize } else { at + 1 };
                }
                MachineInstruction::Call { target } => {
                    let kept = [registers[6], registers[7], registers[8], registers[9]];
                    callers.push(Caller { back: at + 1, kept });
                    self.enter(depth + callers.len(), registers).map_err(fault)?;
                    at = target as usize;
                }
                MachineInstruction::CallHelper { number } => {
                    let arguments = [registers[1], registers[2], registers[3], registers[4], registers[5]];
                    registers[0] = self.call(number, arguments, (at, depth + callers.len()))?;
                    at += 1;
                }
                MachineInstruction::Exit => {
                    let Some(caller) = callers.pop() else { return Ok(()) };
                    registers[6..10].copy_from_slice(&caller.kept);
                    registers[10] = memory::stack_end(depth + callers.len());
                    at = caller.back;
                }
                other => {
                    self.step(other, registers).map_err(fault)?;
                    at += 1;
                }
            }
        }
    }

    /// Counts bytes that a helper function copies, clears or compares as steps.
    pub(super) fn count_bytes(&mut self, bytes: u64) -> Result<(), MachineFaultKind> {
        let left = self.steps.checked_sub(bytes / STEP_BYTES);
        self.steps = left.ok_or(MachineFaultKind::NoEnd { limit: self.steps_max })?;
        Ok(())
    }

    /// Gives a function its stack, which is zeros.
    fn enter(&mut self, depth: usize, registers: &mut [u64; 11]) -> Result<(), MachineFaultKind> {
        if depth >= FRAMES_MAX {
            return Err(MachineFaultKind::DeepCalls { limit: FRAMES_MAX });
        }
        if depth > 0 {
            self.memory.clear_frame(depth);
        }
        registers[STACK_POINTER as usize] = memory::stack_end(depth);
        Ok(())
    }

    /// An instruction behind which the program goes on.
    fn step(&mut self, instruction: MachineInstruction, registers: &mut [u64; 11]) -> Result<(), MachineFaultKind> {
        use MachineInstruction as I;
        match instruction {
            I::Alu { operation, is_wide, to, from } => {
                let (left, right) = (registers[to as usize], operand(registers, from));
                registers[to as usize] =
                    if is_wide { alu(operation, left, right) } else { alu_32(operation, left, right) };
            }
            I::SignExtend { to, from, bits, is_wide } => {
                let extended = sign_extended(registers[from as usize], bits);
                registers[to as usize] = if is_wide { extended } else { extended & 0xffff_ffff };
            }
            I::ByteSwap { to, order, bits } => registers[to as usize] = swapped(registers[to as usize], order, bits),
            I::Load { to, base, offset, bytes, is_signed } => {
                let address = place(registers, base, offset);
                let value = number(self.memory.bytes(address, bytes.into())?);
                registers[to as usize] = if is_signed { sign_extended(value, bytes * 8) } else { value };
            }
            I::Store { base, offset, bytes, from } => {
                let value = operand(registers, from);
                self.store(place(registers, base, offset), value, bytes)?;
            }
            I::Atomic { operation, base, offset, bytes, from, fetches } => {
                let address = place(registers, base, offset);
                let before = number(self.memory.bytes_mut(address, bytes.into())?);
                let value = registers[from as usize];
                let mask = u64::MAX >> (64 - 8 * u32::from(bytes));
                let after = match operation {
                    AtomicOperation::Add => before.wrapping_add(value),
                    AtomicOperation::Or => before | value,
                    AtomicOperation::And => before & value,
                    AtomicOperation::Xor => before ^ value,
                    AtomicOperation::Exchange => value,
                    AtomicOperation::CompareExchange => {
                        if registers[0] & mask == before {
                            value
                        } else {
                            before
                        }
                    }
                };
                self.store(address, after, bytes)?;
                match operation {
                    AtomicOperation::CompareExchange => registers[0] = before,
                    _ if fetches => registers[from as usize] = before,
                    _ => {}
                }
            }
            I::LoadConstant { to, value } => {
                registers[to as usize] = match value {
                    WideConstant::Number(number) => number,
                    WideConstant::Map(map) => memory::map_address(map),
                    WideConstant::MapValue { map, offset } => memory::value_address(map as usize, 0, offset),
                    WideConstant::Function(target) => memory::function_address(target),
                };
            }
            I::Absent => return Err(MachineFaultKind::Absent),
            // The second half of a constant has no effect; the others are not passed here.
            I::SecondHalf | I::Jump { .. } | I::JumpIf { .. } | I::Call { .. } | I::CallHelper { .. } | I::Exit => {}
        }
        Ok(())
    }

    fn store(&mut self, address: u64, value: u64, bytes: u8) -> Result<(), MachineFaultKind> {
        let place = self.memory.bytes_mut(address, bytes.into())?;
        place.copy_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
        Ok(())
    }
}

fn operand(registers: &[u64; 11], operand: MachineOperand) -> u64 {
    match operand {
        MachineOperand::Register(register) => registers[register as usize],
        MachineOperand::Constant(constant) => i64::from(constant) as u64,
    }
}

fn place(registers: &[u64; 11], base: u8, offset: i16) -> u64 {
    registers[base as usize].wrapping_add_signed(offset.into())
}

/// A number of up to 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn sign_extended(value: u64, bits: u8) -> u64 {
    let above = 64 - u32::from(bits);
    ((value << above) as i64 >> above) as u64
}

fn swapped(value: u64, order: SwapOrder, bits: u8) -> u64 {
    // Memory is that of a little-endian machine, whatever this one is.
    let turns = order != SwapOrder::Little;
    match bits {
        16 if turns => (value as u16).swap_bytes().into(),
        16 => (value as u16).into(),
        32 if turns => (value as u32).swap_bytes().into(),
        32 => (value as u32).into(),
        _ if turns => value.swap_bytes(),
        _ => value,
    }
}

fn alu(operation: AluOperation, left: u64, right: u64) -> u64 {
    let (left_signed, right_signed) = (left as i64, right as i64);
    match operation {
        AluOperation::Add => left.wrapping_add(right),
        AluOperation::Subtract => left.wrapping_sub(right),
        AluOperation::Multiply => left.wrapping_mul(right),
        AluOperation::Divide => left.checked_div(right).unwrap_or(0),
        AluOperation::DivideSigned if right == 0 => 0,
        AluOperation::DivideSigned => left_signed.wrapping_div(right_signed) as u64,
        AluOperation::Or => left | right,
        AluOperation::And => left & right,
        AluOperation::ShiftLeft => left.wrapping_shl(right as u32),
        AluOperation::ShiftRight => left.wrapping_shr(right as u32),
        AluOperation::Negate => left.wrapping_neg(),
        AluOperation::Remainder => left.checked_rem(right).unwrap_or(left),
        AluOperation::RemainderSigned if right == 0 => left,
        AluOperation::RemainderSigned => left_signed.wrapping_rem(right_signed) as u64,
        AluOperation::Xor => left ^ right,
        AluOperation::Move => right,
        AluOperation::ShiftRightSigned => left_signed.wrapping_shr(right as u32) as u64,
    }
}

fn alu_32(operation: AluOperation, left: u64, right: u64) -> u64 {
    let (left, right) = (left as u32, right as u32);
    let (left_signed, right_signed) = (left as i32, right as i32);
    let result = match operation {
        AluOperation::Divide => left.checked_div(right).unwrap_or(0),
        AluOperation::DivideSigned if right == 0 => 0,
        AluOperation::DivideSigned => left_signed.wrapping_div(right_signed) as u32,
        AluOperation::ShiftLeft => left.wrapping_shl(right),
        AluOperation::ShiftRight => left.wrapping_shr(right),
        AluOperation::Remainder => left.checked_rem(right).unwrap_or(left),
        AluOperation::RemainderSigned if right == 0 => left,
        AluOperation::RemainderSigned => left_signed.wrapping_rem(right_signed) as u32,
        AluOperation::ShiftRightSigned => left_signed.wrapping_shr(right) as u32,
        other => alu(other, left.into(), right.into()) as u32,
    };
    result.into()
}

fn holds(relation: JumpRelation, is_wide: bool, (left, right): (u64, u64)) -> bool {
    let (left, right) = if is_wide { (left, right) } else { (left & 0xffff_ffff, right & 0xffff_ffff) };
    let signed = |number: u64| if is_wide { number as i64 } else { i64::from(number as i32) };
    match relation {
        JumpRelation::Equal => left == right,
        JumpRelation::Above => left > right,
        JumpRelation::AboveOrEqual => left >= right,
        JumpRelation::Overlap => left & right != 0,
        JumpRelation::NotEqual => left != right,
        JumpRelation::Greater => signed(left) > signed(right),
        JumpRelation::GreaterOrEqual => signed(left) >= signed(right),
        JumpRelation::Below => left < right,
        JumpRelation::BelowOrEqual => left <= right,
        JumpRelation::Less => signed(left) < signed(right),
        JumpRelation::LessOrEqual => signed(left) <= signed(right),
    }
}
