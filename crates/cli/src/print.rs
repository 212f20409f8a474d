//! `kymo print`

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kymo_session::{
    DetailsOptions, Paint, PrettyFields, PrettyOptions, PrintFormat, PrintOptions, Progress, Selection, Session,
    StampOptions, Zone,
};

use crate::CommandOutcome;
use crate::arguments::{Color, FieldChoice, Format, NameChoice, PrintArguments};
use crate::progress::watched;
use crate::select::understood;
use crate::show;
use crate::stop::StopReason;

/// Babeltrace refuses such traces; each on its own has an order all the same.
pub(crate) const ORIGINS: &str = "warning: the clocks count from different origins, so that events of one say nothing of when \
                       those of another were; --clock-force-correlate takes all as counted from 1970";

/// Prints as the arguments ask.
pub(crate) fn run(session: &Session, arguments: &PrintArguments) -> Result<CommandOutcome, StopReason> {
    let (options, warnings) = asked(session, arguments)?;
    message_text!("{warnings}");
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let progress = Progress::default();
    let mut print = || session.print(&options, &mut out, &progress);
    let printed = if leaves_the_terminal(&options.format) { watched(&progress, print) } else { print() }?;
    out.flush()?;
    if !options.force_correlate && !session.times_are_comparable() {
        message!("{ORIGINS}");
    }
    if arguments.verbose {
        message!("{}", show::counted(printed.events, "event"));
    }
    if tells_of_losses(options.format) {
        show::each_loss(&printed.losses);
    }
    Ok(show::report(&printed.report, arguments.common.strict))
}

/// Whether losses are told one by one: details have them in the text, and nothing is to be said where nothing is printed.
pub(crate) fn tells_of_losses(format: PrintFormat) -> bool {
    !matches!(format, PrintFormat::Details | PrintFormat::Silent)
}

/// The options that the arguments ask for, and notes on them.
pub(crate) fn asked(session: &Session, arguments: &PrintArguments) -> Result<(PrintOptions, String), StopReason> {
    let mut options = options(arguments);
    let zone = if arguments.clock_gmt { Zone::Utc } else { Zone::Local };
    let (selection, warnings) = understood(session, &arguments.event, arguments.filter.as_deref(), zone)?;
    options.selection = selection;
    (options.begin_ns, options.end_ns) = arguments.between.nanos(session, zone)?;
    Ok((options, warnings))
}

/// Whether the terminal is free for a line on how far it is: events go elsewhere, and not into a pipe, behind
/// which a pager may have the terminal.
fn leaves_the_terminal(format: &PrintFormat) -> bool {
    *format == PrintFormat::Silent || !io::stdout().is_terminal() && !is_pipe(&io::stdout())
}

#[cfg(unix)]
fn is_pipe(out: &impl std::os::fd::AsFd) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let facts = out.as_fd().try_clone_to_owned().and_then(|file| std::fs::File::from(file).metadata());
    facts.map_or(true, |facts| facts.file_type().is_fifo() || facts.file_type().is_socket())
}

/// Nothing tells here; a line too few is better than one in a pager.
#[cfg(not(unix))]
fn is_pipe(_: &impl Sized) -> bool {
    true
}

fn options(arguments: &PrintArguments) -> PrintOptions {
    let pretty = pretty(arguments);
    let stamp = StampOptions {
        cycles: arguments.clock_cycles,
        seconds: arguments.clock_seconds,
        date: arguments.clock_date,
        no_delta: arguments.no_delta,
        names: pretty.header_names,
        paint: pretty.paint,
    };
    let zone = if arguments.clock_gmt { |_| 0 } else { local_offset };
    PrintOptions {
        pretty,
        stamp,
        zone,
        format: match arguments.format {
            Format::Text => PrintFormat::Text,
            Format::Details => PrintFormat::Details,
            Format::Json => PrintFormat::Json,
            Format::Csv => PrintFormat::Csv,
            Format::None => PrintFormat::Silent,
        },
        details: DetailsOptions { trace_name: !arguments.no_trace_name, stream_name: !arguments.no_stream_name },
        force_correlate: arguments.clock_force_correlate,
        stream_intersection: arguments.stream_intersection,
        selection: Selection::default(),
        limit: arguments.limit,
        begin_ns: None,
        end_ns: None,
        begins_ns: Vec::new(),
        continued: None,
    }
}

fn pretty(arguments: &PrintArguments) -> PrettyOptions {
    let paint = Paint(colours(arguments.color));
    let mut options = PrettyOptions { enum_flags: arguments.print_enum_flags, paint, ..PrettyOptions::default() };
    if !arguments.names.is_empty() {
        let shows = |name| arguments.names.contains(&name) || arguments.names.contains(&NameChoice::All);
        options.payload_names = shows(NameChoice::Payload);
        options.context_names = shows(NameChoice::Context);
        options.scope_names = shows(NameChoice::Scope);
        options.header_names = shows(NameChoice::Header);
    }
    if !arguments.fields.is_empty() {
        let shows = |field| arguments.fields.contains(&field) || arguments.fields.contains(&FieldChoice::All);
        options.fields = PrettyFields {
            trace: shows(FieldChoice::Trace),
            hostname: shows(FieldChoice::Hostname),
            domain: shows(FieldChoice::Domain),
            procname: shows(FieldChoice::Procname),
            vpid: shows(FieldChoice::Vpid),
            log_level: shows(FieldChoice::Loglevel),
            emf: shows(FieldChoice::Emf),
        };
    }
    options
}

/// Whether to write colors: as the arguments demand, else as the environment demands, else where a
/// terminal reads them.
fn colours(color: Color) -> bool {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => match variable("BABELTRACE_TERM_COLOR").to_ascii_uppercase().as_str() {
            "ALWAYS" => true,
            "NEVER" => false,
            _ => io::stdout().is_terminal() && variable("NO_COLOR").is_empty() && variable("TERM") != "dumb",
        },
    }
}

/// Seconds that the local zone is ahead of UTC at a time in seconds.
fn local_offset(second: i64) -> i64 {
    static ZONE: LazyLock<TimeZone> = LazyLock::new(|| Zone::Local.time_zone());
    Timestamp::from_second(second).map_or(0, |time| i64::from(ZONE.to_offset(time).seconds()))
}
