//! The type of a scope to its field class: references found, roles given by name.
//!
//! A relative name is looked for among the members already declared in the innermost structure, then
//! outwards, then in the scopes before; the names that follow lead downwards from there:
//!
//! ```text
//! struct { len; struct { struct { items[len]; } a; } b; }
//!          └────────────── two structures outwards ──┘
//! ```
//!
//! A type that is only declared has no surroundings: its users may provide the facts that it lacks,
//! so that [`FieldClassBuilder::check_alone`] finds fault only with references that it answers itself.

use hashbrown::HashMap;
use std::rc::Rc;

use crate::budget::{Budget, FIELDS_MAX, STEPS_MAX, TARGET_STEPS};
use crate::model::{
    DynamicArray, DynamicText, EnumerationMapping, FieldClass, FieldKind, FieldPath, FieldPathStep, FixedInteger,
    IntegerRange, Member, Role, Scope, StaticArray, StaticBlob, StaticText, Structure, TextEncoding, Variant,
    VariantOption, tell_apart,
};
use crate::tsdl::ast::Span;
use crate::tsdl::problem::TsdlProblem;
use crate::tsdl::types::{Proto, Reference, Shared};

type Result<T> = std::result::Result<T, (Span, TsdlProblem)>;

/// The scopes that were read before the one being built.
pub(crate) type Roots = Vec<(Scope, Shared)>;

/// The meaning of a reference: the path, and the fields it may lead to (several through a variant).
type Found = (FieldPath, Vec<Shared>);

/// The part that the scopes of a trace class share.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    /// The scopes before.
    pub(crate) roots: &'a Roots,
    /// The clocks that there are: one is that of unmapped timestamps.
    pub(crate) clocks: usize,
    /// The remaining budget.
    pub(crate) budget: &'a Budget,
}

impl Around<'_> {
    /// Clock of unmapped timestamps. Where there is none, the trace class gets one as soon as a
    /// timestamp needs it.
    fn only_clock(&self) -> Option<usize> {
        (self.clocks <= 1).then_some(0)
    }
}

/// Builds the field class of one scope.
pub(crate) struct FieldClassBuilder<'a> {
    scope: Scope,
    span: Span,
    around: Around<'a>,
    root: Shared,
    frames: Vec<TsdlFrame>,
    steps: Vec<FieldPathStep>,
    /// The surroundings of the type are unknown.
    is_alone: bool,
    /// The clock that the scope's timestamps are mapped to.
    pub(crate) clock: Option<usize>,
    /// Doubts about fields that readers of packets need.
    pub(crate) doubts: Vec<(Span, TsdlProblem)>,
}

/// A structure around the field being built.
struct TsdlFrame {
    proto: Shared,
    /// Steps that lead to it.
    steps: usize,
    /// Members that are already declared.
    declared: usize,
}

impl<'a> FieldClassBuilder<'a> {
    pub(crate) fn new(scope: Scope, root: &Shared, span: Span, around: Around<'a>) -> Self {
        let (frames, steps, root) = (Vec::new(), Vec::new(), Rc::clone(root));
        Self { scope, span, around, root, frames, steps, is_alone: false, clock: None, doubts: Vec::new() }
    }

    /// Whether a type can be right for any user.
    pub(crate) fn check_alone(root: &Shared, span: Span, budget: &'a Budget) -> Result<()> {
        let around = Around { roots: const { &Vec::new() }, clocks: 0, budget };
        let mut builder = Self { is_alone: true, ..Self::new(Scope::EventPayload, root, span, around) };
        match &root.kind {
            // Its users give it a tag.
            Proto::Variant { tag: None, options } => {
                options.iter().try_for_each(|(_, option)| builder.field(option, "").map(drop))
            }
            _ => builder.field(root, "").map(drop),
        }
    }

    /// The field class of the scope.
    pub(crate) fn build(&mut self) -> Result<FieldClass> {
        let root = Rc::clone(&self.root);
        self.field(&root, "")
    }

