//! The `kymo` command: puts questions to `session` and `recorder` and shows the answer.
//!
//! It must never know the code behind them.

// `message` says what is not written as it is, and what happens where nothing can be written.
#![deny(clippy::print_stderr)]

#[macro_use]
mod message;

mod analyses;
mod answer;
mod arguments;
mod bpf;
mod check;
mod count;
mod cut;
#[cfg(feature = "export")]
mod export;
mod filter;
mod follow;
mod index;
mod info;
mod lami;
mod metadata;
mod print;
mod progress;
mod quantity;
#[cfg(target_os = "linux")]
mod record;
mod roles;
mod schema;
mod select;
mod show;
#[cfg(feature = "sql")]
mod sql;
mod state;
mod stop;
#[cfg(feature = "view")]
mod view;
pub mod words;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
#[cfg(feature = "view")]
use kymo_session::Follow;
use kymo_session::{Compile, ImportOptions, OpenFailure, OpenOptions, Session, TraceOffset};

use answer::screen::Screen;
use arguments::{AnyCommand, Arguments, Command, Common};
use stop::StopReason;

/// The outcome of a run of the command.
pub(crate) enum CommandOutcome {
    /// Everything was read.
    Complete,
    /// Part of the input could not be read; the command showed the rest.
    Incomplete,
    /// The exit status of a program that the command started.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "programs are started to be recorded"))]
    Status(u8),
}

/// Runs a command line, which begins with the program's name, and returns the exit status for the
/// process. Wrong usage ends the process.
#[must_use]
pub fn run_command(words: Vec<OsString>) -> u8 {
    // It is made once: that takes a quarter of a millisecond.
    #[cfg(target_os = "linux")]
    if let Some(status) = record::become_helper(&words).or_else(|| record::become_recorder(&words)) {
        return status;
    }
    let mut command = Arguments::command();
    if let Some(word) = mistyped_command(&command, &words) {
        report_mistyped(&command, word);
        return 2;
    }
    let words = with_default_command(&command, words);
    let is_lami = words.get(1).is_some_and(|word| word == "lami");
    let name = words.get(1).and_then(|word| word.to_str()).map(str::to_owned);
    let arguments = match parse(&mut command, words) {
        Ok(arguments) => arguments,
        // Its errors are objects, too.
        Err(error) if is_lami && error.use_stderr() => {
            let _ = writeln!(io::stdout(), "{}", lami::wrong_usage(&error.to_string()));
            return 2;
        }
        Err(error) => {
            if words_of_command(&error) {
                let _ = error.print();
                message!(
                    "\nhelp: the program to record stands behind `--`: kymo record [OPTIONS] -- PROGRAM [ARGUMENTS]"
                );
                return 2;
            }
            error.exit()
        }
    };
    match run(&arguments) {
        Ok(CommandOutcome::Complete) => u8::from(message::is_lost()),
        Ok(CommandOutcome::Incomplete) => 1,
        Ok(CommandOutcome::Status(status)) => status,
        Err(stop) => stopped(stop, name.as_deref()),
    }
}

/// Reports on standard error why there is no answer; returns the exit status for the process.
/// `command` is the requested one.
fn stopped(stop: StopReason, command: Option<&str>) -> u8 {
    match stop {
        // The reader of our output has seen enough.
        StopReason::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        StopReason::Output(error) => {
            message::write_line(&format!("error: {error}"));
            1
        }
        StopReason::Usage(message) => {
            let mut all = Arguments::command();
            all.build();
            let asked = command.and_then(|name| all.find_subcommand(name)).cloned();
            // The parser cuts no lines of messages.
            const PREFIX: &str = "error: ";
            let message = Screen::of_messages().hung(&format!("{PREFIX}{message}"), message::INDENT).into_owned();
            let message = message.strip_prefix(PREFIX).unwrap_or(&message);
            asked.unwrap_or(all).error(ErrorKind::ValueValidation, message).exit()
        }
        StopReason::Expression(lines) => {
            message::write_line(lines.trim_end());
            2
        }
    }
}

