//! Messages against a replay by hand, however the trace is cut, read in order or alone.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::*;
use crate::Wishes;
use crate::testing::{Random, Script};
use crate::timeline::cells::{Level, TrackCell, add_up};
use crate::timeline::node::TimelineNode;
use crate::timeline::{TimelineAnalysis, TrackKey};

/// The nodes of a script's chunks, in buckets of a level, each sealed in order and alone, and the ways that messages went.
fn nodes(script: &Script, cuts: &[i64], level: Level) -> (Vec<TimelineNode>, BTreeMap<u64, Route>) {
    let wishes = Wishes::default();
    let timeline = TimelineAnalysis::new(&script.setup(&wishes), 0);
    let reading = timeline.reading(level);
    let (mut before, mut nodes): (_, Vec<TimelineNode>) = (timeline.begin(), Vec::new());
    let mut routes = BTreeMap::new();
    for (place, mut part) in script.parts(&reading, cuts, false).into_iter().enumerate() {
        timeline.settle(&mut part);
        let begin = place.checked_sub(1).map_or(0, |before| cuts[before]);
        let alone = script.sent(&reading, &part);
        let now = |key: u64| Some((key, nodes.iter().rev().find_map(|node| node.track(key))?.last));
        let mut known: HashMap<u64, _> = timeline.asked(&alone).into_iter().filter_map(now).collect();
        known.extend(timeline.asked_next(&known).into_iter().filter_map(now));
        let mut known = timeline.before(&alone, &known);
        let alone = timeline.node(timeline.seal(&mut known, alone, begin), level, true);
        let sealed = timeline.seal(&mut before, part, begin);
        before = script.sent(&reading, &before);
        routes.extend(sealed.routes().map(|route| (route.value(), route)));
        nodes.push(timeline.node(sealed, level, true));
        assert_eq!(cells(&[alone]), cells(&nodes[place..]), "cut at {cuts:?}");
    }
    (nodes, routes)
}

/// The cells of all messages.
fn cells(nodes: &[TimelineNode]) -> Vec<TrackCell> {
    let is_messages = |key: u64| TrackKey::of(key).is_some_and(|key| key.thing == Thing::Messages);
    let of_node = |node: &TimelineNode| -> Vec<TrackCell> {
        node.tracks().filter(|track| is_messages(track.key)).flat_map(|track| track.cells(node.level())).collect()
    };
    let mut all: Vec<TrackCell> = nodes.iter().flat_map(of_node).collect();
    add_up(&mut all);
    all
}

/// A message: when it leaves and comes, from which thread to which.
type Found = (i64, i64, i32, i32);

/// A bucket, from which thread to which, whether it is received first, and the group.
type RouteIn = (u64, i32, i32, bool, u64);

/// Something that is sent or received: when, by which thread, with which key and group, and how many are received.
type Said = (i64, usize, (usize, usize), usize);

/// A simple search: each receipt belongs to the oldest sent message that is not received yet; if there is none, it
/// waits for its send for so long.
fn replayed(said: &[Said], early_ns: i64) -> Vec<Found> {
    let (mut on_their_way, mut waiting, mut found) = (Vec::<&Said>::new(), Vec::<&Said>::new(), Vec::new());
    for one in said {
        let (time, thread, key, receives) = *one;
        waiting.retain(|early| time - early.0 <= early_ns);
        let early = waiting.iter().position(|early| early.2 == key && receives == 0);
        if let Some(early) = early.map(|place| waiting.remove(place)) {
            found.push((time, early.0, thread as i32, early.1 as i32));
        } else if receives == 0 {
            on_their_way.push(one);
        } else if !on_their_way.iter().any(|sent| sent.2 == key) {
            waiting.push(one);
        }
        for _ in 0..receives {
            let Some(place) = on_their_way.iter().position(|sent| sent.2 == key) else { break };
            let sent = on_their_way.remove(place);
            found.push((sent.0, time, sent.1 as i32, thread as i32));
        }
    }
    found
}

