//! Judgements: the questions about events of one id, where one filter is not enough. They lie with
//! the bytecode behind the slots.
//!
//! ```text
//! number of entries u16 │ id u16 │ 0 u32 │ machine code: offset u32 │ bytes u32; 0: none ││ kind u8 │ about u8 │ question u8 │ 0 u8 │ offset u32 │ bytes u32 │ 0 u32 ││ ...
//!
//!                                           group: bits of the groups whose filter it is
//!                                           trigger: its number              question: always, machine code, bytecode
//! ```
//!
//! Entries of [rules](crate::RuleCounts) have other words behind `about`: a rule follows the entry that it belongs
//! to, and keys follow the rule, or the entry of its begin.

use crate::layout::RULES_MAX;
use crate::slots::{FilterCode, FilterCodeKind};

/// ID of verdicts. Each is about the next event of the lane that has the ID in the verdict. No event
/// of a program has it.
pub const VERDICT_ID: u16 = u16::MAX;
/// Bytes of a verdict behind its head and contexts: ID of the event, groups that keep it, triggers that it
/// has fired, and the first and last number of their changes.
pub const VERDICT_BYTES: u64 = 16;

/// Flag of a verdict: the program has not judged the event.
pub const VERDICT_UNJUDGED: u8 = 1;
/// Flag of a verdict: its groups are those that keep the event, by their filters and rules, while they record. The last
/// 8 bytes are the ticks since its begin event, for these groups; 0: none.
pub const VERDICT_KEPT: u8 = 2;
/// Flag of a verdict: it goes on with the one before it.
pub const VERDICT_MORE: u8 = 4;

/// Bytes before the first entry.
const HEAD: usize = 16;
/// Bytes of an entry.
const ENTRY: usize = 16;
/// Entries of a judgement.
pub const ENTRIES_MAX: usize = 64;

/// Subject of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JudgementKind {
    /// These groups keep the event if the answer is yes.
    Groups(u8),
    /// This trigger fires then.
    Trigger(u8),
    /// This rule remembers the time of the event then.
    Begin(RuleNumber),
    /// The entry before it has the answer yes only if this rule keeps the event, too.
    Rule(RuleNumber, JudgedTest),
    /// A part of the key of the rule or begin before it.
    Key(RuleKey),
}

/// A rule. The epoch grows whenever another rule gets the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleNumber {
    /// Its number in the program.
    pub number: u8,
    /// See [`RuleNumber`].
    pub epoch: u32,
}

/// What a rule asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JudgedTest {
    /// Whether more time has passed since the begin event than the limit, which is this part of 2^32 of all events where
    /// it is the program's own.
    Over(u32),
    /// Whether it is the first one, or as many as the limit behind the last one that was kept.
    Every,
    /// Whether fewer than the limit were kept in this window.
    AtMost,
    /// A program of a user: its image lies so many bytes behind the slots.
    Object {
        /// Where it begins.
        offset: u32,
        /// Its bytes.
        bytes: u32,
    },
}

/// A part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleKey {
    /// It belongs to the kind, and not to the key.
    pub is_kind: bool,
    /// Its value.
    pub value: KeyPart,
}

/// A value among the arguments of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// The thread.
    Thread,
    /// A number of 1, 2, 4 or 8 bytes.
    Number {
        /// Where.
        offset: u32,
        /// How many.
        bytes: u8,
        /// Whether its first bit is a sign.
        is_signed: bool,
    },
    /// Bytes up to the first zero: their address, and behind it how many there are.
    Text {
        /// Where.
        offset: u32,
    },
}

impl KeyPart {
    /// Whether it lies within arguments of this size.
    #[must_use]
    pub fn fits(&self, size: u64) -> bool {
        match *self {
            Self::Thread => true,
            Self::Number { offset, bytes, .. } => u64::from(offset) + u64::from(bytes) <= size,
            Self::Text { offset } => u64::from(offset) + 16 <= size,
        }
    }
}

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgementEntry {
    /// Its subject.
    pub kind: JudgementKind,
    /// The question; `None`: the answer is always yes.
    pub question: Option<FilterCode>,
}

