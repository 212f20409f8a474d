//! Users' eBPF programs at events: they run in the thread of the event, on its arguments, and count in maps in the
//! shared memory.
//!
//! ```text
//! rule ── image: moves, code ──> context on the stack ── run ──> r0: keep or not
//!                                     └── maps, where the recorder reads them
//! ```
//!
//! The recorder writes the machine code of a program for this process: it knows the addresses of [`functions`]. Without it, the interpreter
//! runs the program.
//!
//! A run takes at most 65,536 steps, and cannot leave its context, its stack and its maps.

#![allow(unsafe_code, reason = "arguments lie in memory")]

use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

use kymo_bytecode::object::{
    EventArguments, FRAME_BYTES, FRAMES_MAX, ImageMap, ImageMapKind, NativeMemory, NativeRun, ObjectChange, ObjectFact,
    ObjectImage, ObjectStop, ObjectSurroundings,
};
use kymo_lane::{
    FilterCode, FilterCodeKind, Mapped, OBJECT_HEAD_BYTES, ObjectUser, PlacedMap, ProgramSide, SharedMap, TableInUse,
};

use crate::code::{Addresses, code_bytes, copied, native};
use crate::interrupted::RunMark;
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
    /// Its machine code.
    code: Option<usize>,
    pid: u32,
    /// Runs at the same time; 1: its maps have one line.
    lines: u32,
    maps: &'static [PlacedMap],
    /// The last wait for a table or a line was in vain: a thread may have left it in the middle, from a signal handler, and
    /// others wait for it no more until one of them gets what it asks for.
    is_stuck: AtomicBool,
}

/// A run of machine code in this process.
type CodeRun<'p> = NativeRun<'p, ProgramWorld<'p>, Addresses>;

/// Addresses of the functions that machine code calls.
pub(crate) fn functions() -> [u64; 4] {
    CodeRun::functions().words()
}

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
        let (head, count) = (image.head(), image.map_count());
        if u64::from(head.size) > size || head.context_bytes as usize > CONTEXT_BYTES {
            return None;
        }
        // In pages of their own: threads may have small stacks.
        let bytes = (count * size_of::<PlacedMap>()).max(1);
        let page: NonNull<PlacedMap> = pages::plain(bytes)?.cast();
        let (program, mut lines) = (process.program(), 1);
        for number in 0..count {
            let map = image.map(number).map(shared).filter(|map| program.has_map(map)).map(SharedMap::placed);
            // What is reserved is that of the object.
            let its = map.filter(|map| {
                map.map().place >= head.state + OBJECT_HEAD_BYTES && map.end() <= head.state.saturating_add(head.bytes)
            });
            let Some(map) = its else {
                pages::unmap(page.cast(), bytes);
                return None;
            };
            lines = lines.max(map.map().lines);
            // Safety: pages are aligned, and have room for so many.
            unsafe { page.add(number).write(map) };
        }
        // Safety: so many were written, and the pages are never given back.
        let maps = unsafe { core::slice::from_raw_parts(page.as_ptr(), count) };
        let code = head.code.and_then(|(offset, bytes)| {
            let code = native(process, FilterCode { kind: FilterCodeKind::Native, offset, bytes })?;
            (head.frames == 1).then_some(code as usize)
        });
        Some(Self { image, code, pid: process.pid(), lines, maps, is_stuck: AtomicBool::new(false) })
    }

    /// The place of the object, by which it is known.
    #[inline]
    pub(crate) fn state(&self) -> u64 {
        self.image.head().state
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
        let frame = 0_u8;
        let user = ObjectUser::new(thread::pointer() as u64, (&raw const frame) as u64);
        let line = if self.lines == 1 { None } else { self.line(program, user) };
        if line.is_none() && self.lines > 1 {
            program.note_stop(head.state, head.number, NO_LINE);
            return true;
        }
        let number = line.map_or(0, kymo_lane::TakenLine::number);
        let text = Cell::new((usize::MAX, None));
        let mut world = ProgramWorld { program, object: self, arguments, line: number, user, text };
        let mark = RunMark::begin();
        let result = if head.context_bytes as usize <= CONTEXT_SMALL && head.frames == 1 {
            world.run::<CONTEXT_SMALL, FRAME_BYTES>()
        } else {
            world.run::<CONTEXT_BYTES, { FRAME_BYTES * FRAMES_MAX }>()
        };
        mark.end();
        if let Some(line) = line {
            program.give_line(head.state, line);
        }
        result != 0 || !head.is_filter
    }

    fn line(&self, program: &ProgramSide<'_, Mapped>, user: ObjectUser) -> Option<kymo_lane::TakenLine> {
        let first = u32::from(thread::cpu()) % self.lines;
        let in_use = TableInUse { is_own: false };
        self.patient(|| program.take_line(self.image.head().state, (first, self.lines), user).ok_or(in_use)).ok()
    }

    /// Asks again while other threads have it.
    #[inline]
    fn patient<T>(&self, mut ask: impl FnMut() -> Result<T, TableInUse>) -> Result<T, TableInUse> {
        match ask() {
            Ok(answer) => {
                if self.is_stuck.load(Ordering::Relaxed) {
                    self.is_stuck.store(false, Ordering::Relaxed);
                }
                Ok(answer)
            }
            Err(in_use) if in_use.is_own => Err(in_use),
            Err(_) => self.asks_again(&mut ask),
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
        Err(TableInUse { is_own: false })
    }
}

