//! Tokens to a tree, by operator precedence, with a stack of its own: however deep parentheses go, no call does.
//!
//! ```text
//! || < && < == != =~ !~ < < <= > >= in < | < ^ < & < << >> < + - < * / % < unary - + ! ~
//! ```
//!
//! Every value that is read goes to the operands; an operator waits among the frames until one that
//! binds less tightly, or a closing parenthesis, shows that both its operands are there.

use kymo_ir::predicate::{Arithmetic, Bitwise, Regex, Relation};

use crate::ast::{Alternative, Binary, Id, SyntaxKind, Tree, Unary};
use crate::fields::{NamePath, NameStep};
use crate::lexer::{FilterToken, Symbol, TokenKind, tokens};
use crate::limits::{DEPTH_MAX, REGEXES_MAX};
use crate::literal::{self, NumberLiteral};
use crate::near::nearest;
use crate::problem::{FilterProblem, ProblemKind, Span, quoted};

/// The words that may stand behind `$`.
pub(crate) const WORDS: [&str; 10] =
    ["ctx", "app", "event", "stream", "packet", "trace", "env", "payload", "time", "cycles"];

/// Parses a filter. The first thing that is wrong ends it.
pub(crate) fn parse(text: &str) -> Result<Tree, FilterProblem> {
    let tokens = tokens(text)?;
    if tokens.len() == 1 {
        return Err(FilterProblem::new(0..text.len(), ProblemKind::Empty));
    }
    let tree = Tree { nodes: Vec::new() };
    let mut parser = FilterParser { text, tokens, at: 0, tree, operands: Vec::new(), frames: Vec::new(), regexes: 0 };
    loop {
        parser.operand()?;
        if !parser.operator()? {
            return Ok(parser.tree);
        }
    }
}

impl NamePath {
    /// Parses a name in the syntax of expressions, alone.
    ///
    /// # Errors
    ///
    /// The error in it.
    ///
    /// ```
    /// use kymo_filter::NamePath;
    /// assert_eq!(NamePath::parse("packet.cpu_id").unwrap().to_string(), "packet.cpu_id");
    /// assert!(NamePath::parse("prio + 1").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, FilterProblem> {
        let tokens = tokens(text)?;
        let tree = Tree { nodes: Vec::new() };
        let mut parser =
            FilterParser { text, tokens, at: 0, tree, operands: Vec::new(), frames: Vec::new(), regexes: 0 };
        if !matches!(parser.peek().kind, TokenKind::Name(_) | TokenKind::Word(_)) {
            return Err(parser.unexpected(A_NAME));
        }
        let (path, _) = parser.path()?;
        match parser.peek().kind {
            TokenKind::End => Ok(path),
            _ => Err(parser.unexpected("`.`, `[` or the end of the name")),
        }
    }
}

/// An operation that waits for its last operand or its closing parenthesis.
enum PendingOperation {
    Unary(Unary, usize),
    Binary(Operator),
    Parenthesis(Span),
    List { open: Span, value: Id, items: Vec<Alternative>, lowest: Option<(Id, bool)> },
}

/// A binary operator.
#[derive(Clone, Copy, PartialEq)]
enum Operator {
    All,
    Any,
    Other(Binary),
}

