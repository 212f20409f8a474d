//! `kymo record`

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo_recorder::capture::{self, LineCount};
use kymo_recorder::client::{Client, ClientProblem, nonsense};
use kymo_recorder::doctor::{self, DoctorFinding};
use kymo_recorder::packets::{self, PacketOptions, PacketProblem, PacketRecording, PacketSource};
use kymo_recorder::prepare::PreparedCounters;
use kymo_recorder::program::namespaces::{NAMES, NamespaceKinds};
use kymo_recorder::protocol::{Keep, RecorderReply, RecorderRequest, SessionOptions, SessionSummary, TraceDialect};
use kymo_recorder::select::{SelectionRule, SelectionStep, SessionSelection, StepKind};
use kymo_session::TraceCounters;
use rustix::io::Errno;

use super::child::ChildProcess;
use super::console::{ConsolePrinter, ConsoleResult};
use super::place::{self, ConsolePlace, TemporaryFolder};
use super::show::SessionFacts;
use super::signals::{Signals, forward};
use super::streams::Passed;
use super::{RecordProblem, kernel_options, show, this_program, warn};
use crate::CommandOutcome;
use crate::arguments::{self, LossMode, RecordArguments, RuleArguments, SessionArguments};
use crate::message::plain_output;
use crate::message::write_line;
use crate::stop::StopReason;

/// Between two checks whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// Between two lines of progress.
const LINE: Duration = Duration::from_millis(250);
/// How long a recorder takes at most to end.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// The exit status of a command that SIGPIPE has ended.
const SIGPIPE_STATUS: u8 = 128 + 13;

/// Bytes that a program may have for its lanes.
const POOL_MOST: u64 = 128 << 20;

/// Records until it is over.
pub(crate) fn run(arguments: &RecordArguments) -> Result<CommandOutcome, RecordProblem> {
    if let (true, Some(words)) = (arguments.list, &arguments.session.kernel) {
        return super::kernel_list::run(words, arguments.json);
    }
    if arguments.explain {
        return super::kernel_list::explain(&arguments.session, arguments.json);
    }
    place::check(arguments)?;
    let mut plan = RecordingPlan::of(&arguments.session, arguments.detach, arguments.flush_every)?;
    let console = place::decide(arguments, &mut plan.options)?;
    let mut begun = plan.begin()?;
    if arguments.detach {
        return detached(&begun, arguments.json);
    }
    if let Some(ConsolePlace { temporary, every }) = console {
        begun.print(temporary, every, arguments.json)?;
    }
    begun.record(arguments.json).map(|recorded| recorded.outcome)
}

/// The plan of a recording.
pub(crate) struct RecordingPlan<'a> {
    arguments: &'a SessionArguments,
    options: SessionOptions,
    /// A word that no other session has: it identifies the session of a started program.
    tag: Option<String>,
    /// The same for the events of this process: lines that the program writes, and packets.
    own: Option<String>,
    /// Receives packets already.
    packets: Option<PacketSource>,
    /// The contexts that events carry from the first one on.
    contexts: u64,
}

/// A session that has begun.
pub(crate) struct ActiveSession<'a> {
    arguments: &'a SessionArguments,
    client: Client,
    session: String,
    output: PathBuf,
    /// The folder was there before.
    was_there: bool,
    tag: Option<String>,
    own: Option<String>,
    packets: Option<PacketSource>,
    contexts: u64,
    /// Of CPUs, if they were compared.
    counters: Option<TraceCounters>,
    signals: Signals,
    /// Prints its events.
    console: Option<ConsolePrinter>,
    /// Its snapshots follow each other, and the recorder takes the last one.
    drains: bool,
}

/// A session that is over.
#[cfg_attr(not(feature = "view"), allow(dead_code, reason = "what goes on behind a session asks"))]
pub(crate) struct EndedSession {
    pub(crate) outcome: CommandOutcome,
    /// Its trace may have events.
    pub(crate) has_trace: bool,
    /// Signals that may still come.
    pub(crate) signals: Signals,
}

