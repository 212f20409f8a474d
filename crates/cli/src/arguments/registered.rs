//! The commands for analyses of the registry, beside the variants of [`Command`].

use clap::{Args, FromArgMatches, Subcommand};
use kymo_session::{AnalysisEntry, Wishes, analyses, find_analysis};

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

/// The help of the analyses explains periods below the options.
fn explained_below(period: clap::Arg) -> clap::Arg {
    let help = period.get_help().map(ToString::to_string).unwrap_or_default();
    period.help(help.replace("See `kymo cpu --help`", "See below"))
}

/// Without the options that the analysis rejects in the help; they stay known, so that the rejection can say why.
fn only_supported(command: clap::Command, entry: &AnalysisEntry) -> clap::Command {
    let none = Wishes::default;
    let options = [
        ("min", Wishes { min_ns: Some(0), ..none() }),
        ("max", Wishes { max_ns: Some(0), ..none() }),
        ("min_size", Wishes { min_bytes: Some(0), ..none() }),
        ("max_size", Wishes { max_bytes: Some(0), ..none() }),
        ("cpu", Wishes { cpus: vec![0], ..none() }),
        ("tid", Wishes { tids: vec![0], ..none() }),
        ("procname", Wishes { comms: vec![String::new()], ..none() }),
        ("irq", Wishes { irqs: vec![0], ..none() }),
        ("softirq", Wishes { softirqs: vec![0], ..none() }),
        ("name", Wishes { names: vec![String::new()], ..none() }),
    ];
    let rejects = |wishes: &Wishes| entry.options.unsupported(wishes).is_some();
    let rejected = options.iter().filter(|(_, wishes)| rejects(wishes)).map(|(name, _)| *name);
    let without_words = entry.options.by.is_empty().then_some("by");
    let words = format!("Group by any of: {}", entry.options.by.join(", "));
    let command = command.mut_arg("by", |option| option.help(words));
    rejected.chain(without_words).fold(command, |command, name| command.mut_arg(name, |option| option.hide(true)))
}

fn with_analyses(command: clap::Command) -> clap::Command {
    let mut order: Vec<String> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
    let (mut command, mut of_analyses) = (command, Vec::new());
    for entry in analyses() {
        let name: &'static str = &entry.name;
        if let Some(entry) = registered(name) {
            let examples: String = entry.examples.lines().map(|line| format!("\n  {line}")).collect();
            let added = AnalysisArguments::augment_args(clap::Command::new(name)).mut_arg("period", explained_below);
            command = command.subcommand(added.after_help(format!("Examples:{examples}{PERIODS}")));
        }
        if name != DESCRIBES_ITSELF {
            command = command.mut_subcommand(name, |known| only_supported(known, entry).about(&*entry.sentence));
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
