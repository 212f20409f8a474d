//! An expression as a tree, before the meaning of its names is known.
//!
//! Nodes follow their operands in one list, so that working through a tree needs no recursion, and
//! dropping one costs no stack.
//!
//! ```text
//! a && !b && c      0 a   1 b   2 not 1   3 c   4 all 0 2 3
//! ```

use std::fmt::Write;

use kymo_ir::predicate::{Arithmetic, Bitwise, Regex, Relation};

use crate::fields::{Dimension, NamePath};
use crate::literal::TextLiteral;
use crate::problem::Span;

/// The index of a node in its tree.
pub(crate) type Id = usize;

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The last one is the root.
    pub(crate) nodes: Vec<SyntaxNode>,
}

/// A part of an expression.
#[derive(Clone, Debug)]
pub(crate) struct SyntaxNode {
    pub(crate) kind: SyntaxKind,
    pub(crate) span: Span,
    /// 1 without operands.
    pub(crate) depth: usize,
}

/// The kind of a node.
#[derive(Clone, Debug)]
pub(crate) enum SyntaxKind {
    Integer(u64),
    Real(f64),
    Quantity {
        /// In base units.
        value: u64,
        dimension: Dimension,
    },
    Instant(Box<str>),
    Text(TextLiteral),
    Path(NamePath),
    Has(NamePath),
    Unary {
        operator: Unary,
        operand: Id,
    },
    Binary {
        operator: Binary,
        left: Id,
        right: Id,
    },
    All(Vec<Id>),
    Any(Vec<Id>),
    In {
        value: Id,
        items: Vec<Alternative>,
    },
    Like {
        value: Id,
        regex: Regex,
        is_negated: bool,
    },
}

/// One alternative of `in (...)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Alternative {
    One(Id),
    Range { lowest: Id, highest: Id, is_inclusive: bool },
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Plus,
    Minus,
    Not,
    Complement,
}

/// Operators with two operands, but for `&&` and `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Arithmetic(Arithmetic),
    Bits(Bitwise),
    Relation(Relation),
}

impl Unary {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Not => "!",
            Self::Complement => "~",
        }
    }
}

impl Binary {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Arithmetic(operation) => operation.symbol(),
            Self::Bits(operation) => operation.symbol(),
            Self::Relation(relation) => relation.symbol(),
        }
    }
}

impl Tree {
    /// Appends a node behind its operands.
    pub(crate) fn push(&mut self, kind: SyntaxKind, span: Span) -> Id {
        let depth = 1 + kind.operands().into_iter().map(|id| self.nodes[id].depth).max().unwrap_or(0);
        self.nodes.push(SyntaxNode { kind, span, depth });
        self.nodes.len() - 1
    }

    /// Applies a unary operator to the last node. Chains of one operator are kept short: signs multiply, and of `!` and
    /// `~` two are as good as any even number.
    pub(crate) fn push_unary(&mut self, operator: Unary, at: usize) -> Id {
        let operand = self.nodes.len() - 1;
        let span = at..self.nodes[operand].span.end;
        let inner = match self.nodes[operand].kind {
            SyntaxKind::Unary { operator, operand } => Some((operator, operand)),
            _ => None,
        };
        let signs = [Unary::Plus, Unary::Minus];
        match (operator, inner) {
            (sign, Some((inner, number))) if signs.contains(&sign) && signs.contains(&inner) => {
                let operator = if sign == inner { Unary::Plus } else { Unary::Minus };
                self.nodes[operand].kind = SyntaxKind::Unary { operator, operand: number };
                self.nodes[operand].span = span;
                operand
            }
            (operator, Some((same, second))) if same == operator && self.is_unary(second, operator) => {
                self.nodes.pop();
                self.nodes[second].span = span;
                second
            }
            _ => self.push(SyntaxKind::Unary { operator, operand }, span),
        }
    }

    fn is_unary(&self, id: Id, wanted: Unary) -> bool {
        matches!(self.nodes[id].kind, SyntaxKind::Unary { operator, .. } if operator == wanted)
    }

    /// As indented text, one line a node.
    pub(crate) fn show(&self) -> String {
        let mut shown = String::new();
        self.show_node(&mut shown, self.nodes.len() - 1, 0);
        shown
    }

    /// Recurses as deep as the tree, which is limited.
    fn show_node(&self, shown: &mut String, id: Id, depth: usize) {
        let kind = &self.nodes[id].kind;
        let _ = writeln!(shown, "{:indent$}{}", "", kind.word(), indent = 2 * depth);
        if let SyntaxKind::In { value, items } = kind {
            self.show_node(shown, *value, depth + 1);
            for item in items {
                self.show_item(shown, *item, depth + 1);
            }
            return;
        }
        for operand in kind.operands() {
            self.show_node(shown, operand, depth + 1);
        }
    }

    fn show_item(&self, shown: &mut String, item: Alternative, depth: usize) {
        match item {
            Alternative::One(id) => self.show_node(shown, id, depth),
            Alternative::Range { lowest, highest, is_inclusive } => {
                let symbol = if is_inclusive { "..=" } else { ".." };
                let _ = writeln!(shown, "{:indent$}{symbol}", "", indent = 2 * depth);
                self.show_node(shown, lowest, depth + 1);
                self.show_node(shown, highest, depth + 1);
            }
        }
    }
}

impl SyntaxKind {
    /// The operands, in the order of the text.
    pub(crate) fn operands(&self) -> Vec<Id> {
        match self {
            Self::Unary { operand, .. } => vec![*operand],
            Self::Binary { left, right, .. } => vec![*left, *right],
            Self::All(list) | Self::Any(list) => list.clone(),
            Self::Like { value, .. } => vec![*value],
            Self::In { value, items } => {
                let of_item = |item: &Alternative| match *item {
                    Alternative::One(id) => [Some(id), None],
                    Alternative::Range { lowest, highest, .. } => [Some(lowest), Some(highest)],
                };
                std::iter::once(*value).chain(items.iter().flat_map(of_item).flatten()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// One line for [`Tree::show`].
    fn word(&self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Real(value) => format!("{value:?}"),
            Self::Quantity { value, dimension } => format!("{value} {}", dimension.base()),
            Self::Instant(text) => format!("@{text}"),
            Self::Text(literal) => literal.to_string(),
            Self::Path(path) => path.to_string(),
            Self::Has(path) => format!("has({path})"),
            Self::Unary { operator, .. } => operator.symbol().to_owned(),
            Self::Binary { operator, .. } => operator.symbol().to_owned(),
            Self::All(_) => "&&".to_owned(),
            Self::Any(_) => "||".to_owned(),
            Self::In { .. } => "in".to_owned(),
            Self::Like { regex, is_negated, .. } => {
                format!("{} \"{}\"", if *is_negated { "!~" } else { "=~" }, regex.source())
            }
        }
    }
}
