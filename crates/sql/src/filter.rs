//! The part of a SQL condition that the filter language can express, so that events are dropped
//! where they are decoded.
//!
//! ```text
//! next_prio < 100 AND next_comm LIKE 'kworker%' AND upper(next_comm) = 'X'
//!
//! next_prio < 100      (next_comm == "kworker*")      (stays in SQL)
//! ```
//!
//! A row is kept only if its condition is true, so that is all that has to agree: for each part
//! there is one text that is true where the part is true, and one that is true where it is *false*;
//! `NOT` takes the other. In between lies the unknown, which neither keeps. A part without an exact
//! expression is left out, or expressed more widely: then the condition is asked again of the
//! remaining rows (`is_exact` is false).

mod number;
mod text;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};

use crate::table::{Term, TermKind};

/// Conditions inside each other, at most; the filter language takes 200 levels of which each of these may need three.
const DEPTH_MAX: usize = 48;
/// Bytes of a filter, at most: it is compiled for each class of events.
const BYTES_MAX: usize = 16 << 10;

/// The part of a condition that is asked where events are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// True of every event for which the condition is true.
    pub filter: String,
    /// And of no other.
    pub is_exact: bool,
    /// Where the condition bounds time from below, for the index of packets.
    pub begin: Option<i64>,
    /// And from above.
    pub end: Option<i64>,
}

/// The part of a condition on a table's columns that the filter language can express; `None`:
/// nothing.
///
/// ```
/// use datafusion::arrow::datatypes::{DataType, Field, Schema};
/// use datafusion::logical_expr::{col, lit};
/// use kymo_sql::{Term, TermKind, pushed};
///
/// let schema = Schema::new(vec![Field::new("prio", DataType::Int32, true)]);
/// let term = |_| Some(Term { text: "prio".to_owned(), kind: TermKind::Integer });
/// let condition = col("prio").lt(lit(100)).or(col("prio").is_null());
/// let pushed = pushed(&condition, &schema, &term).expect("there are words for it");
/// assert_eq!(pushed.filter, "(prio < 100) || (!has(prio))");
/// assert!(pushed.is_exact);
/// ```
#[must_use]
pub fn pushed(condition: &Expr, schema: &Schema, term: &dyn Fn(usize) -> Option<Term>) -> Option<Pushed> {
    let words = FilterColumns { schema, term };
    let said = words.said(condition, true, 0)?;
    let (begin, end) = words.span(condition);
    (said.text.len() <= BYTES_MAX).then_some(Pushed { filter: said.text, is_exact: said.is_exact, begin, end })
}

/// A condition in the filter language.
#[derive(Clone, Debug)]
struct FilterText {
    text: String,
    is_exact: bool,
}

impl FilterText {
    fn exactly(text: String) -> Option<Self> {
        Some(Self { text, is_exact: true })
    }

    fn widely(text: String) -> Option<Self> {
        Some(Self { text, is_exact: false })
    }
}

/// The columns of a table.
struct FilterColumns<'a> {
    schema: &'a Schema,
    term: &'a dyn Fn(usize) -> Option<Term>,
}