impl<'a> RecordingPlan<'a> {
    /// `flush_every`: the period in nanoseconds of the snapshots of a flight recorder.
    pub(crate) fn of(
        arguments: &'a SessionArguments,
        is_detached: bool,
        flush_every: Option<u64>,
    ) -> Result<Self, StopReason> {
        let flush_every = flush_every.filter(|_| arguments.mode == LossMode::Overwrite);
        let has_parts = arguments.rotate_size.or(arguments.rotate_time).or(flush_every).is_some();
        if arguments.keep.is_some() && !has_parts {
            let what = "--keep deletes old parts of a trace: --rotate-size or --rotate-time makes parts";
            return Err(StopReason::Usage(what.to_owned()));
        }
        let name = name(arguments)?;
        let tag = (!arguments.command.is_empty()).then(|| format!("{name}-{}", std::process::id()));
        let is_own = arguments.capture_output || !arguments.packets.is_empty();
        let own = is_own.then(|| format!("{name}-{}.out", std::process::id()));
        let mut options = options(arguments, &name, tag.as_deref(), own.as_deref())?;
        let packets = packets(arguments)?;
        options.is_detached = is_detached;
        options.flush_ms = flush_every.map(|nanos| nanos.div_ceil(1_000_000));
        options.drains = options.flush_ms.is_some();
        let contexts = early_contexts(&options, arguments.filter.as_deref());
        Ok(Self { arguments, options, tag, own, packets, contexts })
    }

    /// The folder of the trace.
    #[cfg_attr(not(feature = "view"), allow(dead_code, reason = "who shows it meanwhile needs it"))]
    pub(crate) fn output(&self) -> &Path {
        &self.options.output
    }

    /// Requests it from the recorder.
    pub(crate) fn begin(self) -> Result<ActiveSession<'a>, RecordProblem> {
        let Self { arguments, mut options, tag, own, packets, contexts } = self;
        let signals = Signals::catch()?;
        arguments.rule.process.iter().filter_map(|wanted| nobody(wanted)).for_each(|why| warn(&why));
        if let Some(DoctorFinding { found, .. }) = doctor::lacks_room(arguments.pool_size) {
            warn(&format!("programs may have no room for their events, {found}: run `kymo doctor` for remedies"));
        }
        let counters = arguments.prepare.then(compare_counters);
        options.counters = counters.as_ref().map(|counters| counters.cpus.clone()).unwrap_or_default();
        let (was_there, drains) = (options.output.exists(), options.drains);
        let (client, answer) = super::ask_to_start(&RecorderRequest::Start { options: Box::new(options) })?;
        let RecorderReply::Started { session, output, notes } = answer else { return Err(nonsense().into()) };
        notes.iter().for_each(|note| write_line(&format!("note: {}", note.trim_end())));
        let console = None;
        Ok(ActiveSession {
            arguments,
            client,
            session,
            output,
            was_there,
            tag,
            own,
            packets,
            contexts,
            counters,
            signals,
            console,
            drains,
        })
    }
}