/// Whether the user has written a program to record where options belong.
fn words_of_command(error: &clap::Error) -> bool {
    use clap::error::{ContextKind, ContextValue};
    let is_word = |value: &ContextValue| matches!(value, ContextValue::String(word) if !word.starts_with('-'));
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    error.kind() == ErrorKind::UnknownArgument
        && error.get(ContextKind::InvalidArg).is_some_and(is_word)
        && usage.contains("kymo record")
}

fn parse(command: &mut clap::Command, words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let matches = command.try_get_matches_from_mut(words)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(command))
}

/// Words that are commands of the parser's own.
const OWN_WORDS: [&str; 5] = ["help", "-h", "--help", "-V", "--version"];

/// The word in the place of a command that is neither a command nor the name of a file, but like a command's; also that
/// behind `help` and `man`.
fn mistyped_command<'w>(command: &clap::Command, words: &'w [OsString]) -> Option<&'w str> {
    let word = |place: usize| words.get(place).and_then(|word| word.to_str());
    let (word, is_path) = match (word(1)?, word(2)) {
        ("help" | "man", asked) => (asked?, false),
        (word, _) => (word, std::fs::symlink_metadata(word).is_ok()),
    };
    let is_known = OWN_WORDS.contains(&word) || command.get_subcommands().any(|known| known.get_name() == word);
    let is_like = || foreign_command(word).is_some() || !commands_like(command, word).is_empty();
    (!is_known && !is_path && !word.starts_with('-') && is_like()).then_some(word)
}

/// Commands that other tracers have, and those of kymo that do the same.
const FOREIGN: [(&str, &str); 6] = [
    ("create", "`kymo record --detach --name NAME` begins a session"),
    ("start", STARTS),
    ("begin", STARTS),
    ("resume", STARTS),
    ("pause", "`kymo trigger --stop` stops recording, and `kymo trigger --start` goes on"),
    ("destroy", "`kymo stop NAME` ends a session"),
];
const STARTS: &str = "`kymo record` begins a session; `kymo trigger --start --session NAME` goes on with one that records \
                      nothing now";

/// The remedy for a word that is a command of other tracers.
fn foreign_command(word: &str) -> Option<&'static str> {
    FOREIGN.iter().find(|(known, _)| *known == word).map(|(_, help)| *help)
}

/// Names of commands that are like this word, the nearest first.
fn commands_like(command: &clap::Command, word: &str) -> Vec<String> {
    kymo_session::nearest(word, command.get_subcommands().map(clap::Command::get_name))
}

fn report_mistyped(command: &clap::Command, word: &str) {
    if let Some(help) = foreign_command(word) {
        message!("error: there is no command and no file `{word}`\nhelp: {help}");
        return;
    }
    let near: Vec<String> = commands_like(command, word).iter().map(|name| format!("`kymo {name}`")).collect();
    message!("error: there is no command and no file `{word}`\nhelp: did you mean {}?", near.join(" or "));
}

/// `kymo TRACE...` means `kymo info TRACE...`, and so does `kymo --json TRACE...`;
/// `kymo TRACE... --view` means `kymo view TRACE...`. Programs that want to run
/// `kymo lami ANALYSIS` call `kymo --mi-version`.
fn with_default_command(command: &clap::Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let known = |word: &str| OWN_WORDS.contains(&word) || command.get_subcommands().any(|sub| sub.get_name() == word);
    if words.get(1).and_then(|word| word.to_str()).is_none_or(|word| !known(word)) && words.len() > 1 {
        let view = words.iter().position(|word| word == "--view").filter(|_| cfg!(feature = "view"));
        let command = match view {
            Some(place) => {
                words.remove(place);
                "view"
            }
            None if words[1] == "--mi-version" => "lami",
            None => "info",
        };
        words.insert(1, command.into());
    }
    words
}

#[cfg(not(feature = "sql"))]
const WITHOUT_SQL: &str = "\
error: this kymo was built without SQL
help: `pip install 'kymograph[sql]'` brings one that has it, and so does its source:
      `cargo build --release --package kymo-cli --features sql`
";

