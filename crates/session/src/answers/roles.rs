//! Roles of events: which events of the traces have which meaning, by which mapping, and the
//! guesses about the others.
//!
//! ```text
//! --roles FILE ─┐
//! built in     ─┼─ mappings ─┬─ for analyses
//! guesses      ─┘            └─ Roles: what is bound, what is guessed and why, what nothing has
//! ```
//!
//! Only metadata is asked: whether events of a class occur is not known here.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_analysis::bind::StreamClass;
use kymo_analysis::bind::matching::{FieldMatch, FieldOrigin, Matcher, Matching, RoleRefusal, matching};
use kymo_analysis::guess::{self, Guess};
use kymo_analysis::mapping::{MappingErrors, RoleMapping, Section, ValueSource};
use kymo_analysis::roles::{COMM, CONTEXT, CPU, EventRole, FieldFacts, PID, ROLES, TID};
use kymo_decode::FilterFacts;
use kymo_decode::fields;
use kymo_filter::{FieldResolver, NamePath, PathMeaning, nearest};
use kymo_scan::Trace;

use crate::open::{Session, trace_name};

/// The meanings of the events of the traces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roles {
    /// Roles that are bound, in their order; one for each section of a mapping.
    pub bound: Vec<RoleUse>,
    /// Fields of events of all roles.
    pub context: Vec<FieldUse>,
    /// Other meanings that events may have.
    pub guessed: Vec<GuessedRole>,
    /// Roles that no event has.
    pub absent: Vec<AbsentRole>,
    /// Sections that classes of events have by their name, but not by their fields.
    pub refused: Vec<RefusedRole>,
    /// Sections of people's own mapping that no class of events has.
    pub unmatched: Vec<UnmatchedSection>,
    /// All of this as a mapping, for people to edit.
    pub mapping: String,
}

/// Classes of events that have a role by one section of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleUse {
    /// The role's name.
    pub role: &'static str,
    /// The meaning of the role.
    pub meaning: &'static str,
    /// The mapping's name.
    pub mapping: String,
    /// The condition of events that fulfill it.
    pub condition: Option<String>,
    /// Names of classes.
    pub classes: Vec<String>,
    /// Its fields, but for those of which the mapping says nothing.
    pub fields: Vec<FieldUse>,
}

/// A field of a role.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldUse {
    /// Its name.
    pub name: &'static str,
    /// Where it is, and in how many classes.
    pub places: Vec<(String, usize)>,
    /// In how many classes it is nowhere.
    pub missing: usize,
}

/// A meaning that a class of events may have.
#[derive(Clone, Debug, PartialEq)]
pub struct GuessedRole {
    /// The role's name.
    pub role: &'static str,
    /// The class' name.
    pub class: String,
    /// Where its fields are.
    pub fields: Vec<(&'static str, String)>,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// Why.
    pub reason: String,
    /// Analyses take it so.
    pub is_used: bool,
}

/// A role that no event has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentRole {
    /// Its name.
    pub role: &'static str,
    /// The meaning of the role.
    pub meaning: &'static str,
}

/// A class of events that would have a role, but for its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRole {
    /// The role's name.
    pub role: &'static str,
    /// The mapping's name.
    pub mapping: String,
    /// The class' name.
    pub class: String,
    /// Why it has not the role, as a sentence without its full stop.
    pub why: String,
}

/// A section that no class of events has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedSection {
    /// The role's name.
    pub role: &'static str,
    /// The names of events that it asks for.
    pub events: Vec<String>,
    /// Names like these that there are.
    pub near: Vec<String>,
    /// The mapping is for other traces.
    pub is_for_others: bool,
}

/// Mappings in the order in which they are tried: those that are built in, unless there are more.
pub type Mappings = Cow<'static, [RoleMapping]>;

/// Why a mapping cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RolesFailure {
    /// Its file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Something is wrong with it.
    #[error("{}", errors.render(&path.display().to_string()).trim_end())]
    Mapping {
        /// The file.
        path: PathBuf,
        /// The errors.
        errors: MappingErrors,
    },
}

