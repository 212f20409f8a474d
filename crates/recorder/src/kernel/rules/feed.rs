//! Records of rules become events.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_format::model::FieldClass;
use kymo_ftrace::fields::{FieldList, KernelValue};
use kymo_ftrace::texts::NO_TEXTS;
use kymo_ftrace::{ARGUMENTS_MAX, CallTable, EventCatalog, EventPlan, KernelThreads, RecordContext, whole_call};
use kymo_probe::rules::RuleRecord;
use kymo_probe::watch::{COMPAT_CALL, WatchKind};
use kymo_writer::WriteError;

use super::asked::{CallSide, RuleColumn, RuleEventTable};
use super::{LOST_BYTES, RuleSource};
use crate::kernel::dump::StateEvent;
use crate::kernel::marked::{MarkedRounds, RoundMark, all_entries};
use crate::kernel::output::{KernelOutput, RuleEventKey};
use crate::kernel::wanted::WantedTimes;
use crate::rule::{RuleOptions, RuleStatus, time};

/// Counts of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::kernel) struct RuleEventCounts {
    /// Events in the trace: those that were kept, and those that tell the counts of rules.
    pub(in crate::kernel) events: u64,
    /// Those that were kept.
    pub(in crate::kernel) kept: u64,
    /// Records that had no room.
    pub(in crate::kernel) lost: u64,
}

/// Records for the converter.
#[derive(Debug)]
pub(in crate::kernel) struct RuleFeed {
    rounds: MarkedRounds,
    tables: Arc<Vec<Vec<RuleEventTable>>>,
    names: Arc<Vec<String>>,
    calls: Arc<EventCatalog>,
    /// Plans of calls, by number, and the name of the time, if that is known.
    plans: HashMap<(u64, CallSide, Option<&'static str>), EventPlan>,
    /// The end of the round that is read.
    mark: Option<RoundMark>,
    /// The spool cannot be read any more.
    is_gone: bool,
    /// By CPU: records that were lost until now.
    lost: HashMap<u32, u64>,
    /// The first round is the first one of all: none was lost before it. Otherwise its own count tells those before it.
    is_whole: bool,
    /// By CPU: until these ticks, the trace of an earlier recorder has them.
    written_until: HashMap<u32, u64>,
    pub(in crate::kernel) counts: RuleEventCounts,
}

impl RuleSource {
    /// Records as they are added, or those that are kept now. `written_until` tells until which ticks the trace of an earlier recorder
    /// has those of a CPU.
    pub(in crate::kernel) fn feed(&self, written_until: HashMap<u32, u64>) -> std::io::Result<RuleFeed> {
        let (rounds, before) = (self.marked.rounds()?, self.marked.before.events);
        Ok(RuleFeed {
            is_whole: rounds.place() == 0,
            rounds,
            tables: Arc::clone(&self.tables),
            names: Arc::clone(&self.names),
            calls: Arc::clone(&self.calls),
            plans: HashMap::new(),
            mark: None,
            is_gone: false,
            lost: HashMap::new(),
            written_until,
            counts: RuleEventCounts { events: before, kept: before, lost: 0 },
        })
    }
}

impl RuleFeed {
    /// Whether records wait for conversion.
    pub(in crate::kernel) fn waits(&self) -> bool {
        self.mark.is_some() || !self.is_gone && self.rounds.waits()
    }

    /// Ticks up to which records are converted.
    pub(in crate::kernel) fn until(&self) -> u64 {
        self.rounds.last()
    }

    /// Converts records up to the next mark, if it is known which times are wanted until then; returns whether it did.
    pub(in crate::kernel) fn convert(
        &mut self,
        output: &mut KernelOutput,
        wanted: &WantedTimes,
    ) -> Result<bool, String> {
        if self.mark.is_none() && !self.is_gone {
            self.mark = self.rounds.next().map_err(|error| {
                self.is_gone = true;
                format!("records of rules are gone: {error}")
            })?;
        }
        let Some(mark) = self.mark.filter(|mark| mark.pair.ticks <= wanted.known_until) else { return Ok(false) };
        self.mark = None;
        let entries = self.rounds.take_entries();
        let mut converted = Ok(());
        for (cpu, entry) in all_entries(&entries) {
            converted = converted.and(self.entry((cpu, entry), &mark, (output, wanted)));
        }
        self.rounds.end(&mark);
        converted.and(output.flush_beside()).map_err(|error| error.to_string())?;
        self.rounds.is_done(mark.place, self.counts.kept, self.counts.kept);
        Ok(true)
    }

