//! Traces that are shown piece by piece, as a recorder writes them: at each time the answers about
//! the time before are the answers about all of them in the end.

use std::io::Write;

use super::*;
use crate::answers::analyse::tests::{made, tiny_trace};
use crate::made_traces::Random;

/// A trace, and a folder that gets more and more of it.
struct Growing {
    whole: Arc<Session>,
    folder: tempfile::TempDir,
}

impl Growing {
    fn new(whole: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(whole.join("metadata"), folder.path().join("metadata")).unwrap();
        let whole = Session::open(&[whole.to_owned()], &OpenOptions::default()).unwrap();
        Self { whole: Arc::new(whole), folder }
    }

    /// All packets that begin before a time; `None`: all.
    fn reveal(&self, until: Option<i64>) {
        for (trace, stream) in self.whole.streams() {
            let begins = |row: &kymo_scan::PacketRow| stream.clock.unwrap().nanos_saturating(row.begin_cycles.unwrap());
            let rows = stream.packets.iter().take_while(|row| until.is_none_or(|until| begins(row) < until));
            let Some(end) = rows.last().map(|row| row.offset_bytes + row.total_bits / 8) else { continue };
            let file = trace.folder.stream(stream.files[0] as usize).path().to_owned();
            let bytes = std::fs::read(&file).unwrap();
            // Existing files stay as they are: a reader may use them.
            let path = self.folder.path().join(file.file_name().unwrap());
            let mut grown = std::fs::File::options().append(true).create(true).open(path).unwrap();
            let there = grown.metadata().unwrap().len() as usize;
            grown.write_all(&bytes[there.min(end as usize)..end as usize]).unwrap();
        }
    }

    fn session(&self, slice_bytes: Option<u64>) -> Arc<Session> {
        let options = OpenOptions { threads: 2, ..OpenOptions::default() };
        let mut session = Session::open(&[self.folder.path().to_owned()], &options).unwrap();
        session.slice_bytes = slice_bytes;
        Arc::new(session)
    }
}

fn build(timeline: &Arc<Timeline>) {
    timeline.start();
    timeline.wait(&Progress::default()).unwrap();
}

/// The same by stable keys: names of lanes, which have other numbers if they are met in another
/// order, and numbers of threads, because names change.
fn lasting(timeline: &Timeline, said: BTreeMap<(String, i64), Said>) -> BTreeMap<(String, i64), Said> {
    let tracks = timeline.catalogue(0, 0).tracks;
    let name = |id: String| match tracks.iter().find(|track| track.id == id && id.starts_with("events/")) {
        Some(lane) => lane.name.clone(),
        None => id,
    };
    let number = |label: String| match label.rfind(" (") {
        Some(at) if label.ends_with(')') => label[at + 1..].to_owned(),
        _ => label,
    };
    let renamed = |((id, bucket), said): ((String, i64), Said)| {
        ((name(id), bucket), Said { values: said.values.map(number), ..said })
    };
    said.into_iter().map(renamed).collect()
}

/// Answers about the whole buckets before a time, of both, at some levels.
fn compare(grown: &Timeline, whole: &Timeline, until: i64, random: &mut Random) {
    let level_max = whole.status().level_max;
    assert_eq!(grown.span, whole.span);
    for level in [1, 2, 4].map(|less| level_max.saturating_sub(less)).into_iter().chain([level_max / 2]) {
        let buckets = grown.span.0.abs_diff(until) >> level;
        let count = buckets.min(300);
        if count == 0 {
            continue;
        }
        let first = random.below(buckets - count + 1);
        let [told, expected] =
            [grown, whole].map(|timeline| lasting(timeline, said(timeline, level, (first, count as u32))));
        // Later events have tracks, too, that are empty here.
        let is_empty = |said: &Said| said.begins == 0 && said.values.iter().all(|value| value == "-");
        let keys = |said: &BTreeMap<(String, i64), Said>| -> Vec<(String, i64)> {
            said.iter().filter(|(_, said)| !is_empty(said)).map(|(key, _)| key.clone()).collect()
        };
        assert_eq!(keys(&told), keys(&expected), "level {level}, from {first}, until {until}");
        for (place, said) in told.iter().filter(|(_, said)| !is_empty(said)) {
            assert!(agrees(said, &expected[place]), "level {level}: {place:?}: {said:?}, {:?}", expected[place]);
        }
    }
}

