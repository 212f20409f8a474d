//! `kymo roles`

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use kymo_session::{FieldUse, GuessedRole, RefusedRole, RoleUse, Roles, Session, UnmatchedSection};
use serde_json::{Map, Value, json};

use crate::CommandOutcome;
use crate::arguments::RolesArguments;
use crate::message::plain_output;
use crate::show::counted;
use crate::stop::StopReason;

/// Names of classes that are shown before the rest is counted.
const NAMES_MAX: usize = 3;
/// Lines of guesses and of refused classes that are shown before the rest is counted.
const LINES_MAX: usize = 12;
/// Refused classes that are shown one by one, if they are refused for one reason.
const ALIKE_MAX: usize = 3;
/// Width of the column of roles.
const ROLE_COLUMNS: usize = 16;
/// Lines end before this.
const LINE_COLUMNS: usize = 100;

/// Shows the meaning of the events of traces.
pub(crate) fn run(session: &Session, arguments: &RolesArguments) -> Result<CommandOutcome, StopReason> {
    let roles = session.roles(arguments.roles.as_deref());
    let roles = roles.map_err(|failure| StopReason::unanswerable(&failure.to_string()))?;
    for section in &roles.unmatched {
        message!("warning: {}", unmatched(section));
    }
    let mut out = plain_output();
    match &arguments.write {
        Some(path) if path.as_os_str() == "-" => out.write_all(roles.mapping.as_bytes())?,
        Some(path) => write(path, &roles.mapping)?,
        None if arguments.json => writeln!(out, "{}", as_json(&roles))?,
        None => show(&roles, arguments.all, &mut out)?,
    }
    out.flush()?;
    Ok(if roles.bound.is_empty() && roles.guessed.is_empty() {
        CommandOutcome::Incomplete
    } else {
        CommandOutcome::Complete
    })
}

/// Writes a new file: an existing one may have been edited.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    File::create_new(path).map_err(told)?.write_all(text.as_bytes()).map_err(told)
}

fn unmatched(section: &UnmatchedSection) -> String {
    let events: Vec<String> = section.events.iter().map(|event| format!("`{event}`")).collect();
    let (role, events) = (section.role, events.join(" or "));
    if section.is_for_others {
        return format!("{role}: the mapping's `when` is not true of any of these traces");
    }
    let near = section.near.first().map(|name| format!("; there is `{name}`")).unwrap_or_default();
    format!("{role}: no event record class is called {events}{near}")
}

fn show(roles: &Roles, all: bool, out: &mut impl Write) -> io::Result<()> {
    for used in &roles.bound {
        show_role(used, all, out)?;
    }
    let is_guessed = |role: &str| roles.guessed.iter().any(|guess| guess.is_used && guess.role == role);
    if roles.bound.is_empty() {
        let but = if roles.guessed.iter().any(|guess| guess.is_used) { " but for the guessed ones below" } else { "" };
        writeln!(out, "no event has a role{but}")?;
    }
    writeln!(out, "\ncontext")?;
    for field in &roles.context {
        writeln!(out, "  {:<14}{}", field.name, places(field, usize::MAX).unwrap_or_else(|| "unknown".to_owned()))?;
    }
    show_guesses(&roles.guessed, all, out)?;
    show_refused(roles, all, out)?;
    let absent = roles.absent.iter().map(|absent| absent.role);
    let absent: Vec<&str> = absent.filter(|role| !is_guessed(role)).collect();
    if !absent.is_empty() {
        writeln!(out, "\nno event is")?;
        wrapped(&absent.join(" "), 2, out)?;
    }
    Ok(())
}

fn show_role(used: &RoleUse, all: bool, out: &mut impl Write) -> io::Result<()> {
    let most = if all { usize::MAX } else { NAMES_MAX };
    let mut names = used.classes.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = used.classes.len().checked_sub(most).filter(|more| *more > 0) {
        names += &format!(" and {more} more");
    }
    writeln!(out, "{:<ROLE_COLUMNS$}  {names}  ({})", used.role, used.mapping)?;
    if let Some(condition) = &used.condition {
        writeln!(out, "    where {condition}")?;
    }
    let classes = used.classes.len();
    let found: Vec<String> = used.fields.iter().filter_map(|field| one_field(field, classes)).collect();
    wrapped(&found.join(", "), 4, out)?;
    let missing: Vec<&str> =
        used.fields.iter().filter(|field| field.places.is_empty()).map(|field| field.name).collect();
    if !missing.is_empty() {
        writeln!(out, "    without {}", missing.join(", "))?;
    }
    Ok(())
}

/// A field that some classes have: its name, and where it is where that has another name.
fn one_field(field: &FieldUse, classes: usize) -> Option<String> {
    let places = places(field, classes)?;
    let is_itself = places.trim_start_matches("$payload.") == field.name;
    Some(if is_itself { field.name.to_owned() } else { format!("{}: {places}", field.name) })
}

