//! Bindings: the meaning of some traces' events for an analysis, and how its fields are read.
//!
//! ```text
//! mappings ─┐
//! Needs    ─┼─> for each class of events: roles, each with the first section whose condition holds
//! classes  ─┘        │
//!                    ├─ BoundClass (one for each combination of sections): where the fields are
//!                    └─ FieldReader of the data stream class: columns of the requested fields, nothing else
//! ```
//!
//! Which section a class has is known from metadata ([`matching`]); only conditions that depend on an event's fields
//! are asked of events, by [`crate::project`].

pub mod matching;

use std::collections::BTreeSet;
use std::sync::Arc;

use kymo_decode::fields::{self, FieldPlace, FieldReader};
use kymo_decode::filter::StreamFilter;
use kymo_decode::{Decoder, FilterFacts, LowerError};
use kymo_filter::{Constant, NamePath};
use kymo_format::model::EventRecordClass;
use kymo_ir::predicate::InputKind;

use self::matching::{FieldMatch, FieldOrigin, Matcher, Matching};
use crate::Needs;
use crate::events::{BoundClass, BoundRole, ColumnKind, FieldSlot};
use crate::mapping::RoleMapping;
use crate::roles::{CONTEXT, EventRole, FieldIndex, TID};

/// A data stream class of a trace.
pub struct StreamClass<'a> {
    /// The decoder of the trace.
    pub decoder: &'a Arc<Decoder>,
    /// The data stream class.
    pub stream_class: usize,
    /// The other known facts about it.
    pub facts: FilterFacts<'a>,
    /// Which of its events the question is about; `None`: all that are read.
    pub selection: Option<EventSelection<'a>>,
}

/// The events that a question is about, where more are read.
#[derive(Clone, Copy)]
pub struct EventSelection<'a> {
    /// The classes with a name that the user selects.
    pub names: &'a dyn Fn(&EventRecordClass) -> bool,
    /// Their events for which this is true.
    pub filter: Option<&'a kymo_filter::Filter>,
}

/// The meaning of some data stream classes' events for an analysis.
#[derive(Debug)]
pub struct Bindings {
    /// All classes that are bound, of all data stream classes; one class of events may be several, where its meaning
    /// depends on its fields.
    pub classes: Vec<BoundClass>,
    /// For each data stream class, in the order in which they were given.
    pub streams: Vec<StreamBinding>,
}

/// The meaning of a data stream class' events for an analysis.
#[derive(Debug)]
pub struct StreamBinding {
    pub(crate) decoder: Arc<Decoder>,
    pub(crate) reader: FieldReader,
    /// For each class of events.
    pub(crate) numbers: Vec<EventNumbering>,
    /// The first number of this data stream class.
    pub(crate) first: u32,
    /// The class of events, for each number from the first on.
    pub(crate) event_classes: Vec<u32>,
    /// Conditions that are asked of events.
    pub(crate) conditions: Vec<StreamFilter>,
}

/// Number of a class of events among all bound classes.
#[derive(Debug)]
pub(crate) enum EventNumbering {
    /// Nothing.
    Never,
    /// Always the same.
    Always(u32),
    /// It depends on the event.
    Depends(Variants),
}

/// Roles that a class may have, depending on its events.
#[derive(Debug)]
pub(crate) struct Variants {
    /// For each role the conditions of its sections; of the first that holds the place counts, or the number of all if
    /// none does. A section without condition is the last one, and always holds.
    pub(crate) roles: Vec<Vec<Option<usize>>>,
    /// By the places of all roles, the last role's changing first; `None`: none of the roles.
    pub(crate) numbers: Vec<Option<u32>>,
}

/// Combinations of sections that a class of events may have; more roles than that are left out.
const VARIANTS_MAX: usize = 4096;

/// Whether events of a role are wanted; the text is the part that the event says by its name alone:
/// of system calls the call, of others the text that the first star of the pattern stands for. It
/// is empty where the name says nothing.
pub type Wanted<'a> = &'a dyn Fn(EventRole, &str) -> bool;

