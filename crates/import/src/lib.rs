//! Files in formats other than CTF, which become a description and packets of CTF.
//!
//! ```text
//! a file ──Importer──> metadata, sizes of packets ──┐
//!    └───PacketMaker──> one packet, when it is read ─┴─> read as any trace
//! ```
//!
//! The first reading of a file finds the places of its events; nothing of a file stays in memory. A new format is a module with
//! an [`Importer`](kymo_source::Importer) and a line in [`IMPORTERS`]. It must never know analyses or faces.

pub mod barrelfish;
pub mod capture;
mod chunks;
pub mod genode;
mod notes;
mod packet;
mod tsdl;
mod window;

use kymo_source::Importers;

/// All formats.
pub const IMPORTERS: Importers =
    Importers { files: &[&capture::PacketCapture, &barrelfish::Barrelfish], trees: &[&genode::GenodeRecordings] };
