//! Triggers: an event starts and stops recording of all threads, in the program, at that event.
#![allow(unsafe_code, reason = "a child is made")]

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kymo_lane::judgement::{self, JudgementEntry, JudgementHead, JudgementKind};
use kymo_lane::{
    FilterCode, FilterCodeKind, Firing, OTHER_GROUPS, RecordingGroups, TriggerAction, TriggerState, VERDICT_ID,
    VERDICT_UNJUDGED,
};
use kymo_tracer::{Event, control_file};

use crate::alone;
use crate::filters::bytecode;
use crate::recorder::{Watch, files};

static JUDGED: Event = Event::new(b"event test:judged\nfield u64 value\n");
static WORK: Event = Event::new(b"event test:work\nfield u64 value\n");
static OTHER: Event = Event::new(b"event test:other\nfield u64 value\n");

/// Slot of the judgement.
const SLOT: u8 = 2;

fn offer(event: &Event, value: u64) {
    if event.is_on()
        && event.is_kept(&value)
        && let Some(mut write) = event.enter(8)
    {
        write.put(&value.to_le_bytes());
        write.leave();
    }
}

/// `judged` starts group 0 with the value 10, and stops it with the value 20; group 0 wants `judged` with the value 15, and all of `work`.
/// Other sessions want all of `other`.
struct Triggers {
    watch: Watch,
    ids: [u16; 3],
}

impl Triggers {
    fn set(path: &Path) -> Self {
        let watch = Watch::new(path);
        let ids = ["event test:judged\n", "event test:work\n", "event test:other\n"].map(|name| watch.id(name));
        let recorder = &watch.recorder;
        assert!(recorder.has_triggers().expect("it can be read"));
        let mut offset = 0;
        let mut put = |bytes: &[u8]| {
            recorder.put_bytecode(offset, bytes).expect("it can be written");
            let code = FilterCode { kind: FilterCodeKind::Bytecode, offset, bytes: bytes.len() as u32 };
            offset += bytes.len().next_multiple_of(8) as u32;
            code
        };
        let entries =
            [(JudgementKind::Trigger(0), 10), (JudgementKind::Trigger(1), 20), (JudgementKind::Groups(1), 15)]
                .map(|(kind, value)| JudgementEntry { kind, question: Some(put(&bytecode(value))) });
        let mut bytes = [0; judgement::bytes(3)];
        judgement::write(JudgementHead { id: ids[0], code: None }, &entries, &mut bytes).expect("there is room");
        let code = put(&bytes);
        recorder.say_code(SLOT, FilterCode { kind: FilterCodeKind::Judgement, ..code }).expect("it can be written");
        let mut images = [[0; 64]; 2];
        (images[0][usize::from(ids[0])], images[0][usize::from(ids[2])]) = (SLOT, 1);
        images[1][usize::from(ids[1])] = 1;
        for (number, image) in (0..).zip(&images) {
            recorder.set_image(number, image).expect("it can be written");
        }
        recorder.cover(64).expect("it can be written");
        recorder.set_base(RecordingGroups { bits: OTHER_GROUPS, base: 1, changes: 0 }).expect("it can be written");
        for (id, control) in ids.into_iter().zip([SLOT, 0, 1]) {
            recorder.switch(id, control).expect("it can be written");
        }
        Self { watch, ids }
    }

    fn arm(&self, epoch: u64, repeats: bool, interval: u64) {
        for (number, action) in [(0, TriggerAction::Start), (1, TriggerAction::Stop)] {
            let (count, groups, is_always) = (1, 1, false);
            let state = TriggerState { epoch, is_armed: true, repeats, is_always, interval, count, action, groups };
            self.watch.recorder.set_trigger(number, &state).expect("it can be written");
        }
    }

    fn firings(&self, from: u64) -> Vec<Firing> {
        let mut all = Vec::new();
        let (_, unknown) = self.watch.recorder.firings(from, |firing| all.push(firing)).expect("it can be read");
        assert_eq!(unknown, 0);
        all
    }

