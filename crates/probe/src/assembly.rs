//! eBPF programs, instruction by instruction, with labels.
//!
//! Instructions are 8 bytes: opcode, registers, offset, constant. Jumps name labels, and get their distance at the end.

use std::os::fd::{AsRawFd, BorrowedFd};

/// One of the eleven registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register(u8);

/// Results.
pub(crate) const R0: Register = Register(0);
/// Arguments of helpers.
pub(crate) const R1: Register = Register(1);
pub(crate) const R2: Register = Register(2);
pub(crate) const R3: Register = Register(3);
pub(crate) const R4: Register = Register(4);
pub(crate) const R5: Register = Register(5);
/// Kept by helpers.
pub(crate) const R6: Register = Register(6);
pub(crate) const R7: Register = Register(7);
pub(crate) const R8: Register = Register(8);
pub(crate) const R9: Register = Register(9);
/// The end of the stack.
pub(crate) const STACK: Register = Register(10);

/// Functions of the kernel, by their numbers.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(crate) enum KernelFunction {
    LookUp = 1,
    Update = 2,
    Delete = 3,
    Nanos = 5,
    Cpu = 8,
    ProcessAndThread = 14,
    CurrentName = 16,
    EventOutput = 25,
    ReadKernel = 113,
    ReadUserText = 114,
    ReadKernelText = 115,
    SeqWrite = 127,
    Output = 130,
    Path = 147,
    ThreadMemory = 156,
    CurrentTask = 158,
}

/// Conditions of jumps.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Condition {
    Equal = 0x10,
    Above = 0x20,
    NotEqual = 0x50,
    AboveSigned = 0x60,
    LessSigned = 0xc0,
    AtMostSigned = 0xd0,
}

/// A place that jumps lead to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label(usize);

const LOAD_CONSTANT: u8 = 0x18;
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const STORE_CONSTANT: u8 = 0x62;
const ATOMIC: u8 = 0xdb;
const JUMP: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const BY_REGISTER: u8 = 0x08;
const ADD: u8 = 0x07;
const OR: u8 = 0x47;
const AND: u8 = 0x57;
const SUBTRACT: u8 = 0x17;
const MULTIPLY: u8 = 0x27;
const DIVIDE: u8 = 0x37;
/// Says of an atomic addition that the value before it is wanted.
const FETCH: i32 = 1;
const SHIFT_LEFT: u8 = 0x67;
const SHIFT_RIGHT: u8 = 0x77;
const SHIFT_RIGHT_SIGNED: u8 = 0xc7;
/// Says of a call that it is one of a part of the program itself.
const OWN_PART: u8 = 1;
const MOVE: u8 = 0xb7;

/// A program that is being written.
#[derive(Debug, Default)]
pub(crate) struct BpfAssembly {
    instructions: Vec<[u8; 8]>,
    /// Instructions that jump, and where to.
    jumps: Vec<(usize, Label)>,
    /// Instructions that call a part of the program, and where it begins.
    calls: Vec<(usize, Label)>,
    labels: Vec<Option<usize>>,
}

impl BpfAssembly {
    fn put(&mut self, opcode: u8, (to, from): (Register, Register), offset: i16, constant: i32) {
        let (low, high) = if cfg!(target_endian = "big") { (from.0, to.0) } else { (to.0, from.0) };
        let ([offset_0, offset_1], [c0, c1, c2, c3]) = (offset.to_ne_bytes(), constant.to_ne_bytes());
        self.instructions.push([opcode, low | high << 4, offset_0, offset_1, c0, c1, c2, c3]);
    }

    /// `to = from`
    pub(crate) fn copy(&mut self, to: Register, from: Register) {
        self.put(MOVE | BY_REGISTER, (to, from), 0, 0);
    }

    /// `to = value`
    pub(crate) fn set(&mut self, to: Register, value: i32) {
        self.put(MOVE, (to, R0), 0, value);
    }

    /// `to += value`
    pub(crate) fn add(&mut self, to: Register, value: i32) {
        self.put(ADD, (to, R0), 0, value);
    }

    /// `to += from`
    pub(crate) fn add_register(&mut self, to: Register, from: Register) {
        self.put(ADD | BY_REGISTER, (to, from), 0, 0);
    }

    /// `to &= value`
    pub(crate) fn and(&mut self, to: Register, value: i32) {
        self.put(AND, (to, R0), 0, value);
    }

    /// `to |= value`
    pub(crate) fn or(&mut self, to: Register, value: i32) {
        self.put(OR, (to, R0), 0, value);
    }

    /// `to |= from`
    pub(crate) fn or_register(&mut self, to: Register, from: Register) {
        self.put(OR | BY_REGISTER, (to, from), 0, 0);
    }

    /// `to <<= bits`
    pub(crate) fn shift_left(&mut self, to: Register, bits: i32) {
        self.put(SHIFT_LEFT, (to, R0), 0, bits);
    }

    /// `to >>= bits`, without a sign.
    pub(crate) fn shift_right(&mut self, to: Register, bits: i32) {
        self.put(SHIFT_RIGHT, (to, R0), 0, bits);
    }

    /// `to >>= bits`, with its sign.
    pub(crate) fn shift_right_signed(&mut self, to: Register, bits: i32) {
        self.put(SHIFT_RIGHT_SIGNED, (to, R0), 0, bits);
    }

    /// `to >>= from`, without a sign.
    pub(crate) fn shift_right_by(&mut self, to: Register, from: Register) {
        self.put(SHIFT_RIGHT | BY_REGISTER, (to, from), 0, 0);
    }

    /// `to -= from`
    pub(crate) fn subtract_register(&mut self, to: Register, from: Register) {
        self.put(SUBTRACT | BY_REGISTER, (to, from), 0, 0);
    }

