//! Tracefs: a ring buffer of our own in the kernel (an *instance*), and the files by which it is read.
//!
//! ```text
//! /sys/kernel/tracing/                     mounted if it is not
//!   instances/kymo-PID-N/                  ours; others are never touched
//!     trace_clock buffer_size_kb tracing_on
//!     events/SYSTEM/NAME/{enable,filter}
//!     per_cpu/cpuN/{trace_pipe_raw,stats}
//! ```
//!
//! The kernel refuses to remove an instance of which a file is open. So an instance that can be removed belongs to a process that is gone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where tracefs may be mounted.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Names of our instances begin so.
const OURS: &str = "kymo-";
/// How long a reader's files may take to be closed.
const BUSY_MAX: Duration = Duration::from_secs(3);
const BETWEEN: Duration = Duration::from_millis(10);

/// Why tracefs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceFsProblem {
    /// It is not there, and cannot be mounted.
    #[error("the kernel's tracefs is not mounted at /sys/kernel/tracing, and cannot be: {0}")]
    Absent(io::Error),
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
        let (Self::Absent(error) | Self::File { error, .. }) = self;
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

    /// Removes instances of ours that no process uses any more; returns how many.
    pub fn clean(&self) -> usize {
        let entries = fs::read_dir(self.root.join("instances")).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(OURS));
        ours.filter(|entry| fs::remove_dir(entry.path()).is_ok()).count()
    }

    /// Makes an instance that records nothing yet.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn instance(&self) -> Result<TraceInstance, TraceFsProblem> {
        for number in 0.. {
            let path = self.root.join("instances").join(format!("{OURS}{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 100 => continue,
                Err(error) => return Err(at(&path)(error)),
            }
            let switch = path.join("tracing_on");
            match OpenOptions::new().read(true).write(true).open(&switch) {
                Ok(switch) => {
                    let instance = TraceInstance { path, switch };
                    instance.switch(false)?;
                    return Ok(instance);
                }
                // Another process took it for one that is unused.
                Err(error) if error.kind() == ErrorKind::NotFound && number < 100 => {}
                Err(error) => return Err(at(&switch)(error)),
            }
        }
        unreachable!("the last number returns")
    }
}

/// A ring buffer of our own.
#[derive(Debug)]
pub struct TraceInstance {
    path: PathBuf,
    /// Open: no other process can remove the instance.
    switch: File,
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

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn get(&self, file: &str) -> Result<String, TraceFsProblem> {
        let path = self.path.join(file);
        fs::read_to_string(&path).map_err(at(&path))
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
        let Self { path, switch } = self;
        let _ = io::Write::write_all(&mut &switch, b"0");
        let _ = fs::write(path.join("events/enable"), "0");
        drop(switch);
        let begin = Instant::now();
        loop {
            match fs::remove_dir(&path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < BUSY_MAX => {
                    std::thread::sleep(BETWEEN);
                }
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(at(&path)(error)),
                _ => return Ok(()),
            }
        }
    }
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
