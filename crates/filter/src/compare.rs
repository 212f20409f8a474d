//! Comparisons: of numbers, of texts, of labels with the values that have them.

use std::rc::Rc;

use kymo_ir::predicate::{Number, Pattern, Regex, Relation, Test, TextExpression};

use crate::ast::{Alternative, Id};
use crate::bind::{Binder, BoundValue, Measured, inverted};
use crate::fields::FilterField;
use crate::literal::TextLiteral;
use crate::near::nearest;
use crate::problem::{FilterProblem, ProblemKind};
use crate::ranges;

impl<'t> Binder<'t> {
    pub(crate) fn compare(
        &mut self,
        relation: Relation,
        left: (Id, BoundValue<'t>),
        right: (Id, BoundValue<'t>),
    ) -> Test {
        match (left, right) {
            ((_, BoundValue::Unknown), _) | (_, (_, BoundValue::Unknown)) => Test::Constant(None),
            ((_, BoundValue::Literal(left)), (_, BoundValue::Literal(right))) => {
                Test::Constant(of_literals(relation, left, right))
            }
            ((_, BoundValue::Text(left)), (_, BoundValue::Text(right))) => of_texts(relation, left, right),
            ((_, BoundValue::Text(text)), (_, BoundValue::Literal(literal))) => of_text(relation, text, literal),
            ((_, BoundValue::Literal(literal)), (_, BoundValue::Text(text))) => {
                of_text(relation.mirrored(), text, literal)
            }
            (
                (id, BoundValue::Number(Measured { number, labelled: Some(field), .. })),
                (at, BoundValue::Literal(literal)),
            )
            | (
                (at, BoundValue::Literal(literal)),
                (id, BoundValue::Number(Measured { number, labelled: Some(field), .. })),
            ) => self.of_labels(relation, (id, number, &field), (at, literal)),
            ((text_id, BoundValue::Text(_) | BoundValue::Literal(_)), (number_id, _))
            | ((number_id, _), (text_id, BoundValue::Text(_) | BoundValue::Literal(_))) => {
                self.mixed(text_id, number_id)
            }
            ((left_id, left), (right_id, right)) => {
                self.note_chain(relation, left_id, &left);
                let symbol = relation.symbol();
                let (left, right) = (self.number(symbol, left_id, left), self.number(symbol, right_id, right));
                let (Some(left), Some(right)) = (left, right) else { return Test::Constant(None) };
                let Some((left, right, _)) = self.aligned((left_id, left), (right_id, right)) else {
                    return Test::Constant(None);
                };
                self.settled_comparison(relation, left, right)
            }
        }
    }

    /// `1 < x < 3` is no range, though it looks like one.
    fn note_chain(&mut self, relation: Relation, left: Id, value: &BoundValue<'t>) {
        let is_order = |relation: &Relation| !matches!(relation, Relation::Equal | Relation::NotEqual);
        let is_chain = matches!(value, BoundValue::Test(Test::Compare { relation, .. }) if is_order(relation));
        if is_chain && is_order(&relation) {
            let what = format!("`{}` is 0 or 1 where it is compared: ", self.written(left));
            self.note(self.span(left), &what, "to test for a range of values, use `&&` or `in (..)`");
        }
    }

    fn mixed(&mut self, text_id: Id, number_id: Id) -> Test {
        let (text, number) = (self.written(text_id), self.written(number_id));
        let (text_span, number_span) = (self.span(text_id), self.span(number_id));
        let span = text_span.start.min(number_span.start)..text_span.end.max(number_span.end);
        self.problem(FilterProblem::new(span, ProblemKind::Mixed { text, number }));
        Test::Constant(None)
    }

    /// Whether the value is one that has the label.
    fn of_labels(
        &mut self,
        relation: Relation,
        (id, number, field): (Id, Number, &Rc<FilterField>),
        (at, literal): (Id, &TextLiteral),
    ) -> Test {
        if !matches!(relation, Relation::Equal | Relation::NotEqual) {
            let problem = FilterProblem::new(self.span(id), ProblemKind::LabelOrder(self.written(id)));
            self.problem(problem.help("compare it with a number, or with a label by `==` and `!=`"));
            return Test::Constant(None);
        }
        let pattern = pattern(literal);
        let test = self.labelled(number, field, &pattern, at, || literal.to_string());
        if relation == Relation::Equal { test } else { inverted(test) }
    }

    fn labelled(
        &mut self,
        value: Number,
        field: &FilterField,
        pattern: &Pattern,
        at: Id,
        label: impl Fn() -> String,
    ) -> Test {
        let matching = field.labels.iter().filter(|(name, _)| pattern.matches(name.as_bytes()));
        let ranges: ranges::Ranges = matching.flat_map(|(_, ranges)| ranges.iter().copied()).collect();
        if ranges.is_empty() {
            let wanted = label();
            let names = field.labels.iter().map(|(name, _)| name.as_str());
            let near: Vec<String> =
                nearest(wanted.trim_matches('"'), names).iter().map(|name| format!("\"{name}\"")).collect();
            let kind = ProblemKind::Label { name: field.name.clone(), label: wanted };
            let problem = FilterProblem::new(self.span(at), kind).help(some_labels(field));
            self.problem(problem.near(&near));
            return Test::Constant(None);
        }
        Test::Among { value, ranges: ranges::clip(&ranges::union(ranges), ranges::EVERYTHING) }
    }

    /// One alternative of `in (...)`.
    pub(crate) fn item(
        &mut self,
        (id, value): (Id, &BoundValue<'t>),
        item: Alternative,
        take: &mut impl FnMut(Id) -> BoundValue<'t>,
    ) -> Test {
        match item {
            Alternative::One(one) => {
                let copy = self.copy(id, value);
                self.compare(Relation::Equal, (id, copy), (one, take(one)))
            }
            Alternative::Range { lowest, highest, is_inclusive } => {
                let copies = (self.copy(id, value), self.copy(id, value));
                let until = if is_inclusive { Relation::LessOrEqual } else { Relation::Less };
                let from = self.compare(Relation::GreaterOrEqual, (id, copies.0), (lowest, take(lowest)));
                let to = self.compare(until, (id, copies.1), (highest, take(highest)));
                Test::All(vec![from, to])
            }
        }
    }

    /// `=~`: of labeled integers the labels are asked.
    pub(crate) fn like(&mut self, id: Id, value: BoundValue<'t>, regex: &Regex) -> Test {
        let pattern = Pattern::Regex(regex.clone());
        match value {
            BoundValue::Unknown => Test::Constant(None),
            BoundValue::Text(TextExpression::Literal(text)) => Test::Constant(Some(pattern.matches(&text))),
            BoundValue::Text(text) => Test::Matches { text, pattern },
            BoundValue::Literal(literal) => Test::Constant(literal.plain().map(|text| pattern.matches(text))),
            BoundValue::Number(Measured { number, labelled: Some(field), .. }) => {
                self.labelled(number, &field, &pattern, id, || format!("like \"{}\"", regex.source()))
            }
            BoundValue::Number(_) | BoundValue::Test(_) => {
                let kind = ProblemKind::NumberOperand { operator: "=~", operand: self.written(id) };
                self.problem(FilterProblem::new(self.span(id), kind));
                Test::Constant(None)
            }
        }
    }
}

/// More labels than this are not listed.
const LABELS_SHOWN_MAX: usize = 8;

fn some_labels(field: &FilterField) -> String {
    let names: Vec<String> =
        field.labels.iter().take(LABELS_SHOWN_MAX).map(|(name, _)| format!("\"{name}\"")).collect();
    let more = field.labels.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("the labels are {}{more}", names.join(" "))
}

/// The pattern of a text in the expression.
fn pattern(literal: &TextLiteral) -> Pattern {
    match (literal.plain(), literal.prefix()) {
        (Some(text), _) => Pattern::Exactly(text.into()),
        (_, Some(prefix)) => Pattern::Prefix(prefix.into()),
        _ => Pattern::Glob(literal.parts.clone()),
    }
}

/// Of two texts of the expression at most one has stars, unless both only end with one: those are alike if one may
/// continue the other, as in LTTng.
fn of_literals(relation: Relation, left: &TextLiteral, right: &TextLiteral) -> Option<bool> {
    let is_equal = match (left.plain(), right.plain(), left.prefix().zip(right.prefix())) {
        (Some(left), Some(right), _) => return Some(relation.holds(left.cmp(right))),
        (Some(text), None, _) => pattern(right).matches(text),
        (None, Some(text), _) => pattern(left).matches(text),
        (None, None, Some((left, right))) => left.starts_with(right) || right.starts_with(left),
        (None, None, None) => return None,
    };
    match relation {
        Relation::Equal => Some(is_equal),
        Relation::NotEqual => Some(!is_equal),
        _ => None,
    }
}

fn of_texts(relation: Relation, left: TextExpression, right: TextExpression) -> Test {
    match (&left, &right) {
        (TextExpression::Literal(left), TextExpression::Literal(right)) => {
            Test::Constant(Some(relation.holds(left.cmp(right))))
        }
        _ => Test::CompareText { relation, left, right },
    }
}

fn of_text(relation: Relation, text: TextExpression, literal: &TextLiteral) -> Test {
    match (relation, literal.plain()) {
        (Relation::Equal | Relation::NotEqual, _) => {
            let pattern = pattern(literal);
            let test = match &text {
                TextExpression::Literal(text) => Test::Constant(Some(pattern.matches(text))),
                TextExpression::Input(_) => Test::Matches { text, pattern },
            };
            if relation == Relation::Equal { test } else { inverted(test) }
        }
        (_, Some(plain)) => of_texts(relation, text, TextExpression::Literal(plain.into())),
        // The checker refused an order of patterns.
        (_, None) => Test::Constant(None),
    }
}
