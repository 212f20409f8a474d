//! A dated folder: the sessions of the recorder that write to it, one for each policy.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo_recorder::client::{Client, ClientProblem, nonsense};
use kymo_recorder::packets::{PacketCounts, PacketOptions, PacketProblem, PacketRecording, PacketSource};
use kymo_recorder::protocol::{
    EditedSession, Keep, RecorderReply, RecorderRequest, RuleChange, SessionEdit, SessionOptions, SessionSummary,
    TriggerTurn,
};
use kymo_recorder::rule::RuleOptions;
use kymo_recorder::select::SessionSelection;
use kymo_recorder::trigger::TriggerOptions;

use super::super::{RecordProblem, ask_to_start, this_program, warn};
use super::file::{Policy, PolicyFile, PolicyFormat, PolicyMeans};
use super::{capture, tree};
use crate::message::write_line;
use crate::stop::StopReason;

/// Between two tries to find a date that no folder has.
const SECOND: Duration = Duration::from_millis(50);
/// Bytes of a session's name.
const SESSION_BYTES_MAX: usize = 64;
/// How long a recorder takes at most to end.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// A folder of one recording.
pub(super) struct DatedFolder {
    pub(super) path: PathBuf,
    /// Sessions are called so, and like their policies.
    stem: String,
    /// `None`: no session has begun.
    client: Option<Client>,
    sessions: Vec<PolicySession>,
    /// Policies, and the summaries of their sessions that are over.
    ended: Vec<(String, SessionSummary)>,
    begin: Instant,
    /// Why a part could not be recorded.
    problems: Vec<String>,
    /// Policies, and their traces, of which other files are made.
    converted: Vec<(String, PolicyMeans, PathBuf)>,
    /// Packets of network interfaces.
    packets: Option<(PacketOptions, PacketRecording)>,
    /// Those that are over.
    counts: Option<PacketCounts>,
}

/// The session of a policy.
struct PolicySession {
    policy: Policy,
    selection: SessionSelection,
    triggers: Vec<TriggerOptions>,
    session: String,
}

/// Summary of a dated folder.
pub(super) struct DatedSummary {
    pub(super) path: PathBuf,
    pub(super) took: Duration,
    pub(super) sessions: Vec<(String, SessionSummary)>,
    pub(super) packets: Option<PacketCounts>,
    /// Captures, and how many packets each has.
    pub(super) captures: Vec<(PathBuf, u64)>,
    pub(super) problems: Vec<String>,
}

impl DatedFolder {
    /// Begins to record into a new folder.
    pub(super) fn begin(root: &Path, stem: &str, file: &PolicyFile) -> Result<Self, RecordProblem> {
        let path = super::super::folder(&new_folder(root)?)?;
        let mut folder = Self {
            path,
            stem: stem.to_owned(),
            client: None,
            sessions: Vec::new(),
            ended: Vec::new(),
            begin: Instant::now(),
            problems: Vec::new(),
            converted: Vec::new(),
            packets: None,
            counts: None,
        };
        // Without its packets, it does not begin at all.
        let refused = |problem: PacketProblem| RecordProblem::Stop(StopReason::Usage(format!("[packets]: {problem}")));
        let source = file.packets.as_ref().map(PacketSource::open).transpose();
        let begun = source.map_err(refused).and_then(|source| {
            file.recorded().try_for_each(|policy| folder.start(file, &policy))?;
            folder.packets = file.packets.clone().zip(source.map(begin_packets).transpose().map_err(refused)?);
            Ok(())
        });
        if let Err(problem) = begun {
            let _ = folder.end();
            return Err(problem);
        }
        Ok(folder)
    }

    /// Takes over other packets.
    fn turn_packets(&mut self, new: Option<&PacketOptions>) {
        if self.packets.as_ref().map(|(options, _)| options) == new {
            return;
        }
        let source = match new.map(PacketSource::open).transpose() {
            Ok(source) => source,
            Err(problem) => return self.fail("packets", &problem.to_string()),
        };
        self.end_packets();
        match source.map(begin_packets).transpose() {
            Ok(recording) => self.packets = new.cloned().zip(recording),
            Err(problem) => self.fail("packets", &problem.to_string()),
        }
    }

    /// Ends the recording of packets.
    fn end_packets(&mut self) {
        let Some((_, recording)) = self.packets.take() else { return };
        let PacketCounts { packets, cut, dropped, interfaces, problems } = recording.end();
        let counts = self.counts.get_or_insert_default();
        counts.packets += packets;
        counts.cut += cut;
        counts.dropped += dropped;
        interfaces.into_iter().for_each(|(name, more)| *counts.interfaces.entry(name).or_default() += more);
        self.problems.extend(problems.into_iter().map(|problem| format!("packets: {problem}")));
    }

