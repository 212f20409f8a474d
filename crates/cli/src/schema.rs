//! `kymo schema`

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use kymo_define::diff::{ChangeGravity, SchemaChange, diff};
use kymo_define::{Schema, SchemaProblems, emit};
use serde_json::{Value, json};

use crate::CommandOutcome;
use crate::arguments::{
    SchemaArguments, SchemaBuildArguments, SchemaCheckArguments, SchemaCommand, SchemaDiffArguments,
    SchemaFormatArguments, SchemaTarget,
};
use crate::stop::StopReason;

/// Runs the command.
pub(crate) fn run(arguments: &SchemaArguments) -> Result<CommandOutcome, StopReason> {
    match &arguments.command {
        SchemaCommand::Build(build) => self::build(build),
        SchemaCommand::Check(check) => self::check(check),
        SchemaCommand::Diff(diff) => changes(diff),
        SchemaCommand::Format(format) => layout(format),
    }
}

fn outcome(is_good: bool) -> CommandOutcome {
    if is_good { CommandOutcome::Complete } else { CommandOutcome::Incomplete }
}

/// A schema, and its mistakes.
fn read(path: &Path) -> Result<(Option<Schema>, SchemaProblems), StopReason> {
    kymo_define::read(path, &kymo_define::read_file)
        .map_err(|error| StopReason::unanswerable(&format!("{}: {error}", path.display())))
}

/// Reports problems on standard error.
fn tell(problems: &SchemaProblems) {
    for problem in &problems.problems {
        message!("{}", problems.line(problem));
    }
}

fn build(arguments: &SchemaBuildArguments) -> Result<CommandOutcome, StopReason> {
    let (schema, problems) = read(&arguments.file)?;
    tell(&problems);
    let Some(schema) = schema else { return Ok(CommandOutcome::Incomplete) };
    let mut files = Vec::new();
    for target in targets(arguments, &schema) {
        match made(&schema, target, &arguments.file) {
            Ok(made) => files.extend(made),
            // Barrelfish's own names may be any.
            Err(problem) if arguments.only.is_empty() => message!("warning: {}: not made: {problem}", word(target)),
            Err(problem) => return Err(StopReason::unanswerable(&problem)),
        }
    }
    if arguments.output == Path::new("-") {
        let [(_, text)] = &files[..] else {
            let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
            return Err(StopReason::Usage(format!(
                "standard output is for one file, not for {}: choose another target with --only, or a folder",
                names.join(", ")
            )));
        };
        io::stdout().write_all(text.as_bytes())?;
        return Ok(CommandOutcome::Complete);
    }
    let folder = &arguments.output;
    let named = |path: &Path, error: &io::Error| StopReason::unanswerable(&format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| named(folder, &error))?;
    let mut out = io::stdout().lock();
    for (name, text) in files {
        let path = folder.join(name);
        let is_same = fs::read(&path).is_ok_and(|known| known == text.as_bytes());
        if !is_same {
            fs::write(&path, text).map_err(|error| named(&path, &error))?;
        }
        writeln!(out, "{}{}", path.display(), if is_same { " (unchanged)" } else { "" })?;
    }
    Ok(CommandOutcome::Complete)
}

fn targets(arguments: &SchemaBuildArguments, schema: &Schema) -> Vec<SchemaTarget> {
    use SchemaTarget::{C, Ctf, Json, Page, Pleco, Roles, Rust};
    match &arguments.only[..] {
        [] if schema.is_plain => vec![Pleco, C, Rust, Json, Ctf, Roles, Page],
        [] => vec![C, Rust, Json, Ctf, Roles, Page],
        only => only.to_vec(),
    }
}

