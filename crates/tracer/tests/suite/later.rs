//! Events that are defined while the program runs, as another one of theirs is switched; in children too.
#![allow(unsafe_code, reason = "a child is made")]

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kymo_tracer::{Event, control_file};

use crate::alone;
use crate::recorder::{Watch, files};

static ON: Event = Event::new(b"event test:on\nfield u64 value\n");
static OFF: Event = Event::new(b"event test:off\nfield u64 value\n");

fn later(name: &str) -> &'static Event {
    let text = format!("event test:{name}\nfield u64 value\n").leak();
    Box::leak(Box::new(Event::new(text.as_bytes())))
}

fn values(path: &Path) -> Vec<(u16, u64)> {
    let mut watch = Watch::new(path);
    watch.drain();
    watch.found.iter().map(|found| (found.id, found.value)).collect()
}

/// Alone: events have ids in the order in which the process defines them, and a child is made of all of it.
#[test]
fn an_event_is_switched_as_another_one_from_the_begin() {
    alone::run("later::an_event_is_switched_as_another_one_from_the_begin", define_later);
}

fn define_later(folder: &Path) {
    assert!(ON.register() && OFF.register());
    let own = PathBuf::from(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    let watch = Watch::new(&own);
    let on = watch.id("event test:on\n");
    watch.recorder.switch(on, 5).expect("it can be written");
    let (like_on, like_off) = (later("like_on"), later("like_off"));
    assert!(like_on.register_like(&ON) && like_off.register_like(&OFF));
    assert_eq!((like_on.control(), like_off.control()), (1, 0), "a filter is of one event");
    like_on.record(&1_u64.to_le_bytes());
    like_off.record(&2_u64.to_le_bytes());
    let child = unsafe { libc::fork() };
    if child == 0 {
        like_on.record(&3_u64.to_le_bytes());
        let later = later("later");
        assert!(later.register_like(like_on));
        later.record(&4_u64.to_le_bytes());
        unsafe { libc::_exit(0) }
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(values(&own), [(on + 2, 1)]);
    let files: Vec<_> = files(folder).into_iter().filter(|path| *path != own).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(values(&files[0]), [(on + 2, 3), (on + 4, 4)]);
}
