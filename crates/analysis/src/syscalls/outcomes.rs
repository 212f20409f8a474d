//! The outcome of a call: its counts for its run or its thread, and for all threads.

use std::cmp::Reverse;

use super::CallLimits;
use super::rows::{CallFate, CallRows, CallRun, Record, SlowCall};
use super::totals::SyscallTotals;
use crate::calls::{CallEntry, CallExit, CallOutcome, errno};

/// Counts the outcome of a call within a run.
#[inline]
pub(super) fn settle_in_run(
    limits: &CallLimits,
    totals: &mut SyscallTotals,
    run: &mut CallRun,
    outcome: CallOutcome<(), ()>,
) {
    let (record, slow) = settled(limits, totals, outcome);
    if let Some(slow) = slow {
        run.slow.get_or_insert_default().push(slow);
    }
    if let Some(record) = record {
        run.push(limits, record);
    }
}

/// Counts the outcome of a call of a life.
pub(super) fn settle(
    limits: &CallLimits,
    totals: &mut SyscallTotals,
    rows: &mut CallRows,
    outcome: CallOutcome<(), ()>,
) {
    let (record, slow) = settled(limits, totals, outcome);
    rows.slow.extend(slow);
    if let Some(record) = record {
        rows.count(limits, record);
    }
}

/// Outcome of a call, on request; all calls together are counted already.
#[inline]
fn settled(
    limits: &CallLimits,
    totals: &mut SyscallTotals,
    outcome: CallOutcome<(), ()>,
) -> (Option<Record>, Option<SlowCall>) {
    let (call, cpu, fate) = match outcome {
        CallOutcome::Completed(entry, exit) => return completed(limits, totals, &entry, &exit),
        // The exit may not say which call it is.
        CallOutcome::Doubtful(entry, exit) => (entry.call, exit.cpu, CallFate::LostInside),
        CallOutcome::LostExit(exit) => (exit.call, exit.cpu, CallFate::LostInside),
        CallOutcome::LostEntry(entry) => (entry.call, entry.cpu, CallFate::LostInside),
        CallOutcome::BeganBefore(exit) => (exit.call, exit.cpu, CallFate::BeganBefore),
        CallOutcome::ChildReturns(exit) => (exit.call, exit.cpu, CallFate::ChildReturns),
        CallOutcome::NeverEnded(entry) => (entry.call, entry.cpu, CallFate::NeverEnded),
    };
    if !limits.wants_cpu(cpu) || !limits.wants_call(call) {
        return (None, None);
    }
    if !limits.is_by_thread {
        totals.whole(call).others.count(fate);
    }
    (Some(Record { call, fate, ..Record::default() }), None)
}

#[inline]
fn completed(
    limits: &CallLimits,
    totals: &mut SyscallTotals,
    entry: &CallEntry<()>,
    exit: &CallExit<()>,
) -> (Option<Record>, Option<SlowCall>) {
    let (ns, call) = (entry.place.time.abs_diff(exit.place.time), entry.call);
    let is_long = ns >= limits.min_ns && ns <= limits.max_ns;
    if !is_long || !limits.wants_cpu(exit.cpu) || !limits.wants_call(call) {
        return (None, None);
    }
    let errno = errno(exit.ret);
    if !limits.is_by_thread {
        let whole = totals.whole(call);
        whole.figures.record(ns);
        whole.errors += u64::from(errno.is_some());
        whole.detail.record(ns, errno);
    }
    let is_slow = limits.is_by_thread || totals.is_slow(limits, ns);
    let slow = is_slow.then_some(SlowCall { ns, begin: Reverse(entry.place), end: exit.place, call, ret: exit.ret });
    (Some(Record { ns, call, errno: errno.unwrap_or(0), fate: CallFate::Completed }), slow)
}
