//! The `kymo` command.
fn main() {}
