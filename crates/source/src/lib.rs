//! Where the bytes of a trace come from: folders, archives, single files.
//!
//! It must never know the meaning of the bytes. It is the only room where trace files are opened.
//!
//! ```text
//! what the user named ──find──> trace folders ──open──> streams ──read──> buffers
//!                                └─ Storage: a folder on disk, in an archive, or packets that an importer makes
//! ```

mod archive;
mod buffer;
mod error;
mod find;
mod folder;
mod handles;
mod import;
mod live;
mod made;
mod storage;
mod stream;
mod tree;

pub use buffer::{Buffer, BufferPool, SLACK};
pub use error::{FolderContents, SourceError, SourceErrorKind};
pub use find::{ImportedFiles, TraceFinder, find};
pub use folder::TraceFolder;
pub use import::{
    FileTree, HEAD_BYTES, ImportNote, ImportOptions, ImportProblems, Imported, ImportedStream, Importer, Importers,
    PacketMaker, TreeFile, TreeFolder, TreeImporter,
};
pub use live::{LIVE_FILE, LiveState};
pub use storage::FileIdentity;
pub use stream::{ByteSource, StreamEntry};
