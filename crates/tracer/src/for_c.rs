//! Functions that the C headers call.

#![allow(unsafe_code, reason = "others' memory")]

use core::sync::atomic::{AtomicIsize, Ordering};

use crate::context::Context;
use crate::enter::ForC;
use crate::event::Event;
use crate::thread;

/// Offset of the thread-local word from the thread pointer. The word points to the thread's page,
/// once it has one.
#[unsafe(no_mangle)]
pub static kymo_thread_offset: AtomicIsize = AtomicIsize::new(0);

/// Registers an event; returns whether recorders know it now.
///
/// # Safety
///
/// `event` points to an event, which stays in place until it is [unregistered](kymo_unregister).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_register(event: *const Event) -> bool {
    kymo_thread_offset.store(thread::word::offset(), Ordering::Release);
    // Safety: the event stays in place.
    unsafe { (*event).register() }
}

/// Unregisters an event.
///
/// # Safety
///
/// `event` points to an event that no thread records any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_unregister(event: *const Event) {
    // Safety: the caller guarantees the event.
    unsafe { (*event).unregister() };
}

/// Registers a context; returns whether recorders know it now.
///
/// # Safety
///
/// `context` points to a context that is never removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_register_context(context: *const Context) -> bool {
    // Safety: the context stays in place.
    unsafe { (*context).register() }
}

/// Counts that part of the event in progress was truncated.
///
/// # Safety
///
/// This thread is writing the event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_was_cut(write: *const ForC) {
    // Safety: the write is in progress.
    unsafe { (*write).was_cut() };
}
