//! Users' eBPF objects in the kernel, as a command without rights has them.
//!
//! ```text
//! object ── helper with rights ──> programs run in the kernel ── rings, mapped here ──> records
//!                                                             └─ tables, in a file, at the end
//! ```

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use kymo_probe::helper::Helper;
pub use kymo_probe::helper::{HelperProblem, ObjectProblem};
pub use kymo_probe::objects::{
    AttachPlace, KERNEL_OBJECT_MAX, ObjectRecord, ObjectRefusal, ObjectRequest, PrintedLine, RanProgram, UnusablePlace,
    WantedProgram,
};
use kymo_probe::objects::{EndedObject, LoadedObject, ObjectRings, TableShape};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::time::{ClockId, clock_gettime};

/// How often the clocks are compared: the fastest time counts.
const COMPARISONS: usize = 8;

/// A connection to a helper that loads an object: it ends when this goes.
#[derive(Debug)]
pub struct ObjectHelper(Helper);

/// An object that is in the kernel as long as this is there.
#[derive(Debug)]
pub struct RunningObject {
    helper: Helper,
    rings: ObjectRings,
    loaded: LoadedObject,
    counts_losses: bool,
    /// When it was loaded, by `CLOCK_MONOTONIC`.
    begun_ns: u64,
    /// From that clock to the time since 1970.
    offset_ns: i64,
}

/// The end of such an object.
#[derive(Debug)]
pub struct EndedKernelObject {
    /// Its tables.
    pub tables: Vec<KernelTable>,
    /// Its programs.
    pub programs: Vec<RanProgram>,
    /// Records that found no room in perf rings, by map.
    pub lost: Vec<(String, u64)>,
}

/// A table of an object at the end.
#[derive(Debug)]
pub struct KernelTable {
    /// The map's name in the object.
    pub name: String,
    /// Keys, each with the values of CPUs: of CPU 0, if they share it.
    pub entries: Vec<TableEntry>,
    /// Why its entries are unknown.
    pub problem: Option<String>,
}

/// A key, and the values of CPUs.
pub type TableEntry = (Box<[u8]>, Vec<(usize, Box<[u8]>)>);

impl ObjectHelper {
    /// Connects to the helper with the socket of this name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn connect(name: &str) -> Result<Self, HelperProblem> {
        Helper::connect(name).map(Self)
    }

    /// Has the bytes of an object loaded. Where the kernel refuses those that count losses, the object itself is loaded.
    ///
    /// # Errors
    ///
    /// Why they are not.
    pub fn load(
        mut self,
        object: &[u8],
        counting: Option<&[u8]>,
        request: &ObjectRequest,
    ) -> Result<RunningObject, ObjectProblem> {
        if let Some(counting) = counting {
            match self.try_load(counting, request) {
                Ok(loaded) => return Ok(self.running(loaded, true)),
                Err(ObjectProblem::Refused(_)) => {}
                Err(problem) => return Err(problem),
            }
        }
        let loaded = self.try_load(object, request)?;
        Ok(self.running(loaded, false))
    }

    fn try_load(&mut self, object: &[u8], request: &ObjectRequest) -> Result<Loading, ObjectProblem> {
        // The bytes that this process has read: the file may be another one a moment later.
        let file = memfd_create("kymo-object", MemfdFlags::CLOEXEC).map_err(io::Error::from)?;
        let mut file = File::from(file);
        file.write_all(object)?;
        let begun_ns = monotonic_ns();
        let (loaded, files) = self.0.load_object(OwnedFd::from(file), request)?;
        Ok((ObjectRings::map(&loaded, files)?, loaded, begun_ns))
    }

    fn running(self, (rings, loaded, begun_ns): Loading, counts_losses: bool) -> RunningObject {
        RunningObject { helper: self.0, rings, loaded, counts_losses, begun_ns, offset_ns: clock_offset_ns() }
    }
}

/// Rings of an object that is loaded, its description, and the time before.
type Loading = (ObjectRings, LoadedObject, u64);

impl RunningObject {
    /// Its programs count records that find no room in ring buffers.
    #[must_use]
    pub fn counts_losses(&self) -> bool {
        self.counts_losses
    }

    /// Why lines of `bpf_printk` are not there.
    #[must_use]
    pub fn no_lines(&self) -> Option<&str> {
        self.loaded.no_lines.as_deref()
    }

