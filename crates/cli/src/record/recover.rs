//! `kymo recover`: the remains of a crash become traces.

use std::io::Write;
use std::path::{Path, PathBuf};

use kymo_recorder::client::{Client, ClientProblem, has_leavings, nonsense};
use kymo_recorder::protocol::{RecorderReply, RecorderRequest, Rescued, SessionSummary};
use kymo_recorder::recover::rescue_copies;
use kymo_recorder::{Mended, mend};

use super::{RecordProblem, show, this_program};
use crate::CommandOutcome;
use crate::arguments::RecoverArguments;
use crate::message::plain_output;
use crate::message::write_line;
use crate::show::{bytes, counted};
use crate::stop::StopReason;

/// The results.
#[derive(Default)]
struct Recovered {
    /// Sessions that have ended now because their recorder was killed.
    sessions: Vec<SessionSummary>,
    /// Memory that no session knew.
    memory: Option<Rescued>,
    /// Traces that were mended, or are whole.
    traces: Vec<Mended>,
    /// The failures, in sentences.
    problems: Vec<String>,
}

pub(crate) fn run(arguments: &RecoverArguments) -> Result<CommandOutcome, RecordProblem> {
    let (folders, files): (Vec<_>, Vec<_>) = arguments.paths.iter().partition(|path| path.is_dir());
    if !folders.is_empty() && !files.is_empty() {
        let what = "folders are traces that are mended, files are copies of programs' memory: one or the other";
        return Err(StopReason::Usage(what.to_owned()).into());
    }
    if !folders.is_empty() && arguments.output.is_some() {
        let what = "a trace is repaired in place: `--output` is for events found in memory";
        return Err(StopReason::Usage(what.to_owned()).into());
    }
    let recovered = match (folders.is_empty(), files.is_empty()) {
        (false, _) => traces(&folders),
        (_, false) => copies(&files, arguments)?,
        _ => sessions(arguments)?,
    };
    if arguments.json {
        let Recovered { sessions, memory, traces, problems } = &recovered;
        let object =
            serde_json::json!({"sessions": sessions, "memory": memory, "traces": traces, "problems": problems});
        writeln!(plain_output(), "{object}")?;
    } else {
        write!(plain_output(), "{}", text(&recovered))?;
    }
    for problem in &recovered.problems {
        write_line(&format!("error: {problem}"));
    }
    Ok(if recovered.is_all() { CommandOutcome::Complete } else { CommandOutcome::Incomplete })
}

impl Recovered {
    /// Nothing is left behind.
    fn is_all(&self) -> bool {
        self.problems.is_empty()
            && self.sessions.iter().all(|session| session.problems.is_empty() && session.lost.unwritten == 0)
            && self.memory.as_ref().is_none_or(|memory| memory.problems.is_empty() && memory.damaged_bytes == 0)
            && self.traces.iter().all(|trace| trace.damaged.is_empty())
    }
}

fn traces(folders: &[&PathBuf]) -> Recovered {
    let mut recovered = Recovered::default();
    for folder in folders {
        match mend(folder) {
            Ok(mended) => recovered.traces.push(mended),
            Err(problem) => recovered.problems.push(problem.to_string()),
        }
    }
    recovered
}

fn copies(files: &[&PathBuf], arguments: &RecoverArguments) -> Result<Recovered, RecordProblem> {
    let files: Vec<PathBuf> = files.iter().map(|path| (*path).clone()).collect();
    let mut recovered = Recovered::default();
    match rescue_copies(&files, &output(arguments)?) {
        Ok(rescued) => recovered.memory = Some(rescued),
        Err(problem) => recovered.problems.push(problem.to_string()),
    }
    Ok(recovered)
}

