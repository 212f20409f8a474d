//! Own analyses on the timeline: what their rules say of tracks, in chunks that are cut anywhere.

use std::collections::BTreeMap;

use super::*;
use crate::roles::{EventRole, rule};
use crate::testing::{Random, Script};
use crate::timeline::cells::add_up;
use crate::timeline::numbers::{buckets, number};
use crate::timeline::{TimelineAnalysis, TrackKey};
use crate::{BoundClass, FieldSlot, Wishes};

const SERVER: &str = r#"
    name = "server"
    [[pairs]]
    name = "request"
    begin = "begin"
    end = "end"
    [[states]]
    name = "worker"
    key = ["pid", "tid"]
    set = [{ event = "busy", to = "busy" }, { event = "phase", to = { field = "phase" } }, { event = "gone" }]
    [[counters]]
    name = "queue"
    unit = "requests"
    change = [{ event = "put", add = 1 }, { event = "take", add = { field = "count" } }, { event = "is", to = { field = "count" } }]
"#;

fn own() -> DeclaredTracks {
    DeclaredTracks::new(&[
        AnalysisDeclaration::parse("name = 'other'\n[[counters]]\nname = 'x'\nchange = { event = 'e', add = 1 }")
            .unwrap(),
        AnalysisDeclaration::parse(SERVER).unwrap(),
    ])
}

/// A script whose events fulfill a rule each, by its number: a role that scripts do not name.
fn script(events: &[(i64, usize, Vec<FieldSlot>)]) -> Script {
    let mut script = Script::parse("lane\nlane");
    for (at, lane, slots) in events {
        let bound = crate::BoundRole { role: EventRole::Rule, slots: slots.clone() };
        script.events.push((*at, *lane, script.classes.len()));
        script.classes.push(BoundClass {
            name: "e".into(),
            roles: vec![bound],
            is_selected: true,
            tid_path: None,
            context: Default::default(),
            extra: Vec::new(),
        });
    }
    script
}

fn fulfils(number: usize, value: Option<FieldSlot>, key: &[i64]) -> Vec<FieldSlot> {
    let mut slots = vec![FieldSlot::Absent; EventRole::Rule.facts().fields.len()];
    slots[rule::NUMBER] = FieldSlot::Integer(number as i64);
    slots[rule::VALUE] = value.unwrap_or(FieldSlot::Absent);
    for (place, key) in key.iter().enumerate() {
        slots[rule::KEY_1 + place] = FieldSlot::Integer(*key);
    }
    slots
}

#[test]
fn rules_are_numbered_through_all_files_without_pairs() {
    let own = own();
    let mapping = own.mapping();
    let events = |section: &crate::mapping::Section| format!("{:?}", section.events);
    let places = ["e", "busy", "phase", "gone", "put", "take", "is"];
    assert_eq!(mapping.sections.len(), places.len());
    for (place, (section, event)) in mapping.sections.iter().zip(places).enumerate() {
        assert_eq!(section.fields[rule::NUMBER], [crate::mapping::ValueSource::Integer(place as i64)]);
        assert!(events(section).contains(event), "{event}: {}", events(section));
    }
    assert!(!own.is_empty() && DeclaredTracks::new(&[]).is_empty());
}

/// A queue that is changed and set at random, against a sum.
#[test]
fn counters_are_sums_however_the_trace_is_cut() {
    for seed in 0..20 {
        let random = &mut Random(seed);
        let (mut events, mut time, mut sum) = (Vec::new(), 3, 0i64);
        let mut expected: Vec<(i64, f64)> = Vec::new();
        for _ in 0..80 {
            time += 1 + random.below(9) as i64;
            let count = random.below(50) as i64 - 20;
            let (number, told) = [(4, 1), (5, count), (6, count)][random.below(3)];
            sum = if number == 6 { count } else { sum + told };
            events.push((time, random.below(2), fulfils(number, Some(FieldSlot::Integer(told)), &[])));
            expected.push((time, sum as f64));
        }
        let script = script(&events);
        let cuts = script.random_cuts(random);
        let wishes = Wishes::default();
        let timeline = TimelineAnalysis::new(&script.setup(&wishes), 0).with_own(own());
        let reading = timeline.reading(0);
        let (mut before, mut cells) = (timeline.begin(), Vec::new());
        for (place, mut part) in script.parts(&reading, &cuts, false).into_iter().enumerate() {
            timeline.settle(&mut part);
            let begin = place.checked_sub(1).map_or(0, |before| cuts[before]);
            let sealed = timeline.seal(&mut before, part, begin);
            let node = timeline.node(sealed, 0, true);
            let is_counter = |key: u64| TrackKey::of(key).is_some_and(|key| key.thing == Thing::Counter);
            cells.extend(
                node.tracks()
                    .filter(|track| is_counter(track.key))
                    .flat_map(|track| track.cells(0).collect::<Vec<_>>()),
            );
        }
        add_up(&mut cells);
        let found: Vec<(i64, f64)> =
            buckets(&cells, 0, None).map(|bucket| (bucket.bucket.cast_signed(), bucket.last)).collect();
        assert_eq!(found, expected, "{seed}, cut at {cuts:?}");
    }
}

#[test]
fn tracks_are_called_by_analysis_item_and_key() {
    let events = [
        (10, 0, fulfils(1, Some(FieldSlot::Text(b"busy".as_slice().into())), &[7, 12])),
        (20, 0, fulfils(2, Some(FieldSlot::Integer(3)), &[7, 12])),
        // Without one of its fields, an event does nothing.
        (30, 0, fulfils(2, None, &[7, 13])),
        (31, 0, fulfils(2, Some(FieldSlot::Integer(3)), &[7])),
        (40, 1, fulfils(3, None, &[7, 12])),
        (50, 1, fulfils(4, Some(FieldSlot::Integer(1)), &[])),
    ];
    let script = script(&events);
    let wishes = Wishes::default();
    let timeline = TimelineAnalysis::new(&script.setup(&wishes), 0).with_own(own());
    let mut state = script.parts(&timeline.reading(0), &[], false).pop().unwrap();
    timeline.settle(&mut state);
    let told = |called: &Called| (called.name.clone(), called.group.clone().unwrap(), called.unit.clone());
    let named: BTreeMap<u64, _> = state.called().iter().map(|(key, called)| (*key, told(called))).collect();
    let mut names: Vec<_> = named.values().cloned().collect();
    names.sort_unstable();
    let expected = [("queue", Some("requests")), ("worker 7, 12", None)];
    let expected = expected.map(|(name, unit)| (name.to_owned(), "server".to_owned(), unit.map(ToOwned::to_owned)));
    assert_eq!(names, expected);
    let node = timeline.node(timeline.seal(&mut timeline.begin(), state, 0), 0, true);
    let cells = |name: &str| {
        let (key, _) = named.iter().find(|(_, called)| called.0 == name).unwrap();
        node.track(*key).unwrap().cells(0).collect::<Vec<_>>()
    };
    let edges = |name: &str| cells(name).iter().map(|cell| (cell.bucket, cell.begins, cell.net)).collect::<Vec<_>>();
    let mut worker = edges("worker 7, 12");
    worker.sort_unstable();
    assert_eq!(worker, [(10, 1, 1), (20, 0, -1), (20, 1, 1), (40, 0, -1)]);
    assert_eq!(cells("queue").iter().map(|cell| number(cell.value)).collect::<Vec<_>>(), [1.0]);
}
