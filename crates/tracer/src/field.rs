//! Field types: their text in definitions, their form in memory for filters, and their recorded
//! bytes.
//!
//! ```text
//! value ──argument──> what lies in the structure that filters look at, as in C
//!   └─────put───────> bytes in the lane: packed, texts and sequences behind their lengths
//! ```

#![allow(unsafe_code, reason = "arguments lie in memory as those of C do")]

use kymo_schema::word;

use crate::{FIELD_BYTES_MAX, Write};

/// Part of a definition's text.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Literal text.
    Text(&'static str),
    /// A number in decimal digits.
    Number(i128),
}

/// A name as it is without the `r#` of a keyword.
#[must_use]
pub const fn plain(name: &'static str) -> &'static str {
    let bytes = name.as_bytes();
    if bytes.len() > 2 && bytes[0] == b'r' && bytes[1] == b'#' { name.split_at(2).1 } else { name }
}

/// The label of a value: its text, if the program gives one, otherwise its name behind that.
#[must_use]
pub const fn label(texts: &[&'static str]) -> &'static str {
    plain(texts[0])
}

/// Length of the parts' text in bytes.
#[must_use]
pub const fn text_bytes(lines: &[&[Part]]) -> usize {
    let mut bytes = 0;
    let mut line = 0;
    while line < lines.len() {
        let mut part = 0;
        while part < lines[line].len() {
            bytes += match lines[line][part] {
                Part::Text(text) => text.len(),
                Part::Number(number) => digits(number),
            };
            part += 1;
        }
        line += 1;
    }
    bytes
}

/// Text of the parts, which has `BYTES` bytes.
#[must_use]
pub const fn text<const BYTES: usize>(lines: &[&[Part]]) -> [u8; BYTES] {
    let mut text = [0; BYTES];
    let mut at = 0;
    let mut line = 0;
    while line < lines.len() {
        let mut part = 0;
        while part < lines[line].len() {
            match lines[line][part] {
                Part::Text(more) => {
                    let more = more.as_bytes();
                    let mut byte = 0;
                    while byte < more.len() {
                        text[at + byte] = more[byte];
                        byte += 1;
                    }
                    at += more.len();
                }
                Part::Number(number) => {
                    let end = at + digits(number);
                    let mut rest = number.unsigned_abs();
                    let mut place = end;
                    while place > at {
                        place -= 1;
                        text[place] = b'0' + (rest % 10) as u8;
                        rest /= 10;
                    }
                    if number < 0 {
                        text[at] = b'-';
                    }
                    at = end;
                }
            }
            part += 1;
        }
        line += 1;
    }
    text
}

const fn digits(number: i128) -> usize {
    let mut rest = number.unsigned_abs() / 10;
    let mut digits = if number < 0 { 2 } else { 1 };
    while rest > 0 {
        rest /= 10;
        digits += 1;
    }
    digits
}

/// A type that an event can have as a field.
pub trait Field {
    /// The type's name in definitions.
    const TYPE: &'static [Part];
    /// The form that filters see: the member of the corresponding C structure.
    type Argument: Copy;

    /// The value that filters see.
    fn argument(&self) -> Self::Argument;

    /// Number of variable bytes of the value; [`Self::FIXED`] is the number of fixed ones.
    #[inline]
    fn varying(&self) -> u64 {
        0
    }

    /// Number of bytes that every value of the type has.
    const FIXED: u64;

    /// The number of variable bytes is a multiple of this.
    const PIECE: u64 = 1;

    /// Writes the value, with `varying` of its variable bytes.
    fn put(&self, write: &mut Write, varying: u64);
}

/// A text or sequence as filters see it: its address, and its length in bytes or elements.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Behind {
    address: *const u8,
    length: u64,
}

/// A field type of known size, whose recorded bytes are those in memory.
pub trait Scalar: Copy + Sized {
    /// The type's name in definitions.
    const NAME: &'static str;
}

macro_rules! scalars {
    ($($type:ty: $name:expr;)*) => {$(
        impl Scalar for $type {
            const NAME: &'static str = $name;
        }

        impl Field for $type {
            const TYPE: &'static [Part] = &[Part::Text($name)];
            const FIXED: u64 = size_of::<Self>() as u64;
            type Argument = Self;

            #[inline]
            fn argument(&self) -> Self {
                *self
            }

            #[inline]
            fn put(&self, write: &mut Write, _: u64) {
                write.put(bytes_of(core::slice::from_ref(self)));
            }
        }
    )*};
}

scalars! {
    u8: word::U8; u16: word::U16; u32: word::U32; u64: word::U64;
    i8: word::I8; i16: word::I16; i32: word::I32; i64: word::I64;
    f32: word::F32; f64: word::F64; bool: word::BOOL;
    usize: word::U64; isize: word::I64;
    Hex<u8>: word::X8; Hex<u16>: word::X16; Hex<u32>: word::X32; Hex<u64>: word::X64;
}

/// A number that is displayed in hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Hex<T>(pub T);

/// Bytes of values without padding; all scalars have none.
#[inline]
fn bytes_of<T: Scalar>(values: &[T]) -> &[u8] {
    // Safety: all scalars are plain numbers, without padding.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// An address.
impl<T> Field for *const T {
    const TYPE: &'static [Part] = &[Part::Text(word::POINTER)];
    const FIXED: u64 = 8;
    type Argument = u64;

    #[inline]
    fn argument(&self) -> u64 {
        *self as usize as u64
    }

    #[inline]
    fn put(&self, write: &mut Write, _: u64) {
        write.put(&self.argument().to_le_bytes());
    }
}

/// Number of bytes before the first zero, where readers end a text: filters have to see the same
/// text as they do.
#[inline]
fn before_zero(text: &[u8]) -> u64 {
    // Of longer texts, no more than this is recorded.
    let text = &text[..text.len().min(FIELD_BYTES_MAX as usize)];
    zero_in(text).unwrap_or(text.len()) as u64
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn zero_in(text: &[u8]) -> Option<usize> {
    // Safety: the text has that many bytes.
    let zero = unsafe { libc::memchr(text.as_ptr().cast(), 0, text.len()) };
    (!zero.is_null()).then(|| zero.addr() - text.as_ptr().addr())
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn zero_in(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| *byte == 0)
}

/// A text, up to its first zero byte.
impl Field for &str {
    const TYPE: &'static [Part] = &[Part::Text(word::TEXT)];
    const FIXED: u64 = 2;
    type Argument = Behind;

    #[inline]
    fn argument(&self) -> Behind {
        Behind { address: self.as_ptr(), length: before_zero(self.as_bytes()) }
    }

    #[inline]
    fn varying(&self) -> u64 {
        before_zero(self.as_bytes())
    }

    #[inline]
    fn put(&self, write: &mut Write, varying: u64) {
        write.put(&(varying as u16).to_le_bytes());
        write.put(&self.as_bytes()[..varying as usize]);
    }
}

/// A sequence. Readers interpret sequences of bytes as they like.
impl<T: Scalar> Field for &[T] {
    const TYPE: &'static [Part] = &[Part::Text(word::SEQUENCE), Part::Text(" "), Part::Text(T::NAME)];
    const FIXED: u64 = 2;
    const PIECE: u64 = size_of::<T>() as u64;
    type Argument = Behind;

    #[inline]
    fn argument(&self) -> Behind {
        Behind { address: self.as_ptr().cast(), length: self.len() as u64 }
    }

    #[inline]
    fn varying(&self) -> u64 {
        size_of_val(*self) as u64
    }

    #[inline]
    fn put(&self, write: &mut Write, varying: u64) {
        let count = varying as usize / size_of::<T>();
        write.put(&(count as u16).to_le_bytes());
        write.put(bytes_of(&self[..count]));
    }
}

/// An array.
impl<T: Scalar, const COUNT: usize> Field for [T; COUNT] {
    const TYPE: &'static [Part] =
        &[Part::Text(word::ARRAY), Part::Text(" "), Part::Number(COUNT as i128), Part::Text(" "), Part::Text(T::NAME)];
    const FIXED: u64 = size_of::<Self>() as u64;
    type Argument = *const u8;

    #[inline]
    fn argument(&self) -> *const u8 {
        self.as_ptr().cast()
    }

    #[inline]
    fn put(&self, write: &mut Write, _: u64) {
        write.put(bytes_of(self));
    }
}

/// Limits the variable bytes of each field so that an event is not too long: cuts the longest ones.
/// Returns whether it cut any.
#[cold]
#[inline(never)]
#[must_use]
pub fn cut(varying: &mut [u64], pieces: &[u64], fixed: u64) -> bool {
    let room = FIELD_BYTES_MAX.saturating_sub(fixed);
    let fits = |most: u64| varying.iter().map(|bytes| (*bytes).min(most)).sum::<u64>() <= room;
    let (mut low, mut high) = (0, FIELD_BYTES_MAX);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    let mut is_cut = false;
    for (bytes, piece) in varying.iter_mut().zip(pieces) {
        if *bytes > low {
            *bytes = low - low % piece;
            is_cut = true;
        }
    }
    is_cut
}

/// Marks a branch as unlikely.
#[cold]
#[inline(always)]
pub fn rarely() {}
