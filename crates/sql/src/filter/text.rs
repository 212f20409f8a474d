//! Texts. A table has U+FFFD where bytes are not valid text, the filter language compares the
//! bytes: the question must not depend on that.
//!
//! | asked | is the same if |
//! |---|---|
//! | equal, begins, ends, contains | the constant has no U+FFFD: its letters begin where letters begin, whatever is around |
//! | less, greater | the constant is ASCII: what is not valid is above it in either form |

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Like, Operator};

use super::{FilterColumns, FilterText, bare, literal as constant, sign};
use crate::table::{Term, TermKind, ValueName};

/// Ranges of an enumeration's values in one filter, at most.
const RANGES_MAX: usize = 1000;

pub(super) fn is_text(kind: &TermKind) -> bool {
    matches!(kind, TermKind::Text | TermKind::Name | TermKind::Label(_))
}

pub(super) fn literal(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(value) | ScalarValue::LargeUtf8(value) | ScalarValue::Utf8View(value) => value.as_deref(),
        ScalarValue::Dictionary(_, value) => literal(value),
        _ => None,
    }
}

/// A column of text compared with a constant.
pub(super) fn compared(term: &Term, operator: Operator, text: &str) -> Option<FilterText> {
    if let TermKind::Label(labels) = &term.kind {
        let is_wanted = |label: &str| match operator {
            Operator::Eq => label == text,
            Operator::NotEq => label != text,
            Operator::Lt => label < text,
            Operator::LtEq => label <= text,
            Operator::Gt => label > text,
            _ => label >= text,
        };
        return labelled(term, labels, is_wanted);
    }
    let is_same = match operator {
        Operator::Eq | Operator::NotEq => is_valid(text),
        _ => text.is_ascii(),
    };
    if !is_same {
        return None;
    }
    FilterText::exactly(format!("{} {} {}", term.text, sign(operator)?, quoted(text)))
}

/// A column of text that is one of several, or none.
pub(super) fn among(term: &Term, texts: &[&str], wanted: bool) -> Option<FilterText> {
    if let TermKind::Label(labels) = &term.kind {
        return labelled(term, labels, |label| texts.contains(&label) == wanted);
    }
    if !texts.iter().all(|text| is_valid(text)) {
        return None;
    }
    let items: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    let text = format!("{} in ({})", term.text, items.join(", "));
    FilterText::exactly(if wanted { text } else { format!("!({text})") })
}

impl FilterColumns<'_> {
    pub(super) fn like(&self, like: &Like, wanted: bool) -> Option<FilterText> {
        if like.case_insensitive || like.escape_char.is_some_and(|escape| escape != '\\') {
            return None;
        }
        let (_, term) = self.column(bare(&like.expr)).filter(|(_, term)| is_text(&term.kind))?;
        let pattern = LikePattern::new(literal(constant(&like.pattern)?)?)?;
        pattern.said(&term, wanted != like.negated)
    }

    /// `starts_with`, `ends_with` and `contains` of a column.
    pub(super) fn text_function(&self, function: &ScalarFunction, wanted: bool) -> Option<FilterText> {
        let [text, part] = &function.args[..] else { return None };
        let part = LikePiece::Text(literal(constant(part)?)?.to_owned());
        let pieces = match function.func.name() {
            "starts_with" => vec![part, LikePiece::Any],
            "ends_with" => vec![LikePiece::Any, part],
            "contains" => vec![LikePiece::Any, part, LikePiece::Any],
            _ => return None,
        };
        let (_, term) = self.column(bare(text)).filter(|(_, term)| is_text(&term.kind))?;
        LikePattern { pieces }.said(&term, wanted)
    }
}

/// The pattern of a `LIKE`.
struct LikePattern {
    pieces: Vec<LikePiece>,
}

enum LikePiece {
    Text(String),
    /// `%`
    Any,
    /// `_`
    One,
}

impl LikePattern {
    /// `None`: it ends with a backslash.
    fn new(pattern: &str) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '%' => pieces.push(LikePiece::Any),
                '_' => pieces.push(LikePiece::One),
                letter => {
                    let letter = if letter == '\\' { letters.next()? } else { letter };
                    match pieces.last_mut() {
                        Some(LikePiece::Text(text)) => text.push(letter),
                        _ => pieces.push(LikePiece::Text(letter.into())),
                    }
                }
            }
        }
        Some(Self { pieces })
    }

    fn said(&self, term: &Term, wanted: bool) -> Option<FilterText> {
        if let TermKind::Label(labels) = &term.kind {
            let regex = self.regex()?;
            return labelled(term, labels, |label| regex.is_match(label) == wanted);
        }
        let is_exact = !self.pieces.iter().any(|piece| matches!(piece, LikePiece::One));
        // A wider pattern leaves less that does not match.
        if !wanted && !is_exact {
            return None;
        }
        let mut glob = String::new();
        for piece in &self.pieces {
            match piece {
                LikePiece::Text(text) if is_valid(text) => glob += &escaped(text),
                LikePiece::Text(_) => return None,
                LikePiece::Any | LikePiece::One if glob.ends_with('*') && !glob.ends_with("\\*") => {}
                LikePiece::Any | LikePiece::One => glob.push('*'),
            }
        }
        let sign = if wanted { "==" } else { "!=" };
        Some(FilterText { text: format!("{} {sign} \"{glob}\"", term.text), is_exact })
    }

    fn regex(&self) -> Option<regex::Regex> {
        let part = |piece: &LikePiece| match piece {
            LikePiece::Text(text) => regex::escape(text),
            LikePiece::Any => ".*".to_owned(),
            LikePiece::One => ".".to_owned(),
        };
        let parts: String = self.pieces.iter().map(part).collect();
        regex::Regex::new(&format!("(?s)^{parts}$")).ok()
    }
}

/// A column of labels: the values with a wanted label.
fn labelled(term: &Term, labels: &[ValueName], is_wanted: impl Fn(&str) -> bool) -> Option<FilterText> {
    let ranges = ranges(labels.iter().filter(|label| is_wanted(&label.name)))?;
    // No value: never true.
    FilterText::exactly(if ranges.is_empty() { "0 == 1".to_owned() } else { format!("{} in ({ranges})", term.text) })
}

/// The values of labels, as items of a list.
pub(super) fn ranges<'l>(labels: impl Iterator<Item = &'l ValueName>) -> Option<String> {
    let item = |&(lowest, highest): &(i128, i128)| {
        let (low, high) = (super::number::written(lowest), super::number::written(highest));
        if lowest == highest { low } else { format!("{low}..={high}") }
    };
    let items: Vec<String> = labels.flat_map(|label| label.ranges.iter().map(item)).collect();
    (items.len() <= RANGES_MAX).then(|| items.join(", "))
}

/// Whether a text cannot be the replacement of invalid bytes.
fn is_valid(text: &str) -> bool {
    !text.contains('\u{FFFD}')
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// In the form between quotes.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' | '*' | '"' => out.extend(['\\', letter]),
            letter if letter.is_control() => out += &format!("\\u{{{:x}}}", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out
}
