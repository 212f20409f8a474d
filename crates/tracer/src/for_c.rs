//! What headers for C call, besides what they do themselves.

#![allow(unsafe_code, reason = "others' memory")]

use core::sync::atomic::{AtomicIsize, Ordering};

use crate::context::Context;
use crate::enter::ForC;
use crate::event::Event;
use crate::thread;

/// Where the thread's word lies behind what points to the thread: it points to what the thread has, once it has something.
#[unsafe(no_mangle)]
pub static kymo_thread_offset: AtomicIsize = AtomicIsize::new(0);

/// Makes an event known; whether it is.
///
/// # Safety
///
/// It is one, and stays where it is until it is [taken back](kymo_unregister).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_register(event: *const Event) -> bool {
    kymo_thread_offset.store(thread::word::offset(), Ordering::Release);
    // Safety: it stays.
    unsafe { (*event).register() }
}

/// Takes it back.
///
/// # Safety
///
/// It is one, and nobody records it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_unregister(event: *const Event) {
    // Safety: it is there.
    unsafe { (*event).unregister() };
}

/// Makes a context known; whether it is.
///
/// # Safety
///
/// It is one, and stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_register_context(context: *const Context) -> bool {
    // Safety: it stays.
    unsafe { (*context).register() }
}

/// Something of the event that is being written was cut.
///
/// # Safety
///
/// It is being written by this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_was_cut(write: *const ForC) {
    // Safety: it is being written.
    unsafe { (*write).was_cut() };
}
