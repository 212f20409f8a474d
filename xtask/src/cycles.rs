//! Modules that lie beside each other must not need each other in a circle, tests aside: whoever reads one of them reads one way.
//!
//! ```text
//! recorder/src/trace/journal.rs    use crate::session::Session;      trace ──> session
//! recorder/src/session/keep.rs     use crate::trace::Journal;        session ──> trace      a circle
//! ```
//!
//! A module may use what is defined in a module that it lies in, and the other way around. Names that a module hands on (`pub use`) count as
//! the module that defines them. Found without parsing Rust: paths that begin with `crate`, `super` or `self`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::functions::blank;

/// The place of a module: names from the crate's root.
type Place = Vec<String>;
type Modules = BTreeMap<Place, String>;

/// A circle of modules of one parent.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut crates: Vec<_> = fs::read_dir(root.join("crates")).into_iter().flatten().flatten().collect();
    crates.sort_by_key(fs::DirEntry::file_name);
    let mut problems = Vec::new();
    for folder in crates {
        let mut modules = Modules::new();
        read(&folder.path().join("src"), &mut Place::new(), &mut modules);
        for (parent, members) in circles(&modules) {
            let name = folder.file_name().to_string_lossy().into_owned();
            let place = std::iter::once(name).chain(parent).collect::<Vec<_>>().join("/");
            problems.push(format!("crates/{place}: these modules need each other in a circle: {}", members.join(", ")));
        }
    }
    problems
}

/// Modules below a folder, but for those of tests.
fn read(folder: &Path, place: &mut Place, into: &mut Modules) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name == "tests" || name == "testing" {
            continue;
        }
        let is_root = place.is_empty() && (name == "lib" || name == "main");
        if !is_root {
            place.push(name);
        }
        if path.is_dir() {
            read(&path, place, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.insert(place.clone(), without_tests(&blank(&fs::read_to_string(&path).unwrap_or_default())));
        }
        if !is_root {
            place.pop();
        }
    }
}

/// The code without items that only tests have.
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut open = 0;
        let end = rest.char_indices().find(|(_, character)| {
            open += i32::from(*character == '{') - i32::from(*character == '}');
            open == 0 && matches!(character, ';' | '}')
        });
        rest = end.map_or("", |(end, _)| &rest[end + 1..]);
    }
    kept + rest
}

