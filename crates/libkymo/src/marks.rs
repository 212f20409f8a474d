//! Registers the marks, events that every program can record: `kymo/marks.h` writes them, and
//! [`kymo_tracer::marks`] defines them.
//!
//! The library contains them once, rather than each file that includes the header.

#![allow(unsafe_code, reason = "constructors stand in a section")]

use kymo_tracer::marks;

macro_rules! known {
    ($($name:ident)*) => {
        extern "C" fn begin() {
            $(marks::$name.register();)*
        }
    };
}

known! {
    kymo_event_log kymo_event_checkpoint kymo_event_begin kymo_event_end kymo_event_counter kymo_event_send kymo_event_receive
    kymo_event_rpc_call kymo_event_rpc_return kymo_event_rpc_dispatch kymo_event_rpc_reply
    kymo_event_signal_submit kymo_event_signal_receive kymo_event_packet
}

/// Runs before the program's own constructors can record marks.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static BEGIN: extern "C" fn() = begin;
