//! Numbers and texts as people write them.
//!
//! ```text
//! 42  0x2A  052  0b101010  1_000  42u        integers up to 2^64 - 1
//! 1.5  .5  5.  1e2  0x1p4  1.5f              reals
//! 5ms  1.5KiB                                integers in base units, nanoseconds or bytes
//! "a*b\*c"                                   parts between stars: `a`, `b*c`
//! ```

use crate::fields::{Dimension, Unit};
use crate::problem::{FilterProblem, ProblemKind, Span};

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NumberLiteral {
    Integer(u64),
    Real(f64),
    /// In base units.
    Quantity {
        value: u64,
        dimension: Dimension,
    },
}

/// A text, cut at its stars: a plain one has one part. No two stars are neighbors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextLiteral {
    pub(crate) parts: Vec<Box<[u8]>>,
}

impl TextLiteral {
    /// The text, if it has no stars.
    pub(crate) fn plain(&self) -> Option<&[u8]> {
        if let [part] = &self.parts[..] { Some(part) } else { None }
    }

    /// Its beginning, if its only star is its end.
    pub(crate) fn prefix(&self) -> Option<&[u8]> {
        match &self.parts[..] {
            [part, end] if end.is_empty() => Some(part),
            _ => None,
        }
    }
}

impl std::fmt::Display for TextLiteral {
    /// As it may be written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("\"")?;
        for (index, part) in self.parts.iter().enumerate() {
            f.write_str(if index > 0 { "*" } else { "" })?;
            for &byte in part {
                match byte {
                    b'\\' | b'*' | b'"' => write!(f, "\\{}", char::from(byte))?,
                    b' '..=b'~' => write!(f, "{}", char::from(byte))?,
                    _ => write!(f, "\\x{byte:02x}")?,
                }
            }
        }
        f.write_str("\"")
    }
}

/// Units, their dimension, and how many base units one of them is.
const UNITS: [(&str, Dimension, u64); 20] = [
    ("ns", Dimension::Time, 1),
    ("us", Dimension::Time, 1_000),
    ("\u{B5}s", Dimension::Time, 1_000),
    ("\u{3BC}s", Dimension::Time, 1_000),
    ("ms", Dimension::Time, 1_000_000),
    ("s", Dimension::Time, 1_000_000_000),
    ("min", Dimension::Time, 60_000_000_000),
    ("h", Dimension::Time, 3_600_000_000_000),
    ("d", Dimension::Time, 86_400_000_000_000),
    ("B", Dimension::Size, 1),
    ("kB", Dimension::Size, 1_000),
    ("KB", Dimension::Size, 1_000),
    ("MB", Dimension::Size, 1_000_000),
    ("GB", Dimension::Size, 1_000_000_000),
    ("TB", Dimension::Size, 1_000_000_000_000),
    ("KiB", Dimension::Size, 1 << 10),
    ("MiB", Dimension::Size, 1 << 20),
    ("GiB", Dimension::Size, 1 << 30),
    ("TiB", Dimension::Size, 1 << 40),
    ("PiB", Dimension::Size, 1 << 50),
];

/// The unit of that name, as it stands behind numbers.
#[must_use]
pub fn unit(name: &str) -> Option<Unit> {
    let known = UNITS.iter().find(|unit| unit.0 == name);
    known.map(|&(_, dimension, multiply)| Unit { dimension, multiply, divide: 1 })
}

/// A decimal number and a unit (`3ms`, `1.5 KiB`) in the smallest unit, exact; smaller fractions are dropped. `bare` is
/// the unit of a number that has none.
#[must_use]
pub fn quantity(text: &str, dimension: Dimension, bare: Option<u64>) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, name) = (&text[..end], text[end..].trim_start());
    let each = match name {
        "" => bare?,
        name => unit(name).filter(|unit| unit.dimension == dimension)?.multiply,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.len() > 18 {
        return None;
    }
    let whole = u128::from(whole.parse::<u64>().ok()?) * u128::from(each);
    let part = fraction.parse::<u128>().ok()? * u128::from(each) / 10_u128.pow(fraction.len() as u32);
    u64::try_from(whole + part).ok()
}

/// The help text about suffixes.
const SUFFIXES: &str =
    "units are ns us ms s min h d, B kB MB GB TB KiB MiB GiB TiB PiB; suffixes are u, l, ll, and f behind reals";

/// How the digits of a number are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DigitForm {
    Decimal,
    DecimalReal,
    Hexadecimal,
    HexadecimalReal,
    Binary,
}

/// Reads the number at the start of `text`, which begins with a digit or with a dot and a digit. Returns its bytes, too.
pub(crate) fn number(text: &str, at: usize) -> Result<(NumberLiteral, usize), FilterProblem> {
    let (form, digits) = digits(text.as_bytes());
    let suffix = text[digits..].find(|next: char| !is_suffix(next)).unwrap_or(text.len() - digits);
    let literal = Spelled {
        form,
        digits: text[..digits].replace('_', ""),
        suffix: &text[digits..digits + suffix],
        written: &text[..digits + suffix],
        span: at..at + digits + suffix,
    };
    Ok((literal.value()?, digits + suffix))
}

