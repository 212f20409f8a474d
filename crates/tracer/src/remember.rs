//! What rules remember: per key, in tables of fixed size that only this process has.
//!
//! ```text
//! begin   key, ticks ──> table
//! end     key ──> ticks since ──> more than the limit?          every Nth   key ──> count
//!                                                               at most     key ──> begin of the window, count in it
//! ```
//!
//! A key is a hash of 64 bits. A set of four places has a key, or forgets its oldest one for it. No thread waits
//! for another one, and a signal handler may come at any time: the two words of a place are checked against each
//! other, so that half of one key and half of another one are no key. Where a begin is not known, the end is kept.
//!
//! In a child process, however it was made, tables are empty.

#![allow(unsafe_code, reason = "tables lie in pages of their own")]

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use kymo_lane::judgement::{JudgedTest, KeyPart, RuleNumber};
use kymo_lane::{KeyHash, KindPlace, LINES_MAX, Mapped, ProgramSide, RULES_MAX, RuleCount, RulePlace};

use crate::code::TEXT_BYTES_MAX;
use crate::objects::JudgedObject;
use crate::pages;
use crate::thread;

/// Sets of a table.
const SETS: usize = 1 << 12;
/// Places of a set: one cache line.
const PLACES: usize = 4;
const TABLE_BYTES: usize = SETS * size_of::<TableSet>() + pages::PAGE;

/// Tables by the number of their rule; they are never removed.
static TABLES: [AtomicPtr<RuleTable>; RULES_MAX as usize] = [const { AtomicPtr::new(null_mut()) }; RULES_MAX as usize];

/// The table of a rule.
#[repr(C, align(4096))]
struct RuleTable {
    /// TablePlace of the rule's part in the process' shared memory; 0: this process has not looked yet.
    shared: AtomicU64,
    /// Place of the user's object that has memory for its maps in this process.
    object: AtomicU64,
    sets: [TableSet; SETS],
}

#[repr(C, align(64))]
struct TableSet([TablePlace; PLACES]);

/// A key and its word.
#[repr(C)]
struct TablePlace {
    key: AtomicU64,
    word: AtomicU64,
}

/// A rule of a judgement.
#[derive(Clone, Copy)]
pub(crate) struct JudgedRule {
    rule: RuleNumber,
    /// `None`: it remembers the time of the event.
    test: Option<JudgedTest>,
    /// Parts of its key.
    keys: &'static [KeyPart],
    kind: Option<KeyPart>,
    table: &'static RuleTable,
    /// It asks a user's program.
    object: Option<&'static JudgedObject>,
}

/// The answer of a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleAnswer {
    /// The event is let go.
    No,
    /// It is kept, so many ticks after its begin; 0: it has none, or that is not known.
    Yes(u64),
    /// The recorder asks: it has not set up the rule in this process.
    Later,
}

impl JudgedRule {
    /// A rule with its table, which is made if there is none; `None`: there is no memory for it.
    pub(crate) fn new(
        rule: RuleNumber,
        test: Option<JudgedTest>,
        keys: &'static [KeyPart],
        kind: Option<KeyPart>,
        object: Option<&'static JudgedObject>,
    ) -> Option<Self> {
        let place = &TABLES[usize::from(rule.number)];
        if place.load(Ordering::Acquire).is_null() {
            let table = pages::own(TABLE_BYTES)?;
            if place.compare_exchange(null_mut(), table.cast().as_ptr(), Ordering::AcqRel, Ordering::Acquire).is_err() {
                // Another thread was faster.
                pages::unmap(table, TABLE_BYTES);
            }
        }
        // Safety: tables are never removed.
        let table = unsafe { place.load(Ordering::Acquire).as_ref() }?;
        Some(Self { rule, test, keys, kind, table, object })
    }

    /// Whether it asks for the time.
    pub(crate) fn reads_clock(&self) -> bool {
        !matches!(self.test, Some(JudgedTest::Every | JudgedTest::Object { .. }))
    }

