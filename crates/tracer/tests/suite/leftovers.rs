//! Files of programs that are gone do not pile up where no recorder runs.
#![allow(unsafe_code, reason = "processes end at once")]

use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use kymo_tracer::{Event, control_file};

use crate::alone;

static EVENT: Event = Event::new(b"event test:left\n");

/// What this very program does when it is started by the test below.
#[test]
fn a_program_that_ends() {
    let Ok(end) = std::env::var("KYMO_TEST_END") else { return };
    assert!(EVENT.register());
    let path = std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes());
    assert!(std::path::Path::new(path).exists());
    match end.as_str() {
        "killed" => unsafe { libc::_exit(0) },
        "recorded" => {
            // It is on from the begin, as it is started for a session.
            EVENT.record(&[]);
            unsafe { libc::_exit(0) }
        }
        _ => std::process::exit(0),
    }
}

#[test]
fn nothing_is_left_behind() {
    let folder = std::env::temp_dir().join(format!("kymo-leftovers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("temporary files may be written");
    let run = |end: &str, session: Option<&str>| {
        let mut command = alone::this();
        command
            .args(["--exact", "leftovers::a_program_that_ends"])
            .env("KYMO_TEST_END", end)
            .env("XDG_RUNTIME_DIR", &folder);
        if let Some(session) = session {
            command.env("KYMO_SESSION", session);
        }
        assert!(command.stdout(Stdio::null()).status().expect("it starts").success());
        let files = std::fs::read_dir(folder.join("kymo")).expect("it is there").flatten();
        files.filter(|file| file.path().extension().is_some_and(|kind| kind == "ctl")).count()
    };
    assert_eq!(run("ended", None), 0, "who ends in good order takes its own away");
    assert_eq!(run("killed", None), 1, "who does not, cannot");
    assert_eq!(run("killed", None), 1, "but the next one takes it away");
    assert_eq!(run("recorded", Some("some")), 1, "and leaves its own");
    assert_eq!(run("ended", None), 1, "what was recorded is for a recorder");
    std::fs::remove_dir_all(&folder).expect("it is ours");
}
