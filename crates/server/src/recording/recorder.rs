//! The state of the session that writes the shown traces, from this user's recorder, and requests
//! to change it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_recorder::client::{Client, ClientProblem, has_sessions, kept_sessions, nonsense};
use kymo_recorder::protocol::{
    ClassesStatus, Keep, Matched, RecorderReply, RecorderRequest, RuleChange, SessionStatus, SessionSummary,
    TriggerTurn,
};
use kymo_recorder::rule::RuleStatus;
use kymo_recorder::select::{SelectionRule, SelectionStep, StepKind};
use kymo_recorder::trigger::{TriggerEffect, TriggerOptions, TriggerScope, TriggerStatus};
use serde_json::{Value, json};

use super::{RecordingChange, TriggerWord};

/// How long to wait for each answer about the state.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same for changes: a snapshot or the end of a session writes to a disk.
const PATIENCE_TO_DO: Duration = Duration::from_secs(20);
/// Characters of a command that are shown.
const COMMAND_MAX: usize = 4096;

const NOBODY: &str = "no recorder of this user writes these traces: `kymo sessions` lists the running sessions";
const KILLED: &str = "the recorder was killed; programs go on, and the next command, as `kymo status`, starts one that goes on with the session";

/// A session, as it was at a look.
#[derive(Clone)]
pub(super) struct Recorded {
    name: String,
    /// It has ended: nothing of it changes any more.
    pub(super) is_over: bool,
    /// The state that listeners receive.
    pub(super) told: Value,
}

impl Recorded {
    fn of(status: &SessionStatus, classes: &ClassesStatus) -> Self {
        let SessionStatus { summary, options, is_on, triggers } = status;
        let command = options.command.as_ref().map(|command| command.chars().take(COMMAND_MAX).collect::<String>());
        let mut told = json!({
            "session": summary.session,
            "output": options.output.to_string_lossy(),
            "mode": if options.keep == Keep::Newest { "overwrite" } else { "write" },
            "command": command,
            "on": is_on,
            "triggers": triggers.iter().map(trigger).collect::<Vec<_>>(),
            "rules": summary.rules.iter().map(rule).collect::<Vec<_>>(),
            "classes": classes.classes.iter().map(class).collect::<Vec<_>>(),
            "more_classes": classes.more,
        });
        count(&mut told, summary);
        Self { name: summary.session.clone(), is_over: false, told }
    }

    /// The same when it has ended; its last figures are known as long as its recorder is there.
    fn ended(&self, summary: Option<&SessionSummary>) -> Self {
        let mut ended = Self { is_over: true, ..self.clone() };
        if let Some(summary) = summary {
            count(&mut ended.told, summary);
        }
        ended.told["state"] = json!("ended");
        ended.told["classes"] = json!([]);
        ended.told["more_classes"] = json!(0);
        ended
    }

    /// The same while no recorder records it.
    fn alone(&self) -> Self {
        let mut alone = self.clone();
        alone.told["problems"] = json!([KILLED]);
        alone
    }
}

/// How far a session is.
fn count(told: &mut Value, summary: &SessionSummary) {
    let lost = summary.lost;
    let counts = json!({
        "state": if summary.has_ended { "ended" } else { "recording" },
        "milliseconds": summary.milliseconds,
        "events": summary.events,
        "bytes": summary.bytes,
        "programs": summary.running,
        "lost": {"full": lost.full, "no_lane": lost.no_lane, "unwritten": lost.unwritten, "undefined": lost.undefined},
        "late_programs": summary.late_programs,
        "late_folders": summary.late_folders.iter().map(|folder| folder.to_string_lossy()).collect::<Vec<_>>(),
        "has_gap": summary.has_gap,
        "filtered": summary.filtered,
        "snapshots": summary.snapshots,
        "problems": summary.problems,
    });
    let members = counts.as_object().into_iter().flatten();
    members.for_each(|(name, value)| told[name.as_str()] = value.clone());
}

fn trigger(status: &TriggerStatus) -> Value {
    let options = &status.options;
    let last = status.last.as_ref().map(|last| {
        // Beyond 53 bits, readers of JSON may round.
        json!({"ns": last.ns.to_string(), "event": last.event, "program": last.program, "pid": last.pid, "tid": last.tid})
    });
    json!({
        "name": options.name,
        "effect": options.effect,
        "events": options.rule.events,
        "filter": options.rule.filter,
        "repeats": options.repeats,
        "armed": status.is_armed,
        "firings": status.firings,
        "suppressed": status.suppressed,
        "last": last,
        "watched": status.watched,
        "why": (!status.why.is_empty()).then(|| status.why.join("; ")),
    })
}

