//! Matching: which sections of mappings a class of events has, and where their fields are; from metadata alone.
//!
//! ```text
//! class `sched_wakeup`   [[thread_wakeup]] event = "sched_wakeup"     its name matches
//!                        when = "!has(success) || success != 0"       always, never, or to be asked of events
//!                        woken_tid = "tid"                            required: without it, no
//!                        target_cpu = ["target_cpu", "cpu"]           the first that is there and fits
//! ```
//!
//! Of each role the first section counts that matches without condition; those with conditions before it are
//! alternatives.

use kymo_filter::{Constant, FieldResolver, NamePath, NameStep, PathMeaning, Verdict};
use kymo_format::model::{EnvironmentValue, TraceClass};
use kymo_ir::predicate::InputKind;

use crate::mapping::{Captures, RoleMapping, Section, ValueSource};
use crate::roles::{CONTEXT, EventRole, FieldFacts, FieldIndex, RoleFieldKind};

/// The mappings that a trace has use for.
#[derive(Debug)]
pub struct Matcher<'m> {
    mappings: Vec<&'m RoleMapping>,
    /// Those that are looked at.
    sections: Vec<(&'m RoleMapping, &'m Section)>,
}

/// A class of events has a role.
#[derive(Clone, Debug)]
pub struct Matching<'m> {
    /// The mapping of that section.
    pub mapping: &'m RoleMapping,
    /// Where in it.
    pub section: &'m Section,
    /// The condition on events: others have not the role.
    pub condition: Option<&'m kymo_filter::Filter>,
    /// For each field of the role.
    pub fields: Vec<FieldMatch>,
    /// For each field of [`CONTEXT`], where the section itself says so.
    pub context: Vec<FieldMatch>,
}

/// Where a field is.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldMatch {
    /// The mapping does not say.
    NotSaid,
    /// There.
    Chosen(FieldOrigin),
    /// In none of the places that the mapping says.
    Missing {
        /// Existing names like the first one, if they were looked for.
        near: Vec<String>,
    },
    /// There is something, but of another kind.
    Unfit {
        /// Its name.
        path: String,
        /// Its kind: `text`.
        what: &'static str,
    },
}

/// Where a field is.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldOrigin {
    /// In a field of the event.
    Path(NamePath),
    /// The same for all events.
    Integer(i64),
    /// The same for all events.
    Text(String),
}

/// Why a class with a name that matches a section has not its role.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleRefusal {
    /// Its condition is never true.
    NeverTrue,
    /// Its condition cannot be asked of this class.
    Untyped(String),
    /// Fields that are required are not there.
    Required(Vec<(&'static str, FieldMatch)>),
}

impl<'m> Matcher<'m> {
    /// The mappings with conditions that a trace fulfills.
    #[must_use]
    pub fn new(mappings: &'m [RoleMapping], trace: &TraceClass, trace_name: &str) -> Self {
        let facts = TraceFacts { trace, trace_name };
        let is_for = |mapping: &&RoleMapping| match &mapping.when {
            Some(when) => when.bind(&facts).is_ok_and(|binding| binding.verdict() == Verdict::AlwaysTrue),
            None => true,
        };
        let mappings: Vec<&RoleMapping> = mappings.iter().filter(is_for).collect();
        let of =
            |mapping: &&'m RoleMapping| mapping.sections.iter().map(|section| (*mapping, section)).collect::<Vec<_>>();
        Self { sections: mappings.iter().flat_map(of).collect(), mappings }
    }

    /// The same for some roles alone.
    #[must_use]
    pub fn of_roles(mut self, is_asked: impl Fn(EventRole) -> bool) -> Self {
        self.sections.retain(|(_, section)| is_asked(section.role));
        self
    }

    /// The mappings.
    #[must_use]
    pub fn mappings(&self) -> &[&'m RoleMapping] {
        &self.mappings
    }

    /// For each wanted role of a class, the sections that match; the first section with a true
    /// condition counts. `names`: of the class' fields. Fields that are not needed are looked for
    /// only where they are required.
    #[must_use]
    pub fn roles(
        &self,
        name: &str,
        names: &dyn FieldResolver,
        is_wanted: &dyn Fn(EventRole, &str) -> bool,
        is_needed: &dyn Fn(EventRole, FieldIndex) -> bool,
    ) -> Vec<Vec<Matching<'m>>> {
        let mut roles: Vec<Vec<Matching<'m>>> = Vec::new();
        for &(mapping, section) in &self.sections {
            // Rules do not compete: each one that matches counts.
            let is_same = |matchings: &Vec<Matching<'_>>| matchings[0].section.role == section.role;
            let known = roles.iter().position(is_same).filter(|_| section.role != EventRole::Rule);
            let is_settled = |matchings: &Vec<Matching<'_>>| matchings.iter().any(|one| one.condition.is_none());
            if known.is_some_and(|known| is_settled(&roles[known])) {
                continue;
            }
            let Some(captures) = section.captures(name) else { continue };
            if !is_wanted(section.role, what(section, &captures)) {
                continue;
            }
            let Ok(matching) = matching(mapping, section, &captures, names, is_needed) else { continue };
            match known {
                Some(known) => roles[known].push(matching),
                None => roles.push(vec![matching]),
            }
        }
        roles
    }

    /// Where those fields of [`CONTEXT`] are that are needed: where the section of a role says, its mapping, or any
    /// other.
    #[must_use]
    pub fn context(
        &self,
        of: Option<&Matching<'m>>,
        names: &dyn FieldResolver,
        needed: &[FieldIndex],
    ) -> Vec<FieldMatch> {
        let choose = |(field, facts): (usize, &FieldFacts)| {
            if !needed.contains(&field) {
                return FieldMatch::NotSaid;
            }
            let own = of.map(|matching| matching.context[field].clone());
            let mappings = of.map(|matching| matching.mapping).into_iter().chain(self.mappings.iter().copied());
            let others = mappings.map(|mapping| choose(&mapping.context[field], facts.kind, None, names));
            let mut all = own.into_iter().chain(others);
            all.find(|choice| matches!(choice, FieldMatch::Chosen(_))).unwrap_or(FieldMatch::NotSaid)
        };
        CONTEXT.iter().enumerate().map(choose).collect()
    }
}

