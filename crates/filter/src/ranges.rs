//! Sets of integers as ranges in rising order with gaps between them, both ends included.

use kymo_ir::predicate::{INTEGER_HIGHEST, INTEGER_LOWEST, Relation, ValueRange};

/// A set of integers that can be held.
pub(crate) type Ranges = Vec<(i128, i128)>;

/// Every integer that can be held.
pub(crate) const EVERYTHING: ValueRange = ValueRange { lowest: INTEGER_LOWEST, highest: INTEGER_HIGHEST };

/// The integers of which a relation to a constant holds.
pub(crate) fn of_relation(relation: Relation, constant: i128) -> Ranges {
    let range = match relation {
        Relation::Equal => (constant, constant),
        Relation::NotEqual => return complement(&[(constant, constant)], EVERYTHING),
        Relation::Less => (INTEGER_LOWEST, constant - 1),
        Relation::LessOrEqual => (INTEGER_LOWEST, constant),
        Relation::Greater => (constant + 1, INTEGER_HIGHEST),
        Relation::GreaterOrEqual => (constant, INTEGER_HIGHEST),
    };
    clip(&[range], EVERYTHING)
}

/// Everything that is in one of the ranges, which may have any order.
pub(crate) fn union(mut ranges: Ranges) -> Ranges {
    ranges.retain(|(lowest, highest)| lowest <= highest);
    ranges.sort_unstable();
    let mut joined: Ranges = Vec::with_capacity(ranges.len());
    for (lowest, highest) in ranges {
        match joined.last_mut() {
            Some(last) if lowest <= last.1.saturating_add(1) => last.1 = last.1.max(highest),
            _ => joined.push((lowest, highest)),
        }
    }
    joined
}

/// The part of a set within a range.
pub(crate) fn clip(ranges: &[(i128, i128)], within: ValueRange) -> Ranges {
    let cut = ranges.iter().map(|&(lowest, highest)| (lowest.max(within.lowest), highest.min(within.highest)));
    cut.filter(|(lowest, highest)| lowest <= highest).collect()
}

/// The part of a range that is not in a set, which lies within it.
pub(crate) fn complement(ranges: &[(i128, i128)], within: ValueRange) -> Ranges {
    let mut gaps = Vec::with_capacity(ranges.len() + 1);
    let mut next = within.lowest;
    for &(lowest, highest) in ranges {
        if next < lowest {
            gaps.push((next, lowest - 1));
        }
        next = highest + 1;
    }
    if next <= within.highest {
        gaps.push((next, within.highest));
    }
    gaps
}

/// Whether a value is in a set.
pub(crate) fn contains(ranges: &[(i128, i128)], value: i128) -> bool {
    ranges.iter().any(|&(lowest, highest)| (lowest..=highest).contains(&value))
}
