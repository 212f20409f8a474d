//! Maps and programs of rules, as long as they are wanted: they go when this value does, and so when the helper ends.

use std::os::fd::{AsFd, OwnedFd};

use rustix::time::{ClockId, clock_gettime};

use super::memory::{RuleMemory, slot};
use super::program::{RuleAsk, RuleMaps, RulePlan, ThreadAge, judged};
use super::{
    KERNEL_RULES_MAX, KIND_BYTES, KernelAsk, KernelLimit, KernelRuleRequest, MappedRule, RULE_KINDS_MAX,
    RULED_EVENTS_MAX, RuleShape, RuledEvent,
};
use crate::call_programs::COUNTS_AT;
use crate::call_texts::rings;
use crate::error::{KernelAction, ProbeErrorKind};
use crate::linux::tables;
use crate::linux::{self, BpfMapShape, Loaded, MAP_MAPPABLE, MapKind};
use crate::loading::{attach, load, map, put, spool, told};
use crate::perf_sched;
use crate::thread_limit::{RecordedThreads, ThreadLimit};
use crate::watch::begins::{BegunThings, PlannedBegin, begin_programs, begins, ended};
use crate::watch::counting::compiled;
use crate::watch::fields::WatchSource;
use crate::watch::parts::{ReadPart, described, part};
use crate::watch::{BEGIN_KEYS_MAX, WatchValue, WatchableEvents};

/// Bytes of a ring: a power of two.
const RING_BYTES_MIN: u64 = 64 << 10;
const RING_BYTES_MAX: u64 = 64 << 20;
/// Bytes of all rings at most, if they have no more than they need.
const RINGS_BYTES_MAX: u64 = 256 << 20;
/// Fields of a record at most.
const FIELDS_MAX: usize = 64;

const ARRAY: BpfMapShape<'_> =
    BpfMapShape { kind: MapKind::Array, key_bytes: 4, value_bytes: 8, entries: 1, flags: 0, inner: None };

/// Rules that programs in the kernel ask.
#[derive(Debug)]
pub(crate) struct KernelRules {
    /// Bytes of each ring.
    pub(crate) ring_bytes: u32,
    pub(crate) cpus: Vec<u32>,
    rings: Vec<OwnedFd>,
    /// Nothing but places that rings of texts have, too: rules count their losses themselves.
    counts: OwnedFd,
    spool: OwnedFd,
    rules: Vec<RunningRule>,
    programs: Vec<Loaded>,
    links: Vec<OwnedFd>,
}

#[derive(Debug)]
struct RunningRule {
    memory: OwnedFd,
    shape: RuleShape,
    /// Slots of kinds, by their value, and the bytes of that.
    kinds: Option<(OwnedFd, KindKey)>,
}

/// The value that tells kinds, in a map.
#[derive(Clone, Copy, Debug)]
struct KindKey {
    bytes: u32,
    is_number: bool,
}

