//! The bytes that each `Emit` writes. Machine code calls these very functions.

use std::borrow::Cow;

use crate::bits::in_range;
use crate::general::general;
use crate::style::{BytesStyle, Encoding, IntegerStyle, LabelStyle, RangeLabels, RealStyle, TextStyle};

/// Writes an integer.
pub fn integer(out: &mut Vec<u8>, value: u64, signed: bool, style: IntegerStyle) {
    match style {
        IntegerStyle::Decimal if signed => decimal_signed(out, value as i64),
        IntegerStyle::Decimal => decimal(out, value),
        IntegerStyle::Grouped => grouped(out, value, signed, &DigitGroups::DECIMAL),
        IntegerStyle::GroupedHexadecimal => grouped(out, value, signed, &DigitGroups::HEXADECIMAL),
        IntegerStyle::GroupedOctal => grouped(out, value, signed, &DigitGroups::OCTAL),
        IntegerStyle::HexadecimalUpper { bits } => hexadecimal(out, value, bits, b"0123456789ABCDEF"),
        IntegerStyle::HexadecimalLower { bits } => hexadecimal(out, value, bits, b"0123456789abcdef"),
        IntegerStyle::Octal { bits } => octal(out, value, signed, bits),
        IntegerStyle::Binary { bits } => {
            out.extend_from_slice(b"0b");
            out.extend((0..bits).rev().map(|bit| b'0' + (value >> bit & 1) as u8));
        }
        IntegerStyle::Boolean => out.extend_from_slice(if value == 0 { b"false" } else { b"true" }),
        IntegerStyle::YesNo => out.extend_from_slice(if value == 0 { b"No" } else { b"Yes" }),
    }
}

const PAIRS: &[u8; 200] = b"00010203040506070809101112131415161718192021222324252627282930313233343536373839\
40414243444546474849505152535455565758596061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Writes digits.
pub fn decimal(out: &mut Vec<u8>, value: u64) {
    let (digits, at) = decimal_digits(value);
    out.extend_from_slice(&digits[at..]);
}

/// The digits of a number, from the index that is returned on: two at a time from the back.
#[must_use]
pub fn decimal_digits(mut value: u64) -> ([u8; 20], usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    (digits, at)
}

/// Writes a sign where needed, and digits.
pub fn decimal_signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    decimal(out, value.unsigned_abs());
}

/// The nine digits of a number below 10^9.
#[must_use]
pub fn nine_digits(value: u32) -> [u8; 9] {
    let mut digits = [b'0'; 9];
    let (high, low) = (value / 10_000, value % 10_000);
    let (first, middle) = (high / 10_000, high % 10_000);
    digits[0] = b'0' + first as u8;
    for (at, four) in [(1, middle), (5, low)] {
        let (left, right) = ((four / 100) as usize * 2, (four % 100) as usize * 2);
        digits[at..at + 2].copy_from_slice(&PAIRS[left..left + 2]);
        digits[at + 2..at + 4].copy_from_slice(&PAIRS[right..right + 2]);
    }
    digits
}

