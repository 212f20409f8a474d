//! The meaning of rules for the events of this kernel.

use std::collections::BTreeSet;

use kymo_filter::Filter;
use kymo_ftrace::format::EventFormat;
use kymo_ftrace::{EventCatalog, event_name};
use kymo_probe::rules::{KernelAsk, KernelLimit, KernelRuleRequest, RULED_EVENTS_MAX, RuledEvent};
use kymo_probe::watch::{
    FoundPath, TracepointFields, WatchKind, WatchMeaning, WatchPath, WatchValue, WatchableEvents, WatchedBegin,
};

use crate::kernel_pairs::call_of;
use crate::rule::{KernelTest, KeyField, RuleLimit, RuleOptions, RuleTest};
use crate::watch::names::{BoundCondition, bind, field, labels};
use crate::watch::words::{path, thread};
use crate::watch::{EventList, bare};

/// Bytes of the fields of a record at most: programs have little room.
const FIELD_BYTES_MAX: usize = 224;
/// Parts of 2^32 in one of a million.
const PART: u128 = 1_000_000;
/// Begin and end of all system calls, and their fields in records.
const CALL_ENTRY: &str = "raw_syscalls:sys_enter";
const CALL_EXIT: &str = "raw_syscalls:sys_exit";
const CALL_FIELDS: [&str; 8] = ["name", "ret", "args[0]", "args[1]", "args[2]", "args[3]", "args[4]", "args[5]"];

/// Rules as the helper and the converter need them.
#[derive(Debug, Default)]
pub(in crate::kernel) struct AskedRules {
    pub(in crate::kernel) options: Vec<RuleOptions>,
    pub(in crate::kernel) requests: Vec<KernelRuleRequest>,
    /// Of each rule: the values that tell its kinds.
    pub(super) kinds: Vec<Option<KindValues>>,
    /// Of each rule and event.
    pub(super) tables: Vec<Vec<RuleEventTable>>,
    /// Descriptions of system calls.
    pub(super) calls: EventCatalog,
    /// Events that are recorded only as far as rules keep them.
    pub(in crate::kernel) ruled: BTreeSet<String>,
    /// Of each rule, in the environment of the trace: its name, the events that it keeps some of, and those that it keeps none of.
    pub(super) told: Vec<String>,
}

/// An event of a rule in records.
#[derive(Clone, Debug)]
pub(in crate::kernel) struct RuleEventTable {
    /// Its name in traces.
    pub(super) name: String,
    pub(super) call: Option<CallSide>,
    /// The name of the time since its begin.
    pub(super) time: &'static str,
    pub(super) columns: Vec<RuleColumn>,
}

/// Begin or end of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CallSide {
    Entry,
    Exit,
}

impl CallSide {
    fn of(event: &str) -> Option<Self> {
        match event {
            CALL_ENTRY => Some(Self::Entry),
            CALL_EXIT => Some(Self::Exit),
            _ => None,
        }
    }
}

/// A field in records.
#[derive(Clone, Debug)]
pub(super) struct RuleColumn {
    pub(super) name: String,
    pub(super) kind: WatchKind,
    pub(super) is_address: bool,
    /// Names of its numbers.
    pub(super) labels: Vec<(String, i64)>,
}

/// The values that tell kinds.
#[derive(Clone, Debug)]
pub(super) struct KindValues {
    is_text: bool,
    labels: Vec<(String, i64)>,
}

impl RuleColumn {
    /// Its bytes in a record.
    pub(super) fn bytes(&self) -> usize {
        match self.kind {
            WatchKind::Integer { .. } => 8,
            WatchKind::Text { capacity } => capacity.next_multiple_of(8) as usize,
        }
    }
}

impl KindValues {
    /// The value of a kind with this name.
    pub(super) fn value(&self, name: &str) -> Result<WatchValue, String> {
        if self.is_text {
            return Ok(WatchValue::Text(name.to_owned()));
        }
        let known = self.labels.iter().find(|(label, _)| label == name).map(|(_, number)| *number);
        let number = known.or_else(|| name.parse().ok());
        number.map(WatchValue::Number).ok_or_else(|| {
            let near = kymo_filter::nearest(name, self.labels.iter().map(|(label, _)| label.as_str()));
            let help = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            format!("`{name}` is no kind of the rule: its kinds are numbers{help}")
        })
    }

    /// The name of a kind with this value.
    pub(super) fn name(&self, value: &WatchValue) -> String {
        match value {
            WatchValue::Text(text) => text.clone(),
            WatchValue::Number(number) => {
                let known = self.labels.iter().find(|(_, known)| known == number);
                known.map_or_else(|| number.to_string(), |(label, _)| label.clone())
            }
        }
    }
}

