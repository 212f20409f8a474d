//! Types as written to types as meant: names looked up, attributes understood, declarators applied.
//!
//! References to other fields (lengths, tags) stay names here: their meaning depends on where the
//! type is used, and `build` finds it out.

use hashbrown::{HashMap, HashSet};
use std::rc::Rc;

use kymo_units::ByteOrder;

use crate::model::{
    DisplayBase, EnumerationMapping, FixedBits, FixedInteger, IntegerMeaning, IntegerRange, TextEncoding,
};
use crate::seen::NameSet;
use crate::tsdl::ast::{
    Attribute, AttributeSyntax, BodyEntry, ClassKind, Declarator, Enumeration, Expression, ExpressionKind, Span,
    StructureSyntax, TypeDeclaration, TypeSyntax, VariantSyntax,
};
use crate::tsdl::problem::TsdlProblem;

/// Types inside types, at most.
const DEPTH_MAX: u32 = 65;
/// Fields and labels of one type, at most.
const WEIGHT_MAX: u64 = 1 << 20;

/// A type with references that are still names. Its depth and size were bounded when it was made,
/// so that code that walks or drops it needs no bounds of its own.
#[derive(Debug)]
pub(crate) struct UnresolvedType {
    pub(crate) kind: Proto,
    depth: u32,
    /// Fields and labels, those of shared types as often as they occur.
    weight: u64,
}

/// The kind of a type.
#[derive(Debug)]
pub(crate) enum Proto {
    Integer(FixedInteger),
    Real(FixedBits),
    Text(TextEncoding),
    Structure { members: Vec<(String, Shared)>, minimum_alignment: u64 },
    Variant { tag: Option<Reference>, options: Vec<(String, Shared)> },
    Array { length: u64, element: Shared },
    Sequence { length: Reference, element: Shared },
}

/// Types are shared by all that name them.
pub(crate) type Shared = Rc<UnresolvedType>;

/// A type of that kind, unless it is too large.
fn typed(kind: Proto, span: &Span) -> Result<Shared> {
    let of_all = |members: &[(String, Shared)]| {
        let depth = members.iter().map(|(_, member)| member.depth).max().unwrap_or(0);
        (depth, members.iter().fold(0, |sum, (_, member)| member.weight.saturating_add(sum)))
    };
    let (depth, weight) = match &kind {
        Proto::Integer(integer) => (0, integer.meaning.mappings.len() as u64),
        Proto::Real(_) | Proto::Text(_) => (0, 0),
        Proto::Structure { members, .. } => of_all(members),
        Proto::Variant { options, .. } => of_all(options),
        Proto::Array { element, .. } | Proto::Sequence { element, .. } => (element.depth, element.weight),
    };
    let (depth, weight) = (depth + 1, weight.saturating_add(1));
    if depth > DEPTH_MAX {
        return Err((span.clone(), TsdlProblem::Depth(DEPTH_MAX as usize)));
    }
    if weight > WEIGHT_MAX {
        return Err((span.clone(), TsdlProblem::Fields(WEIGHT_MAX)));
    }
    Ok(Rc::new(UnresolvedType { kind, depth, weight }))
}

/// A dotted name, and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) path: Rc<[String]>,
    pub(crate) span: Span,
}

/// Words that begin a type: no length.
const KEYWORDS: [&str; 9] =
    ["const", "enum", "floating_point", "integer", "string", "struct", "typealias", "typedef", "variant"];

/// Words that TSDL reserves, which cannot name a field or a type.
pub(crate) const RESERVED: [&str; 28] = [
    "_Bool",
    "_Complex",
    "_Imaginary",
    "align",
    "callsite",
    "char",
    "clock",
    "const",
    "double",
    "enum",
    "env",
    "event",
    "float",
    "floating_point",
    "int",
    "integer",
    "long",
    "short",
    "signed",
    "stream",
    "string",
    "struct",
    "trace",
    "typealias",
    "typedef",
    "unsigned",
    "variant",
    "void",
];

type Result<T> = std::result::Result<T, (Span, TsdlProblem)>;

