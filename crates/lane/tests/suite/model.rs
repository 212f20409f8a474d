//! All interleavings of few threads, and what weak memory may show them: what `kymo_lane` says has to hold, holds.
//!
//! The checker lets nobody see what is written later than he looks. So what orders the copies of the recorder before those who write
//! there again, the release with which it frees, is not checked here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

use kymo_lane::{
    Firing, MemoryLayout, MemoryView, OTHER_GROUPS, ProgramMemory, ProgramSide, RecorderSide, RecordingGroups, Rings,
    STOPPED_AT, SubBufferSnapshot, TriggerAction, TriggerState, WriterThread,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};

const EVENT: u64 = 8;

/// Words that a model needs, and bytes that stand for themselves.
struct Cells {
    places: HashMap<u64, usize>,
    cells: Vec<AtomicU64>,
    /// Touched with each cell of an owner. Of the accesses to a cell, loom knows the last one only: a thread's own look would hide
    /// that another thread looked there before, and what it changes next could come before that.
    touches: AtomicU64,
    /// How often the bell was rung. Who looks has seen that the others have ended.
    rung: std::sync::atomic::AtomicU32,
    /// A recorder sleeps in this model; in all others nobody asks whether one does.
    sleep: Option<Sleep>,
}

/// How somebody sleeps.
#[derive(Clone, Copy)]
struct Sleep {
    /// With the fences that there have to be.
    is_fenced: bool,
}

/// Where words of the header, of lanes and of descriptors are.
const HEADER: [u64; 10] = [272, 280, 288, 512, 520, 528, 536, 544, ASLEEP, STOPPED_AT];
const ASLEEP: u64 = 552;
const MODE: u64 = 520;
const READY: u64 = 272;
const CONTROL: u64 = 4096;
const DESCRIPTORS: u64 = 4096 * 3;
const FREED: u64 = 4096 * 4;

fn layout(sub_buffers: u32, sub_buffer_bytes: u32) -> MemoryLayout {
    let [registry_bytes, filter_bytes, object_bytes] = [8, 4096, 0];
    MemoryLayout { events: 1, lanes: 2, sub_buffers, sub_buffer_bytes, registry_bytes, filter_bytes, object_bytes }
}

impl Cells {
    fn new(layout: &MemoryLayout, overwrites: bool) -> Self {
        Self::where_somebody_sleeps(layout, overwrites, None)
    }

    fn where_somebody_sleeps(layout: &MemoryLayout, overwrites: bool, sleep: Option<Sleep>) -> Self {
        let mut places: Vec<u64> = HEADER.into();
        let (lanes, descriptors, freed) = (4096 * 2, DESCRIPTORS, FREED);
        places.extend((0..2).flat_map(|lane| (0..5).map(move |word| lanes + 64 * lane + 8 * word)));
        let buffers = u64::from(layout.sub_buffers);
        places.extend((0..buffers).flat_map(|number| (0..9).map(move |word| descriptors + 128 * number + 8 * word)));
        places.extend((0..buffers).map(|number| freed + number));
        places.extend((layout.sub_buffer(0)..layout.sub_buffer(layout.sub_buffers)).step_by(8));
        Self::at(places, layout, overwrites, sleep)
    }

    /// Memory of an event with its control byte, two triggers, and their firings.
    fn with_triggers(layout: &MemoryLayout) -> Self {
        let region = layout.sub_buffer(layout.sub_buffers).next_multiple_of(4096);
        let words = (0..192).step_by(8);
        let firings = (4096..4096 + 64).step_by(8);
        let images = (0..3).map(|number| 4096 + 32 * 256 + 4096 * number);
        let its = words.chain(firings).chain(images).map(|place| region + place);
        let places = HEADER.into_iter().chain([CONTROL]).chain(its).collect();
        Self::at(places, layout, false, Some(Sleep { is_fenced: true }))
    }