    /// Begins the session of a policy.
    fn start(&mut self, file: &PolicyFile, policy: &Policy) -> Result<(), RecordProblem> {
        let question = RecorderRequest::Start { options: self.options(file, policy) };
        let answer = match self.client {
            Some(_) => self.ask(&question),
            None => ask_to_start(&question).map(|(client, answer)| {
                self.client = Some(client);
                answer
            }),
        };
        let answer = answer.map_err(|problem| match problem {
            ClientProblem::Refused(why) => ClientProblem::Refused(format!("policy `{}`: {why}", policy.name)),
            problem => problem,
        })?;
        let RecorderReply::Started { session, notes, .. } = answer else { return Err(nonsense().into()) };
        self.has_begun(file, policy, session, &notes);
        Ok(())
    }

    /// Options of the session of a policy.
    fn options(&self, file: &PolicyFile, policy: &Policy) -> Box<SessionOptions> {
        let stem_bytes = SESSION_BYTES_MAX.saturating_sub(policy.name.len() + 1).min(20);
        let name = format!("{:.stem_bytes$}-{}", self.stem, policy.name);
        Box::new(file.options(policy, &self.path, name))
    }

    /// The session of a policy has begun.
    fn has_begun(&mut self, file: &PolicyFile, policy: &Policy, session: String, notes: &[String]) {
        notes.iter().for_each(|note| write_line(&format!("note: policy `{}`: {}", policy.name, note.trim_end())));
        let output = policy.output(&self.path);
        let is_known = |(name, how, known): &(String, PolicyMeans, PathBuf)| {
            (name, how.format, how.writers, known) == (&policy.name, policy.how.format, policy.how.writers, &output)
        };
        if (policy.how.is_converted() || policy.how.writers.pcapng) && !self.converted.iter().any(is_known) {
            self.converted.push((policy.name.clone(), policy.how.clone(), output));
        }
        let (selection, triggers) = (file.selection(policy), file.triggers(policy));
        self.sessions.push(PolicySession { policy: policy.clone(), selection, triggers, session });
    }

