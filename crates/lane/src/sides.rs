//! The two sides of a memory, the program and its recorder, and who writes.
//!
//! What each of them does with it stands where it belongs: lanes in `program`, looking and copying in `recorder`, and what both have a
//! part in, as bells, definitions and slots, in a file for each.

use crate::layout::Layout;
use crate::memory::{Memory, View};

/// A program's memory, to whoever writes to it. Everything here may be done by handlers of signals too, and by several threads.
#[derive(Clone, Copy, Debug)]
pub struct Program<'m, M> {
    pub(crate) memory: &'m M,
    pub(crate) layout: Layout,
}

/// A program's memory, to whoever records it.
#[derive(Clone, Copy, Debug)]
pub struct Recorder<V> {
    pub(crate) view: V,
    pub(crate) layout: Layout,
}

/// Who writes: it stands in what is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// How many handlers of signals it is in; each level has a lane of its own.
    pub level: u8,
    /// Its name; zeros behind.
    pub name: [u8; 16],
}

impl<'m, M: Memory> Program<'m, M> {
    /// The same memory, which somebody else has begun.
    pub fn of(memory: &'m M, layout: Layout) -> Self {
        Self { memory, layout }
    }
}

impl<V: View> Recorder<V> {
    /// Of memory whose layout was [read](Layout::read).
    pub fn new(view: V, layout: Layout) -> Self {
        Self { view, layout }
    }

    /// The memory.
    pub fn view(&self) -> &V {
        &self.view
    }

    /// How large everything is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
