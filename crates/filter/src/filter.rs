//! A filter: parsed, checked, and bound to classes of events.

use std::ops::Range;

use crate::ast::{SyntaxKind, Tree};
use crate::bind::bind;
use crate::binding::Binding;
use crate::fields::{FieldResolver, NamePath};
use crate::problem::{FilterProblem, ProblemKind};
use crate::{check, parser};

/// An expression that can be evaluated for events.
#[derive(Clone, Debug)]
pub struct Filter {
    text: Box<str>,
    tree: Tree,
}

impl Filter {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// The errors in it that do not depend on events: the first error of syntax, or all errors of
    /// types.
    ///
    /// ```
    /// use kymo_filter::Filter;
    /// assert!(Filter::parse("next_prio < 100 && next_comm == \"kw*\"").is_ok());
    /// let problems = Filter::parse("next_prio < ").unwrap_err();
    /// assert!(problems[0].render("next_prio < ").starts_with("found the end, expected a value"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, Vec<FilterProblem>> {
        let tree = parser::parse(text).map_err(|problem| vec![problem])?;
        let problems = check::check(&tree, text);
        if problems.is_empty() { Ok(Self { text: text.into(), tree }) } else { Err(problems) }
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The meaning of the filter for a class of events. A name that the class does not have is no
    /// error: a question about it is unknown, see [`Binding::missing`].
    ///
    /// # Errors
    ///
    /// Why it cannot be evaluated for this class: operands of types that do not go together, labels
    /// that a field does not have, a size.
    pub fn bind(&self, fields: &dyn FieldResolver) -> Result<Binding, Vec<FilterProblem>> {
        bind(&self.tree, &self.text, fields)?.finished(self.text.len())
    }

    /// The problem of a name in it that no class of events has; `near`: existing names like it.
    #[must_use]
    pub fn unknown_name(&self, span: Range<usize>, near: &[String]) -> FilterProblem {
        let name = self.text.get(span.clone()).unwrap_or_default().to_owned();
        let help = (!near.is_empty()).then(|| format!("there is `{}`", near.join("`, `")));
        FilterProblem { span, kind: ProblemKind::UnknownName(name), help }
    }

    /// The problem where text of packets is used together with fields of events.
    #[must_use]
    pub fn text_of_packet(&self, name: &str) -> FilterProblem {
        let found = self.paths().into_iter().find(|(_, span)| self.text.get(span.clone()) == Some(name));
        let span = found.map_or(0..self.text.len(), |(_, span)| span);
        FilterProblem { span, kind: ProblemKind::TextOfPacket(name.to_owned()), help: None }
    }

    /// The syntax tree as indented text, one line a node.
    #[must_use]
    pub fn tree(&self) -> String {
        self.tree.show()
    }

    /// Every name in it, as often as it occurs, and its bytes of the text.
    #[must_use]
    pub fn paths(&self) -> Vec<(NamePath, Range<usize>)> {
        let named = self.tree.nodes.iter().filter_map(|node| match &node.kind {
            SyntaxKind::Path(path) | SyntaxKind::Has(path) => Some((path.clone(), node.span.clone())),
            _ => None,
        });
        named.collect()
    }
}
