//! Log levels: numbers from 0, the most severe, and what they are called in each place.

/// A log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLevel {
    /// In options and definitions: `debug_system`.
    pub name: &'static str,
    /// In attributes of CTF 2: `debug:system`.
    pub attribute: &'static str,
    /// In the headers of LTTng, as the reference prints it: `TRACE_DEBUG_SYSTEM`.
    pub constant: &'static str,
    /// In text for people: `Debug (system)`.
    pub title: &'static str,
}

/// All levels, by their numbers.
pub const LEVELS: [LogLevel; 15] = [
    LogLevel { name: "emergency", attribute: "emergency", constant: "TRACE_EMERG", title: "Emergency" },
    LogLevel { name: "alert", attribute: "alert", constant: "TRACE_ALERT", title: "Alert" },
    LogLevel { name: "critical", attribute: "critical", constant: "TRACE_CRIT", title: "Critical" },
    LogLevel { name: "error", attribute: "error", constant: "TRACE_ERR", title: "Error" },
    LogLevel { name: "warning", attribute: "warning", constant: "TRACE_WARNING", title: "Warning" },
    LogLevel { name: "notice", attribute: "notice", constant: "TRACE_NOTICE", title: "Notice" },
    LogLevel { name: "info", attribute: "info", constant: "TRACE_INFO", title: "Info" },
    LogLevel {
        name: "debug_system",
        attribute: "debug:system",
        constant: "TRACE_DEBUG_SYSTEM",
        title: "Debug (system)",
    },
    LogLevel {
        name: "debug_program",
        attribute: "debug:program",
        constant: "TRACE_DEBUG_PROGRAM",
        title: "Debug (program)",
    },
    LogLevel {
        name: "debug_process",
        attribute: "debug:process",
        constant: "TRACE_DEBUG_PROCESS",
        title: "Debug (process)",
    },
    LogLevel {
        name: "debug_module",
        attribute: "debug:module",
        constant: "TRACE_DEBUG_MODULE",
        title: "Debug (module)",
    },
    LogLevel { name: "debug_unit", attribute: "debug:unit", constant: "TRACE_DEBUG_UNIT", title: "Debug (unit)" },
    LogLevel {
        name: "debug_function",
        attribute: "debug:function",
        constant: "TRACE_DEBUG_FUNCTION",
        title: "Debug (function)",
    },
    LogLevel { name: "debug_line", attribute: "debug:line", constant: "TRACE_DEBUG_LINE", title: "Debug (line)" },
    LogLevel { name: "debug", attribute: "debug", constant: "TRACE_DEBUG", title: "Debug" },
];

impl LogLevel {
    /// The level of this number; `None`: it has no name.
    #[must_use]
    pub fn of(number: i64) -> Option<&'static Self> {
        LEVELS.get(usize::try_from(number).ok()?)
    }

    /// The number of the level with this name, in upper or lower case, its words joined by `_`, `-` or `:`.
    #[must_use]
    pub fn number(name: &str) -> Option<u8> {
        let name = name.to_ascii_lowercase().replace(['-', ':'], "_");
        LEVELS.iter().position(|level| level.name == name).map(|number| number as u8)
    }

    /// All names, with commas between them.
    #[must_use]
    pub fn names() -> String {
        LEVELS.map(|level| level.name).join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers() {
        for (number, level) in LEVELS.iter().enumerate() {
            assert_eq!(LogLevel::of(number as i64), Some(level));
            for name in [level.name, level.attribute, &level.name.to_uppercase().replace('_', "-")] {
                assert_eq!(LogLevel::number(name), Some(number as u8), "{name}");
            }
            assert!(level.constant.starts_with("TRACE_") && level.title.starts_with(char::is_uppercase));
        }
        assert_eq!((LogLevel::of(15), LogLevel::of(-1), LogLevel::number("loud")), (None, None, None));
    }
}
