//! Words that no field may be called, because a language for which events are generated reserves them.

/// The language that reserves a word, or has a macro of that name. Keywords of Rust are none of them: there such names are
/// written as `r#type`.
pub(super) fn language(word: &str) -> Option<&'static str> {
    if C.contains(&word) {
        return Some("C");
    }
    if MACROS.contains(&word) {
        return Some("C");
    }
    if CPP.contains(&word) {
        return Some("C++");
    }
    // These cannot be raw identifiers.
    ["self", "Self", "super", "crate"].contains(&word).then_some("Rust")
}

/// Macros of common headers, which would be replaced by their texts.
const MACROS: [&str; 16] = [
    "EOF", "NULL", "assert", "complex", "errno", "major", "makedev", "minor", "noreturn", "offsetof", "stderr",
    "stdin", "stdout", "INT_MAX", "INT_MIN", "I",
];

/// C11 to C23.
const C: [&str; 48] = [
    "alignas",
    "alignof",
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "const",
    "constexpr",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "false",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "nullptr",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "struct",
    "switch",
    "thread_local",
    "true",
    "typedef",
    "typeof",
    "typeof_unqual",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "asm",
    "linux",
    "unix",
];

/// C++17 to C++20, as far as C does not have them.
const CPP: [&str; 49] = [
    "and",
    "and_eq",
    "bitand",
    "bitor",
    "catch",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const_cast",
    "consteval",
    "constinit",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "friend",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "reinterpret_cast",
    "requires",
    "static_cast",
    "template",
    "this",
    "throw",
    "try",
    "typeid",
    "typename",
    "using",
    "virtual",
    "wchar_t",
    "xor",
    "xor_eq",
];