impl KernelRules {
    /// Begins.
    ///
    /// # Errors
    ///
    /// Why not, in sentences; with the verifier's log, if it has refused a program.
    pub(crate) fn begin(
        requests: &[KernelRuleRequest],
        ring_bytes: u64,
        limit: Option<&ThreadLimit>,
    ) -> Result<Self, String> {
        check(requests)?;
        let events = WatchableEvents::of_this_kernel()?;
        // Also those that are off now.
        let cpus = perf_sched::possible_cpus()?;
        let count = cpus.iter().max().map_or(0, |cpu| cpu + 1);
        let most = (RINGS_BYTES_MAX / u64::from(count)).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
        let ring_bytes = 1_u32 << ring_bytes.clamp(RING_BYTES_MIN, most).ilog2();
        let (shape_of_rings, rings, by_cpu) = rings(&cpus, count, ring_bytes, "kymo_kept")?;
        for (cpu, ring) in cpus.iter().zip(&rings) {
            let file = std::os::fd::AsRawFd::as_raw_fd(ring).to_ne_bytes();
            put(&by_cpu, BpfMapShape { inner: None, ..shape_of_rings }, *cpu, &file)?;
        }
        let counts = map(
            BpfMapShape { value_bytes: COUNTS_AT as u32 + 8 * count, flags: MAP_MAPPABLE, ..ARRAY },
            "kymo_counts",
        )?;
        let (mut rules, mut begin_programs, mut end_programs) = (Vec::new(), Vec::new(), Vec::new());
        for (number, request) in (0..).zip(requests) {
            let (mut plans, mut parts, key) = plans((number, request), &events)?;
            let (begun_things, programs) = parts.begin_programs(&mut plans)?;
            begin_programs.extend(programs);
            let shape = RuleMemory { cpus: count as usize, events: plans.len() };
            let memory = memory(shape, request)?;
            let kinds = key.map(kinds_map).transpose()?;
            let maps = RuleMaps {
                begins: begun_things.as_ref().map(BegunThings::of_programs),
                kinds: kinds.as_ref().map(AsFd::as_fd),
                memory: memory.as_fd(),
                shape,
                rings: by_cpu.as_fd(),
                threads: limit,
            };
            for ((parts, of), begins) in parts.ends.iter().zip(maps.begins.iter().cycle()) {
                let code = ended(parts, *begins).map_err(|problem| problem.to_string())?;
                begin_programs.push(load(&code, "kymo_begin", *of)?);
            }
            for (plan, of) in &plans {
                let code = judged(plan, maps).map_err(|problem| problem.to_string())?;
                end_programs.push(load(&code, "kymo_rule", *of)?);
            }
            let has_numbers = key.is_none_or(|key| key.is_number);
            let shape = RuleShape { cpus: shape.cpus as u32, events: shape.events as u32, has_numbers };
            let rule = RunningRule { memory, shape, kinds: kinds.zip(key) };
            request.kinds.iter().try_for_each(|(value, nanos)| rule.set_kind(value, *nanos))?;
            rules.push(rule);
        }
        // The ends first: those of begins that no program has seen are unknown, and no begin is without its end.
        end_programs.append(&mut begin_programs);
        let programs = end_programs;
        let links = programs.iter().map(attach).collect::<Result<_, _>>()?;
        let spool = spool("kymo-rules")?;
        Ok(Self { ring_bytes, cpus, rings, counts, spool, rules, programs, links })
    }

    /// Its files, for the recorder: rings, counts, memory for records, and the memory of each rule.
    pub(crate) fn files(&self) -> std::io::Result<Vec<OwnedFd>> {
        let beside = [&self.counts, &self.spool];
        let memories = self.rules.iter().map(|rule| &rule.memory);
        self.rings.iter().chain(beside).chain(memories).map(OwnedFd::try_clone).collect()
    }

    /// Shapes of the memories of rules.
    pub(crate) fn shapes(&self) -> Vec<RuleShape> {
        self.rules.iter().map(|rule| rule.shape).collect()
    }

    /// Programs are attached no more. Returns the times that one did not run, because it ran already on that CPU.
    pub(crate) fn stop(&mut self) -> u64 {
        self.links.clear();
        self.programs.iter().filter_map(|program| tables::runs(program.as_fd()).ok()).map(|runs| runs.missed).sum()
    }

    /// Sets the limit of a kind, also of one of which no event has come.
    ///
    /// # Errors
    ///
    /// Why not, in a sentence.
    pub(crate) fn set_kind(&self, rule: usize, value: &WatchValue, nanos: u64) -> Result<(), String> {
        let rule = self.rules.get(rule).ok_or_else(|| format!("there is no rule {rule}"))?;
        rule.set_kind(value, nanos)
    }
}

impl RunningRule {
    fn set_kind(&self, value: &WatchValue, nanos: u64) -> Result<(), String> {
        let (kinds, key) = self.kinds.as_ref().ok_or("the rule has no kinds")?;
        let shape = shape_of_kinds(*key);
        let key = key.bytes_of(value)?;
        let mapped = MappedRule::map(&self.memory, self.shape).map_err(|error| error.to_string())?;
        let slot = match tables::look_up(kinds.as_fd(), &key, 8) {
            Ok(slot) => slot.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes)) as usize,
            Err(ProbeErrorKind::Kernel { errno: libc::ENOENT, .. }) => {
                let slot = mapped.new_kind();
                let slot = slot.ok_or_else(|| {
                    format!("{RULE_KINDS_MAX} other kinds have limits of their own, as many as a rule has: this one shares the rule's limit")
                })?;
                let number = (slot as u64).to_ne_bytes();
                linux::update(kinds.as_fd(), shape, &key, &number).map_err(told(KernelAction::Map))?;
                mapped.name_kind(slot, &key);
                slot
            }
            Err(problem) => return Err(told(KernelAction::Map)(problem)),
        };
        mapped.set_slot(slot, nanos);
        Ok(())
    }
}

