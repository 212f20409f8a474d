//! TSDL tokens to a syntax tree, by recursive descent.
//!
//! After an error the parser goes on behind the next `;` at the top level, so that one run reports
//! several errors.

use std::borrow::Cow;

use hashbrown::HashMap;
use smallvec::smallvec;

use crate::tsdl::ast::{
    Attribute, AttributeSyntax, BlockSyntax, BodyEntry, ClassKind, Declarator, Declarators, EntrySyntax, Enumeration,
    Enumerator, Expression, ExpressionKind, ItemSyntax, NameSyntax, Path, Span, StructureSyntax, TypeDeclaration,
    TypeSyntax, VariantSyntax,
};
use crate::tsdl::lexer::{Tokens, TsdlToken, TsdlTokenKind};
use crate::tsdl::literal;
use crate::tsdl::problem::TsdlProblem;

type Result<T> = std::result::Result<T, (Span, TsdlProblem)>;

/// Nesting of types in the text; the model has a limit of its own.
const DEPTH_MAX: usize = 64;
/// Attributes with more text than this are read each time.
const ATTRIBUTES_BYTES: usize = 1024;

pub(crate) struct TsdlParser<'a, 't> {
    tokens: &'t Tokens<'a>,
    at: usize,
    depth: usize,
    /// Attributes that were read, by the text of their type, each with the number of its tokens behind the keyword.
    known: HashMap<&'a str, (AttributeSyntax<'a>, usize)>,
}

const BLOCKS: [&str; 6] = ["trace", "env", "clock", "stream", "event", "callsite"];
/// Words that name no type.
const RESERVED: [&str; 10] =
    ["string", "align", "callsite", "clock", "env", "event", "floating_point", "integer", "stream", "trace"];
const SPECIFIERS: [&str; 12] = [
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "_Bool",
    "_Complex",
    "_Imaginary",
];

/// All understood items, and the problems of the others.
pub(crate) fn parse<'a>(tokens: &Tokens<'a>) -> (Vec<ItemSyntax<'a>>, Vec<(Span, TsdlProblem)>) {
    let mut parser = TsdlParser { tokens, at: 0, depth: 0, known: HashMap::new() };
    let (mut items, mut problems) = (Vec::new(), Vec::new());
    while parser.peek().kind != TsdlTokenKind::End {
        if parser.eat(";") {
            continue;
        }
        let start = parser.at;
        match parser.item() {
            Ok(item) => items.push(item),
            Err(problem) => {
                problems.push(problem);
                parser.recover(start);
            }
        }
    }
    (items, problems)
}

