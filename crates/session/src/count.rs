//! How many event records of each class there are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kymo_scan::{Content, Cursor, Item};

use crate::open::{Session, trace_name};
use crate::progress::Progress;
use crate::report::{Problem, Report};

/// Event records by class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Classes that occur, most frequent first.
    pub classes: Vec<ClassCount>,
    /// All event records.
    pub total: u64,
    /// What stands between these numbers and the whole truth.
    pub report: Report,
}

/// How often one class occurs in one data stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// The trace.
    pub trace: String,
    /// The data stream's place among all.
    pub stream: usize,
    /// The class' id.
    pub id: u64,
    /// The class' name.
    pub name: Option<String>,
    /// How often.
    pub events: u64,
}

impl Session {
    /// Counts event records by class and stream. Needs no order, so streams are read side by side.
    #[must_use]
    pub fn count(&self, progress: &Progress) -> Counts {
        let cursors: Vec<Mutex<Option<Cursor>>> =
            self.cursors(false).into_iter().map(|cursor| Mutex::new(Some(cursor))).collect();
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let work = || {
            while let Some(slot) = cursors.get(next.fetch_add(1, Ordering::Relaxed)) {
                let cursor = slot.lock().ok().and_then(|mut cursor| cursor.take());
                let Some(cursor) = cursor else { continue };
                let counted = count_stream(self, cursor, progress);
                if let Ok(mut results) = results.lock() {
                    results.push(counted);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads.min(cursors.len()) {
                scope.spawn(work);
            }
            work();
        });
        self.counts(results.into_inner().unwrap_or_default())
    }

    fn counts(&self, mut streams: Vec<StreamCounts>) -> Counts {
        streams.sort_by_key(|stream| stream.stream);
        let mut counts = Counts { report: self.opening_report().clone(), ..Counts::default() };
        let known = self.streams();
        for counted in streams {
            let (trace, stream) = known[counted.stream];
            let classes = &trace.class.stream_classes[stream.class].event_classes;
            for (class, &events) in classes.iter().zip(&counted.events).filter(|(_, events)| **events > 0) {
                counts.total += events;
                let (trace, name) = (trace_name(trace.folder.path()), class.name.clone());
                counts.classes.push(ClassCount { trace, stream: counted.stream, id: class.id, name, events });
            }
            counts.report.assumptions.extend(counted.assumptions);
            counts.report.unreadable.extend(counted.faults.iter().map(|fault| self.problem(fault)));
        }
        counts.classes.sort_by_key(|class| std::cmp::Reverse(class.events));
        counts
    }
}

struct StreamCounts {
    stream: usize,
    /// By dense class index.
    events: Vec<u64>,
    faults: Vec<kymo_scan::StreamFault>,
    assumptions: Vec<Problem>,
}

fn count_stream(session: &Session, mut cursor: Cursor, progress: &Progress) -> StreamCounts {
    let mut counts =
        StreamCounts { stream: cursor.stream(), events: Vec::new(), faults: Vec::new(), assumptions: Vec::new() };
    // The packet that was added to the progress last.
    let mut packet = None;
    while let Some(item) = cursor.next_item() {
        match item {
            Item::Fault(fault) => counts.faults.push(fault),
            Item::Batch(batch) => {
                if let Content::Events(events) = &batch.content {
                    if packet.replace(events.packet.number) != Some(events.packet.number) {
                        progress.add(events.packet.row.total_bits / 8);
                    }
                    for &class in &events.records.classes {
                        let class = class as usize;
                        if class >= counts.events.len() {
                            counts.events.resize(class + 1, 0);
                        }
                        counts.events[class] += 1;
                    }
                }
                cursor.recycle(batch);
            }
        }
    }
    counts.assumptions = session.assumptions(&cursor);
    counts
}
