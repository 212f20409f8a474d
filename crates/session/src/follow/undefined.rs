//! Events that were written before their definitions: they, and all that are later, wait for these, but not for ever.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use kymo_decode::HeadError;
use kymo_ir::FaultKind;
use kymo_scan::index::HopFault;
use kymo_scan::{BrokenFile, Cursor, CursorItem, StreamFault, StreamFaultKind};

use super::PATIENCE;
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::ReportProblem;

/// Where an event is: its file, its packet's first byte there, its first bit in the packet.
type EventPlace = (PathBuf, u64, u64);

/// Events without a definition.
#[derive(Debug, Default)]
pub(super) struct UndefinedEvents {
    /// Those of the next window, and those that were waited for.
    events: HashMap<EventPlace, Undefined>,
    /// Those of them that no window tells of yet, though it lacks them.
    given_up: Vec<ReportProblem>,
}

/// An event without a definition.
#[derive(Clone, Copy, Debug)]
struct Undefined {
    /// When it was seen first.
    since: Instant,
    /// The window tells of it.
    is_told: bool,
}

impl Undefined {
    fn is_awaited(&self) -> bool {
        self.since.elapsed() < PATIENCE
    }
}

impl UndefinedEvents {
    /// Whether definitions may still come for which events wait.
    pub(super) fn are_awaited(&self) -> bool {
        self.events.values().any(Undefined::is_awaited)
    }

    /// Up to when all events from one time to before another have definitions, or have waited for them long enough.
    pub(super) fn up_to(&mut self, session: &Session, (begin_ns, end_ns): (Option<i64>, i64)) -> i64 {
        let span = (begin_ns, end_ns.checked_sub(1));
        let cursors = session.cursors_between(true, span, &[], &Progress::default());
        let events =
            session.side_by_side(cursors, undefined_events).into_iter().flatten().map(|(time, fault, record)| {
                let (trace, _) = session.streams()[fault.stream];
                let path = trace.folder.stream(fault.file as usize).path().to_owned();
                (time, (path, fault.offset_bytes, record), session.problem(&fault))
            });
        let found: Vec<(i64, EventPlace, ReportProblem)> = events.chain(undefined_streams(session)).collect();
        let known = std::mem::take(&mut self.events);
        let mut up_to = i64::MAX;
        for (time, place, problem) in found {
            let new = Undefined { since: Instant::now(), is_told: false };
            let mut undefined = known.get(&place).copied().unwrap_or(new);
            if undefined.is_awaited() {
                up_to = up_to.min(time);
            } else if !undefined.is_told {
                undefined.is_told = true;
                self.given_up.push(problem);
            }
            self.events.insert(place, undefined);
        }
        up_to
    }

    /// The events that the next window lacks and that no window has told of.
    pub(super) fn take_given_up(&mut self) -> Vec<ReportProblem> {
        std::mem::take(&mut self.given_up)
    }

    /// As if all of them had waited for so much longer.
    #[cfg(test)]
    pub(super) fn have_waited(&mut self, longer: std::time::Duration) {
        self.events.values_mut().for_each(|undefined| undefined.since -= longer);
    }
}

/// The events of a stream that no class describes: not before when they are, and their first bits.
fn undefined_events(mut cursor: Cursor) -> Vec<(i64, StreamFault, u64)> {
    let (mut found, mut last) = (Vec::new(), i64::MIN);
    while let Some(item) = cursor.next_item() {
        match item {
            CursorItem::Batch(batch) => {
                last = batch.keys.last().copied().unwrap_or(last);
                cursor.recycle(batch);
            }
            CursorItem::Fault(fault) => {
                if let StreamFaultKind::Record { record, fault: in_record } = &fault.kind
                    && matches!(in_record.kind, FaultKind::UnknownEventClass { .. })
                {
                    let record = *record;
                    found.push((last, fault, record));
                }
            }
        }
    }
    found
}

/// Files with packets of a stream class that the metadata lacks; the times of their events are unknown.
fn undefined_streams(session: &Session) -> Vec<(i64, EventPlace, ReportProblem)> {
    let mut found = Vec::new();
    for trace in &session.traces {
        for BrokenFile { file, error } in trace.broken_files.iter() {
            if matches!(error.fault, HopFault::Head(HeadError::StreamClass { .. })) {
                let path = trace.folder.stream(*file).path().to_owned();
                let problem = ReportProblem { place: path.display().to_string(), message: error.to_string() };
                found.push((i64::MIN, (path, error.offset_bytes, 0), problem));
            }
        }
    }
    found
}
