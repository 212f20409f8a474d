//! Users' own eBPF objects in the kernel: loaded, attached by the names of their sections, and taken away again.
//!
//! ```text
//! object, places ── aya: maps, types, CO-RE, verifier ──> programs ── attach ──> they run until this value goes
//!                     ├─ ring buffers, perf rings ──> files, which the command maps and reads
//!                     └─ tables ──> their entries, at the end
//! ```
//!
//! Such an object is code of its user that runs with the kernel's power, as far as the verifier lets it. So it is loaded only by a helper
//! that was started for that. The crate `aya` reads the object and makes its maps and programs; [`crate::helper`] has the messages.

mod attaching;
mod lines;
mod place;
mod reading;
mod refusal;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya::maps::{Map, MapData};
use aya::{Btf, Ebpf, EbpfLoader, VerifierLogLevel};
use serde::{Deserialize, Serialize};

use crate::btf::KernelTypes;
use crate::linux::tables::{self, EntryBytes};
use crate::linux::{self, BpfMapShape, MapKind};
use crate::mapped::Mapped;
use crate::perf_sched;
use crate::stacks::open_output;
use lines::PrintedLines;

pub use lines::PrintedLine;
pub use place::{AttachPlace, UnusablePlace};
pub use reading::{ObjectRecord, ObjectRings};

/// Bytes of an object at most.
pub const KERNEL_OBJECT_MAX: u64 = 64 << 20;
/// Bytes of a perf ring of a CPU.
const PERF_RING_BYTES: u32 = 256 << 10;
/// CPUs that have a perf ring.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// A request to load an object, which comes as a file behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRequest {
    /// Programs that are wanted.
    pub programs: Vec<WantedProgram>,
    /// Lines of `bpf_printk`, too.
    pub lines: bool,
}

/// A program of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedProgram {
    /// The name of its function.
    pub name: String,
    /// Its section.
    pub section: String,
}

/// Why an object is not loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{why}")]
pub struct ObjectRefusal {
    /// The program, if it is one that is refused.
    pub program: Option<String>,
    /// Why, in a sentence; the words of the kernel's verifier follow in lines of their own.
    pub why: String,
    /// A way out.
    pub help: Option<String>,
    /// The user lacks rights.
    pub is_forbidden: bool,
}

impl ObjectRefusal {
    fn of_object(why: impl Into<String>) -> Self {
        Self { program: None, why: why.into(), help: None, is_forbidden: false }
    }

    fn of_program(name: &str, why: impl Into<String>) -> Self {
        Self { program: Some(name.to_owned()), ..Self::of_object(why) }
    }

    fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// A map of a loaded object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedMap {
    /// Its name in the object.
    pub name: String,
    /// How its contents are had.
    pub contents: LoadedContents,
}

/// How the contents of a map are had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadedContents {
    /// A ring buffer of so many bytes: one file.
    Ring {
        /// Its size.
        bytes: u32,
    },
    /// A perf ring for each of these CPUs: as many files.
    PerfRings {
        /// The CPUs.
        cpus: Vec<u32>,
        /// The size of each.
        bytes: u32,
    },
    /// Keys and values, which the helper reads at the end.
    Table,
    /// Something else, that is only for programs.
    None,
}

/// A description of a loaded object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedObject {
    /// Its maps.
    pub maps: Vec<LoadedMap>,
    /// Why lines of `bpf_printk` are not shown, if they are wanted; their file comes last.
    pub no_lines: Option<String>,
    /// Lines were wanted, and have a file.
    pub has_lines: bool,
}

/// The end of a loaded object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedObject {
    /// Its tables; one file has their contents behind each other: all keys of a table, then all values.
    pub tables: Vec<TableShape>,
    /// Its programs.
    pub programs: Vec<RanProgram>,
}

/// The shape of the entries of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableShape {
    /// The map's name in the object.
    pub name: String,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value of one CPU.
    pub value_bytes: u32,
    /// CPUs that have a value of their own; 0: they share it.
    pub cpus: u32,
    /// Entries.
    pub entries: u64,
    /// Why they could not be read.
    pub problem: Option<String>,
}

impl TableShape {
    /// Bytes of the values of an entry.
    #[must_use]
    pub fn entry_bytes(&self) -> usize {
        match self.cpus as usize {
            0 => self.value_bytes as usize,
            cpus => cpus * self.stride(),
        }
    }

