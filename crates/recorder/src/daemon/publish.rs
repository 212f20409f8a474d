//! Publishes the selections of all sessions in the folders of programs: a program that starts
//! records its first events by them, before this recorder knows it.
//!
//! ```text
//! own.selection      of the recorder of the folder's owner
//! root.selection     of root's recorder, in the folders of other users
//! ```
//!
//! The recorder holds a lock on each file: a file without a lock is a dead recorder's, and
//! programs ignore it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use kymo_schema::published::{PublishedStepKind, SelectionWriter, Starter};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};

use crate::filters::contexts_named;
use crate::folder::own_user;
use crate::number;
use crate::program::find::{SearchFolder, namespace, start_time};
use crate::rule::RuleTest;
use crate::select::{SelectionRule, SelectionStep, StepKind};
use crate::session::RecordingSession;

/// Device and inode of a folder.
type FolderId = (u64, u64);

/// The published selections.
#[derive(Debug)]
pub(crate) struct Publisher {
    /// The number of the last text, and the text; empty: no session has a selection.
    number: u64,
    text: String,
    /// Folders that were there when something was published.
    known: HashSet<FolderId>,
    files: HashMap<FolderId, PublishedFile>,
}

/// The file in a folder.
#[derive(Debug)]
struct PublishedFile {
    folder: Arc<OwnedFd>,
    name: &'static str,
    /// It is locked as long as this is open.
    _lock: File,
    /// The number of its text.
    number: u64,
}

impl Publisher {
    pub(crate) fn new() -> Self {
        Self { number: 0, text: String::new(), known: HashSet::new(), files: HashMap::new() }
    }

    /// The number of the selections that apply now; 0: there is no session.
    pub(crate) fn number(&self) -> u64 {
        if self.text.is_empty() { 0 } else { self.number }
    }

    /// Takes the selections of sessions that have changed, or have begun or ended.
    pub(crate) fn select(&mut self, sessions: &[RecordingSession]) {
        self.number = number::next(self.number);
        self.text = if sessions.is_empty() { String::new() } else { text(self.number, sessions) };
    }

    /// Puts the selections into these folders, which are all that there are. Returns those
    /// folders of other users, or on other mounts, that were not there before.
    pub(crate) fn publish(&mut self, folders: &[SearchFolder]) -> Vec<PathBuf> {
        if self.text.is_empty() {
            self.known.clear();
            for file in std::mem::take(&mut self.files).into_values() {
                let _ = rustix::fs::unlinkat(&*file.folder, file.name, AtFlags::empty());
            }
            return Vec::new();
        }
        // Folders of containers that are gone: an open folder would keep their memory.
        let there: HashSet<FolderId> = folders.iter().filter_map(|place| id_of(&place.folder)).collect();
        self.files.retain(|id, _| there.contains(id));
        self.known.retain(|id| there.contains(id));
        let new = folders.iter().filter(|place| self.reach(place) && !place.is_own);
        new.map(|place| place.path.clone()).collect()
    }

    /// Puts the selections into a folder; returns whether the folder was not there before.
    fn reach(&mut self, place: &SearchFolder) -> bool {
        let folder = &place.folder;
        let Some(id) = id_of(folder) else { return false };
        let is_new = self.known.insert(id);
        let before = self.files.get(&id).map(|file| file.number);
        if before == Some(self.number) {
            return false;
        }
        // Without it, programs there are recorded from the moment on in which the recorder finds
        // them, and the summary says so.
        let name = if place.user == own_user() { "own.selection" } else { "root.selection" };
        if let Ok(lock) = self.put(folder, name, before.is_some()) {
            let folder = Arc::clone(folder);
            self.files.insert(id, PublishedFile { folder, name, _lock: lock, number: self.number });
        }
        is_new
    }

    /// Replaces the file in a folder.
    fn put(&self, folder: &OwnedFd, name: &str, is_ours: bool) -> io::Result<File> {
        // Two recorders of one user, with different runtime folders, share the folders of programs
        // without one.
        if !is_ours && is_others(folder, name) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let new = format!("{name}.new");
        let _ = rustix::fs::unlinkat(folder, &new, AtFlags::empty());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(folder, &new, flags, Mode::from_raw_mode(0o644))?);
        let done = file.write_all(self.text.as_bytes()).and_then(|()| {
            // The owner of the folder has to read it, also if this process' mask forbids that.
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644))?;
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            // The lock is there before programs find the file.
            rustix::fs::renameat(folder, &new, folder, name)?;
            Ok(())
        });
        if done.is_err() {
            let _ = rustix::fs::unlinkat(folder, &new, AtFlags::empty());
        }
        done.map(|()| file)
    }
}

