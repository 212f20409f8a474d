//! The traces that were opened last: a small file in the folder of caches, which may be deleted at
//! any time.
//!
//! ```text
//! {"recent": [{"opened_ns": 1795219372256000000, "paths": ["…/kernel", "…/ust"]}, …]}     the last one first
//! ```
//!
//! Traces that were opened together are one entry. A file that is damaged says so until something
//! is opened, and is begun anew then. A user that cannot read or write it loses a convenience, and
//! looks at traces all the same.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Entries that are kept.
const ENTRIES_MAX: usize = 20;
/// Bytes of a file that may be one of these.
const BYTES_MAX: u64 = 1 << 20;
const NAME: &str = "recent.json";

/// The traces that were looked at last.
#[derive(Clone, Debug)]
pub struct Recent {
    path: PathBuf,
}

/// Traces that were opened together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentTraces {
    /// As they were named, from the root on.
    pub paths: Vec<PathBuf>,
    /// When they were opened last, in nanoseconds since 1970.
    pub opened_ns: i64,
    /// Whether all of the paths are there now.
    pub there: bool,
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentFound {
    /// The opened traces, the last ones first.
    pub entries: Vec<RecentTraces>,
    /// Why nothing is known of earlier traces, if something is wrong.
    pub problem: Option<String>,
}

/// The file, as it is written.
#[derive(Default, Serialize, Deserialize)]
struct RecentFile {
    recent: Vec<RecentEntry>,
}

#[derive(Serialize, Deserialize)]
struct RecentEntry {
    opened_ns: i64,
    paths: Vec<PathBuf>,
}

impl Recent {
    /// Those of the user with this folder of caches; see [`cache_folder`](crate::cache_folder).
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join(NAME) }
    }

    /// The opened traces, and which of them exist.
    #[must_use]
    pub fn read(&self) -> RecentFound {
        match self.content() {
            Ok(content) => RecentFound { entries: content.recent.into_iter().map(told).collect(), problem: None },
            Err(problem) => RecentFound { entries: Vec::new(), problem: Some(problem) },
        }
    }

    /// Notes that these were opened together. Names that are no Unicode cannot be noted.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn note(&self, paths: &[PathBuf], opened: SystemTime) -> io::Result<()> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| whole(path)).collect();
        if paths.is_empty() || paths.iter().any(|path| path.to_str().is_none()) {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        // Other processes wait, where a system can have a folder locked; where it cannot, the last one wins.
        let held = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
        let mut content = self.content().unwrap_or_default();
        content.recent.retain(|entry| entry.paths != paths);
        let since = opened.duration_since(UNIX_EPOCH).unwrap_or_default();
        content.recent.insert(0, RecentEntry { opened_ns: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX), paths });
        content.recent.truncate(ENTRIES_MAX);
        // Readers see all of the old file or all of the new one.
        let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
        fresh.write_all(&serde_json::to_vec(&content)?)?;
        fresh.persist(&self.path)?;
        drop(held);
        Ok(())
    }

    /// The content of the file, or its problem; an absent file counts as empty.
    fn content(&self) -> Result<RecentFile, String> {
        let wrong =
            |why: String| format!("{}: {why}; the file is rewritten when a trace is opened", self.path.display());
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(RecentFile::default()),
            opened => opened.map_err(|error| wrong(error.to_string()))?,
        };
        let mut text = Vec::new();
        file.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(|error| wrong(error.to_string()))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(wrong(format!("found more than {BYTES_MAX} bytes")));
        }
        serde_json::from_slice(&text).map_err(|error| wrong(format!("found no list of recent traces: {error}")))
    }
}

fn told(entry: RecentEntry) -> RecentTraces {
    let there = entry.paths.iter().all(|path| path.exists());
    RecentTraces { paths: entry.paths, opened_ns: entry.opened_ns, there }
}

/// The path from the root on, so that it leads there from anywhere, and is the same for every way
/// there.
fn whole(path: &Path) -> PathBuf {
    // Windows' own form of it is not for people.
    let found = if cfg!(windows) { std::path::absolute(path) } else { std::fs::canonicalize(path) };
    found.or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Folders of traces, and the file.
    fn made(names: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>, Recent) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = names.iter().map(|name| whole(folder.path()).join(name)).collect();
        paths.iter().for_each(|path| std::fs::create_dir(path).unwrap());
        let recent = Recent::in_folder(&folder.path().join("cache"));
        (folder, paths, recent)
    }

    #[test]
    fn the_last_one_stands_first_and_once() {
        let (_folder, paths, recent) = made(&["a", "b"]);
        assert_eq!(recent.read(), RecentFound::default());
        recent.note(&paths[..1], at(1)).unwrap();
        recent.note(&paths, at(2)).unwrap();
        recent.note(&[paths[0].join("../a")], at(3)).unwrap();
        let found = recent.read();
        let told: Vec<_> = found.entries.iter().map(|entry| (entry.paths.clone(), entry.opened_ns)).collect();
        assert_eq!(told, [(paths[..1].to_vec(), 3_000_000_000), (paths.clone(), 2_000_000_000)]);
        assert!(found.problem.is_none() && found.entries.iter().all(|entry| entry.there));
        std::fs::remove_dir(&paths[1]).unwrap();
        let there: Vec<bool> = recent.read().entries.iter().map(|entry| entry.there).collect();
        assert_eq!(there, [true, false]);
    }

    #[test]
    fn there_are_so_many_and_no_more() {
        let (folder, _, recent) = made(&[]);
        for number in 0..30 {
            recent.note(&[folder.path().join(number.to_string())], at(number)).unwrap();
        }
        let found = recent.read().entries;
        assert_eq!((found.len(), found[0].opened_ns, found[19].opened_ns), (20, 29_000_000_000, 10_000_000_000));
    }

    #[test]
    fn a_damaged_file_says_so_and_begins_anew() {
        let (_folder, paths, recent) = made(&["a"]);
        recent.note(&paths, at(1)).unwrap();
        for damage in [&b"{\"recent\": [{"[..], b"", b"\xff\xfe", &vec![b' '; 2 << 20], b"{\"recent\": 5}"] {
            std::fs::write(&recent.path, damage).unwrap();
            let found = recent.read();
            assert!(found.entries.is_empty());
            let problem = found.problem.unwrap();
            assert!(
                problem.contains("recent.json: found ") && problem.contains("is rewritten when a trace is opened"),
                "{problem}"
            );
            recent.note(&paths, at(5)).unwrap();
            assert_eq!((recent.read().entries.len(), recent.read().problem), (1, None));
        }
    }
}