fn is_suffix(next: char) -> bool {
    next.is_ascii_alphanumeric() || matches!(next, '_' | ':' | '\u{B5}' | '\u{3BC}')
}

/// The form of a number, and the bytes up to its suffix.
fn digits(text: &[u8]) -> (DigitForm, usize) {
    let at = |index: usize| text.get(index).copied().unwrap_or(0);
    let run = |from: usize, is_digit: fn(&u8) -> bool| {
        from + text[from.min(text.len())..].iter().take_while(|byte| is_digit(byte) || **byte == b'_').count()
    };
    let exponent = |from: usize, letter: u8| {
        let sign = usize::from(matches!(at(from + 1), b'+' | b'-'));
        let is_there = at(from) | 0x20 == letter && at(from + 1 + sign).is_ascii_digit();
        is_there.then(|| run(from + 1 + sign, u8::is_ascii_digit))
    };
    if at(0) == b'0' && at(1) | 0x20 == b'x' && (at(2).is_ascii_hexdigit() || at(2) == b'.') {
        let whole = run(2, u8::is_ascii_hexdigit);
        let part = if at(whole) == b'.' { run(whole + 1, u8::is_ascii_hexdigit) } else { whole };
        return exponent(part, b'p').map_or((DigitForm::Hexadecimal, whole), |end| (DigitForm::HexadecimalReal, end));
    }
    if at(0) == b'0' && at(1) == b'b' && matches!(at(2), b'0' | b'1') {
        return (DigitForm::Binary, run(2, |byte| matches!(byte, b'0' | b'1')));
    }
    let whole = run(0, u8::is_ascii_digit);
    let has_part = at(whole) == b'.' && at(whole + 1) != b'.';
    let part = if has_part { run(whole + 1, u8::is_ascii_digit) } else { whole };
    let end = exponent(part, b'e').unwrap_or(part);
    (if end > whole { DigitForm::DecimalReal } else { DigitForm::Decimal }, end)
}

/// A number in its pieces.
struct Spelled<'t> {
    form: DigitForm,
    /// Without underscores.
    digits: String,
    suffix: &'t str,
    written: &'t str,
    span: Span,
}

impl Spelled<'_> {
    fn problem(&self, kind: ProblemKind) -> FilterProblem {
        FilterProblem::new(self.span.clone(), kind)
    }

    fn value(&self) -> Result<NumberLiteral, FilterProblem> {
        let unit = UNITS.iter().find(|(name, ..)| *name == self.suffix);
        let is_real = matches!(self.form, DigitForm::DecimalReal | DigitForm::HexadecimalReal);
        match unit {
            Some(&(_, dimension, factor)) => self.quantity(dimension, factor),
            None if !self.suffix.is_empty() && !is_c_suffix(self.suffix, is_real) => Err(self.unknown_suffix()),
            None if is_real => self.real().map(NumberLiteral::Real),
            None => self.integer().map(NumberLiteral::Integer),
        }
    }

    fn unknown_suffix(&self) -> FilterProblem {
        let number = self.written[..self.written.len() - self.suffix.len()].to_owned();
        let problem = self.problem(ProblemKind::Suffix { number, suffix: self.suffix.to_owned() });
        match self.suffix {
            "m" => problem.help("minutes are `min`, milliseconds are `ms`"),
            _ => problem.help(SUFFIXES),
        }
    }

    fn is_octal(&self) -> bool {
        self.form == DigitForm::Decimal && self.digits.len() > 1 && self.digits.starts_with('0')
    }

    fn integer(&self) -> Result<u64, FilterProblem> {
        let (radix, digits) = match self.form {
            DigitForm::Hexadecimal => (16, &self.digits[2..]),
            DigitForm::Binary => (2, &self.digits[2..]),
            _ if self.is_octal() => (8, &self.digits[1..]),
            _ => (10, &self.digits[..]),
        };
        if radix == 8 && digits.contains(['8', '9']) {
            return Err(self.problem(ProblemKind::OctalDigit(self.written.to_owned())));
        }
        let too_high = |_| self.problem(ProblemKind::IntegerTooHigh(self.written.to_owned()));
        u64::from_str_radix(digits, radix).map_err(too_high)
    }

    fn real(&self) -> Result<f64, FilterProblem> {
        let value = match self.form {
            DigitForm::HexadecimalReal => hexadecimal_real(&self.digits[2..]),
            _ => self.digits.parse().ok(),
        };
        let too_high = || self.problem(ProblemKind::RealTooHigh(self.written.to_owned()));
        value.filter(|value| value.is_finite()).ok_or_else(too_high)
    }

    /// Exactly, in base units.
    fn quantity(&self, dimension: Dimension, factor: u64) -> Result<NumberLiteral, FilterProblem> {
        let is_decimal = matches!(self.form, DigitForm::Decimal | DigitForm::DecimalReal);
        if !is_decimal || self.is_octal() {
            return Err(self.problem(ProblemKind::UnitBehindRadix(self.written.to_owned())));
        }
        let number = self.written.to_owned();
        let base = dimension.base();
        let not_whole = || self.problem(ProblemKind::NotWhole { number: number.clone(), base });
        let too_high = || self.problem(ProblemKind::QuantityTooHigh { number: number.clone(), base });
        let (digits, power) = decimal(&self.digits).ok_or_else(too_high)?;
        let product = digits.checked_mul(u128::from(factor)).ok_or_else(too_high)?;
        let scale = 10_u128.checked_pow(power.unsigned_abs());
        let value = match (product, scale) {
            (0, _) => 0,
            (_, None) if power > 0 => return Err(too_high()),
            (_, None) => return Err(not_whole()),
            (_, Some(scale)) if power >= 0 => product.checked_mul(scale).ok_or_else(too_high)?,
            (_, Some(scale)) if product % scale != 0 => return Err(not_whole()),
            (_, Some(scale)) => product / scale,
        };
        let value = u64::try_from(value).map_err(|_| too_high())?;
        Ok(NumberLiteral::Quantity { value, dimension })
    }
}

