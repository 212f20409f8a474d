//! Definitions of periods, from their text.
//!
//! ```text
//! draw(frame) : draw_begin if size > 0 : draw_end if id == $begin.id && cpu != $parent.cpu
//! └ name └ parent                        └ event  └ compared here       └ compared here
//!                          └ evaluated for each event in the decoder
//! ```

use kymo_filter::{Filter, FilterProblem, NamePath};

use super::{CAPTURES_MAX, Capture, Comparison, Definitions, Is, PeriodDefinition, Side};
use crate::declared::KEY_FIELDS_MAX;
use crate::mapping::NamePattern;

/// An error in a definition of periods.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PeriodProblem {
    /// It has too few parts, or too many.
    #[error("`{0}` is no length of time, nor `NAME : EVENT [if CONDITION] [: EVENT [if CONDITION]]`")]
    Shape(String),
    /// An expression or a path is wrong.
    #[error("`{text}`: {}", render(.problems, text))]
    Expression {
        /// The text.
        text: String,
        /// The errors in it.
        problems: Vec<FilterProblem>,
    },
    /// A comparison with an earlier event is part of something else.
    #[error("`{0}`: comparisons with `$begin` or `$parent` have the form `FIELD == $begin.FIELD`, joined by `&&`")]
    Comparison(String),
    /// The event that begins a period cannot be compared with itself; only children have parents.
    #[error("`{0}`: there is no such event to compare with")]
    Nothing(String),
    /// No period has this name.
    #[error("there are no periods called `{0}`")]
    Name(String),
    /// Two have the same name.
    #[error("there are two definitions of periods called `{0}`")]
    Twice(String),
    /// A period would be within itself.
    #[error("periods called `{0}` would be within themselves")]
    Circle(String),
    /// Periods have no capture of this name.
    #[error("`{0}` is no word that --period-captures tells of a period: it is `NAME.WORD`")]
    Word(String),
    /// Periods of one definition are never inside those of the other.
    #[error("periods called `{child}` are not within periods called `{parent}`")]
    NotWithin {
        /// The inner definition.
        child: String,
        /// The outer definition.
        parent: String,
    },
    /// No periods are within these.
    #[error("no periods are within periods called `{0}`")]
    Childless(String),
    /// Captures are wrong.
    #[error("`{0}` says nothing of periods: it is `NAME : WORD=FIELD, ... [: WORD=FIELD, ...]`")]
    Captures(String),
    /// There are too many captures.
    #[error("{0} words are to be told of periods; {CAPTURES_MAX} are possible")]
    Words(usize),
    /// A definition uses too many fields of one event.
    #[error("periods called `{0}` ask for more than {KEY_FIELDS_MAX} fields of an event")]
    Fields(String),
}

fn render(problems: &[FilterProblem], text: &str) -> String {
    problems.iter().map(|problem| problem.render(text)).collect::<String>().trim_end().to_owned()
}

/// The event that a field is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparedEvent {
    Itself,
    Begin,
    Parent,
}

/// A comparison as written: field, relation, owner of the other field, other field.
type Said = (NamePath, Is, ComparedEvent, NamePath);

/// Parts between colons that have spaces around them; names of events may have colons within.
fn parts(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut parts: Vec<&str> = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(':') {
        let is_apart = text[..at].ends_with(char::is_whitespace) && text[at + 1..].starts_with(char::is_whitespace);
        if at == 0 || is_apart {
            parts.push(text[from..at].trim());
            from = at + 1;
        }
    }
    parts.push(text[from..].trim());
    parts
}