/// Looks up the names of rules. `known` are the events of the kernel, if tracefs tells them; `calls` asks for the descriptions of system
/// calls.
pub(in crate::kernel) fn asked(
    rules: &[RuleOptions],
    known: Option<&[String]>,
    calls: impl FnOnce() -> Result<Vec<EventFormat>, String>,
) -> Result<AskedRules, String> {
    let mut all = AskedRules { options: rules.to_vec(), ..AskedRules::default() };
    if rules.is_empty() {
        return Ok(all);
    }
    let types = WatchableEvents::of_this_kernel()?;
    let list = EventList::new(&types, known.map(<[String]>::to_vec));
    for rule in rules {
        let about = |why: String| format!("rule `{}`: {}", rule.name, why.trim_end());
        all.add(rule, &list).map_err(about)?;
    }
    if all.tables.iter().flatten().any(|table| table.call.is_some()) {
        calls()?.into_iter().for_each(|format| all.calls.add(format, true));
    }
    Ok(all)
}

impl AskedRules {
    fn add(&mut self, rule: &RuleOptions, list: &EventList<'_>) -> Result<(), String> {
        let parts = AskedParts::of(rule, list)?;
        let per = match &rule.asks.test {
            RuleTest::Over { per, .. } => per.as_deref().map(path).transpose()?,
            _ => None,
        };
        let (listed, _) = list.chosen(&rule.events).map_err(|why| with_call(why, &rule.events))?;
        let is_beside = |event: &String| parts.begins.contains(event) || parts.ends.contains(event);
        let events: Vec<String> = listed.into_iter().filter(|event| !is_beside(event)).collect();
        if events.is_empty() {
            return Err("all of its events begin or end something: it is to be about others".to_owned());
        }
        let count = events.len() + parts.begins.len() + parts.ends.len();
        if count > RULED_EVENTS_MAX {
            return Err(format!("it is about {count} events, and {RULED_EVENTS_MAX} are the most"));
        }
        let keys = keys(rule)?;
        let filter = rule.condition.as_deref().map(Filter::parse).transpose();
        let filter = filter.map_err(|_| "its condition is none".to_owned())?;
        let begin_keys: Vec<WatchPath> = keys.iter().map(|(_, begin)| begin.clone()).collect();
        let begins = beside(&parts.begins, &begin_keys, list)?;
        let ends = beside(&parts.ends, &parts.end_keys, list)?;
        let mut request = KernelRuleRequest { events: Vec::new(), begins, ends, ask: parts.ask, kinds: Vec::new() };
        let (mut tables, mut kinds) = (Vec::new(), None);
        // Without a begin, it is not known how long something took.
        let is_timed = !request.begins.is_empty();
        let is_of_calls = parts.begins == [CALL_ENTRY] && rule.asks.keys == [KeyField::Thread] && parts.ends.is_empty();
        let mut never = None;
        for event in &events {
            let Some(fields) = list.fields(event, is_timed) else { continue };
            let condition = match filter.as_ref().map(|filter| bind(filter, event, &fields)).transpose()? {
                None | Some(BoundCondition::Always) => None,
                Some(BoundCondition::Depends(condition)) => Some(condition),
                Some(BoundCondition::Never(why)) if events.len() == 1 => return Err(why),
                // It keeps none of them.
                Some(BoundCondition::Never(why)) => {
                    never.get_or_insert((event, why));
                    continue;
                }
            };
            let since: Vec<WatchPath> = keys.iter().filter(|_| is_timed).map(|(end, _)| end.clone()).collect();
            since.iter().try_for_each(|key| field(key, event, &fields).map(|_| ()))?;
            if let Some(per) = &per {
                let found = field(per, event, &fields)?;
                let is_text = matches!(found.kind, WatchKind::Text { .. });
                kinds = Some(KindValues { is_text, labels: labels(&found.meaning) });
            }
            let (paths, columns) = columns(event, &fields)?;
            let (system, name) = event.split_once(':').unwrap_or(("", event));
            let (call, name) = (CallSide::of(event), event_name(system, name));
            // A call takes the time since its own begin.
            let time = if call.is_some() && !is_of_calls { "since_ns" } else { "took_ns" };
            tables.push(RuleEventTable { name, call, time, columns });
            let (name, kind) = (event.clone(), per.clone());
            request.events.push(RuledEvent { name, condition, since, kind, fields: paths });
        }
        if request.events.is_empty() {
            let first = never.map_or_else(String::new, |(event, why)| format!(", such as `{event}`: {why}"));
            return Err(format!("its condition is true of none of its events{first}"));
        }
        let of_kinds = |kinds: &KindValues| {
            let of = |(name, nanos): (&String, &u64)| Ok((kinds.value(name)?, *nanos));
            rule.limits.iter().map(of).collect::<Result<Vec<_>, String>>()
        };
        request.kinds = kinds.as_ref().map(of_kinds).transpose()?.unwrap_or_default();
        let without: Vec<&String> = parts.begins.iter().chain(&parts.ends).collect();
        self.told.push(told(&rule.name, &events.iter().collect::<Vec<_>>(), &without));
        self.requests.push(request);
        self.tables.push(tables);
        self.kinds.push(kinds);
        self.ruled.extend(events.into_iter().chain(parts.begins).chain(parts.ends));
        Ok(())
    }
}

