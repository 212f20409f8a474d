//! `kymo cut`

use std::io;

use jiff::tz::TimeZone;
use kymo_session::{CutOptions, Session};

use crate::Outcome;
use crate::arguments::CutArguments;
use crate::show::{self, grouped};
use crate::when::When;

/// Writes a part of a trace.
pub(crate) fn run(session: &Session, arguments: &CutArguments) -> io::Result<Outcome> {
    let zone = TimeZone::system();
    let first_ns = session.first_ns().unwrap_or(0);
    let limit = |when: &Option<When>| {
        let nanos =
            |when: &When| when.nanos(first_ns, &zone).ok_or_else(|| io::Error::other("the time is out of range"));
        when.as_ref().map(nanos).transpose()
    };
    let options = CutOptions {
        begin_ns: limit(&arguments.begin)?,
        end_ns: limit(&arguments.end)?,
        event: arguments.event.clone(),
    };
    let cut = session.cut(&options, &arguments.output).map_err(io::Error::other)?;
    println!("{} events written to {}", grouped(cut.events), arguments.output.display());
    Ok(show::report(&cut.report))
}
