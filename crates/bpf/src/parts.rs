//! The parts of an object that programs are linked from.

use std::collections::HashMap;

use crate::btf::BtfTypes;
use crate::elf::ElfParts;
use crate::extension::BtfExtension;
use crate::maps::ObjectMap;

/// A function in a section, by the indexes of its instructions there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FunctionSpan {
    pub(crate) section: usize,
    pub(crate) first: usize,
    pub(crate) count: usize,
}

/// Parts of an object.
#[derive(Debug)]
pub(crate) struct ObjectParts {
    pub(crate) elf: ElfParts,
    pub(crate) types: Option<BtfTypes>,
    pub(crate) extension: BtfExtension,
    pub(crate) maps: Vec<ObjectMap>,
    /// Functions, by section and first instruction.
    pub(crate) functions: HashMap<(usize, usize), FunctionSpan>,
}

impl ObjectParts {
    /// The function that begins at an instruction.
    pub(crate) fn function_at(&self, section: usize, first: usize) -> Option<FunctionSpan> {
        self.functions.get(&(section, first)).copied()
    }
}