/// Grows in steps of any length, sometimes before everything is built; then it is complete.
fn check(path: &Path, slice_bytes: u64, random: &mut Random) {
    let growing = Growing::new(path);
    let whole = built(path, None, None);
    let (begin, end) = whole.span;
    let step = begin.abs_diff(end) / (3 + random.below(12));
    let mut until = begin + 1 + random.below(step.max(1)) as i64;
    growing.reveal(Some(until));
    let session = growing.session(Some(slice_bytes));
    let mut timeline = session.growing_timeline(&TimelineOptions::default(), until).unwrap();
    let mut tracks = Vec::new();
    while until <= end {
        if !random.one_in(4) {
            build(&timeline);
            // The state before the first switch, for example, follows from it: at once as piece by
            // piece.
            let at_once = growing.session(None).growing_timeline(&TimelineOptions::default(), until).unwrap();
            build(&at_once);
            compare(&timeline, &at_once, until, random);
        } else if random.one_in(2) {
            timeline.start();
        }
        let told: Vec<String> = timeline.catalogue(0, 0).tracks.into_iter().map(|track| track.id).collect();
        assert_eq!(tracks[..], told[..tracks.len()], "tracks keep their numbers");
        tracks = told;
        assert_eq!(timeline.status().end_ns, until - 1);
        until += 1 + random.below(step.max(1)) as i64;
        growing.reveal(Some(until));
        // As a follower does if no file has grown.
        let is_same = random.one_in(3) && growing.session(None).bytes() == timeline.session.bytes();
        let session = if is_same { Arc::clone(&timeline.session) } else { growing.session(Some(slice_bytes)) };
        timeline = timeline.grown(&session, Some(until)).unwrap();
    }
    growing.reveal(None);
    let last = timeline.grown(&growing.session(Some(slice_bytes)), None).unwrap();
    build(&last);
    compare(&last, &whole, end + 1, random);
    assert_eq!(last.status().events, whole.status().events);
    assert_eq!((last.status().end_ns, last.status().state), (whole.status().end_ns, TimelineState::Complete));
}

#[test]
fn a_kernels_trace_is_told_of_while_it_grows() {
    for seed in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        tiny_trace::write(folder.path(), &made::recorded(&mut kymo_script::Random(seed)));
        check(folder.path(), 1 + seed % 3 * 400, &mut Random(seed));
    }
}

#[test]
fn a_programs_trace_is_told_of_while_it_grows() {
    for seed in 0..6 {
        check(&demo(), 1 + seed % 2 * 30_000, &mut Random(seed));
    }
}

/// The bucket with the watermark is incomplete: it is not exact, and buckets behind it are unknown.
#[test]
fn what_is_at_the_watermark_is_not_exact() {
    let growing = Growing::new(&demo());
    let until = growing.whole.first_ns().unwrap() + 30_000_000;
    growing.reveal(Some(until));
    let timeline = growing.session(None).growing_timeline(&TimelineOptions::default(), until).unwrap();
    build(&timeline);
    for level in [20, 22, 25] {
        let question = TileQuestion { level, first: 0, count: 64, tracks: vec![0] };
        let spans = timeline.tiles(&question, &Progress::default()).unwrap().spans;
        let whole = (until.abs_diff(timeline.span.0) >> level) as u32;
        let (exact, building) = ((0, whole, Quality::Exact), (whole, whole + 1, Quality::Building));
        let expected: Vec<_> =
            [exact, building, (whole + 1, 64, Quality::Unknown)].into_iter().filter(|span| span.0 < span.1).collect();
        assert_eq!(spans.iter().map(|span| (span.begin, span.end, span.quality)).collect::<Vec<_>>(), expected);
    }
}

/// Filters that are looked at grow, too.
#[test]
fn what_is_selected_grows() {
    let growing = Growing::new(&demo());
    let whole = built(&demo(), None, None);
    let (begin, end) = whole.span;
    let middle = begin + (end - begin) / 2;
    growing.reveal(Some(middle));
    let timeline = growing.session(Some(1)).growing_timeline(&TimelineOptions::default(), middle).unwrap();
    build(&timeline);
    let selected =
        timeline.selected(Selection { events: vec!["jobs:begin".to_owned()], ..Selection::default() }).unwrap();
    build(&selected);
    growing.reveal(None);
    let session = growing.session(Some(1));
    let timeline = timeline.grown(&session, None).unwrap();
    build(&timeline);
    let selected = selected.grown_beside(Some(&timeline), &session, None).unwrap();
    build(&selected);
    let events: Vec<Track> =
        timeline.catalogue(0, 0).tracks.into_iter().filter(|track| track.kind == TrackKind::Instants).collect();
    let tracks: Vec<u32> = events.iter().map(|track| track.number).collect();
    let begun = |track: &str| -> u32 {
        let number = events.iter().find(|one| one.id == track).unwrap().number;
        counted(&selected, &tracks).get(&number).map_or(0, |(count, _)| *count)
    };
    let counts = growing.whole.count(&crate::CountOptions::default(), &Progress::default()).unwrap();
    let begins = counts.classes.iter().filter(|class| class.name.as_deref() == Some("jobs:begin"));
    assert_eq!(u64::from(begun("all/events")), begins.map(|class| class.events).sum::<u64>());
}
