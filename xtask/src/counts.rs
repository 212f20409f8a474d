//! How many tests a stage's output speaks of, in the words of each test runner.

/// Tests that were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// For the end of a sentence.
    pub(crate) fn in_words(self) -> String {
        match (self.passed, self.skipped) {
            (0, 0) => String::new(),
            (passed, 0) => format!(", {passed} tests"),
            (passed, skipped) => format!(", {passed} tests, {skipped} skipped"),
        }
    }
}

/// Adds up the closing lines of libtest, pytest and vitest, and `N passed, N failed` of our scripts.
pub(crate) fn read(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines() {
        let line = plain(line);
        let line = line.trim();
        let rest = line.strip_prefix("test result:").or_else(|| line.strip_prefix("Tests "));
        let is_pytest = line.contains(" passed") && line.contains(" in ") && line.ends_with(['s', '=', ')']);
        let starts_with_number = line.starts_with(|letter: char| letter.is_ascii_digit());
        let is_plain = starts_with_number && line.contains(" passed, ") && line.contains(" failed");
        if rest.is_none() && !(is_pytest && (starts_with_number || line.starts_with('='))) && !is_plain {
            continue;
        }
        for (number, word) in numbers(rest.unwrap_or(line)) {
            match word {
                "passed" => counts.passed += number,
                "failed" => counts.failed += number,
                "skipped" | "ignored" => counts.skipped += number,
                _ => {}
            }
        }
    }
    counts
}

/// A line without colors.
fn plain(line: &str) -> String {
    let mut pieces = line.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or("", |(_, rest)| rest))
}

/// Each number with the word behind it.
fn numbers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs: Vec<_> = words.windows(2).filter_map(|pair| Some((pair[0].parse().ok()?, pair[1]))).collect();
    pairs.into_iter().map(|(number, word)| (number, word.trim_matches([',', ';', '|', '.'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: usize, failed: usize, skipped: usize) -> Counts {
        Counts { passed, failed, skipped }
    }

    #[test]
    fn closing_lines_of_each_runner_are_read() {
        let libtest = "test a ... ok\ntest result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out\n";
        assert_eq!(read(libtest), counts(12, 0, 1));
        assert_eq!(read(&libtest.repeat(2)), counts(24, 0, 2));
        assert_eq!(read("303 passed, 50 skipped, 2 warnings in 61.23s (0:01:01)\n"), counts(303, 0, 50));
        assert_eq!(read(" Test Files  81 passed (81)\n      Tests  1149 passed (1149)\n"), counts(1149, 0, 0));
        assert_eq!(
            read(
                "\u{1b}[2m      Tests \u{1b}[22m \u{1b}[32m134 passed\u{1b}[39m | \u{1b}[33m1 skipped\u{1b}[39m (135)\n"
            ),
            counts(134, 0, 1)
        );
        assert_eq!(read("759 passed, 0 failed\n"), counts(759, 0, 0));
    }

    #[test]
    fn other_lines_that_speak_of_passing_count_nothing() {
        assert_eq!(read("12 events passed the filter in 3 s\nwhat passed, in all, was 4 failed\n"), counts(0, 0, 0));
    }
}
