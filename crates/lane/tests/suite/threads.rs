//! Real threads on real memory, for longer than a model can: what was written and what was counted as lost is all that there was.

#![allow(unsafe_code, reason = "memory is mapped here")]

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};

use kymo_lane::{
    Identity, Mapped, MemoryLayout, MemoryView, OverflowMode, ProgramSide, RecorderSide, RecordingSettings,
    WriterThread,
};

/// Memory that begins at a multiple of a page.
#[repr(align(4096))]
struct Page {
    _bytes: UnsafeCell<[u8; 4096]>,
}

struct Pages(Vec<Page>);

unsafe impl Sync for Pages {}

impl Pages {
    fn of(layout: &MemoryLayout) -> Self {
        Self((0..layout.bytes().div_ceil(4096)).map(|_| Page { _bytes: UnsafeCell::new([0; 4096]) }).collect())
    }

    fn base(&self) -> *mut u8 {
        self.0.as_ptr().cast::<u8>().cast_mut()
    }

    fn mapped(&self) -> Mapped {
        unsafe { Mapped::new(self.base(), |_, _| true, || false) }
    }
}

/// The recorder's eyes; bytes are copied one by one, as anybody may write to them meanwhile.
struct Eyes<'a>(&'a Pages);

impl Eyes<'_> {
    fn byte(&self, at: u64) -> &AtomicU8 {
        unsafe { AtomicU8::from_ptr(self.0.base().add(at as usize)) }
    }

    fn cell(&self, at: u64) -> &AtomicU64 {
        unsafe { AtomicU64::from_ptr(self.0.base().add(at as usize).cast()) }
    }
}

impl MemoryView for Eyes<'_> {
    type Fault = Infallible;

    fn word(&self, at: u64) -> Result<u64, Infallible> {
        Ok(self.cell(at).load(Ordering::Acquire))
    }

    fn copy(&self, at: u64, into: &mut [u8]) -> Result<(), Infallible> {
        into.iter_mut().zip(at..).for_each(|(into, at)| *into = self.byte(at).load(Ordering::Relaxed));
        Ok(())
    }

    fn fence(&self) {
        fence(Ordering::Acquire);
    }

    fn settle(&self) {
        fence(Ordering::SeqCst);
    }

    fn set_byte(&self, at: u64, value: u8) -> Result<(), Infallible> {
        self.byte(at).store(value, Ordering::Release);
        Ok(())
    }

    fn set_word(&self, at: u64, value: u64) -> Result<(), Infallible> {
        self.cell(at).store(value, Ordering::Relaxed);
        Ok(())
    }
}

const THREADS: u32 = 3;
const EVENTS: u32 = 200_000;

fn layout(events: u32, sub_buffers: u32, sub_buffer_bytes: u32) -> MemoryLayout {
    let [registry_bytes, filter_bytes, object_bytes] = [4096, 4096, 0];
    MemoryLayout { events, lanes: 8, sub_buffers, sub_buffer_bytes, registry_bytes, filter_bytes, object_bytes }
}

/// What nothing keeps anybody from seeing.
fn told<T>(seen: Result<T, Infallible>) -> T {
    let Ok(seen) = seen;
    seen
}

/// How many threads write one after the other.
fn lives(thread: u32) -> u32 {
    if thread == 1 { 20 } else { 1 }
}

/// Threads come, write events of 8 to 24 bytes that hold their number and a count, and go; the next one has the lane then.
fn write(program: &ProgramSide<'_, Mapped>, thread: u32, lives: u32, clock: &AtomicU64, begin: &Barrier) {
    let mut number = 0_u32;
    for _ in 0..lives {
        let mut lane = program.lane(WriterThread { tid: thread, ..WriterThread::default() }).expect("there are enough");
        if number == 0 {
            begin.wait();
        }
        for _ in 0..EVENTS / lives {
            let words = 1 + u64::from(number % 3);
            if let Some(slot) = program.room(&mut lane, 0, 8 * words, || clock.fetch_add(1, Ordering::Relaxed)) {
                for word in 0..words {
                    program.put(slot.at + 8 * word, &[thread.to_le_bytes(), number.to_le_bytes()].concat());
                }
                program.publish(&mut lane, slot);
            }
            number += 1;
        }
        program.leave(lane);
    }
}

