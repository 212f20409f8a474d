//! Values to CTF packets, packets to stream files, with metadata and index files beside them.
//!
//! It must never know where the values come from: a cut trace, a converter and a test write alike.
//!
//! ```text
//! TraceWriter ── DIR/metadata
//!   └ StreamWriter ── header, contexts, payload ── Encoder ── packet ─┬─ DIR/NAME
//!                                                                     └─ DIR/index/NAME.idx
//! RawTrace
//!   └ RawStream ── events that are bytes already ──────────────── packet ─┘
//! ```

mod encode;
mod error;
mod head;
mod packed;
mod raw;
mod stream;
mod trace;

pub use error::{WriteError, WriteProblem};
pub use kymo_format::model::EnvironmentValue;
pub use raw::{
    CtfVersion, EVENT_HEAD_BYTES, HEAD_BYTES, RawClock, RawEvent, RawOptions, RawPacket, RawRest, RawStream, RawTrace,
};
pub use stream::{EventParts, PacketTimes, StreamWriter};
pub use trace::{MetadataSource, TraceWriter, WriterOptions};
