//! Random programs of eBPF, and runs of them that are compared.

use kymo_ir::machine::{BpfMachine, BpfMap, BpfMapType, MachineFault, MapDefinition, RunInput, RunMoment, RunOutputs};

use crate::RandomNumbers;

/// Bytes of contexts.
pub const CONTEXT_BYTES: usize = 128;
/// Bytes of the stack that programs use.
const STACK_BYTES: i16 = 64;

/// Parts of the language that a program may have.
#[derive(Clone, Copy)]
pub struct ProgramOptions {
    /// Signed division, signed loads and moves, atomic operations, swaps of bytes whatever the machine is.
    pub is_new: bool,
    /// Places outside of memory, calls of functions, jumps without a condition.
    pub is_wild: bool,
    /// Maps and helper functions, pointers that are calculated, loops.
    pub has_maps: bool,
}

/// A program that is being made.
struct RandomProgram<'r> {
    random: &'r mut RandomNumbers,
    options: ProgramOptions,
    code: Vec<[u8; 8]>,
    /// Instructions whose jump leads to the end of the body, or less far.
    jumps: Vec<usize>,
    /// Constants that are functions.
    callbacks: Vec<usize>,
}

fn word(opcode: u8, to: u8, from: u8, offset: i16, constant: i32) -> [u8; 8] {
    let ([o0, o1], [c0, c1, c2, c3]) = (offset.to_le_bytes(), constant.to_le_bytes());
    [opcode, to | from << 4, o0, o1, c0, c1, c2, c3]
}

