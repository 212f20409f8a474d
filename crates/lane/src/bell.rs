//! When a recorder that sleeps is woken.
//!
//! What has to hold is in the crate's own words: [The bell](crate#the-bell).

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::layout::header;
use crate::memory::{Memory, View};
use crate::sides::{Program, Recorder};

/// The file behind a bell, which tells it from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bell {
    /// The device that it is on.
    pub device: u64,
    /// Its inode, which is not 0.
    pub inode: u64,
}

/// What is rung for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rings {
    /// Definitions.
    ForDefinitions = 1,
    /// Each turn to another sub-buffer too.
    ForAll = 2,
}

impl<M: Memory> Program<'_, M> {
    /// Says which bell it rings.
    pub fn has_bell(&self, bell: &Bell) {
        self.memory.store(header::BELL_DEVICE, bell.device, Relaxed);
        self.memory.store(header::BELL_INODE, bell.inode, Relaxed);
    }

    /// Rings if the recorder sleeps and wants to be told of that, which everybody sees who looks.
    pub(crate) fn ring(&self, what: Rings) {
        self.memory.fence(SeqCst);
        let asleep = self.memory.load(header::ASLEEP, Relaxed);
        if asleep >= what as u64 && self.memory.exchange(header::ASLEEP, asleep, 0) && !self.memory.ring() {
            self.memory.store(header::BELL_INODE, 0, Relaxed);
        }
    }
}

impl<V: View> Recorder<V> {
    /// The bell that the program rings, as it says; `None`: it has to be looked at all the time.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn bell(&self) -> Result<Option<Bell>, V::Fault> {
        let (device, inode) = (self.view.word(header::BELL_DEVICE)?, self.view.word(header::BELL_INODE)?);
        Ok((inode != 0).then_some(Bell { device, inode }))
    }

    /// Says that it is not looked at from now on. What comes before the program knows that is seen by who looks once more behind this,
    /// which has to be done before anybody sleeps.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn sleep(&self, wants: Rings) -> Result<(), V::Fault> {
        self.view.set_byte(header::ASLEEP, wants as u8)?;
        self.view.settle();
        Ok(())
    }

    /// Says that it is looked at again, unless the program [knows](Self::has_rung).
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn wake(&self) -> Result<(), V::Fault> {
        self.view.set_byte(header::ASLEEP, 0)
    }

    /// Whether the program has rung since it was slept.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn has_rung(&self) -> Result<bool, V::Fault> {
        Ok(self.view.word(header::ASLEEP)? == 0)
    }
}