pub(super) fn definitions(texts: &[String], captures: &[String]) -> Result<Definitions, PeriodProblem> {
    let mut definitions: Vec<PeriodDefinition> = Vec::new();
    let mut parents: Vec<Option<String>> = Vec::new();
    let mut said: Vec<[Vec<Said>; 2]> = Vec::new();
    for text in texts {
        let parts = parts(text);
        let (name, begin, end, is_chain) = match *parts.as_slice() {
            [name, begin] => (name, begin, begin, true),
            [name, begin, end] => (name, begin, end, false),
            _ => return Err(PeriodProblem::Shape(text.clone())),
        };
        let (name, parent) = match name.split_once('(') {
            Some((name, parent)) => {
                let parent = parent.strip_suffix(')').ok_or_else(|| PeriodProblem::Shape(text.clone()))?;
                (name.trim(), Some(parent.trim().to_owned()))
            }
            None => (name, None),
        };
        if definitions.iter().any(|known| known.name == name) {
            return Err(PeriodProblem::Twice(name.to_owned()));
        }
        let ((begin, of_begin), (end, of_end)) = (side(begin, text)?, side(end, text)?);
        said.push([of_begin, of_end]);
        parents.push(parent);
        definitions.push(PeriodDefinition {
            name: name.to_owned(),
            parent: None,
            begin,
            end,
            is_chain,
            captures: Vec::new(),
        });
    }
    for (place, parent) in parents.into_iter().enumerate() {
        let Some(parent) = parent else { continue };
        let at = definitions.iter().position(|known| known.name == parent).ok_or(PeriodProblem::Name(parent))?;
        definitions[place].parent = Some(at);
        let mut above = std::iter::successors(Some(at), |at| definitions[*at].parent).take(definitions.len() + 1);
        if above.any(|at| at == place) {
            return Err(PeriodProblem::Circle(definitions[place].name.clone()));
        }
    }
    for (place, sides) in said.into_iter().enumerate() {
        for (is_end, comparisons) in sides.into_iter().enumerate() {
            for comparison in comparisons {
                compare(&mut definitions, place, is_end == 1, comparison)?;
            }
        }
    }
    for text in captures {
        capture(&mut definitions, text)?;
    }
    let too_many = |side: &Side| side.fields.len() > KEY_FIELDS_MAX;
    match definitions.iter().find(|known| too_many(&known.begin) || too_many(&known.end)) {
        Some(known) => Err(PeriodProblem::Fields(known.name.clone())),
        None => {
            let definitions = Definitions::new(definitions);
            let count = definitions.captures().len();
            if count > CAPTURES_MAX { Err(PeriodProblem::Words(count)) } else { Ok(definitions) }
        }
    }
}

/// Resolves the fields on both sides of a comparison.
fn compare(
    definitions: &mut [PeriodDefinition],
    place: usize,
    is_end: bool,
    (field, is, of, other): Said,
) -> Result<(), PeriodProblem> {
    let nothing = || PeriodProblem::Nothing(definitions[place].name.clone());
    let earlier = match of {
        ComparedEvent::Parent => definitions[place].parent.ok_or_else(nothing)?,
        _ if is_end => place,
        _ => return Err(nothing()),
    };
    let other = definitions[earlier].begin.place(other);
    let PeriodDefinition { begin, end, .. } = &mut definitions[place];
    let side = if is_end { end } else { begin };
    let field = side.place(field);
    side.comparisons.push(Comparison { field, is, of_parent: of == ComparedEvent::Parent, other });
    Ok(())
}

/// An event, its own condition, and comparisons with earlier events.
fn side(text: &str, whole: &str) -> Result<(Side, Vec<Said>), PeriodProblem> {
    let (name, when) = text.split_once(" if ").map_or((text, None), |(name, when)| (name, Some(when)));
    if name.trim().is_empty() || name.trim().contains(char::is_whitespace) {
        return Err(PeriodProblem::Shape(whole.to_owned()));
    }
    let (mut own, mut said) = (Vec::new(), Vec::new());
    let is_said = |text: &str| text.contains("$begin.") || text.contains("$parent.");
    if let Some(when) = when {
        if is_said(when) {
            for part in conjuncts(when).ok_or_else(|| PeriodProblem::Comparison(when.to_owned()))? {
                if is_said(part) { said.push(comparison(part)?) } else { own.push(part) }
            }
        } else {
            own.push(when);
        }
    }
    let own = own.join(" && ");
    let wrong = |problems| PeriodProblem::Expression { text: own.clone(), problems };
    let when = (!own.is_empty()).then(|| Filter::parse(&own)).transpose().map_err(wrong)?;
    Ok((Side { events: NamePattern::new(name.trim()), when, fields: Vec::new(), comparisons: Vec::new() }, said))
}

