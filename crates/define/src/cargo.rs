//! For the `build.rs` of Rust programs.

use std::path::{Path, PathBuf};

use crate::{emit, read};

/// Makes `NAME_events.rs` of a schema in `OUT_DIR`, to be included as a module. Cargo calls the build script again when one
/// of the schema's files changes.
///
/// ```no_run
/// // build.rs
/// kymo_define::cargo::build("shop.kymo");
/// // src/main.rs
/// // mod events { include!(concat!(env!("OUT_DIR"), "/shop_events.rs")); }
/// ```
///
/// # Panics
///
/// The schema cannot be read or has mistakes, which Cargo shows; or this is not called from a build script.
pub fn build(schema: impl AsRef<Path>) {
    let path = schema.as_ref();
    let found = read(path, &|path| {
        println!("cargo::rerun-if-changed={}", path.display());
        crate::read_file(path)
    });
    let (schema, problems) = found.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for problem in &problems.problems {
        let kind = if problem.is_warning { "warning" } else { "error" };
        println!("cargo::{kind}={}", problems.line(problem).replace('\n', " "));
    }
    let Some(schema) = schema else { panic!("{} has mistakes", path.display()) };
    let module = emit::rust::module(&schema).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it for build scripts"));
    let into = folder.join(format!("{}_events.rs", schema.name));
    if std::fs::read(&into).ok().as_deref() != Some(module.as_bytes()) {
        std::fs::write(&into, module).unwrap_or_else(|error| panic!("{}: {error}", into.display()));
    }
}
