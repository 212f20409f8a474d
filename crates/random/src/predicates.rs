//! Random predicates, layouts and arguments, for the tests of every form of code that predicates take.
//!
//! ```text
//! Random ── predicate ──> Predicate, Layout ──┬── arguments ──> bytes of one event ── data ──> Datum of each input
//!                                             └── event ──────> Datum of each input, some missing
//! ```
//!
//! Integers lie at the edges of the range of 64 bits, or near the predicate's constants; texts are
//! short and of few letters: so that comparisons turn out both ways. Text behind pointers lies in
//! one piece of memory that never moves.

mod event;
mod tree;

use kymo_units::ByteOrder;

use crate::numbers::RandomNumbers;
use kymo_ir::Encoding;
use kymo_ir::predicate::{ArgumentLayout, InputClass, InputKind, InputPlace, Predicate};

pub use event::{arguments, data, event};

/// The parts that may occur in a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredicateOptions {
    /// Inputs may be missing.
    pub missing: bool,
    /// Arithmetic, operations on bits, truth values as numbers.
    pub arithmetic: bool,
    /// Products, quotients and remainders; needs `arithmetic`.
    pub products: bool,
    /// Scaled integers, and the large factors that times have.
    pub scaled: bool,
    /// Real numbers.
    pub reals: bool,
    /// Reals are compared and combined with integers.
    pub mixed: bool,
    /// UTF-8 texts with literals and prefixes.
    pub text: bool,
    /// Globs with parts in the middle, or with both a first and a last part.
    pub globs: bool,
    /// Texts are compared with each other, and in any relation.
    pub text_order: bool,
    /// Text of other encodings.
    pub encodings: bool,
    /// Regular expressions.
    pub regex: bool,
    /// Text behind pointers.
    pub pointers: bool,
    /// Tests and numbers, about.
    pub nodes: usize,
}

impl PredicateOptions {
    /// Everything that there is.
    pub const ALL: Self = Self {
        missing: true,
        arithmetic: true,
        products: true,
        scaled: true,
        reals: true,
        mixed: true,
        text: true,
        globs: true,
        text_order: true,
        encodings: true,
        regex: true,
        pointers: true,
        nodes: 40,
    };
    /// Nothing but comparisons of integers, and their combinations.
    pub const INTEGERS: Self = Self {
        missing: true,
        arithmetic: false,
        products: false,
        scaled: false,
        reals: false,
        mixed: false,
        text: false,
        globs: false,
        text_order: false,
        encodings: false,
        regex: false,
        pointers: false,
        nodes: 40,
    };
    /// The parts that machine code takes: no regular expressions, UTF-8 alone.
    pub const PLAIN: Self = Self { encodings: false, regex: false, ..Self::ALL };
}

/// Inputs, at most.
const INPUTS_MAX: usize = 6;

/// A predicate that the verifier accepts, and where its inputs may lie.
#[must_use]
pub fn predicate(random: &mut RandomNumbers, options: &PredicateOptions) -> (Predicate, ArgumentLayout) {
    let inputs: Vec<InputClass> = (0..=random.below(INPUTS_MAX)).map(|number| input(random, options, number)).collect();
    let layout = layout(random, options, &inputs);
    let root = tree::root(random, options, &inputs);
    (Predicate { inputs, root }, layout)
}

fn input(random: &mut RandomNumbers, options: &PredicateOptions, number: usize) -> InputClass {
    const BITS: [u8; 10] = [1, 7, 8, 16, 20, 32, 32, 63, 64, 64];
    let kind = match random.below(8) {
        0 | 1 if options.text => InputKind::Text(encoding(random, options)),
        2 if options.reals => InputKind::Real,
        _ => InputKind::Integer { signed: random.below(2) == 0, bits: BITS[random.below(BITS.len())] },
    };
    let optional = options.missing && random.below(2) == 0;
    InputClass { name: format!("input{number}").into(), kind, optional }
}

