//! Events as USDT probes: a note in the ELF file for each event, which tools such as bpftrace, perf
//! and `kymo record --usdt` find.
//!
//! ```text
//! control byte == attached ── both 0: nothing
//!    └ not equal ─┬─ attached: values in memory, texts with a zero at their end, then nop, where the kernel puts its breakpoint
//!                 └─ control byte: filter, record
//! ```
//!
//! `kymo/usdt.h` does the same for C, and describes `attached`: its upper half is the semaphore that the kernel increments.

#![allow(unsafe_code, reason = "arguments lie in memory as those of C do")]

use core::slice::IterMut;

use crate::Field;
use crate::field::Part;

/// A copy of a text that ends with a zero, as tools need it; longer texts are cut.
pub type TextCopy = [u8; 256];

/// Runs a function that hardly ever runs, out of line.
#[cold]
#[inline(never)]
pub fn rarely(does: impl FnOnce()) {
    does();
}

/// Bytes of a value as notes have it: negative for signed integers. Floating-point numbers are given as their bits, because
/// readers know none in memory.
#[must_use]
pub const fn size<T: Field>() -> i32 {
    let bytes = match size_of::<T::Argument>() {
        bytes @ (1 | 2 | 4) => bytes as i32,
        // The address of a text or sequence comes before its length.
        _ => 8,
    };
    if is_signed(T::TYPE) { -bytes } else { bytes }
}

const fn is_signed(kind: &[Part]) -> bool {
    match kind {
        [Part::Text(name), ..] => matches!(name.as_bytes(), [b'i', ..] | [b'e', b'n', b'u', b'm', b' ', b'i', ..]),
        _ => false,
    }
}

/// How many copies of texts values of a type need.
#[must_use]
pub const fn copies<T: Field>() -> usize {
    matches!(T::TYPE, [Part::Text(name)] if matches!(name.as_bytes(), b"text")) as usize
}

/// The value of a field, or the address of a text or of elements.
#[inline]
pub fn value<T: Field>(argument: &T::Argument, texts: &mut IterMut<'_, TextCopy>) -> u64 {
    let mut words = [0_u64; 2];
    let bytes = size_of::<T::Argument>().min(size_of_val(&words));
    // Safety: both have so many bytes, and arguments of fields have no padding.
    unsafe { core::ptr::copy_nonoverlapping((&raw const *argument).cast::<u8>(), words.as_mut_ptr().cast(), bytes) };
    if copies::<T>() == 0 {
        return words[0];
    }
    let [address, length] = words;
    let Some(copy) = texts.next() else { return 0 };
    let length = (length as usize).min(copy.len() - 1);
    // Safety: a text has so many bytes, and the copy has room for them.
    unsafe { core::ptr::copy_nonoverlapping(address as *const u8, copy.as_mut_ptr(), length) };
    copy[length] = 0;
    copy.as_ptr().addr() as u64
}

/// Bytes of a name in a note: of longer ones, the rest is left out.
#[must_use]
pub const fn name_bytes(name: &str) -> usize {
    let bytes = provider_before(name).len() + name.len();
    if bytes < NAME_MAX { bytes } else { NAME_MAX }
}

const NAME_MAX: usize = 128;

/// The provider of events whose names have none, with its colon: tools refuse a file with a note without a provider or name.
const fn provider_before(name: &str) -> &'static str {
    let (bytes, mut at) = (name.as_bytes(), 0);
    if bytes.is_empty() {
        return "none:unnamed";
    }
    while at < bytes.len() && at + 1 < NAME_MAX && bytes[at] != b':' {
        at += 1;
    }
    if at > 0 && at + 1 < bytes.len() && at + 1 < NAME_MAX && bytes[at] == b':' { "" } else { "none:" }
}

/// Eight bytes of `provider:name`. The first colon becomes the zero behind the provider.
#[must_use]
pub const fn name_word(name: &str, number: usize) -> i64 {
    let (before, name) = (provider_before(name).as_bytes(), name.as_bytes());
    let (mut word, mut at, mut is_provider) = ([0; 8], 0, true);
    while at < before.len() + name.len() && at < number * 8 + 8 {
        let byte = if at < before.len() { before[at] } else { name[at - before.len()] };
        let is_colon = is_provider && byte == b':';
        is_provider &= !is_colon;
        if at >= number * 8 && !is_colon {
            word[at - number * 8] = byte;
        }
        at += 1;
    }
    i64::from_le_bytes(word)
}