/// Head of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgementHead {
    /// ID of its events.
    pub id: u16,
    /// Location, in the arena, of machine code that answers all questions and calls the function that judges
    /// only where a trigger may fire; `None`: that function is always called.
    pub code: Option<(u32, u32)>,
}

/// Writes a judgement; `None`: it has too many entries.
pub fn write(head: JudgementHead, entries: &[JudgementEntry], out: &mut [u8]) -> Option<usize> {
    let length = HEAD + ENTRY * entries.len();
    if entries.len() > ENTRIES_MAX || out.len() < length {
        return None;
    }
    let out = &mut out[..length];
    out.fill(0);
    out[..2].copy_from_slice(&(entries.len() as u16).to_le_bytes());
    out[2..4].copy_from_slice(&head.id.to_le_bytes());
    let (offset, bytes) = head.code.unwrap_or_default();
    out[8..12].copy_from_slice(&offset.to_le_bytes());
    out[12..HEAD].copy_from_slice(&bytes.to_le_bytes());
    for (entry, out) in entries.iter().zip(out[HEAD..].chunks_exact_mut(ENTRY)) {
        (out[0], out[1]) = match entry.kind {
            JudgementKind::Groups(bits) => (0, bits),
            JudgementKind::Trigger(number) => (1, number),
            JudgementKind::Begin(rule) => (2, rule.number),
            JudgementKind::Rule(rule, _) => (3, rule.number),
            JudgementKind::Key(key) => (4, key.is_kind.into()),
        };
        let (sort, offset, bytes) = match entry.kind {
            JudgementKind::Groups(_) | JudgementKind::Trigger(_) | JudgementKind::Begin(_) => (0, 0, 0),
            JudgementKind::Rule(_, JudgedTest::Over(part)) => (1, part, 0),
            JudgementKind::Rule(_, JudgedTest::Every) => (2, 0, 0),
            JudgementKind::Rule(_, JudgedTest::AtMost) => (3, 0, 0),
            JudgementKind::Rule(_, JudgedTest::Object { offset, bytes }) => (4, offset, bytes),
            JudgementKind::Key(key) => match key.value {
                KeyPart::Thread => (1, 0, 0),
                KeyPart::Number { offset, bytes, is_signed: false } => (2, offset, bytes.into()),
                KeyPart::Number { offset, bytes, is_signed: true } => (3, offset, bytes.into()),
                KeyPart::Text { offset } => (4, offset, 0),
            },
        };
        out[3] = sort;
        out[4..8].copy_from_slice(&offset.to_le_bytes());
        out[8..12].copy_from_slice(&u32::to_le_bytes(bytes));
        if let JudgementKind::Begin(rule) | JudgementKind::Rule(rule, _) = entry.kind {
            out[12..16].copy_from_slice(&rule.epoch.to_le_bytes());
        }
        if let Some(code) = entry.question {
            out[2] = if code.kind == FilterCodeKind::Native { 1 } else { 2 };
            out[4..8].copy_from_slice(&code.offset.to_le_bytes());
            out[8..12].copy_from_slice(&code.bytes.to_le_bytes());
        }
    }
    Some(length)
}

/// Bytes that a judgement with so many entries needs.
#[must_use]
pub const fn bytes(entries: usize) -> usize {
    HEAD + ENTRY * entries
}

/// Reads a judgement; `None`: it is none.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<(JudgementHead, impl Iterator<Item = Option<JudgementEntry>>)> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (count, id) = (u16::from_le_bytes([head[0], head[1]]), u16::from_le_bytes([head[2], head[3]]));
    let entries = rest.get(..ENTRY * usize::from(count)).filter(|_| usize::from(count) <= ENTRIES_MAX)?;
    let (offset, length) = (word(head, 8), word(head, 12));
    let code = (length > 0).then_some((offset, length));
    Some((JudgementHead { id, code }, entries.chunks_exact(ENTRY).map(entry)))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn rule(bytes: &[u8]) -> Option<RuleNumber> {
    let number = bytes[1];
    (u32::from(number) < RULES_MAX).then(|| RuleNumber { number, epoch: word(bytes, 12) })
}