impl ActiveSession<'_> {
    /// Prints its events on standard output while it runs.
    fn print(&mut self, temporary: Option<TemporaryFolder>, every: Duration, json: bool) -> io::Result<()> {
        if let Some(temporary) = &temporary {
            self.signals.remove_at_exit(temporary.path());
        }
        let is_flight = self.arguments.mode == LossMode::Overwrite;
        self.console = Some(ConsolePrinter::begin(&self.output, temporary, every, (is_flight, json))?);
        Ok(())
    }

    /// Starts the command, if there is one, and waits until all is over.
    pub(crate) fn record(mut self, json: bool) -> Result<EndedSession, RecordProblem> {
        let mut status = None;
        let (contexts, lines) = (self.contexts, self.own.as_deref().filter(|_| self.arguments.capture_output));
        let begin = |source: PacketSource| source.begin(self.own.as_deref().unwrap_or_default(), contexts);
        let packets = match self.packets.take().map(begin).transpose() {
            Ok(packets) => packets,
            Err(problem) => return Ok(self.nothing_recorded(&format!("error: {problem}"), CommandOutcome::Incomplete)),
        };
        let start = |tag: String| ChildProcess::start(&self.arguments.command, &tag, contexts, lines);
        let child = match self.tag.take().map(start).transpose() {
            Ok(child) => child,
            Err(error) => return Ok(self.not_started(&error)),
        };
        let Self { arguments, mut client, session, output, counters, signals, console, drains, .. } = self;
        signals.are_of_command(child.is_some());
        let shows = child.is_none() && console.is_none() && io::stderr().is_terminal();
        let watched = SessionWatch { session: &session, shows, console: console.as_ref() };
        let ended = match watched.until_over(&mut client, child.as_ref(), &signals, &mut status) {
            Ok(ended) => ended,
            Err(problem) => {
                packets.map(PacketRecording::end);
                let is_kept = console.map(|console| console.finish(false)).is_none_or(|printed| printed.is_kept);
                let there = if is_kept { format!(" are in {}", output.display()) } else { " were printed".to_owned() };
                write_line(&format!("error: {problem}\nnote: the events recorded until then{there}"));
                let outcome =
                    child.map_or(CommandOutcome::Incomplete, |child| CommandOutcome::Status(alone(child, &signals)));
                return Ok(EndedSession { outcome, has_trace: true, signals });
            }
        };
        signals.are_of_command(false);
        let ending =
            SessionEnding { session: &session, output, ended, arguments, packets, counters, json, console, drains };
        let whole = ending.take(&mut client, child, &signals);
        // The exit status of the program counts, even if the session's end failed.
        let outcome = match (status, whole) {
            (None, whole) => whole?.0,
            // The command was ended as its events had no reader any more, as `kymo print` ends.
            (Some(SIGPIPE_STATUS), Ok((_, true))) => CommandOutcome::Complete,
            (Some(status), Ok(_)) => CommandOutcome::Status(status),
            (Some(status), Err(problem)) => {
                problem.tell();
                CommandOutcome::Status(status)
            }
        };
        Ok(EndedSession { outcome, has_trace: true, signals })
    }

    /// The command cannot be started.
    fn not_started(self, error: &io::Error) -> EndedSession {
        let why = not_started(&self.arguments.command[0], error);
        let outcome = CommandOutcome::Status(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 });
        self.nothing_recorded(&why, outcome)
    }

    /// Ends the session, which could not begin to record.
    fn nothing_recorded(mut self, why: &str, outcome: CommandOutcome) -> EndedSession {
        let stopped = self.client.ask(&RecorderRequest::Stop { session: Some(self.session), all: false });
        if let Some(console) = self.console {
            console.cancel();
        }
        if let Ok(RecorderReply::Stopped { summaries }) = stopped
            && summaries.iter().all(|summary| summary.events == 0 && summary.programs == 0)
        {
            discard(&self.output, self.was_there);
        }
        write_line(why);
        EndedSession { outcome, has_trace: false, signals: self.signals }
    }
}

/// A session at its end.
struct SessionEnding<'a> {
    session: &'a str,
    output: PathBuf,
    /// Its summary, if it has ended by itself.
    ended: Option<SessionSummary>,
    arguments: &'a SessionArguments,
    packets: Option<PacketRecording>,
    counters: Option<TraceCounters>,
    json: bool,
    console: Option<ConsolePrinter>,
    /// The recorder takes the last snapshot.
    drains: bool,
}

