//! What people call tracks whose names traces say.

use serde::{Deserialize, Serialize};

/// What people call a counter or a component, and where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// What it is called.
    pub name: String,
    /// Where: almost always the number of a process.
    pub within: Option<String>,
    /// What it is one of, if somebody says that.
    pub group: Option<String>,
    /// What a counter counts, if somebody says that.
    pub unit: Option<String>,
    /// An own analysis says so: of which machine it is, is not known.
    pub is_own: bool,
}
