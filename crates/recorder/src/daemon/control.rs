//! Requests of programs about the sessions that record them.

use super::Daemon;
use crate::clock::ticks;
use crate::program::DrainTiming;
use crate::protocol::{ControlRequest, Keep, RecorderReply, RuleChange, TriggerTurn};
use crate::rule::{RuleOptions, RuleStatus};
use crate::select::{SelectionRule, SelectionStep, StepKind};
use crate::session::RecordingSession;
use crate::session::serve::Served;
use crate::trigger::{TriggerOptions, TriggerStatus};
use kymo_schema::glob::event_pattern;

impl Daemon {
    /// Acts on a program's request; `Err`: why not, in sentences.
    pub(super) fn control(&mut self, request: &ControlRequest) -> Result<RecorderReply, String> {
        if self.copies(request.pid).next().is_none() {
            // The program may be new.
            self.find();
        }
        let sessions = self.controlled(request)?;
        let answer = match request.verb.as_str() {
            "state" if self.is_recorded(request.pid, &sessions) => Some("recording".to_owned()),
            "state" => Some("stopped".to_owned()),
            "firings" => Some(numbers(&self.firings(&sessions, &request.argument)?)),
            "counts" => Some(numbers(&self.counts(&sessions))),
            "rule" => Some(numbers(&self.rule_counts(&sessions, &request.argument)?)),
            "share" => Some(numbers(&self.share(&sessions, request)?)),
            _ => None,
        };
        if let Some(text) = answer {
            return Ok(RecorderReply::Controlled { text });
        }
        let acts: Vec<Result<(), String>> =
            sessions.iter().map(|session| self.control_session(session, request)).collect();
        // A session of several may have no triggers to arm.
        match acts.iter().any(Result::is_ok) {
            true => Ok(RecorderReply::Controlled { text: String::new() }),
            false => Err(acts.into_iter().find_map(Result::err).unwrap_or_default()),
        }
    }

    fn control_session(&mut self, session: &str, request: &ControlRequest) -> Result<(), String> {
        let named = (!request.argument.is_empty()).then(|| request.argument.clone());
        let session = Some(session);
        match request.verb.as_str() {
            "flush" => self.drain_now(session)?,
            "start" => drop(self.turn(session, &TriggerTurn::Start)?),
            "stop" => drop(self.turn(session, &TriggerTurn::Stop)?),
            "arm" => drop(self.turn(session, &TriggerTurn::Arm(named))?),
            "disarm" => drop(self.turn(session, &TriggerTurn::Disarm(named))?),
            "remove" => {
                let names = named.map_or_else(|| self.trigger_names(session), |name| Ok(vec![name]))?;
                names.into_iter().try_for_each(|name| self.turn(session, &TriggerTurn::Remove(name)).map(drop))?;
            }
            "snapshot" => drop(self.snapshot(session, None)?),
            "trigger" => {
                let words = &request.argument;
                let trigger = TriggerOptions::parse(words).map_err(|problem| problem.render(words))?;
                drop(self.trigger(session, trigger)?);
            }
            "only" => {
                let words = &request.argument;
                let rule = RuleOptions::parse(words).map_err(|problem| problem.render(words))?;
                drop(self.rule(session, RuleChange::Set(Box::new(rule)))?);
            }
            "limit" => drop(self.rule(session, limit(&request.argument)?)?),
            verb @ ("enable" | "disable") => {
                let act = if verb == "enable" { StepKind::Enable } else { StepKind::Disable };
                let events = request.argument.split(',').map(event_pattern).collect::<Result<_, _>>()?;
                let processes = vec![request.pid.to_string()];
                let rule = SelectionRule { events, processes, ..SelectionRule::default() };
                drop(self.take(session, SelectionStep { act, rule })?);
            }
            verb => return Err(format!("the recorder knows no request `{verb}`")),
        }
        Ok(())
    }

    /// Sessions that a request is about.
    fn controlled(&self, request: &ControlRequest) -> Result<Vec<String>, String> {
        if let Some(name) = &request.session {
            return Ok(vec![self.sessions[self.named(Some(name))?].name.clone()]);
        }
        let sessions = self.sessions.iter().filter(|session| {
            let takes_snapshots = session.options.keep == Keep::Newest;
            (takes_snapshots || request.verb != "snapshot")
                && self.copies(request.pid).any(|program| session.takes_program(&program.who))
        });
        let names: Vec<String> = sessions.map(|session| session.name.clone()).collect();
        match names.is_empty() {
            true if request.verb == "snapshot" => {
                Err("no session with `--mode overwrite` records this program".to_owned())
            }
            true if request.verb != "state" => Err("no session records this program".to_owned()),
            _ => Ok(names),
        }
    }

    /// Copies of the tracer in a program.
    fn copies(&self, pid: u32) -> impl Iterator<Item = &Served> {
        self.served.iter().filter(move |served| served.who.pid == Some(pid) && !served.is_dead)
    }

    fn is_recorded(&self, pid: u32, sessions: &[String]) -> bool {
        self.sessions.iter().filter(|session| sessions.contains(&session.name)).any(|session| {
            self.copies(pid).filter(|program| session.takes_program(&program.who)).any(|program| {
                let clock = program.who.identity.clock;
                session.triggers.is_on(program.key(), clock, ticks(clock))
            })
        })
    }