impl SessionEnding<'_> {
    /// Takes the remaining events, and reports the session; whether nothing reads standard output any
    /// more.
    fn take(
        self,
        client: &mut Client,
        child: Option<ChildProcess>,
        signals: &Signals,
    ) -> Result<(CommandOutcome, bool), RecordProblem> {
        let Self { session, output, ended, arguments, packets, counters, json, console, drains } = self;
        let is_command = child.is_some();
        // The signal that ended the command is no reason not to wait for its last output.
        let _ = signals.take();
        let passed = child.and_then(|child| child.pass_last(|| signals.take().is_some()));
        let packets = packets.map(PacketRecording::end);
        // A flight recorder is for the events before the end.
        let last = match &ended {
            None if is_command && arguments.mode == LossMode::Overwrite && !drains => {
                Some(snapshot(client, session, output)?)
            }
            _ => None,
        };
        // Another command may have ended it.
        let progress = client.ask(&RecorderRequest::Progress { session: session.to_owned() });
        let was_over = matches!(progress, Ok(RecorderReply::Progress { summary }) if summary.has_ended);
        let summary = match ended {
            Some(summary) => summary,
            None => stop(client, session)?,
        };
        let mut summary = last.unwrap_or(summary);
        let captured = passed.map(|Passed { count, problems }| {
            summary.problems.extend(problems);
            count
        });
        summary.problems.extend(packets.iter().flat_map(|counts| counts.problems.clone()));
        summary.running = if was_over { 0 } else { summary.running };
        let printed = console.map(|console| console.finish(true));
        let command = arguments.command.first().map(|word| word.to_string_lossy());
        let (command, chooses_programs) = (command.as_deref(), !arguments.rule.process.is_empty());
        let (counters, printed, packets) = (counters.as_ref(), printed.as_ref(), packets.as_ref());
        let facts = SessionFacts { captured, packets, counters, command, chooses_programs, printed };
        match &arguments.summary {
            Some(path) => write_summary(&summary, &facts, path)?,
            None => tell(&summary, &facts, json)?,
        }
        let is_printed = printed.is_none_or(|printed| printed.is_whole(&summary));
        let is_meant = summary.problems.is_empty() && summary.rules.iter().all(|rule| rule.problems.is_empty());
        let is_whole = is_meant && summary.lost.unwritten == 0 && is_printed;
        let outcome = if is_whole { CommandOutcome::Complete } else { CommandOutcome::Incomplete };
        Ok((outcome, printed.is_some_and(ConsoleResult::is_closed)))
    }
}

/// How far the counters of the CPUs on which this process may run are apart.
fn compare_counters() -> TraceCounters {
    let PreparedCounters { counters, frequency_hz } = PreparedCounters::measure();
    TraceCounters { cpus: counters, frequency_hz }
}

/// Waits for a command that is no longer recorded: returns its exit status.
fn alone(child: ChildProcess, signals: &Signals) -> u8 {
    loop {
        if let Some(status) = child.status() {
            child.pass_last(|| false);
            return status;
        }
        if let Some(signal) = signals.take() {
            forward(signal, &child);
        }
        if signals.has_resized() {
            child.resize();
        }
        std::thread::sleep(LOOK);
    }
}

/// Why a program that is named by its number cannot be recorded; `None`: it can, or is not named by
/// one.
fn nobody(wanted: &str) -> Option<String> {
    let number = wanted.parse::<u32>().ok()?;
    let process = Path::new("/proc").join(number.to_string());
    let Ok(found) = process.metadata() else { return Some(format!("no process has the number {number}")) };
    let (user, own) = (found.uid(), kymo_recorder::folder::own_user());
    if own != 0 && user != own {
        return Some(format!("process {number} belongs to user {user}: only that user and root may record it"));
    }
    let has_memory = std::fs::read_to_string(process.join("maps")).is_ok_and(|maps| maps.contains(".ctl"));
    let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    (!has_memory).then(|| {
        format!(
            "process {number} ({}) has no memory for events: it was built without libkymo, kymo_tracer or kymo_tracing, or began \
             with KYMO=off or without room",
            name.trim_end()
        )
    })
}