    fn field(&mut self, proto: &Shared, name: &str) -> Result<FieldClass> {
        let labels = match &proto.kind {
            Proto::Integer(integer) => integer.meaning.mappings.len(),
            _ => 0,
        };
        if !self.around.budget.take_fields(1 + labels) {
            return Err((self.span.clone(), TsdlProblem::Fields(FIELDS_MAX)));
        }
        if !matches!(proto.kind, Proto::Integer(_)) {
            self.special_without_integer(proto, name);
        }
        let kind = match &proto.kind {
            Proto::Integer(integer) => FieldKind::Integer(self.integer(integer, name)),
            Proto::Real(bits) => FieldKind::Real(*bits),
            Proto::Text(encoding) => FieldKind::NullTerminatedText(*encoding),
            Proto::Structure { members, minimum_alignment } => self.structure(proto, members, *minimum_alignment)?,
            Proto::Variant { tag, options } => self.variant(tag.as_ref(), options)?,
            Proto::Array { length, element } => self.array(*length, element, name)?,
            Proto::Sequence { length, element } => self.sequence(length, element)?,
        };
        Ok(FieldClass::new(kind))
    }

    fn integer(&mut self, integer: &FixedInteger, name: &str) -> FixedInteger {
        let mut integer = integer.clone();
        let role = role(self.scope, self.frames.len(), name);
        // Babeltrace maps the event header's too, inside variants and structures as well.
        let is_timestamp = matches!(name, "timestamp_begin" | "timestamp_end") && role.is_some()
            || self.scope == Scope::EventHeader && name == "timestamp";
        if integer.meaning.signed {
            if role.is_none() && !is_timestamp {
                return integer;
            }
            self.doubt(TsdlProblem::SignedSpecialField(name.to_owned(), scope_name(self.scope)));
            integer.meaning.signed = false;
        }
        if is_timestamp && integer.meaning.clock.is_none() {
            self.unmapped_timestamp(&mut integer, name);
        }
        let in_header = self.scope == Scope::EventHeader && integer.meaning.clock.is_some();
        if in_header || is_timestamp {
            self.clock = self.clock.or(integer.meaning.clock);
        }
        integer.meaning.roles.extend(role);
        if in_header {
            integer.meaning.roles.push(Role::DefaultClockTimestamp);
        }
        integer
    }

    /// The only clock, or one that is not described, is that of a timestamp without a clock.
    fn unmapped_timestamp(&mut self, integer: &mut FixedInteger, name: &str) {
        integer.meaning.clock = self.around.only_clock();
        match self.around.clocks {
            // It is said of the trace's first timestamp alone.
            0 if self.clock.is_some() => {}
            0 => self.doubt(TsdlProblem::ImplicitClock(name.to_owned())),
            1 => {}
            clocks => self.doubt(TsdlProblem::UnmappedTimestamp { name: name.to_owned(), clocks }),
        }
    }

    /// A field that readers of packets need has another type, so that they cannot use it.
    fn special_without_integer(&mut self, proto: &Shared, name: &str) {
        let is_outermost = self.frames.len() == 1;
        let is_uuid = is_outermost && self.scope == Scope::PacketHeader && name == "uuid";
        let is_integer = is_outermost
            && (role(self.scope, 1, name).is_some() || self.scope == Scope::EventHeader && name == "timestamp");
        let is_of_bytes = |length, element| length == 16 && is_byte(element);
        let expected = match &proto.kind {
            Proto::Array { length, element } if is_uuid && is_of_bytes(*length, element) => return,
            _ if is_uuid => "an array of 16 bytes",
            _ if is_integer => "an unsigned integer",
            _ => return,
        };
        self.doubt(TsdlProblem::SpecialField(name.to_owned(), scope_name(self.scope), expected));
    }

    fn doubt(&mut self, problem: TsdlProblem) {
        self.doubts.push((self.span.clone(), problem));
    }

