//! Names of tracks that traces say.

use serde::{Deserialize, Serialize};

/// The name of a counter or a component, and where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// Its name.
    pub name: String,
    /// Where: almost always the number of a process.
    pub within: Option<String>,
    /// Its group, if the event has one.
    pub group: Option<String>,
    /// The unit of a counter, if the event has one.
    pub unit: Option<String>,
    /// An own analysis says so: of which machine it is, is not known.
    pub is_own: bool,
}