    /// Asks the recorder. After one was killed, another one follows it and goes on.
    fn ask(&mut self, question: &RecorderRequest) -> Result<RecorderReply, ClientProblem> {
        let client = self.client.as_mut().ok_or(ClientProblem::Nobody)?;
        let answer = client.ask(question);
        if !matches!(answer, Err(ClientProblem::Broken(_))) {
            return answer;
        }
        let begin = Instant::now();
        'next: loop {
            let mut client = Client::connect_or_start(&this_program())?.telling(warn);
            for PolicySession { session, .. } in &self.sessions {
                match client.ask(&RecorderRequest::Own { session: session.clone() }) {
                    Err(ClientProblem::Refused(_)) => {
                        let what = format!("the recorder was ended, and session `{session}` with it");
                        return Err(ClientProblem::Refused(what));
                    }
                    Err(ClientProblem::Broken(_)) if begin.elapsed() < ENDING_MAX => {
                        std::thread::sleep(SECOND);
                        continue 'next;
                    }
                    answer => _ = answer?,
                }
            }
            warn(&format!("the recorder was gone; process {} goes on", client.pid));
            self.client = Some(client);
            break;
        }
        self.client.as_mut().ok_or(ClientProblem::Nobody)?.ask(question)
    }

    /// How much is recorded, of sessions that go on; those that other commands have ended are over.
    pub(super) fn look(&mut self) -> Result<u64, ClientProblem> {
        let mut events = self.ended.iter().map(|(_, summary)| summary.events).sum();
        let mut at = 0;
        while at < self.sessions.len() {
            let question = RecorderRequest::Progress { session: self.sessions[at].session.clone() };
            let RecorderReply::Progress { summary } = self.ask(&question)? else { return Err(nonsense()) };
            events += summary.events;
            if summary.has_ended {
                let ended = self.sessions.remove(at);
                self.ended.push((ended.policy.name, summary));
            } else {
                at += 1;
            }
        }
        Ok(events)
    }

    /// Takes over other policies, while it goes on. A policy that cannot be taken over is told.
    pub(super) fn take_over(&mut self, file: &PolicyFile) -> Result<(), ClientProblem> {
        let is_kept = |known: &PolicySession| {
            let same = file.recorded().find(|policy| policy.name == known.policy.name);
            same.is_some_and(|policy| {
                // The memory of a program that is not its own any more has events that are to be written.
                let keeps = policy.how.keep == Keep::Oldest || file.selection(&policy) == known.selection;
                policy.how == known.policy.how && keeps
            })
        };
        // All at one moment: an event that one policy leaves to another one is in one of them.
        let mut edits: Vec<(Option<Policy>, SessionEdit)> = Vec::new();
        for PolicySession { policy, session, .. } in self.sessions.iter().filter(|known| !is_kept(known)) {
            if file.recorded().all(|other| other.name != policy.name) {
                edits.push((None, SessionEdit::End { session: session.clone() }));
            }
        }
        let mut kept = Vec::new();
        for policy in file.recorded() {
            let known = self.sessions.iter().find(|known| known.policy.name == policy.name);
            match known.filter(|known| is_kept(known)) {
                Some(known) => {
                    let selection = file.selection(&policy);
                    if selection != known.selection {
                        let session = known.session.clone();
                        edits.push((Some(policy.clone()), SessionEdit::Select { session, selection }));
                    }
                    kept.push(policy);
                }
                None => {
                    let instead_of = known.map(|known| known.session.clone());
                    let options = self.options(file, &policy);
                    edits.push((Some(policy), SessionEdit::Begin { instead_of, options }));
                }
            }
        }
        self.edit(file, edits)?;
        for policy in kept {
            let Some(at) = self.sessions.iter().position(|known| known.policy.name == policy.name) else { continue };
            match self.change(at, file, &policy) {
                Err(problem @ ClientProblem::Broken(_)) => return Err(problem),
                Err(problem) => self.fail(&policy.name, &problem.to_string()),
                Ok(()) => {}
            }
        }
        self.turn_packets(file.packets.as_ref());
        Ok(())
    }

    /// Makes these changes of sessions, each for a policy.
    fn edit(&mut self, file: &PolicyFile, edits: Vec<(Option<Policy>, SessionEdit)>) -> Result<(), ClientProblem> {
        if edits.is_empty() {
            return Ok(());
        }
        let (policies, edits): (Vec<_>, Vec<_>) = edits.into_iter().unzip();
        let RecorderReply::Edited { outcomes } = self.ask(&RecorderRequest::Edit { edits })? else {
            return Err(nonsense());
        };
        for (policy, EditedSession { refused, begun, notes, ended }) in policies.into_iter().zip(outcomes) {
            if let Some(summary) = ended
                && let Some(at) = self.sessions.iter().position(|known| known.session == summary.session)
            {
                self.ended.push((self.sessions.remove(at).policy.name, summary));
            }
            let Some(policy) = policy else { continue };
            match (refused, begun) {
                (Some(why), _) => self.fail(&policy.name, &why),
                (None, Some(session)) => self.has_begun(file, &policy, session, &notes),
                (None, None) => {
                    let selection = file.selection(&policy);
                    let its = self.sessions.iter_mut().filter(|known| known.policy.name == policy.name);
                    its.for_each(|known| known.selection = selection.clone());
                }
            }
        }
        Ok(())
    }

    /// A policy cannot be taken over.
    fn fail(&mut self, policy: &str, why: &str) {
        let what = format!("policy `{policy}` was not taken over: {}", why.trim_end());
        warn(&what);
        self.problems.push(what);
    }

    /// Changes triggers and rules of a policy's session.
    fn change(&mut self, at: usize, file: &PolicyFile, policy: &Policy) -> Result<(), ClientProblem> {
        let (triggers, session) = (file.triggers(policy), self.sessions[at].session.clone());
        let old = self.sessions[at].triggers.clone();
        for RuleTurn { name, new } in turns(&old, &triggers, |trigger| &trigger.name) {
            let session = Some(session.clone());
            self.ask(&match new {
                Some(trigger) => RecorderRequest::Trigger { session, trigger: Box::new(trigger) },
                None => RecorderRequest::Turn { session, turn: TriggerTurn::Remove(name) },
            })?;
        }
        self.sessions[at].triggers = triggers;
        let old = self.sessions[at].policy.rules.clone();
        for RuleTurn { name, new } in turns::<RuleOptions>(&old, &policy.rules, |rule| &rule.name) {
            let change = new.map_or(RuleChange::Remove(name), |rule| RuleChange::Set(Box::new(rule)));
            self.ask(&RecorderRequest::Rule { session: Some(session.clone()), change })?;
        }
        self.sessions[at].policy = policy.clone();
        Ok(())
    }

    /// Ends the session of a policy.
    fn stop(&mut self, policy: &str) -> Result<(), ClientProblem> {
        let Some(at) = self.sessions.iter().position(|known| known.policy.name == policy) else { return Ok(()) };
        let question = RecorderRequest::Stop { session: Some(self.sessions[at].session.clone()), all: false };
        let answer = self.ask(&question);
        let session = self.sessions.remove(at);
        let RecorderReply::Stopped { mut summaries } = answer? else { return Err(nonsense()) };
        self.ended.extend(summaries.pop().map(|summary| (session.policy.name, summary)));
        Ok(())
    }

    /// Ends all sessions, and completes the folder.
    pub(super) fn end(mut self) -> DatedSummary {
        self.end_packets();
        while let Some(name) = self.sessions.first().map(|session| session.policy.name.clone()) {
            if let Err(problem) = self.stop(&name) {
                self.problems.push(format!("policy `{name}`: {problem}"));
            }
        }
        let took = self.begin.elapsed();
        let mut captures = Vec::new();
        for (policy, how, recorded) in std::mem::take(&mut self.converted) {
            if how.is_converted() {
                prune(&recorded);
            }
            if !recorded.exists() {
                continue;
            }
            let mut is_whole = true;
            let mut fail = |what: &str, error: &std::io::Error| {
                is_whole = false;
                let there = recorded.display();
                self.problems.push(format!("policy `{policy}`: no {what} written, {error}; the events are in {there}"));
            };
            if how.writers.ctf
                && how.format == PolicyFormat::Genode
                && let Err(error) = tree::write(&recorded, &policy, &self.path)
            {
                fail("tree in Genode's form was", &error);
            }
            if how.writers.pcapng {
                let (written, problem) = capture::write_all(&recorded, &policy, &how, &self.path);
                captures.extend(written);
                problem.iter().for_each(|problem| fail("capture is", problem));
            }
            if how.is_converted() && is_whole {
                // The events are in other files, or were no packets.
                let _ = std::fs::remove_dir_all(&recorded);
            }
        }
        prune(&self.path);
        // Of sessions of one policy, that followed each other.
        let mut sessions: Vec<(String, SessionSummary)> = Vec::new();
        for (policy, summary) in self.ended {
            match sessions.iter_mut().find(|(known, _)| *known == policy) {
                Some((_, known)) => {
                    known.events += summary.events;
                    known.own_events += summary.own_events;
                    known.bytes += summary.bytes;
                    known.programs = known.programs.max(summary.programs);
                    known.milliseconds += summary.milliseconds;
                    known.lost.full += summary.lost.full;
                    known.lost.no_lane += summary.lost.no_lane;
                    known.lost.unwritten += summary.lost.unwritten;
                    known.lost.undefined += summary.lost.undefined;
                    known.problems.extend(summary.problems);
                }
                None => sessions.push((policy, summary)),
            }
        }
        DatedSummary { path: self.path, took, sessions, packets: self.counts, captures, problems: self.problems }
    }
}

