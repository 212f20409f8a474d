//! Macros with which Rust programs declare events.

/// Defines functions that record events.
///
/// Each function has the given name, visibility and fields. Field types implement
/// [`Field`](crate::Field): integers, `f32`, `f64`, `bool`, [`Hex`](crate::Hex), `&str`,
/// `*const T`, arrays and slices of numbers, and enums of [`labels!`](crate::labels). The name of the
/// event, `provider:name`, may be followed by its log level and its role. Log levels are those of
/// LTTng (0 emergency to 6 info, 14 debug, which is the default). Modules that `kymo schema build` makes add `lines` of
/// the definition. Names that are keywords are written as `r#type`.
///
/// While the event is off, a call costs three loads and a branch. Each event is a USDT probe, too (`usdt`).
///
/// ```
/// kymo_tracer::event! {
///     /// A packet goes out.
///     pub fn packet_sent(port: u16, host: &str) = "net:packet_sent", level 6;
/// }
/// packet_sent(443, "example.org");
/// ```
#[macro_export]
macro_rules! event {
    ($(
        $(#[$meta:meta])*
        $visibility:vis fn $function:ident($($field:ident: $type:ty),* $(,)?) = $name:literal
        $(, level $level:literal)? $(, role $role:literal)? $(, lines $lines:literal)?;
    )*) => {$(
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "an event has the fields that it has")]
        #[inline]
        $visibility fn $function($($field: $type),*) {
            use $crate::field::Part;
            const LINES: &[&[Part]] = &[
                &[Part::Text("event "), Part::Text($name), Part::Text("\n")],
                $(&[Part::Text("level "), Part::Number($level), Part::Text("\n")],)?
                $(&[Part::Text("role "), Part::Text($role), Part::Text("\n")],)?
                $(&[Part::Text($lines)],)?
                &[Part::Text("source "), Part::Text(file!()), Part::Text(":"), Part::Number(line!() as i128), Part::Text("\n")],
                $(
                    &[Part::Text("field ")],
                    <$type as $crate::Field>::TYPE,
                    &[Part::Text(" "), Part::Text($crate::field::plain(stringify!($field))), Part::Text("\n")],
                )*
            ];
            static TEXT: [u8; $crate::field::text_bytes(LINES)] = $crate::field::text(LINES);
            #[cfg_attr(
                all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")),
                unsafe(link_section = ".probes")
            )]
            static EVENT: $crate::Event = $crate::Event::new(&TEXT);
            $crate::registered!(EVENT);
            $crate::recorded!(EVENT as $name, $($field: $type),*);
        }
    )*};
}

/// Defines functions that record a duration with two events: one now, one when the returned guard is dropped.
///
/// ```
/// kymo_tracer::event! {
///     fn fetch_begin(page: &str) = "cache:fetch_begin", level 6;
///     fn fetch_end() = "cache:fetch_end", level 6;
/// }
/// kymo_tracer::duration! {
///     /// A page is fetched.
///     pub fn fetch(page: &str) -> Fetch = fetch_begin, fetch_end;
/// }
/// let _fetch = fetch("/");
/// ```
#[macro_export]
macro_rules! duration {
    ($(
        $(#[$meta:meta])*
        $visibility:vis fn $function:ident($($field:ident: $type:ty),* $(,)?) -> $guard:ident = $begin:ident, $end:ident;
    )*) => {$(
        #[doc = concat!("Records the end of `", stringify!($function), "` when it is dropped.")]
        #[derive(Debug)]
        $visibility struct $guard(());

        impl Drop for $guard {
            #[inline]
            fn drop(&mut self) {
                $end();
            }
        }

        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "an event has the fields that it has")]
        #[inline]
        #[must_use = "the duration ends where this is dropped"]
        $visibility fn $function($($field: $type),*) -> $guard {
            $begin($($field),*);
            $guard(())
        }
    )*};
}

