//! Which names people may have meant.

/// Names longer than this are not typed by hand.
const NAME_CHARACTERS_MAX: usize = 100;
/// More suggestions than this are of no help.
const SUGGESTIONS_MAX: usize = 3;

/// The candidates that are like the name, the nearest first; three at most.
///
/// ```
/// let near = kymo_filter::nearest("nxt_pid", ["prev_pid", "next_pid", "cpu_id"]);
/// assert_eq!(near, ["next_pid"]);
/// ```
#[must_use]
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Vec<String> {
    let wanted: Vec<char> = name.chars().take(NAME_CHARACTERS_MAX + 1).flat_map(char::to_lowercase).collect();
    if wanted.len() > NAME_CHARACTERS_MAX {
        return Vec::new();
    }
    let tolerated = (wanted.len() / 3).max(1);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for candidate in candidates {
        let letters: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        if letters.len().abs_diff(wanted.len()) > tolerated {
            continue;
        }
        let distance = distance(&wanted, &letters);
        if distance <= tolerated && distance < wanted.len() && !near.iter().any(|&(_, known)| known == candidate) {
            near.push((distance, candidate));
        }
    }
    near.sort_by_key(|&(distance, _)| distance);
    near.into_iter().take(SUGGESTIONS_MAX).map(|(_, name)| name.to_owned()).collect()
}

/// Letters that must be inserted, left out, replaced, or swapped with their neighbor to get from
/// one to the other.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for row in 1..=one.len() {
        let mut current = vec![row];
        for column in 1..=other.len() {
            let same = usize::from(one[row - 1] != other[column - 1]);
            let mut least = (above[column] + 1).min(current[column - 1] + 1).min(above[column - 1] + same);
            let is_swapped =
                row > 1 && column > 1 && one[row - 1] == other[column - 2] && one[row - 2] == other[column - 1];
            if is_swapped {
                least = least.min(before[column - 2] + 1);
            }
            current.push(least);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_hand_are_near() {
        let names = ["next_pid", "next_prio", "prev_pid", "next_comm", "state"];
        assert_eq!(nearest("next_pdi", names), ["next_pid", "next_prio"]);
        assert_eq!(nearest("STATE", names), ["state"]);
        assert_eq!(nearest("x", names), [""; 0]);
        assert_eq!(nearest(&"n".repeat(70_000), names), [""; 0]);
    }
}
