//! The house table of ARCHITECTURE.md against the manifests, and `unsafe` against its rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What does not agree.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    let said = table(&text);
    match manifests(root) {
        Ok(built) => compare(&said, &built, &mut problems),
        Err(problem) => problems.push(problem),
    }
    problems
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Rows of the table: the first column names a crate, the last what it may use.
fn table(text: &str) -> Arrows {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [name, .., uses] = cells[..] else { return None };
        Some((names(name).into_iter().next()?, names(uses)))
    })
    .collect()
}

/// What stands in backticks.
pub(crate) fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What cargo knows of the workspace's packages.
pub(crate) fn metadata(root: &Path) -> Result<serde_json::Value, String> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let output = Command::new("cargo").args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("cargo metadata: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|_| format!("cargo: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Which of our crates each of our crates depends on, tests aside.
fn manifests(root: &Path) -> Result<Arrows, String> {
    let metadata = metadata(root)?;
    let ours = |value: &serde_json::Value| value.as_str()?.strip_prefix("kymo-").map(str::to_owned);
    let mut arrows = Arrows::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let Some(name) = ours(&package["name"]) else { continue };
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        arrows.insert(name, normal.filter_map(|dependency| ours(&dependency["name"])).collect());
    }
    Ok(arrows)
}

fn compare(said: &Arrows, built: &Arrows, problems: &mut Vec<String>) {
    for name in built.keys().filter(|name| !said.contains_key(*name)) {
        problems.push(format!("ARCHITECTURE.md: the table has no row for `{name}`"));
    }
    for (name, uses) in said {
        let Some(depends) = built.get(name) else {
            problems.push(format!("ARCHITECTURE.md: there is no crate `{name}`"));
            continue;
        };
        for other in depends.difference(uses) {
            problems.push(format!("crates/{name}/Cargo.toml: uses `{other}`, which the house table does not allow"));
        }
        for other in uses.difference(depends) {
            problems.push(format!("ARCHITECTURE.md: `{name}` does not use `{other}`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_arrows() {
        let arrows = table("| crate | owns | may use |\n|---|---|---|\n| `a` | x | `b` `c` |\n| `b` | y | |\n");
        assert_eq!(arrows["a"], names("`b` `c`"));
        assert!(arrows["b"].is_empty());
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_found() {
        let (said, built) = (table("| `a` | x | |\n| `b` | y | |"), table("| `a` | x | `b` |\n| `b` | y | |"));
        let mut problems = Vec::new();
        compare(&said, &built, &mut problems);
        assert_eq!(problems, ["crates/a/Cargo.toml: uses `b`, which the house table does not allow"]);
    }
}