/// What an event says by its name alone.
fn what<'a>(section: &'a Section, captures: &Captures<'a>) -> &'a str {
    let said = section.role.field("syscall").and_then(|field| section.fields[field].first());
    match said {
        Some(ValueSource::Text(text)) => text,
        Some(ValueSource::Capture(star)) => captures.get(*star).unwrap_or_default(),
        Some(ValueSource::Integer(_) | ValueSource::Path(_)) => "",
        None if section.role.field("syscall").is_some() => "",
        None => captures.first(),
    }
}

/// How a class with a matching name has the role of a section.
///
/// # Errors
///
/// Why it has not.
pub fn matching<'m>(
    mapping: &'m RoleMapping,
    section: &'m Section,
    captures: &Captures<'_>,
    names: &dyn FieldResolver,
    is_needed: &dyn Fn(EventRole, FieldIndex) -> bool,
) -> Result<Matching<'m>, RoleRefusal> {
    let facts = section.role.facts();
    let choice = |said: &[ValueSource], facts: &FieldFacts| choose(said, facts.kind, Some(captures), names);
    let is_required = |place: FieldIndex| facts.fields[place].is_required || section.required.contains(&place);
    let field = |(place, (said, facts)): (FieldIndex, (&Vec<ValueSource>, &FieldFacts))| {
        let is_looked_for = is_required(place) || is_needed(section.role, place);
        if is_looked_for { choice(said, facts) } else { FieldMatch::NotSaid }
    };
    let fields: Vec<FieldMatch> = section.fields.iter().zip(facts.fields).enumerate().map(field).collect();
    let lacks = |place: &FieldIndex| is_required(*place) && !matches!(fields[*place], FieldMatch::Chosen(_));
    let lacking: Vec<_> = (0..fields.len()).filter(lacks).collect();
    if !lacking.is_empty() {
        let told = lacking.into_iter().map(|place| (facts.fields[place].name, fields[place].clone()));
        return Err(RoleRefusal::Required(told.collect()));
    }
    let condition = match &section.when {
        None => None,
        Some(when) => match when.bind(names).map(|binding| binding.verdict()) {
            Ok(Verdict::AlwaysTrue) => None,
            Ok(Verdict::Depends) => Some(when),
            Ok(Verdict::NeverTrue) => return Err(RoleRefusal::NeverTrue),
            Err(problems) => {
                return Err(RoleRefusal::Untyped(
                    problems.first().map(|first| first.kind.to_string()).unwrap_or_default(),
                ));
            }
        },
    };
    let context = section.context.iter().zip(CONTEXT).map(|(said, facts)| choice(said, facts)).collect();
    Ok(Matching { mapping, section, condition, fields, context })
}

