//! Traces that are made for tests: short packets, and records that tracers should not write.

use std::path::Path;

/// A generator that needs nothing.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Less than `count`.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }

    /// True once in so many.
    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Events `e` with a number `n`, in packets with times and losses.
pub(crate) const METADATA: &str = "/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
stream {
    packet.context := struct {
        integer { size = 64; align = 8; } content_size;
        integer { size = 64; align = 8; } packet_size;
        integer { size = 64; align = 8; map = clock.c.value; } timestamp_begin;
        integer { size = 64; align = 8; map = clock.c.value; } timestamp_end;
        integer { size = 64; align = 8; } events_discarded;
        integer { size = 64; align = 8; } packet_seq_num;
    };
    event.header := struct { integer { size = 64; align = 8; map = clock.c.value; } timestamp; };
};
event { name = e; fields := struct { integer { size = 32; align = 8; } n; }; };
";

/// A fault of a stream.
struct Habits {
    /// Events leave the time of their packets, or it steps back, one in so many.
    strays: u64,
    /// Packets have no events, one in so many.
    empty: u64,
    /// The file is damaged in the end.
    damaged: bool,
}

/// Appends a packet of that context: begin, end, discarded, sequence number.
pub(crate) fn packet(file: &mut Vec<u8>, context: [u64; 4], times: &[u64]) {
    let bits = (48 + 12 * times.len() as u64) * 8;
    for word in [bits, bits].into_iter().chain(context) {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (number, time) in times.iter().enumerate() {
        file.extend_from_slice(&time.to_le_bytes());
        file.extend_from_slice(&(number as u32).to_le_bytes());
    }
}

/// A stream file, with faults in its times.
fn stream(random: &mut Random, habits: &Habits) -> Vec<u8> {
    let mut file = Vec::new();
    let mut now = random.below(200);
    let (mut discarded, mut sequence) = (0, 0);
    for _ in 0..random.below(30) {
        now += random.below(3) * random.below(100);
        let begin = now;
        let count = if random.one_in(habits.empty) { 0 } else { random.below(40) };
        let mut times = Vec::new();
        for _ in 0..count {
            now += random.below(12);
            times.push(now);
        }
        now += random.below(2) * random.below(50);
        if random.one_in(habits.strays) && count > 0 {
            let time = &mut times[random.below(count) as usize];
            *time = (*time + random.below(400)).saturating_sub(200);
            // An event that belongs far before its packet: into a slice that would be over by then.
            times[0] = times[0].saturating_sub(random.below(2) * random.below(4000));
        }
        discarded += random.below(8).saturating_sub(6);
        sequence += 1 + random.below(8) / 7;
        let end = if random.one_in(habits.strays * 4) { begin + random.below(20) } else { now };
        packet(&mut file, [begin, end, discarded, sequence], &times);
    }
    if habits.damaged && !file.is_empty() {
        let at = random.below(file.len() as u64) as usize;
        if random.one_in(2) { file.truncate(at) } else { file[at] ^= 1 << random.below(8) }
    }
    file
}

/// A folder with a trace of a few streams; two in three have faults in times, some are damaged.
pub(crate) fn trace(path: &Path, number: u64, random: &mut Random) {
    std::fs::create_dir(path).unwrap();
    std::fs::write(path.join("metadata"), METADATA).unwrap();
    for name in 0..=random.below(4) {
        let (strays, empty) = if number.is_multiple_of(3) { (1 << 30, 4) } else { (20, 2 + number % 8) };
        let habits = Habits { strays, empty, damaged: number % 5 == 4 && random.one_in(2) };
        std::fs::write(path.join(format!("s{name}")), stream(random, &habits)).unwrap();
    }
}
