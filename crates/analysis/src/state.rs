//! States as bytes, for caches, other machines, and traces that still grow.
//!
//! ```text
//! "kymo state"  name of the analysis  its version  what it was asked  checksum │ state      all in postcard's form
//!                                                                              └── of these bytes
//! ```
//!
//! A state is only understood by the analysis that made it, of the same lanes and classes of
//! events, asked the same. Damaged data is refused before it is looked at, as numbers that no state
//! has would be counted on with. The checksum is no signature: an attacker can make bytes that
//! pass. Take states only from sources that you trust with the answer. States that do not fit the
//! lanes and tables of the analysis are refused.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::{Analysis, AnalysisIdentity, Setup};

const MAGIC: &str = "kymo state 2";

/// Why bytes are no state of an analysis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// They are something else.
    #[error("these bytes are no state of an analysis")]
    NoState,
    /// They are of another analysis, or of another version of it.
    #[error("this is a state of `{found}` version {found_version}; wanted is `{wanted}` version {wanted_version}")]
    Other {
        /// The analysis that they are of.
        found: String,
        /// Its version.
        found_version: u32,
        /// The wanted analysis.
        wanted: &'static str,
        /// Its version.
        wanted_version: u32,
    },
    /// They are of other traces, or of another question.
    #[error("this state of `{name}` is of other traces, or was asked something else")]
    OtherSetup {
        /// The analysis.
        name: &'static str,
    },
    /// Their checksum is not that of the state.
    #[error("the state of `{name}` is damaged: its checksum is {found:#018x}, that of its bytes {expected:#018x}")]
    Checksum {
        /// The analysis.
        name: &'static str,
        /// The value in the bytes.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// They hold data that no state of these lanes has.
    #[error("the state of `{name}` does not fit the lanes and classes that it is of")]
    Unfit {
        /// The analysis.
        name: &'static str,
    },
    /// They end too early, or hold data that no state has.
    #[error("the state of `{name}` is damaged: {error}")]
    Damaged {
        /// The analysis.
        name: &'static str,
        /// The error.
        error: postcard::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct StateHeader {
    magic: String,
    name: String,
    version: u32,
    /// Of lanes, classes and wishes.
    setup: u64,
    /// Of the state.
    checksum: u64,
}

/// A state as bytes; `setup` is the one that the analysis was made with.
///
/// # Errors
///
/// Parts of it are on a disk that cannot be read.
pub fn encode<A: Analysis>(analysis: &A, setup: &Setup<'_>, state: &A::State) -> Result<Vec<u8>, postcard::Error> {
    let AnalysisIdentity { name, version } = analysis.identity();
    let state = postcard::to_allocvec(state)?;
    let (setup, checksum) = (fingerprint(setup), checksum(&state));
    let head = StateHeader { magic: MAGIC.to_owned(), name: name.to_owned(), version, setup, checksum };
    let mut bytes = postcard::to_allocvec(&head)?;
    bytes.extend(state);
    Ok(bytes)
}

/// A state from bytes that [`encode`] made, maybe elsewhere.
///
/// # Errors
///
/// The bytes are no state of this analysis, version and setup, or not as they were.
pub fn decode<A: Analysis>(analysis: &A, setup: &Setup<'_>, bytes: &[u8]) -> Result<A::State, StateError> {
    let AnalysisIdentity { name, version } = analysis.identity();
    let (head, state) = postcard::take_from_bytes::<StateHeader>(bytes).map_err(|_| StateError::NoState)?;
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
    if head.setup != fingerprint(setup) {
        return Err(StateError::OtherSetup { name });
    }
    let expected = checksum(state);
    if head.checksum != expected {
        return Err(StateError::Checksum { name, found: head.checksum, expected });
    }
    let (state, rest) = postcard::take_from_bytes(state).map_err(|error| StateError::Damaged { name, error })?;
    if !rest.is_empty() {
        return Err(StateError::Damaged { name, error: postcard::Error::DeserializeBadEncoding });
    }
    if analysis.fits(&state) { Ok(state) } else { Err(StateError::Unfit { name }) }
}

/// Tells apart what states depend on: they name lanes and classes by their place, and have bins that were asked for.
fn fingerprint(setup: &Setup<'_>) -> u64 {
    let lane = |lane: &crate::LaneFacts| format!("{} {:?} {:?}", lane.host, lane.cpu, lane.streams);
    let lanes: Vec<String> = setup.lanes.iter().map(lane).collect();
    let classes: Vec<&str> = setup.classes.iter().map(|class| &*class.name).collect();
    checksum(format!("{lanes:?} {classes:?} {:?}", setup.wishes).as_bytes())
}

/// FNV-1a over words, so that each bit counts: for any of them, all that follows leads from different sums to different ones.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    let mut add = |word: u64| sum = (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| add(u64::from_le_bytes(*word)));
    rest.iter().for_each(|byte| add(u64::from(*byte)));
    sum ^ (sum >> 32)
}
