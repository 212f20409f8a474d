//! `kymo doctor`

use std::io::{self, Write};

use kymo_recorder::doctor::{DoctorFinding, Grade, examine};

use super::RecordProblem;
use crate::CommandOutcome;
use crate::arguments::DoctorArguments;
use crate::message::plain_output;

/// Reports the problems.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<CommandOutcome, RecordProblem> {
    let findings = examine();
    let mut out = plain_output();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string(&findings).map_err(io::Error::from)?)?;
    } else {
        findings.iter().try_for_each(|finding| show(finding, &mut out))?;
    }
    let is_wrong = findings.iter().any(|finding| finding.grade == Grade::Wrong);
    Ok(if is_wrong { CommandOutcome::Incomplete } else { CommandOutcome::Complete })
}

fn show(finding: &DoctorFinding, out: &mut impl Write) -> io::Result<()> {
    let grade = match finding.grade {
        Grade::Good => "good ",
        Grade::Note => "note ",
        Grade::Wrong => "WRONG",
    };
    writeln!(out, "{grade}  {}: {}", finding.about, finding.found)?;
    finding.help.iter().try_for_each(|help| writeln!(out, "       help: {help}"))
}
