//! Judgements: the questions about events of one id, where one filter is not enough. They lie with
//! the bytecode behind the slots.
//!
//! ```text
//! number of entries u16 │ id u16 │ 0 u32 │ machine code: offset u32 │ bytes u32; 0: none ││ kind u8 │ about u8 │ question u8 │ 0 u8 │ offset u32 │ bytes u32 │ 0 u32 ││ ...
//!
//!                                           group: bits of the groups whose filter it is
//!                                           trigger: its number              question: always, machine code, bytecode
//! ```

use crate::slots::{FilterCode, FilterCodeKind};

/// ID of verdicts. Each is about the next event of the lane that has the ID in the verdict. No event
/// of a program has it.
pub const VERDICT_ID: u16 = u16::MAX;
/// Bytes of a verdict behind its head and contexts: ID of the event, groups that keep it, triggers that it
/// has fired, and the first and last number of their changes.
pub const VERDICT_BYTES: u64 = 16;

/// Flag of a verdict: the program has not judged the event.
pub const VERDICT_UNJUDGED: u8 = 1;

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
        };
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

fn entry(bytes: &[u8]) -> Option<JudgementEntry> {
    let kind = match bytes[0] {
        0 => JudgementKind::Groups(bytes[1]),
        1 => JudgementKind::Trigger(bytes[1]),
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
        let entries = [
            JudgementEntry { kind: JudgementKind::Groups(0x81), question: None },
            JudgementEntry { kind: JudgementKind::Groups(2), question: Some(code(FilterCodeKind::Native)) },
            JudgementEntry { kind: JudgementKind::Trigger(31), question: Some(code(FilterCodeKind::Bytecode)) },
        ];
        let mut out = [0xaa; 128];
        let head = JudgementHead { id: 0xfffe, code: Some((0x40, 0x33)) };
        let length = write(head, &entries, &mut out).expect("there is room");
        assert_eq!(length, super::bytes(3));
        let (read_head, found) = read(&out[..length]).expect("it is one");
        assert_eq!(read_head, head);
        assert!(found.eq(entries.map(Some)));
        assert!(read(&out[..length - 1]).is_none() && read(&[]).is_none());
        out[HEAD] = 7;
        assert!(read(&out[..length]).expect("its head is right").1.next().expect("it has one").is_none());
        assert_eq!(write(head, &entries, &mut out[..20]), None);
    }
}
