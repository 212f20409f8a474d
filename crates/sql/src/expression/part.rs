//! Pieces of an expression that know how large and how deep they are.
//!
//! SQL has no names for values, so a value that is needed twice stands there twice: without counting, nested ones would
//! double at each step.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Case, Cast, Expr, Like, Operator, TryCast};

#[derive(Clone, Debug)]
pub(super) struct ExpressionPart {
    expression: Expr,
    nodes: usize,
    depth: usize,
}

impl ExpressionPart {
    pub(super) fn leaf(expression: Expr) -> Self {
        Self { expression, nodes: 1, depth: 1 }
    }

    pub(super) fn literal(value: ScalarValue) -> Self {
        Self::leaf(Expr::Literal(value, None))
    }

    pub(super) fn into_expression(self) -> Expr {
        self.expression
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    pub(super) fn is_within(&self, nodes: usize, depth: usize) -> bool {
        self.nodes <= nodes && self.depth <= depth
    }

    fn around(self, wrap: impl FnOnce(Box<Expr>) -> Expr) -> Self {
        Self { expression: wrap(Box::new(self.expression)), nodes: self.nodes + 1, depth: self.depth + 1 }
    }

    pub(super) fn not(self) -> Self {
        self.around(Expr::Not)
    }

    /// Whether it is not NULL.
    pub(super) fn known(self) -> Self {
        self.around(Expr::IsNotNull)
    }

    /// A value that does not fit is an error: only where all of them do.
    pub(super) fn cast(self, to: DataType) -> Self {
        self.around(|expression| Expr::Cast(Cast::new(expression, to)))
    }

    /// A value that does not fit is NULL.
    pub(super) fn try_cast(self, to: DataType) -> Self {
        self.around(|expression| Expr::TryCast(TryCast::new(expression, to)))
    }

    pub(super) fn in_list(self, list: Vec<ScalarValue>) -> Self {
        let count = list.len();
        let list = list.into_iter().map(|value| Expr::Literal(value, None)).collect();
        let part = self.around(|value| Expr::InList(datafusion::logical_expr::expr::InList::new(value, list, false)));
        Self { nodes: part.nodes + count, ..part }
    }

    pub(super) fn like(self, pattern: String) -> Self {
        let pattern = Box::new(Expr::Literal(pattern.into(), None));
        let part = self.around(|text| Expr::Like(Like::new(false, text, pattern, None, false)));
        Self { nodes: part.nodes + 1, ..part }
    }

    pub(super) fn binary(self, operator: Operator, other: Self) -> Self {
        Self {
            expression: Expr::BinaryExpr(BinaryExpr::new(
                Box::new(self.expression),
                operator,
                Box::new(other.expression),
            )),
            nodes: self.nodes + other.nodes + 1,
            depth: self.depth.max(other.depth) + 1,
        }
    }

    /// NULL where the condition holds, else this.
    pub(super) fn null_if(self, condition: Self, null: ScalarValue) -> Self {
        let case = |otherwise| {
            let null = Box::new(Expr::Literal(null, None));
            Expr::Case(Case::new(None, vec![(Box::new(condition.expression), null)], Some(otherwise)))
        };
        let (nodes, depth) = (self.nodes + condition.nodes + 2, self.depth.max(condition.depth) + 1);
        Self { nodes, depth, ..self.around(case) }
    }

    /// All of them, in halves; `None`: there is none.
    pub(super) fn joined(mut parts: Vec<Self>, operator: Operator) -> Option<Self> {
        match parts.len() {
            0 | 1 => parts.pop(),
            count => {
                let right = parts.split_off(count / 2);
                let (left, right) = (Self::joined(parts, operator)?, Self::joined(right, operator)?);
                Some(left.binary(operator, right))
            }
        }
    }
}
