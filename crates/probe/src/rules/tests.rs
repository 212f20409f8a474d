//! Programs of the kernel keep the calls of this thread that take long.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::rings::ProgramRings;
use crate::watch::{AnyInteger, ConditionNumber, ConditionTree, WatchStep};

fn path(text: &str) -> WatchPath {
    let steps = text.split('.').map(|name| WatchStep::Name(name.to_owned())).collect();
    WatchPath { is_global: false, steps }
}

/// Calls, of which the fields are the name of the thread and the result.
fn calls(limit: KernelLimit, kind: Option<&str>) -> KernelRuleRequest {
    // Only those of this thread.
    let number = rustix::thread::gettid().as_raw_nonzero().get().into();
    let tree = ConditionTree::Compare(
        kymo_ir::predicate::Relation::Equal.into(),
        ConditionNumber::Input(0),
        ConditionNumber::Integer(AnyInteger(number)),
    );
    let event = RuledEvent {
        name: "raw_syscalls:sys_exit".to_owned(),
        condition: Some(WatchCondition { inputs: vec![path("tid")], tree }),
        since: vec![path("tid")],
        kind: kind.map(path),
        fields: vec![path("comm"), path("ret"), path("id")],
    };
    let begin = WatchedBegin { name: "sys_enter".to_owned(), keys: vec![path("tid")] };
    let (ends, kinds) = Default::default();
    KernelRuleRequest { events: vec![event], begins: vec![begin], ends, ask: KernelAsk::Over(limit), kinds }
}

struct Begun {
    rules: KernelRules,
    rings: ProgramRings,
    memory: MappedRule,
}

/// `None`: no program can be loaded here, which is told.
fn begin(request: KernelRuleRequest) -> Option<Begun> {
    let rules = match KernelRules::begin(&[request], 0, None) {
        Ok(rules) => rules,
        Err(why) if why.contains("Operation not permitted") || why.contains("btf") => {
            println!("NO BPF HERE: not run ({why})");
            return None;
        }
        Err(why) => panic!("{why}"),
    };
    let mut files = rules.files().expect("there are more").into_iter();
    let mut next = || files.next().expect("there are more");
    let cpus = rules.cpus.clone();
    let own = cpus.iter().map(|_| next()).collect();
    let rings = ProgramRingFiles { ring_bytes: rules.ring_bytes, cpus, rings: own, counts: next(), spool: next() };
    let rings = ProgramRings::map(&rings).expect("they can be mapped");
    let memory = MappedRule::map(&next(), rules.shapes()[0]).expect("it can be mapped");
    Some(Begun { rules, rings, memory })
}

impl Begun {
    /// Numbers of calls that were kept, and how long they took.
    fn kept(&mut self) -> Vec<(u64, Option<u64>)> {
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        // Asking is a call, too.
        let (tid, pid) = (rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), std::process::id());
        self.rings.drain(&mut bytes);
        self.rings.release();
        let mut rest = &bytes[..];
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (record, behind) = behind.split_at(u32::from_ne_bytes(*length) as usize);
            rest = behind;
            let record = RuleRecord::read(record).expect("it is whole");
            assert_eq!((record.rule, record.event), (0, 0));
            assert_eq!((record.tid, record.pid), (tid, pid));
            assert_eq!(record.comm, &record.fields[..16], "both are the name of the thread");
            let number = record.fields[24..32].first_chunk().expect("they have 32 bytes");
            all.push((u64::from_ne_bytes(*number), record.took));
        }
        all
    }
}

fn ask(times: u64) {
    (0..times).for_each(|_| _ = rustix::process::getppid());
}

const SLEEP: u64 = if cfg!(target_arch = "x86_64") { 230 } else { 115 };
const LONG: Duration = Duration::from_millis(60);
const LIMIT: KernelLimit = KernelLimit::Nanos(50_000_000);

#[test]
fn long_calls_are_kept_and_all_others_counted() {
    let Some(mut begun) = begin(calls(LIMIT, None)) else { return };
    ask(1000);
    std::thread::sleep(LONG);
    ask(500);
    let kept: Vec<_> = begun.kept().into_iter().filter(|(_, took)| took.is_some()).collect();
    assert!(kept.len() == 1 && kept[0].0 == SLEEP, "{kept:?}");
    assert!(kept[0].1.is_some_and(|took| (60_000_000..10_000_000_000).contains(&took)), "{kept:?}");
    let counts = begun.memory.counts();
    assert!(counts.let_go >= 1500 && counts.unknown <= 1 && counts.lost == 0, "{counts:?}");
    assert_eq!(counts.kept - counts.unknown, 1);
    // Another limit, set by a word in memory.
    begun.memory.set_limit(1, |_| None);
    ask(100);
    let kept = begun.kept();
    assert!(kept.len() >= 100, "{}", kept.len());
    begun.memory.set_limit(u64::MAX >> 1, |_| None);
    begun.kept();
    ask(100);
    std::thread::sleep(LONG);
    assert!(begun.kept().len() <= 1, "the call that was there when the limit was set");
}

