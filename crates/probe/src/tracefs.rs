//! Tracefs: a ring buffer of our own in the kernel (an *instance*), and the files by which it is read.
//!
//! ```text
//! /sys/kernel/tracing/                     mounted if it is not
//!   instances/kymo-PID-N/                  ours; others are never touched
//!     trace_clock buffer_size_kb tracing_on
//!     events/SYSTEM/NAME/{enable,filter}
//!     per_cpu/cpuN/{trace_pipe_raw,stats}
//! uprobe_events kprobe_events              probes of the group kymo_PID_N, as long as the instance is there
//! ```
//!
//! The kernel refuses to remove an instance of which a file is open. So an instance that can be removed belongs to a process that is gone.

mod prepared;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use prepared::{InstanceRights, PREPARED, instance_rights};

/// Where tracefs may be mounted.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Names of our instances begin so.
const OURS: &str = "kymo-";
/// Groups of our probes begin so.
const OUR_GROUPS: &str = "kymo_";
/// Files that make probes.
const PROBE_FILES: [&str; 2] = ["uprobe_events", "kprobe_events"];
/// How long a reader's files may take to be closed.
const BUSY_MAX: Duration = Duration::from_secs(3);
const BETWEEN: Duration = Duration::from_millis(10);
/// Threads that are written at a time: the kernel takes less than a page.
const THREADS_AT_A_TIME: usize = 200;

/// Why tracefs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceFsProblem {
    /// It is not there, and cannot be mounted.
    #[error("the kernel's tracefs is not mounted at /sys/kernel/tracing, and cannot be: {0}")]
    Absent(io::Error),
    /// There is no memory for its pages.
    #[error("there is no memory for the kernel's events: {0}")]
    Memory(io::Error),
    /// Its files may not be used.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl TraceFsProblem {
    /// It is a matter of rights.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        let (Self::Absent(error) | Self::Memory(error) | Self::File { error, .. }) = self;
        matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> TraceFsProblem + '_ {
    |error| TraceFsProblem::File { path: path.to_owned(), error }
}

/// Tracefs.
#[derive(Clone, Debug)]
pub struct TraceFs {
    root: PathBuf,
}

impl TraceFs {
    /// Finds it; mounts it where it is not.
    ///
    /// # Errors
    ///
    /// It is not there, or this process may not use it.
    pub fn find() -> Result<Self, TraceFsProblem> {
        for place in PLACES {
            let file = Path::new(place).join("available_events");
            match File::open(&file) {
                Ok(_) => return Ok(Self { root: PathBuf::from(place) }),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(at(&file)(error)),
                Err(_) => {}
            }
        }
        mount(Path::new(PLACES[0])).map_err(TraceFsProblem::Absent)?;
        let root = PathBuf::from(PLACES[0]);
        let file = root.join("available_events");
        File::open(&file).map_err(at(&file))?;
        Ok(Self { root })
    }

