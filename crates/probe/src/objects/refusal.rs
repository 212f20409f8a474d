//! Why an object is not loaded, out of the errors of `aya` and of the kernel, in sentences.

use std::error::Error;
use std::io;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::programs::uprobe::UProbeError;

use super::ObjectRefusal;
use super::place::AttachPlace;

/// Lines of the verifier's log at most: its end says why.
const LOG_LINES: usize = 24;
/// Characters of such a line at most.
const LINE_MAX: usize = 160;
/// Lines of the verifier that tell of its own work.
const OWN_WORK: [&str; 4] = ["processed ", "verification time ", "stack depth ", "max_states_per_insn "];

pub(super) fn no_types(why: &str) -> ObjectRefusal {
    ObjectRefusal::of_object(format!("the kernel does not describe its types (BTF): {why}"))
        .with_help("kernels have /sys/kernel/btf/vmlinux where they were built with CONFIG_DEBUG_INFO_BTF")
}

/// Maps or programs of the object could not be made.
pub(super) fn not_loaded(error: &EbpfError) -> ObjectRefusal {
    let refusal = match error {
        EbpfError::MapError(MapError::CreateError { name, io_error, .. }) => {
            ObjectRefusal::of_object(format!("the kernel does not make the map {name}: {io_error}"))
        }
        EbpfError::ProgramError(error) => ObjectRefusal::of_object(words(error)),
        error => ObjectRefusal::of_object(words(error)),
    };
    ObjectRefusal { is_forbidden: is_about_rights(error), ..refusal }
}

/// The kernel's verifier refuses a program.
pub(super) fn not_verified(name: &str, error: &ProgramError) -> ObjectRefusal {
    match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            let log = cut(&verifier_log.to_string());
            let is_forbidden = log.is_empty() && is_forbidden(io_error);
            let why = match log.is_empty() {
                true => format!("the kernel does not load it: {io_error}"),
                false => format!("the kernel's verifier refuses it: {io_error}\n{log}"),
            };
            ObjectRefusal { is_forbidden, ..ObjectRefusal::of_program(name, why) }
        }
        error => ObjectRefusal::of_program(name, words(error)),
    }
}

/// A program was verified, and cannot be attached.
pub(super) fn not_attached(name: &str, place: &AttachPlace, error: &ProgramError) -> ObjectRefusal {
    let place = match place {
        AttachPlace::TypedTracepoint(name) | AttachPlace::RawTracepoint(name) => format!("tracepoint {name}"),
        AttachPlace::Tracepoint(system, name) => format!("event {system}/{name}"),
        AttachPlace::Function { name, .. } | AttachPlace::FunctionProbe { name, .. } => format!("function {name}"),
        AttachPlace::FileProbe { file, symbol: Some(symbol), .. } => format!("function {symbol} of {file}"),
        AttachPlace::FileProbe { file, offset, .. } => format!("byte {offset:#x} of {file}"),
    };
    let why = match error {
        ProgramError::UProbeError(UProbeError::SymbolError { symbol, .. }) => {
            format!("it cannot be attached to {place}: the file has no function `{symbol}` among its symbols")
        }
        error => format!("it cannot be attached to {place}: {}", words(error)),
    };
    ObjectRefusal { is_forbidden: is_about_rights(error), ..ObjectRefusal::of_program(name, why) }
}

/// The words of an error and of its causes, each once.
fn words(error: &dyn Error) -> String {
    let mut all = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !all.contains(&text) {
            all = format!("{all}: {text}");
        }
        cause = error.source();
    }
    all
}

fn is_about_rights(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(is_forbidden) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

/// The end of the verifier's log, and how many lines are before it.
fn cut(log: &str) -> String {
    let is_told = |line: &&str| !line.trim().is_empty() && !OWN_WORK.iter().any(|begin| line.starts_with(begin));
    let lines: Vec<&str> = log.lines().filter(is_told).collect();
    let left_out = lines.len().saturating_sub(LOG_LINES);
    let head = (left_out > 0).then(|| format!("  ... {left_out} more lines of the verifier before these"));
    let line = |line: &&str| match line.char_indices().nth(LINE_MAX) {
        Some((at, _)) => format!("  {}...", &line[..at]),
        None => format!("  {line}"),
    };
    head.into_iter().chain(lines[left_out..].iter().map(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_told() {
        let log: String = (0..40).map(|number| format!("{number}: (b7) r0 = 0\n")).collect();
        let told = cut(&format!("{log}{}\nprocessed 41 insns (limit 1000000)\n", "R0 !read_ok ".repeat(40)));
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!((lines.len(), lines[0]), (LOG_LINES + 1, "  ... 17 more lines of the verifier before these"));
        let last = lines[LOG_LINES];
        assert!(last.starts_with("  R0 !read_ok R0") && last.ends_with("...") && last.len() == LINE_MAX + 5, "{last}");
        assert_eq!((cut("a\n\nb\n"), cut("processed 1 insns\n")), ("  a\n  b".to_owned(), String::new()));
    }
}