/// The meaning of names, scope in scope.
#[derive(Debug)]
pub(crate) struct Types {
    scopes: Vec<HashMap<String, Shared>>,
    pub(crate) native: Option<ByteOrder>,
    pub(crate) clocks: HashMap<String, usize>,
    /// Integers of the environment: lengths may refer to them.
    pub(crate) environment: HashMap<String, i128>,
    /// Attributes that the specification does not know.
    pub(crate) doubts: Vec<(Span, TsdlProblem)>,
    /// Basic types by the numbers of their attributes.
    basic: HashMap<usize, Shared>,
    /// Types that were declared, whether anything uses them or not.
    pub(crate) declared: Vec<(Span, Shared)>,
}

impl Types {
    pub(crate) fn new(native: Option<ByteOrder>, clocks: HashMap<String, usize>) -> Self {
        let (environment, doubts, declared) = (HashMap::new(), Vec::new(), Vec::new());
        let basic = HashMap::new();
        Self { scopes: vec![HashMap::new()], native, clocks, environment, doubts, basic, declared }
    }

    pub(crate) fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(crate) fn leave(&mut self) {
        self.scopes.pop();
    }

    fn look_up(&self, name: &str) -> Option<Shared> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }

    fn define(&mut self, name: String, proto: Shared, span: Span) -> Result<()> {
        let scope = self.scopes.last_mut().expect("the outermost scope is never left");
        if scope.contains_key(&name) {
            return Err((span, TsdlProblem::Twice { what: format!("the type `{name}`") }));
        }
        scope.insert(name, proto);
        Ok(())
    }

    pub(crate) fn declare(&mut self, declaration: &TypeDeclaration<'_>) -> Result<()> {
        match declaration {
            TypeDeclaration::Class(class) => {
                let proto = self.class(class)?;
                self.keep(&class.span, &proto);
                Ok(())
            }
            TypeDeclaration::Alias { class, declarator, name, span } => {
                let proto = self.class(class)?;
                let proto = self.declared(proto, declarator)?;
                self.keep(&class.span, &proto);
                self.define(name.clone(), proto, span.clone())
            }
            TypeDeclaration::Typedef { class, declarators } => {
                let proto = self.class(class)?;
                for declarator in declarators {
                    let Some(name) = declarator.name else {
                        return Err((class.span.clone(), TsdlProblem::Missing { block: "typedef", attribute: "name" }));
                    };
                    let declared = self.declared(Rc::clone(&proto), declarator)?;
                    self.keep(&class.span, &declared);
                    self.define(name.text.to_owned(), declared, name.span())?;
                }
                Ok(())
            }
        }
    }

    /// Keeps a type that may have references, for a check if nothing uses it.
    pub(crate) fn keep(&mut self, span: &Span, proto: &Shared) {
        if !matches!(proto.kind, Proto::Integer(_) | Proto::Real(_) | Proto::Text(_)) {
            self.declared.push((span.clone(), Rc::clone(proto)));
        }
    }

    /// Applies lengths: the first is the outermost.
    pub(crate) fn declared(&mut self, mut proto: Shared, declarator: &Declarator<'_>) -> Result<Shared> {
        for length in declarator.lengths.iter().rev() {
            let kind = match &length.kind {
                ExpressionKind::Integer(value) => {
                    let length = u64::try_from(*value).map_err(|_| {
                        let problem = TsdlProblem::Value { attribute: "length".into(), expected: "0 or more" };
                        (length.span.clone(), problem)
                    })?;
                    Proto::Array { length, element: proto }
                }
                ExpressionKind::Path(path) if path.len() == 2 && path[0].text == "env" => {
                    let known = self.environment.get(path[1].text).and_then(|value| u64::try_from(*value).ok());
                    let problem =
                        || TsdlProblem::Unknown { what: "length in the environment", name: path[1].text.into() };
                    Proto::Array { length: known.ok_or_else(|| (length.span.clone(), problem()))?, element: proto }
                }
                ExpressionKind::Path(path) if path.len() == 1 && KEYWORDS.contains(&path[0].text) => {
                    return wrong(length, "length", "a number or a field, not a keyword");
                }
                ExpressionKind::Path(path) => {
                    let path = path.iter().map(|word| word.text.to_owned()).collect();
                    Proto::Sequence { length: Reference { path, span: length.span.clone() }, element: proto }
                }
                ExpressionKind::Text(_) => {
                    let problem = TsdlProblem::Value { attribute: "length".into(), expected: "a number or a field" };
                    return Err((length.span.clone(), problem));
                }
            };
            proto = typed(kind, &length.span)?;
        }
        Ok(proto)
    }

    pub(crate) fn class(&mut self, class: &TypeSyntax<'_>) -> Result<Shared> {
        match &class.kind {
            ClassKind::Basic { keyword, attributes } => self.basic(keyword, attributes, &class.span),
            ClassKind::Enumeration(enumeration) => self.enumeration(enumeration, &class.span),
            ClassKind::Structure(structure) => self.structure(structure, &class.span),
            ClassKind::Variant(variant) => self.variant(variant, &class.span),
            ClassKind::Named(name) => self.named(name, &class.span),
        }
    }

    fn basic(&mut self, keyword: &str, attributes: &AttributeSyntax<'_>, span: &Span) -> Result<Shared> {
        if let Some(known) = attributes.number.and_then(|number| self.basic.get(&number)) {
            return Ok(Rc::clone(known));
        }
        let kind = match keyword {
            "integer" => Proto::Integer(self.integer(&attributes.list, span)?),
            "floating_point" => Proto::Real(self.real(&attributes.list, span)?),
            _ => Proto::Text(self.string(&attributes.list)?),
        };
        let class = typed(kind, span)?;
        if let Some(number) = attributes.number {
            self.basic.insert(number, Rc::clone(&class));
        }
        Ok(class)
    }

    fn named(&self, name: &str, span: &Span) -> Result<Shared> {
        let unknown = || (span.clone(), TsdlProblem::Unknown { what: "type", name: name.to_owned() });
        self.look_up(name).ok_or_else(unknown)
    }

    fn integer(&mut self, attributes: &[Attribute<'_>], span: &Span) -> Result<FixedInteger> {
        once(attributes)?;
        let (mut size, mut align, mut order) = (None, None, None);
        let mut meaning = IntegerMeaning::plain();
        for attribute in attributes {
            let value = &attribute.value;
            match attribute.name.text {
                "size" => size = Some(positive(value, "size", 64)?),
                "align" => align = Some(alignment(value)?),
                "signed" => meaning.signed = boolean(value, "signed")?,
                "byte_order" => order = self.byte_order(value)?,
                "base" => meaning.base = base(value)?,
                "encoding" => meaning.encoding = encoding(value)?,
                "map" => meaning.clock = self.clock(value)?,
                _ => self.doubt("integer", attribute),
            }
        }
        let missing = TsdlProblem::Missing { block: "integer", attribute: "size" };
        let length = size.ok_or_else(|| (span.clone(), missing))?;
        let alignment = align.unwrap_or(if length % 8 == 0 { 8 } else { 1 });
        let byte_order = self.native_or(order, span)?;
        let bits = FixedBits { length: length as u32, byte_order, reversed: false, alignment };
        Ok(FixedInteger { bits, meaning })
    }

    fn real(&mut self, attributes: &[Attribute<'_>], span: &Span) -> Result<FixedBits> {
        once(attributes)?;
        let (mut exponent, mut mantissa, mut align, mut order) = (None, None, None, None);
        for attribute in attributes {
            let value = &attribute.value;
            match attribute.name.text {
                "exp_dig" => exponent = Some(positive(value, "exp_dig", 1 << 16)?),
                "mant_dig" => mantissa = Some(positive(value, "mant_dig", 1 << 16)?),
                "align" => align = Some(alignment(value)?),
                "byte_order" => order = self.byte_order(value)?,
                _ => self.doubt("floating_point", attribute),
            }
        }
        let missing = |attribute| (span.clone(), TsdlProblem::Missing { block: "floating_point", attribute });
        let exponent = exponent.ok_or_else(|| missing("exp_dig"))?;
        let mantissa = mantissa.ok_or_else(|| missing("mant_dig"))?;
        if !matches!((exponent, mantissa), (5, 11) | (8, 24) | (11, 53) | (15, 113)) {
            let expected = "5 and 11, 8 and 24, 11 and 53, or 15 and 113";
            return Err((span.clone(), TsdlProblem::Value { attribute: "exp_dig and mant_dig".into(), expected }));
        }
        let byte_order = self.native_or(order, span)?;
        let length = (exponent + mantissa) as u32;
        Ok(FixedBits { length, byte_order, reversed: false, alignment: align.unwrap_or(8) })
    }

    fn string(&mut self, attributes: &[Attribute<'_>]) -> Result<TextEncoding> {
        once(attributes)?;
        let mut found = None;
        for attribute in attributes {
            match attribute.name.text {
                "encoding" => found = encoding(&attribute.value)?,
                _ => self.doubt("string", attribute),
            }
        }
        Ok(found.unwrap_or_default())
    }

    fn doubt(&mut self, block: &'static str, attribute: &Attribute<'_>) {
        let problem = TsdlProblem::UnknownAttribute { block, name: attribute.name.text.to_owned() };
        self.doubts.push((attribute.name.span(), problem));
    }

    /// `None`: the native one.
    fn byte_order(&self, value: &Expression<'_>) -> Result<Option<ByteOrder>> {
        match word(value) {
            Some("le") => Ok(Some(ByteOrder::Little)),
            Some("be" | "network") => Ok(Some(ByteOrder::Big)),
            Some("native") => Ok(None),
            _ => wrong(value, "byte_order", "`le`, `be`, `network` or `native`"),
        }
    }

    fn native_or(&self, order: Option<ByteOrder>, span: &Span) -> Result<ByteOrder> {
        let missing = TsdlProblem::Missing { block: "trace", attribute: "byte_order" };
        order.or(self.native).ok_or_else(|| (span.clone(), missing))
    }

    fn clock(&self, value: &Expression<'_>) -> Result<Option<usize>> {
        let ExpressionKind::Path(path) = &value.kind else {
            return wrong(value, "map", "`clock.NAME.value`");
        };
        let [clock, name, property] = &path[..] else {
            return wrong(value, "map", "`clock.NAME.value`");
        };
        if clock.text != "clock" || property.text != "value" {
            return wrong(value, "map", "`clock.NAME.value`");
        }
        let unknown = || (name.span(), TsdlProblem::Unknown { what: "clock", name: name.text.to_owned() });
        self.clocks.get(name.text).copied().map(Some).ok_or_else(unknown)
    }

    fn enumeration(&mut self, enumeration: &Enumeration<'_>, span: &Span) -> Result<Shared> {
        let Some(enumerators) = &enumeration.enumerators else {
            let name = enumeration.name.expect("the parser demands a body or a name");
            return self.named(&format!("enum {}", name.text), span);
        };
        let base = match &enumeration.base {
            Some(base) => self.class(base)?,
            None => self.named("int", span)?,
        };
        let Proto::Integer(base) = &base.kind else {
            return Err((
                span.clone(),
                TsdlProblem::Value { attribute: "enum".into(), expected: "of an integer type" },
            ));
        };
        let mut integer = base.clone();
        integer.meaning.enumeration = true;
        let values = values(base);
        let mut mappings = Vec::with_capacity(enumerators.len());
        let mut next = 0;
        for enumerator in enumerators {
            let (lower, upper) = enumerator.range.unwrap_or((next, next));
            next = upper + 1;
            let label = enumerator.label.clone().into_owned();
            if !values.contains(&lower) || !values.contains(&upper) {
                let (label, lower, upper) = (label.clone(), *values.start(), *values.end());
                self.doubts.push((span.clone(), TsdlProblem::Enumerator { label, lower, upper }));
            }
            mappings.push(EnumerationMapping { label, ranges: vec![IntegerRange { lower, upper }] });
        }
        if enumerators.is_empty() {
            return Err((span.clone(), TsdlProblem::Missing { block: "enum", attribute: "label" }));
        }
        integer.meaning.mappings = mappings;
        let proto = typed(Proto::Integer(integer), span)?;
        if let Some(name) = enumeration.name {
            self.define(format!("enum {}", name.text), Rc::clone(&proto), name.span())?;
        }
        Ok(proto)
    }

    fn structure(&mut self, structure: &StructureSyntax<'_>, span: &Span) -> Result<Shared> {
        let minimum_alignment = structure.align.as_ref().map_or(Ok(1), alignment)?;
        let Some(body) = &structure.body else {
            let name = structure.name.expect("the parser demands a body or a name");
            return self.named(&format!("struct {}", name.text), span);
        };
        let members = self.members(body)?;
        self.ambiguous_names(&members, span);
        let proto = typed(Proto::Structure { members, minimum_alignment }, span)?;
        if let Some(name) = structure.name {
            self.define(format!("struct {}", name.text), Rc::clone(&proto), name.span())?;
        }
        Ok(proto)
    }

    fn variant(&mut self, variant: &VariantSyntax<'_>, span: &Span) -> Result<Shared> {
        let tag = variant.tag.as_ref().map(|path| Reference {
            path: path.iter().map(|word| word.text.to_owned()).collect(),
            span: path[0].start..path[path.len() - 1].span().end,
        });
        let options = match &variant.body {
            Some(body) => self.members(body)?,
            None => {
                let name = variant.name.expect("the parser demands a body or a name");
                match &self.named(&format!("variant {}", name.text), span)?.kind {
                    Proto::Variant { options, .. } => {
                        options.iter().map(|(name, proto)| (name.clone(), Rc::clone(proto))).collect()
                    }
                    _ => unreachable!("only variants are defined under `variant NAME`"),
                }
            }
        };
        if options.is_empty() {
            return Err((span.clone(), TsdlProblem::Missing { block: "variant", attribute: "option" }));
        }
        let proto = typed(Proto::Variant { tag, options }, span)?;
        if let (Some(name), Some(_)) = (variant.name, &variant.body) {
            self.define(format!("variant {}", name.text), Rc::clone(&proto), name.span())?;
        }
        Ok(proto)
    }

    fn members(&mut self, body: &[BodyEntry<'_>]) -> Result<Vec<(String, Shared)>> {
        self.enter();
        let members = self.members_inside(body);
        self.leave();
        members
    }

    fn members_inside(&mut self, body: &[BodyEntry<'_>]) -> Result<Vec<(String, Shared)>> {
        let mut members: Vec<(String, Shared)> = Vec::new();
        let mut names = NameSet::default();
        for entry in body {
            let (class, declarators) = match entry {
                BodyEntry::Declaration(declaration) => {
                    self.declare(declaration)?;
                    continue;
                }
                BodyEntry::Fields { class, declarators } => (class, declarators),
            };
            let pointers = declarators[0].pointers;
            let proto = self.pointed(class, pointers)?;
            for declarator in declarators {
                let name = declarator.name.expect("the parser demands names");
                if RESERVED.contains(&name.text) {
                    self.doubts.push((name.span(), TsdlProblem::ReservedWord(name.text.to_owned())));
                }
                if !names.insert(name.text) {
                    return Err((name.span(), TsdlProblem::Twice { what: format!("the field `{}`", name.text) }));
                }
                let declared = self.declared(Rc::clone(&proto), declarator)?;
                members.push((name.text.to_owned(), declared));
            }
        }
        Ok(members)
    }

    fn ambiguous_names(&mut self, members: &[(String, Shared)], span: &Span) {
        if !members.iter().any(|(name, _)| name.starts_with('_')) {
            return;
        }
        let names: HashSet<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        let protected = members.iter().filter_map(|(name, _)| name.strip_prefix('_'));
        let ambiguous = protected.filter(|name| names.contains(name));
        let problem = |name: &str| (span.clone(), TsdlProblem::AmbiguousName { name: name.to_owned() });
        self.doubts.extend(ambiguous.map(problem));
    }

    /// `struct page *p` means the type named `struct page *`.
    fn pointed(&mut self, class: &TypeSyntax<'_>, pointers: usize) -> Result<Shared> {
        let name = match &class.kind {
            _ if pointers == 0 => return self.class(class),
            ClassKind::Named(name) => name.clone().into_owned(),
            ClassKind::Structure(StructureSyntax { name: Some(name), body: None, .. }) => {
                format!("struct {}", name.text)
            }
            _ => return self.class(class),
        };
        self.named(&(name + &" *".repeat(pointers)), &class.span)
    }
}

/// No attribute is given twice.
fn once(attributes: &[Attribute<'_>]) -> Result<()> {
    let mut seen = NameSet::default();
    for attribute in attributes {
        if !seen.insert(attribute.name.text) {
            let what = format!("the attribute `{}`", attribute.name.text);
            return Err((attribute.name.span(), TsdlProblem::Twice { what }));
        }
    }
    Ok(())
}

/// The possible values of an integer.
fn values(integer: &FixedInteger) -> std::ops::RangeInclusive<i128> {
    let bits = integer.bits.length;
    if integer.meaning.signed { -(1 << (bits - 1))..=(1 << (bits - 1)) - 1 } else { 0..=(1 << bits) - 1 }
}

fn wrong<T>(value: &Expression<'_>, attribute: &str, expected: &'static str) -> Result<T> {
    Err((value.span.clone(), TsdlProblem::Value { attribute: attribute.to_owned(), expected }))
}

fn word<'a>(value: &Expression<'a>) -> Option<&'a str> {
    match &value.kind {
        ExpressionKind::Path(path) if path.len() == 1 => Some(path[0].text),
        _ => None,
    }
}

fn positive(value: &Expression<'_>, attribute: &str, most: i128) -> Result<u64> {
    match value.kind {
        ExpressionKind::Integer(number) if number > 0 && number <= most => Ok(number as u64),
        _ if most == 64 => wrong(value, attribute, "a number from 1 to 64"),
        _ => wrong(value, attribute, "a number above 0"),
    }
}

fn alignment(value: &Expression<'_>) -> Result<u64> {
    match value.kind {
        ExpressionKind::Integer(number) if number > 0 && number <= 1 << 32 && (number as u64).is_power_of_two() => {
            Ok(number as u64)
        }
        _ => wrong(value, "align", "a power of two, at most 2^32"),
    }
}

fn boolean(value: &Expression<'_>, attribute: &str) -> Result<bool> {
    match (&value.kind, word(value)) {
        (ExpressionKind::Integer(0), _) | (_, Some("false" | "FALSE")) => Ok(false),
        (ExpressionKind::Integer(1), _) | (_, Some("true" | "TRUE")) => Ok(true),
        _ => wrong(value, attribute, "`true` or `false`"),
    }
}

fn base(value: &Expression<'_>) -> Result<DisplayBase> {
    let name = match &value.kind {
        ExpressionKind::Integer(number) => number.to_string(),
        _ => word(value).unwrap_or_default().to_owned(),
    };
    match name.as_str() {
        "2" | "b" | "binary" => Ok(DisplayBase::Binary),
        "8" | "o" | "oct" | "octal" => Ok(DisplayBase::Octal),
        "10" | "d" | "i" | "u" | "dec" | "decimal" => Ok(DisplayBase::Decimal),
        "16" | "x" | "X" | "p" | "hex" | "hexadecimal" => Ok(DisplayBase::Hexadecimal),
        _ => wrong(value, "base", "2, 8, 10 or 16"),
    }
}

fn encoding(value: &Expression<'_>) -> Result<Option<TextEncoding>> {
    match word(value) {
        Some("none") => Ok(None),
        Some("UTF8" | "utf8" | "UTF-8" | "utf-8") => Ok(Some(TextEncoding::Utf8)),
        Some("ASCII" | "ascii") => Ok(Some(TextEncoding::Ascii)),
        _ => wrong(value, "encoding", "`none`, `UTF8` or `ASCII`"),
    }
}
