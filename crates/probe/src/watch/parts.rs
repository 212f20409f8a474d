//! Values that programs read one behind the other, as keys have them, and the room that they take on the stack.

use std::os::fd::BorrowedFd;

use super::WatchPath;
use super::fields::{FoundPath, TracepointFields, WatchKind, WatchSource, WatchableEvents, WatchedField};
use super::pieces::{self, PiecePlaces};
use crate::assembly::{BpfAssembly, KernelFunction, R1, R2, R3, R4, STACK};

/// Bytes of the stack; the part that tests the condition needs the rest.
const STACK_BYTES: i16 = 472;

/// A value that is a part of a key, as it lies there.
#[derive(Clone, Debug)]
pub(crate) struct ReadPart {
    pub(crate) source: WatchSource,
    /// Bytes of a text; `None`: a number, of 8 bytes.
    pub(crate) text: Option<u32>,
}

impl ReadPart {
    pub(crate) fn bytes(&self) -> u32 {
        self.text.unwrap_or(8)
    }
}

/// Too much for the stack of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the fields of this question take more than the {STACK_BYTES} bytes that a program of the kernel has: fewer texts take less"
)]
pub(crate) struct StackOverflow;

/// Room on the stack, from its end.
#[derive(Debug, Default)]
pub(crate) struct StackRoom(i16);

impl StackRoom {
    /// The lowest address of so many bytes, at a multiple of 8.
    pub(crate) fn take(&mut self, bytes: u32) -> Result<i16, StackOverflow> {
        let bytes = i16::try_from(bytes.next_multiple_of(8)).map_err(|_| StackOverflow)?;
        self.0 = self.0.checked_add(bytes).filter(|used| *used <= STACK_BYTES).ok_or(StackOverflow)?;
        Ok(-self.0)
    }
}

pub(crate) fn described<'t>(
    events: &'t WatchableEvents,
    name: &str,
    is_end: bool,
) -> Result<TracepointFields<'t>, String> {
    events.event(name, is_end).ok_or_else(|| format!("the kernel does not describe the tracepoint `{name}`"))
}

pub(super) fn found(fields: &TracepointFields<'_>, path: &WatchPath) -> Result<WatchedField, String> {
    match fields.find(path) {
        FoundPath::Field(field) => Ok(field),
        FoundPath::Compound(kind) => Err(format!("`{path}` is {kind}")),
        FoundPath::Missing(_) => Err(format!("there is no field `{path}`")),
    }
}

pub(crate) fn part(fields: &TracepointFields<'_>, path: &WatchPath) -> Result<ReadPart, String> {
    let field = found(fields, path)?;
    let text = match field.kind {
        WatchKind::Text { capacity } => Some(capacity.next_multiple_of(8)),
        WatchKind::Integer { .. } => None,
    };
    Ok(ReadPart { source: field.source, text })
}

/// A key of what has begun lies in the same way at all begins and ends: the kernel looks at as many bytes.
pub(crate) fn level_parts(mut all: Vec<&mut Vec<ReadPart>>) -> Result<(), String> {
    let Some(count) = all.first().map(|parts| parts.len()) else { return Ok(()) };
    if count == 0 || all.iter().any(|parts| parts.len() != count) {
        return Err("begin and end have at least one field in common, and the same number at all events".to_owned());
    }
    for key in 0..count {
        let most = all.iter().map(|parts| parts[key].text).max().flatten();
        for parts in &mut all {
            if parts[key].text.is_some() != most.is_some() {
                return Err("a field that is a number for one event and a text for another is not in common".to_owned());
            }
            parts[key].text = most;
        }
    }
    Ok(())
}

/// Puts values one behind the other.
pub(crate) fn parts(code: &mut BpfAssembly, parts: &[ReadPart], base: i16, places: PiecePlaces) {
    let mut at = base;
    for part in parts {
        match part.text {
            Some(capacity) => pieces::text(code, &part.source, at, capacity, places),
            None => pieces::number(code, &part.source, at, places),
        }
        at += part.bytes() as i16;
    }
}

/// Puts the value at a place on the stack into a map, by the key at another place.
pub(crate) fn update(code: &mut BpfAssembly, map: BorrowedFd<'_>, key: i16, value: i16, flag: i32) {
    code.map(R1, map);
    for (register, place) in [(R2, key), (R3, value)] {
        code.copy(register, STACK);
        code.add(register, place.into());
    }
    code.set(R4, flag);
    code.call(KernelFunction::Update);
}
