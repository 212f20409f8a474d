//! What programs use of this crate where there is nothing that records: the same names, and nothing behind them.

use core::convert::Infallible;
use core::ffi::CStr;

/// An event that nobody ever records.
#[derive(Debug)]
pub struct Event(());

impl Event {
    /// An event.
    #[must_use]
    pub const fn new(_: &'static [u8]) -> Self {
        Self(())
    }

    /// Nobody gets to know it.
    pub fn register(&'static self) -> bool {
        false
    }

    /// The same.
    pub fn register_like(&'static self, _: &Self) -> bool {
        false
    }

    /// Nobody knew it.
    pub fn unregister(&self) {}

    /// It is off.
    #[inline]
    #[must_use]
    pub fn control(&self) -> u8 {
        0
    }

    /// Nobody wants it.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        false
    }

    /// Nobody wants it, whatever its arguments are.
    #[inline]
    pub fn is_kept<T: ?Sized>(&self, _: &T) -> bool {
        false
    }

    /// There is no room for it.
    #[inline]
    pub fn enter(&self, _: u64) -> Option<Write> {
        None
    }

    /// Nothing is recorded.
    #[inline]
    pub fn record(&self, _: &[u8]) {}
}

/// An event that is being written: there is none.
#[derive(Debug)]
pub struct Write(Infallible);

impl Write {
    /// Bytes of fields.
    pub fn put(&mut self, _: &[u8]) {
        match self.0 {}
    }

    /// Something of the event was cut.
    pub fn was_cut(&self) {
        match self.0 {}
    }

    /// It is there.
    pub fn leave(self) {
        match self.0 {}
    }
}

/// Something that events could carry.
#[derive(Debug)]
pub struct Context(());

impl Context {
    /// A context.
    #[must_use]
    pub const fn new(_: &'static [u8], _: u32, _: extern "C" fn(&mut Own)) -> Self {
        Self(())
    }

    /// Nobody gets to know it.
    pub fn register(&'static self) -> bool {
        false
    }
}

/// What a program says events carry.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Own {
    /// A number; the first bytes of it count.
    pub value: u64,
    /// A text and its length.
    pub text: *const u8,
    /// See there.
    pub length: u64,
}

/// There is no counter.
#[must_use]
pub fn counter() -> u64 {
    0
}

/// Nor anything that it counts.
#[must_use]
pub fn counter_frequency() -> Option<u64> {
    None
}

/// Nothing is stamped.
#[must_use]
pub fn ticks() -> u64 {
    0
}

/// There is no file.
#[must_use]
pub fn control_file() -> Option<&'static CStr> {
    None
}

/// Nobody is told.
pub fn record_for(_: &'static str, _: u64) {}
