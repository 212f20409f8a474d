//! System calls: which call a number means, and the types of its arguments.
//!
//! The kernel records all calls as two events, with the number and six words (`raw_syscalls`); it describes the arguments of
//! each call where it would record it on its own (`syscalls/sys_enter_NAME`).
//!
//! | argument | in the trace |
//! |---|---|
//! | a number | an integer of the size and sign of its type |
//! | text (`const char *filename`) | the text, where texts are recorded; otherwise its address, `filename_address` |
//! | another address | an integer of its name, hexadecimal |
//!
//! Behind the arguments, `unreadable` has a bit for each argument if its text is not known.

use std::collections::HashMap;

use syscalls::Sysno;

use crate::compat;
use crate::format::{EventFormat, FormatField};
use crate::plan::{ARGUMENTS_MAX, EventPlan, PlanBuilder};

/// The kernel's events of the begin and the end of any call.
const CALL_ENTRY: &str = "raw_syscalls:sys_enter";
const CALL_EXIT: &str = "raw_syscalls:sys_exit";
/// Where a record of a call has its parts.
pub(crate) const NUMBER: u32 = 8;
pub(crate) const ARGUMENTS: u32 = 16;
const RESULT: u32 = 16;
/// Where it is in records of whole calls: behind the arguments.
pub(crate) const WHOLE_RESULT: u32 = 64;
const WORD: u8 = 8;
/// The field that tells which texts are not known.
const UNREADABLE: &str = "unreadable";

/// Calls whose event has another name than the number.
pub(crate) const OTHER_NAMES: [(&str, &str); 8] = [
    ("stat", "newstat"),
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("uname", "newuname"),
    ("umount2", "umount"),
    ("sendfile", "sendfile64"),
    ("fadvise64", "fadvise64_64"),
    ("_sysctl", "sysctl"),
];

/// Arguments of `char *` that LTTng takes for addresses, not for texts.
const NO_TEXTS: [&str; 12] = [
    "buf",
    "ubuf",
    "list",
    "optval",
    "u_msg_ptr",
    "shmaddr",
    "special",
    "_description",
    "_callout_info",
    "uargs",
    "cmdline_ptr",
    "_key",
];

/// Bytes of an argument, whether it is signed, and whether people want to see it in hexadecimal.
type ArgumentType = (u8, bool, bool);

/// Arguments to which LTTng gives other names and types than the kernel: the call, the kernel's name, LTTng's, and its type.
const OTHER_ARGUMENTS: [(&str, &str, &str, ArgumentType); 12] = [
    ("clone", "clone_flags", "clone_flags", (8, false, true)),
    ("clone", "newsp", "newsp", (8, false, true)),
    ("clone", "parent_tidptr", "parent_tid", (8, false, true)),
    ("clone", "child_tidptr", "child_tid", (8, false, true)),
    ("connect", "addrlen", "addrlen", (4, true, true)),
    ("ftruncate", "length", "length", (8, false, false)),
    ("getcpu", "unused", "tcache", (8, false, true)),
    ("mmap", "addr", "addr", (8, false, true)),
    ("mmap", "prot", "prot", (4, true, false)),
    ("mmap", "flags", "flags", (4, true, false)),
    ("mmap", "fd", "fd", (4, true, false)),
    ("mmap", "off", "offset", (8, true, false)),
];

/// A numbering of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallTable {
    /// Those of this machine.
    Native,
    /// Those of 32-bit programs on x86.
    Compat,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CallArgument {
    name: String,
    kind: ArgumentKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentKind {
    Text,
    Integer(ArgumentType),
}

/// The arguments of calls, by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallFormats {
    calls: HashMap<String, Vec<CallArgument>>,
    /// Texts are recorded, too.
    pub(crate) has_texts: bool,
}

impl CallFormats {
    /// Adds the description of a call's beginning; others are passed over.
    pub(crate) fn add(&mut self, format: &EventFormat) {
        if let Some(name) = format.name.strip_prefix("sys_enter_") {
            let fields = format.fields.iter().filter(|field| field.name != "__syscall_nr");
            let arguments = fields.take(ARGUMENTS_MAX).map(|field| named(name, field));
            self.calls.insert(name.to_owned(), arguments.collect());
        }
    }

    /// The name of the call with a number, as the kernel's events have it.
    pub(crate) fn name(&self, table: CallTable, number: u64) -> Option<String> {
        if table == CallTable::Compat {
            return compat::name(number);
        }
        let name = usize::try_from(number).ok().and_then(Sysno::new)?.name();
        if self.calls.contains_key(name) {
            return Some(name.to_owned());
        }
        let other = OTHER_NAMES.iter().find(|(known, other)| *known == name && self.calls.contains_key(*other));
        Some(other.map_or(name, |(_, other)| other).to_owned())
    }

    /// Whether the kernel describes the call with a number.
    pub(crate) fn describes(&self, number: u64) -> bool {
        self.name(CallTable::Native, number).is_some_and(|name| self.calls.contains_key(&name))
    }

    /// Arguments of the call with a name; `None`: they are not known.
    fn arguments(&self, table: CallTable, name: &str) -> Option<Vec<CallArgument>> {
        if table == CallTable::Native {
            return Some(self.calls.get(name).cloned().unwrap_or_default());
        }
        if let Some(own) = compat::own_arguments(name) {
            let argument = |(name, is_text): (&str, bool)| CallArgument {
                name: name.to_owned(),
                kind: if is_text { ArgumentKind::Text } else { ArgumentKind::Integer((8, false, true)) },
            };
            return Some(own.map(argument).collect());
        }
        self.calls.get(compat::like(name)?).cloned()
    }