/// The first place where a field is.
fn choose(
    said: &[ValueSource],
    kind: RoleFieldKind,
    captures: Option<&Captures<'_>>,
    names: &dyn FieldResolver,
) -> FieldMatch {
    let mut best = if said.is_empty() { FieldMatch::NotSaid } else { FieldMatch::Missing { near: Vec::new() } };
    for source in said {
        let choice = match source {
            ValueSource::Integer(value) => fit(kind, false, FieldOrigin::Integer(*value)),
            ValueSource::Text(text) => fit(kind, true, FieldOrigin::Text(text.clone())),
            ValueSource::Capture(star) => {
                let text = captures.and_then(|captures| captures.get(*star)).unwrap_or_default();
                match (kind, text.parse()) {
                    (RoleFieldKind::Integer, Ok(number)) => FieldMatch::Chosen(FieldOrigin::Integer(number)),
                    _ => fit(kind, true, FieldOrigin::Text(text.to_owned())),
                }
            }
            ValueSource::Path(path) => find(path, kind, names),
        };
        match choice {
            FieldMatch::Chosen(_) => return choice,
            FieldMatch::Unfit { .. } if !matches!(best, FieldMatch::Unfit { .. }) => best = choice,
            FieldMatch::Missing { ref near }
                if best == (FieldMatch::Missing { near: Vec::new() }) && !near.is_empty() =>
            {
                best = choice;
            }
            _ => {}
        }
    }
    best
}

fn find(path: &NamePath, kind: RoleFieldKind, names: &dyn FieldResolver) -> FieldMatch {
    let chosen = || FieldOrigin::Path(path.clone());
    let unfit = |what| FieldMatch::Unfit { path: path.to_string(), what };
    match names.find(path) {
        PathMeaning::Missing { near } => FieldMatch::Missing { near },
        PathMeaning::Compound { what } => unfit(what),
        PathMeaning::Scaled { .. } => unfit("a time"),
        PathMeaning::Constant(Constant::Real(_)) => unfit("a real number"),
        PathMeaning::Constant(constant) => with_path(fit(kind, matches!(constant, Constant::Text(_)), chosen()), path),
        PathMeaning::Field(field) => match field.kind {
            InputKind::Real if kind == RoleFieldKind::Number => FieldMatch::Chosen(chosen()),
            InputKind::Real => unfit("a real number"),
            kind_of => with_path(fit(kind, matches!(kind_of, InputKind::Text(_)), chosen()), path),
        },
    }
}

fn fit(kind: RoleFieldKind, is_text: bool, chosen: FieldOrigin) -> FieldMatch {
    match kind {
        RoleFieldKind::Integer | RoleFieldKind::Number if is_text => {
            FieldMatch::Unfit { path: String::new(), what: "text" }
        }
        RoleFieldKind::Text if !is_text => FieldMatch::Unfit { path: String::new(), what: "an integer" },
        RoleFieldKind::Integer | RoleFieldKind::Text | RoleFieldKind::Either | RoleFieldKind::Number => {
            FieldMatch::Chosen(chosen)
        }
    }
}

fn with_path(choice: FieldMatch, path: &NamePath) -> FieldMatch {
    match choice {
        FieldMatch::Unfit { what, .. } => FieldMatch::Unfit { path: path.to_string(), what },
        other => other,
    }
}

/// What is known of a trace as a whole: its environment and its name.
struct TraceFacts<'a> {
    trace: &'a TraceClass,
    trace_name: &'a str,
}

impl FieldResolver for TraceFacts<'_> {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let names: Option<Vec<&str>> = path
            .steps
            .iter()
            .map(|step| match step {
                NameStep::Name(name) => Some(name.as_str()),
                NameStep::Index(_) => None,
            })
            .collect();
        let value = match names.as_deref() {
            Some(["env", entry] | ["trace", "env", entry]) => match self.trace.environment(entry) {
                Some(EnvironmentValue::Integer(value)) => Some(Constant::Integer(*value)),
                Some(EnvironmentValue::Text(text)) => Some(Constant::Text(text.clone())),
                None => None,
            },
            Some(["trace", "name"]) => Some(Constant::Text(self.trace_name.to_owned())),
            _ => None,
        };
        value.map_or(PathMeaning::Missing { near: Vec::new() }, PathMeaning::Constant)
    }

    fn instant(&self, _: &str) -> Option<i64> {
        None
    }
}
