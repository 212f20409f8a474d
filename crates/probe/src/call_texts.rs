//! Texts of system calls, read by two programs in the kernel: loaded and attached by the helper, and gone when it ends.
//!
//! The programs hand records to a ring of each CPU, which the recorder maps; nothing but the recorder reads them.

use std::os::fd::{AsFd, OwnedFd};

use kymo_ftrace::format::EventFormat;
use kymo_ftrace::{CallTable, EventCatalog};

use crate::btf::KernelTypes;
use crate::call_programs::{self, CallMaps, CallPlaces, GONE, NUMBERS};
use crate::linux::{BpfMapShape, MAP_CONSTANT, MAP_MAPPABLE, MapKind};
use crate::loading::{attach, load, map, put, spool};
use crate::thread_limit::ThreadLimit;

/// Threads whose texts are to be read again, at most.
const REMEMBERED: u32 = 4096;
/// Bytes of a ring: a power of two.
const RING_BYTES_MIN: u64 = 64 << 10;
const RING_BYTES_MAX: u64 = 64 << 20;
/// Calls that replace the memory of the caller: natively, and of 32-bit callers.
const REPLACING: [&str; 2] = ["execve", "execveat"];

/// Attached programs with their maps.
#[derive(Debug)]
pub(crate) struct CallTexts {
    /// Programs are attached as long as these are open.
    _links: [OwnedFd; 2],
    /// Bytes of each ring.
    pub(crate) ring_bytes: u32,
    pub(crate) cpus: Vec<u32>,
    /// Rings of these CPUs, and the counts.
    pub(crate) rings: Vec<OwnedFd>,
    pub(crate) counts: OwnedFd,
    /// Memory for their records.
    spool: OwnedFd,
}

/// Bits of texts by the number of the call, as the kernel's descriptions of calls tell them.
#[derive(Clone, Debug)]
struct TextTable(Vec<u8>);

impl TextTable {
    fn of(formats: &[(String, String)]) -> Self {
        let mut catalog = EventCatalog::default();
        let calls = formats.iter().filter(|(system, _)| system == "syscalls");
        for format in calls.filter_map(|(system, text)| EventFormat::parse(system, text).ok()) {
            catalog.add(format, true);
        }
        let mut table = Vec::with_capacity(2 * NUMBERS);
        for calls in [CallTable::Native, CallTable::Compat] {
            for number in 0..NUMBERS as u64 {
                let is_replacing = catalog.call_name(calls, number).is_some_and(|name| REPLACING.contains(&&*name));
                table.push(catalog.texts(calls, number) | if is_replacing { GONE } else { 0 });
            }
        }
        Self(table)
    }
}

impl CallTexts {
    /// Loads and attaches the programs, for calls with these descriptions, of all threads or of some.
    ///
    /// # Errors
    ///
    /// Why not, in a sentence; with the verifier's log.
    pub(crate) fn attach(
        cpus: &[u32],
        ring_bytes: u64,
        formats: &[(String, String)],
        limit: Option<&ThreadLimit>,
    ) -> Result<Self, String> {
        let types = KernelTypes::of_this_kernel()?;
        let places = CallPlaces::find(&types).ok_or("the kernel does not describe its system calls")?;
        let ring_bytes = ring_bytes.clamp(RING_BYTES_MIN, RING_BYTES_MAX).next_power_of_two() as u32;
        let count = cpus.iter().max().map_or(0, |cpu| cpu + 1);
        let (shape_of_rings, rings, by_cpu) = rings(cpus, count, ring_bytes, "kymo_texts")?;
        for (cpu, ring) in cpus.iter().zip(&rings) {
            let file = std::os::fd::AsRawFd::as_raw_fd(ring).to_ne_bytes();
            put(&by_cpu, BpfMapShape { inner: None, ..shape_of_rings }, *cpu, &file)?;
        }
        let plain =
            BpfMapShape { kind: MapKind::Array, key_bytes: 4, value_bytes: 8, entries: 1, flags: 0, inner: None };
        let all = TextTable::of(formats);
        let shape = BpfMapShape { value_bytes: all.0.len() as u32, flags: MAP_CONSTANT, ..plain };
        let table = map(shape, "kymo_table")?;
        put(&table, shape, 0, &all.0)?;
        let bytes = call_programs::COUNTS_AT as u32 + 8 * count;
        // The kernel maps no read-only one. A recorder that writes to it only disturbs its own counts.
        let counts = map(BpfMapShape { value_bytes: bytes, flags: MAP_MAPPABLE, ..plain }, "kymo_counts")?;
        let bytes = call_programs::SCRATCH_BYTES;
        let scratch =
            map(BpfMapShape { kind: MapKind::ArrayOfCpus, value_bytes: bytes, entries: 2, ..plain }, "kymo_scratch")?;
        let (value_bytes, entries) = (call_programs::REMEMBERED_BYTES, REMEMBERED);
        let remembered = map(BpfMapShape { kind: MapKind::Hash, value_bytes, entries, ..plain }, "kymo_again")?;
        let maps = CallMaps {
            threads: limit.map(ThreadLimit::threads),
            table: table.as_fd(),
            rings: by_cpu.as_fd(),
            scratch: scratch.as_fd(),
            remembered: remembered.as_fd(),
            counts: counts.as_fd(),
            cpus: count,
        };
        let entry = load(&call_programs::entry(maps, &places), "kymo_entry", places.enter)?;
        let exit = load(&call_programs::exit(maps, &places), "kymo_exit", places.exit)?;
        // The end first: no text is read that could not be read again.
        let links = [attach(&exit)?, attach(&entry)?];
        let spool = spool("kymo-texts")?;
        Ok(Self { _links: links, ring_bytes, cpus: cpus.to_vec(), rings, counts, spool })
    }