/// Why a command cannot be started.
pub(super) fn not_started(word: &OsStr, error: &io::Error) -> String {
    let name = show::quoted(&word.to_string_lossy());
    let help = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOEXEC) => "\nhelp: the first line of a script names its interpreter: #!/bin/sh",
        Some(Errno::NOENT) if Path::new(word).is_file() => {
            "\nhelp: the file exists, but its interpreter (first line) or its dynamic loader does not"
        }
        Some(Errno::ACCESS) if Path::new(word).is_file() => "\nhelp: `chmod +x` makes a file one that can be executed",
        _ => "",
    };
    format!("error: {name}: {error}{help}")
}

/// Deletes a trace of nothing.
fn discard(output: &Path, was_there: bool) {
    let _ = std::fs::remove_dir_all(output);
    if was_there {
        let _ = std::fs::create_dir(output);
    } else if let Some(around) = output.parent().filter(|around| around.ends_with("kymo-traces")) {
        // If nothing else is there.
        let _ = std::fs::remove_dir(around);
    }
}

fn stop(client: &mut Client, session: &str) -> Result<SessionSummary, ClientProblem> {
    match ask(client, session, &RecorderRequest::Stop { session: Some(session.to_owned()), all: false })? {
        RecorderReply::Stopped { mut summaries } => summaries.pop().ok_or_else(nonsense),
        _ => Err(nonsense()),
    }
}

/// Sends a request for a session. After a recorder was killed, another one follows it and goes on.
fn ask(client: &mut Client, session: &str, question: &RecorderRequest) -> Result<RecorderReply, ClientProblem> {
    let answer = client.ask(question);
    if !matches!(answer, Err(ClientProblem::Broken(_))) {
        return answer;
    }
    let begin = Instant::now();
    loop {
        *client = Client::connect_or_start(&this_program())?.telling(warn);
        match client.ask(&RecorderRequest::Own { session: session.to_owned() }) {
            // A recorder that is asked to end, and not killed, ends its sessions.
            Err(ClientProblem::Refused(_)) => {
                let what = format!("the recorder was ended, and session `{session}` with it");
                return Err(ClientProblem::Refused(what));
            }
            // That was still the recorder that is ending.
            Err(ClientProblem::Broken(_)) if begin.elapsed() < ENDING_MAX => std::thread::sleep(LOOK),
            answer => {
                answer?;
                break;
            }
        }
    }
    warn(&format!("the recorder was gone; process {} goes on", client.pid));
    client.ask(question)
}

fn detached(begun: &ActiveSession<'_>, json: bool) -> Result<CommandOutcome, RecordProblem> {
    let ActiveSession { session, output, counters, .. } = begun;
    if json {
        let mut object = serde_json::json!({"session": session, "output": output});
        if let Some(counters) = counters {
            object["counters"] = kymo_session::json::counters(counters);
        }
        writeln!(plain_output(), "{object}")?;
    } else {
        writeln!(plain_output(), "session {session} records to {}", output.display())?;
        if let Some(counters) = counters {
            writeln!(plain_output(), "  counters  {}", crate::show::counters(counters))?;
        }
        writeln!(plain_output(), "\nNext:  kymo status\n       kymo stop {session}")?;
    }
    Ok(CommandOutcome::Complete)
}

/// The events that the programs of a session have in memory now, in its own folder, or numbered
/// beside others that were taken meanwhile.
fn snapshot(client: &mut Client, session: &str, output: PathBuf) -> Result<SessionSummary, RecordProblem> {
    let has_others = std::fs::read_dir(&output).is_ok_and(|mut entries| entries.next().is_some());
    let output = Some(output).filter(|_| !has_others);
    let question = RecorderRequest::Snapshot { session: Some(session.to_owned()), output };
    let RecorderReply::Snapshot { summary, .. } = client.ask(&question)? else { return Err(nonsense().into()) };
    Ok(summary)
}

