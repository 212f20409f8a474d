//! The operations on each file.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::file::FileKey;
use super::sums::IoSums;
use crate::names::{Interner, NameId, Renumbering};

/// Files by name, and the operations on each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileRows {
    pub(super) names: Interner,
    /// By name.
    named: Vec<IoSums>,
    others: HashMap<FileKey, IoSums>,
}

impl FileRows {
    /// Forgets operations, but not names.
    pub(super) fn forget(&mut self) {
        self.named.clear();
        self.others.clear();
    }

    /// All files with operations.
    pub(super) fn all(&self) -> impl Iterator<Item = (FileKey, &IoSums)> {
        let named = self.named.iter().enumerate().filter(|(_, sums)| **sums != IoSums::default());
        let named = named.map(|(name, sums)| (FileKey::Named(NameId(name as u32)), sums));
        named.chain(self.others.iter().map(|(file, sums)| (*file, sums)))
    }

    /// Operations on a file.
    #[inline]
    pub(super) fn of(&mut self, file: FileKey) -> &mut IoSums {
        match file {
            FileKey::Named(name) if name != NameId::OTHER => {
                let name = name.0 as usize;
                if self.named.len() <= name {
                    self.named.resize(name + 1, IoSums::default());
                }
                &mut self.named[name]
            }
            file => self.others.entry(file).or_default(),
        }
    }

    /// Adds operations of another part; returns the new numbers of its names.
    pub(super) fn add(&mut self, other: &Self) -> Renumbering {
        let names = self.names.merge(&other.names);
        for (file, sums) in other.all() {
            self.of(file.renamed(&names)).add(sums);
        }
        names
    }
}
