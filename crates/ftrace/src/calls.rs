//! System calls: which call a number means, and the types of its arguments.
//!
//! The kernel records all calls as two events, with the number and six words (`raw_syscalls`); it describes the arguments of
//! each call where it would record it on its own (`syscalls/sys_enter_NAME`).
//!
//! | argument | in the trace |
//! |---|---|
//! | a number | an integer of the size and sign of its type |
//! | text (`const char *filename`) | its address, `filename_address` |
//! | another address | an integer of its name, hexadecimal |

use std::collections::HashMap;

use syscalls::Sysno;

use crate::format::{EventFormat, FormatField};
use crate::plan::{EventPlan, PlanBuilder};

/// Where a record of a call has its parts.
pub(crate) const NUMBER: u32 = 8;
const ARGUMENTS: u32 = 16;
const RESULT: u32 = 16;
const WORD: u8 = 8;
/// Arguments of a call at most.
const ARGUMENTS_MAX: usize = 6;

/// Calls whose event has another name than the number.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("stat", "newstat"),
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("uname", "newuname"),
    ("umount2", "umount"),
    ("sendfile", "sendfile64"),
    ("fadvise64", "fadvise64_64"),
    ("_sysctl", "sysctl"),
];

/// The arguments of calls, by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallFormats(HashMap<String, Vec<FormatField>>);

impl CallFormats {
    /// Adds the description of a call's beginning; others are passed over.
    pub(crate) fn add(&mut self, format: &EventFormat) {
        if let Some(name) = format.name.strip_prefix("sys_enter_") {
            let arguments = format.fields.iter().filter(|field| field.name != "__syscall_nr").cloned();
            self.0.insert(name.to_owned(), arguments.take(ARGUMENTS_MAX).collect());
        }
    }

    /// The name of the call with a number, as the kernel's events have it.
    pub(crate) fn name(&self, number: u64) -> Option<String> {
        let name = usize::try_from(number).ok().and_then(Sysno::new)?.name();
        if self.0.contains_key(name) {
            return Some(name.to_owned());
        }
        let other = OTHER_NAMES.iter().find(|(known, other)| *known == name && self.0.contains_key(*other));
        Some(other.map_or(name, |(_, other)| other).to_owned())
    }

    /// The plan for the beginning of a call.
    pub(crate) fn entry(&self, number: u64) -> EventPlan {
        let mut builder = PlanBuilder::default();
        let Some(name) = self.name(number) else {
            builder.integer("id", (NUMBER, WORD), (4, true, false));
            builder.integers("args", (ARGUMENTS, WORD), ARGUMENTS_MAX as u32, true);
            return builder.build("syscall_entry_unknown".to_owned());
        };
        for (at, argument) in self.0.get(&name).map_or(&[][..], Vec::as_slice).iter().enumerate() {
            let (bytes, is_signed, is_hex) = argument_type(argument);
            let is_path = is_text_address(&argument.type_name);
            let field = if is_path { format!("{}_address", argument.name) } else { argument.name.clone() };
            let from = ARGUMENTS + u32::from(WORD) * at as u32;
            builder.integer(&field, (from, WORD), (bytes, is_signed, is_hex));
        }
        builder.build(format!("syscall_entry_{name}"))
    }

    /// The plan for the end of a call.
    pub(crate) fn exit(&self, number: u64) -> EventPlan {
        let mut builder = PlanBuilder::default();
        let name = self.name(number);
        if name.is_none() {
            builder.integer("id", (NUMBER, WORD), (4, true, false));
        }
        builder.integer("ret", (RESULT, WORD), (8, true, false));
        builder.build(format!("syscall_exit_{}", name.as_deref().unwrap_or("unknown")))
    }
}

fn is_text_address(type_name: &str) -> bool {
    type_name.ends_with('*')
        && type_name.trim_end_matches(['*', ' ']).rsplit(' ').next() == Some("char")
        && !type_name.contains("**")
        && !type_name.contains("* *")
}

/// Bytes of an argument, whether it is signed, and whether people want to see it in hexadecimal.
fn argument_type(argument: &FormatField) -> (u8, bool, bool) {
    if argument.is_pointer() {
        return (8, false, true);
    }
    let is_unsigned = argument.type_name.split(' ').any(|word| word == "unsigned");
    match argument.type_name.rsplit(' ').next().unwrap_or("") {
        "int" | "unsigned" => (4, !is_unsigned, false),
        "short" => (2, !is_unsigned, false),
        "char" => (1, !is_unsigned, false),
        "pid_t" | "s32" | "__s32" | "clockid_t" | "mqd_t" | "key_serial_t" | "timer_t" | "rwf_t" => (4, true, false),
        "uid_t" | "gid_t" | "u32" | "__u32" | "qid_t" => (4, false, false),
        "umode_t" | "u16" | "__u16" => (2, false, false),
        "old_uid_t" | "old_gid_t" => (2, false, false),
        "long" => (8, !is_unsigned, false),
        "off_t" | "loff_t" | "ssize_t" | "s64" | "__s64" => (8, true, false),
        "size_t" | "u64" | "__u64" => (8, false, false),
        _ => (8, false, true),
    }
}