fn tell(summary: &SessionSummary, facts: &SessionFacts<'_>, json: bool) -> io::Result<()> {
    if !json {
        // Standard output is the program's, or has the events. A terminal may have been closed.
        write_line(show::ended(summary, facts).trim_end());
        return Ok(());
    }
    let object = summary_object(summary, facts)?;
    let Some(printed) = facts.printed else {
        return writeln!(plain_output(), "{object}").map_err(|error| at_output(&error));
    };
    // Standard output has the events.
    printed.problem().into_iter().for_each(|problem| write_line(&format!("error: {problem}")));
    let _ = writeln!(io::stderr(), "{object}");
    Ok(())
}

/// Writes the summary into a file, and prints none.
fn write_summary(summary: &SessionSummary, facts: &SessionFacts<'_>, path: &Path) -> io::Result<()> {
    let object = summary_object(summary, facts)?;
    facts
        .printed
        .and_then(ConsoleResult::problem)
        .into_iter()
        .for_each(|problem| write_line(&format!("error: {problem}")));
    let written = std::fs::write(path, format!("{object}\n"));
    written.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// The summary for machines.
fn summary_object(summary: &SessionSummary, facts: &SessionFacts<'_>) -> io::Result<serde_json::Value> {
    let mut object = serde_json::to_value(summary)?;
    super::user_objects::add_json(summary, &mut object);
    if let Some(LineCount { lines, cut }) = facts.captured {
        object["captured"] = serde_json::json!({"lines": lines, "cut": cut});
    }
    if let Some(packets) = facts.packets {
        object["packets"] = show::packets_json(packets);
    }
    if let Some(counters) = facts.counters {
        object["counters"] = kymo_session::json::counters(counters);
    }
    if let Some(printed) = facts.printed {
        object["unprinted"] = printed.unprinted(summary).into();
        if !printed.is_kept {
            object["output"] = serde_json::Value::Null;
        }
    }
    Ok(object)
}

/// Which of the streams that errors are about.
fn at_output(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("standard output: {error}"))
}

/// The session's name: from the arguments, or from the program.
fn name(arguments: &SessionArguments) -> Result<String, StopReason> {
    let program = arguments.command.first().map(PathBuf::from);
    let file = program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let plain = |name: &str| -> String {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        name.chars().map(|character| if is_plain(character) { character } else { '_' }).take(40).collect()
    };
    match &arguments.name {
        Some(name) if !name.is_empty() && plain(name) == *name => Ok(name.clone()),
        Some(name) => Err(StopReason::Usage(format!(
            "`{name}` is no session's name: that has 1 to 40 letters of ASCII, digits, `-`, `_` and `.`"
        ))),
        None => Ok(file.map_or_else(|| "kymo".to_owned(), |file| plain(&file))),
    }
}

/// The options of the session.
fn options(
    arguments: &SessionArguments,
    name: &str,
    tag: Option<&str>,
    own: Option<&str>,
) -> Result<SessionOptions, StopReason> {
    let mut selection = SessionSelection::default();
    selection
        .take(SelectionStep { act: StepKind::Enable, rule: rule(&arguments.rule, arguments.filter.as_deref(), tag) });
    if let Some(own) = own.filter(|_| arguments.capture_output) {
        selection.take(capture::selects(own));
    }
    if let Some(own) = own.filter(|_| !arguments.packets.is_empty()) {
        selection.take(packets::selects(own));
    }
    let (contexts, namespaces, own_contexts) = contexts(&arguments.context)?;
    let names_time = arguments.filter.as_ref().is_some_and(|filter| filter.contains("took_ns"));
    if names_time && !arguments.rules.is_empty() {
        warn(
            "`--filter` is asked before `--only`, and `took_ns` comes from that: `--only '... over 5ms since ...'` is a limit",
        );
    }
    if arguments.pool_size.is_some_and(|bytes| bytes > POOL_MOST) {
        return Err(StopReason::Usage("a program has at most 128MiB: `--pool-size` is more".to_owned()));
    }
    let command = || arguments.command.iter().map(|word| show::quoted(&word.to_string_lossy()));
    let (objects, rules) = super::user_objects::read(&arguments.objects, super::limit::parse_all(&arguments.rules)?)?;
    Ok(SessionOptions {
        name: name.to_owned(),
        takes_any_name: arguments.name.is_none(),
        output: output(arguments, name)?,
        components: None,
        dialect: match arguments::MetadataDialect::from(arguments.format) {
            arguments::MetadataDialect::Tsdl => TraceDialect::Tsdl,
            arguments::MetadataDialect::Ctf2 => TraceDialect::Ctf2,
        },
        keep: if arguments.mode == LossMode::Overwrite { Keep::Newest } else { Keep::Oldest },
        lane_bytes: arguments.lane_size,
        pool_bytes: arguments.pool_size,
        contexts,
        namespaces,
        own_contexts,
        rotate_bytes: arguments.rotate_size,
        rotate_seconds: arguments.rotate_time.map(|nanos| nanos.div_ceil(1_000_000_000)),
        kept_bytes: arguments.keep,
        selection,
        is_detached: false,
        duration_ms: arguments.duration.map(|nanos| nanos.div_ceil(1_000_000)),
        command: (!arguments.command.is_empty()).then(|| command().collect::<Vec<_>>().join(" ")),
        triggers: super::trigger::parse_all(&arguments.triggers)?,
        rules,
        objects,
        counters: Vec::new(),
        drains: false,
        flush_ms: None,
        kernel: kernel_options::of(arguments)?,
    })
}

