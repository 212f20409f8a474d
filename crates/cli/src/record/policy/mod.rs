//! `kymo record --policy`: a file says which programs and threads are recorded, which events, and how.
//!
//! ```text
//! FILE ──read, config──> PolicyFile ──order──> a session of the recorder for each policy
//!   │ edits                                       └─ dated: DIR/2026-11-27 22:3:9/init/ping/POLICY
//!   └─ `enabled`: a new dated folder                                                └─ tree: Genode's form
//! ```

mod capture;
mod config;
mod dated;
mod file;
mod order;
mod read;
#[cfg(test)]
mod tests;
mod tree;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::dated::{DatedFolder, DatedSummary};
use self::file::{PolicyFile, PolicyProblem, plain_name, told};
use super::child::ChildProcess;
use super::signals::{Signals, forward};
use super::{RecordProblem, session, show, warn};
use crate::CommandOutcome;
use crate::arguments::RecordArguments;
use crate::message::{plain_output, write_line};
use crate::show::{bytes, counted, duration};
use crate::stop::StopReason;

/// Between two checks whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks at the file and the sessions.
const LINE: Duration = Duration::from_millis(250);
/// Bytes of a file of policies.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Records by policies until it is over.
pub(super) fn run(path: &Path, arguments: &RecordArguments) -> Result<CommandOutcome, RecordProblem> {
    let mut watched = WatchedFile { path, text: content(path)?, next: None, missed: 0 };
    let file = policies(path, &watched.text).map_err(StopReason::Usage)?;
    tell_notes(path, &file);
    let root = arguments.session.output.clone().or_else(|| file.output.clone());
    let name = arguments.session.name.clone();
    let stem = name.unwrap_or_else(|| plain_name(&path.file_stem().unwrap_or_default().to_string_lossy()));
    let mut recording = PolicyRecording {
        root: root.unwrap_or_else(|| PathBuf::from("kymo-traces")),
        stem: if stem.is_empty() { "policy".to_owned() } else { stem },
        json: arguments.json,
        folder: None,
        is_whole: true,
    };
    let signals = Signals::catch()?;
    recording.turn(&file)?;
    if recording.folder.is_none() {
        write_line(&format!("note: {} says not to record: that begins when it says `enabled`", path.display()));
    }
    let command = &arguments.session.command;
    let child = match command.first() {
        None => None,
        Some(word) => match ChildProcess::start(command, &format!("policy-{}", std::process::id()), 0, None) {
            Ok(child) => Some(child),
            Err(error) => {
                recording.end()?;
                write_line(&session::not_started(word, &error));
                let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
                return Ok(CommandOutcome::Status(status));
            }
        },
    };
    signals.are_of_command(child.is_some());
    let limit = arguments.session.duration.map(|nanos| Instant::now() + Duration::from_nanos(nanos));
    let status = recording.until_over(&mut watched, child.as_ref(), &signals, limit);
    signals.are_of_command(false);
    recording.end()?;
    Ok(match (status?, recording.is_whole) {
        (Some(status), _) => CommandOutcome::Status(status),
        (None, true) => CommandOutcome::Complete,
        (None, false) => CommandOutcome::Incomplete,
    })
}

/// A recording by policies.
struct PolicyRecording {
    /// The folder of dated folders.
    root: PathBuf,
    stem: String,
    json: bool,
    /// `None`: the file says not to record.
    folder: Option<DatedFolder>,
    is_whole: bool,
}

/// Number of looks at an unreadable file before a warning; four looks are a second.
const MISSED_TOLD: u32 = 8;

/// The file, which may change.
struct WatchedFile<'p> {
    path: &'p Path,
    /// The text that was looked at last.
    text: String,
    /// Another text, seen once: an editor may be writing it.
    next: Option<String>,
    /// Looks at which it could not be read.
    missed: u32,
}

impl WatchedFile<'_> {
    /// Another text than the last one, that stays for a while.
    fn changed(&mut self) -> Option<String> {
        let content = content(self.path);
        if let Err(why) = &content {
            // An editor may have removed it for a moment.
            self.missed += 1;
            if self.missed == MISSED_TOLD {
                warn(&format!("{}\nnote: the policies stay, until there is a file again", why.text().trim_end()));
            }
        } else {
            self.missed = 0;
        }
        let text = content.ok().filter(|text| *text != self.text);
        if text.is_some() && text == self.next {
            self.text = self.next.take()?;
            return Some(self.text.clone());
        }
        self.next = text;
        None
    }
}

impl PolicyRecording {
    /// Records by these policies from now on.
    fn turn(&mut self, file: &PolicyFile) -> Result<(), RecordProblem> {
        match (&mut self.folder, file.is_enabled) {
            (None, true) => {
                let folder = DatedFolder::begin(&self.root, &self.stem, file)?;
                write_line(&format!("note: recording to {}", folder.path.display()));
                self.folder = Some(folder);
            }
            (Some(folder), true) => folder.take_over(file)?,
            (Some(_), false) => self.end()?,
            (None, false) => {}
        }
        Ok(())
    }

    /// Completes the dated folder, and reports it.
    fn end(&mut self) -> io::Result<()> {
        let Some(folder) = self.folder.take() else { return Ok(()) };
        let summary = folder.end();
        let lost =
            summary.sessions.iter().any(|(_, session)| !session.problems.is_empty() || session.lost.unwritten > 0);
        self.is_whole &= summary.problems.is_empty() && !lost;
        if self.json {
            let sessions: serde_json::Map<String, serde_json::Value> = summary
                .sessions
                .iter()
                .map(|(policy, session)| Ok((policy.clone(), serde_json::to_value(session)?)))
                .collect::<Result<_, serde_json::Error>>()?;
            let capture = |(path, packets): &(PathBuf, u64)| serde_json::json!({"path": path, "packets": packets});
            let captures: Vec<_> = summary.captures.iter().map(capture).collect();
            let packets = summary.packets.as_ref().map(show::packets_json);
            let object = serde_json::json!({
                "output": summary.path,
                "policies": sessions,
                "packets": packets,
                "captures": captures,
                "problems": summary.problems,
            });
            return writeln!(plain_output(), "{object}");
        }
        write_line(text_of(&summary).trim_end());
        Ok(())
    }