fn rule(status: &RuleStatus) -> Value {
    let kinds = status.kinds.iter().map(
        |kind| json!({"name": kind.name, "running_ns": kind.running_ns, "set_ns": kind.set_ns, "events": kind.events}),
    );
    json!({
        "name": status.options.name,
        "words": status.words,
        "limit": status.options.limit(),
        "is_set": status.options.set.is_some(),
        "running_ns": status.running_ns,
        "kinds": kinds.collect::<Vec<_>>(),
        "kept": status.kept,
        "let_go": status.let_go,
        "unknown": status.unknown,
        "forgotten": status.forgotten,
        "without": status.without,
        "problems": status.problems,
        "why": (!status.why.is_empty()).then(|| status.why.join("; ")),
    })
}

fn class(class: &kymo_recorder::protocol::ClassStatus) -> Value {
    json!({
        "name": class.name,
        "level": class.level,
        "programs": class.programs,
        "on": class.is_on,
        "filters": class.filters,
        "runs": class.runs,
        "why": (!class.why.is_empty()).then(|| class.why.join("; ")),
    })
}

/// The state of the session that writes these traces, with its known state before this; or why it
/// is unknown now, in a sentence.
pub(super) fn look(traces: &[PathBuf], before: Option<&Recorded>) -> Result<Option<Recorded>, String> {
    if traces.is_empty() {
        return Ok(None);
    }
    asked(traces, before).or_else(|problem| match problem {
        ClientProblem::Nobody | ClientProblem::Broken(_) => Ok(before.map(left)),
        problem => Err(problem.to_string()),
    })
}

/// A session whose recorder is gone: it may have ended before that, or have been left.
fn left(before: &Recorded) -> Recorded {
    match kept_sessions().contains(&before.name) && !before.is_over {
        true => before.alone(),
        false if before.is_over => before.clone(),
        false => before.ended(None),
    }
}

fn asked(traces: &[PathBuf], before: Option<&Recorded>) -> Result<Option<Recorded>, ClientProblem> {
    let mut client = Client::connect_for(PATIENCE)?;
    if let Some(status) = session(&mut client, traces)? {
        let question = RecorderRequest::Classes { session: status.summary.session.clone() };
        return match client.ask(&question) {
            Ok(RecorderReply::Classes(classes)) => Ok(Some(Recorded::of(&status, &classes))),
            // It has just ended.
            Err(ClientProblem::Refused(_)) => Ok(Some(Recorded::of(&status, &ClassesStatus::default()).ended(None))),
            Ok(_) => Err(nonsense()),
            Err(problem) => Err(problem),
        };
    }
    let Some(before) = before else { return Ok(None) };
    if before.is_over {
        return Ok(Some(before.clone()));
    }
    let last = match client.ask(&RecorderRequest::Progress { session: before.name.clone() }) {
        Ok(RecorderReply::Progress { summary }) if before.told["output"] == json!(summary.output.to_string_lossy()) => {
            Some(summary)
        }
        _ => None,
    };
    Ok(Some(before.ended(last.as_ref())))
}

fn session(client: &mut Client, traces: &[PathBuf]) -> Result<Option<SessionStatus>, ClientProblem> {
    match client.ask(&RecorderRequest::Sessions)? {
        RecorderReply::Sessions { sessions } => Ok(whose(sessions, traces)),
        _ => Err(nonsense()),
    }
}

/// The session that writes the first of these traces that any does: to its folder, to one in it, or to one around it.
fn whose(sessions: Vec<SessionStatus>, traces: &[PathBuf]) -> Option<SessionStatus> {
    let outputs: Vec<PathBuf> = sessions.iter().map(|session| real(&session.options.output)).collect();
    let place = traces.iter().map(|trace| real(trace)).find_map(|trace| {
        let is = |is: fn(&Path, &Path) -> bool| outputs.iter().position(|output| is(output, &trace));
        is(|output, trace| output == trace)
            .or_else(|| is(|output, trace| trace.starts_with(output)))
            .or_else(|| is(|output, trace| output.starts_with(trace)))
    });
    place.and_then(|place| sessions.into_iter().nth(place))
}