/// Sockets for the packets, if some are wanted.
fn packets(arguments: &SessionArguments) -> Result<Option<PacketSource>, StopReason> {
    if arguments.packets.is_empty() {
        return Ok(None);
    }
    let options = PacketOptions {
        interfaces: arguments.packets.clone(),
        filter: arguments.packet_filter.clone(),
        snap_length: arguments.snap_length.unwrap_or(packets::SNAP_LENGTH),
        file: arguments.pcapng.clone(),
    };
    match PacketSource::open(&options) {
        Ok(source) => Ok(Some(source)),
        Err(PacketProblem::Filter(lines)) => Err(StopReason::Expression(lines)),
        Err(problem) => Err(StopReason::Usage(problem.to_string())),
    }
}

/// Which events of which programs. A program that was started is meant with all that it starts,
/// unless the arguments name others.
fn rule(arguments: &RuleArguments, filter: Option<&str>, tag: Option<&str>) -> SelectionRule {
    SelectionRule {
        events: arguments.events.clone(),
        level: arguments.level,
        processes: arguments.process.clone(),
        tag: tag.map(str::to_owned).filter(|_| arguments.process.is_empty()),
        filter: filter.map(str::to_owned),
        ..SelectionRule::default()
    }
}

/// The contexts of events: those known everywhere, those that the recorder finds out, and names of
/// contexts that programs define.
pub(super) fn contexts(names: &[String]) -> Result<(u64, NamespaceKinds, Vec<String>), StopReason> {
    use kymo_recorder::contexts::{CPU, IP, NAME, PID, STACK, TID};
    let (mut known, mut namespaces, mut own) = (0, NamespaceKinds::default(), Vec::new());
    for name in names {
        match name.as_str() {
            "none" if names.len() == 1 => {}
            "none" => return Err(StopReason::Usage("`--context none` stands alone: it is no context".to_owned())),
            "cpu_id" | "cpu" => known |= CPU,
            "pid" | "vpid" => known |= PID,
            "tid" | "vtid" => known |= TID,
            "procname" | "name" => known |= NAME,
            "ip" => known |= IP,
            "stack" => known |= STACK,
            "namespaces" => namespaces = NamespaceKinds::ALL,
            name => match (NamespaceKinds::named(name), name.trim_start_matches('$').strip_prefix("app.")) {
                (Some(kind), _) => namespaces = namespaces.and(kind),
                (None, Some(defined)) if !defined.is_empty() => own.push(defined.to_owned()),
                _ => return Err(StopReason::Usage(no_context(name))),
            },
        }
    }
    Ok((known, namespaces, own))
}

