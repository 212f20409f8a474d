//! The interpreter: one instruction after the other, each checked.

use super::form::{FLAG, ImageInstruction, ImageMove, ImageMoveKind, ObjectImage, op};
use super::helpers;
use super::limits::{FRAME_BYTES, FRAMES_MAX, STEPS_MAX};
use super::memory::{CONTEXT_ADDRESS, RunMemory, put, stack_end, text_address};
use super::numbers::{self, ObjectChange};
use super::surroundings::{ObjectStop, ObjectStopKind, ObjectSurroundings};
use crate::texts::Texts;

/// The register with the end of the stack.
pub(super) const POINTER: usize = 10;

/// A function that waits for the one that it has called.
#[derive(Clone, Copy)]
struct WaitingFunction {
    back: usize,
    kept: [u64; 4],
}

impl ObjectImage<'_> {
    /// Fills the context of a run from the arguments of an event, whose texts and numbers behind addresses `texts` has.
    pub fn fill(&self, arguments: &[u8], texts: &(impl Texts + ?Sized), context: &mut [u8]) {
        for (number, step) in self.moves().enumerate() {
            // Moves were checked, and so were the sizes: none of them is left out.
            let _ = moved(&step, number, arguments, texts, context);
        }
    }

    /// Runs the program; r0 at its end. The context has the size of the image, and so has the stack: 512 bytes for each of its frames.
    ///
    /// # Errors
    ///
    /// Where and why it stopped. What it has done to maps until then remains.
    pub fn run<S: ObjectSurroundings>(
        self,
        context: &mut [u8],
        stack: &mut [u8],
        surroundings: &mut S,
    ) -> Result<u64, ObjectStop> {
        let mut registers = [0; 11];
        registers[1] = CONTEXT_ADDRESS;
        registers[POINTER] = stack_end(0);
        let memory = RunMemory { image: self, context, stack, surroundings };
        ObjectRun { memory, steps: STEPS_MAX }.execute(0, &mut registers)
    }
}

/// The arguments of a text or of numbers: where, and how many.
fn behind<'t>(arguments: &[u8], at: usize, texts: &'t (impl Texts + ?Sized), bytes: Option<u64>) -> Option<&'t [u8]> {
    let word =
        |at: usize| arguments.get(at..).and_then(|rest| rest.first_chunk()).map(|word| u64::from_ne_bytes(*word));
    let length = match bytes {
        Some(bytes) => bytes,
        None => word(at + 8)?,
    };
    Some(texts.text(word(at)?, length))
}

/// Does a move; `None`: it was not checked.
pub(super) fn moved(
    step: &ImageMove,
    number: usize,
    arguments: &[u8],
    texts: &(impl Texts + ?Sized),
    context: &mut [u8],
) -> Option<()> {
    let ([from_bytes, to_bytes], from) = (step.bytes.map(usize::from), step.from as usize);
    let is_real = matches!(step.kind, ImageMoveKind::Real | ImageMoveKind::Reals);
    let one = |source: &[u8], to: &mut [u8]| {
        let mut word = [0; 8];
        word[..from_bytes].copy_from_slice(source.get(..from_bytes)?);
        let word = u64::from_le_bytes(word);
        let value = match (is_real, step.is_signed) {
            (true, _) => f64::from(f32::from_bits(word as u32)).to_bits(),
            (_, true) => numbers::sign_extended(word, 8 * step.bytes[0]),
            _ => word,
        };
        put(to.get_mut(..to_bytes)?, value);
        Some(())
    };
    let to = context.get_mut(step.to as usize..)?;
    match step.kind {
        ImageMoveKind::Number | ImageMoveKind::Real => one(arguments.get(from..)?, to),
        ImageMoveKind::TextAddress => {
            put(to.get_mut(..8)?, text_address(number));
            Some(())
        }
        ImageMoveKind::Text => {
            let (text, room) = (behind(arguments, from, texts, None)?, to.get_mut(..step.count as usize - 1)?);
            let text = before_zero(&text[..text.len().min(room.len())]);
            let count = text.len();
            room[..count].copy_from_slice(&text[..count]);
            Some(())
        }
        ImageMoveKind::Numbers | ImageMoveKind::Reals => {
            let known = (step.length > 0).then_some(u64::from(step.length));
            let count = match known {
                Some(count) => count,
                None => u64::from_ne_bytes(*arguments.get(from + 8..)?.first_chunk()?),
            };
            let count = count.min(step.count.into());
            let all = behind(arguments, from, texts, Some(count * u64::from(step.bytes[0])))?;
            for (number, source) in all.chunks_exact(from_bytes).take(count as usize).enumerate() {
                one(source, to.get_mut(number * step.stride as usize..)?)?;
            }
            Some(())
        }
    }
}

fn before_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

impl<'i> ObjectImage<'i> {
    /// The text that a move leads to, among these arguments: callsites end it before its first zero byte.
    pub fn text<'t>(&self, number: usize, arguments: &[u8], texts: &'t (impl Texts + ?Sized)) -> Option<&'t [u8]> {
        let step = self.moves().nth(number).filter(|step| step.kind == ImageMoveKind::TextAddress)?;
        behind(arguments, step.from as usize, texts, None)
    }
}

/// A running program, and the steps that it has left.
pub(super) struct ObjectRun<'m, 'i, S> {
    pub(super) memory: RunMemory<'m, 'i, S>,
    pub(super) steps: u32,
}

