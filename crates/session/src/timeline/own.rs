//! Files of own analyses; the timeline shows their states and counters.

use std::path::Path;

use kymo_analysis::declared::AnalysisDeclaration;
use kymo_analysis::mapping::MappingErrors;
use kymo_analysis::timeline::own::DeclaredTracks;

/// The states and counters of an own analysis' file, for the timeline.
#[derive(Clone, Debug)]
pub struct OwnTracks {
    text: String,
    declaration: AnalysisDeclaration,
}

impl OwnTracks {
    /// From the text of a file.
    ///
    /// # Errors
    ///
    /// All that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, MappingErrors> {
        Ok(Self { text: text.to_owned(), declaration: AnalysisDeclaration::parse(text)? })
    }

    /// Of a file.
    ///
    /// # Errors
    ///
    /// A sentence that names the error in it, and where.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        Self::parse(&text).map_err(|errors| errors.render(&name.to_string()).trim_end().to_owned())
    }
}

/// All of them together, and their texts, which identify the pyramid that was built for them.
pub(super) fn all(files: &[OwnTracks]) -> (DeclaredTracks, String) {
    let declarations: Vec<AnalysisDeclaration> = files.iter().map(|file| file.declaration.clone()).collect();
    let texts = files.iter().flat_map(|file| ["\0", &file.text]).collect();
    (DeclaredTracks::new(&declarations), texts)
}