fn run(arguments: &Arguments) -> Result<CommandOutcome, StopReason> {
    let AnyCommand(command) = &arguments.command;
    match command {
        Command::Record(_)
        | Command::Enable(_)
        | Command::Disable(_)
        | Command::Trigger(_)
        | Command::Limit(_)
        | Command::Watch(_)
        | Command::Snapshot(_)
        | Command::Stop(_)
        | Command::Status(_)
        | Command::Sessions(_)
        | Command::Doctor(_)
        | Command::Recover(_) => record(command),
        Command::Filter(arguments) if arguments.session.is_some() => record(command),
        #[cfg(feature = "view")]
        Command::View(arguments) if arguments.record => record(command),
        Command::Info(arguments) => match open(&arguments.common, 0) {
            Some(session) => Ok(info::run(&session, arguments)?),
            None => Ok(CommandOutcome::Incomplete),
        },
        Command::Count(arguments) if arguments.follow => follow::count(arguments),
        Command::Print(arguments) if arguments.follow => follow::print(arguments),
        Command::Count(arguments) => match open(&arguments.common, 0) {
            Some(session) => count::run(&session, arguments),
            None => Ok(CommandOutcome::Incomplete),
        },
        Command::Print(arguments) => match open(&arguments.common, arguments.shift_ns()) {
            Some(session) => print::run(&session, arguments),
            None => Ok(CommandOutcome::Incomplete),
        },
        Command::Cut(arguments) => match open(&arguments.common, 0) {
            Some(session) => cut::run(&session, arguments),
            None => Ok(CommandOutcome::Incomplete),
        },
        #[cfg(feature = "view")]
        Command::View(arguments) if arguments.lacks_record().is_some() => {
            let what = arguments.lacks_record().unwrap_or_default();
            Err(StopReason::Usage(format!(
                "{what} selects events to record: use `kymo view --record [OPTIONS] -- COMMAND` to record and show them"
            )))
        }
        #[cfg(feature = "view")]
        Command::View(arguments) if arguments.traces.is_empty() => view::choose(arguments),
        #[cfg(feature = "view")]
        Command::View(arguments) if Follow::is_awaited(&arguments.traces) => view::wait(arguments),
        #[cfg(feature = "view")]
        Command::View(arguments) => {
            match open_paths(&arguments.traces, arguments.threads, arguments.reading.options()) {
                Some(session) => view::show(session, arguments),
                None => Ok(CommandOutcome::Incomplete),
            }
        }
        #[cfg(feature = "export")]
        Command::Export(arguments) => export(arguments),
        #[cfg(feature = "sql")]
        Command::Sql(arguments) => sql::run(arguments),
        #[cfg(not(feature = "sql"))]
        Command::Sql(_) => Err(StopReason::Expression(WITHOUT_SQL.to_owned())),
        Command::Filter(arguments) if arguments.traces.is_empty() => filter::check(arguments),
        Command::Filter(arguments) => match open_paths(&arguments.traces, 0, arguments.reading.options()) {
            Some(session) => filter::run(&session, arguments),
            None => Ok(CommandOutcome::Incomplete),
        },
        Command::Roles(arguments) => match open_paths(&arguments.traces, 0, arguments.import.reading()) {
            Some(session) => roles::run(&session, arguments),
            None => Ok(CommandOutcome::Incomplete),
        },
        Command::Bpf(arguments) => bpf::run(arguments),
        Command::Schema(arguments) => schema::run(arguments),
        Command::Index(arguments) => Ok(index::run(arguments)?),
        Command::Check(arguments) => Ok(check::run(arguments)?),
        Command::Metadata(arguments) => Ok(metadata::run(arguments)?),
        Command::Analysis(..) | Command::Analyse(_) => analyses::run_command(command),
        Command::Pairs(_) | Command::Breakdown(_) | Command::Periods(_) => analyses::run_command(command),
        Command::State(arguments) => match open(&arguments.common, 0) {
            Some(session) => state::run(&session, arguments),
            None => Ok(CommandOutcome::Incomplete),
        },
        Command::Lami(arguments) => Ok(lami::run(arguments)?),
        Command::Completions { shell } => {
            // The generators take it for a mistake of ours if their output goes nowhere.
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "kymo", &mut script);
            io::stdout().write_all(&script)?;
            Ok(CommandOutcome::Complete)
        }
        Command::Man { output: Some(folder), .. } => Ok(manual(folder)?),
        Command::Man { page, output: None } => Ok(man(page.as_deref())?),
    }
}