impl KindKey {
    /// The key of a value in the map.
    fn bytes_of(self, value: &WatchValue) -> Result<Vec<u8>, String> {
        let mut bytes = match (value, self.is_number) {
            (WatchValue::Number(number), true) => number.to_ne_bytes().to_vec(),
            (WatchValue::Text(text), false) => text.as_bytes().to_vec(),
            (WatchValue::Number(number), false) => {
                return Err(format!("{number} is a number, and kinds of the rule are texts"));
            }
            (WatchValue::Text(text), true) => {
                return Err(format!("`{text}` is a text, and kinds of the rule are numbers"));
            }
        };
        let most = self.bytes as usize;
        if !self.is_number && bytes.len() >= most {
            return Err(format!("a kind of the rule is a text of at most {} bytes", most - 1));
        }
        bytes.resize(most, 0);
        Ok(bytes)
    }
}

fn check(requests: &[KernelRuleRequest]) -> Result<(), String> {
    if requests.len() > KERNEL_RULES_MAX {
        return Err(format!("a session has at most {KERNEL_RULES_MAX} rules about events of the kernel"));
    }
    for request in requests {
        let programs = request.events.len() + request.begins.len() + request.ends.len();
        let wanted = match request.ask {
            KernelAsk::Over(_) => (true, false),
            KernelAsk::Each { .. } => (false, false),
            KernelAsk::Between { .. } => (true, true),
        };
        if request.events.is_empty() || (!request.begins.is_empty(), !request.ends.is_empty()) != wanted {
            return Err("a rule has events, and those that begin and end something where it asks for them".to_owned());
        }
        if programs > RULED_EVENTS_MAX {
            return Err(format!("{programs} events are too many: a rule has at most {RULED_EVENTS_MAX}"));
        }
        let keys =
            request.events.iter().map(|event| &event.since).chain(request.begins.iter().map(|begin| &begin.keys));
        if keys.into_iter().any(|keys| keys.len() > BEGIN_KEYS_MAX) {
            return Err(format!("begin and end have at most {BEGIN_KEYS_MAX} fields in common"));
        }
        if request.events.iter().any(|event| event.fields.len() > FIELDS_MAX) {
            return Err(format!("a record has at most {FIELDS_MAX} fields"));
        }
        if request.kinds.len() > RULE_KINDS_MAX {
            return Err(format!("a rule has limits of at most {RULE_KINDS_MAX} kinds"));
        }
    }
    Ok(())
}

/// Keys of events that begin something, and of those that end it, each with the number of its tracepoint's type.
struct BesideParts {
    begins: Vec<PlannedBegin>,
    ends: Vec<PlannedBegin>,
}

impl BesideParts {
    /// What will have begun, and the programs of events that begin it.
    fn begin_programs(&mut self, plans: &mut [(RulePlan, u32)]) -> Result<(Option<BegunThings>, Vec<Loaded>), String> {
        let ends = self.ends.iter_mut().map(|(parts, _)| parts);
        begin_programs(&mut self.begins, ends.chain(plans.iter_mut().map(|(plan, _)| &mut plan.since)).collect())
    }
}

/// Programs of the events, each with the number of its tracepoint's type, those beside them, and the value that tells kinds.
type PlannedRule = (Vec<(RulePlan, u32)>, BesideParts, Option<KindKey>);

