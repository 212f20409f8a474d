//! Numbers over time: buckets against a count by hand, however they are cut and thinned.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::*;
use crate::Wishes;
use crate::testing::{Random, Script};
use crate::timeline::cells::add_up;
use crate::timeline::node::TimelineNode;
use crate::timeline::thinning::{AS_NUMBERS, KEPT, thin};
use crate::timeline::{Crowd, TimelineAnalysis, TimelinePart, is_number};

#[test]
fn values_are_numbers() {
    for whole in [0i64, 1, -1, 5, 255, -3_000_000, 1 << 53, -(1 << 53)] {
        assert_eq!(number(value(whole as f64)), whole as f64);
        assert_eq!(value(whole as f64) & 1, 0);
    }
    assert!(value(3.0) < 20, "small integers take few bytes");
    for real in [0.5, -0.25, 0.1, 1e300, -1e-300, 1e17, f64::from(0.3f32)] {
        let found = number(value(real));
        assert!((found - real).abs() <= real.abs() * f64::EPSILON, "{real}: {found}");
    }
}

/// A number in a bucket, and just before it, counted nanosecond by nanosecond; `values`: values
/// with their begins.
fn counted(values: &[(i64, f64)], (begin, end): (i64, i64)) -> Option<NumberBucket> {
    let at = |time: i64| values.iter().rev().find(|(since, _)| *since <= time).map(|(_, number)| *number);
    let lasting: Vec<f64> = (begin..end).filter_map(at).collect();
    let set: Vec<f64> = values.iter().filter(|(since, _)| (begin..end).contains(since)).map(|value| value.1).collect();
    let all = || lasting.iter().chain(&set).copied().chain(at(begin - 1));
    let last = at(end - 1)?;
    let mean = lasting.iter().sum::<f64>() / lasting.len() as f64;
    let (min, max) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    Some(NumberBucket { bucket: 0, changes: set.len() as u32, min, max, last, mean })
}

/// The nodes of a script's chunks, in buckets of a level, thinned or with all values.
fn nodes(script: &Script, cuts: &[i64], level: Level, is_whole: bool) -> Vec<TimelineNode> {
    let wishes = Wishes::default();
    let timeline = TimelineAnalysis::new(&script.setup(&wishes), 0);
    let reading = timeline.reading(level);
    let (mut before, mut nodes): (_, Vec<TimelineNode>) = (timeline.begin(), Vec::new());
    for (place, mut part) in script.parts(&reading, cuts, false).into_iter().enumerate() {
        timeline.settle(&mut part);
        let begin = place.checked_sub(1).map_or(0, |before| cuts[before]);
        let alone = look(&timeline, script.sent(&reading, &part), &nodes, (begin, level, is_whole));
        let sealed = timeline.seal(&mut before, part, begin);
        before = script.sent(&reading, &before);
        nodes.push(timeline.node(sealed, level, is_whole));
        assert_eq!(tracks(&[&alone], level, &|_| None), tracks(&[&nodes[place]], level, &|_| None), "cut at {cuts:?}");
    }
    nodes
}

/// A chunk's node, from the nodes before it.
fn look(
    timeline: &TimelineAnalysis,
    chunk: TimelinePart,
    nodes: &[TimelineNode],
    (begin, level, is_whole): (i64, Level, bool),
) -> TimelineNode {
    let now = |key: u64| Some((key, nodes.iter().rev().find_map(|node| node.track(key))?.last));
    let mut known: HashMap<u64, _> = timeline.asked(&chunk).into_iter().filter_map(now).collect();
    let next: Vec<_> = timeline.asked_next(&known).into_iter().filter_map(now).collect();
    known.extend(next);
    let mut before = timeline.before(&chunk, &known);
    timeline.node(timeline.seal(&mut before, chunk, begin), level, is_whole)
}

/// The buckets of all tracks of numbers.
fn tracks(
    nodes: &[&TimelineNode],
    level: Level,
    carry: &dyn Fn(u64) -> Option<u64>,
) -> BTreeMap<u64, Vec<NumberBucket>> {
    let mut tracks: BTreeMap<u64, Vec<TrackCell>> = BTreeMap::new();
    for track in nodes.iter().flat_map(|node| node.tracks()).filter(|track| is_number(track.key)) {
        tracks.entry(track.key).or_default().extend(track.cells(level));
    }
    tracks.values_mut().for_each(add_up);
    tracks.into_iter().map(|(key, cells)| (key, buckets(&cells, level, carry(key)).collect())).collect()
}

