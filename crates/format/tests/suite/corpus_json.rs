//! CTF 2 metadata of other readers' tests: what they accept is read, what they refuse is refused,
//! and the place that is named is theirs.
//!
//! The corpus is not part of the repository: without it the test says so and passes.

use std::path::{Path, PathBuf};

use kymo_format::{Severity, parse};

fn corpus() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let root = std::env::var_os("KYMO_CORPUS").map_or(default, PathBuf::from);
    root.is_dir().then_some(root)
}

/// The folders inside of a folder that hold metadata.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let mut traces: Vec<PathBuf> = paths.filter(|path| path.join("metadata").is_file()).collect();
    traces.sort();
    traces
}

fn name(folder: &Path) -> String {
    folder.file_name().expect("traces have names").to_string_lossy().into_owned()
}

/// The innermost place of yactfr's message: `[line:column]` of its last line.
fn expected_line(folder: &Path) -> Option<usize> {
    let message = std::fs::read_to_string(folder.with_extension("expect-error")).ok()?;
    let last = message.lines().rev().find_map(|line| line.strip_prefix('['))?;
    last.split(':').next()?.parse().ok()
}

/// What is wrong in the metadata of a trace: the line of each error in its fragment, from 1 as yactfr counts;
/// empty if it is read.
fn error_lines(folder: &Path) -> Vec<usize> {
    let bytes = std::fs::read(folder.join("metadata")).expect("metadata can be read");
    let metadata = parse(&bytes);
    let errors = metadata.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let line = |at: usize| {
        let fragment = metadata.text[..at].rfind('\u{1e}').unwrap_or(0);
        1 + metadata.text[fragment..at].matches('\n').count()
    };
    let lines: Vec<usize> = errors.map(|found| line(found.span.start)).collect();
    assert_eq!(
        lines.is_empty(),
        metadata.trace_class.is_some(),
        "{}: errors and nothing else refuse",
        folder.display()
    );
    lines
}

#[derive(Default)]
struct Score {
    right: usize,
    of: usize,
    /// Name, and the lines of errors.
    deviations: Vec<(String, Vec<usize>)>,
}

impl Score {
    fn count(&mut self, right: bool, trace: &Path, found: &[usize]) {
        self.of += 1;
        self.right += usize::from(right);
        if !right {
            self.deviations.push((name(trace), found.to_vec()));
        }
    }
}

/// What other readers accept and we refuse, and why.
const REFUSED: [(&str, &str); 6] = [
    ("dyn_str_utf16", TWICE),
    ("dyn_str_utf32", TWICE),
    ("null_term_str_utf16", TWICE),
    ("static_str_utf16", TWICE),
    ("static_str_utf32", TWICE),
    ("optional_bool", "a boolean selector has no ranges in CTF 2: they would be ignored"),
];
const TWICE: &str = "two members of a structure have the same name";

/// Traces that are to be refused, some for their data only: these are to be refused for their metadata.
const BAD_METADATA: [&str; 5] = [
    "CTF2-PMETA-1.0-be_partial_data_nok",
    "CTF2-PMETA-1.0_bad_major_nok",
    "fxd_len_int_unsupported_len_nok",
    "static_len_arr_fld_loc_nok",
    "variant_invalid_selector_rng_nok",
];

/// Whether we name another line than yactfr on purpose: an extension itself rather than the object
/// around it, the location rather than the array that has it.
fn names_another_line(name: &str) -> bool {
    name.ends_with("-ext-prop") || name == "fail-dl-array-type-len-after-2"
}

#[test]
fn as_other_readers() {
    let Some(root) = corpus() else {
        println!("CORPUS ABSENT: CTF 2 metadata of the corpus were not run");
        return;
    };
    let (mut verdicts, mut lines) = (Score::default(), Score::default());
    for folder in ["metadata-text/ctf-2", "metadata-text/ctf-2-auto-translated"] {
        for trace in traces(&root.join("ctf/yactfr").join(folder)) {
            let found = error_lines(&trace);
            let refused = name(&trace).starts_with("fail-");
            verdicts.count(refused != found.is_empty(), &trace, &found);
            if let (true, Some(expected), [_, ..]) = (refused, expected_line(&trace), &found[..]) {
                lines.count(found.contains(&expected), &trace, &found);
            }
        }
    }
    for folder in ["ctf/yactfr/iter-data/ctf-2", "ctf/yactfr/iter-data/ctf-2-auto-translated", "ctf2-actf"] {
        for trace in traces(&root.join(folder)) {
            let found = error_lines(&trace);
            let refused = BAD_METADATA.contains(&&*name(&trace));
            verdicts.count(refused != found.is_empty(), &trace, &found);
        }
    }
    for trace in traces(&root.join("ctf/tracecompass")).iter().filter(|trace| name(trace).starts_with("CTF2")) {
        let found = error_lines(trace);
        verdicts.count(found.is_empty(), trace, &found);
    }
    let reason = |name: &str| REFUSED.iter().find(|(known, _)| *known == name).map(|(_, reason)| *reason);
    println!("CTF 2 metadata: {} of {} as other readers", verdicts.right, verdicts.of);
    for (name, lines) in &verdicts.deviations {
        println!("  {name}: error on line {lines:?}: {}", reason(name).unwrap_or("WRONG"));
    }
    println!("CTF 2 errors: {} of {} on the line that yactfr names", lines.right, lines.of);
    lines.deviations.iter().for_each(|(name, lines)| println!("  {name}: line {lines:?}"));
    assert!(verdicts.deviations.iter().all(|(name, _)| reason(name).is_some()), "other readers know better");
    assert_eq!(verdicts.deviations.len(), REFUSED.len(), "the list of deviations is too long");
    assert!(lines.deviations.iter().all(|(name, _)| names_another_line(name)), "yactfr names another line");
}
