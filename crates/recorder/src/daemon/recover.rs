//! Recovery in the recorder of a user: memory of dead programs becomes a trace, and is then
//! deleted.

use std::path::Path;

use super::Daemon;
use crate::folder::own_user;
use crate::program::Program;
use crate::protocol::RecorderReply;
use crate::recover::rescue;

impl Daemon {
    /// Writes the events that dead programs have left and that no session wants, and deletes their
    /// memory once it is written.
    pub(crate) fn recover(&mut self, output: &Path) -> Result<RecorderReply, String> {
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
            return Ok(RecorderReply::Recovered { rescued: None });
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
                Ok(RecorderReply::Recovered { rescued: Some(rescued) })
            }
            Err(message) => {
                self.seen.append(&mut left);
                Err(format!("{message}: the memory of the programs stays in place"))
            }
        }
    }
}
