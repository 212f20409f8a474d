//! `kymo enable`, `disable`, `filter --session`, `snapshot` and `stop`: commands that change a
//! running session.

use std::io::{self, Write};

use kymo_recorder::client::{ClientProblem, nonsense};
use kymo_recorder::protocol::{RecorderReply, RecorderRequest};
use kymo_recorder::select::{SelectionRule, SelectionStep, StepKind};

use super::show::SessionFacts;
use super::{RecordProblem, ask, show};
use crate::CommandOutcome;
use crate::arguments::{FilterArguments, SnapshotArguments, StopArguments, SwitchArguments};
use crate::message::plain_output;
use crate::message::write_line;
use crate::stop::StopReason;

pub(crate) fn enable(arguments: &SwitchArguments) -> Result<CommandOutcome, RecordProblem> {
    take(&StepKind::Enable, rule(arguments), arguments.session.clone(), arguments.json)
}

pub(crate) fn disable(arguments: &SwitchArguments) -> Result<CommandOutcome, RecordProblem> {
    if arguments.filter.is_some() {
        let what = "`--filter` says which events are recorded, which `disable` does not: `kymo filter` changes it";
        return Err(StopReason::Usage(what.to_owned()).into());
    }
    take(&StepKind::Disable, rule(arguments), arguments.session.clone(), arguments.json)
}

pub(crate) fn filter(arguments: &FilterArguments) -> Result<CommandOutcome, RecordProblem> {
    let rule = SelectionRule {
        events: arguments.event.clone(),
        processes: arguments.process.clone(),
        filter: Some(arguments.expression.clone()),
        ..SelectionRule::default()
    };
    take(&StepKind::Filter, rule, arguments.session.clone(), arguments.json)
}

fn rule(arguments: &SwitchArguments) -> SelectionRule {
    SelectionRule {
        events: arguments.events.clone(),
        level: arguments.level,
        processes: arguments.process.clone(),
        filter: arguments.filter.clone(),
        ..SelectionRule::default()
    }
}

fn take(
    act: &StepKind,
    rule: SelectionRule,
    session: Option<String>,
    json: bool,
) -> Result<CommandOutcome, RecordProblem> {
    let step = Box::new(SelectionStep { act: act.clone(), rule });
    let answer = ask(&RecorderRequest::Take { session, step })?;
    let RecorderReply::Taken { matched } = answer else { return Err(nonsense().into()) };
    if json {
        writeln!(plain_output(), "{}", serde_json::to_string(&matched).map_err(io::Error::from)?)?;
    } else {
        writeln!(plain_output(), "session {}: {}", matched.session, matched.sentence(act))?;
    }
    matched.warnings().iter().for_each(|warning| super::warn(warning));
    matched.notes.iter().for_each(|note| write_line(&format!("note: {}", note.trim_end())));
    Ok(if matched.events > 0 { CommandOutcome::Complete } else { CommandOutcome::Incomplete })
}

pub(crate) fn snapshot(arguments: &SnapshotArguments) -> Result<CommandOutcome, RecordProblem> {
    let output = arguments.output.as_deref().map(super::folder).transpose()?;
    let answer = ask(&RecorderRequest::Snapshot { session: arguments.session.clone(), output })?;
    let RecorderReply::Snapshot { summary, .. } = answer else { return Err(nonsense().into()) };
    if arguments.json {
        writeln!(plain_output(), "{}", serde_json::to_string(&summary).map_err(io::Error::from)?)?;
    } else {
        write!(plain_output(), "{}", show::ended(&summary, &SessionFacts::default()))?;
    }
    Ok(if summary.problems.is_empty() { CommandOutcome::Complete } else { CommandOutcome::Incomplete })
}

pub(crate) fn stop(arguments: &StopArguments) -> Result<CommandOutcome, RecordProblem> {
    let summaries = match ask(&RecorderRequest::Stop { session: arguments.session.clone(), all: arguments.all }) {
        Ok(RecorderReply::Stopped { summaries }) => summaries,
        // That is the requested state.
        Err(ClientProblem::Nobody) if arguments.all => Vec::new(),
        Ok(_) => return Err(nonsense().into()),
        Err(problem) => return Err(problem.into()),
    };
    if arguments.json {
        let objects = summaries.iter().map(|summary| {
            let mut object = serde_json::to_value(summary).map_err(io::Error::from)?;
            super::user_objects::add_json(summary, &mut object);
            Ok(object)
        });
        let objects: Vec<serde_json::Value> = objects.collect::<io::Result<_>>()?;
        writeln!(plain_output(), "{}", serde_json::Value::from(objects))?;
    } else if summaries.is_empty() {
        writeln!(plain_output(), "no session is recorded now")?;
    } else {
        for summary in &summaries {
            writeln!(plain_output(), "session {}", summary.session)?;
            write!(plain_output(), "{}", show::ended(summary, &SessionFacts::default()))?;
        }
    }
    let is_whole = summaries.iter().all(|summary| summary.problems.is_empty() && summary.lost.unwritten == 0);
    Ok(if is_whole { CommandOutcome::Complete } else { CommandOutcome::Incomplete })
}
