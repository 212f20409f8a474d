//! Marks: events that every program can record without defining any. They are logs, checkpoints,
//! durations, counters, flows between two places, calls, signals and packets. Analyses know their
//! meaning.
//!
//! `kymo/marks.h` records the same events, with the same fields in the same order.
//!
//! Programs use macros, which evaluate their arguments only while the event is on. An event that a
//! program never uses is not registered.
//!
//! ```
//! use kymo_tracer::marks::Level;
//!
//! kymo_tracer::scope!("parse");
//! kymo_tracer::counter!("queue", 3);
//! kymo_tracer::log!(Level::Warning, "{} of {} are left", 2, 5);
//! ```

#![allow(unsafe_code, non_upper_case_globals, reason = "headers for C know them by names of C")]

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::{Event, Field, labels};

macro_rules! marks {
    ($($name:ident: $($line:literal)+;)*) => {$(
        #[doc = concat!($($line, " "),+)]
        #[unsafe(no_mangle)]
        #[cfg_attr(
            all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")),
            unsafe(link_section = ".probes")
        )]
        pub static $name: Event = Event::new(concat!($($line, "\n"),+).as_bytes());
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
    kymo_event_packet:
        "event kymo:packet"
        "field text interface"
        "field enum u8(unknown, inbound, outbound) direction"
        "field enum u16(ethernet=1, raw_ip=101, cooked=113) link"
        "field u32 length"
        "field u64 received"
        "field sequence u8 data";
}

labels! {
    /// How important a log is, as LTTng has it.
    pub enum Level: u8 {
        Emergency = 0, Alert = 1, Critical = 2, Error = 3, Warning = 4, Notice = 5, Info = 6, DebugSystem = 7, DebugProgram = 8,
        DebugProcess = 9, DebugModule = 10, DebugUnit = 11, DebugFunction = 12, DebugLine = 13, Debug = 14,
    }
}

labels! {
    /// Kinds of checkpoints; the numbers are those of Genode.
    pub enum Checkpoint: u8 {
        Undefined = 0, Start = 1, End = 2, New = 0x10, Delete = 0x11, State = 0x12, Exception = 0xFE, Failure = 0xFF,
    }
}

labels! {
    /// The way that a packet goes, seen from this machine or component.
    pub enum Direction: u8 {
        Unknown = 0, Inbound = 1, Outbound = 2,
    }
}

/// The first head of a packet's bytes, by its number in captures (`LINKTYPE_ETHERNET`).
pub const LINK_ETHERNET: u16 = 1;
/// Packets that begin with the head of IPv4 or IPv6.
pub const LINK_RAW_IP: u16 = 101;
/// Packets behind a head of 16 bytes that Linux makes for links without one that is known.
pub const LINK_COOKED: u16 = 113;

/// Maximum of the [snap length](set_snap_length): an event has no room for more bytes of a packet.
pub const SNAP_LENGTH_MAX: u32 = 16_000;

/// Bytes of a packet that are recorded, at most.
#[unsafe(no_mangle)]
pub static kymo_snap_length: AtomicU32 = AtomicU32::new(256);

/// Sets how many bytes of a packet this program records at most, from the next one on: 256 by
/// default, and never more than [`SNAP_LENGTH_MAX`]. The event has the packet's length in any case.
pub fn set_snap_length(bytes: u32) {
    kymo_snap_length.store(bytes.min(SNAP_LENGTH_MAX), Ordering::Relaxed);
}

/// A packet with everything that its event has; [`packet!`](crate::packet) records most packets.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// The name of its interface.
    pub interface: &'a str,
    /// The way that it goes.
    pub direction: Direction,
    /// The kind of its first head: one of `LINK_ETHERNET` and so on.
    pub link: u16,
    /// Its length, of which `data` may be the beginning.
    pub length: u32,
    /// When the kernel saw it, in nanoseconds since 1970; 0: unknown.
    pub received: u64,
    /// Its bytes.
    pub data: &'a [u8],
}

/// Records a packet, with its bytes up to [`SNAP_LENGTH_MAX`].
#[inline]
pub fn captured(packet: &CapturedPacket<'_>) {
    let CapturedPacket { interface, direction, link, length, received, data } = *packet;
    let data = &data[..data.len().min(SNAP_LENGTH_MAX as usize)];
    crate::recorded!(kymo_event_packet as "kymo:packet", interface: &str, direction: Direction, link: u16, length: u32, received: u64, data: &[u8]);
}