impl<S: ObjectSurroundings> ObjectRun<'_, '_, S> {
    /// Goes on at an instruction of the first function, to the end.
    pub(super) fn execute(&mut self, at: usize, registers: &mut [u64; 11]) -> Result<u64, ObjectStop> {
        let image = self.memory.image;
        let mut callers = [WaitingFunction { back: 0, kept: [0; 4] }; FRAMES_MAX];
        let (mut at, mut depth) = (at, 0_usize);
        loop {
            let stop = |kind| ObjectStop { at: at as u32, kind };
            // Jumps lead to instructions, and the last one does not go on.
            let Some(instruction) = image.instruction(at) else { return Err(stop(ObjectStopKind::Absent)) };
            self.steps = self.steps.checked_sub(1).ok_or(stop(ObjectStopKind::NoEnd))?;
            match instruction.op {
                op::JUMP => at = instruction.target as usize,
                op::JUMP_64 | op::JUMP_64_CONSTANT | op::JUMP_32 | op::JUMP_32_CONSTANT => {
                    at = if is_taken(&instruction, registers) { instruction.target as usize } else { at + 1 };
                }
                op::CALL => {
                    let kept = [registers[6], registers[7], registers[8], registers[9]];
                    callers[depth] = WaitingFunction { back: at + 1, kept };
                    depth += 1;
                    let frames = self.memory.stack.len() / FRAME_BYTES;
                    if depth >= frames {
                        return Err(stop(ObjectStopKind::DeepCalls));
                    }
                    let begin = (frames - depth - 1) * FRAME_BYTES;
                    self.memory.stack[begin..begin + FRAME_BYTES].fill(0);
                    registers[POINTER] = stack_end(depth);
                    at = instruction.target as usize;
                }
                op::EXIT => {
                    let Some(outer) = depth.checked_sub(1) else { return Ok(registers[0]) };
                    depth = outer;
                    registers[6..10].copy_from_slice(&callers[depth].kept);
                    registers[POINTER] = stack_end(depth);
                    at = callers[depth].back;
                }
                op::HELPER => {
                    let number = instruction.target.cast_unsigned();
                    registers[0] =
                        helpers::call(&mut self.memory, &mut self.steps, (number, registers)).map_err(stop)?;
                    at += 1;
                }
                _ => {
                    self.step(&instruction, registers).map_err(stop)?;
                    at += 1;
                }
            }
        }
    }

    /// The result of the helper function that an instruction calls.
    pub(super) fn helper(&mut self, at: usize, registers: &[u64; 11]) -> Result<u64, ObjectStopKind> {
        let number = self.memory.image.instruction(at).map_or(0, |instruction| instruction.target.cast_unsigned());
        helpers::call(&mut self.memory, &mut self.steps, (number, registers))
    }

    /// An instruction behind which the program goes on.
    #[inline(always)]
    fn step(&mut self, instruction: &ImageInstruction, registers: &mut [u64; 11]) -> Result<(), ObjectStopKind> {
        let &ImageInstruction { op, a, b, c, target, constant } = instruction;
        // Registers were checked, too: the remainder spares a check that may fail.
        let (a, b) = (usize::from(a) % 11, usize::from(b) % 11);
        let offset = |base: u64| base.wrapping_add_signed(target.into());
        match op {
            op::ALU_64 => registers[a] = numbers::alu(c, registers[a], registers[b]),
            op::ALU_64_CONSTANT => registers[a] = numbers::alu(c, registers[a], constant),
            op::ALU_32 => registers[a] = numbers::alu_32(c, registers[a], registers[b]),
            op::ALU_32_CONSTANT => registers[a] = numbers::alu_32(c, registers[a], constant),
            op::LOAD => {
                let value = self.memory.load(offset(registers[b]), c & !FLAG)?;
                registers[a] = if c & FLAG != 0 { numbers::sign_extended(value, 8 * (c & !FLAG)) } else { value };
            }
            op::STORE => self.memory.store(offset(registers[a]), c, registers[b])?,
            op::STORE_CONSTANT => self.memory.store(offset(registers[a]), c, constant)?,
            op::ATOMIC => {
                let change = ObjectChange::of(constant);
                let numbers = (registers[b], registers[0]);
                let before = self.memory.change(offset(registers[a]), c & !FLAG, change, numbers)?;
                match change {
                    ObjectChange::CompareExchange => registers[0] = before,
                    _ if c & FLAG != 0 => registers[b] = before,
                    _ => {}
                }
            }
            op::CONSTANT => registers[a] = constant,
            op::EXTEND => {
                let value = numbers::sign_extended(registers[b], c & !FLAG);
                registers[a] = if c & FLAG != 0 { value } else { value & 0xffff_ffff };
            }
            op::SWAP => registers[a] = numbers::swapped(registers[a], c & !FLAG, c & FLAG != 0),
            op::ABSENT => return Err(ObjectStopKind::Absent),
            _ => {}
        }
        Ok(())
    }
}

#[inline(always)]
fn is_taken(instruction: &ImageInstruction, registers: &[u64; 11]) -> bool {
    let &ImageInstruction { op, a, b, c, constant, .. } = instruction;
    let (left, right) = (registers[usize::from(a) % 11], registers[usize::from(b) % 11]);
    match op {
        op::JUMP_64 => numbers::holds(c, left, right),
        op::JUMP_64_CONSTANT => numbers::holds(c, left, constant),
        op::JUMP_32 => numbers::holds_32(c, left, right),
        _ => numbers::holds_32(c, left, constant),
    }
}
