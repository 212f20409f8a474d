//! The rings of a loaded object, as the command without rights reads them.
//!
//! ```text
//! ring buffer             one ring of all CPUs: records without a time
//! perf ring of a CPU      perf records: SAMPLE time, size, bytes │ LOST count │ ...
//! lines of bpf_printk     text
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::lines::{PrintedLine, read_lines};
use super::{LoadedContents, LoadedObject};
use crate::rings::KernelRing;
use crate::stacks::StackRings;

const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST: u32 = 2;
/// Bytes before a record, and before its bytes in a sample.
const HEAD: usize = 8;
const SAMPLE_HEAD: usize = 12;
/// Bytes of a ring buffer that are read at a time, about: records take more memory when they are values.
const DRAINED_BYTES: u64 = 1 << 20;

/// A record of a ring.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRecord<'a> {
    /// The name of the ring in the object.
    pub map: &'a str,
    /// Its time by `CLOCK_MONOTONIC`, where the kernel tells it.
    pub nanos: Option<u64>,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Rings of an object.
#[derive(Debug)]
pub struct ObjectRings {
    rings: Vec<(String, OwnedFd, KernelRing)>,
    perf: Vec<PerfRings>,
    lines: Option<(File, Vec<u8>)>,
}

#[derive(Debug)]
struct PerfRings {
    map: String,
    files: Vec<File>,
    rings: StackRings,
    /// As records tell.
    lost: u64,
}

impl ObjectRings {
    /// Maps them: files are those that came with the description.
    ///
    /// # Errors
    ///
    /// The kernel does not allow it, or there are too few files.
    pub fn map(object: &LoadedObject, files: Vec<OwnedFd>) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let mut files = files.into_iter();
        let mut next = || files.next().ok_or(io::ErrorKind::UnexpectedEof);
        let mut all = Self { rings: Vec::new(), perf: Vec::new(), lines: None };
        for map in &object.maps {
            match &map.contents {
                LoadedContents::Ring { bytes } => {
                    let file = next()?;
                    let ring = KernelRing::new(&file, *bytes, page)?;
                    all.rings.push((map.name.clone(), file, ring));
                }
                LoadedContents::PerfRings { cpus, bytes } => {
                    let files = cpus.iter().map(|_| next()).collect::<Result<Vec<_>, _>>()?;
                    let rings = StackRings::of_cpus(cpus, &files, *bytes)?;
                    let files = files.into_iter().map(File::from).collect();
                    all.perf.push(PerfRings { map: map.name.clone(), files, rings, lost: 0 });
                }
                LoadedContents::Table | LoadedContents::None => {}
            }
        }
        if object.has_lines {
            all.lines = Some((next()?.into(), Vec::new()));
        }
        Ok(all)
    }

    /// Waits until there may be records, or for so long.
    pub fn wait(&self, timeout: Duration) {
        let rings = self.rings.iter().map(|(_, file, _)| file.as_fd());
        let perf = self.perf.iter().flat_map(|perf| perf.files.iter().map(AsFd::as_fd));
        let lines = self.lines.iter().map(|(file, _)| file.as_fd());
        let mut files: Vec<PollFd<'_>> =
            rings.chain(perf).chain(lines).map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        // A signal ends it, too.
        let _ = poll(&mut files, Some(&timeout));
    }

    /// Calls `each` with records that came since the last time, and gives their room back; returns the lines that came. Of a ring buffer
    /// with many records, some are left for the next time.
    ///
    /// # Errors
    ///
    /// Lines cannot be read.
    pub fn drain(&mut self, mut each: impl FnMut(ObjectRecord<'_>)) -> io::Result<Vec<PrintedLine>> {
        let mut bytes = Vec::new();
        for (map, _, ring) in &mut self.rings {
            bytes.clear();
            // Until there are records: some may be discarded ones only.
            let mut before = None;
            while bytes.is_empty() && before != Some(ring.drained()) {
                before = Some(ring.drained());
                ring.drain_some(&mut bytes, DRAINED_BYTES);
                ring.release();
            }
            let mut rest = &bytes[..];
            while let Some((length, behind)) = rest.split_first_chunk() {
                let (record, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
                each(ObjectRecord { map, nanos: None, bytes: record });
                rest = behind;
            }
        }
        for PerfRings { map, rings, lost, .. } in &mut self.perf {
            rings.drain(|_, records, _| {
                for record in PerfRecords(records) {
                    match record {
                        PerfRecord::Sample { nanos, bytes } => {
                            each(ObjectRecord { map, nanos: Some(nanos), bytes });
                        }
                        PerfRecord::Lost(count) => *lost += count,
                    }
                }
            });
            rings.release();
        }
        match &mut self.lines {
            Some((file, rest)) => read_lines(file, rest),
            None => Ok(Vec::new()),
        }
    }

    /// Records that found no room in perf rings, by map.
    #[must_use]
    pub fn lost(&self) -> Vec<(String, u64)> {
        let of = |perf: &PerfRings| {
            // Records tell of a loss only when there is room again.
            let counted: u64 = perf.files.iter().filter_map(counted_losses).sum();
            (perf.map.clone(), counted.max(perf.lost))
        };
        self.perf.iter().map(of).filter(|(_, lost)| *lost > 0).collect()
    }
}

/// Losses of an event, where the kernel counts them: its value is before them.
fn counted_losses(mut event: &File) -> Option<u64> {
    let mut numbers = [0; 16];
    let read = event.read(&mut numbers).ok()?;
    (read == 16).then(|| numbers.last_chunk().map(|bytes| u64::from_ne_bytes(*bytes)))?
}

enum PerfRecord<'a> {
    Sample { nanos: u64, bytes: &'a [u8] },
    Lost(u64),
}

/// Perf records behind each other; others than samples and losses are left out.
struct PerfRecords<'a>(&'a [u8]);

