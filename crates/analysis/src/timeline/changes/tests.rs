//! Declared states: runs against a replay by hand, however the trace is cut, read in order or alone.

use std::collections::BTreeMap;

use super::*;
use crate::Wishes;
use crate::testing::{Random, Script};
use crate::timeline::Called;
use crate::timeline::cells::{Level, TrackCell, add_up};
use crate::timeline::node::TimelineNode;
use crate::timeline::{Thing, TimelineAnalysis, TrackKey};

/// A component's states, with their begins; `None`: in no state.
type Told = Vec<(i64, Option<u64>)>;

/// The nodes of a script's chunks, in buckets of a level, each sealed in order and alone.
fn nodes(script: &Script, cuts: &[i64], level: Level) -> Vec<TimelineNode> {
    let wishes = Wishes::default();
    let timeline = TimelineAnalysis::new(&script.setup(&wishes), 0);
    let reading = timeline.reading(level);
    let (mut before, mut nodes): (_, Vec<TimelineNode>) = (timeline.begin(), Vec::new());
    for (place, mut part) in script.parts(&reading, cuts, false).into_iter().enumerate() {
        timeline.settle(&mut part);
        let begin = place.checked_sub(1).map_or(0, |before| cuts[before]);
        let alone = script.sent(&reading, &part);
        let now = |key: u64| Some((key, nodes.iter().rev().find_map(|node| node.track(key))?.last));
        let known: HashMap<u64, _> = timeline.asked(&alone).into_iter().filter_map(now).collect();
        let mut known = timeline.before(&alone, &known);
        let alone = timeline.node(timeline.seal(&mut known, alone, begin), level, true);
        let sealed = timeline.seal(&mut before, part, begin);
        before = script.sent(&reading, &before);
        nodes.push(timeline.node(sealed, level, true));
        assert_eq!(cells(&[&alone]), cells(&[&nodes[place]]), "cut at {cuts:?}");
    }
    nodes
}

/// The cells of a component, and its last state.
type Said = (Vec<TrackCell>, Option<(u64, i64)>);

/// Those of all components.
fn cells(nodes: &[&TimelineNode]) -> BTreeMap<u64, Said> {
    let mut all: BTreeMap<u64, Said> = BTreeMap::new();
    for node in nodes {
        let is_component = |key: u64| TrackKey::of(key).is_some_and(|key| key.thing == Thing::Component);
        for track in node.tracks().filter(|track| is_component(track.key)) {
            let (cells, last) = all.entry(track.key).or_default();
            cells.extend(track.cells(node.level()));
            *last = track.last;
        }
    }
    all.values_mut().for_each(|(cells, _)| add_up(cells));
    all
}

/// Expected cells of a component in buckets of a level, found by going from one change to the next;
/// up to the bucket of the last one.
fn replayed(told: &Told, level: Level) -> Vec<TrackCell> {
    let mut cells = Vec::new();
    let mut edge = |at: i64, value: u64, (begins, net): (u32, i32)| {
        let bucket = at.cast_unsigned() >> level;
        let rest = (((bucket + 1) << level) as i64) - at;
        cells.push(TrackCell { bucket, value, begins, net, time: i64::from(net) * rest });
    };
    let mut now = None;
    for &(at, next) in told {
        if let Some(was) = now {
            edge(at, was, (0, -1));
        }
        if let Some(value) = next {
            edge(at, value, (1, 1));
        }
        now = next;
    }
    add_up(&mut cells);
    cells
}

#[test]
fn states_are_what_somebody_replays_by_hand() {
    for seed in 0..40 {
        let random = &mut Random(seed);
        let (mut script, mut time) = (String::from("lane\nlane\n"), 5);
        let mut told: BTreeMap<(usize, usize, usize), Told> = BTreeMap::new();
        for _ in 0..150 {
            time += 1 + (random.below(3) * random.below(9)) as i64;
            let (name, pid, group) = (random.below(2), random.below(2), random.below(2));
            let state = Some(random.below(4) as u64).filter(|state| *state > 0);
            let says = state.map_or_else(String::new, |state| format!("state={state}"));
            script += &format!("{time} {} state name=c{name} within={pid} group=g{group} {says}\n", random.below(2));
            // A number below 2^62 stands for itself.
            told.entry((name, pid, group)).or_default().push((time, state.map(|state| state | 1 << 62)));
        }
        let script = Script::parse(&script);
        let cuts = script.random_cuts(random);
        // Up to 64 ns, times are kept as they are.
        for level in [0, 1, 3, 6] {
            let nodes = nodes(&script, &cuts, level);
            let found = cells(&nodes.iter().collect::<Vec<_>>());
            let mut found: Vec<Vec<TrackCell>> = found.into_values().map(|(cells, _)| cells).collect();
            let mut expected: Vec<Vec<TrackCell>> = told.values().map(|told| replayed(told, level)).collect();
            let order = |cells: &Vec<TrackCell>| format!("{cells:?}");
            found.sort_by_key(order);
            expected.sort_by_key(order);
            assert_eq!(found, expected, "{seed}, level {level}, cut at {cuts:?}");
        }
    }
}

/// State of a component behind a chunk, and since when; nothing where nothing was declared last.
#[test]
fn the_last_state_is_known() {
    let script = Script::parse("lane\n10 0 state name=a state=1\n20 0 state name=a state=1\n30 0 state name=a");
    let last = |cuts: &[i64], count: usize| {
        let nodes = nodes(&script, cuts, 0);
        let found = cells(&nodes[..count].iter().collect::<Vec<_>>());
        found.into_values().next().map(|(_, last)| last)
    };
    assert_eq!(last(&[10, 25], 1), None);
    assert_eq!(last(&[10, 25], 2), Some(Some((1 | 1 << 62, 20))));
    assert_eq!(last(&[10, 25], 3), Some(None));
    // A state that is set again ends and begins.
    let found = cells(&nodes(&script, &[15], 0).iter().collect::<Vec<_>>());
    let (cells, _) = found.into_values().next().unwrap();
    let edges: Vec<(u64, u32, i32)> = cells.iter().map(|cell| (cell.bucket, cell.begins, cell.net)).collect();
    assert_eq!(edges, [(10, 1, 1), (20, 1, 0), (30, 0, -1)]);
}

/// Components are identified by their names, and so are states.
#[test]
fn components_have_names() {
    let script =
        Script::parse("lane\n10 0 state name=driver within=7 group=nic state=ready\n11 0 state name=4 state=-3");
    let wishes = Wishes::default();
    let timeline = TimelineAnalysis::new(&script.setup(&wishes), 0);
    let state = script.parts(&timeline.reading(0), &[], false).pop().unwrap();
    let told = |called: &Called| format!("{} {:?} {:?}", called.name, called.within, called.group);
    let mut found: Vec<_> = state.called().values().map(told).collect();
    found.sort_unstable();
    assert_eq!(found, ["4 None None", r#"driver Some("7") Some("nic")"#]);
    let mut names: Vec<&String> = state.slice_names().values().collect();
    names.sort_unstable();
    assert_eq!(names, ["-3", "ready"]);
}