/// Parts between `&&`, outside of parentheses and texts; `None`: something else joins them.
fn conjuncts(text: &str) -> Option<Vec<&str>> {
    let (mut depth, mut quote, mut is_escaped, mut from) = (0, None, false, 0);
    let mut parts = Vec::new();
    for (at, letter) in text.char_indices() {
        let rest = &text[at..];
        match quote {
            Some(end) => {
                if letter == end && !is_escaped {
                    quote = None;
                }
                is_escaped = letter == '\\' && !is_escaped;
            }
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter == '(' => depth += 1,
            None if letter == ')' => depth -= 1,
            None if depth == 0 && rest.starts_with("||") => return None,
            None if depth == 0 && rest.starts_with("&&") => {
                parts.push(text[from..at].trim());
                from = at + 2;
            }
            None => {}
        }
    }
    parts.push(text[from..].trim());
    Some(parts)
}

/// `FIELD == $begin.FIELD`, or the other way round.
fn comparison(text: &str) -> Result<Said, PeriodProblem> {
    const WORDS: [(&str, Is); 6] = [
        ("==", Is::Equal),
        ("!=", Is::Unequal),
        ("<=", Is::NotMore),
        (">=", Is::NotLess),
        ("<", Is::Less),
        (">", Is::More),
    ];
    let wrong = || PeriodProblem::Comparison(text.to_owned());
    let found = WORDS.iter().find_map(|(word, is)| text.split_once(word).map(|(one, other)| (one, *is, other)));
    let (one, is, other) = found.ok_or_else(wrong)?;
    let ((one, of_one), (other, of_other)) = (field(one)?, field(other)?);
    match (of_one, of_other) {
        (ComparedEvent::Itself, ComparedEvent::Begin | ComparedEvent::Parent) => Ok((one, is, of_other, other)),
        (ComparedEvent::Begin | ComparedEvent::Parent, ComparedEvent::Itself) => Ok((other, is.swapped(), of_one, one)),
        _ => Err(wrong()),
    }
}

/// A field and its owner. `$evt` is accepted as in lttng-analyses, and has no effect.
fn field(text: &str) -> Result<(NamePath, ComparedEvent), PeriodProblem> {
    let text = text.trim();
    let (of, rest) = match (text.strip_prefix("$parent."), text.strip_prefix("$begin.")) {
        (Some(rest), _) => (ComparedEvent::Parent, rest.strip_prefix("$begin.").unwrap_or(rest)),
        (_, Some(rest)) => (ComparedEvent::Begin, rest),
        _ => (ComparedEvent::Itself, text),
    };
    Ok((path(rest.strip_prefix("$evt.").unwrap_or(rest))?, of))
}

fn path(text: &str) -> Result<NamePath, PeriodProblem> {
    let wrong = |problem| PeriodProblem::Expression { text: text.to_owned(), problems: vec![problem] };
    NamePath::parse(text).map_err(wrong)
}

fn capture(definitions: &mut [PeriodDefinition], text: &str) -> Result<(), PeriodProblem> {
    let parts = parts(text);
    let wrong = || PeriodProblem::Captures(text.to_owned());
    let (name, sides) = match parts.as_slice() {
        [name, sides @ ..] if (1..=2).contains(&sides.len()) => (name, sides),
        _ => return Err(wrong()),
    };
    let known = definitions.iter_mut().find(|known| known.name == *name);
    let PeriodDefinition { begin, end, captures, .. } = known.ok_or_else(|| PeriodProblem::Name((*name).to_owned()))?;
    for (is_end, words) in sides.iter().enumerate() {
        let of_end = is_end == 1;
        for said in words.split(',').map(str::trim).filter(|said| !said.is_empty()) {
            let (word, field) = said.split_once('=').ok_or_else(wrong)?;
            let field = field.trim();
            let path = path(field.strip_prefix("$evt.").unwrap_or(field))?;
            let side = if of_end { &mut *end } else { &mut *begin };
            let field = side.place(path);
            captures.push(Capture { name: word.trim().to_owned(), of_end, field });
        }
    }
    Ok(())
}
