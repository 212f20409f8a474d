//! Limits and counts of rules, in the memory that programs in the kernel use.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use kymo_probe::rules::{KernelRuleCounts, MappedRule};
use kymo_probe::watch::WatchValue;

use super::asked::KindValues;
use crate::kernel::state::{SharedHelper, lock};
use crate::rule::{RuleKind, RuleLimit, RuleOptions, RuleStatus, RuleTest};

/// Rules that programs in the kernel ask.
#[derive(Debug)]
pub(in crate::kernel) struct RuleControl(Vec<LimitedRule>);

#[derive(Debug)]
struct LimitedRule {
    options: RuleOptions,
    kinds: Option<KindValues>,
    /// For programs that share it.
    file: OwnedFd,
    memory: MappedRule,
}

impl RuleControl {
    pub(super) fn new(
        options: Vec<RuleOptions>,
        kinds: Vec<Option<KindValues>>,
        memories: Vec<(OwnedFd, MappedRule)>,
    ) -> Self {
        let rules = options.into_iter().zip(kinds).zip(memories);
        Self(rules.map(|((options, kinds), (file, memory))| LimitedRule { options, kinds, file, memory }).collect())
    }

    /// The memory of a rule, for a program: the file, its bytes, where its limit is, where counts begin, how many bytes are between two of
    /// them, and how many there are. `None`: there is no rule of this name.
    pub(in crate::kernel) fn shared(&self, name: &str) -> Option<Result<(OwnedFd, [u64; 5]), String>> {
        let rule = self.0.iter().find(|rule| rule.options.name == name)?;
        if rule.kinds.is_some() {
            return Some(Err(format!(
                "rule `{name}` has a limit for each kind: requests set those, and no single word"
            )));
        }
        let file = rule.file.try_clone().map_err(|error| error.to_string());
        Some(file.map(|file| (file, rule.memory.places().map(|place| place as u64))))
    }

    /// The rules, with the limits that were set.
    pub(in crate::kernel) fn options(&self) -> Vec<RuleOptions> {
        self.0.iter().map(|rule| rule.options.clone()).collect()
    }

    /// States for people.
    pub(in crate::kernel) fn statuses(&self) -> Vec<RuleStatus> {
        self.0.iter().map(LimitedRule::status).collect()
    }

    /// Sets the limit of a rule, in words, of all events or of one kind; without words it is that of the question again. `None`: there is
    /// no rule of this name.
    pub(in crate::kernel) fn set_limit(
        &mut self,
        helper: &SharedHelper,
        name: &str,
        (kind, limit): (Option<&str>, Option<&str>),
    ) -> Option<Result<(), String>> {
        let number = self.0.iter().position(|rule| rule.options.name == name)?;
        let rule = &mut self.0[number];
        let mut options = rule.options.clone();
        Some(options.set_limit(kind, limit).and_then(|()| {
            if let (Some(kind), Some(nanos), Some(kinds)) =
                (kind, kind.and_then(|kind| options.limits.get(kind)), &rule.kinds)
            {
                let value = kinds.value(kind)?;
                lock(helper).set_kind(number, &value, *nanos).map_err(|problem| problem.to_string())?;
            }
            rule.options = options;
            rule.apply();
            Ok(())
        }))
    }
}

impl LimitedRule {
    /// Programs compare with these limits from now on.
    fn apply(&self) {
        let limit = match &self.options.asks.test {
            RuleTest::Over { limit: RuleLimit::Time(nanos), .. } => self.options.set.unwrap_or(*nanos),
            RuleTest::OfKernel { is_closed, .. } => self.options.set.unwrap_or((*is_closed).into()),
            _ => self.options.set.unwrap_or(0),
        };
        let limits = self.options.limits.iter();
        let own: BTreeMap<WatchValue, u64> = match &self.kinds {
            Some(kinds) => limits.filter_map(|(name, nanos)| Some((kinds.value(name).ok()?, *nanos))).collect(),
            None => BTreeMap::new(),
        };
        self.memory.set_limit(limit, |value| own.get(value).copied());
    }

    fn status(&self) -> RuleStatus {
        let KernelRuleCounts { kept, let_go, unknown, lost } = self.memory.counts();
        // A program that shares the memory may have set another limit.
        let mut options = self.options.clone();
        if let (RuleTest::Over { limit, .. }, None) = (&options.asks.test, &self.kinds) {
            let words = if let RuleLimit::Time(nanos) = limit { *nanos } else { 0 };
            options.set = Some(self.memory.limit()).filter(|now| *now != words && *now > 0);
        }
        if let RuleTest::OfKernel { is_closed, .. } = options.asks.test {
            options.set = Some(self.memory.limit()).filter(|now| *now != u64::from(is_closed));
        }
        let is_running = matches!(&self.options.asks.test, RuleTest::Over { limit: RuleLimit::Percentile(_), .. });
        let running = |nanos: u64| Some(nanos).filter(|nanos| is_running && *nanos > 0);
        let kinds = self.kinds.iter().flat_map(|kinds| {
            let kind = |kind: kymo_probe::rules::KernelKind| RuleKind {
                name: kinds.name(&kind.value),
                running_ns: running(kind.running_ns),
                set_ns: None,
                events: kind.events,
            };
            self.memory.kinds().into_iter().map(kind).filter(|kind| kind.events > 0)
        });
        let mut status = RuleStatus {
            options,
            words: self.options.words(),
            kept,
            let_go,
            unknown,
            forgotten: 0,
            programs: 0,
            without: 0,
            why: Vec::new(),
            problems: Vec::new(),
            running_ns: running(self.memory.running_ns()).filter(|_| self.kinds.is_none()),
            kinds: kinds.collect(),
            lost: Some(lost),
            shared: self.kinds.as_ref().map_or(0, |_| self.memory.shared_events()),
        };
        status.sort_kinds();
        status
    }
}