    fn at(places: Vec<u64>, layout: &MemoryLayout, overwrites: bool, sleep: Option<Sleep>) -> Self {
        let buffers = u64::from(layout.sub_buffers);
        let cells = places.iter().map(|_| AtomicU64::new(0)).collect();
        let this = Self {
            places: places.into_iter().enumerate().map(|(cell, at)| (at, cell)).collect(),
            cells,
            touches: AtomicU64::new(0),
            rung: std::sync::atomic::AtomicU32::new(0),
            sleep,
        };
        this.cell(READY).store(buffers, Ordering::Relaxed);
        this.cell(288).store(2, Ordering::Relaxed);
        this.cell(MODE).store(u64::from(overwrites), Ordering::Relaxed);
        this.cell(528).store(buffers, Ordering::Relaxed);
        this.cell(544).store(buffers, Ordering::Relaxed);
        this
    }

    fn cell(&self, at: u64) -> &AtomicU64 {
        if (DESCRIPTORS..FREED).contains(&at) && at.is_multiple_of(128) {
            self.touches.fetch_add(1, Ordering::Relaxed);
        }
        &self.cells[*self.places.get(&at).unwrap_or_else(|| panic!("nobody thought of {at}"))]
    }
}

impl ProgramMemory for Cells {
    fn load(&self, at: u64, order: Ordering) -> u64 {
        if at == ASLEEP && self.sleep.is_none() { 0 } else { self.cell(at).load(order) }
    }

    fn store(&self, at: u64, value: u64, order: Ordering) {
        self.cell(at).store(value, order);
    }

    fn compare_exchange(&self, at: u64, old: u64, new: u64) -> bool {
        self.cell(at).compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn add(&self, at: u64, more: u64) -> u64 {
        self.cell(at).fetch_add(more, Ordering::Relaxed)
    }

    fn byte(&self, at: u64) -> u8 {
        self.cell(at).load(Ordering::Acquire) as u8
    }

    fn clear(&self, at: u64) {
        self.cell(at).store(0, Ordering::Relaxed);
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        for (place, word) in (at..).step_by(8).zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            self.cell(place).store(word_of(&whole), Ordering::Relaxed);
        }
    }

    fn fence(&self, order: Ordering) {
        let is_bell = order == Ordering::SeqCst;
        if !is_bell || self.sleep.is_some_and(|sleep| sleep.is_fenced) {
            fence(order);
        }
    }

    fn reserve(&self, _: u64, _: u64) -> bool {
        true
    }

    fn ring(&self) -> bool {
        self.rung.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        true
    }
}

/// The recorder's eyes on the same cells, and how often they have looked at all descriptors at once.
struct Eyes(Arc<Cells>, std::cell::Cell<u32>);

impl Eyes {
    fn on(cells: Arc<Cells>) -> Self {
        Self(cells, std::cell::Cell::new(0))
    }
}

impl MemoryView for Eyes {
    type Fault = Infallible;

    fn word(&self, at: u64) -> Result<u64, Infallible> {
        Ok(self.0.cell(at).load(Ordering::Acquire))
    }

    fn copy(&self, at: u64, into: &mut [u8]) -> Result<(), Infallible> {
        if (FREED..FREED + 4096).contains(&at) {
            let byte = |(place, into): (u64, &mut u8)| *into = self.0.cell(place).load(Ordering::Relaxed) as u8;
            (at..).zip(into).for_each(byte);
            return Ok(());
        }
        let describes = (DESCRIPTORS..FREED).contains(&at);
        self.1.set(self.1.get() + u32::from(describes));
        // Of the first of two copies only the owners matter: what else it might show makes no other way.
        let is_first = self.1.get() % 2 == 1;
        for (place, into) in (at..).step_by(8).zip(into.chunks_mut(8)) {
            let is_used = !describes || self.0.places.contains_key(&place) && (!is_first || place.is_multiple_of(128));
            let word = if is_used { self.0.cell(place).load(Ordering::Relaxed) } else { 0 };
            into.copy_from_slice(&word.to_le_bytes()[..into.len()]);
        }
        Ok(())
    }

    fn fence(&self) {
        fence(Ordering::Acquire);
    }