    /// Bytes from the value of a CPU to that of the next one.
    #[must_use]
    pub fn stride(&self) -> usize {
        (self.value_bytes as usize).next_multiple_of(8)
    }
}

/// How often a program ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanProgram {
    /// The name of its function.
    pub name: String,
    /// How often it ran; `None`: the kernel does not count for this user.
    pub runs: Option<u64>,
    /// Nanoseconds that it took.
    pub run_ns: u64,
    /// How often it did not run, because it ran already on that CPU.
    pub missed: u64,
}

/// A loaded object. Programs and maps go with it.
pub(crate) struct KernelObject {
    programs: Ebpf,
    names: Vec<String>,
    attached: Vec<attaching::AttachedProgram>,
    perf: Vec<PerfRing>,
    lines: Option<PrintedLines>,
    /// As long as it is open, the kernel counts runs.
    statistics: Option<OwnedFd>,
}

/// A perf ring of a CPU.
struct PerfRing {
    file: OwnedFd,
    /// Programs write to it only while it is mapped.
    _mapped: Mapped,
}

impl std::fmt::Debug for KernelObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelObject").field("names", &self.names).finish_non_exhaustive()
    }
}

impl KernelObject {
    /// Loads the wanted programs of an object and attaches them; returns it with its description and files.
    ///
    /// # Errors
    ///
    /// Why not; with the verifier's words, if it has refused a program.
    pub(crate) fn load(
        bytes: &[u8],
        request: &ObjectRequest,
    ) -> Result<(Self, LoadedObject, Vec<OwnedFd>), ObjectRefusal> {
        let places = request.programs.iter().map(|program| {
            let place = AttachPlace::of(&program.section);
            Ok((&program.name[..], place.map_err(|why| ObjectRefusal::of_program(&program.name, why.to_string()))?))
        });
        let places = places.collect::<Result<Vec<_>, ObjectRefusal>>()?;
        if places.is_empty() {
            return Err(ObjectRefusal::of_object("no program of the object is for the kernel"));
        }
        let types = KernelTypes::of_this_kernel().map_err(|why| refusal::no_types(&why))?;
        let btf = Btf::from_sys_fs().map_err(|error| refusal::no_types(&error.to_string()))?;
        attaching::check(&places, &types)?;
        let mut loader = EbpfLoader::new();
        loader.btf(Some(&btf)).allow_unsupported_maps().verifier_log_level(VerifierLogLevel::DEBUG);
        let mut programs = loader.load(bytes).map_err(|error| refusal::not_loaded(&error))?;
        for (name, place) in &places {
            attaching::load(&mut programs, name, place, &btf)?;
        }
        let names = places.iter().map(|(name, _)| (*name).to_owned()).collect();
        let statistics = tables::measure().ok();
        let mut object = Self { programs, names, attached: Vec::new(), perf: Vec::new(), lines: None, statistics };
        let (maps, mut files) = object.rings()?;
        let no_lines = request.lines.then(|| object.print_lines(&mut files)).and_then(Result::err);
        let has_lines = object.lines.is_some();
        for (name, place) in &places {
            let attached = attaching::attach(&mut object.programs, name, place)?;
            object.attached.push(attached);
        }
        Ok((object, LoadedObject { maps, no_lines, has_lines }, files))
    }

    /// Maps, and files of the rings among them.
    fn rings(&mut self) -> Result<(Vec<LoadedMap>, Vec<OwnedFd>), ObjectRefusal> {
        let (mut maps, mut files) = (Vec::new(), Vec::new());
        let mut all: Vec<(&str, &Map)> = self.programs.maps().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        for (name, map) in all {
            let told = |error: &dyn std::fmt::Display| ObjectRefusal::of_object(format!("map {name}: {error}"));
            let contents = match map {
                Map::RingBuf(data) => {
                    files.push(data.fd().as_fd().try_clone_to_owned().map_err(|error| told(&error))?);
                    LoadedContents::Ring { bytes: data.info().map_err(|error| told(&error))?.max_entries() }
                }
                Map::PerfEventArray(data) => {
                    let opened = perf_rings(data).map_err(|why| told(&why))?;
                    let cpus = opened.iter().map(|(cpu, _)| *cpu).collect();
                    for (_, ring) in opened {
                        files.push(ring.file.try_clone().map_err(|error| told(&error))?);
                        self.perf.push(ring);
                    }
                    LoadedContents::PerfRings { cpus, bytes: PERF_RING_BYTES }
                }
                map if table(map).is_some() => LoadedContents::Table,
                _ => LoadedContents::None,
            };
            maps.push(LoadedMap { name: name.to_owned(), contents });
        }
        Ok((maps, files))
    }