/// The surroundings of a run.
struct ProgramWorld<'p> {
    program: &'p ProgramSide<'p, Mapped>,
    object: &'p JudgedObject,
    arguments: &'p [u8],
    line: u32,
    user: ObjectUser,
    /// The text that was asked for last, by the number of its move.
    text: Cell<(usize, Option<&'p [u8]>)>,
}

impl ProgramWorld<'_> {
    // Not inlined: a small program does not take the stack of a large one.
    #[inline(never)]
    fn run<const CONTEXT: usize, const STACK: usize>(&mut self) -> u64 {
        let (mut context, mut stack) = ([0; CONTEXT], [0; STACK]);
        let image = self.object.image;
        let head = image.head();
        let context = &mut context[..head.context_bytes as usize];
        let used = (head.frames as usize * FRAME_BYTES).min(STACK);
        let stack = &mut stack[..used];
        let result = match self.object.code {
            Some(code) => {
                let arguments = EventArguments { bytes: self.arguments, texts: &Addresses };
                let memory = NativeMemory { context, stack, base: self.program.memory_base(), line: self.line };
                // Safety: the recorder states that this function is for this image and this process, and is trusted; the maps are where
                // the image says, behind that base.
                unsafe { NativeRun::run((image, code), arguments, memory, self) }
            }
            None => {
                image.fill(self.arguments, &Addresses, context);
                image.run(context, stack, self)
            }
        };
        result.unwrap_or_else(|stop| self.stopped(stop))
    }

    /// Notes why the program has stopped. Where it cannot be said, the event is kept.
    #[cold]
    fn stopped(&self, stop: ObjectStop) -> u64 {
        let head = self.object.image.head();
        self.program.note_stop(head.state, head.number, u64::from(stop.at) << 32 | stop.kind as u64);
        1
    }

    /// A map that helper functions were called with.
    #[inline]
    fn map(&self, number: usize) -> &PlacedMap {
        // Images name no others.
        &self.object.maps[number]
    }

    /// Counts a use of a map that could not be.
    #[cold]
    fn busy(&self, _: TableInUse) -> i64 {
        const BUSY: i64 = -16;
        let head = self.object.image.head();
        self.program.note_busy(head.state, head.number);
        BUSY
    }
}

impl ObjectSurroundings for ProgramWorld<'_> {
    fn look_up(&mut self, map: usize, key: &[u8]) -> Option<u32> {
        let found = self.object.patient(|| self.program.look_up(self.map(map), (self.line, self.user), key));
        found.unwrap_or_else(|in_use| {
            self.busy(in_use);
            None
        })
    }

    fn update(&mut self, map: usize, key: &[u8], value: &[u8], flags: u64) -> i64 {
        let (map, run) = (self.map(map), (self.line, self.user));
        let changed = self.object.patient(|| self.program.update(map, run, (key, value), flags));
        changed.unwrap_or_else(|in_use| self.busy(in_use))
    }

    fn remove(&mut self, map: usize, key: &[u8]) -> i64 {
        let changed = self.object.patient(|| self.program.remove(self.map(map), self.user, key));
        changed.unwrap_or_else(|in_use| self.busy(in_use))
    }

    #[inline]
    fn place(&self, map: usize, offset: u32, bytes: usize) -> Option<u64> {
        self.object.maps.get(map)?.value(offset.into(), bytes as u64)
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
        let (known, text) = self.text.get();
        if known == number {
            return text;
        }
        let text = self.object.image.text(number, self.arguments, &Addresses);
        self.text.set((number, text));
        text
    }
}