    fn structure(&mut self, proto: &Shared, members: &[(String, Shared)], minimum_alignment: u64) -> Result<FieldKind> {
        self.frames.push(TsdlFrame { proto: Rc::clone(proto), steps: self.steps.len(), declared: 0 });
        let mut built = Vec::with_capacity(members.len());
        for (index, (name, member)) in members.iter().enumerate() {
            self.frames.last_mut().expect("pushed above").declared = index;
            self.steps.push(FieldPathStep::Member(index));
            let class = self.field(member, name)?;
            self.steps.pop();
            built.push(Member { name: name.clone(), class });
        }
        self.frames.pop();
        tell_apart(&mut built);
        Ok(FieldKind::Structure(Structure { members: built, minimum_alignment }))
    }

    fn variant(&mut self, tag: Option<&Reference>, options: &[(String, Shared)]) -> Result<FieldKind> {
        let tag = tag.ok_or_else(|| (self.span.clone(), TsdlProblem::NoTag))?;
        let Some((selector, targets)) = self.find(tag)? else {
            options.iter().try_for_each(|(_, option)| self.field(option, "").map(drop))?;
            return Ok(NOT_KNOWN);
        };
        // Labels become ranges of values: enumerations of several fields could give a label several meanings.
        let integer = match &targets[..] {
            [target] => match &target.kind {
                Proto::Integer(integer) if integer.meaning.enumeration => integer,
                _ => return Err((tag.span.clone(), TsdlProblem::Tag(dotted(tag)))),
            },
            _ => return Err((tag.span.clone(), TsdlProblem::Tag(dotted(tag)))),
        };
        let labels = LabelIndex::new(&integer.meaning.mappings);
        let mut built = Vec::with_capacity(options.len());
        for (index, (name, option)) in options.iter().enumerate() {
            self.steps.push(FieldPathStep::Option(index));
            let class = self.field(option, "")?;
            self.steps.pop();
            built.push(VariantOption { name: Some(name.clone()), ranges: labels.ranges(name), class });
        }
        Ok(FieldKind::Variant(Variant { selector, options: built }))
    }

    fn array(&mut self, length: u64, element: &Shared, name: &str) -> Result<FieldKind> {
        if let Some(encoding) = character(element) {
            return Ok(FieldKind::StaticText(StaticText { length, encoding, alignment: 8 }));
        }
        let is_uuid = self.scope == Scope::PacketHeader && self.frames.len() == 1 && name == "uuid";
        if is_uuid && length == 16 && is_byte(element) {
            let media_type = "application/octet-stream".to_owned();
            let roles = vec![Role::MetadataStreamUuid];
            return Ok(FieldKind::StaticBlob(StaticBlob { length, media_type, roles }));
        }
        let element = Box::new(self.element(element)?);
        Ok(FieldKind::StaticArray(StaticArray { length, element, minimum_alignment: 1 }))
    }

    fn sequence(&mut self, length: &Reference, element: &Shared) -> Result<FieldKind> {
        let Some((path, targets)) = self.find(length)? else {
            return self.element(element).map(|_| NOT_KNOWN);
        };
        let is_length = |target: &Shared| matches!(&target.kind, Proto::Integer(integer) if !integer.meaning.signed);
        if !targets.iter().all(is_length) {
            return Err((length.span.clone(), TsdlProblem::Length(dotted(length))));
        }
        if let Some(encoding) = character(element) {
            return Ok(FieldKind::DynamicText(DynamicText { length: path, encoding, alignment: 8 }));
        }
        let element = Box::new(self.element(element)?);
        Ok(FieldKind::DynamicArray(DynamicArray { length: path, element, minimum_alignment: 1 }))
    }

    fn element(&mut self, element: &Shared) -> Result<FieldClass> {
        self.steps.push(FieldPathStep::Element);
        let class = self.field(element, "");
        self.steps.pop();
        class
    }

    /// The field that a reference means; `None` if the type alone cannot know.
    fn find(&self, reference: &Reference) -> Result<Option<Found>> {
        let absolute = self.find_absolute(&reference.path);
        let found = absolute.or_else(|| self.find_relative(&reference.path));
        if self.is_alone && (found.is_none() || in_scope(&reference.path).is_some()) {
            return Ok(None);
        }
        found.map(Some).ok_or_else(|| {
            let is_spent = self.around.budget.steps_ran_out();
            let problem =
                if is_spent { TsdlProblem::Steps(STEPS_MAX) } else { TsdlProblem::Reference(dotted(reference)) };
            (reference.span.clone(), problem)
        })
    }

