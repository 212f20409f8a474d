//! Comparisons: of numbers, of texts, of labels with the values that have them.

use std::rc::Rc;

use kymo_ir::predicate::{Number, Pattern, Regex, Relation, Test, Text};

use crate::ast::{Id, Item};
use crate::bind::{Binder, Measured, Value, inverted};
use crate::fields::Field;
use crate::literal::Literal;
use crate::near::nearest;
use crate::problem::{Problem, ProblemKind};
use crate::ranges;

impl<'t> Binder<'t> {
    pub(crate) fn compare(&mut self, relation: Relation, left: (Id, Value<'t>), right: (Id, Value<'t>)) -> Test {
        match (left, right) {
            ((_, Value::Unknown), _) | (_, (_, Value::Unknown)) => Test::Constant(None),
            ((_, Value::Literal(left)), (_, Value::Literal(right))) => {
                Test::Constant(of_literals(relation, left, right))
            }
            ((_, Value::Text(left)), (_, Value::Text(right))) => of_texts(relation, left, right),
            ((_, Value::Text(text)), (_, Value::Literal(literal))) => of_text(relation, text, literal),
            ((_, Value::Literal(literal)), (_, Value::Text(text))) => of_text(relation.mirrored(), text, literal),
            ((id, Value::Number(Measured { number, labelled: Some(field), .. })), (at, Value::Literal(literal)))
            | ((at, Value::Literal(literal)), (id, Value::Number(Measured { number, labelled: Some(field), .. }))) => {
                self.of_labels(relation, (id, number, &field), (at, literal))
            }
            ((text_id, Value::Text(_) | Value::Literal(_)), (number_id, _))
            | ((number_id, _), (text_id, Value::Text(_) | Value::Literal(_))) => self.mixed(text_id, number_id),
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
    fn note_chain(&mut self, relation: Relation, left: Id, value: &Value<'t>) {
        let is_order = |relation: &Relation| !matches!(relation, Relation::Equal | Relation::NotEqual);
        let is_chain = matches!(value, Value::Test(Test::Compare { relation, .. }) if is_order(relation));
        if is_chain && is_order(&relation) {
            let what = format!("`{}` is 0 or 1 where it is compared: ", self.written(left));
            self.note(self.span(left), &what, "to test for a range of values, use `&&` or `in (..)`");
        }
    }

    fn mixed(&mut self, text_id: Id, number_id: Id) -> Test {
        let (text, number) = (self.written(text_id), self.written(number_id));
        let (text_span, number_span) = (self.span(text_id), self.span(number_id));
        let span = text_span.start.min(number_span.start)..text_span.end.max(number_span.end);
        self.problem(Problem::new(span, ProblemKind::Mixed { text, number }));
        Test::Constant(None)
    }

    /// Whether the value is one that has the label.
    fn of_labels(
        &mut self,
        relation: Relation,
        (id, number, field): (Id, Number, &Rc<Field>),
        (at, literal): (Id, &Literal),
    ) -> Test {
        if !matches!(relation, Relation::Equal | Relation::NotEqual) {
            let problem = Problem::new(self.span(id), ProblemKind::LabelOrder(self.written(id)));
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
        field: &Field,
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
            let problem = Problem::new(self.span(at), kind).help(some_labels(field));
            self.problem(problem.near(&near));
            return Test::Constant(None);
        }
        Test::Among { value, ranges: ranges::clip(&ranges::union(ranges), ranges::EVERYTHING) }
    }

    /// One alternative of `in (...)`.
    pub(crate) fn item(
        &mut self,
        (id, value): (Id, &Value<'t>),
        item: Item,
        take: &mut impl FnMut(Id) -> Value<'t>,
    ) -> Test {
        match item {
            Item::One(one) => {
                let copy = self.copy(id, value);
                self.compare(Relation::Equal, (id, copy), (one, take(one)))
            }
            Item::Range { lowest, highest, is_inclusive } => {
                let copies = (self.copy(id, value), self.copy(id, value));
                let until = if is_inclusive { Relation::LessOrEqual } else { Relation::Less };
                let from = self.compare(Relation::GreaterOrEqual, (id, copies.0), (lowest, take(lowest)));
                let to = self.compare(until, (id, copies.1), (highest, take(highest)));
                Test::All(vec![from, to])
            }
        }
    }

    /// `=~`: of labeled integers the labels are asked.
    pub(crate) fn like(&mut self, id: Id, value: Value<'t>, regex: &Regex) -> Test {
        let pattern = Pattern::Regex(regex.clone());
        match value {
            Value::Unknown => Test::Constant(None),
            Value::Text(Text::Literal(text)) => Test::Constant(Some(pattern.matches(&text))),
            Value::Text(text) => Test::Matches { text, pattern },
            Value::Literal(literal) => Test::Constant(literal.plain().map(|text| pattern.matches(text))),
            Value::Number(Measured { number, labelled: Some(field), .. }) => {
                self.labelled(number, &field, &pattern, id, || format!("like \"{}\"", regex.source()))
            }
            Value::Number(_) | Value::Test(_) => {
                let kind = ProblemKind::NumberOperand { operator: "=~", operand: self.written(id) };
                self.problem(Problem::new(self.span(id), kind));
                Test::Constant(None)
            }
        }
    }
}

/// More labels than this are not listed.
const LABELS_SHOWN_MAX: usize = 8;

fn some_labels(field: &Field) -> String {
    let names: Vec<String> =
        field.labels.iter().take(LABELS_SHOWN_MAX).map(|(name, _)| format!("\"{name}\"")).collect();
    let more = field.labels.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("the labels are {}{more}", names.join(" "))
}

/// The pattern of a text in the expression.
fn pattern(literal: &Literal) -> Pattern {
    match (literal.plain(), literal.prefix()) {
        (Some(text), _) => Pattern::Exactly(text.into()),
        (_, Some(prefix)) => Pattern::Prefix(prefix.into()),
        _ => Pattern::Glob(literal.parts.clone()),
    }
}

/// Of two texts of the expression at most one has stars, unless both only end with one: those are alike if one may
/// continue the other, as in LTTng.
fn of_literals(relation: Relation, left: &Literal, right: &Literal) -> Option<bool> {
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

fn of_texts(relation: Relation, left: Text, right: Text) -> Test {
    match (&left, &right) {
        (Text::Literal(left), Text::Literal(right)) => Test::Constant(Some(relation.holds(left.cmp(right)))),
        _ => Test::CompareText { relation, left, right },
    }
}

fn of_text(relation: Relation, text: Text, literal: &Literal) -> Test {
    match (relation, literal.plain()) {
        (Relation::Equal | Relation::NotEqual, _) => {
            let pattern = pattern(literal);
            let test = match &text {
                Text::Literal(text) => Test::Constant(Some(pattern.matches(text))),
                Text::Input(_) => Test::Matches { text, pattern },
            };
            if relation == Relation::Equal { test } else { inverted(test) }
        }
        (_, Some(plain)) => of_texts(relation, text, Text::Literal(plain.into())),
        // The checker refused an order of patterns.
        (_, None) => Test::Constant(None),
    }
}
