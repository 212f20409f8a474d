//! Errors for every class of events: texts where numbers belong, patterns that are compared with
//! patterns.

use kymo_ir::predicate::{Arithmetic, Relation};

use crate::ast::{Alternative, Binary, Id, SyntaxKind, Tree, Unary};
use crate::literal::TextLiteral;
use crate::problem::{FilterProblem, ProblemKind, quoted};

/// More problems than this are of no help.
pub(crate) const PROBLEMS_MAX: usize = 20;

/// The type of a value before the meaning of its names is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueType {
    /// An integer, or the truth of a statement.
    Integer,
    Real,
    Text,
    /// A text with one star, its end.
    Prefix,
    /// A text with other stars.
    Pattern,
    /// A name decides.
    Any,
}

impl ValueType {
    fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Prefix | Self::Pattern)
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Real)
    }

    fn has_stars(self) -> bool {
        matches!(self, Self::Prefix | Self::Pattern)
    }

    fn of_text(literal: &TextLiteral) -> Self {
        match literal {
            _ if literal.plain().is_some() => Self::Text,
            _ if literal.prefix().is_some() => Self::Prefix,
            _ => Self::Pattern,
        }
    }
}

/// All errors that do not depend on the meaning of the names.
pub(crate) fn check(tree: &Tree, text: &str) -> Vec<FilterProblem> {
    let mut checker = Checker { tree, text, types: Vec::with_capacity(tree.nodes.len()), problems: Vec::new() };
    for node in &tree.nodes {
        let of_node = checker.of(&node.kind);
        checker.types.push(of_node);
    }
    checker.root();
    checker.problems.truncate(PROBLEMS_MAX);
    checker.problems
}

struct Checker<'t> {
    tree: &'t Tree,
    text: &'t str,
    /// Of the nodes so far.
    types: Vec<ValueType>,
    problems: Vec<FilterProblem>,
}

impl Checker<'_> {
    fn written(&self, id: Id) -> String {
        quoted(self.text, &self.tree.nodes[id].span)
    }

    fn problem(&mut self, id: Id, kind: ProblemKind) {
        self.problems.push(FilterProblem::new(self.tree.nodes[id].span.clone(), kind));
    }

    fn root(&mut self) {
        let id = self.tree.nodes.len() - 1;
        match self.types[id] {
            ValueType::Real => self.problem(id, ProblemKind::RootReal),
            of_root if of_root.is_text() => self.problem(id, ProblemKind::RootText),
            _ => {}
        }
    }

    fn of(&mut self, kind: &SyntaxKind) -> ValueType {
        match kind {
            SyntaxKind::Integer(_) | SyntaxKind::Quantity { .. } | SyntaxKind::Instant(_) | SyntaxKind::Has(_) => {
                ValueType::Integer
            }
            SyntaxKind::Real(_) => ValueType::Real,
            SyntaxKind::Text(literal) => ValueType::of_text(literal),
            SyntaxKind::Path(_) => ValueType::Any,
            SyntaxKind::Unary { operator, operand } => self.of_unary(*operator, *operand),
            SyntaxKind::Binary { operator: Binary::Relation(relation), left, right } => {
                self.compare(*relation, *left, *right);
                ValueType::Integer
            }
            SyntaxKind::Binary { operator, left, right } => self.of_binary(*operator, *left, *right),
            SyntaxKind::All(list) | SyntaxKind::Any(list) => {
                for &id in list {
                    self.truth(id);
                }
                ValueType::Integer
            }
            SyntaxKind::In { value, items } => {
                for item in items {
                    self.item(*value, *item);
                }
                ValueType::Integer
            }
            SyntaxKind::Like { value, is_negated, .. } => {
                self.like(*value, if *is_negated { "!~" } else { "=~" });
                ValueType::Integer
            }
        }
    }

    fn truth(&mut self, id: Id) {
        if self.types[id].is_text() {
            let written = self.written(id);
            self.problem(id, ProblemKind::TextAsTruth(written));
        }
    }

    fn no_text(&mut self, operator: &'static str, id: Id) {
        if self.types[id].is_text() {
            let operand = self.written(id);
            self.problem(id, ProblemKind::TextOperand { operator, operand });
        }
    }

    fn no_real(&mut self, operator: &'static str, id: Id) {
        if self.types[id] == ValueType::Real {
            let operand = self.written(id);
            self.problem(id, ProblemKind::RealOperand { operator, operand });
        }
    }

    fn of_unary(&mut self, operator: Unary, operand: Id) -> ValueType {
        self.no_text(operator.symbol(), operand);
        match operator {
            Unary::Plus | Unary::Minus if self.types[operand].is_text() => ValueType::Any,
            Unary::Plus | Unary::Minus => self.types[operand],
            Unary::Not => ValueType::Integer,
            Unary::Complement => {
                self.no_real("~", operand);
                ValueType::Integer
            }
        }
    }

    fn of_binary(&mut self, operator: Binary, left: Id, right: Id) -> ValueType {
        let takes_reals = matches!(operator, Binary::Arithmetic(operation) if operation != Arithmetic::Remainder);
        for id in [left, right] {
            self.no_text(operator.symbol(), id);
            if !takes_reals {
                self.no_real(operator.symbol(), id);
            }
        }
        match (self.types[left], self.types[right]) {
            _ if !takes_reals => ValueType::Integer,
            (ValueType::Real, _) | (_, ValueType::Real) => ValueType::Real,
            (ValueType::Integer, ValueType::Integer) => ValueType::Integer,
            _ => ValueType::Any,
        }
    }

    fn compare(&mut self, relation: Relation, left: Id, right: Id) {
        let (of_left, of_right) = (self.types[left], self.types[right]);
        let span = self.tree.nodes[left].span.start..self.tree.nodes[right].span.end;
        let has_order = !matches!(relation, Relation::Equal | Relation::NotEqual);
        if of_left.is_text() && of_right.is_number() || of_left.is_number() && of_right.is_text() {
            let (text, number) = if of_left.is_text() { (left, right) } else { (right, left) };
            let kind = ProblemKind::Mixed { text: self.written(text), number: self.written(number) };
            self.problems.push(FilterProblem::new(span, kind));
        } else if has_order && (of_left.has_stars() || of_right.has_stars()) {
            let pattern = if of_left.has_stars() { left } else { right };
            let written = self.written(pattern);
            let problem = FilterProblem::new(self.tree.nodes[pattern].span.clone(), ProblemKind::PatternOrder(written));
            self.problems.push(problem.help("a star that is meant itself is written `\\*`"));
        } else if of_left.has_stars()
            && of_right.has_stars()
            && (of_left, of_right) != (ValueType::Prefix, ValueType::Prefix)
        {
            let problem = FilterProblem::new(span, ProblemKind::TwoPatterns);
            self.problems.push(problem.help("a star that is meant itself is written `\\*`"));
        }
    }

    fn item(&mut self, value: Id, item: Alternative) {
        match item {
            Alternative::One(id) => self.compare(Relation::Equal, value, id),
            Alternative::Range { lowest, highest, .. } => {
                self.compare(Relation::GreaterOrEqual, value, lowest);
                self.compare(Relation::LessOrEqual, value, highest);
            }
        }
    }

    fn like(&mut self, value: Id, operator: &'static str) {
        if self.types[value].is_number() {
            let operand = self.written(value);
            self.problem(value, ProblemKind::NumberOperand { operator, operand });
        }
        if self.types[value].has_stars() {
            let span = self.tree.nodes[value].span.clone();
            self.problems.push(FilterProblem::new(span, ProblemKind::TwoPatterns));
        }
    }
}
