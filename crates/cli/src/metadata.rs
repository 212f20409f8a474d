//! `kymo metadata`

use std::io::{self, Write};

use kymo_session::{MetadataForm, metadata};

use crate::Outcome;
use crate::arguments::{Dialect, MetadataArguments};
use crate::show;

/// The form of metadata for a dialect.
pub(crate) fn form(dialect: Option<Dialect>) -> MetadataForm {
    match dialect {
        None => MetadataForm::AsIs,
        Some(Dialect::Ctf2) => MetadataForm::Ctf2,
        Some(Dialect::Tsdl) => MetadataForm::Tsdl,
    }
}

/// Prints the metadata of the traces.
pub(crate) fn run(arguments: &MetadataArguments) -> io::Result<Outcome> {
    let texts = match metadata(&arguments.trace, form(arguments.dialect)) {
        Ok(texts) => texts,
        Err(failure) => {
            eprint!("{}", failure.render());
            return Ok(Outcome::Incomplete);
        }
    };
    let mut outcome = Outcome::Complete;
    let mut out = io::stdout().lock();
    for metadata in &texts {
        for problem in &metadata.problems {
            eprintln!("{}", show::assumption(&problem.message, arguments.strict));
        }
        if metadata.is_wrong || arguments.strict && !metadata.problems.is_empty() {
            outcome = Outcome::Incomplete;
        }
        match &metadata.text {
            Ok(text) => out.write_all(text.as_bytes())?,
            Err(reason) => {
                eprintln!("error: {}: {reason}", metadata.path);
                outcome = Outcome::Incomplete;
            }
        }
    }
    Ok(outcome)
}
