//! The meaning of an expression for one class of events: names become inputs, values get types.
//!
//! Nodes of a tree follow their operands, so one pass from the first to the last does it. Parts
//! that need no event are computed here, so that the meaning of the other parts does not depend on
//! later simplification.

use std::collections::HashMap;
use std::rc::Rc;

use kymo_ir::Predicate;
use kymo_ir::predicate::{
    Arithmetic, Bitwise, INTEGER_HIGHEST, INTEGER_LOWEST, Input, InputClass, InputKind, NODES_MAX, Number,
    PredicateError, RealBits, Relation, Test, TextExpression,
};

use crate::ast::{Binary, Id, SyntaxKind, SyntaxNode, Tree, Unary};
use crate::binding::Binding;
use crate::check::PROBLEMS_MAX;
use crate::fields::{Constant, Dimension, FieldResolver, FilterField, NamePath, PathMeaning, Unit};
use crate::fold::{folded, is_constant};
use crate::literal::TextLiteral;
use crate::order::{ordered, size_of_number, size_of_test};
use crate::problem::{FilterNote, FilterProblem, MissingName, ProblemKind, Span, quoted};

/// A predicate before it is simplified.
pub(crate) struct BoundPredicate {
    pub(crate) predicate: Predicate,
    pub(crate) keys: Vec<u32>,
    missing: Vec<MissingName>,
    notes: Vec<FilterNote>,
}

/// Binds the names of a tree.
pub(crate) fn bind(tree: &Tree, text: &str, fields: &dyn FieldResolver) -> Result<BoundPredicate, Vec<FilterProblem>> {
    let mut binder = Binder {
        tree,
        text,
        fields,
        predicate: Predicate { inputs: Vec::new(), root: Test::Constant(None) },
        keys: Vec::new(),
        by_key: HashMap::new(),
        values: HashMap::new(),
        missing_by_path: HashMap::new(),
        missing: Vec::new(),
        notes: Vec::new(),
        problems: Vec::new(),
        copied: 0,
    };
    let root = binder.root();
    binder.problems.truncate(PROBLEMS_MAX);
    if !binder.problems.is_empty() {
        return Err(binder.problems);
    }
    let predicate = Predicate { root, ..binder.predicate };
    Ok(BoundPredicate { predicate, keys: binder.keys, missing: binder.missing, notes: binder.notes })
}

impl BoundPredicate {
    /// Simplified and put in order.
    pub(crate) fn finished(self, text_bytes: usize) -> Result<Binding, Vec<FilterProblem>> {
        let refused = |error: PredicateError| vec![FilterProblem::new(0..text_bytes, error.into())];
        self.predicate.verify().map_err(refused)?;
        let predicate = ordered(folded(self.predicate));
        let (predicate, kept) = predicate.part(predicate.root.clone());
        predicate.verify().map_err(refused)?;
        let keys = kept.into_iter().map(|input| self.keys[usize::from(input.0)]).collect();
        Ok(Binding { predicate, keys, missing: self.missing, notes: self.notes })
    }
}

/// The value of a node.
#[derive(Clone, Debug)]
pub(crate) enum BoundValue<'t> {
    /// Nothing will ever be known of it: it is missing, or cannot be computed.
    Unknown,
    Test(Test),
    Number(Measured),
    /// An input, or text that every event has.
    Text(TextExpression),
    /// A text of the expression.
    Literal(&'t TextLiteral),
}

/// A number and its unit.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) number: Number,
    pub(crate) unit: Option<Unit>,
    /// The field that it is, if that has labels.
    pub(crate) labelled: Option<Rc<FilterField>>,
}

impl Measured {
    pub(crate) fn plain(number: Number) -> Self {
        Self { number, unit: None, labelled: None }
    }

    pub(crate) fn new(number: Number, unit: Option<Unit>) -> Self {
        Self { number, unit, labelled: None }
    }
}

/// The unit of quantities in the text.
pub(crate) fn base(dimension: Dimension) -> Unit {
    Unit { dimension, multiply: 1, divide: 1 }
}