impl Bindings {
    /// Binds the needed roles, as far as they are wanted, by the first mapping that has them. Where
    /// no role is needed, events of all classes are bound, without roles.
    ///
    /// # Errors
    ///
    /// A field class that cannot be decoded.
    pub fn new(
        streams: &[StreamClass<'_>],
        mappings: &[RoleMapping],
        needs: &Needs,
        wanted: Wanted<'_>,
    ) -> Result<Self, LowerError> {
        let mut bindings = Self { classes: Vec::new(), streams: Vec::new() };
        for stream in streams {
            let mut binder = ClassBinder::new(stream, mappings, needs, wanted, &mut bindings.classes);
            for event_class in 0..binder.event_classes().len() {
                binder.class(event_class)?;
            }
            let binding = binder.finish()?;
            bindings.streams.push(binding);
        }
        Ok(bindings)
    }

    /// Classes that are bound of one data stream class, by its place in [`Bindings::streams`].
    #[must_use]
    pub fn classes_of(&self, stream: usize) -> &[BoundClass] {
        let binding = &self.streams[stream];
        let first = binding.first as usize;
        &self.classes[first..first + binding.event_classes.len()]
    }

    /// The event record classes of a data stream class of which events may have a role for which this is true.
    #[must_use]
    pub fn event_classes_with(&self, stream: usize, is_wanted: impl Fn(EventRole) -> bool) -> BTreeSet<usize> {
        let numbered = self.classes_of(stream).iter().zip(&self.streams[stream].event_classes);
        let has_role = |class: &BoundClass| class.roles.iter().any(|bound| is_wanted(bound.role));
        numbered.filter(|(class, _)| has_role(class)).map(|(_, event_class)| *event_class as usize).collect()
    }
}

impl StreamBinding {
    /// Whether an event of the class may be bound: others need not be found at all.
    #[must_use]
    pub fn is_bound(&self, event_class: usize) -> bool {
        !matches!(self.numbers.get(event_class), None | Some(EventNumbering::Never))
    }

    /// The number of a class among all that are bound, if that does not depend on the event.
    #[must_use]
    pub fn number(&self, event_class: usize) -> Option<u32> {
        match self.numbers.get(event_class)? {
            EventNumbering::Always(number) => Some(*number),
            EventNumbering::Never | EventNumbering::Depends(_) => None,
        }
    }

    /// The reader of the fields.
    #[must_use]
    pub fn reader(&self) -> &FieldReader {
        &self.reader
    }
}

/// Binds the classes of one data stream class.
struct ClassBinder<'a> {
    stream: &'a StreamClass<'a>,
    matcher: Matcher<'a>,
    needs: &'a Needs,
    wanted: Wanted<'a>,
    classes: &'a mut Vec<BoundClass>,
    reader: FieldReader,
    numbers: Vec<EventNumbering>,
    first: u32,
    event_classes: Vec<u32>,
    conditions: Vec<SectionCondition<'a>>,
}

/// A condition, and the classes with the events that it tests.
struct SectionCondition<'a> {
    filter: &'a kymo_filter::Filter,
    event_classes: Vec<usize>,
}

/// Which events of a class a question is about.
enum SelectedRows {
    All,
    None,
    /// Those for which the condition with this place holds.
    If(usize),
}

/// A section of a role, bound.
struct BoundSection {
    condition: Option<usize>,
    role: BoundRole,
    context: [FieldSlot; CONTEXT.len()],
    tid_path: Option<NamePath>,
}

impl<'a> ClassBinder<'a> {
    fn new(
        stream: &'a StreamClass<'a>,
        mappings: &'a [RoleMapping],
        needs: &'a Needs,
        wanted: Wanted<'a>,
        classes: &'a mut Vec<BoundClass>,
    ) -> Self {
        let is_asked = |role: EventRole| needs.roles.iter().any(|(needed, _)| *needed == role);
        let matcher = Matcher::new(mappings, stream.decoder.trace_class(), stream.facts.trace_name);
        let matcher = matcher.of_roles(is_asked);
        let reader = FieldReader::new(stream.decoder, stream.stream_class);
        let first = classes.len() as u32;
        let (numbers, event_classes, conditions) = (Vec::new(), Vec::new(), Vec::new());
        Self { stream, matcher, needs, wanted, classes, reader, numbers, first, event_classes, conditions }
    }