/// The contexts of events that a program records before the recorder has found it, including those
/// that the filter may need. It is not yet known which contexts the program defines.
fn early_contexts(options: &SessionOptions, filter: Option<&str>) -> u64 {
    use kymo_recorder::contexts::{ALL_OWN, CPU, IP};
    let words =
        || filter.into_iter().flat_map(|text| text.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    let when = |is_so: bool, what: u64| if is_so { what } else { 0 };
    options.contexts
        | when(filter.is_some() || !options.own_contexts.is_empty(), ALL_OWN)
        | when(words().any(|word| word == "cpu_id"), CPU)
        | when(words().any(|word| word == "ip"), IP)
}

fn no_context(name: &str) -> String {
    const KNOWN: [&str; 7] = ["cpu_id", "pid", "tid", "procname", "ip", "stack", "namespaces"];
    let near = kymo_recorder::nearest(name, KNOWN.into_iter().chain(NAMES));
    let near = near.first().map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let (known, kinds) = (KNOWN.join(", "), NAMES.join(", "));
    format!(
        "there is no context `{name}`{near}\n  there are {known} (or one of {kinds}), `none`, and contexts of programs, as `app.{name}`"
    )
}

/// Where the trace goes, from the root.
fn output(arguments: &SessionArguments, name: &str) -> Result<PathBuf, StopReason> {
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => free_folder(name),
    };
    super::folder(&path)
}

/// A folder for a trace of this name, now, which is not there yet.
pub(crate) fn free_folder(name: &str) -> PathBuf {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
    let first = Path::new("kymo-traces").join(format!("{name}-{now}"));
    let numbered = (2..).map(|number| Path::new("kymo-traces").join(format!("{name}-{now}-{number}")));
    let mut all = std::iter::once(first).chain(numbered);
    all.find(|path| !path.exists()).expect("numbers do not end")
}

/// A session for which a command waits.
struct SessionWatch<'a> {
    session: &'a str,
    shows: bool,
    console: Option<&'a ConsolePrinter>,
}

impl SessionWatch<'_> {
    /// Waits until the program has ended, a signal came, or the session is over; then it knows the
    /// summary.
    fn until_over(
        &self,
        client: &mut Client,
        child: Option<&ChildProcess>,
        signals: &Signals,
        status: &mut Option<u8>,
    ) -> Result<Option<SessionSummary>, ClientProblem> {
        let (mut asked, mut before) = (Instant::now(), (0, Instant::now()));
        let mut console = self.console;
        loop {
            std::thread::sleep(LOOK);
            *status = child.and_then(ChildProcess::status);
            if status.is_some() {
                break;
            }
            if console.take_if(|console| console.has_stopped()).is_some() {
                match child {
                    None => break,
                    // As if the events were its own output.
                    Some(child) if ConsolePrinter::is_closed() => child.signal(rustix::process::Signal::PIPE),
                    Some(_) => {}
                }
            }
            if signals.has_resized() {
                child.into_iter().for_each(ChildProcess::resize);
            }
            match (signals.take(), child) {
                (Some(_), None) => break,
                (Some(signal), Some(child)) => forward(signal, child),
                (None, _) => {}
            }
            if asked.elapsed() < LINE {
                continue;
            }
            asked = Instant::now();
            let question = RecorderRequest::Progress { session: self.session.to_owned() };
            let RecorderReply::Progress { summary } = ask(client, self.session, &question)? else {
                return Err(nonsense());
            };
            if self.shows {
                let seconds = before.1.elapsed().as_secs_f64();
                let rate = (summary.events - before.0.min(summary.events)) as f64 / seconds;
                before = (summary.events, Instant::now());
                // A terminal that cannot be written to is no reason to stop.
                let _ = write!(io::stderr(), "\r\x1b[K{}", show::line(&summary, rate));
            }
            if summary.has_ended && child.is_none() {
                self.clear();
                return Ok(Some(summary));
            }
        }
        self.clear();
        Ok(None)
    }

    fn clear(&self) {
        if self.shows {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
