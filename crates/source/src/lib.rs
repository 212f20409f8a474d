//! Where the bytes of a trace come from: folders, archives, single files.
//!
//! It must never know what the bytes mean. It is the only room where trace files are opened.
//!
//! ```text
//! what the user named ──find──> trace folders ──open──> streams ──read──> buffers
//! ```

mod archive;
mod buffer;
mod error;
mod find;
mod folder;
mod handles;
mod live;

pub use buffer::{Buffer, BufferPool, SLACK};
pub use error::{Error, ErrorKind, Seen};
pub use find::{Finder, find};
pub use folder::{FileIdentity, Stream, StreamEntry, TraceFolder};
pub use live::{LIVE_FILE, Live};