/// Whether another living recorder has published in a folder.
fn is_others(folder: &OwnedFd, name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else { return false };
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

fn id_of(folder: &OwnedFd) -> Option<FolderId> {
    let found = rustix::fs::fstat(folder).ok()?;
    Some((found.st_dev, found.st_ino))
}

fn text(number: u64, sessions: &[RecordingSession]) -> String {
    let mut writer = SelectionWriter::new(number);
    for session in sessions {
        let steps = session.selection().steps();
        // Programs record the events of triggers too: the recorder looks at those of their first instant.
        let armed = session.triggers.all().iter().filter(|trigger| trigger.is_armed);
        let watched = armed.map(|trigger| step_within(trigger.options.rule.clone()));
        // And those that begin something for a rule.
        let begins = session.rules.all().iter().filter_map(|rule| rule.asks.begins());
        let begins =
            begins.map(|events| step_within(SelectionRule { events: events.to_vec(), ..SelectionRule::default() }));
        let watched: Vec<SelectionStep> = watched.chain(begins).collect();
        let filters = steps.iter().chain(&watched).flat_map(|step| step.rule.filter_texts());
        let contexts = filters.fold(session.options.contexts, |all, filter| all | contexts_named(&filter));
        let tag = session.tags().next();
        writer.session(contexts, session.pool_bytes(), tag.and_then(starter));
        let programs = session.rules.all().iter().filter(|rule| matches!(rule.asks.test, RuleTest::Program { .. }));
        programs.flat_map(|rule| &rule.events).for_each(|pattern| writer.waits(pattern));
        steps.iter().chain(&watched).for_each(|step| write(&mut writer, step));
        writer.end_session();
    }
    writer.finish()
}

/// More events, of programs that the session takes anyway.
fn step_within(rule: SelectionRule) -> SelectionStep {
    SelectionStep { act: StepKind::Enable, rule: SelectionRule { is_within: true, ..rule } }
}

fn write(writer: &mut SelectionWriter, step: &SelectionStep) {
    let kind = match step.act {
        StepKind::Enable => PublishedStepKind::Enable,
        StepKind::Disable => PublishedStepKind::Disable,
        StepKind::Filter => PublishedStepKind::Filter,
    };
    let rule = &step.rule;
    writer.step(kind, rule.level, rule.tag.as_deref(), rule.is_within);
    rule.events.iter().for_each(|pattern| writer.event(pattern));
    rule.processes.iter().for_each(|pattern| writer.process(pattern));
}

/// The process that starts the programs with a tag: `NAME-PID`. `None`: it is not visible here, and
/// programs that lack its variables are not found.
fn starter(tag: &str) -> Option<Starter<'_>> {
    let pid: u32 = tag.rsplit_once('-')?.1.parse().ok()?;
    let (namespace, started) = (namespace(&pid.to_string(), "pid")?, start_time(pid)?);
    is_own_namespace(namespace).then_some(Starter { tag, pid, namespace, started })
}

fn is_own_namespace(inode: u64) -> bool {
    namespace("self", "pid") == Some(inode)
}

#[cfg(test)]
mod tests {
    use kymo_schema::published::{PublishedCandidate, PublishedSelection};
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::SessionOptions;
    use crate::select::{ProgramCandidate, RecordDecision, SelectionRule, SessionSelection};
    use crate::trigger::{TriggerEffect, TriggerOptions, TriggerScope};

    fn rule() -> impl Strategy<Value = SelectionRule> {
        let events = proptest::collection::vec("!?(net|disk|\\*):(sent|re\\?d|\\*)", 0..3);
        let processes = proptest::collection::vec("server|ser\\*|/usr/bin/\\*|other|1[23]", 0..2);
        let level = proptest::option::of(0_u8..16);
        let tag = proptest::option::of("demo-1|demo-2");
        let filter = proptest::option::of("a == 1");
        (events, processes, level, tag, filter, any::<bool>()).prop_map(
            |(events, processes, level, tag, filter, is_within)| SelectionRule {
                events,
                level,
                processes,
                tag,
                filter,
                is_within,
                ..SelectionRule::default()
            },
        )
    }