impl Operator {
    fn of(symbol: Symbol) -> Option<Self> {
        Some(match symbol {
            Symbol::BothAnd => Self::All,
            Symbol::EitherOr => Self::Any,
            Symbol::Equal => Self::Other(Binary::Relation(Relation::Equal)),
            Symbol::NotEqual => Self::Other(Binary::Relation(Relation::NotEqual)),
            Symbol::Less => Self::Other(Binary::Relation(Relation::Less)),
            Symbol::LessOrEqual => Self::Other(Binary::Relation(Relation::LessOrEqual)),
            Symbol::Greater => Self::Other(Binary::Relation(Relation::Greater)),
            Symbol::GreaterOrEqual => Self::Other(Binary::Relation(Relation::GreaterOrEqual)),
            Symbol::Or => Self::Other(Binary::Bits(Bitwise::Or)),
            Symbol::Caret => Self::Other(Binary::Bits(Bitwise::Xor)),
            Symbol::And => Self::Other(Binary::Bits(Bitwise::And)),
            Symbol::ShiftLeft => Self::Other(Binary::Bits(Bitwise::ShiftLeft)),
            Symbol::ShiftRight => Self::Other(Binary::Bits(Bitwise::ShiftRight)),
            Symbol::Plus => Self::Other(Binary::Arithmetic(Arithmetic::Add)),
            Symbol::Minus => Self::Other(Binary::Arithmetic(Arithmetic::Subtract)),
            Symbol::Star => Self::Other(Binary::Arithmetic(Arithmetic::Multiply)),
            Symbol::Slash => Self::Other(Binary::Arithmetic(Arithmetic::Divide)),
            Symbol::Percent => Self::Other(Binary::Arithmetic(Arithmetic::Remainder)),
            _ => return None,
        })
    }

    /// Higher ones bind more tightly.
    fn precedence(self) -> u8 {
        match self {
            Self::Any => 1,
            Self::All => 2,
            Self::Other(Binary::Relation(Relation::Equal | Relation::NotEqual)) => EQUALITY,
            Self::Other(Binary::Relation(_)) => ORDER,
            Self::Other(Binary::Bits(Bitwise::Or)) => 5,
            Self::Other(Binary::Bits(Bitwise::Xor)) => 6,
            Self::Other(Binary::Bits(Bitwise::And)) => 7,
            Self::Other(Binary::Bits(Bitwise::ShiftLeft | Bitwise::ShiftRight)) => 8,
            Self::Other(Binary::Arithmetic(Arithmetic::Add | Arithmetic::Subtract)) => 9,
            Self::Other(Binary::Arithmetic(_)) => 10,
        }
    }

    /// A chain becomes one node: it waits for its end.
    fn is_chain(self) -> bool {
        matches!(self, Self::All | Self::Any)
    }
}

/// Of `==`, `!=`, `=~`, `!~`.
const EQUALITY: u8 = 3;
/// Of `<`, `<=`, `>`, `>=`, `in`.
const ORDER: u8 = 4;

const A_VALUE: &str = "a value: a field, a number, a text, or `(`";
const AN_OPERATOR: &str = "an operator or the end";
const A_NAME: &str = "the name of a field";

struct FilterParser<'t> {
    text: &'t str,
    tokens: Vec<FilterToken<'t>>,
    at: usize,
    tree: Tree,
    operands: Vec<Id>,
    frames: Vec<PendingOperation>,
    regexes: usize,
}