/// A path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = path.ancestors().find_map(|known| Some((known.canonicalize().ok()?, known)));
    known.map_or_else(|| path.clone(), |(real, known)| real.join(path.strip_prefix(known).unwrap_or(Path::new(""))))
}

/// Makes the change; returns the result and its session, or why it was not made, in sentences.
pub(super) fn change(traces: &[PathBuf], wanted: &RecordingChange) -> Result<(Value, Recorded), String> {
    if traces.is_empty() {
        return Err(NOBODY.to_owned());
    }
    done(traces, wanted).map_err(|problem| match problem {
        // One that was killed just now may still have its socket.
        ClientProblem::Nobody | ClientProblem::Broken(_) if has_sessions() => KILLED.to_owned(),
        ClientProblem::Nobody => NOBODY.to_owned(),
        problem => problem.to_string(),
    })
}

fn done(traces: &[PathBuf], wanted: &RecordingChange) -> Result<(Value, Recorded), ClientProblem> {
    let mut client = Client::connect_for(PATIENCE)?;
    let Some(status) = session(&mut client, traces)? else { return Err(ClientProblem::Nobody) };
    let mut client = client.waiting_for(PATIENCE_TO_DO);
    let recorded = Recorded::of(&status, &ClassesStatus::default());
    changed(&mut client, &status, wanted).map(|changed| (changed, recorded))
}

fn changed(client: &mut Client, status: &SessionStatus, wanted: &RecordingChange) -> Result<Value, ClientProblem> {
    let name = status.summary.session.clone();
    let session = Some(name.clone());
    let asked = match wanted {
        RecordingChange::Snapshot {} => client.ask(&RecorderRequest::Snapshot { session, output: None }),
        RecordingChange::Stop {} => client.ask(&RecorderRequest::Stop { session, all: false }),
        RecordingChange::Enable { events, filter } => {
            return take(client, name, &StepKind::Enable, events, filter.clone());
        }
        RecordingChange::Disable { events } => return take(client, name, &StepKind::Disable, events, None),
        RecordingChange::Filter { events, filter } => {
            return take(client, name, &StepKind::Filter, events, filter.clone());
        }
        RecordingChange::Trigger { events, filter, effect, repeat } => {
            let trigger = Box::new(new_trigger(status, events, filter.clone(), *effect, *repeat));
            let RecorderReply::Triggered { matched, .. } =
                client.ask(&RecorderRequest::Trigger { session, trigger })?
            else {
                return Err(nonsense());
            };
            return Ok(json!({"matched": told(&matched, &matched.trigger_sentence())}));
        }
        RecordingChange::Arm { trigger } => turn(client, session, TriggerTurn::Arm(trigger.clone())),
        RecordingChange::Remove { trigger } => turn(client, session, TriggerTurn::Remove(trigger.clone())),
        RecordingChange::Limit { rule, kind, limit } => {
            let change = RuleChange::Limit { rule: Some(rule.clone()), kind: kind.clone(), limit: limit.clone() };
            client.ask(&RecorderRequest::Rule { session, change })
        }
        RecordingChange::Turn { on } => turn(client, session, if *on { TriggerTurn::Start } else { TriggerTurn::Stop }),
    };
    match asked? {
        RecorderReply::Snapshot { output, summary } => {
            let snapshot =
                json!({"output": output.to_string_lossy(), "events": summary.events, "problems": summary.problems});
            Ok(json!({"snapshot": snapshot}))
        }
        RecorderReply::Stopped { .. } | RecorderReply::Triggered { .. } | RecorderReply::Ruled { .. } => Ok(json!({})),
        _ => Err(nonsense()),
    }
}

fn turn(client: &mut Client, session: Option<String>, turn: TriggerTurn) -> Result<RecorderReply, ClientProblem> {
    client.ask(&RecorderRequest::Turn { session, turn })
}