/// The probe of an event, if a tool is attached to it: its first twelve fields, out of line.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[doc(hidden)]
#[macro_export]
macro_rules! probed {
    (@take $event:ident $name:literal $arguments:ident ($($taken:tt)*) ($place:literal $($places:literal)*)
        ($field:ident: $type:ty, $($rest:tt)*)) => {
        $crate::probed!(@take $event $name $arguments ($($taken)* ($place $field: $type)) ($($places)*) ($($rest)*))
    };
    (@take $event:ident $name:literal $arguments:ident () $places:tt ()) => {
        $crate::usdt_note!($name, (), event = sym $event, own = in(reg) &raw const $event)
    };
    (@take $event:ident $name:literal $arguments:ident (($first:literal $field:ident: $type:ty) $(($place:literal $fields:ident: $types:ty))*)
        $places:tt $rest:tt) => {{
        const TEXTS: usize = $crate::usdt::copies::<$type>() $(+ $crate::usdt::copies::<$types>())*;
        let mut texts: [$crate::usdt::TextCopy; TEXTS] = [[0; _]; TEXTS];
        let mut texts = texts.iter_mut();
        let seen = [
            $crate::usdt::value::<$type>(&$arguments.$field, &mut texts),
            $($crate::usdt::value::<$types>(&$arguments.$fields, &mut texts)),*
        ];
        $crate::usdt_note!(
            $name,
            ((".ascii \"{}@", $crate::usdt_place!($first), "\"") $((".ascii \" {}@", $crate::usdt_place!($place), "\""))*),
            const $crate::usdt::size::<$type>(), $(const $crate::usdt::size::<$types>(),)*
            event = sym $event, own = in(reg) &raw const $event, seen = in(reg) seen.as_ptr()
        )
    }};
    ($event:ident, $name:literal, $arguments:ident, $($fields:tt)*) => {
        if $event.is_attached() {
            $crate::usdt::rarely(|| $crate::probed!(@take $event $name $arguments () (0 8 16 24 32 40 48 56 64 72 80 88) ($($fields)*)));
        }
    };
}

/// There are no probes without a tracer.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! probed {
    ($($any:tt)*) => {};
}

/// A number behind the address in a register, as notes have it.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! usdt_place {
    ($offset:literal) => {
        concat!($offset, "(%{seen})")
    };
}

/// A number behind the address in a register, as notes have it.
#[cfg(not(target_arch = "x86_64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! usdt_place {
    ($offset:literal) => {
        concat!("[{seen}, ", $offset, "]")
    };
}

