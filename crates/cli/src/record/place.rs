//! Where the events of a session go: to a folder, to standard output, or to the better of both.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_recorder::protocol::{Keep, SessionOptions};

use crate::arguments::{LossMode, RecordArguments, RecordTarget};
use crate::message::write_line;
use crate::stop::StopReason;

/// Period of the batches on standard output.
const EVERY: Duration = Duration::from_millis(100);
/// The shortest period of snapshots: the recorder copies all memory of the programs for each.
const SNAPSHOTS_EVERY: Duration = Duration::from_millis(100);
/// Bytes of a temporary trace, and of each of its parts.
const KEPT_BYTES: u64 = 128 << 20;
const PART_BYTES: u64 = 8 << 20;
/// Free bytes that a folder needs for the beginning of a trace.
const FREE_BYTES: u64 = 1 << 20;

/// Standard output as the place of a session.
pub(crate) struct ConsolePlace {
    /// The folder of the trace, if `--output` keeps none.
    pub(crate) temporary: Option<TemporaryFolder>,
    pub(crate) every: Duration,
}

/// A folder that is removed when this is dropped.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// A folder that only this user can enter.
    fn new() -> io::Result<Self> {
        let (folder, process) = (std::env::temp_dir(), std::process::id());
        let at = |path: &Path, error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        for number in 0..1000 {
            let path = std::path::absolute(folder.join(format!("kymo-console-{process}-{number}")))?;
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at(&path, error)),
            }
        }
        Err(at(&folder, io::ErrorKind::AlreadyExists.into()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // The system removes it some day otherwise.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Rejects arguments that make no sense together.
pub(crate) fn check(arguments: &RecordArguments) -> Result<(), StopReason> {
    let is_flight = arguments.session.mode == LossMode::Overwrite;
    let refused = |what: &str| Err(StopReason::Usage(what.to_owned()));
    if arguments.detach && arguments.to != RecordTarget::File {
        return refused(
            "a session in the background has no standard output: `kymo print --follow` prints the trace of `kymo record --detach \
             --output DIR`",
        );
    }
    let Some(every) = arguments.flush_every.map(Duration::from_nanos) else { return Ok(()) };
    if !is_flight && arguments.to == RecordTarget::File {
        return refused(
            "the recorder writes events to the trace at once, a quiet program's within a quarter of a second: `--flush-every` is for \
             `--to console` and for `--mode overwrite`",
        );
    }
    if is_flight && every < SNAPSHOTS_EVERY {
        return refused(
            "with `--mode overwrite`, `--flush-every` is at least 100ms: each snapshot copies the memory of programs",
        );
    }
    Ok(())
}

/// Decides where the events go, and changes the options accordingly; `None`: to the folder.
pub(crate) fn decide(
    arguments: &RecordArguments,
    options: &mut SessionOptions,
) -> Result<Option<ConsolePlace>, StopReason> {
    let why = match arguments.to {
        RecordTarget::File => return Ok(None),
        RecordTarget::Console => None,
        RecordTarget::Auto => match why_not(&options.output) {
            None => return Ok(None),
            why => why,
        },
    };
    let has_output = arguments.session.output.is_some() && why.is_none();
    if let Some(why) = why {
        write_line(&format!("note: events go to standard output, as {}: {why}", options.output.display()));
    }
    let every = arguments.flush_every.map_or(EVERY, Duration::from_nanos);
    options.drains = options.keep == Keep::Newest;
    if has_output {
        return Ok(Some(ConsolePlace { temporary: None, every }));
    }
    let temporary = TemporaryFolder::new()?;
    options.output = super::folder(&temporary.path().join("trace"))?;
    options.kept_bytes = Some(options.kept_bytes.unwrap_or(KEPT_BYTES));
    options.rotate_bytes = options.rotate_bytes.or(Some(PART_BYTES)).filter(|_| options.keep == Keep::Oldest);
    Ok(Some(ConsolePlace { temporary: Some(temporary), every }))
}

/// Why no trace can be written to a folder; `None`: it can. Leaves nothing there.
fn why_not(folder: &Path) -> Option<String> {
    let is_missing = |path: &&Path| !path.exists();
    let made: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    let why = tried(folder).err().map(|error| error.to_string());
    for path in made {
        // Another process may have put something there meanwhile.
        let _ = std::fs::remove_dir(path);
    }
    why
}

fn tried(folder: &Path) -> io::Result<()> {
    let exists = |what: &str| Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    if folder.is_file() {
        return exists("that is a file, and a trace is a folder");
    }
    std::fs::create_dir_all(folder)?;
    if std::fs::read_dir(folder)?.next().is_some() {
        return exists("there is something in it already, and a trace has a folder of its own");
    }
    let system = rustix::fs::statvfs(folder)?;
    if system.f_bavail.saturating_mul(system.f_frsize) < FREE_BYTES {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let probe = folder.join("probe");
    let written = std::fs::write(&probe, [0; 4096]);
    let _ = std::fs::remove_file(&probe);
    written
}
