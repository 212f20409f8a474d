//! The format of values as text: a program chooses it, and `emit` writes it.

/// Labels for ranges of an integer, for `Emit::Label`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RangeLabels {
    /// Compare as signed.
    pub signed: bool,
    /// (lowest, highest, label), both ends included, as registers hold them. In the order of the text; may overlap.
    pub ranges: Vec<(u64, u64, Box<[u8]>)>,
}

/// How to write an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntegerStyle {
    /// `-12`
    Decimal,
    /// `-12,345`; up to four digits stay together: `-1234`.
    Grouped,
    /// `-0x1:2345`: sign and magnitude.
    GroupedHexadecimal,
    /// `-01:234`: sign and magnitude.
    GroupedOctal,
    /// `0x2A`: digits of the lowest `bits` bits, rounded up to whole digits.
    HexadecimalUpper {
        /// 1 to 64.
        bits: u8,
    },
    /// `0x2a`: digits of the lowest `bits` bits, rounded up to whole digits.
    HexadecimalLower {
        /// 1 to 64.
        bits: u8,
    },
    /// `052`: Babeltrace's octal: negative values are cut to `bits` rounded up to whole digits.
    Octal {
        /// 1 to 64.
        bits: u8,
    },
    /// `0b00101010`: all `bits` bits.
    Binary {
        /// 1 to 64.
        bits: u8,
    },
    /// `true` or `false`.
    Boolean,
    /// `Yes` or `No`.
    YesNo,
}

/// How to write a real number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RealStyle {
    /// As C's `%g`.
    General,
    /// As C's `%f`.
    Fixed,
    /// The shortest text that reads back as the same number; NaN and infinities as JSON strings.
    Json,
    /// The shortest text that reads back as the same number; `nan`, `inf`, `-inf`.
    Shortest,
}

/// How the characters of a text are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Encoding {
    Utf8,
    Utf16Be,
    Utf16Le,
    Utf32Be,
    Utf32Le,
}

/// How to write text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextStyle {
    /// The bytes as they are (UTF-8: unchanged even if not valid).
    Raw,
    /// Babeltrace `pretty`: in double quotes, `\ ' " ?` and control characters escaped, other bytes as they are.
    Pretty,
    /// A JSON string with quotes; invalid bytes become U+FFFD.
    Json,
    /// A CSV cell: quoted where needed.
    Csv,
}

/// How to write bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BytesStyle {
    /// `0a0b0c`
    Hexadecimal,
    /// `0a 0b 0c`
    HexadecimalSpaced,
}

/// How to write labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelStyle {
    /// Babeltrace `pretty`: `"A"`, `{ "A", "B" }` for several, `<unknown>` for none.
    Pretty,
    /// Babeltrace `pretty` with `print-enum-flags`: a value without label is split into bits, `"A" | "B"`.
    PrettyFlags,
    /// As `Pretty`, each label in the colors of Babeltrace.
    Painted,
    /// As `PrettyFlags`, each label in the colors of Babeltrace.
    PaintedFlags,
    /// JSON: `["A","B"]`.
    Json,
    /// The first label or nothing, raw.
    First,
}
