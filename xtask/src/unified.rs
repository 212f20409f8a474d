//! Whether the sets of features that we build make other people's crates, and ours, in one way.
//!
//! Cargo unifies features over what one call builds. A crate that one set widens is compiled again for that set, and so is all above it; crate
//! `unify` asks for the widest form in all sets. This compares what `cargo tree` says of each set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// What `make demo`, the wheel, the tests, and the wheel with SQL are built of.
const SETS: [&[&str]; 4] = [
    &["--package", "kymo-cli"],
    &["--package", "kymo-python"],
    &["--workspace", "--features", "kymo-cli/sql"],
    &["--package", "kymo-python", "--features", "sql"],
];
/// Crates that are built in two ways: DataFusion asks for features of Arrow that take long to compile, and only builds with SQL have them.
const TWICE: [&str; 9] = [
    "arrow",
    "arrow-array",
    "arrow-cast",
    "arrow-ipc",
    "arrow-schema",
    "kymo-cli",
    "kymo-python",
    "kymo-session",
    "kymo-table",
];

/// Crates that are built in more ways than they should be.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for set in SETS {
        let tree = match tree(root, set) {
            Ok(tree) => tree,
            Err(problem) => return vec![problem],
        };
        for (package, features) in features(&tree) {
            found.entry(package).or_default().insert(features);
        }
    }
    let is_known = |package: &str| TWICE.iter().any(|name| package.split(' ').next() == Some(name));
    let twice = found.iter().filter(|(package, ways)| ways.len() > 1 && !is_known(package));
    twice
        .map(|(package, ways)| {
            let ways: Vec<_> = ways.iter().map(|features| format!("[{features}]")).collect();
            format!(
                "crates/unify/Cargo.toml: {package} is built with features {}; name what it lacks there",
                ways.join(" and ")
            )
        })
        .collect()
}

fn tree(root: &Path, set: &[&str]) -> Result<String, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}", "--edges"]);
    // Tests have dependencies of their own.
    cargo.arg(if set.contains(&"--workspace") { "normal,build,dev" } else { "normal,build" }).args(set);
    let output = cargo.current_dir(root).output().map_err(|error| format!("cargo tree: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Each package with the features of all its forms in one set: procedural macros may have another one than the programs that they are for.
fn features(tree: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (package, features) in tree.lines().filter_map(|line| line.split_once('|')) {
        let mut words = package.split(' ');
        let name = [words.next(), words.next()].map(Option::unwrap_or_default).join(" ");
        let features = features.trim_end_matches(" (*)").split(',').filter(|feature| !feature.is_empty());
        found.entry(name).or_default().extend(features);
    }
    found.into_iter().map(|(name, features)| (name, Vec::from_iter(features).join(","))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_all_forms_of_a_package_are_one_list() {
        let tree = "libc v0.2.1|std\nkymo-cli v0.1.0 (/somewhere)|view\nlibc v0.2.1|default,std (*)\nsyn v2.0.1 (proc-macro)|\n";
        let found = features(tree);
        assert_eq!(found["libc v0.2.1"], "default,std");
        assert_eq!(found["kymo-cli v0.1.0"], "view");
        assert_eq!(found["syn v2.0.1"], "");
    }
}
