//! The commands by what people want to do, as `kymo --help` lists them.
//!
//! ```text
//! Record programs:
//!   record    Record the events of user-space programs as a trace
//!   ...
//!
//! Ask questions:            count, the analyses of the registry, state, ...
//! ```

use std::fmt::Write;

use clap::Command;
use kymo_session::find_analysis;

/// The command behind which analyses stand.
const BEFORE_ANALYSES: &str = "count";

/// Groups of commands; analyses belong to the one with [`BEFORE_ANALYSES`].
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Record programs",
        &[
            "record", "watch", "enable", "disable", "trigger", "limit", "snapshot", "stop", "status", "sessions",
            "doctor", "recover", "schema",
        ],
    ),
    ("Look at a trace", &["info", "view", "print", "check", "metadata"]),
    ("Ask questions", &[BEFORE_ANALYSES, "state", "analyse", "sql", "filter", "bpf", "roles"]),
    ("Change a trace", &["cut", "index"]),
    ("For other programs", &["export", "lami", "completions", "man"]),
];

/// Lists commands by group in the help of the command that has them.
pub(super) fn with_groups(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let known: Vec<(String, String)> = command
        .get_subcommands()
        .map(|known| (known.get_name().to_owned(), known.get_about().map(ToString::to_string).unwrap_or_default()))
        .collect();
    let width = known.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (title, names) in grouped(&known.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>()) {
        let _ = write!(text, "\n{header}{title}:{header:#}\n");
        for name in names {
            let about = known.iter().find(|(known, _)| known == name).map_or("", |(_, about)| about);
            let _ = writeln!(text, "  {literal}{name}{literal:#}{:1$}  {about}", "", width - name.len());
        }
    }
    text += "\n`kymo help COMMAND` describes a command.\n\n";
    command.help_template(format!("{text}{header}Options:{header:#}\n{{options}}{{after-help}}"))
}

/// The names in each group.
fn grouped<'n>(known: &[&'n str]) -> Vec<(&'static str, Vec<&'n str>)> {
    let of_analyses = |name: &&str| *name != BEFORE_ANALYSES && find_analysis(name).is_some();
    let analyses: Vec<&'n str> = known.iter().copied().filter(of_analyses).collect();
    let find = |name: &&str| known.iter().copied().find(|known| known == name);
    let mut groups: Vec<(&'static str, Vec<&'n str>)> = Vec::new();
    for (title, names) in GROUPS {
        let mut found: Vec<&'n str> = names.iter().filter_map(find).collect();
        if let Some(place) = found.iter().position(|name| *name == BEFORE_ANALYSES) {
            found.splice(place + 1..=place, analyses.iter().copied());
        }
        groups.push((title, found));
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Arguments::command();
        let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut places: BTreeMap<&str, usize> = names.iter().map(|name| (*name, 0)).collect();
        for name in grouped(&names).into_iter().flat_map(|(_, names)| names) {
            *places.get_mut(name).expect("only commands are in groups") += 1;
        }
        let wrong: Vec<_> = places.iter().filter(|(_, times)| **times != 1).collect();
        assert!(wrong.is_empty(), "add these commands to one of GROUPS: {wrong:?}");
        let written = GROUPS.iter().flat_map(|(_, names)| *names);
        let absent: Vec<_> =
            written.filter(|name| !names.contains(name) && **name != "view" && **name != "export").collect();
        assert!(absent.is_empty(), "there are no such commands: {absent:?}");
    }

    #[test]
    fn each_command_has_one_line_in_help() {
        let help = Arguments::command().render_help().to_string();
        for command in Arguments::command().get_subcommands() {
            let about = command.get_about().expect("commands say what they do").to_string();
            let line = |line: &&str| line.split_whitespace().next() == Some(command.get_name());
            let lines: Vec<&str> = help.lines().filter(line).collect();
            assert!(lines.len() == 1 && lines[0].ends_with(&about), "{}: {lines:?}", command.get_name());
            assert!(lines[0].chars().count() <= 100, "{}", lines[0]);
        }
        assert!(
            !help.contains("Commands:") && help.contains("\nOptions:\n") && help.contains("\nExamples:\n"),
            "{help}"
        );
    }
}