    fn print_lines(&mut self, files: &mut Vec<OwnedFd>) -> Result<(), String> {
        let (lines, file) = PrintedLines::begin()?;
        self.lines = Some(lines);
        files.push(file);
        Ok(())
    }

    /// Detaches the programs, and reads the tables into a file.
    pub(crate) fn end(&mut self, into: &mut impl std::io::Write) -> Result<EndedObject, String> {
        for attached in std::mem::take(&mut self.attached) {
            attached.detach(&mut self.programs);
        }
        let programs = self.names.iter().filter_map(|name| self.ran(name)).collect();
        let cpus = perf_sched::possible_cpus()?.len();
        let mut all: Vec<(&str, &Map)> = self.programs.maps().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        let mut shapes = Vec::new();
        for (name, map) in all {
            let Some((data, is_hash, is_per_cpu)) = table(map) else { continue };
            let info = data.info().map_err(|error| format!("map {name}: {error}"))?;
            let mut shape = TableShape {
                name: name.to_owned(),
                key_bytes: info.key_size(),
                value_bytes: info.value_size(),
                cpus: if is_per_cpu { cpus as u32 } else { 0 },
                entries: 0,
                problem: None,
            };
            let (key, value) = (shape.key_bytes as usize, shape.entry_bytes());
            let bytes = EntryBytes { key, value, is_hash, entries: info.max_entries() };
            match tables::entries(data.fd().as_fd(), bytes) {
                Ok(entries) => {
                    shape.entries = (entries.keys.len() / key.max(1)) as u64;
                    let written = into.write_all(&entries.keys).and_then(|()| into.write_all(&entries.values));
                    written.map_err(|error| format!("map {name}: {error}"))?;
                }
                Err(kind) => shape.problem = Some(kind.to_string()),
            }
            shapes.push(shape);
        }
        Ok(EndedObject { tables: shapes, programs })
    }

    fn ran(&self, name: &str) -> Option<RanProgram> {
        let file = attaching::file(self.programs.program(name)?)?;
        let runs = tables::runs(file).ok()?;
        let counted = self.statistics.is_some().then_some(runs.runs);
        Some(RanProgram { name: name.to_owned(), runs: counted, run_ns: runs.run_ns, missed: runs.missed })
    }
}

/// A map with keys and values; whether keys are hashed, and whether each CPU has a value.
fn table(map: &Map) -> Option<(&MapData, bool, bool)> {
    match map {
        Map::Array(data) => Some((data, false, false)),
        Map::PerCpuArray(data) => Some((data, false, true)),
        Map::HashMap(data) | Map::LruHashMap(data) => Some((data, true, false)),
        Map::PerCpuHashMap(data) | Map::PerCpuLruHashMap(data) => Some((data, true, true)),
        _ => None,
    }
}

/// Opens a ring for each CPU that is on, and puts it into the map.
fn perf_rings(map: &MapData) -> Result<Vec<(u32, PerfRing)>, String> {
    let entries = map.info().map_err(|error| error.to_string())?.max_entries();
    let online = std::fs::read_to_string(ONLINE).map_err(|error| format!("{ONLINE}: {error}"))?;
    let page = rustix::param::page_size();
    let mut rings = Vec::new();
    for cpu in perf_sched::cpus(&online).into_iter().filter(|cpu| *cpu < entries) {
        let told = |error: std::io::Error| format!("the kernel opens no perf ring on CPU {cpu}: {error}");
        let file = open_output(cpu).map_err(told)?;
        let bytes = page + PERF_RING_BYTES as usize;
        let mapped = Mapped::new(&file, 0, bytes, libc::PROT_READ | libc::PROT_WRITE).map_err(told)?;
        let shape = shape_of_perf(entries);
        linux::update(fd(map), shape, &cpu.to_ne_bytes(), &file.as_raw_fd().to_ne_bytes())
            .map_err(|kind| kind.to_string())?;
        rings.push((cpu, PerfRing { file, _mapped: mapped }));
    }
    Ok(rings)
}

fn shape_of_perf(entries: u32) -> BpfMapShape<'static> {
    BpfMapShape { kind: MapKind::Events, key_bytes: 4, value_bytes: 4, entries, flags: 0, inner: None }
}

fn fd(map: &MapData) -> BorrowedFd<'_> {
    map.fd().as_fd()
}
