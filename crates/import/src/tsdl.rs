//! Pieces of TSDL.

/// The beginning of all metadata.
pub(crate) const BEGINNING: &str = "/* CTF 1.8 */\n";

/// Types by short names; `x` is shown in base 16.
pub(crate) const TYPES: &str = "
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 16; align = 8; signed = false; base = 16; } := x16;
typealias integer { size = 32; align = 8; signed = false; base = 16; } := x32;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := x64;
typealias integer { size = 16; align = 8; signed = true; } := i16;
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := text;
";

/// The trace, with the fields that the head of each packet has.
pub(crate) fn trace(header: &str) -> String {
    format!(
        "\ntrace {{\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n\tpacket.header := struct {{ {header} }};\n}};\n\n"
    )
}

/// A text in quotes. A character for which TSDL has no escape is U+FFFD.
pub(crate) fn text(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push(char::REPLACEMENT_CHARACTER),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        assert_eq!(text("a \"b\" \\ c\n\u{1}"), "\"a \\\"b\\\" \\\\ c\\n\u{FFFD}\"");
    }
}
