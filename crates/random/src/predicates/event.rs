//! Random events for a predicate, as values and as the structure that a layout describes.

use kymo_units::ByteOrder;

use super::{LETTERS, address, edge, piece, real};
use crate::numbers::RandomNumbers;
use kymo_ir::Encoding;
use kymo_ir::predicate::{
    ArgumentLayout, Datum, Input, InputKind, InputPlace, Number, Pattern, Predicate, Test, TextExpression, ValueRange,
};

/// A value for each input; those that may be missing sometimes are.
#[must_use]
pub fn event(random: &mut RandomNumbers, predicate: &Predicate) -> Vec<Datum> {
    let likely = Likely::of(predicate);
    let input = |(number, input): (usize, &kymo_ir::predicate::InputClass)| {
        if input.optional && random.below(4) == 0 {
            return Datum::Missing;
        }
        match input.kind {
            InputKind::Integer { .. } => {
                let range = predicate.range(&Number::Input(Input(number as u16)));
                Datum::Number(likely.integer(random, range) as u64)
            }
            InputKind::Real => Datum::Number(likely.real(random).to_bits()),
            InputKind::Text(encoding) => Datum::Text(encoded(&likely.text(random), encoding).into()),
        }
    };
    predicate.inputs.iter().enumerate().map(input).collect()
}

/// The structure of one event: an input that has a place is there.
#[must_use]
pub fn arguments(random: &mut RandomNumbers, predicate: &Predicate, layout: &ArgumentLayout) -> Vec<u8> {
    let likely = Likely::of(predicate);
    let mut bytes = random.bytes(layout.size as usize);
    for (number, place) in layout.places.iter().enumerate() {
        match *place {
            InputPlace::Missing => {}
            InputPlace::Integer { offset, bytes: count, order } => {
                let range = predicate.range(&Number::Input(Input(number as u16)));
                let value = likely.integer(random, range) as u64;
                put_integer(&mut bytes[offset as usize..][..usize::from(count)], value, order);
            }
            InputPlace::Real { offset, bytes: 4 } => {
                put(&mut bytes, offset, &(likely.real(random) as f32).to_ne_bytes());
            }
            InputPlace::Real { offset, .. } => put(&mut bytes, offset, &likely.real(random).to_ne_bytes()),
            InputPlace::Inline { offset, capacity } => {
                let encoding = encoding(predicate, number);
                let mut text = encoded(&likely.text(random), encoding);
                text.push(0);
                text.truncate(capacity as usize);
                put(&mut bytes, offset, &text);
            }
            InputPlace::Pointer { offset } => {
                let text = likely.piece(random);
                put(&mut bytes, offset, &address(text).to_ne_bytes());
                put(&mut bytes, offset + 8, &(text.len() as u64).to_ne_bytes());
            }
        }
    }
    bytes
}

/// The inputs of an event in a structure. Text behind a pointer must be one that [`arguments`] wrote.
///
/// # Panics
///
/// If the structure is shorter than its layout, or a pointer leads elsewhere.
#[must_use]
pub fn data(predicate: &Predicate, layout: &ArgumentLayout, arguments: &[u8]) -> Vec<Datum> {
    let datum = |(number, place): (usize, &InputPlace)| match *place {
        InputPlace::Missing => Datum::Missing,
        InputPlace::Integer { offset, bytes, order } => {
            let signed = matches!(predicate.inputs[number].kind, InputKind::Integer { signed: true, .. });
            Datum::Number(integer(&arguments[offset as usize..][..usize::from(bytes)], signed, order))
        }
        InputPlace::Real { offset, bytes: 4 } => {
            let bytes = &arguments[offset as usize..][..4];
            let single = f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            Datum::Number(f64::from(single).to_bits())
        }
        InputPlace::Real { offset, .. } => Datum::Number(word(arguments, offset)),
        InputPlace::Inline { offset, capacity } => {
            let bytes = &arguments[offset as usize..][..capacity as usize];
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            Datum::Text(bytes[..end].into())
        }
        InputPlace::Pointer { offset } => {
            let start = word(arguments, offset) - address(&LETTERS);
            Datum::Text(LETTERS[start as usize..][..word(arguments, offset + 8) as usize].into())
        }
    };
    layout.places.iter().enumerate().map(datum).collect()
}

fn encoding(predicate: &Predicate, number: usize) -> Encoding {
    match predicate.inputs[number].kind {
        InputKind::Text(encoding) => encoding,
        InputKind::Integer { .. } | InputKind::Real => Encoding::Utf8,
    }
}

fn put(bytes: &mut [u8], offset: u32, value: &[u8]) {
    bytes[offset as usize..][..value.len()].copy_from_slice(value);
}

fn put_integer(to: &mut [u8], value: u64, order: ByteOrder) {
    let little = value.to_le_bytes();
    to.copy_from_slice(&little[..to.len()]);
    if order == ByteOrder::Big {
        to.reverse();
    }
}

