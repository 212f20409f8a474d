//! Timelines of some events of made traces, in one chunk and in many, against analyses of the same
//! events, and a replay of these as they are printed.

use kymo_analysis::timeline::bin;
use kymo_analysis::{Cell, Wishes};
use serde_json::Value;

use super::*;
use crate::Filter;
use crate::answers::analyse::tests::kind;
use crate::answers::analyse::tests::{made, tiny_trace};
use crate::print::{PrintFormat, PrintOptions};

/// When something ends, and in which bin its duration is.
type Lasted = Vec<(i64, u32)>;

fn selections() -> Vec<Selection> {
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let of = |names: &[&str]| Selection { events: named(names), ..Selection::default() };
    let filter = Filter::parse("prev_tid >= 0 || tid <= 2 || ret >= 4 || fd != 3 || irq < 2").unwrap();
    vec![
        of(&["syscall_*"]),
        of(&["syscall_*", "sched_switch"]),
        of(&["syscall_entry_*"]),
        of(&["syscall_*_read", "sched_process_*"]),
        of(&["sched_*"]),
        of(&["sched_wakeup", "sched_switch"]),
        of(&["sched_waking", "irq_*"]),
        Selection { filter: Some(filter), ..Selection::default() },
    ]
}

/// A made trace of a kernel, and its folder.
fn made_trace(seed: u64) -> (tempfile::TempDir, Session) {
    let folder = tempfile::tempdir().unwrap();
    tiny_trace::write(folder.path(), &made::recorded(&mut kymo_script::Random(seed)));
    let session = Session::open(&[folder.path().to_owned()], &OpenOptions::default()).unwrap();
    (folder, session)
}

/// The events that are selected, as they are printed.
fn printed(session: &Session, selection: &Selection) -> Vec<Value> {
    let mut lines = Vec::new();
    let options = PrintOptions { format: PrintFormat::Json, selection: selection.clone(), ..PrintOptions::default() };
    session.print(&options, &mut lines, &Progress::default()).unwrap();
    lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The longest ones by an analysis of the same events.
fn longest(session: &Session, name: &str, selection: &Selection) -> Vec<Vec<Cell>> {
    let wishes = Wishes { top: Some(1 << 20), ..Wishes::default() };
    let options = AnalysisOptions { selection: selection.clone(), wishes, ..AnalysisOptions::default() };
    let answer = session.ask(kind(name), &options, &Progress::default()).unwrap().answer;
    let class = if name == "syscalls" { "slowest" } else { "top" };
    answer.tables.into_iter().find(|table| table.class == class).map(|table| table.rows).unwrap_or_default()
}

/// How long calls take, interrupts and softirqs.
fn asked(session: &Session, selection: &Selection) -> BTreeMap<&'static str, Lasted> {
    let mut found = BTreeMap::<_, Lasted>::new();
    for row in longest(session, "syscalls", selection) {
        let Cell::TimeRange(Some(begin), Some(end)) = row[0] else { panic!("{row:?}") };
        found.entry("calls").or_default().push((end, bin(begin.abs_diff(end))));
    }
    for row in longest(session, "irq", selection) {
        let [Cell::Timestamp(begin), Cell::Duration(lasts), _, Cell::Irq { is_hard, .. }] = &row[..] else {
            panic!("{row:?}")
        };
        let lasts = lasts.value;
        let name = if *is_hard { "irqs" } else { "softirqs" };
        found.entry(name).or_default().push((begin.saturating_add_unsigned(lasts), bin(lasts)));
    }
    found
}

