//! Rules: filters that remember earlier events of a program. What they remember is in memory of the program
//! alone; their limits and counts are here, so that a recorder sets and reads them while the program runs.
//!
//! ```text
//! rule   limit │ window │ running limit ││ limits of kinds ││ kinds    ││ counts: a line for each of several threads
//!        recorder          program        recorder            program     program
//! ```
//!
//! A *kind* is what a rule has a limit of its own for, such as each route of a server. It is known by a hash of
//! 64 bits.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::layout::{KINDS_MAX, LINES_MAX, RULES_MAX, header, rule};
use crate::memory::{MemoryView, ProgramMemory};
use crate::sides::{ProgramSide, RecorderSide};

/// Places where a kind may be.
const KIND_STEPS: u64 = 16;

/// What a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleCount {
    /// Events that it has kept.
    Kept = 0,
    /// Events that it has let go.
    LetGo = 8,
    /// Of those that it has kept, ends without a known begin.
    Unknown = 16,
    /// Keys that it has forgotten for others.
    Forgotten = 24,
}

/// Counts of a rule, since the program began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// See [`RuleCount::Kept`].
    pub kept: u64,
    /// See [`RuleCount::LetGo`].
    pub let_go: u64,
    /// See [`RuleCount::Unknown`].
    pub unknown: u64,
    /// See [`RuleCount::Forgotten`].
    pub forgotten: u64,
}

/// A kind, as the program knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KindLimit {
    /// Hash of its name.
    pub hash: u64,
    /// Its running limit, in ticks.
    pub running: f64,
    /// Number of its events so far.
    pub events: u64,
    /// The begin of its name, or its number.
    pub name: [u8; KindPlace::NAME_BYTES],
}

/// Place of the running limit of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindPlace(u64);

impl KindPlace {
    /// Bytes of a kind's name.
    pub const NAME_BYTES: usize = (rule::KIND_BYTES - rule::KIND_NAME) as usize;
}

/// Hash of parts of a key or kind, so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(u64);

