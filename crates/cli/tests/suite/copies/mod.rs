//! Copies of the trace that is shipped, in folders of tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The trace that is shipped.
pub fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

/// Copies a folder and all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("temporary files may be written");
    for entry in fs::read_dir(from).expect("it is there") {
        let path = entry.expect("it can be read").path();
        let to = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("it can be copied");
        }
    }
}
