//! Durations by depth: the drawn ones, against a list by hand and a simple count; cut anywhere, and
//! read alone.

use std::collections::BTreeMap;

use expect_test::expect;

use super::*;
use crate::Wishes;
use crate::testing::{Random, Script};
use crate::timeline::cells::{TrackCell, add_up};
use crate::timeline::node::TimelineNode;
use crate::timeline::{TimelineAnalysis, TimelinePart, told};

/// The nodes of a script's chunks, cut at these times, in buckets of a nanosecond; and all names.
fn nodes(script: &Script, cuts: &[i64]) -> (Vec<TimelineNode>, HashMap<u64, String>) {
    let wishes = Wishes::default();
    let timeline = TimelineAnalysis::new(&script.setup(&wishes), 0);
    let reading = timeline.reading(0);
    let parts = script.parts(&reading, cuts, false);
    let (mut before, mut names, mut nodes): (_, _, Vec<TimelineNode>) = (timeline.begin(), HashMap::new(), Vec::new());
    for (place, part) in parts.into_iter().enumerate() {
        let mut part = script.sent(&reading, &part);
        timeline.settle(&mut part);
        names.extend(part.slice_names().clone());
        let begin = place.checked_sub(1).map_or(0, |before| cuts[before]);
        let alone = look(&timeline, script.sent(&reading, &part), &nodes, begin);
        let sealed = timeline.seal(&mut before, part, begin);
        before = script.sent(&reading, &before);
        nodes.push(timeline.node(sealed, 0, true));
        assert_eq!(said(&[&alone], 0), said(&[&nodes[place]], 0), "cut at {cuts:?}: chunk {place} alone says");
    }
    (nodes, names)
}

/// A chunk's node, from the nodes before it.
fn look(timeline: &TimelineAnalysis, chunk: TimelinePart, nodes: &[TimelineNode], begin: i64) -> TimelineNode {
    let find = |keys: Vec<u64>| -> Known {
        let now = |key: u64| Some((key, nodes.iter().rev().find_map(|node| node.track(key))?.last));
        keys.into_iter().filter_map(now).collect()
    };
    let mut known = find(timeline.asked(&chunk));
    known.extend(find(timeline.asked_next(&known)));
    let mut before = timeline.before(&chunk, &known);
    timeline.node(timeline.seal(&mut before, chunk, begin), 0, true)
}

/// The cells of tracks of durations.
fn said(nodes: &[&TimelineNode], level: u8) -> BTreeMap<u64, Vec<TrackCell>> {
    let is_slices =
        |key: u64| TrackKey::of(key).is_some_and(|key| matches!(key.thing, Thing::Slices | Thing::LaneSlices));
    let mut tracks: BTreeMap<u64, Vec<TrackCell>> = BTreeMap::new();
    for track in nodes.iter().flat_map(|node| node.tracks()).filter(|track| is_slices(track.key)) {
        tracks.entry(track.key).or_default().extend(track.cells(level));
    }
    tracks.values_mut().for_each(add_up);
    tracks
}

/// From when to when something is on which track, one line each, in the order of tracks.
fn drawn(script: &str) -> String {
    let script = Script::parse(script);
    let (nodes, names) = nodes(&script, &[]);
    let mut lines = String::new();
    for (key, cells) in said(&[&nodes[0]], 0) {
        let TrackKey { thing, number, track, .. } = TrackKey::of(key).unwrap();
        let of = if thing == Thing::Slices { "thread" } else { "lane" };
        lines += &format!("{of} {number}, depth {track}:");
        for cell in cells {
            let (value, is_in_doubt) = told(key, cell.value);
            let name = match super::super::marks::integer_name(value) {
                Some(number) => number.to_string(),
                None => names[&value].clone(),
            };
            let edge = match (cell.begins, cell.net) {
                (0, -1) if is_in_doubt => "ends in doubt",
                (0, -1) => "ends",
                (1, 1) => "begins",
                (1, 0) => "begins and ends",
                (1, -1) => "ends, begins and ends",
                other => panic!("{other:?}"),
            };
            lines += &format!(" {} {name} {edge};", cell.bucket);
        }
        lines += "\n";
    }
    lines
}

