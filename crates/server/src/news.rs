//! The states that listeners receive.

/// States, each of which has a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct News {
    pub(crate) states: Vec<(&'static str, String)>,
}
