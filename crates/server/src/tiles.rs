//! Tiles as bytes: little endian, every part at a multiple of four, so that a page can look at them as they are.
//!
//! ```text
//! "KYT2"  u8 level  u8[3] 0   u64 first   u32 count   u32 spans   u32 tracks
//! spans:  u32 begin  u32 end  u32 quality
//! tracks: u32 number  u32 form  u32 carry  u32 items   and the items, whose size the form says
//! ```
//!
//! docs/http.md describes the items. Nothing is decided here: the content of the tiles is written,
//! in their order.

use kymo_session::{
    ArrowBucket, CounterBucket, ExactArrow, ExactInstant, ExactRun, HeatBucket, InstantBucket, Items, StateBucket,
    Tiles, TrackTile,
};

/// Bytes before the spans, of a span, and of a track without its items.
const HEAD_BYTES: usize = 28;
const SPAN_BYTES: usize = 12;
const TRACK_BYTES: usize = 16;
/// No value.
const NONE: u32 = u32::MAX;

/// Forms of items: their numbers and bytes.
const STATES: (u32, usize) = (0, 32);
const INSTANTS: (u32, usize) = (2, 16);
const COUNTER: (u32, usize) = (3, 40);
const ARROWS: (u32, usize) = (4, 24);
const HEAT: (u32, usize) = (5, 12);
const RUNS: (u32, usize) = (1, 24);
const EXACT_INSTANTS: (u32, usize) = (6, 16);
const EXACT_ARROWS: (u32, usize) = (7, 32);

/// The bytes of an answer.
pub(crate) fn encode(tiles: &Tiles) -> Vec<u8> {
    let items: usize = tiles.tracks.iter().map(|track| bytes(&track.items)).sum();
    let size = HEAD_BYTES + tiles.spans.len() * SPAN_BYTES + tiles.tracks.len() * TRACK_BYTES + items;
    let mut out = TileBytes(Vec::with_capacity(size));
    out.0.extend_from_slice(b"KYT2");
    out.0.extend_from_slice(&[tiles.level, 0, 0, 0]);
    out.0.extend_from_slice(&tiles.first.to_le_bytes());
    out.numbers([tiles.count, tiles.spans.len() as u32, tiles.tracks.len() as u32]);
    for span in &tiles.spans {
        out.numbers([span.begin, span.end, span.quality as u32]);
    }
    tiles.tracks.iter().for_each(|track| out.track(track));
    debug_assert_eq!(out.0.len(), size, "every item has the size of its form");
    out.0
}

fn form(items: &Items) -> (u32, usize) {
    match items {
        Items::States { .. } => STATES,
        Items::Instants(_) => INSTANTS,
        Items::Arrows(_) => ARROWS,
        Items::Heat(_) => HEAT,
        Items::Runs(_) => RUNS,
        Items::ExactInstants(_) => EXACT_INSTANTS,
        Items::ExactArrows(_) => EXACT_ARROWS,
        Items::Counter { .. } => COUNTER,
    }
}

fn count(items: &Items) -> usize {
    match items {
        Items::States { buckets, .. } => buckets.len(),
        Items::Instants(buckets) => buckets.len(),
        Items::Arrows(buckets) => buckets.len(),
        Items::Heat(buckets) => buckets.len(),
        Items::Runs(runs) => runs.len(),
        Items::ExactInstants(instants) => instants.len(),
        Items::ExactArrows(arrows) => arrows.len(),
        Items::Counter { buckets, .. } => buckets.len(),
    }
}

/// Bytes of items; a counter's first number stands before them.
fn bytes(items: &Items) -> usize {
    let first = matches!(items, Items::Counter { carry: Some(_), .. });
    form(items).1 * count(items) + if first { size_of::<f64>() } else { 0 }
}

struct TileBytes(Vec<u8>);

