//! `kymo export`

use std::io::{self, Write};

use kymo_session::{ExportOptions, FileFormat, Progress, Session, Zone};

use crate::CommandOutcome;
use crate::arguments::{ExportArguments, TableFormat};
use crate::message::plain_output;
use crate::progress::watched;
use crate::select::understood;
use crate::show;
use crate::stop::StopReason;

/// Writes tables and lists them.
pub(crate) fn run(session: &Session, arguments: &ExportArguments) -> Result<CommandOutcome, StopReason> {
    let (options, warnings) = asked(session, arguments)?;
    message_text!("{warnings}");
    let progress = Progress::default();
    let exported = watched(&progress, || session.export(&options, &progress)).map_err(io::Error::other)?;
    let mut out = plain_output();
    for table in &exported.tables {
        writeln!(out, "{:>15}  {}", show::grouped(table.rows), table.path.display())?;
        if table.replaced_texts > 0 && !arguments.keep_bytes {
            let count = show::grouped(table.replaced_texts);
            let file = table.path.display();
            message!("warning: {file}: {count} texts are not valid and have U+FFFD there; --keep-bytes keeps them");
        }
    }
    Ok(show::report(&exported.report, arguments.common.strict))
}

/// The options that the arguments ask for, and notes on them.
pub(crate) fn asked(session: &Session, arguments: &ExportArguments) -> Result<(ExportOptions, String), StopReason> {
    let (begin_ns, end_ns) = arguments.between.nanos(session, Zone::Local)?;
    let (selection, warnings) = understood(session, &arguments.event, arguments.filter.as_deref(), Zone::Local)?;
    let format = match arguments.format {
        TableFormat::Arrow => FileFormat::Arrow,
        TableFormat::Parquet => FileFormat::Parquet,
    };
    let (output, keep_bytes) = (arguments.output.clone(), arguments.keep_bytes);
    Ok((ExportOptions { output, format, selection, begin_ns, end_ns, keep_bytes }, warnings))
}