    /// Names of all events, as `SYSTEM:NAME`.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub fn events(&self) -> Result<Vec<String>, TraceFsProblem> {
        let text = self.read("available_events")?;
        Ok(text.lines().filter(|line| line.contains(':')).map(str::to_owned).collect())
    }

    /// The description of an event.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn format(&self, system: &str, name: &str) -> Result<String, TraceFsProblem> {
        self.read(&format!("events/{system}/{name}/format"))
    }

    /// The number of an event.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn event_id(&self, system: &str, name: &str) -> Result<u64, TraceFsProblem> {
        let file = format!("events/{system}/{name}/id");
        let number = self.read(&file)?.trim().parse();
        number.map_err(|_| at(&self.root.join(file))(io::ErrorKind::InvalidData.into()))
    }

    /// The description of pages.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn header_page(&self) -> Result<String, TraceFsProblem> {
        self.read("events/header_page")
    }

    fn read(&self, file: &str) -> Result<String, TraceFsProblem> {
        let path = self.root.join(file);
        let mut bytes = Vec::new();
        // In large steps: the kernel gives `header_page` to the first one alone.
        let mut step = vec![0; 1 << 16];
        let mut file = File::open(&path).map_err(at(&path))?;
        loop {
            match file.read(&mut step).map_err(at(&path))? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                read => bytes.extend_from_slice(&step[..read]),
            }
        }
    }

    /// Removes instances of ours that no process uses any more, and their probes; returns how many instances.
    pub fn clean(&self) -> usize {
        let entries = fs::read_dir(self.root.join("instances")).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(OURS));
        let count = ours.filter(|entry| fs::remove_dir(entry.path()).is_ok()).count();
        self.clean_probes();
        self.clean_prepared();
        count
    }

    /// Whether the kernel has probes of its own functions.
    #[must_use]
    pub fn has_function_probes(&self) -> bool {
        self.root.join(PROBE_FILES[1]).exists()
    }

    /// Whether probes of functions of the kernel can record all arguments by the kernel's own type information (BTF).
    pub(crate) fn has_argument_types(&self) -> bool {
        self.read("README").is_ok_and(|text| text.contains("<argname>[->"))
    }

    /// Makes a probe by a line; its words have been checked.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn add_probe(&self, line: &str, is_of_kernel: bool) -> Result<(), TraceFsProblem> {
        let path = self.root.join(PROBE_FILES[usize::from(is_of_kernel)]);
        append(&path, line).map_err(at(&path))
    }

    /// The kernel's last words about a probe that it did not make.
    pub(crate) fn last_objection(&self, line: &str) -> Option<String> {
        let log = self.read("error_log").ok()?;
        let (reason, _) = log.rsplit_once(&format!("\n  Command: {line}\n"))?;
        reason.rsplit_once("error: ").map(|(_, why)| why.trim_end().to_owned())
    }

    /// Removes the probes of a group.
    ///
    /// # Errors
    ///
    /// The kernel's: another program uses them.
    pub(crate) fn remove_probes(&self, group: &str) -> Result<(), TraceFsProblem> {
        for file in PROBE_FILES {
            let path = self.root.join(file);
            match append(&path, &format!("-:{group}/")) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(at(&path)(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes probes whose instance is gone: a living helper makes its instance first, and removes it last.
    fn clean_probes(&self) {
        let lines = PROBE_FILES.iter().filter_map(|file| self.read(file).ok()).collect::<Vec<_>>();
        let groups = lines.iter().flat_map(|lines| lines.lines()).filter_map(|line| {
            let (group, _) = line.split_once(':')?.1.split_once('/')?;
            let numbers = group.strip_prefix(OUR_GROUPS)?;
            numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_').then_some(group)
        });
        for group in groups.collect::<std::collections::BTreeSet<_>>() {
            if !self.root.join("instances").join(group.replace('_', "-")).exists() {
                let _ = self.remove_probes(group);
            }
        }
    }

    /// Makes an instance that records nothing yet, or takes a prepared one.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn instance(&self) -> Result<TraceInstance, TraceFsProblem> {
        if let InstanceRights::Prepared(_) = instance_rights(&self.root) {
            return self.prepared_instance();
        }
        for number in 0.. {
            let path = self.root.join("instances").join(format!("{OURS}{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                // Probes of a killed helper that another program uses would become part of ours.
                Ok(()) if number < 100 && self.root.join("events").join(group_of(&path)).exists() => {
                    let _ = fs::remove_dir(&path);
                    continue;
                }
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 100 => continue,
                Err(error) => return Err(at(&path)(error)),
            }
            let switch = path.join("tracing_on");
            match OpenOptions::new().read(true).write(true).open(&switch) {
                Ok(switch) => {
                    let instance = TraceInstance { path, switch, is_prepared: false };
                    instance.switch(false)?;
                    return Ok(instance);
                }
                // Another process took it for one that is unused.
                Err(error) if is_gone(&error) && number < 100 => {}
                Err(error) => return Err(at(&switch)(error)),
            }
        }
        unreachable!("the last number returns")
    }
}

/// Whether a file is not there any more, or its instance is about to go.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

/// The group of the probes of an instance.
fn group_of(instance: &Path) -> String {
    instance.file_name().unwrap_or_default().to_string_lossy().replace('-', "_")
}

/// A ring buffer of our own.
#[derive(Debug)]
pub struct TraceInstance {
    path: PathBuf,
    /// Open: no other process can remove the instance.
    switch: File,
    /// Root made it for a group: it stays.
    is_prepared: bool,
}

/// Files of a CPU.
#[derive(Debug)]
pub struct CpuFiles {
    /// The CPU.
    pub cpu: u32,
    /// Its pages.
    pub pages: File,
    /// Counts of its events.
    pub counts: File,
}

impl TraceInstance {
    /// Writes a word into a file.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn set(&self, file: &str, word: &str) -> Result<(), TraceFsProblem> {
        let path = self.path.join(file);
        // No `O_CREAT`: tracefs has the files that it has.
        let file = OpenOptions::new().write(true).open(&path);
        file.and_then(|mut file| io::Write::write_all(&mut file, word.as_bytes())).map_err(at(&path))
    }

    /// The path of a file of it.
    pub(crate) fn place(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// The group of its probes.
    #[must_use]
    pub fn group(&self) -> String {
        group_of(&self.path)
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn get(&self, file: &str) -> Result<String, TraceFsProblem> {
        let path = self.path.join(file);
        fs::read_to_string(&path).map_err(at(&path))
    }

    /// Its events are those of these threads, and of all threads and processes that they start from now on. The scheduler's
    /// events are those about them, too.
    ///
    /// # Errors
    ///
    /// The kernel's; a thread that is gone is none.
    pub fn limit_to(&self, threads: &[u32]) -> Result<(), TraceFsProblem> {
        self.set("options/event-fork", "1")?;
        let path = self.path.join("set_event_pid");
        let mut file = OpenOptions::new().append(true).open(&path).map_err(at(&path))?;
        for some in threads.chunks(THREADS_AT_A_TIME) {
            let numbers: Vec<String> = some.iter().map(u32::to_string).collect();
            io::Write::write_all(&mut file, format!("{} ", numbers.join(" ")).as_bytes()).map_err(at(&path))?;
        }
        Ok(())
    }

    /// Threads that it is limited to now, with those that they have started.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn limited_to(&self) -> Result<Vec<u32>, TraceFsProblem> {
        let text = self.get("set_event_pid")?;
        // Without any, it says so in words.
        Ok(text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect())
    }

    /// Records from now on, or no more.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn switch(&self, is_on: bool) -> Result<(), TraceFsProblem> {
        let path = self.path.join("tracing_on");
        io::Write::write_all(&mut &self.switch, if is_on { b"1" } else { b"0" }).map_err(at(&path))
    }

    /// The switch, for a process that may turn it.
    ///
    /// # Errors
    ///
    /// There are no more descriptors.
    pub fn switch_file(&self) -> Result<File, TraceFsProblem> {
        self.switch.try_clone().map_err(at(&self.path))
    }

    /// Bytes of its pages.
    ///
    /// # Errors
    ///
    /// The kernel does not tell, or tells no number.
    pub fn page_bytes(&self) -> Result<u32, TraceFsProblem> {
        match self.get("buffer_subbuf_size_kb") {
            Ok(text) => {
                let kib: Option<u32> = text.trim().parse().ok().filter(|kib| (1..=1 << 20).contains(kib));
                kib.map(|kib| kib << 10).ok_or_else(|| at(&self.path)(ErrorKind::InvalidData.into()))
            }
            // Kernels before 6.9 have one size: that of the machine's pages.
            Err(_) => Ok(machine_page()),
        }
    }

    /// Opens the files of all CPUs, also of those that are not there now.
    ///
    /// # Errors
    ///
    /// One cannot be opened.
    pub fn cpus(&self) -> Result<Vec<CpuFiles>, TraceFsProblem> {
        let folder = self.path.join("per_cpu");
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).map_err(at(&folder))? {
            let entry = entry.map_err(at(&folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(cpu) = name.strip_prefix("cpu").and_then(|number| number.parse().ok()) else { continue };
            let open = |name: &str| {
                let path = entry.path().join(name);
                OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).map_err(at(&path))
            };
            files.push(CpuFiles { cpu, pages: open("trace_pipe_raw")?, counts: open("stats")? });
        }
        files.sort_by_key(|files| files.cpu);
        Ok(files)
    }

    /// Removes it, when all other processes have closed its files.
    ///
    /// # Errors
    ///
    /// One does not, or the kernel's.
    pub fn remove(self) -> Result<(), TraceFsProblem> {
        if self.is_prepared {
            return self.reset();
        }
        let Self { path, switch, .. } = self;
        let _ = io::Write::write_all(&mut &switch, b"0");
        let _ = fs::write(path.join("events/enable"), "0");
        drop(switch);
        let begin = Instant::now();
        loop {
            match fs::remove_dir(&path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < BUSY_MAX => {
                    std::thread::sleep(BETWEEN);
                }
                // Another helper that has just begun removes those that nothing uses.
                Err(error) if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV) => {
                    return Ok(());
                }
                Err(error) => return Err(at(&path)(error)),
                Ok(()) => return Ok(()),
            }
        }
    }
}

/// Writes a line, in one call.
fn append(path: &Path, line: &str) -> io::Result<()> {
    // No `O_CREAT`, and no `O_TRUNC`: that removes all probes, also those of others.
    let file = OpenOptions::new().append(true).open(path);
    file.and_then(|mut file| io::Write::write_all(&mut file, line.as_bytes()))
}

#[allow(unsafe_code)]
fn machine_page() -> u32 {
    // SAFETY: it only asks for a number.
    u32::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[allow(unsafe_code)]
fn mount(place: &Path) -> io::Result<()> {
    let name = c"tracefs";
    let place = std::ffi::CString::new(place.as_os_str().as_encoded_bytes())?;
    // SAFETY: all pointers are to texts that end with a zero byte and outlive the call; there is no data.
    let answer = unsafe { libc::mount(name.as_ptr(), place.as_ptr(), name.as_ptr(), 0, std::ptr::null()) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