/// A trigger with a name that the session does not have.
fn new_trigger(
    status: &SessionStatus,
    events: &[String],
    filter: Option<String>,
    effect: TriggerWord,
    repeats: bool,
) -> TriggerOptions {
    let (word, effect) = match effect {
        TriggerWord::Start => ("start", TriggerEffect::Start),
        TriggerWord::Stop => ("stop", TriggerEffect::Stop),
        TriggerWord::Snapshot => ("snapshot", TriggerEffect::Snapshot),
    };
    let is_free = |name: &String| status.triggers.iter().all(|known| known.options.name != *name);
    let names = std::iter::once(word.to_owned()).chain((2..).map(|number| format!("{word}-{number}")));
    let name = names.into_iter().find(is_free).expect("numbers do not end");
    let rule = SelectionRule { events: events.to_vec(), filter, is_within: true, ..SelectionRule::default() };
    TriggerOptions {
        name,
        rule,
        effect,
        scope: TriggerScope::Session,
        repeats,
        interval_ns: None,
        for_ns: None,
        after: None,
        asks: None,
        last: None,
        gate: None,
    }
}

/// Changes the recorded events of the programs in the session.
fn take(
    client: &mut Client,
    session: String,
    act: &StepKind,
    events: &[String],
    filter: Option<String>,
) -> Result<Value, ClientProblem> {
    let rule = SelectionRule { events: events.to_vec(), filter, is_within: true, ..SelectionRule::default() };
    let step = Box::new(SelectionStep { act: act.clone(), rule });
    let question = RecorderRequest::Take { session: Some(session), step };
    let RecorderReply::Taken { matched } = client.ask(&question)? else { return Err(nonsense()) };
    Ok(json!({"matched": told(&matched, &matched.sentence(act))}))
}

fn told(matched: &Matched, sentence: &str) -> Value {
    let unmatched = matched.unmatched.iter().map(|(pattern, near)| json!({"pattern": pattern, "near": near}));
    json!({
        "events": matched.events,
        "programs": matched.programs,
        "all_programs": matched.all_programs,
        "unmatched": unmatched.collect::<Vec<_>>(),
        "notes": matched.notes.iter().map(|note| note.trim_end()).collect::<Vec<_>>(),
        "sentence": sentence,
        "warnings": matched.warnings(),
    })
}

#[cfg(test)]
mod tests {
    use kymo_recorder::protocol::SessionOptions;

    use super::*;

    fn session(name: &str, output: PathBuf) -> SessionStatus {
        let summary = SessionSummary { session: name.to_owned(), output: output.clone(), ..SessionSummary::default() };
        let options = SessionOptions { output, ..SessionOptions::default() };
        SessionStatus { summary, options, ..SessionStatus::default() }
    }

    /// Paths are compared by where they lead; a path that does not exist yet is where it will be.
    #[test]
    fn a_session_writes_what_is_shown_in_it_and_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("all/day/monotonic")).unwrap();
        std::os::unix::fs::symlink(path("all"), path("link")).unwrap();
        let found = |traces: &[&str]| {
            let sessions = vec![
                session("flight", path("all/flight")),
                session("day", path("all/day")),
                session("other", path("elsewhere")),
            ];
            let traces: Vec<PathBuf> = traces.iter().map(|name| path(name)).collect();
            whose(sessions, &traces).map(|status| status.summary.session)
        };
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(found(&["all/day"]), is("day"));
        assert_eq!(found(&["link/day/"]), is("day"));
        assert_eq!(found(&["all/day/monotonic"]), is("day"));
        assert_eq!(found(&["link/flight/snapshot-1"]), is("flight"));
        assert_eq!(found(&["link"]), is("flight"), "it is the first that writes there");
        assert_eq!(found(&["all/days", "all/da"]), None);
        assert_eq!(found(&["nothing", "elsewhere", "all/day"]), is("other"));
    }

    #[test]
    fn what_has_ended_stays_known() {
        let status = SessionStatus {
            summary: SessionSummary { events: 5, ..session("a", "/a".into()).summary },
            ..session("a", "/a".into())
        };
        let class = kymo_recorder::protocol::ClassStatus { name: "a:b".to_owned(), ..Default::default() };
        let running = Recorded::of(&status, &ClassesStatus { classes: vec![class], more: 2 });
        assert_eq!((&running.told["state"], &running.told["events"]), (&json!("recording"), &json!(5)));
        assert_eq!((&running.told["classes"][0]["on"], &running.told["more_classes"]), (&json!(false), &json!(2)));
        let last = SessionSummary { events: 7, has_ended: true, ..status.summary };
        let ended = running.ended(Some(&last));
        assert!(ended.is_over && !running.is_over);
        assert_eq!((&ended.told["state"], &ended.told["events"]), (&json!("ended"), &json!(7)));
        assert_eq!(running.ended(None).told["state"], json!("ended"));
        assert_eq!(ended.told["classes"], json!([]));
    }
}
