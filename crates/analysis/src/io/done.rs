//! The outcome of a call: its counts, how long it took, and its effects on files.

use super::acts::{FileAct, FileTarget};
use super::ops::{Category, FileEffect};
use super::rows::{IoRows, IoRun, IoTotals};
use super::sums::{FileUse, OperationLimits, SlowOperation};
use super::{IoEntry, IoExit};
use crate::calls::errno;
use crate::calls::{CallEntry, CallExit, CallId, CallOutcome, EventPosition};
use crate::threads::ThreadKey;

/// An operation that ended.
struct EndedOperation {
    op: FileEffect,
    entry: Option<CallEntry<IoEntry>>,
    exit: CallExit<IoExit>,
    is_completed: bool,
    is_in_run: bool,
}

/// Where acts go: to the run, or to the log.
type Acts<'a> = dyn FnMut(EventPosition, FileAct) + 'a;

/// Counts the outcome of a call within a run.
pub(super) fn settle_in_run(
    limits: &OperationLimits,
    op_of: impl Fn(CallId) -> FileEffect,
    totals: &mut IoTotals,
    run: &mut IoRun,
    outcome: CallOutcome<IoEntry, IoExit>,
) {
    let IoRun { rows, acts } = run;
    settle_any(limits, op_of, totals, (rows, true), outcome, &mut |place, act| acts.push((place, act)));
}

/// Counts the outcome of a call of a life.
pub(super) fn settle(
    limits: &OperationLimits,
    op_of: impl Fn(CallId) -> FileEffect,
    totals: &mut IoTotals,
    (key, rows): (ThreadKey, &mut IoRows),
    outcome: CallOutcome<IoEntry, IoExit>,
) {
    let mut log = std::mem::take(&mut totals.log);
    let mut acts = |place, act| log.push(place, key, act);
    settle_any(limits, op_of, totals, (rows, false), outcome, &mut acts);
    totals.log = log;
}

fn settle_any(
    limits: &OperationLimits,
    op_of: impl Fn(CallId) -> FileEffect,
    totals: &mut IoTotals,
    (rows, is_in_run): (&mut IoRows, bool),
    outcome: CallOutcome<IoEntry, IoExit>,
    acts: &mut Acts<'_>,
) {
    let is_completed = matches!(outcome, CallOutcome::Completed(..));
    let (entry, exit) = match outcome {
        CallOutcome::Completed(entry, exit) | CallOutcome::Doubtful(entry, exit) => (Some(entry), exit),
        CallOutcome::BeganBefore(exit) | CallOutcome::LostExit(exit) => (None, exit),
        CallOutcome::ChildReturns(_) | CallOutcome::LostEntry(_) | CallOutcome::NeverEnded(_) => return,
    };
    let op = entry.as_ref().map_or_else(|| op_of(exit.call), |entry| entry.more.op);
    let is_operation = op != FileEffect::Fcntl || entry.as_ref().is_some_and(|entry| entry.more.is_duplicate);
    let Some(category) = op.category().filter(|_| is_operation) else { return };
    let mut done = EndedOperation { op, entry, exit, is_completed, is_in_run };
    let counts = limits.counts_on(done.exit.cpu);
    if counts {
        done.count(category, rows, acts);
        done.time(limits, category, totals, rows, acts);
    }
    done.change(counts, acts);
}

impl EndedOperation {
    fn is_error(&self) -> bool {
        errno(self.exit.ret).is_some()
    }

    fn bytes(&self) -> u64 {
        match self.op {
            FileEffect::Read | FileEffect::Write | FileEffect::Both => {
                self.exit.ret.unwrap_or(0).max(0).cast_unsigned()
            }
            _ => 0,
        }
    }

