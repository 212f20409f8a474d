//! A program's memory as a recorder sees it: its file, by system calls.
//!
//! The recorder maps no part of it: if a program truncates the file, a read fails, and the recorder
//! is not killed. A word need not be read in one step: the program wrote it before it changed the
//! word that publishes it ([`kymo_lane`]'s protocol), and fences keep that order.
//!
//! Tests of the tracer, of `tracing` and of `libkymo` look at programs with these very lines; they
//! take this file alone, because the recorder would bring along compilers and sockets.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

use kymo_lane::MemoryView;

/// The file of a program.
#[derive(Debug)]
pub struct Control(pub(crate) File);

impl MemoryView for Control {
    type Fault = io::Error;

    fn word(&self, at: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.0.read_exact_at(&mut word, at)?;
        fence(Ordering::Acquire);
        Ok(u64::from_le_bytes(word))
    }

    fn copy(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, at)
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn settle(&self) {
        fence(Ordering::SeqCst);
    }

    fn set_byte(&self, at: u64, value: u8) -> io::Result<()> {
        fence(Ordering::Release);
        self.0.write_all_at(&[value], at)
    }

    fn set_word(&self, at: u64, value: u64) -> io::Result<()> {
        self.0.write_all_at(&value.to_le_bytes(), at)
    }
}
