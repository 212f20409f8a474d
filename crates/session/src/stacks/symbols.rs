//! Functions of files with code.
//!
//! A file of this machine counts only if it is the one that was recorded: if it has the same build id, or, where the kernel
//! told none and the trace is of this machine, the same inode.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;

use kymo_analysis::resolve::StackFrame;

use super::{file_name, perf_map};
use crate::open::report::ReportProblem;
use crate::open::stacks::{CodeFile, CodeOffset, CodeSource, TraceStacks};

/// Functions that were looked for, by the traces and sources of code, and the offsets there.
#[derive(Debug, Default)]
pub(super) struct KnownFunctions {
    functions: HashMap<(u32, u32), HashMap<u64, Vec<StackFrame>>>,
    /// Files whose functions have no names, and why.
    unfit: BTreeMap<PathBuf, String>,
    /// Stacks that the traces do not have.
    missed: usize,
}

impl KnownFunctions {
    /// So many stacks are not in the traces.
    pub(super) fn misses(&mut self, count: usize) {
        self.missed = self.missed.max(count);
    }

    /// Looks for the functions at these offsets of a source, unless they are known.
    pub(super) fn learn(&mut self, key: (u32, u32), trace: &TraceStacks, mut offsets: Vec<u64>) {
        let known = self.functions.entry(key).or_default();
        offsets.retain(|offset| !known.contains_key(offset));
        offsets.sort_unstable();
        offsets.dedup();
        let Some(source) = trace.sources.get(key.1 as usize).filter(|_| !offsets.is_empty()) else { return };
        let mut found = match source {
            CodeSource::File(file) => {
                let found = unfit(file, trace.is_here).map_or_else(|| elf(&file.path, &offsets), Err);
                found.unwrap_or_else(|why| {
                    self.unfit.insert(file.path.clone(), why);
                    HashMap::new()
                })
            }
            CodeSource::Own(pid, since) if trace.is_here => perf_map::functions(*pid, *since, &offsets),
            CodeSource::Own(..) | CodeSource::Special(_) => HashMap::new(),
        };
        known.extend(offsets.iter().map(|offset| {
            let frames = found.remove(offset).filter(|frames| !frames.is_empty());
            (*offset, frames.unwrap_or_else(|| vec![unnamed(source, *offset)]))
        }));
    }

    /// The functions of a place, the innermost first: those that are inlined there, and the one that has the code.
    pub(super) fn frames(&self, trace: u32, place: CodeOffset) -> &[StackFrame] {
        let known = self.functions.get(&(trace, place.source)).and_then(|known| known.get(&place.offset));
        known.map(|frames| &frames[..]).unwrap_or_default()
    }

    /// Why functions have no names, and how many stacks are missing.
    pub(super) fn take_problems(&mut self) -> Vec<ReportProblem> {
        let (unfit, missed) = (std::mem::take(&mut self.unfit), std::mem::take(&mut self.missed));
        let count = unfit.len();
        let files = unfit.into_iter().next().map(|(path, why)| {
            let path = path.display();
            let message = match count {
                1 => format!("functions of {path} are shown as numbers: {why}"),
                count => format!("functions of {count} files are shown as numbers; of {path}: {why}"),
            };
            ReportProblem { place: path.to_string(), message }
        });
        let stacks = (missed > 0).then(|| ReportProblem {
            place: "call stacks".to_owned(),
            message: format!("{missed} call stacks that events name are not in the trace, and have no functions"),
        });
        files.into_iter().chain(stacks).collect()
    }
}

fn unnamed(source: &CodeSource, offset: u64) -> StackFrame {
    let (function, object) = match source {
        CodeSource::File(file) => (format!("{}+{offset:#x}", file_name(&file.path)), file_name(&file.path)),
        CodeSource::Own(..) => ("[anonymous]".to_owned(), "[anonymous]".to_owned()),
        CodeSource::Special(name) => (name.clone(), name.clone()),
    };
    StackFrame { function, object, is_kernel: false, begin: 0 }
}

/// Why the file that is there is not the one that was recorded.
fn unfit(file: &CodeFile, is_here: bool) -> Option<String> {
    if file.is_deleted {
        return Some("it was deleted before or while it was recorded".to_owned());
    }
    let facts = match fs::metadata(&file.path) {
        Ok(facts) if facts.is_file() => facts,
        Ok(_) => return Some("there is something else than a file".to_owned()),
        Err(error) => return Some(error.to_string()),
    };
    if file.build_id.is_empty() {
        let is_same = is_here && file.inode != 0 && inode(&facts) == file.inode;
        let why = "it has no build id, and is another file than the one that was recorded";
        return (!is_same).then(|| why.to_owned());
    }
    match build_id(&file.path) {
        Ok(Some(known)) if known == file.build_id => None,
        Ok(_) => Some(format!("it is another file than the one that was recorded, with build id {}", file.build_id)),
        Err(error) => Some(error),
    }
}

