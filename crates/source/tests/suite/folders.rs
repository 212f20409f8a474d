//! Folders as users have them: trees, links, pipes, missing rights, thousands of streams.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use kymo_source::{BufferPool, SLACK, find};

/// Files of that content below a new folder.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// What is found, one line a trace, or the message; `ROOT` stands for the folder.
fn show(root: &Path, name: &str) -> String {
    let mut text = String::new();
    match find(&root.join(name)) {
        Ok(traces) => {
            for trace in traces {
                let names: Vec<_> = trace.streams().iter().map(|it| format!("{}:{}", it.name, it.size)).collect();
                text += &format!("{} [{}]\n", trace.path().display(), names.join(" "));
            }
        }
        Err(error) => text += &format!("{error}\n"),
    }
    text.replace(&root.display().to_string(), "ROOT").replace('\\', "/")
}

#[test]
fn only_files_with_packets_are_streams() {
    let root =
        tree(&[("metadata", "m"), ("b", "22"), ("a", "1"), ("empty", ""), (".hidden", "x"), ("index/a.idx", "i")]);
    assert_eq!(show(root.path(), ""), "ROOT/ [a:1 b:2 empty:0]\n");
    let trace = &find(root.path()).unwrap()[0];
    assert_eq!(trace.metadata().unwrap(), b"m");
    assert_eq!(trace.index_file(0).unwrap().as_deref(), Some(&b"i"[..]));
    assert_eq!(trace.index_file(1).unwrap(), None);
}

#[test]
fn a_tree_gives_its_outermost_traces_in_order() {
    let root =
        tree(&[("s/ust/metadata", ""), ("s/ust/a", ""), ("s/kernel/metadata", ""), ("s/kernel/deep/metadata", "")]);
    assert_eq!(show(root.path(), "s"), "ROOT/s/kernel []\nROOT/s/ust [a:0]\n");
}

/// A recorder may give it its name between the listing and the reading.
#[test]
fn a_snapshot_that_is_being_written_is_not_read() {
    let root = tree(&[("t/snapshot-1/metadata", ""), ("t/.flush/metadata", ""), ("t/.other/metadata", "")]);
    assert_eq!(show(root.path(), "t"), "ROOT/t/.other []\nROOT/t/snapshot-1 []\n");
    // But a recorder may have been killed.
    assert_eq!(show(root.path(), "t/.flush"), "ROOT/t/.flush []\n");
}

#[test]
fn a_file_means_its_one_stream() {
    let root = tree(&[("t/metadata", ""), ("t/a", "1"), ("t/b", "22"), ("lonely", "packets")]);
    assert_eq!(show(root.path(), "t/b"), "ROOT/t [b:2]\n");
    assert_eq!(show(root.path(), "t/metadata"), "ROOT/t [a:1 b:2]\n");
    assert_eq!(
        show(root.path(), "lonely"),
        "ROOT/lonely: this file is no trace: it is no tar, gzip, zstd or zip archive, and its folder has no file named `metadata`\n"
    );
}

#[test]
fn no_trace_says_what_is_there() {
    let root = tree(&[("d/1", ""), ("d/2", ""), ("d/3", ""), ("d/4", ""), ("d/5", ""), ("n/metadata/x", "")]);
    fs::create_dir(root.path().join("empty")).unwrap();
    let none = "there is no trace here: neither this folder nor one below it has a file named `metadata`";
    assert_eq!(show(root.path(), "d"), format!("ROOT/d: {none}; it holds 1, 2, 3, 4 and 1 more\n"));
    assert_eq!(show(root.path(), "empty"), format!("ROOT/empty: {none}; it is empty\n"));
    // A folder called metadata is no metadata.
    assert_eq!(show(root.path(), "n"), format!("ROOT/n: {none}; it holds metadata\n"));
}

#[test]
fn a_file_that_shrank_gives_a_short_read() {
    let root = tree(&[("metadata", ""), ("a", "0123456789")]);
    let trace = &find(root.path()).unwrap()[0];
    let stream = trace.stream(0);
    let mut bytes = [0; 10];
    assert_eq!(stream.read_at(4, &mut bytes).unwrap(), 6);
    fs::OpenOptions::new().write(true).open(root.path().join("a")).unwrap().set_len(5).unwrap();
    assert_eq!(stream.read_at(4, &mut bytes).unwrap(), 1);
    assert_eq!(stream.read_at(u64::MAX, &mut bytes).unwrap_or(0), 0);
}