    /// Waits until the program has ended, a signal came, or the time is over; takes over changes of the file meanwhile.
    /// Returns the program's exit status.
    fn until_over(
        &mut self,
        file: &mut WatchedFile<'_>,
        child: Option<&ChildProcess>,
        signals: &Signals,
        limit: Option<Instant>,
    ) -> Result<Option<u8>, RecordProblem> {
        let shows = child.is_none() && io::stderr().is_terminal();
        let mut looked = Instant::now();
        let clear = || if shows { write!(io::stderr(), "\r\x1b[K") } else { Ok(()) };
        loop {
            std::thread::sleep(LOOK);
            if let Some(status) = child.and_then(ChildProcess::status) {
                return Ok(Some(status));
            }
            match (signals.take(), child) {
                (Some(_), None) => break,
                (Some(signal), Some(child)) => forward(signal, child),
                (None, _) => {}
            }
            if limit.is_some_and(|limit| Instant::now() >= limit) {
                child.into_iter().for_each(|child| child.signal(rustix::process::Signal::TERM));
                break;
            }
            if looked.elapsed() < LINE {
                continue;
            }
            looked = Instant::now();
            if let Some(text) = file.changed() {
                let _ = clear();
                match policies(file.path, &text) {
                    Ok(new) => {
                        tell_notes(file.path, &new);
                        self.turn(&new)?;
                        write_line(&format!("note: {} has changed, and is taken over", file.path.display()));
                    }
                    Err(why) => warn(&format!("{why}\nnote: the policies before this change stay")),
                }
            }
            let events = self.folder.as_mut().map(DatedFolder::look).transpose()?;
            if let (true, Some(events)) = (shows, events) {
                // A terminal that cannot be written to is no reason to stop.
                let _ = write!(io::stderr(), "\r\x1b[K{}", counted(events, "event"));
            }
        }
        let _ = clear();
        Ok(None)
    }
}

/// The text of the file.
fn content(path: &Path) -> Result<String, StopReason> {
    let at = |error: io::Error| StopReason::Usage(format!("{}: {error}", path.display()));
    if path.metadata().map_err(at)?.len() > FILE_BYTES_MAX {
        return Err(StopReason::Usage(format!("{}: a file of policies has at most 1MiB", path.display())));
    }
    std::fs::read_to_string(path).map_err(at)
}

/// Policies of a text; `Err`: all that is wrong, with places.
fn policies(path: &Path, text: &str) -> Result<PolicyFile, String> {
    let read = match text {
        text if config::is_config(text) => config::policies(text),
        text if config::is_node(text) => {
            let what = "this is Genode's node syntax, which kymo does not read: its XML (`<config>`) is read, or TOML";
            Err(vec![PolicyProblem { line: 1, column: 1, text: what.to_owned() }])
        }
        text => read::policies(text),
    };
    read.map_err(|problems| {
        let more = "\nhelp: docs/policies.md describes files of policies";
        told(path, &problems) + more
    })
}

fn tell_notes(path: &Path, file: &PolicyFile) {
    file.notes.iter().for_each(|note| write_line(&format!("note: {}:{note}", path.display())));
    if file.policies.is_empty() {
        warn(&format!("{} has no policies: nothing is recorded", path.display()));
    }
}

/// The summary of a dated folder.
fn text_of(summary: &DatedSummary) -> String {
    let DatedSummary { path, took, sessions, packets, captures, problems } = summary;
    let all: u64 = sessions.iter().map(|(_, session)| session.events).sum();
    let size: u64 = sessions.iter().map(|(_, session)| session.bytes).sum();
    let took = duration(took.as_nanos() as i128);
    let mut text = format!("recorded {} in {took}, {}\n", counted(all, "event"), bytes(size));
    if all > 0 {
        text += &format!("  trace     {}\n", path.display());
    }
    for (policy, session) in sessions {
        let (events, programs) = (counted(session.events, "event"), counted(session.programs, "program"));
        text += &format!("  policy    {policy}: {events} of {programs}\n");
        text += &(show::rules(session) + &show::triggers(session));
    }
    text += &packets.as_ref().map_or_else(String::new, show::packets);
    let written: u64 = captures.iter().map(|(_, packets)| packets).sum();
    if !captures.is_empty() {
        text += &format!("  captures  {} in {}\n", counted(written, "packet"), counted(captures.len() as u64, "file"));
    }
    let dropped = packets.as_ref().and_then(show::dropped_packets);
    text += &dropped.iter().map(|dropped| format!("  losses    {dropped}\n")).collect::<String>();
    for (policy, session) in sessions {
        if let Some(losses) = show::losses(session) {
            text += &format!("  losses    of {policy}: {losses}\n");
        }
        session.problems.iter().for_each(|problem| text += &format!("  problem   of {policy}: {problem}\n"));
    }
    if dropped.is_none() && sessions.iter().all(|(_, session)| show::losses(session).is_none()) {
        text += "  losses    none\n";
    }
    problems.iter().for_each(|problem| text += &format!("  problem   {problem}\n"));
    match all {
        0 => text + "\nnote: no program that a policy is about has recorded an event that it wants\n",
        _ => {
            let path = show::quoted(&path.display().to_string());
            text + &format!("\nNext:  kymo {path}\n       kymo view {path}\n")
        }
    }
}
