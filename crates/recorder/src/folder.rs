//! The folder where programs keep their memory and recorders their socket: only its user has
//! access.
//!
//! ```text
//! $XDG_RUNTIME_DIR/kymo   else   /dev/shm/kymo-UID      0700, owner checked
//!   0123456789abcdef.ctl      memory of a program, 0600
//!   recorder.sock             where the recorder listens, 0600
//!   recorder.lock             whoever holds it is the recorder
//!   bell                      what programs ring when the recorder looks at them seldom, 0600
//!   NAME.session              a session that goes on when the recorder was killed
//!   NAME-PID.started          one that starts programs, whose events are on from the begin
//!   own.selection             the selections of this user's sessions, for programs that start
//!   root.selection            those of root's
//! ```

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags};

/// Why a folder cannot be relied on.
#[derive(Debug, thiserror::Error)]
pub enum FolderProblem {
    /// It cannot be made or opened.
    #[error("{}: {error}", path.display())]
    Unreachable {
        /// The folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// Another user owns it.
    #[error("{} belongs to user {found}, not to user {expected}: programs do not record there", path.display())]
    Owner {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        found: u32,
        /// The owner that it has to have.
        expected: u32,
    },
    /// Others may look into it.
    #[error("{} has mode {mode:03o}: others than its owner may use it, so that programs do not record there", path.display())]
    Mode {
        /// The folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// No file can be made in it.
    #[error("{} cannot be written to: no program can record there", path.display())]
    Closed {
        /// The folder.
        path: PathBuf,
    },
    /// Its recorder could not listen there.
    #[error(
        "{} has {bytes} bytes, and what is listened at has at most {SOCKET_BYTES_MAX}: set XDG_RUNTIME_DIR to a folder with a \
         shorter path", path.display()
    )]
    Long {
        /// The path of the socket.
        path: PathBuf,
        /// Bytes of the path.
        bytes: usize,
    },
}

/// Bytes of a socket's path.
pub(crate) const SOCKET_BYTES_MAX: usize = 107;

/// The folder of this user.
#[must_use]
pub fn own_folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join("kymo"),
        None => shared_folder(own_user()),
    }
}

/// The folder of a user if programs know no better one.
pub(crate) fn shared_folder(user: u32) -> PathBuf {
    PathBuf::from(format!("/dev/shm/kymo-{user}"))
}

/// The user of this process.
#[must_use]
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Adds the file's path to an error.
pub(crate) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Makes sure that the folder exists, belongs to this user, and gives no other user access.
///
/// # Errors
///
/// The folder cannot be made or opened, or one of these does not hold.
pub fn prepare_folder(path: &Path) -> Result<(), FolderProblem> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(FolderProblem::Unreachable { path: path.to_owned(), error })
        }
        _ => check_folder(path, own_user()).and_then(|_| check_open(path)),
    }
}

/// Whether files can be made in a folder of this user.
pub(crate) fn check_open(path: &Path) -> Result<(), FolderProblem> {
    let rights = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::access(path, rights).map_err(|_| FolderProblem::Closed { path: path.to_owned() })
}

/// Opens a folder that has to belong to this user and give no other user access.
///
/// # Errors
///
/// One of these does not hold, or the folder does not exist.
pub fn check_folder(path: &Path, user: u32) -> Result<File, FolderProblem> {
    let unreachable = |error| FolderProblem::Unreachable { path: path.to_owned(), error };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let folder = folder.map_err(|error| match path.symlink_metadata().map(|found| found.uid()) {
        // The owner is visible even if the folder cannot be opened.
        Ok(found) if found != user => FolderProblem::Owner { path: path.to_owned(), found, expected: user },
        _ => unreachable(error),
    })?;
    let found = folder.metadata().map_err(unreachable)?;
    if found.uid() != user {
        return Err(FolderProblem::Owner { path: path.to_owned(), found: found.uid(), expected: user });
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(FolderProblem::Mode { path: path.to_owned(), mode });
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn folders_are_their_users_alone() {
        let around = tempfile::tempdir().expect("temporary files may be written");
        let path = around.path().join("kymo");
        prepare_folder(&path).expect("it can be made");
        prepare_folder(&path).expect("it is there");
        assert!(matches!(check_folder(&path, own_user() + 1), Err(FolderProblem::Owner { .. })));
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o750)).expect("it is ours");
        let problem = prepare_folder(&path).expect_err("others may look into it").to_string();
        assert!(problem.contains("has mode 750"), "{problem}");
        let link = around.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("links can be made");
        assert!(matches!(check_folder(&link, own_user()), Err(FolderProblem::Unreachable { .. })));
    }
}
