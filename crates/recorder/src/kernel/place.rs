//! Where the trace of the kernel's events is, and where it goes on when its recorder was killed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::layout::{KERNEL_FOLDER, cpu_stream, is_kernel_stream, rule_cpu, stack_cpu};
use crate::trace::mend::mend_folder;
use crate::trace::repair::packets;
use crate::trace::{OutputOptions, resume};

/// What earlier recorders have written.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenBefore {
    /// The number of their last chunk.
    pub(super) chunk: u64,
    /// Their chunks, if the trace has some, and the bytes of each.
    pub(super) chunks: Vec<(PathBuf, u64)>,
    /// Bytes of all of it.
    pub(super) bytes: u64,
    /// Events about the state of the system.
    pub(super) state_events: u64,
}

/// The place of a trace that begins.
#[derive(Debug)]
pub(super) struct KernelPlace {
    pub(super) path: PathBuf,
    pub(super) before: WrittenBefore,
    /// When packets of earlier recorders end, by the name of the stream.
    ends: HashMap<String, u64>,
}

impl KernelPlace {
    /// That of a session that begins in a folder.
    pub(super) fn new(output: &Path) -> Self {
        Self { path: output.join(KERNEL_FOLDER), before: WrittenBefore::default(), ends: HashMap::new() }
    }

    /// That behind the traces of recorders that were killed, which are made whole.
    pub(super) fn behind(output: &Path, options: &OutputOptions) -> io::Result<Self> {
        let mut place = Self::new(output);
        if options.has_chunks() {
            let chunks = if place.path.exists() { resume::chunks(&place.path)? } else { Vec::new() };
            for (number, folder) in chunks {
                let bytes = place.end(&folder)?;
                place.before.chunk = number;
                place.before.chunks.push((folder, bytes));
            }
            return Ok(place);
        }
        for folder in folders(output) {
            if !folder.exists() {
                place.path = folder;
                break;
            }
            place.end(&folder)?;
        }
        Ok(place)
    }

    /// When the packets of a ring buffer's stream end that earlier recorders have written, in cycles.
    pub(super) fn written_until(&self, ring: u8, cpu: u32) -> Option<u64> {
        self.ends.get(&cpu_stream(ring, cpu)).copied()
    }

    /// The same of the call stacks of each CPU, in ticks: cycles count from `base` on.
    pub(super) fn stacks_written_until(&self, base: u64) -> impl Iterator<Item = (u32, u64)> {
        self.ends.iter().filter_map(move |(name, end)| Some((stack_cpu(name)?, end + base)))
    }

    /// The same of the events that rules have kept.
    pub(super) fn rules_written_until(&self, base: u64) -> impl Iterator<Item = (u32, u64)> {
        self.ends.iter().filter_map(move |(name, end)| Some((rule_cpu(name)?, end + base)))
    }

    /// Makes a trace whole, and looks where it ends. Returns its bytes.
    fn end(&mut self, folder: &Path) -> io::Result<u64> {
        mend_folder(folder)?;
        let mut bytes = 0;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let found = entry.metadata()?;
            bytes += if found.is_file() { found.len() } else { 0 };
            if !is_kernel_stream(&name) {
                continue;
            }
            let left = match File::open(entry.path()) {
                Ok(file) => packets(&file, |_| Ok(()))?,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let end = self.ends.entry(name).or_default();
            *end = left.rest.end.max(*end);
        }
        self.before.bytes += bytes;
        Ok(bytes)
    }
}

/// Folders of a session's traces of the kernel: the first, and those of later recorders.
fn folders(output: &Path) -> impl Iterator<Item = PathBuf> {
    let others = (2..).map(|number| format!("{KERNEL_FOLDER}-{number}"));
    std::iter::once(KERNEL_FOLDER.to_owned()).chain(others).map(|name| output.join(name))
}