#[test]
fn messages_are_what_somebody_finds_by_hand() {
    for (seed, early_ns) in (0..40).flat_map(|seed| [(seed, 0), (seed, 60)]) {
        let random = &mut Random(seed);
        let (mut script, mut time, mut said) = (String::from("lane\nlane\n"), 5, Vec::new());
        for _ in 0..150 {
            // At one time, sent messages come first: another test covers that.
            time += 1 + (random.below(3) * random.below(9)) as i64;
            let (thread, key, receives) = (1 + random.below(4), (random.below(3), random.below(2)), random.below(3));
            let role = if receives == 0 { "send" } else { "receive" };
            let count = if receives == 0 { String::new() } else { format!("count={receives} early={early_ns}") };
            let (lane, (id, group)) = (random.below(2), key);
            writeln!(script, "{time} {lane} {role} key={id} group=g{group} {count} @tid={thread}").unwrap();
            said.push((time, thread, key, receives));
        }
        let (script, expected) = (Script::parse(&script), replayed(&said, early_ns));
        assert!(expected.len() > 20, "{}", expected.len());
        let early = expected.iter().filter(|(sent, received, ..)| sent > received).count();
        assert_eq!(early > 0, early_ns > 0, "{early} messages are received first");
        let cuts = script.random_cuts(random);
        // Up to 64 ns, times are kept as they are.
        for level in [0, 1, 3, 6] {
            let (nodes, routes) = nodes(&script, &cuts, level);
            let mut all = Vec::new();
            for cell in cells(&nodes) {
                let Route { from, to, is_early, .. } = routes[&cell.value];
                let [from, to] = [from, to].map(|track| TrackKey::of(track).unwrap().number);
                all.push((cell.bucket, from, to, is_early, cell.begins, cell.time));
            }
            let mut sums: BTreeMap<RouteIn, (u32, i64)> = BTreeMap::new();
            for &(sent, received, from, to) in &expected {
                let group = said.iter().find(|one| one.0 == sent).unwrap().2.1 as u64;
                let (end, is_early) = (sent.max(received), received < sent);
                let sum = sums.entry((end.cast_unsigned() >> level, from, to, is_early, group)).or_default();
                *sum = (sum.0 + 1, sum.1 + (received - sent).abs());
            }
            let mut sums: Vec<_> = sums
                .into_iter()
                .map(|((at, from, to, is_early, _), (n, took))| (at, from, to, is_early, n, took))
                .collect();
            all.sort_unstable();
            sums.sort_unstable();
            assert_eq!(all, sums, "{seed}, level {level}, cut at {cuts:?}");
        }
    }
}

/// A message that is sent at the time of its receipt has arrived, whichever lane comes first.
#[test]
fn what_takes_no_time_arrives() {
    let script = Script::parse("lane\nlane\n10 0 receive key=1 @tid=7\n10 1 send key=1 @tid=8");
    let (nodes, routes) = nodes(&script, &[], 0);
    let [cell] = cells(&nodes)[..] else { panic!("{:?}", cells(&nodes)) };
    assert_eq!((cell.bucket, cell.begins, cell.time), (10, 1, 0));
    let [from, to] = [routes[&cell.value].from, routes[&cell.value].to].map(|track| TrackKey::of(track).unwrap());
    assert_eq!((from.thing, from.number, to.thing, to.number), (Thing::ThreadEvents, 8, Thing::ThreadEvents, 7));
}

/// Where events name no thread, messages come from the lane.
#[test]
fn lanes_send_where_nobody_tells_of_threads() {
    let script = Script::parse("lane\nlane host=1\n10 0 send key=1\n20 0 receive key=1\n30 1 receive key=1");
    let (nodes, routes) = nodes(&script, &[], 0);
    // A key is a machine's.
    let [cell] = cells(&nodes)[..] else { panic!("{:?}", cells(&nodes)) };
    assert_eq!((cell.bucket, cell.time), (20, 10));
    let from = TrackKey::of(routes[&cell.value].from).unwrap();
    assert_eq!((from.thing, from.number), (Thing::LaneEvents, 0));
}

/// Messages that are never received do not stay for ever: of a key the last ones, of all together
/// the latest.
#[test]
fn what_nobody_receives_is_given_up() {
    let mut messages = PendingMessages::default();
    let post = |time: i64, key: u64, receives: u32| Post { time, key, track: 1, name: 0, receives, early_ns: 0 };
    const SENT: i64 = QUEUE_MAX as i64 + 68;
    let of_one_key: Vec<Post> = (0..SENT).map(|time| post(time, 7, 0)).collect();
    messages.follow(&of_one_key);
    let sequel = messages.follow(&[post(SENT, 7, u32::MAX)]);
    let begins: Vec<i64> = sequel.arrivals.iter().map(|arrival| arrival.begin).collect();
    assert_eq!(begins, (SENT - QUEUE_MAX as i64..SENT).collect::<Vec<i64>>());
    assert!(messages.0.is_empty());

    let many = 3 * OPEN_MAX as i64;
    for half in [0..many / 2, many / 2..many] {
        let sent: Vec<Post> = half.map(|key| post(10_000 + key, key.cast_unsigned(), 0)).collect();
        messages.follow(&sent);
        assert!(messages.0.len() <= OPEN_MAX, "{}", messages.0.len());
    }
    // A chunk that is read alone reports that they are gone.
    let last = messages.follow(&[post(1_000_000, 0, 1), post(1_000_001, many.cast_unsigned() - 1, 1)]);
    assert_eq!(last.arrivals.iter().map(|arrival| arrival.end).collect::<Vec<_>>(), [1_000_001]);
}