    /// When it was loaded, by `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// From `CLOCK_MONOTONIC` to the time since 1970.
    #[must_use]
    pub fn offset_ns(&self) -> i64 {
        self.offset_ns
    }

    /// Waits until there may be records, or for so long.
    pub fn wait(&self, timeout: Duration) {
        self.rings.wait(timeout);
    }

    /// Calls `each` with records that came since the last time, of which there may be more; returns lines of `bpf_printk` that came.
    ///
    /// # Errors
    ///
    /// Lines cannot be read.
    pub fn drain(&mut self, each: impl FnMut(ObjectRecord<'_>)) -> io::Result<Vec<PrintedLine>> {
        self.rings.drain(each)
    }

    /// Detaches its programs. Records that came before that are still in its rings.
    ///
    /// # Errors
    ///
    /// The helper does not answer.
    pub fn end(&mut self) -> Result<EndedKernelObject, HelperProblem> {
        let (ended, file) = self.helper.end_object()?;
        let (EndedObject { tables, programs }, lost) = (ended, self.rings.lost());
        let mut file = BufReader::new(file);
        let tables = tables.into_iter().map(|shape| table(shape, &mut file)).collect::<io::Result<_>>()?;
        Ok(EndedKernelObject { tables, programs, lost })
    }
}

/// Reads the entries of a table: all keys, then all values.
fn table(shape: TableShape, file: &mut impl Read) -> io::Result<KernelTable> {
    let (key_bytes, value_bytes, stride) = (shape.key_bytes as usize, shape.value_bytes as usize, shape.stride());
    let count = usize::try_from(shape.entries).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut part = |bytes: usize| {
        let mut part = Vec::new();
        let size = count.checked_mul(bytes).ok_or(io::ErrorKind::InvalidData)?;
        file.take(size as u64).read_to_end(&mut part)?;
        if part.len() == size { Ok(part) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    };
    let (keys, values) = (part(key_bytes)?, part(shape.entry_bytes())?);
    let entries = (0..count).map(|number| {
        let key = &keys[number * key_bytes..][..key_bytes];
        let value = &values[number * shape.entry_bytes()..][..shape.entry_bytes()];
        let values = match shape.cpus as usize {
            0 => vec![(0, value.into())],
            cpus => (0..cpus).map(|cpu| (cpu, value[cpu * stride..][..value_bytes].into())).collect(),
        };
        (key.into(), values)
    });
    Ok(KernelTable { entries: entries.collect(), name: shape.name, problem: shape.problem })
}

/// The time by `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    nanos(ClockId::Monotonic) as u64
}

fn nanos(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// From `CLOCK_MONOTONIC` to the time since 1970: where the first clock is read twice, the other one is between.
pub(crate) fn clock_offset_ns() -> i64 {
    let compare = |_| {
        let (before, unix, after) = (nanos(ClockId::Monotonic), nanos(ClockId::Realtime), nanos(ClockId::Monotonic));
        (after - before, unix - before - (after - before) / 2)
    };
    (0..COMPARISONS).map(compare).min().map_or(0, |(_, offset)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_keys_then_values() {
        let shape = |cpus, entries| TableShape {
            name: "counts".to_owned(),
            key_bytes: 4,
            value_bytes: 4,
            cpus,
            entries,
            problem: None,
        };
        let bytes: Vec<u8> = (0..48).collect();
        let shared = table(shape(0, 2), &mut &bytes[..]).expect("it is whole");
        let entry = |key: [u8; 4], values: &[(usize, [u8; 4])]| {
            let values = values.iter().map(|(cpu, value)| (*cpu, Box::from(&value[..])));
            (Box::from(&key[..]), values.collect::<Vec<_>>())
        };
        assert_eq!(
            shared.entries,
            [entry([0, 1, 2, 3], &[(0, [8, 9, 10, 11])]), entry([4, 5, 6, 7], &[(0, [12, 13, 14, 15])])]
        );
        let by_cpu = table(shape(2, 1), &mut &bytes[..]).expect("it is whole");
        assert_eq!(by_cpu.entries, [entry([0, 1, 2, 3], &[(0, [4, 5, 6, 7]), (1, [12, 13, 14, 15])])]);
        assert!(table(shape(2, 4), &mut &bytes[..]).is_err(), "there are fewer bytes");
        assert!(table(shape(0, u64::MAX), &mut &bytes[..]).is_err());
    }
}
