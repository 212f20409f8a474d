//! Colors of terminals, as Babeltrace uses them; nothing at all where they are not wanted.

use kymo_ir::emit::pretty_name;

/// Whether text is colored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint(pub bool);

/// A way to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Tone {
    Bold,
    Blue,
    Cyan,
    Green,
    Magenta,
    BrightBlue,
    BrightCyan,
    BrightGreen,
    BrightMagenta,
    BrightRed,
    BrightYellow,
}

impl Paint {
    /// The escape sequence before text of that tone.
    #[must_use]
    pub fn start(self, tone: Tone) -> &'static str {
        if !self.0 {
            return "";
        }
        match tone {
            Tone::Bold => "\x1b[1m",
            Tone::Blue => "\x1b[34m",
            Tone::Cyan => "\x1b[36m",
            Tone::Green => "\x1b[32m",
            Tone::Magenta => "\x1b[35m",
            // Bold, and the bright color, which is bold once more on most terminals.
            Tone::BrightBlue => "\x1b[1m\x1b[1m\x1b[34m",
            Tone::BrightCyan => "\x1b[1m\x1b[1m\x1b[36m",
            Tone::BrightGreen => "\x1b[1m\x1b[1m\x1b[32m",
            Tone::BrightMagenta => "\x1b[1m\x1b[1m\x1b[35m",
            Tone::BrightRed => "\x1b[1m\x1b[1m\x1b[31m",
            Tone::BrightYellow => "\x1b[1m\x1b[1m\x1b[33m",
        }
    }

    /// The escape sequence behind it.
    #[must_use]
    pub fn end(self) -> &'static str {
        if self.0 { "\x1b[0m" } else { "" }
    }

    /// The text in that tone, without control characters of its own.
    #[must_use]
    pub fn text(self, tone: Tone, text: &str) -> String {
        format!("{}{}{}", self.start(tone), pretty_name(text), self.end())
    }
}