    /// A program that starts records exactly the events that the recorder may want of it.
    #[test]
    fn programs_decide_as_the_recorder_does() {
        let kind = prop_oneof![Just(StepKind::Enable), Just(StepKind::Disable), Just(StepKind::Filter)];
        let steps = proptest::collection::vec((kind, rule()), 0..5);
        let config = ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() };
        proptest::test_runner::TestRunner::new(config)
            .run(&(steps, any::<bool>()), |(steps, is_tagged)| {
                let mut selection = SessionSelection::default();
                steps.into_iter().for_each(|(act, rule)| selection.take(SelectionStep { act, rule }));
                let options = SessionOptions { selection: selection.clone(), ..SessionOptions::default() };
                let text = text(7, &[RecordingSession::of(options, None, [0; 2])]);
                let all = PublishedSelection::read(&text).expect("it is one");
                let session = all.sessions().next().expect("there is one");
                let tag = is_tagged.then_some("demo-1");
                let (name, path) = ("server", "/usr/bin/server");
                let ours = PublishedCandidate { pid: 12, name, path, tag };
                let theirs =
                    ProgramCandidate { pid: None, own_pid: 12, name, path, tag, ..ProgramCandidate::default() };
                prop_assert_eq!(session.takes_program(&ours), selection.takes_program(&theirs), "{}", text);
                for event in ["net:sent", "disk:read", "other:event"] {
                    for level in [0, 6, 14] {
                        let wanted = selection.chosen(&theirs, event, level) != RecordDecision::No;
                        let takes = session.takes_program(&ours) && session.takes(&ours, event, level);
                        prop_assert_eq!(takes, wanted, "{} {} {}", event, level, text);
                    }
                }
                Ok(())
            })
            .expect("they agree");
    }

    /// A program that starts records the events of triggers, too; one that the session does not take records none.
    #[test]
    fn programs_begin_with_the_events_of_triggers() {
        let rule = |event: &str, processes: &[&str]| SelectionRule {
            events: vec![event.to_owned()],
            processes: processes.iter().map(ToString::to_string).collect(),
            ..SelectionRule::default()
        };
        let trigger = TriggerOptions {
            name: "lost".to_owned(),
            rule: SelectionRule { filter: Some("$ctx.prio == 1".to_owned()), ..rule("net:lost", &[]) },
            effect: TriggerEffect::Stop,
            scope: TriggerScope::Session,
            repeats: false,
            interval_ns: None,
            for_ns: None,
            after: None,
            asks: None,
            last: None,
            gate: None,
        };
        let mut selection = SessionSelection::default();
        selection.take(SelectionStep { act: StepKind::Enable, rule: rule("disk:*", &["server"]) });
        let options = SessionOptions { selection, triggers: vec![trigger], ..SessionOptions::default() };
        let mut session = RecordingSession::of(options, None, [0; 2]);
        let takes = |session: &RecordingSession, name, event| {
            let text = text(7, std::slice::from_ref(session));
            let all = PublishedSelection::read(&text).expect("it is one");
            let its = all.sessions().next().expect("there is one");
            let who = PublishedCandidate { pid: 12, name, path: "/usr/bin/it", tag: None };
            its.takes_program(&who) && its.takes(&who, event, 6)
        };
        assert!(takes(&session, "server", "net:lost") && takes(&session, "server", "disk:read"));
        assert!(!takes(&session, "server", "net:sent") && !takes(&session, "other", "net:lost"));
        session.triggers.arm(None, false, [0; 2]);
        assert!(!takes(&session, "server", "net:lost"));
    }

    #[test]
    fn a_living_recorders_file_stays() {
        let folder = tempfile::tempdir().expect("there is room");
        let place = || SearchFolder::of(folder.path());
        let session = || RecordingSession::of(SessionOptions::default(), None, [0; 2]);
        let [mut one, mut other] = [Publisher::new(), Publisher::new()];
        let read = || std::fs::read_to_string(folder.path().join("own.selection")).ok();
        one.select(&[session()]);
        let mut others = [place()];
        others[0].is_own = false;
        assert_eq!(one.publish(&others), [folder.path()]);
        assert_eq!(one.publish(&others), [""; 0].map(PathBuf::from));
        let first = read().expect("it is published");
        other.select(&[session()]);
        other.publish(&[place()]);
        assert_eq!(read().as_ref(), Some(&first));
        // Its own file is replaced.
        one.select(&[session(), session()]);
        one.publish(&[place()]);
        assert_ne!(read().as_ref(), Some(&first));
        // A dead recorder's file is replaced too.
        drop(one);
        other.publish(&[place()]);
        assert!(read().is_some_and(|text| text.contains(&format!(" {}\n", other.number()))));
        other.select(&[]);
        other.publish(&[]);
        assert_eq!((read(), other.number()), (None, 0));
    }
}