/// The events in some bytes: whose, and which.
fn events(bytes: &[u8]) -> Vec<(u32, u32)> {
    let mut events = Vec::new();
    let mut rest = bytes;
    while let Some(event) = rest.first_chunk::<8>() {
        let (thread, number) = {
            let word = u64::from_le_bytes(*event);
            (word as u32, (word >> 32) as u32)
        };
        let (whole, behind) = rest.split_at(8 * (1 + number as usize % 3));
        assert!(whole.chunks(8).all(|word| word == event), "{whole:?} is torn");
        events.push((thread, number));
        rest = behind;
    }
    events
}

#[test]
fn nothing_is_lost_that_is_not_counted() {
    let layout = layout(16, 12, 4096);
    let pages = Pages::of(&layout);
    let memory = pages.mapped();
    let program = ProgramSide::begin(&memory, layout, &Identity::default()).expect("there is memory");
    let recorder = RecorderSide::new(Eyes(&pages), layout);
    let (clock, is_over, begin) = (AtomicU64::new(1), AtomicBool::new(false), Barrier::new(THREADS as usize));
    // Of each lane, the sub-buffer that comes next, and how much of it is known.
    let mut known: HashMap<u16, (u64, u32)> = HashMap::new();
    let mut last: HashMap<(u16, u32), u32> = HashMap::new();
    let mut seen_once = vec![false; (THREADS * EVENTS) as usize];
    let mut found = 0;
    let mut epoch = 0;
    let mut drain = || {
        let mut all: Vec<_> = (0..layout.sub_buffers).filter_map(|number| told(recorder.look(number))).collect();
        all.sort_by_key(|seen| (seen.lane, seen.sequence));
        for seen in all {
            let (next, copied) = known.entry(seen.lane).or_default();
            if seen.sequence != *next {
                // When the one before it was looked at, that was not there yet.
                continue;
            }
            let mut bytes = vec![0; (seen.bytes - *copied) as usize];
            assert!(told(recorder.copy(&seen, *copied, &mut bytes)));
            *copied = seen.bytes;
            for (thread, number) in events(&bytes) {
                assert_eq!(thread, seen.thread.tid);
                assert!(last.insert((seen.lane, thread), number) < Some(number), "{number} of {thread} comes late");
                assert!(
                    !std::mem::replace(&mut seen_once[(thread * EVENTS + number) as usize], true),
                    "{number} comes twice"
                );
                found += 1;
            }
            if seen.is_full {
                (*next, *copied) = (*next + 1, 0);
                told(recorder.free(&seen));
                epoch += 1;
                told(recorder.freed(epoch));
            }
        }
        found
    };
    let found = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (program, clock, begin) = (&program, &clock, &begin);
                scope.spawn(move || write(program, thread, lives(thread), clock, begin))
            })
            .collect();
        scope.spawn(|| {
            writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
            is_over.store(true, Ordering::Release);
        });
        while !is_over.load(Ordering::Acquire) {
            drain();
        }
        drain();
        drain()
    });
    let lost: u64 = (0..8).map(|lane| told(recorder.losses(lane)).discarded).sum();
    assert!(found > 1000, "only {found} were written");
    let all: u32 = (0..THREADS).map(|thread| EVENTS / lives(thread) * lives(thread)).sum();
    assert_eq!(found + lost, u64::from(all), "{found} found, {lost} lost");
}

#[test]
fn what_is_overwritten_is_never_torn() {
    let layout = layout(16, 6, 512);
    let pages = Pages::of(&layout);
    let memory = pages.mapped();
    let program = ProgramSide::begin(&memory, layout, &Identity::default()).expect("there is memory");
    let recorder = RecorderSide::new(Eyes(&pages), layout);
    told(recorder.say(&RecordingSettings { mode: OverflowMode::OverwriteOldest, lane: 2, pool: 6, contexts: 0 }));
    let (clock, is_over, begin) = (AtomicU64::new(1), AtomicBool::new(false), Barrier::new(THREADS as usize));
    let (mut taken, mut gone) = (0, 0);
    let mut look = || {
        let mut newest = HashMap::new();
        for number in 0..layout.sub_buffers {
            let Some(seen) = told(recorder.look(number)) else { continue };
            let mut bytes = vec![0; seen.bytes as usize];
            match told(recorder.copy(&seen, 0, &mut bytes)) {
                true => {
                    let events = events(&bytes);
                    assert!(events.iter().all(|event| event.0 == seen.thread.tid));
                    assert!(events.is_sorted_by(|one, next| one.1 < next.1));
                    newest.extend(events);
                    taken += 1;
                }
                false => gone += 1,
            }
        }
        newest
    };
    let newest = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (program, clock, begin) = (&program, &clock, &begin);
                scope.spawn(move || write(program, thread, 1, clock, begin))
            })
            .collect();
        scope.spawn(|| {
            writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
            is_over.store(true, Ordering::Release);
        });
        while !is_over.load(Ordering::Acquire) {
            look();
        }
        look()
    });
    assert!(taken > 100, "only {taken} were taken, {gone} were gone");
    assert!((0..THREADS).all(|thread| newest[&thread] == EVENTS - 1), "the last events are there: {newest:?}");
    assert_eq!((0..8).map(|lane| told(recorder.losses(lane)).discarded).sum::<u64>(), 0);
}