    fn settle(&self) {
        ProgramMemory::fence(&*self.0, Ordering::SeqCst);
    }

    fn set_byte(&self, at: u64, value: u8) -> Result<(), Infallible> {
        let region = layout(1, 8).sub_buffer(1).next_multiple_of(4096);
        if at < region {
            self.0.cell(at).store(value.into(), Ordering::Release);
            return Ok(());
        }
        // A byte of a word that only the recorder writes.
        let (word, shift) = (self.0.cell(at & !7), 8 * (at & 7));
        let others = word.load(Ordering::Relaxed) & !(0xff << shift);
        word.store(others | u64::from(value) << shift, Ordering::Release);
        Ok(())
    }

    fn set_word(&self, at: u64, value: u64) -> Result<(), Infallible> {
        self.0.cell(at).store(value, Ordering::Relaxed);
        Ok(())
    }
}

/// What nothing keeps anybody from seeing.
fn told<T>(seen: Result<T, Infallible>) -> T {
    let Ok(seen) = seen;
    seen
}

fn word_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a word has 8 bytes"))
}

/// What a recorder has copied: by lane, sub-buffer of that, and place in it.
type Copied = BTreeMap<(u16, u64, u32), u64>;

/// What is there: by looking at one after the other, or at all at once.
fn look(recorder: &RecorderSide<Eyes>, at_once: bool) -> Vec<SubBufferSnapshot> {
    let ready = recorder.layout().sub_buffers;
    if !at_once {
        return (0..ready).filter_map(|number| told(recorder.look(number))).collect();
    }
    let mut all = Vec::new();
    told(recorder.look_all(ready, &mut vec![0; RecorderSide::<Eyes>::look_bytes(ready)], |seen| all.push(seen)));
    all
}

/// Copies everything that is there and was not copied, and frees what is full.
fn drain(recorder: &RecorderSide<Eyes>, at_once: bool, copied: &mut Copied, freed: &mut BTreeSet<(u16, u64)>) {
    for seen in look(recorder, at_once) {
        // Who looks at all at once may see whose it was before it was given back; what was taken is not taken again.
        if at_once && freed.contains(&(seen.lane, seen.sequence)) {
            continue;
        }
        let known = copied.range((seen.lane, seen.sequence, 0)..=(seen.lane, seen.sequence, u32::MAX)).count() as u32;
        let from = known * EVENT as u32;
        let mut bytes = vec![0; (seen.bytes - from) as usize];
        assert!(told(recorder.copy(&seen, from, &mut bytes)), "only who freed it lets others have it");
        for (nth, event) in bytes.chunks(EVENT as usize).enumerate() {
            let event = word_of(event);
            copied.insert((seen.lane, seen.sequence, known + nth as u32), event);
            assert!(seen.begin <= event & 0xff && event & 0xff <= seen.last, "{event:x} of {seen:?}");
        }
        if seen.is_full {
            told(recorder.free(&seen));
            freed.insert((seen.lane, seen.sequence));
            told(recorder.freed(freed.len() as u64));
        }
    }
}

/// A thread writes so many events; each is its number and when it was, from 1.
fn write(cells: &Cells, layout: MemoryLayout, tid: u32, events: u64) {
    let program = ProgramSide::of(cells, layout);
    let mut lane = program.lane(WriterThread { tid, ..WriterThread::default() }).expect("there are two");
    for number in 1..=events {
        if let Some(slot) = program.room(&mut lane, 0, EVENT, || number) {
            program.put(slot.at, &(u64::from(tid) << 32 | number).to_le_bytes());
            program.publish(&mut lane, slot);
        }
    }
    program.leave(lane);
}

/// Events of each thread come once and in order, and with those that were counted as lost they are all.
fn check(recorder: &RecorderSide<Eyes>, copied: &Copied, threads: &[(u32, u64)]) {
    for &(tid, _) in threads {
        let its: Vec<u64> = copied.values().filter(|event| *event >> 32 == u64::from(tid)).copied().collect();
        assert!(its.is_sorted_by(|one, next| one < next), "{its:?}");
    }
    let lost: u64 = (0..2).map(|lane| told(recorder.losses(lane)).discarded).sum();
    let all: u64 = threads.iter().map(|thread| thread.1).sum();
    assert_eq!(copied.len() as u64 + lost, all, "{copied:?}, {lost} lost");
}

