//! The screen for an answer: its width, and whether it supports colors and more than ASCII.

use std::borrow::Cow;
use std::io::{self, IsTerminal};

use unicode_width::UnicodeWidthStr;

use crate::arguments::Color;

/// A terminal, or a pipe, where rows are as wide as they have to be and have no ornaments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Columns of a terminal; `None`: a pipe or file.
    pub(crate) width: Option<usize>,
    /// Whether it shows colors.
    pub(crate) colours: bool,
    /// Whether it shows characters beyond ASCII.
    pub(crate) unicode: bool,
}

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScreenTone {
    Title,
    Head,
    Faint,
    Bar,
}

/// Columns of a terminal that does not report its width.
const WIDTH: usize = 80;
/// Columns of a narrower one.
const WIDTH_MIN: usize = 20;

/// The width of a terminal: as the user says in `COLUMNS`, else as the terminal does.
fn width(said: &str, size: impl FnOnce() -> Option<usize>) -> usize {
    let said = said.trim().parse().ok().filter(|width| *width > 0);
    said.or_else(|| size().filter(|width| *width > 0)).unwrap_or(WIDTH).max(WIDTH_MIN)
}

impl Screen {
    /// Standard output; as wide as it has to be, if it is no terminal or everything is wanted.
    pub(crate) fn of_output(color: Color, is_wide: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let size = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = || width(&variable("COLUMNS"), size);
        let colours = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && variable("NO_COLOR").is_empty() && variable("TERM") != "dumb",
        };
        Self { width: (is_terminal && !is_wide).then(width), colours, unicode: knows_unicode(&variable) }
    }

    /// Standard error, for messages.
    pub(crate) fn of_messages() -> Self {
        let is_terminal = io::stderr().is_terminal();
        let size = || terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0));
        let width = || width(&std::env::var("COLUMNS").unwrap_or_default(), size);
        Self { width: is_terminal.then(width), colours: false, unicode: true }
    }

    /// The text in lines that fit, cut between words.
    pub(crate) fn wrapped(&self, text: &str) -> Vec<String> {
        let width = self.width.unwrap_or(usize::MAX);
        let mut lines = vec![String::new()];
        for word in text.split(' ') {
            let line = lines.last_mut().expect("there is a first one");
            if line.is_empty() {
                line.push_str(word);
            } else if columns(line) + 1 + columns(word) <= width {
                line.push(' ');
                line.push_str(word);
            } else {
                lines.push(word.to_owned());
            }
        }
        lines
    }

    /// The text with its long lines cut between words; the rest of each begins with so many spaces.
    pub(crate) fn hung<'t>(&self, text: &'t str, indent: usize) -> Cow<'t, str> {
        let Some(width) = self.width.filter(|width| text.lines().any(|line| columns(line) > *width)) else {
            return Cow::Borrowed(text);
        };
        let mut out = String::new();
        for line in text.split_inclusive('\n') {
            let body = line.trim_end_matches('\n');
            let mut used = body.len() - body.trim_start_matches(' ').len();
            out += &body[..used];
            let mut is_first = true;
            for word in body[used..].split(' ') {
                let needed = usize::from(!is_first) + columns(word);
                if is_first || used + needed <= width {
                    out += if is_first { "" } else { " " };
                    used += needed;
                } else {
                    out.truncate(out.trim_end_matches(' ').len());
                    out += &format!("\n{:indent$}", "");
                    used = indent + columns(word);
                }
                out += word;
                is_first = false;
            }
            out += &line[body.len()..];
        }
        Cow::Owned(out)
    }

    /// The text with its tone, where the screen can show one.
    pub(crate) fn toned<'t>(&self, tone: ScreenTone, text: &'t str) -> Cow<'t, str> {
        if !self.colours || text.trim().is_empty() {
            return Cow::Borrowed(text);
        }
        let code = match tone {
            ScreenTone::Title => "1",
            ScreenTone::Head => "4",
            ScreenTone::Faint => "2",
            ScreenTone::Bar => "36",
        };
        Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m"))
    }

    /// The text in no more columns than `width`: the middle goes, as names differ at their ends.
    pub(crate) fn cut<'t>(&self, text: &'t str, width: usize) -> Cow<'t, str> {
        if columns(text) <= width {
            return Cow::Borrowed(text);
        }
        let gap = self.gap();
        let Some(room) = width.checked_sub(columns(gap)) else { return Cow::Borrowed("") };
        let head = begin(text, room.div_ceil(2));
        let tail = end(&text[head.len()..], room.saturating_sub(columns(head)));
        Cow::Owned(format!("{head}{gap}{tail}"))
    }

    /// The same for processes: the name gives way, not the numbers behind it, which distinguish
    /// processes of one name.
    pub(crate) fn cut_process<'t>(&self, text: &'t str, width: usize) -> Cow<'t, str> {
        let parts = text.rfind(" (").filter(|_| text.ends_with(')') && columns(text) > width);
        let Some((name, numbers)) = parts.map(|at| text.split_at(at)) else { return self.cut(text, width) };
        match width.checked_sub(columns(numbers)) {
            Some(room) if room > columns(self.gap()) => Cow::Owned(format!("{}{numbers}", self.cut(name, room))),
            _ => self.cut(text, width),
        }
    }

    /// The same for titles, where the beginning is the most informative part.
    pub(crate) fn begun<'t>(&self, text: &'t str, width: usize) -> Cow<'t, str> {
        if columns(text) <= width {
            return Cow::Borrowed(text);
        }
        // One point is as good as three where space is short.
        let gap = if self.unicode { self.gap() } else { "." };
        let Some(room) = width.checked_sub(columns(gap)) else { return Cow::Borrowed("") };
        Cow::Owned(format!("{}{gap}", begin(text, room)))
    }

    fn gap(&self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }
}

