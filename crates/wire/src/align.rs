//! Positions in a packet are rounded up to the alignment of the item there.

/// The first multiple of `alignment` that is not before `position`; `None` past 2^64 bits.
///
/// # Panics
///
/// If `alignment` is not a power of two: a trace class has no other ones.
///
/// ```
/// assert_eq!(kymo_wire::align_up(9, 8), Some(16));
/// assert_eq!(kymo_wire::align_up(16, 8), Some(16));
/// assert_eq!(kymo_wire::align_up(u64::MAX, 8), None);
/// ```
#[must_use]
pub fn align_up(position: u64, alignment: u64) -> Option<u64> {
    assert!(alignment.is_power_of_two(), "alignment {alignment}");
    let mask = alignment - 1;
    position.checked_add(mask).map(|past| past & !mask)
}
