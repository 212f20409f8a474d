//! The selections of all sessions of a recorder, as text in a file beside the memory of programs. A
//! program that starts reads it, so that its first events are recorded although no recorder knows
//! the program yet.
//!
//! ```text
//! kymo selection 2 8172364912         version of this text; number: nanoseconds of the system's uptime, each text has a later one
//! session 5 1024 demo-1234 1234 77 99 contexts that events carry; bytes of a program's pool; tag of programs that it starts, and
//!                                     the PID, namespace and start time of the process that starts them
//! waits http:*                        programs wait when they define such events, until the recorder knows them
//! enable 6                            a step: enable, disable or filter; the least important level
//! event net:*                           patterns of `PROVIDER:NAME`
//! process server                        patterns of programs
//! within                                only programs that other steps bring
//! ```
//!
//! The text has no filter expressions: a program that starts records every event that a filter might
//! accept, and the recorder evaluates the filter. So a program may record more than the sessions
//! want, and never less.

use crate::glob::matches;

/// Bytes of a text.
pub const BYTES_MAX: usize = 16 << 10;
const HEAD: &str = "kymo selection 2 ";
/// Level of events whose definitions have none: the least important one.
const LEVEL_MAX: u8 = 14;

/// Effect of a step of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedStepKind {
    /// Records events.
    Enable,
    /// Stops recording events.
    Disable,
    /// Limits recorded events by an expression.
    Filter,
}

impl PublishedStepKind {
    const ALL: [(&'static str, Self); 3] =
        [("enable", Self::Enable), ("disable", Self::Disable), ("filter", Self::Filter)];
}

/// A published text.
#[derive(Clone, Copy, Debug)]
pub struct PublishedSelection<'t> {
    /// Its number; a later text has a larger one.
    pub number: u64,
    rest: &'t str,
}

/// The selection of one session.
#[derive(Clone, Copy, Debug)]
pub struct PublishedSession<'t> {
    /// Contexts that events carry.
    pub contexts: u64,
    /// Bytes of a program's pool of sub-buffers.
    pub pool_bytes: u64,
    /// The process that starts programs for the session.
    pub starts: Option<Starter<'t>>,
    steps: &'t str,
}

/// A process that starts programs for a session. The same PID may be another process' in another
/// namespace, or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starter<'t> {
    /// The tag of the programs.
    pub tag: &'t str,
    /// Its PID, and the inode of the PID namespace.
    pub pid: u32,
    /// See [`Starter::pid`].
    pub namespace: u64,
    /// When it started, in the kernel's clock ticks.
    pub started: u64,
}

/// Facts that decide whether a program is selected.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublishedCandidate<'a> {
    /// Its PID.
    pub pid: u32,
    /// Its name.
    pub name: &'a str,
    /// The path of its executable.
    pub path: &'a str,
    /// The tag in the name of its memory.
    pub tag: Option<&'a str>,
}

impl<'t> PublishedSelection<'t> {
    /// Reads the first line of a text; `None`: it is of another version, or no such text.
    ///
    /// ```
    /// use kymo_schema::published::{PublishedCandidate, PublishedSelection};
    /// let text = "kymo selection 2 12\nsession 0 0\nenable\nevent net:*\nprocess serv*\n";
    /// let session = PublishedSelection::read(text).unwrap().sessions().next().unwrap();
    /// let program = PublishedCandidate { name: "server", ..PublishedCandidate::default() };
    /// assert!(session.takes_program(&program) && session.takes(&program, "net:sent", 6));
    /// assert!(!session.takes(&program, "disk:read", 6));
    /// ```
    #[must_use]
    pub fn read(text: &'t str) -> Option<Self> {
        let (number, rest) = text.strip_prefix(HEAD)?.split_once('\n')?;
        Some(Self { number: number.parse().ok()?, rest })
    }