impl FilterColumns<'_> {
    /// A text that is true where an expression has the wanted value.
    fn said(&self, expression: &Expr, wanted: bool, depth: usize) -> Option<FilterText> {
        if depth > DEPTH_MAX {
            return None;
        }
        match expression {
            Expr::Alias(alias) => self.said(&alias.expr, wanted, depth + 1),
            Expr::Not(inner) => self.said(inner, !wanted, depth + 1),
            Expr::IsTrue(inner) if wanted => self.said(inner, true, depth + 1),
            Expr::IsFalse(inner) if wanted => self.said(inner, false, depth + 1),
            Expr::IsNotTrue(inner) if !wanted => self.said(inner, true, depth + 1),
            Expr::IsNotFalse(inner) if !wanted => self.said(inner, false, depth + 1),
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                self.joined(expression, *op, wanted, depth)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => self.compared(left, *op, right, wanted),
            Expr::Between(Between { expr, negated, low, high }) => {
                let above = self.compared(expr, Operator::GtEq, low, wanted != *negated);
                let below = self.compared(expr, Operator::LtEq, high, wanted != *negated);
                if wanted == *negated {
                    either(vec![above?, below?])
                } else {
                    all([above, below].into_iter().flatten())
                }
            }
            Expr::InList(list) => self.among(list, wanted),
            Expr::Like(like) => self.like(like, wanted),
            Expr::IsNull(inner) => self.known(inner, !wanted),
            Expr::IsNotNull(inner) => self.known(inner, wanted),
            Expr::ScalarFunction(function) => self.text_function(function, wanted),
            Expr::Column(_) => self.truth(expression, wanted),
            _ => None,
        }
    }

    /// A chain of `AND` or `OR`: all of them, where they are to be true; where they are to be false, the other.
    fn joined(&self, expression: &Expr, operator: Operator, wanted: bool, depth: usize) -> Option<FilterText> {
        let mut parts = Vec::new();
        let mut rest = vec![expression];
        while let Some(next) = rest.pop() {
            match next {
                Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == operator => rest.extend([&**right, left]),
                part => parts.push(self.said(part, wanted, depth + 1)),
            }
        }
        if (operator == Operator::And) == wanted {
            let is_all = parts.iter().all(Option::is_some);
            let mut said = all(parts.into_iter().flatten())?;
            said.is_exact &= is_all;
            return Some(said);
        }
        either(parts.into_iter().collect::<Option<_>>()?)
    }

    fn compared(&self, left: &Expr, operator: Operator, right: &Expr, wanted: bool) -> Option<FilterText> {
        let operator = if wanted { operator } else { negated(operator)? };
        let (left, right) = (bare(left), bare(right));
        let (left, operator, right) =
            if matches!(left, Expr::Literal(..)) { (right, operator.swap()?, left) } else { (left, operator, right) };
        sign(operator)?;
        if let (Some((_, term)), Expr::Literal(value, _)) = (self.column(left), right) {
            match term.kind {
                TermKind::Integer => {}
                TermKind::Time => return compared_time(&term, operator, value),
                TermKind::Real => return number::compared_real(&term.text, operator, value),
                TermKind::Boolean => return compared_truth(&term, operator, value),
                TermKind::Text | TermKind::Name | TermKind::Label(_) => {
                    return text::compared(&term, operator, text::literal(value)?);
                }
            }
        }
        self.compared_integers(left, operator, right)
    }

    fn among(&self, list: &InList, wanted: bool) -> Option<FilterText> {
        let wanted = wanted != list.negated;
        let values: Vec<&ScalarValue> = list.list.iter().map(|item| literal(bare(item))).collect::<Option<_>>()?;
        let (known, unknown): (Vec<_>, Vec<_>) = values.into_iter().partition(|value| !value.is_null());
        // It is never false if one of the values is unknown.
        if !wanted && !unknown.is_empty() || known.is_empty() {
            return None;
        }
        let value = bare(&list.expr);
        let term = self.column(value);
        if let Some((_, term)) = term.filter(|(_, term)| text::is_text(&term.kind)) {
            let texts: Vec<&str> = known.into_iter().map(text::literal).collect::<Option<_>>()?;
            return text::among(&term, &texts, wanted);
        }
        let value = self.integer(value)?;
        let items: Vec<String> =
            known.into_iter().map(|item| number::literal(item).map(number::written)).collect::<Option<_>>()?;
        let text = format!("{} in ({})", value.text, items.join(", "));
        FilterText::exactly(if wanted { text } else { format!("!({text})") })
    }

    /// A column that is true or false.
    fn truth(&self, expression: &Expr, wanted: bool) -> Option<FilterText> {
        let (_, term) = self.column(expression)?;
        let sign = if wanted { "!=" } else { "==" };
        (term.kind == TermKind::Boolean).then(|| format!("{} {sign} 0", term.text)).and_then(FilterText::exactly)
    }

    /// Whether a column has a value.
    fn known(&self, expression: &Expr, wanted: bool) -> Option<FilterText> {
        let (_, term) = self.column(bare(expression))?;
        let not = if wanted { "" } else { "!" };
        match &term.kind {
            TermKind::Integer | TermKind::Boolean | TermKind::Real | TermKind::Text => {
                FilterText::exactly(format!("{not}has({})", term.text))
            }
            TermKind::Label(labels) => {
                let named = text::ranges(labels.iter())?;
                let is_named = format!("{} in ({named})", term.text);
                let has = format!("has({})", term.text);
                FilterText::exactly(if wanted { is_named } else { format!("!{has} || !({is_named})") })
            }
            TermKind::Name | TermKind::Time => None,
        }
    }

    /// The column that an expression is, and its word.
    fn column(&self, expression: &Expr) -> Option<(usize, Term)> {
        let Expr::Column(column) = self.same_text(expression) else { return None };
        let index = self.schema.index_of(&column.name).ok()?;
        Some((index, (self.term)(index)?))
    }

    /// Without casts from one form of text to another.
    fn same_text<'e>(&self, expression: &'e Expr) -> &'e Expr {
        match expression {
            Expr::Cast(cast) if is_text_type(cast.field.data_type()) => match bare(&cast.expr) {
                Expr::Column(column) if self.schema.field_with_name(&column.name).is_ok_and(is_text_field) => {
                    &cast.expr
                }
                _ => expression,
            },
            _ => expression,
        }
    }

    /// From when to when events are, of which a condition may be true.
    fn span(&self, condition: &Expr) -> (Option<i64>, Option<i64>) {
        let (mut begin, mut end): (Option<i64>, Option<i64>) = (None, None);
        let mut rest = vec![condition];
        while let Some(next) = rest.pop() {
            let (low, high) = match next {
                Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                    rest.extend([&**left, right]);
                    continue;
                }
                Expr::Between(Between { expr, negated: false, low, high }) if self.is_time(expr) => {
                    (literal(low).and_then(nanoseconds), literal(high).and_then(nanoseconds))
                }
                Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                    self.bound(left, *op, right).or_else(|| self.bound(right, op.swap()?, left)).unwrap_or_default()
                }
                _ => continue,
            };
            begin = begin.max(low);
            end = [end, high].into_iter().flatten().min();
        }
        (begin, end)
    }

    /// The bounds on time from a comparison of time with a constant.
    fn bound(&self, column: &Expr, operator: Operator, value: &Expr) -> Option<(Option<i64>, Option<i64>)> {
        let at = nanoseconds(literal(value)?).filter(|_| self.is_time(column))?;
        Some(match operator {
            Operator::Eq => (Some(at), Some(at)),
            Operator::Gt => (Some(at.saturating_add(1)), None),
            Operator::GtEq => (Some(at), None),
            Operator::Lt => (None, Some(at.saturating_sub(1))),
            Operator::LtEq => (None, Some(at)),
            _ => (None, None),
        })
    }

    fn is_time(&self, expression: &Expr) -> bool {
        self.column(bare(expression)).is_some_and(|(_, term)| term.kind == TermKind::Time)
    }
}