/// Whether the locale uses UTF-8; others than ours are the terminal's, so the first variable that
/// is set counts.
fn knows_unicode(variable: &impl Fn(&str) -> String) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable).into_iter().find(|value| !value.is_empty());
    let says_so = |locale: String| matches!(locale.to_ascii_lowercase().rsplit_once('.'), Some((_, "utf-8" | "utf8")));
    cfg!(windows) || locale.is_some_and(says_so)
}

/// Columns that the text takes up.
pub(crate) fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// The longest part of its beginning that fits. Characters together may be wider or narrower than each by itself.
fn begin(text: &str, room: usize) -> &str {
    if text.is_ascii() {
        return &text[..room.min(text.len())];
    }
    let ends = text.char_indices().map(|(at, character)| at + character.len_utf8());
    longest_that_fits(ends.map(|end| &text[..end]), room)
}

/// The longest part of its end that fits.
fn end(text: &str, room: usize) -> &str {
    if text.is_ascii() {
        return &text[text.len().saturating_sub(room)..];
    }
    longest_that_fits(text.char_indices().rev().map(|(begin, _)| &text[begin..]), room)
}

/// Of ever longer parts, the longest one that fits.
fn longest_that_fits<'t>(parts: impl Iterator<Item = &'t str>, room: usize) -> &'t str {
    // A part that is a little too wide may become narrower with its next character.
    let parts = parts.take_while(|part| columns(part) <= room + 2);
    parts.filter(|part| columns(part) <= room).last().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_middle_goes() {
        let screen = Screen { width: Some(80), colours: false, unicode: true };
        let plain = Screen { unicode: false, ..screen };
        assert_eq!(screen.cut("/usr/lib/firefox", 16), "/usr/lib/firefox");
        assert_eq!(screen.cut("/usr/lib/firefox", 9), "/usr…efox");
        assert_eq!(plain.cut("/usr/lib/firefox", 9), "/us...fox");
        assert_eq!(
            (screen.begun("Preemptions", 7), plain.begun("Preemptions", 7)),
            ("Preemp…".into(), "Preemp.".into())
        );
        assert_eq!(screen.cut_process("lttng-sessiond (4042 of 3997)", 24), "lttn…iond (4042 of 3997)");
        assert_eq!(screen.cut_process("lttng-sessiond (4042 of 3997)", 14), "lttng-s… 3997)");
        assert_eq!(screen.cut_process("a name without numbers", 9), "a na…bers");
        // A character of two columns is not cut in halves.
        assert_eq!(screen.cut("音楽再生中", 6), "音…中");
        assert_eq!(
            (screen.cut("abc", 1), screen.cut("abc", 0), plain.cut("abcdef", 2)),
            ("…".into(), "".into(), "".into())
        );
    }

    /// Characters that are one picture together are wider than each by itself, or narrower.
    #[test]
    fn pictures_are_cut_to_what_fits() {
        const PICTURES: [&str; 6] = ["❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "👩\u{200d}💻", "🇩🇪", "e\u{301}", "👍🏽"];
        for unicode in [true, false] {
            let screen = Screen { width: Some(80), colours: false, unicode };
            let all = PICTURES.concat();
            for text in PICTURES.iter().map(|picture| picture.repeat(20)).chain([all.repeat(4)]) {
                for width in 0..=columns(&text) + 1 {
                    let cuts = [screen.cut(&text, width), screen.begun(&text, width)];
                    assert!(cuts.iter().all(|cut| columns(cut) <= width), "{width}: {cuts:?}");
                    let process = format!("{text} (12 of 7)");
                    assert!(columns(&screen.cut_process(&process, width)) <= width, "{width}: {process}");
                }
            }
        }
    }

    #[test]
    fn the_width_is_what_the_user_says_or_else_the_terminal() {
        assert_eq!(width("132", || Some(80)), 132);
        assert_eq!((width("", || Some(100)), width("0", || Some(100)), width("wide", || Some(100))), (100, 100, 100));
        assert_eq!((width("", || None), width("", || Some(0)), width("3", || None)), (80, 80, 20));
    }

    #[test]
    fn lines_end_between_words() {
        let screen = |width| Screen { width: Some(width), colours: false, unicode: true };
        assert_eq!(screen(11).wrapped("one two three four"), ["one two", "three four"]);
        assert_eq!(screen(2).wrapped("one two"), ["one", "two"]);
        assert_eq!(screen(80).wrapped(""), [""]);
        assert_eq!(Screen { width: None, ..screen(1) }.wrapped("one two"), ["one two"]);
    }

    #[test]
    fn long_lines_are_cut_between_words_and_hang() {
        let screen = |width| Screen { width: Some(width), colours: false, unicode: true };
        let text = "  span      71 ms  from here to there\nerror: a  word\n";
        assert_eq!(screen(40).hung(text, 12), text);
        assert_eq!(
            screen(24).hung(text, 12),
            "  span      71 ms  from\n            here to\n            there\nerror: a  word\n"
        );
        assert_eq!(screen(11).hung("error: aaaaaaaaaaaaaaaaaa b c", 2), "error:\n  aaaaaaaaaaaaaaaaaa\n  b c");
        assert_eq!(Screen { width: None, ..screen(1) }.hung(text, 12), text);
    }

    #[test]
    fn the_first_locale_that_is_set_counts() {
        let knows = |all: &'static str, ctype: &'static str, lang: &'static str| {
            knows_unicode(&move |name: &str| {
                match name {
                    "LC_ALL" => all,
                    "LC_CTYPE" => ctype,
                    _ => lang,
                }
                .to_owned()
            })
        };
        assert!(knows("", "", "de_DE.UTF-8") && knows("", "C.utf8", "C"));
        if cfg!(not(windows)) {
            assert!(!knows("C", "", "de_DE.UTF-8") && !knows("", "", "") && !knows("", "", "de_DE.ISO-8859-1"));
        }
    }
}