/// Records an event with these fields, if it is on. With a name, it is a USDT probe, too.
#[doc(hidden)]
#[macro_export]
macro_rules! recorded {
    ($event:ident, $($field:ident: $type:ty),*) => {
        $crate::recorded!(@if is_on, $event, arguments, (), $($field: $type),*)
    };
    ($event:ident as $name:literal, $($field:ident: $type:ty),*) => {
        $crate::recorded!(
            @if is_wanted, $event, arguments, ($crate::probed!($event, $name, arguments, $($field: $type,)*);), $($field: $type),*
        )
    };
    (@if $is_asked:ident, $event:ident, $arguments:ident, ($($probe:tt)*), $($field:ident: $type:ty),*) => {{
        const FIXED: u64 = 0 $(+ <$type as $crate::Field>::FIXED)*;
        const { assert!(FIXED <= $crate::FIELD_BYTES_MAX, "an event is at most so large") };
        if $event.$is_asked() {
            $crate::field::rarely();
            #[allow(non_camel_case_types, clippy::builtin_type_shadow, reason = "types are called as the fields that have them")]
            #[repr(C)]
            struct Arguments<$($field),*> { $($field: $field),* }
            let $arguments = Arguments { $($field: $crate::Field::argument(&$field)),* };
            $($probe)*
            if $event.is_kept(&$arguments) {
                let mut varying: [u64; _] = [$($crate::Field::varying(&$field)),*];
                let is_cut = FIXED + varying.iter().sum::<u64>() > $crate::FIELD_BYTES_MAX
                    && $crate::field::cut(&mut varying, &[$(<$type as $crate::Field>::PIECE),*], FIXED);
                if let Some(mut write) = $event.enter(FIXED + varying.iter().sum::<u64>()) {
                    let mut _varying = varying.into_iter();
                    $($crate::Field::put(&$field, &mut write, _varying.next().unwrap_or(0));)*
                    if is_cut {
                        write.was_cut();
                    }
                    write.leave();
                }
            }
        }
    }};
}

/// Registers an event when the program or library that contains it is loaded, and unregisters it
/// when it is unloaded.
#[doc(hidden)]
#[macro_export]
macro_rules! registered {
    ($event:ident) => {
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        const _: () = {
            extern "C" fn begin() {
                $event.register();
            }

            extern "C" fn end() {
                $event.unregister();
            }

            #[used]
            #[unsafe(link_section = ".init_array")]
            static BEGIN: extern "C" fn() = begin;
            #[used]
            #[unsafe(link_section = ".fini_array")]
            static END: extern "C" fn() = end;
        };
    };
}

/// Defines an enum that events can have as a field, with labels for its values: their names, or texts behind these.
///
/// ```
/// kymo_tracer::labels! {
///     /// What a worker does.
///     pub enum State: u8 { Idle = 0, Busy "busy" = 1 }
/// }
/// kymo_tracer::event! { fn changed(state: State) = "worker:changed"; }
/// changed(State::Busy);
/// ```
#[macro_export]
macro_rules! labels {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident: $type:ident { $($label:ident $($text:literal)? = $value:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr($type)]
        $visibility enum $name {
            $(#[allow(missing_docs, reason = "its name says it")] $label = $value),+
        }

        impl $crate::Field for $name {
            const TYPE: &'static [$crate::field::Part] = &[
                $crate::field::Part::Text(concat!("enum ", stringify!($type), "(")),
                $(
                    $crate::field::Part::Text($crate::field::label(&[$($text,)? stringify!($label)])),
                    $crate::field::Part::Text("="),
                    $crate::field::Part::Number($name::$label as $type as i128),
                    $crate::field::Part::Text(","),
                )+
                $crate::field::Part::Text(")"),
            ];
            const FIXED: u64 = size_of::<$type>() as u64;
            type Argument = $type;

            #[inline]
            fn argument(&self) -> $type {
                *self as $type
            }

            #[inline]
            fn put(&self, write: &mut $crate::Write, _: u64) {
                write.put(&(*self as $type).to_le_bytes());
            }
        }
    };
}