#[cfg(target_os = "linux")]
fn record(command: &Command) -> Result<CommandOutcome, StopReason> {
    record::run(command)
}

#[cfg(not(target_os = "linux"))]
fn record(_: &Command) -> Result<CommandOutcome, StopReason> {
    Err(StopReason::Expression("error: programs are recorded on Linux; traces are read everywhere\n".to_owned()))
}

/// Writes the manual page of a command, or of all.
fn man(page: Option<&str>) -> io::Result<CommandOutcome> {
    let mut all = Arguments::command();
    all.build();
    let wanted = page.map(|name| all.find_subcommand(name).cloned().ok_or(name));
    let command = match wanted.transpose() {
        Ok(command) => command.unwrap_or(all),
        Err(name) => all.error(ErrorKind::InvalidSubcommand, format!("there is no command `{name}`")).exit(),
    };
    let page = clap_mangen::Man::new(command).source(concat!("kymo ", env!("CARGO_PKG_VERSION")));
    page.render(&mut io::stdout()).map(|()| CommandOutcome::Complete)
}

/// Writes the manual pages of all commands to a folder.
fn manual(folder: &Path) -> io::Result<CommandOutcome> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(named)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(named)?;
    Ok(CommandOutcome::Complete)
}

/// Opens the traces, or reports why not.
/// Opens the traces for an export: packets are exported with their bytes.
#[cfg(feature = "export")]
fn export(arguments: &arguments::ExportArguments) -> Result<CommandOutcome, StopReason> {
    let is_capture = arguments.format == arguments::TableFormat::Pcapng;
    let mut reading = arguments.common.reading.options();
    reading.import.packet_data |= is_capture;
    match open_paths(&arguments.common.traces, arguments.common.threads, reading) {
        Some(session) if is_capture => export::packets(session, arguments),
        Some(session) => export::run(&session, arguments),
        None => Ok(CommandOutcome::Incomplete),
    }
}

fn open(common: &Common, clock_shift_ns: i64) -> Option<Session> {
    let reading = ReadingOptions { clock_shift_ns, ..common.reading.options() };
    open_paths(&common.traces, common.threads, reading)
}

fn open_paths(paths: &[PathBuf], threads: usize, reading: ReadingOptions) -> Option<Session> {
    match session(paths, threads, reading) {
        Ok(session) => Some(session),
        Err(failure) => {
            message_text!("{}", failure.render());
            None
        }
    }
}

/// Opens traces with the options of the environment.
pub(crate) fn session(paths: &[PathBuf], threads: usize, reading: ReadingOptions) -> Result<Session, OpenFailure> {
    open_with(paths, threads, reading, kymo_session::cache_folder())
}

/// How traces are read where they do not say it themselves.
#[derive(Clone, Debug, Default)]
pub struct ReadingOptions {
    /// Nanoseconds that all reading are ahead.
    pub clock_shift_ns: i64,
    /// How far those of single traces are ahead besides.
    pub trace_offsets: Vec<TraceOffset>,
    /// For files in other formats.
    pub import: ImportOptions,
}

/// Opens traces with the options of the environment, and remembers findings in this folder, if any.
///
/// # Errors
///
/// Nothing can be opened, or an offset is of no trace.
pub fn open_with(
    paths: &[PathBuf],
    threads: usize,
    reading: ReadingOptions,
    cache: Option<PathBuf>,
) -> Result<Session, OpenFailure> {
    Session::open(paths, &options(threads, reading, cache))
}

/// The options for opening traces, from the environment.
pub(crate) fn options(threads: usize, reading: ReadingOptions, cache: Option<PathBuf>) -> OpenOptions {
    let compile = match std::env::var("KYMO_JIT").as_deref() {
        Ok("off") => Compile::Never,
        Ok("always") => Compile::AtOnce,
        _ => Compile::WhenWorthIt,
    };
    let ReadingOptions { clock_shift_ns, trace_offsets, import } = reading;
    OpenOptions { clock_shift_ns, trace_offsets, threads, compile, cache, import }
}
