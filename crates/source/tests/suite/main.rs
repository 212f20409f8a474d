//! Traces in folders and archives, and more of them than files may be open; one binary, which is linked once.

#[cfg(unix)]
#[path = "../../../tracer/tests/suite/alone.rs"]
mod alone;
mod archives;
mod folders;
mod importers;
#[cfg(unix)]
mod limits;
