//! Requests of programs about the sessions that record them.

use super::Daemon;
use crate::clock::ticks;
use crate::program::DrainTiming;
use crate::protocol::{ControlRequest, Keep, RecorderReply, TriggerTurn};
use crate::select::{SelectionRule, SelectionStep, StepKind};
use crate::session::serve::Served;
use crate::trigger::TriggerOptions;
use kymo_schema::glob::event_pattern;

impl Daemon {
    /// Acts on a program's request; `Err`: why not, in sentences.
    pub(super) fn control(&mut self, request: &ControlRequest) -> Result<RecorderReply, String> {
        if self.copies(request.pid).next().is_none() {
            // The program may be new.
            self.find();
        }
        let sessions = self.controlled(request)?;
        if request.verb == "state" {
            let is_recording = Some(self.is_recorded(request.pid, &sessions));
            return Ok(RecorderReply::Controlled { is_recording });
        }
        let acts: Vec<Result<(), String>> =
            sessions.iter().map(|session| self.control_session(session, request)).collect();
        // A session of several may have no triggers to arm.
        match acts.iter().any(Result::is_ok) {
            true => Ok(RecorderReply::Controlled { is_recording: None }),
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
            "snapshot" => drop(self.snapshot(session, None)?),
            "trigger" => {
                let words = &request.argument;
                let trigger = TriggerOptions::parse(words).map_err(|problem| problem.render(words))?;
                drop(self.trigger(session, trigger)?);
            }
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