    /// Its sessions.
    pub fn sessions(self) -> impl Iterator<Item = PublishedSession<'t>> {
        parts(self.rest, |line| line.starts_with("session ")).filter_map(|(head, steps)| {
            let mut words = head.split(' ').skip(1);
            let (contexts, pool_bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let starts = words.next().and_then(|tag| {
                let pid = words.next()?.parse().ok()?;
                let (namespace, started) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                Some(Starter { tag, pid, namespace, started })
            });
            Some(PublishedSession { contexts, pool_bytes, starts, steps })
        })
    }
}

impl<'t> PublishedSession<'t> {
    /// Whether the session may want events of a program.
    #[must_use]
    pub fn takes_program(&self, program: &PublishedCandidate<'_>) -> bool {
        let brings = |step: &Step<'_>| step.kind == PublishedStepKind::Enable && !step.has("within");
        self.steps().any(|step| brings(&step) && step.takes_program(program))
    }

    /// Whether the session may want this event of a program that it takes.
    #[must_use]
    pub fn takes(&self, program: &PublishedCandidate<'_>, event: &str, level: u8) -> bool {
        let its = self.steps().filter(|step| step.takes_event(event, level) && step.takes_program(program));
        its.fold(false, |takes, step| match step.kind {
            PublishedStepKind::Enable => true,
            PublishedStepKind::Disable => false,
            PublishedStepKind::Filter => takes,
        })
    }

    /// Whether a program waits, when it defines this event, until its recorder knows it: at most for a moment.
    #[must_use]
    pub fn waits_for(&self, event: &str) -> bool {
        let patterns = self.steps.lines().take_while(|line| step_kind(line).is_none());
        patterns.filter_map(|line| line.strip_prefix("waits ")).any(|pattern| matches(pattern, event))
    }

    fn steps(&self) -> impl Iterator<Item = Step<'t>> {
        parts(self.steps, |line| step_kind(line).is_some()).filter_map(|(head, lines)| {
            let level = head.split_once(' ').and_then(|(_, level)| level.parse().ok());
            Some(Step { kind: step_kind(head)?, level: level.unwrap_or(u8::MAX), lines })
        })
    }
}

fn step_kind(line: &str) -> Option<PublishedStepKind> {
    let word = line.split(' ').next()?;
    PublishedStepKind::ALL.into_iter().find(|(known, _)| *known == word).map(|(_, kind)| kind)
}

/// Parts of a text: a line that begins one, and the lines up to the next such line.
fn parts(mut text: &str, begins: impl Fn(&str) -> bool + Copy) -> impl Iterator<Item = (&str, &str)> {
    core::iter::from_fn(move || {
        loop {
            if text.is_empty() {
                return None;
            }
            let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
            text = rest;
            if begins(head) {
                let length = rest
                    .split_inclusive('\n')
                    .take_while(|line| !begins(line.trim_end_matches('\n')))
                    .map(str::len)
                    .sum();
                let (lines, rest) = rest.split_at(length);
                text = rest;
                return Some((head, lines));
            }
        }
    })
}

/// One step of a selection.
#[derive(Clone, Copy, Debug)]
struct Step<'t> {
    kind: PublishedStepKind,
    level: u8,
    lines: &'t str,
}

impl<'t> Step<'t> {
    /// Values of the lines that begin with a word.
    fn values(&self, word: &'static str) -> impl Iterator<Item = &'t str> + Clone {
        self.lines.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
    }

    fn has(&self, word: &str) -> bool {
        self.lines.lines().any(|line| line == word)
    }

    fn takes_event(&self, event: &str, level: u8) -> bool {
        let wanted = self.values("event").filter(|pattern| !pattern.starts_with('!'));
        let not = self.values("event").filter_map(|pattern| pattern.strip_prefix('!'));
        level <= self.level && any_or_none(wanted, event) && !not.into_iter().any(|pattern| matches(pattern, event))
    }

    fn takes_program(&self, program: &PublishedCandidate<'_>) -> bool {
        let has_tag = self.values("tag").all(|tag| program.tag == Some(tag));
        let file = program.path.rsplit('/').next().unwrap_or_default();
        let is_its = |wanted: &str| match wanted.parse::<u32>() {
            Ok(number) => number == program.pid,
            Err(_) => [program.name, file, program.path].iter().any(|name| !name.is_empty() && matches(wanted, name)),
        };
        let mut processes = self.values("process");
        has_tag && (processes.clone().next().is_none() || processes.any(is_its))
    }
}

/// Whether one of the patterns matches, or there is none.
fn any_or_none<'t>(mut patterns: impl Iterator<Item = &'t str> + Clone, text: &str) -> bool {
    patterns.clone().next().is_none() || patterns.any(|pattern| matches(pattern, text))
}