/// Where a field is, with the number of classes where it is not in all.
fn places(field: &FieldUse, classes: usize) -> Option<String> {
    let place = |(place, count): &(String, usize)| {
        if field.places.len() == 1 && (*count >= classes || classes == usize::MAX) {
            place.clone()
        } else {
            format!("{place} ({count})")
        }
    };
    let shown: Vec<String> = field.places.iter().map(place).collect();
    (!shown.is_empty()).then(|| shown.join(" or "))
}

fn show_guesses(guessed: &[GuessedRole], all: bool, out: &mut impl Write) -> io::Result<()> {
    if guessed.is_empty() {
        return Ok(());
    }
    let is_used = guessed.iter().any(|guess| guess.is_used);
    let used = if is_used { "those marked + are used, since nothing else has these roles" } else { "not used" };
    writeln!(out, "\nguessed, {used}")?;
    let most = if all { usize::MAX } else { LINES_MAX };
    for guess in guessed.iter().take(most) {
        let mark = if guess.is_used { '+' } else { ' ' };
        let percent = (guess.confidence * 100.0).round();
        writeln!(out, "{mark} {percent:>3} %  {:<ROLE_COLUMNS$}  {}", guess.role, guess.class)?;
        wrapped(&guess.reason, 10, out)?;
    }
    if let Some(more) = guessed.len().checked_sub(most).filter(|more| *more > 0) {
        writeln!(out, "  and {} (--all shows them)", counted(more as u64, "more guess"))?;
    }
    Ok(())
}

/// Events that are called as in a mapping, but have not the role. Where many have not for one reason, as all but a few
/// whose URI a mapping asks for, that is one line.
fn show_refused(roles: &Roles, all: bool, out: &mut impl Write) -> io::Result<()> {
    if roles.refused.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nnot bound, though called so")?;
    let reason = |refused: &RefusedRole| (refused.mapping.clone(), refused.why.clone());
    let mut alike: BTreeMap<(String, String), Vec<&RefusedRole>> = BTreeMap::new();
    roles.refused.iter().for_each(|refused| alike.entry(reason(refused)).or_default().push(refused));
    let mut lines: Vec<String> = Vec::new();
    for refused in &roles.refused {
        let RefusedRole { class, role, mapping, why } = refused;
        let known = alike.get(&reason(refused)).map_or(&[][..], Vec::as_slice);
        if all || known.len() <= ALIKE_MAX {
            lines.push(format!("  {class}: no {role} of {mapping}: {why}"));
        } else if known.first().is_some_and(|first| std::ptr::eq(*first, refused)) {
            let classes: BTreeSet<&str> = known.iter().map(|refused| refused.class.as_str()).collect();
            let (roles, of) = (known.len(), counted(classes.len() as u64, "class"));
            lines.push(format!("  {roles} roles of {of}, by {mapping}: {why} (--all shows them)"));
        }
    }
    let most = if all { usize::MAX } else { LINES_MAX };
    for line in lines.iter().take(most) {
        writeln!(out, "{line}")?;
    }
    if let Some(more) = lines.len().checked_sub(most).filter(|more| *more > 0) {
        writeln!(out, "  and {more} more (--all shows them)")?;
    }
    Ok(())
}

/// Words in lines that are not too long.
fn wrapped(text: &str, indent: usize, out: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + word.chars().count() >= LINE_COLUMNS {
            writeln!(out, "{:indent$}{line}", "")?;
            line.clear();
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    if line.is_empty() { Ok(()) } else { writeln!(out, "{:indent$}{line}", "") }
}

fn as_json(roles: &Roles) -> Value {
    let field = |field: &FieldUse| {
        let places = field.places.iter().map(|(place, count)| json!({ "place": place, "classes": count }));
        let places: Vec<Value> = places.collect();
        (field.name.to_owned(), json!({ "places": places, "missing_in_classes": field.missing }))
    };
    let fields = |fields: &[FieldUse]| Value::Object(fields.iter().map(field).collect());
    let bound = |used: &RoleUse| {
        json!({
            "role": used.role, "meaning": used.meaning, "mapping": used.mapping, "condition": used.condition,
            "classes": used.classes, "fields": fields(&used.fields),
        })
    };
    let guessed = |guess: &GuessedRole| {
        let fields: Map<String, Value> =
            guess.fields.iter().map(|(name, place)| ((*name).to_owned(), json!(place))).collect();
        json!({
            "role": guess.role, "class": guess.class, "fields": fields, "confidence": guess.confidence,
            "reason": guess.reason, "used": guess.is_used,
        })
    };
    json!({
        "bound": roles.bound.iter().map(bound).collect::<Vec<_>>(),
        "context": fields(&roles.context),
        "guessed": roles.guessed.iter().map(guessed).collect::<Vec<_>>(),
        "refused": roles.refused.iter().map(|refused| json!({
            "role": refused.role, "mapping": refused.mapping, "class": refused.class, "why": refused.why,
        })).collect::<Vec<_>>(),
        "unmatched": roles.unmatched.iter().map(|section| json!({
            "role": section.role, "events": section.events, "near": section.near,
            "mapping_is_for_other_traces": section.is_for_others,
        })).collect::<Vec<_>>(),
        "absent": roles.absent.iter().map(|absent| json!({
            "role": absent.role, "meaning": absent.meaning,
        })).collect::<Vec<_>>(),
    })
}
