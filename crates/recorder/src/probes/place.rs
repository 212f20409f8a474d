//! Where a program or library of a name is.

use std::path::{Path, PathBuf};

/// Folders of libraries, beside those of `LD_LIBRARY_PATH`.
const LIBRARIES: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The path of a file, without links: a name with `/` is a path, another one a program in `PATH` or a library.
pub(super) fn locate(name: &str) -> Option<PathBuf> {
    let is_file = |path: &Path| path.is_file();
    if name.contains('/') {
        return Some(Path::new(name)).filter(|path| is_file(path))?.canonicalize().ok();
    }
    if name.is_empty() {
        return None;
    }
    let of = |variable: &str| std::env::var_os(variable).map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>());
    let programs = of("PATH").unwrap_or_default();
    let libraries = of("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = programs.into_iter().chain(libraries).chain(LIBRARIES.map(PathBuf::from));
    let mut paths = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    paths.find(|path| is_file(path))?.canonicalize().ok()
}

/// Why a name is that of no file.
pub(super) fn absent(name: &str) -> String {
    if name.contains('/') {
        return format!("there is no file {name}");
    }
    let help = if Path::new(name).is_file() { format!("; the file here is `./{name}`") } else { String::new() };
    format!("there is no program or library `{name}` in the folders of PATH and of libraries{help}")
}