/// Implements [`packet!`](crate::packet) once the event is on.
#[doc(hidden)]
#[inline]
pub fn packet(interface: &str, direction: Direction, data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let data = &data[..data.len().min(kymo_snap_length.load(Ordering::Relaxed) as usize)];
    captured(&CapturedPacket { interface, direction, link: LINK_ETHERNET, length, received: 0, data });
}

/// Functions that the macros call once the event is on. Fields are recorded in the order of the
/// definition, which is not always that of the arguments.
macro_rules! functions {
    ($(fn $function:ident($($argument:ident: $type:ty),*) = $event:ident as $name:literal ($($field:ident: $of:ty),*);)*) => {$(
        #[doc(hidden)]
        #[inline]
        pub fn $function($($argument: $type),*) {
            crate::recorded!($event as $name, $($field: $of),*);
        }
    )*};
}

functions! {
    fn checkpoint(name: &str, data: u64, object: *const (), kind: Checkpoint) =
        kymo_event_checkpoint as "kymo:checkpoint" (name: &str, data: u64, object: *const (), kind: Checkpoint);
    fn begin(name: &str, key: u64) = kymo_event_begin as "kymo:begin" (key: u64, name: &str);
    fn end(name: &str, key: u64) = kymo_event_end as "kymo:end" (key: u64, name: &str);
    fn counter(name: &str, value: i64) = kymo_event_counter as "kymo:counter" (name: &str, value: i64);
    fn send(id: u64) = kymo_event_send as "kymo:send" (id: u64);
    fn receive(id: u64) = kymo_event_receive as "kymo:receive" (id: u64);
    fn rpc_call(name: &str, id: u64) = kymo_event_rpc_call as "kymo:rpc_call" (id: u64, name: &str);
    fn rpc_return(name: &str, id: u64) = kymo_event_rpc_return as "kymo:rpc_return" (id: u64, name: &str);
    fn rpc_dispatch(name: &str, id: u64) = kymo_event_rpc_dispatch as "kymo:rpc_dispatch" (id: u64, name: &str);
    fn rpc_reply(name: &str, id: u64) = kymo_event_rpc_reply as "kymo:rpc_reply" (id: u64, name: &str);
    fn signal_submit(context: u64, number: u32) = kymo_event_signal_submit as "kymo:signal_submit" (context: u64, number: u32);
    fn signal_receive(context: u64, number: u32) = kymo_event_signal_receive as "kymo:signal_receive" (context: u64, number: u32);
}

/// A duration that lasts until this value is dropped.
#[derive(Debug)]
pub struct Scope<'a> {
    /// `None`: the begin was not recorded, so the end is not recorded either.
    name: Option<&'a str>,
    place: &'a u8,
}

impl<'a> Scope<'a> {
    /// Begins the duration. The address of `place` is its key, which distinguishes it from others.
    #[inline]
    #[must_use]
    pub fn begin(name: &'a str, place: &'a u8) -> Self {
        let scope = Self { name: kymo_event_begin.is_wanted().then_some(name), place };
        if let Some(name) = scope.name {
            begin(name, scope.key());
        }
        scope
    }

    #[inline]
    fn key(&self) -> u64 {
        core::ptr::from_ref(self.place).addr() as u64
    }
}

/// A duration with a number that lasts until this value is dropped: two checkpoints.
#[derive(Debug)]
pub struct CheckpointScope<'a> {
    /// `None`: the begin was not recorded, so the end is not recorded either.
    begun: Option<(&'a str, u64)>,
}

impl<'a> CheckpointScope<'a> {
    /// Begins the duration, if the event is on; the name and the number are asked for only then.
    #[inline]
    #[must_use]
    pub fn begin(facts: impl FnOnce() -> (&'a str, u64)) -> Self {
        let begun = kymo_event_checkpoint.is_wanted().then(facts);
        if let Some((name, data)) = begun {
            checkpoint(name, data, core::ptr::null(), Checkpoint::Start);
        }
        Self { begun }
    }
}

impl Drop for CheckpointScope<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((name, data)) = self.begun {
            checkpoint(name, data, core::ptr::null(), Checkpoint::End);
        }
    }
}