/// All of these are true; `None`: there are none.
fn all(parts: impl Iterator<Item = FilterText>) -> Option<FilterText> {
    chain(parts.collect(), " && ")
}

/// One of these is true.
fn either(parts: Vec<FilterText>) -> Option<FilterText> {
    chain(parts, " || ")
}

fn chain(mut parts: Vec<FilterText>, sign: &str) -> Option<FilterText> {
    if parts.len() < 2 {
        return parts.pop();
    }
    let is_exact = parts.iter().all(|part| part.is_exact);
    let texts: Vec<String> = parts.into_iter().map(|part| format!("({})", part.text)).collect();
    Some(FilterText { text: texts.join(sign), is_exact })
}

/// Without other names for it.
fn bare(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => bare(&alias.expr),
        _ => expression,
    }
}

fn literal(expression: &Expr) -> Option<&ScalarValue> {
    match bare(expression) {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn is_text_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text_type(value),
        _ => false,
    }
}

fn is_text_field(field: &datafusion::arrow::datatypes::Field) -> bool {
    is_text_type(field.data_type())
}

/// The operator that is true where another is false.
fn negated(operator: Operator) -> Option<Operator> {
    Some(match operator {
        Operator::Eq => Operator::NotEq,
        Operator::NotEq => Operator::Eq,
        Operator::Lt => Operator::GtEq,
        Operator::LtEq => Operator::Gt,
        Operator::Gt => Operator::LtEq,
        Operator::GtEq => Operator::Lt,
        _ => return None,
    })
}

/// How the filter language writes a comparison.
fn sign(operator: Operator) -> Option<&'static str> {
    Some(match operator {
        Operator::Eq => "==",
        Operator::NotEq => "!=",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        _ => return None,
    })
}

/// A time, which has no value where it does not fit into 64 bits; there the filter language compares it all the same.
fn compared_time(term: &Term, operator: Operator, value: &ScalarValue) -> Option<FilterText> {
    let (name, sign, at) = (&term.text, sign(operator)?, number::written(nanoseconds(value)?.into()));
    let (lowest, highest) = (number::written(i64::MIN.into()), i64::MAX);
    FilterText::exactly(match operator {
        Operator::Eq => format!("{name} == {at}"),
        Operator::Lt | Operator::LtEq => format!("({name} {sign} {at}) && ({name} >= {lowest})"),
        Operator::Gt | Operator::GtEq => format!("({name} {sign} {at}) && ({name} <= {highest})"),
        _ => format!("({name} {sign} {at}) && ({name} >= {lowest}) && ({name} <= {highest})"),
    })
}

/// Nanoseconds of a time that has a value.
fn nanoseconds(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampNanosecond(value, _) => *value,
        ScalarValue::TimestampMicrosecond(value, _) => value.and_then(|value| value.checked_mul(1_000)),
        ScalarValue::TimestampMillisecond(value, _) => value.and_then(|value| value.checked_mul(1_000_000)),
        ScalarValue::TimestampSecond(value, _) => value.and_then(|value| value.checked_mul(1_000_000_000)),
        other => number::literal(other).and_then(|value| i64::try_from(value).ok()),
    }
}

/// True and false are 1 and 0, of which true is more.
fn compared_truth(term: &Term, operator: Operator, value: &ScalarValue) -> Option<FilterText> {
    let ScalarValue::Boolean(Some(value)) = value else { return None };
    let is_true = match (operator, value) {
        (Operator::Eq, value) => *value,
        (Operator::NotEq, value) => !*value,
        _ => return None,
    };
    FilterText::exactly(format!("{} {} 0", term.text, if is_true { "!=" } else { "==" }))
}