/// Sessions without a recorder, and unused memory.
fn sessions(arguments: &RecoverArguments) -> Result<Recovered, RecordProblem> {
    let mut recovered = Recovered::default();
    let kept = match Client::connect() {
        // A session with a running recorder goes on as it is.
        Ok(_) => Vec::new(),
        Err(ClientProblem::Nobody | ClientProblem::Broken(_)) => kymo_recorder::client::kept_sessions(),
        Err(problem) => return Err(problem.into()),
    };
    if kept.is_empty() && !has_leavings() {
        return Ok(recovered);
    }
    let mut client = Client::connect_or_start(&this_program())?.telling(super::warn);
    for session in kept {
        match client.ask(&RecorderRequest::Stop { session: Some(session), all: false }) {
            Ok(RecorderReply::Stopped { summaries }) => recovered.sessions.extend(summaries),
            Ok(_) => return Err(nonsense().into()),
            Err(ClientProblem::Refused(problem)) => recovered.problems.push(problem),
            Err(problem) => return Err(problem.into()),
        }
    }
    match client.ask(&RecorderRequest::Recover { output: output(arguments)? }) {
        Ok(RecorderReply::Recovered { rescued }) => recovered.memory = rescued,
        Ok(_) => return Err(nonsense().into()),
        Err(ClientProblem::Refused(problem)) => recovered.problems.push(problem),
        Err(problem) => return Err(problem.into()),
    }
    Ok(recovered)
}

/// Where a trace of memory goes, from the root.
fn output(arguments: &RecoverArguments) -> Result<PathBuf, RecordProblem> {
    let path = arguments.output.clone().unwrap_or_else(|| super::session::free_folder("recovered"));
    Ok(super::folder(&path)?)
}

fn text(recovered: &Recovered) -> String {
    let Recovered { sessions, memory, traces, problems } = recovered;
    if sessions.is_empty() && memory.is_none() && traces.is_empty() {
        let nothing = "nothing to recover: no session was left by its recorder, and no memory by a program\n";
        return if problems.is_empty() { nothing.to_owned() } else { String::new() };
    }
    let mut text = String::new();
    for session in sessions {
        let before = session.resumed.unwrap_or(0);
        let more = counted(session.events.saturating_sub(before), "event");
        text += &format!(
            "session {}: {} were written, {more} more lay in memory\n",
            session.session,
            counted(before, "event")
        );
        text += &show::ended(session, &show::SessionFacts::default());
    }
    memory.iter().for_each(|memory| text += &of_memory(memory));
    traces.iter().for_each(|trace| text += &of_trace(trace));
    text
}

fn of_memory(memory: &Rescued) -> String {
    let (events, programs) = (counted(memory.events, "event"), counted(memory.programs.len() as u64, "program"));
    let mut text = format!("recovered {events} of {programs} from memory, {}\n", bytes(memory.bytes));
    for program in &memory.programs {
        let lost = match program.lost {
            0 => String::new(),
            lost => format!("; it had lost {} since it began", counted(lost, "event")),
        };
        let name = &program.name;
        text += &format!("  program {}  {name}: {}{lost}\n", program.pid, counted(program.events, "event"));
    }
    text += &format!("  trace     {}\n", memory.output.display());
    if memory.damaged_bytes > 0 {
        text += &format!("  damaged   {} are no events\n", bytes(memory.damaged_bytes));
    }
    if !memory.has_times {
        text += "  times     only say how long after each other events were: when the system had begun is not known, and for\n            \
                 the processor's counter this machine's rate is taken\n";
    }
    memory.problems.iter().for_each(|problem| text += &format!("  problem   {problem}\n"));
    text + &next(&memory.output)
}

fn of_trace(trace: &Mended) -> String {
    let path = trace.path.display();
    let what = format!("{} in {}", counted(trace.events, "event"), counted(trace.packets, "packet"));
    if trace.was_whole() {
        return format!("{path} is whole: {what}\n");
    }
    let mut done = Vec::new();
    if trace.cut_bytes > 0 {
        done.push(format!("{} of half packets were cut", bytes(trace.cut_bytes)));
    }
    if trace.metadata {
        done.push("the metadata's end was mended".to_owned());
    }
    if trace.indexes > 0 {
        done.push(format!("{} made", counted(trace.indexes, "index file")));
    }
    if done.is_empty() && trace.damaged.is_empty() {
        done.push("it says now that it has ended".to_owned());
    }
    let mut text = format!("{path}: {what}\n");
    done.iter().for_each(|done| text += &format!("  {done}\n"));
    for damage in &trace.damaged {
        let (file, at, rest) = (damage.path.display(), damage.at, bytes(damage.bytes));
        text += &format!(
            "  damaged   {file} from byte {at} on, and {rest} behind it are left as they are: `kymo check` says more\n"
        );
    }
    text + &next(&trace.path)
}

fn next(path: &Path) -> String {
    format!("\nNext:  kymo {}\n", show::quoted(&path.display().to_string()))
}
