//! The language in which people define events once, and all files that are made from it.
//!
//! ```text
//! shop.kymo ──parse──> SchemaFile ──resolve──> Schema ──┬─ emit::c, emit::rust     events of programs
//!   (or a .pleco of Barrelfish)         ^               ├─ emit::pleco             Barrelfish's header and JSON
//!                                    imports            ├─ emit::json, emit::page  for tools, for people
//!                                                       ├─ emit::ctf               metadata of CTF 1.8 and 2
//!                                                       └─ emit::roles             the meaning of events for analyses
//! SchemaFile ──layout──> the same file, tidy            Schema ──diff──> Schema: which readers break
//! ```
//!
//! A file that begins with `schema NAME VERSION;` is in the language that docs/define.md describes.
//! Any other is read as Barrelfish's tool `pleco` reads it, quirk for quirk: [`pleco`].
//!
//! It must never know how events are recorded, nor analyses.

pub mod cargo;
pub mod diff;
pub mod emit;
mod layout;
mod lexer;
mod model;
mod parse;
pub mod pleco;
mod problem;
mod resolve;

pub use layout::layout;
pub use model::{
    EventUse, FactValue, Meaning, MeaningFact, MeaningRole, Schema, SchemaDuration, SchemaEnumeration, SchemaEvent,
    SchemaField, SchemaLabel, SchemaSubsystem, SchemaType,
};
pub use problem::{SchemaPlace, SchemaProblem, SchemaProblems};
pub use resolve::{SchemaReader, read, read_file, read_import};

#[cfg(test)]
mod tests;
