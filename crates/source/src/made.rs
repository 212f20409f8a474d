//! Streams of imported traces: their packets are made when they are read, and the last ones kept.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::import::{Imported, PacketMaker};
use crate::stream::ReadAt;

/// Bytes of packets that are kept at least, if so many were made.
const KEPT_BYTES: u64 = 64 << 20;
/// Packets that are kept of each stream: readers of neighboring slices of time are in two.
const KEPT_PACKETS: u64 = 2;
/// Small packets that are kept at most, if there are not more streams: finding one takes time.
const KEPT_COUNT: usize = 256;

/// The packets of all streams of an imported trace.
pub(crate) struct MadePackets {
    path: PathBuf,
    maker: Arc<dyn PacketMaker>,
    /// For each stream, where its packets end.
    ends: Vec<Vec<u64>>,
    kept_bytes: u64,
    kept_count: usize,
    recent: Mutex<RecentPackets>,
}

/// The last packets that were read, the latest last.
#[derive(Default)]
struct RecentPackets {
    packets: VecDeque<(usize, usize, Arc<[u8]>)>,
    bytes: u64,
}

impl fmt::Debug for MadePackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.maker)
    }
}

impl MadePackets {
    /// Those of a trace in the file `path`.
    pub(crate) fn new(path: &Path, trace: &Imported) -> Self {
        let ends = |sizes: &Vec<u64>| {
            let end = |sum: &mut u64, size: &u64| {
                *sum = sum.saturating_add(*size);
                Some(*sum)
            };
            sizes.iter().scan(0, end).collect()
        };
        let largest = trace.streams.iter().map(|stream| stream.packets.iter().max().copied().unwrap_or(0));
        Self {
            path: path.to_owned(),
            maker: Arc::clone(&trace.maker),
            ends: trace.streams.iter().map(|stream| ends(&stream.packets)).collect(),
            kept_bytes: KEPT_BYTES.max(largest.sum::<u64>().saturating_mul(KEPT_PACKETS)),
            kept_count: KEPT_COUNT.max(trace.streams.len() * KEPT_PACKETS as usize),
            recent: Mutex::default(),
        }
    }

    /// Bytes of a stream.
    pub(crate) fn size(&self, stream: usize) -> u64 {
        self.ends[stream].last().copied().unwrap_or(0)
    }

    /// A packet, made unless it is one of the last.
    fn packet(&self, stream: usize, packet: usize) -> io::Result<Arc<[u8]>> {
        if let Some(bytes) = self.recent().take(stream, packet) {
            return Ok(bytes);
        }
        // Others can read meanwhile. Of two that make the same packet, both are right.
        let bytes: Arc<[u8]> = self.maker.make(stream, packet).map_err(io::Error::other)?.into();
        let ends = &self.ends[stream];
        let size = ends[packet] - packet.checked_sub(1).map_or(0, |before| ends[before]);
        if bytes.len() as u64 != size {
            let name = self.path.display();
            return Err(io::Error::other(format!("{name} is another file now than when it was opened")));
        }
        self.recent().put(stream, packet, &bytes, (self.kept_bytes, self.kept_count));
        Ok(bytes)
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, RecentPackets> {
        // A panic of another thread leaves whole packets in it.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecentPackets {
    /// The packet, which is the latest from now on.
    fn take(&mut self, stream: usize, packet: usize) -> Option<Arc<[u8]>> {
        let place = self.packets.iter().rposition(|kept| (kept.0, kept.1) == (stream, packet))?;
        let kept = self.packets.remove(place)?;
        let bytes = Arc::clone(&kept.2);
        self.packets.push_back(kept);
        Some(bytes)
    }

    fn put(&mut self, stream: usize, packet: usize, bytes: &Arc<[u8]>, (bytes_max, count_max): (u64, usize)) {
        self.packets.push_back((stream, packet, Arc::clone(bytes)));
        self.bytes += bytes.len() as u64;
        while self.packets.len() > count_max || self.bytes > bytes_max && self.packets.len() > 1 {
            let Some((_, _, oldest)) = self.packets.pop_front() else { break };
            self.bytes -= oldest.len() as u64;
        }
    }
}

/// A stream of an imported trace.
#[derive(Debug)]
pub(crate) struct MadeStream {
    pub(crate) packets: Arc<MadePackets>,
    pub(crate) stream: usize,
}

impl ReadAt for MadeStream {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let ends = &self.packets.ends[self.stream];
        let mut done = 0;
        let mut number = ends.partition_point(|end| *end <= offset);
        while done < buffer.len() && number < ends.len() {
            let packet = self.packets.packet(self.stream, number)?;
            let start = ends[number] - packet.len() as u64;
            let rest = &packet[(offset + done as u64 - start) as usize..];
            let count = rest.len().min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&rest[..count]);
            done += count;
            number += 1;
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::SourceError;
    use crate::import::ImportedStream;

    /// Packets of a stream's number, as often as the packet's number says, and one more.
    #[derive(Debug, Default)]
    struct Counted {
        made: AtomicUsize,
        /// Bytes that are too few.
        short: usize,
    }

    impl PacketMaker for Counted {
        fn make(&self, stream: usize, packet: usize) -> Result<Vec<u8>, SourceError> {
            self.made.fetch_add(1, Ordering::Relaxed);
            Ok(vec![stream as u8; packet + 1 - self.short])
        }
    }

    fn streams(maker: &Arc<Counted>, count: usize) -> Vec<MadeStream> {
        let stream = |number: usize| ImportedStream {
            name: number.to_string(),
            packets: vec![1, 2, 3],
            ..ImportedStream::default()
        };
        let mut trace = Imported::ready(Vec::new(), Vec::new());
        trace.streams = (0..count).map(stream).collect();
        trace.maker = maker.clone();
        let packets = Arc::new(MadePackets::new(Path::new("file"), &trace));
        (0..count).map(|stream| MadeStream { packets: Arc::clone(&packets), stream }).collect()
    }

    #[test]
    fn packets_are_read_at_any_place_and_made_once() {
        let maker = Arc::new(Counted::default());
        let streams = streams(&maker, 2);
        assert_eq!(streams[1].packets.size(1), 6);
        for offset in 0..8 {
            for size in 0..8 {
                let mut buffer = vec![9; size];
                let expected = size.min(6_usize.saturating_sub(offset));
                assert_eq!(streams[1].read_at(offset as u64, &mut buffer).unwrap(), expected, "{offset} {size}");
                assert!(buffer[..expected].iter().all(|byte| *byte == 1));
            }
        }
        assert_eq!(maker.made.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn the_oldest_packets_are_given_up() {
        let mut recent = RecentPackets::default();
        let bytes: Arc<[u8]> = vec![0; 10].into();
        for packet in 0..3 {
            recent.put(0, packet, &bytes, (25, 9));
            // It is asked for all the time, so the other one goes.
            assert!(recent.take(0, 0).is_some());
        }
        assert!(recent.take(0, 1).is_none() && recent.take(0, 2).is_some());
        assert_eq!((recent.packets.len(), recent.bytes), (2, 20));
        recent.put(0, 3, &bytes, (25, 1));
        assert_eq!((recent.packets.len(), recent.bytes), (1, 10));
    }

    #[test]
    fn a_file_that_changes_is_told() {
        let streams = streams(&Arc::new(Counted { short: 1, ..Counted::default() }), 1);
        let error = streams[0].read_at(0, &mut [0; 6]).unwrap_err();
        assert_eq!(error.to_string(), "file is another file now than when it was opened");
    }
}
