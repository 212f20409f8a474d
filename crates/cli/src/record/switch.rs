//! `kymo enable`, `disable`, `filter --session`, `snapshot` and `stop`: commands that change a
//! running session.

use std::io::{self, Write};

use kymo_recorder::client::{ClientProblem, nonsense};
use kymo_recorder::protocol::{Answer, Question};
use kymo_recorder::select::{Act, Rule, Step};

use super::show::Told;
use super::{Problem, ask, show};
use crate::Outcome;
use crate::arguments::{FilterArguments, SnapshotArguments, StopArguments, SwitchArguments};
use crate::stop::{Stop, say};

pub(crate) fn enable(arguments: &SwitchArguments) -> Result<Outcome, Problem> {
    take(&Act::Enable, rule(arguments), arguments.session.clone(), arguments.json)
}

pub(crate) fn disable(arguments: &SwitchArguments) -> Result<Outcome, Problem> {
    if arguments.filter.is_some() {
        let what = "`--filter` says which events are recorded, which `disable` does not: `kymo filter` changes it";
        return Err(Stop::Usage(what.to_owned()).into());
    }
    take(&Act::Disable, rule(arguments), arguments.session.clone(), arguments.json)
}

pub(crate) fn filter(arguments: &FilterArguments) -> Result<Outcome, Problem> {
    let rule = Rule {
        events: arguments.event.clone(),
        processes: arguments.process.clone(),
        filter: Some(arguments.expression.clone()),
        ..Rule::default()
    };
    take(&Act::Filter, rule, arguments.session.clone(), arguments.json)
}

fn rule(arguments: &SwitchArguments) -> Rule {
    Rule {
        events: arguments.events.clone(),
        level: arguments.level,
        processes: arguments.process.clone(),
        filter: arguments.filter.clone(),
        ..Rule::default()
    }
}

fn take(act: &Act, rule: Rule, session: Option<String>, json: bool) -> Result<Outcome, Problem> {
    let answer = ask(&Question::Take { session, step: Step { act: act.clone(), rule } })?;
    let Answer::Taken { matched } = answer else { return Err(nonsense().into()) };
    if json {
        writeln!(io::stdout(), "{}", serde_json::to_string(&matched).map_err(io::Error::from)?)?;
    } else {
        writeln!(io::stdout(), "session {}: {}", matched.session, matched.sentence(act))?;
    }
    matched.warnings().iter().for_each(|warning| super::warn(warning));
    matched.notes.iter().for_each(|note| say(&format!("note: {}", note.trim_end())));
    Ok(if matched.events > 0 { Outcome::Complete } else { Outcome::Incomplete })
}

pub(crate) fn snapshot(arguments: &SnapshotArguments) -> Result<Outcome, Problem> {
    let output = arguments.output.as_deref().map(super::folder).transpose()?;
    let answer = ask(&Question::Snapshot { session: arguments.session.clone(), output })?;
    let Answer::Snapshot { summary, .. } = answer else { return Err(nonsense().into()) };
    if arguments.json {
        writeln!(io::stdout(), "{}", serde_json::to_string(&summary).map_err(io::Error::from)?)?;
    } else {
        write!(io::stdout(), "{}", show::ended(&summary, &Told::default()))?;
    }
    Ok(if summary.problems.is_empty() { Outcome::Complete } else { Outcome::Incomplete })
}

pub(crate) fn stop(arguments: &StopArguments) -> Result<Outcome, Problem> {
    let summaries = match ask(&Question::Stop { session: arguments.session.clone(), all: arguments.all }) {
        Ok(Answer::Stopped { summaries }) => summaries,
        // That is the requested state.
        Err(ClientProblem::Nobody) if arguments.all => Vec::new(),
        Ok(_) => return Err(nonsense().into()),
        Err(problem) => return Err(problem.into()),
    };
    if arguments.json {
        writeln!(io::stdout(), "{}", serde_json::to_string(&summaries).map_err(io::Error::from)?)?;
    } else if summaries.is_empty() {
        writeln!(io::stdout(), "no session is recorded now")?;
    } else {
        for summary in &summaries {
            writeln!(io::stdout(), "session {}", summary.session)?;
            write!(io::stdout(), "{}", show::ended(summary, &Told::default()))?;
        }
    }
    let is_whole = summaries.iter().all(|summary| summary.problems.is_empty() && summary.lost.unwritten == 0);
    Ok(if is_whole { Outcome::Complete } else { Outcome::Incomplete })
}
