//! Facts about fields in the line `print fmt` of a description: names of values, and which ones are bits.
//!
//! ```text
//! "state=%s flags=%s", __print_symbolic(REC->state, { 1, "OPEN" }, { 1 << 1, "SHUT" }), __print_flags(REC->flags, "|", ...)
//!                                       └ field        └ value                                       └ field
//! ```
//!
//! The line is C. Values are read that are numbers, sums and shifts of numbers; where one is anything else, the field stays a number.

/// Bytes of a line that are read; the kernel's longest one has 20,000.
const LINE_MAX: usize = 1 << 18;
/// Names of a field's values.
const NAMES_MAX: usize = 1024;
/// Parentheses inside of each other.
const DEPTH_MAX: usize = 32;

/// Facts about fields, from a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintFacts {
    /// Fields with names of values.
    pub names: Vec<ValueNames>,
    /// Fields with names of bits.
    pub flags: Vec<String>,
}

/// The names of a field's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueNames {
    /// The field.
    pub field: String,
    /// Values and their names.
    pub names: Vec<(i128, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PrintToken<'t> {
    Word(&'t str),
    Number(i128),
    Text(String),
    /// `<<`, `>>`, `->` and others of one character.
    Sign(&'t str),
}

impl PrintFacts {
    /// Reads the line behind `print fmt:`.
    ///
    /// ```
    /// let facts = kymo_ftrace::print::PrintFacts::read("\"%s\", __print_symbolic(REC->a, { 1 << 3, \"EIGHT\" })");
    /// assert_eq!(facts.names[0].names, [(8, "EIGHT".to_owned())]);
    /// ```
    #[must_use]
    pub fn read(line: &str) -> Self {
        let mut facts = Self::default();
        // A longer line is none of the kernel's.
        let Some(tokens) = (line.len() <= LINE_MAX).then(|| tokens(line)).flatten() else { return facts };
        for (at, token) in tokens.iter().enumerate() {
            let PrintToken::Word(function @ ("__print_symbolic" | "__print_flags")) = token else { continue };
            if tokens.get(at + 1) != Some(&PrintToken::Sign("(")) {
                continue;
            }
            let (first, rest) = argument(&tokens[at + 2..]);
            let Some(field) = field(first, *function == "__print_symbolic") else { continue };
            if *function == "__print_flags" {
                facts.flags.push(field.to_owned());
            } else if !facts.names.iter().any(|known| known.field == field)
                && let Some(names) = names(rest)
            {
                facts.names.push(ValueNames { field: field.to_owned(), names });
            }
        }
        facts
    }
}

/// The tokens of a line; `None`: a text has no end.
fn tokens(line: &str) -> Option<Vec<PrintToken<'_>>> {
    let bytes = line.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end_of = |is: fn(&u8) -> bool| at + bytes[at..].iter().take_while(|byte| is(byte)).count();
        match bytes[at] {
            byte if byte.is_ascii_whitespace() => at += 1,
            b'"' => {
                let (text, end) = text(line, at + 1)?;
                // Texts one behind the other are one.
                match tokens.last_mut() {
                    Some(PrintToken::Text(before)) => before.push_str(&text),
                    _ => tokens.push(PrintToken::Text(text)),
                }
                at = end;
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' => {
                let end = end_of(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
                let word = &line[at..end];
                tokens.push(match byte.is_ascii_digit() {
                    true => number(word).map_or(PrintToken::Word(word), PrintToken::Number),
                    false => PrintToken::Word(word),
                });
                at = end;
            }
            _ => {
                let two = line.get(at..at + 2).filter(|two| ["<<", ">>", "->"].contains(two));
                let length = line[at..].chars().next().map_or(1, char::len_utf8);
                let sign = two.unwrap_or(&line[at..at + length]);
                tokens.push(PrintToken::Sign(sign));
                at += sign.len();
            }
        }
    }
    Some(tokens)
}

/// A text without its escapes, and where the next token begins.
fn text(line: &str, begin: usize) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut characters = line.get(begin..)?.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, begin + at + 1)),
            '\\' => match characters.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
    None
}