pub(crate) struct Binder<'t> {
    pub(crate) tree: &'t Tree,
    pub(crate) text: &'t str,
    fields: &'t dyn FieldResolver,
    /// The inputs so far; the root is of no use.
    pub(crate) predicate: Predicate,
    keys: Vec<u32>,
    by_key: HashMap<u32, Input>,
    /// Of names that were met.
    values: HashMap<&'t NamePath, BoundValue<'t>>,
    missing_by_path: HashMap<&'t NamePath, usize>,
    missing: Vec<MissingName>,
    notes: Vec<FilterNote>,
    problems: Vec<FilterProblem>,
    /// Parts of predicates that were copied.
    copied: usize,
}

impl<'t> Binder<'t> {
    fn root(&mut self) -> Test {
        let tree = self.tree;
        let mut values: Vec<BoundValue> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let value = self.node(node, &mut values);
            values.push(value);
        }
        let id = tree.nodes.len() - 1;
        self.truth(id, std::mem::replace(&mut values[id], BoundValue::Unknown))
    }

    pub(crate) fn span(&self, id: Id) -> Span {
        self.tree.nodes[id].span.clone()
    }

    pub(crate) fn written(&self, id: Id) -> String {
        quoted(self.text, &self.tree.nodes[id].span)
    }

    pub(crate) fn problem(&mut self, problem: FilterProblem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// Notes an interpretation, once.
    pub(crate) fn note(&mut self, span: Span, what: &str, how: &str) {
        if self.notes.len() < PROBLEMS_MAX && !self.notes.iter().any(|note| note.text.starts_with(what)) {
            self.notes.push(FilterNote { span, text: format!("{what}{how}") });
        }
    }

    /// The value of a node; those of its operands are taken away.
    fn node(&mut self, node: &'t SyntaxNode, values: &mut [BoundValue<'t>]) -> BoundValue<'t> {
        let mut take = |id: Id| std::mem::replace(&mut values[id], BoundValue::Unknown);
        match &node.kind {
            SyntaxKind::Integer(value) => BoundValue::Number(Measured::plain(Number::Integer(i128::from(*value)))),
            SyntaxKind::Real(value) => BoundValue::Number(Measured::plain(Number::Real(RealBits::from(*value)))),
            SyntaxKind::Quantity { value, dimension } => {
                BoundValue::Number(Measured::new(Number::Integer(i128::from(*value)), Some(base(*dimension))))
            }
            SyntaxKind::Instant(text) => self.instant(text, &node.span),
            SyntaxKind::Text(literal) => BoundValue::Literal(literal),
            SyntaxKind::Path(path) => self.path(path, &node.span),
            SyntaxKind::Has(path) => BoundValue::Test(self.has(path, &node.span)),
            SyntaxKind::Unary { operator, operand } => self.unary(*operator, *operand, take(*operand)),
            SyntaxKind::Binary { operator: Binary::Relation(relation), left, right } => {
                BoundValue::Test(self.compare(*relation, (*left, take(*left)), (*right, take(*right))))
            }
            SyntaxKind::Binary { operator: Binary::Arithmetic(operation), left, right } => {
                self.arithmetic(*operation, (*left, take(*left)), (*right, take(*right)))
            }
            SyntaxKind::Binary { operator: Binary::Bits(operation), left, right } => {
                self.bits(*operation, (*left, take(*left)), (*right, take(*right)))
            }
            SyntaxKind::All(list) | SyntaxKind::Any(list) => {
                let tests = list.iter().map(|&id| self.truth(id, take(id))).collect();
                let is_all = matches!(node.kind, SyntaxKind::All(_));
                BoundValue::Test(settled(if is_all { Test::All(tests) } else { Test::Any(tests) }))
            }
            SyntaxKind::In { value, items } => {
                let of_value = take(*value);
                let tests = items.iter().map(|&item| self.item((*value, &of_value), item, &mut take)).collect();
                BoundValue::Test(settled(Test::Any(tests)))
            }
            SyntaxKind::Like { value, regex, is_negated } => {
                let test = self.like(*value, take(*value), regex);
                BoundValue::Test(if *is_negated { inverted(test) } else { test })
            }
        }
    }

    fn instant(&mut self, text: &str, span: &Span) -> BoundValue<'t> {
        match self.fields.instant(text) {
            Some(nanoseconds) => {
                let number = Number::Integer(i128::from(nanoseconds));
                BoundValue::Number(Measured::new(number, Some(base(Dimension::Time))))
            }
            None => {
                let problem = FilterProblem::new(span.clone(), ProblemKind::Instant(text.to_owned()));
                self.problem(problem.help("times are `12:18:50.43`, `2016-03-04T17:46:22.5`, both with or without a zone (`Z`, `+01:00`), or seconds"));
                BoundValue::Unknown
            }
        }
    }

    fn path(&mut self, path: &'t NamePath, span: &Span) -> BoundValue<'t> {
        if let Some(&number) = self.missing_by_path.get(path) {
            self.missing[number].is_asked_for = false;
        }
        if let Some(value) = self.values.get(path) {
            return value.clone();
        }
        let value = match self.fields.find(path) {
            PathMeaning::Field(field) => self.field(field, None),
            PathMeaning::Scaled { field, before, multiply, divide, add } => {
                self.field(field, Some((before, multiply, divide, add)))
            }
            PathMeaning::Constant(constant) => of_constant(constant),
            PathMeaning::Missing { near } => {
                self.missing(path, span, near, false);
                BoundValue::Unknown
            }
            PathMeaning::Compound { what } => {
                let name = path.to_string();
                let help = format!("name one of its members, as in `{name}.member` or `{name}[0]`");
                self.problem(FilterProblem::new(span.clone(), ProblemKind::Compound { name, what }).help(help));
                BoundValue::Unknown
            }
        };
        self.values.insert(path, value.clone());
        value
    }

    fn missing(&mut self, path: &'t NamePath, span: &Span, near: Vec<String>, is_asked_for: bool) {
        if self.missing_by_path.contains_key(path) {
            return;
        }
        self.missing_by_path.insert(path, self.missing.len());
        self.missing.push(MissingName { path: path.to_string(), span: span.clone(), near, is_asked_for });
    }

    fn field(&mut self, field: FilterField, scale: Option<(u64, u64, u64, i64)>) -> BoundValue<'t> {
        let Some(input) = self.input(&field) else { return BoundValue::Unknown };
        if matches!(field.kind, InputKind::Text(_)) {
            return BoundValue::Text(TextExpression::Input(input));
        }
        let value = Number::Input(input);
        let number = match scale {
            None => value,
            Some((before, multiply, divide, add)) => {
                let value = match before {
                    0 => value,
                    before => Number::Arithmetic {
                        operation: Arithmetic::Add,
                        left: Box::new(value),
                        right: Box::new(Number::Integer(before.into())),
                    },
                };
                Number::Scaled { value: Box::new(value), multiply, divide, add }
            }
        };
        let unit = field.unit;
        let labelled = (!field.labels.is_empty() && scale.is_none()).then(|| Rc::new(field));
        BoundValue::Number(Measured { number, unit, labelled })
    }

    /// The same field is the same input in every place.
    fn input(&mut self, field: &FilterField) -> Option<Input> {
        if let Some(&input) = self.by_key.get(&field.key) {
            return Some(input);
        }
        let Ok(number) = u16::try_from(self.keys.len()) else {
            self.problem(FilterProblem::new(0..self.text.len(), PredicateError::Nodes.into()));
            return None;
        };
        let class = InputClass { name: field.name.as_str().into(), kind: field.kind, optional: field.optional };
        self.predicate.inputs.push(class);
        self.keys.push(field.key);
        self.by_key.insert(field.key, Input(number));
        Some(Input(number))
    }

    fn has(&mut self, path: &'t NamePath, span: &Span) -> Test {
        match self.fields.find(path) {
            PathMeaning::Field(field) | PathMeaning::Scaled { field, .. } => {
                self.input(&field).map_or(Test::Constant(None), Test::Has)
            }
            PathMeaning::Constant(_) | PathMeaning::Compound { .. } => Test::Constant(Some(true)),
            PathMeaning::Missing { near } => {
                self.missing(path, span, near, true);
                Test::Constant(Some(false))
            }
        }
    }

    /// A value as a statement: of numbers, whether they are not 0.
    pub(crate) fn truth(&mut self, id: Id, value: BoundValue) -> Test {
        match value {
            BoundValue::Unknown => Test::Constant(None),
            BoundValue::Test(test) => test,
            BoundValue::Number(Measured { number, .. }) => {
                self.settled_comparison(Relation::NotEqual, number, Number::Integer(0))
            }
            BoundValue::Text(_) | BoundValue::Literal(_) => {
                let written = self.written(id);
                let help = format!("compare it, as in `{written} == \"...\"`");
                self.problem(FilterProblem::new(self.span(id), ProblemKind::TextAsTruth(written)).help(help));
                Test::Constant(None)
            }
        }
    }

    /// A comparison of numbers, computed if they are constants.
    pub(crate) fn settled_comparison(&self, relation: Relation, left: Number, right: Number) -> Test {
        let is_settled = is_constant(&left) && is_constant(&right);
        let test = Test::Compare { relation, left, right };
        if is_settled { Test::Constant(self.predicate.test(&test, NOTHING)) } else { test }
    }

    /// A value as a number; `None`: it is unknown, or not one, which is a problem.
    pub(crate) fn number(&mut self, operator: &'static str, id: Id, value: BoundValue) -> Option<Measured> {
        match value {
            BoundValue::Unknown | BoundValue::Test(Test::Constant(None)) => None,
            BoundValue::Test(Test::Constant(Some(truth))) => Some(Measured::plain(Number::Integer(i128::from(truth)))),
            BoundValue::Test(test) => Some(Measured::plain(Number::Truth(Box::new(test)))),
            BoundValue::Number(measured) => Some(measured),
            BoundValue::Text(_) | BoundValue::Literal(_) => {
                let kind = ProblemKind::TextOperand { operator, operand: self.written(id) };
                self.problem(FilterProblem::new(self.span(id), kind));
                None
            }
        }
    }

    /// A value as an integer.
    fn integer(&mut self, operator: &'static str, id: Id, value: BoundValue) -> Option<Measured> {
        let measured = self.number(operator, id, value)?;
        if self.predicate.is_real(&measured.number) {
            let kind = ProblemKind::RealOperand { operator, operand: self.written(id) };
            self.problem(FilterProblem::new(self.span(id), kind));
            return None;
        }
        Some(measured)
    }

    fn unary(&mut self, operator: Unary, id: Id, value: BoundValue) -> BoundValue<'t> {
        let symbol = operator.symbol();
        match operator {
            Unary::Not => BoundValue::Test(inverted(self.truth(id, value))),
            Unary::Plus => match self.number(symbol, id, value) {
                Some(measured) => BoundValue::Number(Measured { labelled: None, ..measured }),
                None => BoundValue::Unknown,
            },
            Unary::Minus => {
                let Some(Measured { number, unit, .. }) = self.number(symbol, id, value) else {
                    return BoundValue::Unknown;
                };
                let zero = Number::Integer(0);
                // 0 - 0.0 is not the negative zero.
                let negated = if self.predicate.is_real(&number) {
                    pair(Arithmetic::Multiply, Number::Real(RealBits::from(-1.0)), number)
                } else {
                    pair(Arithmetic::Subtract, zero, number)
                };
                self.computed(negated, unit)
            }
            Unary::Complement => match self.integer(symbol, id, value) {
                Some(Measured { number, .. }) => self.computed(Number::Complement(Box::new(number)), None),
                None => BoundValue::Unknown,
            },
        }
    }

    /// Both sides are checked before one is found to be unknown, so that all problems are reported.
    fn bits(&mut self, operation: Bitwise, left: (Id, BoundValue), right: (Id, BoundValue)) -> BoundValue<'t> {
        let left = self.integer(operation.symbol(), left.0, left.1);
        let right = self.integer(operation.symbol(), right.0, right.1);
        let (Some(left), Some(right)) = (left, right) else { return BoundValue::Unknown };
        self.computed(Number::Bits { operation, left: left.number.into(), right: right.number.into() }, None)
    }

    fn arithmetic(&mut self, operation: Arithmetic, left: (Id, BoundValue), right: (Id, BoundValue)) -> BoundValue<'t> {
        let symbol = operation.symbol();
        let takes_reals = operation != Arithmetic::Remainder;
        let ids = (left.0, right.0);
        let mut operand =
            |(id, value)| if takes_reals { self.number(symbol, id, value) } else { self.integer(symbol, id, value) };
        let (left, right) = (operand(left), operand(right));
        let (Some(left), Some(right)) = (left, right) else { return BoundValue::Unknown };
        let same = left.unit.zip(right.unit).is_some_and(|(left, right)| left.dimension == right.dimension);
        let (left, right, unit) = match operation {
            Arithmetic::Multiply if left.unit.is_some() && right.unit.is_some() => (left.number, right.number, None),
            Arithmetic::Multiply => (left.number, right.number, left.unit.or(right.unit)),
            // How often one goes into the other is a plain number.
            Arithmetic::Divide if !same => {
                let unit = if right.unit.is_none() { left.unit } else { None };
                (left.number, right.number, unit)
            }
            _ => {
                let Some((left, right, unit)) = self.aligned((ids.0, left), (ids.1, right)) else {
                    return BoundValue::Unknown;
                };
                (left, right, if operation == Arithmetic::Divide { None } else { unit })
            }
        };
        self.computed(pair(operation, left, right), unit)
    }

    /// An expression, as one number if it needs no event.
    pub(crate) fn computed(&self, number: Number, unit: Option<Unit>) -> BoundValue<'t> {
        let is_settled = match &number {
            Number::Arithmetic { left, right, .. } | Number::Bits { left, right, .. } => {
                is_constant(left) && is_constant(right)
            }
            Number::Complement(value) | Number::Scaled { value, .. } => is_constant(value),
            _ => false,
        };
        if !is_settled {
            return BoundValue::Number(Measured::new(number, unit));
        }
        match self.predicate.computed(&number) {
            Some(number) => BoundValue::Number(Measured::new(number, unit)),
            None => BoundValue::Unknown,
        }
    }

    /// A copy of a value; there is a limit, as copies of copies would be many.
    pub(crate) fn copy(&mut self, id: Id, value: &BoundValue<'t>) -> BoundValue<'t> {
        self.copied += match value {
            BoundValue::Number(measured) => size_of_number(&measured.number),
            BoundValue::Test(test) => size_of_test(test),
            _ => 1,
        };
        if self.copied > NODES_MAX {
            self.problem(FilterProblem::new(self.span(id), PredicateError::Nodes.into()));
            return BoundValue::Unknown;
        }
        value.clone()
    }
}

