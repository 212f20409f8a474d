//! `kymo trigger`

use std::io::{self, Write};

use kymo_recorder::client::nonsense;
use kymo_recorder::protocol::{RecorderReply, RecorderRequest, SessionStatus, TriggerTurn};
use kymo_recorder::select::SelectionRule;
use kymo_recorder::trigger::{TriggerEffect, TriggerOptions, TriggerScope};
use kymo_schema::glob::event_pattern;

use super::show::trigger as show;
use super::status;
use super::{RecordProblem, ask};
use crate::CommandOutcome;
use crate::arguments::{TriggerArguments, TriggerDoes, TriggerPrograms};
use crate::message::{plain_output, write_line};
use crate::stop::StopReason;

pub(crate) fn run(arguments: &TriggerArguments) -> Result<CommandOutcome, RecordProblem> {
    let session = arguments.session.clone();
    let question = match (arguments.effect, turn(arguments)) {
        (Some(effect), _) => RecorderRequest::Trigger { session, trigger: Box::new(options(arguments, effect)?) },
        (None, None) if !arguments.events.is_empty() => {
            RecorderRequest::Trigger { session, trigger: Box::new(in_words(&arguments.events.join(" "))?) }
        }
        (None, Some(turn)) => RecorderRequest::Turn { session, turn },
        (None, None) => return list(arguments),
    };
    let is_new = !arguments.events.is_empty();
    let RecorderReply::Triggered { matched, status } = ask(&question)? else { return Err(nonsense().into()) };
    if arguments.json {
        let told = serde_json::json!({ "matched": is_new.then_some(&matched), "session": &status });
        writeln!(plain_output(), "{told}")?;
    } else {
        tell(&status)?;
    }
    if !is_new {
        return Ok(CommandOutcome::Complete);
    }
    matched.notes.iter().for_each(|note| write_line(&format!("note: {}", note.trim_end())));
    Ok(if matched.events > 0 { CommandOutcome::Complete } else { CommandOutcome::Incomplete })
}

/// Triggers of sessions that run.
fn list(arguments: &TriggerArguments) -> Result<CommandOutcome, RecordProblem> {
    status::list(arguments.session.as_deref(), arguments.json, tell)
}

fn tell(session: &SessionStatus) -> io::Result<()> {
    let mut out = plain_output();
    let (name, triggers) = (&session.summary.session, &session.triggers);
    match (session.is_on, triggers.is_empty()) {
        (true, true) => writeln!(out, "session {name}: recording, without triggers")?,
        (true, false) => writeln!(out, "session {name}: recording")?,
        (false, _) => writeln!(out, "session {name}: not recording: {}", super::show::start_word(triggers))?,
    }
    session.triggers.iter().try_for_each(|trigger| show(trigger, &mut out))
}

fn turn(arguments: &TriggerArguments) -> Option<TriggerTurn> {
    match arguments {
        TriggerArguments { arm: Some(name), .. } => Some(TriggerTurn::Arm(name.clone())),
        TriggerArguments { disarm: Some(name), .. } => Some(TriggerTurn::Disarm(name.clone())),
        TriggerArguments { remove: Some(name), .. } => Some(TriggerTurn::Remove(name.clone())),
        TriggerArguments { start: true, .. } => Some(TriggerTurn::Start),
        TriggerArguments { stop: true, .. } => Some(TriggerTurn::Stop),
        _ => None,
    }
}

fn options(arguments: &TriggerArguments, effect: TriggerDoes) -> Result<TriggerOptions, StopReason> {
    let events = arguments.events.iter().map(|pattern| event_pattern(pattern).map_err(StopReason::Usage));
    let events = events.collect::<Result<Vec<_>, _>>()?;
    let effect = match effect {
        TriggerDoes::Start => TriggerEffect::Start,
        TriggerDoes::Stop => TriggerEffect::Stop,
        TriggerDoes::Snapshot => TriggerEffect::Snapshot,
    };
    let scope = match arguments.scope {
        TriggerPrograms::Session => TriggerScope::Session,
        TriggerPrograms::Program => TriggerScope::Program,
    };
    Ok(TriggerOptions {
        name: arguments.name.clone().unwrap_or_else(|| effect.word().to_owned()),
        rule: SelectionRule {
            events,
            processes: arguments.process.clone(),
            filter: arguments.when.clone(),
            ..SelectionRule::default()
        },
        effect,
        scope,
        repeats: arguments.repeat,
        interval_ns: arguments.every,
        for_ns: arguments.length,
        after: arguments.after,
        asks: None,
        last: arguments.last,
        gate: None,
    })
}

/// A trigger in words.
fn in_words(text: &str) -> Result<TriggerOptions, StopReason> {
    TriggerOptions::parse(text).map_err(|problem| StopReason::Usage(problem.render(text).trim_end().to_owned()))
}

/// Triggers in words: [`TriggerOptions::parse_all`].
pub(super) fn parse_all(texts: &[String]) -> Result<Vec<TriggerOptions>, StopReason> {
    let wrong = |text: &str, why: &str| StopReason::Usage(format!("--trigger `{text}`: {why}"));
    let all = TriggerOptions::parse_all(texts)
        .map_err(|(at, problem)| StopReason::Usage(format!("--trigger: {}", problem.render(&texts[at]).trim_end())))?;
    match all.iter().zip(texts).find_map(|(trigger, text)| Some((text, trigger.fault()?))) {
        Some((text, fault)) => Err(wrong(text, fault)),
        None => Ok(all),
    }
}