    /// The rule's part in shared memory, where the recorder has set it up.
    #[inline]
    fn shared(&self, program: &ProgramSide<'_, Mapped>) -> Option<RulePlace> {
        let known = self.table.shared.load(Ordering::Relaxed);
        // A rule of another session may have had the number before.
        let has_memory = self.object.is_none_or(|object| self.table.object.load(Ordering::Relaxed) == object.state());
        let place = if known == 0 || !has_memory { self.find(program)? } else { RulePlace::of(known) };
        program.has_rule(place, self.rule.epoch).then_some(place)
    }

    /// The first time in this process, which may be a child.
    #[cold]
    fn find(&self, program: &ProgramSide<'_, Mapped>) -> Option<RulePlace> {
        let _errno = pages::Errno::keep();
        let place = program.reserve_rule(self.rule.number)?;
        if let Some(object) = self.object {
            if !object.is_there(program) {
                return None;
            }
            self.table.object.store(object.state(), Ordering::Relaxed);
        }
        self.table.shared.store(place.number(), Ordering::Relaxed);
        Some(place)
    }

    /// Remembers the time of a begin event; returns whether ends of this process are asked about it.
    ///
    /// # Safety
    ///
    /// The keys are values of these arguments.
    #[inline(always)]
    pub(crate) unsafe fn begin(&self, program: &ProgramSide<'_, Mapped>, arguments: *const u8, now: u64) -> bool {
        let Some(shared) = self.shared(program) else { return false };
        // Safety: see above.
        let key = unsafe { self.key(arguments) };
        let (place, has_forgotten) = self.table.set(key).begins_at(key);
        if has_forgotten {
            program.count(shared, RuleCount::Forgotten, line());
        }
        place.key.store(key, Ordering::Relaxed);
        place.word.store(now ^ key, Ordering::Release);
        true
    }

    /// Whether the event is kept; `is_kept_unknown`: also one whose begin is not known.
    ///
    /// # Safety
    ///
    /// The keys are values of these arguments.
    #[inline(always)]
    pub(crate) unsafe fn answer(
        &self,
        program: &ProgramSide<'_, Mapped>,
        arguments: *const u8,
        now: u64,
        is_kept_unknown: bool,
    ) -> RuleAnswer {
        let Some(shared) = self.shared(program) else { return RuleAnswer::Later };
        if let Some(object) = self.object {
            // Safety: see above.
            let answer = is_kept(unsafe { object.run(program, arguments) });
            program.count(shared, if answer == RuleAnswer::No { RuleCount::LetGo } else { RuleCount::Kept }, line());
            return answer;
        }
        // Safety: see above.
        let key = unsafe { self.key(arguments) };
        let (answer, has_forgotten) = match self.test {
            Some(JudgedTest::Over(part)) => match self.table.set(key).end(key, now) {
                // Safety: see above.
                Some(ticks) if unsafe { self.is_over((program, shared), part, ticks, arguments) } => {
                    (RuleAnswer::Yes(ticks.max(1)), false)
                }
                Some(_) => (RuleAnswer::No, false),
                None => {
                    program.count(shared, RuleCount::Unknown, line());
                    (is_kept(is_kept_unknown), false)
                }
            },
            Some(JudgedTest::Every) => {
                let (place, has_forgotten) = self.table.set(key).place(key);
                let count = place.word.fetch_add(1, Ordering::Relaxed);
                let is_its = count.checked_rem(program.limit(shared)).is_none_or(|rest| rest == 0);
                (is_kept(is_its), has_forgotten)
            }
            Some(JudgedTest::AtMost) => {
                let (place, has_forgotten) = self.table.set(key).place(key);
                let [limit, window] = [program.limit(shared), program.window(shared)];
                (is_kept(is_within(&place.word, now, limit, window)), has_forgotten)
            }
            Some(JudgedTest::Object { .. }) | None => (RuleAnswer::Yes(0), false),
        };
        let line = line();
        if has_forgotten {
            program.count(shared, RuleCount::Forgotten, line);
        }
        program.count(shared, if answer == RuleAnswer::No { RuleCount::LetGo } else { RuleCount::Kept }, line);
        answer
    }