    fn event_classes(&self) -> &'a [EventRecordClass] {
        &self.stream.decoder.stream_class(self.stream.stream_class).event_classes
    }

    /// Binds one class of events.
    fn class(&mut self, event_class: usize) -> Result<(), LowerError> {
        let name = self.event_classes()[event_class].name.as_deref().unwrap_or_default();
        let (needs, wanted) = (self.needs, self.wanted);
        let is_needed = |role: EventRole, captured: &str| {
            needs.roles.iter().any(|(needed, _)| *needed == role) && wanted(role, captured)
        };
        let stream = self.stream;
        let names = fields::names(stream.decoder, stream.stream_class, event_class, &stream.facts);
        let is_read = |role: EventRole, field: FieldIndex| {
            needs.roles.iter().any(|(needed, fields)| *needed == role && fields.contains(&field))
        };
        let roles = self.matcher.roles(name, &names, &is_needed, &is_read);
        if roles.is_empty() && !self.needs.is_all() {
            self.numbers.push(EventNumbering::Never);
            return Ok(());
        }
        let context = if needs.is_all() { self.matcher.context(None, &names, &needs.context) } else { Vec::new() };
        let mut asked = PathSet::default();
        let sections: Vec<Vec<(Option<usize>, SectionPaths)>> =
            roles.iter().map(|matchings| self.ask(event_class, matchings, &names, &mut asked)).collect();
        let bare = Self::ask_context(&context, &mut asked);
        let bare_tid = tid_path(&context);
        let extra: Vec<usize> = self.needs.extra.iter().map(|path| asked.path(path)).collect();
        let places = self.reader.ask(event_class, &asked.paths, &self.stream.facts)?;
        let slots: Vec<FieldSlot> = places.iter().map(|field| slot(&field.place, field.base)).collect();
        let get = |place: &SlotSource| place.slot(&slots);
        let sections: Vec<Vec<BoundSection>> = sections
            .iter()
            .zip(&roles)
            .map(|(asked, matchings)| {
                let role = matchings[0].section.role;
                let bound = |(condition, section): &(Option<usize>, SectionPaths)| BoundSection {
                    condition: *condition,
                    role: BoundRole { role, slots: section.fields.iter().map(get).collect() },
                    context: std::array::from_fn(|field| get(&section.context[field])),
                    tid_path: section.tid_path.clone(),
                };
                asked.iter().map(bound).collect()
            })
            .collect();
        let bare = BoundClass {
            name: name.into(),
            roles: Vec::new(),
            is_selected: true,
            tid_path: bare_tid,
            context: std::array::from_fn(|field| get(&bare[field])),
            extra: extra.iter().map(|&place| slots[place].clone()).collect(),
        };
        let selected = self.selected(event_class, &sections);
        self.add(event_class, &bare, &sections, &selected);
        Ok(())
    }

    /// Which events of a class the question is about.
    fn selected(&mut self, event_class: usize, roles: &[Vec<BoundSection>]) -> SelectedRows {
        let tells = roles.iter().any(|sections| sections[0].role.role.tells_of_threads());
        // Otherwise only selected events are found, or no analysis counts them.
        let Some(selection) = self.stream.selection.filter(|_| tells && self.needs.is_all()) else {
            return SelectedRows::All;
        };
        match selection.filter {
            _ if !(selection.names)(&self.event_classes()[event_class]) => SelectedRows::None,
            None => SelectedRows::All,
            Some(filter) => SelectedRows::If(self.condition(filter, event_class)),
        }
    }

    /// Requests the fields that a role needs.
    fn ask(
        &mut self,
        event_class: usize,
        matchings: &[Matching<'a>],
        names: &dyn kymo_filter::FieldResolver,
        asked: &mut PathSet,
    ) -> Vec<(Option<usize>, SectionPaths)> {
        let mut sections = Vec::new();
        for matching in matchings {
            let role = matching.section.role;
            let needed = self.needs.roles.iter().filter(|(needed, _)| *needed == role).flat_map(|(_, fields)| fields);
            let mut fields: Vec<SlotSource> = matching.fields.iter().map(|_| SlotSource::default()).collect();
            for &field in needed {
                fields[field] = asked.choice(&matching.fields[field]);
            }
            let context = self.matcher.context(Some(matching), names, &self.needs.context);
            let tid_path = tid_path(&context);
            let context = Self::ask_context(&context, asked);
            let condition = matching.condition.map(|filter| self.condition(filter, event_class));
            sections.push((condition, SectionPaths { fields, context, tid_path }));
        }
        sections
    }

    fn ask_context(context: &[FieldMatch], asked: &mut PathSet) -> [SlotSource; CONTEXT.len()] {
        std::array::from_fn(|field| context.get(field).map(|choice| asked.choice(choice)).unwrap_or_default())
    }

    /// The place of a condition that events of a class are asked.
    fn condition(&mut self, filter: &'a kymo_filter::Filter, event_class: usize) -> usize {
        let known = self.conditions.iter().position(|known| std::ptr::eq(known.filter, filter));
        let place = known.unwrap_or_else(|| {
            self.conditions.push(SectionCondition { filter, event_classes: Vec::new() });
            self.conditions.len() - 1
        });
        self.conditions[place].event_classes.push(event_class);
        place
    }

    /// Adds a class that has sections for each of its roles.
    fn add(&mut self, event_class: usize, bare: &BoundClass, roles: &[Vec<BoundSection>], selected: &SelectedRows) {
        let mut count = 1usize;
        let sizes = roles.iter().map(|sections| sections.len() + usize::from(depends(sections)));
        let kept = sizes.take_while(|size| {
            count = count.saturating_mul(*size);
            count <= VARIANTS_MAX
        });
        let roles = &roles[..kept.count()];
        let mut numbers = vec![Vec::new()];
        for sections in roles {
            let places = sections.len() + usize::from(depends(sections));
            let longer = |chosen: &Vec<usize>| -> Vec<Vec<usize>> {
                (0..places).map(|place| [&chosen[..], &[place]].concat()).collect()
            };
            numbers = numbers.iter().flat_map(longer).collect();
        }
        let bare = &BoundClass { is_selected: !matches!(selected, SelectedRows::None), ..bare.clone() };
        let mut conditions: Vec<Vec<Option<usize>>> = Vec::new();
        for sections in roles {
            conditions.push(sections.iter().map(|section| section.condition).collect());
        }
        let mut bound = |chosen: &[usize], bare: &BoundClass| self.variant(event_class, bare, roles, chosen);
        let mut numbers: Vec<Option<u32>> = match selected {
            SelectedRows::All | SelectedRows::None => numbers.iter().map(|chosen| bound(chosen, bare)).collect(),
            SelectedRows::If(condition) => {
                conditions.push(vec![Some(*condition)]);
                let unselected = &BoundClass { is_selected: false, ..bare.clone() };
                numbers.iter().flat_map(|chosen| [bound(chosen, bare), bound(chosen, unselected)]).collect()
            }
        };
        if !conditions.iter().flatten().any(Option::is_some) {
            let number = numbers.pop().flatten();
            self.numbers.push(number.map_or(EventNumbering::Never, EventNumbering::Always));
            return;
        }
        self.numbers.push(EventNumbering::Depends(Variants { roles: conditions, numbers }));
    }

    /// A class with the chosen section of each role; `None` where it has no role that is asked for.
    fn variant(
        &mut self,
        event_class: usize,
        bare: &BoundClass,
        roles: &[Vec<BoundSection>],
        chosen: &[usize],
    ) -> Option<u32> {
        let mut class = bare.clone();
        for section in roles.iter().zip(chosen).filter_map(|(sections, &place)| sections.get(place)) {
            if class.roles.is_empty() {
                class.context.clone_from(&section.context);
                class.tid_path.clone_from(&section.tid_path);
            }
            class.roles.push(section.role.clone());
        }
        if class.roles.is_empty() && !self.needs.is_all() {
            return None;
        }
        self.classes.push(class);
        self.event_classes.push(event_class as u32);
        Some(self.classes.len() as u32 - 1)
    }

    fn finish(self) -> Result<StreamBinding, LowerError> {
        let events = self.event_classes();
        let stream = self.stream;
        let filter = |condition: &SectionCondition<'_>| {
            let is_asked = |class: &EventRecordClass| {
                condition.event_classes.iter().any(|&asked| std::ptr::eq(&events[asked], class))
            };
            StreamFilter::new(stream.decoder, stream.stream_class, Some(condition.filter), &is_asked, &stream.facts)
        };
        Ok(StreamBinding {
            decoder: Arc::clone(stream.decoder),
            conditions: self.conditions.iter().map(filter).collect::<Result<_, _>>()?,
            reader: self.reader,
            numbers: self.numbers,
            first: self.first,
            event_classes: self.event_classes,
        })
    }
}

