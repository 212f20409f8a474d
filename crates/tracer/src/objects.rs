//! Users' eBPF programs at events: they run in the thread of the event, on its arguments, and count in maps in the
//! shared memory.
//!
//! ```text
//! rule ── image: moves, code ──> context on the stack ── run ──> r0: keep or not
//!                                     └── maps, where the recorder reads them
//! ```
//!
//! A run takes at most 65,536 steps, and cannot leave its context, its stack and its maps.

#![allow(unsafe_code, reason = "arguments lie in memory")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

use kymo_bytecode::object::{
    FRAME_BYTES, FRAMES_MAX, ImageMap, ImageMapKind, ObjectChange, ObjectFact, ObjectImage, ObjectSurroundings,
};
use kymo_lane::{FilterCode, FilterCodeKind, Mapped, PlacedMap, ProgramSide, SharedMap, TableInUse};

use crate::code::{Addresses, code_bytes, copied};
use crate::process::ProcessState;
use crate::{pages, thread};

/// Contexts and stacks of most programs fit into these.
const CONTEXT_SMALL: usize = 128;
const CONTEXT_BYTES: usize = 1024;
/// Times that a thread lets others run before it gives up a table, or a line, that is in use.
const YIELDS: u32 = 1000;
/// The reason of a run that found no line.
const NO_LINE: u64 = 6;

/// A user's program that was validated.
pub(crate) struct JudgedObject {
    image: ObjectImage<'static>,
    pid: u32,
    /// Runs at the same time; 1: its maps have one line.
    lines: u32,
    maps: [PlacedMap; MAPS],
    /// The last wait for a table or a line was in vain: a thread may have left it in the middle, from a signal handler, and
    /// others wait for it no more until one of them gets what it asks for.
    is_stuck: AtomicBool,
}

/// Maps of a program, at most.
const MAPS: usize = 64;

fn shared(map: ImageMap) -> SharedMap {
    SharedMap {
        is_hash: map.kind != ImageMapKind::Array,
        is_lru: map.kind == ImageMapKind::LruHash,
        key_bytes: map.key_bytes,
        value_bytes: map.value_bytes,
        entries: map.entries,
        lines: map.lines,
        place: map.place,
    }
}

impl JudgedObject {
    /// Copies and validates an image behind the slots, for arguments of that size.
    pub(crate) fn read(process: &ProcessState, (offset, bytes): (u32, u32), size: u64) -> Option<&'static Self> {
        let code = FilterCode { kind: FilterCodeKind::Judgement, offset, bytes };
        let head = size_of::<Self>();
        let (page, copy) = copied(code_bytes(process, code)?, head)?;
        let made = ObjectImage::read(copy).and_then(|image| Self::new(process, image, size));
        let Some(made) = made else {
            pages::unmap(page, head + copy.len());
            return None;
        };
        let place: NonNull<Self> = page.cast();
        // Safety: pages are aligned, have room, and are never given back.
        unsafe {
            place.write(made);
            Some(place.as_ref())
        }
    }

    fn new(process: &ProcessState, image: ObjectImage<'static>, size: u64) -> Option<Self> {
        let none =
            SharedMap { is_hash: false, is_lru: false, key_bytes: 4, value_bytes: 1, entries: 1, lines: 1, place: 0 };
        let mut maps = [none.placed(); MAPS];
        let (head, program) = (image.head(), process.program());
        for (number, place) in maps.iter_mut().enumerate().take(image.map_count()) {
            let map = shared(image.map(number)?);
            if !program.has_map(&map) {
                return None;
            }
            *place = map.placed();
        }
        let lines = maps[..image.map_count()].iter().map(|map| map.map().lines).max().unwrap_or(1);
        let is_right = u64::from(head.size) <= size && head.context_bytes as usize <= CONTEXT_BYTES;
        is_right.then_some(Self { image, pid: process.pid(), lines, maps, is_stuck: AtomicBool::new(false) })
    }

    /// Gives its maps memory; returns whether they have it.
    #[cold]
    pub(crate) fn is_there(&self, program: &ProgramSide<'_, Mapped>) -> bool {
        let head = self.image.head();
        program.reserve_object(head.state, head.bytes)
    }

    /// Runs the program; returns whether the event is kept.
    ///
    /// # Safety
    ///
    /// The arguments are those that the image was made for.
    pub(crate) unsafe fn run(&self, program: &ProgramSide<'_, Mapped>, arguments: *const u8) -> bool {
        let head = self.image.head();
        // Safety: see above; sizes were compared.
        let arguments = unsafe { core::slice::from_raw_parts(arguments, head.size as usize) };
        let line = if self.lines == 1 { None } else { self.line(program) };
        if line.is_none() && self.lines > 1 {
            program.note_stop(head.state, head.number, NO_LINE);
            return true;
        }
        let number = line.map_or(0, kymo_lane::TakenLine::number);
        let mut world = ProgramWorld { program, object: self, arguments, line: number };
        let result = if head.context_bytes as usize <= CONTEXT_SMALL && head.frames == 1 {
            world.run::<CONTEXT_SMALL, FRAME_BYTES>()
        } else {
            world.run::<CONTEXT_BYTES, { FRAME_BYTES * FRAMES_MAX }>()
        };
        if let Some(line) = line {
            program.give_line(head.state, line);
        }
        result != 0 || !head.is_filter
    }

    fn line(&self, program: &ProgramSide<'_, Mapped>) -> Option<kymo_lane::TakenLine> {
        let first = u32::from(thread::cpu()) % self.lines;
        self.patient(|| program.take_line(self.image.head().state, first, self.lines).ok_or(TableInUse)).ok()
    }

    /// Asks again while other threads have it.
    #[inline]
    fn patient<T>(&self, mut ask: impl FnMut() -> Result<T, TableInUse>) -> Result<T, TableInUse> {
        match ask() {
            Ok(answer) => Ok(answer),
            Err(TableInUse) => self.asks_again(&mut ask),
        }
    }

    #[cold]
    fn asks_again<T>(&self, ask: &mut dyn FnMut() -> Result<T, TableInUse>) -> Result<T, TableInUse> {
        let times = if self.is_stuck.load(Ordering::Relaxed) { 1 } else { YIELDS };
        for _ in 0..times {
            // Safety: it has no arguments.
            unsafe { libc::sched_yield() };
            if let Ok(answer) = ask() {
                self.is_stuck.store(false, Ordering::Relaxed);
                return Ok(answer);
            }
        }
        self.is_stuck.store(true, Ordering::Relaxed);
        Err(TableInUse)
    }
}

