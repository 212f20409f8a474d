//! Numbers in text, eight digits at once.
//!
//! ```text
//! bytes      '1' '6' '3' '0' ' ' '2' '6' '5'      a word, the first byte lowest
//! digits     80  80  80  80   0   .   .   .       4 before the first byte that is none
//! aligned     0   0   0   0   1   6   3   0       the others pushed out: neighbors are put together, three times
//! ```

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = LOW << 7;

/// A decimal number of 1 to `digits_max` digits, at most 19, and the place behind it.
#[inline]
pub(super) fn decimal(bytes: &[u8], start: usize, digits_max: usize) -> Option<(u64, usize)> {
    let (mut number, mut at) = (0_u64, start);
    while let Some(word) = word_at(bytes, at) {
        // Of bytes behind the first that is none, carries may be wrong.
        let values = word.wrapping_sub(LOW * u64::from(b'0'));
        let others = (values | word.wrapping_add(LOW * (0x80 - u64::from(b'9') - 1))) & HIGH;
        let count = (others.trailing_zeros() / 8) as usize;
        if count == 0 {
            break;
        }
        let aligned = values << (64 - 8 * count);
        let pairs = aligned.wrapping_mul(10).wrapping_add(aligned >> 8) & 0x00FF_00FF_00FF_00FF;
        let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
        let eight = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF;
        number = number.wrapping_mul(POWERS[count]).wrapping_add(eight);
        at += count;
        if count < 8 {
            return (at - start <= digits_max).then_some((number, at));
        }
        if at - start > digits_max {
            return None;
        }
    }
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (at > start && at - start <= digits_max).then_some((number, at))
}

const POWERS: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A hexadecimal number of 1 to 16 digits, and the place behind it.
#[inline]
pub(super) fn hexadecimal(bytes: &[u8], start: usize) -> Option<(u64, usize)> {
    let (mut number, mut at) = (0_u64, start);
    while let Some(word) = word_at(bytes, at).filter(|word| word & HIGH == 0) {
        // Where all bytes are below 128, nothing carries: the highest bit of each says whether it is at least `from`.
        let at_least = |word: u64, from: u8| (word | HIGH).wrapping_sub(LOW * u64::from(from)) & HIGH;
        let small = word | (LOW * 0x20);
        let letters = at_least(small, b'a') & !at_least(small, b'g');
        let digits = letters | at_least(word, b'0') & !at_least(word, b'9' + 1);
        let count = ((!digits & HIGH).trailing_zeros() / 8) as usize;
        if count == 0 {
            break;
        }
        let values = (word & (LOW * 0x0F)).wrapping_add((letters >> 7) * 9);
        let aligned = values << (64 - 8 * count);
        let pairs = ((aligned << 4) | (aligned >> 8)) & 0x00FF_00FF_00FF_00FF;
        let fours = ((pairs << 8) | (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
        let eight = ((fours << 16) | (fours >> 32)) & 0xFFFF_FFFF;
        number = (number << (4 * count)) | eight;
        at += count;
        if count < 8 {
            return (at - start <= 16).then_some((number, at));
        }
        if at - start > 16 {
            return None;
        }
    }
    while let Some(digit) = bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16)) {
        number = (number << 4) | u64::from(digit);
        at += 1;
    }
    (at > start && at - start <= 16).then_some((number, at))
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|word| u64::from_le_bytes(word.try_into().expect("it has eight bytes")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, digit by digit.
    fn slowly(bytes: &[u8], start: usize, base: u32, most: usize) -> Option<(u64, usize)> {
        let digits = bytes[start.min(bytes.len())..].iter().map_while(|byte| char::from(*byte).to_digit(base));
        let digits: Vec<u32> = digits.collect();
        let number = digits
            .iter()
            .fold(0_u64, |number, digit| number.wrapping_mul(u64::from(base)).wrapping_add(u64::from(*digit)));
        (1..=most).contains(&digits.len()).then_some((number, start + digits.len()))
    }

    fn hold(bytes: &[u8], start: usize) {
        for most in [1, 4, 8, 19] {
            assert_eq!(decimal(bytes, start, most), slowly(bytes, start, 10, most), "{bytes:?} {start} {most}");
        }
        assert_eq!(hexadecimal(bytes, start), slowly(bytes, start, 16, 16), "{bytes:?} {start}");
    }

    #[test]
    fn every_byte_ends_a_number_or_goes_on() {
        for byte in 0..=255 {
            for before in 0..9 {
                let bytes = [&vec![b'7'; before][..], &[byte], b"1234567890abcdef"].concat();
                (0..bytes.len() + 1).for_each(|start| hold(&bytes, start));
            }
        }
    }

    proptest! {
        #[test]
        fn any_text(bytes in prop::collection::vec(prop_oneof![4 => b'0'..=b'9', 2 => b'a'..=b'g', 1 => b'A'..=b'G', 1 => any::<u8>()], 0..40), start in 0_usize..4) {
            hold(&bytes, start);
        }
    }
}