#[test]
fn kinds_have_limits_of_their_own() {
    let Some(mut begun) = begin(calls(LIMIT, Some("id"))) else { return };
    begun.rules.set_kind(0, &WatchValue::Number(SLEEP as i64), 500_000_000).expect("there is room");
    let why = begun.rules.set_kind(0, &WatchValue::Text("read".to_owned()), 5).expect_err("kinds are numbers");
    assert!(why.contains("`read` is a text"), "{why}");
    ask(300);
    std::thread::sleep(LONG);
    assert!(begun.kept().iter().all(|(number, took)| *number != SLEEP || took.is_none()));
    let kinds: BTreeMap<_, _> = begun.memory.kinds().into_iter().map(|kind| (kind.value.clone(), kind)).collect();
    let parent = if cfg!(target_arch = "x86_64") { 110 } else { 173 };
    assert!(kinds[&WatchValue::Number(parent)].events >= 300, "{kinds:?}");
    assert!(kinds[&WatchValue::Number(SLEEP as i64)].events >= 1, "{kinds:?}");
    // That of all others.
    begun.memory.set_limit(1, |kind| (*kind == WatchValue::Number(SLEEP as i64)).then_some(500_000_000));
    ask(50);
    std::thread::sleep(LONG);
    let kept = begun.kept();
    assert!(kept.len() >= 50 && kept.iter().all(|(number, _)| *number != SLEEP), "{kept:?}");
}

/// A new thread's first end of a call is that of the call that has made it.
#[test]
fn ends_without_a_begin_are_kept_only_of_threads_that_were_there() {
    let mut request = calls(LIMIT, None);
    request.events[0].condition = None;
    let Some(mut begun) = begin(request) else { return };
    let own = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
    let own = own.join().expect("it ends");
    let (mut bytes, mut count) = (Vec::new(), 0);
    begun.rings.drain(&mut bytes);
    let mut rest = &bytes[..];
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (record, behind) = behind.split_at(u32::from_ne_bytes(*length) as usize);
        rest = behind;
        count += usize::from(RuleRecord::read(record).is_some_and(|record| record.tid == own));
    }
    assert_eq!(count, 0, "no call of the thread was there before");
}

/// A twentieth of all calls takes much longer: the running limit of the half is that of the others.
#[test]
fn running_limits_follow_all_times() {
    let half = 1 << 31;
    let Some(mut begun) = begin(calls(KernelLimit::Running(half), Some("id"))) else { return };
    let mut kept = Vec::new();
    for number in 0..4000 {
        ask(1);
        if number % 50 == 0 {
            std::thread::sleep(Duration::from_micros(200));
            kept.extend(begun.kept());
        }
    }
    kept.extend(begun.kept());
    let of = |call: i64, kinds: &[KernelKind]| {
        let kind = kinds.iter().find(|kind| kind.value == WatchValue::Number(call)).expect("it was called");
        (kind.running_ns, kind.events)
    };
    let parent = if cfg!(target_arch = "x86_64") { 110 } else { 173 };
    let kinds = begun.memory.kinds();
    let ((quick, calls), (slow, sleeps)) = (of(parent, &kinds), of(SLEEP as i64, &kinds));
    assert!((calls, sleeps) >= (4000, 80) && sleeps < 200, "{kinds:?}");
    assert!(quick > 0 && quick < 100_000 && slow >= 200_000, "{kinds:?}");
    let kept = kept.into_iter().filter(|(number, took)| *number == parent as u64 && took.is_some()).count();
    assert_eq!(begun.memory.counts().lost, 0);
    assert!((800..3200).contains(&kept), "about a half of 4,000: {kept}");
    // A limit that is set counts instead, until it is none.
    begun.memory.set_limit(10_000_000_000, |_| None);
    begun.kept();
    ask(200);
    assert!(begun.kept().len() <= 1);
    begun.memory.set_limit(0, |_| None);
    ask(200);
    assert!(begun.kept().len() >= 20);
}