/// How long threads wait for a CPU, if both are selected: that they could run, and that they do.
fn waited(events: &[Value]) -> Lasted {
    /// State of a thread: waiting for a CPU since a time, or another one.
    #[derive(Clone, Copy)]
    enum Does {
        Waits(i64),
        Sleeps,
        Runs,
    }
    let (mut threads, mut found) = (BTreeMap::new(), Lasted::new());
    for event in events {
        let time = event["time"].as_i64().unwrap();
        let number = |field: &str| event["payload"][field].as_i64().unwrap();
        match event["event"].as_str().unwrap() {
            "sched_switch" => {
                let (prev, next, state) = (number("prev_tid"), number("next_tid"), number("prev_state"));
                match state {
                    0 => threads.insert(prev, Does::Waits(time)),
                    64 => threads.remove(&prev),
                    _ => threads.insert(prev, Does::Sleeps),
                };
                if let Some(Does::Waits(since)) = threads.insert(next, Does::Runs).filter(|_| next != 0) {
                    found.push((time, bin(since.abs_diff(time))));
                }
            }
            "sched_waking" | "sched_wakeup" => {
                let thread = threads.entry(number("tid")).or_insert(Does::Sleeps);
                if matches!(thread, Does::Sleeps) {
                    *thread = Does::Waits(time);
                }
            }
            "sched_process_fork" => drop(threads.insert(number("child_tid"), Does::Waits(time))),
            _ => {}
        }
    }
    found
}

fn built_of(folder: &Path, slice_bytes: Option<u64>, selection: &Selection) -> [Arc<Timeline>; 2] {
    let all = built(folder, slice_bytes, None);
    let selected = all.selected(selection.clone()).unwrap();
    selected.start();
    selected.wait(&Progress::default()).unwrap();
    [all, selected]
}

/// Items of a track in all of the traces; none where there is no such track.
fn items(timeline: &Timeline, id: &str, level: Level) -> Option<Items> {
    let number = timeline.catalogue(0, 0).tracks.into_iter().find(|track| track.id == id)?.number;
    let count = (timeline.span.0.abs_diff(timeline.span.1) >> level) as u32 + 1;
    let tiles =
        timeline.tiles(&TileQuestion { level, first: 0, count, tracks: vec![number] }, &Progress::default()).unwrap();
    assert_eq!(tiles.spans, [TileSpan { begin: 0, end: count, quality: Quality::Exact }]);
    Some(tiles.tracks.into_iter().next()?.items)
}

/// The timeline's heat is the expected one, at every level; returns the amounts, by kinds. Calls may be missing if not
/// all switches are selected.
fn agree(timeline: &Timeline, expected: &BTreeMap<&str, Lasted>, knows_threads: bool, place: &str) -> [usize; 4] {
    ["calls", "irqs", "waiting", "softirqs"].map(|kind| {
        let Some(expected) = expected.get(kind) else { return 0 };
        for level in 0..=timeline.status().level_max {
            let mut sums = BTreeMap::new();
            for (end, bin) in expected {
                let bucket = timeline.span.0.abs_diff(*end) >> level;
                *sums.entry((bucket as u32, *bin)).or_insert(0) += 1;
            }
            let found = match items(timeline, &format!("latency/0/{kind}"), level) {
                Some(Items::Heat(heat)) => heat.iter().map(|at| ((at.bucket, at.bin), at.count)).collect(),
                None => BTreeMap::new(),
                other => panic!("{other:?}"),
            };
            // Analyses read switches always, and so know the thread of each call; a timeline of some events may not.
            let is_there = |(at, count): (&(u32, u32), &u32)| sums.get(at).is_some_and(|sum| count <= sum);
            match kind == "calls" && !knows_threads {
                true => assert!(found.iter().all(is_there), "{kind} at level {level}, {place}: {found:?} {sums:?}"),
                false => assert_eq!(found, sums, "{kind} at level {level}, {place}"),
            }
        }
        expected.len()
    })
}

