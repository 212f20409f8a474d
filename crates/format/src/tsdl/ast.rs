//! The syntax tree of TSDL: the written items, and their places in the text.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use smallvec::SmallVec;

/// Bytes of the text.
pub(crate) type Span = Range<usize>;

/// Names with dots between them; most have one.
pub(crate) type Path<'a> = SmallVec<[NameSyntax<'a>; 1]>;

/// A name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameSyntax<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

impl NameSyntax<'_> {
    pub(crate) fn span(&self) -> Span {
        self.start..self.start + self.text.len()
    }
}

/// A block: `trace { ... };` and its like.
#[derive(Debug)]
pub(crate) struct BlockSyntax<'a> {
    pub(crate) keyword: NameSyntax<'a>,
    pub(crate) entries: Vec<EntrySyntax<'a>>,
}

/// An item at the top level.
#[derive(Debug)]
pub(crate) enum ItemSyntax<'a> {
    Block(BlockSyntax<'a>),
    Declaration(TypeDeclaration<'a>),
}

/// An entry in a block.
#[derive(Debug)]
pub(crate) enum EntrySyntax<'a> {
    /// `a.b = value;`
    Value {
        path: Path<'a>,
        value: Expression<'a>,
    },
    /// `a.b := type;`
    Type {
        path: Path<'a>,
        class: Box<TypeSyntax<'a>>,
        declarator: Declarator<'a>,
    },
    Declaration(Box<TypeDeclaration<'a>>),
}

/// A declaration that names a type.
#[derive(Debug)]
pub(crate) enum TypeDeclaration<'a> {
    /// `typedef type name, name[3];`
    Typedef { class: TypeSyntax<'a>, declarators: Declarators<'a> },
    /// `typealias type := name;`
    Alias { class: TypeSyntax<'a>, declarator: Declarator<'a>, name: String, span: Span },
    /// `struct name { ... };`
    Class(TypeSyntax<'a>),
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Expression<'a> {
    pub(crate) kind: ExpressionKind<'a>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExpressionKind<'a> {
    Integer(i128),
    Text(Cow<'a, str>),
    Path(Path<'a>),
}

/// A type as written, without the parts of a declarator.
#[derive(Debug)]
pub(crate) struct TypeSyntax<'a> {
    pub(crate) kind: ClassKind<'a>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ClassKind<'a> {
    /// `integer { ... }`, `floating_point { ... }`, `string { ... }`.
    Basic {
        keyword: &'a str,
        attributes: AttributeSyntax<'a>,
    },
    Enumeration(Enumeration<'a>),
    Structure(StructureSyntax<'a>),
    Variant(VariantSyntax<'a>),
    /// A name: its words, separated by one space each.
    Named(Cow<'a, str>),
}

/// The attributes of a basic type. The same text is read once: tracers repeat themselves thousands of times.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttributeSyntax<'a> {
    /// Equal for equal texts, from 0; `None` without braces.
    pub(crate) number: Option<usize>,
    /// Their spans are those of the first occurrence.
    pub(crate) list: Rc<[Attribute<'a>]>,
}

#[derive(Debug)]
pub(crate) struct Attribute<'a> {
    pub(crate) name: NameSyntax<'a>,
    pub(crate) value: Expression<'a>,
}

#[derive(Debug)]
pub(crate) struct Enumeration<'a> {
    pub(crate) name: Option<NameSyntax<'a>>,
    pub(crate) base: Option<Box<TypeSyntax<'a>>>,
    pub(crate) enumerators: Option<Vec<Enumerator<'a>>>,
}

#[derive(Debug)]
pub(crate) struct Enumerator<'a> {
    pub(crate) label: Cow<'a, str>,
    pub(crate) range: Option<(i128, i128)>,
}

#[derive(Debug)]
pub(crate) struct StructureSyntax<'a> {
    pub(crate) name: Option<NameSyntax<'a>>,
    pub(crate) body: Option<Vec<BodyEntry<'a>>>,
    pub(crate) align: Option<Expression<'a>>,
}

#[derive(Debug)]
pub(crate) struct VariantSyntax<'a> {
    pub(crate) name: Option<NameSyntax<'a>>,
    pub(crate) tag: Option<Path<'a>>,
    pub(crate) body: Option<Vec<BodyEntry<'a>>>,
}

#[derive(Debug)]
pub(crate) enum BodyEntry<'a> {
    Fields { class: TypeSyntax<'a>, declarators: Declarators<'a> },
    Declaration(Box<TypeDeclaration<'a>>),
}

/// At least one; most are alone.
pub(crate) type Declarators<'a> = SmallVec<[Declarator<'a>; 1]>;

/// The parts around a name: `*`s before it, lengths behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declarator<'a> {
    pub(crate) pointers: usize,
    pub(crate) name: Option<NameSyntax<'a>>,
    /// From left to right: the first is the outermost.
    pub(crate) lengths: Vec<Expression<'a>>,
}