impl RandomProgram<'_> {
    fn put(&mut self, opcode: u8, to: u8, from: u8, offset: i16, constant: i32) {
        self.code.push(word(opcode, to, from, offset, constant));
    }

    fn register(&mut self) -> u8 {
        self.random.below(9) as u8
    }

    fn constant(&mut self) -> i32 {
        match self.random.below(4) {
            0 => self.random.below(70) as i32 - 3,
            1 => [i32::MIN, i32::MAX, -1, 0, 1, 0xffff][self.random.below(6)],
            _ => self.random.any() as i32,
        }
    }

    /// A place in the stack that a number of so many bytes fits in, aligned.
    fn stack_place(&mut self, bytes: i16) -> i16 {
        let place = -STACK_BYTES + bytes * self.random.below((STACK_BYTES / bytes) as usize) as i16;
        if self.options.is_wild && self.random.below(60) == 0 { place + STACK_BYTES } else { place }
    }

    fn arithmetic(&mut self) {
        let is_wide = self.random.below(2) == 0;
        let class = if is_wide { 0x07 } else { 0x04 };
        let (to, from, constant) = (self.register(), self.register(), self.constant());
        let operation = self.random.below(13) as u8;
        let divides = matches!(operation, 3 | 9);
        let is_signed = i16::from(divides && self.options.is_new && self.random.below(2) == 0);
        match operation {
            8 => self.put(class | 0x80, to, 0, 0, 0),
            // rbpf leaves the upper half of a number alone when its lower half is divided by 0.
            _ if self.random.below(2) == 0 && (is_wide || operation != 9 || self.options.is_new) => {
                self.put(class | operation << 4 | 8, to, from, is_signed, 0);
            }
            6 | 7 | 12 => {
                let bits = self.random.below(if is_wide { 64 } else { 32 }) as i32;
                self.put(class | operation << 4, to, 0, 0, bits);
            }
            _ => {
                let constant = if divides && constant == 0 { 7 } else { constant };
                self.put(class | operation << 4, to, 0, is_signed, constant);
            }
        }
    }

    fn swap(&mut self) {
        let (to, bits) = (self.register(), [16, 32, 64][self.random.below(3)]);
        let opcode = [0xd4, 0xdc, 0xd7][self.random.below(if self.options.is_new { 3 } else { 2 })];
        self.put(opcode, to, 0, 0, bits);
    }

    fn sign_extended_move(&mut self) {
        let (to, from) = (self.register(), self.register());
        let (opcode, kinds) = if self.random.below(2) == 0 { (0xbf, 3) } else { (0xbc, 2) };
        let bits = [8, 16, 32][self.random.below(kinds)];
        self.put(opcode, to, from, bits, 0);
    }

    fn memory(&mut self) {
        let (size, bytes) = [(0x10, 1), (0x08, 2), (0x00, 4), (0x18, 8)][self.random.below(4)];
        let (register, place, constant) = (self.register(), self.stack_place(bytes), self.constant());
        match self.random.below(5) {
            0 => self.put(0x62 | size, 10, 0, place, constant),
            1 => self.put(0x63 | size, 10, register, place, 0),
            2 => {
                let within =
                    CONTEXT_BYTES / bytes as usize + usize::from(self.options.is_wild && self.random.below(30) == 0);
                let place = bytes * self.random.below(within) as i16;
                self.put(0x61 | size, register, 9, place, 0);
            }
            3 if self.options.is_new && bytes < 8 => self.put(0x81 | size, register, 10, place, 0),
            _ => self.put(0x61 | size, register, 10, place, 0),
        }
    }

    fn atomic(&mut self) {
        let (size, bytes) = [(0x00, 4), (0x18, 8)][self.random.below(2)];
        let (from, place) = (self.register(), self.stack_place(bytes));
        let operation = [0, 0x40, 0x50, 0xa0, 0x01, 0x41, 0x51, 0xa1, 0xe1, 0xf1][self.random.below(10)];
        self.put(0xc3 | size, 10, from, place, operation);
    }

    fn jump(&mut self) {
        let relation = [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13][self.random.below(11)] << 4;
        let class = [0x05, 0x06][self.random.below(2)];
        let (left, right, constant) = (self.register(), self.register(), self.constant());
        // rbpf takes the constant of an unsigned comparison of 64 bits for a positive number; the kernel extends its sign.
        let constant = if self.options.is_new || class == 0x06 { constant } else { constant & i32::MAX };
        self.jumps.push(self.code.len());
        match self.random.below(if self.options.is_wild { 5 } else { 4 }) {
            0 | 1 => self.put(class | relation | 8, left, right, 0, 0),
            4 => self.put(0x05, 0, 0, 0, 0),
            _ => self.put(class | relation, left, 0, 0, constant),
        }
    }

    /// A call, or a constant that is a function, leads to the next instruction.
    fn lead(&mut self, from: usize) {
        let distance = (self.code.len() - from - 1) as i32;
        self.code[from][4..].copy_from_slice(&distance.to_le_bytes());
    }

    /// The function that helper functions call: it changes the number that its third or second argument points to.
    fn callback(&mut self) {
        if self.callbacks.is_empty() {
            return;
        }
        let callbacks = std::mem::take(&mut self.callbacks);
        callbacks.into_iter().for_each(|callback| self.lead(callback));
        let pointer = [2, 3][self.random.below(2)];
        let register = self.register();
        self.put(0x79, 0, pointer, 0, 0);
        self.put(0x07, 0, 0, 0, 3);
        if self.random.below(2) == 0 {
            self.put(0x7b, pointer, 0, 0, 0);
        }
        let register_at_stack = self.stack_place(8);
        self.put(0x7b, 10, register, register_at_stack, 0);
        let result = i32::from(self.random.below(6) == 0);
        self.put(0xb7, 0, 0, 0, result);
        self.put(0x95, 0, 0, 0, 0);
    }

    fn wide(&mut self, to: u8, kind: u8, low: i32, high: i32) {
        self.put(0x18, to, kind, 0, low);
        self.put(0, 0, 0, 0, high);
    }

    /// `to = r10 + place`
    fn stack_pointer(&mut self, to: u8, place: i16) {
        self.put(0xbf, to, 10, 0, 0);
        self.put(0x07, to, 0, 0, place.into());
    }

    /// r1 is a map, r2 a key in the stack, of a few that there are.
    fn map_and_key(&mut self, map: i32) {
        let place = self.stack_place(8);
        let key = self.random.below(6) as i32;
        if self.random.below(4) > 0 {
            self.put(0x7a, 10, 0, place, key);
        }
        self.wide(1, 5, map, 0);
        self.stack_pointer(2, place);
    }

    /// A call of a helper function with arguments that are mostly right.
    fn helper(&mut self) {
        let map = self.random.below(MAPS) as i32;
        match self.random.below(12) {
            0..=3 => self.look_up(map),
            4 => {
                let (place, flags) = (self.stack_place(16), self.random.below(4) as i32 % 3);
                self.map_and_key(map);
                self.stack_pointer(3, place);
                self.put(0xb7, 4, 0, 0, flags);
                self.put(0x85, 0, 0, 0, 2);
            }
            5 => {
                self.map_and_key(map);
                self.put(0x85, 0, 0, 0, 3);
            }
            6 | 7 => {
                let number = [5, 7, 8, 14, 125][self.random.below(5)];
                self.put(0x85, 0, 0, 0, number);
            }
            8 => {
                let (to, from) = (self.stack_place(8), self.stack_place(8));
                self.stack_pointer(1, to);
                self.put(0xb7, 2, 0, 0, 8);
                self.stack_pointer(3, from);
                let number = [4, 112, 115, 16][self.random.below(4)];
                self.put(0x85, 0, 0, 0, number);
            }
            9 => {
                let place = self.stack_place(8);
                self.wide(1, 5, RING, 0);
                self.stack_pointer(2, place);
                self.put(0xb7, 3, 0, 0, 8);
                self.put(0xb7, 4, 0, 0, 0);
                self.put(0x85, 0, 0, 0, 130);
            }
            10 => self.reserve(),
            _ => self.loop_over(map),
        }
    }

    /// Looks a key up, and mostly uses the value if there is one.
    fn look_up(&mut self, map: i32) {
        self.map_and_key(map);
        self.put(0x85, 0, 0, 0, 1);
        let (to, register) = (self.register(), self.register());
        if self.random.below(8) > 0 {
            self.put(0x15, 0, 0, 4, 0);
        }
        let offset = [0, 0, 0, 4, 8][self.random.below(5)];
        self.put(0x79, to, 0, offset, 0);
        self.put(0x07, to, 0, 0, 1);
        let stored = [to, register][self.random.below(2)];
        self.put(0x7b, 0, stored, offset, 0);
        self.put(0x0f, register, to, 0, 0);
    }

    /// Reserves a record, fills it, and mostly gives it away.
    fn reserve(&mut self) {
        self.wide(1, 5, RING, 0);
        self.put(0xb7, 2, 0, 0, 16);
        self.put(0xb7, 3, 0, 0, 0);
        self.put(0x85, 0, 0, 0, 131);
        self.put(0x15, 0, 0, 5, 0);
        let register = self.register();
        self.put(0x7b, 0, register, 8, 0);
        self.put(0xbf, 1, 0, 0, 0);
        self.put(0xb7, 2, 0, 0, 0);
        let number = [132, 132, 133, 5][self.random.below(4)];
        self.put(0x85, 0, 0, 0, number);
        self.put(0xb7, 0, 0, 0, 1);
    }

    /// Calls the function at the end often, or for each entry of a map.
    fn loop_over(&mut self, map: i32) {
        let is_each = self.random.below(2) == 0;
        match is_each {
            true => self.wide(1, 5, map, 0),
            false => self.put(0xb7, 1, 0, 0, 5),
        }
        self.callbacks.push(self.code.len());
        self.wide(2, 4, 0, 0);
        self.stack_pointer(3, -16);
        self.put(0xb7, 4, 0, 0, 0);
        self.put(0x85, 0, 0, 0, if is_each { 164 } else { 181 });
    }

    /// An access by a pointer that is calculated: into the stack, the context, a variable, or anywhere.
    fn calculated_access(&mut self) {
        let (to, from) = (self.register(), self.register());
        self.put(0xbf, to, from, 0, 0);
        let mask = if self.random.below(20) == 0 { 0xff } else { 0x3f };
        self.put(0x57, to, 0, 0, mask);
        match self.random.below(6) {
            0 => {
                self.put(0x0f, to, 10, 0, 0);
                self.put(0x07, to, 0, 0, -72);
            }
            1 => self.put(0x0f, to, 9, 0, 0),
            2..=4 => {
                let spare = (to + 1) % 9;
                let map = [VARIABLES, 1][self.random.below(2)];
                self.wide(spare, 6, map, 0);
                self.put(0x0f, to, spare, 0, 0);
            }
            _ => {}
        }
        let (size, register) = ([0x10, 0x08, 0x00, 0x18][self.random.below(4)], self.register());
        match self.random.below(3) {
            0 => self.put(0x63 | size, to, register, 0, 0),
            _ => self.put(0x61 | size, register, to, 0, 0),
        }
    }

    /// Pointers that are kept in the stack.
    fn spill(&mut self) {
        let (place, to) = (self.stack_place(8), self.register());
        let from = [10, 9, self.register()][self.random.below(3)];
        self.put(0x7b, 10, from, place, 0);
        self.put(0x79, to, 10, place, 0);
        let is_stack = from == 10;
        self.put(0x79, to, to, if is_stack { -8 } else { 16 }, 0);
    }

    /// Instructions that come one behind the other, and jumps that lead forward among them.
    fn body(&mut self, count: usize) {
        let begin = self.code.len();
        let mut jumps = 0;
        while self.code.len() < begin + count {
            match self.random.below(16) {
                0..=6 => self.arithmetic(),
                7 => self.swap(),
                8 if self.options.is_new => self.sign_extended_move(),
                9 if self.options.is_new => self.atomic(),
                10 | 11 if jumps < 8 => {
                    self.jump();
                    jumps += 1;
                }
                12 => {
                    let (to, low, high) = (self.register(), self.constant(), self.constant());
                    self.put(0x18, to, 0, 0, low);
                    self.put(0, 0, 0, 0, high);
                }
                13 | 14 if self.options.has_maps => match self.random.below(8) {
                    0..=4 => self.helper(),
                    5 | 6 => self.calculated_access(),
                    _ => self.spill(),
                },
                _ => self.memory(),
            }
        }
        let end = self.code.len();
        for jump in std::mem::take(&mut self.jumps) {
            let is_back = self.options.has_maps && self.random.below(6) == 0;
            let first = if is_back { begin } else { jump + 1 };
            let choices: Vec<usize> = (first..=end).filter(|at| *at == end || self.code[*at][0] != 0).collect();
            let target = choices[self.random.below(choices.len())];
            self.code[jump][2..4].copy_from_slice(&((target as i64 - jump as i64 - 1) as i16).to_le_bytes());
        }
    }
}