fn entry(bytes: &[u8]) -> Option<JudgementEntry> {
    let kind = match bytes[0] {
        0 => JudgementKind::Groups(bytes[1]),
        1 => JudgementKind::Trigger(bytes[1]),
        2 => JudgementKind::Begin(rule(bytes)?),
        3 => {
            let test = match bytes[3] {
                1 => JudgedTest::Over(word(bytes, 4)),
                2 => JudgedTest::Every,
                3 => JudgedTest::AtMost,
                4 => JudgedTest::Object { offset: word(bytes, 4), bytes: word(bytes, 8) },
                _ => return None,
            };
            return Some(JudgementEntry { kind: JudgementKind::Rule(rule(bytes)?, test), question: None });
        }
        4 => {
            let (offset, bytes_of) = (word(bytes, 4), word(bytes, 8));
            let number = |is_signed| {
                let bytes = u8::try_from(bytes_of).ok().filter(|bytes| [1, 2, 4, 8].contains(bytes))?;
                Some(KeyPart::Number { offset, bytes, is_signed })
            };
            let value = match bytes[3] {
                1 => KeyPart::Thread,
                2 => number(false)?,
                3 => number(true)?,
                4 => KeyPart::Text { offset },
                _ => return None,
            };
            let kind = JudgementKind::Key(RuleKey { is_kind: bytes[1] != 0, value });
            return Some(JudgementEntry { kind, question: None });
        }
        _ => return None,
    };
    let question = match bytes[2] {
        0 => None,
        kind @ (1 | 2) => {
            let kind = if kind == 1 { FilterCodeKind::Native } else { FilterCodeKind::Bytecode };
            Some(FilterCode { kind, offset: word(bytes, 4), bytes: word(bytes, 8) })
        }
        _ => return None,
    };
    Some(JudgementEntry { kind, question })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let code = |kind| FilterCode { kind, offset: 0x1234, bytes: 77 };
        let rule = RuleNumber { number: 15, epoch: 0x89ab_cdef };
        let key = |is_kind, value| JudgementKind::Key(RuleKey { is_kind, value });
        let entries = [
            JudgementEntry { kind: JudgementKind::Groups(0x81), question: None },
            JudgementEntry { kind: JudgementKind::Groups(2), question: Some(code(FilterCodeKind::Native)) },
            JudgementEntry { kind: JudgementKind::Trigger(31), question: Some(code(FilterCodeKind::Bytecode)) },
            JudgementEntry { kind: JudgementKind::Rule(rule, JudgedTest::Over(0xfd70_a3d7)), question: None },
            JudgementEntry {
                kind: key(false, KeyPart::Number { offset: 8, bytes: 4, is_signed: true }),
                question: None,
            },
            JudgementEntry {
                kind: key(false, KeyPart::Number { offset: 0, bytes: 8, is_signed: false }),
                question: None,
            },
            JudgementEntry { kind: key(true, KeyPart::Text { offset: 16 }), question: None },
            JudgementEntry { kind: JudgementKind::Begin(rule), question: Some(code(FilterCodeKind::Native)) },
            JudgementEntry { kind: key(false, KeyPart::Thread), question: None },
            JudgementEntry { kind: JudgementKind::Rule(rule, JudgedTest::Every), question: None },
            JudgementEntry { kind: JudgementKind::Rule(rule, JudgedTest::AtMost), question: None },
            JudgementEntry {
                kind: JudgementKind::Rule(rule, JudgedTest::Object { offset: 0x1_0000, bytes: 0x1234 }),
                question: None,
            },
        ];
        let mut out = [0xaa; 256];
        let head = JudgementHead { id: 0xfffe, code: Some((0x40, 0x33)) };
        let length = write(head, &entries, &mut out).expect("there is room");
        assert_eq!(length, super::bytes(entries.len()));
        let (read_head, found) = read(&out[..length]).expect("it is one");
        assert_eq!(read_head, head);
        assert!(found.eq(entries.map(Some)));
        assert!(read(&out[..length - 1]).is_none() && read(&[]).is_none());
        out[HEAD] = 7;
        assert!(read(&out[..length]).expect("its head is right").1.next().expect("it has one").is_none());
        assert_eq!(write(head, &entries, &mut out[..20]), None);
    }
}