fn encoding(random: &mut RandomNumbers, options: &PredicateOptions) -> Encoding {
    const OTHERS: [Encoding; 4] = [Encoding::Utf16Be, Encoding::Utf16Le, Encoding::Utf32Be, Encoding::Utf32Le];
    if options.encodings && random.below(3) == 0 { OTHERS[random.below(4)] } else { Encoding::Utf8 }
}

/// Inputs lie in any order, at any alignment, with gaps.
fn layout(random: &mut RandomNumbers, options: &PredicateOptions, inputs: &[InputClass]) -> ArgumentLayout {
    let mut size = 0;
    let first = random.below(inputs.len());
    let mut places = vec![InputPlace::Missing; inputs.len()];
    for number in (0..inputs.len()).map(|number| (number + first) % inputs.len()) {
        size += random.below(4) as u32;
        let place = place(random, options, &inputs[number], size);
        size = size.max(place.end() as u32);
        places[number] = place;
    }
    ArgumentLayout { size: size + random.below(4) as u32, places }
}

fn place(random: &mut RandomNumbers, options: &PredicateOptions, input: &InputClass, offset: u32) -> InputPlace {
    if input.optional && random.below(4) == 0 {
        return InputPlace::Missing;
    }
    match input.kind {
        InputKind::Integer { bits, .. } => {
            let fitting = bits.div_ceil(8).next_power_of_two();
            let bytes = (fitting << random.below(4)).min(8);
            let order = if random.below(3) == 0 { ByteOrder::Big } else { ByteOrder::Little };
            InputPlace::Integer { offset, bytes, order }
        }
        InputKind::Real => InputPlace::Real { offset, bytes: if random.below(3) == 0 { 4 } else { 8 } },
        InputKind::Text(_) if options.pointers && random.below(3) == 0 => InputPlace::Pointer { offset },
        InputKind::Text(_) => {
            let capacity = if random.below(8) == 0 { random.below(120) } else { random.below(20) };
            InputPlace::Inline { offset, capacity: capacity as u32 }
        }
    }
}

/// Numbers at the edges of 64 bits, or small ones.
fn edge(random: &mut RandomNumbers) -> i128 {
    let near = random.below(5) as i128 - 2;
    let number = match random.below(8) {
        0..=2 => near,
        3 => i128::from(random.any()),
        4 => i128::from(random.any() as i64),
        5 => (1 << random.below(65)) + near,
        6 => near - (1 << random.below(64)),
        _ => random.below(300) as i128 - 100,
    };
    number.clamp(kymo_ir::predicate::INTEGER_LOWEST, kymo_ir::predicate::INTEGER_HIGHEST)
}

/// Reals that are special, integral, or any.
fn real(random: &mut RandomNumbers) -> f64 {
    const SPECIAL: [f64; 8] =
        [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, i64::MAX as f64, f64::MIN_POSITIVE, 0.5];
    match random.below(4) {
        0 => SPECIAL[random.below(SPECIAL.len())],
        1 => f64::from_bits(random.any()),
        2 => edge(random) as f64,
        _ => random.below(5) as f64 - 2.0,
    }
}

/// Bytes of few letters, now and then a zero, a byte that is no UTF-8, or an empty piece.
static LETTERS: [u8; 1024] = letters();

const fn letters() -> [u8; 1024] {
    const CHOICE: &[u8; 16] = b"aaabbbaabbab*c\0\xFF";
    let mut bytes = [0; 1024];
    let (mut state, mut at) = (0x2545_F491_u32, 0);
    while at < bytes.len() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes[at] = CHOICE[(state >> 28) as usize];
        at += 1;
    }
    bytes
}

/// A piece of [`LETTERS`], mostly a short one.
fn piece(random: &mut RandomNumbers) -> &'static [u8] {
    let count = match random.below(16) {
        0 => random.below(140),
        1..=4 => random.below(24),
        _ => random.below(4),
    };
    let start = random.below(LETTERS.len() - count);
    &LETTERS[start..start + count]
}

/// Where a text lies behind a pointer.
fn address(text: &'static [u8]) -> u64 {
    text.as_ptr() as u64
}
