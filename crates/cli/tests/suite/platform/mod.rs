//! What platforms say differently: expectations are written as Linux says it.

/// A text with paths and system errors as on Linux.
pub fn as_on_linux(text: &str) -> String {
    if !cfg!(windows) {
        return text.to_owned();
    }
    text.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> String {
    const MISSING: &str = " (os error 2)";
    // In JSON a backslash is written twice; before a quote it belongs to that.
    let mut line = line.replace("\\\\", "/").replace("\\\"", "\0").replace('\\', "/").replace('\0', "\\\"");
    if let Some(end) = line.find(MISSING)
        && let Some(begin) = line[..end].rfind(": ")
    {
        line.replace_range(begin + 2..end, "No such file or directory");
    }
    line
}
