//! Words of definitions. The C header `kymo/kymo.h` has the same ones; a test compares them.

/// An unsigned integer of 8 bits.
pub const U8: &str = "u8";
/// An unsigned integer of 16 bits.
pub const U16: &str = "u16";
/// An unsigned integer of 32 bits.
pub const U32: &str = "u32";
/// An unsigned integer of 64 bits.
pub const U64: &str = "u64";
/// A signed integer of 8 bits.
pub const I8: &str = "i8";
/// A signed integer of 16 bits.
pub const I16: &str = "i16";
/// A signed integer of 32 bits.
pub const I32: &str = "i32";
/// A signed integer of 64 bits.
pub const I64: &str = "i64";
/// An unsigned integer of 8 bits, shown in hexadecimal.
pub const X8: &str = "x8";
/// An unsigned integer of 16 bits, shown in hexadecimal.
pub const X16: &str = "x16";
/// An unsigned integer of 32 bits, shown in hexadecimal.
pub const X32: &str = "x32";
/// An unsigned integer of 64 bits, shown in hexadecimal.
pub const X64: &str = "x64";
/// An address of 64 bits.
pub const POINTER: &str = "pointer";
/// A real number of 32 bits.
pub const F32: &str = "f32";
/// A real number of 64 bits.
pub const F64: &str = "f64";
/// A byte that is 0 or 1.
pub const BOOL: &str = "bool";
/// Text in UTF-8 behind its length.
pub const TEXT: &str = "text";
/// So many elements: `array 3 u8`.
pub const ARRAY: &str = "array";
/// Elements behind their count: `sequence u8`.
pub const SEQUENCE: &str = "sequence";
/// An integer whose values have names: `enum u8(idle=0, busy)`.
pub const ENUM: &str = "enum";
