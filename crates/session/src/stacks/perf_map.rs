//! Maps in which processes name the code that they have made, as `perf` reads them: `/tmp/perf-PID.map`, a line
//! `START SIZE NAME` for each function.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use kymo_analysis::resolve::StackFrame;

/// Bytes of a map, and of a line, at most.
const BYTES_MAX: u64 = 1 << 30;
const LINE_MAX: u64 = 1 << 16;

/// The functions of addresses in the code that a process has made; `since`: it began then.
pub(super) fn functions(pid: i32, since: Option<i64>, addresses: &[u64]) -> HashMap<u64, Vec<StackFrame>> {
    let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    open(&path, since).map(|file| named(BufReader::new(file.take(BYTES_MAX)), addresses)).unwrap_or_default()
}

/// Opens the map, if it may be of the process. Any user may have put something else there.
fn open(path: &std::path::Path, since: Option<i64>) -> Option<File> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32);
    }
    let file = options.open(path).ok()?;
    let facts = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let written = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    // That of an earlier process with this number is older.
    since.is_none_or(|since| written >= since.max(0).cast_unsigned().into()).then_some(file)
}

/// The functions of addresses. Memory may be used again: later lines count, and what they overlap is gone.
fn named(mut map: impl BufRead, addresses: &[u64]) -> HashMap<u64, Vec<StackFrame>> {
    let mut known: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match map.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
        let text = String::from_utf8_lossy(&line);
        let mut words = text.splitn(3, ' ');
        let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
        let (Some(start), Some(size)) = (number(), number()) else { continue };
        let Some(name) = words.next().map(str::trim).filter(|_| size > 0) else { continue };
        let end = start.saturating_add(size);
        let before = known.range(..start).next_back().filter(|(_, (end, _))| *end > start).map(|(at, _)| *at);
        let gone: Vec<u64> = before.into_iter().chain(known.range(start..end).map(|(at, _)| *at)).collect();
        gone.iter().for_each(|at| _ = known.remove(at));
        known.insert(start, (end, name.to_owned()));
    }
    let function = |address: &u64| {
        let (begin, (_, name)) = known.range(..=*address).next_back().filter(|(_, (end, _))| address < end)?;
        let frame =
            StackFrame { function: name.clone(), object: "perf map".to_owned(), is_kernel: false, begin: *begin };
        Some((*address, vec![frame]))
    };
    addresses.iter().filter_map(function).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_lines_count() {
        let map = b"1010 10 old\n1000 100 new one\nwrong\n2000 0 empty\n3000 ffffffffffffffff last\n4000".as_slice();
        let functions = named(map, &[0xfff, 0x1000, 0x1018, 0x10ff, 0x1100, 0x2000, 0x3001]);
        let mut named: Vec<(u64, &str)> = functions.iter().map(|(at, frames)| (*at, &*frames[0].function)).collect();
        named.sort_unstable();
        assert_eq!(named, [(0x1000, "new one"), (0x1018, "new one"), (0x10ff, "new one"), (0x3001, "last")]);
    }
}
