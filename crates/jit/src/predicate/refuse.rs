//! Predicates that machine code does not cover: regular expressions, text that is not UTF-8, scales
//! with products that need more than 64 bits, and predicates so large that compiling them would
//! take long. The evaluator covers all of them.
//!
//! Where the evaluator is at hand, in scans, only whole predicates are refused: a test without
//! machine code leaves the record to the evaluator, and the tests before it may have dropped the
//! record by then.

use kymo_ir::Encoding;
use kymo_ir::predicate::{InputKind, Number, Pattern, Predicate, Refusal, Test, TextExpression};

/// Parts, and words of text, of predicates that are worth compiling together: each takes microseconds.
pub(crate) const SIZE_MAX: usize = 4096;
/// Bytes of a part between stars: it is compared at each place of the text.
const MIDDLE_MAX: usize = 64;
/// Bytes of a text that another one is ordered by: it is put on the stack.
pub(super) const ORDERED_MAX: usize = 256;

/// Whether machine code covers the predicate as a whole.
///
/// # Errors
///
/// The first part that cannot.
pub(crate) fn refuse(predicate: &Predicate) -> Result<(), Refusal> {
    refuse_whole(predicate)?;
    refuse_test(predicate, &predicate.root)
}

/// Whether code can be written for the predicate, even if it does not cover some of its tests;
/// returns its size.
///
/// # Errors
///
/// It is not sound, or too large.
pub(crate) fn refuse_whole(predicate: &Predicate) -> Result<usize, Refusal> {
    if let Err(error) = predicate.verify() {
        return Err(Refusal { part: error.to_string(), why: "the predicate is not sound" });
    }
    let mut walk = RefusalWalk { predicate, size: 0, refused: None };
    walk.test(&predicate.root);
    if walk.size > SIZE_MAX {
        let part = format!("{} parts", walk.size);
        return Err(Refusal { part, why: "the predicate is too large for machine code" });
    }
    Ok(walk.size)
}

/// Whether machine code covers a test.
pub(super) fn refuse_test(predicate: &Predicate, test: &Test) -> Result<(), Refusal> {
    let mut walk = RefusalWalk { predicate, size: 0, refused: None };
    walk.test(test);
    walk.refused.map_or(Ok(()), Err)
}

/// The scale without the factors that both sides have.
pub(super) fn factors(multiply: u64, divide: u64) -> (u64, u64) {
    let (mut common, mut rest) = (multiply, divide);
    while rest != 0 {
        (common, rest) = (rest, common % rest);
    }
    (multiply / common, divide / common)
}

struct RefusalWalk<'p> {
    predicate: &'p Predicate,
    size: usize,
    /// The first part that is not covered.
    refused: Option<Refusal>,
}

impl RefusalWalk<'_> {
    fn refuse(&mut self, test: &Test, why: &'static str) {
        let predicate = self.predicate;
        self.refused.get_or_insert_with(|| predicate.refusal(test, why));
    }

    fn test(&mut self, test: &Test) {
        self.size += 1;
        match test {
            Test::Constant(_) | Test::Has(_) => {}
            Test::Not(test) => self.test(test),
            Test::All(tests) | Test::Any(tests) => tests.iter().for_each(|test| self.test(test)),
            Test::Compare { left, right, .. } => {
                self.number(left);
                self.number(right);
            }
            Test::Among { value, ranges } => {
                self.size += ranges.len();
                self.number(value);
            }
            Test::CompareText { left, right, .. } => {
                for text in [left, right] {
                    self.text(text, test);
                    if matches!(text, TextExpression::Literal(bytes) if bytes.len() > ORDERED_MAX) {
                        self.refuse(test, "machine code orders by short texts alone");
                    }
                }
            }
            Test::Matches { text, pattern } => {
                self.text(text, test);
                self.pattern(pattern, test);
            }
        }
    }

    fn text(&mut self, text: &TextExpression, test: &Test) {
        match text {
            TextExpression::Literal(bytes) => self.size += bytes.len() / 8,
            TextExpression::Input(input) if self.predicate.kind(*input) == InputKind::Text(Encoding::Utf8) => {}
            TextExpression::Input(_) => self.refuse(test, "machine code reads no text but UTF-8"),
        }
    }

    fn pattern(&mut self, pattern: &Pattern, test: &Test) {
        match pattern {
            Pattern::Exactly(bytes) | Pattern::Prefix(bytes) => self.size += bytes.len() / 8,
            Pattern::Glob(parts) => {
                self.size += parts.iter().map(|part| 1 + part.len() / 8).sum::<usize>();
                let middle = parts.get(1..parts.len() - 1).unwrap_or_default();
                if middle.iter().any(|part| part.len() > MIDDLE_MAX) {
                    self.refuse(test, "machine code looks for short texts alone");
                }
            }
            Pattern::Regex(_) => self.refuse(test, "machine code has no regular expressions"),
        }
    }

    fn number(&mut self, number: &Number) {
        self.size += 1;
        match number {
            Number::Integer(_) | Number::Real(_) | Number::Input(_) => {}
            Number::Truth(test) => self.test(test),
            Number::Arithmetic { left, right, .. } | Number::Bits { left, right, .. } => {
                self.number(left);
                self.number(right);
            }
            Number::Complement(value) => self.number(value),
            Number::Scaled { value, multiply, divide, .. } => {
                let (multiply, divide) = factors(*multiply, *divide);
                if (divide - 1).checked_mul(multiply).is_none() {
                    let predicate = self.predicate;
                    let refusal = || predicate.number_refusal(number, "machine code scales with 64 bits");
                    self.refused.get_or_insert_with(refusal);
                }
                self.number(value);
            }
        }
    }
}