/// A thread that ends without giving back its lane leaves an open sub-buffer, which later threads on the lane overwrite as any other.
#[test]
fn what_an_ended_thread_left_open_is_overwritten() {
    let layout = layout(16, 4, 512);
    let pages = Pages::of(&layout);
    let memory = pages.mapped();
    let program = ProgramSide::begin(&memory, layout, &Identity::default()).expect("there is memory");
    let recorder = RecorderSide::new(Eyes(&pages), layout);
    told(recorder.say(&RecordingSettings { mode: OverflowMode::OverwriteOldest, lane: 2, pool: 4, contexts: 0 }));
    let mut time = 1;
    let mut write = |tid: u32, events: u32| {
        let mut lane = program.lane(WriterThread { tid, ..WriterThread::default() }).expect("there are enough");
        for number in 0..events {
            time += 1;
            if let Some(slot) = program.room(&mut lane, 0, 64, || time) {
                program.put(slot.at, &number.to_le_bytes());
                program.publish(&mut lane, slot);
            }
        }
        lane
    };
    let _ended = write(7, 1);
    let holder = told(recorder.holder(0)).expect("the thread has it");
    assert_eq!(holder.tid, Some(7));
    told(recorder.release(0, &holder));
    assert_eq!(told(recorder.holder(0)), None);
    let _next = write(8, 1000);
    let holder = told(recorder.holder(0)).expect("the next thread has it");
    assert_eq!(holder.tid, Some(8), "it has the lane of the other");
    assert_eq!(told(recorder.losses(0)).discarded, 0);
    let held: Vec<u32> = (0..4).filter_map(|number| told(recorder.look(number))).map(|seen| seen.thread.tid).collect();
    assert_eq!(held, [8, 8], "the events of the first thread were the oldest");
}

#[test]
fn definitions_without_room_are_reported() {
    let layout = layout(100, 4, 512);
    for (count, bytes, is_full) in [(100, 8, false), (101, 8, true), (3, 1352, false), (4, 1352, true), (1, 4096, true)]
    {
        let pages = Pages::of(&layout);
        let memory = pages.mapped();
        let program = ProgramSide::begin(&memory, layout, &Identity::default()).expect("there is memory");
        let recorder = RecorderSide::new(Eyes(&pages), layout);
        (0..count).for_each(|_| _ = program.define(&vec![b'a'; bytes]));
        assert_eq!(told(recorder.is_full()), is_full, "{count} of {bytes} bytes");
    }
}

#[test]
fn definitions_are_there_when_they_are_whole() {
    let layout = layout(100, 4, 512);
    let pages = Pages::of(&layout);
    let memory = pages.mapped();
    let program = ProgramSide::begin(&memory, layout, &Identity::default()).expect("there is memory");
    let recorder = RecorderSide::new(Eyes(&pages), layout);
    let defined = AtomicU64::new(0);
    let mut found: Vec<(u16, Vec<u8>)> = Vec::new();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (1..=THREADS as u8)
            .map(|thread| {
                let (program, defined) = (&program, &defined);
                scope.spawn(move || {
                    for length in 0..100 {
                        let is_defined = program.define(&vec![thread; length]).is_some();
                        defined.fetch_add(is_defined.into(), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let mut last = None;
        loop {
            let is_over = writers.iter().all(std::thread::ScopedJoinHandle::is_finished);
            while let Some(definition) = told(recorder.definition(last.as_ref())) {
                let mut bytes = vec![0; definition.bytes as usize];
                told(recorder.said(&definition, &mut bytes));
                found.push((definition.id, bytes));
                last = Some(definition);
            }
            if is_over {
                break;
            }
        }
    });
    let all = defined.load(Ordering::Relaxed);
    assert!(all > 20 && all < 300, "{all}: the registry is full at some time");
    assert_eq!(found.len() as u64, all);
    assert!(found.iter().all(|(_, bytes)| bytes.iter().all(|byte| (1..=3).contains(byte) && *byte == bytes[0])));
    let mut ids: Vec<u16> = found.iter().map(|found| found.0).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len() as u64, all, "each has an id of its own");
}
