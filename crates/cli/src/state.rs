//! `kymo state`: the state of CPUs and threads at an instant.

use std::path::Path;

use kymo_session::{AnalyseFailure, Analysed, AnalysisOptions, OwnStates, Progress, Session, Zone};

use crate::CommandOutcome;
use crate::analyses::{AnalysisRefusal, TOP, is_lossy};
use crate::answer::{AnswerView, Manner, show};
use crate::arguments::StateArguments;
use crate::progress::watched;
use crate::stop::StopReason;

/// Asks and shows the answer.
pub(crate) fn run(session: &Session, arguments: &StateArguments) -> Result<CommandOutcome, StopReason> {
    let face = &arguments.face;
    let progress = Progress::default();
    let top = face.is_for_people().then_some(TOP);
    let question = StateQuestion::new(session, arguments, top)?;
    let work = || question.ask(session, &progress);
    let asked = if face.no_progress { work() } else { watched(&progress, work) };
    match asked {
        Ok(found) => {
            let tables = Session::state_tables(question.own.as_ref());
            let view = AnswerView {
                headline: Session::state_headline(&found.answer, is_lossy(&found.report)),
                nothing: "Nothing was found. Looked for: CPUs and threads, within the chosen options.".to_owned(),
                rows: question.options.wishes.top,
                top: arguments.top.and_then(|top| top.0),
                ..AnswerView::default()
            };
            show(session, &tables, &found.answer, &found.report, &view, manner(arguments))
        }
        Err(failure) => match refusal(session, arguments, failure) {
            AnalysisRefusal::Question(message) => Err(StopReason::Usage(message)),
            AnalysisRefusal::Traces(message) => Err(StopReason::unanswerable(&message)),
        },
    }
}

/// The question.
pub(crate) struct StateQuestion {
    at_ns: i64,
    own: Option<OwnStates>,
    options: AnalysisOptions,
}

impl StateQuestion {
    pub(crate) fn new(session: &Session, arguments: &StateArguments, top: Option<usize>) -> Result<Self, StopReason> {
        let zone = if arguments.clock_gmt { Zone::Utc } else { Zone::Local };
        let at_ns = arguments.at.nanos(session.first_ns().unwrap_or(0), zone);
        let at_ns = at_ns.ok_or_else(|| StopReason::Usage("the time is out of range".to_owned()))?;
        let own = arguments.own.as_deref().map(own_states).transpose()?;
        Ok(Self { at_ns, own, options: arguments.options(top) })
    }

    pub(crate) fn ask(&self, session: &Session, progress: &Progress) -> Result<Analysed, AnalyseFailure> {
        session.state_at(self.at_ns, self.own.as_ref(), &self.options, progress)
    }
}

fn manner(arguments: &StateArguments) -> Manner<'_> {
    let StateArguments { clock_gmt, clock_seconds, .. } = *arguments;
    Manner { face: &arguments.face, clock_gmt, clock_seconds, strict: arguments.common.strict }
}

/// Why there is no answer.
pub(crate) fn refusal(session: &Session, arguments: &StateArguments, failure: AnalyseFailure) -> AnalysisRefusal {
    match failure {
        AnalyseFailure::Outside { begin_ns, end_ns } => {
            let times = manner(arguments).times(session).within(None);
            AnalysisRefusal::Question(format!("the trace is from {} to {}", times.zoned(begin_ns), times.zoned(end_ns)))
        }
        failure @ (AnalyseFailure::File { .. }
        | AnalyseFailure::Mapping { .. }
        | AnalyseFailure::NotAllSwitches { .. }) => AnalysisRefusal::Question(failure.to_string()),
        failure => AnalysisRefusal::Traces(failure.to_string()),
    }
}

/// The states that a file declares.
fn own_states(path: &Path) -> Result<OwnStates, StopReason> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| StopReason::Usage(format!("{name}: {error}")))?;
    let own = OwnStates::parse(path, &text).map_err(|errors| StopReason::Usage(format!("{name}: {errors}")))?;
    if own.is_empty() {
        return Err(StopReason::Usage(format!("{name}: declares no `[[states]]`")));
    }
    Ok(own)
}