    fn entry(
        &mut self,
        (cpu, entry): (u32, &[u8]),
        mark: &RoundMark,
        (output, wanted): (&mut KernelOutput, &WantedTimes),
    ) -> Result<(), WriteError> {
        let Some((lost, mut rest)) = entry.split_first_chunk::<LOST_BYTES>() else { return Ok(()) };
        let lost = u64::from_le_bytes(*lost);
        let known = self.lost.insert(cpu, lost).unwrap_or(if self.is_whole { 0 } else { lost });
        let more = lost.saturating_sub(known);
        if more > 0 && wanted.overlaps(self.rounds.last(), mark.pair.ticks) {
            self.counts.lost += more;
            output.loses_of_rules(cpu, more)?;
        }
        let mut records = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let Some((record, behind)) = behind.split_at_checked(u32::from_le_bytes(*length) as usize) else { break };
            records.extend(RuleRecord::read(record));
            rest = behind;
        }
        // A program that interrupts another one ends before it.
        records.sort_by_key(|record| record.nanos);
        let mut written = Ok(());
        for record in records {
            let ticks = self.rounds.ticks_at(mark, record.nanos);
            if wanted.has(ticks) && !self.is_written(cpu, ticks) {
                written = written.and(self.record((cpu, ticks), &record, output));
            }
        }
        written
    }

    /// Whether an earlier recorder has written a record; the first one of a CPU that it has not tells that of all later ones.
    fn is_written(&mut self, cpu: u32, ticks: u64) -> bool {
        let is_written = self.written_until.get(&cpu).is_some_and(|until| ticks <= *until);
        if !is_written {
            self.written_until.remove(&cpu);
        }
        is_written
    }

    fn record(&mut self, at: (u32, u64), record: &RuleRecord<'_>, output: &mut KernelOutput) -> Result<(), WriteError> {
        let tables = Arc::clone(&self.tables);
        let event = tables.get(usize::from(record.rule)).and_then(|rule| rule.get(usize::from(record.event)));
        let Some(table) = event else { return Ok(()) };
        (self.counts.events, self.counts.kept) = (self.counts.events + 1, self.counts.kept + 1);
        let mut thread = FieldList::default();
        thread.add("tid", KernelValue::I32(record.tid.cast_signed()));
        thread.add("pid", KernelValue::I32(record.pid.cast_signed()));
        thread.add("procname", KernelValue::ThreadName(record.comm));
        thread.add("rule", KernelValue::Text(self.names.get(usize::from(record.rule)).map_or("", String::as_str)));
        let is_timed = record.took.is_some();
        if let Some(side) = table.call {
            return self.call(at, (record, side, table.time), &thread, output);
        }
        let fields = fields_of(&table.columns, record);
        let key = RuleEventKey { rule: record.rule, event: record.event, call: None, is_timed };
        let class = || (table.name.clone(), thread.class(), class_of(&table.columns, &fields));
        output.rule_event(at, key, class, [thread.bytes(), fields.bytes()])
    }

