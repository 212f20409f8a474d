//! Programs that may have had events before the recorder knew them: they started while the session
//! ran, and could not read its selection.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::number;
use crate::program::{Process, ProgramIdentity};
use crate::select::{SelectionStep, SessionSelection, StepKind};

/// Folders that a summary names.
const FOLDERS_MAX: usize = 20;

/// The programs of a session that started without its selection.
#[derive(Debug, Default)]
pub(crate) struct LateStarts {
    programs: BTreeSet<Process>,
    /// How many there were when an earlier recorder was killed.
    before: u64,
    is_resumed: bool,
    takes_strangers: bool,
    /// Folders of other users, or on other mounts, that came while the session ran.
    pub(crate) folders: Vec<PathBuf>,
    /// Programs that start find the session's selection.
    is_published: bool,
}

impl LateStarts {
    /// Goes on where an earlier recorder was.
    pub(crate) fn resumed(before: u64, folders: Vec<PathBuf>) -> Self {
        Self { before, folders, is_resumed: true, ..Self::default() }
    }

    /// Whether programs may have come and gone while no recorder ran. Those that the session itself
    /// starts begin with their events on.
    pub(crate) fn has_gap(&self) -> bool {
        self.is_resumed && self.takes_strangers
    }

    /// Number of programs.
    pub(crate) fn count(&self) -> u64 {
        self.before + self.programs.len() as u64
    }

    /// The session meets a program. It is late if it began after the session did, in nanoseconds of
    /// uptime and in ticks of the program's clock, and has not read the session's selection.
    pub(crate) fn meets(&mut self, program: &ProgramIdentity, began_ns: i64, earliest: u64) {
        let began_later = match program.began {
            // An older tracer: when the process started, in hundredths of a second.
            0 => i64::try_from(started_ns(program.started)).is_ok_and(|began| began > began_ns),
            ticks => ticks >= earliest,
        };
        let (with, _) = program.selections();
        // Of a session that this recorder continues, an earlier one published it.
        let is_its = self.is_resumed || number::is_own(with);
        let has_read = is_its && u64::try_from(began_ns).is_ok_and(|began| with >= began);
        if began_later && !has_read {
            self.programs.insert(program.process());
        }
    }

    /// The selection is published, also in these folders, which are new: if it was published
    /// elsewhere before, programs there may have come and gone unseen.
    pub(crate) fn is_published(&mut self, selection: &SessionSelection, new: &[PathBuf]) {
        // A number is that of a program that was there before.
        let is_name = |pattern: &String| pattern.parse::<u32>().is_err();
        let takes_strangers = selection.steps().iter().any(|SelectionStep { act, rule }| {
            let has_names = rule.processes.is_empty() || rule.processes.iter().any(is_name);
            *act == StepKind::Enable && !rule.is_within && rule.tag.is_none() && has_names
        });
        self.takes_strangers |= takes_strangers;
        if std::mem::replace(&mut self.is_published, true) && takes_strangers {
            let room = FOLDERS_MAX.saturating_sub(self.folders.len());
            self.folders.extend(new.iter().take(room).cloned());
        }
    }
}

/// Nanoseconds of uptime when a process started, from the system's clock ticks.
fn started_ns(ticks: u64) -> u64 {
    // The kernel's interface has 100 in a second, with any timer.
    ticks.saturating_mul(10_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::SelectionRule;

    fn program(began: u64, with: u64, started: u64) -> ProgramIdentity {
        ProgramIdentity { key: began, started, began, began_with: [with; 2], ..ProgramIdentity::default() }
    }

    #[test]
    fn programs_that_began_later_without_the_selection_are_late() {
        const SECOND: i64 = 1_000_000_000;
        for (began, with, started, is_late) in [
            (999, 0, 1, false),
            (1000, 0, 1, true),
            (1000, number::next(0), 1, false),
            // Of another recorder.
            (1000, number::next(0) ^ 1, 1, true),
            // Of an older tracer, only the start of the process is known.
            (0, 0, 500, false),
            (0, 0, 501, true),
        ] {
            let mut late = LateStarts::default();
            // As if the session had begun five seconds after the system.
            late.meets(&program(began, with, started), 5 * SECOND, 1000);
            assert_eq!(late.count(), u64::from(is_late), "{began} {with} {started}");
        }
        assert_eq!(LateStarts::resumed(3, Vec::new()).count(), 3);
    }

    #[test]
    fn folders_count_that_come_after_the_first_ones() {
        let selection = |rule| {
            let mut selection = SessionSelection::default();
            selection.take(SelectionStep { act: StepKind::Enable, rule });
            selection
        };
        let number = SelectionRule { processes: vec!["12".to_owned()], ..SelectionRule::default() };
        let tagged = SelectionRule { tag: Some("demo-1".to_owned()), ..SelectionRule::default() };
        for (rule, counts) in [(SelectionRule::default(), true), (number, false), (tagged, false)] {
            let (selection, mut late) = (selection(rule), LateStarts::default());
            late.is_published(&selection, &["/first".into()]);
            assert!(late.folders.is_empty());
            late.is_published(&selection, &["/second".into()]);
            assert_eq!(!late.folders.is_empty(), counts);
        }
    }
}