impl KeyHash {
    /// Without parts; keys of different seeds are different.
    #[inline]
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.rotate_left(32) ^ 0xd6e8_feb8_6659_fd93)
    }

    /// With a number more.
    ///
    /// ```
    /// use kymo_lane::KeyHash;
    /// assert_eq!(KeyHash::new(0).number(5).word(), KeyHash::new(0).number(5).word());
    /// assert_ne!(KeyHash::new(0).number(5).word(), KeyHash::new(1).number(5).word());
    /// ```
    #[inline]
    #[must_use]
    pub fn number(self, number: u64) -> Self {
        // The high half of the product has something of each bit.
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        Self((product >> 64) as u64 ^ product as u64)
    }

    /// With a text more.
    #[must_use]
    pub fn text(self, text: &[u8]) -> Self {
        let (words, rest) = text.as_chunks::<8>();
        let all =
            words.iter().fold(self.number(text.len() as u64), |hash, word| hash.number(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        all.number(u64::from_le_bytes(last))
    }

    /// The hash; never 0.
    #[inline]
    #[must_use]
    pub fn word(self) -> u64 {
        self.0.max(1)
    }
}

/// Place of a rule's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RulePlace(u64);

impl RulePlace {
    /// The place as a number that is not 0, and back.
    #[inline]
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// See [`RulePlace::number`].
    #[inline]
    #[must_use]
    pub fn of(number: u64) -> Self {
        Self(number)
    }
}

impl<M: ProgramMemory> ProgramSide<'_, M> {
    /// Gives the part of a rule its memory; `None`: there is none.
    #[must_use]
    pub fn reserve_rule(&self, number: u8) -> Option<RulePlace> {
        let at = self.layout.rule(number.into());
        let is_there = u32::from(number) < RULES_MAX && self.memory.reserve(at, rule::BYTES);
        is_there.then_some(RulePlace(at))
    }

    /// Whether the recorder has set up the rule of this epoch.
    #[inline]
    #[must_use]
    pub fn has_rule(&self, place: RulePlace, epoch: u32) -> bool {
        self.memory.load(place.0 + rule::EPOCH, Acquire) == epoch.into()
    }

    /// Groups of sessions that record now, as the control bytes are drawn. In a child process that no recorder has met,
    /// all do.
    #[inline]
    #[must_use]
    pub fn recording(&self) -> u8 {
        !self.memory.byte(header::STOPPED)
    }

    /// The limit of a rule, in ticks or events; 0: it has none, or one of its own.
    #[inline]
    #[must_use]
    pub fn limit(&self, place: RulePlace) -> u64 {
        self.memory.load(place.0 + rule::LIMIT, Relaxed)
    }

    /// The window of a rule, in ticks.
    #[inline]
    #[must_use]
    pub fn window(&self, place: RulePlace) -> u64 {
        self.memory.load(place.0 + rule::WINDOW, Relaxed)
    }

    /// Counts something of a rule, on a line that no other thread counts on; `None`: the thread has none.
    #[inline]
    pub fn count(&self, place: RulePlace, what: RuleCount, line: Option<u8>) {
        let own = line.filter(|line| u32::from(*line) < LINES_MAX);
        let line = u64::from(own.map_or(LINES_MAX, u32::from)) * rule::COUNTS_BYTES;
        let at = place.0 + rule::COUNTS + line + what as u64;
        match own {
            Some(_) => self.memory.add_alone(at, 1),
            None => _ = self.memory.add(at, 1),
        }
    }

    /// The limit that the recorder has set for a kind; 0: none.
    #[must_use]
    pub fn set_limit_of(&self, rule: RulePlace, kind: u64) -> u64 {
        let at = rule.0 + rule::SET;
        for place in (0..u64::from(KINDS_MAX)).map(|place| at + place * rule::SET_BYTES) {
            match self.memory.load(place, Acquire) {
                0 => break,
                known if known == kind => return self.memory.load(place + 8, Relaxed),
                _ => {}
            }
        }
        0
    }

    /// Place of the running limit of a rule without kinds.
    #[must_use]
    pub fn running(&self, rule: RulePlace) -> KindPlace {
        KindPlace(rule.0 + rule::RUNNING)
    }

    /// Place of the running limit of a kind, which is new if it is not known; `None`: there are too many kinds.
    #[must_use]
    pub fn kind(
        &self,
        rule: RulePlace,
        kind: u64,
        name: impl FnOnce() -> [u8; KindPlace::NAME_BYTES],
    ) -> Option<KindPlace> {
        let at = rule.0 + rule::KINDS;
        let places = u64::from(KINDS_MAX);
        for step in 0..KIND_STEPS {
            let place = at + kind.wrapping_add(step) % places * rule::KIND_BYTES;
            let known = self.memory.load(place, Acquire);
            if known == kind {
                return Some(KindPlace(place + 8));
            }
            if known == 0 && self.memory.compare_exchange(place, 0, kind) {
                self.memory.put(place + rule::KIND_NAME, &name());
                return Some(KindPlace(place + 8));
            }
            // Another thread was faster, perhaps with the same kind.
            if known == 0 && self.memory.load(place, Acquire) == kind {
                return Some(KindPlace(place + 8));
            }
        }
        None
    }

    /// A running limit, in ticks, and the number of its events so far.
    #[inline]
    #[must_use]
    pub fn running_limit(&self, place: KindPlace) -> (f64, u64) {
        let (limit, events) = (self.memory.load(place.0, Relaxed), self.memory.load(place.0 + 8, Relaxed));
        (f64::from_bits(limit), events)
    }

    /// Counts an event of a kind without a running limit.
    #[inline]
    pub fn count_kind(&self, place: KindPlace) {
        self.memory.add(place.0 + 8, 1);
    }

    /// Sets a running limit. Of threads that do it at a time the last one counts: it is an estimate.
    #[inline]
    pub fn set_running_limit(&self, place: KindPlace, limit: f64) {
        self.memory.store(place.0, limit.to_bits(), Release);
        self.memory.add(place.0 + 8, 1);
    }
}