/// An event without anything.
const NOTHING: &[kymo_ir::predicate::Datum] = &[];

fn pair(operation: Arithmetic, left: Number, right: Number) -> Number {
    Number::Arithmetic { operation, left: Box::new(left), right: Box::new(right) }
}

fn of_constant<'t>(constant: Constant) -> BoundValue<'t> {
    match constant {
        Constant::Integer(value) if (INTEGER_LOWEST..=INTEGER_HIGHEST).contains(&value) => {
            BoundValue::Number(Measured::plain(Number::Integer(value)))
        }
        Constant::Integer(_) => BoundValue::Unknown,
        Constant::Real(value) => BoundValue::Number(Measured::plain(Number::Real(RealBits::from(value)))),
        Constant::Text(text) => BoundValue::Text(TextExpression::Literal(text.into_bytes().into())),
    }
}

/// The opposite of a test.
pub(crate) fn inverted(test: Test) -> Test {
    match test {
        Test::Constant(value) => Test::Constant(value.map(|value| !value)),
        test => Test::Not(Box::new(test)),
    }
}

/// A conjunction or disjunction, as a constant if the constants in it decide.
fn settled(test: Test) -> Test {
    let (tests, decisive) = match &test {
        Test::All(tests) => (tests, false),
        Test::Any(tests) => (tests, true),
        _ => return test,
    };
    if tests.contains(&Test::Constant(Some(decisive))) {
        return Test::Constant(Some(decisive));
    }
    if !tests.iter().all(|test| matches!(test, Test::Constant(_))) {
        return test;
    }
    let is_unknown = tests.contains(&Test::Constant(None));
    Test::Constant((!is_unknown).then_some(!decisive))
}
