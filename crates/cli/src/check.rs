//! `kymo check`

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use kymo_session::{CheckFinding, Gravity, Progress, json};

use crate::CommandOutcome;
use crate::answer::screen::Screen;
use crate::arguments::{CheckArguments, Color};
use crate::message::{INDENT, plain_output};
use crate::progress::watched;
use crate::show::counted;

/// Shows the problems of traces.
pub(crate) fn run(arguments: &CheckArguments) -> io::Result<CommandOutcome> {
    let progress = Progress::default();
    let options = arguments.import.options();
    let findings = watched(&progress, || kymo_session::check(&arguments.traces, &options, &progress));
    let findings = findings.map_err(io::Error::other)?;
    let is_error = |found: &CheckFinding| is_error(found, arguments.strict);
    let errors = findings.iter().filter(|found| is_error(found)).count();
    let mut out = plain_output();
    if arguments.json {
        let findings: Vec<_> = findings.iter().map(|found| json::finding(found, is_error(found))).collect();
        writeln!(out, "{}", serde_json::json!({"errors": errors, "findings": findings}))?;
    } else {
        let screen = Screen::of_output(Color::Never, false);
        for (found, others) in alike(&findings) {
            let mut text = Vec::new();
            show(found, is_error(found), &others, &mut text)?;
            out.write_all(screen.hung(&String::from_utf8_lossy(&text), INDENT).as_bytes())?;
        }
        match (findings.len(), errors) {
            (0, _) => writeln!(out, "no problems found")?,
            (all, errors) => {
                let (errors, warnings) = (errors as u64, (all - errors) as u64);
                writeln!(out, "{}, {}", counted(errors, "error"), counted(warnings, "warning"))?;
            }
        }
    }
    Ok(if errors == 0 { CommandOutcome::Complete } else { CommandOutcome::Incomplete })
}

/// Whether a part cannot be read, or if `strict` not without assumptions.
pub(crate) fn is_error(found: &CheckFinding, strict: bool) -> bool {
    match found.gravity {
        Gravity::Error => true,
        Gravity::Assumption => strict,
        Gravity::Warning => false,
    }
}

/// Findings, each with those that differ from it in nothing but the file.
fn alike(findings: &[CheckFinding]) -> Vec<(&CheckFinding, Vec<&CheckFinding>)> {
    let mut groups: Vec<(&CheckFinding, Vec<&CheckFinding>)> = Vec::new();
    let mut places = HashMap::new();
    for found in findings {
        let CheckFinding { gravity, rule, message, help, times, place: _ } = found;
        let group = *places.entry((*gravity as u8, *rule, message, help, *times)).or_insert(groups.len());
        match groups.get_mut(group) {
            Some((_, others)) => others.push(found),
            None => groups.push((found, Vec::new())),
        }
    }
    groups
}

fn severity(is_error: bool) -> &'static str {
    if is_error { "error" } else { "warning" }
}

/// Names of files at most that have the same problem as another one.
const OTHERS_MAX: usize = 8;

fn show(found: &CheckFinding, is_error: bool, others: &[&CheckFinding], out: &mut impl Write) -> io::Result<()> {
    let CheckFinding { rule, place, message, times, .. } = found;
    writeln!(out, "{place}: {}[{rule}]: {message}", severity(is_error))?;
    if let Some(help) = &found.help {
        writeln!(out, "  help: {help}")?;
    }
    if *times > 1 {
        writeln!(out, "  and {} more in this file", counted(times - 1, "time"))?;
    }
    if !others.is_empty() {
        let name = |other: &&CheckFinding| {
            let path = Path::new(&other.place);
            let is_beside = path.parent() == Path::new(place).parent();
            path.file_name().filter(|_| is_beside).map_or(other.place.clone(), |name| name.to_string_lossy().into())
        };
        let names: Vec<String> = others.iter().take(OTHERS_MAX).map(name).collect();
        let more = others.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        writeln!(out, "  also {}{more}", names.join(", "))?;
    }
    Ok(())
}