    /// Names of a session's triggers, if it has some.
    fn trigger_names(&self, session: Option<&str>) -> Result<Vec<String>, String> {
        let session = &self.sessions[self.named(session)?];
        let all = session.triggers.all().iter();
        let names: Vec<String> = all.map(|trigger| trigger.options.name.clone()).collect();
        if names.is_empty() { Err(format!("session `{}` has no triggers", session.name)) } else { Ok(names) }
    }

    /// Firings of a trigger of these sessions, or of all without a name, until now: how many triggers are armed, how
    /// often they have fired, how often too early, and the most matches that a program has had; of the last firing the
    /// time in nanoseconds since 1970 and in ticks, the process and the thread. Later versions may add numbers.
    fn firings(&mut self, sessions: &[String], name: &str) -> Result<[u64; 8], String> {
        self.drain(DrainTiming::Now);
        let statuses = self.session_statuses();
        let its = statuses.iter().filter(|status| sessions.contains(&status.summary.session));
        let triggers: Vec<&TriggerStatus> = its
            .flat_map(|status| &status.triggers)
            .filter(|trigger| name.is_empty() || trigger.options.name == name)
            .collect();
        if triggers.is_empty() && !name.is_empty() {
            return Err(format!("no session of this program has a trigger `{name}`"));
        }
        let mut told = [0; 8];
        for trigger in &triggers {
            told[0] += u64::from(trigger.is_armed);
            told[1] += trigger.firings;
            told[2] += trigger.suppressed;
            told[3] = told[3].max(trigger.counted);
        }
        let last = triggers.iter().filter_map(|trigger| trigger.last.as_ref()).max_by_key(|last| last.ns);
        if let Some(last) = last {
            let numbers = [last.ns.max(0).cast_unsigned(), last.ticks, last.pid.into(), last.tid.into()];
            told[4..].copy_from_slice(&numbers);
        }
        Ok(told)
    }

    /// Events that a rule of these sessions has kept and let go until now, ends without a known begin, keys that it has forgotten,
    /// and its limit: nanoseconds, or events. Later versions may add numbers.
    fn rule_counts(&mut self, sessions: &[String], name: &str) -> Result<[u64; 5], String> {
        self.drain(DrainTiming::Now);
        self.count_rules(false);
        let statuses = self.session_statuses();
        let its = statuses.iter().filter(|status| sessions.contains(&status.summary.session));
        let rules: Vec<&RuleStatus> =
            its.flat_map(|status| &status.summary.rules).filter(|rule| rule.options.name == name).collect();
        if rules.is_empty() {
            return Err(format!("no session of this program has a rule `{name}`"));
        }
        Ok(rules.iter().fold([0; 5], |[kept, let_go, unknown, forgotten, limit], rule| {
            let limit = limit.max(rule.limit().unwrap_or(0));
            [kept + rule.kept, let_go + rule.let_go, unknown + rule.unknown, forgotten + rule.forgotten, limit]
        }))
    }

    /// Hands over the memory of a rule that the kernel asks; returns its bytes, where its limit is, where counts begin, how many bytes
    /// are between two of them, and how many there are. Each has four numbers: kept, let go, unknown, lost.
    fn share(&self, sessions: &[String], request: &ControlRequest) -> Result<[u64; 5], String> {
        let name = &request.argument;
        let mut its = self.sessions.iter().filter(|session| sessions.contains(&session.name));
        let shared = its.find_map(|session| session.shared_rule(name));
        let (file, places) = shared.ok_or_else(|| {
            format!(
                "no session of this program has a rule `{name}` about events of the kernel: `--kernel-only` makes one"
            )
        })??;
        request.file.put(file);
        Ok(places)
    }

    /// Events of these sessions until now, lost ones, bytes of their traces, and snapshots. Later versions may add numbers.
    fn counts(&mut self, sessions: &[String]) -> [u64; 4] {
        self.drain(DrainTiming::Now);
        let its = self.sessions.iter().filter(|session| sessions.contains(&session.name));
        its.map(RecordingSession::summary).fold([0; 4], |[events, lost, bytes, snapshots], more| {
            let snapshots = snapshots + u64::from(more.snapshots.unwrap_or(0));
            [events + more.events, lost + more.lost.events(), bytes + more.bytes, snapshots]
        })
    }

    /// Events of a session until now are in the files of its trace.
    fn drain_now(&mut self, session: Option<&str>) -> Result<(), String> {
        let at = self.named(session)?;
        if self.sessions[at].options.keep == Keep::Newest {
            let name = &self.sessions[at].name;
            return Err(format!("session `{name}` keeps its events in memory: a snapshot writes them"));
        }
        self.drain(DrainTiming::Now);
        Ok(())
    }
}

/// `RULE LIMIT [KIND]`; `-`: the limit of the rule's words again.
fn limit(argument: &str) -> Result<RuleChange, String> {
    let mut words = argument.splitn(3, ' ');
    let (Some(rule), Some(limit)) = (words.next(), words.next()) else {
        return Err("a limit has a rule and its value: `slow 5ms`".to_owned());
    };
    let limit = Some(limit.to_owned()).filter(|limit| limit != "-");
    Ok(RuleChange::Limit { rule: Some(rule.to_owned()), kind: words.next().map(str::to_owned), limit })
}

/// Numbers as text.
fn numbers(all: &[u64]) -> String {
    all.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}