/// Name and level of an event in the bytes of its definition; `None`: it defines no event.
#[must_use]
pub fn event_of(definition: &[u8]) -> Option<(&str, u8)> {
    let text = core::str::from_utf8(definition).ok()?;
    let name = text.lines().next()?.strip_prefix("event ")?;
    let level = text.lines().find_map(|line| line.strip_prefix("level ")?.parse().ok());
    Some((name, level.unwrap_or(LEVEL_MAX)))
}

/// Writes a text.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub struct SelectionWriter {
    text: String,
    /// Where the last session begins, and its first line.
    session: (usize, String),
}

#[cfg(feature = "std")]
impl SelectionWriter {
    /// Begins a text.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self { text: format!("{HEAD}{number}\n"), session: (0, String::new()) }
    }

    /// Begins a session.
    pub fn session(&mut self, contexts: u64, pool_bytes: u64, starts: Option<Starter<'_>>) {
        let starts = starts.map_or(String::new(), |starter| {
            let Starter { tag, pid, namespace, started } = starter;
            format!(" {tag} {pid} {namespace} {started}")
        });
        self.session = (self.text.len(), format!("session {contexts} {pool_bytes}{starts}\n"));
        self.text.push_str(&self.session.1);
    }

    /// Programs wait when they define events of this name. Comes before all steps of the session; readers that do not know it skip it.
    pub fn waits(&mut self, pattern: &str) {
        self.line("waits", pattern);
    }

    /// Adds a step to the last session.
    pub fn step(&mut self, kind: PublishedStepKind, level: Option<u8>, tag: Option<&str>, is_within: bool) {
        let (word, _) = PublishedStepKind::ALL.into_iter().find(|(_, known)| *known == kind).expect("all are there");
        self.line(word, &level.map_or(String::new(), |level| level.to_string()));
        tag.into_iter().for_each(|tag| self.line("tag", tag));
        if is_within {
            self.line("within", "");
        }
    }

    /// Adds a pattern of events to the last step.
    pub fn event(&mut self, pattern: &str) {
        self.line("event", pattern);
    }

    /// Adds a pattern of programs to the last step.
    pub fn process(&mut self, pattern: &str) {
        self.line("process", pattern);
    }

    fn line(&mut self, word: &str, value: &str) {
        self.text.push_str(word);
        if !value.is_empty() {
            self.text.push(' ');
            // A line of its own would be another pattern; this one matches the same names.
            self.text.extend(value.chars().map(|character| if character == '\n' { '?' } else { character }));
        }
        self.text.push('\n');
    }

    /// Ends a session: one with too many steps becomes one that takes every event of every program.
    pub fn end_session(&mut self) {
        if self.text.len() > BYTES_MAX {
            self.text.truncate(self.session.0);
            self.text.push_str(&self.session.1);
            self.text.push_str("enable\n");
        }
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: PublishedCandidate<'static> =
        PublishedCandidate { pid: 12, name: "server", path: "/usr/bin/server-2", tag: None };

    const STARTER: Starter<'static> = Starter { tag: "demo-1", pid: 40, namespace: 7, started: 99 };

    fn text() -> String {
        let mut writer = SelectionWriter::new(77);
        writer.session(5, 4096, Some(STARTER));
        writer.step(PublishedStepKind::Enable, None, Some("demo-1"), false);
        writer.end_session();
        writer.session(0, 0, None);
        writer.step(PublishedStepKind::Enable, Some(6), None, false);
        writer.event("net:*");
        writer.event("!net:lost");
        writer.process("serv*");
        writer.step(PublishedStepKind::Enable, None, None, true);
        writer.event("disk:read\nx");
        writer.step(PublishedStepKind::Filter, None, None, true);
        writer.event("net:*");
        writer.step(PublishedStepKind::Disable, None, None, true);
        writer.event("net:idle");
        writer.end_session();
        writer.finish()
    }

    #[test]
    fn the_last_step_decides() {
        let text = text();
        let all = PublishedSelection::read(&text).expect("it is one");
        assert_eq!(all.number, 77);
        let sessions: Vec<_> = all.sessions().collect();
        let [started, session] = &sessions[..] else { panic!("{text}") };
        assert_eq!((started.contexts, started.pool_bytes), (5, 4096));
        assert_eq!((started.starts, session.starts), (Some(STARTER), None));
        assert!(!started.takes_program(&SERVER));
        assert!(started.takes_program(&PublishedCandidate { tag: Some("demo-1"), ..SERVER }));
        assert!(session.takes_program(&SERVER));
        for (event, level, takes) in [
            ("net:sent", 6, true),
            ("net:sent", 7, false),
            ("net:lost", 0, false),
            ("net:idle", 6, false),
            ("disk:read x", 14, true),
            ("disk:read", 14, false),
            ("other:event", 0, false),
        ] {
            assert_eq!(session.takes(&SERVER, event, level), takes, "{event} {level}\n{text}");
        }
        let other = PublishedCandidate { name: "other", path: "/usr/bin/other", ..SERVER };
        assert!(!session.takes_program(&other));
    }

    #[test]
    fn programs_are_known_by_name_file_path_and_number() {
        for (pattern, takes) in
            [("12", true), ("3", false), ("server-2", true), ("/usr/*", true), ("server", true), ("serve", false)]
        {
            let mut writer = SelectionWriter::new(1);
            writer.session(0, 0, None);
            writer.step(PublishedStepKind::Enable, None, None, false);
            writer.process(pattern);
            let text = writer.finish();
            let session = PublishedSelection::read(&text).and_then(|all| all.sessions().next()).expect("there is one");
            assert_eq!(session.takes_program(&SERVER), takes, "{pattern}");
        }
    }

    #[test]
    fn too_many_steps_become_one_that_takes_all() {
        let mut writer = SelectionWriter::new(1);
        writer.session(3, 64, None);
        for number in 0..10_000 {
            writer.step(PublishedStepKind::Disable, None, None, true);
            writer.event(&format!("net:{number}"));
        }
        writer.end_session();
        let text = writer.finish();
        assert_eq!(text, "kymo selection 2 1\nsession 3 64\nenable\n");
    }

    #[test]
    fn names_and_levels_are_in_definitions() {
        assert_eq!(event_of(b"event net:sent\nlevel 6\nfield u32 port\n"), Some(("net:sent", 6)));
        assert_eq!(event_of(b"event net:sent\n"), Some(("net:sent", LEVEL_MAX)));
        assert_eq!(LEVEL_MAX, crate::definition::LEVEL_MAX);
        assert_eq!(event_of(b"context user 3\n"), None);
        assert_eq!(event_of(b"event \xff\n"), None);
    }

    #[test]
    fn no_text_makes_it_panic() {
        let config = proptest::test_runner::Config { failure_persistence: None, ..Default::default() };
        let words =
            "(kymo selection 2 7\n)?((session|enable|filter|event|process|within|tag)( [a-z0-9*!é]{0,3}){0,3}\n?){0,9}";
        proptest::test_runner::TestRunner::new(config)
            .run(&words, |text| {
                for session in PublishedSelection::read(&text).into_iter().flat_map(PublishedSelection::sessions) {
                    let _ = (session.takes_program(&SERVER), session.takes(&SERVER, "net:sent", 6));
                }
                Ok(())
            })
            .expect("nothing breaks it");
    }
}