impl<V: MemoryView> RecorderSide<V> {
    /// Whether the program can have rules. Those that are built with older tracers cannot.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn has_rules(&self) -> Result<bool, V::Fault> {
        Ok(self.view.word(header::RULES)? == self.layout.rule(0))
    }

    fn rule(&self, number: u8) -> u64 {
        self.layout.rule(u32::from(number).min(RULES_MAX - 1))
    }

    /// Sets the limit of a rule, in ticks or events, and its window in ticks.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn set_limit(&self, number: u8, limit: u64, window: u64) -> Result<(), V::Fault> {
        self.view.set_word(self.rule(number) + rule::WINDOW, window)?;
        self.view.set_word(self.rule(number) + rule::LIMIT, limit)
    }

    /// Sets the limits of kinds, by their hashes: these and no others. At most [`KINDS_MAX`] count.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn set_limits_of(&self, number: u8, kinds: &[(u64, u64)]) -> Result<(), V::Fault> {
        let at = self.rule(number) + rule::SET;
        let kinds = &kinds[..kinds.len().min(KINDS_MAX as usize)];
        let place = |place: usize| at + place as u64 * rule::SET_BYTES;
        // The program reads the list meanwhile: a limit is there before its kind.
        for (number, (kind, limit)) in kinds.iter().enumerate() {
            self.view.set_word(place(number) + 8, *limit)?;
            self.view.set_word(place(number), *kind)?;
        }
        if kinds.len() < KINDS_MAX as usize {
            self.view.set_word(place(kinds.len()), 0)?;
        }
        Ok(())
    }

    /// Begins a rule of another epoch: it has no kinds and no running limits. Its limits come before this.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn begin_rule(&self, number: u8, epoch: u32) -> Result<(), V::Fault> {
        let at = self.rule(number);
        self.view.set_word(at + rule::EPOCH, 0)?;
        let kinds = (0..u64::from(KINDS_MAX)).map(|place| at + rule::KINDS + place * rule::KIND_BYTES);
        for place in kinds {
            if self.view.word(place)? != 0 {
                (0..3).try_for_each(|word| self.view.set_word(place + 8 * word, 0))?;
            }
        }
        self.view.set_word(at + rule::RUNNING, 0)?;
        self.view.set_word(at + rule::RUNNING + 8, 0)?;
        self.view.set_word(at + rule::EPOCH, epoch.into())
    }

    /// Counts of a rule in this program, whatever session it was of.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn counts(&self, number: u8) -> Result<RuleCounts, V::Fault> {
        let mut bytes = [0; (rule::COUNTS_MAX * rule::COUNTS_BYTES) as usize];
        self.view.copy(self.rule(number) + rule::COUNTS, &mut bytes)?;
        let word = |line: &[u8], what: RuleCount| {
            line.get(what as usize..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
        };
        // A program may say any numbers.
        Ok(bytes.chunks_exact(rule::COUNTS_BYTES as usize).fold(RuleCounts::default(), |sum, line| RuleCounts {
            kept: sum.kept.saturating_add(word(line, RuleCount::Kept)),
            let_go: sum.let_go.saturating_add(word(line, RuleCount::LetGo)),
            unknown: sum.unknown.saturating_add(word(line, RuleCount::Unknown)),
            forgotten: sum.forgotten.saturating_add(word(line, RuleCount::Forgotten)),
        }))
    }

    /// The running limit of a rule without kinds, in ticks, and the number of its events.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn running(&self, number: u8) -> Result<(f64, u64), V::Fault> {
        let at = self.rule(number) + rule::RUNNING;
        Ok((f64::from_bits(self.view.word(at)?), self.view.word(at + 8)?))
    }

    /// The kinds of a rule.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn kinds(&self, number: u8, mut each: impl FnMut(KindLimit)) -> Result<(), V::Fault> {
        for place in 0..u64::from(KINDS_MAX) {
            let at = self.rule(number) + rule::KINDS + place * rule::KIND_BYTES;
            let hash = self.view.word(at)?;
            if hash == 0 {
                continue;
            }
            let (running, events) = (f64::from_bits(self.view.word(at + 8)?), self.view.word(at + 16)?);
            let mut name = [0; KindPlace::NAME_BYTES];
            self.view.copy(at + rule::KIND_NAME, &mut name)?;
            each(KindLimit { hash, running, events, name });
        }
        Ok(())
    }
}