/// Runs it in all ways that differ; `least`: a model that is run in fewer ways has not looked at much.
fn model(preemptions: usize, least: u64, run: impl Fn() + Sync + Send + 'static) {
    use std::sync::atomic::AtomicU64;
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    let ways = std::sync::Arc::new(AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&ways);
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        run();
    });
    let ways = ways.load(std::sync::atomic::Ordering::Relaxed);
    println!("{ways} ways");
    assert!(ways >= least, "only {ways} ways");
}

#[test]
fn what_is_published_is_copied_once() {
    let one_by_one = [(1, 8, 2, 50), (2, 8, 2, 400), (2, 16, 2, 50)].map(|sizes| (sizes, false));
    let at_once = [(1, 8, 1, 10)].map(|sizes| (sizes, true));
    for ((sub_buffers, bytes, preemptions, least), at_once) in one_by_one.into_iter().chain(at_once) {
        model(preemptions, least, move || {
            let layout = layout(sub_buffers, bytes);
            let cells = Arc::new(Cells::new(&layout, false));
            let writer = {
                let cells = Arc::clone(&cells);
                loom::thread::spawn(move || write(&cells, layout, 7, 2))
            };
            let recorder = RecorderSide::new(Eyes::on(cells), layout);
            let (mut copied, mut freed) = (Copied::new(), BTreeSet::new());
            drain(&recorder, at_once, &mut copied, &mut freed);
            writer.join().expect("it does not panic");
            drain(&recorder, at_once, &mut copied, &mut freed);
            check(&recorder, &copied, &[(7, 2)]);
        });
    }
}

#[test]
fn two_threads_never_have_the_same() {
    let (threads, at_once) = ([(7, 1), (8, 1)], false);
    model(2, 1000, move || {
        let layout = layout(2, 8);
        let cells = Arc::new(Cells::new(&layout, false));
        let writers = threads.map(|(tid, events)| {
            let cells = Arc::clone(&cells);
            loom::thread::spawn(move || write(&cells, layout, tid, events))
        });
        let recorder = RecorderSide::new(Eyes::on(cells), layout);
        let (mut copied, mut freed) = (Copied::new(), BTreeSet::new());
        drain(&recorder, at_once, &mut copied, &mut freed);
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        drain(&recorder, at_once, &mut copied, &mut freed);
        check(&recorder, &copied, &threads);
    });
}

/// A recorder that looks for threads that have ended meets a thread that takes the lane of one.
#[test]
fn a_lane_is_not_taken_from_a_thread_that_takes_it() {
    model(3, 5, || {
        let layout = layout(1, 8);
        let cells = Arc::new(Cells::new(&layout, false));
        write(&cells, layout, 7, 1);
        let taker = {
            let cells = Arc::clone(&cells);
            loom::thread::spawn(move || {
                ProgramSide::of(&*cells, layout)
                    .lane(WriterThread { tid: 8, ..WriterThread::default() })
                    .expect("there are two")
            })
        };
        let recorder = RecorderSide::new(Eyes::on(cells), layout);
        // Without it, loom tries no way in which the other thread is between its stores at the first read.
        loom::thread::yield_now();
        let ended = told(recorder.holder(0)).filter(|holder| holder.tid == Some(7));
        ended.into_iter().for_each(|holder| told(recorder.release(0, &holder)));
        taker.join().expect("it does not panic");
        assert_eq!(told(recorder.holder(0)).and_then(|holder| holder.tid), Some(8));
    });
}

