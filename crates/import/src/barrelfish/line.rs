//! The lines of a dump.
//!
//! ```text
//! # Start 45163585368 Duration 0 Stop 18446744073709551615     once for each dump
//! # Min_timestamp 45163585368
//! # Core 0 LOG DUMP ====...                                    once for each core that has events
//! # Offset 0 -1234
//! # DCB 0 ffffff8002656c00 xmpl-tra                            a program that the core can run
//! 0 45163586068 2656c00                                        core, time, subsystem | event | argument
//! ```
//!
//! Consoles print other things between these, and networks a length before each dump.

use super::digits::{decimal, hexadecimal};
use super::lines::LINE_MAX;

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DumpLine<'a> {
    Event(DumpRecord),
    Start {
        start: u64,
        duration: u64,
        stop: u64,
        /// The bytes of the line before it: a length, perhaps.
        before: &'a [u8],
    },
    MinTimestamp,
    /// The events of a core follow.
    Core(u32),
    /// The core's clock is that far behind the clock of core 0.
    Offset {
        core: u32,
        cycles: i64,
    },
    DumpApplication {
        core: u32,
        dcb: u64,
        name: &'a [u8],
    },
    /// The first line of a simulator's dump.
    Simulated,
    /// Nothing of a dump.
    Other,
    /// Begins as a line of a dump, but goes on with something else.
    Broken {
        expected: &'static str,
    },
}

/// A record of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DumpRecord {
    pub(super) core: u32,
    pub(super) time: u64,
    /// Subsystem, event and argument, from the highest bit on.
    pub(super) raw: u64,
}

/// Cores that a machine may have. Barrelfish has 64 at most.
pub(super) const CORES_MAX: u32 = 1024;

/// Offsets from here on are negative ones to which 2^63 was added.
const NEGATIVE_FROM: i64 = 1 << 62;

impl DumpLine<'_> {
    /// The meaning of a line, which has no newline.
    pub(super) fn of(line: &[u8]) -> DumpLine<'_> {
        match line.first() {
            _ if line.len() >= LINE_MAX => DumpLine::Other,
            Some(b'0'..=b'9') => of_digits(line),
            Some(b'#') => of_comment(line, b""),
            _ => embedded_start(line).unwrap_or(DumpLine::Other),
        }
    }
}

/// A line that is nothing but an event, up to its newline, and how many bytes that is; `None`: look closer.
///
/// Almost all lines of a dump are such.
#[inline]
pub(super) fn event_at(bytes: &[u8]) -> Option<(DumpRecord, usize)> {
    let (core, at) = decimal(bytes, 0, 4)?;
    let (time, at) = decimal(bytes, after_space(bytes, at)?, 19)?;
    let (raw, mut at) = hexadecimal(bytes, after_space(bytes, at)?)?;
    if bytes.get(at) == Some(&b'\r') {
        at += 1;
    }
    let is_event = bytes.get(at) == Some(&b'\n') && core < u64::from(CORES_MAX);
    is_event.then_some((DumpRecord { core: core as u32, time, raw }, at + 1))
}

#[inline]
fn after_space(bytes: &[u8], at: usize) -> Option<usize> {
    (bytes.get(at) == Some(&b' ')).then_some(at + 1)
}

fn of_digits(line: &[u8]) -> DumpLine<'_> {
    let mut words =
        line.split(|byte| *byte == b' ' || *byte == b'\t' || *byte == b'\r').filter(|word| !word.is_empty());
    let is_number = |word: &&[u8]| word.iter().all(u8::is_ascii_digit);
    let (core, time, raw) = (words.next().filter(is_number), words.next().filter(is_number), words.next());
    let (Some(core), Some(time)) = (core, time) else {
        return embedded_start(line).unwrap_or(DumpLine::Other);
    };
    let Some(core) = number(core, 10).and_then(|core| u32::try_from(core).ok()).filter(|core| *core < CORES_MAX) else {
        return DumpLine::Broken { expected: "the number of a core below 1024 at its beginning" };
    };
    let Some(time) = number(time, 10) else {
        return DumpLine::Broken { expected: "a time of 64 bits as its second word" };
    };
    match raw.and_then(|raw| number(raw, 16)) {
        Some(raw) => DumpLine::Event(DumpRecord { core, time, raw }),
        None => DumpLine::Broken { expected: "up to 16 hexadecimal digits as its third word" },
    }
}