    /// A bit for each argument of a call that is a text.
    pub(crate) fn texts(&self, table: CallTable, number: u64) -> u8 {
        let arguments = self.name(table, number).and_then(|name| self.arguments(table, &name)).unwrap_or_default();
        let texts = arguments.iter().enumerate().filter(|(_, argument)| argument.kind == ArgumentKind::Text);
        texts.fold(0, |mask, (at, _)| mask | 1 << at)
    }

    /// The plan for the beginning of a call.
    pub(crate) fn entry(&self, table: CallTable, number: u64) -> EventPlan {
        let mut builder = PlanBuilder::default();
        self.arguments_of(table, number, &mut builder);
        builder.build(self.event("entry", table, number), CALL_ENTRY.to_owned())
    }

    /// The plan for the end of a call that has its arguments, too, and behind its result a time of this name, if there is one.
    pub(crate) fn whole(&self, table: CallTable, number: u64, time: Option<&str>) -> EventPlan {
        let mut builder = PlanBuilder::default();
        self.arguments_of(table, number, &mut builder);
        builder.integer("ret", (WHOLE_RESULT, WORD), (8, true, false));
        if let Some(time) = time {
            builder.integer(time, (WHOLE_RESULT + u32::from(WORD), WORD), (8, false, false));
        }
        builder.build(self.event("exit", table, number), CALL_EXIT.to_owned())
    }

    /// The name of an event of a call.
    fn event(&self, word: &str, table: CallTable, number: u64) -> String {
        let name = self.name(table, number);
        format!("{}syscall_{word}_{}", prefix(table), name.as_deref().unwrap_or("unknown"))
    }

    /// Adds the arguments of a call.
    fn arguments_of(&self, table: CallTable, number: u64, builder: &mut PlanBuilder) {
        let name = self.name(table, number);
        let arguments = name.as_ref().and_then(|name| self.arguments(table, name));
        if name.is_none() {
            builder.integer("id", (NUMBER, WORD), (4, true, false));
        }
        let Some(arguments) = arguments else {
            builder.integers("args", (ARGUMENTS, WORD), ARGUMENTS_MAX as u32, true);
            return;
        };
        let mut texts = 0;
        for (at, argument) in (0_u8..).zip(&arguments) {
            let from = ARGUMENTS + u32::from(WORD) * u32::from(at);
            match argument.kind {
                ArgumentKind::Text if self.has_texts => {
                    texts |= 1 << at;
                    builder.user_text(&argument.name, at);
                }
                ArgumentKind::Text => {
                    builder.integer(&format!("{}_address", argument.name), (from, WORD), (8, false, true));
                }
                // A word of a 32-bit program has 4 bytes.
                ArgumentKind::Integer((8, true, is_hex)) if table == CallTable::Compat => {
                    builder.integer(&argument.name, (from, 4), (8, true, is_hex));
                }
                ArgumentKind::Integer(kind) => builder.integer(&argument.name, (from, WORD), kind),
            }
        }
        if texts != 0 {
            builder.unknown_texts(UNREADABLE, texts, ARGUMENTS);
        }
    }

    /// The plan for the end of a call.
    pub(crate) fn exit(&self, table: CallTable, number: u64) -> EventPlan {
        let mut builder = PlanBuilder::default();
        let name = self.name(table, number);
        if name.is_none() {
            builder.integer("id", (NUMBER, WORD), (4, true, false));
        }
        builder.integer("ret", (RESULT, WORD), (8, true, false));
        builder.build(self.event("exit", table, number), CALL_EXIT.to_owned())
    }
}

fn prefix(table: CallTable) -> &'static str {
    match table {
        CallTable::Native => "",
        CallTable::Compat => "compat_",
    }
}

/// LTTng's name of an argument of a call, and its type.
fn named(call: &str, argument: &FormatField) -> CallArgument {
    let other = OTHER_ARGUMENTS.iter().find(|(of, kernel, ..)| *of == call && *kernel == argument.name);
    if let Some((_, _, name, kind)) = other {
        return CallArgument { name: (*name).to_owned(), kind: ArgumentKind::Integer(*kind) };
    }
    let is_text = is_text_address(&argument.type_name) && !NO_TEXTS.contains(&argument.name.as_str());
    let kind = if is_text { ArgumentKind::Text } else { ArgumentKind::Integer(argument_type(argument)) };
    CallArgument { name: argument.name.clone(), kind }
}

fn is_text_address(type_name: &str) -> bool {
    matches!(type_name.split_ascii_whitespace().collect::<Vec<_>>()[..], ["char", "*"] | ["const", "char", "*"])
}

fn argument_type(argument: &FormatField) -> ArgumentType {
    if argument.is_pointer() {
        return (8, false, true);
    }
    let is_unsigned = argument.type_name.split(' ').any(|word| word == "unsigned");
    match argument.type_name.rsplit(' ').next().unwrap_or("") {
        "int" | "unsigned" => (4, !is_unsigned, false),
        "short" => (2, !is_unsigned, false),
        "char" => (1, !is_unsigned, false),
        "pid_t" | "key_t" | "s32" | "__s32" | "clockid_t" | "mqd_t" | "key_serial_t" | "timer_t" | "rwf_t" => {
            (4, true, false)
        }
        "uid_t" | "gid_t" | "u32" | "__u32" | "qid_t" => (4, false, false),
        "umode_t" | "u16" | "__u16" => (2, false, false),
        "old_uid_t" | "old_gid_t" => (2, false, false),
        "long" => (8, !is_unsigned, false),
        "off_t" | "loff_t" | "ssize_t" | "s64" | "__s64" => (8, true, false),
        "size_t" | "u64" | "__u64" => (8, false, false),
        _ => (8, false, true),
    }
}
