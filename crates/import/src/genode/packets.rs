//! Packets when they are read: as they are in the file, with a name of their thread and the time that their clock
//! lacks.

use std::fmt;
use std::sync::Arc;

use kymo_source::{ByteSource, PacketMaker, SourceError};

use super::heads::{BEGIN, END, SIZE_BITS};
use super::layout::{EVENT_TIME, EventLayouts};
use super::threads::{ThreadIndex, ThreadPacket};

/// The packets of all data streams.
pub(super) struct TreePackets {
    files: Vec<ByteSource>,
    layouts: EventLayouts,
    streams: Vec<StreamOrigin>,
}

/// Whose packets those of a data stream are.
enum StreamOrigin {
    OfThread(ThreadIndex),
    /// Those of a stream of another file.
    Other(Arc<dyn PacketMaker>, usize),
}

impl fmt::Debug for TreePackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} data streams of {} files", self.streams.len(), self.files.len())
    }
}

impl TreePackets {
    /// None yet.
    pub(super) fn new(files: Vec<ByteSource>, layouts: EventLayouts) -> Self {
        Self { files, layouts, streams: Vec::new() }
    }

    /// The next data stream is that of a thread.
    pub(super) fn add(&mut self, thread: ThreadIndex) {
        self.streams.push(StreamOrigin::OfThread(thread));
    }

    /// The next data stream is one of another maker.
    pub(super) fn add_other(&mut self, maker: Arc<dyn PacketMaker>, stream: usize) {
        self.streams.push(StreamOrigin::Other(maker, stream));
    }

    fn of_thread(&self, thread: &ThreadIndex, packet: &ThreadPacket) -> Result<Vec<u8>, SourceError> {
        let (file, size) = (&self.files[thread.file], thread.size(packet));
        let mut found = vec![0; packet.bytes as usize];
        let read = file.read_at(packet.at, &mut found)?;
        found.truncate(read);
        let head = (packet.head as usize).min(read);
        let mut bytes = Vec::with_capacity(size as usize);
        bytes.extend_from_slice(&found[..head]);
        bytes.extend_from_slice(&thread.called);
        let events = bytes.len();
        bytes.extend_from_slice(&found[head..]);
        let size_bits = (size * 8) as u32;
        put(&mut bytes, BEGIN, &packet.begin.to_le_bytes());
        put(&mut bytes, END, &packet.end.to_le_bytes());
        put(&mut bytes, SIZE_BITS, &size_bits.to_le_bytes());
        if packet.ahead > 0 {
            let (begins, _) = self.layouts.walk(&bytes[events..]);
            for at in begins.into_iter().map(|begin| events + begin + EVENT_TIME) {
                let time = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("an event is whole"));
                put(&mut bytes, at, &time.saturating_add(packet.ahead).to_le_bytes());
            }
        }
        Ok(bytes)
    }
}

/// Overwrites bytes, if they are there: a file may have become shorter.
fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

impl PacketMaker for TreePackets {
    fn make(&self, stream: usize, packet: usize) -> Result<Vec<u8>, SourceError> {
        match &self.streams[stream] {
            StreamOrigin::OfThread(thread) => self.of_thread(thread, &thread.packets[packet]),
            StreamOrigin::Other(maker, stream) => maker.make(*stream, packet),
        }
    }
}
