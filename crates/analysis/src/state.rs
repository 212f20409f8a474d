//! States as bytes, for caches, other machines, and traces that still grow.
//!
//! ```text
//! "kymo state"  name of the analysis  its version  state      all in postcard's form
//! ```

use serde::{Deserialize, Serialize};

use crate::{Analysis, Identity};

const MAGIC: &str = "kymo state 1";

/// Why bytes are no state of an analysis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// They are something else.
    #[error("these bytes are no state of an analysis")]
    NoState,
    /// They are of another analysis, or of another version of it.
    #[error("this is a state of `{found}` version {found_version}; wanted is `{wanted}` version {wanted_version}")]
    Other {
        /// What they are of.
        found: String,
        /// Its version.
        found_version: u32,
        /// What was wanted.
        wanted: &'static str,
        /// Its version.
        wanted_version: u32,
    },
    /// They end too early, or hold what no state has.
    #[error("the state of `{name}` is damaged: {error}")]
    Damaged {
        /// The analysis.
        name: &'static str,
        /// What is wrong.
        error: postcard::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct Head {
    magic: String,
    name: String,
    version: u32,
}

/// A state as bytes.
///
/// # Errors
///
/// Parts of it are on a disk that cannot be read.
pub fn encode<A: Analysis>(analysis: &A, state: &A::State) -> Result<Vec<u8>, postcard::Error> {
    let Identity { name, version } = analysis.identity();
    let head = Head { magic: MAGIC.to_owned(), name: name.to_owned(), version };
    postcard::to_extend(state, postcard::to_allocvec(&head)?)
}

/// A state from bytes that [`encode`] made, maybe elsewhere.
///
/// # Errors
///
/// The bytes are no state of this analysis and version.
pub fn decode<A: Analysis>(analysis: &A, bytes: &[u8]) -> Result<A::State, StateError> {
    let Identity { name, version } = analysis.identity();
    let (head, rest) = postcard::take_from_bytes::<Head>(bytes).map_err(|_| StateError::NoState)?;
    if head.magic != MAGIC {
        return Err(StateError::NoState);
    }
    if head.name != name || head.version != version {
        return Err(StateError::Other {
            found: head.name,
            found_version: head.version,
            wanted: name,
            wanted_version: version,
        });
    }
    let (state, rest) = postcard::take_from_bytes(rest).map_err(|error| StateError::Damaged { name, error })?;
    if !rest.is_empty() {
        return Err(StateError::Damaged { name, error: postcard::Error::DeserializeBadEncoding });
    }
    Ok(state)
}
