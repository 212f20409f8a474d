//! Notes of importers.

use kymo_format::Assumption;
use kymo_source::ImportNote;

pub(crate) fn note(assumption: Assumption, what: impl Into<String>) -> ImportNote {
    ImportNote { assumption: assumption.name(), what: what.into() }
}
