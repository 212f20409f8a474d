//! `kymo metadata`

use std::io::{self, Write};

use kymo_session::{MetadataForm, metadata};

use crate::CommandOutcome;
use crate::arguments::{MetadataArguments, MetadataDialect};
use crate::show;

/// The form of metadata for a dialect.
pub(crate) fn form(dialect: Option<MetadataDialect>) -> MetadataForm {
    match dialect {
        None => MetadataForm::AsIs,
        Some(MetadataDialect::Ctf2) => MetadataForm::Ctf2,
        Some(MetadataDialect::Tsdl) => MetadataForm::Tsdl,
    }
}

/// Prints the metadata of the traces.
pub(crate) fn run(arguments: &MetadataArguments) -> io::Result<CommandOutcome> {
    let texts = match metadata(&arguments.trace, form(arguments.dialect), &arguments.import.options()) {
        Ok(texts) => texts,
        Err(failure) => {
            message_text!("{}", failure.render());
            return Ok(CommandOutcome::Incomplete);
        }
    };
    let mut outcome = CommandOutcome::Complete;
    let mut out = io::stdout().lock();
    for metadata in &texts {
        for problem in &metadata.problems {
            message!("{}", show::assumption(&problem.message, arguments.strict));
        }
        if metadata.is_wrong || arguments.strict && !metadata.problems.is_empty() {
            outcome = CommandOutcome::Incomplete;
        }
        match &metadata.text {
            Ok(text) => out.write_all(text.as_bytes())?,
            Err(reason) => {
                message!("error: {}: {reason}", metadata.path);
                outcome = CommandOutcome::Incomplete;
            }
        }
    }
    Ok(outcome)
}