    /// The recorded events, by number of the event (3: a verdict) and value.
    fn recorded(&mut self) -> Vec<(usize, u64)> {
        self.watch.found.clear();
        self.watch.drain();
        let number =
            |id: u16| if id == VERDICT_ID { 3 } else { self.ids.iter().position(|own| *own == id).expect("ours") };
        self.watch.found.iter().map(|found| (number(found.id), found.value)).collect()
    }

    /// A verdict about `judged`, for group 0, with the trigger that has fired.
    fn verdict(&self, trigger: u32) -> (usize, u64) {
        (3, u64::from(self.ids[0]) | 1 << 16 | 1 << (32 + trigger))
    }
}

fn own() -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()))
}

/// Offers `work` and `other` with a value, after `judged` with another one.
fn step(value: u64) {
    offer(&JUDGED, value);
    offer(&WORK, value);
    offer(&OTHER, value);
}

#[test]
fn events_start_and_stop_recording() {
    alone::run("triggers::events_start_and_stop_recording", start_and_stop);
}

fn start_and_stop(folder: &Path) {
    assert!(JUDGED.register() && WORK.register() && OTHER.register());
    let path = own();
    let mut triggers = Triggers::set(&path);
    (1..=20).step_by(5).for_each(step);
    assert_eq!(triggers.recorded(), [1, 6, 11, 16].map(|value| (2, value)), "no trigger is armed");
    triggers.arm(1, false, 0);
    [20, 15, 10, 15, 10, 16, 20, 15, 10].into_iter().for_each(step);
    let (start, stop) = (triggers.verdict(0), triggers.verdict(1));
    let once = vec![
        (2, 20),
        (2, 15),
        // The start event is recorded, and the stop event; between them everything that the session wants.
        start,
        (0, 10),
        (1, 10),
        (2, 10),
        (0, 15),
        (1, 15),
        (2, 15),
        (1, 10),
        (2, 10),
        (1, 16),
        (2, 16),
        stop,
        (0, 20),
        (2, 20),
        (2, 15),
        // Both have fired, and are not armed anew.
        (2, 10),
    ];
    assert_eq!(triggers.recorded(), once);
    let fired = triggers.firings(0);
    let kinds: Vec<_> =
        fired.iter().map(|firing| (firing.trigger, firing.action, firing.groups, firing.event)).collect();
    let id = triggers.ids[0];
    assert_eq!(kinds, [(0, TriggerAction::Start, 1, id), (1, TriggerAction::Stop, 1, id)]);
    assert!(fired[0].ticks < fired[1].ticks);

    triggers.arm(2, false, 0);
    [20, 10, 20].into_iter().for_each(step);
    assert_eq!(triggers.recorded(), [(2, 20), start, (0, 10), (1, 10), (2, 10), stop, (0, 20), (2, 20)]);
    assert_eq!(triggers.firings(2).len(), 2, "they were armed again");

    // Those that repeat fire again and again, but not more often than they may.
    triggers.arm(3, true, 0);
    (0..5).for_each(|_| [10, 20].into_iter().for_each(step));
    assert_eq!((triggers.recorded().len(), triggers.firings(4).len()), (5 * 7, 10));
    triggers.arm(4, true, 1 << 60);
    (0..5).for_each(|_| [10, 20].into_iter().for_each(step));
    assert_eq!(triggers.firings(14).len(), 2, "then the last firing is too recent");
    assert!(triggers.watch.recorder.suppressed(0).expect("it can be read") >= 4);
    triggers.recorded();

    // A base of the recorder takes the changes of triggers back, if it knew all of them.
    for (base, changes) in [(2, 15), (3, 16)] {
        let groups = RecordingGroups { bits: OTHER_GROUPS | 1, base, changes };
        triggers.watch.recorder.set_base(groups).expect("it can be written");
        let is_on = triggers.watch.recorder.groups().expect("it can be read").bits & 1 != 0;
        assert_eq!(is_on, changes == 16);
    }
    step(15);
    assert_eq!(triggers.recorded(), [(0, 15), (2, 15)], "`work` is not switched yet");
    // Events that are recorded without arguments are left to the recorder.
    JUDGED.record(&10_u64.to_le_bytes());
    let unjudged = (3, u64::from(triggers.ids[0]) | 1 << 24);
    assert_eq!(triggers.recorded(), [unjudged, (0, 10)]);
    in_children(folder, &path);
}