/// The instruction, and its note as `<sys/sdt.h>` writes it. Names are numbers, since they may have any characters. The flag `?`
/// puts the note into the group of a function that the linker may drop; the base tells tools that a file was moved. The semaphore
/// is the upper half of the event's word, 28 bytes behind its begin.
#[doc(hidden)]
#[macro_export]
macro_rules! usdt_note {
    ($name:literal, ($(($($argument:tt)*))*), $($operands:tt)*) => {
        // Safety: an instruction that does nothing. A tool that changes the program there answers for that itself.
        unsafe {
            ::core::arch::asm!(
                "990: nop",
                // A linker does not take it for the equal instructions of another event.
                "/* {own} */",
                ".pushsection .note.stapsdt,\"?\",\"note\"",
                ".balign 4",
                ".4byte 992f-991f, 994f-993f, 3",
                "991: .asciz \"stapsdt\"",
                "992: .balign 4",
                "993: .8byte 990b",
                ".8byte _.stapsdt.base",
                ".8byte {event}+30",
                ".set .Lkymo_at, 0",
                ".irp word, {w0}, {w1}, {w2}, {w3}, {w4}, {w5}, {w6}, {w7}, {w8}, {w9}, {w10}, {w11}, {w12}, {w13}, {w14}, {w15}",
                ".set .Lkymo_word, \\word",
                ".rept 8",
                ".if .Lkymo_at < {length}",
                ".byte .Lkymo_word & 255",
                ".set .Lkymo_word, .Lkymo_word >> 8",
                ".set .Lkymo_at, .Lkymo_at + 1",
                ".endif",
                ".endr",
                ".endr",
                ".byte 0",
                $(concat!($($argument)*),)*
                ".byte 0",
                "994: .balign 4",
                ".popsection",
                ".ifndef _.stapsdt.base",
                ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat",
                ".weak _.stapsdt.base",
                ".hidden _.stapsdt.base",
                ".set _.stapsdt.base, .",
                ".space 1",
                ".size _.stapsdt.base, 1",
                ".popsection",
                ".endif",
                $($operands)*,
                length = const $crate::usdt::name_bytes($name),
                w0 = const $crate::usdt::name_word($name, 0),
                w1 = const $crate::usdt::name_word($name, 1),
                w2 = const $crate::usdt::name_word($name, 2),
                w3 = const $crate::usdt::name_word($name, 3),
                w4 = const $crate::usdt::name_word($name, 4),
                w5 = const $crate::usdt::name_word($name, 5),
                w6 = const $crate::usdt::name_word($name, 6),
                w7 = const $crate::usdt::name_word($name, 7),
                w8 = const $crate::usdt::name_word($name, 8),
                w9 = const $crate::usdt::name_word($name, 9),
                w10 = const $crate::usdt::name_word($name, 10),
                w11 = const $crate::usdt::name_word($name, 11),
                w12 = const $crate::usdt::name_word($name, 12),
                w13 = const $crate::usdt::name_word($name, 13),
                w14 = const $crate::usdt::name_word($name, 14),
                w15 = const $crate::usdt::name_word($name, 15),
                options(nostack, preserves_flags)
            )
        }
    };
}

#[cfg(test)]
mod tests {
    use super::{name_bytes, name_word, size, value};
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    use crate::{Field, Hex};

    #[test]
    fn names_are_numbers() {
        let name = "shop:nested:name";
        let bytes: Vec<u8> = (0..3).flat_map(|number| name_word(name, number).to_le_bytes()).collect();
        assert_eq!(&bytes[..], b"shop\0nested:name\0\0\0\0\0\0\0\0");
        let long = "a".repeat(200);
        assert_eq!((name_bytes(name), name_bytes(&long)), (16, 128));
        // Each note has a provider and a name.
        let noted = |name: &str| {
            let bytes = (0..16).flat_map(|number| name_word(name, number).to_le_bytes());
            String::from_utf8(bytes.take(name_bytes(name)).collect()).expect("it is text")
        };
        assert_eq!(noted("tick"), "none\0tick");
        assert_eq!(
            (noted(":x"), noted("x:"), noted("")),
            ("none\0:x".into(), "none\0x:".into(), "none\0unnamed".into())
        );
        assert!(noted(&format!("{long}:x")).starts_with("none\0aaa"));
        let longest = "a".repeat(126);
        assert_eq!(noted(&format!("{longest}:x")), format!("{longest}\0x"));
    }

    #[test]
    fn values_have_sizes_and_signs() {
        let sizes = [size::<u8>(), size::<i16>(), size::<Hex<u32>>(), size::<i64>(), size::<f32>(), size::<bool>()];
        assert_eq!(sizes, [1, -2, 4, -8, 4, 1]);
        assert_eq!([size::<&str>(), size::<&[i8]>(), size::<[i32; 2]>(), size::<*const u8>()], [8; 4]);
        assert_eq!(size::<crate::marks::Level>(), 1);
    }

    #[test]
    fn copies_of_texts_end_with_a_zero() {
        let mut copies = [[b'x'; 256]; 2];
        let mut texts = copies.iter_mut();
        assert_eq!(value::<i16>(&-2, &mut texts), 0xfffe);
        assert_eq!(value::<f64>(&1.5, &mut texts), 1.5_f64.to_bits());
        let long = "a".repeat(300);
        let addresses = ["short", &long].map(|text| value::<&str>(&text.argument(), &mut texts));
        assert_eq!(addresses, [0, 1].map(|at| copies[at].as_ptr().addr() as u64));
        assert_eq!((&copies[0][..6], &copies[1][254..]), (&b"short\0"[..], &b"a\0"[..]));
    }
}
