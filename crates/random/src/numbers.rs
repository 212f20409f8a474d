//! Random numbers from a seed or from bytes, and damaged copies of bytes: the same on every machine.

/// Numbers from a seed, or from bytes that a caller chose.
#[derive(Clone, Debug)]
pub struct RandomNumbers {
    state: u64,
    chosen: Option<std::vec::IntoIter<u8>>,
}

impl RandomNumbers {
    /// Numbers that this seed alone makes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed, chosen: None }
    }

    /// Numbers that are these bytes, two a number, then zeros: changing a byte changes one choice.
    #[must_use]
    pub fn chosen(bytes: &[u8]) -> Self {
        Self { state: 0, chosen: Some(Vec::from(bytes).into_iter()) }
    }

    /// Any number (SplitMix64), or the number from the next bytes.
    pub fn any(&mut self) -> u64 {
        if let Some(chosen) = &mut self.chosen {
            let [low, high] = [(); 2].map(|()| u64::from(chosen.next().unwrap_or(0)));
            return low | high << 8 | (low ^ high) << 56;
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `count`; 0 if that is 0.
    pub fn below(&mut self, count: usize) -> usize {
        self.any() as usize % count.max(1)
    }

    /// Any bytes; every second one is small or has all bits set, as lengths, ids and ends of text are.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        const LIKELY: [u8; 8] = [0, 0, 1, 2, 3, 4, 0x80, 0xFF];
        let mut byte = || if self.any() & 1 == 0 { self.any() as u8 } else { LIKELY[self.below(LIKELY.len())] };
        (0..count).map(|_| byte()).collect()
    }

    /// A copy with one to eight places damaged: bits flipped, bytes replaced, pieces gone, doubled or moved, the end
    /// cut off.
    #[must_use]
    pub fn damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            let end = (at + 1 + self.below(24)).min(bytes.len());
            match self.below(7) {
                0 | 1 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                2 | 3 if at < bytes.len() => bytes[at] = self.bytes(1)[0],
                4 if at < end => drop(bytes.drain(at..end)),
                5 if at < end => {
                    let piece = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, piece);
                }
                6 if self.below(4) == 0 => bytes.truncate(at),
                _ => bytes.insert(at, self.any() as u8),
            }
        }
        bytes
    }
}