/// A program that ends: it takes numbers from the context, works on them, and its result is of all of them.
#[must_use]
pub fn program(random: &mut RandomNumbers, options: ProgramOptions) -> Vec<[u8; 8]> {
    let count = 1 + random.below(60);
    let mut program = RandomProgram { random, options, code: Vec::new(), jumps: Vec::new(), callbacks: Vec::new() };
    program.put(0xbf, 9, 1, 0, 0);
    for place in (0..STACK_BYTES / 8).map(|number| -8 * (number + 1)) {
        program.put(0x7a, 10, 0, place, 0x1234_5678);
    }
    for register in 0..9_u8 {
        program.put(0x79, register, 9, 8 * i16::from(register), 0);
    }
    program.body(count);
    let mut calls = Vec::new();
    if program.options.is_wild && program.random.below(2) == 0 {
        calls.push(program.code.len());
        program.put(0x85, 0, 1, 0, 0);
    }
    for register in 1..9 {
        program.put(0x27, 0, 0, 0, 31);
        program.put(0x0f, 0, register, 0, 0);
    }
    program.put(0xbf, 1, 0, 0, 0);
    program.put(0x77, 1, 0, 0, 32);
    program.put(0xaf, 0, 1, 0, 0);
    program.put(0x95, 0, 0, 0, 0);
    if let Some(call) = calls.first() {
        program.lead(*call);
        program.body(count / 2 + 1);
        program.put(0x95, 0, 0, 0, 0);
    }
    program.callback();
    program.code
}

