//! LEB128: seven bits a byte, least significant first; the top bit marks that another byte follows.
//!
//! A value has at most 64 bits, so at most ten bytes; the tenth has room for one bit only (0 or 1,
//! or 0 or 0x7F where the value is signed), and must be the last.

/// The most bytes that a value takes.
pub const LENGTH_MAX: usize = 10;

/// Why bytes are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leb128Error {
    /// The bytes end before the value does.
    Short,
    /// The value has more than 64 bits.
    Oversized,
}

/// The bytes of an unsigned value, as short as possible, and their number.
#[must_use]
pub fn encode_unsigned(mut value: u64) -> ([u8; LENGTH_MAX], usize) {
    let mut bytes = [0; LENGTH_MAX];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = (value & 0x7F) as u8;
        value >>= 7;
        if value == 0 {
            return (bytes, index + 1);
        }
        *byte |= 0x80;
    }
    unreachable!("ten times seven bits hold 64")
}

/// The bytes of a signed value, as short as possible, and their number.
#[must_use]
pub fn encode_signed(mut value: i64) -> ([u8; LENGTH_MAX], usize) {
    let mut bytes = [0; LENGTH_MAX];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = (value & 0x7F) as u8;
        value >>= 7;
        let sign_is_told = (*byte & 0x40 != 0) == (value < 0);
        if sign_is_told && (value == 0 || value == -1) {
            return (bytes, index + 1);
        }
        *byte |= 0x80;
    }
    unreachable!("ten times seven bits hold 64")
}

/// The unsigned value at the beginning of `bytes` and the number of its bytes.
pub fn decode_unsigned(bytes: &[u8]) -> Result<(u64, usize), Leb128Error> {
    decode(bytes, |tenth| tenth <= 1)
}

/// The signed value at the beginning of `bytes` and the number of its bytes.
pub fn decode_signed(bytes: &[u8]) -> Result<(i64, usize), Leb128Error> {
    let (value, length) = decode(bytes, |tenth| tenth == 0 || tenth == 0x7F)?;
    let unused = 64_usize.saturating_sub(7 * length);
    Ok(((value << unused) as i64 >> unused, length))
}

fn decode(bytes: &[u8], tenth_fits: fn(u8) -> bool) -> Result<(u64, usize), Leb128Error> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(LENGTH_MAX).enumerate() {
        if index == LENGTH_MAX - 1 && !tenth_fits(byte) {
            return Err(Leb128Error::Oversized);
        }
        value |= u64::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((value, index + 1));
        }
    }
    Err(Leb128Error::Short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let (bytes, length) = encode_unsigned(value);
            prop_assert_eq!(decode_unsigned(&bytes[..length]), Ok((value, length)));
            let value = value as i64;
            for value in [value, value.wrapping_neg()] {
                let (bytes, length) = encode_signed(value);
                prop_assert_eq!(decode_signed(&bytes[..length]), Ok((value, length)));
                prop_assert_eq!(decode_signed(&bytes[..length - 1]), Err(Leb128Error::Short));
            }
        }
    }

    #[test]
    fn the_tenth_byte_has_room_for_one_bit() {
        let mut bytes = [0xFF; 11];
        assert_eq!(decode_unsigned(&bytes), Err(Leb128Error::Oversized));
        bytes[9] = 1;
        assert_eq!(decode_unsigned(&bytes), Ok((u64::MAX, 10)));
        bytes[9] = 2;
        assert_eq!(decode_unsigned(&bytes), Err(Leb128Error::Oversized));
        bytes[9] = 0x7F;
        assert_eq!(decode_signed(&bytes), Ok((-1, 10)));
        bytes[9] = 1;
        assert_eq!(decode_signed(&bytes), Err(Leb128Error::Oversized));
    }

    #[test]
    fn a_long_form_of_a_small_value_is_read() {
        assert_eq!(decode_unsigned(&[0x81, 0x80, 0x00]), Ok((1, 3)));
        assert_eq!(decode_signed(&[0xFF, 0xFF, 0x7F]), Ok((-1, 3)));
    }
}
