//! The kernel as a source: eBPF programs loaded and run.
//!
//! It must never know CTF files, nor the viewer.
