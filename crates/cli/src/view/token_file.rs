//! A token that stays from one run of `kymo view` to the next, in a file of the user's alone.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use kymo_server::Token;

/// A longer file holds something else.
const BYTES_MAX: u64 = 1024;

/// The token of a file; a new one, in a new file, if there is none. A file that others can read tells them the token, one
/// that they can write makes them choose it: both are refused.
pub(crate) fn token(path: &Path) -> Result<Token, String> {
    let failed = |error: io::Error| format!("--token-file {}: {error}", path.display());
    // Opening a pipe waits for its writer.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(format!("--token-file {} is not a regular file", path.display()));
    }
    match File::open(path) {
        Ok(file) => read(file, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match create(path).map_err(failed)? {
            Some(token) => Ok(token),
            // Another process was quicker.
            None => read(File::open(path).map_err(failed)?, path),
        },
        Err(error) => Err(failed(error)),
    }
}

fn read(file: File, path: &Path) -> Result<Token, String> {
    let place = path.display();
    if let Some(problem) = exposure(&file, path).map_err(|error| format!("--token-file {place}: {error}"))? {
        return Err(problem);
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(|error| format!("--token-file {place}: {error}"))?;
    Token::of(text.trim()).ok_or_else(|| {
        format!("--token-file {place} does not hold a token: 32 to 128 letters, digits, `-` and `_`; remove the file to get a new one")
    })
}

/// A new file with a new token; `None` if there is a file by now. The file has its content as soon as it has its name.
fn create(path: &Path) -> io::Result<Option<Token>> {
    let token = Token::random().map_err(io::Error::other)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Only its user can read or write such a file.
    let mut file = tempfile::Builder::new().prefix(".kymo-token-").tempfile_in(folder)?;
    writeln!(file, "{}", token.text())?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(Some(token)),
        Err(failure) if failure.error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(failure) => Err(failure.error),
    }
}

/// Why the content of a file is no secret; `None`: it is one, as far as the system says.
fn exposure(file: &File, path: &Path) -> io::Result<Option<String>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        let (metadata, place) = (file.metadata()?, path.display());
        #[cfg(target_os = "linux")]
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Ok(Some(format!("--token-file {place} belongs to another user (uid {})", metadata.uid())));
        }
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Ok(Some(format!(
                "--token-file {place} is open to other users (mode {mode:03o}): chmod 600 {place}"
            )));
        }
    }
    #[cfg(not(unix))]
    let _ = (file, path);
    Ok(None)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_token_is_made_once_and_kept_for_its_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = token(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", made.text()));
        assert!(token(&path).unwrap() == made);
        // Nothing else stays there.
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn files_that_others_reach_or_without_a_token_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "a".repeat(40)).unwrap();
        for mode in [0o644, 0o640, 0o606, 0o620, 0o601] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let problem = token(&path).unwrap_err();
            assert!(problem.ends_with(&format!("(mode {mode:03o}): chmod 600 {}", path.display())), "{problem}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(token(&path).unwrap().text(), "a".repeat(40));
        for text in ["", "short", "a b"] {
            fs::write(&path, text).unwrap();
            assert!(token(&path).unwrap_err().contains("does not hold a token"), "{text:?}");
        }
        assert!(token(folder.path()).unwrap_err().contains("not a regular file"));
        assert!(token(&folder.path().join("no/token")).unwrap_err().contains("No such file"));
    }
}
