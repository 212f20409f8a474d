//! Loading a user's object for a command, as its helper does it and as the command asks for it.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::watching::may_load;
use super::{Helper, HelperProblem, HelperReply, HelperRequest, HelperState};
use super::{receive_files, send, send_files, unexpected};
use crate::loading::spool;
use crate::objects::{
    EndedObject, KERNEL_OBJECT_MAX, KernelObject, LoadedContents, LoadedObject, ObjectRefusal, ObjectRequest,
};

/// Why an object is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum ObjectProblem {
    /// It is refused.
    #[error(transparent)]
    Refused(#[from] ObjectRefusal),
    /// The helper does not answer.
    #[error(transparent)]
    Helper(#[from] HelperProblem),
}

impl From<io::Error> for ObjectProblem {
    fn from(error: io::Error) -> Self {
        Self::Helper(error.into())
    }
}

impl Helper {
    /// Has an object loaded, whose file was opened with the rights of its user, and its programs attached; returns the description of
    /// its maps, and their files in that order. It ends with the connection.
    ///
    /// # Errors
    ///
    /// Why it is not loaded, with the words of the kernel's verifier; or that the helper does not answer.
    pub fn load_object(
        &mut self,
        object: OwnedFd,
        request: &ObjectRequest,
    ) -> Result<(LoadedObject, Vec<OwnedFd>), ObjectProblem> {
        send(&self.stream, &HelperRequest::LoadObject(request.clone()))?;
        send_files(&self.stream, &[object])?;
        let reply = super::receive(&self.stream)?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let loaded = match reply {
            HelperReply::ObjectLoaded(loaded) => loaded,
            HelperReply::ObjectRefused(refusal) => return Err(refusal.into()),
            other => return Err(unexpected(other).into()),
        };
        let of_map = |contents: &LoadedContents| match contents {
            LoadedContents::Ring { .. } => 1,
            LoadedContents::PerfRings { cpus, .. } => cpus.len(),
            LoadedContents::Table | LoadedContents::None => 0,
        };
        let count = loaded.maps.iter().map(|map| of_map(&map.contents)).sum::<usize>();
        let files = receive_files(&self.stream, count + usize::from(loaded.has_lines))?;
        Ok((loaded, files))
    }

    /// Has its programs detached; returns the shapes of its tables, and a file with their contents.
    ///
    /// # Errors
    ///
    /// The helper's.
    pub fn end_object(&mut self) -> Result<(EndedObject, File), HelperProblem> {
        let ended = match self.ask(&HelperRequest::EndObject)? {
            HelperReply::ObjectEnded(ended) => ended,
            other => return Err(unexpected(other)),
        };
        let file = receive_files(&self.stream, 1)?.pop();
        let file = file.ok_or_else(|| HelperProblem::Broken(io::ErrorKind::UnexpectedEof.into()))?;
        Ok((ended, File::from(file)))
    }
}

impl HelperState {
    pub(super) fn load_object(&mut self, stream: &UnixStream, request: &ObjectRequest) -> io::Result<()> {
        // It comes in any case.
        let file = receive_files(stream, 1)?.pop().ok_or(io::ErrorKind::UnexpectedEof)?;
        if !self.files.objects {
            let why = "the command that started the helper loads no objects".to_owned();
            return send(stream, &HelperReply::Refused { why });
        }
        let loaded = match bytes(file) {
            // The crate that reads objects panics on some that are damaged.
            Ok(bytes) => catch_unwind(AssertUnwindSafe(|| KernelObject::load(&bytes, request)))
                .unwrap_or_else(|_| Err(refused("it is damaged: its parts do not fit together"))),
            Err(error) => Err(refused(&error.to_string())),
        };
        match loaded {
            Ok((object, loaded, files)) => {
                self.object = Some(object);
                send(stream, &HelperReply::ObjectLoaded(loaded))?;
                send_files(stream, &files)
            }
            Err(refusal) => {
                // Some kernels do not let even root have programs everywhere.
                let is_elsewhere = refusal.is_forbidden && may_load();
                let help = is_elsewhere
                    .then(|| "this user may load programs, but the kernel does not allow this one".to_owned());
                let is_forbidden = refusal.is_forbidden && !is_elsewhere;
                let refusal = ObjectRefusal { is_forbidden, help: refusal.help.clone().or(help), ..refusal };
                send(stream, &HelperReply::ObjectRefused(refusal))
            }
        }
    }

    pub(super) fn end_object(&mut self, stream: &UnixStream) -> io::Result<()> {
        let ended = match &mut self.object {
            Some(object) => spool("kymo-tables").and_then(|spool| {
                let mut file = File::from(spool);
                let ended = object.end(&mut file)?;
                file.rewind().map_err(|error| error.to_string())?;
                Ok((ended, OwnedFd::from(file)))
            }),
            None => Err("no object is loaded".to_owned()),
        };
        match ended {
            Ok((ended, file)) => {
                send(stream, &HelperReply::ObjectEnded(ended))?;
                send_files(stream, &[file])
            }
            Err(why) => send(stream, &HelperReply::Refused { why }),
        }
    }
}

fn refused(why: &str) -> ObjectRefusal {
    ObjectRefusal { program: None, why: why.to_owned(), help: None, is_forbidden: false }
}

fn bytes(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = File::from(file);
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(KERNEL_OBJECT_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