impl<'a> Iterator for PerfRecords<'a> {
    type Item = PerfRecord<'a>;

    fn next(&mut self) -> Option<PerfRecord<'a>> {
        loop {
            let head = u64::from_ne_bytes(*self.0.first_chunk::<HEAD>()?);
            let (kind, length) = match cfg!(target_endian = "big") {
                true => ((head >> 32) as u32, head as u16 as usize),
                false => (head as u32, (head >> 48) as usize),
            };
            // Another process of this user could have written the ring.
            let record = self.0.get(HEAD..length)?;
            self.0 = &self.0[length..];
            let number = |at: usize| record.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
            match kind {
                RECORD_SAMPLE => {
                    let size = record.get(8..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))? as usize;
                    let bytes = record.get(SAMPLE_HEAD..SAMPLE_HEAD.checked_add(size)?)?;
                    return Some(PerfRecord::Sample { nanos: number(0)?, bytes });
                }
                RECORD_LOST => return Some(PerfRecord::Lost(number(8)?)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_records_are_told_apart() {
        let record = |kind: u32, body: &[u8]| {
            let mut bytes = kind.to_ne_bytes().to_vec();
            bytes.extend(0_u16.to_ne_bytes());
            bytes.extend((8 + body.len() as u16).to_ne_bytes());
            bytes.extend(body);
            bytes
        };
        let sample = [&7_u64.to_ne_bytes()[..], &4_u32.to_ne_bytes(), b"abcd"].concat();
        let lost = [1_u64.to_ne_bytes(), 5_u64.to_ne_bytes()].concat();
        let all = [record(9, &sample), record(3, &[0; 8]), record(2, &lost), record(9, &sample[..12])].concat();
        let mut records = PerfRecords(&all);
        assert!(matches!(records.next(), Some(PerfRecord::Sample { nanos: 7, bytes: b"abcd" })));
        assert!(matches!(records.next(), Some(PerfRecord::Lost(5))));
        assert!(records.next().is_none(), "it says that it has more bytes than it has");
        for end in 0..all.len() {
            assert!(PerfRecords(&all[..end]).count() <= 2);
        }
    }
}