/// Maps of programs.
const MAPS: usize = 7;
const VARIABLES: i32 = 6;
const RING: i32 = 7;

/// Maps of all types that programs with maps use: hash tables are small, so that they become full.
#[must_use]
pub fn maps() -> Vec<MapDefinition> {
    let map = |map_type, key_bytes, value_bytes, entries_max| MapDefinition {
        name: format!("map{value_bytes}").into(),
        map_type,
        key_bytes,
        value_bytes,
        entries_max,
        is_read_only: false,
    };
    vec![
        map(BpfMapType::Hash, 4, 16, 4),
        map(BpfMapType::Array, 4, 12, 5),
        map(BpfMapType::Hash, 8, 16, 8),
        map(BpfMapType::LruHash, 4, 16, 3),
        map(BpfMapType::PerCpuHash, 2, 16, 4),
        map(BpfMapType::PerCpuArray, 4, 16, 4),
        map(BpfMapType::Array, 4, 64, 1),
        map(BpfMapType::RingBuffer, 0, 0, 128),
    ]
}

/// A run that is tried in two ways.
#[derive(Clone, Debug)]
pub struct MachineTrial {
    context: Vec<u8>,
    moment: RunMoment,
}

/// The results of a machine.
#[derive(Debug, PartialEq)]
pub struct TrialOutcome {
    results: Vec<Result<u64, MachineFault>>,
    contexts: Vec<Vec<u8>>,
    outputs: Vec<RunOutputs>,
    maps: Vec<Vec<TrialEntry>>,
}