impl Drop for Scope<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(name) = self.name {
            end(name, self.key());
        }
    }
}

/// Maximum bytes of a log's text; a longer text is truncated and counted.
pub const LOG_BYTES_MAX: usize = 1024;

/// Implements [`log!`](crate::log) once the event is on.
#[doc(hidden)]
#[cold]
#[inline]
pub fn log(level: Level, text: fmt::Arguments<'_>) {
    let mut line = LogLine { bytes: [0; LOG_BYTES_MAX], length: 0, is_cut: false };
    // A value that fails to format is left out.
    _ = fmt::Write::write_fmt(&mut line, text);
    let text = &line.bytes[..line.length];
    /// The layout of the arguments in the C headers.
    #[repr(C)]
    struct LogArguments {
        level: u8,
        text: <&'static str as Field>::Argument,
    }
    let arguments = LogArguments { level: level as u8, text: text.argument() };
    crate::probed!(kymo_event_log, "kymo:log", arguments, level: u8, text: &str,);
    if kymo_event_log.is_kept(&arguments)
        && let Some(mut write) = kymo_event_log.enter(1 + 2 + text.len() as u64)
    {
        write.put(&[level as u8]);
        write.put(&(text.len() as u16).to_le_bytes());
        write.put(text);
        if line.is_cut {
            write.was_cut();
        }
        write.leave();
    }
}

struct LogLine {
    bytes: [u8; LOG_BYTES_MAX],
    length: usize,
    is_cut: bool,
}

