//! The two sides of the shared memory, program and recorder, and the identity of a writing thread.
//!
//! Each side's operations are in their own files: lanes in `program`, looking and copying in
//! `recorder`; bells, definitions and slots, in which both sides take part, have one file each.

use crate::layout::MemoryLayout;
use crate::memory::{MemoryView, ProgramMemory};

/// The program's side of its memory. Several threads and signal handlers may call all functions
/// here concurrently.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSide<'m, M> {
    pub(crate) memory: &'m M,
    pub(crate) layout: MemoryLayout,
}

/// The recorder's side of a program's memory.
#[derive(Clone, Copy, Debug)]
pub struct RecorderSide<V> {
    pub(crate) view: V,
    pub(crate) layout: MemoryLayout,
}

/// The thread that writes; recorded with each sub-buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterThread {
    /// Thread ID.
    pub tid: u32,
    /// Number of nested signal handlers that the thread is in; each level has its own lane.
    pub level: u8,
    /// Thread name, padded with zeros.
    pub name: [u8; 16],
}

impl<'m, M: ProgramMemory> ProgramSide<'m, M> {
    /// Wraps memory that another call has already initialized.
    pub fn of(memory: &'m M, layout: MemoryLayout) -> Self {
        Self { memory, layout }
    }
}

impl<V: MemoryView> RecorderSide<V> {
    /// Wraps memory with a layout that was [read](MemoryLayout::read).
    pub fn new(view: V, layout: MemoryLayout) -> Self {
        Self { view, layout }
    }

    /// Access to the memory.
    pub fn view(&self) -> &V {
        &self.view
    }

    /// Sizes of all regions.
    pub fn layout(&self) -> &MemoryLayout {
        &self.layout
    }
}