#[cfg(unix)]
fn inode(facts: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(facts)
}

#[cfg(not(unix))]
fn inode(_: &fs::Metadata) -> u64 {
    0
}

#[cfg(all(feature = "symbols", unix))]
mod elf {
    use std::collections::HashMap;
    use std::fs::File;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;

    use blazesym::helper::read_elf_build_id;
    use blazesym::symbolize::source::{Elf, Source};
    use blazesym::symbolize::{Input, Symbolized, Symbolizer};
    use object::read::ReadCache;
    use object::{Object, ObjectSection};

    use super::{StackFrame, file_name};

    /// Bytes that compressed sections say they have, at most.
    const SECTIONS_MAX: u64 = 8 << 30;

    /// The build id of a file, in hexadecimal.
    pub(super) fn build_id(path: &Path) -> Result<Option<String>, String> {
        let read = || read_elf_build_id(&path).map_err(|error| error.to_string());
        let id = unless_broken(read)??;
        Ok(id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The functions at offsets of a file. The names of functions that are not inlined are those of its symbol table, as they have
    /// their scopes; without debugging information, or if that cannot be read, there are no others.
    pub(super) fn elf(path: &Path, offsets: &[u64]) -> Result<HashMap<u64, Vec<StackFrame>>, String> {
        let read = |debug| unless_broken(|| symbols(path, offsets, debug)).and_then(|read| read);
        let mut of_table = read(false);
        let of_debug = if is_sound(path) { read(true) } else { Err("its sections are broken".to_owned()) };
        let Ok(mut functions) = of_debug else { return of_table };
        for (offset, frames) in &mut functions {
            let named = of_table.as_mut().ok().and_then(|table| table.remove(offset)?.pop());
            if let Some((outermost, named)) = frames.last_mut().zip(named) {
                *outermost = named;
            }
        }
        Ok(functions)
    }

    /// Whether the sizes of compressed sections may be true.
    fn is_sound(path: &Path) -> bool {
        let read = || {
            let cache = ReadCache::new(File::open(path).ok()?);
            let file = object::File::parse(&cache).ok()?;
            let sizes = file
                .sections()
                .map(|section| section.compressed_file_range().ok().map(|range| range.uncompressed_size));
            sizes.sum::<Option<u64>>()
        };
        unless_broken(read).is_ok_and(|size| size.is_some_and(|size| size <= SECTIONS_MAX))
    }

    /// Runs a reader of files that others have made, which may be broken in any way.
    fn unless_broken<T>(read: impl FnOnce() -> T) -> Result<T, String> {
        catch_unwind(AssertUnwindSafe(read)).map_err(|_| "it is broken".to_owned())
    }

    fn symbols(path: &Path, offsets: &[u64], debug: bool) -> Result<HashMap<u64, Vec<StackFrame>>, String> {
        // One for each file: it keeps the files open that it has read.
        let symbolizer = Symbolizer::builder().enable_code_info(debug).enable_inlined_fns(debug).build();
        let mut file = Elf::new(path);
        file.debug_syms = debug;
        let source = Source::Elf(file);
        let found = symbolizer.symbolize(&source, Input::FileOffset(offsets)).map_err(|error| error.to_string())?;
        let object = file_name(path);
        let frame = |function: &str, begin| StackFrame {
            function: function.to_owned(),
            object: object.clone(),
            is_kernel: false,
            begin,
        };
        let frames = |symbol: Symbolized<'_>| {
            let symbol = symbol.into_sym()?;
            let inlined = symbol.inlined.iter().rev().map(|inlined| frame(&inlined.name, 0));
            Some(inlined.chain([frame(&symbol.name, symbol.addr)]).collect())
        };
        Ok(offsets.iter().zip(found).filter_map(|(offset, symbol)| Some((*offset, frames(symbol)?))).collect())
    }
}

#[cfg(not(all(feature = "symbols", unix)))]
mod elf {
    use std::collections::HashMap;
    use std::path::Path;

    use super::StackFrame;

    const WHY: &str = "this kymo was built without the feature `symbols`";

    pub(super) fn build_id(_: &Path) -> Result<Option<String>, String> {
        Err(WHY.to_owned())
    }

    pub(super) fn elf(_: &Path, _: &[u64]) -> Result<HashMap<u64, Vec<StackFrame>>, String> {
        Err(WHY.to_owned())
    }
}

use elf::{build_id, elf};