impl<'a> TsdlParser<'a, '_> {
    fn peek(&self) -> TsdlToken<'a> {
        self.tokens.at(self.at)
    }

    fn peek_at(&self, ahead: usize) -> TsdlToken<'a> {
        self.tokens.at((self.at + ahead).min(self.tokens.len() - 1))
    }

    fn next(&mut self) -> TsdlToken<'a> {
        let token = self.peek();
        if token.kind != TsdlTokenKind::End {
            self.at += 1;
        }
        token
    }

    fn is(&self, text: &str) -> bool {
        self.tokens.is(self.at, text)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.is(text);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, text: &'static str, expected: &'static str) -> Result<()> {
        if self.eat(text) { Ok(()) } else { self.unexpected(expected) }
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T> {
        let token = self.peek();
        let found = match token.kind {
            TsdlTokenKind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", token.text),
        };
        Err((token.span(), TsdlProblem::Unexpected { found, expected }))
    }

    /// Goes behind the `;` that ends the item that began at `start`.
    fn recover(&mut self, start: usize) {
        let passed = || (start..self.at).map(|number| self.tokens.at(number));
        let marks = |mark| passed().filter(|token| token.kind == TsdlTokenKind::Mark && token.text == mark).count();
        let mut open = marks("{").saturating_sub(marks("}"));
        loop {
            let token = self.next();
            match (token.kind, token.text) {
                (TsdlTokenKind::End, _) => return,
                (TsdlTokenKind::Mark, "{") => open += 1,
                (TsdlTokenKind::Mark, "}") => open = open.saturating_sub(1),
                (TsdlTokenKind::Mark, ";") if open == 0 => return,
                _ => {}
            }
        }
    }

    fn word(&mut self, expected: &'static str) -> Result<NameSyntax<'a>> {
        let token = self.peek();
        if token.kind != TsdlTokenKind::Word {
            return self.unexpected(expected);
        }
        self.at += 1;
        Ok(NameSyntax { text: token.text, start: token.start })
    }

    fn item(&mut self) -> Result<ItemSyntax<'a>> {
        let token = self.peek();
        if token.kind == TsdlTokenKind::Word && BLOCKS.contains(&token.text) && self.peek_at(1).text == "{" {
            return Ok(ItemSyntax::Block(self.block()?));
        }
        let declaration = self.declaration()?;
        self.expect(";", "`;`")?;
        match declaration {
            Some(declaration) => Ok(ItemSyntax::Declaration(declaration)),
            None => self.unexpected("a block (trace, env, clock, stream, event, callsite) or a type"),
        }
    }

    fn block(&mut self) -> Result<BlockSyntax<'a>> {
        let keyword = self.word("a block")?;
        self.expect("{", "`{`")?;
        let mut entries = Vec::new();
        while !self.eat("}") {
            if self.eat(";") {
                continue;
            }
            entries.push(self.entry()?);
            self.expect(";", "`;`")?;
        }
        self.expect(";", "`;` behind the block")?;
        Ok(BlockSyntax { keyword, entries })
    }

    fn entry(&mut self) -> Result<EntrySyntax<'a>> {
        let assigned = (0..).find(|&ahead| !self.is_path_part(ahead)).map(|ahead| self.peek_at(ahead).text);
        let declares = self.is("typealias") || self.is("typedef");
        if declares || !matches!(assigned, Some("=" | ":=")) {
            return match self.declaration()? {
                Some(declaration) => Ok(EntrySyntax::Declaration(Box::new(declaration))),
                None => self.unexpected("an attribute (`name = value`, `name := type`) or a type"),
            };
        }
        let path = self.path()?;
        if self.eat("=") {
            return Ok(EntrySyntax::Value { path, value: self.expression()? });
        }
        self.expect(":=", "`=` or `:=`")?;
        let class = Box::new(self.class()?);
        let declarator = self.declarator()?;
        Ok(EntrySyntax::Type { path, class, declarator })
    }

    fn is_path_part(&self, ahead: usize) -> bool {
        let token = self.peek_at(ahead);
        token.kind == TsdlTokenKind::Word || token.text == "." && token.kind == TsdlTokenKind::Mark
    }

    fn path(&mut self) -> Result<Path<'a>> {
        let mut path = smallvec![self.word("a name")?];
        while self.eat(".") || self.eat("->") {
            path.push(self.word("a name")?);
        }
        Ok(path)
    }

    fn expression(&mut self) -> Result<Expression<'a>> {
        let token = self.peek();
        let start = token.start;
        let kind = match (token.kind, token.text) {
            (TsdlTokenKind::Text, text) => {
                self.at += 1;
                ExpressionKind::Text(literal::text(text))
            }
            (TsdlTokenKind::Word, _) => ExpressionKind::Path(self.path()?),
            (TsdlTokenKind::Integer, _) | (TsdlTokenKind::Mark, "-" | "+") => ExpressionKind::Integer(self.integer()?),
            _ => return self.unexpected("a number, a string, or a name"),
        };
        Ok(Expression { kind, span: start..self.end() })
    }

    /// Where the token before the current one ends.
    fn end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |before| self.tokens.at(before).span().end)
    }

    fn integer(&mut self) -> Result<i128> {
        let negative = self.eat("-");
        if !negative {
            self.eat("+");
        }
        let token = self.peek();
        if token.kind != TsdlTokenKind::Integer {
            return self.unexpected("a number");
        }
        self.at += 1;
        let value = literal::integer(token.text).ok_or((token.span(), TsdlProblem::Number))?;
        Ok(if negative { -value } else { value })
    }

    /// A declaration without its `;`; `None` if no type begins here.
    fn declaration(&mut self) -> Result<Option<TypeDeclaration<'a>>> {
        if self.eat("typedef") {
            let class = self.class()?;
            let declarators = self.declarators()?;
            return Ok(Some(TypeDeclaration::Typedef { class, declarators }));
        }
        if self.eat("typealias") {
            return self.alias().map(Some);
        }
        if !matches!(self.peek().text, "struct" | "enum" | "variant") {
            let class = self.class()?;
            // `unsigned typedef long name` is C, too: the specifiers may precede `typedef`.
            if self.eat("typedef") {
                let declarators = self.declarators()?;
                return Ok(Some(TypeDeclaration::Typedef { class, declarators }));
            }
            return Ok(None);
        }
        let class = self.class()?;
        if self.eat("typedef") {
            let declarators = self.declarators()?;
            return Ok(Some(TypeDeclaration::Typedef { class, declarators }));
        }
        Ok(Some(TypeDeclaration::Class(class)))
    }

    fn alias(&mut self) -> Result<TypeDeclaration<'a>> {
        let class = self.class()?;
        let mut declarator = self.declarator()?;
        self.expect(":=", "`:=`")?;
        let start = self.peek().start;
        let mut name = self.alias_words()?;
        while self.eat("*") {
            name.push_str(" *");
        }
        // Lengths may be on either side.
        declarator.lengths.extend(self.declarator()?.lengths);
        Ok(TypeDeclaration::Alias { class, declarator, name, span: start..self.end() })
    }

    fn alias_words(&mut self) -> Result<String> {
        let compound =
            matches!(self.peek().text, "struct" | "variant" | "enum") && self.peek_at(1).kind != TsdlTokenKind::Word;
        if compound || RESERVED.contains(&self.peek().text) && self.peek().kind == TsdlTokenKind::Word {
            return self.unexpected("the name of a type, which is no keyword");
        }
        let mut name = self.word("the name of a type")?.text.to_owned();
        while self.peek().kind == TsdlTokenKind::Word {
            name.push(' ');
            name.push_str(self.next().text);
        }
        Ok(name)
    }

    fn declarators(&mut self) -> Result<Declarators<'a>> {
        let mut declarators = smallvec![self.declarator()?];
        while self.eat(",") {
            declarators.push(self.declarator()?);
        }
        Ok(declarators)
    }

    fn declarator(&mut self) -> Result<Declarator<'a>> {
        let mut declarator = Declarator::default();
        while self.eat("*") || self.eat("const") {
            declarator.pointers += 1;
        }
        if self.peek().kind == TsdlTokenKind::Word {
            declarator.name = Some(self.word("a name")?);
        }
        while self.eat("[") {
            declarator.lengths.push(self.expression()?);
            self.expect("]", "`]`")?;
        }
        Ok(declarator)
    }

    fn class(&mut self) -> Result<TypeSyntax<'a>> {
        let start = self.peek().start;
        if self.depth == DEPTH_MAX {
            return Err((self.peek().span(), TsdlProblem::Depth(DEPTH_MAX)));
        }
        self.depth += 1;
        let kind = self.class_kind();
        self.depth -= 1;
        Ok(TypeSyntax { kind: kind?, span: start..self.end() })
    }

    fn class_kind(&mut self) -> Result<ClassKind<'a>> {
        let token = self.peek();
        match token.text {
            "integer" | "floating_point" | "string" if token.kind == TsdlTokenKind::Word => {
                self.at += 1;
                let attributes = self.attributes(token.start)?;
                Ok(ClassKind::Basic { keyword: token.text, attributes })
            }
            "struct" => self.structure(),
            "variant" => self.variant(),
            "enum" => self.enumeration(),
            _ => self.named(),
        }
    }

    /// The attributes of a type, if there are any; its text begins at `start`.
    fn attributes(&mut self, start: usize) -> Result<AttributeSyntax<'a>> {
        if !self.is("{") {
            return Ok(AttributeSyntax::default());
        }
        let text = &self.tokens.text()[start..];
        let near = &text.as_bytes()[..text.len().min(ATTRIBUTES_BYTES)];
        let text = memchr::memchr(b'}', near).map(|end| &text[..=end]);
        if let Some((attributes, tokens)) = text.and_then(|text| self.known.get(text)) {
            self.at += tokens;
            return Ok(attributes.clone());
        }
        let first = self.at;
        self.at += 1;
        let list = self.attribute_list()?.into();
        let attributes = AttributeSyntax { number: Some(self.known.len()), list };
        // There may have been a brace in a comment or a string.
        let is_whole = |text: &&str| start + text.len() == self.end();
        if let Some(text) = text.filter(is_whole) {
            self.known.insert(text, (attributes.clone(), self.at - first));
            return Ok(attributes);
        }
        Ok(AttributeSyntax { number: None, ..attributes })
    }

    fn attribute_list(&mut self) -> Result<Vec<Attribute<'a>>> {
        let mut attributes = Vec::new();
        while !self.eat("}") {
            if self.eat(";") {
                continue;
            }
            let name = self.word("an attribute")?;
            self.expect("=", "`=`")?;
            attributes.push(Attribute { name, value: self.expression()? });
            self.expect(";", "`;`")?;
        }
        Ok(attributes)
    }

    fn named(&mut self) -> Result<ClassKind<'a>> {
        let mut name = Cow::Borrowed("");
        loop {
            let token = self.peek();
            let specifier = SPECIFIERS.contains(&token.text);
            if token.text == "const" && token.kind == TsdlTokenKind::Word {
                self.at += 1;
                continue;
            }
            let is_part = token.kind == TsdlTokenKind::Word && (specifier || name.is_empty());
            if !is_part {
                break;
            }
            self.at += 1;
            match name.is_empty() {
                true => name = Cow::Borrowed(token.text),
                false => *name.to_mut() += &format!(" {}", token.text),
            }
            if !specifier {
                break;
            }
        }
        if name.is_empty() { self.unexpected("a type") } else { Ok(ClassKind::Named(name)) }
    }

    fn structure(&mut self) -> Result<ClassKind<'a>> {
        self.at += 1;
        let name = self.optional_name();
        let body = if self.eat("{") { Some(self.body()?) } else { None };
        let mut align = None;
        if self.is("align") && self.peek_at(1).text == "(" {
            self.at += 2;
            align = Some(self.expression()?);
            self.expect(")", "`)`")?;
        }
        if name.is_none() && body.is_none() {
            return self.unexpected("`{` or the name of a structure");
        }
        Ok(ClassKind::Structure(StructureSyntax { name, body, align }))
    }

    fn optional_name(&mut self) -> Option<NameSyntax<'a>> {
        let token = self.peek();
        (token.kind == TsdlTokenKind::Word).then(|| {
            self.at += 1;
            NameSyntax { text: token.text, start: token.start }
        })
    }

    fn variant(&mut self) -> Result<ClassKind<'a>> {
        self.at += 1;
        let name = self.optional_name();
        let mut tag = None;
        if self.eat("<") {
            tag = Some(self.path()?);
            self.expect(">", "`>`")?;
        }
        let body = if self.eat("{") { Some(self.body()?) } else { None };
        if name.is_none() && body.is_none() {
            return self.unexpected("`{` or the name of a variant");
        }
        Ok(ClassKind::Variant(VariantSyntax { name, tag, body }))
    }

    fn body(&mut self) -> Result<Vec<BodyEntry<'a>>> {
        let mut entries = Vec::new();
        while !self.eat("}") {
            if self.eat(";") {
                continue;
            }
            entries.push(self.body_entry()?);
            self.expect(";", "`;`")?;
        }
        Ok(entries)
    }

    fn body_entry(&mut self) -> Result<BodyEntry<'a>> {
        if (self.is("typedef") || self.is("typealias"))
            && let Some(declaration) = self.declaration()?
        {
            return Ok(BodyEntry::Declaration(Box::new(declaration)));
        }
        let class = self.class()?;
        if self.is(";") {
            return Ok(BodyEntry::Declaration(Box::new(TypeDeclaration::Class(class))));
        }
        if self.eat("typedef") {
            let declarators = self.declarators()?;
            return Ok(BodyEntry::Declaration(Box::new(TypeDeclaration::Typedef { class, declarators })));
        }
        let declarators = self.declarators()?;
        if declarators.iter().any(|declarator| declarator.name.is_none()) {
            return self.unexpected("the name of a field");
        }
        Ok(BodyEntry::Fields { class, declarators })
    }

    fn enumeration(&mut self) -> Result<ClassKind<'a>> {
        self.at += 1;
        let name = self.optional_name();
        let base = if self.eat(":") { Some(Box::new(self.class()?)) } else { None };
        let enumerators = if self.eat("{") { Some(self.enumerators()?) } else { None };
        if name.is_none() && enumerators.is_none() {
            return self.unexpected("`{` or the name of an enumeration");
        }
        Ok(ClassKind::Enumeration(Enumeration { name, base, enumerators }))
    }

    fn enumerators(&mut self) -> Result<Vec<Enumerator<'a>>> {
        let mut enumerators = Vec::new();
        while !self.eat("}") {
            let token = self.next();
            let label = match token.kind {
                TsdlTokenKind::Word => Cow::Borrowed(token.text),
                TsdlTokenKind::Text => literal::text(token.text),
                _ => {
                    self.at -= usize::from(token.kind != TsdlTokenKind::End);
                    return self.unexpected("a label or `}`");
                }
            };
            let range = if self.eat("=") { Some(self.range()?) } else { None };
            enumerators.push(Enumerator { label, range });
            if !self.eat(",") {
                self.expect("}", "`,` or `}`")?;
                break;
            }
        }
        Ok(enumerators)
    }

    fn range(&mut self) -> Result<(i128, i128)> {
        let start = self.peek().start;
        let lower = self.integer()?;
        let upper = if self.eat("...") { self.integer()? } else { lower };
        if upper < lower {
            return Err((start..self.end(), TsdlProblem::Range));
        }
        Ok((lower, upper))
    }
}
