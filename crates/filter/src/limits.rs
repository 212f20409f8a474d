//! How large a filter may be.

/// Bytes of a filter; longer ones are refused: LTTng's limit.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 16;

/// Operators inside each other, at most. Parentheses, and chains of `&&`, of `||` or of one unary operator, are no
/// deeper than one of them.
pub(crate) const DEPTH_MAX: usize = 200;

/// Regular expressions of a filter. Compiled ones take memory: up to a mebibyte each.
pub(crate) const REGEXES_MAX: usize = 64;