/// A dump that begins inside of a line, behind the length that a network put there.
fn embedded_start(line: &[u8]) -> Option<DumpLine<'_>> {
    let at = memchr::memmem::find(line, b"# Start ")?;
    let (before, comment) = line.split_at(at);
    match of_comment(comment, before) {
        start @ DumpLine::Start { .. } => Some(start),
        _ => None,
    }
}

fn of_comment<'a>(line: &'a [u8], before: &'a [u8]) -> DumpLine<'a> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut words = line.split(|byte| *byte == b' ').skip(1);
    let mut next = || words.next().unwrap_or_default();
    let core =
        |word: &[u8]| number(word, 10).and_then(|core| u32::try_from(core).ok()).filter(|core| *core < CORES_MAX);
    match next() {
        b"Start" => {
            let (start, duration, stop) = (next(), (next(), next()), (next(), next()));
            let numbers = (number(start, 10), number(duration.1, 10), number(stop.1, 10));
            match (numbers, duration.0, stop.0) {
                ((Some(start), Some(duration), Some(stop)), b"Duration", b"Stop") => {
                    DumpLine::Start { start, duration, stop, before }
                }
                _ => DumpLine::Broken { expected: "# Start NUMBER Duration NUMBER Stop NUMBER" },
            }
        }
        b"Min_timestamp" => DumpLine::MinTimestamp,
        b"Core" => match (core(next()), next(), next()) {
            (Some(core), b"LOG", b"DUMP") => DumpLine::Core(core),
            _ => DumpLine::Broken { expected: "# Core NUMBER LOG DUMP" },
        },
        b"Offset" => match (core(next()), offset(next())) {
            (Some(core), Some(cycles)) => DumpLine::Offset { core, cycles },
            _ => DumpLine::Broken { expected: "# Offset CORE CYCLES" },
        },
        b"DCB" => match (core(next()), number(next(), 16)) {
            // A name may have spaces: it is the rest of the line.
            (Some(core), Some(dcb)) => DumpLine::DumpApplication { core, dcb, name: name(line) },
            _ => DumpLine::Broken { expected: "# DCB CORE ADDRESS NAME" },
        },
        b"Simulated" if line.starts_with(b"# Simulated file is dated ") => DumpLine::Simulated,
        _ => DumpLine::Other,
    }
}

/// The name in a line `# DCB CORE ADDRESS NAME`, without zeros at its end.
fn name(line: &[u8]) -> &[u8] {
    let name = line.splitn(5, |byte| *byte == b' ').nth(4).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    &name[..end.min(super::NAME_BYTES)]
}

fn number(word: &[u8], radix: u32) -> Option<u64> {
    // `from_str_radix` also takes a sign.
    let word = std::str::from_utf8(word).ok().filter(|word| !word.starts_with('+'))?;
    u64::from_str_radix(word, radix).ok()
}

/// How far a clock is behind. The kernel divides sums of negative numbers as if they were positive ones, so that 2^63
/// are added to negative offsets.
fn offset(word: &[u8]) -> Option<i64> {
    let word = std::str::from_utf8(word).ok()?;
    let offset: i64 = word.parse().ok()?;
    Some(if offset >= NEGATIVE_FROM { offset.wrapping_add(i64::MIN) } else { offset })
}

