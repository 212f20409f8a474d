//! C's `%g`: six significant digits, correctly rounded, trailing zeros gone.
//!
//! ```text
//! value = mantissa * 2^-shift          six = round(value * 10^(5 - exponent)), 100000..=999999
//! ```
//!
//! Between 1e-5 and 1e15 the product fits into 128 bits and rounding is exact; beyond, the standard library does it.

/// Writes a finite number.
pub(crate) fn general(out: &mut Vec<u8>, value: f64) {
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    if value == 0.0 {
        return out.push(b'0');
    }
    let (six, exponent) = if (1e-5..1e15).contains(&value) { quick(value) } else { slow(value) };
    write(out, six, exponent);
}

/// Six digits and the decimal exponent of the first, for 1e-5 <= value < 1e15.
fn quick(value: f64) -> (u32, i32) {
    let bits = value.to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let shift = 1075 - (bits >> 52) as u32;
    let (floor, rest, exponent) =
        if value < 1e6 { multiplied(mantissa, shift, value) } else { divided(mantissa, shift) };
    rounded(floor + u32::from(rest.is_gt() || rest.is_eq() && floor % 2 == 1), exponent)
}

/// The six digits below, the rest compared with a half, and the exponent; for values below a
/// million.
fn multiplied(mantissa: u64, shift: u32, value: f64) -> (u32, std::cmp::Ordering, i32) {
    const POWERS: [f64; 6] = [1e5, 1e4, 1e3, 1e2, 1e1, 1e0];
    let mut scale = POWERS.iter().take_while(|power| value < **power).count() as u32;
    loop {
        let product = u128::from(mantissa) * u128::from(10_u64.pow(scale));
        let floor = (product >> shift) as u32;
        if floor >= 100_000 {
            let rest = product & ((1 << shift) - 1);
            return (floor, rest.cmp(&(1 << (shift - 1))), 5 - scale as i32);
        }
        scale += 1;
    }
}

/// As [`multiplied`], for values from a million to 1e15, with a fraction that only breaks ties.
fn divided(mantissa: u64, shift: u32) -> (u32, std::cmp::Ordering, i32) {
    let whole = mantissa >> shift;
    let has_fraction = mantissa & ((1 << shift) - 1) != 0;
    let mut power = 10;
    let mut exponent = 6;
    while whole / power >= 1_000_000 {
        power *= 10;
        exponent += 1;
    }
    let rest = (whole % power * 2).cmp(&power);
    let rest = if rest.is_eq() && has_fraction { std::cmp::Ordering::Greater } else { rest };
    ((whole / power) as u32, rest, exponent)
}

fn rounded(six: u32, exponent: i32) -> (u32, i32) {
    if six == 1_000_000 { (100_000, exponent + 1) } else { (six, exponent) }
}

fn slow(value: f64) -> (u32, i32) {
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let six = digits.bytes().filter(u8::is_ascii_digit).fold(0, |six, digit| six * 10 + u32::from(digit - b'0'));
    (six, exponent.parse().expect("the exponent is a number"))
}

fn write(out: &mut Vec<u8>, six: u32, exponent: i32) {
    let mut digits = [0; 6];
    let mut rest = six;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let used = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    match exponent {
        0..6 => {
            let whole = exponent as usize + 1;
            out.extend_from_slice(&digits[..whole]);
            if used > whole {
                out.push(b'.');
                out.extend_from_slice(&digits[whole..used]);
            }
        }
        -4..0 => {
            out.extend_from_slice(&b"0.000"[..1 + exponent.unsigned_abs() as usize]);
            out.extend_from_slice(&digits[..used]);
        }
        _ => {
            out.push(digits[0]);
            if used > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits[1..used]);
            }
            let sign = if exponent < 0 { '-' } else { '+' };
            out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{general, quick, slow};

    fn of(value: f64) -> String {
        let mut out = Vec::new();
        general(&mut out, value);
        String::from_utf8(out).expect("digits are ASCII")
    }

    #[test]
    fn as_the_c_library_prints() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (2222.0, "2222"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.23457e+06"),
            (0.0001, "0.0001"),
            (0.000_123_456_5, "0.000123457"),
            (0.000_01, "1e-05"),
            (-2.5e-300, "-2.5e-300"),
            (999_999.5, "1e+06"),
            (0.999_999_5, "1"),
            (99_999.95, "99999.9"),
            (100_000.0, "100000"),
            (100_000.5, "100000"),
            (100_001.5, "100002"),
            (1_000_005.0, "1e+06"),
            (1_000_015.0, "1.00002e+06"),
            (1_000_005.000_001, "1.00001e+06"),
            (999_999_500_000_000.0, "1e+15"),
            (5e-324, "4.94066e-324"),
            (1.0 / 3.0, "0.333333"),
        ];
        for (value, expected) in cases {
            assert_eq!(of(value), expected);
        }
    }

    /// The standard library rounds correctly too; both must agree wherever the quick way is taken.
    #[test]
    fn quick_as_slow() {
        let mut seed = 1_u64;
        for turn in 0..200_000_u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let fraction = (seed >> 11) as f64 / (1_u64 << 53) as f64;
            let value = fraction * 10_f64.powi((turn % 21) as i32 - 5);
            // Every other value has few digits, where ties are frequent.
            let value = if turn % 2 == 0 { value } else { (value * 128.0).round() / 128.0 };
            if (1e-5..1e15).contains(&value) {
                assert_eq!(quick(value), slow(value), "{value:e}");
            }
        }
    }
}
