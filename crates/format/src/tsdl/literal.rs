//! Integers and strings as TSDL writes them.

use std::borrow::Cow;

/// The value of an integer literal; `None` if it is none or does not fit in 64 bits.
pub(crate) fn integer(literal: &str) -> Option<i128> {
    let digits = literal.trim_end_matches(['u', 'U', 'l', 'L']);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok().map(i128::from)
}

/// The value of a string literal: quotes gone, escapes resolved.
pub(crate) fn text(literal: &str) -> Cow<'_, str> {
    let body = literal.strip_prefix('L').unwrap_or(literal);
    let body = &body[1..body.len() - 1];
    if !body.contains('\\') {
        return Cow::Borrowed(body);
    }
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some((&escape, after)) = rest.split_first() else {
            break;
        };
        rest = after;
        match escape {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'a' => bytes.push(7),
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            b'v' => bytes.push(11),
            b'e' => bytes.push(27),
            b'x' => rest = number(rest, 16, 2, &mut bytes),
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                number(&[&[escape], &rest[..more]].concat(), 8, 3, &mut bytes);
                rest = &rest[more..];
            }
            other => bytes.push(other),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Takes up to `most` digits for one byte; returns the digits behind them.
fn number<'a>(digits: &'a [u8], radix: u32, most: usize, bytes: &mut Vec<u8>) -> &'a [u8] {
    let count = digits.iter().take(most).take_while(|&&byte| (byte as char).is_digit(radix)).count();
    let value = digits[..count]
        .iter()
        .fold(0, |value: u32, &byte| value * radix + (byte as char).to_digit(radix).expect("only digits were taken"));
    bytes.push(value as u8);
    &digits[count..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (literal, value) in
            [("0", 0), ("42", 42), ("0x1F", 31), ("017", 15), ("10ull", 10), ("0xFFFFFFFFFFFFFFFF", u64::MAX.into())]
        {
            assert_eq!(integer(literal), Some(value), "{literal}");
        }
        for literal in ["08", "0x", "18446744073709551616", "12ab"] {
            assert_eq!(integer(literal), None, "{literal}");
        }
    }

    #[test]
    fn strings() {
        assert_eq!(text(r#""a\n\"\x41\101b""#), "a\n\"AAb");
        assert_eq!(text(r#"L"wide""#), "wide");
    }
}