impl TileBytes {
    fn numbers<const N: usize>(&mut self, numbers: [u32; N]) {
        numbers.iter().for_each(|number| self.0.extend_from_slice(&number.to_le_bytes()));
    }

    fn track(&mut self, track: &TrackTile) {
        let carry = match &track.items {
            Items::States { carry, .. } => carry.map_or(0, |value| value + 1),
            Items::Counter { carry, .. } => u32::from(carry.is_some()),
            _ => 0,
        };
        self.numbers([track.number, form(&track.items).0, carry, count(&track.items) as u32]);
        match &track.items {
            Items::States { buckets, .. } => buckets.iter().for_each(|bucket| self.state(bucket)),
            Items::Instants(buckets) => buckets.iter().for_each(|bucket| self.instant(bucket)),
            Items::Arrows(buckets) => buckets.iter().for_each(|bucket| self.arrow(bucket)),
            Items::Heat(buckets) => buckets.iter().for_each(|bucket| self.heat(bucket)),
            Items::Runs(runs) => runs.iter().for_each(|run| self.run(run)),
            Items::ExactInstants(instants) => instants.iter().for_each(|instant| self.exact_instant(instant)),
            Items::ExactArrows(arrows) => arrows.iter().for_each(|arrow| self.exact_arrow(arrow)),
            Items::Counter { carry, buckets } => {
                carry.iter().for_each(|carry| self.reals([*carry]));
                buckets.iter().for_each(|bucket| self.counter(bucket));
            }
        }
    }

    fn state(&mut self, bucket: &StateBucket) {
        let StateBucket { bucket, value, second, last, begins, share, share_second, busiest, busy } = *bucket;
        let [value, second, last, busiest] = [value, second, last, busiest].map(|value| value.unwrap_or(NONE));
        self.numbers([bucket, value, second, last, begins, busiest]);
        for share in [share, share_second, busy, 0] {
            self.0.extend_from_slice(&share.to_le_bytes());
        }
    }

    fn instant(&mut self, bucket: &InstantBucket) {
        let InstantBucket { bucket, value, count, count_of_value } = *bucket;
        self.numbers([bucket, value, count, count_of_value]);
    }

    fn arrow(&mut self, bucket: &ArrowBucket) {
        let ArrowBucket { bucket, from, to, count, longest_ns } = *bucket;
        self.numbers([bucket, from.unwrap_or(NONE), to.unwrap_or(NONE), count]);
        let longest = longest_ns.map_or(f64::NAN, |longest| longest as f64);
        self.0.extend_from_slice(&longest.to_le_bytes());
    }

    fn reals<const N: usize>(&mut self, reals: [f64; N]) {
        reals.iter().for_each(|real| self.0.extend_from_slice(&real.to_le_bytes()));
    }

    fn counter(&mut self, bucket: &CounterBucket) {
        let CounterBucket { bucket, changes, min, max, last, mean } = *bucket;
        self.numbers([bucket, changes]);
        self.reals([min, max, last, mean]);
    }

    fn heat(&mut self, bucket: &HeatBucket) {
        self.numbers([bucket.bucket, bucket.bin, bucket.count]);
    }

    /// Nanoseconds as doubles, which are exact for a hundred days.
    fn times<const N: usize>(&mut self, times: [i64; N]) {
        times.iter().for_each(|time| self.0.extend_from_slice(&(*time as f64).to_le_bytes()));
    }

    fn run(&mut self, run: &ExactRun) {
        self.times([run.begin, run.end]);
        self.numbers([run.value, run.flags]);
    }

    fn exact_instant(&mut self, instant: &ExactInstant) {
        self.times([instant.time]);
        self.numbers([instant.value, instant.flags]);
    }

