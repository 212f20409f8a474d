//! `kymo recover`: events in the memory of ended programs, or in copies of it, become a trace.
//!
//! ```text
//! memory ── everything that its lanes hold, copied ──> trace      the memory stays as it is; whoever asked may delete it then
//! ```

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use kymo_lane::ClockSource;

use crate::clock::TickSource;
use crate::folder::{own_folder, own_user, shared_folder};
use crate::program::{Program, ProgramRefusal};
use crate::protocol::{Rescued, RescuedProgram};
use crate::session::folder_of;
use crate::trace::{Output, OutputOptions, SingleTrace, Tally, TraceError};

/// Why no trace is written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum RescueProblem {
    #[error("{}: {refusal}", path.display())]
    Memory { path: PathBuf, refusal: ProgramRefusal },
    #[error("{}: {error}", path.display())]
    Output { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Writes the events in copies of programs' memory as a trace in a folder that is made. The copies
/// stay as they are.
///
/// # Errors
///
/// One of them is not a program's memory, or the trace cannot be written.
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
    // The number of a program's memory is unique: where the memory still exists, the program ran
    // since the system booted.
    let folders = [own_folder(), shared_folder(own_user())];
    let names = folders.iter().flat_map(std::fs::read_dir).flatten().flatten().map(|entry| entry.file_name());
    let here: HashSet<u64> = names.filter_map(|name| crate::program::key(Path::new(&name))).collect();
    let has_times = programs.iter().all(|program| here.contains(&program.identity().key));
    Ok(rescue(&mut programs, output, has_times)?)
}

/// Writes all events that programs hold.
pub(crate) fn rescue(programs: &mut [Program], output: &Path, has_times: bool) -> Result<Rescued, TraceError> {
    let mut rescued = Rescued { output: output.to_owned(), has_times, ..Rescued::default() };
    for source in [ClockSource::Counter, ClockSource::Monotonic] {
        let mut its: Vec<_> = programs.iter_mut().filter(|program| program.identity().clock == source).collect();
        if its.is_empty() {
            continue;
        }
        let (first, last) = its
            .iter_mut()
            .filter_map(|program| program.span())
            .fold((u64::MAX, 0), |(first, last), its| (first.min(its.0), last.max(its.1)));
        let mut clock = if has_times { TickSource::begin(source) } else { TickSource::still(source, last) };
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
    if let Err(error) = program.snapshot(&mut SingleTrace(trace)) {
        problems.push(format!("{}: {error}", file.display()));
    }
    if let Some(error) = trace.error() {
        problems.push(error.to_string());
    }
    let events = trace.tally().events - before.events;
    RescuedProgram { name, pid, file, events, lost: program.lost_ever() }
}