#[test]
fn what_is_overwritten_is_not_taken_for_what_was() {
    for (sub_buffers, preemptions, least, at_once) in [(1, 3, 10_000, false), (2, 2, 10_000, false), (1, 1, 20, true)] {
        model(preemptions, least, move || {
            let layout = layout(sub_buffers, 8);
            let cells = Arc::new(Cells::new(&layout, true));
            let writer = {
                let cells = Arc::clone(&cells);
                loom::thread::spawn(move || write(&cells, layout, 7, 1 + u64::from(sub_buffers)))
            };
            let recorder = RecorderSide::new(Eyes::on(cells), layout);
            let look = |is_over: bool| {
                for seen in look(&recorder, at_once) {
                    let mut bytes = [0; 8];
                    // There is one event in each, whose number is the sub-buffer's.
                    if told(recorder.copy(&seen, 0, &mut bytes)) && seen.bytes > 0 {
                        let event = u64::from_le_bytes(bytes);
                        assert_eq!(event, 7 << 32 | (seen.sequence + 1), "{seen:?}");
                        assert_eq!((seen.begin, seen.last), (seen.sequence + 1, seen.sequence + 1));
                    }
                    assert!(!is_over || seen.sequence >= 1, "{seen:?} is old");
                }
            };
            look(false);
            writer.join().expect("it does not panic");
            look(true);
            assert_eq!(told(recorder.losses(0)).discarded, 0);
        });
    }
}

#[test]
fn who_has_nothing_takes_the_oldest_of_others() {
    let (threads, at_once) = ([(7, 2), (8, 1)], false);
    model(1, 1000, move || {
        let layout = layout(2, 8);
        let cells = Arc::new(Cells::new(&layout, true));
        let writers = threads.map(|(tid, events)| {
            let cells = Arc::clone(&cells);
            loom::thread::spawn(move || write(&cells, layout, tid, events))
        });
        let recorder = RecorderSide::new(Eyes::on(cells), layout);
        let look = || {
            let seen = look(&recorder, at_once);
            for seen in &seen {
                let mut bytes = [0; 8];
                // There is one event in each, whose number is when it was.
                if told(recorder.copy(seen, 0, &mut bytes)) && seen.bytes > 0 {
                    let event = u64::from_le_bytes(bytes);
                    assert_eq!(event, u64::from(seen.thread.tid) << 32 | seen.begin, "{seen:?}");
                }
            }
            seen
        };
        // What a recorder sees meanwhile, the model before this one looks at: whose a sub-buffer was makes no difference to it.
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        // Which one was the oldest is as old as the look at it: with two, the newest may be gone. But none is there twice or half.
        let last: BTreeSet<_> = look().iter().map(|seen| (seen.thread.tid, seen.begin)).collect();
        let lost: u64 = (0..2).map(|lane| told(recorder.losses(lane)).discarded).sum();
        assert!(last.len() as u64 + lost >= 2 && lost <= 1, "{last:?}, {lost} lost");
    });
}

/// A thread turns to two sub-buffers while the recorder goes to sleep.
fn sleep_while_a_thread_turns(sleep: Sleep) {
    let layout = layout(2, 8);
    let cells = Arc::new(Cells::where_somebody_sleeps(&layout, false, Some(sleep)));
    let writer = {
        let cells = Arc::clone(&cells);
        loom::thread::spawn(move || write(&cells, layout, 7, 2))
    };
    let recorder = RecorderSide::new(Eyes::on(Arc::clone(&cells)), layout);
    told(recorder.sleep(Rings::ForAll));
    let seen = look(&recorder, false).len();
    writer.join().expect("it does not panic");
    let rung = cells.rung.load(std::sync::atomic::Ordering::Relaxed);
    assert!(rung <= 1, "rung {rung} times for one sleep");
    assert!(seen == 2 || rung == 1, "a turn is slept through: {seen} of 2 seen");
    assert_eq!(told(recorder.has_rung()), rung == 1);
}

#[test]
fn no_turn_is_slept_through() {
    model(3, 1000, || sleep_while_a_thread_turns(Sleep { is_fenced: true }));
}

#[test]
#[should_panic(expected = "a turn is slept through")]
fn without_fences_a_turn_would_be() {
    model(3, 1, || sleep_while_a_thread_turns(Sleep { is_fenced: false }));
}

