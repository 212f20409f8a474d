//! Texts of `bpf_printk` and `bpf_snprintf`: the conversions that Linux has for programs, with numbers of 64 bits as values.

/// Values of a text at most, as in Linux.
pub(super) const VALUES_MAX: usize = 12;
/// Bytes of a text at most.
pub(super) const TEXT_MAX: usize = 1024;
/// Characters of a number's width at most.
const WIDTH_MAX: usize = 64;

/// A conversion: `%-08llx`, `%+d`.
#[derive(Clone, Copy, Debug, Default)]
struct FormatConversion {
    is_left: bool,
    has_zeros: bool,
    /// The character in front of numbers with a sign that are not negative.
    sign: Option<char>,
    width: usize,
    /// Bits of an integer.
    bits: u32,
    letter: u8,
}

/// The text of a format and values; texts that these point to are read by `text`. `None`: the format has an unknown conversion, or
/// more of them than there are values.
pub(super) fn formatted(
    format: &[u8],
    values: &[u64],
    text: impl Fn(u64, usize) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut rest = format.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut values = values.iter().copied();
    let mut out = Vec::new();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            out.push(byte);
        } else if let Some(behind) = rest.strip_prefix(b"%") {
            out.push(b'%');
            rest = behind;
        } else {
            let (conversion, behind) = conversion(rest)?;
            rest = behind;
            let value = values.next()?;
            match conversion.letter {
                b's' => padded(&text(value, TEXT_MAX).unwrap_or_else(|| b"(fault)".to_vec()), conversion, &mut out),
                _ => padded(number(conversion, value).as_bytes(), conversion, &mut out),
            }
        }
        if out.len() > TEXT_MAX {
            out.truncate(TEXT_MAX);
            break;
        }
    }
    Some(out)
}

/// Reads a conversion behind its percent sign.
fn conversion(text: &[u8]) -> Option<(FormatConversion, &[u8])> {
    let mut found = FormatConversion { bits: 32, ..FormatConversion::default() };
    let mut rest = text;
    loop {
        let (&letter, behind) = rest.split_first()?;
        rest = behind;
        match letter {
            b'-' => found.is_left = true,
            b'+' => found.sign = Some('+'),
            b' ' => found.sign = found.sign.or(Some(' ')),
            b'0' if found.width == 0 => found.has_zeros = true,
            b'0'..=b'9' => found.width = (found.width * 10 + usize::from(letter - b'0')).min(WIDTH_MAX),
            b'l' | b'z' => found.bits = 64,
            b'h' => found.bits /= 2,
            b'd' | b'i' | b'u' | b'x' | b'X' | b'c' | b's' => {
                found.letter = letter;
                return Some((found, rest));
            }
            b'p' => {
                // Kinds of pointers (`%pK`, `%px`) are addresses here.
                let more = rest.iter().take_while(|letter| letter.is_ascii_alphanumeric()).count();
                found = FormatConversion { letter: b'p', bits: 64, ..found };
                return Some((found, &rest[more..]));
            }
            _ => return None,
        }
    }
}

fn number(conversion: FormatConversion, value: u64) -> String {
    let above = 64 - conversion.bits.max(8);
    let (unsigned, signed) = (value << above >> above, (value << above) as i64 >> above);
    match conversion.letter {
        b'd' | b'i' => match conversion.sign.filter(|_| signed >= 0) {
            Some(sign) => format!("{sign}{signed}"),
            None => signed.to_string(),
        },
        b'x' => format!("{unsigned:x}"),
        b'X' => format!("{unsigned:X}"),
        b'p' => format!("{unsigned:#x}"),
        b'c' => char::from(value as u8).to_string(),
        _ => unsigned.to_string(),
    }
}

fn padded(text: &[u8], conversion: FormatConversion, out: &mut Vec<u8>) {
    let missing = conversion.width.saturating_sub(text.len());
    match (conversion.is_left, conversion.has_zeros && conversion.letter != b's') {
        (true, _) => {
            out.extend(text);
            out.extend(std::iter::repeat_n(b' ', missing));
        }
        (false, true) => {
            let sign = usize::from(matches!(text.first(), Some(b'-' | b'+' | b' ')));
            out.extend(&text[..sign]);
            out.extend(std::iter::repeat_n(b'0', missing));
            out.extend(&text[sign..]);
        }
        (false, false) => {
            out.extend(std::iter::repeat_n(b' ', missing));
            out.extend(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, values: &[u64], expected: Option<&str>) {
        let text = |address, limit: usize| (address == 7).then(|| b"seven"[..limit.min(5)].to_vec());
        let found = formatted(format.as_bytes(), values, text);
        assert_eq!(found.as_deref().map(String::from_utf8_lossy).as_deref(), expected);
    }

    #[test]
    fn conversions_are_those_of_linux() {
        check("%d %u %x", &[u64::MAX, u64::MAX, 255], Some("-1 4294967295 ff"));
        check("%lld %llu %llX", &[u64::MAX, u64::MAX, 255], Some("-1 18446744073709551615 FF"));
        check("[%5d|%-5d|%05d]", &[u64::MAX, 7, u64::MAX - 1], Some("[   -1|7    |-0002]"));
        check("%+d % d %+ d % 05d %+05d %+u", &[7, 8, 9, 10, u64::MAX, 3], Some("+7  8 +9  0010 -0001 3"));
        check("%s %s %8s%%", &[7, 0, 7], Some("seven (fault)    seven%"));
        check("%hhu %hu %c", &[0x1ff, 0x1_0001, 65], Some("255 1 A"));
        check("at %px.", &[0x1000], Some("at 0x1000."));
        check("up to a zero\0 byte", &[], Some("up to a zero"));
    }

    #[test]
    fn formats_that_linux_refuses_are_refused() {
        check("%d", &[], None);
        check("%f", &[1], None);
        check("%", &[1], None);
    }

    #[test]
    fn texts_have_an_end() {
        let long = "%64d".repeat(40);
        assert_eq!(formatted(long.as_bytes(), &[1; 40], |_, _| None).map(|text| text.len()), Some(TEXT_MAX));
    }
}