    /// Its files, for the recorder.
    pub(crate) fn files(&self) -> std::io::Result<Vec<OwnedFd>> {
        self.rings.iter().chain([&self.counts, &self.spool]).map(OwnedFd::try_clone).collect()
    }
}

/// Rings of CPUs, and the map that has them by CPU.
pub(crate) fn rings(
    cpus: &[u32],
    count: u32,
    ring_bytes: u32,
    name: &str,
) -> Result<(BpfMapShape<'static>, Vec<OwnedFd>, OwnedFd), String> {
    let ring =
        BpfMapShape { kind: MapKind::Ring, key_bytes: 0, value_bytes: 0, entries: ring_bytes, flags: 0, inner: None };
    let rings: Vec<OwnedFd> = cpus.iter().map(|_| map(ring, name)).collect::<Result<_, _>>()?;
    let inner = rings.first().ok_or_else(|| "there is no CPU".to_owned())?;
    let shape =
        BpfMapShape { kind: MapKind::ArrayOfMaps, key_bytes: 4, value_bytes: 4, entries: count, flags: 0, inner: None };
    let by_cpu = map(BpfMapShape { inner: Some(inner.as_fd()), ..shape }, "kymo_rings")?;
    Ok((shape, rings, by_cpu))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::btf::TYPES;
    use crate::rings::{ProgramRingFiles, ProgramRings};
    use crate::tracefs::TraceFs;

    /// The verifier takes the programs, for as many CPUs as there may be.
    #[test]
    fn the_kernel_takes_the_programs() {
        let fs = match TraceFs::find() {
            Ok(fs) => fs,
            Err(problem) => return println!("NO TRACEFS HERE: not run ({problem})"),
        };
        let formats = ["openat", "execve", "rename"].map(|call| {
            ("syscalls".to_owned(), fs.format("syscalls", &format!("sys_enter_{call}")).expect("it is there"))
        });
        for cpus in [&[0, 1][..], &[0], &[0, 5, 8191]] {
            match CallTexts::attach(cpus, 0, &formats, None) {
                Ok(texts) => told_by_rings(cpus, texts),
                Err(why) => {
                    let is_absent = why.starts_with(TYPES) || why.contains("not permitted") || why.contains("rmission");
                    assert!(is_absent, "{why}");
                    return println!("NO BPF HERE: not run ({why})");
                }
            }
        }
    }

    /// The rings can be mapped, and have the text of a call of this thread: on a CPU that has one, and read now.
    fn told_by_rings(cpus: &[u32], texts: CallTexts) {
        assert_eq!((texts.rings.len(), texts.ring_bytes), (cpus.len(), 64 << 10));
        let files = ProgramRingFiles {
            ring_bytes: texts.ring_bytes,
            cpus: cpus.to_vec(),
            rings: texts.rings.iter().map(|ring| ring.try_clone().expect("there are more")).collect(),
            counts: texts.counts.try_clone().expect("there are more"),
            spool: texts.spool.try_clone().expect("there are more"),
        };
        let mut rings = ProgramRings::map(&files).expect("they can be mapped");
        let mut records = Vec::new();
        rings.drain(&mut records);
        rings.release();
        records.clear();
        let _ = fs::rename("/kymo/nothing/here", "/kymo/nothing/there");
        let read = rings.drain(&mut records);
        // Until they are released, they are there.
        assert!(rings.drain(&mut Vec::new()) >= read);
        rings.release();
        if cpus.len() == std::thread::available_parallelism().map_or(1, usize::from) {
            let found = |text: &[u8]| records.windows(text.len()).any(|bytes| bytes == text);
            assert!(read >= 2 && found(b"/kymo/nothing/here\0") && found(b"/kymo/nothing/there\0"), "{read}");
        }
        // Once read, they are gone; when the programs are gone, nothing comes. A child that another test of this
        // process just starts keeps them until it executes its program.
        drop(texts);
        rings.drain(&mut Vec::new());
        rings.release();
        let mut tries = 0;
        loop {
            let _ = fs::rename("/kymo/nothing/here", "/kymo/nothing/there");
            if rings.drain(&mut Vec::new()) == 0 {
                break;
            }
            rings.release();
            tries += 1;
            assert!(tries < 1000, "the programs are still there");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    #[test]
    fn calls_have_the_texts_that_the_kernel_describes() {
        let Ok(fs) = TraceFs::find() else { return println!("NO TRACEFS HERE: not run") };
        let of = |call: &str| {
            ("syscalls".to_owned(), fs.format("syscalls", &format!("sys_enter_{call}")).expect("it is there"))
        };
        let calls = ["openat", "execve", "renameat2", "write", "mount", "add_key", "read", "linkat", "mq_timedsend"];
        let table = TextTable::of(&calls.map(of)).0;
        if cfg!(target_arch = "x86_64") {
            let wanted =
                [(257, 2), (59, 1 | GONE), (316, 0b1010), (1, 0), (165, 0b111), (248, 1), (0, 0), (265, 0b1010)];
            wanted.into_iter().for_each(|(number, bits)| assert_eq!(table[number], bits, "{number}"));
            // As 32-bit programs number them; `stat64` is theirs alone.
            let wanted = [(295, 2), (11, 1 | GONE), (195, 1), (4, 0)];
            wanted.into_iter().for_each(|(number, bits)| assert_eq!(table[NUMBERS + number], bits, "{number}"));
        }
    }
}