type TrialEntry = (Box<[u8]>, Vec<(usize, Vec<u8>)>);

impl MachineTrial {
    /// A run with a context, at a moment.
    #[must_use]
    pub fn new(context: Vec<u8>, moment: RunMoment) -> Self {
        Self { context, moment }
    }

    /// Runs with contexts of a size, of which some facts are unknown.
    #[must_use]
    pub fn some(random: &mut RandomNumbers, count: usize, context_bytes: usize) -> Vec<Self> {
        let trial = |_| {
            let context = random.bytes(context_bytes);
            let cpu = (random.below(8) > 0).then(|| random.below(3) as u32);
            let thread_name = Some(b"name"[..].into());
            let moment = RunMoment { nanos: Some(random.any()), cpu, process: Some(2), thread: Some(3), thread_name };
            Self { context, moment }
        };
        (0..count).map(trial).collect()
    }

    /// The outcome of these runs, one after the other.
    pub fn outcome(
        trials: &[Self],
        machine: &mut BpfMachine,
        mut run: impl FnMut(&mut BpfMachine, RunInput<'_>) -> Result<u64, MachineFault>,
    ) -> TrialOutcome {
        let (mut results, mut contexts, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for trial in trials {
            let mut context = trial.context.clone();
            let input = RunInput { context: &mut context, data: b"a text\0and more", moment: &trial.moment };
            results.push(run(machine, input));
            contexts.push(context);
            outputs.push(machine.take_outputs());
        }
        let entries = |map: &BpfMap| {
            let owned = |(cpu, value): &(usize, &[u8])| (*cpu, value.to_vec());
            map.entries().map(|entry| (entry.key, entry.values.iter().map(owned).collect())).collect()
        };
        TrialOutcome { results, contexts, outputs, maps: machine.maps().iter().map(entries).collect() }
    }
}

impl TrialOutcome {
    /// Runs that came to their end.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.results.iter().filter(|result| result.is_ok()).count()
    }
}

/// Instructions, one a line.
#[must_use]
pub fn text(code: &[[u8; 8]]) -> String {
    code.iter().enumerate().map(|(at, word)| format!("{at:<4}{word:02x?}\n")).collect()
}