fn number(word: &str) -> Option<i128> {
    let word = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None if word.len() > 1 && word.starts_with('0') => u64::from_str_radix(word, 8),
        None => word.parse(),
    };
    value.ok().map(i128::from)
}

/// The tokens up to a comma or the end of their parentheses, and those behind the comma.
fn argument<'t, 'l>(tokens: &'t [PrintToken<'l>]) -> (&'t [PrintToken<'l>], &'t [PrintToken<'l>]) {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            PrintToken::Sign("(" | "{" | "[") => depth += 1,
            PrintToken::Sign(")" | "}" | "]") if depth == 0 => return (&tokens[..at], &tokens[at..]),
            PrintToken::Sign(")" | "}" | "]") => depth -= 1,
            PrintToken::Sign(",") if depth == 0 => return (&tokens[..at], &tokens[at + 1..]),
            _ => {}
        }
    }
    (tokens, &[])
}

/// The only field that an expression has; if the value is to be the field's own, nothing is done with it.
fn field<'l>(tokens: &[PrintToken<'l>], is_its_own: bool) -> Option<&'l str> {
    let is_record = |window: &[PrintToken<'_>]| {
        matches!(window, [PrintToken::Word("REC"), PrintToken::Sign("->"), PrintToken::Word(_)])
    };
    let mut places = tokens.windows(3).enumerate().filter(|(_, window)| is_record(window));
    let (at, window) = places.next()?;
    let PrintToken::Word(field) = window[2] else { return None };
    let mut others = tokens[..at].iter().chain(&tokens[at + 3..]);
    // Parentheses, and the words of a cast.
    let is_nothing = |token: &PrintToken<'_>| matches!(token, PrintToken::Sign("(" | ")") | PrintToken::Word(_));
    let is_plain = others.all(is_nothing) && is_no_call(tokens);
    (places.next().is_none() && (is_plain || !is_its_own)).then_some(field)
}