fn add(sums: &mut [usize; 4], more: [usize; 4]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

#[test]
fn durations_of_some_events_are_those_that_analyses_tell_of_them() {
    let mut compared = [0; 4];
    for seed in 0..24 {
        let (folder, session) = made_trace(seed);
        let selections = selections();
        let selection = &selections[seed as usize % selections.len()];
        let mut expected = asked(&session, selection);
        expected.insert("waiting", waited(&printed(&session, selection)));
        for kind in ["calls", "irqs", "softirqs"] {
            expected.entry(kind).or_default();
        }
        // A span without duration does not count.
        expected.values_mut().for_each(|all| all.retain(|(_, bin)| *bin > 0));
        for slice_bytes in [None, Some(1), Some(700)] {
            let [_, selected] = built_of(folder.path(), slice_bytes, selection);
            let place = format!("in chunks of {slice_bytes:?}, seed {seed}, of {:?}", selection.events);
            let knows_threads =
                selection.filter.is_none() && selection.events.iter().any(|name| name == "sched_switch");
            add(&mut compared, agree(&selected, &expected, knows_threads, &place));
        }
    }
    assert!(compared.iter().zip([100, 100, 100, 0]).all(|(count, least)| *count > least), "{compared:?}");
}

#[test]
fn durations_of_all_events_are_those_that_analyses_tell_of_them() {
    let mut compared = [0; 4];
    for seed in 0..24 {
        let (folder, session) = made_trace(seed);
        let mut expected = asked(&session, &Selection::default());
        // Softirqs of a CPU that overlap, as some of their ends are missing, are told apart in other ways there.
        expected.remove("softirqs");
        expected.insert("waiting", waited(&printed(&session, &Selection::default())));
        expected.values_mut().for_each(|all| all.retain(|(_, bin)| *bin > 0));
        for slice_bytes in [None, Some(1), Some(700)] {
            let timeline = built(folder.path(), slice_bytes, None);
            let place = format!("in chunks of {slice_bytes:?}, seed {seed}");
            add(&mut compared, agree(&timeline, &expected, true, &place));
        }
    }
    assert!(compared[..3].iter().all(|count| *count > 100), "{compared:?}");
}

/// Wakeups of selected events are there, and lead to the time when the woken thread runs, by all
/// events.
#[test]
fn wakeups_of_some_events_are_among_those_of_all() {
    let (mut compared, mut known) = (0, 0);
    for seed in 0..24 {
        let (folder, session) = made_trace(seed);
        let name = ["sched_waking", "sched_wakeup"][seed as usize % 2];
        let filter = Some(Filter::parse(&format!("tid > {}", seed % 3)).unwrap());
        let selection = Selection { events: vec![name.to_owned()], filter, ..Selection::default() };
        let expected: Vec<i64> =
            printed(&session, &selection).iter().map(|event| event["time"].as_i64().unwrap()).collect();
        for slice_bytes in [None, Some(1), Some(700)] {
            let [all, selected] = built_of(folder.path(), slice_bytes, &selection);
            for level in 0..=selected.status().level_max {
                let mut sums = BTreeMap::new();
                for at in &expected {
                    *sums.entry(selected.span.0.abs_diff(*at) >> level).or_insert(0) += 1;
                }
                let found = items(&selected, "wakeups/0", level);
                let mut counts = BTreeMap::new();
                match &found {
                    Some(Items::Arrows(buckets)) => {
                        buckets.iter().for_each(|at| *counts.entry(at.bucket.into()).or_insert(0) += at.count);
                    }
                    Some(Items::ExactArrows(arrows)) => {
                        let bucket = |at: &ExactArrow| at.begin.cast_unsigned() >> level;
                        arrows.iter().for_each(|at| *counts.entry(bucket(at)).or_insert(0) += 1);
                    }
                    None => {}
                    other => panic!("{other:?}"),
                }
                assert_eq!(counts, sums, "seed {seed}, {slice_bytes:?}: level {level}");
                if let (Some(Items::ExactArrows(some)), Some(Items::ExactArrows(all))) =
                    (&found, items(&all, "wakeups/0", level))
                {
                    // Where many chunks lie in a window, not all of them are read for that.
                    let is_told = |arrow: &&ExactArrow| slice_bytes.is_none() || arrow.flags & END_UNKNOWN == 0;
                    assert!(some.iter().filter(is_told).all(|arrow| all.contains(arrow)), "{some:?} {all:?}");
                    compared += some.len();
                    known += some.iter().filter(|arrow| arrow.flags & END_UNKNOWN == 0).count();
                }
            }
        }
    }
    assert!(compared > 400 && known * 10 > compared * 9, "{known} of {compared}");
}
