//! Rules about events of the kernel, as a recorder asks its helper for them.

use std::fs::File;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use super::{Helper, HelperProblem, HelperReply, HelperRequest, HelperState, unexpected};
use crate::rings::ProgramRingFiles;
use crate::rules::{KernelRules, RuleFiles, RuleShape};
use crate::watch::WatchValue;

/// A description of rings with records of rules, and of the memory of each, without files.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BegunRules {
    ring_bytes: u32,
    cpus: Vec<u32>,
    shapes: Vec<RuleShape>,
}

impl BegunRules {
    pub(super) fn of(rules: &KernelRules) -> Self {
        Self { ring_bytes: rules.ring_bytes, cpus: rules.cpus.clone(), shapes: rules.shapes() }
    }

    /// How many files there are: rings, counts, memory for records, and the memory of each rule.
    pub(super) fn files(&self) -> usize {
        self.cpus.len() + 2 + self.shapes.len()
    }

    /// The same with its files.
    pub(super) fn with(
        self,
        mut next: impl FnMut() -> Result<File, HelperProblem>,
    ) -> Result<RuleFiles, HelperProblem> {
        let Self { ring_bytes, cpus, shapes } = self;
        let rings = cpus.iter().map(|_| next().map(OwnedFd::from)).collect::<Result<_, _>>()?;
        let (counts, spool) = (next()?.into(), next()?.into());
        let rings = ProgramRingFiles { ring_bytes, cpus, rings, counts, spool };
        let memories = shapes.into_iter().map(|shape| Ok((next()?.into(), shape)));
        Ok(RuleFiles { rings, memories: memories.collect::<Result<_, HelperProblem>>()? })
    }
}

impl Helper {
    /// Sets the limit of a kind of a rule, in nanoseconds, also of one of which no event has come.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn set_kind(&mut self, rule: usize, value: &WatchValue, nanos: u64) -> Result<(), HelperProblem> {
        match self.ask(&HelperRequest::Kind { rule, value: value.clone(), nanos })? {
            HelperReply::Kind => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Asks rules no more: counts and rings stay as they are. Returns the times that a program of a rule did not run, because it ran
    /// already on that CPU.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn stop_rules(&mut self) -> Result<u64, HelperProblem> {
        match self.ask(&HelperRequest::StopRules)? {
            HelperReply::Stopped { missed } => Ok(missed),
            other => Err(unexpected(other)),
        }
    }
}

impl HelperState {
    pub(super) fn set_kind(&self, rule: usize, value: &WatchValue, nanos: u64) -> HelperReply {
        let rules = self.instance.as_ref().and_then(|helped| helped.rules.as_ref());
        let set = rules.map_or(Ok(()), |rules| rules.set_kind(rule, value, nanos));
        set.map_or_else(|why| HelperReply::Refused { why }, |()| HelperReply::Kind)
    }

    pub(super) fn stop_rules(&mut self) -> HelperReply {
        let rules = self.instance.as_mut().and_then(|helped| helped.rules.as_mut());
        HelperReply::Stopped { missed: rules.map_or(0, KernelRules::stop) }
    }
}