/// For each parent the groups of its children that need each other.
fn circles(modules: &Modules) -> Vec<(Place, Vec<String>)> {
    let handed_on: BTreeMap<&Place, BTreeMap<String, Place>> =
        modules.iter().map(|(place, code)| (place, exports(place, code))).collect();
    let mut arrows: BTreeMap<Place, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (place, code) in modules {
        for path in paths(code).iter().filter_map(|path| absolute(place, path)) {
            let other = defining(modules, &handed_on, &path, 0);
            let common = place.iter().zip(&other).take_while(|(one, other)| one == other).count();
            if let (Some(from), Some(to)) = (place.get(common), other.get(common)) {
                let parent = arrows.entry(place[..common].to_vec()).or_default();
                parent.entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    let mut found = Vec::new();
    for (parent, arrows) in arrows {
        let reached: BTreeMap<&String, BTreeSet<&String>> =
            arrows.keys().map(|name| (name, reached(&arrows, name))).collect();
        let mut done: BTreeSet<&String> = BTreeSet::new();
        for name in arrows.keys() {
            let is_member = |other: &&&String| {
                reached[name].contains(**other) && reached.get(**other).is_some_and(|back| back.contains(name))
            };
            let members: Vec<&String> = arrows.keys().collect::<Vec<_>>().iter().filter(is_member).copied().collect();
            if !members.is_empty() && done.insert(members[0]) {
                found.push((parent.clone(), members.into_iter().cloned().collect()));
            }
        }
    }
    found
}

/// What a module needs, directly or not.
fn reached<'a>(arrows: &'a BTreeMap<String, BTreeSet<String>>, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = arrows.get(from).into_iter().flatten().collect();
    while let Some(name) = open.pop() {
        if found.insert(name) {
            open.extend(arrows.get(name).into_iter().flatten());
        }
    }
    found
}

/// The names that a module hands on, and where they come from.
fn exports(place: &Place, code: &str) -> BTreeMap<String, Place> {
    let statements = code.split(';').filter_map(|statement| {
        let at = statement.find("pub use ").map(|at| at + 8);
        let at = at.or_else(|| Some(statement.find("pub(crate) use ")? + 15));
        at.or_else(|| Some(statement.find("pub(super) use ")? + 15)).map(|at| &statement[at..])
    });
    let relative = |statement: &str| {
        let starts = ["crate", "super", "self"].iter().any(|word| statement.starts_with(&format!("{word}::")));
        paths(&if starts { statement.to_owned() } else { format!("self::{statement}") })
    };
    let all = statements.flat_map(relative);
    all.filter_map(|path| Some((path.last()?.clone(), absolute(place, &path)?))).collect()
}

/// Paths in code that begin with `crate`, `super` or `self`, each name of a group on its own.
fn paths(code: &str) -> Vec<Vec<String>> {
    let words = words(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let starts = matches!(words[at], "crate" | "super" | "self") && words.get(at + 1) == Some(&"::");
        at = if starts && (at == 0 || words[at - 1] != "::") { tree(&words, at, &[], &mut found) } else { at + 1 };
    }
    found
}

/// Reads one path, which may end in a group; where it ends.
fn tree(words: &[&str], mut at: usize, before: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let Some(&word) = words.get(at) else { return at };
    if word == "{" {
        at += 1;
        while at < words.len() && words[at] != "}" {
            at = match words[at] {
                "," => at + 1,
                "as" => at + 2,
                _ => tree(words, at, before, found),
            };
        }
        return at + 1;
    }
    let path: Vec<String> = before.iter().cloned().chain([word.to_owned()]).collect();
    let goes_on = |next: &&str| {
        *next == "{" || *next == "*" || next.starts_with(|first: char| first.is_alphabetic() || first == '_')
    };
    if words.get(at + 1) == Some(&"::") && words.get(at + 2).is_some_and(goes_on) {
        return tree(words, at + 2, &path, found);
    }
    found.push(path);
    at + 1
}

/// Names, `::`, and single characters.
fn words(code: &str) -> Vec<&str> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut words = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_word(first) => rest.find(|character| !is_word(character)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        words.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    words
}

/// The path from the crate's root.
fn absolute(place: &Place, path: &[String]) -> Option<Place> {
    let (mut base, mut rest) = match path.first()?.as_str() {
        "crate" => (Place::new(), &path[1..]),
        "self" => (place.clone(), &path[1..]),
        _ => (place.clone(), path),
    };
    while rest.first().is_some_and(|word| word == "super") {
        base.pop()?;
        rest = &rest[1..];
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

/// The module that defines what a path names: the longest beginning that is a module, or where that one has the name from.
fn defining(
    modules: &Modules,
    handed_on: &BTreeMap<&Place, BTreeMap<String, Place>>,
    path: &[String],
    depth: usize,
) -> Place {
    let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length])).unwrap_or(0);
    let module = path[..length].to_vec();
    let next = path.get(length).and_then(|name| handed_on.get(&module)?.get(name));
    match next.filter(|next| depth < 8 && ***next != *path) {
        Some(next) => defining(modules, handed_on, &[&next[..], &path[length + 1..]].concat(), depth + 1),
        None => module,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(modules: &[(&str, &str)]) -> Vec<String> {
        let place = |name: &str| name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let modules = modules.iter().map(|(name, code)| (place(name), without_tests(&blank(code)))).collect();
        circles(&modules)
            .into_iter()
            .map(|(parent, members)| format!("{}: {}", parent.join("/"), members.join(" ")))
            .collect()
    }

    #[test]
    fn circles_are_found_at_each_level() {
        assert_eq!(found(&[("", ""), ("a", "use crate::b::B;"), ("b", "fn f() { crate::a::g() }")]), [": a b"]);
        let through =
            [("", ""), ("a", "use super::{c::{D, E as F}};"), ("b", "use crate::a;"), ("c", "use crate::b::*;")];
        assert_eq!(found(&through), [": a b c"]);
        let inside = [("", ""), ("a", ""), ("a/one", "use super::two::Two;"), ("a/two", "use crate::a::one::One;")];
        assert_eq!(found(&inside), ["a: one two"]);
        let handed_on = [("", "pub use b::{B};"), ("a", "use crate::B;"), ("b", "use crate::a::A;")];
        assert_eq!(found(&handed_on), [": a b"]);
    }

    #[test]
    fn parents_tests_and_comments_are_none() {
        assert_eq!(
            found(&[("", "use a::A;"), ("a", "use crate::X; use self::b::B;"), ("a/b", "use super::A;")]),
            [""; 0]
        );
        let code = "use crate::b::B;\n#[cfg(test)]\nmod tests { fn f() { if x {} } use super::b; }\n";
        let other = "#[cfg(test)]\nuse crate::a::A;\n// crate::a::A\nconst TEXT: &str = \"crate::a::A\";";
        assert_eq!(found(&[("", ""), ("a", code), ("b", other)]), [""; 0]);
    }
}