impl Dimension {
    /// The base unit of its values.
    pub(crate) fn base(self) -> &'static str {
        match self {
            Self::Time => "nanoseconds",
            Self::Size => "bytes",
        }
    }
}

fn is_c_suffix(suffix: &str, is_real: bool) -> bool {
    let lower = suffix.to_ascii_lowercase();
    if is_real {
        return matches!(lower.as_str(), "f" | "l");
    }
    // C allows `ll` and `LL`, not `lL`.
    let is_mixed = suffix.contains('l') && suffix.contains('L');
    matches!(lower.as_str(), "u" | "l" | "ll" | "ul" | "ull" | "lu" | "llu") && !is_mixed
}

/// A decimal number as `digits * 10^power`; `None`: more digits than 128 bits hold.
fn decimal(text: &str) -> Option<(u128, i32)> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let part = part.trim_end_matches('0');
    let mut digits = 0_u128;
    for digit in whole.bytes().chain(part.bytes()) {
        digits = digits.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
    }
    let exponent: i32 = exponent.parse().unwrap_or(if exponent.starts_with('-') { -1_000_000 } else { 1_000_000 });
    Some((digits, exponent.saturating_sub(i32::try_from(part.len()).ok()?)))
}

/// `1.8p3`: sixteen digits, so that nothing is rounded twice; `None`: more.
fn hexadecimal_real(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let digits = u64::from_str_radix(digits.trim_start_matches('0'), 16).or_else(|error| {
        if digits.bytes().all(|digit| digit == b'0') && !digits.is_empty() { Ok(0) } else { Err(error) }
    });
    let exponent: i32 = exponent.parse().ok()?;
    let exponent = exponent.saturating_sub(i32::try_from(4 * part.len()).ok()?);
    Some(digits.ok()? as f64 * 2_f64.powi(exponent))
}

/// The escapes of texts, for help.
const ESCAPES: &str = "the escapes are \\\\ \\* \\\" \\' \\n \\t \\xNN \\u{...}";

/// A text between its quotes; `at` is where `raw` begins.
pub(crate) fn text(raw: &str, at: usize) -> Result<TextLiteral, FilterProblem> {
    let mut parts: Vec<Vec<u8>> = vec![Vec::new()];
    let mut offset = 0;
    let mut is_behind_star = false;
    while let Some(character) = raw[offset..].chars().next() {
        let begin = offset;
        offset += character.len_utf8();
        let is_star = character == '*';
        if is_star && !is_behind_star {
            parts.push(Vec::new());
        }
        is_behind_star = is_star || is_behind_star && matches!(character, '\n' | '\r');
        let part = parts.last_mut().expect("there is one part from the start");
        match character {
            // Line breaks are left out, as in LTTng; a text that has one is written with `\n`.
            '*' | '\n' | '\r' => {}
            '\\' => offset += escape(&raw[offset..], part, at + begin)?,
            other => part.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Ok(TextLiteral { parts: parts.into_iter().map(Vec::into_boxed_slice).collect() })
}

/// Reads an escape behind a backslash at `at`: appends its meaning, returns its bytes.
fn escape(behind: &str, part: &mut Vec<u8>, at: usize) -> Result<usize, FilterProblem> {
    let character = behind.chars().next().unwrap_or('\\');
    let problem = |kind, bytes: usize| FilterProblem::new(at..at + 1 + bytes, kind).help(ESCAPES);
    let no_digits = || problem(ProblemKind::EscapeDigits(character), 1);
    match character {
        '\\' | '*' | '"' | '\'' => part.push(character as u8),
        'n' => part.push(b'\n'),
        't' => part.push(b'\t'),
        'x' => {
            let digits = behind.get(1..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
            part.push(u8::from_str_radix(digits.ok_or_else(no_digits)?, 16).map_err(|_| no_digits())?);
            return Ok(3);
        }
        'u' => {
            let inside = behind[1..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let (digits, _) = inside.ok_or_else(no_digits)?;
            let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_number);
            let meant = code.and_then(char::from_u32).ok_or_else(no_digits)?;
            part.extend_from_slice(meant.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(3 + digits.len());
        }
        other => return Err(problem(ProblemKind::Escape(other), other.len_utf8())),
    }
    Ok(1)
}
