//! `kymo status` and `kymo sessions`

use std::io::{self, Write};

use kymo_recorder::client::{ClientProblem, nonsense};
use kymo_recorder::protocol::{
    EventStatus, Keep, ProgramStatus, RecorderReply, RecorderRequest, SessionStatus, Status, Unreachable,
};

use super::{RecordProblem, ask, show};
use crate::CommandOutcome;
use crate::arguments::{SessionsArguments, StatusArguments};
use crate::message::plain_output;
use crate::show::{bytes, counted, duration, grouped};
use crate::stop::StopReason;

/// The state of everything; `None`: there is no recorder.
pub(crate) fn status() -> Result<Option<Status>, ClientProblem> {
    match ask(&RecorderRequest::Status) {
        Ok(RecorderReply::Status(status)) => Ok(Some(*status)),
        Ok(_) => Err(nonsense()),
        Err(ClientProblem::Nobody) => Ok(None),
        Err(problem) => Err(problem),
    }
}

pub(crate) fn sessions(arguments: &SessionsArguments) -> Result<CommandOutcome, RecordProblem> {
    let sessions = status()?.map(|status| status.sessions).unwrap_or_default();
    let mut out = plain_output();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string(&sessions).map_err(io::Error::from)?)?;
    } else if sessions.is_empty() {
        writeln!(out, "no session is recorded now")?;
    } else {
        sessions.iter().try_for_each(|session| show_session(session, &mut out))?;
    }
    Ok(CommandOutcome::Complete)
}

pub(crate) fn run(arguments: &StatusArguments) -> Result<CommandOutcome, RecordProblem> {
    if arguments.maps {
        return show_maps(arguments);
    }
    let mut out = plain_output();
    let Some(mut status) = status()? else {
        if arguments.json {
            writeln!(out, "null")?;
        } else {
            writeln!(out, "no session is recorded now; `kymo record` begins one")?;
        }
        return Ok(CommandOutcome::Complete);
    };
    status.programs.retain(|program| is_meant(arguments, program.pid.unwrap_or(program.own_pid), &program.name));
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string(&status).map_err(io::Error::from)?)?;
        return Ok(CommandOutcome::Complete);
    }
    writeln!(out, "recorder  process {}, kymo {}, in {}", status.pid, status.kymo, status.folder.display())?;
    status.sessions.iter().try_for_each(|session| show_session(session, &mut out))?;
    for program in &status.programs {
        show_program(program, arguments.events, &mut out)?;
    }
    show_unreachable(&status.unreachable, &mut out)?;
    Ok(CommandOutcome::Complete)
}

/// Whether a program is one that was asked for.
fn is_meant(arguments: &StatusArguments, pid: u32, name: &str) -> bool {
    let pid = pid.to_string();
    let is_it = |wanted: &String| *wanted == pid || kymo_schema::glob::matches(wanted, name);
    arguments.process.is_empty() || arguments.process.iter().any(is_it)
}

/// Maps of users' programs, while sessions run.
fn show_maps(arguments: &StatusArguments) -> Result<CommandOutcome, RecordProblem> {
    let mut sessions = match ask(&RecorderRequest::Maps) {
        Ok(RecorderReply::Sessions { sessions }) => sessions,
        Ok(_) => return Err(nonsense().into()),
        Err(ClientProblem::Nobody) => Vec::new(),
        Err(problem) => return Err(problem.into()),
    };
    for SessionStatus { summary, .. } in &mut sessions {
        summary.objects.retain(|found| is_meant(arguments, found.pid, &found.process));
    }
    let mut out = plain_output();
    if arguments.json {
        let told = sessions.iter().map(|SessionStatus { summary, .. }| {
            let mut object =
                serde_json::json!({ "session": summary.session, "objects": [], "more_objects": summary.more_objects });
            super::user_objects::add_json(summary, &mut object);
            object
        });
        writeln!(out, "{}", serde_json::Value::from(told.collect::<Vec<_>>()))?;
        return Ok(CommandOutcome::Complete);
    }
    if sessions.is_empty() {
        writeln!(out, "no session runs eBPF programs in recorded programs; `kymo record --bpf OBJECT` begins one")?;
    }
    for SessionStatus { summary, .. } in &sessions {
        writeln!(out, "session {}", summary.session)?;
        if summary.objects.is_empty() && arguments.process.is_empty() {
            writeln!(out, "  no recorded program has met an event of its programs yet")?;
        } else if summary.objects.is_empty() {
            writeln!(out, "  no such program among those that have met an event of its programs")?;
        }
        write!(out, "{}{}", super::user_objects::stopped(summary), super::user_objects::maps(summary))?;
    }
    Ok(CommandOutcome::Complete)
}

