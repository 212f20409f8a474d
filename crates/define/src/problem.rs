//! Mistakes in a schema, and their places.

use std::fmt;
use std::path::PathBuf;

/// A place in a file: line and column, both from 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaPlace {
    /// Which file of those that were read: 0 is the first.
    pub file: usize,
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// A mistake in a file, or something that is likely one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaProblem {
    /// Where.
    pub place: SchemaPlace,
    /// The mistake.
    pub message: String,
    /// A remedy.
    pub help: Option<String>,
    /// The schema can be used in spite of it.
    pub is_warning: bool,
}

/// All that is wrong with some files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaProblems {
    /// The files that were read, in the order of [`SchemaPlace::file`].
    pub files: Vec<PathBuf>,
    /// In the order of their places.
    pub problems: Vec<SchemaProblem>,
}

impl SchemaProblem {
    pub(crate) fn error(place: SchemaPlace, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), help: None, is_warning: false }
    }

    pub(crate) fn warning(place: SchemaPlace, message: impl Into<String>) -> Self {
        Self { is_warning: true, ..Self::error(place, message) }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl SchemaProblems {
    /// Whether something is wrong, beyond warnings.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| !problem.is_warning)
    }

    /// One problem as people read it: `shop.kymo:3:5: error: there is no event `x``.
    #[must_use]
    pub fn line(&self, problem: &SchemaProblem) -> String {
        let SchemaPlace { file, line, column } = problem.place;
        let file = self.files.get(file).map(|file| file.display().to_string()).unwrap_or_default();
        let kind = if problem.is_warning { "warning" } else { "error" };
        let help = problem.help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default();
        format!("{file}:{line}:{column}: {kind}: {}{help}", problem.message)
    }
}

impl fmt::Display for SchemaProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{}", if number == 0 { "" } else { "\n" }, self.line(problem))?;
        }
        Ok(())
    }
}

impl std::error::Error for SchemaProblems {}
