//! Names that were seen: finds duplicates.

use std::collections::HashSet;

/// Up to this many names are compared one by one: nearly every structure and block has fewer.
const FEW: usize = 16;

/// A set of names, without allocation for a handful of names.
#[derive(Debug, Default)]
pub(crate) struct NameSet<'a> {
    few: Vec<&'a str>,
    many: HashSet<&'a str>,
}

impl<'a> NameSet<'a> {
    /// Adds a name; false if it was there.
    pub(crate) fn insert(&mut self, name: &'a str) -> bool {
        if self.few.len() < FEW {
            let new = !self.few.contains(&name);
            if new {
                self.few.push(name);
            }
            return new;
        }
        if self.many.is_empty() {
            self.many.extend(&self.few);
        }
        self.many.insert(name)
    }
}
