//! The public items of this crate for systems without a recorder. They do nothing.

use core::convert::Infallible;
use core::ffi::CStr;

/// An event that is never recorded.
#[derive(Debug)]
pub struct Event(());

impl Event {
    /// An event.
    #[must_use]
    pub const fn new(_: &'static [u8]) -> Self {
        Self(())
    }

    /// Does not register the event.
    pub fn register(&'static self) -> bool {
        false
    }

    /// Does not register the event.
    pub fn register_like(&'static self, _: &Self) -> bool {
        false
    }

    /// Does nothing: the event was never registered.
    pub fn unregister(&self) {}

    /// Always 0: the event is off.
    #[inline]
    #[must_use]
    pub fn control(&self) -> u8 {
        0
    }

    /// Always `false`: the event is off.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        false
    }

    /// Always `false`: there are no USDT probes.
    #[inline]
    #[must_use]
    pub fn is_attached(&self) -> bool {
        false
    }

    /// Always `false`: the event is off.
    #[inline]
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        false
    }

    /// Always `false`, for all arguments.
    #[inline]
    pub fn is_kept<T: ?Sized>(&self, _: &T) -> bool {
        false
    }

    /// Always `None`: there is no room for the event.
    #[inline]
    pub fn enter(&self, _: u64) -> Option<Write> {
        None
    }

    /// Records nothing.
    #[inline]
    pub fn record(&self, _: &[u8]) {}
}

/// An event in progress: there is none.
#[derive(Debug)]
pub struct Write(Infallible);

impl Write {
    /// Bytes of fields.
    pub fn put(&mut self, _: &[u8]) {
        match self.0 {}
    }

    /// Part of the event was truncated.
    pub fn was_cut(&self) {
        match self.0 {}
    }

    /// Publishes the event.
    pub fn leave(self) {
        match self.0 {}
    }
}

/// A context that events could carry.
#[derive(Debug)]
pub struct Context(());

impl Context {
    /// A context.
    #[must_use]
    pub const fn new(_: &'static [u8], _: u32, _: extern "C" fn(&mut Own)) -> Self {
        Self(())
    }

    /// Does not register the context.
    pub fn register(&'static self) -> bool {
        false
    }
}

/// Value of a context that the program defines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Own {
    /// A number; its first `size` bytes count.
    pub value: u64,
    /// A text.
    pub text: *const u8,
    /// Length of the text.
    pub length: u64,
}

/// Always 0: there is no counter.
#[must_use]
pub fn counter() -> u64 {
    0
}

/// Always `None`: there is no counter.
#[must_use]
pub fn counter_frequency() -> Option<u64> {
    None
}

/// Always 0: nothing is recorded.
#[must_use]
pub fn ticks() -> u64 {
    0
}

/// Always `None`: there is no file.
#[must_use]
pub fn control_file() -> Option<&'static CStr> {
    None
}

/// Does nothing.
pub fn record_for(_: &'static str, _: u64) {}