impl fmt::Write for LogLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let length = text.floor_char_boundary(LOG_BYTES_MAX - self.length);
        self.bytes[self.length..self.length + length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        self.is_cut |= length < text.len();
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Registers a mark when the program or library that uses it is loaded, before the program's own
/// constructors can record it.
#[doc(hidden)]
#[macro_export]
macro_rules! known {
    ($event:ident) => {
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        const _: () = {
            extern "C" fn begin() {
                $crate::marks::$event.register();
            }

            #[used]
            #[unsafe(link_section = ".init_array.00101")]
            static BEGIN: extern "C" fn() = begin;
        };
    };
}

/// Records a mark, if it is on.
#[doc(hidden)]
#[macro_export]
macro_rules! marked {
    ($event:ident, $function:ident, $($argument:expr),*) => {{
        $crate::known!($event);
        if $crate::marks::$event.is_wanted() {
            $crate::marks::$function($($argument),*);
        }
    }};
}

/// Records that the program passed a checkpoint: a name, a number, an address (`*const ()`), and
/// the [kind](crate::marks::Checkpoint) of checkpoint.
#[macro_export]
macro_rules! checkpoint {
    ($name:expr, $data:expr, $object:expr, $kind:expr) => {
        $crate::marked!(kymo_event_checkpoint, checkpoint, $name, $data, $object, $kind)
    };
}

/// Records that the program passed a checkpoint that is called like its function, with a number.
#[macro_export]
macro_rules! checkpoint_here {
    ($data:expr) => {
        $crate::checkpoint!($crate::function_name!(), $data, ::core::ptr::null(), $crate::marks::Checkpoint::Undefined)
    };
}

/// Records a duration with a number from here to the end of the block: two checkpoints, START and END,
/// with the same name and number. Without a name it is called like its function. The name must live as
/// long.
///
/// ```
/// fn parse(text: &str) -> usize {
///     kymo_tracer::checkpoint_scope!("parse", text.len() as u64);
///     text.len()
/// }
/// assert_eq!(parse("abc"), 3);
/// ```
#[macro_export]
macro_rules! checkpoint_scope {
    ($data:expr) => {
        $crate::checkpoint_scope!($crate::function_name!(), $data);
    };
    ($name:expr, $data:expr) => {
        $crate::known!(kymo_event_checkpoint);
        let _duration = $crate::marks::CheckpointScope::begin(|| ($name, $data));
    };
}

/// Begins a duration: a name, and a key that its end shares, on any thread.
/// [`scope!`](crate::scope) does this for a block.
#[macro_export]
macro_rules! begin {
    ($name:expr, $key:expr) => {
        $crate::marked!(kymo_event_begin, begin, $name, $key)
    };
}

/// Ends a duration that [has begun](crate::begin).
#[macro_export]
macro_rules! end {
    ($name:expr, $key:expr) => {
        $crate::marked!(kymo_event_end, end, $name, $key)
    };
}

/// Sets a counter: its name, and its new value as an `i64`.
#[macro_export]
macro_rules! counter {
    ($name:expr, $value:expr) => {
        $crate::marked!(kymo_event_counter, counter, $name, $value)
    };
}

/// Starts a flow from here to the place where the same number is [received](crate::receive), in
/// this program or another one.
#[macro_export]
macro_rules! send {
    ($id:expr) => {
        $crate::marked!(kymo_event_send, send, $id)
    };
}

/// Ends a flow that [was sent](crate::send).
#[macro_export]
macro_rules! receive {
    ($id:expr) => {
        $crate::marked!(kymo_event_receive, receive, $id)
    };
}

/// Calls another component: its name, and a number that distinguishes calls. The number is 0 if
/// there is none; such a call ends on the thread where it began.
#[macro_export]
macro_rules! rpc_call {
    ($name:expr, $id:expr) => {
        $crate::marked!(kymo_event_rpc_call, rpc_call, $name, $id)
    };
}

/// Ends a [call](crate::rpc_call), on the caller's side.
#[macro_export]
macro_rules! rpc_return {
    ($name:expr, $id:expr) => {
        $crate::marked!(kymo_event_rpc_return, rpc_return, $name, $id)
    };
}

/// Begins to serve a [call](crate::rpc_call).
#[macro_export]
macro_rules! rpc_dispatch {
    ($name:expr, $id:expr) => {
        $crate::marked!(kymo_event_rpc_dispatch, rpc_dispatch, $name, $id)
    };
}

/// Answers a [call](crate::rpc_call).
#[macro_export]
macro_rules! rpc_reply {
    ($name:expr, $id:expr) => {
        $crate::marked!(kymo_event_rpc_reply, rpc_reply, $name, $id)
    };
}

/// Submits a signal to a context, with the number of signals at once.
#[macro_export]
macro_rules! signal_submit {
    ($context:expr, $number:expr) => {
        $crate::marked!(kymo_event_signal_submit, signal_submit, $context, $number)
    };
}

/// Receives a [signal](crate::signal_submit), with the number of signals at once.
#[macro_export]
macro_rules! signal_receive {
    ($context:expr, $number:expr) => {
        $crate::marked!(kymo_event_signal_receive, signal_receive, $context, $number)
    };
}

/// Records a packet of a network: the name of its interface, its
/// [direction](crate::marks::Direction), and its bytes from the head of Ethernet on, of which
/// the event has those up to the [snap length](crate::marks::set_snap_length).
///
/// ```
/// use kymo_tracer::marks::Direction;
///
/// let frame = [0; 60];
/// kymo_tracer::packet!("eth0", Direction::Inbound, &frame);
/// ```
#[macro_export]
macro_rules! packet {
    ($interface:expr, $direction:expr, $data:expr) => {
        $crate::marked!(kymo_event_packet, packet, $interface, $direction, $data)
    };
}

/// Records a duration from here to the end of the block, however control leaves the block:
/// `kymo:begin` and `kymo:end`. The name must live as long.
///
/// ```
/// fn parse(text: &str) -> usize {
///     kymo_tracer::scope!("parse");
///     text.len()
/// }
/// assert_eq!(parse("abc"), 3);
/// ```
#[macro_export]
macro_rules! scope {
    ($name:expr) => {
        $crate::known!(kymo_event_begin);
        $crate::known!(kymo_event_end);
        let place = 0;
        let _scope = $crate::marks::Scope::begin($name, &place);
    };
}

/// Records `kymo:log`: a [level](crate::marks::Level), and a text with the syntax of `format!`.
/// Arguments are evaluated only while the event is on.
///
/// ```
/// use kymo_tracer::marks::Level;
/// kymo_tracer::log!(Level::Info, "{} connections", 3);
/// ```
#[macro_export]
macro_rules! log {
    ($level:expr, $($text:tt)+) => {
        $crate::marked!(kymo_event_log, log, $level, format_args!($($text)+))
    };
}