fn show_session(session: &SessionStatus, out: &mut impl Write) -> io::Result<()> {
    let SessionStatus { summary, options, is_on, triggers } = session;
    let since = duration(i128::from(summary.milliseconds) * 1_000_000);
    let is_flight = options.keep == Keep::Newest;
    let kind = if is_flight { ", a flight recorder" } else { "" };
    let detached = if options.is_detached { ", detached" } else { "" };
    writeln!(out, "\nsession {}  for {since}{kind}{detached}", summary.session)?;
    if !is_flight {
        writeln!(out, "  events    {}, {}", grouped(summary.events), bytes(summary.bytes))?;
        writeln!(out, "  losses    {}", show::losses(summary).unwrap_or_else(|| "none".to_owned()))?;
    }
    writeln!(out, "  trace     {}", options.output.display())?;
    if !is_on {
        writeln!(out, "  state     not recording: {}", show::start_word(triggers))?;
    }
    triggers.iter().try_for_each(|trigger| show::trigger(trigger, out))?;
    for step in options.selection.steps() {
        let act = format!("{:?}", step.act).to_lowercase();
        writeln!(out, "  {act:<8}  {}", show::rule(&step.rule))?;
    }
    summary.problems.iter().try_for_each(|problem| writeln!(out, "  problem   {problem}"))
}

fn show_program(program: &ProgramStatus, all_events: bool, out: &mut impl Write) -> io::Result<()> {
    let ProgramStatus { pid, own_pid, name, path, .. } = program;
    let numbers = match pid {
        Some(pid) if pid == own_pid => format!("{pid}"),
        Some(pid) => format!("{pid} (there {own_pid})"),
        None => format!("(there {own_pid})"),
    };
    let dead = if program.is_dead { ", has ended" } else { "" };
    let contained = if program.is_contained { ", in a container" } else { "" };
    writeln!(out, "\nprogram {numbers}  {name}  {path}{contained}{dead}")?;
    let on = program.events.iter().filter(|event| event.is_on).count() as u64;
    writeln!(out, "  events    {} of {} on", grouped(on), grouped(program.events.len() as u64))?;
    let pool = program.pool;
    let used = format!("{} used of {}", bytes(pool.used_bytes), bytes(pool.ready_bytes));
    writeln!(
        out,
        "  memory    {used}, {} at most, {}",
        bytes(pool.limit_bytes),
        counted(program.lanes.into(), "lane")
    )?;
    if program.copies > 1 {
        writeln!(out, "  tracer    {} copies, each with memory of its own: this is all of it", program.copies)?;
    }
    writeln!(
        out,
        "  stamps    {}",
        if program.clock == "counter" { "the processor's counter" } else { "CLOCK_MONOTONIC" }
    )?;
    if program.lost > 0 {
        writeln!(out, "  lost      {} since it began", counted(program.lost, "event"))?;
    }
    if !program.is_attached {
        writeln!(out, "  idle      no session wants anything of it")?;
    }
    program.unusable.iter().try_for_each(|problem| writeln!(out, "  unusable  {problem}"))?;
    let shown = program.events.iter().filter(|event| all_events || event.runs.is_some());
    shown.into_iter().try_for_each(|event| show_event(event, out))
}

fn show_event(event: &EventStatus, out: &mut impl Write) -> io::Result<()> {
    let state = if event.is_on { "on " } else { "off" };
    let of: Vec<String> = event
        .sessions
        .iter()
        .map(
            |(session, filters)| {
                if filters.is_empty() { session.clone() } else { format!("{session} if {}", filters.join(" or ")) }
            },
        )
        .collect();
    let runs = match (&event.runs, &event.why) {
        (Some(runs), Some(why)) => format!("  [filter: {runs}, {why}]"),
        (Some(runs), None) => format!("  [filter: {runs}]"),
        _ => String::new(),
    };
    writeln!(out, "    {state}  {}  {}{runs}", event.name, of.join(", "))
}

pub(crate) fn show_unreachable(all: &[Unreachable], out: &mut impl Write) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nnot to be recorded")?;
    all.iter().try_for_each(|one| writeln!(out, "  {}: {}", one.path.display(), one.why))
}

/// Shows what runs: all sessions, or the one of this name.
pub(super) fn list(
    name: Option<&str>,
    json: bool,
    tell: fn(&SessionStatus) -> io::Result<()>,
) -> Result<CommandOutcome, RecordProblem> {
    let mut sessions = status()?.map(|status| status.sessions).unwrap_or_default();
    if let Some(name) = name {
        sessions.retain(|session| session.summary.session == *name);
        if sessions.is_empty() {
            return Err(StopReason::Usage(format!("there is no session `{name}`")).into());
        }
    }
    if json {
        writeln!(plain_output(), "{}", serde_json::to_string(&sessions).map_err(io::Error::from)?)?;
    } else if sessions.is_empty() {
        writeln!(plain_output(), "no session is recorded now")?;
    } else {
        sessions.iter().try_for_each(tell)?;
    }
    Ok(CommandOutcome::Complete)
}
