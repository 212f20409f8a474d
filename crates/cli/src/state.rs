//! `kymo state`: what CPUs and threads do at an instant.

use std::io;
use std::path::Path;

use kymo_session::{AnalyseFailure, OwnStates, Progress, Session, Zone};

use crate::Outcome;
use crate::analyses::TOP;
use crate::answer::{Manner, show};
use crate::arguments::StateArguments;
use crate::progress::watched;
use crate::when::refuse;

/// Asks and shows the answer.
pub(crate) fn run(session: &Session, arguments: &StateArguments) -> io::Result<Outcome> {
    let (face, clock_gmt) = (&arguments.face, arguments.clock_gmt);
    let zone = if clock_gmt { Zone::Utc } else { Zone::Local };
    let at_ns = arguments.at.nanos(session.first_ns().unwrap_or(0), zone);
    let at_ns = at_ns.unwrap_or_else(|| refuse("the time is out of range"));
    let own = arguments.own.as_deref().map(own_states);
    let options = arguments.options(face.is_for_people().then_some(TOP));
    let clock_seconds = arguments.clock_seconds;
    let manner = Manner { face, clock_gmt, clock_seconds, strict: arguments.common.strict };
    let progress = Progress::default();
    let work = || session.state_at(at_ns, own.as_ref(), &options, &progress);
    let asked = if face.no_progress { work() } else { watched(&progress, work) };
    match asked {
        Ok(found) => show(session, &Session::state_tables(own.as_ref()), &found.answer, &found.report, manner),
        Err(AnalyseFailure::Outside { begin_ns, end_ns }) => {
            let times = manner.times(session).within(None);
            refuse(&format!("the trace is from {} to {}", times.word(begin_ns), times.word(end_ns)))
        }
        Err(failure @ (AnalyseFailure::File { .. } | AnalyseFailure::Mapping { .. })) => refuse(&failure.to_string()),
        Err(failure) => {
            eprintln!("error: {failure}");
            Ok(Outcome::Incomplete)
        }
    }
}

/// The states that a file declares.
fn own_states(path: &Path) -> OwnStates {
    let name = path.display();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| refuse(&format!("{name}: {error}")));
    let own = OwnStates::parse(path, &text).unwrap_or_else(|errors| refuse(&format!("{name}: {errors}")));
    if own.is_empty() {
        refuse(&format!("{name}: declares no `[[states]]`"));
    }
    own
}
