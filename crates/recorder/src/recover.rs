//! `kymo recover`: what lies in memory of programs that are gone, or in copies of it, becomes a trace.
//!
//! ```text
//! memory ── everything that its lanes hold, copied ──> trace      the memory stays as it is; whoever asked may delete it then
//! ```

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use kymo_lane::Clock as Source;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::daemon::Daemon;
use crate::folder::{own_folder, own_user, shared_folder};
use crate::output::{Error, Output, OutputOptions, Tally, To};
use crate::program::{Program, Refusal};
use crate::session::folder_of;
use crate::wire::Answer;

/// What was found in memory, and written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rescued {
    /// The folder of the trace.
    pub output: PathBuf,
    /// Events in it, and its bytes.
    pub events: u64,
    /// See [`Rescued::events`].
    pub bytes: u64,
    /// Whose they were.
    pub programs: Vec<RescuedProgram>,
    /// When it was is known; otherwise times only say how long after each other events were.
    pub has_times: bool,
    /// Bytes that are no events.
    pub damaged_bytes: u64,
    /// What could not be done, in sentences.
    pub problems: Vec<String>,
}

/// A program of which something was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescuedProgram {
    /// What it was called.
    pub name: String,
    /// Its number, as it saw itself.
    pub pid: u32,
    /// Its memory.
    pub file: PathBuf,
    /// Events of it.
    pub events: u64,
    /// Events that it had lost since it began; what recorders know of them stands in their traces.
    pub lost: u64,
}

/// Why nothing is written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum RescueProblem {
    #[error("{}: {refusal}", path.display())]
    Memory { path: PathBuf, refusal: Refusal },
    #[error("{}: {error}", path.display())]
    Output { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Trace(#[from] Error),
}

/// Writes what is in copies of programs' memory as a trace in a folder that is made. The copies stay as they are.
///
/// # Errors
///
/// One of them is no program's memory, or nothing can be written.
pub fn rescue_copies(files: &[PathBuf], output: &Path) -> Result<Rescued, RescueProblem> {
    let mut programs = Vec::new();
    for path in files {
        let opened = Program::open_copy(path).and_then(|mut program| {
            program.definitions()?;
            Ok(program)
        });
        programs.push(opened.map_err(|refusal| RescueProblem::Memory { path: path.clone(), refusal })?);
    }
    crate::session::make_folder(output).map_err(|error| RescueProblem::Output { path: output.to_owned(), error })?;
    // The number of a program's memory is no other one's: where it is, that program ran since the system has begun.
    let folders = [own_folder(), shared_folder(own_user())];
    let names = folders.iter().flat_map(std::fs::read_dir).flatten().flatten().map(|entry| entry.file_name());
    let here: HashSet<u64> = names.filter_map(|name| crate::program::key(Path::new(&name))).collect();
    let has_times = programs.iter().all(|program| here.contains(&program.identity().key));
    Ok(rescue(&mut programs, output, has_times)?)
}

/// Writes everything that programs hold.
fn rescue(programs: &mut [Program], output: &Path, has_times: bool) -> Result<Rescued, Error> {
    let mut rescued = Rescued { output: output.to_owned(), has_times, ..Rescued::default() };
    for source in [Source::Counter, Source::Monotonic] {
        let mut its: Vec<_> = programs.iter_mut().filter(|program| program.identity().clock == source).collect();
        if its.is_empty() {
            continue;
        }
        let (first, last) = its
            .iter_mut()
            .filter_map(|program| program.span())
            .fold((u64::MAX, 0), |(first, last), its| (first.min(its.0), last.max(its.1)));
        let mut clock = if has_times { Clock::begin(source) } else { Clock::still(source, last) };
        let earliest = if has_times || first > last { 0 } else { first };
        let environment = vec![("session".to_owned(), "recovered".to_owned())];
        let options = OutputOptions { environment, ..OutputOptions::default() };
        let mut trace = Output::create(&folder_of(output, source), options, &mut clock, earliest)?;
        for program in its {
            rescued.programs.push(one(program, &mut trace, &mut rescued.problems));
        }
        let tally = trace.finish(&mut clock)?;
        rescued.events += tally.events;
        rescued.bytes += tally.bytes;
        rescued.damaged_bytes += tally.unreadable;
    }
    Ok(rescued)
}

fn one(program: &mut Program, trace: &mut Output, problems: &mut Vec<String>) -> RescuedProgram {
    let (name, pid, file) = (program.identity().name.clone(), program.identity().pid, program.path().to_owned());
    trace.program(program.known());
    let before: Tally = trace.tally().clone();
    if let Err(error) = program.snapshot(&mut To(trace)) {
        problems.push(format!("{}: {error}", file.display()));
    }
    if let Some(error) = trace.error() {
        problems.push(error.to_string());
    }
    let events = trace.tally().events - before.events;
    RescuedProgram { name, pid, file, events, lost: program.lost_ever() }
}

impl Daemon {
    /// Writes what programs have left that are dead and that no session wants, and deletes their memory when it is written.
    pub(crate) fn recover(&mut self, output: &Path) -> Result<Answer, String> {
        self.look_everywhere();
        let mut dead = Vec::new();
        for seen in std::mem::take(&mut self.seen) {
            let is_ours = seen.found.user == own_user() && !seen.found.is_contained;
            let opened = is_ours.then(|| Program::open(&seen.found.way(), seen.found.user).ok()).flatten();
            let opened = opened.filter(Program::is_dead);
            match opened.and_then(|mut program| program.definitions().is_ok().then_some(program)) {
                Some(program) => dead.push((program, seen)),
                None => self.seen.push(seen),
            }
        }
        if dead.is_empty() {
            return Ok(Answer::Recovered { rescued: None });
        }
        // In the order in which they are written.
        dead.sort_by_key(|(program, _)| program.identity().clock as u8);
        let (mut programs, mut left): (Vec<_>, Vec<_>) = dead.into_iter().unzip();
        let made = crate::session::make_folder(output).map_err(|error| format!("{}: {error}", output.display()));
        let rescued = made.and_then(|()| rescue(&mut programs, output, true).map_err(|error| error.to_string()));
        match rescued {
            Ok(mut rescued) => {
                for (program, seen) in rescued.programs.iter_mut().zip(&left) {
                    program.file.clone_from(&seen.found.path);
                }
                let is_whole = rescued.problems.is_empty();
                left.retain(|seen| !is_whole || seen.found.delete().is_err());
                self.seen.append(&mut left);
                Ok(Answer::Recovered { rescued: Some(rescued) })
            }
            Err(message) => {
                self.seen.append(&mut left);
                Err(format!("{message}: what the programs have left stays where it is"))
            }
        }
    }
}