/// Writes exactly `width` digits of a value that has no more.
pub fn decimal_padded(out: &mut Vec<u8>, mut value: u64, width: usize) {
    let start = out.len();
    out.resize(start + width, b'0');
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// How long numbers are made readable.
struct DigitGroups {
    prefix: &'static [u8],
    base: u64,
    digits: usize,
    separator: u8,
    /// Numbers up to this one stay in one piece.
    whole: u64,
}

impl DigitGroups {
    const DECIMAL: Self = Self { prefix: b"", base: 10, digits: 3, separator: b',', whole: 9999 };
    const HEXADECIMAL: Self = Self { prefix: b"0x", base: 16, digits: 4, separator: b':', whole: 0 };
    const OCTAL: Self = Self { prefix: b"0", base: 8, digits: 3, separator: b':', whole: 0 };
}

fn grouped(out: &mut Vec<u8>, value: u64, signed: bool, groups: &DigitGroups) {
    let negative = signed && (value as i64) < 0;
    let mut rest = if negative { (value as i64).unsigned_abs() } else { value };
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(groups.prefix);
    // 22 digits of an octal number and the separators between them.
    let mut text = [0; 32];
    let (mut at, mut in_group, whole) = (text.len(), 0, rest <= groups.whole);
    loop {
        if in_group == groups.digits && !whole {
            at -= 1;
            text[at] = groups.separator;
            in_group = 0;
        }
        at -= 1;
        text[at] = b"0123456789abcdef"[(rest % groups.base) as usize];
        in_group += 1;
        rest /= groups.base;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
}

fn low_bits(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

fn hexadecimal(out: &mut Vec<u8>, value: u64, bits: u8, digits: &[u8; 16]) {
    let value = low_bits(value, u32::from(bits).next_multiple_of(4));
    let count = (64 - value.leading_zeros()).div_ceil(4).max(1) as usize;
    // The last digit stands last.
    let mut written = [b'0'; 18];
    for (place, digit) in written.iter_mut().rev().take(count).enumerate() {
        *digit = digits[(value >> (place * 4) & 0xf) as usize];
    }
    let begin = written.len() - count - 2;
    written[begin + 1] = b'x';
    written[begin] = b'0';
    out.extend_from_slice(&written[begin..]);
}

fn octal(out: &mut Vec<u8>, value: u64, signed: bool, bits: u8) {
    let negative = signed && (value as i64) < 0;
    let value = if negative { low_bits(value, u32::from(bits).next_multiple_of(3)) } else { value };
    out.push(b'0');
    let count = (64 - value.leading_zeros()).div_ceil(3).max(1);
    out.extend((0..count).rev().map(|digit| b'0' + (value >> (digit * 3) & 7) as u8));
}

/// Writes a real number given by its bits.
pub fn real(out: &mut Vec<u8>, bits: u64, width: u8, style: RealStyle) {
    let value = double(bits, width);
    match style {
        RealStyle::General if value.is_finite() => general(out, value),
        RealStyle::General => special(out, value),
        RealStyle::Fixed if value.is_finite() => out.extend_from_slice(format!("{value:.6}").as_bytes()),
        RealStyle::Fixed => special(out, value),
        RealStyle::Json if !value.is_finite() => {
            out.push(b'"');
            special(out, value);
            out.push(b'"');
        }
        RealStyle::Shortest if !value.is_finite() => special(out, value),
        RealStyle::Json | RealStyle::Shortest if width == 32 => {
            out.extend_from_slice(format!("{:?}", f32::from_bits(bits as u32)).as_bytes());
        }
        RealStyle::Json | RealStyle::Shortest => out.extend_from_slice(format!("{value:?}").as_bytes()),
    }
}

/// As the C library prints infinities and NaNs.
fn special(out: &mut Vec<u8>, value: f64) {
    if value.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(if value.is_nan() { b"nan" } else { b"inf" });
}

/// A real number given by its bits: 16, 32, or else 64.
#[must_use]
pub fn double(bits: u64, width: u8) -> f64 {
    match width {
        16 => half_to_double(bits as u16),
        32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

fn half_to_double(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    };
    sign * magnitude
}

/// Writes text from a packet.
pub fn text(out: &mut Vec<u8>, bytes: &[u8], encoding: Encoding, style: TextStyle) {
    match encoding {
        Encoding::Utf8 => styled(out, bytes, style),
        _ => styled(out, to_utf8(bytes, encoding).as_bytes(), style),
    }
}

/// Text in UTF-8; U+FFFD for invalid bytes, and for a part of a code unit at the end.
#[must_use]
pub fn to_utf8(bytes: &[u8], encoding: Encoding) -> String {
    let unit16 = |convert: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|unit| convert([unit[0], unit[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    let unit32 = |convert: fn([u8; 4]) -> u32| {
        let units = bytes.chunks_exact(4).map(|unit| convert([unit[0], unit[1], unit[2], unit[3]]));
        units.map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    let (mut text, unit): (String, usize) = match encoding {
        Encoding::Utf8 => return String::from_utf8_lossy(bytes).into_owned(),
        Encoding::Utf16Be => (unit16(u16::from_be_bytes), 2),
        Encoding::Utf16Le => (unit16(u16::from_le_bytes), 2),
        Encoding::Utf32Be => (unit32(u32::from_be_bytes), 4),
        Encoding::Utf32Le => (unit32(u32::from_le_bytes), 4),
    };
    if !bytes.len().is_multiple_of(unit) {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    text
}

fn styled(out: &mut Vec<u8>, bytes: &[u8], style: TextStyle) {
    match style {
        TextStyle::Raw => out.extend_from_slice(bytes),
        TextStyle::Pretty => pretty_text(out, bytes),
        TextStyle::Json => json_text(out, &String::from_utf8_lossy(bytes)),
        TextStyle::Csv => csv_text(out, bytes),
    }
}

/// How Babeltrace escapes a byte: 0 not at all, 1 as `\xNN`, else a backslash and this byte.
const PRETTY_ESCAPES: [u8; 256] = pretty_escapes();

const fn pretty_escapes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'\\' | b'\'' | b'"' | b'?' => byte as u8,
            0x07 => b'a',
            0x08 => b'b',
            0x1b => b'e',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x0b => b'v',
            0..=0x1f | 0x7f => 1,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// Whether `pretty` escapes a byte.
#[must_use]
pub fn is_escaped(byte: u8) -> bool {
    PRETTY_ESCAPES[usize::from(byte)] != 0
}

/// Writes bytes in double quotes as Babeltrace's `pretty` does.
pub fn pretty_text(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| PRETTY_ESCAPES[usize::from(byte)] != 0) {
        out.extend_from_slice(&rest[..at]);
        pretty_escape(out, rest[at]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn pretty_escape(out: &mut Vec<u8>, byte: u8) {
    out.push(b'\\');
    match PRETTY_ESCAPES[usize::from(byte)] {
        1 => out.extend_from_slice(format!("x{byte:02x}").as_bytes()),
        escape => out.push(escape),
    }
}

/// A name as `pretty` shows it: without quotes, but control characters that would change the
/// terminal are escaped.
#[must_use]
pub fn pretty_name(name: &str) -> Cow<'_, str> {
    let is_escaped = |byte: u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t');
    if !name.bytes().any(is_escaped) {
        return Cow::Borrowed(name);
    }
    let mut out = Vec::with_capacity(name.len() + 8);
    for byte in name.bytes() {
        match byte {
            control if is_escaped(control) => pretty_escape(&mut out, control),
            other => out.push(other),
        }
    }
    Cow::Owned(String::from_utf8(out).expect("only ASCII was replaced, by ASCII"))
}

/// Writes a JSON string.
pub fn json_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for character in text.bytes() {
        match character {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', character]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => out.extend_from_slice(format!("\\u{character:04x}").as_bytes()),
            _ => out.push(character),
        }
    }
    out.push(b'"');
}

fn csv_text(out: &mut Vec<u8>, bytes: &[u8]) {
    if !bytes.iter().any(|byte| matches!(byte, b'"' | b',' | ..0x20)) {
        return out.extend_from_slice(bytes);
    }
    out.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Writes bytes as hexadecimal digits.
pub fn bytes(out: &mut Vec<u8>, bytes: &[u8], style: BytesStyle) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 && style == BytesStyle::HexadecimalSpaced {
            out.push(b' ');
        }
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
    }
}

/// Writes the labels of a value.
pub fn label(out: &mut Vec<u8>, value: u64, labels: &RangeLabels, style: LabelStyle) {
    let found: Vec<&[u8]> = matching(labels, |low, high| in_range(value, low, high, labels.signed));
    if matches!(style, LabelStyle::PrettyFlags | LabelStyle::PaintedFlags) && found.is_empty() {
        return split_into_bits(out, value, labels, style);
    }
    list(out, &found, style);
}

/// Writes the names of the bits that are set.
pub fn flags(out: &mut Vec<u8>, value: u64, labels: &RangeLabels, style: LabelStyle) {
    let is_set = |low: u64, high: u64| (low..=high.min(63)).any(|bit| value >> bit & 1 == 1);
    let found = matching(labels, is_set);
    list(out, &found, style);
}

/// Labels for which `holds`, each once, in their order.
fn matching(labels: &RangeLabels, holds: impl Fn(u64, u64) -> bool) -> Vec<&[u8]> {
    let mut found: Vec<&[u8]> = Vec::new();
    for (low, high, label) in &labels.ranges {
        if holds(*low, *high) && !found.contains(&&**label) {
            found.push(label);
        }
    }
    found
}

fn list(out: &mut Vec<u8>, labels: &[&[u8]], style: LabelStyle) {
    match (style, labels) {
        (LabelStyle::First, []) => {}
        (LabelStyle::First, [first, ..]) => out.extend_from_slice(first),
        (LabelStyle::Json, labels) => {
            out.push(b'[');
            separated(out, labels, b",", |out, label| json_text(out, &String::from_utf8_lossy(label)));
            out.push(b']');
        }
        (LabelStyle::Painted | LabelStyle::PaintedFlags, []) => {
            out.extend_from_slice(b"\x1b[1m\x1b[1m\x1b[31m<unknown>\x1b[0m");
        }
        (_, []) => out.extend_from_slice(b"<unknown>"),
        (style, [label]) => one_label(out, label, style),
        (style, labels) => {
            out.extend_from_slice(b"{ ");
            separated(out, labels, b", ", |out, label| one_label(out, label, style));
            out.extend_from_slice(b" }");
        }
    }
}

fn one_label(out: &mut Vec<u8>, label: &[u8], style: LabelStyle) {
    if !matches!(style, LabelStyle::Painted | LabelStyle::PaintedFlags) {
        return pretty_text(out, label);
    }
    out.extend_from_slice(b"\x1b[1m");
    pretty_text(out, label);
    out.extend_from_slice(b"\x1b[0m");
}

fn separated(out: &mut Vec<u8>, labels: &[&[u8]], separator: &[u8], write: impl Fn(&mut Vec<u8>, &[u8])) {
    for (index, label) in labels.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(separator);
        }
        write(out, label);
    }
}

/// A value without a label as labels of its single bits; `<unknown>` if one of them has none.
fn split_into_bits(out: &mut Vec<u8>, value: u64, labels: &RangeLabels, style: LabelStyle) {
    let mut parts: Vec<Vec<&[u8]>> = Vec::new();
    for bit in (0..64).filter(|bit| value >> bit & 1 == 1) {
        let single = 1_u64 << bit;
        parts.push(matching(labels, |low, high| low == high && low == single));
    }
    if parts.is_empty() || parts.iter().any(Vec::is_empty) {
        return list(out, &[], style);
    }
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b" | ");
        }
        list(out, part, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nine_digits_are_padded() {
        for value in [0, 1, 10, 9_999, 10_000, 123_456_789, 99_999_999, 100_000_000, 999_999_999] {
            assert_eq!(nine_digits(value), format!("{value:09}").as_bytes(), "{value}");
        }
    }

    #[test]
    fn integers_in_every_style() {
        let of = |value: u64, signed, style| written(|out| integer(out, value, signed, style));
        assert_eq!(of(u64::MAX, false, IntegerStyle::Decimal), "18446744073709551615");
        assert_eq!(of(i64::MIN as u64, true, IntegerStyle::Decimal), "-9223372036854775808");
        assert_eq!(of(100, false, IntegerStyle::Decimal), "100");
        assert_eq!(of(1_234_567, false, IntegerStyle::Grouped), "1,234,567");
        assert_eq!(of(-9999_i64 as u64, true, IntegerStyle::Grouped), "-9999");
        assert_eq!(of(-10_000_i64 as u64, true, IntegerStyle::Grouped), "-10,000");
        assert_eq!(of(-0x1_2345_i64 as u64, true, IntegerStyle::GroupedHexadecimal), "-0x1:2345");
        assert_eq!(of(u64::MAX, false, IntegerStyle::GroupedHexadecimal), "0xffff:ffff:ffff:ffff");
        assert_eq!(of(0o1234, false, IntegerStyle::GroupedOctal), "01:234");
        assert_eq!(of(-1_i64 as u64, true, IntegerStyle::HexadecimalUpper { bits: 6 }), "0xFF");
        assert_eq!(of(0, false, IntegerStyle::HexadecimalLower { bits: 8 }), "0x0");
        assert_eq!(of(8, false, IntegerStyle::Octal { bits: 8 }), "010");
        assert_eq!(of(-1_i64 as u64, true, IntegerStyle::Octal { bits: 8 }), "0777");
        assert_eq!(of(5, false, IntegerStyle::Binary { bits: 4 }), "0b0101");
    }

    #[test]
    fn reals_as_the_c_library_prints_them() {
        let of = |value: f64| written(|out| real(out, value.to_bits(), 64, RealStyle::General));
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.23457e+06"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (-2.5e-300, "-2.5e-300"),
            (999_999.5, "1e+06"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (100_000.0, "100000"),
            (5e-324, "4.94066e-324"),
            (1.0 / 3.0, "0.333333"),
        ];
        for (value, expected) in cases {
            assert_eq!(of(value), expected);
        }
        assert_eq!(written(|out| real(out, 0x3c01, 16, RealStyle::Shortest)), "1.0009765625");
        assert_eq!(written(|out| real(out, u64::from(0.1_f32.to_bits()), 32, RealStyle::Json)), "0.1");
    }

    #[test]
    fn text_is_escaped_as_each_style_demands() {
        let of = |bytes: &[u8], style| written(|out| text(out, bytes, Encoding::Utf8, style));
        assert_eq!(of(b"a\"?'\\\n\x01\x7f\xc3\xa9", TextStyle::Pretty), "\"a\\\"\\?\\'\\\\\\n\\x01\\x7f\u{e9}\"");
        assert_eq!(of(b"a\"\n\x01\xff", TextStyle::Json), "\"a\\\"\\n\\u0001\u{fffd}\"");
        assert_eq!(of(b"a,\"b\"", TextStyle::Csv), "\"a,\"\"b\"\"\"");
        let utf16 = [0xd8, 0x3d, 0xde, 0x00, 0x00, 0x41, 0xdc, 0x00];
        assert_eq!(written(|out| text(out, &utf16, Encoding::Utf16Be, TextStyle::Raw)), "\u{1f600}A\u{fffd}");
        assert_eq!(to_utf8(&utf16[..5], Encoding::Utf16Be), "\u{1f600}\u{fffd}", "half a code unit");
        assert_eq!(to_utf8(b"\0\0\0AB", Encoding::Utf32Be), "A\u{fffd}");
    }

    #[test]
    fn labels_none_one_and_several() {
        let labels = RangeLabels {
            signed: false,
            ranges: vec![
                (0, 3, (*b"low").into()),
                (2, 2, (*b"two").into()),
                (8, 8, (*b"eight").into()),
                (16, 16, (*b"x").into()),
            ],
        };
        let of = |value, style| written(|out| label(out, value, &labels, style));
        assert_eq!(of(0, LabelStyle::Pretty), "\"low\"");
        assert_eq!(of(2, LabelStyle::Pretty), "{ \"low\", \"two\" }");
        assert_eq!(of(99, LabelStyle::Pretty), "<unknown>");
        assert_eq!(of(24, LabelStyle::PrettyFlags), "\"eight\" | \"x\"");
        assert_eq!(of(2, LabelStyle::Painted), "{ \x1b[1m\"low\"\x1b[0m, \x1b[1m\"two\"\x1b[0m }");
        assert_eq!(of(99, LabelStyle::PaintedFlags), "\x1b[1m\x1b[1m\x1b[31m<unknown>\x1b[0m");
        assert_eq!(of(2, LabelStyle::Json), "[\"low\",\"two\"]");
        assert_eq!(of(8, LabelStyle::Json), "[\"eight\"]");
        assert_eq!(of(99, LabelStyle::Json), "[]");
    }
}