/// Words before parentheses call something, unless they are in parentheses themselves.
fn is_no_call(tokens: &[PrintToken<'_>]) -> bool {
    !tokens.windows(2).any(|two| matches!(two, [PrintToken::Word(_), PrintToken::Sign("(")]))
}

/// `{ value, "name" }, ...`, up to a closing parenthesis.
fn names(mut tokens: &[PrintToken<'_>]) -> Option<Vec<(i128, String)>> {
    let mut names = Vec::new();
    loop {
        let (one, rest) = argument(tokens);
        let [PrintToken::Sign("{"), inside @ .., PrintToken::Sign("}")] = one else { return None };
        let (value, text) = argument(inside);
        let (value, [PrintToken::Text(text)]) = (constant(value)?, text) else { return None };
        names.push((value, text.clone()));
        match rest.first() {
            Some(PrintToken::Sign(")")) => return Some(names),
            Some(_) if names.len() < NAMES_MAX => tokens = rest,
            _ => return None,
        }
    }
}

/// The value of an expression of numbers; `None`: it is none.
fn constant(tokens: &[PrintToken<'_>]) -> Option<i128> {
    let mut expression = ConstantExpression { tokens, depth: 0 };
    let value = expression.binary(0)?;
    expression.tokens.is_empty().then_some(value)
}

struct ConstantExpression<'t, 'l> {
    tokens: &'t [PrintToken<'l>],
    depth: usize,
}

impl ConstantExpression<'_, '_> {
    /// An expression whose operators bind at least so much.
    fn binary(&mut self, least: u8) -> Option<i128> {
        let mut left = self.unary()?;
        while let Some(PrintToken::Sign(sign)) = self.tokens.first() {
            let sign = *sign;
            let Some(binds) = ["|", "^", "&", "<<>>", "+-", "*"].iter().position(|signs| signs.contains(sign)) else {
                break;
            };
            let binds = binds as u8;
            if binds < least {
                break;
            }
            self.tokens = &self.tokens[1..];
            let right = self.binary(binds + 1)?;
            let shift = || u32::try_from(right).ok().filter(|shift| *shift < 64);
            left = match sign {
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "<<" => left.checked_mul(1 << shift()?)?,
                ">>" => left >> shift()?,
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                _ => return None,
            };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i128> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        let value = match first {
            PrintToken::Number(number) => Some(*number),
            PrintToken::Sign("-") => self.unary().map(|value| -value),
            PrintToken::Sign("~") => self.unary().map(|value| !value),
            PrintToken::Sign("(") => {
                let words = self.tokens.iter().take_while(|token| matches!(token, PrintToken::Word(_))).count();
                if words > 0 && self.tokens.get(words) == Some(&PrintToken::Sign(")")) {
                    // A cast.
                    self.tokens = &self.tokens[words + 1..];
                    self.unary()
                } else {
                    let value = self.binary(0)?;
                    let closed = self.tokens.split_first().filter(|(next, _)| **next == PrintToken::Sign(")"));
                    self.tokens = closed?.1;
                    Some(value)
                }
            }
            _ => None,
        };
        self.depth -= 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names_of(arguments: &str) -> Option<Vec<(i128, String)>> {
        let facts = PrintFacts::read(&format!("\"%s, __print_symbolic(\", __print_symbolic({arguments})"));
        facts.names.into_iter().next().map(|names| names.names)
    }

    #[test]
    fn values_are_constants_of_c() {
        let of = |value: &str| names_of(&format!("REC->a, {{ {value}, \"x\" }}")).map(|names| names[0].0);
        for (value, wanted) in [
            ("7", 7),
            ("0x1fUL", 31),
            ("010", 8),
            ("1 << 3", 8),
            ("((1U << 2) | 1)", 5),
            ("(unsigned int)-1", -1),
            ("~0", -1),
            ("1 + 2 * 3 - 1", 6),
            ("(1 << 4) - 1 & 0xc", 12),
            ("256 >> 2", 64),
        ] {
            assert_eq!(of(value), Some(wanted), "{value}");
        }
        for no in
            ["ENUM", "1 << 64", "1 / 0", "sizeof(int)", "", "(1", "1)", "0x", "99999999999999999999999", "a ? 1 : 2"]
        {
            assert_eq!(of(no), None, "{no}");
        }
        assert_eq!(of(&"(".repeat(100_000)), None);
        assert_eq!(of(&"-".repeat(100_000)), None);
        assert_eq!(of(&format!("1{}", "+1".repeat(1000))), Some(1001));
    }

    #[test]
    fn fields_are_found() {
        let names = |expression: &str| names_of(&format!("{expression}, {{ 1, \"o\" \"ne\" }}, {{ 2, \"t\\\"wo\" }}"));
        let both = Some(vec![(1, "one".to_owned()), (2, "t\"wo".to_owned())]);
        assert_eq!(names("REC->a"), both);
        assert_eq!(names("(int)(REC->a)"), both);
        for no in ["REC->a & 7", "REC->a >> 2", "f(REC->a)", "REC->a + REC->b", "a", "(REC->a)[0]"] {
            assert_eq!(names(no), None, "{no}");
        }
        let facts = PrintFacts::read("\"%s\", __print_flags((unsigned long) REC->f & 3, \"|\", { 1UL, \"A\" })");
        assert_eq!((facts.flags, facts.names), (vec!["f".to_owned()], vec![]));
        assert_eq!(names_of("REC->a, { 1, \"x\" }, { B, \"y\" }"), None, "all or none");
    }

    proptest! {
        #[test]
        fn any_line_is_read(
            line in "(\"|\\\\|__print_symbolic|__print_flags|REC->|a|\\(|\\)|\\{|\\}|,|<<|-|~|7|0x|é| ){0,60}",
            more in ".{0,200}",
        ) {
            let facts = PrintFacts::read(&format!("{line}{more}"));
            let bytes = line.len() + more.len();
            prop_assert!(facts.names.iter().map(|field| field.names.len()).sum::<usize>() <= bytes);
        }
    }
}
