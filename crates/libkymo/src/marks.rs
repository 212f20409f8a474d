//! Events that every program can record without defining any: `kymo/marks.h` says what they are for, and writes them.
//!
//! They lie here once, and not in each file that includes the header. Fields are those that the header writes, in the same order.

#![allow(unsafe_code, non_upper_case_globals, reason = "headers for C know them by names of C")]

use kymo_tracer::Event;

macro_rules! marks {
    ($($name:ident: $($line:literal)+;)*) => {$(
        #[doc = concat!($($line, " "),+)]
        #[unsafe(no_mangle)]
        pub static $name: Event = Event::new(concat!($($line, "\n"),+).as_bytes());
        const _: () = {
            extern "C" fn begin() {
                $name.register();
            }

            /// Before whatever constructors of the program record.
            #[used]
            #[unsafe(link_section = ".init_array.00101")]
            static BEGIN: extern "C" fn() = begin;
        };
    )*};
}

marks! {
    kymo_event_log:
        "event kymo:log"
        "level 6"
        "field enum u8(emergency, alert, critical, error, warning, notice, info, debug_system, debug_program, debug_process, \
         debug_module, debug_unit, debug_function, debug_line, debug) level"
        "field text text";
    kymo_event_checkpoint:
        "event kymo:checkpoint"
        "role checkpoint"
        "field text name"
        "field u64 data"
        "field pointer object"
        "field enum u8(undefined=0, start=1, end=2, new=0x10, delete=0x11, state=0x12, exception=0xfe, failure=0xff) type";
    kymo_event_begin: "event kymo:begin" "role begin" "field x64 key" "field text name";
    kymo_event_end: "event kymo:end" "role end" "field x64 key" "field text name";
    kymo_event_counter: "event kymo:counter" "role counter" "field text name" "field i64 value";
    kymo_event_send: "event kymo:send" "role send" "field x64 id";
    kymo_event_receive: "event kymo:receive" "role receive" "field x64 id";
    kymo_event_rpc_call: "event kymo:rpc_call" "role begin" "field x64 id" "field text name";
    kymo_event_rpc_return: "event kymo:rpc_return" "role end" "field x64 id" "field text name";
    kymo_event_rpc_dispatch: "event kymo:rpc_dispatch" "role begin" "field x64 id" "field text name";
    kymo_event_rpc_reply: "event kymo:rpc_reply" "role end" "field x64 id" "field text name";
    kymo_event_signal_submit: "event kymo:signal_submit" "role send" "field x64 context" "field u32 number";
    kymo_event_signal_receive: "event kymo:signal_receive" "role receive" "field x64 context" "field u32 number";
}