#[test]
fn buffers_have_zeroed_slack_and_are_reused() {
    let root = tree(&[("metadata", ""), ("a", "0123456789"), ("b", "xyz")]);
    let trace = &find(root.path()).unwrap()[0];
    let pool = BufferPool::default();
    let buffer = pool.read(&trace.stream(0), 0, 10).unwrap();
    assert_eq!(buffer.with_slack().len(), 10 + SLACK);
    let memory = buffer.bytes().as_ptr();
    let part = buffer.slice(2, 3);
    drop(buffer);
    assert_eq!(part.bytes(), b"234");
    drop(part);
    let again = pool.read(&trace.stream(1), 0, 10).unwrap();
    assert_eq!((again.bytes(), again.bytes().as_ptr()), (&b"xyz"[..], memory));
    assert!(again.with_slack()[3..].iter().all(|&byte| byte == 0));
}

#[test]
fn an_identity_changes_with_the_file() {
    let root = tree(&[("metadata", ""), ("a", "1")]);
    let trace = &find(root.path()).unwrap()[0];
    let before = trace.identity(0).unwrap();
    assert_eq!(trace.identity(0).unwrap(), before);
    fs::write(root.path().join("a"), "12").unwrap();
    assert_ne!(trace.identity(0).unwrap(), before);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    #[test]
    fn links_in_a_circle_end() {
        let root = tree(&[("s/t/metadata", ""), ("s/t/a", "1")]);
        symlink(root.path(), root.path().join("s/loop")).unwrap();
        symlink("self", root.path().join("s/self")).unwrap();
        symlink("a", root.path().join("s/t/linked")).unwrap();
        symlink("nowhere", root.path().join("s/t/broken")).unwrap();
        assert_eq!(show(root.path(), "s"), "ROOT/s/t [a:1 linked:1]\n");
    }

    /// Names of files are bytes; only people need text. (Not every file system takes such a name.)
    #[test]
    fn names_that_are_no_text_are_read() {
        use std::os::unix::ffi::OsStrExt;
        let root = tree(&[("metadata", "m"), ("a", "1")]);
        let name = std::ffi::OsStr::from_bytes(b"gr\xFC\xDFe");
        if fs::write(root.path().join(name), "22").is_err() {
            return;
        }
        assert_eq!(show(root.path(), ""), "ROOT/ [a:1 gr\u{FFFD}\u{FFFD}e:2]\n");
        let trace = &find(&root.path().join(name)).unwrap()[0];
        assert_eq!((trace.streams().len(), trace.identity(0).unwrap().size), (1, 2));
        assert_eq!(trace.stream(0).read_at(0, &mut [0; 8]).unwrap(), 2);
    }

    #[test]
    fn a_pipe_is_never_opened() {
        let root = tree(&[("t/metadata", ""), ("t/a", "1")]);
        for pipe in ["t/pipe", "lonely"] {
            let made = Command::new("mkfifo").arg(root.path().join(pipe)).status().expect("mkfifo is there");
            assert!(made.success());
        }
        assert_eq!(show(root.path(), "t"), "ROOT/t [a:1]\n");
        assert_eq!(
            show(root.path(), "lonely"),
            "ROOT/lonely: expected a folder or a file, found a pipe, socket or device\n"
        );
    }

    #[test]
    fn a_folder_that_may_not_be_listed_is_skipped_and_named() {
        let root = tree(&[("good/metadata", ""), ("closed/metadata", "")]);
        let closed = root.path().join("closed");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let allowed = fs::read_dir(&closed).is_ok();
        let mut finder = kymo_source::TraceFinder::default();
        let found = finder.find(root.path()).unwrap().len();
        let skipped: Vec<_> = finder.skipped().iter().map(|error| error.path.clone()).collect();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        // Root may list everything.
        let expected = if allowed { (2, vec![]) } else { (1, vec![closed]) };
        assert_eq!((found, skipped), expected);
    }
}