/// Begins to record packets, as a program of which a policy knows the PID.
fn begin_packets(source: PacketSource) -> Result<PacketRecording, PacketProblem> {
    source.begin(&format!("policy-{}.out", std::process::id()), 0)
}

/// A change of one thing with a name; `None`: it is removed.
struct RuleTurn<T> {
    name: String,
    new: Option<T>,
}

/// The changes that make the new ones of the old ones.
fn turns<T: Clone + PartialEq>(old: &[T], new: &[T], name: impl Fn(&T) -> &String) -> Vec<RuleTurn<T>> {
    let is_gone = |known: &&T| !new.iter().any(|other| name(other) == name(known));
    let gone = old.iter().filter(is_gone).map(|known| RuleTurn { name: name(known).clone(), new: None });
    let changed = new.iter().filter(|thing| !old.contains(thing));
    let changed = changed.map(|thing| RuleTurn { name: name(thing).clone(), new: Some(thing.clone()) });
    gone.chain(changed).collect()
}

/// A new folder, called by the time now as Genode's recorder does.
fn new_folder(root: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(root)?;
    loop {
        let path = root.join(
            jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).strftime("%-Y-%-m-%-d %-H:%-M:%-S").to_string(),
        );
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => std::thread::sleep(SECOND),
            Err(error) => return Err(std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }
}

/// Removes folders in which there is nothing.
fn prune(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    folders.for_each(|inside| prune(&inside));
    // It is not empty.
    let _ = std::fs::remove_dir(folder);
}
