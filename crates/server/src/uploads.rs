//! Files that users upload to look at: kept in a folder of this user alone until the server ends,
//! so much and no more.
//!
//! ```text
//! PUT ──piece──> at most two wait ──> a thread writes     who sends faster waits, who sends nothing for a while is let go
//! ```
//!
//! Names lead nowhere but into the folder of their upload. A file that did not come as a whole is removed.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use futures::StreamExt;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::refusal::RequestRefusal;

/// Sets of files that are opened together, and the files of each.
const UPLOADS_MAX: usize = 16;
const FILES_MAX: usize = 10_000;
/// Files that come at a time.
const COMING_MAX: usize = 16;
/// Characters of the name of an upload, bytes of a path and of a part of it, and folders inside of each other.
const ID_MAX: usize = 64;
const PATH_BYTES_MAX: usize = 1024;
const NAME_BYTES_MAX: usize = 255;
const DEPTH_MAX: usize = 32;
/// For any piece of a file to come.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pieces that wait to be written.
const WAITING_MAX: usize = 2;

/// All files that were sent.
pub(crate) struct Uploads {
    bytes_max: u64,
    kept: Mutex<UploadStore>,
}

#[derive(Default)]
struct UploadStore {
    /// Where they are, once there are any.
    folder: Option<TempDir>,
    uploads: HashMap<String, Upload>,
    is_over: bool,
}

/// Files that are opened together.
#[derive(Default)]
struct Upload {
    bytes: u64,
    files: usize,
    /// Files that are not there as a whole yet.
    coming: usize,
}

impl UploadStore {
    fn folder(&mut self) -> Result<&Path, RequestRefusal> {
        if self.is_over {
            return Err(RequestRefusal::busy("the server ends"));
        }
        if self.folder.is_none() {
            let made = tempfile::Builder::new().prefix("kymo-view-").tempdir();
            self.folder =
                Some(made.map_err(|error| RequestRefusal::fault(format!("there is no folder for files: {error}")))?);
        }
        Ok(self.folder.as_ref().expect("it was made").path())
    }
}

impl Uploads {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, UploadStore> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a file that is not an upload; returns its path.
    pub(crate) fn keep(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, RequestRefusal> {
        // It is written again if the first time did not come to its end.
        let path = self.kept().folder()?.join(name);
        fs::write(&path, bytes).map_err(|error| failed(name, &error))?;
        Ok(path)
    }

    /// The files of an upload, as they are opened: the folder, or each file and folder in it.
    pub(crate) fn paths(&self, id: &str) -> Result<Vec<PathBuf>, RequestRefusal> {
        let mut kept = self.kept();
        let folder = kept.folder()?.join(folder_of(id));
        let upload = kept.uploads.get(id).filter(|upload| upload.files > 0).ok_or_else(|| unknown(id))?;
        if upload.coming > 0 {
            let files = if upload.coming == 1 { "file of it is" } else { "files of it are" };
            let message = format!("{} {files} not there yet", upload.coming);
            return Err(RequestRefusal::new(StatusCode::CONFLICT, "unfinished", message));
        }
        drop(kept);
        if folder.join("metadata").is_file() {
            return Ok(vec![folder]);
        }
        let entries = fs::read_dir(&folder).map_err(|error| failed(id, &error))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        Ok(paths)
    }

    /// Forgets an upload; later parts of it are refused.
    pub(crate) fn remove(&self, id: &str) -> Result<(), RequestRefusal> {
        let mut kept = self.kept();
        kept.uploads.remove(id).ok_or_else(|| unknown(id))?;
        let folder = kept.folder()?.join(folder_of(id));
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(id, &error)),
            _ => Ok(()),
        }
    }

    /// Removes everything; nothing comes any more.
    pub(crate) fn end(&self) {
        let mut kept = self.kept();
        kept.is_over = true;
        kept.uploads.clear();
        kept.folder = None;
    }

    /// A file begins to come.
    fn begin(self: &Arc<Self>, id: String, name: &str, length: Option<u64>) -> Result<Coming, RequestRefusal> {
        checked_id(&id)?;
        let path = checked_path(name)?;
        if self.bytes_max == 0 {
            return Err(too_much("files are not taken here: open a path of this machine"));
        }
        let mut kept = self.kept();
        self.check_room(&kept, length.unwrap_or(0))?;
        if kept.uploads.values().map(|upload| upload.coming).sum::<usize>() >= COMING_MAX {
            return Err(RequestRefusal::busy(format!("{COMING_MAX} files come already")));
        }
        if !kept.uploads.contains_key(&id) && kept.uploads.len() >= UPLOADS_MAX {
            return Err(too_much(format!("there are {UPLOADS_MAX} uploads; DELETE one")));
        }
        let path = kept.folder()?.join(folder_of(&id)).join(path);
        let upload = kept.uploads.entry(id.clone()).or_default();
        if upload.files >= FILES_MAX {
            return Err(too_much(format!("an upload has {FILES_MAX} files at most")));
        }
        upload.files += 1;
        upload.coming += 1;
        drop(kept);
        Ok(Coming {
            uploads: Arc::clone(self),
            id,
            name: name.to_owned(),
            path,
            bytes: 0,
            is_own: false,
            is_whole: false,
        })
    }

    fn check_room(&self, kept: &UploadStore, more: u64) -> Result<(), RequestRefusal> {
        let bytes: u64 = kept.uploads.values().map(|upload| upload.bytes).sum();
        match bytes.checked_add(more).is_some_and(|all| all <= self.bytes_max) {
            true => Ok(()),
            false => Err(too_much(format!("all files together have {} bytes at most", self.bytes_max))),
        }
    }
}