    fn find_absolute(&self, path: &[String]) -> Option<Found> {
        let (scope, rest) = in_scope(path)?;
        if scope == self.scope {
            let declared = self.frames.first()?.declared;
            return self.descend_declared(scope, &self.root, &[], declared, rest);
        }
        let (_, root) = self.around.roots.iter().find(|(root, _)| *root == scope)?;
        self.descend(scope, root, Vec::new(), rest)
    }

    fn find_relative(&self, path: &[String]) -> Option<Found> {
        for frame in self.frames.iter().rev() {
            let steps = &self.steps[..frame.steps];
            let found = self.descend_declared(self.scope, &frame.proto, steps, frame.declared, path);
            if found.is_some() {
                return found;
            }
        }
        self.around.roots.iter().rev().find_map(|(scope, root)| self.descend(*scope, root, Vec::new(), path))
    }

    /// From a structure that is being built: only members already declared, or the one being built.
    fn descend_declared(
        &self,
        scope: Scope,
        proto: &Shared,
        steps: &[FieldPathStep],
        declared: usize,
        path: &[String],
    ) -> Option<Found> {
        let Proto::Structure { members, .. } = &proto.kind else {
            return None;
        };
        let (first, rest) = path.split_first()?;
        let index = self.member(members, first)?;
        let mut steps = steps.to_vec();
        steps.push(FieldPathStep::Member(index));
        if index < declared {
            return self.descend(scope, &members[index].1, steps, rest);
        }
        // A path may lead through the structures that are being built, and through the option around the user.
        let is_inside = |frame: &&TsdlFrame| {
            frame.steps >= steps.len()
                && self.steps.starts_with(&steps)
                && self.steps[steps.len()..frame.steps].iter().all(|step| matches!(step, FieldPathStep::Option(_)))
        };
        let inner = self.frames.iter().find(is_inside)?;
        let steps = self.steps[..inner.steps].to_vec();
        (index == declared && !rest.is_empty())
            .then(|| self.descend_declared(scope, &inner.proto, &steps, inner.declared, rest))?
    }

    /// Names lead from a finished field downwards. A variant has none: a path leads through the option that is
    /// there, and every option must lead to a field.
    fn descend(&self, scope: Scope, proto: &Shared, mut steps: Vec<FieldPathStep>, path: &[String]) -> Option<Found> {
        match (&proto.kind, path) {
            (Proto::Structure { members, .. }, [first, rest @ ..]) => {
                let index = self.member(members, first)?;
                steps.push(FieldPathStep::Member(index));
                self.descend(scope, &members[index].1, steps, rest)
            }
            (Proto::Variant { options, .. }, _) => {
                let (mut inside, mut targets) = (Vec::with_capacity(options.len()), Vec::new());
                for (_, option) in options {
                    let (found, of_option) = self.descend(scope, option, Vec::new(), path)?;
                    inside.push(found.steps);
                    targets.extend(of_option);
                }
                steps.push(FieldPathStep::Selected(inside));
                (!options.is_empty()).then_some((FieldPath { scope, steps }, targets))
            }
            (_, []) => self
                .around
                .budget
                .take_steps(TARGET_STEPS)
                .then(|| (FieldPath { scope, steps }, vec![Rc::clone(proto)])),
            _ => None,
        }
    }

    fn member(&self, members: &[(String, Shared)], name: &str) -> Option<usize> {
        let found = members.iter().position(|(member, _)| member == name);
        self.around.budget.take_steps(found.unwrap_or(members.len()) + 1).then_some(found)?
    }
}

