//! The bell protocol: when a program wakes a sleeping recorder.
//!
//! The crate documentation states the protocol and its guarantees: [The bell](crate#the-bell).

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::layout::header;
use crate::memory::{MemoryView, ProgramMemory};
use crate::sides::{ProgramSide, RecorderSide};

/// Identity of the file behind a bell. Device and inode together distinguish it from all other
/// files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BellIdentity {
    /// Device that holds the file.
    pub device: u64,
    /// Inode of the file; never 0.
    pub inode: u64,
}

/// Events that the recorder wants to be woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rings {
    /// New definitions only.
    ForDefinitions = 1,
    /// New definitions, and each turn to another sub-buffer.
    ForAll = 2,
}

impl<M: ProgramMemory> ProgramSide<'_, M> {
    /// Publishes which bell the program rings.
    pub fn has_bell(&self, bell: &BellIdentity) {
        self.memory.store(header::BELL_DEVICE, bell.device, Relaxed);
        self.memory.store(header::BELL_INODE, bell.inode, Relaxed);
    }

    /// Rings the bell if the recorder sleeps and asked to be woken for `what`. The caller has
    /// already published the change that it rings for, so that a recorder that looks sees it.
    ///
    /// The sequentially consistent fence orders that change before the load of `ASLEEP`;
    /// [`RecorderSide::sleep`] has the matching fence. The compare-and-swap lets only one thread
    /// ring for each sleep.
    pub(crate) fn ring(&self, what: Rings) {
        self.memory.fence(SeqCst);
        let asleep = self.memory.load(header::ASLEEP, Relaxed);
        if asleep >= what as u64 && self.memory.compare_exchange(header::ASLEEP, asleep, 0) {
            self.ring_now();
        }
    }

    /// Rings in any case: a recorder that is awake, but does not look at this program, has to.
    pub(crate) fn wake(&self) {
        self.memory.fence(SeqCst);
        let asleep = self.memory.load(header::ASLEEP, Relaxed);
        if asleep != 0 {
            self.memory.compare_exchange(header::ASLEEP, asleep, 0);
        }
        self.ring_now();
    }

    fn ring_now(&self) {
        if !self.memory.ring() {
            self.memory.store(header::BELL_INODE, 0, Relaxed);
        }
    }
}

impl<V: MemoryView> RecorderSide<V> {
    /// The bell that the program says it rings; `None`: the program has no bell, and the recorder
    /// must poll it.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn bell(&self) -> Result<Option<BellIdentity>, V::Fault> {
        let (device, inode) = (self.view.word(header::BELL_DEVICE)?, self.view.word(header::BELL_INODE)?);
        Ok((inode != 0).then_some(BellIdentity { device, inode }))
    }

    /// Announces that the recorder stops polling this program. The program may publish changes
    /// before it sees this; the recorder must look once more after this call and before it sleeps,
    /// and that look finds them.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn sleep(&self, wants: Rings) -> Result<(), V::Fault> {
        self.view.set_byte(header::ASLEEP, wants as u8)?;
        self.view.settle();
        Ok(())
    }

    /// Announces that the recorder polls this program again. Not needed when the program [has
    /// rung](Self::has_rung).
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn wake(&self) -> Result<(), V::Fault> {
        self.view.set_byte(header::ASLEEP, 0)
    }

    /// Whether the program has rung since the last [`sleep`](Self::sleep).
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn has_rung(&self) -> Result<bool, V::Fault> {
        Ok(self.view.word(header::ASLEEP)? == 0)
    }
}