fn integer(bytes: &[u8], signed: bool, order: ByteOrder) -> u64 {
    let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = match order {
        ByteOrder::Big => bytes.iter().fold(0, join),
        ByteOrder::Little => bytes.iter().rev().fold(0, join),
    };
    let unused = 64 - 8 * bytes.len() as u32;
    if signed { ((value << unused) as i64 >> unused) as u64 } else { value }
}

fn word(bytes: &[u8], offset: u32) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset as usize..][..8]);
    u64::from_ne_bytes(word)
}

/// The text in an encoding; each byte becomes a code unit, so that it is sometimes no text.
fn encoded(text: &[u8], encoding: Encoding) -> Vec<u8> {
    let unit = |byte: &u8| match encoding {
        Encoding::Utf8 => vec![*byte],
        Encoding::Utf16Le => u16::from(*byte).to_le_bytes().to_vec(),
        Encoding::Utf16Be => u16::from(*byte).to_be_bytes().to_vec(),
        Encoding::Utf32Le => u32::from(*byte).to_le_bytes().to_vec(),
        Encoding::Utf32Be => u32::from(*byte).to_be_bytes().to_vec(),
    };
    text.iter().flat_map(unit).collect()
}

/// The constants of a predicate: values beside them decide tests.
#[derive(Default)]
struct Likely {
    integers: Vec<i128>,
    reals: Vec<f64>,
    texts: Vec<Vec<u8>>,
}

impl Likely {
    fn of(predicate: &Predicate) -> Self {
        let mut likely = Self::default();
        likely.test(&predicate.root);
        likely
    }

    fn test(&mut self, test: &Test) {
        match test {
            Test::Constant(_) | Test::Has(_) => {}
            Test::Not(test) => self.test(test),
            Test::All(tests) | Test::Any(tests) => tests.iter().for_each(|test| self.test(test)),
            Test::Compare { left, right, .. } => {
                self.number(left);
                self.number(right);
            }
            Test::Among { value, ranges } => {
                self.number(value);
                self.integers.extend(ranges.iter().flat_map(|range| [range.0, range.1]));
            }
            Test::CompareText { left, right, .. } => {
                for text in [left, right] {
                    self.literal(text);
                }
            }
            Test::Matches { text, pattern } => {
                self.literal(text);
                match pattern {
                    Pattern::Exactly(bytes) | Pattern::Prefix(bytes) => self.texts.push(bytes.to_vec()),
                    Pattern::Glob(parts) => {
                        self.texts.push(parts.concat());
                        self.texts.push(parts.join(&b'a'));
                    }
                    Pattern::Regex(_) => {}
                }
            }
        }
    }

    fn literal(&mut self, text: &TextExpression) {
        if let TextExpression::Literal(bytes) = text {
            self.texts.push(bytes.to_vec());
        }
    }

    fn number(&mut self, number: &Number) {
        match number {
            Number::Integer(value) => self.integers.push(*value),
            Number::Real(value) => self.reals.push(value.value()),
            Number::Input(_) => {}
            Number::Truth(test) => self.test(test),
            Number::Arithmetic { left, right, .. } | Number::Bits { left, right, .. } => {
                self.number(left);
                self.number(right);
            }
            Number::Complement(value) | Number::Scaled { value, .. } => self.number(value),
        }
    }

    /// One of a range, if need be by clamping values that are too high or too low.
    fn integer(&self, random: &mut RandomNumbers, range: ValueRange) -> i128 {
        let value = match self.integers.get(random.below(self.integers.len())) {
            Some(constant) if random.below(2) == 0 => constant + random.below(3) as i128 - 1,
            _ => edge(random),
        };
        if random.below(2) == 0 {
            return value.clamp(range.lowest, range.highest);
        }
        range.lowest + (value - range.lowest).rem_euclid(range.highest - range.lowest + 1)
    }

    fn real(&self, random: &mut RandomNumbers) -> f64 {
        let constant = self.reals.get(random.below(self.reals.len())).filter(|_| random.below(2) == 0);
        constant.copied().unwrap_or_else(|| real(random))
    }

    fn text(&self, random: &mut RandomNumbers) -> Vec<u8> {
        let Some(likely) = self.texts.get(random.below(self.texts.len())) else { return piece(random).to_vec() };
        let mut text = likely.clone();
        match random.below(6) {
            0 => text.extend_from_slice(piece(random)),
            1 => text.truncate(random.below(text.len() + 1)),
            2 if !text.is_empty() => {
                let at = random.below(text.len());
                text[at] ^= 1;
            }
            3 => return piece(random).to_vec(),
            _ => {}
        }
        text
    }

    /// A text that lies in memory for good, if there is one that begins as a likely one does.
    fn piece(&self, random: &mut RandomNumbers) -> &'static [u8] {
        let likely = self.text(random);
        match memchr::memmem::find(&LETTERS, &likely) {
            Some(start) => {
                let count = likely.len() + if random.below(4) == 0 { random.below(4) } else { 0 };
                &LETTERS[start..(start + count).min(LETTERS.len())]
            }
            None => piece(random),
        }
    }
}