/// A file that comes; it gives back its bytes if it does not come as a whole.
struct Coming {
    uploads: Arc<Uploads>,
    id: String,
    name: String,
    path: PathBuf,
    bytes: u64,
    /// The file is this one's, not one of before.
    is_own: bool,
    is_whole: bool,
}

/// A part of the file to write.
enum UploadPiece {
    Bytes(Bytes),
    End,
}

impl Coming {
    /// Writes pieces until the end is told; the bytes of all of them.
    fn write(mut self, mut pieces: mpsc::Receiver<UploadPiece>) -> Result<u64, RequestRefusal> {
        let mut file = self.create().map_err(|error| failed(&self.name, &error))?;
        self.is_own = true;
        loop {
            match pieces.blocking_recv() {
                Some(UploadPiece::Bytes(bytes)) => {
                    self.grow(bytes.len() as u64)?;
                    file.write_all(&bytes).map_err(|error| failed(&self.name, &error))?;
                }
                Some(UploadPiece::End) => break,
                None => return Err(not_whole()),
            }
        }
        self.is_whole = true;
        Ok(self.bytes)
    }

    fn create(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).open(&self.path)
    }

    /// Takes room for more.
    fn grow(&mut self, more: u64) -> Result<(), RequestRefusal> {
        let mut kept = self.uploads.kept();
        self.uploads.check_room(&kept, more)?;
        let upload = kept.uploads.get_mut(&self.id).ok_or_else(|| unknown(&self.id))?;
        upload.bytes += more;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let mut kept = self.uploads.kept();
        let Some(upload) = kept.uploads.get_mut(&self.id) else { return };
        upload.coming -= 1;
        if !self.is_whole {
            upload.files -= 1;
            upload.bytes -= self.bytes;
            if upload.files == 0 && upload.coming == 0 {
                kept.uploads.remove(&self.id);
            }
            if self.is_own {
                let _ = fs::remove_file(&self.path);
            }
        }
    }
}

/// Takes the body of a request as a file; how many bytes it has.
pub(crate) async fn receive(
    uploads: &Arc<Uploads>,
    id: String,
    name: String,
    request: Request,
) -> Result<u64, RequestRefusal> {
    let (parts, body) = request.into_parts();
    if !is_bytes(&parts.headers) {
        let message = "a file is bytes: `Content-Type: application/octet-stream`";
        return Err(RequestRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "body", message));
    }
    let length = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let coming = uploads.begin(id, &name, length)?;
    let (sender, pieces) = mpsc::channel(WAITING_MAX);
    let written = tokio::task::spawn_blocking(move || coming.write(pieces));
    // The writer may have ended before: its result says why.
    let passed = pass(body, &sender).await;
    drop(sender);
    let bytes = written.await.map_err(RequestRefusal::fault)?;
    passed.and(bytes)
}

async fn pass(body: Body, to: &mpsc::Sender<UploadPiece>) -> Result<(), RequestRefusal> {
    let mut pieces = body.into_data_stream();
    loop {
        let Ok(piece) = tokio::time::timeout(PATIENCE, pieces.next()).await else {
            let message = format!("nothing of the file came for {} seconds", PATIENCE.as_secs());
            return Err(RequestRefusal::new(StatusCode::REQUEST_TIMEOUT, "body", message));
        };
        let is_over = piece.is_none();
        let piece = piece.transpose().map_err(|_| not_whole())?.map_or(UploadPiece::End, UploadPiece::Bytes);
        if to.send(piece).await.is_err() || is_over {
            return Ok(());
        }
    }
}

fn is_bytes(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_none_or(|kind| kind.to_str().is_ok_and(|kind| kind.trim().eq_ignore_ascii_case("application/octet-stream")))
}

/// The folder of an upload has a name that no file of ours has.
fn folder_of(id: &str) -> String {
    format!("upload-{id}")
}

fn checked_id(id: &str) -> Result<(), RequestRefusal> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match (1..=ID_MAX).contains(&id.len()) && id.chars().all(is_good) {
        true => Ok(()),
        false => Err(RequestRefusal::parameter(
            "id",
            format!("an upload is called by 1 to {ID_MAX} letters, digits, `-` and `_`"),
        )),
    }
}