/// The surroundings of a run.
struct ProgramWorld<'p> {
    program: &'p ProgramSide<'p, Mapped>,
    object: &'p JudgedObject,
    arguments: &'p [u8],
    line: u32,
}

impl ProgramWorld<'_> {
    fn run<const CONTEXT: usize, const STACK: usize>(&mut self) -> u64 {
        let (mut context, mut stack) = ([0; CONTEXT], [0; STACK]);
        let image = self.object.image;
        let head = image.head();
        let context = &mut context[..head.context_bytes as usize];
        let used = (head.frames as usize * FRAME_BYTES).min(STACK);
        image.fill(self.arguments, &Addresses, context);
        match image.run(context, &mut stack[..used], self) {
            Ok(result) => result,
            Err(stop) => {
                let reason = u64::from(stop.at) << 32 | stop.kind as u64;
                self.program.note_stop(head.state, head.number, reason);
                // Where it cannot be said, the event is kept.
                1
            }
        }
    }

    #[inline]
    fn map(&self, number: usize) -> &PlacedMap {
        &self.object.maps[number % MAPS]
    }

    fn busy(&self) -> i64 {
        const BUSY: i64 = -16;
        let head = self.object.image.head();
        self.program.note_busy(head.state, head.number);
        BUSY
    }

    fn changed(&self, change: impl FnMut() -> Result<i64, TableInUse>) -> i64 {
        const BUSY: i64 = -16;
        match self.object.patient(change) {
            Ok(BUSY) | Err(TableInUse) => self.busy(),
            Ok(result) => result,
        }
    }
}

impl ObjectSurroundings for ProgramWorld<'_> {
    fn look_up(&mut self, map: usize, key: &[u8]) -> Option<u32> {
        let found = self.object.patient(|| self.program.look_up(self.map(map), self.line, key));
        found.unwrap_or_else(|TableInUse| {
            self.busy();
            None
        })
    }

    fn update(&mut self, map: usize, key: &[u8], value: &[u8], flags: u64) -> i64 {
        let thread = thread::pointer() as u64;
        self.changed(|| self.program.update(self.map(map), (self.line, thread), (key, value), flags))
    }

    fn remove(&mut self, map: usize, key: &[u8]) -> i64 {
        let thread = thread::pointer() as u64;
        self.changed(|| self.program.remove(self.map(map), thread, key))
    }

    #[inline]
    fn place(&self, map: usize, offset: u32, bytes: usize) -> Option<u64> {
        self.map(map).value(offset.into(), bytes as u64)
    }

    #[inline]
    fn load(&self, place: u64, bytes: u8) -> u64 {
        self.program.object_number(place, bytes)
    }

    #[inline]
    fn store(&mut self, place: u64, bytes: u8, value: u64) {
        self.program.set_object_number(place, bytes, value);
    }

    #[inline]
    fn change(&mut self, place: u64, bytes: u8, change: ObjectChange, (value, expected): (u64, u64)) -> u64 {
        self.program.change_object_number(place, bytes, |before| change.after(before, value, expected))
    }

    fn fact(&mut self, fact: ObjectFact) -> u64 {
        match fact {
            ObjectFact::Nanos => crate::clock::monotonic(),
            ObjectFact::Cpu => thread::cpu().into(),
            ObjectFact::ProcessAndThread => u64::from(self.object.pid) << 32 | u64::from(thread::tid()),
            ObjectFact::Random => {
                let seed = crate::clock::ticks() ^ (thread::pointer() as u64).rotate_left(32);
                seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
            }
        }
    }

    fn thread_name(&self) -> [u8; 16] {
        thread::name()
    }

    fn text(&self, number: usize) -> Option<&[u8]> {
        self.object.image.text(number, self.arguments, &Addresses)
    }
}