/// An event that group 0 wants with the control byte 1, group 1 with 5, and all others not. Trigger 0 starts group 0, trigger 1 stops
/// group 1, which records.
fn with_triggers() -> (Arc<Cells>, MemoryLayout, RecorderSide<Eyes>) {
    let layout = layout(1, 8);
    let cells = Arc::new(Cells::with_triggers(&layout));
    let recorder = RecorderSide::new(Eyes::on(Arc::clone(&cells)), layout);
    for (number, control) in [(0, 0), (1, 1), (2, 5)] {
        told(recorder.set_image(number, &[control]));
    }
    told(recorder.cover(1));
    for (number, action) in [(0, TriggerAction::Start), (1, TriggerAction::Stop)] {
        let (epoch, count, groups) = (1, 1, 1 << number);
        let state = TriggerState {
            epoch,
            is_armed: true,
            repeats: false,
            is_always: false,
            interval: 0,
            count,
            action,
            groups,
        };
        told(recorder.set_trigger(number, &state));
    }
    told(recorder.set_base(RecordingGroups { bits: OTHER_GROUPS | 2, base: 1, changes: 0 }));
    told(recorder.switch(0, 5));
    (cells, layout, recorder)
}

fn fires(cells: &Arc<Cells>, layout: MemoryLayout, trigger: u8, ticks: u64) -> loom::thread::JoinHandle<Option<u8>> {
    let cells = Arc::clone(cells);
    loom::thread::spawn(move || {
        ProgramSide::of(&*cells, layout).fire(trigger, 0, 7, || ticks).map(|(groups, _)| groups)
    })
}

fn firings(recorder: &RecorderSide<Eyes>) -> Vec<Firing> {
    let mut all = Vec::new();
    assert_eq!(told(recorder.firings(0, |firing| all.push(firing))).1, 0, "each of them is known");
    all
}

#[test]
fn triggers_of_two_groups_fire_at_a_time() {
    model(4, 1000, || {
        let (cells, layout, recorder) = with_triggers();
        let threads = [fires(&cells, layout, 0, 10), fires(&cells, layout, 1, 20)];
        let changed = threads.map(|thread| thread.join().expect("it does not panic"));
        assert_eq!(changed, [Some(1), Some(2)]);
        assert_eq!(told(recorder.groups()), RecordingGroups { bits: OTHER_GROUPS | 1, base: 1, changes: 2 });
        assert_eq!(told(recorder.view().word(CONTROL)), 1, "the control byte is that of group 0");
        assert_eq!(
            told(recorder.view().word(STOPPED_AT)) as u8,
            !(OTHER_GROUPS | 1),
            "and so are the groups for machine code"
        );
        let mut fired: Vec<_> = firings(&recorder).iter().map(|firing| (firing.trigger, firing.ticks)).collect();
        fired.sort_unstable();
        assert_eq!(fired, [(0, 10), (1, 20)]);
    });
}

#[test]
fn of_two_threads_one_fires() {
    model(3, 50, || {
        let (cells, layout, recorder) = with_triggers();
        let threads = [fires(&cells, layout, 1, 10), fires(&cells, layout, 1, 20)];
        let changed = threads.map(|thread| thread.join().expect("it does not panic"));
        assert!(matches!(changed, [Some(2), None] | [None, Some(2)]), "{changed:?}");
        assert_eq!((firings(&recorder).len(), told(recorder.view().word(CONTROL))), (1, 0));
    });
}

