//! Where the bytes of a trace come from: folders, archives, single files.
//!
//! It must never know the meaning of the bytes. It is the only room where trace files are opened.
//!
//! ```text
//! what the user named ──find──> trace folders ──open──> streams ──read──> buffers
//!                                └─ Storage: a folder on disk, in an archive, or what an importer made in memory
//! ```

mod archive;
mod buffer;
mod error;
mod find;
mod folder;
mod handles;
mod import;
mod live;
mod storage;
mod stream;

pub use buffer::{Buffer, BufferPool, SLACK};
pub use error::{FolderContents, SourceError, SourceErrorKind};
pub use find::{TraceFinder, find};
pub use folder::TraceFolder;
pub use import::{Imported, Importer};
pub use live::{LIVE_FILE, LiveState};
pub use storage::FileIdentity;
pub use stream::{ByteSource, StreamEntry};
