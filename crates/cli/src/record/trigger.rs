//! `kymo trigger`

use std::io::{self, Write};

use kymo_recorder::client::nonsense;
use kymo_recorder::protocol::{RecorderReply, RecorderRequest, SessionStatus, TriggerTurn};
use kymo_recorder::select::SelectionRule;
use kymo_recorder::trigger::{TriggerEffect, TriggerOptions, TriggerScope};

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
        (Some(effect), _) => RecorderRequest::Trigger { session, trigger: Box::new(options(arguments, effect)) },
        (None, Some(turn)) => RecorderRequest::Turn { session, turn },
        (None, None) => return list(arguments),
    };
    let is_new = arguments.effect.is_some();
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
    let mut sessions = status::status()?.map(|status| status.sessions).unwrap_or_default();
    if let Some(name) = &arguments.session {
        sessions.retain(|session| session.summary.session == *name);
        if sessions.is_empty() {
            return Err(StopReason::Usage(format!("there is no session `{name}`")).into());
        }
    }
    if arguments.json {
        writeln!(plain_output(), "{}", serde_json::to_string(&sessions).map_err(io::Error::from)?)?;
    } else if sessions.is_empty() {
        writeln!(plain_output(), "no session is recorded now")?;
    } else {
        sessions.iter().try_for_each(tell)?;
    }
    Ok(CommandOutcome::Complete)
}

fn tell(session: &SessionStatus) -> io::Result<()> {
    let mut out = plain_output();
    let state = if session.is_on { "recording" } else { "not recording" };
    let none = if session.triggers.is_empty() { ", without triggers" } else { "" };
    writeln!(out, "session {}: {state}{none}", session.summary.session)?;
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

fn options(arguments: &TriggerArguments, effect: TriggerDoes) -> TriggerOptions {
    let effect = match effect {
        TriggerDoes::Start => TriggerEffect::Start,
        TriggerDoes::Stop => TriggerEffect::Stop,
        TriggerDoes::Snapshot => TriggerEffect::Snapshot,
    };
    let scope = match arguments.scope {
        TriggerPrograms::Session => TriggerScope::Session,
        TriggerPrograms::Program => TriggerScope::Program,
    };
    TriggerOptions {
        name: arguments.name.clone().unwrap_or_else(|| effect.word().to_owned()),
        rule: SelectionRule {
            events: arguments.events.clone(),
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
    }
}

/// Triggers in words: [`TriggerOptions::parse`].
pub(super) fn parse_all(texts: &[String]) -> Result<Vec<TriggerOptions>, StopReason> {
    let mut all: Vec<TriggerOptions> = Vec::new();
    for text in texts {
        let wrong = |why: &str| {
            StopReason::Usage(format!(
                "--trigger `{text}`: {why}\nhelp: `stop on net:lost when port == 80`, `start on bench:begin for 5s`, \
                 `snapshot on server:error repeat every 1min`"
            ))
        };
        let mut trigger = TriggerOptions::parse(text).map_err(|why| wrong(&why))?;
        let is_taken = |name: &str| all.iter().any(|known| known.name == name);
        if !text.contains(':') || !text.trim_start().starts_with(&format!("{}:", trigger.name)) {
            let plain = trigger.name.clone();
            trigger.name = std::iter::once(plain.clone())
                .chain((2..).map(|number| format!("{plain}-{number}")))
                .find(|name| !is_taken(name))
                .expect("numbers do not end");
        } else if is_taken(&trigger.name) {
            return Err(wrong("another trigger has that name"));
        }
        if let Some(fault) = trigger.fault() {
            return Err(wrong(fault));
        }
        all.push(trigger);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<TriggerOptions, String> {
        parse_all(&[text.to_owned()]).map(|mut all| all.remove(0)).map_err(|stop| stop.text())
    }

    #[test]
    fn triggers_are_words() {
        let trigger =
            parsed("stop on net:lost,!net:lost_too when port == 80 && host == \" when \"").expect("it is one");
        assert_eq!((trigger.name.as_str(), trigger.effect), ("stop", TriggerEffect::Stop));
        assert_eq!(trigger.rule.events, ["net:lost", "!net:lost_too"]);
        assert_eq!(trigger.rule.filter.as_deref(), Some("port == 80 && host == \" when \""));
        let trigger = parsed("first: start on bench:* for 5ms repeat every 1s in program").expect("it is one");
        assert_eq!(
            (trigger.name.as_str(), trigger.for_ns, trigger.interval_ns),
            ("first", Some(5_000_000), Some(1_000_000_000))
        );
        assert!(trigger.repeats && trigger.scope == TriggerScope::Program && trigger.rule.filter.is_none());
        let trigger = parsed("stop on bench:* after 1000").expect("it is one");
        assert_eq!((trigger.after, trigger.repeats), (Some(1000), false));
        for (text, why) in [
            ("begin on a:b", "expected `start`, `stop` or `snapshot`, found `begin`"),
            ("stop", "expected `on`, found the end"),
            ("stop on", "expected an event `PROVIDER:NAME`, found the end"),
            ("stop on lost", "an event is called PROVIDER:NAME"),
            ("stop on a:b for 5", "only a trigger that starts can say for how long"),
            ("start on a:b every 5s", "only a trigger that repeats has a least time"),
            (
                "start on a:b soon",
                "expected `after N`, `for TIME`, `repeat`, `every TIME`, `in program` or `when EXPR`, found `soon`",
            ),
            ("start on a:b for soon", "a duration is a number"),
            ("start on a:b after 0", "a number of events is at least 1"),
            ("start on a:b after all", "a number of events is at least 1"),
        ] {
            let told = parsed(text).expect_err(text);
            assert!(told.contains(why), "{text}: {told}");
        }
        let two = parse_all(&["stop on a:b".to_owned(), "stop on a:c".to_owned()]).map_err(|stop| stop.text());
        let names: Vec<String> = two.expect("they are").into_iter().map(|trigger| trigger.name).collect();
        assert_eq!(names, ["stop", "stop-2"]);
    }
}