/// Two counters in two processes, set by two lanes at random; cut anywhere, at all levels.
#[test]
fn counters_are_what_somebody_counts_by_hand() {
    for seed in 0..20 {
        let random = &mut Random(seed);
        let (mut script, mut time) = (String::from("lane\nlane\n"), 5);
        let mut values: BTreeMap<(usize, usize), Vec<(i64, f64)>> = BTreeMap::new();
        for _ in 0..150 {
            time += 1 + (random.below(3) * random.below(9)) as i64;
            let (name, pid, number) = (random.below(2), random.below(2), random.below(400) as i64 - 100);
            script += &format!("{time} {} counter name=n{name} value={number} within={pid}\n", random.below(2));
            values.entry((name, pid)).or_default().push((time, number as f64));
        }
        let script = Script::parse(&script);
        let (cuts, fine) = (script.random_cuts(random), random.below(4) as Level);
        let is_whole = fine == 0;
        let nodes = nodes(&script, &cuts, fine, is_whole);
        let nodes: Vec<&TimelineNode> = nodes.iter().collect();
        for level in fine..11 {
            let found = tracks(&nodes, level, &|_| None);
            assert_eq!(found.len(), values.len());
            let mut expected: Vec<Vec<NumberBucket>> = values.values().map(|values| all(values, level)).collect();
            for buckets in found.values() {
                let same = expected.iter().position(|expected| are_alike(buckets, expected, slack(level)));
                let same = same.unwrap_or_else(|| panic!("{seed}, level {level}: {buckets:?} is none of {expected:?}"));
                expected.remove(same);
            }
        }
    }
}

/// The buckets of a number in which it changes, counted by hand.
fn all(values: &[(i64, f64)], level: Level) -> Vec<NumberBucket> {
    let last = values.last().expect("there are some").0 >> level;
    let bucket = |bucket: i64| {
        let counted = counted(values, (bucket << level, (bucket + 1) << level))?;
        (counted.changes > 0).then_some(NumberBucket { bucket: bucket.cast_unsigned(), ..counted })
    };
    (0..=last).filter_map(bucket).collect()
}

/// Wider buckets keep times to a 64th, of a few values each.
fn slack(level: Level) -> f64 {
    if level > 6 { 0.15 } else { 1e-9 }
}

fn are_alike(one: &[NumberBucket], other: &[NumberBucket], slack: f64) -> bool {
    let is_alike = |(one, other): (&NumberBucket, &NumberBucket)| {
        let scale = (other.max - other.min).max(1.0);
        NumberBucket { mean: other.mean, ..*one } == *other && (one.mean - other.mean).abs() <= scale * slack
    };
    one.len() == other.len() && one.iter().zip(other).all(is_alike)
}

/// Threads that run and wait are those with these states.
#[test]
fn crowds_are_what_states_say() {
    let script = "
        lane cpu=0
        lane cpu=1
        10 0 thread_switch prev_tid=5 prev_state=0 next_tid=7
        20 1 thread_switch prev_tid=0 next_tid=5
        30 0 thread_wakeup woken_tid=9
        40 0 thread_switch prev_tid=7 prev_state=1 next_tid=9
        50 1 thread_switch prev_tid=5 prev_state=1 next_tid=0";
    let script = Script::parse(script);
    for cuts in [vec![], vec![20], vec![15, 30, 45]] {
        let nodes = nodes(&script, &cuts, 0, true);
        // Thread 5 ran when the trace began: the caller adds that, see `Crowd::counting`.
        let found = tracks(&nodes.iter().collect::<Vec<_>>(), 0, &|_| Some(value(0.0)));
        let of = |crowd: Crowd| {
            let buckets = &found[&crowd.key(0)];
            buckets.iter().map(|bucket| (bucket.bucket, bucket.last)).collect::<Vec<_>>()
        };
        assert_eq!(of(Crowd::Running), [(20, 1.0), (50, 0.0)], "{cuts:?}");
        assert_eq!(of(Crowd::Waiting), [(10, 1.0), (20, 0.0), (30, 1.0), (40, 0.0)], "{cuts:?}");
    }
}

/// Thinned cells have the same extremes, the same sum of times, the same average and the same end.
#[test]
fn thinned_numbers_say_the_same() {
    for seed in 0..300 {
        let random = &mut Random(seed);
        let mut cells: Vec<TrackCell> = (0..30)
            .map(|_| TrackCell {
                bucket: random.below(2) as u64,
                value: value(random.below(50) as f64 * 0.5),
                begins: 1 + random.below(3) as u32,
                net: 0,
                time: random.below(9) as i64,
            })
            .collect();
        cells.push(TrackCell { bucket: 0, value: value(7.0), begins: 1, net: 1, time: 3 });
        add_up(&mut cells);
        let mut thinned = cells.clone();
        thin(&mut thinned, AS_NUMBERS, |_| false);
        let said = |cells: &[TrackCell]| buckets(cells, 9, Some(value(100.0))).collect::<Vec<_>>();
        assert!(are_alike(&said(&thinned), &said(&cells), 1e-9), "{seed}: {thinned:?}, {cells:?}");
        assert!(thinned.len() <= 2 * (KEPT + 1), "{seed}");
    }
}
