//! The commands for analyses of the registry, beside the variants of [`Command`].

use clap::{Args, FromArgMatches, Subcommand};
use kymo_session::{AnalysisEntry, analyses, find_analysis};

use super::groups::with_groups;
use super::{AnalysisArguments, Command};

/// Any command.
pub(crate) struct AnyCommand(pub(crate) Command);

/// In help, analyses stand behind this command.
const BEHIND: &str = "metadata";
/// A command that does more than the analysis of its name, and describes itself.
const DESCRIBES_ITSELF: &str = "count";

const PERIODS: &str = "

`--period 'NAME : BEGIN [: END]'` separates the results by periods between events. In its
conditions, `$begin` is the event that began the period. `NAME(OTHER) : ...` begins only while a
period OTHER is open; `$parent` is the first event of that one. Put spaces around the colons.";

/// The analysis that is a command of this name, unless [`Command`] has one.
fn registered(name: &str) -> Option<&'static AnalysisEntry> {
    find_analysis(name).filter(|_| !Command::has_subcommand(name))
}

fn with_analyses(command: clap::Command) -> clap::Command {
    let mut order: Vec<String> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
    let (mut command, mut of_analyses) = (command, Vec::new());
    for entry in analyses() {
        let name: &'static str = &entry.name;
        if let Some(entry) = registered(name) {
            let examples: String = entry.examples.lines().map(|line| format!("\n  {line}")).collect();
            let added = AnalysisArguments::augment_args(clap::Command::new(name));
            command = command.subcommand(added.after_help(format!("Examples:{examples}{PERIODS}")));
        }
        if name != DESCRIBES_ITSELF {
            command = command.mut_subcommand(name, |known| known.about(&*entry.sentence));
            of_analyses.push(name.to_owned());
        }
    }
    order.retain(|known| !of_analyses.contains(known));
    let behind = order.iter().position(|known| known == BEHIND).map_or(order.len(), |place| place + 1);
    order.splice(behind..behind, of_analyses);
    let ordered = order
        .iter()
        .enumerate()
        .fold(command, |command, (place, name)| command.mut_subcommand(name, |known| known.display_order(place)));
    with_groups(ordered)
}

impl Subcommand for AnyCommand {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        with_analyses(Command::augment_subcommands(command))
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        with_analyses(Command::augment_subcommands_for_update(command))
    }

    fn has_subcommand(name: &str) -> bool {
        Command::has_subcommand(name) || find_analysis(name).is_some()
    }
}

impl FromArgMatches for AnyCommand {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand().and_then(|(name, told)| Some((registered(name)?, told))) {
            Some((entry, told)) => Ok(Self(Command::Analysis(entry, AnalysisArguments::from_arg_matches(told)?))),
            None => Command::from_arg_matches(matches).map(Self),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
