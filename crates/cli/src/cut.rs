//! `kymo cut`

use std::io::{self, Write};

use kymo_session::{CutOptions, Progress, Session, Zone};

use crate::CommandOutcome;
use crate::arguments::CutArguments;
use crate::message::plain_output;
use crate::metadata::form;
use crate::progress::watched;
use crate::select::selection;
use crate::show::{self, counted};
use crate::stop::StopReason;

/// Writes a part of a trace.
pub(crate) fn run(session: &Session, arguments: &CutArguments) -> Result<CommandOutcome, StopReason> {
    let (begin_ns, end_ns) = arguments.between.nanos(session, Zone::Local)?;
    let selection = selection(session, &arguments.event, arguments.filter.as_deref(), Zone::Local)?;
    let options = CutOptions { begin_ns, end_ns, selection, form: form(arguments.dialect) };
    let progress = Progress::default();
    let cut = watched(&progress, || session.cut(&options, &arguments.output, &progress)).map_err(io::Error::other)?;
    writeln!(plain_output(), "{} written to {}", counted(cut.events, "event"), arguments.output.display())?;
    Ok(show::report(&cut.report, arguments.common.strict))
}
