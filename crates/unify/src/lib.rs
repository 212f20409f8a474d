//! No code: features of other people's crates that every build of the workspace shall have alike.
//!
//! It must never hold anything else. Cargo unifies features over what one call of it builds, so `cargo build --package kymo-cli`, the Python
//! wheel and `cargo test --workspace` would each compile their own copy of a crate whose features one of them widens, and of all crates above
//! it, ours among them. `cargo xtask house` fails, and names the line that is missing here, when a crate is built in two ways again.