impl Session {
    /// The mappings that analyses use, in the order in which they are tried: people's own, those
    /// that are built in, and, for analyses that need begins and ends, guesses of these where the
    /// others have none.
    ///
    /// # Errors
    ///
    /// People's own mapping cannot be used.
    pub fn mappings(&self, own: Option<&Path>, needs_pairs: bool) -> Result<Mappings, RolesFailure> {
        self.mappings_guessing(own, needs_pairs.then_some(&|_| true))
    }

    /// The same for drawing the data that programs tell of themselves: nothing is guessed of the
    /// events of kernels, where begins and ends are calls and interrupts, which have roles of their
    /// own, and memory that is held.
    pub(crate) fn mappings_of_programs(&self, own: Option<&Path>) -> Result<Mappings, RolesFailure> {
        let known = self.known_mappings(own)?;
        let is_of_program =
            |class: &StreamClass<'_>| !has_role(std::slice::from_ref(class), &known, &|role| role == EventRole::Switch);
        self.mappings_guessing(own, Some(&is_of_program))
    }

    /// With the guesses about those classes of data streams.
    fn mappings_guessing(
        &self,
        own: Option<&Path>,
        of: Option<&dyn Fn(&StreamClass<'_>) -> bool>,
    ) -> Result<Mappings, RolesFailure> {
        let mut mappings = self.known_mappings(own)?;
        if let Some(is_guessed) = of {
            let guessed = self.with_classes(false, |classes| {
                let guessed = guessable(classes, &mappings).filter(|class| is_guessed(class));
                let of_class = |class| guess::guesses(std::slice::from_ref(class), &mappings);
                let guesses: Vec<Guess> = guessed.flat_map(of_class).collect();
                (!guesses.is_empty()).then(|| guess::usable(&guesses))
            });
            if let Some(guess) = guessed {
                mappings.to_mut().push(guess);
            }
        }
        Ok(mappings)
    }

    /// The meanings of the events of the traces; from metadata alone.
    ///
    /// # Errors
    ///
    /// People's own mapping cannot be used.
    pub fn roles(&self, own: Option<&Path>) -> Result<Roles, RolesFailure> {
        let mappings = self.known_mappings(own)?;
        Ok(self.with_classes(own.is_some(), |classes| Reporter::new(&mappings).report(classes, own.is_some())))
    }

    /// Whether a class of events has one of these roles, with a data stream or without.
    pub(crate) fn declares(&self, roles: &[EventRole], mappings: &[RoleMapping]) -> bool {
        self.with_classes(false, |classes| has_role(classes, mappings, &|role| roles.contains(&role)))
    }

    /// Fields like this one of the classes of events that `is_asked` names, the nearest first.
    pub(crate) fn fields_like(&self, path: &NamePath, is_asked: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut near = Vec::new();
        self.with_classes(true, |classes| {
            each_class(classes, &[], |_, name, names| {
                if let PathMeaning::Missing { near: found } = names.find(path)
                    && is_asked(name)
                {
                    near.extend(found);
                }
            });
        });
        near
    }

    /// People's own mapping, those that the traces carry, and those that are built in.
    fn known_mappings(&self, own: Option<&Path>) -> Result<Mappings, RolesFailure> {
        let own = own.map(own_mapping).transpose()?;
        let carried = self.traces.iter().filter_map(|trace| RoleMapping::carried(&trace.class));
        let mut mappings: Vec<RoleMapping> = own.into_iter().chain(carried).collect();
        if mappings.is_empty() {
            return Ok(Cow::Borrowed(RoleMapping::built_in()));
        }
        mappings.extend_from_slice(RoleMapping::built_in());
        Ok(mappings.into())
    }

    /// Calls `use_them` with the data stream classes of all traces. Names like those that are missing are looked for if
    /// `suggests`, which takes longer than all else.
    fn with_classes<T>(&self, suggests: bool, use_them: impl FnOnce(&[StreamClass<'_>]) -> T) -> T {
        let names: Vec<String> = self.traces.iter().map(|trace| trace_name(trace.folder.path())).collect();
        let of_trace = |(trace, name)| classes_of(trace, name, suggests);
        let classes: Vec<StreamClass<'_>> = self.traces.iter().zip(&names).flat_map(of_trace).collect();
        use_them(&classes)
    }
}

/// The data stream classes of a trace.
fn classes_of<'a>(trace: &'a Arc<Trace>, name: &'a String, suggests: bool) -> Vec<StreamClass<'a>> {
    let class = |stream_class| {
        let stream = trace.streams.iter().find(|stream| stream.class == stream_class);
        let clock = stream.and_then(|stream| stream.clock);
        let facts = FilterFacts { clock, trace_name: name, suggests, instant: &|_| None };
        StreamClass { decoder: &trace.decoder, stream_class, facts, selection: None }
    };
    (0..trace.class.stream_classes.len()).map(class).collect()
}

/// People's own mapping.
fn own_mapping(path: &Path) -> Result<RoleMapping, RolesFailure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| RolesFailure::File { path: path.to_owned(), error })?;
    let mapping = RoleMapping::parse(&text);
    mapping.map_err(|errors| RolesFailure::Mapping { path: path.to_owned(), errors })
}

/// Calls `see` with each class of events: the mappings that its trace has use for, its name, and
/// the meanings of names of fields there.
fn each_class<'m>(
    classes: &[StreamClass<'_>],
    mappings: &'m [RoleMapping],
    mut see: impl FnMut(&Matcher<'m>, &str, &dyn FieldResolver),
) {
    for class in classes {
        let matcher = Matcher::new(mappings, class.decoder.trace_class(), class.facts.trace_name);
        let events = &class.decoder.stream_class(class.stream_class).event_classes;
        for (number, event) in events.iter().enumerate() {
            let names = fields::names(class.decoder, class.stream_class, number, &class.facts);
            see(&matcher, event.name.as_deref().unwrap_or_default(), &names);
        }
    }
}

/// Whether any class has a role.
fn has_role(classes: &[StreamClass<'_>], mappings: &[RoleMapping], is_role: &dyn Fn(EventRole) -> bool) -> bool {
    let mut has = false;
    each_class(classes, mappings, |matcher, name, names| {
        has = has || !matcher.roles(name, names, &|role, _| is_role(role), &|_, _| false).is_empty();
    });
    has
}

/// The classes of streams whose begins and ends are guessed: those of programs where only kernels have any by mappings, all
/// where nothing has.
fn guessable<'a, 'c>(
    classes: &'a [StreamClass<'c>],
    mappings: &[RoleMapping],
) -> impl Iterator<Item = &'a StreamClass<'c>> {
    let has = |class: &StreamClass<'_>, is_role: &dyn Fn(EventRole) -> bool| {
        has_role(std::slice::from_ref(class), mappings, is_role)
    };
    let is_of_kernel = |class: &StreamClass<'_>| has(class, &|role| role == EventRole::Switch);
    let has_pairs = |class: &StreamClass<'_>| has(class, &|role| matches!(role, EventRole::Begin | EventRole::End));
    let (kernels, programs): (Vec<_>, Vec<_>) = classes.iter().partition(|class| is_of_kernel(class));
    let have_kernels = kernels.iter().any(|class| has_pairs(class));
    let have_programs = programs.iter().any(|class| has_pairs(class));
    let left: Vec<&StreamClass<'_>> = match (have_kernels, have_programs) {
        (_, true) => Vec::new(),
        (true, false) => programs,
        (false, false) => classes.iter().collect(),
    };
    left.into_iter()
}