#[test]
fn what_lies_inside_has_its_depth_and_what_overlaps_lies_side_by_side() {
    let scopes = "
        lane
        10 0 begin key=1 name=request within=5 @tid=7
        20 0 begin key=2 name=parse within=5 @tid=7
        25 0 end key=2 name=parse within=5 @tid=7
        30 0 begin key=2 name=store within=5 @tid=7
        30 0 begin key=3 name=write within=5 @tid=7
        30 0 end key=3 within=5 @tid=7
        40 0 end key=2 within=5 @tid=7
        50 0 end key=1 within=5 @tid=7";
    expect![[r#"
        thread 7, depth 0: 10 request begins; 50 request ends;
        thread 7, depth 1: 20 parse begins; 25 parse ends; 30 store begins; 40 store ends;
        thread 7, depth 2: 30 write begins and ends;
    "#]]
    .assert_eq(&drawn(scopes));
    let by_turns = "
        lane
        10 0 begin key=1 name=17 @tid=7
        20 0 begin key=2 name=18 @tid=7
        30 0 end key=1 @tid=7
        40 0 begin key=3 name=19 @tid=7
        50 0 end key=2 @tid=7
        60 0 end key=3 @tid=7";
    expect![[r#"
        thread 7, depth 0: 10 17 begins; 30 17 ends; 40 19 begins; 60 19 ends;
        thread 7, depth 1: 20 18 begins; 50 18 ends;
    "#]]
    .assert_eq(&drawn(by_turns));
}

/// The one of its own thread comes first, then the last one that began; a lane stands for its
/// thread where no event says it.
#[test]
fn what_ends_elsewhere_ends_where_it_began() {
    let script = "
        lane
        lane
        10 0 begin key=1 name=a @tid=7
        20 1 begin key=1 name=b @tid=8
        30 1 end key=1 @tid=8
        40 1 end key=1 @tid=9
        50 0 begin key=2 name=c
        60 1 end key=2
        70 1 end key=2";
    // The second one has the key when the first one might end elsewhere: that end is not seen.
    expect![[r#"
        thread 7, depth 0: 10 a begins;
        thread 8, depth 0: 20 b begins; 30 b ends;
        lane 0, depth 0: 50 c begins; 60 c ends;
    "#]]
    .assert_eq(&drawn(script));
}

#[test]
fn where_events_are_missing_depths_come_back() {
    let lost = "
        lane hole=22..28
        5 0 end key=9 @tid=7
        10 0 begin key=1 name=loop @tid=7
        20 0 begin key=2 name=lost @tid=7
        30 0 begin key=3 name=seen @tid=7
        40 0 end key=1 @tid=7
        50 0 begin key=4 name=next @tid=7
        60 0 begin key=4 name=again @tid=7
        70 0 end key=3 @tid=7
        80 0 end key=4 @tid=7";
    expect![[r#"
        thread 7, depth 0: 10 loop begins; 40 loop ends; 50 next begins; 60 again begins; 60 next ends in doubt; 80 again ends;
        thread 7, depth 1: 20 lost begins; 40 lost ends in doubt;
        thread 7, depth 2: 30 seen begins; 70 seen ends;
    "#]]
    .assert_eq(&sorted(&drawn(lost)));
    let functions = "
        lane
        10 0 begin name=17 within=7 @tid=7
        20 0 begin name=18 within=7 @tid=7
        30 0 begin name=18 within=7 @tid=7
        40 0 end name=18 within=7 @tid=7
        50 0 end name=19 within=7 @tid=7
        60 0 end name=17 within=7 @tid=7
        70 0 begin name=17 within=7 @tid=7
        80 0 end within=7 @tid=7";
    expect![[r#"
        thread 7, depth 0: 10 17 begins; 60 17 ends; 70 17 begins; 80 17 ends;
        thread 7, depth 1: 20 18 begins; 60 18 ends in doubt;
        thread 7, depth 2: 30 18 begins; 40 18 ends;
    "#]]
    .assert_eq(&drawn(functions));
}

/// Cells of one bucket are in the order of values, which are numbers without a fixed order: here
/// they are in the order of words.
fn sorted(lines: &str) -> String {
    let sort = |line: &str| {
        let (track, cells) = line.split_once(": ").unwrap();
        let mut cells: Vec<&str> = cells.split_terminator(';').map(str::trim).collect();
        cells.sort_unstable();
        format!("{track}: {};\n", cells.join("; "))
    };
    lines.lines().map(sort).collect()
}

#[test]
fn depths_do_not_grow_for_ever() {
    let mut script = String::from("lane\n");
    for key in 0..200 {
        script += &format!("{} 0 begin key={key} name={key} @tid=7\n", 10 + key);
    }
    let script = Script::parse(&script);
    let (nodes, _) = nodes(&script, &[50, 150]);
    let tracks = said(&nodes.iter().collect::<Vec<_>>(), 0);
    let begins = |cells: &Vec<TrackCell>| cells.iter().map(|cell| cell.begins).sum::<u32>();
    assert_eq!(tracks.len(), usize::from(DEPTHS));
    assert_eq!(tracks.values().map(begins).collect::<Vec<_>>(), [vec![1; 63], vec![137]].concat());
}

/// Begins and ends in any order, with and without keys, on two threads and without any, some lost.
fn random_script(random: &mut Random) -> String {
    let mut script = String::from("lane hole=300..320 hole=500..501\nlane\n");
    let mut time = 0;
    for _ in 0..120 {
        time += random.below(3) * random.below(8);
        let (lane, key) = (random.below(2), random.below(5));
        let thread = ["@tid=7", "@tid=8", ""][random.below(5).min(2)];
        let key = if key < 4 { format!("key={key}") } else { format!("name={}", random.below(2)) };
        let role = ["begin", "end"][random.below(2)];
        script += &format!("{time} {lane} {role} {key} {thread}\n");
    }
    script
}

/// Cut anywhere, the same; also a chunk that is read alone.
#[test]
fn any_cut_draws_the_same() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let script = Script::parse(&random_script(&mut random));
        let (whole, _) = nodes(&script, &[]);
        let level = random.below(7) as u8;
        for _ in 0..5 {
            let cuts = script.random_cuts(&mut random);
            let (parts, _) = nodes(&script, &cuts);
            let parts: Vec<&TimelineNode> = parts.iter().collect();
            assert_eq!(said(&parts, level), said(&[&whole[0]], level), "{seed}: cut at {cuts:?}");
        }
    }
}

/// Without losses, the drawn durations are those of a stack: as many begin and last as long.
#[test]
fn what_is_nested_is_drawn_as_a_stack_says() {
    for seed in 0..50 {
        let random = &mut Random(seed);
        let (mut script, mut stack, mut time) = (String::from("lane\n"), Vec::new(), 1);
        let mut expected: BTreeMap<u8, Vec<(i64, i64)>> = BTreeMap::new();
        for number in 0..150 {
            time += 1 + random.below(9) as i64;
            if stack.len() < 9 && random.below(2) == 0 {
                script += &format!("{time} 0 begin key={number} name={number} @tid=7\n");
                stack.push((time, number));
            } else if let Some((begin, number)) = stack.pop() {
                script += &format!("{time} 0 end key={number} @tid=7\n");
                expected.entry(stack.len() as u8).or_default().push((begin, time));
            }
        }
        for (depth, (begin, _)) in stack.iter().enumerate() {
            expected.entry(depth as u8).or_default().push((*begin, i64::MAX));
        }
        let script = Script::parse(&script);
        let (nodes, _) = nodes(&script, &script.random_cuts(random));
        let cells = said(&nodes.iter().collect::<Vec<_>>(), 0);
        let runs = |(key, cells): (u64, Vec<TrackCell>)| {
            let times = |net: i32| cells.iter().filter(move |cell| cell.net == net).map(|cell| cell.bucket as i64);
            let ends = times(-1).chain([i64::MAX]);
            (TrackKey::of(key).unwrap().track, times(1).zip(ends).collect::<Vec<_>>())
        };
        assert_eq!(cells.into_iter().map(runs).collect::<BTreeMap<_, _>>(), expected, "{seed}");
    }
}
