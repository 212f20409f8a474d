//! Instances that root has prepared for a group: the kernel gives files of a new instance to the owner of the folder alone.
//!
//! ```text
//! mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing
//! mkdir /sys/kernel/tracing/instances/shared-kymo-1
//! chmod -R g+rwX /sys/kernel/tracing/instances/shared-kymo-1
//! ```
//!
//! A helper that has one locks its `tracing_on`. The kernel lets go of the lock when all have closed the file, and the next one
//! turns off what a killed one has left.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FlockOperation, accessat, flock};
use rustix::thread::{CapabilitySet, capabilities};

use super::{TraceFs, TraceFsProblem, TraceInstance, at};

/// Names of prepared instances begin so.
pub const PREPARED: &str = "shared-kymo";
/// KiB of a buffer that is not used.
const UNUSED_KIB: &str = "4";

/// How this process may have instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceRights {
    /// It makes them.
    Makes,
    /// It may use so many that were prepared.
    Prepared(usize),
    /// Not at all.
    None,
}

/// How this process may have instances of a tracefs, which may be mounted there.
#[must_use]
pub fn instance_rights(root: &Path) -> InstanceRights {
    let folder = root.join("instances");
    // The kernel makes files that only the folder's owner may write.
    let is_own = fs::metadata(&folder).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
    let overrides = capabilities(None).is_ok_and(|has| has.effective.contains(CapabilitySet::DAC_OVERRIDE));
    let may_make = accessat(CWD, &folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok();
    match prepared(&folder).filter(|path| open(path).is_some()).count() {
        _ if may_make && (is_own || overrides) => InstanceRights::Makes,
        0 => InstanceRights::None,
        count => InstanceRights::Prepared(count),
    }
}

fn prepared(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREPARED));
    names.map(|entry| entry.path())
}

fn open(instance: &Path) -> Option<File> {
    OpenOptions::new().read(true).write(true).open(instance.join("tracing_on")).ok()
}

/// A prepared instance that no other helper has.
fn take(path: &Path) -> Option<TraceInstance> {
    let switch = open(path)?;
    flock(&switch, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(TraceInstance { path: path.to_owned(), switch, is_prepared: true })
}

impl TraceFs {
    /// Whether this process may have instances.
    ///
    /// # Errors
    ///
    /// It may not.
    pub(crate) fn check_instances(&self) -> Result<(), TraceFsProblem> {
        match instance_rights(&self.root) {
            InstanceRights::None => Err(at(&self.root.join("instances"))(rustix::io::Errno::ACCESS.into())),
            InstanceRights::Makes | InstanceRights::Prepared(_) => Ok(()),
        }
    }

    /// Takes a prepared instance that records nothing.
    ///
    /// # Errors
    ///
    /// There is none that no other helper has, or the kernel's.
    pub(super) fn prepared_instance(&self) -> Result<TraceInstance, TraceFsProblem> {
        let folder = self.root.join("instances");
        let mut taken = prepared(&folder).filter_map(|path| take(&path));
        let none = || io::Error::other(format!("no instance that was prepared, `{PREPARED}...`, is free"));
        let instance = taken.next().ok_or_else(|| at(&folder)(none()))?;
        instance.reset()?;
        Ok(instance)
    }

    /// Turns off prepared instances that a killed helper has left.
    pub(super) fn clean_prepared(&self) {
        for instance in prepared(&self.root.join("instances")).filter_map(|path| take(&path)) {
            if instance.get("tracing_on").is_ok_and(|text| text.trim() == "1") {
                let _ = instance.reset();
            }
        }
    }
}

impl TraceInstance {
    /// It records nothing, about all threads, and is empty.
    pub(super) fn reset(&self) -> Result<(), TraceFsProblem> {
        for (file, word) in [("tracing_on", "0"), ("events/enable", "0"), ("options/event-fork", "0")] {
            self.set(file, word)?;
        }
        // Filters of another user would stay.
        let events = self.path.join("events");
        for entry in fs::read_dir(&events).map_err(at(&events))?.flatten() {
            let system = entry.file_name().to_string_lossy().into_owned();
            if entry.path().join("filter").exists() {
                self.set(&format!("events/{system}/filter"), "0")?;
            }
        }
        for file in ["set_event_pid", "trace"] {
            let path = self.path.join(file);
            OpenOptions::new().write(true).truncate(true).open(&path).map_err(at(&path))?;
        }
        self.set("buffer_size_kb", UNUSED_KIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_make_instances_and_others_use_prepared_ones() {
        let folder = tempfile::tempdir().expect("there is room");
        assert_eq!(instance_rights(folder.path()), InstanceRights::None);
        let instances = folder.path().join("instances");
        fs::create_dir_all(instances.join("shared-kymo-1")).expect("there is room");
        assert_eq!(instance_rights(folder.path()), InstanceRights::Makes);
        let tracefs = TraceFs { root: folder.path().to_owned() };
        assert!(tracefs.prepared_instance().is_err(), "it has no files");
        for file in [
            "tracing_on",
            "events/enable",
            "options/event-fork",
            "set_event_pid",
            "trace",
            "buffer_size_kb",
            "events/sched/filter",
        ] {
            let path = instances.join("shared-kymo-1").join(file);
            fs::create_dir_all(path.parent().expect("it has one")).expect("there is room");
            fs::write(path, "old").expect("there is room");
        }
        let one = tracefs.prepared_instance().expect("it is there");
        assert!(tracefs.prepared_instance().is_err(), "it is taken");
        assert_eq!(one.get("trace").expect("it is there"), "");
        assert!(one.get("events/sched/filter").expect("it is there").starts_with('0'));
        drop(one);
        tracefs.prepared_instance().expect("it is free");
    }
}