    /// Whether so many ticks are more than the limit.
    ///
    /// # Safety
    ///
    /// See [`answer`](Self::answer).
    #[inline]
    unsafe fn is_over(
        &self,
        (program, shared): (&ProgramSide<'_, Mapped>, RulePlace),
        part: u32,
        ticks: u64,
        arguments: *const u8,
    ) -> bool {
        let limit = program.limit(shared);
        if part == 0 && self.kind.is_none() {
            return limit == 0 || ticks > limit;
        }
        // Safety: see above.
        unsafe { self.is_over_kind((program, shared), limit, part, ticks, arguments) }
    }

    /// The same, where the limit is the program's own, or that of a kind.
    #[inline(never)]
    unsafe fn is_over_kind(
        &self,
        (program, shared): (&ProgramSide<'_, Mapped>, RulePlace),
        limit: u64,
        part: u32,
        ticks: u64,
        arguments: *const u8,
    ) -> bool {
        let (set, place) = match self.kind {
            None => (0, Some(program.running(shared))),
            Some(kind) => {
                // Safety: see above.
                let hash = unsafe { part_of(KeyHash::new(0), kind, arguments) }.word();
                // Safety: see above.
                let name = || unsafe { name(kind, arguments) };
                // Kinds beyond those that have a place share one.
                let place = program.kind(shared, hash, name).or_else(|| Some(program.running(shared)));
                (program.set_limit_of(shared, hash), place)
            }
        };
        // The running limit goes on also while another one is set, so that it is known when it is asked for.
        let running = match place {
            Some(place) if part != 0 => Some(follow(program, place, part, ticks)),
            place => {
                place.into_iter().for_each(|place| program.count_kind(place));
                None
            }
        };
        match if set != 0 { set } else { limit } {
            0 => running.unwrap_or(true),
            limit => ticks > limit,
        }
    }

    /// The hash of the key.
    ///
    /// # Safety
    ///
    /// See [`answer`](Self::answer).
    #[inline]
    unsafe fn key(&self, arguments: *const u8) -> u64 {
        let seed = KeyHash::new(self.rule.epoch.into());
        // Safety: see above.
        self.keys.iter().fold(seed, |hash, key| unsafe { part_of(hash, *key, arguments) }).word()
    }
}

fn is_kept(is_kept: bool) -> RuleAnswer {
    if is_kept { RuleAnswer::Yes(0) } else { RuleAnswer::No }
}

/// # Safety
///
/// The value is one of these arguments.
#[inline]
unsafe fn part_of(hash: KeyHash, value: KeyPart, arguments: *const u8) -> KeyHash {
    match value {
        KeyPart::Thread => hash.number(thread::pointer() as u64),
        // Safety: see above.
        KeyPart::Number { .. } => hash.number(unsafe { number(value, arguments) }),
        // Safety: see above.
        KeyPart::Text { offset } => hash.text(unsafe { text(offset, arguments) }),
    }
}

/// # Safety
///
/// See [`part_of`].
#[inline]
unsafe fn number(value: KeyPart, arguments: *const u8) -> u64 {
    let KeyPart::Number { offset, bytes, is_signed } = value else { return 0 };
    // Safety: see above.
    unsafe {
        let at = arguments.add(offset as usize);
        match (bytes, is_signed) {
            (1, false) => at.read().into(),
            (1, true) => i64::from(at.cast::<i8>().read()).cast_unsigned(),
            (2, false) => at.cast::<u16>().read_unaligned().into(),
            (2, true) => i64::from(at.cast::<i16>().read_unaligned()).cast_unsigned(),
            (4, false) => at.cast::<u32>().read_unaligned().into(),
            (4, true) => i64::from(at.cast::<i32>().read_unaligned()).cast_unsigned(),
            _ => at.cast::<u64>().read_unaligned(),
        }
    }
}

/// # Safety
///
/// See [`part_of`]. The callsite guarantees that the text has its length.
unsafe fn text<'a>(offset: u32, arguments: *const u8) -> &'a [u8] {
    // Safety: see above.
    unsafe {
        let place = arguments.add(offset as usize).cast::<u64>();
        let (address, length) = (place.read_unaligned(), place.add(1).read_unaligned());
        if address == 0 {
            return &[];
        }
        let all = core::slice::from_raw_parts(address as *const u8, length.min(TEXT_BYTES_MAX) as usize);
        all.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Name of a kind: its begin, or its number.
///
/// # Safety
///
/// See [`part_of`].
unsafe fn name(value: KeyPart, arguments: *const u8) -> [u8; KindPlace::NAME_BYTES] {
    let mut name = [0; KindPlace::NAME_BYTES];
    // Safety: see above.
    match value {
        KeyPart::Text { offset } => {
            let text = unsafe { text(offset, arguments) };
            let bytes = text.len().min(name.len());
            name[..bytes].copy_from_slice(&text[..bytes]);
        }
        KeyPart::Number { .. } => name[..8].copy_from_slice(&unsafe { number(value, arguments) }.to_le_bytes()),
        KeyPart::Thread => name[..8].copy_from_slice(&u64::from(thread::tid()).to_le_bytes()),
    }
    name
}

/// Whether these ticks are more than the running limit, which follows them then: it is the ticks that this part of 2^32
/// of all events do not exceed. An event that exceeds it moves it up by a share of itself, all others move it down,
/// so that it stays where the two are even.
fn follow(program: &ProgramSide<'_, Mapped>, place: KindPlace, part: u32, ticks: u64) -> bool {
    /// Share of a limit that it moves by, at least; the first events move it more.
    const SHARE: f64 = 0.02;
    let (limit, events) = program.running_limit(place);
    let (ticks, part) = (ticks as f64, f64::from(part) / 4_294_967_296.0);
    let share = f64::max(SHARE, 1.0 / (events as f64 + 1.0));
    let is_over = ticks > limit;
    let next = match events {
        0 => ticks,
        _ if is_over => limit * (1.0 + share * part),
        _ => limit * (1.0 - share * (1.0 - part)),
    };
    program.set_running_limit(place, f64::max(next, 1.0));
    is_over
}

/// Whether fewer than the limit were kept in the window of the word; if so, this event is one more.
fn is_within(word: &AtomicU64, now: u64, limit: u64, window: u64) -> bool {
    const COUNT_BITS: u32 = 16;
    const SHIFT: u32 = 8;
    // The begin of the window in steps of 256 ticks, and the count in 16 bits.
    let step = |ticks: u64| (ticks >> SHIFT) << COUNT_BITS;
    loop {
        let known = word.load(Ordering::Relaxed);
        let (begin, count) = (known & !0xffff, known & 0xffff);
        // Other processors' counters may be slightly behind.
        let since = (step(now).wrapping_sub(begin) as i64).max(0).cast_unsigned();
        let next = match () {
            () if known == 0 || since >= step(window).max(1 << COUNT_BITS) => step(now) | 1,
            () if count < limit.min(0xffff) => known + 1,
            () => return false,
        };
        if word.compare_exchange_weak(known, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return true;
        }
    }
}

impl RuleTable {
    #[inline]
    fn set(&self, key: u64) -> &TableSet {
        &self.sets[(key >> 40) as usize % SETS]
    }
}

impl TableSet {
    /// The place for the begin of a key, and whether another one is forgotten for it.
    #[inline]
    fn begins_at(&self, key: u64) -> (&TablePlace, bool) {
        let (mut free, mut oldest) = (None, (&self.0[0], u64::MAX));
        for place in &self.0 {
            match place.key.load(Ordering::Relaxed) {
                known if known == key => return (place, false),
                0 => free = free.or(Some(place)),
                known => {
                    let ticks = place.word.load(Ordering::Relaxed) ^ known;
                    oldest = if ticks < oldest.1 { (place, ticks) } else { oldest };
                }
            }
        }
        free.map_or((oldest.0, true), |free| (free, false))
    }

    /// Ticks since the begin of a key, which is forgotten.
    #[inline]
    fn end(&self, key: u64, now: u64) -> Option<u64> {
        /// Longer ones are of no begin: the words do not belong together.
        const TICKS_MAX: u64 = 1 << 48;
        const BACK_MAX: u64 = 1 << 20;
        let place = self.0.iter().find(|place| place.key.load(Ordering::Acquire) == key)?;
        let begin = place.word.load(Ordering::Acquire) ^ key;
        let is_ours = place.key.load(Ordering::Relaxed) == key;
        if is_ours {
            // Another key that comes at this very moment is forgotten: its end is kept.
            place.key.store(0, Ordering::Relaxed);
        }
        // Other processors' counters may be slightly behind.
        let ticks = now.saturating_sub(begin);
        let is_begin = begin.saturating_sub(now) < BACK_MAX && ticks < TICKS_MAX && is_ours;
        is_begin.then_some(ticks)
    }

    /// The place of a key, and whether another one is forgotten for it.
    #[inline]
    fn place(&self, key: u64) -> (&TablePlace, bool) {
        loop {
            let known = self.0.each_ref().map(|place| place.key.load(Ordering::Acquire));
            if let Some(at) = known.iter().position(|known| *known == key) {
                return (&self.0[at], false);
            }
            let free = known.iter().position(|known| *known == 0);
            let at = free.unwrap_or(key as usize % PLACES);
            let place = &self.0[at];
            if place.key.compare_exchange(known[at], key, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                if free.is_none() {
                    place.word.store(0, Ordering::Relaxed);
                }
                return (place, free.is_none());
            }
        }
    }
}

/// Threads that have lines of counts of their own, by their pointers. A line stays that of its thread; another thread that
/// gets the pointer later has it then.
static LINES: [AtomicUsize; LINES_MAX as usize + 1] = [const { AtomicUsize::new(0) }; LINES_MAX as usize + 1];

/// The line of counts of this thread, if it has one.
#[inline]
fn line() -> Option<u8> {
    let pointer = thread::pointer();
    let first = ((pointer as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize;
    for step in 0..8 {
        let line = (first + step) % LINES.len();
        let owner = &LINES[line];
        let known = owner.load(Ordering::Relaxed);
        let is_free = || owner.compare_exchange(0, pointer, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if known == pointer || known == 0 && line < LINES_MAX as usize && is_free() {
            return Some(line as u8);
        }
    }
    None
}

/// Whether pages are aligned like tables.
const _: () = assert!(align_of::<RuleTable>() == pages::PAGE && size_of::<RuleTable>() <= TABLE_BYTES);

/// A table in pages of its own.
#[cfg(test)]
fn new_table() -> &'static RuleTable {
    let pages: core::ptr::NonNull<u8> = pages::own(TABLE_BYTES).expect("there is memory");
    // Safety: zeros are a table, and it is never removed.
    unsafe { pages.cast::<RuleTable>().as_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_finds_its_begin_once() {
        let table = new_table();
        let key = KeyHash::new(1).number(5).word();
        let place = &table.set(key).0[0];
        place.key.store(key, Ordering::Relaxed);
        place.word.store(1000 ^ key, Ordering::Relaxed);
        assert_eq!(table.set(key).end(key, 1500), Some(500));
        assert_eq!(table.set(key).end(key, 1500), None);
        // Words that do not belong together are no begin.
        place.key.store(key, Ordering::Relaxed);
        place.word.store(1000 ^ KeyHash::new(1).number(6).word(), Ordering::Relaxed);
        assert_eq!(table.set(key).end(key, 1500), None);
    }

    #[test]
    fn a_window_has_so_many_events_and_no_more() {
        let word = AtomicU64::new(0);
        let kept = (0..100).filter(|at| is_within(&word, 1_000_000 + at * 100_000, 3, 1_000_000)).count();
        // Ten windows of ten events each.
        assert_eq!(kept, 30);
        assert!(!is_within(&word, 1_000_000, 3, 1_000_000), "a time slightly before the window is in it");
        let empty = AtomicU64::new(0);
        assert_eq!((0..10_u64).filter(|at| is_within(&empty, 5000 + at, 100_000, 1 << 40)).count(), 10);
    }

    #[test]
    fn counts_of_a_set_go_on_until_a_key_is_forgotten() {
        let set = &new_table().sets[0];
        for key in 1..=4 {
            assert!(!set.place(key).1);
            set.place(key).0.word.store(key, Ordering::Relaxed);
        }
        assert_eq!(set.place(3).0.word.load(Ordering::Relaxed), 3);
        let (place, has_forgotten) = set.place(7);
        assert!(has_forgotten && place.word.load(Ordering::Relaxed) == 0);
    }
}