    /// Its thread was known when it was entered.
    fn is_told(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.more.is_told)
    }

    fn target(&self, is_other: bool) -> FileTarget {
        let fd = |entry: &CallEntry<IoEntry>| if is_other { entry.more.other_fd } else { entry.more.fd };
        match self.entry.as_ref().and_then(fd) {
            None => FileTarget::None,
            Some(fd) if self.is_in_run && !self.is_told() => FileTarget::Fd(fd),
            Some(_) => FileTarget::Looked { is_other },
        }
    }

    /// Where it takes place for its file.
    fn place(&self) -> EventPosition {
        let looked = self.entry.as_ref().filter(|entry| self.is_in_run && !entry.more.is_told);
        looked.map_or(self.exit.place, |entry| entry.place)
    }

    fn count(&self, category: Category, rows: &mut IoRows, acts: &mut Acts<'_>) {
        let (bytes, is_error) = (self.bytes(), self.is_error());
        let used = FileUse { bytes, category, is_error, is_second: false };
        rows.sums.count(used);
        match self.op {
            FileEffect::Both => {
                rows.sums.count(FileUse { category: Category::Write, is_error: false, ..used });
                acts(self.place(), FileAct::Use(self.target(false), used));
                acts(
                    self.place(),
                    FileAct::Use(self.target(true), FileUse { category: Category::Write, is_second: true, ..used }),
                );
            }
            FileEffect::Read | FileEffect::Write | FileEffect::Sync => {
                acts(self.place(), FileAct::Use(self.target(false), used));
            }
            // It is counted by the act that changes the fd.
            FileEffect::Open if self.entry.is_some() => {}
            _ => acts(self.place(), FileAct::Count(used)),
        }
    }

    /// How long it took.
    fn time(
        &self,
        limits: &OperationLimits,
        category: Category,
        totals: &mut IoTotals,
        rows: &mut IoRows,
        acts: &mut Acts<'_>,
    ) {
        let Some(entry) = self.entry.as_ref().filter(|_| self.is_completed) else { return };
        let ns = entry.place.time.abs_diff(self.exit.place.time);
        if !limits.times(ns, self.bytes()) {
            return;
        }
        let latencies = match limits.is_by_thread {
            true => &mut **rows.latencies.get_or_insert_default(),
            false => &mut totals.latencies,
        };
        latencies[category as usize].record(ns);
        if self.op == FileEffect::Both {
            latencies[Category::Write as usize].record(ns);
        }
        if totals.is_slow(limits, ns) {
            let (begin, end) = (entry.place, self.exit.place);
            let path = entry.more.path.clone();
            let slow = SlowOperation { ns, begin, end, call: entry.call, ret: self.exit.ret, path };
            acts(self.place(), FileAct::Slow(self.target(false), Box::new(slow)));
        }
    }

    /// Its effect on fds.
    fn change(&mut self, counts: bool, acts: &mut Acts<'_>) {
        let is_error = self.is_error();
        let Some(entry) = &mut self.entry else { return };
        let fd = self.exit.ret.filter(|&ret| ret >= 0).and_then(|ret| i32::try_from(ret).ok());
        let place = self.exit.place;
        let IoEntry { closes_on_exec, is_net, .. } = entry.more;
        match (self.op, fd) {
            (FileEffect::Open, fd) => {
                let path = entry.more.path.take().unwrap_or_default();
                acts(place, FileAct::Open { path, fd, is_error, closes_on_exec, counts });
            }
            (FileEffect::Socket, Some(fd)) => {
                acts(place, FileAct::Make { fd, is_socket: true, is_net, closes_on_exec });
            }
            (FileEffect::Accept | FileEffect::Dup | FileEffect::Fcntl, Some(fd)) => {
                let is_socket = self.op == FileEffect::Accept;
                if let Some(from) = entry.more.fd {
                    acts(place, FileAct::Derive { from, fd, is_socket, closes_on_exec });
                }
            }
            (FileEffect::Pipe, Some(_)) => {
                for fd in self.exit.more.into_iter().flat_map(|(one, other)| [one, other]) {
                    acts(place, FileAct::Make { fd, is_socket: false, is_net: false, closes_on_exec });
                }
            }
            _ => {}
        }
    }
}