/// The path of the field that names the thread of an event.
fn tid_path(context: &[FieldMatch]) -> Option<NamePath> {
    match context.get(TID)? {
        FieldMatch::Chosen(FieldOrigin::Path(path)) => Some(path.clone()),
        _ => None,
    }
}

/// Whether a role may be absent, since all its sections have conditions.
fn depends(sections: &[BoundSection]) -> bool {
    sections.iter().all(|section| section.condition.is_some())
}

/// Paths that are asked of a class, each once.
#[derive(Default)]
struct PathSet {
    paths: Vec<NamePath>,
}

/// Fields that a section needs.
struct SectionPaths {
    fields: Vec<SlotSource>,
    context: [SlotSource; CONTEXT.len()],
    tid_path: Option<NamePath>,
}

/// Where a value will be.
enum SlotSource {
    /// Known.
    Known(FieldSlot),
    /// Where the path is that was asked for.
    Asked(usize),
}

impl Default for SlotSource {
    fn default() -> Self {
        Self::Known(FieldSlot::Absent)
    }
}

impl SlotSource {
    fn slot(&self, asked: &[FieldSlot]) -> FieldSlot {
        match self {
            Self::Known(slot) => slot.clone(),
            Self::Asked(place) => asked[*place].clone(),
        }
    }
}