/// A path that leads nowhere but further down.
fn checked_path(name: &str) -> Result<PathBuf, RequestRefusal> {
    let refused =
        |why: &str| RequestRefusal::parameter("path", format!("the path of a file is names between `/`: {why}"));
    if name.len() > PATH_BYTES_MAX {
        return Err(refused("it is too long"));
    }
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > DEPTH_MAX {
        return Err(refused("too many folders"));
    }
    for part in &parts {
        if part.is_empty() || *part == "." || *part == ".." {
            return Err(refused("none of them is empty, `.` or `..`"));
        }
        // A letter with a colon is a disk on some systems, and a backslash a slash.
        if part.len() > NAME_BYTES_MAX
            || part.chars().any(|c| c.is_control() || c == '\\' || (cfg!(windows) && c == ':'))
        {
            return Err(refused("none is longer than 255 bytes, or has control characters or backslashes in it"));
        }
    }
    Ok(parts.into_iter().collect())
}

fn unknown(id: &str) -> RequestRefusal {
    RequestRefusal::absent(format!("there is no upload `{}`", id.chars().take(ID_MAX).collect::<String>()))
}

fn not_whole() -> RequestRefusal {
    RequestRefusal::new(StatusCode::BAD_REQUEST, "body", "the file did not come as a whole")
}

fn too_much(message: impl std::fmt::Display) -> RequestRefusal {
    RequestRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body", message)
}

/// The response to an error of the disk with a file.
fn failed(name: &str, error: &io::Error) -> RequestRefusal {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            RequestRefusal::new(StatusCode::CONFLICT, "exists", format!("`{name}` is there already"))
        }
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            RequestRefusal::new(StatusCode::CONFLICT, "exists", format!("`{name}` would be a file and a folder"))
        }
        _ => RequestRefusal::fault(format!("`{name}` cannot be kept: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_nowhere_but_down() {
        for good in ["metadata", "my-trace/metadata", "a/b/c.tar.gz", "…/é", "a b/c", "...", "a/.hidden"] {
            assert_eq!(checked_path(good).map_err(|refusal| refusal.as_json()), Ok(PathBuf::from(good)));
        }
        let (long, deep) = ("a".repeat(256), "a/".repeat(32) + "a");
        let bad = [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "./a",
            "a//b",
            "a/",
            "a\\b",
            "a\0b",
            "a\nb",
            &long,
            &deep,
        ];
        for bad in bad {
            assert_eq!(checked_path(bad).unwrap_err().as_json()["parameter"], "path", "{bad:?}");
        }
        for (id, is_good) in [("a", true), ("A-1_b", true), ("", false), ("..", false), ("a/b", false), (&long, false)]
        {
            assert_eq!(checked_id(id).is_ok(), is_good, "{id:?}");
        }
    }

    /// Files that do not come as a whole leave nothing behind, and give back their bytes.
    #[test]
    fn what_does_not_come_as_a_whole_is_not_there() {
        let uploads = Arc::new(Uploads::new(100));
        let send = |name: &str, sizes: &[usize], is_whole: bool| {
            let coming = uploads.begin("a".to_owned(), name, None)?;
            let (sender, pieces) = mpsc::channel(sizes.len() + 1);
            for &size in sizes {
                sender.try_send(UploadPiece::Bytes(vec![7; size].into())).unwrap();
            }
            if is_whole {
                sender.try_send(UploadPiece::End).unwrap();
            }
            drop(sender);
            coming.write(pieces)
        };
        assert_eq!(send("one/file", &[30, 10], true), Ok(40));
        assert_eq!(send("one/part", &[30], false).unwrap_err().status(), 400);
        assert_eq!(send("one/large", &[30, 31], true).unwrap_err().status(), 413);
        assert_eq!(send("one/file", &[1], true).unwrap_err().status(), 409);
        assert_eq!(send("one/file/below", &[1], true).unwrap_err().status(), 409);
        assert_eq!(send("other", &[60], true), Ok(60));
        assert_eq!(send("more", &[1], true).unwrap_err().status(), 413);
        let paths = uploads.paths("a").unwrap();
        let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["one", "other"]);
        let files = |folder: &Path| fs::read_dir(folder).unwrap().count();
        assert_eq!((files(&paths[0]), fs::read(paths[0].join("file")).unwrap().len()), (1, 40));
        let root = paths[0].parent().unwrap().parent().unwrap().to_owned();
        uploads.remove("a").unwrap();
        assert_eq!((files(&root), uploads.remove("a").unwrap_err().status().as_u16()), (0, 404));
        uploads.end();
        assert!(!root.exists() && uploads.begin("a".to_owned(), "b", None).is_err());
    }
}
