//! Objects that clang compiles here: read, linked, run; one binary, which is linked once.

mod build;
mod core;
mod objects;
mod runs;
