//! The values of earlier fields that later ones may need: the integers read or written so far, and
//! which options were there.

use std::collections::HashMap;

use crate::model::{FieldPath, FieldPathStep, Scope};

/// Integers and selected options by path. Inside an array the last element counts.
#[derive(Clone, Debug, Default)]
pub struct EarlierValues {
    integers: HashMap<FieldPath, i128>,
    options: HashMap<FieldPath, usize>,
}

impl EarlierValues {
    /// A scope begins anew: its earlier values count no more.
    pub fn begin(&mut self, scope: Scope) {
        self.integers.retain(|path, _| path.scope != scope);
        self.options.retain(|path, _| path.scope != scope);
    }

    /// The integer at `path` is `value`.
    pub fn keep(&mut self, path: &FieldPath, value: i128) {
        self.integers.insert(path.clone(), value);
    }

    /// The variant at `path` has that option.
    pub fn select(&mut self, path: &FieldPath, option: usize) {
        self.options.insert(path.clone(), option);
    }

    /// The integer that `path` means.
    #[must_use]
    pub fn integer(&self, path: &FieldPath) -> Option<i128> {
        match path.steps.last() {
            Some(FieldPathStep::Selected(_)) => {
                let there = path.resolved(|variant| self.options.get(variant).copied())?;
                self.integers.get(&there).copied()
            }
            _ => self.integers.get(path).copied(),
        }
    }
}