    /// Begin or end of a system call, with its arguments.
    fn call(
        &mut self,
        at: (u32, u64),
        (record, side, time): (&RuleRecord<'_>, CallSide, &'static str),
        thread: &FieldList,
        output: &mut KernelOutput,
    ) -> Result<(), WriteError> {
        let mut words =
            record.fields.chunks_exact(8).map(|word| word.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word)));
        let number = words.next().unwrap_or(0);
        let result = if side == CallSide::Exit { words.next().unwrap_or(0) } else { 0 };
        let mut arguments = [0; ARGUMENTS_MAX];
        arguments.iter_mut().zip(words).for_each(|(argument, word)| *argument = word);
        let is_compat = number & COMPAT_CALL as u64 != 0;
        let table = if is_compat { CallTable::Compat } else { CallTable::Native };
        let bare = number & !(COMPAT_CALL as u64);
        let time = record.took.filter(|_| side == CallSide::Exit).map(|_| time);
        let plan = self.plans.entry((number, side, time)).or_insert_with(|| match side {
            CallSide::Entry => self.calls.call_entry(table, bare),
            CallSide::Exit => self.calls.whole_call(table, bare, time),
        });
        let bytes = whole_call(bare, arguments, result, record.took.unwrap_or(0));
        let (mut threads, mut payload) = (KernelThreads::default(), Vec::new());
        let mut context = RecordContext { cpu: at.0, threads: &mut threads, texts: &NO_TEXTS };
        // The record is as long as its plan wants it.
        let _ = plan.write((0, 0), &bytes, &mut context, &mut payload);
        let key = RuleEventKey { rule: record.rule, event: record.event, call: Some(number), is_timed: time.is_some() };
        let class = || (plan.name.clone(), thread.class(), plan.payload.clone());
        output.rule_event(at, key, class, [thread.bytes(), payload.get(plan.head_bytes()..).unwrap_or_default()])
    }

    /// The trace ends: it tells how many events rules have kept and let go.
    pub(in crate::kernel) fn end(&mut self, rules: &[RuleStatus], output: &mut KernelOutput) -> Result<(), String> {
        self.counts.events += rules.len() as u64;
        let told = |rule: &RuleStatus| {
            let mut fields = FieldList::default();
            fields.add("rule", KernelValue::Text(&rule.options.name));
            fields.add("words", KernelValue::Text(&rule.words));
            fields.add("kept", KernelValue::U64(rule.kept));
            fields.add("let_go", KernelValue::U64(rule.let_go));
            fields.add("unknown", KernelValue::U64(rule.unknown));
            fields.add("lost", KernelValue::U64(rule.lost.unwrap_or(0)));
            fields.add("limit", KernelValue::Text(&limits(&rule.options)));
            StateEvent { name: "kymo_kernel_rule", fields, code: None }
        };
        rules.iter().map(told).try_for_each(|event| output.fact(&event)).map_err(|error| error.to_string())
    }
}

/// Limits of a rule now: that of all of its events, and those of kinds.
fn limits(rule: &RuleOptions) -> String {
    let kinds = rule.limits.iter().map(|(kind, ns)| format!("{kind} {}", time(*ns)));
    std::iter::once(rule.limit()).chain(kinds).collect::<Vec<_>>().join(", ")
}

/// The fields of a record, with the time that it took.
fn fields_of(columns: &[RuleColumn], record: &RuleRecord<'_>) -> FieldList {
    let (mut fields, mut rest) = (FieldList::default(), record.fields);
    for column in columns {
        let (bytes, behind) = rest.split_at_checked(column.bytes()).unwrap_or((&[], &[]));
        rest = behind;
        let number = bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let value = match column.kind {
            WatchKind::Text { .. } => {
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
                fields.add(column.name.clone(), KernelValue::Text(&String::from_utf8_lossy(&bytes[..end])));
                continue;
            }
            WatchKind::Integer { .. } if column.is_address => KernelValue::Hex(number),
            WatchKind::Integer { bits: 33.., is_signed: true } => KernelValue::I64(number.cast_signed()),
            WatchKind::Integer { bits: 33.., is_signed: false } => KernelValue::U64(number),
            WatchKind::Integer { is_signed: true, .. } => KernelValue::I32(number as u32 as i32),
            WatchKind::Integer { is_signed: false, .. } => KernelValue::U32(number as u32),
        };
        fields.add(column.name.clone(), value);
    }
    if let Some(took) = record.took {
        fields.add("took_ns", KernelValue::U64(took));
    }
    fields
}

fn class_of(columns: &[RuleColumn], fields: &FieldList) -> FieldClass {
    let named = columns.iter().filter(|column| !column.labels.is_empty());
    let labels: Vec<_> = named.map(|column| (column.name.as_str(), &column.labels[..])).collect();
    fields.class_with_labels(&labels)
}