impl PathSet {
    fn path(&mut self, path: &NamePath) -> usize {
        self.paths.iter().position(|known| known == path).unwrap_or_else(|| {
            self.paths.push(path.clone());
            self.paths.len() - 1
        })
    }

    fn choice(&mut self, choice: &FieldMatch) -> SlotSource {
        match choice {
            FieldMatch::Chosen(FieldOrigin::Path(path)) => SlotSource::Asked(self.path(path)),
            FieldMatch::Chosen(FieldOrigin::Integer(value)) => SlotSource::Known(FieldSlot::Integer(*value)),
            FieldMatch::Chosen(FieldOrigin::Text(text)) => SlotSource::Known(FieldSlot::Text(text.as_bytes().into())),
            FieldMatch::NotSaid | FieldMatch::Missing { .. } | FieldMatch::Unfit { .. } => SlotSource::default(),
        }
    }
}

/// Where a field is, for events.
fn slot(place: &FieldPlace, base: u8) -> FieldSlot {
    match place {
        FieldPlace::Constant(Constant::Integer(value)) => {
            i64::try_from(*value).map_or(FieldSlot::Absent, FieldSlot::Integer)
        }
        FieldPlace::Constant(Constant::Text(text)) => FieldSlot::Text(text.as_bytes().into()),
        FieldPlace::Packet { index, .. } => FieldSlot::Packet(*index),
        FieldPlace::Column { column, kind, optional } => {
            let kind = match kind {
                InputKind::Integer { .. } => ColumnKind::Integer,
                InputKind::Real => ColumnKind::Real,
                InputKind::Text(_) => ColumnKind::Text,
            };
            FieldSlot::Column { column: *column, kind, is_optional: *optional, base }
        }
        FieldPlace::Constant(Constant::Real(_))
        | FieldPlace::Missing { .. }
        | FieldPlace::Compound(_)
        | FieldPlace::Cycles
        | FieldPlace::Time => FieldSlot::Absent,
    }
}
