//! Integers of 1 to 64 bits at any bit position.
//!
//! ```text
//! little-endian: bit i of the value is bit (p + i) % 8, from the least significant, of byte (p + i) / 8
//! big-endian:    the most significant bit comes first; the next bit of a byte is its bit 7 - p % 8
//! reversed:      the bits of the value are mirrored before they are put, after they are read
//! ```
//!
//! Both functions go bit by bit: they are the plain meaning that fast readers are compared with,
//! and a writer's events are short. Whether two byte orders may meet inside one byte is the
//! caller's question.

use kymo_units::ByteOrder;

/// Puts the low `width` bits of `value` at bit `position`; the other bits of the buffer stay.
///
/// # Panics
///
/// If the field does not lie inside the buffer, `width` is above 64, or `value` has bits above `width`.
pub fn put_bits(buffer: &mut [u8], position: u64, width: u32, value: u64, byte_order: ByteOrder, reversed: bool) {
    assert!(width <= 64, "{width} bits do not fit in a value of 64");
    assert!(width == 64 || value >> width == 0, "{value:#x} does not fit in {width} bits");
    let value = if reversed { mirror(value, width) } else { value };
    for index in 0..width {
        let (byte, mask) = place(position + u64::from(index), byte_order);
        let byte = &mut buffer[byte];
        match value >> significance(index, width, byte_order) & 1 {
            0 => *byte &= !mask,
            _ => *byte |= mask,
        }
    }
}

/// Reads `width` bits at bit `position`; `None` if they do not lie inside the buffer or are above 64.
#[must_use]
pub fn get_bits(buffer: &[u8], position: u64, width: u32, byte_order: ByteOrder, reversed: bool) -> Option<u64> {
    let end = position.checked_add(u64::from(width))?;
    if width > 64 || end.div_ceil(8) > buffer.len() as u64 {
        return None;
    }
    let mut value = 0;
    for index in 0..width {
        let (byte, mask) = place(position + u64::from(index), byte_order);
        let bit = u64::from(buffer[byte] & mask != 0);
        value |= bit << significance(index, width, byte_order);
    }
    Some(if reversed { mirror(value, width) } else { value })
}

/// The byte of a bit and its mask in it.
fn place(position: u64, byte_order: ByteOrder) -> (usize, u8) {
    let in_byte = position % 8;
    let mask = match byte_order {
        ByteOrder::Little => 1 << in_byte,
        ByteOrder::Big => 0x80 >> in_byte,
    };
    ((position / 8) as usize, mask)
}

/// Which bit of the value is the `index`th in the packet.
fn significance(index: u32, width: u32, byte_order: ByteOrder) -> u32 {
    match byte_order {
        ByteOrder::Little => index,
        ByteOrder::Big => width - 1 - index,
    }
}

/// The low `width` bits in the opposite order.
fn mirror(value: u64, width: u32) -> u64 {
    match width {
        0 => 0,
        _ => value.reverse_bits() >> (64 - width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

    proptest! {
        #[test]
        fn what_is_put_is_got_and_neighbours_stay(
            position in 0_u64..100, width in 1_u32..=64, value: u64, fill: u8,
        ) {
            let value = value >> (64 - width);
            for order in ORDERS {
                for reversed in [false, true] {
                    let mut buffer = vec![fill; 24];
                    put_bits(&mut buffer, position, width, value, order, reversed);
                    prop_assert_eq!(get_bits(&buffer, position, width, order, reversed), Some(value));
                    let back = get_bits(&[fill; 24], position, width, order, reversed);
                    put_bits(&mut buffer, position, width, back.unwrap(), order, reversed);
                    prop_assert_eq!(buffer, vec![fill; 24]);
                }
            }
        }

        #[test]
        fn whole_bytes_are_the_machines_integers(value: u64) {
            let mut buffer = [0; 9];
            put_bits(&mut buffer, 8, 64, value, ByteOrder::Little, false);
            prop_assert_eq!(&buffer[1..], &value.to_le_bytes());
            put_bits(&mut buffer, 8, 64, value, ByteOrder::Big, false);
            prop_assert_eq!(&buffer[1..], &value.to_be_bytes());
        }
    }

    #[test]
    fn bits_lie_where_the_specification_says() {
        let mut buffer = [0; 2];
        put_bits(&mut buffer, 3, 7, 0b101_1101, ByteOrder::Big, false);
        assert_eq!(buffer, [0b0001_0111, 0b0100_0000]);
        let mut buffer = [0; 2];
        put_bits(&mut buffer, 3, 7, 0b101_1101, ByteOrder::Little, false);
        assert_eq!(buffer, [0b1110_1000, 0b10]);
        let mut buffer = [0; 2];
        put_bits(&mut buffer, 0, 5, 0b00011, ByteOrder::Little, true);
        assert_eq!(buffer, [0b11000, 0]);
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        assert_eq!(get_bits(&[0; 2], 9, 8, ByteOrder::Big, false), None);
        assert_eq!(get_bits(&[0; 2], u64::MAX, 8, ByteOrder::Big, false), None);
    }
}
