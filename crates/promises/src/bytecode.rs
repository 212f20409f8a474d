//! Bytecode that the validator accepts runs to its end inside its arguments, and follows its
//! instructions.
//!
//! ```text
//! predicate ──> bytes ────────────┬── as they are: what the evaluator keeps is kept
//! random instructions ──> bytes ──┴── some bytes damaged ── validate ── refused, with a byte inside of them
//!                                                              └── accepted ──┬── run on arguments of the very size
//!                                                                             └── a plain machine that looks for
//!                                                                                 registers read before they are written
//! ```
//!
//! All of it is safe code: a read outside of a slice would be a panic, and a loop would not be over.

use kymo_bytecode::{INSTRUCTION_BYTES, Instruction, RegisterSet, find_needs, header, validate};
use kymo_ir::predicate::InputPlace;
use kymo_random::predicates::{self, PredicateOptions};

use crate::plain_machine::{PlainMachine, TextMemory};
use crate::random::RandomNumbers;
use crate::random_bytecode::{random_constants, random_instructions};

/// The promise for random bytes, damaged programs and sound ones: whether they were accepted.
///
/// # Panics
///
/// If it is broken.
pub fn hold(random: &mut RandomNumbers) -> bool {
    let mut bytes = match random.below(8) {
        0 => {
            let count = random.below(100);
            return refused_or_run(&random.bytes(count), random);
        }
        1..=3 => compiled(random),
        _ => instructions(random),
    };
    match random.below(4) {
        0 => {}
        1 => bytes = random.damaged(&bytes),
        // The header stays as it is, so that the validator looks further.
        _ => {
            for _ in 0..=random.below(3) {
                let at = INSTRUCTION_BYTES + random.below(bytes.len() - INSTRUCTION_BYTES);
                bytes[at] = if random.below(2) == 0 { bytes[at] ^ 1 << random.below(8) } else { random.bytes(1)[0] };
            }
        }
    }
    refused_or_run(&bytes, random)
}

fn refused_or_run(bytes: &[u8], random: &mut RandomNumbers) -> bool {
    let program = match validate(bytes) {
        Ok(program) => program,
        Err(error) => {
            assert!(error.at <= bytes.len(), "{error} is behind the last of {} bytes", bytes.len());
            return false;
        }
    };
    assert!(!program.to_string().is_empty(), "every program can be shown");
    for _ in 0..4 {
        let arguments = random.bytes(program.size() as usize);
        let count = random.below(40);
        let memory = TextMemory(random.bytes(count));
        let expected = PlainMachine::new(&program, &arguments, &memory).run();
        assert_eq!(program.run(&arguments, &memory), Ok(expected), "{program}{arguments:x?}\n{memory:x?}");
    }
    if let Some(short) = program.size().checked_sub(1) {
        let arguments = random.bytes(short as usize);
        assert!(program.run(&arguments, &()).is_err(), "too few arguments are told");
    }
    true
}

/// The bytes of a random predicate, which keeps the same events as the evaluator.
fn compiled(random: &mut RandomNumbers) -> Vec<u8> {
    let nodes = 1 + random.below(40);
    let options = PredicateOptions { nodes, pointers: false, ..PredicateOptions::PLAIN };
    let (predicate, layout) = predicates::predicate(random, &options);
    let Ok(bytes) = kymo_filter::bytecode::compile(&predicate, &layout) else {
        return [&header(0, 1, 0)[..], &Instruction::Keep.encode(RegisterSet::default())].concat();
    };
    let program = validate(&bytes).unwrap_or_else(|error| panic!("{error}\n{predicate}{layout:?}"));
    assert!(!layout.places.iter().any(|place| matches!(place, InputPlace::Pointer { .. })), "they were not asked for");
    for _ in 0..4 {
        let arguments = predicates::arguments(random, &predicate, &layout);
        let expected = predicate.keeps(&predicates::data(&predicate, &layout, &arguments)[..]);
        assert_eq!(program.run(&arguments, &()), Ok(expected), "{predicate}{layout:?}\n{arguments:x?}\n{program}");
    }
    bytes
}

/// The bytes of random instructions. Their needs are true, or hide up to some place that a register is not written: then
/// only one look at each way across that place tells.
fn instructions(random: &mut RandomNumbers) -> Vec<u8> {
    let size = 16 + random.below(60) as u32;
    let constants = random_constants(random);
    let mut instructions = random_instructions(random, size, constants.len() as u32);
    let hidden =
        if random.below(3) == 0 { instructions.remove(random.below(16)).writes() } else { RegisterSet::default() };
    let place = random.below(instructions.len());
    let mut bytes = header(size, instructions.len() as u16, constants.len() as u32).to_vec();
    let mut needs = vec![RegisterSet::default(); instructions.len()];
    find_needs(&instructions, &mut needs);
    for (index, (instruction, needs)) in instructions.iter().zip(needs).enumerate() {
        bytes.extend(instruction.encode(if index < place { needs.without(hidden) } else { needs }));
    }
    bytes.extend(constants);
    bytes
}

/// The promise for bytes as they are: whether they were accepted.
///
/// # Panics
///
/// If it is broken.
pub fn hold_as_they_are(bytes: &[u8]) -> bool {
    refused_or_run(bytes, &mut RandomNumbers::new(bytes.len() as u64))
}

/// Sound programs, for a fuzzer to begin with.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    (0..20).map(|seed| compiled(&mut RandomNumbers::new(seed))).collect()
}