    /// `to = *(base + offset)`, of so many bytes.
    pub(crate) fn load(&mut self, to: Register, (base, offset): (Register, i16), bytes: u8) {
        self.put(LOAD | size_bits(bytes), (to, base), offset, 0);
    }

    /// `*(base + offset) = from`, of so many bytes.
    pub(crate) fn store(&mut self, (base, offset): (Register, i16), from: Register, bytes: u8) {
        self.put(STORE | size_bits(bytes), (base, from), offset, 0);
    }

    /// `*(base + offset) = value`, of so many bytes.
    pub(crate) fn store_constant(&mut self, (base, offset): (Register, i16), value: i32, bytes: u8) {
        self.put(STORE_CONSTANT | size_bits(bytes), (base, R0), offset, value);
    }

    /// `*(base + offset) += from`, of 8 bytes, for all CPUs at once.
    pub(crate) fn add_to(&mut self, (base, offset): (Register, i16), from: Register) {
        self.put(ATOMIC, (base, from), offset, 0);
    }

    /// `*(base + offset) += from`, of 8 bytes, for all CPUs at once; `from` becomes what was there before.
    pub(crate) fn fetch_add(&mut self, (base, offset): (Register, i16), from: Register) {
        self.put(ATOMIC, (base, from), offset, FETCH);
    }

    /// `to *= from`
    pub(crate) fn multiply_by(&mut self, to: Register, from: Register) {
        self.put(MULTIPLY | BY_REGISTER, (to, from), 0, 0);
    }

    /// `to /= from`, without signs.
    pub(crate) fn divide_by(&mut self, to: Register, from: Register) {
        self.put(DIVIDE | BY_REGISTER, (to, from), 0, 0);
    }

    /// `to = value`, of 64 bits.
    pub(crate) fn set_long(&mut self, to: Register, value: u64) {
        self.put(LOAD_CONSTANT, (to, R0), 0, value as i32);
        self.put(0, (R0, R0), 0, (value >> 32) as i32);
    }

    /// `to` is a map.
    pub(crate) fn map(&mut self, to: Register, map: BorrowedFd<'_>) {
        self.put(LOAD_CONSTANT, (to, Register(MAP)), 0, map.as_raw_fd());
        self.put(0, (R0, R0), 0, 0);
    }

    /// `to` is the address of the only value of a map, and so many bytes.
    pub(crate) fn map_value(&mut self, to: Register, map: BorrowedFd<'_>, offset: i32) {
        self.put(LOAD_CONSTANT, (to, Register(MAP_VALUE)), 0, map.as_raw_fd());
        self.put(0, (R0, R0), 0, offset);
    }

    /// r0 becomes the address of the value of a key on the stack, or 0.
    pub(crate) fn look_up(&mut self, map: BorrowedFd<'_>, key: i16) {
        self.map(R1, map);
        self.copy(R2, STACK);
        self.add(R2, key.into());
        self.call(KernelFunction::LookUp);
    }

    /// Calls a function of the kernel, which changes r0 to r5.
    pub(crate) fn call(&mut self, function: KernelFunction) {
        self.put(CALL, (R0, R0), 0, function as i32);
    }

    /// Calls a part of the program, which changes r0 to r5.
    pub(crate) fn call_part(&mut self, label: Label) {
        self.calls.push((self.instructions.len(), label));
        self.put(CALL, (R0, Register(OWN_PART)), 0, 0);
    }

    /// Instructions that are there already, whose jumps stay among them.
    pub(crate) fn append(&mut self, instructions: impl IntoIterator<Item = [u8; 8]>) {
        self.instructions.extend(instructions);
    }

    /// A new label.
    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The next instruction is where jumps to this label lead.
    pub(crate) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.instructions.len());
    }

    /// Jumps there.
    pub(crate) fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.put(JUMP, (R0, R0), 0, 0);
    }

    /// Jumps if `left CONDITION right`.
    pub(crate) fn jump_if(&mut self, condition: Condition, left: Register, right: i32, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.put(JUMP | condition as u8, (left, R0), 0, right);
    }

    /// Jumps if `left CONDITION right`, of two registers.
    pub(crate) fn jump_if_register(&mut self, condition: Condition, left: Register, right: Register, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.put(JUMP | BY_REGISTER | condition as u8, (left, right), 0, 0);
    }

    /// Jumps if the two are not equal.
    pub(crate) fn jump_unequal(&mut self, left: Register, right: Register, label: Label) {
        self.jump_if_register(Condition::NotEqual, left, right, label);
    }

    /// Ends: a result of 0.
    pub(crate) fn exit(&mut self) {
        self.exit_with(0);
    }

    /// Ends with this result.
    pub(crate) fn exit_with(&mut self, result: i32) {
        self.set(R0, result);
        self.put(EXIT, (R0, R0), 0, 0);
    }

    /// The program.
    ///
    /// # Panics
    ///
    /// If a label has no place, or is too far away.
    pub(crate) fn finish(mut self) -> Vec<[u8; 8]> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].expect("each label has a place");
            let distance = target as i64 - at as i64 - 1;
            let distance = i16::try_from(distance).expect("programs are short").to_ne_bytes();
            self.instructions[at][2..4].copy_from_slice(&distance);
        }
        for (at, label) in self.calls {
            let target = self.labels[label.0].expect("each label has a place");
            let distance = (target as i64 - at as i64 - 1) as i32;
            self.instructions[at][4..8].copy_from_slice(&distance.to_ne_bytes());
        }
        self.instructions
    }
}

fn size_bits(bytes: u8) -> u8 {
    match bytes {
        1 => 0x10,
        2 => 0x08,
        4 => 0x00,
        _ => 0x18,
    }
}
