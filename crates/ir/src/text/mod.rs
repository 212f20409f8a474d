//! Programs as text, to be read by people and written in test cases.
//!
//! ```text
//! entry 32 0                      position at entry: modulus (power of two), remainder
//! table  table in 0               tables, numbered from 0
//! column 0 u8  column 1 span nullable
//! labels signed -1..=3 "few", 4 "four"
//!
//! align 8  need 32  advance 32  order be  skip r0 * 16
//! r0 = read 0 +8 le signed reversed     r1 = leb signed bits r2
//! r1 r2 = text 1                        r1 = bytes r0        cut r1 r2 1
//! r0 = 5      r0 = r1      r0 = slot 3      slot 3 = r0      clock r0 27
//! repeat r0 as r3 { ... }
//! switch r0 signed { 0..=30, 40 { ... } else { ... } }
//! store 0 r1     span 1 r1 r2     list 1 1 r0     row 1
//! print "text"   print integer r0 signed decimal   print real r0 32 general
//! print text r1 r2 utf8 pretty   print bytes r1 r2 spaced   print label r0 0 json   print flags r0 0 pretty
//! ```
//!
//! Ends of lines mean no more than spaces; `#` begins a comment. The register count is the highest register's. A text
//! names literals themselves, so that reading may number them anew; everything else comes back as it was.

mod read;
mod words;
mod write;

pub use read::read;

/// A program's text has no meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct TextError {
    /// From 1.
    pub line: usize,
    /// The found and the expected text.
    pub kind: TextErrorKind,
}

/// The found and the expected text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextErrorKind {
    /// Another word.
    #[error("found {found:?}, expected {expected}")]
    Word {
        /// The word.
        found: Box<str>,
        /// The possible words there.
        expected: &'static str,
    },
    /// No further word.
    #[error("the text ends, expected {expected}")]
    End {
        /// The possible words there.
        expected: &'static str,
    },
    /// Blocks inside blocks, more than [`crate::verify::DEPTH_MAX`].
    #[error("blocks are nested more than {} deep", crate::verify::DEPTH_MAX)]
    TooDeep,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation in every form.
    const ALL: &str = include_str!("all.txt");

    #[test]
    fn what_is_written_is_read_again() {
        let program = read(ALL).expect("the text is sound");
        let written = program.to_string();
        let without_comments = ALL.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        assert_eq!(written.trim_end(), without_comments.trim_end());
        assert_eq!(read(&written).as_ref(), Ok(&program));
    }

    #[track_caller]
    fn refused(text: &str, message: &str) {
        assert_eq!(read(text).expect_err(text).to_string(), message);
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        refused("need 8\nnead 8", "line 2: found \"nead\", expected an operation");
        refused("need", "line 1: the text ends, expected a number");
        refused("r0 = read 0 +8 me", "line 1: found \"me\", expected le or be");
        refused("need 99999999999999999999", "line 1: found \"99999999999999999999\", expected a number");
        refused("r99999 = 1", "line 1: found \"r99999\", expected an operation");
        refused("print \"a", "line 1: found \"\\\"a\", expected the quote that ends the text");
        refused("need 8 }", "line 1: found \"}\", expected an operation");
        refused(&"repeat 1 { ".repeat(200), "line 1: blocks are nested more than 128 deep");
    }
}