/// The length that a network put before a dump: 6 or 8 digits with zeros or spaces before them, or digits, a zero byte
/// and anything, 8 bytes in all.
pub(super) fn length_before(before: &[u8]) -> Option<u64> {
    let of = |bytes: &[u8], is_open: bool| {
        let digits = bytes.trim_ascii_start();
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        let is_whole = end == digits.len() || is_open && digits[end] == 0;
        number(&digits[..end], 10).filter(|_| is_whole)
    };
    let last = |count: usize| before.len().checked_sub(count).map(|start| &before[start..]);
    let of_six = || last(6).filter(|_| before.len() == 6).and_then(|bytes| of(bytes, false));
    last(8).and_then(|bytes| of(bytes, true)).or_else(of_six)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(core: u32, time: u64, raw: u64) -> DumpLine<'static> {
        DumpLine::Event(DumpRecord { core, time, raw })
    }

    #[test]
    fn lines_of_dumps_are_told_from_others() {
        let broken = |expected| DumpLine::Broken { expected };
        for (line, expected) in [
            ("0 45163586068 2656c00", event(0, 45_163_586_068, 0x265_6C00)),
            ("3 157316542 1234000000000001 42022462\r", event(3, 157_316_542, 0x1234_0000_0000_0001)),
            ("0 18446744073709551615 FF", event(0, u64::MAX, 0xFF)),
            ("0 18446744073709551616 ff", broken("a time of 64 bits as its second word")),
            ("1024 1 ff", broken("the number of a core below 1024 at its beginning")),
            ("0 1 10000000000000000", broken("up to 16 hexadecimal digits as its third word")),
            ("0 1 2656kernel: hello", broken("up to 16 hexadecimal digits as its third word")),
            ("0 1", broken("up to 16 hexadecimal digits as its third word")),
            ("0 1 +1", broken("up to 16 hexadecimal digits as its third word")),
            ("12 monkeys", DumpLine::Other),
            ("kernel 0: booting", DumpLine::Other),
            ("", DumpLine::Other),
            ("# bfscope trace dump", DumpLine::Other),
            ("#", DumpLine::Other),
            ("# Min_timestamp 45163585368", DumpLine::MinTimestamp),
            ("# Core 12 LOG DUMP ====", DumpLine::Core(12)),
            ("# Core is here", broken("# Core NUMBER LOG DUMP")),
            ("# Offset 1 -1234", DumpLine::Offset { core: 1, cycles: -1234 }),
            ("# Offset 2 9223372036854775803", DumpLine::Offset { core: 2, cycles: -5 }),
            ("# Offset 2 4611686018427387903", DumpLine::Offset { core: 2, cycles: (1 << 62) - 1 }),
            (
                "# DCB 0 ffffff8002656c00 xmpl tra\r",
                DumpLine::DumpApplication { core: 0, dcb: 0xFFFF_FF80_0265_6C00, name: b"xmpl tra" },
            ),
            ("# DCB 0 1 \0\0", DumpLine::DumpApplication { core: 0, dcb: 1, name: b"" }),
            ("# DCB 0 1", DumpLine::DumpApplication { core: 0, dcb: 1, name: b"" }),
            ("# DCB 0 1 morethaneight", DumpLine::DumpApplication { core: 0, dcb: 1, name: b"morethan" }),
            ("# DCB x 1 a", broken("# DCB CORE ADDRESS NAME")),
            ("# Start 1 Duration 2 Stop", broken("# Start NUMBER Duration NUMBER Stop NUMBER")),
        ] {
            assert_eq!(DumpLine::of(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn the_short_way_agrees_with_the_long_one() {
        for line in
            ["0 45163586068 2656c00", "63 0 ffffffffffffffff", "1 5 0 7", "0 99999999999999999999 1", "0  1 2", "x"]
        {
            for end in ["\n", "\r\n"] {
                let text = format!("{line}{end}0 1 2\n");
                if let Some((event, length)) = event_at(text.as_bytes()) {
                    assert_eq!(
                        (DumpLine::of(line.as_bytes()), length),
                        (DumpLine::Event(event), line.len() + end.len())
                    );
                }
            }
        }
        assert_eq!(event_at(b"0 7 ab\r\n"), Some((DumpRecord { core: 0, time: 7, raw: 0xAB }, 8)));
        assert_eq!(event_at(b"0 7 ab"), None, "its end is not known");
    }

    #[test]
    fn lengths_before_dumps_are_understood() {
        for (before, length) in [
            (&b"037211"[..], Some(37211)),
            (b"   350", Some(350)),
            (b"00001071", Some(1071)),
            (b"1071\0\xAA\xAA\xAA", Some(1071)),
            (b"end of it1071\0\xAA\xAA\xAA", Some(1071)),
            (b"1071", None),
            (b"1071000x000", None),
            (b"kernel> ", None),
            (b"", None),
        ] {
            assert_eq!(length_before(before), length, "{before:?}");
            let line = [before, b"# Start 1 Duration 2 Stop 3\r"].concat();
            assert_eq!(DumpLine::of(&line), DumpLine::Start { start: 1, duration: 2, stop: 3, before });
        }
    }
}
