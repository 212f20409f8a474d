//! A trace's metadata: as it is, or written in a dialect.

use std::path::Path;

use kymo_format::Severity;
use kymo_source::ImportOptions;

use crate::open::OpenFailure;
use crate::open::discover::discover_all;
use crate::open::report::ReportProblem;

/// In which dialect metadata are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetadataForm {
    /// As they are, without the headers of metadata packets.
    #[default]
    AsIs,
    /// CTF 2 JSON.
    Ctf2,
    /// CTF 1.8 TSDL.
    Tsdl,
}

/// Metadata as text, and the assumptions in reading them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataText {
    /// The trace.
    pub path: String,
    /// The text, or why it cannot be written.
    pub text: Result<String, String>,
    /// Errors and doubts.
    pub problems: Vec<ReportProblem>,
    /// Something is wrong, not only doubtful.
    pub is_wrong: bool,
}

/// The metadata of every trace at or below `path`.
///
/// # Errors
///
/// No trace is there, or a metadata file cannot be read.
pub fn metadata(path: &Path, form: MetadataForm, options: &ImportOptions) -> Result<Vec<MetadataText>, OpenFailure> {
    let mut texts = Vec::new();
    for folder in discover_all(path, options)? {
        let metadata = kymo_format::parse(&folder.metadata()?);
        let place = folder.path().join("metadata").display().to_string();
        let render = |found: &kymo_format::Diagnostic| ReportProblem {
            place: place.clone(),
            message: found.render_plain(&metadata.text, &place),
        };
        let problems = metadata.diagnostics.iter().map(render).collect();
        let wrong = metadata.diagnostics.iter().any(|found| found.severity == Severity::Error);
        let written = |write: fn(&kymo_format::TraceClass) -> Result<String, kymo_format::write::Unwritable>| {
            let class = metadata.trace_class.as_ref().ok_or("the metadata has errors".to_owned())?;
            write(class).map_err(|error| error.to_string())
        };
        let text = match form {
            MetadataForm::AsIs if wrong && metadata.text.is_empty() => Err("the metadata has errors".to_owned()),
            MetadataForm::AsIs => Ok(metadata.text.clone()),
            MetadataForm::Ctf2 => written(kymo_format::write::to_json),
            MetadataForm::Tsdl => written(kymo_format::write::to_tsdl),
        };
        texts.push(MetadataText { path: folder.path().display().to_string(), text, problems, is_wrong: wrong });
    }
    Ok(texts)
}
