//! Integers of 1 to 64 bits at any bit of a window.
//!
//! ```text
//! little-endian: bit i of the value is bit (p+i)%8, counted from the least significant, of byte (p+i)/8
//! big-endian:    the value is read most significant bit first, each byte from its most significant bit
//! ```
//!
//! Both are one or two wide loads and a shift, thanks to the window's slack.

use kymo_units::ByteOrder;

use crate::window::PacketWindow;

/// Reads `width` bits at `position`, zero-extended. The caller made sure that they lie before the window's end.
///
/// # Panics
///
/// If they lie outside of the window's bytes.
#[must_use]
pub fn read(window: PacketWindow<'_>, position: u64, width: u8, order: ByteOrder) -> u64 {
    let byte = (position / 8 - window.origin()) as usize;
    let shift = (position % 8) as u32;
    let bytes = &window.bytes()[byte..byte + 9];
    let word: [u8; 8] = bytes[..8].try_into().expect("eight bytes of nine");
    let width = u32::from(width);
    match order {
        ByteOrder::Little => {
            let low = u64::from_le_bytes(word) >> shift;
            // A shift by 64 in two steps: the ninth byte matters only if the value straddles it.
            let high = u64::from(bytes[8]) << (63 - shift) << 1;
            (low | high) & mask(width)
        }
        ByteOrder::Big => {
            let high = u64::from_be_bytes(word) << shift;
            let low = u64::from(bytes[8]) >> (8 - shift);
            (high | low) >> (64 - width)
        }
    }
}

/// Whether the value's highest of `width` bits is set, it is carried on to all higher ones.
#[must_use]
pub fn sign_extend(value: u64, width: u8) -> u64 {
    let unused = 64 - u32::from(width);
    ((value << unused) as i64 >> unused) as u64
}

/// The `width` low bits in the opposite order.
#[must_use]
pub fn reverse(value: u64, width: u8) -> u64 {
    value.reverse_bits() >> (64 - u32::from(width))
}

/// Whether `value` lies in the range, both ends included.
#[inline]
pub(crate) fn in_range(value: u64, lowest: u64, highest: u64, signed: bool) -> bool {
    if signed {
        (lowest as i64..=highest as i64).contains(&(value as i64))
    } else {
        (lowest..=highest).contains(&value)
    }
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(bytes: &[u8], position: u64, width: u8, order: ByteOrder) -> u64 {
        let bit = |at: u64| {
            let byte = bytes[(at / 8) as usize];
            let from_low = match order {
                ByteOrder::Little => at % 8,
                ByteOrder::Big => 7 - at % 8,
            };
            u64::from(byte >> from_low & 1)
        };
        (0..u64::from(width)).fold(0, |value, index| match order {
            ByteOrder::Little => value | bit(position + index) << index,
            ByteOrder::Big => value << 1 | bit(position + index),
        })
    }

    #[test]
    fn every_width_at_every_bit_equals_the_naive_reading() {
        let mut bytes = [0_u8; 40];
        let mut seed = 7_u32;
        for byte in &mut bytes {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (seed >> 24) as u8;
        }
        let window = PacketWindow::new(&bytes, 0, 24 * 8);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for width in 1..=64 {
                for position in 0..64 {
                    let expected = naive(&bytes, position, width, order);
                    assert_eq!(read(window, position, width, order), expected, "{order:?} {width} at {position}");
                }
            }
        }
    }

    #[test]
    fn signs_and_reversal() {
        assert_eq!(sign_extend(0b101, 3) as i64, -3);
        assert_eq!(sign_extend(u64::MAX, 64), u64::MAX);
        assert_eq!(reverse(0b001, 3), 0b100);
        assert_eq!(reverse(1, 64), 1 << 63);
    }
}
