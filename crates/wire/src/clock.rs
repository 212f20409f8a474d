//! Rebuilds full clock values from the few low bits that packets and event records keep.
//!
//! ```text
//! last  0x12_FE     next 8 bits read: 0x03
//!          └──┴──── 0x03 < 0xFE: the low part wrapped once
//! full  0x13_03
//! ```
//!
//! Two wraps between records look like one. A writer must not let that happen: [`extends_to`]
//! reports whether a reader will find the value again.

/// The low `width` bits.
#[must_use]
pub fn low_bits(value: u64, width: u32) -> u64 {
    value & mask(width)
}

/// The first clock value, not before `last`, with `low` in its low `width` bits; `None` if it does
/// not fit in 64 bits. A `low` of 64 bits is the value itself, even before `last`.
///
/// # Panics
///
/// If `low` has bits above `width`: the caller reads exactly `width` bits.
///
/// ```
/// assert_eq!(kymo_wire::clock::extend(0x12_FE, 0x03, 8), Some(0x13_03));
/// ```
#[must_use]
pub fn extend(last: u64, low: u64, width: u32) -> Option<u64> {
    let mask = mask(width);
    assert!(low <= mask, "{low:#x} does not fit in {width} bits");
    if width >= 64 {
        return Some(low);
    }
    let same_lap = (last & !mask) | low;
    if same_lap >= last {
        return Some(same_lap);
    }
    same_lap.checked_add(mask + 1)
}

/// Whether a reader at `last` finds `value` from its low `width` bits.
#[must_use]
pub fn extends_to(last: u64, value: u64, width: u32) -> bool {
    extend(last, low_bits(value, width), width) == Some(value)
}

fn mask(width: u32) -> u64 {
    match width {
        0 => 0,
        1..=63 => (1 << width) - 1,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrap_is_found_and_two_are_refused() {
        assert_eq!(extend(5, 5, 3), Some(5));
        assert_eq!(extend(u64::MAX, 0, 8), None);
        assert_eq!(extend(9, 3, 64), Some(3));
        assert!(extends_to(0x1FF, 0x2FE, 8));
        assert!(!extends_to(0x1FF, 0x2FF, 8));
        assert!(!extends_to(0x1FF, 0x1FE, 8));
    }
}
