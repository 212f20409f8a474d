//! Durations that take no time, and events, at the borders of tiles and chunks, in the first and in the last nanosecond.

use super::*;

const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 64; align = 8; } := number;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
stream {
    packet.context := struct { time timestamp_begin; time timestamp_end; number content_size; number packet_size; };
    event.header := struct { number id; time timestamp; };
    event.context := struct { number vpid; number vtid; };
};
event { name = \"app:work_begin\"; id = 0; fields := struct { number id; }; };
event { name = \"app:work_end\"; id = 1; fields := struct { number id; }; };
";

/// A packet with durations of thread 7 that begin and end at these times; from when to when it is.
fn packet(file: &mut Vec<u8>, span: (u64, u64), times: &[u64]) {
    let bits = (4 + 10 * times.len() as u64) * 64;
    let event = |id: u64, time: u64| [id, time, 7, 7, time];
    let events = times.iter().flat_map(|&time| [event(0, time), event(1, time)]).flatten();
    file.extend([span.0, span.1, bits, bits].into_iter().chain(events).flat_map(u64::to_le_bytes));
}

/// Times beside the borders of tiles of all levels.
fn times() -> Vec<u64> {
    let borders = (8..=16).flat_map(|level| [(1 << level) - 1, 1 << level, (1 << level) + 1]);
    [0].into_iter().chain(borders).collect()
}

const FIRST_NS: u64 = 5000;

/// One packet for two durations, so that borders of chunks are at borders of tiles.
fn trace(path: &Path) {
    let mut file = Vec::new();
    for two in times().chunks(2) {
        let times: Vec<u64> = two.iter().map(|time| FIRST_NS + time).collect();
        packet(&mut file, (times[0], times[times.len() - 1]), &times);
    }
    std::fs::write(path.join("metadata"), METADATA).unwrap();
    std::fs::write(path.join("stream"), file).unwrap();
}

/// Which durations are drawn in a tile, by the bucket in which they are, and how many events are counted in it.
fn drawn(timeline: &Timeline, level: Level, tile: u64) -> (Vec<(u64, u32)>, u32) {
    let catalogue = timeline.catalogue(0, 0);
    let number = |of: &str| catalogue.tracks.iter().find(|track| track.id.starts_with(of)).unwrap().number;
    let tracks = vec![number("thread/0/7/slices/0"), number("events/")];
    let question = TileQuestion { level, first: tile * 256, count: 256, tracks };
    let tiles = timeline.tiles(&question, &Progress::default()).unwrap();
    let (mut durations, mut events) = (Vec::new(), 0);
    for track in tiles.tracks {
        match track.items {
            Items::Runs(runs) => {
                durations.extend(runs.iter().map(|run| ((run.begin >> level).cast_unsigned(), 1)));
                assert!(
                    runs.iter().all(|run| (0..256 << level).contains(&run.begin) && run.begin == run.end),
                    "{runs:?}"
                );
            }
            Items::States { buckets, .. } => {
                assert!(buckets.iter().all(|bucket| bucket.value.is_some()), "level {level}, tile {tile}: {buckets:?}");
                durations.extend(buckets.iter().map(|bucket| (bucket.bucket.into(), bucket.begins)));
            }
            Items::ExactInstants(all) => events += all.len() as u32,
            Items::Instants(buckets) => events += buckets.iter().map(|bucket| bucket.count).sum::<u32>(),
            other => panic!("{other:?}"),
        }
    }
    (durations, events)
}

#[test]
fn whatever_takes_no_time_is_in_one_tile_of_each_level() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    let (many, one) = (built(folder.path(), Some(1), None), built(folder.path(), None, None));
    assert!(many.chunks.len() > 8 && one.chunks.len() == 1, "{}", many.chunks.len());
    for timeline in [&many, &one] {
        let status = timeline.status();
        let last = times().last().copied().unwrap();
        assert_eq!((status.begin_ns, status.end_ns), (FIRST_NS.cast_signed(), (FIRST_NS + last).cast_signed()));
        for level in 0..=status.level_max {
            let tiles: std::collections::BTreeSet<u64> = times().iter().map(|time| time >> level >> 8).collect();
            let mut expected: BTreeMap<u64, u32> = BTreeMap::new();
            times().iter().for_each(|time| *expected.entry(time >> level).or_default() += 1);
            let (mut found, mut events): (BTreeMap<u64, u32>, u32) = Default::default();
            for tile in tiles {
                let (durations, counted) = drawn(timeline, level, tile);
                events += counted;
                for (bucket, count) in durations {
                    *found.entry(tile * 256 + bucket).or_default() += count;
                }
            }
            assert_eq!(found, expected, "level {level}");
            assert_eq!(events as usize, 2 * times().len(), "level {level}");
        }
    }
}