/// A stop at the third match, of which the recorder has counted one: of three threads one fires, and the repeated count goes on.
#[test]
fn of_many_matches_one_fires() {
    for repeats in [false, true] {
        model(2, 15, move || {
            let (cells, layout, recorder) = with_triggers();
            let (action, groups) = (TriggerAction::Stop, 2);
            let state = TriggerState {
                epoch: 2,
                is_armed: true,
                repeats,
                is_always: false,
                interval: 0,
                count: 3,
                action,
                groups,
            };
            told(recorder.set_trigger(1, &state));
            told(recorder.set_before(1, 1));
            let threads = [10, 20].map(|ticks| {
                let cells = Arc::clone(&cells);
                loom::thread::spawn(move || {
                    let program = ProgramSide::of(&*cells, layout);
                    let fired =
                        (program.reached(2, program.groups()) == (2, 0)).then(|| program.fire(1, 0, 7, || ticks));
                    fired.flatten().map(|(groups, _)| groups)
                })
            });
            let fired = threads.map(|thread| thread.join().expect("it does not panic"));
            assert!(matches!(fired, [Some(2), None] | [None, Some(2)]), "{fired:?}");
            assert_eq!(firings(&recorder).len(), 1);
            assert_eq!(told(recorder.counted(1)), if repeats { 0 } else { 2 });
        });
    }
}

/// A recorder that does not know whether group 1 records says so, and that a start of it fires always: it learns of the start,
/// unless it was told before that the group does not record.
#[test]
fn a_start_of_an_unsure_group_is_known() {
    model(5, 50, || {
        let (cells, layout, recorder) = with_triggers();
        let (epoch, count, action, groups) = (2, 1, TriggerAction::Start, 2);
        let state =
            TriggerState { epoch, is_armed: true, repeats: false, is_always: true, interval: 0, count, action, groups };
        told(recorder.set_trigger(0, &state));
        let thread = fires(&cells, layout, 0, 10);
        told(recorder.set_base(RecordingGroups { bits: OTHER_GROUPS, base: 2, changes: 0 }));
        told(recorder.set_trigger(0, &TriggerState { is_always: false, ..state }));
        assert_eq!(thread.join().expect("it does not panic"), Some(2));
        assert_eq!(firings(&recorder).len(), 1);
        assert_eq!(told(recorder.groups()).bits, OTHER_GROUPS | 2, "it records, whoever was first");
        assert_eq!(told(recorder.view().word(CONTROL)), 5);
    });
}

/// The recorder starts group 0 while a trigger fires: either the trigger changes the recorder's base, or that does not count.
#[test]
fn a_base_of_the_recorder_loses_no_firing() {
    model(5, 50, || {
        let (cells, layout, recorder) = with_triggers();
        let thread = fires(&cells, layout, 1, 10);
        told(recorder.set_base(RecordingGroups { bits: OTHER_GROUPS | 3, base: 2, changes: 0 }));
        let changed = thread.join().expect("it does not panic");
        assert_eq!(changed, Some(2));
        assert_eq!(firings(&recorder).len(), 1);
        let groups = told(recorder.groups());
        let bits = if groups.base == 2 { OTHER_GROUPS | 1 } else { OTHER_GROUPS };
        assert_eq!(groups, RecordingGroups { bits, base: groups.base, changes: 1 });
    });
}

/// A recorder that has seen an event, and that firings that had begun are over, knows each firing that is earlier than the event.
#[test]
fn firings_are_known_before_later_events() {
    model(2, 100, || {
        let (cells, layout, recorder) = with_triggers();
        let clock = Arc::new(AtomicU64::new(1));
        let event = Arc::new(AtomicU64::new(0));
        let trigger = {
            let (cells, clock) = (Arc::clone(&cells), Arc::clone(&clock));
            loom::thread::spawn(move || {
                ProgramSide::of(&*cells, layout).fire(1, 0, 7, || clock.fetch_add(1, Ordering::AcqRel))
            })
        };
        let writer = {
            let (event, clock) = (Arc::clone(&event), Arc::clone(&clock));
            loom::thread::spawn(move || event.store(clock.fetch_add(1, Ordering::AcqRel), Ordering::Release))
        };
        let seen = event.load(Ordering::Acquire);
        let is_over = told(recorder.is_quiet());
        let mut known = Vec::new();
        told(recorder.firings(0, |firing| known.push(firing)));
        writer.join().expect("it does not panic");
        trigger.join().expect("it does not panic");
        let [firing] = firings(&recorder)[..] else { panic!("it has fired once") };
        assert!(!is_over || seen <= firing.ticks || known == [firing], "{seen} is later than {firing:?}");
    });
}