/// A child has triggers of its own once a recorder has set them. Before, its events are those that any group wants.
fn in_children(folder: &Path, own: &Path) {
    let child = unsafe { libc::fork() };
    if child == 0 {
        [10, 15, 20, 16].into_iter().for_each(step);
        unsafe { libc::_exit(0) }
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    let files: Vec<_> = files(folder).into_iter().filter(|path| path != own).collect();
    let mut watch = Watch::new(&files[0]);
    watch.drain();
    let found: Vec<_> = watch.found.iter().map(|found| found.value).collect();
    // A verdict without flags but that one: the recorder looks for triggers at the event behind it.
    let unjudged = u64::from(VERDICT_UNJUDGED) << 24 | 3;
    // The child has no memory before its first event, which is always recorded.
    assert_eq!(found, [10, 10, 15, 15, unjudged, 20, 20, 16], "`judged` with 10, 15 and 20, and `other`");
    std::fs::remove_file(&files[0]).expect("it is ours");
}

/// Threads record while others start and stop them.
#[test]
fn threads_are_started_and_stopped() {
    alone::run("triggers::threads_are_started_and_stopped", |_| storm());
}

const ROUNDS: u64 = 20_000;

fn storm() {
    assert!(JUDGED.register() && WORK.register() && OTHER.register());
    let mut triggers = Triggers::set(&own());
    triggers.arm(1, true, 0);
    let is_over = AtomicBool::new(false);
    let (mut seen, mut firings, mut next) = (Vec::new(), Vec::<Firing>::new(), 0);
    std::thread::scope(|scope| {
        let work = || {
            while !is_over.load(Ordering::Relaxed) {
                offer(&WORK, 1);
            }
        };
        let workers = [scope.spawn(work), scope.spawn(work)];
        let pulls = |value: u64| (0..ROUNDS).for_each(|round| offer(&JUDGED, [10, 20][(round + value) as usize % 2]));
        let pullers = [scope.spawn(move || pulls(0)), scope.spawn(move || pulls(1))];
        let mut take = |triggers: &mut Triggers| {
            triggers.watch.drain();
            while !triggers.watch.recorder.is_quiet().expect("it can be read") {
                std::thread::yield_now();
            }
            // More of them than a ring holds may have come meanwhile: those are not known.
            let (to, _) = triggers.watch.recorder.firings(next, |firing| firings.push(firing)).expect("it can be read");
            next = to;
        };
        while !pullers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            take(&mut triggers);
        }
        is_over.store(true, Ordering::Relaxed);
        for thread in workers.into_iter().chain(pullers) {
            thread.join().expect("it does not panic");
        }
        take(&mut triggers);
    });
    seen.append(&mut triggers.watch.found);
    assert!(firings.is_sorted_by_key(|firing| firing.number), "they come in order");
    let (starts, stops): (Vec<&Firing>, Vec<&Firing>) =
        firings.iter().partition(|firing| firing.action == TriggerAction::Start);
    println!("{} starts, {} stops of {next} firings, {} events", starts.len(), stops.len(), seen.len());
    assert!(next > 100 && seen.iter().any(|found| found.id == triggers.ids[1]));
    // At the end, the control byte of `work` is that of the groups.
    let groups = triggers.watch.recorder.groups().expect("it can be read");
    assert_eq!(WORK.control(), groups.bits & 1);
    let verdicts = seen.iter().filter(|found| found.id == VERDICT_ID).count() as u64;
    let judged = seen.iter().filter(|found| found.id == triggers.ids[0]).count() as u64;
    let lost = triggers.watch.lost();
    assert!(verdicts + lost >= next && judged + lost >= next, "each firing has its event: {verdicts} {judged} {lost}");
}
