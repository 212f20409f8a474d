//! `cargo xtask measure [FOLDER]`: figures of the house that should fall, for this clone or another one, so that two states can be compared.

use std::path::Path;

use crate::{cycles, names, words};

/// Prints the figures, a row of a table each.
pub(crate) fn print(root: &Path) {
    let row = |measure: &str, value: String| println!("| {measure} | {value} |");
    println!("| measure | {} |\n|---|---|", root.display());
    for (class, is_of) in words::CLASSES {
        let rates = words::all(root, is_of);
        row(&format!("`what` in 1000 words of {class}"), format!("{:.1}", rates.0));
        row(&format!("`who`, `somebody`, `nobody` in 1000 words of {class}"), format!("{:.1}", rates.1));
    }
    let (all, shared) = names::types(root);
    row(
        "types that share their name with another type",
        format!("{:.0} % of {all}", 100.0 * shared as f64 / all.max(1) as f64),
    );
    row("groups of modules that need each other in a circle", cycles::check(root).len().to_string());
}
