//! Names of events and fields in the kernel: short, of letters, digits and `_`, and each once.

use std::collections::HashMap;

use kymo_probe::probes::{EVENT_NAME_MAX, FIELD_NAME_MAX, ProbeFieldKind};

/// The name and type of each field.
type FieldShape = Vec<(String, ProbeFieldKind)>;

/// Names of events that are taken.
#[derive(Debug, Default)]
pub(super) struct ProbeNames {
    /// By the name in the trace, the fields, and whether it is a return.
    events: HashMap<(String, FieldShape, bool), String>,
}

impl ProbeNames {
    /// The kernel's name of an event, and whether it is new.
    pub(super) fn event(&mut self, name: &str, fields: &[(&str, ProbeFieldKind)], is_return: bool) -> (String, bool) {
        let fields = fields.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        let key = (name.to_owned(), fields, is_return);
        if let Some(known) = self.events.get(&key) {
            return (known.clone(), false);
        }
        let is_taken = |name: &str| self.events.values().any(|known| known == name);
        let event = unique(name, EVENT_NAME_MAX, is_taken);
        self.events.insert(key, event.clone());
        (event, true)
    }
}

/// The kernel's names of fields.
pub(super) fn fields<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let is_reserved = |name: &str| name.starts_with("common_") || name.starts_with("__probe_");
        let name = unique(name, FIELD_NAME_MAX, |name| is_reserved(name) || all.iter().any(|known| known == name));
        all.push(name);
    }
    all
}

/// A name of letters, digits and `_` like this one, which is not taken.
fn unique(name: &str, most: usize, is_taken: impl Fn(&str) -> bool) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let mut plain: String = name.chars().map(plain).collect();
    if plain.is_empty() || plain.starts_with(|first: char| first.is_ascii_digit()) {
        plain.insert(0, '_');
    }
    plain.truncate(most);
    let numbered = (2..).map(|number| {
        let end = format!("_{number}");
        // A reserved name begins with what its numbered forms begin with, too.
        format!("n{}{end}", &plain[..plain.len().min(most - 1 - end.len())])
    });
    let mut all = std::iter::once(plain.clone()).chain(numbered);
    all.find(|name| !is_taken(name)).expect("numbers do not end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_different() {
        let mut names = ProbeNames::default();
        let int = [("n", ProbeFieldKind::Signed(4))];
        assert_eq!(names.event("app:parse", &int, false), ("app_parse".to_owned(), true));
        assert_eq!(names.event("app:parse", &int, false), ("app_parse".to_owned(), false));
        assert_eq!(names.event("app_parse", &int, false), ("napp_parse_2".to_owned(), true));
        assert_eq!(names.event("app:parse", &[], false), ("napp_parse_3".to_owned(), true));
        let long = "x".repeat(100);
        assert_eq!(names.event(&long, &[], false).0.len(), EVENT_NAME_MAX);
        assert_eq!(names.event(&format!("{long}y"), &[], false).0.len(), EVENT_NAME_MAX);
        let all = fields(["n", "n", "common_pid", "", "1", &long, &long].into_iter());
        assert_eq!(all[..5], ["n", "nn_2", "ncommon_pid_2", "_", "_1"]);
        assert!(all.iter().all(|name| name.len() <= FIELD_NAME_MAX));
    }
}