const SCOPES: [(&[&str], Scope); 6] = [
    (&["trace", "packet", "header"], Scope::PacketHeader),
    (&["stream", "packet", "context"], Scope::PacketContext),
    (&["stream", "event", "header"], Scope::EventHeader),
    (&["stream", "event", "context"], Scope::EventCommonContext),
    (&["event", "context"], Scope::EventSpecificContext),
    (&["event", "fields"], Scope::EventPayload),
];

/// Stands for a field class that only its surroundings could make one.
const NOT_KNOWN: FieldKind = FieldKind::Structure(Structure { members: Vec::new(), minimum_alignment: 1 });

/// The scope that an absolute path begins with, and the names in it.
fn in_scope(path: &[String]) -> Option<(Scope, &[String])> {
    SCOPES.iter().find_map(|(prefix, scope)| {
        let matches = path.len() > prefix.len() && path.iter().zip(*prefix).all(|(word, part)| word == part);
        matches.then(|| (*scope, &path[prefix.len()..]))
    })
}

fn dotted(reference: &Reference) -> String {
    reference.path.join(".")
}

/// The role of an unsigned integer of that name; `depth` counts the structures around it.
fn role(scope: Scope, depth: usize, name: &str) -> Option<Role> {
    match (scope, name) {
        (Scope::EventHeader, "id") => Some(Role::EventRecordClassId),
        (Scope::PacketHeader, "stream_id") => Some(Role::DataStreamClassId),
        _ if depth != 1 => None,
        (Scope::PacketHeader, "magic") => Some(Role::PacketMagicNumber),
        (Scope::PacketHeader, "stream_instance_id") => Some(Role::DataStreamId),
        (Scope::PacketContext, "packet_size") => Some(Role::PacketTotalLength),
        (Scope::PacketContext, "content_size") => Some(Role::PacketContentLength),
        (Scope::PacketContext, "timestamp_begin") => Some(Role::DefaultClockTimestamp),
        (Scope::PacketContext, "timestamp_end") => Some(Role::PacketEndDefaultClockTimestamp),
        (Scope::PacketContext, "events_discarded") => Some(Role::DiscardedEventRecordCounterSnapshot),
        (Scope::PacketContext, "packet_seq_num") => Some(Role::PacketSequenceNumber),
        _ => None,
    }
}

/// The encoding of an array's element if the array is text.
fn character(element: &Shared) -> Option<TextEncoding> {
    match &element.kind {
        Proto::Integer(integer) if is_byte(element) => integer.meaning.encoding,
        _ => None,
    }
}

fn is_byte(element: &Shared) -> bool {
    matches!(&element.kind, Proto::Integer(integer) if integer.bits.length == 8 && integer.bits.alignment == 8)
}

/// The scope in messages.
fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "packet header",
        Scope::PacketContext => "packet context",
        Scope::EventHeader => "event header",
        Scope::EventCommonContext => "common context",
        Scope::EventSpecificContext => "event's context",
        Scope::EventPayload => "event's fields",
    }
}

/// Labels by their name.
struct LabelIndex<'a>(HashMap<&'a str, Vec<IntegerRange>>);

impl<'a> LabelIndex<'a> {
    fn new(labels: &'a [EnumerationMapping]) -> Self {
        let mut index: HashMap<&str, Vec<IntegerRange>> = HashMap::with_capacity(labels.len());
        for mapping in labels {
            index.entry(&mapping.label).or_default().extend(&mapping.ranges);
        }
        Self(index)
    }

    /// Values of the tag for which the option is there. Tracers differ in where they write the leading
    /// underscore that protects names from keywords.
    fn ranges(&self, option: &str) -> Vec<IntegerRange> {
        let exact = self.0.get(option).filter(|ranges| !ranges.is_empty());
        exact.cloned().unwrap_or_else(|| {
            let nearly =
                [self.0.get(format!("_{option}").as_str()), option.strip_prefix('_').and_then(|o| self.0.get(o))];
            nearly.into_iter().flatten().flatten().copied().collect()
        })
    }
}

/// Values of the tag for which one option is there.
pub(crate) fn label_ranges(labels: &[EnumerationMapping], option: &str) -> Vec<IntegerRange> {
    LabelIndex::new(labels).ranges(option)
}