/// The word of a target.
fn word(target: SchemaTarget) -> String {
    target.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The files of a target: their names and texts.
fn made(schema: &Schema, target: SchemaTarget, file: &Path) -> Result<Vec<(String, String)>, String> {
    let name = &schema.name;
    let one = |ending: &str, text: String| vec![(format!("{name}{ending}"), text)];
    Ok(match target {
        SchemaTarget::C => one("_events.h", emit::c::header(schema)?),
        SchemaTarget::Rust => one("_events.rs", emit::rust::module(schema)?),
        SchemaTarget::Json => one("_schema.json", format!("{:#}\n", emit::json::schema(schema))),
        SchemaTarget::Ctf => {
            let mut files = one(".tsdl", emit::ctf::metadata(schema, emit::ctf::CtfVersion::Ctf18)?);
            files.extend(one(".ctf2.json", emit::ctf::metadata(schema, emit::ctf::CtfVersion::Ctf2)?));
            files
        }
        SchemaTarget::Roles => one("_roles.toml", emit::roles::mapping(schema)),
        SchemaTarget::Page => one(".md", emit::page::page(schema)),
        SchemaTarget::Pleco => {
            // The guard is made of the file's name.
            let stem = if schema.is_plain { file.file_stem().map(|stem| stem.to_string_lossy()) } else { None };
            let stem = stem.unwrap_or_else(|| name.into());
            vec![
                (format!("{stem}.h"), emit::pleco::header(schema, &stem)),
                (format!("{stem}.json"), emit::pleco::json(schema)),
            ]
        }
    })
}

fn check(arguments: &SchemaCheckArguments) -> Result<CommandOutcome, StopReason> {
    let (mut is_good, mut found) = (true, Vec::new());
    let mut out = io::stdout().lock();
    for path in &arguments.files {
        let (schema, problems) = match read(path) {
            Ok(read) => read,
            Err(reason) => {
                // The other files may be right.
                is_good = false;
                match arguments.json {
                    true => found.push(json!({"file": path.display().to_string(), "error": reason.text()})),
                    false => writeln!(out, "error: {}", reason.text())?,
                }
                continue;
            }
        };
        is_good &= schema.is_some() && (!arguments.strict || problems.problems.is_empty());
        if arguments.json {
            found.push(json!({
                "file": path.display().to_string(),
                "problems": problems.problems.iter().map(|problem| problem_json(&problems, problem)).collect::<Vec<_>>(),
            }));
            continue;
        }
        for problem in &problems.problems {
            writeln!(out, "{}", problems.line(problem))?;
        }
        match schema {
            Some(schema) => writeln!(out, "{}: {}", path.display(), summary(&schema))?,
            None => writeln!(out, "{}: has mistakes", path.display())?,
        }
    }
    if arguments.json {
        writeln!(out, "{}", json!({ "is_good": is_good, "files": found }))?;
    }
    Ok(outcome(is_good))
}

/// `schema shop, version 3: 8 events of 1 subsystem, 2 enumerations; no mistakes`
fn summary(schema: &Schema) -> String {
    let count = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let events = schema.subsystems.iter().map(|subsystem| subsystem.events.len()).sum();
    let kind = if schema.is_plain {
        "file of pleco".to_owned()
    } else {
        format!("schema {}, version {}", schema.name, schema.version)
    };
    format!(
        "{kind}: {} of {}, {}; no mistakes",
        count(events, "event"),
        count(schema.subsystems.len(), "subsystem"),
        count(schema.enumerations.len(), "enumeration")
    )
}

fn problem_json(problems: &SchemaProblems, problem: &kymo_define::SchemaProblem) -> Value {
    let place = problem.place;
    json!({
        "file": problems.files.get(place.file).map(|file| file.display().to_string()),
        "line": place.line,
        "column": place.column,
        "gravity": if problem.is_warning { "warning" } else { "error" },
        "message": problem.message,
        "help": problem.help,
    })
}

fn changes(arguments: &SchemaDiffArguments) -> Result<CommandOutcome, StopReason> {
    let schema = |path: &PathBuf| match read(path)? {
        (Some(schema), _) => Ok(schema),
        (None, problems) => {
            tell(&problems);
            Err(StopReason::unanswerable(&format!("{} has mistakes, so that it cannot be compared", path.display())))
        }
    };
    let (old, new) = (schema(&arguments.old)?, schema(&arguments.new)?);
    let changes = diff(&old, &new);
    let least = if arguments.strict { ChangeGravity::Doubtful } else { ChangeGravity::Numbers };
    let is_good = changes.iter().all(|change| change.gravity < least);
    let mut out = io::stdout().lock();
    if arguments.json {
        let change = |change: &SchemaChange| json!({"gravity": change.gravity.word(), "about": change.about, "what": change.what});
        writeln!(out, "{}", json!({ "breaks": !is_good, "changes": changes.iter().map(change).collect::<Vec<_>>() }))?;
        return Ok(outcome(is_good));
    }
    for change in &changes {
        writeln!(out, "{change}")?;
    }
    let verdict = match (changes.is_empty(), is_good) {
        (true, _) => "nothing changes",
        (false, true) => "nothing breaks",
        (false, false) => "something breaks: see above",
    };
    writeln!(out, "{} to {}: {verdict}", arguments.old.display(), arguments.new.display())?;
    Ok(outcome(is_good))
}

fn layout(arguments: &SchemaFormatArguments) -> Result<CommandOutcome, StopReason> {
    let mut is_good = true;
    let mut out = io::stdout().lock();
    for path in &arguments.files {
        let wrong = |error: io::Error| StopReason::unanswerable(&format!("{}: {error}", path.display()));
        let text = fs::read_to_string(path).map_err(wrong)?;
        match kymo_define::layout(path, &text) {
            Err(problems) => {
                tell(&problems);
                is_good = false;
            }
            Ok(tidy) if tidy == text => {}
            Ok(_) if arguments.check => {
                writeln!(out, "{}: not tidy", path.display())?;
                is_good = false;
            }
            Ok(tidy) => {
                fs::write(path, tidy).map_err(wrong)?;
                writeln!(out, "{}", path.display())?;
            }
        }
    }
    Ok(outcome(is_good))
}