impl<'t> FilterParser<'t> {
    fn peek(&self) -> &FilterToken<'t> {
        // The end is never taken.
        &self.tokens[self.at]
    }

    fn take(&mut self) -> FilterToken<'t> {
        let token = self.tokens[self.at].clone();
        self.at += 1;
        token
    }

    fn is_symbol(&self, ahead: usize, symbol: Symbol) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|token| token.kind == TokenKind::Symbol(symbol))
    }

    fn take_symbol(&mut self, symbol: Symbol) -> Option<Span> {
        self.is_symbol(0, symbol).then(|| self.take().span)
    }

    fn unexpected(&self, expected: &'static str) -> FilterProblem {
        let FilterToken { kind, span } = self.peek();
        let found = match kind {
            TokenKind::End => "the end".to_owned(),
            _ => format!("`{}`", quoted(self.text, span)),
        };
        let problem = FilterProblem::new(span.clone(), ProblemKind::Unexpected { found, expected });
        match kind {
            TokenKind::Symbol(Symbol::Assign) => problem.help("equality is `==`"),
            _ => problem,
        }
    }

    /// Operators and parentheses in front of a value, and the value.
    fn operand(&mut self) -> Result<(), FilterProblem> {
        loop {
            let at = self.peek().span.start;
            let unary = match self.peek().kind {
                TokenKind::Symbol(Symbol::Plus) => Unary::Plus,
                TokenKind::Symbol(Symbol::Minus) => Unary::Minus,
                TokenKind::Symbol(Symbol::Not) => Unary::Not,
                TokenKind::Symbol(Symbol::Tilde) => Unary::Complement,
                TokenKind::Symbol(Symbol::ParenthesisOpen) => {
                    let span = self.take().span;
                    self.frames.push(PendingOperation::Parenthesis(span));
                    continue;
                }
                _ => break,
            };
            self.at += 1;
            self.frames.push(PendingOperation::Unary(unary, at));
        }
        let (kind, span) = self.value()?;
        let id = self.tree.push(kind, span);
        self.operands.push(id);
        Ok(())
    }

    fn value(&mut self) -> Result<(SyntaxKind, Span), FilterProblem> {
        let span = self.peek().span.clone();
        let kind = match &self.peek().kind {
            TokenKind::Number(NumberLiteral::Integer(value)) => SyntaxKind::Integer(*value),
            TokenKind::Number(NumberLiteral::Real(value)) => SyntaxKind::Real(*value),
            TokenKind::Number(NumberLiteral::Quantity { value, dimension }) => {
                SyntaxKind::Quantity { value: *value, dimension: *dimension }
            }
            TokenKind::Instant(text) => SyntaxKind::Instant((*text).into()),
            TokenKind::Text(raw, at) => SyntaxKind::Text(literal::text(raw, *at)?),
            TokenKind::Name(name) if name == "has" && self.is_symbol(1, Symbol::ParenthesisOpen) => {
                return self.has();
            }
            TokenKind::Name(_) | TokenKind::Word(_) => {
                let (path, span) = self.path()?;
                return Ok((SyntaxKind::Path(path), span));
            }
            _ => return Err(self.unexpected(A_VALUE)),
        };
        self.at += 1;
        Ok((kind, span))
    }

    fn has(&mut self) -> Result<(SyntaxKind, Span), FilterProblem> {
        let start = self.take().span.start;
        self.at += 1;
        if !matches!(self.peek().kind, TokenKind::Name(_) | TokenKind::Word(_)) {
            return Err(self.unexpected(A_NAME));
        }
        let (path, _) = self.path()?;
        let close = self.take_symbol(Symbol::ParenthesisClose).ok_or_else(|| self.unexpected("`)`"))?;
        Ok((SyntaxKind::Has(path), start..close.end))
    }

    /// `name`, `a.b->c[1][2]`, `$ctx.name`.
    fn path(&mut self) -> Result<(NamePath, Span), FilterProblem> {
        let FilterToken { kind, mut span } = self.take();
        let (is_global, first) = match kind {
            TokenKind::Word(name) => (true, name),
            TokenKind::Name(name) => (false, name),
            _ => return Err(self.unexpected(A_VALUE)),
        };
        if is_global {
            self.check_word(&first, &span)?;
        }
        let mut steps = vec![NameStep::Name(first)];
        loop {
            if self.take_symbol(Symbol::BracketOpen).is_some() {
                steps.push(NameStep::Index(self.index()?));
                let close = self.take_symbol(Symbol::BracketClose).ok_or_else(|| self.unexpected("`]`"))?;
                span.end = close.end;
            } else if self.take_symbol(Symbol::Dot).or_else(|| self.take_symbol(Symbol::Arrow)).is_some() {
                let TokenKind::Name(name) = self.peek().kind.clone() else {
                    return Err(self.unexpected("a name"));
                };
                span.end = self.take().span.end;
                steps.push(NameStep::Name(name));
            } else {
                return Ok((NamePath { is_global, steps }, span));
            }
        }
    }

    fn check_word(&self, word: &str, span: &Span) -> Result<(), FilterProblem> {
        if !WORDS.contains(&word) {
            let near: Vec<String> = nearest(word, WORDS).into_iter().map(|name| format!("${name}")).collect();
            let problem = FilterProblem::new(span.clone(), ProblemKind::UnknownWord(word.to_owned()));
            return Err(problem.help(format!("the words are ${}", WORDS.join(" $"))).near(&near));
        }
        let example = match word {
            "ctx" => "vtid",
            "app" => "provider:type",
            _ => return Ok(()),
        };
        if self.is_symbol(0, Symbol::Dot) || self.is_symbol(0, Symbol::Arrow) {
            return Ok(());
        }
        Err(FilterProblem::new(span.clone(), ProblemKind::WordAlone(word.to_owned(), example)))
    }

    fn index(&mut self) -> Result<u64, FilterProblem> {
        if let TokenKind::Number(NumberLiteral::Integer(index)) = self.peek().kind {
            self.at += 1;
            return Ok(index);
        }
        let span = self.peek().span.clone();
        let found = match self.peek().kind {
            TokenKind::End => "the end".to_owned(),
            _ => format!("`{}`", quoted(self.text, &span)),
        };
        Err(FilterProblem::new(span, ProblemKind::Index(found)))
    }

    /// Reads the operator behind a value: `true` if another value must follow, `false` at the end.
    fn operator(&mut self) -> Result<bool, FilterProblem> {
        loop {
            let symbol = match &self.peek().kind {
                TokenKind::Symbol(symbol) => *symbol,
                TokenKind::Name(name) if name == "in" => {
                    self.open_list()?;
                    return Ok(true);
                }
                TokenKind::End => {
                    self.finish()?;
                    return Ok(false);
                }
                _ => return Err(self.unexpected(AN_OPERATOR)),
            };
            match symbol {
                Symbol::ParenthesisClose => self.close()?,
                Symbol::Like => self.like(false)?,
                Symbol::Not if self.is_negated_like() => {
                    self.at += 1;
                    self.like(true)?;
                }
                Symbol::Comma | Symbol::Range | Symbol::RangeInclusive => {
                    self.item(symbol)?;
                    return Ok(true);
                }
                _ => {
                    let operator = Operator::of(symbol).ok_or_else(|| self.unexpected(AN_OPERATOR))?;
                    let keeps_equal = u8::from(operator.is_chain());
                    self.reduce(operator.precedence() + keeps_equal)?;
                    self.at += 1;
                    self.frames.push(PendingOperation::Binary(operator));
                    return Ok(true);
                }
            }
        }
    }

    /// `!~` between values; in front of one it is a complement, negated.
    fn is_negated_like(&self) -> bool {
        self.is_symbol(1, Symbol::Tilde) && self.tokens[self.at + 1].span.start == self.peek().span.end
    }

    /// Applies the operators that bind at least this tightly, down to the innermost parenthesis.
    fn reduce(&mut self, precedence: u8) -> Result<(), FilterProblem> {
        loop {
            match self.frames.last() {
                Some(&PendingOperation::Unary(operator, at)) => {
                    self.frames.pop();
                    self.tree.push_unary(operator, at);
                    let last = self.tree.nodes.len() - 1;
                    self.replace_last(last)?;
                }
                Some(&PendingOperation::Binary(operator)) if operator.precedence() >= precedence => {
                    self.apply(operator)?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// The value on top of the operands became this node.
    fn replace_last(&mut self, id: Id) -> Result<(), FilterProblem> {
        *self.operands.last_mut().expect("a value stands before every operator") = id;
        let node = &self.tree.nodes[id];
        if node.depth > DEPTH_MAX {
            return Err(FilterProblem::new(node.span.clone(), ProblemKind::Depth));
        }
        Ok(())
    }

    /// Applies the operator on top of the frames; a whole chain of `&&` or `||` at once.
    fn apply(&mut self, operator: Operator) -> Result<(), FilterProblem> {
        let mut count = 0;
        while matches!(self.frames.last(), Some(PendingOperation::Binary(top)) if *top == operator) {
            self.frames.pop();
            count += 1;
            if !operator.is_chain() {
                break;
            }
        }
        let operands = self.operands.split_off(self.operands.len() - count - 1);
        let (left, right) = (operands[0], operands[count]);
        let span = self.tree.nodes[left].span.start..self.tree.nodes[right].span.end;
        let kind = match operator {
            Operator::All => SyntaxKind::All(operands),
            Operator::Any => SyntaxKind::Any(operands),
            Operator::Other(operator) => SyntaxKind::Binary { operator, left, right },
        };
        let id = self.tree.push(kind, span);
        self.operands.push(id);
        self.replace_last(id)
    }

    fn close(&mut self) -> Result<(), FilterProblem> {
        self.reduce(0)?;
        let close = self.take().span;
        match self.frames.pop() {
            Some(PendingOperation::Parenthesis(_)) => Ok(()),
            Some(PendingOperation::List { value, mut items, lowest, .. }) => {
                items.push(self.finished_item(lowest));
                let span = self.tree.nodes[value].span.start..close.end;
                let id = self.tree.push(SyntaxKind::In { value, items }, span);
                self.operands.push(id);
                self.replace_last(id)
            }
            _ => Err(FilterProblem::new(close, ProblemKind::Unopened)),
        }
    }

    fn open_list(&mut self) -> Result<(), FilterProblem> {
        self.reduce(ORDER)?;
        let start = self.take().span.start;
        let open = self.take_symbol(Symbol::ParenthesisOpen).ok_or_else(|| self.unexpected("`(` behind `in`"))?;
        let value = self.operands.pop().expect("a value stands before every operator");
        self.frames.push(PendingOperation::List { open: start..open.end, value, items: Vec::new(), lowest: None });
        Ok(())
    }

    /// `,`, `..` or `..=` behind a value.
    fn item(&mut self, symbol: Symbol) -> Result<(), FilterProblem> {
        self.reduce(0)?;
        if !matches!(self.frames.last(), Some(PendingOperation::List { .. })) {
            return Err(match symbol {
                Symbol::Comma => self.unexpected(AN_OPERATOR),
                _ => FilterProblem::new(self.peek().span.clone(), ProblemKind::RangeOutsideList),
            });
        }
        let Some(PendingOperation::List { open, value, mut items, lowest }) = self.frames.pop() else { return Ok(()) };
        let lowest = match symbol {
            Symbol::Comma => {
                items.push(self.finished_item(lowest));
                None
            }
            _ if lowest.is_some() => return Err(self.unexpected("`,` or `)`")),
            _ => self.operands.pop().map(|id| (id, symbol == Symbol::RangeInclusive)),
        };
        self.at += 1;
        self.frames.push(PendingOperation::List { open, value, items, lowest });
        Ok(())
    }

    fn finished_item(&mut self, lowest: Option<(Id, bool)>) -> Alternative {
        let last = self.operands.pop().expect("a value stands before every `,` and `)`");
        match lowest {
            Some((lowest, is_inclusive)) => Alternative::Range { lowest, highest: last, is_inclusive },
            None => Alternative::One(last),
        }
    }

    /// `=~ "regex"`, at the operator.
    fn like(&mut self, is_negated: bool) -> Result<(), FilterProblem> {
        self.reduce(EQUALITY)?;
        self.at += 1;
        let TokenKind::Text(source, at) = self.peek().kind else {
            return Err(self.unexpected("a regular expression in quotes"));
        };
        let end = self.take().span.end;
        self.regexes += 1;
        if self.regexes > REGEXES_MAX {
            return Err(FilterProblem::new(at..end, ProblemKind::Regexes));
        }
        let regex = Regex::new(source).map_err(|error| {
            FilterProblem::new(at..at + source.len(), ProblemKind::Regex(last_line(&error.to_string())))
        })?;
        let value = self.operands.pop().expect("a value stands before every operator");
        let span = self.tree.nodes[value].span.start..end;
        let id = self.tree.push(SyntaxKind::Like { value, regex, is_negated }, span);
        self.operands.push(id);
        self.replace_last(id)
    }

    fn finish(&mut self) -> Result<(), FilterProblem> {
        self.reduce(0)?;
        match self.frames.pop() {
            Some(PendingOperation::Parenthesis(span)) => Err(FilterProblem::new(span, ProblemKind::Unclosed("`(`"))),
            Some(PendingOperation::List { open, .. }) => Err(FilterProblem::new(open, ProblemKind::Unclosed("list"))),
            _ => Ok(()),
        }
    }
}

/// Errors of regular expressions draw the expression; the error is in the last line.
fn last_line(error: &str) -> String {
    let line = error.lines().next_back().unwrap_or(error).trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