fn plans((rule, request): (u16, &KernelRuleRequest), events: &WatchableEvents) -> Result<PlannedRule, String> {
    let ask = match request.ask {
        KernelAsk::Over(KernelLimit::Running(part)) => RuleAsk::Over(Some(part)),
        KernelAsk::Over(KernelLimit::Nanos(_)) => RuleAsk::Over(None),
        KernelAsk::Each { .. } => RuleAsk::Each,
        KernelAsk::Between { .. } => RuleAsk::Between,
    };
    let age = thread_age(events);
    let plan = |(number, event): (u16, &RuledEvent)| {
        let (system, name) = event.name.split_once(':').unwrap_or(("", &event.name));
        let fields = described(events, name, true)?;
        let parts = |paths: &[_]| paths.iter().map(|path| part(&fields, path)).collect::<Result<Vec<_>, _>>();
        let since = parts(&event.since)?;
        let is_by_thread = matches!(&since[..], [ReadPart { source: WatchSource::Thread, .. }]);
        let plan = RulePlan {
            rule,
            event: number,
            condition: event.condition.as_ref().map(|condition| compiled(&fields, condition)).transpose()?,
            by_thread: age.filter(|_| is_by_thread),
            since,
            kind: event.kind.as_ref().map(|path| part(&fields, path)).transpose()?,
            fields: parts(&event.fields)?,
            ask,
            threads: RecordedThreads::of(system, name),
        };
        Ok::<_, String>((plan, fields.number))
    };
    let mut plans = (0..).zip(&request.events).map(plan).collect::<Result<Vec<_>, _>>()?;
    let beside = BesideParts { begins: begins(&request.begins, events)?, ends: begins(&request.ends, events)? };
    let key = kind_key(&mut plans)?;
    Ok((plans, beside, key))
}

/// How programs know threads that begin from now on; `None`: the kernel does not say when threads begin.
fn thread_age(events: &WatchableEvents) -> Option<ThreadAge> {
    let begin_at = i16::try_from(events.place("task_struct", "start_time")?).ok()?;
    let now = clock_gettime(ClockId::Monotonic);
    Some(ThreadAge { begin_at, rule_nanos: now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64 })
}

/// The value that tells kinds is of one type at all events.
fn kind_key(plans: &mut [(RulePlan, u32)]) -> Result<Option<KindKey>, String> {
    let most = plans.iter().filter_map(|(plan, _)| plan.kind.as_ref()?.text).max();
    let has_kinds = plans.iter().any(|(plan, _)| plan.kind.is_some());
    for (plan, _) in plans.iter_mut().filter(|_| has_kinds) {
        let kind = plan.kind.as_mut().ok_or("all events of a rule have kinds, or none")?;
        if kind.text.is_some() != most.is_some() {
            return Err("a field that is a number for one event and a text for another tells no kinds".to_owned());
        }
        kind.text = most;
    }
    let bytes = most.unwrap_or(8);
    if bytes as usize > KIND_BYTES {
        return Err(format!("a text that tells kinds has at most {KIND_BYTES} bytes"));
    }
    Ok(has_kinds.then_some(KindKey { bytes, is_number: most.is_none() }))
}

fn shape_of_kinds(key: KindKey) -> BpfMapShape<'static> {
    // More CPUs than one may find the last slots at a time.
    let entries = 2 * RULE_KINDS_MAX as u32;
    BpfMapShape { kind: MapKind::Hash, key_bytes: key.bytes, entries, ..ARRAY }
}

fn kinds_map(key: KindKey) -> Result<OwnedFd, String> {
    map(shape_of_kinds(key), "kymo_kinds")
}

/// The memory of a rule, with its limit in all slots.
fn memory(shape: RuleMemory, request: &KernelRuleRequest) -> Result<OwnedFd, String> {
    let of_map = BpfMapShape { value_bytes: shape.bytes() as u32, flags: MAP_MAPPABLE, ..ARRAY };
    let memory = map(of_map, "kymo_rule")?;
    let mut bytes = vec![0; shape.bytes()];
    let set = match request.ask {
        KernelAsk::Over(KernelLimit::Nanos(nanos)) => nanos,
        KernelAsk::Over(KernelLimit::Running(_)) => 0,
        KernelAsk::Each { is_closed } | KernelAsk::Between { is_closed } => is_closed.into(),
    };
    if set > 0 {
        for slot in 0..=RULE_KINDS_MAX {
            put_number(&mut bytes, RuleMemory::slot_at(slot) + slot::SET as usize, set);
        }
    }
    put(&memory, of_map, 0, &bytes)?;
    Ok(memory)
}

fn put_number(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_ne_bytes());
}
