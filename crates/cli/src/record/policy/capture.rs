//! Captures of the packets in a policy's traces.
//!
//! ```text
//! init/nic/ping/metadata, ...          a trace of policy `ping`  ──> init/nic/ping.pcapng
//! .calls/init/nic/calls/metadata       in Genode's form          ──> init/nic.pcapng, as Genode's recorder has it
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_recorder::select::component_path;
use kymo_session::{CaptureOptions, OpenOptions, Progress, Selection, Session};

use super::file::{PolicyFormat, PolicyMeans};
use super::tree;

/// Writes a capture for each trace of a policy that has packets, into a dated folder. Returns the captures
/// with their numbers of packets, and the first error.
pub(super) fn write_all(
    recorded: &Path,
    policy: &str,
    how: &PolicyMeans,
    folder: &Path,
) -> (Vec<(PathBuf, u64)>, Option<io::Error>) {
    let mut traces = Vec::new();
    find(recorded, policy, &mut traces);
    traces.sort_unstable();
    let (mut written, mut problem) = (Vec::new(), None);
    for trace in traces {
        let inside = trace.strip_prefix(recorded).unwrap_or(&trace);
        let stem = match how.format {
            PolicyFormat::Genode => folder.join(component_path(&tree::label_of(inside, policy))),
            PolicyFormat::Trace(_) => folder.join(inside),
        };
        match write(&trace, &stem) {
            Ok(capture) => written.extend(capture),
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    (written, problem)
}

/// Finds a policy's traces: folders with its name, and perhaps a number.
fn find(folder: &Path, policy: &str, traces: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for inside in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let name = inside.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(policy));
        let number = rest.map(|rest| rest.strip_prefix('-').unwrap_or(rest));
        let is_its = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let (path, before) = (inside.path(), traces.len());
        find(&path, policy, traces);
        // The folder of a component may have the policy's name, too: then its trace is inside.
        let is_trace = || path.join("metadata").exists() || (traces.len() == before && has_parts(&path));
        if is_its && is_trace() {
            traces.push(path);
        }
    }
}

/// A trace may have parts or clocks, with metadata in their folders.
fn has_parts(path: &Path) -> bool {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().join("metadata").exists())
}

/// Writes the packets of a trace, if it has some.
fn write(trace: &Path, stem: &Path) -> io::Result<Option<(PathBuf, u64)>> {
    let session = Session::open(&[trace.to_owned()], &OpenOptions::default()).map_err(io::Error::other)?;
    let named = |suffix: String| {
        let mut name = stem.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        stem.with_file_name(name)
    };
    let names = std::iter::once(String::new()).chain((2..).map(|number| format!(" ({number})")));
    let mut paths = names.map(|number| named(format!("{number}.pcapng")));
    let output = paths.find(|path| !path.exists()).expect("numbers do not end");
    output.parent().map(std::fs::create_dir_all).transpose()?;
    let selection = Selection::default();
    let output_path = output.clone();
    let options = CaptureOptions { output: output_path, selection, packet_filter: None, begin_ns: None, end_ns: None };
    let written = Arc::new(session).write_capture(&options, &Progress::default()).map_err(io::Error::other)?;
    if written.packets == 0 {
        std::fs::remove_file(&output)?;
        return Ok(None);
    }
    Ok(Some((output, written.packets)))
}