    fn exact_arrow(&mut self, arrow: &ExactArrow) {
        self.times([arrow.begin, arrow.end]);
        self.numbers([arrow.from.unwrap_or(NONE), arrow.to.unwrap_or(NONE), arrow.value, arrow.flags]);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use kymo_session::{Quality, TileSpan};

    use super::*;

    /// Four bytes a word, a line for each part.
    fn words(bytes: &[u8], lines: &[usize]) -> String {
        assert_eq!(bytes.len() % 4, 0);
        let mut words = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        let mut text = String::new();
        for count in lines {
            let line: Vec<String> = words.by_ref().take(*count).map(|word| format!("{word:x}")).collect();
            text += &format!("{}\n", line.join(" "));
        }
        assert_eq!(words.next(), None, "{text}");
        text
    }

    #[test]
    fn every_form_has_its_bytes() {
        let state = StateBucket {
            bucket: 2,
            value: Some(5),
            second: None,
            last: Some(6),
            begins: 3,
            share: 0xffff,
            share_second: 1,
            busiest: Some(9),
            busy: 0x8000,
        };
        let tracks = vec![
            TrackTile { number: 7, items: Items::States { carry: Some(5), buckets: vec![state] } },
            TrackTile { number: 8, items: Items::States { carry: None, buckets: vec![] } },
            TrackTile {
                number: 9,
                items: Items::Instants(vec![InstantBucket { bucket: 0, value: 1, count: 4, count_of_value: 3 }]),
            },
            TrackTile {
                number: 10,
                items: Items::Arrows(vec![
                    ArrowBucket { bucket: 1, from: Some(7), to: Some(8), count: 2, longest_ns: None },
                    ArrowBucket { bucket: 1, from: Some(7), to: None, count: 1, longest_ns: Some(3) },
                ]),
            },
            TrackTile { number: 11, items: Items::Heat(vec![HeatBucket { bucket: 3, bin: 40, count: 2 }; 2]) },
            TrackTile { number: 12, items: Items::Runs(vec![ExactRun { begin: -1, end: 2, value: 5, flags: 3 }]) },
            TrackTile { number: 13, items: Items::ExactInstants(vec![ExactInstant { time: 4, value: 1, flags: 0 }]) },
            TrackTile {
                number: 14,
                items: Items::ExactArrows(vec![ExactArrow {
                    begin: 1,
                    end: 2,
                    from: Some(7),
                    to: Some(8),
                    value: 5,
                    flags: 2,
                }]),
            },
            TrackTile {
                number: 15,
                items: Items::Counter {
                    carry: Some(1.0),
                    buckets: vec![CounterBucket { bucket: 2, changes: 3, min: -1.0, max: 2.5, last: 0.0, mean: 1.5 }],
                },
            },
            TrackTile { number: 16, items: Items::Counter { carry: None, buckets: vec![] } },
        ];
        let spans = vec![
            TileSpan { begin: 0, end: 3, quality: Quality::Exact },
            TileSpan { begin: 3, end: 4, quality: Quality::Unknown },
        ];
        let bytes = encode(&Tiles { level: 12, first: 0x1_0000_0002, count: 4, spans, tracks });
        let expected = expect![[r#"
            3254594b c 2 1 4 2 a
            0 3 0
            3 4 3
            7 0 6 1
            2 5 ffffffff 6 3 9 1ffff 8000
            8 0 0 0
            9 2 0 1
            0 1 4 3
            a 4 0 2
            1 7 8 2 0 7ff80000
            1 7 ffffffff 1 0 40080000
            b 5 0 2
            3 28 2 3 28 2
            c 1 0 1
            0 bff00000 0 40000000 5 3
            d 6 0 1
            0 40100000 1 0
            e 7 0 1
            0 3ff00000 0 40000000 7 8 5 2
            f 3 1 1
            0 3ff00000
            2 3 0 bff00000 0 40040000 0 0 0 3ff80000
            10 3 0 0
        "#]];
        expected.assert_eq(&words(&bytes, &[7, 3, 3, 4, 8, 4, 4, 4, 4, 6, 6, 4, 6, 4, 6, 4, 4, 4, 8, 4, 2, 10, 4]));
    }
}
