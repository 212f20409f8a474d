//! `kymo limit`

use std::io::{self, Write};

use kymo_recorder::client::nonsense;
use kymo_recorder::protocol::{RecorderReply, RecorderRequest, RuleChange, SessionStatus};
use kymo_recorder::rule::RuleOptions;

use super::show::rule_status;
use super::{RecordProblem, ask, status};
use crate::CommandOutcome;
use crate::arguments::LimitArguments;
use crate::message::plain_output;
use crate::stop::StopReason;

pub(crate) fn run(arguments: &LimitArguments) -> Result<CommandOutcome, RecordProblem> {
    let Some(change) = change(arguments)? else { return list(arguments) };
    let is_new = matches!(change, RuleChange::Set(_));
    let question = RecorderRequest::Rule { session: arguments.session.clone(), change };
    let RecorderReply::Ruled { matched, status } = ask(&question)? else { return Err(nonsense().into()) };
    if arguments.json {
        let told = serde_json::json!({ "matched": is_new.then_some(&matched), "session": &status });
        writeln!(plain_output(), "{told}")?;
    } else {
        tell(&status)?;
    }
    arguments.kind.iter().filter_map(|kind| unknown_kind(kind, arguments, &status)).for_each(|why| super::warn(&why));
    if !is_new {
        return Ok(CommandOutcome::Complete);
    }
    matched.warnings().iter().for_each(|warning| super::warn(warning));
    Ok(if matched.events > 0 { CommandOutcome::Complete } else { CommandOutcome::Incomplete })
}

fn change(arguments: &LimitArguments) -> Result<Option<RuleChange>, StopReason> {
    let LimitArguments { rule, limit, kind, reset, add, remove, .. } = arguments;
    Ok(match (add, remove, rule, limit) {
        (Some(text), ..) => parse_all(std::slice::from_ref(text))?.pop().map(|rule| RuleChange::Set(Box::new(rule))),
        (_, Some(name), ..) => Some(RuleChange::Remove(name.clone())),
        (_, _, Some(_), None) if !reset => {
            let why = "a new limit is missing: `kymo limit RULE 5ms`, or `--reset`".to_owned();
            return Err(StopReason::Usage(why));
        }
        (_, _, Some(rule), limit) => {
            Some(RuleChange::Limit { rule: Some(rule.clone()), kind: kind.clone(), limit: limit.clone() })
        }
        (None, None, None, _) => None,
    })
}

/// No event was of this kind so far.
fn unknown_kind(kind: &str, arguments: &LimitArguments, status: &SessionStatus) -> Option<String> {
    let mut rules = status.summary.rules.iter();
    let rule = rules.find(|rule| arguments.rule.as_ref().is_none_or(|name| *name == rule.options.name))?;
    let seen: Vec<&str> = rule.kinds.iter().filter(|kind| kind.events > 0).map(|kind| kind.name.as_str()).collect();
    if seen.contains(&kind) {
        return None;
    }
    if rule.shared > 0 {
        return Some(format!(
            "no event of rule `{}` was of kind `{kind}` while there was room for its own limit: it may share that of all other kinds",
            rule.options.name
        ));
    }
    let near = kymo_recorder::nearest(kind, seen.iter().copied());
    let help = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Some(format!("no event of rule `{}` was of kind `{kind}` so far{help}", rule.options.name))
}

/// Rules of sessions that run.
fn list(arguments: &LimitArguments) -> Result<CommandOutcome, RecordProblem> {
    status::list(arguments.session.as_deref(), arguments.json, tell)
}

fn tell(session: &SessionStatus) -> io::Result<()> {
    let mut out = plain_output();
    let none = if session.summary.rules.is_empty() { ": no rules" } else { "" };
    writeln!(out, "session {}{none}", session.summary.session)?;
    session.summary.rules.iter().try_for_each(|rule| rule_status(rule, &mut out))
}

/// Rules in words: [`RuleOptions::parse_all`].
pub(super) fn parse_all(texts: &[String]) -> Result<Vec<RuleOptions>, StopReason> {
    RuleOptions::parse_all(texts)
        .map_err(|(at, problem)| StopReason::Usage(format!("rule: {}", problem.render(&texts[at]).trim_end())))
}