/// Puts together the bound roles.
struct Reporter<'m> {
    mappings: &'m [RoleMapping],
    /// Sections that are used, in the order of first use.
    used: Vec<(&'m RoleMapping, &'m Section, RoleUse)>,
    roles: Roles,
}

impl<'m> Reporter<'m> {
    fn new(mappings: &'m [RoleMapping]) -> Self {
        let context = CONTEXT.iter().map(|field| FieldUse { name: field.name, places: Vec::new(), missing: 0 });
        let roles = Roles { context: context.collect(), ..Roles::default() };
        Self { mappings, used: Vec::new(), roles }
    }

    fn report(mut self, classes: &[StreamClass<'_>], has_own: bool) -> Roles {
        each_class(classes, self.mappings, |matcher, name, names| self.class(matcher, name, names));
        if has_own {
            self.unmatched(classes, &self.mappings[0]);
        }
        let guesses = guess::guesses(classes, self.mappings);
        let of_class = |class| guess::guesses(std::slice::from_ref(class), self.mappings);
        let usable: Vec<Guess> = guessable(classes, self.mappings).flat_map(of_class).collect();
        self.guesses(&guesses, &guess::usable(&usable));
        self.sort();
        self.roles.mapping = written(&self.used, &guesses);
        let has = |facts: &&kymo_analysis::roles::RoleFacts| !self.used.iter().any(|used| used.1.role == facts.role);
        let absent = ROLES.iter().filter(has).map(|facts| AbsentRole { role: facts.name, meaning: facts.meaning });
        self.roles.absent = absent.collect();
        self.roles.bound = self.used.into_iter().map(|(_, _, used)| used).collect();
        self.roles
    }

    /// Roles in their order; sections of a role in that of their mappings, since the first that fits counts.
    fn sort(&mut self) {
        let all: Vec<&Section> = self.mappings.iter().flat_map(|mapping| &mapping.sections).collect();
        let place = |section: &Section| all.iter().position(|known| std::ptr::eq(*known, section));
        self.used.sort_by_key(|used| (used.1.role, place(used.1)));
    }

    fn class(&mut self, matcher: &Matcher<'m>, name: &str, names: &dyn FieldResolver) {
        let roles = matcher.roles(name, names, &|_, _| true, &|_, _| true);
        let first = roles.first().and_then(|matchings| matchings.first());
        for (field, choice) in self.roles.context.iter_mut().zip(matcher.context(first, names, &[CPU, TID, PID, COMM]))
        {
            field.add(&choice, &[]);
        }
        for matching in roles.iter().flatten() {
            self.add(matching, name);
        }
        for mapping in matcher.mappings() {
            for section in &mapping.sections {
                let is_bound = roles.iter().any(|matchings| matchings[0].section.role == section.role);
                let Some(captures) = section.captures(name).filter(|_| !is_bound) else { continue };
                if let Err(refusal) = matching(mapping, section, &captures, names, &|_, _| false) {
                    let (role, mapping) = (section.role.name(), mapping.name.clone());
                    let why = why(&refusal);
                    self.roles.refused.push(RefusedRole { role, mapping, class: name.to_owned(), why });
                }
            }
        }
    }

    fn add(&mut self, matching: &Matching<'m>, name: &str) {
        let place = self.used.iter().position(|used| std::ptr::eq(used.1, matching.section));
        let place = place.unwrap_or_else(|| {
            self.used.push((matching.mapping, matching.section, RoleUse::new(matching)));
            self.used.len() - 1
        });
        let used = &mut self.used[place].2;
        if !used.classes.iter().any(|known| known == name) {
            used.classes.push(name.to_owned());
        }
        used.condition = matching.condition.map(|filter| filter.text().to_owned()).or(used.condition.take());
        let facts = matching.section.role.facts().fields;
        for ((facts, choice), said) in facts.iter().zip(&matching.fields).zip(&matching.section.fields) {
            if let Some(field) = used.fields.iter_mut().find(|field| field.name == facts.name) {
                field.add(choice, said);
            }
        }
    }

    /// Sections of people's own mapping without any event: most often a typo in a name.
    fn unmatched(&mut self, classes: &[StreamClass<'_>], own: &'m RoleMapping) {
        let mut events: Vec<String> = Vec::new();
        let mut is_for_others = true;
        each_class(classes, std::slice::from_ref(own), |matcher, name, _| {
            is_for_others &= matcher.mappings().is_empty();
            events.push(name.to_owned());
        });
        for section in &own.sections {
            if is_for_others || !events.iter().any(|name| section.captures(name).is_some()) {
                let asked: Vec<String> = section.events.iter().map(ToString::to_string).collect();
                let near = |asked: &String| nearest(asked, events.iter().map(String::as_str));
                let near = if is_for_others { Vec::new() } else { asked.iter().flat_map(near).collect() };
                let role = section.role.name();
                self.roles.unmatched.push(UnmatchedSection { role, events: asked, near, is_for_others });
            }
        }
    }

    fn guesses(&mut self, guesses: &[Guess], usable: &RoleMapping) {
        for guess in guesses {
            let facts = guess.section.role.facts();
            let class = guess.section.events.first().map(ToString::to_string).unwrap_or_default();
            let is_usable = |section: &Section| section.role == facts.role && section.events == guess.section.events;
            let field =
                |(facts, said): (&FieldFacts, &Vec<_>)| Some((facts.name, said.first().map(ToString::to_string)?));
            self.roles.guessed.push(GuessedRole {
                role: facts.name,
                class,
                fields: facts.fields.iter().zip(&guess.section.fields).filter_map(field).collect(),
                confidence: guess.confidence,
                reason: guess.reason.clone(),
                is_used: usable.sections.iter().any(is_usable),
            });
        }
    }
}

impl RoleUse {
    fn new(matching: &Matching<'_>) -> Self {
        let facts = matching.section.role.facts();
        let said = facts.fields.iter().zip(&matching.section.fields).filter(|(_, said)| !said.is_empty());
        Self {
            role: facts.name,
            meaning: facts.meaning,
            mapping: matching.mapping.name.clone(),
            condition: None,
            classes: Vec::new(),
            fields: said.map(|(facts, _)| FieldUse { name: facts.name, places: Vec::new(), missing: 0 }).collect(),
        }
    }
}

impl FieldUse {
    /// A class of events has it there; `said` is the mapping's list of places.
    fn add(&mut self, choice: &FieldMatch, said: &[ValueSource]) {
        let is_constant = |text: &String| said.contains(&ValueSource::Text(text.clone()));
        let place = match choice {
            FieldMatch::Chosen(FieldOrigin::Path(path)) => path.to_string(),
            FieldMatch::Chosen(FieldOrigin::Integer(value)) => format!("= {value}"),
            FieldMatch::Chosen(FieldOrigin::Text(text)) if is_constant(text) => format!("= {text:?}"),
            FieldMatch::Chosen(FieldOrigin::Text(_)) => "by its name".to_owned(),
            FieldMatch::NotSaid | FieldMatch::Missing { .. } | FieldMatch::Unfit { .. } => {
                self.missing += 1;
                return;
            }
        };
        match self.places.iter_mut().find(|known| known.0 == place) {
            Some(known) => known.1 += 1,
            None => self.places.push((place, 1)),
        }
    }
}

/// Why a class has not a role, in words.
fn why(refusal: &RoleRefusal) -> String {
    match refusal {
        RoleRefusal::NeverTrue => "its condition is never true".to_owned(),
        RoleRefusal::Untyped(problem) => format!("its condition cannot be asked: {problem}"),
        RoleRefusal::Required(fields) => {
            let why = |(name, choice): &(&str, FieldMatch)| match choice {
                FieldMatch::Unfit { path, what } => format!("`{path}` is {what}, which `{name}` cannot be"),
                FieldMatch::Missing { near } if !near.is_empty() => {
                    format!("there is nothing for `{name}`, but `{}`", near[0])
                }
                _ => format!("there is nothing for `{name}`"),
            };
            fields.iter().map(why).collect::<Vec<_>>().join("; ")
        }
    }
}

/// The used and guessed sections, as one mapping.
fn written(used: &[(&RoleMapping, &Section, RoleUse)], guesses: &[Guess]) -> String {
    let mut mapping = RoleMapping::new("mine");
    if let Some((first, ..)) = used.first() {
        mapping.context.clone_from(&first.context);
    }
    for (of, section, _) in used {
        let mut section = Section::clone(section);
        for (field, said) in section.context.iter_mut().enumerate() {
            // A statement of another mapping about all events applies to those of its section.
            if said.is_empty() && of.context[field] != mapping.context[field] {
                said.clone_from(&of.context[field]);
            }
        }
        mapping.sections.push(section);
    }
    let mut text = format!(
        "# What events mean, for `--roles`. It goes before what is built in: sections may be changed, added and deleted.\n\
         # Fields are paths as in filters: `next_tid`, `packet.cpu_id`, `$ctx.vtid`; of a list the first that exists counts.\n\
         {mapping}"
    );
    for guess in guesses {
        text += &format!("\n# Guessed, {:.0} % sure: {}.\n", guess.confidence * 100.0, guess.reason);
        let is_kept = guess.confidence >= guess::CONFIDENCE_MIN;
        let mark = if is_kept { "" } else { "# " };
        text.extend(guess.section.to_string().lines().map(|line| format!("{mark}{line}\n")));
    }
    text
}
