//! The text form of predicates, for people and tests: one line per input and per test, inner ones indented.

use std::fmt::{self, Display, Formatter, Write};

use super::{Arithmetic, Bitwise, InputClass, InputKind, Number, Pattern, Predicate, Refusal, Test, TextExpression};

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (number, input) in self.inputs.iter().enumerate() {
            writeln!(f, "input {number}  {input}")?;
        }
        self.write_test(f, &self.root, 0)
    }
}

impl Display for InputClass {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.kind {
            InputKind::Integer { signed, bits } => {
                write!(f, "{}: {}{bits}", self.name, if signed { 'i' } else { 'u' })?;
            }
            InputKind::Real => write!(f, "{}: real", self.name)?,
            InputKind::Text(encoding) => write!(f, "{}: text {encoding:?}", self.name)?,
        }
        if self.optional { f.write_str(", may be missing") } else { Ok(()) }
    }
}

impl Predicate {
    /// The refusal of one of its tests.
    #[must_use]
    pub fn refusal(&self, test: &Test, why: &'static str) -> Refusal {
        let part = fmt::from_fn(|f| self.write_simple(f, test)).to_string();
        Refusal { part, why }
    }

    /// The refusal of one of its numbers.
    #[must_use]
    pub fn number_refusal(&self, number: &Number, why: &'static str) -> Refusal {
        let part = fmt::from_fn(|f| self.write_number(f, number)).to_string();
        Refusal { part, why }
    }

    fn write_test(&self, f: &mut Formatter<'_>, test: &Test, depth: usize) -> fmt::Result {
        write!(f, "{:indent$}", "", indent = 2 * depth)?;
        let (word, inner) = match test {
            Test::All(tests) => ("all", &tests[..]),
            Test::Any(tests) => ("any", &tests[..]),
            Test::Not(test) => ("not", std::slice::from_ref(&**test)),
            simple => {
                self.write_simple(f, simple)?;
                return f.write_char('\n');
            }
        };
        writeln!(f, "{word}")?;
        inner.iter().try_for_each(|test| self.write_test(f, test, depth + 1))
    }

    fn write_simple(&self, f: &mut Formatter<'_>, test: &Test) -> fmt::Result {
        match test {
            Test::Constant(Some(value)) => write!(f, "{value}"),
            Test::Constant(None) => f.write_str("unknown"),
            Test::Not(test) => self.write_list(f, "not", std::slice::from_ref(test)),
            Test::All(tests) => self.write_list(f, "all", tests),
            Test::Any(tests) => self.write_list(f, "any", tests),
            Test::Has(input) => write!(f, "has({})", self.inputs[usize::from(input.0)].name),
            Test::Compare { relation, left, right } => {
                self.write_number(f, left)?;
                write!(f, " {} ", relation.symbol())?;
                self.write_number(f, right)
            }
            Test::Among { value, ranges } => {
                self.write_number(f, value)?;
                f.write_str(" in (")?;
                for (index, (lowest, highest)) in ranges.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    if lowest == highest { write!(f, "{lowest}")? } else { write!(f, "{lowest}..={highest}")? }
                }
                f.write_char(')')
            }
            Test::CompareText { relation, left, right } => {
                self.write_text(f, left)?;
                write!(f, " {} ", relation.symbol())?;
                self.write_text(f, right)
            }
            Test::Matches { text, pattern } => {
                self.write_text(f, text)?;
                write!(f, " {pattern}")
            }
        }
    }

    fn write_list(&self, f: &mut Formatter<'_>, word: &str, tests: &[impl std::borrow::Borrow<Test>]) -> fmt::Result {
        write!(f, "{word}(")?;
        for (index, test) in tests.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            self.write_simple(f, test.borrow())?;
        }
        f.write_char(')')
    }

    fn write_text(&self, f: &mut Formatter<'_>, text: &TextExpression) -> fmt::Result {
        match text {
            TextExpression::Literal(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            TextExpression::Input(input) => f.write_str(&self.inputs[usize::from(input.0)].name),
        }
    }

    fn write_number(&self, f: &mut Formatter<'_>, number: &Number) -> fmt::Result {
        match number {
            Number::Integer(value) => write!(f, "{value}"),
            Number::Real(value) => write!(f, "{:?}", value.value()),
            Number::Input(input) => f.write_str(&self.inputs[usize::from(input.0)].name),
            Number::Truth(test) => {
                f.write_str("truth(")?;
                self.write_simple(f, test)?;
                f.write_char(')')
            }
            Number::Arithmetic { operation, left, right } => self.write_pair(f, operation.symbol(), left, right),
            Number::Bits { operation, left, right } => self.write_pair(f, operation.symbol(), left, right),
            Number::Complement(value) => {
                f.write_char('~')?;
                self.write_number(f, value)
            }
            Number::Scaled { value, multiply, divide, add } => {
                f.write_char('(')?;
                self.write_number(f, value)?;
                write!(f, " * {multiply} / {divide} + {add})")
            }
        }
    }

    fn write_pair(&self, f: &mut Formatter<'_>, symbol: &str, left: &Number, right: &Number) -> fmt::Result {
        f.write_char('(')?;
        self.write_number(f, left)?;
        write!(f, " {symbol} ")?;
        self.write_number(f, right)?;
        f.write_char(')')
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(bytes) => write!(f, "is \"{}\"", bytes.escape_ascii()),
            Self::Prefix(bytes) => write!(f, "begins with \"{}\"", bytes.escape_ascii()),
            Self::Glob(parts) => {
                f.write_str("is like \"")?;
                for (index, part) in parts.iter().enumerate() {
                    write!(f, "{}{}", if index > 0 { "*" } else { "" }, part.escape_ascii())?;
                }
                f.write_char('"')
            }
            Self::Regex(regex) => write!(f, "=~ \"{}\"", regex.source()),
        }
    }
}

impl Arithmetic {
    /// As it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

impl Bitwise {
    /// As it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
        }
    }
}