/// There is no event for each system call: a condition tells the call.
fn with_call(why: String, events: &[String]) -> String {
    match events.iter().find_map(|event| call_of(event)) {
        Some(call) => {
            format!("{why}\nhelp: `sys_exit when name == \"{call}\"`, or `syscalls over 5ms when name == \"{call}\"`")
        }
        None => why,
    }
}

/// What the environment of the trace tells of a rule.
fn told(name: &str, events: &[&String], without: &[&String]) -> String {
    let names = |events: &[&String]| {
        let mut names: Vec<String> = events.iter().flat_map(|event| names_in_traces(event)).collect();
        names.dedup();
        names.join(", ")
    };
    let without = if without.is_empty() { String::new() } else { format!(" without {}", names(without)) };
    format!("{name}: {}{without}", names(events))
}

/// Names, or patterns of names, that a tracepoint has in traces.
pub(super) fn names_in_traces(event: &str) -> Vec<String> {
    let calls = |side: &str| vec![format!("syscall_{side}_*"), format!("compat_syscall_{side}_*")];
    match CallSide::of(event) {
        Some(CallSide::Entry) => calls("entry"),
        Some(CallSide::Exit) => calls("exit"),
        None => {
            let (system, name) = event.split_once(':').unwrap_or(("", event));
            vec![event_name(system, name)]
        }
    }
}

/// What a rule asks, and the events beside those that it is about.
struct AskedParts {
    ask: KernelAsk,
    begins: Vec<String>,
    ends: Vec<String>,
    end_keys: Vec<WatchPath>,
}

impl AskedParts {
    fn of(rule: &RuleOptions, list: &EventList<'_>) -> Result<Self, String> {
        let (mut begins, mut ends, mut end_keys) = (Vec::new(), Vec::new(), Vec::new());
        let ask = match &rule.asks.test {
            RuleTest::Over { limit, since, .. } => {
                begins = list.chosen(since)?.0;
                KernelAsk::Over(match limit {
                    RuleLimit::Time(nanos) => KernelLimit::Nanos(*nanos),
                    RuleLimit::Percentile(part) => KernelLimit::Running(((u128::from(*part) << 32) / PART) as u32),
                })
            }
            RuleTest::OfKernel { test: KernelTest::Each, is_closed } => KernelAsk::Each { is_closed: *is_closed },
            RuleTest::OfKernel { test: KernelTest::Between { begin, end, end_keys: fields }, is_closed } => {
                (begins, ends) = (list.chosen(begin)?.0, list.chosen(end)?.0);
                let key = |text: &String| if text == "thread" { Ok(thread().0) } else { path(text) };
                end_keys = fields.iter().map(key).collect::<Result<_, _>>()?;
                KernelAsk::Between { is_closed: *is_closed }
            }
            RuleTest::Every(_) | RuleTest::AtMost { .. } => {
                return Err("only programs are asked for one of many events".to_owned());
            }
            RuleTest::Program { .. } => return Err("`kymo bpf run --kernel` runs objects in the kernel".to_owned()),
        };
        Ok(Self { ask, begins, ends, end_keys })
    }
}

/// Events beside those that a rule is about, with their keys.
fn beside(events: &[String], keys: &[WatchPath], list: &EventList<'_>) -> Result<Vec<WatchedBegin>, String> {
    let mut all = Vec::new();
    for event in events {
        let Some(fields) = list.fields(event, false) else { continue };
        keys.iter().try_for_each(|key| field(key, event, &fields).map(|_| ()))?;
        all.push(WatchedBegin { name: bare(event).to_owned(), keys: keys.to_vec() });
    }
    Ok(all)
}

/// Fields of the event, and of the one that begins it.
fn keys(rule: &RuleOptions) -> Result<Vec<(WatchPath, WatchPath)>, String> {
    let key = |key: &KeyField| match key {
        KeyField::Thread => Ok(thread()),
        KeyField::Field { end, begin } => Ok((path(end)?, path(begin)?)),
    };
    rule.asks.keys.iter().map(key).collect()
}

/// Fields of a record, as many as there is room for.
fn columns(event: &str, fields: &TracepointFields<'_>) -> Result<(Vec<WatchPath>, Vec<RuleColumn>), String> {
    let is_call = CallSide::of(event).is_some();
    let names = if is_call { CALL_FIELDS.map(str::to_owned).to_vec() } else { fields.own_names() };
    let (mut paths, mut columns, mut room) = (Vec::new(), Vec::new(), FIELD_BYTES_MAX);
    for name in names {
        let path = path(&name)?;
        let FoundPath::Field(found) = fields.find(&path) else { continue };
        let is_address = found.meaning == WatchMeaning::Address;
        let labels = if is_call { Vec::new() } else { labels(&found.meaning) };
        let column = RuleColumn { name, kind: found.kind, is_address, labels };
        // Addresses of the kernel's own structures tell little.
        if is_address && !column.name.ends_with("addr") || column.bytes() > room {
            continue;
        }
        room -= column.bytes();
        paths.push(path);
        columns.push(column);
    }
    Ok((paths, columns))
}
