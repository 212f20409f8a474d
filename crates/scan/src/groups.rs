//! Positions of records by class: a counting sort, so that columns are filled class by class.

/// Positions grouped by class. Its memory is reused.
#[derive(Debug, Default)]
pub struct ClassGroups {
    /// For each class, how many records it has; all zero between calls.
    counts: Vec<u32>,
    /// Classes that occur, and where their positions end.
    present: Vec<(u32, u32)>,
    positions: Vec<u64>,
}

impl ClassGroups {
    /// Groups records; the order within a class is kept.
    pub fn sort(&mut self, classes: &[u32], positions: &[u64]) {
        self.present.clear();
        for &class in classes {
            let class = class as usize;
            if class >= self.counts.len() {
                self.counts.resize(class + 1, 0);
            }
            if self.counts[class] == 0 {
                self.present.push((class as u32, 0));
            }
            self.counts[class] += 1;
        }
        let mut start = 0;
        for (class, end) in &mut self.present {
            let count = std::mem::replace(&mut self.counts[*class as usize], start);
            start += count;
            *end = start;
        }
        self.positions.resize(classes.len(), 0);
        for (&class, &position) in classes.iter().zip(positions) {
            let next = &mut self.counts[class as usize];
            self.positions[*next as usize] = position;
            *next += 1;
        }
        for (class, _) in &self.present {
            self.counts[*class as usize] = 0;
        }
    }

    /// Each class that occurs with its positions, in the order of first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u64])> {
        let mut start = 0;
        self.present.iter().map(move |&(class, end)| {
            let positions = &self.positions[start..end as usize];
            start = end as usize;
            (class, positions)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_grouped_and_keep_their_order() {
        let mut groups = ClassGroups::default();
        for _ in 0..2 {
            groups.sort(&[7, 1, 7, 0, 1, 7], &[10, 11, 12, 13, 14, 15]);
            let found: Vec<(u32, Vec<u64>)> = groups.iter().map(|(class, at)| (class, at.to_vec())).collect();
            assert_eq!(found, [(7, vec![10, 12, 15]), (1, vec![11, 14]), (0, vec![13])]);
        }
    }
}
